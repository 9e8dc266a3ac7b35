#!/usr/bin/env bash
# Ten minutes of everything at once, under ./test.sh --long: memory stays, every identity holds, the data is right.
source "$PROJECT/tests/e2e/lib.sh"

data=(--target native:data --set SCALE=128M --set SCAN_TABLE_SZ=4M --set REDO_LOG_MB=16 --set UNDO_MB=64)
expect 0 "$ASSAY" prepare "${data[@]}" -s 8
"$ASSAY" run "${data[@]}" -s 8 -t 8 --time 10m --warmup 10s -o run --set UPDATE_PCT=50 --set SCAN_PCT=2 \
    --set REDO_STRESS=HEAVY --set DO_HOTSPOT=TRUE --set HOTSPOT_MB=8 --set HOTSPOT_OFFSET_MB=16 \
    --set HOTSPOT_FREQUENCY=5 --set HOT_SCHEMA_FREQUENCY=4 --set THINK_TM_FREQUENCY=500 >out.txt 2>err.txt &
pid=$!
resident_kb() {
    awk '/^VmRSS:/ { print $2 }' "/proc/$pid/status" 2>/dev/null || true
}
# Two lines a second. After a minute the cache, the log, the rings and the histograms are there.
wait_for 180 lines run/series.jsonl 120
early_kb=$(resident_kb)
early_s=$SECONDS
late_kb=$early_kb late_s=$early_s
while kill -0 "$pid" 2>/dev/null; do
    sleep 5
    now_kb=$(resident_kb)
    # Once the window has ended the record and the pages are made.
    if [ -n "$now_kb" ] && [ -z "$(tail -n 3 run/series.jsonl | grep -o '"mark":"end"')" ]; then
        late_kb=$now_kb late_s=$SECONDS
    fi
done
code=0
wait "$pid" || code=$?
[ "$code" = 0 ] || { tail err.txt; fail "exit $code"; }
minutes=$(((late_s - early_s) / 60))
echo "- resident $((early_kb / 1024)) MiB after a minute, $((late_kb / 1024)) MiB $minutes minutes later"
[ "$minutes" -ge 8 ] || fail "measured over $minutes minutes only"
# What a run keeps of each second takes half a MiB a minute (docs/design/run.md, Memory), growing arrays at times twice that.
[ $((late_kb - early_kb)) -le $((minutes * 2048)) ] || fail "memory grows by $(((late_kb - early_kb) / minutes)) KiB a minute"
[ "$(json run/record.json run.verdict)" = complete ] || fail "verdict"
! grep -q '"ok": *false' run/record.json || fail "an identity is violated"
expect 0 "$ASSAY" check "${data[@]}"
