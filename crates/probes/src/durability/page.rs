//! What is shown of durability: the answer and the report.

use super::costs::{COMMIT, IMAGE, PAGE_BYTES, RECORD_BYTES};
use super::findings::is_whole;
use super::info::{COSTS, CostRow, DurabilityInfo, ORDERLY, POWER, PROCESS, READ_BACK, RESET, STAMPS};
use super::verdict::UNKNOWN;
use assay_measure::kind::{Headline, HeadlineFigure, HeadlineLine, Limit, Next, rerun_command};
use assay_measure::plain::shell_word;
use assay_measure::record::{Figure, Record};
use assay_measure::section::{Sections, common};
use assay_measure::units::{fixed, many, size, thousands};
use std::path::Path;

/// The first things to know.
pub(super) fn headline(record: &Record, info: &DurabilityInfo) -> Headline {
    Headline {
        tested: format!("Durability of the storage at {}{}.", info.path, with(info)),
        verdict: format!("{} ({})", info.durability, info.because),
        rows: vec![commit(info), announced(info), pages(info), images(info), stamps(info), how(info)]
            .into_iter()
            .flatten()
            .collect(),
        steadiness: match info.part.as_str() {
            COSTS => "n/a (short rounds of several ways to write, no window)",
            _ => "n/a (stamps are counted, not timed)",
        }
        .to_owned(),
        limit: Limit::unknown("durability is no rate; assay sync says what limits commits"),
        next: next(info),
        rerun_command: rerun_command(record),
        ..Headline::default()
    }
}

fn with(info: &DurabilityInfo) -> String {
    if info.witness.is_empty() { String::new() } else { format!(", witness {}", info.witness) }
}

/// A line without a figure of its own.
fn words(title: &'static str, text: String) -> HeadlineLine {
    HeadlineLine::of(title, Vec::new(), &text)
}

fn commit(info: &DurabilityInfo) -> Option<HeadlineLine> {
    if info.part == READ_BACK {
        return None;
    }
    if info.part == STAMPS {
        let figures = vec![
            HeadlineFigure::new(&info.commit_us_p50, "us p50 (stamp of 8 KiB + fdatasync)"),
            HeadlineFigure::new(&info.stamp.us_p99, "us p99"),
        ];
        return Some(HeadlineLine::told("Commit", figures));
    }
    let figures = vec![
        HeadlineFigure::new(&info.commit_us_p50, "us p50 (4 KiB write + fdatasync)"),
        HeadlineFigure::new(&info.dsync_us_p50, "us as an O_DSYNC write"),
        HeadlineFigure::new(&info.unsynced_us_p50, "us without a sync"),
    ];
    Some(HeadlineLine::told("Commit", figures))
}

/// What the device says of its cache, and what its medium can do.
fn announced(info: &DurabilityInfo) -> Option<HeadlineLine> {
    let cache = match info.write_cache.as_str() {
        "" => "the device does not say how it caches".to_owned(),
        "write back" => "write back, so volatile without a flush".to_owned(),
        cache => cache.to_owned(),
    };
    let fua = match info.fua.as_str() {
        "yes" => ", forced single writes (FUA)",
        "no" => ", no forced single writes (FUA)",
        _ => "",
    };
    let medium = match info.rotates.as_str() {
        "yes" if info.is_virtual => "; it says that it rotates, as most virtual disks do",
        "yes" => "; it says that it rotates: one turn takes 4 to 11 ms",
        "no" => "; flash: some 10 us with power-loss protection, 100 us to some ms without",
        _ => "",
    };
    let below = if info.is_virtual { "; a hypervisor may cache below" } else { "" };
    Some(words("Cache", format!("{cache}{fua}{medium}{below}")))
}

fn pages(info: &DurabilityInfo) -> Option<HeadlineLine> {
    let bytes = |figure: &Figure| figure.value().map(|bytes| size(bytes as u64));
    let atomic = match info.atomic_write_bytes.value() {
        Some(0.0) => "no atomic write announced".to_owned(),
        Some(bytes) => format!("atomic writes of {} announced", size(bytes as u64)),
        None => format!("atomic writes: n/a ({})", info.atomic_write_bytes.reason().unwrap_or("absent")),
    };
    let blocks = match (bytes(&info.logical_block_bytes), bytes(&info.physical_block_bytes)) {
        (Some(logical), Some(physical)) => format!(", blocks of {logical} logical and {physical} physical"),
        _ => String::new(),
    };
    let lie = bytes(&info.extent_alignment_bytes)
        .map_or_else(String::new, |bytes| format!(", the file lies aligned to {bytes}"));
    let so = if is_whole(info) { "pages of 8 KiB do not tear by that" } else { "pages of 8 and 16 KiB may tear" };
    Some(words("Torn pages", format!("{atomic}{blocks}{lie}: {so}")))
}

fn images(info: &DurabilityInfo) -> Option<HeadlineLine> {
    let (without, with) = (info.cost(COMMIT)?, info.cost(IMAGE)?);
    let of = |pct: &Figure, half: &Figure| match (pct.value(), half.value()) {
        (Some(pct), Some(half)) if pct - half > 0.0 => format!("{} +- {} %", fixed(pct, 0), fixed(half, 0)),
        (Some(pct), Some(half)) => {
            format!("at most {} % (not told apart from nothing)", fixed((pct + half).min(100.0), 0))
        }
        _ => "n/a (too little time)".to_owned(),
    };
    let rate =
        |row: &CostRow| row.commits_per_s.value().map_or_else(|| "n/a".to_owned(), |rate| thousands(rate as u64));
    Some(words(
        "Page images",
        format!(
            "cost {} of one session's commits ({} to {} commits/s), {} where 32 share a sync; log per small commit {} to {} bytes",
            of(&info.page_image_cost_pct, &info.page_image_cost_half_width_pct),
            rate(without),
            rate(with),
            of(&info.page_image_shared_cost_pct, &info.page_image_shared_cost_half_width_pct),
            RECORD_BYTES,
            thousands(RECORD_BYTES + PAGE_BYTES)
        ),
    ))
}

fn stamps(info: &DurabilityInfo) -> Option<HeadlineLine> {
    if info.witness.is_empty() {
        return None;
    }
    let ends: Vec<String> =
        [(POWER, "power cut"), (RESET, "reset"), (PROCESS, "kill of the writer"), (ORDERLY, "end in order")]
            .into_iter()
            .filter_map(|(end, word)| Some(many(info.ends(end), word)).filter(|_| info.ends(end) > 0))
            .collect();
    let ends = if ends.is_empty() {
        "nothing read back yet".to_owned()
    } else {
        format!("read back after {}", ends.join(", "))
    };
    let sum = |of: fn(&super::info::Cut) -> u64| thousands(info.cuts.iter().map(of).sum());
    let found = if info.cuts.is_empty() {
        String::new()
    } else {
        format!(
            ": of {} acknowledged {} lost, {} torn, {} reordered",
            sum(|cut| cut.acknowledged_count),
            sum(|cut| cut.lost_count),
            sum(|cut| cut.torn_count),
            sum(|cut| cut.reordered_count)
        )
    };
    let now = if info.part == STAMPS {
        format!("{} acknowledged now; ", thousands(info.stamps_count))
    } else {
        String::new()
    };
    Some(words("Stamps", format!("{now}{ends}{found}")))
}

/// How to cut.
fn how(info: &DurabilityInfo) -> Option<HeadlineLine> {
    const HOW: &str = "while stamps are written, cut the power of the host (--cut power), or reset it: echo b > /proc/sysrq-trigger, as root, \
                       which tests less (--cut reset)";
    (info.part == STAMPS || info.durability == UNKNOWN).then(|| words("A cut", HOW.to_owned()))
}

fn next(info: &DurabilityInfo) -> Vec<Next> {
    let directory = Path::new(&info.path).parent().and_then(Path::to_str).filter(|dir| !dir.is_empty()).unwrap_or(".");
    let directory = shell_word(directory);
    let host = if info.witness.is_empty() { "HOST" } else { &info.witness };
    let write = format!("assay durability {directory} --witness {host} --time 1h");
    let back = format!("assay durability {directory} --resume --witness {host} --cut power");
    match info.part.as_str() {
        COSTS if info.durability == UNKNOWN => vec![
            Next::new("assay durability witness --bind 0.0.0.0", "on another host, HOST"),
            Next::new(write, "here; cut it off"),
            Next::new(back, "up again"),
        ],
        COSTS => {
            vec![Next::new(format!("assay sync {directory}"), "durable writes per second by method and streams")]
        }
        STAMPS => vec![Next::new(write, "cut it off"), Next::new(back, "after a cut")],
        _ => vec![
            Next::new(write, "cut again"),
            Next::new(format!("rm {}", shell_word(&info.path)), "when you have seen enough"),
        ],
    }
}

/// The whole report.
pub(super) fn render(record: &Record, info: &DurabilityInfo) -> Sections {
    let mut page = Sections::default();
    common::opening(&mut page, record, "DURABILITY", &info.path);
    common::warnings(&mut page, record);
    common::advice(&mut page, record);
    page.heading("Verdict");
    page.wrapped("", &format!("{}: {}.", info.durability, info.because));
    if info.part == COSTS {
        page.table_of("Cost of a Commit", WAYS, &info.costs, "the probe was stopped before");
    }
    if !info.witness.is_empty() {
        page.table_of("Stamps Read Back", CUTS, &info.cuts, "nothing was read back yet");
    }
    common::facts(&mut page, "Device", &record.plan.engine_facts);
    common::facts(&mut page, "Host", &record.host.facts);
    page
}

const WAYS: &str = "Each way in turn, in rounds, past the page cache. A small record is 256 bytes; a page image adds 8 KiB. A write is the \
                     log of its commits in whole blocks of 4 KiB. Databases write an image only at a page's first change after a checkpoint: this is \
                     the price right after one.";
const CUTS: &str = "Power: the user says that the host lost it. Reset: this system restarted without an end. Process: the writer was \
                    killed while the kernel went on, which proves nothing of a power cut. Orderly: the writer ended by itself. Acknowledged: stamps that \
                    the witness had and that no later one overwrote. Lost: an older stamp or none is there. Overtaken: of the lost, those older than one \
                    that is there. Torn: parts of several writes. Reordered: the stamp of another place. Under way: the write that was not acknowledged.";
