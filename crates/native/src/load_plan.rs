//! What `prepare` would do: decided and refused here, before the first byte is written.

use super::control::{CONTROL_NAME, Control, ENGINE_WORDS, SLOT_BYTES, State};
use super::control_file::ControlFile;
use super::control_format::CONTROL_VERSION;
use super::control_rules::{MOST_REDO_BYTES, MOST_SCHEMAS, MOST_UNDO_BYTES};
use super::device;
use super::files::file_paths;
use super::layout::{Geometry, UNIT_BYTES};
use super::memory::refuse_too_much;
use super::paths::{Asked, DataPath, Places, absolute, fits, same};
use super::survey::{Found, Ours, Room, file_system_of, survey};
use assay_block::{DeviceFacts, device_facts};
use assay_measure::config::Settings;
use assay_measure::units::many;
pub(super) use assay_run::dataset::lines::{bytes, count, text};
use assay_run::dataset::lines::{made_otherwise, mebibytes};
use assay_run::engine::{EngineError, Line, LineValue};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Fewest rows of a schema: below, neither scatter nor a work unit means anything.
const FEWEST_ROWS: u64 = 1000;

/// Smallest redo log file and smallest undo file.
const FEWEST_FILE_BYTES: u64 = 4 << 20;

/// Write rates the time is estimated with, bytes per second, for a rotating disk and for
/// anything else: cautious figures, named where they are used.
const DISK_BYTES_PER_S: u64 = 150_000_000;
const OTHER_BYTES_PER_S: u64 = 500_000_000;

/// What to do where there is too little space.
const WAYS_OUT: &str = "use fewer schemas, a smaller SCALE, smaller REDO_LOG_MB or UNDO_MB, or another file system";

/// How the load begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Nothing is there.
    Fresh,
    /// A prepare did not finish its first schemas: its files are removed first.
    Over(Box<Ours>),
    /// Schemas `1..=loaded_schemas` of this control are kept.
    Add(Box<Ours>),
    /// All requested schemas exist.
    Nothing(Box<Ours>),
}

/// What one file system or device has to take.
#[derive(Clone, Debug)]
pub(super) struct Space {
    /// The paths that lie there.
    pub(super) paths: Vec<PathBuf>,
    /// Bytes to be written there.
    pub(super) needed_bytes: u64,
    /// Room before, files that will be removed first counted as gone.
    pub(super) room: Room,
}

/// Everything `prepare` decided.
#[derive(Clone, Debug)]
pub(super) struct LoadPlan {
    /// The data set's paths.
    pub(super) places: Places,
    /// How it begins.
    pub(super) start: Start,
    /// The control file's content while loading; `geometry.schemas` is the goal.
    pub(super) control: Control,
    /// First schema to load, from 1.
    pub(super) first_schema: u32,
    /// Bytes to be written.
    pub(super) write_bytes: u64,
    /// File systems and devices in the order of the first path on each.
    pub(super) spaces: Vec<Space>,
}

impl LoadPlan {
    /// Decides.
    ///
    /// # Errors
    /// `Usage` for settings that contradict themselves or the data set; `Unusable` for a foreign
    /// directory, a device that may not be overwritten, a data set in use, too little space.
    pub(super) fn new(asked: &Asked, settings: &Settings, schemas: u32) -> Result<Self, EngineError> {
        if !(1..=MOST_SCHEMAS).contains(&schemas) {
            return Err(EngineError::Usage(format!(
                "{schemas} schemas cannot be loaded; the range is 1 to {MOST_SCHEMAS}"
            )));
        }
        refuse_idle_consents(asked, settings)?;
        let start = match survey(asked, settings.overwritable())? {
            Found::Nothing => Start::Fresh,
            Found::Ours(ours) => start_from(ours, schemas)?,
        };
        let control = match &start {
            Start::Fresh | Start::Over(_) => new_control(settings, schemas, asked)?,
            Start::Add(old) => {
                refuse_contradictions(&old.control, settings)?;
                let mut control = Control::clone(&old.control);
                control.geometry.schemas = schemas.max(control.loaded_schemas);
                control.state = State::Loading;
                control.validate().map_err(EngineError::Usage)?;
                control
            }
            Start::Nothing(old) => {
                refuse_contradictions(&old.control, settings)?;
                Control::clone(&old.control)
            }
        };
        let places = match &start {
            Start::Fresh | Start::Over(_) => Places::new(control.paths.clone()),
            Start::Add(old) | Start::Nothing(old) => old.places.clone(),
        };
        let total = control.total_bytes();
        let (first_schema, write_bytes) = match &start {
            Start::Fresh | Start::Over(_) => (1, total),
            Start::Add(old) => {
                let first = old.control.loaded_schemas + 1;
                (first, total - kept_of(&old.control).total_bytes())
            }
            Start::Nothing(old) => (old.control.loaded_schemas + 1, 0),
        };
        let plan =
            Self { spaces: spaces(&start, &control, &places)?, places, start, control, first_schema, write_bytes };
        plan.refuse_devices(settings.overwritable())?;
        plan.refuse_too_little_space()?;
        Ok(plan)
    }

    /// Devices that nobody said may be overwritten, and that are not this data set's already.
    fn refuse_devices(&self, overwritable: &[PathBuf]) -> Result<(), EngineError> {
        let own = |path: &Path| match &self.start {
            Start::Fresh => false,
            Start::Over(old) | Start::Add(old) | Start::Nothing(old) => {
                let places = old.places.list().iter().zip(&old.present);
                places.filter(|(_, present)| **present).any(|(place, _)| same(&place.path, path))
            }
        };
        for place in self.places.list().iter().filter(|place| place.device) {
            if !own(&place.path) {
                device::may_overwrite(&place.path, overwritable)?;
            }
        }
        Ok(())
    }

    fn refuse_too_little_space(&self) -> Result<(), EngineError> {
        for (number, place) in (0..).zip(self.places.list()) {
            if place.device {
                let needed = self.control.needed_bytes(number);
                let capacity = device::capacity(&place.path)?;
                if needed > capacity {
                    return Err(EngineError::Unusable(format!(
                        "{} has {}, but {} are needed: use fewer schemas, a smaller SCALE, smaller REDO_LOG_MB or \
                         UNDO_MB, or a larger device",
                        place.path.display(),
                        mebibytes(capacity),
                        mebibytes(needed)
                    )));
                }
            }
        }
        for space in &self.spaces {
            if space.needed_bytes > 0 {
                space.room.fits(&names(&space.paths), space.needed_bytes, WAYS_OUT)?;
            }
        }
        Ok(())
    }

    /// The plan for people and for JSON.
    pub(super) fn lines(&self) -> Vec<Line> {
        let g = &self.control.geometry;
        let block = u64::from(g.block_bytes);
        let loaded = u64::from(g.schemas + 1 - self.first_schema);
        let index = g.index();
        let redo = u64::from(self.control.redo_files) * self.control.redo_file_bytes;
        let (redo, undo) = match self.start {
            Start::Fresh | Start::Over(_) => (redo, g.undo_file_bytes()),
            Start::Add(_) | Start::Nothing(_) => (0, 0),
        };
        let facts = device_facts(self.places.home());
        let rate = match facts.rotational {
            Ok(true) => DISK_BYTES_PER_S,
            _ => OTHER_BYTES_PER_S,
        };
        let seconds = self.write_bytes as f64 / rate as f64;
        let home = self.places.home().display().to_string();
        let mut lines =
            vec![text("directory", "Directory", home), text("file_system", "File system", file_system(&facts))];
        lines.extend(self.path_lines());
        lines.extend([
            text("action", "Action", self.action()),
            count("format_version", "Format version", u64::from(CONTROL_VERSION)),
            count("schemas", "Schemas", u64::from(g.schemas)),
            count("scale_blocks", "Rows (= blocks) per schema", g.scale),
            count("scan_blocks", "Scan table blocks per schema", g.scan_blocks),
            count("block_bytes", "Block size, bytes", block),
            count("seed", "Seed of the key order", g.seed),
            bytes("data_bytes", "Table data", loaded * g.scale * block),
            bytes("index_bytes", "Index", loaded * index.total_nodes * block),
            bytes("scan_bytes", "Scan tables", loaded * g.scan_blocks * block),
            bytes("undo_bytes", "Undo", undo),
            bytes("redo_bytes", "Redo logs", redo),
            bytes("total_bytes", "To be written", self.write_bytes),
            bytes("free_bytes", "Free now", self.spaces[0].room.free_bytes),
            bytes("keep_bytes", "To stay free", self.spaces[0].room.keep_bytes),
            Line {
                key: "estimated_s",
                label: format!("Estimated time, s, at an assumed {} MB/s", rate / 1_000_000),
                value: LineValue::Decimal((seconds * 10.0).round() / 10.0),
            },
        ]);
        lines
    }

    /// Where what goes, if there is more than one path.
    fn path_lines(&self) -> Vec<Line> {
        let list = self.places.list();
        if list.len() == 1 && !list[0].device {
            return Vec::new();
        }
        let paths = (0..).zip(list).map(|(number, place)| {
            let kind = if place.device { ", block device" } else { "" };
            let roles = roles(&self.control, number);
            format!("{} ({roles}{kind})", place.path.display())
        });
        let spaces = self.spaces.iter().map(|space| {
            format!(
                "{}: {} to be written, {} free",
                names(&space.paths),
                mebibytes(space.needed_bytes),
                mebibytes(space.room.free_bytes)
            )
        });
        vec![
            text("paths", "Paths", paths.collect::<Vec<_>>().join("; ")),
            count(
                "allocation_unit_bytes",
                "Allocation unit, bytes",
                match self.control.geometry.stripes {
                    1 => 0,
                    _ => UNIT_BYTES,
                },
            ),
            text("spaces", "Space", spaces.collect::<Vec<_>>().join("; ")),
        ]
    }

    fn action(&self) -> String {
        let schemas = self.control.geometry.schemas;
        let all = many(schemas.into(), "schema");
        match &self.start {
            Start::Fresh => format!("create a data set of {all}"),
            Start::Over(_) => {
                format!("start over: an earlier prepare did not finish; remove its files and create {all}")
            }
            Start::Add(old) if old.control.state == State::Loading => format!(
                "resume: an earlier prepare did not finish; keep schemas 1 to {}, load {} to {schemas}",
                old.control.loaded_schemas, self.first_schema
            ),
            Start::Add(_) => format!("add schemas {} to {schemas}", self.first_schema),
            Start::Nothing(old) => {
                let loaded = many(old.control.loaded_schemas.into(), "schema");
                format!("nothing: {loaded} already there")
            }
        }
    }
}

/// Type, place and device of the file system that holds the data set.
fn file_system(facts: &DeviceFacts) -> String {
    let known = |value: Result<String, String>| value.unwrap_or_else(|why| format!("n/a ({why})"));
    if device::is_device(&facts.path) {
        return format!("none, raw device {}", known(facts.kernel_name.clone()));
    }
    let mount_point = facts.mount_point.clone();
    let device = if facts.is_tmpfs {
        "in memory: no device is measured".to_owned()
    } else {
        format!("device {}", known(facts.kernel_name.clone()))
    };
    format!(
        "{} at {}, {device}",
        known(facts.fs_type.clone()),
        known(mount_point.map(|path| path.display().to_string()))
    )
}

/// What a path holds, in words.
pub(super) fn roles(control: &Control, path: u16) -> String {
    let roles = [
        ("data", path < control.geometry.stripes),
        ("undo", path == control.undo_path),
        ("redo", path == control.redo_path),
    ];
    let held: Vec<&str> = roles.iter().filter_map(|(word, held)| held.then_some(*word)).collect();
    held.join(", ")
}

fn names(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
    names.join(", ")
}

/// The same data set with only what is loaded.
fn kept_of(control: &Control) -> Control {
    let mut kept = control.clone();
    kept.geometry.schemas = kept.loaded_schemas;
    kept
}

/// `--destroy` may only name a device of the data set: anything else is a mistake that must not pass unseen.
fn refuse_idle_consents(asked: &Asked, settings: &Settings) -> Result<(), EngineError> {
    for path in settings.overwritable() {
        if !asked.all().iter().any(|named| same(named, path)) {
            return Err(EngineError::Usage(format!(
                "--destroy {} names nothing that assay would write: the target is {}",
                path.display(),
                names(&asked.data)
            )));
        }
        if !device::is_device(path) {
            return Err(EngineError::Usage(format!(
                "--destroy {} does not name a block device: assay never overwrites a directory; `assay destroy` \
                 removes a data set of assay",
                path.display()
            )));
        }
    }
    Ok(())
}

/// How to begin where a data set of ours is.
fn start_from(ours: Box<Ours>, schemas: u32) -> Result<Start, EngineError> {
    let home = ours.places.home();
    if ControlFile::in_use(home)? {
        return Err(in_use_error(home));
    }
    match ours.control.state {
        State::Loading if ours.control.loaded_schemas == 0 => Ok(Start::Over(ours)),
        State::Loading => Ok(Start::Add(ours)),
        // One that was not closed is recovered before anything is added.
        State::Clean | State::Open if schemas > ours.control.loaded_schemas => Ok(Start::Add(ours)),
        State::Clean | State::Open => Ok(Start::Nothing(ours)),
    }
}

/// What every file system and device takes, each once however many paths lie on it.
fn spaces(start: &Start, control: &Control, places: &Places) -> Result<Vec<Space>, EngineError> {
    let mut keys = Vec::new();
    let mut spaces: Vec<Space> = Vec::new();
    for (number, place) in (0..).zip(places.list()) {
        let room = if place.device {
            Room { free_bytes: device::capacity(&place.path)?, keep_bytes: 0 }
        } else {
            Room::of(&place.path)?
        };
        let key = file_system_of(&place.path, place.device)?;
        let at = keys.iter().position(|other| *other == key).unwrap_or_else(|| {
            keys.push(key);
            spaces.push(Space { paths: Vec::new(), needed_bytes: 0, room });
            spaces.len() - 1
        });
        let space = &mut spaces[at];
        space.paths.push(place.path.clone());
        let all = path_bytes(control, number);
        space.needed_bytes += match start {
            Start::Fresh | Start::Over(_) => all,
            Start::Add(old) => all - path_bytes(&kept_of(&old.control), number),
            Start::Nothing(_) => 0,
        };
    }
    // What an earlier attempt left makes room where it is.
    if let Start::Over(old) | Start::Add(old) = start {
        for (number, place) in (0..).zip(old.places.list()) {
            let key = file_system_of(&place.path, place.device)?;
            let at = keys.iter().position(|other| *other == key);
            let allocated = allocated_bytes(old, number);
            let reclaimed = match start {
                Start::Add(_) => allocated.saturating_sub(path_bytes(&kept_of(&old.control), number)),
                _ => allocated,
            };
            if let Some(at) = at.filter(|_| !place.device) {
                let free = &mut spaces[at].room.free_bytes;
                *free = free.saturating_add(reclaimed);
            }
        }
    }
    Ok(spaces)
}

/// Bytes of the files on one path, the control file included.
fn path_bytes(control: &Control, path: u16) -> u64 {
    let files: u64 = (0..control.file_count())
        .filter(|file| control.path_of_file(*file) == path)
        .map(|file| control.file_bytes(file))
        .sum();
    // The control file or the marker.
    files + 2 * SLOT_BYTES as u64
}

/// The refusal of a place without a data set.
pub(super) fn nothing_here(path: &Path) -> EngineError {
    EngineError::Unusable(format!("{} has no data set (no {CONTROL_NAME}); run `assay prepare` first", path.display()))
}

pub(super) use super::claim::in_use_error;

/// The refusal of a data set that is not loaded.
pub(super) fn loading_error(dir: &Path) -> EngineError {
    EngineError::Unusable(format!(
        "loading the data set in {} did not finish; run `assay prepare` again",
        dir.display()
    ))
}

/// Bytes its files on one path occupy now; what cannot be asked counts as 0.
fn allocated_bytes(ours: &Ours, path: u16) -> u64 {
    use std::os::unix::fs::MetadataExt;
    (0..)
        .zip(file_paths(&ours.places, &ours.control))
        .filter(|(file, _)| ours.control.path_of_file(*file) == path)
        .filter_map(|(_, name)| std::fs::metadata(name).ok())
        .map(|meta| meta.blocks() * 512)
        .sum()
}

/// Where a new data set lies: paths, and the numbers of those of undo and redo.
fn new_paths(asked: &Asked) -> Result<(Vec<DataPath>, u16, u16), EngineError> {
    let mut paths: Vec<DataPath> = Vec::new();
    let mut number = |path: &Path| {
        let known = paths.iter().position(|known| same(&known.path, path));
        let number = known.unwrap_or_else(|| {
            paths.push(DataPath { path: absolute(path), device: device::is_device(path) });
            paths.len() - 1
        });
        // At most MAX_STRIPES and two more.
        number as u16
    };
    for path in &asked.data {
        number(path);
    }
    let undo = asked.undo.as_deref().map_or(0, &mut number);
    let redo = asked.redo.as_deref().map_or(0, &mut number);
    fits(&paths)?;
    Ok((paths, undo, redo))
}

/// The settings of a new data set.
fn new_control(settings: &Settings, schemas: u32, asked: &Asked) -> Result<Control, EngineError> {
    let block_bytes = settings.int("BLOCK_SZ");
    if !block_bytes.is_power_of_two() || !(4096..=65_536).contains(&block_bytes) {
        return Err(EngineError::Usage(format!("BLOCK_SZ={block_bytes} is not a power of two from 4096 to 65536")));
    }
    let scale = settings.blocks("SCALE", block_bytes).unwrap_or(0);
    let fewest = FEWEST_ROWS.max(settings.int("WORK_UNIT"));
    if scale < fewest {
        return Err(EngineError::Usage(format!(
            "SCALE={} is {scale} blocks of {block_bytes} bytes; at least {fewest} are needed",
            settings.get("SCALE").text
        )));
    }
    let log_block_bytes = settings.int("LOG_BLOCK_BYTES");
    if !log_block_bytes.is_power_of_two() {
        return Err(EngineError::Usage(format!("LOG_BLOCK_BYTES={log_block_bytes} is not a power of two")));
    }
    let block = u32::try_from(block_bytes).expect("it was checked to be at most 65536");
    let geometry = Geometry {
        block_bytes: block,
        schemas,
        scale,
        scan_blocks: settings.blocks("SCAN_TABLE_SZ", block_bytes).unwrap_or(0),
        seed: settings.whole("SEED").map_or_else(assay_run::dataset::rows::drawn_id, Ok)?,
        undo_blocks: file_bytes(settings, "UNDO_MB", MOST_UNDO_BYTES)? / block_bytes - 1,
        blocks_per_file: Geometry::standard_blocks_per_file(block),
        stripes: asked.data.len() as u16,
    };
    geometry.validate().map_err(EngineError::Usage)?;
    // A run that prepares by itself would find out after the load.
    refuse_too_much(settings, 1, block_bytes)?;
    let (paths, undo_path, redo_path) = new_paths(asked)?;
    let control = Control {
        data_set: assay_run::dataset::rows::drawn_id()?,
        created_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        state: State::Loading,
        geometry,
        loaded_schemas: 0,
        obfuscate: settings.bool("OBFUSCATE_COLUMNS"),
        compress_pct: settings.int("COMPRESS_PCT") as u32,
        redo_files: settings.int("REDO_LOGS") as u32,
        redo_file_bytes: file_bytes(settings, "REDO_LOG_MB", MOST_REDO_BYTES)?,
        log_block_bytes: log_block_bytes as u32,
        checkpoint_lsn: 0,
        log_sequence: 0,
        change_number: 0,
        engine: [0; ENGINE_WORDS],
        paths,
        undo_path,
        redo_path,
    };
    control.validate().map_err(EngineError::Usage)?;
    Ok(control)
}

/// A file size in whole 64 KiB, so that it is whole blocks of any kind.
fn file_bytes(settings: &Settings, name: &str, most: u64) -> Result<u64, EngineError> {
    let bytes = settings.bytes(name) & !0xffff;
    if bytes > most {
        return Err(EngineError::Usage(format!(
            "{name}={} is too large; at most {} are possible",
            settings.get(name).text,
            mebibytes(most)
        )));
    }
    if bytes < FEWEST_FILE_BYTES {
        return Err(EngineError::Usage(format!(
            "{name}={} is too small; at least {} is needed",
            settings.get(name).text,
            mebibytes(FEWEST_FILE_BYTES)
        )));
    }
    Ok(bytes)
}

/// Settings somebody gave that an existing data set cannot follow.
fn refuse_contradictions(control: &Control, settings: &Settings) -> Result<(), EngineError> {
    let g = &control.geometry;
    let block = u64::from(g.block_bytes);
    let asked_blocks = |name| settings.blocks(name, block).unwrap_or(0);
    let asked_bytes = |name| settings.bytes(name) & !0xffff;
    let obfuscate = settings.bool("OBFUSCATE_COLUMNS");
    let redo_files = u64::from(control.redo_files);
    let numbers = [
        ("BLOCK_SZ", settings.int("BLOCK_SZ"), block, "bytes"),
        ("SCALE", asked_blocks("SCALE"), g.scale, "blocks"),
        ("SCAN_TABLE_SZ", asked_blocks("SCAN_TABLE_SZ"), g.scan_blocks, "blocks"),
        ("REDO_LOGS", settings.int("REDO_LOGS"), redo_files, "files"),
        ("REDO_LOG_MB", asked_bytes("REDO_LOG_MB"), control.redo_file_bytes, "bytes"),
        ("UNDO_MB", asked_bytes("UNDO_MB"), g.undo_file_bytes(), "bytes"),
        ("OBFUSCATE_COLUMNS", u64::from(obfuscate), u64::from(control.obfuscate), "(1 is TRUE)"),
    ];
    let contradictions: Vec<String> = numbers
        .into_iter()
        .filter(|(name, asked, has, _)| settings.is_given(name) && asked != has)
        .map(|(name, _, has, unit)| format!("{name}={} but it has {has} {unit}", settings.get(name).text))
        .collect();
    made_otherwise(&contradictions)
}
