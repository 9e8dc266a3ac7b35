//! Times of file I/O from `performance_schema`, and the wait events.

use super::super::conn::{Connection, MyError};
use assay_measure::snapshot::{Actor, Reading, StatSet, TimedReading, WaitClass};

use Actor::{Background, Foreground};

/// The instrument: reads, writes and syncs of table files.
pub(in crate::mariadb) const INSTRUMENT: &str = "wait/io/file/innodb/innodb_data_file";
const SOURCE: &str = "performance_schema";
const PS_PER_NS: u64 = 1000;
const NS_PER_MS: u64 = 1_000_000;

/// Whether the server times its file I/O, or why not.
pub(super) struct Timing(Result<(), String>);

/// Count and time, ns, of reads, writes, and everything else (mostly syncs).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    read: (u64, u64),
    write: (u64, u64),
    other: (u64, u64),
}

impl Timing {
    pub(super) fn of(connection: &mut Connection) -> Result<Self, MyError> {
        if connection.number("select @@performance_schema")? == 0 {
            return Ok(Self(Err("disabled: performance_schema is off".to_owned())));
        }
        let asked = connection.value(&format!(
            "select concat(enabled, timed) from performance_schema.setup_instruments where name = '{INSTRUMENT}'"
        ));
        Ok(Self(match asked {
            Ok(on) if on == "YESYES" => Ok(()),
            Ok(_) => Err(format!("disabled: {INSTRUMENT} is not instrumented")),
            Err(error) if error.is_fatal() => return Err(error),
            Err(_) => Err("denied: SELECT on performance_schema".to_owned()),
        }))
    }

    pub(super) fn told(&self) -> String {
        match &self.0 {
            Ok(()) => format!("on (performance_schema, {INSTRUMENT})"),
            Err(why) => format!("n/a ({why})"),
        }
    }

    pub(super) fn read(&self, connection: &mut Connection) -> Result<Option<Row>, MyError> {
        if self.0.is_err() {
            return Ok(None);
        }
        let rows = connection.rows(&format!(
            "select count_read, sum_timer_read, count_write, sum_timer_write, count_misc, sum_timer_misc \
             from performance_schema.file_summary_by_event_name where event_name = '{INSTRUMENT}'"
        ))?;
        let row = rows.into_iter().next().unwrap_or_default();
        let number = |at: usize| -> u64 {
            let text = row.get(at).cloned().flatten().unwrap_or_default();
            text.parse().unwrap_or(0)
        };
        let pair = |at| (number(at), number(at + 1) / PS_PER_NS);
        Ok(Some(Row { read: pair(0), write: pair(2), other: pair(4) }))
    }
}

/// A wait event.
struct Line {
    name: &'static str,
    class: WaitClass,
    actor: Actor,
    /// Name of the status variable.
    counter: &'static str,
}

const READ: Line = line("db file sequential read", WaitClass::UserIo, Foreground, "innodb_buffer_pool_reads");
const WRITE: Line = line("db file parallel write", WaitClass::SystemIo, Background, "innodb_data_writes");
const SYNC: Line = line("data file sync", WaitClass::SystemIo, Background, "innodb_data_fsyncs");
const LOCK: Line = line("enq: TX - row lock contention", WaitClass::Application, Foreground, "innodb_row_lock_waits");
/// Events that are counted but never timed, with the reason.
const UNTIMED: [(Line, &str); 3] = [
    (
        line("log file parallel write", WaitClass::SystemIo, Background, "innodb_log_writes"),
        "absent: the log's writes have no instrument",
    ),
    (line("log buffer space", WaitClass::Configuration, Foreground, "innodb_log_waits"), "unknowable"),
    (line("free buffer waits", WaitClass::Configuration, Foreground, "innodb_buffer_pool_wait_free"), "unknowable"),
];

const fn line(name: &'static str, class: WaitClass, actor: Actor, counter: &'static str) -> Line {
    Line { name, class, actor, counter }
}

impl Line {
    fn put(self, set: &mut StatSet, waits: Reading, wait_ns: Reading, source: &str) {
        set.timed.push(TimedReading {
            name: self.name.to_owned(),
            class: self.class,
            actor: self.actor,
            waits,
            wait_ns,
            source: source.to_owned(),
        });
    }
}

/// Adds the wait events: counts by `value` of the server's status, with times if measured. Sessions read pages
/// themselves and wait for each; server threads write and sync pages.
pub(super) fn events(set: &mut StatSet, timing: &Timing, row: Option<Row>, value: &dyn Fn(&str) -> Reading) {
    let why = match &timing.0 {
        Ok(()) => "unknowable",
        Err(why) => why,
    };
    for (line, timed) in
        [(READ, row.map(|row| row.read)), (WRITE, row.map(|row| row.write)), (SYNC, row.map(|row| row.other))]
    {
        let counter = line.counter;
        match timed {
            Some((count, ns)) => line.put(set, Reading::Count(count), Reading::Count(ns), SOURCE),
            None => line.put(set, value(counter), Reading::Na(why.to_owned()), counter),
        }
    }
    for (line, why) in UNTIMED {
        let counter = line.counter;
        line.put(set, value(counter), Reading::Na(why.to_owned()), counter);
    }
    let time = match value("innodb_row_lock_time") {
        Reading::Count(ms) => Reading::Count(ms * NS_PER_MS),
        na @ Reading::Na(_) => na,
    };
    let counter = LOCK.counter;
    LOCK.put(set, value(counter), time, counter);
}
