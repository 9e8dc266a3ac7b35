//! The record of caps: its kind, and how its figures follow from the loads.

use super::fit::{Fitted, Load, Shape};
use super::info::{BUCKET, FELL, LEVEL, NAMED_RATIO, NONE, ThrottleInfo, ThrottleRow, UNKNOWN};
use super::load::{RESOURCES, Resource, SLICE};
use super::{ThrottleReadings, findings, page};
use assay_measure::facts::{IoCap, io_caps};
use assay_measure::figures::of_layer;
use assay_measure::kind::OwnKind;
use assay_measure::record::{Figure, Record};
use assay_measure::snapshot::{RunData, Verdict};
use assay_measure::units::{many, thousands};

/// The kind of its records.
pub(super) const KIND: OwnKind<ThrottleInfo> = OwnKind {
    judges: findings::RULES,
    charts: page::charts,
    ..OwnKind::new(|info| of_layer("syscall", info), page::render, page::headline)
};

const SHORT: &str = "too little time to judge; use a longer --time";

/// Builds the record. `run` brings the labels and the host's facts; of the measurements in it nothing is read.
pub(super) fn build(run: &RunData, readings: &ThrottleReadings) -> Record {
    let mut run = run.clone();
    run.sessions = 1;
    run.engine_facts.clone_from(&readings.facts);
    if readings.is_stopped {
        let loads = many(readings.loads.len() as u64, "load");
        run.verdict = Verdict::Incomplete(format!("stopped on request after {loads}"));
    }
    let record = readings.host.record(run);
    let disk = readings.disk.clone().unwrap_or_default();
    let caps: Vec<IoCap<'_>> = io_caps(&record.host.facts).filter(|cap| cap.disk == disk).collect();
    let loads = readings
        .loads
        .iter()
        .zip(RESOURCES)
        .map(|(load, resource)| row(load, resource, readings.request_bytes, &caps))
        .collect();
    let info = ThrottleInfo {
        path: readings.path.clone(),
        is_memory: readings.is_memory,
        is_direct: readings.is_direct,
        slice_s: SLICE.as_secs_f64(),
        disk,
        loads,
    };
    KIND.complete(record, &info)
}

fn row(load: &Load, resource: Resource, request_bytes: Option<[u64; 2]>, caps: &[IoCap<'_>]) -> ThrottleRow {
    let fitted = load.fit();
    let named = fitted.and_then(|fitted| named(&fitted, resource, request_bytes, caps));
    let known = |value: Option<f64>| Figure::known(value.map(Figure::decimal), SHORT);
    let rate = fitted.map(|fitted| fitted.rate_per_s);
    let shape = fitted.and_then(|fitted| fitted.shape);
    let cap = match shape {
        Some(Shape::Bucket(_)) => BUCKET,
        Some(Shape::Level) => LEVEL,
        _ if named.is_some() => LEVEL,
        None => "",
        Some(Shape::Fell) => FELL,
        Some(Shape::Open) => NONE,
    };
    let by = match named {
        Some((cap, _)) => format!("{}: {} {}", cap.by, thousands(cap.per_s as u64), kind(&cap)),
        None if [BUCKET, LEVEL].contains(&cap) => UNKNOWN.to_owned(),
        None => String::new(),
    };
    let burst = |of: fn(&super::fit::Burst) -> f64| match shape {
        Some(Shape::Bucket(burst)) => Figure::decimal(of(&burst)),
        Some(_) => Figure::na("no burst seen"),
        None => Figure::na(SHORT),
    };
    let [first, second] = &load.done;
    let per_s = |done: &[f64]| done.iter().map(|count| count / load.slice_s).collect();
    ThrottleRow {
        resource: resource.name.to_owned(),
        operation: resource.operation.to_owned(),
        operation_bytes: resource.bytes,
        depth: resource.depths[0],
        deeper_depth: resource.depths[1],
        sustained_per_s: known(rate),
        sustained_half_width: known(fitted.and_then(|fitted| fitted.half_width)),
        sustained_mb_per_s: known(rate.map(|rate| rate * resource.bytes as f64 / 1e6)),
        cap: cap.to_owned(),
        by,
        limit_per_s: Figure::known(named.map(|(_, per_s)| Figure::decimal(per_s)), "no control group sets it"),
        burst_per_s: burst(|burst| burst.per_s),
        burst_s: burst(|burst| burst.lasted_s),
        bucket_count: burst(|burst| burst.size),
        refill_s: burst(|burst| burst.refill_s),
        loaded_s: Figure::decimal((first.len() + second.len()) as f64 * load.slice_s),
        pause_s: load.pause_s,
        first_per_s: per_s(first),
        second_per_s: per_s(second),
    }
}

/// What a limit counts, in words.
fn kind(cap: &IoCap<'_>) -> String {
    let words = cap.kind.replace('_', " ");
    if words.ends_with("bytes") { words + "/s" } else { words }
}

/// The limit of a control group that the rate is at, with what it allows in operations of this load per second.
fn named<'a>(
    fitted: &Fitted,
    resource: Resource,
    request_bytes: Option<[u64; 2]>,
    caps: &[IoCap<'a>],
) -> Option<(IoCap<'a>, f64)> {
    let direction = if resource.is_write { "write" } else { "read" };
    // A large operation is several requests; how many depends on where its pages lie.
    let requests = |bytes: u64| resource.bytes.div_ceil(bytes.max(1));
    let [most, fewest] = request_bytes.map_or([1, 1], |bytes| bytes.map(requests));
    let of_load = |cap: &IoCap<'a>| {
        let (cap, bytes) = (*cap, cap.kind.ends_with("bytes"));
        let units = if bytes { resource.bytes..=resource.bytes } else { fewest..=most };
        units.map(move |units| (cap, cap.per_s / units as f64))
    };
    let away = |per_s: f64| (fitted.rate_per_s / per_s - 1.0).abs();
    let near = caps.iter().filter(|cap| cap.kind.starts_with(direction)).flat_map(of_load);
    let near = near.filter(|(_, per_s)| away(*per_s) <= NAMED_RATIO);
    near.min_by(|(_, a), (_, b)| away(*a).total_cmp(&away(*b)))
}
