#!/usr/bin/env bash
# A full disk below a MariaDB server: loading order entry ends with one clear error and is finished later, a run counts what failed.
source "$PROJECT/tests/e2e/lib.sh"

[ "$(id -u)" = 0 ] || skip "mounting needs root"
command -v mariadb >/dev/null || skip "no client of MariaDB is installed"

place=$(mktemp -d /var/tmp/assay-test.XXXXXX)
chmod 755 "$place"
# shellcheck disable=SC2329
clean_up() {
    exec 3>&- || true
    [ -z "${held:-}" ] || wait "$held" 2>/dev/null || true
    umount "$place/disk" 2>/dev/null || umount --lazy "$place/disk" 2>/dev/null || true
    rm -rf --one-file-system "$place"
}
trap clean_up EXIT

mkdir "$place/disk"
# In memory: on an ext4 that is full, the server cannot write to what it has reserved either, and gives up.
mount -t tmpfs -o size=480M,mode=755 tmpfs "$place/disk" 2>/dev/null || skip "no right to mount"
# Held as long as its standard input is open.
mkfifo held
"$ASSAY" temp-server --target temp:mariadb --set MYSQL_DIR="$place/disk" --set SCALE=1000 \
    --set 'MYSQL_SET=innodb_log_file_size=8M; innodb_flush_log_at_trx_commit=0' <held >said.json 2>err.txt &
held=$!
exec 3>held
until [ -s said.json ]; do
    kill -0 "$held" 2>/dev/null || { cat err.txt; grep -q "no programs of" err.txt && skip "no MariaDB server is installed"; fail "no server"; }
    sleep 0.1
done
target=$(json said.json server_url)
socket=$(json said.json server_directory)/data/server.sock
sql() {
    mariadb --no-defaults -uroot --socket="$socket" --batch --skip-column-names -e "$1"
}
orders=(--target "$target" --scale .002)
# A piece of the rows is loaded, and more are on their way.
loading='[ "$(sql "select count(*) from assay_orders.soe_load" 2>/dev/null || echo 0)" -gt 0 ]'

echo "- order entry: the disk fills up while it loads"
meets_end_of "$place/disk" "$loading" orders prepare "${orders[@]}"
told_full 3
grep "orders prepare. finishes the load" err.txt || { cat err.txt; fail "the remedy is missing"; }
rm "$place"/disk/ballast*

echo "- with space again, the next prepare finishes it"
expect 0 "$ASSAY" orders prepare "${orders[@]}"
expect 0 "$ASSAY" orders check --target "$target"

echo "- transactions that find no room"
# Room comes back before the run ends: it could not close its books without.
"$ASSAY" orders run --target "$target" --sessions 4 --time 12 --warmup 0 --seed 7 -o orders >out.txt 2>err.txt &
pid=$!
wait_for 60 lines orders/series.jsonl 2
fill "$place/disk"
# A server that cannot write a page of its own gives up: a little room is left to it, and none to tables that grow.
truncate -s -512K "$place/disk/ballast"
sleep 6
rm "$place"/disk/ballast*
reap
[ "$code" = 4 ] || { tail err.txt; fail "exit $code instead of 4"; }
[ "$(json orders/record.json run.verdict)" = invalid ] || fail "the run is not marked"
if ! sql "select 1" >out.txt 2>&1; then
    echo "- the server gave up, having no room for pages of its own"
    has err.txt "lost its connection"
    exit 0
fi
failed=$(json orders/record.json "driver.errors_count.disk full")
[ "$failed" -gt 0 ] || fail "no transaction failed on a full disk"
expect 0 "$ASSAY" orders check --target "$target"
expect 0 "$ASSAY" orders destroy --target "$target"
