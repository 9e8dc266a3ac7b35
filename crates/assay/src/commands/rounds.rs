//! `--until` of a probe: the whole probe again and again, each time with all of it set up anew, until a figure is known.

use super::flag_time::time_within;
use crate::cli::USUAL_AT_MOST;
use crate::exit::Failure;
use assay_measure::precision::{End, Goal, Portion, ROUNDS_LEAST, Statistic, Watch};
use assay_measure::record::metric::find;
use assay_measure::record::{Metric, Precision, Record};
use assay_measure::units;
use assay_run::dataset::lines::text;
use assay_run::engine::Line;
use assay_run::probe::ProbeSpec;
use assay_run::stop::Stop;
use std::time::{Duration, Instant};

/// So many rounds find room in the time: two looks that agree need nine, and a round takes longer than its measuring.
const ROUNDS: u32 = 16;
const LEAST_ROUND: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(24 * 3600);

/// What was asked of the rounds of a probe.
pub(super) struct Rounds {
    goal: Goal,
    /// Keys of the figure: the first that a record has.
    keys: &'static [&'static str],
    at_most: Duration,
    /// The measuring time of a round.
    pub(super) time: Duration,
}

impl Rounds {
    /// What the flags say; nothing where they ask for one measurement of a given time.
    pub(super) fn asked(
        probe: &ProbeSpec,
        until: Option<&str>,
        at_most: Option<&str>,
    ) -> Result<Option<Self>, Failure> {
        let Some(until) = until else {
            return at_most.map_or(Ok(None), |_| {
                Err(Failure::usage("--at-most limits rounds with --until: give both, or --time"))
            });
        };
        let refused = |why: String| Failure::usage(format!("--until {until}: {why}"));
        let goal = Goal::parse(until).map_err(refused)?;
        let is_named = |(name, keys): &&(&str, &[&str])| *name == goal.figure || keys.contains(&goal.figure.as_str());
        let Some((_, keys)) = probe.follows.iter().find(is_named) else {
            let names: Vec<String> = probe.follows.iter().map(|(name, keys)| named(name, keys[0])).collect();
            return Err(refused(format!("{} can follow {}", probe.name, names.join(", "))));
        };
        let least = LEAST_ROUND * ROUNDS;
        let taken = least..=MOST;
        let given = at_most.unwrap_or(USUAL_AT_MOST);
        let words =
            format!("{} s to 24h: a round measures at least a second, and {ROUNDS} must find room", least.as_secs());
        let at_most = time_within("--at-most", given, taken, &words)?;
        let usual =
            probe.usual_time.and_then(|usual| units::parse_duration_ns(usual).ok()).map_or(MOST, Duration::from_nanos);
        Ok(Some(Self { goal, keys, at_most, time: (at_most / ROUNDS).clamp(LEAST_ROUND, usual) }))
    }

    /// A line of the plan.
    pub(super) fn plan(&self) -> Line {
        let told = format!(
            "rounds of {} s until {} is known to \u{b1}{} %, at most {} in all",
            self.time.as_secs(),
            self.keys[0],
            100.0 * self.goal.ratio,
            units::duration(self.at_most.as_nanos() as u64)
        );
        text("until", "until", told)
    }

    /// Measures round after round; the record of the middle one, with what is known of the figure.
    pub(super) fn measure<T>(
        &self,
        stop: &Stop,
        mut one: impl FnMut(usize) -> Result<(Record, T), Failure>,
    ) -> Result<(Record, T), Failure> {
        let begun = Instant::now();
        let mut watch = Watch::new(Statistic::Mean, self.goal.ratio, ROUNDS_LEAST);
        let mut kept: Vec<(f64, Record, T)> = Vec::new();
        let mut longest = Duration::ZERO;
        let mut end = None;
        while end.is_none() && (kept.is_empty() || !stop.requested()) {
            if !kept.is_empty() && begun.elapsed() + longest > self.at_most {
                end = Some(watch.over());
                break;
            }
            let round = Instant::now();
            let (record, rest) = one(kept.len() + 1)?;
            // What was cut short is no round like the others; what is invalid ends it all.
            if stop.requested() && !kept.is_empty() {
                break;
            }
            let value = self.figure(&record).and_then(|metric| metric.value.value());
            let Some(value) = value.filter(|_| record.run.verdict == "complete") else {
                return Ok((self.told(record, &watch, None, begun.elapsed(), !stop.requested()), rest));
            };
            longest = longest.max(round.elapsed());
            end = watch.take(&Portion { amount: value, weight: 1.0, ..Portion::default() });
            kept.push((value, record, rest));
        }
        kept.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
        let (_, record, rest) = kept.swap_remove(kept.len() / 2);
        Ok((self.told(record, &watch, end, begun.elapsed(), false), rest))
    }

    /// The first of its keys that the record has a figure for.
    fn figure<'a>(&self, record: &'a Record) -> Option<&'a Metric> {
        let all = self.keys.iter().filter_map(|key| find(&record.metrics, key));
        all.into_iter().find(|metric| metric.value.value().is_some_and(|value| value > 0.0))
    }

    fn told(&self, mut record: Record, watch: &Watch, end: Option<End>, took: Duration, is_untold: bool) -> Record {
        let metric = self.figure(&record).or_else(|| self.keys.iter().find_map(|key| find(&record.metrics, key)));
        let key = metric.map_or_else(|| self.keys[0].to_owned(), Metric::full_key);
        let (name, unit) =
            metric.map_or((key.clone(), String::new()), |metric| (metric.name.clone(), metric.unit.clone()));
        let at_most_s = self.at_most.as_secs_f64();
        let found =
            Precision::of(&self.goal, (&key, &name, &unit), at_most_s, watch, end).of_rounds(took.as_secs_f64());
        let why = metric.and_then(|metric| metric.value.reason()).unwrap_or("absent");
        let why = format!("{why}; a longer --at-most makes rounds longer");
        record.precision = Some(if is_untold { found.untold(&why) } else { found });
        record
    }
}

/// `p99 (rtt_us_p99)`, or the key alone where there is no short name.
fn named(name: &str, key: &str) -> String {
    if name.is_empty() { key.to_owned() } else { format!("{name} ({key})") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Code;
    use crate::registry;
    use assay_measure::record::Figure;
    use assay_measure::record::metric::{Better, Group, plain};

    fn rounds(name: &str, until: &str, at_most: Option<&str>) -> Result<Option<Rounds>, Failure> {
        Rounds::asked(registry::probe(name).expect("a probe"), Some(until), at_most)
    }

    #[test]
    fn what_no_probe_can_follow_is_refused_before_anything_starts() {
        for (until, at_most, why) in [
            ("p98=5%", None, "ping can follow p50 (rtt_us_p50), p99 (rtt_us_p99)"),
            ("p99=0%", None, "give \u{b1}0.1% to \u{b1}50%"),
            ("p99", None, "give FIGURE=\u{b1}P%"),
            ("p99=5%", Some("5s"), "give 16 s to 24h"),
        ] {
            let failure = rounds("ping", until, at_most).err().expect("a refusal");
            assert_eq!(failure.code, Code::Usage);
            assert!(failure.lines.iter().any(|line| line.contains(why)), "{until}: {:?}", failure.lines);
        }
        let asked = rounds("ping", "rtt_us_p99=\u{b1}5%", Some("80s")).ok().flatten().expect("a key is a name too");
        assert_eq!(asked.time, Duration::from_secs(5));
    }

    /// The record of a round, with its number beside it.
    fn round(value: f64, number: usize) -> (Record, usize) {
        let metric = plain(Group::Primary, "rtt_us_p99", "round trip p99", "us", Better::Lower, Figure::decimal(value));
        let mut record = Record { metrics: vec![metric], ..Record::default() };
        "complete".clone_into(&mut record.run.verdict);
        (record, number)
    }

    #[test]
    fn rounds_end_when_the_figure_is_known_and_the_middle_one_is_kept() {
        let asked = rounds("ping", "p99=5%", Some("24h")).ok().flatten().expect("a goal");
        let values = [100.0, 104.0, 96.0, 101.0, 99.0, 103.0, 97.0, 102.0, 98.0];
        let one = |number: usize| Ok(round(values[number - 1], number));
        let (record, number) = asked.measure(&Stop::new(), one).expect("nine rounds");
        let precision = record.precision.expect("what is known");
        assert_eq!((precision.ended.as_str(), precision.steps_count, number), ("reached", 9, 1));
        assert_eq!(precision.value.value(), Some(100.0));
    }

    #[test]
    fn a_stop_keeps_the_rounds_before_it_and_a_figure_that_is_not_there_ends_them() {
        let asked = rounds("ping", "p99=5%", Some("24h")).ok().flatten().expect("a goal");
        let stop = Stop::new();
        let one = |number: usize| {
            if number == 3 {
                stop.request();
            }
            Ok(round(100.0, number))
        };
        let (record, _) = asked.measure(&stop, one).expect("two rounds");
        let precision = record.precision.expect("what is known");
        assert_eq!((precision.ended.as_str(), precision.steps_count), ("stopped", 2));
        let nothing = |number: usize| Ok((Record { metrics: Vec::new(), ..round(1.0, number).0 }, number));
        let (record, number) = asked.measure(&Stop::new(), nothing).expect("a round");
        assert_eq!((record.precision.expect("its reason").ended.as_str(), number), ("n/a", 1));
    }
}
