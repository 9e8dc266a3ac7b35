#!/usr/bin/env bash
# Sessions cost no threads and little memory: 256 schemas, and 1000 sessions.
source "$PROJECT/tests/e2e/lib.sh"

cache_mb=64
slack_kb=$(((cache_mb + 128) * 1024))

# measure NAME ARGUMENTS...: runs for some seconds; sets threads and peak_kb of the process while it worked.
measure() {
    local name=$1 code=0 now
    shift
    "$ASSAY" run "$@" --set CACHE_MB=$cache_mb --set UPDATE_PCT=10 --time 6 --warmup 0 -o "run-$name" \
        >"out-$name.txt" 2>"err-$name.txt" &
    pid=$!
    wait_for 60 lines "run-$name/series.jsonl" 4
    # The fewest of some looks: a helper that starts the run may still be ending.
    threads=9999
    for _ in 1 2 3; do
        # The kernel lists its own io_uring workers (iou-wrk-...) among the tasks; it starts and ends them as it likes.
        now=$(cat "/proc/$pid"/task/*/comm 2>/dev/null | grep -cv '^iou-' || true)
        [ "$now" -ge "$threads" ] || threads=$now
        sleep 0.3
    done
    peak_kb=$(awk '/^VmHWM:/ { print $2 }' "/proc/$pid/status")
    wait "$pid" || code=$?
    [ "$code" = 0 ] || { tail "err-$name.txt"; fail "exit $code of $name"; }
    echo "- $name: $threads threads, peak resident $((peak_kb / 1024)) MiB of $((slack_kb / 1024)) MiB"
    [ "$peak_kb" -le "$slack_kb" ] || fail "more than the cache and 128 MiB"
}

# The undo file keeps its usual size: each session has an extent of its own in it.
small=(--set REDO_LOG_MB=8)
expect 0 "$ASSAY" prepare --target native:eight -s 8 --set SCALE=2000 "${small[@]}"
measure four-sessions --target native:eight --set SCALE=2000 -s 4 -t 1
base=$threads
measure thousand-sessions --target native:eight --set SCALE=2000 -s 8 -t 125
[ "$threads" -le "$base" ] || fail "$threads threads, $base with four sessions"
grep -qE "\b1,?000\b" out-thousand-sessions.txt || fail "the report does not speak of 1000 sessions"
expect 0 "$ASSAY" check --target native:eight --set SCALE=2000
expect 0 "$ASSAY" destroy --target native:eight

# 64 MiB each, 18 GB in all; where the disk is too small for that, the smallest there are, 2 GB in all.
scale=64M
free_kb=$(df --output=avail -k . | tail -n 1)
if [ "$free_kb" -lt $((32 * 1024 * 1024)) ]; then
    echo "- less than 32 GiB free: schemas of 8 MiB instead of 64 MiB"
    scale=1000
fi
expect 0 "$ASSAY" prepare --target native:many -s 256 --set SCALE=$scale "${small[@]}"
measure 256-schemas --target native:many --set SCALE=$scale -s 256 -t 1
[ "$threads" -le "$base" ] || fail "$threads threads, $base with four sessions"
expect 0 "$ASSAY" destroy --target native:many
