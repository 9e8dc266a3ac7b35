#!/usr/bin/env bash
# TERM and INT end a run cleanly: a report marked incomplete, exit 130, data that still passes its check.
source "$PROJECT/tests/e2e/lib.sh"

expect 0 "$ASSAY" prepare --target native:data "${SMALL[@]}" -s 4

for signal in TERM INT; do
    echo "- $signal"
    # Bash starts background jobs with INT ignored; env puts the default back.
    env --default-signal=INT,TERM "$ASSAY" run --target native:data "${SMALL[@]}" -s 4 --set UPDATE_PCT=50 \
        --time 60 --warmup 0 -o "run-$signal" >"out-$signal.txt" 2>"err-$signal.txt" &
    pid=$!
    wait_for 30 lines "run-$signal/series.jsonl" 4
    kill -"$signal" "$pid"
    code=0
    wait "$pid" || code=$?
    [ "$code" = 130 ] || { tail "err-$signal.txt"; fail "exit $code after $signal instead of 130"; }
    has "out-$signal.txt" incomplete
    [ -s "run-$signal/report.txt" ] || fail "no report after $signal"
    grep -qi incomplete "run-$signal/record.json" || fail "the record is not marked incomplete"
    expect 0 "$ASSAY" check --target native:data "${SMALL[@]}"
done

echo "- the data set is clean: it runs again"
expect 0 "$ASSAY" run --target native:data "${SMALL[@]}" -s 4 --time 2 --warmup 0 -o again

echo "- a prepare that is stopped can be done over"
env --default-signal=INT,TERM "$ASSAY" prepare --target native:other -s 4 --set SCALE=400M --set REDO_LOG_MB=8 \
    --set UNDO_MB=16 >out.txt 2>err.txt &
pid=$!
wait_for 30 test -e other/control.assay
kill -TERM "$pid"
code=0
wait "$pid" || code=$?
if [ "$code" = 0 ]; then
    echo "  (it was quicker than the signal)"
else
    [ "$code" = 130 ] || { tail err.txt; fail "exit $code of a stopped prepare instead of 130"; }
    expect 3 "$ASSAY" check --target native:other "${SMALL[@]}"
    expect 0 "$ASSAY" prepare --target native:other "${SMALL[@]}" -s 2
fi
expect 0 "$ASSAY" check --target native:other "${SMALL[@]}"
