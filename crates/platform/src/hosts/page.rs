//! What is shown of several platforms: the answer and the report.

use super::info::{HostRow, PlatformsInfo, SpreadRow, SumRow, who};
use super::odd::RULE;
use crate::needs::FAIL;
use assay_measure::kind::{Headline, HeadlineFigure, HeadlineLine, Limit, beside};
use assay_measure::record::Record;
use assay_measure::section::{Sections, common};
use assay_measure::units::many;

const NOT_YET: &str = "no host has ended a test";

/// The first things to know.
pub(super) fn headline(record: &Record, info: &PlatformsInfo) -> Headline {
    let names =
        |is: fn(&&HostRow) -> bool| info.hosts.iter().filter(is).map(|row| row.name.as_str()).collect::<Vec<_>>();
    let odd = names(|row| !row.odd_in.is_empty());
    let unfit = names(|row| row.failed_count > 0);
    let told = |what: &str, names: &[&str]| match names.len() {
        0 => String::new(),
        _ => format!("; {what}: {}", who(names, info.measured_count)),
    };
    let odd_told = if odd.is_empty() { "; none is odd".to_owned() } else { told("odd", &odd) };
    let need = |title, need: &str, unit: &str| {
        let row = info.needs.iter().find(|row| row.need == need)?;
        let figure = |value, which: &str| HeadlineFigure::new(value, &format!("{unit} {which}"));
        Some(HeadlineLine::told(
            title,
            vec![figure(&row.median, "at the median host"), figure(&row.least, "least"), figure(&row.most, "most")],
        ))
    };
    let rows = [need("Commit p99", "commit_us_p99", "us"), need("Read p99", "read_us_p99", "us"), together(info)];
    Headline {
        verdict: format!(
            "{}, {}{odd_told}{}",
            many(info.measured_count, "host"),
            if info.class.is_empty() { "n/a" } else { &info.class },
            told("not fit", &unfit)
        ),
        tested: format!(
            "{} as boxes for a database, each on {}, all in the same test at the same time, plan {}.",
            many(info.measured_count, "host"),
            info.path,
            info.plan
        ),
        rows: rows.into_iter().flatten().collect(),
        steadiness: steadiness(info),
        limit: limit(info),
        rerun_command: beside(record, "platform", &info.path, &["FULL", "SIZE"]),
        ..Headline::default()
    }
}

/// What all did at the same time: of the reads, those at the depth that brought most.
fn together(info: &PlatformsInfo) -> Option<HeadlineLine> {
    let value = |row: &&SumRow| row.sum.value().unwrap_or(-1.0);
    let of = |key: &str| {
        let rows = info.sums.iter().filter(|row| row.key == key);
        rows.max_by(|a, b| value(a).total_cmp(&value(b)))
    };
    let figure =
        |key: &str, words: &dyn Fn(&SumRow) -> String| of(key).map(|row| HeadlineFigure::new(&row.sum, &words(row)));
    let figures = [
        figure("sum_reads_per_s", &|row| format!("reads/s at {} on each", row.scope)),
        figure("sum_commits_per_s", &|_| "commits/s".to_owned()),
        figure("sum_read_mib_per_s", &|_| "MiB/s read".to_owned()),
        figure("sum_write_mib_per_s", &|_| "MiB/s written".to_owned()),
    ];
    let figures: Vec<HeadlineFigure> = figures.into_iter().flatten().collect();
    (!figures.is_empty()).then(|| HeadlineLine::told("Together", figures))
}

fn steadiness(info: &PlatformsInfo) -> String {
    let bad: Vec<String> = info
        .tests
        .iter()
        .filter(|row| !row.note.is_empty())
        .map(|row| format!("{} ({})", row.test, row.note))
        .collect();
    match (info.tests.is_empty(), bad.is_empty()) {
        (true, _) => format!("n/a ({NOT_YET})"),
        (_, true) => "n/a (short tests one after the other; each host's reports tell their own)".to_owned(),
        _ => format!("not steady: without a whole result: {}", bad.join("; ")),
    }
}

/// The oddest host; else the need that most hosts fail.
fn limit(info: &PlatformsInfo) -> Limit {
    if let Some(row) = info.hosts.iter().find(|row| !row.odd_in.is_empty()) {
        let needs = info.needs.iter().filter(|need| row.odd_in.split(", ").any(|odd| odd == need.need));
        let told: Vec<String> = needs.map(SpreadRow::told).collect();
        return Limit::new(format!("{}, which is not like the others", row.name), format!("{}.", told.join("; ")));
    }
    match info.needs.iter().filter(|row| row.failed_count > 0).max_by_key(|row| row.failed_count) {
        Some(row) => Limit::new(
            format!("{}, beyond the {FAIL}ing limit", row.need),
            format!("on {} of {}.", row.failed_count, many(info.measured_count, "host")),
        ),
        None => Limit::unknown("no host is odd, and no need is beyond its failing limit"),
    }
}

/// The whole report.
pub(super) fn render(record: &Record, info: &PlatformsInfo) -> Sections {
    let mut page = Sections::default();
    let of = format!("{}, {}, plan {}", many(info.hosts_count, "host"), info.path, info.plan);
    common::opening(&mut page, record, "PLATFORMS", &of);
    common::warnings(&mut page, record);
    common::advice(&mut page, record);
    page.table_of("Box by Box", &format!("Those without figures first, then the oddest. {RULE}"), &info.hosts, NOT_YET);
    page.table_of("What a Database Needs", NEEDS, &info.needs, NOT_YET);
    page.table_of("All Hosts Together", SUMS, &info.sums, "no test with a rate that adds up was made");
    page.table_of("Tests", TESTS, &info.tests, NOT_YET);
    page.table_of("Facts That Differ", FACTS, &info.facts, "every fact that was looked at is the same on all hosts");
    page.table_of("Findings", FOUND, &info.found, "none");
    common::facts(&mut page, "Facts of the Hosts", &record.host.facts);
    page
}

const NEEDS: &str = "Of the hosts that have the figure. Warn and fail count the hosts beyond each limit; the limits stand in their own \
                     records.";
const SUMS: &str = "Each sum adds what the hosts themselves measured in a test that they made together; it is given where they shared 90 % \
                    of the time or more. It says what they did then, not what the storage can do in all.";
const TESTS: &str = "In the order in which they ran: no host begins one before all have ended the one before. Seconds after the start, by \
                     the controller's clock.";
const FACTS: &str = "What the kernels tell, where it is not the same on all hosts.";
const FOUND: &str = "Each rule once for a test, the dear and the rare first; each host tells its own in its report.";
