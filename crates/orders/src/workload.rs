//! What a session of order entry does next: a transaction by weight, its arrival time, and the number from which its
//! inputs are drawn. All of this is a function of (seed, session), whatever happens during the run.

use crate::live::Live;
use crate::mix::{ALL, KINDS, Tx};
use crate::params::{Asked, partitions};
use assay_measure::clock::{NS_PER_S, Ns};
use assay_measure::config::Settings;
use assay_measure::prng::{Purpose, Stream};
use assay_run::engine::{EngineError, Op};
use assay_run::plan::{Arrivals, Plan, Think};
use assay_run::workload::{LiveLine, Step, Steps, Workload};

/// The name of the workload, the command and the record kind.
pub const NAME: &str = "orders";
/// Name of its operations in reports.
pub const OPERATIONS: &str = "transactions";

/// Shortest and longest pause before a retry.
const BACK_OFF_NS: (Ns, Ns) = (1_000_000, 64_000_000);

/// The workload; see the module.
#[derive(Clone, Debug)]
pub struct OrderEntry(pub Asked);

impl OrderEntry {
    /// Applies the settings to the plan of a run.
    ///
    /// # Errors
    /// As [`Asked::new`].
    pub fn shape(settings: &Settings, plan: &mut Plan) -> Result<(), EngineError> {
        let asked = Asked::new(settings)?;
        partitions(settings)?;
        let usual = asked.mix.preset().map_or(1, |preset| preset.users);
        let sessions = settings.whole("SESSIONS").map_or(usual, |n| u32::try_from(n).unwrap_or(u32::MAX));
        plan.schemas = 1;
        plan.threads_per_schema = sessions;
        plan.sessions_asked = Some(sessions);
        Self(asked).pace(plan);
        Ok(())
    }

    /// Copies the settings of the driver loop into its plan.
    fn pace(&self, plan: &mut Plan) {
        let Asked { inter, delay_ns, shared, .. } = self.0;
        plan.update_pct = 0;
        plan.arrivals = (shared || self.0.poisson).then_some(Arrivals {
            at_random: self.0.poisson,
            shared,
            waiting_max: self.0.queue_limit,
        });
        // The loop accounts for pauses only if the plan says that there are some.
        plan.think = (inter.is_some() || delay_ns > 0).then_some(Think {
            frequency: 1,
            min_ns: inter.min_ns,
            max_ns: inter.max_ns,
        });
    }
}

impl Workload for OrderEntry {
    fn name(&self) -> &'static str {
        NAME
    }

    fn kinds(&self) -> &'static [&'static str] {
        KINDS
    }

    fn session(&self, plan: &Plan, session: u32, _home: u32) -> Box<dyn Steps> {
        let stream = |purpose| Stream::new(plan.seed, u64::from(session), purpose);
        let rate = plan.rate_per_s as f64 / f64::from(plan.sessions_of_fleet());
        Box::new(Terminal {
            asked: self.0.clone(),
            mix: stream(Purpose::Mix),
            deck: Vec::new(),
            inputs: stream(Purpose::Keys),
            pauses: stream(Purpose::ThinkLength),
            arrivals: stream(Purpose::Arrivals),
            ramp_ns: u64::from((session - 1) / self.0.group.max(1)) * self.0.delay_ns,
            gap_ns: (self.0.poisson && !self.0.shared && rate > 0.0).then(|| NS_PER_S as f64 / rate),
            due_ns: 0.0,
            first: true,
        })
    }

    fn rows_expected(&self, _plan: &Plan, _op: &Op) -> Option<u64> {
        None
    }

    fn live(&self, sessions: usize) -> Option<Box<dyn LiveLine>> {
        Some(Box::new(Live::new(sessions)))
    }

    fn attempts(&self) -> u32 {
        self.0.retries + 1
    }

    fn back_off_ns(&self, attempt: u32, word: u64) -> Ns {
        let (first, most) = BACK_OFF_NS;
        let longest = (first << attempt.min(6)).min(most);
        longest / 2 + ((u128::from(word) * u128::from(longest / 2)) >> 64) as u64
    }
}

/// The source of one session's operations.
#[derive(Debug)]
struct Terminal {
    asked: Asked,
    mix: Stream,
    /// Remaining cards of the deck; empty if each transaction is drawn independently.
    deck: Vec<Tx>,
    inputs: Stream,
    pauses: Stream,
    arrivals: Stream,
    ramp_ns: Ns,
    /// Mean interval of random arrivals.
    gap_ns: Option<f64>,
    due_ns: f64,
    first: bool,
}

impl Terminal {
    /// Draws the next transaction.
    fn draw(&mut self) -> Tx {
        let (mix, random) = (&self.asked.mix, &mut self.mix);
        if !self.asked.deck {
            return mix.pick(random.below(mix.total().into()) as u32);
        }
        if self.deck.is_empty() {
            self.deck.extend((0..mix.total()).map(|card| mix.pick(card)));
        }
        // Draws a random remaining card, which shuffles the deck as it goes.
        let at = random.below(self.deck.len() as u64) as usize;
        self.deck.swap_remove(at)
    }
}

impl Steps for Terminal {
    fn next(&mut self, plan: &Plan) -> Step {
        let tx = self.draw();
        let op = Op::Call { kind: tx.index() as u8, number: self.inputs.next_u64() };
        let pause = if std::mem::take(&mut self.first) {
            (self.ramp_ns > 0).then_some(self.ramp_ns)
        } else {
            self.asked.inter.is_some().then(|| self.asked.inter.length(self.pauses.next_u64()))
        };
        let start_ns = self.gap_ns.map(|gap_ns| {
            // Exponential intervals: 1 - u is above 0.
            self.due_ns -= gap_ns * (1.0 - self.arrivals.uniform_f64()).ln();
            self.due_ns as Ns
        });
        Step { think_ns: pause.filter(|_| plan.think.is_some()), start_ns, op, hot_spot: false, hot_schema: false }
    }
}

/// The transaction of an operation.
#[must_use]
pub fn tx_of(op: &Op) -> Option<(Tx, u64)> {
    match *op {
        Op::Call { kind, number } => ALL.get(usize::from(kind)).map(|tx| (*tx, number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::PRESET_NAMES;
    use crate::params::tests::settings;
    use proptest::prelude::*;

    fn steps(given: &[(&str, &str)], rate: u64, session: u32, n: usize) -> Vec<Step> {
        let workload = OrderEntry(Asked::new(&settings(given)).expect("it fits"));
        let mut plan = Plan { rate_per_s: rate, ..Plan::plain(1, 4, 1000) };
        workload.pace(&mut plan);
        let mut source = workload.session(&plan, session, 1);
        (0..n).map(|_| source.next(&plan)).collect()
    }

    #[test]
    fn a_session_does_the_same_again_and_each_another_thing() {
        assert_eq!(steps(&[], 0, 1, 100), steps(&[], 0, 1, 100));
        assert_ne!(steps(&[], 0, 1, 100), steps(&[], 0, 2, 100));
    }

    #[test]
    fn weights_come_out_within_five_sigma() {
        let n = 40_000;
        let steps = steps(&[("ORDERS_MIX", "classic")], 0, 3, n);
        let mut seen = [0_f64; 9];
        for step in &steps {
            seen[step.op.kind()] += 1.0;
        }
        for (tx, seen) in ALL.into_iter().zip(seen) {
            let weight = [15.0, 10.0, 90.0, 40.0, 5.0, 15.0, 2.0, 1.0, 1.0][tx.index()];
            let p = weight / 179.0;
            let sigma = (n as f64 * p * (1.0 - p)).sqrt();
            assert!((seen - n as f64 * p).abs() < 5.0 * sigma, "{tx:?} {seen}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn whole_decks_have_exactly_the_weights(session in 1_u32..5, decks in 1_u32..20, preset in 0_usize..3) {
            let given = [("ORDERS_MIX", PRESET_NAMES[preset]), ("ORDERS_MIX_DRAW", "deck")];
            let mix = Asked::new(&settings(&given)).expect("it fits").mix;
            let steps = steps(&given, 0, session, (decks * mix.total()) as usize);
            let mut seen = [0; 9];
            steps.iter().for_each(|step| seen[step.op.kind()] += 1);
            prop_assert_eq!(seen, mix.weights.map(|weight| weight * decks));
        }
    }

    #[test]
    fn a_deck_is_shuffled_anew_and_the_same_for_a_seed_whatever_the_pace() {
        let deck = ("ORDERS_MIX_DRAW", "deck");
        let kinds = |given: &[(&str, &str)], rate, session| {
            let steps = steps(given, rate, session, 250);
            let ops: Vec<Op> = steps.into_iter().map(|step| step.op).collect();
            ops
        };
        let closed = kinds(&[deck], 0, 1);
        assert_eq!(kinds(&[deck, ("THINK_INTER_MAX", "1")], 0, 1), closed);
        assert_eq!(kinds(&[deck, ("ARRIVALS", "poisson")], 400, 1), closed);
        let names = |ops: &[Op]| ops.iter().map(Op::kind).collect::<Vec<_>>();
        // Two decks of 125 cards.
        assert_ne!(names(&closed[..125]), names(&closed[125..]));
        assert_ne!(names(&closed), names(&kinds(&[deck], 0, 2)));
    }

    #[test]
    fn arrivals_at_random_have_the_rate_and_a_random_distance() {
        let given = [("ARRIVALS", "poisson"), ("ARRIVALS_QUEUE", "session")];
        let steps = steps(&given, 400, 2, 20_000);
        let starts: Vec<f64> = steps.iter().filter_map(|step| step.start_ns).map(|ns| ns as f64).collect();
        let gaps: Vec<f64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // 100 a second for each of four sessions.
        assert!((mean / 1e7 - 1.0).abs() < 0.04, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.05, "{variance}");
    }

    #[test]
    fn groups_begin_one_after_the_other() {
        let given = [("LOGON_GROUP", "2"), ("LOGON_DELAY", "0.5")];
        let first = |session| steps(&given, 0, session, 2).iter().map(|step| step.think_ns).collect::<Vec<_>>();
        assert_eq!(first(1), [None, None]);
        assert_eq!(first(2), [None, None]);
        assert_eq!(first(3), [Some(500_000_000), None]);
    }

    #[test]
    fn attempts_come_after_growing_pauses() {
        let workload = OrderEntry(Asked::new(&settings(&[])).expect("it fits"));
        assert_eq!(workload.attempts(), 6);
        for attempt in 0..40 {
            let [least, most] = [0, u64::MAX].map(|word| workload.back_off_ns(attempt, word));
            assert!(least <= most && most <= BACK_OFF_NS.1 && least >= BACK_OFF_NS.0 / 2);
        }
    }
}
