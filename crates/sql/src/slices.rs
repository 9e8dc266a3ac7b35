//! LOOP=server: how many operations one request gives to a server, and when each of them happened.
//!
//! The server tells its clock at the end of each operation; those instants are laid between our two, so a slow
//! network is no operation's time. How a slice is written down and performed is each database's own.

use assay_measure::clock::Ns;
use assay_run::engine::{EngineError, Op, OpError, Outcome, SliceDone};
use assay_run::plan::Plan;

/// Operations of the first slice.
pub(crate) const OPS_FIRST: usize = 16;
pub(crate) const NS_PER_US: u64 = 1000;
/// More rows than any operation touches: what a server claims beyond is kept from overflowing sums.
const ROWS_MAX: i64 = 1 << 40;

/// A loop that runs in the server cannot heed what only the client's clock decides.
///
/// # Errors
/// `Usage` names the parameter that does not go with it.
pub(crate) fn refuse_unfit(plan: &Plan) -> Result<(), EngineError> {
    let refused = [
        (plan.rate_per_s > 0, "RATE", "0"),
        (plan.think.is_some(), "THINK_TM_FREQUENCY", "0"),
        (plan.commit_every > 1, "COMMIT_EVERY", "1"),
    ];
    match refused.into_iter().find(|(asked, ..)| *asked) {
        None => Ok(()),
        Some((_, name, out)) => Err(EngineError::Usage(format!(
            "{name} needs LOOP=client: with LOOP=server the server itself starts each operation and commits it; use \
             LOOP=client or {name}={out}"
        ))),
    }
}

/// An operation of another workload came to a slice.
pub(crate) fn foreign() -> EngineError {
    EngineError::Usage(OpError::not_ours().text)
}

/// Whether an operation of a session is in the hot schema, not its own.
///
/// # Errors
/// It is in neither.
pub(crate) fn is_hot(op: &Op, home: u32) -> Result<bool, EngineError> {
    let schema = match *op {
        Op::Select { schema, .. } | Op::Update { schema, .. } | Op::Scan { schema } => schema,
        Op::Call { .. } => return Err(foreign()),
    };
    match schema {
        schema if schema == home => Ok(false),
        1 => Ok(true),
        _ => Err(EngineError::Unusable(format!("an operation of schema {schema} in a session of schema {home}"))),
    }
}

/// What a server tells of a slice.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// Its clock when the first operation began, us.
    pub(crate) began_us: i64,
    /// And at the end of each.
    pub(crate) ends_us: Vec<i64>,
    pub(crate) rows: Vec<i64>,
    /// Why the last one failed.
    pub(crate) failed: Option<OpError>,
}

impl Answer {
    /// For a slice of `asked` operations: when they ended by the server's clock and the rows of each, `None` where they cannot be read.
    ///
    /// # Errors
    /// What is wrong with it: nobody knows then what the slice did.
    pub(crate) fn of(
        asked: usize,
        began_us: Option<i64>,
        (ends_us, rows): (Option<Vec<i64>>, Option<Vec<i64>>),
        failed: Option<OpError>,
    ) -> Result<Self, String> {
        let (Some(began_us), Some(ends_us), Some(rows)) = (began_us, ends_us, rows) else {
            return Err(format!("the server's answer for {asked} operations is missing or cannot be read"));
        };
        if ends_us.len() != rows.len() || ends_us.len() > asked {
            return Err(format!(
                "the server returned {} results and {} times for {asked} operations",
                rows.len(),
                ends_us.len()
            ));
        }
        Ok(Self { began_us, ends_us, rows, failed })
    }
}

/// Of one session.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Operations to ask for.
    pub(crate) ops: usize,
    most: usize,
    /// No slice may be longer.
    longest_ns: Ns,
    /// The time of the last slice beyond that of its operations.
    overhead_ns: Ns,
}

impl Pace {
    /// At most so many operations, which last at most so long.
    pub(crate) fn new(most: usize, longest_ns: Ns) -> Self {
        Self { ops: OPS_FIRST.min(most), most, longest_ns, overhead_ns: 0 }
    }

    /// How long the operations of a slice that is sent now may last.
    pub(crate) fn left_ns(&self, sent_ns: Ns, until_ns: Ns) -> Ns {
        until_ns.saturating_sub(sent_ns + self.overhead_ns / 2).min(self.longest_ns)
    }

    /// The whole slice failed.
    pub(crate) fn nothing_done(failed: OpError, begin_ns: Ns, end_ns: Ns) -> SliceDone {
        SliceDone { begin_ns, outcomes: vec![Outcome { end_ns, result: Err(failed) }], end_ns }
    }

    /// Lays the server's instants between our two: what the call took beside its operations is split evenly
    /// between the way there and the way back.
    pub(crate) fn timed(&mut self, asked: usize, (sent_ns, end_ns): (Ns, Ns), answer: Answer) -> SliceDone {
        // Whatever the server says its clock is: no sum of it may overflow.
        let offset_ns = |us: i64| {
            let us = us.saturating_sub(answer.began_us).max(0) as u64;
            us.saturating_mul(NS_PER_US)
        };
        let worked_ns = answer.ends_us.last().map_or(0, |us| offset_ns(*us));
        let passed_ns = end_ns - sent_ns;
        self.overhead_ns = passed_ns.saturating_sub(worked_ns);
        let begin_ns = sent_ns + self.overhead_ns / 2;
        let done = answer.ends_us.len();
        self.ops = if done == asked && answer.failed.is_none() {
            (asked * 2).min(self.most)
        } else {
            (done + done / 4 + OPS_FIRST).min(self.most)
        };
        let mut latest_ns = begin_ns;
        let mut outcomes: Vec<Outcome> = answer
            .ends_us
            .iter()
            .zip(&answer.rows)
            .map(|(us, rows)| {
                // The server's clock may be set back; ours is not.
                latest_ns = latest_ns.max(begin_ns.saturating_add(offset_ns(*us)).min(end_ns));
                Outcome { end_ns: latest_ns, result: Ok((*rows).clamp(0, ROWS_MAX) as u64) }
            })
            .collect();
        if let Some(error) = answer.failed {
            // One that failed before it began has no instant of its own.
            let end_ns = outcomes.pop().map_or(latest_ns, |last| last.end_ns);
            outcomes.push(Outcome { end_ns, result: Err(error) });
        }
        SliceDone { begin_ns, outcomes, end_ns }
    }
}
