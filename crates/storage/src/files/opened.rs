//! The files while jobs use them: creates, locks and opens them for each clone, and cleans up at the end.

use super::super::spec::{Invocation, OpenSync, StorageJob};
use super::layout::{self, Task};
use super::look::directory_of;
use super::marker::{self, State, Whose};
use super::plan::{FilePlan, Fill, PathState, PlannedFile};
use super::{bytes_text, cannot, failed};
use crate::readings::StorageLive;
use assay_block::{DeviceClaim, DirectFile, DirectIo, FileOptions, WriteThrough, claim_device};
use assay_measure::locked::locked;
use assay_run::dataset::rows::drawn_id;
use assay_run::engine::EngineError;
use assay_run::lock::{Locked, is_held};
use assay_run::probe::Steps;
use assay_run::stop::Stop;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often to report the progress of a layout.
const LIVE: Duration = Duration::from_secs(1);
/// Bytes per read of `pre_read`.
const PRE_READ_BYTES: usize = 1 << 20;

/// All files of a run, created and held. If it is dropped without [`Opened::finish`], it removes files whose creation
/// was incomplete; otherwise it does what `finish` does, but reports no error.
#[derive(Debug)]
pub struct Opened {
    plan: FilePlan,
    jobs: Vec<StorageJob>,
    /// State of each file of the plan.
    held: Vec<Mutex<Held>>,
    /// Whether all files are as the jobs need them.
    complete: bool,
    finished: bool,
}

/// State of one file.
#[derive(Debug, Default)]
struct Held {
    /// Holds the lock; open for writing if any job writes to it.
    file: Option<Locked>,
    /// Keeps others from mounting the device.
    _claim: Option<DeviceClaim>,
    /// Device and inode, or a block device's number.
    identity: Option<(u64, u64)>,
    /// Whether this run created it.
    created: bool,
    /// Original length, if this run extended the file.
    shorter: Option<u64>,
    /// The number that the content of a file of ours proves.
    number: u64,
}

/// Creates missing files and locks or claims every file.
///
/// # Errors
/// A file in use or replaced since it was planned, a full disk, I/O errors, or `Interrupted`; incomplete new files are
/// then removed.
pub fn open(plan: FilePlan, invocation: &Invocation, stop: &Stop, steps: &dyn Steps) -> Result<Opened, EngineError> {
    let held = plan.files.iter().map(|_| Mutex::default()).collect();
    let mut opened = Opened { plan, jobs: invocation.jobs.clone(), held, complete: false, finished: false };
    // Hold everything before writing anything.
    for place in 0..opened.plan.files.len() {
        opened.hold(place)?;
    }
    opened.lay_out(stop, steps)?;
    opened.mark()?;
    opened.complete = true;
    Ok(opened)
}

impl Opened {
    /// The plan from which it was opened.
    #[must_use]
    pub fn plan(&self) -> &FilePlan {
        &self.plan
    }

    /// Opens the files of a clone as its job requires, in the order of its plan; empty for engines that need none. Each
    /// clone must call this itself when its job starts: `invalidate` and `pre_read` happen here.
    ///
    /// # Errors
    /// Direct I/O that is refused, files replaced or truncated meanwhile, I/O errors, `Interrupted`.
    pub fn files_of(&self, job: usize, clone: u32, stop: &Stop) -> Result<Vec<Arc<DirectFile>>, EngineError> {
        let places = self.plan.clone_of(job, clone).map_or(&[][..], |plan| &plan.files);
        places.iter().map(|place| self.open_one(*place, job, stop).map(Arc::new)).collect()
    }

    /// The numbers carried by the content of a clone's files, in the order of its plan.
    pub(crate) fn numbers_of(&self, job: usize, clone: u32) -> Vec<u64> {
        let plan = self.plan.clone_of(job, clone);
        let places = plan.map_or(&[][..], |plan| &plan.files);
        places.iter().map(|place| self.number_of(*place)).collect()
    }

    /// The number carried by the content of a file; 0 for a file that is not ours.
    pub(super) fn number_of(&self, place: usize) -> u64 {
        let held = self.held[place].lock();
        held.unwrap_or_else(PoisonError::into_inner).number
    }

    /// Removes files with `unlink`, and marks the others as complete. Every clone must have closed its files.
    ///
    /// # Errors
    /// I/O errors; the other files are completed all the same.
    pub fn finish(mut self) -> Result<(), EngineError> {
        self.settle()
    }

    fn settle(&mut self) -> Result<(), EngineError> {
        self.finished = true;
        let (mut outcome, mut closed) = (Ok(()), false);
        for (file, held) in self.plan.files.iter().zip(&self.held) {
            let held = locked(held);
            let Some(kept) = &held.file else { continue };
            let done = if !file.is_ours() {
                Ok(())
            } else if file.remove {
                remove_if_same(&file.resolved, &held)
            } else if file.written || held.created || file.is_laid_out() {
                closed = true;
                marker::close(&file.resolved, kept, held.number)
            } else {
                Ok(())
            };
            outcome = outcome.and(done);
        }
        if closed {
            // We still hold the locks.
            marker::rest();
        }
        outcome
    }

    fn hold(&mut self, place: usize) -> Result<(), EngineError> {
        let file = &self.plan.files[place];
        let held = match file.target {
            PathState::New if file.fill == Fill::AtOpen => return Ok(()),
            PathState::New => create(file)?,
            PathState::Device if file.written => hold_device(file)?,
            PathState::Device => return Ok(()),
            PathState::File(_) if file.written || file.is_laid_out() => hold_file(file)?,
            PathState::File(whose) if whose.is_ours() => share_file(file)?,
            // A job that only reads a foreign file takes no lock, which could get in its owner's way.
            PathState::File(_) => return Ok(()),
        };
        *self.slot(place) = held;
        Ok(())
    }

    fn slot(&mut self, place: usize) -> &mut Held {
        self.held[place].get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lays out one file after another, as fio does.
    fn lay_out(&mut self, stop: &Stop, steps: &dyn Steps) -> Result<(), EngineError> {
        let of = self.jobs.iter().map(|job| job.wave as usize + 1).max();
        let mut announced = vec![false; self.plan.files.len()];
        let mut progress = Progress::new(&self.plan, steps);
        for clone in 0..self.plan.clones.len() {
            let plan = &self.plan.clones[clone];
            let job = plan.job;
            let mut places = plan.files.clone();
            places.retain(|place| {
                self.plan.files[*place].is_laid_out() && !std::mem::replace(&mut announced[*place], true)
            });
            if places.is_empty() {
                continue;
            }
            let text = announcement(&self.jobs[job].name, &self.plan, &places);
            steps.step(0, of.unwrap_or(1), &text);
            for place in places {
                self.lay_out_one(place, job, stop, &mut progress)?;
            }
        }
        Ok(())
    }

    fn lay_out_one(
        &mut self,
        place: usize,
        job: usize,
        stop: &Stop,
        progress: &mut Progress<'_>,
    ) -> Result<(), EngineError> {
        let options = &self.jobs[job].options.files;
        let (sync, fallocate) = (options.create_fsync, options.fallocate);
        let content = layout::content_of(&self.jobs[job].options);
        let file = self.plan.files[place].clone();
        let held = self.slot(place);
        if !held.created && file.bytes > file.bytes_now {
            held.shorter = Some(file.bytes_now);
        }
        let Some(kept) = &held.file else {
            unreachable!("every file that is laid out is held");
        };
        let mut task = Task {
            path: &file.resolved,
            file: kept,
            from: file.bytes,
            to: file.bytes,
            fallocate,
            sync,
            content,
            number: held.number,
        };
        if held.created {
            layout::anchor(&task)?;
        }
        match file.fill {
            Fill::Write { from } => {
                task.from = from;
                layout::write(&task, stop, &mut |bytes| progress.wrote(bytes))
            }
            _ => layout::allocate(&task),
        }
    }

    /// Marks files that jobs write to as being written, and the others as complete.
    fn mark(&mut self) -> Result<(), EngineError> {
        for (file, held) in self.plan.files.iter().zip(&mut self.held) {
            let held = held.get_mut().unwrap_or_else(PoisonError::into_inner);
            match &held.file {
                Some(kept) if file.is_ours() && file.written => {
                    let bytes = file.bytes.max(file.bytes_now);
                    marker::put(&file.resolved, kept, held.number, bytes, State::Open)?;
                }
                Some(kept) if file.is_ours() && file.is_laid_out() => {
                    marker::close(&file.resolved, kept, held.number)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn open_one(&self, place: usize, job: usize, stop: &Stop) -> Result<DirectFile, EngineError> {
        let file = &self.plan.files[place];
        let options = &self.jobs[job].options;
        let writes = options.pattern.mode.destroys() && !options.payload.verify_only;
        let wishes = FileOptions {
            read: true,
            write: writes,
            direct: if options.files.direct { DirectIo::Required } else { DirectIo::No },
            write_through: match options.files.sync {
                OpenSync::None => WriteThrough::No,
                OpenSync::Dsync => WriteThrough::Data,
                OpenSync::Sync => WriteThrough::Whole,
            },
            // The device is claimed already; a second claim would be refused.
            exclusive: false,
            no_atime: true,
        };
        let opened = self.open_place(place, wishes)?;
        if options.files.pre_read {
            pre_read(&file.resolved, file.bytes, stop)?;
        } else if options.files.invalidate && !file.in_memory {
            opened.invalidate(0, 0).map_err(failed)?;
        }
        Ok(opened)
    }

    /// Opens exactly the file that was planned.
    pub(super) fn open_place(&self, place: usize, wishes: FileOptions) -> Result<DirectFile, EngineError> {
        let file = &self.plan.files[place];
        let identity = self.identity_of(place)?;
        let opened = DirectFile::open_with(&file.resolved, wishes).map_err(failed)?;
        check_same(&file.path, &opened, identity)?;
        Ok(opened)
    }

    /// The identity that the file must have; creates it now if creation was deferred.
    fn identity_of(&self, place: usize) -> Result<Option<(u64, u64)>, EngineError> {
        let file = &self.plan.files[place];
        let mut held = locked(&self.held[place]);
        if file.fill == Fill::AtOpen && held.file.is_none() {
            *held = create(file)?;
            if let Some(kept) = &held.file {
                marker::put(&file.resolved, kept, held.number, file.bytes, State::Open)?;
            }
        }
        Ok(held.identity.or(file.identity))
    }

    /// After a failure: removes everything incomplete.
    fn undo(&mut self) {
        for (file, held) in self.plan.files.iter().zip(&mut self.held) {
            let held = held.get_mut().unwrap_or_else(PoisonError::into_inner);
            // Report the error that led here, not one of the cleanup.
            if held.created {
                let _ = remove_if_same(&file.resolved, held);
            } else if let (Some(before), Some(kept)) = (held.shorter, &held.file) {
                let _ = kept.set_len(before);
                let _ = marker::close(&file.resolved, kept, held.number);
                marker::rest();
            }
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if !self.complete {
            self.undo();
        } else if !self.finished {
            // A caller that did not finish has an error of its own to report.
            let _ = self.settle();
        }
    }
}

/// Reports the progress of the layout.
struct Progress<'a> {
    steps: &'a dyn Steps,
    clones: usize,
    files: u32,
    total: u64,
    done: u64,
    told: Instant,
    told_bytes: u64,
}

impl<'a> Progress<'a> {
    fn new(plan: &FilePlan, steps: &'a dyn Steps) -> Self {
        let to_write = |file: &PlannedFile| match file.fill {
            Fill::Write { from } => file.bytes.saturating_sub(from),
            _ => 0,
        };
        Self {
            steps,
            clones: plan.clones.len(),
            files: plan.files.len() as u32,
            total: plan.files.iter().map(to_write).sum(),
            done: 0,
            told: Instant::now(),
            told_bytes: 0,
        }
    }

    fn wrote(&mut self, bytes: u64) {
        self.done += bytes;
        let since = self.told.elapsed();
        if since < LIVE {
            return;
        }
        let rate = (self.done - self.told_bytes) as f64 / since.as_secs_f64();
        let left = self.total.saturating_sub(self.done);
        self.steps.live(&StorageLive {
            states: "P".repeat(self.clones),
            files: self.files,
            done: Some(self.done as f64 / self.total.max(1) as f64),
            eta_s: (rate > 0.0).then(|| (left as f64 / rate) as u64),
            bytes_per_s: [None, Some(rate), None],
            ..StorageLive::default()
        });
        self.told = Instant::now();
        self.told_bytes = self.done;
    }
}

/// The announcement in fio's words.
fn announcement(job: &str, plan: &FilePlan, places: &[usize]) -> String {
    let total: u64 = places.iter().map(|place| plan.files[*place].bytes).sum();
    let mib = total >> 20;
    match places.len() {
        1 => format!("{job}: Laying out IO file (1 file / {mib}MiB)"),
        files => format!("{job}: Laying out IO files ({files} files / total {mib}MiB)"),
    }
}

fn create(file: &PlannedFile) -> Result<Held, EngineError> {
    let path = &file.resolved;
    if file.missing_directories > 0 {
        let directory = directory_of(path);
        fs::create_dir_all(directory).map_err(|error| cannot("make the directory", directory, error))?;
    }
    let kept = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(|error| cannot("create", path, error))?;
    let metadata = kept.metadata().map_err(|error| cannot("examine", path, error))?;
    let mut held = Held { identity: Some(identity(&metadata)), created: true, number: drawn_id()?, ..Held::default() };
    let marked = Locked::exclusive(kept).map_err(|error| cannot_lock(&file.path, error)).and_then(|kept| {
        marker::put(path, &kept, held.number, file.bytes, State::Laying)?;
        Ok(kept)
    });
    match marked {
        Ok(kept) => held.file = Some(kept),
        Err(error) => {
            // Nobody else knows of this file yet.
            let _ = remove_if_same(path, &held);
            return Err(error);
        }
    }
    Ok(held)
}

/// Holds an existing file that will be written to.
fn hold_file(file: &PlannedFile) -> Result<Held, EngineError> {
    let path = &file.resolved;
    let kept = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32)
        .open(path)
        .map_err(|error| cannot("open", path, error))?;
    let kept = Locked::exclusive(kept).map_err(|error| cannot_lock(&file.path, error))?;
    let metadata = kept.metadata().map_err(|error| cannot("examine", path, error))?;
    // Another holder since the plan may have replaced or changed it.
    let touched = Some((metadata.ctime(), metadata.ctime_nsec())) != file.touched;
    let unsure = touched || file.target == PathState::File(Whose::Held);
    let changed = Some(identity(&metadata)) != file.identity
        || metadata.len() != file.bytes_now
        || file.is_ours() && unsure && marker::whose(path, &metadata, Some(&kept)) != Whose::Ours;
    if changed {
        return Err(changed_meanwhile(&file.path));
    }
    let number = match marker::of(path) {
        Some(mark) if file.is_ours() => mark.number,
        _ => 0,
    };
    if file.is_ours() && file.is_laid_out() {
        let bytes = file.bytes.max(file.bytes_now);
        marker::put(path, &kept, number, bytes, State::Laying)?;
    }
    Ok(Held { identity: file.identity, file: Some(kept), number, ..Held::default() })
}

/// Holds a file of ours that is only read: no run of ours may write to it meanwhile.
fn share_file(file: &PlannedFile) -> Result<Held, EngineError> {
    let kept = File::open(&file.resolved).map_err(|error| cannot("open", &file.resolved, error))?;
    let kept = Locked::shared(kept).map_err(|error| cannot_lock(&file.path, error))?;
    Ok(Held { identity: file.identity, file: Some(kept), ..Held::default() })
}

fn hold_device(file: &PlannedFile) -> Result<Held, EngineError> {
    let claim = claim_device(&file.resolved).map_err(failed)?;
    let metadata = fs::metadata(&file.resolved).map_err(|error| cannot("examine", &file.resolved, error))?;
    if Some(identity(&metadata)) != file.identity {
        return Err(changed_meanwhile(&file.path));
    }
    Ok(Held { identity: file.identity, _claim: Some(claim), ..Held::default() })
}

fn cannot_lock(path: &Path, error: std::io::Error) -> EngineError {
    if !is_held(&error) {
        return cannot("lock", path, error);
    }
    EngineError::Unusable(format!(
        "{} is in use: another process has locked it; wait until that process ends, or name another file",
        path.display()
    ))
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    if metadata.file_type().is_block_device() { (u64::MAX, metadata.rdev()) } else { (metadata.dev(), metadata.ino()) }
}

/// Checks that the opened file is the planned one.
fn check_same(path: &Path, opened: &DirectFile, expected: Option<(u64, u64)>) -> Result<(), EngineError> {
    let copy = opened.as_fd().try_clone_to_owned().map_err(|error| cannot("examine", path, error))?;
    let metadata = File::from(copy).metadata().map_err(|error| cannot("examine", path, error))?;
    if Some(identity(&metadata)) == expected { Ok(()) } else { Err(changed_meanwhile(path)) }
}

fn changed_meanwhile(path: &Path) -> EngineError {
    EngineError::Unusable(format!(
        "{}: another process changed or replaced it while the run was being set up; try again",
        path.display()
    ))
}

/// Removes a file, unless another file has its name by now.
fn remove_if_same(path: &Path, held: &Held) -> Result<(), EngineError> {
    let same = fs::symlink_metadata(path).is_ok_and(|found| Some(identity(&found)) == held.identity);
    if !same {
        return Ok(());
    }
    marker::forget(path);
    fs::remove_file(path).map_err(|error| cannot("remove", path, error))
}

/// Reads a file into the page cache.
fn pre_read(path: &Path, bytes: u64, stop: &Stop) -> Result<(), EngineError> {
    let mut file = File::open(path).map_err(|error| cannot("open", path, error))?;
    let mut buffer = vec![0; PRE_READ_BYTES];
    let mut done = 0;
    while done < bytes {
        if stop.requested() {
            return Err(EngineError::Interrupted);
        }
        match file.read(&mut buffer) {
            Ok(0) => {
                return Err(EngineError::Unusable(format!(
                    "{}: it ends at byte {done} instead of {}: another process has truncated it",
                    path.display(),
                    bytes_text(bytes)
                )));
            }
            Ok(count) => done += count as u64,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(cannot("read", path, error)),
        }
    }
    Ok(())
}
