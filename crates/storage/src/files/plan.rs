//! Decides which files the jobs use, what has to be created, and whether that is allowed.

use super::super::spec::{Invocation, Precondition, Region, StorageJob};
use super::look::{self, Found, What};
use super::marker::Whose;
use super::refusals::{self, Destroy, Surroundings};
use super::regions::{self, Known};
use super::space::{self, Space};
use super::{bytes_text, cannot, content, names};
use crate::readings::Way;
use assay_run::dataset::lines::{count, text};
use assay_run::engine::{EngineError, Line};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// All files of all jobs, examined and approved.
#[derive(Clone, Debug)]
pub struct FilePlan {
    /// Each file once, in the order in which jobs name them.
    pub files: Vec<PlannedFile>,
    /// All clones, ordered by job, then clone.
    pub clones: Vec<ClonePlan>,
    /// Notes on the figures of each job, in sentences.
    pub notes: Vec<Vec<String>>,
    pub(super) spaces: Vec<Space>,
}

/// The files of one clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClonePlan {
    /// Index of its job in the invocation.
    pub job: usize,
    /// From 0.
    pub clone: u32,
    /// Indexes into [`FilePlan::files`]; empty for engines that open none.
    pub files: Vec<usize>,
    /// The regions it works on; the file of a region is an index into `files`.
    pub regions: Vec<Region>,
    /// Bytes to move in one pass, if less than all regions (`filesize` with `size`).
    pub amount_bytes: Option<u64>,
}

/// What a path is before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// Nothing: a regular file will be created.
    New,
    /// A regular file.
    File(Whose),
    /// A block device.
    Device,
}

/// What to do to a file before the first job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Nothing.
    Nothing,
    /// Create it when the first job opens it (`create_on_open`).
    AtOpen,
    /// Set its length and allocate its space, without writing content.
    Allocate,
    /// Also write random data from a byte to the end.
    Write {
        /// First byte.
        from: u64,
    },
}

/// One file or device.
#[derive(Clone, Debug)]
pub struct PlannedFile {
    /// As the first job named it.
    pub path: PathBuf,
    /// Absolute path without symbolic links.
    pub resolved: PathBuf,
    /// The current state of the path.
    pub target: PathState,
    /// Current length in bytes.
    pub bytes_now: u64,
    /// Length the jobs need, bytes.
    pub bytes: u64,
    /// What to do to it first.
    pub fill: Fill,
    /// Whether any job reads from it.
    pub read: bool,
    /// Whether any job writes to it.
    pub written: bool,
    /// Whether it is preconditioned first.
    pub preconditioned: bool,
    /// Whether `--destroy` names it.
    pub destroy: bool,
    /// Whether to remove it at the end (`unlink`), because it is ours.
    pub remove: bool,
    /// The data, as far as known, that writing to a device would destroy.
    pub carries: Option<&'static str>,
    /// The first job that names it.
    pub job: usize,
    /// Whether it is in memory (tmpfs).
    pub in_memory: bool,
    /// Device and inode, or a block device's number.
    pub(super) identity: Option<(u64, u64)>,
    /// Time of the last change, s and ns since 1970, by the kernel's change time, which no program can set.
    pub(super) touched: Option<(i64, i64)>,
    /// Number of directories to create for it.
    pub(super) missing_directories: usize,
    /// Earliest wave that uses it, and whether that wave needs its content.
    first_use: (u32, bool),
}

impl PlannedFile {
    /// Whether it was or will be created by us.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        match self.target {
            PathState::New => true,
            PathState::File(whose) => whose.is_ours(),
            PathState::Device => false,
        }
    }

    /// Whether anything is created or written before the first job.
    #[must_use]
    pub fn is_laid_out(&self) -> bool {
        matches!(self.fill, Fill::Allocate | Fill::Write { .. })
    }

    /// One line of the plan: resolved name, size and what will happen to it.
    #[must_use]
    pub fn verdict(&self) -> String {
        let real = if self.path == self.resolved { String::new() } else { format!("{}, ", self.resolved.display()) };
        let kind = match self.target {
            PathState::New => "new file".to_owned(),
            PathState::File(whose) if whose.is_ours() => {
                format!("assay's file of {}", bytes_text(self.bytes_now))
            }
            PathState::File(_) => format!("file of {} not made by assay", bytes_text(self.bytes_now)),
            PathState::Device => format!("block device of {}", bytes_text(self.bytes_now)),
        };
        let memory = if self.in_memory { " in memory" } else { "" };
        let made = match self.fill {
            Fill::Nothing => String::new(),
            Fill::AtOpen => ", made when a job opens it".to_owned(),
            Fill::Allocate => format!(", {} allocated, not filled", bytes_text(self.bytes)),
            Fill::Write { from } => {
                format!(", {} written with random data first", bytes_text(self.bytes.saturating_sub(from)))
            }
        };
        let conditioned = if self.preconditioned { ", preconditioned by writing over it at least twice" } else { "" };
        let fate = match (self.written, self.is_ours()) {
            (false, _) if self.is_laid_out() => "then only read",
            (false, _) => "only read",
            (true, true) => "written",
            (true, false) => "DESTRUCTIVE: WRITTEN OVER",
        };
        let lost = match self.carries {
            Some(what) if self.written => format!(", which destroys {what}"),
            _ => String::new(),
        };
        let removed = if self.remove { ", removed at the end" } else { "" };
        format!("{real}{kind}{memory}{made}{conditioned}; {fate}{lost}{removed}")
    }
}

impl FilePlan {
    /// The part of a clone.
    #[must_use]
    pub fn clone_of(&self, job: usize, clone: u32) -> Option<&ClonePlan> {
        self.clones.iter().find(|plan| plan.job == job && plan.clone == clone)
    }

    /// The files of a job, each once, under the names given.
    #[must_use]
    pub fn paths_of(&self, job: usize) -> Vec<PathBuf> {
        let mut places: Vec<usize> =
            self.clones.iter().filter(|plan| plan.job == job).flat_map(|plan| plan.files.iter().copied()).collect();
        places.sort_unstable();
        places.dedup();
        places.iter().map(|place| self.files[*place].path.clone()).collect()
    }

    /// First and last byte of a file that the clones of a job use.
    pub(super) fn used(&self, job: usize, place: usize) -> (u64, u64) {
        let clones = self.clones.iter().filter(|clone| clone.job == job);
        let regions = clones.flat_map(|clone| {
            let ours = |region: &&Region| clone.files[usize::from(region.file)] == place;
            clone.regions.iter().filter(ours)
        });
        regions
            .fold((u64::MAX, 0), |(start, end), region| (start.min(region.start), end.max(region.start + region.bytes)))
    }

    /// The plan as text: a verdict for each file, then the space.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        let verdict = |file: &PlannedFile| text("file", &file.path.display().to_string(), file.verdict());
        let mut lines: Vec<Line> = self.files.iter().map(verdict).collect();
        for space in self.spaces.iter().filter(|space| space.needed > 0) {
            let place = space.directory.display();
            lines.push(count("needed_bytes", &format!("space needed in {place}"), space.needed));
            lines.push(count("free_bytes", &format!("space free in {place}"), space.room.free_bytes));
        }
        lines
    }
}

/// Plans the files of all jobs, without changing anything.
///
/// # Errors
/// Everything that keeps the jobs from running, all at once: missing sizes, unusable paths, files that must not be
/// written to, too little space.
pub fn plan(invocation: &Invocation) -> Result<FilePlan, Vec<EngineError>> {
    let mut planner = Planner::new(invocation);
    for (number, job) in invocation.jobs.iter().enumerate() {
        if !planner.has_directories(job) {
            continue;
        }
        for clone in 0..job.options.clones.max(1) {
            if let Err(error) = planner.add_clone(number, job, clone) {
                planner.errors.push(error);
                // The other clones would fail in the same way.
                break;
            }
        }
    }
    planner.finish()
}

/// What identifies a file whatever its name.
#[derive(PartialEq, Eq, Hash)]
enum Thing {
    There((u64, u64)),
    New(PathBuf),
}

struct Planner<'a> {
    invocation: &'a Invocation,
    destroy: Destroy,
    host: Surroundings,
    /// Index in `plan.files` of each object found, by its identity or, if nothing exists yet, by its real path.
    things: HashMap<Thing, usize>,
    /// Index in `plan.files` of each path as named.
    places: HashMap<PathBuf, usize>,
    /// The result of examining each file of the plan.
    found: Vec<Found>,
    plan: FilePlan,
    errors: Vec<EngineError>,
    /// Paths that could not be examined.
    failed: Vec<PathBuf>,
}

impl<'a> Planner<'a> {
    fn new(invocation: &'a Invocation) -> Self {
        Self {
            invocation,
            destroy: Destroy::new(&invocation.output.destroy),
            host: Surroundings::new(),
            things: HashMap::new(),
            places: HashMap::new(),
            found: Vec::new(),
            plan: FilePlan {
                files: Vec::new(),
                clones: Vec::new(),
                notes: vec![Vec::new(); invocation.jobs.len()],
                spaces: Vec::new(),
            },
            errors: Vec::new(),
            failed: Vec::new(),
        }
    }

    /// Checks that the directories exist: a mistyped one must not be created and filled.
    fn has_directories(&mut self, job: &StorageJob) -> bool {
        let missing = |directory: &&PathBuf| !directory.is_dir();
        let before = self.errors.len();
        for directory in job.options.files.directories.iter().filter(missing) {
            self.errors.push(EngineError::Usage(format!(
                "job {}: directory={}: it is not a directory; check the name, or make it first",
                job.name,
                directory.display()
            )));
        }
        self.errors.len() == before
    }

    fn add_clone(&mut self, number: usize, job: &StorageJob, clone: u32) -> Result<(), EngineError> {
        let paths = names::of_clone(&self.invocation.global_options, job, clone);
        if u16::try_from(paths.len()).is_err() {
            return Err(EngineError::Usage(format!(
                "job {}: {} files; a clone has at most 65535",
                job.name,
                paths.len()
            )));
        }
        let opened = regions::needs_files(job);
        let mut files = Vec::new();
        let mut known = Vec::new();
        for path in &paths {
            if !opened {
                known.push(regions::imagined(path));
                continue;
            }
            let place = self.place_of(path, number)?;
            files.push(place);
            known.push(known_of(path, &self.found[place]));
        }
        let share = regions::of_clone(job, clone, &known)?;
        for (place, end) in files.iter().zip(&share.ends) {
            self.use_file(*place, number, job, *end);
        }
        if clone == 0 {
            self.plan.notes[number].extend(share.notes);
        }
        self.plan.clones.push(ClonePlan {
            job: number,
            clone,
            files,
            regions: share.regions,
            amount_bytes: share.amount_bytes,
        });
        Ok(())
    }

    /// Index of a file in the plan, whichever of its names is given.
    fn place_of(&mut self, path: &Path, job: usize) -> Result<usize, EngineError> {
        if let Some(place) = self.places.get(path) {
            return Ok(*place);
        }
        let found = look::at(path).inspect_err(|_| self.failed.push(path.to_path_buf()))?;
        let thing = match found.identity() {
            Some(identity) => Thing::There(identity),
            None => Thing::New(found.resolved.clone()),
        };
        let next = self.plan.files.len();
        let place = *self.things.entry(thing).or_insert(next);
        if place == next {
            self.plan.files.push(planned(path, &found, job));
            self.found.push(found);
        }
        self.places.insert(path.to_path_buf(), place);
        Ok(place)
    }

    /// Records how a job uses a file.
    fn use_file(&mut self, place: usize, number: usize, job: &StorageJob, end: u64) {
        let options = &job.options;
        let reads = options.pattern.mode.goes(Way::Read) || options.payload.verify_only;
        let preconditioned = options.precondition.method != Precondition::None;
        let writes = options.pattern.mode.destroys() && !options.payload.verify_only || preconditioned;
        let file = &mut self.plan.files[place];
        if options.pattern.mode.goes(Way::Trim) && file.target != PathState::Device {
            self.errors.push(EngineError::Usage(format!(
                "job {}: rw={} works only on block devices, and {} is not one; name a device with filename and with \
                 --destroy",
                job.name,
                options.pattern.mode.name(),
                file.path.display()
            )));
        }
        file.bytes = file.bytes.max(end);
        file.read |= reads;
        file.written |= writes;
        file.preconditioned |= preconditioned;
        file.remove |= options.files.unlink && file.is_ours();
        // Preconditioning fills the file itself.
        let needs_content = (reads || options.files.overwrite) && !preconditioned;
        if job.wave < file.first_use.0 {
            file.first_use = (job.wave, needs_content);
        } else if job.wave == file.first_use.0 {
            file.first_use.1 |= needs_content;
        }
        if options.files.create_on_open && file.target == PathState::New {
            file.fill = Fill::AtOpen;
            if needs_content {
                self.errors.push(EngineError::Usage(format!(
                    "job {}: create_on_open makes {} empty, so there is nothing to read; leave it out",
                    job.name,
                    file.path.display()
                )));
            }
        }
        if !options.files.allow_create && file.target == PathState::New {
            self.errors.push(EngineError::Usage(format!(
                "job {}: {} does not exist and allow_file_create=0 forbids assay from making it",
                job.name,
                file.path.display()
            )));
        }
        let allow_mounted = options.files.allow_mounted_write;
        let note = "allow_mounted_write is accepted, but no option lets assay write to a mounted device";
        if allow_mounted && !self.plan.notes[number].iter().any(|known| known == note) {
            self.plan.notes[number].push(note.to_owned());
        }
    }

    fn finish(mut self) -> Result<FilePlan, Vec<EngineError>> {
        for place in 0..self.plan.files.len() {
            if let Err(error) = self.judge(place) {
                self.errors.push(error);
            }
        }
        if self.errors.is_empty() {
            self.notes_of_files();
            if let Err(error) = self.add_spaces() {
                self.errors.push(error);
            }
            let refusals = self.plan.spaces.iter().filter_map(Space::refusal);
            self.errors.extend(refusals);
        }
        let found: Vec<&Found> = self.found.iter().collect();
        let failed = &self.failed;
        let named = |path: &Path| failed.iter().any(|known| known == path);
        self.errors.extend(self.destroy.unused(&found, &named));
        if self.errors.is_empty() { Ok(self.plan) } else { Err(self.errors) }
    }

    /// Decides what to do to a file, and whether it is allowed.
    fn judge(&mut self, place: usize) -> Result<(), EngineError> {
        let (file, found) = (&mut self.plan.files[place], &self.found[place]);
        let job = &self.invocation.jobs[file.job];
        file.destroy = self.destroy.names(found);
        if file.fill != Fill::AtOpen {
            file.fill = fill_of(file)?;
        }
        let touched = file.written || file.is_laid_out();
        if touched && self.invocation.output.readonly {
            return Err(EngineError::Unusable(format!(
                "{}: --readonly is set, but assay would first have to write {} there ({} needed, {} there); make the \
                 file beforehand, or leave --readonly out",
                file.path.display(),
                if file.target == PathState::New { "the file" } else { "its end" },
                bytes_text(file.bytes),
                bytes_text(file.bytes_now),
            )));
        }
        if touched {
            let allow = job.options.files.allow_mounted_write;
            let (path, destroy) = (&file.path, file.destroy);
            file.carries = refusals::check_write(path, found, destroy, allow, &self.host)?;
        }
        Ok(())
    }

    /// Adds notes on the files that a reader of the figures should know.
    fn notes_of_files(&mut self) {
        for file in &self.plan.files {
            let path = file.path.display();
            let notes = &mut self.plan.notes[file.job];
            if file.in_memory {
                notes.push(format!("{path} is in memory (tmpfs): its figures describe the host, not a device"));
            }
            if file.fill == Fill::Allocate && file.written {
                notes.push(format!(
                    "{path} is allocated but not filled: the first write to each part of it also changes the file system's metadata; overwrite=1 measures writes to existing data"
                ));
            }
            let foreign = matches!(file.target, PathState::File(_)) && !file.is_ours();
            if file.read && foreign {
                let holes = content::hole_bytes(&file.resolved, 0, file.bytes);
                if holes > 0 {
                    notes.push(format!(
                        "{} of the {} of {path} were never written: reads of these parts never reach a device",
                        bytes_text(holes),
                        bytes_text(file.bytes)
                    ));
                }
            }
        }
    }

    fn add_spaces(&mut self) -> Result<(), EngineError> {
        for (file, found) in self.plan.files.iter().zip(&self.found) {
            if !file.is_ours() || file.bytes <= file.bytes_now && !file.is_laid_out() {
                continue;
            }
            let allocated = match &found.what {
                What::File { metadata, .. } => metadata.blocks() * 512,
                _ => 0,
            };
            let directory = file.resolved.ancestors().nth(1 + file.missing_directories).unwrap_or(Path::new("/"));
            let needed = file.bytes.saturating_sub(allocated);
            space::add(&mut self.plan.spaces, directory, needed)?;
        }
        Ok(())
    }
}

fn known_of(path: &Path, found: &Found) -> Known {
    Known {
        path: path.to_path_buf(),
        bytes: match found.what {
            What::Absent { .. } => None,
            _ => Some(found.bytes()),
        },
        device: matches!(found.what, What::Device { .. }),
    }
}

fn planned(path: &Path, found: &Found, job: usize) -> PlannedFile {
    let (target, missing_directories) = match found.what {
        What::Absent { missing_directories } => (PathState::New, missing_directories),
        What::File { whose, .. } => (PathState::File(whose), 0),
        What::Device { .. } => (PathState::Device, 0),
    };
    PlannedFile {
        path: path.to_path_buf(),
        resolved: found.resolved.clone(),
        target,
        bytes_now: found.bytes(),
        bytes: 0,
        fill: Fill::Nothing,
        read: false,
        written: false,
        preconditioned: false,
        destroy: false,
        remove: false,
        carries: None,
        job,
        in_memory: target != PathState::Device && look::is_in_memory(&found.resolved),
        identity: found.identity(),
        touched: match &found.what {
            What::File { metadata, .. } => Some((metadata.ctime(), metadata.ctime_nsec())),
            _ => None,
        },
        missing_directories,
        first_use: (u32::MAX, false),
    }
}

/// What a file still lacks.
fn fill_of(file: &PlannedFile) -> Result<Fill, EngineError> {
    let short = file.bytes_now < file.bytes;
    let needs_content = file.first_use.1;
    match file.target {
        PathState::Device => Ok(Fill::Nothing),
        PathState::New if needs_content => Ok(Fill::Write { from: 0 }),
        PathState::New => Ok(Fill::Allocate),
        PathState::File(whose) if whose.is_ours() => {
            if !needs_content {
                return Ok(if short { Fill::Allocate } else { Fill::Nothing });
            }
            let opened = File::open(&file.resolved).map_err(|error| cannot("open", &file.resolved, error))?;
            let present = file.bytes_now.min(file.bytes);
            let hole = content::first_hole(&opened, present);
            Ok(match hole {
                Some(from) => Fill::Write { from },
                None if short => Fill::Write { from: present },
                None => Fill::Nothing,
            })
        }
        PathState::File(_) if short => Err(EngineError::Unusable(format!(
            "{}: it has {}, but the jobs need {}, and assay never extends a file that it did not make; use size= or \
             offset= within the file, or name a new file",
            file.path.display(),
            bytes_text(file.bytes_now),
            bytes_text(file.bytes)
        ))),
        PathState::File(_) => Ok(Fill::Nothing),
    }
}
