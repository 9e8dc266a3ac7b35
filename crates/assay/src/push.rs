//! `--push`: the figures of a run for a monitoring system, while it goes on and at its end.

use crate::cli::PushArgs;
use crate::exit::Failure;
use crate::live::Course;
use crate::rundir::{self, RECORD};
use crate::{stored, ui};
use assay_control::push::{Push, Pushed, Receiver, Sample, Samples};
use assay_report::formats::{Series, series};
use assay_run::bounded;
use std::path::Path;
use std::time::SystemTime;

/// Begins to send what the run in a directory measures, if that is asked for. The receiver hears of the run before it begins.
pub(crate) fn start(args: &PushArgs, run: &str, place: &Path) -> Result<Option<Push>, Failure> {
    let Some(url) = &args.push else { return Ok(None) };
    let authorization = args.push_authorization.as_deref().map(header).transpose()?;
    let receiver = Receiver::new(url, authorization)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let labels = vec![("run".to_owned(), run.to_owned())];
    let begun = Sample { name: "assay_run_begun_timestamp_seconds".to_owned(), labels, value: now.as_secs_f64() };
    let first = Samples { at_ms: now.as_millis() as i64, all: vec![begun] };
    let (live, place) = (Course::of(place), place.to_path_buf());
    let samples = move || {
        let kept = place.join(RECORD);
        if kept.is_file() { of(&stored::read(&kept).ok()?) } else { of(&live.look()?.whole) }
    };
    let pushed = Pushed { samples: Box::new(samples), say: Box::new(ui::say) };
    Ok(Some(Push::start(receiver, &first, pushed)?))
}

/// The value of a header in a file.
fn header(file: &Path) -> Result<String, Failure> {
    let text = bounded::text(file, bounded::SECRET).map_err(|error| rundir::cannot(file, &error))?;
    let value = text.trim();
    let is_plain = !value.is_empty() && value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let form =
        || Failure::usage(format!("{}: holds no value of a header: one line, such as Bearer TOKEN", file.display()));
    is_plain.then(|| value.to_owned()).ok_or_else(form)
}

fn of(record: &assay_measure::record::Record) -> Option<Samples> {
    let (at_s, all) = series(record)?;
    let owned = |labels: Vec<(&'static str, String)>| {
        labels.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    };
    let sample = |one: Series| Sample { name: one.name, labels: owned(one.labels), value: one.value };
    Some(Samples { at_ms: (at_s * 1e3) as i64, all: all.into_iter().map(sample).collect() })
}
