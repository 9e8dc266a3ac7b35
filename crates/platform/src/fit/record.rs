//! The record of a fit: its kind, and how it follows from the reports and the steps.

use super::assumptions::{caches, not_carried, rows as assumptions};
use super::here::{FitStepRow, HELD, sides};
use super::info::{FitInfo, HOLDS, ShapeRow, TOO_SMALL, UNTOLD};
use super::load::{DatabaseLoad, DerivedRow, LOG_WRITES, READ_BYTES, READS, REDO, WRITE_BYTES, WRITES};
use super::offer::Offer;
use super::several::{peak, range};
use super::{instances, page, rise, rules, several};
use assay_measure::cpu;
use assay_measure::figures::of_layer;
use assay_measure::kind::{Delivered, Finding, Kind, Limit, OwnKind, TestConditions};
use assay_measure::record::{Figure, Part, Record};
use assay_measure::snapshot::{RunData, Verdict};
use assay_measure::units::{short, six};

const OWN: OwnKind<FitInfo> = OwnKind {
    judges: rules::RULES,
    charts: page::charts,
    conditions,
    delivered: |_, info| delivered(info),
    members: |info| info.steps.iter().map(|step| step.directory.clone()).filter(|name| !name.is_empty()).collect(),
    ..OwnKind::new(|info| of_layer("engine", info), page::render, page::headline)
};

/// The kind of its records.
pub const KIND: &dyn Kind = &OWN;

fn conditions(info: &FitInfo) -> TestConditions {
    vec![("report", info.report.clone(), Finding::Forbids)]
}

/// What the largest multiple that held did here.
fn delivered(info: &FitInfo) -> Delivered {
    let held = info.steps.iter().filter(|step| step.held == HELD);
    let factor = |step: &&FitStepRow| step.factor.value().unwrap_or_default();
    let Some(step) = held.max_by(|a, b| factor(a).total_cmp(&factor(b))) else {
        return Delivered { notes: vec!["No multiple of the load held here.".to_owned()], ..Delivered::default() };
    };
    Delivered {
        reads_per_s: step.reads_per_s.clone(),
        writes_per_s: step.writes_per_s.clone(),
        ios_per_s: step.reads_per_s.plus(&step.writes_per_s),
        transactions_per_s: step.commits_per_s.clone(),
        window_s: step.elapsed_s.clone(),
        notes: vec![format!("These are the rates at {} x the load, the largest multiple that held.", step.multiple)],
        ..Delivered::default()
    }
}

/// A platform of a price file.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Its name there.
    pub name: String,
    /// What a month costs, with licences.
    pub month: f64,
    /// In which currency.
    pub currency: String,
    /// I/Os and 10^6 bytes per second that are paid for.
    pub ios_per_s: Figure,
    /// See there.
    pub mb_per_s: Figure,
}

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct FitAsked {
    /// The loads of all reports, with their records.
    pub loads: Vec<DatabaseLoad>,
    /// The record that the peak's load was derived from.
    pub source: Record,
    /// Where it is offered, if it is: a directory, or the URL of a server without its secrets.
    pub place: Option<String>,
    /// How it is offered; `None` where a figure is missing.
    pub offer: Option<Offer>,
    /// Seconds of a step.
    pub step_s: u64,
    /// A price list.
    pub shapes: Vec<Shape>,
}

/// A step that was measured.
#[derive(Clone, Debug)]
pub struct FitStep {
    /// The multiple.
    pub factor: f64,
    /// Its directory, relative to the fit's.
    pub directory: String,
    /// Its record.
    pub record: Record,
    /// What its answer says that limited it.
    pub limit: Limit,
}

impl FitAsked {
    /// The load that is asked for.
    #[must_use]
    pub fn load(&self) -> &DatabaseLoad {
        &self.loads[peak(&self.loads)]
    }

    /// The multiples that were tried, with whether they held.
    #[must_use]
    pub fn tried(&self, steps: &[FitStep]) -> Vec<(f64, bool)> {
        let held = |step: &FitStep| rise::holds(self.load(), self.rate(step.factor), &step.record);
        steps.iter().map(|step| (step.factor, held(step))).collect()
    }

    fn rate(&self, factor: f64) -> u64 {
        self.offer.as_ref().map_or(0, |offer| offer.rate_at(factor))
    }
}

/// The load of a record: of a plan that was made elsewhere as it stands there, of any other as it follows from its statistics.
///
/// # Errors
/// Why no load follows from it, in one sentence without its name.
pub fn load_of(name: &str, record: &Record) -> Result<DatabaseLoad, String> {
    let Some(plan) = planned(record) else { return DatabaseLoad::of(name, record) };
    if plan.load.is_empty() {
        return Err("is a plan without a load; make it anew from its report".to_owned());
    }
    Ok(DatabaseLoad { name: plan.report, tool: plan.tool, begin: plan.begin, rows: plan.load })
}

/// What a fit that was carried here says.
fn planned(record: &Record) -> Option<FitInfo> {
    (record.kind == FitInfo::NAME).then(|| record.parts.get()).flatten()
}

/// Builds the record of what is known until now.
#[must_use]
pub fn build(run: &RunData, asked: &FitAsked, steps: &[FitStep], is_stopped: bool) -> Record {
    let mut run = run.clone();
    if is_stopped {
        run.verdict = Verdict::Incomplete(format!("stopped on request after {} steps", steps.len()));
    }
    let info = info(asked, steps);
    let mut record = Record::labelled(&run);
    let elapsed = steps.iter().filter_map(|step| step.record.interval.elapsed_s.value());
    let elapsed = elapsed.reduce(|sum, elapsed| sum + elapsed);
    record.interval.elapsed_s = Figure::known(elapsed, "nothing was measured");
    OWN.complete(record, &info)
}

fn info(asked: &FitAsked, steps: &[FitStep]) -> FitInfo {
    let (load, offer) = (asked.load(), asked.offer.as_ref());
    let range = range(&asked.loads, READS).zip(range(&asked.loads, WRITES));
    let ends = |of: fn((f64, f64)) -> f64| Figure::known(range.map(|(r, w)| of(r) + of(w)), "one report");
    let needed_ios = needed(load, &[READS, WRITES, LOG_WRITES]);
    let needed_bytes = needed(load, &[READ_BYTES, WRITE_BYTES, REDO]);
    let tried = asked.tried(steps);
    let (limit, limit_evidence) = limit(asked, steps, &tried);
    let first = steps.iter().find(|step| step.factor == 1.0);
    let plan = planned(&asked.source);
    let (assumptions, not_carried, instances) = match plan {
        Some(plan) => (plan.assumptions, plan.not_carried, plan.instances),
        None => {
            let source = &asked.source;
            (assumptions(load, source), not_carried(load, source), instances::rows(source))
        }
    };
    let held = (!steps.is_empty()).then(|| rise::held(&tried));
    let headroom_ratio = Figure::known(held, "nothing was offered here");
    FitInfo {
        report: load.name.clone(),
        tool: load.tool.clone(),
        begin: load.begin.clone(),
        reports_count: asked.loads.len() as u64,
        place: asked.place.clone().unwrap_or_default(),
        shapes: shapes(&asked.shapes, &needed_ios, &needed_bytes),
        needed_ios_per_s: needed_ios,
        needed_bytes_per_s: needed_bytes,
        least_ios_per_s: ends(|(least, _)| least),
        most_ios_per_s: ends(|(_, most)| most),
        caches: caches(load, &headroom_ratio),
        headroom_ratio,
        limit,
        limit_evidence,
        disk_bytes: Figure::known(offer.map(Offer::disk_bytes), "a figure of the load is missing"),
        time_s: Figure::known(offer.map(|offer| time_s(offer, asked.step_s)), "a figure of the load is missing"),
        load: load.rows.clone(),
        assumptions,
        not_carried,
        reports: if asked.loads.len() > 1 { several::rows(&asked.loads) } else { Vec::new() },
        instances,
        offer: offer.map_or_else(Vec::new, Offer::rows),
        unmet: offer.map_or_else(Vec::new, |offer| offer.unmet.clone()),
        sides: sides(load, offer, first.map(|step| &step.record)),
        steps: steps.iter().zip(&tried).map(|(step, (_, holds))| row(asked, step, *holds)).collect(),
    }
}

/// Seconds of the usual number of steps.
fn time_s(offer: &Offer, step_s: u64) -> u64 {
    rise::USUAL_STEPS * (step_s + offer.warmup_s() + 1)
}

/// The sum of figures; a log's writes that are not told are those of its commits at most, and are left out.
fn needed(load: &DatabaseLoad, names: &[&str]) -> Figure {
    let optional = [LOG_WRITES, REDO];
    let all = names.iter().filter(|name| !optional.contains(name) || load.value(name).is_some());
    all.map(|name| load.figure(name)).reduce(|sum, figure| sum.plus(&figure)).unwrap_or_default()
}

fn row(asked: &FitAsked, step: &FitStep, holds: bool) -> FitStepRow {
    let of = |key: &str| rise::metric(&step.record, key);
    let asked_per_s = asked.rate(step.factor);
    FitStepRow {
        multiple: six(step.factor),
        factor: Figure::decimal(step.factor),
        elapsed_s: step.record.interval.elapsed_s.clone(),
        asked_per_s,
        disturbed: cpu::disturbed(&step.record).unwrap_or_default(),
        page_cache_pct: step
            .record
            .instance
            .reads
            .as_ref()
            .map_or_else(Figure::default, |reads| reads.page_cache_pct.clone()),
        done_per_s: of("ops_per_s"),
        reads_per_s: of("reads_per_s"),
        writes_per_s: of("writes_per_s"),
        commits_per_s: of("transactions_per_s"),
        read_us: of("db_file_sequential_read_us_avg"),
        commit_us: of("log_file_sync_us_avg"),
        held: if holds { HELD } else { "no" }.to_owned(),
        missed: rise::missed(asked.load(), asked_per_s, &step.record).join("; "),
        limit: step.limit.what.clone(),
        limit_evidence: step.limit.evidence.clone(),
        directory: step.directory.clone(),
    }
}

/// Why the least multiple that missed did so.
fn limit(asked: &FitAsked, steps: &[FitStep], tried: &[(f64, bool)]) -> (String, String) {
    let held = rise::held(tried);
    // What holds nowhere is told of the load as it is.
    let least = if held == 0.0 { 1.0 } else { held };
    let missed = steps.iter().zip(tried).filter(|(step, (_, holds))| !holds && step.factor >= least);
    let Some((step, _)) = missed.min_by(|(a, _), (b, _)| a.factor.total_cmp(&b.factor)) else {
        return (String::new(), "no step missed the load".to_owned());
    };
    let why = rise::missed(asked.load(), asked.rate(step.factor), &step.record).join("; ");
    // Where the rate was missed, what was done is where it stops.
    let done = rise::metric(&step.record, "ops_per_s").value().unwrap_or(0.0) / asked.rate(1.0).max(1) as f64;
    let stops = done.min(step.factor);
    match step.limit.what.as_str() {
        // The platform kept the rate, and took longer.
        "" | "the requested rate" => (why, format!("Measured at {} x of the load.", six(step.factor))),
        what => {
            let evidence = format!("At {} x: {why}. {}", six(step.factor), step.limit.evidence);
            (format!("{what}, at {} x", short_factor(stops)), evidence)
        }
    }
}

/// A multiple in a sentence: `2.3`.
fn short_factor(factor: f64) -> String {
    six((factor * 100.0).round() / 100.0)
}

fn shapes(given: &[Shape], ios: &Figure, bytes: &Figure) -> Vec<ShapeRow> {
    let mut all: Vec<ShapeRow> = given
        .iter()
        .map(|shape| {
            let holds = |paid: &Figure, needed: Option<f64>| Some(paid.value()? >= needed?);
            let of_ios = holds(&shape.ios_per_s, ios.value());
            let of_bytes = holds(&shape.mb_per_s, bytes.value().map(|bytes| bytes / 1e6));
            let verdict = match (of_ios, of_bytes) {
                (Some(false), _) | (_, Some(false)) => TOO_SMALL,
                (Some(true), Some(true)) => HOLDS,
                _ => UNTOLD,
            };
            ShapeRow {
                shape: shape.name.clone(),
                month: Figure::decimal(shape.month),
                currency: shape.currency.clone(),
                ios_per_s: shape.ios_per_s.clone(),
                mb_per_s: shape.mb_per_s.clone(),
                verdict: verdict.to_owned(),
            }
        })
        .collect();
    all.sort_by(|a, b| a.month.value().unwrap_or(f64::INFINITY).total_cmp(&b.month.value().unwrap_or(f64::INFINITY)));
    all
}

/// The multiples of a record that was made before, with the directories of their steps: what an interrupted fit need not do again.
#[must_use]
pub fn steps_before(record: &Record) -> Vec<(f64, String)> {
    let info: FitInfo = record.parts.get().unwrap_or_default();
    info.steps.into_iter().filter_map(|step| Some((step.factor.value()?, step.directory))).collect()
}

/// The settings of its offer, which an interrupted fit has to have again.
#[must_use]
pub fn same_offer(record: &Record, offer: &Offer) -> bool {
    let info: FitInfo = record.parts.get().unwrap_or_default();
    info.offer == offer.rows()
}

/// Whether this box held the load.
#[must_use]
pub fn held(record: &Record) -> Option<bool> {
    let info: FitInfo = record.parts.get().unwrap_or_default();
    info.headroom_ratio.value().map(|ratio| ratio >= 1.0)
}

/// What stands before anything is written: the load with its formulas, what cannot be met, bytes and time.
#[must_use]
pub fn plan_rows(asked: &FitAsked) -> Vec<(String, String)> {
    let info = info(asked, &[]);
    let figure = |row: &DerivedRow| {
        let value = match &row.derived_value {
            Figure::Na(why) => format!("n/a ({why})"),
            known => format!("{}   {}; {}", short(known.value().unwrap_or_default()), row.from, row.formula),
        };
        (row.figure.clone(), value.trim_end_matches("; ").to_owned())
    };
    let assumed = info
        .assumptions
        .iter()
        .map(|row| ("assumed".to_owned(), format!("{}: {}; matters {}", row.unknown, row.assumed, row.weight)));
    let cells = info
        .not_carried
        .iter()
        .map(|row| ("not carried over".to_owned(), format!("{}, {}: {}", row.there, row.amount, row.here)));
    let unmet = info.unmet.iter().map(|text| ("not met".to_owned(), text.clone()));
    let offer: Vec<String> = info.offer.iter().map(|row| format!("{}={}", row.setting, row.text)).collect();
    let needs = [("offered".to_owned(), offer.join(" "))];
    let time =
        info.time_s.value().map(|s| ("time".to_owned(), format!("about {} min and the loading", (s / 60.0).ceil())));
    [("report".to_owned(), format!("{} ({})", info.report, info.tool))]
        .into_iter()
        .chain(info.load.iter().map(figure))
        .chain(assumed)
        .chain(cells)
        .chain(needs)
        .chain(unmet)
        .chain(time)
        .collect()
}
