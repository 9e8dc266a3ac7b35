//! fio's JSON and json+ of 2.x and 3.x, and our own.

use super::super::json::{Node, Source};
use super::super::located_number::LocatedNumber;
use super::super::number;
use super::super::rows::JOBS_MAX;
use super::super::text::{At, Text};
use super::super::{Confidence, Draft, ImportError};
use super::{Disk, Job, Lat, Run, WAYS, Way};
use std::collections::BTreeMap;

/// What the options of all may add up to at the jobs, bytes.
const OPTIONS_BYTES: usize = 64 << 20;

pub(super) fn looks_like(text: &Text) -> Confidence {
    let has = |part: &str| text.head().iter().any(|line| line.text.contains(part));
    let opens = text.head().iter().any(|line| line.text.trim_start().starts_with('{'));
    Confidence::of(
        97,
        &[
            ("a line that begins with {", opens),
            ("\"fio version\"", has("\"fio version\"")),
            ("\"jobs\"", has("\"jobs\"") || has("\"client_stats\"")),
        ],
    )
}

pub(super) fn read(text: &Text, draft: &mut Draft) -> Result<Run, ImportError> {
    let source = Source::new(text);
    let found = source.documents();
    let whole = |line| At { file: text.file, line };
    if let Some(line) = found.other {
        draft.note(whole(line), "text around the JSON (warnings, or other output of fio) was skipped");
    }
    if let Some(broken) = &found.broken {
        if found.whole.is_empty() {
            return Err(ImportError::Damaged {
                path: text.path.clone(),
                line: broken.line,
                what: format!("the JSON is incomplete: {}; import the file as fio wrote it", broken.what),
            });
        }
        let at = whole(broken.line);
        draft.note(at, "the last document is incomplete and was skipped");
    }
    // Documents of --status-interval are of the run so far: the last one has all of it.
    let documents: Vec<Node<'_>> = (found.whole.into_iter())
        .filter(|node| node.get("jobs").is_some() || node.get("client_stats").is_some())
        .collect();
    let Some(document) = documents.last() else {
        return Err(ImportError::Damaged {
            path: text.path.clone(),
            line: 1,
            what: "no JSON document with \"jobs\"; import the file as fio wrote it".to_owned(),
        });
    };
    if documents.len() > 1 {
        let n = documents.len() - 1;
        draft.note(document.at(), format!("{n} earlier reports of the same run (status interval) were skipped"));
    }
    Ok(run(*document, draft))
}

/// Lines at which a document of another run begins. Documents of `--status-interval` are of one run: they have the same jobs,
/// and each has moved at least as much as the one before.
pub(super) fn runs(text: &Text) -> Vec<usize> {
    let source = Source::new(text);
    let documents = source.documents().whole;
    let reports = documents.iter().filter(|node| node.get("jobs").is_some());
    let mut found = Vec::new();
    let mut before: Option<(Vec<String>, f64)> = None;
    for document in reports {
        let mark = mark(*document);
        let goes_on = before.as_ref().is_none_or(|(jobs, moved)| *jobs == mark.0 && mark.1 > *moved);
        if !goes_on {
            found.push(document.at().line.saturating_sub(1) as usize);
        }
        before = Some(mark);
    }
    found
}

/// Names and options of the jobs of a report, and the bytes they have moved.
fn mark(document: Node<'_>) -> (Vec<String>, f64) {
    let (mut names, mut moved) = (Vec::new(), 0.0);
    for job in document.get("jobs").map(Node::items).unwrap_or_default().into_iter().take(JOBS_MAX) {
        let options = job.get("job options").map(options).unwrap_or_default();
        names.push(format!("{} {options:?}", job.get("jobname").map(Node::text).unwrap_or_default()));
        for way in WAYS {
            let bytes = job.path(&[way, "io_bytes"]).and_then(|node| node.number()?.number());
            moved += bytes.unwrap_or(0.0);
        }
    }
    (names, moved)
}

fn run(document: Node<'_>, draft: &mut Draft) -> Run {
    let mut run = Run { format: "fio JSON", ..Run::default() };
    let mut global = Vec::new();
    let mut entries = Vec::new();
    for (key, node) in document.members() {
        match key.as_str() {
            "fio version" => run.version = node.text(),
            "time" => run.started = Some(node.text()),
            "global options" => global = options(node),
            "jobs" | "client_stats" => entries.extend(node.items()),
            "disk_util" => run.disks = node.items().into_iter().map(disk).collect(),
            _ => {}
        }
    }
    // Each job has the options of all beside its own.
    let options: usize = global.iter().map(|(name, value)| name.len() + value.len()).sum();
    if entries.len() > JOBS_MAX || entries.len() * options > OPTIONS_BYTES {
        draft.is_full = true;
        return run;
    }
    run.jobs = entries.into_iter().map(|entry| job(entry, &global)).collect();
    // "All clients" of a client/server run is the sum of the others.
    if run.jobs.len() > 1 {
        run.jobs.retain(|job| job.name != "All clients");
    }
    clones(&mut run.jobs);
    run
}

fn options(node: Node<'_>) -> Vec<(String, String)> {
    let members = node.members().into_iter();
    members.map(|(key, value)| (key, value.text())).collect()
}

fn job(entry: Node<'_>, global: &[(String, String)]) -> Job {
    let members = entry.members();
    let mut job = Job { at: entry.at(), ..Job::default() };
    let mut own = Vec::new();
    for (key, node) in &members {
        match key.as_str() {
            "jobname" => {
                job.name = node.text();
                job.at = node.at();
            }
            "groupid" => job.group = node.text().parse().unwrap_or(0),
            "error" => {
                let error = node.text();
                job.error = (error != "0").then(|| format!("error {error}"));
            }
            "job options" => own = options(*node),
            "sync" => {
                let spread = node.get("lat_ns").map(|spread| (spread, 1e-3));
                job.sync = spread.map_or_else(Lat::default, |(node, us)| lat(node, us));
            }
            "usr_cpu" => rest(&mut job, *node, "cpu_user_pct", "usr_cpu"),
            "sys_cpu" => rest(&mut job, *node, "cpu_system_pct", "sys_cpu"),
            "ctx" => rest(&mut job, *node, "context_switches_count", "ctx"),
            "majf" => rest(&mut job, *node, "major_faults_count", "majf"),
            "minf" => rest(&mut job, *node, "minor_faults_count", "minf"),
            "iodepth_level" => slots(&mut job, *node, "depth_share_pct"),
            "iodepth_submit" => slots(&mut job, *node, "submit_batch_share_pct"),
            "iodepth_complete" => slots(&mut job, *node, "complete_batch_share_pct"),
            "latency_ns" => shares(&mut job, *node, "ns"),
            "latency_us" => shares(&mut job, *node, "us"),
            "latency_ms" => shares(&mut job, *node, "ms"),
            _ => {}
        }
    }
    for name in WAYS {
        let found = members.iter().find(|(key, _)| key == name);
        let way = found.and_then(|(_, node)| way(name, *node));
        job.ways.extend(way);
    }
    settings(&mut job, global, own);
    job
}

/// What the options say of the job, the own ones over the global ones.
fn settings(job: &mut Job, global: &[(String, String)], own: Vec<(String, String)>) {
    let is_own = |name: &str| own.iter().any(|(option, _)| option == name);
    let inherited = global.iter().filter(|(name, _)| !is_own(name));
    job.options = inherited.map(|(name, value)| (name.clone(), value.clone(), "global")).collect();
    let own = own.into_iter();
    job.options.extend(own.map(|(name, value)| (name, value, "job")));
    let option = |names: &[&str]| {
        let mut options = job.options.iter();
        let found = options.find(|(name, ..)| names.contains(&name.as_str()));
        found.map(|(_, value, _)| value.clone())
    };
    let rw = option(&["rw", "readwrite"]);
    let blocks = option(&["bs", "blocksize", "bssplit", "bsrange"]);
    let engine = option(&["ioengine"]);
    let depth = option(&["iodepth"]);
    let clones = option(&["numjobs"]);
    // Both are 1 where nobody says otherwise.
    job.depth = depth.map_or(Some(1), |depth| depth.parse().ok());
    job.clones = clones.map_or(Some(1), |clones| clones.parse().ok());
    job.rw = rw.unwrap_or_else(|| "read".to_owned());
    let blocks = blocks.unwrap_or_else(|| "4k".to_owned());
    // One size reads as in the text; lists stay as they were typed.
    job.blocks = super::text::block(&blocks).filter(|_| !blocks.contains([',', ':', '/'])).unwrap_or(blocks);
    job.engine = engine.unwrap_or_default();
}

/// Without group reporting each clone has an entry of its own: then each is one clone.
fn clones(jobs: &mut [Job]) {
    let mut entries: BTreeMap<(String, u32), u64> = BTreeMap::new();
    for job in jobs.iter() {
        *entries.entry((job.name.clone(), job.group)).or_default() += 1;
    }
    for job in jobs {
        let of_name = entries.get(&(job.name.clone(), job.group));
        if of_name.is_some_and(|n| *n > 1 && Some(*n) == job.clones) {
            job.clones = Some(1);
        }
    }
}

fn seen(node: Node<'_>) -> Option<LocatedNumber> {
    LocatedNumber::some(node.at(), node.number())
}

fn rest(job: &mut Job, node: Node<'_>, key: &'static str, name: &'static str) {
    job.rest.extend(seen(node).map(|seen| (key, name, seen)));
}

fn slots(job: &mut Job, node: Node<'_>, key: &'static str) {
    for (slot, share) in node.members() {
        job.slots.extend(seen(share).map(|seen| (key, slot, seen)));
    }
}

fn shares(job: &mut Job, node: Node<'_>, unit: &str) {
    for (bound, share) in node.members() {
        let what = match bound.strip_prefix(">=") {
            Some(bound) => format!("{bound} {unit} or more"),
            None => format!("below {bound} {unit}"),
        };
        // The text leaves out what is nothing, and so do we.
        let share = seen(share).filter(|share| share.value() != Some(0.0));
        job.shares.extend(share.map(|share| (what, share)));
    }
}

/// A direction; `None` where nothing went that way: an unused one is there with zeros.
fn way(name: &'static str, node: Node<'_>) -> Option<Way> {
    let members: BTreeMap<String, Node<'_>> = node.members().into_iter().collect();
    let of = |key: &str| members.get(key).and_then(|node| seen(*node));
    let ios = of("total_ios");
    let bytes = of("io_bytes");
    let moved = |seen: &Option<LocatedNumber>| seen.as_ref().and_then(LocatedNumber::value).unwrap_or(0.0) > 0.0;
    if !moved(&ios) && !moved(&bytes) {
        return None;
    }
    // io_bytes was in KiB until io_kbytes came beside it.
    let unit = if members.contains_key("io_kbytes") { 1.0 } else { 1024.0 };
    let bytes_per_s = match of("bw_bytes") {
        Some(exact) => Some(exact),
        None => of("bw").map(|kib| kib.looser(0.5).scaled(1024.0)),
    };
    let spread = |ns: &str, us: &str| {
        let in_ns = members.get(ns).map(|node| lat(*node, 1e-3));
        in_ns.or_else(|| members.get(us).map(|node| lat(*node, 1.0)))
    };
    let mut way = Way {
        way: name,
        short: of("short_ios"),
        bytes: bytes.map(|bytes| bytes.scaled(unit)),
        // Cut to whole milliseconds.
        runtime_s: of("runtime").map(|ms| ms.looser(1.0).scaled(1e-3)),
        ios_per_s: of("iops"),
        // Cut to a whole number.
        bytes_per_s: bytes_per_s.map(|seen| seen.looser(1.0)),
        decimal_bytes_per_s: None,
        lat: spread("lat_ns", "lat").unwrap_or_default(),
        clat: spread("clat_ns", "clat").unwrap_or_default(),
        slat: spread("slat_ns", "slat").unwrap_or_default(),
        samples: Vec::new(),
        ios,
    };
    for (field, key, label) in [
        ("bw_min", "bw_kib_per_s_min", "bw min"),
        ("bw_max", "bw_kib_per_s_max", "bw max"),
        ("bw_mean", "bw_kib_per_s_avg", "bw avg"),
        ("bw_dev", "bw_kib_per_s_stddev", "bw stdev"),
        ("bw_agg", "bw_of_group_pct", "bw per"),
        ("iops_min", "iops_per_s_min", "iops min"),
        ("iops_max", "iops_per_s_max", "iops max"),
        ("iops_mean", "iops_per_s_avg", "iops avg"),
        ("iops_stddev", "iops_per_s_stddev", "iops stdev"),
        ("iops_samples", "iops_samples_count", "iops samples"),
        ("bw_samples", "bw_samples_count", "bw samples"),
    ] {
        way.samples.extend(of(field).map(|seen| (key, label, seen)));
    }
    // Both say again, cut to KiB, what is exact beside them.
    for (exact, field, key) in [("bw_bytes", "bw", "cut_kib_per_s"), ("io_bytes", "io_kbytes", "moved_kib")] {
        let again = of(field).filter(|_| members.contains_key(exact));
        way.samples.extend(again.map(|seen| (key, field, seen.looser(1.0))));
    }
    Some(way)
}

/// A distribution; empty where nothing was counted.
fn lat(node: Node<'_>, us: f64) -> Lat {
    let mut found = Lat::default();
    for (key, value) in node.members() {
        let number = || seen(value).map(|seen| seen.scaled(us));
        match key.as_str() {
            "min" => found.min = number(),
            "max" => found.max = number(),
            "mean" => found.avg = number(),
            "stddev" => found.stddev = number(),
            "N" => found.count = seen(value),
            "percentile" => {
                for (percent, value) in value.members() {
                    let seen = seen(value).map(|seen| seen.scaled(us));
                    if let (Ok(percent), Some(seen)) = (percent.parse::<f64>(), seen) {
                        found.percentiles.push((percent, seen));
                    }
                }
            }
            "bins" => found.bins = bins(value, us),
            _ => {}
        }
    }
    let is_zero = |seen: &Option<LocatedNumber>| seen.as_ref().and_then(LocatedNumber::value).unwrap_or(0.0) == 0.0;
    if is_zero(&found.count) && is_zero(&found.max) && is_zero(&found.avg) {
        return Lat::default();
    }
    // Percentiles that were not in the list stand as zeros at its end.
    found.percentiles.retain(|(percent, _)| *percent > 0.0);
    found
}

fn bins(node: Node<'_>, us: f64) -> Vec<(u64, u64)> {
    let members = node.members().into_iter();
    members
        .filter_map(|(middle, count)| {
            let middle = number::count(&middle)?.number()? * us * 1e3;
            let count: u64 = count.text().parse().ok()?;
            (count > 0).then_some((middle.round() as u64, count))
        })
        .collect()
}

fn disk(node: Node<'_>) -> Disk {
    let mut disk = Disk { name: String::new(), figures: Vec::new() };
    for (key, value) in node.members() {
        let (key, label) = match key.as_str() {
            "name" => {
                disk.name = value.text();
                continue;
            }
            "read_ios" => ("disk_reads_count", "ios read"),
            "write_ios" => ("disk_writes_count", "ios write"),
            "read_merges" => ("disk_read_merges_count", "merge read"),
            "write_merges" => ("disk_write_merges_count", "merge write"),
            "read_ticks" => ("disk_read_ticks_ms", "ticks read"),
            "write_ticks" => ("disk_write_ticks_ms", "ticks write"),
            "in_queue" => ("disk_in_queue_ms", "in_queue"),
            "util" => ("disk_busy_pct", "util"),
            _ => continue,
        };
        disk.figures.extend(seen(value).map(|seen| (key, label, seen)));
    }
    disk
}
