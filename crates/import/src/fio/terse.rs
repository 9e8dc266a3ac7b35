//! fio's terse output (`--minimal`, `--output-format=terse`), versions 3, 4 and 5: a line of fields with semicolons a job.
//!
//! Version 4 adds the way `trim`, version 5 the samples of IOPS. A direction that moved nothing is printed with zeros.

use super::super::located_number::LocatedNumber;
use super::super::number;
use super::super::rows::JOBS_MAX;
use super::super::text::{At, Line, Text};
use super::super::{Confidence, Draft};
use super::{Disk, Job, Lat, Run, WAYS, Way};

/// Fields of a way before and after version 5.
const WAY_FIELDS: [usize; 2] = [41, 47];
/// Percentiles of a way.
const PERCENTILES: usize = 20;
/// Depths that have a field each.
const DEPTHS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
/// Upper bounds of the classes of latencies, each kind with its unit.
const CLASSES: [(&str, &[&str]); 2] = [
    ("us", &["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000"]),
    ("ms", &["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000"]),
];

/// A line of a job: its version, and its fields.
fn fields(line: &Line) -> Option<(u32, Vec<&str>)> {
    let all: Vec<&str> = line.text.trim().split(';').collect();
    let version = all.first()?.parse().ok().filter(|version| (3..=5).contains(version))?;
    let is_fio = all.get(1).is_some_and(|word| word.starts_with("fio-"));
    let ways = if version == 3 { 2 } else { 3 };
    let least = 5 + ways * WAY_FIELDS[usize::from(version == 5)];
    (is_fio && all.len() >= least).then_some((version, all))
}

/// Whether a line is of a job.
pub(super) fn is_line(line: &Line) -> bool {
    fields(line).is_some()
}

pub(super) fn looks_like(text: &Text) -> Confidence {
    let has = text.head().iter().any(is_line);
    Confidence::of(94, &[("a terse line 3;fio-...;JOB;...", has)])
}

pub(super) fn read(text: &Text, draft: &mut Draft) -> Run {
    let mut run = Run { format: "fio terse", ..Run::default() };
    for line in &text.lines {
        if let Some((version, all)) = fields(line) {
            all[1].clone_into(&mut run.version);
            let mut fields = Fields { at: line.at, left: all.into_iter().skip(2) };
            job(&mut fields, version, &mut run, draft);
        }
    }
    run
}

/// The fields that were not read yet.
struct Fields<'a, I: Iterator<Item = &'a str>> {
    at: At,
    left: I,
}

impl<'a, I: Iterator<Item = &'a str>> Fields<'a, I> {
    fn word(&mut self) -> &'a str {
        self.left.next().unwrap_or_default().trim()
    }

    fn measure(&mut self) -> Option<LocatedNumber> {
        let word = self.word();
        LocatedNumber::some(self.at, number::measure(word))
    }

    fn count(&mut self) -> Option<LocatedNumber> {
        let word = self.word();
        LocatedNumber::some(self.at, number::count(word))
    }

    /// Minimum, maximum, mean, standard deviation, us; extremes are cut to whole us.
    fn spread(&mut self) -> Lat {
        let mut extreme = || self.measure().map(|seen| seen.looser(0.5));
        let (min, max) = (extreme(), extreme());
        Lat { min, max, avg: self.measure(), stddev: self.measure(), ..Lat::default() }
    }
}

fn job<'a>(fields: &mut Fields<'a, impl Iterator<Item = &'a str>>, version: u32, run: &mut Run, draft: &mut Draft) {
    let name = fields.word().to_owned();
    let group = fields.word().parse().unwrap_or(0);
    let error = fields.word();
    let mut job =
        Job { name, at: fields.at, group, error: (error != "0").then(|| format!("error {error}")), ..Job::default() };
    if run.jobs.len() >= JOBS_MAX {
        draft.is_full = true;
        return;
    }
    if run.jobs.iter().any(|known| known.name == job.name && known.group == job.group) {
        draft.note(fields.at, "several lines of one job: a clone each, without group_reporting");
    }
    for way in WAYS.into_iter().take(if version == 3 { 2 } else { 3 }) {
        let found = self::way(way, fields, version);
        let moved = |seen: &Option<LocatedNumber>| seen.as_ref().and_then(LocatedNumber::value).unwrap_or(0.0) > 0.0;
        if moved(&found.bytes) || moved(&found.ios_per_s) {
            job.ways.push(found);
        }
    }
    rest(&mut job, fields);
    let at = fields.at;
    run.jobs.push(job);
    disks(fields, at, run);
}

fn way<'a>(name: &'static str, fields: &mut Fields<'a, impl Iterator<Item = &'a str>>, version: u32) -> Way {
    // Amounts in KiB and rates are cut to whole numbers.
    let mut whole = |factor: f64| fields.count().map(|seen| seen.looser(1.0).scaled(factor));
    let (bytes, bytes_per_s) = (whole(1024.0), whole(1024.0));
    let (ios_per_s, runtime_s) = (whole(1.0), whole(1e-3));
    let (slat, mut clat) = (fields.spread(), fields.spread());
    for _ in 0..PERCENTILES {
        let entry = fields.word().split_once("%=");
        let Some((percent, value)) = entry else {
            continue;
        };
        let seen = LocatedNumber::some(fields.at, number::measure(value)).map(|seen| seen.looser(0.5));
        let percent = percent.parse::<f64>().ok().filter(|percent| *percent > 0.0);
        clat.percentiles.extend(percent.zip(seen));
    }
    let lat = fields.spread();
    let mut samples = Vec::new();
    for (key, label) in [
        ("bw_kib_per_s_min", "bw min"),
        ("bw_kib_per_s_max", "bw max"),
        ("bw_of_group_pct", "bw agg"),
        ("bw_kib_per_s_avg", "bw mean"),
        ("bw_kib_per_s_stddev", "bw dev"),
    ] {
        samples.extend(fields.measure().map(|seen| (key, label, seen)));
    }
    if version == 5 {
        // The number of samples of the bandwidth says nothing that the next does not.
        fields.word();
        for (key, label) in [
            ("iops_per_s_min", "iops min"),
            ("iops_per_s_max", "iops max"),
            ("iops_per_s_avg", "iops mean"),
            ("iops_per_s_stddev", "iops dev"),
            ("iops_samples_count", "iops samples"),
        ] {
            samples.extend(fields.measure().map(|seen| (key, label, seen)));
        }
    }
    let known = |lat: Lat| match lat.avg.as_ref().and_then(LocatedNumber::value) {
        Some(avg) if avg > 0.0 => lat,
        _ => Lat::default(),
    };
    Way {
        way: name,
        bytes,
        bytes_per_s,
        ios_per_s,
        runtime_s,
        slat: known(slat),
        clat: known(clat),
        lat: known(lat),
        samples,
        ..Way::default()
    }
}

/// CPU, depths and classes of latencies.
fn rest<'a>(job: &mut Job, fields: &mut Fields<'a, impl Iterator<Item = &'a str>>) {
    for (key, name) in [
        ("cpu_user_pct", "usr"),
        ("cpu_system_pct", "sys"),
        ("context_switches_count", "ctx"),
        ("major_faults_count", "majf"),
        ("minor_faults_count", "minf"),
    ] {
        job.rest.extend(fields.measure().map(|seen| (key, name, seen)));
    }
    for slot in DEPTHS {
        let seen = fields.measure();
        job.slots.extend(seen.map(|seen| ("depth_share_pct", slot.to_owned(), seen)));
    }
    for (unit, bounds) in CLASSES {
        for bound in bounds {
            let what = match bound.strip_prefix(">=") {
                Some(bound) => format!("{bound} {unit} or more"),
                None => format!("below {bound} {unit}"),
            };
            let seen = fields.measure().filter(|seen| seen.value() != Some(0.0));
            job.shares.extend(seen.map(|seen| (what, seen)));
        }
    }
}

/// Devices of a run at most.
const DISKS_MAX: usize = 1000;

/// Nine fields a device; the last line of a run has them, and those of an earlier one are the same.
fn disks<'a>(fields: &mut Fields<'a, impl Iterator<Item = &'a str>>, at: At, run: &mut Run) {
    const KEYS: [(&str, &str); 7] = [
        ("disk_reads_count", "read ios"),
        ("disk_writes_count", "write ios"),
        ("disk_read_merges_count", "read merges"),
        ("disk_write_merges_count", "write merges"),
        ("disk_read_ticks_ms", "read ticks"),
        ("disk_write_ticks_ms", "write ticks"),
        ("disk_in_queue_ms", "time in queue"),
    ];
    let left: Vec<&str> = fields.left.by_ref().collect();
    for disk in left.chunks_exact(9).filter(|disk| disk[8].ends_with('%')) {
        if run.disks.len() >= DISKS_MAX || run.disks.iter().any(|known| known.name == disk[0]) {
            continue;
        }
        let counts = KEYS
            .iter()
            .zip(&disk[1..])
            .filter_map(|((key, name), word)| Some((*key, *name, LocatedNumber::some(at, number::count(word))?)));
        let busy = LocatedNumber::some(at, number::measure(disk[8]));
        let mut figures: Vec<(&'static str, &'static str, LocatedNumber)> = counts.collect();
        figures.extend(busy.map(|seen| ("disk_busy_pct", "util", seen)));
        run.disks.push(Disk { name: disk[0].to_owned(), figures });
    }
}
