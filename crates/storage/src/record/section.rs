//! The short section below fio's text: figures that fio leaves out, in about 25 lines.

use super::goal;
use super::options::is_random;
use crate::record::info::{StorageGroup, StorageInfo, StorageJob};
use assay_measure::identity::violated;
use assay_measure::record::{Figure, Record, Truth};
use assay_measure::section::{Sections, number, number_or_reason};
use assay_measure::units::{fixed, many};

/// Maximum number of warnings and advice; the report has the rest.
const MOST_SENTENCES: usize = 5;
/// Maximum number of jobs with lines of their own.
const MOST_JOBS: usize = 4;

/// The section with its heading; empty for a record of another kind.
#[must_use]
pub fn section(record: &Record) -> Sections {
    let Some(info) = &record.parts.get::<StorageInfo>() else {
        return Sections::default();
    };
    let mut page = Sections::default();
    page.heading("What fio leaves out (assay)");
    for job in info.jobs.iter().take(MOST_JOBS) {
        self::job(&mut page, info, job);
    }
    if info.jobs.len() > MOST_JOBS {
        page.line(&format!("  ... and {} more jobs: see the report of the run.", info.jobs.len() - MOST_JOBS));
    }
    for group in info.groups.iter().take(MOST_JOBS) {
        over_time(&mut page, info, group);
    }
    devices(&mut page, info);
    integrity(&mut page, record);
    sentences(&mut page, record, info);
    page
}

/// A figure in microseconds with three significant digits and its unit.
fn us(figure: &Figure) -> String {
    match figure.value() {
        Some(us) if us >= 10_000.0 => format!("{} ms", fixed(us / 1000.0, 1)),
        Some(us) if us >= 100.0 => format!("{} us", fixed(us, 0)),
        Some(us) => format!("{} us", fixed(us, 2)),
        None => "n/a".to_owned(),
    }
}

fn job(page: &mut Sections, info: &StorageInfo, job: &StorageJob) {
    let lead = match info.jobs.len() {
        1 => "  ".to_owned(),
        _ => format!("  {}: ", job.name),
    };
    latencies(page, &lead, job);
    let cpu = &job.cpu;
    page.wrapped(
        &format!("{lead}in flight "),
        &format!(
            "{} as counted, {} by Little's law (IOPS x mean lat). CPU per I/O {} us user, {} us system, {} kernel entries.",
            number_or_reason(&job.in_flight_mean_count, 2),
            number_or_reason(&job.little_count, 2),
            number(&cpu.user_us_per_io, 2),
            number(&cpu.system_us_per_io, 2),
            number(&cpu.kernel_entries_per_io, 3),
        ),
    );
    let how = format!("{}; {}{}.", timing(job), seed(job), ring(job));
    page.wrapped(&lead, &how);
    if let Some(search) = &job.search {
        page.wrapped(&lead, &format!("{}.", goal::sentence(search)));
    }
    if let Some(steady) = &job.steady {
        let word = if steady.attained { "attained" } else { "not attained" };
        page.wrapped(
            &lead,
            &format!(
                "steady state ({}, window {} s): {word}, deviation {} %.",
                steady.criterion,
                steady.window_s,
                number_or_reason(&steady.deviation_pct, 2)
            ),
        );
    }
}

fn latencies(page: &mut Sections, lead: &str, job: &StorageJob) {
    for way in &job.ways {
        let lat = &way.lat;
        let percentiles = match lat.count {
            0 => format!("n/a ({})", lat.us_avg.reason().unwrap_or("absent")),
            _ => format!(
                "p50 {}, p99 {}, p99.9 {}, p99.99 {}, max {}",
                us(&lat.us_p50),
                us(&lat.us_p99),
                us(&lat.us_p999),
                us(&lat.us_p9999),
                us(&lat.us_max)
            ),
        };
        page.wrapped(&format!("{lead}{} lat ", way.way), &percentiles);
        if way.response.count > 0 {
            let response = &way.response;
            page.wrapped(
                &format!("{lead}{} response ", way.way),
                &format!(
                    "(from the due time) p50 {}, p99 {}, p99.9 {}, max {}",
                    us(&response.us_p50),
                    us(&response.us_p99),
                    us(&response.us_p999),
                    us(&response.us_max)
                ),
            );
        }
    }
}

/// How often times were taken, and the effect of that.
pub(crate) fn timing(job: &StorageJob) -> String {
    match job.timing.as_str() {
        "per batch" => "timestamps taken per batch (error: the time spent in a batch)".to_owned(),
        "none" => "no timestamps taken, as requested".to_owned(),
        "" => "timestamps taken in an unknown way".to_owned(),
        other => format!("timestamps taken {other}"),
    }
}

/// The seed, and whether other runs use it too.
pub(crate) fn seed(job: &StorageJob) -> String {
    let mut given = job.options.iter().rev();
    let repeat = given.find(|option| option.name == "randrepeat");
    let repeats = repeat.is_none_or(|option| !matches!(option.value.as_str(), "0" | "false"));
    if repeats && is_random(&job.rw) {
        format!("seed {}, so every run uses the same blocks (randrepeat=0: different ones)", job.seed)
    } else {
        format!("seed {}", job.seed)
    }
}

/// Features that the ring obtained or was refused: `; ring: ...; refused: ... (why)`.
pub(crate) fn ring(job: &StorageJob) -> String {
    let mut text = String::new();
    if !job.features.is_empty() {
        text.push_str(&format!("; ring: {}", job.features.join(", ")));
    }
    for refusal in &job.refused {
        text.push_str(&format!("; refused: {} ({})", refusal.feature, refusal.reason));
    }
    text
}

fn over_time(page: &mut Sections, info: &StorageInfo, group: &StorageGroup) {
    let lead = match info.groups.len() {
        1 => "  ".to_owned(),
        _ => format!("  group {}: ", group.group),
    };
    let total = &group.iops_total_per_s;
    let steadiness = &group.steadiness;
    let shape = match (&group.not_analysed, group.changes.len()) {
        (Some(why), _) => format!("changes n/a ({why})"),
        (None, 0) if group.drift_ratio.value().is_some() => "it drifts".to_owned(),
        (None, 0) => "no change of level".to_owned(),
        (None, n) => format!("{} of level", many(n as u64, "change")),
    };
    page.wrapped(
        &lead,
        &format!(
            "seconds of all clones together: IOPS {} +- {} (variation {} %), {} MiB/s; last over first quarter {}; {shape}.",
            number_or_reason(&total.mean, 0),
            number(&total.stddev, 0),
            number(&total.variation_ratio.scaled(100.0), 1),
            number(&group.bw_total_mib_per_s.mean, 1),
            number_or_reason(&steadiness.last_over_first_ratio, 2),
        ),
    );
}

fn devices(page: &mut Sections, info: &StorageInfo) {
    page.wrapped("  I/O mode achieved: ", &format!("{}.", info.io_mode_achieved));
    let requests = |count: u64, bytes: u64, avg: &Figure| match count {
        0 => "none".to_owned(),
        n => format!(
            "{} of {} KiB in {}",
            assay_measure::units::thousands(n),
            fixed(bytes as f64 / n as f64 / 1024.0, 1),
            us(avg)
        ),
    };
    for disk in info.disks.iter().take(4) {
        page.wrapped(
            &format!("  device {}: ", disk.name),
            &format!(
                "busy {} %, reads {}, writes {}, {} in its queue on average (whole run, layer device).",
                number(&disk.busy_pct, 1),
                requests(disk.reads_count, disk.read_bytes, &disk.read_us_avg),
                requests(disk.writes_count, disk.write_bytes, &disk.write_us_avg),
                number(&disk.queue_mean_count, 1)
            ),
        );
    }
}

fn integrity(page: &mut Sections, record: &Record) {
    let holds = record.integrity.iter().filter(|i| i.ok == Truth::Holds);
    let violated = violated(record);
    page.line(&format!(
        "  integrity: {} identities hold, {} violated{}",
        holds.count(),
        violated.len(),
        if violated.is_empty() { "." } else { ":" }
    ));
    for identity in violated {
        page.wrapped(&format!("    {} ", identity.id), &format!("{}: {}", identity.rule, identity.sentence));
    }
}

fn sentences(page: &mut Sections, record: &Record, info: &StorageInfo) {
    let advice = |high: bool| {
        record
            .hints()
            .filter(move |advice| (advice.severity == "high") == high)
            .map(|advice| ("advice: ", advice.text.clone()))
    };
    let warnings = record.doubts().map(|(_, text)| ("warning: ", text.to_owned()));
    let notes = notes(info).into_iter().map(|text| ("note: ", text));
    let all: Vec<(&str, String)> = advice(true).chain(warnings).chain(notes).chain(advice(false)).collect();
    for (kind, text) in all.iter().take(MOST_SENTENCES) {
        page.wrapped(&format!("  {kind}"), text);
    }
    if all.len() > MOST_SENTENCES {
        page.line(&format!("  {} more in the report of the run.", all.len() - MOST_SENTENCES));
    }
}

/// The notes of the jobs, each once; the first word may be a path.
pub(crate) fn notes(info: &StorageInfo) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for job in &info.jobs {
        for note in &job.notes {
            let end = if note.trim_end().ends_with(['.', '!', '?']) { "" } else { "." };
            let text = match info.jobs.len() {
                1 => format!("{}{end}", note.trim()),
                _ => format!("{}: {}{end}", job.name, note.trim()),
            };
            if !all.contains(&text) {
                all.push(text);
            }
        }
    }
    all
}
