//! `platform` at the command line.

use super::ProbeArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub(crate) struct PlatformArgs {
    /// A directory on the storage that the database is to have
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) path: PathBuf,
    /// Some five minutes; the default
    #[arg(long, conflicts_with = "full")]
    pub(crate) quick: bool,
    /// The same tests for an hour
    #[arg(long)]
    pub(crate) full: bool,
    /// Another host where `assay ping server` and `assay net server` run: adds round trips and throughput
    #[arg(long, value_name = "HOST")]
    pub(crate) peer: Option<String>,
    /// Limits of your own: a TOML file with a table for each need, `warn` and `fail`
    #[arg(long, value_name = "FILE")]
    pub(crate) goals: Option<PathBuf>,
    /// Measure although other processes keep the host busy
    #[arg(long)]
    pub(crate) anyway: bool,
    /// Bytes of the file that is read and written [default: 2G, less where there is no room]
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<String>,
    /// These tests alone, a second each
    #[arg(long, value_name = "TESTS", hide = true, value_delimiter = ',', conflicts_with_all = ["quick", "full"])]
    pub(crate) brief: Vec<String>,
    #[command(flatten)]
    pub(crate) record: ProbeArgs,
}
