//! Two machines: two network namespaces joined by a pair of interfaces, shaped by `tc` where the kernel has it.
//!
//! Only root may; a test that is not permitted says why and is over.

use super::{Place, Started};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The address of the second machine, which serves.
pub(crate) const SERVER: &str = "10.77.0.2";
/// The address of the first, which asks.
pub(crate) const CLIENT: &str = "10.77.0.1";

/// Two namespaces; gone with it.
pub(crate) struct Pair {
    client: String,
    server: String,
}

#[expect(clippy::print_stderr, reason = "why a test was left out")]
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

fn ip(words: &[&str]) -> Result<(), String> {
    run("ip", words)
}

fn run(program: &str, words: &[&str]) -> Result<(), String> {
    let done = Command::new(program).args(words).output();
    match done {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => Err(format!("{program} {}: {}", words.join(" "), String::from_utf8_lossy(&done.stderr).trim())),
        Err(error) => Err(format!("{program}: {error}")),
    }
}

impl Pair {
    /// Two machines, or nothing and the reason on stderr.
    pub(crate) fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = |side: &str| format!("as{side}{}x{number}", std::process::id());
        let pair = Self { client: name("c"), server: name("s") };
        match pair.made() {
            Ok(()) => Some(pair),
            Err(why) => {
                skipped(&format!("no network namespaces here: {why}"));
                None
            }
        }
    }

    fn made(&self) -> Result<(), String> {
        let (client, server) = (self.client.as_str(), self.server.as_str());
        ip(&["netns", "add", client])?;
        ip(&["netns", "add", server])?;
        let pair = ["link", "add", "veth0", "netns", client, "type", "veth", "peer", "name", "veth0", "netns", server];
        ip(&pair)?;
        for (name, address) in [(client, CLIENT), (server, SERVER)] {
            let with_bits = format!("{address}/24");
            ip(&["-n", name, "addr", "add", &with_bits, "dev", "veth0"])?;
            let six = format!("fd77::{}/64", &address[address.len() - 1..]);
            ip(&["-n", name, "-6", "addr", "add", &six, "dev", "veth0", "nodad"])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
            ip(&["-n", name, "link", "set", "veth0", "up"])?;
        }
        Ok(())
    }

    /// Shapes what the first machine sends (`tbf rate 100mbit ...`, `netem delay 10ms`); whether the kernel can.
    pub(crate) fn shape(&self, words: &str) -> bool {
        let mut all = vec!["-n", self.client.as_str(), "qdisc", "replace", "dev", "veth0", "root"];
        all.extend(words.split(' '));
        match run("tc", &all) {
            Ok(()) => true,
            Err(why) => {
                skipped(&format!("no shaping: {why}"));
                false
            }
        }
    }

    /// Cuts the link, or joins it again.
    pub(crate) fn link(&self, is_up: bool) {
        let state = if is_up { "up" } else { "down" };
        ip(&["-n", &self.client, "link", "set", "veth0", state]).expect("the link is ours");
    }

    /// A program in the place of one of the machines.
    fn inside(name: &str, command: &Command) -> Command {
        let mut all = Command::new("ip");
        all.args(["netns", "exec", name]).arg(command.get_program());
        all.args(command.get_args()).stdin(Stdio::null());
        if let Some(dir) = command.get_current_dir() {
            all.current_dir(dir);
        }
        for (key, value) in command.get_envs() {
            match value {
                Some(value) => all.env(key, value),
                None => all.env_remove(key),
            };
        }
        all
    }

    /// `assay` on the first machine.
    pub(crate) fn client(&self, place: &Place, args: &[&str]) -> Started {
        self.client_runs(&place.command(args))
    }

    /// `assay` on the second machine.
    pub(crate) fn server(&self, place: &Place, args: &[&str]) -> Started {
        self.server_runs(&place.command(args))
    }

    /// Any program on the first machine.
    pub(crate) fn client_runs(&self, command: &Command) -> Started {
        Started::new(Self::inside(&self.client, command).stdout(Stdio::piped()))
    }

    /// Any program on the second machine.
    pub(crate) fn server_runs(&self, command: &Command) -> Started {
        Started::new(Self::inside(&self.server, command).stdout(Stdio::piped()))
    }

    /// Bytes that the first machine has sent to the second, frames and all.
    pub(crate) fn sent_bytes(&self) -> u64 {
        let counter = "/sys/class/net/veth0/statistics/tx_bytes";
        let shown = Command::new("ip").args(["netns", "exec", &self.client, "cat", counter]).output();
        let text = String::from_utf8(shown.expect("ip is there").stdout).expect("digits");
        text.trim().parse().expect("a count")
    }

    /// Whether a program on the second machine listens on a TCP port.
    pub(crate) fn listens(&self, port: u16) -> bool {
        let filter = format!("sport = :{port}");
        let shown = Command::new("ip").args(["netns", "exec", &self.server, "ss", "-Hltn", &filter]).output();
        shown.is_ok_and(|done| !done.stdout.is_empty())
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for name in [&self.client, &self.server] {
            let _ = ip(&["netns", "del", name]);
        }
    }
}
