//! Measures how many errors are caught: it changes each printed number of each sample, one at a time, by a plausible
//! factor, and imports the changed text. A change counts as caught if the import is refused, an identity fails, or a
//! note names the difference.
//!
//! A figure has a redundant partner if a wild change of it is caught: a figure that no other depends on cannot be
//! checked.

use crate::testing::{changed, info, sample};
use crate::{Source, import};
use assay_measure::identity::violated;
use assay_measure::record::{ImportedValue, Record};
use std::collections::{BTreeMap, BTreeSet};

/// What a slip of a digit or of a unit does.
const PLAUSIBLE: [f64; 2] = [1.4, 0.7];
const WILD: [f64; 2] = [1000.0, 0.001];
/// Figures of one sample that are tried: evenly spread over it.
const TRIED: usize = 24;

fn read(name: &str, text: &str) -> Option<Record> {
    let source = Source { path: name.to_owned(), text: text.to_owned() };
    import(&[source]).ok()
}

/// What stands out in a record: broken identities, and the notes.
fn said(record: &Record) -> BTreeSet<String> {
    let broken = violated(record).into_iter().map(|identity| identity.id.clone());
    let notes = info(record).notes.iter();
    let notes = notes.filter(|note| note.text.contains("assay keeps the first"));
    broken.chain(notes.map(|note| note.text.clone())).collect()
}

/// What became of the changed figures of a tool.
#[derive(Default)]
struct Tally {
    figures: u32,
    partnered: u32,
    plausible: u32,
    caught: u32,
    missed: BTreeSet<String>,
}

impl Tally {
    /// As docs/IMPORT.md shows it, and the keys of what was not caught.
    fn told(&self, tool: &str) -> String {
        let share = 100 * self.caught / self.plausible.max(1);
        let missed: Vec<&str> = self.missed.iter().map(String::as_str).collect();
        format!(
            "| {tool} | {} | {} | {} of {} ({share} %) |\n  {}\n",
            self.figures,
            self.partnered,
            self.caught,
            self.plausible,
            missed.join(", ")
        )
    }
}

fn is_caught(name: &str, text: &str, before: &BTreeSet<String>) -> bool {
    read(name, text).is_none_or(|record| !said(&record).is_subset(before))
}

fn try_sample(name: &str, tallies: &mut BTreeMap<String, Tally>) {
    let text = sample(name);
    let record = read(name, &text).unwrap_or_else(|| panic!("{name} is read"));
    let before = said(&record);
    let info = info(&record);
    let values: Vec<&ImportedValue> =
        (info.values.iter()).filter(|value| value.value.value().is_some_and(|number| number != 0.0)).collect();
    let every = values.len().div_ceil(TRIED).max(1);
    let tally = tallies.entry(info.tool.clone()).or_default();
    for value in values.into_iter().step_by(every) {
        // A clock has no number that can be changed alone.
        if changed(&text, value, 1000.0).is_none() {
            continue;
        }
        let outcome = |factor: f64| changed(&text, value, factor).map(|text| is_caught(name, &text, &before));
        tally.figures += 1;
        if !WILD.into_iter().any(|factor| outcome(factor) == Some(true)) {
            tally.missed.insert(format!("{} (no partner)", value.key));
            continue;
        }
        tally.partnered += 1;
        for caught in PLAUSIBLE.into_iter().filter_map(outcome) {
            tally.plausible += 1;
            tally.caught += u32::from(caught);
            if !caught {
                tally.missed.insert(value.key.clone());
            }
        }
    }
}

/// Every sample but those of instances, whose identities stand in `counters`.
fn samples() -> Vec<String> {
    let place = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/import");
    let entries = std::fs::read_dir(place).expect("the samples");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("a sample").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn of_figures_with_a_partner_most_changes_are_caught() {
    let mut tallies = BTreeMap::new();
    let right = samples().into_iter();
    for name in right.filter(|name| WRONG.iter().all(|(wrong, _)| wrong != name)) {
        try_sample(&name, &mut tallies);
    }
    let mut whole = Tally::default();
    let mut told = String::new();
    for (tool, tally) in &tallies {
        told.push_str(&tally.told(tool));
        whole.figures += tally.figures;
        whole.partnered += tally.partnered;
        whole.plausible += tally.plausible;
        whole.caught += tally.caught;
    }
    told.push_str(&whole.told("all"));
    insta::assert_snapshot!(told);
    assert!(whole.partnered * 10 >= whole.figures * 6);
    assert!(whole.caught * 10 >= whole.plausible * 8);
}

/// Samples that are wrong as published, and why.
const WRONG: [(&str, &str); 1] = [("swingbench-results-table.txt", "I37")];

#[test]
fn no_unchanged_sample_is_flagged_but_the_ones_that_are_wrong() {
    for name in samples() {
        let record = read(&name, &sample(&name)).unwrap_or_else(|| panic!("{name} is read"));
        let broken = violated(&record).into_iter();
        let broken: Vec<String> = broken
            .filter(|identity| !WRONG.contains(&(name.as_str(), identity.id.as_str())))
            .map(|identity| format!("{}: {}: {}", identity.id, identity.rule, identity.sentence))
            .collect();
        assert_eq!(broken, Vec::<String>::new(), "{name}");
    }
}
