//! What is shown of a clock: the answer, the report, the chart, and pg_test_timing's lines.

use super::findings::UNSTEADY_PCT;
use super::info::{ClockInfo, LEAVES, TimedRow};
use assay_measure::chart::{Axis, Chart, Drawn, Stroke, Trace};
use assay_measure::kind::{Headline, HeadlineFigure, HeadlineLine, Limit, Next, rerun_command};
use assay_measure::palette::nth;
use assay_measure::record::{Figure, Record};
use assay_measure::section::{Sections, common};
use assay_measure::units::{fixed, many};

const STOPPED: &str = "the probe was stopped before";

/// The first things to know.
pub(super) fn headline(record: &Record, info: &ClockInfo) -> Headline {
    let others =
        info.clocks.iter().skip(1).map(|row| HeadlineFigure::new(&row.read_ns_p50, &format!("ns {}", row.clock)));
    let timed = |row: &TimedRow| HeadlineFigure::new(&row.longer_pct, &format!("% for a {}", row.step));
    let mut apart = vec![HeadlineFigure::new(&info.clocks_apart_ns_max, "ns apart at most")];
    if info.clocks_apart_ns_min.value().is_some_and(|ns| ns > 0.0) {
        apart.push(HeadlineFigure::new(&info.clocks_apart_ns_min, "ns at least"));
    }
    Headline {
        tested: format!("The clock (source {}).", info.source),
        rows: vec![
            HeadlineLine::told(
                "Cost",
                vec![HeadlineFigure::new(&info.clock_read_ns_p50, "ns for a read of CLOCK_MONOTONIC")],
            ),
            HeadlineLine::told("Other clocks", others.collect()),
            HeadlineLine::told("Timing costs", info.timed.iter().map(timed).collect()),
            HeadlineLine::told(
                "Steps",
                vec![
                    HeadlineFigure::new(&info.step_ns_min, "ns the smallest"),
                    HeadlineFigure::new(&info.below_1us_pct, "% below 1 us"),
                    HeadlineFigure::new(&Figure::Count(info.backwards_count), "backwards"),
                ],
            ),
            HeadlineLine::told("Between CPUs", apart),
        ],
        steadiness: steadiness(info),
        rerun_command: rerun_command(record),
        // Slices in which others had the CPU do not count, so a busy host is not the limit.
        limit: limit(info),
        next: vec![
            Next::new("assay cpu", "measures what else these CPUs do for a database"),
            Next::new("assay clock --time 2m", "narrows the bounds between the CPUs"),
        ],
        ..Headline::default()
    }
}

fn steadiness(info: &ClockInfo) -> String {
    let Some(cv) = info.read_cv_pct.value().filter(|_| info.rounds_ns.len() > 1) else {
        return "n/a (one round)".to_owned();
    };
    let rounds = many(info.rounds_ns.len() as u64, "round");
    let word = if cv <= UNSTEADY_PCT { "steady" } else { "not steady" };
    format!("{word}: the medians of {rounds} vary by {} %", fixed(cv, 1))
}

/// How it is read, with the costs from which that is inferred.
fn limit(info: &ClockInfo) -> Limit {
    let both = info.clock_read_ns_p50.value().zip(info.system_call_ns_p50.value());
    let Some((read, call)) = both else {
        return Limit::unknown(STOPPED);
    };
    let (what, inferred) = match info.path.as_str() {
        "user space" => ("the counter of the clock source itself", "infers that it is read in user space (vDSO)"),
        LEAVES => (
            "the way into the kernel or the hypervisor",
            "infers that each read is a system call, or that the hypervisor traps the counter",
        ),
        _ => ("", "cannot tell whether it is read in user space or by a system call"),
    };
    let evidence = format!(
        "A read of {} takes {} ns, the cheapest system call (getppid) {} ns; from these costs assay {inferred}.",
        info.source,
        fixed(read, 1),
        fixed(call, 1)
    );
    Limit::new(what, evidence)
}

/// The whole report.
pub(super) fn render(record: &Record, info: &ClockInfo) -> Sections {
    let mut page = Sections::default();
    let of = format!("source {}; available: {}", info.source, info.available);
    common::opening(&mut page, record, "CLOCK", &of);
    common::warnings(&mut page, record);
    common::advice(&mut page, record);
    page.heading("How It Is Read");
    page.wrapped("", &limit(info).evidence);
    page.table_of("What a Read Costs", COSTS, &info.clocks, STOPPED);
    page.table_of("What Timing Costs a Database", TIMING, &info.timed, STOPPED);
    page.table_of("Steps between Readings of CLOCK_MONOTONIC", STEPS, &info.steps, STOPPED);
    page.table_of("Whether the CPUs Agree", PAIRS, &info.pairs, info.clocks_apart_ns_max.reason().unwrap_or(STOPPED));
    page.heading("Who Else Used the Host");
    for (name, value) in info.conditions.shown() {
        page.named(name, 42, value);
    }
    common::facts(&mut page, "Host", &record.host.facts);
    page
}

const COSTS: &str = "Read: the median of slices of 500 us, so that slices in which another process had the CPU do not count; +- is \
                     half the 95 % interval over the rounds. Loop: with the difference to the reading before and its bucket, as \
                     pg_test_timing counts, over all the time, interruptions too; on a CPU: without those.";
const TIMING: &str = "Two reads for each step, one at its begin and one at its end, over its own length.";
const STEPS: &str =
    "As pg_test_timing's table. A long step is one in which the thread had no CPU, or the hypervisor none for it.";
const PAIRS: &str = "A thread on each CPU; one reads the clock, then the other, then the first again. The reading between was made \
                     at some instant between the two others, which bounds how far that clock is ahead: no exchange allows more. \
                     What lies within the bound is not known. Where the CPUs are many, each is compared with the first \
                     alone: how far two others may be apart follows from both offsets.";

/// What one read cost, round by round.
pub(super) fn chart(info: &ClockInfo) -> Drawn {
    let ns = info.rounds_ns.iter().map(|ns| Some(*ns)).collect();
    let rounds = (1..=info.rounds_ns.len()).map(|round| round as f64).collect();
    let chart = Chart {
        id: "c-clock".to_owned(),
        title: "One read of CLOCK_MONOTONIC by round".to_owned(),
        x: Axis::of("round", ""),
        y: Axis::of("one read", "ns"),
        traces: vec![Trace::new("median of the slices", Stroke::Joined, nth(0), ns).at(rounds)],
        ..Chart::default()
    };
    Drawn::or(chart, STOPPED)
}

/// As `pg_test_timing` of PostgreSQL up to 18 prints it.
pub(super) fn of_pg_test_timing(info: &ClockInfo) -> String {
    // It takes whole seconds only, and begins a second that it does not end.
    let (seconds, loop_ns) = (many(info.loop_s.ceil() as u64, "second"), info.loop_ns_avg.value().unwrap_or(f64::NAN));
    let mut text = format!(
        "Testing timing overhead for {seconds}.\nPer loop time including overhead: {loop_ns:.2} ns\nHistogram of timing \
         durations:\n"
    );
    text.push_str(&format!("{:>6}   {:>10} {:>10}\n", "< us", "% of total", "count"));
    for row in &info.steps {
        let share = row.share_pct.value().unwrap_or(f64::NAN);
        text.push_str(&format!("{:>6}    {share:>9.5} {:>10}\n", row.below_us, row.steps_count));
    }
    text
}
