//! The connection of one order-entry session.

use super::super::attached::Attached;
use super::super::session::{Bind, OraError, Session as Server, told};
use super::load::SETUP;
use super::package;
use super::statements::{How, Sent, statement};
use crate::orders::session::{Common, Plain, Wire, plain};
use assay_orders::inputs::Inputs;
use assay_orders::mix::ALL;
use assay_orders::params::Pause;
use assay_orders::program::{Effects, Row, STATEMENTS, Statement, Value};
use assay_run::engine::{EngineError, OpError};

/// Number of leading columns that are read from a result.
const WANTED: usize = 4;
const NS_PER_US: u64 = 1000;

/// Connection of a session.
pub(super) struct Link {
    session: Box<dyn Server>,
    calls: Vec<String>,
    statements: Vec<Sent>,
    /// Of the last call.
    effects: Effects,
}

/// Connects.
pub(super) fn open(on: &Attached, common: &Common, number: u32) -> Result<Link, EngineError> {
    let mut session = on.session(number)?;
    session.run(SETUP, &[]).map_err(told("preparing a session"))?;
    if common.asked.commit_logon && !common.asked.client_side {
        let set = session.call(package::COMMIT_LOGON, &[], 0);
        set.map_err(told("preparing a session"))?;
    }
    let (calls, statements) = (ALL.map(package::call).to_vec(), STATEMENTS.map(statement).to_vec());
    Ok(Link { session, calls, statements, effects: Effects::default() })
}

impl Wire for Link {
    type Error = OraError;

    fn failure(error: &OraError) -> (OpError, bool) {
        let mut told = error.of_operation();
        // Retry after a lock timeout, as after a deadlock.
        told.retryable |= told.class == "lock timeout";
        (told, error.is_fatal())
    }

    fn ask(&mut self, inputs: &Inputs<'_>, pause: Pause) -> Result<(), OraError> {
        let arguments = plain(inputs);
        let mut binds: Vec<Bind<'_>> = arguments
            .iter()
            .map(|argument| match argument {
                Plain::Int(n) => Bind::Int(*n),
                Plain::Text(text) => Bind::Text(text),
            })
            .collect();
        binds.extend([pause.min_ns, pause.max_ns].map(|ns| Bind::Int((ns / NS_PER_US) as i64)));
        let call = &self.calls[inputs.tx.index()];
        let told = self.session.call(call, &binds, 1)?.concat();
        let numbers: Vec<i64> = told.split(',').filter_map(|n| n.parse().ok()).collect();
        let numbers = <[i64; 6]>::try_from(numbers)
            .map_err(|_| OraError::broken(format!("{call} returned {told:?}, which is not a valid answer")))?;
        self.effects = Effects::of(numbers);
        Ok(())
    }

    fn answer(&mut self) -> Result<Effects, OraError> {
        Ok(self.effects)
    }

    /// The first change begins a transaction.
    fn begin(&mut self) -> Result<(), OraError> {
        Ok(())
    }

    fn commit(&mut self) -> Result<(), OraError> {
        self.session.commit()
    }

    fn rollback(&mut self) -> Result<(), OraError> {
        self.session.rollback()
    }

    fn send(&mut self, statement: Statement, values: &[Value<'_>]) -> Result<Vec<Row>, OraError> {
        send(&mut *self.session, &self.statements[statement as usize], values)
    }
}

/// Sends a statement in its own way, and returns its rows.
pub(super) fn send(
    session: &mut dyn Server,
    (sql, marks, how): &Sent,
    values: &[Value<'_>],
) -> Result<Vec<Row>, OraError> {
    let binds: Vec<Bind<'_>> = marks.iter().map(|at| bind(&values[*at])).collect();
    Ok(match how {
        How::Rows => {
            let rows = session.leading(sql, &binds, WANTED)?;
            rows.into_iter().map(row_of).collect()
        }
        How::Run => match session.run(sql, &binds)? {
            0 => Vec::new(),
            _ => vec![Row::default()],
        },
        How::Block => {
            let told = session.call(sql, &binds, 1)?;
            vec![row_of(told.into_iter().map(Some).collect())]
        }
    })
}

fn bind<'a>(value: &Value<'a>) -> Bind<'a> {
    match value {
        Value::Int(n) => Bind::Int(*n),
        Value::Text(text) => Bind::Text(text),
        Value::Null => Bind::Null,
    }
}

fn row_of(row: Vec<Option<String>>) -> Row {
    let mut row = row.into_iter();
    let mut number = || row.next().flatten().and_then(|text| text.parse().ok());
    let numbers = [number(), number(), number()];
    Row { numbers, text: row.next().flatten() }
}
