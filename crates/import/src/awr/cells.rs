//! Tables whose cells stand between separators: a report copied from a browser (tabs), or turned into Markdown (pipes). They
//! become the blocks of the page they were copied from.

use super::html::{Block, Grid};
use super::table::{is_numeric, is_ruler};
use crate::text::{At, Line, Text};

/// What separates the cells of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Separator {
    Tab,
    /// With an outer pipe on every line, or without.
    Pipe {
        is_outer: bool,
    },
}

/// Rows that make a text one of cells.
const LEAST: usize = 3;

/// The separator of a text's tables, if it has one. A table of fixed width has a ruler of dashes and blanks.
pub(super) fn separator(text: &Text) -> Option<Separator> {
    let lines = || text.raw.lines().take(2000);
    let is_rule = |line: &str| line.contains("---") && line.bytes().all(|byte| b"|-: \t\r".contains(&byte));
    if let Some(rule) = lines().find(|line| is_rule(line) && line.contains('|')) {
        return Some(Separator::Pipe { is_outer: rule.trim_start().starts_with('|') });
    }
    let is_row = |line: &&str| line.trim_end().matches('\t').count() >= 2;
    let has_ruler = || lines().any(|line| is_ruler(&line.replace('\t', " ").replace('~', "-")));
    (lines().filter(is_row).count() >= LEAST && !has_ruler()).then_some(Separator::Tab)
}

/// Cells of a line; `None` for a line that is no row.
fn cells(line: &str, separator: Separator) -> Option<Vec<String>> {
    let clean = |cell: &str| cell.split_whitespace().collect::<Vec<_>>().join(" ").replace("**", "");
    match separator {
        Separator::Tab => {
            let line = line.trim_end_matches('\r');
            line.contains('\t').then(|| line.split('\t').map(clean).collect())
        }
        Separator::Pipe { is_outer } => {
            let line = line.trim_end();
            let line = if is_outer {
                let line = line.trim_start().strip_prefix('|')?;
                line.strip_suffix('|').unwrap_or(line)
            } else {
                line
            };
            line.contains('|').then(|| line.split('|').map(clean).collect())
        }
    }
}

/// Whether a row holds titles: no label that a value follows, and no number.
fn is_titles(cells: &[String]) -> bool {
    !cells.iter().any(|cell| cell.ends_with(':') || is_numeric(cell)) && cells.iter().any(|cell| !cell.is_empty())
}

/// A line that is no row, without what marks it as a heading, an item or a link.
pub(super) fn bare(line: &str) -> &str {
    line.trim().trim_start_matches(['#', '*', '>', ' ']).trim_end_matches(['*', '#', ' ']).trim()
}

/// The blocks of a text: tables, the lines that name them, and the remarks between a name and its table.
pub(super) fn blocks(text: &Text, separator: Separator, is_heading: impl Fn(&str) -> bool) -> Vec<Block> {
    let mut all = Vec::new();
    let mut rows: Vec<(u64, bool, Vec<String>)> = Vec::new();
    let mut is_named = false;
    let close = |rows: &mut Vec<(u64, bool, Vec<String>)>, all: &mut Vec<Block>| {
        if let Some((line, ..)) = rows.first() {
            all.push(Block::Grid(Grid::of_cells(*line, std::mem::take(rows))));
            return true;
        }
        false
    };
    for (i, line) in text.raw.lines().enumerate() {
        let number = i as u64 + 1;
        match cells(line, separator) {
            Some(cells) if cells.iter().all(|cell| cell.bytes().all(|byte| b"-: ".contains(&byte))) => {}
            Some(cells) => {
                let is_title = rows.is_empty() && is_titles(&cells);
                rows.push((number, is_title, cells));
            }
            None => {
                is_named &= !close(&mut rows, &mut all);
                let text_of = bare(line);
                // A link back ends a section and names nothing.
                if text_of.is_empty() || text_of.starts_with("Back to ") {
                    continue;
                }
                let at = At { file: text.file, line: number };
                let (is_marked, is_item) = (line.trim_start().starts_with('#'), line.trim_start().starts_with("* "));
                let line = Line { at, text: text_of.to_owned(), is_cut: false };
                // What stands below a name says more of its table.
                if is_item || is_named && !is_marked && !is_heading(text_of) {
                    all.push(Block::Item(line));
                } else {
                    is_named = true;
                    all.push(Block::Name(line));
                }
            }
        }
    }
    close(&mut rows, &mut all);
    all
}
