//! The command line of `compare`.

use super::format::{self, ANSWER, FULL, HTML, JSON};
use clap::Args;
use std::path::PathBuf;

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct CompareArgs {
    /// Two or more groups, the first is the baseline: a run directory, record.json, id, `last`, a directory
    /// of repeats, or a comma-separated list of these as one group
    #[arg(value_name = "RUN", required = true, num_args = 2..)]
    pub(crate) runs: Vec<String>,
    /// Where to look up ids
    #[arg(long, value_name = "DIR", default_value = "assay-runs")]
    pub(crate) dir: PathBuf,
    /// Exit with code 5 if this holds, repeatable: 'reads_per_s < -5%' (a statistically shown change against
    /// the baseline), 'read_us_p99 > 5ms' (the value itself); with code 4 if it cannot be judged
    #[arg(long = "fail-if", value_name = "KEY<LIMIT", allow_hyphen_values = true)]
    pub(crate) fail_if: Vec<String>,
    /// Exit with code 5, not 4, on a change beyond its limit that cannot be told from noise
    #[arg(long)]
    pub(crate) fail_if_unsure: bool,
    /// What you varied on purpose, repeatable: a parameter (CACHE_MB), a host fact (cpus_usable,
    /// device_mount_options) or a word from a condition (sessions). Without this a difference may prevent a
    /// verdict
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) allow: Vec<String>,
    /// Print the whole comparison and list the conditions that are the same too; a page folds them
    #[arg(long)]
    pub(crate) same: bool,
    /// Your prices, a dated TOML file such as `assay cost --example` prints: adds cost to the figures
    #[arg(long = "prices", alias = "cost", value_name = "FILE")]
    pub(crate) cost: Option<PathBuf>,
    /// The platform of all groups, or repeated: of each group in order [default: by label or host]
    #[arg(long, value_name = "NAME", requires = "cost")]
    pub(crate) platform: Vec<String>,
    /// Form of the comparison [default: answer]
    #[arg(long, value_parser = format::of_others(&[ANSWER, FULL, JSON, HTML]))]
    pub(crate) format: Option<&'static str>,
    /// Write it to a file instead of standard output; without --format the whole comparison, as a page if the name ends
    /// in .html, as JSON if in .json, else as text, and the answer to standard output
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
