//! `fit` at the command line.

use super::ProbeArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub(crate) struct FitArgs {
    /// AWR or Statspack reports, runs of assay, or URLs of servers (postgres:, mysql:) whose statistics are watched while they
    /// work; of several the one with the peak is taken; last, a directory on the storage that
    /// the database is to have [default: .]
    #[arg(value_name = "REPORT... [PATH]", required = true)]
    pub(crate) words: Vec<PathBuf>,
    /// What the load needs, without offering it: no box is needed, and nothing is written but with -o
    #[arg(long, conflicts_with_all = ["dry_run", "size", "time", "anyway"])]
    pub(crate) plan_only: bool,
    /// How long a server is watched, from 10s to 24h [default: 60s]
    #[arg(long, value_name = "TIME")]
    pub(crate) interval: Option<String>,
    /// A price file as `assay cost` reads it: the cheapest shape that holds the load
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// Offers the load to this server instead of the native target: a data set is loaded there, and goes at the end
    #[arg(long, value_name = "URL", conflicts_with_all = ["plan_only"])]
    pub(crate) target: Option<String>,
    /// Seconds of each step's window
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub(crate) time: String,
    /// Bytes of the data that are read and written [default: 4G, less where there is no room]
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<String>,
    /// Measure although other processes keep the host busy
    #[arg(long)]
    pub(crate) anyway: bool,
    #[command(flatten)]
    pub(crate) record: ProbeArgs,
}
