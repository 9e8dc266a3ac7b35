#!/usr/bin/env bash
# The reader in Python: installed by pip without a network, it reads every frozen record; its figures are those that assay
# prints, its percentiles those of the record, its keys those of the schema. The notebook's cells run.
source "$PROJECT/tests/e2e/lib.sh"

python=""
for candidate in /usr/bin/python3 python3; do
    "$candidate" -c "import setuptools, wheel, pip" 2>/dev/null && python=$candidate && break
done
[ -n "$python" ] || skip "no pip with setuptools and wheel (package python3-pip)"

echo "- installed"
# pip builds in the directory it is given.
cp -r "$PROJECT/python" source
expect 0 "$python" -m pip install --quiet --no-index --no-build-isolation --no-deps --target installed ./source
export PYTHONPATH=$PWD/installed PYTHONDONTWRITEBYTECODE=1

echo "- every frozen record, beside what assay prints of it"
cat >check.py <<'PY'
import csv, glob, io, json, os, subprocess, sys
import assay_read

assay, project = sys.argv[1:]
assert os.path.dirname(assay_read.__file__) == os.environ["PYTHONPATH"], assay_read.__file__
schema = json.load(open(f"{project}/docs/reference/record.schema.json"))
assert schema["properties"]["schema"]["const"] == assay_read.SCHEMA
shapes = {name: set(shape.get("properties", {})) for name, shape in schema["$defs"].items()}
assert set(assay_read.Metric._fields) - {"reason"} <= shapes["Metric"]
assert shapes["Histogram"] == {"count", "sum_ns", "min_ns", "max_ns", "slots"}
assert {"t_s", "in_window", "metrics"} <= shapes["Series"]

def printed(run, face):
    text = subprocess.run([assay, "report", run, "--format", face], check=True, capture_output=True, text=True).stdout
    return list(csv.DictReader(io.StringIO(text)))

def number(text):
    return float(text) if text else None

def latencies(found):
    """The distributions of a record with the percentiles that stand beside each."""
    if isinstance(found, dict):
        if isinstance(found.get("hist_ns"), dict) and found["hist_ns"].get("count"):
            yield found
        found = list(found.values())
    for below in found if isinstance(found, list) else []:
        yield from latencies(below)

SHARES = {"us_p50": 0.5, "us_p90": 0.9, "us_p95": 0.95, "us_p99": 0.99, "us_p999": 0.999, "us_p9999": 0.9999}
figures = rows = percentiles = 0
files = sorted(glob.glob(f"{project}/testdata/frozen/**/record.json", recursive=True))
for file in files:
    run = assay_read.read(os.path.dirname(file))
    lines, metrics = printed(file, "metrics-csv"), run.metrics()
    assert len(lines) == len(metrics), file
    for line, metric in zip(lines, metrics):
        wanted = (line["key"], line["scope"], line["name"], line["unit"], line["better"] or None, line["layer"], line["reason"] or None)
        assert wanted == (metric.key, metric.scope, metric.name, metric.unit, metric.better, metric.layer, metric.reason), (file, line, metric)
        assert number(line["value"]) == metric.value and line["primary"] == str(int(metric.primary)), (file, line, metric)
        figures += metric.value is not None
    series = run.series()
    if series["t_s"] and run.kind not in ("sweep", "platform"):
        lines = printed(file, "csv")
        assert set(lines[0]) == set(series), (file, set(lines[0]) ^ set(series))
        for at, line in enumerate(lines):
            for key, text in line.items():
                column = series[key]
                assert number(text) == (column[at] if at < len(column) else None), (file, key, at)
        rows += len(lines)
    found = list(latencies(run.record))
    assert len(found) == len(run.histograms()), file
    for row in found:
        histogram = assay_read.Histogram(row["hist_ns"])
        assert sum(count for _, _, count in histogram.buckets()) == histogram.count
        # An imported percentile is the tool's own, of more or of rounded durations.
        if "provenance" in run.record:
            continue
        for key, share in SHARES.items():
            own = assay_read.figure(row.get(key))[0]
            if own is not None:
                ns = histogram.percentile_ns(share)
                assert ns is not None and ns / 1000 == own, (file, key, own, ns)
                percentiles += 1
            elif row.get(key) == {"na": "too few samples"}:
                assert histogram.percentile_ns(share) is None, (file, key)
assert len(files) > 40 and figures > 1000 and rows > 50 and percentiles > 200, (len(files), figures, rows, percentiles)
print(f"{len(files)} records: {figures} figures, {rows} seconds, {percentiles} percentiles")

def refused(path, kind, words):
    try:
        assay_read.read(path)
    except kind as error:
        assert words in str(error), error
        return
    raise AssertionError(f"{path} was read")

os.mkdir("empty")
refused("empty", assay_read.NoRecord, "no run of assay")
refused("gone", assay_read.NoRecord, "no run of assay")
os.mkdir("repeats")
open("repeats/repeat.json", "w").write("{}")
refused("repeats", assay_read.NoRecord, "directory of repeats")
for name, text, kind, words in [
    ("cut.json", '{"schema":', assay_read.NoRecord, "not JSON"),
    ("other.json", '[1]', assay_read.NoRecord, "names no schema"),
    ("newer.json", '{"schema": "assay/3", "kind": 1}', assay_read.OtherSchema, "assay/3; this file reads assay/2"),
]:
    open(name, "w").write(text)
    refused(name, kind, words)

run = assay_read.read(f"{project}/testdata/frozen/native-updates")
assert run.histogram("select.service") is not None and run.metric("ops_per_s").unit == "1/s"
for wrong in (lambda: run.histogram("service"), lambda: run.histogram("nowhere"), lambda: run.metric("nothing")):
    try:
        wrong()
    except KeyError:
        continue
    raise AssertionError("an unclear name was taken")
try:
    import pandas
except ImportError:
    print("no pandas: its frames are not tried")
else:
    frame = run.to_pandas()
    assert len(frame) == len(run.metrics()) and frame["value"].isna().sum() == sum(m.value is None for m in run.metrics())
    assert len(run.to_pandas("series")) == len(run.series()["t_s"])
PY
expect 0 "$python" check.py "$ASSAY" "$PROJECT"
cat out.txt

echo "- the notebook"
cat >notebook.py <<'PY'
import json, subprocess, sys
import xml.dom.minidom

assay, project = sys.argv[1:]
cells = json.load(open(f"{project}/docs/examples/reading-records.ipynb"))["cells"]
names = {}
for cell in cells:
    assert not cell.get("outputs"), "a notebook is kept without its outputs"
    if cell["cell_type"] == "code":
        exec("".join(cell["source"]), names)
marks = xml.dom.minidom.parseString(names["curve"]._repr_svg_()).getElementsByTagName("circle")
assert len(marks) == len(names["points"]) == 3
runs = [f"{names['runs']}/{name}" for name in ("native-updates", "native-updates-2")]
text = subprocess.run([assay, "compare", *runs, "--format", "json"], check=True, capture_output=True, text=True).stdout
compared = {row["key"]: row["against"][0]["ratio"] for row in json.loads(text)["rows"]}
for key, ratio in names["ratios"].items():
    assert abs(ratio / compared[key] - 1) < 1e-9, (key, ratio, compared[key])
assert len(names["ratios"]) > 3
PY
ASSAY_RUNS=$PROJECT/testdata/frozen expect 0 "$python" notebook.py "$ASSAY" "$PROJECT"
has out.txt "99.0 % of 191405 reads took at most    569.3 us"
