#!/usr/bin/env bash
# A volume of which a part is slow at its first reads: the answer says how much and where, --hydrate warms it, an interrupted one goes on.
source "$PROJECT/tests/e2e/lib.sh"

[ "$(id -u)" = 0 ] || skip "mounting needs root"
[ -c /dev/fuse ] || skip "no /dev/fuse"
python=$(command -v python3) || skip "no python3"

# A quarter of 4 GiB, fetched in pieces of 512 KiB that take 8 ms.
mkdir volume
"$python" "$PROJECT/tests/e2e/long/slow_once.py" volume 4096 512 8 1024-2048 >server.txt 2>&1 &
server=$!
trap 'umount volume 2>/dev/null || kill "$server" 2>/dev/null || true' EXIT
wait_for 20 test -e volume/volume

part() { json "$1/record.json" "parts.first-touch.$2"; }
# between LOW VALUE HIGH
between() { awk -v low="$1" -v value="$2" -v high="$3" 'BEGIN { exit !(low <= value && value <= high) }'; }

echo "- the plan is told and nothing is read"
expect 0 "$ASSAY" first-touch volume/volume --hydrate 100MiB/s --dry-run
has out.txt "at 100 MiB/s"

echo "- the cold quarter is found, where it is"
expect 0 "$ASSAY" first-touch volume/volume --time 20s -o cold
[ "$(part cold verdict)" = cold ] || { cat out.txt; fail "not found"; }
between 0.20 "$(part cold cold_bytes | awk '{ print $1 / 4294967296 }')" 0.30 || fail "$(part cold cold_bytes) bytes are cold of 4 GiB, 1 of them cold"
between 8000 "$(part cold first_read_us_p50)" 100000 || fail "a first read of $(part cold first_read_us_p50) us"
inside=0 outside=0
for region in $(seq 0 63); do
    [ "$(part cold "regions.$region.verdict")" = cold ] || continue
    if [ "$region" -ge 16 ] && [ "$region" -lt 32 ]; then inside=$((inside + 1)); else outside=$((outside + 1)); fi
done
[ "$inside" -ge 14 ] && [ "$outside" -le 4 ] || fail "$inside of 16 cold regions and $outside of 48 warm ones are called cold"

echo "- reading in advance can be interrupted, and says how far it came"
"$ASSAY" first-touch volume/volume --time 5s --hydrate 20MiB/s -o stopped >out.txt 2>err.txt &
pid=$!
wait_for 60 grep -q "^read .* of .* left" err.txt
kill -INT "$pid"
reap
[ "$code" = 130 ] || fail "exit $code"
has out.txt "stopped; the same command goes on"

echo "- read in advance, nothing is cold"
expect 0 "$ASSAY" first-touch volume/volume --time 5s --hydrate 2GiB/s --hydrate-all -o hydrated
between 4294967296 "$(part hydrated hydrated_bytes)" 4294967296 || fail "$(part hydrated hydrated_bytes) bytes were read"
expect 0 "$ASSAY" first-touch volume/volume --time 5s -o warm
[ "$(part warm verdict)" != cold ] || fail "still cold"
