//! What is shown of interference: the answer, the report and the heat map.

use super::info::{InterferenceInfo, NOISE, PairRow, UNKNOWN};
use super::role::{ROLES, Role};
use assay_measure::chart::{Axis, Chart, Drawn, Heat, Rows};
use assay_measure::facts::{IoCap, io_caps};
use assay_measure::kind::{Headline, HeadlineFigure, HeadlineLine, Limit, Next, beside, rerun_command};
use assay_measure::record::{Figure, Record};
use assay_measure::section::{Align, Cell, Sections, common};
use assay_measure::units::{fixed, many, short, significant};

const STOPPED: &str = "the probe was stopped before";
/// Rates alone that vary by more than this are not steady, %. Decided here.
const UNSTEADY_PCT: f64 = 10.0;
/// The two move what one moves alone, or a limit: within this part of it. Decided here.
const SAME_PART: f64 = 0.1;

/// The first things to know.
pub(super) fn headline(record: &Record, info: &InterferenceInfo) -> Headline {
    let longer = Next::new(
        format!("{} --time 10m", beside(record, "interference", &info.directory, &["SIZE"])),
        "tells smaller multiples apart from noise",
    );
    let caps = Next::new(format!("assay throttle {}", info.directory), "tells whether a cap is what they share");
    Headline {
        verdict: verdict(info),
        tested: format!("What five kinds of work do to each other on the storage at {}.", info.directory),
        rows: ROLES.iter().map(|role| line(info, role)).collect(),
        steadiness: steadiness(info),
        rerun_command: rerun_command(record),
        limit: limit(record, info),
        next: if info.slower().is_empty() { vec![longer] } else { vec![caps, longer] },
        ..Headline::default()
    }
}

/// The worst pair, and what the same work does to another role.
fn verdict(info: &InterferenceInfo) -> String {
    let slower = info.slower();
    let judged = info.pairs.iter().filter(|pair| pair.verdict != UNKNOWN).count() as u64;
    match slower.first() {
        Some(worst) => {
            let also = slower.iter().find(|pair| pair.beside == worst.beside && pair.role != worst.role);
            let also = also.map_or_else(String::new, |pair| format!("; {}", pair.told_short()));
            format!("{}{also}", worst.told())
        }
        None if judged == 0 => "n/a (too little time to judge any pair; use a longer --time)".to_owned(),
        None => format!("none of {} is slower beside the other by a fifth or more, beyond noise", many(judged, "pair")),
    }
}

/// A role: its p99 alone, and beside what it is slower.
fn line(info: &InterferenceInfo, role: &Role) -> HeadlineLine {
    let Some(alone) = info.alone(role.name) else { return HeadlineLine::told(role.title, Vec::new()) };
    let mut slower: Vec<&PairRow> = info.slower().into_iter().filter(|pair| pair.role == role.name).collect();
    slower.truncate(3);
    let p99 = match alone.alone_us_p99.value() {
        Some(_) => HeadlineFigure::new(&alone.alone_us_p99, "us p99 alone"),
        None => HeadlineFigure::new(&alone.alone_us_p90, "us p90 alone"),
    };
    let pairs = || info.pairs.iter().filter(|pair| pair.role == role.name);
    let rest = match (slower.is_empty(), pairs().all(|pair| pair.verdict == UNKNOWN)) {
        (true, true) => "; beside others n/a",
        (true, false) if pairs().any(|pair| pair.verdict == UNKNOWN) => "; no slower beside those that could be judged",
        (true, false) => "; not told apart from that beside any other",
        _ => "",
    };
    let mut told = vec![HeadlineFigure { unit: format!("{}{rest}", p99.unit), ..p99 }];
    told.extend(slower.iter().map(|pair| {
        if pair.is_by_rate {
            return HeadlineFigure::new(
                &pair.rate_ratio.scaled(100.0),
                &format!("% of the rate beside the {}", pair.beside),
            );
        }
        let range = [&pair.low_ratio, &pair.high_ratio].map(|bound| significant(bound.value().unwrap_or(f64::NAN), 2));
        let of = if pair.statistic == "p90" { " at p90" } else { "" };
        let unit = format!("x{of} beside the {} ({} to {})", pair.beside, range[0], range[1]);
        HeadlineFigure::new(pair.times(), &unit)
    }));
    HeadlineLine::told(role.title, told)
}

fn steadiness(info: &InterferenceInfo) -> String {
    let varied = info.roles.iter().filter_map(|row| Some((row, row.spread_pct.value()?)));
    let Some((row, most)) = varied.max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return "n/a (fewer than two rounds)".to_owned();
    };
    let of = format!("alone, the rate of the {} varied most from round to round, by {} %", row.role, fixed(most, 0));
    let word = if most > UNSTEADY_PCT { "not steady" } else { "steady" };
    format!("{word}: {of}; each pair is held against its own rounds")
}

/// Bytes that a role moves a second alone or beside another: read, and written.
fn moved(role: &str, per_s: &Figure) -> Option<[f64; 2]> {
    let role = ROLES.iter().find(|one| one.name == role)?;
    let per_s = per_s.value()?;
    Some([role.read_bytes, role.written_bytes].map(|bytes| per_s * bytes as f64))
}

/// What the worst pair shares.
fn limit(record: &Record, info: &InterferenceInfo) -> Limit {
    let slower = info.slower();
    let Some(worst) = slower.first() else {
        let is_judged = info.pairs.iter().any(|pair| pair.verdict != UNKNOWN);
        return Limit::unknown(if is_judged {
            "no role slows another beyond noise"
        } else {
            "no pair could be judged"
        });
    };
    let unknown = || Limit::unknown("the rates of the pair do not show what they share");
    let (Some(other), Some(mine)) = (info.other(worst), moved(&worst.role, &worst.beside_per_s)) else {
        return unknown();
    };
    let Some(theirs) = moved(&other.role, &other.beside_per_s) else { return unknown() };
    let both = [mine[0] + theirs[0], mine[1] + theirs[1]];
    let alone = |name: &str| moved(name, &info.alone(name)?.alone_per_s);
    let caps = || io_caps(&record.host.facts).filter(|cap| cap.disk == info.disk);
    let other_alone = alone(&worst.beside).unwrap_or_default();
    if let Some(cap) = caps().find(|cap| is_at(cap, other_alone) || is_at(cap, both)) {
        let (who, bytes) = if is_at(&cap, other_alone) {
            (format!("Alone, the {}", worst.beside), other_alone)
        } else {
            (format!("Together the {} and the {}", worst.role, worst.beside), both)
        };
        let moves = if cap.kind.starts_with("read") { "read" } else { "wrote" };
        let evidence = format!("{who} {moves} {} MB/s, at the limit of {}.", short(counted(&cap, bytes) / 1e6), cap.by);
        return Limit::new("the limit of a control group", evidence);
    }
    let sum = |name: &String| Some((name.clone(), alone(name)?.iter().sum::<f64>()));
    let most = [&worst.role, &worst.beside].into_iter().filter_map(sum).max_by(|a, b| a.1.total_cmp(&b.1));
    let both: f64 = both.iter().sum();
    match most {
        Some((name, most)) if both <= most * (1.0 + SAME_PART) => Limit::new(
            "what the storage moves at once",
            format!(
                "Together the {} and the {} moved {} MB/s, no more than the {name} alone ({} MB/s).",
                worst.role,
                worst.beside,
                short(both / 1e6),
                short(most / 1e6)
            ),
        ),
        _ => unknown(),
    }
}

/// Whether so many bytes read and written a second are at a limit of bytes.
fn is_at(cap: &IoCap<'_>, bytes: [f64; 2]) -> bool {
    cap.kind.ends_with("bytes") && counted(cap, bytes) >= cap.per_s * (1.0 - SAME_PART)
}

/// Of what is read and written, what a limit counts.
fn counted(cap: &IoCap<'_>, [read, written]: [f64; 2]) -> f64 {
    if cap.kind.starts_with("read") { read } else { written }
}

/// The whole report.
pub(super) fn render(record: &Record, info: &InterferenceInfo) -> Sections {
    let mut page = Sections::default();
    common::opening(&mut page, record, "INTERFERENCE", &info.directory);
    common::warnings(&mut page, record);
    common::advice(&mut page, record);
    page.heading("Matrix");
    page.wrapped("", MATRIX);
    let mut titles = vec![("Role \\ beside", Align::Left)];
    titles.extend(ROLES.iter().map(|role| (role.name, Align::Right)));
    let row = |role: &Role| {
        let cells = ROLES.iter().map(|beside| Cell::from(cell(info, role, beside)));
        [Cell::from(role.name)].into_iter().chain(cells).collect()
    };
    page.fitted(&titles, ROLES.iter().map(row).collect());
    if !info.missing.is_empty() {
        page.wrapped("", &format!("Missing: {}.", info.missing.join(", ")));
    }
    page.table_of("Roles Alone", ALONE, &info.roles, STOPPED);
    page.table_of("Pairs", PAIRS, &info.pairs, STOPPED);
    common::facts(&mut page, "Device", &record.plan.engine_facts);
    common::facts(&mut page, "Host", &record.host.facts);
    page
}

const MATRIX: &str = "The 99th percentile of the time of an operation of the role in the row while the role in the column works too, in \
                      multiples of alone. p90: the 90th, where too few operations are beyond the 99th. Rate: what is left of its rate, told where \
                      the percentile is not known or shows much less, since a role that stands still has few operations that wait. A question \
                      mark: not told apart from noise.";
const ALONE: &str = "In slices without any other role, spread over the whole run.";
const PAIRS: &str = "From and to: the 95 % interval of the multiple, from the rounds. Not told apart from noise: a difference this large is \
                     expected by chance somewhere among 20 pairs more often than once in 20 runs.";

fn of<'a>(info: &'a InterferenceInfo, role: &Role, beside: &Role) -> Option<&'a PairRow> {
    info.pairs.iter().find(|pair| (pair.role.as_str(), pair.beside.as_str()) == (role.name, beside.name))
}

fn cell(info: &InterferenceInfo, role: &Role, beside: &Role) -> String {
    of(info, role, beside).map_or_else(|| "-".to_owned(), PairRow::cell)
}

/// The matrix as a heat map.
pub(super) fn charts(info: &InterferenceInfo) -> Vec<Drawn> {
    let title = "How much slower a role is beside another";
    if info.pairs.iter().all(|pair| pair.verdict == UNKNOWN) {
        return vec![Drawn::missing(title, "no pair could be judged")];
    }
    // The first row at the top.
    let rows = || ROLES.iter().rev();
    let values = |role| ROLES.iter().map(|beside| of(info, role, beside)?.slowdown()).collect();
    let texts = |role| ROLES.iter().map(|beside| cell(info, role, beside)).collect();
    let noise = info.pairs.iter().filter(|pair| pair.verdict == NOISE).count() as u64;
    vec![Drawn::Chart(Box::new(Chart {
        id: "c-interference".to_owned(),
        title: title.to_owned(),
        note: format!("{MATRIX} {} of {} have one.", noise, many(info.pairs.len() as u64, "pair")),
        x: Axis::of("while this works too", ""),
        y: Axis::default(),
        heat: Some(Heat {
            unit: "times",
            columns: Rows::Names(ROLES.iter().map(|role| role.name.to_owned()).collect()),
            rows: rows().map(|role| role.name.to_owned()).collect(),
            values: rows().map(values).collect(),
            texts: rows().map(texts).collect(),
        }),
        ..Chart::default()
    }))]
}
