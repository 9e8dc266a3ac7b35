#!/usr/bin/env bash
# The CPU probe: a quota of a fifth of a CPU cuts what is had and leaves what a CPU second is worth, and the report names the throttling.
source "$PROJECT/tests/e2e/lib.sh"

# Rate per CPU second of the load: the last word of its metrics row.
worth() {
    awk '/^assay: metrc: .* cpu /{print $NF}' "$1"
}

echo "- the words of stress-ng load the CPUs"
expect 0 "$ASSAY" cpu --cpu 1 --timeout 3s --metrics-brief --verbose -o whole
whole=$(worth out.txt)
[ "$(json whole/record.json parts.cpu.verification_errors_count)" = 0 ] || fail "something was computed wrongly"

echo "- nothing is left of one that is interrupted"
"$ASSAY" cpu --soak 4 --time 10m -o stopped >out-stopped.txt 2>err-stopped.txt &
pid=$!
sleep 2
kill -INT "$pid"
code=0
wait "$pid" || code=$?
unset pid
[ "$code" = 130 ] || fail "exit $code of an interrupted load"
has out-stopped.txt "assay: metrc:"

[ "$(id -u)" = 0 ] || skip "a control group needs root"
if [ -w /sys/fs/cgroup/cpu/cgroup.procs ]; then
    group=/sys/fs/cgroup/cpu/assay-e2e-$$
    fifth() { echo 20000 >"$group/cpu.cfs_quota_us"; }
elif grep -qw cpu /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null; then
    group=/sys/fs/cgroup/assay-e2e-$$
    fifth() { echo "20000 100000" >"$group/cpu.max"; }
else
    skip "no control group with the cpu controller can be made here"
fi
mkdir "$group" 2>/dev/null || skip "the control group cannot be made"
trap 'rmdir "$group" 2>/dev/null || true' EXIT
fifth

echo "- a fifth of a CPU by quota"
# shellcheck disable=SC2016
expect 0 sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$group" "$ASSAY" cpu --soak 1 --time 4s -o fifth
has fifth/report.txt "throttling"
grep -qE "CPUs that can be used at the same time +0\.20" fifth/report.txt || fail "the quota is not told"
busy=$(json fifth/record.json parts.cpu.soak.cpus_busy)
awk -v busy="$busy" 'BEGIN { exit !(busy > 0.05 && busy < 0.25) }' || fail "$busy CPUs busy under a quota of a fifth of one"
fifth=$(worth out.txt)
# A neighbour on the other hyperthread moves what a CPU second is worth by a third; a quota that was taken for CPU time, to a fifth.
awk -v a="$whole" -v b="$fifth" 'BEGIN { exit !(b > 0.5 * a && b < 2 * a) }' || fail "a CPU second is worth $fifth under the quota, $whole without"
echo "  ops per CPU second: $whole without, $fifth with the quota; $busy CPUs busy"
