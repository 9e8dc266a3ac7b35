//! What is shown of a passport and of an acceptance.

use super::info::{BETTER, PassportInfo, PassportRow, UNKNOWN, WORSE};
use assay_measure::kind::{Headline, HeadlineFigure, HeadlineLine, Limit, Next, rerun_command};
use assay_measure::plain::shell_word;
use assay_measure::record::{Advice, Figure, Record};
use assay_measure::rule::{Judges, Rule};
use assay_measure::section::{Sections, common};
use assay_measure::units::{fixed, many, six};

pub(super) const RULES: &Judges<PassportInfo> = &[(DISTURBED, disturbed), (IS_WORSE, is_worse), (CHANGED, changed)];

const DISTURBED: Rule = Rule {
    id: "B7",
    title: "Others disturbed the rounds",
    changes_figures: true,
    fires_when: || {
        "In more than half of the rounds of a figure others used much of the CPUs or of the device".to_owned()
    },
    why: "The figures are of what they left.",
    what_to_do: "Repeat it when the host is quiet.",
    cannot_judge_when: "The kernel does not tell who used the CPUs: then the rule is silent.",
    source: "Decided here.",
};

fn disturbed(_: &Record, info: &PassportInfo) -> Option<Advice> {
    let is_disturbed = |row: &&PassportRow| 2 * row.disturbed_count > info.rounds_count;
    let names: Vec<&str> = info.rows.iter().filter(is_disturbed).map(|row| row.what.as_str()).collect();
    let text = || format!("Others disturbed more than half of the rounds of {}.", names.join(", "));
    (!names.is_empty()).then(|| DISTURBED.advise(false, text(), &[("figures_count", names.len() as f64)]))
}

const IS_WORSE: Rule = Rule {
    id: "B5",
    title: "The box is worse than its passport says",
    changes_figures: false,
    fires_when: || {
        "The rounds of a figure are apart from the passport's (Mann-Whitney's U of at most 1), and the second best is behind the \
         passport's middle by more than boxes of one kind differ; always high"
            .to_owned()
    },
    why: "A load that the first box carried may not fit here.",
    what_to_do: "Run the probe of the row on both boxes: its report says what limits it.",
    cannot_judge_when: "What others may have taken of the CPUs or the device, and as much again, explains it, or a side has fewer than four rounds.",
    source: "Six rounds against six are so far apart by chance in 2 of 924 orders.",
};

fn is_worse(_: &Record, info: &PassportInfo) -> Option<Advice> {
    let rows: Vec<String> = of(info, WORSE).map(told).collect();
    (!rows.is_empty())
        .then(|| IS_WORSE.advise(true, format!("{}.", rows.join("; ")), &[("figures_worse_count", rows.len() as f64)]))
}

const CHANGED: Rule = Rule {
    id: "B6",
    title: "The box is not set up as its passport says",
    changes_figures: false,
    fires_when: || {
        "A fact of the kernel differs from the passport's; high where a figure is worse or cannot be told".to_owned()
    },
    why: "A setting explains many a difference.",
    what_to_do: "Set it as it was where it matters.",
    cannot_judge_when: "The kernel does not tell a fact on one of the boxes: then it is left out.",
    source: "Decided here.",
};

fn changed(_: &Record, info: &PassportInfo) -> Option<Advice> {
    let rows: Vec<String> =
        info.changed.iter().map(|row| format!("{} was \"{}\" and is \"{}\"", row.fact, row.was, row.is)).collect();
    // What changed may be why something else did.
    let is_high = info.rows.iter().any(|row| [WORSE, UNKNOWN].contains(&row.verdict.as_str()));
    (!rows.is_empty()).then(|| {
        CHANGED.advise(is_high, format!("{}.", rows.join("; ")), &[("facts_changed_count", rows.len() as f64)])
    })
}

fn of<'a>(info: &'a PassportInfo, verdict: &'a str) -> impl Iterator<Item = &'a PassportRow> {
    info.rows.iter().filter(move |row| row.verdict == verdict)
}

/// `reads_per_s: 2,004 here, 48,200 in the passport (0.04 x)`.
fn told(row: &PassportRow) -> String {
    let (here, there) = (row.here_value.value(), row.passport_value.value());
    let ratio = here.zip(there).filter(|(_, there)| *there > 0.0);
    let ratio = ratio.map_or_else(String::new, |(here, there)| format!(" ({} x)", fixed(here / there, 2)));
    let number = |figure: &Figure| figure.value().map_or_else(|| "n/a".to_owned(), |value| six(three_digits(value)));
    format!("{}: {} here, {} in the passport{ratio}", row.what, number(&row.here_value), number(&row.passport_value))
}

/// What a person reads of a figure that varies by some percent.
fn three_digits(value: f64) -> f64 {
    let unit = 10_f64.powf(value.abs().max(f64::MIN_POSITIVE).log10().floor() - 2.0);
    (value / unit).round() * unit
}

fn verdict(record: &Record, info: &PassportInfo) -> String {
    let count = |verdict: &str| of(info, verdict).count() as u64;
    if info.passport.is_empty() {
        let is_whole = record.run.verdict == "complete";
        return if is_whole { "made".to_owned() } else { "not made, for it was stopped".to_owned() };
    }
    match (count(WORSE), count(UNKNOWN)) {
        (0, 0) if info.rounds_count == 0 => "n/a".to_owned(),
        (0, 0) => "accepted, nothing is worse than the passport beyond the noise".to_owned(),
        (0, unknown) => format!("not judged, {} cannot be told", many(unknown, "figure")),
        (worse, _) => format!("not accepted, {} worse than in the passport", many(worse, "figure")),
    }
}

/// The first things to know.
pub(super) fn headline(record: &Record, info: &PassportInfo) -> Headline {
    let peer = if info.peer == "none" { String::new() } else { format!(" and to {}", info.peer) };
    let tested = if info.passport.is_empty() {
        format!("What this box does, on {}{peer}, in {}.", info.path, many(info.rounds_count, "round"))
    } else {
        format!(
            "This box, on {}{peer}, in {} against {}, made on {} on {}.",
            info.path,
            many(info.rounds_count, "round"),
            info.passport,
            info.passport_host,
            info.passport_made.get(..10).unwrap_or(&info.passport_made)
        )
    };
    // What is worse comes first; of a passport itself the storage.
    let order = |row: &&PassportRow| [WORSE, UNKNOWN, BETTER].iter().position(|of| *of == row.verdict).unwrap_or(3);
    let mut rows: Vec<&PassportRow> = info.rows.iter().collect();
    rows.sort_by_key(order);
    Headline {
        verdict: verdict(record, info),
        tested,
        rows: rows.into_iter().take(SHOWN).enumerate().map(|(at, row)| line(at, row)).collect(),
        steadiness: "n/a (rounds of short tests; the table shows their range)".to_owned(),
        limit: limit(info),
        next: next(info),
        rerun_command: rerun_command(record),
        ..Headline::default()
    }
}

/// Lines of figures on the first screen.
const SHOWN: usize = 8;

fn line(at: usize, row: &PassportRow) -> HeadlineLine {
    let there = match row.passport_value.value() {
        Some(value) => format!("{}, in the passport {}: {}", row.unit, six(three_digits(value)), row.verdict),
        None => row.unit.clone(),
    };
    let value =
        row.here_value.value().map_or_else(|| row.here_value.clone(), |value| Figure::decimal(three_digits(value)));
    HeadlineLine::told(if at == 0 { "Figures" } else { "" }, vec![HeadlineFigure::new(&value, &there)])
}

fn limit(info: &PassportInfo) -> Limit {
    match of(info, WORSE).next() {
        Some(row) => Limit::new(format!("{}, the first figure that is worse", row.what), format!("{}.", told(row))),
        None => Limit::unknown("short rounds show what a box does, not what limits it"),
    }
}

fn next(info: &PassportInfo) -> Vec<Next> {
    let place = shell_word(&info.path);
    if info.passport.is_empty() {
        return vec![Next::new(
            format!("assay accept passport.json {place}"),
            "on another box, or here another day, with the file that --file named",
        )];
    }
    vec![Next::new(format!("assay platform {place}"), "says what a database needs and what limits this box")]
}

/// The whole report.
pub(super) fn render(record: &Record, info: &PassportInfo) -> Sections {
    let mut page = Sections::default();
    let title = if info.passport.is_empty() { "PASSPORT" } else { "ACCEPTANCE" };
    common::opening(&mut page, record, title, &info.path);
    common::warnings(&mut page, record);
    common::advice(&mut page, record);
    page.table_of("Figures", FIGURES, &info.rows, "no round has ended");
    page.table_of(
        "Facts That Changed",
        "What the kernel tells here and told when the passport was made.",
        &info.changed,
        "none",
    );
    common::facts(&mut page, "Host", &record.host.facts);
    page
}

const FIGURES: &str = "Middle, least and most of the rounds. A figure is worse where the rounds of both sides are apart and even the \
                       second best here is behind the passport's middle by more than the percentage under Told from.";
