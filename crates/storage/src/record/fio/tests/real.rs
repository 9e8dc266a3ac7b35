//! The real fio's output, read back into readings: the same numbers must come out as the same
//! lines.
//!
//! What a document of fio does not hold is filled in so that it does not matter (where within a
//! bin a latency lay) or taken from fio's text (process ids).

use super::super::{header, json, terse, text, version};
use crate::fixture;
use crate::readings::{
    CloneReading, FamilyCounts, GoalLabel, JobLabel, JobReading, LatencyReading, Samples, SearchReading, SteadyReading,
    StorageReadings, Way, WayReading,
};
use assay_measure::histogram::{Histogram, slot_low_and_width_ns, slot_of};
use assay_measure::snapshot::DiskReading;
use serde_json::Value;
use std::process::Command;

const MS: u64 = 1_000_000;

/// One output of fio in its four parts, each line by line.
pub(super) struct Output {
    pub(super) header: Vec<String>,
    pub(super) terse: Vec<String>,
    pub(super) json: Vec<String>,
    pub(super) text: Vec<String>,
}

impl Output {
    /// Splits `--output-format=normal,terse,json+`.
    pub(super) fn split(output: &str) -> Self {
        let lines: Vec<String> = output.lines().map(str::to_owned).collect();
        let open = lines.iter().position(|line| line == "{").unwrap();
        let close = lines.iter().position(|line| line == "}").unwrap();
        let (terse, header) = lines[..open]
            .iter()
            .filter(|line| !line.contains("Laying out") && !line.starts_with("note:"))
            .cloned()
            .partition(|line| line.starts_with("3;"));
        Self { header, terse, json: lines[open..=close].to_vec(), text: lines[close + 1..].to_vec() }
    }

    fn document(&self) -> Value {
        serde_json::from_str(&self.json.join("\n")).unwrap()
    }
}

/// Runs the real fio in a directory of its own; `None`, loudly, where there is no fio 3.33.
pub(super) fn fio(words: &[&str]) -> Option<String> {
    let version = Command::new("fio").arg("--version").output().ok();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    if version.as_deref().map(str::trim) != Some("fio-3.33") {
        eprintln!("SKIPPED: fio 3.33 is not installed (found {version:?})");
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new("fio").env("TZ", "UTC").current_dir(directory.path()).args(words).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "fio {words:?}: {stdout}{stderr}");
    Some(stdout)
}

/// All four parts of the same job by the real fio.
pub(super) fn run(words: &[&str]) -> Option<Output> {
    let mut all = vec!["--output-format=normal,terse,json+", "--eta=never", "--thread"];
    all.extend(words);
    fio(&all).map(|output| Output::split(&output))
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("{key}: {value}"))
}

fn float(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key}: {value}"))
}

/// The readings fio must have had.
pub(super) fn readings_of(output: &Output) -> StorageReadings {
    let document = output.document();
    let entries = document["jobs"].as_array().unwrap();
    let mut readings = StorageReadings {
        fio_version: document["fio version"].as_str().unwrap().to_owned(),
        global_options: options(&document["global options"]),
        timestamp_ms: number(&document, "timestamp_ms"),
        elapsed_ns: number(&entries[0], "elapsed") * 1000 * MS,
        ..StorageReadings::default()
    };
    if document["global options"].is_object() {
        // A flag, which the document leaves out.
        readings.global_options.push(("thread".to_owned(), None));
    }
    let heads = output.text.iter().filter(|line| line.contains(": (groupid="));
    let heads: Vec<&String> = heads.collect();
    assert_eq!(heads.len(), entries.len());
    for (entry, head) in entries.iter().zip(heads) {
        add_entry(&mut readings, entry, head);
    }
    let elapsed_ns = readings.elapsed_ns;
    let disks = document["disk_util"].as_array().into_iter().flatten();
    readings.disks = disks
        .map(|disk| DiskReading {
            name: disk["name"].as_str().unwrap().to_owned(),
            reads: number(disk, "read_ios"),
            writes: number(disk, "write_ios"),
            read_merges: number(disk, "read_merges"),
            write_merges: number(disk, "write_merges"),
            read_ns: number(disk, "read_ticks") * MS,
            write_ns: number(disk, "write_ticks") * MS,
            weighted_ns: number(disk, "in_queue") * MS,
            busy_ns: (float(disk, "util") / 100.0 * elapsed_ns as f64).round() as u64,
            ..DiskReading::default()
        })
        .collect();
    readings
}

fn options(object: &Value) -> Vec<(String, Option<String>)> {
    let members = object.as_object().into_iter().flatten();
    members.map(|(key, value)| (key.clone(), value.as_str().map(str::to_owned))).collect()
}

fn after<'a>(line: &'a str, mark: &str) -> &'a str {
    let (_, rest) = line.split_once(mark).unwrap();
    rest.split([',', ')', ':']).next().unwrap()
}

fn add_entry(readings: &mut StorageReadings, entry: &Value, head: &str) {
    let name = entry["jobname"].as_str().unwrap();
    let clone_only =
        readings.jobs.last().is_some_and(|job| job.name == name && job.options == options(&entry["job options"]));
    if !clone_only {
        let job = job_of(readings, entry, head);
        readings.jobs.push(job);
    }
    let job = readings.jobs.len() - 1;
    let mut clone = clone_of(entry);
    clone.job = job;
    clone.pid = after(head, " pid=").parse().unwrap();
    readings.clones.push(clone);
    // The others of a grouped entry have nothing left to add.
    let clones: u32 = after(head, "jobs=").parse().unwrap();
    for clone in 1..clones {
        readings.clones.push(CloneReading { job, clone, ..CloneReading::default() });
    }
}

fn job_of(readings: &StorageReadings, entry: &Value, head: &str) -> JobReading {
    let mut reading = JobReading {
        name: entry["jobname"].as_str().unwrap().to_owned(),
        group: number(entry, "groupid") as u32,
        options: options(&entry["job options"]),
        steady: entry.get("steadystate").map(steady),
        ..JobReading::default()
    };
    let option = |name: &str| super::super::options::value(readings, &reading, name);
    let flag = |name: &str, default: bool| option(name).map_or(default, |value| value == "1");
    let ioengine = option("ioengine").unwrap_or("psync");
    let goal = goal(entry);
    let iodepth = match goal {
        Some(_) => option("iodepth").map_or(1, |depth| depth.parse().unwrap()),
        None => number(entry, "latency_depth") as u32,
    };
    let clones: u32 = after(head, "jobs=").parse().unwrap();
    let mut label = JobLabel {
        rw: option("rw").unwrap_or("read").replace("readwrite", "rw"),
        block_bytes: blocks(option("bs").or(option("bsrange")).unwrap_or("4k")),
        synchronous: matches!(ioengine, "psync" | "sync"),
        clat_percentiles: flag("clat_percentiles", true),
        lat_percentiles: flag("lat_percentiles", false),
        slat_percentiles: flag("slat_percentiles", false),
        significant_figures: option("significant_figures").map_or(4, |n| n.parse().unwrap()),
        group_reporting: clones > 1,
        description: option("description").map(str::to_owned),
        latency_goal: goal,
        ..fixture::label("", ioengine, iodepth, 1, 0)
    };
    label.numjobs = option("numjobs").map_or(1, |n| n.parse().unwrap());
    if let Some(list) = option("percentile_list") {
        label.percentiles = list.split(':').map(|p| p.parse().unwrap()).collect();
        label.percentiles.sort_by(f64::total_cmp);
    }
    reading.label = label;
    reading
}

/// `latency_target`, where the job had one.
fn goal(entry: &Value) -> Option<GoalLabel> {
    let goal = GoalLabel {
        target_ns: number(entry, "latency_target"),
        window_ns: number(entry, "latency_window") * 1000,
        percentile: float(entry, "latency_percentile"),
        adapts: false,
    };
    (goal.target_ns > 0).then_some(goal)
}

/// `4k`, `1k-8k`, `4k,16k`: bytes.
fn blocks(typed: &str) -> [(u64, u64); 3] {
    let bytes = |size: &str| match size.strip_suffix('k') {
        Some(kib) => kib.parse::<u64>().unwrap() * 1024,
        None => size.parse().unwrap(),
    };
    let range = |part: &str| match part.split_once('-') {
        Some((least, most)) => (bytes(least), bytes(most)),
        None => (bytes(part), bytes(part)),
    };
    let mut given = typed.split(',').map(range);
    let first = given.next().unwrap();
    let second = given.next().unwrap_or(first);
    [first, second, given.next().unwrap_or(second)]
}

fn clone_of(entry: &Value) -> CloneReading {
    let ios: u64 = ["read", "write", "trim"].iter().map(|way| number(&entry[way], "total_ios")).sum();
    let runtime_ns = number(entry, "job_runtime") * MS;
    let cpu = |key: &str| (float(entry, key) / 100.0 * runtime_ns as f64).round() as u64;
    CloneReading {
        error: entry["error"].as_i64().unwrap() as i32,
        ways: Way::ALL.map(|way| way_of(&entry[way.name()])),
        clat_families: families(entry, ios),
        sync: latency(&entry["sync"]["lat_ns"]),
        depths: counts(&entry["iodepth_level"], ["1", "2", "4", "8", "16", "32", ">=64"], ios),
        submits: counts(&entry["iodepth_submit"], BATCHES, MS * MS),
        completes: counts(&entry["iodepth_complete"], BATCHES, MS * MS),
        runtime_ns,
        user_ns: cpu("usr_cpu"),
        system_ns: cpu("sys_cpu"),
        context_switches: number(entry, "ctx"),
        major_faults: number(entry, "majf"),
        minor_faults: number(entry, "minf"),
        search: goal(entry)
            .map(|_| SearchReading { depth: number(entry, "latency_depth") as u32, ..SearchReading::default() }),
        ..CloneReading::default()
    }
}

const BATCHES: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];

/// Counts behind shares: what shows as the least share was one, the largest has the rest.
fn counts(shares: &Value, names: [&str; 7], total: u64) -> [u64; 7] {
    let shares = names.map(|name| float(shares, name));
    if shares.iter().all(|&share| share == 0.0) {
        return [0; 7];
    }
    let mut counts = shares.map(|share| match share {
        0.0 => 0,
        0.1 => 1,
        share => (share / 100.0 * total as f64).round() as u64,
    });
    let largest = (0..7).max_by(|&a, &b| shares[a].total_cmp(&shares[b])).unwrap();
    counts[largest] = 0;
    counts[largest] = total - counts.iter().sum::<u64>();
    counts
}

fn families(entry: &Value, ios: u64) -> FamilyCounts {
    let mut counts = FamilyCounts::default();
    let names = ["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000"];
    for (first, family, bounds) in [(0, "latency_ns", 10), (10, "latency_us", 10), (20, "latency_ms", 12)] {
        for (i, name) in names.iter().enumerate().take(bounds) {
            let share = float(&entry[family], name);
            // What shows as the least share was any count below it.
            counts.counts[first + i] = match share {
                0.01 => 1,
                share => (share / 100.0 * ios as f64).round() as u64,
            };
        }
    }
    counts
}

fn way_of(way: &Value) -> WayReading {
    WayReading {
        bytes: number(way, "io_bytes"),
        ios: number(way, "total_ios"),
        short_ios: number(way, "short_ios"),
        runtime_ns: number(way, "runtime") * MS,
        slat: latency(&way["slat_ns"]),
        clat: latency(&way["clat_ns"]),
        lat: latency(&way["lat_ns"]),
        response: None,
        bw: samples(way, "bw", "bw_dev"),
        iops: samples(way, "iops", "iops_stddev"),
    }
}

fn samples(way: &Value, name: &str, deviation: &str) -> Samples {
    let count = number(way, &format!("{name}_samples"));
    let deviation = float(way, deviation);
    Samples {
        count,
        min: float(way, &format!("{name}_min")),
        max: float(way, &format!("{name}_max")),
        mean: float(way, &format!("{name}_mean")),
        deviation_squares: deviation * deviation * count.saturating_sub(1) as f64,
    }
}

/// Durations with these bins (or any that fit, where there are none) and these moments.
fn latency(value: &Value) -> LatencyReading {
    let (n, min, max) = (number(value, "N"), number(value, "min"), number(value, "max"));
    if n == 0 {
        return LatencyReading::default();
    }
    let mean = float(value, "mean");
    let mut sum = (mean * n as f64).round() as u64;
    let slots = match value["bins"].as_object() {
        Some(bins) => {
            let bins = bins.iter();
            let mut slots: Vec<(u32, u64)> =
                bins.map(|(midpoint, n)| (slot_of(midpoint.parse().unwrap()) as u32, n.as_u64().unwrap())).collect();
            slots.sort_unstable();
            slots
        }
        None => some_slots(n, min, max, sum),
    };
    let all = |value: fn(u64, u64) -> u64| -> u64 {
        let slots = slots.iter();
        slots
            .map(|&(slot, n)| {
                let (low, width) = slot_low_and_width_ns(slot as usize);
                n * value(low, width)
            })
            .sum()
    };
    sum = sum.clamp(all(|low, _| low), all(|low, width| low + width - 1));
    let histogram = Histogram::from_sparse(&slots, sum, min, max).unwrap();
    // n * mean^2 dwarfs the spread where latencies are long and alike, so it stays an integer.
    let (sum_squared, n_wide) = (u128::from(sum).pow(2), u128::from(n));
    let spread = float(value, "stddev").powi(2) * (n - 1) as f64;
    let rest = (sum_squared % n_wide) as f64 / n as f64;
    LatencyReading { histogram, squares_ns2: sum_squared / n_wide + (spread + rest).round() as u128 }
}

fn some_slots(n: u64, min: u64, max: u64, sum: u64) -> Vec<(u32, u64)> {
    let mut values = vec![(min, 1)];
    if n > 1 {
        values.push((max, 1));
    }
    if n > 2 {
        let rest = sum.saturating_sub(min + max);
        let (value, over) = (rest / (n - 2), rest % (n - 2));
        values.push((value, n - 2 - over));
        values.push((value + 1, over));
    }
    let mut slots = std::collections::BTreeMap::new();
    for (value, n) in values.into_iter().filter(|&(_, n)| n > 0) {
        *slots.entry(slot_of(value) as u32).or_insert(0) += n;
    }
    slots.into_iter().collect()
}

fn steady(value: &Value) -> SteadyReading {
    let list = |key: &str, scale: u64| -> Vec<u64> {
        let values = value["data"][key].as_array().unwrap().iter();
        values.map(|value| value.as_u64().unwrap() / scale).collect()
    };
    let criterion = value["criterion"].as_str().unwrap().trim_end_matches('%');
    SteadyReading {
        criterion: value["ss"].as_str().unwrap().to_owned(),
        duration_s: number(value, "duration"),
        attained: number(value, "attained") == 1,
        last: criterion.parse().ok(),
        slope: value["slope"].as_f64(),
        deviation_pct: Some(100.0 * float(value, "max_deviation") / float(&value["data"], "iops_mean")),
        iops: list("iops", 1),
        bw_kib_per_s: list("bw", 1024),
        ..SteadyReading::default()
    }
}

/// Our faces of the same numbers.
pub(super) fn ours(readings: &StorageReadings) -> Output {
    let lines = |text: String| text.lines().map(str::to_owned).collect();
    Output {
        header: lines(header(&readings.jobs, version(readings))),
        terse: lines(terse(readings)),
        json: lines(json(readings, true, None)),
        text: lines(text(readings)),
    }
}

/// Whether two lines say the same. What is rebuilt from fio's own decimals may differ in the last
/// of them: means (ties among them) and deviations in the text, six decimals in JSON, and in terse
/// lines also the shares. What was less than the least share shows as that, so its count is not
/// known, and the rest of the sum has what it misses: shares may differ by a unit of their last
/// place for each that is `hidden`, and by none where none is.
fn same(ours: &str, theirs: &str, hidden: usize) -> bool {
    if ours == theirs {
        return true;
    }
    let shares = hidden > 0 && has_shares(ours);
    let pieces = |line: &str| -> Vec<String> {
        let line = line.replace([';', ',', ' ', '=', '%'], " ");
        line.split_whitespace().map(str::to_owned).collect()
    };
    let (a, b) = (pieces(ours), pieces(theirs));
    let terse = ours.starts_with("3;");
    let alike = a.iter().zip(&b).enumerate().all(|(i, (x, y))| {
        let rebuilt = terse || ours.contains("\" : ") || (i > 0 && matches!(a[i - 1].as_str(), "avg" | "stdev"));
        x == y || (rebuilt && differ_in_last_place(x, y, 1.0)) || (shares && differ_in_last_place(x, y, hidden as f64))
    });
    (terse || shares || ours.len() == theirs.len()) && a.len() == b.len() && alike
}

/// Whether a line of any face holds shares of depths, batches or latencies.
fn has_shares(line: &str) -> bool {
    let line = line.trim_start();
    let text = ["IO depths", "submit", "complete", "lat (nsec)", "lat (usec)", "lat (msec)"];
    let bound = line.strip_prefix('"').and_then(|key| key.trim_start_matches(">=").split_once("\" : "));
    let json = bound.is_some_and(|(bound, share)| bound.parse::<u32>().is_ok() && share.contains('.'));
    line.starts_with("3;") || json || (line.contains('%') && text.iter().any(|head| line.starts_with(head)))
}

fn differ_in_last_place(a: &str, b: &str, units: f64) -> bool {
    let decimals = |text: &str| text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let (Ok(x), Ok(y)) = (a.parse::<f64>(), b.parse::<f64>()) else {
        return false;
    };
    let places = decimals(a);
    places > 0 && places == decimals(b) && (x - y).abs() < (units + 0.5) * 0.1_f64.powi(places as i32)
}

/// The most shares of one entry's kind that show as the least there is: 0.1 of depths and batches, 0.01 of latencies, whose
/// three families have one sum.
fn hidden(document: &Value) -> usize {
    let least = |entry: &Value, keys: &[&str], least: f64| {
        let shares = keys.iter().flat_map(|key| entry[key].as_object().into_iter().flatten());
        shares.filter(|(_, share)| share.as_f64() == Some(least)).count()
    };
    let entries = document["jobs"].as_array().into_iter().flatten();
    let kinds = entries.flat_map(|entry| {
        let depths = ["iodepth_level", "iodepth_submit", "iodepth_complete"].map(|key| least(entry, &[key], 0.1));
        depths.into_iter().chain([least(entry, &["latency_ns", "latency_us", "latency_ms"], 0.01)])
    });
    kinds.max().unwrap_or(0)
}

/// Both must have the same lines but for those `excused`, which are left out on both sides.
fn assert_same(what: &str, ours: &[String], theirs: &[String], excused: &[&str], hidden: usize) {
    let kept = |lines: &[String]| -> Vec<String> {
        let kept = lines.iter().filter(|line| !excused.iter().any(|mark| line.contains(mark)));
        kept.cloned().collect()
    };
    let (ours, theirs) = (kept(ours), kept(theirs));
    for (i, (a, b)) in ours.iter().zip(&theirs).enumerate() {
        assert!(same(a, b, hidden), "{what}, line {i}\nours: {a}\nfio:  {b}");
    }
    assert_eq!(ours.len(), theirs.len(), "{what}: ours\n{}\nfio's\n{}", ours.join("\n"), theirs.join("\n"));
}

/// Lines of our document that fio's has not, all at its end: the comma after its last key and our
/// own key.
pub(super) fn without_native(json: &[String]) -> Vec<String> {
    let own = json.iter().position(|line| line.starts_with("  \"native\"")).unwrap();
    let mut kept = json[..own].to_vec();
    let last = kept.last_mut().unwrap();
    *last = last.trim_end_matches(',').to_owned();
    kept.push("}".to_owned());
    kept
}

/// Reads fio's numbers, renders them and compares all faces line by line.
pub(super) fn round_trip(theirs: &Output) {
    let readings = readings_of(theirs);
    let ours = ours(&readings);
    let hidden = hidden(&theirs.document());
    let synced = readings.clones.iter().any(|clone| !clone.sync.histogram.is_empty());
    // fio adds syncs to the depths, and with fdatasync to the short reads; its decimal rate of a
    // steady state is that of KiB, and we keep whole KiB of it.
    let excused: &[&str] = if synced { &["IO depths", "issued rwts"] } else { &["steadystate  :"] };
    assert_same("header", &ours.header, &theirs.header, &[], 0);
    assert_same("text", &undated(&ours.text), &undated(&theirs.text), excused, hidden);
    if !synced {
        assert_same("terse", &ours.terse, &theirs.terse, &[], hidden);
    }
    let mut excused = vec!["\"eta\""];
    if synced {
        excused.extend(["\"short_ios\"", "\"total_ios\"", "\"1\" : "]);
    }
    // Depths that were counted before the last window do not add up to its I/Os.
    let goals = readings.jobs.iter().any(|job| job.latency_goal().is_some());
    if goals {
        excused.push("\"4\" : ");
    }
    let ours = without_options(&without_native(&ours.json));
    assert_same("json", &ours, &without_options(&theirs.json), &excused, hidden);
}

/// fio reads the wall clock once for its text and once for its JSON.
fn undated(text: &[String]) -> Vec<String> {
    let line = |line: &String| match line.split_once(" pid=") {
        Some((head, rest)) => format!("{head} pid={}", rest.split(':').next().unwrap()),
        None => line.clone(),
    };
    text.iter().map(line).collect()
}

/// Options are read through a map that does not keep their order, and a steady state's bytes are
/// not whole KiB; both have tests of their own.
fn without_options(json: &[String]) -> Vec<String> {
    let mut inside = false;
    let mut kept = Vec::new();
    for line in json {
        if line.contains("options\" : {") {
            inside = true;
        }
        let value = line.trim().trim_start_matches("\"bw_mean\" : ");
        let whole = value.trim_end_matches(',').parse::<u64>().is_ok();
        if !inside && !whole {
            kept.push(line.clone());
        }
        if inside && line.trim_start().starts_with('}') {
            inside = false;
        }
    }
    kept
}
