//! Hosts of one run alone: a server here that nobody else sees, and an agent on each of them, by ssh.

use super::end;
use crate::cli::FleetRunArgs;
use crate::commands::new_token;
use crate::exit::Failure;
use crate::{rundir, ui};
use assay_control::fleet::bus::Address;
use assay_control::fleet::server::{self, RunningServer, Wanted};
use assay_control::fleet::ssh::{self, Borrowed as Hosts};
use assay_run::bounded;
use assay_run::stop::Stop;
use assay_sql::temp;
use std::path::{Path, PathBuf};

/// Until it is dropped.
pub(super) struct Borrowed {
    /// The server, for the controller.
    pub(super) address: Address,
    /// Hosts.
    pub(super) count: usize,
    hosts: Option<Hosts>,
    /// Ends after them.
    _server: Server,
}

/// A server in a directory of its own; both end with it.
struct Server {
    dir: PathBuf,
    running: Option<RunningServer>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.running.iter_mut().for_each(end);
        if let Err(error) = std::fs::remove_dir_all(&self.dir)
            && self.dir.exists()
        {
            ui::say(&format!("warning: {} cannot be removed: {error}", self.dir.display()));
        }
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if let Some(hosts) = self.hosts.take() {
            hosts.give_back(&mut |line| ui::say(line));
        }
    }
}

impl Borrowed {
    /// Starts a server and the agents.
    pub(super) fn of(hosts: &str, args: &FleetRunArgs, stop: &Stop) -> Result<Self, Failure> {
        let hosts = listed(hosts)?;
        if args.ssh_dir.contains(['\n', '\'']) {
            return Err(Failure::usage(format!("--ssh-dir {:?}: not a directory's name", args.ssh_dir)));
        }
        let fleet = args.bus.fleet.fleet.as_str();
        let token = new_token()?;
        let dir = std::env::temp_dir().join(format!("assay-fleet-{}", &token[..16]));
        let mut server = Server { dir, running: None };
        let wanted = Wanted { listen: "127.0.0.1:0", fleet, ..Wanted::default() };
        let configured = server::configure(&server.dir, &wanted, &assay_control::new_token);
        let configured = configured.map_err(|error| rundir::cannot(&server.dir, &error))?;
        let running = server.running.insert(server::start(&configured, temp::ending_with_us)?);
        let login = running.agent_url.strip_prefix("nats://").and_then(|url| url.rsplit_once('@'));
        let wanted = ssh::Wanted {
            ssh: &args.ssh_command,
            hosts: &hosts,
            dir: &args.ssh_dir,
            fleet,
            listen: &running.listen,
            login: login.map_or("", |(login, _)| login),
        };
        let agents = Hosts::start(&wanted, stop, &mut |line| ui::say(line))?;
        let address = Address { url: running.control_url.clone(), fleet: fleet.to_owned(), ca: None };
        Ok(Self { address, count: hosts.len(), hosts: Some(agents), _server: server })
    }
}

/// Hosts, by commas or in a file with one on a line.
fn listed(said: &str) -> Result<Vec<String>, Failure> {
    let refused = |why: String| Failure::usage(format!("--ssh {said}: {why}"));
    let text = match Path::new(said) {
        file if file.is_file() => {
            bounded::text(file, bounded::CONFIGURATION).map_err(|error| refused(error.to_string()))?
        }
        _ => said.replace(',', "\n"),
    };
    let hosts: Vec<String> = (text.lines().map(str::trim))
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    if hosts.is_empty() {
        return Err(refused("no host is named".to_owned()));
    }
    for (at, host) in hosts.iter().enumerate() {
        if host.starts_with('-') || host.contains(char::is_whitespace) {
            return Err(refused(format!("{host:?} is no host")));
        }
        if hosts[..at].contains(host) {
            return Err(refused(format!("{host} stands there twice")));
        }
    }
    Ok(hosts)
}
