//! LOOP=server: a procedure in the session's temporary schema performs slices of operations.
//!
//! assay still decides the workload: keys, kinds and contents travel as arrays, and the server returns its clock at the
//! end of each operation, in whole microseconds. The statements are static, so their plans are cached; each operation
//! commits separately. A procedure in the temporary schema needs only the TEMPORARY privilege, cannot conflict with
//! other runs, and disappears with the session, however it ends.

use super::calls::{scan_sql, select_sql, update_sql};
use super::options::Options;
use crate::postgres::errors;
use crate::postgres::layout::changed_columns;
use crate::postgres::wire::{Bind, Connection, PgError, Prepared, clean};
use crate::session::Failed;
use crate::slices::{Answer, Pace, encoded, turn};
use assay_measure::clock::{Clock, Ns};
use assay_run::dataset::rows::{COLUMN_BYTES, fill_columns};
use assay_run::engine::{EngineError, Op, Slice, SliceDone};
use assay_run::plan::{Edge, Plan};

/// Most operations in a slice.
const OPS_MAX: usize = 8192;
/// A session's procedure.
#[derive(Debug)]
pub(super) struct Sliced {
    call: Prepared,
    home: u32,
    pub(super) pace: Pace,
    kinds: Vec<i32>,
    firsts: Vec<i64>,
    contents: Vec<u8>,
    content: Vec<u8>,
}

/// Number of columns an update changes, and of contents it sends.
fn contents_of(plan: &Plan) -> usize {
    match (plan.obfuscate, plan.redo_stress) {
        (false, _) => 1,
        (true, redo) => changed_columns(redo).count(),
    }
}

impl Sliced {
    /// Creates the procedure for a session whose own schema is `home`.
    pub(super) fn open(
        connection: &mut Connection,
        options: &Options,
        plan: &Plan,
        home: u32,
    ) -> Result<Self, EngineError> {
        let sql = procedure(options, plan, home);
        connection.query(&sql).map_err(|error| match error.code() {
            Some("42501") => EngineError::Unusable(format!(
                "LOOP=server creates a temporary procedure, but the server refuses it: {error}. Grant TEMPORARY on \
                 the database, or use LOOP=client"
            )),
            _ => errors::unusable(error),
        })?;
        const TYPES: [u32; 4] = [1007, 1016, 1009, 20];
        let call = connection
            .prepare("call pg_temp.assay_slice($1, $2, $3, $4, null, null, null, null, null)", &TYPES)
            .map_err(errors::unusable)?;
        Ok(Self {
            call,
            home,
            pace: Pace::new(OPS_MAX, longest(connection)?),
            kinds: Vec::new(),
            firsts: Vec::new(),
            contents: Vec::new(),
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
        let Self { call, pace, kinds, firsts, contents, .. } = self;
        pace.performed(clock, slice, |left_us| {
            let mut answer = None;
            let binds = [
                Bind::Int4s(kinds),
                Bind::Int8s(firsts),
                Bind::Texts { bytes: contents, each: contents_of(plan) * COLUMN_BYTES },
                Bind::Int8(left_us as i64),
            ];
            connection.execute(call, &binds, &mut |values| answer = Some(decode(kinds.len(), values)))?;
            let answer = answer.unwrap_or_else(|| decode(kinds.len(), &[]));
            Ok(answer.map_err(PgError::Refused)?)
        })
    }

    fn encode(&mut self, plan: &Plan, ops: &[Op]) -> Result<(), EngineError> {
        self.kinds.clear();
        self.firsts.clear();
        self.contents.clear();
        for op in ops {
            let (kind, first) = encoded(op, self.home)?;
            if let Op::Update { stamp, .. } = *op {
                fill_columns(&mut self.content, contents_of(plan), stamp, 0, plan.obfuscate);
                self.contents.extend_from_slice(&self.content);
            }
            self.kinds.push(kind.into());
            self.firsts.push(first as i64);
        }
        Ok(())
    }
}

/// Half of the server's statement_timeout, since a slice is one statement to the server.
fn longest(connection: &mut Connection) -> Result<Ns, EngineError> {
    const SHORTEST_MS: u64 = 100;
    let answer = connection
        .query("select setting from pg_settings where name = 'statement_timeout'")
        .map_err(errors::unusable)?;
    let ms: u64 = answer.rows.first().and_then(|row| row.first()?.as_deref()?.parse().ok()).unwrap_or(0);
    match ms {
        0 => Ok(Ns::MAX),
        ms if ms >= SHORTEST_MS => Ok(ms * 1_000_000 / 2),
        ms => Err(EngineError::Usage(format!(
            "statement_timeout is {ms} ms, but with LOOP=server a whole slice of operations is one statement: use \
             LOOP=client, or a statement_timeout of {SHORTEST_MS} ms or more for this role"
        ))),
    }
}

/// The text of the procedure, without operations that the plan never requests.
fn procedure(options: &Options, plan: &Plan, home: u32) -> String {
    let scan = |schema| format!("n := ({});", scan_sql(options, schema));
    let words: [&dyn Fn(u32) -> String; 3] =
        [&|schema| select(options, plan, schema), &|schema| update(options, plan, schema), &scan];
    let work = turn(plan, home, "kinds[i]", words);
    format!(
        "create or replace procedure pg_temp.assay_slice(kinds int[], firsts bigint[], contents text[], budget_us bigint, \
           inout began timestamptz, inout ends timestamptz[], inout touched bigint[], inout failed_code text, inout failed_text text) \
         language plpgsql as $assay$ \
         declare a bigint; n bigint; m bigint; u int := 0; t timestamptz; deadline timestamptz; \
         begin \
           began := clock_timestamp(); t := began; deadline := began + budget_us * interval '1 microsecond'; \
           for i in 1 .. cardinality(kinds) loop \
             exit when t >= deadline; \
             a := firsts[i]; \
             begin {work} \
             exception when query_canceled or others then \
               get stacked diagnostics failed_code = returned_sqlstate, failed_text = message_text; n := 0; \
             end; \
             commit; \
             t := clock_timestamp(); ends[i] := t; touched[i] := n; \
             exit when failed_code is not null; \
           end loop; \
         end $assay$"
    )
}

/// The ranges of one operation: one, or two if it may wrap past the last key.
fn ranges(plan: &Plan, width: u32) -> (String, Option<String>) {
    let last = format!("a + {}", width - 1);
    match plan.edge {
        Edge::Clamp => (last, None),
        Edge::Wrap => {
            (format!("least(a + {}, {})", width - 1, plan.scale), Some(format!("a + {} - {}", width - 1, plan.scale)))
        }
    }
}

fn select(options: &Options, plan: &Plan, schema: u32) -> String {
    let (last, beyond) = ranges(plan, plan.select_width());
    let into = |target: &str, first: &str, last: &str| {
        select_sql(options, schema, first, last).replacen(
            "select count(c2) from",
            &format!("select count(c2) into {target} from"),
            1,
        )
    };
    match beyond {
        None => format!("{};", into("n", "a", &last)),
        Some(beyond) => {
            format!("{}; if {beyond} > 0 then {}; n := n + m; end if;", into("n", "a", &last), into("m", "1", &beyond))
        }
    }
}

fn update(options: &Options, plan: &Plan, schema: u32) -> String {
    let (last, beyond) = ranges(plan, plan.update_width());
    let value = |i: usize| {
        if plan.obfuscate {
            format!("substr(contents[u], {}, {COLUMN_BYTES})", 1 + i * COLUMN_BYTES)
        } else {
            "contents[u]".to_owned()
        }
    };
    let change = |first: &str, last: &str, target: &str| {
        format!("{}; get diagnostics {target} = row_count;", update_sql(options, plan, schema, [first, last], value))
    };
    match beyond {
        None => format!("u := u + 1; {}", change("a", &last, "n")),
        Some(beyond) => format!(
            "u := u + 1; {} if {beyond} > 0 then {} n := n + m; end if;",
            change("a", &last, "n"),
            change("1", &beyond, "m")
        ),
    }
}

/// Decodes the only row that a call returns.
fn decode(asked: usize, values: &[Option<&[u8]>]) -> Result<Answer, String> {
    let value = |at: usize| -> Option<&[u8]> { values.get(at).copied().flatten() };
    let began = value(0).and_then(|bytes| bytes.try_into().ok()).map(i64::from_be_bytes);
    // The arrays are NULL if the slice had no time for any operation.
    let int8s = |at: usize| value(at).map_or_else(|| Some(Vec::new()), int8s);
    let failed = value(3).map(|code| errors::by_code(&clean(code), value(4).map(clean).unwrap_or_default()));
    Answer::of(asked, began, (int8s(1), int8s(2)), failed)
}

/// Decodes an array of eight-byte values in binary form, without NULLs.
fn int8s(bytes: &[u8]) -> Option<Vec<i64>> {
    const HEADER_BYTES: usize = 20;
    /// An empty array has no dimension.
    const EMPTY_BYTES: usize = 12;
    if bytes.len() == EMPTY_BYTES {
        return Some(Vec::new());
    }
    let elements = bytes.get(HEADER_BYTES..)?;
    let each = elements.chunks(4 + 8).map(|element| Some(i64::from_be_bytes(element.get(4..)?.try_into().ok()?)));
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(values: &[i64]) -> Vec<u8> {
        let each = values.iter().flat_map(|value| [&8_i32.to_be_bytes()[..], &value.to_be_bytes()].concat());
        [0; 20].into_iter().chain(each).collect()
    }

    #[test]
    fn a_row_has_the_rows_and_the_instant_of_each_operation() {
        let (began, ends, rows) = (100_i64.to_be_bytes(), array(&[105, 109]), array(&[64, 63]));
        let done = decode(3, &[Some(&began), Some(&ends), Some(&rows), None, None]).unwrap();
        assert_eq!((done.began_us, done.ends_us, done.rows), (100, vec![105, 109], vec![64, 63]));
        let failed = decode(3, &[Some(&began), Some(&ends), Some(&rows), Some(b"40P01"), Some(b"deadlock detected")]);
        assert!(failed.unwrap().failed.is_some_and(|error| error.retryable));
        assert!(decode(3, &[Some(&began), None, None, None, None]).unwrap().ends_us.is_empty(), "no time was left");
    }

    /// It must not count as a success of no operations, which would be asked again at once.
    #[test]
    fn a_row_that_is_missing_or_unreadable_is_an_error() {
        let (began, ends, rows) = (100_i64.to_be_bytes(), array(&[105, 109]), array(&[64, 63]));
        let cut = &ends[..ends.len() - 1];
        let unreadable: [&[Option<&[u8]>]; 5] = [
            &[],
            &[None, Some(&ends), Some(&rows), None, None],
            &[Some(&began), Some(cut), Some(&rows), None, None],
            &[Some(&began), Some(&ends), None, None, None],
            &[Some(&began[..7]), Some(&ends), Some(&rows), None, None],
        ];
        for row in unreadable {
            assert!(decode(3, row).is_err(), "{row:?}");
        }
        assert!(decode(1, &[Some(&began), Some(&ends), Some(&rows), None, None]).is_err());
    }
}
