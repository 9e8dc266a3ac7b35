//! `--until` of a probe: the whole probe again and again, each time with all of it set up anew, until a figure is known.

use super::probe::time_within;
use crate::exit::Failure;
use assay_measure::precision::{End, Goal, Portion, ROUNDS_LEAST, Statistic, Watch};
use assay_measure::record::metric::find;
use assay_measure::record::{Precision, Record};
use assay_measure::units;
use assay_run::dataset::lines::text;
use assay_run::engine::Line;
use assay_run::probe::ProbeSpec;
use assay_run::stop::Stop;
use std::time::{Duration, Instant};

/// The longest time that rounds take unless told otherwise, as typed.
pub(crate) const USUAL_AT_MOST: &str = "10m";
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
            "rounds of {} s until {} is known to ±{} %, at most {} in all",
            self.time.as_secs(),
            self.keys[0],
            100.0 * self.goal.ratio,
            units::duration(self.at_most.as_nanos() as u64)
        );
        text("until", "until", told)
    }

    /// Measures round after round; the record of the middle one, with what is known of the figure.
    pub(super) fn measure(
        &self,
        stop: &Stop,
        mut one: impl FnMut(usize) -> Result<Record, Failure>,
    ) -> Result<Record, Failure> {
        let begun = Instant::now();
        let mut watch = Watch::new(Statistic::Mean, self.goal.ratio, ROUNDS_LEAST);
        let mut kept: Vec<(f64, Record)> = Vec::new();
        let mut longest = Duration::ZERO;
        let mut end = None;
        while end.is_none() && !(stop.requested() && !kept.is_empty()) {
            if !kept.is_empty() && begun.elapsed() + longest > self.at_most {
                end = Some(watch.over());
                break;
            }
            let round = Instant::now();
            let record = one(kept.len() + 1)?;
            // What was cut short is no round like the others; what is invalid ends it all.
            if stop.requested() && !kept.is_empty() {
                break;
            }
            let value = self.keys.iter().find_map(|key| find(&record.metrics, key)?.value.value());
            let Some(value) = value.filter(|_| record.run.verdict == "complete") else {
                return Ok(self.told(record, &watch, None, begun.elapsed(), true));
            };
            longest = longest.max(round.elapsed());
            end = watch.take(&Portion { amount: value, weight: 1.0, ..Portion::default() });
            kept.push((value, record));
        }
        kept.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let (_, record) = kept.swap_remove(kept.len() / 2);
        Ok(self.told(record, &watch, end, begun.elapsed(), false))
    }

    fn told(&self, mut record: Record, watch: &Watch, end: Option<End>, took: Duration, is_untold: bool) -> Record {
        let metric = self.keys.iter().find_map(|key| find(&record.metrics, key));
        let key = metric.map_or_else(|| self.keys[0].to_owned(), |metric| metric.full_key());
        let (name, unit) =
            metric.map_or((key.clone(), String::new()), |metric| (metric.name.clone(), metric.unit.clone()));
        let at_most_s = self.at_most.as_secs_f64();
        let mut precision =
            Precision::of(&self.goal, (&key, &name, &unit), at_most_s, watch, end).of_rounds(took.as_secs_f64());
        if is_untold {
            "n/a".clone_into(&mut precision.ended);
        }
        record.precision = Some(precision);
        record
    }
}

/// `p99 (rtt_us_p99)`, or the key alone where there is no short name.
fn named(name: &str, key: &str) -> String {
    if name.is_empty() { key.to_owned() } else { format!("{name} ({key})") }
}
