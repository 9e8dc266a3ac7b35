//! Which runs are meant.

use super::Entry;
use crate::exit::Failure;
use assay_measure::units;
use jiff::{SignedDuration, Timestamp};

/// Asks for what was imported, whatever its kind.
pub(crate) const IMPORT: &str = "import";
/// The workload of what was imported.
pub(crate) const IMPORTED: &str = "imported";

/// Everything asked for must hold; what was not asked for holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    pub(crate) kind: Vec<String>,
    pub(crate) workload: Option<String>,
    pub(crate) engine: Option<String>,
    pub(crate) labels: Vec<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) host: Option<String>,
    pub(crate) verdict: Option<String>,
    /// Begin of a time in UTC, as far as it was given.
    pub(crate) since: Option<String>,
    pub(crate) until: Option<String>,
}

impl Filter {
    pub(crate) fn accepts(&self, entry: &Entry) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|w| w == found);
        let any = |wanted: &[String], found: &str| wanted.is_empty() || wanted.iter().any(|w| w == found);
        // An interval that is asked for leaves out what has no time.
        let after = self.since.as_ref().is_none_or(|since| entry.started >= *since);
        let before = self.until.as_ref().is_none_or(|until| {
            let started = entry.started.get(..until.len()).unwrap_or(&entry.started);
            !started.is_empty() && started <= until.as_str()
        });
        let tagged = |wanted: &String| {
            let of_key = |tag: &String| tag.split_once('=').is_some_and(|(key, _)| key == wanted);
            entry.tags.iter().any(|tag| tag == wanted || of_key(tag))
        };
        let is_import = self.kind.iter().any(|kind| kind == IMPORT) && entry.workload == IMPORTED;
        (any(&self.kind, &entry.kind) || is_import)
            && is(&self.workload, &entry.workload)
            && is(&self.engine, &entry.engine)
            && any(&self.labels, &entry.label)
            && self.tags.iter().all(tagged)
            && is(&self.host, &entry.host)
            && is(&self.verdict, &entry.verdict)
            && after
            && before
    }
}

/// An instant of `--since` and `--until`: a date, a date and time in UTC, or how long ago.
pub(crate) fn instant(option: &str, text: &str) -> Result<String, Failure> {
    let bad = || {
        Failure::usage(format!(
            "{option} {text}: give a date (2026-03-01), a date and time in UTC (2026-03-01T14:30), or how long ago (7d, 12h, 30m)"
        ))
    };
    if text.contains('-') {
        let text = text.trim_end_matches('Z').replace(' ', "T");
        let shape = "0000-00-00T00:00:00";
        let fits = |(c, like): (char, char)| match like {
            '0' => c.is_ascii_digit(),
            like => c == like,
        };
        let known = [4, 7, 10, 13, 16, 19].contains(&text.len());
        let good = known && text.chars().zip(shape.chars()).all(fits);
        return good.then_some(text).ok_or_else(bad);
    }
    let ns = match text.strip_suffix('d') {
        Some(days) => days.parse::<u64>().ok().and_then(|days| days.checked_mul(86_400_000_000_000)),
        None => units::parse_duration_ns(text).ok(),
    };
    let ago = ns.and_then(|ns| i64::try_from(ns).ok()).ok_or_else(bad)?;
    let then = Timestamp::now().checked_sub(SignedDuration::from_nanos(ago)).map_err(|_| bad())?;
    Ok(then.to_string().chars().take(19).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry {
            kind: "run".to_owned(),
            started: "2026-03-02T10:00:00".to_owned(),
            label: "nightly".to_owned(),
            tags: vec!["disk=nvme".to_owned(), "good".to_owned()],
            ..Entry::default()
        }
    }

    #[test]
    fn a_tag_is_meant_by_its_whole_or_by_its_key() {
        let tagged = |tag: &str| Filter { tags: vec![tag.to_owned()], ..Filter::default() };
        for (tag, expected) in [("good", true), ("disk", true), ("disk=nvme", true), ("disk=ssd", false)] {
            assert_eq!(tagged(tag).accepts(&entry()), expected, "{tag}");
        }
    }

    #[test]
    fn a_day_is_meant_to_its_end() {
        let between = |since: &str, until: &str| Filter {
            since: Some(instant("--since", since).expect("an instant")),
            until: Some(instant("--until", until).expect("an instant")),
            ..Filter::default()
        };
        assert!(between("2026-03-02", "2026-03-02").accepts(&entry()));
        assert!(between("2026-03", "2026-03-02T10:00").accepts(&entry()));
        assert!(!between("2026-03-02T10:01", "2027").accepts(&entry()));
        assert!(!between("2026-01-01", "2026-03-01").accepts(&entry()));
        let nothing = Entry::default();
        assert!(!between("2000-01-01", "2100-01-01").accepts(&nothing));
    }

    #[test]
    fn an_instant_is_a_date_or_how_long_ago() {
        for good in ["2026-03-01", "2026-03-01T14:30", "2026-03-01 14:30:00Z", "7d", "12h", "30m"] {
            assert!(instant("--since", good).is_ok(), "{good}");
        }
        for bad in ["yesterday", "2026-3-1", "2026-03-01T1", "-", "d", "99999999999999999999d"] {
            assert!(instant("--since", bad).is_err(), "{bad}");
        }
    }
}
