//! The job language against damaged job files, and the page that documents it.

use assay_measure::prng::{Purpose, Stream};
use assay_storage::language::table::{self, Category, OptionDef, Use};
use assay_storage::language::{self, World};
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Words and a job file, as the fuzz target has them.
fn throw(text: &str) {
    let (words, file) = text.split_once("\n---\n").unwrap_or(("job.fio", text));
    let words: Vec<String> = words.lines().map(str::to_owned).collect();
    let world = World {
        env: &|name| (name != "NONE").then(|| name.to_lowercase()),
        cpus: 2,
        page_bytes: 4096,
        memory_mib: 1024,
        read_file: &|_| Ok(file.to_owned()),
        stdin: &|| Ok(file.to_owned()),
    };
    match language::parse(&words, &world) {
        Ok(invocation) => assert!(!invocation.jobs.is_empty(), "{text}"),
        Err(errors) => {
            assert!(!errors.is_empty(), "{text}");
            for error in errors {
                let origin = &error.origin;
                let placed =
                    origin == "command line" || (origin.starts_with("job file ") && origin.contains(", line "));
                assert!(placed, "{error}: {text}");
            }
        }
    }
}

#[test]
fn damaged_job_files_are_refused_with_their_line() {
    let mut seeds: Vec<String> = std::fs::read_dir(project("fuzz/seeds/fio_job"))
        .expect("the seeds of the fuzz target")
        .map(|entry| std::fs::read_to_string(entry.expect("a seed").path()).expect("text"))
        .collect();
    seeds.sort();
    assert!(seeds.len() >= 5);
    let names: Vec<&str> = table::all().map(|option| option.name).collect();
    let mut prng = Stream::new(7, 0, Purpose::Test);
    let mut below = |most: usize| usize::try_from(prng.below(most as u64)).expect("it is small");
    for _ in 0..2_000 {
        let mut text: Vec<char> = seeds[below(seeds.len())].chars().collect();
        for _ in 0..=below(4) {
            let at = below(text.len() + 1);
            match below(6) {
                0 => text.truncate(at),
                1 => text.insert(at, "[]=;#:/,-%$({})\n\"0x9k\\ "[..].chars().nth(below(23)).unwrap_or('=')),
                2 => {
                    let name = format!("\n{}=", names[below(names.len())]);
                    text.splice(at..at, name.chars());
                }
                3 => {
                    let end = (at + below(9)).min(text.len());
                    text.drain(at..end);
                }
                4 => {
                    let end = (at + below(30)).min(text.len());
                    let copy = text[at..end].to_vec();
                    text.splice(at..at, copy);
                }
                _ => {
                    let other: Vec<char> = seeds[below(seeds.len())].chars().collect();
                    let from = below(other.len());
                    text.splice(at..at, other[from..].iter().copied());
                }
            }
        }
        throw(&text.into_iter().collect::<String>());
    }
}

fn fate(option: &OptionDef) -> String {
    match option.usage {
        Use::Works(_) => option.help.to_owned(),
        Use::Accepted(why) => format!("*no effect*: {why}"),
        Use::Refused(instead) => format!("*not supported*: {instead}"),
    }
}

/// The tables of the page, from the option table.
fn tables() -> String {
    let mut page = String::new();
    for category in Category::ALL {
        let _ = write!(
            page,
            "\n### {}\n\n| option | value | default | what becomes of it |\n|---|---|---|---|\n",
            category.title()
        );
        for option in table::all().filter(|option| option.category == category) {
            let mut names = format!("`{}`", option.name);
            for alias in option.aliases {
                let _ = write!(names, ", `{alias}`");
            }
            let default = match option.default {
                "" => String::new(),
                default => format!("`{default}`"),
            };
            let _ = writeln!(page, "| {names} | {} | {default} | {} |", option.kind, fate(option));
        }
    }
    page
}

const MARK: &str =
    "<!-- the rest is written by a test: UPDATE_DOCS=1 cargo test -p assay-storage --test io_language -->\n";

#[test]
fn the_page_of_options_says_what_the_table_says() {
    let path = project("docs/design/io-options.md");
    let page = std::fs::read_to_string(&path).expect("the page of options");
    let (head, rest) = page.split_once(MARK).expect("the page has its mark");
    let tables = tables();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{head}{MARK}{tables}")).expect("the page is ours");
        return;
    }
    assert_eq!(rest, tables, "write it anew with UPDATE_DOCS=1");
}
