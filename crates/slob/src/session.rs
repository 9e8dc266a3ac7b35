//! The SLOB workload: the next operation of a session (slob-method 4.3).
//!
//! A session's operations are a function of (plan, session number): they do not depend on threads, clocks or answers of
//! the engine. Each feature draws from its own random stream, so that no two become correlated. The driver loop calls
//! [`Session`]'s `next` once per operation; it takes about 20 ns and allocates nothing.

#[cfg(test)]
mod tests;

use assay_measure::clock::Ns;
use assay_measure::prng::{Purpose, Stream, scramble};
use assay_run::plan::{Compat, Edge, Mix, Plan};
use assay_run::work::{Op, Step};
use assay_run::workload::Steps;

/// Operations (or selects) per window of the mix.
const WINDOW: u64 = 100;
/// SLOB 2.5.3 rounds its pauses to hundredths of a second.
const SLOB253_THINK_STEP_NS: u64 = 10_000_000;
/// Pauses are drawn in whole microseconds.
const THINK_STEP_NS: u64 = 1000;

/// The source of one session's operations.
#[derive(Clone, Debug)]
pub struct Session {
    home: u32,
    i: u64,
    keys: Stream,
    mix: Quota,
    scan: Quota,
    old_mix: OldMix,
    hot_spot: Due,
    hot_schema: Due,
    think: Due,
    think_length: Stream,
    /// Identifies this session and run inside a stamp.
    stamp_base: u64,
    run_key: u64,
    uncommitted: u64,
    /// The last key drawn, initially 1: COMPAT=slob253 derives its think time from it.
    last_key: u64,
}

impl Session {
    /// Creates session `session` (from 1) whose own schema is `home` (from 1).
    #[must_use]
    pub fn new(plan: &Plan, session: u32, home: u32) -> Self {
        let stream = |purpose| Stream::new(plan.seed, u64::from(session), purpose);
        let hot_spot_frequency = plan.hot_spot.map_or(0, |hot| hot.frequency);
        let think_frequency = plan.think.map_or(0, |think| think.frequency);
        Self {
            home,
            i: 0,
            keys: stream(Purpose::Keys),
            mix: Quota::new(plan.update_pct, stream(Purpose::Mix)),
            scan: Quota::new(plan.scan_pct, stream(Purpose::Scan)),
            old_mix: OldMix::default(),
            hot_spot: Due::new(hot_spot_frequency, stream(Purpose::HotSpot)),
            hot_schema: Due::new(plan.hot_schema_frequency, stream(Purpose::HotSchema)),
            think: Due::new(think_frequency, stream(Purpose::Think)),
            think_length: stream(Purpose::ThinkLength),
            stamp_base: u64::from(session) << 44,
            run_key: scramble(u64::from(plan.run_stamp).wrapping_add(1)),
            uncommitted: 0,
            last_key: 1,
        }
    }

    fn next_exact(&mut self, plan: &Plan) -> Step {
        let think_ns = self.think.hit().then(|| self.pause(plan, THINK_STEP_NS));
        let hot_schema = self.hot_schema.hit();
        let schema = if hot_schema { 1 } else { self.home };
        let in_window = self.hot_spot.hit();
        let (update, scan) = match plan.mix {
            Mix::Exact => {
                let update = self.mix.exact();
                (update, !update && self.scan.exact())
            }
            Mix::Bernoulli => {
                let update = self.mix.bernoulli();
                (update, !update && self.scan.bernoulli())
            }
            Mix::Slob253 => {
                // The old rule tests the parity of a drawn key; the range itself is drawn below.
                let parity = self.keys.below(2);
                self.old_mix.next(plan, parity, self.i)
            }
        };
        let op = if scan {
            Op::Scan { schema }
        } else {
            let width = if update { plan.update_work_unit } else { plan.work_unit };
            let first_key = self.first_key(plan, in_window, update, u64::from(width));
            self.range_op(plan, schema, first_key, width, update)
        };
        Step { think_ns, start_ns: None, op, hot_spot: in_window && !scan, hot_schema }
    }

    /// Draws the first key of a range of `width` keys.
    fn first_key(&mut self, plan: &Plan, in_window: bool, update: bool, width: u64) -> u64 {
        match plan.hot_spot {
            Some(hot) if in_window => hot.offset_blocks + 1 + self.keys.below(hot.size_blocks - width + 1),
            _ if update && plan.update_keys < plan.scale => 1 + self.keys.below(plan.update_keys - width + 1),
            _ if plan.edge == Edge::Wrap => 1 + self.keys.below(plan.scale),
            _ => 1 + self.keys.below(plan.scale - width + 1),
        }
    }

    /// SLOB 2.5.3's own order and counter rules (slob-method 4.1, 4.2).
    fn next_slob253(&mut self, plan: &Plan) -> Step {
        let due = |frequency: u64, counter: u64| frequency > 0 && counter.is_multiple_of(frequency);
        let think_frequency = plan.think.map_or(0, |think| think.frequency);
        let think_ns = due(think_frequency, self.last_key).then(|| self.pause(plan, SLOB253_THINK_STEP_NS));
        let hot_schema = due(plan.hot_schema_frequency, self.i);
        let schema = if hot_schema { 1 } else { self.home };
        let unit = u64::from(plan.work_unit);
        let mut upper = self.rounded_between(unit + 1, plan.scale - unit);
        let in_window = match plan.hot_spot {
            Some(hot) if due(hot.frequency, self.i) => {
                // The original starts up to w-1 keys below the window; keys below 1 do not exist.
                let low = (hot.offset_blocks + 1).max(unit);
                let high = (hot.offset_blocks + hot.size_blocks - unit).max(low);
                upper = self.rounded_between(low, high);
                true
            }
            _ => false,
        };
        self.last_key = upper;
        let (update, scan) = match plan.mix {
            Mix::Slob253 => self.old_mix.next(plan, upper, self.i),
            Mix::Exact => {
                let update = self.mix.exact();
                (update, !update && self.scan.exact())
            }
            Mix::Bernoulli => {
                let update = self.mix.bernoulli();
                (update, !update && self.scan.bernoulli())
            }
        };
        let op = if scan {
            Op::Scan { schema }
        } else {
            let width = if update { plan.update_width() } else { plan.select_width() };
            // Exclusive at both ends: keys upper-w+1 ..= upper-1.
            let first_key = upper.saturating_sub(u64::from(width)).max(1);
            self.range_op(plan, schema, first_key, width, update)
        };
        Step { think_ns, start_ns: None, op, hot_spot: in_window && !scan, hot_schema }
    }

    /// A uniform real in `[low, high]` rounded to a whole number: each end gets half the weight.
    fn rounded_between(&mut self, low: u64, high: u64) -> u64 {
        let span = (high - low) as f64;
        low + (self.keys.uniform_f64() * span).round() as u64
    }

    fn range_op(&mut self, plan: &Plan, schema: u32, first_key: u64, width: u32, update: bool) -> Op {
        if !update {
            return Op::Select { schema, first_key, width };
        }
        self.uncommitted += 1;
        let commit = self.uncommitted >= plan.commit_every;
        if commit {
            self.uncommitted = 0;
        }
        Op::Update {
            schema,
            first_key,
            width,
            // A bijection of (session, i) within a run, permuted by the run's own key.
            stamp: scramble((self.stamp_base | self.i) ^ self.run_key),
            commit,
        }
    }

    /// A pause drawn uniformly between the limits, in whole steps.
    fn pause(&mut self, plan: &Plan, step_ns: u64) -> Ns {
        let Some(think) = plan.think else { return 0 };
        let span = think.max_ns - think.min_ns;
        if step_ns == THINK_STEP_NS {
            return think.min_ns + self.think_length.below(span / step_ns + 1) * step_ns;
        }
        let drawn = think.min_ns as f64 + self.think_length.uniform_f64() * span as f64;
        (drawn / step_ns as f64).round() as u64 * step_ns
    }
}

impl Steps for Session {
    fn next(&mut self, plan: &Plan) -> Step {
        let step = match plan.compat {
            Compat::None => self.next_exact(plan),
            Compat::Slob253 => self.next_slob253(plan),
        };
        self.i += 1;
        step
    }
}

/// Exactly `pct` hits in every window of 100, at uniformly random positions
/// (selection sampling: Knuth, TAOCP 2, algorithm 3.4.2 S).
#[derive(Clone, Debug)]
struct Quota {
    pct: u64,
    left: u64,
    needed: u64,
    stream: Stream,
}

impl Quota {
    fn new(pct: u32, stream: Stream) -> Self {
        Self { pct: u64::from(pct), left: 0, needed: 0, stream }
    }

    fn exact(&mut self) -> bool {
        if self.pct == 0 || self.pct == WINDOW {
            return self.pct > 0;
        }
        if self.left == 0 {
            self.left = WINDOW;
            self.needed = self.pct;
        }
        let hit = self.stream.below(self.left) < self.needed;
        self.left -= 1;
        self.needed -= u64::from(hit);
        hit
    }

    fn bernoulli(&mut self) -> bool {
        if self.pct == 0 || self.pct == WINDOW {
            return self.pct > 0;
        }
        self.stream.below(WINDOW) < self.pct
    }
}

/// One random member of each group of `frequency` is a hit; 0 never hits.
#[derive(Clone, Debug)]
struct Due {
    frequency: u64,
    position: u64,
    target: u64,
    stream: Stream,
}

impl Due {
    fn new(frequency: u64, stream: Stream) -> Self {
        Self { frequency, position: 0, target: 0, stream }
    }

    fn hit(&mut self) -> bool {
        if self.frequency <= 1 {
            return self.frequency == 1;
        }
        if self.position == 0 {
            self.target = self.stream.below(self.frequency);
        }
        let hit = self.position == self.target;
        self.position += 1;
        if self.position == self.frequency {
            self.position = 0;
        }
        hit
    }
}

/// SLOB 2.5.3's quota windows: hits bunch at the start of a window, as published.
#[derive(Clone, Debug, Default)]
struct OldMix {
    ops: u64,
    updates: u64,
    selects: u64,
    scans: u64,
}

impl OldMix {
    /// Decides (update, scan) for the drawn key `key` and loop counter `i`.
    fn next(&mut self, plan: &Plan, key: u64, i: u64) -> (bool, bool) {
        let quota_open = self.updates < u64::from(plan.update_pct);
        let update = plan.update_pct == 100 || quota_open && key.is_multiple_of(2);
        let mut scan = false;
        if update {
            self.updates += 1;
        } else {
            let open = self.scans < u64::from(plan.scan_pct);
            scan = plan.scan_pct == 100 || open && i.is_multiple_of(2);
            self.scans += u64::from(scan);
            self.selects += 1;
            if self.selects == WINDOW {
                (self.selects, self.scans) = (0, 0);
            }
        }
        self.ops += 1;
        if self.ops == WINDOW {
            (self.ops, self.updates) = (0, 0);
        }
        (update, scan)
    }
}
