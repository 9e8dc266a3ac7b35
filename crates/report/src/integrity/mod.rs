//! The identities of awr-statistics 2.3, evaluated on every run.
//!
//! Exact ones are taken from the gate to the end of the drain, where every thread
//! is quiet; the others on the measured window with the allowance their rule
//! states. What was not counted is n/a with its reason, never "holds".

mod counters;
mod host;
mod imported;
mod imported_counters;
mod imported_tools;
mod server;
mod times;

#[cfg(test)]
mod tests;

pub use imported::imported;

use crate::record::{Deltas, Rises, Span};
use assay_measure::record::{Figure, Identity, Record, Truth};
use assay_measure::stats::Stat;
use assay_measure::units::fixed;

/// One side of an identity, or the reason it is unknown.
pub(crate) type Side = Result<f64, String>;

/// How the sides must relate.
#[derive(Clone, Copy)]
pub(crate) enum Relation {
    Equal,
    AtMost,
}

/// Which interval an identity is taken over.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Scope {
    /// Gate to drained; spans threads, so it needs them quiet at both ends.
    Quiet,
    /// Gate to drained; holds inside every thread, so it always can be judged.
    Whole,
    /// Begin to end.
    Window,
}

/// What is to be judged.
#[derive(Clone, Copy)]
pub(crate) struct Rule {
    id: &'static str,
    text: &'static str,
    scope: Scope,
    exact: bool,
    relation: Relation,
    /// Allowed difference in the sides' unit.
    tolerance: f64,
}

impl Rule {
    /// An equality that may not be off by one.
    pub(crate) fn exact(id: &'static str, scope: Scope, text: &'static str) -> Self {
        Self {
            id,
            text,
            scope,
            exact: true,
            relation: Relation::Equal,
            tolerance: 0.0,
        }
    }

    /// An equality within a tolerance: a violation is reported, but may lie outside assay.
    pub(crate) fn within(
        id: &'static str,
        scope: Scope,
        text: &'static str,
        tolerance: f64,
    ) -> Self {
        Self {
            exact: false,
            tolerance,
            ..Self::exact(id, scope, text)
        }
    }

    pub(crate) fn at_most(self) -> Self {
        Self {
            relation: Relation::AtMost,
            ..self
        }
    }

    /// The same with another allowance.
    pub(crate) fn tolerating(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    /// Compares the sides where the scope of the rule can be judged.
    fn judge(self, deltas: &Deltas<'_>, lhs: Side, rhs: Side) -> Identity {
        if self.scope == Scope::Quiet && !deltas.is_drained() {
            return self.unknown("operations were still in flight");
        }
        self.compare(lhs, rhs)
    }

    /// Compares the sides. Zero against zero was not counted at all: n/a.
    pub(crate) fn compare(self, lhs: Side, rhs: Side) -> Identity {
        let (lhs, rhs) = match (lhs, rhs) {
            (Err(reason), _) | (_, Err(reason)) => return self.unknown(&reason),
            (Ok(lhs), Ok(rhs)) if lhs == 0.0 && rhs == 0.0 => {
                return self.unknown("nothing counted");
            }
            (Ok(lhs), Ok(rhs)) => (lhs, rhs),
        };
        let over = lhs - rhs;
        let holds = match self.relation {
            Relation::Equal => over.abs() <= self.tolerance,
            Relation::AtMost => over <= self.tolerance,
        };
        let sign = match (self.relation, holds) {
            (Relation::Equal, true) if over == 0.0 => "=",
            (Relation::Equal, true) => "~",
            (Relation::Equal, false) => "is not",
            (Relation::AtMost, true) if over <= 0.0 => "<=",
            (Relation::AtMost, true) => "is above, within tolerance,",
            (Relation::AtMost, false) => "is above",
        };
        let largest = lhs.abs().max(rhs.abs());
        let off = match holds {
            true => String::new(),
            false => format!(
                ", off by {} ({} %)",
                number(over.abs()),
                fixed(100.0 * over.abs() / largest, 3)
            ),
        };
        let allowed = match self.tolerance > 0.0 {
            true => format!(", {} allowed", number(self.tolerance)),
            false => String::new(),
        };
        let sentence = format!("{} {sign} {}{off}{allowed}", number(lhs), number(rhs));
        let ok = if holds { Truth::Holds } else { Truth::Violated };
        Identity {
            ok,
            lhs: side(lhs),
            rhs: side(rhs),
            rel_err: Figure::decimal(over / largest),
            tolerance: side(self.tolerance),
            sentence,
            ..self.unknown("")
        }
    }

    pub(crate) fn unknown(self, reason: &str) -> Identity {
        let scope = match self.scope {
            Scope::Quiet | Scope::Whole => "whole run",
            Scope::Window => "window",
        };
        Identity {
            id: self.id.to_owned(),
            rule: self.text.to_owned(),
            scope: scope.to_owned(),
            exact: self.exact,
            ok: Truth::Na(reason.to_owned()),
            lhs: Figure::na(reason),
            rhs: Figure::na(reason),
            rel_err: Figure::na(reason),
            tolerance: side(self.tolerance),
            sentence: format!("not evaluated: {reason}"),
        }
    }

    /// "So many of so many agree": both sides count, and the sentence names the first that does not.
    fn tally(
        self,
        deltas: &Deltas<'_>,
        verdicts: impl Iterator<Item = (String, bool)>,
    ) -> Identity {
        let (mut good, mut all, mut first) = (0_u64, 0_u64, None);
        for (name, agrees) in verdicts {
            all += 1;
            good += u64::from(agrees);
            if !agrees && first.is_none() {
                first = Some(name);
            }
        }
        let mut identity = self.judge(deltas, Ok(good as f64), Ok(all as f64));
        if let Some(name) = first {
            identity.sentence = format!("{good} of {all} agree; the first that does not is {name}");
        } else if all > 0 && identity.ok == Truth::Holds {
            identity.sentence = format!("all {all} agree");
        }
        identity
    }
}

/// A whole number stays one, so that it prints and compares exactly.
fn side(value: f64) -> Figure {
    if value >= 0.0 && value.fract() == 0.0 && value < 9.0e15 {
        Figure::Count(value as u64)
    } else {
        Figure::decimal(value)
    }
}

fn number(value: f64) -> String {
    fixed(value, if value.fract() == 0.0 { 0 } else { 3 })
}

/// A figure as a side.
fn known(figure: Figure) -> Side {
    match figure {
        Figure::Count(count) => Ok(count as f64),
        Figure::Decimal(value) => Ok(value),
        Figure::Na(reason) => Err(reason),
    }
}

/// A counter's delta as a side.
fn moved(span: &Span<'_>, stat: Stat) -> Side {
    known(span.get(stat)).map_err(|reason| format!("{}: {reason}", stat.key))
}

/// The sum of several counters' deltas.
fn moved_sum(span: &Span<'_>, stats: &[Stat]) -> Side {
    stats.iter().map(|stat| moved(span, *stat)).sum()
}

/// The difference of two counters' deltas.
fn moved_difference(span: &Span<'_>, from: Stat, less: Stat) -> Side {
    Ok(moved(span, from)? - moved(span, less)?)
}

/// All identities in the order of their numbers.
pub(crate) fn evaluate(deltas: &Deltas<'_>, record: &Record, rises: &Rises) -> Vec<Identity> {
    let mut all = counters::identities(deltas);
    all.extend(host::identities(deltas, record, rises));
    if deltas.is_server() {
        // Another's counters move when they are published, for others' work too: no bug of assay.
        all.iter_mut().for_each(|identity| identity.exact = false);
        all.extend(server::identities(deltas));
    }
    all.extend(times::identities(deltas, record));
    all.sort_by_key(|identity| {
        let of_server = identity.id.starts_with('S');
        (of_server, number_of(&identity.id), identity.id.clone())
    });
    all
}

fn number_of(id: &str) -> u32 {
    let digits: String = id.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(u32::MAX)
}

/// Violated identities that allow nothing: bugs of assay, which void the run (exit code 4).
#[must_use]
pub fn violated_exact(record: &Record) -> Vec<&Identity> {
    violated(record).into_iter().filter(|i| i.exact).collect()
}

/// Every violated identity.
#[must_use]
pub fn violated(record: &Record) -> Vec<&Identity> {
    let is_violated = |identity: &&Identity| identity.ok == Truth::Violated;
    record.integrity.iter().filter(is_violated).collect()
}
