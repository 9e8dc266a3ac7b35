//! What is shown of a platform: the answer and the report.

use crate::facts;
use crate::info::{NeedRow, PlatformInfo};
use crate::needs::{FAIL, WARN};
use assay_measure::kind::{Headline, HeadlineFigure, HeadlineLine, Limit, Next, rerun_command};
use assay_measure::record::{Figure, Record};
use assay_measure::section::{Sections, common};
use assay_measure::units::many;

const NOT_YET: &str = "no test has ended";

/// The first things to know.
pub(crate) fn headline(record: &Record, info: &PlatformInfo) -> Headline {
    let count = |verdict: &str| info.needs.iter().filter(|row| row.verdict == verdict).count() as u64;
    let (failed, warned) = (count(FAIL), count(WARN));
    let verdict = match (failed, warned) {
        _ if info.tests.is_empty() => "n/a".to_owned(),
        (0, 0) => "fit for a database by all limits that could be judged".to_owned(),
        (0, _) => format!("fit with {}", many(warned, "warning")),
        _ => format!("not fit: {} beyond the limit", many(failed, "need")),
    };
    let peer = if info.peer == "none" { String::new() } else { format!(" and to {}", info.peer) };
    let figure = |need: &str, what: &str| {
        let row = info.needs.iter().find(|row| row.need == need);
        HeadlineFigure::new(row.map_or(&Figure::default(), |row| &row.need_value), what)
    };
    Headline {
        verdict: format!("{}, {verdict}", info.class),
        tested: format!("This box for a database, on {}{peer}, plan {}.", info.path, info.plan),
        rows: vec![
            class(info),
            HeadlineLine::told(
                "Commit",
                vec![figure("commit_us_p50", "us p50"), figure("commit_us_p99", "us p99 of many")],
            ),
            HeadlineLine::told("Read of 8 KiB", vec![figure("read_us_p99", "us p99 at depth 1")]),
            HeadlineLine::told(
                "Streams",
                vec![figure("read_mib_per_s", "MiB/s read"), figure("write_mib_per_s", "MiB/s written")],
            ),
            HeadlineLine::told(
                "CPU, memory",
                vec![
                    HeadlineFigure::new(&info.measured_mhz, "MHz measured"),
                    HeadlineFigure::new(&info.claimed_mhz, "MHz claimed"),
                    figure("memory_ns", "ns a read of memory"),
                    figure("clock_read_ns", "ns a read of the clock"),
                ],
            ),
            HeadlineLine {
                lead: facts_told(info),
                ..HeadlineLine::of("Facts", vec![HeadlineFigure::new(&info.busy_before_pct, "% busy before")], "")
            },
        ],
        steadiness: steadiness(info),
        limit: limit(info),
        next: next(record, worst(info)),
        rerun_command: rerun_command(record),
        ..Headline::default()
    }
}

fn class(info: &PlatformInfo) -> HeadlineLine {
    HeadlineLine::told(
        "Class",
        vec![
            HeadlineFigure::new(&info.reads_within_goal_per_s, "reads/s at p99 <= 1 ms"),
            HeadlineFigure::new(&info.commits_within_goal_per_s, "commits/s at p99 <= 5 ms"),
        ],
    )
}

fn facts_told(info: &PlatformInfo) -> String {
    let count = |verdict: &str| info.facts.iter().filter(|row| row.verdict == verdict).count();
    format!(
        "{} good, {} to change, {} not to be known; ",
        count(facts::GOOD),
        count(facts::FINDING),
        count(facts::UNKNOWN)
    )
}

fn steadiness(info: &PlatformInfo) -> String {
    let bad: Vec<&str> =
        info.tests.iter().filter(|row| row.verdict != "complete").map(|row| row.test.as_str()).collect();
    if info.tests.is_empty() {
        return format!("n/a ({NOT_YET})");
    }
    if bad.is_empty() {
        return "n/a (short tests one after the other; each test's report tells its own)".to_owned();
    }
    format!("not steady: without a whole result: {}", bad.join(", "))
}

/// The first need beyond a limit, failures before warnings.
fn worst(info: &PlatformInfo) -> Option<&NeedRow> {
    [FAIL, WARN].into_iter().find_map(|verdict| info.needs.iter().find(|row| row.verdict == verdict))
}

fn limit(info: &PlatformInfo) -> Limit {
    match worst(info) {
        Some(row) => Limit::new(
            format!("{}, the first need beyond a limit", row.need),
            format!("{} (test {}; limits: {}).{}", row.told(), row.test, row.source, why(info, &row.test)),
        ),
        None => Limit::unknown("no need is beyond its limits"),
    }
}

/// The dearest finding of a test, which may be why its need is beyond a limit.
fn why(info: &PlatformInfo, test: &str) -> String {
    let found = info.found.iter().find(|found| found.test == test && found.severity == "high");
    found.map_or_else(String::new, |found| format!(" {}: {}", found.rule, found.text))
}

/// A longer test of what is short, and where a database's load stops.
fn next(record: &Record, worst: Option<&NeedRow>) -> Vec<Next> {
    let longer = rerun_command(record);
    let longer = (!longer.is_empty() && !longer.contains(" --full")).then(|| format!("{longer} --full"));
    let again =
        longer.filter(|_| worst.is_some()).map(|command| Next::new(command, "shows whether it stays so for an hour"));
    let sweep = Next::new("assay sweep", "shows where a database's load stops here");
    again.into_iter().chain([sweep]).collect()
}

/// The whole report.
pub(crate) fn render(record: &Record, info: &PlatformInfo) -> Sections {
    let mut page = Sections::default();
    common::opening(&mut page, record, "PLATFORM", &format!("{}, plan {}", info.path, info.plan));
    common::warnings(&mut page, record);
    common::advice(&mut page, record);
    page.table_of("What a Database Needs", NEEDS, &info.needs, NOT_YET);
    page.table_of("Facts", FACTS, &info.facts, "nothing was looked at");
    page.table_of("Settings for This Disk", SETTINGS, &info.settings, NOT_YET);
    page.table_of("Tests", TESTS, &info.tests, NOT_YET);
    page.table_of(
        "Findings of the Tests",
        "Each is told with its rule in the report of its test.",
        &info.found,
        "none",
    );
    common::facts(&mut page, "Host", &record.host.facts);
    page
}

const NEEDS: &str = "Each figure is from the test named, whose record lies in the directory beside. A need that cannot be known is \
                     neither good nor bad.";
const FACTS: &str = "What the kernel tells, without a measurement; assay changes no setting.";
const SETTINGS: &str = "Computed from this run by the formula. assay applies none; try them with your own statements.";
const TESTS: &str = "In the order in which they ran.";
