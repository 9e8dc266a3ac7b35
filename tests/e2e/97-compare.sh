#!/usr/bin/env bash
# A comparison, and a run's percentiles, recomputed by SciPy and NumPy: other code, other formulas, the same numbers.
source "$PROJECT/tests/e2e/lib.sh"

# The distribution's own interpreter, which its packages are for, comes first.
find_python() {
    for python in /usr/bin/python3 python3; do
        "$python" -c 'import numpy, scipy.stats' 2>/dev/null && return 0
    done
    return 1
}
if ! find_python; then
    # Only where this may install packages; elsewhere it is said loudly.
    { [ "$(id -u)" = 0 ] && apt-get install -y -q python3-scipy >apt.txt 2>&1 && find_python; } ||
        skip "SciPy is not there (Debian: apt-get install python3-scipy): Welch and percentiles are not recomputed"
fi

cat >check.py <<'PY'
import csv, json, math, subprocess, sys
import numpy as np
from scipy import stats

assay, rng = sys.argv[1], np.random.default_rng(20261121)
KEYS = {"ops_per_s": "Operations", "reads_per_s": "Read IO requests", "logical_reads_per_s": "Logical read (blocks)"}

def close(what, found, wanted, relative=1e-6):
    assert abs(found - wanted) <= relative * max(abs(wanted), 1e-9), f"{what}: {found} is not {wanted}"

def group(letter, n, spread, shift):
    logs = {key: math.log(1000) + shift + rng.normal(0, spread, n) for key in KEYS}
    for i in range(n):
        rows = [{"name": name, "unit": "count", "per_s": math.exp(logs[key][i])} for key, name in KEYS.items()]
        with open(f"{letter}{i}.json", "w") as file:
            json.dump({"schema": "assay/1", "run": {"id": f"{letter}{i}"}, "load_profile": rows}, file)
    return logs, ",".join(f"{letter}{i}.json" for i in range(n))

def welch(a, b):
    va, vb = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    error, degrees = math.sqrt(va + vb), (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    reach = stats.t.ppf(0.975, degrees) * error
    difference = b.mean() - a.mean()
    seen = (stats.t.ppf(1 - 0.05 / 2 / len(KEYS), degrees) + stats.t.ppf(0.95, degrees)) * error
    return degrees, math.exp(difference - reach), math.exp(difference + reach), 100 * (math.exp(seen) - 1)

compared = 0
for na, nb, sa, sb, shift in [(3, 3, 0.01, 0.01, 0), (4, 7, 0.02, 0.1, 0.05), (10, 5, 0.3, 0.05, -0.1), (20, 20, 0.05, 0.05, -0.03), (3, 12, 0.5, 0.001, 1)]:
    (la, a), (lb, b) = group("a", na, sa, 0), group("b", nb, sb, shift)
    out = subprocess.run([assay, "compare", a, b, "--format", "json"], check=True, capture_output=True, text=True).stdout
    rows = {row["key"]: row["against"][0] for row in json.loads(out)["rows"]}
    p_values = []
    for key in KEYS:
        found, scipy = rows[key], stats.ttest_ind(lb[key], la[key], equal_var=False)
        degrees, low, high, seen = welch(la[key], lb[key])
        close("ratio", found["ratio"], math.exp(lb[key].mean() - la[key].mean()))
        close("p", found["p"], scipy.pvalue)
        close("degrees", found["degrees"], degrees)
        close("low", found["low_ratio"], low)
        close("high", found["high_ratio"], high)
        close("detectable", found["detectable_95_pct"], seen)
        p_values.append(scipy.pvalue)
        compared += 1
    order, least = sorted(range(len(KEYS)), key=p_values.__getitem__), 0
    for rank, at in enumerate(order):
        least = max(least, min(1, p_values[at] * (len(KEYS) - rank)))
        found = rows[list(KEYS)[at]]
        close("Holm", found["p_holm"], least)
        # These records tell of no host, so nobody else can have made a difference: the noise alone may hide one.
        is_shown, is_blurred = least <= 0.05, found["detectable_95_pct"] > 10
        quiet = "not-measurable" if is_blurred else "no-difference"
        wanted = ("better", "worse") if is_shown else (quiet,)
        assert found["verdict"] in wanted, (found, wanted)

# Percentiles of a real run, from its trace of single operations: value of rank ceil(q n), within a histogram slot.
record = json.load(open("traced/record.json"))
with open("trace.csv") as file:
    trace = list(csv.DictReader(file))
checked = 0
for op in record["driver"]["ops"]:
    times = np.array([int(row["service_ns"]) / 1e3 for row in trace if row["kind"] == op["kind"]])
    assert len(times) == op["count"], (op["kind"], len(times), op["count"])
    close("mean", op["service"]["avg_us"], times.mean())
    for key, q in [("p50_us", 0.5), ("p90_us", 0.9), ("p99_us", 0.99), ("p999_us", 0.999)]:
        if isinstance(op["service"][key], dict):
            assert len(times) * (1 - q) < 10, op["service"][key]
        else:
            close(f"{op['kind']} {key}", op["service"][key], np.percentile(times, 100 * q, method="inverted_cdf"), 1 / 64)
            checked += 1
assert checked >= 3
print(f"{compared} Welch tests agree with SciPy, {checked} percentiles of {len(trace)} operations with NumPy")
PY
expect 0 "$ASSAY" run -s 1 "${SMALL[@]}" --warmup 0 --set CACHE_MB=4 --set WORK_UNIT=8 --set WORK_LOOP=12000 --set TRACE=trace.csv -o traced
expect 0 "$python" check.py "$ASSAY"
cat out.txt

# Repeats: a directory that is one group, with the noise that is between its runs.
expect 0 "$ASSAY" run -s 1 "${SMALL[@]}" --time 2 --warmup 0.5 --repeat 3 -o three
has out.txt "A/A Noise Floor"
expect 4 "$ASSAY" compare three three --fail-if 'ops_per_s < -5%'
has out.txt "the same runs"
has err.txt "cannot be judged"
expect 0 "$ASSAY" compare three three --fail-if 'ops_per_s < 1'
has err.txt "limit at least 1/s: passed"
expect 2 "$ASSAY" compare three three --fail-if 'op_per_s < -5%'
has err.txt "ops_per_s"

# An interrupted one keeps what there is.
"$ASSAY" run -s 1 "${SMALL[@]}" --time 3 --warmup 0 --repeat 50 -o cut >out.txt 2>err.txt &
pid=$!
wait_for 60 lines cut/repeat-2/series.jsonl 2
kill -INT "$pid"
code=0
wait "$pid" || code=$?
[ "$code" = 130 ] || fail "exit $code of interrupted repeats"
has out.txt "stopped on request"
[ "$(json cut/repeat.json verdict)" = incomplete ] || fail "verdict of interrupted repeats"
