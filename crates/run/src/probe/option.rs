//! A probe's own options: each is one entry, and is read by its type; what cannot be meant is one error that names the option, its
//! value and what is taken.

use super::Request;
use crate::engine::EngineError;
use assay_measure::units::{duration, parse_duration_ns, parse_size_bytes, size};
use std::fmt::{Debug, Display};
use std::ops::RangeInclusive;
use std::time::Duration;

/// An option of a probe's own: its command makes a flag of it, the record a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeOption {
    /// The flag without its dashes, and the word's name.
    pub name: &'static str,
    /// Other spellings: of one letter a short flag (`-b`), of more a flag that is taken and not shown.
    pub also: &'static [&'static str],
    /// What help calls its value; empty for a switch.
    pub value: &'static str,
    /// What holds where nobody says, as it would be typed; empty: it is off.
    pub default: &'static str,
    /// One line for help; one without is taken and not shown.
    pub help: &'static str,
}

/// A list of options in the order of help, with a constant for each: `NAME: "flag" | "other spelling" ["VALUE"] = "default", "help";`.
/// One without a value is a switch, one without a default is off, one whose help is empty is taken and not shown.
#[macro_export]
macro_rules! probe_options {
    ($(#[$list_doc:meta])* $vis:vis $list:ident:
        $($(#[$doc:meta])* $constant:ident: $name:literal $(| $also:literal)* $([$value:literal])? $(= $default:literal)?, $help:literal;)*
    ) => {
        $($(#[$doc])* $vis const $constant: $crate::probe::ProbeOption = $crate::probe::ProbeOption {
            name: $name,
            also: &[$($also),*],
            value: concat!($($value)?),
            default: concat!($($default)?),
            help: $help,
        };)*
        $(#[$list_doc])* $vis const $list: &[$crate::probe::ProbeOption] = &[$($constant),*];
    };
}

impl ProbeOption {
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

    /// A value by its own grammar; nothing where the option is off.
    ///
    /// # Errors
    /// What `read` refuses, in its words.
    pub fn read<T, E: Display>(
        &self,
        option: &ProbeOption,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, EngineError> {
        let read = |text: &str| read(text).map_err(|why| option.refused(text, why));
        self.said(option).map(read).transpose()
    }

    /// One of these words, in whatever case; the type's own default where the option is off.
    ///
    /// # Errors
    /// Another word.
    pub fn choice<T: Copy + Default>(&self, option: &ProbeOption, of: &[(&str, T)]) -> Result<T, EngineError> {
        let one = |text: &str| {
            let found = of.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
            found.map(|(_, value)| *value).ok_or_else(|| {
                let words: Vec<&str> = of.iter().map(|(word, _)| *word).collect();
                format!("one of {} is taken", words.join(", "))
            })
        };
        self.read(option, one).map(Option::unwrap_or_default)
    }

    /// A value of a range; `parse` has nothing for what is none at all.
    fn within<T: PartialOrd>(
        &self,
        option: &ProbeOption,
        range: &RangeInclusive<T>,
        parse: impl FnOnce(&str) -> Result<Option<T>, String>,
        show: impl Fn(&T) -> String,
    ) -> Result<Option<T>, EngineError> {
        self.read(option, |text| {
            let found = parse(text)?.filter(|value| range.contains(value));
            found.ok_or_else(|| format!("{} to {} is taken", show(range.start()), show(range.end())))
        })
    }

    /// A number, whole or not as the range is; nothing where the option is off.
    ///
    /// # Errors
    /// No number, or none of this range.
    pub fn number<T: PartialOrd + Display + std::str::FromStr>(
        &self,
        option: &ProbeOption,
        range: RangeInclusive<T>,
    ) -> Result<Option<T>, EngineError> {
        self.within(option, &range, |text| Ok(text.parse().ok()), T::to_string)
    }

    /// Bytes; nothing where the option is off.
    ///
    /// # Errors
    /// No size, or none of this range.
    pub fn size_bytes(&self, option: &ProbeOption, range: RangeInclusive<u64>) -> Result<Option<u64>, EngineError> {
        let parse = |text: &str| parse_size_bytes(text).map(Some).map_err(|error| error.to_string());
        self.within(option, &range, parse, |bytes| size(*bytes))
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
        let parse = |text: &str| parse_duration_ns(text).map(|ns| Some(Duration::from_nanos(ns)));
        self.within(
            option,
            &range,
            |text| parse(text).map_err(|error| error.to_string()),
            |time| duration(time.as_nanos() as u64),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    probe_options! {
        ALL:
        SIZE: "size" | "s" | "length" ["SIZE"] = "4k", "How much";
        TIME: "pause" ["DURATION"], "How long";
        MODE: "mode" ["HOW"] = "slow", "How";
        QUIET: "quiet", "";
    }

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
        assert_eq!(plain.choice(&MODE, &[("quick", 1), ("slow", 2)]).unwrap(), 2);
        assert_eq!(request(&["mode=QUICK"]).choice(&MODE, &[("quick", 1), ("slow", 2)]).unwrap(), 1);
        assert_eq!(plain.choice(&TIME, &[("quick", 1)]).unwrap(), 0);
        let error = plain.choice(&MODE, &[("quick", 1), ("odd", 2)]).unwrap_err();
        assert!(error.to_string().contains("--mode slow: one of quick, odd is taken"), "{error}");
        let error = request(&["size=7"]).number(&SIZE, 8..=9).unwrap_err();
        assert!(error.to_string().contains("--size 7: 8 to 9 is taken"));
    }

    #[test]
    fn an_entry_has_what_is_written_and_nothing_else() {
        assert_eq!(ALL, [SIZE, TIME, MODE, QUIET]);
        let parts = |of: &ProbeOption| (of.name, of.also, of.value, of.default, of.help);
        assert_eq!(parts(&SIZE), ("size", &["s", "length"][..], "SIZE", "4k", "How much"));
        assert_eq!(parts(&TIME), ("pause", &[][..], "DURATION", "", "How long"));
        assert_eq!(parts(&QUIET), ("quiet", &[][..], "", "", ""));
    }
}
