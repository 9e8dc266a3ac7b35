//! The bytes of undo: transaction headers and undo records. Pure.
//!
//! `docs/design/native-engine.md` is this module in prose; both change together.

use super::block_format::{self, COLUMN_BYTES, HEADER_BYTES};

/// Bytes of a row's undo record beside the old image. 32 are used; published profiles
/// have 416 bytes of undo for 256 of old columns and 2,592 for 2,432.
pub(crate) const UNDO_RECORD_OVERHEAD: usize = 160;
/// Bytes before the old image.
pub(crate) const UNDO_HEAD_BYTES: usize = 40;

/// State of a transaction in its session's header block.
pub(crate) mod state {
    pub(crate) const ACTIVE: u64 = 1;
    pub(crate) const COMMITTED: u64 = 2;
    pub(crate) const ROLLED_BACK: u64 = 3;
}

/// Word of a header block that holds the transaction; the next holds its state.
pub(crate) const TRANSACTION_WORD: usize = HEADER_BYTES / 8;

/// Transaction and state in a session's header block.
pub(crate) fn transaction_state(block: &[u8]) -> (u64, u64) {
    (block_format::get(block, TRANSACTION_WORD), block_format::get(block, TRANSACTION_WORD + 1))
}

/// One undo record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UndoRecord<'a> {
    pub(crate) transaction: u64,
    pub(crate) page: u64,
    /// Position among the transaction's rows, from 0.
    pub(crate) number: u64,
    /// Changed columns; bit 0 is c2.
    pub(crate) mask: u64,
    pub(crate) old: &'a [u8],
}

/// Bytes of the record of an old image so long.
pub(crate) fn record_bytes(image: usize) -> usize {
    (image + UNDO_RECORD_OVERHEAD).next_multiple_of(8)
}

impl UndoRecord<'_> {
    /// The bytes before the old image: length u32, CRC u32, transaction, page, number, mask.
    pub(crate) fn head(&self) -> [u8; UNDO_HEAD_BYTES] {
        let mut head = [0; UNDO_HEAD_BYTES];
        head[..4].copy_from_slice(&(record_bytes(self.old.len()) as u32).to_le_bytes());
        for (i, field) in [self.transaction, self.page, self.number, self.mask].into_iter().enumerate() {
            head[8 + i * 8..][..8].copy_from_slice(&field.to_le_bytes());
        }
        let crc = crc(&head, self.old);
        head[4..8].copy_from_slice(&crc.to_le_bytes());
        head
    }
}

fn crc(head: &[u8; UNDO_HEAD_BYTES], old: &[u8]) -> u32 {
    let crc = crc32c::crc32c(&head[..4]);
    let crc = crc32c::crc32c_append(crc, &head[8..]);
    crc32c::crc32c_append(crc, old)
}

/// The records of an undo block, oldest first, up to the first that is not whole.
/// The second value says whether the rest of the block is empty, as it must be.
pub(crate) fn records(block: &[u8]) -> (Vec<UndoRecord<'_>>, bool) {
    let mut found = Vec::new();
    let mut at = HEADER_BYTES;
    while let Some((record, bytes)) = record_at(block, at) {
        found.push(record);
        at += bytes;
    }
    (found, block[at..].iter().all(|byte| *byte == 0))
}

fn record_at(block: &[u8], at: usize) -> Option<(UndoRecord<'_>, usize)> {
    let head: &[u8; UNDO_HEAD_BYTES] = block.get(at..at + UNDO_HEAD_BYTES)?.try_into().ok()?;
    let field = |i: usize| {
        let word = &head[8 + i * 8..16 + i * 8];
        u64::from_le_bytes(word.try_into().expect("the slice has 8 bytes"))
    };
    let mask = field(3);
    let image = mask.count_ones() as usize * COLUMN_BYTES;
    let bytes = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
    let old = block.get(at + UNDO_HEAD_BYTES..at + UNDO_HEAD_BYTES + image)?;
    let whole = mask != 0
        && bytes == record_bytes(image)
        && at + bytes <= block.len()
        && crc(head, old).to_le_bytes() == head[4..8];
    whole.then_some((UndoRecord { transaction: field(0), page: field(1), number: field(2), mask, old }, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(block: &mut [u8], at: usize, record: &UndoRecord<'_>) -> usize {
        block[at..at + UNDO_HEAD_BYTES].copy_from_slice(&record.head());
        block[at + UNDO_HEAD_BYTES..][..record.old.len()].copy_from_slice(record.old);
        at + record_bytes(record.old.len())
    }

    #[test]
    fn records_are_read_back_up_to_the_first_that_is_not_whole() {
        let old = [vec![1u8; 256], vec![2u8; 19 * 128]];
        let record = |i: usize| UndoRecord {
            transaction: 9,
            page: 100 + i as u64,
            number: i as u64,
            mask: if i == 0 { 0b11 } else { (1 << 19) - 1 },
            old: &old[i],
        };
        let mut block = vec![0; 8192];
        let second = put(&mut block, HEADER_BYTES, &record(0));
        put(&mut block, second, &record(1));
        let (found, empty) = records(&block);
        assert_eq!(found, [record(0), record(1)]);
        assert!(empty);
        block[second + UNDO_HEAD_BYTES + 5] ^= 1;
        let (found, empty) = records(&block);
        assert_eq!(found.len(), 1);
        assert!(!empty);
    }
}
