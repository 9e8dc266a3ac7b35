//! R30: numbers do not agree.

use super::*;

/// What was printed elsewhere has no exact identities; these say that figures cannot be of one run.
const PRINTED: [&str; 4] = ["I29", "I30", "I31", "I37"];

pub(super) const RULE: Rule = Rule {
    id: "R30",
    title: "Numbers do not agree",
    changes_figures: true,
    fires_when: || {
        format!(
            "An exact identity is violated; of an import one that shows figures of several runs ({}); always high",
            PRINTED.join(", ")
        )
    },
    why: "A violated exact identity is a bug of assay; of an import the figures contradict each other.",
    what_to_do: "Draw no conclusion from the figures that the Integrity section names.",
    cannot_judge_when: "No identity was evaluated.",
    source: "Published reports: CPU columns of 75 %, equal percentiles.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    if record.integrity.is_empty() {
        return Err(Missing("identities: none was evaluated".to_owned()));
    }
    let (kind, exact) = match record.import {
        None => ("exact", violated_exact(record)),
        Some(_) => {
            let mut all = violated(record);
            all.retain(|found| PRINTED.iter().any(|id| found.id.starts_with(id)));
            ("printed", all)
        }
    };
    let Some(first) = exact.first() else {
        return Ok(None);
    };
    let ids: Vec<&str> = exact.iter().map(|identity| identity.id.as_str()).collect();
    let side = |figure: &Figure| figure.value().unwrap_or(f64::NAN);
    let text = format!(
        "Numbers do not agree: {} violated ({}){}. {}: {}.",
        match ids.len() {
            1 => format!("an identity of {kind} figures is"),
            count => format!("{count} identities of {kind} figures are"),
        },
        ids.join(", "),
        if record.import.is_none() { ", which is a bug of assay" } else { "" },
        first.id,
        first.sentence
    );
    let evidence = [
        ("violated_exact_count", exact.len() as f64),
        ("violated_count", violated(record).len() as f64),
        ("lhs", side(&first.lhs)),
        ("rhs", side(&first.rhs)),
    ];
    Ok(Some(RULE.advise(true, text, &evidence)))
}
