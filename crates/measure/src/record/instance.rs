//! A database's own statistics: counters, time model, wait events, I/O by function and path, layers.

use super::{
    AshInfo, EventRow, Figure, GaugeRow, IoProfileRow, IoRow, Latency, PathRow, PercentRow, ReadSources, ServerInfo,
    WaitClassRow,
};
use crate::figures::figures;
use std::collections::BTreeMap;

/// An instance over the measured window.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Instance {
    /// The rows of "Load Profile", in report order.
    pub load_profile: Vec<LoadRow>,
    /// The rows of "Instance Efficiency".
    pub efficiency: Vec<PercentRow>,
    /// Every counter by its key (`physical_read_io_requests_count`), window deltas.
    pub stats: BTreeMap<String, StatRow>,
    /// Values that go up and down, by name with unit last.
    pub gauges: BTreeMap<String, GaugeRow>,
    /// Where the time went.
    pub time_model: TimeModel,
    /// Foreground time by wait class, largest first.
    pub wait_classes: Vec<WaitClassRow>,
    /// Every event that waited in the window, largest total first.
    pub events: Vec<EventRow>,
    /// The same requests at each layer: the session's wait, the ring, the device.
    pub layers: Vec<RequestLayers>,
    /// What multi-block reads of the scan table delivered; n/a where none were run.
    pub scan: ScanInfo,
    /// Where the reads came from; only where a server did them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads: Option<ReadSources>,
    /// I/O by function and file type, window deltas.
    pub io_functions: Vec<IoRow>,
    /// I/O by path and file type, window deltas, with the device below each path beside it.
    pub paths: Vec<PathRow>,
    /// The rows of "IO Profile", in report order.
    pub io_profile: Vec<IoProfileRow>,
    /// Active session history.
    pub ash: AshInfo,
    /// The server the sessions worked on; only where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerInfo>,
}

/// One row of "Load Profile". Totals are window deltas in `unit`.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LoadRow {
    /// The report's label without its colon, e.g. `Redo size (bytes)`.
    pub name: String,
    /// `s`, `bytes`, `blocks`, `count` or `mib`.
    pub unit: String,
    /// Over the window.
    pub total: Figure,
    /// Per second of the window.
    pub per_s: Figure,
    /// Per commit or rollback.
    pub per_tx: Figure,
    /// Per execution.
    pub per_exec: Figure,
    /// Per user call.
    pub per_call: Figure,
    /// Per driver operation.
    pub per_op: Figure,
    /// How the total was obtained: `sysstat`, `pg_stat_database`, `proc`, `client`, ...
    pub source: String,
}

/// One counter over the window.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StatRow {
    /// The field's name, as in `V$SYSSTAT`.
    pub name: String,
    /// `count`, `blocks`, `bytes` or `ns`.
    pub unit: String,
    /// Window delta.
    pub total: Figure,
    /// Per second of the window.
    pub per_s: Figure,
    /// Per commit or rollback.
    pub per_tx: Figure,
    /// Per driver operation.
    pub per_op: Figure,
    /// Gate to the end of the drain: the delta the exact identities use.
    pub whole_run_total: Figure,
    /// How it was obtained: `sysstat`, `pg_stat_io`, `proc`, `client`, ...
    pub source: String,
}

/// Where the time went, window deltas in us.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TimeModel {
    /// Foreground wall time in calls, idle waits excluded.
    pub db_time_us: Figure,
    /// CPU of the driver threads.
    pub db_cpu_us: Figure,
    /// CPU of background threads.
    pub bg_cpu_us: Figure,
    /// Wall time of background threads outside idle waits.
    pub bg_elapsed_us: Figure,
    /// Wall time of the sessions between dispatch and suspension.
    pub on_thread_us: Figure,
    /// Time sessions were ready but not dispatched.
    pub run_queue_us: Figure,
    /// CPU burnt inside timed waits.
    pub cpu_in_wait_us: Figure,
    /// Runnable but not on a CPU, by the kernel's account of the driver threads.
    pub kernel_run_delay_us: Figure,
    /// Foreground non-idle waits.
    pub fg_wait_us: Figure,
    /// Background non-idle waits.
    pub bg_wait_us: Figure,
    /// How each of the above was obtained, by its key: `client`, `proc`, `sampled`, ...
    pub sources: BTreeMap<String, String>,
}

/// One kind of request at each layer it passes, window deltas. "Latency by layer".
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RequestLayers {
    /// What is requested, in words: `single-block read`, `log write`, ...
    pub request: String,
    /// The event whose waits these requests end, e.g. `db file sequential read`.
    pub event: String,
    /// `read` or `write`.
    pub direction: String,
    /// One wait of the event covers several requests, or fewer: then the two means differ by
    /// construction, and no share is lost between them.
    pub is_batched: bool,
    /// From the begin of the wait to its end; layer `engine`. Its fine histogram is the event's.
    pub engine: LayerRow,
    /// From the call that gave the request to the kernel to the call that took its completion; layer `syscall`.
    pub syscall: LayerRow,
    /// From the block layer to the device and back (`/proc/diskstats`); layer `device`. Means only, and of
    /// everything the devices did in this direction; `log write` includes the flush.
    pub device: LayerRow,
    /// Share of the engine's mean spent above the ring (queueing before the submit), 0..100.
    pub lost_above_syscall_pct: Figure,
    /// Share of the ring's mean spent above the device (kernel, file system, completion to reaping), 0..100;
    /// negative where the device's mean is of slower requests than these.
    pub lost_above_device_pct: Figure,
    /// Share of the engine's mean (batched: of the ring's mean) spent above the device, 0..100.
    pub lost_total_pct: Figure,
    /// What limits the comparison, in sentences.
    pub notes: Vec<String>,
}

/// One layer of a [`RequestLayers`].
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LayerRow {
    /// `engine`, `syscall` or `device`.
    pub layer: String,
    /// Waits (engine), requests (syscall), requests the devices completed in this direction (device).
    pub count: Figure,
    /// Bytes of those requests; n/a for the engine's waits.
    pub moved_bytes: Figure,
    /// How long they took.
    pub latency: Latency,
    /// How it was obtained: `sysstat`, `ring`, `diskstats`.
    pub source: String,
}

/// What scans delivered in the window.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ScanInfo {
    /// Scans ended.
    pub scans_count: Figure,
    /// Blocks of the scan tables delivered to sessions by scans that ended.
    pub blocks_count: Figure,
    /// Bytes read past the cache (direct path reads), including those of scans in progress.
    pub direct_bytes: Figure,
    /// Those bytes per second, 10^6 bytes.
    pub direct_mb_per_s: Figure,
    /// Those bytes per second, 2^20 bytes.
    pub direct_mib_per_s: Figure,
    /// Read requests past the cache.
    pub direct_requests_count: Figure,
    /// Streams of one scan (SCAN_PARALLEL).
    pub streams_count: Figure,
    /// CPU of the whole process per 10^9 bytes read past the cache, s; n/a where other operations ran too.
    pub cpu_per_gb_s: Figure,
}
