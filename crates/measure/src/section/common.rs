//! What the report of any kind begins with.

use super::{Sections, Weight};
use crate::record::Record;

/// ` "LABEL"` behind the run's id, or nothing.
#[must_use]
pub fn label(record: &Record) -> String {
    let label = record.run.label.as_deref();
    label.map_or_else(String::new, |label| format!(" \"{label}\""))
}

/// `Verdict: valid.`, with the reasons where there are any.
#[must_use]
pub fn verdict(record: &Record) -> String {
    let run = &record.run;
    let mut text = format!("Verdict: {}", run.verdict);
    if !run.verdict_reasons.is_empty() {
        text.push_str(" - ");
        text.push_str(&run.verdict_reasons.join("; "));
    }
    text + "."
}

/// What may change what the figures mean.
pub fn warnings(page: &mut Sections, record: &Record) {
    page.judgement("Warnings");
    if record.warnings.is_empty() {
        page.line("none");
    }
    for warning in &record.warnings {
        page.finding(Weight::Warning, "  - ", warning);
    }
}

/// The findings, and the rules that could not be judged.
pub fn advice(page: &mut Sections, record: &Record) {
    if record.advice.is_empty() && record.advice_unjudged.is_empty() {
        return;
    }
    page.judgement("Advice");
    if record.advice.is_empty() {
        page.line("none");
    }
    for advice in record.advice.iter().take(10) {
        let lead = format!("{:<4} {:<5} ", advice.id, advice.severity);
        let weight = match advice.severity.as_str() {
            "high" => Weight::Warning,
            _ => Weight::Plain,
        };
        page.finding(weight, &lead, &advice.text);
    }
    if !record.advice_unjudged.is_empty() {
        let rules = record.advice_unjudged.join(", ");
        page.wrapped("Not judged, for want of a figure: ", &rules);
    }
}
