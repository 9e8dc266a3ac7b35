"""Reads the records of assay: one file, with Python's standard library alone.

    import assay_read
    run = assay_read.read("assay-runs/20261128T100002Z-slob-5288e95b")
    for metric in run.metrics():
        print(metric.key, metric.scope, metric.value, metric.unit, metric.reason)
    run.metric("read_us_p99").value
    run.series()["t_s"]                             # and a list for each figure of the seconds
    run.histogram("driver.ops.select.service").percentile_ns(0.99)
    run.to_pandas(), run.to_pandas("series")        # where pandas is installed

The shape of a record is docs/reference/record.schema.json. A figure is a number, or None where it is unknown; the reason is
beside it. An unknown figure is never 0. Keys that this file does not know are in `run.record`, the record as it is.
"""

import json
import os
import re
from collections import namedtuple

SCHEMA = "assay/2"

Metric = namedtuple("Metric", "key scope name value unit better layer primary reason")
Metric.__doc__ = "One figure of a record. `value` is None where it is unknown, and `reason` says why."


class NoRecord(ValueError):
    """The path holds no record of assay."""


class OtherSchema(ValueError):
    """The record has another schema than this file reads."""


def read(path):
    """The record in a run directory, or the record.json that is named."""
    path = os.fspath(path)
    file = os.path.join(path, "record.json") if os.path.isdir(path) else path
    if not os.path.exists(file):
        if os.path.exists(os.path.join(path, "repeat.json")):
            raise NoRecord(f"{path}: a directory of repeats; read each of the runs in it")
        raise NoRecord(f"{path}: no run of assay: there is no {file}")
    try:
        with open(file, encoding="utf-8") as stream:
            record = json.load(stream, object_pairs_hook=_spelled_keys)
    except ValueError as error:
        raise NoRecord(f"{file}: not JSON: {error}") from None
    schema = record.get("schema") if isinstance(record, dict) else None
    if not isinstance(schema, str) or not schema.startswith("assay"):
        raise NoRecord(f"{file}: JSON, but no record of assay: it names no schema")
    if schema != SCHEMA:
        raise OtherSchema(f"{file}: has schema {schema}; this file reads {SCHEMA}: take the assay_read of the assay that wrote it")
    return Run(record, file)


def figure(found):
    """A figure as the pair of its value and the reason why there is none, one of which is None."""
    if isinstance(found, dict):
        return None, found.get("na", "unknown")
    if found is None:
        return None, "absent"
    return found, None


class Run:
    """One record."""

    def __init__(self, record, file):
        self.record = record
        self.file = file
        self.kind = record["kind"]

    def metrics(self):
        """All figures under stable keys, as a list of `Metric`."""
        return [self._metric(row) for row in self.record.get("metrics", [])]

    @staticmethod
    def _metric(row):
        value, reason = figure(row.get("value"))
        better = row.get("better", "neither")
        return Metric(
            key=_spelled(row["key"]),
            scope=row.get("scope", ""),
            name=row.get("name", ""),
            value=value,
            unit=row.get("unit", ""),
            better=None if better == "neither" else better,
            layer=row.get("layer", ""),
            primary=row.get("primary", False),
            reason=reason,
        )

    def metric(self, key, scope=""):
        """The metric of a key, and of a scope where a record has several."""
        found = [metric for metric in self.metrics() if metric.key == key]
        for metric in found:
            if metric.scope == scope:
                return metric
        scopes = ", ".join(repr(metric.scope) for metric in found)
        raise KeyError(f"{key}: its scopes are {scopes}" if found else f"{key}: no metric of this record")

    def series(self):
        """The figures by second: `t_s`, `in_window` and a list for each key, with None where a figure is unknown."""
        series = self.record.get("series", {})
        columns = {"t_s": series.get("t_s", []), "in_window": series.get("in_window", [])}
        for key, column in series.get("metrics", {}).items():
            columns[key] = [figure(found)[0] for found in column]
        return columns

    def histograms(self):
        """All distributions in which something was counted, by their place in the record."""
        found = {}
        _collect(self.record, (), found)
        return found

    def histogram(self, place):
        """The distribution at a place, or at the only place that has these words: `select.service`."""
        found = self.histograms()
        if place in found:
            return found[place]
        near = [name for name in found if place in name]
        if len(near) == 1:
            return found[near[0]]
        what = "is in several places" if near else "is in no place with a distribution"
        raise KeyError(f"{place} {what}: {', '.join(near or found) or 'this record has none'}")

    def to_pandas(self, what="metrics"):
        """The metrics, or with "series" the seconds, as a DataFrame; needs pandas."""
        import pandas

        if what == "metrics":
            return pandas.DataFrame(self.metrics(), columns=Metric._fields)
        if what == "series":
            return pandas.DataFrame(self.series())
        raise ValueError(f'{what}: "metrics" or "series"')


class Histogram:
    """Durations in ns: values below 128 each by itself, then 64 slots for each power of two."""

    SAMPLES_BEYOND = 10

    def __init__(self, found):
        self.count = found["count"]
        self.sum_ns = found["sum_ns"]
        self.min_ns = found.get("min_ns")
        self.max_ns = found.get("max_ns")
        self.slots = found["slots"]

    def buckets(self):
        """Lowest value, first value beyond, and count of each slot in use; ns."""
        for slot, count in self.slots:
            low, width = _slot(slot)
            yield low, low + width, count

    def mean_ns(self):
        return self.sum_ns / self.count if self.count else None

    def percentile_ns(self, share):
        """As assay computes it: the middle of the slot of rank ceil(share x count), within minimum and maximum.

        None with fewer than ten durations beyond it: such a percentile is unknown, not small.
        """
        billionths = round(min(max(share, 0), 1) * 1_000_000_000)
        rank = min(max(-(-billionths * self.count // 1_000_000_000), 1), self.count)
        if self.count - rank < self.SAMPLES_BEYOND:
            return None
        return self._value(rank)

    def median_ns(self):
        """The median, however few durations were counted."""
        return self._value((self.count + 1) // 2) if self.count else None

    def _value(self, rank):
        seen = 0
        for low, beyond, count in self.buckets():
            seen += count
            if seen >= rank:
                return min(max(low + (beyond - low) // 2, self.min_ns), self.max_ns)
        return None


def _slot(slot):
    if slot < 128:
        return slot, 1
    shift = slot // 64 - 1
    return (64 + slot % 64) << shift, 1 << shift


def _collect(found, place, into):
    if isinstance(found, dict):
        if isinstance(found.get("slots"), list) and "sum_ns" in found:
            if found["count"]:
                into[".".join(place)] = Histogram(found)
            return
        for key, below in found.items():
            # The name of the part is that of what it belongs to: `driver.ops.select.service`.
            _collect(below, place if key == "hist_ns" else (*place, key), into)
    elif isinstance(found, list):
        names = set()
        for at, below in enumerate(found):
            name = below.get("kind") or below.get("name") or below.get("request") if isinstance(below, dict) else None
            name = name if isinstance(name, str) and name not in names else str(at)
            names.add(name)
            _collect(below, (*place, name), into)


# Records of this schema had some keys the other way round, `op_p99_us`; today it is unit, then statistic.
_TURNED = re.compile(r"(.*[_/])?(p\d+|avg|mean|min|max|stddev|mdev)_us")


def _spelled(key):
    turned = _TURNED.fullmatch(key)
    return f"{turned[1] or ''}us_{turned[2]}" if turned else key


def _spelled_keys(pairs):
    return {_spelled(key): value for key, value in pairs}
