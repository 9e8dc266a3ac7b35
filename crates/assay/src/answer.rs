//! The answer on stdout: where the record lies, how it compares with the run before it, and colours for a terminal.

use crate::before;
use crate::cli::Product;
use crate::exit::Failure;
use crate::record::Faces;
use crate::rundir::{REPORT, REPORT_HTML};
use crate::ui;
use assay_measure::plain::shell_word;
use assay_measure::record::Record;
use assay_report::answer::{self, Class, Context};
use std::path::Path;

/// Prints what was asked for of a record that was written to `place`.
pub(crate) fn product(faces: &Faces, product: Product, place: &Path) -> Result<(), Failure> {
    match product {
        Product::Answer => ui::terminal(&of_run(&faces.record, place)),
        Product::Full => ui::product(&faces.text),
        Product::Json => ui::product(&faces.json),
    }
}

/// The record in the format of the tool that its kind of test replaces.
pub(crate) fn in_words_of_tool(record: &Record, is_json: bool) -> Result<String, Failure> {
    let kind = assay_report::kinds::of(record);
    let (text, format) =
        if is_json { (kind.in_json_of_tool(record), "tool-json") } else { (kind.in_words_of_tool(record), "tool") };
    text.ok_or_else(|| {
        let kind = &record.kind;
        Failure::usage(format!("--format {format}: kind {kind} has no equivalent tool output"))
    })
}

/// The answer of a record that was written to `place`.
fn of_run(record: &Record, place: &Path) -> String {
    let context = Context {
        run: shell_word(&place.display().to_string()),
        files: vec![REPORT.to_owned(), REPORT_HTML.to_owned()],
        previous: before::previous(record, place),
    };
    coloured(record, &context)
}

/// The answer of a record, coloured where somebody looks at it.
fn coloured(record: &Record, context: &Context) -> String {
    let is_seen = ui::is_watched() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    let paint = |class: Class, title: &str| match (is_seen, class) {
        (true, Class::Good) => format!("\u{1b}[32m{title}\u{1b}[0m"),
        (true, Class::Doubtful) => format!("\u{1b}[33m{title}\u{1b}[0m"),
        (true, Class::Bad) => format!("\u{1b}[31m{title}\u{1b}[0m"),
        _ => title.to_owned(),
    };
    answer::of(&[record], context).text(&paint)
}
