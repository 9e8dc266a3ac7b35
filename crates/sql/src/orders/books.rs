//! After a run: adds its books to the data set's, and checks what the run left.

use super::Talk;
use assay_orders::checks::{self, Checked, Words};
use assay_orders::part::FromEngine;
use assay_run::engine::EngineError;
use std::time::Instant;

/// Closes the books of a run and checks the data set. If a query fails, the report says so in place of the checks.
pub(crate) fn close(control: &mut dyn Talk, words: &dyn Words, part: &mut FromEngine, verify: bool) {
    let closing = part.ledger.closing_sql(|name| words.relation(name));
    if let Err(error) = control.together(&closing, "closing the books") {
        part.unchecked = error.to_string();
        return;
    }
    if !verify {
        part.unchecked = "VERIFY=FALSE".to_owned();
        return;
    }
    if part.hosts > 1 && open_runs(control, words).is_ok_and(|open| open > 0) {
        part.unchecked = "the books of other hosts were open".to_owned();
        return;
    }
    let began = Instant::now();
    match check(control, words) {
        Ok(checked) => part.checks = checked,
        Err(error) => part.unchecked = error.to_string(),
    }
    part.checks_s = began.elapsed().as_secs_f64();
}

/// Runs the seventeen checks.
pub(crate) fn check(control: &mut dyn Talk, words: &dyn Words) -> Result<Vec<Checked>, EngineError> {
    let open = open_runs(control, words)?;
    let mut all = Vec::new();
    for check in checks::all(words) {
        all.push(match (check.by_books, open) {
            (true, 1..) => check.not_known(&checks::books_open(open)),
            _ => check.judge(&numbers(control, &check.sql)?),
        });
    }
    Ok(all)
}

/// Runs whose books are open.
fn open_runs(control: &mut dyn Talk, words: &dyn Words) -> Result<u64, EngineError> {
    let open = numbers(control, &checks::open_runs_sql(words))?;
    Ok(open.first().map_or(0.0, |row| row[0]) as u64)
}

/// Rows of three numbers; a value that is not a number becomes one beyond every bound.
fn numbers(control: &mut dyn Talk, sql: &str) -> Result<Vec<[f64; 3]>, EngineError> {
    let rows = control.ask(sql, "checking")?;
    let number = |value: Option<&Option<String>>| {
        let text = value.and_then(Option::as_deref);
        text.and_then(|text| text.parse().ok()).unwrap_or(f64::INFINITY)
    };
    Ok(rows.iter().map(|row| [0, 1, 2].map(|at| number(row.get(at)))).collect())
}
