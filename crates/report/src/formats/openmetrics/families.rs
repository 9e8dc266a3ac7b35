//! Metric families, as OpenMetrics 1.0 and as Prometheus' text format 0.0.4: grouped, escaped, each set of labels once.

use super::Series;
use std::collections::{BTreeMap, BTreeSet};

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

/// A value, below its family.
#[derive(Debug)]
struct Sample {
    /// What its name ends in beyond that of its family.
    ending: &'static str,
    labels: Labels,
    value: f64,
}

#[derive(Debug)]
struct Family {
    kind: Kind,
    unit: &'static str,
    help: String,
    /// Sets of labels that stand already.
    seen: BTreeSet<Labels>,
    samples: Vec<Sample>,
}

/// Families by name. Every sample has the labels of the run.
#[derive(Debug)]
pub(super) struct Families {
    common: Labels,
    by_name: BTreeMap<String, Family>,
    /// The instant of every value, s since 1970.
    at_s: Option<f64>,
}

impl Families {
    pub(super) fn new(common: Labels, at_s: Option<f64>) -> Self {
        Self { common, by_name: BTreeMap::new(), at_s }
    }

    fn labels(&self, own: &Labels) -> Labels {
        self.common.iter().chain(own).filter(|(_, value)| !value.is_empty()).cloned().collect()
    }

    /// The family; one that stands with another kind keeps its name, and this gets one of its own.
    fn family(&mut self, meta: &Meta<'_>) -> &mut Family {
        let taken = |family: &Family| family.kind != meta.kind || family.unit != meta.unit;
        let name = match self.by_name.get(meta.name) {
            Some(family) if taken(family) => format!("{}_{}", meta.kind.name(), meta.name),
            _ => meta.name.to_owned(),
        };
        self.by_name.entry(name).or_insert_with(|| Family {
            kind: meta.kind,
            unit: meta.unit,
            help: meta.help.to_owned(),
            seen: BTreeSet::new(),
            samples: Vec::new(),
        })
    }

    /// A sample of a gauge, or the total of a counter.
    pub(super) fn put(&mut self, meta: &Meta<'_>, own: &Labels, value: f64) {
        let labels = self.labels(own);
        let family = self.family(meta);
        if family.seen.insert(labels.clone()) {
            family.samples.push(Sample { ending: meta.kind.ending(), labels, value });
        }
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
        let family = self.family(meta);
        if !family.seen.insert(labels.clone()) {
            return;
        }
        let bounds = buckets.iter().map(|(bound, upto)| (format!("{bound:?}"), *upto));
        for (bound, upto) in bounds.chain([("+Inf".to_owned(), count)]) {
            let labels = labels.iter().cloned().chain([("le", bound)]).collect();
            family.samples.push(Sample { ending: "_bucket", labels, value: upto as f64 });
        }
        family.samples.push(Sample { ending: "_count", labels: labels.clone(), value: count as f64 });
        family.samples.push(Sample { ending: "_sum", labels, value: sum_s });
    }

    /// The samples of a family as lines.
    fn lines(&self, name: &str, family: &Family) -> String {
        let stamp = self.at_s.map_or_else(String::new, |at_s| format!(" {at_s}"));
        let line = |Sample { ending, labels, value }: &Sample| {
            let pairs: Vec<String> =
                labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
            format!("{name}{ending}{{{}}} {value}{stamp}\n", pairs.join(","))
        };
        family.samples.iter().map(line).collect()
    }

    /// A family is named as its samples are; there is no kind for facts, no unit and no end, and a quote in a help stays as it is.
    pub(super) fn prometheus_text(&self) -> String {
        let mut out = String::new();
        for (name, family) in &self.by_name {
            let kind = if family.kind == Kind::Info { Kind::Gauge } else { family.kind };
            let help = family.help.replace('\\', "\\\\").replace('\n', "\\n");
            let (ending, kind, lines) = (family.kind.ending(), kind.name(), self.lines(name, family));
            out.push_str(&format!("# HELP {name}{ending} {help}\n# TYPE {name}{ending} {kind}\n{lines}"));
        }
        out
    }

    pub(super) fn openmetrics_text(&self) -> String {
        let mut out = String::new();
        for (name, family) in &self.by_name {
            out.push_str(&format!("# TYPE {name} {}\n", family.kind.name()));
            if !family.unit.is_empty() {
                out.push_str(&format!("# UNIT {name} {}\n", family.unit));
            }
            out.push_str(&format!("# HELP {name} {}\n", escaped(&family.help)));
            out.push_str(&self.lines(name, family));
        }
        out.push_str("# EOF\n");
        out
    }

    /// Every sample with its whole name.
    pub(super) fn series(self) -> Vec<Series> {
        let of_family = |(name, family): (String, Family)| {
            let one = move |sample: Sample| Series {
                name: format!("{name}{}", sample.ending),
                labels: sample.labels,
                value: sample.value,
            };
            family.samples.into_iter().map(one)
        };
        self.by_name.into_iter().flat_map(of_family).collect()
    }
}

/// Backslash, quote and line end as the format wants them.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
