//! Follows a run: appends the series, shows the live line.

use crate::exit::Failure;
use crate::fleet_part::{self, FleetPart};
use crate::follow::Follow;
use crate::hooks::{Call, Hooks};
use crate::progress::Live;
use crate::rundir::{self, RunDir, SERIES};
use assay_awr::record::SeriesBuilder;
use assay_awr::recover::{Header, SERIES_SCHEMA};
use assay_control::fleet::message::Tick;
use assay_control::fleet::worker::Said;
use assay_measure::clock::Ns;
use assay_measure::history::ActivityHistory;
use assay_measure::record::Precision;
use assay_measure::series::{SeriesWriter, SideLine};
use assay_measure::snapshot::{self, RunData, Snapshot};
use assay_measure::timeline::TimelineEvent;
use assay_run::engine::Engine;
use assay_run::stop::Stop;
use assay_run::{Mark, Observer};
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

/// Who measures: this process alone, so far.
const SOURCE: &str = "run";

/// Writes and shows.
pub(crate) struct RunObserver<'a> {
    path: PathBuf,
    file: File,
    lines: SeriesWriter,
    /// The same for the record.
    series: SeriesBuilder,
    live: Live,
    /// Written before the first snapshot: an engine knows its achieved I/O mode
    /// only once its drivers are open.
    header: Option<Header>,
    engine: &'a dyn Engine,
    hooks: Option<(Hooks, Stop)>,
    /// The call before the gate, for the record.
    pre: Option<TimelineEvent>,
    /// The figure that the run is to know, if it ends by that.
    follow: Option<Follow>,
    /// The first line that could not be written; the run goes on without its series.
    failed: Option<io::Error>,
}

impl<'a> RunObserver<'a> {
    /// Creates the series, empty.
    pub(crate) fn begin(dir: &RunDir, known: RunData, engine: &'a dyn Engine, live: Live) -> Result<Self, Failure> {
        Ok(Self {
            path: dir.path().join(SERIES),
            file: dir.create_series()?,
            lines: SeriesWriter::new(SOURCE),
            series: SeriesBuilder::default(),
            live,
            header: Some(Header { schema: SERIES_SCHEMA.to_owned(), run: known }),
            engine,
            hooks: None,
            pre: None,
            follow: None,
            failed: None,
        })
    }

    /// Calls the external script before the gate; a stop request ends the wait for it.
    pub(crate) fn hooks(&mut self, hooks: &Hooks, stop: &Stop) {
        self.hooks = Some((hooks.clone(), stop.clone()));
    }

    /// Ends the run when a figure is known.
    pub(crate) fn follow(&mut self, follow: Option<Follow>) {
        self.follow = follow;
    }

    /// What is known of that figure; `is_stopped`: the user ended the run.
    pub(crate) fn take_precision(&mut self, is_stopped: bool) -> Option<Precision> {
        self.follow.take().map(|follow| follow.finish(is_stopped))
    }

    /// The call of the external script before the gate, if there was one.
    pub(crate) fn take_pre(&mut self) -> Option<TimelineEvent> {
        self.pre.take()
    }

    /// Ends the live line; the series for the record, and whether the file is whole.
    pub(crate) fn finish(mut self) -> (SeriesBuilder, Result<(), Failure>) {
        self.live.clear();
        let written = match self.failed {
            None => Ok(()),
            Some(error) => Err(rundir::cannot(&self.path, &error)),
        };
        (self.series, written)
    }

    /// Calls the external script before the gate.
    fn pre(&mut self, hooks: &Hooks, stop: &Stop) -> Result<(), String> {
        let Some(called) = hooks.call(Call::Pre, None, &|| stop.requested()) else {
            return Ok(());
        };
        if let Some(problem) = called.problem {
            return Err(format!("{problem}; no operation was performed"));
        }
        self.event(&called.event);
        self.pre = Some(called.event);
        Ok(())
    }

    /// One write per line: a kill leaves whole lines and at most one part of one.
    fn append_line(&mut self, line: &str) -> io::Result<()> {
        if let Some(mut header) = self.header.take() {
            header.run.engine_facts.extend(self.engine.facts());
            let mut text = serde_json::to_string(&header)?;
            text.push('\n');
            self.file.write_all(text.as_bytes())?;
        }
        self.file.write_all(line.as_bytes())
    }
}

impl Observer for RunObserver<'_> {
    fn phase(&mut self, name: &str) {
        self.live.phase(name);
    }

    fn snapshot(&mut self, mark: Mark, now: &Snapshot) {
        // What comes after the end belongs to no second of the run.
        if let Some(before) = self.lines.last().filter(|_| mark != Mark::Drained) {
            self.series.push(before, now);
        }
        // The line is made even when none can be written any more: the next step begins here.
        if let Some(part) = fleet_part::get().filter(|_| mark != Mark::Gate) {
            part.say(&Said::Tick(Box::new(Tick::of(written(mark), self.lines.last(), now))));
        }
        let line = self.lines.line(written(mark), now);
        if self.failed.is_none() {
            self.failed = self.append_line(&line).err();
        }
        self.live.snapshot(now);
        if let Some(follow) = &mut self.follow {
            follow.snapshot(mark, now);
        }
    }

    fn is_enough(&self) -> bool {
        self.follow.as_ref().is_some_and(Follow::is_over)
    }

    fn reads_server(&mut self) -> bool {
        fleet_part::get().is_none_or(FleetPart::reads_server)
    }

    /// The record's series is made here, and every snapshot is in the file.
    fn needs_series(&self) -> bool {
        false
    }

    fn ready(&mut self) -> Result<(), String> {
        let Some((hooks, stop)) = self.hooks.clone() else {
            return Ok(());
        };
        self.pre(&hooks, &stop)?;
        if let Some(part) = fleet_part::get() {
            part.await_start(&stop, self.engine.server());
        }
        Ok(())
    }

    fn start_at(&mut self, earliest_ns: Ns) -> Ns {
        fleet_part::get().map_or(earliest_ns, |part| part.start_at(earliest_ns))
    }

    fn activity(&mut self, part: &ActivityHistory) {
        self.series.activity(part.clone());
        if self.failed.is_none() {
            let line = SideLine::activity(SOURCE, part.clone()).line();
            self.failed = self.append_line(&line).err();
        }
    }

    fn event(&mut self, event: &TimelineEvent) {
        if self.failed.is_none() {
            let line = SideLine::event(SOURCE, event.clone()).line();
            self.failed = self.append_line(&line).err();
        }
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
