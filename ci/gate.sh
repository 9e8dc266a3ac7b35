#!/usr/bin/env bash
# A gate for continuous integration: measures, judges, and tells "worse" from "cannot be told". The action and the GitLab
# template beside this file only call it; any shell can. What it is told stands in the environment, and nothing of it is evaluated:
#
#   GATE_PASSPORT          accept this box by a passport (assay accept) ...
#   GATE_PLACE             ... with data in this directory [.]
#   GATE_TARGET            or measure this target (assay run) [assay's own default] ...
#   GATE_BASELINE          ... against runs that were kept: a directory of repeats or a record
#   GATE_BASELINE_TARGET   ... or against this target, in turns in this job: what a shared runner needs
#   GATE_BASELINE_PROGRAM  ... or as this other assay measures it, in turns
#   GATE_ARGS              further arguments of `assay run`, one a line
#   GATE_REPEAT            runs of each side [5]
#   GATE_FAIL_IF           gates, one a line: ops_per_s < -10%
#   GATE_ALLOW             what differs on purpose, one a line: CACHE_MB
#   GATE_DIR               where runs, gate.txt and compare.html go; it must not exist [assay-gate]
#   GATE_PROGRAM           [assay]
#   GATE_UNSURE_CODE       exit code where it cannot be told; 0 where the system has no state between passed and failed [4]
#
# Exit code: 0 passed; 4 could not be judged, a warning; 5 worse than allowed; any other: nothing was measured.
set -euo pipefail

program=${GATE_PROGRAM:-assay}
dir=${GATE_DIR:-assay-gate}
repeats=${GATE_REPEAT:-5}

# conclude VERDICT CODE: tells it to the log, and to GitHub where this is one of its jobs.
conclude() {
    local verdict=$1 code=$2 told mark
    # The lines in which assay names a gate or an error, as one line: none of them is a command of the runner.
    told=$(grep -hE '^(error|gate): ' "$dir/progress.txt" 2>/dev/null | tail -n 3 | tr '\n' ' ' || true)
    told=${told:-$(head -n 1 "$dir/gate.txt" 2>/dev/null || true)}
    case $verdict in
        unsure) mark="warning" ;;
        failed) mark="error" ;;
        *) mark="notice" ;;
    esac
    if [ "${GITHUB_ACTIONS:-}" = true ]; then
        echo "::$mark title=assay $verdict::${told//%/%25}"
        echo "verdict=$verdict" >>"${GITHUB_OUTPUT:-/dev/null}"
        { echo "### assay: $verdict"; echo '````'; cat "$dir/gate.txt" 2>/dev/null; echo '````'; } >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
    fi
    echo "assay gate: $verdict: $told"
    [ "$verdict" != unsure ] || code=${GATE_UNSURE_CODE:-4}
    exit "$code"
}

# judge COMMAND...: its answer is gate.txt, and how it ended is the verdict.
judge() {
    local code=0
    "$@" >"$dir/gate.txt" 2>>"$dir/progress.txt" || code=$?
    cat "$dir/gate.txt"
    case $code in
        0) conclude passed 0 ;;
        4) conclude unsure 4 ;;
        *) conclude failed "$code" ;;
    esac
}

# measure PROGRAM TARGET PLACE [ARG...]: a run; one that is not valid leaves nothing to judge.
measure() {
    local code=0 at=$1 target=$2 place=$3
    shift 3
    "$at" run ${target:+--target "$target"} "${args[@]}" "$@" -o "$place" >"$dir/gate.txt" 2>>"$dir/progress.txt" || code=$?
    [ "$code" = 0 ] || cat "$dir/gate.txt"
    case $code in
        0) ;;
        4) conclude unsure 4 ;;
        *) tail -n 20 "$dir/progress.txt"; conclude failed "$code" ;;
    esac
}

lines() { # NAME OPTION VALUE: fills the array, each line with the option before it
    local -n into=$1
    local line
    while IFS= read -r line; do
        [ -z "$line" ] || into+=(${2:+"$2"} "$line")
    done <<<"$3"
}

[ ! -e "$dir" ] || { echo "assay gate: $dir exists: remove it, or name another with GATE_DIR" >&2; exit 2; }
mkdir -p "$dir"
# Two jobs of one user on one host would measure each other.
exec 9>>"${XDG_RUNTIME_DIR:-${HOME:-.}}/.assay-gate.lock"
flock 9

if [ -n "${GATE_PASSPORT:-}" ]; then
    judge "$program" accept "$GATE_PASSPORT" "${GATE_PLACE:-.}"
fi
args=() gates=()
lines args "" "${GATE_ARGS:-}"
lines gates --fail-if "${GATE_FAIL_IF:-}"
lines gates --allow "${GATE_ALLOW:-}"
baseline=${GATE_BASELINE:-} candidate=$dir/candidate
if [ -n "${GATE_BASELINE_TARGET:-}${GATE_BASELINE_PROGRAM:-}" ]; then
    [ -z "$baseline" ] || { echo "assay gate: a baseline that was kept, or one to measure: not both" >&2; exit 2; }
    candidate=""
    for turn in $(seq "$repeats"); do
        measure "${GATE_BASELINE_PROGRAM:-$program}" "${GATE_BASELINE_TARGET:-${GATE_TARGET:-}}" "$dir/baseline/$turn"
        measure "$program" "${GATE_TARGET:-}" "$dir/candidate/$turn"
        # Runs of one group are a list with commas.
        baseline+=${baseline:+,}$dir/baseline/$turn
        candidate+=${candidate:+,}$dir/candidate/$turn
    done
else
    measure "$program" "${GATE_TARGET:-}" "$candidate" --repeat "$repeats"
fi
if [ -z "$baseline" ]; then
    cat "$dir/gate.txt"
    echo "gate: no baseline to judge by; $candidate can be the next job's" >>"$dir/progress.txt"
    conclude passed 0
fi
judge "$program" compare "$baseline" "$candidate" "${gates[@]}" -o "$dir/compare.html"
