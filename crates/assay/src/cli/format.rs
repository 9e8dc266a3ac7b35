//! `--format`: what a command offers of the list of formats.

use assay_report::formats::{FORMATS, Format, find};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

pub(crate) use assay_report::formats::{ANSWER, CSV, FULL, HTML, JSON, TEXT, TOOL_JSON};

/// The format of `config show` that reads back as the same settings.
pub(crate) const SLOB_CONF: &str = "slob-conf";

/// Every format of a record.
pub(crate) fn of_record() -> impl TypedValueParser<Value = &'static Format> {
    let value = |format: &'static Format| {
        PossibleValue::new(format.name).help(format.help).aliases(format.also.iter().copied())
    };
    let values: Vec<PossibleValue> = FORMATS.iter().map(value).collect();
    PossibleValuesParser::new(values).map(|name| find(&name).unwrap_or_default())
}

/// Some formats of what is no record, by their names in the list.
pub(crate) fn of_others(names: &'static [&'static str]) -> impl TypedValueParser<Value = &'static str> {
    let value = |name: &&'static str| {
        let kind = find(name).map(|format| format.media_type);
        let value = PossibleValue::new(*name).help(match (*name, kind) {
            (ANSWER, _) => "The answer, on one screen",
            (FULL, _) => "All there is to say",
            (_, Some("application/json")) => "For programs",
            (_, Some("text/csv")) => "For spreadsheets",
            (_, Some("text/html")) => "For a browser",
            (_, Some(_)) => "For people",
            (_, None) => "A file with the same settings that assay can read",
        });
        // Where there are an answer and the whole, the whole has its other name too.
        if *name == FULL { value.alias(TEXT) } else { value }
    };
    let parser = PossibleValuesParser::new(names.iter().map(value).collect::<Vec<_>>());
    parser.map(move |given| {
        let named = |name: &&str| *name == given || (*name == FULL && given == TEXT);
        names.iter().copied().find(named).unwrap_or_default()
    })
}

/// Whether a format is for programs: its plan and its errors are JSON too.
pub(crate) fn is_json(format: &Format) -> bool {
    format.media_type == "application/json"
}
