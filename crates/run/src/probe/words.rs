//! A probe's own options read by their type: what cannot be meant is one error that names the option and its value.

use super::{ProbeOption, Request};
use crate::engine::EngineError;
use assay_measure::units::{duration, parse_duration_ns, parse_size_bytes, size};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

impl ProbeOption {
    /// Its five parts in the order of the fields.
    #[must_use]
    pub const fn new(
        name: &'static str,
        also: &'static [&'static str],
        value: &'static str,
        default: &'static str,
        help: &'static str,
    ) -> Self {
        Self { name, also, value, default, help }
    }

    /// The error for a value that it does not take.
    pub fn refused(&self, value: &str, why: impl Display) -> EngineError {
        EngineError::Usage(format!("--{} {value}: {why}", self.name))
    }
}

impl Request {
    /// What was said of an option, else its default; nothing where it is off.
    #[must_use]
    pub fn said<'a>(&'a self, option: &ProbeOption) -> Option<&'a str> {
        Some(self.option(option)).filter(|value| !value.is_empty())
    }

    /// Whether a switch is on, or an option has a value.
    #[must_use]
    pub fn is_on(&self, option: &ProbeOption) -> bool {
        self.said(option).is_some()
    }

    /// A whole number; nothing where the option is off.
    ///
    /// # Errors
    /// No number, or none of this range.
    pub fn number(&self, option: &ProbeOption, range: RangeInclusive<u64>) -> Result<Option<u64>, EngineError> {
        let read = |text: &str| {
            let number = text.parse().ok().filter(|number| range.contains(number));
            let (least, most) = (range.start(), range.end());
            number.ok_or_else(|| option.refused(text, format!("{least} to {most} is taken")))
        };
        self.said(option).map(read).transpose()
    }

    /// Bytes; nothing where the option is off.
    ///
    /// # Errors
    /// No size, or none of this range.
    pub fn size_bytes(&self, option: &ProbeOption, range: RangeInclusive<u64>) -> Result<Option<u64>, EngineError> {
        let read = |text: &str| {
            let bytes = parse_size_bytes(text).map_err(|error| option.refused(text, error))?;
            if range.contains(&bytes) {
                Ok(bytes)
            } else {
                let (least, most) = (size(*range.start()), size(*range.end()));
                Err(option.refused(text, format!("{least} to {most} is taken")))
            }
        };
        self.said(option).map(read).transpose()
    }

    /// A time; nothing where the option is off.
    ///
    /// # Errors
    /// No duration, or none of this range.
    pub fn duration(
        &self,
        option: &ProbeOption,
        range: RangeInclusive<Duration>,
    ) -> Result<Option<Duration>, EngineError> {
        let read = |text: &str| {
            let ns = parse_duration_ns(text).map_err(|error| option.refused(text, error))?;
            let time = Some(Duration::from_nanos(ns)).filter(|time| range.contains(time));
            time.ok_or_else(|| {
                let words = |time: &Duration| duration(time.as_nanos() as u64);
                let (least, most) = (words(range.start()), words(range.end()));
                option.refused(text, format!("{least} to {most} is taken"))
            })
        };
        self.said(option).map(read).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: ProbeOption = ProbeOption::new("size", &[], "SIZE", "4k", "");
    const TIME: ProbeOption = ProbeOption::new("pause", &[], "DURATION", "", "");

    fn request(words: &[&str]) -> Request {
        Request { words: words.iter().map(|word| (*word).to_owned()).collect(), ..Request::default() }
    }

    #[test]
    fn a_value_is_read_by_its_type_or_refused_by_name() {
        let plain = request(&[]);
        assert_eq!(plain.size_bytes(&SIZE, 1..=8192).unwrap(), Some(4096));
        assert_eq!(plain.duration(&TIME, Duration::ZERO..=Duration::MAX).unwrap(), None);
        assert!(plain.is_on(&SIZE) && !plain.is_on(&TIME));
        for (words, told) in [("size=1m", "--size 1m: 1 B to 8 KiB is taken"), ("size=lots", "--size lots: ")] {
            let error = request(&[words]).size_bytes(&SIZE, 1..=8192).unwrap_err();
            assert!(error.to_string().contains(told), "{error}");
        }
        let long = request(&["pause=2h"]);
        let hour = Duration::ZERO..=Duration::from_secs(3600);
        let error = long.duration(&TIME, hour).unwrap_err();
        assert!(error.to_string().contains("--pause 2h: 0 ns to 1 h is taken"));
        let error = request(&["size=7"]).number(&SIZE, 8..=9).unwrap_err();
        assert!(error.to_string().contains("--size 7: 8 to 9 is taken"));
    }
}
