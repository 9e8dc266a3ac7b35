//! The paths of a data set: the requested ones, those in the control file, and how each path but the first is marked.
//!
//! The control file names every path; each other path carries a marker with the identity of the data set and the path's
//! number, so that a path is recognised wherever it is found and in whatever order paths are named, and a missing or
//! foreign path is refused by name.

use super::layout::MAX_STRIPES;
use assay_measure::config::Settings;
use assay_run::engine::EngineError;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Name of the marker in a directory that belongs to a data set but does not hold its control file.
pub const MARKER_NAME: &str = "member.assay";

/// Version of the marker this program writes and reads.
const MARKER_VERSION: u32 = 1;

const MARKER_MAGIC: &[u8; 8] = b"ASSAYMBR";

/// Bytes of a marker.
pub(super) const MARKER_BYTES: usize = 4096;

/// The largest table of paths that a slot of the control file has room for, bytes.
pub(super) const PATHS_BYTES: usize = 3820;

const MARKER_CRC_AT: usize = MARKER_BYTES - 4;

/// One path of a data set as the control file remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataPath {
    /// Absolute path of the directory or block device when the data set was made.
    pub path: PathBuf,
    /// Whether it is a block device.
    pub device: bool,
}

impl DataPath {
    /// A directory.
    #[must_use]
    pub fn directory(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), device: false }
    }
}

/// The paths of a control file.
pub(super) struct Table {
    pub(super) stripes: u16,
    pub(super) undo: u16,
    pub(super) redo: u16,
    pub(super) paths: Vec<DataPath>,
}

/// Bytes of the table of paths.
pub(super) fn encode(paths: &[DataPath], stripes: u16, undo: u16, redo: u16) -> Vec<u8> {
    let count = u16::try_from(paths.len()).unwrap_or(u16::MAX);
    let mut bytes = Vec::new();
    for word in [stripes, count, undo, redo] {
        bytes.extend(word.to_le_bytes());
    }
    for entry in paths {
        let text = entry.path.as_os_str().as_bytes();
        let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
        bytes.extend(if entry.device { 2u16 } else { 1 }.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend(text);
    }
    bytes
}

/// Whether the table of so many paths has room in a control file.
///
/// # Errors
/// `Usage` when it has not.
pub(super) fn fits(paths: &[DataPath]) -> Result<(), EngineError> {
    let bytes = encode(paths, 1, 0, 0).len();
    if bytes <= PATHS_BYTES {
        return Ok(());
    }
    Err(EngineError::Usage(format!(
        "the names of the {} paths of the data set have {bytes} bytes together, but at most {PATHS_BYTES} fit: use \
         shorter names",
        paths.len()
    )))
}

/// Reads [`encode`]'s bytes.
pub(super) fn decode(bytes: &[u8]) -> Result<Table, String> {
    let word = |at: usize| {
        let pair = bytes.get(at..at + 2).ok_or("its table of paths is cut short")?;
        Ok::<u16, String>(u16::from_le_bytes([pair[0], pair[1]]))
    };
    let (stripes, count, undo, redo) = (word(0)?, word(2)?, word(4)?, word(6)?);
    if stripes == 0 || count < stripes || undo >= count || redo >= count {
        return Err("its table of paths contradicts itself".into());
    }
    let mut at = 8;
    let mut paths = Vec::new();
    for _ in 0..count {
        let (kind, length) = (word(at)?, usize::from(word(at + 2)?));
        let text = bytes.get(at + 4..at + 4 + length).ok_or("its table of paths is cut short")?;
        if !matches!(kind, 1 | 2) {
            return Err(format!("path {} is of kind {kind}, which is unknown", paths.len() + 1));
        }
        paths.push(DataPath { path: PathBuf::from(OsStr::from_bytes(text)), device: kind == 2 });
        at += 4 + length;
    }
    Ok(Table { stripes, undo, redo, paths })
}

/// What marks a path as part of a data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Marker {
    /// Identity of the data set.
    pub(super) data_set: u64,
    /// Which of its paths this is, from 0.
    pub(super) path: u16,
    /// Where the control file was when it was made: for messages.
    pub(super) home: PathBuf,
}

impl Marker {
    /// Its bytes; the name of the control file's place is cut where it is too long.
    pub(super) fn encode(&self) -> [u8; MARKER_BYTES] {
        let mut bytes = [0; MARKER_BYTES];
        let home = self.home.as_os_str().as_bytes();
        let home = &home[..home.len().min(MARKER_CRC_AT - 32)];
        bytes[..8].copy_from_slice(MARKER_MAGIC);
        bytes[8..12].copy_from_slice(&MARKER_VERSION.to_le_bytes());
        bytes[12..14].copy_from_slice(&self.path.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.data_set.to_le_bytes());
        // It was cut to less than 4 KiB.
        bytes[24..28].copy_from_slice(&(home.len() as u32).to_le_bytes());
        bytes[32..32 + home.len()].copy_from_slice(home);
        let crc = crc32c::crc32c(&bytes[..MARKER_CRC_AT]);
        bytes[MARKER_CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads [`Marker::encode`]'s bytes; `None` where they are no marker at all.
    pub(super) fn decode(bytes: &[u8]) -> Option<Result<Self, String>> {
        if bytes.get(..8)? != MARKER_MAGIC || bytes.len() < MARKER_BYTES {
            return None;
        }
        let number = |at: usize, len: usize| {
            let mut word = [0; 8];
            word[..len].copy_from_slice(&bytes[at..at + len]);
            u64::from_le_bytes(word)
        };
        let version = number(8, 4);
        if version != u64::from(MARKER_VERSION) {
            return Some(Err(format!("its marker has version {version}; this program reads version {MARKER_VERSION}")));
        }
        let crc = crc32c::crc32c(&bytes[..MARKER_CRC_AT]);
        if number(MARKER_CRC_AT, 4) != u64::from(crc) {
            return Some(Err("the checksum of its marker is wrong".into()));
        }
        let length = (number(24, 4) as usize).min(MARKER_CRC_AT - 32);
        Some(Ok(Self {
            data_set: number(16, 8),
            path: number(12, 2) as u16,
            home: PathBuf::from(OsStr::from_bytes(&bytes[32..32 + length])),
        }))
    }
}

/// The paths somebody named for a data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// Those of the data, in the order given; at least one.
    pub(super) data: Vec<PathBuf>,
    /// UNDO_DIR.
    pub(super) undo: Option<PathBuf>,
    /// REDO_DIR.
    pub(super) redo: Option<PathBuf>,
}

impl Asked {
    /// Reads `native:PATH[,PATH2...]`, REDO_DIR and UNDO_DIR.
    ///
    /// # Errors
    /// `Usage` for no path, an empty one, one named twice, or too many.
    pub(super) fn new(location: &str, settings: &Settings) -> Result<Self, EngineError> {
        let given = |name: &str| {
            let text = settings.text(name);
            (!text.is_empty()).then(|| PathBuf::from(text))
        };
        let text = location.strip_prefix("native:").unwrap_or(location);
        let data: Vec<PathBuf> = text.split(',').map(PathBuf::from).collect();
        if data.iter().any(|path| path.as_os_str().is_empty()) {
            return Err(EngineError::Usage(match data.len() {
                1 => "the native target needs a directory: native:DIR".into(),
                _ => format!("`{text}` names an empty path between commas: native:DIR1,DIR2"),
            }));
        }
        if data.len() > usize::from(MAX_STRIPES) {
            return Err(EngineError::Usage(format!(
                "{} paths are given; data can be striped over at most {MAX_STRIPES}",
                data.len()
            )));
        }
        for (n, path) in data.iter().enumerate() {
            if data[..n].iter().any(|other| same(other, path)) {
                return Err(EngineError::Usage(format!(
                    "{} is named twice in `{text}`: name each path once",
                    path.display()
                )));
            }
        }
        Ok(Self { data, undo: given("UNDO_DIR"), redo: given("REDO_DIR") })
    }

    /// The first path named, which holds the control file of a new data set.
    pub(super) fn first(&self) -> &Path {
        &self.data[0]
    }

    /// Every path named, each once: data, then undo, then redo.
    pub(super) fn all(&self) -> Vec<&Path> {
        let mut all: Vec<&Path> = Vec::new();
        let more = self.undo.iter().chain(&self.redo);
        for path in self.data.iter().chain(more) {
            if !all.iter().any(|other| same(other, path)) {
                all.push(path);
            }
        }
        all
    }
}

/// Whether two names mean one place: links and `..` are followed as far as the place exists, and one that is mounted
/// in two places is known by its number.
pub(super) fn same(one: &Path, other: &Path) -> bool {
    if one == other || absolute(one) == absolute(other) {
        return true;
    }
    matches!((number_of(one), number_of(other)), (Some(one), Some(other)) if one == other)
}

/// What the kernel knows a place by: of a block device its own number, else file system and inode.
fn number_of(path: &Path) -> Option<(bool, u64, u64)> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let meta = std::fs::metadata(path).ok()?;
    Some(if meta.file_type().is_block_device() { (true, meta.rdev(), 0) } else { (false, meta.dev(), meta.ino()) })
}

/// The name of a place that means the same from anywhere: links are followed as far as it exists.
pub(super) fn absolute(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    for ancestor in whole.ancestors() {
        if let Ok(real) = std::fs::canonicalize(ancestor) {
            let rest = whole.strip_prefix(ancestor).unwrap_or(Path::new(""));
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    whole
}

/// Where the paths of a data set are now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    list: Vec<DataPath>,
}

impl Places {
    /// Places by the number of their path; at least one.
    pub(super) fn new(list: Vec<DataPath>) -> Self {
        debug_assert!(!list.is_empty(), "a data set lies somewhere");
        Self { list }
    }

    /// A data set in one directory.
    #[must_use]
    pub fn directory(path: &Path) -> Self {
        Self::new(vec![DataPath::directory(path)])
    }

    /// The place of the control file.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.list[0].path
    }

    /// All of them.
    #[must_use]
    pub fn list(&self) -> &[DataPath] {
        &self.list
    }

    /// For messages: all paths.
    pub(super) fn display(&self) -> String {
        let names: Vec<String> = self.list.iter().map(|place| place.path.display().to_string()).collect();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn asked(location: &str) -> Result<Asked, EngineError> {
        Asked::new(location, &crate::tests::settings(&[]))
    }

    #[test]
    fn locations_name_one_path_or_several() {
        assert_eq!(asked("native:/a/b").unwrap().data, [Path::new("/a/b")]);
        assert_eq!(asked("./x").unwrap().first(), Path::new("./x"));
        let two = asked("native:/a,/b").unwrap();
        assert_eq!(two.data, [Path::new("/a"), Path::new("/b")]);
        assert!(matches!(asked("native:"), Err(EngineError::Usage(_))));
        assert!(matches!(asked("native:/a,"), Err(EngineError::Usage(_))));
        let twice = asked("native:/tmp,/tmp/../tmp").unwrap_err().to_string();
        assert!(twice.contains("named twice"), "{twice}");
    }

    #[test]
    fn redo_and_undo_may_share_a_path_with_data() {
        let settings = crate::tests::settings(&[("REDO_DIR", "/r"), ("UNDO_DIR", "/a")]);
        let asked = Asked::new("native:/a,/b", &settings).unwrap();
        let all = [Path::new("/a"), Path::new("/b"), Path::new("/r")];
        assert_eq!(asked.all(), all);
    }

    #[test]
    fn too_long_names_are_refused() {
        let long = DataPath::directory("/x".repeat(2000));
        assert!(fits(std::slice::from_ref(&long)).is_err());
        assert!(fits(&[DataPath::directory("/x")]).is_ok());
    }

    proptest! {
        #[test]
        fn tables_and_markers_are_read_back(
            names in proptest::collection::vec("[a-z/]{1,30}", 1..20),
            devices: u32, data_set: u64, pick: u16, flip in 0usize..MARKER_BYTES,
        ) {
            let count = names.len() as u16;
            let paths: Vec<DataPath> = names.iter().enumerate().map(|(n, name)| DataPath {
                path: name.into(), device: devices >> n & 1 == 1,
            }).collect();
            let (stripes, undo, redo) = (pick % count + 1, pick % count, (pick / 7) % count);
            let mut bytes = encode(&paths, stripes, undo, redo);
            bytes.resize(PATHS_BYTES, 0);
            let table = decode(&bytes).unwrap();
            prop_assert_eq!(&table.paths, &paths);
            prop_assert_eq!((table.stripes, table.undo, table.redo), (stripes, undo, redo));
            let marker = Marker { data_set, path: pick, home: paths[0].path.clone() };
            let mut bytes = marker.encode();
            prop_assert_eq!(Marker::decode(&bytes), Some(Ok(marker)));
            bytes[flip] ^= 1;
            prop_assert!(!matches!(Marker::decode(&bytes), Some(Ok(_))));
            prop_assert!(decode(&bytes[..3]).is_err());
        }
    }
}
