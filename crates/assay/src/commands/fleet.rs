//! `fleet`: one test on several hosts.

mod borrowed;
mod pairs;
mod platforms;
mod project;
mod sweep;
mod watched;

use super::flag_time::time_within;
use super::shown::Shown as LivePage;
use crate::cli::{
    BusArgs, Cli, Command, FleetArgs, FleetCommand, FleetName, FleetPartArgs, FleetRunArgs, IoArgs, OrdersArgs,
    OrdersCommand, PlatformArgs, ProbeCommand, RunArgs, SweepArgs,
};
use crate::configure::{self, Configured};
use crate::exit::{Code, Failure};
use crate::rundir::{self, RunDir};
use crate::{answer, fleet_part, perform, progress, record, registry, signals, ui};
use assay_awr::record::SeriesBuilder;
use assay_control::fleet::agent::{self, Options, Share};
use assay_control::fleet::bus::Address;
use assay_control::fleet::controller::{self, Gathered, Watcher};
use assay_control::fleet::manifest::{Envelope, manifest};
use assay_control::fleet::merge::Piece;
use assay_control::fleet::message::Hello;
use assay_control::fleet::record::{FleetRun, of};
use assay_control::fleet::server::{RunningServer, Wanted};
use assay_control::fleet::ssh::READY;
use assay_control::fleet::{FleetError, message, server};
use assay_control::new_token;
use assay_measure::clock::Ns;
use assay_measure::config::ENVIRONMENT_PREFIX;
use assay_measure::record::Record;
use assay_measure::snapshot::RunData;
use assay_run::bounded;
use assay_run::engine::Hosts;
use assay_run::host::random_u32;
use assay_run::stop::Stop;
use assay_sql::temp;
use assay_storage::language;
use borrowed::Borrowed;
use clap::Parser;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::time::{Duration, Instant};
use watched::Watched;

/// The URLs that `up` leaves for a controller and for agents.
const CONTROL_URL: &str = "control.url";
const AGENT_URL: &str = "agent.url";
/// Where to look for a server that ended, and at a request to stop.
const LOOK: Duration = Duration::from_millis(200);
/// How long a server may take to save what is kept when it is asked to end.
const SAVING: Duration = Duration::from_secs(30);

pub(super) fn fleet(args: &FleetArgs) -> Result<Code, Failure> {
    match &args.command {
        FleetCommand::Up { listen, host, tls, fleet } => {
            // The server reads them itself.
            super::serve::identity(tls)?;
            let whole = |(certificate, key)| -> Result<_, Failure> { Ok((absolute(certificate)?, absolute(key)?)) };
            let tls = tls.files().map(whole).transpose()?;
            let tls = tls.as_ref().map(|(certificate, key)| (certificate.as_path(), key.as_path()));
            up(&Wanted { listen, fleet: &fleet.fleet, reached: host, tls }, fleet)
        }
        FleetCommand::Agent { bus, name, address, machine, clock_ahead_ms, says_version, borrowed } => {
            let hello = Hello {
                name: name.clone().unwrap_or_else(host_name),
                machine: machine.clone().unwrap_or_else(machine_id),
                instance: format!("{:08x}{:08x}", random_u32(), random_u32()),
                version: says_version.clone(),
                cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64),
                run: None,
                address: address.clone().unwrap_or_default(),
            };
            serve(bus, hello, clock_ahead_ms * 1_000_000, *borrowed)
        }
        FleetCommand::Run(args) => run(args),
        FleetCommand::Project { runs, to, output, format } => project::project(runs, *to, output.as_deref(), format),
        FleetCommand::Manifest { starter, url, hosts, image, fleet } => {
            let of = Envelope { fleet: &fleet.fleet, url, hosts: *hosts, image };
            ui::product(&manifest((*starter).into(), &of))?;
            Ok(Code::Good)
        }
    }
}

/// The part of a run that an agent starts.
pub(super) fn part(args: &FleetPartArgs) -> Result<Code, Failure> {
    fleet_part::attach(args)?;
    if pairs::are_meant(&args.command) {
        return pairs::part(&args.command);
    }
    match asked(&args.command)? {
        Asked::Run(args) => super::run::run(&args),
        Asked::Io(args) => super::io::io(&args),
        Asked::Probe(command) => super::probe::probe(&command),
        Asked::Sweep(_) => Err(Failure::usage("a sweep is led from its controller: a host is given its steps")),
        Asked::Platform(args) => super::platform::platform(&args),
    }
}

impl From<FleetError> for Failure {
    fn from(error: FleetError) -> Self {
        let code = match &error {
            FleetError::Refused(_) => Code::Usage,
            FleetError::Interrupted => Code::Interrupted,
            _ => Code::Unusable,
        };
        Self::new(code, error.to_string())
    }
}

/// A file by its whole name: the server works in a directory of its own.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    path.canonicalize().map_err(|error| rundir::cannot(path, &error))
}

fn up(wanted: &Wanted<'_>, name: &FleetName) -> Result<Code, Failure> {
    if server::find().is_none() {
        return Err(Failure::new(Code::Unusable, server::no_server()));
    }
    let FleetName { fleet, dir } = name;
    let cannot = |error: &std::io::Error| rundir::cannot(dir, error);
    let configured = server::configure(dir, wanted, &new_token).map_err(|error| cannot(&error))?;
    let stop = signals::watch()?;
    let mut running = server::start(&configured, temp::ending_with_us)?;
    for (file, url) in [(CONTROL_URL, &running.control_url), (AGENT_URL, &running.agent_url)] {
        server::write_private(&dir.join(file), url).map_err(|error| cannot(&error))?;
    }
    ui::product(&format!(
        "fleet {fleet}: nats-server on {}; configuration, tokens and log are in {dir}\n\
         on each host:  NATS_URL={} assay fleet agent\n\
         from here:     assay fleet run -- run{}\n",
        running.listen,
        running.agent_url,
        wanted.tls.map_or(
            "",
            |_| "\n(with NATS_CA=FILE, the certificate of who signed this server's, unless the system trusts them)"
        ),
        dir = dir.display(),
    ))?;
    loop {
        if let Some(status) = running.child.try_wait().map_err(|error| cannot(&error))? {
            let last = server::last_words(&dir.join("nats.log"));
            return Err(Failure::new(Code::Unusable, format!("nats-server ended ({status}): {last}")));
        }
        if stop.requested() {
            end(&mut running);
            return Ok(Code::Good);
        }
        std::thread::sleep(LOOK);
    }
}

/// Ends a server, which saves what is kept.
fn end(running: &mut RunningServer) {
    let pid = rustix::process::Pid::from_child(&running.child);
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    let begun = Instant::now();
    while begun.elapsed() < SAVING && matches!(running.child.try_wait(), Ok(None)) {
        std::thread::sleep(LOOK);
    }
    let _ = running.child.kill();
    let _ = running.child.wait();
}

/// Where the server is, by the option, the environment or the directory of `up`.
fn address(bus: &BusArgs, file: &str) -> Result<Address, Failure> {
    let FleetName { fleet, dir } = &bus.fleet;
    let of_environment = |name| std::env::var(name).ok().filter(|said| !said.is_empty());
    let of_file = || bounded::text(&dir.join(file), bounded::SECRET).ok();
    let ca = bus.tls_ca.clone().or_else(|| of_environment("NATS_CA").map(PathBuf::from));
    let url = bus.nats.clone().or_else(|| of_environment("NATS_URL")).or_else(of_file).ok_or_else(|| {
        let here =
            if server::find().is_some() { "`assay fleet up` starts one".to_owned() } else { server::no_server() };
        Failure::new(Code::Unusable, format!("no NATS server is named by NATS_URL or --nats; {here}"))
    })?;
    Ok(Address { url: url.trim().to_owned(), fleet: fleet.clone(), ca })
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Of the machine, not the address; the hash tells nobody the id itself.
fn machine_id() -> String {
    let id = bounded::text(Path::new("/etc/machine-id"), bounded::SECRET).unwrap_or_else(|_| host_name());
    message::hex(format!("assay {}", id.trim()).as_bytes())[..16].to_owned()
}

/// An agent that is borrowed ends with its input, or when nobody was reached for so long.
const GONE: Duration = Duration::from_secs(60);

fn serve(bus: &BusArgs, mut hello: Hello, clock_ahead_ns: i64, is_borrowed: bool) -> Result<Code, Failure> {
    let address = address(bus, AGENT_URL)?;
    if hello.address.is_empty() {
        hello.address = pairs::address_towards(&address);
    }
    let program = std::env::current_exe().map_err(|error| Failure::new(Code::Bug, error.to_string()))?;
    let launch = |share: &Share<'_>| {
        let mut process = Process::new(&program);
        for (name, _) in std::env::vars_os() {
            // A host's own settings would make its part another one.
            if name.to_string_lossy().starts_with(ENVIRONMENT_PREFIX) {
                process.env_remove(name);
            }
        }
        let numbers = [("--host", share.host as u64), ("--hosts", share.hosts as u64), ("--seed", share.seed)];
        if !share.secret.is_empty() {
            process.env(pairs::SECRET, share.secret);
        }
        process.args(["--quiet", "fleet-part"]);
        process.args(numbers.iter().flat_map(|(flag, number)| [(*flag).to_owned(), number.to_string()]));
        process.arg("--").args(share.words);
        process
    };
    let stop = signals::watch()?;
    if is_borrowed {
        std::thread::spawn(|| {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            Stop::of_process().request();
        });
    }
    let ready = || {
        if is_borrowed {
            // Who does not hear it sees that nothing comes.
            let _ = ui::product(&format!("{READY}\n"));
        }
    };
    let gone_after = is_borrowed.then_some(GONE);
    let options = Options { address, hello, clock_ahead_ns, launch: &launch, ready: &ready, gone_after };
    agent::serve(&options, &stop, &mut |line| ui::say(line))?;
    Ok(Code::Good)
}

/// Shows how a run goes.
struct Shown(progress::Line);

impl Watcher for Shown {
    fn say(&mut self, line: &str) {
        ui::say(line);
    }

    fn live(&mut self, line: &str) {
        self.0.show(line);
    }
}

/// The longest time that an option of a fleet takes.
const MOST: Duration = Duration::from_secs(24 * 3600);

/// The time that an option says, of at least so long.
fn duration(option: &str, text: &str, least: Duration) -> Result<Duration, Failure> {
    time_within(option, text, least..=MOST, &format!("{} s to 24h", least.as_secs()))
}

fn run(args: &FleetRunArgs) -> Result<Code, Failure> {
    let wait = duration("--wait", &args.wait, Duration::ZERO)?;
    // Hosts are asked once a second.
    let lost_after = duration("--lost-after", &args.lost_after, controller::LOST_LEAST)?;
    let dead_man = duration("--dead-man", &args.dead_man, controller::DEAD_MAN_LEAST)?;
    watched::refuse_unseen(args)?;
    let Meant { name, words, configured, swept } = match &args.take {
        Some(_) => Meant::default(),
        None => meant(&args.command)?,
    };
    let named = if args.ssh.is_some() { Address::default() } else { address(&args.bus, CONTROL_URL)? };
    let stop = signals::watch()?;
    let mut shown = Shown(progress::Line::new());
    let borrowed = match &args.ssh {
        Some(hosts) => Some(Borrowed::of(hosts, args, &stop)?),
        None => None,
    };
    let address = borrowed.as_ref().map_or(named, |borrowed| borrowed.address.clone());
    let are_borrowed = borrowed.is_some();
    let (gathered, watched) = match &args.take {
        Some(run) => (controller::take(&address, run, lost_after, &stop, &mut shown)?, None),
        None => {
            let id = rundir::new_id();
            let place = rundir::place(args.output.as_deref(), name, &id);
            rundir::refuse_used(&place)?;
            let mut asked = controller::Asked {
                address: address.clone(),
                run: id,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                seed: seed_of(&words).unwrap_or_else(|| u64::from(random_u32())),
                words,
                hosts: borrowed.as_ref().map(|borrowed| borrowed.count).or(args.hosts.map(|hosts| hosts as usize)),
                wait,
                lost_after,
                dead_man,
            };
            if name == pairs::NAME {
                return pairs::run(args, &asked, place, &stop, &mut shown);
            }
            if let Some(swept) = swept {
                return sweep::run(args, *swept, &mut asked, are_borrowed, &stop, &mut shown);
            }
            let known = configured.map(|configured| watched::known(&configured, &asked));
            let page = LivePage::ready(&args.live, &place)?;
            let (gathered, watched) = watched::run(page, known, &asked, &place, &stop, &mut shown)?;
            (gathered, Some(watched))
        }
    };
    drop(shown);
    let (record, is_partial) = recorded(args, gathered, are_borrowed)?;
    let watched = match watched {
        Some(watched) => watched,
        None => Watched::taken(args.output.as_deref(), &record.run)?,
    };
    let dir = &watched.dir;
    leave(&address, &record, is_partial, dir, &stop, &mut |record| answer::product(record, args.format, dir.path()))
}

/// The seed among the settings.
fn seed_of(words: &[String]) -> Option<u64> {
    words.iter().find_map(|word| word.strip_prefix("SEED=")?.parse().ok())
}

/// A command that runs on a fleet: what it reads are counts and buckets, which add up over hosts, or a figure of each host beside the others'.
enum Asked {
    /// A workload: its sessions are divided.
    Run(Box<RunArgs>),
    /// A probe: every host does the whole of it.
    Io(IoArgs),
    Probe(ProbeCommand),
    /// One run after the other.
    Sweep(Box<SweepArgs>),
    /// A plan of probes: every host makes each test while the others do.
    Platform(PlatformArgs),
}

/// The command for every host. The controller asks, and each host again: nobody on the bus has it do anything else.
fn asked(command: &[String]) -> Result<Asked, Failure> {
    let parsed = Cli::try_parse_from(std::iter::once("assay").chain(command.iter().map(String::as_str)));
    let parsed = parsed
        .map_err(|error| Failure::usage(format!("the command behind --: {}", error.render().to_string().trim())))?;
    let (asked, refused) = match parsed.command {
        Command::Run(asked) => of_run(asked),
        Command::Orders(OrdersArgs { command: OrdersCommand::Run(asked) }) => of_run(asked.into()),
        Command::Io(asked) => of_io(asked)?,
        Command::Sweep(asked) => sweep::of(asked),
        Command::Probe(asked) if registry::probe(&asked.name).is_some_and(|probe| probe.over_hosts.is_some()) => {
            of_probe(asked)
        }
        Command::Platform(asked) => platforms::of(asked),
        _ => {
            return Err(Failure::usage(format!(
                "`{}` cannot run on a fleet; run, sweep, orders run, io, sync and redo can, whose readings are counts and buckets that add \
                 up over hosts, and platform, whose figures stand beside each other",
                command.first().map_or("", String::as_str)
            )));
        }
    };
    match refused.into_iter().find(|(_, is_given, _)| *is_given) {
        None => Ok(asked),
        Some((option, _, way_out)) => Err(Failure::usage(format!("{option} has no meaning behind --: {way_out}"))),
    }
}

/// An option, whether it was given, and what to do instead.
type Refused = Vec<(&'static str, bool, &'static str)>;
const OUTPUT: &str = "the fleet's own -o stands before --";
const LIVE: &str = "--live stands before --";
const OWN_TIME: &str = "it would end each host at a time of its own";

fn of_run(asked: RunArgs) -> (Asked, Refused) {
    let more = &asked.more;
    let refused = vec![
        ("-o", more.output.is_some(), OUTPUT),
        ("--repeat", more.repeat > 1, "repeat the command"),
        ("--dry-run", more.dry_run, "`assay run --dry-run` shows the plan of one host"),
        ("--at", !more.at.is_empty(), "a command of --at runs on one host"),
        ("--live", more.live.live.is_some(), LIVE),
        ("--push", more.push.push.is_some(), "a fleet sends no figures yet"),
    ];
    (Asked::Run(Box::new(asked)), refused)
}

fn of_probe(asked: ProbeCommand) -> (Asked, Refused) {
    let args = &asked.args;
    let refused = vec![
        ("-o", args.output.is_some(), OUTPUT),
        ("--dry-run", args.dry_run, "it shows the plan of one host there"),
        ("--until", args.until.is_some(), OWN_TIME),
    ];
    (Asked::Probe(asked), refused)
}

fn of_io(asked: IoArgs) -> Result<(Asked, Refused), Failure> {
    if language::help_asked(&asked.words).is_some() {
        return Err(Failure::usage("help has no meaning behind --: `assay io --help` shows it"));
    }
    let jobs = assay_storage::invocation(&asked.words)?;
    let output = &jobs.output;
    let file = "a job file lies on this host alone: `assay io --showcmd FILE` prints its options";
    let refused = vec![
        ("-o or --run-directory", output.run_directory.is_some() || output.no_record, OUTPUT),
        ("--output", output.file.is_some(), "each host would print a report of its own"),
        ("--showcmd or --parse-only", output.show_command || output.parse_only, "it is for one host"),
        ("--until", output.until.is_some(), OWN_TIME),
        (
            "--destroy",
            !output.destroy.is_empty(),
            "what it names would be overwritten on every host; use files that assay makes",
        ),
        ("a job file", !jobs.files.is_empty(), file),
    ];
    Ok((Asked::Io(asked), refused))
}

/// What stands behind `--`.
#[derive(Default)]
struct Meant {
    /// The name of the test.
    name: &'static str,
    /// The command as every host is given it: of a workload what was set here by options, a file or the environment, and nothing
    /// else; of a probe its words.
    words: Vec<String>,
    /// Of a workload.
    configured: Option<Configured>,
    /// Of a sweep.
    swept: Option<Box<SweepArgs>>,
}

fn meant(command: &[String]) -> Result<Meant, Failure> {
    if pairs::are_meant(command) {
        return Ok(Meant { name: pairs::NAME, words: pairs::words(command)?, ..Meant::default() });
    }
    let of = |name| Meant { name, words: command.to_vec(), ..Meant::default() };
    Ok(match asked(command)? {
        Asked::Run(asked) => {
            let configured = configure::configure(&asked.settings, asked.more.flags.said.clone())?;
            let words = words_of(&configured)?;
            Meant { name: configured.workload, words, configured: Some(configured), swept: None }
        }
        Asked::Sweep(swept) => Meant { swept: Some(swept), ..of(sweep::NAME) },
        Asked::Io(_) => of(assay_storage::SPEC.name),
        Asked::Probe(asked) => of(registry::probe(&asked.name).map_or("", |probe| probe.name)),
        Asked::Platform(_) => of(platforms::NAME),
    })
}

/// A run with these settings, as every host is given it.
fn words_of(configured: &Configured) -> Result<Vec<String>, Failure> {
    fits(configured)?;
    let command: &[&str] =
        if configured.workload == assay_slob::NAME { &["run"] } else { &[configured.workload, "run"] };
    let mut words: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
    for line in configured.lines() {
        let is_given =
            ["cli", "command line", "env"].contains(&line.origin.as_str()) || line.origin.starts_with("file ");
        if !is_given || line.name == "TARGET" {
            continue;
        }
        if line.value.contains("***") {
            return Err(Failure::usage(format!("{} is a secret and does not travel: set it on each host", line.name)));
        }
        words.extend(["--set".to_owned(), format!("{}={}", line.name, line.value)]);
    }
    words.extend(["--target".to_owned(), configured.url.clone()]);
    Ok(words)
}

/// Refuses what no sum over hosts would be true of.
fn fits(configured: &Configured) -> Result<(), Failure> {
    let shown = configured.shown();
    let refused = match configured.target.hosts() {
        Hosts::Never(why) => format!("{shown}: {why}; a fleet runs on native:DIR, null: or a server"),
        Hosts::OneServer if configured.is_temporary() => {
            format!("{shown}: each host would start a server of its own; name one that all of them reach")
        }
        Hosts::OneServer if shown != configured.url => format!(
            "{shown}: a password is a secret and does not travel: leave it out, and give it on each host by the server's own \
             means (~/.pgpass, ~/.my.cnf or a wallet, or PGPASSWORD, MYSQL_PWD in the agent's environment)"
        ),
        _ => String::new(),
    };
    if !refused.is_empty() {
        return Err(Failure::usage(refused));
    }
    let of_one =
        [("TRACE", "belongs to one host"), ("UNTIL", "would end each host at a time of its own: give a time (--time)")];
    match of_one.into_iter().find(|(name, _)| !configured.settings.text(name).is_empty()) {
        None => Ok(()),
        Some((name, why)) => Err(Failure::usage(format!("{name} {why}; leave it out on a fleet"))),
    }
}

/// The record of the hosts' data, with what they told its kind alone.
fn record_of(mut data: RunData, series: SeriesBuilder, gathered: &Gathered) -> Result<Record, Failure> {
    if data.workload == platforms::NAME {
        return Ok(platforms::record(&data, gathered));
    }
    let parts: Vec<_> = gathered.hosts.iter().filter_map(|host| host.data.as_ref()?.part.as_ref()).collect();
    if let Some(over_hosts) = registry::probe(&data.workload).and_then(|probe| probe.over_hosts) {
        let lacking = || Failure::new(Code::Bug, format!("what the hosts read of {} cannot be added", data.workload));
        let mut record = over_hosts(&data, &parts).ok_or_else(lacking)?;
        record.warnings.extend(data.warnings);
        return Ok(record);
    }
    // Another tool's results may be a kind of the same name.
    let mut kinds = registry::kinds().into_iter().filter(|kind| kind.name() == data.workload);
    data.part = kinds.find_map(|kind| kind.add_parts(&parts));
    Ok(record::of(&data, series))
}

/// The record of what the hosts gave, and whether hosts are missing in it.
fn recorded(args: &FleetRunArgs, mut gathered: Gathered, are_borrowed: bool) -> Result<(Record, bool), Failure> {
    if are_borrowed {
        // Their own records go with them.
        gathered.hosts.iter_mut().for_each(|host| host.dir.clear());
    }
    let mut series = SeriesBuilder::default();
    let max_skew = args.max_skew.as_deref().map(|text| duration("--max-skew", text, Duration::ZERO)).transpose()?;
    let max_skew_ns = max_skew.map(|skew| skew.as_nanos() as Ns);
    let FleetRun { data, fleet, is_partial } = of(&gathered, max_skew_ns, &mut |piece| match piece {
        Piece::Activity(activity) => series.activity(activity.clone()),
        Piece::Step(from, to) => series.push(from, to),
    });
    if fleet.measured_count == 0 {
        let lines = gathered.hosts.iter().map(|host| format!("{}: {}", host.hello.name, host.lost)).collect();
        return Err(Failure { code: Code::Unusable, lines });
    }
    let mut record = record_of(data, series, &gathered)?;
    record.parts.put(&fleet);
    assay_report::kinds::attach_metrics(&mut record);
    Ok((record, is_partial))
}

/// Writes the record, delivers it, and forgets at the server what is written.
fn leave(
    address: &Address,
    record: &Record,
    is_partial: bool,
    dir: &RunDir,
    stop: &Stop,
    deliver: &mut perform::Deliver<'_>,
) -> Result<Code, Failure> {
    let written = record::write(dir, record);
    deliver(record)?;
    written?;
    ui::say(&format!("record: {}", dir.path().display()));
    let code = perform::code_of_run(record, stop);
    let run = &record.run.id;
    if let Err(error) = controller::forget(address, run) {
        ui::say(&format!("notice: run {run} is still kept at the server: {error}"));
    }
    Ok(if code == Code::Good && is_partial { Code::Invalid } else { code })
}
