//! A record for monitoring systems: what was counted as counters, what was timed as histograms, the rest as gauges, in
//! seconds, bytes and ratios; as OpenMetrics 1.0 (<https://prometheus.io/docs/specs/om/open_metrics_spec/>) and as
//! Prometheus' text format 0.0.4, which node_exporter's textfile collector reads.

mod families;
mod units;

use super::{Format, PLAIN};
use assay_measure::families::{Exposition, Kind, Labels, Value};
use assay_measure::histogram::Histogram;
use assay_measure::record::metric::Group;
use assay_measure::record::{Figure, Record};
use families::{Families, Meta};
use jiff::Timestamp;
use units::{Base, base, clean};

pub(super) const OPENMETRICS: Format = Format {
    name: "openmetrics",
    help: "The summary for a monitoring system: OpenMetrics text, in seconds and bytes",
    media_type: "application/openmetrics-text",
    write: |input, out| {
        let record = input.record()?;
        // Every sample is of the run's end.
        let families = summary(record, seconds_since_1970(&record.interval.end));
        Ok(out.write_all(families.openmetrics_text().as_bytes())?)
    },
    ..PLAIN
};

pub(super) const PROMETHEUS: Format = Format {
    name: "prometheus",
    help: "The same for node_exporter's textfile collector: Prometheus text without times",
    media_type: "text/plain; version=0.0.4",
    write: |input, out| {
        let record = input.record()?;
        let mut families = summary(record, None);
        if let Some(end) = seconds_since_1970(&record.interval.end) {
            let help = "End of the measured window, since 1970";
            let meta = Meta::new("assay_run_end_timestamp_seconds", Kind::Gauge, "seconds", help);
            families.put(&meta, &Labels::new(), end);
        }
        Ok(out.write_all(families.prometheus_text().as_bytes())?)
    },
    ..PLAIN
};

/// The figures of the same summary, for who takes them from this program; none of a record that says not when it was.
#[must_use]
pub fn exposition(record: &Record) -> Option<Exposition> {
    let end_s = seconds_since_1970(&record.interval.end)?;
    let begin_s = seconds_since_1970(&record.interval.begin).unwrap_or(end_s);
    Some(Exposition { begin_s, end_s, families: summary(record, None).all() })
}

/// The summary of a run, every sample at one instant where there is one.
fn summary(record: &Record, at_s: Option<f64>) -> Families {
    let mut families = Families::new(common(record), at_s);
    about(record, &mut families);
    counters(record, &mut families);
    events(record, &mut families);
    operations(record, &mut families);
    requests(record, &mut families);
    host(record, &mut families);
    gauges(record, &mut families);
    families
}

/// The labels of every sample.
fn common(record: &Record) -> Labels {
    let run = &record.run;
    let host = record.host.facts.iter().find(|fact| fact.name == "hostname");
    vec![
        ("run", run.id.clone()),
        ("label", run.label.clone().unwrap_or_default()),
        ("workload", run.workload.clone()),
        ("target", run.engine.clone()),
        ("host", host.map_or_else(String::new, |fact| fact.value.clone())),
    ]
}

fn about(record: &Record, families: &mut Families) {
    let run = &record.run;
    let own = vec![
        ("version", run.version.clone()),
        ("verdict", run.verdict.clone()),
        ("started", run.started.clone()),
        ("seed", run.seed.to_string()),
    ];
    let help = "What ran, and how it ended";
    families.put(&Meta::new("assay_run", Kind::Info, "", help), &own, 1.0);
    let none = Labels::new();
    if let Some(elapsed) = record.interval.elapsed_s.value() {
        let help = "Length of the measured window";
        let meta = Meta::new("assay_run_elapsed_seconds", Kind::Gauge, "seconds", help);
        families.put(&meta, &none, elapsed);
    }
    if run.sessions > 0 {
        let meta = Meta::new("assay_run_sessions", Kind::Gauge, "", "Sessions planned");
        families.put(&meta, &none, run.sessions as f64);
    }
}

/// A figure that there is, or an entry in the list of those that there are not.
fn put(families: &mut Families, meta: &Meta<'_>, own: &Labels, figure: &Figure, factor: f64) {
    match figure {
        Figure::Na(reason) => {
            let mut own = own.clone();
            own.insert(0, ("metric", meta.name.to_owned()));
            own.push(("reason", reason.clone()));
            let help = "Figures that are unknown, with the reason";
            let meta = Meta::new("assay_unknown", Kind::Info, "", help);
            families.put(&meta, &own, 1.0);
        }
        // A factor of 1 leaves counts exact.
        figure => {
            let value = figure.scaled(factor).value().unwrap_or_default();
            families.put(meta, own, value);
        }
    }
}

fn counters(record: &Record, families: &mut Families) {
    for (key, row) in &record.instance.stats {
        let Base { name, factor, unit, .. } = base(key);
        let own = vec![("source", row.source.clone())];
        let help = format!("{} in the measured window", row.name);
        let name = format!("assay_{name}");
        let meta = Meta::new(&name, Kind::Counter, unit, &help);
        put(families, &meta, &own, &row.total, factor);
    }
}

/// Bounds of the power-of-two buckets, s, and the counts up to each.
fn cumulative(buckets: &[u64]) -> Vec<(f64, u64)> {
    let mut upto = 0_u64;
    // The last bucket has no bound.
    let bounded = &buckets[..buckets.len().saturating_sub(1)];
    let counts = bounded.iter().enumerate();
    counts
        .map(|(i, n)| {
            upto = upto.saturating_add(*n);
            ((1_u64 << i) as f64 / 1e6, upto)
        })
        .collect()
}

fn histogram(families: &mut Families, name: &str, help: &str, own: &Labels, durations: &Histogram) {
    if !durations.is_empty() {
        let buckets = cumulative(&durations.pow2_us());
        let sum_s = durations.sum_ns() as f64 / 1e9;
        let meta = Meta::new(name, Kind::Histogram, "seconds", help);
        families.put(&meta, own, Value::Durations { buckets, sum_s, count: durations.count() });
    }
}

fn events(record: &Record, families: &mut Families) {
    let help = "Waits in the measured window by duration";
    let waits = "Waits of events that are not timed one by one";
    let waits = Meta::new("assay_event_waits", Kind::Counter, "", waits);
    let time = "Time of events that are not timed one by one";
    let name = "assay_event_wait_time_seconds";
    let time = Meta::new(name, Kind::Counter, "seconds", time);
    for event in &record.instance.events {
        let own = vec![
            ("event", event.name.clone()),
            ("class", event.class.clone()),
            ("actor", event.actor.clone()),
            ("source", event.source.clone()),
        ];
        if event.is_timed_singly() {
            let name = "assay_event_wait_seconds";
            histogram(families, name, help, &own, &event.hist_ns);
        } else {
            put(families, &waits, &own, &event.count, 1.0);
            put(families, &time, &own, &event.total_us, 1e-6);
        }
    }
}

fn operations(record: &Record, families: &mut Families) {
    for op in &record.driver.ops {
        let own = vec![("op", op.kind.clone())];
        let help = "Operations by duration";
        let name = "assay_operation_seconds";
        histogram(families, name, help, &own, &op.service.hist_ns);
    }
    let help = "Operations that failed in the window";
    let meta = Meta::new("assay_operation_errors", Kind::Counter, "", help);
    for (class, n) in &record.driver.errors_count {
        families.put(&meta, &vec![("class", class.clone())], *n as f64);
    }
}

fn requests(record: &Record, families: &mut Families) {
    for layers in &record.instance.layers {
        let own = vec![
            ("request", layers.request.clone()),
            ("event", layers.event.clone()),
            ("direction", layers.direction.clone()),
        ];
        let help = "Requests from submission to completion, layer syscall";
        let name = "assay_request_seconds";
        histogram(families, name, help, &own, &layers.syscall.latency.hist_ns);
    }
}

fn host(record: &Record, families: &mut Families) {
    let help = "CPU time of the host in the measured window";
    let meta = Meta::new("assay_host_cpu_seconds", Kind::Counter, "seconds", help);
    for (mode, time) in &record.os.cpu_s {
        put(families, &meta, &vec![("mode", mode.clone())], time, 1.0);
    }
    for disk in &record.os.disk {
        let own = vec![("device", disk.name.clone())];
        let counts = [
            ("reads", "", "Reads completed", disk.reads_count),
            ("writes", "", "Writes completed", disk.writes_count),
            ("flushes", "", "Flushes completed", disk.flushes_count),
            ("read_bytes", "bytes", "Bytes read", disk.read_bytes),
            ("written_bytes", "bytes", "Bytes written", disk.write_bytes),
        ];
        for (what, unit, help, value) in counts {
            let name = format!("assay_device_{what}");
            let meta = Meta::new(&name, Kind::Counter, unit, help);
            families.put(&meta, &own, value as f64);
        }
    }
}

/// What is neither a counter nor a histogram above.
fn gauges(record: &Record, families: &mut Families) {
    let counted = [Group::Statistic, Group::LoadProfile, Group::Event];
    let all = record.metrics.iter();
    for metric in all.filter(|metric| !counted.contains(&metric.group)) {
        let Base { name, stat, factor, unit } = base(&metric.key);
        let own = vec![("scope", metric.scope.clone()), ("stat", stat), ("layer", clean(&metric.layer))];
        // Several statistics share a family: they are told apart by a label.
        let name = format!("assay_{name}");
        let help = format!("{name} of the measured window");
        let meta = Meta::new(&name, Kind::Gauge, unit, &help);
        put(families, &meta, &own, &metric.value, factor);
    }
}

/// Seconds since 1970 of an RFC 3339 time in UTC.
fn seconds_since_1970(text: &str) -> Option<f64> {
    let instant: Timestamp = text.parse().ok().filter(|_| text.ends_with('Z'))?;
    Some(instant.as_second() as f64 + f64::from(instant.subsec_nanosecond()) / 1e9)
}

#[cfg(test)]
mod tests {
    use super::seconds_since_1970;

    #[test]
    fn instants_are_seconds_since_1970() {
        assert_eq!(seconds_since_1970("1970-01-01T00:00:00Z"), Some(0.0));
        assert_eq!(seconds_since_1970("2000-02-29T12:00:00.5Z"), Some(951_825_600.5));
        assert_eq!(seconds_since_1970("2026-11-21T19:11:06Z"), Some(1_795_288_266.0));
        for bad in ["", "2026-11-21", "2026-13-01T00:00:00Z", "2026-11-21T19:11:06+01:00", "aZ", "9-9T9Z"] {
            assert_eq!(seconds_since_1970(bad), None, "{bad}");
        }
    }
}
