//! The server as seen by its host: its process and threads, and the device under its files.
//!
//! An address proves nothing: `localhost` may be a container or a tunnel. The server reports which thread serves our
//! session. That thread must belong to a process here with the name of a MariaDB or MySQL server. In addition the
//! process must listen on our socket, or must have started when the server says.

use super::conn::{Connection, told};
use crate::here;
use crate::procs::{self, ProcReader};
use assay_measure::counter_catalog;
use assay_measure::snapshot::{Fact, Reading, StatSet};
use assay_run::engine::EngineError;
use std::fs;
use std::path::{Path, PathBuf};

const PROC: &str = "/proc";
/// Names of a server's program.
const NAMES: [&str; 2] = ["mariadbd", "mysqld"];

/// The server's process, if it runs on this host.
pub(super) struct Host {
    threads: Result<ProcReader, String>,
    /// Why the CPU time of a session cannot be separated from that of others.
    pooled: Option<String>,
    facts: Vec<Fact>,
    watched: Vec<PathBuf>,
}

/// What the server reports about itself.
#[derive(Clone, Debug, Default, PartialEq)]
struct Claims {
    /// The thread of our session, by the server's numbering.
    thread: i32,
    /// Start time of the server, s since 1970.
    started_s: Option<f64>,
    /// The process that listens at the other end of our socket.
    listener: Option<i32>,
}

/// The thread of a session, by the server's numbering; 0 if not reported.
pub(super) fn thread_of(connection: &mut Connection) -> i32 {
    let sessions = connection.product.sessions();
    let sql = format!("select tid from {sessions} where id = connection_id()");
    let tid = connection.number(&sql).unwrap_or(0);
    i32::try_from(tid).unwrap_or(0)
}

impl Host {
    /// Finds the server that `control` is connected to.
    ///
    /// # Errors
    /// The server does not answer.
    pub(super) fn find(control: &mut Connection) -> Result<Self, EngineError> {
        let doing = told("asking the server for its files");
        let sql = format!(
            "select unix_timestamp(now(6)) - variable_value, @@datadir, @@innodb_log_group_home_dir, \
             @@innodb_undo_directory, @@thread_handling from {} where variable_name = 'uptime'",
            control.product.status()
        );
        let rows = control.rows(&sql).map_err(&doing)?;
        let row = rows.into_iter().next().unwrap_or_default();
        let text = |at: usize| row.get(at).cloned().flatten().unwrap_or_default();
        let claims =
            Claims { thread: thread_of(control), started_s: text(0).parse().ok(), listener: control.listener() };
        let found = find(Path::new(PROC), &claims);
        let pooled = match text(4).as_str() {
            "one-thread-per-connection" => None,
            other => Some(format!("unknowable: thread_handling={other}, so a thread serves many sessions")),
        };
        let data = PathBuf::from(text(1));
        let evidence = found.as_ref().map(|(_, evidence)| evidence.as_str());
        let mut facts = vec![here::server_host(evidence.map_err(String::as_str))];
        let told = format!("{} (setting datadir)", data.display());
        facts.push(Fact::new("server_data_directory", told));
        let reached = |pid: &i32, path: &Path| reach(Path::new(PROC), *pid, path);
        let directory = found.as_ref().map(|(pid, _)| reached(pid, &data));
        let device = directory.as_deref().map_err(|why| why.as_str());
        facts.extend(here::device_facts(device));
        let paths = [text(1), text(2), text(3)];
        let watched = found.iter().flat_map(|(pid, _)| {
            let paths = paths.iter().filter(|path| !path.is_empty());
            paths.map(|path| reached(pid, &data.join(path)))
        });
        let watched = watched.collect();
        Ok(Self { threads: found.map(|(pid, _)| ProcReader::threads(Path::new(PROC), pid)), pooled, facts, watched })
    }

    pub(super) fn facts(&self) -> Vec<Fact> {
        self.facts.clone()
    }

    /// Kernel names of the disks under its files; none if it runs elsewhere.
    pub(super) fn disks(&self) -> Vec<String> {
        assay_block::disks_under(&self.watched)
    }

    /// What the kernel charged to the server. `ours` are the threads of this run's sessions, `others` those of all
    /// clients, or why they are unknown; `ahead_bytes` were read asynchronously, without read calls.
    pub(super) fn sample(
        &self,
        ours: &[i32],
        others: &Result<Vec<i32>, String>,
        ahead_bytes: &Reading,
        into: &mut StatSet,
    ) {
        let Ok(reader) = &self.threads else {
            here::unseen(into);
            return;
        };
        let clients = others.as_deref().unwrap_or_default();
        let sum = reader.sample(ours, clients);
        let pooled = self.pooled.as_ref();
        sum.put(into, pooled, pooled.or(others.as_ref().err()));
        let mut calls = sum.io(|io| io.call_bytes);
        calls.merge(ahead_bytes);
        let source = "proc + innodb_buffer_pool_read_ahead";
        into.put(counter_catalog::SERVER_READ_CALL_BYTES, calls, source);
        let threads = "server_threads_count".to_owned();
        into.gauges.insert(threads, sum.processes as u64);
    }

    /// Reads the CPU time of a session's thread for the last time; call before closing the session.
    pub(super) fn last_look(&self, thread: i32) {
        if let Ok(reader) = &self.threads {
            reader.last_look(thread);
        }
    }

    /// The kernel's state letter of a session's thread; `None` if not visible.
    pub(super) fn doing(&self, thread: i32) -> Option<char> {
        match (&self.threads, &self.pooled) {
            (Ok(reader), None) => reader.doing(thread),
            _ => None,
        }
    }

    /// Whether the threads of sessions are visible.
    pub(super) fn sees_threads(&self) -> bool {
        self.threads.is_ok() && self.pooled.is_none()
    }
}

/// A path of the server as reached from here; its file system may not be ours.
fn reach(proc: &Path, pid: i32, path: &Path) -> PathBuf {
    let inside = proc.join(format!("{pid}/root"));
    let inside = inside.join(path.strip_prefix("/").unwrap_or(path));
    if procs::is_other_file(&inside, path) { inside } else { path.to_path_buf() }
}

/// The server's process here, and the evidence for it.
fn find(proc: &Path, claims: &Claims) -> Result<(i32, String), String> {
    if claims.thread == 0 {
        return Err("the server does not report the thread of a session".to_owned());
    }
    let mut servers: Vec<i32> = procs::pids(proc)
        .into_iter()
        .filter(|pid| {
            let name = fs::read_to_string(proc.join(format!("{pid}/comm"))).unwrap_or_default();
            NAMES.contains(&name.trim())
        })
        .collect();
    servers.sort_unstable();
    let mut seen = false;
    for pid in servers {
        let tasks = proc.join(format!("{pid}/task"));
        let has = procs::pids(&tasks).into_iter().any(|tid| procs::inner_pid(&tasks, tid) == Some(claims.thread));
        if !has {
            continue;
        }
        seen = true;
        let mut proofs = Vec::new();
        if claims.listener == Some(pid) {
            proofs.push(procs::LISTENS);
        }
        if procs::started_at(proc, pid, claims.started_s) {
            proofs.push("its start time matches what the server reports");
        }
        if !proofs.is_empty() {
            let thread = claims.thread;
            let proofs = proofs.join("; ");
            return Ok((pid, format!("assay's session is thread {thread} of process {pid}; {proofs}")));
        }
    }
    Err(if seen {
        format!(
            "a server on this host has a thread {}, but neither the socket nor its start time shows that it serves \
             assay's session",
            claims.thread
        )
    } else {
        format!("the server's thread {} of assay's session is not on this host", claims.thread)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::procs::start_s;

    /// A fake `/proc` with one server: process 100, thread 200 of it, which it calls 7.
    fn tree(name: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let task = dir.path().join("100/task/200");
        fs::create_dir_all(&task).unwrap();
        fs::write(dir.path().join("100/comm"), format!("{name}\n")).unwrap();
        fs::write(task.join("status"), "NSpid:\t200\t7\n").unwrap();
        let stat = "100 (x) S 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 50";
        fs::write(dir.path().join("100/stat"), stat).unwrap();
        dir
    }

    #[test]
    fn a_server_is_found_by_its_thread_and_a_proof_and_by_nothing_less() {
        let dir = tree("mariadbd");
        let now = start_s(dir.path(), 100).unwrap();
        let at = |thread, started_s, listener| find(dir.path(), &Claims { thread, started_s, listener });
        let (pid, evidence) = at(7, None, Some(100)).unwrap();
        assert_eq!(pid, 100);
        assert!(evidence.contains("SO_PEERCRED"), "{evidence}");
        assert!(at(7, Some(now + 1.0), None).is_ok());
        assert!(at(7, Some(now + 60.0), None).unwrap_err().contains("neither"));
        assert!(at(8, Some(now), Some(100)).unwrap_err().contains("not on this host"));
        assert!(at(0, Some(now), Some(100)).is_err());
        let other = tree("sleep");
        let claims = Claims { thread: 7, started_s: Some(now), listener: Some(100) };
        assert!(find(other.path(), &claims).is_err());
    }
}
