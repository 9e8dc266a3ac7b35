//! What follows from the figures of the CPUs, in plain words. The rules, their thresholds and where they come from are
//! listed in docs/design/cpu.md.

use super::derive::OURS_PCT;
use super::info::{CpuInfo, KernelRow, ScalingRow};
use super::steadiness::UNSTEADY_PCT;
use assay_measure::facts::VIRTUALISATION;
use assay_measure::record::{Advice, Record};
use assay_measure::units::fixed;

/// All CPUs over half of them: below, the second half are siblings rather than cores.
const SIBLING_RATIO: f64 = 1.35;
/// Threads held back longer than this share of the time: a quota works.
const THROTTLED_SHARE: f64 = 0.01;
/// How far what a CPU second brings may move where its clock does not, %.
const WORTH_PCT: f64 = 5.0;
/// How little the clock then moves, %.
const CLOCK_PCT: f64 = 2.0;
/// Clocks of CPUs that lie further apart.
const CLOCKS_APART: f64 = 0.1;

/// What makes the figures doubtful.
pub(super) fn warnings(info: &CpuInfo) -> Vec<String> {
    let mut found = Vec::new();
    let of = &info.conditions;
    if info.verification_errors_count > 0 {
        found.push(format!(
            "{} results were wrong: this CPU or its memory has a fault. Do not trust any result of this host; take \
             it out of service.",
            info.verification_errors_count
        ));
    }
    if !info.is_optimised {
        found.push(
            "This assay was built without optimisation: the rates of portable kernels do not describe the \
            CPU. Use a release build (cargo build --release)."
                .to_owned(),
        );
    }
    if let Some(given) = given(info) {
        found.push(format!(
            "The threads got a CPU for {} % of their time: rates per second show what was left of this host, rates \
             per CPU second show what its CPUs can do. {}",
            fixed(given, 1),
            whose(info)
        ));
    }
    if !info.is_pinned && info.mode == "kernels" {
        found.push(
            "assay could not keep threads on their CPUs: a figure for one CPU may come from several CPUs.".to_owned(),
        );
    }
    if let Some(throttled) = of.throttled_s.value().filter(|s| *s > 0.0) {
        found.push(format!(
            "A CPU quota throttled this control group for {} s in total: rates per second show the quota, rates per \
             CPU second show the CPU.",
            fixed(throttled, 2)
        ));
    }
    found
}

/// The share of their time that the threads were given, where it was not all of it.
fn given(info: &CpuInfo) -> Option<f64> {
    let given = info.conditions.given_pct.value()?;
    (given < OURS_PCT).then_some(given)
}

/// Who had the rest.
fn whose(info: &CpuInfo) -> String {
    let of = &info.conditions;
    let share = |figure: &assay_measure::record::Figure| figure.value().filter(|pct| *pct >= 0.5);
    let mut takers = Vec::new();
    if of.throttled_s.value().is_some_and(|s| s > 0.0) {
        takers.push("a quota (throttling)".to_owned());
    }
    if let Some(pct) = share(&of.steal_pct) {
        takers.push(format!("other guests of the hypervisor (steal {} %)", fixed(pct, 1)));
    }
    if let Some(pct) = share(&of.run_delay_pct) {
        takers.push(format!(
            "waiting for a CPU that other processes used or a quota withheld (run delay {} %)",
            fixed(pct, 1)
        ));
    }
    if takers.is_empty() {
        "No counter of the kernel shows who used the rest.".to_owned()
    } else {
        format!("The rest: {}.", takers.join(", "))
    }
}

/// All findings, in the order they are read.
pub(super) fn advise(record: &Record, info: &CpuInfo) -> Vec<Advice> {
    let rules: [fn(&Record, &CpuInfo) -> Option<Advice>; 7] =
        [throttled, stolen, siblings, knee, unsteady, clocks_apart, shared_core];
    rules.iter().filter_map(|rule| rule(record, info)).collect()
}

/// P1: a quota, and what it leaves.
fn throttled(record: &Record, info: &CpuInfo) -> Option<Advice> {
    let held = info.conditions.throttled_s.value()?;
    let elapsed = record.interval.elapsed_s.value()?;
    if held < THROTTLED_SHARE * elapsed {
        return None;
    }
    let usable = info.usable_cpus.value();
    let left = usable.map_or_else(String::new, |cpus| {
        format!(" Only {} of the {} visible CPUs can be used.", fixed(cpus, 2), info.cpus.len())
    });
    let text = format!(
        "Throttling: a CPU quota of the control group stopped the threads for {} s of {} s.{left} It also stops a \
         database that has a worker for each visible CPU in the middle of its work, with locks held: give the \
         database whole CPUs (a cpuset), or set its parallelism to the quota.",
        fixed(held, 1),
        fixed(elapsed, 1)
    );
    Some(Advice::of("P1", true, text, &[("throttled_s", held), ("elapsed_s", elapsed)]))
}

/// P2: the hypervisor has more guests than CPUs.
fn stolen(_: &Record, info: &CpuInfo) -> Option<Advice> {
    let steal = info.conditions.steal_pct.value().filter(|pct| *pct >= 1.0)?;
    let text = format!(
        "Steal: the hypervisor gave {} % of this machine's CPU time to other guests during the measurement. Ask for \
         dedicated CPUs, or size by the rates per second instead of the rates per CPU second.",
        fixed(steal, 1)
    );
    Some(Advice::of("P2", steal >= 5.0, text, &[("steal_pct", steal)]))
}

/// The curve's row of a kernel with so many threads.
fn at<'a>(info: &'a CpuInfo, bound: &str, threads: u64) -> Option<&'a ScalingRow> {
    info.scaling.iter().find(|row| row.bound == bound && row.threads_count == threads)
}

/// P3: in a virtual machine, CPUs that behave as the two threads of one core.
fn siblings(record: &Record, info: &CpuInfo) -> Option<Advice> {
    let all = info.cpus.len() as u64;
    let guest = VIRTUALISATION.find(&record.host.facts)?.starts_with("guest");
    let claims_cores = info.cores_count.value() == Some(all as f64);
    if !guest || !claims_cores || all < 2 || given(info).is_some() {
        return None;
    }
    let ratio = at(info, "core", all)?.per_s.value()? / at(info, "core", all.div_ceil(2))?.per_s.value()?;
    if ratio >= SIBLING_RATIO {
        return None;
    }
    let text = format!(
        "Each CPU of this virtual machine behaves like one hyperthread: in the core-bound kernel all {all} CPUs do \
         {} times the work of half of them, although the topology claims {all} cores. Count {} cores for licences \
         and for cost per core.",
        fixed(ratio, 2),
        all.div_ceil(2)
    );
    Some(Advice::of("P3", true, text, &[("all_over_half_ratio", ratio)]))
}

/// P4: where more threads stop to pay, and which loss it is.
fn knee(_: &Record, info: &CpuInfo) -> Option<Advice> {
    let all = info.cpus.len() as u64;
    if given(info).is_some() {
        return None;
    }
    let lost = info.scaling.iter().filter(|row| row.threads_count == all && all > 1 && !row.is_knee);
    let worst = lost.min_by(|a, b| {
        let ratio = |row: &ScalingRow| row.efficiency_ratio.value().unwrap_or(1.0);
        ratio(a).total_cmp(&ratio(b))
    })?;
    let efficiency = worst.efficiency_ratio.value()?;
    let clock = worst.clock_ratio.value()?;
    let knee = info.scaling.iter().find(|row| row.kernel == worst.kernel && row.is_knee)?;
    let kept = match knee.threads_count {
        1 => "only a single thread reaches 80 %".to_owned(),
        threads => format!("up to {threads} threads it is 80 % or more"),
    };
    let text = format!(
        "{} on all {all} CPUs reaches {} % of {all} times the rate of one CPU (the clock accounts for {} %, \
         shared resources for the rest); {kept}. Work of this kind gains little from more CPUs.",
        worst.kernel,
        fixed(100.0 * efficiency, 0),
        fixed(100.0 * clock, 0)
    );
    Some(Advice::of("P4", efficiency < 0.5, text, &[("efficiency_ratio", efficiency), ("clock_ratio", clock)]))
}

/// P5: repetitions that do not agree.
fn unsteady(_: &Record, info: &CpuInfo) -> Option<Advice> {
    let is_unsteady = |row: &&KernelRow| row.cv_pct.value().is_some_and(|cv| cv > UNSTEADY_PCT);
    let rows: Vec<&KernelRow> = info.kernels.iter().filter(is_unsteady).collect();
    let cv = |row: &&KernelRow| row.cv_pct.value().unwrap_or(0.0);
    let worst = rows.iter().copied().max_by(|a, b| cv(a).total_cmp(&cv(b)))?;
    let mut causes: Vec<(&str, usize)> = Vec::new();
    for row in &rows {
        match causes.iter_mut().find(|(name, _)| *name == row.moved_with) {
            Some((_, count)) => *count += 1,
            None => causes.push((&row.moved_with, 1)),
        }
    }
    causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let causes: Vec<String> = causes.iter().map(|(name, count)| format!("{name} ({count})")).collect();
    let text = format!(
        "{} of {} rates varied by more than 3 % between repetitions, {} most ({} %). Steal, clock or run delay that \
         varied with them: {}. Measure again on a quiet host or with a longer --time before you compare figures.",
        rows.len(),
        info.kernels.iter().filter(|row| row.repetitions_count > 1).count(),
        worst.kernel,
        fixed(cv(&worst), 1),
        causes.join(", ")
    );
    Some(Advice::of("P5", false, text, &[("cv_pct_max", cv(&worst)), ("unsteady_count", rows.len() as f64)]))
}

/// P6: CPUs of one host with clocks of their own.
fn clocks_apart(_: &Record, info: &CpuInfo) -> Option<Advice> {
    let clocks = || info.clocks.iter().filter_map(|row| row.before_mhz.value());
    let (least, most) = (clocks().reduce(f64::min)?, clocks().reduce(f64::max)?);
    if most - least < CLOCKS_APART * most || given(info).is_some() {
        return None;
    }
    let text = format!(
        "Each CPU alone runs at {} to {} MHz: the host has different kinds of cores, or something slows some of \
         them. The slowest worker of a database determines its speed.",
        fixed(least, 0),
        fixed(most, 0)
    );
    Some(Advice::of("P6", false, text, &[("mhz_min", least), ("mhz_max", most)]))
}

/// P7: the clock stands still and a CPU second is worth less at times: somebody else uses the same core.
fn shared_core(_: &Record, info: &CpuInfo) -> Option<Advice> {
    let moved = |name: &str| {
        let mut rows = info.kernels.iter();
        let row = rows.find(|row| row.kernel == name && row.threads_count == 1)?;
        row.per_cpu_s_cv_pct.value()
    };
    // A chain of dependent operations leaves its core idle enough for two; eight chains need all of it.
    let (chain, wide) = (moved("add-dep")?, moved("alu-ilp")?);
    if chain > CLOCK_PCT || wide < WORTH_PCT {
        return None;
    }
    let text = format!(
        "The work done per CPU second varies: the clock varied by {} %, the work of eight independent chains per CPU \
         second by {} %. At times another process or another guest of the host uses the other hyperthread of these \
         cores; no counter shows this as steal.",
        fixed(chain, 1),
        fixed(wide, 1)
    );
    let evidence = [("add_dep_per_cpu_s_cv_pct", chain), ("alu_ilp_per_cpu_s_cv_pct", wide)];
    Some(Advice::of("P7", false, text, &evidence))
}
