//! How far a record can be trusted: its verdict, its checks, its warnings, and what others did to its host.

use super::{Class, Said};
use assay_measure::cpu;
use assay_measure::identity::{violated, violated_exact};
use assay_measure::record::{Record, Truth};
use assay_measure::units::{fixed, shorten, thousands};

/// The title of the line.
pub(crate) const TITLE: &str = "Trust";
/// A shorter window says what the platform can do, not what it does all day, s.
const SHORT_S: f64 = 300.0;
/// Most columns of a reason or a warning.
const LONG: usize = 200;

/// `is_unsteady`: the line above says so.
pub(super) fn of(records: &[&Record], is_unsteady: bool) -> Said {
    let class = records.iter().map(|record| class(record)).max_by_key(|class| *class as u8);
    let class = class.unwrap_or_default();
    // Where nothing else speaks against them, this does.
    let is_alone = is_unsteady && class == Class::Good;
    let class = if is_alone { Class::Doubtful } else { class };
    let word = match class {
        Class::Bad => "do not use these figures",
        Class::Doubtful => "with care",
        Class::Good => "good",
        Class::Plain if records.iter().any(|record| is_consistent(record)) => "consistent",
        Class::Plain => "not judged",
    };
    let mut parts = vec![format!("{word}: {}", checks(records))];
    let mut unfinished = records.iter().filter(|record| !is_finished(record));
    if let Some(record) = unfinished.next() {
        let why = record.run.verdict_reasons.first();
        let why = why.map_or_else(String::new, |why| format!(" ({})", shorten(why, LONG)));
        parts.insert(0, format!("{word}: the run is {}{why}.", record.run.verdict));
        parts[1] = capitalised(&checks(records));
    }
    if is_alone {
        parts.push("The figures were not steady.".to_owned());
    }
    if let Some(others) = records.iter().find_map(|record| cpu::disturbed(record)) {
        parts.push(format!("{}.", capitalised(&others)));
    }
    parts.extend(warnings(records));
    parts.extend(length(records));
    Said::new(TITLE, parts.join(" ")).of_class(class)
}

fn is_finished(record: &Record) -> bool {
    ["complete", "imported"].contains(&record.run.verdict.as_str())
}

/// How far one record can be trusted.
fn class(record: &Record) -> Class {
    let is_doubtful = !is_finished(record)
        || !violated(record).is_empty()
        || record.doubts().next().is_some()
        || cpu::disturbed(record).is_some();
    match () {
        () if record.run.verdict == "invalid" || !violated_exact(record).is_empty() => Class::Bad,
        () if is_doubtful => Class::Doubtful,
        () if record.import.is_some() || record.integrity.is_empty() => Class::Plain,
        () => Class::Good,
    }
}

/// Whether an import agrees with itself, as far as it prints the same thing twice.
fn is_consistent(record: &Record) -> bool {
    record.import.is_some() && !record.integrity.is_empty()
}

/// The identities, as a clause that may stand behind a colon.
fn checks(records: &[&Record]) -> String {
    let count = |wanted: Truth| {
        let all = records.iter().flat_map(|record| &record.integrity);
        all.filter(|identity| identity.ok == wanted).count()
    };
    let (held, broken) = (count(Truth::Holds), count(Truth::Violated));
    let first = records.iter().flat_map(|record| violated(record)).next();
    match (held + broken, first) {
        (0, _) => "its figures could not be checked against each other.".to_owned(),
        (all, None) if records.iter().any(|record| record.import.is_some()) => format!(
            "{} of printed figures against each other hold{}. assay could not check figures that no other figure \
             depends on, nor whether the source measured correctly.",
            if all == 1 { "the only check".to_owned() } else { format!("all {} checks", thousands(all as u64)) },
            if all == 1 { "s" } else { "" },
        ),
        (all, None) => format!("all {all} checks of its figures against each other hold."),
        (all, Some(identity)) => format!(
            "{broken} of {all} checks of its figures against each other fail, first {} ({}).",
            identity.id,
            shorten(&identity.rule, 80)
        ),
    }
}

/// The first sentence of the first warning, and how many there are.
fn warnings(records: &[&Record]) -> Option<String> {
    let all = || records.iter().flat_map(|record| record.doubts());
    let (_, first) = all().next()?;
    let first = first.split_once(". ").map_or(first, |(first, _)| first);
    let first = clause(first.trim_end_matches('.'), LONG);
    Some(match all().count() {
        1 => format!("Warning: {first}."),
        many => format!("{many} warnings, the first: {first}."),
    })
}

/// What of a text is at most `most` characters, up to the end of a sentence, else of a clause.
pub(crate) fn clause(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let last = |ends: &[&str]| {
        let ends = ends.iter().flat_map(|end| text.match_indices(*end));
        let fits = ends.filter(|(at, _)| text[..*at].chars().count() < most);
        fits.map(|(at, _)| at).max()
    };
    match last(&[". "]).or_else(|| last(&[", ", "; ", ": "])) {
        Some(at) => closed(&text[..at]).to_owned(),
        None => shorten(text, most),
    }
}

/// A text without the remark that its end would leave open.
fn closed(text: &str) -> &str {
    match text.rfind(" (") {
        Some(at) if !text[at..].contains(')') => &text[..at],
        _ => text,
    }
}

/// What one run, or a short one, cannot say.
fn length(records: &[&Record]) -> Option<String> {
    let [record] = records else {
        return None;
    };
    if record.import.is_some() {
        return None;
    }
    let seconds = record.interval.elapsed_s.value().filter(|s| *s < SHORT_S);
    Some(seconds.map_or_else(
        || "This is one run: the variation between runs is not known.".to_owned(),
        |seconds| {
            format!(
                "One run of {} s shows what the platform can do. It shows neither a whole day nor the variation \
                 between runs.",
                fixed(seconds, 0)
            )
        },
    ))
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}", first.to_uppercase(), letters.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_ends_with_a_sentence_or_a_clause_and_leaves_no_bracket_open() {
        let long = "It grew, and grew and grew (many, few, none of them)";
        assert_eq!(clause(long, 35), "It grew, and grew and grew");
        assert_eq!(clause("It is short, (really)", 35), "It is short, (really)");
        let wait = "The longest took 50,367 us; 374 times the average. The rest is long.";
        assert_eq!(clause(wait, 40), "The longest took 50,367 us");
        assert_eq!(clause(wait, 60), "The longest took 50,367 us; 374 times the average");
    }
}
