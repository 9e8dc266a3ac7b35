//! A command for each probe of the registry that is just given a place and a time.

use super::format;
use crate::registry;
use assay_report::formats::{Format, find};
use assay_run::probe::{ProbeOption, ProbeSpec, SERVER, Takes};
use clap::builder::PathBufValueParser;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};
use std::ffi::OsString;
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
    /// Where to measure; none of a probe that needs no place.
    #[arg(skip)]
    pub(crate) path: Option<PathBuf>,
    /// What was said of the probe's own options, as its requests take it.
    #[arg(skip)]
    pub(crate) words: Vec<String>,
    /// Whether the time was given.
    #[arg(skip)]
    pub(crate) time_is_given: bool,
    /// How long to measure; nothing of a probe that only looks.
    #[arg(skip)]
    pub(crate) time: Option<String>,
    /// The figure to know, and how well.
    #[arg(skip)]
    pub(crate) until: Option<String>,
    /// The longest time for that.
    #[arg(skip)]
    pub(crate) at_most: Option<String>,
    /// A name for the run in lists, reports and comparisons
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,
    /// Run directory, new or empty
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// What to print
    #[arg(long, value_parser = format::of_record(), default_value = format::ANSWER)]
    pub(crate) format: &'static Format,
    /// Print the plan and touch nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// The probes that have such a command.
fn probes() -> impl Iterator<Item = &'static ProbeSpec> {
    registry::probes().filter(|probe| !probe.has_own_command)
}

const PATH: &str = "path";

fn path(probe: &ProbeSpec) -> Arg {
    Arg::new(PATH).value_name("PATH").default_value(".").value_parser(PathBufValueParser::new()).help(probe.place_help)
}

/// In the place of PATH, for a probe that has a peer.
fn peer() -> Arg {
    Arg::new(PATH)
        .value_name("PEER")
        .required(true)
        .value_parser(PathBufValueParser::new())
        .help("The other host, where the server of this command runs; or the word server, to serve on this host")
}

/// Spellings of one letter are short flags, of which the first is shown; longer ones are taken and not shown.
pub(super) fn spelled(arg: Arg, also: &'static [&'static str]) -> Arg {
    also.iter().fold(arg, |arg, name| {
        let mut letters = name.chars();
        match (letters.next(), letters.next()) {
            (Some('.'), _) => arg,
            (Some(letter), None) if arg.get_short().is_none() => arg.short(letter),
            (Some(letter), None) => arg.short_alias(letter),
            _ => arg.alias(*name),
        }
    })
}

const TIME: &str = "time";

fn time(probe: &ProbeSpec, usual: &'static str) -> Arg {
    spelled(Arg::new(TIME).long(TIME), probe.time_also)
        .value_name("DURATION")
        .default_value(usual)
        .allow_hyphen_values(true)
        .help("Measuring time, shared by all steps: 20s, 2m")
}

const UNTIL: &str = "until";
const AT_MOST: &str = "at-most";
/// The longest time that rounds take unless told otherwise, as typed.
pub(crate) const USUAL_AT_MOST: &str = "10m";

/// The flags of a probe whose figures can be followed from round to round.
fn until(probe: &ProbeSpec) -> [Arg; 2] {
    let names = probe.follows.iter().map(|(name, keys)| if name.is_empty() { keys[0] } else { *name });
    let names: Vec<&str> = names.collect();
    let told = format!(
        "Measure in rounds until a figure is known so well: {}. Exit code 4 where it cannot be known now",
        names.join(", ")
    );
    let most = format!("Longest time of all rounds with --until [default: {USUAL_AT_MOST}]");
    [
        Arg::new(UNTIL).long(UNTIL).value_name("FIGURE=\u{b1}P%").conflicts_with(TIME).help(told),
        Arg::new(AT_MOST).long(AT_MOST).value_name("DURATION").help(most),
    ]
}

const QUICK: &str = "quick";

fn quick(time: &str) -> Arg {
    Arg::new(QUICK)
        .long(QUICK)
        .action(ArgAction::SetTrue)
        .conflicts_with(TIME)
        .help(format!("The same as --time {time}"))
}

/// The flag of a probe's own option.
fn flag(option: &ProbeOption) -> Arg {
    let flag =
        spelled(Arg::new(option.name).long(option.name), option.also).hide(option.help.is_empty()).help(option.help);
    if option.value.is_empty() {
        return flag.action(ArgAction::SetTrue);
    }
    let flag = flag.value_name(option.value).allow_hyphen_values(true);
    match option.default {
        "" => flag,
        default => flag.default_value(default),
    }
}

/// The word of an option that was given on the command line.
fn said(matches: &ArgMatches, option: &ProbeOption) -> Option<String> {
    if matches.value_source(option.name) != Some(ValueSource::CommandLine) {
        return None;
    }
    if option.value.is_empty() {
        return Some(option.name.to_owned());
    }
    let value = matches.get_one::<String>(option.name)?;
    Some(format!("{}={value}", option.name))
}

/// The command line with a second dash before the long flags of a probe that takes them with one: `-port=5555` there is
/// `--port=5555`, and `-server` the word server.
pub(crate) fn with_two_dashes(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    let is_flag = |word: &OsString| word.to_string_lossy().starts_with('-');
    let command = words.iter().skip(1).position(|word| !is_flag(word));
    let Some(command) = command.map(|at| at + 1) else {
        return words;
    };
    let probe = probes().find(|probe| words[command].to_str() == Some(probe.name));
    if !probe.is_some_and(|probe| probe.has_long_flags_with_one_dash) {
        return words;
    }
    for word in &mut words[command + 1..] {
        let Some(text) = word.to_str() else { continue };
        if text == "-server" {
            *word = SERVER.into();
            continue;
        }
        let mut letters = text.chars();
        let is_long = letters.next() == Some('-')
            && letters.next().is_some_and(char::is_alphabetic)
            && letters.next().is_some_and(|letter| letter.is_alphabetic() || letter == '_');
        if is_long {
            *word = format!("-{text}").into();
        }
    }
    words
}

impl FromArgMatches for ProbeCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let (name, matches) = matches.subcommand().ok_or_else(|| Error::new(ErrorKind::MissingSubcommand))?;
        let mut args = ProbeArgs::from_arg_matches(matches)?;
        if let Some(probe) = probes().find(|probe| probe.name == name) {
            if !matches!(probe.takes, Takes::Nothing) {
                args.path = matches.get_one(PATH).cloned();
            }
            if probe.usual_time.is_some() {
                args.time = matches.get_one(TIME).cloned();
                args.time_is_given = matches.value_source(TIME) == Some(ValueSource::CommandLine);
            }
            if let Some(quick) = probe.quick_time.filter(|_| matches.get_flag(QUICK)) {
                args.time = Some(quick.to_owned());
                args.time_is_given = true;
            }
            if !probe.follows.is_empty() {
                args.until = matches.get_one(UNTIL).cloned();
                args.at_most = matches.get_one(AT_MOST).cloned();
            }
            let said = |option| said(matches, option);
            args.words = probe.options().filter_map(said).collect();
            // iperf3's own way to ask for its JSON.
            if args.words.iter().any(|word| word == "json") {
                args.format = find(format::TOOL_JSON).unwrap_or_default();
            }
        }
        let name = name.to_owned();
        Ok(Self { name, args })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for ProbeCommand {
    fn augment_subcommands(mut command: Command) -> Command {
        for probe in probes() {
            let name = probe.name;
            let output = format!("Run directory, new or empty [default: ./assay-runs/TIME-{name}-ID, UTC]");
            let of_probe = ProbeArgs::augment_args(Command::new(name))
                .about(probe.about)
                .long_about(format!("{}\n\n{}", probe.about, probe.more))
                .mut_arg("output", |arg| arg.help(output))
                .args(match probe.takes {
                    Takes::Peer(_) => Some(peer()),
                    Takes::Place => Some(path(probe)),
                    Takes::PlaceOr(word, _) => {
                        Some(path(probe).help(format!("A directory; or the word {word}, to be one on this host")))
                    }
                    Takes::Nothing => None,
                })
                .args(probe.usual_time.map(|usual| time(probe, usual)))
                .args(probe.quick_time.map(quick))
                .args((!probe.follows.is_empty()).then(|| until(probe)).into_iter().flatten())
                .args(probe.options().map(flag));
            command = command.subcommand(of_probe);
        }
        command
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        probes().any(|probe| probe.name == name)
    }
}
