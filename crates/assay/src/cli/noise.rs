//! `noise` at the command line.

use super::SettingArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub(crate) struct NoiseArgs {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
    /// The difference that is to be seen
    #[arg(long, value_name = "P%", default_value = "3%")]
    pub(crate) detect: String,
    /// Measuring time of all eight rounds, 2m to 24h
    #[arg(long, value_name = "DURATION", default_value = "2m")]
    pub(crate) time: String,
    /// Directory of the rounds, new or empty [default: ./assay-runs/TIME-slob-ID, UTC]
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// How to print the result
    #[arg(long, value_parser = super::format::of_others(&[super::TEXT, super::JSON]), default_value = super::TEXT)]
    pub(crate) format: &'static str,
    /// Print the plan of a round and touch nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}
