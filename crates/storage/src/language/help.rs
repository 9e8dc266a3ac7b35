//! Help texts, and jobs printed as command lines.

use super::table::{self, Category, OptionDef, Use};
use super::value::halves;
use super::words::{Becomes, PROGRAM, ProgramOption};
use crate::spec::{GivenOption, Invocation};
use assay_measure::plain::shell_word;
use std::fmt::Write;

/// Handles `--version`, `--cmdhelp`, `--enghelp` and `--help`: the text to print, or an error.
#[must_use]
pub fn help_asked(words: &[String]) -> Option<Result<String, String>> {
    for word in words {
        let Some(bare) = word.strip_prefix('-') else {
            continue;
        };
        let bare = bare.strip_prefix('-').unwrap_or(bare);
        let (name, value) = halves(bare, '=');
        match (name, value) {
            ("cmdhelp", None | Some("")) => return Some(Ok(list(true))),
            ("cmdhelp", Some("all")) => return Some(Ok(everything())),
            ("cmdhelp", Some(name)) => return Some(explain(name)),
            ("enghelp", None | Some("")) => return Some(Ok(engines())),
            ("enghelp", Some(engine)) => return Some(engine_options(engine)),
            ("help" | "h", None) => return Some(Ok(overview())),
            ("version" | "v", None) => return Some(Ok(concat!("assay-", env!("CARGO_PKG_VERSION"), "\n").to_owned())),
            _ => {}
        }
    }
    None
}

const INTRODUCTION: &str = "\
Measures the bare storage with fio's options, job files and reports

Usage: assay io [JOBFILE...] [OPTIONS] [--name=JOB [JOB OPTIONS]]...
       assay io DIR [OPTIONS]      8 KiB random reads there, at depth 1 and 32; assay removes its scratch file

assay takes fio's command lines and job files as they are: options before the first --name apply to every job,
a JOBFILE of `-` is standard input. An option of fio that assay does not have is an error.

  assay io --name=redo --filename=redo.dat --size=1g --rw=write --bs=4k --fdatasync=1 --time_based --runtime=30
  assay io --name=data --filename=/u01/file --rw=randread --bs=8k --direct=1 --ioengine=io_uring --iodepth=32 \\
           --time_based --runtime=60 --readonly

The report is on standard output, or in --output=FILE, which must be new or empty; progress and notes are on
standard error. The run directory, ./assay-runs/TIME-io-ID, keeps record.json, report.txt, fio.json and the jobs.

Options:
";

const CLOSE: &str = "
Safety: reading never writes, and assay never extends a file that it did not make. A job that writes to an
existing file or device that is not assay's own needs --destroy with its exact path. assay refuses a device that
is mounted, swap or part of something else in any case. --parse-only prints what a run would touch, and stops.

Exit codes: 0 good, 1 bug, 2 usage, 3 target or host unusable, 4 I/O errors or a missed rate, 6 output not
written, 130 interrupted. fio's own are 0 and 1.
";

/// The text of `--help`.
#[must_use]
pub fn overview() -> String {
    let mut text = INTRODUCTION.to_owned();
    for option in PROGRAM {
        if let Becomes::Works(help) = option.becomes {
            let _ = writeln!(text, "  {:<22} {help}", spelled(option));
        }
    }
    let _ = writeln!(text, "  {:<22} The run directory", "-o DIR");
    text.push_str(
        "\nOptions of jobs: --cmdhelp lists them, --cmdhelp=NAME explains one; --enghelp lists \
         the engines.\n",
    );
    text + CLOSE
}

fn spelled(option: &ProgramOption) -> String {
    match option.argument {
        super::Argument::No => format!("--{}", option.name),
        super::Argument::Required => format!("--{}=...", option.name),
        super::Argument::Optional => format!("--{}[=...]", option.name),
    }
}

/// All options by category, one line each.
fn list(with_refused: bool) -> String {
    let mut text = String::new();
    for category in Category::ALL {
        if category == Category::Refused && !with_refused {
            continue;
        }
        let _ = writeln!(text, "{}:", category.title());
        for option in table::all().filter(|option| option.category == category) {
            let _ = writeln!(text, "  {:<28} {}", option.name, option.help);
        }
        text.push('\n');
    }
    text
}

fn everything() -> String {
    let mut text = String::new();
    for option in table::all() {
        text.push_str(&explained(option));
        text.push('\n');
    }
    text
}

fn explain(name: &str) -> Result<String, String> {
    table::find(name).map(explained).ok_or_else(|| {
        let near = table::nearest_name(name).map_or(String::new(), |near| format!("; did you mean {near}?"));
        format!("unknown option {name}{near}")
    })
}

fn explained(option: &OptionDef) -> String {
    let mut text = format!("{}: {}\n", option.name, option.help);
    if !option.aliases.is_empty() {
        let _ = writeln!(text, "  also: {}", option.aliases.join(", "));
    }
    let _ = writeln!(text, "  value: {}", option.kind);
    let default = if option.default.is_empty() { "none" } else { option.default };
    let _ = writeln!(text, "  default: {default}");
    let engines = table::engines_of(option);
    if !engines.is_empty() {
        let names: Vec<_> =
            ENGINES.iter().filter(|(_, _, engine)| engines.contains(engine)).map(|(name, ..)| *name).collect();
        let _ = writeln!(text, "  engines: {}", names.join(", "));
    }
    match option.usage {
        Use::Works(_) => {}
        Use::Accepted(why) => {
            let _ = writeln!(text, "  no effect: {why}");
        }
        Use::Refused(instead) => {
            let _ = writeln!(text, "  not supported: {instead}");
        }
    }
    text
}

use crate::spec::IoEngine;

const ENGINES: &[(&str, &str, IoEngine)] = &[
    ("io_uring", "Requests through a shared ring", IoEngine::IoUring),
    ("libaio", "Requests by io_submit and io_getevents", IoEngine::Libaio),
    ("psync", "pread and pwrite; also sync, vsync, pvsync", IoEngine::Psync),
    ("pvsync2", "preadv2 and pwritev2", IoEngine::Pvsync2),
    ("null", "Completes at once, without the kernel", IoEngine::Null),
    ("nop", "No-op requests through a real ring", IoEngine::Nop),
];

fn engines() -> String {
    let mut text = String::from("Engines:\n");
    for (name, help, _) in ENGINES {
        let _ = writeln!(text, "  {name:<10} {help}");
    }
    text.push_str("--enghelp=ENGINE lists the options that belong to one.\n");
    text
}

fn engine_options(asked: &str) -> Result<String, String> {
    let (engine, option) = halves(asked, ',');
    let name = match engine {
        "sync" | "vsync" | "pvsync" => "psync",
        other => other,
    };
    let Some((_, _, engine)) = ENGINES.iter().find(|(known, ..)| *known == name) else {
        let names: Vec<_> = ENGINES.iter().map(|(name, ..)| *name).collect();
        return Err(format!("there is no engine {name}; the engines are {}", names.join(", ")));
    };
    if let Some(option) = option {
        return explain(option);
    }
    let mut text = String::new();
    for option in table::all().filter(|option| table::engines_of(option).contains(engine)) {
        let _ = writeln!(text, "  {:<28} {}", option.name, option.help);
    }
    if text.is_empty() {
        let _ = writeln!(text, "{name} has no options of its own");
    }
    Ok(text)
}

/// The jobs as one command line (`--showcmd`).
#[must_use]
pub fn command_line(invocation: &Invocation) -> String {
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut before: &[GivenOption] = &[];
    for job in &invocation.jobs {
        match (job.inherited.strip_prefix(before), lines.last_mut()) {
            (Some([]), Some(_)) => {}
            (Some(added), Some(line)) => {
                line.push("--name=global".to_owned());
                line.extend(added.iter().map(word));
            }
            // Global options that ended with their job file cannot end within a command line.
            _ => {
                let mut line = vec!["assay io".to_owned()];
                line.extend(job.inherited.iter().map(word));
                lines.push(line);
            }
        }
        before = &job.inherited;
        let Some(line) = lines.last_mut() else {
            continue;
        };
        // The last name wins.
        line.push(word(&("name".to_owned(), Some(job.name.clone()))));
        line.extend(job.given.iter().filter(|(name, _)| name != "name").map(word));
    }
    let lines: Vec<String> = lines.iter().map(|line| line.join(" ")).collect();
    lines.join("\n")
}

fn word((name, value): &GivenOption) -> String {
    match value {
        None => format!("--{name}"),
        Some(value) => format!("--{name}={}", shell_word(value)),
    }
}
