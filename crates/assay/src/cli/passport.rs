//! `passport` and `accept` at the command line.

use super::ProbeArgs;
use clap::Args;
use std::path::PathBuf;

/// What both are told.
#[derive(Clone, Debug, Args)]
pub(crate) struct BoxArgs {
    /// A directory on the storage that the database is to have
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) path: PathBuf,
    /// Another host where `assay ping server` and `assay net server` run: adds round trips and throughput
    #[arg(long, value_name = "HOST")]
    pub(crate) peer: Option<String>,
    #[command(flatten)]
    pub(crate) record: ProbeArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct PassportArgs {
    /// The file to write; it must not exist
    #[arg(long, value_name = "FILE", default_value = "passport.json")]
    pub(crate) file: PathBuf,
    /// What all rounds take, 40s to 1h; `accept` takes as long [default: 90s]
    #[arg(long, value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// Bytes of the file that is read and written [default: 1G, less where there is no room]
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<String>,
    /// Measure although other processes keep the host busy
    #[arg(long)]
    pub(crate) anyway: bool,
    #[command(flatten)]
    pub(crate) of: BoxArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct AcceptArgs {
    /// The file that `assay passport` wrote
    #[arg(value_name = "PASSPORT")]
    pub(crate) passport: PathBuf,
    #[command(flatten)]
    pub(crate) of: BoxArgs,
}
