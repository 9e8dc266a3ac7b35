//! A section of a report: its heading, its lines and its tables, whether the report is text or HTML.

use super::html::Grid;
use super::table::{self, Ruler, Table};
use crate::number::{self, Printed};
use crate::text::{At, Line};
use std::borrow::Cow;

/// A section.
pub(super) struct Part<'a> {
    /// What it is headed by.
    pub(super) heading: &'a Line,
    /// Of text, all lines below the heading; of HTML, the remarks above the table.
    pub(super) lines: &'a [Line],
    grid: Option<Table>,
}

/// A label and the numbers behind it.
pub(super) struct Labelled {
    /// Where.
    pub(super) at: At,
    /// As printed, without its colon.
    pub(super) label: String,
    /// In order.
    pub(super) numbers: Vec<Printed>,
}

/// A label and the numbers behind it, each under its title.
pub(super) struct Titled {
    /// Where, with the text for messages.
    pub(super) line: Line,
    /// As printed, without its colon.
    pub(super) label: String,
    /// Index of a title and the number under it.
    pub(super) numbers: Vec<(usize, Printed)>,
}

impl<'a> Part<'a> {
    /// Of text.
    pub(super) fn of_text(heading: &'a Line, lines: &'a [Line]) -> Self {
        Self { heading, lines, grid: None }
    }

    /// Of HTML.
    pub(super) fn of_html(heading: &'a Line, remarks: &'a [Line], grid: &Grid) -> Self {
        Self { heading, lines: remarks, grid: Some(grid.table(heading.at.file)) }
    }

    /// Its table, if it is of HTML.
    pub(super) fn grid(&self) -> Option<&Table> {
        self.grid.as_ref()
    }

    /// Its tables. Of text, `numbers_from` is the first column that holds numbers, `titles_max` the most title lines.
    pub(super) fn tables(&self, numbers_from: usize, titles_max: usize) -> Cow<'_, [Table]> {
        match &self.grid {
            Some(table) => Cow::Borrowed(std::slice::from_ref(table)),
            None => Cow::Owned(table::tables(self.heading, self.lines, numbers_from, titles_max)),
        }
    }

    /// Labels that end in a colon, with the numbers behind each; several may stand on a line.
    pub(super) fn labelled(&self) -> Vec<Labelled> {
        match &self.grid {
            Some(table) => of_cells(table),
            None => self.lines.iter().flat_map(of_line).collect(),
        }
    }

    /// Titles of the columns behind labels, in lower case, and the labelled rows under them: a load profile, an I/O
    /// profile. Where the alignment is lost, the numbers of a row are those of the first titles.
    pub(super) fn titled(&self) -> (Vec<String>, Vec<Titled>) {
        if let Some(table) = &self.grid {
            let titles = table.ruler.columns.iter().map(|c| c.title.clone());
            return (titles.collect(), table.rows.iter().map(of_row).collect());
        }
        let at = self
            .lines
            .iter()
            .take(4)
            .position(|line| line.text.contains("---") && table::is_ruler(&line.text.replace('~', "-")));
        let ruler = at.map(|at| {
            let above = self.lines[..at].iter().map(|line| line.text.as_str());
            let titles: Vec<&str> = std::iter::once(self.heading.text.as_str()).chain(above).collect();
            Ruler::new(&self.lines[at].text.replace('~', "-"), &titles).labelled()
        });
        let titles: Vec<String> = match &ruler {
            Some(ruler) => ruler.columns.iter().map(|c| c.title.clone()).collect(),
            None => spaced(&self.heading.text),
        };
        let width = titles.len();
        let rows = self.lines.iter();
        let rows = rows.filter_map(|line| of_titled_line(line, ruler.as_ref(), width));
        (titles, rows.collect())
    }

    /// Words of the titles over labelled rows, in lower case.
    pub(super) fn label_titles(&self) -> Vec<String> {
        let of_text = || {
            let above = self.lines.iter().take_while(|line| !line.text.contains(':'));
            let lines = std::iter::once(self.heading).chain(above);
            lines.flat_map(|line| line.text.split_whitespace())
        };
        match &self.grid {
            Some(table) => {
                let titles = table.ruler.columns.iter();
                let words = titles.flat_map(|column| column.title.split_whitespace());
                words.map(str::to_owned).collect()
            }
            None => of_text().map(str::to_ascii_lowercase).collect(),
        }
    }
}

/// Parts of a line that two or more blanks separate, in lower case.
fn spaced(line: &str) -> Vec<String> {
    let parts = line.split("  ").map(str::trim);
    parts.filter(|part| !part.is_empty()).map(str::to_ascii_lowercase).collect()
}

fn of_row(row: &table::Row) -> Titled {
    let label = row.cells.first().map_or("", String::as_str);
    let cells = row.cells.iter().enumerate().skip(1);
    Titled {
        line: Line { at: row.at, text: row.cells.join("  "), is_cut: false },
        label: label.trim_end_matches(':').trim_end().to_owned(),
        numbers: cells.filter_map(|(i, cell)| Some((i, number::measure(cell)?))).collect(),
    }
}

fn of_titled_line(line: &Line, ruler: Option<&Ruler>, titles: usize) -> Option<Titled> {
    let (label, rest) = line.text.split_once(':')?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    if label.trim().is_empty() || words.is_empty() || rest.contains(':') {
        return None;
    }
    let numbers: Option<Vec<Printed>> = words.iter().map(|word| number::measure(word)).collect();
    let titled = |numbers| Titled { line: line.clone(), label: label.trim().to_owned(), numbers };
    let Some(numbers) = numbers else {
        return Some(titled(Vec::new()));
    };
    let under = ruler.and_then(|ruler| {
        // The label's column, whose underline may be shorter than the labels, takes no number.
        let blanked = Line { text: format!("{}{rest}", " ".repeat(label.len() + 1)), ..line.clone() };
        let row = ruler.row(&blanked, 1).filter(|row| !row.is_guess)?;
        let cells = row.cells.iter().enumerate().skip(1);
        let found = cells.filter(|(_, cell)| !cell.is_empty());
        let found = found.map(|(i, cell)| Some((i, number::measure(cell)?)));
        let found: Vec<(usize, Printed)> = found.collect::<Option<_>>()?;
        (found.len() == numbers.len()).then_some(found)
    });
    Some(titled(match under {
        Some(found) => found,
        None if numbers.len() < titles => (1..titles).zip(numbers).collect(),
        None => Vec::new(),
    }))
}

fn of_cells(table: &Table) -> Vec<Labelled> {
    let mut found: Vec<Labelled> = Vec::new();
    for row in &table.rows {
        let mut is_open = false;
        for cell in &row.cells {
            if let Some(label) = cell.strip_suffix(':') {
                found.push(Labelled { at: row.at, label: label.trim_end().to_owned(), numbers: Vec::new() });
                is_open = true;
            } else if let (true, Some(last)) = (is_open, found.last_mut()) {
                last.numbers.extend(number::measure(cell));
            }
        }
    }
    found
}

fn of_line(line: &Line) -> Vec<Labelled> {
    let mut found = Vec::new();
    let mut rest = line.text.as_str();
    while let Some((label, mut behind)) = rest.split_once(':') {
        let label = label.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut numbers = Vec::new();
        loop {
            behind = behind.trim_start();
            let word = behind.split_whitespace().next().unwrap_or_default();
            let Some(printed) = number::measure(word) else {
                break;
            };
            numbers.push(printed);
            behind = &behind[word.len()..];
        }
        rest = behind;
        found.push(Labelled { at: line.at, label, numbers });
    }
    found
}
