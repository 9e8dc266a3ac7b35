#!/usr/bin/env bash
# Pages with charts, in a real browser: they draw the record's numbers, need no network, and work by keyboard and on paper.
source "$PROJECT/tests/e2e/lib.sh"

browser

echo "- a run, a sweep, a probe and a comparison leave pages"
label='<script>document.title="owned"</script> & "label"'
expect 0 "$ASSAY" run "${SMALL[@]}" --set CACHE_MB=4 --set UPDATE_PCT=20 -s 2 --time 6 --warmup 1 --label "$label" \
    --at 2s 'echo marked' -o run
expect 0 "$ASSAY" sweep "${SMALL[@]}" --set CACHE_MB=4 -s 2 --sessions 1,2 --time 3 --warmup 0 -o sweep
expect 0 "$ASSAY" io --name=probe --filename=io.dat --size=64M --rw=randrw --bs=8k --iodepth=4 --time_based --runtime=3 -o io
rm -f io.dat
expect 0 "$ASSAY" compare sweep/step-* --format html -o compare.html
expect 0 "$ASSAY" runs list --dir . --format html -o index.html
for page in run/report.html index.html sweep/report.html sweep/step-*/report.html io/report.html compare.html; do
    [ -s "$page" ] || fail "no $page"
done

echo "- the steps of a sweep share one script"
[ -s sweep/assay-plotly.js ] || fail "no shared script"
has sweep/report.html 'src="assay-plotly.js"'
for page in sweep/step-*/report.html; do
    has "$page" 'src="../assay-plotly.js"'
    [ "$(stat -c %s "$page")" -lt 1000000 ] || fail "$page holds the script all the same"
done
has run/report.html 'id="packed"'
for page in run io; do
    [ "$(stat -c %s "$page/report.html")" -lt 2000000 ] || fail "the page of $page is larger than 2 MB"
done

echo "- report makes pages where it is told, and replaces no script of others"
expect 0 "$ASSAY" report run --format html --assets shared -o shared.html
cmp assay-plotly.js sweep/assay-plotly.js
has shared.html 'src="assay-plotly.js"'
mkdir other
echo "theirs" >other/assay-plotly.js
expect 2 "$ASSAY" report run --format html --assets shared -o other/page.html
[ "$(cat other/assay-plotly.js)" = theirs ] || fail "a script of others was replaced"
[ ! -e other/page.html ] || fail "a page without its script was left"
expect 2 "$ASSAY" report run --format html --assets shared
has err.txt "-o FILE"
expect 0 "$ASSAY" report run --format html
cmp out.txt run/report.html

echo "- in the browser"
# The browser leaves a directory where temporary files go; the name is short, for its socket's sake.
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
TMPDIR=$temporary timeout --kill-after=10 1100 "$python" "$PROJECT/tests/e2e/pages.py" "$ASSAY"

echo "- rm takes the pages and the script with the run"
expect 0 "$ASSAY" runs rm run
[ ! -e run ] || fail "the run is still there"
expect 0 "$ASSAY" runs rm sweep
[ ! -e sweep ] || { find sweep; fail "the sweep is still there"; }
