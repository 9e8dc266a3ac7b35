#!/usr/bin/env bash
# Figures of a run in a real Prometheus by remote write, and in a receiver of OTLP by its official definitions: while it goes on, and
# at its end those of the record. Under ./test.sh --long and by hand.
source "$PROJECT/tests/e2e/lib.sh"

prometheus=${PROMETHEUS:-$(command -v prometheus || true)}
[ -n "$prometheus" ] || skip "Prometheus (package prometheus)"
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
port=$(free_port)
at=http://127.0.0.1:$port
echo "global: {}" >prometheus.yml
"$prometheus" --config.file=prometheus.yml --storage.tsdb.path=tsdb --web.listen-address=127.0.0.1:"$port" \
    --web.enable-remote-write-receiver >err-prometheus.txt 2>&1 &
pid=$! otlp=""
trap 'kill $pid $otlp 2>/dev/null || true; wait' EXIT
wait_for 60 curl -sf "$at/-/ready"

# value QUERY: the number that Prometheus has for it; nothing where it has none.
value() {
    curl -sf --data-urlencode "query=$1" "$at/api/v1/query" \
        | python3 -c 'import json, sys; r = json.load(sys.stdin)["data"]["result"]; print(*[x["value"][1] for x in r])'
}

echo "- what no receiver takes is refused before anything is made"
echo >empty
expect 2 "$ASSAY" run --push "$at/api/v1/write" --push-authorization empty
expect 2 "$ASSAY" run --push ftp://127.0.0.1/
has err.txt "http://"
expect 3 "$ASSAY" run --push "$at/nothing/here"
has err.txt "404"
[ ! -e assay-data ] || fail "something was prepared"

echo "- while it goes on, and at its end"
expect 0 "$ASSAY" prepare "${SMALL[@]}" -s 1
"$ASSAY" run "${SMALL[@]}" -s 1 --set CACHE_MB=4 --warmup 0s --time 15s --push "$at/api/v1/write" -o run >out-run.txt 2>err-run.txt &
run=$!
sum='sum(assay_operation_seconds_count)'
has_some() { [ -n "$(value "$sum")" ]; }
wait_for 60 has_some
[ ! -e run/record.json ] || fail "nothing was sent before the run's end"
code=0
wait $run || code=$?
case $code in 0 | 4) ;; *) cat err-run.txt; fail "the run ended with $code" ;; esac
hasnt err-run.txt "could not be sent"
# ours EXPRESSION: of the record, with its operations in `ops`.
ours() {
    python3 -c "import json; ops = json.load(open('run/record.json'))['driver']['ops']; print($1)"
}
pushed=$(value "$sum") counted=$(ours "sum(op['count'] for op in ops)")
echo "  operations: Prometheus has $pushed, the record $counted"
[ "$pushed" = "$counted" ] || fail "other counts"
# Both are of the same histogram, there in powers of two.
for kind in $(ours "*[op['kind'] for op in ops if isinstance(op['service']['us_p90'], float)]"); do
    theirs=$(value "histogram_quantile(0.9, sum by (le) (assay_operation_seconds_bucket{op=\"$kind\"}))")
    told=$(ours "*[op['service']['us_p90'] / 1e6 for op in ops if op['kind'] == '$kind']")
    echo "  p90 of $kind: Prometheus says $theirs s, the record $told s"
    awk -v a="$theirs" -v b="$told" 'BEGIN { exit !(a >= b / 2 && a <= b * 2) }' || fail "they are not in one bucket"
done

echo "- by OTLP, the same figures as the record's text has"
# OTLP_PYTHON: where the package opentelemetry-proto lies.
peer=(env PYTHONPATH="${OTLP_PYTHON:-}" python3 "$PROJECT/tests/e2e/long/otlp.py")
if PYTHONPATH=${OTLP_PYTHON:-} python3 -c 'import opentelemetry.proto, prometheus_client' 2>/dev/null; then
    port=$(free_port)
    "${peer[@]}" "$port" figures.json 2>err-otlp.txt &
    otlp=$!
    wait_for 60 curl -sf "http://127.0.0.1:$port/"
    code=0
    "$ASSAY" run "${SMALL[@]}" -s 1 --set CACHE_MB=4 --warmup 0s --time 3s --push "http://127.0.0.1:$port/v1/metrics" -o by-otlp >out-run.txt 2>err-run.txt || code=$?
    case $code in 0 | 4) ;; *) cat err-run.txt; fail "the run ended with $code" ;; esac
    hasnt err-run.txt "could not be sent"
    "$ASSAY" report by-otlp --format prometheus >record.prom
    "${peer[@]}" compare figures.json <record.prom || fail "other figures"
else
    echo "  (left out: no Python packages opentelemetry-proto and prometheus-client)"
fi

echo "- a receiver that goes costs the run a notice"
"$ASSAY" run "${SMALL[@]}" -s 1 --set CACHE_MB=4 --warmup 0s --time 3s --push "$at/api/v1/write" -o other >out-run.txt 2>err-run.txt &
run=$!
wait_for 60 test -e other/series.jsonl
kill $pid
wait $pid || true
code=0
wait $run || code=$?
case $code in 0 | 4) ;; *) cat err-run.txt; fail "the run ended with $code" ;; esac
has err-run.txt "could not be sent"
