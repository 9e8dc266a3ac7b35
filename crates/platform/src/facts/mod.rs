//! What the kernel tells of a box, without measuring: at most twelve facts, each good, a finding, or not to be known.

mod clock_source;
mod cpu_frequency;
mod cpu_quota;
mod device;
mod file_system;
mod huge_pages;
mod interfaces;
mod io_cap;
mod machine;
mod memory_limit;
mod numa;
mod swap;
mod tree;

pub(crate) use cpu_frequency::claimed_mhz;
pub(crate) use tree::Tree;

use crate::info::FactRow;
use assay_measure::record::Figure;
use std::time::Instant;

/// What a fact is found to be.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    /// As a database wants it: the value.
    Good(String),
    /// Worth a change: the value, and what to do.
    Finding(String, &'static str),
    /// It cannot be known here, and why.
    Unknown(&'static str),
}

/// A fact: one entry, in a file of its own.
struct Fact {
    name: &'static str,
    /// Where its verdict comes from.
    source: &'static str,
    look: fn(&Tree) -> Seen,
}

const FACTS: [Fact; 12] = [
    machine::FACT,
    cpu_frequency::FACT,
    cpu_quota::FACT,
    memory_limit::FACT,
    huge_pages::FACT,
    swap::FACT,
    numa::FACT,
    device::FACT,
    file_system::FACT,
    io_cap::FACT,
    clock_source::FACT,
    interfaces::FACT,
];

/// Looks at a box for a database below `tree`'s place.
pub(crate) fn look(tree: &Tree) -> Vec<FactRow> {
    FACTS.iter().map(|fact| row(fact, tree)).collect()
}

/// As a row says what a fact is.
pub(crate) const GOOD: &str = "good";
pub(crate) const FINDING: &str = "finding";
pub(crate) const UNKNOWN: &str = "cannot know";

fn row(fact: &Fact, tree: &Tree) -> FactRow {
    let begun = Instant::now();
    let seen = (fact.look)(tree);
    let cost_ms = Figure::decimal(begun.elapsed().as_secs_f64() * 1e3);
    let (verdict, value, advice) = match seen {
        Seen::Good(value) => (GOOD, value, ""),
        Seen::Finding(value, advice) => (FINDING, value, advice),
        Seen::Unknown(why) => (UNKNOWN, why.to_owned(), ""),
    };
    FactRow {
        fact: fact.name.to_owned(),
        verdict: verdict.to_owned(),
        value,
        advice: advice.to_owned(),
        source: fact.source.to_owned(),
        cost_ms,
    }
}

/// The word in brackets of a choice: `always [madvise] never`.
fn chosen(choice: &str) -> &str {
    choice.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(choice, |(word, _)| word)
}
