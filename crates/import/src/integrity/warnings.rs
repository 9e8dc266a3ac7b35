//! Known errors of figures that agree with each other.

use assay_measure::record::Record;
use assay_measure::units::fixed;

/// Warnings on an imported record, each with what it did to the figures.
#[must_use]
pub(crate) fn warnings(record: &Record) -> Vec<String> {
    [cap(record), idle_tail(record)].into_iter().flatten().collect()
}

/// A value of the whole that was read under this key.
fn number(record: &Record, key: &str) -> Option<f64> {
    let mut values = record.import.iter().flat_map(|info| &info.values);
    let found = values.find(|value| value.key == key && value.scope.is_empty())?;
    found.value.value()
}

/// A rate of messages at a round number that their latency does not explain: something lets only so many through.
fn cap(record: &Record) -> Option<String> {
    /// Rates that ticks and limits have are multiples of it, 1/s.
    const ROUND: f64 = 50.0;
    const MOST: f64 = 1000.0;
    const NEAR: f64 = 0.003;
    /// Latency must allow so many times the rate.
    const ALLOWS: f64 = 1.2;
    let mut ops = record.driver.ops.iter();
    let op = ops.find(|op| op.kind == "redo_transport")?;
    let (rate, us) = (op.per_s.value()?, op.service.us_avg.value().filter(|us| *us > 0.0)?);
    let whole = (rate / ROUND).round() * ROUND;
    let is_round = (ROUND..=MOST).contains(&whole) && (rate - whole).abs() <= NEAR * whole;
    let allowed = record.run.sessions.max(1) as f64 * 1e6 / us;
    (is_round && allowed > ALLOWS * rate).then(|| {
        format!(
            "The rate stands at {} messages/s, but a latency of {} us allows {}: this is a cap, likely of the tool or of \
             the clock tick, not the speed of the network or the disk.",
            fixed(whole, 0),
            fixed(us, 0),
            fixed(allowed, 0)
        )
    })
}

/// Statistics of a database that cover more time than the load was at work: the kit takes its snapshots around it.
fn idle_tail(record: &Record) -> Option<String> {
    /// Logging on and off takes this long.
    const SLACK_S: f64 = 10.0;
    let worked = number(record, "slob_run_time_s").filter(|worked| *worked > 0.0)?;
    let covered = record.interval.elapsed_s.value()?;
    let idle = covered - worked;
    if idle < -SLACK_S {
        return Some(format!(
            "The statistics cover {} s, but RUN_TIME is {} s: they belong to another run, or to a part of this one.",
            fixed(covered, 0),
            fixed(worked, 0)
        ));
    }
    (idle > SLACK_S).then(|| {
        format!(
            "The statistics cover {} s, but the sessions worked for only {} s of it (RUN_TIME): for {} s nothing ran. \
             While they worked, rates per second were {} % higher than printed.",
            fixed(covered, 0),
            fixed(worked, 0),
            fixed(idle, 0),
            fixed(100.0 * (covered / worked - 1.0), 1)
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{record_of, sample};
    use crate::{Source, import_all};

    #[test]
    fn a_rate_at_a_round_number_that_latency_does_not_explain_is_a_cap() {
        let of = |rate: &str, ms: &str| {
            let text = sample("oratcptest-0.txt")
                .replace("Avg. throughput = 1.547", &format!("Avg. throughput = {rate}"))
                .replace("Avg. latency = 2.532", &format!("Avg. latency = {ms}"))
                .replace("disk-write 1.888", "disk-write 0.100");
            record_of("cap", &text).warnings
        };
        // 300 messages of 4,108 bytes are 1.175 Mbytes.
        let capped = of("1.175", "0.400");
        assert!(capped.iter().any(|warning| warning.contains("300 messages/s")), "{capped:?}");
        assert!(of("1.175", "3.333").is_empty());
        assert!(of("1.547", "0.400").is_empty());
    }

    #[test]
    fn statistics_that_cover_more_than_the_work_say_by_how_much_rates_are_low() {
        let read = |name: &str| {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/");
            std::fs::read_to_string(format!("{path}{name}")).expect(name)
        };
        let source = |path: &str, text: String| Source { path: path.to_owned(), text };
        let banner = read("slob-banner-2.5.4.txt");
        let warned = |run_time: &str| {
            let banner = banner.replace("RUN_TIME: 300", &format!("RUN_TIME: {run_time}"));
            let sources = [source("banner", banner), source("awr", read("awr/awr-11.2.txt"))];
            let mut all: Vec<_> = import_all(sources.into()).collect();
            assert_eq!(all.len(), 1);
            let one = all.remove(0);
            assert_eq!(one.sources, [0, 1]);
            let record = one.result.expect("one record of both");
            assert_eq!(record.import.as_ref().map(|info| info.tool.as_str()), Some("awr"));
            record.warnings.join(" ")
        };
        let text = warned("570");
        assert!(text.contains("cover 600 s") && text.contains("for 30 s nothing ran"), "{text}");
        assert!(text.contains("5.3 % higher"), "{text}");
        assert!(warned("900").contains("belong to another run"));
        assert_eq!(warned("598"), "");
    }
}
