//! Interim.
use crate::storage::spec::{Options, Region, SpecError};
use assay_measure::prng::{Purpose, Stream};
use assay_measure::storage::Way;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Io {
    pub way: Way,
    pub file: u16,
    pub offset: u64,
    pub len: u32,
}
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    Io(Io),
    Done,
}
#[derive(Debug)]
pub(crate) struct Pattern {
    way: Way,
    random: bool,
    bs: u64,
    region: Region,
    blocks: u64,
    at: u64,
    left: u64,
    stream: Stream,
}
impl Pattern {
    pub(crate) fn new(
        options: &Options,
        regions: &[Region],
        clone: u32,
        seed: u64,
    ) -> Result<Self, SpecError> {
        let way = if options.pattern.mode.goes(Way::Read) {
            Way::Read
        } else {
            Way::Write
        };
        let bs = u64::from(options.pattern.blocks[0].max);
        let region = regions[0];
        let blocks = region.bytes / bs;
        Ok(Self {
            way,
            random: options.pattern.mode.is_random(),
            bs,
            region,
            blocks,
            at: 0,
            left: options.pattern.number_ios.unwrap_or(blocks),
            stream: Stream::new(seed, u64::from(clone), Purpose::Keys),
        })
    }
    #[inline]
    pub(crate) fn next(&mut self) -> Next {
        if self.left == 0 {
            return Next::Done;
        }
        self.left -= 1;
        let block = if self.random {
            self.stream.below(self.blocks)
        } else {
            self.at = (self.at + 1) % self.blocks;
            self.at
        };
        Next::Io(Io {
            way: self.way,
            file: self.region.file,
            offset: self.region.start + block * self.bs,
            len: self.bs as u32,
        })
    }
    pub(crate) fn rewind(&mut self) {
        self.left = self.blocks;
    }
}
