#!/usr/bin/env bash
# KILL loses nothing before the last second: `assay runs recover` rebuilds the record and marks it incomplete,
# and the data set is recovered by whoever opens it next.
source "$PROJECT/tests/e2e/lib.sh"

expect 0 "$ASSAY" prepare --target native:data "${SMALL[@]}" -s 4
"$ASSAY" run --target native:data "${SMALL[@]}" -s 4 --set UPDATE_PCT=50 --time 60 --warmup 0 -o killed \
    >out.txt 2>err.txt &
pid=$!
wait_for 30 lines killed/series.jsonl 7
kill -KILL "$pid"
wait "$pid" || true
[ ! -e killed/record.json ] || fail "a record before the end of the run"
before=$(wc -l <killed/series.jsonl)

expect 0 "$ASSAY" runs recover killed
[ "$(json killed/record.json schema)" = "assay/2" ] || fail "no record recovered"
grep -qi incomplete killed/record.json || fail "the recovered record is not marked incomplete"
[ -s killed/report.txt ] || fail "no report recovered"
has killed/report.txt incomplete
[ "$(wc -l <killed/series.jsonl)" = "$before" ] || fail "recovery changed the series"
expect 0 "$ASSAY" report killed
has out.txt "physical read IO requests"

echo "- a series cut in the middle of a line is recovered as well"
cp -r killed torn
rm -f torn/record.json torn/report.txt
truncate -s -20 torn/series.jsonl
expect 0 "$ASSAY" runs recover torn
[ "$(json torn/record.json schema)" = "assay/2" ] || fail "no record from a torn series"

echo "- the data set that was not closed is recovered by the next run, which says so"
expect 0 "$ASSAY" run --target native:data "${SMALL[@]}" -s 4 --time 2 --warmup 0 -o again
has again/report.txt recovered_commits
expect 0 "$ASSAY" check --target native:data "${SMALL[@]}"

echo "- and by check"
"$ASSAY" run --target native:data "${SMALL[@]}" -s 4 --set UPDATE_PCT=100 --time 60 --warmup 0 -o killed2 \
    >out.txt 2>err.txt &
pid=$!
wait_for 30 lines killed2/series.jsonl 3
kill -KILL "$pid"
wait "$pid" || true
expect 0 "$ASSAY" check --target native:data "${SMALL[@]}"
has out.txt "Commits replayed"
expect 0 "$ASSAY" destroy --target native:data
