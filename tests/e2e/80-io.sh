#!/usr/bin/env bash
# assay io beside the real fio: the same words accepted, the same JSON keys, the same lines; and on real devices: nothing
# written that was not named, full disks and failing devices told with the right exit code.
source "$PROJECT/tests/e2e/lib.sh"

io() { "$ASSAY" io --no-record "$@"; }

if command -v fio >/dev/null; then
    echo "- both accept or both refuse"
    export SIZE=4m
    cat >good.fio <<'JOB'
; comments, globals and variables
[global]
bs=8k
size=${SIZE}
ioengine=null
[first]
rw=randread
[second]
stonewall
rw=randrw:8
rwmixread=70
bssplit=4k/60:8k/40
JOB
    printf '[a]\nrw=randread\nsize=1m\nbs=banana\n' >bad.fio
    while read -r words; do
        theirs=0 ours=0
        # shellcheck disable=SC2086
        fio --parse-only $words >theirs.txt 2>&1 </dev/null || theirs=1
        # shellcheck disable=SC2086
        "$ASSAY" io --parse-only $words >ours.txt 2>&1 </dev/null || ours=1
        [ "$ours" = "$theirs" ] || { cat theirs.txt ours.txt; fail "fio ended with $theirs, assay with $ours: $words"; }
    done <<'WORDS'
--name=a --rw=randread --size=1m --bs=4k --iodepth=16 --ioengine=libaio --direct=1
--name=a --rw=read --size=1m --name=b --rw=randread --size=2m --stonewall
--bs=16k --name=a --size=1m --rw=randrw --rwmixread=70 --numjobs=4 --group_reporting
--name=a --size=1m --rw=write --fdatasync=1 --bs=,8k
--name=a --size=1m --rw=randread --random_distribution=zipf:1.2 --percentile_list=50:99:99.9
--name a --size 1m --rw randread --runtime 2m --time_based
--name=a --size=1m --rw=sideways
--name=a --size=1m --no-such-option=1
--name=a --size=1m --rw=randread --bs=banana
--name=a --size=1m --rw=randread --iodepth=zero
--readonly --name=a --size=1m --rw=randwrite
good.fio
good.fio --section=second
bad.fio
absent.fio
WORDS

    echo "- the same jobs: the same JSON keys"
    jobs=(--size=4m --bs=8k "--name=reads" --rw=randread --ioengine=io_uring --iodepth=8 --direct=1
        "--name=redo" --stonewall --rw=write --number_ios=50 --fdatasync=1 --description=redo
        "--name=mix" --stonewall --rw=randrw --numjobs=2 --group_reporting --lat_percentiles=1)
    fio --output-format=json+ --output=theirs.json "${jobs[@]}" >/dev/null
    rm -f reads.0.0 redo.0.0 mix.[01].0
    io --output-format=json+ --output=ours.json "${jobs[@]}" 2>err.txt || { cat err.txt; fail "the jobs"; }
    # Bins are latencies, which no two runs share; `native` is ours; the options say how each was called; rw, iodepth,
    # numjobs and bs are always echoed, for plotters; lat has its percentiles whatever was asked for.
    keys() {
        "$XTASK" keys "$1" | grep -vE '/bins/|^/native|lat_ns/percentile|^/disk_util\[\]/(aggr|slaves)|/(job|global) options/(rw|iodepth|numjobs|bs)$' | sort -u
    }
    diff <(keys theirs.json) <(keys ours.json) >keys.diff || { cat keys.diff; fail "the key trees differ"; }
    # fio ends before the sync of its last write.
    [ "$(json ours.json jobs.1.sync.total_ios)" = 50 ] || fail "not a sync for each write"
    [ "$(json ours.json jobs.0.read.total_ios)" = "$(json theirs.json jobs.0.read.total_ios)" ] || fail "reads"

    if command -v fio_jsonplus_clat2csv >/dev/null && command -v python3 >/dev/null; then
        echo "- fio's own tool reads our bins, and finds our percentiles in them"
        fio_jsonplus_clat2csv ours.json clat.csv >/dev/null
        [ "$(wc -l <clat_job0.csv)" -gt 2 ] || fail "no rows"
        # Column 7 is the share of reads that ended within the latency of column 1.
        p99=$(awk -F, 'NR > 1 && $7 + 0 >= 0.99 { print $1 + 0; exit }' clat_job0.csv)
        ours=$("$XTASK" get ours.json "jobs.0.read.clat_ns" | grep -o '"99.000000":[0-9]*' | cut -d: -f2)
        [ "$p99" = "$ours" ] || fail "p99: $p99 in fio's table, $ours in our report"
    else
        echo "!! no fio_jsonplus_clat2csv or python3: left out"
    fi

    echo "- one reader for both text reports"
    text=(--name=t --size=4m --bs=8k --rw=randrw --ioengine=psync)
    fio "${text[@]}" >theirs.txt
    rm -f t.0.0
    io "${text[@]}" >ours.txt 2>err.txt || { cat err.txt; fail "the job"; }
    n='[0-9.]+[kKMG]?' b='[0-9.]+[kKMG]?i?B'
    for line in \
        "^t: \(g=0\): rw=randrw, bs=\(R\) 8192B-8192B, \(W\) 8192B-8192B, \(T\) 8192B-8192B, ioengine=psync, iodepth=1\$" \
        "^t: \(groupid=0, jobs=1\): err= 0: pid=[0-9]+: " \
        "^   ?read: IOPS=$n, BW=$b/s \($b/s\)\($b/[0-9]+msec\)" \
        "^  write: IOPS=$n, BW=$b/s \($b/s\)\($b/[0-9]+msec\)" \
        "^ +clat \((n|u|m)sec\): min= ?$n, max= ?$n, avg= ?$n, stdev= ?$n\$" \
        "^ +lat \((n|u|m)sec\): min= ?$n, max= ?$n, avg= ?$n, stdev= ?$n\$" \
        "^ +\| 99\.00th=\[ *[0-9]+\]" \
        "^  cpu +: usr=[0-9.]+%, sys=[0-9.]+%, ctx=[0-9]+, majf=[0-9]+, minf=[0-9]+\$" \
        "^  IO depths +: 1=100\.0%, 2=0\.0%" \
        "^     issued rwts: total=[0-9]+,[0-9]+,0,0 short=0,0,0,0 dropped=0,0,0,0\$" \
        "^     latency   : target=0, window=0, percentile=100\.00%, depth=1\$" \
        "^   READ: bw=$b/s \($b/s\), $b/s-$b/s \($b/s-$b/s\), io=$b \($b\), run=[0-9]+-[0-9]+msec\$"; do
        for report in theirs.txt ours.txt; do
            grep -qE "$line" "$report" || { cat "$report"; fail "no line $line in $report"; }
        done
    done
else
    echo "!! no fio: nothing is compared with it"
fi

echo "- status reports grow, and a run under way can be stopped"
"$ASSAY" io --no-record --output-format=json --status-interval=1 --name=s --ioengine=null --size=1g --rw=randread --time_based --runtime=60 \
    >out.txt 2>err.txt &
pid=$!
# shellcheck disable=SC2016
wait_for 30 sh -c '[ "$(grep -c "fio version" out.txt)" -ge 2 ]'
kill -INT "$pid"
code=0
wait "$pid" || code=$?
unset pid
[ "$code" = 130 ] || { tail err.txt; fail "exit $code after INT instead of 130"; }

[ "$(id -u)" = 0 ] || skip "devices and mounts need root"
mkdir disk
device=""
clean() {
    umount disk 2>/dev/null || umount --lazy disk 2>/dev/null || true
    [ -z "$device" ] || losetup -d "$device" 2>/dev/null || true
}
trap clean EXIT

truncate -s 64M image
if device=$(losetup --find --show image 2>/dev/null); then
    echo "- a device is written only when it is named, and never while it is mounted"
    write=(--name=w --filename="$device" --rw=randwrite --bs=4k --size=1m --ioengine=psync)
    before=$(sha256sum <image)
    expect 3 io "${write[@]}"
    has err.txt "--destroy"
    expect 3 io "${write[@]}" --destroy image
    [ "$(sha256sum <image)" = "$before" ] || fail "the device was written"
    expect 0 io "${write[@]}" --destroy "$device" --end_fsync=1
    sync
    [ "$(sha256sum <image)" != "$before" ] || fail "the device was not written"
    mkfs.ext4 -q -F "$device"
    mount "$device" disk
    echo precious >disk/precious
    ln -s "$device" alias
    for name in "$device" alias "$PWD/alias"; do
        expect 3 io --name=w --filename="$name" --rw=randwrite --bs=4k --size=1m --destroy "$name" --allow_mounted_write=1
        has err.txt "mounted"
    done
    expect 0 io --readonly --name=r --filename="$device" --rw=randread --bs=4k --size=1m --direct=1
    [ "$(cat disk/precious)" = precious ] || fail "the mounted file system was changed"

    echo "- a full disk: one error, exit 3 while laying out, 6 for what is written of the results"
    expect 3 io --name=f --directory=disk --size=1g --rw=randread
    [ "$(ls disk)" = "$(printf 'lost+found\nprecious')" ] || { ls disk; fail "something is left behind"; }
    fill() {
        dd if=/dev/zero of=disk/ballast bs=64K status=none 2>/dev/null || true
        dd if=/dev/zero of=disk/ballast2 bs=512 status=none 2>/dev/null || true
    }
    null=(--name=n --ioengine=null --size=1g --time_based --runtime=3)
    "$ASSAY" io "${null[@]}" -o disk/run >out.txt 2>err.txt &
    pid=$!
    wait_for 30 test -s disk/run/config/given
    fill
    code=0
    wait "$pid" || code=$?
    unset pid
    [ "$code" = 6 ] || { tail err.txt; fail "exit $code instead of 6"; }
    has out.txt "n: (groupid=0"
    grep -qiE "space|full" err.txt || { cat err.txt; fail "the message does not say that the disk is full"; }
    expect 6 io "${null[@]}" --output=disk/report
    hasnt out.txt "groupid"
    rm -f disk/ballast disk/ballast2

    echo "- a device that ends early: I/O errors are counted, named, and exit 4"
    umount disk
    truncate -s 8M image
    expect 4 io --name=e --filename="$device" --rw=read --bs=4k --size=32m --ioengine=psync --direct=1
    has err.txt "error: e, clone 0"
    has out.txt "err= 5"
    losetup -d "$device"
    device=""
else
    echo "!! no loop devices here: devices are not tested"
fi
