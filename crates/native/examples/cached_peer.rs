//! The peer of `cargo xtask bench cached`: 64 consecutive keys at a time on blocks in memory, by a hash table, a pin and a look at
//! the block's header and first column, and nothing else: no engine, no session, no index, no version, no histogram.
//! `cached_peer MIB SECONDS [unpinned]` prints gets per second of CPU as JSON; `unpinned` leaves the pin out.
//!
//! Blocks, states and table lie in memory of the engine's kind, with huge pages where the kernel gives them.

use assay_block::{BlockError, Words};
use assay_measure::prng::{Purpose, Stream};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

const BLOCK_WORDS: usize = 1024;
/// The first column lies in the second line of a block.
const COLUMN_WORD: usize = 8;
const WIDTH: usize = 64;
/// Selects between two looks at the clock.
const BATCH: usize = 256;
/// Bits of an entry that name the frame, from 1.
const FRAME_BITS: u32 = 24;

struct Cache {
    blocks: Words,
    states: Words,
    table: Words,
    /// The page of each key.
    pages: Vec<u64>,
}

fn main() -> Result<(), BlockError> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok()).unwrap_or(1);
    let is_pinned = words.get(2).is_none();
    let cache = Cache::new(number(0) as usize * 128)?;
    let mut draws = Stream::new(2, 0, Purpose::Sample);
    // What is in no cache of the CPU yet is not what is measured.
    cache.measure(&mut draws, is_pinned, Duration::from_secs(1));
    let per_s = cache.measure(&mut draws, is_pinned, Duration::from_secs(number(1)));
    #[expect(clippy::print_stdout, reason = "what is printed is the figure")]
    {
        println!("{{\"gets_per_core\": {per_s}}}");
    }
    Ok(())
}

impl Cache {
    fn new(count: usize) -> Result<Self, BlockError> {
        let mut pages: Vec<u64> = (1..=count as u64).collect();
        let mut draws = Stream::new(1, 0, Purpose::Sample);
        for at in (1..count).rev() {
            pages.swap(at, draws.below(at as u64 + 1) as usize);
        }
        let cache = Self {
            blocks: Words::zeroed(count * BLOCK_WORDS, true, "blocks")?,
            states: Words::zeroed(count, true, "states")?,
            table: Words::zeroed((2 * count).next_power_of_two(), true, "the table")?,
            pages,
        };
        for frame in 0..count {
            let page = frame as u64 + 1;
            cache.blocks[frame * BLOCK_WORDS].store(page, Relaxed);
            let mut at = cache.bucket(page);
            while cache.table[at].load(Relaxed) != 0 {
                at = (at + 1) % cache.table.len();
            }
            cache.table[at].store(page << FRAME_BITS | page, Relaxed);
        }
        Ok(cache)
    }

    /// Fibonacci hashing: the high bits of a product with 2^64 divided by the golden ratio (Knuth, volume 3, 6.4).
    fn bucket(&self, page: u64) -> usize {
        let bits = self.table.len().trailing_zeros();
        (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)) as usize
    }

    #[inline]
    fn frame(&self, page: u64) -> usize {
        let mut at = self.bucket(page);
        loop {
            let entry = self.table[at].load(Relaxed);
            if entry >> FRAME_BITS == page {
                return (entry as usize & ((1 << FRAME_BITS) - 1)) - 1;
            }
            at = (at + 1) & (self.table.len() - 1);
        }
    }

    #[inline]
    fn get(&self, page: u64, is_pinned: bool) -> u64 {
        let frame = self.frame(page);
        if is_pinned {
            self.states[frame].fetch_add(1, Relaxed);
        }
        let block = &self.blocks[frame * BLOCK_WORDS..][..BLOCK_WORDS];
        assert_eq!(block[0].load(Relaxed), page);
        let column = block[COLUMN_WORD].load(Relaxed);
        if is_pinned {
            self.states[frame].fetch_sub(1, Relaxed);
        }
        column
    }

    /// Gets per second of this thread's CPU time.
    fn measure(&self, draws: &mut Stream, is_pinned: bool, time: Duration) -> f64 {
        let (begun, cpu_ns, mut gets, mut sum) = (Instant::now(), cpu_ns(), 0, 0_u64);
        while begun.elapsed() < time {
            for _ in 0..BATCH {
                let first = draws.below((self.pages.len() - WIDTH) as u64) as usize;
                for page in &self.pages[first..first + WIDTH] {
                    sum = sum.wrapping_add(self.get(*page, is_pinned));
                }
                gets += WIDTH;
            }
        }
        std::hint::black_box(sum);
        gets as f64 * 1e9 / (self::cpu_ns() - cpu_ns)
    }
}

/// CPU time of this thread, ns.
fn cpu_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(f64::NAN)
}
