//! One file per command group; each returns how it ended.

mod compare;
mod config;
mod cost;
mod data;
mod explain;
mod fit;
mod flag_time;
mod fleet;
mod import;
mod io;
mod man;
mod noise;
mod orders;
mod passport;
mod platform;
mod probe;
mod recovery;
mod repeat;
mod report;
mod rounds;
mod run;
mod runs;
mod selftest;
mod serve;
mod serve_runs;
mod shown;
mod sweep;
mod temp_server;
#[cfg(test)]
mod tests;
mod watch;

use crate::cli::{Cli, Command, ReportArgs, RunsCommand};
use crate::exit::{Code, Failure};
use clap::CommandFactory;
use std::path::{Path, PathBuf};

pub(crate) fn execute(cli: Cli) -> Result<Code, Failure> {
    match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Sweep(args) => sweep::sweep(&args),
        Command::Runit(args) => run::runit(args),
        Command::Prepare(args) => data::prepare(&args),
        Command::Setup(args) => data::setup(args),
        Command::Check(args) => data::check(&args),
        Command::Destroy(args) => data::destroy(&args),
        Command::Recovery(args) => recovery::recovery(&args),
        Command::RecoveryLoad(args) => recovery::load(&args),
        Command::Orders(args) => orders::orders(args),
        Command::Platform(args) => platform::platform(&args),
        Command::Fit(args) => fit::fit(&args),
        Command::Passport(args) => passport::passport(&args),
        Command::Noise(args) => noise::noise(args),
        Command::Accept(args) => passport::accept(&args),
        Command::Fleet(args) => fleet::fleet(&args),
        Command::FleetPart(args) => fleet::part(&args),
        Command::Probe(command) => probe::probe(&command),
        Command::Io(args) => io::io(&args),
        Command::Import(args) => import::import(&args),
        Command::Report(args) => report::report(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Cost(args) => cost::cost(&args),
        Command::Runs(args) => match args.command {
            RunsCommand::Show { run, dir, format: Some(format) } => report::report(&ReportArgs::of(run, dir, format)),
            command => runs::runs(&command),
        },
        Command::Serve(args) => serve::serve(&args),
        Command::Config(args) => config::config(&args.command),
        Command::Selftest(args) => selftest::selftest(&args),
        Command::TempServer(args) => temp_server::hold(args),
        Command::ServerKeep => temp_server::keep(),
        Command::ServerBecome { part, command } => temp_server::become_server(&part, &command),
        Command::Completions { shell } => completions(shell),
        Command::Explain(args) => explain::explain(&args),
        Command::Man(args) => man::man(&args),
    }
}

fn completions(shell: clap_complete::Shell) -> Result<Code, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "assay", &mut script);
    crate::ui::product(&String::from_utf8_lossy(&script))?;
    Ok(Code::Good)
}

/// `./slob.conf`, which SLOB's own spellings read without being told.
fn slob_conf_here(config: &mut Option<PathBuf>) {
    let here = Path::new("slob.conf");
    if config.is_none() && here.is_file() {
        crate::ui::say("notice: assay reads settings from ./slob.conf");
        *config = Some(here.to_path_buf());
    }
}

/// A new token, for who may ask.
fn new_token() -> Result<String, Failure> {
    assay_control::new_token().map_err(|error| Failure::new(Code::Unusable, error.to_string()))
}
