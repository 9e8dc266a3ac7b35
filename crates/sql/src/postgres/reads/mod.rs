//! Finds where a server's blocks really came from, and makes them come from the device.
//!
//! The server asks the operating system for each block it "reads", and the operating system may have it in memory.
//! Three layers show where a block came from: the server's counters, the kernel's accounting of the server's processes,
//! and the devices under its files. The latter two need the server on this host, which [`host`] decides by evidence.
//! `docs/design/postgres-true-reads.md` has the reasons and measurements.

mod cgroup;
mod evict;
mod files;
mod host;
mod titles;

use super::wire::{Connection, PgError};
use crate::here::{self, SOURCE};
use crate::place::Place;
use crate::procs::ProcReader;
use assay_measure::config::Settings;
use assay_measure::counter_catalog;
use assay_measure::facts;
use assay_measure::locked::locked;
use assay_measure::snapshot::{Fact, Reading, StatSet};
use assay_run::engine::EngineError;
use evict::{Evicted, Ground, Mode};
use files::{Asked, DataDirectory};
use host::{Claims, Whereabouts};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

const PROC: &str = "/proc";

/// Settings that `EVICT` needs in a server started for this command.
///
/// # Errors
/// `EVICT` has an unknown word.
pub(super) fn server_settings(settings: &Settings) -> Result<Vec<(&'static str, String)>, EngineError> {
    let modes = evict::modes(settings)?;
    Ok(if modes.contains(&Mode::Direct) { vec![("debug_io_direct", "data".to_owned())] } else { Vec::new() })
}

/// A directory of the server as reached from here: its data directory, which the server may have `told`, or `other` if
/// given. The error says why it is out of reach.
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
    let data =
        files::data_directory(proc, here.postmaster, told).ok_or("this role cannot see the server's data directory")?;
    Ok(match other {
        Some(path) => data.outside(path),
        None => data.reach().to_path_buf(),
    })
}

/// Watches one server during a run.
#[derive(Debug)]
pub(super) struct TrueReads {
    /// Its processes, or why they cannot be seen.
    processes: Result<ProcReader, String>,
    facts: Vec<Fact>,
    watched: Vec<PathBuf>,
    held: Mutex<Evicted>,
}

impl TrueReads {
    /// Finds the server, then evicts as `EVICT` requests, as the last step before the sessions connect. `sessions` is
    /// their number, `schema` the PostgreSQL schema of the data set.
    ///
    /// # Errors
    /// What `EVICT` requests is not possible; the server does not answer.
    pub(super) fn open(
        place: &Place,
        connection: &mut Connection,
        sessions: usize,
        schema: &str,
        settings: &Settings,
    ) -> Result<Self, EngineError> {
        let modes = evict::modes(settings)?;
        let unusable = |error: PgError| EngineError::Unusable(format!("asking the server for its files: {error}"));
        let proc = Path::new(PROC);
        let whereabouts = host::find(proc, &Claims::ask(connection).map_err(unusable)?);
        let asked = Asked::ask(connection, schema).map_err(unusable)?;
        let (processes, directory) = match &whereabouts {
            Whereabouts::Here(here) => {
                let cluster = setting(connection, "cluster_name").map_err(unusable)?;
                let is_background = move |title: &str| titles::serves_no_client(title, &cluster);
                let reader = ProcReader::new(proc, here.postmaster, Box::new(is_background));
                let told = asked.data_directory.as_deref();
                (Ok(reader), files::data_directory(proc, here.postmaster, told))
            }
            Whereabouts::Unknown(reason) => (Err(reason.clone()), None),
        };
        let direct = setting(connection, "debug_io_direct").map_err(unusable)?;
        let mut facts = facts(&whereabouts, directory.as_ref(), &modes);
        let pids = || processes.as_ref().map(ProcReader::processes).unwrap_or_default();
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
        facts.push(facts::IO_MODE_ACHIEVED.fact(if direct.contains("data") {
            "direct (debug_io_direct)"
        } else {
            "buffered (through the page cache)"
        }));
        facts.extend(here::device_facts(reach.ok_or(missing)));
        Ok(Self {
            watched: directory.map(|directory| watched(&directory, &asked)).unwrap_or_default(),
            processes,
            facts,
            held: Mutex::new(held),
        })
    }

    /// Where the server runs, by what evidence, and what `EVICT` achieved.
    pub(super) fn facts(&self) -> Vec<Fact> {
        self.facts.clone()
    }

    /// The server's directories on this host; none if it runs elsewhere.
    pub(super) fn watched_paths(&self) -> Vec<PathBuf> {
        self.watched.clone()
    }

    /// What the kernel charged to the server's processes; `ours` are our sessions' processes by the server's numbers.
    pub(super) fn sample(&self, ours: &[i32], into: &mut StatSet) {
        let Ok(reader) = &self.processes else {
            here::unseen(into);
            return;
        };
        let sum = reader.sample(ours, &[]);
        sum.put(into, None, None);
        // No view or file shows how long the server's own processes were active.
        into.put(counter_catalog::BACKGROUND_TIME, Reading::Na("unknowable".to_owned()), SOURCE);
        into.gauges.insert("server_processes_count".to_owned(), sum.processes as u64);
        let held = locked(&self.held);
        if let Some(dropper) = &held.dropper {
            into.gauges.insert("evict_rounds_count".to_owned(), dropper.rounds());
        }
        if let Some(charged) = held.confined.as_ref().and_then(cgroup::Confined::charged_bytes) {
            into.gauges.insert("evict_cgroup_charged_bytes".to_owned(), charged);
        }
    }

    /// Reads the CPU time of a session's process for the last time; call before closing the session.
    pub(super) fn last_look(&self, pid: i32) {
        if let Ok(reader) = &self.processes {
            reader.last_look(pid);
        }
    }

    /// Undoes what is still in effect: moves the server out of its cgroup and stops dropping the page cache.
    ///
    /// # Errors
    /// What is left behind, and how to remove it.
    pub(super) fn close(&self) -> Result<(), EngineError> {
        let mut held = locked(&self.held);
        drop(held.dropper.take());
        match held.confined.take() {
            Some(confined) => confined.end().map_err(EngineError::Unusable),
            None => Ok(()),
        }
    }
}

/// A setting of the server; empty if its version has no such setting.
fn setting(connection: &mut Connection, name: &str) -> Result<String, PgError> {
    Ok(first(connection, &format!("select current_setting('{name}', true)"))?.unwrap_or_default())
}

/// First value of the first row.
fn first(connection: &mut Connection, sql: &str) -> Result<Option<String>, PgError> {
    let rows = connection.query(sql)?.rows;
    Ok(rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten())
}

fn facts(whereabouts: &Whereabouts, directory: Option<&DataDirectory>, modes: &[Mode]) -> Vec<Fact> {
    let mut facts = vec![
        here::server_host(match whereabouts {
            Whereabouts::Here(here) => Ok(&here.evidence),
            Whereabouts::Unknown(reason) => Err(reason),
        }),
        Fact::new(
            "server_data_directory",
            match directory {
                Some(directory) => format!("{} ({})", directory.path.display(), directory.source),
                None => "n/a (unknowable)".to_owned(),
            },
        ),
    ];
    let way = if modes.is_empty() {
        "--evict direct (PostgreSQL 16+), --evict continuous or --evict cgroup:SIZE"
    } else {
        "--evict continuous, a smaller --evict cgroup:SIZE"
    };
    facts.push(facts::DEVICE_READS.fact(way));
    if modes.is_empty() {
        facts.push(Fact::new("evict_achieved", "nothing requested (EVICT)"));
    }
    facts
}

/// Directories on the devices that serve the data set.
fn watched(directory: &DataDirectory, asked: &Asked) -> Vec<PathBuf> {
    let mut paths = vec![directory.reach().to_path_buf()];
    paths.extend(directory.log_directory());
    paths.extend(asked.tablespaces.iter().map(|path| directory.outside(path)));
    paths
}

#[cfg(test)]
mod tests;
