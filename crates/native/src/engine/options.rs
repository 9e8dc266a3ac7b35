//! The native engine's options, resolved once at open.

use crate::control::Control;
use crate::crash_rules::CrashRules;
use crate::memory::MAX_SCAN_BUFFERS;
use assay_measure::config::Settings;
use assay_run::engine::EngineError;
use assay_run::plan::Plan;

/// How an index range finds its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexMode {
    /// Through the static B-tree in the cache.
    Btree,
    /// Through the key's permutation alone: no index block is read.
    Computed,
}

/// When a commit is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitMode {
    /// Before its log write.
    None,
    /// After a log write it may share.
    Group,
    /// After its own log write.
    Sync,
}

impl CommitMode {
    /// Log writes under way at once, at most.
    pub(crate) fn log_writes(self) -> usize {
        match self {
            // One per commit, one after the other.
            Self::Sync => 1,
            Self::Group | Self::None => super::redo::MAX_FLIGHTS,
        }
    }
}

/// What is checked of a block's checksum (`db_block_checksum`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumMode {
    /// Nothing.
    Off,
    /// Computed when written, verified when read.
    Typical,
    /// Also verified before each change.
    Full,
}

/// What wakes a session that waits for a free buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FreeWait {
    /// A 10 ms timer, as Oracle's histogram shows it.
    Timed,
    /// The writer, as soon as it made buffers free.
    Posted,
}

/// All options of the engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Blocks that the cache holds.
    pub cache_frames: usize,
    /// A block is dropped when its reader is done with it (CACHE_MB=0).
    pub drop_on_unpin: bool,
    /// Ask for huge pages (advice).
    pub huge_pages: bool,
    pub(crate) index: IndexMode,
    /// READ_MODE=batched.
    pub batched: bool,
    /// Reads of one batch at most.
    pub io_depth: usize,
    /// When a commit is acknowledged.
    pub commit: CommitMode,
    /// What is checked of blocks.
    pub checksum: ChecksumMode,
    pub(crate) free_wait: FreeWait,
    /// A seek for a free buffer gives up once so many percent of a partition turned out dirty.
    pub(crate) scan_pct: usize,
    /// Database writers.
    pub writers: usize,
    /// Requests of a writer's batch at most.
    pub writer_requests: usize,
    /// Bytes of one request of a writer at most; at least a block.
    pub writer_bytes: usize,
    /// LOG_CHECKPOINT_TIMEOUT; 0 is none.
    pub(crate) checkpoint_timeout_ns: u64,
    /// LOG_CHECKPOINT_INTERVAL in log blocks; 0 is none.
    pub(crate) checkpoint_interval_blocks: u64,
    /// Dirty blocks that recovery would have to read at most; 0 is no limit.
    pub(crate) recovery_blocks: u64,
    /// Streams of one scan (SCAN_PARALLEL).
    pub(crate) scan_streams: usize,
    /// Reads each of them has in flight (SCAN_DEPTH).
    pub(crate) scan_depth: usize,
    /// Whether the plan scans at all.
    scans: bool,
    pub(crate) direct: bool,
    pub(crate) asynchronous: bool,
    pub(crate) io_mode: String,
    pub(crate) multiblock: usize,
    /// Size of the log buffer, a power of two.
    pub log_buffer_bytes: usize,
    pub(crate) driver_threads: usize,
    pub(crate) optimistic: bool,
    pub(crate) prefetch: bool,
    /// Sessions update each other's rows.
    pub shared_rows: bool,
    /// Sessions.
    pub sessions: usize,
    /// Data blocks that the sessions visit.
    pub(crate) blocks: u64,
    pub(crate) update_pct: u32,
    /// All, but where a test shows what one is for.
    pub rules: CrashRules,
}

/// Frames a cache of 0 MiB still needs: one read per session under way, and room for blocks on their way out.
fn bare_minimum(sessions: usize, reads_per_session: usize) -> usize {
    (sessions * (reads_per_session + 4)).max(256)
}

/// How many frames the cache has, and whether blocks are dropped after use (CACHE_MB=0).
fn cache_size(
    settings: &Settings,
    plan: &Plan,
    block_bytes: u64,
    reads_per_session: usize,
) -> Result<(usize, bool), EngineError> {
    let text = &settings.get("CACHE_MB").text;
    let asked = (settings.bytes("CACHE_MB") / block_bytes) as usize;
    if asked == 0 {
        let least = bare_minimum(plan.sessions(), reads_per_session);
        if least >= super::page_table::MAX_FRAMES {
            return Err(EngineError::Usage(format!(
                "IO_DEPTH={reads_per_session} with {} sessions needs {least} blocks in memory; at most {} are possible: lower IO_DEPTH",
                plan.sessions(),
                super::page_table::MAX_FRAMES
            )));
        }
        return Ok((least, true));
    }
    if asked < plan.sessions() * 2 + 16 {
        return Err(EngineError::Usage(format!(
            "CACHE_MB={text} holds {asked} blocks of {block_bytes} bytes, too few for {} sessions (two each and 16): \
             raise CACHE_MB, or set it to 0 for no cache",
            plan.sessions()
        )));
    }
    if asked >= super::page_table::MAX_FRAMES {
        return Err(EngineError::Usage(format!(
            "CACHE_MB={text} is {asked} blocks; the cache holds at most {} blocks",
            super::page_table::MAX_FRAMES
        )));
    }
    Ok((asked, false))
}

/// Blocks of one multi-block read: 1 MiB worth unless fewer are asked for.
fn multiblock(settings: &Settings, block_bytes: u64) -> usize {
    let most = ((1 << 20) / block_bytes as usize).max(1);
    match settings.int("MULTIBLOCK_READ_COUNT") {
        0 => most,
        blocks => (blocks as usize).clamp(1, most),
    }
}

/// Enough for a scan that the plan does not foresee.
const FEWEST_SCAN_BUFFERS: usize = 2;

impl EngineOptions {
    /// Scan buffers of a driver thread with so many sessions.
    pub(crate) fn scan_buffers(&self, sessions: usize) -> usize {
        if !self.scans {
            return FEWEST_SCAN_BUFFERS;
        }
        (sessions * self.scan_streams * self.scan_depth).clamp(FEWEST_SCAN_BUFFERS, MAX_SCAN_BUFFERS)
    }

    /// Resolves the settings for this plan and data set.
    ///
    /// # Errors
    /// A cache too small for the sessions, or too large for the engine.
    pub fn resolve(settings: &Settings, plan: &Plan, control: &Control) -> Result<Self, EngineError> {
        let block_bytes = u64::from(control.geometry.block_bytes);
        let batched = settings.text("READ_MODE") == "batched";
        let io_depth = match settings.int("IO_DEPTH") {
            0 => (plan.work_unit as usize).clamp(1, 32),
            depth => depth as usize,
        };
        let reads = if batched { io_depth } else { 1 };
        let (cache_frames, drop_on_unpin) = cache_size(settings, plan, block_bytes, reads)?;
        let io_mode = settings.text("IO_MODE").to_owned();
        Ok(Self {
            cache_frames,
            drop_on_unpin,
            huge_pages: settings.bool("HUGE_PAGES"),
            index: if settings.text("INDEX") == "computed" { IndexMode::Computed } else { IndexMode::Btree },
            batched,
            io_depth,
            commit: match settings.text("COMMIT_MODE") {
                "none" => CommitMode::None,
                "sync" => CommitMode::Sync,
                _ => CommitMode::Group,
            },
            checksum: match settings.text("DB_BLOCK_CHECKSUM") {
                "off" => ChecksumMode::Off,
                "full" => ChecksumMode::Full,
                _ => ChecksumMode::Typical,
            },
            free_wait: if settings.text("FREE_WAIT") == "posted" { FreeWait::Posted } else { FreeWait::Timed },
            scan_pct: settings.int("CACHE_SCAN_PCT") as usize,
            writers: settings.int("DB_WRITERS") as usize,
            writer_requests: settings.int("DB_WRITER_BATCH") as usize,
            writer_bytes: (settings.int("DB_WRITER_COALESCE_BYTES").max(block_bytes) / block_bytes * block_bytes)
                as usize,
            checkpoint_timeout_ns: settings.ns("LOG_CHECKPOINT_TIMEOUT"),
            checkpoint_interval_blocks: settings.int("LOG_CHECKPOINT_INTERVAL"),
            recovery_blocks: settings.int("FAST_START_IO_TARGET"),
            scan_streams: settings.int("SCAN_PARALLEL") as usize,
            scan_depth: settings.int("SCAN_DEPTH") as usize,
            scans: plan.scan_pct > 0,
            direct: matches!(io_mode.as_str(), "directio" | "setall"),
            asynchronous: matches!(io_mode.as_str(), "asynch" | "setall"),
            io_mode,
            multiblock: multiblock(settings, block_bytes),
            log_buffer_bytes: (settings.bytes("LOG_BUFFER_MB") as usize).max(1 << 20).next_power_of_two(),
            driver_threads: settings.int("DRIVER_THREADS") as usize,
            optimistic: settings.text("CACHE_READ") != "pinned",
            prefetch: settings.bool("CACHE_PREFETCH"),
            shared_rows: plan.threads_per_schema > 1 || (plan.hot_schema_frequency > 0 && plan.schemas > 1),
            sessions: plan.sessions(),
            blocks: u64::from(plan.schemas) * plan.scale,
            update_pct: plan.update_pct,
            rules: CrashRules::default(),
        })
    }
}
