//! What a connection takes from outside its URL.

use assay_run::bounded;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file's text and its permissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileText {
    /// Bytes that are not UTF-8 are replaced.
    pub text: String,
    /// Permission bits.
    pub mode: u32,
    /// A regular file, not a directory or device.
    pub regular: bool,
}

/// Outside input: variables, files, the operating system's user.
pub trait Surroundings {
    /// An environment variable that is set and not empty.
    fn variable(&self, name: &str) -> Option<String>;

    /// Reads a file; `None` if it does not exist.
    ///
    /// # Errors
    /// It exists but cannot be read.
    fn read(&self, path: &Path) -> Result<Option<FileText>, String>;

    /// Whether a path exists.
    fn exists(&self, path: &Path) -> bool;

    /// Home directory of the user.
    fn home(&self) -> Option<PathBuf>;

    /// Name of the user.
    fn user(&self) -> Option<String>;
}

/// This process on this host.
#[derive(Clone, Copy, Debug)]
pub struct ThisHost;

impl Surroundings for ThisHost {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|value| !value.is_empty())
    }

    fn read(&self, path: &Path) -> Result<Option<FileText>, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        let facts = match std::fs::metadata(path) {
            Ok(facts) => facts,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(failed(error)),
        };
        let regular = facts.is_file();
        let bytes = if regular { bounded::read(path, bounded::OPTIONS).map_err(failed)? } else { Vec::new() };
        Ok(Some(FileText { text: String::from_utf8_lossy(&bytes).into_owned(), mode: facts.mode() & 0o7777, regular }))
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn home(&self) -> Option<PathBuf> {
        let home = self.variable("HOME").map(PathBuf::from);
        home.or_else(|| account(5).map(PathBuf::from))
    }

    fn user(&self) -> Option<String> {
        // Users from a directory service are in no file; the login's variables are the next best source.
        account(0).or_else(|| self.variable("USER")).or_else(|| self.variable("LOGNAME"))
    }
}

/// A field of the effective user's line in `/etc/passwd`.
fn account(field: usize) -> Option<String> {
    let uid = rustix::process::geteuid().as_raw();
    user_field(uid, field)
}

/// A field of a user's line in `/etc/passwd`: 0 the name, 5 the home.
pub(crate) fn user_field(uid: u32, field: usize) -> Option<String> {
    let text = std::fs::read_to_string("/etc/passwd").ok()?;
    text.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let ours = fields.get(2)?.parse() == Ok(uid);
        ours.then(|| fields.get(field).map(|text| (*text).to_owned()))?
    })
}
