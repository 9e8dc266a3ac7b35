//! What follows from the figures of memory, in plain words. The rules, their thresholds and where they come from are
//! listed in docs/design/memory.md.

use super::super::info::{FaultRow, LadderRow, MemoryInfo};
use super::{UNSTEADY_PCT, given, huge, latency};
use assay_measure::record::Advice;
use assay_measure::units::{fixed, size};

/// From this gain on, huge pages are worth the work of configuring them.
const GAIN: f64 = 1.15;
/// Huge pages that were asked for: fewer is a refusal, %.
const REALLY_HUGE_PCT: f64 = 90.0;
/// A cache that ends so far from where it should is not the machine's own.
const DISAGREES: f64 = 2.0;
/// A latency beside readers that is so many times the idle one.
const LOADED: f64 = 2.0;
/// How far a ladder may fall: below, something else took part in the larger or the smaller step.
const FALLS: f64 = 0.95;

/// What makes the figures doubtful.
pub(super) fn warnings(info: &MemoryInfo) -> Vec<String> {
    let mut found = Vec::new();
    if info.verification_errors_count > 0 {
        found.push(format!(
            "{} words were not what had been written: this memory, its CPU or what lies between them has a fault. Do \
             not trust any result of this host; take it out of service.",
            info.verification_errors_count
        ));
    }
    if !info.is_optimised {
        found.push(
            "This assay was built without optimisation: portable loops do not describe the memory. Use a release \
             build (cargo build --release)."
                .to_owned(),
        );
    }
    if info.mode == "soak" {
        return found;
    }
    if !info.arrays.is_met {
        found.push(format!(
            "The rule for array sizes could not be met: it asks for {} each (four times the last-level caches that the \
             kernel reports, and 64 MiB), the arrays had {}, because {}. Part of the traffic may have come from the \
             caches, so bandwidths may be too high.",
            size(info.arrays.wanted_bytes),
            size(info.arrays.bytes),
            info.arrays.why
        ));
    }
    if !info.is_pinned {
        found.push(
            "assay could not keep threads on their CPUs: a figure for one CPU may come from several CPUs.".to_owned(),
        );
    }
    found.extend(given(info));
    found.extend(falls(info));
    found
}

/// Steps that are quicker than a smaller one: something else took part.
fn falls(info: &MemoryInfo) -> Option<String> {
    let lines = || info.ladder.iter().filter(|row| row.spacing == "lines");
    let fell = lines().zip(lines().skip(1)).filter(|(small, large)| {
        let is_next = small.pages == large.pages;
        // The quickest batch of each: a disturbance of one batch makes no step dearer.
        let ratio = large.ns_min.value().zip(small.ns_min.value());
        is_next && ratio.is_some_and(|(large, small)| large < FALLS * small)
    });
    let fell: Vec<(&LadderRow, &LadderRow)> = fell.collect();
    let (_, first) = fell.first()?;
    let steps = lines().count();
    Some(format!(
        "{} of {steps} steps of the latency ladder are more than 5 % quicker than the step before (first at {} in {} \
         pages), which a larger memory cannot be: others used the same caches meanwhile.",
        fell.len(),
        size(first.bytes),
        first.pages
    ))
}

/// All findings, in the order they are read.
pub(super) fn advise(info: &MemoryInfo) -> Vec<Advice> {
    if info.mode == "soak" {
        return corrected(info).into_iter().collect();
    }
    let rules: [fn(&MemoryInfo) -> Option<Advice>; 6] =
        [huge_pages, not_huge, false_cache, loaded, fresh_memory, unsteady];
    rules.iter().filter_map(|rule| rule(info)).collect()
}

/// M1: what a large buffer cache gains from huge pages.
fn huge_pages(info: &MemoryInfo) -> Option<Advice> {
    let pages = huge(info)?;
    if not_huge(info).is_some() {
        return None;
    }
    let (small, large) = (latency(info, "4k").value()?, latency(info, pages).value()?);
    let gain = small / large;
    let text = format!(
        "Huge pages make a dependent access beyond the caches {} times as quick ({} ns instead of {} ns): back the \
         buffer cache of a database (SGA, shared_buffers, buffer pool) with them.",
        fixed(gain, 2),
        fixed(large, 0),
        fixed(small, 0)
    );
    let evidence = [("small_ns", small), ("huge_ns", large), ("gain_ratio", gain)];
    (gain >= GAIN).then(|| Advice::of("M1", gain >= 1.5, text, &evidence))
}

/// M2: asking is not getting.
fn not_huge(info: &MemoryInfo) -> Option<Advice> {
    let asked = info.got.iter().filter(|row| row.pages != "4k");
    let known = asked.filter_map(|row| Some((row, row.huge_pct.value()?)));
    let (row, pct) = known.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let why = match info.transparent_huge_pages.as_str() {
        "never" if row.pages == "thp" => " The kernel is set to give none \
            (/sys/kernel/mm/transparent_hugepage/enabled is never)."
            .to_owned(),
        _ => " Memory may be fragmented: reserve a pool at boot, where a database needs them.".to_owned(),
    };
    let text = format!(
        "Of the memory for {} only {} % became huge pages ({} asked for).{why} Figures for huge pages are those of \
         the mixture.",
        row.what,
        fixed(pct, 0),
        row.pages
    );
    (pct < REALLY_HUGE_PCT).then(|| Advice::of("M2", true, text, &[("huge_pct", pct)]))
}

/// M3: a cache that the kernel tells of and the ladder does not find.
fn false_cache(info: &MemoryInfo) -> Option<Advice> {
    let pages = huge(info).unwrap_or("4k");
    let last = info.caches.last().filter(|_| info.caches.len() > 1)?;
    let of = || info.plateaus.iter().filter(|row| row.pages == pages);
    let reached = info.ladder.iter().filter(|row| row.pages == pages).map(|row| row.bytes).max()?;
    if of().any(|row| row.level == last.name) || reached < 2 * last.bytes {
        return None;
    }
    // What ends far below where the cache should end; the caches before it are known.
    let seen = of().rfind(|row| row.level == "?" && row.to_bytes < last.bytes);
    let end = seen.map(|row| row.to_bytes);
    if end.is_some_and(|end| last.bytes as f64 / (end as f64) < DISAGREES) {
        return None;
    }
    let found = match end {
        Some(end) => format!("the latency leaves its flat part at {}", size(end)),
        None => "the latency has no flat part for it".to_owned(),
    };
    let text = format!(
        "The kernel reports an {} of {}, but {found}: this machine has a share of a cache that others use too, or the \
         hypervisor reports another one. Do not use that cache size for sizing.",
        last.name,
        size(last.bytes)
    );
    Some(Advice::of("M3", false, text, &[("reported_bytes", last.bytes as f64)]))
}

/// M4: what an access costs while others use the memory.
fn loaded(info: &MemoryInfo) -> Option<Advice> {
    let idle = info.loaded.first()?.loaded_latency_ns_p50.value()?;
    let row = info.loaded.last()?;
    let (busy, rate) = (row.loaded_latency_ns_p50.value()?, row.gb_per_s.value()?);
    let text = format!(
        "Beside {} reader{} ({} GB/s) an access takes {} ns instead of {} ns: scans of other sessions slow index \
         lookups by that much.",
        row.readers_count,
        if row.readers_count == 1 { "" } else { "s" },
        fixed(rate, 1),
        fixed(busy, 0),
        fixed(idle, 0)
    );
    let evidence = [("idle_ns", idle), ("loaded_ns", busy)];
    (busy >= LOADED * idle).then(|| Advice::of("M4", false, text, &evidence))
}

/// M5: fresh memory is dear in small pages.
fn fresh_memory(info: &MemoryInfo) -> Option<Advice> {
    let of = |is: &dyn Fn(&&FaultRow) -> bool| {
        let mut rows = info.faults.iter().filter(|row| row.threads_count == 1);
        rows.find(|row| is(row))
    };
    let small = of(&|row| row.pages == "4k")?;
    let large = of(&|row| row.pages != "4k")?;
    let (rate, huge) = (small.first_touch_gb_per_s.value()?, large.first_touch_gb_per_s.value()?);
    let text = format!(
        "First touch of fresh memory takes {} s for each GiB in 4 KiB pages and {} s in huge pages: a database that \
         allocates its caches at start, or a session that sorts, waits that long.",
        fixed(1.073_741_824 / rate, 2),
        fixed(1.073_741_824 / huge, 2)
    );
    let evidence = [("small_gb_per_s", rate), ("huge_gb_per_s", huge)];
    (huge >= 2.0 * rate).then(|| Advice::of("M5", false, text, &evidence))
}

/// M6: passes that do not agree.
fn unsteady(info: &MemoryInfo) -> Option<Advice> {
    let cv = |row: &&super::super::info::BandwidthRow| row.cv_pct.value().unwrap_or(0.0);
    let count = info.bandwidth.iter().filter(|row| cv(row) > UNSTEADY_PCT).count();
    let worst = info.bandwidth.iter().max_by(|a, b| cv(a).total_cmp(&cv(b)))?;
    let text = format!(
        "{count} of {} bandwidths varied by more than 5 % between passes, {} most ({} %): memory is shared with other \
         guests or processes. Measure again on a quiet host, or with a longer --time, before you compare figures.",
        info.bandwidth.len(),
        worst.kernel,
        fixed(cv(&worst), 1)
    );
    let evidence = [("cv_pct_max", cv(&worst)), ("unsteady_count", count as f64)];
    (count > 0).then(|| Advice::of("M6", false, text, &evidence))
}

/// M7: errors that nobody would have seen.
fn corrected(info: &MemoryInfo) -> Option<Advice> {
    let soaked = info.soaked.as_ref()?;
    let count = |figure: &assay_measure::record::Figure| figure.value().unwrap_or(0.0);
    let (corrected, not) = (count(&soaked.edac_corrected_count), count(&soaked.edac_uncorrected_count));
    let text = format!(
        "Memory controllers corrected {} errors during the load, and could not correct {}: a module is failing. \
         Replace it before a database moves in.",
        fixed(corrected, 0),
        fixed(not, 0)
    );
    let evidence = [("corrected_count", corrected), ("uncorrected_count", not)];
    (corrected + not > 0.0).then(|| Advice::of("M7", true, text, &evidence))
}
