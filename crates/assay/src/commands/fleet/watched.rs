//! A fleet's run while it goes on: what its hosts tell each second is the series of its directory, which a page, a terminal and
//! other processes read as that of any run.

use crate::cli::FleetRunArgs;
use crate::commands::shown::Shown;
use crate::configure::{self, Configured};
use crate::exit::Failure;
use crate::perform;
use crate::rundir::{self, RECORD, RUNS_DIR, RunDir, SERIES};
use assay_awr::recover::{Header, SERIES_SCHEMA, is_of_run};
use assay_control::fleet::controller::{self, Asked, Gathered, Watcher};
use assay_measure::fleet::HostHeard;
use assay_measure::record::RunInfo;
use assay_measure::series::{SeriesWriter, SideLine};
use assay_measure::snapshot::{Mark, RunData, Snapshot};
use assay_run::bounded;
use assay_run::stop::Stop;
use std::fs::File;
use std::io::{self, BufReader, Write as _};
use std::path::{Path, PathBuf};

/// Who measures, as the series names it.
const SOURCE: &str = "fleet";

/// The directory of a run, and who looks at it. At the end of it a page that shows the run shows what is kept.
pub(super) struct Watched {
    pub(super) dir: RunDir,
    shown: Shown,
}

impl Watched {
    /// Of a run whose controller is gone: in the directory that it began, if that is here.
    pub(super) fn taken(output: Option<&Path>, run: &RunInfo) -> Result<Self, Failure> {
        let is_its = |dir: &Path| {
            let series = bounded::open(&dir.join(SERIES), bounded::SERIES);
            !dir.join(RECORD).exists() && series.is_ok_and(|series| is_of_run(BufReader::new(series), &run.id))
        };
        let begun = || -> Option<PathBuf> {
            let dirs = std::fs::read_dir(RUNS_DIR).ok()?.flatten().map(|entry| entry.path());
            let end = format!("-{}", run.id);
            dirs.filter(|dir| dir.to_string_lossy().ends_with(&end)).find(|dir| is_its(dir))
        };
        let found = output.map_or_else(begun, |output| Some(output.to_path_buf()).filter(|output| is_its(output)));
        let dir = match found {
            Some(dir) => RunDir::claimed(&dir)?,
            None => RunDir::create(rundir::place(output, &run.workload, &run.id))?,
        };
        Ok(Self { dir, shown: Shown::default() })
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.dir.held().has(RECORD) {
            self.dir.discard();
        }
        self.dir.held().release();
        std::mem::take(&mut self.shown).end();
    }
}

/// Refuses to show a test whose hosts tell no seconds.
pub(super) fn refuse_unseen(args: &FleetRunArgs) -> Result<(), Failure> {
    match args.command.first().map(String::as_str) {
        Some(test) if args.live.live.is_some() && !["run", "orders", "sweep"].contains(&test) => {
            Err(Failure::usage(format!(
                "--live shows run, sweep and orders run while they go on; what the hosts measure of {test} comes at its end: leave --live out"
            )))
        }
        _ => Ok(()),
    }
}

/// Runs what was asked, in a directory that is made for it before any host is asked; `known` is what its series begins with.
pub(super) fn run(
    shown: Shown,
    known: Option<RunData>,
    asked: &Asked,
    place: &Path,
    stop: &Stop,
    said: &mut dyn Watcher,
) -> Result<(Gathered, Watched), Failure> {
    let mut watched = Watched { dir: RunDir::create(place.to_path_buf())?, shown };
    let series = known.map(|known| Series::begin(&watched.dir, known)).transpose()?;
    watched.shown.goes_on(place, "")?;
    let gathered = controller::run(asked, stop, &mut SeriesWatcher { said, series })?;
    watched.shown.give_way();
    Ok((gathered, watched))
}

/// Writes what is heard.
struct SeriesWatcher<'a> {
    said: &'a mut dyn Watcher,
    series: Option<Series>,
}

/// The series that is written.
struct Series {
    path: PathBuf,
    file: File,
    lines: SeriesWriter,
}

impl Watcher for SeriesWatcher<'_> {
    fn say(&mut self, line: &str) {
        self.said.say(line);
    }

    fn live(&mut self, line: &str) {
        self.said.live(line);
    }

    fn heard(&mut self, hosts: Vec<HostHeard>, told: &[(Mark, Snapshot)]) {
        let Some(mut series) = self.series.take() else { return };
        match series.write(hosts, told) {
            Ok(()) => self.series = Some(series),
            Err(error) => {
                let path = series.path.display();
                self.say(&format!("notice: {path}: {error}; the run goes on, and nothing more of it is shown"));
            }
        }
    }
}

impl Series {
    /// What is known before the hosts are.
    fn begin(dir: &RunDir, run: RunData) -> Result<Self, Failure> {
        let path = dir.path().join(SERIES);
        let mut series = Self { file: dir.create_series()?, lines: SeriesWriter::new(SOURCE), path };
        let header = Header { schema: SERIES_SCHEMA.to_owned(), run };
        let text = serde_json::to_string(&header).unwrap_or_default() + "\n";
        let written = series.file.write_all(text.as_bytes());
        written.map_err(|error| rundir::cannot(&series.path, &error)).map(|()| series)
    }

    fn write(&mut self, hosts: Vec<HostHeard>, told: &[(Mark, Snapshot)]) -> io::Result<()> {
        let mut text = SideLine::hosts(SOURCE, hosts).line();
        if self.lines.last().is_none() {
            text.push_str(&self.lines.line(Mark::Gate, &Snapshot::default()));
        }
        told.iter().for_each(|(mark, now)| text.push_str(&self.lines.line(*mark, now)));
        self.file.write_all(text.as_bytes())
    }
}

/// What is known of a run with these settings before it begins.
pub(super) fn known(configured: &Configured, asked: &Asked) -> RunData {
    let imagined = configure::imagined(&configured.settings);
    let plan = configure::plan(configured.target, &configured.settings, &imagined, 1);
    RunData {
        run_id: asked.run.clone(),
        label: perform::label(configured),
        workload: configured.workload.to_owned(),
        engine: configured.target.name().to_owned(),
        version: asked.version.clone(),
        started: jiff::Timestamp::now().to_string(),
        seed: asked.seed,
        // What does not fit the data is refused by the hosts.
        sessions: plan.map_or(0, |plan| plan.sessions() as u64),
        fixed_iterations: configured.settings.int("WORK_LOOP") > 0,
        settings: configured.lines(),
        warnings: vec![format!(
            "Here are the operations, times and errors that the hosts told each second. The record of the run has the rest; where the \
             controller is gone, `assay fleet run --take {}` makes it.",
            asked.run
        )],
        ..RunData::default()
    }
}
