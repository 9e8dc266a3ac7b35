//! The answer on stdout: where the record lies, how it compares with the run before it, and colours for a terminal.

use crate::catalogue::{Catalogue, Entry, path_of};
use crate::cli::Product;
use crate::exit::Failure;
use crate::record::{self, Faces};
use crate::rundir::{RECORD, REPORT, REPORT_HTML, RUNS_DIR};
use crate::ui;
use assay_measure::plain::shell_word;
use assay_measure::record::Record;
use assay_report::answer::{self, Class, Context};
use assay_report::compare::{self, Group, Options, Verdict};
use std::io::{self, IsTerminal};
use std::path::Path;

/// Earlier runs that are looked at before it is said that none was of the same test.
const LOOKED_AT: usize = 5;

/// Prints what was asked for of a record that was written to `place`.
pub(crate) fn product(faces: &Faces, product: Product, place: &Path) -> Result<(), Failure> {
    match product {
        Product::Answer => ui::terminal(&of_run(&faces.record, place)),
        Product::Full => ui::product(&faces.text),
        Product::Json => ui::product(&faces.json),
    }
}

/// The answer of a record that was written to `place`.
fn of_run(record: &Record, place: &Path) -> String {
    let context = Context {
        run: shell_word(&place.display().to_string()),
        files: vec![REPORT.to_owned(), REPORT_HTML.to_owned()],
        previous: previous(record, place),
    };
    coloured(record, &context)
}

/// The answer of a record, coloured where somebody looks at it.
fn coloured(record: &Record, context: &Context) -> String {
    let is_seen =
        io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    let paint = |class: Class, title: &str| match (is_seen, class) {
        (true, Class::Good) => format!("\u{1b}[32m{title}\u{1b}[0m"),
        (true, Class::Doubtful) => format!("\u{1b}[33m{title}\u{1b}[0m"),
        (true, Class::Bad) => format!("\u{1b}[31m{title}\u{1b}[0m"),
        _ => title.to_owned(),
    };
    answer::of(&[record], context).text(&paint)
}

/// How the main figure differs from that of the last run of the same test, in the directory where runs are kept.
pub(crate) fn previous(record: &Record, place: &Path) -> Option<(String, Class)> {
    if record.import.is_some() {
        return None;
    }
    let above = place.parent().filter(|above| above.ends_with(RUNS_DIR))?;
    let catalogue = Catalogue::open(above).ok()?;
    let own = place.file_name()?.to_str()?;
    let is_alike = |entry: &&Entry| {
        entry.name != own
            && entry.kind == record.kind
            && entry.workload == record.run.workload
            && entry.engine == record.run.engine
            && entry.started.as_str() <= record.run.started.as_str()
    };
    let earlier = catalogue.entries.iter().rev().filter(is_alike);
    earlier.take(LOOKED_AT).find_map(|entry| {
        let before = record::read(&path_of(above, entry).join(RECORD)).ok()?;
        against(record, &before, entry)
    })
}

/// Nothing where the earlier run was of another test.
fn against(record: &Record, before: &Record, entry: &Entry) -> Option<(String, Class)> {
    let group = |name: &str, record| Group {
        name: name.to_owned(),
        records: vec![record],
    };
    let groups = [group("before", before), group("now", record)];
    let compared = compare::of(&groups, &Options::default());
    if compared.pairs.iter().any(|pair| pair.forbids_faster) {
        return None;
    }
    let row = compared.rows.iter().find(|row| row.is_primary)?;
    let judged = row.against.first()?;
    let class = match judged.verdict {
        Verdict::Better => Class::Good,
        Verdict::Worse => Class::Doubtful,
        _ => Class::Plain,
    };
    let text = format!(
        "{} against run {} ({} UTC): {}.",
        row.name,
        entry.id,
        entry.started.replace('T', " "),
        judged.sentence.trim_end_matches('.')
    );
    Some((text, class))
}
