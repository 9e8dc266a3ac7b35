//! `import`: other tools' output as records.

use crate::answer;
use crate::catalogue::{Catalogue, path_of};
use crate::cli::ImportArgs;
use crate::exit::{Code, Failure};
use crate::record::{self, Faces};
use crate::rundir::{self, RECORD, RUNS_DIR, RunDir};
use crate::{stored, ui};
use assay_import::{Source, import_all};
use assay_measure::config::SLOB_PARAMS;
use assay_measure::plain::shell_word;
use assay_measure::record::Record;
use assay_report::compare::is_same;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Files larger in all are no report of anything.
const MOST_BYTES: u64 = 1_000_000_000;
/// Longer lines are in no tool's output.
const LONGEST_LINE_BYTES: usize = 64_000_000;
/// Read at a time.
const PART_BYTES: u64 = 1 << 20;

/// A record that is not written yet, and where it goes.
struct Imported {
    place: PathBuf,
    faces: Faces,
}

pub(super) fn import(args: &ImportArgs) -> Result<Code, Failure> {
    if let Some(place) = &args.output {
        rundir::refuse_used(place)?;
    }
    let (mut sources, mut refused) = (Vec::new(), Vec::new());
    let mut most = MOST_BYTES;
    for path in &args.files {
        match source(path, most) {
            Ok(source) => {
                most -= most.min(source.text.len() as u64);
                sources.push(source);
            }
            Err(failure) => refused.push(failure),
        }
    }
    // Nothing is created before everything was read.
    let groups: Vec<&[Source]> = match args.each {
        true => sources.chunks(1).collect(),
        false => vec![&sources],
    };
    let mut records = Vec::new();
    for group in groups {
        for one in import_all(group) {
            let of_one: Vec<&Source> = one.sources.iter().map(|at| &group[*at]).collect();
            match (one.result, configuration(&of_one)) {
                // A configuration alone is no result; beside one it says how that was made.
                (Ok(record), Some(way_out)) if is_card(&record) => refused.push(way_out),
                (Ok(record), _) => records.push(record),
                (Err(_), Some(way_out)) => refused.push(way_out),
                (Err(error), None) => refused.push(Failure::usage(error.to_string())),
            }
        }
    }
    let is_several = args.each || records.len() > 1;
    let mut all = Vec::new();
    for (at, record) in records.into_iter().enumerate() {
        all.push(imported(args, record, is_several.then_some(at + 1))?);
    }
    if all.is_empty() {
        return said(refused);
    }
    for one in all {
        leave(args, one)?;
    }
    match refused.is_empty() {
        true => Ok(Code::Good),
        false => said(refused),
    }
}

/// Everything that was refused, as one failure.
fn said(refused: Vec<Failure>) -> Result<Code, Failure> {
    let lines = refused.into_iter().flat_map(|failure| failure.lines);
    Err(Failure { code: Code::Usage, lines: lines.collect() })
}

/// Reads a file of at most `most` bytes.
fn source(path: &Path, most: u64) -> Result<Source, Failure> {
    let bad = |why: &dyn std::fmt::Display| Failure::usage(format!("{}: {why}", path.display()));
    let bytes = match path == Path::new("-") {
        true => bounded(&mut std::io::stdin().lock(), most),
        false => fs::File::open(path).and_then(|mut file| {
            let about = file.metadata()?;
            // Known before anything is read; a pipe tells no length.
            match about.is_file() && about.len() > most {
                true => Err(too_large()),
                false => bounded(&mut file, most),
            }
        }),
    };
    Ok(Source { path: path.display().to_string(), text: text(bytes.map_err(|error| bad(&error))?) })
}

/// Everything up to the end, if that is at most `most` bytes and no line is longer than any report's.
fn bounded(from: &mut dyn Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut line_begins = 0;
    loop {
        let seen = bytes.len();
        let read = from.take(PART_BYTES).read_to_end(&mut bytes)?;
        if read == 0 {
            return Ok(bytes);
        }
        if bytes.len() as u64 > most {
            return Err(too_large());
        }
        for (at, byte) in bytes[seen..].iter().enumerate() {
            if matches!(byte, b'\n' | b'\r') {
                line_begins = seen + at + 1;
            } else if seen + at - line_begins >= LONGEST_LINE_BYTES {
                return Err(io::Error::other(
                    "a line is longer than 64 MB, so this is not a report; give the tool's own output",
                ));
            }
        }
    }
}

fn too_large() -> io::Error {
    io::Error::other(
        "this file and the files before it have more than 1 GB, so they are not reports; give the tool's own output, \
         or import files one by one",
    )
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

/// The way out where all that was given is a configuration.
fn configuration(sources: &[&Source]) -> Option<Failure> {
    let [source] = sources else {
        return None;
    };
    is_configuration(&source.text).then(|| {
        Failure::usage(format!(
            "{}: is a configuration, not the output of a tool; to run it: assay run -c {}",
            source.path,
            shell_word(&source.path)
        ))
    })
}

/// `number`: its place among several records.
fn imported(args: &ImportArgs, mut record: Record, number: Option<usize>) -> Result<Imported, Failure> {
    let id = rundir::new_id();
    let tool = record.import.as_ref().map_or("", |info| info.tool.as_str());
    let kind = format!("import-{tool}");
    let place = match (&args.output, number) {
        (Some(above), Some(number)) => above.join(format!("{number}-{tool}")),
        (output, _) => rundir::place(output.as_deref(), &kind, &id),
    };
    record.run.id = id;
    record.run.label.clone_from(&args.label);
    let faces = Faces::of(record)?;
    Ok(Imported { place, faces })
}

/// Whether a text sets several parameters of a `slob.conf`.
fn is_configuration(text: &str) -> bool {
    let names = text.lines().filter_map(|line| Some(line.split_once('=')?.0.trim()));
    let known = names.filter(|name| SLOB_PARAMS.iter().any(|param| param.name == *name));
    known.take(2).count() == 2
}

/// Writes a record and prints the product; the record's failure is told after the product.
fn leave(args: &ImportArgs, imported: Imported) -> Result<(), Failure> {
    let faces = &imported.faces;
    if let Some(earlier) = imported_before(&faces.record, &imported.place) {
        ui::say(&format!(
            "notice: {} already has the same figures; this is a second record of them",
            earlier.display()
        ));
    }
    let written = RunDir::create(imported.place.clone()).and_then(|dir| {
        dir.write("config/given", &command())?;
        record::write(&dir, faces)?;
        Ok(dir)
    });
    answer::product(faces, args.format, &imported.place)?;
    ui::say(&format!("record: {}", written?.path().display()));
    Ok(())
}

/// Where the same content lies that was imported before, if the new record goes where runs are kept.
fn imported_before(record: &Record, place: &Path) -> Option<PathBuf> {
    let above = place.parent().filter(|above| above.ends_with(RUNS_DIR))?;
    let catalogue = Catalogue::open(above).ok()?;
    let alike = catalogue
        .entries
        .iter()
        .rev()
        .filter(|entry| entry.kind == record.kind && record.run.started.starts_with(&entry.started));
    alike.map(|entry| path_of(above, entry)).find(|path| {
        let read = stored::read(&path.join(RECORD));
        read.is_ok_and(|before| before.import.is_some() && is_same(&before, record))
    })
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
