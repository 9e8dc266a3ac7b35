//! The load: workers write every word of their memory with a value that its address decides, and read it back much later.

use super::info::Soaked;
use super::options::Soak;
use super::{MemoryReadings, Times};
use crate::load::{Labour, Load};
use assay_block::Pages;
use assay_block::memory::{Area, Kernel, Stores, write};
use assay_measure::clock::Clock;
use assay_measure::locked::locked;
use assay_measure::prng::scramble;
use assay_measure::record::Figure;
use assay_run::engine::EngineError;
use assay_run::probe::Steps;
use assay_run::stop::Stop;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Bytes of a turn: some tens of microseconds.
const TURN: usize = 256 << 10;
/// An operation.
const OP: usize = 4096;
/// Wrong words are counted by so many bytes of a worker's memory.
const REGION: usize = 16 << 20;
/// Which word the hook of tests spoils, and where in it.
const SPOILED: (usize, u64) = (77, 1 << 5);

/// Workers that share nothing but where they count what is wrong.
struct Verifier {
    worker_bytes: usize,
    flips: bool,
    /// Wrong words by worker and region.
    wrong: Mutex<BTreeMap<(u64, u64), u64>>,
}

/// One worker's memory.
struct Own {
    worker: usize,
    /// `None` where the kernel did not give it.
    area: Result<Area, String>,
    /// Buffer for content that is written around the caches.
    pattern: Area,
    /// How often all memory was written, or read back.
    sweep: usize,
    at: usize,
    is_spoiled: bool,
}

/// What a word holds in a round: its own address and the round decide every bit; every other round is the complement of
/// the one before, so that each bit is both 0 and 1.
fn value(address: u64, round: usize) -> u64 {
    let value = scramble(address ^ (round as u64 / 2).rotate_left(48));
    match round % 2 {
        0 => value,
        _ => !value,
    }
}

impl Labour for Verifier {
    type Own = Own;

    fn own(&self, worker: usize) -> Own {
        let area = |bytes| Area::new(bytes, Pages::Base, "a worker").map_err(|e| e.to_string());
        Own {
            worker,
            area: area(self.worker_bytes),
            pattern: Area::new(TURN, Pages::Base, "a pattern").expect("a quarter of a MiB"),
            sweep: 0,
            at: 0,
            is_spoiled: false,
        }
    }

    /// By turns a sweep of writes and one of reads; every other round of both around the caches.
    fn turn(&self, own: &mut Own, _: usize) -> (u64, Result<(), String>) {
        let area = match &mut own.area {
            Ok(area) => area,
            Err(why) => {
                // Said once a while, not in a loop as quick as the CPU.
                std::thread::sleep(Duration::from_millis(10));
                return (0, Err(why.clone()));
            }
        };
        let words = area.words();
        let length = (TURN / 8).min(words.len() - own.at);
        let base = words.as_ptr() as u64;
        let address = base + own.at as u64 * 8;
        let round = own.sweep / 2;
        let mut result = Ok(());
        if own.sweep.is_multiple_of(2) {
            fill(area, own.at, length, address, round, &mut own.pattern);
            if self.flips && own.worker == 0 && !own.is_spoiled {
                area.words()[own.at + SPOILED.0] ^= SPOILED.1;
                own.is_spoiled = true;
            }
        } else {
            let piece = &words[own.at..own.at + length];
            result = self.verify(own.worker, own.at, piece, address, round);
        }
        own.at += length;
        if own.at == self.worker_bytes / 8 {
            own.at = 0;
            own.sweep += 1;
        }
        ((length * 8 / OP) as u64, result)
    }
}

/// Writes a piece: through the caches, or in the next pair of rounds around them.
fn fill(area: &mut Area, at: usize, length: usize, address: u64, round: usize, pattern: &mut Area) {
    let put = |words: &mut [u64]| {
        for (nth, word) in words.iter_mut().enumerate() {
            *word = value(address + nth as u64 * 8, round);
        }
    };
    if (round / 2).is_multiple_of(2) {
        put(&mut area.words()[at..at + length]);
        return;
    }
    put(&mut pattern.words()[..length]);
    let from = &pattern.floats()[..length];
    let to = &mut area.floats()[at..at + length];
    write(Kernel::Copy, Stores::Streaming, to, from, from, 0.0);
}

impl Verifier {
    fn verify(&self, worker: usize, at: usize, piece: &[u64], address: u64, round: usize) -> Result<(), String> {
        let expected = |nth: usize| value(address + nth as u64 * 8, round);
        let is_wrong = |(nth, found): &(usize, &u64)| **found != expected(*nth);
        let Some((first, found)) = piece.iter().enumerate().find(is_wrong) else {
            return Ok(());
        };
        let mut by_region = locked(&self.wrong);
        let mut count = 0;
        for (nth, _) in piece.iter().enumerate().filter(is_wrong) {
            let region = ((at + nth) * 8 / REGION) as u64;
            *by_region.entry((worker as u64, region)).or_default() += 1;
            count += 1;
        }
        let expected = expected(first);
        let more = match count {
            1 => String::new(),
            count => format!("; {} more in the same 256 KiB", count - 1),
        };
        Err(format!(
            "address {:#x} of worker {worker}: expected {expected:#018x}, found {found:#018x}, xor {:#x}{more}",
            address + first as u64 * 8,
            expected ^ found
        ))
    }
}

/// Corrected and uncorrected errors that memory controllers count, since boot; `None` where none is driven.
fn edac(root: &Path) -> Option<(u64, u64)> {
    let controllers = std::fs::read_dir(root.join("sys/devices/system/edac/mc")).ok()?;
    let mut all = None;
    for controller in controllers.flatten() {
        let count = |name: &str| -> Option<u64> {
            let text = std::fs::read_to_string(controller.path().join(name)).ok()?;
            text.trim().parse().ok()
        };
        if let Some((corrected, not)) = count("ce_count").zip(count("ue_count")) {
            let sum = all.get_or_insert((0, 0));
            *sum = (sum.0 + corrected, sum.1 + not);
        }
    }
    all
}

/// Works until the time is over or somebody stops it.
pub(super) fn run(
    soak: &Soak,
    cpus: &[u32],
    time: Duration,
    clock: &Clock,
    stop: &Stop,
    steps: &dyn Steps,
    readings: &mut MemoryReadings,
) -> Result<(), EngineError> {
    let verifier = Verifier { worker_bytes: soak.worker_bytes as usize, flips: soak.flips, wrong: Mutex::default() };
    let load = Load { workers: soak.workers, labour: &verifier, cpus, time, clock, stop };
    let before = edac(Path::new("/"));
    let found = load.run(steps)?;
    let counted = before.zip(edac(Path::new("/")));
    let risen = |of: fn((u64, u64)) -> u64| match counted {
        Some((before, after)) => Figure::Count(of(after).saturating_sub(of(before))),
        None => Figure::na(crate::conditions::NOT_EXPOSED),
    };
    let info = &mut readings.info;
    info.is_pinned = load.is_pinned();
    if let Some(found) = &found {
        let had = found.real_ns * found.workers.min(cpus.len() as u64);
        readings.time =
            Times { elapsed_ns: had, cpu_ns: found.user_ns + found.system_ns, run_delay_ns: found.run_delay_ns };
        info.verification_errors.clone_from(&found.wrong);
    }
    let wrong = verifier.wrong.into_inner().unwrap_or_else(PoisonError::into_inner);
    let words: u64 = wrong.values().sum();
    // A worker without memory is an error too, of no word.
    let others = found.as_ref().map_or(0, |found| found.errors);
    info.verification_errors_count = words.max(others);
    info.soaked = Some(Soaked {
        worker_bytes: soak.worker_bytes,
        total_bytes: soak.total_bytes(),
        regions: wrong.into_iter().map(|((worker, region), words)| (worker, region, words)).collect(),
        edac_corrected_count: risen(|(corrected, _)| corrected),
        edac_uncorrected_count: risen(|(_, not)| not),
    });
    info.soak = found.as_ref().map(crate::load::LoadInfo::of);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_a_word_is_both_0_and_1_and_words_differ() {
        let (even, odd) = (value(0x1000, 4), value(0x1000, 5));
        assert_eq!(even ^ odd, u64::MAX);
        assert_ne!(value(0x1000, 4), value(0x1008, 4));
        assert_ne!(value(0x1000, 4), value(0x1000, 6));
    }

    #[test]
    fn memory_15_what_is_written_is_read_back_and_one_flipped_bit_is_told_with_address_and_xor() {
        let verifier = |flips| Verifier { worker_bytes: 3 * TURN + OP, flips, wrong: Mutex::default() };
        let good = verifier(false);
        let mut own = good.own(0);
        let sweep = 4;
        let mut ops = 0;
        // Both kinds of stores, values and complements.
        for turn in 0..16 * sweep {
            let (done, result) = good.turn(&mut own, turn);
            result.unwrap();
            ops += done;
        }
        assert_eq!(own.sweep, 16);
        assert_eq!(ops, 16 * ((3 * TURN + OP) / OP) as u64);
        let bad = verifier(true);
        let mut own = bad.own(0);
        let results: Vec<_> = (0..2 * sweep).map(|turn| bad.turn(&mut own, turn).1).collect();
        let wrong: Vec<&String> = results.iter().filter_map(|r| r.as_ref().err()).collect();
        let [wrong] = wrong[..] else {
            panic!("{results:?}");
        };
        let base = own.area.as_mut().unwrap().words().as_ptr() as u64;
        let address = format!("address {:#x} of worker 0", base + 77 * 8);
        assert!(wrong.starts_with(&address), "{wrong}");
        assert!(wrong.ends_with("xor 0x20"), "{wrong}");
        let counted = bad.wrong.into_inner().unwrap();
        assert_eq!(counted, BTreeMap::from([((0, 0), 1)]));
    }

    #[test]
    fn counters_of_memory_controllers_are_summed_and_absent_ones_are_not_zero() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(edac(dir.path()), None);
        for (controller, corrected) in [("mc0", "3"), ("mc1", "4")] {
            let of = dir.path().join("sys/devices/system/edac/mc").join(controller);
            std::fs::create_dir_all(&of).unwrap();
            std::fs::write(of.join("ce_count"), corrected).unwrap();
            std::fs::write(of.join("ue_count"), "1\n").unwrap();
        }
        assert_eq!(edac(dir.path()), Some((7, 2)));
    }
}
