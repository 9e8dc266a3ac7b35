//! The answer of a comparison: the verdict in words, the declared figures of all sides, what limits and what is found on
//! each, how far to trust it.

use super::model::{Against, ComparedRow, Comparison, DifferenceVerdict, Finding, GroupInfo, Pair};
use super::sections::runs_of;
use super::verdict::{self, percent, ratio_text};
use crate::answer::{Answer, Class, Said, Screen, TRUST, clause};
use assay_measure::plain::shell_word;
use assay_measure::units::{readable, short};

/// Most declared figures with a line of their own.
const FIGURES: usize = 6;
/// Most findings.
const FINDINGS: usize = 3;
/// Most columns of a sentence of the whole comparison.
const LONG: usize = 170;
/// A ratio of at least so much is told as a factor, a smaller one in percent.
const TIMES: f64 = 2.0;
/// A smaller change is none, %.
const EQUAL_PCT: f64 = 0.05;

/// The answer of a comparison.
#[must_use]
pub fn answer(comparison: &Comparison, screen: Screen) -> Answer {
    let mut verdicts = (0..comparison.pairs.len()).map(|at| verdict(comparison, at));
    let first = verdicts.next().unwrap_or_default();
    let mut said: Vec<Said> = verdicts.map(|text| Said::new("Verdict", text)).collect();
    for (group, (_, told)) in comparison.groups.iter().map(|group| (group, runs_of(group))) {
        said.push(Said::new("Sides", format!("{}: {told}.", group.letter)));
    }
    said.extend(figures(comparison));
    for pair in &comparison.pairs {
        said.extend(conditions(pair));
    }
    said.extend(limits(comparison));
    said.extend(findings(comparison));
    said.push(trust(comparison));
    said.push(next(comparison));
    tell_titles_once(&mut said);
    Answer { first, said, screen, ..Answer::default() }
}

/// A line that goes on with the subject of the one above has no title.
fn tell_titles_once(said: &mut [Said]) {
    let mut above = "";
    for line in said {
        if line.title == above { line.title = "" } else { above = line.title }
    }
}

/// The figure that is told first: the first declared one that both sides have.
fn main_figure(comparison: &Comparison, at: usize) -> Option<(&ComparedRow, &Against)> {
    let known = declared(comparison).filter_map(|row| Some((row, row.against.get(at)?)));
    let mut known = known.filter(|(_, against)| against.ratio.value().is_some_and(|ratio| ratio > 0.0));
    known.next()
}

fn declared(comparison: &Comparison) -> impl Iterator<Item = &ComparedRow> {
    comparison.rows.iter().filter(|row| row.is_primary)
}

/// `B is 10.6 x faster than A: ...`, and why that is not judged, where it is not.
fn verdict(comparison: &Comparison, at: usize) -> String {
    let pair = &comparison.pairs[at];
    let (a, b) = (&pair.baseline, &pair.candidate);
    if !pair.shared_runs.is_empty() {
        return verdict::shared(comparison, at, pair);
    }
    let Some((row, against)) = main_figure(comparison, at) else {
        let why = if pair.forbids_faster { " did not run the same test, and they" } else { "" };
        return format!("{b} and {a}{why} have no declared figure in common, so there is no verdict.");
    };
    let ratio = against.ratio.value().unwrap_or(1.0);
    let figures = format!("{} {}", row.name, values(row, &[0, at + 1], " and "));
    let words = difference(row, ratio);
    let interval = match (against.low_ratio.value(), against.high_ratio.value()) {
        (Some(low), Some(high)) => format!(", 95 % interval of the ratio {} to {}", ratio_text(low), ratio_text(high)),
        _ => String::new(),
    };
    let told = format!("({figures}{interval})");
    let is_equal = 100.0 * (ratio - 1.0).abs() < EQUAL_PCT;
    if pair.forbids_faster {
        return format!(
            "{b} and {a} did not run the same test, so assay calls neither side faster: {figures}, a ratio of {}.",
            ratio_text(ratio)
        );
    }
    match against.verdict {
        _ if is_equal => format!("{b} and {a} are within {EQUAL_PCT} % of each other {told}."),
        verdict if verdict.is_shown() => format!("{b} is {words} than {a} {told}."),
        DifferenceVerdict::NoDifference => format!("No difference is shown between {b} and {a} {told}."),
        DifferenceVerdict::NotMeasurable if pair.disturbances.is_empty() => {
            format!(
                "{b} is {words} than {a}; not judged, because noise can mask or mimic a change of this size {told}."
            )
        }
        DifferenceVerdict::NotMeasurable => {
            format!(
                "{b} is {words} than {a}; not judged, because noise and other work on the hosts can cause that {told}."
            )
        }
        _ => {
            let why = against.p.reason().unwrap_or("its noise is not known");
            format!("{b} is {words} than {a}; not judged, because {why} {told}.")
        }
    }
}

/// `10.6 x faster`, `4.1 % slower`; of what has no better side `higher` and `lower`.
fn difference(row: &ComparedRow, ratio: f64) -> String {
    let is_time = ["ns", "us", "ms", "s"].contains(&row.unit.as_str());
    let speed = if row.better == "lower" { 1.0 / ratio } else { ratio };
    let is_up = speed > 1.0;
    let word = match (row.better.as_str(), is_up) {
        ("higher", true) if row.unit.ends_with("/s") => "faster",
        ("higher", false) if row.unit.ends_with("/s") => "slower",
        ("lower", true) if is_time => "faster",
        ("lower", false) if is_time => "slower",
        ("neither", _) if ratio > 1.0 => "higher",
        ("neither", _) => "lower",
        (_, true) => "better",
        (_, false) => "worse",
    };
    let factor = if is_up { speed } else { 1.0 / speed };
    if factor >= TIMES {
        return format!("{} x {word}", short_factor(factor));
    }
    // A time is compared as it is, so that the sentence agrees with the ratio.
    let change = 100.0 * (ratio - 1.0).abs();
    match (row.better.as_str(), is_up) {
        ("lower", true) => format!("{word} (takes {} % less)", percent(change)),
        ("lower", false) => format!("{word} (takes {} % more)", percent(change)),
        _ => format!("{} % {word}", percent(change)),
    }
}

fn short_factor(factor: f64) -> String {
    if factor < 10_000.0 { assay_measure::units::significant(factor, 3) } else { short(factor) }
}

/// The values of these groups in one unit, behind each other: `4,935 and 52,310 1/s`.
fn values(row: &ComparedRow, groups: &[usize], glue: &str) -> String {
    let of = |at: &usize| row.cells.get(*at).and_then(|cell| cell.value.value());
    let most = groups.iter().filter_map(of).fold(0.0, f64::max);
    let (factor, unit) = readable(most, &row.unit);
    let told = groups.iter().map(|at| match of(at) {
        None => "n/a".to_owned(),
        Some(0.0) => "0".to_owned(),
        Some(value) => short(value / factor),
    });
    let told = told.collect::<Vec<_>>().join(glue);
    match unit.strip_prefix('1').filter(|per| per.starts_with('/')) {
        Some(per) => format!("{told}{per}"),
        None => format!("{told} {unit}"),
    }
}

/// The declared figures, those with a shown difference first.
fn figures(comparison: &Comparison) -> Vec<Said> {
    let is_compared = |row: &&ComparedRow| row.against.iter().any(|against| against.ratio.value().is_some());
    let mut rows: Vec<&ComparedRow> = declared(comparison).filter(is_compared).collect();
    let what = if rows.is_empty() { "figures" } else { "declared figures" };
    // Where no declared figure is on both sides, the others are what there is to see.
    if rows.is_empty() {
        rows = comparison.rows.iter().filter(|row| row.section != "host").filter(is_compared).collect();
    }
    let groups: Vec<usize> = (0..comparison.groups.len()).collect();
    let rest = rows.len().saturating_sub(FIGURES);
    rows.sort_by_key(|row| !row.against.iter().any(|against| against.verdict.is_shown()));
    let mut said: Vec<Said> = rows
        .iter()
        .take(FIGURES)
        .map(|row| {
            let ratios = row.against.iter().map(|against| match against.ratio.value() {
                Some(ratio) => format!("{} x, {}", ratio_text(ratio), word(against.verdict)),
                None => format!("n/a ({})", against.ratio.reason().unwrap_or("absent")),
            });
            let ratios: Vec<String> = ratios.collect();
            Said::new("Figures", format!("{}: {}; {}", row.name, values(row, &groups, " and "), ratios.join(" and ")))
        })
        .collect();
    if rest > 0 {
        said.push(Said::new("Figures", format!("and {rest} more {what} in the whole comparison")));
    }
    said
}

/// A verdict as words of a line.
fn word(verdict: DifferenceVerdict) -> &'static str {
    match verdict {
        DifferenceVerdict::NoDifference => "no difference shown",
        DifferenceVerdict::NotMeasurable | DifferenceVerdict::TooShort | DifferenceVerdict::OneValue => "not judged",
        shown => shown.word(),
    }
}

/// What was not alike, on purpose or not.
fn conditions(pair: &Pair) -> Vec<Said> {
    if !pair.shared_runs.is_empty() {
        return Vec::new();
    }
    let line = |text: String, class| Said { class, ..Said::new("Conditions", text) };
    let mut said = Vec::new();
    said.extend(unlike(pair, Finding::Varied).map(|what| line(format!("Varied on purpose: {what}."), Class::Plain)));
    said.extend(unlike(pair, Finding::Forbids).map(|what| {
        line(format!("Not the same test: {what}; what you varied on purpose, name with --allow."), Class::Doubtful)
    }));
    said.extend(verdict::hosts(pair).map(|text| line(clause(&text, LONG), Class::Plain)));
    let lost = pair.disturbances.iter().map(|found| format!("{} by up to {} %", found.group, percent(found.lost_pct)));
    let lost: Vec<String> = lost.collect();
    if !lost.is_empty() {
        said.push(line(format!("Other work on the hosts may have slowed {}.", lost.join(" and ")), Class::Doubtful));
    }
    if said.is_empty() {
        let same = pair.checks.iter().filter(|check| check.finding == Finding::Same).count();
        let unknown = pair.checks.iter().filter(|check| check.finding == Finding::Unknown).count();
        let unknown = if unknown > 0 { format!("; {unknown} are not known") } else { String::new() };
        said.push(line(format!("Comparable: {same} conditions are the same{unknown}."), Class::Plain));
    }
    said
}

/// The first conditions with this finding, and how many more there are.
fn unlike(pair: &Pair, finding: Finding) -> Option<String> {
    const FIRST: usize = 2;
    let found: Vec<_> = pair.checks.iter().filter(|check| check.finding == finding).collect();
    let told = found.iter().take(FIRST);
    let mut told: Vec<String> =
        told.map(|check| format!("{} {} and {}", check.what, check.baseline, check.candidate)).collect();
    if found.len() > FIRST {
        told.push(format!("and {} more", found.len() - FIRST));
    }
    (!told.is_empty()).then(|| told.join("; "))
}

/// What limits each side, and whether that is the same.
fn limits(comparison: &Comparison) -> Vec<Said> {
    let of = |group: &GroupInfo| match group.limited_by.as_str() {
        "" => "not known".to_owned(),
        what => what.to_owned(),
    };
    let told: Vec<String> = comparison.groups.iter().map(of).collect();
    let is_one = told.windows(2).all(|pair| pair[0] == pair[1]);
    let text = match (is_one, told.first()) {
        (true, Some(one)) => format!("all sides: {one}."),
        _ => {
            let each = comparison.groups.iter().zip(&told).map(|(group, what)| format!("{}: {what}", group.letter));
            format!("{}.", each.collect::<Vec<_>>().join(". "))
        }
    };
    vec![Said::new("Limited by", text)]
}

/// What rules find in the sides taken together, then on one side alone, then on several.
fn findings(comparison: &Comparison) -> Vec<Said> {
    let of_all = comparison.advice.iter().map(|found| (false, String::new(), found));
    let of_sides =
        verdict::findings(comparison).into_iter().map(|(sides, found)| (sides.len() > 1, sides.join(" and "), found));
    let mut all: Vec<_> = of_all.chain(of_sides).collect();
    all.sort_by_key(|(is_shared, _, found)| (found.severity != "high", *is_shared));
    let rest = all.len().saturating_sub(FINDINGS);
    let mut said: Vec<Said> = all
        .iter()
        .take(FINDINGS)
        .map(|(_, sides, found)| {
            let lead = if sides.is_empty() { found.id.clone() } else { format!("{sides}, {}", found.id) };
            Said::new("Finding", format!("{lead}: {}.", clause(&found.text, LONG).trim_end_matches('.')))
        })
        .collect();
    if rest > 0 {
        said.push(Said::new("Finding", format!("and {rest} more in the whole comparison")));
    }
    said
}

/// What speaks against the figures of a side, and what the verdicts rest on.
fn trust(comparison: &Comparison) -> Said {
    let is_doubtful =
        !comparison.integrity.is_empty() || comparison.pairs.iter().any(|pair| !pair.disturbances.is_empty());
    let (class, word) = match comparison.pairs.iter().all(|pair| pair.method == "repeats") {
        _ if is_doubtful => (Class::Doubtful, "with care"),
        true => (Class::Good, "good"),
        false => (Class::Plain, "single runs"),
    };
    let mut parts = Vec::new();
    for doubt in comparison.integrity.iter().take(2) {
        parts.push(format!("{} {}: {}.", doubt.group, doubt.run, clause(&doubt.text, LONG).trim_end_matches('.')));
    }
    if parts.is_empty() {
        parts.push("every run is complete, and no run violates an identity.".to_owned());
    }
    let mut methods: Vec<&str> = comparison.pairs.iter().filter_map(method).collect();
    methods.dedup();
    parts.extend(methods.iter().map(|method| format!("Judged by {method}.")));
    Said { class, ..Said::new(TRUST, format!("{word}: {}", parts.join(" "))) }
}

/// What a pair's verdicts rest on; the whole comparison has the statistics.
fn method(pair: &Pair) -> Option<&'static str> {
    match pair.method.as_str() {
        _ if !pair.shared_runs.is_empty() => None,
        "repeats" => Some("the variation between repeats"),
        "within-run" => Some(
            "the seconds within each run; the variation between runs is not known: `assay run --repeat 5` measures it",
        ),
        _ => Some("single values, whose noise is not known"),
    }
}

/// The command that writes everything.
fn next(comparison: &Comparison) -> Said {
    let runs = comparison.groups.iter().map(|group| shell_word(&group.name));
    let command = format!("assay compare {} -o compare.html", runs.collect::<Vec<_>>().join(" "));
    Said { is_command: true, ..Said::new("Next", format!("{command}   # every figure and condition, with charts")) }
}
