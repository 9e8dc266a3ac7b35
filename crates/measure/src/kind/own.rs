//! Kinds whose records contain everything in their own part.

use super::{Check, Finding, Headline, Kind};
use crate::chart::Drawn;
use crate::record::{Metric, Part, Record};
use crate::rule::Rule;
use crate::section::Sections;

/// A kind that reports its part of a record and needs no other parts: it is thereby a [`Kind`]. Records of another
/// tool's output have no such part; the kind of their import reports them.
pub trait OwnKind: Sync {
    /// What the record keeps of it.
    type Info: Part + Default;

    /// As [`Kind::rules`].
    fn rules() -> Vec<Rule> {
        Vec::new()
    }

    /// THE list of its figures.
    fn metrics(info: &Self::Info) -> Vec<Metric>;

    /// Its tables, pairs and sentences.
    fn sections(record: &Record, info: &Self::Info) -> Sections;

    /// Its charts, in order.
    fn charts(info: &Self::Info) -> Vec<Drawn>;

    /// The answer.
    fn headline(record: &Record, info: &Self::Info) -> Headline;

    /// What must be equal for two records to be of the same test: what it is, how it was, and what follows where it
    /// differs. An empty value is not known.
    fn conditions(_info: &Self::Info) -> Vec<(&'static str, String, Finding)> {
        Vec::new()
    }

    /// As [`Kind::in_words_of_tool`].
    fn in_words_of_tool(_info: &Self::Info) -> Option<String> {
        None
    }

    /// As [`Kind::in_json_of_tool`].
    fn in_json_of_tool(_info: &Self::Info) -> Option<String> {
        None
    }
}

fn part<K: OwnKind>(record: &Record) -> K::Info {
    record.parts.get().unwrap_or_default()
}

impl<K: OwnKind> Kind for K {
    fn name(&self) -> &'static str {
        K::Info::NAME
    }

    fn tells(&self, record: &Record) -> bool {
        record.import.is_none()
    }

    fn rules(&self) -> Vec<Rule> {
        K::rules()
    }

    fn metrics(&self, record: &Record) -> Vec<Metric> {
        K::metrics(&part::<K>(record))
    }

    fn sections(&self, record: &Record) -> Sections {
        K::sections(record, &part::<K>(record))
    }

    fn charts(&self, record: &Record, draw: &mut dyn FnMut(Drawn)) {
        K::charts(&part::<K>(record)).into_iter().for_each(draw);
    }

    fn headline(&self, record: &Record) -> Headline {
        K::headline(record, &part::<K>(record))
    }

    fn in_words_of_tool(&self, record: &Record) -> Option<String> {
        let info = part::<K>(record);
        K::in_words_of_tool(&info).or_else(|| K::headline(record, &info).in_words())
    }

    fn in_json_of_tool(&self, record: &Record) -> Option<String> {
        K::in_json_of_tool(&part::<K>(record))
    }

    fn conditions(&self, baseline: &Record, candidate: &Record) -> Vec<Check> {
        let of = |record: &Record| record.parts.get().map(|info| K::conditions(&info));
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
        record.parts.read::<K::Info>().map(drop)
    }
}
