//! Latency: a chase through ever larger memory in each kind of pages; several chains at once; a chase beside readers.

use super::bandwidth::share;
use super::info::{ChainRow, LadderRow, LoadedRow, PagesRow};
use super::options::word;
use super::sizes::steps as sizes;
use super::{MemoryReadings, Work, refused};
use crate::crew::{Gate, effective_mhz, pin};
use assay_block::Pages;
use assay_block::memory::{Area, Cycle, LANES, Place, Spacing, sum};
use assay_measure::clock::Ns;
use assay_measure::prng::SplitMix64;
use assay_measure::record::Figure;
use assay_measure::statistics::median;
use assay_measure::units::many;
use assay_run::engine::EngineError;
use assay_run::threads;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Share of the time for all steps of all ladders; a step takes no more than `STEP_MOST_NS`.
const SHARE: f64 = 0.3;
const STEP_MOST_NS: u64 = 200_000_000;
/// Of a step: the median of so many batches counts.
const BATCHES: u64 = 5;
const HOPS: u64 = 1_000_000;
/// Hops between two looks at the clock.
const HOPS_AT_ONCE: u64 = 10_000;
/// Hops before those that count, at most.
const WARM: u64 = 250_000;
/// A cycle grows by so much between two looks at a stop request.
const GROWTH: usize = 16 << 20;
/// Chains of one thread.
const CHAINS: [usize; 8] = [1, 2, 4, 6, 8, 10, 12, 16];
/// Shares of the time for chains and for readers.
const CHAINS_SHARE: f64 = 0.04;
const LOADED_SHARE: f64 = 0.06;
/// Seed of every order: a run can be repeated.
const SEED: u64 = 0x6D65_6D6F_7279;
/// The least memory of a ladder with a pointer a page.
const PAGES_LEAST: u64 = 64 << 10;

/// Memory of a reader.
const READER_MOST: u64 = 256 << 20;

/// Numbers of readers beside the chase: none, then one less than each number of threads.
fn readers(counts: usize) -> usize {
    counts
}

fn sizes_of_pages(most: u64) -> Vec<u64> {
    let all = sizes(most).into_iter();
    all.filter(|bytes| bytes.is_power_of_two() && *bytes >= PAGES_LEAST).collect()
}

pub(super) fn steps(pages: &[Pages], most: u64, counts: usize) -> usize {
    pages.len() * (sizes(most).len() + sizes_of_pages(most).len()) + CHAINS.len() + readers(counts)
}

/// Where a chase is.
struct Chase<'a> {
    work: &'a Work<'a>,
    cycle: Cycle,
    random: SplitMix64,
    at: Place,
}

impl Chase<'_> {
    /// Whether the cycle now has so many bytes; not when somebody stopped it.
    fn grow(&mut self, bytes: u64) -> bool {
        let mut reached = 0;
        while reached < bytes as usize {
            if self.work.stop.requested() {
                return false;
            }
            reached = (reached + GROWTH).min(bytes as usize);
            let random = &mut self.random;
            // The bias of a product's upper half is below 2^-30 for any cycle that fits in memory.
            let below = |n: u64| ((u128::from(random.next_u64()) * u128::from(n)) >> 64) as u64;
            self.cycle.grow(reached, below);
        }
        true
    }

    /// A hop's time of each batch, ns, and how many hops there were.
    fn step(&mut self, budget_ns: Ns) -> (Vec<f64>, u64) {
        let Work { clock, stop, .. } = self.work;
        let mut left = WARM.min(2 * self.cycle.len() as u64);
        let over = clock.now_ns() + budget_ns / 5;
        while left > 0 && clock.now_ns() < over {
            self.at = self.cycle.walk(self.at, left.min(HOPS_AT_ONCE));
            left = left.saturating_sub(HOPS_AT_ONCE);
        }
        let (mut batches, mut all) = (Vec::new(), 0);
        for _ in 0..BATCHES {
            let begun = clock.now_ns();
            let mut hops = 0;
            let ended = loop {
                self.at = self.cycle.walk(self.at, HOPS_AT_ONCE);
                hops += HOPS_AT_ONCE;
                let now = clock.now_ns();
                if hops >= HOPS / BATCHES || now >= begun + budget_ns / BATCHES || stop.requested() {
                    break now;
                }
            };
            batches.push((ended - begun) as f64 / hops as f64);
            all += hops;
        }
        (batches, all)
    }

    /// Chains side by side: a hop's time of each batch over all of them, ns.
    fn together<const N: usize>(&mut self, budget_ns: Ns) -> Vec<f64> {
        let Work { clock, stop, .. } = self.work;
        let nodes = self.cycle.len();
        let mut at: [Place; N] = std::array::from_fn(|nth| self.cycle.place(nth * (nodes / N) + 1));
        let mut batches = Vec::new();
        for _ in 0..BATCHES {
            let begun = clock.now_ns();
            let mut hops = 0;
            let ended = loop {
                at = self.cycle.walk_together(at, HOPS_AT_ONCE / N as u64);
                hops += HOPS_AT_ONCE / N as u64 * N as u64;
                let now = clock.now_ns();
                if now >= begun + budget_ns / BATCHES || stop.requested() {
                    break now;
                }
            };
            batches.push((ended - begun) as f64 / hops as f64);
        }
        black_box(at);
        batches
    }
}

/// Ladders, chains and readers, by a thread that stays on the first CPU.
pub(super) fn run(work: &Work<'_>, readings: &mut MemoryReadings) -> Result<(), EngineError> {
    std::thread::scope(|scope| {
        let chase = threads::spawn(scope, "memory-chase".to_owned(), || {
            readings.info.is_pinned &= pin(work.cpus[0]);
            all(work, readings)
        })?;
        chase.join().expect("a chase does not panic")
    })
}

fn all(work: &Work<'_>, readings: &mut MemoryReadings) -> Result<(), EngineError> {
    let mut clocks = Vec::new();
    for (nth, pages) in work.pages.iter().enumerate() {
        if work.stop.requested() {
            return Ok(());
        }
        let mut chase = climb(work, *pages, readings, &mut clocks)?;
        // Chains and readers are measured in huge pages where there are any: what they cost comes on top of both.
        let is_last = nth == usize::from(work.pages.len() > 1);
        if is_last && !work.stop.requested() {
            chains(&mut chase, readings);
            loaded(&mut chase, readings)?;
        }
    }
    let middle = median(&clocks);
    readings.info.effective_mhz = Figure::known(middle, "no step");
    Ok(())
}

/// Both ladders in one kind of pages.
fn climb<'a>(
    work: &'a Work<'a>,
    pages: Pages,
    readings: &mut MemoryReadings,
    clocks: &mut Vec<f64>,
) -> Result<Chase<'a>, EngineError> {
    let most = work.sizes.ladder_bytes;
    let ladders = work.pages.len() * (sizes(most).len() + sizes_of_pages(most).len());
    let budget = work.window_ns(SHARE, ladders).min(STEP_MOST_NS);
    let cycle = Cycle::new(most as usize, pages, Spacing::Lines, "a ladder").map_err(refused)?;
    let at = cycle.place(0);
    let mut chase = Chase { work, cycle, random: SplitMix64(SEED), at };
    let both = [
        (Spacing::Pages, "pages", sizes_of_pages(most)),
        // Last, so that chains and readers find it as they need it.
        (Spacing::Lines, "lines", sizes(most)),
    ];
    for (spacing, name, all) in both {
        chase.cycle.restart(spacing);
        chase.random = SplitMix64(SEED);
        for bytes in all {
            work.meter.next(&format!(
                "latency of {} in {} pages, {name}",
                assay_measure::units::size(bytes),
                word(pages)
            ));
            if !chase.grow(bytes) {
                return Ok(chase);
            }
            let (batches, hops) = chase.step(budget);
            let mhz = effective_mhz(work.clock);
            clocks.push(mhz);
            readings.info.ladder.push(row((pages, name), bytes, &batches, hops, mhz));
        }
        // What the largest step touched; the rest of the area stays unused.
        let bytes = sizes(most).last().copied().unwrap_or(most);
        if spacing == Spacing::Lines {
            readings.info.got.push(PagesRow {
                pages: word(pages).to_owned(),
                what: "ladder".to_owned(),
                bytes,
                huge_pct: share(chase.cycle.huge_bytes(), bytes),
            });
        }
    }
    Ok(chase)
}

fn row((pages, spacing): (Pages, &str), bytes: u64, batches: &[f64], hops: u64, mhz: f64) -> LadderRow {
    let figure = |value: Option<f64>| Figure::known(value, "no batch");
    let middle = median(batches);
    LadderRow {
        pages: word(pages).to_owned(),
        spacing: spacing.to_owned(),
        bytes,
        ns_p50: figure(middle),
        ns_min: figure(batches.iter().copied().reduce(f64::min)),
        cycles_p50: figure(middle.map(|ns| ns * mhz / 1e3)),
        hops_count: hops,
    }
}

fn chains(chase: &mut Chase<'_>, readings: &mut MemoryReadings) {
    let work = chase.work;
    let budget = work.window_ns(CHAINS_SHARE, CHAINS.len());
    let mut one = None;
    for count in CHAINS {
        work.meter.next(&format!("{} side by side", many(count as u64, "chain")));
        if work.stop.requested() {
            return;
        }
        let batches = match count {
            1 => chase.together::<1>(budget),
            2 => chase.together::<2>(budget),
            4 => chase.together::<4>(budget),
            6 => chase.together::<6>(budget),
            8 => chase.together::<8>(budget),
            10 => chase.together::<10>(budget),
            12 => chase.together::<12>(budget),
            _ => chase.together::<16>(budget),
        };
        let Some(ns) = median(&batches) else { return };
        let alone = *one.get_or_insert(ns);
        readings.info.chains.push(ChainRow {
            chains_count: count as u64,
            ns_p50: Figure::decimal(ns),
            parallel_ratio: Figure::decimal(alone / ns),
            gb_per_s: Figure::decimal(64.0 / ns),
        });
    }
}

/// What readers do while the chase goes on.
#[derive(Default)]
struct Beside {
    gate: Gate,
    is_over: AtomicBool,
    bytes: AtomicU64,
}

impl Beside {
    /// Reads an area over and over; counts what it read.
    fn read(&self, cpu: u32, area: &mut [f64]) {
        pin(cpu);
        area.fill(1.0);
        if !self.gate.wait() {
            return;
        }
        let piece = (1 << 20) / 8;
        while !self.is_over.load(Ordering::Acquire) {
            for piece in area.chunks(piece) {
                black_box(sum(piece));
                let bytes = size_of_val(piece) as u64;
                self.bytes.fetch_add(bytes, Ordering::AcqRel);
                if self.is_over.load(Ordering::Acquire) {
                    return;
                }
            }
        }
    }
}

/// The chase beside 0, 1, 3, 7 ... others that read.
fn loaded(chase: &mut Chase<'_>, readings: &mut MemoryReadings) -> Result<(), EngineError> {
    let work = chase.work;
    let budget = work.window_ns(LOADED_SHARE, readers(work.counts.len()));
    let most = READER_MOST.saturating_mul(work.cpus.len() as u64);
    let total = work.sizes.arrays.bytes.min(most) as usize;
    for count in work.counts.iter().map(|count| count - 1) {
        work.meter.next(&format!("latency beside {}", many(count as u64, "reader")));
        if work.stop.requested() {
            return Ok(());
        }
        let beside = Beside::default();
        let mut area = Area::new(total, work.huge, "readers").map_err(refused)?;
        let part = (area.floats().len() / count.max(1) / LANES * LANES).max(LANES);
        let parts = area.floats().chunks_exact_mut(part).take(count);
        let (batches, gb_per_s) = std::thread::scope(|scope| {
            let beside = &beside;
            for (part, cpu) in parts.zip(&work.cpus[1..]) {
                let name = format!("memory-{cpu}");
                let started = threads::spawn(scope, name, move || beside.read(*cpu, part));
                if let Err(error) = started {
                    beside.gate.open(count, false);
                    return Err(error);
                }
            }
            beside.gate.open(count, true);
            let mut batches = Vec::new();
            let (begun, before) = (work.clock.now_ns(), beside.bytes.load(Ordering::Acquire));
            loop {
                batches.extend(chase.step(budget / 2).0);
                if work.clock.now_ns() >= begun + budget || work.stop.requested() {
                    break;
                }
            }
            let bytes = beside.bytes.load(Ordering::Acquire) - before;
            let ns = work.clock.now_ns() - begun;
            beside.is_over.store(true, Ordering::Release);
            Ok((batches, bytes as f64 / ns.max(1) as f64))
        })?;
        readings.info.loaded.push(LoadedRow {
            readers_count: count as u64,
            gb_per_s: Figure::decimal(gb_per_s),
            loaded_latency_ns_p50: Figure::known(median(&batches), "no batch"),
        });
    }
    Ok(())
}
