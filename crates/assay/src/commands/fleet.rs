//! `fleet`: one test on several hosts.

use super::flag_time::time_within;
use crate::cli::{BusArgs, Cli, Command, FleetArgs, FleetCommand, FleetName, FleetPartArgs, FleetRunArgs, RunArgs};
use crate::configure::{self, Configured};
use crate::exit::{Code, Failure};
use crate::rundir::{self, RunDir};
use crate::{answer, fleet_part, perform, progress, record, signals, ui};
use assay_awr::record::SeriesBuilder;
use assay_control::fleet::agent::{self, Options, Share};
use assay_control::fleet::bus::Address;
use assay_control::fleet::controller::{self, Asked, Gathered, Watcher};
use assay_control::fleet::manifest::{Envelope, manifest};
use assay_control::fleet::merge::Piece;
use assay_control::fleet::message::Hello;
use assay_control::fleet::record::{FleetRun, of};
use assay_control::fleet::{FleetError, message, server};
use assay_control::new_token;
use assay_measure::clock::Ns;
use assay_measure::config::ENVIRONMENT_PREFIX;
use assay_run::bounded;
use assay_run::host::random_u32;
use assay_run::stop::Stop;
use assay_sql::temp;
use clap::Parser;
use std::path::Path;
use std::process::Command as Process;
use std::time::Duration;

/// The URLs that `up` leaves for a controller and for agents.
const CONTROL_URL: &str = "control.url";
const AGENT_URL: &str = "agent.url";
/// Where to look for a server that ended, and at a request to stop.
const LOOK: Duration = Duration::from_millis(200);

pub(super) fn fleet(args: &FleetArgs) -> Result<Code, Failure> {
    match &args.command {
        FleetCommand::Up { listen, fleet } => up(listen, fleet),
        FleetCommand::Agent { bus, name, machine, clock_ahead_ms, says_version } => {
            let hello = Hello {
                name: name.clone().unwrap_or_else(host_name),
                machine: machine.clone().unwrap_or_else(machine_id),
                instance: format!("{:08x}{:08x}", random_u32(), random_u32()),
                version: says_version.clone(),
                cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64),
                run: None,
            };
            serve(bus, hello, clock_ahead_ms * 1_000_000)
        }
        FleetCommand::Run(args) => run(args),
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
    super::run::run(&run_of(&args.command)?)
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

fn up(listen: &str, name: &FleetName) -> Result<Code, Failure> {
    if server::find().is_none() {
        return Err(Failure::new(Code::Unusable, server::no_server()));
    }
    let FleetName { fleet, dir } = name;
    let cannot = |error: &std::io::Error| rundir::cannot(dir, error);
    let configured = server::configure(dir, listen, fleet, &new_token).map_err(|error| cannot(&error))?;
    let stop = signals::watch()?;
    let mut running = server::start(&configured, temp::ending_with_us)?;
    for (file, url) in [(CONTROL_URL, &running.control_url), (AGENT_URL, &running.agent_url)] {
        server::write_private(&dir.join(file), url).map_err(|error| cannot(&error))?;
    }
    ui::product(&format!(
        "fleet {fleet}: nats-server on {}; configuration, tokens and log are in {dir}\n\
         on each host:  NATS_URL={} assay fleet agent\n\
         from here:     assay fleet run -- run\n",
        running.listen,
        running.agent_url,
        dir = dir.display(),
    ))?;
    loop {
        if let Some(status) = running.child.try_wait().map_err(|error| cannot(&error))? {
            let last = server::last_words(&dir.join("nats.log"));
            return Err(Failure::new(Code::Unusable, format!("nats-server ended ({status}): {last}")));
        }
        if stop.requested() {
            // It saves what is kept when it is asked to end.
            let pid = rustix::process::Pid::from_child(&running.child);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            let _ = running.child.wait();
            return Ok(Code::Good);
        }
        std::thread::sleep(LOOK);
    }
}

/// Where the server is, by the option, the environment or the directory of `up`.
fn address(bus: &BusArgs, file: &str) -> Result<Address, Failure> {
    let FleetName { fleet, dir } = &bus.fleet;
    let of_environment = || std::env::var("NATS_URL").ok().filter(|url| !url.is_empty());
    let of_file = || bounded::text(&dir.join(file), bounded::SECRET).ok();
    let url = bus.nats.clone().or_else(of_environment).or_else(of_file).ok_or_else(|| {
        let here =
            if server::find().is_some() { "`assay fleet up` starts one".to_owned() } else { server::no_server() };
        Failure::new(Code::Unusable, format!("no NATS server is named by NATS_URL or --nats; {here}"))
    })?;
    Ok(Address { url: url.trim().to_owned(), fleet: fleet.clone() })
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Of the machine, not the address; the hash tells nobody the id itself.
fn machine_id() -> String {
    let id = bounded::text(Path::new("/etc/machine-id"), bounded::SECRET).unwrap_or_else(|_| host_name());
    message::hex(format!("assay {}", id.trim()).as_bytes())[..16].to_owned()
}

fn serve(bus: &BusArgs, hello: Hello, clock_ahead_ns: i64) -> Result<Code, Failure> {
    let address = address(bus, AGENT_URL)?;
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
        process.args(["--quiet", "fleet-part"]);
        process.args(numbers.iter().flat_map(|(flag, number)| [(*flag).to_owned(), number.to_string()]));
        process.arg("--").args(share.words);
        process
    };
    let stop = signals::watch()?;
    agent::serve(&Options { address, hello, clock_ahead_ns, launch: &launch }, &stop, &mut |line| ui::say(line))?;
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
    let words = if args.take.is_none() { words(args)? } else { Vec::new() };
    let address = address(&args.bus, CONTROL_URL)?;
    let stop = signals::watch()?;
    let mut shown = Shown(progress::Line::new());
    let gathered = match &args.take {
        Some(run) => controller::take(&address, run, lost_after, &stop, &mut shown)?,
        None => {
            let id = rundir::new_id();
            let place = rundir::place(args.output.as_deref(), assay_slob::NAME, &id);
            rundir::refuse_used(&place)?;
            let asked = Asked {
                address: address.clone(),
                run: id,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                seed: seed_of(&words).unwrap_or_else(|| u64::from(random_u32())),
                words,
                hosts: args.hosts.map(|hosts| hosts as usize),
                wait,
                lost_after,
                dead_man,
            };
            controller::run(&asked, &stop, &mut shown)?
        }
    };
    drop(shown);
    let run = gathered.plan.spec.run.clone();
    let code = leave(args, &gathered, &stop)?;
    // Only what is written is forgotten.
    if let Err(error) = controller::forget(&address, &run) {
        ui::say(&format!("notice: run {run} is still kept at the server: {error}"));
    }
    Ok(code)
}

/// The seed among the settings.
fn seed_of(words: &[String]) -> Option<u64> {
    words.iter().find_map(|word| word.strip_prefix("SEED=")?.parse().ok())
}

/// What can be added over hosts, of the commands there are. The controller asks, and each host again: nobody on the bus has it do
/// anything else.
fn run_of(command: &[String]) -> Result<RunArgs, Failure> {
    let parsed = Cli::try_parse_from(std::iter::once("assay").chain(command.iter().map(String::as_str)));
    let parsed = parsed
        .map_err(|error| Failure::usage(format!("the command behind --: {}", error.render().to_string().trim())))?;
    let Command::Run(asked) = parsed.command else {
        return Err(Failure::usage(format!(
            "`{}` cannot run on a fleet yet; `run` can, whose readings are counts and buckets that add up over hosts",
            command.first().map_or("", String::as_str)
        )));
    };
    let refused = [
        ("-o", asked.more.output.is_some(), "the fleet's own -o stands before --"),
        ("--repeat", asked.more.repeat > 1, "repeat the command"),
        ("--dry-run", asked.more.dry_run, "`assay run --dry-run` shows the plan of one host"),
        ("--at", !asked.more.at.is_empty(), "a command of --at runs on one host"),
        ("--live", asked.more.live.is_some(), "a fleet has no live page yet"),
    ];
    if let Some((option, _, way_out)) = refused.into_iter().find(|(_, is_given, _)| *is_given) {
        return Err(Failure::usage(format!("{option} has no meaning behind --: {way_out}")));
    }
    Ok(asked)
}

/// The command as every host is given it: what was set here by options, a file or the environment, and nothing else.
fn words(args: &FleetRunArgs) -> Result<Vec<String>, Failure> {
    let asked = run_of(&args.command)?;
    let more = &asked.more;
    let configured = configure::configure(&asked.settings, more.flags.said.clone())?;
    fits(&configured)?;
    let mut words = vec!["run".to_owned()];
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
    if !configured.target.counts_alone() {
        return Err(Failure::usage(format!(
            "{}: a fleet runs on targets whose data each host has for itself (native:DIR, null:) so far; every host would count all \
             of this server's work, and their sum would be wrong",
            configured.shown()
        )));
    }
    let of_one =
        [("TRACE", "belongs to one host"), ("UNTIL", "would end each host at a time of its own: give a time (--time)")];
    match of_one.into_iter().find(|(name, _)| !configured.settings.text(name).is_empty()) {
        None => Ok(()),
        Some((name, why)) => Err(Failure::usage(format!("{name} {why}; leave it out on a fleet"))),
    }
}

/// Writes the record and prints the product.
fn leave(args: &FleetRunArgs, gathered: &Gathered, stop: &Stop) -> Result<Code, Failure> {
    let mut series = SeriesBuilder::default();
    let max_skew = args.max_skew.as_deref().map(|text| duration("--max-skew", text, Duration::ZERO)).transpose()?;
    let max_skew_ns = max_skew.map(|skew| skew.as_nanos() as Ns);
    let FleetRun { data, fleet, is_partial } = of(gathered, max_skew_ns, &mut |piece| match piece {
        Piece::Activity(activity) => series.activity(activity.clone()),
        Piece::Step(from, to) => series.push(from, to),
    });
    if fleet.measured_count == 0 {
        let lines = gathered.hosts.iter().map(|host| format!("{}: {}", host.hello.name, host.lost)).collect();
        return Err(Failure { code: Code::Unusable, lines });
    }
    let mut record = record::of(&data, series);
    record.parts.put(&fleet);
    assay_report::kinds::attach_metrics(&mut record);
    let dir = RunDir::create(rundir::place(args.output.as_deref(), &data.workload, &data.run_id))?;
    let written = record::write(&dir, &record);
    answer::product(&record, args.format, dir.path())?;
    written?;
    ui::say(&format!("record: {}", dir.path().display()));
    let code = perform::code_of_run(&record, stop);
    Ok(if code == Code::Good && is_partial { Code::Invalid } else { code })
}
