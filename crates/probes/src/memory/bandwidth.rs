//! Bandwidth: loops over arrays that no cache holds, by kernel, kind of stores and number of threads.

use super::info::{BandwidthRow, PagesRow, SaturationRow};
use super::options::word;
use super::{MemoryReadings, Times, Work, refused};
use crate::crew::{Gate, pin};
use crate::host;
use assay_block::memory::{Area, Kernel, LANES, Stores, has_streaming_stores, sum, write};
use assay_measure::clock::{Clock, Ns};
use assay_measure::record::Figure;
use assay_measure::statistics::{half_width, mean, median, stddev};
use assay_measure::units::many;
use assay_run::engine::EngineError;
use assay_run::stop::Stop;
use assay_run::threads;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Share of the time for all passes together.
const SHARE: f64 = 0.4;
/// A pass is a tenth of the arrays, one after the other: between two passes over the same bytes the other nine tenths of
/// three arrays pass through the caches.
const SLICES: usize = 10;
/// Passes that count; the first one before them does not.
const PASSES_LEAST: usize = 10;
const PASSES_MOST: usize = 10_000;
/// The factor of scale, triad and fill.
const S: f64 = 3.0;
/// One of so many numbers is compared with what it must be.
const LOOKED_AT: usize = 509;
/// From this share of the best rate on, more threads bring nothing.
const SATURATED: f64 = 0.95;

/// What is run: a kernel that writes with its stores, or the one that reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Combination {
    Write(Kernel, Stores),
    Read,
}

use Combination::{Read, Write};
use Kernel::{Add, Copy, Fill, Scale, Triad};

pub(super) fn combinations() -> Vec<Combination> {
    let kinds = [Copy, Scale, Add, Triad, Fill];
    let mut all: Vec<Combination> = kinds.map(|kernel| Write(kernel, Stores::Normal)).to_vec();
    if has_streaming_stores() {
        all.extend(kinds.map(|kernel| Write(kernel, Stores::Streaming)));
    }
    all.push(Read);
    all
}

impl Combination {
    pub(super) fn name(self) -> &'static str {
        match self {
            Write(Copy, _) => "copy",
            Write(Scale, _) => "scale",
            Write(Add, _) => "add",
            Write(Triad, _) => "triad",
            Write(Fill, _) => "fill",
            Read => "read",
        }
    }

    fn stores(self) -> &'static str {
        match self {
            Write(_, Stores::Normal) => "normal",
            Write(_, Stores::Streaming) => "non-temporal",
            Read => "",
        }
    }

    /// Bytes for each number: those that the formula names, as STREAM counts, and with the line that a normal store reads
    /// before it writes it.
    pub(super) fn bytes(self) -> (u64, u64) {
        let named = match self {
            Write(Copy | Scale, _) => 16,
            Write(Add | Triad, _) => 24,
            Write(Fill, _) | Read => 8,
        };
        let read_first = match self {
            Write(_, Stores::Normal) => 8,
            _ => 0,
        };
        (named, named + read_first)
    }
}

pub(super) fn steps(counts: usize) -> usize {
    counts * combinations().len()
}

/// Threads that begin a pass together; the first of them says which pass is no more.
struct Rounds {
    threads: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
    ended: AtomicUsize,
}

impl Rounds {
    fn new(threads: usize) -> Self {
        Self { threads, arrived: AtomicUsize::new(0), round: AtomicUsize::new(0), ended: AtomicUsize::new(usize::MAX) }
    }

    /// Waits for all; whether there is another pass.
    fn next(&self, round: &mut usize) -> bool {
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Release);
            self.round.store(*round + 1, Ordering::Release);
        }
        let mut spins = 0_u32;
        while self.round.load(Ordering::Acquire) <= *round {
            spins += 1;
            // A CPU may have to serve two of them.
            match spins % 1000 {
                0 => std::thread::yield_now(),
                _ => std::hint::spin_loop(),
            }
        }
        *round += 1;
        *round <= self.ended.load(Ordering::Acquire)
    }
}

/// One thread's part of the arrays.
struct Own<'a> {
    a: &'a mut [f64],
    b: &'a mut [f64],
    c: &'a mut [f64],
    /// The sum of each slice of `b`, as it was read first.
    sums: [Option<f64>; SLICES],
}

impl Own<'_> {
    /// The first touch is by the thread that uses it.
    fn touch(&mut self) {
        self.a.fill(0.0);
        for (at, (b, c)) in self.b.iter_mut().zip(self.c.iter_mut()).enumerate() {
            (*b, *c) = ((at % 1021) as f64, (at % 509) as f64);
        }
    }

    fn slice(&self) -> usize {
        self.a.len() / SLICES / LANES * LANES
    }

    /// One pass; whether what was read is what was read before.
    fn pass(&mut self, what: Combination, pass: usize) -> bool {
        let length = self.slice();
        let nth = pass % SLICES;
        let at = nth * length..(nth + 1) * length;
        match what {
            Write(kernel, stores) => {
                let (b, c) = (&self.b[at.clone()], &self.c[at.clone()]);
                write(kernel, stores, &mut self.a[at], b, c, S);
                true
            }
            Read => {
                let found = black_box(sum(&self.b[at]));
                *self.sums[nth].get_or_insert(found) == found
            }
        }
    }

    /// Numbers that are not what the kernel makes of the others, of those looked at.
    fn wrong(&self, what: Combination) -> usize {
        let Write(kernel, _) = what else { return 0 };
        let is_wrong = |at: &usize| {
            let (b, c) = (self.b[*at], self.c[*at]);
            let wanted = match kernel {
                Copy => b,
                Scale => S * b,
                Add => b + c,
                Triad => b + S * c,
                Fill => S,
            };
            self.a[*at] != wanted
        };
        let all = (0..SLICES * self.slice()).step_by(LOOKED_AT);
        all.filter(is_wrong).count()
    }
}

/// What one thread read of one combination.
#[derive(Default)]
struct Passes {
    /// Begin and end of each.
    all: Vec<(Ns, Ns)>,
    times: Times,
    wrong: usize,
}

struct Crew<'a> {
    work: &'a Work<'a>,
    is_fresh: bool,
    gate: Gate,
    rounds: Vec<Rounds>,
    window_ns: u64,
}

/// All combinations with every number of threads.
pub(super) fn run(work: &Work<'_>, readings: &mut MemoryReadings) -> Result<(), EngineError> {
    let mut arrays = None;
    for count in &work.counts {
        if work.stop.requested() {
            return Ok(());
        }
        // Who touches a page first decides its node: on several nodes every number of threads has arrays of its own.
        if work.machine.nodes.len() > 1 {
            arrays = None;
        }
        let is_fresh = arrays.is_none();
        let areas = match arrays.take() {
            Some(areas) => areas,
            None => fresh(work)?,
        };
        arrays = Some(with(work, *count, areas, is_fresh, readings)?);
    }
    readings.info.saturation = saturation(&readings.info.bandwidth);
    Ok(())
}

fn fresh(work: &Work<'_>) -> Result<[Area; 3], EngineError> {
    let area = || Area::new(work.sizes.arrays.bytes as usize, work.huge, "an array");
    let one = || area().map_err(refused);
    Ok([one()?, one()?, one()?])
}

fn with(
    work: &Work<'_>,
    count: usize,
    mut areas: [Area; 3],
    is_fresh: bool,
    readings: &mut MemoryReadings,
) -> Result<[Area; 3], EngineError> {
    let all = combinations();
    let crew = Crew {
        work,
        is_fresh,
        gate: Gate::default(),
        rounds: all.iter().map(|_| Rounds::new(count)).collect(),
        window_ns: work.window_ns(SHARE, work.counts.len() * all.len()),
    };
    let [a, b, c] = &mut areas;
    let part = a.floats().len() / count / LANES * LANES;
    let parts = a.floats().chunks_exact_mut(part);
    let parts = parts.zip(b.floats().chunks_exact_mut(part)).zip(c.floats().chunks_exact_mut(part));
    let own = parts.take(count).map(|((a, b), c)| Own { a, b, c, sums: [None; SLICES] });
    let mut each = together(&crew, own.collect())?;
    let huge: Option<u64> = areas.iter().map(Area::huge_bytes).sum();
    let bytes = 3 * work.sizes.arrays.bytes;
    readings.info.got.push(PagesRow {
        pages: word(work.huge).to_owned(),
        what: format!("arrays of {}", many(count as u64, "thread")),
        bytes,
        huge_pct: share(huge, bytes),
    });
    for (nth, what) in all.iter().enumerate() {
        let passes: Vec<Passes> = each.iter_mut().map(|of| std::mem::take(&mut of.1[nth])).collect();
        let numbers = (part / SLICES / LANES * LANES * count) as u64;
        readings.info.bandwidth.extend(row(*what, &passes, numbers));
        for passes in &passes {
            readings.time.elapsed_ns += passes.times.elapsed_ns;
            readings.time.cpu_ns += passes.times.cpu_ns;
            if let Some(delay) = passes.times.run_delay_ns {
                *readings.time.run_delay_ns.get_or_insert(0) += delay;
            }
        }
        let wrong: usize = passes.iter().map(|passes| passes.wrong).sum();
        if wrong > 0 {
            readings.info.verification_errors_count += wrong as u64;
            readings.info.verification_errors.push(format!(
                "{} {}: {wrong} numbers differ from the formula's result",
                what.name(),
                what.stores()
            ));
        }
    }
    readings.info.is_pinned &= each.iter().all(|(is_pinned, _)| *is_pinned);
    Ok(areas)
}

/// A share of bytes, %.
pub(super) fn share(huge: Option<u64>, of: u64) -> Figure {
    match huge {
        Some(huge) => Figure::decimal((100.0 * huge as f64 / of.max(1) as f64).min(100.0)),
        None => Figure::na(crate::conditions::NOT_EXPOSED),
    }
}

/// Every thread with its part: whether it stayed on its CPU, and its passes by combination.
fn together(crew: &Crew<'_>, own: Vec<Own<'_>>) -> Result<Vec<(bool, Vec<Passes>)>, EngineError> {
    let count = own.len();
    std::thread::scope(|scope| {
        let mut all = Vec::with_capacity(count);
        for (index, own) in own.into_iter().enumerate() {
            let name = format!("memory-{index}");
            match threads::spawn(scope, name, move || one(crew, index, own)) {
                Ok(thread) => all.push(thread),
                Err(error) => {
                    crew.gate.open(count, false);
                    return Err(error);
                }
            }
        }
        crew.gate.open(count, true);
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().expect("a loop does not panic");
        Ok(all.into_iter().map(join).collect())
    })
}

fn one(crew: &Crew<'_>, index: usize, mut own: Own<'_>) -> (bool, Vec<Passes>) {
    let is_pinned = pin(crew.work.cpus[index]);
    if !crew.gate.wait() {
        return (is_pinned, Vec::new());
    }
    if crew.is_fresh {
        own.touch();
    }
    let all = combinations().into_iter().zip(&crew.rounds);
    let passes = all.map(|(what, rounds)| {
        if index == 0 {
            let threads = many(rounds.threads as u64, "thread");
            crew.work.meter.next(&format!("{} {} with {threads}", what.name(), what.stores()));
        }
        combination(crew, rounds, index == 0, what, &mut own)
    });
    (is_pinned, passes.collect())
}

/// Passes until the first thread says that the window is over; the first one warms up.
fn combination(crew: &Crew<'_>, rounds: &Rounds, leads: bool, what: Combination, own: &mut Own<'_>) -> Passes {
    let Work { clock, stop, .. } = crew.work;
    let mut passes = Passes::default();
    let mut round = 0;
    let mut before = host::thread_times();
    let mut begun = clock.now_ns();
    while rounds.next(&mut round) {
        if round == 2 {
            before = host::thread_times();
            begun = clock.now_ns();
        }
        let from = clock.now_ns();
        let is_right = own.pass(what, round - 1);
        let to = clock.now_ns();
        passes.wrong += usize::from(!is_right);
        if round > 1 {
            passes.all.push((from, to));
        }
        if leads && is_over(clock, stop, begun + crew.window_ns, passes.all.len()) {
            // Said before this thread arrives at the next round: nobody is beyond it yet.
            rounds.ended.store(round, Ordering::Release);
        }
    }
    let spent = host::thread_times().since(&before);
    passes.times = Times { elapsed_ns: clock.now_ns() - begun, cpu_ns: spent.cpu_ns, run_delay_ns: spent.run_delay_ns };
    if !stop.requested() {
        passes.wrong += own.wrong(what);
    }
    passes
}

fn is_over(clock: &Clock, stop: &Stop, over: Ns, passes: usize) -> bool {
    let enough = passes >= PASSES_LEAST && (clock.now_ns() >= over || passes >= PASSES_MOST);
    enough || stop.requested()
}

/// A pass lasts from its first thread's begin to its last one's end. Nothing where no pass counts.
fn row(what: Combination, each: &[Passes], numbers: u64) -> Option<BandwidthRow> {
    let count = each.iter().map(|passes| passes.all.len()).min()?;
    let (named, bus) = what.bytes();
    let rate = |nth: usize| {
        let begun = each.iter().map(|passes| passes.all[nth].0).min();
        let ended = each.iter().map(|passes| passes.all[nth].1).max();
        let ns = ended.zip(begun).map_or(0, |(ended, begun)| ended - begun);
        (numbers * named) as f64 / ns.max(1) as f64
    };
    let rates: Vec<f64> = (0..count).map(rate).collect();
    let figure = |value: Option<f64>| Figure::known(value, "one pass");
    let middle = median(&rates)?;
    let (elapsed, cpu) = each
        .iter()
        .fold((0, 0), |(elapsed, cpu), passes| (elapsed + passes.times.elapsed_ns, cpu + passes.times.cpu_ns));
    Some(BandwidthRow {
        kernel: what.name().to_owned(),
        stores: what.stores().to_owned(),
        threads_count: each.len() as u64,
        passes_count: count as u64,
        gb_per_s_p50: Figure::decimal(middle),
        gb_per_s_max: figure(rates.iter().copied().reduce(f64::max)),
        bus_gb_per_s_p50: Figure::decimal(middle * (bus as f64 / named as f64)),
        cv_pct: figure((count > 1).then(|| 100.0 * stddev(&rates) / mean(&rates))),
        gb_per_s_half_width: figure(half_width(&rates)),
        given_pct: Figure::decimal(100.0 * cpu as f64 / elapsed.max(1) as f64),
    })
}

/// Of every kernel the fewest threads that reach what any number reaches.
pub(super) fn saturation(rows: &[BandwidthRow]) -> Vec<SaturationRow> {
    let mut found = Vec::new();
    for what in combinations() {
        let of = || rows.iter().filter(|row| row.kernel == what.name() && row.stores == what.stores());
        let rate = |row: &BandwidthRow| row.gb_per_s_p50.value().unwrap_or(0.0);
        let best = of().map(rate).fold(0.0, f64::max);
        let enough = of().find(|row| rate(row) >= SATURATED * best);
        let most = of().map(|row| row.threads_count).max();
        found.extend(enough.zip(most).map(|(row, most)| SaturationRow {
            kernel: row.kernel.clone(),
            stores: row.stores.clone(),
            threads_count: row.threads_count,
            threads_most_count: most,
            gb_per_s_p50: row.gb_per_s_p50.clone(),
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_counts_named_bytes_and_the_bus_carries_the_line_a_store_reads_first() {
        let of = |kernel, stores| Write(kernel, stores).bytes();
        assert_eq!(of(Copy, Stores::Normal), (16, 24));
        assert_eq!(of(Triad, Stores::Normal), (24, 32));
        assert_eq!(of(Fill, Stores::Normal), (8, 16));
        assert_eq!(of(Triad, Stores::Streaming), (24, 24));
        assert_eq!(Read.bytes(), (8, 8));
    }

    #[test]
    fn memory_14_a_pass_lasts_from_the_first_begin_to_the_last_end() {
        let passes = |all: &[(Ns, Ns)]| Passes {
            all: all.to_vec(),
            times: Times { elapsed_ns: 100, cpu_ns: 50, run_delay_ns: None },
            wrong: 0,
        };
        let each = [passes(&[(0, 100), (200, 300), (400, 450)]), passes(&[(10, 200), (210, 280), (400, 420)])];
        // Passes of 200, 100 and 50 ns.
        let row = row(Write(Triad, Stores::Normal), &each, 1000).unwrap();
        assert_eq!(row.gb_per_s_p50, Figure::decimal(240.0));
        assert_eq!(row.gb_per_s_max, Figure::decimal(480.0));
        assert_eq!(row.bus_gb_per_s_p50, Figure::decimal(320.0));
        assert_eq!((row.threads_count, row.passes_count), (2, 3));
        assert_eq!(row.given_pct, Figure::decimal(50.0));
    }

    #[test]
    fn saturation_is_the_fewest_threads_with_nearly_the_best_rate() {
        let row = |threads, rate| BandwidthRow {
            kernel: "read".to_owned(),
            threads_count: threads,
            gb_per_s_p50: Figure::decimal(rate),
            ..BandwidthRow::default()
        };
        let rows = [row(1, 12.0), row(2, 23.0), row(4, 39.0), row(8, 40.0)];
        let found = saturation(&rows);
        assert_eq!((found[0].threads_count, found[0].threads_most_count), (4, 8));
    }

    #[test]
    fn a_number_that_is_not_what_the_formula_makes_is_found() {
        let mut of = [
            vec![0.0; LOOKED_AT * SLICES * LANES],
            vec![0.0; LOOKED_AT * SLICES * LANES],
            vec![0.0; LOOKED_AT * SLICES * LANES],
        ];
        let [a, b, c] = &mut of;
        let mut own = Own { a, b, c, sums: [None; SLICES] };
        own.touch();
        for (a, b) in own.a.iter_mut().zip(own.b.iter()) {
            *a = S * b;
        }
        let what = Write(Scale, Stores::Normal);
        assert_eq!(own.wrong(what), 0);
        own.a[LOOKED_AT] += 1.0;
        assert_eq!(own.wrong(what), 1);
        assert!(own.pass(Read, 3));
        own.b[3 * own.slice()] += 1.0;
        assert!(!own.pass(Read, 3), "other content than before");
    }
}
