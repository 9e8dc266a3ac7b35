//! A time that a flag says.

use crate::exit::Failure;
use assay_measure::units;
use std::ops::RangeInclusive;
use std::time::Duration;

/// What a flag of a time says, within what a command takes, in words.
pub(super) fn time_within(
    flag: &str,
    text: &str,
    taken: RangeInclusive<Duration>,
    words: &str,
) -> Result<Duration, Failure> {
    let ns = units::parse_duration_ns(text).map_err(|error| Failure::usage(format!("{flag} {text}: {error}")))?;
    let time = Duration::from_nanos(ns);
    if taken.contains(&time) { Ok(time) } else { Err(Failure::usage(format!("{flag} {text}: give {words}"))) }
}
