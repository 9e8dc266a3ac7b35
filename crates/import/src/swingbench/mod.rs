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
use super::rows::{file, operations_are_transactions};
use super::text::{At, Text};
use super::{Confidence, ImportError};
use assay_measure::plain::slug;
use builder::BUILDER;

pub(super) fn looks_like(text: &Text) -> Confidence {
    xml::looks_like(text).or(table::looks_like(text)).or(BUILDER.looks_like(text)).or(progress::looks_like(text))
}

pub(super) fn read(texts: &[Text], draft: &mut Draft) -> Result<(), ImportError> {
    for text in texts {
        if xml::looks_like(text).missing.is_empty() {
            xml::read(text, draft)?;
        } else if table::looks_like(text).missing.is_empty() {
            table::read(text, draft);
        } else if progress::looks_like(text).missing.is_empty() {
            progress::read(text, draft);
        } else {
            BUILDER.read(std::slice::from_ref(text), draft)?;
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
fn whole(draft: &mut Draft, at: At, name: &str, key: &str, printed: Option<Printed>) {
    if let Some(printed) = printed {
        file(draft, client(at, key, name, printed), "");
    }
}

/// A statistic of one transaction's response time, printed in ms.
fn response(draft: &mut Draft, at: At, kind: &str, statistic: &str, printed: Option<Printed>) {
    let slug = slug(kind);
    if let Some(printed) = printed {
        let key = format!("{slug}_us_{statistic}");
        file(draft, client(at, &key, &format!("{kind} {statistic}"), printed.scaled(1e3)), &slug);
    }
}
