//! A report as data: sections of tables, pairs and sentences, each defined once and drawn by every output format.
//!
//! A kind of test writes its sections with [`Sections`]; the fixed-width writer and the page read them. Widths are part
//! of a table because the field's scripts read AWR's columns by position; a page ignores them.

pub mod common;

use crate::histogram::Histogram;
use crate::record::Figure;
use crate::units::{fixed, thousands};
use std::borrow::Cow;
use std::fmt;

/// One section of a report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Its heading; empty for the content before the first one.
    pub title: String,
    /// Whether text prints the heading: AWR begins some sections with their column titles instead.
    pub is_headed: bool,
    /// Whether it judges the figures: a page shows it before everything else.
    pub is_judgement: bool,
    /// What the first screen of a page shows of its first table.
    pub brief: Option<Brief>,
    /// Its content, in order.
    pub parts: Vec<Part>,
}

/// The most important cells of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brief {
    /// Most rows; a row without a figure above 0 is skipped.
    pub rows: usize,
    /// Titles of the columns.
    pub columns: &'static [&'static str],
}

/// A piece of a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// A line as it stands; an empty one is a gap.
    Line(String),
    /// A sentence behind a lead, wrapped between words.
    Sentence {
        /// The lead; later lines are indented by its width.
        lead: String,
        /// The sentence.
        text: String,
        /// How much it matters.
        weight: Weight,
    },
    /// Rows under columns.
    Table(Table),
    /// Names and values, two pairs to a line.
    Pairs {
        /// Pairs of the left half.
        left: Vec<(String, String)>,
        /// Pairs of the right half.
        right: Vec<(String, String)>,
    },
    /// A name and its value.
    Named {
        /// The name.
        name: String,
        /// Characters the name is filled up to in text.
        width: usize,
        /// The value.
        value: Cell,
    },
    /// A chart made of characters, for text alone: a page has the chart itself.
    Drawing(Vec<String>),
    /// Nested boxes: a page draws them, text writes them as an outline.
    Picture(Vec<Tile>),
}

/// A box of a picture, with boxes in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tile {
    /// What it is.
    pub title: String,
    /// More about it, one line each.
    pub lines: Vec<String>,
    /// The boxes inside it, in order.
    pub inside: Vec<Tile>,
    /// Whether it is one of many small ones that stand side by side.
    pub is_leaf: bool,
}

/// How much a sentence matters to the reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// It informs.
    #[default]
    Plain,
    /// It may change what the figures mean.
    Warning,
    /// A figure of the report is wrong.
    Bad,
}

/// Rows under columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The columns.
    pub columns: Vec<Column>,
    /// Whether text prints the titles of the columns.
    pub is_titled: bool,
    /// Titles above the column titles, from the first column on; empty if there are none.
    pub heads: Vec<Head>,
    /// The rows.
    pub rows: Vec<Row>,
    /// The text in place of its last rows, which a page folds; without it the table is complete everywhere.
    pub rest: Option<Rest>,
}

/// A title across neighbouring columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The title; empty over columns that need none.
    pub title: String,
    /// The number of columns it covers.
    pub columns: usize,
}

/// Rows of a table that are shown only on request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// Rows before them, which every output format shows.
    pub first: usize,
    /// Their number in words: `34 conditions are the same`.
    pub what: String,
    /// Command that shows the hidden rows.
    pub how: String,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Row {
    /// A cell for each column, or for the first of them.
    Cells(Vec<Cell>),
    /// A line between two rows, across all columns.
    Between(Part),
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its title with the unit.
    pub title: Cow<'static, str>,
    /// Characters in text; all but the first column's hold the space before them.
    pub width: usize,
    /// The alignment of its cells.
    pub align: Align,
}

/// The alignment of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// At the left: words.
    Left,
    /// At the right: figures.
    Right,
    /// At the left and wrapped between words; the last column only.
    Wrapped,
    /// A drawing made of characters, at the left, for text alone.
    Drawn,
}

/// A right-aligned column; its width holds the space before it.
#[must_use]
pub const fn right(title: &'static str, width: usize) -> Column {
    Column::new(title, width, Align::Right)
}

/// A title across so many columns.
#[must_use]
pub fn over(title: &str, columns: usize) -> Head {
    Head { title: title.to_owned(), columns }
}

/// A left-aligned column.
#[must_use]
pub const fn left(title: &'static str, width: usize) -> Column {
    Column::new(title, width, Align::Left)
}

/// A last column of sentences.
#[must_use]
pub const fn wrapped(title: &'static str) -> Column {
    Column::new(title, 0, Align::Wrapped)
}

impl Column {
    const fn new(title: &'static str, width: usize, align: Align) -> Self {
        Self { title: Cow::Borrowed(title), width, align }
    }
}

/// The content of a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// As shown.
    pub text: String,
    /// Why there is no figure; empty if there is one.
    pub reason: String,
}

impl Cell {
    /// A figure with this many decimals and thousands separators; `n/a` is one word, with its reason beside it.
    #[must_use]
    pub fn figure(figure: &Figure, decimals: usize) -> Self {
        let text = match figure {
            Figure::Count(count) if decimals == 0 => thousands(*count),
            figure => match figure.value() {
                Some(value) => fixed(value, decimals),
                None => "n/a".to_owned(),
            },
        };
        let reason = figure.reason().unwrap_or_default().to_owned();
        Self { text, reason }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        let reason = String::new();
        Self { text, reason }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// The sections of a report, written one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sections {
    /// The first line of text; a page has its own.
    pub title: Option<String>,
    /// In order.
    pub all: Vec<Section>,
}

impl Sections {
    fn begin(&mut self, title: &str, is_headed: bool) {
        self.all.push(Section { title: title.to_owned(), is_headed, ..Section::default() });
    }

    fn put(&mut self, part: Part) {
        if self.all.is_empty() {
            self.begin("", false);
        }
        if let Some(section) = self.all.last_mut() {
            section.parts.push(part);
        }
    }

    /// The title of the report, and its first section.
    pub fn title(&mut self, title: &str) {
        self.title = Some(title.to_owned());
        self.begin("Run", false);
    }

    /// Begins a section.
    pub fn heading(&mut self, title: &str) {
        self.begin(title, true);
    }

    /// Begins a section that judges the figures.
    pub fn judgement(&mut self, title: &str) {
        self.heading(title);
        if let Some(section) = self.all.last_mut() {
            section.is_judgement = true;
        }
    }

    /// Selects what the first screen of a page shows of the section.
    pub fn brief(&mut self, rows: usize, columns: &'static [&'static str]) {
        if let Some(section) = self.all.last_mut() {
            section.brief = Some(Brief { rows, columns });
        }
    }

    /// Begins a section whose heading only a page shows, behind a gap.
    pub fn unheaded(&mut self, title: &str) {
        self.begin(title, false);
        self.line("");
    }

    /// A section without data: one line with the reason.
    pub fn missing(&mut self, title: &str, reason: &str) {
        self.heading(title);
        self.line(&format!("n/a ({reason})"));
    }

    /// One line.
    pub fn line(&mut self, text: &str) {
        self.put(Part::Line(text.to_owned()));
    }

    /// A sentence, wrapped between words, later lines indented.
    pub fn wrapped(&mut self, lead: &str, text: &str) {
        self.finding(Weight::Plain, lead, text);
    }

    /// A sentence that says how much it matters.
    pub fn finding(&mut self, weight: Weight, lead: &str, text: &str) {
        self.put(Part::Sentence { lead: lead.to_owned(), text: text.to_owned(), weight });
    }

    /// A name and its value; `width` characters are the name's in text.
    pub fn named(&mut self, name: &str, width: usize, value: impl Into<Cell>) {
        self.put(Part::Named { name: name.to_owned(), width, value: value.into() });
    }

    /// Names and values side by side in two columns.
    pub fn two_columns(&mut self, left: &[(String, String)], right: &[(String, String)]) {
        self.put(Part::Pairs { left: left.to_vec(), right: right.to_vec() });
    }

    /// Names and values, two pairs to a line, read down then across.
    pub fn pairs(&mut self, pairs: &[(String, String)]) {
        let (left, right) = pairs.split_at(pairs.len().div_ceil(2));
        self.two_columns(left, right);
    }

    /// Begins a table: its titles and their rule.
    pub fn columns(&mut self, columns: &[Column]) {
        self.table(columns, true);
    }

    /// Begins a table whose titles only a page shows.
    pub fn untitled(&mut self, columns: &[Column]) {
        self.table(columns, false);
    }

    fn table(&mut self, columns: &[Column], is_titled: bool) {
        self.put(Part::Table(Table { columns: columns.to_vec(), is_titled, ..Table::default() }));
    }

    /// A whole table whose columns are as wide as their content.
    pub fn fitted(&mut self, titles: &[(&str, Align)], rows: Vec<Vec<Cell>>) {
        self.grouped(&[], titles, rows, None);
    }

    /// A [`Sections::fitted`] table with titles across its columns and rows that text leaves out.
    pub fn grouped(&mut self, heads: &[Head], titles: &[(&str, Align)], rows: Vec<Vec<Cell>>, rest: Option<Rest>) {
        let in_text = rest.as_ref().map_or(rows.len(), |rest| rest.first);
        let column = |(at, (title, align)): (usize, &(&str, Align))| {
            let cells = rows.iter().take(in_text).filter_map(|row| row.get(at));
            let longest = cells.map(|cell| cell.text.chars().count()).max();
            let width = longest.unwrap_or(0).max(title.chars().count());
            // The space before it, and one more so that long figures stay apart.
            Column { title: Cow::Owned((*title).to_owned()), width: width + if at > 0 { 2 } else { 0 }, align: *align }
        };
        let mut columns: Vec<Column> = titles.iter().enumerate().map(column).collect();
        let mut at = 0;
        for head in heads {
            let under = &mut columns[at..at + head.columns];
            let width: usize = under.iter().map(|column| column.width).sum();
            // Its blanks and a dash on both sides.
            let wanted = head.title.chars().count() + 5;
            if let Some(last) = under.last_mut().filter(|_| !head.title.is_empty()) {
                last.width += wanted.saturating_sub(width);
            }
            at += head.columns;
        }
        self.put(Part::Table(Table {
            columns,
            is_titled: true,
            heads: heads.to_vec(),
            rows: rows.into_iter().map(Row::Cells).collect(),
            rest,
        }));
    }

    /// Lines of a chart made of characters.
    pub fn drawing(&mut self, lines: Vec<String>) {
        self.put(Part::Drawing(lines));
    }

    /// Nested boxes.
    pub fn picture(&mut self, tiles: Vec<Tile>) {
        self.put(Part::Picture(tiles));
    }

    /// A row of the table begun last; lines written since then span its columns.
    pub fn row<C: Clone + Into<Cell>>(&mut self, columns: &[Column], cells: &[C]) {
        let cells = cells.iter().cloned().map(Into::into).collect();
        let same = |part: &Part| matches!(part, Part::Table(table) if table.columns == columns);
        let parts = self.all.last().map(|section| section.parts.as_slice());
        let at = parts.and_then(|parts| parts.iter().rposition(same));
        if at.is_none() {
            self.untitled(columns);
        }
        let Some(section) = self.all.last_mut() else {
            return;
        };
        let at = at.unwrap_or(section.parts.len() - 1);
        let since = section.parts.split_off(at + 1);
        if let Some(Part::Table(table)) = section.parts.last_mut() {
            table.rows.extend(since.into_iter().map(Row::Between));
            table.rows.push(Row::Cells(cells));
        }
    }

    /// A table of durations by powers of two of a microsecond, with bars; `counted` is the column of what was counted.
    pub fn histogram(&mut self, of: &Histogram, counted: Column) {
        let buckets = of.pow2_us();
        let most = buckets.iter().copied().max().unwrap_or(0).max(1);
        let columns = [left("Below", 16), counted, right("Share", 10), left("", 42)];
        self.untitled(&columns);
        for (index, count) in buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
            // Bucket i counts 2^(i-1) <= us < 2^i.
            let below = thousands(1 << index);
            let share = fixed(100.0 * *count as f64 / of.count() as f64, 3);
            let bar = "#".repeat((count * 40).div_ceil(most) as usize);
            let cells = [format!("< {below:>11} us"), thousands(*count), format!("{share} %"), format!(" {bar}")];
            self.row(&columns, &cells);
        }
    }
}

/// A figure with this many decimals and thousands separators, for a sentence; `n/a` is one word.
#[must_use]
pub fn number(figure: &Figure, decimals: usize) -> String {
    Cell::figure(figure, decimals).text
}

/// A figure as [`number`] prints it, or `n/a` with its reason.
#[must_use]
pub fn number_or_reason(figure: &Figure, decimals: usize) -> String {
    match figure.reason() {
        Some(reason) => format!("n/a ({reason})"),
        None => number(figure, decimals),
    }
}
