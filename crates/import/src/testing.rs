//! What the tests of all parsers need.

use super::{Source, import, kinds};
use assay_measure::prng::SplitMix64;
use assay_measure::record::{ImportInfo, ImportedValue, Record};
use assay_testkit::places::misplaced;

/// A file of `testdata/import`.
pub(crate) fn sample(name: &str) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/import/");
    std::fs::read_to_string(format!("{path}{name}")).expect(name)
}

/// The record of one text; every value stands where its pointer says.
pub(crate) fn record_of(path: &str, text: &str) -> Record {
    let source = Source { path: path.to_owned(), text: text.to_owned() };
    assay_report::kinds::install(kinds());
    let record = import(&[source]).unwrap_or_else(|error| panic!("{path}: {error}"));
    assert_eq!(misplaced(&record), Vec::<String>::new(), "{path}");
    let info = info(&record);
    for value in &info.values {
        let line = text.lines().nth(value.line as usize - 1).expect("a line");
        let bare: String = value.printed.split_whitespace().collect();
        let there: String = line.split_whitespace().collect();
        assert!(there.contains(bare.as_str()), "{path}:{}: {} is not in {line}", value.line, value.printed);
    }
    record
}

/// The record of a sample.
pub(crate) fn imported(name: &str) -> Record {
    record_of(name, &sample(name))
}

pub(crate) fn info(record: &Record) -> &ImportInfo {
    record.import.as_ref().expect("an imported record")
}

/// The value of a key.
pub(crate) fn value<'a>(record: &'a Record, scope: &str, key: &str) -> &'a ImportedValue {
    let mut values = info(record).values.iter();
    values.find(|value| value.scope == scope && value.key == key).unwrap_or_else(|| panic!("no {key} of {scope:?}"))
}

/// The number of a key.
pub(crate) fn number(record: &Record, scope: &str, key: &str) -> f64 {
    value(record, scope, key).value.value().expect(key)
}

/// Everything that can be told of a record in few lines: the values with their places, the notes.
pub(crate) fn told(record: &Record) -> String {
    let info = info(record);
    let mut told = format!("{} {} ({})\n", info.tool, info.tool_version, info.format);
    told.push_str(&format!("started {:?}\n", record.run.started));
    for value in &info.values {
        let number = match value.value.value() {
            Some(number) => format!("{number}"),
            None => format!("n/a ({})", value.value.reason().unwrap_or_default()),
        };
        told.push_str(&format!(
            "{:>4} [{}] {} = {number} +- {} ({}: {}) {} {}\n",
            value.line, value.scope, value.key, value.rounding, value.name, value.printed, value.layer, value.at
        ));
    }
    for note in &info.notes {
        told.push_str(&format!("{:>4} note: {}\n", note.line, note.text));
    }
    told
}

/// Changes a text as pasting and cutting do: lines lost, doubled, torn; characters lost; by a number.
pub(crate) fn mutated(text: &str, seed: u64) -> String {
    let mut random = SplitMix64(seed);
    let mut next = |below: usize| random.below(below as u64) as usize;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..=next(8) {
        let at = next(lines.len());
        let Some(line) = lines.get(at).cloned() else {
            break;
        };
        let chars: Vec<char> = line.chars().collect();
        let cut = next(chars.len() + 1);
        match next(8) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, line),
            2 => lines[at] = chars[..cut].iter().collect(),
            3 => lines[at] = chars[cut..].iter().collect(),
            4 => lines.truncate(at + 1),
            5 => lines[at] = line.replace(|c: char| c.is_ascii_digit(), "9"),
            6 => lines[at] = line.replace(['=', ':', ','], " "),
            _ => lines[at] = format!("{}\u{fffd}\u{201c}{}", &line[..line.floor_char_boundary(cut)], "#####"),
        }
    }
    lines.join("\n")
}

/// A mutated sample is read or refused, and never panics; what is read stands where it should.
pub(crate) fn survives(name: &str, seed: u64) {
    let text = mutated(&sample(name), seed);
    let source = Source { path: name.to_owned(), text };
    if let Ok(record) = import(&[source]) {
        assert_eq!(misplaced(&record), Vec::<String>::new(), "{name} {seed}");
    }
}

/// The text with one printed number changed; `None` where it has no digits to change, or they come out the same.
pub(crate) fn changed(text: &str, value: &ImportedValue, factor: f64) -> Option<String> {
    let begin = value.printed.find(|c: char| c.is_ascii_digit() || c == '.')?;
    let digits: String =
        value.printed[begin..].chars().take_while(|c| c.is_ascii_digit() || ".,".contains(*c)).collect();
    let digits = digits.trim_end_matches(['.', ',']);
    let number: f64 = digits.replace(',', "").parse().ok()?;
    let decimals = digits.split_once('.').map_or(0, |(_, rest)| rest.len());
    let other = format!("{:.decimals$}", number * factor);
    (number > 0.0 && other.parse::<f64>().ok()? != number).then_some(())?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let line = lines.get_mut(value.line as usize - 1)?;
    let at = places(line, digits).next()?;
    line.replace_range(at..at + digits.len(), &other);
    Some(lines.join("\n"))
}

/// Where a number stands alone in a line.
fn places<'a>(line: &'a str, digits: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    line.match_indices(digits).filter_map(move |(at, _)| {
        let (before, after) = (&line[..at], &line[at + digits.len()..]);
        let alone = !before.ends_with(is_number) && !after.starts_with(|c: char| c.is_ascii_digit());
        alone.then_some(at)
    })
}
