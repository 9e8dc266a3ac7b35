//! The opening and closing sections of every kind's report.

use super::{Column, Sections, Weight, left, number, wrapped};
use crate::facts::OF_READING;
use crate::identity::violated;
use crate::record::{Record, Truth};
use crate::snapshot::Fact;

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

/// The first two lines of a probe's report: what was tested, when, for how long, and whether it is valid.
pub fn opening(page: &mut Sections, record: &Record, test: &str, of: &str) {
    let run = &record.run;
    page.title(&format!("ASSAY {test} REPORT for run {}{}: {of}", run.id, label(record)));
    page.line(&format!(
        "assay {}, started {}, {} s in all. {}",
        run.version,
        run.started,
        number(&record.interval.elapsed_s, 1),
        verdict(record)
    ));
}

/// Without those that only say how others are read.
fn of_people(facts: &[Fact]) -> impl Iterator<Item = &Fact> {
    let is_of_reading = |fact: &&Fact| OF_READING.iter().any(|key| key.name == fact.name);
    facts.iter().filter(move |fact| !is_of_reading(fact))
}

/// Facts below a heading.
pub fn facts(page: &mut Sections, heading: &str, facts: &[Fact]) {
    page.heading(heading);
    let pairs: Vec<(String, String)> = of_people(facts).map(|fact| (fact.name.clone(), fact.value.clone())).collect();
    page.pairs(&pairs);
}

/// Violated identities.
pub fn integrity(page: &mut Sections, record: &Record) {
    page.judgement("Integrity");
    if record.integrity.is_empty() {
        page.line("n/a (no identity was evaluated)");
        return;
    }
    let count = |is: fn(&Truth) -> bool| record.integrity.iter().filter(|i| is(&i.ok)).count();
    let unknown = count(|ok| matches!(ok, Truth::Na(_)));
    let violations = violated(record);
    page.line(&format!(
        "{} identities hold, {} violated, {unknown} n/a; all are listed under Integrity Detail.",
        count(|ok| *ok == Truth::Holds),
        violations.len(),
    ));
    for identity in violations {
        let (weight, word) =
            if identity.exact { (Weight::Bad, "VIOLATED, A BUG IN ASSAY") } else { (Weight::Warning, "violated") };
        page.finding(
            weight,
            &format!("{:<5} ", identity.id),
            &format!("{word}: {} ({}): {}", identity.rule, identity.scope, identity.sentence),
        );
    }
}

/// How well the figure of `--until` is known, and the warnings.
pub fn warnings(page: &mut Sections, record: &Record) {
    if let Some(precision) = &record.precision {
        page.wrapped("Precision: ", &precision.sentence());
    }
    page.judgement("Warnings");
    if record.doubts().next().is_none() {
        page.line("none");
    }
    for (rule, warning) in record.doubts() {
        let lead = if rule.is_empty() { "  - ".to_owned() } else { format!("  - {rule}: ") };
        page.finding(Weight::Warning, &lead, warning);
    }
}

/// The findings, and the rules that could not be judged.
pub fn advice(page: &mut Sections, record: &Record) {
    if record.hints().next().is_none() && record.advice_unjudged.is_empty() {
        return;
    }
    page.judgement("Advice");
    if record.hints().next().is_none() {
        page.line("none");
    }
    for advice in record.hints().take(10) {
        let lead = format!("{:<4} {:<5} ", advice.id, advice.severity);
        let weight = match advice.severity.as_str() {
            "high" => Weight::Warning,
            _ => Weight::Plain,
        };
        page.finding(weight, &lead, &advice.text);
    }
    if !record.advice_unjudged.is_empty() {
        let rules = record.advice_unjudged.join(", ");
        page.wrapped("Not judged because a figure is missing: ", &rules);
    }
}

/// Every identity with its outcome.
pub fn identities(page: &mut Sections, record: &Record) {
    page.heading("Integrity Detail");
    page.line(
        "exact: a violation is a bug in assay; whole run: from the gate until all operations have ended; \
        window: from begin to end.",
    );
    const IDENTITIES: [Column; 5] =
        [left("Identity", 5), left("State", 9), left("Kind", 6), left("Scope", 10), wrapped("Rule and Outcome")];
    page.untitled(&IDENTITIES);
    let mut others = 0_u64;
    for identity in &record.integrity {
        if record.instance.server.is_some() && is_of_others(&identity.ok) {
            others += 1;
            continue;
        }
        let state = match (&identity.ok, identity.exact) {
            (Truth::Holds, _) => "holds",
            (Truth::Violated, true) => "VIOLATED",
            (Truth::Violated, false) => "violated",
            (Truth::Na(_), _) => "n/a",
        };
        page.row(
            &IDENTITIES,
            &[
                identity.id.clone(),
                state.to_owned(),
                if identity.exact { "exact" } else { "" }.to_owned(),
                identity.scope.clone(),
                format!("{}: {}", identity.rule, identity.sentence),
            ],
        );
    }
    if others > 0 {
        page.line(&format!("Left out: {others} identities on figures that this target lacks; the record lists them."));
    }
}

/// Whether an identity is about something the target does not count at all.
fn is_of_others(ok: &Truth) -> bool {
    matches!(ok, Truth::Na(reason) if reason.ends_with("unsupported"))
}

/// Settings with their origin, facts of the engine and the host.
pub fn parameters(page: &mut Sections, record: &Record) {
    page.heading("Parameters");
    const PARAMETERS: [Column; 3] = [left("Parameter", 28), left("Value", 42), left("Origin", 30)];
    if record.plan.settings.is_empty() {
        page.line("n/a (absent)");
    } else {
        page.columns(&PARAMETERS);
    }
    for line in &record.plan.settings {
        let value = if line.value.is_empty() { "(unset)" } else { line.value.as_str() };
        page.row(&PARAMETERS, &[line.name.clone(), value.to_owned(), line.origin.clone()]);
    }
    const FACTS: [Column; 2] = [left("Fact", 36), left("Value", 60)];
    for (title, facts) in [("Engine Facts", &record.plan.engine_facts), ("Host Facts", &record.host.facts)] {
        if facts.is_empty() {
            page.missing(title, "absent");
            continue;
        }
        page.heading(title);
        page.columns(&FACTS);
        for fact in of_people(facts) {
            page.row(&FACTS, &[fact.name.clone(), fact.value.clone()]);
        }
    }
}
