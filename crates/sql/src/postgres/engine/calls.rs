//! The statements of one schema, prepared in one session.

use super::options::Options;
use super::plans;
use crate::postgres::errors;
use crate::postgres::layout::changed_columns;
use crate::postgres::wire::{Bind, Call, Connection};
use assay_run::dataset::rows::{COLUMN_BYTES, FILL, fill_columns};
use assay_run::engine::EngineError;
use assay_run::plan::Plan;

/// Index of an update's first content parameter, after the two keys.
const CONTENT: usize = 2;

/// The prepared statements for one schema.
#[derive(Debug)]
pub(super) struct Calls {
    pub select: Call,
    pub update: Option<Call>,
    pub scan: Option<Call>,
    /// Number of content values: one for each column (OBFUSCATE_COLUMNS), or one that all columns share.
    values: usize,
    obfuscate: bool,
    content: Vec<u8>,
}

/// The text of a range select.
pub(super) fn select_sql(options: &Options, schema: u32, first: &str, last: &str) -> String {
    format!("select count(c2) from {} where custid between {first} and {last}", options.names.rows_table(schema))
}

/// The text of an update; `value` returns the expression for each changed column, counted from 0.
pub(super) fn update_sql(
    options: &Options,
    plan: &Plan,
    schema: u32,
    range: [&str; 2],
    value: impl Fn(usize) -> String,
) -> String {
    let columns: Vec<String> =
        changed_columns(plan.redo_stress).enumerate().map(|(i, column)| format!("c{column} = {}", value(i))).collect();
    format!(
        "update {} set {} where custid between {} and {}",
        options.names.rows_table(schema),
        columns.join(", "),
        range[0],
        range[1]
    )
}

/// The text of a scan.
pub(super) fn scan_sql(options: &Options, schema: u32) -> String {
    format!("select count(c2) from {}", options.names.scan_table(schema))
}

impl Calls {
    /// Prepares the statements of the plan, and verifies that the server executes them as intended.
    pub(super) fn prepare(
        connection: &mut Connection,
        options: &Options,
        plan: &Plan,
        schema: u32,
    ) -> Result<Self, EngineError> {
        const INT8: u32 = 20;
        let sql = select_sql(options, schema, "$1", "$2");
        let select = connection.prepare(&sql, &[INT8, INT8]).map_err(errors::unusable)?;
        plans::range(connection, options, &select, schema, 0)?;
        let keys = [Bind::Int8(1), Bind::Int8(1)];
        let columns = changed_columns(plan.redo_stress).count();
        let values = if plan.obfuscate { columns } else { 1 };
        let update = if plan.update_pct > 0 {
            let sql = update_sql(options, plan, schema, ["$1", "$2"], |i| {
                format!("${}", CONTENT + 1 + if plan.obfuscate { i } else { 0 })
            });
            let statement = connection.prepare(&sql, &[INT8, INT8]).map_err(errors::unusable)?;
            plans::range(connection, options, &statement, schema, values)?;
            let fill = String::from_utf8_lossy(&[FILL; COLUMN_BYTES]).into_owned();
            let mut binds = keys.to_vec();
            binds.extend(std::iter::repeat_n(Bind::Text(&fill), values));
            Some(Call::new(&statement, &binds))
        } else {
            None
        };
        let scan = if plan.scan_pct > 0 {
            let statement = connection.prepare(&scan_sql(options, schema), &[]).map_err(errors::unusable)?;
            plans::scan(connection, &statement, schema)?;
            Some(Call::new(&statement, &[]))
        } else {
            None
        };
        Ok(Self {
            select: Call::new(&select, &keys),
            update,
            scan,
            values,
            obfuscate: plan.obfuscate,
            content: Vec::with_capacity(values * COLUMN_BYTES),
        })
    }

    /// Sets the content of the next update.
    pub(super) fn stamp(&mut self, stamp: u64) {
        let Some(update) = &mut self.update else {
            return;
        };
        fill_columns(&mut self.content, self.values, stamp, 0, self.obfuscate);
        for (i, column) in self.content.chunks_exact(COLUMN_BYTES).enumerate() {
            update.value(CONTENT + i).copy_from_slice(column);
        }
    }
}
