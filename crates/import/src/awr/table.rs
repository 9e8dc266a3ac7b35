//! Tables of fixed-width reports: columns from the ruler of dashes, titles from the lines above it.
//!
//! A cell belongs to the column it is under. If blanks were lost and the cells are no longer under their columns, the
//! numbers of a line are taken in order, if there is one for each column.

use crate::text::{At, Line};

/// One column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    /// Its title of all lines, in lower case, words joined by one blank.
    pub(super) title: String,
    start: usize,
    end: usize,
}

impl Column {
    /// A column that stands nowhere, for a table whose cells are known.
    pub(super) fn titled(title: String) -> Self {
        let (start, end) = (0, 0);
        Self { title, start, end }
    }

    /// Adds words to the title.
    fn add(&mut self, words: &str) {
        if !self.title.is_empty() {
            self.title.push(' ');
        }
        self.title.push_str(words);
    }
}

/// One line of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Where it stands.
    pub(super) at: At,
    /// Text of each column; empty where there is none.
    pub(super) cells: Vec<String>,
    /// The cells were taken in order, for the alignment is lost.
    pub(super) is_guess: bool,
}

/// A table's columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ruler {
    /// From left to right.
    pub(super) columns: Vec<Column>,
}

/// A word with where it stands.
#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    text: &'a str,
    start: usize,
    end: usize,
}

fn tokens(line: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut rest = line;
    let mut offset = 0;
    while let Some(skip) = rest.find(|c: char| c != ' ') {
        let word = &rest[skip..];
        let len = word.find(' ').unwrap_or(word.len());
        let text = &word[..len];
        let start = offset + skip;
        found.push(Token { text, start, end: start + len });
        offset = start + len;
        rest = &word[len..];
    }
    found
}

/// Whether a line is a ruler: at least two runs of dashes (or equals signs) and nothing else.
pub(super) fn is_ruler(line: &str) -> bool {
    let words = tokens(line);
    let is_rule = |text: &str| text.bytes().all(|b| b == b'-') || text.bytes().all(|b| b == b'=');
    words.len() >= 2 && words.iter().all(|word| is_rule(word.text)) && words.iter().any(|w| w.text.len() > 2)
}

impl Ruler {
    /// From a ruler and the title lines above it. A heading with underlines of `~` counts as a column too.
    pub(super) fn new(ruler: &str, titles: &[&str]) -> Self {
        let mut columns: Vec<Column> = tokens(ruler)
            .into_iter()
            .map(|token| Column { title: String::new(), start: token.start, end: token.end })
            .collect();
        for line in titles {
            let groups = groups(line);
            for group in &groups {
                let name = group.text.trim_matches(['-', ' ']).to_ascii_lowercase();
                let covered = |c: &&mut Column| c.start < group.end && group.start < c.end;
                let columns = columns.iter_mut().filter(covered);
                columns.for_each(|column| column.add(&name));
            }
            let is_in = |word: &Token<'_>| groups.iter().any(|g| g.start <= word.start && word.end <= g.end);
            for word in tokens(line) {
                if is_in(&word) || word.text.bytes().all(|b| b == b'~') {
                    continue;
                }
                if let Some(column) = nearest(&mut columns, &word) {
                    column.add(&word.text.to_ascii_lowercase());
                }
            }
        }
        Self { columns }
    }

    /// With a column for the labels where the ruler begins behind them.
    pub(super) fn labelled(mut self) -> Self {
        if let Some(first) = self.columns.first().map(|column| column.start).filter(|start| *start > 2) {
            self.columns.insert(0, Column { title: String::new(), start: 0, end: first - 2 });
        }
        self
    }

    /// Index of the column with this title.
    pub(super) fn titled(&self, title: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.title == title)
    }

    /// From a ruler and what stands above it in its section.
    fn below(ruler: &str, heading: &Line, above: &[Line], most: usize) -> Self {
        let found = titles(heading, above, most);
        let titles: Vec<&str> = found.iter().map(String::as_str).collect();
        Self::new(ruler, &titles)
    }

    /// Index of the first column whose title has all of these parts and none of those.
    /// Titles are in lower case.
    pub(super) fn find(&self, with: &[&str], without: &[&str]) -> Option<usize> {
        self.columns.iter().position(|column| {
            let has = |part: &&str| column.title.contains(*part);
            with.iter().all(has) && !without.iter().any(has)
        })
    }

    /// Cuts a line into cells. Text keeps to the columns it stands under; `numbers_from` is the first column that holds
    /// numbers, for lines that lost their alignment.
    pub(super) fn row(&self, line: &Line, numbers_from: usize) -> Option<Row> {
        let words = tokens(&line.text);
        if words.is_empty() {
            return None;
        }
        let mut cells = vec![String::new(); self.columns.len()];
        let mut is_fit = true;
        let mut last = 0;
        for word in &words {
            let Some(column) = self.under(word, last, numbers_from) else {
                is_fit = false;
                break;
            };
            last = column;
            let cell = &mut cells[column];
            if !cell.is_empty() {
                if column >= numbers_from && is_numeric(word.text) && is_numeric(cell) {
                    is_fit = false;
                    break;
                }
                cell.push(' ');
            }
            cell.push_str(word.text);
        }
        let is_text = numbers_from >= self.columns.len();
        if is_fit && (is_text || cells.iter().skip(numbers_from).any(|cell| !cell.is_empty())) {
            return Some(Row { at: line.at, cells, is_guess: false });
        }
        self.guess(line, &words, numbers_from)
    }

    /// Cuts a line into cells that hold no numbers.
    pub(super) fn texts(&self, line: &Line) -> Option<Row> {
        self.row(line, usize::MAX)
    }

    /// The column a word stands under: the one whose right edge it shares, else the one it overlaps most.
    fn under(&self, word: &Token<'_>, from: usize, numbers_from: usize) -> Option<usize> {
        let candidates = self.columns.iter().enumerate().skip(from);
        let mut best: Option<(usize, usize)> = None;
        for (i, column) in candidates {
            if i >= numbers_from && column.end == word.end {
                return Some(i);
            }
            let overlap = word.end.min(column.end).saturating_sub(word.start.max(column.start));
            if overlap > 0 && best.is_none_or(|(_, most)| overlap > most) {
                best = Some((i, overlap));
            }
        }
        // A name may run on over the gap behind its column.
        let (first, edge) = (self.columns.first()?, self.columns.get(1));
        let in_first = from == 0 && word.start <= first.end && edge.is_none_or(|e| word.end <= e.start);
        best.map(|(i, _)| i).or(in_first.then_some(0))
    }

    /// One number for each number column, the name before them.
    fn guess(&self, line: &Line, words: &[Token<'_>], numbers_from: usize) -> Option<Row> {
        if numbers_from == 0 {
            let is_row = words.len() == self.columns.len() && words.iter().all(|word| is_numeric(word.text));
            return is_row.then(|| Row {
                at: line.at,
                cells: words.iter().map(|word| word.text.to_owned()).collect(),
                is_guess: true,
            });
        }
        let wanted = self.columns.len().checked_sub(numbers_from)?;
        let first_number = words.iter().enumerate().position(|(i, word)| i > 0 && is_numeric(word.text))?;
        let numbers: Vec<&Token<'_>> = words[first_number..].iter().take_while(|word| is_numeric(word.text)).collect();
        let rest = words.len() - first_number - numbers.len();
        if numbers.len() + rest.min(1) < wanted || numbers.len() > wanted {
            return None;
        }
        let mut cells = vec![String::new(); self.columns.len()];
        cells[0] = line.text[words[0].start..words[first_number - 1].end].to_owned();
        for (i, word) in numbers.iter().enumerate() {
            word.text.clone_into(&mut cells[numbers_from + i]);
        }
        if rest > 0 {
            let tail = words[first_number + numbers.len()].start;
            line.text[tail..].clone_into(cells.last_mut()?);
        }
        Some(Row { at: line.at, cells, is_guess: true })
    }
}

/// Rows of a table at most. No release of Oracle has a tenth as many events or statistics; each row that is read becomes several
/// figures of the record, and of HTML it is as wide as the widest.
pub(super) const ROWS_MAX: usize = 20_000;

/// A table of a section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    /// Its columns.
    pub(super) ruler: Ruler,
    /// Its rows.
    pub(super) rows: Vec<Row>,
    /// Lines among the rows that are none.
    pub(super) unread: Vec<Line>,
    /// The first row that is one too many.
    pub(super) left_out: Option<At>,
}

/// Tables of a section. `numbers_from` is the first column that holds numbers, `titles_max` the most title lines.
pub(super) fn tables(heading: &Line, lines: &[Line], numbers_from: usize, titles_max: usize) -> Vec<Table> {
    let mut all: Vec<Table> = Vec::new();
    let mut open: Option<Table> = None;
    let mut pending: Option<&Line> = None;
    let mut was_blank = false;
    for (i, line) in lines.iter().enumerate() {
        if is_ruler(&line.text) {
            all.extend(open.take());
            open =
                Some(Table { ruler: Ruler::below(&line.text, heading, &lines[..i], titles_max), ..Table::default() });
            (pending, was_blank) = (None, false);
            continue;
        }
        let Some(table) = &mut open else {
            continue;
        };
        if is_end(&line.text) {
            all.extend(open.take());
            continue;
        }
        if line.text.is_empty() || line.is_cut {
            was_blank |= line.text.is_empty();
            continue;
        }
        if let Some(row) = table.row(line, pending.take(), numbers_from) {
            if !(was_blank && row.is_guess) {
                table.push(row);
            }
        } else if was_blank {
            // Prose behind a pasted table.
            all.extend(open.take());
        } else {
            pending = Some(line);
        }
    }
    all.extend(open);
    all
}

impl Table {
    fn push(&mut self, row: Row) {
        if self.rows.len() < ROWS_MAX {
            self.rows.push(row);
        } else {
            self.left_out.get_or_insert(row.at);
        }
    }

    /// A row; one whose numbers were wrapped onto a line of their own is taken with the name before them.
    fn row(&mut self, line: &Line, name: Option<&Line>, numbers_from: usize) -> Option<Row> {
        let Some(name) = name else {
            return self.ruler.row(line, numbers_from);
        };
        if line.text.split_whitespace().all(is_numeric) {
            let text = format!("{} {}", name.text, line.text.trim_start());
            let at = name.at;
            let joined = Line { at, text, is_cut: false };
            if let Some(row) = self.ruler.row(&joined, numbers_from) {
                return Some(row);
            }
        }
        self.unread.push(name.clone());
        self.ruler.row(line, numbers_from)
    }
}

/// The title lines above a ruler: back to a blank line, a remark or the heading, whose own end may be one.
fn titles(heading: &Line, above: &[Line], most: usize) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let is_underline = |text: &str| text.starts_with('~') && text.bytes().all(|b| b == b'~');
    let mut is_open = true;
    for line in above.iter().rev() {
        let text = line.text.as_str();
        let is_remark = text.trim_start().starts_with("->");
        if found.len() == most || text.is_empty() || is_remark || is_ruler(text) {
            is_open = false;
            break;
        }
        if !is_underline(text) {
            found.push(text.to_owned());
        }
    }
    if is_open && found.len() < most && !heading.text.contains("DB/Inst") {
        // Its name is no title; what stands far behind it is.
        let name = heading.text.find("  ").unwrap_or(heading.text.len());
        found.push(" ".repeat(name) + &heading.text[name..]);
    }
    found.reverse();
    found
}

/// Groups of columns on a title line: `---- Read ---- --- Write ---`.
fn groups(line: &str) -> Vec<Token<'_>> {
    let is_dashes = |text: &str| text.len() > 1 && text.bytes().all(|b| b == b'-');
    let mut found: Vec<Token<'_>> = Vec::new();
    let mut open: Option<(Token<'_>, bool)> = None;
    for word in tokens(line) {
        open = match (open, is_dashes(word.text)) {
            (Some((first, true)), true) => {
                let (start, end) = (first.start, word.end);
                let text = &line[start..end];
                found.push(Token { text, start, end });
                None
            }
            (_, true) => Some((word, false)),
            (Some((first, _)), false) => Some((first, true)),
            (None, false) => None,
        };
    }
    found
}

/// The line of dashes that ends a section.
pub(super) fn is_end(line: &str) -> bool {
    let bare = line.trim();
    bare.len() >= 20 && bare.bytes().all(|b| b == b'-')
}

/// The column a title word belongs to: the one it overlaps most, else the nearest.
fn nearest<'a>(columns: &'a mut [Column], word: &Token<'_>) -> Option<&'a mut Column> {
    columns.iter_mut().min_by_key(|column| {
        let overlap = word.end.min(column.end).saturating_sub(word.start.max(column.start));
        let gap = column.start.saturating_sub(word.end).max(word.start.saturating_sub(column.end));
        (usize::MAX - overlap, gap)
    })
}

/// Whether a word is a number as reports print them, or stands for one.
pub(super) fn is_numeric(word: &str) -> bool {
    use crate::number;
    number::suffixed(word, number::Suffix::Binary).is_some() || number::duration_us(word, 1.0).is_some()
}
