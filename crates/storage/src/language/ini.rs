//! Job files: sections, keys, comments, includes, variables.

use super::World;
use super::draft::Reading;
use super::{expression, value};
use std::path::{Path, PathBuf};

/// A line `key=value` or `key` of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) value: Option<String>,
    /// `job file FILE, line N`.
    pub(super) origin: String,
}

/// A section with its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) title: String,
    pub(super) origin: String,
    pub(super) entries: Vec<Entry>,
}

/// Maximum nesting of includes, which also ends a cycle.
const DEEPEST_INCLUDE: u32 = 16;

/// Maximum number of files that a job file includes in total: two includes in each would double at every depth.
const MOST_INCLUDES: u32 = 64;

struct Parser<'a> {
    world: &'a World<'a>,
    reading: &'a mut Reading,
    sections: Vec<Section>,
    included: u32,
}

/// The sections of a job file; `-` is standard input.
pub(super) fn read(name: &str, world: &World<'_>, reading: &mut Reading) -> Vec<Section> {
    let text = if name == "-" { (world.stdin)() } else { (world.read_file)(Path::new(name)) };
    let label = if name == "-" { "standard input" } else { name };
    let text = match text {
        Ok(text) => text,
        Err(error) => {
            reading.refuse(&format!("job file {label}"), format!("cannot read it: {error}"));
            return Vec::new();
        }
    };
    let mut parser = Parser { world, reading, sections: Vec::new(), included: 0 };
    parser.lines(label, &text, 0);
    parser.sections
}

impl Parser<'_> {
    fn lines(&mut self, file: &str, text: &str, depth: u32) {
        self.reading.files.push(text.to_owned());
        for (number, line) in text.lines().enumerate() {
            if self.reading.is_full() {
                return;
            }
            let origin = format!("job file {file}, line {}", number + 1);
            let line = without_comment(line).trim();
            if line.is_empty() {
                continue;
            }
            if let Some(rest) = line.strip_prefix('[') {
                self.title(rest, origin, depth);
            } else if let Some(name) = include_of(line) {
                self.include(file, name, &origin, depth);
            } else {
                self.entry(line, origin);
            }
        }
    }

    fn title(&mut self, rest: &str, origin: String, depth: u32) {
        if depth > 0 {
            self.reading.refuse(&origin, "a section in an included file; an include may contain only keys");
            return;
        }
        // A title may contain brackets; fio takes everything before the last one.
        let Some((title, behind)) = rest.rsplit_once(']') else {
            self.reading.refuse(&origin, format!("[{rest} has no closing bracket"));
            return;
        };
        if title.trim().is_empty() || !behind.trim().is_empty() {
            self.reading.refuse(&origin, format!("[{rest} is not a section title such as [job]"));
            return;
        }
        self.sections.push(Section { title: title.to_owned(), origin, entries: Vec::new() });
    }

    fn entry(&mut self, line: &str, origin: String) {
        let (key, value) = match line.split_once('=') {
            Some((key, value)) => (key.trim(), Some(value.trim())),
            None => (line, None),
        };
        let value = value.map(|value| self.expand(value));
        match self.sections.last_mut() {
            Some(section) => section.entries.push(Entry { key: key.to_owned(), value, origin }),
            None => self.reading.refuse(&origin, format!("{line} is before any [section]")),
        }
    }

    /// Searches for the file as named, then next to the file that names it.
    fn include(&mut self, from: &str, name: &str, origin: &str, depth: u32) {
        if self.sections.is_empty() {
            self.reading.refuse(origin, format!("include {name} is before any [section]"));
            return;
        }
        if depth == DEEPEST_INCLUDE || self.included == MOST_INCLUDES {
            self.reading.refuse(origin, format!("include {name}: includes are nested too deeply, or too many"));
            return;
        }
        self.included += 1;
        let name = self.variables(name);
        let beside: PathBuf = Path::new(from).parent().unwrap_or(Path::new("")).join(&name);
        let here = (self.world.read_file)(Path::new(&name));
        let (path, text) = match here {
            Ok(text) => (name.clone(), Ok(text)),
            Err(first) => match (self.world.read_file)(&beside) {
                Ok(text) => (beside.to_string_lossy().into_owned(), Ok(text)),
                Err(_) => (name.clone(), Err(first)),
            },
        };
        match text {
            Ok(text) => self.lines(&path, &text, depth + 1),
            Err(error) => self.reading.refuse(origin, format!("include {name}: cannot read it: {error}")),
        }
    }

    /// Expands environment and machine variables; if a machine variable was replaced, the value is an expression, as in
    /// fio.
    fn expand(&self, text: &str) -> String {
        let text = self.variables(text);
        let replaced = text
            .replace("$ncpus", &self.world.cpus.to_string())
            .replace("$pagesize", &self.world.page_bytes.to_string())
            .replace("$mb_memory", &self.world.memory_mib.to_string());
        if replaced == text || value::number(&replaced, false).is_ok() {
            return replaced;
        }
        match expression::evaluate(&replaced, false) {
            Ok(number) => number.to_string(),
            Err(_) => replaced,
        }
    }

    /// Replaces `${NAME}` with its value, or with nothing if it has none.
    fn variables(&self, text: &str) -> String {
        let mut result = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            result.push_str(&rest[..start]);
            let behind = &rest[start + 2..];
            let Some(end) = behind.find('}') else {
                rest = &rest[start..];
                break;
            };
            result.push_str(&(self.world.env)(&behind[..end]).unwrap_or_default());
            rest = &behind[end + 1..];
        }
        result.push_str(rest);
        result
    }
}

/// Removes the comment: everything after `;` or `#`, wherever it appears.
fn without_comment(line: &str) -> &str {
    line.find([';', '#']).map_or(line, |start| &line[..start])
}

fn include_of(line: &str) -> Option<&str> {
    let name = line.strip_prefix("include")?;
    let trimmed = name.trim_start();
    (trimmed.len() < name.len() && !trimmed.is_empty()).then_some(trimmed)
}
