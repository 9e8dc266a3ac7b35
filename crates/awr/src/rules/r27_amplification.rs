//! R27: write amplification.

use super::*;

const THRESHOLD: f64 = 20.0;
const COLUMN: f64 = 128.0;

pub(super) const RULE: Rule = Rule {
    id: "R27",
    title: "Write amplification",
    changes_figures: false,
    fires_when: || {
        format!("At least {THRESHOLD} bytes are written for each byte that the sessions changed, of 1000 rows or more")
    },
    why: "The device writes much more than the sessions change.",
    what_to_do: "Make fewer but larger changes per block, rarer checkpoints or a larger cache.",
    cannot_judge_when: "Neither the bytes that the engine wrote nor those of the devices are known.",
    source: "Decided here.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let Ok(rows) = stat(record, "table_rows_changed_count") else {
        return Ok(None);
    };
    if rows < 1000.0 {
        return Ok(None);
    }
    let heavy = setting(record, "REDO_STRESS").is_some_and(|stress| stress.eq_ignore_ascii_case("HEAVY"));
    let changed = rows * COLUMN * if heavy { 19.0 } else { 2.0 };
    // The devices also take what others write: where the engine's own writes are known, they decide.
    let engine = record.checks.engine_write_bytes.value();
    let device = record.checks.device_write_bytes.value();
    let written = match engine {
        Some(bytes) => bytes,
        None => need(&record.checks.device_write_bytes, "device write bytes")?,
    };
    let ratio = written / changed;
    if ratio < THRESHOLD {
        return Ok(None);
    }
    let (more, checkpoints) = if record.instance.server.is_some() {
        (" and page images in the log", ", rarer checkpoints")
    } else {
        (", undo and redo", "")
    };
    let text = format!(
        "Write amplification: {} wrote {} bytes for each byte that the sessions changed{}. Each small change writes \
         a whole block{more}. Fewer but larger changes per block{checkpoints} or a larger cache reduce this.",
        if engine.is_some() { "the engine" } else { "the devices" },
        fixed(ratio, 1),
        engine.and(device).map_or_else(String::new, |bytes| {
            format!(" (the devices {}, including writes by other processes)", fixed(bytes / changed, 1))
        }),
    );
    let per_changed = |bytes: f64| bytes / changed;
    let mut evidence: Vec<(&str, f64)> = Vec::new();
    evidence.extend(device.map(|bytes| ("device_bytes_per_changed_byte", per_changed(bytes))));
    evidence.extend(engine.map(|bytes| ("engine_bytes_per_changed_byte", per_changed(bytes))));
    // Small changes to whole blocks are what the workload is: never a reason to doubt a run.
    Ok(Some(RULE.finding(false, text, &evidence)))
}
