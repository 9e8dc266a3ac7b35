#!/usr/bin/env bash
# A full disk below a tablespace: a load ends with one clear error and can be done again, a run counts what failed.
source "$PROJECT/tests/e2e/lib.sh"

[ "$(id -u)" = 0 ] || skip "mounting needs root"
bin=$(postgres_programs)
[ -n "$bin" ] || skip "no PostgreSQL server is installed"

place=$(mktemp -d /tmp/assay-test.XXXXXX)
chmod 755 "$place"
# shellcheck disable=SC2329
clean_up() {
    stop_postgres
    umount "$place/disk" 2>/dev/null || umount --lazy "$place/disk" 2>/dev/null || true
    rm -rf --one-file-system "$place"
}
trap clean_up EXIT

mkdir "$place/disk"
truncate -s 160M "$place/image"
mkfs.ext4 -q -m 0 "$place/image" 2>/dev/null && mount -o loop "$place/image" "$place/disk" 2>/dev/null \
    || mount -t tmpfs -o size=150M tmpfs "$place/disk" 2>/dev/null || skip "no right to mount"
mkdir "$place/disk/space"
chown postgres "$place/disk/space"

start_postgres "$bin" "$place" -c fsync=off
sql -c "create tablespace small location '$place/disk/space'"
target="postgres://postgres@/postgres?host=$place/pg"
small=(--target "$target" --set TABLESPACE=small --set SCALE=2000)

# fills_up TABLE COMMAND...: a load meets the end of the disk once a table like this is there.
fills_up() {
    local like=$1
    shift
    meets_end_of "$place/disk" "[ \"\$(sql -c \"select count(*) from pg_class where relname like '$like'\")\" -gt 0 ]" "$@"
    told_full 3
}

echo "- too little space is refused before a row is written"
expect 3 "$ASSAY" prepare --target "$target" --set TABLESPACE=small --set SCALE=1G -s 4
grep -qiE "free|space" err.txt || { cat err.txt; fail "the message does not speak of space"; }
[ "$(sql -c "select count(*) from pg_namespace where nspname = 'assay'")" = 0 ] || fail "something was made all the same"

echo "- the disk fills up while it loads"
fills_up "cf1%" prepare "${small[@]}" -s 7
grep error err.txt
rm "$place"/disk/ballast*

echo "- with space again, the next prepare does it"
expect 0 "$ASSAY" prepare "${small[@]}" -s 4
expect 0 "$ASSAY" check "${small[@]}"

echo "- a run whose updates find no room"
# A snapshot that is held: no old version may be taken away, so that pages fill up and the tables must grow.
sql -c "begin isolation level repeatable read; select count(*) from assay.cf1_1; select pg_sleep(60)" >/dev/null 2>&1 &
holder=$!
fill "$place/disk"
expect 4 "$ASSAY" run "${small[@]}" -s 4 --set UPDATE_PCT=100 --time 6 --warmup 0 -o run
# A server does not notice by itself that a client has gone while it works for it.
sql -c "select pg_terminate_backend(pid) from pg_stat_activity where query ~ 'pg_sleep' and pid <> pg_backend_pid()" >/dev/null
wait "$holder" 2>/dev/null || true
failed=$(json run/record.json "driver.errors_count.disk full")
[ "$failed" -gt 0 ] || fail "no operation failed on a full disk"
[ "$(json run/record.json run.verdict)" = invalid ] || fail "the run is not marked"
has run/report.txt "disk full"
[ "$(sql -c "select count(*) from pg_stat_activity where application_name like 'assay%'")" = 0 ] || fail "sessions stayed"
rm "$place"/disk/ballast*
expect 0 "$ASSAY" destroy "${small[@]}"

echo "- order entry: the disk fills up while it loads"
# Its tables go where the database's go.
sql -c "alter database postgres set default_tablespace = small"
orders=(--target "$target" --scale .002)
fills_up order_items orders prepare "${orders[@]}"
grep "orders prepare. finishes the load" err.txt || { cat err.txt; fail "the remedy is missing"; }
rm "$place"/disk/ballast*

echo "- with space again, the next prepare finishes it"
expect 0 "$ASSAY" orders prepare "${orders[@]}"
expect 0 "$ASSAY" orders check --target "$target"

echo "- transactions that find no room"
fill "$place/disk"
expect 4 "$ASSAY" orders run --target "$target" --sessions 4 --time 6 --warmup 0 --seed 7 -o orders
failed=$(json orders/record.json "driver.errors_count.disk full")
[ "$failed" -gt 0 ] || fail "no transaction failed on a full disk"
[ "$(json orders/record.json run.verdict)" = invalid ] || fail "the run is not marked"
rm "$place"/disk/ballast*
expect 0 "$ASSAY" orders check --target "$target"
expect 0 "$ASSAY" orders destroy --target "$target"
