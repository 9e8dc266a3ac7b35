//! What follows from the figures of memory, in plain words.

use super::super::info::{FaultRow, LadderRow, MemoryInfo};
use super::super::sizes::{ARRAY_LEAST, TIMES_LAST_LEVEL};
use super::{UNSTEADY_PCT, given, huge, latency};
use crate::conditions::OURS_PCT;
use crate::rules;
use assay_measure::record::{Advice, Figure};
use assay_measure::rule::Rule;
use assay_measure::units::{fixed, many, size};

/// What judges by a rule.
type Judge = fn(&MemoryInfo) -> Option<Advice>;

/// The rules of a measurement with what judges them, in the order in which findings are read.
const RULES: &[(Rule, Judge)] = &[
    (WRONG_WORDS, wrong_words),
    (NOT_OPTIMISED, not_optimised),
    (SMALL_ARRAYS, small_arrays),
    (NOT_PINNED, |info| rules::not_pinned(&NOT_PINNED, info.is_pinned)),
    (NOT_GIVEN, not_given),
    (LADDER_FALLS, ladder_falls),
    (HUGE_PAGES, huge_pages),
    (NOT_HUGE, not_huge),
    (FALSE_CACHE, false_cache),
    (LOADED_LATENCY, loaded_latency),
    (FRESH_MEMORY, fresh_memory),
    (UNSTEADY, unsteady),
];
/// Those of a load, which measures nothing.
const OF_A_LOAD: &[(Rule, Judge)] =
    &[(WRONG_WORDS, wrong_words), (NOT_OPTIMISED, not_optimised), (MODULE_FAILS, module_fails)];

/// The rules of memory.
pub(super) fn rules() -> Vec<Rule> {
    [Rule::all(RULES), vec![MODULE_FAILS]].concat()
}

/// All findings, in the order they are read.
pub(super) fn advise(info: &MemoryInfo) -> Vec<Advice> {
    let rules = if info.mode == "soak" { OF_A_LOAD } else { RULES };
    rules.iter().filter_map(|(_, judge)| judge(info)).collect()
}

/// From this gain on, huge pages are worth the work of configuring them.
const GAIN: f64 = 1.15;
const GAIN_HIGH: f64 = 1.5;
/// Huge pages that were asked for: fewer is a refusal, %.
const REALLY_HUGE_PCT: f64 = 90.0;
/// A cache that ends so far from where it should is not the machine's own.
const DISAGREES: f64 = 2.0;
/// The ladder has to reach so many times the last cache.
const REACHED: u64 = 2;
/// Huge pages that are touched so many times as quickly.
const TOUCHED: f64 = 2.0;
/// A latency beside readers that is so many times the idle one.
const LOADED: f64 = 2.0;
/// How far a ladder may fall: below, something else took part in the larger or the smaller step.
const FALLS: f64 = 0.95;

const WRONG_WORDS: Rule = Rule {
    id: "M8",
    title: "Words were wrong",
    changes_figures: true,
    fires_when: || "A word read back is not what had been written; always high".to_owned(),
    why: "This memory, its CPU or what lies between them has a fault.",
    what_to_do: "Do not trust any result of this host; take it out of service.",
    cannot_judge_when: "Never: every word is checked.",
    source: "Decided here.",
};

fn wrong_words(info: &MemoryInfo) -> Option<Advice> {
    let count = info.verification_errors_count;
    (count > 0).then(|| {
        let text = format!("Words that were not what had been written: {count}.");
        WRONG_WORDS.explain(true, text, &[("verification_errors_count", count as f64)])
    })
}

const NOT_OPTIMISED: Rule = rules::of_the_build("M9", "Portable loops do not describe the memory.");

fn not_optimised(info: &MemoryInfo) -> Option<Advice> {
    rules::not_optimised(&NOT_OPTIMISED, info.is_optimised)
}

const SMALL_ARRAYS: Rule = Rule {
    id: "M10",
    title: "The arrays are smaller than the rule asks for",
    changes_figures: true,
    fires_when: || {
        format!(
            "An array is smaller than {TIMES_LAST_LEVEL} times the last-level caches that the kernel reports, or than {}",
            size(ARRAY_LEAST)
        )
    },
    why: "Part of the traffic may have come from the caches, so bandwidths may be too high.",
    what_to_do: "Give the test more memory or a longer --time.",
    cannot_judge_when: "Never: without reported caches the least size counts.",
    source: "The rule of STREAM for the size of its arrays.",
};

fn small_arrays(info: &MemoryInfo) -> Option<Advice> {
    let arrays = &info.arrays;
    (!arrays.is_met).then(|| {
        let text = format!(
            "The rule for array sizes could not be met: it requires {} each, but the arrays had {}, because {}.",
            size(arrays.wanted_bytes),
            size(arrays.bytes),
            arrays.why
        );
        let evidence = [("wanted_bytes", arrays.wanted_bytes as f64), ("array_bytes", arrays.bytes as f64)];
        SMALL_ARRAYS.explain(false, text, &evidence)
    })
}

const NOT_PINNED: Rule = rules::of_pinning("M11");

const NOT_GIVEN: Rule = Rule {
    id: "M12",
    title: "The threads were not given all of their time",
    changes_figures: true,
    fires_when: || format!("The threads had a CPU for less than {OURS_PCT} % of their passes"),
    why: "This lowers the median of the passes, and the best pass less.",
    what_to_do: "Measure again on a host without other load.",
    cannot_judge_when: "No pass was timed: then the rule is silent.",
    source: "Decided here.",
};

fn not_given(info: &MemoryInfo) -> Option<Advice> {
    Some(NOT_GIVEN.explain(false, given(info)?, &[("given_pct", info.conditions.given_pct.value()?)]))
}

const LADDER_FALLS: Rule = Rule {
    id: "M13",
    title: "The latency ladder falls",
    changes_figures: true,
    fires_when: || {
        format!(
            "A step of the latency ladder is more than {} % faster than the smaller one before it, by their fastest batches",
            fell_pct()
        )
    },
    why: "A larger memory cannot be faster: others used the same caches during the measurement.",
    what_to_do: "Measure again on a quiet host.",
    cannot_judge_when: "Never: without two steps the rule is silent.",
    source: "Decided here.",
};

fn fell_pct() -> String {
    fixed(100.0 * (1.0 - FALLS), 0)
}

fn ladder_falls(info: &MemoryInfo) -> Option<Advice> {
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
    let text = format!(
        "{} of {steps} steps of the latency ladder are more than {} % faster than the step before (first at {} in {} \
         pages).",
        fell.len(),
        fell_pct(),
        size(first.bytes),
        first.pages
    );
    Some(LADDER_FALLS.explain(false, text, &[("fallen_steps_count", fell.len() as f64)]))
}

const HUGE_PAGES: Rule = Rule {
    id: "M1",
    title: "Huge pages pay",
    changes_figures: false,
    fires_when: || {
        format!(
            "A dependent access beyond the caches takes at least {GAIN} times as long in 4 KiB pages as in huge pages; high from {GAIN_HIGH} times"
        )
    },
    why: "A large buffer cache is accessed like that.",
    what_to_do: "Back the buffer cache of a database (SGA, shared_buffers, buffer pool) with huge pages.",
    cannot_judge_when: "Huge pages did not come (M2) or were not measured: then the rule is silent.",
    source: "Decided here.",
};

fn huge_pages(info: &MemoryInfo) -> Option<Advice> {
    let pages = huge(info)?;
    if not_huge(info).is_some() {
        return None;
    }
    let (small, large) = (latency(info, "4k").value()?, latency(info, pages).value()?);
    let gain = small / large;
    let text = format!(
        "Huge pages make a dependent access beyond the caches {} times as fast ({} ns instead of {} ns).",
        fixed(gain, 2),
        fixed(large, 0),
        fixed(small, 0)
    );
    // The two were measured one after the other: whoever had no CPU in one of them only has a wrong ratio.
    let text = match given(info) {
        Some(given) => format!(
            "{text} {given} The two latencies were measured one after the other, so the ratio may be off by that."
        ),
        None => text,
    };
    let evidence = [("small_ns", small), ("huge_ns", large), ("gain_ratio", gain)];
    (gain >= GAIN).then(|| HUGE_PAGES.advise(gain >= GAIN_HIGH, text, &evidence))
}

const NOT_HUGE: Rule = Rule {
    id: "M2",
    title: "Pages asked for did not become huge",
    changes_figures: false,
    fires_when: || {
        format!("Less than {REALLY_HUGE_PCT} % of the memory for which huge pages were asked became huge; always high")
    },
    why: "Figures for huge pages describe the mixture.",
    what_to_do: "If a database needs huge pages, let the kernel provide them, or reserve a pool at boot.",
    cannot_judge_when: "The kernel does not tell which pages it gave: then the rule is silent.",
    source: "Decided here.",
};

fn not_huge(info: &MemoryInfo) -> Option<Advice> {
    let asked = info.got.iter().filter(|row| row.pages != "4k");
    let known = asked.filter_map(|row| Some((row, row.huge_pct.value()?)));
    let (row, pct) = known.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let why = match info.transparent_huge_pages.as_str() {
        "never" if row.pages == "thp" => {
            "The kernel is set to provide none (/sys/kernel/mm/transparent_hugepage/enabled is never)."
        }
        _ => "Memory may be fragmented.",
    };
    let text = format!(
        "Only {} % of the memory for {} became huge pages ({} requested). {why}",
        fixed(pct, 0),
        row.what,
        row.pages
    );
    (pct < REALLY_HUGE_PCT).then(|| NOT_HUGE.explain(true, text, &[("huge_pct", pct)]))
}

const FALSE_CACHE: Rule = Rule {
    id: "M3",
    title: "The last cache is not where the kernel reports it",
    changes_figures: false,
    fires_when: || {
        format!(
            "A ladder to at least {REACHED} times the last cache that the kernel reports has no flat part for it, or one that ends at its size divided by {DISAGREES} or below"
        )
    },
    why: "This machine has a share of a cache that others use too, or the hypervisor reports another cache.",
    what_to_do: "Do not size anything by the reported size.",
    cannot_judge_when: "The ladder is too short, or only one cache is reported: then the rule is silent.",
    source: "Decided here.",
};

fn false_cache(info: &MemoryInfo) -> Option<Advice> {
    let pages = huge(info).unwrap_or("4k");
    let last = info.caches.last().filter(|_| info.caches.len() > 1)?;
    let of = || info.plateaus.iter().filter(|row| row.pages == pages);
    let reached = info.ladder.iter().filter(|row| row.pages == pages).map(|row| row.bytes).max()?;
    if reached < REACHED * last.bytes {
        return None;
    }
    // What ends far below where the cache should end; the caches before it are known.
    let seen = of().rfind(|row| row.level == last.name || row.level == "?" && row.to_bytes < last.bytes);
    let end = seen.map(|row| row.to_bytes);
    if end.is_some_and(|end| last.bytes as f64 / (end as f64) < DISAGREES) {
        return None;
    }
    let found = match end {
        Some(end) => format!("the latency leaves its flat part at {}", size(end)),
        None => "the latency has no flat part for it".to_owned(),
    };
    let text = format!("The kernel reports an {} of {}, but {found}.", last.name, size(last.bytes));
    Some(FALSE_CACHE.explain(false, text, &[("reported_bytes", last.bytes as f64)]))
}

const LOADED_LATENCY: Rule = Rule {
    id: "M4",
    title: "An access beside readers is slow",
    changes_figures: false,
    fires_when: || format!("An access beside the most readers takes at least {LOADED} times the idle one"),
    why: "Scans of other sessions slow index lookups by that much.",
    what_to_do: "Run scans at another time than index lookups, or on another NUMA node.",
    cannot_judge_when: "Readers were not measured: then the rule is silent.",
    source: "Decided here.",
};

fn loaded_latency(info: &MemoryInfo) -> Option<Advice> {
    let idle = info.loaded.first()?.loaded_latency_ns_p50.value()?;
    let row = info.loaded.last()?;
    let (busy, rate) = (row.loaded_latency_ns_p50.value()?, row.gb_per_s.value()?);
    let text = format!(
        "Beside {} ({} GB/s) an access takes {} ns instead of {} ns.",
        many(row.readers_count, "reader"),
        fixed(rate, 1),
        fixed(busy, 0),
        fixed(idle, 0)
    );
    let evidence = [("idle_ns", idle), ("loaded_ns", busy)];
    (busy >= LOADED * idle).then(|| LOADED_LATENCY.explain(false, text, &evidence))
}

const FRESH_MEMORY: Rule = Rule {
    id: "M5",
    title: "Fresh memory is expensive in small pages",
    changes_figures: false,
    fires_when: || {
        format!("The first touch of fresh memory is at least {TOUCHED} times as fast in huge pages as in 4 KiB pages")
    },
    why: "A database that allocates its caches at start, or a session that sorts, waits that long.",
    what_to_do: "Use huge pages, or touch the memory before it is needed.",
    cannot_judge_when: "One of the two was not measured: then the rule is silent.",
    source: "Decided here.",
};

fn fresh_memory(info: &MemoryInfo) -> Option<Advice> {
    let of = |is: &dyn Fn(&&FaultRow) -> bool| {
        let mut rows = info.faults.iter().filter(|row| row.threads_count == 1);
        rows.find(|row| is(row))
    };
    let small = of(&|row| row.pages == "4k")?;
    let large = of(&|row| row.pages != "4k")?;
    let (rate, huge) = (small.first_touch_gb_per_s.value()?, large.first_touch_gb_per_s.value()?);
    let text = format!(
        "The first touch of fresh memory takes {} s for each GiB in 4 KiB pages and {} s in huge pages.",
        fixed(1.073_741_824 / rate, 2),
        fixed(1.073_741_824 / huge, 2)
    );
    let evidence = [("small_gb_per_s", rate), ("huge_gb_per_s", huge)];
    (huge >= TOUCHED * rate).then(|| FRESH_MEMORY.explain(false, text, &evidence))
}

const UNSTEADY: Rule = Rule {
    id: "M6",
    title: "Passes do not agree",
    changes_figures: false,
    fires_when: || format!("The coefficient of variation of a bandwidth over its passes exceeds {UNSTEADY_PCT} %"),
    why: "Memory is shared with other guests or processes, and figures that move by themselves cannot be compared.",
    what_to_do: "Measure again on a quiet host, or with a longer --time, before you compare figures.",
    cannot_judge_when: "No bandwidth was measured: then the rule is silent.",
    source: "Decided here.",
};

fn unsteady(info: &MemoryInfo) -> Option<Advice> {
    let cv = |row: &&super::super::info::BandwidthRow| row.cv_pct.value().unwrap_or(0.0);
    let count = info.bandwidth.iter().filter(|row| cv(row) > UNSTEADY_PCT).count();
    let worst = info.bandwidth.iter().max_by(|a, b| cv(a).total_cmp(&cv(b)))?;
    let text = format!(
        "{count} of {} bandwidths varied by more than {UNSTEADY_PCT} % between passes, {} most ({} %).",
        info.bandwidth.len(),
        worst.kernel,
        fixed(cv(&worst), 1)
    );
    let evidence = [("cv_pct_max", cv(&worst)), ("unsteady_count", count as f64)];
    (count > 0).then(|| UNSTEADY.advise(false, text, &evidence))
}

const MODULE_FAILS: Rule = Rule {
    id: "M7",
    title: "A memory module fails",
    changes_figures: false,
    fires_when: || "EDAC counted an error during a load, corrected or not; always high".to_owned(),
    why: "Errors that are corrected today are not corrected for ever.",
    what_to_do: "Replace the module before a database moves in.",
    cannot_judge_when: "The kernel exposes no EDAC counters: then the rule is silent.",
    source: "Decided here.",
};

fn module_fails(info: &MemoryInfo) -> Option<Advice> {
    let soaked = info.soaked.as_ref()?;
    let count = |figure: &Figure| figure.value().unwrap_or(0.0);
    let (corrected, not) = (count(&soaked.edac_corrected_count), count(&soaked.edac_uncorrected_count));
    let text = format!(
        "Memory controllers counted {} corrected and {} uncorrected errors during the load: a module is failing.",
        fixed(corrected, 0),
        fixed(not, 0)
    );
    let evidence = [("corrected_count", corrected), ("uncorrected_count", not)];
    (corrected + not > 0.0).then(|| MODULE_FAILS.advise(true, text, &evidence))
}
