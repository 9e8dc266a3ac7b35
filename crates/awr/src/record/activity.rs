//! The activity history of the window, and the events on the time line.

use crate::deltas::{CPU, Deltas, RUN_QUEUE, class_name, seconds};
use assay_measure::counter_catalog;
use assay_measure::history::{ActivityHistory, ActivityKey, ActivityStep, SessionState};
use assay_measure::plain::slug;
use assay_measure::record::{AshInfo, AshRow, Figure, TimelineRow};
use assay_measure::snapshot::Snapshot;
use assay_measure::statistics::variance;
use assay_measure::timeline::TimelineEvent;
use std::collections::BTreeMap;

/// How the names of a step's metrics by class begin.
pub(super) const CLASS_METRICS: &str = "active_";
/// Batches by which the scatter of shares is judged.
const BATCHES: usize = 10;
/// Expected samples below which three of their standard errors are all of them.
const FEWEST_SAMPLES: f64 = 9.0;
const NOBODY_LOOKED: &str = "unsupported: sessions were not sampled";

/// Samples and active time of some keys.
#[derive(Clone, Copy, Default)]
struct Sum {
    samples: u64,
    active_ns: u64,
}

/// Class and, for a wait, event under which a key is shown.
fn class_of(key: &ActivityKey) -> &str {
    match key.state {
        SessionState::OnCpu => CPU,
        SessionState::RunQueue => RUN_QUEUE,
        SessionState::Waiting => key.class.map_or("Other", class_name),
    }
}

fn event_of(key: &ActivityKey) -> &str {
    match key.state {
        SessionState::Waiting => &key.event,
        _ => class_of(key),
    }
}

/// The steps of an interval and what their keys mean.
struct Looked<'a> {
    keys: &'a [ActivityKey],
    steps: Vec<&'a ActivityStep>,
    span_ns: u64,
    samples: u64,
    active_ns: u64,
}

impl<'a> Looked<'a> {
    fn new(history: &'a ActivityHistory, from_ns: u64, to_ns: u64) -> Self {
        let steps: Vec<_> = history.between(from_ns, to_ns).collect();
        Self {
            keys: &history.keys,
            span_ns: steps.iter().map(|step| step.span_ns).sum(),
            samples: steps.iter().map(|step| step.samples()).sum(),
            active_ns: steps.iter().map(|step| step.active_ns()).sum(),
            steps,
        }
    }

    /// Sums by a name of the keys.
    fn sums(&self, name: impl Fn(&'a ActivityKey) -> &'a str) -> BTreeMap<&'a str, Sum> {
        let mut sums: BTreeMap<&str, Sum> = BTreeMap::new();
        for step in &self.steps {
            for &(key, samples, active_ns) in &step.cells {
                let Some(key) = self.keys.get(key as usize) else {
                    continue;
                };
                let sum = sums.entry(name(key)).or_default();
                sum.samples += samples;
                sum.active_ns += active_ns;
            }
        }
        sums
    }

    /// Average active sessions of some active time.
    fn active(&self, active_ns: u64) -> Figure {
        Figure::decimal(active_ns as f64).per(self.span_ns as f64, "no ticks")
    }

    fn rows(
        &self,
        name: impl Fn(&'a ActivityKey) -> &'a str,
        class: impl Fn(&'a ActivityKey) -> &'a str,
    ) -> BTreeMap<String, AshRow> {
        let row = |(of, sum): (&str, Sum)| {
            let key = self.keys.iter().find(|key| name(key) == of);
            let share = Figure::decimal(sum.active_ns as f64).per(self.active_ns as f64, "idle");
            let row = AshRow {
                class: key.map_or_else(String::new, |key| class(key).to_owned()),
                samples_count: sum.samples.into(),
                active_count: self.active(sum.active_ns),
                share_error_pct: self.share_error(&share, |key| name(key) == of),
                share_pct: share.scaled(100.0),
            };
            (of.to_owned(), row)
        };
        self.sums(&name).into_iter().map(row).collect()
    }

    /// Standard error of a share p of N samples: that of independent samples,
    /// sqrt(p (1 - p) / N), times the root of the inflation seen between batches.
    fn share_error(&self, share: &Figure, of: impl Fn(&'a ActivityKey) -> bool) -> Figure {
        let Some(p) = share.value() else {
            return share.clone();
        };
        if self.steps.len() < BATCHES {
            return Figure::na("fewer than ten ticks");
        }
        let counted = |steps: &[&'a ActivityStep]| {
            let cells = steps.iter().flat_map(|step| &step.cells);
            let (mut ours, mut all) = (0.0, 0.0);
            for &(key, samples, _) in cells {
                all += samples as f64;
                if self.keys.get(key as usize).is_some_and(&of) {
                    ours += samples as f64;
                }
            }
            (all > 0.0).then(|| ours / all)
        };
        // Batches of as equal length as the ticks allow.
        let cut = |batch: usize| batch * self.steps.len() / BATCHES;
        let batches: Vec<f64> =
            (0..BATCHES).filter_map(|batch| counted(&self.steps[cut(batch)..cut(batch + 1)])).collect();
        if batches.len() < 2 {
            return Figure::na("too few batches with activity");
        }
        let between = variance(&batches) / batches.len() as f64;
        let independent = p * (1.0 - p) / self.samples as f64;
        Figure::decimal(100.0 * between.max(independent).sqrt())
    }
}

/// The history of the measured window.
pub(super) fn ash(deltas: &Deltas<'_>) -> AshInfo {
    let w = &deltas.window;
    let Some(history) = &deltas.data.activity else {
        return without(NOBODY_LOOKED);
    };
    let looked = Looked::new(history, w.from.at_ns, w.to.at_ns);
    if looked.steps.is_empty() {
        return without("no sample fell into the window");
    }
    let ticks: u64 = looked.steps.iter().map(|step| step.ticks).sum();
    let classes = looked.sums(class_of);
    let active = looked.active(looked.active_ns);
    let cpu_used = w.get(counter_catalog::DB_CPU).scaled(1e-9).per(w.elapsed_s, "no time");
    let on_cpu_ns = [CPU, RUN_QUEUE].iter().filter_map(|class| classes.get(class)).map(|sum| sum.active_ns).sum();
    AshInfo {
        interval_ms: (history.interval_ns as f64 / 1e6).into(),
        interval_achieved_ms: Figure::decimal(looked.span_ns as f64 / 1e6 / ticks as f64),
        ticks_count: ticks.into(),
        ticks_expected_count: Figure::decimal((w.elapsed_s * 1e9 / history.interval_ns.max(1) as f64).round()),
        holes_s: seconds(looked.steps.iter().map(|step| step.hole_ns).sum()).into(),
        samples_count: looked.samples.into(),
        max_active_count: looked
            .steps
            .iter()
            .map(|step| step.active_max)
            .max()
            .map_or_else(Figure::default, Figure::Count),
        // The ticks stand for slightly more or less than the window: their mean goes for all of it.
        db_time_s: active.scaled(w.elapsed_s),
        db_time_allowed_ratio: allowed(ticks, w.db_time_ns().per(history.interval_ns as f64, "no interval").value()),
        db_time_measured_s: w.db_time_ns().scaled(1e-9),
        run_queue_count: rest(&looked.active(on_cpu_ns), &cpu_used),
        cpu_used_count: cpu_used,
        active_count: active,
        by_class: looked.rows(class_of, class_of),
        by_event: looked.rows(event_of, class_of),
        by_op: looked.rows(|key| key.op.as_str(), |_| ""),
        by_schema_samples_count: history.schemas.clone(),
    }
}

/// Share by which sampled DB time may differ from measured: three standard errors of a sum over `ticks`, or of a count
/// of `samples` (Poisson), or 5 %, the largest. With fewer samples to be expected than nine, it would be everything.
fn allowed(ticks: u64, samples: Option<f64>) -> Figure {
    let samples = samples.unwrap_or(0.0);
    if samples < FEWEST_SAMPLES {
        return Figure::na("the measured DB time gives fewer than nine samples: too few to compare");
    }
    Figure::decimal((3.0 / samples.min(ticks as f64).sqrt()).max(0.05))
}

/// Sessions found on CPU or queued, less the CPU that was used.
fn rest(on_cpu: &Figure, used: &Figure) -> Figure {
    match (on_cpu.value(), used.value()) {
        (Some(on_cpu), Some(used)) if on_cpu >= used => (on_cpu - used).into(),
        (Some(_), Some(_)) => {
            Figure::na("the sessions used more CPU time than the samples saw on CPU: threads also work inside waits")
        }
        (Some(_), None) => used.clone(),
        (None, _) => on_cpu.clone(),
    }
}

fn without(reason: &str) -> AshInfo {
    let none = || Figure::na(reason);
    AshInfo {
        interval_ms: none(),
        interval_achieved_ms: none(),
        ticks_count: none(),
        ticks_expected_count: none(),
        holes_s: none(),
        samples_count: none(),
        max_active_count: none(),
        active_count: none(),
        db_time_s: none(),
        db_time_measured_s: none(),
        db_time_allowed_ratio: none(),
        cpu_used_count: none(),
        run_queue_count: none(),
        ..AshInfo::default()
    }
}

/// Average active sessions by class from one snapshot to the next, for the series.
pub(super) fn step_metrics(history: Option<&ActivityHistory>, from: &Snapshot, to: &Snapshot) -> Vec<(String, Figure)> {
    let mut metrics = Vec::new();
    if let Some(history) = history {
        let looked = Looked::new(history, from.at_ns, to.at_ns);
        if looked.steps.is_empty() {
            return metrics;
        }
        for (class, sum) in looked.sums(class_of) {
            // "I/O" is one word of the dictionary's keys.
            let slug = slug(class).replace("i_o", "io");
            let name = format!("{CLASS_METRICS}{slug}_count");
            metrics.push((name, looked.active(sum.active_ns)));
        }
        let most = looked.steps.iter().map(|step| step.active_max).max();
        metrics.push(("active_max_count".to_owned(), most.unwrap_or(0).into()));
    }
    metrics
}

pub(super) fn timeline(events: &[TimelineEvent]) -> Vec<TimelineRow> {
    let mut rows: Vec<&TimelineEvent> = events.iter().collect();
    rows.sort_by_key(|event| (event.at_ns, event.number));
    rows.into_iter().map(row).collect()
}

fn row(event: &TimelineEvent) -> TimelineRow {
    let end = event.end.as_ref();
    let is_change = event.from.is_some();
    let status = end.map_or("its end was not seen", |end| &end.status);
    TimelineRow {
        at_s: seconds(event.at_ns).into(),
        wall: event.wall.clone(),
        kind: event.kind.name().to_owned(),
        text: event.text.clone(),
        from: event.from.clone().unwrap_or_default(),
        to: event.to.clone().unwrap_or_default(),
        status: if is_change { "" } else { status }.to_owned(),
        took_s: match end {
            Some(end) if end.took_ns > 0 => seconds(end.took_ns).into(),
            Some(_) => Figure::na("not started"),
            None if is_change => Figure::na("not a command"),
            None => Figure::na("its end was not seen"),
        },
        output: event.output.clone().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
