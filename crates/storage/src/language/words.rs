//! The command line: program options, job options and job files.

use super::draft::Reading;
use super::table::{self, OptionDef};
use super::value::{Kind, Value, halves, time};
use crate::spec::{Eta, OutputFormat};
use assay_measure::config::nearest;
use std::path::PathBuf;

/// The origin of words in error messages.
pub(super) const ORIGIN: &str = "command line";

/// Whether a program option takes an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// None.
    No,
    /// After an equals sign, or the next word.
    Required,
    /// Only after an equals sign.
    Optional,
}

/// A program option.
#[derive(Clone, Copy, Debug)]
pub struct ProgramOption {
    /// Its name.
    pub name: &'static str,
    /// Whether it takes an argument.
    pub argument: Argument,
    /// Whether it is supported, and how.
    pub becomes: Becomes,
}

/// What assay does with a program option.
#[derive(Clone, Copy, Debug)]
pub enum Becomes {
    /// It works; the text is one line of help.
    Works(&'static str),
    /// It is not supported, for this reason.
    Refused(&'static str),
}

/// Entries of the table: `name, argument, effect`.
macro_rules! program_options {
    ($($name:literal, $argument:ident, $becomes:ident($text:literal);)*) => {
        &[$(ProgramOption {
            name: $name,
            argument: Argument::$argument,
            becomes: Becomes::$becomes($text),
        }),*]
    };
}

/// Program options: fio's, then ours.
pub static PROGRAM: &[ProgramOption] = program_options! {
    "help", No, Works("Show the usage");
    "version", No, Works("Show the version");
    "cmdhelp", Optional, Works("List the options of jobs, or explain one");
    "enghelp", Optional, Works("List the engines, or the options of one");
    "output", Required, Works("Write the report to this file");
    "output-format", Required, Works("normal, json, json+, terse; separate several by commas");
    "minimal", No, Works("The same as --output-format=terse");
    "append-terse", No, Works("Add the terse line below the report");
    "terse-version", Required, Works("3 is the only one");
    "parse-only", No, Works("Read the jobs and stop");
    "showcmd", No, Works("Show job files as command lines and stop");
    "readonly", No, Works("Refuse jobs that write");
    "section", Required, Works("Only this section of the job files; repeatable");
    "eta", Required, Works("When to show progress: auto, always, never");
    "eta-interval", Required, Works("How often to show progress");
    "eta-newline", Required, Works("Begin a new progress line this often");
    "status-interval", Required, Works("Report the whole run so far this often");
    "warnings-fatal", No, Works("Accepted: assay always refuses doubtful options");
    "alloc-size", Required, Works("Accepted: memory grows as needed");
    "max-jobs", Required, Works("Accepted: there is no limit on the number of jobs");
    "aux-path", Required, Works("Accepted: assay writes no state files");
    "destroy", Required, Works("assay may overwrite this file or device; repeatable");
    "label", Required, Works("A name for the run in lists, reports and comparisons");
    "until", Required, Works("Repeat the jobs until a figure is known so well: p99=\u{b1}5% (rate, p50, p99 or a key); exit code 4 where it cannot be");
    "at-most", Required, Works("Longest time of all repeats with --until; default 10m");
    "no-record", No, Works("Do not keep a run directory");
    "debug", Required, Refused("the report and the record show what was done");
    "merge-blktrace-only", No, Refused("assay neither writes nor replays traces");
    "bandwidth-log", No, Refused("use write_bw_log in the job");
    "cpuclock-test", No, Refused("time is CLOCK_MONOTONIC");
    "crctest", Optional, Refused("crc32c is the only checksum");
    "server", Optional, Refused("assay has no client/server mode");
    "daemonize", Required, Refused("assay has no client/server mode");
    "client", Required, Refused("assay has no client/server mode");
    "remote-config", Required, Refused("assay has no client/server mode");
    "idle-prof", Required, Refused("the record has the CPU of the run and of the host");
    "inflate-log", Required, Refused("assay does not compress logs");
    "trigger-file", Required, Refused("interrupt the run with a signal");
    "trigger-timeout", Required, Refused("interrupt the run with a signal");
    "trigger", Required, Refused("interrupt the run with a signal");
    "trigger-remote", Required, Refused("interrupt the run with a signal");
};

/// One parsed word.
#[derive(Clone, Debug)]
pub(super) enum Word {
    /// A job option.
    StorageJob(&'static OptionDef, Option<String>),
    /// A job file, or `-`.
    File(String),
}

/// The words of a command line, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Words {
    pub(super) words: Vec<Word>,
    /// `--section`.
    pub(super) sections: Vec<String>,
}

enum Named {
    Program(&'static ProgramOption),
    StorageJob(&'static OptionDef),
    RunDirectory,
}

/// Parses the words.
pub(super) fn read(words: &[String], reading: &mut Reading) -> Words {
    let mut result = Words::default();
    let mut rest = words.iter();
    let mut only_files = false;
    while let Some(word) = rest.next() {
        if reading.is_full() {
            break;
        }
        if only_files || word == "-" || !word.starts_with('-') {
            result.words.push(Word::File(word.clone()));
            continue;
        }
        if word == "--" {
            only_files = true;
            continue;
        }
        let bare = word.strip_prefix("--").unwrap_or(&word[1..]);
        let (name, value) = halves(bare, '=');
        let mut value = value.map(str::to_owned);
        let named = match identify(name, word) {
            Ok(named) => named,
            Err(what) => {
                reading.refuse(ORIGIN, what);
                continue;
            }
        };
        let argument = named.argument();
        if argument == Argument::Required && value.is_none() {
            value = rest.next().cloned();
        }
        if argument == Argument::Required && value.as_deref().is_none_or(str::is_empty) {
            reading.refuse(ORIGIN, format!("{word} needs a value"));
            continue;
        }
        match named {
            Named::StorageJob(option) => result.words.push(Word::StorageJob(option, value)),
            Named::RunDirectory => reading.output.run_directory = value.map(PathBuf::from),
            Named::Program(option) => {
                if let Err(what) = take(option, value.as_deref(), reading, &mut result) {
                    reading.refuse(ORIGIN, format!("{word}: {what}"));
                }
            }
        }
    }
    result
}

impl Named {
    fn argument(&self) -> Argument {
        match self {
            Self::Program(option) => option.argument,
            Self::RunDirectory => Argument::Required,
            Self::StorageJob(option) if option.kind == Kind::Flag => Argument::Optional,
            Self::StorageJob(_) => Argument::Required,
        }
    }
}

/// The option with this name, or the only one that starts with it.
fn identify(name: &str, word: &str) -> Result<Named, String> {
    if name == "o" {
        return Ok(Named::RunDirectory);
    }
    if let Some(option) = PROGRAM.iter().find(|option| option.name == name) {
        return Ok(Named::Program(option));
    }
    if let Some(option) = table::find(name) {
        return Ok(Named::StorageJob(option));
    }
    let programs: Vec<_> = PROGRAM.iter().filter(|option| option.name.starts_with(name)).collect();
    let jobs = table::beginning_with(name);
    match (programs.as_slice(), jobs.as_slice()) {
        ([], []) => Err(unknown(name, word)),
        _ if name.is_empty() => Err(unknown(name, word)),
        ([only], []) => Ok(Named::Program(only)),
        ([], [(_, first), others @ ..]) if others.iter().all(|(_, other)| other.name == first.name) => {
            Ok(Named::StorageJob(first))
        }
        _ => {
            let mut names: Vec<_> = programs.iter().map(|option| option.name).collect();
            names.extend(jobs.iter().map(|(name, _)| *name));
            names.truncate(8);
            Err(format!("{word} could be --{}", names.join(", --")))
        }
    }
}

fn unknown(name: &str, word: &str) -> String {
    let known = PROGRAM
        .iter()
        .map(|option| option.name)
        .chain(table::all().flat_map(|option| std::iter::once(option.name).chain(option.aliases.iter().copied())));
    match nearest(name, known) {
        Some(near) => format!("unknown option {word}; did you mean --{near}?"),
        None => format!("unknown option {word}; --cmdhelp lists them"),
    }
}

/// Applies a program option.
fn take(option: &ProgramOption, value: Option<&str>, reading: &mut Reading, words: &mut Words) -> Result<(), String> {
    let help = match option.becomes {
        Becomes::Works(help) => help,
        Becomes::Refused(why) => return Err(format!("not supported; {why}")),
    };
    let no_effect = || {
        let heard = help.strip_prefix("Heard: ").unwrap_or(help);
        format!("{} has no effect: {heard}", option.name)
    };
    if option.argument == Argument::No && value.is_some() {
        return Err("takes no value".into());
    }
    let text = value.unwrap_or("");
    let output = &mut reading.output;
    match option.name {
        "output" => output.file = Some(PathBuf::from(text)),
        "output-format" => output.formats = formats(text)?,
        "minimal" => output.formats = vec![OutputFormat::Terse],
        "append-terse" => output.append_terse = true,
        "terse-version" if text != "3" => return Err("3 is the only version".into()),
        "parse-only" => output.parse_only = true,
        "showcmd" => output.show_command = true,
        "readonly" => output.readonly = true,
        "label" => output.label = Some(text.to_owned()),
        "until" => output.until = Some(text.to_owned()),
        "at-most" => output.at_most = Some(text.to_owned()),
        "no-record" => output.no_record = true,
        "destroy" => output.destroy.push(PathBuf::from(text)),
        "section" => words.sections.push(text.to_owned()),
        "eta" => {
            output.eta = match text {
                "auto" => Eta::Auto,
                "always" => Eta::Always,
                "never" => Eta::Never,
                _ => return Err("is none of auto, always, never".into()),
            }
        }
        "eta-interval" => output.eta_interval_ns = Some(period(text, 1_000_000)?),
        "eta-newline" => output.eta_newline_ns = Some(period(text, 1_000_000_000)?),
        "status-interval" => output.status_interval_ns = Some(period(text, 1_000_000_000)?),
        "alloc-size" | "max-jobs" => {
            let value = Value { text: Some(text), kind: Kind::Int(1, u64::MAX), decimal: false };
            value.int()?;
            reading.note(no_effect());
        }
        "warnings-fatal" | "aux-path" => reading.note(no_effect()),
        _ => {}
    }
    Ok(())
}

fn formats(text: &str) -> Result<Vec<OutputFormat>, String> {
    text.split(',')
        .map(|name| match name {
            "normal" => Ok(OutputFormat::Normal),
            "json" => Ok(OutputFormat::Json),
            "json+" => Ok(OutputFormat::JsonPlus),
            "terse" | "minimal" => Ok(OutputFormat::Terse),
            _ => Err(format!("{name:?} is none of normal, json, json+, terse")),
        })
        .collect()
}

/// A period that is not too short.
fn period(text: &str, bare_ns: u64) -> Result<u64, String> {
    let ns = time(text, bare_ns)?;
    if ns < SHORTEST_PERIOD_NS {
        return Err("is below 100 ms".into());
    }
    Ok(ns)
}

/// More frequent reports would mostly measure their own cost.
const SHORTEST_PERIOD_NS: u64 = 100_000_000;
