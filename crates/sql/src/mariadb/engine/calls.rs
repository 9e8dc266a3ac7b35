//! The statements of a schema, and the plans they must have.

use super::super::conn::{Connection, told};
use super::super::layout::{INDEX, changed_columns, rows_table, scan_table};
use super::super::wire::Call;
use assay_run::dataset::rows::COLUMN_BYTES;
use assay_run::engine::EngineError;
use assay_run::plan::Plan;

/// Selects a range of rows; `into` is empty or names a procedure's variable.
pub(super) fn select_sql(schema: u32, into: &str, range: &str) -> String {
    let rows = rows_table(schema);
    format!("select count(c2){into} from {rows} force index ({INDEX}) where custid between {range}")
}

/// Updates a range of rows; `value` is the expression for the n-th changed column.
pub(super) fn update_sql(plan: &Plan, schema: u32, value: impl Fn(usize) -> String, range: &str) -> String {
    let columns = changed_columns(plan.redo_stress).iter().enumerate();
    let set: Vec<String> = columns.map(|(n, column)| format!("c{column} = {}", value(n))).collect();
    let rows = rows_table(schema);
    format!("update {rows} force index ({INDEX}) set {} where custid between {range}", set.join(", "))
}

/// Reads the rows of the scan table.
pub(super) fn scan_sql(schema: u32, into: &str) -> String {
    format!("select count(c2){into} from {}", scan_table(schema))
}

/// The prepared statements for one schema.
pub(super) struct Calls {
    pub(super) select: Call,
    pub(super) update: Option<Call>,
    pub(super) scan: Option<Call>,
    /// Of the next update.
    pub(super) content: Vec<u8>,
}

impl Calls {
    /// Prepares the statements of the plan, and verifies that the server executes them as intended.
    pub(super) fn prepare(connection: &mut Connection, plan: &Plan, schema: u32) -> Result<Self, EngineError> {
        let select = |range: &str| select_sql(schema, "", range);
        let update = |value: &str, range: &str| update_sql(plan, schema, |_| value.to_owned(), range);
        let scan = scan_sql(schema, "");
        let width = plan.work_unit.max(plan.update_work_unit);
        let sample = format!("1 and {width}");
        let by_index = by_index(width);
        plan_is(connection, &select(&sample), &by_index)?;
        let (mut updates, mut scans) = (None, None);
        if plan.update_pct > 0 {
            plan_is(connection, &update("c3", &sample), &by_index)?;
            let texts = changed_columns(plan.redo_stress).len();
            let sql = update("?", "? and ?");
            updates = Some(prepared(connection, &sql, (texts, 2))?);
        }
        if plan.scan_pct > 0 {
            plan_is(connection, &scan, &["ALL ".to_owned()])?;
            scans = Some(prepared(connection, &scan, (0, 0))?);
        }
        let select = prepared(connection, &select("? and ?"), (0, 2))?;
        Ok(Self { select, update: updates, scan: scans, content: Vec::new() })
    }
}

/// Ways to read a range of so many keys through the index.
fn by_index(width: u32) -> Vec<String> {
    let mut ways = vec![format!("range {INDEX}")];
    if width == 1 {
        // Some servers treat a range of one row as a lookup by value: the same pages of the same index.
        ways.push(format!("ref {INDEX}"));
    }
    ways
}

/// Prepares a statement whose parameters are so many column-length texts, followed by numbers.
fn prepared(connection: &mut Connection, sql: &str, (texts, numbers): (usize, usize)) -> Result<Call, EngineError> {
    let statement = connection.prepare(sql).map_err(told("preparing a statement"))?;
    Ok(Call::execute(statement.id, (texts, COLUMN_BYTES as u8), numbers))
}

/// Verifies that the server uses one of these access types and indexes.
fn plan_is(connection: &mut Connection, sql: &str, wanted: &[String]) -> Result<(), EngineError> {
    let rows = connection.rows(&format!("explain format=traditional {sql}")).map_err(told("asking for a plan"))?;
    let row = rows.into_iter().next().unwrap_or_default();
    let text = |at: usize| row.get(at).cloned().flatten().unwrap_or_default();
    let [access, key] = connection.product.plan_columns();
    let is = format!("{} {}", text(access), text(key));
    if wanted.contains(&is) {
        return Ok(());
    }
    Err(EngineError::Unusable(format!(
        "the server would not perform `{sql}` as the test requires: its plan is {is}, not {}; check the index with \
         `assay check`",
        wanted.join(" or ")
    )))
}
