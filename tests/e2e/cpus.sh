#!/usr/bin/env bash
# CPUs taken away and given back under load are noticed and marked; a quota cuts what is had and not what a CPU second is worth.
source "$PROJECT/tests/e2e/lib.sh"

expect 0 "$ASSAY" prepare --target native:data -s 2 "${SMALL[@]}"
load=("$ASSAY" run --target native:data -s 2 -t 2 "${SMALL[@]}" --set CACHE_MB=8 --warmup 0 --time 4)

cpus=$(taskset -pc $$ | sed 's/.*: //')
first=$(echo "$cpus" | grep -oE '^[0-9]+')
if [ "$cpus" = "$first" ]; then
    echo "- one CPU only: its affinity cannot be narrowed"
else
    echo "- affinity: narrowed to CPU $first and widened again under load"
    "${load[@]}" -o affinity >out-affinity.txt 2>err-affinity.txt &
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
    has affinity/series.jsonl '"kind":"affinity"'
fi

[ "$(id -u)" = 0 ] || skip "a control group needs root"
if grep -q '^[0-9]*:[^:]*\bcpu\b' /proc/self/cgroup && [ -w /sys/fs/cgroup/cpu/cgroup.procs ]; then
    group=/sys/fs/cgroup/cpu/assay-e2e-$$
    quota() { echo "${1/none/-1}" >"$group/cpu.cfs_quota_us"; } # microseconds of every 100 ms, or "none"
elif grep -qw cpu /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null; then
    group=/sys/fs/cgroup/assay-e2e-$$
    quota() { echo "${1/none/max} 100000" >"$group/cpu.max"; }
else
    skip "no control group with the cpu controller can be made here"
fi
mkdir "$group" 2>/dev/null || skip "the control group cannot be made"
trap 'rmdir "$group" 2>/dev/null || true' EXIT

echo "- a quota: set and lifted under load"
"${load[@]}" -o quota >out-quota.txt 2>err-quota.txt &
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

echo "- a fifth of a CPU for the CPU probe"
# Rate per CPU second of the load: the last word of its metrics row.
worth() {
    awk '/^assay: metrc: .* cpu /{print $NF}' "$1"
}
expect 0 "$ASSAY" cpu --soak 1 --time 3s -o whole
whole=$(worth out.txt)
quota 20000
# shellcheck disable=SC2016
expect 0 sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$group" "$ASSAY" cpu --soak 1 --time 4s -o fifth
# Beside others it may never use its fifth up, and is not throttled then.
[ "$(awk '/^nr_throttled/ { print $2 }' "$group/cpu.stat")" = 0 ] || has fifth/report.txt "throttling"
grep -qE "CPUs that can be used at the same time +0\.20" fifth/report.txt || fail "the quota is not told"
busy=$(json fifth/record.json parts.cpu.soak.cpus_busy)
awk -v busy="$busy" 'BEGIN { exit !(busy > 0 && busy < 0.25) }' || fail "$busy CPUs busy under a quota of a fifth of one"
fifth=$(worth out.txt)
# A neighbour on the other hyperthread moves what a CPU second is worth by a third; a quota that was taken for CPU time, to a fifth.
awk -v a="$whole" -v b="$fifth" 'BEGIN { exit !(b > 0.5 * a && b < 2 * a) }' || fail "a CPU second is worth $fifth under the quota, $whole without"
echo "  ops per CPU second: $whole without, $fifth with the quota; $busy CPUs busy"
expect 0 "$ASSAY" destroy --target native:data
