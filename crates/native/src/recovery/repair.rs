//! Whether a torn block has been repaired.
//!
//! A write torn by a power cut mixes sectors of versions of one block. They differ only in the changes since the
//! checkpoint, and redo carries the whole new content of every column changed since, so replaying all of it repairs a
//! torn block, but not a block whose medium lost bits. The legal content of a block distinguishes the two: a column is
//! as loaded, or it is what one update (a stamp and a key) writes, and the columns that every update changes together
//! carry the same stamp.

use crate::block_format::{self, COLUMN_BYTES, COLUMNS, Kind, column_range, row_range, word};
use crate::bulk::Piece;
use crate::content::Content;
use crate::control::Control;
use crate::layout::Page;
use crate::undo_format;
use assay_run::dataset::rows::{STAMP_DIGITS, fill_columns};

/// Makes and compares the content that blocks may have.
pub(super) struct Plausible {
    content: Content,
    fresh: Vec<u8>,
}

/// The stamp that leads a column.
fn stamp_of(column: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(&column[..STAMP_DIGITS]).ok()?;
    if !digits.bytes().all(|b| b.is_ascii_digit() || (b'A'..=b'F').contains(&b)) {
        return None;
    }
    u64::from_str_radix(digits, 16).ok()
}

impl Plausible {
    pub(super) fn new(control: &Control) -> Self {
        let content = Content::new(control, 1..=control.geometry.schemas);
        let mut fresh = vec![0; control.geometry.block_bytes as usize];
        content.dress_rows(&mut fresh);
        Self { content, fresh }
    }

    /// Why a data block cannot be what updates made of it; `None` if it can.
    pub(super) fn data(&mut self, page: Page, block: &[u8]) -> Option<String> {
        let piece = Piece { file: 0, offset: 0, bytes: self.fresh.len(), first: Some(page) };
        self.content.fill_rows(&piece, &mut self.fresh, Kind::Data);
        let same_header = [word::MAGIC, word::PAGE, word::SCHEMA, word::KEY, word::DATA_SET]
            .iter()
            .all(|w| block_format::get(block, *w) == block_format::get(&self.fresh, *w));
        if !same_header {
            return Some("its header is damaged".to_owned());
        }
        let tail = row_range().end..;
        if block[tail.clone()] != self.fresh[tail] {
            return Some("bytes behind the row are damaged".to_owned());
        }
        let key = block_format::get(block, word::KEY);
        // c2 and c20 change with every update, the others only with a heavy one.
        let outer = self.together(block, &[2, 20], key);
        let inner: Vec<usize> = (3..20).collect();
        match (outer, self.together(block, &inner, key)) {
            (Ok(()), Ok(())) => None,
            (Err(column), _) | (_, Err(column)) => {
                Some(format!("column c{column} is neither as loaded nor as an update writes it"))
            }
        }
    }

    /// Whether columns that change together are all fresh or all of one stamp; else the first that is not.
    fn together(&self, block: &[u8], columns: &[usize], key: u64) -> Result<(), usize> {
        if columns.iter().all(|c| block[column_range(*c)] == self.fresh[column_range(*c)]) {
            return Ok(());
        }
        let stamp = stamp_of(&block[column_range(columns[0])]).ok_or(columns[0])?;
        let mut made = Vec::new();
        let mut first_bad = columns[0];
        for (obfuscate, light) in [(false, false), (true, false), (true, true)] {
            fill_columns(&mut made, COLUMNS, stamp, key, obfuscate);
            let bad = columns.iter().find(|c| {
                // A light update makes two columns, so c20 is the second one made.
                let nth = if light && **c == 20 { 1 } else { **c - 2 };
                block[column_range(**c)] != made[nth * COLUMN_BYTES..(nth + 1) * COLUMN_BYTES]
            });
            match bad {
                None => return Ok(()),
                Some(column) => first_bad = first_bad.max(*column),
            }
        }
        Err(first_bad)
    }

    /// Why an undo block cannot be whole; `None` if it can.
    pub(super) fn undo(&self, block: &[u8]) -> Option<String> {
        let (_, rest_is_empty) = undo_format::records(block);
        (!rest_is_empty).then(|| "an undo record is damaged".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::tests::sample_control;

    fn loaded(control: &Control, page: Page) -> Vec<u8> {
        let content = Content::new(control, 1..=control.geometry.schemas);
        let mut block = vec![0; control.geometry.block_bytes as usize];
        content.dress_rows(&mut block);
        let piece = Piece { file: 0, offset: 0, bytes: block.len(), first: Some(page) };
        content.fill_rows(&piece, &mut block, Kind::Data);
        block
    }

    fn update(block: &mut [u8], columns: &[usize], stamp: u64, obfuscate: bool) {
        let key = block_format::get(block, word::KEY);
        let mut made = Vec::new();
        fill_columns(&mut made, columns.len(), stamp, key, obfuscate);
        for (column, data) in columns.iter().zip(made.chunks_exact(COLUMN_BYTES)) {
            block[column_range(*column)].copy_from_slice(data);
        }
    }

    #[test]
    fn every_history_of_updates_is_plausible_and_a_changed_byte_is_not() {
        let all: Vec<usize> = (2..=20).collect();
        for obfuscated_load in [false, true] {
            let mut control = sample_control();
            control.obfuscate = obfuscated_load;
            let mut plausible = Plausible::new(&control);
            for obfuscate in [false, true] {
                let mut block = loaded(&control, Page(7));
                assert_eq!(plausible.data(Page(7), &block), None);
                update(&mut block, &[2, 20], 0x1234_5678_9abc_def0, obfuscate);
                assert_eq!(plausible.data(Page(7), &block), None);
                update(&mut block, &all, 99, obfuscate);
                assert_eq!(plausible.data(Page(7), &block), None);
                update(&mut block, &[2, 20], 100, obfuscate);
                assert_eq!(plausible.data(Page(7), &block), None);
                for at in [8, 70, 64 + 100, 64 + 5 * 128 + 3, 64 + 18 * 128 + 127, 8000] {
                    let mut rotten = block.clone();
                    rotten[at] ^= 4;
                    assert!(plausible.data(Page(7), &rotten).is_some(), "byte {at}");
                }
                // Half of an update: c2 of one, c20 of another.
                let mut torn = block.clone();
                update(&mut torn, &[2], 101, obfuscate);
                assert!(plausible.data(Page(7), &torn).is_some());
            }
        }
    }
}
