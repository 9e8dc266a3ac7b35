"""A receiver of OTLP over HTTP that reads requests by the official definitions (package opentelemetry-proto).

otlp.py PORT FILE      listens, refuses what they do not allow, and keeps the last request as samples of Prometheus
otlp.py compare FILE   whether the samples are those of the text on standard input
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as service
from prometheus_client.parser import text_fd_to_metric_families


def samples(request):
    for resource in request.resource_metrics:
        about = {one.key: one.value.string_value for one in resource.resource.attributes}
        assert about["service.name"] == "assay", about
        for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
            data = getattr(metric, metric.WhichOneof("data"))
            total = "_total" if metric.HasField("sum") and data.is_monotonic else ""
            for point in data.data_points:
                assert 0 < point.start_time_unix_nano <= point.time_unix_nano, metric.name
                labels = {one.key: one.value.string_value for one in point.attributes}
                if not metric.HasField("histogram"):
                    yield metric.name + total, labels, point.as_double
                    continue
                assert data.aggregation_temporality == 2 and metric.unit == "s", metric.name
                assert len(point.bucket_counts) == len(point.explicit_bounds) + 1, metric.name
                upto = 0
                for bound, count in zip([*point.explicit_bounds, float("inf")], point.bucket_counts):
                    upto += count
                    yield metric.name + "_bucket", {**labels, "le": bound}, upto
                yield metric.name + "_count", labels, point.count
                yield metric.name + "_sum", labels, point.sum


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            assert self.path == "/v1/metrics" and self.headers["Content-Type"] == "application/json", self.path
            kept = list(samples(json_format.Parse(body, service.ExportMetricsServiceRequest())))
        except (AssertionError, json_format.ParseError) as error:
            self.answer(400, str(error))
            return
        with open(sys.argv[2] + ".part", "w", encoding="utf-8") as out:
            json.dump(kept, out)
        os.replace(sys.argv[2] + ".part", sys.argv[2])
        self.answer(200, json_format.MessageToJson(service.ExportMetricsServiceResponse()))

    def do_GET(self):
        self.answer(200, "")

    def answer(self, code, text):
        self.send_response(code)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())


def named(name, labels):
    """The bound of a bucket is a number, however it is written."""
    return name, frozenset((of, float(value) if of == "le" else value) for of, value in labels.items())


def compare(kept):
    ours = {named(name, labels): value for name, labels, value in kept}
    theirs = {named(one.name, one.labels): one.value for family in text_fd_to_metric_families(sys.stdin) for one in family.samples}
    # The text has no times.
    theirs = {name: value for name, value in theirs.items() if name[0] != "assay_run_end_timestamp_seconds"}
    odd = [(name, ours.get(name), theirs.get(name)) for name in {*ours, *theirs} if ours.get(name) != theirs.get(name)]
    print(f"{len(ours)} samples, {len(odd)} of them others")
    return f"others: {odd[:5]}" if odd or not ours else 0


if sys.argv[1] == "compare":
    with open(sys.argv[2], encoding="utf-8") as file:
        sys.exit(compare(json.load(file)))
HTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
