//! `orders`: order entry, with the options that apply to it.

use super::format::{self, JSON, TEXT};
use super::{DataArgs, DestroyArgs, PrepareArgs, RunArgs, RunOnlyArgs, SettingArgs, SweepArgs};
use assay_report::formats::Format;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// The workload of these commands.
const WORKLOAD: &str = "orders";

#[derive(Clone, Debug, Args)]
pub(crate) struct OrdersArgs {
    #[command(subcommand)]
    pub(crate) command: OrdersCommand,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum OrdersCommand {
    /// Create and load the data set, then verify it; a load that was cut short is finished
    Prepare(OrdersPrepareArgs),
    /// Run the transactions, check the data set after them and print the answer
    Run(OrdersRunArgs),
    /// Run them under rising load: the curve, its knee, and the highest load that keeps a goal
    Sweep(OrdersSweepArgs),
    /// Check the consistency of the data set
    Check(OrdersDataArgs),
    /// Remove the data set: only what assay created
    Destroy(OrdersDestroyArgs),
}

/// Where the data set is.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct OrdersPlace {
    /// A file of settings: assay.toml
    #[arg(short = 'c', long = "config", value_name = "FILE")]
    config: Option<PathBuf>,
    /// The server: postgres://USER@HOST:PORT/DB, mysql:// or oracle:// alike, or temp:postgres[:VERSION],
    /// temp:mariadb[:VERSION] or temp:mysql[:VERSION] (a server only for this command)
    #[arg(long, value_name = "URL")]
    target: Option<String>,
    /// Any parameter, repeatable: --set RETRIES=10
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// A setting of the temp:postgres server, repeatable: --pg-set shared_buffers=1GB (PG_SET)
    #[arg(long = "pg-set", value_name = "NAME=VALUE")]
    pg_set: Vec<String>,
}

impl OrdersPlace {
    fn settings(self, more: Vec<(&str, Option<String>)>) -> SettingArgs {
        let given = more.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?)));
        SettingArgs {
            config: self.config,
            target: self.target,
            schemas: None,
            set: given.chain(self.set).collect(),
            pg_set: self.pg_set,
            workload: Some(WORKLOAD),
        }
    }
}

/// What the sessions do.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct OrdersLoad {
    /// Size of the data set that a temporary server gets: 1 is a million customers, fractions to .001 (ORDERS_SCALE)
    #[arg(long, value_name = "N")]
    scale: Option<String>,
    /// Weights of the transactions: current (2.7), classic (2.6), classic-client (ORDERS_MIX)
    #[arg(long, value_name = "NAME")]
    mix: Option<String>,
    /// Transactions that are not done, by short names: SQ,WQ,WA (ORDERS_DISABLE)
    #[arg(long, value_name = "LIST")]
    disable: Option<String>,
    /// Transactions that are done although the mix has them off (ORDERS_ENABLE)
    #[arg(long, value_name = "LIST")]
    enable: Option<String>,
    /// server: a function is called for each transaction; client: a statement at a time (ORDERS_FORM)
    #[arg(long, value_name = "FORM")]
    form: Option<String>,
    /// Transactions that are due per second in total: an open loop, whose response times count from the instant at
    /// which each is due; 0: each session goes on when it has its answer (RATE)
    #[arg(long, value_name = "N")]
    rate: Option<String>,
    /// With --rate: constant or poisson (ARRIVALS)
    #[arg(long, value_name = "HOW")]
    arrivals: Option<String>,
    /// Commit a logon on its own, as soon as it is written down (COMMIT_LOGON)
    #[arg(long)]
    commit_logon: bool,
    /// Attempts after a deadlock or a serialization failure (RETRIES)
    #[arg(long, value_name = "N")]
    retries: Option<String>,
}

impl OrdersLoad {
    fn given(self) -> Vec<(&'static str, Option<String>)> {
        vec![
            ("ORDERS_SCALE", self.scale),
            ("ORDERS_MIX", self.mix),
            ("ORDERS_DISABLE", self.disable),
            ("ORDERS_ENABLE", self.enable),
            ("ORDERS_FORM", self.form),
            ("RATE", self.rate),
            ("ARRIVALS", self.arrivals),
            ("COMMIT_LOGON", self.commit_logon.then(|| "TRUE".to_owned())),
            ("RETRIES", self.retries),
        ]
    }
}

#[derive(Clone, Debug, Args)]
pub(crate) struct OrdersPrepareArgs {
    #[command(flatten)]
    place: OrdersPlace,
    /// Size: 1 is a million customers, about 15.9 million rows and 2 GB; fractions to .001 (ORDERS_SCALE)
    #[arg(long, value_name = "N")]
    scale: Option<String>,
    /// all, keys (primary keys and references alone) or none (ORDERS_INDEXES)
    #[arg(long, value_name = "WHICH")]
    indexes: Option<String>,
    /// Partitions of the six tables that grow: none or hash (ORDERS_PARTITIONS)
    #[arg(long, value_name = "HOW")]
    partitions: Option<String>,
    /// Connections that load together (LOAD_PARALLEL_DEGREE) [default: the CPUs]
    #[arg(long, value_name = "N")]
    threads: Option<String>,
    /// What the rows are drawn from (SEED) [default: random, printed]
    #[arg(long, value_name = "N")]
    seed: Option<String>,
    /// How to print the load summary
    #[arg(long, value_parser = format::of_others(&[TEXT, JSON]), default_value = TEXT)]
    format: &'static str,
    /// Print the plan and touch nothing
    #[arg(long)]
    dry_run: bool,
}

impl From<OrdersPrepareArgs> for PrepareArgs {
    fn from(args: OrdersPrepareArgs) -> Self {
        let more = vec![
            ("ORDERS_SCALE", args.scale),
            ("ORDERS_INDEXES", args.indexes),
            ("ORDERS_PARTITIONS", args.partitions),
            ("LOAD_PARALLEL_DEGREE", args.threads),
        ];
        Self {
            settings: args.place.settings(more),
            seed: args.seed,
            destroy: Vec::new(),
            format: args.format,
            dry_run: args.dry_run,
        }
    }
}

#[derive(Clone, Debug, Args)]
pub(crate) struct OrdersRunArgs {
    #[command(flatten)]
    place: OrdersPlace,
    #[command(flatten)]
    load: OrdersLoad,
    /// Sessions (SESSIONS) [default: those of the mix]
    #[arg(long, visible_alias = "users", value_name = "N")]
    sessions: Option<String>,
    /// Measured window: 30s, 5m, 1h (RUN_TIME)
    #[arg(long, value_name = "DURATION")]
    time: Option<String>,
    /// Load before the window (WARMUP) [default: a tenth of the time, at most 30s]
    #[arg(long, value_name = "DURATION")]
    warmup: Option<String>,
    /// Master seed of all random streams (SEED) [default: random, printed]
    #[arg(long, value_name = "N")]
    seed: Option<String>,
    /// A name for the run in lists, reports and comparisons (LABEL)
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Run directory, new or empty [default: ./assay-runs/TIME-orders-ID, UTC]
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    output: Option<PathBuf>,
    /// What to print
    #[arg(long, value_parser = format::of_record(), default_value = format::ANSWER)]
    format: &'static Format,
    /// Run a command during the load, this long after its start; repeatable: --at 30s 'sync'
    #[arg(long = "at", num_args = 2, value_names = ["TIME", "COMMAND"])]
    at: Vec<String>,
    /// Number of identical runs, one after the other
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    repeat: u64,
    /// Print the plan and touch nothing
    #[arg(long)]
    dry_run: bool,
}

impl From<OrdersRunArgs> for RunArgs {
    fn from(args: OrdersRunArgs) -> Self {
        Self {
            settings: args.place.settings(args.load.given()),
            more: RunOnlyArgs {
                sessions: args.sessions,
                time: args.time,
                warmup: args.warmup,
                seed: args.seed,
                label: args.label,
                output: args.output,
                format: args.format,
                at: args.at,
                repeat: args.repeat,
                dry_run: args.dry_run,
                ..RunOnlyArgs::default()
            },
        }
    }
}

#[derive(Clone, Debug, Args)]
pub(crate) struct OrdersSweepArgs {
    #[command(flatten)]
    place: OrdersPlace,
    #[command(flatten)]
    load: OrdersLoad,
    /// Sessions of each step: 1,2,4,8, or auto: doubles them until throughput stops rising, then fills in around the
    /// knee
    #[arg(long, value_name = "LIST", default_value = "auto")]
    sessions: String,
    /// Highest number of sessions for --sessions auto
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    max_sessions: u64,
    /// Goal for the 99th percentile of all transactions: finds the highest load that keeps it
    #[arg(long, value_name = "DURATION")]
    p99: Option<String>,
    /// Measured window of each step: 30s, 5m, 1h (RUN_TIME)
    #[arg(long, value_name = "DURATION")]
    time: Option<String>,
    /// Load before the window of each step (WARMUP)
    #[arg(long, value_name = "DURATION")]
    warmup: Option<String>,
    /// Master seed of all random streams of every step (SEED)
    #[arg(long, value_name = "N")]
    seed: Option<String>,
    /// A name for the run in lists, reports and comparisons (LABEL)
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// The sweep's directory, new or empty [default: ./assay-runs/TIME-sweep-ID, UTC]
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    output: Option<PathBuf>,
    /// What to print
    #[arg(long, value_parser = format::of_record(), default_value = format::ANSWER)]
    format: &'static Format,
    /// Print the plan and touch nothing
    #[arg(long)]
    dry_run: bool,
}

impl From<OrdersSweepArgs> for SweepArgs {
    fn from(args: OrdersSweepArgs) -> Self {
        Self {
            sessions: args.sessions,
            max_sessions: args.max_sessions,
            cpus: None,
            p99: args.p99,
            settings: args.place.settings(args.load.given()),
            time: args.time,
            warmup: args.warmup,
            seed: args.seed,
            evict: Vec::new(),
            label: args.label,
            output: args.output,
            format: args.format,
            dry_run: args.dry_run,
        }
    }
}

#[derive(Clone, Debug, Args)]
pub(crate) struct OrdersDataArgs {
    #[command(flatten)]
    place: OrdersPlace,
    /// How to print the result
    #[arg(long, value_parser = format::of_others(&[TEXT, JSON]), default_value = TEXT)]
    format: &'static str,
}

impl From<OrdersDataArgs> for DataArgs {
    fn from(args: OrdersDataArgs) -> Self {
        Self { settings: args.place.settings(Vec::new()), format: args.format }
    }
}

#[derive(Clone, Debug, Args)]
pub(crate) struct OrdersDestroyArgs {
    #[command(flatten)]
    data: OrdersDataArgs,
    /// Print what would be removed and touch nothing
    #[arg(long)]
    dry_run: bool,
}

impl From<OrdersDestroyArgs> for DestroyArgs {
    fn from(args: OrdersDestroyArgs) -> Self {
        Self { data: args.data.into(), dry_run: args.dry_run }
    }
}
