//! What follows from the figures of a clock, in plain words.

use super::info::ClockInfo;
use assay_measure::record::Advice;
use assay_measure::units::{fixed, many};

/// What pg_test_timing's manual calls good: a loop below so many ns, and more than so many % of the steps below 1 us.
const GOOD_NS: f64 = 100.0;
const GOOD_PCT: f64 = 90.0;
/// Rounds that vary by more are not steady, %.
pub(super) const UNSTEADY_PCT: f64 = 10.0;

/// What makes the figures doubtful.
pub(super) fn warnings(info: &ClockInfo) -> Vec<String> {
    let mut found = Vec::new();
    if !info.is_optimised {
        found.push(
            "This assay was built without optimisation, so its loops take longer than the clock. Use a release build (cargo build \
             --release)."
                .to_owned(),
        );
    }
    let moved = info.pairs.iter().filter(|row| row.exchanges_count > 0 && row.offset_ns.value().is_none()).count();
    if moved > 0 {
        found.push(format!(
            "Of {moved} of {} pairs the CPUs' clocks moved against each other while assay compared them, so they have no one \
             offset: times taken on different CPUs cannot be subtracted.",
            info.pairs.len()
        ));
    }
    found
}

/// All findings, in the order they are read.
pub(super) fn advise(info: &ClockInfo) -> Vec<Advice> {
    [backwards, apart, slow_source, dear].iter().filter_map(|rule| rule(info)).collect()
}

/// T1: time that goes back.
fn backwards(info: &ClockInfo) -> Option<Advice> {
    let rows = info.clocks.iter().filter(|row| row.backwards_count > 0);
    let worst = rows.max_by_key(|row| row.backwards_count)?;
    let text = format!(
        "CLOCK_{} went back {} within one thread, by up to {} ns: a step that is timed then may take less than no time. \
         REALTIME goes back where somebody sets the time; the others never should. Look for clock messages in `dmesg`, and let \
         NTP slew instead of step.",
        worst.clock,
        many(worst.backwards_count, "time"),
        worst.backwards_ns_max.value().map_or_else(String::new, |ns| fixed(ns, 0))
    );
    Some(Advice::of("T1", worst.clock != "REALTIME", text, &[("backwards_count", worst.backwards_count as f64)]))
}

/// T2: CPUs whose clocks are apart, as far as that is proved.
fn apart(info: &ClockInfo) -> Option<Advice> {
    let least = info.clocks_apart_ns_min.value().filter(|ns| *ns > 0.0)?;
    let text = format!(
        "The clocks of two CPUs are apart by at least {} ns. A thread that moves between them while it times a step is wrong by \
         that much, and so is any order of events by their time stamps. Look in `dmesg` for why the kernel trusts this clock \
         source, and compare with another one of {}.",
        fixed(least, 0),
        info.available
    );
    let read = info.clock_read_ns_p50.value().unwrap_or(0.0);
    Some(Advice::of("T2", least > read, text, &[("clocks_apart_ns", least)]))
}

/// T3: a source that needs the kernel, while there is one that does not.
fn slow_source(info: &ClockInfo) -> Option<Advice> {
    let read = info.clock_read_ns_p50.value()?;
    let has_tsc = info.available.split_whitespace().any(|name| name == "tsc");
    if info.path != "system call" || info.source == "tsc" || !has_tsc {
        return None;
    }
    let text = format!(
        "The clock source is {}, which takes a system call of {} ns a read; tsc is there and is read in user space. Boot with \
         clocksource=tsc (kernel-parameters in the kernel's documentation), or for a try write tsc to \
         /sys/devices/system/clocksource/clocksource0/current_clocksource. First look in `dmesg` for `TSC unstable`: the \
         kernel may have left it for a reason.",
        info.source,
        fixed(read, 0)
    );
    Some(Advice::of("T3", true, text, &[("clock_read_ns", read)]))
}

/// T4: timing that a database feels.
fn dear(info: &ClockInfo) -> Option<Advice> {
    let (read, below) = (info.clock_read_ns_p50.value()?, info.below_1us_pct.value()?);
    let text = format!(
        "A read takes {} ns, and {} % of the steps are below 1 us; the manual of pg_test_timing asks for less than {} ns and more \
         than {} %. Leave track_io_timing off, use EXPLAIN (ANALYZE, TIMING OFF), and read times of short steps with care.",
        fixed(read, 0),
        fixed(below, 1),
        fixed(GOOD_NS, 0),
        fixed(GOOD_PCT, 0)
    );
    let is_dear = read >= GOOD_NS || below <= GOOD_PCT;
    is_dear
        .then(|| Advice::of("T4", read >= 10.0 * GOOD_NS, text, &[("clock_read_ns", read), ("below_1us_pct", below)]))
}
