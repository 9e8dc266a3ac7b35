//! Metric families, as OpenMetrics 1.0 and as Prometheus' text format 0.0.4: grouped, escaped, each set of labels once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Names and values of a sample's labels.
pub(super) type Labels = Vec<(&'static str, String)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Gauge,
    Counter,
    Histogram,
    Info,
}

impl Kind {
    /// What the name of a sample ends in beyond that of its family.
    fn ending(self) -> &'static str {
        match self {
            Self::Counter => "_total",
            Self::Info => "_info",
            Self::Gauge | Self::Histogram => "",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }
}

/// What a family is; the unit is how its name ends, or empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meta<'a> {
    pub(super) name: &'a str,
    pub(super) kind: Kind,
    pub(super) unit: &'static str,
    pub(super) help: &'a str,
}

impl<'a> Meta<'a> {
    pub(super) fn new(name: &'a str, kind: Kind, unit: &'static str, help: &'a str) -> Self {
        Self { name, kind, unit, help }
    }
}

#[derive(Debug)]
struct Family {
    kind: Kind,
    unit: &'static str,
    help: String,
    /// Sets of labels that stand already.
    seen: BTreeSet<String>,
    lines: String,
}

/// Families by name. Every sample has the labels of the run.
#[derive(Debug)]
pub(super) struct Families {
    common: Labels,
    by_name: BTreeMap<String, Family>,
    /// Behind every value: a space and the instant, s since 1970; or nothing.
    stamp: String,
}

impl Families {
    pub(super) fn new(common: Labels, at_s: Option<f64>) -> Self {
        Self { common, by_name: BTreeMap::new(), stamp: at_s.map_or_else(String::new, |at| format!(" {at}")) }
    }

    fn labels(&self, own: &Labels) -> String {
        let all = self.common.iter().chain(own).filter(|(_, value)| !value.is_empty());
        let pairs: Vec<String> = all.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        pairs.join(",")
    }

    /// The family; one that stands with another kind keeps its name, and this gets one of its own.
    fn family(&mut self, meta: &Meta<'_>) -> (&mut Family, String) {
        let taken = |family: &Family| family.kind != meta.kind || family.unit != meta.unit;
        let name = match self.by_name.get(meta.name) {
            Some(family) if taken(family) => format!("{}_{}", meta.kind.name(), meta.name),
            _ => meta.name.to_owned(),
        };
        let family = self.by_name.entry(name.clone()).or_insert_with(|| Family {
            kind: meta.kind,
            unit: meta.unit,
            help: meta.help.to_owned(),
            seen: BTreeSet::new(),
            lines: String::new(),
        });
        (family, name)
    }

    /// A sample of a gauge, or the total of a counter.
    pub(super) fn put(&mut self, meta: &Meta<'_>, own: &Labels, value: f64) {
        let labels = self.labels(own);
        let stamp = self.stamp.clone();
        let (family, name) = self.family(meta);
        if !family.seen.insert(labels.clone()) {
            return;
        }
        let ending = meta.kind.ending();
        family.lines.push_str(&format!("{name}{ending}{{{labels}}} {value}{stamp}\n"));
    }

    /// A histogram of durations; `buckets` are counts up to and with each bound, s, ascending.
    pub(super) fn put_histogram(
        &mut self,
        meta: &Meta<'_>,
        own: &Labels,
        buckets: &[(f64, u64)],
        sum_s: f64,
        count: u64,
    ) {
        let labels = self.labels(own);
        let stamp = self.stamp.clone();
        let (family, name) = self.family(meta);
        if !family.seen.insert(labels.clone()) {
            return;
        }
        let comma = if labels.is_empty() { "" } else { "," };
        for (bound, upto) in buckets {
            let _ = writeln!(family.lines, "{name}_bucket{{{labels}{comma}le=\"{bound:?}\"}} {upto}{stamp}");
        }
        let _ = writeln!(family.lines, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {count}{stamp}");
        let _ = writeln!(family.lines, "{name}_count{{{labels}}} {count}{stamp}");
        let _ = writeln!(family.lines, "{name}_sum{{{labels}}} {sum_s}{stamp}");
    }

    /// Families that say something: one whose series has no figure at all does not.
    fn told(self) -> impl Iterator<Item = (String, Family)> {
        self.by_name.into_iter().filter(|(_, family)| !family.lines.is_empty())
    }

    /// A family is named as its samples are; there is no kind for facts, no unit and no end, and a quote in a help stays as it is.
    pub(super) fn prometheus_text(self) -> String {
        let mut out = String::new();
        for (name, family) in self.told() {
            let kind = if family.kind == Kind::Info { Kind::Gauge } else { family.kind };
            let (name, kind) = (name + family.kind.ending(), kind.name());
            let help = family.help.replace('\\', "\\\\").replace('\n', "\\n");
            out.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{}", family.lines));
        }
        out
    }

    pub(super) fn openmetrics_text(self) -> String {
        let mut out = String::new();
        for (name, family) in self.told() {
            out.push_str(&format!("# TYPE {name} {}\n", family.kind.name()));
            if !family.unit.is_empty() {
                out.push_str(&format!("# UNIT {name} {}\n", family.unit));
            }
            out.push_str(&format!("# HELP {name} {}\n", escaped(&family.help)));
            out.push_str(&family.lines);
        }
        out.push_str("# EOF\n");
        out
    }
}

/// Backslash, quote and line end as the format wants them.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
