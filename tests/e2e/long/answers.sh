#!/usr/bin/env bash
# Thirteen set-ups made on purpose, under ./test.sh --long and by hand: the answer of each names its cause. It runs alone. Where
# the host's CPUs were busy all the same, the answer must say that first, and only then is another cause excused.
source "$PROJECT/tests/e2e/lib.sh"

bin=$(postgres_programs)
cpus=$(nproc)
others=() place=""
clean_up() {
    [ "${#others[@]}" = 0 ] || kill "${others[@]}" 2>/dev/null || true
    stop_postgres
    leave_group
    [ -z "$place" ] || rm -rf --one-file-system "$place"
}
trap clean_up EXIT

excused=0
# named NAME TEXT...: the answer in out.txt names one of the texts as the limit, or the host's busy CPUs.
named() {
    local name=$1 limit text
    shift
    # One line without the columns of a screen.
    limit=$(tr -s '\n ' '  ' <out.txt | grep -oP '(?<=Limited by ).*?(?= (Finding|Steadiness|Trust) )')
    for text in "$@"; do
        case $limit in *"$text"*) echo "  $name: ${limit:0:110}"; return ;; esac
    done
    case $limit in
        "the host's CPUs"*)
            excused=$((excused + 1))
            echo "  $name: the host was busy: ${limit:0:110}"
            ;;
        *) cat out.txt; fail "$name: the limit named is \"$limit\", not \"$*\"" ;;
    esac
}

data=(--target native:data --set SCALE=8000 --set REDO_LOG_MB=8 --set UNDO_MB=16)
expect 0 "$ASSAY" prepare "${data[@]}" -s 2
# measured EXIT OPTION...: a run of four seconds on the data.
measured() {
    local code=$1
    shift
    expect "$code" "$ASSAY" run "${data[@]}" --time 4s --warmup 1s "$@"
}

echo "- native: whose CPUs, whose time"
for _ in $(seq "$cpus"); do
    (while :; do :; done) &
    others+=($!)
done
measured 0 -s 2 -t 4 --set UPDATE_PCT=0 --set CACHE_MB=4
kill "${others[@]}"
wait "${others[@]}" 2>/dev/null || true
others=()
# Nothing excuses this one.
has out.txt "the host's CPUs"
named "others burn the CPUs" "which other processes kept busy" "which this test shared"

measured 0 -s 1 -t 1 --set UPDATE_PCT=0 --set CACHE_MB=4
named "one session" "add sessions to raise throughput"
measured 0 -s 2 -t 4 --set UPDATE_PCT=0 --set CACHE_MB=2
named "a small cache" "The cache holds"

echo "- native: the log, a hot block"
measured 0 -s 2 -t 4 --set UPDATE_PCT=100 --set WORK_UNIT=16 --set CACHE_MB=256
named "a tiny log" "the redo log"
hot=(--target native:hot --set SCALE=8000 --set REDO_LOG_MB=256 --set UNDO_MB=64)
expect 0 "$ASSAY" prepare "${hot[@]}" -s 1
expect 0 "$ASSAY" run "${hot[@]}" --time 4s --warmup 1s -s 1 -t 32 --set UPDATE_PCT=20 --set DO_HOTSPOT=TRUE --set HOTSPOT_MB=1 \
    --set HOTSPOT_PCT=100 --set CACHE_MB=256
named "a hot block" "other sessions"

echo "- native: the load asked for"
measured 0 -s 2 -t 2 --set THINK_TM_FREQUENCY=1 --set THINK_TM_MIN=.05 --set THINK_TM_MAX=.1
named "think time" "the think time asked for"
measured 0 -s 2 -t 2 --set RATE=50
named "a rate that is kept" "the requested rate"
measured 4 -s 2 -t 2 --set RATE=1000000 --set UPDATE_PCT=0 --set CACHE_MB=4
has out.txt "RATE"
hasnt out.txt "the requested rate"
echo "  a rate that is missed: exit 4"

echo "- native: a limit set on the device"
if block_group; then
    limit_device read_iops 1000
    expect 0 "${inside[@]}" "$ASSAY" run "${data[@]}" --time 4s --warmup 1s -s 2 -t 4 --set UPDATE_PCT=0 --set CACHE_MB=4
    named "a throttled device" "a limit set on the device"
    # A scan uses up the bytes that the group may read: point reads stand behind it.
    limit_device read_iops 0
    limit_device read_bps 100000000
    expect 0 "${inside[@]}" "$ASSAY" interference . --time 60s --size 64M
    tr -s '\n ' '  ' <out.txt | grep -qE "Point reads .* beside the scan.* Checkpoint " || { cat out.txt; fail "the scan slows no point reads"; }
    named "a shared cap" "the limit of a control group"
    leave_group
else
    echo "  no block controller to throttle the device with: not tried"
fi

echo "- PostgreSQL"
[ -n "$bin" ] || skip "no PostgreSQL server is installed: ten of thirteen were tried"
place=$(mktemp -d /tmp/assay-test.XXXXXX)
chmod 755 "$place"
start_postgres "$bin" "$place" -c shared_buffers=16MB -c track_io_timing=on
pid=""
data=(--target "postgres://postgres@/postgres?host=$place/pg" --set SCALE=8000)
expect 0 "$ASSAY" prepare "${data[@]}" -s 2

measured 0 -s 1 -t 1 --set UPDATE_PCT=0
named "the page cache is warm" "from memory" "each can use one CPU"
measured 0 -s 2 -t 2 --set UPDATE_PCT=100 --set WORK_UNIT=1
named "every commit is durable" "the redo log"
sql -c "alter system set synchronous_commit = off" -c "select pg_reload_conf()" >/dev/null
measured 0 -s 2 -t 2 --set UPDATE_PCT=100 --set WORK_UNIT=1
limit=$(grep -A1 "^Limited by" out.txt)
case $limit in *"commits wait"*) fail "commits do not wait, and the answer says so: $limit" ;; esac
named "commits that do not wait" "CPU" "reads" "nothing" "network" "other sessions"
sql -c "alter system reset synchronous_commit" -c "select pg_reload_conf()" >/dev/null
# The first updates find the table locked for most of the run.
(sleep 1 && sql -c "begin; lock table assay.cf1_1 in exclusive mode; select pg_sleep(4); commit" >/dev/null) &
measured 0 -s 1 -t 4 --set UPDATE_PCT=100 --set WORK_UNIT=4
wait $!
named "a lock is held" "other sessions"

echo "- $excused of them found a busy host"
