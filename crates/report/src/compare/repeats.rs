//! Repeats of one run: how much its figures differ when nothing changes, and so what a comparison could show.

use super::detect::Detectable;
use super::samples::REPEATS;
use super::verdict::{pct, percent};
use assay_measure::figures::figures;
use assay_measure::record::bounds;
use assay_measure::record::metric::find;
use assay_measure::record::{Figure, Metric, Record};
use assay_measure::section::{Sections, left, number, right};
use assay_measure::statistics::{ALPHA, Difference, Sample, mean, stddev, t_quantile, variance};
use assay_measure::units::significant;

/// The value of [`Repeats::schema`] this version writes.
pub const REPEAT_SCHEMA: &str = "assay-repeat/1";
/// The most repeats that are ever recommended.
const MOST: usize = 1000;

/// Several runs of one and the same test, in one directory.
#[figures]
pub struct Repeats {
    /// [`REPEAT_SCHEMA`].
    pub schema: String,
    /// Short random id, also in the directory's name.
    pub id: String,
    /// The user's label, or empty.
    pub label: String,
    /// assay's version.
    pub version: String,
    /// RFC 3339 wall time of the first start.
    pub started: String,
    /// `slob`.
    pub workload: String,
    /// The target as given.
    pub target: String,
    /// Runs asked for.
    pub wanted_count: u64,
    /// `complete` or `incomplete`.
    pub verdict: String,
    /// Why it is not complete.
    pub verdict_reasons: Vec<String>,
    /// The runs there are, in order.
    pub runs: Vec<RepeatRun>,
    /// The noise of each declared figure.
    pub noise: Vec<NoiseRow>,
    /// What it takes to see a difference, where `assay noise` asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detectable: Option<Detectable>,
}

/// One of the runs.
#[figures]
pub struct RepeatRun {
    /// Directory under that of the repeats.
    pub directory: String,
    /// Its id.
    pub id: String,
    /// RFC 3339 wall time of its start.
    pub started: String,
    /// `complete`, `incomplete` or `invalid`.
    pub verdict: String,
    /// Operations per second.
    pub ops_per_s: Figure,
}

/// How one figure varied between the runs.
#[figures]
pub struct NoiseRow {
    /// Key of the figure.
    pub key: String,
    /// Name for people.
    pub name: String,
    /// Unit of `mean`, `min` and `max`.
    pub unit: String,
    /// Runs that have it.
    pub count: u64,
    /// Geometric mean; n/a where a run has none.
    pub mean: Figure,
    /// Smallest.
    pub min: Figure,
    /// Largest.
    pub max: Figure,
    /// Largest less smallest over the mean, %.
    pub range_pct: Figure,
    /// Standard deviation between runs over the mean, %.
    pub variation_pct: Figure,
    /// Smallest difference that two such groups would show 19 times in 20, all declared figures tested together, %.
    pub detectable_95_pct: Figure,
    /// Repeats on each side that would show 5 %.
    pub repeats_for_5_pct_count: Figure,
    /// Repeats on each side that would show 2 %.
    pub repeats_for_2_pct_count: Figure,
}

impl Repeats {
    /// Fills in the runs' noise from their records.
    #[must_use]
    pub fn with_noise(mut self, records: &[&Record]) -> Self {
        self.noise = noise(records);
        self
    }

    /// Reads what `repeat.json` holds.
    ///
    /// # Errors
    /// The reason, if it is not such a file or has another schema.
    pub fn read(text: &str) -> Result<Self, String> {
        if bounds::is_too_dense(text.as_bytes()) {
            return Err(bounds::TOO_DENSE.to_owned());
        }
        let repeats: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if repeats.schema == REPEAT_SCHEMA {
            Ok(repeats)
        } else {
            Err(format!(
                "schema {:?} where {REPEAT_SCHEMA:?} is needed; did a later version of assay write it?",
                repeats.schema
            ))
        }
    }

    /// As text, for people.
    #[must_use]
    pub fn render(&self) -> String {
        crate::text::write(&self.sections())
    }

    /// What there is to say, for text and page.
    pub(crate) fn sections(&self) -> Sections {
        let mut page = Sections::default();
        page.line(&format!("Repeats {} of {}", self.id, self.workload));
        page.line(&format!(
            "{} of {} runs, {}, target {}, label {}, started {}",
            self.runs.len(),
            self.wanted_count,
            self.verdict,
            self.target,
            if self.label.is_empty() { "none" } else { &self.label },
            self.started
        ));
        for reason in &self.verdict_reasons {
            page.wrapped("  ", reason);
        }
        self.render_runs(&mut page);
        self.render_noise(&mut page);
        if let Some(found) = &self.detectable {
            page.heading("Time that a difference needs here");
            found.lines().iter().for_each(|line| page.wrapped("", line));
        }
        page
    }

    fn render_runs(&self, page: &mut Sections) {
        let columns = [left("Run", 14), left("Id", 10), left("Started", 22), right("Ops/s", 14), left("  Verdict", 14)];
        page.heading("Runs");
        page.columns(&columns);
        for run in &self.runs {
            let ops = run.ops_per_s.value().map_or("n/a".to_owned(), |v| significant(v, 6));
            let started: String = run.started.chars().take(19).collect();
            let verdict = format!("  {}", run.verdict);
            page.row(&columns, &[run.directory.clone(), run.id.clone(), started, ops, verdict]);
        }
    }

    fn render_noise(&self, page: &mut Sections) {
        page.heading("A/A Noise Floor: differences between identical runs");
        if self.noise.is_empty() {
            page.line("n/a (at least two runs are needed)");
            return;
        }
        let columns = [
            left("Figure", 24),
            right("Mean", 14),
            left(" Unit", 10),
            right("Smallest", 14),
            right("Largest", 14),
            right("Range %", 9),
            right("CV %", 8),
            right("Shows %", 9),
            right("N for 5 %", 11),
            right("N for 2 %", 11),
        ];
        page.columns(&columns);
        for row in &self.noise {
            let told = |figure: &Figure| figure.value().map_or("n/a".to_owned(), |v| significant(v, 6));
            let share = |figure: &Figure| figure.value().map_or("n/a".to_owned(), percent);
            page.row(
                &columns,
                &[
                    row.key.clone(),
                    told(&row.mean),
                    format!(" {}", row.unit),
                    told(&row.min),
                    told(&row.max),
                    share(&row.range_pct),
                    share(&row.variation_pct),
                    share(&row.detectable_95_pct),
                    number(&row.repeats_for_5_pct_count, 0),
                    number(&row.repeats_for_2_pct_count, 0),
                ],
            );
        }
        page.line("");
        page.wrapped(
            "",
            "CV: standard deviation between the runs, divided by their mean. Shows: the smallest difference that two \
             groups of this many runs would show 19 times in 20, with all these figures tested together (Holm's \
             correction). N for 5 %, 2 %: the number of runs on each side that would show such a difference. Drift \
             from the first run to the last counts as noise.",
        );
    }
}

fn noise(records: &[&Record]) -> Vec<NoiseRow> {
    if records.len() < 2 {
        return Vec::new();
    }
    let runs: Vec<&[Metric]> = records.iter().map(|record| record.metrics.as_slice()).collect();
    let primary: Vec<&Metric> = runs[0].iter().filter(|metric| metric.is_primary).collect();
    let known = |key: &str| -> Option<Vec<f64>> {
        let values = runs.iter().map(|run| find(run, key)?.value.value());
        values.collect::<Option<Vec<f64>>>().filter(|all| all.iter().all(|v| *v > 0.0))
    };
    let family = primary.iter().filter(|metric| known(&metric.full_key()).is_some()).count();
    let row = |metric: &&Metric| {
        let key = metric.full_key();
        Some(noise_row(metric, &known(&key)?, family))
    };
    primary.iter().filter_map(row).collect()
}

fn noise_row(metric: &Metric, values: &[f64], family: usize) -> NoiseRow {
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let middle = mean(&logs).exp();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    let side = Sample::independent(&logs);
    let alpha = ALPHA / family as f64;
    let enough =
        |figure: Figure| if values.len() < REPEATS { Figure::na("at least three runs are needed") } else { figure };
    let needed = |share: f64| {
        let found = repeats_for(variance(&logs), alpha, share);
        enough(found.map_or_else(|| Figure::na("more than a thousand"), |n| (n as u64).into()))
    };
    NoiseRow {
        key: metric.full_key(),
        name: metric.name.clone(),
        unit: metric.unit.clone(),
        count: values.len() as u64,
        mean: Figure::decimal(middle),
        min: Figure::decimal(least),
        max: Figure::decimal(most),
        range_pct: Figure::decimal(100.0 * (most - least) / middle),
        variation_pct: Figure::decimal(100.0 * stddev(values) / mean(values)),
        detectable_95_pct: enough(Figure::decimal(pct(Difference::welch(&side, &side).detectable(alpha, 0.95)))),
        repeats_for_5_pct_count: needed(0.05),
        repeats_for_2_pct_count: needed(0.02),
    }
}

/// Runs on each side that would show a fall by `share` 19 times in 20, if this variance of logarithms is the true one.
fn repeats_for(variance: f64, alpha: f64, share: f64) -> Option<usize> {
    let wanted = -(1.0 - share).ln();
    (REPEATS..=MOST).find(|n| {
        let degrees = 2.0 * (*n as f64 - 1.0);
        let error = (2.0 * variance / *n as f64).sqrt();
        (t_quantile(1.0 - alpha / 2.0, degrees) + t_quantile(0.95, degrees)) * error <= wanted
    })
}
