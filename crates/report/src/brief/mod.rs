//! The one page a manager reads: the answer, and what it costs.
//!
//! At most [`LINES`] lines of [`WIDTH`] columns, of any kind of record. Reads records and a cost; no figure of its own but
//! medians over repeats and the sums of `price`.

mod price;

#[cfg(test)]
mod tests;

use crate::answer::{self, Context, Page};
use crate::cost::Cost;
use assay_measure::record::Record;
use assay_measure::units::shorten;

/// Most lines of a page.
pub const LINES: usize = 60;
pub use crate::answer::WIDTH;

/// Most columns of a finding of a price.
const LONG: usize = 300;

/// Renders the page of a run, or of repeats of one run: then a figure is the median with its range.
///
/// Empty for no record.
#[must_use]
pub fn render(records: &[&Record], cost: Option<&Cost>) -> String {
    let Some(first) = records.first() else {
        return String::new();
    };
    let mut page = Page::default();
    title(&mut page, records, first);
    page.line("");
    for said in answer::of(records, &Context::default()).said {
        // What to type next is for who sits at the machine.
        if said.title == "Next" {
            break;
        }
        page.item(said.title, &said.text);
    }
    let found = cost.map_or_else(Vec::new, |cost| crate::cost::findings(&[cost]));
    for advice in &found {
        let text = format!("{}: {}", advice.id, shorten(&advice.text, LONG));
        page.item("Finding", &text);
    }
    match cost {
        Some(cost) => price::section(&mut page, cost),
        None => page.part(
            "Price",
            "n/a (no price file was given: use --prices prices.toml; `assay cost --example` prints such a file)",
        ),
    }
    page.finish(LINES, "(cut here; `assay report RUN` and `assay cost RUN` print the rest)")
}

fn title(page: &mut Page, records: &[&Record], first: &Record) {
    let run = &first.run;
    let label = run.label.as_ref().map_or_else(String::new, |label| format!(" \"{label}\""));
    let which = match records.len() {
        1 => format!("run {}{label}", run.id),
        repeats => format!("{repeats} repeats{label}, first run {}", run.id),
    };
    let day = run.started.get(..10).filter(|day| !day.is_empty()).unwrap_or("date n/a");
    let line = format!("BRIEF  {} on {}, {which}, {day}", run.workload, run.engine);
    page.line(&line);
    page.line(&"=".repeat(shorten(&line, WIDTH).chars().count()));
}
