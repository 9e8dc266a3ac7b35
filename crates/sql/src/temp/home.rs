//! Where a throw-away server lives: a private directory on a file system that the user can choose.

use super::Brand;
use super::den::DATA;
use super::owner::{self, Owner};
use assay_block::{DeviceFacts, device_facts};
use assay_run::dataset::room::Room;
use assay_run::engine::EngineError;
use assay_run::host::random_u32;
use std::path::PathBuf;

/// Longest path of a socket: `sun_path` of unix(7) without its terminating zero.
const SOCKET_PATH_BYTES: usize = 107;
/// A place for a server.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    /// The database product.
    brand: Brand,
    /// An existing directory: the one named by the parameter, else `TMPDIR`, else `/var/tmp`.
    pub(crate) base: PathBuf,
    /// The file system that contains it.
    pub(crate) facts: DeviceFacts,
}

impl Home {
    /// Chooses the base directory, and checks that it exists and the server's user can reach it.
    pub(crate) fn choose(brand: Brand, named: &str, owner: Option<&Owner>) -> Result<Self, EngineError> {
        let (base, what) = match (named, std::env::var_os("TMPDIR")) {
            ("", Some(place)) if !place.is_empty() => (PathBuf::from(place), "TMPDIR"),
            // A directory for large temporary files: /tmp may be in memory.
            ("", _) => (PathBuf::from("/var/tmp"), "the directory"),
            (named, _) => (PathBuf::from(named), brand.directory),
        };
        let base = std::path::absolute(&base).unwrap_or(base);
        if !base.is_dir() {
            return Err(EngineError::Usage(format!(
                "temp:{}: {what} {} is not a directory; use {} to name a directory for the server",
                brand.temp,
                base.display(),
                brand.directory
            )));
        }
        owner::reaches(brand, owner, &base, what)?;
        let base = owner::trusted(owner, base, what)?;
        let facts = device_facts(&base);
        Ok(Self { brand, base, facts })
    }

    /// Prefix of the servers' directory names; a number follows.
    pub(crate) fn prefix(&self) -> String {
        format!("assay-{}-", self.brand.temp)
    }

    /// Path of a new directory, for a server whose socket has this name within its data.
    pub(crate) fn directory(&self, socket: &str) -> Result<PathBuf, EngineError> {
        let directory = self.base.join(format!("{}{:08x}", self.prefix(), random_u32()));
        let socket = directory.join(DATA).join(socket);
        let length = socket.as_os_str().len();
        if length > SOCKET_PATH_BYTES {
            return Err(EngineError::Usage(format!(
                "temp:{}: the socket's path {} has {length} bytes, but the system allows {SOCKET_PATH_BYTES}; use {} \
                 to name a shorter path",
                self.brand.temp,
                socket.display(),
                self.brand.directory
            )));
        }
        Ok(directory)
    }

    /// The file system, as text.
    pub(crate) fn file_system(&self) -> String {
        let kind = known(&self.facts.fs_type);
        let device = known(&self.facts.kernel_name);
        if self.facts.is_tmpfs {
            format!("{kind}: memory, so no figure describes a disk; use {} to name another place", self.brand.directory)
        } else {
            format!("{kind} on {device}")
        }
    }

    /// Checks that there is room for `needed_bytes`.
    pub(crate) fn room(&self, needed_bytes: u64) -> Result<(), EngineError> {
        let what = format!("temp:{} in {}", self.brand.temp, self.base.display());
        let ways_out =
            format!("use fewer schemas, a smaller SCALE, or another file system with {}", self.brand.directory);
        Room::of(&self.base)?.fits(&what, needed_bytes, &ways_out)
    }
}

fn known<T: ToString, E: std::fmt::Display>(fact: &Result<T, E>) -> String {
    match fact {
        Ok(value) => value.to_string(),
        Err(why) => format!("n/a ({why})"),
    }
}
