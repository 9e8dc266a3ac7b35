#!/usr/bin/env bash
# The main job on throw-away PostgreSQL servers; nothing is left of them, whoever is killed.
source "$PROJECT/tests/e2e/lib.sh"

[ -n "${POSTGRES_BINS:-}" ] || skip "no PostgreSQL programs (test.sh fetches them)"
export ASSAY_PG_BIN=$POSTGRES_BINS
unset TMPDIR
# Where the server's user can get to, whatever is above the source tree.
base=$(mktemp -d /var/tmp/assay-e2e.XXXXXX)
trap 'rm -rf --one-file-system "$base"' EXIT
chmod 755 "$base"
mkdir "$base/servers"
chmod 1777 "$base/servers"
export ASSAY_PG_DIR=$base/servers
small=(--set SCALE=1000 --set SCAN_TABLE_SZ=100 --pg-set shared_buffers=16MB)

# Neither a directory nor a process of a server of ours.
gone() {
    [ -z "$(ls -A "$ASSAY_PG_DIR")" ] && ! pgrep -f "$ASSAY_PG_DIR" >/dev/null
}

echo "- the plan says what would be started and touches nothing"
expect 0 "$ASSAY" run --target temp:postgres "${small[@]}" --dry-run
has out.txt "Throw-away server"
has out.txt "shared_buffers=16MB"
gone || fail "a dry run left something"

for version in ${ASSAY_REQUIRE_POSTGRES:-18}; do
    echo "- the main job on PostgreSQL $version"
    expect 0 "$ASSAY" run --target "temp:postgres:$version" "${small[@]}" -s 2 --time 2s -o "run$version"
    has "run$version/report.txt" "PostgreSQL $version"
    has err.txt "Time to stop and remove it"
    has "run$version/record.json" "server_directory"
    gone || fail "the server of a finished run is still there"
done

echo "- killed while it prepares and while it runs"
"$ASSAY" run --target temp:postgres --set SCALE=100000 -o killed1 >out.txt 2>err.txt &
pid=$!
wait_for 60 grep -q "has no data set yet" err.txt
kill -9 "$pid"
wait "$pid" 2>/dev/null || true
pid=""
wait_for 30 gone
"$ASSAY" run --target temp:postgres "${small[@]}" --time 60s -o killed2 >out.txt 2>err.txt &
pid=$!
wait_for 60 lines killed2/series.jsonl 2
kill -9 "$pid"
wait "$pid" 2>/dev/null || true
pid=""
wait_for 30 gone

echo "- two at once, one of them interrupted"
"$ASSAY" run --target temp:postgres "${small[@]}" --time 60s -o one >one.txt 2>err-one.txt &
pid=$!
expect 0 "$ASSAY" run --target temp:postgres "${small[@]}" --time 2s -o two
wait_for 60 lines one/series.jsonl 2
kill -INT "$pid"
code=0
wait "$pid" || code=$?
pid=""
[ "$code" = 130 ] || fail "exit $code instead of 130"
[ -f one/report.txt ] || fail "an interrupted run left no report"
gone || fail "an interrupted run left its server"

if [ "$(id -u)" = 0 ]; then
    echo "- as a user without rights"
    cp "$ASSAY" "$base/assay"
    install -d -o nobody "$base/nobody"
    expect 0 runuser -u nobody -- env HOME="$base/nobody" bash -c "cd '$base/nobody' && '$base/assay' run --target temp:postgres ${small[*]} --time 2s"
    has out.txt "slob on temp:postgres"
    gone || fail "the server of user nobody is still there"
fi

psql=$(command -v psql || true)
for bin in ${POSTGRES_BINS//:/ }; do
    [ -x "$psql" ] || psql=$bin/psql
done
if [ -x "$psql" ]; then
    echo "- a data set that somebody else breaks makes a run of order entry invalid"
    "$ASSAY" orders run --target temp:postgres --scale .001 --sessions 2 --time 6s --warmup 0 -o broken >broken.txt 2>err-broken.txt &
    pid=$!
    wait_for 60 grep -q "^running:" err-broken.txt
    for socket in "$ASSAY_PG_DIR"/*/data; do
        "$psql" -h "$socket" -U postgres -q postgres -c \
            "UPDATE assay_orders.orders SET order_total = order_total + 1 WHERE order_id = (SELECT min(order_id) FROM assay_orders.orders)"
    done
    code=0
    wait "$pid" || code=$?
    pid=""
    [ "$code" = 4 ] || fail "exit $code instead of 4"
    has broken.txt "The data set is not consistent: C2"
    has broken.txt "once the cause is gone"
    gone || fail "the server of an invalid run is still there"
fi
