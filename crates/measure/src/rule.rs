//! A rule that findings come from: what it is documented with, wherever it judges.

use crate::record::{Advice, Figure, Record};
use std::fmt::Display;

/// A rule of advice. Its headings are the page `docs/reference/findings.md` and what `assay explain` prints.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// `R14`, unique among all kinds.
    pub id: &'static str,
    /// What a finding says, in a few words.
    pub title: &'static str,
    /// Whether a finding says that figures mean something else than they seem to: then it is a warning.
    pub changes_figures: bool,
    /// The condition with its thresholds, and when the finding is high; from the constants that the rule judges by.
    pub fires_when: fn() -> String,
    /// Why the reader should care.
    pub why: &'static str,
    /// The way out.
    pub what_to_do: &'static str,
    /// What has to be known; a rule whose subject did not occur is silent.
    pub cannot_judge_when: &'static str,
    /// Where the threshold comes from.
    pub source: &'static str,
}

/// Rules of a kind of record with what judges by each, in the order in which findings are read.
pub type Judges<I> = [(Rule, fn(&Record, &I) -> Option<Advice>)];

impl Rule {
    /// The rules of a list that pairs each with what judges by it.
    #[must_use]
    pub fn all<J>(judged: &[(Self, J)]) -> Vec<Self> {
        judged.iter().map(|(rule, _)| *rule).collect()
    }

    /// A finding with its numbers, whose way out depends on them or that needs none: the text has all that is said.
    #[must_use]
    pub fn finding(&self, high: bool, text: String, evidence: &[(&str, f64)]) -> Advice {
        let evidence = evidence.iter().map(|(name, value)| (*name, Figure::decimal(*value)));
        self.of_figures(high, text, evidence)
    }

    /// A finding that ends with the way out.
    #[must_use]
    pub fn advise(&self, high: bool, text: impl Display, evidence: &[(&str, f64)]) -> Advice {
        self.finding(high, format!("{text} {}", self.what_to_do), evidence)
    }

    /// A finding that goes on with why the reader should care and ends with the way out.
    #[must_use]
    pub fn explain(&self, high: bool, text: impl Display, evidence: &[(&str, f64)]) -> Advice {
        self.advise(high, format!("{text} {}", self.why), evidence)
    }

    /// A finding with figures, of which some may be n/a.
    #[must_use]
    pub fn of_figures<'a>(
        &self,
        high: bool,
        text: String,
        evidence: impl IntoIterator<Item = (&'a str, Figure)>,
    ) -> Advice {
        Advice {
            id: self.id.to_owned(),
            severity: if high { "high" } else { "note" }.to_owned(),
            changes_figures: self.changes_figures,
            text,
            evidence: evidence.into_iter().map(|(name, figure)| (name.to_owned(), figure)).collect(),
        }
    }

    /// The headings with their texts, in order.
    #[must_use]
    pub fn headings(&self) -> [(&'static str, String); 5] {
        [
            ("Fires when", (self.fires_when)() + "."),
            ("Why", self.why.to_owned()),
            ("What to do", self.what_to_do.to_owned()),
            ("Cannot judge when", self.cannot_judge_when.to_owned()),
            ("Source", self.source.to_owned()),
        ]
    }
}
