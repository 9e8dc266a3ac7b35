//! A probe's scratch file: where it may be, how it is known for ours, and that it goes away.

use assay_block::{BlockError, BlockingWriter};
use assay_measure::locked::locked;
use assay_run::dataset::lines::text;
use assay_run::dataset::room::Room;
use assay_run::engine::{EngineError, Line};
use assay_run::host::random_u32;
use assay_run::left::{self, Kind, Mark};
use assay_run::owned;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// After the id in the name of a scratch file in a directory; `assay-PROBE-` stands before it.
const ENDING: &str = ".scratch";
/// Written at once while the file is made.
const CHUNK_BYTES: usize = 1 << 20;
/// Bytes by which files of this process will still grow, by the device number of their file system.
static PROMISED: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());
/// Bytes of the block that says what the file is.
pub(crate) const MARKER_BYTES: u64 = 4096;

/// Where the scratch file will be.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    path: PathBuf,
    /// Its owner.
    probe: &'static str,
}

impl Place {
    /// A new file in a directory, or the new file named. Looks without touching.
    pub(crate) fn find(place: &Path, probe: &'static str) -> Result<Self, EngineError> {
        let path = match fs::metadata(place) {
            // Drawn, since hosts that share the directory number their processes alike.
            Ok(found) if found.is_dir() => place.join(format!("assay-{probe}-{:08x}{ENDING}", random_u32())),
            Ok(_) => {
                let why = match left::of(place).and_then(|left| left::command(&[left])) {
                    Some(command) => format!("a killed command left it; remove it with: {command}"),
                    None => format!(
                        "it exists, and no killed assay {probe} left it: name a directory or a new file, or wait if \
                         another command uses it"
                    ),
                };
                return Err(refuse(place, &why));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => new_file(place)?,
            Err(error) => return Err(cannot("examine", place, error)),
        };
        Ok(Self { path, probe })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn directory(&self) -> &Path {
        directory_of(&self.path)
    }

    /// Room where the file will be, without what is promised to others there.
    pub(crate) fn room(&self) -> Result<Room, EngineError> {
        self.room_without(&promised())
    }

    fn room_without(&self, promised: &BTreeMap<u64, u64>) -> Result<Room, EngineError> {
        let others = promised.get(&self.device()?).copied().unwrap_or(0);
        let room = Room::of(&self.path)?;
        Ok(Room { free_bytes: room.free_bytes.saturating_sub(others), ..room })
    }

    fn device(&self) -> Result<u64, EngineError> {
        let directory = self.directory();
        let found = fs::metadata(directory).map_err(|error| cannot("examine", directory, error))?;
        Ok(found.dev())
    }

    /// Checks that `needed` bytes fit and the file system stays usable for others.
    pub(crate) fn check_space(&self, needed: u64) -> Result<(), EngineError> {
        self.fits(&self.room()?, needed)
    }

    fn fits(&self, room: &Room, needed: u64) -> Result<(), EngineError> {
        let directory = self.directory().display().to_string();
        room.fits(&directory, needed, "make room or name another directory")
    }
}

/// What killed commands left in a directory, or beside a file, with the command that removes it; for a plan.
pub(crate) fn left_behind(place: &Path) -> Option<Line> {
    let directory = if place.is_dir() { place } else { directory_of(place) };
    let command = left::command(&left::found(directory))?;
    Some(text("left_behind", "left by a killed command, remove with", command))
}

/// Room that is kept for a file until the bytes are written or the file is gone.
#[derive(Debug)]
struct Promise {
    device: u64,
    bytes: u64,
}

fn promised() -> MutexGuard<'static, BTreeMap<u64, u64>> {
    locked(&PROMISED)
}

impl Promise {
    /// Keeps it, if it is there beside what was promised before.
    fn of(place: &Place, bytes: u64) -> Result<Self, EngineError> {
        let device = place.device()?;
        let mut promised = promised();
        place.fits(&place.room_without(&promised)?, bytes)?;
        *promised.entry(device).or_default() += bytes;
        Ok(Self { device, bytes })
    }

    /// So many of them are written: the file system itself counts them now.
    fn kept(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        if let Some(all) = promised().get_mut(&self.device) {
            *all -= bytes;
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.kept(self.bytes);
    }
}

/// What the first block begins with, for whoever looks into it.
fn marker(probe: &str) -> String {
    format!("assay {probe} scratch file 1: holds no data, may be removed\n")
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

fn refuse(path: &Path, why: &str) -> EngineError {
    EngineError::Unusable(format!("refusing to write to {}: {why}", path.display()))
}

fn cannot(what: &str, path: &Path, source: io::Error) -> EngineError {
    EngineError::Io { what: format!("cannot {what} {}", path.display()), source }
}

/// The scratch file, there as long as this value is.
pub(crate) struct Scratch {
    path: PathBuf,
    file: File,
    bytes: u64,
    direct: bool,
    /// The mark beside the file, removed after it.
    mark: Option<Mark>,
    promise: Promise,
}

impl Scratch {
    /// Creates the file with its marker, `bytes` of zeroes written and synced, and keeps room for `growth` more. `None` if
    /// `goes_on`, which is told the bytes written so far, says no in between: then it is gone again.
    pub(crate) fn create(
        place: &Place,
        (bytes, growth): (u64, u64),
        goes_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Option<Self>, EngineError> {
        let promise = Promise::of(place, bytes.saturating_add(growth))?;
        let path = place.path();
        let mark = Mark::put(path, Kind::File).map_err(|error| cannot("mark", path, error))?;
        let file = match File::options().write(true).create_new(true).open(path) {
            Ok(file) => file,
            Err(error) => {
                // The error that led here is the one to tell.
                let _ = mark.take_away();
                return Err(cannot("create", path, error));
            }
        };
        // From here on the file is removed whatever happens.
        let mut scratch = Self { path: path.to_path_buf(), file, bytes, direct: false, mark: Some(mark), promise };
        let marked = scratch.file.write_all(marker(place.probe).as_bytes()).and_then(|()| scratch.file.sync_all());
        marked.map_err(|error| cannot("write", path, error))?;
        Ok(scratch.fill(place, goes_on)?.then_some(scratch))
    }

    /// Writes zeroes over all but the marker's block; false if told to end.
    fn fill(&mut self, place: &Place, goes_on: &mut dyn FnMut(u64) -> bool) -> Result<bool, EngineError> {
        let mut writer = BlockingWriter::open(&self.opened(), CHUNK_BYTES, true).map_err(failed)?;
        self.direct = writer.is_direct();
        let mut at = MARKER_BYTES;
        self.promise.kept(at);
        while at < self.bytes {
            if !goes_on(at) {
                return Ok(false);
            }
            let len = (self.bytes - at).min(CHUNK_BYTES as u64);
            // Other programs write meanwhile. What stays free for them may lose a half to them and to the file system's own
            // needs, not more to this file.
            let room = Room::of(&self.path)?;
            place
                .fits(&Room { keep_bytes: room.keep_bytes / 2, ..room }, len)
                .map_err(|error| EngineError::Unusable(format!("other programs took the space meanwhile: {error}")))?;
            writer.write(at, len as usize, false).map_err(failed)?;
            self.promise.kept(len);
            at += len;
        }
        writer.sync_all().map_err(failed)?;
        // The name lasts too, so that no later sync has to carry it.
        let dir = place.directory();
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(|error| cannot("synchronise", dir, error))?;
        Ok(true)
    }

    /// A path that leads to this very file, whatever somebody else puts under its name.
    pub(crate) fn opened(&self) -> PathBuf {
        owned::through(&self.file)
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
        self.clear()
    }

    /// A mark whose file could not be removed stays with it: the next one names both.
    fn clear(&mut self) -> Result<(), EngineError> {
        let Some(mark) = self.mark.take() else {
            return Ok(());
        };
        let removed = fs::remove_file(&self.path).and_then(|()| mark.take_away());
        removed.map_err(|error| cannot("remove", &self.path, error))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The error that led here is the one to tell.
        let _ = self.clear();
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Below the build directory: the system's temporary directory may be memory, where nothing stays free.
    fn directory() -> tempfile::TempDir {
        let executable = std::env::current_exe().unwrap();
        tempfile::tempdir_in(executable.parent().unwrap()).unwrap()
    }

    #[test]
    fn what_is_promised_to_one_file_is_free_for_no_other() {
        let dir = directory();
        let place = Place::find(dir.path(), "redo").unwrap();
        let free = || place.room().map(|room| room.free_bytes - room.keep_bytes).unwrap();
        // Nobody else fills or empties a third of this disk meanwhile.
        let most = free() / 3 * 2;
        let mut first = Promise::of(&place, most).unwrap();
        place.check_space(most).unwrap_err();
        let error = Promise::of(&place, most).unwrap_err().to_string();
        assert!(error.contains("must stay free"), "{error}");
        // Written in part: the file system counts that part itself.
        first.kept(most / 2);
        drop(Promise::of(&place, most / 2).unwrap());
        Promise::of(&place, most / 2 * 3).unwrap_err();
        drop(first);
        drop(Promise::of(&place, most).unwrap());
    }

    #[test]
    fn what_a_killed_one_left_is_named_and_stays_and_what_is_in_use_is_neither() {
        let dir = directory();
        let used = Place::find(dir.path(), "redo").unwrap();
        let used = Scratch::create(&used, (1 << 20, 0), &mut |_| true).unwrap().unwrap();
        assert_eq!(left_behind(dir.path()), None);
        let why = Place::find(&used.path, "redo").unwrap_err().to_string();
        assert!(why.contains("no killed assay redo left it"), "{why}");
        // Killed: its mark is there and nobody locks it.
        let left = dir.path().join("assay-redo-0000abcd.scratch");
        drop(Mark::put(&left, Kind::File).unwrap());
        fs::write(&left, "zeroes").unwrap();
        let why = Place::find(&left, "redo").unwrap_err().to_string();
        assert!(why.contains("remove it with: rm -- "), "{why}");
        let line = left_behind(&dir.path().join("beside")).unwrap();
        let assay_run::engine::LineValue::Text(command) = line.value else { panic!("{line:?}") };
        let next = Place::find(dir.path(), "redo").unwrap();
        drop(Scratch::create(&next, (1 << 20, 0), &mut |_| true).unwrap());
        assert!(left.exists(), "nobody removes it unasked");
        assert!(std::process::Command::new("sh").args(["-c", &command]).status().unwrap().success(), "{command}");
        assert_eq!(left_behind(dir.path()), None);
        used.remove().unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
