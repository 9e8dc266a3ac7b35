//! Page faults: the cost of first touching fresh memory, and of releasing it.

use super::info::FaultRow;
use super::options::word;
use super::{MemoryReadings, Work, refused};
use crate::crew::{Gate, pin};
use assay_block::memory::Area;
use assay_block::{Pages, ThreadUsage};
use assay_measure::clock::Ns;
use assay_measure::record::Figure;
use assay_measure::statistics::median;
use assay_measure::units::many;
use assay_run::engine::EngineError;
use assay_run::threads;

/// The median of so many counts.
const ROUNDS: usize = 3;
/// One write in each: no page is smaller.
const STRIDE: usize = 4096 / 8;

/// One thread and all of them, where that is not the same.
fn counts(work: usize) -> usize {
    work.min(2)
}

pub(super) fn steps(pages: &[Pages], of_counts: usize) -> usize {
    pages.len() * counts(of_counts)
}

/// One round.
struct Round {
    /// From the first thread's begin to the last one's end.
    elapsed_ns: Ns,
    /// Of all threads together.
    busy_ns: Ns,
    faults: u64,
    unmap_ns: Ns,
}

pub(super) fn run(work: &Work<'_>, readings: &mut MemoryReadings) -> Result<(), EngineError> {
    let mut counts = vec![1, work.cpus.len()];
    counts.dedup();
    for pages in work.pages {
        for count in &counts {
            let threads = many(*count as u64, "thread");
            work.meter.next(&format!("first touch in {} pages, {threads}", word(*pages)));
            let mut rounds = Vec::new();
            for _ in 0..ROUNDS {
                if work.stop.requested() {
                    return Ok(());
                }
                rounds.push(round(work, *pages, *count)?);
            }
            readings.info.faults.push(row(work, *pages, *count, &rounds));
        }
    }
    Ok(())
}

fn row(work: &Work<'_>, pages: Pages, count: usize, rounds: &[Round]) -> FaultRow {
    let bytes = work.sizes.fresh_bytes as f64;
    let middle = |of: &dyn Fn(&Round) -> f64| {
        let all: Vec<f64> = rounds.iter().map(of).collect();
        Figure::known(median(&all), "no round")
    };
    let known = |of: &dyn Fn(&Round) -> f64| {
        if rounds.iter().any(|round| round.faults == 0) {
            Figure::na("the kernel counted no faults")
        } else {
            middle(of)
        }
    };
    let ns = |ns: Ns| ns.max(1) as f64;
    FaultRow {
        pages: word(pages).to_owned(),
        threads_count: count as u64,
        page_faults_per_s: known(&|round| round.faults as f64 * 1e9 / ns(round.elapsed_ns)),
        first_touch_gb_per_s: middle(&|round| bytes / ns(round.elapsed_ns)),
        us_per_fault: known(&|round| round.busy_ns as f64 / 1e3 / round.faults.max(1) as f64),
        unmap_gb_per_s: middle(&|round| bytes / ns(round.unmap_ns)),
    }
}

fn round(work: &Work<'_>, pages: Pages, count: usize) -> Result<Round, EngineError> {
    let bytes = work.sizes.fresh_bytes as usize;
    let mut area = Area::new(bytes, pages, "fresh memory").map_err(refused)?;
    let words = area.words();
    let part = words.len().div_ceil(count);
    let gate = Gate::default();
    let each = std::thread::scope(|scope| {
        let mut all = Vec::new();
        for (part, cpu) in words.chunks_mut(part).zip(work.cpus) {
            let gate = &gate;
            let touch = move || {
                pin(*cpu);
                if !gate.wait() {
                    return (0, 0, 0);
                }
                let (faults, begun) = (ThreadUsage::now().minor_faults, work.clock.now_ns());
                part.iter_mut().step_by(STRIDE).for_each(|word| *word = 1);
                let ended = work.clock.now_ns();
                (begun, ended, ThreadUsage::now().minor_faults - faults)
            };
            match threads::spawn(scope, format!("memory-{cpu}"), touch) {
                Ok(thread) => all.push(thread),
                Err(error) => {
                    gate.open(count, false);
                    return Err(error);
                }
            }
        }
        gate.open(all.len(), true);
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().expect("a touch does not panic");
        Ok(all.into_iter().map(join).collect::<Vec<(Ns, Ns, u64)>>())
    })?;
    let begun = each.iter().map(|(begun, ..)| *begun).min().unwrap_or(0);
    let ended = each.iter().map(|(_, ended, _)| *ended).max().unwrap_or(0);
    let from = work.clock.now_ns();
    drop(area);
    Ok(Round {
        elapsed_ns: ended - begun,
        busy_ns: each.iter().map(|(begun, ended, _)| ended - begun).sum(),
        faults: each.iter().map(|(.., faults)| faults).sum(),
        unmap_ns: work.clock.now_ns() - from,
    })
}
