//! A session: it draws a transaction's inputs, has the server perform the transaction in one call or statement by
//! statement, and keeps the books. Its [`Wire`] speaks to the server.

use crate::lost::closed;
use crate::many::Talks;
use crate::patience::Wait;
use crate::pipelined::TwoStep;
use crate::running::{Attachment, OnServer};
use assay_measure::counter_catalog;
use assay_measure::locked::locked;
use assay_measure::prng::{GOLDEN_GAMMA, scramble};
use assay_measure::snapshot::StatSet;
use assay_orders::inputs::{Bounds, Inputs};
use assay_orders::ledger::Ledger;
use assay_orders::mix::Tx;
use assay_orders::names::Lists;
use assay_orders::params::{Asked, Pause};
use assay_orders::part::FromEngine;
use assay_orders::program::{self, Effects, Row, Statement, Value};
use assay_orders::workload::tx_of;
use assay_run::engine::{EngineError, Op, OpError};
use std::borrow::Cow;
use std::os::fd::BorrowedFd;
use std::sync::Mutex;
use std::time::Duration;

/// State shared by all sessions.
pub(crate) struct Common {
    pub(crate) asked: Asked,
    pub(crate) bounds: Bounds,
    pub(crate) lists: Lists,
}

/// Connection of a session.
pub(crate) trait Wire {
    type Error;

    /// `false` where there are no procedures: each transaction is then performed statement by statement.
    const PROCEDURES: bool = true;

    /// Converts an error to the failure of the operation; `true` if the connection is lost.
    fn failure(error: &Self::Error) -> (OpError, bool);

    /// `None` if nobody can wait for its answers.
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Called when a wait has gone on for a while. An error ends the wait.
    fn may_wait(&mut self, _wait: &mut Wait) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Has the server perform a whole transaction by a procedure, including the commit.
    fn ask(&mut self, _inputs: &Inputs<'_>, _pause: Pause) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Waits for the effects of that transaction.
    fn answer(&mut self) -> Result<Effects, Self::Error> {
        Ok(Effects::default())
    }

    fn begin(&mut self) -> Result<(), Self::Error>;

    fn commit(&mut self) -> Result<(), Self::Error>;

    /// Commits the logon of a transaction, and goes on.
    fn commit_logon(&mut self) -> Result<(), Self::Error> {
        self.commit()?;
        self.begin()
    }

    /// Rolls a transaction back that is open.
    fn rollback(&mut self) -> Result<(), Self::Error>;

    /// Logs off.
    fn close(self)
    where
        Self: Sized,
    {
    }

    /// Executes one statement.
    fn send(&mut self, statement: Statement, values: &[Value<'_>]) -> Result<Vec<Row>, Self::Error>;
}

/// What each server provides for a run.
pub(crate) trait Base: OnServer {
    type Wire: Wire;

    const ISOLATION: &'static str = "read committed";

    /// Threads that drive the sessions: one for each, if a session blocks until its answer arrives.
    fn driver_threads(&self, sessions: usize, _cpus: usize) -> usize {
        sessions
    }

    /// Connects a session.
    fn connect(&self, common: &Common, number: u32) -> Result<Self::Wire, EngineError>;

    /// Has the server publish the session's counters, on servers that do so on request.
    fn publish(&self, _wire: &mut Self::Wire) {}

    fn close(&self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Ends the claim, once; first closes the books of the run and checks what it left.
    fn conclude(&self, part: &mut FromEngine, verify: bool);
}

/// What the sessions of a run share.
pub(crate) struct Run<B> {
    pub(crate) common: Common,
    pub(crate) base: B,
    /// Books of the sessions that have ended.
    pub(crate) ledger: Mutex<Ledger>,
}

impl<B: Base> OnServer for Run<B> {
    type On = B::On;

    fn on(&self) -> &B::On {
        self.base.on()
    }
}

/// One session of a run.
pub(crate) struct Session<B: Base> {
    number: u32,
    wire: Option<B::Wire>,
    ledger: Ledger,
    /// The run has its books.
    handed_over: bool,
    /// The current transaction.
    tx: Tx,
    /// It commits its logon separately.
    commits_logon: bool,
    /// Why the session cannot continue.
    lost: Option<String>,
}

impl<B: Base> Session<B> {
    /// Connects and prepares.
    pub(crate) fn open(run: &Run<B>, number: u32) -> Result<Self, EngineError> {
        run.base.on().running().turn()?;
        Ok(Self {
            number,
            wire: Some(run.base.connect(&run.common, number)?),
            ledger: Ledger::default(),
            handed_over: false,
            tx: Tx::CustomerRegistration,
            commits_logon: false,
            lost: None,
        })
    }

    /// Draws the inputs of a transaction.
    fn drawn<'a>(&mut self, common: &'a Common, op: &Op) -> Result<(Inputs<'a>, u64), OpError> {
        let (tx, number) = tx_of(op).ok_or_else(OpError::not_ours)?;
        let inputs = Inputs::draw(tx, number, common.bounds, &common.lists);
        self.tx = tx;
        self.commits_logon = common.asked.commit_logon && inputs.logon && tx.logs_on();
        Ok((inputs, number))
    }

    /// Books a transaction; returns the number of rows it wrote, one per statement.
    fn done(&mut self, done: Result<Effects, Undone<B::Wire>>) -> Result<u64, OpError> {
        let tx = self.tx;
        let (error, committing) = match done {
            Ok(effects) => {
                self.ledger.done(tx, effects);
                return Ok(u64::from(effects.inserts + effects.updates));
            }
            Err(undone) => undone,
        };
        let (error, fatal) = B::Wire::failure(&error);
        // A transaction in doubt as a whole has its logon in that.
        if fatal && committing {
            self.ledger.doubt(tx);
        } else if self.commits_logon {
            self.ledger.doubt_logon(tx);
        }
        if fatal {
            self.wire = None;
            self.lost = Some(error.text.clone());
        } else {
            self.ledger.rollbacks += 1;
        }
        Err(error)
    }

    /// Uses the connection for a call.
    fn with<T>(
        &mut self,
        what: impl FnOnce(&mut B::Wire) -> Result<T, <B::Wire as Wire>::Error>,
    ) -> Result<T, OpError> {
        let Some(wire) = &mut self.wire else {
            return Err(closed(self.number));
        };
        match what(wire) {
            Ok(done) => Ok(done),
            Err(error) => {
                let undone = match B::Wire::failure(&error) {
                    (_, true) => (error, true),
                    // If the rollback fails, the connection is closed.
                    (_, false) => (wire.rollback().err().unwrap_or(error), false),
                };
                Err(self.done(Err(undone)).err().unwrap_or_else(|| closed(self.number)))
            }
        }
    }
}

impl<B: Base> Talks for Session<B> {
    type Asked = ();

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.wire.as_ref().and_then(Wire::socket)
    }

    fn answer(&mut self, (): ()) -> Result<Option<u64>, OpError> {
        let effects = self.with(Wire::answer)?;
        self.done(Ok(effects)).map(Some)
    }

    fn may_wait(&mut self, wait: &mut Wait) -> Result<(), OpError> {
        self.with(|wire| wire.may_wait(wait))
    }
}

impl<B: Base> TwoStep for Session<B> {
    type Run = Run<B>;

    fn number(&self) -> u32 {
        self.number
    }

    fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    fn ask(&mut self, run: &Self::Run, op: &Op) -> Result<(), OpError> {
        let common = &run.common;
        let (inputs, _) = self.drawn(common, op)?;
        self.with(|wire| wire.ask(&inputs, common.asked.intra))
    }

    fn perform(&mut self, run: &Self::Run, op: &Op) -> Result<u64, OpError> {
        let asked = &run.common.asked;
        if !asked.client_side {
            self.ask(run, op)?;
            return self.with(Wire::answer).and_then(|effects| self.done(Ok(effects)));
        }
        let (inputs, number) = self.drawn(&run.common, op)?;
        let commit_logon = self.commits_logon;
        let Some(wire) = &mut self.wire else {
            return Err(closed(self.number));
        };
        let done = whole(wire, &inputs, (asked.intra, number), commit_logon);
        self.done(done)
    }

    fn publish(&mut self, run: &Self::Run) {
        if let Some(wire) = &mut self.wire {
            run.base.publish(wire);
        }
    }

    fn count(&self, _run: &Self::Run, into: &mut StatSet) {
        let Ledger { inserts, updates, commits, rollbacks, .. } = self.ledger;
        into.add(counter_catalog::ROWS_CHANGED, inserts + updates);
        into.add(counter_catalog::USER_COMMITS, commits);
        into.add(counter_catalog::USER_ROLLBACKS, rollbacks);
    }

    /// Logs off and hands over the books, which are still counted. Nobody will learn whether a transaction still under way committed.
    fn close(&mut self, run: &Self::Run, unanswered: Option<()>) {
        if unanswered.is_some() {
            self.ledger.doubt(self.tx);
        }
        if let Some(wire) = self.wire.take() {
            wire.close();
        }
        if !std::mem::replace(&mut self.handed_over, true) {
            locked(&run.ledger).merge(&self.ledger);
        }
    }
}

/// The error, and whether the transaction may have been committed.
type Undone<W> = (<W as Wire>::Error, bool);

/// Begins, performs and commits a transaction.
fn whole<W: Wire>(
    wire: &mut W,
    inputs: &Inputs<'_>,
    (pause, word): (Pause, u64),
    commit_logon: bool,
) -> Result<Effects, Undone<W>> {
    let writes = !inputs.tx.reads_only();
    if writes {
        wire.begin().map_err(|error| (error, false))?;
    }
    let mut by_one = ByOne { wire, pause, word, commit_logon };
    match program::perform(inputs, &mut by_one) {
        Ok(effects) if writes => {
            wire.commit().map_err(|error| (error, true))?;
            Ok(effects)
        }
        Ok(effects) => Ok(effects),
        Err(error) => {
            if writes && !W::failure(&error).1 {
                wire.rollback().map_err(|error| (error, false))?;
            }
            Err((error, false))
        }
    }
}

/// A transaction performed statement by statement.
struct ByOne<'a, W> {
    wire: &'a mut W,
    pause: Pause,
    /// Random bits, for pauses.
    word: u64,
    commit_logon: bool,
}

impl<W: Wire> program::Session for ByOne<'_, W> {
    type Error = W::Error;

    fn send(&mut self, statement: Statement, values: &[Value<'_>]) -> Result<Vec<Row>, W::Error> {
        self.wire.send(statement, values)
    }

    fn think(&mut self) {
        if self.pause.is_some() {
            self.word = scramble(self.word.wrapping_add(GOLDEN_GAMMA));
            std::thread::sleep(Duration::from_nanos(self.pause.length(self.word)));
        }
    }

    fn logged_on(&mut self) -> Result<(), W::Error> {
        if self.commit_logon { self.wire.commit_logon() } else { Ok(()) }
    }
}

/// An argument of a transaction's call.
#[derive(Clone, Copy)]
pub(crate) enum Argument<'a> {
    Int(i32),
    Long(i64),
    Flag(bool),
    Text(&'a str),
    List(&'a [i32]),
}

/// Passes the arguments of a transaction's call on, without the pause.
#[inline]
pub(crate) fn arguments<'a>(i: &'a Inputs<'_>, each: impl FnMut(Argument<'a>)) {
    use Argument::{Flag, Int, List, Long, Text};
    let [town, county, country] = i.place.map(Text);
    let (customer, logon) = (Long(i.customer), Flag(i.logon));
    let all: &[Argument<'a>] = match i.tx {
        Tx::CustomerRegistration => &[
            Text(i.first),
            Text(i.last),
            Text(i.language()),
            Text(i.territory),
            town,
            county,
            country,
            Int(i.house),
            Int(i.credit),
            Int(i.manager),
            Int(i.age_days),
            Long(i.card),
            Int(i.expires_days),
            Int(i.security),
            logon,
        ],
        Tx::UpdateCustomerDetails => &[Text(i.first), Text(i.last), town, county, country, Int(i.house)],
        Tx::BrowseProducts => &[List(&i.products[..i.looks]), Int(i.looks as i32)],
        Tx::OrderProducts => &[
            customer,
            logon,
            List(&i.categories[..i.looks]),
            List(&i.warehouses[..i.looks]),
            Int(i.looks as i32),
            Int(i.warehouse),
            Int(i.cost),
            Int(i.buys as i32),
            List(&i.stocks),
            Int(i.status),
        ],
        Tx::ProcessOrders => &[Int(i.warehouse), Int(i.status)],
        Tx::BrowseOrders => &[customer, logon, Long(i.picks[0].into()), Long(i.picks[1].into())],
        Tx::SalesRepQuery => &[Int(i.sales_rep)],
        Tx::WarehouseQuery | Tx::WarehouseActivityQuery => &[Int(i.warehouse)],
    };
    all.iter().copied().for_each(each);
}

/// An argument for a server that takes numbers and texts.
pub(crate) enum Plain<'a> {
    Int(i64),
    Text(Cow<'a, str>),
}

/// The arguments as numbers and texts: a list of numbers is a text, four digits each.
pub(crate) fn plain<'a>(inputs: &'a Inputs<'_>) -> Vec<Plain<'a>> {
    let mut all = Vec::new();
    arguments(inputs, |argument| {
        all.push(match argument {
            Argument::Int(n) => Plain::Int(n.into()),
            Argument::Long(n) => Plain::Int(n),
            Argument::Flag(is) => Plain::Int(is.into()),
            Argument::Text(text) => Plain::Text(Cow::Borrowed(text)),
            Argument::List(numbers) => Plain::Text(numbers.iter().map(|n| format!("{n:04}")).collect()),
        });
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Nowhere;

    /// A connection whose server no longer answers.
    pub(crate) struct Silent;

    impl Wire for Silent {
        type Error = ();

        fn failure((): &()) -> (OpError, bool) {
            (closed(1), true)
        }

        fn may_wait(&mut self, _wait: &mut Wait) -> Result<(), ()> {
            Err(())
        }

        fn ask(&mut self, _inputs: &Inputs<'_>, _pause: Pause) -> Result<(), ()> {
            Ok(())
        }

        fn answer(&mut self) -> Result<Effects, ()> {
            Err(())
        }

        fn begin(&mut self) -> Result<(), ()> {
            Ok(())
        }

        fn commit(&mut self) -> Result<(), ()> {
            Err(())
        }

        fn rollback(&mut self) -> Result<(), ()> {
            Err(())
        }

        fn send(&mut self, _statement: Statement, _values: &[Value<'_>]) -> Result<Vec<Row>, ()> {
            Err(())
        }
    }

    impl Base for Nowhere {
        type Wire = Silent;

        fn connect(&self, _common: &Common, _number: u32) -> Result<Silent, EngineError> {
            Ok(Silent)
        }

        fn conclude(&self, _part: &mut FromEngine, _verify: bool) {}
    }

    fn session() -> Session<Nowhere> {
        Session {
            number: 1,
            wire: Some(Silent),
            ledger: Ledger::default(),
            handed_over: false,
            tx: Tx::OrderProducts,
            commits_logon: false,
            lost: None,
        }
    }

    /// The last reading of a run comes after its sessions have logged off.
    #[test]
    fn books_are_handed_over_once_and_are_still_counted() {
        let settings = crate::testing::settings_of("postgres", assay_orders::params::PARAMS, &[]);
        let common = Common {
            asked: Asked::new(&settings).unwrap(),
            bounds: Bounds { customers: (1, 1) },
            lists: Lists::default(),
        };
        let run = Run { common, base: Nowhere, ledger: Mutex::default() };
        let mut session = session();
        session.ledger.commits = 3;
        for _ in 0..2 {
            session.close(&run, None);
            let mut counted = StatSet::default();
            session.count(&run, &mut counted);
            assert_eq!(counted.get(counter_catalog::USER_COMMITS), Some(3));
            assert_eq!(locked(&run.ledger).commits, 3);
        }
    }

    /// The server may have committed it.
    #[test]
    fn a_transaction_that_is_not_waited_for_any_longer_is_in_doubt() {
        let mut doubted = Ledger::default();
        doubted.doubt(Tx::OrderProducts);
        assert!(!doubted.in_doubt.is_empty());
        let mut waiting = session();
        waiting.may_wait(&mut Wait::default()).unwrap_err();
        assert_eq!(waiting.ledger.in_doubt, doubted.in_doubt);
        assert!(waiting.lost.is_some());
        let mut answering = session();
        // Its logon is in doubt with it, once.
        answering.commits_logon = true;
        answering.answer(()).unwrap_err();
        assert_eq!(answering.ledger.in_doubt, doubted.in_doubt);
    }
}
