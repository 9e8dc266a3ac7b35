#!/usr/bin/env bash
# Ten minutes of everything at once, under ./test.sh --long: memory stays, every identity holds, the data is right.
source "$PROJECT/tests/e2e/lib.sh"

data=(--target native:data --set SCALE=128M --set SCAN_TABLE_SZ=4M --set REDO_LOG_MB=16 --set UNDO_MB=64)
expect 0 "$ASSAY" prepare "${data[@]}" -s 8
"$ASSAY" run "${data[@]}" -s 8 -t 8 --time 10m --warmup 10s -o run --set UPDATE_PCT=50 --set SCAN_PCT=2 \
    --set REDO_STRESS=HEAVY --set DO_HOTSPOT=TRUE --set HOTSPOT_MB=8 --set HOTSPOT_OFFSET_MB=16 \
    --set HOTSPOT_FREQUENCY=5 --set HOT_SCHEMA_FREQUENCY=4 --set THINK_TM_FREQUENCY=500 >out.txt 2>err.txt &
pid=$!
wait_for 180 lines run/series.jsonl 60
early_kb=$(awk '/^VmRSS:/ { print $2 }' "/proc/$pid/status")
late_kb=$early_kb
while kill -0 "$pid" 2>/dev/null; do
    late_kb=$(awk '/^VmRSS:/ { print $2 }' "/proc/$pid/status" 2>/dev/null || true)
    late_kb=${late_kb:-$early_kb}
    sleep 5
done
code=0
wait "$pid" || code=$?
[ "$code" = 0 ] || { tail err.txt; fail "exit $code"; }
echo "- resident $((early_kb / 1024)) MiB after a minute, $((late_kb / 1024)) MiB at the end"
[ $((late_kb - early_kb)) -le $((32 * 1024)) ] || fail "memory grows"
[ "$(json run/record.json run.verdict)" = complete ] || fail "verdict"
! grep -q '"ok": *false' run/record.json || fail "an identity is violated"
expect 0 "$ASSAY" check "${data[@]}"
