//! How well the figure of `--until` is known, and why the measurement ended.

use super::Figure;
use crate::clock::NS_PER_S;
use crate::figures::figures;
use crate::precision::{CORRELATION_MOST, End, Goal, SECONDS_LEAST, Watch};
use crate::units::{duration, fixed, many, readable, short};

/// What a record says of a measurement that was to end when a figure is known.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Precision {
    /// The key of the figure.
    pub figure: String,
    /// The figure in words.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// How well it was to be known: half of the 95 % interval over the figure, 0..100.
    pub asked_pct: Figure,
    /// The longest that the measurement might take, warm-up and all, s.
    pub at_most_s: Figure,
    /// `reached`; `changed`: its level changed, so no interval tells where it stays; `time over`; `stopped`; or `n/a`: the
    /// target does not tell it.
    pub ended: String,
    /// How well it is known.
    pub reached_pct: Figure,
    /// The figure over all steps that were measured.
    pub value: Figure,
    /// The 95 % interval of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_95: Option<(f64, f64)>,
    /// How long it was measured, s: the steps that count.
    pub measured_s: Figure,
    /// What a step is: `second` or `round`.
    pub step: String,
    /// Steps measured.
    pub steps_count: u64,
    /// Steps of a batch.
    pub batch_steps_count: u64,
    /// The figure of each batch, in order.
    pub batches: Vec<f64>,
    /// The correlation of neighbouring batches that the interval allows for.
    pub correlation_ratio: Figure,
    /// Steps before the change of level; n/a of a drift.
    pub changed_after_count: Figure,
    /// The level before it; the begin of a drift.
    pub level_before: Figure,
    /// The level after it; the end of a drift.
    pub level_after: Figure,
}

/// The most values of a series in a sentence.
const SHOWN_MOST: usize = 20;

impl Precision {
    /// Of what was asked and what was found; `ended` of nobody who stopped it.
    #[must_use]
    pub fn of(
        goal: &Goal,
        (key, name, unit): (&str, &str, &str),
        at_most_s: f64,
        watch: &Watch,
        ended: Option<End>,
    ) -> Self {
        let na = || Figure::na("too few steps");
        let (batches, length) = watch.batches();
        let look = watch.last();
        let known =
            |of: &dyn Fn(&crate::precision::Look) -> f64| look.map_or_else(na, |look| Figure::decimal(of(look)));
        let change = look.and_then(|look| look.change);
        let changed = |of: &dyn Fn(&crate::precision::Change) -> f64| {
            change.as_ref().map_or_else(|| Figure::na("no change of level"), |change| Figure::decimal(of(change)))
        };
        Self {
            figure: key.to_owned(),
            name: name.to_owned(),
            unit: unit.to_owned(),
            asked_pct: Figure::decimal(100.0 * goal.ratio),
            at_most_s: Figure::decimal(at_most_s),
            ended: match ended {
                Some(End::Reached) => "reached",
                Some(End::Changed) => "changed",
                Some(End::TimeOver) => "time over",
                None => "stopped",
            }
            .to_owned(),
            reached_pct: known(&|look| 100.0 * look.ratio()),
            value: known(&|look| look.value),
            interval_95: look.map(|look| ((look.value - look.half).max(0.0), look.value + look.half)),
            measured_s: Figure::decimal(watch.steps() as f64),
            step: "second".to_owned(),
            steps_count: watch.steps() as u64,
            batch_steps_count: length as u64,
            batches,
            correlation_ratio: known(&|look| look.correlation),
            changed_after_count: change
                .and_then(|change| change.at_step)
                .map_or_else(|| Figure::na("no change at one instant"), |at| (at as u64).into()),
            level_before: changed(&|change| change.levels.0),
            level_after: changed(&|change| change.levels.1),
        }
    }

    /// The same of rounds that took so long, s.
    #[must_use]
    pub fn of_rounds(self, took_s: f64) -> Self {
        Self { measured_s: Figure::decimal(took_s), step: "round".to_owned(), ..self }
    }

    /// The same where a step has no figure, for this reason.
    #[must_use]
    pub fn untold(self, why: &str) -> Self {
        Self { ended: "n/a".to_owned(), value: Figure::na(why), reached_pct: Figure::na(why), ..self }
    }

    /// Whether the figure is known as was asked.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        self.ended == "reached"
    }

    /// `op_us_p99 1.23 ms +-4.2 %`, or that it could not be measured: for a first line.
    #[must_use]
    pub fn brief(&self) -> String {
        if self.is_reached() { self.known() } else { format!("{} not measurable now, {}", self.name, self.cause()) }
    }

    /// One sentence: what is known and what it took, or why it could not be known.
    #[must_use]
    pub fn sentence(&self) -> String {
        let took = self.measured_s.value().map_or("n/a".to_owned(), seconds);
        let (asked, most) = (self.asked(), self.at_most_s.value().map_or("n/a".to_owned(), seconds));
        if self.is_reached() {
            let interval = self.interval_95.map_or_else(String::new, |(low, high)| {
                format!(" (95 % interval {} to {})", self.number(low), self.number(high))
            });
            return format!(
                "{}{interval}, \u{b1}{asked} % was asked; that needed {took}{} of at most {most}.",
                self.known(),
                self.rounds()
            );
        }
        let known = self.reached_pct.value().map_or_else(
            || format!(" Too few {}s have a figure to say how well it is known; \u{b1}{asked} % was asked.", self.step),
            |_| format!(" So far {}; \u{b1}{asked} % was asked.", self.value_known()),
        );
        let more = match (self.ended.as_str(), self.needed_s()) {
            ("time over", Some(needed)) => format!(" At this scatter about {} would do.", seconds(needed)),
            _ => String::new(),
        };
        format!(
            "{}: not measurable now, {}; it was measured for {took}{}.{known}{more}",
            self.name,
            self.cause(),
            self.rounds()
        )
    }

    /// What the figure was, batch by batch; two together where there are many.
    #[must_use]
    pub fn series(&self) -> String {
        let together = self.batches.len().div_ceil(SHOWN_MOST).max(1);
        let shown: Vec<String> = (self.batches.chunks(together))
            .map(|few| self.number(few.iter().sum::<f64>() / few.len() as f64))
            .collect();
        let steps = self.batch_steps_count * together as u64;
        format!("{} by {}: {}", self.name, many(steps, &self.step), shown.join(" "))
    }

    fn cause(&self) -> String {
        let level = |figure: &Figure| figure.value().map_or("n/a".to_owned(), |value| self.told(value));
        match self.ended.as_str() {
            "changed" => {
                let (before, after) = (level(&self.level_before), level(&self.level_after));
                match self.changed_after_count.value() {
                    Some(at) => {
                        format!("its level changed from {before} to {after} after {}", many(at as u64, &self.step))
                    }
                    None => format!("it drifted from {before} to {after}"),
                }
            }
            "time over" => match self.correlation_ratio.value() {
                // Of fewer parts nobody can say that.
                Some(correlation) if correlation > CORRELATION_MOST && self.batches.len() >= SECONDS_LEAST => format!(
                    "it wandered more slowly than it was measured: neighbouring parts are alike (correlation {correlation:.1}), as while a cache fills"
                ),
                _ => "the time that it may take has passed".to_owned(),
            },
            "stopped" => "it was stopped".to_owned(),
            _ => format!("a {} does not tell it: {}", self.step, self.value.reason().unwrap_or("absent")),
        }
    }

    fn asked(&self) -> String {
        self.asked_pct.value().map_or("n/a".to_owned(), |pct| ((pct * 1e3).round() / 1e3).to_string())
    }

    fn rounds(&self) -> String {
        if self.step == "round" { format!(" ({})", many(self.steps_count, "round")) } else { String::new() }
    }

    /// How long it would have to be measured at this scatter, s.
    fn needed_s(&self) -> Option<f64> {
        let ratio = self.reached_pct.value()? / self.asked_pct.value()?;
        // Parts that are alike do not tell how a longer time would scatter; and nobody measures for more than a day.
        let is_told = ratio > 1.0 && self.correlation_ratio.value()? <= CORRELATION_MOST;
        // Two looks one after the other must agree.
        let needed = self.measured_s.value()? * ratio * ratio * std::f64::consts::SQRT_2;
        (is_told && needed < 86_400.0).then_some(needed)
    }

    /// `operations 812/s +-4.2 %`
    fn known(&self) -> String {
        format!("{} {}", self.name, self.value_known())
    }

    fn value_known(&self) -> String {
        let (Some(value), Some(pct)) = (self.value.value(), self.reached_pct.value()) else {
            return "n/a".to_owned();
        };
        format!("{} \u{b1}{} %", self.told(value), fixed(pct, 1))
    }

    fn told(&self, value: f64) -> String {
        let (factor, unit) = readable(self.scale(), &self.unit);
        let unit = unit.strip_prefix('1').filter(|rate| rate.starts_with('/')).map_or(unit.clone(), str::to_owned);
        let unit = if unit.starts_with('/') { unit } else { format!(" {unit}") };
        format!("{}{unit}", short(value / factor))
    }

    fn number(&self, value: f64) -> String {
        short(value / readable(self.scale(), &self.unit).0)
    }

    /// All values in one unit: that of the figure.
    fn scale(&self) -> f64 {
        self.value.value().or_else(|| self.batches.first().copied()).unwrap_or_default()
    }
}

fn seconds(seconds: f64) -> String {
    duration((seconds.round() as u64).saturating_mul(NS_PER_S))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::precision::{Portion, Statistic};

    fn of(ended: Option<End>, value: impl Fn(usize) -> f64) -> Precision {
        let goal = Goal { figure: "p99".to_owned(), ratio: 0.05 };
        let mut watch = Watch::new(Statistic::Mean, goal.ratio, 20);
        for at in 0..42 {
            watch.take(&Portion { amount: value(at), weight: 1.0, ..Portion::default() });
        }
        watch.over();
        Precision::of(&goal, ("op_us_p99", "p99 of operations", "us"), 300.0, &watch, ended)
    }

    #[test]
    fn a_sentence_says_what_is_known_or_which_cause_forbids_it() {
        let known = of(Some(End::Reached), |at| 1200.0 + 100.0 * (at % 3) as f64);
        assert_eq!(
            known.sentence(),
            "p99 of operations 1,300 us \u{b1}1.8 % (95 % interval 1,277 to 1,323), \u{b1}5 % was asked; that needed 42 s of at most 5 min."
        );
        let over = of(Some(End::TimeOver), |at| if at % 7 == 0 { 9000.0 } else { 1200.0 });
        let told = over.sentence();
        assert!(
            told.starts_with(
                "p99 of operations: not measurable now, the time that it may take has passed; it was measured for 42 s. So far"
            ),
            "{told}"
        );
        assert!(told.contains("At this scatter about "), "{told}");
        let wandered =
            of(Some(End::TimeOver), |at| 1200.0 + 400.0 * (at as f64 / 42.0 * 4.0 * std::f64::consts::PI).sin());
        let told = wandered.sentence();
        assert!(told.contains("not measurable now, it wandered more slowly than it was measured"), "{told}");
        assert!(!told.contains("would do"), "{told}");
        let changed = of(Some(End::Changed), |at| if at < 20 { 1000.0 } else { 3000.0 + (at * 37 % 11) as f64 });
        let told = changed.sentence();
        assert!(told.contains("not measurable now, its level changed from 1,000 us to 3,00"), "{told}");
        assert!(changed.series().starts_with("p99 of operations by 4 seconds: 1,000 1,000"), "{}", changed.series());
        assert!(!told.contains("would do"), "{told}");
    }
}
