//! The figures of a run that can be followed second by second.

use super::{Portion, Statistic};
use crate::counter_catalog::{PHYSICAL_READ_REQUESTS, PHYSICAL_WRITE_REQUESTS, REDO_SIZE, Stat, USER_COMMITS};
use crate::histogram::Histogram;
use crate::snapshot::{Actor, Snapshot};

/// The event of single block reads.
const READS: &str = "db file sequential read";

/// Where the figure is read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Source {
    /// Operations that ended.
    Operations,
    /// A counter of the engine.
    Counter(Stat),
    /// Response times of the operations.
    Responses,
    /// Waits of the sessions for single block reads.
    Reads,
}

/// Rates: the names a user may give, the first the key of the metric; what is counted.
const RATES: [(&[&str], Source, &str, &str); 5] = [
    (&["ops_per_s", "rate"], Source::Operations, "operation rate", "/s"),
    (&["transactions_per_s"], Source::Counter(USER_COMMITS), "transaction rate", "/s"),
    (&["reads_per_s"], Source::Counter(PHYSICAL_READ_REQUESTS), "read rate", "/s"),
    (&["writes_per_s"], Source::Counter(PHYSICAL_WRITE_REQUESTS), "write rate", "/s"),
    (&["redo_bytes_per_s"], Source::Counter(REDO_SIZE), "redo rate", "bytes/s"),
];

/// A figure of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFigure {
    /// Its key.
    pub key: String,
    /// What it is, in words.
    pub what: String,
    /// Its unit.
    pub unit: &'static str,
    /// How it is made of parts.
    pub statistic: Statistic,
    source: Source,
}

impl RunFigure {
    /// The figure of this name: `rate`, `p99` (of all operations), a key of a rate, `read_us_p99`.
    ///
    /// # Errors
    /// The names there are.
    pub fn named(name: &str) -> Result<Self, String> {
        if let Some((keys, source, what, unit)) = RATES.into_iter().find(|(keys, ..)| keys.contains(&name)) {
            return Ok(Self {
                key: keys[0].to_owned(),
                what: what.to_owned(),
                unit,
                statistic: Statistic::Mean,
                source,
            });
        }
        let percentile = |prefix: &str| quantile(name.strip_prefix(prefix)?).map(|q| (q, &name[prefix.len()..]));
        let of = |(q, digits): (f64, &str), source, key: &str, what: &str| Self {
            key: format!("{key}_us_p{digits}"),
            what: format!("p{digits} of {what}"),
            unit: "us",
            statistic: Statistic::Quantile(q),
            source,
        };
        if let Some(found) = percentile("p").or_else(|| percentile("op_us_p")) {
            return Ok(of(found, Source::Responses, "op", "operations"));
        }
        if let Some(found) = percentile("read_us_p") {
            return Ok(of(found, Source::Reads, "read", "single block reads"));
        }
        let rates: Vec<&str> = RATES.iter().map(|(keys, ..)| keys[0]).collect();
        Err(format!("a run can follow rate, p50, p99 (any percentile), read_us_p99 and {}", rates.join(", ")))
    }

    /// What happened between two snapshots; nothing where the source does not tell.
    #[must_use]
    pub fn portion(&self, before: &Snapshot, now: &Snapshot) -> Option<Portion> {
        let weight = now.at_ns.saturating_sub(before.at_ns) as f64 / 1e9;
        let counted = |of: &dyn Fn(&Snapshot) -> Option<u64>| Some(of(now)?.saturating_sub(of(before)?) as f64);
        let of_durations = |of: &dyn Fn(&Snapshot) -> Histogram| Portion {
            weight,
            durations: of(now).difference(&of(before)).unwrap_or_default(),
            ..Portion::default()
        };
        let amount = match self.source {
            Source::Operations => counted(&|of| Some(of.driver.ops.iter().map(|op| op.service.count()).sum()))?,
            Source::Counter(stat) => counted(&|of| of.stats.get(stat))?,
            Source::Responses => {
                return Some(of_durations(&|of| together(of.driver.ops.iter().map(|op| &op.response))));
            }
            Source::Reads => {
                let is_one = |event: &&_| is_read(event);
                now.stats.events.iter().find(is_one)?;
                return Some(of_durations(&|of| {
                    together(of.stats.events.iter().filter(is_one).map(|event| &event.waits))
                }));
            }
        };
        Some(Portion { amount, weight, ..Portion::default() })
    }
}

fn is_read(event: &crate::snapshot::EventReading) -> bool {
    event.name == READS && event.actor == Actor::Foreground
}

fn together<'a>(parts: impl Iterator<Item = &'a Histogram>) -> Histogram {
    parts.fold(Histogram::default(), |mut whole, part| {
        whole.merge(part);
        whole
    })
}

/// 0.99 of `99`, 0.999 of `999`.
fn quantile(digits: &str) -> Option<f64> {
    let is_number = (2..=5).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let value: f64 = is_number.then(|| format!("0.{digits}").parse().ok())??;
    (value >= 0.1).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_the_names_of_the_field_and_its_key() {
        let key = |name| RunFigure::named(name).map(|figure| (figure.key, figure.statistic));
        assert_eq!(key("rate"), Ok(("ops_per_s".to_owned(), Statistic::Mean)));
        assert_eq!(key("p99"), Ok(("op_us_p99".to_owned(), Statistic::Quantile(0.99))));
        assert_eq!(key("read_us_p999"), Ok(("read_us_p999".to_owned(), Statistic::Quantile(0.999))));
        for unknown in ["p", "p0", "p05", "pp99", "p9x", "latency", ""] {
            assert!(key(unknown).unwrap_err().starts_with("a run can follow rate, p50"), "{unknown}");
        }
    }
}
