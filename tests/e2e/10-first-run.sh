#!/usr/bin/env bash
# A fresh box: one command prepares, runs and reports; the second time it reuses the data.
source "$PROJECT/tests/e2e/lib.sh"

expect 0 "$ASSAY" run "${SMALL[@]}" --time 3 --warmup 1 --format full
cp out.txt first.txt
[ -f assay-data/control.assay ] || fail "no data set in ./assay-data"
file=$(find assay-data -name 'data-*.assay' | head -n 1)
inode=$(stat -c '%i %W' "$file")
created=$(stat -c '%Y' assay-data)

expect 0 "$ASSAY" run "${SMALL[@]}" --time 3 --warmup 1
cp out.txt second.txt
[ "$(stat -c '%i %W' "$file")" = "$inode" ] || fail "the second run made new data"
[ "$(stat -c '%Y' assay-data)" = "$created" ] || fail "the second run created or removed files in the data set"

runs=(assay-runs/*/)
[ "${#runs[@]}" = 2 ] || fail "two runs, ${#runs[@]} run directories"
for run in "${runs[@]}"; do
    for name in record.json series.jsonl report.txt; do
        [ -s "$run$name" ] || fail "no $run$name"
    done
    [ "$(json "${run}record.json" schema)" = "assay/2" ] || fail "schema of ${run}record.json"
    [ -n "$(ls "${run}config")" ] || fail "no configuration in $run"
done
echo "- the second run's answer is on one screen, with the report and the page named"
[ "$(wc -l <second.txt)" -le 40 ] || { cat second.txt; fail "the answer has more than 40 lines"; }
[ "$(wc -L <second.txt)" -le 100 ] || { cat second.txt; fail "the answer is wider than 100 columns"; }
for part in "operations/s" "Limited by" "Steadiness" "Trust" "Before" "report.txt and report.html" "Next"; do
    has second.txt "$part"
done

cmp -s first.txt "${runs[0]}report.txt" || cmp -s first.txt "${runs[1]}report.txt" \
    || fail "neither report.txt is what stdout showed"

echo "- the grep of the field"
for f in first.txt "${runs[@]/%/report.txt}"; do
    # head closes the pipe while tail may still write: no failure, in the field neither.
    set +o pipefail
    tail -n +"$(grep -n "physical read IO requests" "$f" | cut -f1 -d:)" "$f" | head -n 35 | grep physical >field.txt
    set -o pipefail
    [ "$(grep -c "physical read IO requests" "$f")" = 1 ] || fail "the anchor line of the grep is not unique in $f"
    for name in "physical read IO requests" "physical read bytes" "physical read total bytes" "physical reads" \
        "physical write IO requests" "physical write bytes" "physical writes"; do
        grep -q "^$name  *[0-9]" field.txt || { cat field.txt; fail "no \"$name\" in the grep of the field"; }
    done
done
[ "$(awk '/^physical reads  / { gsub(",", "", $3); print ($3 + 0 > 0) }' field.txt)" = 1 ] || {
    cat field.txt
    fail "no physical reads at all"
}

echo "- the record on stdout is the record in the directory"
expect 0 "$ASSAY" run "${SMALL[@]}" --time 2 --warmup 0 --format json -o third
cp out.txt third.json
[ "$(json third.json schema)" = "assay/2" ] || fail "stdout is not a record"
[ "$(json third.json run)" = "$(json third/record.json run)" ] || fail "two different records"

echo "- list, show, report, check, destroy"
expect 0 "$ASSAY" runs list
[ "$(grep -c slob out.txt)" -ge 2 ] || { cat out.txt; fail "runs list does not show the runs"; }
expect 0 "$ASSAY" report third
cmp -s out.txt third/report.txt || fail "assay report differs from report.txt"
expect 0 "$ASSAY" report third --format summary
has out.txt "|"
expect 0 "$ASSAY" check "${SMALL[@]}"
touch assay-data/foreign.txt
expect 0 "$ASSAY" destroy
[ "$(ls assay-data)" = foreign.txt ] || { ls assay-data; fail "destroy left or took the wrong files"; }
rm -r assay-data

echo "- a closed pipe ends quietly"
expect 0 "$ASSAY" report third
{ "$ASSAY" report third 2>pipe.txt || true; } | head -n 1 >/dev/null
[ ! -s pipe.txt ] || { cat pipe.txt; fail "noise on a closed pipe"; }
