//! What follows from the figures of a clock, in plain words.

use super::info::{CALLS, ClockInfo, LEAVES};
use crate::rules;
use assay_measure::record::{Advice, Record};
use assay_measure::rule::{Judges, Rule};
use assay_measure::units::{fixed, many};

/// What pg_test_timing's manual calls good: a loop below so many ns, and more than so many % of the steps below 1 us.
const GOOD_NS: f64 = 100.0;
/// From here on a finding is high. Decided here: a row of 1 us then takes three times as long where it is timed.
const HIGH_NS: f64 = 1000.0;
const GOOD_PCT: f64 = 90.0;
/// Rounds that vary by more are not steady, %. Decided here: the median of a round leaves out slices that others took, so that rounds of a
/// host at one clock rate vary by a few %, and what is left is the host's own.
pub(super) const UNSTEADY_PCT: f64 = 10.0;

/// The rules with what judges them, in the order in which findings are read.
pub(super) const RULES: &Judges<ClockInfo> = &[
    (NOT_OPTIMISED, |_, info| rules::not_optimised(&NOT_OPTIMISED, info.is_optimised)),
    (CPUS_MOVED, cpus_moved),
    (BACKWARDS, backwards),
    (APART, apart),
    (SLOW_SOURCE, slow_source),
    (DEAR, dear),
];

const NOT_OPTIMISED: Rule = rules::of_the_build("C5", "Its loops take longer than the clock.");

const CPUS_MOVED: Rule = Rule {
    id: "C6",
    title: "The clocks of CPUs moved against each other",
    changes_figures: true,
    fires_when: || "The exchanges of a pair of CPUs leave no offset that fits all of them".to_owned(),
    why: "The pair has no one offset: times taken on different CPUs cannot be subtracted.",
    what_to_do: "Look in `dmesg` for clock messages, and measure again.",
    cannot_judge_when: "A pair has no exchanges: then the rule is silent about it.",
    source: "Decided here.",
};

fn cpus_moved(_: &Record, info: &ClockInfo) -> Option<Advice> {
    let moved = info.pairs.iter().filter(|row| row.exchanges_count > 0 && row.offset_ns.value().is_none()).count();
    let text = format!(
        "The clocks of {moved} of {} pairs of CPUs moved against each other while assay compared them: times taken on \
         different CPUs cannot be subtracted.",
        info.pairs.len()
    );
    (moved > 0).then(|| CPUS_MOVED.advise(false, text, &[("pairs_moved_count", moved as f64)]))
}

const BACKWARDS: Rule = Rule {
    id: "C1",
    title: "A clock went back",
    changes_figures: false,
    fires_when: || {
        "A clock gives an earlier time than before within one thread; high unless only REALTIME does".to_owned()
    },
    why: "A step that is timed across it may take less than no time.",
    what_to_do: "Look for clock messages in `dmesg`; if only REALTIME went back, let NTP slew instead of step.",
    cannot_judge_when: "Never: every clock is read.",
    source: "POSIX clock_gettime: only REALTIME may be set.",
};

/// Time that goes back.
fn backwards(_: &Record, info: &ClockInfo) -> Option<Advice> {
    let rows = info.clocks.iter().filter(|row| row.backwards_count > 0);
    let worst = rows.max_by_key(|row| (row.clock != "REALTIME", row.backwards_count))?;
    let text = format!(
        "CLOCK_{} went back {} within one thread, by up to {} ns: a step that is timed across it may take less than no time. \
         REALTIME goes back when somebody sets the time; the others never should.",
        worst.clock,
        many(worst.backwards_count, "time"),
        worst.backwards_ns_max.value().map_or_else(String::new, |ns| fixed(ns, 0))
    );
    Some(BACKWARDS.advise(worst.clock != "REALTIME", text, &[("backwards_count", worst.backwards_count as f64)]))
}

const APART: Rule = Rule {
    id: "C2",
    title: "The clocks of two CPUs are apart",
    changes_figures: false,
    fires_when: || {
        "The bounds of a pair's offset prove a difference above 0; high where it exceeds the time of a read".to_owned()
    },
    why: "A thread that moves between the CPUs while it times a step is wrong by that much.",
    what_to_do: "Look in `dmesg` for why the kernel trusts this clock source, and compare with another one.",
    cannot_judge_when: "The process may use one CPU, or the kernel keeps no threads on the CPUs: then the rule is silent.",
    source: "Decided here.",
};

/// CPUs whose clocks are apart, as far as that is proved.
fn apart(_: &Record, info: &ClockInfo) -> Option<Advice> {
    let least = info.clocks_apart_ns_min.value().filter(|ns| *ns > 0.0)?;
    let text = format!(
        "The clocks of two CPUs are apart by at least {} ns. A thread that moves between them while it times a step is wrong by \
         that much, and so is any order of events by their time stamps. Clock sources available: {}.",
        fixed(least, 0),
        info.available
    );
    let read = info.clock_read_ns_p50.value().unwrap_or(0.0);
    Some(APART.advise(least > read, text, &[("clocks_apart_ns", least)]))
}

const SLOW_SOURCE: Rule = Rule {
    id: "C3",
    title: "Reading the clock source leaves user space",
    changes_figures: false,
    fires_when: || {
        format!(
            "A read costs at least {CALLS} of the cheapest system call, while tsc is available and not in use; always high"
        )
    },
    why: "tsc is read in user space, in a fraction of the time.",
    what_to_do: "First look in `dmesg` for `TSC unstable`: the kernel may have left tsc for a reason. If not, write tsc to \
                 /sys/devices/system/clocksource/clocksource0/current_clocksource and measure again; to keep it, boot with \
                 clocksource=tsc.",
    cannot_judge_when: "The kernel does not tell its clock sources: then the rule is silent.",
    source: "The kernel's documentation of kernel parameters.",
};

/// A source that needs the kernel, while there is one that does not.
fn slow_source(_: &Record, info: &ClockInfo) -> Option<Advice> {
    let (read, call) = (info.clock_read_ns_p50.value()?, info.system_call_ns_p50.value()?);
    let has_tsc = info.available.split_whitespace().any(|name| name == "tsc");
    if info.path != LEAVES || info.source == "tsc" || !has_tsc {
        return None;
    }
    let text = format!(
        "The clock source in use is {}. A read takes {} ns, the cheapest system call {} ns: each read is a system call, or \
         the hypervisor traps the counter. tsc, which is usually read in user space, is available.",
        info.source,
        fixed(read, 0),
        fixed(call, 0)
    );
    Some(SLOW_SOURCE.advise(true, text, &[("clock_read_ns", read)]))
}

const DEAR: Rule = Rule {
    id: "C4",
    title: "Timing costs a database",
    changes_figures: false,
    fires_when: || {
        format!(
            "pg_test_timing's loop takes {GOOD_NS} ns or more of CPU time, or at most {GOOD_PCT} % of the steps are below 1 us; \
             high from {HIGH_NS} ns"
        )
    },
    why: "A database that times each row or each I/O reads the clock twice for it.",
    what_to_do: "Leave track_io_timing off, use EXPLAIN (ANALYZE, TIMING OFF), and read times of short steps with care.",
    cannot_judge_when: "Never: without the time of the loop the rule is silent.",
    source: "The manual of pg_test_timing.",
};

/// Timing that a database feels.
fn dear(_: &Record, info: &ClockInfo) -> Option<Advice> {
    let (each, below) = (info.loop_cpu_ns_avg.value()?, info.below_1us_pct.value()?);
    let text = format!(
        "A loop that reads and counts takes {} ns of CPU time, and {} % of the steps are below 1 us; the manual of pg_test_timing \
         asks for less than {GOOD_NS} ns and more than {GOOD_PCT} %.",
        fixed(each, 0),
        fixed(below, 1)
    );
    let is_dear = each >= GOOD_NS || below <= GOOD_PCT;
    is_dear.then(|| DEAR.advise(each >= HIGH_NS, text, &[("loop_cpu_ns_avg", each), ("below_1us_pct", below)]))
}
