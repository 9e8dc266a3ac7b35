//! LOOP=server: the server performs a slice of operations by itself.
//!
//! assay still decides the workload: kinds, keys and contents travel with each slice, and the server returns its clock
//! at the end of each operation, in whole microseconds. Each operation commits separately. Session variables hold what
//! a slice has done so far, so that it is known even if the statement was killed.
//!
//! MariaDB executes an anonymous block (`BEGIN NOT ATOMIC ... END`). The block is compiled once, like a stored
//! procedure, but it is not stored: it needs no privilege, cannot conflict with other runs, and disappears with the
//! session, however it ends. MySQL has no such block. There a run stores a procedure for each of its schemas, named
//! after its own session, and drops them at its end; the next prepare or destroy drops what a killed run left.

use super::super::conn::{Connection, MyError, op_error_of, told};
use super::super::layout::changed_columns;
use super::super::marker::{OURS, loop_name};
use super::super::product::Product;
use super::calls::{scan_sql, select_sql, update_sql};
use super::session::{Failure, Session};
use crate::slices::{Answer, NS_PER_US, Pace, foreign, is_hot};
use assay_measure::clock::{Clock, Ns};
use assay_run::dataset::rows::{COLUMN_BYTES, fill_columns};
use assay_run::engine::{EngineError, Op, Slice, SliceDone};
use assay_run::plan::{Edge, Plan};

/// Most operations in a slice. The results are collected in one text, which grows with each operation.
const OPS_MAX: usize = 512;
/// Operation codes, one digit each; codes for the hot schema follow.
const SELECT: u8 = 0;
const UPDATE: u8 = 1;
const SCAN: u8 = 2;
const HOT: u8 = 3;
/// Digits of a key.
const KEY_DIGITS: usize = 14;
/// Type of operations and contents.
const TEXT: &str = "longtext character set latin1";
/// Approximate bytes of a block besides its operations.
const FRAME_BYTES: u64 = 65_536;

/// Slices of a session.
pub(in crate::mariadb) struct Sliced {
    pub(super) pace: Pace,
    home: u32,
    /// What performs the operations.
    work: Work,
    sql: String,
    content: Vec<u8>,
}

/// How a server performs the operations of a slice.
enum Work {
    /// The text of a block, sent with each slice.
    Block(String),
    /// The name of a procedure.
    Procedure(String),
}

/// Number of contents in an update: one for all columns, or one for each.
fn contents_of(plan: &Plan) -> usize {
    if plan.obfuscate { changed_columns(plan.redo_stress).len() } else { 1 }
}

impl Sliced {
    /// For a session whose own schema is `home`; `packet_bytes` limits a statement, and `claim` is the session that
    /// holds the run's claim.
    pub(super) fn open(
        connection: &mut Connection,
        plan: &Plan,
        home: u32,
        (packet_bytes, claim): (u64, u32),
    ) -> Result<Self, EngineError> {
        let each = 1 + KEY_DIGITS + contents_of(plan) * COLUMN_BYTES;
        let room = packet_bytes.saturating_sub(FRAME_BYTES) as usize / each;
        if room == 0 {
            return Err(EngineError::Unusable(format!(
                "LOOP=server: max_allowed_packet is {packet_bytes} bytes, too small for an operation; raise it or use \
                 LOOP=client"
            )));
        }
        Ok(Self {
            pace: Pace::new(OPS_MAX.min(room), longest(connection)?),
            home,
            work: match connection.product {
                Product::MariaDb => Work::Block(body(plan, home)),
                Product::MySql => Work::Procedure(loop_name(claim, home)),
            },
            sql: String::new(),
            content: Vec::new(),
        })
    }

    /// Performs a slice.
    pub(super) fn perform(
        &mut self,
        session: &mut Session,
        plan: &Plan,
        clock: &Clock,
        slice: Slice<'_>,
    ) -> Result<SliceDone, EngineError> {
        let sent_ns = clock.now_ns();
        let left_ns = self.pace.left_ns(sent_ns, slice.until_ns);
        self.encode(plan, slice.ops, left_ns / NS_PER_US)?;
        let answered = self.ask(session, slice.ops.len());
        let end_ns = clock.now_ns();
        match answered {
            Ok(answer) => Ok(self.pace.timed(slice.ops.len(), (sent_ns, end_ns), answer)),
            Err(failure) => {
                let failed = session.failed(failure);
                Ok(Pace::nothing_done(failed, sent_ns, end_ns))
            }
        }
    }

    /// The statement that performs these operations.
    fn encode(&mut self, plan: &Plan, ops: &[Op], budget_us: u64) -> Result<(), EngineError> {
        let contents = contents_of(plan);
        let mut told = String::with_capacity(ops.len() * (1 + KEY_DIGITS));
        let mut filled = String::new();
        for op in ops {
            let (kind, first) = match *op {
                Op::Select { first_key, .. } => (SELECT, first_key),
                Op::Update { first_key, stamp, .. } => {
                    fill_columns(&mut self.content, contents, stamp, first_key, plan.obfuscate);
                    filled.push_str(&String::from_utf8_lossy(&self.content));
                    (UPDATE, first_key)
                }
                Op::Scan { .. } => (SCAN, 0),
                Op::Call { .. } => return Err(foreign()),
            };
            let hot = if is_hot(op, self.home)? { HOT } else { 0 };
            told.push_str(&format!("{}{first:0KEY_DIGITS$}", kind + hot));
        }
        let most = ops.len();
        self.sql = match &self.work {
            Work::Block(body) => format!(
                "begin not atomic declare ops {TEXT} default '{told}'; declare contents {TEXT} default '{filled}'; \
                 declare most int default {most}; declare budget bigint default {budget_us}; {body} end"
            ),
            Work::Procedure(name) => {
                format!("call {name}('{told}', '{filled}', {most}, {budget_us})")
            }
        };
        Ok(())
    }

    fn ask(&self, session: &mut Session, asked: usize) -> Result<Answer, Failure> {
        let connection = session.connection.as_mut().ok_or(Failure::Closed)?;
        match connection.rows(&self.sql) {
            Ok(rows) => Ok(answer(asked, &rows)?),
            Err(error) if error.is_fatal() => Err(error.into()),
            Err(error) => Ok(killed(connection, asked, &error)?),
        }
    }
}

/// Recovers the results of a slice whose statement was killed without an answer.
fn killed(connection: &mut Connection, asked: usize, error: &MyError) -> Result<Answer, MyError> {
    connection.run("rollback")?;
    let rows = connection.rows("select coalesce(@assay_done, ''), 0, ''")?;
    connection.run("set @assay_done = ''")?;
    let mut known = answer(asked, &rows)?;
    // The operation under way ended with the block.
    if known.ends_us.len() < asked {
        let last = known.ends_us.last().copied().unwrap_or(0);
        known.ends_us.push(last);
        known.rows.push(0);
    }
    known.failed = Some(op_error_of(error.code().unwrap_or(0), &error.to_string()));
    Ok(known)
}

/// Parses a block's results: pairs of clock and rows, the error number, and its text.
fn answer(asked: usize, rows: &[Vec<Option<String>>]) -> Result<Answer, MyError> {
    let text = |at: usize| rows.first()?.get(at)?.as_deref();
    let numbers = |done: &str| done.split_ascii_whitespace().map(|word| word.parse().ok()).collect();
    let all: Option<Vec<i64>> = text(0).and_then(numbers);
    let every_other = |first: usize| all.as_ref().map(|all| all.iter().copied().skip(first).step_by(2).collect());
    let code: Option<u16> = text(1).and_then(|code| code.parse().ok());
    let why = || format!("{} (error {})", text(2).unwrap_or_default(), code.unwrap_or_default());
    let failed = code.filter(|code| *code != 0).map(|code| op_error_of(code, &why()));
    Answer::of(asked, code.map(|_| 0), (every_other(0), every_other(1)), failed).map_err(|what| MyError::odd(&what))
}

/// Half of max_statement_time, since a slice is one statement to the server. MySQL's limit does not apply to procedures.
fn longest(connection: &mut Connection) -> Result<Ns, EngineError> {
    const SHORTEST_S: f64 = 0.1;
    if connection.product == Product::MySql {
        return Ok(Ns::MAX);
    }
    let seconds = connection.value("select @@max_statement_time").map_err(told("asking for max_statement_time"))?;
    match seconds.parse::<f64>().unwrap_or(0.0) {
        0.0 => Ok(Ns::MAX),
        s if s >= SHORTEST_S => Ok((s * 5e8) as Ns),
        s => Err(EngineError::Usage(format!(
            "max_statement_time is {s} s, but with LOOP=server a whole slice of operations is one statement: use \
             LOOP=client, or a max_statement_time of {SHORTEST_S} s or more for this user"
        ))),
    }
}

/// Performs up to `most` operations, none starting after `budget` us, and reports each.
fn body(plan: &Plan, home: u32) -> String {
    let values: String =
        (0..contents_of(plan)).map(|n| format!("declare v{n} char({COLUMN_BYTES}) character set latin1; ")).collect();
    let (each, turn) = (1 + KEY_DIGITS, turn(plan, home));
    format!(
        "declare i, k, u int default 0; declare a, n, m, us bigint default 0; {values}\
         declare began datetime(6) default sysdate(6); \
         set @assay_done = '', @assay_code = 0, @assay_text = ''; \
         begin \
           declare exit handler for sqlexception begin \
             get diagnostics condition 1 @assay_code = mysql_errno, @assay_text = message_text; rollback; \
             set @assay_done = concat(@assay_done, timestampdiff(microsecond, began, sysdate(6)), ' 0 '); \
           end; \
           while i < most and us < budget do \
             set k = substr(ops, 1 + i * {each}, 1), a = substr(ops, 2 + i * {each}, {KEY_DIGITS}); \
             {turn} \
             set us = timestampdiff(microsecond, began, sysdate(6)), i = i + 1; \
             set @assay_done = concat(@assay_done, us, ' ', n, ' '); \
           end while; \
         end; \
         select @assay_done, @assay_code, @assay_text; \
         set @assay_done = '';"
    )
}

/// Creates the procedure for sessions of `home`, named after the session that holds the run's claim.
pub(super) fn create(connection: &mut Connection, plan: &Plan, home: u32) -> Result<(), EngineError> {
    let name = loop_name(connection.id(), home);
    let doing = told("making the procedure of LOOP=server (CREATE ROUTINE on this database)");
    // A restarted server reuses session numbers.
    let drop = format!("drop procedure if exists {name}");
    connection.run(&drop).map_err(&doing)?;
    let create = format!(
        "create procedure {name}(ops {TEXT}, contents {TEXT}, most int, budget bigint) comment '{OURS}' \
         sql security invoker begin {} end",
        body(plan, home)
    );
    connection.run(&create).map_err(&doing)
}

/// One iteration of the loop, without operations that the plan never requests.
fn turn(plan: &Plan, home: u32) -> String {
    let mut kinds = Vec::new();
    let hot = (plan.hot_schema_frequency > 0 && home != 1).then_some(1);
    for (base, schema) in [(0, Some(home)), (HOT, hot)] {
        let Some(schema) = schema else { continue };
        if plan.update_pct < 100 && plan.scan_pct < 100 {
            kinds.push((base + SELECT, select(plan, schema)));
        }
        if plan.update_pct > 0 {
            kinds.push((base + UPDATE, update(plan, schema)));
        }
        if plan.scan_pct > 0 {
            kinds.push((base + SCAN, format!("{};", scan_sql(schema, " into n"))));
        }
    }
    match kinds.as_slice() {
        [(_, only)] => only.clone(),
        several => {
            let cases: Vec<String> = several.iter().map(|(kind, sql)| format!("when {kind} then {sql}")).collect();
            format!("case k {} end case;", cases.join(" "))
        }
    }
}

/// The ranges of one operation: one, or two if it may wrap past the last key.
fn ranges(plan: &Plan, width: u32) -> (String, Option<String>) {
    let last = width - 1;
    match plan.edge {
        Edge::Clamp => (format!("a and a + {last}"), None),
        Edge::Wrap => {
            (format!("a and least(a + {last}, {})", plan.scale), Some(format!("a + {last} - {}", plan.scale)))
        }
    }
}

fn select(plan: &Plan, schema: u32) -> String {
    let (range, beyond) = ranges(plan, plan.select_width());
    let one = |into: &str, range: &str| select_sql(schema, &format!(" into {into}"), range);
    match beyond {
        None => format!("{};", one("n", &range)),
        Some(beyond) => format!(
            "{}; if {beyond} > 0 then {}; set n = n + m; end if;",
            one("n", &range),
            one("m", &format!("1 and {beyond}"))
        ),
    }
}

fn update(plan: &Plan, schema: u32) -> String {
    let (range, beyond) = ranges(plan, plan.update_width());
    let contents = contents_of(plan);
    let value = |n: usize| format!("v{}", n % contents);
    let take: Vec<String> = (0..contents)
        .map(|n| {
            let at = n * COLUMN_BYTES + 1;
            let each = contents * COLUMN_BYTES;
            format!("v{n} = substr(contents, {at} + u * {each}, {COLUMN_BYTES})")
        })
        .collect();
    let take = format!("set {}; set u = u + 1;", take.join(", "));
    let change = |range: &str, into: &str| {
        let sql = update_sql(plan, schema, value, range);
        format!("{sql}; set {into} = row_count();")
    };
    match beyond {
        None => format!("{take} {}", change(&range, "n")),
        Some(beyond) => format!(
            "{take} if {beyond} > 0 then start transaction; {} {} commit; set n = n + m; else {} end if;",
            change(&range, "n"),
            change(&format!("1 and {beyond}"), "m"),
            change(&range, "n")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(row: &[Option<&str>]) -> Vec<Vec<Option<String>>> {
        vec![row.iter().map(|value| value.map(str::to_owned)).collect()]
    }

    #[test]
    fn an_answer_has_the_rows_and_the_instant_of_each_operation() {
        let done = answer(3, &told(&[Some("5 64 9 63 "), Some("0"), Some("")])).unwrap();
        assert_eq!((done.ends_us, done.rows, done.failed), (vec![5, 9], vec![64, 63], None));
        let failed = answer(3, &told(&[Some("5 64 9 0 "), Some("1213"), Some("Deadlock")])).unwrap();
        assert_eq!(failed.failed.map(|error| (error.class, error.retryable)), Some(("deadlock", true)));
        assert!(answer(3, &told(&[Some(""), Some("0"), Some("")])).unwrap().ends_us.is_empty(), "no time was left");
    }

    /// It must not count as a success of no operations, which would be asked again at once.
    #[test]
    fn an_answer_that_is_missing_or_unreadable_is_an_error_of_the_connection() {
        let unreadable: [&[Option<&str>]; 6] = [
            &[None, Some("0"), Some("")],
            &[Some("5 64 9"), Some("0"), Some("")],
            &[Some("5 64 x 63"), Some("0"), Some("")],
            &[Some("1 1 2 1 3 1 4 1"), Some("0"), Some("")],
            &[Some("5 64"), None, None],
            &[],
        ];
        for row in unreadable {
            assert!(answer(3, &told(row)).is_err_and(|error| error.is_fatal()), "{row:?}");
        }
        assert!(answer(3, &[]).is_err());
    }
}
