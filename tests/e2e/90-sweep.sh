#!/usr/bin/env bash
# A sweep on real data: a record for each step, its own above them, CPUs given back, and an end by Ctrl-C.
source "$PROJECT/tests/e2e/lib.sh"

expect 0 "$ASSAY" prepare -s 2 "${SMALL[@]}"

expect 0 "$ASSAY" sweep --sessions 1,2,4,8 --time 5 --warmup 1 --set CACHE_MB=4 --set WORK_UNIT=1 --p99 10s --format full -o swept
has out.txt "Curve over sessions"
has out.txt "Knee"
has out.txt "Highest load that keeps p99 within 10 s: 8 sessions"
has out.txt "calability"
[ "$(json swept/record.json schema)" = assay/2 ] || fail "schema"
[ "$(json swept/record.json kind)" = sweep ] || fail "kind"
[ "$(json swept/record.json run.verdict)" = complete ] || fail "verdict"
for n in 1 2 4 8; do
    [ "$(json swept/step-*-sessions-$n/record.json run.sessions)" = "$n" ] || fail "the record of $n sessions"
done
cmp out.txt swept/report.txt || fail "printed is what is kept"
grep -E "^ +[0-9]+ .*(yes|late|no) " out.txt | head -4

cpus=$(nproc)
expect 0 "$ASSAY" sweep --sessions 4 --cpus "$(seq -s, 1 "$cpus")" --time 2 --warmup 0 --set CACHE_MB=64 --set UPDATE_PCT=0 -o cpus
for n in $(seq 1 "$cpus"); do
    [ "$(json cpus/step-*-cpus-"$n"/record.json driver.threads_count)" -le "$n" ] || fail "more threads than $n CPUs"
done

"$ASSAY" sweep --sessions auto --time 60 --set CACHE_MB=4 --format full -o stopped >out.txt 2>err.txt &
pid=$!
wait_for 60 lines stopped/step-001-sessions-1/series.jsonl 3
kill -INT "$pid"
code=0
wait "$pid" || code=$?
[ "$code" = 130 ] || fail "exit $code of an interrupted sweep"
has out.txt "stopped on request after 1 step"
[ "$(json stopped/record.json run.verdict)" = incomplete ] || fail "verdict of an interrupted sweep"
expect 0 "$ASSAY" check
