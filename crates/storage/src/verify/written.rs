//! The writes that are still to be read back.

use crate::pattern::Io;
use crate::readings::Way;
use std::collections::{BTreeMap, VecDeque};

/// The bits of a write's number below this position count its clone's writes.
const CLONE_SHIFT: u32 = 40;

/// A recorded write, to be read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenBlock {
    /// First byte in the file.
    pub offset: u64,
    /// Number of the write, for [`ExpectedWrite`](super::ExpectedWrite); the upper bits identify its clone.
    pub sequence: u64,
    /// Bytes.
    pub len: u32,
    /// Index of the file among the clone's files.
    pub file: u16,
    /// Whether no other write of this clone went to the same place, so that the number is certain. Of two that may have
    /// been in flight together, either can be the last.
    pub certain: bool,
}

/// Writes of one clone in order, without those that later ones overwrote.
#[derive(Clone, Debug)]
pub struct Written {
    next: u64,
    /// `None` for a block that was partly overwritten, since its rest cannot be checked.
    blocks: VecDeque<Option<WrittenBlock>>,
    /// Number of the first entry in `blocks`.
    first: u64,
    /// The number of the last write by file and offset; detects repeated writes.
    places: BTreeMap<(u16, u64), u64>,
    left: usize,
}

impl Written {
    /// An empty list for clone `clone`.
    #[must_use]
    pub fn new(clone: u32) -> Self {
        let next = u64::from(clone) << CLONE_SHIFT;
        Self { next, blocks: VecDeque::new(), first: next, places: BTreeMap::new(), left: 0 }
    }

    /// Assigns a number to a write without recording it.
    pub fn count(&mut self) -> u64 {
        debug_assert!(self.blocks.is_empty(), "either all writes are noted or none");
        self.next += 1;
        self.first = self.next;
        self.next - 1
    }

    /// Records a write that is about to be issued and assigns its number. Forgets the writes that it overwrites.
    pub fn note(&mut self, io: &Io) -> u64 {
        debug_assert_eq!(io.way, Way::Write, "only writes are read back");
        let sequence = self.next;
        self.next += 1;
        let overwrote = self.forget(io);
        // A job that overwrites its files again and again must not need ever more memory.
        while let Some(None) = self.blocks.front() {
            self.blocks.pop_front();
            self.first += 1;
        }
        self.places.insert((io.file, io.offset), sequence);
        self.blocks.push_back(Some(WrittenBlock {
            offset: io.offset,
            sequence,
            len: io.len,
            file: io.file,
            certain: !overwrote,
        }));
        self.left += 1;
        sequence
    }

    /// Forgets all writes that overlap `io`: it overwrites them, or it failed.
    pub fn forget(&mut self, io: &Io) -> bool {
        let end = io.offset + u64::from(io.len);
        let mut any = false;
        loop {
            let last = self.places.range((io.file, 0)..(io.file, end)).next_back();
            let Some((&place, &number)) = last else {
                break;
            };
            let Some(slot) = self.blocks.get_mut((number - self.first) as usize) else {
                break;
            };
            let covers = slot.is_some_and(|block| block.offset + u64::from(block.len) > io.offset);
            if !covers {
                break;
            }
            *slot = None;
            self.places.remove(&place);
            self.left -= 1;
            any = true;
        }
        any
    }

    /// Takes the oldest write.
    pub fn take(&mut self) -> Option<WrittenBlock> {
        while let Some(slot) = self.blocks.pop_front() {
            self.first += 1;
            if let Some(block) = slot {
                self.places.remove(&(block.file, block.offset));
                self.left -= 1;
                return Some(block);
            }
        }
        None
    }

    /// Number of blocks still to be read back.
    #[must_use]
    pub fn len(&self) -> usize {
        self.left
    }

    /// Whether nothing is left to be read back.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measure::prng::{Purpose, Stream};
    use proptest::prelude::*;

    fn write(file: u16, offset: u64, len: u32) -> Io {
        Io { way: Way::Write, file, offset, len }
    }

    #[test]
    fn writes_come_back_in_their_order_and_a_certain_number() {
        let mut written = Written::new(3);
        for at in [8192, 0, 4096] {
            written.note(&write(0, at, 4096));
        }
        assert_eq!(written.len(), 3);
        let first = written.take().unwrap();
        assert_eq!((first.offset, first.sequence, first.certain), (8192, 3 << 40, true));
        // A second write to the same place: only the later counts, and either may be the one on disk.
        written.note(&write(0, 0, 4096));
        assert_eq!(written.take().map(|b| (b.offset, b.certain)), Some((4096, true)));
        assert_eq!(written.take().map(|b| (b.offset, b.certain)), Some((0, false)));
        assert!(written.take().is_none() && written.is_empty());
        assert_eq!(written.count(), (3 << 40) + 4);
        assert_eq!(written.note(&write(0, 0, 1)), (3 << 40) + 5);
        assert_eq!(written.take().map(|b| b.sequence), Some((3 << 40) + 5));
    }

    #[test]
    fn writing_over_and_over_needs_no_more_memory() {
        let mut written = Written::new(0);
        let mut stream = Stream::new(1, 1, Purpose::Test);
        for _ in 0..100_000 {
            written.note(&write(0, stream.below(64) * 4096, 4096));
        }
        assert_eq!(written.len(), 64);
        assert!(written.blocks.len() < 2000, "{}", written.blocks.len());
    }

    proptest! {
        /// Compares with a model that knows the last writer of every unit.
        #[test]
        fn what_is_left_is_what_nothing_touched_later(
            writes in prop::collection::vec((0_u16..2, 0_u64..40, 1_u32..6, any::<bool>()), 1..80),
        ) {
            let mut written = Written::new(0);
            let mut last: BTreeMap<(u16, u64), u64> = BTreeMap::new();
            let mut all = Vec::new();
            let mut taken = Vec::new();
            for (file, at, len, take) in writes {
                let sequence = written.note(&write(file, at, len));
                for unit in at..at + u64::from(len) {
                    last.insert((file, unit), sequence);
                }
                all.push((file, at, len, sequence));
                if take {
                    taken.extend(written.take().map(|b| b.sequence));
                }
            }
            let expected: Vec<u64> = all
                .iter()
                .filter(|(file, at, len, sequence)| {
                    (*at..*at + u64::from(*len)).all(|unit| last[&(*file, unit)] == *sequence)
                })
                .map(|write| write.3)
                .filter(|sequence| !taken.contains(sequence))
                .collect();
            prop_assert_eq!(written.len(), expected.len());
            let found: Vec<u64> = std::iter::from_fn(|| written.take()).map(|b| b.sequence).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
