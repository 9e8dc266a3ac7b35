//! Decides by evidence whether the server runs on this host, and which process is its postmaster.
//!
//! An address proves nothing: `localhost` may be a container or a tunnel, and a Unix socket may lead to a connection
//! pooler. So assay asks the server for the process of its session, and looks for that process here. It must have the
//! title of a server process. In addition its parent must listen on our socket, or its title must contain our port, or
//! both must have started when the server says.

use crate::postgres::wire::{Connection, PgError};
use crate::procs;
use std::fs;
use std::path::Path;

/// Where the server runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Whereabouts {
    /// On this host.
    Here(Here),
    /// Elsewhere or unknown, with the reason.
    Unknown(String),
}

/// A server on this host.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Here {
    /// Its first process.
    pub(super) postmaster: i32,
    /// Why it is this server.
    pub(super) evidence: String,
}

/// What the server reports about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Claims {
    /// Process of our session, by the server's numbering.
    pub(super) backend: i32,
    /// When the server started, s since 1970.
    pub(super) server_start_s: Option<f64>,
    /// When our session started, s since 1970.
    pub(super) backend_start_s: Option<f64>,
    /// The process that listens at the other end of our socket.
    pub(super) listener: Option<i32>,
    /// Our own TCP port.
    pub(super) port: Option<u16>,
}

impl Claims {
    /// Queries the server over `connection`.
    pub(super) fn ask(connection: &mut Connection) -> Result<Self, PgError> {
        let rows = connection.query(
            "select pg_backend_pid(), extract(epoch from pg_postmaster_start_time()), \
             (select extract(epoch from backend_start) from pg_stat_activity where pid = pg_backend_pid())",
        )?;
        let row = rows.rows.into_iter().next().unwrap_or_default();
        let text = |at: usize| row.get(at).cloned().flatten();
        Ok(Self {
            backend: text(0).and_then(|pid| pid.parse().ok()).unwrap_or(0),
            server_start_s: text(1).and_then(|s| s.parse().ok()),
            backend_start_s: text(2).and_then(|s| s.parse().ok()),
            listener: connection.listener_pid(),
            port: connection.local_port(),
        })
    }
}

/// Finds the session's process.
pub(super) fn find(proc: &Path, claims: &Claims) -> Whereabouts {
    if !fs::exists(proc.join("self")).unwrap_or(false) {
        return Whereabouts::Unknown("no /proc here".to_owned());
    }
    // The number is usually the same on both sides; in its own PID namespace the server counts differently.
    let direct = judge(proc, claims, claims.backend);
    let inside = || {
        let others = procs::pids(proc).into_iter().filter(|pid| *pid != claims.backend);
        let mut ours = others.filter(|pid| procs::inner_pid(proc, *pid) == Some(claims.backend));
        ours.find_map(|pid| judge(proc, claims, pid).ok())
    };
    match direct.or_else(|reason| inside().ok_or(reason)) {
        Ok(here) => Whereabouts::Here(here),
        Err(reason) => Whereabouts::Unknown(reason),
    }
}

/// Whether process `pid` is our session's.
fn judge(proc: &Path, claims: &Claims, pid: i32) -> Result<Here, String> {
    let server = claims.backend;
    let title = fs::read(proc.join(format!("{pid}/cmdline"))).unwrap_or_default();
    let title = String::from_utf8_lossy(&title).into_owned();
    if !title.starts_with("postgres: ") {
        return Err(format!("the server's process {server} of assay's session is not on this host"));
    }
    let Some(postmaster) = procs::parent_of(proc, pid).filter(|parent| *parent > 1) else {
        return Err(format!("process {pid} has no visible parent"));
    };
    let mut proofs = Vec::new();
    if claims.listener == Some(postmaster) {
        proofs.push(procs::LISTENS.to_owned());
    }
    if let Some(port) = claims.port.filter(|port| title.contains(&format!("({port})"))) {
        proofs.push(format!("the title of the session's process names the port {port} of this connection"));
    }
    let started = |pid, said| procs::started_at(proc, pid, said);
    if started(postmaster, claims.server_start_s) && started(pid, claims.backend_start_s) {
        proofs.push("both start times match what the server reports".to_owned());
    }
    if proofs.is_empty() {
        return Err(format!(
            "process {pid} on this host is a PostgreSQL session, but neither the socket, nor the port, nor its start \
             time shows that it is assay's session"
        ));
    }
    Ok(Here {
        postmaster,
        evidence: format!("assay's session is process {pid}, a child of {postmaster}; {}", proofs.join("; ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::procs::start_s;

    /// A fake `/proc` with one server (process 100) and one session (process 200, inside it 7).
    fn tree(title: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (pid, parent, inner) in [(100, 1, 1), (200, 100, 7)] {
            let own = dir.path().join(pid.to_string());
            fs::create_dir_all(&own).unwrap();
            fs::write(own.join("stat"), format!("{pid} (x) S {parent} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 50")).unwrap();
            fs::write(own.join("status"), format!("NSpid:\t{pid}\t{inner}\n")).unwrap();
            fs::write(own.join("cmdline"), if pid == 200 { title } else { "postgres" }).unwrap();
        }
        fs::create_dir(dir.path().join("self")).unwrap();
        dir
    }

    fn claims() -> Claims {
        Claims { backend: 7, listener: Some(100), ..Claims::default() }
    }

    #[test]
    fn a_server_in_a_namespace_of_its_own_is_found_by_its_inner_number() {
        let dir = tree("postgres: me db [local] idle");
        let Whereabouts::Here(here) = find(dir.path(), &claims()) else {
            panic!("it is here");
        };
        assert_eq!(here.postmaster, 100);
        assert!(here.evidence.contains("SO_PEERCRED"), "{}", here.evidence);
    }

    #[test]
    fn a_title_with_our_port_is_proof_and_another_port_is_none() {
        let dir = tree("postgres: me db 127.0.0.1(50123) idle");
        let at = |port| {
            let claims = Claims { listener: None, port: Some(port), ..claims() };
            matches!(find(dir.path(), &claims), Whereabouts::Here(_))
        };
        assert!(at(50123));
        assert!(!at(5012));
    }

    #[test]
    fn the_start_times_are_proof_only_together() {
        let dir = tree("postgres: me db [local] idle");
        let now = start_s(dir.path(), 100).expect("a start");
        let at = |server, backend| {
            let claims =
                Claims { listener: None, server_start_s: Some(server), backend_start_s: Some(backend), ..claims() };
            matches!(find(dir.path(), &claims), Whereabouts::Here(_))
        };
        assert!(at(now + 1.0, now - 1.0));
        assert!(!at(now + 60.0, now));
        assert!(!at(now, now + 60.0));
    }

    #[test]
    fn another_program_with_the_number_is_no_server() {
        let dir = tree("sleep 100");
        let Whereabouts::Unknown(reason) = find(dir.path(), &claims()) else {
            panic!("it is not here");
        };
        assert!(reason.contains("not on this host"), "{reason}");
    }
}
