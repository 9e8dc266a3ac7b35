//! Sections as a page shows them: the same tables, pairs and sentences that text prints, without its widths.

use super::picture;
use super::table::{Cell, Table};
use assay_measure::section::{self, Align, Brief, Part, Row, Section, Sections, Weight};
use std::collections::BTreeSet;

/// A table with more rows than this is folded.
const ROWS_OPEN: usize = 40;

/// A section with its address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) is_judgement: bool,
    /// What the first screen shows of it.
    pub(crate) brief: Option<Table>,
    pub(crate) blocks: Vec<Block>,
}

/// A piece of a section.
#[derive(Clone, Debug)]
pub(crate) enum Block {
    Sentence {
        /// `bad`, `warn` or nothing.
        class: &'static str,
        /// What it is about, before it.
        lead: String,
        text: String,
    },
    Pairs(Vec<(String, String)>),
    Table {
        table: Table,
        /// Its summary when folded; empty if it is open.
        folded: String,
    },
    /// Boxes in boxes, drawn.
    Picture(String),
}

/// All sections that have a title.
pub(crate) fn of(sections: &Sections) -> Vec<Shown> {
    let titled = sections.all.iter().filter(|section| !section.title.is_empty());
    let mut all: Vec<Shown> = titled.map(shown).collect();
    let mut seen = BTreeSet::new();
    for (nth, section) in all.iter_mut().enumerate() {
        // Two jobs may have one name, and so may their sections.
        if !seen.insert(section.id.clone()) {
            section.id = format!("{}-{nth}", section.id);
        }
    }
    all
}

fn shown(section: &Section) -> Shown {
    Shown {
        id: format!("t-{}", assay_measure::plain::slug(&section.title).replace('_', "-")),
        title: section.title.clone(),
        is_judgement: section.is_judgement,
        brief: section.brief.and_then(|brief| short(section, brief)),
        blocks: blocks(section),
    }
}

/// The rows and columns of the first table that the first screen has room for; nothing where no row has a figure.
fn short(section: &Section, brief: Brief) -> Option<Table> {
    let whole = section.parts.iter().find_map(|part| match part {
        Part::Table(table) => Some(table),
        _ => None,
    })?;
    let mut table = convert(whole, &section.title);
    let is_above_zero = |cell: &Cell| cell.text.contains(|c| ('1'..='9').contains(&c));
    let says = |row: &Vec<Cell>, at: usize| row.get(at).is_some_and(is_above_zero);
    let wanted = |title: &String| brief.columns.contains(&title.as_str());
    let mut places: Vec<usize> = (0..table.columns.len()).filter(|at| wanted(&table.columns[*at])).collect();
    let figures = || places.iter().skip(1);
    table.rows.retain(|row| figures().any(|at| says(row, *at)));
    table.rows.truncate(brief.rows);
    let name = places.first().copied();
    places.retain(|at| Some(*at) == name || table.rows.iter().any(|row| says(row, *at)));
    let of_row = |row: &Vec<Cell>| places.iter().filter_map(|at| row.get(*at).cloned()).collect();
    table.rows = table.rows.iter().map(of_row).collect();
    table.columns = places.iter().map(|at| table.columns[*at].clone()).collect();
    table.heads.clear();
    (!table.rows.is_empty()).then_some(table)
}

fn blocks(section: &Section) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut named: Vec<Vec<Cell>> = Vec::new();
    for part in &section.parts {
        if let Part::Named { name, value, .. } = part {
            named.push(vec![Cell::words(name.trim()), cell(value, Align::Right)]);
            continue;
        }
        close(&mut blocks, &mut named, section);
        match part {
            Part::Named { .. } | Part::Drawing(_) => {}
            Part::Line(text) if text.trim().is_empty() => {}
            Part::Line(_) | Part::Sentence { .. } => blocks.push(sentence(part)),
            Part::Pairs { left, right } => {
                blocks.push(Block::Pairs(left.iter().chain(right).cloned().collect()));
            }
            Part::Table(table) => blocks.extend(tables(table, &section.title)),
            Part::Picture(tiles) => blocks.push(Block::Picture(picture::svg(tiles))),
        }
    }
    close(&mut blocks, &mut named, section);
    blocks
}

/// Names and values one below the other are a table.
fn close(blocks: &mut Vec<Block>, named: &mut Vec<Vec<Cell>>, section: &Section) {
    if !named.is_empty() {
        let table = Table::new(&section.title, &["figure", "value"]);
        blocks.push(folded(table.with(std::mem::take(named), "")));
    }
}

fn folded(table: Table) -> Block {
    let count = table.rows.len();
    Block::Table { folded: if count > ROWS_OPEN { format!("{count} rows") } else { String::new() }, table }
}

/// A table, and folded what text leaves out of it.
fn tables(table: &section::Table, title: &str) -> Vec<Block> {
    let mut first = convert(table, title);
    let Some(rest) = &table.rest else {
        return vec![folded(first)];
    };
    let mut others = first.clone();
    others.rows = first.rows.split_off(rest.first.min(first.rows.len()));
    let others = Block::Table { folded: rest.what.clone(), table: others };
    if first.rows.is_empty() { vec![others] } else { vec![folded(first), others] }
}

fn sentence(part: &Part) -> Block {
    let (lead, text, weight) = match part {
        Part::Line(text) => ("", text.as_str(), Weight::Plain),
        Part::Sentence { lead, text, weight } => (lead.as_str(), text.as_str(), *weight),
        Part::Table(_) | Part::Pairs { .. } | Part::Named { .. } | Part::Drawing(_) | Part::Picture(_) => {
            ("", "", Weight::Plain)
        }
    };
    let lead = lead.trim().trim_start_matches('-');
    Block::Sentence {
        class: match weight {
            Weight::Plain => "",
            Weight::Warning => "warn",
            Weight::Bad => "bad",
        },
        lead: lead.split_whitespace().collect::<Vec<_>>().join(" "),
        text: text.trim().to_owned(),
    }
}

fn convert(table: &section::Table, title: &str) -> Table {
    let is_shown = |column: &section::Column| column.align != Align::Drawn;
    let rows = table.rows.iter().map(|row| match row {
        Row::Cells(cells) => {
            let aligned = cells.iter().zip(&table.columns);
            let aligned = aligned.filter(|(_, column)| is_shown(column));
            aligned.map(|(c, column)| cell(c, column.align)).collect()
        }
        Row::Between(part) => match sentence(part) {
            Block::Sentence { lead, text, .. } => {
                vec![Cell::words(format!("{lead} {text}").trim())]
            }
            Block::Pairs(_) | Block::Table { .. } | Block::Picture(_) => Vec::new(),
        },
    });
    let shown = table.columns.iter().filter(|column| is_shown(column));
    let titles: Vec<&str> = shown.map(|c| c.title.trim()).collect();
    Table { heads: table.heads.clone(), ..Table::new(title, &titles).with(rows.collect(), "nothing to list") }
}

fn cell(cell: &section::Cell, align: Align) -> Cell {
    Cell {
        text: cell.text.trim().trim_end_matches(':').to_owned(),
        reason: cell.reason.clone(),
        is_number: align == Align::Right,
        ..Cell::default()
    }
}
