//! Kinds whose records contain everything in their own part.

use super::{Check, Delivered, Finding, Headline, Kind, attach_metrics};
use crate::chart::Drawn;
use crate::record::{Advice, Metric, Part, Record};
use crate::rule::{Judges, Rule};
use crate::section::Sections;

/// What must be equal for two records to be of the same test: what it is, how it was, and what follows where it differs. An empty value
/// is not known.
pub type TestConditions = Vec<(&'static str, String, Finding)>;

/// A kind that reports its part of a record and needs no other parts: one constant, which is a [`Kind`]. Records of another
/// tool's output have no such part; the kind of their import reports them.
#[derive(Debug)]
pub struct OwnKind<I: 'static> {
    /// THE list of its figures.
    pub metrics: fn(&I) -> Vec<Metric>,
    /// Its tables, pairs and sentences.
    pub sections: fn(&Record, &I) -> Sections,
    /// The answer.
    pub headline: fn(&Record, &I) -> Headline,
    /// Its charts, in order.
    pub charts: fn(&I) -> Vec<Drawn>,
    /// Its rules that judge a record and this part.
    pub judges: &'static Judges<I>,
    /// Its other rules.
    pub rules: fn() -> Vec<Rule>,
    /// Of its test.
    pub conditions: fn(&I) -> TestConditions,
    /// As [`Kind::members`].
    pub members: fn(&I) -> Vec<String>,
    /// As [`Kind::delivered`].
    pub delivered: fn(&Record, &I) -> Delivered,
    /// As [`Kind::in_words_of_tool`].
    pub in_words_of_tool: fn(&I) -> Option<String>,
    /// As [`Kind::in_json_of_tool`].
    pub in_json_of_tool: fn(&I) -> Option<String>,
}

impl<I> OwnKind<I> {
    /// One without charts, conditions and a tool that it stands in for.
    #[must_use]
    pub const fn new(
        metrics: fn(&I) -> Vec<Metric>,
        sections: fn(&Record, &I) -> Sections,
        headline: fn(&Record, &I) -> Headline,
    ) -> Self {
        Self {
            metrics,
            sections,
            headline,
            charts: |_| Vec::new(),
            judges: &[],
            rules: Vec::new,
            conditions: |_| Vec::new(),
            members: |_| Vec::new(),
            delivered: |record, _| Delivered::sustained(record),
            in_words_of_tool: |_| None,
            in_json_of_tool: |_| None,
        }
    }
}

impl<I: Part + Default> OwnKind<I> {
    /// A record with this part, what follows from it, and its figures: the last that is done to a new record.
    #[must_use]
    pub fn complete(&self, mut record: Record, info: &I) -> Record {
        let found: Vec<Advice> = self.judges.iter().filter_map(|(_, judge)| judge(&record, info)).collect();
        record.advice.extend(found);
        record.parts.put(info);
        attach_metrics(self, &mut record);
        record
    }
}

fn part<I: Part + Default>(record: &Record) -> I {
    record.parts.get().unwrap_or_default()
}

impl<I: Part + Default> Kind for OwnKind<I> {
    fn name(&self) -> &'static str {
        I::NAME
    }

    fn tells(&self, record: &Record) -> bool {
        record.import.is_none()
    }

    fn rules(&self) -> Vec<Rule> {
        [Rule::all(self.judges), (self.rules)()].concat()
    }

    fn metrics(&self, record: &Record) -> Vec<Metric> {
        (self.metrics)(&part(record))
    }

    fn sections(&self, record: &Record) -> Sections {
        (self.sections)(record, &part(record))
    }

    fn charts(&self, record: &Record, draw: &mut dyn FnMut(Drawn)) {
        (self.charts)(&part(record)).into_iter().for_each(draw);
    }

    fn headline(&self, record: &Record) -> Headline {
        (self.headline)(record, &part(record))
    }

    fn delivered(&self, record: &Record) -> Delivered {
        (self.delivered)(record, &part(record))
    }

    fn members(&self, record: &Record) -> Vec<String> {
        (self.members)(&part(record))
    }

    fn in_words_of_tool(&self, record: &Record) -> Option<String> {
        let info: I = part(record);
        (self.in_words_of_tool)(&info).or_else(|| (self.headline)(record, &info).in_words())
    }

    fn in_json_of_tool(&self, record: &Record) -> Option<String> {
        (self.in_json_of_tool)(&part(record))
    }

    fn conditions(&self, baseline: &Record, candidate: &Record) -> Vec<Check> {
        let of = |record: &Record| record.parts.get().map(|info| (self.conditions)(&info));
        // Nothing is known of a record without the part.
        let (a, b) = (of(baseline), of(candidate));
        let names = a.clone().or_else(|| b.clone()).unwrap_or_default();
        let value = |all: &Option<Vec<(&str, String, Finding)>>, at: usize| {
            let known = all.as_ref().and_then(|all| all.get(at));
            known.map(|(_, value, _)| value.clone()).unwrap_or_default()
        };
        let check = |(at, (what, _, otherwise)): (usize, (&str, String, Finding))| {
            Check::text(what, &value(&a, at), &value(&b, at), otherwise)
        };
        names.into_iter().enumerate().map(check).collect()
    }

    fn readable(&self, record: &Record) -> Result<(), serde_json::Error> {
        record.parts.require::<I>()
    }
}
