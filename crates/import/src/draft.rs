//! The record as it is being read: each figure goes into its place and into the list of provenances in one call.

use super::error::VALUES_MAX;
use super::number::Printed;
use super::text::{At, Text};
use super::{ImportError, SourcePlace};
use assay_measure::record::{Figure, ImportInfo, ImportNote, ImportedFile, ImportedValue, Record};
use assay_storage::record::info::StorageInfo;
use std::collections::{HashMap, HashSet};

/// Notes of one text at most: what goes wrong on every line of a long one is said often enough by then.
const NOTES_MAX: usize = 200;

/// Figures of all steps of a series at most.
pub(crate) const CELLS_MAX: usize = 4 * VALUES_MAX;

/// One value that was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reading {
    value: ImportedValue,
    is_again: bool,
}

impl Reading {
    /// A value under our key, as it stands at a place.
    pub(crate) fn new(at: At, key: impl Into<String>, printed: Printed) -> Self {
        let key = key.into();
        Self {
            value: ImportedValue {
                name: key.clone(),
                key,
                scope: String::new(),
                value: printed.value,
                rounding: printed.rounding,
                layer: "engine".to_owned(),
                at: String::new(),
                printed: printed.text,
                file: at.file,
                line: at.line,
            },
            is_again: false,
        }
    }

    /// A figure that its tool prints in several places of one output: the more precise one is kept, and where two
    /// differ by more than their rounding that is a note, not a contradiction.
    #[must_use]
    pub(crate) fn again(mut self) -> Self {
        self.is_again = true;
        self
    }

    /// Our key.
    pub(crate) fn key(&self) -> &str {
        &self.value.key
    }

    /// Whether it is of one of several things of a kind.
    pub(crate) fn is_scoped(&self) -> bool {
        !self.value.scope.is_empty()
    }

    /// The number and what it may be off by, if there is one.
    pub(crate) fn known(&self) -> Option<(f64, f64)> {
        Some((self.value.value.value()?, self.value.rounding))
    }

    /// The name the tool prints.
    #[must_use]
    pub(crate) fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.value.name);
        self
    }

    /// What it is of, where there are several of the kind.
    #[must_use]
    pub(crate) fn scope(mut self, scope: &str) -> Self {
        scope.clone_into(&mut self.value.scope);
        self
    }

    /// Where it was measured: `client`, `engine` (unless said otherwise), `syscall`, `device`, `network`.
    #[must_use]
    pub(crate) fn layer(mut self, layer: &str) -> Self {
        layer.clone_into(&mut self.value.layer);
        self
    }
}

/// A field of a record that a figure can go into.
pub(crate) trait Slot: Sized {
    /// What it holds of a figure; none where it cannot hold it.
    fn of(figure: &Figure) -> Option<Self>;

    /// The place of a reading that goes here; what cannot be held is listed separately.
    fn place(&self, reading: &Reading, at: String) -> String {
        if Self::of(&reading.value.value).is_some() { at } else { String::new() }
    }
}

impl Slot for Figure {
    fn of(figure: &Figure) -> Option<Self> {
        Some(figure.clone())
    }
}

impl Slot for u64 {
    fn of(figure: &Figure) -> Option<Self> {
        match figure {
            Figure::Count(count) => Some(*count),
            Figure::Decimal(value) if *value >= 0.0 && *value < u64::MAX as f64 => Some(value.round() as u64),
            _ => None,
        }
    }
}

impl Slot for f64 {
    fn of(figure: &Figure) -> Option<Self> {
        figure.value()
    }
}

/// The record under construction.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// The record; figures that were read go into it by [`put!`] and [`put_in!`] alone.
    pub(crate) record: Record,
    /// Its part of the kind `storage`, if it gets one.
    pub(crate) storage: Option<StorageInfo>,
    info: ImportInfo,
    seen: HashMap<String, usize>,
    /// Where values went.
    placed: HashSet<String>,
    /// Lines that were read, by file and line.
    lines: HashSet<(u64, u64)>,
    conflict: Option<ImportError>,
    /// There was more than a record takes: nothing else goes in, and the import fails at its end.
    pub(crate) is_full: bool,
}

impl Draft {
    pub(super) fn new(texts: &[Text], sizes: &[u64]) -> Self {
        let mut draft = Self::default();
        for (text, size_bytes) in texts.iter().zip(sizes) {
            draft.info.files.push(ImportedFile {
                path: text.path.clone(),
                size_bytes: *size_bytes,
                lines_count: text.lines.len() as u64,
            });
            draft.info.notes.extend(text.notes.iter().cloned());
        }
        draft
    }

    /// Says what was recognised: the tool's version if it tells (else empty), and the form in words.
    pub(crate) fn recognised(&mut self, version: &str, format: &str) {
        version.clone_into(&mut self.info.tool_version);
        format.clone_into(&mut self.info.format);
    }

    /// What was recognised so far.
    pub(crate) fn said(&self) -> (String, String) {
        (self.info.tool_version.clone(), self.info.format.clone())
    }

    /// Puts back what was recognised.
    pub(crate) fn say(&mut self, (version, format): (String, String)) {
        self.recognised(&version, &format);
    }

    /// A line was read, though perhaps no figure is in it.
    pub(crate) fn saw(&mut self, at: At) {
        self.lines.insert((at.file, at.line));
    }

    /// Whether a line was read.
    pub(crate) fn has_seen(&self, at: At) -> bool {
        self.lines.contains(&(at.file, at.line))
    }

    /// Damage tolerated, or a part left out. A line of 0 speaks of the whole file.
    pub(crate) fn note(&mut self, at: At, text: impl Into<String>) {
        let of_file = |note: &&ImportNote| note.file == at.file;
        let already = self.info.notes.iter().filter(of_file).count();
        let text = match already.cmp(&NOTES_MAX) {
            std::cmp::Ordering::Less => text.into(),
            std::cmp::Ordering::Equal => "further notes on this file are left out".to_owned(),
            std::cmp::Ordering::Greater => return,
        };
        self.saw(at);
        let (file, line) = (at.file, at.line);
        self.info.notes.push(ImportNote { file, line, text });
    }

    /// A value without a place of its own in the record.
    pub(crate) fn alone(&mut self, reading: Reading) {
        self.keep(reading, String::new());
    }

    /// Writes a value down with where it goes; what comes back is what goes there. `None` where the value stood before:
    /// an equal one adds nothing, a different one is a contradiction, which fails the import at its end.
    pub(crate) fn keep(&mut self, reading: Reading, at: String) -> Option<Figure> {
        self.is_full |= self.info.values.len() >= VALUES_MAX;
        if self.is_full {
            return None;
        }
        let is_again = reading.is_again;
        let mut value = reading.value;
        self.lines.insert((value.file, value.line));
        value.at = at;
        if value.value.value().is_none() && ["nan", "inf"].contains(&value.printed.trim_start_matches('-')) {
            let text = format!("{} is n/a: {} is printed, which is no number", value.name, value.printed);
            self.note(At { file: value.file, line: value.line }, text);
        }
        let name = format!("{}\u{1f}{}", value.scope, value.key);
        let next = self.info.values.len();
        let index = *self.seen.entry(name).or_insert(next);
        match self.info.values.get_mut(index) {
            None => {
                // Names that differ in signs alone have one place: the first takes it, the others are listed
                // separately.
                let is_taken = !value.at.is_empty() && !self.placed.insert(value.at.clone());
                if is_taken {
                    let text =
                        format!("{} {} is listed separately: that name already has a value", value.scope, value.name);
                    let (file, line) = (value.file, value.line);
                    value.at.clear();
                    self.info.values.push(value);
                    self.note(At { file, line }, text);
                    return None;
                }
                let figure = value.value.clone();
                self.info.values.push(value);
                Some(figure)
            }
            // What stood there was unreadable; this one is not.
            Some(earlier)
                if earlier.value.value().is_none()
                    && (earlier.at == value.at || earlier.at.is_empty() && self.placed.insert(value.at.clone())) =>
            {
                let figure = value.value.clone();
                *earlier = value;
                Some(figure)
            }
            Some(earlier) if agree(earlier, &value) => {
                let is_finer = value.value.value().is_some() && value.rounding < earlier.rounding;
                if !(is_finer && earlier.at == value.at) {
                    return None;
                }
                let figure = value.value.clone();
                *earlier = value;
                Some(figure)
            }
            Some(earlier) if is_again && earlier.file == value.file => {
                let text = format!(
                    "{} is {} in line {} and {} here; assay keeps the first value",
                    value.name, earlier.printed, earlier.line, value.printed
                );
                let (file, line) = (value.file, value.line);
                self.note(At { file, line }, text);
                None
            }
            Some(earlier) => {
                if self.conflict.is_none() {
                    self.conflict = Some(contradiction(&self.info.files, earlier, &value));
                }
                None
            }
        }
    }

    /// Whether a value was read already.
    pub(crate) fn has(&self, scope: &str, key: &str) -> bool {
        self.seen.contains_key(&format!("{scope}\u{1f}{key}"))
    }

    /// A value that was read already.
    pub(crate) fn number(&self, scope: &str, key: &str) -> Option<f64> {
        let index = self.seen.get(&format!("{scope}\u{1f}{key}"))?;
        self.info.values.get(*index)?.value.value()
    }

    /// Where a value stands that was read already.
    pub(crate) fn at(&self, scope: &str, key: &str) -> Option<At> {
        let index = self.seen.get(&format!("{scope}\u{1f}{key}"))?;
        let value = self.info.values.get(*index)?;
        let (file, line) = (value.file, value.line);
        Some(At { file, line })
    }

    /// What a value may be off by for its rounding; `None` if it was not read.
    pub(crate) fn rounding(&self, scope: &str, key: &str) -> Option<f64> {
        let index = self.seen.get(&format!("{scope}\u{1f}{key}"))?;
        Some(self.info.values.get(*index)?.rounding)
    }

    /// The tabs of a file are the tool's own, not what pasting did.
    pub(crate) fn own_tabs(&mut self, file: u64) {
        let notes = &mut self.info.notes;
        notes.retain(|note| note.file != file || !note.text.starts_with("tabs were read"));
    }

    /// A value that a finer figure takes the place of: it stays in the list, without a place in the record.
    pub(crate) fn displaced(&mut self, scope: &str, key: &str) {
        let index = self.seen.get(&format!("{scope}\u{1f}{key}"));
        if let Some(value) = index.and_then(|i| self.info.values.get_mut(*i)) {
            value.at.clear();
        }
    }

    /// Follows rows of a list of the record to their new places: row `order[i]` is now row `i`.
    pub(crate) fn reordered(&mut self, list: &str, order: &[usize]) {
        let mut places = vec![0; order.len()];
        for (new, old) in order.iter().enumerate() {
            places[*old] = new;
        }
        let prefix = format!("/{list}/");
        for value in &mut self.info.values {
            let Some(rest) = value.at.strip_prefix(&prefix) else {
                continue;
            };
            let Some((old, column)) = rest.split_once('/') else {
                continue;
            };
            let new = old.parse::<usize>().ok().and_then(|old| places.get(old));
            if let Some(new) = new {
                value.at = format!("{prefix}{new}/{column}");
            }
        }
    }

    /// Values read so far.
    pub(crate) fn len(&self) -> usize {
        self.info.values.len()
    }

    /// The record with its provenances, unless what was read contradicts itself.
    pub(super) fn finish(mut self) -> Result<(Record, ImportInfo), ImportError> {
        if let Some(info) = &self.storage {
            self.record.parts.put(info);
        }
        match self.conflict {
            Some(conflict) => Err(conflict),
            None => Ok((self.record, self.info)),
        }
    }
}

/// Whether two readings of one figure can be the same figure.
fn agree(a: &ImportedValue, b: &ImportedValue) -> bool {
    match (a.value.value(), b.value.value()) {
        (Some(x), Some(y)) => {
            let slack = a.rounding + b.rounding + 1e-9 * x.abs().max(y.abs());
            (x - y).abs() <= slack
        }
        _ => true,
    }
}

fn contradiction(files: &[ImportedFile], first: &ImportedValue, second: &ImportedValue) -> ImportError {
    let place = |value: &ImportedValue| SourcePlace {
        path: usize::try_from(value.file)
            .ok()
            .and_then(|i| files.get(i))
            .map_or_else(String::new, |file| file.path.clone()),
        line: value.line,
        printed: value.printed.clone(),
    };
    let name = if first.scope.is_empty() { first.name.clone() } else { format!("{} of {}", first.name, first.scope) };
    ImportError::Contradiction { name, first: Box::new(place(first)), second: Box::new(place(second)) }
}

/// A key as a step of a JSON pointer.
pub(crate) fn step(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
