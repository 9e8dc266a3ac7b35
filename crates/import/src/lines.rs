//! The table engine: a tool is a table of the lines it prints.
//!
//! A row is where it holds and the line as the tool prints it, with what is read from it in braces:
//!
//! | in a pattern | it is |
//! |---|---|
//! | a blank | any number of blanks, or none |
//! | `[...]` | a part that may be absent; `[[` is a bracket |
//! | `...` | anything up to what follows |
//! | `{key}` | a number with our key; `{key:ms}` says its printed unit, `{key:?}` reads it behind the number |
//! | `{key>name}` | the same in a step, whose series has this name |
//! | `{key\|label}` | the same under another name than the words beside it |
//! | `{key:clock}` | a time such as `1:02:03.4` |
//! | `{@}`, `{@:clock}` | the end of a step: what follows belongs to it; as a time of day |
//! | `{@:begin}`, `{@:end}` | the time of day at which the steps begin, at which the run ended |
//! | `{%}` | the operation that `$` stands for in keys from here on, and the scope of the others |
//! | `{-}` | a dash: the line is of the operation that `{%}` named |
//! | `{&}` | digits that `&` stands for in the keys of this line |
//! | `{~}`, `{~text}` | the scope of what follows in this line; this one |
//! | `{#}`, `{^}`, `{*}` | the version, the date, the engine |
//! | `{=}`, `{=name}` | a setting with the words before it as its name, or with this name |
//! | `{}` | a number that nobody needs |
//!
//! | in the first column | it is |
//! |---|---|
//! | `name`, `>name` | holds in this section alone; begins a section |
//! | `$name`, `/name` | from here on `$` is this operation; the record is of this kind |
//! | `+`, `.` | a new result begins here if one is complete; here one is |
//! | `%` | is of the operation that `{%}` named |
//! | `=` | what was asked for: its figures are exact, and settings too |
//! | `!` | the tool says something went wrong |

use super::draft::{Draft, Reading};
use super::number::{self, Printed};
use super::rows::{clock_s, file, put_step, setting, step};
use super::text::{At, Text};
use super::{Confidence, ImportError};
use assay_measure::plain::slug;
use assay_measure::units::shorten;
use std::collections::HashMap;

/// A tool by its lines.
pub(crate) struct Table {
    /// What is recognised, in words.
    pub(crate) format: &'static str,
    /// Where its figures are measured.
    pub(crate) layer: &'static str,
    /// What `$` stands for at first.
    pub(crate) op: &'static str,
    /// What its operations are called, where a title names them.
    pub(crate) part: &'static str,
    /// Marks of a text of this tool, most telling first: how sure, and what its lines contain (`^` begin with).
    pub(crate) marks: &'static [(u8, &'static [&'static str])],
    /// Its lines: where, pattern.
    pub(crate) lines: &'static [(&'static str, &'static str)],
    /// What a line consists of, where it is several or has something before it.
    pub(crate) parts: Option<fn(&str) -> Vec<String>>,
    /// The scope that a name in the text means.
    pub(crate) scope: fn(&Reader<'_>, &str) -> String,
    /// What no row can say: whether a line that fits none was read.
    pub(crate) other: fn(&mut Reader<'_>, At, &str) -> bool,
    /// What follows from a text that was read.
    pub(crate) end: fn(&mut Reader<'_>),
}

/// A tool of which a table says everything.
pub(crate) const PLAIN: Table = Table {
    format: "",
    layer: "client",
    op: "",
    part: "part",
    marks: &[],
    lines: &[],
    parts: None,
    scope: |_, name| name.to_owned(),
    other: |_, _, _| false,
    end: |_| {},
};

/// What the lines so far say of those to come.
pub(crate) struct Reader<'a> {
    /// The record.
    pub(crate) draft: &'a mut Draft,
    table: &'static Table,
    /// The section the lines are in.
    pub(crate) section: &'static str,
    /// What `$` stands for.
    pub(crate) op: String,
    /// What values belong to which have no operation.
    pub(crate) scope: String,
    /// Lines counted by a tool's own function.
    pub(crate) count: u32,
    /// Where the last line stands.
    pub(crate) at: At,
    /// The time of day at which the steps begin, s.
    begin_s: Option<f64>,
}

const DAY_S: f64 = 86_400.0;

/// What a brace took of a line.
struct Found<'a> {
    spec: &'static str,
    label: &'a str,
    text: &'a str,
    unit: &'a str,
    /// With the unit that was read behind it.
    printed: &'a str,
}

impl Table {
    /// How sure it is that a text is its tool's.
    pub(crate) fn looks_like(&self, text: &Text) -> Confidence {
        let is_there = |mark: &str| match mark.strip_prefix('^') {
            Some(begin) => text.head_begins(begin),
            None => text.head_has(mark),
        };
        let all = self.marks.iter().map(|(sure, marks)| {
            let marks: Vec<(&'static str, bool)> = marks.iter().map(|mark| (*mark, is_there(mark))).collect();
            Confidence::of(*sure, &marks)
        });
        all.fold(Confidence::of(0, &[]), Confidence::or)
    }

    /// Lines at which a further result begins.
    pub(crate) fn runs(&self, text: &Text) -> Vec<usize> {
        let (mut is_over, mut section, mut last_s, mut found) = (false, "", f64::NEG_INFINITY, Vec::new());
        for (i, line) in text.lines.iter().enumerate() {
            let parts = self.parts.map_or_else(|| vec![line.text.trim().to_owned()], |parts| parts(&line.text));
            let Some((place, values)) = parts.iter().find_map(|part| self.fit(section, part.trim())) else {
                continue;
            };
            let end_s = values.iter().find(|value| value.spec.starts_with('@'));
            let end_s = end_s.and_then(|value| value.text.parse::<f64>().ok());
            // Steps that begin anew are of another run.
            let is_earlier = end_s.is_some_and(|end_s| end_s < last_s);
            if is_earlier || (is_over && place.contains('+')) {
                found.push(i);
                (is_over, section, last_s) = (false, "", f64::NEG_INFINITY);
            }
            last_s = end_s.unwrap_or(last_s);
            is_over |= place.contains('.');
            section = words(place, '>').last().unwrap_or(section);
        }
        found
    }

    /// Reads the texts of one run.
    pub(crate) fn read(&'static self, texts: &[Text], draft: &mut Draft) -> Result<(), ImportError> {
        draft.recognised("", self.format);
        for text in texts {
            // Tabs are the tool's own: its columns are not found by their place.
            draft.own_tabs(text.file);
            let mut reader = Reader {
                draft,
                table: self,
                section: "",
                op: self.op.to_owned(),
                scope: String::new(),
                count: 0,
                at: At { file: text.file, line: 0 },
                begin_s: None,
            };
            for line in &text.lines {
                match self.parts {
                    None => reader.line(line.at, line.text.trim()),
                    Some(parts) => parts(&line.text).iter().for_each(|part| reader.line(line.at, part.trim())),
                }
            }
            (self.end)(&mut reader);
        }
        Ok(())
    }

    /// The first row that a line fits.
    fn fit<'a>(&self, section: &str, text: &'a str) -> Option<(&'static str, Vec<Found<'a>>)> {
        let fits = |(place, pattern): &(&'static str, &'static str)| {
            let mut sections = place.split(' ').filter(|word| word.starts_with(char::is_alphabetic)).peekable();
            let is_here = sections.peek().is_none() || sections.any(|name| name == section);
            let mut found = Vec::new();
            let rest = is_here.then(|| walk(pattern, text, &mut found)).flatten();
            rest.is_some_and(|rest| rest.trim().is_empty()).then_some((*place, found))
        };
        self.lines.iter().find_map(fits)
    }
}

/// Words of a row's place that begin with a sign, without it.
fn words(place: &'static str, sign: char) -> impl Iterator<Item = &'static str> {
    place.split(' ').filter_map(move |word| word.strip_prefix(sign))
}

/// Follows a line along a pattern; what is left of the line where it fits.
fn walk<'a>(pattern: &'static str, text: &'a str, found: &mut Vec<Found<'a>>) -> Option<&'a str> {
    let (mut pattern, mut text, mut label, mut name) = (pattern, text, text, "");
    while let Some(sign) = pattern.chars().next() {
        let rest = &pattern[sign.len_utf8()..];
        match sign {
            ' ' => (pattern, text) = (rest, text.trim_start()),
            '[' if rest.starts_with('[') => (pattern, text) = (&rest[1..], text.strip_prefix('[')?),
            '[' => {
                let (inner, after) = rest.split_once(']')?;
                let known = found.len();
                match walk(inner, text, found) {
                    Some(left) => text = left,
                    None => found.truncate(known),
                }
                pattern = after;
            }
            '{' => {
                let (spec, after) = rest.split_once('}')?;
                let words = &label[..label.len() - text.len()];
                let length = match spec.chars().next() {
                    Some('~') if spec.len() > 1 => 0,
                    Some('=' | '%' | '~' | '^' | '*') => up_to(after, text)?,
                    _ if spec.contains(":clock") || spec.starts_with("@:") => {
                        text.find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.').unwrap_or(text.len())
                    }
                    Some('-') => usize::from(text.starts_with('-')),
                    Some('#') => text.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(text.len()),
                    _ => number_length(text),
                };
                let taken = text[..length].trim();
                if (taken.is_empty() && length > 0 || length == 0 && !spec.starts_with('~'))
                    || (spec == "#" && !taken.starts_with(|c: char| c.is_ascii_digit()))
                {
                    return None;
                }
                name = label_of(words, after).unwrap_or(name);
                let whole = text;
                text = &text[length..];
                let mut unit = "";
                if spec.contains(":?") {
                    let begin = text.trim_start();
                    let end = begin.find(|c: char| c.is_whitespace() || ",;()[]".contains(c)).unwrap_or(begin.len());
                    (unit, text) = begin.split_at(end);
                }
                let printed = whole[..whole.len() - text.len()].trim();
                found.push(Found { spec, label: name, text: taken, unit, printed });
                (pattern, label) = (after, text);
            }
            '.' if pattern.starts_with("...") => {
                pattern = &pattern[3..];
                text = &text[up_to(pattern, text)?..];
            }
            _ => (pattern, text) = (rest, text.strip_prefix(sign)?),
        }
    }
    Some(text)
}

/// The name of a figure: the words before it, else those behind it; none where a bracket says more of the last one.
fn label_of<'a>(before: &'a str, after: &'static str) -> Option<&'a str> {
    let before = before.rsplit(", ").next().unwrap_or(before).trim_matches(|c: char| " =:-,[".contains(c));
    let after = &after[..after.find(['{', '[', '(', ',', ']']).unwrap_or(after.len())];
    match before {
        "(" => None,
        "" => Some(after.trim_matches([' ', '.'])),
        _ => Some(before.trim_end_matches([' ', '('])),
    }
}

/// How much of a text stands before what a pattern goes on with.
fn up_to(pattern: &str, text: &str) -> Option<usize> {
    let next = pattern.trim_start();
    let next = &next[..next.find(['{', '[', ' ']).unwrap_or(next.len())];
    let next = next.split("...").next().unwrap_or_default();
    match next {
        "" if pattern.starts_with(" {") => text.find(char::is_whitespace),
        "" => Some(text.len()),
        next => text.find(next),
    }
}

/// How many bytes of a text are the number it begins with; a word where one stands for a number.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut at = usize::from(text.starts_with(['+', '-', '<']));
    let is_fraction = text[at..].starts_with('.') && is_digit(at + 1);
    if !(is_digit(at) || is_fraction) {
        let end = text.find(|c: char| c.is_whitespace() || ",;()[]".contains(c)).unwrap_or(text.len());
        return if number::measure(&text[..end]).is_some() { end } else { 0 };
    }
    loop {
        let is_sign = bytes.get(at).is_some_and(|byte| b".,".contains(byte)) && is_digit(at + 1);
        let is_exponent = bytes.get(at).is_some_and(|byte| b"eE".contains(byte))
            && (is_digit(at + 1) || (bytes.get(at + 1).is_some_and(|byte| b"+-".contains(byte)) && is_digit(at + 2)));
        match () {
            () if is_digit(at) || is_sign => at += 1,
            () if is_exponent => at += 2,
            () => return at,
        }
    }
}

/// Units that tools print, and what they are in the unit of a key: us, s, bytes, bits/s or a rate of a second.
const UNITS: &[(&str, f64)] = &[
    ("ns", 1e-3),
    ("us", 1.0),
    ("usec", 1.0),
    ("usecs", 1.0),
    ("ms", 1e3),
    ("msec", 1e3),
    ("s", 1e6),
    ("sec", 1e6),
    ("secs", 1e6),
    ("m", 6e7),
    ("min", 6e7),
    ("h", 3.6e9),
    ("/min", 1.0 / 60.0),
    ("%", 1.0),
    ("B", 1.0),
    ("byte", 1.0),
    ("bytes", 1.0),
    ("KB", 1024.0),
    ("kbyte", 1024.0),
    ("kbytes", 1024.0),
    ("MB", 1_048_576.0),
    ("Mbyte", 1_048_576.0),
    ("Mbytes", 1_048_576.0),
    ("Mbytes/s", 1_048_576.0),
    ("Gbyte", 1_073_741_824.0),
    ("Gbytes", 1_073_741_824.0),
];

/// What a printed unit is in that of a key.
fn factor(key: &str, unit: &str) -> Option<f64> {
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let is_time = UNITS.iter().take_while(|(name, _)| *name != "/min").any(|(name, _)| *name == unit);
    let in_us = key.contains("_us");
    Some(if is_time && !in_us { factor * 1e-6 } else { *factor })
}

impl Reader<'_> {
    fn line(&mut self, at: At, text: &str) {
        self.at = at;
        match self.table.fit(self.section, text) {
            Some((place, found)) => {
                self.draft.saw(at);
                self.take(at, text, place, &found);
            }
            None if (self.table.other)(self, at, text) => self.draft.saw(at),
            None => {}
        }
    }

    /// Whether a line is of an operation whose title is missing.
    fn lacks_title(&self, place: &str, found: &[Found<'_>]) -> bool {
        let is_part = place.contains('%') || found.iter().any(|value| value.spec == "-");
        let is_of_op = found.iter().any(|value| value.spec.contains('$'));
        let is_title = found.iter().any(|value| value.spec == "%");
        !is_title && (is_part && self.scope.is_empty() || is_of_op && self.op.is_empty() && !place.contains('$'))
    }

    fn take(&mut self, at: At, text: &str, place: &'static str, found: &[Found<'_>]) {
        if self.lacks_title(place, found) {
            let text = shorten(text, 72);
            self.draft.note(at, format!("not read: \"{text}\" is of a {} whose title is missing", self.table.part));
            return;
        }
        for op in words(place, '$') {
            op.clone_into(&mut self.op);
        }
        for kind in words(place, '/') {
            kind.clone_into(&mut self.draft.record.kind);
        }
        if let Some(section) = words(place, '>').last() {
            (self.section, self.count) = (section, 0);
        }
        if place.contains('!') {
            let tool = self.table.format.split(' ').next().unwrap_or_default();
            self.draft.note(at, format!("{tool} says: {text}"));
        }
        let (mut scope, mut of_step) = (None, None);
        let digits = found.iter().find(|value| value.spec == "&").map_or("", |value| value.text);
        for value in found {
            match value.spec.chars().next() {
                None | Some('&' | '-') => {}
                Some('~') if value.spec.len() > 1 => scope = Some(value.spec[1..].to_owned()),
                Some('~') => scope = Some((self.table.scope)(self, value.text)),
                Some('%') => {
                    self.op = slug(value.text);
                    self.scope = (self.table.scope)(self, value.text);
                }
                Some('^') if self.draft.record.run.started.is_empty() => {
                    value.text.clone_into(&mut self.draft.record.run.started);
                }
                Some('^') => {}
                Some('*') => self.draft.record.run.engine = value.text.to_ascii_lowercase(),
                Some('#') => self.draft.recognised(value.text, self.table.format),
                Some('=') if value.spec == "=" => setting(self.draft, value.label, value.text),
                Some('=') => setting(self.draft, &value.spec[1..], value.text),
                Some('@') => {
                    let Some(end_s) = self.since(value) else {
                        continue;
                    };
                    let Some(place) = step(self.draft, end_s) else {
                        self.draft.note(at, "a line out of order was skipped");
                        return;
                    };
                    scope = Some(format!("{end_s} s"));
                    of_step = Some(place);
                }
                Some(_) => {
                    let is_asked = place.contains('=');
                    self.value(at, value, digits, scope.as_deref(), of_step, is_asked);
                    if is_asked {
                        setting(self.draft, value.label, value.printed);
                    }
                }
            }
        }
    }

    /// The end of a step; none where a time is none of a step.
    fn since(&mut self, value: &Found<'_>) -> Option<f64> {
        let Some((_, what)) = value.spec.split_once(':') else {
            return value.text.parse().ok();
        };
        let clock = clock_s(value.text)?.number()?;
        let begin_s = *self.begin_s.get_or_insert(clock);
        let since = (clock - begin_s).rem_euclid(DAY_S);
        if what == "end" {
            self.draft.record.interval.elapsed_s = since.into();
        }
        (what == "clock").then_some(since)
    }

    fn value(
        &mut self,
        at: At,
        value: &Found<'_>,
        digits: &str,
        scope: Option<&str>,
        of_step: Option<usize>,
        is_exact: bool,
    ) {
        let (spec, label) = value.spec.split_once('|').unwrap_or((value.spec, value.label));
        let (spec, unit) = spec.split_once(':').unwrap_or((spec, ""));
        let (spec, series) = spec.split_once('>').unwrap_or((spec, spec));
        let fill = |name: &str| name.replace('$', &self.op).replace('&', &digits.replace('.', "_"));
        let (key, series, label) = (fill(spec), fill(series), fill(label));
        let unit = if unit == "?" { value.unit } else { unit };
        let read = match unit {
            "clock" => clock_s,
            "min" | "/min" => number::count,
            _ if key.ends_with("_count") || key.ends_with("_per_min") => number::count,
            _ => number::measure,
        };
        let factor = if unit.is_empty() || unit == "clock" { Some(1.0) } else { factor(&key, unit) };
        let Some((mut printed, factor)) = read(value.text).zip(factor) else {
            self.draft.note(at, format!("{} was not read", value.printed));
            return;
        };
        value.printed.clone_into(&mut printed.text);
        if is_exact {
            printed.rounding = 0.0;
        }
        let scope = scope.unwrap_or(if spec.contains('$') { "" } else { &self.scope }).to_owned();
        let printed = if factor == 1.0 { printed } else { printed.scaled(factor) };
        self.put(at, &key, if label.is_empty() { &key } else { &label }, &scope, printed, of_step.map(|i| (i, series)));
    }

    /// Puts a value where its key says, or into a step of a series.
    pub(crate) fn put(
        &mut self,
        at: At,
        key: &str,
        label: &str,
        scope: &str,
        printed: Printed,
        of_step: Option<(usize, String)>,
    ) {
        let reading = Reading::new(at, key, printed).name(label).scope(scope).layer(self.table.layer);
        match of_step {
            Some((step, series)) => put_step(self.draft, reading, &series, step),
            None => file(self.draft, reading, &self.op),
        }
    }
}

/// Notes each line that looks like data and was not read; lines of one form are one note.
pub(crate) fn note_unread(texts: &[Text], known: &[&str], draft: &mut Draft) {
    // A document has its own structure: its lines say nothing alone.
    let is_document = |text: &&Text| text.first_char().is_some_and(|first| "{<".contains(first));
    for text in texts.iter().filter(|text| !is_document(text)) {
        let mut forms: HashMap<String, (At, &str, u64)> = HashMap::new();
        for line in text.lines.iter().filter(|line| !draft.has_seen(line.at)) {
            let bare = line.text.trim();
            if !looks_like_data(bare) || known.iter().any(|part| bare.contains(part)) {
                continue;
            }
            let mut form: String = bare.chars().filter(|c| !c.is_ascii_digit()).take(24).collect();
            form.retain(|c| !" .,".contains(c));
            forms.entry(form).or_insert((line.at, bare, 0)).2 += 1;
        }
        let mut forms: Vec<(At, &str, u64)> = forms.into_values().collect();
        forms.sort_by_key(|(at, ..)| at.line);
        for (at, line, count) in forms {
            let more = if count > 1 { format!(", and {} more such lines", count - 1) } else { String::new() };
            draft.note(at, format!("not read: \"{}\"{more}", shorten(line, 72)));
        }
    }
}

/// Whether a line has figures as tools print them: `label: 12`, `label = 12`, or a row of numbers.
fn looks_like_data(line: &str) -> bool {
    const LABEL_WORDS: usize = 6;
    let is_number = |word: &str| {
        let bare = word.trim_matches(|c: char| "()[],;%".contains(c));
        let digits = bare.bytes().filter(u8::is_ascii_digit).count();
        digits > 0 && !bare.contains(['/', ':', '-', '_']) && 2 * digits >= bare.len()
    };
    let labelled = line.find(": ").into_iter().chain(line.find(" = ")).min().is_some_and(|at| {
        let (label, value) = line.split_at(at);
        let value = value.trim_start_matches([' ', ':', '=']);
        label.split(' ').count() <= LABEL_WORDS && value.split(' ').next().is_some_and(is_number)
    });
    let (words, numbers) = line
        .split_whitespace()
        .fold((0, 0), |(words, numbers), word| (words + 1, numbers + usize::from(is_number(word))));
    labelled || (numbers >= 2 && 2 * numbers >= words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(pattern: &'static str, text: &str) -> Option<Vec<(&'static str, String)>> {
        let mut found = Vec::new();
        let rest = walk(pattern, text, &mut found)?;
        let all = found.iter().map(|value| (value.spec, format!("{}{}", value.text, value.unit)));
        rest.is_empty().then(|| all.collect())
    }

    #[test]
    fn a_pattern_is_the_line_with_what_is_read_from_it() {
        let line = "progress: 1.0 s, 626.9 tps, lat 6.231 ms stddev 6.929, 0 failed";
        let pattern = "progress: {@} s, {tps} tps, lat {avg} ms[ stddev {dev}][, {failed} failed][, lag {lag} ms]";
        let expected = [("@", "1.0"), ("tps", "626.9"), ("avg", "6.231"), ("dev", "6.929"), ("failed", "0")];
        assert_eq!(taken(pattern, line), Some(expected.map(|(key, text)| (key, text.to_owned())).to_vec()));
        assert_eq!(taken("total time: {s:?}", "total time:     10.0000s"), Some(vec![("s:?", "10.0000s".into())]));
        assert_eq!(taken("tps = {a}...", "tps = 1.5e+03 (excluding)"), Some(vec![("a", "1.5e+03".into())]));
        assert_eq!(taken("lost: {a}", "lost: -nan"), Some(vec![("a", "-nan".into())]));
        assert_eq!(taken("lost: {a}", "lost: many"), None);
        assert_eq!(taken("lost: {a}", "lost: 5 of 6"), None);
    }

    #[test]
    fn figures_are_data_and_prose_is_not() {
        for line in ["total: 12", "lat (ms) = 1.5 ms", "sda 1.0 2.0 3.0", "95th percentile: 30.00"] {
            assert!(looks_like_data(line), "{line}");
        }
        for line in
            ["I ran it with 4 clients on my 16-core box", "starting vacuum...end.", "10:00:01 up", "- - - -", ""]
        {
            assert!(!looks_like_data(line), "{line}");
        }
    }
}
