//! Where a server's reads came from.

use super::Figure;
use crate::figures::figures;

/// The same reads at each layer below a server's buffers, window deltas. Each layer counts what it can see: the engine
/// counts the blocks it requested from the operating system, the kernel the calls of the server's processes and what it
/// fetched for them, the devices all requests.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReadSources {
    /// Blocks the engine asked for: misses of its buffers.
    pub engine_blocks_count: Figure,
    /// The same in bytes.
    pub engine_bytes: Figure,
    /// All read calls of the server's processes.
    pub process_calls_count: Figure,
    /// Bytes those calls returned.
    pub process_call_bytes: Figure,
    /// Bytes the kernel fetched from devices for the server's processes, read-ahead included.
    pub process_device_bytes: Figure,
    /// Read requests that the devices under the server's files completed for all processes.
    pub device_requests_count: Figure,
    /// Their bytes.
    pub device_bytes: Figure,
    /// Part of the engine's bytes that no device delivered, 0..100.
    pub page_cache_pct: Figure,
    /// The layer behind this figure: `server processes` (or `session threads`), `devices`; empty if neither is known.
    pub basis: String,
    /// Gets the engine answered from its buffers, 0..100.
    pub buffer_hit_pct: Figure,
    /// Gets that no device was read for, 0..100: buffers and page cache together.
    pub true_hit_pct: Figure,
    /// Blocks the engine asked for, per second: what pgio prints as RIOPS.
    pub engine_blocks_per_s: Figure,
    /// Of those, blocks that a device delivered, per second.
    pub true_blocks_per_s: Figure,
    /// Where the server is, and the evidence.
    pub server_host: String,
    /// The requested EVICT modes; empty if none.
    pub evict_asked: String,
    /// What they achieved, one sentence each.
    pub evict_achieved: Vec<String>,
}
