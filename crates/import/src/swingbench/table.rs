//! The table of `parse_results.py`: a column a results file, a row a figure.

use super::super::Confidence;
use super::super::draft::Draft;
use super::super::number;
use super::super::rows::{clock_s, setting};
use super::super::text::{At, Text};
use super::{response, whole};

pub(super) fn looks_like(text: &Text) -> Confidence {
    let has = |part: &str| text.head_has(part);
    Confidence::of(
        92,
        &[
            ("a table with a column Attribute", has("| Attribute")),
            ("a row Average Tx/Sec or Benchmark Name", has("Average Tx/Sec") || has("Benchmark Name")),
        ],
    )
}

/// Rows of the whole run.
const ROWS: [(&str, &str); 7] = [
    ("No of Users", "sessions_count"),
    ("Total Run Time", "elapsed_s"),
    ("Average Tx/Sec", "transactions_per_s"),
    ("Maximum Tx/Min", "transactions_per_min_max"),
    ("Total Completed Transactions", "transactions_count"),
    ("Minimum Inter TX Think Time", "think_inter_ms_min"),
    ("Maximum Inter TX Think Time", "think_inter_ms_max"),
];

/// Headings of the blocks with a row a transaction.
const BLOCKS: [(&str, &str); 4] = [
    ("Average Transaction Response Time", "avg"),
    ("10th Percentile Transaction Response Time", "p10"),
    ("50th Percentile Transaction Response Time", "p50"),
    ("90th Percentile Transaction Response Time", "p90"),
];

pub(super) fn read(text: &Text, draft: &mut Draft) {
    draft.recognised("", "Swingbench results table");
    let mut statistic = None;
    let mut intra = 0;
    for line in &text.lines {
        let cells: Vec<&str> = line.text.trim().trim_matches('|').split('|').map(str::trim).collect();
        let [label, value, others @ ..] = cells.as_slice() else {
            continue;
        };
        if *label == "Attribute" {
            setting(draft, "results file", value);
            if !others.is_empty() {
                let n = others.len();
                draft.note(
                    line.at,
                    format!("{n} more columns belong to other runs: one record contains one run, the first"),
                );
            }
        } else if let Some((_, found)) = BLOCKS.iter().find(|(heading, _)| heading == label) {
            statistic = Some(*found);
        } else if let Some(statistic) = statistic.filter(|_| !label.is_empty()) {
            response(draft, line.at, label, statistic, number::measure(value));
        } else {
            attribute(draft, line.at, label, value, &mut intra);
        }
    }
}

fn attribute(draft: &mut Draft, at: At, label: &str, value: &str, intra: &mut u32) {
    if label == "Time of run" {
        value.clone_into(&mut draft.record.run.started);
    }
    // Both intra think times are printed under one label: the first is the minimum.
    if label == "Maximum Intra TX Think Time" || label == "Minimum Intra TX Think Time" {
        let key = ["think_intra_ms_min", "think_intra_ms_max"][usize::from(*intra > 0)];
        *intra += 1;
        whole(draft, at, label, key, number::count(value));
        return;
    }
    let found = ROWS.iter().find(|(name, _)| *name == label);
    let Some((_, key)) = found else {
        if !label.is_empty() && !value.is_empty() && !label.starts_with('+') {
            setting(draft, label, value.trim_matches('"'));
        }
        return;
    };
    let printed = match *key {
        "elapsed_s" => clock_s(value),
        "transactions_per_s" => number::measure(value),
        _ => number::count(value),
    };
    whole(draft, at, label, key, printed);
}
