//! `orders`: order entry, with the options that apply to it.

use super::format::{self, JSON, TEXT};
use super::params::{self, Flags};
use super::{DataArgs, DestroyArgs, LiveArgs, PrepareArgs, PushArgs, RunArgs, RunOnlyArgs, SettingArgs, SweepArgs};
use crate::registry;
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
    /// Create and load the data set, then verify it; finish an interrupted load
    Prepare(OrdersPrepareArgs),
    /// Run the transactions, check the data set after them and print the answer
    Run(OrdersRunArgs),
    /// Run the transactions under rising load: the curve, its knee, and the highest load that meets a goal
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
    #[arg(long, value_name = "URL", help = registry::help_of(WORKLOAD))]
    target: Option<String>,
    /// Any parameter, repeatable: --set RETRIES=10
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// A setting of the temp:postgres server, repeatable: --pg-set shared_buffers=1GB (PG_SET)
    #[arg(long = "pg-set", value_name = "NAME=VALUE")]
    pg_set: Vec<String>,
}

impl OrdersPlace {
    fn settings(self) -> SettingArgs {
        SettingArgs {
            config: self.config,
            target: self.target,
            schemas: None,
            set: self.set,
            pg_set: self.pg_set,
            workload: Some(WORKLOAD),
        }
    }
}

#[derive(Clone, Debug, Args)]
pub(crate) struct OrdersPrepareArgs {
    #[command(flatten)]
    place: OrdersPlace,
    #[command(flatten)]
    flags: Flags<{ params::ORDERS_PREPARE }>,
    /// Directory of the load's record, new or empty [default: ./assay-runs/TIME-prepare-ID, UTC]
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    output: Option<PathBuf>,
    /// How to print the load summary
    #[arg(long, value_parser = format::of_others(&[TEXT, JSON]), default_value = TEXT)]
    format: &'static str,
    /// Print the plan and touch nothing
    #[arg(long)]
    dry_run: bool,
}

impl From<OrdersPrepareArgs> for PrepareArgs {
    fn from(args: OrdersPrepareArgs) -> Self {
        Self {
            settings: args.place.settings(),
            flags: Flags { said: args.flags.said },
            destroy: Vec::new(),
            output: args.output,
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
    flags: Flags<{ params::ORDERS_RUN }>,
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
    #[command(flatten)]
    live: LiveArgs,
    #[command(flatten)]
    push: PushArgs,
    /// Print the plan and touch nothing
    #[arg(long)]
    dry_run: bool,
}

impl From<OrdersRunArgs> for RunArgs {
    fn from(args: OrdersRunArgs) -> Self {
        Self {
            settings: args.place.settings(),
            more: RunOnlyArgs {
                flags: Flags { said: args.flags.said },
                output: args.output,
                format: args.format,
                at: args.at,
                repeat: args.repeat,
                detect: None,
                live: args.live,
                push: args.push,
                dry_run: args.dry_run,
            },
        }
    }
}

#[derive(Clone, Debug, Args)]
pub(crate) struct OrdersSweepArgs {
    #[command(flatten)]
    place: OrdersPlace,
    #[command(flatten)]
    flags: Flags<{ params::ORDERS_SWEEP }>,
    /// Sessions of each step: 1,2,4,8, or auto: doubles them until throughput stops rising, then fills in around the
    /// knee
    #[arg(long, value_name = "LIST", default_value = "auto")]
    sessions: String,
    /// Highest number of sessions for --sessions auto
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    max_sessions: u64,
    /// Goal for the 99th percentile of all transactions: finds the highest load that meets it
    #[arg(long, value_name = "DURATION")]
    p99: Option<String>,
    /// The sweep's directory, new or empty [default: ./assay-runs/TIME-sweep-ID, UTC]
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    output: Option<PathBuf>,
    /// What to print
    #[arg(long, value_parser = format::of_record(), default_value = format::ANSWER)]
    format: &'static Format,
    #[command(flatten)]
    live: LiveArgs,
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
            settings: args.place.settings(),
            flags: Flags { said: args.flags.said },
            output: args.output,
            format: args.format,
            live: args.live,
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
        Self { settings: args.place.settings(), format: args.format }
    }
}

#[derive(Clone, Debug, Args)]
pub(crate) struct OrdersDestroyArgs {
    #[command(flatten)]
    data: OrdersDataArgs,
    /// Print what would be removed and touch nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask, as assay does on a terminal
    #[arg(short, long)]
    yes: bool,
}

impl From<OrdersDestroyArgs> for DestroyArgs {
    fn from(args: OrdersDestroyArgs) -> Self {
        Self { data: args.data.into(), dry_run: args.dry_run, yes: args.yes }
    }
}
