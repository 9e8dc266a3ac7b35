//! `fleet run -- sweep`: every step is a run of all hosts.

use super::{Asked, LIVE, OUTPUT, Refused, leave, recorded, watched, words_of};
use crate::cli::{FleetRunArgs, SweepArgs};
use crate::commands::shown::Shown;
use crate::commands::sweep::{self, OverHosts};
use crate::exit::{Code, Failure};
use crate::rundir;
use assay_control::fleet::controller::{self, Watcher};
use assay_run::stop::Stop;

/// The command, and the kind of its record.
pub(super) const NAME: &str = "sweep";

pub(super) fn of(asked: SweepArgs) -> (Asked, Refused) {
    let refused = vec![
        ("-o", asked.output.is_some(), OUTPUT),
        ("--dry-run", asked.dry_run, "`assay sweep --dry-run` shows the plan of one host"),
        ("--cpus", asked.cpus.is_some(), "it confines one process; start the agents on the CPUs that they may use"),
        ("--live", asked.live.live.is_some(), LIVE),
    ];
    (Asked::Sweep(Box::new(asked)), refused)
}

/// Has the same hosts run one step after the other, and writes the sweep above their records.
pub(super) fn run(
    args: &FleetRunArgs,
    swept: SweepArgs,
    asked: &mut controller::Asked,
    are_borrowed: bool,
    stop: &Stop,
    watcher: &mut dyn Watcher,
) -> Result<Code, Failure> {
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
