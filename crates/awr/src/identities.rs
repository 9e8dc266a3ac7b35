//! Identities between counters (awr-statistics 2.3), a line each: `measure::identity::formula` says how to read them.
//!
//! A record of ours is judged exactly by them, an imported one within what its printing rounds away and what its source may
//! have read at two instants.

use assay_measure::identity::Scope;

/// Its number, the interval it is taken over, what must hold in words, and the same in the keys of the statistics.
pub type IdentityLine = (&'static str, Scope, &'static str, &'static str);

use Scope::{Quiet, Whole};

/// Terms are keys of `measure::counter_catalog`, `fact:NAME` of the engine, and `change:NAME` of a gauge from the gate to the drain.
#[rustfmt::skip]
pub const COUNTERS: [IdentityLine; 20] = [
    ("I1", Whole, "physical reads = cache + direct",
        "physical_reads_blocks = physical_reads_cache_blocks + physical_reads_direct_blocks"),
    ("I2", Whole, "physical writes = from cache + direct",
        "physical_writes_blocks = physical_writes_from_cache_blocks + physical_writes_direct_blocks"),
    ("I3", Whole, "read bytes of data = physical reads x block size",
        "physical_read_bytes = physical_reads_blocks * fact:block_bytes"),
    ("I4", Whole, "write bytes of data = physical writes x block size",
        "physical_write_bytes = physical_writes_blocks * fact:block_bytes"),
    ("I5", Whole, "session logical reads = db block gets + consistent gets",
        "session_logical_reads_blocks = db_block_gets_blocks + consistent_gets_blocks"),
    ("I6a", Whole, "read requests of data <= physical reads",
        "physical_read_io_requests_count <= physical_reads_blocks"),
    ("I6b", Whole, "physical reads - read requests <= prefetched + direct blocks",
        "physical_reads_blocks - physical_read_io_requests_count <= \
         physical_reads_cache_prefetch_blocks + physical_reads_direct_blocks"),
    ("I7a", Whole, "read requests of data <= all read requests",
        "physical_read_io_requests_count <= physical_read_total_io_requests_count"),
    ("I7b", Whole, "read bytes of data <= all bytes read",
        "physical_read_bytes <= physical_read_total_bytes"),
    ("I7c", Whole, "write requests of data <= all write requests",
        "physical_write_io_requests_count <= physical_write_total_io_requests_count"),
    ("I7d", Whole, "write bytes of data <= all bytes written",
        "physical_write_bytes <= physical_write_total_bytes"),
    ("I8", Quiet, "all bytes written - data bytes written = log + control file bytes",
        "physical_write_total_bytes - physical_write_bytes = redo_bytes_written + control_file_bytes_written"),
    ("I9", Quiet,
        "redo blocks written x log block size = redo size + wastage + block headers - change of the unflushed bytes",
        "redo_blocks_written_count * fact:log_block_bytes = \
         redo_size_bytes + redo_wastage_bytes + redo_block_header_bytes - change:redo_buffer_unflushed_bytes"),
    ("I10a", Quiet, "physical reads cache = demand misses + prefetched blocks",
        "physical_reads_cache_blocks = buffer_cache_demand_misses_blocks + physical_reads_cache_prefetch_blocks"),
    ("I10b", Quiet, "gets from cache = hits + demand misses + gets that waited for another session's read",
        "session_logical_reads_from_cache_blocks = buffer_cache_hits_blocks + buffer_cache_demand_misses_blocks \
         + buffer_cache_waits_for_other_reads_blocks"),
    ("I12", Whole, "physical writes non checkpoint <= physical writes",
        "physical_writes_non_checkpoint_blocks <= physical_writes_blocks"),
    ("I41a", Quiet, "all bytes read = bytes counted at completion",
        "physical_read_total_bytes = ring_completed_read_bytes"),
    ("I41b", Quiet, "all read requests = requests counted at completion",
        "physical_read_total_io_requests_count = ring_completed_read_requests_count"),
    ("I41c", Quiet, "all bytes written = bytes counted at completion",
        "physical_write_total_bytes = ring_completed_write_bytes"),
    ("I41d", Quiet, "all write requests = requests counted at completion",
        "physical_write_total_io_requests_count = ring_completed_write_requests_count"),
];

/// Of a server's counters against each other and against the client's.
#[rustfmt::skip]
pub(crate) const SERVER: [IdentityLine; 3] = [
    ("S1", Quiet, "logical reads = blocks hit + blocks read",
        "session_logical_reads_blocks = buffer_cache_hits_blocks + physical_reads_cache_blocks"),
    ("S2", Quiet, "blocks read <= logical reads",
        "physical_reads_blocks <= session_logical_reads_blocks"),
    ("S4", Quiet, "commits requested by the sessions <= commits counted by the server",
        "user_commits_count <= server_commits_count"),
];
