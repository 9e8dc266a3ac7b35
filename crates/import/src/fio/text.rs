//! fio's text report: of 3.x, of 2.x, and of us.

use super::super::located_number::{BYTES, LocatedNumber, OLD_BYTES, after, amount, between, short_count};
use super::super::number::{self, Printed, Suffix};
use super::super::rows::JOBS_MAX;
use super::super::text::{At, Line, Text};
use super::super::{Confidence, Draft};
use super::{Disk, Group, GroupWay, Job, Lat, Run, WAYS, Way, way};
use assay_measure::record::ImportNote;
use std::collections::BTreeMap;

const MIB: f64 = 1_048_576.0;

pub(super) fn looks_like(text: &Text) -> Confidence {
    let has = |all: &[&str]| {
        let mut lines = text.head().iter();
        lines.any(|line| all.iter().all(|part| line.text.contains(part)))
    };
    let job = has(&["(groupid=", "err="]);
    let rate = has(&[": IOPS=", "BW="]) || has(&[" io=", " bw="]) || has(&[" io=", "aggrb="]);
    let latency = has(&["lat (", "sec): min="]);
    let whole = Confidence::of(
        95,
        &[
            ("a line NAME: (groupid=..., jobs=...): err=", job),
            ("a line read: IOPS=..., BW=... or read : io=..., bw=...", rate),
        ],
    );
    // A pasted fragment: no job line, but rates and latencies that nobody else prints so.
    let fragment = Confidence::of(
        70,
        &[
            ("a line read: IOPS=..., BW=...", has(&[": IOPS=", "BW="])),
            ("a line clat (usec): min=..., max=...", latency),
        ],
    );
    // What many pages show of a run, and nothing else of it.
    let status = Confidence::of(
        72,
        &[
            ("a line Run status group 0 (all jobs):", has(&["Run status group "])),
            ("a line READ: bw=... or READ: io=..., aggrb=...", has(&["bw=", "io=", "run="]) || has(&["io=", "aggrb="])),
        ],
    );
    whole.or(fragment).or(status)
}

/// Whether a line says that a job ended: `NAME: (groupid=0, jobs=1): err= 0: ...`.
fn is_job(line: &Line) -> bool {
    line.text.contains(": (groupid=") && line.text.contains("err=")
}

/// Whether there are jobs, or at least the lines that sum them up, in the text's own form.
pub(super) fn has_jobs(text: &Text) -> bool {
    text.lines.iter().any(|line| is_job(line) || line.text.starts_with("Run status group "))
}

/// Lines at which a further run begins: it announces its jobs, or, where that was left out, reports them after the
/// summary of the run before.
pub(super) fn runs(text: &Text) -> Vec<usize> {
    let (mut is_over, mut has_jobs, mut found) = (false, false, Vec::new());
    for (i, line) in text.lines.iter().enumerate() {
        let announces = line.text.contains(": (g=") && line.text.contains("rw=");
        let begins = (announces && (has_jobs || is_over)) || (is_over && is_job(line));
        if begins {
            found.push(i);
            (is_over, has_jobs) = (false, false);
        }
        has_jobs |= is_job(line);
        is_over |= line.text.starts_with("Run status group ");
    }
    found
}

/// Without the reports of a run that was still under way (`--status-interval`): the last one has all that they say.
pub(super) fn last_report(text: &Text) -> Option<Text> {
    // Name and process of a job are the same in each report.
    let key = |line: &Line| {
        let (name, rest) = line.text.split_once(": (groupid=").filter(|_| is_job(line))?;
        Some((name.to_owned(), rest.split("pid=").nth(1)?.split(':').next()?.to_owned()))
    };
    let jobs: Vec<(usize, (String, String))> =
        text.lines.iter().enumerate().filter_map(|(i, line)| Some((i, key(line)?))).collect();
    let (first, of_first) = jobs.first()?;
    let (last, _) = jobs.iter().rfind(|(_, key)| key == of_first).filter(|(last, _)| last > first)?;
    // Another run announces its jobs, whatever its process is called.
    if text.lines[*first..*last].iter().any(|line| line.text.contains(": (g=")) {
        return None;
    }
    let lines = [&text.lines[..*first], &text.lines[*last..]].concat();
    let at = text.lines[*first].at;
    let mut rest = Text { file: text.file, path: text.path.clone(), lines: lines.into(), ..Text::default() };
    let what = "reports of the run while it was under way were left out: the last one has all that they say";
    rest.notes.push(ImportNote { file: at.file, line: at.line, text: what.to_owned() });
    Some(rest)
}

/// What the lines so far have led to.
struct Reader<'a> {
    run: Run,
    draft: &'a mut Draft,
    /// Jobs as they were announced: name, mode, blocks, engine, depth.
    announced: BTreeMap<String, Announced>,
    way: Option<&'static str>,
    /// Which latency the lines with `|` are of, and its unit in us.
    percentiles: Option<(&'static str, f64)>,
    group: Option<u32>,
    in_disks: bool,
    skipped: u64,
    /// The last progress line.
    progress: Option<(At, String)>,
}

struct Announced {
    rw: String,
    blocks: String,
    engine: String,
    depth: Option<u64>,
}

pub(super) fn read(text: &Text, draft: &mut Draft) -> Run {
    let mut reader = Reader {
        run: Run { format: "fio text", ..Run::default() },
        draft,
        announced: BTreeMap::new(),
        way: None,
        percentiles: None,
        group: None,
        in_disks: false,
        skipped: 0,
        progress: None,
    };
    for line in &text.lines {
        reader.line(line);
    }
    if let Some((at, line)) = reader.progress.take() {
        reader.run.progress = progress(at, &line);
    }
    if reader.skipped > 1 {
        let n = reader.skipped - 1;
        let what = format!("progress lines (Jobs: ...) before the last were skipped ({n}): the report has the sums");
        reader.draft.note(At { file: text.file, line: 0 }, what);
    }
    reader.run
}

impl Reader<'_> {
    fn line(&mut self, line: &Line) {
        let text = line.text.trim();
        if text.starts_with("Jobs: ") {
            self.skipped += 1;
            self.progress = Some((line.at, text.to_owned()));
            return;
        }
        if text.starts_with('|') {
            self.percentile_line(line.at, text);
            return;
        }
        if self.header(line.at, text) || self.status(line.at, text) {
            return;
        }
        let Some((label, rest)) = text.split_once(':') else {
            return;
        };
        let label = label.trim();
        if self.in_disks && rest.contains("ios=") {
            self.disk(line.at, label, rest);
            return;
        }
        let word = label.split(['(', ' ']).next().unwrap_or_default();
        match word {
            "read" | "write" | "trim" if rest.contains("IOPS=") || rest.contains("io=") => {
                self.rates(line.at, word, rest);
            }
            "slat" | "clat" | "lat" | "sync" if label.contains("percentiles") => {
                self.percentiles = unit(label).map(|us| (known_lat(word), us));
            }
            "slat" | "clat" | "lat" | "sync" if rest.contains("min=") => {
                self.spread(line.at, word, label, rest);
            }
            "lat" => self.shares(line.at, label, rest),
            "bw" | "iops" => self.samples(line.at, word, label, rest),
            "cpu" => self.cpu(line.at, rest),
            // Where no depth was used there is no figure.
            "IO" | "submit" | "complete"
                if rest.contains("0=0.0%, 4=0.0%, 8=0.0%, 16=0.0%, 32=0.0%, 64=0.0%, >=64=0.0%") =>
            {
                self.draft.saw(line.at);
            }
            "IO" if label.starts_with("IO depths") => self.slots(line.at, "depth_share_pct", rest),
            "submit" => self.slots(line.at, "submit_batch_share_pct", rest),
            "complete" => self.slots(line.at, "complete_batch_share_pct", rest),
            "issued" => self.issued(line.at, rest),
            _ => {}
        }
    }

    /// The lines that name jobs and the version.
    fn header(&mut self, at: At, text: &str) -> bool {
        if let Some((name, rest)) = text.split_once(": (g=") {
            self.announced.entry(name.to_owned()).or_insert_with(|| Announced {
                rw: after(rest, "rw").unwrap_or_default().to_owned(),
                blocks: blocks(rest),
                engine: after(rest, "ioengine").unwrap_or_default().to_owned(),
                depth: after(rest, "iodepth").and_then(|depth| depth.split(' ').next()?.parse().ok()),
            });
            return true;
        }
        if let Some((name, rest)) = text.split_once(": (groupid=") {
            self.job(at, name, rest);
            return true;
        }
        let is_version = |word: &str| {
            let rest = word.strip_prefix("fio-").or_else(|| word.strip_prefix("assay-"));
            rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        if is_version(text) && !text.contains(' ') {
            text.clone_into(&mut self.run.version);
            return true;
        }
        false
    }

    fn job(&mut self, at: At, name: &str, rest: &str) {
        let jobs = after(rest, "jobs").map(|n| n.trim_end_matches([')', ':']).to_owned());
        let jobs = jobs.and_then(|n| n.split(')').next().and_then(|n| n.trim().parse().ok()));
        let error = after(rest, "err").unwrap_or_default();
        let error = error.split(": pid").next().unwrap_or_default().trim();
        let mut job = Job {
            name: name.to_owned(),
            at,
            group: digits(rest),
            clones: jobs,
            error: (!error.is_empty() && !error.starts_with("0")).then(|| format!("err= {error}")),
            ..Job::default()
        };
        if self.run.jobs.len() >= JOBS_MAX {
            self.draft.is_full = true;
            return;
        }
        if let Some(found) = self.announced.get(name) {
            found.rw.clone_into(&mut job.rw);
            found.blocks.clone_into(&mut job.blocks);
            found.engine.clone_into(&mut job.engine);
            job.depth = found.depth;
        }
        let date = rest.split("pid=").nth(1).and_then(|rest| rest.split_once(": "));
        if let (None, Some((_, date))) = (&self.run.started, date) {
            self.run.started = Some(date.trim().to_owned());
        }
        self.run.jobs.push(job);
        (self.way, self.percentiles, self.group) = (None, None, None);
        self.in_disks = false;
    }

    /// The job the lines are of; a fragment without a job line is of one without a name.
    fn current(&mut self, at: At) -> &mut Job {
        if self.run.jobs.is_empty() {
            self.draft.note(at, "figures without a line NAME: (groupid=...) are treated as figures of one job");
            self.run.jobs.push(Job { name: "job".to_owned(), at, ..Job::default() });
        }
        self.run.jobs.last_mut().expect("one was pushed just now")
    }

    fn rates(&mut self, at: At, word: &str, rest: &str) {
        let Some(name) = known_way(word) else {
            return;
        };
        self.percentiles = None;
        // A second one of the same way within one job is another report of a run under way.
        let job = self.current(at);
        if job.ways.iter().any(|way| way.way == name) {
            self.draft.note(at, format!("a second line of {name} for the same job was skipped"));
            return;
        }
        let found = way(&mut job.ways, name);
        if rest.contains("IOPS=") {
            rates_3(found, at, rest);
        } else {
            rates_2(found, at, rest);
        }
        self.way = Some(name);
    }

    /// The latency that a word means here; `None` if no way has begun.
    fn lat(&mut self, at: At, word: &str) -> Option<&mut Lat> {
        let name = self.way;
        let job = self.current(at);
        if word == "sync" {
            return Some(&mut job.sync);
        }
        let way = way(&mut job.ways, name?);
        Some(match word {
            "slat" => &mut way.slat,
            "clat" => &mut way.clat,
            _ => &mut way.lat,
        })
    }

    fn spread(&mut self, at: At, word: &str, label: &str, rest: &str) {
        let Some(us) = unit(label) else {
            self.draft.note(at, format!("{label}: the unit is unknown"));
            return;
        };
        let Some(lat) = self.lat(at, word) else {
            return;
        };
        // Extremes are cut to the unit, not rounded.
        let cut = |name| {
            let seen = after(rest, name).and_then(|token| number::suffixed(token, Suffix::Decimal));
            LocatedNumber::some(at, seen).map(|seen| seen.looser(0.5).scaled(us))
        };
        let plain = |name| {
            let seen = after(rest, name).and_then(|token| number::suffixed(token, Suffix::Decimal));
            LocatedNumber::some(at, seen).map(|seen| seen.scaled(us))
        };
        (lat.min, lat.max) = (cut("min"), cut("max"));
        (lat.avg, lat.stddev) = (plain("avg"), plain("stdev"));
    }

    fn percentile_line(&mut self, at: At, text: &str) {
        let Some((word, us)) = self.percentiles else {
            return;
        };
        let Some(lat) = self.lat(at, word) else {
            return;
        };
        for entry in text.trim_start_matches('|').split("],") {
            let Some((percent, value)) = entry.split_once("th=[") else {
                continue;
            };
            let value = value.trim_end_matches(']').trim();
            let printed = number::suffixed(value.trim_start_matches('>').trim_start_matches('='), Suffix::Decimal);
            let seen = LocatedNumber::some(at, printed);
            if let (Ok(percent), Some(seen)) = (percent.trim().parse::<f64>(), seen) {
                // Rounded up, not to the nearest.
                lat.percentiles.push((percent, seen.looser(0.5).scaled(us)));
            }
        }
    }

    /// `lat (usec)   : 50=0.14%, ...`
    fn shares(&mut self, at: At, label: &str, rest: &str) {
        let Some(unit) = between(label, "(", ")") else {
            return;
        };
        let unit = match unit.trim() {
            "nsec" => "ns",
            "usec" => "us",
            "msec" => "ms",
            _ => return,
        };
        let job = self.current(at);
        for entry in rest.split(',') {
            let Some((bound, share)) = entry.trim().split_once('=') else {
                continue;
            };
            // `>=2000=0.01%` splits at its first sign.
            let (bound, share) = match bound {
                ">" => {
                    let Some((bound, share)) = share.split_once('=') else {
                        continue;
                    };
                    (format!("{bound} {unit} or more"), share)
                }
                bound => (format!("below {bound} {unit}"), share),
            };
            if let Some(seen) = LocatedNumber::some(at, number::measure(share)) {
                job.shares.push((bound, seen));
            }
        }
    }

    fn samples(&mut self, at: At, word: &str, label: &str, rest: &str) {
        let Some(name) = self.way else {
            return;
        };
        let kib = match between(label, "(", ")").map(str::trim) {
            Some(unit) if unit.starts_with("KiB") || unit.starts_with("KB") => 1.0,
            Some(unit) if unit.starts_with("MiB") || unit.starts_with("MB") => 1024.0,
            Some(unit) if unit.starts_with("GiB") || unit.starts_with("GB") => 1_048_576.0,
            Some(_) => return,
            None => 1.0,
        };
        let table: &[(&str, &'static str, &'static str)] = match word {
            "bw" => &[
                ("min", "bw_kib_per_s_min", "bw min"),
                ("max", "bw_kib_per_s_max", "bw max"),
                ("avg", "bw_kib_per_s_avg", "bw avg"),
                ("stdev", "bw_kib_per_s_stddev", "bw stdev"),
                ("per", "bw_of_group_pct", "bw per"),
                ("samples", "bw_samples_count", "bw samples"),
            ],
            _ => &[
                ("min", "iops_per_s_min", "iops min"),
                ("max", "iops_per_s_max", "iops max"),
                ("avg", "iops_per_s_avg", "iops avg"),
                ("stdev", "iops_per_s_stddev", "iops stdev"),
                ("samples", "iops_samples_count", "iops samples"),
            ],
        };
        let way = way(&mut self.current(at).ways, name);
        for (label, key, name) in table {
            let token = after(rest, label).and_then(|token| token.split(' ').next());
            let printed = token.and_then(number::measure);
            if let Some(seen) = LocatedNumber::some(at, printed) {
                let factor = if key.starts_with("bw_kib") { kib } else { 1.0 };
                way.samples.push((key, name, seen.scaled(factor)));
            }
        }
    }

    fn cpu(&mut self, at: At, rest: &str) {
        let job = self.current(at);
        for (label, key, name) in [
            ("usr", "cpu_user_pct", "cpu usr"),
            ("sys", "cpu_system_pct", "cpu sys"),
            ("ctx", "context_switches_count", "cpu ctx"),
            ("majf", "major_faults_count", "cpu majf"),
            ("minf", "minor_faults_count", "cpu minf"),
        ] {
            let printed = after(rest, label)
                .and_then(|token| if key.ends_with("_pct") { number::measure(token) } else { number::count(token) });
            if let Some(seen) = LocatedNumber::some(at, printed) {
                job.rest.push((key, name, seen));
            }
        }
    }

    /// `1=100.0%, 2=0.0%, ..., >=64=0.0%`
    fn slots(&mut self, at: At, key: &'static str, rest: &str) {
        let job = self.current(at);
        for entry in rest.split(',') {
            let entry = entry.trim();
            let Some((slot, share)) = entry.rsplit_once('=') else {
                continue;
            };
            if let Some(seen) = LocatedNumber::some(at, number::measure(share)) {
                job.slots.push((key, slot.to_owned(), seen));
            }
        }
    }

    fn issued(&mut self, at: At, rest: &str) {
        let job = self.current(at);
        let of = |name: &str| -> Vec<Option<Printed>> {
            let begin = rest.find(&format!("{name}=")).map(|at| at + name.len() + 1);
            let list = begin.map_or("", |begin| &rest[begin..]);
            let list = list.split([' ']).next().unwrap_or_default();
            // `total=r=10/w=0/d=0` of 2.x, `total=10,0,0,0` of 3.x.
            let old = list.contains("r=");
            let cells = list.trim_end_matches(',').split(if old { '/' } else { ',' });
            cells.map(|cell| number::count(cell.rsplit('=').next().unwrap_or_default())).collect()
        };
        let (total, short) = (of("total"), of("short"));
        for (i, name) in WAYS.into_iter().enumerate() {
            let Some(found) = job.ways.iter_mut().find(|way| way.way == name) else {
                continue;
            };
            found.ios = LocatedNumber::some(at, total.get(i).cloned().flatten());
            found.short = LocatedNumber::some(at, short.get(i).cloned().flatten());
        }
    }

    /// `Run status group 0 (all jobs):` and its lines; `Disk stats`.
    fn status(&mut self, at: At, text: &str) -> bool {
        if let Some(rest) = text.strip_prefix("Run status group ") {
            let group = digits(rest);
            self.group = Some(group);
            self.run.groups.push(Group { group, ..Group::default() });
            return true;
        }
        if text.starts_with("Disk stats") {
            self.in_disks = true;
            return true;
        }
        let (Some(_), Some((label, rest))) = (self.group, text.split_once(':')) else {
            return false;
        };
        let name = known_way(&label.trim().to_ascii_lowercase());
        let (Some(name), Some(group)) = (name, self.run.groups.last_mut()) else {
            return false;
        };
        if label.trim() != label.trim().to_ascii_uppercase() {
            return false;
        }
        group.ways.push(group_way(name, at, rest));
        true
    }

    fn disk(&mut self, at: At, name: &str, rest: &str) {
        let mut figures = Vec::new();
        let pairs: [(&str, [&'static str; 2], [&'static str; 2]); 3] = [
            ("ios", ["disk_reads_count", "disk_writes_count"], ["ios read", "ios write"]),
            ("merge", ["disk_read_merges_count", "disk_write_merges_count"], ["merge read", "merge write"]),
            ("ticks", ["disk_read_ticks_ms", "disk_write_ticks_ms"], ["ticks read", "ticks write"]),
        ];
        for (label, keys, names) in pairs {
            let Some((read, write)) = after(rest, label).and_then(|pair| pair.split_once('/')) else {
                continue;
            };
            for (token, (key, name)) in [read, write].into_iter().zip(keys.into_iter().zip(names)) {
                if let Some(seen) = LocatedNumber::some(at, number::count(token)) {
                    figures.push((key, name, seen));
                }
            }
        }
        for (label, key) in [("in_queue", "disk_in_queue_ms"), ("util", "disk_busy_pct")] {
            let token = after(rest, label).and_then(|token| token.split(' ').next());
            let printed = token
                .and_then(|token| if key.ends_with("_pct") { number::measure(token) } else { number::count(token) });
            if let Some(seen) = LocatedNumber::some(at, printed) {
                figures.push((key, label, seen));
            }
        }
        let name = name.to_owned();
        self.run.disks.push(Disk { name, figures });
    }
}

/// The rate is cut to a whole number before it is shortened.
fn ios_per_s(at: At, rest: &str, name: &str) -> Option<LocatedNumber> {
    LocatedNumber::some(at, after(rest, name).and_then(short_count)).map(|seen| seen.looser(1.0))
}

/// Bytes with a prefix. fio divides step by step, and what was left of all steps but the last is gone: 70.25006 MiB shows as
/// 70.2MiB. A rate is cut to a whole byte before.
pub(super) fn shortened(at: At, token: &str, units: &[(&str, f64)]) -> Option<LocatedNumber> {
    let seen = LocatedNumber::some(at, amount(token, units))?;
    let unit = token.trim_start_matches(|c: char| !c.is_alphabetic());
    let step = units.iter().find(|(name, _)| *name == unit)?.1 / 1000.0;
    Some(seen.looser(step.max(1.0)))
}

/// `IOPS=10.4k, BW=40.5MiB/s (42.4MB/s)(4858MiB/120001msec); 0 zone resets`
fn rates_3(way: &mut Way, at: At, rest: &str) {
    way.ios_per_s = ios_per_s(at, rest, "IOPS");
    let bw = after(rest, "BW").unwrap_or_default();
    let (binary, bracket) = bw.split_once('(').unwrap_or((bw, ""));
    let per_s = |token: &str| shortened(at, token.trim().strip_suffix("/s")?, BYTES);
    way.bytes_per_s = per_s(binary);
    let (decimal, total) = bracket.split_once(")(").unwrap_or((bracket, ""));
    way.decimal_bytes_per_s = per_s(decimal.trim_end_matches(')'));
    let total = total.split(')').next().unwrap_or_default();
    if let Some((bytes, runtime)) = total.split_once('/') {
        way.bytes = shortened(at, bytes, BYTES);
        way.runtime_s = runtime_s(at, runtime);
    }
}

/// `io=1024.0MB, bw=133504KB/s, iops=33375, runt=  7854msec`
fn rates_2(way: &mut Way, at: At, rest: &str) {
    way.bytes = after(rest, "io").and_then(|io| shortened(at, io, OLD_BYTES));
    way.bytes_per_s = after(rest, "bw").and_then(|bw| shortened(at, bw.strip_suffix("/s")?, OLD_BYTES));
    way.ios_per_s = ios_per_s(at, rest, "iops");
    way.runtime_s = after(rest, "runt").and_then(|token| runtime_s(at, token));
}

/// `bw=113MiB/s (119MB/s), 113MiB/s-113MiB/s (119MB/s-119MB/s), io=340MiB (356MB), run=3001-3001msec`, or
/// `io=4687.8MB, aggrb=53327KB/s, minb=13331KB/s, maxb=13358KB/s, mint=90014msec, maxt=90014msec`.
fn group_way(way: &'static str, at: At, rest: &str) -> GroupWay {
    let of = |name| after(rest, name).unwrap_or_default();
    let range = |text: &str| {
        let (least, most) = text.split_once('-').unwrap_or((text, text));
        (least.to_owned(), most.to_owned())
    };
    let both = |text: &str| {
        let (binary, decimal) = text.split_once(" (").unwrap_or((text, ""));
        (binary.to_owned(), decimal.trim_end_matches(')').to_owned())
    };
    let (bytes, decimal_bytes) = both(of("io"));
    let is_old = of("bw").is_empty();
    let table = if is_old { OLD_BYTES } else { BYTES };
    let ((rate, decimal_rate), (least, most), (shortest, longest)) = if is_old {
        let of = |name| of(name).to_owned();
        ((of("aggrb"), String::new()), (of("minb"), of("maxb")), (of("mint"), of("maxt")))
    } else {
        let jobs = rest.split(", ").nth(1).filter(|jobs| !jobs.contains('=')).unwrap_or_default();
        (both(of("bw")), range(&both(jobs).0), range(of("run")))
    };
    let per_s = |token: &str, unit: f64| Some(shortened(at, token.strip_suffix("/s")?, table)?.scaled(1.0 / unit));
    let time = |token: &str| runtime_s(at, &format!("{}msec", token.trim_end_matches("msec")));
    let found = [
        ("mib_per_s", "bw", per_s(&rate, MIB)),
        ("mb_per_s", "bw", per_s(&decimal_rate, 1e6)),
        ("job_mib_per_s_min", "minb", per_s(&least, MIB)),
        ("job_mib_per_s_max", "maxb", per_s(&most, MIB)),
        ("moved_bytes", "io", shortened(at, &bytes, table)),
        ("moved_mb", "io", shortened(at, &decimal_bytes, table).map(|seen| seen.scaled(1e-6))),
        ("runtime_min_s", "run", time(&shortest)),
        ("runtime_s", "run", time(&longest)),
    ];
    GroupWay { way, figures: found.into_iter().filter_map(|(key, name, seen)| Some((key, name, seen?))).collect() }
}

/// `Jobs: 4 (f=4): [r(4)][100.0%][r=56.3MiB/s,w=0KiB/s][r=14.4k,w=0 IOPS][eta 00m:00s]`. Versions before 3.8 print the
/// whole units alone: 36.95 MiB/s is `36.0MiB/s` there.
fn progress(at: At, line: &str) -> Vec<(String, LocatedNumber)> {
    let mut found = Vec::new();
    for part in line.split('[').filter_map(|part| part.split(']').next()) {
        let (list, is_rate) = match part.strip_suffix(" IOPS") {
            Some(list) => (list, false),
            None if part.ends_with("/s") => (part, true),
            None => continue,
        };
        for (way, token) in list.split(',').filter_map(|entry| entry.split_once('=')) {
            let Some(way) = WAYS.into_iter().find(|name| name.starts_with(way)) else {
                continue;
            };
            let unit = token.trim_start_matches(|c: char| !c.is_alphabetic()).trim_end_matches("/s");
            let whole = BYTES.iter().find(|(name, _)| *name == unit).map_or(1e3, |(_, bytes)| *bytes);
            let seen = if is_rate {
                token.strip_suffix("/s").and_then(|token| shortened(at, token, BYTES)).map(|seen| seen.looser(whole))
            } else {
                LocatedNumber::some(at, short_count(token))
                    .map(|seen| if unit.is_empty() { seen } else { seen.looser(whole) })
            };
            let (key, factor) = if is_rate { ("mib_per_s", 1.0 / MIB) } else { ("ios_per_s", 1.0) };
            let seen = seen.filter(|seen| seen.value() != Some(0.0));
            found.extend(seen.map(|seen| (format!("{way}_{key}"), seen.scaled(factor))));
        }
    }
    found
}

/// `120001msec` in s, cut to whole milliseconds.
fn runtime_s(at: At, token: &str) -> Option<LocatedNumber> {
    let us = number::duration_us(token.trim(), 1.0);
    LocatedNumber::some(at, us).map(|seen| seen.looser(500.0).scaled(1e-6))
}

/// The unit of a line such as `clat (usec)` in us.
fn unit(label: &str) -> Option<f64> {
    match between(label, "(", ")")?.trim() {
        "nsec" => Some(1e-3),
        "usec" => Some(1.0),
        "msec" => Some(1e3),
        "sec" => Some(1e6),
        _ => None,
    }
}

fn known_way(word: &str) -> Option<&'static str> {
    WAYS.into_iter().find(|way| *way == word)
}

fn known_lat(word: &str) -> &'static str {
    match word {
        "slat" => "slat",
        "clat" => "clat",
        "sync" => "sync",
        _ => "lat",
    }
}

/// The digits a text begins with.
fn digits(text: &str) -> u32 {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().unwrap_or(0)
}

/// `bs=(R) 4096B-4096B, (W) ...` or `bs=4K-4K/4K-4K/4K-4K`: the sizes of the ways the job goes, as our own records
/// say them; as printed where they cannot be read.
fn blocks(rest: &str) -> String {
    let Some(at) = rest.find("bs=") else {
        return String::new();
    };
    let list = &rest[at + 3..];
    let list = &list[..list.find(", ioengine").unwrap_or(list.len())];
    let parts = list.split(if list.contains(", ") { ',' } else { '/' });
    let sizes: Option<Vec<String>> = parts.map(block).collect();
    let Some([read, write, ..]) = sizes.as_deref() else {
        return list.to_owned();
    };
    let rw = after(rest, "rw").unwrap_or_default();
    let is_mixed = rw.contains("rw") || rw.contains("readwrite");
    match (is_mixed, rw.contains("write")) {
        (true, _) if read != write => format!("(R) {read} (W) {write}"),
        (false, true) => write.clone(),
        _ => read.clone(),
    }
}

/// `(R) 4096B-8192B` or `4K-8K`
pub(super) fn block(part: &str) -> Option<String> {
    let bare = part.rsplit(' ').next()?;
    let bytes = |token: &str| {
        let token = token.trim_end_matches('B');
        let printed = number::suffixed(&token.replace("Ki", "K").replace("Mi", "M"), Suffix::Binary);
        Some(assay_measure::units::size(printed?.number()? as u64))
    };
    let (least, most) = bare.split_once('-').unwrap_or((bare, bare));
    let (least, most) = (bytes(least)?, bytes(most)?);
    if least == most { Some(least) } else { Some(format!("{least}-{most}")) }
}
