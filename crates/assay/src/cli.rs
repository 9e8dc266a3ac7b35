//! The command line: parsed without side effects.
#![expect(
    rustdoc::broken_intra_doc_links,
    reason = "the comments are the help texts, where brackets mean what may be left out"
)]

mod cost;

pub(crate) use cost::CostArgs;
mod import;

pub(crate) use import::ImportArgs;

use crate::registry;
use assay_report::formats::Format;
use clap::{Args, Parser, Subcommand, ValueEnum};
use format::{JSON, SLOB_CONF, TEXT};
use params::Flags;
use std::path::PathBuf;

mod compare;
mod fit;
mod fleet;
pub(crate) mod format;
mod noise;
mod orders;
pub(crate) mod params;
mod passport;
pub(crate) mod peers;
mod platform;
mod probe;
mod runs;
mod serve;

pub(crate) use compare::CompareArgs;
pub(crate) use fit::FitArgs;
pub(crate) use fleet::{BusArgs, FleetArgs, FleetCommand, FleetName, FleetPartArgs, FleetRunArgs};
pub(crate) use noise::NoiseArgs;
pub(crate) use orders::{OrdersArgs, OrdersCommand};
pub(crate) use passport::{AcceptArgs, BoxArgs, PassportArgs};
pub(crate) use platform::PlatformArgs;
pub(crate) use probe::{ProbeArgs, ProbeCommand, USUAL_AT_MOST, with_two_dashes};
pub(crate) use runs::{RunsArgs, RunsCommand, WhichArgs};
pub(crate) use serve::{LiveArgs, ServeArgs, TlsArgs};

/// Assays the platform for a database.
#[derive(Debug, Parser)]
#[command(
    name = "assay",
    version,
    about = "Assays the platform for a database: what it can do, where it stops, and why it stops there",
    after_help = format!(
        "Exit codes: {}.\nSettings: command line > environment ASSAY_<NAME> > file > default; \
         `assay config show --all` lists them all.",
        crate::exit::codes()
    ),
    max_term_width = 100
)]
pub(crate) struct Cli {
    /// Print only warnings, notices and errors on stderr
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the SLOB workload and print the report
    ///
    /// Without arguments it prepares 4 schemas x 256 MiB in ./assay-data unless they exist, runs 4 sessions
    /// for 30 s and leaves the record in ./assay-runs.
    Run(RunArgs),
    /// Run the workload under rising load: the curve, its knee and its projected end
    ///
    /// Each step has a run directory, and the record of the sweep is above them. All settings that `run`
    /// takes from a file, the environment or --set apply to every step.
    #[command(
        after_help = "A list gives a curve for each value; several lists give a curve for each combination: --set \
            READ_MODE=single,batched --set UPDATE_PCT=0,30.\n\
                            Ctrl-C ends the current step and summarises the finished steps."
    )]
    Sweep(SweepArgs),
    /// SLOB's spelling of run: `runit N` or `runit -s N -t M`, with ./slob.conf if it exists
    Runit(RunitArgs),
    /// Create and load the data set, then verify it
    Prepare(PrepareArgs),
    /// SLOB's spelling of prepare: `setup TABLESPACE N`, with ./slob.conf if it exists
    Setup(SetupArgs),
    /// Verify every block of the data set
    Check(DataArgs),
    /// Remove the data set: only what assay created
    Destroy(DestroyArgs),
    /// Kill a loaded native data set and time its recovery
    ///
    /// assay kills a process under a steady update load several times, at growing checkpoint distances. It
    /// reports the time to the first commit and to 95 % of the old rate against the log volume, the lost
    /// commits (there must be none), and the checkpoint distance for a wanted recovery time. This takes less
    /// than two minutes and, like any run, changes rows.
    Recovery(RecoveryArgs),
    /// The process that `recovery` kills
    #[command(hide = true)]
    RecoveryLoad(RecoveryLoadArgs),
    /// Order entry: a data set of customers and orders, and nine transactions on it
    Orders(OrdersArgs),
    /// This box for a database: every test in one command, one record, one answer
    ///
    /// It runs the tests of its plan one after the other, each with a record of its own below, and says a class that can be
    /// quoted (R50k C8k: reads/s at p99 <= 1 ms, commits/s at p99 <= 5 ms), what a database needs and has here, what the kernel
    /// tells, and settings that follow for this disk. It refuses a host that others keep busy.
    Platform(PlatformArgs),
    /// What this box does, in one small file that another box can be accepted by
    ///
    /// Six rounds of short tests (storage, CPU, memory, clock; with --peer the network) take 90 seconds. The file keeps each
    /// figure of each round, so that `assay accept` knows the noise. Its SHA-256 shows whether the file was changed.
    Passport(PassportArgs),
    /// Whether this box does what a passport says, in 90 seconds
    ///
    /// The same rounds, here. Exit code 5: a figure is worse beyond the noise of both; 4: it is, and what others took of this host
    /// may explain it, or a figure is missing; 0: nothing is worse. A figure is worse where the rounds of both boxes are apart, and even the second
    /// best round here is behind the middle of the passport by 15 to 50 %, by figure.
    Accept(AcceptArgs),
    /// How long must be measured here to see a difference of 3 %: minutes, and repeats
    ///
    /// Eight identical short runs, one after the other (as `run` would, with its settings), show how much their seconds scatter and
    /// how much runs differ when nothing changes. From that follows how many repeats of which length two sides need, at 5 % error and
    /// 80 % power. Exit code 4: it cannot be seen, because the host is not the same from round to round, or would take too long.
    Noise(NoiseArgs),
    /// Whether this box carries the database of a report, and with how much headroom
    ///
    /// From an AWR or Statspack report, or a run of assay, it derives the load (reads, writes, redo, commits per second, the latencies
    /// that were had there), offers it to the storage of PATH as an open loop on the native target, and raises it (1, 1.5, 2, 3 ... x)
    /// until it misses the rate or takes longer than there. The plan with every formula stands before anything is written; the data
    /// set goes at the end. --plan-only says how many IOPS the load needs. Exit code 5: the box does not hold it.
    Fit(FitArgs),
    /// One test on several hosts at the same time: one record, a row for each host
    ///
    /// `fleet up` starts a NATS server here, `fleet agent` on each host waits for work, `fleet run -- run OPTIONS` runs it on all of
    /// them: same version, same settings, started at one instant whose spread is told, counts and histograms added.
    Fleet(FleetArgs),
    /// The process that an agent starts
    #[command(hide = true)]
    FleetPart(FleetPartArgs),
    /// The probes of the registry
    #[command(flatten)]
    Probe(ProbeCommand),
    /// Measure the bare storage with fio's options, job files and reports
    #[command(disable_help_flag = true)]
    Io(IoArgs),
    /// Read other tools' output into a record
    ///
    /// assay recognises files by their content. Several files make one record if they are parts of the same
    /// run; every value keeps its file and line. Report, compare and cost accept the record like any other.
    Import(ImportArgs),
    /// Print the report of a finished run
    Report(ReportArgs),
    /// Compare runs, or groups of repeats, with the first: ratios, intervals and verdicts
    ///
    /// It first shows whether the runs measured the same thing, then every figure per second, per transaction
    /// and per operation. With three or more repeats on both sides (`run --repeat`) Welch's test includes the
    /// noise between runs; single runs are compared by their seconds, within-run only.
    #[command(
        after_help = "A gate on a change fires if the change is beyond the limit and the verdict on the figure is a \
                            difference. A gate that cannot be judged gives exit code 4: the change is beyond the limit but cannot \
                            be told from noise (code 5 under --fail-if-unsure), the figure is missing, or the tests differ.\n\
                            The keys are those of --format json; every figure has one."
    )]
    Compare(CompareArgs),
    /// What runs cost on their platforms, at your own dated prices
    ///
    /// The report has the monthly total with every input, the cost per 1,000 delivered IOPS, per MB/s and per
    /// million operations, the effect of each price, and the point where two platforms cost the same.
    Cost(CostArgs),
    /// The runs kept in a directory
    Runs(RunsArgs),
    /// Show the runs of a directory in a browser, those that go on too, until Ctrl-C
    ///
    /// It prints the URL with its token. Index, page of each run, comparison of two, course of a figure; record.json and metrics
    /// (OpenMetrics) below each run, /metrics of the newest one.
    Serve(ServeArgs),
    /// Effective configuration
    Config(ConfigArgs),
    /// Check on your own server what assay claims about its kind, in about fifteen minutes
    ///
    /// It loads a small data set, runs every kind of operation on it, removes it, and compares the server's counters
    /// with the expected values. One file contains all results, without passwords: attach it to a problem report.
    Selftest(SelftestArgs),
    /// Hold a temporary server until standard input ends, and say in a line of JSON where it is
    #[command(hide = true)]
    TempServer(SettingArgs),
    /// The process that keeps a temporary server
    #[command(hide = true)]
    ServerKeep,
    /// The process that becomes a program of a temporary server
    #[command(hide = true)]
    ServerBecome {
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
    /// What a rule (R14), an identity (I13), a figure's key, a parameter, an exit code or a word of the reports means
    Explain(ExplainArgs),
    /// Write the manual: a page for the program and one for each command
    Man(ManArgs),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ExplainArgs {
    /// As the report prints it, in capitals or not
    #[arg(value_name = "WORD", required = true)]
    pub(crate) word: Vec<String>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ManArgs {
    /// Directory for the pages: assay rewrites its own pages and leaves other files alone
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
}

/// Settings that every data set command takes.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SettingArgs {
    /// slob.conf, a SLOB banner, pgio.conf or assay.toml
    #[arg(short = 'c', long = "config", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[arg(long, value_name = "URL", help = registry::help_of(assay_slob::NAME) + " [default: native:./assay-data]")]
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
    /// Whose data set; SLOB's where none is named
    #[arg(skip)]
    pub(crate) workload: Option<&'static str>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct SelftestArgs {
    /// The target, as --target
    #[arg(value_name = "URL", conflicts_with = "target")]
    pub(crate) url: Option<String>,
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
    /// Duration of each of its seven runs
    #[arg(long, value_name = "D", default_value = "60s")]
    pub(crate) time: String,
    /// The file to send back [default: assay-selftest.json]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
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
    #[command(flatten)]
    pub(crate) flags: Flags<{ params::RUN }>,
    /// Run directory, new or empty [default: ./assay-runs/TIME-slob-ID, UTC]
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// What to print
    #[arg(long, value_parser = format::of_record(), default_value = format::ANSWER)]
    pub(crate) format: &'static Format,
    /// Run a command during the load, this long after its start; repeatable: --at 30s 'sync'
    ///
    /// The command is a line for sh -c; the load never waits for it. assay keeps its output in the run
    /// directory (at-1.out, ...), and the report shows when it ran and how it ended. assay kills a command
    /// that still runs 10 s after the load.
    #[arg(long = "at", num_args = 2, value_names = ["TIME", "COMMAND"])]
    pub(crate) at: Vec<String>,
    /// Number of identical runs, one after the other: they show the noise, and so what a comparison can show.
    /// `compare` takes the directory as one group
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) repeat: u64,
    /// The share of a figure that repeats are to show.
    #[arg(skip)]
    pub(crate) detect: Option<f64>,
    #[command(flatten)]
    pub(crate) live: LiveArgs,
    #[command(flatten)]
    pub(crate) push: PushArgs,
    /// Print the plan and touch nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PushArgs {
    /// Send the figures to a monitoring system every 10 s while the run goes on, and at its end: by Prometheus' remote
    /// write, such as http://127.0.0.1:9090/api/v1/write, or by OTLP where the path ends in /v1/metrics, such as
    /// http://127.0.0.1:4318/v1/metrics
    #[arg(long, value_name = "URL")]
    pub(crate) push: Option<String>,
    /// The value of the Authorization header of --push: a file of one line, such as Bearer TOKEN
    #[arg(long, value_name = "FILE", requires = "push")]
    pub(crate) push_authorization: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct SweepArgs {
    /// Total sessions of each step: 1,2,4,8, or auto: doubles them until throughput stops rising, then fills
    /// in around the knee
    #[arg(long, value_name = "LIST", default_value = "auto")]
    pub(crate) sessions: String,
    /// Highest number of sessions for --sessions auto
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(crate) max_sessions: u64,
    /// Numbers of CPUs for this process, one curve for each: 1,2
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<String>,
    /// Goal for the 99th percentile of operation latency: finds the highest load that keeps the goal
    #[arg(long, value_name = "DURATION")]
    pub(crate) p99: Option<String>,
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
    #[command(flatten)]
    pub(crate) flags: Flags<{ params::SWEEP }>,
    /// The sweep's directory, new or empty [default: ./assay-runs/TIME-sweep-ID, UTC]
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// What to print
    #[arg(long, value_parser = format::of_record(), default_value = format::ANSWER)]
    pub(crate) format: &'static Format,
    #[command(flatten)]
    pub(crate) live: LiveArgs,
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
    #[command(flatten)]
    pub(crate) flags: Flags<{ params::PREPARE }>,
    /// Block device of the target whose whole content assay may overwrite, repeatable; never a device in use
    #[arg(long, value_name = "PATH_OR_DEVICE")]
    pub(crate) destroy: Vec<PathBuf>,
    /// Directory of the load's record, new or empty [default: ./assay-runs/TIME-prepare-ID, UTC]
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// How to print the load summary
    #[arg(long, value_parser = format::of_others(&[TEXT, JSON]), default_value = TEXT)]
    pub(crate) format: &'static str,
    /// Print the plan and touch nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct SetupArgs {
    /// Tablespace, as in the original; has no meaning on the native target
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
    #[arg(long, value_parser = format::of_others(&[TEXT, JSON]), default_value = TEXT)]
    pub(crate) format: &'static str,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct DestroyArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Print what would be removed and touch nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask, as assay does on a terminal
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RecoveryArgs {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
    #[command(flatten)]
    pub(crate) flags: Flags<{ params::RECOVERY }>,
    /// Checkpoint distances, one kill for each: 16M,64M,200M [default: a sixteenth, a quarter and half of
    /// what the log files allow]
    #[arg(long, value_name = "LIST")]
    pub(crate) distances: Option<String>,
    /// Wanted time from the restart to the first commit, for the recommendation
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub(crate) rto: String,
    /// Maximum load time before each kill, and maximum time for the old rate to come back
    #[arg(long, value_name = "DURATION", default_value = "15s")]
    pub(crate) time: String,
    /// Run directory, new or empty [default: ./assay-runs/TIME-recovery-ID, UTC]
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// What to print
    #[arg(long, value_parser = format::of_record(), default_value = format::ANSWER)]
    pub(crate) format: &'static Format,
    /// Print the plan and touch nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RecoveryLoadArgs {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
    /// Where commits are recorded
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
    /// Job files and options of fio; `assay io --help` also shows those of assay
    #[arg(value_name = "JOBFILE|OPTION", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ReportArgs {
    /// Run directory, record.json, id, or `last`
    #[arg(value_name = "RUN", default_value = "last")]
    pub(crate) run: String,
    /// Where to look up ids
    #[arg(long, value_name = "DIR", default_value = "assay-runs")]
    pub(crate) dir: PathBuf,
    /// Form of the output
    #[arg(long, value_parser = format::of_record(), default_value = format::FULL)]
    pub(crate) format: &'static Format,
    /// Price file for --format answer, as for `assay cost`
    #[arg(long = "prices", alias = "cost", value_name = "FILE")]
    pub(crate) cost: Option<PathBuf>,
    /// The platform in the price file [default: by label or host name]
    #[arg(long, value_name = "NAME", requires = "cost")]
    pub(crate) platform: Option<String>,
    /// Write to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Place of the plotting script for --format html: in the page, or once beside many pages
    #[arg(long, value_enum, default_value_t = AssetsChoice::Embed)]
    pub(crate) assets: AssetsChoice,
}

impl ReportArgs {
    /// A report in this form on stdout.
    pub(crate) fn of(run: String, dir: PathBuf, format: &'static Format) -> Self {
        Self { run, dir, format, cost: None, platform: None, output: None, assets: AssetsChoice::default() }
    }
}

/// Where a page has its plotting script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum AssetsChoice {
    /// In the page: one self-contained file
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
    /// Settings that differ from the defaults, with their origin; secrets are masked
    Show {
        #[command(flatten)]
        settings: SettingArgs,
        #[command(flatten)]
        more: ShowArgs,
    },
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) flags: Flags<{ params::SHOW }>,
    /// Every parameter with its value, origin and meaning; JSON and slob.conf always have all
    #[arg(long)]
    pub(crate) all: bool,
    /// Format: a table, JSON, or a slob.conf
    #[arg(long, value_parser = format::of_others(&[TEXT, JSON, SLOB_CONF]), default_value = TEXT)]
    pub(crate) format: &'static str,
}
