//! Sessions through Oracle's own driver (crate `oracledb`), with our errors and time limits.
//!
//! The driver waits without limit while logging in and off, and some unexpected answers make it panic. So login and
//! logoff run on a separate thread that is left behind at the time limit, and every call is guarded: a panic counts as
//! a broken connection.

use super::address::Door;
use super::session::{Bind, Id, OraError, Rows, Session, Way};
use assay_run::engine::EngineError;
use oracledb::{Connection, DB_TYPE_VARCHAR, DbType, ErrorKind, Statement, ToDbValue};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Longest wait for a host to accept a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Longest logoff.
const CLOSE: Duration = Duration::from_secs(5);
/// Rows per fetch.
const FETCH: u32 = 500;

/// The driver.
pub(super) struct Thin;

impl Way for Thin {
    fn open(&self, door: &Door, answer: Duration) -> Result<Box<dyn Session>, EngineError> {
        // The driver uses the process's TLS provider, and the program contains two. If one is already installed, by us
        // or others, keep it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let config = config(door)?;
        let link = within(answer, "oracle login", move || {
            let connection = oracledb::connect(config)?;
            // After its interrupt the driver waits the same time again for the server's answer.
            connection.set_call_timeout(Some(answer / 2))?;
            let id = Id { sid: connection.session_id()? as u32, serial: connection.serial_num()? as u32 };
            Ok(Link { connection: Some(connection), statements: HashMap::new(), id })
        });
        match link {
            Ok(Ok(link)) => Ok(Box::new(link)),
            Ok(Err(error)) => Err(refused(door, &error)),
            Err(why) => Err(EngineError::Unusable(format!("cannot connect to {}: {why}", door.connect))),
        }
    }
}

fn config(door: &Door) -> Result<oracledb::Config, EngineError> {
    let mut config = oracledb::Config::default()
        .set_credentials(&door.user, door.password.reveal())
        .set_driver_name("assay")
        .set_transport_connect_timeout(Some(CONNECT));
    if door.sysdba {
        config = config.set_auth_mode(oracledb::AUTH_MODE_SYSDBA);
    }
    if let Some((directory, password)) = &door.wallet {
        config = config.set_wallet_location(directory);
        if let Some(password) = password {
            config = config.set_wallet_password(password.reveal());
        }
    }
    // This only resolves files and aliases; it does not connect yet.
    config.set_connect_string(&door.connect).map_err(|error| refused(door, &error))
}

/// Runs `work`, which may never end, on a thread; leaves the thread behind at the time limit.
fn within<T: Send + 'static>(
    limit: Duration,
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let (tell, told) = channel();
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        let done = catch_unwind(AssertUnwindSafe(work));
        // The receiver may already be gone.
        let _ = tell.send(done.map_err(|panic| said(&*panic)));
    });
    if let Err(error) = thread {
        return Err(format!("cannot start a thread: {error}"));
    }
    match told.recv_timeout(limit) {
        Ok(done) => done.map_err(|panic| format!("the driver did not understand the answer ({panic})")),
        Err(RecvTimeoutError::Timeout) => {
            Err(format!("no answer within {} s (ORACLE_ANSWER_TIMEOUT)", limit.as_secs()))
        }
        Err(RecvTimeoutError::Disconnected) => Err("the driver ended without an answer".to_owned()),
    }
}

/// The message of a panic.
fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message").to_owned()
}

/// The error of a failed login, with the remedy.
fn refused(door: &Door, error: &oracledb::Error) -> EngineError {
    let Door { user, connect, .. } = door;
    let way_out = match error.kind() {
        ErrorKind::DbError(error) => match error.code() {
            1017 | 1005 => "; check user and password (ASSAY_ORACLE_PASSWORD; of DBA_PRIV_USER: SYSDBA_PASSWD)",
            1045 => "; GRANT CREATE SESSION to this user",
            28_000 => "; ALTER USER ... ACCOUNT UNLOCK",
            28_001 | 28_002 => "; give the user a new password",
            18 | 20 | 2391 => "; raise processes and sessions, or use fewer sessions",
            28_009 => "; SYS can log in only as SYSDBA: DBA_PRIV_USER='sys as sysdba'",
            1033 | 1034 | 1109 => "; start the database",
            _ => "",
        },
        ErrorKind::InvalidServiceName(..) | ErrorKind::InvalidSid(..) => {
            "; `lsnrctl services` lists the services; a pluggable database has its own"
        }
        ErrorKind::TnsAliasNotFound(..) | ErrorKind::NoConfigDir => {
            "; TNS_ADMIN names the directory of tnsnames.ora; or write //HOST:PORT/SERVICE"
        }
        ErrorKind::ServerVersionNotSupported => "; assay's driver supports 12.1 and newer",
        ErrorKind::WalletUnreadable(_) | ErrorKind::WalletPasswordMissingOrInvalid(..) => {
            "; ORACLE_WALLET is the directory of ewallet.pem, ORACLE_WALLET_PASSWORD its password"
        }
        ErrorKind::UnexpectedRefuse(_) | ErrorKind::DeadConnection => {
            "; is this the port of a listener? A server that demands native network encryption cannot be reached: use TCPS"
        }
        _ => "",
    };
    EngineError::Unusable(format!("cannot connect to {connect} as {user}: {error}{way_out}"))
}

impl From<oracledb::Error> for OraError {
    fn from(error: oracledb::Error) -> Self {
        match error.kind() {
            ErrorKind::DbError(error) => Self::said(error.code() as u32, error.message()),
            // The server obeyed the interrupt, so the session stays usable.
            ErrorKind::CallTimeoutExceeded => Self::said(
                1013,
                "ORA-01013: the answer took longer than allowed (ORACLE_ANSWER_TIMEOUT), so assay interrupted it",
            ),
            _ => Self::broken(error.to_string()),
        }
    }
}

/// A logged-in session.
struct Link {
    connection: Option<Connection>,
    /// Statements of the measured operations, kept so that the driver need not look them up by text.
    statements: HashMap<String, Statement>,
    id: Id,
}

impl Link {
    /// Calls the driver. After a panic the driver's locks are poisoned and its clean-up would panic again, so
    /// everything is forgotten; the socket closes with the process.
    fn guarded<T>(
        &mut self,
        call: impl FnOnce(&Connection, &mut HashMap<String, Statement>) -> Result<T, oracledb::Error>,
    ) -> Result<T, OraError> {
        let Some(connection) = &self.connection else {
            return Err(OraError::broken("the connection is closed"));
        };
        let statements = &mut self.statements;
        match catch_unwind(AssertUnwindSafe(|| call(connection, statements))) {
            Ok(done) => Ok(done?),
            Err(panic) => {
                std::mem::forget(self.connection.take());
                std::mem::forget(std::mem::take(&mut self.statements));
                let why = said(&*panic);
                Err(OraError::broken(format!("the driver did not understand the answer ({why})")))
            }
        }
    }

    /// Executes a statement or block. With `keep` it is prepared once and keeps its own cursor until the session ends.
    /// Either way it is owned outside the guarded call, so that a panic does not affect it.
    fn execute(&mut self, sql: &str, values: &[&dyn ToDbValue], keep: bool) -> Result<oracledb::ExecResult, OraError> {
        let done = self.guarded(|connection, statements| {
            if !statements.contains_key(sql) {
                let statement = connection.statement(sql)?.build()?;
                statements.insert(sql.to_owned(), statement);
            }
            match statements.get_mut(sql) {
                Some(statement) => statement.execute(values),
                None => connection.execute(sql, values),
            }
        });
        if !keep {
            self.statements.remove(sql);
        }
        done
    }
}

/// Values in the form the driver takes, in bind order.
enum Held<'a> {
    Int(i64),
    Text(&'a str),
    Null(Option<i64>),
}

fn hold<'a>(binds: &[Bind<'a>]) -> Vec<Held<'a>> {
    let each = binds.iter().map(|bind| match bind {
        Bind::Int(value) => Held::Int(*value),
        Bind::Text(text) => Held::Text(text),
        Bind::Null => Held::Null(None),
    });
    each.collect()
}

impl<'a> Held<'a> {
    fn value(&self) -> &(dyn ToDbValue + 'a) {
        match self {
            Self::Int(value) => value,
            Self::Text(text) => text,
            Self::Null(none) => none,
        }
    }
}

impl Session for Link {
    fn id(&self) -> Id {
        self.id
    }

    fn patience(&mut self, statement: Duration) -> Result<(), OraError> {
        self.guarded(|connection, _| connection.set_call_timeout(Some(statement)))
    }

    fn run(&mut self, sql: &str, binds: &[Bind<'_>]) -> Result<u64, OraError> {
        let held = hold(binds);
        let values: Vec<&dyn ToDbValue> = held.iter().map(Held::value).collect();
        // Keep the statements that operations repeat.
        let keep = sql.starts_with("update /*");
        Ok(self.execute(sql, &values, keep)?.rows_affected())
    }

    fn batch(&mut self, sql: &str, rows: &[Vec<Bind<'_>>]) -> Result<u64, OraError> {
        let held: Vec<Vec<Held<'_>>> = rows.iter().map(|row| hold(row)).collect();
        let values: Vec<Vec<&dyn ToDbValue>> = held.iter().map(|row| row.iter().map(Held::value).collect()).collect();
        let rows: Vec<&[&dyn ToDbValue]> = values.iter().map(Vec::as_slice).collect();
        self.guarded(|connection, _| Ok(connection.execute_batch(sql, rows.as_slice())?.rows_affected()))
    }

    fn rows(&mut self, sql: &str, binds: &[Bind<'_>]) -> Result<Rows, OraError> {
        self.leading(sql, binds, usize::MAX)
    }

    fn leading(&mut self, sql: &str, binds: &[Bind<'_>], columns: usize) -> Result<Rows, OraError> {
        let held = hold(binds);
        let values: Vec<&dyn ToDbValue> = held.iter().map(Held::value).collect();
        self.guarded(|connection, _| {
            let statement = connection.statement(sql)?.prefetch_rows(FETCH).fetch_array_size(FETCH);
            let mut rows = Rows::new();
            for row in statement.build()?.query(&values)? {
                let row = row?;
                let wanted = 0..row.columns().len().min(columns);
                rows.push(wanted.map(|at| row.get::<Option<String>>(at)).collect::<Result<_, _>>()?);
            }
            Ok(rows)
        })
    }

    fn number(&mut self, sql: &str, binds: &[Bind<'_>]) -> Result<u64, OraError> {
        let held = hold(binds);
        let values: Vec<&dyn ToDbValue> = held.iter().map(Held::value).collect();
        self.guarded(|connection, _| connection.query_row(sql, &values)?.get::<u64>(0))
    }

    fn call(&mut self, sql: &str, binds: &[Bind<'_>], outs: usize) -> Result<Vec<String>, OraError> {
        static TEXT: &DbType = DB_TYPE_VARCHAR;
        let held = hold(binds);
        let mut values: Vec<&dyn ToDbValue> = held.iter().map(Held::value).collect();
        values.extend(std::iter::repeat_n(&TEXT as &dyn ToDbValue, outs));
        let mut done = self.execute(sql, &values, true)?;
        let row = done.out_bind_data();
        let text = |at| Ok(row.get::<Option<String>>(at)?.unwrap_or_default());
        (0..outs).map(text).collect::<Result<_, oracledb::Error>>().map_err(OraError::from)
    }

    fn commit(&mut self) -> Result<(), OraError> {
        self.guarded(|connection, _| connection.commit())
    }

    fn rollback(&mut self) -> Result<(), OraError> {
        self.guarded(|connection, _| connection.rollback())
    }
}

/// Logs off, unless the server takes too long to react.
impl Drop for Link {
    fn drop(&mut self) {
        let statements = std::mem::take(&mut self.statements);
        if let Some(connection) = self.connection.take() {
            // If logging off fails, closing the socket ends the session.
            let _ = within(CLOSE, "oracle logoff", move || {
                drop(statements);
                drop(connection);
            });
        }
    }
}
