//! `fleet run -- net` and `-- ping`: a test between all pairs of hosts.

use crate::cli::{Cli, Command, FleetRunArgs, ProbeCommand};
use crate::commands::{new_token, probe};
use crate::exit::{Code, Failure};
use crate::rundir::RunDir;
use crate::{answer, fleet_part, perform, record, ui};
use assay_control::fleet::bus::Address;
use assay_control::fleet::controller::{Asked, Watcher};
use assay_control::fleet::pairs::{self, PairsAsked, PairsInfo};
use assay_control::fleet::worker::Said;
use assay_measure::record::Part;
use assay_measure::snapshot::SettingLine;
use assay_run::host;
use assay_run::probe::SERVER;
use assay_run::stop::Stop;
use clap::Parser;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::Write;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// The kind of its records.
pub(super) const NAME: &str = PairsInfo::NAME;
/// The environment of a part: what both ends know.
pub(super) const SECRET: &str = "FLEET_PART_SECRET";
/// The tests that have a peer and harm nobody.
const TESTS: [&str; 2] = ["net", "ping"];
/// Options that are the fleet's to give, or that say something else than a time.
const REFUSED: [(&[&str], &str); 4] = [
    (&["bind", "secret-file"], "is given by the fleet"),
    (&["logfile"], "has no place on a host of a fleet"),
    (&["load"], "needs a second server: measure `net` and `ping` one after the other"),
    (&["count", "bytes", "blockcount", "blocks", "num"], "has no end that is known: give a time (--time)"),
];

/// Whether a command is such a test.
pub(super) fn are_meant(command: &[String]) -> bool {
    command.first().is_some_and(|test| TESTS.contains(&test.as_str()))
}

/// A test with its peer, as its own command line has it.
fn parsed(test: &str, peer: &str, options: &[String]) -> Result<ProbeCommand, Failure> {
    let words = ["assay", test, peer].into_iter().chain(options.iter().map(String::as_str));
    let parsed = Cli::try_parse_from(words);
    let parsed = parsed
        .map_err(|error| Failure::usage(format!("the command behind --: {}", error.render().to_string().trim())))?;
    match parsed.command {
        Command::Probe(command) => Ok(command),
        _ => Err(Failure::usage(format!("{test} is no test of two hosts"))),
    }
}

/// The test and its options as every host is given them.
pub(super) fn words(command: &[String]) -> Result<Vec<String>, Failure> {
    let (test, options) = command.split_first().ok_or_else(|| Failure::usage("no command stands behind --"))?;
    let ProbeCommand { args, .. } = parsed(test, "HOST", options)?;
    let refused = [
        ("-o", args.output.is_some(), "the fleet's own -o stands before --"),
        ("--until", args.until.is_some() || args.at_most.is_some(), "each pair is measured once"),
        ("--dry-run", args.dry_run, "the pairs are those of the hosts that answer"),
        ("--label", args.label.is_some(), "it has one record for all pairs"),
    ];
    if let Some((option, _, why)) = refused.into_iter().find(|(_, is_given, _)| *is_given) {
        return Err(Failure::usage(format!("{option} has no meaning behind -- {test}: {why}")));
    }
    for word in &args.words {
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        if let Some((_, why)) = REFUSED.iter().find(|(names, _)| names.contains(&name)) {
            return Err(Failure::usage(format!("--{name} {why}")));
        }
    }
    let mut words = vec![test.clone()];
    words.extend(args.time.iter().filter(|_| args.time_is_given).map(|time| format!("--time={time}")));
    words.extend(args.words.iter().map(|word| format!("--{word}")));
    Ok(words)
}

/// Tests all pairs, writes the record and prints the product.
pub(super) fn run(
    args: &FleetRunArgs,
    asked: &Asked,
    place: PathBuf,
    stop: &Stop,
    watcher: &mut dyn Watcher,
) -> Result<Code, Failure> {
    let (test, options) = asked.words.split_first().ok_or_else(|| Failure::usage("no command stands behind --"))?;
    let time = parsed(test, "HOST", options)?.args.time;
    let time = time.as_deref().map_or(Ok(std::time::Duration::ZERO), probe::time)?;
    let secret = new_token()?;
    let started = jiff::Timestamp::now().to_string();
    let begun = std::time::Instant::now();
    let (hosts, pairs) = pairs::run(&PairsAsked { asked, secret, time }, stop, watcher)?;
    let info = PairsInfo::of(&asked.words, &hosts, &pairs);
    if info.measured_count == 0 && !stop.requested() {
        let lines = info.pairs.iter().map(|row| format!("{} to {}: {}", row.client, row.server, row.note)).collect();
        return Err(Failure { code: Code::Unusable, lines });
    }
    let settings = options.iter().map(|option| {
        let (name, value) =
            option.trim_start_matches('-').split_once('=').unwrap_or((option.trim_start_matches('-'), "on"));
        SettingLine::new(&name.to_uppercase().replace('-', "_"), value.to_owned(), "cli")
    });
    let mut labels = probe::stamped(NAME, None, settings.collect(), asked.run.clone(), started);
    labels.host = host::facts();
    labels.engine = "fleet".to_owned();
    let mut record = info.record(labels, begun.elapsed().as_secs_f64());
    assay_report::kinds::attach_metrics(&mut record);
    let dir = RunDir::create(place)?;
    let written = record::write(&dir, &record);
    answer::product(&record, args.format, dir.path())?;
    written?;
    ui::say(&format!("record: {}", dir.path().display()));
    let code = perform::code_of_run(&record, stop);
    let is_partial = info.measured_count < info.planned_count;
    Ok(if code == Code::Good && is_partial { Code::Invalid } else { code })
}

/// One end of a pair, as an agent starts it: `net server OPTIONS` or `net ADDRESS OPTIONS`.
pub(super) fn part(command: &[String]) -> Result<Code, Failure> {
    let [test, peer, options @ ..] = command else {
        return Err(Failure::usage("a pair has two ends"));
    };
    // What may be asked for is judged here too: nobody on the bus has this host do anything else.
    let own: Vec<String> = options.iter().filter(|option| !option.starts_with("--bind")).cloned().collect();
    words(&[std::slice::from_ref(test), own.as_slice()].concat())?;
    let options = if peer == SERVER { options } else { own.as_slice() };
    let mut parsed = parsed(test, peer, &bound(options))?;
    let secret = std::env::var(SECRET).unwrap_or_default();
    let held = memory(&secret).map_err(|error| Failure::new(Code::Unusable, format!("the secret: {error}")))?;
    parsed.args.words.push(format!("secret-file=/proc/self/fd/{}", held.as_raw_fd()));
    let stop = Stop::of_process();
    let part = fleet_part::get().ok_or_else(|| Failure::new(Code::Bug, "no part of a fleet"))?;
    if let Some(record) = probe::one_end(&parsed, &stop, &|| part.say(&Said::Ready(None)))? {
        part.measured(&record);
    }
    Ok(Code::Good)
}

/// A name cannot be bound: who has one listens on every address, to who knows the secret.
fn bound(options: &[String]) -> Vec<String> {
    let bound = |word: &String| match word.strip_prefix("--bind=") {
        Some(address) if address.parse::<std::net::IpAddr>().is_err() => "--bind=0.0.0.0".to_owned(),
        _ => word.clone(),
    };
    options.iter().map(bound).collect()
}

/// A file that is nowhere but in memory.
fn memory(text: &str) -> std::io::Result<File> {
    let mut file = File::from(memfd_create("secret", MemfdFlags::empty())?);
    file.write_all(text.as_bytes())?;
    Ok(file)
}

/// The address of this host on the way to the server: others of the fleet reach it there too, unless somebody is in between.
pub(super) fn address_towards(server: &Address) -> String {
    let server = server.server();
    let named = if server.rsplit_once(':').is_some() { server.to_owned() } else { format!("{server}:4222") };
    let found = |any: &str| {
        let socket = UdpSocket::bind(any).ok()?;
        // Nothing is sent.
        socket.connect(&named).ok()?;
        Some(socket.local_addr().ok()?.ip().to_string())
    };
    found("0.0.0.0:0").or_else(|| found("[::]:0")).unwrap_or_else(|| "127.0.0.1".to_owned())
}
