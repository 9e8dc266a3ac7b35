//! The search for the highest depth that meets a latency target (`latency_target`).
//!
//! The rule is fio's. The depth starts at 1 and doubles from window to window while enough I/Os meet the target. After
//! the first depth that misses it, the search bisects. The depth is found when a window no longer changes it. Like a
//! ramp, the search is not part of the measurement: one more window at that depth is measured and ends the job. Where
//! fio's own search does not end, this one does: a miss at `iodepth` itself bounds it like any other, the windows after
//! a found depth do not move it, and a depth of 1 that misses is measured and reported.

use crate::readings::{GoalLabel, SearchReading};
use crate::spec::PaceOptions;
use assay_measure::clock::Ns;

/// After this many consecutive windows that meet the target just below a depth that missed it, that depth is tried
/// again.
const TRY_AGAIN_AFTER: u32 = 3;

/// The verdict on a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Kept,
    Missed,
    /// The job's time is over.
    TimeIsUp,
}

/// The next step of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Try another window, at this depth.
    Try(u32),
    /// The depth is found: measure it.
    Measure(u32),
    /// It was measured.
    End,
    /// Even one I/O at a time misses a target that all I/Os must meet.
    Fail,
}

/// One clone's search.
#[derive(Clone, Debug)]
pub(super) struct Search {
    pub(super) goal: GoalLabel,
    /// `iodepth`
    most: u32,
    pub(super) depth: u32,
    /// Highest depth that met the target; lowered when it no longer does.
    low: u32,
    /// Lowest depth that missed it.
    high: Option<u32>,
    stable: u32,
    measuring: bool,
    reading: SearchReading,
    begun_ns: Option<Ns>,
    window_ns: Ns,
    window_begun_ns: Ns,
    deadline_ns: Ns,
    /// The verdict to act on in the next turn.
    pub(super) due: Option<Verdict>,
}

/// `latency_target` of a job, if it has one.
pub(super) fn goal_of(pace: &PaceOptions) -> Option<GoalLabel> {
    let goal = &pace.latency;
    Some(GoalLabel {
        target_ns: goal.target_ns?,
        window_ns: goal.window_ns,
        percentile: goal.percentile,
        adapts: goal.adapts,
    })
}

impl Search {
    pub(super) fn new(pace: &PaceOptions, most: u32) -> Option<Self> {
        let goal = goal_of(pace)?;
        Some(Self {
            goal,
            most,
            depth: 1,
            low: 1,
            high: None,
            stable: 0,
            measuring: false,
            reading: SearchReading::default(),
            begun_ns: None,
            window_ns: goal.window_ns.min(pace.runtime_ns.unwrap_or(Ns::MAX)),
            window_begun_ns: 0,
            deadline_ns: Ns::MAX,
            due: None,
        })
    }

    /// Whether the current I/O is not part of the measurement.
    pub(super) fn is_apart(&self) -> bool {
        !self.goal.adapts && !self.measuring
    }

    /// Whether the depth is being measured and no longer changes.
    fn is_settled(&self) -> bool {
        !self.goal.adapts && self.measuring
    }

    /// Starts the search, once.
    pub(super) fn begin(&mut self, now: Ns, runtime_ns: Option<Ns>) {
        if self.begun_ns.is_none() {
            self.begun_ns = Some(now);
            self.begin_window(now);
            if self.is_apart() {
                self.deadline_ns = runtime_ns.map_or(Ns::MAX, |ns| now + ns);
            }
        }
    }

    pub(super) fn begin_window(&mut self, now: Ns) {
        self.window_begun_ns = now;
        (self.reading.ios, self.reading.slow_ios) = (0, 0);
        self.due = None;
    }

    /// Records a completed I/O.
    #[inline]
    pub(super) fn ended(&mut self, lat_ns: Ns) {
        self.reading.ios += 1;
        if lat_ns > self.goal.target_ns {
            self.reading.slow_ios += 1;
            if self.goal.percentile >= 100.0 && self.begun_ns.is_some() && !self.is_settled() {
                self.due.get_or_insert(Verdict::Missed);
            }
        }
    }

    /// When the next check is due.
    pub(super) fn due_ns(&self) -> Ns {
        match self.begun_ns {
            Some(_) => (self.window_begun_ns + self.window_ns).min(self.deadline_ns),
            None => Ns::MAX,
        }
    }

    /// Checks whether a window is over.
    pub(super) fn look(&mut self, now: Ns) {
        if self.begun_ns.is_none() || self.due.is_some() {
            return;
        }
        if now >= self.deadline_ns {
            self.due = Some(Verdict::TimeIsUp);
        } else if now >= self.window_begun_ns + self.window_ns {
            match self.reading.ios {
                // Nothing completed in it, so there is no verdict yet.
                0 => self.window_begun_ns = now,
                _ => self.due = Some(self.verdict()),
            }
        }
    }

    fn verdict(&self) -> Verdict {
        let kept = self.reading.ios - self.reading.slow_ios;
        if 100.0 * kept as f64 / self.reading.ios as f64 >= self.goal.percentile {
            Verdict::Kept
        } else {
            Verdict::Missed
        }
    }

    /// Decides what to do after a window.
    pub(super) fn step(&mut self, verdict: Verdict) -> Step {
        if self.is_settled() {
            return Step::End;
        }
        if verdict != Verdict::TimeIsUp {
            self.reading.windows += 1;
        }
        let step = match verdict {
            // The last depth tried may not have been judged.
            Verdict::TimeIsUp => Step::Measure(self.low.max(1).min(self.depth)),
            Verdict::Kept => self.kept(),
            Verdict::Missed => self.missed(),
        };
        if let Step::Try(depth) | Step::Measure(depth) = step {
            self.depth = depth;
        }
        step
    }

    fn kept(&mut self) -> Step {
        self.low = self.depth;
        if self.high == Some(self.depth + 1) {
            self.stable += 1;
            if self.stable >= TRY_AGAIN_AFTER {
                self.stable = 0;
                self.high = Some(self.depth + 2);
            }
        }
        let next = match self.high {
            Some(high) => self.depth.midpoint(high),
            None => self.depth.saturating_mul(2),
        };
        let next = next.min(self.most);
        if next == self.depth && !self.goal.adapts { Step::Measure(next) } else { Step::Try(next) }
    }

    fn missed(&mut self) -> Step {
        self.stable = 0;
        if self.depth == 1 {
            return match (self.goal.percentile >= 100.0, self.goal.adapts) {
                (true, _) => Step::Fail,
                (false, true) => Step::Try(1),
                (false, false) => Step::Measure(1),
            };
        }
        self.high = Some(self.depth);
        if self.low == self.depth {
            self.low -= 1;
        }
        Step::Try(self.depth.midpoint(self.low))
    }

    /// Measures the depth that was found from now on.
    pub(super) fn measure(&mut self, now: Ns) {
        self.measuring = true;
        self.deadline_ns = Ns::MAX;
        self.reading.searched_ns = now - self.begun_ns.unwrap_or(now);
    }

    pub(super) fn reading(&self) -> SearchReading {
        SearchReading { depth: self.depth, ..self.reading }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates a search from 1 to `most` on a device that misses beyond some limit. Returns the depths tried and the
    /// final step.
    fn run(most: u32, percentile: f64, limit: impl Fn(u32) -> bool) -> (Vec<u32>, Step) {
        let mut pace = PaceOptions::default();
        pace.latency.target_ns = Some(1000);
        pace.latency.window_ns = 100;
        pace.latency.percentile = percentile;
        let mut search = Search::new(&pace, most).unwrap();
        search.begin(0, None);
        let mut tried = Vec::new();
        let mut now = 0;
        while tried.len() < 100 {
            tried.push(search.depth);
            let slow = if limit(search.depth) { 1 } else { 3 };
            for io in 0..100 {
                search.ended(if io < slow { 1001 } else { 1000 });
            }
            now += 100;
            search.look(now);
            let step = search.step(search.due.unwrap());
            if !matches!(step, Step::Try(_)) {
                return (tried, step);
            }
            search.begin_window(now);
        }
        panic!("it does not end: {tried:?}");
    }

    #[test]
    fn the_depth_doubles_until_one_misses_and_then_halves_the_distance() {
        let (tried, step) = run(64, 99.0, |depth| depth <= 21);
        assert_eq!(tried, [1, 2, 4, 8, 16, 32, 24, 20, 22, 21]);
        assert_eq!(step, Step::Measure(21));
    }

    #[test]
    fn every_limit_is_found_also_at_the_depth_asked_for_and_just_below_it() {
        for most in [1, 2, 3, 7, 8, 32, 64] {
            for limit in 1..=most + 1 {
                let (_, step) = run(most, 99.0, |depth| depth <= limit);
                assert_eq!(step, Step::Measure(limit.min(most)), "{limit} of {most}");
            }
        }
    }

    #[test]
    fn a_depth_that_no_longer_keeps_the_target_is_left() {
        let calls = std::cell::Cell::new(0);
        let (tried, step) = run(64, 99.0, |depth| {
            calls.set(calls.get() + 1);
            // The device becomes slower after five windows.
            depth <= if calls.get() <= 5 { 16 } else { 2 }
        });
        assert_eq!(step, Step::Measure(2), "{tried:?}");
    }

    #[test]
    fn one_at_a_time_that_misses_is_measured_or_fails_where_all_must_keep_it() {
        assert_eq!(run(64, 99.0, |_| false), (vec![1], Step::Measure(1)));
        assert_eq!(run(64, 100.0, |_| false), (vec![1], Step::Fail));
        // Exactly the requested share is enough.
        assert_eq!(run(64, 97.0, |_| false).1, Step::Measure(64));
    }

    #[test]
    fn time_that_is_up_measures_the_last_depth_that_kept_the_target() {
        let mut pace = PaceOptions::default();
        pace.latency.target_ns = Some(1000);
        pace.latency.window_ns = 100;
        let mut search = Search::new(&pace, 64).unwrap();
        search.begin(0, Some(250));
        for now in [100, 200] {
            search.ended(10);
            search.look(now);
            let due = search.due.take().unwrap();
            assert_eq!(search.step(due), Step::Try(search.depth));
            search.begin_window(now);
        }
        assert_eq!((search.depth, search.due_ns()), (4, 250));
        search.look(250);
        assert_eq!(search.step(search.due.unwrap()), Step::Measure(2));
        // A window without completions has no verdict.
        search.begin_window(250);
        search.deadline_ns = Ns::MAX;
        search.look(350);
        assert_eq!((search.due, search.due_ns()), (None, 450));
    }

    #[test]
    fn a_depth_that_goes_on_adapting_comes_back_to_what_it_left() {
        let mut pace = PaceOptions::default();
        pace.latency.target_ns = Some(1000);
        pace.latency.window_ns = 100;
        pace.latency.percentile = 99.0;
        pace.latency.adapts = true;
        let mut search = Search::new(&pace, 8).unwrap();
        let steps: Vec<u32> = (0..16)
            .map(|window| {
                let kept = search.depth <= if window < 8 { 5 } else { 8 };
                let verdict = if kept { Verdict::Kept } else { Verdict::Missed };
                match search.step(verdict) {
                    Step::Try(depth) => depth,
                    other => panic!("{other:?}"),
                }
            })
            .collect();
        assert_eq!(steps, [2, 4, 8, 6, 5, 5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8]);
    }
}
