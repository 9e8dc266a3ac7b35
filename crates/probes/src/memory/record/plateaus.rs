//! Where a ladder is flat: what each level of the memory costs, and how large it is by measurement.

use super::super::info::{CacheRow, LadderRow, PlateauRow};
use assay_measure::record::Figure;
use assay_measure::statistics::median;

pub(super) const MEMORY: &str = "memory";
/// A step that is dearer than the one before by more leads off a plateau.
const SLOPE: f64 = 1.12;
/// What still counts as the plateau's own latency.
const WITHIN: f64 = 1.3;
/// A plateau has so many steps at least: one octave.
const STEPS_LEAST: usize = 3;
/// A cache reaches past its size by so much: what does not fit is a small part of the accesses there.
const REACH: f64 = 1.5;

/// All plateaus of the ladders that step by cache lines.
pub(super) fn all(ladder: &[LadderRow], caches: &[CacheRow]) -> Vec<PlateauRow> {
    let mut kinds: Vec<&str> = ladder.iter().map(|row| row.pages.as_str()).collect();
    kinds.dedup();
    let mut found = Vec::new();
    for (nth, pages) in kinds.iter().enumerate() {
        if kinds[..nth].contains(pages) {
            continue;
        }
        let of = |row: &&LadderRow| row.pages == *pages && row.spacing == "lines";
        let steps: Vec<(u64, f64)> =
            ladder.iter().filter(of).filter_map(|row| Some((row.bytes, row.ns_min.value()?))).collect();
        found.extend(named(pages, &flat(&steps), caches, steps.last().map_or(0, |(bytes, _)| *bytes)));
    }
    found
}

/// Runs of steps that cost nearly the same: first step, last step, latency.
fn flat(steps: &[(u64, f64)]) -> Vec<(u64, u64, f64)> {
    let mut runs = Vec::new();
    let mut begun = 0;
    for at in 1..=steps.len() {
        let goes_on =
            steps.get(at).is_some_and(|(_, ns)| *ns < steps[at - 1].1 * SLOPE && *ns < steps[begun].1 * WITHIN);
        if goes_on {
            continue;
        }
        if at - begun >= STEPS_LEAST {
            let all: Vec<f64> = steps[begun..at].iter().map(|(_, ns)| *ns).collect();
            let ns = median(&all).unwrap_or(f64::NAN);
            runs.push((steps[begun].0, steps[at - 1].0, ns));
        }
        begun = at;
    }
    runs
}

/// Gives each run its level: the smallest cache that holds the whole of it, of each cache one; the run that goes to the end of the
/// ladder and beyond all caches is the memory.
fn named(pages: &str, runs: &[(u64, u64, f64)], caches: &[CacheRow], most: u64) -> Vec<PlateauRow> {
    let largest = caches.iter().map(|cache| cache.bytes).max().unwrap_or(0);
    let holder = |to: u64| {
        let holds = caches.iter().filter(|cache| to as f64 <= REACH * cache.bytes as f64);
        holds.min_by_key(|cache| cache.bytes)
    };
    let rows = runs.iter().enumerate().map(|(nth, (from, to, ns))| {
        // A run within a cache that a smaller one is in already is on the way to the next level.
        let near = holder(*to).filter(|cache| {
            let is_it = |(_, to, _): &(u64, u64, f64)| holder(*to).is_some_and(|held| held.name == cache.name);
            !runs[..nth].iter().any(is_it)
        });
        let is_memory = nth > 0 && *to > largest && *to == most;
        let (level, bytes) = match (is_memory, near) {
            (true, _) => (MEMORY.to_owned(), Figure::na("no cache")),
            (_, Some(cache)) => (cache.name.clone(), Figure::Count(cache.bytes)),
            _ => ("?".to_owned(), Figure::na("no cache of its own holds this range")),
        };
        PlateauRow {
            pages: pages.to_owned(),
            level,
            from_bytes: *from,
            to_bytes: *to,
            latency_ns_p50: Figure::decimal(*ns),
            cache_bytes: bytes,
        }
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::sizes::steps;
    use super::*;

    /// A ladder as a chase with so much of each cache sees it: hits by share of what fits (ns of L1, L2, L3, memory).
    fn ladder(caches: [u64; 3], ns: [f64; 4]) -> Vec<LadderRow> {
        let latency = |bytes: u64| {
            let mut left = 1.0;
            let mut sum = 0.0;
            for (cache, ns) in caches.iter().zip(ns) {
                // LRU over a cycle: all or, near the border, some of it.
                let over = bytes as f64 / *cache as f64;
                let hit = (2.0 - over).clamp(0.0, 1.0);
                sum += left * hit * ns;
                left *= 1.0 - hit;
            }
            sum + left * ns[3]
        };
        let row = |bytes: u64| LadderRow {
            pages: "thp".to_owned(),
            spacing: "lines".to_owned(),
            bytes,
            ns_p50: Figure::decimal(latency(bytes)),
            ns_min: Figure::decimal(latency(bytes)),
            ..LadderRow::default()
        };
        steps(1 << 30).into_iter().map(row).collect()
    }

    fn caches(bytes: [u64; 3]) -> Vec<CacheRow> {
        let of = ["L1d", "L2", "L3"].iter().zip(bytes);
        of.map(|(name, bytes)| CacheRow { name: (*name).to_owned(), bytes, count: 1, shared_by: String::new() })
            .collect()
    }

    #[test]
    fn memory_10_plateaus_are_found_within_a_factor_of_the_sizes_and_named_after_them() {
        let sizes = [48 << 10, 2 << 20, 32 << 20];
        let found = all(&ladder(sizes, [1.5, 5.0, 25.0, 110.0]), &caches(sizes));
        let names: Vec<&str> = found.iter().map(|row| row.level.as_str()).collect();
        assert_eq!(names, ["L1d", "L2", "L3", MEMORY]);
        for (row, size) in found.iter().zip(sizes) {
            let ratio = row.to_bytes as f64 / size as f64;
            assert!((1.0 / 1.5..=1.5).contains(&ratio), "{row:?}");
        }
        assert_eq!(found[3].latency_ns_p50, Figure::decimal(110.0));
    }

    /// As a guest saw it: flat to 512 KiB in a cache of 2 MiB, and from there in what neighbours left of the last cache.
    #[test]
    fn a_plateau_is_named_by_the_cache_that_holds_the_whole_of_it() {
        let caches = caches([32 << 10, 2 << 20, 260 << 20]);
        let of = |runs: &[(u64, u64, f64)]| -> Vec<String> {
            named("4k", runs, &caches, 1 << 30).into_iter().map(|row| row.level).collect()
        };
        let runs = [
            (4 << 10, 24 << 10, 1.95),
            (64 << 10, 512 << 10, 6.1),
            (2 << 20, 4 << 20, 40.9),
            (512 << 20, 1 << 30, 468.0),
        ];
        assert_eq!(of(&runs), ["L1d", "L2", "L3", MEMORY]);
        // What ends at twice a cache is not of it, and a second flat part of one cache is no level.
        assert_eq!(of(&[(2 << 20, 4 << 20, 40.9), (8 << 20, 16 << 20, 60.0)]), ["L3", "?"]);
    }

    #[test]
    fn a_last_cache_that_is_there_in_part_ends_where_it_does() {
        // The kernel of a guest claims 480 MiB; what it gets of it is 32 MiB.
        let told = [48 << 10, 2 << 20, 480 << 20];
        let real = [48 << 10, 2 << 20, 32 << 20];
        let found = all(&ladder(real, [1.5, 5.0, 25.0, 110.0]), &caches(told));
        let of = |level: &str| found.iter().filter(|row| row.level == level).count();
        assert_eq!((of("L1d"), of("L2"), of("L3")), (1, 1, 1), "{found:?}");
        assert!(found.iter().any(|row| row.level == "L3" && row.to_bytes <= 48 << 20), "{found:?}");
        assert!(all(&[], &caches(told)).is_empty());
    }
}
