//! A command for each probe of the registry that is just given a place and a time.

use super::Format;
use crate::registry::PROBES;
use assay_run::probe::Probe;
use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};
use std::path::PathBuf;

/// A probe and what it was asked to do.
#[derive(Clone, Debug)]
pub(crate) struct ProbeCommand {
    /// Which.
    pub(crate) name: String,
    pub(crate) args: ProbeArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ProbeArgs {
    /// A directory, or a new file to be made and removed
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) path: PathBuf,
    /// Measuring time, shared by all steps: 20s, 2m
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "60s",
        allow_hyphen_values = true
    )]
    pub(crate) time: String,
    /// A name for the run in lists, reports and comparisons
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,
    /// Run directory, new or empty
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// What to print: the report, or record.json
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Print the plan and touch nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// The probes that have such a command, with their usual times.
fn probes() -> impl Iterator<Item = (&'static dyn Probe, &'static str)> {
    PROBES
        .iter()
        .filter_map(|probe| Some((*probe, probe.usual_time()?)))
}

impl FromArgMatches for ProbeCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let (name, matches) = matches
            .subcommand()
            .ok_or_else(|| Error::new(ErrorKind::MissingSubcommand))?;
        Ok(Self {
            name: name.to_owned(),
            args: ProbeArgs::from_arg_matches(matches)?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for ProbeCommand {
    fn augment_subcommands(mut command: Command) -> Command {
        for (probe, time) in probes() {
            let name = probe.name();
            let output =
                format!("Run directory, new or empty [default: ./assay-runs/TIME-{name}-ID, UTC]");
            let of_probe = ProbeArgs::augment_args(Command::new(name))
                .about(probe.about())
                .long_about(format!("{}\n\n{}", probe.about(), probe.more()))
                .mut_arg("time", |arg| arg.default_value(time))
                .mut_arg("output", |arg| arg.help(output));
            command = command.subcommand(of_probe);
        }
        command
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        probes().any(|(probe, _)| probe.name() == name)
    }
}
