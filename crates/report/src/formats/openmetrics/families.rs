//! Metric families, as OpenMetrics 1.0 and as Prometheus' text format 0.0.4: grouped, escaped, each set of labels once.

use assay_measure::families::{Family, Kind, Labels, Point, Sample, Value};
use std::collections::{BTreeMap, BTreeSet};

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

/// Families by name, each with the sets of labels that stand already. Every point has the labels of the run.
#[derive(Debug)]
pub(super) struct Families {
    common: Labels,
    by_name: BTreeMap<String, (Family, BTreeSet<Labels>)>,
    /// The instant of every value, s since 1970.
    at_s: Option<f64>,
}

impl Families {
    pub(super) fn new(common: Labels, at_s: Option<f64>) -> Self {
        Self { common, by_name: BTreeMap::new(), at_s }
    }

    /// Adds a point. A family that stands with another kind keeps its name, and this gets one of its own.
    pub(super) fn put(&mut self, meta: &Meta<'_>, own: &Labels, value: impl Into<Value>) {
        let labels: Labels = self.common.iter().chain(own).filter(|(_, value)| !value.is_empty()).cloned().collect();
        let &Meta { kind, unit, help, .. } = meta;
        let name = match self.by_name.get(meta.name) {
            Some((family, _)) if family.kind != kind || family.unit != unit => format!("{}_{}", word(kind), meta.name),
            _ => meta.name.to_owned(),
        };
        let (family, seen) = self.by_name.entry(name).or_insert_with_key(|name| {
            let (name, help) = (name.clone(), help.to_owned());
            (Family { name, kind, unit, help, points: Vec::new() }, BTreeSet::new())
        });
        if seen.insert(labels.clone()) {
            family.points.push(Point { labels, value: value.into() });
        }
    }

    /// All of them, by name.
    pub(super) fn all(self) -> Vec<Family> {
        self.by_name.into_values().map(|(family, _)| family).collect()
    }

    /// The samples of a family as lines.
    fn lines(&self, family: &Family) -> String {
        let stamp = self.at_s.map_or_else(String::new, |at_s| format!(" {at_s}"));
        let line = |Sample { name, labels, value }: Sample| {
            let pairs: Vec<String> =
                labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
            format!("{name}{{{}}} {value}{stamp}\n", pairs.join(","))
        };
        family.samples().into_iter().map(line).collect()
    }

    /// A family is named as its samples are; there is no kind for facts, no unit and no end, and a quote in a help stays as it is.
    pub(super) fn prometheus_text(&self) -> String {
        let mut out = String::new();
        for (name, (family, _)) in &self.by_name {
            let kind = if family.kind == Kind::Info { Kind::Gauge } else { family.kind };
            let help = family.help.replace('\\', "\\\\").replace('\n', "\\n");
            let (ending, kind, lines) = (family.kind.ending(), word(kind), self.lines(family));
            out.push_str(&format!("# HELP {name}{ending} {help}\n# TYPE {name}{ending} {kind}\n{lines}"));
        }
        out
    }

    pub(super) fn openmetrics_text(&self) -> String {
        let mut out = String::new();
        for (name, (family, _)) in &self.by_name {
            out.push_str(&format!("# TYPE {name} {}\n", word(family.kind)));
            if !family.unit.is_empty() {
                out.push_str(&format!("# UNIT {name} {}\n", family.unit));
            }
            out.push_str(&format!("# HELP {name} {}\n", escaped(&family.help)));
            out.push_str(&self.lines(family));
        }
        out.push_str("# EOF\n");
        out
    }
}

/// What the formats call a kind.
fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Gauge => "gauge",
        Kind::Counter => "counter",
        Kind::Histogram => "histogram",
        Kind::Info => "info",
    }
}

/// Backslash, quote and line end as the format wants them.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
