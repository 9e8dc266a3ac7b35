//! `import`: other tools' output as records.

use crate::answer;
use crate::catalogue::{Catalogue, path_of};
use crate::cli::ImportArgs;
use crate::exit::{Code, Failure};
use crate::record;
use crate::rundir::{self, RECORD, RUNS_DIR, RunDir};
use crate::{stored, ui};
use assay_import::{COST, Source, import_all};
use assay_measure::plain::shell_word;
use assay_measure::record::Record;
use assay_measure::units;
use assay_report::compare::is_same;
use assay_report::html::SHARED;
use assay_run::bounded::{self, OUTPUT};
use assay_run::host;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Longer lines are in no tool's output.
const LONGEST_LINE_BYTES: usize = 64_000_000;
/// Read at a time.
const PART_BYTES: u64 = 1 << 20;
/// Records that are compared with a new one, at most, to see whether it was imported before.
const LOOKED_AT: usize = 20;

pub(super) fn import(args: &ImportArgs) -> Result<Code, Failure> {
    if let Some(place) = &args.output {
        rundir::refuse_used(place)?;
    }
    let (mut sources, mut refused) = (Vec::new(), Vec::new());
    let mut budget = Budget::of(&args.files, host::memory::room())?;
    for path in &args.files {
        match source(path, &mut budget) {
            Ok(source) => sources.push(source),
            Err(failure) => refused.push(failure),
        }
    }
    // Nothing is created before everything was read.
    let groups: Vec<Vec<Source>> =
        if args.each { sources.into_iter().map(|source| vec![source]).collect() } else { vec![sources] };
    let mut records = Records { args, first: None, count: 0, known: None };
    for group in groups {
        let ways_out: Vec<Option<Failure>> = group.iter().map(configuration).collect();
        let mut ways_out: BTreeMap<usize, Option<Failure>> = ways_out.into_iter().enumerate().collect();
        for one in import_all(group) {
            let way_out = match one.sources.as_slice() {
                [only] => ways_out.get_mut(only).and_then(Option::take),
                _ => None,
            };
            match (one.result, way_out) {
                // A configuration alone is no result; beside one it says how that was made.
                (Ok(record), Some(way_out)) if is_card(&record) => refused.push(way_out),
                (Ok(record), _) => records.take(record)?,
                (Err(_), Some(way_out)) => refused.push(way_out),
                (Err(error), None) => refused.push(Failure::usage(error.to_string())),
            }
        }
    }
    records.end()?;
    if refused.is_empty() { Ok(Code::Good) } else { said(refused) }
}

/// The records that one report makes, kept nowhere.
pub(super) fn imported(path: &Path) -> Result<Vec<Record>, Failure> {
    let mut budget = Budget::of(&[path.to_path_buf()], host::memory::room())?;
    let made = import_all(vec![source(path, &mut budget)?]);
    made.map(|one| one.result.map_err(|error| Failure::usage(error.to_string()))).collect()
}

/// Everything that was refused, as one failure.
fn said(refused: Vec<Failure>) -> Result<Code, Failure> {
    let lines = refused.into_iter().flat_map(|failure| failure.lines);
    Err(Failure { code: Code::Usage, lines: lines.collect() })
}

/// Bytes that may still be read.
struct Budget {
    most: u64,
    /// What sets it, if that is the memory.
    memory: Option<host::memory::Room>,
}

impl Budget {
    /// For these files, or why they do not fit into the memory there is. What comes through a pipe is counted as it comes.
    fn of(files: &[PathBuf], room: Option<host::memory::Room>) -> Result<Self, Failure> {
        let regular = files.iter().filter_map(|path| fs::metadata(path).ok()).filter(fs::Metadata::is_file);
        let bytes = regular.map(|about| about.len()).fold(0, u64::saturating_add);
        let most = OUTPUT.most_bytes;
        let tight = room.filter(|room| room.free_bytes / COST < most);
        let budget = match tight {
            Some(room) => Self { most: room.free_bytes / COST, memory: Some(room) },
            None => Self { most, memory: None },
        };
        match &budget.memory {
            Some(room) if bytes > budget.most && bytes <= most => {
                Err(Failure::new(Code::Unusable, too_little(room, bytes)))
            }
            _ => Ok(budget),
        }
    }

    fn exceeded(&self) -> io::Error {
        io::Error::other(match &self.memory {
            Some(room) => too_little(room, self.most + 1),
            None => {
                "this file and the files before it have more than 1 GiB, so they are not reports; give the tool's own \
                     output, or import files one by one"
                    .to_owned()
            }
        })
    }
}

/// Why `bytes` cannot be imported in this room.
fn too_little(room: &host::memory::Room, bytes: u64) -> String {
    format!(
        "an import of {} takes up to {} of memory, but the limit of {} ({}) leaves {}: the kernel would kill it; import \
         fewer files at once, or raise the limit",
        units::size(bytes),
        units::size(bytes.saturating_mul(COST)),
        units::size(room.limit_bytes),
        room.by.display(),
        units::size(room.free_bytes)
    )
}

/// Reads a file, as far as the budget goes.
fn source(path: &Path, budget: &mut Budget) -> Result<Source, Failure> {
    let bad = |why: &dyn std::fmt::Display| Failure::usage(format!("{}: {why}", path.display()));
    let bytes = if path == Path::new("-") {
        lines_of(&mut io::stdin().lock(), 0, budget)
    } else {
        bounded::open(path, OUTPUT).and_then(|mut file| {
            let length = file.metadata()?.len();
            // Known before anything is read; a pipe tells no length.
            if length > budget.most { Err(budget.exceeded()) } else { lines_of(&mut file, length, budget) }
        })
    };
    let bytes = bytes.map_err(|error| bad(&error))?;
    budget.most -= budget.most.min(bytes.len() as u64);
    Ok(Source { path: path.display().to_string(), text: text(bytes) })
}

/// Everything up to the end, if the budget allows it and no line is longer than any report's; of `length` bytes, as far as that is
/// known.
fn lines_of(from: &mut dyn Read, length: u64, budget: &Budget) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length as usize + 1)?;
    let mut unbroken = 0;
    loop {
        let seen = bytes.len();
        let read = from.take(PART_BYTES).read_to_end(&mut bytes)?;
        if read == 0 {
            return Ok(bytes);
        }
        if bytes.len() as u64 > budget.most {
            return Err(budget.exceeded());
        }
        let part = &bytes[seen..];
        unbroken = if part.contains(&b'\n') || part.contains(&b'\r') { 0 } else { unbroken + part.len() };
        if unbroken >= LONGEST_LINE_BYTES {
            return Err(io::Error::other(
                "a line is longer than 64 MB, so this is not a report; give the tool's own output",
            ));
        }
    }
}

/// Text of a file: UTF-16 as Windows tools write it, else UTF-8 with what is none replaced.
fn text(bytes: Vec<u8>) -> String {
    let units = |pair: fn([u8; 2]) -> u16| -> String {
        let pairs = bytes[2..].chunks_exact(2);
        let units: Vec<u16> = pairs.map(|two| pair([two[0], two[1]])).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes.as_slice() {
        [0xff, 0xfe, ..] => units(u16::from_le_bytes),
        [0xfe, 0xff, ..] => units(u16::from_be_bytes),
        _ => String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    }
}

fn is_card(record: &Record) -> bool {
    let info = record.import.as_ref();
    info.is_some_and(|info| info.tool == "card")
}

/// The way out where a configuration was given.
fn configuration(source: &Source) -> Option<Failure> {
    let is_small = source.text.len() as u64 <= bounded::CONFIGURATION.most_bytes;
    (is_small && is_configuration(&source.text)).then(|| {
        Failure::usage(format!(
            "{}: is a configuration, not the output of a tool; to run it: assay run -c {}",
            source.path,
            shell_word(&source.path)
        ))
    })
}

/// Records on their way to where they are kept: made, written and dropped one after the other.
struct Records<'a> {
    args: &'a ImportArgs,
    /// It waits until it is known whether there are several.
    first: Option<Record>,
    count: usize,
    /// The records kept before this import, once they are needed.
    known: Option<Option<Catalogue>>,
}

impl Records<'_> {
    fn take(&mut self, record: Record) -> Result<(), Failure> {
        self.count += 1;
        if self.count == 1 && !self.args.each {
            self.first = Some(record);
            return Ok(());
        }
        if let Some(first) = self.first.take() {
            self.share();
            self.leave(first, Some(1))?;
        }
        self.leave(record, Some(self.count))
    }

    /// The only one leaves under no number.
    fn end(&mut self) -> Result<(), Failure> {
        self.first.take().map_or(Ok(()), |only| self.leave(only, None))
    }

    /// Puts the plotting script above several records, so that not each page has its own.
    fn share(&self) {
        let above = self.args.output.as_deref().unwrap_or(Path::new(RUNS_DIR));
        // Where it cannot be, each page has its own.
        if fs::create_dir_all(above).is_ok() {
            let _ = crate::html::share(&above.join(SHARED));
        }
    }

    /// Writes a record and prints the product; the record's failure is told after the product. `number`: its place among several.
    fn leave(&mut self, mut record: Record, number: Option<usize>) -> Result<(), Failure> {
        let id = rundir::new_id();
        let tool = record.import.as_ref().map_or("", |info| info.tool.as_str());
        let kind = format!("import-{tool}");
        let place = match (&self.args.output, number) {
            (Some(above), Some(number)) => above.join(format!("{number}-{tool}")),
            (output, _) => rundir::place(output.as_deref(), &kind, &id),
        };
        record.run.id = id;
        record.run.label.clone_from(&self.args.label);
        if let Some(earlier) = self.imported_before(&record, &place) {
            ui::say(&format!(
                "notice: {} already has the same figures; this is a second record of them",
                earlier.display()
            ));
        }
        let written = RunDir::create(place.clone()).and_then(|dir| {
            dir.write("config/given", &command())?;
            record::write(&dir, &record)?;
            Ok(dir)
        });
        answer::product(&record, self.args.format, &place)?;
        ui::say(&format!("record: {}", written?.path().display()));
        Ok(())
    }

    /// Where the same content lies that was imported before, if the new record goes where runs are kept.
    fn imported_before(&mut self, record: &Record, place: &Path) -> Option<PathBuf> {
        let above = place.parent().filter(|above| above.ends_with(RUNS_DIR))?;
        let known = self.known.get_or_insert_with(|| Catalogue::open(above).ok()).as_ref()?;
        let alike = known.entries.iter().rev().filter(|entry| entry.shows(record)).take(LOOKED_AT);
        alike.map(|entry| path_of(above, entry)).find(|path| {
            let read = stored::read(&path.join(RECORD));
            read.is_ok_and(|before| before.import.is_some() && is_same(&before, record))
        })
    }
}

/// Whether a text sets several parameters of a `slob.conf`.
fn is_configuration(text: &str) -> bool {
    let names = text.lines().filter_map(|line| Some(line.split_once('=')?.0.trim()));
    let known = names.filter(|name| assay_slob::params::is_known(name));
    known.take(2).count() == 2
}

/// The command line, quoted for a shell.
fn command() -> String {
    let words = std::env::args_os().skip(1);
    let quoted: Vec<String> = words.map(|word| shell_word(&word.to_string_lossy())).collect();
    format!("assay {}\n", quoted.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf_16_and_broken_utf_8_are_text() {
        assert_eq!(text(vec![0xff, 0xfe, b'h', 0, b'i', 0]), "hi");
        assert_eq!(text(vec![0xfe, 0xff, 0, b'h', 0, b'i']), "hi");
        assert_eq!(text(b"a\xffb".to_vec()), "a\u{fffd}b");
    }
}
