//! Rules between settings that hold for every target: implied values, the
//! precedence of WORK_LOOP over RUN_TIME, least sizes.
//!
//! Rules that need the loaded data set (SCALE above the load, the hot window)
//! belong to the plan.

use super::settings::{Effective, Origin, Problem, Resolved, Settings, Value, place_of};
use super::value::seconds_text;

/// Fewest blocks of a schema: below, no access is random.
pub const LEAST_SCALE_BLOCKS: u64 = 1_000;
/// SLOB's own least; smaller is allowed with a notice.
pub const USUAL_LEAST_SCALE_BLOCKS: u64 = 10_000;
/// Warm-up is a tenth of the run, at most this.
const LONGEST_WARMUP_NS: u64 = 30_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// Below this a run is too short for steady figures.
const SHORT_RUN_NS: u64 = 30 * SECOND_NS;
/// Most reads a batch may hold.
const MOST_DEPTH: u64 = 32;

pub(super) fn apply(resolved: &mut Resolved) {
    work_loop(resolved);
    run_time(resolved);
    warmup(resolved);
    imply_work_units(&mut resolved.settings);
    block_size(resolved);
    scale(resolved);
}

fn problem(resolved: &mut Resolved, error: bool, name: &str, text: String) {
    let setting = resolved.settings.get(name);
    let place = place_of(&setting.origin);
    if error {
        resolved.broken.insert(setting.def.name);
    }
    resolved.problems.push(Problem { error, place, text });
}

fn imply(settings: &mut Settings, name: &str, value: Value, text: String, by: &str) {
    let def = settings.get(name).def;
    settings.set(Effective { def, value, text, origin: Origin::Implied(by.to_owned()) });
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
        problem(
            resolved,
            true,
            "RUN_TIME",
            "a run has a time or a number of operations: give --time or WORK_LOOP, not both".to_owned(),
        );
    } else if time_asked {
        problem(resolved, false, "WORK_LOOP", "the run time on the command line overrides WORK_LOOP".to_owned());
        imply(&mut resolved.settings, "WORK_LOOP", Value::Int(0), "0".to_owned(), "--time");
    } else {
        problem(
            resolved,
            false,
            "RUN_TIME",
            "RUN_TIME is ignored because WORK_LOOP is set (MAX_RUN_TIME limits such a run)".to_owned(),
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
    if run_time < SECOND_NS {
        problem(resolved, true, "RUN_TIME", format!("RUN_TIME={text} is less than a second; give 1 or more"));
    } else if run_time < SHORT_RUN_NS {
        problem(
            resolved,
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
            problem(resolved, false, "WARMUP", "WARMUP is ignored because WORK_LOOP is set".to_owned());
        }
        let settings = &mut resolved.settings;
        imply(settings, "WARMUP", Value::Ns(0), "0".to_owned(), "WORK_LOOP");
    } else if settings.get("WARMUP").value == Value::Unset {
        let ns = (settings.ns("RUN_TIME") / 10).min(LONGEST_WARMUP_NS);
        imply(settings, "WARMUP", Value::Ns(ns), seconds_text(ns), "RUN_TIME");
    }
}

fn imply_work_units(settings: &mut Settings) {
    let work_unit = settings.int("WORK_UNIT");
    if settings.get("UPDATE_WORK_UNIT").value == Value::Unset {
        imply(settings, "UPDATE_WORK_UNIT", Value::Int(work_unit), work_unit.to_string(), "WORK_UNIT");
    }
    let depth = settings.iter().find(|setting| setting.def.name == "IO_DEPTH");
    // 0 is the native table's word for "follows from WORK_UNIT".
    if depth.is_some_and(|depth| matches!(depth.value, Value::Unset | Value::Int(0))) {
        let depth = work_unit.min(MOST_DEPTH);
        imply(settings, "IO_DEPTH", Value::Int(depth), depth.to_string(), "WORK_UNIT");
    }
}

fn block_size(resolved: &mut Resolved) {
    let bytes = resolved.settings.int("BLOCK_SZ");
    if !bytes.is_power_of_two() {
        problem(
            resolved,
            true,
            "BLOCK_SZ",
            format!("BLOCK_SZ={bytes} is not a power of two; give 4096, 8192, 16384, 32768 or 65536"),
        );
    }
}

fn scale(resolved: &mut Resolved) {
    if resolved.broken.contains("SCALE") || resolved.broken.contains("WORK_UNIT") {
        return;
    }
    let settings = &resolved.settings;
    let block_bytes = settings.int("BLOCK_SZ");
    let text = settings.get("SCALE").text.clone();
    let Some(blocks) = settings.blocks("SCALE", block_bytes) else {
        return;
    };
    let work_unit = settings.int("WORK_UNIT").max(settings.int("UPDATE_WORK_UNIT"));
    let least = LEAST_SCALE_BLOCKS.max(work_unit);
    if blocks < least {
        problem(
            resolved,
            true,
            "SCALE",
            format!(
                "SCALE={text} is {blocks} blocks of {block_bytes} bytes; give at least {least} (1000, and WORK_UNIT)"
            ),
        );
    } else if blocks < USUAL_LEAST_SCALE_BLOCKS {
        problem(
            resolved,
            false,
            "SCALE",
            format!(
                "SCALE={text} is {blocks} blocks, fewer than SLOB's minimum of {USUAL_LEAST_SCALE_BLOCKS}: a small \
                 data set measures caches, not storage"
            ),
        );
    }
}
