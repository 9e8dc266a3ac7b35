//! The first things to know of a durable-write curve: what one durable write costs.

use super::STOPPED;
use super::info::{SyncInfo, SyncStep};
use assay_measure::cpu;
use assay_measure::kind::{Headline, HeadlineFigure, HeadlineLine, Limit, Next, rerun_command};
use assay_measure::record::{Figure, Record};
use assay_measure::units::{fixed, thousands, told};
use std::path::Path;

/// Title of the answer to `--commits`.
const COMMITS: &str = "Asked";

/// The headline of a curve.
pub(super) fn of(record: &Record, info: &SyncInfo) -> Headline {
    let mut rows = vec![
        commits("Rate", info.commits(false), "commits/s by one session, each with a flush of its own"),
        commits("", info.commits(true), "commits/s by MANY sessions that share flushes"),
        HeadlineLine::told(
            "F0",
            vec![HeadlineFigure::new(&info.durable_write_us_p50, "us, median of one durable 4 KiB write")],
        ),
    ];
    rows.extend(info.commits_asked_per_s.value().map(|asked| demand(record, info, asked)));
    Headline {
        tested: format!("Durable writes, the cost of a commit, on {}.", info.path),
        rows,
        steadiness: "n/a (a curve of short steps, no window)".to_owned(),
        rerun_command: rerun_command(record),
        limit: cpu::proved(cpu::host(record, None), limit(info)),
        next: vec![
            Next::new(
                format!("assay run --target native:{}/data --set UPDATE_PCT=100", directory(info)),
                "commits of a whole engine, including this cost",
            ),
            Next::new(format!("assay io {}", directory(info)), "reads and writes in the same place"),
        ],
        ..Headline::default()
    }
}

/// The rate of a step with its interval, and the tail.
fn commits(title: &'static str, step: Option<&SyncStep>, unit: &str) -> HeadlineLine {
    let none = Figure::na(STOPPED);
    let (rate, us_p99) = step.map_or((&none, &none), |step| (&step.per_s, &step.latency.us_p99));
    let unit = unit.replace("MANY", &step.map_or_else(|| "many".to_owned(), |step| step.streams_count.to_string()));
    let told = match step.and_then(SyncStep::interval) {
        Some([low, _, high]) => format!("{unit} (95 % interval {} to {})", rate_text(low), rate_text(high)),
        None => unit,
    };
    HeadlineLine::told(title, vec![HeadlineFigure::new(rate, &told), HeadlineFigure::new(us_p99, "us p99")])
}

/// A rate without digits that nobody needs.
fn rate_text(rate: f64) -> String {
    thousands(rate.max(0.0).round() as u64)
}

/// Whether this storage makes the commits that were asked about.
fn demand(record: &Record, info: &SyncInfo, asked: f64) -> HeadlineLine {
    let step = |many| {
        let step = info.commits(many)?;
        let who = if many {
            format!("{} sessions together make", step.streams_count)
        } else {
            "one session makes".to_owned()
        };
        let [low, rate, high] = step.interval()?;
        let told = format!("{who} {}/s ({} to {})", rate_text(rate), rate_text(low), rate_text(high));
        Some((low, high, told))
    };
    let known: Vec<(f64, f64, String)> = [step(false), step(true)].into_iter().flatten().collect();
    let all: Vec<&str> = known.iter().map(|(.., told)| told.as_str()).collect();
    let all = all.join(", ");
    let sentence = if known.is_empty() {
        "n/a (too few rounds of the steps that commit)".to_owned()
    } else if known.iter().any(|(low, ..)| *low >= asked) {
        format!("yes: {all}")
    } else if let Some(others) = cpu::disturbed(record) {
        format!("cannot be told: {all}, while {others}, which slows each commit; repeat on a quiet host")
    } else if known.len() == 2 && known.iter().all(|(_, high, _)| *high < asked) {
        format!("no: {all}")
    } else {
        format!("cannot be told: {all}; use a longer --time")
    };
    HeadlineLine::of(COMMITS, vec![], &format!("{} commits/s: {sentence}.", rate_text(asked)))
}

/// The directory of the file that was written.
fn directory(info: &SyncInfo) -> &str {
    let parent = Path::new(&info.path).parent().and_then(Path::to_str);
    parent.filter(|parent| !parent.is_empty()).unwrap_or(".")
}

/// What a durable write costs more than one that need not be.
fn limit(info: &SyncInfo) -> Limit {
    let Some(ratio) = info.sync_over_unsynced_ratio.value() else {
        return Limit::unknown("assay did not measure writes that need not be durable");
    };
    let evidence = format!(
        "A durable write takes {} times as long as a write without a flush ({} against {}).",
        fixed(ratio, 1),
        info.durable_write_us_p50.value().map_or_else(|| "n/a".to_owned(), |us| told(us, "us", 0)),
        info.unsynced_write_us_p50.value().map_or_else(|| "n/a".to_owned(), |us| told(us, "us", 0)),
    );
    if ratio >= 1.5 {
        Limit::new("the flush: waiting until the device has stored the data durably", evidence)
    } else {
        Limit::new("the write itself: the flush costs almost nothing", evidence)
    }
}
