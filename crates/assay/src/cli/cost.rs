//! `cost` at the command line.

use super::format::{self, ANSWER, FULL, HTML, JSON};
use clap::Args;
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub(crate) struct CostArgs {
    /// Run directories, record.json files, ids, or `last`; without any, the cost of each platform
    #[arg(value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Your prices: a dated TOML file, as --example prints one
    #[arg(long, value_name = "FILE", required_unless_present = "example")]
    pub(crate) prices: Option<PathBuf>,
    /// The platform of all runs, or repeated: of each run in order [default: the one whose name or match has
    /// the run's label or host name]
    #[arg(long, value_name = "NAME")]
    pub(crate) platform: Vec<String>,
    /// Where to look up ids
    #[arg(long, value_name = "DIR", default_value = "assay-runs")]
    pub(crate) dir: PathBuf,
    /// Output format [default: answer]
    #[arg(long, value_parser = format::of_others(&[ANSWER, FULL, JSON, HTML]))]
    pub(crate) format: Option<&'static str>,
    /// Write it to a file instead of standard output; without --format the whole cost, as a page if the name ends in
    /// .html, as JSON if in .json, else as text, and the answer to standard output
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print a commented price file to start from
    #[arg(long, conflicts_with_all = ["runs", "prices", "platform"])]
    pub(crate) example: bool,
}
