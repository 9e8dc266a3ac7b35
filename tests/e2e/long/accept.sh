#!/usr/bin/env bash
# A box is accepted by its own passport again and again; behind a limit on its disk or on its CPUs it is not, and the answer says
# which figure is worse. Under ./test.sh --long and by hand: ACCEPTS=20 repeats the first part twenty times. It runs alone.
source "$PROJECT/tests/e2e/lib.sh"

[ "$(id -u)" = 0 ] && [ -d /sys/fs/cgroup/blkio ] && [ -d /sys/fs/cgroup/cpu ] || skip "no control groups to limit a box with"
group=assay-test-$$
clean_up() {
    rmdir /sys/fs/cgroup/{blkio,cpu}/$group 2>/dev/null || true
}
trap clean_up EXIT
mkdir /sys/fs/cgroup/{blkio,cpu}/$group
in_groups() {
    # shellcheck disable=SC2016
    bash -c 'for of in blkio cpu; do echo $$ >"/sys/fs/cgroup/$of/$0/cgroup.procs"; done; exec "$@"' "$group" "$@"
}
source=$(df --output=source . | tail -n 1)
disk=$(lsblk -no PKNAME "$source" | grep . | head -n 1 || basename "$source")
device=$(lsblk -dno MAJ:MIN "/dev/$disk" | tr -d ' ')

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
    in_groups "$ASSAY" accept box.json . >out.txt 2>err.txt || code=$?
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
echo "$device 2000" >/sys/fs/cgroup/blkio/$group/blkio.throttle.read_iops_device
limited "2,000 reads/s" reads_per_s
has full.txt "I/O cap was"
echo "$device 0" >/sys/fs/cgroup/blkio/$group/blkio.throttle.read_iops_device
echo 100000 >/sys/fs/cgroup/cpu/$group/cpu.cfs_period_us
echo 50000 >/sys/fs/cgroup/cpu/$group/cpu.cfs_quota_us
limited "half a CPU" btree_lookups_per_s tuple_rows_per_s
