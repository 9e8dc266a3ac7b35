//! Sixteen bytes in every sector that identify a file of ours.
//!
//! The first word differs from write to write. The second is a checksum of the first, of the sector's offset and of the
//! file's number: `second = scramble(file ^ first) + offset * GOLDEN_GAMMA`. Without the file's number, a matching pair
//! takes 2^64 tries on average, and a sector written elsewhere proves nothing. The pair occupies one of the 32 places
//! of a sector, which changes from write to write, so that the same stores scramble the sector and prove it.

use assay_measure::prng::{GOLDEN_GAMMA, scramble};

/// Unit in bytes that is scrambled in one piece and proves itself: the smallest unit that storage deduplicates.
pub(crate) const SECTOR_BYTES: usize = 512;
/// Bytes of a proof.
const BYTES: usize = 16;
/// Number of possible places in a sector.
const PLACES: u64 = (SECTOR_BYTES / BYTES) as u64;

/// Writes the proof of the file numbered `file` into each whole sector of `buffer`, which will be written at `offset`.
/// `write` is the number of the write.
#[inline]
pub(crate) fn stamp(file: u64, buffer: &mut [u8], offset: u64, write: u64) {
    let first = write.wrapping_mul(GOLDEN_GAMMA);
    let base = scramble(file ^ first);
    for (sector, at) in buffer.chunks_exact_mut(SECTOR_BYTES).zip(0_u64..) {
        // The place changes, so that no word of a sector keeps its value for long.
        let place = ((write + at) % PLACES) as usize * BYTES;
        let here = offset.wrapping_add(at * SECTOR_BYTES as u64);
        sector[place..place + 8].copy_from_slice(&first.to_le_bytes());
        sector[place + 8..place + BYTES].copy_from_slice(&second(base, here).to_le_bytes());
    }
}

/// Whether a sector at `offset` carries a proof of the file numbered `file`.
pub(crate) fn proves(file: u64, sector: &[u8], offset: u64) -> bool {
    let word = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).unwrap_or(0);
    sector.chunks_exact(BYTES).any(|pair| {
        let first = word(&pair[..8]);
        second(scramble(file ^ first), offset) == word(&pair[8..])
    })
}

#[inline]
fn second(base: u64, offset: u64) -> u64 {
    base.wrapping_add(offset.wrapping_mul(GOLDEN_GAMMA))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_sector_proves_its_file_and_its_place_and_no_other(file in any::<u64>(), other in any::<u64>(), offset in 0_u64..1 << 50, write in any::<u32>(), content in any::<u8>()) {
            prop_assume!(file != other);
            let mut buffer = [content; 4 * SECTOR_BYTES + 100];
            stamp(file, &mut buffer, offset, u64::from(write));
            for (sector, at) in buffer.chunks_exact(SECTOR_BYTES).zip(0_u64..) {
                let here = offset + at * SECTOR_BYTES as u64;
                prop_assert!(proves(file, sector, here));
                prop_assert!(!proves(other, sector, here));
                prop_assert!(!proves(file, sector, here + SECTOR_BYTES as u64));
            }
            prop_assert!(buffer[4 * SECTOR_BYTES..].iter().all(|byte| *byte == content));
        }

        #[test]
        fn what_somebody_else_wrote_proves_nothing(file in any::<u64>(), sector in prop::collection::vec(any::<u8>(), SECTOR_BYTES), offset in any::<u64>()) {
            prop_assert!(!proves(file, &sector, offset));
        }
    }
}
