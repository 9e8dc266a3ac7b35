# shellcheck shell=bash
# Shared by the end-to-end scripts. Each runs in an empty directory with
#   ASSAY    the program under test          XTASK    the project's chores (reads JSON for us)
#   PROJECT  the source tree
# and may be run by hand: ASSAY=... XTASK=... PROJECT=... bash $PROJECT/tests/e2e/cpus.sh.
set -euo pipefail
: "${ASSAY:?the assay program}" "${XTASK:?the xtask program}" "${PROJECT:?the source tree}"

# Small data sets: some MiB instead of some GiB, the same code.
# shellcheck disable=SC2034
SMALL=(--set SCALE=2000 --set REDO_LOG_MB=8 --set UNDO_MB=16)

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

skip() {
    echo "cannot run here: $*"
    exit 77
}

# expect CODE COMMAND...: runs it, keeps its output in out.txt and err.txt, checks how it ended.
expect() {
    local want=$1 code=0
    shift
    "$@" >out.txt 2>err.txt || code=$?
    if [ "$code" != "$want" ]; then
        echo "--- stdout"; tail -n 20 out.txt
        echo "--- stderr"; tail -n 20 err.txt
        fail "exit $code instead of $want: $*"
    fi
}

# has FILE TEXT: the file holds the text (fixed, any case).
has() {
    grep -qiF -- "$2" "$1" || { tail -n 20 "$1"; fail "no \"$2\" in $1"; }
}

hasnt() {
    ! grep -qiF -- "$2" "$1" || { grep -iF -- "$2" "$1"; fail "\"$2\" in $1"; }
}

# json FILE PATH: one value of a record.
json() {
    "$XTASK" get "$1" "$2"
}

# row FILE TABLE COLUMN=TEXT KEY: the number of this key in the row of a table that has this text in a column.
row() {
    json "$1" "$2" | tr '{' '\n' | grep "\"${3%%=*}\": *\"${3#*=}\"" | sed "s/.*\"$4\": *\([0-9.]*\).*/\1/"
}

# wait_for SECONDS COMMAND...: until it succeeds; not longer than the process $pid lives, where that is set.
wait_for() {
    local left=$(($1 * 10))
    shift
    until "$@" >/dev/null 2>&1; do
        left=$((left - 1))
        # A program that is gone will not do it any more.
        if [ -n "${pid:-}" ] && ! kill -0 "$pid" 2>/dev/null; then
            "$@" >/dev/null 2>&1 && return 0
            tail -n 5 err*.txt
            fail "it ended early, in vain waited: $*"
        fi
        [ "$left" -gt 0 ] || fail "waited in vain: $*"
        sleep 0.1
    done
}

# lines FILE N: the file exists and has at least N lines.
lines() {
    [ -f "$1" ] && [ "$(wc -l <"$1")" -ge "$2" ]
}

# postgres_programs: the directory of the last server programs there are; nothing where no server is installed.
postgres_programs() {
    local dir found="" known=${ASSAY_PG_BIN:-}
    for dir in ${known//:/ } /usr/lib/postgresql/*/bin; do
        [ -x "$dir/postgres" ] && [ -x "$dir/psql" ] && found=$dir
    done
    echo "$found"
}

# start_postgres BIN PLACE OPTION...: a server of its own below PLACE, reached by its socket in PLACE/pg; its process is $server.
start_postgres() {
    local bin=$1 place=$2 as=()
    shift 2
    mkdir "$place/pg"
    if [ "$(id -u)" = 0 ]; then
        chown postgres "$place/pg"
        as=(setpriv --pdeathsig QUIT --reuid=postgres --regid=postgres --init-groups --)
    fi
    (cd / && exec "${as[@]}" "$bin/initdb" --username=postgres --auth=trust --no-sync --locale=C --encoding=UTF8 \
        -D "$place/pg/data") >out.txt
    (cd / && exec "${as[@]}" "$bin/postgres" -D "$place/pg/data" -k "$place/pg" -c listen_addresses= -c autovacuum=off "$@" \
        >"$place/log" 2>&1) &
    server=$!
    psql=("$bin/psql" -XAtq -v ON_ERROR_STOP=1 -h "$place/pg" -U postgres -d postgres)
    pid=$server
    wait_for 60 sql -c "select 1"
}

# sql ARGUMENT...: psql on the server that start_postgres started.
sql() {
    "${psql[@]}" "$@"
}

# sessions_of_assay N: at least so many sessions of the program are on that server.
sessions_of_assay() {
    [ "$(sql -c "select count(*) from pg_stat_activity where application_name like 'assay%' and backend_type = 'client backend'")" -ge "$1" ]
}

# stop_postgres: for a script's end; does nothing where none was started.
stop_postgres() {
    [ -z "${server:-}" ] || { kill -QUIT "$server" 2>/dev/null; wait "$server" 2>/dev/null; } || true
}

# browser: $python drives a real browser; skips where one of its packages is missing.
browser() {
    # Debian's own interpreter has Debian's packages.
    python=/usr/bin/python3
    [ -x "$python" ] || skip "no /usr/bin/python3"
    command -v chromium >/dev/null || skip "no chromium (packages chromium, chromium-driver, python3-selenium)"
    command -v chromedriver >/dev/null || skip "no chromedriver (package chromium-driver)"
    "$python" -c 'import selenium' 2>/dev/null || skip "no selenium (package python3-selenium)"
}

# reap: waits for the process $pid; how it ended is $code.
reap() {
    code=0
    wait "$pid" || code=$?
    unset pid
}

# told_full CODE: what ended with $code ended with CODE and one clear error, which says that the disk is full.
told_full() {
    [ "$code" = "$1" ] || { tail err.txt; fail "exit $code on a full disk instead of $1"; }
    [ "$(grep -c '^error' err.txt)" = 1 ] || { cat err.txt; fail "not one clear error"; }
    grep -qiE "space|full" err.txt || { cat err.txt; fail "the message does not say that the disk is full"; }
}

# meets_end_of DISK BEGUN COMMAND...: the disk fills up in the middle of what the program does, once BEGUN holds; how it ended
# is $code.
meets_end_of() {
    local disk=$1 begun=$2
    shift 2
    "$ASSAY" "$@" >out.txt 2>err.txt &
    pid=$!
    # Held once it has begun, so that it meets the end of the disk in the middle of it.
    until eval "$begun"; do
        kill -0 "$pid" 2>/dev/null || { cat err.txt; fail "it ended before it began"; }
    done
    kill -STOP "$pid"
    fill "$disk"
    kill -CONT "$pid"
    reap
}

# fill DISK: until not even a small file fits, as fast as the disk is large: most of it is reserved rather than written.
fill() {
    local free
    free=$(df --output=avail --block-size=1M "$1" | tail -n 1)
    [ "$free" -lt 9 ] || fallocate --length "$((free - 8))M" "$1/ballast" || true
    dd if=/dev/zero of="$1/ballast2" bs=1M status=none 2>/dev/null || true
    dd if=/dev/zero of="$1/ballast3" bs=4K status=none 2>/dev/null || true
}

# block_group: makes a group of the block controller, $group, in which "${inside[@]}" COMMAND runs; false where there is no
# controller. leave_group removes it.
block_group() {
    local source name
    [ "$(id -u)" = 0 ] && [ -d /sys/fs/cgroup/blkio ] || return 1
    group=$(mktemp -d /sys/fs/cgroup/blkio/assay-test.XXXXXX) || return 1
    # shellcheck disable=SC2016,SC2034
    inside=(bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group")
    source=$(df --output=source . | tail -n 1)
    name=$(lsblk -no PKNAME "$source" 2>/dev/null | grep . | head -n 1 || basename "$source")
    device=$(lsblk -dno MAJ:MIN "/dev/$name" | tr -d ' ')
    limit_device read_iops 0 || { leave_group; return 1; }
}

# limit_device WHAT N: the group gets so many of it per second on the device below this directory, such as read_iops; 0: all.
limit_device() {
    echo "$device $2" >"$group/blkio.throttle.$1_device"
}

leave_group() {
    [ -z "${group:-}" ] || rmdir "$group" 2>/dev/null || true
    group=""
}
