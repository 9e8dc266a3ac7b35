//! The bytes of the redo log: file headers, log blocks, records. Pure.
//!
//! `docs/design/native-engine.md` is this module in prose; both change together.
//! The engine writes with it, recovery reads with it.

use super::block_format::{COLUMN_BYTES, crc_append};

/// Bytes of a log block's header.
pub(crate) const LOG_HEADER_BYTES: usize = 16;
/// Redo addresses start above 0, so that 0 can mean "none".
pub(crate) const FIRST_LSN: u64 = 4096;
/// Marks a log file's header block.
const FILE_MAGIC: &[u8; 8] = b"ASYREDO1";
/// Flag of the first block of a flush; the bits above count blocks before it, see [`LogBlock::unproven`].
const FLAG_FIRST: u16 = 1;

/// Bytes of a row's redo record beside both images. The fields need 64; the rest exists
/// only so that redo volume matches published profiles (docs/design/native-engine.md).
pub(crate) const ROW_RECORD_OVERHEAD: usize = 268;
/// Likewise of each changed column: its number and length, in the old image and in the new.
const COLUMN_RECORD_OVERHEAD: usize = 6;
/// Likewise of the records that begin and end a transaction.
pub(crate) const BEGIN_RECORD_BYTES: usize = 792;
/// See [`BEGIN_RECORD_BYTES`].
pub(crate) const COMMIT_RECORD_BYTES: usize = 800;
/// The record of a newly formatted undo block.
pub(crate) const UNDO_BLOCK_RECORD_BYTES: usize = 64;
/// No record is longer: a row of all columns.
const MOST_RECORD_BYTES: usize = (2 * COLUMN_BYTES + COLUMN_RECORD_OVERHEAD) * 32 + ROW_RECORD_OVERHEAD;

/// Record types, the byte after the length.
pub(crate) mod kind {
    pub(crate) const BEGIN: u8 = 1;
    pub(crate) const ROW: u8 = 2;
    pub(crate) const UNDO_BLOCK: u8 = 3;
    pub(crate) const COMMIT: u8 = 4;
}

/// Begins the CRC of every block of one incarnation of a log file, so that
/// blocks of an earlier incarnation, or of another data set, do not verify.
pub(crate) fn block_seed(data_set: u64, sequence: u64) -> u32 {
    let mut seed = [0; 16];
    seed[..8].copy_from_slice(&data_set.to_le_bytes());
    seed[8..].copy_from_slice(&sequence.to_le_bytes());
    crc32c::crc32c(&seed)
}

/// What a log block's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogBlock {
    /// LSN of its first payload byte.
    pub(crate) lsn: u64,
    /// Payload bytes.
    pub(crate) payload: u16,
    /// It begins a flush.
    pub(crate) first: bool,
    /// If it does: blocks directly before it, in the same file, that were written but not yet durable when the
    /// flush was prepared. Everything before them was durable. At most 32,767.
    pub(crate) unproven: u16,
}

/// Completes a block whose payload is in place.
pub(crate) fn seal_block(block: &mut [u8], what: LogBlock, seed: u32) {
    let flags = if what.first { FLAG_FIRST | what.unproven << 1 } else { 0 };
    block[4..6].copy_from_slice(&what.payload.to_le_bytes());
    block[6..8].copy_from_slice(&flags.to_le_bytes());
    block[8..16].copy_from_slice(&what.lsn.to_le_bytes());
    let crc = crc_append(seed, &block[4..]);
    block[..4].copy_from_slice(&crc.to_le_bytes());
}

/// The header of a block that verifies; `None` for any other bytes.
pub(crate) fn open_block(block: &[u8], seed: u32) -> Option<LogBlock> {
    let crc = crc_append(seed, &block[4..]);
    if crc.to_le_bytes() != block[..4] {
        return None;
    }
    let payload = u16::from_le_bytes([block[4], block[5]]);
    let flags = u16::from_le_bytes([block[6], block[7]]);
    let fits = payload > 0 && payload.is_multiple_of(8) && usize::from(payload) <= block.len() - LOG_HEADER_BYTES;
    fits.then(|| LogBlock { lsn: read(block, 8), payload, first: flags & FLAG_FIRST != 0, unproven: flags >> 1 })
}

/// A log file's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    /// Which incarnation, from 1.
    pub(crate) sequence: u64,
    /// First LSN it holds.
    pub(crate) first_lsn: u64,
}

/// The header block of a log file.
pub(crate) fn file_header(data_set: u64, header: FileHeader, block_bytes: usize) -> Vec<u8> {
    let mut block = vec![0; block_bytes];
    block[..8].copy_from_slice(FILE_MAGIC);
    block[8..16].copy_from_slice(&data_set.to_le_bytes());
    block[16..24].copy_from_slice(&header.sequence.to_le_bytes());
    block[24..32].copy_from_slice(&header.first_lsn.to_le_bytes());
    block[32..36].copy_from_slice(&(block_bytes as u32).to_le_bytes());
    let at = block_bytes - 4;
    let crc = crc32c::crc32c(&block[..at]);
    block[at..].copy_from_slice(&crc.to_le_bytes());
    block
}

/// Reads a log file's header block; `None` if it is not one of this data set.
pub(crate) fn open_file_header(data_set: u64, block: &[u8]) -> Option<FileHeader> {
    let at = block.len() - 4;
    let ours = &block[..8] == FILE_MAGIC
        && read(block, 8) == data_set
        && block[32..36] == (block.len() as u32).to_le_bytes()
        && block[at..] == crc32c::crc32c(&block[..at]).to_le_bytes();
    ours.then(|| FileHeader { sequence: read(block, 16), first_lsn: read(block, 24) })
}

fn read(bytes: &[u8], at: usize) -> u64 {
    let word = &bytes[at..at + 8];
    u64::from_le_bytes(word.try_into().expect("the slice has 8 bytes"))
}

/// One change, as the log has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    /// A transaction of a session (numbered from 1) began.
    Begin { transaction: u64, session: u64 },
    /// It changed a row.
    Row(RowRecord<'a>),
    /// It formatted a block for its undo.
    UndoBlock { transaction: u64, page: u64, session: u64 },
    /// It committed.
    Commit { transaction: u64, session: u64 },
}

/// The change of a row: everything that redo, undo and rollback need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowRecord<'a> {
    pub(crate) transaction: u64,
    pub(crate) page: u64,
    /// Where the old image stands in undo.
    pub(crate) undo_page: u64,
    pub(crate) undo_offset: u64,
    /// Change number of the block afterwards.
    pub(crate) change: u64,
    /// Changed columns; bit 0 is c2.
    pub(crate) mask: u64,
    /// Position among the transaction's rows, from 0.
    pub(crate) number: u64,
    pub(crate) old: &'a [u8],
    pub(crate) new: &'a [u8],
}

/// Fields of a row record.
const ROW_FIELDS: usize = 7;

impl Record<'_> {
    /// Appends the record: length u32, type u8, three zero bytes, the fields, the images, zeroes.
    pub(crate) fn push(&self, log: &mut Vec<u8>) {
        match *self {
            Self::Begin { transaction, session } => push(log, kind::BEGIN, BEGIN_RECORD_BYTES, &[transaction, session]),
            Self::Commit { transaction, session } => {
                push(log, kind::COMMIT, COMMIT_RECORD_BYTES, &[transaction, session])
            }
            Self::UndoBlock { transaction, page, session } => {
                push(log, kind::UNDO_BLOCK, UNDO_BLOCK_RECORD_BYTES, &[transaction, page, session])
            }
            Self::Row(row) => {
                let at = log.len();
                let fields =
                    [row.transaction, row.page, row.undo_page, row.undo_offset, row.change, row.mask, row.number];
                let columns = row.old.len() / COLUMN_BYTES;
                let images = row.old.len() + row.new.len();
                let bytes = ROW_RECORD_OVERHEAD + columns * COLUMN_RECORD_OVERHEAD + images;
                push(log, kind::ROW, bytes, &fields);
                let old = at + 8 + ROW_FIELDS * 8;
                let new = old + row.old.len();
                log[old..new].copy_from_slice(row.old);
                log[new..new + row.new.len()].copy_from_slice(row.new);
            }
        }
    }
}

fn push(log: &mut Vec<u8>, kind: u8, bytes: usize, fields: &[u64]) {
    let at = log.len();
    let bytes = bytes.next_multiple_of(8);
    log.resize(at + bytes, 0);
    log[at..at + 4].copy_from_slice(&(bytes as u32).to_le_bytes());
    log[at + 4] = kind;
    for (i, field) in fields.iter().enumerate() {
        log[at + 8 + i * 8..][..8].copy_from_slice(&field.to_le_bytes());
    }
}

/// What stands at the beginning of `log`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parsed<'a> {
    /// A record and its length in bytes.
    Record(Record<'a>, usize),
    /// The bytes end inside it.
    Cut,
    /// No record: the log block verified, so only a bug writes this.
    Nonsense,
}

/// Reads the record at the beginning of `log`.
pub(crate) fn parse(log: &[u8]) -> Parsed<'_> {
    if log.len() < 8 {
        return Parsed::Cut;
    }
    let bytes = u32::from_le_bytes([log[0], log[1], log[2], log[3]]) as usize;
    if !(24..=MOST_RECORD_BYTES).contains(&bytes) || !bytes.is_multiple_of(8) {
        return Parsed::Nonsense;
    }
    if log.len() < bytes {
        return Parsed::Cut;
    }
    let body = &log[8..bytes];
    let field = |i: usize| read(body, i * 8);
    let record = match log[4] {
        kind::BEGIN => Record::Begin { transaction: field(0), session: field(1) },
        kind::COMMIT => Record::Commit { transaction: field(0), session: field(1) },
        kind::UNDO_BLOCK if bytes >= 32 => {
            Record::UndoBlock { transaction: field(0), page: field(1), session: field(2) }
        }
        kind::ROW if body.len() >= ROW_FIELDS * 8 => match parse_row(body) {
            Some(row) => Record::Row(row),
            None => return Parsed::Nonsense,
        },
        _ => return Parsed::Nonsense,
    };
    Parsed::Record(record, bytes)
}

fn parse_row(body: &[u8]) -> Option<RowRecord<'_>> {
    let field = |i: usize| read(body, i * 8);
    let mask = field(5);
    let image = mask.count_ones() as usize * COLUMN_BYTES;
    let images = body[ROW_FIELDS * 8..].get(..2 * image)?;
    let (old, new) = images.split_at(image);
    Some(RowRecord {
        transaction: field(0),
        page: field(1),
        undo_page: field(2),
        undo_offset: field(3),
        change: field(4),
        mask,
        number: field(6),
        old,
        new,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(columns: u32, number: u64) -> (Vec<u8>, Vec<u8>, u64) {
        let mask = (1u64 << columns) - 1;
        let image = columns as usize * COLUMN_BYTES;
        (vec![number as u8; image], vec![!(number as u8); image], mask)
    }

    #[test]
    fn what_is_pushed_is_parsed() {
        let (old, new, mask) = row(19, 3);
        let records = [
            Record::Begin { transaction: 7, session: 2 },
            Record::UndoBlock { transaction: 7, page: 1 << 39, session: 2 },
            Record::Row(RowRecord {
                transaction: 7,
                page: 11,
                undo_page: 1 << 39,
                undo_offset: 64,
                change: 5,
                mask,
                number: 0,
                old: &old,
                new: &new,
            }),
            Record::Commit { transaction: 7, session: 2 },
        ];
        let mut log = Vec::new();
        for record in &records {
            record.push(&mut log);
        }
        let mut at = 0;
        for record in &records {
            let Parsed::Record(parsed, bytes) = parse(&log[at..]) else {
                panic!("{:?}", parse(&log[at..]));
            };
            assert_eq!(parsed, *record);
            assert!(matches!(parse(&log[at..at + bytes - 1]), Parsed::Cut));
            at += bytes;
        }
        assert_eq!(at, log.len());
    }

    #[test]
    fn a_block_of_another_incarnation_does_not_verify() {
        let mut block = vec![9; 512];
        let what = LogBlock { lsn: 4096, payload: 488, first: true, unproven: 9 };
        seal_block(&mut block, what, block_seed(1, 5));
        assert_eq!(open_block(&block, block_seed(1, 5)), Some(what));
        assert_eq!(open_block(&block, block_seed(1, 6)), None);
        assert_eq!(open_block(&block, block_seed(2, 5)), None);
    }

    #[test]
    fn a_file_header_is_read_back_and_nothing_else_is_one() {
        let header = FileHeader { sequence: 3, first_lsn: 99_992 };
        let block = file_header(77, header, 512);
        assert_eq!(open_file_header(77, &block), Some(header));
        assert_eq!(open_file_header(78, &block), None);
        assert_eq!(open_file_header(77, &vec![0; 512]), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..9000)) {
            let _ = parse(&bytes);
            if bytes.len() >= 512 {
                prop_assert_eq!(open_block(&bytes[..512], 1), None);
                prop_assert_eq!(open_file_header(1, &bytes[..512]), None);
            }
        }

        #[test]
        fn a_changed_bit_is_noticed(at in 0usize..512, bit in 0u8..8) {
            let mut block = vec![9; 512];
            let what = LogBlock { lsn: 8, payload: 8, first: false, unproven: 0 };
            seal_block(&mut block, what, 3);
            block[at] ^= 1 << bit;
            prop_assert_eq!(open_block(&block, 3), None);
        }
    }
}
