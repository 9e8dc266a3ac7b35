//! Follows a run: appends the series, shows the live line.

use crate::exit::Failure;
use crate::progress::Live;
use crate::rundir::{self, RunDir, SERIES};
use assay_measure::series::SeriesWriter;
use assay_measure::snapshot::{self, RunData, Snapshot};
use assay_run::{Mark, Observer};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

/// Version of the series file's header.
pub(crate) const SERIES_SCHEMA: &str = "assay-series/1";
/// Who measures: this process alone, so far.
const SOURCE: &str = "run";

/// First line of a series: what is known before the gate.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Header {
    /// [`SERIES_SCHEMA`].
    pub(crate) schema: String,
    /// The run without its snapshots.
    pub(crate) run: RunData,
}

/// Writes and shows.
pub(crate) struct RunObserver {
    path: PathBuf,
    file: File,
    lines: SeriesWriter,
    live: Live,
    /// The first line that could not be written; the run goes on without its series.
    failed: Option<io::Error>,
}

impl RunObserver {
    /// Creates the series with its header.
    pub(crate) fn begin(dir: &RunDir, known: &RunData, live: Live) -> Result<Self, Failure> {
        let path = dir.path().join(SERIES);
        let mut file = dir.create_series()?;
        let header = Header {
            schema: SERIES_SCHEMA.to_owned(),
            run: known.clone(),
        };
        let mut text = serde_json::to_string(&header)
            .map_err(|error| Failure::output(format!("{}: {error}", path.display())))?;
        text.push('\n');
        file.write_all(text.as_bytes())
            .and_then(|()| file.sync_data())
            .map_err(|error| rundir::cannot(&path, &error))?;
        Ok(Self {
            path,
            file,
            lines: SeriesWriter::new(SOURCE),
            live,
            failed: None,
        })
    }

    /// Ends the live line; tells whether the series is whole.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.live.clear();
        match self.failed {
            None => Ok(()),
            Some(error) => Err(rundir::cannot(&self.path, &error)),
        }
    }
}

impl Observer for RunObserver {
    fn phase(&mut self, name: &str) {
        self.live.phase(name);
    }

    fn snapshot(&mut self, mark: Mark, now: &Snapshot) {
        if self.failed.is_none() {
            let line = self.lines.line(written(mark), now);
            // One write per line: a kill leaves whole lines and at most one part of one.
            self.failed = self.file.write_all(line.as_bytes()).err();
        }
        self.live.snapshot(now);
    }
}

/// The mark as the series spells it.
fn written(mark: Mark) -> snapshot::Mark {
    match mark {
        Mark::Gate => snapshot::Mark::Gate,
        Mark::Begin => snapshot::Mark::Begin,
        Mark::Second => snapshot::Mark::Second,
        Mark::End => snapshot::Mark::End,
        Mark::Drained => snapshot::Mark::Drained,
    }
}
