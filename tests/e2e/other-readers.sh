#!/usr/bin/env bash
# What assay writes, read and recomputed by other code with other formulas: SciPy and NumPy, and the parser of OpenMetrics.
source "$PROJECT/tests/e2e/lib.sh"

# with_modules NAMES: $python is the first interpreter that has them, the distribution's own before others.
with_modules() {
    for python in /usr/bin/python3 python3; do
        "$python" -c "import $1" 2>/dev/null && return 0
    done
    return 1
}

echo "- a run's percentiles and comparisons of groups, recomputed"
with_modules "numpy, scipy.stats" || skip "no SciPy (package python3-scipy): Welch and percentiles are not recomputed"
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
            json.dump({"schema": "assay/2", "kind": "slob", "run": {"id": f"{letter}{i}"}, "instance": {"load_profile": rows}}, file)
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
    close("mean", op["service"]["us_avg"], times.mean())
    for key, q in [("us_p50", 0.5), ("us_p90", 0.9), ("us_p99", 0.99), ("us_p999", 0.999)]:
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

echo "- the metrics of a run"
expect 0 "$ASSAY" run "${SMALL[@]}" -s 1 --time 3s --warmup 0 --set UPDATE_PCT=30 --label 'a "b" \c' -o run
for face in metrics-csv openmetrics prometheus; do
    expect 0 "$ASSAY" report run --format "$face"
    cp out.txt "$face.txt"
done
if command -v promtool >/dev/null; then
    code=0
    promtool check metrics <prometheus.txt >lint.txt 2>&1 || code=$?
    # 3: it reads all, and would have chosen other names.
    case $code in 0 | 3) ;; *) cat lint.txt; fail "promtool refuses the text for node_exporter" ;; esac
fi
with_modules prometheus_client || skip "no parser of OpenMetrics (package python3-prometheus-client)"
"$python" - <<'PY' || fail "a parser of the format refuses it"
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
from prometheus_client.parser import text_string_to_metric_families as parse_classic
import csv, json
record = json.load(open("run/record.json"))
families = {f.name: f for f in parse(open("openmetrics.txt").read())}
reads = [s for s in families["assay_physical_read_io_requests"].samples]
total = record["instance"]["stats"]["physical_read_io_requests_count"]["total"]
assert reads[0].value == total, (reads, total)
assert reads[0].labels["label"] == 'a "b" \\c', reads[0].labels
waits = {e["name"]: e for e in record["instance"]["events"]}
for sample in families["assay_event_wait_seconds"].samples:
    if sample.name.endswith("_count"):
        assert sample.value == waits[sample.labels["event"]]["count"] or sample.labels["actor"] == "background"
def samples(found):
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for f in found for s in f.samples}
classic, wanted = samples(parse_classic(open("prometheus.txt").read())), samples(families.values())
end = [key for key in classic if key[0] == "assay_run_end_timestamp_seconds"]
assert len(end) == 1 and abs(classic.pop(end[0]) - float(reads[0].timestamp)) < 1e-3, end
assert classic == wanted, classic.keys() ^ wanted.keys()
rows = list(csv.DictReader(open("metrics-csv.txt")))
assert all(bool(r["value"]) != bool(r["reason"]) for r in rows), "a value or a reason, never both"
print(len(families), "families,", len(rows), "rows: read back")
PY
