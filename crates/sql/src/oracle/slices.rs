//! LOOP=server: a slice of operations per call, each timed by the server's clock in whole microseconds.
//!
//! assay still decides the workload: kinds, keys and stamps are sent as text; row counts and times are returned as
//! text. The block is anonymous, so it needs no privilege and leaves nothing behind; the driver keeps its cursor, so it
//! is parsed only once.

use super::session::{Bind, OraError, Session};
use super::sql::{ANSWER_DIGITS, KEY_DIGITS, OP_CHARS};
use crate::session::Failed;
use crate::slices::{Answer, HOT, Pace, encoded};
use assay_measure::clock::{Clock, Ns};
use assay_run::dataset::rows::STAMP_DIGITS;
use assay_run::engine::{EngineError, Op, Slice, SliceDone};

/// Most operations in a slice: as many stamps as fit in a text of 4000 bytes.
const OPS_MAX: usize = 4000 / STAMP_DIGITS;
const _: () = assert!(OPS_MAX * OP_CHARS <= 4000 && OPS_MAX * ANSWER_DIGITS <= 4000);

/// A session's block.
pub(super) struct Sliced {
    sql: String,
    home: u32,
    pub(super) pace: Pace,
    texts: [String; 2],
}

impl Sliced {
    /// No slice may take longer than `longest_ns`, well before the server interrupts it.
    pub(super) fn new(sql: String, home: u32, longest_ns: Ns) -> Self {
        Self { sql, home, pace: Pace::new(OPS_MAX, longest_ns), texts: Default::default() }
    }

    /// Performs a slice.
    ///
    /// # Errors
    /// The call failed: its outcome is unknown.
    pub(super) fn perform(
        &mut self,
        session: &mut dyn Session,
        clock: &Clock,
        slice: &Slice<'_>,
    ) -> Result<SliceDone, Failed> {
        self.encode(slice.ops)?;
        let Self { sql, pace, texts: [ops, stamps], .. } = self;
        pace.performed(clock, slice, |left_us| {
            let left_us = left_us.to_string();
            let answer = session.call(sql, &[Bind::Text(ops), Bind::Text(stamps), Bind::Text(&left_us)], 3)?;
            let [counts, ends, failed] = answer.as_slice() else {
                return Err(OraError::broken("the block returned unexpected values").into());
            };
            Ok(answer_of(slice.ops.len(), (counts, ends), failed)?)
        })
    }

    fn encode(&mut self, ops: &[Op]) -> Result<(), EngineError> {
        let [text, stamps] = &mut self.texts;
        text.clear();
        stamps.clear();
        for op in ops {
            let (code, first) = encoded(op, self.home)?;
            let letters = match *op {
                Op::Update { stamp, commit, .. } => {
                    stamps.push_str(&format!("{stamp:0STAMP_DIGITS$X}"));
                    if commit { "uU" } else { "vV" }
                }
                Op::Scan { .. } => "cC",
                _ => "sS",
            };
            text.push_str(&letters[usize::from(code / HOT)..][..1]);
            text.push_str(&format!("{first:0KEY_DIGITS$}"));
        }
        Ok(())
    }
}

/// Parses the texts of an answer.
fn answer_of(asked: usize, (counts, ends): (&str, &str), failed: &str) -> Result<Answer, OraError> {
    let (rows, ends_us) = (numbers(counts)?, numbers(ends)?);
    let error = (!failed.is_empty()).then(|| OraError::said(number_of(failed), failed));
    match error {
        Some(error) if rows.is_empty() => Err(error),
        error => {
            let failed = error.map(|error| error.of_operation());
            Answer::of(asked, Some(0), (Some(ends_us), Some(rows)), failed).map_err(OraError::broken)
        }
    }
}

/// Parses a text of fixed-width numbers.
fn numbers(text: &str) -> Result<Vec<i64>, OraError> {
    let strange = || OraError::broken(format!("the block returned {text:?}, which is not a row of numbers"));
    if !text.is_ascii() || !text.len().is_multiple_of(ANSWER_DIGITS) {
        return Err(strange());
    }
    let each = text.as_bytes().chunks(ANSWER_DIGITS).map(|digits| {
        let digits = std::str::from_utf8(digits).ok()?;
        digits.parse().ok()
    });
    each.collect::<Option<_>>().ok_or_else(strange)
}

/// NNNNN of `ORA-NNNNN: ...`; 0 if absent.
fn number_of(text: &str) -> u32 {
    let digits = text.strip_prefix("ORA-").unwrap_or_default();
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_the_rows_and_the_instant_of_each_operation() {
        let answer = answer_of(2, ("00000000640000000063", "00000003000000000800"), "").unwrap();
        assert_eq!((answer.rows, answer.ends_us), (vec![64, 63], vec![300, 800]));
        assert!(answer.failed.is_none());
    }

    #[test]
    fn the_last_operation_of_a_slice_that_failed_has_the_error() {
        let told = "ORA-00060: deadlock detected";
        let answer = answer_of(9, ("0000000000", "0000000004"), told).unwrap();
        let error = answer.failed.unwrap();
        assert_eq!((error.class, error.retryable), ("deadlock", true));
        assert_eq!(answer_of(9, ("", ""), told).unwrap_err().code, Some(60));
    }

    #[test]
    fn an_answer_that_is_none_is_an_error_and_no_panic() {
        for (counts, ends) in
            [("1", "1"), ("00000000xx", "0000000001"), ("", "0000000001"), ("\u{e9}00000000", "0000000001")]
        {
            assert!(answer_of(1, (counts, ends), "").is_err(), "{counts}");
        }
        let more = "0".repeat(20);
        assert!(answer_of(1, (&more, &more), "").is_err());
    }

    #[test]
    fn operations_travel_as_letters_keys_and_stamps() {
        let mut sliced = Sliced::new(String::new(), 3, Ns::MAX);
        let update = |schema, stamp, commit| Op::Update { schema, first_key: 17, width: 8, stamp, commit };
        let ops = [
            Op::Select { schema: 3, first_key: 5, width: 64 },
            update(1, 0xAB, true),
            update(3, 1, false),
            Op::Scan { schema: 3 },
        ];
        sliced.encode(&ops).unwrap();
        assert_eq!(sliced.texts[0], "s0000000005U0000000017v0000000017c0000000000");
        assert_eq!(sliced.texts[1], "00000000000000AB0000000000000001");
        assert!(sliced.encode(&[Op::Scan { schema: 2 }]).is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_answer_makes_it_panic(counts in "[0-9\u{e9}]{0,40}", ends in "[0-9x]{0,40}", failed in "(ORA-)?[0-9]{0,12}", asked in 0_usize..5) {
            if let Ok(answer) = answer_of(asked, (&counts, &ends), &failed) {
                let done = Pace::new(OPS_MAX, Ns::MAX).timed(asked, (5, 9), answer);
                proptest::prop_assert!(done.outcomes.len() <= asked);
                proptest::prop_assert!(done.outcomes.iter().all(|outcome| (5..=9).contains(&outcome.end_ns)));
            }
        }
    }
}
