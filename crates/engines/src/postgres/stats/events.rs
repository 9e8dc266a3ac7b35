//! Event lines with totals but no distribution: the server keeps a count and, where a switch is on, a time of some
//! of them. All other waits come from the activity samples alone.

use super::io::{Sums, part};
use super::mapping::{BGWRITER, DATABASE, FROM_14, FROM_16, IO, Mapper, UNTIMED, WAL};
use super::raw::sum;
use assay_measure::snapshot::{Actor, Reading, StatSet, TimedReading, WaitClass};

use Actor::{Background, Foreground};

/// Adds every event line the version can tell something of.
pub(super) fn add(mapper: Mapper<'_>, set: &mut StatSet) {
    if mapper.about.version < 16 {
        before_16(mapper, set);
    } else {
        from_16(mapper, set);
    }
    log(mapper, set);
}

/// One line; `waits` and its time.
fn put(
    set: &mut StatSet,
    (name, class, actor): (&str, WaitClass, Actor),
    waits: Reading,
    wait_ns: Reading,
    source: &str,
) {
    set.timed.push(TimedReading {
        name: name.to_owned(),
        class,
        actor,
        waits,
        wait_ns,
        source: source.to_owned(),
    });
}

const SEQUENTIAL_READ: &str = "db file sequential read";

/// 13 to 15: blocks and times of the database's sessions, blocks of the writers.
fn before_16(mapper: Mapper<'_>, set: &mut StatSet) {
    let timing = mapper.about.session_io_timing;
    let time = |column| Mapper::timed(timing, mapper.raw.ms("db", column, UNTIMED));
    let read = (SEQUENTIAL_READ, WaitClass::UserIo, Foreground);
    put(
        set,
        read,
        mapper.blks_read(),
        time("blk_read_time"),
        DATABASE,
    );
    let [checkpoint, clean, backends] = mapper.writers();
    let backend = ("backend writes", WaitClass::Configuration, Foreground);
    put(set, backend, backends.0, time("blk_write_time"), BGWRITER);
    let writers = ("db file parallel write", WaitClass::SystemIo, Background);
    let untimed = Reading::Na(FROM_16.to_owned());
    put(
        set,
        writers,
        sum([checkpoint.0, clean.0]),
        untimed,
        BGWRITER,
    );
}

/// From 16 on: `pg_stat_io` by who, on what, how.
fn from_16(mapper: Mapper<'_>, set: &mut StatSet) {
    let (ours, all) = (
        mapper.about.session_io_timing,
        mapper.about.server_io_timing,
    );
    let time = |on, sums: &Result<Sums, String>, pick: fn(&Sums) -> u64| {
        Mapper::timed(on, part(sums, pick))
    };
    let session = |context: &'static str| {
        mapper.io(move |row| row.is_session() && row.is_relation() && row.context == context)
    };

    let normal = session("normal");
    let read = (SEQUENTIAL_READ, WaitClass::UserIo, Foreground);
    put(
        set,
        read,
        part(&normal, |sums| sums.reads),
        time(ours, &normal, |sums| sums.read_ns),
        IO,
    );
    let writes = ("backend writes", WaitClass::Configuration, Foreground);
    put(
        set,
        writes,
        part(&normal, |sums| sums.writes),
        time(ours, &normal, |sums| sums.write_ns),
        IO,
    );
    let extends = ("data file extend", WaitClass::UserIo, Foreground);
    put(
        set,
        extends,
        part(&normal, |sums| sums.extends),
        time(ours, &normal, |sums| sums.extend_ns),
        IO,
    );
    let syncs = ("data file sync", WaitClass::Configuration, Foreground);
    put(
        set,
        syncs,
        part(&normal, |sums| sums.fsyncs),
        time(ours, &normal, |sums| sums.fsync_ns),
        IO,
    );

    // Scans of large tables use a small ring of buffers of their own.
    let ring = session("bulkread");
    let ring_read = ("direct path read", WaitClass::UserIo, Foreground);
    put(
        set,
        ring_read,
        part(&ring, |sums| sums.reads),
        time(ours, &ring, |sums| sums.read_ns),
        IO,
    );
    let bulk = session("bulkwrite");
    let bulk_write = ("direct path write", WaitClass::UserIo, Foreground);
    put(
        set,
        bulk_write,
        part(&bulk, |sums| sums.writes + sums.extends),
        time(ours, &bulk, |sums| sums.write_ns + sums.extend_ns),
        IO,
    );

    let writers = mapper.io(|row| row.is_writer() && row.is_relation());
    let write = ("db file parallel write", WaitClass::SystemIo, Background);
    put(
        set,
        write,
        part(&writers, |sums| sums.writes),
        time(all, &writers, |sums| sums.write_ns),
        IO,
    );
    let sync = ("data file sync", WaitClass::SystemIo, Background);
    put(
        set,
        sync,
        part(&writers, |sums| sums.fsyncs),
        time(all, &writers, |sums| sums.fsync_ns),
        IO,
    );
    let vacuum = mapper.io(|row| row.is_relation() && row.backend_type.starts_with("autovacuum"));
    let read = (SEQUENTIAL_READ, WaitClass::SystemIo, Background);
    put(
        set,
        read,
        part(&vacuum, |sums| sums.reads),
        time(all, &vacuum, |sums| sums.read_ns),
        IO,
    );
}

/// The log: whoever writes it, mostly the sessions that commit.
fn log(mapper: Mapper<'_>, set: &mut StatSet) {
    let log = mapper.log_writes();
    let write = ("log file parallel write", WaitClass::SystemIo, Background);
    // A log write is durable only with its sync: one line for both, as the time of redo writes.
    put(
        set,
        write,
        log.writes,
        sum([log.write_ns, log.sync_ns]),
        log.source,
    );
    let space = ("log buffer space", WaitClass::Configuration, Foreground);
    let unknown = if mapper.about.version < 14 {
        FROM_14
    } else {
        "unknowable"
    };
    put(
        set,
        space,
        mapper.wal("wal_buffers_full"),
        Reading::Na(unknown.to_owned()),
        WAL,
    );
    if mapper.about.version >= 18 {
        let init = mapper.io(|row| row.is_wal() && row.context == "init");
        let ns = part(&init, |sums| sums.write_ns + sums.fsync_ns);
        let ns = if mapper.about.wal_timing {
            ns
        } else {
            Reading::Na(super::mapping::WAL_UNTIMED.to_owned())
        };
        let switch = (
            "log file switch completion",
            WaitClass::Configuration,
            Foreground,
        );
        put(set, switch, part(&init, |sums| sums.writes), ns, IO);
    }
}
