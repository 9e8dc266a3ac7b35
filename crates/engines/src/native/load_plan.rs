//! What `prepare` would do: decided and refused here, before the first byte is written.

use super::control::{CONTROL_VERSION, Control, ControlFile, ENGINE_WORDS, State};
use super::layout::Geometry;
use super::survey::{Found, Room, foreign_error, mebibytes, survey};
use assay_block::{DeviceFacts, device_facts};
use assay_measure::config::{Settings, Value};
use assay_run::engine::{EngineError, Line, LineValue};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Fewest rows of a schema: below, neither scatter nor a work unit means anything.
const FEWEST_ROWS: u64 = 1000;

/// Most schemas: as many as SLOB was ever run with.
const MOST_SCHEMAS: u32 = 4096;

/// Smallest redo log file and smallest undo file.
const FEWEST_FILE_BYTES: u64 = 4 << 20;

/// Write rates the time is estimated with, bytes per second, for a rotating disk and for
/// anything else: cautious figures, named where they are used.
const DISK_BYTES_PER_S: u64 = 150_000_000;
const OTHER_BYTES_PER_S: u64 = 500_000_000;

/// How the load begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Nothing is there.
    Fresh,
    /// A prepare did not finish its first schemas: its files are removed first.
    Over(Box<Control>),
    /// Schemas `1..=loaded_schemas` of this control are kept.
    Add(Box<Control>),
    /// All schemas asked for are there.
    Nothing(Box<Control>),
}

/// Everything `prepare` decided.
#[derive(Clone, Debug)]
pub(super) struct LoadPlan {
    /// The data set's directory.
    pub(super) dir: PathBuf,
    /// How it begins.
    pub(super) start: Start,
    /// The control file's content while loading; `geometry.schemas` is the goal.
    pub(super) control: Control,
    /// First schema to load, from 1.
    pub(super) first_schema: u32,
    /// Bytes to be written.
    pub(super) write_bytes: u64,
    /// Room before.
    pub(super) room: Room,
}

impl LoadPlan {
    /// Decides.
    ///
    /// # Errors
    /// `Usage` for settings that contradict themselves or the data set; `Unusable` for a foreign
    /// directory, a data set in use, too little space.
    pub(super) fn new(dir: &Path, settings: &Settings, schemas: u32) -> Result<Self, EngineError> {
        if !(1..=MOST_SCHEMAS).contains(&schemas) {
            return Err(EngineError::Usage(format!(
                "{schemas} schemas cannot be loaded; 1 to {MOST_SCHEMAS} can"
            )));
        }
        let start = match survey(dir)? {
            Found::Absent | Found::Empty => Start::Fresh,
            Found::Foreign(names) => return Err(foreign_error(dir, &names)),
            Found::Ours(control) => start_from(dir, control, schemas)?,
        };
        let control = match &start {
            Start::Fresh | Start::Over(_) => new_control(settings, schemas)?,
            Start::Add(old) => {
                refuse_contradictions(old, settings)?;
                let mut control = Control::clone(old);
                control.geometry.schemas = schemas.max(old.loaded_schemas);
                control.state = State::Loading;
                control.geometry.validate().map_err(EngineError::Usage)?;
                control
            }
            Start::Nothing(old) => {
                refuse_contradictions(old, settings)?;
                Control::clone(old)
            }
        };
        let room = Room::of(dir)?;
        let total = control.total_bytes();
        let (first_schema, write_bytes, reclaimed) = match &start {
            Start::Fresh => (1, total, 0),
            Start::Over(old) => (1, total, allocated_bytes(dir, old)),
            Start::Add(old) => {
                let mut kept = Control::clone(old);
                kept.geometry.schemas = kept.loaded_schemas;
                (
                    old.loaded_schemas + 1,
                    total - kept.total_bytes(),
                    allocated_bytes(dir, old).saturating_sub(kept.total_bytes()),
                )
            }
            Start::Nothing(old) => (old.loaded_schemas + 1, 0, 0),
        };
        if write_bytes > 0 {
            let room = Room {
                free_bytes: room.free_bytes.saturating_add(reclaimed),
                ..room
            };
            room.fits(dir, write_bytes)?;
        }
        Ok(Self {
            dir: dir.to_path_buf(),
            start,
            control,
            first_schema,
            write_bytes,
            room,
        })
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
        let facts = device_facts(&self.dir);
        let rate = match facts.rotational {
            Ok(true) => DISK_BYTES_PER_S,
            _ => OTHER_BYTES_PER_S,
        };
        let seconds = self.write_bytes as f64 / rate as f64;
        vec![
            text("directory", "Directory", self.dir.display().to_string()),
            text("file_system", "File system", file_system(&facts)),
            text("action", "Action", self.action()),
            count(
                "format_version",
                "Format version",
                u64::from(CONTROL_VERSION),
            ),
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
            bytes("free_bytes", "Free now", self.room.free_bytes),
            bytes("keep_bytes", "To stay free", self.room.keep_bytes),
            Line {
                key: "estimated_s",
                label: format!("Estimated time, s, at an assumed {} MB/s", rate / 1_000_000),
                value: LineValue::Decimal((seconds * 10.0).round() / 10.0),
            },
        ]
    }

    fn action(&self) -> String {
        let schemas = self.control.geometry.schemas;
        match &self.start {
            Start::Fresh => format!("create a data set of {schemas} schemas"),
            Start::Over(_) => format!(
                "start over: an earlier prepare did not finish; remove its files and create {schemas} schemas"
            ),
            Start::Add(old) if old.state == State::Loading => format!(
                "resume: an earlier prepare did not finish; keep schemas 1 to {}, load {} to {schemas}",
                old.loaded_schemas, self.first_schema
            ),
            Start::Add(_) => format!("add schemas {} to {schemas}", self.first_schema),
            Start::Nothing(old) => format!("nothing: {} schemas are loaded", old.loaded_schemas),
        }
    }
}

/// Type, place and device of the file system that holds the data set.
fn file_system(facts: &DeviceFacts) -> String {
    let known = |value: Result<String, String>| value.unwrap_or_else(|why| format!("n/a ({why})"));
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

/// How to begin where a data set of ours is.
fn start_from(dir: &Path, control: Box<Control>, schemas: u32) -> Result<Start, EngineError> {
    if ControlFile::in_use(dir)? {
        return Err(in_use_error(dir));
    }
    match control.state {
        State::Loading if control.loaded_schemas == 0 => Ok(Start::Over(control)),
        State::Loading => Ok(Start::Add(control)),
        // One that was not closed is recovered before anything is added.
        State::Clean | State::Open if schemas > control.loaded_schemas => Ok(Start::Add(control)),
        State::Clean | State::Open => Ok(Start::Nothing(control)),
    }
}

/// The refusal of a data set that somebody uses.
pub(super) fn in_use_error(dir: &Path) -> EngineError {
    EngineError::Unusable(format!(
        "the data set in {} is in use by another assay process; wait for it to end",
        dir.display()
    ))
}

/// The refusal of a data set that is not loaded.
pub(super) fn loading_error(dir: &Path) -> EngineError {
    EngineError::Unusable(format!(
        "loading the data set in {} did not finish; run `assay prepare` again",
        dir.display()
    ))
}

/// Bytes its files occupy now; what cannot be asked counts as 0.
fn allocated_bytes(dir: &Path, control: &Control) -> u64 {
    use std::os::unix::fs::MetadataExt;
    control
        .file_names()
        .iter()
        .filter_map(|name| std::fs::metadata(dir.join(name)).ok())
        .map(|meta| meta.blocks() * 512)
        .sum()
}

/// The settings of a new data set.
fn new_control(settings: &Settings, schemas: u32) -> Result<Control, EngineError> {
    let block_bytes = settings.int("BLOCK_SZ");
    if !block_bytes.is_power_of_two() || !(4096..=65_536).contains(&block_bytes) {
        return Err(EngineError::Usage(format!(
            "BLOCK_SZ={block_bytes} is not a power of two from 4096 to 65536"
        )));
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
        return Err(EngineError::Usage(format!(
            "LOG_BLOCK_BYTES={log_block_bytes} is not a power of two"
        )));
    }
    let block = u32::try_from(block_bytes).expect("it was checked to be at most 65536");
    let geometry = Geometry {
        block_bytes: block,
        schemas,
        scale,
        scan_blocks: settings.blocks("SCAN_TABLE_SZ", block_bytes).unwrap_or(0),
        seed: match settings.get("SEED").value {
            Value::Int(seed) => seed,
            _ => random_u64()?,
        },
        undo_blocks: file_bytes(settings, "UNDO_MB")? / block_bytes - 1,
        blocks_per_file: Geometry::standard_blocks_per_file(block),
    };
    geometry.validate().map_err(EngineError::Usage)?;
    Ok(Control {
        data_set: random_u64()?,
        created_unix_s: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs()),
        state: State::Loading,
        geometry,
        loaded_schemas: 0,
        obfuscate: settings.bool("OBFUSCATE_COLUMNS"),
        compress_pct: settings.int("COMPRESS_PCT") as u32,
        redo_files: settings.int("REDO_LOGS") as u32,
        redo_file_bytes: file_bytes(settings, "REDO_LOG_MB")?,
        log_block_bytes: log_block_bytes as u32,
        checkpoint_lsn: 0,
        log_sequence: 0,
        change_number: 0,
        engine: [0; ENGINE_WORDS],
    })
}

/// A file size in whole 64 KiB, so that it is whole blocks of any kind.
fn file_bytes(settings: &Settings, name: &str) -> Result<u64, EngineError> {
    let bytes = settings.bytes(name) & !0xffff;
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
        (
            "SCAN_TABLE_SZ",
            asked_blocks("SCAN_TABLE_SZ"),
            g.scan_blocks,
            "blocks",
        ),
        ("REDO_LOGS", settings.int("REDO_LOGS"), redo_files, "files"),
        (
            "REDO_LOG_MB",
            asked_bytes("REDO_LOG_MB"),
            control.redo_file_bytes,
            "bytes",
        ),
        (
            "UNDO_MB",
            asked_bytes("UNDO_MB"),
            g.undo_file_bytes(),
            "bytes",
        ),
        (
            "OBFUSCATE_COLUMNS",
            u64::from(obfuscate),
            u64::from(control.obfuscate),
            "(1 is TRUE)",
        ),
    ];
    let contradictions: Vec<String> = numbers
        .into_iter()
        .filter(|(name, asked, has, _)| settings.is_given(name) && asked != has)
        .map(|(name, _, has, unit)| {
            format!("{name}={} but it has {has} {unit}", settings.get(name).text)
        })
        .collect();
    if contradictions.is_empty() {
        return Ok(());
    }
    Err(EngineError::Usage(format!(
        "the data set that is there was made with other settings ({}); leave these settings out, or run `assay destroy` first",
        contradictions.join(", ")
    )))
}

fn random_u64() -> Result<u64, EngineError> {
    use std::io::Read;
    let path = Path::new("/dev/urandom");
    let mut bytes = [0; 8];
    std::fs::File::open(path)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|e| super::control::io_error("reading", path, e))?;
    Ok(u64::from_le_bytes(bytes))
}

pub(super) fn text(key: &'static str, label: &str, value: String) -> Line {
    Line {
        key,
        label: label.to_owned(),
        value: LineValue::Text(value),
    }
}

pub(super) fn count(key: &'static str, label: &str, value: u64) -> Line {
    Line {
        key,
        label: label.to_owned(),
        value: LineValue::Count(value),
    }
}

/// A byte count; the label says it for people too.
pub(super) fn bytes(key: &'static str, label: &str, value: u64) -> Line {
    Line {
        key,
        label: format!("{label}, bytes ({})", mebibytes(value)),
        value: LineValue::Count(value),
    }
}
