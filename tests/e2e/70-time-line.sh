#!/usr/bin/env bash
# CPUs taken away and given back under load: noticed, marked, and still there after a kill.
source "$PROJECT/tests/e2e/lib.sh"

group=
leave() {
    [ -z "$group" ] || rmdir "$group" 2>/dev/null || true
}
trap leave EXIT

expect 0 "$ASSAY" prepare --target native:data -s 2 "${SMALL[@]}"
load=("$ASSAY" run --target native:data -s 2 -t 2 "${SMALL[@]}" --set CACHE_MB=8 --warmup 0)

# --- affinity, from outside --------------------------------------------------------------------------------------------
cpus=$(taskset -pc $$ | sed 's/.*: //')
first=$(echo "$cpus" | grep -oE '^[0-9]+')
if [ "$cpus" = "$first" ]; then
    echo "- one CPU only: its affinity cannot be narrowed"
else
    "${load[@]}" --time 4 -o affinity --at 1s 'echo from inside' >out-affinity.txt 2>err-affinity.txt &
    pid=$!
    wait_for 60 lines affinity/series.jsonl 4
    taskset -apc "$first" "$pid" >/dev/null
    sleep 1
    taskset -apc "$cpus" "$pid" >/dev/null
    wait "$pid" || fail "exit $? of the run"
    pid=
    # The kernel may write a list of CPUs otherwise than it was given: the narrow one is one number.
    grep -qE "CPU affinity of the driver threads: .* -> $first\$" affinity/report.txt || fail "no change to CPU $first in the report"
    grep -qE "CPU affinity of the driver threads: $first -> " affinity/report.txt || fail "no change back in the report"
    [ "$(cat affinity/at-1.out)" = "from inside" ] || fail "the command's output is not kept"
    has affinity/series.jsonl '"kind":"affinity"'
    echo "- affinity: narrowed to CPU $first and widened again, both marked"
fi

# --- quota of the control group ----------------------------------------------------------------------------------------
if [ "$(id -u)" = 0 ] && grep -q '^[0-9]*:[^:]*\bcpu\b' /proc/self/cgroup && [ -w /sys/fs/cgroup/cpu/cgroup.procs ]; then
    version=1
    group=/sys/fs/cgroup/cpu/assay-e2e-$$
elif [ "$(id -u)" = 0 ] && grep -qw cpu /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null; then
    version=2
    group=/sys/fs/cgroup/assay-e2e-$$
else
    echo "- skipped: no control group with the cpu controller can be made here"
fi
quota() { # microseconds of every 100 ms, or "none"
    if [ "$version" = 1 ]; then
        echo "${1/none/-1}" >"$group/cpu.cfs_quota_us"
    else
        echo "${1/none/max} 100000" >"$group/cpu.max"
    fi
}
if [ -n "$group" ] && mkdir "$group" 2>/dev/null; then
    "${load[@]}" --time 4 -o quota >out-quota.txt 2>err-quota.txt &
    pid=$!
    echo "$pid" >"$group/cgroup.procs"
    wait_for 60 lines quota/series.jsonl 4
    quota 80000
    sleep 1
    quota none
    wait "$pid" || fail "exit $? of the run under a quota"
    pid=
    grep -qE "CPU quota of the control group: no limit -> 0\.800 CPUs" quota/report.txt || fail "the quota is not marked"
    grep -qE "CPU quota of the control group: 0\.800 CPUs .* -> no limit" quota/report.txt || fail "its end is not marked"
    echo "- quota (control groups of version $version): set and lifted, both marked"
elif [ -n "$group" ]; then
    group=
    echo "- skipped: the control group cannot be made"
fi

# --- a killed run keeps its history ------------------------------------------------------------------------------------
"${load[@]}" --time 10m -o killed --at 0.2s 'echo before the kill' >out-killed.txt 2>err-killed.txt &
pid=$!
wait_for 60 grep -q '"mark":"second"' killed/series.jsonl
wait_for 60 grep -q '"status":"exit 0"' killed/series.jsonl
kill -KILL "$pid"
wait "$pid" 2>/dev/null || true
pid=
expect 0 "$ASSAY" runs recover killed
has killed/report.txt "command: echo before the kill; exit 0"
has killed/report.txt "Sessions inside a call, sampled every"
[ "$(json killed/record.json instance.ash.max_active_count)" = 4 ] || fail "four sessions were active"
echo "- killed: history and events recovered"
expect 0 "$ASSAY" destroy --target native:data
