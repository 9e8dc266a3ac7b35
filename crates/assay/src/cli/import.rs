//! Arguments of `import`.

use super::format;
use assay_report::formats::Format;
use clap::Args;
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub(crate) struct ImportArgs {
    /// Files to read; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Make a record of each file. Without it, files that belong to one run (fragments of one report, a test card,
    /// the host's statistics, the banner of the SLOB kit beside its AWR) make one record, others one each
    #[arg(long)]
    pub(crate) each: bool,
    /// Name for the record, shown beside its id
    #[arg(short = 'L', long, value_name = "LABEL")]
    pub(crate) label: Option<String>,
    /// Run directory, new or empty; of several records, the directory above them [default:
    /// ./assay-runs/TIME-import-TOOL-ID, UTC]
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// What to print
    #[arg(long, value_parser = format::of_record(), default_value = format::ANSWER)]
    pub(crate) format: &'static Format,
}
