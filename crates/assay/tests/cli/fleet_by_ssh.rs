//! `fleet run --ssh` over OpenSSH's own client and server: hosts are mount namespaces with a machine's identity of their own, and
//! what a client reaches of them is an `sshd` that it starts itself.

use crate::common::{Place, Ran, Started, skipped, until, with};
use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Write as _;
use std::process::{Command, Stdio};

const SSHD: &str = "/usr/sbin/sshd";
const NULL: &[&str] = &["--", "run", "--target", "null:", "--warmup", "0", "--set", "RATE=300", "-s", "2", "-t", "1"];

struct Hosts {
    place: Place,
}

impl Hosts {
    /// Hosts `a` and `b`, with a directory of that name each; nothing, and why, where there can be none.
    fn new() -> Option<Self> {
        let place = Place::new();
        let why = Self::lacking(&place)?;
        if why.is_empty() {
            return Some(Self { place });
        }
        assert!(std::env::var_os("ASSAY_REQUIRE_SSHD").is_none(), "{why}");
        skipped(&format!("fleet run --ssh: {why}"));
        None
    }

    /// Makes them; what they lack.
    fn lacking(place: &Place) -> Option<String> {
        let done = |program: &str, words: &[&str]| {
            let done = Command::new(program).args(words).current_dir(place.path("")).output();
            done.is_ok_and(|done| done.status.success())
        };
        let lacks = |why: &str| Some(why.to_owned());
        if !std::path::Path::new(SSHD).exists() {
            return lacks("there is no sshd (package openssh-server)");
        }
        if !done("unshare", &["-m", "mount", "-t", "tmpfs", "tmpfs", "/run"]) {
            return lacks("namespaces need root");
        }
        if !std::path::Path::new("/usr/sbin/nats-server").exists() && !done("nats-server", &["--version"]) {
            return lacks("there is no nats-server");
        }
        let key = |name: &str| done("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", name]);
        if !key("server") || !key("user") {
            return lacks("there is no ssh-keygen (package openssh-client)");
        }
        // The test's own copy: what tells a debugger where things are makes it five times as large.
        if !done("strip", &["-o", "assay", env!("CARGO_BIN_EXE_assay")]) {
            std::fs::copy(env!("CARGO_BIN_EXE_assay"), place.path("assay")).expect("copied");
        }
        let dir = place.path("").display().to_string();
        let mut config = String::new();
        for host in ["a", "b"] {
            for made in [host, "tmp"] {
                std::fs::create_dir_all(place.path(made)).expect("made");
            }
            place.write(&format!("{host}.id"), &format!("{:0>32}\n", host));
            place.write(
                &format!("{host}.sh"),
                &format!(
                    "mount --bind {dir}/{host}.id /etc/machine-id && mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec {SSHD} -i -f {dir}/sshd\n"
                ),
            );
            let _ = writeln!(
                config,
                "Host {host}\n ProxyCommand unshare -m sh {dir}/{host}.sh\n IdentityFile {dir}/user\n IdentitiesOnly yes\n \
                 IdentityAgent none\n HostKeyAlias {host}\n UserKnownHostsFile {dir}/known"
            );
        }
        let public = place.read("server.pub");
        place.write("known", &format!("a {public}b {public}"));
        place.write("config", &config);
        place.write(
            "sshd",
            &format!(
                "HostKey {dir}/server\nAuthorizedKeysFile {dir}/user.pub\nStrictModes no\nUsePAM no\nPidFile none\n"
            ),
        );
        Some(String::new())
    }

    fn begin(&self, hosts: &str, more: &[&str], command: &[&str]) -> Started {
        let ssh = format!("ssh -F {}", self.place.path("config").display());
        let mut run = Command::new(self.place.path("assay"));
        run.args(["fleet", "run", "--max-skew", "1h", "--ssh", hosts, "--ssh-command", &ssh]);
        run.args(more).args(command).current_dir(self.place.path("")).env("TMPDIR", self.place.path("tmp"));
        let log = std::fs::File::create(self.place.path("err.txt")).expect("a log");
        run.env_remove("NATS_URL").env("COLUMNS", "100").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        Started::of(run.spawn().expect("it starts"))
    }

    fn said(&self) -> String {
        self.place.read("err.txt")
    }

    fn ended(&self, running: Started) -> Ran {
        let ran = running.ended();
        Ran { err: self.said(), ..ran }
    }

    fn run(&self, hosts: &str, more: &[&str], command: &[&str]) -> Ran {
        self.ended(self.begin(hosts, more, command))
    }

    /// Waits until no file is left of it; the far end of a connection that was cut takes a moment.
    fn nothing_stays(&self) {
        let is_empty = |dir: &str| std::fs::read_dir(self.place.path(dir)).expect("there").next().is_none();
        until("what is removed", || is_empty("tmp") && is_empty("a") && is_empty("b"));
    }

    fn dir(&self, host: &str) -> String {
        self.place.path(host).display().to_string()
    }
}

#[test]
fn hosts_are_borrowed_by_ssh_and_nothing_stays_there() {
    let Some(hosts) = Hosts::new() else { return };
    let null = with(NULL, &["--time", "2"]);
    hosts.place.write("hosts", "# two of them\na\n\nroot@b\n");
    hosts.run("hosts", &["-o", "run", "--ssh-dir", &hosts.dir("a")], &null).code(0);
    let record = hosts.place.record("run");
    let rows = record["parts"]["fleet"]["hosts"].as_array().expect("hosts");
    let mut names: Vec<&str> = rows.iter().map(|host| host["name"].as_str().expect("a name")).collect();
    names.sort_unstable();
    assert_eq!(names, ["a", "b"]);
    assert!(rows.iter().all(|host| host["state"] == "measured" && host["note"] == ""), "{rows:?}");
    hosts.nothing_stays();

    let refused = |named: &str, more: &[&str], code, why: &str| {
        let ran = hosts.run(named, &with(&["-o", "none"], more), &null).code(code);
        assert!(ran.err.contains(why), "{}", ran.err);
        assert_eq!(ran.errors().len(), 1, "{}", ran.err);
        assert!(!hosts.place.path("none").exists());
        hosts.nothing_stays();
    };
    refused("a,b,a", &[], 2, "a stands there twice");
    refused("a,-oProxyCommand=x", &[], 2, "\"-oProxyCommand=x\" is no host");
    refused("a,b", &["--ssh-dir", "/nowhere"], 3, "a: mktemp: failed to create directory");
    refused("a,b", &["--nats", "nats://x"], 2, "cannot be used with");
    hosts.place.write("known", "");
    refused("a", &[], 3, "a: Host key verification failed");
}

#[test]
fn a_connection_that_is_cut_loses_that_host_alone_and_ctrl_c_keeps_what_was_measured() {
    let Some(hosts) = Hosts::new() else { return };
    let more = ["-o", "run", "--ssh-dir", &hosts.dir("a"), "--lost-after", "3s"];
    // Of the hosts; the fleet's own directory has one too.
    let is_series = |file: &&String| file.ends_with("series.jsonl") && !file.starts_with("run/");
    let measuring = |file: &&String| {
        is_series(file)
            && std::fs::read_to_string(hosts.place.path(file)).is_ok_and(|text| text.contains("\"mark\":\"second\""))
    };
    let measures = || hosts.place.files().iter().filter(measuring).count() == 2;
    let running = hosts.begin("a,b", &more, &with(NULL, &["--time", "10m"])).until("both", measures);
    let children = format!("/proc/{0}/task/{0}/children", running.pid().as_raw_nonzero());
    let of_b = |pid: &&str| {
        let words = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split('\0').any(|word| word == "b")
    };
    let children = std::fs::read_to_string(children).expect("it lives");
    let ssh = children.split_whitespace().find(of_b).and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
    kill_process(ssh.expect("ssh to b"), Signal::KILL).expect("killed");
    until("what b had", || hosts.place.files().iter().filter(is_series).count() == 1);
    until("the loss", || hosts.said().contains("warning: b is lost"));
    running.signal(Signal::INT);
    let ran = hosts.ended(running).code(130);
    assert!(ran.err.contains("warning: b: ssh ended before the run did"), "{}", ran.err);
    let reason = hosts.place.record("run")["run"]["verdict_reasons"].to_string();
    assert!(reason.contains("partial: 1 of 2 hosts (b: "), "{reason}");
    hosts.nothing_stays();
}
