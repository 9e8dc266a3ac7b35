//! The two sides of one figure: the values of each group's runs, and the batch means of their seconds.
//!
//! Knows records; knows nothing of verdicts.

use assay_measure::record::Metric;
use assay_measure::record::{Figure, Record};
use assay_measure::statistics::{Difference, Sample, mean, stddev};
use std::collections::BTreeMap;

/// Fewest batches that say anything of their scatter.
pub(super) const BATCHES: usize = 10;
/// Most batches: beyond that longer ones are better than more (Schmeiser, Operations Research 30, 1982). So many are taken, for of
/// ten the correlation of neighbours is known too badly: a third less was shown in 85 of 100 pairs of a minute, and is in all.
const MOST_BATCHES: usize = 30;
/// Runs shorter than this tell little of what changes within minutes, s.
const LONG_S: f64 = 300.0;
/// Fewest repeats on both sides that show what differs from run to run.
pub(super) const REPEATS: usize = 3;

/// The runs of one side.
#[derive(Clone, Debug)]
pub struct RunGroup<'a> {
    /// As named on the command line.
    pub name: String,
    /// One run, or several repeats of one; never empty.
    pub records: Vec<&'a Record>,
}

/// The figures of a group by key, run by run.
pub(super) struct Figures<'a> {
    pub(super) records: &'a [&'a Record],
    runs: Vec<BTreeMap<String, Metric>>,
    order: Vec<String>,
}

/// Names of events that mean the same on other storage, first ours.
const ALIASES: [(&str, &str); 2] = [
    ("db_file_sequential_read", "cell_single_block_physical_read"),
    ("db_file_scattered_read", "cell_multiblock_physical_read"),
];

/// A metric's key with the event's usual name in it.
fn usual_key(metric: &Metric) -> String {
    let key = metric.full_key();
    let found = ALIASES.iter().find_map(|(ours, other)| key.strip_prefix(other).map(|rest| format!("{ours}{rest}")));
    found.unwrap_or(key)
}

impl<'a> Figures<'a> {
    /// `costs`: what prices add to the figures of each run.
    pub(super) fn of(group: &'a RunGroup<'a>, costs: &[Vec<Metric>]) -> Self {
        let mut order = Vec::new();
        let mut runs = Vec::new();
        for (at, record) in group.records.iter().enumerate() {
            let mut run = BTreeMap::new();
            let more = costs.get(at).into_iter().flatten().cloned();
            for metric in record.metrics.iter().cloned().chain(more) {
                let key = usual_key(&metric);
                if !order.contains(&key) {
                    order.push(key.clone());
                }
                run.insert(key, metric);
            }
            runs.push(run);
        }
        Self { records: &group.records, runs, order }
    }

    /// Every key, in the order of the reports.
    pub(super) fn keys(&self) -> &[String] {
        &self.order
    }

    /// What the figure is, from the first run that has it.
    pub(super) fn about(&self, key: &str) -> Option<&Metric> {
        self.runs.iter().find_map(|run| run.get(key))
    }

    /// One column of every run, taken together: the only value, or the geometric mean of several.
    pub(super) fn joined(&self, key: &str, column: impl Fn(&Metric) -> Figure) -> Figure {
        let mut values = Vec::new();
        for run in &self.runs {
            let figure = run.get(key).map_or_else(Figure::default, &column);
            match figure.value() {
                Some(value) if self.runs.len() > 1 => values.push(value),
                _ => return figure,
            }
        }
        together(&values)
    }

    /// The figure in every run, or why one has none.
    pub(super) fn values(&self, key: &str) -> Result<Vec<f64>, String> {
        let values = self.runs.iter().map(|run| {
            let figure = run.get(key).map_or_else(Figure::default, |m| m.value.clone());
            match (figure.value(), figure.reason()) {
                (Some(value), _) => Ok(value),
                (None, reason) => Err(reason.unwrap_or("absent").to_owned()),
            }
        });
        values.collect()
    }

    /// Standard deviation between the runs over their mean, %.
    pub(super) fn spread_pct(&self, key: &str) -> Figure {
        match self.values(key) {
            Ok(values) if values.len() > 1 => {
                Figure::decimal(100.0 * stddev(&values)).per(mean(&values), "nothing moved")
            }
            Ok(_) => Figure::na("one run"),
            Err(reason) => Figure::na(&reason),
        }
    }

    /// Batch means of the figure's seconds over all runs of the group.
    pub(super) fn batches(&self, key: &str) -> Result<Batches, Lack> {
        let mut all = Batches { logs: Vec::new(), batch_s: f64::INFINITY, shortest_s: f64::INFINITY };
        for (run, record) in self.runs.iter().zip(self.records) {
            let metric = run.get(key).ok_or(Lack::NoSeries)?;
            let (steps, step_s) = by_step(record, metric)?;
            all.take(&steps, step_s)?;
        }
        Ok(all)
    }
}

/// The geometric mean, of which the ratio of two is the ratio that logarithms give; the plain mean where a value is 0.
fn together(values: &[f64]) -> Figure {
    if values.iter().all(|value| *value > 0.0) {
        let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        return Figure::decimal(mean(&logs).exp());
    }
    Figure::decimal(mean(values))
}

/// Why a figure has no batch means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// It is not kept by step.
    NoSeries,
    /// The number of whole steps, too few for ten batches.
    TooFew(usize),
    /// A batch in which it was 0 or unknown: there is no logarithm.
    Nothing,
}

/// Logarithms of batch means.
#[derive(Clone, Debug)]
pub(super) struct Batches {
    /// In order of time, run after run.
    pub(super) logs: Vec<f64>,
    /// Length of the shortest batches, s.
    pub(super) batch_s: f64,
    /// Length of the shortest run, s.
    shortest_s: f64,
}

impl Batches {
    /// Cuts the steps of one run into many batches of equal length, or into few where the run stood still for one of many; the few
    /// steps left over at the end are left out.
    fn take(&mut self, steps: &[Figure], step_s: f64) -> Result<(), Lack> {
        if steps.len() < BATCHES {
            return Err(Lack::TooFew(steps.len()));
        }
        let lengths = [steps.len().div_ceil(MOST_BATCHES), steps.len() / BATCHES];
        let cut = lengths.into_iter().find_map(|length| Some((length, logs(steps.chunks_exact(length))?)));
        let (length, logs) = cut.ok_or(Lack::Nothing)?;
        self.logs.extend(logs);
        self.batch_s = self.batch_s.min(length as f64 * step_s);
        self.shortest_s = self.shortest_s.min(steps.len() as f64 * step_s);
        Ok(())
    }

    /// Whether a longer run would have said more than its seconds.
    pub(super) fn is_weak(&self) -> bool {
        self.shortest_s < LONG_S
    }

    pub(super) fn sample(&self) -> Sample {
        Sample::in_order(&self.logs)
    }
}

/// The logarithm of each batch's mean; none where nothing is known of one or nothing was done.
fn logs<'a>(batches: impl Iterator<Item = &'a [Figure]>) -> Option<Vec<f64>> {
    let log = |batch: &[Figure]| {
        let known: Vec<f64> = batch.iter().filter_map(Figure::value).collect();
        let is_known = 2 * known.len() >= batch.len() && !known.is_empty() && mean(&known) > 0.0;
        is_known.then(|| mean(&known).ln())
    };
    batches.map(log).collect()
}

/// Series of figures whose own is of another unit, which a ratio does not mind: key, series, what to divide it by.
const SERIES: [(&str, &str, &str); 8] = [
    ("redo_bytes_per_s", "redo_mib_per_s", ""),
    ("redo_size_bytes_per_s", "redo_mib_per_s", ""),
    ("read_io_mb_per_s", "read_mib_per_s", ""),
    ("write_io_mb_per_s", "write_mib_per_s", ""),
    ("operations_per_s", "ops_count_per_s", ""),
    ("logical_read_blocks_per_s", "logical_reads_blocks_per_s", ""),
    ("db_time_s_per_s", "average_active_sessions_count", ""),
    ("cpu_us_per_op", "db_cpu_s_per_s", "ops_count_per_s"),
];

/// The figure step by step, and the length of a step in s.
fn by_step(record: &Record, metric: &Metric) -> Result<(Vec<Figure>, f64), Lack> {
    if let Some(series) = &metric.series {
        return steps(record, series).or_else(|lack| printed_steps(record, metric).ok_or(lack));
    }
    if let Some(found) = printed_steps(record, metric) {
        return Ok(found);
    }
    let found = SERIES.iter().find(|(key, ..)| *key == metric.key);
    match found.ok_or(Lack::NoSeries)? {
        (_, series, "") => steps(record, series),
        (_, above, below) => {
            let ((above, step_s), (below, _)) = (steps(record, above)?, steps(record, below)?);
            let quotient = |(a, b): (&Figure, &Figure)| match b.value() {
                Some(b) => a.per(b, "no work was done"),
                None => b.clone(),
            };
            Ok((above.iter().zip(&below).map(quotient).collect(), step_s))
        }
    }
}

/// The steps that an import printed of a figure: under its own key, or the mean's without that word; an operation is a transaction there.
fn printed_steps(record: &Record, metric: &Metric) -> Option<(Vec<Figure>, f64)> {
    record.import.as_ref()?;
    let key = metric.key.as_str();
    let bare = key.strip_suffix("_mean").unwrap_or(key);
    let names = [bare, if key == "ops_per_s" { "commits_count_per_s" } else { key }];
    names.into_iter().find_map(|name| steps(record, name).ok())
}

/// Whole steps of the measured window, and their length in s.
fn steps(record: &Record, name: &str) -> Result<(Vec<Figure>, f64), Lack> {
    let series = &record.series;
    let column = series.metrics.get(name).ok_or(Lack::NoSeries)?;
    let step_s = series.step_s.value().ok_or(Lack::NoSeries)?;
    let mut previous = 0.0;
    let mut whole = Vec::new();
    for ((end_s, figure), inside) in series.t_s.iter().zip(column).zip(&series.in_window) {
        // The step before the begin or the end may be a fraction: too short to judge.
        if *inside && end_s - previous > 0.5 * step_s {
            whole.push(figure.clone());
        }
        previous = *end_s;
    }
    Ok((whole, step_s))
}

/// The difference of two groups in logarithms, and how it was found.
#[derive(Clone, Debug)]
pub(super) struct Compared {
    pub(super) difference: Difference,
    pub(super) method: &'static str,
    pub(super) basis: String,
    /// Said after the verdict.
    pub(super) remark: String,
}

/// Why no difference with an interval can be given.
#[derive(Clone, Debug)]
pub(super) enum Unjudged {
    /// A side has no figure, or one that has no ratio.
    Na(String),
    /// A ratio of values with unknown scatter.
    OneValue(f64, String),
    /// The same, because the runs are too short.
    TooShort(f64, String),
}

/// Compares one figure of two groups.
pub(super) fn compare(key: &str, from: &Figures<'_>, to: &Figures<'_>) -> Result<Compared, Unjudged> {
    let (a, b) = match (from.values(key), to.values(key)) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(reason), _) | (_, Err(reason)) => return Err(Unjudged::Na(reason)),
    };
    if a.iter().chain(&b).any(|value| *value <= 0.0) {
        let both = a.iter().chain(&b).all(|value| *value == 0.0);
        let why = if both { "both are 0" } else { "a value of 0 has no ratio" };
        return Err(Unjudged::Na(why.to_owned()));
    }
    let logs = |values: &[f64]| values.iter().map(|v| v.ln()).collect::<Vec<f64>>();
    let (a, b) = (logs(&a), logs(&b));
    if a.len() >= REPEATS && b.len() >= REPEATS {
        return Ok(Compared {
            difference: Difference::welch(&Sample::independent(&a), &Sample::independent(&b)),
            method: "repeats",
            basis: format!("{} and {} repeats", a.len(), b.len()),
            remark: String::new(),
        });
    }
    let estimate = mean(&b) - mean(&a);
    let (first, second) = match (from.batches(key), to.batches(key)) {
        (Ok(first), Ok(second)) => (first, second),
        (Err(lack), _) | (_, Err(lack)) => return Err(unjudged(estimate, lack, a.len(), b.len())),
    };
    Ok(within(key, from, estimate, &first, &second))
}

fn unjudged(estimate: f64, lack: Lack, a: usize, b: usize) -> Unjudged {
    let single = match (a, b) {
        (1, 1) => "one value on each side, so the noise is unknown".to_owned(),
        (a, b) => format!("{a} and {b} values: the noise is known only from {REPEATS} repeats on both sides"),
    };
    match lack {
        Lack::TooFew(steps) => {
            Unjudged::TooShort(estimate, format!("the series has {steps} whole steps, {BATCHES} are needed"))
        }
        Lack::NoSeries => Unjudged::OneValue(estimate, single),
        Lack::Nothing => Unjudged::OneValue(estimate, format!("{single} (some steps have 0 or n/a)")),
    }
}

/// Within-run batch means: the scatter inside the runs, which says nothing of that between runs.
fn within(key: &str, from: &Figures<'_>, estimate: f64, first: &Batches, second: &Batches) -> Compared {
    let (a, b) = (first.sample(), second.sample());
    let mut difference = Difference::welch(&a, &b);
    // A rate's batches mean the same as the rate; a percentile's seconds do not have the run's percentile as mean.
    let unit = from.about(key).map(|metric| metric.unit.as_str());
    if unit.is_some_and(|unit| unit.ends_with("/s")) {
        difference.estimate = estimate;
    }
    let basis = format!(
        "{} and {} batches of {:.0} s, worth {:.0} and {:.0}",
        a.count,
        b.count,
        first.batch_s.min(second.batch_s),
        a.effective_count,
        b.effective_count
    );
    let mut remark = "within-run only, run-to-run variance unknown".to_owned();
    if first.is_weak() || second.is_weak() {
        remark.push_str(&format!("; weak: use runs of at least {LONG_S:.0} s"));
    }
    Compared { difference, method: "within-run", basis, remark }
}
