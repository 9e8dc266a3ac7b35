//! The command line of `runs`.

use super::format::{self, CSV, HTML, JSON, TEXT};
use assay_report::formats::Format;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    pub(crate) command: RunsCommand,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// One line per run, oldest first
    List {
        #[command(flatten)]
        which: WhichArgs,
        /// A figure to show beside each run, repeatable: reads_per_s, op_us_p99; the keys of
        /// `assay report RUN --format metrics-csv`
        #[arg(long, value_name = "KEY")]
        metric: Vec<String>,
        /// Format of the list
        #[arg(long, value_parser = format::of_others(&[TEXT, JSON, CSV, HTML]), default_value = TEXT)]
        format: &'static str,
        /// Write the list to this file; the links of a page are relative to it
        #[arg(short = 'o', long = "output", value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// A run's card: what ran, where, how it ended, its files
    Show {
        /// Run directory, id, or `last`
        #[arg(default_value = "last")]
        run: String,
        /// Where to look up ids
        #[arg(long, value_name = "DIR", default_value = "assay-runs")]
        dir: PathBuf,
        /// Print this form of its report instead of the card
        #[arg(long, value_parser = format::of_record())]
        format: Option<&'static Format>,
    },
    /// Remove runs: only directories that contain a run of assay
    ///
    /// On a terminal assay first lists what it will remove, and asks.
    Rm {
        /// Run directories or ids
        #[arg(required = true)]
        runs: Vec<String>,
        /// Where to look up ids
        #[arg(long, value_name = "DIR", default_value = "assay-runs")]
        dir: PathBuf,
        /// Do not ask, as assay does on a terminal
        #[arg(short, long)]
        yes: bool,
    },
    /// Show, add and remove the tags of a run
    ///
    /// assay keeps tags in the run's directory (`tags`), so they move with it. `--tag` of list and trend
    /// finds them by name, by key, or by key=value.
    Tag {
        /// Run directory, id, or `last`
        run: String,
        /// +NAME adds, -NAME removes (a tag, or a key's value), KEY=VALUE sets; without arguments assay shows the tags
        #[arg(value_name = "CHANGE", allow_hyphen_values = true)]
        changes: Vec<String>,
        /// Where to look up ids
        #[arg(long, value_name = "DIR", default_value = "assay-runs")]
        dir: PathBuf,
    },
    /// A figure over the runs of one target, oldest first, with its usual range
    Trend {
        /// Key of the figure: ops_per_s, read_us_p99, ...
        #[arg(value_name = "METRIC")]
        metric: String,
        #[command(flatten)]
        which: WhichArgs,
        /// Output format
        #[arg(long, value_parser = format::of_others(&[TEXT, JSON, CSV, HTML]), default_value = TEXT)]
        format: &'static str,
    },
    /// Read every record again; needed only if you do not trust the catalogue
    Rebuild {
        /// Directory of run directories
        #[arg(long, value_name = "DIR", default_value = "assay-runs")]
        dir: PathBuf,
    },
    /// Rebuild the record of a killed run from its series
    Recover {
        /// Run directory, id, or `last`
        run: String,
        /// Where to look up ids
        #[arg(long, value_name = "DIR", default_value = "assay-runs")]
        dir: PathBuf,
    },
}

/// Which runs to select; a run must match all criteria.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct WhichArgs {
    /// Directory of run directories
    #[arg(long, value_name = "DIR", default_value = "assay-runs")]
    pub(crate) dir: PathBuf,
    /// Runs with this label; repeatable, any of them matches
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Vec<String>,
    /// Runs with this tag; repeatable, all must match; NAME, KEY or KEY=VALUE
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// slob, storage, sync, recovery, sweep, repeat, killed, ... or import for all imported runs; repeatable
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Vec<String>,
    /// slob, io, sync, ...
    #[arg(long, value_name = "NAME")]
    pub(crate) workload: Option<String>,
    /// The target, by the word that its URL begins with
    #[arg(long, visible_alias = "target", value_name = "NAME")]
    pub(crate) engine: Option<String>,
    /// Name of the host it ran on
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// complete, incomplete, invalid, ...
    #[arg(long, value_name = "WORD")]
    pub(crate) verdict: Option<String>,
    /// Started at this time or later: 2026-03-01, 2026-03-01T14:30 (UTC), or a time ago: 7d, 12h; of an import the time
    /// at which its source says that it was measured, and one without such a time is left out
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Started at this time or earlier, including the whole day or minute
    #[arg(long, value_name = "WHEN")]
    pub(crate) until: Option<String>,
    /// The newest N of them
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}
