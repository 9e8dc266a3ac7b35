//! One step of a sweep: the figures of its record that curves are made of.

use assay_measure::figures::figures;
use assay_measure::histogram::Histogram;
use assay_measure::record::steady::{self, Steady};
use assay_measure::record::{EventRow, Figure, Latency, Record};
use assay_measure::{cap, cpu};
use std::collections::BTreeMap;

/// Little's law has to account for the sessions within this part of them.
pub(crate) const LITTLE: f64 = 0.05;
/// Requests per operation below which a run does no I/O to speak of.
const LEAST_IO: f64 = 0.1;

/// The place of a step in its sweep.
#[figures]
pub struct StepPlace {
    /// From 1, in the order they ran.
    pub step: u64,
    /// The step's run directory, relative to the sweep's.
    pub directory: String,
    /// Sessions in all.
    pub sessions: u64,
    /// CPUs this process was confined to; n/a (not confined).
    pub cpus: Figure,
    /// The settings that vary over the sweep, by name.
    pub over: BTreeMap<String, String>,
    /// Number of the step that this one repeats, because that one had not settled; 0: none.
    pub repeats: u64,
}

/// One step with its figures. Rates are those of the measured window.
#[figures]
pub struct SweepStep {
    /// Which step.
    pub place: StepPlace,
    /// `complete`, `incomplete` or `invalid` as the record says, or `failed`.
    pub verdict: String,
    /// Why it is not complete.
    pub verdict_reasons: Vec<String>,
    /// Measured window, s.
    pub elapsed_s: Figure,
    /// Operations per second.
    pub ops_per_s: Figure,
    /// Standard error of that, over it, from batch means of its seconds.
    pub ops_error_ratio: Figure,
    /// Throughput over the best of all smaller loads of its curve, less 1, 0..100 (or below 0).
    pub gain_pct: Figure,
    /// Blocks asked for per second.
    pub logical_reads_blocks_per_s: Figure,
    /// Read requests per second.
    pub read_requests_per_s: Figure,
    /// Write requests per second.
    pub write_requests_per_s: Figure,
    /// Transactions per second.
    pub transactions_per_s: Figure,
    /// Operation latency, all kinds together, layer `client`, from the intended start.
    pub op: StepLatency,
    /// Latency of the read event with the most time, layer `engine`.
    pub read: StepLatency,
    /// CPU of this process, all threads, and of a server, per operation, us.
    pub cpu_us_per_op: Figure,
    /// CPU of this process, all threads, and of a server, per read or write request, us.
    pub cpu_us_per_io: Figure,
    /// System CPU of the host per read or write request, us.
    pub system_cpu_us_per_io: Figure,
    /// The host's CPUs, 0..100.
    pub host_busy_pct: Figure,
    /// CPU of this process over the CPUs it was confined to, 0..100; n/a (not confined).
    pub confined_busy_pct: Figure,
    /// Sessions that Little's law accounts for over those there were.
    pub little_ratio: Figure,
    /// Foreground event with the most time, or `DB CPU`.
    pub top_event: String,
    /// Data blocks that the step's sessions could touch.
    pub active_blocks: Figure,
    /// Whether throughput had settled.
    pub steady: Steady,
    /// What others took of the host's CPUs meanwhile, in words; empty: little, not known, or CPUs were free all the same.
    pub disturbed: String,
    /// The limit somebody set that its figures show, or what looks like one, in sentences; empty: none.
    pub cap: String,
    /// Warnings of the record, counted.
    pub warnings_count: u64,
}

/// The usual figures of a latency, us.
#[figures]
pub struct StepLatency {
    /// What was timed.
    pub name: String,
    /// Mean.
    #[serde(alias = "avg_us")]
    pub us_avg: Figure,
    /// Median.
    #[serde(alias = "p50_us")]
    pub us_p50: Figure,
    /// 99th percentile.
    #[serde(alias = "p99_us")]
    pub us_p99: Figure,
    /// 99.9th percentile.
    #[serde(alias = "p999_us")]
    pub us_p999: Figure,
    /// Largest.
    #[serde(alias = "max_us")]
    pub us_max: Figure,
}

impl SweepStep {
    /// The figures of a record.
    #[must_use]
    pub fn of(place: StepPlace, record: &Record) -> Self {
        let elapsed = record.interval.elapsed_s.value().unwrap_or(0.0);
        let load = |name: &str| {
            let row = record.instance.load_profile.iter().find(|row| row.name == name);
            row.map_or_else(Figure::default, |row| row.per_s.clone())
        };
        let ops_per_s = record.interval.ops_count.per(elapsed, "no time passed");
        let (reads, writes) = (load("Read IO requests"), load("Write IO requests"));
        let ios = reads.plus(&writes).scaled(elapsed);
        let cpu_us = record.os.process.cpu_s.scaled(1e6);
        // A server's work is done by its own processes, and costs beside ours.
        let model = &record.instance.time_model;
        let work_us = if record.instance.server.is_some() {
            cpu_us.plus(&model.db_cpu_us).plus(&model.bg_cpu_us)
        } else {
            cpu_us.clone()
        };
        let ops = record.interval.ops_count.value().unwrap_or(0.0);
        let ios = match ios.value() {
            Some(count) if count < LEAST_IO * ops => Figure::na("hardly any I/O"),
            _ => ios,
        };
        let over = |figure: &Figure, by: &Figure, none: &str| match by.value() {
            Some(by) => figure.per(by, none),
            None => by.clone(),
        };
        let system = ["system", "irq", "softirq"]
            .iter()
            .filter_map(|name| record.os.cpu_s.get(*name))
            .fold(Figure::Decimal(0.0), |sum, part| sum.plus(part));
        let confined_busy_pct = match place.cpus.value() {
            Some(cpus) => cpu_us.scaled(1e-4).per(cpus * elapsed, "no time passed"),
            None => place.cpus.clone(),
        };
        let checks = &record.checks;
        let cap = record.advice.iter().find(|advice| ["R12", cap::RULE.id].contains(&advice.id.as_str()));
        Self {
            verdict: record.run.verdict.clone(),
            verdict_reasons: record.run.verdict_reasons.clone(),
            elapsed_s: record.interval.elapsed_s.clone(),
            ops_error_ratio: steady::standard_error(record)
                .map_or_else(|| Figure::na("fewer than five seconds"), Figure::decimal),
            ops_per_s,
            gain_pct: Figure::na("no smaller load"),
            logical_reads_blocks_per_s: load("Logical read (blocks)"),
            transactions_per_s: load("Transactions"),
            op: operations(record),
            read: reading(record),
            cpu_us_per_op: over(&work_us, &record.interval.ops_count, "no operations"),
            cpu_us_per_io: over(&work_us, &ios, "no I/O"),
            system_cpu_us_per_io: over(&system.scaled(1e6), &ios, "no I/O"),
            host_busy_pct: record.os.cpu_pct.get("busy").cloned().unwrap_or_default(),
            confined_busy_pct,
            little_ratio: over(&checks.little_sessions, &checks.little_expected_sessions, "no sessions"),
            read_requests_per_s: reads,
            write_requests_per_s: writes,
            top_event: top_event(record),
            active_blocks: checks.active_blocks.clone(),
            steady: steady::steady(record),
            disturbed: disturbed(record).unwrap_or_default(),
            cap: cap.map_or_else(String::new, |advice| advice.text.clone()),
            warnings_count: record.doubts().count() as u64,
            place,
        }
    }

    /// A step that could not be run, with the reason.
    #[must_use]
    pub fn failed(place: StepPlace, reason: &str) -> Self {
        Self {
            place,
            verdict: "failed".to_owned(),
            verdict_reasons: vec![reason.to_owned()],
            steady: Steady::unknown("the step failed"),
            gain_pct: Figure::na("the step failed"),
            ops_per_s: Figure::na("the step failed"),
            ..Self::default()
        }
    }

    /// Whether its figures belong in a curve: the whole window was measured and holds.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.verdict == "complete" && self.ops_per_s.value().is_some_and(|rate| rate > 0.0)
    }

    /// Whether its throughput never settled within its window.
    #[must_use]
    pub fn never_settled(&self) -> bool {
        self.steady.state == "no"
    }

    /// Whether something else than the load may have made its rate: no rise, fall or level rests on it.
    pub(crate) fn is_shaky(&self) -> bool {
        self.never_settled() || !self.disturbed.is_empty()
    }

    /// Whether it did I/O to speak of; yes where nobody knows.
    pub(crate) fn does_io(&self) -> bool {
        let requests = self.read_requests_per_s.plus(&self.write_requests_per_s);
        match (requests.value(), self.ops_per_s.value()) {
            (Some(requests), Some(ops)) => requests >= LEAST_IO * ops,
            _ => true,
        }
    }

    /// Share of the CPUs it could use that were busy, 0..100: of the host's, or of those
    /// this process was confined to, whichever is more.
    #[must_use]
    pub fn busy_pct(&self) -> Option<f64> {
        let host = self.host_busy_pct.value();
        let confined = self.confined_busy_pct.value();
        host.into_iter().chain(confined).max_by(f64::total_cmp)
    }
}

/// The steps whose figures count: the valid ones, but those whose repeat took their place.
pub(crate) fn counted(steps: &[SweepStep]) -> impl Iterator<Item = &SweepStep> + Clone {
    let repeats = || steps.iter().filter(|step| step.place.repeats > 0 && step.counts());
    let is_repeated = move |step: &SweepStep| repeats().any(|other| other.place.repeats == step.place.step);
    steps.iter().filter(move |step| step.counts() && !is_repeated(step))
}

/// Others on a host with free CPUs take nothing from a step; what a hypervisor withholds is gone.
fn disturbed(record: &Record) -> Option<String> {
    let shares = cpu::shares(record)?;
    cpu::disturbed(record).filter(|_| shares.busy >= cpu::BUSY_PCT || shares.others < cpu::OTHERS_PCT)
}

fn operations(record: &Record) -> StepLatency {
    let mut all = Histogram::new();
    for op in &record.driver.ops {
        all.merge(&op.response.hist_ns);
    }
    let found = Latency::of(&all);
    StepLatency {
        name: "operations".to_owned(),
        us_avg: found.us_avg,
        us_p50: found.us_p50,
        us_p99: found.us_p99,
        us_p999: found.us_p999,
        us_max: found.us_max,
    }
}

fn reading(record: &Record) -> StepLatency {
    let is_read =
        |event: &&EventRow| event.actor == "foreground" && event.class == "User I/O" && event.name.contains("read");
    let time = |event: &EventRow| event.total_us.value().unwrap_or(0.0);
    let events = record.instance.events.iter().filter(is_read);
    let Some(event) = events.max_by(|a, b| time(a).total_cmp(&time(b))) else {
        let none = || Figure::na("no waits for reads");
        return StepLatency {
            name: String::new(),
            us_avg: none(),
            us_p50: none(),
            us_p99: none(),
            us_p999: none(),
            us_max: none(),
        };
    };
    StepLatency {
        name: event.name.clone(),
        us_avg: event.us_avg.clone(),
        us_p50: event.us_p50.clone(),
        us_p99: event.us_p99.clone(),
        us_p999: event.us_p999.clone(),
        us_max: event.us_max.clone(),
    }
}

/// First row of "Top Foreground Events", the time on CPU and in its queue being one of them.
fn top_event(record: &Record) -> String {
    let model = &record.instance.time_model;
    let rows = [("DB CPU", &model.db_cpu_us), ("run queue", &model.run_queue_us)];
    let own = rows.into_iter().filter_map(|(name, time)| Some((time.value()?, name)));
    record
        .instance
        .events
        .iter()
        .filter(|event| event.actor == "foreground" && event.class != "Idle")
        .filter_map(|event| Some((event.total_us.value()?, event.name.as_str())))
        .chain(own)
        .filter(|(us, _)| *us > 0.0)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or_else(|| "n/a".to_owned(), |(_, name)| name.to_owned())
}
