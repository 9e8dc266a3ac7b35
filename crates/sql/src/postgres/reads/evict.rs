//! `EVICT`: makes the reads of a test reach the device.

use super::cgroup::{self, Confined};
use super::files::{DataDirectory, Relation, Segments};
use crate::postgres::layout::literal;
use crate::postgres::wire::Connection;
use assay_measure::config::Settings;
use assay_measure::snapshot::Fact;
use assay_measure::units::{fixed, size};
use assay_run::engine::EngineError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Default interval of `continuous`.
const EVERY_MS: u64 = 100;
/// Memory that a server process may need for itself, so that the cgroup's limit keeps it alive.
const PROCESS_BYTES: u64 = 4 << 20;
/// Server processes besides our sessions.
const OTHER_PROCESSES: u64 = 16;

/// An eviction mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Evicts the server's own buffers, once before the gate.
    Buffers,
    /// Drops the page cache of the data set's files, once before the gate.
    PageCache,
    /// Drops the page cache repeatedly during the run.
    Continuous {
        /// Interval, ms.
        every_ms: u64,
    },
    /// Puts the server into a memory cgroup.
    Cgroup {
        /// Its limit.
        bytes: u64,
    },
    /// Requires the server's own direct I/O.
    Direct,
}

/// Parses the modes of setting `EVICT`.
///
/// # Errors
/// The unknown word, and the valid ones.
pub(super) fn modes(settings: &Settings) -> Result<Vec<Mode>, EngineError> {
    parse(settings.text("EVICT"))
}

fn parse(text: &str) -> Result<Vec<Mode>, EngineError> {
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    words.map(mode).collect()
}

fn mode(word: &str) -> Result<Mode, EngineError> {
    let wrong = |why: &str| {
        EngineError::Usage(format!(
            "EVICT={word}: {why}; use buffers, pagecache, continuous[:MILLISECONDS], cgroup:SIZE (512M, 4G) or direct"
        ))
    };
    let (name, value) = match word.split_once(':') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    match (name, value) {
        ("buffers", None) => Ok(Mode::Buffers),
        ("pagecache", None) => Ok(Mode::PageCache),
        ("direct", None) => Ok(Mode::Direct),
        ("continuous", None) => Ok(Mode::Continuous { every_ms: EVERY_MS }),
        ("continuous", Some(ms)) => match ms.parse() {
            Ok(every_ms @ 1..=60_000) => Ok(Mode::Continuous { every_ms }),
            _ => Err(wrong("the milliseconds must be a number from 1 to 60000")),
        },
        ("cgroup", Some(limit)) => match bytes(limit) {
            Some(bytes) => Ok(Mode::Cgroup { bytes }),
            None => Err(wrong("the size must be a whole number with K, M, G or T")),
        },
        ("cgroup", None) => Err(wrong("the size is missing")),
        _ => Err(wrong("unknown method")),
    }
}

fn bytes(text: &str) -> Option<u64> {
    let digits = text.strip_suffix(|c: char| c.is_ascii_alphabetic())?;
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    let number: u64 = digits.parse().ok().filter(|n| *n > 0)?;
    number.checked_mul(1 << shift)
}

/// What the modes work on.
pub(super) struct Ground<'a> {
    /// Any session with the server.
    pub(super) connection: &'a mut Connection,
    /// The server is removed with this command, so it may be changed freely.
    pub(super) throw_away: bool,
    /// PostgreSQL schema of the data set.
    pub(super) schema: &'a str,
    /// Sessions of the run.
    pub(super) sessions: usize,
    /// The server's files, or why they are out of reach.
    pub(super) directory: Result<&'a DataDirectory, String>,
    /// Tables and indexes.
    pub(super) relations: &'a [Relation],
    /// Processes of the server; the first is the postmaster.
    pub(super) processes: &'a dyn Fn() -> Vec<i32>,
}

/// What was done, and what stays in effect.
#[derive(Debug, Default)]
pub(super) struct Evicted {
    /// What was requested and achieved, as text.
    pub(super) facts: Vec<Fact>,
    /// Drops the page cache repeatedly.
    pub(super) dropper: Option<Dropper>,
    /// The cgroup around the server.
    pub(super) confined: Option<Confined>,
}

/// Performs all modes, in an order in which each supports the next.
///
/// # Errors
/// The first mode that is not possible, with what it needs.
pub(super) fn evict(modes: &[Mode], mut ground: Ground<'_>) -> Result<Evicted, EngineError> {
    let mut done = Evicted::default();
    let has = |wanted: Mode| modes.contains(&wanted);
    if has(Mode::Direct) {
        done.note("evict_direct", direct(&mut ground)?);
    }
    if has(Mode::Buffers) {
        done.note("evict_buffers", buffers(&mut ground)?);
    }
    if modes.iter().any(|mode| !matches!(mode, Mode::Direct | Mode::Buffers)) {
        // A cgroup is charged only for pages read while the server is inside, so it also needs an empty page cache.
        let segments = page_cache(&mut ground, &mut done)?;
        for mode in modes {
            match mode {
                Mode::Cgroup { bytes } => confine(*bytes, &mut ground, &mut done)?,
                Mode::Continuous { every_ms } => {
                    done.note(
                        "evict_continuous",
                        format!("assay drops the pages of {} files every {every_ms} ms", segments.count()),
                    );
                    done.dropper = Some(Dropper::start(Arc::clone(&segments), Duration::from_millis(*every_ms)));
                }
                Mode::Direct | Mode::Buffers | Mode::PageCache => {}
            }
        }
    }
    Ok(done)
}

impl Evicted {
    fn note(&mut self, name: &str, value: String) {
        self.facts.push(Fact::new(name, value));
    }
}

fn refused(mode: &str, why: impl std::fmt::Display) -> EngineError {
    EngineError::Unusable(format!("EVICT={mode}: {why}"))
}

/// A value that the server must give.
fn value(connection: &mut Connection, sql: &str) -> Result<String, String> {
    super::first(connection, sql).map_err(|error| error.to_string())?.ok_or_else(|| "no answer".to_owned())
}

fn direct(ground: &mut Ground<'_>) -> Result<String, EngineError> {
    let found = value(ground.connection, "select coalesce(current_setting('debug_io_direct', true), 'absent')")
        .map_err(|why| refused("direct", why))?;
    if found.split(',').any(|word| word.trim() == "data") {
        return Ok(format!("the server reads and writes data files with O_DIRECT (debug_io_direct = {found})"));
    }
    let way = if found == "absent" {
        "this server has no debug_io_direct (PostgreSQL 16 and newer have it); use pagecache, continuous or cgroup"
    } else {
        "set debug_io_direct = data in postgresql.conf and restart the server (it can be set only at server start), \
         or use pagecache, continuous or cgroup; temp:postgres sets it by itself"
    };
    Err(refused("direct", way))
}

/// Empties the server's buffers of the data set, with the server's own extension.
fn buffers(ground: &mut Ground<'_>) -> Result<String, EngineError> {
    let fail = |why: String| refused("buffers", why);
    if ground.throw_away {
        // If this fails, the error below says what is missing.
        let _ = ground.connection.query("create extension if not exists pg_buffercache schema public");
    }
    // With its full name, since the session searches only PostgreSQL's own schema.
    let home = value(
        ground.connection,
        "select coalesce(max(quote_ident(n.nspname)), 'pg_catalog') from pg_extension e \
         join pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_buffercache'",
    )
    .map_err(fail)?;
    let exists = |connection: &mut Connection, name: &str| {
        let name = literal(&format!("{home}.{name}"));
        value(connection, &format!("select to_regproc({name}) is not null")).map(|found| found == "t")
    };
    let schema = literal(ground.schema);
    let ours = format!(
        "from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = {schema} and c.relkind in ('r', 'i')"
    );
    let sql = if exists(ground.connection, "pg_buffercache_evict_relation").map_err(fail)? {
        format!("select coalesce(sum(({home}.pg_buffercache_evict_relation(c.oid)).buffers_evicted), 0) {ours}")
    } else if exists(ground.connection, "pg_buffercache_evict").map_err(fail)? {
        format!(
            "select count(*) filter (where {home}.pg_buffercache_evict(bufferid)) from {home}.pg_buffercache where reldatabase = \
             (select oid from pg_database where datname = current_database()) \
             and relfilenode in (select pg_relation_filenode(c.oid) {ours})"
        )
    } else {
        return Err(fail(
            "it needs the extension pg_buffercache of PostgreSQL 17 or newer in this database (create extension \
             pg_buffercache); otherwise restart the server before the run"
                .to_owned(),
        ));
    };
    let evicted = value(ground.connection, &sql).map_err(|why| fail(format!("{why} (it needs a superuser)")))?;
    Ok(format!("{evicted} buffers of the data set evicted from the server's cache"))
}

/// Drops the pages of all our files from the page cache.
fn page_cache(ground: &mut Ground<'_>, done: &mut Evicted) -> Result<Arc<Segments>, EngineError> {
    let fail = |why: String| refused("pagecache", why);
    let directory = ground
        .directory
        .clone()
        .map_err(|why| fail(format!("it needs the server on this host and read access to its files: {why}")))?;
    // Dirty buffers would become dirty pages, which cannot be dropped. Not every role may request a checkpoint.
    let checkpoint = match ground.connection.query("checkpoint") {
        Ok(_) => "after a checkpoint",
        Err(_) => "without a checkpoint (it needs a superuser or pg_checkpoint)",
    };
    let segments = directory
        .open(ground.relations)
        .map_err(|error| fail(format!("{error}; run assay as the server's user or as root")))?;
    let before = segments.cached_pct();
    segments.sync().and_then(|()| segments.forget()).map_err(|error| fail(error.to_string()))?;
    let share = |pct: Option<f64>| pct.map_or_else(|| "n/a".to_owned(), |pct| format!("{} %", fixed(pct, 1)));
    done.note(
        "evict_pagecache",
        format!(
            "{checkpoint}, {} of {} files: {} were in the page cache before, {} after",
            size(segments.bytes()),
            segments.count(),
            share(before),
            share(segments.cached_pct())
        ),
    );
    Ok(Arc::new(segments))
}

fn confine(limit: u64, ground: &mut Ground<'_>, done: &mut Evicted) -> Result<(), EngineError> {
    let fail = |why: String| refused("cgroup", why);
    // Shared memory is charged to the group when touched and cannot be reclaimed.
    let shared = value(
        ground.connection,
        "select coalesce((select setting::int8 * 1048576 from pg_settings where name = 'shared_memory_size'), \
         (select setting::int8 * 8192 * 11 / 10 + 16777216 from pg_settings where name = 'shared_buffers'))",
    )
    .map_err(fail)?;
    let shared: u64 = shared.parse().map_err(|_| fail(format!("shared memory of {shared} bytes")))?;
    let least = shared + (ground.sessions as u64 + OTHER_PROCESSES) * PROCESS_BYTES;
    if limit < least {
        return Err(EngineError::Usage(format!(
            "EVICT=cgroup: {} would starve the server: its shared memory and processes may need {}; give it more \
             memory, or lower shared_buffers",
            size(limit),
            size(least)
        )));
    }
    let postmaster = (ground.processes)()[0];
    let read = |path: String| std::fs::read_to_string(path).unwrap_or_default();
    let spot = cgroup::spot(
        &read("/proc/self/mountinfo".to_owned()),
        &read(format!("/proc/{postmaster}/cgroup")),
        &format!("assay-evict-{}", std::process::id()),
    )
    .map_err(fail)?;
    let confined = spot.confine(limit, ground.processes).map_err(fail)?;
    done.note(
        "evict_cgroup",
        format!(
            "{} ({}) limited to {}, with {} processes of the server; to remove it if it is left behind: {}",
            confined.group().display(),
            confined.version().name(),
            size(limit),
            confined.processes(),
            confined.undo()
        ),
    );
    done.confined = Some(confined);
    Ok(())
}

/// Drops the files' pages at intervals, on a thread of its own.
#[derive(Debug)]
pub(super) struct Dropper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    rounds: AtomicU64,
}

impl Dropper {
    fn start(segments: Arc<Segments>, every: Duration) -> Self {
        let shared = Arc::<Shared>::default();
        let mine = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            while !mine.stop.load(Ordering::Relaxed) {
                // The files were opened and dropped before; a failure now shows in the measured share.
                let _ = segments.forget();
                mine.rounds.fetch_add(1, Ordering::Relaxed);
                std::thread::park_timeout(every);
            }
        });
        Self { shared, thread: Some(thread) }
    }

    /// Number of rounds so far.
    pub(super) fn rounds(&self) -> u64 {
        self.shared.rounds.load(Ordering::Relaxed)
    }
}

impl Drop for Dropper {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_read_as_a_list() {
        assert_eq!(
            parse(" pagecache, cgroup:512M,continuous:20 ,direct").expect("all are there"),
            [Mode::PageCache, Mode::Cgroup { bytes: 512 << 20 }, Mode::Continuous { every_ms: 20 }, Mode::Direct]
        );
        assert_eq!(parse("").expect("nothing requested"), []);
        assert_eq!(parse("continuous").expect("a default"), [Mode::Continuous { every_ms: 100 }]);
    }

    #[test]
    fn what_is_no_way_is_refused_with_those_there_are() {
        for (text, why) in [
            ("cgroup", "size is missing"),
            ("cgroup:512", "K, M, G or T"),
            ("cgroup:0M", "K, M, G or T"),
            ("continuous:0", "1 to 60000"),
            ("pagecash", "unknown method"),
            ("direct:yes", "unknown method"),
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.contains(why) && error.contains("pagecache"), "{error}");
        }
    }
}
