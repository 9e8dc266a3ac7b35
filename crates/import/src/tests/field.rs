//! What people feed the tool: small texts as they paste them, each with what must come of it.
//!
//! `NAME.check` beside a text has a line for each thing that must hold: `records N`, and for record `n`:
//! `n SCOPE | KEY = NUMBER` (or `n/a`), `n steps N`, `n started TEXT`, `n broken none`, `n says TEXT` and `n never TEXT` of the first
//! screen, `n notes TEXT` of its notes.

use super::super::testing::{info, value};
use crate::{Source, import_all, kinds};
use assay_measure::identity::violated;
use assay_measure::record::Record;
use std::path::Path;

fn records(path: &Path) -> Vec<Record> {
    let text = std::fs::read_to_string(path).expect("a text");
    assay_report::kinds::install(kinds());
    let all = import_all(vec![Source { path: path.display().to_string(), text }]);
    all.map(|one| one.result.unwrap_or_else(|error| panic!("{error}"))).collect()
}

fn screen(record: &Record) -> String {
    let answer = assay_report::answer::of(&[record], &Default::default()).text();
    answer.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What is wrong with one expectation.
fn wrong(records: &[Record], line: &str) -> Option<String> {
    let (first, rest) = line.split_once(' ')?;
    if first == "records" {
        return (rest != records.len().to_string()).then(|| format!("{} records", records.len()));
    }
    let record = records.get(first.parse::<usize>().ok()?)?;
    let notes: Vec<&str> = info(record).notes.iter().map(|note| note.text.as_str()).collect();
    let (verb, text) = rest.split_once(' ').unwrap_or((rest, ""));
    let is_right = match verb {
        _ if rest.contains(" = ") && rest.contains('|') => {
            let (scope, rest) = rest.split_once('|')?;
            let (key, expected) = rest.split_once(" = ")?;
            let found = value(record, scope.trim(), key.trim()).value.value();
            let expected = expected.trim().parse::<f64>().ok();
            let is_near = |found: f64| expected.is_some_and(|wanted| (found - wanted).abs() <= 1e-9 * wanted.abs());
            return (found.map_or(expected.is_some(), |found| !is_near(found))).then(|| format!("{found:?}"));
        }
        "steps" => return (text != record.series.t_s.len().to_string()).then(|| format!("{:?}", record.series.t_s)),
        "started" => return (!record.run.started.starts_with(text)).then(|| record.run.started.clone()),
        "broken" => {
            let broken: Vec<_> =
                violated(record).into_iter().map(|one| format!("{} {}", one.id, one.sentence)).collect();
            return (!broken.is_empty()).then(|| format!("{broken:?}"));
        }
        "says" => screen(record).contains(text),
        "never" => !screen(record).contains(text),
        "notes" => notes.iter().any(|note| note.contains(text)),
        _ => false,
    };
    let told = if verb == "notes" { format!("{notes:#?}") } else { screen(record) };
    (!is_right).then_some(told)
}

#[test]
fn every_text_of_the_field_gives_what_stands_beside_it() {
    let place = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/field");
    let mut wrongs = Vec::new();
    let entries = std::fs::read_dir(place).expect("the field");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|end| end != "check")) {
        let Ok(expected) = std::fs::read_to_string(path.with_extension("check")) else {
            continue;
        };
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        match std::panic::catch_unwind(|| records(path)) {
            Err(why) => wrongs.push(format!("{name}: {:?}", why.downcast_ref::<String>())),
            Ok(records) => {
                let lines = expected.lines().filter(|line| !line.is_empty());
                let each = lines.filter_map(|line| {
                    let outcome = std::panic::catch_unwind(|| wrong(&records, line));
                    let found = outcome.unwrap_or_else(|why| Some(format!("{:?}", why.downcast_ref::<String>())));
                    found.map(|found| format!("{name}: {line}\n    {found}"))
                });
                wrongs.extend(each);
            }
        }
    }
    assert!(wrongs.is_empty(), "{}", wrongs.join("\n"));
}
