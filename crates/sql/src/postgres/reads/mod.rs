//! Where a server's blocks really came from, and what makes them come from the device.
//!
//! A block that the server "read" was asked of the operating system, which may have had it in memory. Three layers
//! tell: the server's own count, the kernel's account of the server's processes, and the devices under its files.
//! The latter two need the server on this host ([`host`] decides that by evidence). `docs/design/postgres-true-reads.md`
//! has the reasons and what was measured.

mod cgroup;
mod evict;
mod files;
mod host;
mod titles;

use super::wire::{Connection, PgError};
use crate::place::Place;
use crate::procs::{self, Cpu, ProcReader};
use assay_measure::config::Settings;
use assay_measure::facts;
use assay_measure::snapshot::{Fact, Reading, StatSet};
use assay_measure::stats::{self, Stat};
use assay_run::engine::EngineError;
use evict::{Evicted, Ground, Mode};
use files::{Asked, DataDirectory};
use host::{Claims, Whereabouts};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

const PROC: &str = "/proc";
/// Key of the counters read here.
const SOURCE: &str = "proc";

/// Settings that `EVICT` wants in a server that is started for this command.
///
/// # Errors
/// `EVICT` is not one of its words.
pub(super) fn server_settings(
    settings: &Settings,
) -> Result<Vec<(&'static str, String)>, EngineError> {
    let modes = evict::modes(settings)?;
    Ok(match modes.contains(&Mode::Direct) {
        true => vec![("debug_io_direct", "data".to_owned())],
        false => Vec::new(),
    })
}

/// A directory of the server as it is reached from here: its data directory, which the server may have `told`, or
/// `other` if there is one. The error says why it is out of reach.
pub(super) fn directory(
    connection: &mut Connection,
    told: Option<&Path>,
    other: Option<&Path>,
) -> Result<PathBuf, String> {
    let proc = Path::new(PROC);
    let claims = Claims::ask(connection).map_err(|error| error.to_string())?;
    let here = match host::find(proc, &claims) {
        Whereabouts::Here(here) => here,
        Whereabouts::Unknown(why) => return Err(why),
    };
    let data = files::data_directory(proc, here.postmaster, told)
        .ok_or("this role cannot see the server's data directory")?;
    Ok(match other {
        Some(path) => data.outside(path),
        None => data.reach().to_path_buf(),
    })
}

/// Watches one server for the length of a run.
#[derive(Debug)]
pub(super) struct TrueReads {
    /// Its processes, or why they cannot be seen.
    processes: Result<ProcReader, String>,
    facts: Vec<Fact>,
    watched: Vec<PathBuf>,
    held: Mutex<Evicted>,
}

impl TrueReads {
    /// Finds the server, then evicts as `EVICT` asks: the last thing before the sessions connect. `sessions` is how
    /// many will, `schema` the PostgreSQL schema of the data set.
    ///
    /// # Errors
    /// What `EVICT` asks for cannot be had; the server does not answer.
    pub(super) fn open(
        place: &Place,
        connection: &mut Connection,
        sessions: usize,
        schema: &str,
        settings: &Settings,
    ) -> Result<Self, EngineError> {
        let modes = evict::modes(settings)?;
        let unusable = |error: PgError| {
            EngineError::Unusable(format!("asking the server for its files: {error}"))
        };
        let proc = Path::new(PROC);
        let whereabouts = host::find(proc, &Claims::ask(connection).map_err(unusable)?);
        let asked = Asked::ask(connection, schema).map_err(unusable)?;
        let (processes, directory) = match &whereabouts {
            Whereabouts::Here(here) => {
                let cluster = setting(connection, "cluster_name").map_err(unusable)?;
                let is_background = move |title: &str| titles::serves_no_client(title, &cluster);
                let reader = ProcReader::new(proc, here.postmaster, Box::new(is_background));
                let told = asked.data_directory.as_deref();
                (
                    Ok(reader),
                    files::data_directory(proc, here.postmaster, told),
                )
            }
            Whereabouts::Unknown(reason) => (Err(reason.clone()), None),
        };
        let direct = setting(connection, "debug_io_direct").map_err(unusable)?;
        let mut facts = facts(&whereabouts, directory.as_ref(), &modes);
        let pids = || {
            processes
                .as_ref()
                .map(ProcReader::processes)
                .unwrap_or_default()
        };
        let missing = match &whereabouts {
            Whereabouts::Here(_) => {
                "its data directory is unknown: this needs pg_read_all_settings, or the server's user"
            }
            Whereabouts::Unknown(reason) => reason,
        };
        let held = evict::evict(
            &modes,
            Ground {
                connection,
                throw_away: place.is_throw_away(),
                schema,
                sessions,
                directory: directory.as_ref().ok_or_else(|| missing.to_owned()),
                relations: &asked.relations,
                processes: &pids,
            },
        )?;
        facts.extend(held.facts.iter().cloned());
        let reach = directory.as_ref().map(DataDirectory::reach);
        facts.extend(place_facts(reach, missing, direct.contains("data")));
        Ok(Self {
            watched: directory
                .map(|directory| watched(&directory, &asked))
                .unwrap_or_default(),
            processes,
            facts,
            held: Mutex::new(held),
        })
    }

    /// Where the server is, why we think so, what `EVICT` achieved.
    pub(super) fn facts(&self) -> Vec<Fact> {
        self.facts.clone()
    }

    /// The server's directories on this host; none if it is elsewhere.
    pub(super) fn watched_paths(&self) -> Vec<PathBuf> {
        self.watched.clone()
    }

    /// What the kernel charged the server's processes with; `ours` are the processes of our sessions by the
    /// server's numbers.
    pub(super) fn sample(&self, ours: &[i32], into: &mut StatSet) {
        let reader = match &self.processes {
            Ok(reader) => reader,
            Err(_) => {
                for stat in IO.iter().chain(CPU) {
                    into.put(*stat, Reading::Na("unknowable".to_owned()), SOURCE);
                }
                return;
            }
        };
        let sum = reader.sample(ours);
        let io = |value: fn(&procs::Io) -> u64| match &sum.io {
            Ok(io) => Reading::Count(value(io)),
            Err(reason) => Reading::Na(reason.clone()),
        };
        into.put(
            stats::SERVER_DEVICE_READ_BYTES,
            io(|io| io.device_bytes),
            SOURCE,
        );
        into.put(
            stats::SERVER_DIRTIED_BYTES,
            io(|io| io.dirtied_bytes),
            SOURCE,
        );
        into.put(
            stats::SERVER_READ_CALL_BYTES,
            io(|io| io.call_bytes),
            SOURCE,
        );
        into.put(stats::SERVER_READ_CALLS, io(|io| io.calls), SOURCE);
        let cpu = |ns: u64| match sum.has_cpu {
            true => Reading::Count(ns),
            false => Reading::Na("absent: /proc/<pid>/schedstat".to_owned()),
        };
        let Cpu { used_ns, delay_ns } = sum.ours;
        into.put(stats::DB_CPU, cpu(used_ns), SOURCE);
        into.put(stats::SERVER_RUN_DELAY, cpu(delay_ns), SOURCE);
        into.put(stats::BACKGROUND_CPU, cpu(sum.background.used_ns), SOURCE);
        into.put(stats::SERVER_OTHER_CPU, cpu(sum.other.used_ns), SOURCE);
        // No view and no file tells how long a server's own processes were awake.
        into.put(
            stats::BACKGROUND_TIME,
            Reading::Na("unknowable".to_owned()),
            SOURCE,
        );
        into.gauges
            .insert("server_processes_count".to_owned(), sum.processes as u64);
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(dropper) = &held.dropper {
            into.gauges
                .insert("evict_rounds_count".to_owned(), dropper.rounds());
        }
        if let Some(charged) = held
            .confined
            .as_ref()
            .and_then(cgroup::Confined::charged_bytes)
        {
            into.gauges
                .insert("evict_cgroup_charged_bytes".to_owned(), charged);
        }
    }

    /// Reads the CPU of a session's process a last time: call it before the session is closed.
    pub(super) fn last_look(&self, pid: i32) {
        if let Ok(reader) = &self.processes {
            reader.last_look(pid);
        }
    }

    /// Undoes what held on: the server leaves its cgroup, the page cache is left alone again.
    ///
    /// # Errors
    /// What is left behind, and how to remove it.
    pub(super) fn close(&self) -> Result<(), EngineError> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        drop(held.dropper.take());
        match held.confined.take() {
            Some(confined) => confined.end().map_err(EngineError::Unusable),
            None => Ok(()),
        }
    }
}

const IO: &[Stat] = &[
    stats::SERVER_DEVICE_READ_BYTES,
    stats::SERVER_DIRTIED_BYTES,
    stats::SERVER_READ_CALL_BYTES,
    stats::SERVER_READ_CALLS,
];

const CPU: &[Stat] = &[
    stats::DB_CPU,
    stats::SERVER_RUN_DELAY,
    stats::BACKGROUND_CPU,
    stats::SERVER_OTHER_CPU,
];

/// A setting of the server; empty where the version has none of that name.
fn setting(connection: &mut Connection, name: &str) -> Result<String, PgError> {
    let rows = connection
        .query(&format!("select current_setting('{name}', true)"))?
        .rows;
    let first = rows
        .into_iter()
        .next()
        .and_then(|row| row.into_iter().next());
    Ok(first.flatten().unwrap_or_default())
}

fn facts(
    whereabouts: &Whereabouts,
    directory: Option<&DataDirectory>,
    modes: &[Mode],
) -> Vec<Fact> {
    let mut facts = vec![
        Fact::new(
            facts::SERVER_HOST.name,
            match whereabouts {
                Whereabouts::Here(here) => format!("same host: {}", here.evidence),
                Whereabouts::Unknown(reason) => format!("n/a (unknowable: {reason})"),
            },
        ),
        Fact::new(
            "server_data_directory",
            match directory {
                Some(directory) => format!("{} ({})", directory.path.display(), directory.source),
                None => "n/a (unknowable)".to_owned(),
            },
        ),
    ];
    let way = match modes.is_empty() {
        true => "--evict direct (PostgreSQL 16+), --evict continuous or --evict cgroup:SIZE",
        false => "--evict continuous, a smaller --evict cgroup:SIZE",
    };
    facts.push(facts::DEVICE_READS.fact(way));
    if modes.is_empty() {
        facts.push(Fact::new("evict_achieved", "nothing requested (EVICT)"));
    }
    facts
}

/// The device and file system under the data directory, and the way of I/O they are used in.
fn place_facts(directory: Option<&Path>, missing: &str, direct: bool) -> Vec<Fact> {
    let mode = match direct {
        true => "direct (debug_io_direct)",
        false => "buffered (through the page cache)",
    };
    let mut facts = vec![facts::IO_MODE_ACHIEVED.fact(mode)];
    match directory {
        Some(path) => facts.extend(
            assay_block::device_facts(path)
                .lines()
                .into_iter()
                .map(|(name, value)| Fact::new(&format!("device_{name}"), value)),
        ),
        None => {
            for name in ["device_disk", "device_fs_type"] {
                facts.push(Fact::new(name, format!("n/a ({missing})")));
            }
        }
    }
    facts
}

/// Directories whose devices serve the data set.
fn watched(directory: &DataDirectory, asked: &Asked) -> Vec<PathBuf> {
    let mut paths = vec![directory.reach().to_path_buf()];
    paths.extend(directory.log_directory());
    paths.extend(asked.tablespaces.iter().map(|path| directory.outside(path)));
    paths
}

#[cfg(test)]
mod tests;
