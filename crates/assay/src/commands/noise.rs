//! `noise`: identical runs, one after the other, and how long two sides must be measured here to see a difference.

use super::flag_time::time_within;
use super::run;
use crate::cli::format::{FULL, JSON};
use crate::cli::{NoiseArgs, RunArgs, RunOnlyArgs};
use crate::configure::said;
use crate::exit::{Code, Failure};
use assay_measure::precision::share_of;
use assay_report::formats::find;
use std::time::Duration;

/// Rounds: the scatter of eight is known to a factor of two.
const ROUNDS: u32 = 8;

/// A round of 15 s has the batches that a comparison takes of one.
const LEAST: Duration = Duration::from_mins(2);
const MOST: Duration = Duration::from_secs(24 * 3600);

pub(super) fn noise(args: NoiseArgs) -> Result<Code, Failure> {
    let refused = || Failure::usage(format!("--detect {}: give a share of 0.5% to 50%", args.detect));
    let detect = share_of(&args.detect).filter(|share| (0.005..=0.5).contains(share)).ok_or_else(refused)?;
    let time = time_within("--time", &args.time, LEAST..=MOST, "2m to 24h")?;
    let round = format!("{}s", (time / ROUNDS).as_secs());
    let mut more = RunOnlyArgs {
        output: args.output,
        format: find(if args.format == JSON { JSON } else { FULL }).unwrap_or_default(),
        repeat: u64::from(ROUNDS),
        detect: Some(detect),
        dry_run: args.dry_run,
        ..RunOnlyArgs::default()
    };
    more.flags.said.extend(said("--time", "RUN_TIME", Some(&round)));
    run::run(&RunArgs { settings: args.settings, more })
}
