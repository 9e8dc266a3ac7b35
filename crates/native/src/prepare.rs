//! Creating and loading a data set: direct path writes of sequential slots that hold permuted keys.
//!
//! The control file says `loading` from before the first data file exists until
//! everything is synced and checked, and it names every file from the start:
//! a prepare that is killed leaves nothing that the next one cannot tidy up.

use super::block_format::Kind;
use super::bulk::{Job, PIECE_BYTES, Pieces, Span, Watch, transfer};
use super::check::{Level, verify};
use super::content::Content;
use super::control::{CONTROL_TEMPORARY_NAME, State};
use super::control_file::{ControlFile, remove_control, sync_dir};
use super::destroy::{remove_named, remove_path};
use super::device;
use super::errors::engine_error;
use super::errors::io_error;
use super::files::{Files, UNDO_HEADER_KEY, file_header, file_paths, header_key};
use super::layout::{Page, UNDO_BASE};
use super::load_plan::{LoadPlan, Start, bytes, count, in_use_error, text};
use super::paths::{DataPath, MARKER_NAME, Marker, Places, same};
use super::survey::{Ours, is_unborn_control};
use super::take_back::{sync_places, trim};
use assay_block::{DirectFile, device_facts};
use assay_measure::config::Settings;
use assay_measure::units::many;
use assay_run::dataset::lines::decimal;
use assay_run::engine::{EngineError, Line};
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

/// Carries out a [`LoadPlan`]: creates, loads, checks.
///
/// # Errors
/// I/O errors, no space, `Interrupted`. After an error nothing of a new data set is left, and
/// an existing one is as it was; after an interrupted first load the next prepare starts over.
pub(super) fn prepare(plan: &LoadPlan, settings: &Settings, watch: Watch<'_>) -> Result<Vec<Line>, EngineError> {
    let threads = settings.int("LOAD_PARALLEL_DEGREE") as usize;
    let work_unit = settings.int("WORK_UNIT");
    if let Start::Nothing(there) = &plan.start {
        let control = &there.control;
        let _lock = ControlFile::open_locked(plan.places.home())?;
        let _claims = device::claim(&plan.places)?;
        let files = Files::open(&plan.places, control, true)?;
        let mut lines = vec![text(
            "action",
            "Action",
            format!("nothing loaded: {} already there", many(control.loaded_schemas.into(), "schema")),
        )];
        lines.extend(verify(&files, control, Level::Sampled, threads, work_unit, watch)?);
        return Ok(lines);
    }
    let begun = Instant::now();
    let mut site = Site::open(plan)?;
    let loaded = site.create_files(plan).and_then(|files| load_and_check(plan, &files, threads, work_unit, watch));
    let mut lines = match loaded {
        Ok(lines) => lines,
        Err(error) => return Err(site.undo(plan, error)),
    };
    let mut control = plan.control.clone();
    control.state = State::Clean;
    control.loaded_schemas = control.geometry.schemas;
    site.control.store(control)?;
    lines.push(decimal("total_s", "Time in all, s", begun.elapsed().as_secs_f64()));
    Ok(lines)
}

/// What a running prepare has made, so that it can be unmade.
struct Site {
    control: ControlFile,
    made: Made,
    /// Devices of the data set, kept from others while this works.
    _claims: Vec<device::Claim>,
}

/// Directories, marks and files, each in the order made.
#[derive(Default)]
struct Made {
    dirs: Vec<PathBuf>,
    marked: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl Site {
    /// Locks the data set, or creates directories, control file and markers, in state loading.
    fn open(plan: &LoadPlan) -> Result<Self, EngineError> {
        match &plan.start {
            Start::Fresh => Self::create(plan),
            Start::Over(old) => {
                let mut control = locked_unchanged(old)?;
                remove_named(old)?;
                for (place, _) in others(old).filter(|(_, present)| **present) {
                    remove_path(&place.path, place.device)?;
                }
                // Its old names must not be forgotten before they are gone for good.
                sync_places(&old.places, &old.present)?;
                control.store(plan.control.clone())?;
                let mut made = Made::default();
                make_dirs(plan, &mut made)?;
                mark_others(plan, &mut made)?;
                Self::keeping(control, &plan.places, made)
            }
            Start::Add(old) => {
                let mut control = locked_unchanged(old)?;
                if old.control.state == State::Loading {
                    trim(&old.places, &old.control)?;
                }
                control.store(plan.control.clone())?;
                Self::keeping(control, &plan.places, Made::default())
            }
            Start::Nothing(_) => unreachable!("there is nothing to load"),
        }
    }

    fn keeping(control: ControlFile, places: &Places, made: Made) -> Result<Self, EngineError> {
        Ok(Self { control, made, _claims: device::claim(places)? })
    }

    fn create(plan: &LoadPlan) -> Result<Self, EngineError> {
        let dir = plan.places.home();
        let mut made = Made::default();
        let created =
            make_dirs(plan, &mut made).and_then(|()| ControlFile::create(dir, &plan.control)).and_then(|control| {
                mark_others(plan, &mut made)
                    .and_then(|()| device::claim(&plan.places))
                    .map(|claims| (control, claims))
                    .inspect_err(|_| {
                        // What is left of it here is ours alone: it was created a moment ago.
                        let _ = remove_control(dir);
                    })
            });
        match created {
            Ok((control, claims)) => Ok(Self { control, made, _claims: claims }),
            Err(error) => {
                for path in &made.marked {
                    let _ = remove_path(path, device::is_device(path));
                }
                // Another prepare may be at work here: only what is certainly dead goes.
                if matches!(error, EngineError::Io { .. }) && is_unborn_control(dir) {
                    let _ = fs::remove_file(dir.join(CONTROL_TEMPORARY_NAME));
                }
                for dir in made.dirs.iter().rev() {
                    // Fails when somebody else has put something there, which is right.
                    let _ = fs::remove_dir(dir);
                }
                Err(error)
            }
        }
    }

    /// Creates the missing files, allocates their space and writes their headers.
    fn create_files(&mut self, plan: &LoadPlan) -> Result<Files, EngineError> {
        let control = &plan.control;
        let geometry = &control.geometry;
        let keeps = !matches!(plan.start, Start::Fresh | Start::Over(_));
        let undo = geometry.data_files();
        let mut new = Vec::new();
        for (file, path) in (0..).zip(file_paths(&plan.places, control)) {
            let place = &plan.places.list()[usize::from(control.path_of_file(file))];
            if place.device {
                // The header of a file that stays would be written again as it is.
                new.push(file);
            } else if !(keeps && path.exists()) {
                drop(DirectFile::create_new(&path, false).map_err(engine_error)?);
                self.made.files.push(path);
                new.push(file);
            }
        }
        sync_places(&plan.places, &[])?;
        let files = Files::open_unverified(&plan.places, control, true)?;
        for (file, open) in (0..).zip(&files.list) {
            open.allocate(control.file_bytes(file)).map_err(engine_error)?;
        }
        for file in new.into_iter().filter(|file| *file <= undo) {
            let (first, key) = if file < undo {
                (geometry.map().file_pages(file).0, header_key(file))
            } else {
                (Page(UNDO_BASE), UNDO_HEADER_KEY)
            };
            files.list[usize::from(file)].write_at(0, &file_header(control, first, key)).map_err(engine_error)?;
        }
        Ok(files)
    }

    /// After a failed load: takes away what it made. Gives back the error to report.
    fn undo(mut self, plan: &LoadPlan, error: EngineError) -> EngineError {
        let undone = match &plan.start {
            Start::Add(old) => self.back_to(old),
            // The next prepare starts over; leaving the files makes an interruption instant.
            _ if matches!(error, EngineError::Interrupted) => Ok(()),
            _ => self.remove_all(plan),
        };
        match undone {
            Ok(()) => error,
            Err(second) => EngineError::Unusable(format!(
                "{error}; and assay could not remove what it had begun ({second}): run `assay destroy`"
            )),
        }
    }

    fn back_to(&mut self, old: &Ours) -> Result<(), EngineError> {
        let mut kept = old.control.clone();
        kept.geometry.schemas = kept.loaded_schemas;
        for path in &self.made.files {
            fs::remove_file(path).map_err(|e| io_error("removing", path, e))?;
        }
        trim(&old.places, &kept)?;
        kept.state = State::Clean;
        self.control.store(kept)
    }

    fn remove_all(&mut self, plan: &LoadPlan) -> Result<(), EngineError> {
        for path in &self.made.files {
            fs::remove_file(path).map_err(|e| io_error("removing", path, e))?;
        }
        sync_places(&plan.places, &[])?;
        for place in plan.places.list().iter().skip(1) {
            remove_path(&place.path, place.device)?;
        }
        let home = plan.places.home();
        remove_control(home)?;
        for dir in self.made.dirs.iter().rev() {
            fs::remove_dir(dir).map_err(|e| io_error("removing", dir, e))?;
        }
        if self.made.dirs.iter().any(|dir| same(dir, home)) || plan.places.list()[0].device {
            return Ok(());
        }
        sync_dir(home)
    }
}

/// Every path but the one with the control file, and whether it is marked.
fn others(ours: &Ours) -> impl Iterator<Item = (&DataPath, &bool)> {
    ours.places.list().iter().zip(&ours.present).skip(1)
}

/// Creates the directories of a plan that are missing.
fn make_dirs(plan: &LoadPlan, made: &mut Made) -> Result<(), EngineError> {
    for place in plan.places.list().iter().filter(|place| !place.device) {
        let dir = &place.path;
        if !dir.exists() {
            made.dirs.push(dir.clone());
        }
        fs::create_dir_all(dir).map_err(|e| io_error("creating directory", dir, e))?;
    }
    // Only now do links lead somewhere.
    let list = plan.places.list();
    for (n, place) in list.iter().enumerate() {
        if let Some(other) = list[..n].iter().find(|other| same(&other.path, &place.path)) {
            return Err(EngineError::Usage(format!(
                "{} and {} are the same place under two names: name each path once",
                other.path.display(),
                place.path.display()
            )));
        }
    }
    Ok(())
}

/// Marks every path but the first, which has the control file.
fn mark_others(plan: &LoadPlan, made: &mut Made) -> Result<(), EngineError> {
    for (number, place) in (0..).zip(plan.places.list()).skip(1) {
        let marker = Marker { data_set: plan.control.data_set, path: number, home: plan.places.home().to_path_buf() };
        made.marked.push(place.path.clone());
        if place.device {
            device::wipe(&place.path)?;
            device::mark(&place.path, &marker)?;
            continue;
        }
        let path = place.path.join(MARKER_NAME);
        fs::File::create(&path)
            .and_then(|mut file| {
                file.write_all(&marker.encode())?;
                file.sync_all()
            })
            .map_err(|e| io_error("writing", &path, e))?;
        sync_dir(&place.path)?;
    }
    Ok(())
}

/// Locks the data set, if nobody changed it since the plan was made.
fn locked_unchanged(planned: &Ours) -> Result<ControlFile, EngineError> {
    let home = planned.places.home();
    let control = ControlFile::open_locked(home)?;
    if control.control() == &planned.control { Ok(control) } else { Err(in_use_error(home)) }
}

/// The phases in order, each timed with its own sync.
fn load_and_check(
    plan: &LoadPlan,
    files: &Files,
    threads: usize,
    work_unit: u64,
    watch: Watch<'_>,
) -> Result<Vec<Line>, EngineError> {
    let control = &plan.control;
    let content = Content::new(control, plan.first_schema..=control.geometry.schemas);
    let loader = Loader { plan, files, content: &content, threads, watch };
    let mut lines = loader.summary();
    lines.extend(loader.load_rows()?);
    lines.extend(loader.build_index()?);
    lines.extend(loader.load_scan_tables()?);
    if matches!(plan.start, Start::Fresh | Start::Over(_)) {
        lines.extend(loader.zero_undo()?);
        lines.extend(loader.zero_redo()?);
    }
    // Headers are verified with the rest, from the disk as a run would find them.
    let files = Files::open(&plan.places, control, true)?;
    lines.extend(verify(&files, control, Level::Sampled, threads, work_unit, watch)?);
    Ok(lines)
}

struct Loader<'a> {
    plan: &'a LoadPlan,
    files: &'a Files,
    content: &'a Content,
    threads: usize,
    watch: Watch<'a>,
}

/// Keys and words of one phase's summary lines.
struct Phase {
    name: &'static str,
    bytes: (&'static str, &'static str),
    seconds: (&'static str, &'static str),
    rate: (&'static str, &'static str),
}

impl Loader<'_> {
    fn summary(&self) -> Vec<Line> {
        let g = &self.plan.control.geometry;
        let schemas = u64::from(g.schemas + 1 - self.plan.first_schema);
        vec![
            count("loaded_schemas", "Schemas loaded", schemas),
            count("loaded_rows", "Rows loaded", schemas * g.scale),
            count("load_threads", "Loading threads", self.threads as u64),
            text(
                "load_io",
                "Loaded by",
                match (device_facts(self.plan.places.home()).is_tmpfs, self.files.all_direct()) {
                    (true, _) => "writes to memory: the file system is a tmpfs".to_owned(),
                    (false, true) => "direct path write (O_DIRECT)".to_owned(),
                    (false, false) => "buffered write: the file system refuses O_DIRECT".to_owned(),
                },
            ),
        ]
    }

    fn load_rows(&self) -> Result<Vec<Line>, EngineError> {
        let phase = Phase {
            name: "load",
            bytes: ("load_bytes", "Table data written"),
            seconds: ("load_s", "Load time with its sync, s"),
            rate: ("load_mb_per_s", "Load rate, MB/s (10^6)"),
        };
        let map = self.plan.control.geometry.map();
        let spans = self
            .schemas()
            .map(move |schema| Span::Pages { first: map.data_page(schema, 0), count: map.geometry.scale });
        let job = Job::Write {
            dress: &|buffer| self.content.dress_rows(buffer),
            fill: &|piece, buffer| self.content.fill_rows(piece, buffer, Kind::Data),
        };
        self.run(&phase, spans, job, 0..self.files.undo)
    }

    fn build_index(&self) -> Result<Vec<Line>, EngineError> {
        let phase = Phase {
            name: "index",
            bytes: ("index_bytes", "Index written"),
            seconds: ("index_s", "Index time with its sync, s"),
            rate: ("index_mb_per_s", "Index rate, MB/s (10^6)"),
        };
        let map = self.plan.control.geometry.map();
        let spans = self
            .schemas()
            .map(move |schema| Span::Pages { first: map.index_page(schema, 0), count: map.index.total_nodes });
        let job = Job::Write { dress: &|_| {}, fill: &|piece, buffer| self.content.fill_index(piece, buffer) };
        self.run(&phase, spans, job, 0..self.files.undo)
    }

    fn load_scan_tables(&self) -> Result<Vec<Line>, EngineError> {
        let phase = Phase {
            name: "scan tables",
            bytes: ("scan_bytes", "Scan tables written"),
            seconds: ("scan_s", "Scan table time with its sync, s"),
            rate: ("scan_mb_per_s", "Scan table rate, MB/s (10^6)"),
        };
        let map = self.plan.control.geometry.map();
        let spans = self
            .schemas()
            .map(move |schema| Span::Pages { first: map.scan_page(schema, 0), count: map.geometry.scan_blocks });
        let job = Job::Write {
            dress: &|buffer| self.content.dress_rows(buffer),
            fill: &|piece, buffer| self.content.fill_rows(piece, buffer, Kind::Scan),
        };
        self.run(&phase, spans, job, 0..self.files.undo)
    }

    fn zero_undo(&self) -> Result<Vec<Line>, EngineError> {
        let phase = Phase {
            name: "undo",
            bytes: ("undo_bytes", "Undo written"),
            seconds: ("undo_s", "Undo time with its sync, s"),
            rate: ("undo_mb_per_s", "Undo rate, MB/s (10^6)"),
        };
        let spans =
            std::iter::once(Span::Pages { first: Page(UNDO_BASE), count: self.plan.control.geometry.undo_blocks });
        let undo = self.files.undo;
        self.run(&phase, spans, ZEROES, undo..undo + 1)
    }

    fn zero_redo(&self) -> Result<Vec<Line>, EngineError> {
        let phase = Phase {
            name: "redo logs",
            bytes: ("redo_bytes", "Redo logs written"),
            seconds: ("redo_s", "Redo log time with its sync, s"),
            rate: ("redo_mb_per_s", "Redo log rate, MB/s (10^6)"),
        };
        let first = self.files.redo_first;
        let redo = first..first + self.files.redo_count;
        let bytes = self.plan.control.redo_file_bytes;
        let spans = redo.clone().map(move |file| Span::Bytes { file, offset: 0, bytes });
        self.run(&phase, spans, ZEROES, redo)
    }

    fn schemas(&self) -> impl Iterator<Item = u32> + Clone + Send + use<> {
        self.plan.first_schema..=self.plan.control.geometry.schemas
    }

    /// Writes all spans, syncs the files touched and sums it up.
    fn run(
        &self,
        phase: &Phase,
        spans: impl Iterator<Item = Span> + Clone + Send,
        job: Job<'_>,
        files: std::ops::Range<u16>,
    ) -> Result<Vec<Line>, EngineError> {
        let map = self.plan.control.geometry.map();
        let block_bytes = u64::from(map.geometry.block_bytes);
        let total: u64 = spans
            .clone()
            .map(|span| match span {
                Span::Pages { count, .. } => count * block_bytes,
                Span::Bytes { bytes, .. } => bytes,
            })
            .sum();
        if total == 0 {
            return Ok(Vec::new());
        }
        let begun = Instant::now();
        let pieces = Pieces::new(map, spans);
        let about = (phase.name, total);
        transfer(self.files, self.threads, pieces, job, about, self.watch)?;
        for file in files {
            self.files.list[usize::from(file)].sync_data().map_err(engine_error)?;
        }
        let seconds = begun.elapsed().as_secs_f64();
        let rate = total as f64 / 1e6 / seconds.max(1e-9);
        Ok(vec![
            bytes(phase.bytes.0, phase.bytes.1, total),
            decimal(phase.seconds.0, phase.seconds.1, seconds),
            decimal(phase.rate.0, phase.rate.1, rate),
        ])
    }
}

/// Writes zeroes: so that later overwrites change data and not the file system's metadata.
const ZEROES: Job<'static> = Job::Write { dress: &|buffer| buffer.fill(0), fill: &|_, _| {} };

// A piece is whole blocks of any legal size.
const _: () = assert!(PIECE_BYTES.is_multiple_of(65_536));
