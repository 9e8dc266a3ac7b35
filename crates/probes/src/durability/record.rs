//! The record of durability: its kind, and how its figures follow from what was found.

use super::costs::{COMMIT, COMMITS, Cost, DSYNC, IMAGE, IMAGES, UNSYNCED, WAYS, Way};
use super::info::{CostRow, Cut, DurabilityInfo, POWER, READ_BACK, STAMPS};
use super::{DurabilityReadings, findings, page, verdict};
use assay_block::TearUnits;
use assay_measure::figures::of_layer;
use assay_measure::kind::{Finding, OwnKind, TestConditions};
use assay_measure::record::{Figure, Latency, Metric, Record};
use assay_measure::snapshot::{Fact, RunData, Verdict};
use assay_measure::statistics::{half_width, mean};

/// The kind of its records.
pub(super) const KIND: OwnKind<DurabilityInfo> =
    OwnKind { judges: findings::RULES, conditions, ..OwnKind::new(metrics, page::render, page::headline) };

/// Reading back measures no commit.
fn metrics(info: &DurabilityInfo) -> Vec<Metric> {
    let all = of_layer("syscall", info).into_iter();
    all.filter(|metric| info.part != READ_BACK || !metric.key.ends_with("us_p50")).collect()
}

fn conditions(info: &DurabilityInfo) -> TestConditions {
    vec![("part", info.part.clone(), Finding::Forbids)]
}

const NOT_MEASURED: &str = "not measured with a witness";
const NO_CUT: &str = "no cut seen";

/// Builds the record. `run` brings the labels and the host's facts; of the measurements in it nothing is read.
pub(super) fn build(run: &RunData, readings: &DurabilityReadings) -> Record {
    let mut run = run.clone();
    run.sessions = 1;
    run.engine_facts = readings.facts.lines().into_iter().map(|(name, value)| Fact::new(name, &value)).collect();
    let failed = readings.stamped.as_ref().map_or("", |stamped| stamped.failed.as_str());
    if !failed.is_empty() {
        run.verdict = Verdict::Incomplete(format!("the witness: {failed}"));
    } else if readings.is_stopped {
        run.verdict = Verdict::Incomplete("stopped on request".to_owned());
    }
    KIND.complete(readings.host.record(run), &info(readings))
}

fn info(readings: &DurabilityReadings) -> DurabilityInfo {
    let facts = &readings.facts;
    let yes_no = |known: &Result<bool, String>| match known {
        Ok(true) => "yes",
        Ok(false) => "no",
        Err(_) => "",
    };
    let size =
        |known: &Result<u64, String>| known.as_ref().map_or_else(|why| Figure::na(why), |bytes| Figure::Count(*bytes));
    let unit = |of: fn(&TearUnits) -> Figure| readings.units.as_ref().map_or_else(|| Figure::na("not asked"), of);
    let is_option =
        |word: &str| facts.mount_options.as_ref().is_ok_and(|all| all.split(',').any(|option| option == word));
    let costs: Vec<CostRow> = readings.costs.iter().zip(WAYS).map(row).collect();
    let p50 = |write: &str| {
        let found = costs.iter().find(|row| row.write == write);
        found.map_or_else(|| Figure::na(NOT_MEASURED), |row| row.latency.us_p50.clone())
    };
    let stamped = readings.stamped.clone().unwrap_or_default();
    let cuts = stamped.cuts;
    let [page_image_cost_pct, page_image_cost_half_width_pct] = cost_pct(&readings.costs, COMMIT, IMAGE);
    let [page_image_shared_cost_pct, page_image_shared_cost_half_width_pct] =
        cost_pct(&readings.costs, COMMITS, IMAGES);
    let judged = |is: fn(&Cut) -> bool| cuts.iter().filter(|cut| is(cut)).count() as u64;
    let missing: u64 = cuts.iter().map(Cut::missing).sum();
    let cuts_count = judged(Cut::is_cut);
    let mut info = DurabilityInfo {
        path: readings.path.clone(),
        part: readings.part.to_owned(),
        disk: facts.disk.clone().unwrap_or_default(),
        is_memory: facts.is_tmpfs,
        is_without_barriers: is_option("nobarrier") || is_option("barrier=0"),
        is_direct: readings.is_direct,
        is_virtual: readings.is_virtual,
        write_cache: facts.write_cache.clone().unwrap_or_default(),
        fua: yes_no(&facts.fua).to_owned(),
        rotates: yes_no(&facts.rotational).to_owned(),
        commit_us_p50: if readings.part == STAMPS { Latency::of(&stamped.latency).us_p50 } else { p50(COMMIT) },
        dsync_us_p50: p50(DSYNC),
        unsynced_us_p50: p50(UNSYNCED),
        atomic_write_bytes: unit(announced),
        extent_alignment_bytes: unit(|units| match &units.alignment {
            Ok(bytes) => Figure::Count(*bytes),
            Err(why) => Figure::na(why),
        }),
        logical_block_bytes: size(&facts.logical_block_bytes),
        physical_block_bytes: size(&facts.physical_block_bytes),
        is_here: stamped.is_here,
        page_image_cost_pct,
        page_image_cost_half_width_pct,
        page_image_shared_cost_pct,
        page_image_shared_cost_half_width_pct,
        cuts_count: Figure::Count(cuts_count),
        missing_count: if cuts.is_empty() { Figure::na(NO_CUT) } else { Figure::Count(missing) },
        loss_per_cut_most_pct: most_pct(&cuts),
        witness: readings.witness.clone(),
        stamps_count: stamped.count,
        stamp: Latency::of(&stamped.latency),
        costs,
        cuts,
        ..DurabilityInfo::default()
    };
    let (word, because) = verdict::of(&info);
    word.clone_into(&mut info.durability);
    info.because = because;
    info
}

/// Of cuts that lost nothing. Resets test less: they do not lower the bound of power cuts.
fn most_pct(cuts: &[Cut]) -> Figure {
    let of = |is: fn(&Cut) -> bool| cuts.iter().filter(|cut| is(cut)).count() as u64;
    let (power, all) = (of(|cut| cut.end == POWER), of(Cut::is_cut));
    match (if power > 0 { power } else { all }, cuts.iter().any(|cut| cut.missing() > 0)) {
        (0, _) => Figure::na(NO_CUT),
        (_, true) => Figure::na("acknowledged stamps are missing"),
        (cuts, false) => Figure::decimal(verdict::most_pct(cuts)),
    }
}

/// The smaller of what file and device announce; that of one of them where the other says nothing.
fn announced(units: &TearUnits) -> Figure {
    match (&units.file, &units.device) {
        (Ok(file), Ok(device)) => Figure::Count(*file.min(device)),
        (Ok(bytes), Err(_)) | (Err(_), Ok(bytes)) if *bytes == 0 => Figure::Count(0),
        (Err(why), _) | (_, Err(why)) => Figure::na(why),
    }
}

fn row((cost, way): (&Cost, Way)) -> CostRow {
    let commits = Figure::Count(cost.latency.count() * way.commits);
    CostRow {
        write: way.name.to_owned(),
        write_bytes: way.bytes(),
        commits_per_write: way.commits,
        log_bytes_per_commit: way.log_bytes,
        commits_per_s: commits.per(cost.elapsed_ns as f64 / 1e9, "no time passed"),
        latency: Latency::of(&cost.latency),
    }
}

/// What is lost of the commits per second, %, and half its 95 % interval: round by round, so that a mood of the device counts on both sides.
fn cost_pct(costs: &[Cost], without: &str, with: &str) -> [Figure; 2] {
    let rates = |write: &str| {
        let found = costs.iter().zip(WAYS).find(|(_, way)| way.name == write);
        found.map_or(&[][..], |(cost, _)| &cost.rates)
    };
    let rounds = rates(without).iter().zip(rates(with));
    let lost: Vec<f64> =
        rounds.map(|(without, with)| 100.0 * (1.0 - with / without)).filter(|pct| pct.is_finite()).collect();
    let half = half_width(&lost);
    [half.map(|_| mean(&lost)), half].map(|pct| Figure::known(pct.map(Figure::decimal), NOT_MEASURED))
}
