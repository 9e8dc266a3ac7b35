//! The command line of `compare`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub(crate) struct CompareArgs {
    /// Two or more, the first is the baseline: a run directory, record.json, id, `last`, a directory
    /// of repeats, or a comma list of such that is one group
    #[arg(value_name = "RUN", required = true, num_args = 2..)]
    pub(crate) runs: Vec<String>,
    /// Where ids are looked up
    #[arg(long, value_name = "DIR", default_value = "assay-runs")]
    pub(crate) dir: PathBuf,
    /// Exit with code 5 if this holds, repeatable: 'reads_per_s < -5%' (change against the baseline,
    /// shown and not only seen), 'read_us_p99 > 5ms' (the value itself)
    #[arg(long = "fail-if", value_name = "KEY<LIMIT", allow_hyphen_values = true)]
    pub(crate) fail_if: Vec<String>,
    /// Let a change beyond its limit fail even where it is not shown
    #[arg(long)]
    pub(crate) fail_if_unsure: bool,
    /// What you varied on purpose, repeatable: a parameter (CACHE_MB), a fact of the host (cpus_usable,
    /// device_mount_options) or a word of a condition (sessions). Without it a difference may forbid a verdict
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) allow: Vec<String>,
    /// List the conditions that are the same as well; a page folds them
    #[arg(long)]
    pub(crate) same: bool,
    /// Your prices, a dated TOML file as `assay cost --example` prints one: cost stands among the figures
    #[arg(long = "prices", alias = "cost", value_name = "FILE")]
    pub(crate) cost: Option<PathBuf>,
    /// The platform of all groups, or repeated: of each group in their order [default: by label or host]
    #[arg(long, value_name = "NAME", requires = "cost")]
    pub(crate) platform: Vec<String>,
    /// Which face of the comparison
    #[arg(long, value_enum, default_value_t = CompareFace::Text)]
    pub(crate) format: CompareFace,
    /// Write it to a file instead of standard output
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Faces of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompareFace {
    /// Tables for people
    #[default]
    Text,
    /// For programs: schema assay-compare/1
    Json,
    /// One page with charts that opens offline
    Html,
}
