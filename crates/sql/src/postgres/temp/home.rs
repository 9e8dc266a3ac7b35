//! Where a throw-away server lives: a private directory on a file system that was chosen.

use super::den::DATA;
use super::owner::{self, Owner};
use assay_block::{DeviceFacts, device_facts};
use assay_measure::config::Settings;
use assay_run::dataset::room::Room;
use assay_run::engine::EngineError;
use assay_run::host::random_u32;
use std::path::PathBuf;

/// Begins the name of the directory of a throw-away server.
pub(super) const PREFIX: &str = "assay-postgres-";
/// Longest path of a socket (`sun_path` of unix(7), with its last zero).
const SOCKET_PATH_BYTES: usize = 107;
/// What a new cluster and its first log segments take, about.
const CLUSTER_BYTES: u64 = 96 << 20;
/// Stock `max_wal_size`: that much log may be there between two checkpoints.
const LOG_BYTES: u64 = 1 << 30;
const BLOCK_BYTES: u64 = 8192;

/// A place for a server.
#[derive(Clone, Debug)]
pub(super) struct Home {
    /// An existing directory: `PG_DIR`, else `TMPDIR`, else `/var/tmp`.
    pub(super) base: PathBuf,
    /// The file system it is on.
    pub(super) facts: DeviceFacts,
}

impl Home {
    /// The base directory that was chosen, checked: it is there and the server's user can get to it.
    pub(super) fn choose(named: &str, owner: Option<&Owner>) -> Result<Self, EngineError> {
        let (base, what) = match (named, std::env::var_os("TMPDIR")) {
            ("", Some(place)) if !place.is_empty() => (PathBuf::from(place), "TMPDIR"),
            // For what is large and temporary: /tmp may be memory.
            ("", _) => (PathBuf::from("/var/tmp"), "the directory"),
            (named, _) => (PathBuf::from(named), "PG_DIR"),
        };
        let base = std::path::absolute(&base).unwrap_or(base);
        if !base.is_dir() {
            return Err(EngineError::Usage(format!(
                "temp:postgres: {what} {} is not a directory; use PG_DIR to name a directory for the server",
                base.display()
            )));
        }
        owner::reaches(owner, &base, what)?;
        let base = owner::trusted(owner, base, what)?;
        let facts = device_facts(&base);
        Ok(Self { base, facts })
    }

    /// A new name in it.
    pub(super) fn directory(&self) -> Result<PathBuf, EngineError> {
        let directory = self.base.join(format!("{PREFIX}{:08x}", random_u32()));
        let socket = directory
            .join(DATA)
            .join(format!(".s.PGSQL.{}", super::settings::PORT));
        let length = socket.as_os_str().len();
        if length > SOCKET_PATH_BYTES {
            return Err(EngineError::Usage(format!(
                "temp:postgres: the socket's path {} has {length} bytes, but the system allows {SOCKET_PATH_BYTES}; \
                 use PG_DIR to name a shorter path",
                socket.display()
            )));
        }
        Ok(directory)
    }

    /// The file system in words.
    pub(super) fn file_system(&self) -> String {
        let kind = known(&self.facts.fs_type);
        let device = known(&self.facts.kernel_name);
        match self.facts.is_tmpfs {
            true => format!(
                "{kind}: memory, so no figure describes a disk; use PG_DIR to name another place"
            ),
            false => format!("{kind} on {device}"),
        }
    }

    /// Checks that there is room for `needed_bytes`.
    pub(super) fn room(&self, needed_bytes: u64) -> Result<(), EngineError> {
        let what = format!("temp:postgres in {}", self.base.display());
        let ways_out = "use fewer schemas, a smaller SCALE, or another file system with PG_DIR";
        Room::of(&self.base)?.fits(&what, needed_bytes, ways_out)
    }
}

fn known<T: ToString, E: std::fmt::Display>(fact: &Result<T, E>) -> String {
    match fact {
        Ok(value) => value.to_string(),
        Err(why) => format!("n/a ({why})"),
    }
}

/// What a server with this data set needs, about: one row fills a block, an index entry takes 20 bytes and a half
/// more as pages are filled, and the log of the load comes on top.
pub(super) fn needed_bytes(settings: &Settings, schemas: u64) -> u64 {
    let rows = settings.blocks("SCALE", BLOCK_BYTES).unwrap_or(0);
    let scan = settings.blocks("SCAN_TABLE_SZ", BLOCK_BYTES).unwrap_or(0);
    let each = rows
        .saturating_mul(BLOCK_BYTES + 30)
        .saturating_add(scan.saturating_mul(BLOCK_BYTES));
    let data = each.saturating_mul(schemas);
    data.saturating_add(data.min(LOG_BYTES))
        .saturating_add(CLUSTER_BYTES)
}
