//! `runs list`: a line for each run.

use super::index;
use crate::catalogue::{Catalogue, Entry, Filter, IMPORT, IMPORTED, Value, instant, path_of};
use crate::cli::WhichArgs;
use crate::cli::format::{CSV, HTML, JSON};
use crate::exit::{Code, Failure};
use crate::{plan_text, registry, rundir, ui};
pub(super) use assay_measure::plain::csv_field as field;
use assay_measure::units;
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The runs that are meant, oldest first.
pub(super) fn chosen(catalogue: &Catalogue, which: &WhichArgs) -> Result<Vec<Entry>, Failure> {
    let at = |option, text: &Option<String>| {
        let text = text.as_deref();
        text.map(|text| instant(option, text)).transpose()
    };
    known_kinds(catalogue, which)?;
    let filter = Filter {
        kind: which.kind.clone(),
        workload: which.workload.clone(),
        engine: which.engine.clone(),
        labels: which.label.clone(),
        tags: which.tag.clone(),
        host: which.host.clone(),
        verdict: which.verdict.clone(),
        since: at("--since", &which.since)?,
        until: at("--until", &which.until)?,
    };
    let entries = catalogue.entries.iter();
    let mut chosen: Vec<Entry> = entries.filter(|entry| filter.accepts(entry)).cloned().collect();
    // A directory named by -o sorts anywhere; time is what was asked for.
    chosen.sort_by(|a, b| (&a.started, &a.name).cmp(&(&b.started, &b.name)));
    let newest = which.limit.unwrap_or(usize::MAX);
    chosen.drain(..chosen.len().saturating_sub(newest));
    Ok(chosen)
}

/// Refuses a kind that no run has and no version of this program makes: a slip would list nothing.
fn known_kinds(catalogue: &Catalogue, which: &WhichArgs) -> Result<(), Failure> {
    let kinds = registry::kinds();
    let ours = kinds.iter().map(|kind| kind.name());
    let entries = catalogue.entries.iter().map(|entry| entry.kind.as_str());
    let known: BTreeSet<&str> = ours.chain(entries).chain([IMPORT, "repeat", "killed"]).collect();
    let unknown = |kind: &&String| !known.contains(kind.as_str());
    match which.kind.iter().find(unknown) {
        Some(kind) => {
            let known: Vec<&str> = known.into_iter().filter(|kind| !kind.is_empty()).collect();
            Err(Failure::usage(format!("--kind {kind}: there is no such kind; the kinds are {}", known.join(", "))))
        }
        None => Ok(()),
    }
}

type Columns = Vec<(String, BTreeMap<String, Value>)>;

pub(super) fn list(
    which: &WhichArgs,
    metrics: &[String],
    format: &str,
    output: Option<&Path>,
) -> Result<Code, Failure> {
    let catalogue = Catalogue::open(&which.dir)?;
    let entries = chosen(&catalogue, which)?;
    let mut columns = Columns::new();
    for key in metrics {
        columns.push((key.clone(), catalogue.metric(key)?.1));
    }
    if catalogue.entries.is_empty() {
        ui::say(&format!("{}: there are no runs", which.dir.display()));
    } else if entries.is_empty() {
        ui::say(&format!("{}: none of {} runs matches", which.dir.display(), catalogue.entries.len()));
    }
    let text = match format {
        JSON => {
            let objects = entries.iter().map(|entry| object(&which.dir, entry, &columns));
            plan_text::pretty(&Json::Array(objects.collect()))
        }
        CSV => csv(&which.dir, &entries, &columns),
        HTML => index::page(&which.dir, &entries, output),
        _ => table(&which.dir, &entries, &columns),
    };
    match output {
        Some(path) => rundir::write_file(path, &text)?,
        None => ui::product(&text)?,
    }
    Ok(Code::Good)
}

/// A number for people: no more digits than it is known to.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        large if large >= 1000.0 => units::fixed(value, 1),
        middle if middle >= 1.0 => units::fixed(value, 3),
        _ => units::fixed(value, 6),
    }
}

fn dash(text: &str) -> String {
    match text {
        "" => "-".to_owned(),
        text => text.to_owned(),
    }
}

/// A column: its head, whether it is of numbers, and a run's cell.
type Column<'a> = (String, bool, Box<dyn Fn(&Entry) -> String + 'a>);

fn table(dir: &Path, entries: &[Entry], metrics: &Columns) -> String {
    let text = |head: &str, of: fn(&Entry) -> String| -> Column<'_> { (head.to_owned(), false, Box::new(of)) };
    let mut columns: Vec<Column<'_>> = vec![
        text("ID", |run| run.id.clone()),
        text("STARTED (UTC)", |run| dash(&run.started)),
        text("WORKLOAD", workload),
        text("TARGET", |run| dash(&run.engine)),
    ];
    // Columns that would be empty are left out.
    if entries.iter().any(|run| !run.label.is_empty()) {
        columns.push(text("LABEL", |run| dash(&run.label)));
    }
    if entries.iter().any(|run| !run.tags.is_empty()) {
        columns.push(text("TAGS", |run| dash(&run.tags.join(", "))));
    }
    if metrics.is_empty() {
        let rate = |run: &Entry| run.ops_per_s.map_or("n/a".to_owned(), |rate| units::fixed(rate, 1));
        columns.push(("OPS/S".to_owned(), true, Box::new(rate)));
    }
    for (key, values) in metrics {
        let cell = |run: &Entry| match values.get(&run.name) {
            Some(Ok(value)) => number(*value),
            _ => "n/a".to_owned(),
        };
        columns.push((key.clone(), true, Box::new(cell)));
    }
    columns.push(text("VERDICT", |run| run.verdict.clone()));
    let place = |run: &Entry| path_of(dir, run).display().to_string();
    columns.push(("DIRECTORY".to_owned(), false, Box::new(place)));
    aligned(entries, &columns)
}

fn aligned(entries: &[Entry], columns: &[Column<'_>]) -> String {
    let mut rows = vec![columns.iter().map(|(head, ..)| head.clone()).collect::<Vec<_>>()];
    rows.extend(entries.iter().map(|run| columns.iter().map(|(.., of)| of(run)).collect()));
    let width = |column: usize| rows.iter().map(|row: &Vec<String>| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns.len()).map(|column| width(column).unwrap_or(0)).collect();
    let mut out = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).zip(columns);
        let cells: Vec<String> = cells
            .map(
                |((cell, width), (_, is_number, _))| {
                    if *is_number { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
                },
            )
            .collect();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
    }
    out
}

/// A sweep of a workload is not a run of it.
fn workload(run: &Entry) -> String {
    match run.kind.as_str() {
        "sweep" | "repeat" => format!("{} {}", run.workload, run.kind).trim().to_owned(),
        kind if run.workload == IMPORTED => format!("{kind} {IMPORT}"),
        _ => dash(&run.workload),
    }
}

/// The lines of a run's card that are known.
pub(super) fn card(run: &Entry) -> Vec<(&'static str, String)> {
    let rate = run.ops_per_s.map_or("n/a".to_owned(), |rate| units::fixed(rate, 1));
    let lines = [
        ("id", run.id.clone()),
        ("kind", run.kind.clone()),
        ("started (UTC)", dash(&run.started)),
        ("workload", workload(run)),
        ("target", dash(&run.engine)),
        ("label", run.label.clone()),
        ("tags", run.tags.join(", ")),
        ("host", run.host.clone()),
        ("assay", run.version.clone()),
        ("sessions", run.sessions.map_or_else(String::new, |n| n.to_string())),
        ("seconds", run.elapsed_s.map_or_else(String::new, number)),
        ("ops/s", rate),
        ("verdict", run.verdict.clone()),
    ];
    lines.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

fn object(dir: &Path, run: &Entry, metrics: &Columns) -> Json {
    let mut object = json!({
        "id": run.id,
        "kind": run.kind,
        "started": dash(&run.started),
        "workload": workload(run),
        "engine": dash(&run.engine),
        "label": run.label,
        "tags": run.tags,
        "host": run.host,
        "version": run.version,
        "sessions": run.sessions,
        "elapsed_s": run.elapsed_s,
        "ops_per_s": run.ops_per_s,
        "verdict": run.verdict,
        "path": path_of(dir, run).display().to_string(),
    });
    if !metrics.is_empty() {
        let figures = metrics.iter().map(|(key, values)| {
            let figure = match values.get(&run.name) {
                Some(Ok(value)) => json!(value),
                Some(Err(reason)) => json!({ "na": reason }),
                None => json!({ "na": "absent" }),
            };
            (key.clone(), figure)
        });
        object["metrics"] = Json::Object(figures.collect::<Map<_, _>>());
    }
    object
}

fn csv(dir: &Path, entries: &[Entry], metrics: &Columns) -> String {
    let mut out =
        "id,kind,started,workload,engine,label,tags,host,version,sessions,elapsed_s,ops_per_s,verdict,path".to_owned();
    for (key, _) in metrics {
        out.push(',');
        out.push_str(&field(key));
    }
    out.push('\n');
    for run in entries {
        let decimal = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let mut cells = vec![
            field(&run.id),
            field(&run.kind),
            field(&run.started),
            field(&run.workload),
            field(&run.engine),
            field(&run.label),
            field(&run.tags.join(";")),
            field(&run.host),
            field(&run.version),
            run.sessions.map_or_else(String::new, |n| n.to_string()),
            decimal(run.elapsed_s),
            decimal(run.ops_per_s),
            field(&run.verdict),
            field(&path_of(dir, run).display().to_string()),
        ];
        for (_, values) in metrics {
            cells.push(decimal(values.get(&run.name).and_then(|value| value.as_ref().ok().copied())));
        }
        out.push_str(&cells.join(","));
        out.push('\n');
    }
    out
}
