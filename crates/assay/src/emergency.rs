//! What happens when this program itself fails: the message, and saving the results so far.

use crate::exit::Code;
use crate::rundir::RunDir;
use crate::{record, recover, ui, view};
use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The run directory in use, if a run is under way.
static RUNNING: Mutex<Option<PathBuf>> = Mutex::new(None);

fn running() -> std::sync::MutexGuard<'static, Option<PathBuf>> {
    RUNNING.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// From here on a panic leaves a record.
pub(crate) fn run_begins(dir: &Path) {
    *running() = Some(dir.to_path_buf());
}

/// The record is written.
pub(crate) fn run_ended() {
    *running() = None;
}

/// One line per panic instead of the default's backtrace talk; threads of a run are named in it.
pub(crate) fn install_hook() {
    std::panic::set_hook(Box::new(|info| {
        view::leave();
        let thread = std::thread::current();
        let place = info.location().map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
        ui::say(&format!(
            "error: internal: thread {}{place}: {}",
            thread.name().unwrap_or("unnamed"),
            text_of(info.payload())
        ));
    }));
}

/// After a panic of the main thread: saves what was measured.
pub(crate) fn after_panic() -> Code {
    ui::say("error: this is a bug in assay; please report the line above");
    if let Some(dir) = running().take() {
        let saved = RunDir::existing(&dir).and_then(|dir| {
            let run = recover::recover(dir.held())?;
            record::write(&dir, &record::of(&run.data, run.series))
        });
        match saved {
            Ok(()) => ui::say(&format!("the measured figures are saved and marked incomplete: {}", dir.display())),
            Err(failure) => {
                ui::failure(&failure);
            }
        }
    }
    Code::Bug
}

fn text_of(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observer::RunObserver;
    use crate::progress::Live;
    use assay_measure::clock::Clock;
    use assay_measure::snapshot::{RunData, Snapshot};
    use assay_run::null::NullEngine;
    use assay_run::plan::Plan;
    use assay_run::{Mark, Observer};

    #[test]
    fn a_panic_during_a_run_leaves_a_record_marked_incomplete() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let dir = RunDir::create(place.path().join("run")).expect("created");
        let engine = NullEngine::new(&Plan::plain(1, 1, 1000), &assay_slob::Slob, &Clock::real());
        let mut observer =
            RunObserver::begin(&dir, RunData::default(), &engine, Live::new(None)).expect("the series is created");
        for (mark, at_ns) in [(Mark::Gate, 0), (Mark::Begin, 10), (Mark::Second, 1_000_000_000)] {
            let snapshot = Snapshot { at_ns, ..Snapshot::default() };
            observer.snapshot(mark, &snapshot);
        }
        run_begins(dir.path());
        assert_eq!(after_panic(), Code::Bug);
        let record = crate::stored::read(&dir.path().join("record.json")).expect("a record");
        assert_eq!(record.run.verdict, "incomplete");
        assert!(dir.path().join("report.txt").is_file());
    }
}
