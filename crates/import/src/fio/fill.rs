//! From what fio printed to the storage part of a record.

use super::super::draft::{Draft, Reading};
use super::super::located_number::LocatedNumber;
use super::{Disk, GroupWay, Job, Lat, Run, Way};
use assay_measure::histogram::Histogram;
use assay_measure::record::Figure;
use assay_measure::snapshot::SettingLine;
use assay_storage::record::info::{StorageGroup, StorageInfo, StorageJob, StorageLatency, StorageWay};
use assay_storage::record::load_of;
use std::collections::BTreeMap;

const MB: f64 = 1e6;
const MIB: f64 = 1_048_576.0;
const NOT_PRINTED: &str = "not printed";

/// Writes a figure of the storage part.
macro_rules! into {
    ($draft:expr, $reading:expr, $($path:tt)+) => {
        put_in!($draft, $reading, "/parts/storage", $draft.storage.get_or_insert_default(), $($path)+)
    };
}

pub(super) fn fill(run: Run, draft: &mut Draft) {
    draft.recognised(run.version.trim_start_matches("fio-"), run.format);
    if let Some(started) = &run.started {
        started.clone_into(&mut draft.record.run.started);
    }
    let scopes = scopes(&run.jobs);
    let info = draft.storage.get_or_insert_default();
    "syscall".clone_into(&mut info.layer);
    info.process_cpu_us_per_io = Figure::na(NOT_PRINTED);
    "n/a (not printed)".clone_into(&mut info.io_mode_achieved);
    info.devices.device_read_bytes = Figure::na(NOT_PRINTED);
    info.devices.device_write_bytes = Figure::na(NOT_PRINTED);
    info.devices.read_ratio = Figure::na(NOT_PRINTED);
    info.devices.write_ratio = Figure::na(NOT_PRINTED);
    let first = info.jobs.len();
    for (job, scope) in run.jobs.iter().zip(&scopes) {
        fill_job(draft, job, scope);
    }
    let clones: u64 = run.jobs.iter().filter_map(|job| job.clones).sum();
    draft.record.run.sessions += clones;
    groups(draft, &run, first);
    for disk in &run.disks {
        fill_disk(draft, disk);
    }
    for (key, seen) in &run.progress {
        draft.alone(syscall(seen.reading(key.as_str()), "Jobs", super::PROGRESS));
    }
}

/// What follows from all that was read.
pub(super) fn done(draft: &mut Draft) {
    let Some(info) = draft.storage.take() else {
        return;
    };
    let runtimes = info.jobs.iter().filter_map(|job| job.runtime_s.value());
    let longest = runtimes.fold(0.0, f64::max);
    if longest > 0.0 && info.groups.len() == 1 {
        draft.record.interval.elapsed_s = longest.into();
    }
    load_of(&mut draft.record, &info);
    draft.storage = Some(info);
}

/// The scope of each job: its name, and its place where several have one name.
fn scopes(jobs: &[Job]) -> Vec<String> {
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    let name = |job: &Job| job.name.clone();
    let mut all = Vec::new();
    for job in jobs {
        let count = seen.entry(job.name.as_str()).or_default();
        *count += 1;
        all.push(match *count {
            1 => name(job),
            n => format!("{} #{n}", job.name),
        });
    }
    all
}

fn fill_job(draft: &mut Draft, job: &Job, scope: &str) {
    let info = draft.storage.get_or_insert_default();
    let j = info.jobs.len();
    info.jobs.push(frame(job));
    if job.error.is_some() {
        draft.note(job.at, format!("{scope} ended with an error"));
    }
    for (w, way) in job.ways.iter().enumerate() {
        fill_way(draft, way, scope, j, w);
    }
    let base = format!("/parts/storage/jobs/{j}/sync");
    fill_latency(draft, &job.sync, scope, "sync_us", &base, |info| &mut info.jobs[j].sync);
    for (key, name, seen) in &job.rest {
        draft.alone(syscall(seen.reading(*key), name, scope));
    }
    for (what, seen) in &job.shares {
        let scope = format!("{scope}, {what}");
        draft.alone(syscall(seen.reading("lat_share_pct"), "lat", &scope));
    }
    for (key, slot, seen) in &job.slots {
        // Depths nobody used say nothing.
        if seen.value() != Some(0.0) {
            let scope = format!("{scope}, {slot}");
            draft.alone(syscall(seen.reading(*key), slot, &scope));
        }
    }
    derive(draft, j);
}

fn syscall(reading: Reading, name: &str, scope: &str) -> Reading {
    reading.name(name).scope(scope).layer("syscall")
}

/// The job with everything that is no figure of a measurement.
fn frame(job: &Job) -> StorageJob {
    let na = || Figure::na(NOT_PRINTED);
    let mut frame = StorageJob {
        name: job.name.clone(),
        group: job.group,
        rw: job.rw.clone(),
        ioengine: job.engine.clone(),
        iodepth_count: job.depth.unwrap_or(0),
        numjobs_count: job.clones.unwrap_or(0),
        block_sizes: job.blocks.clone(),
        options: (job.options.iter())
            .map(|(name, value, origin)| SettingLine {
                name: name.clone(),
                value: value.clone(),
                origin: (*origin).to_owned(),
            })
            .collect(),
        timing: "per I/O".to_owned(),
        runtime_s: na(),
        in_flight_mean_count: na(),
        little_count: na(),
        errors: job.error.iter().cloned().collect(),
        ..StorageJob::default()
    };
    for cpu in [
        &mut frame.cpu.user_us_per_io,
        &mut frame.cpu.system_us_per_io,
        &mut frame.cpu.thread_cpu_pct,
        &mut frame.cpu.thread_cpu_max_pct,
        &mut frame.cpu.kernel_entries_per_io,
        &mut frame.cpu.context_switches_per_io,
    ] {
        *cpu = na();
    }
    frame.sync = empty();
    frame.ways = (job.ways.iter())
        .map(|way| StorageWay {
            way: way.way.to_owned(),
            runtime_s: na(),
            ios_per_s: na(),
            mb_per_s: na(),
            mib_per_s: na(),
            target_ios_per_s: na(),
            lat: empty(),
            clat: empty(),
            slat: empty(),
            response: empty(),
            ..StorageWay::default()
        })
        .collect();
    frame
}

/// A latency of which nothing was printed.
fn empty() -> StorageLatency {
    let na = || Figure::na(NOT_PRINTED);
    StorageLatency {
        us_avg: na(),
        us_stddev: na(),
        us_min: na(),
        us_p50: na(),
        us_p90: na(),
        us_p95: na(),
        us_p99: na(),
        us_p999: na(),
        us_p9999: na(),
        us_p99999: na(),
        us_max: na(),
        ..StorageLatency::default()
    }
}

fn fill_way(draft: &mut Draft, way: &Way, scope: &str, j: usize, w: usize) {
    let name = way.way;
    let key = |what: &str| format!("{name}_{what}");
    macro_rules! field {
        ($seen:expr, $name:expr, $field:ident) => {
            if let Some(seen) = $seen {
                let reading = syscall(seen.reading(key(stringify!($field))), $name, scope);
                into!(draft, reading, jobs[j].ways[w].$field);
            }
        };
    }
    field!(&way.ios, "issued total", ios_count);
    field!(&way.short, "issued short", short_ios_count);
    field!(&way.bytes, "io", moved_bytes);
    field!(&way.runtime_s, "runtime", runtime_s);
    field!(&way.ios_per_s, "IOPS", ios_per_s);
    let mib_per_s = way.bytes_per_s.as_ref().map(|seen| seen.scaled(1.0 / MIB));
    field!(&mib_per_s, "BW", mib_per_s);
    match (&way.decimal_bytes_per_s, &way.bytes_per_s) {
        (Some(seen), _) => {
            let seen = seen.scaled(1.0 / MB);
            let reading = syscall(seen.reading(key("mb_per_s")), "BW", scope);
            into!(draft, reading, jobs[j].ways[w].mb_per_s);
        }
        (None, Some(seen)) => {
            let info = draft.storage.get_or_insert_default();
            info.jobs[j].ways[w].mb_per_s = seen.scaled(1.0 / MB).printed.value;
        }
        (None, None) => {}
    }
    let base = format!("/parts/storage/jobs/{j}/ways/{w}");
    let at = |what: &str| format!("{base}/{what}");
    fill_latency(draft, &way.lat, scope, &key("lat_us"), &at("lat"), |info| &mut info.jobs[j].ways[w].lat);
    fill_latency(draft, &way.clat, scope, &key("clat_us"), &at("clat"), |info| &mut info.jobs[j].ways[w].clat);
    fill_latency(draft, &way.slat, scope, &key("slat_us"), &at("slat"), |info| &mut info.jobs[j].ways[w].slat);
    for (what, label, seen) in &way.samples {
        draft.alone(syscall(seen.reading(key(what)), label, scope));
    }
}

/// A distribution under `stem`; percentiles without a field of their own stand alone.
fn fill_latency(
    draft: &mut Draft,
    lat: &Lat,
    scope: &str,
    stem: &str,
    base: &str,
    place: impl Fn(&mut StorageInfo) -> &mut StorageLatency,
) {
    if lat.is_empty() {
        return;
    }
    let what = kind_of(stem);
    let reading = |seen: &LocatedNumber, statistic: &str| {
        let name = format!("{what} {statistic}");
        syscall(seen.reading(format!("{stem}_{statistic}")), &name, scope)
    };
    macro_rules! field {
        ($seen:expr, $statistic:expr, $field:ident) => {
            if let Some(seen) = $seen {
                let reading = reading(seen, $statistic);
                put_in!(draft, reading, base, place(draft.storage.get_or_insert_default()), $field);
            }
        };
    }
    field!(&lat.avg, "avg", us_avg);
    field!(&lat.min, "min", us_min);
    field!(&lat.max, "max", us_max);
    field!(&lat.stddev, "stddev", us_stddev);
    if let Some(seen) = &lat.count {
        let key = format!("{}_count", stem.trim_end_matches("_us"));
        let reading = syscall(seen.reading(key), &format!("{what} N"), scope);
        put_in!(draft, reading, base, place(draft.storage.get_or_insert_default()), count);
    }
    for (percent, seen) in &lat.percentiles {
        let name = percentile(*percent);
        let seen = Some(seen);
        match name.as_str() {
            "p50" => field!(seen, "p50", us_p50),
            "p90" => field!(seen, "p90", us_p90),
            "p95" => field!(seen, "p95", us_p95),
            "p99" => field!(seen, "p99", us_p99),
            "p999" => field!(seen, "p999", us_p999),
            "p9999" => field!(seen, "p9999", us_p9999),
            "p99999" => field!(seen, "p99999", us_p99999),
            other => {
                if let Some(seen) = seen {
                    draft.alone(reading(seen, other));
                }
            }
        }
    }
    if let Some(histogram) = histogram(lat) {
        place(draft.storage.get_or_insert_default()).hist_ns = histogram;
    }
}

/// `clat` of `read_clat_us`.
fn kind_of(stem: &str) -> &str {
    let bare = stem.trim_end_matches("_us");
    bare.rsplit('_').next().unwrap_or(bare)
}

/// `p50`, `p995` for 99.5, `p0_1` for 0.1.
fn percentile(percent: f64) -> String {
    let text = format!("{percent}");
    if percent < 10.0 { format!("p{}", text.replace('.', "_")) } else { format!("p{}", text.replace('.', "")) }
}

/// The bins of json+; sum and extremes are those that were printed, as far as they fit.
fn histogram(lat: &Lat) -> Option<Histogram> {
    if lat.bins.is_empty() {
        return None;
    }
    let mut all = Histogram::new();
    for (middle_ns, count) in &lat.bins {
        all.record_n(*middle_ns, *count);
    }
    let ns = |seen: &Option<LocatedNumber>| Some((seen.as_ref()?.value()? * 1e3).round() as u64);
    let sum_ns = lat.avg.as_ref()?.value()? * 1e3 * all.count() as f64;
    let exact = Histogram::from_sparse(&all.sparse(), sum_ns.round() as u64, ns(&lat.min)?, ns(&lat.max)?);
    Some(exact.unwrap_or(all))
}

/// What follows from the figures of one job.
fn derive(draft: &mut Draft, j: usize) {
    let info = draft.storage.get_or_insert_default();
    let job = &mut info.jobs[j];
    let runtimes = job.ways.iter().filter_map(|way| way.runtime_s.value());
    let longest = runtimes.fold(0.0, f64::max);
    if longest > 0.0 {
        job.runtime_s = longest.into();
    }
    for way in &mut job.ways {
        let ios = way.ios_count;
        for latency in [&mut way.lat, &mut way.clat, &mut way.slat] {
            if latency.count == 0 && latency.us_avg.value().is_some() {
                latency.count = ios;
            }
        }
    }
    let in_flight = job.ways.iter().map(|way| {
        let lat = way.lat.us_avg.value().or(way.clat.us_avg.value())?;
        Some(way.ios_per_s.value()? * lat / 1e6)
    });
    let in_flight: Option<f64> = in_flight.sum();
    if let (Some(in_flight), false) = (in_flight, job.ways.is_empty()) {
        job.little_count = in_flight.into();
    }
}

/// The report groups: what `Run status` printed, else the sums of their jobs.
fn groups(draft: &mut Draft, run: &Run, first: usize) {
    let info = draft.storage.get_or_insert_default();
    let mut places: BTreeMap<u32, usize> = BTreeMap::new();
    for (place, group) in info.groups.iter().enumerate() {
        places.entry(group.group).or_insert(place);
    }
    // In the order of their first jobs, of which no two are alike.
    let mut of_group: BTreeMap<u32, Vec<&StorageJob>> = BTreeMap::new();
    let mut ids = Vec::new();
    for job in &info.jobs[first..] {
        let jobs = of_group.entry(job.group).or_default();
        if jobs.is_empty() && !places.contains_key(&job.group) {
            ids.push(job.group);
        }
        jobs.push(job);
    }
    for id in ids {
        places.insert(id, info.groups.len());
        info.groups.push(sums(id, &of_group[&id]));
    }
    for printed in &run.groups {
        for way in &printed.ways {
            fill_group(draft, printed.group, places.get(&printed.group).copied(), way);
        }
    }
}

fn sums(id: u32, jobs: &[&StorageJob]) -> StorageGroup {
    let mut group = StorageGroup {
        group: id,
        jobs: jobs.iter().map(|job| job.name.clone()).collect(),
        analysed: "IOPS".to_owned(),
        not_analysed: Some("no seconds were printed".to_owned()),
        drift_ratio: Figure::na(NOT_PRINTED),
        stall_period_s: Figure::na(NOT_PRINTED),
        device_busy_pct: Figure::na(NOT_PRINTED),
        ..StorageGroup::default()
    };
    group.jobs.dedup();
    for name in super::WAYS {
        let ways: Vec<&StorageWay> = (jobs.iter().flat_map(|job| &job.ways)).filter(|way| way.way == name).collect();
        match ways.as_slice() {
            [] => {}
            [only] => group.ways.push((*only).clone()),
            several => group.ways.push(together(name, several)),
        }
    }
    group
}

/// Several jobs that went the same way: counts and rates add up, percentiles do not.
fn together(name: &str, ways: &[&StorageWay]) -> StorageWay {
    let sum = |of: fn(&StorageWay) -> &Figure| {
        let figures = ways.iter().map(|way| of(way).clone());
        figures.reduce(|a, b| a.plus(&b)).unwrap_or_default()
    };
    let runtimes = ways.iter().filter_map(|way| way.runtime_s.value());
    StorageWay {
        way: name.to_owned(),
        ios_count: ways.iter().map(|way| way.ios_count).sum(),
        moved_bytes: ways.iter().map(|way| way.moved_bytes).sum(),
        short_ios_count: ways.iter().map(|way| way.short_ios_count).sum(),
        runtime_s: runtimes.fold(0.0, f64::max).into(),
        ios_per_s: sum(|way| &way.ios_per_s),
        mb_per_s: sum(|way| &way.mb_per_s),
        mib_per_s: sum(|way| &way.mib_per_s),
        target_ios_per_s: Figure::na(NOT_PRINTED),
        lat: mean(ways, |way| &way.lat),
        clat: mean(ways, |way| &way.clat),
        slat: mean(ways, |way| &way.slat),
        response: empty(),
    }
}

fn mean(ways: &[&StorageWay], of: fn(&StorageWay) -> &StorageLatency) -> StorageLatency {
    let na = || Figure::na("several jobs: their percentiles do not add up");
    let mut all = StorageLatency {
        us_p50: na(),
        us_p90: na(),
        us_p95: na(),
        us_p99: na(),
        us_p999: na(),
        us_p9999: na(),
        us_p99999: na(),
        ..empty()
    };
    let (mut count, mut sum_us) = (0, 0.0);
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for latency in ways.iter().map(|way| of(way)) {
        let figures = (&latency.us_avg, &latency.us_min, &latency.us_max);
        let (Some(avg), Some(min), Some(max)) = (figures.0.value(), figures.1.value(), figures.2.value()) else {
            return all;
        };
        count += latency.count;
        sum_us += avg * latency.count as f64;
        (least, most) = (least.min(min), most.max(max));
    }
    all.count = count;
    all.us_avg = Figure::decimal(sum_us).per(count as f64, NOT_PRINTED);
    (all.us_min, all.us_max) = (Figure::decimal(least), Figure::decimal(most));
    all
}

/// What `Run status` printed of a group goes over the sums.
fn fill_group(draft: &mut Draft, id: u32, group: Option<usize>, printed: &GroupWay) {
    let info = draft.storage.get_or_insert_default();
    let place = group.and_then(|g| {
        let ways = info.groups[g].ways.iter();
        let found = ways.into_iter().position(|way| way.way == printed.way);
        found.map(|w| (g, w))
    });
    let scope = format!("group {id}");
    for (key, label, seen) in &printed.figures {
        let reading = syscall(seen.reading(format!("{}_{key}", printed.way)), label, &scope);
        match place.filter(|_| *key == "mib_per_s") {
            Some((g, w)) => into!(draft, reading, groups[g].ways[w].mib_per_s),
            // Beside the sums of the jobs, which stay: the identities compare the two.
            None => draft.alone(reading),
        }
    }
}

fn fill_disk(draft: &mut Draft, disk: &Disk) {
    for (key, label, seen) in &disk.figures {
        let reading = seen.reading(*key).name(label).scope(&disk.name);
        draft.alone(reading.layer("device"));
    }
}
