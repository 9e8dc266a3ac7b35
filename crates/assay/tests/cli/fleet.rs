//! Fleets over a real NATS server on loopback: agents that are hosts of their own by name and machine.

mod platforms;

use crate::common::{Place, Ran, SMALL, Started, json, program, skipped, until, with};
use crate::pg_server::Server;
use crate::redo::Standby;
use crate::serve::{is_of, live, served};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Stdio;

/// A second without a data set, which leaves the CPUs to others.
const NULL: &[&str] = &["--", "run", "--target", "null:", "--warmup", "0", "--set", "RATE=300", "-s", "3", "-t", "1"];
/// What is judged here is not the clock of a busy machine, and no host is lost because others take its CPU.
const PATIENT: &[&str] = &["fleet", "run", "--max-skew", "1h", "--lost-after", "2m"];

struct Fleet {
    place: Place,
    up: Started,
    agents: Vec<Started>,
}

impl Fleet {
    /// A server and agents of these names; nothing where no server is installed.
    fn of(names: &[&str]) -> Option<Self> {
        let mut fleet = Self::started(Place::new(), &[])?;
        names.iter().for_each(|name| fleet.agent(name, &[]));
        Some(fleet)
    }

    /// A server alone, in this place.
    fn started(place: Place, more: &[&str]) -> Option<Self> {
        let up = Self::up(&place, "127.0.0.1:0", more)?;
        Some(Self { place, up, agents: Vec::new() })
    }

    fn up(place: &Place, listen: &str, more: &[&str]) -> Option<Started> {
        let args = with(&["fleet", "up", "--listen", listen], more);
        let mut up = Started::new(place.command(&args).stdout(Stdio::piped()));
        let output = up.child().stdout.take().expect("piped");
        let mut line = String::new();
        let _ = BufReader::new(output).read_line(&mut line);
        if line.is_empty() {
            let said = up.ended().err;
            assert!(said.contains("apt-get install nats-server") && said.contains("docker run"), "{said}");
            assert!(std::env::var_os("ASSAY_REQUIRE_NATS").is_none(), "{said}");
            skipped(&said);
            return None;
        }
        until("the URLs", || place.path("assay-fleet/agent.url").exists());
        Some(up)
    }

    /// Starts an agent, in a directory of its name.
    fn agent(&mut self, name: &str, more: &[&str]) {
        let dir = self.place.path(name);
        std::fs::create_dir_all(&dir).expect("a directory");
        let before = self.waits(name);
        let machine = format!("machine of {name}");
        let of_machine = if more.contains(&"--machine") { &[][..] } else { &["--machine", &machine] };
        let args = with(&["fleet", "agent", "--dir", "../assay-fleet", "--name", name], of_machine);
        let log = std::fs::File::options().create(true).append(true).open(dir.join("agent.txt")).expect("a log");
        let child = program(&with(&args, more), &dir).stderr(log).stdout(Stdio::null()).spawn().expect("it starts");
        self.agents.push(Started::of(child));
        until("the agent", || self.waits(name) > before);
    }

    fn said(&self, name: &str) -> String {
        std::fs::read_to_string(self.place.path(&format!("{name}/agent.txt"))).unwrap_or_default()
    }

    fn run(&self, more: &[&str], command: &[&str]) -> Ran {
        self.begin(more, command).ended()
    }

    /// How often an agent of this name has begun to wait.
    fn waits(&self, name: &str) -> usize {
        self.said(name).matches(&format!("{name} waits")).count()
    }

    fn begin(&self, more: &[&str], command: &[&str]) -> Started {
        let output = if more.contains(&"-o") { &[][..] } else { &["-o", "run"] };
        self.place.start(&[PATIENT, output, more, command].concat())
    }

    fn record(&self) -> Value {
        self.place.record("run")
    }

    /// The address of the server.
    fn address(&self) -> String {
        let url = self.place.read("assay-fleet/control.url");
        url.rsplit('@').next().expect("a host").to_owned()
    }
}

/// Records of the hosts' own parts, by name.
fn own(record: &Value) -> Vec<Value> {
    let mut hosts = record["parts"]["fleet"]["hosts"].as_array().expect("hosts").clone();
    hosts.sort_by_key(|host| host["name"].to_string());
    let text = |host: &Value| format!("{}/record.json", host["note"].as_str().expect("a place"));
    hosts.iter().map(|host| json(&std::fs::read_to_string(text(host)).expect("kept"))).collect()
}

/// What an identity of a record says.
fn truth<'a>(record: &'a Value, id: &str) -> &'a Value {
    let all = record["integrity"].as_array().expect("identities");
    all.iter().find(|one| one["id"] == id).unwrap_or_else(|| panic!("no {id}"))
}

/// Somebody else with the controller's token.
struct Stranger {
    server: TcpStream,
    lines: std::io::Lines<BufReader<TcpStream>>,
}

impl Stranger {
    fn of(fleet: &Fleet) -> Self {
        let server = TcpStream::connect(fleet.address()).expect("the server listens");
        let heard = server.try_clone().expect("a second handle");
        heard.set_read_timeout(Some(std::time::Duration::from_secs(60))).expect("set");
        let mut stranger = Self { server, lines: BufReader::new(heard).lines() };
        let url = fleet.place.read("assay-fleet/control.url");
        let token = url.split([':', '@']).nth(2).expect("a token").to_owned();
        stranger.says(&format!("CONNECT {{\"verbose\":false,\"user\":\"control\",\"pass\":\"{token}\"}}\r\n"));
        stranger
    }

    fn says(&mut self, text: &str) {
        self.server.write_all(text.as_bytes()).expect("sent");
    }

    /// The next line that begins so.
    fn hears(&mut self, start: &str) -> String {
        let mut lines = self.lines.by_ref().map(|line| line.expect("the server talks"));
        lines.find(|line| line.starts_with(start)).expect("the server goes on")
    }
}

/// A server with a configuration of one's own, which listens on a free port of loopback.
fn own_server(place: &Place, config: &str) -> Option<(Started, String)> {
    let path = "/usr/sbin:/usr/local/bin:".to_owned() + &std::env::var("PATH").unwrap_or_default();
    place.write("own.conf", &format!("listen: \"127.0.0.1:-1\"\njetstream {{ store_dir: \"js\" }}\n{config}\n"));
    let mut command = std::process::Command::new("nats-server");
    command.args(["-c", "own.conf", "-l", "own.log"]).current_dir(place.path("")).env("PATH", path);
    let Ok(child) = command.stderr(Stdio::null()).spawn() else {
        assert!(std::env::var_os("ASSAY_REQUIRE_NATS").is_none(), "there is no nats-server");
        skipped("there is no nats-server");
        return None;
    };
    let server = Started::of(child);
    let log = || std::fs::read_to_string(place.path("own.log")).unwrap_or_default();
    until("a server", || log().contains("Server is ready"));
    let log = log();
    let (_, address) = log.split_once("client connections on ").expect("it listens");
    Some((server, format!("nats://{}", address.lines().next().expect("an address"))))
}

fn rows(record: &Value) -> Vec<(String, String)> {
    let hosts = record["parts"]["fleet"]["hosts"].as_array().expect("hosts");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    hosts.iter().map(|host| (text(&host["name"]), text(&host["state"]))).collect()
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

/// Operations of a record, and the sum of its histograms' slots.
fn ops(record: &Value) -> (u64, u64) {
    let ops = record["driver"]["ops"].as_array().expect("operations");
    let slots = |op: &Value| -> u64 {
        let slots = op["service"]["hist_ns"]["slots"].as_array().expect("slots");
        slots.iter().map(|slot| count(&slot[1])).sum()
    };
    (ops.iter().map(|op| count(&op["count"])).sum(), ops.iter().map(slots).sum())
}

#[test]
fn the_record_of_a_fleet_is_the_sum_of_its_hosts_on_native_data() {
    let Some(fleet) = Fleet::of(&["a", "b", "c"]) else { return };
    let command = with(&["--", "run", "-s", "2", "--sessions", "6", "--time", "2", "--warmup", "0.5"], SMALL);
    fleet.run(&["--hosts", "3"], &command).code(0);
    let record = fleet.record();
    assert_eq!((&record["kind"], &record["run"]["verdict"]), (&Value::from("slob"), &Value::from("complete")));
    assert_eq!((count(&record["run"]["sessions"]), rows(&record).len()), (6, 3));
    let own = own(&record);
    let sums = own.iter().map(ops).fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    assert_eq!(ops(&record), sums, "counts and buckets are added, nothing else");
    let sessions: Vec<u64> = own
        .iter()
        .flat_map(|own| {
            own["driver"]["per_session"].as_array().expect("sessions").iter().map(|one| count(&one["session"]))
        })
        .collect();
    let mut sorted = sessions.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [1, 2, 3, 4, 5, 6], "each session is one host's");
    assert_eq!(own[0]["run"]["seed"], record["run"]["seed"]);
    assert!(!record["series"]["t_s"].as_array().expect("a series").is_empty());
    let report = fleet.place.read("run/report.txt");
    assert!(report.contains("3 of 3 hosts, started within") && report.contains("window common to all"), "{report}");
}

#[test]
fn an_agent_that_is_killed_leaves_a_partial_record_and_is_refused_when_it_comes_back() {
    let Some(mut fleet) = Fleet::of(&["a", "b", "c"]) else { return };
    let running = fleet.begin(&["--hosts", "3"], &with(NULL, &["--time", "8"]));
    until("the window of b", || fleet.place.has_mark("begin") && fleet.said("b").contains("host 2 of 3"));
    fleet.agents.remove(1).kill();
    fleet.agent("b", &[]);
    let ran = running.ended().code(4);
    assert!(ran.err.contains("b is lost: its agent was started again"), "{}", ran.err);
    until("the refusal", || fleet.said("b").contains("error: this agent was started again during run"));
    let record = fleet.record();
    let reason = record["run"]["verdict_reasons"][0].as_str().expect("a reason");
    assert!(reason.starts_with("partial: 2 of 3 hosts (b: its agent was started again"), "{reason}");
    assert_eq!(rows(&record)[0], ("b".to_owned(), "lost".to_owned()), "the oddest comes first");
    assert_eq!(count(&record["run"]["sessions"]), 2, "its load is nobody else's");
    assert!(ran.out.contains("partial: 2 of 3 hosts"), "{}", ran.out);
    // It takes part in the next run.
    fleet.run(&["--hosts", "3", "-o", "next"], &with(NULL, &["--time", "1"])).code(0);
}

#[test]
fn a_fleet_is_shown_while_it_goes_on_with_a_cell_for_each_host_and_its_last_frame_is_its_record() {
    let Some(mut fleet) = Fleet::of(&["a", "b"]) else { return };
    let hosts = ["fleet", "run", "--hosts", "2", "--lost-after", "3s", "--max-skew", "1h", "-o", "run", "--live"];
    let probe = fleet.place.assay(&with(&hosts, &["--", "sync"])).code(2);
    assert!(probe.err.contains("what the hosts measure of sync comes at its end"), "{}", probe.err);
    let (run, page) = live(&fleet.place, &[&hosts, NULL, &["--time", "10m"]].concat());
    let run = run.until("its begin", || fleet.place.measures("run"));
    // Nobody takes longer, however busy the machine is.
    let mut frames = page.events("/run/run/events").take(180);
    let cells = |frame: &Value| -> Vec<[String; 3]> {
        let text = |cell: &Value, key: &str| cell[key].as_str().expect("text").to_owned();
        let cells = frame["hosts"].as_array().expect("the hosts of a fleet");
        cells.iter().map(|cell| ["name", "state", "rate"].map(|key| text(cell, key))).collect()
    };
    let is_at_work = |[_, state, rate]: &[String; 3]| state == "running" && rate.ends_with("/s");
    let frame = frames.find(|frame| cells(frame).iter().all(is_at_work)).expect("both work");
    assert_eq!(cells(&frame).len(), 2, "{frame}");
    assert!(frame["now"].as_str().is_some_and(|now| now.starts_with("2 running; ")), "{frame}");
    let tile = |name: &str| frame["tiles"].as_array()?.iter().find(|tile| tile["name"] == name).cloned();
    assert_eq!(tile("Errors").expect("errors")["value"], "0");
    assert_eq!(tile("Limited by").expect("a limit")["value"], "the requested rate");
    // Another process shows the same run from its directory.
    let (other, elsewhere) = served(&fleet.place, "run");
    assert_eq!(cells(&elsewhere.events("/run/run/events").next().expect("a frame")).len(), 2);
    other.stopped();
    fleet.agents.pop().expect("an agent").kill();
    let lost = frames.find(|frame| cells(frame)[0][1].starts_with("lost: nothing heard for")).expect("it is lost");
    assert_eq!((lost["hosts"][0]["name"].as_str(), lost["hosts"][0]["class"].as_str()), (Some("b"), Some("bad")));
    run.signal(Signal::INT);
    let last = frames.last().expect("a last frame");
    assert_eq!(run.ended().code, 130);
    is_of(&last, &fleet.record());
    assert_eq!(cells(&last).iter().map(|cell| cell[0].as_str()).collect::<Vec<_>>(), ["b", "a"], "{last}");
    assert!(cells(&last)[0][1].starts_with("lost: ") && cells(&last)[1][1] == "measured", "{last}");
}

#[test]
fn a_server_that_is_killed_and_comes_back_loses_nothing() {
    let Some(mut fleet) = Fleet::of(&["a", "b"]) else { return };
    let running = fleet.begin(&["--hosts", "2"], &with(NULL, &["--time", "6"]));
    until("the window", || fleet.place.has_mark("begin"));
    let address = fleet.address();
    let children = format!("/proc/{0}/task/{0}/children", fleet.up.pid().as_raw_nonzero());
    let server = std::fs::read_to_string(children).expect("the server's parent lives");
    let server = server.trim().parse().ok().and_then(Pid::from_raw).expect("one child");
    kill_process(server, Signal::KILL).expect("killed");
    let up = std::mem::replace(&mut fleet.up, Fleet::up(&fleet.place, &address, &[]).expect("it starts again"));
    assert!(up.ended().code(3).err.contains("nats-server ended"));
    let ran = running.ended().code(0);
    assert!(ran.err.contains("cannot be reached: the hosts go on"), "{}", ran.err);
    assert_eq!(count(&fleet.record()["parts"]["fleet"]["measured_count"]), 2);
}

#[test]
fn a_server_that_stays_away_is_not_waited_for_and_what_was_measured_is_taken_when_it_is_back() {
    let Some(mut fleet) = Fleet::of(&["a", "b"]) else { return };
    let brief = ["fleet", "run", "--hosts", "2", "--dead-man", "5s", "--lost-after", "3s", "--max-skew", "1h"];
    let running = fleet.place.start(&[&brief, NULL, &["--time", "10m"]].concat());
    until("the window", || fleet.place.has_mark("begin"));
    let address = fleet.address();
    fleet.up.signal(Signal::KILL);
    let gone = running.ended().code(3);
    assert!(gone.err.contains("the NATS server could not be reached for"), "{}", gone.err);
    let (_, run) = gone.err.rsplit_once("--take ").expect("the way out");
    let run = run.split('`').next().expect("a run");
    fleet.up = Fleet::up(&fleet.place, &address, &[]).expect("it starts again");
    let told = |name: &str| fleet.said(name).contains("is kept for the controller");
    until("what the hosts kept", || told("a") && told("b"));
    fleet.place.assay(&["fleet", "run", "--max-skew", "1h", "--take", run, "-o", "run"]).code(0);
    assert_eq!(count(&fleet.record()["parts"]["fleet"]["measured_count"]), 2);
}

#[test]
fn a_run_whose_controller_is_killed_is_taken_by_another_one() {
    let Some(fleet) = Fleet::of(&["a", "b"]) else { return };
    let running = fleet.begin(&["--hosts", "2", "--dead-man", "10s"], &with(NULL, &["--time", "10m"]));
    until("the window", || fleet.place.has_mark("begin"));
    let told = |name: &str| fleet.said(name).contains("is kept for the controller");
    running.kill();
    until("the patience of the agents", || told("a") && told("b"));
    let none = fleet.place.assay(&["fleet", "run", "--take", "0"]).code(2);
    let run = none.err.trim().rsplit(' ').next().expect("a run").to_owned();
    let taken = fleet.place.assay(&["fleet", "run", "--max-skew", "1h", "--take", &run, "-o", "run"]).code(0);
    assert!(taken.err.contains("the run is incomplete: a: stopped on request"), "{}", taken.err);
    let record = fleet.record();
    assert_eq!((record["run"]["id"].as_str(), rows(&record).len()), (Some(run.as_str()), 2));
    let warnings = record["warnings"].to_string();
    assert!(warnings.contains(": The agent stopped the run: no controller was heard of for"), "{warnings}");
    let again = fleet.place.assay(&["fleet", "run", "--take", &run]).code(2);
    assert!(again.err.contains("runs that nobody has taken: none"), "{}", again.err);
}

#[test]
fn a_stopped_run_keeps_what_all_hosts_measured() {
    let Some(mut fleet) = Fleet::of(&["a"]) else { return };
    // An hour ahead: instants are translated, and the offset is a figure.
    fleet.agent("b", &["--clock-ahead-ms", "3600000"]);
    let running = fleet.begin(&["--hosts", "2"], &with(NULL, &["--time", "10m"]));
    until("the window", || fleet.place.has_mark("second"));
    let mut stranger = Stranger::of(&fleet);
    // The seconds of the run tell whom to send it to.
    stranger.says("SUB assay.from.* 1\r\n");
    let news = stranger.hears("MSG assay.from.");
    let instance = news.split(['.', ' ']).nth(3).expect("an agent").to_owned();
    let deep = "[".repeat(9000);
    for subject in ["from.x".to_owned(), "all.beat".to_owned(), "all.stop".to_owned(), format!("to.{instance}")] {
        for garbage in ["}{!", "{\"run\":7}", "\u{1}\u{2}", deep.as_str()] {
            stranger.says(&format!("PUB assay.{subject} a.reply {}\r\n{garbage}\r\n", garbage.len()));
        }
    }
    stranger.says("PING\r\n");
    stranger.hears("PONG");
    running.signal(Signal::INT);
    running.ended().code(130);
    let record = fleet.record();
    assert_eq!(record["run"]["verdict"], "incomplete");
    assert_eq!(count(&record["parts"]["fleet"]["measured_count"]), 2);
    let ahead = record["parts"]["fleet"]["hosts"].as_array().expect("hosts").iter().find(|host| host["name"] == "b");
    let ahead = ahead.and_then(|host| host["clock_ms"].as_f64()).expect("a clock");
    assert!((3_590_000.0..3_610_000.0).contains(&ahead), "{ahead}");
    let warnings = record["warnings"].to_string();
    assert!(warnings.contains("messages on the fleet's subjects were none of assay's"), "{warnings}");
}

/// Operations of the whole run, by session.
fn session_ops(record: &Value) -> u64 {
    let sessions = record["driver"]["per_session"].as_array().expect("sessions");
    sessions.iter().map(|session| count(&session["ops_count"])).sum()
}

/// What a server counted of the whole run, by the record of whoever read it.
fn server_commits(record: &Value) -> &Value {
    &record["instance"]["stats"]["server_commits_count"]["whole_run_total"]
}

#[test]
fn hosts_that_load_one_server_count_its_work_once() {
    let Some(fleet) = Fleet::of(&["a", "b"]) else { return };
    let Some(server) = Server::shared("fleets") else { return };
    let url = server.url();
    let command = ["--", "run", "--target", &url, "-s", "2", "--sessions", "4", "--time", "3", "--warmup", "1"];
    let none = fleet.run(&["--hosts", "2", "-o", "none"], &command).code(3);
    assert!(
        none.err.contains("has no completely loaded data set") && none.err.contains("no host began"),
        "{}",
        none.err
    );
    fleet.place.assay(&["prepare", "--target", &url, "-s", "2", "--set", "SCALE=2000"]).code(0);
    fleet.run(&["--hosts", "2"], &command).code(0);
    let (record, own) = (fleet.record(), own(&fleet.record()));
    assert_eq!(session_ops(&record), own.iter().map(session_ops).sum::<u64>());
    assert!(own.iter().all(|own| session_ops(own) > 0));
    // Operations and rows of all clients are those that the server counted.
    for id in ["S5", "S7", "S8"] {
        assert_eq!(truth(&record, id)["ok"], true, "{}", truth(&record, id));
    }
    assert!(count(server_commits(&record)) >= session_ops(&record));
    assert_eq!(server_commits(&record), server_commits(&own[0]), "one host's reading is everybody's");
    assert_eq!(server_commits(&own[1]).as_u64(), None);
    let warnings = record["warnings"].to_string();
    assert!(!warnings.contains("shared"), "a host is no stranger to another: {warnings}");
}

#[test]
fn the_books_of_all_hosts_are_those_of_the_data_set() {
    let Some(fleet) = Fleet::of(&["a", "b"]) else { return };
    let Some(server) = Server::shared("fleet_orders") else { return };
    let url = server.url();
    let orders = |verb: &'static str| ["orders", verb, "--target", &url];
    fleet.place.assay(&with(&orders("prepare"), &["--scale", ".002"])).code(0);
    let more = ["--sessions", "4", "--time", "2", "--warmup", "0"];
    fleet.run(&["--hosts", "2"], &[&["--"][..], &orders("run"), &more].concat()).code(0);
    let (record, own) = (fleet.record(), own(&fleet.record()));
    let part = &record["parts"]["orders"];
    assert_eq!((&record["kind"], &part["hosts"]), (&Value::from("orders"), &Value::from(2)));
    let commits = |record: &Value| count(&record["parts"]["orders"]["ledger"]["commits"]);
    assert_eq!(commits(&record), own.iter().map(commits).sum::<u64>());
    let checks = part["checks"].as_array().expect("checks");
    assert_eq!(checks.len(), 17, "{part}");
    assert!(checks.iter().all(|check| check["verdict"] == "holds"), "{part}");
    assert!(fleet.place.read("run/report.txt").contains("All 17 checks hold."));
}

/// I/Os of a storage record, and the sum of their buckets.
fn ios(record: &Value) -> (u64, u64) {
    let way = &record["parts"]["storage"]["jobs"][0]["ways"][0];
    let slots = way["lat"]["hist_ns"]["slots"].as_array().expect("slots");
    (count(&way["ios_count"]), slots.iter().map(|slot| count(&slot[1])).sum())
}

#[test]
fn a_probe_on_all_hosts_is_one_test_of_all_their_clones() {
    let Some(fleet) = Fleet::of(&["a", "b"]) else { return };
    let job = ["--", "io", "--name=r", "--rw=randread", "--bs=4k", "--size=4m", "--runtime=2", "--time_based"];
    fleet.run(&["--hosts", "2"], &job).code(0);
    let (record, own) = (fleet.record(), own(&fleet.record()));
    let sums = own.iter().map(ios).fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    assert_eq!((&record["kind"], ios(&record)), (&Value::from("storage"), sums), "counts and buckets are added");
    assert_eq!(count(&record["parts"]["storage"]["jobs"][0]["numjobs_count"]), 2);
    assert!(rows(&record).iter().all(|(_, state)| state == "measured" || state.starts_with("late")));
    assert!(fleet.place.read("run/report.txt").contains("2 of 2 hosts, started within"));

    fleet.run(&["--hosts", "2", "-o", "sync"], &["--", "sync", "--time", "3s"]).code(0);
    let (record, own) = (fleet.place.record("sync"), self::own(&fleet.place.record("sync")));
    let writes = |record: &Value| -> u64 {
        let steps = record["parts"]["sync"]["steps"].as_array().expect("steps");
        steps.iter().filter_map(|step| step["writes_count"].as_u64()).sum()
    };
    assert_eq!(writes(&record), own.iter().map(writes).sum::<u64>());
    assert_eq!((&record["kind"], rows(&record).len()), (&Value::from("sync"), 2));

    let standby = Standby::new(&fleet.place, &[]);
    let port = standby.port.to_string();
    let redo = ["--", "redo", "127.0.0.1", "--port", &port, "--length", "8k", "--time", "2s"];
    fleet.run(&["--hosts", "2", "-o", "redo"], &redo).code(0);
    let (record, own) = (fleet.place.record("redo"), self::own(&fleet.place.record("redo")));
    let messages = |record: &Value| count(&record["parts"]["redo"]["messages_count"]);
    assert_eq!(messages(&record), own.iter().map(messages).sum::<u64>());
    assert_eq!(count(&record["parts"]["redo"]["connections_count"]), 2);
    assert!(record["integrity"].as_array().expect("identities").iter().all(|one| one["ok"] != false));
}

#[test]
fn a_sweep_is_a_run_of_the_same_hosts_at_each_load() {
    let Some(mut fleet) = Fleet::of(&["a", "b"]) else { return };
    let sweep = |sessions| with(&["--", "sweep", "--sessions", sessions], &with(&NULL[2..8], &["--time", "1"]));
    let ran = fleet.run(&["--hosts", "2"], &sweep("1,2")).code(2);
    assert!(ran.err.contains("2 hosts take part, and each needs a session"), "{}", ran.err);
    assert!(!fleet.place.path("run").exists());
    fleet.run(&["--hosts", "2"], &sweep("2,3")).code(0);
    let record = fleet.record();
    assert_eq!((&record["kind"], &record["run"]["verdict"]), (&Value::from("sweep"), &Value::from("complete")));
    assert_eq!(record["parts"]["sweep"]["target"], "null: on 2 hosts");
    let steps = record["parts"]["sweep"]["steps"].as_array().expect("steps");
    let place = |step: &Value| format!("run/{}/record.json", step["place"]["directory"].as_str().expect("a directory"));
    let of_steps: Vec<Value> = steps.iter().map(|step| json(&fleet.place.read(&place(step)))).collect();
    let found: Vec<_> = of_steps.iter().map(|step| (count(&step["run"]["sessions"]), rows(step).len())).collect();
    assert_eq!(found, [(2, 2), (3, 2)], "each step is a run of both hosts");
    // A step that a host is missing in does not count for a run of both.
    fleet.agents.pop().expect("an agent").kill();
    let begun = ["--hosts", "2", "--wait", "0.2s", "-o", "next"];
    let ran = fleet.run(&begun, &sweep("2")).code(3);
    assert!(ran.err.contains("1 of 2 hosts answer"), "{}", ran.err);
}

#[test]
fn what_does_not_fit_together_is_refused_before_anything_starts() {
    let Some(mut fleet) = Fleet::of(&["a"]) else { return };
    let refused = |fleet: &Fleet, more: &[&str], command: &[&str], code: i32, why: &str| {
        let ran = fleet.run(more, command).code(code);
        assert!(ran.err.contains(why), "{}", ran.err);
        assert_eq!(ran.errors().len(), 1, "{}", ran.err);
        assert!(!fleet.place.path("run").exists());
    };
    let null = with(NULL, &["--time", "1"]);
    for (command, why) in [
        (&["--", "throttle"][..], "`throttle` cannot run on a fleet"),
        (&["--", "sweep", "--target", "null:", "--cpus", "1"], "--cpus has no meaning"),
        (&["--", "sweep", "--target", "temp:postgres"], "each host would start a server of its own"),
        (&["--", "run", "--target", "sqlite:x.db"], "of the processes of one host"),
        (&["--", "run", "--target", "temp:postgres"], "each host would start a server of its own"),
        (&["--", "run", "--target", "postgres://me:secret@db/x"], "a password is a secret and does not travel"),
        (&["--", "run", "--repeat", "2"], "--repeat has no meaning"),
        (&["--", "io", "--name=x", "--size=1m", "--output=y"], "--output has no meaning"),
        (&["--", "platform", "--peer", "b"], "--peer has no meaning behind --: `assay fleet run -- net`"),
        (&["--", "platform", "-o", "box"], "-o has no meaning"),
        (&["--", "platform", "--dry-run"], "--dry-run has no meaning"),
        (&["--", "sync", "--until", "p99=5%"], "--until has no meaning"),
        (&["--", "run", "--live"], "--live has no meaning behind --: --live stands before --"),
        (&["--", "run", "--target", "null:", "--until", "p99=5%"], "UNTIL would end each host at a time of its own"),
        (&["--", "run", "--sesions", "2"], "unexpected argument"),
    ] {
        refused(&fleet, &[], command, 2, why);
    }
    refused(
        &fleet,
        &["--nats", "nats://agent:wrong@ADDRESS".replace("ADDRESS", &fleet.address()).as_str()],
        &null,
        3,
        "refuses this token",
    );
    refused(&fleet, &["--nats", "nats://127.0.0.1:1"], &null, 3, "nobody answers");
    refused(&fleet, &["--hosts", "2", "--wait", "0.2s"], &null, 3, "1 of 2 hosts answer in fleet assay (a)");
    refused(&fleet, &["--fleet", "other", "--wait", "0.2s"], &null, 3, "other");
    fleet.agent("b", &[]);
    let one = ["--", "run", "--target", "null:", "-s", "1", "-t", "1", "--time", "300"];
    refused(&fleet, &["--hosts", "2"], &one, 2, "1 sessions cannot be divided among 2 hosts");
    fleet.agent("c", &["--machine", "machine of a"]);
    refused(&fleet, &["--hosts", "3"], &null, 2, "agents a and c are on one machine");
    fleet.agents.pop().expect("an agent").kill();
    fleet.agent("d", &["--says-version", "0.0.1"]);
    refused(&fleet, &["--hosts", "3"], &null, 2, "d has 0.0.1: install the same on all hosts");
}

#[test]
fn another_fleet_on_the_server_is_not_touched_and_its_token_does_not_serve() {
    let Some(fleet) = Fleet::of(&["a"]) else { return };
    let null = with(NULL, &["--time", "1"]);
    let ran = fleet.run(&["--fleet", "other"], &null).code(3);
    assert!(ran.err.contains("this token is not of fleet other (Permissions Violation"), "{}", ran.err);
    assert_eq!(ran.errors().len(), 1, "{}", ran.err);
    let ran = fleet.place.assay(&["fleet", "agent", "--fleet", "other"]).code(3);
    assert!(ran.err.contains("this token is not of fleet other"), "{}", ran.err);
    let wrong = format!("nats://agent:wrong@{}", fleet.address());
    let ran = fleet.place.assay(&["fleet", "agent", "--nats", &wrong]).code(3);
    assert!(ran.err.contains("refuses this token") && !ran.err.contains("wrong"), "{}", ran.err);
    drop(fleet);

    // A server where everybody may do everything: fleets are kept apart by their names alone.
    let place = Place::new();
    let Some((_server, url)) = own_server(&place, "") else { return };
    let of = |fleet: &str, host: &str| {
        let machine = format!("machine of {host}");
        let args = ["fleet", "agent", "--nats", &url, "--fleet", fleet, "--name", host, "--machine", &machine];
        std::fs::create_dir_all(place.path(host)).expect("a directory");
        let log = std::fs::File::create(place.path(&format!("{host}/agent.txt"))).expect("a log");
        let child = program(&args, &place.path(host)).stderr(log).stdout(Stdio::null()).spawn().expect("it starts");
        let agent = Started::of(child);
        until("the agent", || place.read(&format!("{host}/agent.txt")).contains(" waits "));
        agent
    };
    let _agents = [of("one", "a"), of("two", "b"), of("two", "c")];
    let run = with(&["--nats", &url, "--fleet", "two", "-o", "run"], &null);
    place.assay(&[PATIENT, &run].concat()).code(0);
    let mut hosts = rows(&place.record("run"));
    hosts.sort();
    assert_eq!(hosts.iter().map(|host| host.0.as_str()).collect::<Vec<_>>(), ["b", "c"]);
    assert_eq!(place.read("a/agent.txt").lines().count(), 1, "it was asked nothing");
    let ran = place.assay(&[PATIENT, &["--nats", &url, "--fleet", "three", "--wait", "0.2s"], &null].concat()).code(3);
    assert!(ran.err.contains("0 of 1 hosts answer in fleet three (nobody)"), "{}", ran.err);
}

#[test]
fn what_was_measured_goes_in_pieces_that_the_server_takes_or_one_error_says_so() {
    let place = Place::new();
    let Some((_server, url)) = own_server(&place, "max_payload: 16384") else { return };
    let (fleet, null) = (["fleet", "agent", "--nats", &url], with(NULL, &["--time", "2"]));
    std::fs::create_dir_all(place.path("a")).expect("a directory");
    let log = std::fs::File::create(place.path("a/agent.txt")).expect("a log");
    let child = program(&fleet, &place.path("a")).stderr(log).stdout(Stdio::null()).spawn().expect("it starts");
    let _agent = Started::of(child);
    until("the agent", || place.read("a/agent.txt").contains(" waits "));
    place.assay(&[PATIENT, &["--nats", &url, "-o", "run"], &null].concat()).code(0);
    assert!(!place.record("run")["series"]["t_s"].as_array().expect("a series").is_empty());

    let small = Place::new();
    let Some((_server, url)) = own_server(&small, "max_payload: 4096") else { return };
    let ran = small.assay(&[PATIENT, &["--nats", &url, "-o", "run"], &null].concat()).code(3);
    assert!(ran.err.contains("it takes messages of 4096 bytes at most, and a fleet needs 16384"), "{}", ran.err);
    assert_eq!(ran.errors().len(), 1, "{}", ran.err);
}

/// A file system of 2 MiB, gone with it.
struct Disk(std::path::PathBuf);

impl Disk {
    fn at(dir: &std::path::Path) -> Option<Self> {
        std::fs::create_dir_all(dir).expect("a directory");
        let mounted =
            std::process::Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(dir).output();
        match mounted {
            Ok(done) if done.status.success() => Some(Self(dir.to_owned())),
            _ => {
                skipped("no file system can be mounted here");
                None
            }
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}

#[test]
fn a_host_whose_disk_is_full_still_gives_what_it_measured() {
    let Some(mut fleet) = Fleet::of(&["a"]) else { return };
    let Some(disk) = Disk::at(&fleet.place.path("b")) else { return };
    fleet.agent("b", &[]);
    let running = fleet.begin(&["--hosts", "2"], &with(NULL, &["--time", "3"]));
    let b = fleet.place.path("b");
    let series =
        || std::fs::read_dir(b.join("assay-runs")).ok()?.flatten().map(|run| run.path().join("series.jsonl")).next();
    let has_begun =
        || series().is_some_and(|file| std::fs::read_to_string(file).is_ok_and(|text| text.contains("\"begin\"")));
    let running = running.until("the window of b", has_begun);
    let mut ballast = std::fs::File::create(b.join("ballast")).expect("made");
    while ballast.write_all(&[0; 4096]).is_ok() {}
    let ran = running.ended().code(0);
    let record = fleet.record();
    assert_eq!(count(&record["parts"]["fleet"]["measured_count"]), 2, "{}", ran.err);
    let (all, slots) = ops(&record);
    assert_eq!(all, slots);
    let warnings = record["warnings"].to_string();
    assert!(warnings.contains(": The host's own record is not whole") && warnings.contains("space"), "{warnings}");
    drop((fleet, disk));
}

/// An authority and a server's certificate for `localhost`, below `dir`; whether openssl made them.
fn certificates(place: &Place) -> bool {
    let openssl = |words: &str| {
        let done = std::process::Command::new("openssl").args(words.split(' ')).current_dir(place.path("")).output();
        done.is_ok_and(|done| done.status.success())
    };
    place.write("names", "subjectAltName=DNS:localhost");
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    let made = ["ca", "other"]
        .iter()
        .all(|name| openssl(&format!("req -x509 {key} -keyout {name}.key -out {name}.crt -days 2 -subj /CN={name}")));
    made && openssl(&format!("req -new {key} -keyout server.key -out server.csr -subj /CN=server"))
        && openssl(
            "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.crt",
        )
}

#[test]
fn a_server_with_a_certificate_is_spoken_to_by_tls_alone() {
    let place = Place::new();
    if !certificates(&place) {
        skipped("there is no openssl");
        return;
    }
    let half = place.assay(&["fleet", "up", "--tls-cert", "server.crt"]).code(2);
    assert!(half.err.contains("--tls-key"), "{}", half.err);
    let none = place.assay(&["fleet", "up", "--tls-cert", "server.crt", "--tls-key", "names"]).code(2);
    assert!(
        none.err.contains("--tls-key names: no items found; it must be a PEM file with a private key"),
        "{}",
        none.err
    );
    let other = place.assay(&["fleet", "up", "--tls-cert", "server.crt", "--tls-key", "ca.key"]).code(2);
    assert!(other.err.contains("cannot be used together"), "{}", other.err);
    let more = ["--tls-cert", "server.crt", "--tls-key", "server.key", "--host", "localhost"];
    let Some(mut fleet) = Fleet::started(place, &more) else { return };
    assert!(fleet.place.read("assay-fleet/agent.url").starts_with("tls://agent:"));
    fleet.agent("a", &["--tls-ca", "../ca.crt"]);
    let null = with(NULL, &["--time", "1"]);
    let refused = |more: &[&str], code, why: &str| {
        let ran = fleet.run(more, &null).code(code);
        assert!(ran.err.contains(why), "{}", ran.err);
        assert_eq!(ran.errors().len(), 1, "{}", ran.err);
    };
    refused(&[], 3, "its certificate is not accepted");
    refused(&["--tls-ca", "other.crt"], 3, "its certificate is not accepted");
    refused(&["--tls-ca", "nowhere"], 2, "--tls-ca nowhere: ");
    refused(&["--tls-ca", "names"], 2, "there is no certificate in it");
    let url = fleet.place.read("assay-fleet/control.url");
    refused(
        &["--tls-ca", "ca.crt", "--nats", &url.replace("localhost", "127.0.0.1")],
        3,
        "its certificate is not accepted",
    );
    let mut run = fleet.place.command(&[PATIENT, &["-o", "run"], &null].concat());
    Started::new(run.env("NATS_CA", "ca.crt").stdout(Stdio::piped())).ended().code(0);
    assert_eq!(rows(&fleet.record()).len(), 1);
}

#[test]
fn pairs_of_hosts_are_measured_one_after_the_other_and_one_that_fails_is_a_row() {
    let Some(mut fleet) = Fleet::of(&[]) else { return };
    // Loopback has addresses enough for everybody to have ports of one's own.
    let own = format!("127.77.{}.{}", std::process::id() >> 8 & 255, std::process::id() & 255);
    fleet.agent("a", &["--address", &own]);
    fleet.agent("b", &["--address", &own]);
    let net = ["--", "net", "--time", "1s"];
    let ran = fleet.run(&["--hosts", "2"], &net).code(0);
    assert!(ran.out.starts_with("pairs on fleet: the slowest pair is b to a with "), "{}", ran.out);
    let record = fleet.record();
    let pairs = &record["parts"]["pairs"];
    assert_eq!((&record["kind"], count(&pairs["measured_count"])), (&Value::from("pairs"), 1));
    assert!(pairs["pairs"][0]["received_bits_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{pairs}");
    fleet.run(&["--hosts", "2", "-o", "ping"], &["--", "ping", "--time", "1s"]).code(0);
    let round_trip = fleet.place.record("ping")["parts"]["pairs"]["slowest_rtt_us"].as_f64();
    assert!(round_trip.is_some_and(|us| us > 0.0), "{round_trip:?}");
    for (command, why) in [
        (&["--", "net", "c"][..], "unexpected argument 'c'"),
        (&["--", "net", "--bytes", "10M"], "--bytes has no end that is known"),
        (&["--", "ping", "--secret-file", "x"], "--secret-file is given by the fleet"),
        (&["--", "net", "-o", "x"], "-o has no meaning behind -- net"),
    ] {
        let ran = fleet.run(&["-o", "none"], command).code(2);
        assert!(ran.err.contains(why) && !fleet.place.path("none").exists(), "{}", ran.err);
    }

    // It comes first, serves the others, and has no such address.
    fleet.agent("0", &["--address", "192.0.2.1"]);
    let ran = fleet.run(&["--hosts", "3", "-o", "partial"], &net).code(4);
    let reason = fleet.place.record("partial")["run"]["verdict_reasons"].to_string();
    assert!(reason.contains("partial: 1 of 3 pairs (a to 0: 0 does not serve: "), "{reason}\n{}", ran.err);
}

#[test]
fn more_hosts_are_projected_from_runs_of_some_and_marked_as_untested() {
    let Some(fleet) = Fleet::of(&["a"]) else { return };
    let think = ["--set", "THINK_TM_FREQUENCY=1", "--set", "THINK_TM_MIN=0.01", "--set", "THINK_TM_MAX=0.01"];
    let null = ["--", "run", "--target", "null:", "--warmup", "0", "-s", "1", "-t", "1", "--time", "6"];
    fleet.run(&[], &with(&null, &think)).code(0);
    // The same run on more hosts: as many times the operations, less what they wait for each other.
    let one = fleet.record();
    let ops = count(&one["interval"]["ops_count"]) as f64;
    let as_of = |name: &str, hosts: u64, ops: f64| {
        let mut record = one.clone();
        for key in ["hosts_count", "measured_count"] {
            record["parts"]["fleet"][key] = hosts.into();
        }
        record["run"]["sessions"] = hosts.into();
        record["interval"]["ops_count"] = (ops as u64).into();
        std::fs::create_dir_all(fleet.place.path(name)).expect("a directory");
        fleet.place.write(&format!("{name}/record.json"), &record.to_string());
    };
    let law = |hosts: f64| ops * hosts / (1.0 + 0.02 * (hosts - 1.0));
    for hosts in 1..=3 {
        as_of(&format!("x{hosts}"), hosts, 1.002 * law(hosts as f64));
        as_of(&format!("y{hosts}"), hosts, 0.998 * law(hosts as f64));
    }
    let project = |runs: &[&str], output: &str| {
        let args = with(&["fleet", "project", "--to", "128", "-o", output], runs);
        fleet.place.assay(&args)
    };
    let ran = project(&["x1", "y1", "x2", "y2", "x3", "y3"], "law").code(0);
    assert!(ran.out.contains("128 hosts: ") && ran.out.contains("projection, untested"), "{}", ran.out);
    let law = fleet.place.record("law");
    let usl = &law["parts"]["sweep"]["curves"][0]["usl"];
    let at = usl["projections"].as_array().expect("projections").iter().find(|point| point["load"] == 128);
    let at = &at.expect("128")["ops_per_s"];
    let [value, low, high] = ["value", "low", "high"].map(|key| at[key].as_f64().expect("known"));
    assert!(low < value && value < high, "{at}");
    for (runs, why) in [
        (&["x1", "y1", "x2", "y2"][..], "these runs have 2 numbers of hosts (1, 2), and a curve needs 3"),
        (&["x1", "x2", "run-of-nobody"], "run-of-nobody"),
    ] {
        let ran = project(runs, "none").code(2);
        assert!(ran.err.contains(why) && !fleet.place.path("none").exists(), "{}", ran.err);
    }
    as_of("part", 2, ops);
    let mut record = fleet.place.record("part");
    record["parts"]["fleet"]["measured_count"] = 1.into();
    fleet.place.write("part/record.json", &record.to_string());
    let ran = project(&["x1", "part", "x3"], "none").code(2);
    assert!(ran.err.contains("1 of 2 hosts are in its figures"), "{}", ran.err);
}
