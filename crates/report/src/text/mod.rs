//! Sections as fixed-width text: the layout of awr-statistics 7.1 and the contract of 7.2.
//!
//! The field's scripts read this by line, label and column, so names, order and field counts are a promise; the tests
//! beside this module check it.

#[cfg(test)]
mod tests;

use crate::{answer, kinds};
use assay_measure::plain::plain;
use assay_measure::record::Record;
use assay_measure::section::{Align, Cell, Column, Part, Row, Section, Sections, Table, Tile};
use assay_measure::units::shorten;
use std::borrow::Cow;

/// Characters of a line that sentences are wrapped at.
const WIDTH: usize = 116;

/// Renders a record as text: the answer, then its sections, each line at most as wide as its longest name or sentence.
#[must_use]
pub fn render(record: &Record) -> String {
    let mut text = answer::of(&[record], &answer::Context::default()).text();
    text.push('\n');
    text.push_str(&write(&kinds::sections(record)));
    text.push_str("\nEnd of Report\n");
    match plain(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(clean) => clean,
    }
}

/// Writes sections one below the other.
#[must_use]
pub fn write(sections: &Sections) -> String {
    let mut out = String::new();
    if let Some(title) = &sections.title {
        line(&mut out, title);
        line(&mut out, "");
    }
    for section in &sections.all {
        heading(&mut out, section);
        for part in &section.parts {
            draw(&mut out, part);
        }
    }
    out
}

/// One line without its trailing blanks.
fn line(out: &mut String, text: &str) {
    out.push_str(text.trim_end());
    out.push('\n');
}

/// A section's heading with the blank line before it.
fn heading(out: &mut String, section: &Section) {
    if section.is_headed {
        line(out, "");
        line(out, &section.title);
        line(out, &"~".repeat(section.title.chars().count()));
    }
}

fn draw(out: &mut String, part: &Part) {
    match part {
        Part::Line(text) => line(out, text),
        Part::Sentence { lead, text, .. } => wrap(out, lead, text),
        Part::Table(table) => draw_table(out, table),
        Part::Pairs { left, right } => two_columns(out, left, right),
        Part::Named { name, width, value } => line(out, &format!("{name:<width$} {value}")),
        Part::Drawing(lines) => lines.iter().for_each(|drawn| line(out, drawn)),
        Part::Picture(tiles) => outline(out, tiles, 0),
    }
}

/// Boxes in boxes as an outline: small ones of one box side by side.
fn outline(out: &mut String, tiles: &[Tile], depth: usize) {
    let lead = " ".repeat(2 * depth);
    let leaves: Vec<&str> = tiles.iter().filter(|tile| tile.is_leaf).map(|tile| tile.title.as_str()).collect();
    if !leaves.is_empty() {
        wrap(out, &lead, &leaves.join(", "));
    }
    for tile in tiles.iter().filter(|tile| !tile.is_leaf) {
        let said = std::iter::once(&tile.title).chain(&tile.lines);
        let said: Vec<&str> = said.map(String::as_str).collect();
        wrap(out, &lead, &said.join(", "));
        outline(out, &tile.inside, depth + 1);
    }
}

fn draw_table(out: &mut String, table: &Table) {
    let rest = table.rest.as_ref();
    let count = rest.map_or(table.rows.len(), |rest| rest.first);
    if table.is_titled && rest.is_none_or(|rest| rest.first > 0) {
        heads(out, table);
        let titles = table.columns.iter().map(|column| column.title.as_ref());
        row(out, &table.columns, titles);
        let rules: Vec<String> = (table.columns.iter().enumerate())
            .map(|(i, column)| "-".repeat(column.width.saturating_sub(usize::from(i > 0))))
            .collect();
        row(out, &table.columns, rules.iter().map(String::as_str));
    }
    for row in table.rows.iter().take(count) {
        match row {
            Row::Cells(cells) => self::row(out, &table.columns, texts(cells)),
            Row::Between(part) => draw(out, part),
        }
    }
    if let Some(rest) = rest {
        line(out, &format!("{} ({})", rest.what, rest.how));
    }
}

/// The titles across columns, each with dashes as far as it reaches.
fn heads(out: &mut String, table: &Table) {
    let mut text = String::new();
    let mut columns = table.columns.iter();
    for head in &table.heads {
        let under = columns.by_ref().take(head.columns);
        let width: usize = under.map(|column| column.width).sum();
        let title = match head.title.as_str() {
            "" => " ".repeat(width),
            title => format!(" {:-^1$}", format!(" {title} "), width.saturating_sub(1)),
        };
        text.push_str(&title);
    }
    if !table.heads.is_empty() {
        line(out, &text);
    }
}

fn texts(cells: &[Cell]) -> impl Iterator<Item = &str> {
    cells.iter().map(|cell| cell.text.as_str())
}

/// One row; a cell wider than its column pushes the rest aside and is never cut.
fn row<'a>(out: &mut String, columns: &[Column], cells: impl Iterator<Item = &'a str>) {
    let mut text = String::new();
    for (i, (column, cell)) in columns.iter().zip(cells).enumerate() {
        let gap = usize::from(i > 0);
        let width = column.width.saturating_sub(gap);
        text.push_str(&" ".repeat(gap));
        match column.align {
            Align::Left | Align::Drawn => text.push_str(&format!("{cell:<width$}")),
            Align::Right => text.push_str(&format!("{cell:>width$}")),
            Align::Wrapped => {
                wrap(out, &text, cell);
                return;
            }
        }
    }
    line(out, &text);
}

/// A sentence, wrapped between words, later lines indented.
fn wrap(out: &mut String, lead: &str, text: &str) {
    let indent = " ".repeat(lead.chars().count());
    let mut current = lead.to_owned();
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && current.chars().count() + 1 + word.chars().count() > WIDTH {
            line(out, &current);
            current.clone_from(&indent);
            empty = true;
        }
        if !empty {
            current.push(' ');
        }
        current.push_str(word);
        empty = false;
    }
    line(out, &current);
}

fn two_columns(out: &mut String, left: &[(String, String)], right: &[(String, String)]) {
    const NAME: usize = 24;
    const VALUE: usize = 36;
    for row in 0..left.len().max(right.len()) {
        let (name, value) = left.get(row).map_or(("", ""), |(name, value)| (name, value));
        let value = shorten(value, VALUE);
        let mut text = format!("{name:<NAME$} {value:<VALUE$}");
        if let Some((name, value)) = right.get(row) {
            text.push_str(&format!(" {name:<NAME$} {value}"));
        }
        line(out, &text);
    }
}
