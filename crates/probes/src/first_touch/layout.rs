//! The blocks of what is read, side by side, and the regions and slots that they are drawn from.
//!
//! Blocks of all extents are numbered through. Regions are equal parts of them. A region is made of slots, and one slot is touched
//! once: what a device fetches with one block must not be taken for a warm neighbour of the next.

use assay_measure::prng::Stream;
use std::ops::Range;

/// Bytes of one read.
pub(super) const BLOCK_BYTES: u64 = 8192;
/// The block that is read beside another lies within so many.
const NEAR: u64 = 8;
/// Regions and slots, at most; bytes of a slot, at most: more than volumes fetch at once.
const REGIONS: u64 = 64;
const SLOTS: u64 = 256;
pub(super) const SLOT_BYTES: u64 = 4 << 20;
/// Slots of a region, at least.
const SLOTS_OF_REGION: u64 = 8;
/// Least that can be judged.
pub(super) const LEAST_BYTES: u64 = SLOTS * NEAR * BLOCK_BYTES / 4;
/// One read while the cold part is read.
pub(super) const PIECE_BYTES: u64 = 1 << 20;

/// Data that lies in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) file: u16,
    /// Where it begins in its file.
    pub(super) at: u64,
    pub(super) blocks: u64,
}

/// Something to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) file: u16,
    pub(super) at: u64,
    pub(super) bytes: u32,
}

/// What is read.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    extents: Vec<Extent>,
    /// Number of each extent's first block.
    begins: Vec<u64>,
    blocks: u64,
    slot_blocks: u64,
    regions: u64,
}

impl Layout {
    pub(super) fn of(extents: Vec<Extent>) -> Self {
        let mut blocks = 0;
        let begins = extents.iter().map(|extent| {
            blocks += extent.blocks;
            blocks - extent.blocks
        });
        let begins: Vec<u64> = begins.collect();
        let slot_blocks = (blocks / SLOTS).clamp(NEAR, SLOT_BYTES / BLOCK_BYTES);
        let regions = (blocks / slot_blocks / SLOTS_OF_REGION).clamp(1, REGIONS);
        Self { extents, begins, blocks, slot_blocks, regions }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.blocks * BLOCK_BYTES
    }

    pub(super) fn regions(&self) -> usize {
        self.regions as usize
    }

    /// Blocks of a region.
    fn blocks_of(&self, region: usize) -> Range<u64> {
        let edge = |region: u64| (u128::from(self.blocks) * u128::from(region) / u128::from(self.regions)) as u64;
        edge(region as u64)..edge(region as u64 + 1)
    }

    pub(super) fn region_bytes(&self, region: usize) -> u64 {
        let blocks = self.blocks_of(region);
        (blocks.end - blocks.start) * BLOCK_BYTES
    }

    /// Slots of every region.
    pub(super) fn slots_of_region(&self) -> u64 {
        self.blocks / self.regions / self.slot_blocks
    }

    pub(super) fn slots(&self) -> u64 {
        self.slots_of_region() * self.regions
    }

    /// A block of a slot by chance, and one near it that lies before it where there is one: no device reads backwards in advance.
    pub(super) fn pair(&self, region: usize, slot: u64, chance: &mut Stream) -> (Spot, Option<Spot>) {
        let near = self.slot_blocks / NEAR;
        let first = self.blocks_of(region).start + slot * self.slot_blocks + chance.below(near) * NEAR;
        let touched = first + 1 + chance.below(NEAR - 1);
        let beside = self.extent_of(first) == self.extent_of(touched);
        let spot = |block| self.spot(block, BLOCK_BYTES);
        (spot(touched), beside.then(|| spot(first)))
    }

    /// Pieces of these regions, in order.
    pub(super) fn pieces<'a>(&'a self, regions: &'a [usize]) -> impl Iterator<Item = Spot> + 'a {
        regions.iter().flat_map(move |region| {
            let blocks = self.blocks_of(*region);
            let mut at = blocks.start;
            std::iter::from_fn(move || {
                let piece =
                    (at < blocks.end).then(|| self.spot(at, PIECE_BYTES.min((blocks.end - at) * BLOCK_BYTES)))?;
                at += u64::from(piece.bytes) / BLOCK_BYTES;
                Some(piece)
            })
        })
    }

    /// A piece of one of these regions.
    pub(super) fn piece_by_chance(&self, regions: &[usize], chance: &mut Stream) -> Option<Spot> {
        let region = *regions.get(chance.below(regions.len().max(1) as u64) as usize)?;
        let blocks = self.blocks_of(region);
        let pieces = (blocks.end - blocks.start).div_ceil(PIECE_BYTES / BLOCK_BYTES);
        let at = blocks.start + chance.below(pieces) * (PIECE_BYTES / BLOCK_BYTES);
        Some(self.spot(at, PIECE_BYTES.min((blocks.end - at) * BLOCK_BYTES)))
    }

    fn extent_of(&self, block: u64) -> usize {
        self.begins.partition_point(|begin| *begin <= block) - 1
    }

    /// Where a block lies, with as many bytes of its extent as there are, at most these.
    fn spot(&self, block: u64, bytes: u64) -> Spot {
        let at = self.extent_of(block);
        let (extent, inside) = (self.extents[at], block - self.begins[at]);
        let bytes = bytes.min((extent.blocks - inside) * BLOCK_BYTES);
        Spot { file: extent.file, at: extent.at + inside * BLOCK_BYTES, bytes: bytes as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measure::prng::Purpose;

    #[test]
    fn pieces_read_every_block_of_the_regions_once_and_no_block_outside_of_an_extent() {
        let extents = vec![
            Extent { file: 0, at: 0, blocks: 700 },
            Extent { file: 1, at: 8 << 20, blocks: 1 },
            Extent { file: 1, at: 16 << 20, blocks: 2000 },
        ];
        let layout = Layout::of(extents.clone());
        let all: Vec<usize> = (0..layout.regions()).collect();
        let mut read = vec![0_u64; 3];
        for piece in layout.pieces(&all) {
            let (at, end) = (piece.at, piece.at + u64::from(piece.bytes));
            let inside = |extent: &Extent| {
                extent.file == piece.file && extent.at <= at && end <= extent.at + extent.blocks * BLOCK_BYTES
            };
            read[extents.iter().position(inside).expect("within an extent")] += u64::from(piece.bytes) / BLOCK_BYTES;
        }
        assert_eq!(read, [700, 1, 2000]);
        assert_eq!(layout.bytes(), all.iter().map(|region| layout.region_bytes(*region)).sum::<u64>());
    }

    #[test]
    fn a_pair_lies_in_its_slot_and_the_second_before_the_first() {
        let layout = Layout::of(vec![Extent { file: 0, at: 0, blocks: 1 << 20 }]);
        assert_eq!((layout.regions(), layout.slots()), (64, 2048));
        let mut chance = Stream::new(7, 0, Purpose::Sample);
        for slot in 0..layout.slots_of_region() {
            let (touched, beside) = layout.pair(3, slot, &mut chance);
            let begin = layout.region_bytes(0) * 3 + slot * SLOT_BYTES;
            let beside = beside.expect("one extent");
            assert!((begin..begin + SLOT_BYTES).contains(&touched.at) && beside.at >= begin);
            assert!(beside.at < touched.at && touched.at - beside.at < NEAR * BLOCK_BYTES);
        }
    }
}
