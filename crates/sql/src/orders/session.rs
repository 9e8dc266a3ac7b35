//! A session that waits for each answer: it draws a transaction's inputs, has the server perform the transaction in one
//! call or statement by statement, and keeps the books. Its [`Wire`] speaks to the server; a thread drives one or more
//! sessions.

use crate::lost::{closed, lost};
use assay_measure::counter_catalog;
use assay_measure::locked::locked;
use assay_measure::prng::{GOLDEN_GAMMA, scramble};
use assay_measure::snapshot::StatSet;
use assay_orders::inputs::{Bounds, Inputs};
use assay_orders::ledger::Ledger;
use assay_orders::mix::Tx;
use assay_orders::names::Lists;
use assay_orders::params::{Asked, Pause};
use assay_orders::program::{self, Effects, Row, Statement, Value};
use assay_orders::workload::tx_of;
use assay_run::engine::{Completion, Driver, EngineError, Op, OpError, Outcome, Submit, Tag};
use std::borrow::Cow;
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

    /// Converts an error to the failure of the operation; `true` if the connection is lost.
    fn failure(error: &Self::Error) -> (OpError, bool);

    /// Has the server perform a whole transaction, including the commit.
    fn call(&mut self, inputs: &Inputs<'_>, pause: Pause) -> Result<Effects, Self::Error>;

    fn begin(&mut self) -> Result<(), Self::Error>;

    fn commit(&mut self) -> Result<(), Self::Error>;

    fn rollback(&mut self) -> Result<(), Self::Error>;

    /// Executes one statement.
    fn send(&mut self, statement: Statement, values: &[Value<'_>]) -> Result<Vec<Row>, Self::Error>;
}

pub(crate) struct Session<W> {
    pub(crate) number: u32,
    wire: Option<W>,
    ledger: Ledger,
    /// Why the session cannot continue.
    lost: Option<String>,
}

impl<W: Wire> Session<W> {
    pub(crate) fn new(number: u32, wire: W) -> Self {
        Self { number, wire: Some(wire), ledger: Ledger::default(), lost: None }
    }

    /// Performs a transaction; returns the number of rows it wrote, one per statement.
    fn perform(&mut self, common: &Common, op: &Op) -> Result<u64, OpError> {
        let (tx, number) = tx_of(op).ok_or_else(OpError::not_ours)?;
        let inputs = Inputs::draw(tx, number, common.bounds, &common.lists);
        let Some(wire) = &mut self.wire else {
            return Err(closed(self.number));
        };
        let pause = common.asked.intra;
        let done = if common.asked.client_side {
            whole(wire, &inputs, (pause, number), common.asked.commit_logon)
        } else {
            called(wire, &inputs, pause)
        };
        match done {
            Ok(effects) => {
                self.ledger.done(tx, effects);
                Ok(u64::from(effects.inserts + effects.updates))
            }
            Err((error, committing)) => {
                if common.asked.commit_logon && inputs.logon {
                    self.ledger.doubt_logon(tx);
                }
                Err(self.failed(tx, W::failure(&error), committing))
            }
        }
    }

    /// Notes a failed transaction; with `committing`, it may have been committed.
    fn failed(&mut self, tx: Tx, (error, fatal): (OpError, bool), committing: bool) -> OpError {
        if fatal {
            if committing {
                self.ledger.doubt(tx);
            }
            self.wire = None;
            self.lost = Some(error.text.clone());
        } else {
            self.ledger.rollbacks += 1;
        }
        error
    }
}

/// The error, and whether the transaction may have been committed.
type Undone<W> = (<W as Wire>::Error, bool);

fn called<W: Wire>(wire: &mut W, inputs: &Inputs<'_>, pause: Pause) -> Result<Effects, Undone<W>> {
    match wire.call(inputs, pause) {
        Ok(effects) => Ok(effects),
        Err(error) if W::failure(&error).1 => Err((error, true)),
        Err(error) => {
            // If the rollback fails, the connection is closed.
            wire.rollback().map_err(|error| (error, false))?;
            Err((error, false))
        }
    }
}

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
        if self.commit_logon { self.wire.commit().and_then(|()| self.wire.begin()) } else { Ok(()) }
    }
}

/// An argument of a transaction's call.
pub(crate) enum Argument<'a> {
    Int(i64),
    Text(Cow<'a, str>),
}

/// Encodes a list of numbers, four digits each.
fn list(numbers: &[i32]) -> Argument<'static> {
    let text: String = numbers.iter().map(|n| format!("{n:04}")).collect();
    Argument::Text(Cow::Owned(text))
}

/// The arguments of a transaction's call, without the pause.
pub(crate) fn arguments<'a>(i: &'a Inputs<'_>) -> Vec<Argument<'a>> {
    let int = |n: i32| Argument::Int(n.into());
    let text = |text: &'a str| Argument::Text(Cow::Borrowed(text));
    let [town, county, country] = i.place.map(text);
    let logon = int(i.logon.into());
    match i.tx {
        Tx::CustomerRegistration => vec![
            text(i.first),
            text(i.last),
            text(i.language()),
            text(i.territory),
            town,
            county,
            country,
            int(i.house),
            int(i.credit),
            int(i.manager),
            int(i.age_days),
            Argument::Int(i.card),
            int(i.expires_days),
            int(i.security),
            logon,
        ],
        Tx::UpdateCustomerDetails => {
            vec![text(i.first), text(i.last), town, county, country, int(i.house)]
        }
        Tx::BrowseProducts => vec![list(&i.products[..i.looks]), int(i.looks as i32)],
        Tx::OrderProducts => vec![
            Argument::Int(i.customer),
            logon,
            list(&i.categories[..i.looks]),
            list(&i.warehouses[..i.looks]),
            int(i.looks as i32),
            int(i.warehouse),
            int(i.cost),
            int(i.buys as i32),
            list(&i.stocks),
            int(i.status),
        ],
        Tx::ProcessOrders => vec![int(i.warehouse), int(i.status)],
        Tx::BrowseOrders => {
            vec![Argument::Int(i.customer), logon, Argument::Int(i.picks[0].into()), Argument::Int(i.picks[1].into())]
        }
        Tx::SalesRepQuery => vec![int(i.sales_rep)],
        Tx::WarehouseQuery | Tx::WarehouseActivityQuery => vec![int(i.warehouse)],
    }
}

/// Callbacks of a run on the state of its sessions.
pub(crate) trait Around {
    fn now_ns(&self) -> u64;

    /// A session has completed its last operation.
    fn leaves(&self);

    /// A session is about to close.
    fn closes(&self, number: u32);

    /// A session has closed.
    fn closed(&self, number: u32);
}

/// The sessions of one thread.
pub(crate) struct Sessions<'a, W: Wire> {
    pub(crate) around: &'a dyn Around,
    pub(crate) common: &'a Common,
    /// Books of the sessions that have ended.
    pub(crate) ledger: &'a Mutex<Ledger>,
    pub(crate) sessions: Vec<Session<W>>,
}

impl<W: Wire> Driver for Sessions<'_, W> {
    fn submit(&mut self, tag: Tag, op: &Op, _start_ns: u64) -> Submit {
        let result = self.sessions[tag as usize].perform(self.common, op);
        Submit::Done(Outcome { end_ns: self.around.now_ns(), result })
    }

    /// Nothing is ever queued: this only reports whether the thread can continue.
    fn reap(&mut self, _timeout: Duration, _out: &mut Vec<Completion>) -> Result<(), EngineError> {
        lost(&self.sessions, |one| (one.number, one.lost.as_deref()))
    }

    fn stats(&mut self, into: &mut StatSet) {
        let mut all = Ledger::default();
        for session in &self.sessions {
            all.merge(&session.ledger);
        }
        into.add(counter_catalog::ROWS_CHANGED, all.inserts + all.updates);
        into.add(counter_catalog::USER_COMMITS, all.commits);
        into.add(counter_catalog::USER_ROLLBACKS, all.rollbacks);
    }

    fn leave(&mut self, _tag: Tag) {
        self.around.leaves();
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        let going = self.reap(Duration::ZERO, &mut Vec::new());
        for session in &mut self.sessions {
            self.around.closes(session.number);
            session.wire = None;
            self.around.closed(session.number);
        }
        going
    }
}

/// However the thread ends, its sessions log off and hand over their books.
impl<W: Wire> Drop for Sessions<'_, W> {
    fn drop(&mut self) {
        let mut books = locked(self.ledger);
        for session in &mut self.sessions {
            session.wire = None;
            self.around.closed(session.number);
            books.merge(&std::mem::take(&mut session.ledger));
        }
    }
}
