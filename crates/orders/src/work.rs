//! Divides a load into pieces of consecutive units, each loaded entirely or not at all, with the biggest tables first.

use crate::generate::Generator;
use crate::lines::Lines;
use crate::model::{TABLES, Table};
use std::ops::Range;

/// Approximate number of rows per piece.
const PIECE_ROWS: u64 = 100_000;

/// A piece of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its table.
    pub table: Table,
    /// Its units, from 1.
    pub units: Range<u64>,
    /// Exact number of rows.
    pub rows: u64,
}

/// All pieces of a data set.
#[must_use]
pub fn pieces(generator: &Generator) -> Vec<Piece> {
    let mut tables: Vec<(u64, Table)> = TABLES.map(|table| (generator.rows(table), table)).to_vec();
    tables.sort_by_key(|(rows, _)| std::cmp::Reverse(*rows));
    let mut all = Vec::new();
    for (rows, table) in tables {
        let units = generator.counts().units(table);
        let step = (units * PIECE_ROWS / rows.max(1)).max(1);
        let mut first = 1;
        while first <= units {
            let end = (first + step).min(units + 1);
            all.push(Piece { table, units: first..end, rows: generator.rows_of(table, first..end) });
            first = end;
        }
    }
    all
}

/// Bytes passed to `send` at a time.
const SEND_BYTES: usize = 128 * 1024;

impl Piece {
    /// Generates its rows and passes them to `send` in batches.
    ///
    /// # Errors
    /// As `send`.
    pub fn write<E>(
        &self,
        generator: &Generator,
        lines: &mut Lines,
        mut send: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        for unit in self.units.clone() {
            generator.write(self.table, unit, lines);
            if lines.bytes().len() >= SEND_BYTES {
                send(lines.bytes())?;
                lines.clear();
            }
        }
        send(lines.bytes())?;
        lines.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_whole_data_set_once_and_the_biggest_table_comes_first() {
        let generator = Generator::new(1, 400, false);
        let pieces = pieces(&generator);
        assert_eq!(pieces[0].table, Table::OrderItems);
        for table in TABLES {
            let of = || pieces.iter().filter(|piece| piece.table == table);
            assert_eq!(of().map(|piece| piece.rows).sum::<u64>(), generator.rows(table));
            let mut next = 1;
            for piece in of() {
                assert_eq!(piece.units.start, next);
                next = piece.units.end;
            }
            assert_eq!(next, generator.counts().units(table) + 1);
        }
        let written = |piece: &Piece| {
            let (mut lines, mut bytes) = (Lines::new("", ""), 0);
            let sent = piece.write(&generator, &mut lines, |part| {
                bytes += part.len();
                Ok::<(), ()>(())
            });
            assert!(sent.is_ok() && bytes > 0);
            lines.rows()
        };
        for piece in [&pieces[0], &pieces[pieces.len() - 1]] {
            assert_eq!(written(piece), piece.rows);
        }
    }
}
