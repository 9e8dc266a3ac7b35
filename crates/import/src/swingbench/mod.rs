//! Swingbench: the data generator's summary, the lines of `charbench`, the table of `parse_results.py`, the results file.
//!
//! Times are printed in whole milliseconds at level `simple`, and its percentiles are estimates that hardly move:
//! identity I37 judges them.

mod builder;
mod progress;
mod table;
mod xml;

#[cfg(test)]
mod tests;

use super::draft::{Draft, Reading};
use super::number::Printed;
use super::rows::{load_row, op_row, operations_are_transactions};
use super::text::{At, Text};
use super::{Confidence, ImportError};
use assay_measure::plain::slug;

pub(super) fn looks_like(text: &Text) -> Confidence {
    xml::looks_like(text).or(table::looks_like(text)).or(builder::looks_like(text)).or(progress::looks_like(text))
}

pub(super) fn read(texts: &[Text], draft: &mut Draft) -> Result<(), ImportError> {
    for text in texts {
        if xml::looks_like(text).missing.is_empty() {
            xml::read(text, draft)?;
        } else if table::looks_like(text).missing.is_empty() {
            table::read(text, draft);
        } else if builder::looks_like(text).missing.is_empty() {
            builder::read(text, draft);
        } else {
            progress::read(text, draft);
        }
    }
    operations_are_transactions(draft);
    Ok(())
}

/// A value of the load generator.
fn client(at: At, key: &str, name: &str, printed: Printed) -> Reading {
    Reading::new(at, key, printed).name(name).layer("client")
}

/// What all transactions together did.
fn whole(draft: &mut Draft, at: At, name: &str, what: Whole, printed: Option<Printed>) {
    let Some(printed) = printed else {
        return;
    };
    match what {
        Whole::Users => {
            put!(draft, client(at, "sessions_count", name, printed), run.sessions);
        }
        Whole::Elapsed => {
            put!(draft, client(at, "elapsed_s", name, printed), interval.elapsed_s);
        }
        Whole::PerSecond => {
            let row = load_row(draft, "Transactions", "count");
            put!(draft, client(at, "transactions_per_s", name, printed), instance.load_profile[row].per_s);
        }
        Whole::Total => {
            let row = load_row(draft, "Transactions", "count");
            put!(draft, client(at, "transactions_count", name, printed), instance.load_profile[row].total);
        }
        Whole::Alone(key) => draft.alone(client(at, key, name, printed)),
    }
}

/// Where a figure of the whole goes.
#[derive(Clone, Copy)]
enum Whole {
    Users,
    Elapsed,
    PerSecond,
    Total,
    Alone(&'static str),
}

/// A statistic of one transaction's response time, printed in `us` us each.
fn response(draft: &mut Draft, at: At, kind: &str, statistic: &str, us: f64, printed: Option<Printed>) {
    let Some(printed) = printed.map(|printed| printed.scaled(us)) else {
        return;
    };
    let slug = slug(kind);
    let row = op_row(draft, &slug);
    let name = format!("{kind} {statistic}");
    let reading = client(at, &format!("{slug}_us_{statistic}"), &name, printed);
    match statistic {
        "avg" => put!(draft, reading, driver.ops[row].service.us_avg),
        "min" => put!(draft, reading, driver.ops[row].service.us_min),
        "max" => put!(draft, reading, driver.ops[row].service.us_max),
        "p50" => put!(draft, reading, driver.ops[row].service.us_p50),
        "p90" => put!(draft, reading, driver.ops[row].service.us_p90),
        "p99" => put!(draft, reading, driver.ops[row].service.us_p99),
        _ => draft.alone(reading),
    }
}
