//! LOOP=server: how many operations one request hands to a server, and when each of them happened.
//!
//! The server reports its clock at the end of each operation. assay maps those times between its own two, so that a
//! slow network does not count as operation time. Each database encodes and runs a slice in its own way.

use crate::session::Failed;
use assay_measure::clock::{Clock, Ns};
use assay_run::engine::{EngineError, Op, OpError, Outcome, Slice, SliceDone};
use assay_run::plan::Plan;

/// Operations in the first slice.
pub(crate) const OPS_FIRST: usize = 16;
pub(crate) const NS_PER_US: u64 = 1000;
/// More rows than any operation touches: larger numbers from a server are cut to this, so that sums do not overflow.
const ROWS_MAX: i64 = 1 << 40;

/// Refuses settings that a loop inside the server cannot follow, since only the client's clock decides on them.
///
/// # Errors
/// `Usage` names the parameter that does not fit.
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

/// Operation codes; codes for the hot schema follow.
const SELECT: u8 = 0;
const UPDATE: u8 = 1;
const SCAN: u8 = 2;
pub(crate) const HOT: u8 = 3;

/// The code of an operation, and its first key, for a session whose own schema is `home`.
///
/// # Errors
/// The operation is in another schema, or another workload's.
pub(crate) fn encoded(op: &Op, home: u32) -> Result<(u8, u64), EngineError> {
    let (code, schema, first_key) = match *op {
        Op::Select { schema, first_key, .. } => (SELECT, schema, first_key),
        Op::Update { schema, first_key, .. } => (UPDATE, schema, first_key),
        Op::Scan { schema } => (SCAN, schema, 0),
        Op::Call { .. } => return Err(EngineError::Usage(OpError::not_ours().text)),
    };
    match schema {
        schema if schema == home => Ok((code, first_key)),
        1 => Ok((HOT + code, first_key)),
        _ => Err(EngineError::Unusable(format!("an operation of schema {schema} in a session of schema {home}"))),
    }
}

/// What one turn of a server's loop performs, by the code in `variable`, without operations that the plan never
/// requests; `words` are a server's statements for a schema: select, update, scan.
pub(crate) fn turn(plan: &Plan, home: u32, variable: &str, words: [&dyn Fn(u32) -> String; 3]) -> String {
    let wanted = [plan.update_pct < 100 && plan.scan_pct < 100, plan.update_pct > 0, plan.scan_pct > 0];
    let hot = (plan.hot_schema_frequency > 0 && home != 1).then_some((HOT, 1));
    let mut kinds = Vec::new();
    for (base, schema) in [Some((SELECT, home)), hot].into_iter().flatten() {
        let wanted = (base..).zip(words).zip(wanted).filter(|(_, wanted)| *wanted);
        kinds.extend(wanted.map(|((code, words), _)| (code, words(schema))));
    }
    match kinds.as_slice() {
        [(_, only)] => only.clone(),
        several => {
            let cases: Vec<String> = several.iter().map(|(code, sql)| format!("when {code} then {sql}")).collect();
            format!("case {variable} {} end case;", cases.join(" "))
        }
    }
}

/// A server's answer to a slice.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// Server clock at the start of the first operation, us.
    pub(crate) began_us: i64,
    /// Server clock at the end of each operation.
    pub(crate) ends_us: Vec<i64>,
    pub(crate) rows: Vec<i64>,
    /// Why the last one failed.
    pub(crate) failed: Option<OpError>,
}

impl Answer {
    /// Parses the answer to a slice of `asked` operations: end times by the server's clock, and the rows of each, `None` where unreadable.
    ///
    /// # Errors
    /// What is wrong with the answer; the slice's outcome is then unknown.
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

/// Slice size control of one session.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Operations to request next.
    pub(crate) ops: usize,
    most: usize,
    /// Longest time a slice may take.
    longest_ns: Ns,
    /// Time of the last slice beyond its operations.
    overhead_ns: Ns,
}

impl Pace {
    /// At most so many operations, with at most this total time.
    pub(crate) fn new(most: usize, longest_ns: Ns) -> Self {
        Self { ops: OPS_FIRST.min(most), most, longest_ns, overhead_ns: 0 }
    }

    /// Time available for the operations of a slice sent now.
    pub(crate) fn left_ns(&self, sent_ns: Ns, until_ns: Ns) -> Ns {
        until_ns.saturating_sub(sent_ns + self.overhead_ns / 2).min(self.longest_ns)
    }

    /// Performs a slice: `ask` has the server work for so many us.
    pub(crate) fn performed(
        &mut self,
        clock: &Clock,
        slice: &Slice<'_>,
        ask: impl FnOnce(u64) -> Result<Answer, Failed>,
    ) -> Result<SliceDone, Failed> {
        let sent_ns = clock.now_ns();
        let answer = ask(self.left_ns(sent_ns, slice.until_ns) / NS_PER_US)?;
        let times = (sent_ns, clock.now_ns());
        Ok(self.timed(slice.ops.len(), times, answer))
    }

    /// Maps the server's times between our two. The time of the call beyond its operations is split evenly between
    /// request and answer.
    pub(crate) fn timed(&mut self, asked: usize, (sent_ns, end_ns): (Ns, Ns), answer: Answer) -> SliceDone {
        // No value of the server's clock may cause an overflow.
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
                // The server's clock may be set back; ours may not.
                latest_ns = latest_ns.max(begin_ns.saturating_add(offset_ns(*us)).min(end_ns));
                Outcome { end_ns: latest_ns, result: Ok((*rows).clamp(0, ROWS_MAX) as u64) }
            })
            .collect();
        if let Some(error) = answer.failed {
            // An operation that failed before it began has no time of its own.
            let end_ns = outcomes.pop().map_or(latest_ns, |last| last.end_ns);
            outcomes.push(Outcome { end_ns, result: Err(error) });
        }
        SliceDone { begin_ns, outcomes, end_ns }
    }
}
