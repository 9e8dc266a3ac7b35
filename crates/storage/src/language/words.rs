//! The command line: options of the program, options of jobs, job files.

use super::draft::Reading;
use super::table::{self, OptionDef};
use super::value::{Kind, Value, time};
use crate::spec::{Eta, OutputFormat};
use assay_measure::config::nearest;
use std::path::PathBuf;

/// Where words come from, in errors.
pub(super) const ORIGIN: &str = "command line";

/// Whether an option of the program takes an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// None.
    No,
    /// Behind an equals sign, or the next word.
    Required,
    /// Behind an equals sign only.
    Optional,
}

/// An option of the program.
#[derive(Clone, Copy, Debug)]
pub struct ProgramOption {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub argument: Argument,
    /// One line of help; empty where it is not supported.
    pub help: &'static str,
    /// Why it is not supported.
    pub refused: &'static str,
}

const fn program(name: &'static str, argument: Argument, help: &'static str) -> ProgramOption {
    ProgramOption {
        name,
        argument,
        help,
        refused: "",
    }
}

const fn refused(name: &'static str, argument: Argument, refused: &'static str) -> ProgramOption {
    ProgramOption {
        name,
        argument,
        help: "",
        refused,
    }
}

/// Options of the program: fio's, and behind them ours.
pub static PROGRAM: &[ProgramOption] = &[
    program("help", Argument::No, "Show how to call it"),
    program("version", Argument::No, "Show the version"),
    program(
        "cmdhelp",
        Argument::Optional,
        "List the options of jobs, or explain one",
    ),
    program(
        "enghelp",
        Argument::Optional,
        "List the engines, or the options of one",
    ),
    program(
        "output",
        Argument::Required,
        "Write the report to this file",
    ),
    program(
        "output-format",
        Argument::Required,
        "normal, json, json+, terse; commas between several",
    ),
    program("minimal", Argument::No, "The same as --output-format=terse"),
    program(
        "append-terse",
        Argument::No,
        "Add the terse line below the report",
    ),
    program("terse-version", Argument::Required, "3 is the only one"),
    program("parse-only", Argument::No, "Read the jobs and stop"),
    program(
        "showcmd",
        Argument::No,
        "Show job files as command lines and stop",
    ),
    program("readonly", Argument::No, "Refuse jobs that write"),
    program(
        "section",
        Argument::Required,
        "Only this section of the job files; may be repeated",
    ),
    program(
        "eta",
        Argument::Required,
        "When to show progress: auto, always, never",
    ),
    program(
        "eta-interval",
        Argument::Required,
        "How often to show progress",
    ),
    program(
        "eta-newline",
        Argument::Required,
        "Begin a new line of progress that often",
    ),
    program(
        "status-interval",
        Argument::Required,
        "Report the whole run so far that often",
    ),
    program(
        "warnings-fatal",
        Argument::No,
        "Heard: what is doubtful is refused anyway",
    ),
    program(
        "alloc-size",
        Argument::Required,
        "Heard: memory grows as needed",
    ),
    program(
        "max-jobs",
        Argument::Required,
        "Heard: there is no limit of jobs to raise",
    ),
    program(
        "aux-path",
        Argument::Required,
        "Heard: no state files are written",
    ),
    program(
        "destroy",
        Argument::Required,
        "This file or device may be overwritten; may be repeated",
    ),
    program(
        "label",
        Argument::Required,
        "A name for the run in lists, reports and comparisons",
    ),
    program("no-record", Argument::No, "Leave no run directory"),
    refused(
        "debug",
        Argument::Required,
        "the report and the record say what was done",
    ),
    refused(
        "merge-blktrace-only",
        Argument::No,
        "traces are neither written nor replayed",
    ),
    refused("bandwidth-log", Argument::No, "use write_bw_log in the job"),
    refused("cpuclock-test", Argument::No, "time is CLOCK_MONOTONIC"),
    refused("crctest", Argument::Optional, "crc32c is the only checksum"),
    refused(
        "server",
        Argument::Optional,
        "there is no client and server here",
    ),
    refused(
        "daemonize",
        Argument::Required,
        "there is no client and server here",
    ),
    refused(
        "client",
        Argument::Required,
        "there is no client and server here",
    ),
    refused(
        "remote-config",
        Argument::Required,
        "there is no client and server here",
    ),
    refused(
        "idle-prof",
        Argument::Required,
        "the record has the CPU of the run and of the host",
    ),
    refused("inflate-log", Argument::Required, "logs are not compressed"),
    refused(
        "trigger-file",
        Argument::Required,
        "interrupt the run with a signal",
    ),
    refused(
        "trigger-timeout",
        Argument::Required,
        "interrupt the run with a signal",
    ),
    refused(
        "trigger",
        Argument::Required,
        "interrupt the run with a signal",
    ),
    refused(
        "trigger-remote",
        Argument::Required,
        "interrupt the run with a signal",
    ),
];

/// One word, understood.
#[derive(Clone, Debug)]
pub(super) enum Word {
    /// An option of jobs.
    Job(&'static OptionDef, Option<String>),
    /// A job file, or `-`.
    File(String),
}

/// What a command line says, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Words {
    pub(super) words: Vec<Word>,
    /// `--section`.
    pub(super) sections: Vec<String>,
}

enum Named {
    Program(&'static ProgramOption),
    Job(&'static OptionDef),
    RunDirectory,
}

/// Takes words apart.
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
        let (name, mut value) = match bare.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (bare, None),
        };
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
            Named::Job(option) => result.words.push(Word::Job(option, value)),
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
            Self::Job(option) if option.kind == Kind::Flag => Argument::Optional,
            Self::Job(_) => Argument::Required,
        }
    }
}

/// The option of this name, or the only one that begins so.
fn identify(name: &str, word: &str) -> Result<Named, String> {
    if name == "o" {
        return Ok(Named::RunDirectory);
    }
    if let Some(option) = PROGRAM.iter().find(|option| option.name == name) {
        return Ok(Named::Program(option));
    }
    if let Some(option) = table::find(name) {
        return Ok(Named::Job(option));
    }
    let programs: Vec<_> = PROGRAM
        .iter()
        .filter(|option| option.name.starts_with(name))
        .collect();
    let jobs = table::beginning_with(name);
    match (programs.as_slice(), jobs.as_slice()) {
        ([], []) => Err(unknown(name, word)),
        _ if name.is_empty() => Err(unknown(name, word)),
        ([only], []) => Ok(Named::Program(only)),
        ([], [(_, first), others @ ..])
            if others.iter().all(|(_, other)| other.name == first.name) =>
        {
            Ok(Named::Job(first))
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
    let known = PROGRAM.iter().map(|option| option.name).chain(
        table::all()
            .flat_map(|option| std::iter::once(option.name).chain(option.aliases.iter().copied())),
    );
    match nearest(name, known) {
        Some(near) => format!("unknown option {word}; did you mean --{near}?"),
        None => format!("unknown option {word}; --cmdhelp lists them"),
    }
}

/// Takes an option of the program.
fn take(
    option: &ProgramOption,
    value: Option<&str>,
    reading: &mut Reading,
    words: &mut Words,
) -> Result<(), String> {
    if !option.refused.is_empty() {
        return Err(format!("not supported; {}", option.refused));
    }
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
            let value = Value {
                text: Some(text),
                kind: Kind::Int(1, u64::MAX),
                decimal: false,
            };
            value.int()?;
            reading.note(format!("{} has no effect: {}", option.name, heard(option)));
        }
        "warnings-fatal" | "aux-path" => {
            reading.note(format!("{} has no effect: {}", option.name, heard(option)));
        }
        _ => {}
    }
    Ok(())
}

fn heard(option: &ProgramOption) -> &'static str {
    option.help.strip_prefix("Heard: ").unwrap_or(option.help)
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

/// A period that is long enough to be kept.
fn period(text: &str, bare_ns: u64) -> Result<u64, String> {
    let ns = time(text, bare_ns)?;
    if ns < SHORTEST_PERIOD_NS {
        return Err("is below 100 ms".into());
    }
    Ok(ns)
}

/// Reports more often than this would measure themselves.
const SHORTEST_PERIOD_NS: u64 = 100_000_000;
