#!/usr/bin/env bash
# A database's load is measured on PostgreSQL while it works, carried to a box that holds it, and to one that does not. It runs alone.
source "$PROJECT/tests/e2e/lib.sh"

bin=$(postgres_programs)
[ -n "$bin" ] || skip "PostgreSQL (package postgresql)"
block_group || skip "no block controller"
clean_up() {
    leave_group
    stop_postgres
}
trap clean_up EXIT
chmod 755 .
start_postgres "$bin" "$PWD" -c shared_buffers=16MB -c track_io_timing=on
sql -c "create database orders"
url="postgres://postgres@/orders?host=$PWD/pg"
expect 0 "$ASSAY" prepare --target "$url" --set SCALE=10000 --schemas 4
"$ASSAY" run --target "$url" --set SCALE=10000 --set SESSIONS=4 --set RUN_TIME=60 --set RATE=200 --set WORK_UNIT=16 --set UPDATE_PCT=20 \
    --set UPDATE_WORK_UNIT=8 -o run >out-run.txt 2>err-run.txt &
pid=$!
wait_for 60 sessions_of_assay 5
sleep 5
expect 0 "$ASSAY" fit "$url" --interval 30s --plan-only -o there
reap
[ "$code" = 0 ] || { cat err-run.txt; fail "the run ended with $code"; }
head -n 1 out.txt

echo "- offered to a server"
sql -c "create database target"
code=0
"$ASSAY" fit there --target "postgres://postgres@/target?host=$PWD/pg" --size 300M --time 5s --anyway -o server >server.txt 2>err.txt || code=$?
case $code in 0 | 5) ;; *) cat err.txt; fail "exit $code" ;; esac
head -n 1 server.txt
has server/report.txt "F8"
left=$("${psql[@]}" -d target -c "select count(*) from pg_class where relnamespace = (select oid from pg_namespace where nspname = 'assay')")
[ "$left" = 0 ] || fail "$left relations are left on the server"
stop_postgres
server=""

echo "- a box that holds it"
code=0
"$ASSAY" fit there . --time 10s --size 1G --anyway -o holds >holds.txt 2>err.txt || code=$?
head -n 1 holds.txt
case $code in
    0)
        # Offered again, the load is that of the server within a tenth.
        for figure in reads_per_s writes_per_s commits_per_s; do
            ratio=$(row holds/record.json parts.fit.sides "side=$figure" ratio)
            echo "  $figure: $ratio of the server's"
            awk -v ratio="$ratio" 'BEGIN { exit !(0.9 <= ratio && ratio <= 1.1) }' || fail "$figure: $ratio of the server's"
        done
        ;;
    # Others took the host meanwhile, which the page says.
    5) has holds/report.txt "F6" ;;
    *) cat err.txt; fail "exit $code" ;;
esac
echo "- a box that does not"
half=$(row holds/record.json parts.fit.sides side=reads_per_s offered_value | awk '{ print int($1 / 2) }')
limit_device read_iops "$half"
expect 5 "${inside[@]}" "$ASSAY" fit there . --time 10s --size 1G --anyway -o holds-not
head -n 1 out.txt
has out.txt "does not hold"
has out.txt "a limit set on the device"
