//! Relations between the settings of the workload: implied values and minimum sizes.
//!
//! Those that need the loaded data set (SCALE above the load, the hot window) belong to the plan.

use assay_measure::config::{Resolved, Settings, Value};

/// Minimum number of blocks per schema: below it no access is random.
pub(crate) const LEAST_SCALE_BLOCKS: u64 = 1_000;
/// SLOB's own minimum; fewer blocks are allowed with a warning.
const USUAL_LEAST_SCALE_BLOCKS: u64 = 10_000;
/// Maximum number of reads per batch.
const MOST_DEPTH: u64 = 32;

pub(crate) fn apply(resolved: &mut Resolved) {
    imply_work_units(&mut resolved.settings);
    block_size(resolved);
    scale(resolved);
}

fn imply_work_units(settings: &mut Settings) {
    let work_unit = settings.int("WORK_UNIT");
    if settings.get("UPDATE_WORK_UNIT").value == Value::Unset {
        settings.imply("UPDATE_WORK_UNIT", Value::Int(work_unit), work_unit.to_string(), "WORK_UNIT");
    }
    let depth = settings.iter().find(|setting| setting.def.name == "IO_DEPTH");
    // In the native table 0 means "follows from WORK_UNIT".
    if depth.is_some_and(|depth| matches!(depth.value, Value::Unset | Value::Int(0))) {
        let depth = work_unit.min(MOST_DEPTH);
        settings.imply("IO_DEPTH", Value::Int(depth), depth.to_string(), "WORK_UNIT");
    }
}

fn block_size(resolved: &mut Resolved) {
    let bytes = resolved.settings.int("BLOCK_SZ");
    if !bytes.is_power_of_two() {
        resolved.problem(
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
        resolved.problem(
            true,
            "SCALE",
            format!(
                "SCALE={text} is {blocks} blocks of {block_bytes} bytes; give at least {least} (1000, and WORK_UNIT)"
            ),
        );
    } else if blocks < USUAL_LEAST_SCALE_BLOCKS {
        resolved.problem(
            false,
            "SCALE",
            format!(
                "SCALE={text} is {blocks} blocks, fewer than SLOB's minimum of {USUAL_LEAST_SCALE_BLOCKS}: a small \
                 data set measures caches, not storage"
            ),
        );
    }
}
