//! `fleet run -- sweep`: every step is a run of all hosts.

use super::{LIVE, OUTPUT, Refused, leave, recorded, watched, words_of};
use crate::cli::{Cli, Command, FleetRunArgs, SweepArgs};
use crate::commands::shown::Shown;
use crate::commands::sweep::{self, OverHosts};
use crate::exit::{Code, Failure};
use crate::rundir;
use assay_control::fleet::controller::{self, Watcher};
use assay_run::stop::Stop;
use clap::Parser;

/// The command, and the kind of its record.
pub(super) const NAME: &str = "sweep";

/// What has no meaning behind `--`.
pub(super) fn refused(asked: &SweepArgs) -> Refused {
    vec![
        ("-o", asked.output.is_some(), OUTPUT),
        ("--dry-run", asked.dry_run, "`assay sweep --dry-run` shows the plan of one host"),
        ("--cpus", asked.cpus.is_some(), "it confines one process; start the agents on the CPUs that they may use"),
        ("--live", asked.live.live.is_some(), LIVE),
    ]
}

/// Has the same hosts run one step after the other, and writes the sweep above their records.
pub(super) fn run(
    args: &FleetRunArgs,
    asked: &mut controller::Asked,
    are_borrowed: bool,
    stop: &Stop,
    watcher: &mut dyn Watcher,
) -> Result<Code, Failure> {
    let words = std::iter::once("assay").chain(args.command.iter().map(String::as_str));
    let Command::Sweep(swept) = Cli::parse_from(words).command else {
        return Err(Failure::new(Code::Bug, "no sweep"));
    };
    let swept = SweepArgs { output: args.output.clone(), format: args.format, live: args.live.clone(), ..swept };
    let count = controller::present(asked, stop, watcher)?;
    // A step that fewer of them answer for is none of this sweep.
    asked.hosts = Some(count);
    let mut perform = |configured: &_, place: &std::path::Path, deliver: &mut crate::perform::Deliver<'_>| {
        asked.run = rundir::new_id();
        asked.words = words_of(configured)?;
        asked.seed = configured.settings.int("SEED");
        // The page is the sweep's own.
        let known = Some(watched::known(configured, asked));
        let (gathered, watched) = watched::run(Shown::default(), known, asked, place, stop, watcher)?;
        let (record, is_partial) = recorded(args, gathered, are_borrowed)?;
        leave(&asked.address, &record, is_partial, &watched.dir, stop, deliver)
    };
    let fits = |configured: &_| words_of(configured).map(drop);
    sweep::over_hosts(&swept, OverHosts { count: count as u64, fits: &fits, perform: &mut perform })
}
