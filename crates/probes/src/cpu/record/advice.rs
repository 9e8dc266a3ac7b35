//! What follows from the figures of the CPUs, in plain words.

use super::derive::KNEE_RATIO;
use super::info::{CpuInfo, KernelRow, ScalingRow};
use super::steadiness::UNSTEADY_PCT;
use crate::conditions::OURS_PCT;
use crate::rules;
use assay_measure::cpu::{STEAL_PCT, STEAL_TOLD_PCT};
use assay_measure::facts::VIRTUALISATION;
use assay_measure::record::{Advice, Figure, Record};
use assay_measure::rule::{Judges, Rule};
use assay_measure::units::fixed;

/// The rules with what judges them, in the order in which findings are read.
pub(super) const RULES: &Judges<CpuInfo> = &[
    (WRONG_RESULTS, wrong_results),
    (NOT_OPTIMISED, |_, info| rules::not_optimised(&NOT_OPTIMISED, info.is_optimised)),
    (NOT_GIVEN, not_given),
    (NOT_PINNED, |_, info| rules::not_pinned(&NOT_PINNED, info.is_pinned || info.mode != "kernels")),
    (THROTTLED, throttled),
    (STOLEN, stolen),
    (SIBLINGS, siblings),
    (KNEE, knee),
    (UNSTEADY, unsteady),
    (CLOCKS_APART, clocks_apart),
    (SHARED_CORE, shared_core),
];

const WRONG_RESULTS: Rule = Rule {
    id: "P8",
    title: "Results were wrong",
    changes_figures: true,
    fires_when: || "A kernel computed another result than the known one; always high".to_owned(),
    why: "This CPU or its memory has a fault.",
    what_to_do: "Do not trust any result of this host; take it out of service.",
    cannot_judge_when: "Never: every result is checked.",
    source: "Decided here.",
};

fn wrong_results(_: &Record, info: &CpuInfo) -> Option<Advice> {
    let count = info.verification_errors_count;
    (count > 0).then(|| {
        let text = format!("Wrong results: {count}.");
        WRONG_RESULTS.explain(true, text, &[("verification_errors_count", count as f64)])
    })
}

const NOT_OPTIMISED: Rule = rules::of_the_build("P9", "The rates of portable kernels do not describe the CPU.");

const NOT_GIVEN: Rule = Rule {
    id: "P10",
    title: "The threads were not given all of their time",
    changes_figures: true,
    fires_when: || {
        format!(
            "The threads had a CPU for less than {OURS_PCT} % of their time, and a quota (P1) and steal (P2) do not account for {} % of what they lacked",
            100.0 * TOLD_RATIO
        )
    },
    why: "Rates per second show what was left of this host; rates per CPU second show what its CPUs can do.",
    what_to_do: "Measure without other load and without a quota, or read the rates per CPU second.",
    cannot_judge_when: "The kernel exposes no CPU time of threads: then the rule is silent.",
    source: "Decided here.",
};

/// From this part on, what P1 and P2 tell is all there is to say of the time that the threads lacked.
const TOLD_RATIO: f64 = 0.9;

/// The part of it that they tell.
fn told(record: &Record, info: &CpuInfo, given: f64) -> Option<f64> {
    let of = &info.conditions;
    let lacked_s = record.os.process.cpu_s.value()? * (100.0 / given - 1.0);
    let of_all_cpus_s = record.interval.elapsed_s.value()? * record.os.cpus_count.value()?;
    let steal = of.steal_pct.value().filter(|pct| *pct >= STEAL_TOLD_PCT).unwrap_or_default();
    let taken_s = of.throttled_s.value().unwrap_or_default() + steal / 100.0 * of_all_cpus_s;
    Some(taken_s / lacked_s)
}

fn not_given(record: &Record, info: &CpuInfo) -> Option<Advice> {
    let given = given(info)?;
    if told(record, info, given).is_some_and(|told| told >= TOLD_RATIO) {
        return None;
    }
    let text = format!("The threads got a CPU for {} % of their time. {}", fixed(given, 1), whose(info));
    Some(NOT_GIVEN.explain(false, text, &[("given_pct", given)]))
}

const NOT_PINNED: Rule = rules::of_pinning("P11");

/// All CPUs over half of them: below, the second half are siblings rather than cores.
const SIBLING_RATIO: f64 = 1.35;
/// Threads held back longer than this share of the time: a database there has to be told.
const THROTTLED_SHARE: f64 = 0.01;
/// Efficiency of all CPUs below which half of them are lost.
const EFFICIENCY_HIGH: f64 = 0.5;
/// How far what a CPU second brings may move where its clock does not, %.
const WORTH_PCT: f64 = 5.0;
/// How little the clock then moves, %.
const CLOCK_PCT: f64 = 2.0;
/// Clocks of CPUs that lie further apart.
const CLOCKS_RATIO: f64 = 0.1;

/// The share of their time that the threads were given, where it was not all of it.
fn given(info: &CpuInfo) -> Option<f64> {
    let given = info.conditions.given_pct.value()?;
    (given < OURS_PCT).then_some(given)
}

/// Who had the rest.
fn whose(info: &CpuInfo) -> String {
    let of = &info.conditions;
    let share = |figure: &Figure| figure.value().filter(|pct| *pct >= 0.5);
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

const THROTTLED: Rule = Rule {
    id: "P1",
    title: "Throttling: a CPU quota stops the threads",
    changes_figures: true,
    fires_when: || {
        format!(
            "A CPU quota of the control group stopped the threads at all; high from {} % of the time",
            100.0 * THROTTLED_SHARE
        )
    },
    why: "Rates per second show the quota, rates per CPU second show the CPU. The quota also stops a database that has a worker for each visible CPU in the middle of its work, with locks held.",
    what_to_do: "Give the database whole CPUs (a cpuset), or set its parallelism to the quota.",
    cannot_judge_when: "The kernel exposes no throttled time: then the rule is silent.",
    source: "Decided here.",
};

fn throttled(record: &Record, info: &CpuInfo) -> Option<Advice> {
    let held = info.conditions.throttled_s.value()?;
    let elapsed = record.interval.elapsed_s.value()?;
    if held <= 0.0 {
        return None;
    }
    let usable = info.usable_cpus.value().filter(|cpus| *cpus < info.cpus.len() as f64);
    let left = usable.map_or_else(String::new, |cpus| {
        format!(" Only {} of the {} visible CPUs can be used.", fixed(cpus, 2), info.cpus.len())
    });
    let text = format!(
        "Throttling: a CPU quota of the control group stopped the threads for {} s of {} s.{left}",
        fixed(held, 2),
        fixed(elapsed, 1)
    );
    let evidence = [("throttled_s", held), ("elapsed_s", elapsed)];
    Some(THROTTLED.explain(held >= THROTTLED_SHARE * elapsed, text, &evidence))
}

const STOLEN: Rule = Rule {
    id: "P2",
    title: "Steal: other guests have the CPUs",
    changes_figures: true,
    fires_when: || {
        format!("The hypervisor gave at least {STEAL_TOLD_PCT} % of CPU time to other guests; high from {STEAL_PCT} %")
    },
    why: "The hypervisor has more guests than CPUs, so this machine gets less than it shows.",
    what_to_do: "Ask for dedicated CPUs, or size by the rates per second instead of the rates per CPU second.",
    cannot_judge_when: "The kernel exposes no steal: then the rule is silent.",
    source: "Decided here.",
};

fn stolen(_: &Record, info: &CpuInfo) -> Option<Advice> {
    let steal = info.conditions.steal_pct.value().filter(|pct| *pct >= STEAL_TOLD_PCT)?;
    let text = format!(
        "Steal: the hypervisor gave {} % of this machine's CPU time to other guests during the measurement.",
        fixed(steal, 1)
    );
    Some(STOLEN.advise(steal >= STEAL_PCT, text, &[("steal_pct", steal)]))
}

/// The curve's row of a kernel with so many threads.
fn at<'a>(info: &'a CpuInfo, bound: &str, threads: u64) -> Option<&'a ScalingRow> {
    info.scaling.iter().find(|row| row.bound == bound && row.threads_count == threads)
}

const SIBLINGS: Rule = Rule {
    id: "P3",
    title: "Each CPU is one hyperthread",
    changes_figures: false,
    fires_when: || {
        format!(
            "In a guest whose topology claims as many cores as CPUs, the core-bound kernel on all CPUs does less than {SIBLING_RATIO} times the work of half of them; always high"
        )
    },
    why: "Licences and costs are counted by core, and these CPUs are half a core each.",
    what_to_do: "Count half as many cores for licences and for cost per core.",
    cannot_judge_when: "The threads were given less than their time, which would judge the neighbours, or the curve is missing: then the rule is silent.",
    source: "Measured: two threads of a core gain 1.1 to 1.3 for integer code, two cores 2.0.",
};

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
         {} times the work of half of them, although the topology claims {all} cores.",
        fixed(ratio, 2)
    );
    Some(SIBLINGS.advise(true, text, &[("all_over_half_ratio", ratio)]))
}

const KNEE: Rule = Rule {
    id: "P4",
    title: "More threads stop to pay",
    changes_figures: false,
    fires_when: || {
        format!(
            "A kernel of the curve on all CPUs reaches less than {} % of their number times the rate of one; high below {} %",
            100.0 * KNEE_RATIO,
            100.0 * EFFICIENCY_HIGH
        )
    },
    why: "The CPUs share clock, caches or memory, and work of this kind gains little from more of them.",
    what_to_do: "Size such work by the threads that still pay, not by the number of CPUs.",
    cannot_judge_when: "The threads were given less than their time, there is one CPU, or the curve or the clock of its CPUs is missing: then the rule is silent.",
    source: "Decided here.",
};

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
    let pays_pct = 100.0 * KNEE_RATIO;
    let kept = match knee.threads_count {
        1 => format!("only a single thread reaches {pays_pct} %"),
        threads => format!("up to {threads} threads it is {pays_pct} % or more"),
    };
    let text = format!(
        "{} on all {all} CPUs reaches {} % of {all} times the rate of one CPU (the clock accounts for {} %, \
         shared resources for the rest); {kept}.",
        worst.kernel,
        fixed(100.0 * efficiency, 0),
        fixed(100.0 * clock, 0)
    );
    Some(KNEE.advise(efficiency < EFFICIENCY_HIGH, text, &[("efficiency_ratio", efficiency), ("clock_ratio", clock)]))
}

const UNSTEADY: Rule = Rule {
    id: "P5",
    title: "Repetitions do not agree",
    changes_figures: false,
    fires_when: || format!("The coefficient of variation of a rate over its repetitions exceeds {UNSTEADY_PCT} %"),
    why: "Figures that move by themselves cannot be compared.",
    what_to_do: "Measure again on a quiet host, or with a longer --time, before you compare figures.",
    cannot_judge_when: "A kernel ran only once: then the rule is silent about it.",
    source: "Decided here.",
};

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
        "{} of {} rates varied by more than {UNSTEADY_PCT} % between repetitions, {} most ({} %). Steal, clock or run delay that \
         varied with them: {}.",
        rows.len(),
        info.kernels.iter().filter(|row| row.repetitions_count > 1).count(),
        worst.kernel,
        fixed(cv(&worst), 1),
        causes.join(", ")
    );
    Some(UNSTEADY.advise(false, text, &[("cv_pct_max", cv(&worst)), ("unsteady_count", rows.len() as f64)]))
}

const CLOCKS_APART: Rule = Rule {
    id: "P6",
    title: "CPUs of one host have clocks of their own",
    changes_figures: false,
    fires_when: || {
        format!("Clocks of the CPUs, each measured alone, differ by at least {} % of the highest", 100.0 * CLOCKS_RATIO)
    },
    why: "The slowest worker of a database determines its speed.",
    what_to_do: "Find out whether the host has cores of several kinds, or what slows some of its CPUs.",
    cannot_judge_when: "The threads were given less than their time: then the rule is silent.",
    source: "Decided here.",
};

fn clocks_apart(_: &Record, info: &CpuInfo) -> Option<Advice> {
    let clocks = || info.clocks.iter().filter_map(|row| row.before_mhz.value());
    let (least, most) = (clocks().reduce(f64::min)?, clocks().reduce(f64::max)?);
    if most - least < CLOCKS_RATIO * most || given(info).is_some() {
        return None;
    }
    let text =
        format!("The clocks of the CPUs, each measured alone, are {} to {} MHz.", fixed(least, 0), fixed(most, 0));
    Some(CLOCKS_APART.explain(false, text, &[("mhz_min", least), ("mhz_max", most)]))
}

const SHARED_CORE: Rule = Rule {
    id: "P7",
    title: "Others use the same cores",
    changes_figures: false,
    fires_when: || {
        format!(
            "Over the repetitions the work of a dependent chain (add-dep) per CPU second varies by at most {CLOCK_PCT} %, and that of eight chains (alu-ilp) by at least {WORTH_PCT} %"
        )
    },
    why: "At times another process or another guest of the host uses the other hyperthread; no counter shows this as steal.",
    what_to_do: "Compare with a run at another time, or ask for dedicated cores.",
    cannot_judge_when: "One of the two kernels was not repeated: then the rule is silent.",
    source: "A dependent chain leaves its core idle enough for two; eight chains need all of it.",
};

fn shared_core(_: &Record, info: &CpuInfo) -> Option<Advice> {
    let moved = |name: &str| {
        let mut rows = info.kernels.iter();
        let row = rows.find(|row| row.kernel == name && row.threads_count == 1)?;
        row.per_cpu_s_cv_pct.value()
    };
    let (chain, wide) = (moved("add-dep")?, moved("alu-ilp")?);
    if chain > CLOCK_PCT || wide < WORTH_PCT {
        return None;
    }
    let text = format!(
        "The work of a dependent chain per CPU second varied by {} %, that of eight independent chains by {} %.",
        fixed(chain, 1),
        fixed(wide, 1)
    );
    let evidence = [("add_dep_per_cpu_s_cv_pct", chain), ("alu_ilp_per_cpu_s_cv_pct", wide)];
    Some(SHARED_CORE.explain(false, text, &evidence))
}
