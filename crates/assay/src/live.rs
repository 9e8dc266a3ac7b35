//! A run that goes on, in this process or another, as the lines of its series tell: the stream that the terminal's line is made
//! of too. A fleet's is what its hosts tell the controller. Nothing is read while nobody looks, and figures and page may each take a twentieth of a CPU.

use crate::rundir::{self, SERIES};
use assay_awr::recover::Following;
use assay_measure::clock::Ns;
use assay_measure::fleet::HostHeard;
use assay_measure::locked::locked;
use assay_measure::record::Record;
use assay_measure::snapshot::Snapshot;
use assay_report::answer::Context;
use assay_report::html::{self, Live};
use assay_run::bounded;
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What the last seconds are, ns.
const RECENT_NS: Ns = 10_000_000_000;
/// What is made is kept for at least so long, and for so many times the CPU time that it took.
const KEPT: Duration = Duration::from_millis(500);
const KEPT_TIMES: u32 = 20;
/// A longer line is none of ours, bytes.
const LONGEST_LINE: u64 = 64 << 20;

/// What a command measures: one run, or one after the other, of which the current one is followed.
#[derive(Default)]
pub(crate) struct Course {
    now: Mutex<Option<(Arc<LiveRun>, String)>>,
    /// Where another process measures; its runs are looked for.
    place: Option<PathBuf>,
    /// Shown until the next run has begun.
    last: Mutex<Option<Live>>,
    is_over: AtomicBool,
}

impl Course {
    /// Of what another process measures in a directory: a run, or the one of several below it that goes on.
    pub(crate) fn of(place: &Path) -> Self {
        Self { place: Some(place.to_path_buf()), ..Self::default() }
    }

    /// From now on it is the run in this directory; `which` tells it from the others, such as `step 3 of 8`.
    pub(crate) fn goes_on(&self, dir: &Path, which: &str) {
        *locked(&self.now) = Some((Arc::new(LiveRun::in_dir(dir)), which.to_owned()));
    }

    /// All of it is kept.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// Whether all of it is kept.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    fn now(&self) -> Option<(Arc<LiveRun>, String)> {
        let mut now = locked(&self.now);
        if let Some(place) = &self.place
            && now.as_ref().is_none_or(|(run, _)| !rundir::is_claimed(&run.dir))
            && let Some(dir) = rundir::under_way(place)
        {
            let which = dir.strip_prefix(place).unwrap_or(&dir).display().to_string();
            *now = Some((Arc::new(LiveRun::in_dir(&dir)), which));
        }
        now.clone()
    }

    /// What is known now of the current run; `None` before it begins, or if its series cannot be read.
    pub(crate) fn look(&self) -> Option<Arc<Look>> {
        self.now()?.0.look()
    }

    /// The page of the current run.
    pub(crate) fn page(&self) -> Option<String> {
        self.now()?.0.page()
    }

    /// What is new each second.
    pub(crate) fn frame(&self) -> Option<Live> {
        let (run, which) = self.now()?;
        let mut last = locked(&self.last);
        if let Some(look) = run.look() {
            let live = Live::of(&look.whole, Some(&look.recent));
            let now = if which.is_empty() { live.now } else { format!("{which}: {}", live.now) };
            *last = Some(Live { now, ..live });
        }
        last.clone()
    }
}

/// What is known of a run at a moment.
pub(crate) struct Look {
    /// Its record so far.
    pub(crate) whole: Record,
    /// The same of its last ten seconds.
    pub(crate) recent: Record,
}

/// One run.
struct LiveRun {
    dir: PathBuf,
    read: Mutex<Reading>,
    page: Mutex<Sparingly<String>>,
}

impl LiveRun {
    /// The run in a directory.
    fn in_dir(dir: &Path) -> Self {
        Self { dir: dir.to_path_buf(), read: Mutex::default(), page: Mutex::default() }
    }

    /// What is known now; `None` before the run begins, or if its series cannot be read.
    fn look(&self) -> Option<Arc<Look>> {
        let mut reading = locked(&self.read);
        let reading = &mut *reading;
        let (lines, looked) = (&mut reading.lines, &mut reading.looked);
        looked.get(|| {
            lines.catch_up(&self.dir.join(SERIES)).ok()?;
            let (run, (since, hosts)) = (lines.run.as_ref()?, lines.recent.front()?);
            let (whole, recent) = run.so_far(since)?;
            let mut whole = crate::record::of(&whole.data, whole.series);
            let mut recent = assay_awr::record::build(&recent);
            if let Some([of_whole, of_recent]) = run.fleets(hosts) {
                whole.parts.put(&of_whole);
                recent.parts.put(&of_recent);
            }
            whole.is_final = Some(false);
            Some(Arc::new(Look { whole, recent }))
        })
    }

    /// Its page.
    fn page(&self) -> Option<String> {
        let mut page = locked(&self.page);
        page.get(|| self.look().map(|look| html::live(&look.whole, &look.recent, &Context::default())))
    }
}

#[derive(Default)]
struct Reading {
    lines: Lines,
    looked: Sparingly<Arc<Look>>,
}

/// The series, as far as it was read.
#[derive(Default)]
struct Lines {
    file: Option<BufReader<File>>,
    /// The beginning of a line that is being written.
    part: Vec<u8>,
    run: Option<Following>,
    /// Snapshots of the last seconds, with the hosts of a fleet: the first is the last one before them.
    recent: VecDeque<(Snapshot, Vec<HostHeard>)>,
    /// Nothing after a line that is none of ours can be read.
    is_damaged: bool,
}

impl Lines {
    fn catch_up(&mut self, series: &Path) -> io::Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => BufReader::new(bounded::open(series, bounded::SERIES)?),
        };
        while !self.is_damaged {
            let room = LONGEST_LINE.saturating_sub(self.part.len() as u64);
            let read = file.by_ref().take(room).read_until(b'\n', &mut self.part)?;
            if self.part.last() != Some(&b'\n') {
                self.is_damaged = room == 0;
                if read == 0 {
                    break;
                }
                continue;
            }
            let line = std::mem::take(&mut self.part);
            self.is_damaged = !self.take(&line);
        }
        self.file = Some(file);
        Ok(())
    }

    /// Takes a line; false if it is none of ours.
    fn take(&mut self, line: &[u8]) -> bool {
        let Some(run) = &mut self.run else {
            self.run = Following::begin(line).ok();
            return self.run.is_some();
        };
        if run.take(line).is_err() {
            return false;
        }
        let Some(latest) = run.latest() else { return true };
        if self.recent.back().is_none_or(|(last, _)| last.at_ns < latest.at_ns) {
            self.recent.push_back((latest.clone(), run.hosts().to_vec()));
        }
        while self.recent.get(1).is_some_and(|(second, _)| second.at_ns + RECENT_NS <= latest.at_ns) {
            self.recent.pop_front();
        }
        true
    }
}

/// Something that is made anew only so often.
struct Sparingly<T>(Option<(Instant, Duration, T)>);

impl<T> Default for Sparingly<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Clone> Sparingly<T> {
    fn get(&mut self, make: impl FnOnce() -> Option<T>) -> Option<T> {
        if let Some((_, _, made)) = self.0.as_ref().filter(|(at, took, _)| at.elapsed() < KEPT.max(*took * KEPT_TIMES))
        {
            return Some(made.clone());
        }
        let begun = cpu_time();
        let made = make()?;
        self.0 = Some((Instant::now(), cpu_time().saturating_sub(begun), made.clone()));
        Some(made)
    }
}

/// CPU time of this thread: others on a busy host make nothing dearer.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_line_that_is_being_written_is_taken_when_it_is_whole() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join(SERIES);
        let mut file = File::create_new(&path).expect("made");
        let mut lines = Lines::default();
        lines.catch_up(&path).expect("there is nothing yet");
        assert!(lines.run.is_none() && !lines.is_damaged);
        let header = serde_json::json!({ "schema": assay_awr::recover::SERIES_SCHEMA, "run": assay_measure::snapshot::RunData::default() });
        let header = header.to_string();
        let (first, rest) = header.split_at(20);
        file.write_all(first.as_bytes()).expect("written");
        lines.catch_up(&path).expect("read");
        assert!(lines.run.is_none() && !lines.is_damaged);
        file.write_all(format!("{rest}\n").as_bytes()).expect("written");
        lines.catch_up(&path).expect("read");
        assert!(lines.run.is_some());
        file.write_all(b"no line of ours\n").expect("written");
        lines.catch_up(&path).expect("read");
        assert!(lines.is_damaged);
    }
}
