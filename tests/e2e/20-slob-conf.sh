#!/usr/bin/env bash
# The configuration file of the field: it runs as it says, and every parameter is printed.
source "$PROJECT/tests/e2e/lib.sh"

conf=$PROJECT/testdata/slob-r1.conf
expect 0 "$ASSAY" prepare --target native:data -c "$conf" -s 8 --set SCALE=2200 --set REDO_LOG_MB=8 --set UNDO_MB=16
[ -f data/control.assay ] || fail "no data set"
expect 0 "$ASSAY" run --target native:data -c "$conf" -s 8 --set SCALE=2200 --time 4s -o run1 --format full
cp out.txt report.txt

for name in UPDATE_PCT SCAN_PCT RUN_TIME WORK_LOOP SCALE WORK_UNIT REDO_STRESS HOT_SCHEMA_FREQUENCY HOTSPOT_MB \
    HOTSPOT_OFFSET_MB HOTSPOT_FREQUENCY THINK_TM_FREQUENCY THREADS_PER_SCHEMA SCAN_TABLE_SZ LOAD_PARALLEL_DEGREE \
    CACHE_MB READ_MODE INDEX COMMIT_MODE SEED; do
    grep -q "^ *$name  *[^ ]" report.txt || fail "the report does not print $name"
done
grep -q "WORK_UNIT  *256" report.txt || fail "WORK_UNIT is not the file's"

echo "- every second operation on schema 1, three in ten an update"
total=$(json run1/record.json interval.ops_count)
updates=$(json run1/record.json driver.ops.1.count)
hot=$(json run1/record.json driver.hot_schema_hits_count)
# Within six standard deviations of a share.
share() {
    awk -v found="$1" -v total="$total" -v p="$2" 'BEGIN { d = found - p * total; exit !(total > 100 && d * d <= 36 * p * (1 - p) * total) }'
}
share "$updates" 0.3 || fail "$updates updates of $total operations"
share "$hot" 0.5 || fail "$hot of $total operations on the hot schema"

echo "- secrets stay secret"
if grep -rlF Welcome1 run1 report.txt err.txt; then
    fail "a password was written"
fi

echo "- the banner of the original is a configuration too"
expect 0 "$ASSAY" config show -c "$PROJECT/testdata/slob-banner-2.5.4.txt"
grep -q "WORK_UNIT.*256" out.txt || fail "the banner was not read"
hasnt out.txt Welcome1

echo "- three mistakes, three messages"
printf 'UPDATE_PCT=abc\nWORK_UNIT=0\nNO_SUCH_THING=1\n' >bad.conf
expect 2 "$ASSAY" run --target native:data -c bad.conf
for line in 1 2 3; do
    has err.txt "bad.conf:$line"
done

echo "- nothing in a file is executed"
# shellcheck disable=SC2016
printf 'UPDATE_PCT=$(touch hacked)\nSCALE=`touch hacked`\ntouch hacked\n' >evil.conf
expect 2 "$ASSAY" run --target native:data -c evil.conf
[ ! -e hacked ] || fail "the configuration was executed"

expect 0 "$ASSAY" destroy --target native:data
[ ! -e data ] || fail "destroy left something"
