//! Wait events and wait classes.

use super::Figure;
use crate::figures::figures;
use crate::histogram::Histogram;

/// One wait class of the foreground.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WaitClassRow {
    /// `User I/O`, `Commit`, ...; `DB CPU` is a row of its own.
    pub class: String,
    /// Waits.
    pub waits_count: Figure,
    /// Share of waits that ended by a timer, 0..100.
    pub timeouts_pct: Figure,
    /// Time, us.
    pub total_us: Figure,
    /// Time over waits, us.
    #[serde(alias = "avg_us")]
    pub us_avg: Figure,
    /// Share of DB time, 0..100.
    pub db_time_pct: Figure,
    /// How the time was obtained; `+` joins the sources of a class whose events have several.
    pub source: String,
}

/// One event over the window.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EventRow {
    /// Event name, e.g. `db file sequential read`.
    pub name: String,
    /// Wait class as in `V$EVENT_NAME`, e.g. `User I/O`.
    pub class: String,
    /// `foreground` or `background`.
    pub actor: String,
    /// Waits.
    pub count: Figure,
    /// Waits that ended by a timer.
    pub timeouts_count: Figure,
    /// Time, us.
    pub total_us: Figure,
    /// Time over waits, us.
    #[serde(alias = "avg_us")]
    pub us_avg: Figure,
    /// Longest wait, us.
    #[serde(alias = "max_us")]
    pub us_max: Figure,
    /// Share of DB time (foreground), or of background elapsed time or the sum of
    /// background waits, whichever is more (background), 0..100.
    pub db_time_pct: Figure,
    /// Waits per power-of-two bucket: entry i counts 2^(i-1) <= us < 2^i.
    pub hist_us: Vec<u64>,
    /// The fine histogram the buckets above are the sum of.
    pub hist_ns: Histogram,
    /// Median, us.
    #[serde(alias = "p50_us")]
    pub us_p50: Figure,
    /// 90th percentile, us.
    #[serde(alias = "p90_us")]
    pub us_p90: Figure,
    /// 99th percentile, us.
    #[serde(alias = "p99_us")]
    pub us_p99: Figure,
    /// 99.9th percentile, us.
    #[serde(alias = "p999_us")]
    pub us_p999: Figure,
    /// How the time was obtained: `sysstat` (each wait stamped), `pg_stat_io` and its like (a total, without a
    /// distribution), `sampled` (sessions found in it at ticks, over the window).
    pub source: String,
    /// Standard error of `total_us` where it is sampled, us.
    pub total_error_us: Figure,
    /// A remark on the row, in a sentence; usually empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl EventRow {
    /// Whether each of its waits was timed, so that it has a distribution.
    #[must_use]
    pub fn is_timed_singly(&self) -> bool {
        !self.hist_ns.is_empty()
    }

    /// Whether its time is an estimate from samples.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.source == SAMPLED
    }
}

/// The source of a time that was estimated from samples.
pub const SAMPLED: &str = "sampled";
