#!/usr/bin/env bash
# Eight questions of people who try a platform, each with a set-up made on purpose: the first screen must contain the sentence
# that answers it, however busy the host is. Under ./test.sh --long and by hand. It runs alone.
source "$PROJECT/tests/e2e/lib.sh"

bin=$(postgres_programs)
others=() place=""
clean_up() {
    calm
    stop_postgres
    leave_group
    [ -z "$place" ] || rm -rf --one-file-system "$place"
}
trap clean_up EXIT

# burn: keeps every CPU busy until calm.
burn() {
    for _ in $(seq "$(nproc)"); do
        (while :; do :; done) &
        others+=($!)
    done
}
calm() {
    [ "${#others[@]}" = 0 ] || { kill "${others[@]}" && wait "${others[@]}"; } 2>/dev/null || true
    others=()
}

# The answer as one line, without the columns of a screen.
screen() {
    tr -s '\n ' '  ' <out.txt
}
# says QUESTION PATTERN...: the answer holds each pattern (Perl's).
says() {
    local question=$1 pattern
    shift
    for pattern in "$@"; do
        screen | grep -qP -- "$pattern" || { cat out.txt; fail "$question: the answer does not say \"$pattern\""; }
        echo "  $(screen | grep -oP -- "$pattern" | head -n 1 | cut -c 1-110)"
    done
    # What fio prints may stand above it.
    local lines
    lines=$(sed -n '/^Tested/,$p' out.txt | wc -l)
    [ "$lines" -le 40 ] || fail "$question: the answer has $lines lines"
}

data=(--target native:data --set SCALE=8000 --set REDO_LOG_MB=8 --set UNDO_MB=16)
expect 0 "$ASSAY" prepare "${data[@]}" -s 2

echo "1. Something holds my reads back in the middle of a run. What, and since when?"
# later S N: after S seconds the group gets N reads/s.
later() {
    (sleep "$1" && limit_device read_iops "$2") &
}
if block_group; then
    later 12 500
    expect 0 "${inside[@]}" "$ASSAY" run "${data[@]}" --time 24s --warmup 1s -s 2 -t 4 --set UPDATE_PCT=0 --set CACHE_MB=4
    says "a cap in a run" "Limited by .{0,40}looks like a cap of (49|50)\d reads/s" "Steadiness fell \d+ % at 1\d s"
    wait $!
    limit_device read_iops 0

    echo "   and of the bare storage?"
    dd if=/dev/urandom of=file bs=1M count=64 status=none
    later 8 500
    expect 0 "${inside[@]}" "$ASSAY" io --name=reads --filename=file --rw=randread --bs=8k --direct=1 --iodepth=8 --time_based \
        --runtime=20
    says "a cap of io" "Limited by .{0,40}(looks like a cap of (49|50)\d reads/s|a limit set on the device)"
    wait $!
    leave_group
else
    echo "  no block controller to throttle the device with: not tried"
fi

echo "2. Other programs use this host. What did that cost my test?"
burn
expect 0 "$ASSAY" run "${data[@]}" --time 8s --warmup 1s -s 2 -t 4 --set UPDATE_PCT=0 --set CACHE_MB=4
says "a busy host" "The host's CPUs were \d+ % busy: \d+ % with this test, \d+ % with other processes|the host's CPUs, which other" \
    "Trust +with care"

echo "3. How many sessions should I use? (While others burn the CPUs.)"
expect 0 "$ASSAY" sweep "${data[@]}" --sessions 1,2,4 --time 3s --set UPDATE_PCT=0 --set CACHE_MB=4
says "a sweep on a busy host" "Limited by [^.]*others used the CPUs" "Trust +(with care|do not use)"
calm

echo "4. Is this disk fast enough for 5,000 commits/s?"
mkdir -p log
expect 0 "$ASSAY" sync log --commits 5000 --time 8s
says "commits" "Asked 5,000 commits/s: (yes|no|cannot say)" "commits/s by one session" "commits/s by 32 sessions"

echo "5. Does the gate of my pipeline see that it got slower?"
expect 0 "$ASSAY" run "${data[@]}" --time 12s --warmup 1s -s 2 -t 4 --set UPDATE_PCT=0 --set CACHE_MB=4 -o base
expect 0 "$ASSAY" run "${data[@]}" --time 12s --warmup 1s -s 2 -t 4 --set UPDATE_PCT=0 --set CACHE_MB=4 --set RATE=40 -o slow
code=0
"$ASSAY" compare slow base --fail-if 'ops_per_s < -5%' >out.txt 2>err.txt || code=$?
case $code in 4 | 5) echo "  exit $code: $(tail -n 1 err.txt | cut -c 1-110)" ;; *) cat out.txt err.txt; fail "the gate ended with $code" ;; esac

echo "6. Where did the reads of my database come from?"
[ -n "$bin" ] || skip "no PostgreSQL server is installed: five of eight were tried"
place=$(mktemp -d /tmp/assay-test.XXXXXX)
chmod 755 "$place"
start_postgres "$bin" "$place" -c shared_buffers=16MB -c track_io_timing=on
pid=""
data=(--target "postgres://postgres@/postgres?host=$place/pg" --set SCALE=8000)
expect 0 "$ASSAY" prepare "${data[@]}" -s 2
expect 0 "$ASSAY" run "${data[@]}" --time 6s --warmup 1s -s 2 -t 2 --set UPDATE_PCT=0
says "the page cache" "\d+ % of (the bytes|these) read[s]? (came from|reached) a device"

echo "7. What did my sessions wait for? (A lock is held for half of the run.)"
(sleep 2 && sql -c "begin; lock table assay.cf1_1 in exclusive mode; select pg_sleep(5); commit" >/dev/null) &
expect 0 "$ASSAY" run "${data[@]}" --time 10s --warmup 1s -s 1 -t 4 --set UPDATE_PCT=100 --set WORK_UNIT=4
wait $!
says "a lock" "Time went to [^.]*Lock" "Limited by .{0,60}(other sessions|lock)"

echo "8. Do its latencies agree with fio's?"
if command -v fio >/dev/null; then
    [ -f file ] || dd if=/dev/urandom of=file bs=1M count=64 status=none
    job=(--name=deep --filename=file --rw=randread --bs=8k --direct=1 --ioengine=libaio --iodepth=64 --time_based --runtime=5)
    fio "${job[@]}" --output-format=json --output=fio.json >/dev/null
    expect 0 "$ASSAY" io "${job[@]}" --output-format=json --output=own.json
    python3 - <<'PY'
import json
def mean(name, part):
    return json.load(open(name))["jobs"][0]["read"][part]["mean"]
fio, own = ((mean(f"{name}.json", "clat_ns"), mean(f"{name}.json", "slat_ns")) for name in ("fio", "own"))
print(f"  clat {own[0] / fio[0]:.2f} and slat {own[1] / fio[1]:.2f} times fio's")
# What counts as submitting and what as waiting, not how quick: one is most of the time in both.
assert (own[0] > own[1]) == (fio[0] > fio[1]), (fio, own)
PY
else
    echo "  fio is not installed: not tried"
fi
