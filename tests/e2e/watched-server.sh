#!/usr/bin/env bash
# A server that others work on is watched: what it counts is the load that a database needs, as the run of those others says.
source "$(dirname "$0")/lib.sh"
trap stop_postgres EXIT
chmod 755 .

bin=$(postgres_programs)
[ -n "$bin" ] || skip "PostgreSQL (package postgresql)"
start_postgres "$bin" "$PWD" -c shared_buffers=16MB -c track_io_timing=on
sql -c "create database db"
url="postgres://postgres@/db?host=$PWD/pg"

# Nobody works: no load follows from that, and nothing is refused later than it can be.
expect 2 "$ASSAY" fit "$url" --interval 1s --plan-only
has err.txt "10s to 24h"
expect 2 "$ASSAY" fit "$PROJECT/testdata/awr/awr-19c.txt" --interval 60s --plan-only
has err.txt "an interval of its own"
expect 2 "$ASSAY" fit temp:postgres --plan-only
has err.txt "temporary server"
expect 2 "$ASSAY" fit native:there --plan-only
has err.txt "cannot be watched"
expect 3 "$ASSAY" fit "postgres://postgres@/nowhere?host=$PWD/pg" --plan-only
expect 2 "$ASSAY" fit "$url" --interval 10s --plan-only
has err.txt "idle"

expect 0 "$ASSAY" prepare --target "$url" --set SCALE=5000 --schemas 2
plan="$PROJECT/testdata/frozen/native-reads/record.json"
expect 2 "$ASSAY" fit "$plan" --target "$url"
has err.txt "has a data set already"
sql -c "create database empty"
expect 2 "$ASSAY" fit "$plan" --target "postgres://postgres@/empty?host=$PWD/pg" --size 10M
has err.txt "holds all of it"
"$ASSAY" run --target "$url" --set SCALE=5000 --set SESSIONS=4 --set RUN_TIME=20 --set RATE=300 --set WORK_UNIT=8 --set UPDATE_PCT=30 \
    -o run >out-run.txt 2>err-run.txt &
pid=$!
wait_for 60 sessions_of_assay 5
"$ASSAY" fit "$url" --interval 10s --plan-only -o fit >out.txt 2>err.txt || { cat err.txt; fail "a watched server gives no load"; }
has out.txt "watched from"
reap
[ "$code" = 0 ] || { cat err-run.txt; fail "the run ended with $code"; }

# The transactions that wrote while it was watched are some of the run's, and no others.
commits=$(row fit/record.json parts.fit.load figure=commits_per_s derived_value)
all=$(json run/record.json instance.stats.user_commits_count.whole_run_total)
awk -v commits="$commits" -v all="$all" 'BEGIN { exit !(commits > 0 && commits * 10 <= all + 20) }' ||
    fail "$commits commits/s for 10 s of $all in all"
echo "- what a server counts while others work on it is a load: $commits commits/s"
