//! `import`: other tools' output as records.

use crate::cli::{Format, ImportArgs};
use crate::exit::{Code, Failure};
use crate::record::{self, Faces};
use crate::rundir::{self, RunDir};
use crate::ui;
use assay_report::import::{Source, import as read_texts};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Larger files are no report of anything.
const MOST_BYTES: u64 = 1 << 30;

/// A record that is not written yet, and where it goes.
struct Imported {
    place: PathBuf,
    faces: Faces,
}

pub(super) fn import(args: &ImportArgs) -> Result<Code, Failure> {
    if let Some(place) = &args.output {
        rundir::refuse_used(place)?;
    }
    let mut sources = Vec::new();
    for path in &args.files {
        sources.push(source(path)?);
    }
    // Nothing is created before everything was read.
    let groups: Vec<&[Source]> = match args.each {
        true => sources.chunks(1).collect(),
        false => vec![&sources],
    };
    let mut all = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        all.push(imported(args, group, number + 1)?);
    }
    for one in all {
        leave(args, one)?;
    }
    Ok(Code::Good)
}

fn source(path: &Path) -> Result<Source, Failure> {
    let bad = |error: std::io::Error| Failure::usage(format!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    let read = match path == Path::new("-") {
        true => std::io::stdin()
            .lock()
            .take(MOST_BYTES)
            .read_to_end(&mut bytes),
        false => {
            let file = fs::File::open(path).map_err(bad)?;
            file.take(MOST_BYTES).read_to_end(&mut bytes)
        }
    };
    read.map_err(bad)?;
    Ok(Source {
        path: path.display().to_string(),
        text: text(bytes),
    })
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
        _ => String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    }
}

fn imported(args: &ImportArgs, group: &[Source], number: usize) -> Result<Imported, Failure> {
    let mut record = read_texts(group).map_err(|error| Failure::usage(error.to_string()))?;
    let id = rundir::new_id();
    let tool = record.import.as_ref().map_or("", |info| info.tool.as_str());
    let kind = format!("import-{tool}");
    let place = match (&args.output, args.each) {
        (Some(above), true) => above.join(format!("{number}-{tool}")),
        (output, _) => rundir::place(output.as_deref(), &kind, &id),
    };
    record.run.id = id;
    record.run.label.clone_from(&args.label);
    let faces = Faces {
        text: assay_report::text::render(&record),
        json: record::json(&record)?,
        void: Vec::new(),
        record,
    };
    Ok(Imported { place, faces })
}

/// Writes a record and prints the product; the record's failure is told after the product.
fn leave(args: &ImportArgs, imported: Imported) -> Result<(), Failure> {
    let faces = &imported.faces;
    let written = RunDir::create(imported.place).and_then(|dir| {
        dir.write("config/given", &command())?;
        record::write(&dir, faces)?;
        Ok(dir)
    });
    ui::product(match args.format {
        Format::Text => &faces.text,
        Format::Json => &faces.json,
    })?;
    ui::say(&format!("record: {}", written?.path().display()));
    Ok(())
}

/// The command line, quoted for a shell.
fn command() -> String {
    let words = std::env::args_os().skip(1);
    let quoted: Vec<String> = words.map(|word| quote(&word.to_string_lossy())).collect();
    format!("assay {}\n", quoted.join(" "))
}

fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+%@".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
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

    #[test]
    fn a_command_is_quoted_where_a_shell_needs_it() {
        assert_eq!(quote("a.txt"), "a.txt");
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote(""), "''");
    }
}
