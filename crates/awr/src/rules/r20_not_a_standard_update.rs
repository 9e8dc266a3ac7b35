//! R20: not a standard update.

use super::*;

const ROWS_PER_UPDATE: f64 = 32.0;
/// As far outside as the range is wide.
const FAR: (f64, f64) = (120.0, 0.3);
const REDO: std::ops::RangeInclusive<f64> = 750.0..=870.0;
const CHANGES: std::ops::RangeInclusive<f64> = 2.0..=2.3;

pub(super) const RULE: Rule = Rule {
    id: "R20",
    title: "Not a standard update",
    changes_figures: false,
    fires_when: || {
        format!(
            "LITE updates of at least {ROWS_PER_UPDATE} rows make redo outside {} to {} bytes a row or block changes outside {} to {} a row; high where they are as far outside as the range is wide",
            REDO.start(),
            REDO.end(),
            CHANGES.start(),
            CHANGES.end()
        )
    },
    why: "Rows are not those of the method, or updates that change nothing are skipped.",
    what_to_do: "Check the data set and the update statement before you compare redo with published figures.",
    cannot_judge_when: "Rows changed, redo size or block changes are n/a. On a server, with HEAVY and of fewer than 1000 rows the rule is silent.",
    source: "Published vectors of the method, of 64 rows.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    if record.instance.server.is_some() {
        // The published vectors are of engines with undo in their log.
        return Ok(None);
    }
    let mut ops = record.driver.ops.iter();
    let Some(updates) = ops.find(|op| op.kind == "update" && op.count > 0) else {
        return Ok(None);
    };
    let lite = setting(record, "REDO_STRESS").is_none_or(|stress| stress.eq_ignore_ascii_case("LITE"));
    if !lite || (updates.rows_count as f64) < ROWS_PER_UPDATE * updates.count as f64 {
        return Ok(None);
    }
    let rows = stat(record, "table_rows_changed_count")?;
    if rows < 1000.0 {
        return Ok(None);
    }
    let redo = stat(record, "redo_size_bytes")? / rows;
    let changes = stat(record, "db_block_changes_count")? / rows;
    if REDO.contains(&redo) && CHANGES.contains(&changes) {
        return Ok(None);
    }
    let off =
        |value: f64, range: &std::ops::RangeInclusive<f64>| (range.start() - value).max(value - range.end()).max(0.0);
    let text = format!(
        "Not a standard update: {} bytes of redo and {} block changes per row; {} to {} and {:.1} to {:.1} are usual \
         for LITE. Either the rows are not the expected ones, or updates that change nothing are skipped.",
        fixed(redo, 0),
        fixed(changes, 2),
        REDO.start(),
        REDO.end(),
        CHANGES.start(),
        CHANGES.end()
    );
    let evidence = [("redo_bytes_per_row", redo), ("block_changes_per_row", changes)];
    let high = off(redo, &REDO) > FAR.0 || off(changes, &CHANGES) > FAR.1;
    Ok(Some(RULE.advise(high, text, &evidence)))
}
