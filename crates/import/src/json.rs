//! JSON whose values know their line.
//!
//! A value is a slice of the text it was parsed from, so its place is where the slice begins. Values are read on
//! demand: each level is scanned once more for every level above it, which keeps the work linear in the text.

use super::number::{self, Printed};
use super::text::{At, Text};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// What stands before the first brace of an output and is no JSON: warnings, and faces printed into the same file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    text: String,
    file: u64,
    /// Lines of the file before the first of these.
    skipped: usize,
    /// Offset at which each line begins.
    begins: Vec<usize>,
}

/// Why there is no document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    /// Line, from 1.
    pub(crate) line: u64,
    /// What the JSON reader says.
    pub(crate) what: String,
}

/// The documents of a file and what stands between them.
pub(crate) struct Documents<'a> {
    /// Whole documents, in order.
    pub(crate) whole: Vec<Node<'a>>,
    /// The first line that is no JSON and has text, from 1.
    pub(crate) other: Option<u64>,
    /// Why the last one is not whole.
    pub(crate) broken: Option<Broken>,
}

impl Source {
    pub(crate) fn new(text: &Text) -> Self {
        let mut joined = String::with_capacity(text.lines.iter().map(|line| line.text.len() + 1).sum());
        let mut begins = Vec::with_capacity(text.lines.len());
        for line in &text.lines {
            begins.push(joined.len());
            joined.push_str(&without_nan(&line.text));
            joined.push('\n');
        }
        Self { text: joined, file: text.file, skipped: text.skipped(), begins }
    }

    /// Every document that begins with a brace at the start of a line.
    pub(crate) fn documents(&self) -> Documents<'_> {
        let mut found = Documents { whole: Vec::new(), other: None, broken: None };
        let mut line = 0;
        while let Some(&begin) = self.begins.get(line) {
            let rest = &self.text[begin..];
            let first = rest.lines().next().unwrap_or_default().trim_start();
            if !first.starts_with('{') {
                if !first.is_empty() && found.other.is_none() {
                    found.other = Some((self.skipped + line) as u64 + 1);
                }
                line += 1;
                continue;
            }
            let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
            match stream.next() {
                Some(Ok(raw)) => {
                    found.whole.push(Node { raw, source: self });
                    let end = begin + stream.byte_offset();
                    line = self.line_of(end.saturating_sub(1));
                }
                Some(Err(error)) => {
                    found.broken.get_or_insert(Broken {
                        line: (self.skipped + line + error.line()) as u64,
                        what: error.to_string(),
                    });
                    // What is torn open is not looked for inside: its braces are no documents.
                    break;
                }
                None => line += 1,
            }
        }
        found
    }

    /// Line of an offset, from 1.
    fn line_of(&self, offset: usize) -> usize {
        self.begins.partition_point(|begin| *begin <= offset)
    }
}

/// Numbers that C prints and JSON does not know, put in quotes.
fn without_nan(line: &str) -> Cow<'_, str> {
    if !["nan", "inf"].iter().any(|word| line.contains(word)) {
        return Cow::Borrowed(line);
    }
    let (mut all, mut rest) = (String::with_capacity(line.len() + 8), line);
    while let Some(at) = rest.find(':') {
        let value = rest[at + 1..].trim_start();
        let begin = rest.len() - value.len();
        let end = value.find([',', '}', ']', ' ']).unwrap_or(value.len());
        all.push_str(&rest[..begin]);
        let is_none = ["-nan", "nan", "-inf", "inf"].contains(&&value[..end]);
        all.push_str(&if is_none { format!("\"{}\"", &value[..end]) } else { value[..end].to_owned() });
        rest = &value[end..];
    }
    Cow::Owned(all + rest)
}

/// A value and where it stands.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    raw: &'a RawValue,
    source: &'a Source,
}

impl<'a> Node<'a> {
    /// Where it stands.
    pub(crate) fn at(self) -> At {
        // A slice of the source: the difference of their begins is its offset.
        let begin = self.raw.get().as_ptr() as usize;
        let offset = begin.saturating_sub(self.source.text.as_ptr() as usize);
        At { file: self.source.file, line: (self.source.skipped + self.source.line_of(offset)) as u64 }
    }

    /// Members in order, with repeated names; none where it is no object.
    pub(crate) fn members(self) -> Vec<(String, Node<'a>)> {
        let source = self.source;
        let members: Result<Values<'a, String>, _> = serde_json::from_str(self.raw.get());
        let members = members.map_or_else(|_| Vec::new(), |members| members.0);
        let node = |(name, raw)| (name, Node { raw, source });
        members.into_iter().map(node).collect()
    }

    /// Elements in order; none where it is no array.
    pub(crate) fn items(self) -> Vec<Node<'a>> {
        let source = self.source;
        let items: Result<Values<'a, ()>, _> = serde_json::from_str(self.raw.get());
        let items = items.map_or_else(|_| Vec::new(), |items| items.0);
        items.into_iter().map(|((), raw)| Node { raw, source }).collect()
    }

    /// A member by name.
    pub(crate) fn get(self, name: &str) -> Option<Node<'a>> {
        let mut members = self.members().into_iter();
        members.find(|(key, _)| key == name).map(|(_, node)| node)
    }

    /// A member of a member, and so on.
    pub(crate) fn path(self, names: &[&str]) -> Option<Node<'a>> {
        names.iter().try_fold(self, |node, name| node.get(name))
    }

    /// A string, or what else is printed there.
    pub(crate) fn text(self) -> String {
        let raw = self.raw.get();
        serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.to_owned())
    }

    /// `true` or 1.
    pub(crate) fn is_true(self) -> bool {
        matches!(self.raw.get(), "true" | "1")
    }

    /// A number, in quotes or not. Whole numbers are exact.
    pub(crate) fn number(self) -> Option<Printed> {
        number::count(&self.text())
    }
}

/// Members of an object and elements of an array at most: tools write fewer, and each takes several times its text here.
const MOST_MEMBERS: usize = 1 << 16;
const MOST_ITEMS: usize = 1 << 20;

/// Up to so many values of an object, each with its name, or of an array.
struct Values<'a, K>(Vec<(K, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Values<'a, String> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Each).map(Self)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Values<'a, ()> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Elements).map(Self)
    }
}

struct Each;

impl<'de> Visitor<'de> for Each {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            if members.len() < MOST_MEMBERS {
                members.push(member);
            }
        }
        Ok(members)
    }
}

struct Elements;

impl<'de> Visitor<'de> for Elements {
    type Value = Vec<((), &'de RawValue)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            if items.len() < MOST_ITEMS {
                items.push(((), item));
            }
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str =
        "fio: a warning\n{\n  \"a\" : {\n    \"b\" : 12,\n    \"c\": [\n1.5,\n \"x\"]\n  }\n}\n{\"a\":2}\ntail\n";

    #[test]
    fn every_value_knows_its_line() {
        let source = Source::new(&Text::read(4, "f", OUTPUT));
        let documents = source.documents();
        let [first, second] = &documents.whole[..] else {
            panic!("two documents");
        };
        assert_eq!(documents.other, Some(1));
        let b = first.path(&["a", "b"]).expect("there");
        assert_eq!(b.at(), At { file: 4, line: 4 });
        assert_eq!(b.number().expect("a number").rounding, 0.0);
        let items = first.path(&["a", "c"]).expect("there").items();
        assert_eq!(items[0].at().line, 6);
        assert_eq!(items[1].text(), "x");
        assert_eq!(second.get("a").expect("there").at().line, 10);
    }

    #[test]
    fn a_torn_document_says_where() {
        let source = Source::new(&Text::read(0, "f", "{\n\"a\": 1,\n\"b\": [1, 2\n"));
        let documents = source.documents();
        assert!(documents.whole.is_empty());
        let broken = documents.broken.expect("torn");
        assert!(broken.line >= 3, "{broken:?}");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[\\{\\}\\[\\]\",:0-9a-c \n]{0,80}") {
            let source = Source::new(&Text::read(0, "f", &text));
            for node in source.documents().whole {
                for (_, member) in node.members() {
                    proptest::prop_assert!(member.at().line as usize <= text.lines().count());
                }
            }
        }
    }
}
