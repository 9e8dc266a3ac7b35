//! `--push`: the figures of a run for a monitoring system, while it goes on and at its end.

use crate::cli::PushArgs;
use crate::exit::Failure;
use crate::live::Course;
use crate::rundir::{self, RECORD};
use crate::{stored, ui};
use assay_control::push::{Push, Pushed, Receiver};
use assay_measure::families::{Exposition, Family, Kind, Point};
use assay_report::formats::exposition;
use assay_run::bounded;
use std::path::Path;
use std::time::SystemTime;

/// Begins to send what the run in a directory measures, if that is asked for. The receiver hears of the run before it begins.
pub(crate) fn start(args: &PushArgs, run: &str, place: &Path) -> Result<Option<Push>, Failure> {
    let Some(url) = &args.push else { return Ok(None) };
    let authorization = args.push_authorization.as_deref().map(header).transpose()?;
    let receiver = Receiver::new(url, authorization)?;
    let (live, place) = (Course::of(place), place.to_path_buf());
    let figures = move || {
        let kept = place.join(RECORD);
        if kept.is_file() { exposition(&stored::read(&kept).ok()?) } else { exposition(&live.look()?.whole) }
    };
    let pushed = Pushed { figures: Box::new(figures), say: Box::new(ui::say) };
    Ok(Some(Push::start(receiver, &begun(run), pushed)?))
}

/// What is sent first: that the run is about to begin.
fn begun(run: &str) -> Exposition {
    let now_s = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let family = Family {
        name: "assay_run_begun_timestamp_seconds".to_owned(),
        kind: Kind::Gauge,
        unit: "seconds",
        help: "When the command began, since 1970".to_owned(),
        points: vec![Point { labels: vec![("run", run.to_owned())], value: now_s.into() }],
    };
    Exposition { begin_s: now_s, end_s: now_s, families: vec![family] }
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
