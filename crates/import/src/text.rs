//! A text as parsers see it: numbered lines, with what pasting does to a text undone and noted.

use super::pasted;
use assay_measure::record::ImportNote;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Lines that recognition looks at; a whole report says what it is within them.
const HEAD_LINES: usize = 2000;
/// What the lines of any tool's output have on average at least, bytes. A line takes several times its length here, so a text of
/// line ends alone would take fifty times its own.
pub(crate) const LINE_BYTES: usize = 12;
/// A text so small may consist of anything, bytes.
const SMALL: usize = 1 << 16;
/// What tabs may add to a text as large, bytes; further ones are read as one blank.
const TABS_BYTES: usize = 16 << 20;

/// Where something stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct At {
    /// Index of the file.
    pub(crate) file: u64,
    /// Line in that file, from 1; 0 for the whole file.
    pub(crate) line: u64,
}

/// One line, mended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Where it stands.
    pub(crate) at: At,
    /// Its text: ASCII quotes and blanks, no tabs, no trailing blanks.
    pub(crate) text: String,
    /// Stands for something that whoever passed the text on took out: `...`, `redacted`.
    pub(crate) is_cut: bool,
}

/// One file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text {
    /// Index of the file.
    pub(crate) file: u64,
    /// Path as given.
    pub(crate) path: String,
    /// As it came, for what is not made of lines.
    pub(crate) raw: Arc<String>,
    /// Its lines, mended; none where they are too short to be any tool's.
    pub(crate) lines: Lines,
    /// How many there are, if they are too short.
    pub(crate) crumbs: Option<usize>,
    /// The time in front of its first line, where lines have one that is not the tool's.
    pub(crate) started: String,
    /// What was mended.
    pub(crate) notes: Vec<ImportNote>,
}

/// Lines of a file that all parts of it share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    all: Arc<Vec<Line>>,
    here: Range<usize>,
}

impl From<Vec<Line>> for Lines {
    fn from(all: Vec<Line>) -> Self {
        Self { here: 0..all.len(), all: Arc::new(all) }
    }
}

impl Deref for Lines {
    type Target = [Line];

    fn deref(&self) -> &[Line] {
        &self.all[self.here.clone()]
    }
}

impl<'a> IntoIterator for &'a Lines {
    type Item = &'a Line;
    type IntoIter = std::slice::Iter<'a, Line>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// A kind of damage: how often, and the first line with it.
#[derive(Default)]
struct Damage {
    quotes: Tally,
    blanks: Tally,
    dashes: Tally,
    tabs: Tally,
    escapes: Tally,
    pages: Tally,
    cuts: Tally,
    /// Bytes that tabs have added.
    widened: usize,
}

#[derive(Default)]
struct Tally {
    lines: u64,
    first: u64,
}

impl Tally {
    fn hit(&mut self, line: u64) {
        if self.lines == 0 {
            self.first = line;
        }
        self.lines += 1;
    }

    fn said(&self, what: &str) -> Option<(u64, String)> {
        let more = match self.lines {
            0 => return None,
            1 => String::new(),
            n => format!(" (here and on {} more lines)", n - 1),
        };
        Some((self.first, format!("{what}{more}")))
    }
}

impl Text {
    /// Splits and mends a text.
    pub(crate) fn read(file: u64, path: &str, raw: impl Into<String>) -> Self {
        let raw = Arc::new(raw.into());
        let mut text = Self { file, path: path.to_owned(), raw: Arc::clone(&raw), ..Self::default() };
        let count = raw.bytes().filter(|byte| *byte == b'\n').count() + 1;
        if raw.len() > SMALL && raw.len() / count < LINE_BYTES {
            text.crumbs = Some(count);
            return text;
        }
        let mut damage = Damage::default();
        let body = raw.strip_prefix('\u{feff}').unwrap_or(&raw);
        let mut lines: Vec<Line> = Vec::with_capacity(count);
        let mut take = |number: u64, text: &str| {
            let at = At { file, line: number };
            let text = mend(text, at.line, raw.len() + TABS_BYTES, &mut damage);
            let is_cut = is_cut(&text) && !is_clones_mark(&lines);
            if is_cut {
                damage.cuts.hit(at.line);
            }
            lines.push(Line { at, text, is_cut });
        };
        match pasted::undone(body) {
            None => body.lines().enumerate().for_each(|(i, line)| take(i as u64 + 1, line)),
            Some((printed, undone)) => {
                printed.iter().for_each(|(number, line)| take(*number, line));
                text.started = undone.started;
                for (line, what) in undone.notes {
                    text.note(line, what);
                }
            }
        }
        text.lines = lines.into();
        if body.len() < raw.len() {
            text.note(1, "a byte order mark was skipped".to_owned());
        }
        text.say(&damage);
        text
    }

    /// Lines of the file before the first of these.
    pub(crate) fn skipped(&self) -> usize {
        let first = self.lines.first().map_or(1, |line| line.at.line);
        first.saturating_sub(1) as usize
    }

    /// The same as another file of a record.
    pub(crate) fn of_file(mut self, file: u64) -> Self {
        if self.file == file {
            return self;
        }
        self.file = file;
        let mut lines = self.lines.to_vec();
        for line in &mut lines {
            line.at.file = file;
        }
        self.lines = lines.into();
        for note in &mut self.notes {
            note.file = file;
        }
        self
    }

    /// Takes over what was mended in the whole of which this is the first part.
    pub(crate) fn inherit(&mut self, whole: &Self) {
        let is_new = |note: &&ImportNote| !self.notes.contains(note);
        let notes: Vec<ImportNote> = whole.notes.iter().filter(is_new).cloned().collect();
        self.notes.extend(notes);
        self.started.clone_from(&whole.started);
    }

    /// Some of its lines, with their places in the whole; what was mended is [inherited](Self::inherit) by the first.
    pub(crate) fn part(&self, lines: Range<usize>) -> Self {
        let before = self.lines.here.start;
        let here = before + lines.start..before + lines.end;
        let lines = Lines { all: Arc::clone(&self.lines.all), here };
        Self { file: self.file, path: self.path.clone(), lines, ..Self::default() }
    }

    /// Several parts of it as one text.
    pub(crate) fn parts(&self, ranges: &[Range<usize>]) -> Self {
        match ranges {
            [range] => self.part(range.clone()),
            _ => {
                let lines: Vec<Line> = ranges.iter().flat_map(|range| self.lines[range.clone()].to_vec()).collect();
                Self { file: self.file, path: self.path.clone(), lines: lines.into(), ..Self::default() }
            }
        }
    }

    fn say(&mut self, damage: &Damage) {
        let said = [
            damage.quotes.said("typographic quotes were read as straight quotes"),
            damage.blanks.said("special spaces were read as normal spaces"),
            damage.dashes.said("long dashes were read as hyphens"),
            damage.tabs.said("tabs were read as spaces up to the next multiple of 8"),
            damage.escapes.said("terminal colours were removed"),
            damage.pages.said("page breaks were skipped"),
            damage.cuts.said("something was cut out or redacted here before the import"),
        ];
        for (line, what) in said.into_iter().flatten() {
            self.note(line, what);
        }
    }

    fn note(&mut self, line: u64, text: String) {
        let file = self.file;
        self.notes.push(ImportNote { file, line, text });
    }

    /// The lines that recognition looks at.
    pub(crate) fn head(&self) -> &[Line] {
        &self.lines[..self.lines.len().min(HEAD_LINES)]
    }

    /// Whether one of the first lines contains this.
    pub(crate) fn head_has(&self, part: &str) -> bool {
        self.head().iter().any(|line| line.text.contains(part))
    }

    /// Whether one of the first lines begins with this, blanks aside.
    pub(crate) fn head_begins(&self, part: &str) -> bool {
        self.head().iter().any(|line| line.text.trim_start().starts_with(part))
    }

    /// The first character that is no blank.
    pub(crate) fn first_char(&self) -> Option<char> {
        let mut lines = self.lines.iter();
        lines.find_map(|line| line.text.trim_start().chars().next())
    }

    /// Whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.text.is_empty())
    }
}

fn mend(rest: &str, number: u64, room: usize, damage: &mut Damage) -> String {
    let is_plain = |byte: u8| (b' '..0x7f).contains(&byte);
    if rest.bytes().all(is_plain) {
        return rest.trim_end().to_owned();
    }
    let mut text = String::with_capacity(rest.len());
    let mut chars = rest.chars().peekable();
    let mut stop = 0;
    let (mut quotes, mut blanks, mut dashes, mut tabs, mut escapes) = (false, false, false, false, false);
    while let Some(c) = chars.next() {
        match c {
            '\t' => {
                tabs = true;
                // Behind a tab the columns begin anew.
                let width = if damage.widened > room { 1 } else { 8 - text[stop..].chars().count() % 8 };
                damage.widened += width - 1;
                text.extend(std::iter::repeat_n(' ', width));
                stop = text.len();
            }
            '\u{c}' => damage.pages.hit(number),
            '\u{1b}' => {
                escapes = true;
                if chars.next_if_eq(&'[').is_some() {
                    while chars.next_if(|c| !c.is_ascii_alphabetic()).is_some() {}
                    chars.next();
                }
            }
            '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{2032}' => (quotes, ()) = (true, text.push('\'')),
            '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{2033}' => (quotes, ()) = (true, text.push('"')),
            '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => {
                (blanks, ()) = (true, text.push(' '));
            }
            '\u{2010}'..='\u{2015}' | '\u{2212}' => (dashes, ()) = (true, text.push('-')),
            '\u{2026}' => text.push_str("..."),
            '\u{200b}'..='\u{200f}' | '\u{feff}' | '\r' => {}
            '\u{fffd}' => text.push('?'),
            other => text.push(other),
        }
    }
    for (found, tally) in [
        (quotes, &mut damage.quotes),
        (blanks, &mut damage.blanks),
        (dashes, &mut damage.dashes),
        (tabs, &mut damage.tabs),
        (escapes, &mut damage.escapes),
    ] {
        if found {
            tally.hit(number);
        }
    }
    text.truncate(text.trim_end().len());
    text.shrink_to_fit();
    text
}

/// Whether the line before announces a job of fio's: dots below it say that the job has several clones.
fn is_clones_mark(before: &[Line]) -> bool {
    before.last().is_some_and(|line| line.text.contains(": (g="))
}

/// Whether a line only says that others are missing.
fn is_cut(line: &str) -> bool {
    const WORDS: [&str; 8] = ["redacted", "snip", "snipped", "cut", "removed", "omitted", "deleted", "truncated"];
    let bare = line.trim();
    if bare.is_empty() {
        return false;
    }
    let inner = bare.trim_matches(|c: char| " .[]<>()-*".contains(c));
    let is_dots = inner.is_empty() && bare.contains("..");
    let is_marked = inner.len() < bare.len() || inner.eq_ignore_ascii_case("redacted");
    is_dots || (is_marked && WORDS.iter().any(|word| inner.eq_ignore_ascii_case(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pasting_is_undone_and_noted_once_for_each_kind() {
        let raw =
            "\u{feff}a\u{a0}b\r\n\u{201c}c\u{201d} \u{2013} d\r\n\te\n...\n\u{c}f\n\u{1b}[31mg\u{1b}[0m\nx\u{a0}y\n";
        let text = Text::read(3, "pasted.txt", raw);
        let found: Vec<&str> = text.lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(found, ["a b", "\"c\" - d", "        e", "...", "f", "g", "x y"]);
        assert!(text.lines[3].is_cut);
        assert_eq!(text.notes.len(), 8, "{:#?}", text.notes);
        assert!(text.notes.iter().all(|note| note.file == 3));
        let blanks = text.notes.iter().find(|note| note.text.contains("spaces were read"));
        let blanks = blanks.expect("noted").clone();
        assert_eq!(blanks.line, 1);
        assert!(blanks.text.contains("1 more"), "{}", blanks.text);
    }

    #[test]
    fn a_line_that_stands_for_missing_ones_is_known() {
        for line in ["...", " . . . ..", "[snip]", "<redacted>", "--- removed ---", "(...)"] {
            assert!(is_cut(line), "{line}");
        }
        for line in ["-----", "cut", "1.5", "Elapsed: ...", ""] {
            assert!(!is_cut(line), "{line}");
        }
    }
}
