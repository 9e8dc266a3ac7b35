//! fio's language: command lines and job files become typed jobs.
//!
//! Owns the option table, the grammar of values, command lines and job files, and help on all of them. Pure except for
//! `buffer_pattern=.FILE.`: everything external comes through [`World`], so that tests can feed it any text. Knows
//! nothing of files, devices or threads; the binary and the probe call it.

mod draft;
mod expression;
mod finish;
mod help;
mod ini;
mod number;
mod setters;
pub mod table;
#[cfg(test)]
mod tests;
pub mod value;
mod words;

pub use help::{command_line, help_asked, overview};
pub use words::{Argument, Becomes, PROGRAM, ProgramOption};

use self::draft::{Draft, Reading};
use self::table::{OptionDef, Use};
use self::value::{Kind, Value};
use self::words::{ORIGIN, Word};
use crate::spec::{GivenOption, Invocation, SpecError, StorageJob};
use assay_run::bounded;
use assay_run::host::text;
use std::io;
use std::path::Path;

/// The environment of the parser.
#[derive(Clone, Copy)]
pub struct World<'a> {
    /// The environment: `${NAME}` in job files.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// `$ncpus`.
    pub cpus: u32,
    /// `$pagesize`.
    pub page_bytes: u64,
    /// `$mb_memory`.
    pub memory_mib: u64,
    /// Reads a job file.
    pub read_file: &'a dyn Fn(&Path) -> io::Result<String>,
    /// Reads standard input.
    pub stdin: &'a dyn Fn() -> io::Result<String>,
}

impl std::fmt::Debug for World<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World")
            .field("cpus", &self.cpus)
            .field("page_bytes", &self.page_bytes)
            .field("memory_mib", &self.memory_mib)
            .finish_non_exhaustive()
    }
}

impl World<'static> {
    /// This machine and process.
    #[must_use]
    pub fn here() -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            env: &|name| std::env::var(name).ok(),
            cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
            page_bytes: rustix::param::page_size() as u64,
            memory_mib: memory_mib().unwrap_or(0),
            read_file: &|path| bounded::text(path, bounded::JOBS),
            stdin: &|| bounded::stream(io::stdin(), bounded::JOBS),
        }
    }
}

fn memory_mib() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    Some(text::meminfo(&text).get("total")? >> 20)
}

/// Parses a command line (the words after `assay io`) and the job files it names.
///
/// # Errors
/// Everything that is wrong, each with its origin.
pub fn parse(words: &[String], world: &World<'_>) -> Result<Invocation, Vec<SpecError>> {
    let mut reading = Reading::default();
    let words = words::read(words, &mut reading);
    let mut builder =
        Builder { reading, world, defaults: Draft::default(), global_options: Vec::new(), jobs: Vec::new(), copied: 0 };
    builder.command_line(&words.words);
    builder.job_files(&words.words, &words.sections);
    builder.done()
}

/// A job that is not checked yet.
struct Begun {
    name: String,
    origin: String,
    given: Vec<GivenOption>,
    draft: Draft,
}

struct Builder<'a> {
    reading: Reading,
    world: &'a World<'a>,
    /// The initial options of jobs.
    defaults: Draft,
    global_options: Vec<GivenOption>,
    jobs: Vec<StorageJob>,
    /// Total bytes of the global options, copied for every job.
    copied: usize,
}

/// Maximum number of jobs, as in fio.
const MOST_JOBS: usize = 4096;
/// Maximum total of the global options copied to jobs, bytes.
const MOST_COPIED: usize = 64 << 20;

impl Builder<'_> {
    /// Jobs of the command line. Options before the first `--name` and after `--name=global` apply to all jobs that
    /// follow.
    fn command_line(&mut self, words: &[Word]) {
        let mut current: Option<Begun> = None;
        for word in words {
            let Word::StorageJob(option, value) = word else {
                continue;
            };
            if option.name == "name" {
                if let Some(begun) = current.take() {
                    self.judge(begun);
                }
                let name = value.clone().unwrap_or_default();
                let given = ("name".to_owned(), Some(name.clone()));
                if name == "global" {
                    self.global_options.push(given);
                } else {
                    current = Some(Begun {
                        name,
                        origin: ORIGIN.to_owned(),
                        given: vec![given],
                        draft: self.defaults.begin(),
                    });
                }
                continue;
            }
            let (draft, given) = match &mut current {
                Some(begun) => (&mut begun.draft, &mut begun.given),
                None => (&mut self.defaults, &mut self.global_options),
            };
            set(draft, option, value.as_deref(), ORIGIN, &mut self.reading);
            given.push((option.name.to_owned(), value.clone()));
        }
        if let Some(begun) = current {
            self.judge(begun);
        }
    }

    /// Reads job files, each behind a stonewall of its own. Global options of the command line only reach the first
    /// file, as in fio.
    fn job_files(&mut self, words: &[Word], sections: &[String]) {
        let files = words.iter().filter_map(|word| match word {
            Word::File(name) => Some(name),
            Word::StorageJob(..) => None,
        });
        for (place, name) in files.enumerate() {
            if self.reading.is_full() {
                return;
            }
            if place > 0 {
                if !self.global_options.is_empty() {
                    self.reading.note(format!("options for all jobs do not apply to the job file {name}, as in fio"));
                }
                self.defaults = Draft::default();
                self.global_options.clear();
            }
            self.job_file(name, place > 0, sections);
        }
    }

    fn job_file(&mut self, name: &str, mut wall: bool, wanted: &[String]) {
        for section in ini::read(name, self.world, &mut self.reading) {
            let global = section.title == "global";
            if !global && !wanted.is_empty() && !wanted.contains(&section.title) {
                continue;
            }
            let mut begun =
                Begun { name: section.title, origin: section.origin, given: Vec::new(), draft: self.defaults.begin() };
            if !global && wall {
                begun.draft.options.stonewall = true;
                wall = false;
            }
            self.entries(&mut begun, section.entries);
            if global {
                self.defaults = begun.draft;
                self.global_options.append(&mut begun.given);
            } else {
                self.judge(begun);
            }
        }
    }

    /// Applies the options of a section, starting with those that other values depend on.
    fn entries(&mut self, begun: &mut Begun, mut entries: Vec<ini::Entry>) {
        entries.sort_by_cached_key(|entry| rank(&entry.key));
        for entry in entries {
            if self.reading.is_full() {
                return;
            }
            let Some(option) = table::find(&entry.key) else {
                let near =
                    table::nearest_name(&entry.key).map_or(String::new(), |near| format!("; did you mean {near}?"));
                self.reading.refuse(&entry.origin, format!("unknown option {}{near}", entry.key));
                continue;
            };
            if option.name == "name" {
                begun.name = entry.value.clone().unwrap_or_default();
            }
            set(&mut begun.draft, option, entry.value.as_deref(), &entry.origin, &mut self.reading);
            begun.given.push((option.name.to_owned(), entry.value.clone()));
        }
    }

    /// Completes a job: checks it as a whole and adds it.
    fn judge(&mut self, begun: Begun) {
        let finished = finish::finish(begun.draft, self.reading.output.readonly);
        for what in finished.errors {
            self.reading.refuse(&begun.origin, format!("job {}: {what}", begun.name));
        }
        for note in finished.notes {
            self.reading.note(note);
        }
        let options = finished.options;
        if let Some(first) = &options.pace.wait_for
            && !self.jobs.iter().any(|job| job.name == *first && job.name != begun.name)
        {
            self.reading.refuse(
                &begun.origin,
                format!("job {}: wait_for={first}: no other job of this name is defined before it", begun.name),
            );
        }
        let length = |(name, value): &GivenOption| name.len() + value.as_ref().map_or(0, String::len);
        self.copied += self.global_options.iter().map(length).sum::<usize>();
        if self.jobs.len() == MOST_JOBS || self.copied > MOST_COPIED {
            let what = format!("more than {MOST_JOBS} jobs, or options for all that are too long for so many");
            self.reading.refuse(&begun.origin, what);
            return;
        }
        let inherited = self.global_options.clone();
        let (wave, group) = match self.jobs.last() {
            None => (0, 0),
            Some(last) => (
                last.wave + u32::from(options.stonewall),
                last.group + u32::from(options.stonewall || options.new_group),
            ),
        };
        self.jobs.push(StorageJob {
            name: begun.name,
            origin: begun.origin,
            given: begun.given,
            inherited,
            wave,
            group,
            options,
        });
    }

    fn done(mut self) -> Result<Invocation, Vec<SpecError>> {
        if self.jobs.is_empty() && self.reading.errors.is_empty() {
            self.reading
                .refuse(ORIGIN, "there is no job: define one with --name=JOB and its options, or name a job file");
        }
        if !self.reading.errors.is_empty() {
            return Err(self.reading.errors);
        }
        let Reading { output, files, .. } = self.reading;
        Ok(Invocation { global_options: self.global_options, jobs: self.jobs, output, files, scratch: None })
    }
}

/// The order in which fio applies the keys of a section; its JSON shows it.
fn rank(key: &str) -> u32 {
    match table::find(key) {
        Some(option) if !table::engines_of(option).is_empty() => 3,
        Some(option) if ["filename", "filename_format"].contains(&option.name) => 2,
        Some(option) if ["kb_base", "unit_base"].contains(&option.name) => 0,
        _ => 1,
    }
}

/// Sets an option.
fn set(draft: &mut Draft, option: &OptionDef, text: Option<&str>, origin: &str, reading: &mut Reading) {
    let said = match text {
        Some(text) => format!("{}={text}", option.name),
        None => option.name.to_owned(),
    };
    let value = Value { text, kind: option.kind, decimal: draft.decimal };
    if text == Some("") || (text.is_none() && !option.kind.may_be_bare()) {
        reading.refuse(origin, format!("{} needs a value ({})", option.name, option.kind));
        return;
    }
    let done = match option.usage {
        Use::Works(set) => set(draft, &value),
        // A value of a choice that fio has and assay does not.
        Use::Accepted(why) if matches!(option.kind, Kind::Choice(_)) && value.check().is_err() => {
            reading.refuse(origin, format!("not supported: {said}; {why}"));
            return;
        }
        Use::Accepted(_) if text == Some(option.default) => value.check(),
        Use::Accepted(why) => value.check().map(|()| {
            let note = format!("{} has no effect: {why}", option.name);
            if !draft.notes.contains(&note) {
                draft.notes.push(note);
            }
        }),
        // The default requests nothing: a job file that spells it out is not refused.
        Use::Refused(_) if !option.default.is_empty() && text == Some(option.default) => Ok(()),
        Use::Refused(instead) => {
            reading.refuse(origin, format!("not supported: {said}; {instead}"));
            return;
        }
    };
    if !table::engines_of(option).is_empty() {
        draft.engine_options.retain(|(name, _)| *name != option.name);
        draft.engine_options.push((option.name, true));
    }
    if let Err(what) = done {
        reading.refuse(origin, format!("{said} {what}"));
    }
}
