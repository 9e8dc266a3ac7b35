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
            "{} results were not what they must be: this CPU, or the memory its data lie in, computes wrongly. Nothing it says can be trusted; take the host out of service.",
            info.verification_errors_count
        ));
    }
    if !info.is_optimised {
        found.push("This assay was built without optimisation: the rates of portable kernels say nothing of the CPU. Use a release build (cargo build --release).".to_owned());
    }
    if let Some(given) = given(info) {
        found.push(format!(
            "The threads were given {} % of their time: rates per second are what was left of this host, those per CPU second are what its CPUs can do. {}",
            fixed(given, 1),
            whose(info)
        ));
    }
    if !info.is_pinned && info.mode == "kernels" {
        found.push(
            "Threads could not be kept on their CPUs: a figure of one CPU may be of several."
                .to_owned(),
        );
    }
    if let Some(throttled) = of.throttled_s.value().filter(|s| *s > 0.0) {
        found.push(format!(
            "A CPU quota held this control group back for {} s in all (throttling): rates per second are the quota's, those per CPU second the CPU's.",
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
        takers.push(format!(
            "the hypervisor's other guests (steal {} %)",
            fixed(pct, 1)
        ));
    }
    if let Some(pct) = share(&of.run_delay_pct) {
        takers.push(format!(
            "waiting for a CPU that other processes had or a quota kept back (run delay {} %)",
            fixed(pct, 1)
        ));
    }
    match takers.is_empty() {
        true => "Nothing the kernel counts says who had the rest.".to_owned(),
        false => format!("The rest: {}.", takers.join(", ")),
    }
}

/// All findings, in the order they are read.
pub(super) fn advise(record: &Record, info: &CpuInfo) -> Vec<Advice> {
    let rules: [fn(&Record, &CpuInfo) -> Option<Advice>; 7] = [
        throttled,
        stolen,
        siblings,
        knee,
        unsteady,
        clocks_apart,
        shared_core,
    ];
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
        format!(
            " {} CPUs can be used of the {} that are seen.",
            fixed(cpus, 2),
            info.cpus.len()
        )
    });
    let text = format!(
        "Throttling: a CPU quota of the control group stopped the threads for {} s of {} s.{left} A database with a worker for each CPU it sees is stopped in the middle of its work, with locks held: \
         give it whole CPUs (a cpuset), or set its parallelism to the quota.",
        fixed(held, 1),
        fixed(elapsed, 1)
    );
    Some(Advice::of(
        "P1",
        true,
        text,
        &[("throttled_s", held), ("elapsed_s", elapsed)],
    ))
}

/// P2: the hypervisor has more guests than CPUs.
fn stolen(_: &Record, info: &CpuInfo) -> Option<Advice> {
    let steal = info
        .conditions
        .steal_pct
        .value()
        .filter(|pct| *pct >= 1.0)?;
    let text = format!(
        "Steal: the hypervisor gave {} % of this machine's CPU time to others while it was measured. Ask for dedicated CPUs, or size by the rates per second, not by those per CPU second.",
        fixed(steal, 1)
    );
    Some(Advice::of(
        "P2",
        steal >= 5.0,
        text,
        &[("steal_pct", steal)],
    ))
}

/// The curve's row of a kernel with so many threads.
fn at<'a>(info: &'a CpuInfo, bound: &str, threads: u64) -> Option<&'a ScalingRow> {
    info.scaling
        .iter()
        .find(|row| row.bound == bound && row.threads_count == threads)
}

/// P3: in a virtual machine, CPUs that behave as the two threads of one core.
fn siblings(record: &Record, info: &CpuInfo) -> Option<Advice> {
    let all = info.cpus.len() as u64;
    let guest = VIRTUALISATION
        .find(&record.host.facts)?
        .starts_with("guest");
    let claims_cores = info.cores_count.value() == Some(all as f64);
    if !guest || !claims_cores || all < 2 || given(info).is_some() {
        return None;
    }
    let ratio =
        at(info, "core", all)?.per_s.value()? / at(info, "core", all.div_ceil(2))?.per_s.value()?;
    if ratio >= SIBLING_RATIO {
        return None;
    }
    let text = format!(
        "Each CPU of this virtual machine looks like one hyperthread: all {all} do {} times what half of them do in the core-bound kernel, though the topology claims {all} cores. Licences and cost by core should count {} cores.",
        fixed(ratio, 2),
        all.div_ceil(2)
    );
    Some(Advice::of(
        "P3",
        true,
        text,
        &[("all_over_half_ratio", ratio)],
    ))
}

/// P4: where more threads stop to pay, and which loss it is.
fn knee(_: &Record, info: &CpuInfo) -> Option<Advice> {
    let all = info.cpus.len() as u64;
    if given(info).is_some() {
        return None;
    }
    let lost = info
        .scaling
        .iter()
        .filter(|row| row.threads_count == all && all > 1 && !row.is_knee);
    let worst = lost.min_by(|a, b| {
        let ratio = |row: &ScalingRow| row.efficiency_ratio.value().unwrap_or(1.0);
        ratio(a).total_cmp(&ratio(b))
    })?;
    let efficiency = worst.efficiency_ratio.value()?;
    let clock = worst.clock_ratio.value()?;
    let knee = info
        .scaling
        .iter()
        .find(|row| row.kernel == worst.kernel && row.is_knee)?;
    let kept = match knee.threads_count {
        1 => "no more than one thread keeps 80 %".to_owned(),
        threads => format!("up to {threads} threads it is 80 % and more"),
    };
    let text = format!(
        "{} on all {all} CPUs does {} % of {all} times one CPU (clock {} %, the rest is what they share); {kept}. Work of this kind gains little from CPUs beyond that.",
        worst.kernel,
        fixed(100.0 * efficiency, 0),
        fixed(100.0 * clock, 0)
    );
    Some(Advice::of(
        "P4",
        efficiency < 0.5,
        text,
        &[("efficiency_ratio", efficiency), ("clock_ratio", clock)],
    ))
}

/// P5: repetitions that do not agree.
fn unsteady(_: &Record, info: &CpuInfo) -> Option<Advice> {
    let is_unsteady = |row: &&KernelRow| row.cv_pct.value().is_some_and(|cv| cv > UNSTEADY_PCT);
    let rows: Vec<&KernelRow> = info.kernels.iter().filter(is_unsteady).collect();
    let cv = |row: &&KernelRow| row.cv_pct.value().unwrap_or(0.0);
    let worst = rows
        .iter()
        .copied()
        .max_by(|a, b| cv(a).total_cmp(&cv(b)))?;
    let mut causes: Vec<(&str, usize)> = Vec::new();
    for row in &rows {
        match causes.iter_mut().find(|(name, _)| *name == row.moved_with) {
            Some((_, count)) => *count += 1,
            None => causes.push((&row.moved_with, 1)),
        }
    }
    causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let causes: Vec<String> = causes
        .iter()
        .map(|(name, count)| format!("{name} ({count})"))
        .collect();
    let text = format!(
        "{} of {} rates moved by more than 3 % between repetitions, {} most ({} %). What of steal, clock and run delay moved with them: {}. Measure again on a quiet host, or with a longer --time, before figures are compared.",
        rows.len(),
        info.kernels
            .iter()
            .filter(|row| row.repetitions_count > 1)
            .count(),
        worst.kernel,
        fixed(cv(&worst), 1),
        causes.join(", ")
    );
    Some(Advice::of(
        "P5",
        false,
        text,
        &[
            ("cv_pct_max", cv(&worst)),
            ("unsteady_count", rows.len() as f64),
        ],
    ))
}

/// P6: CPUs of one host with clocks of their own.
fn clocks_apart(_: &Record, info: &CpuInfo) -> Option<Advice> {
    let clocks = || info.clocks.iter().filter_map(|row| row.before_mhz.value());
    let (least, most) = (clocks().reduce(f64::min)?, clocks().reduce(f64::max)?);
    if most - least < CLOCKS_APART * most || given(info).is_some() {
        return None;
    }
    let text = format!(
        "The CPUs run at {} to {} MHz, each alone: the host has cores of several kinds, or something slows some of them. A database's slowest worker decides.",
        fixed(least, 0),
        fixed(most, 0)
    );
    Some(Advice::of(
        "P6",
        false,
        text,
        &[("mhz_min", least), ("mhz_max", most)],
    ))
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
        "A CPU second is not always worth the same: the clock moved by {} %, what eight independent chains do in a CPU second by {} %. Somebody else works on the other hyperthread of these cores at times, in this machine or in another guest of the host; no counter shows it as steal.",
        fixed(chain, 1),
        fixed(wide, 1)
    );
    let evidence = [
        ("add_dep_per_cpu_s_cv_pct", chain),
        ("alu_ilp_per_cpu_s_cv_pct", wide),
    ];
    Some(Advice::of("P7", false, text, &evidence))
}
