#!/usr/bin/env bash
# A box is accepted by its own passport again and again; behind a limit on its disk or on its CPUs it is not, and the answer says
# which figure is worse. Under ./test.sh --long and by hand: ACCEPTS=20 repeats the first part twenty times. It runs alone.
source "$PROJECT/tests/e2e/lib.sh"

[ -d /sys/fs/cgroup/cpu ] && block_group || skip "no control groups to limit a box with"
cpu=/sys/fs/cgroup/cpu/${group##*/}
clean_up() {
    leave_group
    rmdir "$cpu" 2>/dev/null || true
}
trap clean_up EXIT
mkdir "$cpu"
# shellcheck disable=SC2016
inside+=(bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$cpu")

expect 0 "$ASSAY" passport . --time 40s --size 256M --anyway --file box.json
echo "- the same box"
for at in $(seq "${ACCEPTS:-3}"); do
    code=0
    "$ASSAY" accept box.json . >out.txt 2>err.txt || code=$?
    echo "  $at: exit $code, $(head -n 1 out.txt)"
    # Beside others it may not be able to tell; it never accuses the box.
    case $code in 0 | 4) ;; *) cat out.txt err.txt; fail "the same box ended with $code" ;; esac
done

# limited NAME FIGURE...: the box in its group is not accepted, and the answer names one of the figures as worse, or on a busy host
# as not to be told.
limited() {
    local name=$1 code=0 figure
    shift
    "${inside[@]}" "$ASSAY" accept box.json . >out.txt 2>err.txt || code=$?
    echo "  $name: exit $code, $(head -n 1 out.txt)"
    case $code in 4 | 5) ;; *) cat out.txt err.txt; fail "$name: exit $code" ;; esac
    "$ASSAY" report last --format full >full.txt
    for figure in "$@"; do
        ! grep -qE "^$figure .*(worse|cannot tell)" full.txt || return 0
    done
    cat full.txt
    fail "$name: none of $* is worse"
}
echo "- the same box behind a limit"
limit_device read_iops 2000
limited "2,000 reads/s" reads_per_s
has full.txt "I/O cap was"
limit_device read_iops 0
echo 100000 >"$cpu"/cpu.cfs_period_us
echo 50000 >"$cpu"/cpu.cfs_quota_us
limited "half a CPU" cpu_given_pct
