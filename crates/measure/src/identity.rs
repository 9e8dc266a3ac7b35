//! An identity: two ways to the same number, and whether they agree.
//!
//! Uncounted figures are n/a with their reason, never "holds".

pub mod formula;

use crate::record::{Figure, Identity, Record, Truth};
use crate::units::fixed;

/// A figure with its possible rounding error.
#[derive(Clone, Copy, Debug)]
pub struct Rounded {
    /// As it was printed.
    pub value: f64,
    /// The possible rounding error, in either direction.
    pub off: f64,
}

impl Rounded {
    /// An exact figure.
    #[must_use]
    pub fn exact(value: f64) -> Self {
        Self { value, off: 0.0 }
    }

    /// So many times it.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self { value: self.value * factor, off: self.off * factor.abs() }
    }

    /// The sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { value: self.value + other.value, off: self.off + other.off }
    }

    /// As printed by a source that rounds to one digit more first: 0.2464 is printed 0.3, by way of 0.25.
    #[must_use]
    pub fn twice_rounded(self) -> Self {
        Self { off: 1.1 * self.off, ..self }
    }

    /// So many millionths of it.
    #[must_use]
    pub fn share(self, ppm: f64) -> f64 {
        1e-6 * ppm * self.value.abs()
    }

    /// The quotient, with the error of both roundings.
    #[must_use]
    pub fn over(self, other: Self) -> Self {
        let value = self.value / other.value;
        Self { value, off: (self.off + value.abs() * other.off) / other.value.abs() }
    }

    /// The product, with the error of both roundings.
    #[must_use]
    pub fn by(self, other: Self) -> Self {
        Self {
            value: self.value * other.value,
            off: self.value.abs() * other.off + other.value.abs() * self.off + self.off * other.off,
        }
    }
}

/// One side of an identity, or the reason it is unknown.
pub type Side = Result<f64, String>;

/// How the sides must relate.
#[derive(Clone, Copy, Debug)]
enum Relation {
    Equal,
    AtMost,
}

/// Which interval an identity is taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Gate to drained; spans threads, so it needs them quiet at both ends.
    Quiet,
    /// Gate to drained; holds inside every thread, so it can always be judged.
    Whole,
    /// Begin to end.
    Window,
}

/// What is to be judged.
#[derive(Clone, Copy, Debug)]
pub struct IdentityRule {
    id: &'static str,
    text: &'static str,
    scope: Scope,
    exact: bool,
    relation: Relation,
    /// Allowed difference in the sides' unit.
    tolerance: f64,
}

impl IdentityRule {
    /// An equality that may not be off by one.
    #[must_use]
    pub fn exact(id: &'static str, scope: Scope, text: &'static str) -> Self {
        Self { id, text, scope, exact: true, relation: Relation::Equal, tolerance: 0.0 }
    }

    /// An equality within a tolerance: a violation is reported, but may lie outside assay.
    #[must_use]
    pub fn within(id: &'static str, scope: Scope, text: &'static str, tolerance: f64) -> Self {
        Self { exact: false, tolerance, ..Self::exact(id, scope, text) }
    }

    /// The left side may be below the right one.
    #[must_use]
    pub fn at_most(self) -> Self {
        Self { relation: Relation::AtMost, ..self }
    }

    /// The interval it is taken over.
    #[must_use]
    pub fn scope(self) -> Scope {
        self.scope
    }

    /// The same with another allowance.
    #[must_use]
    pub fn tolerating(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    /// Compares the sides. Zero against zero means that nothing was counted: n/a.
    #[must_use]
    pub fn compare(self, lhs: Side, rhs: Side) -> Identity {
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
        let off = if holds {
            String::new()
        } else {
            format!(", off by {} ({} %)", number(over.abs()), fixed(100.0 * over.abs() / largest, 3))
        };
        let allowed =
            if self.tolerance > 0.0 { format!(", {} allowed", number(self.tolerance)) } else { String::new() };
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

    /// Not judged, and why.
    #[must_use]
    pub fn unknown(self, reason: &str) -> Identity {
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
///
/// # Errors
/// Why it is n/a.
pub fn known(figure: Figure) -> Side {
    match figure {
        Figure::Count(count) => Ok(count as f64),
        Figure::Decimal(value) => Ok(value),
        Figure::Na(reason) => Err(reason),
    }
}

/// Violated exact identities: bugs in assay, which make the run invalid (exit code 4).
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

/// The number in an identity's name, to sort by.
#[must_use]
pub fn number_of(id: &str) -> u32 {
    let digits: String = id.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(u32::MAX)
}
