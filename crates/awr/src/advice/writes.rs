//! The database writer and what reaches the device: R4, R5, R19, R27.

use super::{Judged, busy, finding, named, need, only_reads, setting, share, stat};
use assay_measure::record::{Advice, Record};
use assay_measure::units::fixed;

/// R4.
pub(super) fn writer_bound(record: &Record) -> Judged {
    const THRESHOLD: f64 = 10.0;
    let pct = share(record, |event| event.name == "free buffer waits")?;
    if pct < THRESHOLD {
        return Ok(None);
    }
    let mut text = format!(
        "Writer-bound: {} % of DB time is free buffer waits: sessions wait until the database writers have cleaned \
         buffers. Use a larger CACHE_MB, more DB_WRITERS or faster writes.",
        fixed(pct, 1)
    );
    let mut evidence = vec![("free_buffer_waits_pct", pct)];
    let submit = named(record, "db file async I/O submit", "background").and_then(|event| event.total_us.value());
    let background = record.instance.time_model.bg_elapsed_us.value().filter(|us| *us > 0.0);
    if let Some((submit, background)) = submit.zip(background) {
        let submit_pct = 100.0 * submit / background;
        evidence.push(("writer_submit_pct", submit_pct));
        if submit_pct > 50.0 {
            text.push_str(&format!(
                " The writers spend {} % of background time submitting: submission blocks (synchronous I/O mode or a full queue).",
                fixed(submit_pct, 0)
            ));
        }
    }
    if let Ok(busy) = busy(record).as_ref() {
        evidence.push(("busy_pct", *busy));
        if *busy >= 95.0 {
            text.push_str(" The host's CPUs are saturated: the writers themselves may lack CPU.");
        }
    }
    finding("R4", pct, THRESHOLD, text, &evidence)
}

/// R5.
pub(super) fn free_buffer_timer(record: &Record) -> Judged {
    const THRESHOLD: f64 = 80.0;
    /// The bucket of 8 to 16 ms.
    const TIMER: usize = 14;
    let Some(waits) = named(record, "free buffer waits", "foreground") else {
        return Ok(None);
    };
    let count = need(&waits.count, "free buffer waits")?;
    let Some(timer) = waits.hist_us.get(TIMER).filter(|_| count >= 10.0) else {
        return Ok(None);
    };
    let pct = 100.0 * *timer as f64 / count;
    if pct < THRESHOLD {
        return Ok(None);
    }
    let text = format!(
        "{} % of free buffer waits last 8 to 16 ms: this is the re-check timer, not a latency. Use the count and \
         share of these waits, not their average.",
        fixed(pct, 1)
    );
    finding("R5", pct, THRESHOLD, text, &[("timer_bucket_pct", pct)])
}

/// R19.
pub(super) fn checkpoint_writes(record: &Record) -> Judged {
    const THRESHOLD: f64 = 60.0;
    let writes = stat(record, "physical_writes_blocks")?;
    if writes < 1000.0 || only_reads(record) {
        return Ok(None);
    }
    let pct = 100.0 * stat(record, "physical_writes_non_checkpoint_blocks")? / writes;
    if pct >= THRESHOLD {
        return Ok(None);
    }
    let driven = 100.0 - pct;
    let log = match setting(record, "REDO_LOG_MB") {
        Some(mb) => format!(" (REDO_LOG_MB {mb}, a checkpoint within 90 % of one log)"),
        None => String::new(),
    };
    let text = format!(
        "Checkpoints cause {} % of the writes: the log file size limits how long a block can stay dirty{log}. With \
         larger log files the cache absorbs repeated changes.",
        fixed(driven, 1)
    );
    let evidence = [("checkpoint_writes_pct", driven)];
    finding("R19", driven, 100.0 - THRESHOLD, text, &evidence)
}

/// R27. LITE changes two columns of a row, HEAVY all nineteen, of 128 bytes each.
pub(super) fn amplification(record: &Record) -> Judged {
    const THRESHOLD: f64 = 20.0;
    const COLUMN: f64 = 128.0;
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
    Ok(Some(Advice::of("R27", false, text, &evidence)))
}
