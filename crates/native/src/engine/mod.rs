//! The running native engine: cache, sessions, redo, writers.
//!
//! `open` puts an instance together from a data set that is clean or was just recovered;
//! driver threads get their `NativeDriver`; the writer threads serve all. The data set's
//! life cycle (prepare, check, destroy) is outside.

mod activity;
mod cache;
mod checkpoint;
mod context;
mod counters;
mod driver;
mod instance;
mod node;
mod options;
mod page_table;
mod path_io;
mod redo;
mod row_locks;
mod scan;
mod select;
mod serve;
mod session;
pub mod stepped;
mod threads;
mod transaction;
mod undo;
mod update;
mod writer;

#[cfg(test)]
mod tests;

use crate::bulk::Watch;
use crate::claim;
use crate::control::Control;
use crate::control_file::ControlFile;
use crate::device;
use crate::files::Files;
use crate::layout::UNIT_BYTES;
use crate::load_plan::nothing_here;
use crate::memory::{MAX_SCAN_BUFFERS, refuse_too_much};
use crate::paths::{Asked, Places};
use crate::recovery::{Recovery, ensure_clean};
use crate::redo_format::FIRST_LSN;
use crate::survey::{Found, survey};
use assay_block::{Backend, Pool, PoolOptions, Ring, RingOptions};
use assay_measure::clock::Clock;
use assay_measure::config::Settings;
use assay_measure::facts;
use assay_measure::locked::locked;
use assay_measure::snapshot::{Fact, StatSet};
use assay_run::engine::{Assignment, Doing, Driver, Engine, EngineError, LineValue};
use assay_run::plan::Plan;
use assay_run::workload::Workload;
use assay_slob::Slob;
use counters::export_ring;
use instance::{Instance, MAX_THREADS, Parts};
use options::{ChecksumMode, CommitMode, EngineOptions, FreeWait, IndexMode};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use threads::Chosen;

/// Blocking calls in synchronous I/O modes are carried by at most this many helper threads.
const MAX_HELPERS: usize = 64;
/// Buffers of a driver thread for log writes: one it fills, one in flight. Scans have their own beside them.
const LOG_BUFFERS: usize = 2;

/// An open native data set.
struct NativeEngine {
    instance: Arc<Instance>,
    places: Places,
    /// Devices of the data set, kept from others while it is open.
    _claims: Vec<device::Claim>,
    writers: Mutex<Vec<WriterThread>>,
    ring_facts: Mutex<Vec<Fact>>,
    /// The driver threads there are.
    threads: Mutex<Chosen>,
    /// What was recovered at open.
    recovery: Option<Recovery>,
}

/// Opens the data set at the paths asked for, for a run; one that was not closed is recovered first.
///
/// # Errors
/// [`EngineError::Unusable`] when it is loading, in use or unreadable; [`EngineError::Usage`] when
/// the plan does not fit it; `Damaged` or `Interrupted` while it is recovered.
pub(super) fn open(
    asked: &Asked,
    plan: &Plan,
    settings: &Settings,
    watch: Watch<'_>,
) -> Result<Box<dyn Engine>, EngineError> {
    let places = match survey(asked, &[])? {
        Found::Ours(ours) => ours.places,
        Found::Nothing => return Err(nothing_here(asked.first())),
    };
    let dir = places.home();
    let mut control_file = claim::take(dir)?;
    let block_bytes = u64::from(control_file.control().geometry.block_bytes);
    refuse_too_much(settings, plan.sessions() as u64, block_bytes)?;
    let claims = device::claim(&places)?;
    let recovery = ensure_clean(&places, &mut control_file, settings, watch)?;
    let control = control_file.control().clone();
    if plan.schemas > control.loaded_schemas {
        return Err(EngineError::Usage(format!(
            "{} schemas are requested, but {} are loaded in {}",
            plan.schemas,
            control.loaded_schemas,
            dir.display()
        )));
    }
    let options = EngineOptions::resolve(settings, plan, &control)?;
    let files = Files::open(&places, &control, options.direct)?;
    let instance = Arc::new(assemble(control_file, files, options, plan, (Clock::real(), MAX_THREADS))?);
    if instance.undo.free_extents() < plan.sessions() {
        return Err(EngineError::Usage(format!(
            "the undo file of {} has {} extents for {} sessions: prepare with a larger UNDO_MB or use fewer sessions",
            dir.display(),
            instance.undo.free_extents(),
            plan.sessions()
        )));
    }
    instance.path_io.find_devices();
    let (writers, ring_facts) = start_writers(&instance)?;
    Ok(Box::new(NativeEngine {
        instance,
        places,
        _claims: claims,
        writers: Mutex::new(writers),
        ring_facts: Mutex::new(ring_facts),
        threads: Mutex::default(),
        recovery,
    }))
}

/// Puts an instance together, for at most so many driver threads; starts nothing.
fn assemble(
    control_file: ControlFile,
    files: Files,
    options: EngineOptions,
    plan: &Plan,
    (clock, threads): (Clock, usize),
) -> Result<Instance, EngineError> {
    let control = control_file.control();
    let cache = Pool::new(&PoolOptions {
        frames: options.cache_frames,
        frame_bytes: control.geometry.block_bytes as usize,
        huge_pages: options.huge_pages,
    })
    .and_then(|pool| {
        cache::Cache::new(pool, options.drop_on_unpin, options.scan_pct, options.huge_pages, options.rules)
    })
    .map_err(|e| EngineError::Unusable(format!("buffer cache of {} blocks: {e}", options.cache_frames)))?;
    let redo = redo::Redo::new(&redo::RedoConfig {
        buffer_bytes: options.log_buffer_bytes,
        huge_pages: options.huge_pages,
        block_bytes: control.log_block_bytes as usize,
        files: control.redo_files as usize,
        file_bytes: control.redo_file_bytes,
        start_lsn: control.checkpoint_lsn.max(FIRST_LSN),
        sequence: control.log_sequence,
        data_set: control.data_set,
        threads,
        max_flights: options.commit.log_writes(),
        sync_commits: options.commit == CommitMode::Sync,
    })
    .map_err(|e| EngineError::Unusable(format!("log buffer of {} bytes: {e}", options.log_buffer_bytes)))?;
    Ok(Instance::new(Parts {
        cache,
        options,
        control: control_file,
        files,
        redo,
        active_scale: plan.scale,
        redo_stress: plan.redo_stress,
        obfuscate: plan.obfuscate,
        clock,
        threads,
    }))
}

/// A writer that panics stops the engine instead of leaving its sessions waiting.
struct WriterGuard<'a> {
    instance: &'a Instance,
    number: usize,
}

impl Drop for WriterGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.instance.fail("a database writer's thread panicked");
        }
        if self.number > 0 {
            self.instance.helpers.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

type WriterThread = JoinHandle<Result<(), EngineError>>;

/// Starts all writers; returns their threads and what the last one's ring obtained.
fn start_writers(instance: &Arc<Instance>) -> Result<(Vec<WriterThread>, Vec<Fact>), EngineError> {
    let mut threads = Vec::new();
    let mut facts = Vec::new();
    for number in 0..instance.options.writers {
        match start_writer(instance, number) {
            Ok((thread, obtained)) => {
                threads.push(thread);
                facts = obtained;
            }
            Err(error) => {
                // Nothing was changed yet: those that run end at once.
                let _ = stop_writers(instance, threads);
                return Err(error);
            }
        }
    }
    Ok((threads, facts))
}

/// Tells the writers to write everything and end, and waits for them.
fn stop_writers(instance: &Instance, threads: Vec<WriterThread>) -> Result<(), EngineError> {
    locked(&instance.orders).stop = true;
    instance.ordered.notify_all();
    let mut result = Ok(());
    for thread in threads {
        let ended = thread
            .join()
            .unwrap_or_else(|_| Err(EngineError::Unusable("a database writer's thread panicked".to_owned())));
        result = result.and(ended);
    }
    result
}

/// Starts one writer; returns its thread and what its ring obtained.
fn start_writer(instance: &Arc<Instance>, number: usize) -> Result<(WriterThread, Vec<Fact>), EngineError> {
    let shared = Arc::clone(instance);
    if number > 0 {
        instance.helpers.fetch_add(1, Ordering::AcqRel);
    }
    let (report, opened) = std::sync::mpsc::sync_channel(1);
    let thread = std::thread::Builder::new().name(format!("assay-dbw{number}")).spawn(move || {
        let _guard = WriterGuard { instance: &shared, number };
        let ring = Ring::open(writer::ring_options(&shared, backend(&shared.options)));
        let ring = match ring {
            Ok(ring) => ring,
            Err(error) => {
                let _ = report.send(Err(error));
                return Ok(());
            }
        };
        let _ = report.send(Ok(ring_facts(&ring)));
        let result = writer::DatabaseWriter::new(&shared, ring, number).run();
        if let Err(error) = &result {
            shared.fail(&error.to_string());
        }
        result
    });
    let thread = thread.map_err(|source| assay_run::threads::refused("of the database writer", &source))?;
    match opened.recv() {
        Ok(Ok(facts)) => Ok((thread, facts)),
        Ok(Err(error)) => Err(EngineError::Unusable(format!("the database writer's ring: {error}"))),
        Err(_) => Err(EngineError::Unusable("the database writer ended before it started".to_owned())),
    }
}

fn backend(options: &EngineOptions) -> Backend {
    if options.asynchronous { Backend::Auto } else { Backend::Helpers }
}

fn ring_facts(ring: &Ring) -> Vec<Fact> {
    let features = ring.features();
    let refused: Vec<String> = features.refused.iter().map(|(name, why)| format!("{name} ({why})")).collect();
    let listed = |items: &[String]| {
        if items.is_empty() { "none".to_owned() } else { items.join(", ") }
    };
    vec![
        Fact::new("io_backend", features.backend),
        Fact::new("ring_features_obtained", listed(&features.obtained)),
        Fact::new("ring_features_refused", listed(&refused)),
    ]
}

impl NativeEngine {
    fn open_ring(&self, sessions: usize) -> Result<Ring, EngineError> {
        let instance = &self.instance;
        let options = &instance.options;
        let reads = if options.batched { options.io_depth } else { 1 };
        let scan_buffers = options.scan_buffers(sessions);
        let entries = (sessions * reads + scan_buffers + 16).next_power_of_two().clamp(64, 4096);
        let ring = Ring::open(RingOptions {
            entries: entries as u32,
            buffers: LOG_BUFFERS + scan_buffers,
            buffer_bytes: 1 << 20,
            pool: Some(Arc::clone(&instance.cache.pool)),
            files: instance.files.list.clone(),
            backend: backend(options),
            helpers: sessions.max(scan_buffers).clamp(1, MAX_HELPERS),
        })
        .map_err(|e| EngineError::Unusable(format!("a driver thread's ring: {e}")))?;
        *locked(&self.ring_facts) = ring_facts(&ring);
        Ok(ring)
    }

    fn data_set_facts(&self) -> Vec<Fact> {
        let geometry = &self.instance.geometry;
        // One lock for all: a second one in the same statement would wait for the first.
        let control = locked(&self.instance.control).control().clone();
        let mut facts = self.path_facts(&control);
        facts.extend([
            Fact::new("data_set", self.places.home().display()),
            Fact::new("data_set_id", format!("{:016x}", self.instance.data_set)),
            Fact::new(facts::DATA_MADE.name, control.created_unix_s),
            Fact::new(facts::DATA_REDO.name, control.checkpoint_lsn.saturating_sub(FIRST_LSN)),
            Fact::new("block_bytes", geometry.block_bytes),
            Fact::new("log_block_bytes", control.log_block_bytes),
            Fact::new("redo_files", control.redo_files),
            Fact::new("redo_file_bytes", control.redo_file_bytes),
            Fact::new("schemas_loaded", control.loaded_schemas),
            Fact::new("scale_blocks", geometry.scale),
            Fact::new("scan_blocks", geometry.scan_blocks),
            Fact::new("index_levels", self.instance.map.index.levels),
        ]);
        facts
    }

    /// Where what lies, if it is on several paths.
    fn path_facts(&self, control: &Control) -> Vec<Fact> {
        let list = self.places.list();
        if list.len() == 1 {
            return Vec::new();
        }
        let place = |number: u16| list[usize::from(number)].path.display();
        let data: Vec<String> = (0..control.geometry.stripes).map(|number| place(number).to_string()).collect();
        let mut facts = vec![
            Fact::new("data_paths", data.join(", ")),
            Fact::new("undo_path", place(control.undo_path)),
            Fact::new("redo_path", place(control.redo_path)),
        ];
        if data.len() > 1 {
            facts.push(Fact::new("allocation_unit_bytes", UNIT_BYTES));
        }
        facts
    }

    fn recovery_facts(&self) -> Vec<Fact> {
        let lines = self.recovery.iter().flat_map(Recovery::lines);
        lines
            .map(|line| match line.value {
                LineValue::Count(n) => Fact::new(line.key, n),
                LineValue::Decimal(x) => Fact::new(line.key, format!("{x:.3}")),
                LineValue::Text(text) => Fact::new(line.key, text),
            })
            .collect()
    }

    fn option_facts(&self) -> Vec<Fact> {
        let options = &self.instance.options;
        let huge = self.instance.cache.pool.huge_pages_bytes();
        let commit = match options.commit {
            CommitMode::None => "none (acknowledged before the log write: not durable)",
            CommitMode::Group => "group (durable, shared log writes)",
            CommitMode::Sync => "sync (durable, one log write each)",
        };
        let index = if options.index == IndexMode::Btree { "btree" } else { "computed" };
        let cache_blocks = if options.drop_on_unpin { 0 } else { options.cache_frames };
        vec![
            Fact::new("cache_blocks", cache_blocks),
            Fact::new("cache_frames", options.cache_frames),
            Fact::new("cache_huge_page_bytes", huge.map_or("n/a (unknowable)".to_owned(), |b| b.to_string())),
            Fact::new("cache_read", if options.optimistic { "optimistic" } else { "pinned" }),
            Fact::new("io_mode_requested", &options.io_mode),
            Fact::new("scan_read", self.scan_read()),
            Fact::new("index", index),
            Fact::new("read_consistency", "current blocks (no read-consistent copies)"),
            Fact::new("commit_mode", commit),
            Fact::new("log_writer", "led by the committing driver thread"),
        ]
    }

    /// What the writers, the log and the checkpoint were asked for and work with.
    fn writer_facts(&self) -> Vec<Fact> {
        let (options, redo) = (&self.instance.options, &self.instance.redo);
        let off = |value: u64, text: String| if value == 0 { "off".to_owned() } else { text };
        let checksum = match options.checksum {
            ChecksumMode::Off => "off (neither computed nor verified)",
            ChecksumMode::Typical => "typical (computed when written, verified when read)",
            ChecksumMode::Full => "full (as typical, and verified before each change)",
        };
        let free_wait = match options.free_wait {
            FreeWait::Timed => "timed_10ms (a session checks again every 10 ms)",
            FreeWait::Posted => "posted (the writer wakes it)",
        };
        let timeout_s = options.checkpoint_timeout_ns / 1_000_000_000;
        let interval = options.checkpoint_interval_blocks;
        vec![
            Fact::new("db_writers", locked(&self.writers).len()),
            Fact::new("db_writer_batch_requests", options.writer_requests),
            Fact::new("db_writer_request_bytes_max", options.writer_bytes),
            Fact::new("db_block_checksum", checksum),
            Fact::new("free_wait", free_wait),
            Fact::new("cache_scan_pct", options.scan_pct),
            Fact::new("multiblock_read_blocks", options.multiblock),
            Fact::new("log_buffer_bytes", redo.capacity()),
            Fact::new("log_flush_due_bytes", redo.due_bytes()),
            Fact::new("checkpoint_log_bytes_max", redo.file_payload_bytes() / 10 * 9),
            Fact::new("checkpoint_timeout", off(timeout_s, format!("{timeout_s} s"))),
            Fact::new("checkpoint_interval", off(interval, format!("{interval} log blocks"))),
            Fact::new("checkpoint_dirty_blocks_max", off(options.recovery_blocks, options.recovery_blocks.to_string())),
        ]
    }

    /// How scans read their table.
    fn scan_read(&self) -> String {
        let options = &self.instance.options;
        if self.instance.geometry.scan_blocks == 0 {
            return "n/a (no scan table)".to_owned();
        }
        let bytes = options.multiblock * self.instance.geometry.block_bytes as usize;
        if scan::goes_through_cache(&self.instance) {
            return format!(
                "db file scattered read of {bytes} bytes (the table is at most 2 % of the cache), 1 stream"
            );
        }
        format!(
            "direct path read of {bytes} bytes, {} streams of {} reads in flight, at most {} reads per driver thread",
            options.scan_streams, options.scan_depth, MAX_SCAN_BUFFERS
        )
    }

    /// What the I/O mode came to, judged by the files, the file system and the ring.
    fn achieved_io_mode(&self) -> Vec<Fact> {
        let direct = self.instance.files.list.iter().all(|f| f.is_direct());
        let memory = |path: &Path| assay_block::device_facts(path).is_tmpfs;
        let tmpfs = self.places.list().iter().any(|place| memory(&place.path));
        let uring = locked(&self.ring_facts).first().is_some_and(|f| f.value.contains("io_uring"));
        let bypassed = direct && !tmpfs;
        let mode = match (bypassed, uring) {
            (true, true) => "setall (O_DIRECT, io_uring)",
            (true, false) => "directio (O_DIRECT, blocking calls in helper threads)",
            (false, true) if tmpfs => "asynch (memory file system: O_DIRECT has no effect, io_uring)",
            (false, true) => "asynch (page cache, io_uring)",
            (false, false) => "none (page cache, blocking calls in helper threads)",
        };
        let mut facts =
            vec![facts::IO_MODE_ACHIEVED.fact(mode), facts::PAST_PAGE_CACHE.fact(if bypassed { "yes" } else { "no" })];
        if !bypassed {
            let way = "IO_MODE=setall on a file system that supports direct I/O";
            facts.push(facts::DEVICE_READS.fact(way));
        }
        facts
    }
}

impl Engine for NativeEngine {
    fn facts(&self) -> Vec<Fact> {
        let mut facts = self.data_set_facts();
        facts.extend(self.recovery_facts());
        facts.extend(self.option_facts());
        facts.extend(self.achieved_io_mode());
        facts.extend(self.writer_facts());
        facts.extend(locked(&self.ring_facts).iter().cloned());
        let threads = locked(&self.threads).clone();
        if threads.count > 0 {
            facts.push(Fact::new("driver_threads_number", threads.why));
            let room = threads.read_room;
            facts.extend(room.map(|room| Fact::new("reads_in_flight_per_thread_max", room)));
        }
        let device = assay_block::device_facts(self.places.home());
        facts.extend(device.lines().into_iter().map(|(name, value)| Fact::new(&format!("device_{name}"), value)));
        facts
    }

    fn workload(&self) -> &dyn Workload {
        &Slob
    }

    fn driver_threads(&self, sessions: usize, cpus: usize) -> usize {
        let chosen = Chosen::of(&self.instance, &self.places, (sessions, cpus, MAX_THREADS));
        let count = chosen.count;
        *locked(&self.threads) = chosen;
        count
    }

    fn driver<'a>(&'a self, assignment: &Assignment) -> Result<Box<dyn Driver + 'a>, EngineError> {
        let ring = self.open_ring(assignment.sessions.len())?;
        let room = locked(&self.threads).read_room;
        Ok(Box::new(driver::NativeDriver::open(&self.instance, assignment, ring, room.unwrap_or(usize::MAX))))
    }

    fn sample(&self) -> StatSet {
        let instance = &self.instance;
        let mut set = StatSet::default();
        locked(&instance.background).export(u64::from(instance.geometry.block_bytes), &mut set);
        for ring in locked(&instance.ring_totals).iter() {
            export_ring(&ring.all, &mut set);
            instance.path_io.export(&ring.by_file, &mut set);
        }
        instance.path_io.export_blocking(&mut set);
        let mut gauge = |name: &str, value: u64| set.gauges.insert(name.to_owned(), value);
        gauge("dirty_buffers", instance.cache.dirty_frames());
        gauge("redo_buffer_unflushed_bytes", instance.redo.pending());
        gauge(
            "checkpoint_age_bytes",
            instance.redo.tail().saturating_sub(instance.checkpoint_lsn.load(std::sync::atomic::Ordering::Acquire)),
        );
        gauge(
            "checkpoint_target_age_bytes",
            instance.redo.tail().saturating_sub(instance.target_lsn.load(Ordering::Acquire)),
        );
        gauge("log_sequence", instance.redo.sequence());
        gauge("cache_blocks", instance.cache.pool.frames() as u64);
        set
    }

    fn activity(&self, sessions: &mut [Doing]) {
        self.instance.activity.read(sessions);
    }

    fn watched_disks(&self) -> Vec<String> {
        let places = self.places.list().iter();
        let paths: Vec<PathBuf> = places.map(|place| place.path.clone()).collect();
        assay_block::disks_under(&paths)
    }

    fn close(&self) -> Result<(), EngineError> {
        let threads = std::mem::take(&mut *locked(&self.writers));
        if threads.is_empty() {
            return Ok(());
        }
        let result = stop_writers(&self.instance, threads);
        match self.instance.failure() {
            Some(reason) => Err(EngineError::Unusable(reason.to_owned())),
            None => result,
        }
    }
}

impl Drop for NativeEngine {
    fn drop(&mut self) {
        // Whoever forgot to close gets an unclean data set, but no thread that outlives the engine.
        let _ = self.close();
    }
}
