//! Events with totals but no distribution: the server counts some of them and, if a setting is on, times them. All
//! other waits come only from activity samples.

use super::io::{Sums, part};
use super::mapping::{BGWRITER, DATABASE, FROM_14, FROM_16, IO, Mapper, UNTIMED, WAL};
use super::raw::sum;
use assay_measure::snapshot::{Actor, Reading, StatSet, TimedReading, WaitClass};

use Actor::{Background, Foreground};

/// Adds every event that this version counts.
pub(super) fn add(mapper: Mapper<'_>, set: &mut StatSet) {
    if mapper.about.version < 16 {
        before_16(mapper, set);
    } else {
        from_16(mapper, set);
    }
    log(mapper, set);
}

/// Adds one event with its waits and time.
fn put(
    set: &mut StatSet,
    (name, class, actor): (&str, WaitClass, Actor),
    waits: Reading,
    wait_ns: Reading,
    source: &str,
) {
    set.timed.push(TimedReading { name: name.to_owned(), class, actor, waits, wait_ns, source: source.to_owned() });
}

const SEQUENTIAL_READ: &str = "db file sequential read";

/// 13 to 15: blocks and times of the database's sessions, blocks of the writers.
fn before_16(mapper: Mapper<'_>, set: &mut StatSet) {
    let timing = mapper.about.session_io_timing;
    let time = |column| Mapper::timed(timing, mapper.raw.ms("db", column, UNTIMED));
    let read = (SEQUENTIAL_READ, WaitClass::UserIo, Foreground);
    put(set, read, mapper.blks_read(), time("blk_read_time"), DATABASE);
    let [checkpoint, clean, backends] = mapper.writers();
    let backend = ("backend writes", WaitClass::Configuration, Foreground);
    put(set, backend, backends.0, time("blk_write_time"), BGWRITER);
    let writers = ("db file parallel write", WaitClass::SystemIo, Background);
    let untimed = Reading::Na(FROM_16.to_owned());
    put(set, writers, sum([checkpoint.0, clean.0]), untimed, BGWRITER);
}

/// From 16 on: `pg_stat_io` by backend type, object and context.
fn from_16(mapper: Mapper<'_>, set: &mut StatSet) {
    sessions_from_16(mapper, set);
    background_from_16(mapper, set);
}

/// Selects count and time from sums of `pg_stat_io`.
type CountAndTime = (fn(&Sums) -> u64, fn(&Sums) -> u64);

/// Adds an event from rows of `pg_stat_io`, with its time if the server measures it.
fn put_io(
    set: &mut StatSet,
    event: (&'static str, WaitClass, Actor),
    timed: bool,
    sums: &Result<Sums, String>,
    (count, ns): CountAndTime,
) {
    let time = Mapper::timed(timed, part(sums, ns));
    put(set, event, part(sums, count), time, IO);
}

fn sessions_from_16(mapper: Mapper<'_>, set: &mut StatSet) {
    let timed = mapper.about.session_io_timing;
    let of =
        |context: &'static str| mapper.io(move |row| row.is_session() && row.is_relation() && row.context == context);
    let (normal, ring, bulk) = (of("normal"), of("bulkread"), of("bulkwrite"));
    let mut add = |name, class, sums, pick| {
        put_io(set, (name, class, Foreground), timed, sums, pick);
    };
    let (user, configuration) = (WaitClass::UserIo, WaitClass::Configuration);
    add(SEQUENTIAL_READ, user, &normal, (|s| s.reads, |s| s.read_ns));
    add("backend writes", configuration, &normal, (|s| s.writes, |s| s.write_ns));
    add("data file extend", user, &normal, (|s| s.extends, |s| s.extend_ns));
    add("data file sync", configuration, &normal, (|s| s.fsyncs, |s| s.fsync_ns));
    // Scans of large tables use a small ring of buffers.
    add("direct path read", user, &ring, (|s| s.reads, |s| s.read_ns));
    let written: CountAndTime = (|s| s.writes + s.extends, |s| s.write_ns + s.extend_ns);
    add("direct path write", user, &bulk, written);
}

fn background_from_16(mapper: Mapper<'_>, set: &mut StatSet) {
    let timed = mapper.about.server_io_timing;
    let mut add = |name, sums, pick| {
        let event = (name, WaitClass::SystemIo, Background);
        put_io(set, event, timed, sums, pick);
    };
    let writers = mapper.io(|row| row.is_writer() && row.is_relation());
    add("db file parallel write", &writers, (|s| s.writes, |s| s.write_ns));
    add("data file sync", &writers, (|s| s.fsyncs, |s| s.fsync_ns));
    let vacuum = mapper.io(|row| row.is_relation() && row.backend_type.starts_with("autovacuum"));
    add(SEQUENTIAL_READ, &vacuum, (|s| s.reads, |s| s.read_ns));
}

/// Adds the log events of all processes, mostly of committing sessions.
fn log(mapper: Mapper<'_>, set: &mut StatSet) {
    let log = mapper.log_writes();
    let write = ("log file parallel write", WaitClass::SystemIo, Background);
    // A log write is durable only after its sync, so one event covers both, as the time of redo writes does.
    put(set, write, log.writes, sum([log.write_ns, log.sync_ns]), log.source);
    let space = ("log buffer space", WaitClass::Configuration, Foreground);
    let unknown = if mapper.about.version < 14 { FROM_14 } else { "unknowable" };
    put(set, space, mapper.wal("wal_buffers_full"), Reading::Na(unknown.to_owned()), WAL);
    if mapper.about.version >= 18 {
        let init = mapper.io(|row| row.is_wal() && row.context == "init");
        let ns = part(&init, |sums| sums.write_ns + sums.fsync_ns);
        let ns = if mapper.about.wal_timing { ns } else { Reading::Na(super::mapping::WAL_UNTIMED.to_owned()) };
        let switch = ("log file switch completion", WaitClass::Configuration, Foreground);
        put(set, switch, part(&init, |sums| sums.writes), ns, IO);
    }
}
