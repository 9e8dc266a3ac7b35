//! Figures as a monitoring system takes them: families of points, by the data model of OpenMetrics. Every form in which they leave
//! the program is an encoding of these.

/// Names and values of a point's labels; none is empty.
pub type Labels = Vec<(&'static str, String)>;

/// What a family's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// They rise and fall.
    Gauge,
    /// Totals since the begin of the window.
    Counter,
    /// Durations by length, since the begin of the window.
    Histogram,
    /// 1: what there is to know is in the labels.
    Info,
}

impl Kind {
    /// What the name of a sample ends in beyond that of its family.
    #[must_use]
    pub fn ending(self) -> &'static str {
        match self {
            Self::Counter => "_total",
            Self::Info => "_info",
            Self::Gauge | Self::Histogram => "",
        }
    }
}

/// Points that differ in their labels alone.
#[derive(Clone, Debug)]
pub struct Family {
    /// Its name, which ends in its unit.
    pub name: String,
    /// What its values are.
    pub kind: Kind,
    /// The base unit; empty where it has no name of its own.
    pub unit: &'static str,
    /// What it is.
    pub help: String,
    /// Its points.
    pub points: Vec<Point>,
}

/// A value with its labels.
#[derive(Clone, Debug)]
pub struct Point {
    /// Its labels, those of the run first.
    pub labels: Labels,
    /// The value.
    pub value: Value,
}

/// What a point holds.
#[derive(Clone, Debug)]
pub enum Value {
    /// Of all kinds but a histogram.
    Number(f64),
    /// Of a histogram.
    Durations {
        /// Bounds, s, ascending, and the counts up to and with each.
        buckets: Vec<(f64, u64)>,
        /// Of all durations, s.
        sum_s: f64,
        /// All of them, those above the last bound too.
        count: u64,
    },
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

/// One number, as Prometheus has them.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Its name, with what its kind adds to that of the family.
    pub name: String,
    /// Its labels.
    pub labels: Labels,
    /// The number.
    pub value: f64,
}

impl Family {
    /// Its points as samples: a histogram is one for each bound, their number and their sum.
    #[must_use]
    pub fn samples(&self) -> Vec<Sample> {
        let mut all = Vec::new();
        let mut put = |ending: &str, labels: Labels, value: f64| {
            all.push(Sample { name: format!("{}{ending}", self.name), labels, value });
        };
        for Point { labels, value } in &self.points {
            match value {
                Value::Number(number) => put(self.kind.ending(), labels.clone(), *number),
                Value::Durations { buckets, sum_s, count } => {
                    let bounds = buckets.iter().map(|(bound, upto)| (format!("{bound:?}"), *upto));
                    for (bound, upto) in bounds.chain([("+Inf".to_owned(), *count)]) {
                        let labels = labels.iter().cloned().chain([("le", bound)]).collect();
                        put("_bucket", labels, upto as f64);
                    }
                    put("_count", labels.clone(), *count as f64);
                    put("_sum", labels.clone(), *sum_s);
                }
            }
        }
        all
    }
}

/// The figures of a window.
#[derive(Clone, Debug)]
pub struct Exposition {
    /// Begin of the window, s since 1970: totals count from here.
    pub begin_s: f64,
    /// Its end so far, s since 1970: the instant of every value.
    pub end_s: f64,
    /// The figures.
    pub families: Vec<Family>,
}
