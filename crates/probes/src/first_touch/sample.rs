//! Blocks read twice: in rounds over the regions, so that what changes with time meets all of them alike.

use super::layout::{BLOCK_BYTES, Layout, Spot};
use assay_measure::clock::Ns;
use assay_measure::prng::Stream;
use assay_run::engine::EngineError;
use std::collections::HashMap;

/// Reads a block and says how long it took.
pub(super) trait Reads {
    /// `None` where the file has become shorter.
    fn read(&mut self, spot: Spot) -> Result<Option<Ns>, EngineError>;

    /// Whether this host holds any of it in its page cache: then it was read or written before, and a dirty page would have to be
    /// written first.
    fn is_cached(&self, spot: Spot) -> bool;
}

/// One block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    pub(super) region: usize,
    /// `None` of a block that this host has in its page cache: it is warm.
    pub(super) read: Option<Doubled>,
}

/// How long it took to read a block, the same block again, and one near it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Doubled {
    pub(super) first_ns: Ns,
    pub(super) second_ns: Ns,
    pub(super) beside_ns: Option<Ns>,
}

/// What is to be read.
pub(super) struct Sample<'a> {
    pub(super) layout: &'a Layout,
    pub(super) most: usize,
}

impl Sample<'_> {
    /// Reads until `goes_on`, which is told how many were, says no. A block is never read first twice.
    pub(super) fn take(
        &self,
        reader: &mut dyn Reads,
        chance: &mut Stream,
        goes_on: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Vec<Touch>, EngineError> {
        let mut order: Vec<usize> = (0..self.layout.regions()).collect();
        let mut left: Vec<Deck> = order.iter().map(|_| Deck::of(self.layout.slots_of_region())).collect();
        let mut touches = Vec::new();
        for _ in 0..self.layout.slots_of_region() {
            shuffle(&mut order, chance);
            for region in order.iter().copied() {
                if touches.len() >= self.most || !goes_on(touches.len()) {
                    return Ok(touches);
                }
                let slot = left[region].draw(chance);
                let (spot, beside) = self.layout.pair(region, slot, chance);
                touches.extend(touch(reader, region, spot, beside)?);
            }
        }
        Ok(touches)
    }
}

fn touch(
    reader: &mut dyn Reads,
    region: usize,
    spot: Spot,
    beside: Option<Spot>,
) -> Result<Option<Touch>, EngineError> {
    if reader.is_cached(spot) {
        return Ok(Some(Touch { region, read: None }));
    }
    let (Some(first_ns), Some(second_ns)) = (reader.read(spot)?, reader.read(spot)?) else { return Ok(None) };
    let beside = beside.filter(|beside| u64::from(beside.bytes) == BLOCK_BYTES && !reader.is_cached(*beside));
    let beside_ns = beside.map_or(Ok(None), |beside| reader.read(beside))?;
    Ok(Some(Touch { region, read: Some(Doubled { first_ns, second_ns, beside_ns }) }))
}

fn shuffle(order: &mut [usize], chance: &mut Stream) {
    for at in (1..order.len()).rev() {
        order.swap(at, chance.below(at as u64 + 1) as usize);
    }
}

/// Numbers from 0, each drawn once; those that moved are kept, as in a shuffle that is done step by step.
struct Deck {
    left: u64,
    moved: HashMap<u64, u64>,
}

impl Deck {
    fn of(numbers: u64) -> Self {
        Self { left: numbers, moved: HashMap::new() }
    }

    fn draw(&mut self, chance: &mut Stream) -> u64 {
        let at = chance.below(self.left);
        self.left -= 1;
        let last = self.moved.remove(&self.left).unwrap_or(self.left);
        if at == self.left { last } else { self.moved.insert(at, last).unwrap_or(at) }
    }
}
