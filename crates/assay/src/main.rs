//! The `assay` command: command line, configuration layers, progress, exit codes.
//!
//! The only crate that prints or decides how the process ends. It wires the
//! others: configuration to a plan, a target to an engine, measurements to a
//! record, and a record to what people read.
#![forbid(unsafe_code)]

mod affinity;
mod answer;
mod before;
mod catalogue;
mod cli;
mod commands;
mod configure;
mod dir_handle;
mod emergency;
mod exit;
mod fleet_part;
mod follow;
mod hooks;
mod html;
mod live;
mod observer;
mod perform;
mod plan_text;
mod progress;
mod push;
mod record;
mod recover;
#[cfg(test)]
mod reference;
mod registry;
mod run_plan;
mod rundir;
mod signals;
mod stored;
mod ui;
mod view;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser};
use exit::{Code, Failure};
use std::process::ExitCode;

fn main() -> ExitCode {
    emergency::install_hook();
    registry::install();
    signals::fail_writes_at_the_size_limit();
    let code = std::panic::catch_unwind(|| match parse() {
        Ok(Some(cli)) if cli.quiet => {
            ui::be_quiet();
            commands::execute(cli).unwrap_or_else(|failure| ui::failure(&failure))
        }
        Ok(Some(cli)) => commands::execute(cli).unwrap_or_else(|failure| ui::failure(&failure)),
        Ok(None) => Code::Good,
        Err(failure) => ui::failure(&failure),
    });
    let code = code.unwrap_or_else(|_| emergency::after_panic());
    ExitCode::from(code as u8)
}

/// What the command line of another program is in ours, if the first word names one.
fn of_a_peer(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(_)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let mut words = std::env::args_os().skip(1).map(|word| word.into_string());
    let program = words.next()?.ok()?;
    let options: Vec<String> = words.collect::<Result<_, _>>().ok()?;
    cli::peers::translated(&program, &options)
}

/// Names the command that a misspelt one is nearest to, swapped letters included, which clap's own measure misses.
fn suggest(error: &mut clap::Error) {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    // Of a command within another clap does not tell which one that is.
    if std::env::args_os().nth(1).is_none_or(|word| word != unknown.as_str()) {
        return;
    }
    let commands = cli::Cli::command();
    let known = commands.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name);
    if let Some(name) = assay_measure::config::nearest(unknown, known) {
        let name = ContextValue::Strings(vec![name.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, name);
    }
}

/// The command line; `None` if it asked for help or the version, which is printed.
fn parse() -> Result<Option<cli::Cli>, Failure> {
    match cli::Cli::try_parse_from(cli::with_two_dashes(std::env::args_os())) {
        Ok(cli) => Ok(Some(cli)),
        Err(mut error) if error.use_stderr() => {
            if let Some(text) = of_a_peer(&error) {
                return Err(Failure::new(Code::Usage, text));
            }
            suggest(&mut error);
            let _ = error.print();
            Err(Failure::said(Code::Usage))
        }
        Err(help) => {
            let _ = help.print();
            Ok(None)
        }
    }
}
