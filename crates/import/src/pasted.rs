//! What mail, logs and spreadsheets do to a text, undone: quoted-printable, quotes of replies, wrapped lines, times in
//! front of lines, quotes around lines.

use std::borrow::Cow;

/// Lines with the number of the first of those they are made of.
type Numbered<'a> = Vec<(u64, Cow<'a, str>)>;

/// What was undone.
#[derive(Default)]
pub(crate) struct Undone {
    /// What was done, each with the first line it was done to.
    pub(crate) notes: Vec<(u64, String)>,
    /// The time in front of the first line.
    pub(crate) started: String,
}

/// The lines of a text as the tool printed them; `None` where they stand as it did, so that a large text is not held twice.
pub(crate) fn undone(body: &str) -> Option<(Numbered<'_>, Undone)> {
    let is_sound = !is_quoted_printable(body)
        && !body.lines().any(is_torn)
        && !is_mostly(body.lines(), 8, is_quoted)
        && !is_mostly(body.lines(), 8, is_of_a_sheet)
        && !is_mostly(body.lines(), 6, |line| stamp(line).is_some());
    if is_sound {
        return None;
    }
    let mut undone = Undone::default();
    let mut lines: Numbered<'_> = body.lines().enumerate().map(|(i, line)| (i as u64 + 1, line.into())).collect();
    if is_quoted_printable(body) {
        lines = decoded(lines);
        undone.note(&lines, "quoted-printable was decoded (\"=3D\" is \"=\", and a line ends where no \"=\" ends it)");
    }
    let widths: Vec<usize> = lines.iter().map(|(_, line)| line.chars().count()).collect();
    if is_mostly(texts(&lines), 8, is_quoted) {
        undone.note(&lines, "mail quotes (\"> \") before the lines were removed");
        lines = each(lines, without_quotes);
    }
    if texts(&lines).any(is_torn) {
        join(&mut lines, &widths, &mut undone);
    }
    if is_mostly(texts(&lines), 8, is_of_a_sheet) {
        undone.note(&lines, "quotes around the lines were removed");
        let inner = |line: &str| line.strip_prefix('"').and_then(|line| line.strip_suffix('"').map(str::to_owned));
        lines = each(lines, |line| inner(line).map_or(line.into(), |inner| inner.replace("\"\"", "\"").into()));
    }
    if is_mostly(texts(&lines), 6, |line| stamp(line).is_some()) {
        let first =
            lines.iter().find_map(|(_, line)| Some(line[..stamp(line)?].trim_matches([' ', '[', ']']).to_owned()));
        undone.started = first.unwrap_or_default();
        undone.note(&lines, "the time in front of each line was removed");
        lines = each(lines, |line| line[stamp(line).unwrap_or(0)..].to_owned().into());
    }
    Some((lines, undone))
}

fn texts<'a>(lines: &'a Numbered<'_>) -> impl Iterator<Item = &'a str> + Clone {
    lines.iter().map(|(_, line)| line.as_ref())
}

fn is_quoted(line: &str) -> bool {
    line.starts_with('>')
}

/// A spreadsheet puts quotes around a whole line.
fn is_of_a_sheet(line: &str) -> bool {
    line.len() > 1 && line.starts_with('"') && line.ends_with('"')
}

impl Undone {
    fn note(&mut self, lines: &Numbered<'_>, what: &str) {
        let first = lines.first().map_or(1, |(number, _)| *number);
        self.notes.push((first, what.to_owned()));
    }
}

fn each<'a>(lines: Numbered<'a>, change: impl Fn(&str) -> Cow<'_, str>) -> Numbered<'a> {
    lines.into_iter().map(|(number, line)| (number, change(&line).into_owned().into())).collect()
}

/// Whether so many tenths of the first lines that have text are so.
fn is_mostly<'a>(lines: impl Iterator<Item = &'a str> + Clone, tenths: usize, is: impl Fn(&str) -> bool) -> bool {
    let filled = lines.map(str::trim_end).filter(|line| !line.is_empty()).take(200);
    let so = filled.clone().filter(|line| is(line)).count();
    so >= 2 && so * 10 >= filled.count() * tenths
}

fn without_quotes(line: &str) -> Cow<'_, str> {
    let mut rest = line;
    while let Some(inner) = rest.strip_prefix('>') {
        rest = inner.strip_prefix(' ').unwrap_or(inner);
    }
    rest.into()
}

/// Whether each `=` is one of an encoder: two hexadecimal digits behind it, or the end of its line.
fn is_quoted_printable(body: &str) -> bool {
    const FEW: usize = 2;
    let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'A'..=b'F').contains(byte);
    let is_code = |rest: &[u8]| rest.get(..2).is_some_and(|code| code.iter().all(is_digit));
    let (mut codes, mut ends) = (0, 0);
    for line in body.lines() {
        let line = line.trim_end().as_bytes();
        for at in (0..line.len()).filter(|at| line[*at] == b'=') {
            match &line[at + 1..] {
                [] => ends += 1,
                rest if is_code(rest) => codes += usize::from(rest.starts_with(b"3D")),
                _ => return false,
            }
        }
    }
    codes > FEW || (ends > 0 && codes > 0)
}

fn decoded(lines: Numbered<'_>) -> Numbered<'_> {
    let mut all: Vec<(u64, String)> = Vec::new();
    let mut goes_on = false;
    for (number, line) in lines {
        let line = line.trim_end();
        let (text, is_open) = line.strip_suffix('=').map_or((line, false), |text| (text, true));
        match all.last_mut().filter(|_| goes_on) {
            Some((_, last)) => last.push_str(text),
            None => all.push((number, text.to_owned())),
        }
        goes_on = is_open;
    }
    all.into_iter().map(|(number, line)| (number, plain(&line).into())).collect()
}

/// `=3D` is `=`: two hexadecimal digits are a byte.
fn plain(line: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(line.len()), line);
    while let Some(at) = rest.find('=') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let digits = rest.get(at + 1..at + 3).filter(|digits| !digits.contains(['+', '-']));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &rest[at + 3..];
            }
            None => {
                bytes.push(b'=');
                rest = &rest[at + 1..];
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether a line is one that its tool prints longer than mail allows.
fn is_torn(line: &str) -> bool {
    const LONG: [(&str, &str); 2] = [(": (g=", "iodepth="), (" thds: ", "lat (ms")];
    LONG.iter().any(|(begin, end)| line.contains(begin) && !line.contains(end))
}

/// Joins what mail wrapped: a line that has no room for the first word of the next one. Lines that begin alike are the tool's own.
fn join(lines: &mut Numbered<'_>, widths: &[usize], undone: &mut Undone) {
    const WRAPPED_AT: std::ops::RangeInclusive<usize> = 60..=80;
    let widest = widths.iter().copied().max().unwrap_or(0);
    if !WRAPPED_AT.contains(&widest) {
        return;
    }
    let mut all: Numbered<'_> = Vec::with_capacity(lines.len());
    let (mut first, mut before) = (None, String::new());
    for (i, (number, line)) in std::mem::take(lines).into_iter().enumerate() {
        let word = line.split_whitespace().next().unwrap_or_default().to_owned();
        let is_own = word.is_empty() || word == before || line.starts_with(' ');
        let is_rest = !is_own && i > 0 && widths[i - 1] + 1 + word.len() > widest;
        before = word;
        match all.last_mut().filter(|(_, last)| is_rest && !last.trim().is_empty()) {
            Some((_, last)) => {
                *last = format!("{} {line}", last.trim_end()).into();
                first.get_or_insert(number);
            }
            None => all.push((number, line)),
        }
    }
    *lines = all;
    if let Some(number) = first {
        undone.notes.push((number, "lines that mail had wrapped were joined".to_owned()));
    }
}

/// How long the time in front of a line is that a logger put there: a date and a time, in brackets or not.
fn stamp(line: &str) -> Option<usize> {
    let (inner, around) = match line.strip_prefix('[') {
        Some(rest) => (rest.split_once("] ")?.0, 2),
        None => (line, 0),
    };
    let words: Vec<&str> = inner.split(' ').collect();
    let is_clock = |word: &&str| word.len() >= 8 && word.as_bytes()[2] == b':' && word.as_bytes()[5] == b':';
    let is_date = |word: &&str| {
        let bytes = word.as_bytes();
        bytes.len() >= 10 && bytes[..4].iter().all(u8::is_ascii_digit) && bytes[4] == b'-' && bytes[7] == b'-'
    };
    let is_name = |word: &&str| word.len() == 3 && word.chars().all(char::is_alphabetic);
    let has_t = |word: &&str| is_date(word) && word.as_bytes().get(10) == Some(&b'T') && word.contains(':');
    let filled: Vec<(usize, &str)> = words
        .iter()
        .scan(0, |at, word| {
            let begin = *at;
            *at += word.len() + 1;
            Some((begin, *word))
        })
        .filter(|(_, word)| !word.is_empty())
        .collect();
    let texts: Vec<&str> = filled.iter().map(|(_, word)| *word).collect();
    let count = match texts.as_slice() {
        [first, ..] if has_t(first) => 1,
        [date, clock, ..] if is_date(date) && is_clock(clock) => 2,
        // `Tue Mar  5 10:00:01 2024`, `Mar  5 10:00:01`
        [day, month, _, clock, year, ..] if is_name(day) && is_name(month) && is_clock(clock) && year.len() == 4 => 5,
        [month, _, clock, ..] if is_name(month) && is_clock(clock) => 3,
        [epoch] if around > 0 && epoch.len() >= 10 && epoch.parse::<f64>().is_ok() => 1,
        _ => return None,
    };
    let (begin, word) = *filled.get(count - 1)?;
    let end = begin + word.len();
    if around > 0 {
        return (filled.len() == count).then_some(inner.len() + 3);
    }
    line[end..].starts_with(' ').then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(body: &str) -> Vec<(u64, String)> {
        let as_it_is = || body.lines().enumerate().map(|(i, line)| (i as u64 + 1, line.into())).collect();
        let lines: Numbered<'_> = undone(body).map_or_else(as_it_is, |(lines, _)| lines);
        lines.into_iter().map(|(number, line)| (number, line.into_owned())).collect()
    }

    #[test]
    fn mail_quotes_are_taken_off_where_the_whole_text_has_them() {
        let texts = |body: &str| lines(body).into_iter().map(|(_, line)| line).collect::<Vec<_>>();
        assert_eq!(texts("> a\n>  b\n> > c\n"), ["a", " b", "c"]);
        assert_eq!(texts("a\n> b\nc\nd\ne\nf\n"), ["a", "> b", "c", "d", "e", "f"]);
    }

    #[test]
    fn quoted_printable_is_decoded_and_its_lines_joined() {
        assert_eq!(lines("a=3D1 b=\n=3D2\nc=3D=C3=A9\n"), [(1, "a=1 b=2".to_owned()), (3, "c=\u{e9}".to_owned())]);
        assert_eq!(lines("a=1\nb=2\n").len(), 2);
        // One sign that no mailer leaves alone: nothing was encoded, and `=3D` is the text's own.
        for own in ["a=3D1\nb=3D2\nc=3D3\nd=1\n", "a=3d1\nb=3D2\nc=3D3\nd=3D4\n", "a=3D1\nb=3D2\nc=3D3\nd = 1 =\n"] {
            assert_eq!(lines(own)[0], (1, own.lines().next().unwrap_or_default().to_owned()), "{own}");
        }
    }

    #[test]
    fn times_of_loggers_are_known_in_every_form() {
        for line in [
            "[2024-03-05 10:00:01] x",
            "2024-03-05T10:00:01.5Z x",
            "2024-03-05 10:00:01 x",
            "Tue Mar  5 10:00:01 2024 x",
            "Mar  5 10:00:01 x",
            "[1709632801.123456] x",
        ] {
            assert_eq!(stamp(line).map(|end| &line[end..]), Some("x"), "{line}");
        }
        for line in ["10:00:01 x", "[  5] 0.00-1.00", "[SUM] x", "2024 x", "x", "", "[\u{e9}\u{e9}] x"] {
            assert_eq!(stamp(line), None, "{line}");
        }
    }

    #[test]
    fn doubled_quotes_of_a_spreadsheet_are_single_again() {
        let all = lines("\"a \"\"b\"\" c\"\n\"d\"\n\"e \"\"f\"\"\"\n");
        assert_eq!(all.into_iter().map(|(_, line)| line).collect::<Vec<_>>(), ["a \"b\" c", "d", "e \"f\""]);
    }
}
