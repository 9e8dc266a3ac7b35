//! After a run: its books are added to the data set's, and what it left is checked.

use super::ddl::Named;
use crate::postgres::own::told;
use crate::postgres::wire::Connection;
use assay_measure::config::Settings;
use assay_orders::checks::{self, Checked};
use assay_orders::part::FromEngine;
use assay_run::engine::EngineError;
use std::time::Instant;

/// Memory for the sorts and hashes of the checks.
const CHECK_MEMORY: &str = "set work_mem = '256MB'; set jit = off";

/// Closes the books of a run and checks the data set. What cannot be asked is told in the checks' place.
pub(super) fn close(control: &mut Connection, names: &Named, part: &mut FromEngine, verify: bool) {
    let mut closing = vec!["begin".to_owned()];
    closing.extend(part.ledger.closing_sql(|name| names.relation(name)));
    closing.push("commit".to_owned());
    if let Err(error) = super::load::all(control, &closing, "closing the books") {
        part.unchecked = error.to_string();
        return;
    }
    if !verify {
        part.unchecked = "VERIFY=FALSE".to_owned();
        return;
    }
    let began = Instant::now();
    match check(control, names) {
        Ok(checked) => part.checks = checked,
        Err(error) => part.unchecked = error.to_string(),
    }
    part.checks_s = began.elapsed().as_secs_f64();
}

/// The seventeen checks.
pub(super) fn check(control: &mut Connection, names: &Named) -> Result<Vec<Checked>, EngineError> {
    control.query(CHECK_MEMORY).map_err(told("checking"))?;
    let open = numbers(control, &checks::open_runs_sql(names))?;
    let open = open.first().map_or(0.0, |row| row[0]) as u64;
    let mut all = Vec::new();
    for check in checks::all(names) {
        all.push(match (check.by_books, open) {
            (true, 1..) => check.not_known(&checks::books_open(open)),
            _ => check.judge(&numbers(control, &check.sql)?),
        });
    }
    Ok(all)
}

/// Rows of three numbers; what is no number is beyond every bound.
fn numbers(control: &mut Connection, sql: &str) -> Result<Vec<[f64; 3]>, EngineError> {
    let rows = control.query(sql).map_err(told("checking"))?;
    let number = |value: Option<&Option<String>>| {
        let text = value.and_then(Option::as_deref);
        text.and_then(|text| text.parse().ok())
            .unwrap_or(f64::INFINITY)
    };
    Ok(rows
        .rows
        .iter()
        .map(|row| [0, 1, 2].map(|at| number(row.get(at))))
        .collect())
}

/// What keeps a commit safe, as the sessions have it.
pub(super) fn durability(
    control: &mut Connection,
    settings: &Settings,
) -> Result<String, EngineError> {
    let mut told_all = Vec::new();
    for name in ["fsync", "full_page_writes", "synchronous_commit"] {
        let rows = control
            .query(&format!("select current_setting('{name}')"))
            .map_err(told("asking for its durability"))?;
        let value = rows
            .rows
            .first()
            .and_then(|row| row.first().cloned().flatten())
            .unwrap_or_default();
        let value = match (name, settings.text("COMMIT_MODE")) {
            ("synchronous_commit", mode) if mode != "default" => mode.to_owned(),
            _ => value,
        };
        told_all.push(format!("{name}={value}"));
    }
    Ok(told_all.join(", "))
}
