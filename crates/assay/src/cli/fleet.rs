//! The command line of `fleet`.

use super::{LiveArgs, TlsArgs, format};
use assay_control::fleet::manifest::Starter;
use assay_report::formats::Format;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    pub(crate) command: FleetCommand,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Start a NATS server for a fleet, with tokens, and hold it until Ctrl-C
    ///
    /// It writes the configuration, the tokens and the URLs for controller and agents into a directory that only you can read.
    Up {
        /// Address and port to listen on; other hosts need more than the default
        #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:4222")]
        listen: String,
        /// Name or address by which the other hosts reach this one, for their URLs [default: the one of --listen]
        #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
        host: String,
        #[command(flatten)]
        tls: TlsArgs,
        #[command(flatten)]
        fleet: FleetName,
    },
    /// Make this host one of the fleet's: wait for runs until Ctrl-C
    ///
    /// It dials out and opens no port. Each part of a run is a process of its own, whose record stays in ./assay-runs here.
    Agent {
        #[command(flatten)]
        bus: BusArgs,
        /// The host's name in reports [default: its host name]
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// Name or address by which the other hosts reach this one, for tests between them [default: the one towards the server]
        #[arg(long, value_name = "ADDRESS")]
        address: Option<String>,
        /// Identity of the machine: two agents with one are refused [default: of /etc/machine-id]
        #[arg(long, value_name = "ID", hide = true)]
        machine: Option<String>,
        /// What is added to the clocks of this host
        #[arg(long, value_name = "MS", hide = true, default_value_t = 0, allow_negative_numbers = true)]
        clock_ahead_ms: i64,
        /// Of a run with --ssh: it ends with its standard input
        #[arg(long, hide = true)]
        borrowed: bool,
        /// The version this agent says it has
        #[arg(long, value_name = "VERSION", hide = true, default_value = env!("CARGO_PKG_VERSION"))]
        says_version: String,
    },
    /// Run one test on all hosts at the same time, and make one record of it
    ///
    /// The settings are those of the whole fleet: its sessions are divided among the hosts. It runs `run` and `orders run`, on data that
    /// each host has for itself (native, null) or on one database server, whose own statistics one host reads for all; `sweep`, whose
    /// steps are such runs; `io`, `sync` and `redo`, of which each host does the whole; `platform`, whose tests all hosts make at the
    /// same time; and `net` and `ping` between all pairs of hosts, one pair after the other.
    #[command(after_help = "Exit code 4: hosts are missing in the figures (partial), or the run is invalid.")]
    Run(Box<FleetRunArgs>),
    /// Project the throughput of more hosts from records of runs of some, by the Universal Scalability Law
    ///
    /// The runs must be the same test with as many sessions for each host; at least four are needed, such as two of each number of hosts.
    /// The answer is marked as what it is: a projection, untested.
    Project {
        /// Runs of this fleet, of at least three numbers of hosts
        #[arg(value_name = "RUN", required = true)]
        runs: Vec<String>,
        /// Hosts to project to
        #[arg(long, value_name = "HOSTS", value_parser = clap::value_parser!(u64).range(2..=100_000))]
        to: u64,
        /// Run directory, new or empty [default: ./assay-runs/TIME-sweep-ID, UTC]
        #[arg(short = 'o', long = "output", value_name = "DIR")]
        output: Option<PathBuf>,
        /// What to print
        #[arg(long, value_parser = format::of_record(), default_value = format::ANSWER)]
        format: &'static Format,
    },
    /// Print what starts the agents: a Kubernetes job, a Slurm script or a systemd unit
    Manifest {
        /// For what
        starter: StarterChoice,
        /// Where agents find the server
        #[arg(long, value_name = "URL", default_value = "nats://CONTROLLER:4222")]
        url: String,
        /// Hosts
        #[arg(long, value_name = "N", default_value_t = 3)]
        hosts: usize,
        /// The image of assay, for pods
        #[arg(long, value_name = "IMAGE", default_value = "assay:latest")]
        image: String,
        #[command(flatten)]
        fleet: FleetName,
    },
}

/// Whose fleet.
#[derive(Clone, Debug, Args)]
pub(crate) struct FleetName {
    /// Name of the fleet: several can share a server
    #[arg(long, value_name = "NAME", default_value = "assay")]
    pub(crate) fleet: String,
    /// Directory with the tokens and URLs of `fleet up`
    #[arg(long, value_name = "DIR", default_value = "assay-fleet")]
    pub(crate) dir: PathBuf,
}

/// Where the server is.
#[derive(Clone, Debug, Args)]
pub(crate) struct BusArgs {
    #[command(flatten)]
    pub(crate) fleet: FleetName,
    /// The NATS server [default: NATS_URL, else that of `fleet up` in --dir]
    #[arg(long, value_name = "URL")]
    pub(crate) nats: Option<String>,
    /// Who signed the certificate of a tls:// server, PEM [default: NATS_CA, else whom the system trusts]
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct FleetRunArgs {
    #[command(flatten)]
    pub(crate) bus: BusArgs,
    /// Hosts to wait for [default: all that answer within a second]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) hosts: Option<u64>,
    /// Use these hosts for this run alone: assay is copied there by ssh, and nothing stays. user@a,b, or a file with one a line
    #[arg(long, value_name = "HOSTS", conflicts_with_all = ["take", "nats", "hosts"])]
    pub(crate) ssh: Option<String>,
    /// The ssh for --ssh, with options of its own
    #[arg(long, value_name = "COMMAND", default_value = "ssh", requires = "ssh")]
    pub(crate) ssh_command: String,
    /// Directory on the hosts of --ssh where each has a temporary one made [default: TMPDIR there, else /tmp]
    #[arg(long, value_name = "DIR", default_value = "", hide_default_value = true, requires = "ssh")]
    pub(crate) ssh_dir: String,
    /// How long to wait for them
    #[arg(long, value_name = "DURATION", default_value = "30s")]
    pub(crate) wait: String,
    /// A host that says nothing for so long is lost; the others go on
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub(crate) lost_after: String,
    /// A host that hears no controller for so long stops by itself
    #[arg(long, value_name = "DURATION", default_value = "60s")]
    pub(crate) dead_man: String,
    /// Hosts that began farther apart make the run invalid [default: 10ms, or 1 % of the window]
    #[arg(long, value_name = "DURATION")]
    pub(crate) max_skew: Option<String>,
    /// Take a run whose controller is gone, and make its record
    #[arg(long, value_name = "RUN", conflicts_with_all = ["command", "live"])]
    pub(crate) take: Option<String>,
    /// Run directory, new or empty [default: ./assay-runs/TIME-KIND-ID, UTC]
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// What to print
    #[arg(long, value_parser = format::of_record(), default_value = format::ANSWER)]
    pub(crate) format: &'static Format,
    #[command(flatten)]
    pub(crate) live: LiveArgs,
    /// The command for every host, behind --: run, sweep, orders run, io, sync, redo or platform, with their options; or net or ping, without a peer
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "take")]
    pub(crate) command: Vec<String>,
}

/// The part of a run that an agent starts.
#[derive(Clone, Debug, Args)]
pub(crate) struct FleetPartArgs {
    /// Which host, from 0
    #[arg(long)]
    pub(crate) host: u32,
    /// Hosts of the run
    #[arg(long)]
    pub(crate) hosts: u32,
    /// The seed of all of them
    #[arg(long)]
    pub(crate) seed: u64,
    /// The command
    #[arg(last = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StarterChoice {
    /// A job with a pod per node
    K8s,
    /// A batch script
    Slurm,
    /// A unit for each host
    Systemd,
}

impl From<StarterChoice> for Starter {
    fn from(choice: StarterChoice) -> Self {
        match choice {
            StarterChoice::K8s => Self::K8s,
            StarterChoice::Slurm => Self::Slurm,
            StarterChoice::Systemd => Self::Systemd,
        }
    }
}
