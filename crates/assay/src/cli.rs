//! The command line: parsed without side effects.
#![expect(
    rustdoc::broken_intra_doc_links,
    reason = "the comments are the help texts, where brackets mean what may be left out"
)]

mod cost;

pub(crate) use cost::CostArgs;
mod import;

pub(crate) use import::ImportArgs;

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

mod compare;
mod probe;
mod runs;

pub(crate) use compare::{CompareArgs, CompareFace};
pub(crate) use probe::{ProbeArgs, ProbeCommand};
pub(crate) use runs::{ListFormat, RunsArgs, RunsCommand, TrendFormat, WhichArgs};

/// Assays the platform a database will live on.
#[derive(Debug, Parser)]
#[command(
    name = "assay",
    version,
    about = "Assays the platform a database will live on: what it can do, where it stops, and why there",
    after_help = format!(
        "Exit codes: {}.\nSettings: command line > environment ASSAY_<NAME> > file > default; \
         `assay config show --all` lists them all.",
        crate::exit::codes()
    ),
    max_term_width = 100
)]
pub(crate) struct Cli {
    /// On stderr say nothing but warnings, notices and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the SLOB workload and print the report
    ///
    /// With no argument: prepares 4 schemas x 256 MiB in ./assay-data if there is nothing yet,
    /// runs 4 sessions for 30 s and leaves the record in ./assay-runs.
    Run(RunArgs),
    /// Run the workload under rising load: the curve, its knee and where it would end
    ///
    /// One run directory for each step, and the record of the sweep above them. Everything that
    /// `run` takes from a file, the environment or --set holds for every step.
    #[command(
        after_help = "A list gives a curve for each value, and several lists one for each combination: \
                            --set READ_MODE=single,batched --set UPDATE_PCT=0,30.\n\
                            Ctrl-C ends the step under way and summarises what there is."
    )]
    Sweep(SweepArgs),
    /// SLOB's spelling of run: `runit N` or `runit -s N -t M`, with ./slob.conf if it is there
    Runit(RunitArgs),
    /// Create and load the data set, then verify it
    Prepare(PrepareArgs),
    /// SLOB's spelling of prepare: `setup TABLESPACE N`, with ./slob.conf if it is there
    Setup(SetupArgs),
    /// Verify every block of the data set
    Check(DataArgs),
    /// Remove the data set: only what assay created
    Destroy(DestroyArgs),
    /// Kill a loaded native data set and time its recovery
    ///
    /// Several kills under a steady update load at growing checkpoint distances: time to the first
    /// commit and to 95 % of the old rate against log volume, commits lost (none may be), and the
    /// checkpoint distance for a wanted recovery time. Under two minutes. Changes rows, as any run.
    Recovery(RecoveryArgs),
    /// The process that `recovery` kills
    #[command(hide = true)]
    RecoveryLoad(RecoveryLoadArgs),
    /// The probes of the registry
    #[command(flatten)]
    Probe(ProbeCommand),
    /// Measure the bare storage: fio's options, job files and reports
    #[command(disable_help_flag = true)]
    Io(IoArgs),
    /// Read other tools' output into a record
    ///
    /// Recognises by content. Several files make one record if they are parts of one and the same
    /// run; every value keeps the file and line it came from. Report, compare and cost take the
    /// record as any other.
    Import(ImportArgs),
    /// Print the report of a finished run
    Report(ReportArgs),
    /// Compare runs, or groups of repeats, with the first: ratios, intervals and verdicts
    ///
    /// First whether they measured the same thing at all, then every figure per second, per transaction
    /// and per operation. Three repeats and more on both sides (`run --repeat`) are compared by Welch's
    /// test with the noise between runs in it; single runs by their seconds, within-run only.
    #[command(
        after_help = "A gate on a change fires where the change is shown: beyond its limit, and the verdict of that figure \
                            a difference. Beyond its limit and not shown: said on stderr, exit code 0, or 5 with \
                            --fail-if-unsure. A gate that cannot be judged (no figure, not the same test): exit code 4.\n\
                            Keys are those of --format json; any figure can be one."
    )]
    Compare(CompareArgs),
    /// What runs cost on their platforms, by your own dated prices
    ///
    /// Monthly total with every input, cost per 1,000 delivered IOPS, per MB/s and per million
    /// operations, what each price does to it, and where two platforms cost the same.
    Cost(CostArgs),
    /// The runs kept in a directory
    Runs(RunsArgs),
    /// Effective configuration
    Config(ConfigArgs),
    /// Hold a temporary server until standard input ends, and say in a line of JSON where it is
    #[command(hide = true)]
    TempServer(SettingArgs),
    /// The process that keeps a temporary PostgreSQL server
    #[command(hide = true)]
    PostgresKeep,
    /// The process that becomes the PostgreSQL server
    #[command(hide = true)]
    PostgresBecome {
        /// As what
        part: String,
        /// Program and arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<std::ffi::OsString>,
    },
    /// Completion script for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Write the manual: a page for the program and one for each command
    Man(ManArgs),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ManArgs {
    /// Where to: pages that it wrote before are written anew, other files are left alone
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
}

/// Settings every data set command takes.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SettingArgs {
    /// slob.conf, a SLOB banner, pgio.conf or assay.toml
    #[arg(short = 'c', long = "config", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// What to test: native:DIR[,DIR2...], postgres://USER@HOST:PORT/DB, temp:postgres[:VERSION] (a
    /// server for this command alone) or null: [default: native:./assay-data]
    #[arg(long, value_name = "URL")]
    pub(crate) target: Option<String>,
    /// Schemas (SCHEMAS) [default: those loaded, else 4]
    #[arg(short = 's', long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) schemas: Option<String>,
    /// Any parameter, repeatable: --set UPDATE_PCT=30
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// A setting of the temp:postgres server, repeatable: --pg-set shared_buffers=1GB (PG_SET)
    #[arg(long = "pg-set", value_name = "NAME=VALUE")]
    pub(crate) pg_set: Vec<String>,
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
    #[command(flatten)]
    pub(crate) more: RunOnlyArgs,
}

/// Settings of a run alone.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RunOnlyArgs {
    /// Sessions per schema (THREADS_PER_SCHEMA)
    #[arg(short = 't', long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) threads: Option<String>,
    /// Sessions in all, dealt to the schemas in turn (SESSIONS)
    #[arg(
        long,
        value_name = "N",
        allow_hyphen_values = true,
        conflicts_with = "threads"
    )]
    pub(crate) sessions: Option<String>,
    /// Measured window: 30s, 5m, 1h (RUN_TIME)
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) time: Option<String>,
    /// Load before the window (WARMUP) [default: a tenth of the time, at most 30s]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) warmup: Option<String>,
    /// Streams that read one scan table together (SCAN_PARALLEL)
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) parallel: Option<String>,
    /// Master seed of all random streams (SEED) [default: random, printed]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) seed: Option<String>,
    /// Make a database server's reads reach the device, repeatable: buffers, pagecache,
    /// continuous[:MS], cgroup:SIZE, direct (EVICT)
    #[arg(long, value_name = "MODE")]
    pub(crate) evict: Vec<String>,
    /// A name for the run in lists, reports and comparisons (LABEL)
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,
    /// Run directory, new or empty [default: ./assay-runs/TIME-slob-ID, UTC]
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// What to print
    #[arg(long, value_enum, default_value_t = Product::Answer)]
    pub(crate) format: Product,
    /// Run a command beside the load, so long after its start; repeatable: --at 30s 'sync'
    ///
    /// It is a line for sh -c and is never waited for while the load runs. What it says is kept
    /// in the run directory (at-1.out, ...), and the report shows when it ran and how it ended.
    /// One that still runs 10 s after the load is killed.
    #[arg(long = "at", num_args = 2, value_names = ["TIME", "COMMAND"])]
    pub(crate) at: Vec<String>,
    /// So many runs of the same, one after the other: what differs with nothing changed, and so what a
    /// comparison could show. `compare` takes the directory as one group
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) repeat: u64,
    /// Print the plan and touch nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct SweepArgs {
    /// Sessions in all of each step: 1,2,4,8, or auto: doubles until nothing is gained, then fills
    /// in around the knee
    #[arg(long, value_name = "LIST", default_value = "auto")]
    pub(crate) sessions: String,
    /// Most sessions of --sessions auto
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(crate) max_sessions: u64,
    /// CPUs to confine this process to, one curve for each: 1,2
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<String>,
    /// Goal for the 99th percentile of operation latency: finds the highest load that keeps it
    #[arg(long, value_name = "DURATION")]
    pub(crate) p99: Option<String>,
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
    /// Measured window of each step: 30s, 5m, 1h (RUN_TIME)
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) time: Option<String>,
    /// Load before the window of each step (WARMUP) [default: a tenth of the time, at most 30s]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) warmup: Option<String>,
    /// Master seed of all random streams of every step (SEED) [default: random, printed]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) seed: Option<String>,
    /// Make a database server's reads reach the device, repeatable: buffers, pagecache,
    /// continuous[:MS], cgroup:SIZE, direct (EVICT)
    #[arg(long, value_name = "MODE")]
    pub(crate) evict: Vec<String>,
    /// A name for the run in lists, reports and comparisons, the same for every step (LABEL)
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,
    /// The sweep's directory, new or empty [default: ./assay-runs/TIME-sweep-ID, UTC]
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// What to print
    #[arg(long, value_enum, default_value_t = Product::Answer)]
    pub(crate) format: Product,
    /// Print the plan and touch nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RunitArgs {
    /// Schemas, as -s
    #[arg(value_name = "N", conflicts_with = "schemas")]
    pub(crate) count: Option<String>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct PrepareArgs {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
    /// Master seed of the load (SEED) [default: random, printed]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) seed: Option<String>,
    /// Block device of the target whose whole content may be overwritten, repeatable; never one in use
    #[arg(long, value_name = "PATH_OR_DEVICE")]
    pub(crate) destroy: Vec<PathBuf>,
    /// How to print the load summary
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Print the plan and touch nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct SetupArgs {
    /// Tablespace of the original; has no meaning on the native target
    #[arg(value_name = "TABLESPACE")]
    pub(crate) tablespace: String,
    /// Schemas, as -s
    #[arg(value_name = "N", conflicts_with = "schemas")]
    pub(crate) count: String,
    #[command(flatten)]
    pub(crate) prepare: PrepareArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct DataArgs {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct DestroyArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Print what would be removed and touch nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RecoveryArgs {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
    /// Checkpoint distances, one kill each: 16M,64M,200M [default: a sixteenth, a quarter and half of
    /// what the log files allow]
    #[arg(long, value_name = "LIST")]
    pub(crate) distances: Option<String>,
    /// Wanted time from the restart to the first commit, for the recommendation
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub(crate) rto: String,
    /// Load before each kill at most, and the time the old rate may take to come back
    #[arg(long, value_name = "DURATION", default_value = "15s")]
    pub(crate) time: String,
    /// A name for the run in lists, reports and comparisons (LABEL)
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,
    /// Run directory, new or empty [default: ./assay-runs/TIME-recovery-ID, UTC]
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// What to print
    #[arg(long, value_enum, default_value_t = Product::Answer)]
    pub(crate) format: Product,
    /// Print the plan and touch nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RecoveryLoadArgs {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
    /// Where commits are written down
    #[arg(long)]
    pub(crate) journal: PathBuf,
    /// LOG_CHECKPOINT_INTERVAL
    #[arg(long)]
    pub(crate) interval: String,
    /// RUN_TIME
    #[arg(long)]
    pub(crate) time: String,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct IoArgs {
    /// Job files and options as fio's; `assay io --help` shows ours beside them
    #[arg(
        value_name = "JOBFILE|OPTION",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) words: Vec<String>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ReportArgs {
    /// Run directory, record.json, id, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Where ids are looked up
    #[arg(long, value_name = "DIR", default_value = "assay-runs")]
    pub(crate) dir: PathBuf,
    /// Which face of the record
    #[arg(long, value_enum, default_value_t = Face::Full)]
    pub(crate) format: Face,
    /// Prices for --format brief, as of `assay cost`
    #[arg(long = "prices", alias = "cost", value_name = "FILE")]
    pub(crate) cost: Option<PathBuf>,
    /// The platform of --prices [default: by label or host name]
    #[arg(long, value_name = "NAME", requires = "cost")]
    pub(crate) platform: Option<String>,
    /// Write it there instead of to stdout
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Plotting script of --format html: in the page, or once beside many pages
    #[arg(long, value_enum, default_value_t = AssetsChoice::Embed)]
    pub(crate) assets: AssetsChoice,
}

/// Where a page has its plotting script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum AssetsChoice {
    /// In the page: one file that needs nothing else
    #[default]
    Embed,
    /// In assay-plotly.js beside it, or above the run directory
    Shared,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// What differs from the defaults, and who said so; secrets are starred
    Show {
        #[command(flatten)]
        settings: SettingArgs,
        #[command(flatten)]
        more: ShowArgs,
    },
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ShowArgs {
    /// Sessions per schema (THREADS_PER_SCHEMA)
    #[arg(short = 't', long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) threads: Option<String>,
    /// Measured window (RUN_TIME)
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) time: Option<String>,
    /// Load before the window (WARMUP)
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) warmup: Option<String>,
    /// Streams that read one scan table together (SCAN_PARALLEL)
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) parallel: Option<String>,
    /// Master seed (SEED)
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) seed: Option<String>,
    /// How a database server's reads are made to reach the device (EVICT)
    #[arg(long, value_name = "MODE")]
    pub(crate) evict: Vec<String>,
    /// Every parameter with its value, its origin and what it means; JSON and slob.conf always have all
    #[arg(long)]
    pub(crate) all: bool,
    /// How to print it: a table, JSON, or a slob.conf
    #[arg(long, value_enum, default_value_t = ShowFormat::Text)]
    pub(crate) format: ShowFormat,
}

/// Formats of most commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// What a command that leaves a record prints of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Product {
    /// How much, how steady, what limits it, how far to trust it, what next
    #[default]
    Answer,
    /// The whole report, as in report.txt
    #[value(alias = "text")]
    Full,
    /// record.json
    Json,
}

/// Faces of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Face {
    /// The whole report, AWR-style
    #[default]
    #[value(alias = "text")]
    Full,
    /// The answer on one screen, as the command that made the record printed it
    Answer,
    /// record.json
    Json,
    /// One page with charts that opens offline
    Html,
    /// The one page a manager reads; of a sweep the page of its goal or knee
    Brief,
    /// The per-second series
    Csv,
    /// Every figure of the summary, a line each, with unit and reason
    CsvSummary,
    /// The summary for a monitoring system: OpenMetrics text, in seconds and bytes
    Openmetrics,
    /// The series as OpenMetrics text with times, for backfilling a time series database
    OpenmetricsSeries,
    /// One pipe-separated line under its header and units
    Summary,
    /// pgio's result line and rows, of a run against a server
    Pgio,
}

/// Formats of `config show`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShowFormat {
    /// A table
    #[default]
    Text,
    /// For programs
    Json,
    /// A file that reads back the same
    SlobConf,
}
