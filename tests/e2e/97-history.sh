#!/usr/bin/env bash
# Runs are listed, tagged and followed over time; exports are read by those they are meant for.
source "$PROJECT/tests/e2e/lib.sh"

RUN=(run --target null: -s 2 --time 1 --warmup 0)
echo "- three runs with labels"
for n in 1 2 3; do
    expect 0 "$ASSAY" "${RUN[@]}" --label nightly --seed $n -o "assay-runs/2026010${n}T000000Z-slob-0000000$n"
done
expect 0 "$ASSAY" "${RUN[@]}" --label other -o assay-runs/20260104T000000Z-slob-00000004
expect 0 "$ASSAY" runs list --label nightly --metric ops_per_s
[ "$(grep -c nightly out.txt)" = 3 ] || { cat out.txt; fail "not the three runs"; }
[ -f assay-runs/catalogue.jsonl ] || fail "no catalogue"

echo "- tags live with the run and survive the catalogue"
expect 0 "$ASSAY" runs tag assay-runs/20260102T000000Z-slob-00000002 +good disk=nvme
rm assay-runs/catalogue.jsonl
expect 0 "$ASSAY" runs list --tag disk=nvme --format csv
[ "$(wc -l <out.txt)" = 2 ] || { cat out.txt; fail "not the one tagged run"; }
has out.txt "disk=nvme;good"

echo "- a damaged catalogue is set aside and the answer is the same"
dd if=/dev/urandom of=assay-runs/catalogue.jsonl bs=4k count=4 status=none
expect 0 "$ASSAY" runs list --label nightly
[ "$(grep -c nightly out.txt)" = 3 ] || fail "not the three runs"
[ -f assay-runs/catalogue.jsonl.damaged ] || fail "it was not kept"

echo "- two at once do not harm each other"
rm assay-runs/catalogue.jsonl
pids=()
for n in 1 2 3 4; do
    "$ASSAY" runs list --format json >"list$n.txt" 2>"err$n.txt" &
    pids+=($!)
    "$ASSAY" runs tag assay-runs/20260103T000000Z-slob-00000003 "+t$n" >/dev/null 2>&1 &
    pids+=($!)
done
for one in "${pids[@]}"; do wait "$one" || fail "one of them failed"; done
for n in 1 2 3 4; do [ "$(grep -c '"id"' "list$n.txt")" = 4 ] || { cat "list$n.txt" "err$n.txt"; fail "a list is not whole"; }; done
[ "$(sort assay-runs/20260103T000000Z-slob-00000003/tags | tr '\n' ' ')" = "t1 t2 t3 t4 " ] || fail "a tag was lost"

echo "- a trend of one figure"
expect 0 "$ASSAY" runs trend ops_per_s --label nightly
has out.txt "higher is better"
has out.txt "3 values, median"
expect 0 "$ASSAY" runs trend ops_per_s --format html
has out.txt "</html>"
expect 2 "$ASSAY" runs trend opps_per_s
has err.txt "near it: ops_per_s"

echo "- nothing of ours stays after rm"
expect 0 "$ASSAY" runs rm assay-runs/2026010*
rm -f assay-runs/catalogue.jsonl*
[ -z "$(ls -A assay-runs)" ] || { ls -A assay-runs; fail "something is left"; }

echo "- exports of a run on real files"
expect 0 "$ASSAY" run --target native:data "${SMALL[@]}" -s 2 --time 3s --warmup 0 --set UPDATE_PCT=30 --label 'a "b" \c' -o run
for face in csv csv-summary openmetrics openmetrics-series; do
    expect 0 "$ASSAY" report run --format "$face"
    cp out.txt "$face.txt"
done
[ "$(tail -n 1 openmetrics.txt)" = "# EOF" ] || fail "no end of the exposition"
reader=""
for one in python3 /usr/bin/python3; do
    "$one" -c 'import prometheus_client' 2>/dev/null && reader=$one && break
done
if [ -n "$reader" ]; then
    "$reader" - <<'PY' || fail "a parser of the format refuses it"
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
from prometheus_client.samples import Timestamp
import csv, json
# Debian's version compares the fractions of two instants also where their seconds differ: 1.9 is later than 2.1 for it.
# Steps end some tenths of a millisecond late, each its own, so every other run would be refused.
Timestamp.__gt__ = lambda self, other: (self.sec, self.nsec) > (other.sec, other.nsec)
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
series = {f.name: f for f in parse(open("openmetrics-series.txt").read())}
ops = series["assay_series_ops_per_second"].samples
assert [s.value for s in ops] == record["series"]["metrics"]["ops_count_per_s"], ops
rows = list(csv.DictReader(open("csv-summary.txt")))
assert all(bool(r["value"]) != bool(r["reason"]) for r in rows), "a value or a reason, never both"
print(len(families), "families,", len(rows), "rows: read back")
PY
else
    echo "!! no python3-prometheus-client: the OpenMetrics text is not parsed here"
fi
if command -v promtool >/dev/null; then
    promtool tsdb create-blocks-from openmetrics openmetrics-series.txt blocks >prom.txt 2>&1 || { cat prom.txt; fail "the series cannot be backfilled"; }
else
    echo "!! no promtool (package prometheus): backfilling is not tried here"
fi
