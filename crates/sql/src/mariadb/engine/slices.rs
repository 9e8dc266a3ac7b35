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
use crate::session::Failed;
use crate::slices::{Answer, Pace, encoded, turn};
use assay_measure::clock::{Clock, Ns};
use assay_run::dataset::rows::{COLUMN_BYTES, fill_columns};
use assay_run::engine::{EngineError, Op, Slice, SliceDone};
use assay_run::plan::{Edge, Plan};

/// Most operations in a slice. The results are collected in one text, which grows with each operation.
const OPS_MAX: usize = 512;
/// Digits of a key.
const KEY_DIGITS: usize = 14;
/// Type of operations and contents.
const TEXT: &str = "longtext character set latin1";
/// Approximate bytes of a block besides its operations.
const FRAME_BYTES: u64 = 65_536;

/// Slices of a session.
pub(super) struct Sliced {
    pub(super) pace: Pace,
    home: u32,
    /// What performs the operations.
    work: Work,
    ops: String,
    contents: String,
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
            ops: String::new(),
            contents: String::new(),
            content: Vec::new(),
        })
    }

    /// Performs a slice.
    pub(super) fn perform(
        &mut self,
        connection: &mut Connection,
        plan: &Plan,
        clock: &Clock,
        slice: &Slice<'_>,
    ) -> Result<SliceDone, Failed> {
        self.encode(plan, slice.ops)?;
        let Self { pace, work, ops, contents, .. } = self;
        let asked = slice.ops.len();
        pace.performed(clock, slice, |left_us| {
            let sql = match work {
                Work::Block(body) => format!(
                    "begin not atomic declare ops {TEXT} default '{ops}'; declare contents {TEXT} default '{contents}'; \
                     declare most int default {asked}; declare budget bigint default {left_us}; {body} end"
                ),
                Work::Procedure(name) => format!("call {name}('{ops}', '{contents}', {asked}, {left_us})"),
            };
            match connection.rows(&sql) {
                Ok(rows) => Ok(answer(asked, &rows)?),
                Err(error) if error.is_fatal() => Err(error.into()),
                Err(error) => Ok(killed(connection, asked, &error)?),
            }
        })
    }

    fn encode(&mut self, plan: &Plan, ops: &[Op]) -> Result<(), EngineError> {
        self.ops.clear();
        self.contents.clear();
        for op in ops {
            let (kind, first) = encoded(op, self.home)?;
            if let Op::Update { stamp, .. } = *op {
                fill_columns(&mut self.content, contents_of(plan), stamp, first, plan.obfuscate);
                self.contents.push_str(&String::from_utf8_lossy(&self.content));
            }
            self.ops.push_str(&format!("{kind}{first:0KEY_DIGITS$}"));
        }
        Ok(())
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
    let each = 1 + KEY_DIGITS;
    let scan = |schema| format!("{};", scan_sql(schema, " into n"));
    let turn = turn(plan, home, "k", [&|schema| select(plan, schema), &|schema| update(plan, schema), &scan]);
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
