//! Redo: R6, R7, R20.

use super::{Judged, Missing, elapsed, finding, foreground, named, only_reads, said, setting, share, stat};
use assay_measure::record::Advice;
use assay_measure::record::Record;
use assay_measure::units::{fixed, size};

/// A rate per hour of a shorter interval is an accident.
const LEAST_S: f64 = 900.0;

/// R6.
pub(super) fn redo_bound(record: &Record) -> Judged {
    const THRESHOLD: f64 = 15.0;
    let pct = share(record, |event| {
        event.name == "log buffer space" || event.name == "log file sync" || event.name.starts_with("log file switch")
    })?;
    if pct < THRESHOLD {
        return Ok(None);
    }
    let writes = stat(record, "redo_writes_count").ok().filter(|writes| *writes > 0.0);
    let per_write = |key: &str| Some(stat(record, key).ok()? / writes?);
    let switches = stat(record, "redo_log_switches_count").ok();
    let per_hour =
        switches.zip(elapsed(record).ok().filter(|seconds| *seconds >= LEAST_S)).map(|(n, s)| n * 3600.0 / s);
    let log = named(record, "log file parallel write", "background");
    let p99 = log.and_then(|log| log.p99_us.value());
    let (bytes, commits) = (per_write("redo_bytes_written"), per_write("user_commits_count"));
    let text = format!(
        "Redo-bound: {} % of DB time waits for the log.{}",
        fixed(pct, 1),
        said(&[
            p99.map(|us| format!("log write p99 {} us", fixed(us, 0))),
            bytes.map(|bytes| format!("{} bytes per write", fixed(bytes, 0))),
            commits.map(|commits| format!("{} commits per write", fixed(commits, 2))),
            per_hour.map(|switches| format!("{} switches per hour", fixed(switches, 0))),
        ])
    );
    let mut evidence = vec![("log_waits_pct", pct)];
    let more = [
        ("log_write_p99_us", p99),
        ("bytes_per_log_write", bytes),
        ("commits_per_log_write", commits),
        ("log_switches_per_hour", per_hour),
    ];
    evidence.extend(more.into_iter().filter_map(|(name, value)| Some((name, value?))));
    finding("R6", pct, THRESHOLD, text, &evidence)
}

/// R7.
pub(super) fn log_switches(record: &Record) -> Judged {
    const PER_HOUR: f64 = 4.0;
    if only_reads(record) {
        return Ok(None);
    }
    let elapsed = elapsed(record)?;
    let switches = stat(record, "redo_log_switches_count")?;
    let incomplete = foreground(record, |event| event.name == "log file switch (checkpoint incomplete)");
    let incomplete: f64 = incomplete.filter_map(|event| event.count.value()).sum();
    let per_hour = switches * 3600.0 / elapsed;
    // One switch is no rate yet, and several of a short run are none either.
    let is_rate = elapsed >= LEAST_S;
    let fast = switches >= 2.0 && per_hour > PER_HOUR;
    let sustained = fast && is_rate;
    if incomplete == 0.0 && !sustained {
        return if fast {
            Err(Missing(format!(
                "log switches per hour: {} switches in {} s give no hourly rate, which needs 15 min",
                fixed(switches, 0),
                fixed(elapsed, 0)
            )))
        } else {
            Ok(None)
        };
    }
    let wanted = stat(record, "redo_size_bytes")? / elapsed * 900.0;
    let text = format!(
        "Log files are small for this redo rate: {} switches{}, {} wait{} for an incomplete checkpoint. \
         For four switches per hour each file should hold {}.",
        fixed(switches, 0),
        if is_rate { format!(" ({} per hour)", fixed(per_hour, 0)) } else { format!(" in {} s", fixed(elapsed, 0)) },
        fixed(incomplete, 0),
        if incomplete == 1.0 { "" } else { "s" },
        size(wanted as u64)
    );
    let mut evidence = vec![
        ("log_switches_count", switches),
        ("checkpoint_incomplete_count", incomplete),
        ("log_file_wanted_bytes", wanted),
    ];
    evidence.extend(is_rate.then_some(("log_switches_per_hour", per_hour)));
    let high = (sustained && per_hour >= 2.0 * PER_HOUR) || incomplete >= 2.0;
    Ok(Some(Advice::of("R7", high, text, &evidence)))
}

/// R20. The published vectors are of LITE updates of 64 rows; with few rows per update the
/// share of each transaction's own redo and undo is another.
pub(super) fn not_a_standard_update(record: &Record) -> Judged {
    const ROWS_PER_UPDATE: f64 = 32.0;
    const REDO: std::ops::RangeInclusive<f64> = 750.0..=870.0;
    const CHANGES: std::ops::RangeInclusive<f64> = 2.0..=2.3;
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
        "Not a standard update: {} bytes of redo and {} block changes per row; 750 to 870 and 2.0 to 2.3 are usual \
         for LITE. Either the rows are not the expected ones, or updates that change nothing are skipped.",
        fixed(redo, 0),
        fixed(changes, 2)
    );
    let evidence = [("redo_bytes_per_row", redo), ("block_changes_per_row", changes)];
    // As far outside as the range is wide.
    let high = off(redo, &REDO) > 120.0 || off(changes, &CHANGES) > 0.3;
    Ok(Some(Advice::of("R20", high, text, &evidence)))
}
