//! A probe's scratch file: where it may be, how it is known for ours, and that it goes away.

use assay_block::{BlockError, BlockingWriter};
use assay_run::dataset::room::Room;
use assay_run::engine::EngineError;
use assay_run::lock::Locked;
use assay_run::owned;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// After the id in the name of a scratch file in a directory; `assay-PROBE-` stands before it.
const ENDING: &str = ".scratch";
/// Files of one process differ by this.
static NUMBER: AtomicU32 = AtomicU32::new(0);
/// Written at once while the file is made.
const CHUNK_BYTES: usize = 1 << 20;
/// Nobody takes that long from making the file to writing its marker.
const NEWBORN: Duration = Duration::from_secs(60);
/// Bytes of the block that holds the marker.
pub(crate) const MARKER_BYTES: u64 = 4096;

/// Where the scratch file will be.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    path: PathBuf,
    /// Whose it is.
    probe: &'static str,
    room: Room,
    /// Scratch files of ours that a killed probe left, to be removed before this one begins.
    left: Vec<PathBuf>,
}

impl Place {
    /// A new file in a directory, or the new file named. Looks without touching.
    pub(crate) fn find(place: &Path, probe: &'static str) -> Result<Self, EngineError> {
        let (path, left) = match fs::metadata(place) {
            Ok(found) if found.is_dir() => {
                let id = std::process::id();
                let number = match NUMBER.fetch_add(1, Ordering::Relaxed) {
                    0 => String::new(),
                    number => format!("-{number}"),
                };
                let name = format!("{}{id:08x}{number}{ENDING}", beginning(probe));
                (place.join(name), left_in(place, probe)?)
            }
            Ok(_) => match whose(place, probe) {
                Whose::Left => (place.to_path_buf(), vec![place.to_path_buf()]),
                Whose::InUse => {
                    let why = format!("another assay {probe} is using it; wait until it ends");
                    return Err(refuse(place, &why));
                }
                Whose::Foreign => {
                    let why = format!("it exists and assay {probe} did not make it; name a directory or a new file");
                    return Err(refuse(place, &why));
                }
            },
            Err(error) if error.kind() == ErrorKind::NotFound => (new_file(place)?, Vec::new()),
            Err(error) => return Err(cannot("examine", place, error)),
        };
        let room = Room::of(&path)?;
        Ok(Self { path, probe, room, left })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What a killed probe left, removed before this one begins.
    pub(crate) fn left(&self) -> &[PathBuf] {
        &self.left
    }

    pub(crate) fn free_bytes(&self) -> u64 {
        self.room.free_bytes
    }

    /// Checks that `needed` bytes fit and the file system stays usable for others.
    pub(crate) fn check_space(&self, needed: u64) -> Result<(), EngineError> {
        let directory = directory_of(&self.path).display().to_string();
        let ways_out = "make room or name another directory";
        self.room.fits(&directory, needed, ways_out)
    }
}

/// What the first block begins with: nothing else is ever removed.
fn marker(probe: &str) -> String {
    format!("assay {probe} scratch file 1: holds no data, may be removed\n")
}

/// What the name of a scratch file in a directory begins with.
fn beginning(probe: &str) -> String {
    format!("assay-{probe}-")
}

fn new_file(place: &Path) -> Result<PathBuf, EngineError> {
    if fs::symlink_metadata(place).is_ok() {
        return Err(refuse(place, "it is a symbolic link to nothing; name the file itself"));
    }
    let dir = directory_of(place);
    if dir.is_dir() {
        Ok(place.to_path_buf())
    } else {
        Err(EngineError::Unusable(format!(
            "{}: the directory {} does not exist; make it first",
            place.display(),
            dir.display()
        )))
    }
}

/// The directory a file is in.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Scratch files of ours in a directory that nobody uses any more.
fn left_in(dir: &Path, probe: &str) -> Result<Vec<PathBuf>, EngineError> {
    let entries = fs::read_dir(dir).map_err(|error| cannot("list", dir, error))?;
    let named = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&beginning(probe)) && name.ends_with(ENDING)
    };
    Ok(entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(named)
        .filter(|path| matches!(whose(path, probe), Whose::Left) || is_stillborn(path))
        .collect())
}

enum Whose {
    /// Ours, and whoever made it is gone.
    Left,
    /// Ours, and in use.
    InUse,
    Foreign,
}

fn whose(path: &Path, probe: &str) -> Whose {
    let is_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let Ok(mut file) = owned::open_file(path, rustix::process::geteuid().as_raw()) else {
        return Whose::Foreign;
    };
    let marker = marker(probe);
    let mut begins = vec![0; marker.len()];
    if !is_file || file.read_exact(&mut begins).is_err() || begins != marker.as_bytes() {
        return Whose::Foreign;
    }
    match Locked::exclusive(file) {
        Ok(_) => Whose::Left,
        Err(_) => Whose::InUse,
    }
}

/// Whether a file with one of our names is empty since its maker was killed before the marker was in it.
fn is_stillborn(path: &Path) -> bool {
    let Ok(found) = fs::symlink_metadata(path) else {
        return false;
    };
    let age = found.modified().ok().and_then(|at| at.elapsed().ok());
    found.is_file()
        && found.len() == 0
        && found.uid() == rustix::process::geteuid().as_raw()
        && age.is_some_and(|age| age > NEWBORN)
}

fn refuse(path: &Path, why: &str) -> EngineError {
    EngineError::Unusable(format!("refusing to write to {}: {why}", path.display()))
}

fn cannot(what: &str, path: &Path, source: io::Error) -> EngineError {
    EngineError::Io { what: format!("cannot {what} {}", path.display()), source }
}

/// The scratch file, there as long as this value is.
pub(crate) struct Scratch {
    path: PathBuf,
    file: Locked,
    bytes: u64,
    direct: bool,
    removed: bool,
}

impl Scratch {
    /// Creates the file with its marker, `bytes` of zeroes written and synced. `None` if `goes_on`, which is told the
    /// bytes written so far, says no in between: then it is gone again.
    pub(crate) fn create(
        place: &Place,
        bytes: u64,
        goes_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Option<Self>, EngineError> {
        for left in &place.left {
            fs::remove_file(left).map_err(|error| cannot("remove", left, error))?;
        }
        let path = place.path();
        let file =
            File::options().write(true).create_new(true).open(path).map_err(|error| cannot("create", path, error))?;
        let file = Locked::exclusive(file).map_err(|error| {
            let _ = fs::remove_file(path);
            cannot("lock", path, error)
        })?;
        // From here on the file is removed whatever happens.
        let mut scratch = Self { path: path.to_path_buf(), file, bytes, direct: false, removed: false };
        let marked = (&*scratch.file).write_all(marker(place.probe).as_bytes()).and_then(|()| scratch.file.sync_all());
        marked.map_err(|error| cannot("write", path, error))?;
        Ok(scratch.fill(goes_on)?.then_some(scratch))
    }

    /// Writes zeroes over all but the marker's block; false if told to end.
    fn fill(&mut self, goes_on: &mut dyn FnMut(u64) -> bool) -> Result<bool, EngineError> {
        let mut writer = BlockingWriter::open(&self.opened(), CHUNK_BYTES, true).map_err(failed)?;
        self.direct = writer.is_direct();
        let mut at = MARKER_BYTES;
        while at < self.bytes {
            if !goes_on(at) {
                return Ok(false);
            }
            let len = (self.bytes - at).min(CHUNK_BYTES as u64);
            writer.write(at, len as usize, false).map_err(failed)?;
            at += len;
        }
        writer.sync_all().map_err(failed)?;
        // The name lasts too, so that no later sync has to carry it.
        let dir = directory_of(&self.path);
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(|error| cannot("synchronise", dir, error))?;
        Ok(true)
    }

    /// A path that leads to this very file, whatever somebody else puts under its name.
    pub(crate) fn opened(&self) -> PathBuf {
        owned::through(&*self.file)
    }

    pub(crate) fn is_direct(&self) -> bool {
        self.direct
    }

    /// Cuts off what the last step let grow and empties the device's cache, so that no step pays
    /// for the one before it.
    pub(crate) fn settle(&mut self) -> Result<(), EngineError> {
        let settled = self.file.set_len(self.bytes).and_then(|()| self.file.sync_all());
        settled.map_err(|error| cannot("synchronise", &self.path, error))
    }

    /// Removes the file and says if that failed.
    pub(crate) fn remove(mut self) -> Result<(), EngineError> {
        self.removed = true;
        fs::remove_file(&self.path).map_err(|error| cannot("remove", &self.path, error))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.removed {
            // The error that led here is the one to tell.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The engine's word for what the block layer reports.
pub(crate) fn failed(error: BlockError) -> EngineError {
    match error {
        BlockError::Io { path, what, source } => {
            EngineError::Io { what: format!("cannot {what} {}", path.display()), source }
        }
        other => EngineError::Unusable(other.to_string()),
    }
}
