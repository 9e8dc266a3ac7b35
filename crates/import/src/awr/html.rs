//! AWR as HTML: its headings, remarks and tables, in order.
//!
//! Oracle's package writes this HTML, not people: flat tables, a `summary` on each, rows of `th` and `td`. The reader
//! needs only each cell's row and title, and the line of each row; so it reads the tags one after the other, without
//! nesting and without guesses. A page saved by a browser has the same tables with other blanks and letter case; this
//! reader tolerates nothing else.

use super::table::{Column, ROWS_MAX, Row, Ruler, Table};
use crate::text::{At, Line, Text};

/// A cell as it stands.
#[derive(Debug, Default)]
struct Cell {
    text: String,
    is_title: bool,
    /// Columns it covers.
    span: usize,
}

/// A row with its line.
#[derive(Debug, Default)]
struct GridRow {
    line: u64,
    cells: Vec<Cell>,
}

/// A table as it stands.
#[derive(Debug, Default)]
pub(super) struct Grid {
    /// What Oracle says it shows, in lower case with single blanks; empty before 11.2.0.3.
    pub(super) summary: String,
    line: u64,
    rows: Vec<GridRow>,
}

/// What a page is made of.
#[derive(Debug)]
pub(super) enum Block {
    /// `h1` to `h6`, and text in its own paragraph: possible names of the table below.
    Name(Line),
    /// An item of a list: a remark, or a line of the contents.
    Item(Line),
    /// A table.
    Grid(Grid),
}

/// Most columns a cell may cover: reports have fewer than this.
const SPAN_MAX: usize = 64;
/// Most columns of a table: one wide row would make every other one as wide.
const WIDTH_MAX: usize = 128;
/// The longest tag: a summary has fewer letters. A quote that is open longer than this is none.
const TAG_MAX: usize = 4096;

/// Whether a text is HTML.
pub(super) fn is_html(text: &Text) -> bool {
    text.first_char() == Some('<')
        && text.head().iter().any(|line| {
            let lower = line.text.to_ascii_lowercase();
            lower.contains("<html") || lower.contains("<table") || lower.contains("<h1")
        })
}

/// The page's blocks.
pub(super) fn blocks(text: &Text) -> Vec<Block> {
    let mut page = Page::new(text.file);
    let mut rest = text.raw.as_str();
    while let Some(at) = rest.find('<') {
        page.text(&rest[..at]);
        let tag = &rest[at..];
        let end = tag_end(tag);
        let whole = &tag[..end];
        rest = &tag[end..];
        if let Some(name) = page.tag(whole) {
            // What stands within is no text of the report.
            let close = format!("</{name}");
            let skip = find_ignoring_case(rest, &close).unwrap_or(rest.len());
            page.passed(&rest[..skip]);
            rest = &rest[skip..];
        }
    }
    page.text(rest);
    page.end()
}

/// Where a tag ends that begins a text: behind its `>`, which may not stand in quotes.
fn tag_end(tag: &str) -> usize {
    if tag.starts_with("<!--") {
        return tag.find("-->").map_or(tag.len(), |at| at + 3);
    }
    let mut quote = None;
    for (i, byte) in tag.bytes().enumerate().take(TAG_MAX) {
        match (byte, quote) {
            (b'"' | b'\'', None) => quote = Some(byte),
            (byte, Some(open)) if byte == open => quote = None,
            (b'>', None) => return i + 1,
            _ => {}
        }
    }
    tag.find('>').map_or(tag.len(), |at| at + 1)
}

fn find_ignoring_case(text: &str, part: &str) -> Option<usize> {
    let (text, part) = (text.as_bytes(), part.as_bytes());
    text.windows(part.len()).position(|window| window.eq_ignore_ascii_case(part))
}

/// The page under way.
struct Page {
    file: u64,
    line: u64,
    blocks: Vec<Block>,
    grid: Option<Grid>,
    row: Option<GridRow>,
    cell: Option<Cell>,
    /// Text outside of tables, and the line it begins in.
    flow: String,
    flow_line: u64,
    in_item: bool,
}

impl Page {
    fn new(file: u64) -> Self {
        Self {
            file,
            line: 1,
            blocks: Vec::new(),
            grid: None,
            row: None,
            cell: None,
            flow: String::new(),
            flow_line: 1,
            in_item: false,
        }
    }

    /// Counts the lines of what is not looked at.
    fn passed(&mut self, text: &str) {
        self.line += text.bytes().filter(|byte| *byte == b'\n').count() as u64;
    }

    fn text(&mut self, text: &str) {
        if let Some(cell) = &mut self.cell {
            decode(text, &mut cell.text);
        } else if self.grid.is_none() {
            if self.flow.trim().is_empty() {
                let blank = text.len() - text.trim_start().len();
                let before = text[..blank].bytes().filter(|byte| *byte == b'\n').count();
                self.flow_line = self.line + before as u64;
            }
            decode(text, &mut self.flow);
        }
        self.passed(text);
    }

    /// Takes a tag; the name of one whose content is no text.
    fn tag(&mut self, tag: &str) -> Option<&'static str> {
        let inner = tag.trim_start_matches('<').trim_end_matches('>');
        let (is_end, inner) = match inner.strip_prefix('/') {
            Some(inner) => (true, inner),
            None => (false, inner),
        };
        let len = inner.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(inner.len());
        let name = inner[..len].to_ascii_lowercase();
        match name.as_str() {
            "table" => {
                self.close_grid();
                self.flush(false);
                if !is_end {
                    self.grid = Some(Grid {
                        summary: words(&attribute(inner, "summary")).to_ascii_lowercase(),
                        line: self.line,
                        rows: Vec::new(),
                    });
                }
            }
            "tr" => {
                self.close_row();
                if !is_end {
                    self.open_row();
                }
            }
            "td" | "th" => {
                self.close_cell();
                if !is_end && self.grid.is_some() {
                    self.open_row();
                    let span = attribute(inner, "colspan").trim().parse().unwrap_or(1);
                    self.cell = Some(Cell {
                        text: String::new(),
                        is_title: name == "th",
                        span: usize::clamp(span, 1, SPAN_MAX),
                    });
                }
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "p" | "ul" | "ol" | "div" | "pre" | "hr" | "br" | "body"
            | "title" => self.break_line(),
            "li" => {
                self.flush(false);
                self.in_item = !is_end;
            }
            "style" if !is_end => {
                self.passed(tag);
                return Some("style");
            }
            "script" if !is_end => {
                self.passed(tag);
                return Some("script");
            }
            _ => {}
        }
        self.passed(tag);
        None
    }

    /// A break: the end of a paragraph, or a blank within a cell.
    fn break_line(&mut self) {
        match &mut self.cell {
            Some(cell) => cell.text.push(' '),
            None => self.flush(true),
        }
    }

    fn open_row(&mut self) {
        if self.grid.is_some() && self.row.is_none() {
            let line = self.line;
            self.row = Some(GridRow { line, cells: Vec::new() });
        }
    }

    fn close_cell(&mut self) {
        if let (Some(mut cell), Some(row)) = (self.cell.take(), &mut self.row) {
            cell.text = words(&cell.text);
            row.cells.push(cell);
        }
    }

    fn close_row(&mut self) {
        self.close_cell();
        if let (Some(row), Some(grid)) = (self.row.take(), &mut self.grid)
            && !row.cells.is_empty()
        {
            grid.rows.push(row);
        }
    }

    fn close_grid(&mut self) {
        self.close_row();
        if let Some(grid) = self.grid.take() {
            self.blocks.push(Block::Grid(grid));
        }
    }

    /// Ends a paragraph, unless it goes on within the same item.
    fn flush(&mut self, keeps_item: bool) {
        let text = words(&self.flow);
        self.flow.clear();
        if !text.is_empty() {
            let line = Line { at: At { file: self.file, line: self.flow_line }, text, is_cut: false };
            self.blocks.push(if self.in_item { Block::Item(line) } else { Block::Name(line) });
        }
        self.in_item &= keeps_item;
    }

    fn end(mut self) -> Vec<Block> {
        self.close_grid();
        self.flush(false);
        self.blocks
    }
}

/// The value of an attribute; empty if there is none.
fn attribute(tag: &str, name: &str) -> String {
    let Some(at) = find_ignoring_case(tag, name) else {
        return String::new();
    };
    let rest = tag[at + name.len()..].trim_start();
    let Some(rest) = rest.strip_prefix('=').map(str::trim_start) else {
        return String::new();
    };
    let quoted = rest.strip_prefix('"').map(|rest| (rest, '"'));
    let quoted = quoted.or_else(|| rest.strip_prefix('\'').map(|rest| (rest, '\'')));
    let value = match quoted {
        Some((rest, quote)) => rest.split(quote).next(),
        None => rest.split([' ', '>']).next(),
    };
    let mut decoded = String::new();
    decode(value.unwrap_or_default(), &mut decoded);
    decoded
}

/// A text with single blanks.
fn words(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !joined.is_empty() {
            joined.push(' ');
        }
        joined.push_str(word);
    }
    joined
}

/// Appends a text with its entities resolved.
fn decode(text: &str, to: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        to.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.bytes().take(12).position(|byte| byte == b';');
        let entity = end.and_then(|end| Some((entity(&rest[1..end])?, end + 1)));
        match entity {
            Some((c, len)) => {
                to.push(c);
                rest = &rest[len..];
            }
            None => {
                to.push('&');
                rest = &rest[1..];
            }
        }
    }
    to.push_str(rest);
}

fn entity(name: &str) -> Option<char> {
    let number = |digits: &str, radix| {
        let c = char::from_u32(u32::from_str_radix(digits, radix).ok()?)?;
        // A blank that does not break is a blank here.
        Some(if c == '\u{a0}' { ' ' } else { c })
    };
    match name {
        "nbsp" => Some(' '),
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let digits = name.strip_prefix('#')?;
            match digits.strip_prefix(['x', 'X']) {
                Some(hex) => number(hex, 16),
                None => number(digits, 10),
            }
        }
    }
}

impl Grid {
    /// Of rows of cells, each with its line and whether it holds titles.
    pub(super) fn of_cells(line: u64, rows: Vec<(u64, bool, Vec<String>)>) -> Self {
        let rows = rows.into_iter().map(|(line, is_title, cells)| GridRow {
            line,
            cells: cells.into_iter().map(|text| Cell { text, is_title, span: 1 }).collect(),
        });
        Self { summary: String::new(), line, rows: rows.collect() }
    }

    /// Its first line.
    pub(super) fn at(&self, file: u64) -> At {
        At { file, line: self.line }
    }

    /// Rows under titles: the rows of `th` it begins with are the titles, a group's before those it covers.
    pub(super) fn table(&self, file: u64) -> Table {
        let is_head = |cell: &Cell| cell.is_title || cell.text.is_empty();
        let is_title = |row: &&GridRow| row.cells.iter().all(is_head) && row.cells.iter().any(|cell| cell.is_title);
        let heads: Vec<&GridRow> = self.rows.iter().take_while(is_title).collect();
        let width = self.rows.iter().map(GridRow::width).max().unwrap_or(0).min(WIDTH_MAX);
        let mut titles = vec![String::new(); width];
        for head in &heads {
            for (i, text) in head.spread() {
                let text = text.to_ascii_lowercase();
                let Some(title) = titles.get_mut(i) else {
                    break;
                };
                if text.is_empty() || *title == text {
                    continue;
                }
                if !title.is_empty() {
                    title.push(' ');
                }
                title.push_str(&text);
            }
        }
        let body = &self.rows[heads.len()..];
        let rows = body.iter().take(ROWS_MAX).map(|row| {
            let mut cells = vec![String::new(); width];
            for (i, text) in row.placed() {
                if let Some(cell) = cells.get_mut(i) {
                    text.clone_into(cell);
                }
            }
            Row { at: At { file, line: row.line }, cells, is_guess: false }
        });
        Table {
            rows: rows.collect(),
            ruler: Ruler { columns: titles.into_iter().map(Column::titled).collect() },
            unread: Vec::new(),
            left_out: body.get(ROWS_MAX).map(|row| At { file, line: row.line }),
        }
    }
}

impl GridRow {
    fn width(&self) -> usize {
        self.cells.iter().map(|cell| cell.span).sum()
    }

    /// Each cell with every column it covers.
    fn spread(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut next = 0;
        self.cells.iter().flat_map(move |cell| {
            let first = next;
            next += cell.span;
            (first..next).map(move |i| (i, cell.text.as_str()))
        })
    }

    /// Each cell with the first column it covers.
    fn placed(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut next = 0;
        self.cells.iter().map(move |cell| {
            let first = next;
            next += cell.span;
            (first, cell.text.as_str())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(html: &str) -> Vec<Block> {
        blocks(&Text::read(0, "page.html", html))
    }

    #[test]
    fn tables_have_titles_groups_lines_and_single_blanks() {
        let html = "<html><h3 class=\"awr\">IO\n Stat</h3>\n<ul><li>in &lt;MB&gt;</li></ul>\n<table \
                    summary=\"This  shows > I/O\"><tr><th></th><th colspan=' 2'>Read</th></tr>\n<tr><th>Name<th>Data\
                    <th>Req&nbsp;s</tr>\n<tr><td scope=\"row\">a&#160;&#x62;<td>  1,0</td><td>2<br>3</td></tr></table>";
        let blocks = page(html);
        let [Block::Name(name), Block::Item(item), Block::Grid(grid)] = blocks.as_slice() else {
            panic!("{blocks:?}");
        };
        assert_eq!((name.text.as_str(), name.at.line), ("IO Stat", 1));
        assert_eq!((item.text.as_str(), item.at.line), ("in <MB>", 3));
        assert_eq!(grid.summary, "this shows > i/o");
        let table = grid.table(0);
        let titles: Vec<&str> = table.ruler.columns.iter().map(|c| c.title.as_str()).collect();
        assert_eq!(titles, ["name", "read data", "read req s"]);
        assert_eq!(table.rows[0].cells, ["a b", "1,0", "2 3"]);
        assert_eq!(table.rows[0].at.line, 6);
    }

    #[test]
    fn a_table_longer_than_any_report_has_says_where_it_was_left() {
        let rows = (0..=ROWS_MAX as u64).map(|line| (line, false, vec!["a".to_owned(), line.to_string()]));
        let grid = Grid::of_cells(0, rows.collect());
        let at = |line: usize| At { file: 0, line: line as u64 };
        let line = |i: usize, text: &str| Line { at: at(i), text: text.to_owned(), is_cut: false };
        let rows = (1..=ROWS_MAX + 1).map(|i| line(i, "a statistic   12"));
        let lines: Vec<Line> = std::iter::once(line(0, "-----------   --")).chain(rows).collect();
        let of_text = crate::awr::table::tables(&line(0, "Statistics"), &lines, 1, 1).remove(0);
        for (table, left) in [(grid.table(0), ROWS_MAX), (of_text, ROWS_MAX + 1)] {
            assert_eq!((table.rows.len(), table.left_out), (ROWS_MAX, Some(at(left))));
        }
    }

    #[test]
    fn what_is_no_text_of_the_report_is_passed_over() {
        let blocks = page("<style>\n<table></style>\n<SCRIPT>if (a<b) {}</script><!-- <table> --><p>x");
        let [Block::Name(name)] = blocks.as_slice() else {
            panic!("{blocks:?}");
        };
        assert_eq!((name.text.as_str(), name.at.line), ("x", 3));
    }

    #[test]
    fn broken_tags_end_somewhere() {
        for html in [
            "<",
            "<table",
            "<table summary=\"x",
            "<td>a</td>",
            "<table><td>&#xffffffff;&bad;&",
            "</table></tr></td></li>",
            "<table><tr><th colspan=99999999999>x</table>",
        ] {
            for block in page(html) {
                if let Block::Grid(grid) = block {
                    let _ = grid.table(0);
                }
            }
        }
    }
}
