#!/usr/bin/env bash
# The gate for continuous integration, as its templates call it: passed, could not be judged and worse are told apart, of runs of
# the null target and of recorded ones. How assay itself comes to such an end, other tests check.
source "$PROJECT/tests/e2e/lib.sh"
export XDG_RUNTIME_DIR=$PWD GITHUB_ACTION_PATH=$PROJECT/ci GATE_SCRIPT=$PROJECT/ci/gate.sh
unset GITHUB_ACTIONS GITHUB_OUTPUT GITHUB_STEP_SUMMARY
action=$(sed -n 's/^ *run: //p' "$PROJECT/ci/action.yml")
template=$(sed -n '/^  script:$/{n;s/^ *- //p}' "$PROJECT/ci/gitlab.yml")
[ -n "$action" ] && [ -n "$template" ] || fail "a template calls nothing"

echo "- a pipeline that measures both sides in turns"
export GATE_PROGRAM=$ASSAY GATE_REPEAT=2 GATE_ARGS=$'--time\n1s\n--warmup\n0'
GATE_TARGET=null: GATE_BASELINE_TARGET=null: GATE_FAIL_IF="ops_per_s < -99%" expect 0 bash -c "$template"
has out.txt "assay gate: passed"
[ -s assay-gate/compare.html ] && [ -s assay-gate/candidate/2/record.json ] || fail "no results were kept"
expect 2 bash -c "$template"
has err.txt "assay-gate exists"
rm -r assay-gate

# An assay whose runs are recorded ones: it ends as ENDS says, and compares as the real one.
cat >recorded <<'STUB'
#!/usr/bin/env bash
printf '%s\n' "$@" >>arguments.txt
case $1 in
    compare) exec "$ASSAY" "$@" ;;
    run) cp -r "$PROJECT/testdata/frozen/native-updates-2" "${!#}" ;;
esac
echo "a recorded answer"
exit "${ENDS:-0}"
STUB
chmod +x recorded
export GATE_PROGRAM=./recorded GATE_BASELINE=$PROJECT/testdata/frozen/native-updates

# ends VERDICT CODE: so the template's job ends, and the action's: there, what could not be judged passes with a warning.
ends() {
    rm -rf assay-gate arguments.txt
    expect "$2" bash -c "$template"
    has out.txt "assay gate: $1"
    rm -rf assay-gate output summary
    local code=$2
    [ "$1" != unsure ] || code=0
    GITHUB_ACTIONS=true GITHUB_OUTPUT=output GITHUB_STEP_SUMMARY=summary GATE_UNSURE_CODE=0 expect "$code" bash -c "$action"
    [ "$(cat output)" = "verdict=$1" ] || fail "another verdict: $(cat output)"
    has summary "### assay: $1"
    [ "$1" != unsure ] || has out.txt "::warning title=assay unsure::"
    [ "$1" != failed ] || has out.txt "::error title=assay failed::"
}
echo "- a comparison with runs that were kept"
GATE_FAIL_IF="ops_per_s < -90%" ends passed 0
GATE_FAIL_IF=$'ops_per_s < -90%\nops_per_s < -5%' ends unsure 4
has out.txt "could not be judged: ops_per_s fell by 20.3 %"
GATE_FAIL_IF="read_us_p99 > 1us" ends failed 5
has out.txt "regression: read_us_p99"
GATE_FAIL_IF="nothing > 1" ends failed 2
GATE_BASELINE="" ends passed 0
has out.txt "no baseline to judge by"

echo "- a run that is not valid is judged by nobody; one that did not happen fails"
ENDS=4 ends unsure 4
ENDS=3 ends failed 3

echo "- a passport"
for end in "passed 0" "unsure 4" "failed 5"; do
    # shellcheck disable=SC2086
    ENDS=${end#* } GATE_PASSPORT=box.json ends $end
done
[ "$(sed -n 1,3p arguments.txt | tr '\n' ' ')" = "accept box.json . " ] || fail "accept was called otherwise"

echo "- an argument is one, whatever it holds"
GATE_ARGS=$'--label\n$(touch owned) `touch owned`; "a b"' GATE_FAIL_IF="" ends passed 0
grep -qxF '$(touch owned) `touch owned`; "a b"' arguments.txt || fail "an argument was changed"
[ ! -e owned ] || fail "an argument was executed"

echo "- the action hands on what the script takes"
script=$(grep -oE '^#   GATE_[A-Z_]+' "$PROJECT/ci/gate.sh" | grep -oE 'GATE_.*' | grep -vxE 'GATE_(DIR|PLACE)' | sort)
given=$(grep -oE '^ +GATE_[A-Z_]+:' "$PROJECT/ci/action.yml" | grep -oE 'GATE_[A-Z_]+' | sort)
[ "$script" = "$given" ] || fail "$(diff <(echo "$script") <(echo "$given"))"
