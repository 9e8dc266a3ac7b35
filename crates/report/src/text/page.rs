//! Fixed-width writing: lines, headings, tables, and how a figure looks.

use assay_measure::record::Figure;
use assay_measure::units::{fixed, shorten, thousands};

/// What has been written so far.
#[derive(Default)]
pub(crate) struct Page {
    text: String,
}

/// A column of a table.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    title: &'static str,
    width: usize,
    left: bool,
}

/// A right-aligned column; its width holds the space before it.
pub(crate) const fn right(title: &'static str, width: usize) -> Column {
    Column {
        title,
        width,
        left: false,
    }
}

/// A left-aligned column.
pub(crate) const fn left(title: &'static str, width: usize) -> Column {
    Column {
        title,
        width,
        left: true,
    }
}

impl Page {
    /// One line without its trailing blanks.
    pub(crate) fn line(&mut self, text: &str) {
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    /// A section's heading with the blank line before it.
    pub(crate) fn heading(&mut self, title: &str) {
        self.line("");
        self.line(title);
        self.line(&"~".repeat(title.chars().count()));
    }

    /// A section without data: one line with the reason.
    pub(crate) fn missing(&mut self, title: &str, reason: &str) {
        self.heading(title);
        self.line(&format!("n/a ({reason})"));
    }

    /// The titles of a table and their rule.
    pub(crate) fn columns(&mut self, columns: &[Column]) {
        let titles: Vec<String> = columns.iter().map(|c| c.title.to_owned()).collect();
        self.row(columns, &titles);
        let rules: Vec<String> = columns
            .iter()
            .enumerate()
            .map(|(i, c)| "-".repeat(c.width - usize::from(i > 0)))
            .collect();
        self.row(columns, &rules);
    }

    /// One row; a cell wider than its column pushes the rest aside and is never cut.
    pub(crate) fn row(&mut self, columns: &[Column], cells: &[String]) {
        let mut line = String::new();
        for (i, (column, cell)) in columns.iter().zip(cells).enumerate() {
            let gap = usize::from(i > 0);
            let width = column.width - gap;
            line.push_str(&" ".repeat(gap));
            if column.left {
                line.push_str(&format!("{cell:<width$}"));
            } else {
                line.push_str(&format!("{cell:>width$}"));
            }
        }
        self.line(&line);
    }

    /// A sentence, wrapped between words, later lines indented.
    pub(crate) fn wrapped(&mut self, lead: &str, text: &str) {
        const WIDTH: usize = 116;
        let indent = " ".repeat(lead.chars().count());
        let mut line = lead.to_owned();
        let mut empty = true;
        for word in text.split_whitespace() {
            if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
                self.line(&line);
                line.clone_from(&indent);
                empty = true;
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
            empty = false;
        }
        self.line(&line);
    }

    /// Names and values side by side in two columns.
    pub(crate) fn two_columns(&mut self, left: &[(String, String)], right: &[(String, String)]) {
        const NAME: usize = 24;
        const VALUE: usize = 36;
        for row in 0..left.len().max(right.len()) {
            let mut line = String::new();
            let (name, value) = left
                .get(row)
                .map_or(("", ""), |(name, value)| (name, value));
            let value = shorten(value, VALUE);
            line.push_str(&format!("{name:<NAME$} {value:<VALUE$}"));
            if let Some((name, value)) = right.get(row) {
                line.push_str(&format!(" {name:<NAME$} {value}"));
            }
            self.line(&line);
        }
    }

    /// Names and values, two pairs to a line, read down then across.
    pub(crate) fn pairs(&mut self, pairs: &[(String, String)]) {
        let (left, right) = pairs.split_at(pairs.len().div_ceil(2));
        self.two_columns(left, right);
    }

    /// The whole text.
    pub(crate) fn finish(self) -> String {
        self.text
    }
}

/// A figure with so many decimals and thousands separators; `n/a` is one word.
pub(crate) fn number(figure: &Figure, decimals: usize) -> String {
    match figure {
        Figure::Count(count) if decimals == 0 => thousands(*count),
        Figure::Na(_) => "n/a".to_owned(),
        figure => figure
            .value()
            .map_or_else(|| "n/a".to_owned(), |value| fixed(value, decimals)),
    }
}

/// A figure as [`number`] that names its reason where there is none.
pub(crate) fn number_or_reason(figure: &Figure, decimals: usize) -> String {
    match figure.reason() {
        Some(reason) => format!("n/a ({reason})"),
        None => number(figure, decimals),
    }
}
