#!/usr/bin/env bash
# The summariser that SLOB users run over AWR text reads our reports too, and says what our own summary says. The kit may not
# be handed on, so it is not here: ASSAY_SLOB_KIT names a directory with misc/awr_info.sh in it.
source "$PROJECT/tests/e2e/lib.sh"

kit=${ASSAY_SLOB_KIT:-}
[ -n "$kit" ] && [ -f "$kit/misc/awr_info.sh" ] ||
    skip "no SLOB kit: set ASSAY_SLOB_KIT to a directory that holds misc/awr_info.sh; its summariser is not run over our report"
command -v gawk >/dev/null || skip "no gawk: mawk does not know its formats"
command -v bc >/dev/null || skip "no bc"
mkdir bin
ln -s "$(command -v gawk)" bin/awk

echo "- the kit's awr_info.sh over report.txt against our summary, column by column"
expect 0 "$ASSAY" run -s 2 --time 4 --warmup 1 "${SMALL[@]}" --set CACHE_MB=8 --set UPDATE_PCT=20 -o run
cp run/report.txt awr.txt.2
PATH="$PWD/bin:$PATH" bash "$kit/misc/awr_info.sh" awr.txt.2 >theirs.txt 2>theirs.err
expect 0 "$ASSAY" report run --format summary
python3 - theirs.txt out.txt <<'PY' || fail "the two do not agree"
import sys

def rows(path):
    lines = [line.rstrip("\n").rstrip("|") for line in open(path) if "|" in line]
    return lines[0].split("|"), lines[-1].split("|")

their_names, theirs = rows(sys.argv[1])
our_names, ours = rows(sys.argv[2])
assert their_names == our_names, (their_names, our_names)
theirs, ours = dict(zip(their_names, theirs)), dict(zip(our_names, ours))
print("theirs:", theirs)
print("ours:  ", ours)
bad = []
for name in ["ELAPSED", "DB CPU", "DB Tm", "EXECUTES", "LIO", "PREADS", "READ_MBS", "PWRITES", "WRITE_MBS", "REDO_MBS", "DFSR_LAT", "DFPW_LAT", "LFPW_LAT"]:
    a, b = theirs[name].strip(), ours[name].strip()
    if not a or not b:
        bad.append(f"{name}: {a!r} against {b!r}")
        continue
    # Both round or cut, each in its own place: a unit of the last place, or a hundredth of a latency. Some versions of
    # the kit add the background's CPU, some do not; ours does.
    allowed = max(1.0 if "." not in a else 0.11, 0.01 * float(b))
    if abs(float(a) - float(b)) > allowed:
        bad.append(f"{name}: {a} against {b}")
if theirs["SESSIONS"].strip() != ours["SESSIONS"].strip():
    bad.append("SESSIONS")
if not theirs["TOP WAIT"].strip().startswith(ours["TOP WAIT"].strip()):
    bad.append("TOP WAIT: " + theirs["TOP WAIT"])
sys.exit("\n".join(bad) if bad else 0)
PY

if [ -f "$kit/advanced_topics/awr.txt.128" ]; then
    echo "- the kit's example of an AWR report is imported, and its published figures come out"
    expect 0 "$ASSAY" import "$kit/advanced_topics/awr.txt.128" -o imported
    expect 0 "$ASSAY" report imported --format summary
    python3 - out.txt <<'PY' || fail "the figures of the kit's report do not come out"
import sys

lines = [line.rstrip("\n") for line in open(sys.argv[1])]
got = dict(zip(lines[0].split("|"), lines[-1].split("|")))
print(got)
gold = {"ELAPSED": 304, "DB CPU": 5.7, "DB Tm": 126.5, "EXECUTES": 370, "LIO": 119749, "PREADS": 71553, "PWRITES": 25884,
        "READ_MBS": 559.1, "WRITE_MBS": 329.0, "REDO_MBS": 108.2, "DFSR_LAT": 759, "DFPW_LAT": 312, "LFPW_LAT": 440653}
bad = [f"{name}: {got[name]!r}, published {value}" for name, value in gold.items()
       if not got[name] or abs(float(got[name]) - value) > max(0.11, 0.005 * value)]
sys.exit("\n".join(bad) if bad else 0)
PY
fi
