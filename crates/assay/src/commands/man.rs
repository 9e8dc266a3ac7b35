//! `man`: the manual, a page for the program and one for each command, made from the definition that the help is made from.

use crate::cli::{Cli, ManArgs};
use crate::exit::{Code, Failure, MEANINGS};
use crate::rundir::{RunDir, cannot};
use crate::ui;
use assay_run::bounded;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};
use std::io;

/// The first line of every page: what has it may be written anew.
const MARK: &str = ".\\\" Written by `assay man`, which overwrites it without asking.\n";

/// What the program reads from its environment.
const ENVIRONMENT: [(&str, &str); 6] = [
    (
        "ASSAY_<NAME>",
        "The parameter NAME. It overrides the file of -c; the command line overrides it: ASSAY_UPDATE_PCT=30. `assay \
         config show --all` lists all parameters. A password can be given in this way or in a file, never on the \
         command line.",
    ),
    ("ASSAY_FIO_VERSION", "The version that `assay io` prints in place of fio's, for scripts that require one."),
    ("PGHOST, PGPASSFILE, ...", "The variables of libpq, for what a postgres: target does not specify."),
    ("NO_COLOR", "If not empty, the answer has no colours."),
    ("TERM", "If `dumb`, assay shows progress line by line."),
    ("TMPDIR", "Where temp:postgres keeps its server, unless PG_DIR is set; the default is /var/tmp."),
];

/// What the program reads and leaves.
const FILES: [(&str, &str); 7] = [
    (
        "./assay-runs/TIME-KIND-ID/record.json",
        "Everything that a run measured. assay makes every form of output from this file.",
    ),
    (
        "./assay-runs/TIME-KIND-ID/series.jsonl",
        "The seconds of a run, written while it runs; after a kill `assay runs recover` makes a record from them.",
    ),
    (
        "./assay-runs/TIME-KIND-ID/report.txt, report.html",
        "The answer and the whole report, as text and as a page with charts.",
    ),
    ("./assay-runs/TIME-KIND-ID/config/", "The configuration as given and as it was in force, without secrets."),
    ("./assay-runs/catalogue.jsonl", "The catalogue of the runs beside it; `assay runs rebuild` makes it again."),
    ("./assay-data/", "The data set of the native target, unless --target names another."),
    ("./slob.conf", "`runit` and `setup` read this file by default; other commands read the file that -c names."),
];

pub(super) fn man(args: &ManArgs) -> Result<Code, Failure> {
    let dir = &args.dir;
    let pages = pages();
    std::fs::create_dir_all(dir).map_err(|error| cannot(dir, &error))?;
    let kept = RunDir::existing(dir)?;
    for (name, _) in &pages {
        let is_ours = match kept.held().read(name, bounded::PAGE) {
            Ok(text) => text.starts_with(MARK),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if !is_ours {
            return Err(Failure::usage(format!(
                "{}: assay did not write this file, so it wrote nothing; name another directory",
                dir.join(name).display()
            )));
        }
    }
    for (name, text) in &pages {
        kept.write(name, text)?;
    }
    ui::say(&format!("{} pages are in {}", pages.len(), dir.display()));
    Ok(Code::Good)
}

/// Every page: its file's name and its text.
fn pages() -> Vec<(String, String)> {
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();
    let mut pages = Vec::new();
    add(&program, true, &mut pages);
    pages
}

fn add(command: &Command, is_program: bool, pages: &mut Vec<(String, String)>) {
    let man = Man::new(command.clone());
    let name = man.get_filename();
    let text = page(command, &man, is_program).expect("memory accepts every write");
    pages.push((name, text));
    for below in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        add(below, false, pages);
    }
}

fn page(command: &Command, man: &Man, is_program: bool) -> io::Result<String> {
    // No date: the same program writes the same pages.
    let (name, version) = (man.get_filename(), env!("CARGO_PKG_VERSION"));
    let name = name.trim_end_matches(".1");
    let mut out = format!("{MARK}.TH {name} 1 \"\" \"assay {version}\" assay\n").into_bytes();
    man.render_name_section(&mut out)?;
    let mut more = Roff::new();
    if command.is_disable_help_flag_set() {
        // It reads its own options, and says itself what they are.
        as_it_stands(&mut more, &assay_storage::language::overview());
    } else {
        // The page's own would name every option twice.
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ");
        let synopsis: [Inline; 1] = [bold(usage)];
        Roff::new().control("SH", ["SYNOPSIS"]).text(synopsis).to_writer(&mut out)?;
        man.render_description_section(&mut out)?;
        man.render_options_section(&mut out)?;
        if command.get_subcommands().any(|one| !one.is_hide_set()) {
            man.render_subcommands_section(&mut out)?;
        }
    }
    match command.get_after_help() {
        Some(notes) if !is_program => {
            more.control("SH", ["NOTES"]);
            notes.to_string().lines().for_each(|line| {
                more.control("PP", []).text([roman(line)]);
            });
        }
        _ => {}
    }
    let codes = MEANINGS.map(|(code, _, meaning)| ((code as u8).to_string(), meaning));
    listed(&mut more, "EXIT STATUS", &codes);
    if is_program {
        listed(&mut more, "ENVIRONMENT", &ENVIRONMENT);
        listed(&mut more, "FILES", &FILES);
    } else {
        let see: [Inline; 3] = [roman("Environment and files: "), bold("assay"), roman("(1)")];
        more.control("SH", ["SEE ALSO"]).text(see);
    }
    more.to_writer(&mut out)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

fn listed<T: AsRef<str>>(roff: &mut Roff, title: &str, rows: &[(T, &str)]) {
    roff.control("SH", [title]);
    for (term, text) in rows {
        roff.control("TP", []).text([bold(term.as_ref())]);
        roff.text([roman(*text)]);
    }
}

fn as_it_stands(roff: &mut Roff, text: &str) {
    roff.control("SH", ["DESCRIPTION"]).control("nf", []);
    text.lines().for_each(|line| {
        roff.text([roman(line)]);
    });
    roff.control("fi", []);
}
