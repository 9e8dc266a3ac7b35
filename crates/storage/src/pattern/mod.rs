//! The next I/O of a clone: file, direction, offset, length.
//!
//! Owns everything random about a job except its content. Knows no file, clock or buffer; the work loop asks for one
//! I/O after another. Allocates nothing once a pattern is created. `docs/design/storage-pattern.md` has the rules.

mod choice;
mod distribution;
mod map;

use super::spec::{Amount, Distribution, FileService, JobOptions, PatternOptions, RandomGenerator, Region, SpecError};
use crate::readings::Way;
use assay_measure::permutation::Permutation;
use assay_measure::prng::{Purpose, Stream};
use choice::{Deck, Lengths};
use distribution::Sampler;
use map::FreeMap;
use std::borrow::Cow;

/// Directions that patterns distinguish: reads, and writes or trims. Trims take the place of writes.
const WAYS: usize = 2;
/// Places to search for a long enough free run before settling for a shorter one.
const TRIES: u32 = 16;
/// Maximum number of blocks in a computed order (`random_generator=lfsr`).
const MOST_PERMUTED: u64 = 1 << 40;

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Io {
    /// Direction.
    pub way: Way,
    /// Index of the file among the clone's files.
    pub file: u16,
    /// First byte in the file.
    pub offset: u64,
    /// Bytes; at least 1.
    pub len: u32,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// This request.
    Io(Io),
    /// The amount of the job has been issued.
    Done,
}

fn percent_of(bytes: u64, percent: u32) -> u64 {
    (u128::from(bytes) * u128::from(percent) / 100).min(u128::from(u64::MAX)) as u64
}

/// Trims have the offsets and lengths that writes of their block sizes would have.
fn as_writes(options: &JobOptions) -> Cow<'_, JobOptions> {
    let mut options = Cow::Borrowed(options);
    if options.pattern.mode.goes(Way::Trim) {
        let pattern = &mut options.to_mut().pattern;
        pattern.blocks[1] = pattern.blocks[2].clone();
        pattern.align[1] = pattern.align[2];
        pattern.random_percent[1] = pattern.random_percent[2];
    }
    options
}

fn names_of(pattern: &PatternOptions) -> [Way; WAYS] {
    if pattern.mode.goes(Way::Trim) { [Way::Read, Way::Trim] } else { [Way::Read, Way::Write] }
}

/// The smallest block of any direction of the job, bytes.
fn least_block(options: &JobOptions) -> u32 {
    let pattern = &options.pattern;
    let sizes = sizes_of(pattern);
    (0..WAYS).filter(|i| pattern.blocks_by_sequence || goes(pattern, *i)).map(|i| sizes[i]).min().unwrap_or(0)
}

fn sizes_of(pattern: &PatternOptions) -> [u32; WAYS] {
    [pattern.blocks[0].min, pattern.blocks[1].min]
}

fn goes(pattern: &PatternOptions, way: usize) -> bool {
    match way {
        0 => pattern.mode.goes(Way::Read),
        _ => pattern.mode.destroys(),
    }
}

/// An invalid job. The caller, which knows the job's name, adds it.
fn invalid(what: String) -> SpecError {
    SpecError { origin: "job".to_owned(), what }
}

/// How offsets are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// One after another.
    Sequential,
    /// Anywhere.
    Uniform,
    /// Anywhere, but each block only once.
    Mapped,
    /// Each block once in a computed order.
    Permuted,
    /// By a distribution.
    Sampled,
}

/// Which direction comes next.
#[derive(Clone, Debug)]
enum Ways {
    Only(usize),
    Mixed(Deck),
}

/// One file of the pattern.
#[derive(Clone, Debug)]
struct Part {
    region: Region,
    /// Bytes of the region in whole smallest blocks.
    usable: u64,
    /// Bytes left in the current pass.
    left: u64,
    /// Next position of sequential I/O from the region's start, by direction.
    position: [i64; WAYS],
    /// I/Os left until the next random offset (`rw=randread:8`), by direction.
    burst: [u32; WAYS],
    /// Number of places for a block of the direction's smallest size.
    slots: [u64; WAYS],
    maps: [Option<FreeMap>; WAYS],
    sampler: Option<Sampler>,
    permutation: Option<(Permutation, u64)>,
}

/// The I/Os of one clone, one after another.
#[derive(Clone, Debug)]
pub struct Pattern {
    order: Order,
    ways: Ways,
    /// The direction that each index stands for.
    names: [Way; WAYS],
    lengths: [Lengths; WAYS],
    /// `bs_is_seq_rand`: the first lengths apply to sequential I/O, the second to random.
    by_sequence: bool,
    /// Alignment of random offsets in bytes, by direction.
    align: [u64; WAYS],
    /// The smallest random block by direction, bytes.
    min: [u64; WAYS],
    /// The smallest block of each of `lengths`, bytes.
    sequential_min: [u64; WAYS],
    /// The smallest block in use.
    least: u64,
    /// Gap after each sequential I/O, bytes; negative to go backwards.
    hole: i64,
    /// I/Os per random offset.
    burst: u32,
    random_percent: [u32; WAYS],
    /// Whether both directions share a map, stored at index 0.
    shared_map: bool,
    parts: Vec<Part>,
    /// Number of files that are not finished with their pass.
    active: usize,
    service: (FileService, u32),
    current: usize,
    served: u32,
    offsets: Stream,
    mix: Stream,
    sizes: Stream,
    choice: Stream,
    seed: u64,
    pass: u64,
    /// Bytes per loop.
    amount: u64,
    left: u64,
    loops: u64,
    loops_left: u64,
    ios: u64,
    ios_left: u64,
}

impl Pattern {
    /// The pattern of clone `clone`, counted from 0 over all clones of all jobs. The clone and `seed` together
    /// determine its random streams.
    ///
    /// # Errors
    /// Sizes, weights or distributions that cannot work; regions smaller than a block; too little memory for the map.
    pub fn new(options: &JobOptions, regions: &[Region], clone: u32, seed: u64) -> Result<Self, SpecError> {
        let options = &*as_writes(options);
        let pattern = &options.pattern;
        let lengths = [Lengths::new(&pattern.blocks[0])?, Lengths::new(&pattern.blocks[1])?];
        let least = u64::from(least_block(options));
        let session = u64::from(clone) + 1;
        let stream = |purpose| Stream::new(seed, session, purpose);
        let sequential_min = sizes_of(pattern).map(u64::from);
        let min = if pattern.blocks_by_sequence { [sequential_min[1]; WAYS] } else { sequential_min };
        let argument = pattern.mode_argument.unwrap_or(0);
        let random = pattern.mode.is_random();
        let order = order_of(pattern, &lengths);
        let mut made = Self {
            order,
            ways: ways_of(pattern)?,
            names: names_of(pattern),
            by_sequence: pattern.blocks_by_sequence,
            align: std::array::from_fn(|i| pattern.align[i].unwrap_or(min[i]).max(1)),
            least,
            hole: if random { 0 } else { argument },
            burst: if random { argument.clamp(1, 1 << 30) as u32 } else { 1 },
            random_percent: [pattern.random_percent[0], pattern.random_percent[1]],
            shared_map: min[0] == min[1] || !(goes(pattern, 0) && goes(pattern, 1)),
            parts: Vec::with_capacity(regions.len()),
            active: 0,
            service: (options.files.service.0, options.files.service.1.max(1)),
            current: 0,
            served: 0,
            offsets: stream(Purpose::StorageOffsets),
            mix: stream(Purpose::StorageWays),
            sizes: stream(Purpose::StorageLengths),
            choice: stream(Purpose::StorageFiles),
            seed,
            pass: 0,
            amount: 0,
            left: 0,
            loops: pattern.loops.max(1),
            loops_left: 0,
            ios: pattern.number_ios.unwrap_or(u64::MAX),
            ios_left: 0,
            lengths,
            min,
            sequential_min,
        };
        let needed = made.needed(pattern);
        made.set_parts(options, regions, needed)?;
        made.set_amount(pattern, regions, needed)?;
        made.rewind();
        Ok(made)
    }

    /// Space that a region needs for the smallest block of either direction.
    fn needed(&self, pattern: &PatternOptions) -> u64 {
        (0..WAYS)
            .filter(|i| goes(pattern, *i))
            .map(|i| self.min[i].max(self.sequential_min[i]))
            .fold(self.least, u64::max)
    }

    /// Sets up the regions that have room for a block.
    fn set_parts(&mut self, options: &JobOptions, regions: &[Region], needed: u64) -> Result<(), SpecError> {
        for region in regions.iter().filter(|region| region.bytes >= needed) {
            let part = self.part(options, *region)?;
            self.parts.push(part);
        }
        Ok(())
    }

    fn set_amount(&mut self, pattern: &PatternOptions, regions: &[Region], needed: u64) -> Result<(), SpecError> {
        let whole: u64 = regions.iter().map(|r| r.bytes).sum();
        if self.parts.is_empty() {
            return Err(invalid(format!(
                "size too small: each file has {} bytes, but a block has at least {needed}",
                regions.iter().map(|r| r.bytes).max().unwrap_or(0)
            )));
        }
        self.amount = match pattern.io_size {
            None | Some(Amount::Bytes(0)) => self.parts.iter().map(|part| part.usable).sum(),
            Some(Amount::Bytes(bytes)) => bytes,
            Some(Amount::Percent(percent)) => percent_of(whole, percent),
        };
        Ok(())
    }

    fn part(&self, options: &JobOptions, region: Region) -> Result<Part, SpecError> {
        let slots = |i: usize| {
            let room = region.bytes.saturating_sub(self.min[i]);
            room / self.align[i] + 1
        };
        let mut part = Part {
            region,
            usable: region.bytes / self.least * self.least,
            left: 0,
            position: [0; WAYS],
            burst: [0; WAYS],
            slots: std::array::from_fn(slots),
            maps: [None, None],
            sampler: None,
            permutation: None,
        };
        match self.order {
            Order::Mapped => {
                for i in 0..WAYS {
                    let (used, granule) =
                        if self.shared_map { (i == 0, self.least) } else { (goes(&options.pattern, i), self.min[i]) };
                    if used && region.bytes >= granule {
                        part.maps[i] = map_of(region.bytes / granule, options.pattern.soft_map)?;
                    }
                }
            }
            Order::Sampled => {
                let slots = region.bytes.saturating_sub(self.least) / self.align_least() + 1;
                let law = &options.pattern.distribution;
                part.sampler = Sampler::new(law, slots, self.seed, region.file)?;
            }
            Order::Permuted if region.bytes / self.least > MOST_PERMUTED => {
                return Err(invalid(format!(
                    "{} bytes are too many blocks for random_generator=lfsr: use norandommap",
                    region.bytes
                )));
            }
            Order::Sequential | Order::Uniform | Order::Permuted => {}
        }
        Ok(part)
    }

    fn align_least(&self) -> u64 {
        match self.ways {
            Ways::Only(way) => self.align[way],
            Ways::Mixed(_) => self.align[0].min(self.align[1]),
        }
    }

    /// The next I/O.
    #[expect(clippy::should_implement_trait, reason = "no iterator: after the end a job may begin anew")]
    #[inline]
    pub fn next(&mut self) -> Next {
        self.step(None)
    }

    /// The next I/O of a mixed job in this direction, rather than in the one that the mix would choose.
    #[inline]
    pub fn next_of(&mut self, way: Way) -> Next {
        self.step(Some(way.index()))
    }

    #[inline]
    fn step(&mut self, forced: Option<usize>) -> Next {
        if self.left == 0 || self.ios_left == 0 {
            if self.ios_left == 0 || self.loops_left <= 1 {
                return Next::Done;
            }
            self.loops_left -= 1;
            self.left = self.amount;
            self.begin_anew();
        }
        let index = if self.parts.len() == 1 && self.active == 1 { 0 } else { self.choose_file() };
        let way = match (&mut self.ways, forced) {
            (Ways::Only(way), _) => *way,
            (Ways::Mixed(_), Some(way)) => way.min(WAYS - 1),
            (Ways::Mixed(deck), None) => deck.draw(&mut self.mix),
        };
        let (offset, len) = self.place(index, way);
        let part = &mut self.parts[index];
        part.left = part.left.saturating_sub(u64::from(len));
        if part.left < self.least {
            self.active -= 1;
        }
        self.left = self.left.saturating_sub(u64::from(len));
        self.ios_left -= 1;
        let Region { file, start, .. } = part.region;
        Next::Io(Io { way: self.names[way], file, offset: start + offset, len })
    }

    /// Restarts the amount (`time_based`): empties the maps and restarts sequential I/O. Random streams continue, so
    /// another pass has another order.
    pub fn rewind(&mut self) {
        self.left = self.amount;
        self.loops_left = self.loops;
        self.ios_left = self.ios;
        self.begin_anew();
    }

    /// Total bytes of the job's amount over all loops. [`Next::Done`] follows once as many have been issued, or
    /// `number_ios` I/Os.
    #[must_use]
    pub fn amount_bytes(&self) -> u64 {
        self.amount.saturating_mul(self.loops)
    }

    fn begin_anew(&mut self) {
        for part in &mut self.parts {
            part.position = [0; WAYS];
            part.burst = [0; WAYS];
        }
        (self.current, self.served) = (0, 0);
        self.new_pass();
    }

    /// Starts a new pass over the whole region of every file.
    #[cold]
    fn new_pass(&mut self) {
        self.pass += 1;
        for part in &mut self.parts {
            part.left = part.usable;
            for map in part.maps.iter_mut().flatten() {
                map.clear();
            }
            if self.order == Order::Permuted {
                let seed = self.offsets.next_u64();
                let blocks = part.usable / self.least;
                let file = u32::from(part.region.file) + 1;
                part.permutation = Some((Permutation::new(seed, file, blocks), 0));
            }
        }
        self.active = self.parts.len();
    }

    /// Chooses the file of the next I/O: one that is not finished with its pass.
    fn choose_file(&mut self) -> usize {
        if self.active == 0 {
            self.new_pass();
        }
        let least = self.least;
        let is_active = |part: &Part| part.left >= least;
        let (service, most) = self.service;
        let stays = is_active(&self.parts[self.current]) && (service == FileService::Sequential || self.served < most);
        if stays {
            self.served += 1;
            return self.current;
        }
        let files = self.parts.len();
        let first = match service {
            FileService::Random => self.choice.below(files as u64) as usize,
            FileService::RoundRobin | FileService::Sequential => self.current + 1,
        };
        self.current = (first..first + files)
            .map(|i| i % files)
            .find(|i| is_active(&self.parts[*i]))
            .expect("a file is active: a new pass makes all of them so");
        self.served = 1;
        self.current
    }

    /// Offset from the region's start, and length.
    #[inline]
    fn place(&mut self, index: usize, way: usize) -> (u64, u32) {
        if self.order == Order::Sequential || self.goes_on(index, way) {
            return self.sequential(index, way);
        }
        let slot = if self.by_sequence { 1 } else { way };
        let len = self.lengths[slot].draw(&mut self.sizes);
        let part = &mut self.parts[index];
        let bytes = part.region.bytes;
        let (offset, len) = match self.order {
            Order::Uniform | Order::Sequential => {
                let slots = if u64::from(len) == self.min[way] {
                    part.slots[way]
                } else {
                    bytes.saturating_sub(u64::from(len)) / self.align[way] + 1
                };
                (self.offsets.below(slots) * self.align[way], len)
            }
            Order::Mapped => return self.mapped(index, way, len),
            Order::Permuted => {
                let (permutation, next) = part.permutation.as_mut().expect("a pass makes one");
                // Sequential I/Os in between leave some blocks over, but no I/O is issued after the last.
                *next = *next % permutation.rows() + 1;
                (permutation.slot_of_key(*next) * self.least, len)
            }
            Order::Sampled => {
                let sampler = part.sampler.as_mut().expect("each file has one");
                let least = match self.ways {
                    Ways::Only(way) => self.align[way],
                    Ways::Mixed(_) => self.align[0].min(self.align[1]),
                };
                let last = bytes - self.min[way];
                let offset = (sampler.draw(&mut self.offsets) * least).min(last);
                (offset / self.align[way] * self.align[way], len)
            }
        };
        let len = shortened(len, self.min[way], bytes - offset);
        if self.burst > 1 || self.random_percent[way] < 100 {
            self.continue_from(index, way, offset, len);
        }
        (offset, len)
    }

    /// Whether a random job continues where its last I/O of this direction ended.
    #[inline]
    fn goes_on(&mut self, index: usize, way: usize) -> bool {
        if self.burst > 1 {
            let left = &mut self.parts[index].burst[way];
            if *left > 0 {
                *left -= 1;
                return true;
            }
            *left = self.burst - 1;
        }
        let percent = self.random_percent[way];
        percent < 100 && self.offsets.below(100) >= u64::from(percent)
    }

    fn continue_from(&mut self, index: usize, way: usize, offset: u64, len: u32) {
        self.parts[index].position[way] = (offset + u64::from(len)) as i64;
    }

    fn sequential(&mut self, index: usize, way: usize) -> (u64, u32) {
        let slot = if self.by_sequence { 0 } else { way };
        let min = self.sequential_min[slot];
        let part = &mut self.parts[index];
        let bytes = part.region.bytes;
        let fits = |at: i64| at >= 0 && (at as u64).saturating_add(min) <= bytes;
        let at = part.position[way];
        let at = if fits(at) {
            at as u64
        } else if at < 0 {
            // Past the start going backwards: continue as far before the end as each step goes back.
            bytes.saturating_sub(min.max(self.hole.unsigned_abs()))
        } else {
            0
        };
        let len = self.lengths[slot].draw(&mut self.sizes);
        let len = shortened(len, min, bytes - at);
        part.position[way] = (at + u64::from(len)) as i64 + self.hole;
        if self.order == Order::Mapped {
            self.mark(index, way, at, len);
        }
        (at, len)
    }

    /// Removes blocks from the map that a sequential I/O of a random job has visited.
    fn mark(&mut self, index: usize, way: usize, at: u64, len: u32) {
        let granule = if self.shared_map { self.least } else { self.min[way] };
        let which = if self.shared_map { 0 } else { way };
        if let Some(map) = &mut self.parts[index].maps[which] {
            let end = (at + u64::from(len)) / granule;
            for block in at / granule..end.min(map.blocks()) {
                map.take(block);
            }
        }
    }

    /// A free run of blocks near a random one; the longest of a few if none is long enough.
    fn mapped(&mut self, index: usize, way: usize, len: u32) -> (u64, u32) {
        let granule = if self.shared_map { self.least } else { self.min[way] };
        let which = if self.shared_map { 0 } else { way };
        let part = &mut self.parts[index];
        let Some(map) = &mut part.maps[which] else {
            // softrandommap without memory for a map, or a region below one block of this direction.
            let offset = self.offsets.below(part.slots[way]) * self.align[way];
            return (offset, shortened(len, self.min[way], part.region.bytes - offset));
        };
        let wanted = (u64::from(len) / granule).max(1);
        let mut from = self.offsets.below(map.blocks());
        if map.next_free(from).is_none() {
            map.clear();
        }
        let mut best = (0, 0);
        for _ in 0..TRIES {
            let block = map.next_free(from).expect("a map that is full is emptied");
            let run = map.run(block, wanted);
            if run > best.1 {
                best = (block, run);
            }
            if run == wanted {
                break;
            }
            from = block + run;
        }
        let (block, run) = best;
        for taken in block..block + run {
            map.take(taken);
        }
        let (offset, len) = (block * granule, (run * granule) as u32);
        if self.burst > 1 || self.random_percent[way] < 100 {
            self.continue_from(index, way, offset, len);
        }
        (offset, len)
    }
}

/// As many whole smallest blocks of `len` as fit; at least one.
#[inline]
fn shortened(len: u32, min: u64, room: u64) -> u32 {
    if u64::from(len) <= room { len } else { ((room / min).max(1) * min) as u32 }
}

fn map_of(blocks: u64, soft: bool) -> Result<Option<FreeMap>, SpecError> {
    match FreeMap::new(blocks) {
        Ok(map) => Ok(Some(map)),
        Err(_) if soft => Ok(None),
        Err(error) => Err(error),
    }
}

fn ways_of(pattern: &PatternOptions) -> Result<Ways, SpecError> {
    match (goes(pattern, 0), goes(pattern, 1)) {
        (true, false) => Ok(Ways::Only(0)),
        (false, true) => Ok(Ways::Only(1)),
        _ => match pattern.read_percent {
            0 => Ok(Ways::Only(1)),
            100 => Ok(Ways::Only(0)),
            percent if percent < 100 => Deck::new(vec![percent, 100 - percent]).map(Ways::Mixed),
            percent => Err(invalid(format!("rwmixread {percent} is above 100 percent"))),
        },
    }
}

fn order_of(pattern: &PatternOptions, lengths: &[Lengths; WAYS]) -> Order {
    if !pattern.mode.is_random() {
        return Order::Sequential;
    }
    if pattern.distribution != Distribution::Random {
        return Order::Sampled;
    }
    let aligned = (0..WAYS).any(|i| goes(pattern, i) && pattern.align[i].is_some());
    // One map cannot have two block sizes.
    let uneven = pattern.blocks_by_sequence && pattern.blocks[0].min != pattern.blocks[1].min;
    if pattern.no_map || aligned || uneven {
        return Order::Uniform;
    }
    let plain = pattern.mode_argument.unwrap_or(1) <= 1
        && !pattern.blocks_by_sequence
        && (0..WAYS).all(|i| pattern.random_percent[i] == 100 || !goes(pattern, i));
    let used = || (0..WAYS).filter(|i| goes(pattern, *i));
    let one = used().map(|i| lengths[i].fixed()).collect::<Vec<_>>();
    let alike = one.iter().all(|len| len.is_some() && *len == one[0]);
    if pattern.generator == RandomGenerator::Lfsr && plain && alike { Order::Permuted } else { Order::Mapped }
}

#[cfg(test)]
mod tests;
