#!/usr/bin/env bash
# The whole of `assay platform --quick` behind a limit of the block controller: interrupted twice and resumed without a test lost,
# and its findings name the cap. Under ./test.sh --long and by hand, some five minutes. It runs alone.
source "$PROJECT/tests/e2e/lib.sh"

block_group || skip "no block controller to limit a box with"
clean_up() {
    [ -z "${pid:-}" ] || { kill -INT "$pid" && wait "$pid"; } 2>/dev/null || true
    leave_group
}
trap clean_up EXIT
limit_device read_iops 2000
run() {
    "${inside[@]}" "$ASSAY" platform --quick --anyway --size 256M -o box "$@" \
        >out.txt 2>err.txt &
    pid=$!
}
tests_done() {
    [ -f box/record.json ] && [ "$(find box -mindepth 2 -name record.json | wc -l)" -ge "$1" ]
}

echo "- interrupted twice"
for done in 1 3; do
    run
    wait_for 240 tests_done "$done"
    kill -INT "$pid"
    reap
    [ "$code" = 130 ] || { cat err.txt; fail "an interrupted platform ended with $code"; }
    has err.txt "goes on with the tests that are left"
    echo "  after $(find box -mindepth 2 -name record.json | wc -l) tests"
done
find box -mindepth 2 -name record.json -exec sha256sum {} + >before.txt

echo "- resumed"
run
reap
[ "$code" = 0 ] || { tail out.txt err.txt; fail "the resumed platform ended with $code"; }
has err.txt "kept from before"
# What was finished was not measured again.
sha256sum --quiet -c before.txt
[ "$(json box/record.json run.verdict | tr -d '"')" = complete ] || fail "it is not complete"
head -n 12 out.txt
"$ASSAY" report box --format full >full.txt
grep -E "cap of|limit set on the device|at the limit of" full.txt | head -n 4 | cut -c 1-150
has full.txt "read_iops=2000"
grep -qE "(caps|reads) .*(cap of|limit of) (1,9|2,0)" full.txt || { cat full.txt; fail "no finding names the cap of 2,000 reads/s"; }
"$ASSAY" report box --format html -o page.html 2>err.txt
has page.html "read_iops=2000"
