//! Rows in COPY's binary format, built in place in a buffer that is sent as it is.
//!
//! Batches of constant rows differ only in their keys, so the client writes eight bytes per row and never touches the
//! payload again. A load waits only for the server.

use crate::postgres::wire::FRAME_BYTES;
use assay_run::dataset::rows::{COLUMN_BYTES, COLUMNS, FILL, Random};

/// The format's signature, without flags or extension.
pub(super) const HEAD: &[u8; 19] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// The trailer after the rows.
pub(super) const TAIL: [u8; 2] = (-1_i16).to_be_bytes();

/// Bytes of a row: the number of fields, then a length and a value for each.
pub(super) const ROW_BYTES: usize = 2 + 4 + KEY_BYTES + COLUMNS * (4 + COLUMN_BYTES);

const KEY_BYTES: usize = 8;
/// Offset of a row's key.
const KEY_AT: usize = 2 + 4;

/// Rows in a batch: about 64 KiB, so that they stay in the CPU cache between client and server.
pub(super) const ROWS: usize = 26;

/// Content of the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fill {
    /// The same letter everywhere.
    Constant,
    /// Random text, different in each row.
    Random {
        /// The data set's number.
        data_set: u64,
        /// Percent of each column that stays constant.
        compress_pct: u32,
    },
}

/// A message of up to [`ROWS`] rows.
pub(super) struct Batch {
    bytes: Vec<u8>,
    fill: Fill,
}

impl Batch {
    pub(super) fn new(fill: Fill) -> Self {
        let mut row = Vec::with_capacity(ROW_BYTES);
        row.extend_from_slice(&(1 + COLUMNS as i16).to_be_bytes());
        row.extend_from_slice(&(KEY_BYTES as i32).to_be_bytes());
        row.extend_from_slice(&[0; KEY_BYTES]);
        for _ in 0..COLUMNS {
            row.extend_from_slice(&(COLUMN_BYTES as i32).to_be_bytes());
            row.extend_from_slice(&[FILL; COLUMN_BYTES]);
        }
        let mut bytes = vec![0; FRAME_BYTES];
        for _ in 0..ROWS {
            bytes.extend_from_slice(&row);
        }
        Self { bytes, fill }
    }

    /// Builds the rows of these keys, at most [`ROWS`]. `first_row` is the number of the first row within the data set,
    /// so that no two rows are alike. Returns the message, with room for its header.
    pub(super) fn rows(&mut self, first_row: u64, keys: impl ExactSizeIterator<Item = u64>) -> &mut [u8] {
        debug_assert!(keys.len() <= ROWS, "a batch has room for {ROWS} rows");
        let end = FRAME_BYTES + keys.len() * ROW_BYTES;
        let rows = self.bytes[FRAME_BYTES..end].chunks_exact_mut(ROW_BYTES);
        for ((row, key), number) in rows.zip(keys).zip(first_row..) {
            row[KEY_AT..KEY_AT + KEY_BYTES].copy_from_slice(&key.to_be_bytes());
            if let Fill::Random { data_set, compress_pct } = self.fill {
                let mut random = Random::of_row(data_set, number);
                for column in row[KEY_AT + KEY_BYTES..].chunks_exact_mut(4 + COLUMN_BYTES) {
                    random.fill_column(&mut column[4..], compress_pct);
                }
            }
        }
        &mut self.bytes[..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn payload(row: &[u8]) -> Vec<u8> {
        row[KEY_AT + KEY_BYTES..].to_vec()
    }

    #[test]
    fn a_batch_is_made_in_place_and_again() {
        let mut batch = Batch::new(Fill::Constant);
        assert_eq!(batch.rows(0, [7, 8, 9].into_iter()).len(), FRAME_BYTES + 3 * ROW_BYTES);
        let bytes = batch.rows(3, [0x0102_0304_0506_0708].into_iter());
        assert_eq!(bytes.len(), FRAME_BYTES + ROW_BYTES);
        let row = &bytes[FRAME_BYTES..];
        assert_eq!(row[..2], [0, 20]);
        assert_eq!(row[2..14], [0, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(row[14..18], [0, 0, 0, 128]);
        assert!(row[18..18 + 128].iter().all(|byte| *byte == b'X'));
        assert_eq!(row.len(), ROW_BYTES);
    }

    #[test]
    fn slob_43_obfuscated_rows_are_never_the_same_and_constant_ones_always() {
        let payloads = |fill| -> BTreeSet<Vec<u8>> {
            let mut batch = Batch::new(fill);
            let mut all = BTreeSet::new();
            for begin in [0, ROWS as u64, 1 << 40] {
                let bytes = batch.rows(begin, (1..).take(ROWS).collect::<Vec<u64>>().into_iter());
                all.extend(bytes[FRAME_BYTES..].chunks(ROW_BYTES).map(payload));
            }
            all
        };
        let random = |compress_pct| Fill::Random { data_set: 5, compress_pct };
        assert_eq!(payloads(Fill::Constant).len(), 1);
        assert_eq!(payloads(random(0)).len(), 3 * ROWS);
        assert_eq!(payloads(random(90)).len(), 3 * ROWS);
    }
}
