//! The content of a SLOB row's columns on any target: as loaded, and as an update writes them.
//!
//! Pure functions of the data set, the row and the stamp, shared by every target that stores rows.

use crate::engine::EngineError;
use assay_measure::prng::{GOLDEN_GAMMA, SplitMix64};

/// Columns c2 to c20 of a row.
pub const COLUMNS: usize = 19;

/// Bytes of each of them.
pub const COLUMN_BYTES: usize = 128;

/// What an unobfuscated column consists of.
pub const FILL: u8 = b'X';

/// Hexadecimal digits of the stamp that lead a changed column.
pub const STAMP_DIGITS: usize = 16;

/// New content of `columns` columns of the row of `key`: the stamp's digits, then the fill.
pub fn fill_columns(out: &mut Vec<u8>, columns: usize, stamp: u64, key: u64, obfuscate: bool) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.clear();
    out.resize(columns * COLUMN_BYTES, FILL);
    let mut random = stamp ^ key.wrapping_mul(GOLDEN_GAMMA);
    for column in out.chunks_exact_mut(COLUMN_BYTES) {
        for (i, digit) in column[..STAMP_DIGITS].iter_mut().enumerate() {
            *digit = DIGITS[(stamp >> (60 - 4 * i)) as usize & 15];
        }
        if obfuscate {
            for byte in &mut column[STAMP_DIGITS..] {
                // xorshift64: fresh bytes at a nanosecond each; quality does not matter, cost does.
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                *byte = b'A' + (random >> 32) as u8 % 26;
            }
        }
    }
}

/// Bytes of `len` that stay constant at COMPRESS_PCT.
pub fn compressible(len: usize, compress_pct: u32) -> usize {
    len * compress_pct as usize / 100
}

/// Maps a random byte to `0-9A-Z`. 256 is no multiple of 36: four of the
/// characters come up one time in eight more, which compression does not notice.
#[inline]
fn alphanumeric(byte: u8) -> u8 {
    let value = ((u16::from(byte) * 36) >> 8) as u8;
    value + if value < 10 { b'0' } else { b'A' - 10 }
}

/// The content of a row.
pub struct Random(SplitMix64);

impl Random {
    /// For row `row` of data set `data_set`; rows of different numbers have nothing in common.
    pub fn of_row(data_set: u64, row: u64) -> Self {
        Self(SplitMix64(data_set ^ row.wrapping_mul(0xd6e8_feb8_6659_fd93)))
    }

    /// Fills a column with random upper-case alphanumerics, all but its compressible share.
    pub fn fill_column(&mut self, column: &mut [u8], compress_pct: u32) {
        let fixed = compressible(column.len(), compress_pct);
        let (varied, fixed) = column.split_at_mut(column.len() - fixed);
        self.fill(varied);
        for byte in varied {
            *byte = alphanumeric(*byte);
        }
        fixed.fill(FILL);
    }

    /// Fills with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill(bytes);
    }
}

/// A number for a new data set that no other has.
///
/// # Errors
/// The system gives no random bytes.
pub fn drawn_id() -> Result<u64, EngineError> {
    let mut bytes = [0; 8];
    // So few come whole. The call needs no /dev, which an empty root does not have.
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| EngineError::Io { what: "random bytes of the system".to_owned(), source: error.into() })?;
    Ok(u64::from_le_bytes(bytes))
}
