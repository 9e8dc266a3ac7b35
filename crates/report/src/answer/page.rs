//! Lines within a width: titles at the left, sentences wrapped at the right.

use assay_measure::plain::plain;
use assay_measure::units::shorten;

/// Width of the left column.
const LEFT: usize = 18;

/// A page of limited width.
pub(crate) struct Page {
    lines: Vec<String>,
    columns: usize,
}

impl Page {
    /// Of lines of so many columns.
    pub(crate) fn new(columns: usize) -> Self {
        Self { lines: Vec::new(), columns }
    }

    /// What stands on it.
    pub(crate) fn lines(&self) -> &[String] {
        &self.lines
    }

    /// One line, shortened where it is too long.
    pub(crate) fn line(&mut self, text: &str) {
        // Plain words may be longer than what they stand for.
        let text = shorten(&plain_words(text.trim_end()), self.columns);
        self.lines.push(plain(&text).into_owned());
    }

    /// A title at the left, its sentences wrapped at the right.
    pub(crate) fn item(&mut self, title: &str, text: &str) {
        self.wrapped(title, LEFT, text);
    }

    fn wrapped(&mut self, title: &str, left: usize, text: &str) {
        let mut line = format!("{title:<left$}");
        let mut is_empty = true;
        for word in plain_words(text).split_whitespace() {
            let word = shorten(word, self.columns - left);
            if !is_empty && line.chars().count() + 1 + word.chars().count() > self.columns {
                self.line(&line);
                line = " ".repeat(left);
                is_empty = true;
            }
            if !is_empty {
                line.push(' ');
            }
            line.push_str(&word);
            is_empty = false;
        }
        if !line.trim().is_empty() {
            self.line(&line);
        }
    }

    /// Sentences wrapped over the whole width.
    pub(crate) fn paragraph(&mut self, text: &str) {
        self.wrapped("", 0, text);
    }

    /// A line as another tool prints it.
    pub(crate) fn verbatim(&mut self, text: &str) {
        self.lines.push(plain(text).into_owned());
    }

    /// A command to be typed, which is never wrapped nor cut; what it is for is left out where it does not fit.
    pub(crate) fn command(&mut self, title: &str, text: &str) {
        let whole = format!("{title:<LEFT$}{text}");
        let line =
            if whole.chars().count() > self.columns { whole.split("   # ").next().unwrap_or_default() } else { &whole };
        self.lines.push(plain(line.trim_end()).into_owned());
    }

    /// The whole page; what is beyond its last line is said to be missing.
    pub(crate) fn finish(mut self, lines: usize, cut: &str) -> String {
        if self.lines.len() > lines {
            self.lines.truncate(lines - 1);
            self.line(cut);
        }
        let mut text = self.lines.join("\n");
        text.push('\n');
        text
    }
}

/// Replaces the names of TPC and SPC metrics: these are not official results.
fn plain_words(line: &str) -> String {
    const NAMES: [(&str, &str); 6] = [
        ("tpmc", "new orders/min"),
        ("qphh", "queries/h"),
        ("qphds", "queries/h"),
        ("spc-1", "storage"),
        ("tpc-", "public-"),
        ("tpse", "transactions/s"),
    ];
    let mut line = line.to_owned();
    for (name, ours) in NAMES {
        while let Some(at) = line.to_ascii_lowercase().find(name) {
            line.replace_range(at..at + name.len(), ours);
        }
    }
    line
}
