//! LOOP=server: slices of operations in one call, each timed by the server's clock in whole microseconds.
//!
//! What is done is decided here as ever: kinds, keys and stamps travel as text, rows and instants come back as text. The block
//! is anonymous, so it needs no privilege and leaves nothing behind; the driver keeps its cursor, so it is parsed once.

use super::session::{Bind, OraError, Session};
use super::sql::{ANSWER_DIGITS, KEY_DIGITS, OP_CHARS};
use assay_measure::clock::{Clock, Ns};
use assay_run::dataset::rows::STAMP_DIGITS;
use assay_run::engine::{Op, Outcome, Slice, SliceDone};

/// Operations of the first slice, and the most of any: a text of 4000 bytes holds the stamps of so many.
const OPS_FIRST: usize = 16;
const OPS_MAX: usize = 4000 / STAMP_DIGITS;
const _: () = assert!(OPS_MAX * OP_CHARS <= 4000 && OPS_MAX * ANSWER_DIGITS <= 4000);
const NS_PER_US: u64 = 1000;

/// A session's block.
pub(super) struct Sliced {
    sql: String,
    home: u32,
    /// Operations to ask for.
    pub(super) ops: usize,
    /// What the last slice took beside its operations.
    overhead_ns: Ns,
    texts: [String; 2],
}

impl Sliced {
    pub(super) fn new(sql: String, home: u32) -> Self {
        Self {
            sql,
            home,
            ops: OPS_FIRST,
            overhead_ns: 0,
            texts: Default::default(),
        }
    }

    /// Performs a slice. `longest_ns`: the server is interrupted after that, so no slice may come near it.
    ///
    /// # Errors
    /// The call failed: nothing of it is known to have been done.
    pub(super) fn perform(
        &mut self,
        session: &mut dyn Session,
        clock: &Clock,
        slice: Slice<'_>,
        longest_ns: Ns,
    ) -> Result<SliceDone, OraError> {
        self.encode(slice.ops)?;
        let sent_ns = clock.now_ns();
        let left = slice
            .until_ns
            .saturating_sub(sent_ns + self.overhead_ns / 2)
            .min(longest_ns);
        let left_us = (left / NS_PER_US).to_string();
        let [ops, stamps] = &self.texts;
        let binds = [Bind::Text(ops), Bind::Text(stamps), Bind::Text(&left_us)];
        let answer = session.call(&self.sql, &binds, 3)?;
        let end_ns = clock.now_ns();
        let [counts, ends, failed] = answer.as_slice() else {
            return Err(OraError::broken(
                "the block brought back other values than it has",
            ));
        };
        self.timed(slice.ops.len(), (sent_ns, end_ns), (counts, ends), failed)
    }

    fn encode(&mut self, ops: &[Op]) -> Result<(), OraError> {
        let [text, stamps] = &mut self.texts;
        text.clear();
        stamps.clear();
        for op in ops {
            let (schema, letter, first) = match *op {
                Op::Select {
                    schema, first_key, ..
                } => (schema, 's', first_key),
                Op::Update {
                    schema,
                    first_key,
                    stamp,
                    commit,
                    ..
                } => {
                    stamps.push_str(&format!("{stamp:0STAMP_DIGITS$X}"));
                    (schema, if commit { 'u' } else { 'v' }, first_key)
                }
                Op::Scan { schema } => (schema, 'c', 0),
            };
            let letter = match schema {
                schema if schema == self.home => letter,
                1 => letter.to_ascii_uppercase(),
                _ => {
                    return Err(OraError::said(
                        0,
                        format!(
                            "an operation of schema {schema} in a session of schema {}",
                            self.home
                        ),
                    ));
                }
            };
            text.push(letter);
            text.push_str(&format!("{first:0KEY_DIGITS$}"));
        }
        Ok(())
    }

    /// Lays the server's instants between our two: what the call took beside its operations is split evenly between
    /// the way there and the way back.
    fn timed(
        &mut self,
        asked: usize,
        (sent_ns, end_ns): (Ns, Ns),
        (counts, ends): (&str, &str),
        failed: &str,
    ) -> Result<SliceDone, OraError> {
        let (counts, ends) = (numbers(counts)?, numbers(ends)?);
        if counts.len() != ends.len() || ends.len() > asked {
            return Err(OraError::broken(format!(
                "the block told of {} operations and {} instants, but {asked} were asked for",
                counts.len(),
                ends.len()
            )));
        }
        let worked_ns = ends.last().map_or(0, |us| us.saturating_mul(NS_PER_US));
        self.overhead_ns = (end_ns - sent_ns).saturating_sub(worked_ns);
        let begin_ns = sent_ns + self.overhead_ns / 2;
        self.ops = match ends.len() == asked && failed.is_empty() {
            true => (asked * 2).min(OPS_MAX),
            false => (ends.len() + ends.len() / 4 + OPS_FIRST).min(OPS_MAX),
        };
        let mut latest_ns = begin_ns;
        let mut outcomes: Vec<Outcome> = counts
            .iter()
            .zip(&ends)
            .map(|(rows, us)| {
                // The server's clock may be set back; ours is not.
                latest_ns = latest_ns.max(
                    begin_ns
                        .saturating_add(us.saturating_mul(NS_PER_US))
                        .min(end_ns),
                );
                Outcome {
                    end_ns: latest_ns,
                    result: Ok(*rows),
                }
            })
            .collect();
        if !failed.is_empty() {
            let error = OraError::said(number_of(failed), failed).of_operation();
            match outcomes.last_mut() {
                Some(last) => last.result = Err(error),
                None => return Err(OraError::said(number_of(failed), failed)),
            }
        }
        Ok(SliceDone {
            begin_ns,
            outcomes,
            end_ns,
        })
    }
}

/// The texts of an answer: numbers of one width.
fn numbers(text: &str) -> Result<Vec<u64>, OraError> {
    let strange = || {
        OraError::broken(format!(
            "the block answered {text:?}, which is no row of numbers"
        ))
    };
    if !text.is_ascii() || !text.len().is_multiple_of(ANSWER_DIGITS) {
        return Err(strange());
    }
    let each = text.as_bytes().chunks(ANSWER_DIGITS).map(|digits| {
        let digits = std::str::from_utf8(digits).ok()?;
        digits.parse().ok()
    });
    each.collect::<Option<_>>().ok_or_else(strange)
}

/// NNNNN of `ORA-NNNNN: ...`; 0 where there is none.
fn number_of(text: &str) -> u32 {
    let digits = text.strip_prefix("ORA-").unwrap_or_default();
    let end = digits
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(digits.len());
    digits[..end].parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_laid_between_our_two_instants() {
        let mut sliced = Sliced::new(String::new(), 1);
        let counts = "00000000640000000064";
        let done = sliced
            .timed(
                2,
                (1_000_000, 2_000_000),
                (counts, "00000003000000000800"),
                "",
            )
            .unwrap();
        // 800 us of work in 1000 us: 100 us there, 100 us back.
        assert_eq!(done.begin_ns, 1_100_000);
        let ends: Vec<Ns> = done.outcomes.iter().map(|outcome| outcome.end_ns).collect();
        assert_eq!(ends, [1_400_000, 1_900_000]);
        assert_eq!((done.outcomes[0].result.clone(), sliced.ops), (Ok(64), 4));
    }

    #[test]
    fn the_last_operation_of_a_slice_that_failed_has_the_error() {
        let mut sliced = Sliced::new(String::new(), 1);
        let told = "ORA-00060: deadlock detected";
        let done = sliced
            .timed(9, (0, 5_000), ("0000000000", "0000000004"), told)
            .unwrap();
        let error = done.outcomes[0].result.clone().unwrap_err();
        assert_eq!((error.class, error.retryable), ("deadlock", true));
    }

    #[test]
    fn an_answer_that_is_none_is_an_error_and_no_panic() {
        let mut sliced = Sliced::new(String::new(), 1);
        for (counts, ends) in [
            ("1", "1"),
            ("00000000xx", "0000000001"),
            ("", "0000000001"),
            ("\u{e9}00000000", "0000000001"),
        ] {
            assert!(
                sliced.timed(1, (0, 1), (counts, ends), "").is_err(),
                "{counts}"
            );
        }
        let more = "0".repeat(20);
        assert!(sliced.timed(1, (0, 1), (&more, &more), "").is_err());
    }

    #[test]
    fn operations_travel_as_letters_keys_and_stamps() {
        let mut sliced = Sliced::new(String::new(), 3);
        let update = |schema, stamp, commit| Op::Update {
            schema,
            first_key: 17,
            width: 8,
            stamp,
            commit,
        };
        let ops = [
            Op::Select {
                schema: 3,
                first_key: 5,
                width: 64,
            },
            update(1, 0xAB, true),
            update(3, 1, false),
            Op::Scan { schema: 3 },
        ];
        sliced.encode(&ops).unwrap();
        assert_eq!(
            sliced.texts[0],
            "s0000000005U0000000017v0000000017c0000000000"
        );
        assert_eq!(sliced.texts[1], "00000000000000AB0000000000000001");
        assert!(sliced.encode(&[Op::Scan { schema: 2 }]).is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_answer_makes_it_panic(counts in "[0-9\u{e9}]{0,40}", ends in "[0-9x]{0,40}", failed in "(ORA-)?[0-9]{0,12}", asked in 0_usize..5) {
            let mut sliced = Sliced::new(String::new(), 1);
            if let Ok(done) = sliced.timed(asked, (5, 9), (&counts, &ends), &failed) {
                proptest::prop_assert!(done.outcomes.len() <= asked);
                proptest::prop_assert!(done.outcomes.iter().all(|outcome| (5..=9).contains(&outcome.end_ns)));
            }
        }
    }
}
