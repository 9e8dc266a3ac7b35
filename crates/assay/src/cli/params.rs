//! Flags of parameters: spelled, explained and read as the parameter's own entry says.

use super::probe::spelled;
use crate::registry;
use assay_measure::config::{ParamDef, ParamKind, known_params};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

pub(crate) const RUN: usize = 0;
pub(crate) const SWEEP: usize = 1;
pub(crate) const SHOW: usize = 2;
pub(crate) const PREPARE: usize = 3;
pub(crate) const RECOVERY: usize = 4;
pub(crate) const ORDERS_RUN: usize = 5;
pub(crate) const ORDERS_SWEEP: usize = 6;
pub(crate) const ORDERS_PREPARE: usize = 7;

/// What each of them is called in [`ParamDef::commands`].
const COMMANDS: [&str; 8] =
    ["run", "sweep", "show", "prepare", "recovery", "orders-run", "orders-sweep", "orders-prepare"];

/// An option of the command line: as typed, the parameter it sets, its value.
pub(crate) type Said = (String, String, String);

/// One option, if it was given.
pub(crate) fn said(option: &str, name: &str, value: Option<&String>) -> Option<Said> {
    value.map(|value| (option.to_owned(), name.to_owned(), value.clone()))
}

/// What was said by the flags of parameters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags<const COMMAND: usize> {
    pub(crate) said: Vec<Said>,
}

fn offered(command: usize) -> impl Iterator<Item = &'static ParamDef> {
    registry::install();
    let has = move |def: &&ParamDef| def.commands.split(' ').any(|name| name == COMMANDS[command]);
    known_params().into_iter().filter(has)
}

fn arg(def: &'static ParamDef) -> Arg {
    let (long, also) = def.flag.split_first().expect("the flag of a command has a word");
    let (first, rest) = def.help.split_at(1);
    let help = format!("{}{rest} ({})", first.to_uppercase(), def.name);
    let arg = spelled(Arg::new(def.name).long(*long), also).help(help);
    let value = match def.kind {
        ParamKind::Bool => return arg.action(ArgAction::SetTrue),
        ParamKind::Int(..) => "N",
        ParamKind::Seconds => "DURATION",
        _ => "TEXT",
    };
    let action = if def.flag.contains(&"...") { ArgAction::Append } else { ArgAction::Set };
    arg.value_name(value).allow_hyphen_values(true).action(action)
}

impl<const COMMAND: usize> Args for Flags<COMMAND> {
    fn augment_args(command: Command) -> Command {
        let apart = |def: &ParamDef| def.name == "SESSIONS" && COMMAND == RUN;
        let flags = offered(COMMAND);
        command.args(flags.map(|def| if apart(def) { arg(def).conflicts_with("THREADS_PER_SCHEMA") } else { arg(def) }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const COMMAND: usize> FromArgMatches for Flags<COMMAND> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = offered(COMMAND).filter(|def| matches.value_source(def.name) == Some(ValueSource::CommandLine));
        let said = given.map(|def| {
            let short = def.flag.iter().find(|name| name.len() == 1);
            let option = short.map_or_else(|| format!("--{}", def.flag[0]), |letter| format!("-{letter}"));
            let value = match def.kind {
                ParamKind::Bool => "TRUE".to_owned(),
                _ => matches.get_many::<String>(def.name).into_iter().flatten().cloned().collect::<Vec<_>>().join(","),
            };
            (option, def.name.to_owned(), value)
        });
        Ok(Self { said: said.collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_name_commands_that_there_are_and_have_a_flag_where_they_name_one() {
        registry::install();
        for def in known_params() {
            assert_eq!(def.flag.is_empty(), def.commands.is_empty(), "{}", def.name);
            let mut named = def.commands.split(' ').filter(|name| !name.is_empty());
            assert!(named.all(|name| COMMANDS.contains(&name)), "{}: {}", def.name, def.commands);
        }
    }
}
