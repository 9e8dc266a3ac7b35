//! The record of first reads: its kind, and how its figures follow from the readings.

use super::estimate::{Estimate, Region, Slow, State, Verdict as Found};
use super::info::{COLD, FirstTouchInfo, NONE, PARTLY, RegionRow, SOME, UNKNOWN, WARM};
use super::reader::Streamed;
use super::{FirstTouchReadings, findings, page};
use assay_measure::figures::of_layer;
use assay_measure::kind::{Finding, OwnKind};
use assay_measure::record::{Figure, Record};
use assay_measure::snapshot::{RunData, Verdict};
use assay_measure::units::{many, size};

/// The kind of its records.
pub(super) const KIND: OwnKind<FirstTouchInfo> = OwnKind {
    judges: findings::RULES,
    charts: page::charts,
    conditions: |info| vec![("object", info.object.clone(), Finding::Forbids)],
    ..OwnKind::new(|info| of_layer("syscall", info), page::render, page::headline)
};

const MIB: f64 = 1_048_576.0;
const NOT_COLD: &str = "nothing cold was found";
const NOT_ASKED: &str = "not asked for";
const NOT_READ: &str = "no block was read";
const STOPPED: &str = "stopped before";

/// Builds the record. `run` brings the labels and the host's facts; of the measurements in it nothing is read.
pub(super) fn build(run: &RunData, readings: &FirstTouchReadings) -> Record {
    let mut run = run.clone();
    (run.sessions, run.seed) = (1, readings.seed);
    run.engine_facts.clone_from(&readings.facts);
    if readings.is_stopped {
        let after = match &readings.hydration {
            Some((.., read)) => format!("{} read in advance", size(read.bytes)),
            None => many(readings.touches.len() as u64, "block"),
        };
        run.verdict = Verdict::Incomplete(format!("stopped on request after {after}"));
    }
    KIND.complete(readings.host.record(run), &info(readings))
}

fn info(readings: &FirstTouchReadings) -> FirstTouchInfo {
    let estimate = Estimate::of(&readings.touches, readings.regions.len());
    let (verdict, why) = verdict(readings, &estimate);
    let seen = &estimate.seen;
    let known = |figure: Figure| if verdict == UNKNOWN { Figure::na(&why) } else { figure };
    let bytes = |share: f64| known(Figure::decimal(share * readings.data_bytes as f64));
    let [share, low, high] = estimate.share;
    let us = |us: Option<f64>| Figure::known(us, NOT_READ);
    let pct = |slow: Slow| Figure::known((slow.of > 0).then(|| 100.0 * slow.share()), NOT_READ);
    let to_hydrate: u64 = estimate.hydrated().into_iter().map(|region| readings.regions[region]).sum();
    let is_cold = verdict == COLD;
    let of_cold = |figure: Option<f64>| Figure::known(figure, if is_cold { STOPPED } else { NOT_COLD });
    let speeds = readings.speeds.map(|speed| speed.filter(|_| is_cold).map(per_s));
    let hydrate = |speed: Option<f64>| of_cold(speed.map(|speed| to_hydrate as f64 / speed));
    let of_hydration =
        |get: fn(&(u64, u64, Streamed)) -> f64| Figure::known(readings.hydration.as_ref().map(get), NOT_ASKED);
    FirstTouchInfo {
        path: readings.path.clone(),
        object: readings.kind.clone(),
        disk: readings.disk.clone(),
        is_memory: readings.is_memory,
        is_direct: readings.is_direct,
        data_bytes: readings.data_bytes,
        hole_bytes: readings.hole_bytes,
        left_out_bytes: readings.left_out.1,
        files_left_out: readings.left_out.0,
        seed: readings.seed,
        blocks_count: seen.first.of,
        as_cold_count: seen.as_cold,
        reversed_count: seen.reversed,
        cached_count: seen.cached,
        cold_bytes: bytes(share),
        cold_low_bytes: bytes(low),
        cold_high_bytes: bytes(high),
        cold_half_width_bytes: bytes((high - low) / 2.0),
        cold_pct: known(Figure::decimal(100.0 * share)),
        first_read_us_p50: us(if is_cold { estimate.cold_us } else { estimate.first_us }),
        second_read_us_p50: us(estimate.second_us),
        slow_first_pct: pct(seen.first),
        slow_second_pct: pct(seen.second),
        slow_beside_quick_pct: pct(seen.beside_quick),
        slow_beside_slow_pct: pct(seen.beside_slow),
        to_hydrate_bytes: of_cold(is_cold.then_some(to_hydrate as f64)),
        alone_mib_per_s: of_cold(speeds[0].map(|speed| speed / MIB)),
        together_mib_per_s: of_cold(speeds[1].map(|speed| speed / MIB)),
        hydrate_alone_s: hydrate(speeds[0]),
        hydrate_together_s: hydrate(speeds[1]),
        hydrate_limit_bytes_per_s: of_hydration(|(rate, ..)| *rate as f64),
        hydrate_asked_bytes: of_hydration(|(_, all, _)| *all as f64),
        hydrated_bytes: of_hydration(|(.., read)| read.bytes as f64),
        hydrated_s: of_hydration(|(.., read)| read.elapsed_s),
        regions: rows(readings, &estimate, verdict),
        verdict: verdict.to_owned(),
        why,
    }
}

fn per_s(read: Streamed) -> f64 {
    read.bytes as f64 / read.elapsed_s
}

fn verdict(readings: &FirstTouchReadings, estimate: &Estimate) -> (&'static str, String) {
    let unknown = |why: &str| (UNKNOWN, why.to_owned());
    match (&readings.unreadable, &estimate.verdict) {
        (Some(why), _) => unknown(why),
        _ if readings.is_memory => unknown("the file lies in memory (tmpfs)"),
        _ if !readings.is_direct => {
            unknown("the file system refuses direct I/O, so the page cache answers second reads")
        }
        (None, Found::Unknown(why)) => unknown(why),
        (None, Found::NoneFound) => (NONE, String::new()),
        (None, Found::Cold) => (COLD, String::new()),
    }
}

fn rows(readings: &FirstTouchReadings, estimate: &Estimate, verdict: &str) -> Vec<RegionRow> {
    let mut end = 0;
    let row = |(region, bytes): (&Region, &u64)| {
        let begin = end;
        end += bytes;
        let gib = |bytes: u64| Figure::decimal(bytes as f64 / MIB / 1024.0);
        let known = |value: Option<f64>| Figure::known(value, NOT_READ);
        let ratio = |at: usize| known(region.ratio.map(|ratio| ratio[at]));
        RegionRow {
            from_gib: gib(begin),
            to_gib: gib(end),
            blocks_count: region.seen.first.of,
            first_us_p50: known(region.first_us),
            second_us_p50: known(region.second_us),
            first_over_second_ratio: ratio(0),
            ratio_low: ratio(1),
            ratio_high: ratio(2),
            slow_first_count: region.seen.first.slow,
            slow_second_count: region.seen.second.slow,
            as_cold_count: region.seen.as_cold,
            verdict: if verdict == UNKNOWN || region.seen.first.of == 0 { "" } else { state(region.state, verdict) }
                .to_owned(),
        }
    };
    estimate.regions.iter().zip(&readings.regions).map(row).collect()
}

fn state(state: State, verdict: &str) -> &'static str {
    match state {
        State::Warm => WARM,
        State::Cold if verdict == COLD => COLD,
        State::PartlyCold if verdict == COLD => PARTLY,
        _ => SOME,
    }
}
