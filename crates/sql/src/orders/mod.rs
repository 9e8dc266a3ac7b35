//! Order entry on any SQL server: how a data set is described and loaded, and the books that are closed after a run.
//! Each server's folder adds its SQL, its way to copy rows, and its sessions.

pub(crate) mod books;
pub(crate) mod ddl;
pub(crate) mod engine;
pub(crate) mod load;
pub(crate) mod marker;
pub(crate) mod session;
pub(crate) mod target;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod text;

use assay_orders::checks::{BROKEN, Checked};
use assay_orders::model::TABLES;
use assay_run::engine::{EngineError, Line, LineValue};
use marker::Marker;

/// Rows of an answer, as text; `None` is NULL.
pub(crate) type Rows = Vec<Vec<Option<String>>>;

/// A connection, as far as a data set needs one.
pub(crate) trait Talk {
    /// Executes a statement and ignores its answer; an error says what `doing` was.
    fn tell(&mut self, sql: &str, doing: &str) -> Result<(), EngineError>;

    /// Returns all rows.
    fn ask(&mut self, sql: &str, doing: &str) -> Result<Rows, EngineError>;

    /// Executes statements in one transaction.
    fn together(&mut self, sql: &[String], doing: &str) -> Result<(), EngineError> {
        self.tell("begin", doing)?;
        sql.iter().try_for_each(|statement| self.tell(statement, doing))?;
        self.tell("commit", doing)
    }
}

/// Executes statements one after the other.
pub(crate) fn all(connection: &mut dyn Talk, sql: &[String], doing: &str) -> Result<(), EngineError> {
    sql.iter().try_for_each(|statement| connection.tell(statement, doing))
}

pub(crate) fn line(key: &'static str, label: &str, value: LineValue) -> Line {
    Line { key, label: label.to_owned(), value }
}

pub(crate) fn text_line(key: &'static str, label: &str, value: String) -> Line {
    line(key, label, LineValue::Text(value))
}

/// The error for a place ("schema x") without a data set.
pub(crate) fn nothing(place: &str) -> EngineError {
    EngineError::Unusable(format!("{place} has no data set of order entry: `assay orders prepare` makes one"))
}

/// The error for a data set that already exists.
pub(crate) fn already(place: &str, found: &Marker) -> EngineError {
    EngineError::Usage(format!(
        "{place} already has a data set of scale {} (seed {}): run on it, or remove it with `assay orders destroy` first",
        found.scale(),
        found.seed
    ))
}

/// Refuses a place that contains objects foreign to a data set.
pub(crate) fn refuse_strangers(place: &str, strange: Rows) -> Result<(), EngineError> {
    let strange: Vec<String> = strange.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect();
    if strange.is_empty() {
        Ok(())
    } else {
        Err(EngineError::Unusable(format!(
            "{place} contains objects that assay did not make: {}; move them elsewhere, since assay neither executes \
             nor removes them",
            strange.join(", ")
        )))
    }
}

/// Lines of `check` about the seventeen checks.
pub(crate) fn checked_lines(place: &str, found: &Marker, checked: Vec<Checked>) -> Result<Vec<Line>, EngineError> {
    let broken: Vec<String> = checked
        .iter()
        .filter(|one| one.verdict == BROKEN)
        .map(|one| format!("{} ({}): {}", one.id, one.what, one.found))
        .collect();
    if !broken.is_empty() {
        return Err(EngineError::Damaged(format!("the data set in {place} is not consistent: {}", broken.join("; "))));
    }
    let mut lines = vec![text_line("scale", "scale", found.scale())];
    lines.extend(checked.into_iter().map(|one| {
        let verdict = if one.found.is_empty() { one.verdict } else { format!("{} ({})", one.verdict, one.found) };
        text_line("check", &format!("{} {}", one.id, one.what), verdict)
    }));
    Ok(lines)
}

/// Lines about what is removed with a data set.
pub(crate) fn removed(schema: &str, found: &Marker) -> Vec<Line> {
    let tables = TABLES.map(|table| table.name()).join(", ");
    vec![
        text_line("schema", "schema", schema.to_owned()),
        text_line("scale", "scale", found.scale()),
        text_line("tables", "tables", tables),
    ]
}
