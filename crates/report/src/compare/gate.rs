//! Gates: `--fail-if 'reads_per_s < -5%'`, read and judged.
//!
//! A gate on a change fires only if the change is shown. A gate that cannot be judged, be it that a change beyond the
//! limit cannot be told from noise or that there is nothing to judge by, must not look like a pass.

use super::model::{ComparedRow, Comparison, DifferenceVerdict, Pair};
use super::verdict::{percent, ratio_text};
use assay_measure::config::nearest;
use assay_measure::record::Figure;
use assay_measure::units::{six, with_unit};
use thiserror::Error;

/// A condition under which a comparison counts as failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// As given.
    pub text: String,
    /// The figure.
    pub key: String,
    /// Fires below the limit; else above.
    pub is_below: bool,
    /// The limit.
    pub limit: Limit,
}

/// What a gate's figure is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// Change against the baseline, %.
    Change(f64),
    /// The group's own value in the figure's unit, or in the unit named: us, ms, s.
    Value(f64, Option<&'static str>),
}

/// Why a text is no gate.
#[derive(Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum GateError {
    /// Not of the form.
    #[error(
        "{text:?}: {what}; a gate is KEY < LIMIT or KEY > LIMIT; the limit is a change (-5%) or a value (5ms, 300us, \
         12000)"
    )]
    Form {
        /// As given.
        text: String,
        /// What is wrong.
        what: String,
    },
    /// No run has such a figure.
    #[error("{key}: no run has this figure; {near}")]
    Unknown {
        /// The key.
        key: String,
        /// Names that are near, in words.
        near: String,
    },
}

/// How a gate came out for one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateOutcome {
    /// Beyond the limit, and shown.
    Fires,
    /// Beyond the limit, but not shown to differ.
    Unsure,
    /// Within the limit.
    Holds,
    /// There is nothing to judge by.
    NotJudged,
}

/// A gate's outcome with its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct GateResult {
    /// How it came out.
    pub outcome: GateOutcome,
    /// The figure's change, the limit, the outcome and both values, in one line.
    pub line: String,
}

impl Gate {
    /// Reads `KEY < LIMIT`.
    ///
    /// # Errors
    /// [`GateError::Form`] if it is not of that form.
    pub fn parse(text: &str) -> Result<Self, GateError> {
        let bad = |what: &str| GateError::Form { text: text.to_owned(), what: what.to_owned() };
        let at = text.find(['<', '>']).ok_or_else(|| bad("no < or >"))?;
        let (key, rest) = text.split_at(at);
        let (is_below, limit) = (rest.starts_with('<'), rest[1..].trim());
        let key = key.trim();
        if key.is_empty() || key.contains(char::is_whitespace) {
            return Err(bad("the key before it must be one word"));
        }
        Ok(Self {
            text: text.to_owned(),
            key: key.to_owned(),
            is_below,
            limit: read_limit(limit).ok_or_else(|| bad("the limit is not a number"))?,
        })
    }

    /// Checks the key against the figures there are.
    ///
    /// # Errors
    /// [`GateError::Unknown`] with the nearest keys.
    pub fn check(&self, comparison: &Comparison) -> Result<(), GateError> {
        if comparison.row(&self.key).is_some() {
            return Ok(());
        }
        let keys = || comparison.rows.iter().map(|row| row.key.as_str());
        let mut near: Vec<&str> = nearest(&self.key, keys()).into_iter().collect();
        let word = self.key.split('_').next().unwrap_or_default();
        near.extend(keys().filter(|key| word.len() > 1 && key.contains(word)).take(5));
        near.dedup();
        if near.is_empty() {
            let primary = comparison.rows.iter().filter(|row| row.is_primary);
            near = primary.map(|row| row.key.as_str()).collect();
        }
        Err(GateError::Unknown { key: self.key.clone(), near: format!("similar or common keys: {}", near.join(", ")) })
    }

    /// Judges every group after the first.
    #[must_use]
    pub fn judge(&self, comparison: &Comparison) -> Vec<GateResult> {
        let pairs = 0..comparison.pairs.len();
        pairs.map(|at| self.judge_pair(comparison, at)).collect()
    }

    fn judge_pair(&self, comparison: &Comparison, at: usize) -> GateResult {
        let pair = &comparison.pairs[at];
        let Some(row) = comparison.row(&self.key) else {
            return GateResult { outcome: GateOutcome::NotJudged, line: format!("{}: no such figure", self.text) };
        };
        let against = &row.against[at];
        let (from, to) = (&row.cells[0].value, &row.cells[at + 1].value);
        let interval = match (against.low_ratio.value(), against.high_ratio.value()) {
            (Some(low), Some(high)) => format!(", ratio 95 % interval {} to {}", ratio_text(low), ratio_text(high)),
            _ => match against.low_ratio.reason() {
                Some(reason) => format!(", no interval: {reason}"),
                None => String::new(),
            },
        };
        let told = |figure: &Figure| match figure.value() {
            Some(value) => with_unit(value, &row.unit),
            None => "n/a".to_owned(),
        };
        let (outcome, why) = self.outcome(pair, row, at);
        GateResult {
            outcome,
            line: format!(
                "{} {why} ({} {}, {} {}{interval})",
                row.key,
                pair.candidate,
                told(to),
                pair.baseline,
                told(from),
            ),
        }
    }

    /// How it came out, and in words by how much which limit was kept or not.
    fn outcome(&self, pair: &Pair, row: &ComparedRow, at: usize) -> (GateOutcome, String) {
        let not_judged = |why: &str| (GateOutcome::NotJudged, format!("cannot be judged: {why}"));
        let against = &row.against[at];
        match self.limit {
            Limit::Value(limit, unit) => {
                let limit = match in_unit(unit, &row.unit) {
                    Some(factor) => limit * factor,
                    None => return not_judged(&format!("the figure is in {}", row.unit)),
                };
                let Some(value) = row.cells[at + 1].value.value() else {
                    return not_judged("n/a");
                };
                let told = |value: f64| with_unit(value, &row.unit);
                let bound = if self.is_below { "at least" } else { "at most" };
                let said = format!("is {}, limit {bound} {}", told(value), told(limit));
                if self.is_beyond(value, limit) {
                    (GateOutcome::Fires, format!("{said}: failed"))
                } else {
                    (GateOutcome::Holds, format!("{said}: passed"))
                }
            }
            Limit::Change(_) if pair.forbids_faster => not_judged("the two sides did not run the same test"),
            Limit::Change(limit) => match against.ratio.value() {
                None => not_judged(against.ratio.reason().unwrap_or("n/a")),
                Some(ratio) => {
                    let change = 100.0 * (ratio - 1.0);
                    let said = format!("{}, limit {}", moved(change), self.limit_text(limit));
                    if !self.is_beyond(change, limit) {
                        return (GateOutcome::Holds, format!("{said}: passed"));
                    }
                    if self.is_shown(against, limit) {
                        (GateOutcome::Fires, format!("{said}: failed"))
                    } else {
                        (
                            GateOutcome::Unsure,
                            format!(
                                "{said}: beyond the limit, but {}",
                                match against.verdict {
                                    _ if against.is_disturbed => "other work on the host may be the reason",
                                    DifferenceVerdict::TooShort => "the runs are too short to tell it from noise",
                                    _ => "it cannot be told from noise",
                                }
                            ),
                        )
                    }
                }
            },
        }
    }

    /// `a fall of 5 %`; of a limit on the near side of no change what is wanted at least.
    fn limit_text(&self, limit: f64) -> String {
        let share = six(limit.abs());
        match (self.is_below, limit <= 0.0) {
            (true, true) => format!("a fall of {share} %"),
            (true, false) => format!("a rise of at least {share} %"),
            (false, true) if limit < 0.0 => format!("a fall of at least {share} %"),
            (false, _) => format!("a rise of {share} %"),
        }
    }

    fn is_beyond(&self, value: f64, limit: f64) -> bool {
        if self.is_below { value < limit } else { value > limit }
    }

    /// A limit on the far side of no change needs a change that is shown; one on the near side ("must gain 10 %") an
    /// interval that does not reach it.
    fn is_shown(&self, against: &super::Against, limit: f64) -> bool {
        let is_far = if self.is_below { limit <= 0.0 } else { limit >= 0.0 };
        // What others on the hosts may have done moves the interval's ends by as much.
        if is_far || against.is_disturbed {
            return against.verdict.is_shown();
        }
        let end = if self.is_below { &against.high_ratio } else { &against.low_ratio };
        end.value().is_some_and(|ratio| self.is_beyond(100.0 * (ratio - 1.0), limit))
    }
}

/// `fell by 1.2 %`.
fn moved(change: f64) -> String {
    match change {
        0.0 => "did not change".to_owned(),
        change if change < 0.0 => format!("fell by {} %", percent(-change)),
        change => format!("rose by {} %", percent(change)),
    }
}

fn read_limit(text: &str) -> Option<Limit> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|v| v.is_finite());
    if let Some(share) = text.strip_suffix('%') {
        return number(share).map(Limit::Change);
    }
    for unit in ["us", "ms", "s"] {
        let value = text.strip_suffix(unit).and_then(number);
        if let Some(value) = value {
            return Some(Limit::Value(value, Some(unit)));
        }
    }
    number(text).map(|value| Limit::Value(value, None))
}

/// What a limit in `unit` is multiplied by to be in the figure's unit.
fn in_unit(unit: Option<&str>, of_figure: &str) -> Option<f64> {
    let us = |unit: &str| match unit {
        "ns" => Some(1e-3),
        "us" => Some(1.0),
        "ms" => Some(1e3),
        "s" => Some(1e6),
        _ => None,
    };
    match unit {
        None => Some(1.0),
        Some(unit) => Some(us(unit)? / us(of_figure)?),
    }
}
