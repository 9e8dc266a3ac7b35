//! Verifies with EXPLAIN, once for each statement of a session, that the server executes it the way the test intends.

use super::options::{Options, ReadMode};
use crate::postgres::errors;
use crate::postgres::wire::{Connection, Prepared};
use assay_run::engine::EngineError;

/// The plan of a prepared statement, one line per node.
fn explain(connection: &mut Connection, statement: &Prepared, values: &[&str]) -> Result<Vec<String>, EngineError> {
    let arguments = if values.is_empty() { String::new() } else { format!("({})", values.join(", ")) };
    let sql = format!("explain (costs off) execute {}{arguments}", statement.name());
    let answer = connection.query(&sql).map_err(errors::unusable)?;
    let line = |mut row: Vec<Option<String>>| row.pop().flatten();
    Ok(answer.rows.into_iter().filter_map(line).collect())
}

/// Checks a statement over a range of keys: it must use our index, in the way READ_MODE sets.
pub(super) fn range(
    connection: &mut Connection,
    options: &Options,
    statement: &Prepared,
    schema: u32,
    texts: usize,
) -> Result<(), EngineError> {
    let mut values = vec!["1", "64"];
    values.extend(std::iter::repeat_n("'X'", texts));
    let plan = explain(connection, statement, &values)?;
    let table = format!("cf1_{schema}");
    let wanted = match options.read_mode {
        ReadMode::Single => vec![format!("Index Scan using i_{table} on {table}")],
        ReadMode::Batched { .. } => {
            vec![format!("Bitmap Heap Scan on {table}"), format!("Bitmap Index Scan on i_{table}")]
        }
    };
    let what = if texts > 0 { "an update" } else { "a select" };
    expect(what, &table, &plan, &wanted)
}

/// Checks a scan: one process must read the whole table.
pub(super) fn scan(connection: &mut Connection, statement: &Prepared, schema: u32) -> Result<(), EngineError> {
    let plan = explain(connection, statement, &[])?;
    let table = format!("cf2_{schema}");
    expect("a scan", &table, &plan, &[format!("Seq Scan on {table}")])
}

/// Each of `wanted` must be a node of the plan, and no other node may read a table.
fn expect(what: &str, table: &str, plan: &[String], wanted: &[String]) -> Result<(), EngineError> {
    let nodes: Vec<&str> = plan
        .iter()
        .map(|line| line.trim().trim_start_matches("->").trim())
        .filter(|line| line.contains("Scan") || line.contains("Gather"))
        .collect();
    let as_wanted =
        nodes.len() == wanted.len() && nodes.iter().zip(wanted).all(|(node, wanted)| node.starts_with(wanted.as_str()));
    if as_wanted {
        return Ok(());
    }
    Err(EngineError::Unusable(format!(
        "the server would perform {what} on {table} by {}, not by {}, so the figures would mean something else. \
         Check whether the index exists (`assay check`), and whether a setting of the server or the role \
         (pg_hint_plan, enable_*) overrides the session's settings",
        if nodes.is_empty() { "no scan".to_owned() } else { nodes.join(" over ") },
        wanted.join(" over ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(plan: &str) -> Vec<String> {
        plan.lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_plan_that_is_wanted_passes_and_others_are_named() {
        let wanted = ["Index Scan using i_cf1_1 on cf1_1".to_owned()];
        let good = "Aggregate\n  ->  Index Scan using i_cf1_1 on cf1_1\n        Index Cond: (custid >= 1)";
        assert!(expect("a select", "cf1_1", &lines(good), &wanted).is_ok());
        for (bad, word) in [
            ("Aggregate\n  ->  Seq Scan on cf1_1", "Seq Scan on cf1_1"),
            ("Aggregate\n  ->  Index Only Scan using i_cf1_1 on cf1_1", "Index Only Scan"),
            ("Aggregate\n ->  Gather\n  ->  Index Scan using i_cf1_1 on cf1_1", "Gather"),
            ("Aggregate\n  ->  Result", "no scan"),
        ] {
            let error = expect("a select", "cf1_1", &lines(bad), &wanted).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
