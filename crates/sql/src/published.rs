//! When a server's sessions publish their counters: how exact a counter is at the ends of the window.

use assay_measure::facts::LATE_S;
use assay_measure::snapshot::Fact;
use std::time::Duration;

/// When counters are published, with the reason if the report needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Published {
    /// Immediately.
    AtOnce,
    /// At every mark, because assay has the server do so by this means.
    AtMarks(&'static str),
    /// On the server's own schedule, once a second.
    Late(&'static str),
}

impl Published {
    /// For the report.
    pub(crate) fn facts(self) -> Vec<Fact> {
        let told = match self {
            Self::AtOnce => "none except the duration of a reading: the server counts as it works".to_owned(),
            Self::AtMarks(by) => {
                format!("the duration of the snapshots: sessions publish their counters at every mark ({by})")
            }
            Self::Late(why) => format!(
                "up to 1 s of each session's work at either end of the window (2/E of a window of E seconds): {why}; \
                 totals of the whole run are exact"
            ),
        };
        let late = matches!(self, Self::Late(_)).then(|| LATE_S.fact(1));
        let told = Fact::new("statistics_endpoint_error", told);
        std::iter::once(told).chain(late).collect()
    }
}

/// Facts of a server that publishes at once: what is read, the longest reading so far, and what the counters cover.
pub(crate) fn readings(what: &str, longest: Duration, scope: &str) -> Vec<Fact> {
    let longest_ms = longest.as_secs_f64() * 1e3;
    let reading = format!("{what}, longest so far {longest_ms:.1} ms");
    let mut facts = Published::AtOnce.facts();
    facts.push(Fact::new("statistics_reading", reading));
    facts.push(Fact::new("statistics_scope", scope));
    facts
}
