//! The work: runs the clones of jobs as threads over lanes, wave after wave, and measures them.
//!
//! Owns the threads, the turns, the timing and the counters; knows nothing of the job language or of reports.
//! `docs/design/io-loop.md` has the reasons.

mod adjust;
mod assemble;
mod board;
mod live;
mod logs;
mod monitor;
mod pace;
mod policy;
mod read_back;
mod search;
mod settle;
mod steadiness;
mod tally;
mod thread;
mod trim;
mod turn;
mod verifying;
mod wave;
mod worker;

#[cfg(test)]
mod tests;

use super::files::{ClonePlan, Opened};
use super::spec::{Invocation, StorageJob};
use crate::measured::StorageMeasured;
use crate::readings::{CloneReading, StorageReadings};
use assay_run::engine::EngineError;
use assay_run::host::Sampler;
use assay_run::host::random_u64;
use assay_run::probe::Steps;
use assay_run::stop::Stop;
use assay_run::threads;
use assemble::{Frame, Jobs};
use board::Board;
use logs::Batch;
use monitor::Monitor;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use thread::Left;
use wave::Wave;
use worker::CloneTask;

/// The jobs and files of a run.
pub(super) struct Work<'a> {
    invocation: &'a Invocation,
    opened: &'a Opened,
    /// Seed of each job.
    seeds: Vec<u64>,
    /// Number that is unique to this run.
    run: u64,
}

/// Runs all jobs, wave after wave, on files that are open.
///
/// # Errors
/// The error that kept the first clones from working; `Interrupted` if nothing was measured yet.
pub(super) fn measure(
    invocation: &Invocation,
    opened: &Opened,
    stop: &Stop,
    steps: &dyn Steps,
) -> Result<StorageReadings, EngineError> {
    let work = Work { invocation, opened, seeds: invocation.jobs.iter().map(seed_of).collect(), run: random_u64() };
    let (rows, batches) = channel();
    std::thread::scope(|scope| {
        let name = "io-logs".to_owned();
        let writer = threads::spawn(scope, name, move || logs::write_all(&batches))?;
        let measured = work.measure(stop, steps, rows);
        let failures = writer.join().unwrap_or_default();
        measured.map(|mut readings| {
            tell_of_logs(&mut readings, failures);
            readings
        })
    })
}

impl Work<'_> {
    /// Drops the senders of log rows at the end, so that their writer ends too.
    fn measure(&self, stop: &Stop, steps: &dyn Steps, rows: Sender<Batch>) -> Result<StorageReadings, EngineError> {
        let plan = self.opened.plan();
        let paths: Vec<PathBuf> = plan.files.iter().map(|file| file.resolved.clone()).collect();
        let disks = assay_block::disks_under(&paths);
        let mut host = Sampler::new(disks.clone());
        let waves = self.waves();
        let expected = waves.iter().map(|jobs| self.expected(jobs)).collect();
        let live = live::Live::new(plan.clones.len(), expected);
        let every = self.invocation.output.status_interval_ns;
        let mut monitor = Monitor::new(stop, disks, every, live);
        let jobs = Jobs::describe(self, &paths);
        steps.ready();
        let frame = Frame::begin(&mut host, monitor.read_disks());
        let mut done: Vec<CloneReading> = Vec::new();
        let mut known = Known::new(self.invocation.jobs.len());
        for (number, wave) in waves.iter().enumerate() {
            if stop.requested() {
                break;
            }
            steps.step(number + 1, waves.len(), &self.describe(wave));
            let left = self.wave(
                wave,
                stop,
                &mut monitor,
                |monitor, now| {
                    let mut clones = done.clone();
                    clones.extend(now);
                    let readings = frame.readings(&jobs, &known, clones, monitor, None);
                    steps.status(&StorageMeasured(readings));
                },
                steps,
                &rows,
            )?;
            known.take(&left);
            let refused = left.iter().any(|left| left.refused.is_some());
            if refused && !measured(&done) && left.iter().all(|left| left.reading.runtime_ns == 0) {
                return Err(first_refusal(left));
            }
            done.extend(left.into_iter().map(Left::into_reading));
        }
        if stop.requested() && !measured(&done) {
            return Err(EngineError::Interrupted);
        }
        let host = Some(&mut host);
        Ok(frame.readings(&jobs, &known, done, &monitor, host))
    }

    /// Jobs of each wave, in order.
    fn waves(&self) -> Vec<Vec<usize>> {
        let jobs = &self.invocation.jobs;
        let mut numbers: Vec<u32> = jobs.iter().map(|job| job.wave).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let of = |wave: &u32| (0..jobs.len()).filter(|&job| jobs[job].wave == *wave).collect();
        numbers.iter().map(of).collect()
    }

    fn job(&self, job: usize) -> &StorageJob {
        &self.invocation.jobs[job]
    }

    fn expected(&self, jobs: &[usize]) -> Option<u64> {
        let mut ends = Vec::new();
        for &job in jobs {
            let StorageJob { name, options, .. } = self.job(job);
            let awaited = options.pace.wait_for.as_deref();
            let before = ends.iter().filter(|(other, _)| awaited == Some(*other));
            let begin_ns: u64 = before.map(|(_, end_ns)| *end_ns).max().unwrap_or(0);
            ends.push((name.as_str(), begin_ns + live::expected_ns(options)?));
        }
        ends.into_iter().map(|(_, end_ns)| end_ns).max()
    }

    /// Describes a wave for the progress.
    fn describe(&self, jobs: &[usize]) -> String {
        let one = |&job: &usize| {
            let job = self.job(job);
            let options = &job.options;
            format!(
                "{}: {}, {} at depth {}",
                job.name,
                options.pattern.mode.name(),
                options.engine.name(),
                options.pace.depth
            )
        };
        jobs.iter().map(one).collect::<Vec<_>>().join("; ")
    }

    /// Returns the clones of some jobs, and the index of the first of them among all clones.
    fn tasks(&self, jobs: &[usize], groups: &[u32], rows: &Sender<Batch>) -> (Vec<CloneTask<'_>>, usize) {
        let clones = &self.opened.plan().clones;
        let runs = |job: usize| jobs.contains(&job) && !self.job(job).options.files.create_only;
        let of_jobs = clones.iter().enumerate().filter(|(_, clone)| runs(clone.job));
        let mut users: BTreeMap<usize, u32> = BTreeMap::new();
        for file in of_jobs.clone().flat_map(|(_, clone)| &clone.files) {
            *users.entry(*file).or_default() += 1;
        }
        let task = |(index, (place, planned)): (usize, (usize, &'_ ClonePlan))| -> CloneTask<'_> {
            let job = self.job(planned.job);
            CloneTask {
                index,
                job: planned.job,
                clone: planned.clone,
                group: groups.iter().position(|&group| group == job.group).expect("the group of every job is listed"),
                name: &job.name,
                options: &job.options,
                opened: self.opened,
                number: place as u32,
                regions: &clones[place].regions,
                amount_bytes: planned.amount_bytes,
                seed: self.seeds[planned.job],
                run: self.run,
                after: Vec::new(),
                shared: planned.files.iter().any(|file| users[file] > 1),
                logs: rows.clone(),
            }
        };
        let first = of_jobs.clone().next().map_or(0, |(place, _)| place);
        let mut tasks: Vec<CloneTask<'_>> = of_jobs.enumerate().map(task).collect();
        let names: Vec<&str> = tasks.iter().map(|task| task.name).collect();
        for task in &mut tasks {
            if let Some(awaited) = &task.options.pace.wait_for {
                let places = (0..names.len()).filter(|&place| names[place] == *awaited);
                task.after = places.collect();
            }
        }
        (tasks, first)
    }

    /// Runs the jobs of one wave concurrently to their end.
    fn wave(
        &self,
        jobs: &[usize],
        stop: &Stop,
        monitor: &mut Monitor<'_>,
        status: impl Fn(&Monitor<'_>, Vec<CloneReading>),
        steps: &dyn Steps,
        rows: &Sender<Batch>,
    ) -> Result<Vec<Left>, EngineError> {
        let mut groups: Vec<u32> = jobs.iter().map(|&job| self.job(job).group).collect();
        groups.sort_unstable();
        groups.dedup();
        let (tasks, first_clone) = self.tasks(jobs, &groups, rows);
        let board = Board::new(tasks.len(), groups.len());
        let wave = Wave { board: &board, tasks: &tasks, groups: &groups, first_clone };
        let left =
            run_wave(&wave, stop, steps, |wave| monitor.watch(wave, steps, &|monitor, now| status(monitor, now)));
        monitor.passed(&wave);
        left
    }
}

/// Refuses to overwrite log files of other origin.
///
/// # Errors
/// The first such file, unless `--destroy` names it.
pub(super) fn check_logs(invocation: &Invocation) -> Result<(), EngineError> {
    logs::check(invocation)
}

/// An incomplete log is an error of the run, so that nobody takes it for complete.
fn tell_of_logs(readings: &mut StorageReadings, failures: Vec<String>) {
    if failures.is_empty() {
        return;
    }
    let text = failures.join("; ");
    if let Some(clone) = readings.clones.iter_mut().find(|clone| clone.error == 0) {
        clone.error = thread::EIO;
        clone.error_text = Some(text);
    } else if let Some(job) = readings.jobs.first_mut() {
        job.notes.push(text);
    }
}

/// Starts the clones, lets `watch` follow them to their end, and collects their results.
fn run_wave(
    wave: &Wave<'_>,
    stop: &Stop,
    steps: &dyn Steps,
    watch: impl FnOnce(&Wave<'_>),
) -> Result<Vec<Left>, EngineError> {
    let board = wave.board;
    std::thread::scope(|scope| {
        let mut started = Vec::with_capacity(wave.tasks.len());
        let mut failed = None;
        for task in wave.tasks {
            let name = format!("io-{}", task.index);
            match threads::spawn(scope, name, move || thread::run(task, board, stop)) {
                Ok(thread) => started.push(thread),
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        board.wait_ready(started.len());
        steps.begin();
        // A clone that could not be set up has not passed the gate. The others start, since their measurements are
        // valid, unless none is left to measure.
        board.open(failed.is_none() && !board.any_refused());
        if failed.is_none() {
            watch(wave);
        }
        let left = started.into_iter().map(|thread| thread.join().unwrap_or_default()).collect();
        failed.map_or(Ok(left), Err)
    })
}

/// Whether any clone measured anything.
fn measured(clones: &[CloneReading]) -> bool {
    clones.iter().any(|clone| clone.ways.iter().any(|way| way.ios > 0) || clone.runtime_ns > 0)
}

fn first_refusal(left: Vec<Left>) -> EngineError {
    left.into_iter().find_map(|left| left.refused).unwrap_or(EngineError::Interrupted)
}

/// What clones reported about their job: features of the ring and refusals.
#[derive(Debug, Default)]
pub(super) struct Known {
    features: Vec<Vec<String>>,
    refused: Vec<Vec<(String, String)>>,
    notes: Vec<Vec<String>>,
}

impl Known {
    fn new(jobs: usize) -> Self {
        Self { features: vec![Vec::new(); jobs], refused: vec![Vec::new(); jobs], notes: vec![Vec::new(); jobs] }
    }

    fn take(&mut self, left: &[Left]) {
        for left in left {
            let job = left.reading.job;
            if self.features[job].is_empty() {
                self.features[job].clone_from(&left.features);
            }
            self.notes[job].extend(left.notes.iter().cloned());
            for refusal in &left.refusals {
                if !self.refused[job].contains(refusal) {
                    self.refused[job].push(refusal.clone());
                }
            }
        }
    }
}

/// The seed of a job's random streams: the requested one, the fixed one of repeated runs, or one that is unique to this
/// run.
fn seed_of(job: &StorageJob) -> u64 {
    let pattern = &job.options.pattern;
    match pattern.seed {
        Some(seed) => seed,
        None if pattern.repeat || pattern.repeat_all => REPEATED_SEED,
        None => random_u64(),
    }
}

/// Seed of every job with `randrepeat=1` and no `randseed`: the same I/Os in every run.
const REPEATED_SEED: u64 = 0x6173_7361_7969_6f31;
