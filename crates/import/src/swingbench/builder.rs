//! The summary a data generation ends with.

use super::super::Confidence;
use super::super::draft::{Draft, Reading};
use super::super::number;
use super::super::rows::clock_s;
use super::super::text::Text;

pub(super) fn looks_like(text: &Text) -> Confidence {
    Confidence::of(
        90,
        &[
            ("Datagenerator Run Stats", text.head_has("Datagenerator Run Stats")),
            ("a line Rows Inserted per sec", text.head_has("Rows Inserted per sec")),
        ],
    )
}

const LABELS: [(&str, &str); 9] = [
    ("Connection Time", "load_connection_s"),
    ("Data Generation Time", "load_data_generation_s"),
    ("DDL Creation Time", "load_ddl_s"),
    ("Total Run Time", "load_total_s"),
    ("Rows Inserted per sec", "load_rows_per_s"),
    ("Data Generated (MB) per sec", "load_data_mb_per_s"),
    ("Actual Rows Generated", "load_rows_count"),
    ("Commits Completed", "load_commits_count"),
    ("Batch Updates Completed", "load_batches_count"),
];

pub(super) fn read(text: &Text, draft: &mut Draft) {
    draft.recognised("", "Swingbench data generator summary");
    for line in &text.lines {
        let bare = line.text.trim();
        let found = LABELS.iter().find(|(label, _)| bare.starts_with(label));
        let Some((label, key)) = found else {
            continue;
        };
        let token = bare[label.len()..].trim();
        let printed = match key {
            key if key.ends_with("_count") => number::count(token),
            key if token.contains(':') && key.ends_with("_s") => clock_s(token),
            _ => number::measure(token),
        };
        match printed {
            Some(printed) => {
                let reading = Reading::new(line.at, *key, printed).name(label);
                draft.alone(reading.layer("client"));
            }
            None => draft.note(line.at, format!("{label}: no number follows it")),
        }
    }
}
