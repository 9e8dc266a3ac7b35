#!/usr/bin/env bash
# The durable-write curve leaves nothing behind: not when it ends, not when it is killed, not on a full disk.
source "$PROJECT/tests/e2e/lib.sh"

echo "- it measures, and only the record stays"
mkdir place
expect 0 "$ASSAY" sync place --time 4s -o run
[ -z "$(ls -A place)" ] || { ls -A place; fail "something is left behind"; }
has run/report.txt "What Each Level of Safety Costs"
[ "$(json run/record.json run.workload)" = sync ] || fail "the record's workload"
[ -n "$(json run/record.json parts.sync.f0_us)" ] || fail "no F0"

echo "- what KILL leaves, the next one removes"
"$ASSAY" sync place --time 60s -o killed >out.txt 2>err.txt &
pid=$!
# shellcheck disable=SC2016
wait_for 60 sh -c '[ -n "$(ls -A place)" ]'
kill -KILL "$pid"
wait "$pid" 2>/dev/null || true
unset pid
[ -n "$(ls -A place)" ] || fail "the killed probe left nothing to be found"
echo theirs >place/assay-sync-theirs.scratch
expect 0 "$ASSAY" sync place --time 1s -o after
[ "$(ls -A place)" = assay-sync-theirs.scratch ] || { ls -A place; fail "the killed one's file is still there"; }
[ "$(cat place/assay-sync-theirs.scratch)" = theirs ] || fail "a foreign file was changed"

[ "$(id -u)" = 0 ] || skip "mounting needs root"
mkdir disk
trap 'umount disk 2>/dev/null || umount --lazy disk 2>/dev/null || true' EXIT
mount -t tmpfs -o size=300M tmpfs disk 2>/dev/null || skip "no right to mount"

echo "- in memory it says that the figures mean nothing"
expect 0 "$ASSAY" sync disk --time 1s -o memory
has memory/report.txt "is in memory"
[ -z "$(ls -A disk)" ] || fail "something is left behind in memory"

echo "- too little space is refused before a byte is written"
dd if=/dev/zero of=disk/ballast bs=1M count=200 status=none
expect 3 "$ASSAY" sync disk --time 1s -o refused
has err.txt "must stay free"
[ "$(ls -A disk)" = ballast ] || fail "something was written all the same"
rm disk/ballast

echo "- a disk that fills up meanwhile ends it with one error and nothing left"
"$ASSAY" sync disk --time 20s -o full >out.txt 2>err.txt &
pid=$!
# shellcheck disable=SC2016
wait_for 60 sh -c '[ -n "$(ls -A disk)" ]'
kill -STOP "$pid"
dd if=/dev/zero of=disk/ballast bs=1M status=none 2>/dev/null || true
dd if=/dev/zero of=disk/ballast2 bs=4K status=none 2>/dev/null || true
kill -CONT "$pid"
# Stopped while it fills the file, or else when a step lets it grow, some seconds later.
code=0
wait "$pid" || code=$?
unset pid
[ "$code" = 3 ] || { tail err.txt; fail "exit $code on a full disk instead of 3"; }
[ "$(grep -c '^error' err.txt)" = 1 ] || { cat err.txt; fail "not one clear error"; }
grep -qi space err.txt || { cat err.txt; fail "the message does not say that the disk is full"; }
rm disk/ballast disk/ballast2
[ -z "$(ls -A disk)" ] || { ls -A disk; fail "something is left behind on the full disk"; }
