//! Rules between settings that hold for every run: the warm-up that follows from RUN_TIME, the
//! precedence of WORK_LOOP over RUN_TIME.

use super::settings::{Origin, Resolved, Value};
use super::value::seconds_text;
use crate::clock::NS_PER_S;
use crate::precision::{Goal, RunFigure, SECONDS_LEAST};
use crate::units::duration;

/// Warm-up is a tenth of the run, at most this.
const LONGEST_WARMUP_NS: u64 = 30 * NS_PER_S;
/// A run with UNTIL takes no longer unless told otherwise.
const AT_MOST_NS: u64 = 600 * NS_PER_S;
/// Below this a run is too short for steady figures.
const SHORT_RUN_NS: u64 = 30 * NS_PER_S;

pub(super) fn apply(resolved: &mut Resolved) {
    work_loop(resolved);
    run_time(resolved);
    until(resolved);
    warmup(resolved);
}

/// With UNTIL the run takes at most so long: the window is what the warm-up leaves of it.
fn until(resolved: &mut Resolved) {
    let settings = &resolved.settings;
    let (until, at_most) = (settings.text("UNTIL").to_owned(), settings.ns("AT_MOST"));
    if until.is_empty() {
        if settings.is_given("AT_MOST") {
            resolved.problem(
                true,
                "AT_MOST",
                "AT_MOST limits a run with UNTIL (--until p99=\u{b1}5%): give both, or RUN_TIME",
            );
        }
        return;
    }
    if let Err(why) = Goal::parse(&until).and_then(|goal| RunFigure::named(&goal.figure)) {
        resolved.problem(true, "UNTIL", format!("UNTIL={until}: {why}"));
    }
    let settings = &resolved.settings;
    let is_asked = |name: &str| settings.get(name).origin == Origin::CommandLine;
    let (time_asked, loop_asked) = (is_asked("RUN_TIME"), settings.int("WORK_LOOP") > 0);
    let at_most = if at_most == 0 { AT_MOST_NS } else { at_most };
    let ramp = match settings.get("WARMUP").value {
        Value::Unset => (at_most / 10).min(LONGEST_WARMUP_NS),
        _ => settings.ns("WARMUP"),
    };
    if time_asked || loop_asked {
        let other = if time_asked { "RUN_TIME (--time)" } else { "WORK_LOOP" };
        let told = format!("a run ends after a time or when a figure is known: give {other} or UNTIL, not both");
        resolved.problem(true, "UNTIL", told);
        return;
    }
    let least = ramp + SECONDS_LEAST as u64 * NS_PER_S;
    if at_most < least {
        let told = format!(
            "AT_MOST={} is less than the warm-up ({}) and the {SECONDS_LEAST} seconds that anything can be said of; give {} or more",
            duration(at_most),
            duration(ramp),
            duration(least)
        );
        resolved.problem(true, "AT_MOST", told);
        return;
    }
    if settings.is_given("RUN_TIME") {
        resolved.problem(false, "RUN_TIME", "RUN_TIME is ignored because UNTIL is set (AT_MOST limits such a run)");
    }
    let settings = &mut resolved.settings;
    settings.imply("AT_MOST", Value::Ns(at_most), seconds_text(at_most), "UNTIL");
    settings.imply("WARMUP", Value::Ns(ramp), seconds_text(ramp), "UNTIL");
    settings.imply("RUN_TIME", Value::Ns(at_most - ramp), seconds_text(at_most - ramp), "UNTIL");
}

/// WORK_LOOP governs, unless RUN_TIME comes from the command line and it does not.
fn work_loop(resolved: &mut Resolved) {
    let settings = &resolved.settings;
    if settings.int("WORK_LOOP") == 0 || !settings.is_given("RUN_TIME") {
        return;
    }
    let time_asked = settings.get("RUN_TIME").origin == Origin::CommandLine;
    let loop_asked = settings.get("WORK_LOOP").origin == Origin::CommandLine;
    if time_asked && loop_asked {
        resolved.problem(
            true,
            "RUN_TIME",
            "a run has a time or a number of operations: give --time or WORK_LOOP, not both",
        );
    } else if time_asked {
        resolved.problem(false, "WORK_LOOP", "the run time on the command line overrides WORK_LOOP");
        resolved.settings.imply("WORK_LOOP", Value::Int(0), "0", "--time");
    } else {
        resolved.problem(
            false,
            "RUN_TIME",
            "RUN_TIME is ignored because WORK_LOOP is set (MAX_RUN_TIME limits such a run)",
        );
    }
}

fn run_time(resolved: &mut Resolved) {
    let settings = &resolved.settings;
    if settings.int("WORK_LOOP") > 0 || !settings.is_given("RUN_TIME") {
        return;
    }
    let run_time = settings.ns("RUN_TIME");
    let text = settings.get("RUN_TIME").text.clone();
    if run_time < NS_PER_S {
        resolved.problem(true, "RUN_TIME", format!("RUN_TIME={text} is less than a second; give 1 or more"));
    } else if run_time < SHORT_RUN_NS {
        resolved.problem(
            false,
            "RUN_TIME",
            format!(
                "RUN_TIME={text} is a short run: caches and devices may not reach their steady state; 300 is usual"
            ),
        );
    }
}

fn warmup(resolved: &mut Resolved) {
    let settings = &mut resolved.settings;
    if settings.int("WORK_LOOP") > 0 {
        let given = settings.is_given("WARMUP") && settings.ns("WARMUP") > 0;
        if given {
            resolved.problem(false, "WARMUP", "WARMUP is ignored because WORK_LOOP is set");
        }
        resolved.settings.imply("WARMUP", Value::Ns(0), "0", "WORK_LOOP");
    } else if settings.get("WARMUP").value == Value::Unset {
        let ns = (settings.ns("RUN_TIME") / 10).min(LONGEST_WARMUP_NS);
        settings.imply("WARMUP", Value::Ns(ns), seconds_text(ns), "RUN_TIME");
    }
}
