#!/usr/bin/env bash
# KILL loses nothing before the last second: `assay runs recover` rebuilds the record and marks it incomplete.
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
[ "$(json killed/record.json schema)" = "assay/1" ] || fail "no record recovered"
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
[ "$(json torn/record.json schema)" = "assay/1" ] || fail "no record from a torn series"

echo "- the unclean data set is refused, with the way out"
expect 3 "$ASSAY" run --target native:data "${SMALL[@]}" -s 4 --time 2 -o refused
has err.txt clean
expect 3 "$ASSAY" check --target native:data "${SMALL[@]}"
expect 0 "$ASSAY" destroy --target native:data
expect 0 "$ASSAY" prepare --target native:data "${SMALL[@]}" -s 4
expect 0 "$ASSAY" run --target native:data "${SMALL[@]}" -s 4 --time 2 --warmup 0 -o fresh
