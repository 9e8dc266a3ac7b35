//! What must not be written to, and why.

use super::bytes_text;
use super::look::{self, Found, What};
use super::marker::Whose;
use assay_block::{UsedFiles, check_device_unused, device_signature};
use assay_run::engine::EngineError;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Files that identify the directory of a database, and the database.
const DATABASES: [(&str, &str); 8] = [
    ("PG_VERSION", "a PostgreSQL cluster"),
    ("ibdata1", "a MySQL or MariaDB data directory"),
    ("mysql.ibd", "a MySQL data directory"),
    ("aria_log_control", "a MariaDB data directory"),
    ("WiredTiger", "a MongoDB data directory"),
    ("control01.ctl", "an Oracle database"),
    ("control.assay", "an assay data set"),
    ("member.assay", "an assay data set"),
];

/// The paths named by `--destroy`.
pub(super) struct Destroy {
    named: Vec<(PathBuf, Result<Found, String>)>,
}

impl Destroy {
    pub(super) fn new(paths: &[PathBuf]) -> Self {
        let find = |path: &PathBuf| {
            let found = look::at(path).map_err(|error| error.to_string());
            (path.clone(), found)
        };
        Self { named: paths.iter().map(find).collect() }
    }

    /// Whether this file or device was named, under any of its names.
    pub(super) fn names(&self, file: &Found) -> bool {
        self.named.iter().filter_map(|(_, found)| found.as_ref().ok()).any(|named| same(named, file))
    }

    /// One error for each named path that is not among the files of the jobs: a mistyped name must not go unnoticed.
    /// Paths that a job also names are left out: the job has reported the problem itself.
    pub(super) fn unused(&self, files: &[&Found], named: &dyn Fn(&Path) -> bool) -> Vec<EngineError> {
        let used = |found: &Found| files.iter().any(|file| same(found, file));
        self.named
            .iter()
            .filter(|(path, found)| match found {
                Ok(found) => !used(found),
                Err(_) => !named(path),
            })
            .map(|(path, found)| {
                let why = match found {
                    Err(why) => format!(" ({why})"),
                    Ok(_) => String::new(),
                };
                EngineError::Usage(format!(
                    "--destroy {}: no job uses a file or device with this name{why}; name exactly what a job writes to",
                    path.display()
                ))
            })
            .collect()
    }
}

fn same(a: &Found, b: &Found) -> bool {
    match (a.identity(), b.identity()) {
        (Some(a), Some(b)) => a == b,
        (None, None) => a.resolved == b.resolved,
        _ => false,
    }
}

/// Why a job must not write to this file or, if it may, what would be lost: `Ok(Some("an ext4 file system"))`.
///
/// # Errors
/// The refusal, with the remedy.
pub(super) fn check_write(
    path: &Path,
    found: &Found,
    destroy: bool,
    allow_mounted_write: bool,
    host: &Surroundings,
) -> Result<Option<&'static str>, EngineError> {
    match &found.what {
        What::Absent { .. } => {
            check_directory(path, found, destroy, host)?;
            Ok(None)
        }
        What::File { metadata, whose } => {
            host.used()?.check(path).map_err(super::failed)?;
            if destroy || whose.is_ours() {
                return Ok(None);
            }
            let why = match whose {
                Whose::Changed => "was made by assay io, but another program has written to it since",
                Whose::Unproven => {
                    "was made by assay io, but a run that wrote to it was killed, or it was moved, linked or had its \
                     permissions changed since, and its content does not prove that no other program has written to it"
                }
                _ => "exists and was not made by assay io",
            };
            Err(refuse(
                path,
                found,
                &format!(
                    "it {why} ({}); name another file, or, if you do not need its content, remove it or use --destroy {}",
                    bytes_text(metadata.len()),
                    path.display()
                ),
            ))
        }
        What::Device { bytes, .. } => {
            let unused = check_device_unused(&found.resolved).map_err(|error| {
                let heard = if allow_mounted_write {
                    " (assay accepts allow_mounted_write, but no option lifts this refusal)"
                } else {
                    ""
                };
                EngineError::Unusable(format!("{error}{heard}"))
            });
            unused?;
            let carries = device_signature(&found.resolved).map_err(super::failed)?;
            if destroy {
                return Ok(carries);
            }
            let lost = carries.map_or_else(
                || "it has no known file system or label".to_owned(),
                |what| format!("it contains {what}, which would be lost"),
            );
            Err(refuse(
                path,
                found,
                &format!(
                    "it is a block device ({}), and {lost}; use --destroy {} if you do not need its content",
                    bytes_text(*bytes),
                    path.display()
                ),
            ))
        }
    }
}

/// Refuses to create a file inside the directory of a database.
fn check_directory(path: &Path, found: &Found, destroy: bool, host: &Surroundings) -> Result<(), EngineError> {
    if destroy {
        return Ok(());
    }
    let inside = host.database_of(look::directory_of(&found.resolved));
    match inside {
        None => Ok(()),
        Some((directory, what)) => Err(refuse(
            path,
            found,
            &format!(
                "{} belongs to {what}; name another directory, or use --destroy {} to make the file there anyway",
                directory.display(),
                path.display()
            ),
        )),
    }
}

/// The database that a directory belongs to, and the top directory of that database.
type Database = Option<(PathBuf, &'static str)>;

/// Facts about the host that are collected once for all files.
pub(super) struct Surroundings {
    /// Files in use by the kernel.
    used: OnceCell<UsedFiles>,
    /// Directories already checked for a database.
    databases: RefCell<HashMap<PathBuf, Database>>,
}

impl Surroundings {
    pub(super) fn new() -> Self {
        Self { used: OnceCell::new(), databases: RefCell::default() }
    }

    /// Looked up for the first file that needs it.
    fn used(&self) -> Result<&UsedFiles, EngineError> {
        if let Some(used) = self.used.get() {
            return Ok(used);
        }
        let found = UsedFiles::find().map_err(super::failed)?;
        Ok(self.used.get_or_init(|| found))
    }

    fn database_of(&self, directory: &Path) -> Database {
        if let Some(known) = self.databases.borrow().get(directory) {
            return known.clone();
        }
        let found = directory.ancestors().find_map(|ancestor| {
            let (_, what) = DATABASES.iter().find(|(name, _)| ancestor.join(name).exists())?;
            Some((ancestor.to_path_buf(), *what))
        });
        let mut databases = self.databases.borrow_mut();
        databases.insert(directory.to_path_buf(), found.clone());
        found
    }
}

fn refuse(path: &Path, found: &Found, why: &str) -> EngineError {
    let real = if path == found.resolved { String::new() } else { format!(" ({})", found.resolved.display()) };
    EngineError::Unusable(format!("refusing to write to {}{real}: {why}", path.display()))
}
