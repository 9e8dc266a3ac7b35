//! A session of the SLOB method on any server: its statements, its transaction, its counts. A [`Link`] speaks to the
//! server.

use crate::counted::Counted;
use crate::lost::{closed, probed};
use crate::many::Talks;
use crate::patience::Wait;
use crate::pipelined::{Pipeline, TwoStep};
use crate::running::{Attachment, OnServer};
use assay_measure::clock::Clock;
use assay_measure::snapshot::{Fact, StatSet};
use assay_run::engine::{Assignment, Doing, Driver, Engine, EngineError, Op, OpError, Remarks, Slice, SliceDone};
use assay_run::plan::Plan;
use assay_run::workload::Workload;
use assay_slob::Slob;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// First and last key, both included.
pub(crate) type Keys = (u64, u64);

/// Why an operation failed.
pub(crate) struct Failed {
    pub(crate) error: OpError,
    /// The connection is lost.
    pub(crate) fatal: bool,
}

impl Failed {
    /// The session cannot perform such an operation.
    pub(crate) fn statement(text: String) -> Self {
        Self { error: OpError { class: "statement", text, retryable: false }, fatal: false }
    }
}

impl From<EngineError> for Failed {
    fn from(error: EngineError) -> Self {
        Self::statement(error.to_string())
    }
}

/// The statement of an operation that the plan must have.
pub(crate) fn there<C>(statement: &mut Option<C>) -> Result<&mut C, Failed> {
    statement.as_mut().ok_or_else(|| Failed::statement("the plan has no such operation".to_owned()))
}

/// A part of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Begin,
    Select(Keys),
    Update {
        keys: Keys,
        /// This update is a whole transaction.
        alone: bool,
    },
    Scan,
    Commit,
}

/// The connection of a session.
pub(crate) trait Link {
    /// The statements of one schema.
    type Calls;

    /// The server takes all steps of an operation in one request, and performs them as one transaction.
    const TOGETHER: bool = false;

    /// `None` if nobody can wait for its answers.
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Called when a wait has gone on for a while. An error ends the wait.
    fn may_wait(&mut self, _wait: &mut Wait) -> Result<(), Failed> {
        Ok(())
    }

    /// Sets the content of the next update.
    fn stamp(calls: &mut Self::Calls, plan: &Plan, stamp: u64, first_key: u64);

    /// Requests a step.
    fn ask(&mut self, calls: &mut Self::Calls, step: Step) -> Result<(), Failed>;

    /// Sends the requested steps.
    fn send(&mut self) -> Result<(), Failed> {
        Ok(())
    }

    /// Waits for the answer to the requested steps: the rows they touched.
    fn answer(&mut self) -> Result<u64, Failed>;

    fn commit(&mut self) -> Result<(), Failed>;

    fn rollback(&mut self) -> Result<(), Failed>;

    /// Operations of a slice that the server performs by itself; 0 if it performs none (LOOP=client).
    fn slice_ops(&self) -> usize;

    /// Has the server perform a slice.
    ///
    /// # Errors
    /// The slice was not performed, or its outcome is unknown.
    fn slice(&mut self, plan: &Plan, clock: &Clock, slice: Slice<'_>) -> Result<SliceDone, Failed>;

    /// Logs off.
    fn close(self)
    where
        Self: Sized,
    {
    }
}

/// A data set opened on a server.
pub(crate) trait Base: OnServer + Sized {
    type Link: Link;

    fn plan(&self) -> &Plan;

    /// Number of columns an update changes.
    fn columns(&self) -> usize;

    fn facts(&self) -> &[Fact];

    fn remarks(&self) -> Remarks {
        self.on().remarks()
    }

    /// Threads that drive the sessions.
    fn driver_threads(&self, sessions: usize, cpus: usize) -> usize;

    /// Connects a session whose own schema is `home`.
    fn connect(&self, number: u32, home: u32) -> Result<Self::Link, EngineError>;

    /// Prepares the statements of a schema, and verifies that the server executes them as intended.
    fn calls(&self, link: &mut Self::Link, schema: u32) -> Result<<Self::Link as Link>::Calls, EngineError>;

    /// Has the server publish the session's counters, on servers that do so on request.
    fn publish(&self, _link: &mut Self::Link) {}

    /// Ends the run, once.
    fn close(&self) -> Result<(), EngineError>;
}

/// An operation under way.
struct UnderWay {
    op: Op,
    steps: [Option<Step>; 4],
    /// Index of the next step.
    at: usize,
    /// Index of the schema's statements.
    calls: usize,
    rows: u64,
}

/// One session of a run.
pub(crate) struct Session<B: Base> {
    /// Counted from 1.
    number: u32,
    link: Option<B::Link>,
    /// Statements of each schema used so far: the session's own, and possibly the hot one.
    calls: Vec<(u32, <B::Link as Link>::Calls)>,
    doing: UnderWay,
    in_transaction: bool,
    counted: Counted,
    /// Why the session cannot continue.
    lost: Option<String>,
}

impl<B: Base> Session<B> {
    /// Connects, prepares, checks the plans, and performs one unmeasured select, which must touch as many rows as it
    /// requests.
    fn open(base: &B, (number, home): (u32, u32)) -> Result<Self, EngineError> {
        base.on().running().turn()?;
        let mut link = base.connect(number, home)?;
        let calls = base.calls(&mut link, home)?;
        let width = base.plan().select_width();
        let op = Op::Select { schema: home, first_key: 1, width };
        let mut session = Self {
            number,
            link: Some(link),
            calls: vec![(home, calls)],
            doing: UnderWay { op, steps: [None; 4], at: 0, calls: 0, rows: 0 },
            in_transaction: false,
            counted: Counted::default(),
            lost: None,
        };
        let rows = session.perform(base, &op).map_err(|error| {
            EngineError::Unusable(match &session.lost {
                Some(why) => format!("session {number} lost its connection: {why}"),
                None => error.text,
            })
        })?;
        session.counted = Counted::default();
        probed(home, width, rows)?;
        Ok(session)
    }

    /// The connection, and the index of a schema's statements, which are prepared on first use.
    #[inline]
    fn calls_of(&mut self, base: &B, schema: u32) -> Result<usize, Failed> {
        let link = open(&mut self.link, self.number)?;
        if let Some(at) = self.calls.iter().position(|(of, _)| *of == schema) {
            return Ok(at);
        }
        let calls = base.calls(link, schema)?;
        self.calls.push((schema, calls));
        Ok(self.calls.len() - 1)
    }

    /// The steps of an update.
    fn update(&self, [first, second]: [Option<Keys>; 2], commit: bool) -> [Option<Step>; 4] {
        // A single request commits by itself.
        let begins = !self.in_transaction && (!commit || second.is_some() && !B::Link::TOGETHER);
        let inside = self.in_transaction || begins;
        let update = |keys| Step::Update { keys, alone: !inside };
        [
            begins.then_some(Step::Begin),
            first.map(update),
            second.map(update),
            (inside && commit).then_some(Step::Commit),
        ]
    }

    /// Sends the first steps of an operation of this schema.
    #[inline]
    fn start(&mut self, base: &B, op: &Op, schema: u32) -> Result<(), Failed> {
        let plan = base.plan();
        let calls = self.calls_of(base, schema)?;
        let steps = match *op {
            Op::Select { first_key, width, .. } => {
                let [first, second] = ranges(first_key, width, plan.scale).map(|keys| keys.map(Step::Select));
                [first, second, None, None]
            }
            Op::Update { first_key, width, stamp, commit, .. } => {
                B::Link::stamp(&mut self.calls[calls].1, plan, stamp, first_key);
                self.update(ranges(first_key, width, plan.scale), commit)
            }
            _ => [Some(Step::Scan), None, None, None],
        };
        self.doing = UnderWay { op: *op, steps, at: 0, calls, rows: 0 };
        self.send().map(drop)
    }

    /// Sends the next steps; `false` if none is left.
    #[inline]
    fn send(&mut self) -> Result<bool, Failed> {
        let link = open(&mut self.link, self.number)?;
        let doing = &mut self.doing;
        let mut sends = false;
        while let Some(step) = doing.steps.get(doing.at) {
            doing.at += 1;
            let Some(step) = step else { continue };
            link.ask(&mut self.calls[doing.calls].1, *step)?;
            sends = true;
            if !B::Link::TOGETHER {
                break;
            }
        }
        if sends {
            link.send()?;
        }
        Ok(sends)
    }

    /// Takes an answer. Also sends the next steps; after the last one, returns the number of rows touched.
    #[inline]
    fn receive(&mut self) -> Result<Option<u64>, Failed> {
        self.doing.rows += open(&mut self.link, self.number)?.answer()?;
        if self.send()? {
            return Ok(None);
        }
        let UnderWay { op, rows, .. } = self.doing;
        self.done(&op, rows);
        Ok(Some(rows))
    }

    /// Counts a completed operation.
    fn done(&mut self, op: &Op, rows: u64) {
        self.counted.done(op, rows);
        if let Op::Update { commit, .. } = *op {
            self.in_transaction = !commit;
        }
    }

    /// Rolls back a failed transaction; notes a lost connection.
    fn failed(&mut self, failed: Failed) -> OpError {
        self.in_transaction = false;
        let Some(link) = &mut self.link else {
            return failed.error;
        };
        // Nobody knows how the transaction of a lost connection ended.
        self.counted.rollbacks += u64::from(!failed.fatal);
        let lost = if failed.fatal {
            Some(failed.error.text.clone())
        } else {
            link.rollback().err().map(|failed| failed.error.text)
        };
        if lost.is_some() {
            self.link = None;
            self.lost = lost;
        }
        failed.error
    }
}

fn open<L>(link: &mut Option<L>, number: u32) -> Result<&mut L, Failed> {
    link.as_mut().ok_or_else(|| Failed { error: closed(number), fatal: false })
}

/// Splits a range of keys that wraps past the last key into its two parts.
#[inline]
fn ranges(first: u64, width: u32, scale: u64) -> [Option<Keys>; 2] {
    let last = first + u64::from(width) - 1;
    [Some((first, last.min(scale))), (last > scale).then(|| (1, last - scale))]
}

impl<B: Base> Talks for Session<B> {
    type Asked = ();

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.link.as_ref().and_then(Link::socket)
    }

    #[inline]
    fn answer(&mut self, (): ()) -> Result<Option<u64>, OpError> {
        self.receive().map_err(|failed| self.failed(failed))
    }

    fn may_wait(&mut self, wait: &mut Wait) -> Result<(), OpError> {
        let may = open(&mut self.link, self.number).and_then(|link| link.may_wait(wait));
        may.map_err(|failed| self.failed(failed))
    }
}

impl<B: Base> TwoStep for Session<B> {
    type Run = B;

    fn number(&self) -> u32 {
        self.number
    }

    fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    #[inline]
    fn ask(&mut self, base: &B, op: &Op) -> Result<(), OpError> {
        let (Op::Select { schema, .. } | Op::Update { schema, .. } | Op::Scan { schema }) = *op else {
            return Err(OpError::not_ours());
        };
        self.start(base, op, schema).map_err(|failed| self.failed(failed))
    }

    fn slice_ops(&self) -> usize {
        self.link.as_ref().map_or(0, Link::slice_ops)
    }

    fn slice(&mut self, base: &B, clock: &Clock, slice: Slice<'_>) -> Result<SliceDone, OpError> {
        let ops = slice.ops;
        let done = open(&mut self.link, self.number).and_then(|link| link.slice(base.plan(), clock, slice));
        let done = done.map_err(|failed| self.failed(failed))?;
        for (op, outcome) in ops.iter().zip(&done.outcomes) {
            match outcome.result {
                Ok(rows) => self.done(op, rows),
                // The server has already rolled the transaction back.
                Err(_) => {
                    self.counted.rollbacks += 1;
                    self.in_transaction = false;
                }
            }
        }
        Ok(done)
    }

    fn publish(&mut self, base: &B) {
        // Not possible within a transaction.
        if let Some(link) = self.link.as_mut().filter(|_| !self.in_transaction) {
            base.publish(link);
        }
    }

    fn count(&self, base: &B, into: &mut StatSet) {
        self.counted.add_to(into, base.columns());
    }

    /// Commits the updates that COMMIT_EVERY left uncommitted.
    fn leave(&mut self) {
        if !std::mem::take(&mut self.in_transaction) {
            return;
        }
        match open(&mut self.link, self.number).and_then(Link::commit) {
            Ok(()) => self.counted.commits += 1,
            Err(failed) => drop(self.failed(failed)),
        }
    }

    fn close(&mut self, _base: &B, _unanswered: Option<()>) {
        if let Some(link) = self.link.take() {
            link.close();
        }
    }
}

/// The engine of a data set.
pub(crate) struct SlobEngine<B>(pub(crate) B);

impl<B: Base> Engine for SlobEngine<B> {
    fn facts(&self) -> Vec<Fact> {
        [self.0.facts(), &self.0.on().facts()].concat()
    }

    fn remarks(&self) -> Remarks {
        self.0.remarks()
    }

    fn workload(&self) -> &dyn Workload {
        &Slob
    }

    fn driver_threads(&self, sessions: usize, cpus: usize) -> usize {
        self.0.driver_threads(sessions, cpus)
    }

    fn driver<'a>(&'a self, assignment: &Assignment) -> Result<Box<dyn Driver + 'a>, EngineError> {
        let sessions = assignment.sessions.iter().map(|one| Session::open(&self.0, *one));
        Ok(Box::new(Pipeline::open(&self.0, sessions)?))
    }

    fn server(&self) -> Option<String> {
        self.0.on().server()
    }

    fn sample(&self) -> StatSet {
        self.0.on().sample()
    }

    fn look(&self, sessions: &mut [Doing]) -> bool {
        self.0.on().look(sessions)
    }

    fn phase(&self, name: &'static str, within: Option<Duration>) {
        self.0.on().phase(name, within);
    }

    fn overdue(&self, late: Duration) {
        self.0.on().overdue(late);
    }

    fn works_in_driver_threads(&self) -> bool {
        B::On::IN_DRIVER_THREADS
    }

    fn watched_disks(&self) -> Vec<String> {
        self.0.on().watched_disks()
    }

    fn close(&self) -> Result<(), EngineError> {
        self.0.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Nowhere;

    /// A connection that notes what it is asked for; its server performs no slice.
    #[derive(Default)]
    struct Noting<const TOGETHER: bool> {
        steps: Vec<String>,
        rollbacks: u32,
    }

    impl<const TOGETHER: bool> Link for Noting<TOGETHER> {
        type Calls = ();

        const TOGETHER: bool = TOGETHER;

        fn stamp((): &mut (), _plan: &Plan, _stamp: u64, _first_key: u64) {}

        fn ask(&mut self, (): &mut (), step: Step) -> Result<(), Failed> {
            self.steps.push(match step {
                Step::Update { keys: (first, last), alone: true } => format!("{first}-{last} alone"),
                Step::Update { keys: (first, last), alone: false } => format!("{first}-{last}"),
                other => format!("{other:?}"),
            });
            Ok(())
        }

        fn answer(&mut self) -> Result<u64, Failed> {
            Ok(1)
        }

        fn commit(&mut self) -> Result<(), Failed> {
            Ok(())
        }

        fn rollback(&mut self) -> Result<(), Failed> {
            self.rollbacks += 1;
            Ok(())
        }

        fn slice_ops(&self) -> usize {
            1
        }

        fn slice(&mut self, _plan: &Plan, _clock: &Clock, _slice: Slice<'_>) -> Result<SliceDone, Failed> {
            Err(Failed::statement("no".to_owned()))
        }
    }

    /// A data set on no server.
    struct Data<const TOGETHER: bool>(Plan);

    impl<const TOGETHER: bool> OnServer for Data<TOGETHER> {
        type On = Nowhere;

        fn on(&self) -> &Nowhere {
            &Nowhere
        }
    }

    impl<const TOGETHER: bool> Base for Data<TOGETHER> {
        type Link = Noting<TOGETHER>;

        fn plan(&self) -> &Plan {
            &self.0
        }

        fn columns(&self) -> usize {
            1
        }

        fn facts(&self) -> &[Fact] {
            &[]
        }

        fn driver_threads(&self, sessions: usize, _cpus: usize) -> usize {
            sessions
        }

        fn connect(&self, _number: u32, _home: u32) -> Result<Self::Link, EngineError> {
            Ok(Noting::default())
        }

        fn calls(&self, _link: &mut Self::Link, _schema: u32) -> Result<(), EngineError> {
            Ok(())
        }

        fn close(&self) -> Result<(), EngineError> {
            Ok(())
        }
    }

    fn session<const TOGETHER: bool>() -> (Data<TOGETHER>, Session<Data<TOGETHER>>) {
        let op = Op::Scan { schema: 1 };
        let session = Session {
            number: 1,
            link: Some(Noting::default()),
            calls: Vec::new(),
            doing: UnderWay { op, steps: [None; 4], at: 0, calls: 0, rows: 0 },
            in_transaction: false,
            counted: Counted::default(),
            lost: None,
        };
        (Data(Plan::plain(1, 1, 1000)), session)
    }

    /// What updates from this key on ask the server for.
    fn steps<const TOGETHER: bool>(updates: &[(u64, bool)]) -> Vec<String> {
        let (base, mut session) = session::<TOGETHER>();
        for (first_key, commit) in updates {
            let op = Op::Update { schema: 1, first_key: *first_key, width: 2, stamp: 0, commit: *commit };
            session.perform(&base, &op).unwrap();
        }
        let commits = updates.iter().filter(|(_, commit)| *commit).count() as u64;
        assert_eq!((session.counted.commits, session.counted.rollbacks), (commits, 0));
        session.link.unwrap().steps
    }

    #[test]
    fn an_update_is_a_transaction_of_its_own_or_part_of_one() {
        assert_eq!(steps::<false>(&[(1, true)]), ["1-2 alone"]);
        assert_eq!(steps::<false>(&[(1000, true)]), ["Begin", "1000-1000", "1-1", "Commit"]);
        assert_eq!(steps::<true>(&[(1000, true)]), ["1000-1000 alone", "1-1 alone"], "one request commits by itself");
        let several = [(1, false), (3, false), (5, true), (7, true)];
        let expected = ["Begin", "1-2", "3-4", "5-6", "Commit", "7-8 alone"];
        assert_eq!(steps::<false>(&several), expected);
        assert_eq!(steps::<true>(&several), expected);
    }

    #[test]
    fn a_slice_that_fails_as_a_whole_is_one_rollback() {
        let (base, mut session) = session::<true>();
        let ops = [Op::Scan { schema: 1 }, Op::Scan { schema: 1 }];
        let slice = Slice { tag: 0, ops: &ops, until_ns: 0 };
        session.slice(&base, &Clock::real(), slice).unwrap_err();
        assert_eq!((session.counted.rollbacks, session.counted.scans), (1, 0));
        assert_eq!(session.link.as_ref().unwrap().rollbacks, 1);
        // How the transaction of a lost connection ended is not known.
        let lost = Failed { fatal: true, ..Failed::statement("gone".to_owned()) };
        drop(session.failed(lost));
        assert_eq!((session.counted.rollbacks, session.lost.as_deref()), (1, Some("gone")));
    }

    #[test]
    fn a_range_past_the_last_key_goes_on_at_the_first() {
        assert_eq!(ranges(5, 3, 1000), [Some((5, 7)), None]);
        assert_eq!(ranges(1000, 2, 1000), [Some((1000, 1000)), Some((1, 1))]);
        assert_eq!(ranges(1, 1000, 1000), [Some((1, 1000)), None]);
    }
}
