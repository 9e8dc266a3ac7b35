//! Any text as a PostgreSQL location, a service file and a password file: never a panic, and a host in whatever is taken.
//!
//! The input is the location up to the first `---` line, the service file up to the second, the password file after it.
#![no_main]

use assay_sql::postgres::conninfo::{FileText, Surroundings, options};
use libfuzzer_sys::fuzz_target;
use std::path::{Path, PathBuf};

struct Given<'a> {
    service: &'a str,
    passwords: &'a str,
}

impl Surroundings for Given<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "PGSERVICE" && !self.service.is_empty()).then(|| "s".to_owned())
    }

    fn read(&self, path: &Path) -> Result<Option<FileText>, String> {
        let text = if path.ends_with(".pgpass") { self.passwords } else { self.service };
        Ok(Some(FileText { text: text.to_owned(), mode: 0o600, regular: true }))
    }

    fn exists(&self, _path: &Path) -> bool {
        true
    }

    fn home(&self) -> Option<PathBuf> {
        Some(PathBuf::from("/h/u"))
    }

    fn user(&self) -> Option<String> {
        Some("u".to_owned())
    }
}

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.splitn(3, "\n---\n");
    let location = parts.next().unwrap_or_default();
    let given = Given { service: parts.next().unwrap_or_default(), passwords: parts.next().unwrap_or_default() };
    if let Ok(options) = options(location, &given) {
        assert!(!options.hosts.is_empty());
        let _ = format!("{options:?}");
    }
});
