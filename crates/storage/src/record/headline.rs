//! The headline of a storage probe: its jobs, their rates and slow I/Os, and whether the level was steady.

use super::goal;
use crate::record::info::{StorageInfo, StorageJob, StorageWay};
use crate::record::warnings::{ANSWERED_ABOVE, IN_MEMORY};
use assay_measure::kind::{Headline, HeadlineFigure, HeadlineLine, Limit, Next, given};
use assay_measure::plain::shell_word;
use assay_measure::record::{Advice, Figure, Record};
use assay_measure::units::{fixed, many, short, shorten, thousands, told};
use assay_measure::{cap, cpu};

/// Maximum number of groups whose rates are shown.
const GROUPS: usize = 4;

/// The headline of a probe.
pub(super) fn of(record: &Record, info: &StorageInfo) -> Headline {
    Headline {
        tested: tested(record, info),
        rows: rows(info),
        steadiness: steadiness(info),
        rerun_command: rerun_command(record),
        limit: limit(record, info),
        next: next(record, info),
        ..Headline::default()
    }
}

/// If seconds vary by more than this share of their mean, there is no steady level.
const SCATTERED: f64 = 0.2;
/// What takes more of the time than this is the largest part, %.
const MOST_PCT: f64 = 50.0;
/// A resource used above this share is exhausted, %.
const USED_UP_PCT: f64 = 95.0;

fn limit(record: &Record, info: &StorageInfo) -> Limit {
    if record.import.is_some() {
        return Limit::unknown("the output of another tool shows what was done, not what limited it");
    }
    if let Some(limit) = answered_above(record, info) {
        return limit;
    }
    let host = || cpu::host(record, None);
    let said = |ids: &[&str]| record.advice.iter().find(|advice| ids.contains(&advice.id.as_str()));
    for (ids, what) in
        [(&["R12", "A5"][..], "a limit set on the device"), (&["A6", cap::RULE.id], "a level that something holds")]
    {
        if let Some(cap) = said(ids) {
            let limit = cap::limit_of(cap).unwrap_or_else(|| Limit::new(what, cap.text.clone()));
            return cpu::capped(host(), limit);
        }
    }
    if let Some(limit) = syncs(info) {
        return cpu::proved(host(), limit);
    }
    if let Some(limit) = host().map(|host| in_device(info).map_or(host.limit.clone(), |own| host.beside(own))) {
        return limit;
    }
    let ways = || info.jobs.iter().flat_map(|job| &job.ways);
    let kept = |way: &StorageWay| {
        let (asked, done) = (way.target_ios_per_s.value(), way.ios_per_s.value());
        asked.zip(done).is_some_and(|(asked, done)| asked > 0.0 && done >= 0.98 * asked)
    };
    if ways().next().is_some() && ways().all(kept) {
        return Limit::new("the requested rate", "Every job reached its requested rate, so assay did not try more.");
    }
    if let Some(limit) = goal_limit(info) {
        return limit;
    }
    let busiest = info.jobs.iter().filter_map(|job| Some((job, job.cpu.thread_cpu_max_pct.value()?)));
    let busiest = busiest.max_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((job, pct)) = busiest.filter(|(_, pct)| *pct >= USED_UP_PCT) {
        return Limit::new(
            "the probe's own thread: it uses one CPU completely",
            format!("A thread of {} was on a CPU {} % of the time. Raise numjobs.", job.name, fixed(pct, 0)),
        );
    }
    device_limit(info)
}

/// The finding that most of what was read came from no device.
fn not_from_devices(record: &Record) -> Option<&Advice> {
    record.advice.iter().find(|advice| [ANSWERED_ABOVE.id, IN_MEMORY.id].contains(&advice.id.as_str()))
}

/// What answered in place of the devices, of jobs that only read.
fn answered_above(record: &Record, info: &StorageInfo) -> Option<Limit> {
    let is_read = |way: &StorageWay| way.way == "read" || way.ios_count == 0;
    let found = not_from_devices(record)?;
    let evidence = info.devices.read_ratio.value().map_or_else(
        || found.text.clone(),
        |ratio| {
            let pct = fixed(100.0 * ratio, 0);
            format!(
                "The devices delivered {pct} % of the bytes that the jobs read; a layer above them answered the rest."
            )
        },
    );
    let reads_alone = info.jobs.iter().flat_map(|job| &job.ways).all(is_read);
    reads_alone.then(|| Limit::new("memory and the CPUs that read it, not the device", evidence))
}

/// The syncs between the writes, where they take most of a job's time.
fn syncs(info: &StorageInfo) -> Option<Limit> {
    let share = |job: &StorageJob| {
        let time_us = job.runtime_s.value().filter(|s| *s > 0.0)? * 1e6 * job.numjobs_count.max(1) as f64;
        Some(100.0 * job.sync.count as f64 * job.sync.us_avg.value()? / time_us)
    };
    let most = info.jobs.iter().filter_map(|job| Some((job, share(job)?)));
    let (job, pct) = most.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, pct)| *pct >= MOST_PCT)?;
    let us = job.sync.us_avg.value().unwrap_or(0.0);
    Some(Limit::new(
        "the flush: the job waits until its writes are durable",
        format!(
            "fsync or fdatasync is {} % of the time of {}, {} each on average.",
            fixed(pct.min(100.0), 0),
            job.name,
            told(us, "us", 0)
        ),
    ))
}

/// The device's own part of a request's time, where one job reads or writes one device and both times are known.
fn in_device(info: &StorageInfo) -> Option<Limit> {
    let ([job], [disk]) = (info.jobs.as_slice(), info.disks.as_slice()) else {
        return None;
    };
    let [way] = job.ways.as_slice() else {
        return None;
    };
    let device = if way.way == "read" { &disk.read_us_avg } else { &disk.write_us_avg };
    let (device, own) = (device.value()?, way.lat.us_avg.value().filter(|us| *us > 0.0)?);
    let pct = 100.0 * device / own;
    (MOST_PCT..=101.0).contains(&pct).then(|| {
        let Limit { what, .. } = device_limit(info);
        Limit::new(
            what,
            format!("Of {} of a {} the device itself took {}.", told(own, "us", 0), way.way, told(device, "us", 0)),
        )
    })
}

/// The limit of a search for a depth: the latency goal, or the requested depth.
fn goal_limit(info: &StorageInfo) -> Option<Limit> {
    let kept = |job: &&StorageJob| job.search.as_ref().is_some_and(|search| search.attained);
    let job = info.jobs.iter().find(kept)?;
    let (found, asked) = (job.in_flight_most_count(), job.iodepth_count * job.numjobs_count.max(1));
    Some(if found < asked {
        Limit::new(
            "the requested latency target",
            format!("{}: the search found that more than {found} in flight miss it.", job.name),
        )
    } else {
        Limit::new(
            "the requested depth",
            format!(
                "{}: iodepth={} meets the latency target; a higher iodepth may meet it too.",
                job.name, job.iodepth_count
            ),
        )
    })
}

/// The device as the limit, and whether more requests in flight could raise the rate.
fn device_limit(info: &StorageInfo) -> Limit {
    let busy = info.disks.iter().filter_map(|disk| disk.busy_pct.value());
    // Groups run one after another, the jobs of a group concurrently.
    let of_group = |number: u32| -> f64 {
        let jobs = info.jobs.iter().filter(|job| job.group == number);
        jobs.filter_map(|job| job.in_flight_mean_count.value()).sum()
    };
    let in_flight = info.jobs.iter().map(|job| of_group(job.group));
    let in_flight = in_flight.fold(0.0, f64::max);
    let Some(busy) = busy.reduce(f64::max) else {
        return Limit::new(
            "the storage at this depth",
            format!("At most {} requests were in flight on average.", fixed(in_flight, 1)),
        );
    };
    let evidence = format!(
        "The device was busy {} % of the whole run, with at most {} requests of the jobs in flight on average.",
        fixed(busy, 0),
        fixed(in_flight, 1)
    );
    if busy < USED_UP_PCT {
        Limit::new("the latency of single requests: keep more requests in flight", evidence)
    } else {
        Limit::new("the device at this depth", evidence)
    }
}

fn next(record: &Record, info: &StorageInfo) -> Vec<Next> {
    let place = info.jobs.iter().flat_map(|job| &job.files).next();
    let place = place.and_then(|file| std::path::Path::new(file).parent());
    let Some(place) = place.filter(|place| record.import.is_none() && !place.as_os_str().is_empty()) else {
        return Vec::new();
    };
    vec![
        Next::new(format!("assay sync {}", place.display()), "measures the cost of a durable write in that place"),
        Next::new(
            format!("assay run --target native:{}/data", place.display()),
            "shows how much of this a database's I/O path gets",
        ),
    ]
}

/// The options as given; empty if some came from a job file.
fn rerun_command(record: &Record) -> String {
    let given = given(record);
    if given.is_empty() || given.len() < record.plan.settings.len() {
        return String::new();
    }
    let words = given.iter().map(|line| {
        let name = line.name.split_once('.').map_or(line.name.as_str(), |(_, name)| name);
        match line.value.as_str() {
            "" => format!("--{name}"),
            value => shell_word(&format!("--{name}={value}")),
        }
    });
    let words: Vec<String> = words.collect();
    format!("assay io {}", words.join(" "))
}

/// A depth is kept from this share of what was asked for on.
const KEPT: f64 = 0.5;

fn tested(record: &Record, info: &StorageInfo) -> String {
    let is_imported = record.import.is_some();
    let jobs: Vec<String> = info
        .jobs
        .iter()
        .take(3)
        .map(|job| {
            let (most, mean) = (job.in_flight_most_count(), job.little_count.value());
            let is_synchronous =
                ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"].contains(&job.ioengine.as_str());
            let depth = match (most, mean.filter(|_| is_imported)) {
                (0, _) => String::new(),
                _ if is_synchronous && job.iodepth_count > 1 => {
                    let (clones, depth, engine) = (job.numjobs_count, job.iodepth_count, &job.ioengine);
                    format!("{clones} in flight (iodepth={depth} has no effect with {engine})")
                }
                (most, Some(mean)) if most > 1 && mean < KEPT * most as f64 => {
                    format!("{} in flight of up to {most}", short(mean))
                }
                (most, _) => format!("{most} in flight"),
            };
            let what = match (job.rw.as_str(), job.block_sizes.as_str()) {
                ("", sizes) => sizes.to_owned(),
                (rw, "") => rw.to_owned(),
                (rw, sizes) => format!("{rw} of {sizes}"),
            };
            // Some formats of other tools do not contain it.
            let told: Vec<String> = [what, depth].into_iter().filter(|word| !word.is_empty()).collect();
            if told.is_empty() {
                format!("{} (access, block size and depth are unknown)", job.name)
            } else {
                format!("{} ({})", job.name, told.join(", "))
            }
        })
        .collect();
    let more = match info.jobs.len() {
        0..=3 => String::new(),
        jobs => format!(" and {} more", jobs - 3),
    };
    let what = match reached(record, info) {
        Some(told) => format!("{told} Without a database: "),
        None if not_from_devices(record).is_some() => "Storage behind a cache, without a database: ".to_owned(),
        None => "The bare storage, without a database: ".to_owned(),
    };
    format!("{what}{}{more}.", jobs.join(", "))
}

/// Of reads that the tool's own statistics of the devices have not all: a cache answered the rest.
fn reached(record: &Record, info: &StorageInfo) -> Option<String> {
    /// Below this a cache had part in the reads: statistics of a device end elsewhere than the run.
    const ALL_PCT: f64 = 80.0;
    /// Below this no statistics that end early explain it.
    const NEARLY_NONE_PCT: f64 = 20.0;
    let ways = info.jobs.iter().flat_map(|job| &job.ways).filter(|way| way.way == "read");
    let asked: u64 = ways.map(|way| way.ios_count).sum();
    let values = || record.import.iter().flat_map(|info| &info.values);
    let of =
        |key: &str| -> f64 { values().filter(|value| value.key == key).filter_map(|value| value.value.value()).sum() };
    let names = values().filter(|value| value.key == "disk_reads_count").map(|value| value.scope.as_str());
    let names: Vec<&str> = names.collect();
    // A stack of devices counts a request once at each level.
    let is_stack = |name: &&str| ["dm-", "md"].iter().any(|kind| name.starts_with(kind));
    if names.len() > 1 && names.iter().any(is_stack) {
        return None;
    }
    // Requests that were merged above the device are in none of its counts.
    let done = of("disk_reads_count") + of("disk_read_merges_count");
    let pct = 100.0 * done / asked as f64;
    (asked > 0 && !names.is_empty() && pct < ALL_PCT).then(|| {
        let what = if pct < NEARLY_NONE_PCT {
            "a cache answered the others, so this is not the bare storage"
        } else {
            "a cache answered the others, or the statistics do not cover the whole run"
        };
        format!(
            "Only {} of {} reads ({} %) reached {} by its own statistics: {what}.",
            fixed(done, 0),
            thousands(asked),
            fixed(pct, 0),
            names.join(", ")
        )
    })
}

/// The 99th percentile that best describes how long a request took, with its unit and name.
fn slow(way: &StorageWay) -> (&Figure, &'static str) {
    let all = [
        (&way.response.us_p99, "us p99"),
        (&way.lat.us_p99, "us p99"),
        // For other tools: without the time to submit.
        (&way.clat.us_p99, "us p99 (clat)"),
    ];
    let known = all.into_iter().find(|(figure, _)| figure.value().is_some());
    known.unwrap_or((&way.lat.us_p99, "us p99"))
}

/// Whether a job made its writes durable by calls of its own: then a write is done when its sync is.
fn is_synced(job: &StorageJob) -> bool {
    job.sync.count > 0
}

/// The 99th percentile of the syncs of a group: the least that a durable write takes.
fn of_syncs(info: &StorageInfo, group: u32) -> (Figure, &'static str) {
    let jobs = info.jobs.iter().filter(|job| job.group == group && is_synced(job));
    let slowest =
        jobs.max_by(|a, b| a.sync.us_p99.value().unwrap_or(0.0).total_cmp(&b.sync.us_p99.value().unwrap_or(0.0)));
    (slowest.map_or_else(Figure::default, |job| job.sync.us_p99.clone()), "us p99 of the sync that ends a write")
}

fn rows(info: &StorageInfo) -> Vec<HeadlineLine> {
    let mut lines = Vec::new();
    for group in info.groups.iter().take(GROUPS) {
        let lead = match info.groups.len() {
            1 => String::new(),
            _ => format!("{}: ", shorten(&group.jobs.join(", "), 30)),
        };
        for way in &group.ways {
            let (slow, unit) = slow(way);
            let is_synced =
                way.way == "write" && info.jobs.iter().any(|job| job.group == group.group && is_synced(job));
            let (slow, unit) = if is_synced { of_syncs(info, group.group) } else { (slow.clone(), unit) };
            let told = vec![
                HeadlineFigure::new(&way.ios_per_s, &format!("{}s/s", way.way)),
                HeadlineFigure::new(&way.mb_per_s, "MB/s (10^6)"),
                HeadlineFigure {
                    otherwise: format!("p99 n/a ({})", slow.reason().unwrap_or("absent")),
                    ..HeadlineFigure::new(&slow, unit)
                },
            ];
            let title = if lines.is_empty() { "Rate and p99" } else { "" };
            lines.push(HeadlineLine { lead: lead.clone(), ..HeadlineLine::of(title, told, "") });
        }
    }
    let searches = info.jobs.iter().filter_map(|job| Some((job, job.search.as_ref()?)));
    lines.extend(searches.take(GROUPS).map(|(job, search)| {
        let named = match info.jobs.len() {
            1 => String::new(),
            _ => format!("{}: ", job.name),
        };
        HeadlineLine::of("Latency target", Vec::new(), &format!("{named}{}.", goal::sentence(search)))
    }));
    if info.groups.len() > GROUPS {
        let more = format!("and {} more groups", info.groups.len() - GROUPS);
        lines.push(HeadlineLine::of("", Vec::new(), &more));
    }
    lines
}

fn steadiness(info: &StorageInfo) -> String {
    let Some(group) = info.groups.iter().max_by_key(|group| group.changes.len()) else {
        return "n/a (no jobs)".to_owned();
    };
    let variation = group
        .iops_total_per_s
        .variation_ratio
        .value()
        .map_or_else(String::new, |ratio| format!("; seconds vary by {} % of their mean", fixed(100.0 * ratio, 1)));
    if let Some(why) = &group.not_analysed {
        return format!("n/a ({why}){variation}");
    }
    if group.analysed.is_empty() {
        return format!("n/a (no figures by the second){variation}");
    }
    let ratio = group.iops_total_per_s.variation_ratio.value();
    let scattered = ratio.is_some_and(|ratio| ratio > SCATTERED);
    match (group.changes.len(), group.drift_ratio.value()) {
        (0, None) if scattered => {
            format!("not steady: no lasting change of level and no drift{variation}.")
        }
        (0, None) => {
            format!("steady: no change of level and no drift over the seconds{variation}.")
        }
        (0, Some(drift)) => {
            format!("not steady: the rate drifts by {} % from start to end{variation}.", fixed(100.0 * drift, 0))
        }
        (changes, _) => {
            let changes = many(changes as u64, "change");
            format!("not steady: {changes} of level{variation}; rate and price come from the last level.")
        }
    }
}
