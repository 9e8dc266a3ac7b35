//! The memory of a run: known, and refused if necessary, before anything is created.
//!
//! A failed allocation ends the program at once, and an overcommitted one ends it later, when the kernel kills it.

use assay_measure::config::Settings;
use assay_run::engine::EngineError;
use assay_run::host::memory;

/// Largest log buffer, bytes: no log writer needs more, whatever the memory.
const MOST_LOG_BUFFER_BYTES: u64 = 4 << 30;

/// Bytes of what is kept beside a frame of the cache.
const FRAME_OVERHEAD_BYTES: u64 = 64;

/// Bytes of a session: its redo before commit, its undo, its state.
const SESSION_BYTES: u64 = 128 << 10;

/// Reads past the cache that a driver thread has in flight at most: each holds a buffer of 1 MiB, pinned.
pub(super) const MAX_SCAN_BUFFERS: usize = 32;

/// Bytes of a driver thread's buffers for log writes and scans, at most.
const DRIVER_BYTES: u64 = (2 + MAX_SCAN_BUFFERS as u64) << 20;

/// What takes how much beside the program itself, at most: bytes by the parameter that says so.
pub(super) fn parts(settings: &Settings, sessions: u64, block_bytes: u64) -> Vec<(&'static str, u64)> {
    let cache = match settings.bytes("CACHE_MB") / block_bytes {
        0 => {
            let reads = match settings.text("READ_MODE") {
                "batched" => settings.int("IO_DEPTH").max(32),
                _ => 1,
            };
            sessions.saturating_mul(reads + 4).max(256)
        }
        frames => frames,
    };
    let writer = settings.int("DB_WRITER_COALESCE_BYTES").max(1 << 17);
    let writers = settings.int("DB_WRITERS") * (settings.int("DB_WRITER_BATCH") + 1);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let drivers = match settings.int("DRIVER_THREADS") {
        0 => cpus,
        asked => asked,
    };
    vec![
        ("CACHE_MB", cache.saturating_mul(block_bytes + FRAME_OVERHEAD_BYTES)),
        ("LOG_BUFFER_MB", settings.bytes("LOG_BUFFER_MB").max(1 << 20)),
        ("DB_WRITERS", writers.saturating_mul(writer)),
        ("DRIVER_THREADS", drivers.min(sessions) * DRIVER_BYTES),
        ("SESSIONS", sessions.saturating_mul(SESSION_BYTES)),
    ]
}

/// Refuses what no log needs, and what this host or its control group has not.
///
/// # Errors
/// `Usage` and `Unusable` naming the parameter, its value, and what to do.
pub(super) fn refuse_too_much(settings: &Settings, sessions: u64, block_bytes: u64) -> Result<(), EngineError> {
    if settings.bytes("LOG_BUFFER_MB") > MOST_LOG_BUFFER_BYTES {
        return Err(EngineError::Usage(format!(
            "LOG_BUFFER_MB={} is too large: the maximum is {}",
            settings.get("LOG_BUFFER_MB").text,
            MOST_LOG_BUFFER_BYTES >> 20
        )));
    }
    let parts = parts(settings, sessions, block_bytes.max(1));
    let lacking = memory::room().and_then(|room| memory::lacking(&room, &parts, settings));
    lacking.map_or(Ok(()), |why| Err(EngineError::Unusable(why)))
}
