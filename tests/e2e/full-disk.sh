#!/usr/bin/env bash
# A full disk ends with one clear error, exit 3 for what is worked on and 6 for what is written of the results, and harms nothing.
source "$PROJECT/tests/e2e/lib.sh"

[ "$(id -u)" = 0 ] || skip "mounting needs root"
mkdir disk
trap 'umount disk 2>/dev/null || umount --lazy disk 2>/dev/null || true' EXIT
truncate -s 600M image
if mkfs.ext4 -q -m 0 image 2>/dev/null && mount -o loop image disk 2>/dev/null; then
    rm -rf disk/lost+found
    echo "- on ext4 in a loop device"
elif mount -t tmpfs -o size=600M tmpfs disk 2>/dev/null; then
    echo "- on tmpfs: no loop device here"
else
    skip "no right to mount"
fi

echo "- too little space is refused before a byte is written"
expect 3 "$ASSAY" prepare --target native:disk/data -s 4 --set SCALE=1G
has err.txt "MiB are free"
[ -z "$(ls -A disk/data 2>/dev/null)" ] || fail "something was written all the same"

echo "- the disk fills up while it loads"
# It reserves its files soon after the first one is there, and until then it has to be held: where the machine was too busy
# for that, the load is taken away and tried again.
for _ in 1 2 3 4 5 6 7 8 9 10; do
    meets_end_of disk "[ -e disk/data/control.assay ]" \
        prepare --target native:disk/data -s 7 --set SCALE=60M --set REDO_LOG_MB=8 --set UNDO_MB=16
    [ "$code" = 0 ] || break
    rm -f disk/ballast*
    expect 0 "$ASSAY" destroy --target native:disk/data
done
told_full 3
grep error err.txt
rm -f disk/ballast*

echo "- with space again, the next prepare does it"
expect 0 "$ASSAY" prepare --target native:disk/data -s 4 --set SCALE=2000 --set REDO_LOG_MB=8 --set UNDO_MB=16
expect 0 "$ASSAY" check --target native:disk/data "${SMALL[@]}"

echo "- a run on a full disk"
fill disk
code=0
"$ASSAY" run --target native:disk/data "${SMALL[@]}" -s 4 --set UPDATE_PCT=50 --time 4 --warmup 0 -o run >out.txt 2>err.txt || code=$?
case "$code" in
    0) [ -s run/record.json ] || fail "no record" ;;
    3) has err.txt space ;;
    *) tail err.txt; fail "exit $code" ;;
esac
expect 0 "$ASSAY" check --target native:disk/data "${SMALL[@]}"

echo "- a record on a full disk"
expect 6 "$ASSAY" run --target native:disk/data "${SMALL[@]}" -s 4 --time 3 --warmup 0 -o disk/run
grep -qiE "space|full" err.txt || { cat err.txt; fail "the message does not say that the disk is full"; }
rm -f disk/ballast*
expect 0 "$ASSAY" check --target native:disk/data "${SMALL[@]}"
expect 0 "$ASSAY" destroy --target native:disk/data

echo "- the durable-write curve: its disk fills up meanwhile"
# Held while it fills its file, or else when a step lets it grow, some seconds later.
# shellcheck disable=SC2016
meets_end_of disk '[ -n "$(ls -A disk)" ]' sync disk --time 20s -o full
told_full 3
rm -f disk/ballast*
[ -z "$(ls -A disk)" ] || { ls -A disk; fail "something is left behind"; }

echo "- a storage job: while its file is laid out, in its record, in its report"
expect 3 "$ASSAY" io --no-record --name=f --directory=disk --size=1g --rw=randread
[ -z "$(ls -A disk)" ] || { ls -A disk; fail "something is left behind"; }
null=(--name=n --ioengine=null --size=1g --time_based --runtime=3)
meets_end_of disk "[ -s disk/run/config/given ]" io "${null[@]}" -o disk/run
told_full 6
has out.txt "n: (groupid=0"
expect 6 "$ASSAY" io --no-record "${null[@]}" --output=disk/report
hasnt out.txt "groupid"

# The kernel closes a ring's files a moment after its process is gone.
pid=""
wait_for 10 umount disk
