//! Times of file I/O from `performance_schema`, and the lines of waits.

use super::super::conn::{Connection, MyError};
use assay_measure::snapshot::{Actor, Reading, StatSet, TimedReading, WaitClass};

use Actor::{Background, Foreground};

/// What is timed: reads, writes and syncs of the files of tables.
pub(in crate::mariadb) const INSTRUMENT: &str = "wait/io/file/innodb/innodb_data_file";
const SOURCE: &str = "performance_schema";
const PS_PER_NS: u64 = 1000;
const NS_PER_MS: u64 = 1_000_000;

/// Whether the server times its file I/O; if not, why.
pub(super) struct Timing(Result<(), String>);

/// Count and time, ns, of reads, writes, and all else (syncs, mostly).
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
        Ok(Some(Row {
            read: pair(0),
            write: pair(2),
            other: pair(4),
        }))
    }
}

/// Adds the lines of waits: counts by `value` of the server's status, times where they are measured.
pub(super) fn events(
    set: &mut StatSet,
    timing: &Timing,
    row: Option<Row>,
    value: &dyn Fn(&str) -> Reading,
) {
    let why = match &timing.0 {
        Ok(()) => "unknowable",
        Err(why) => why,
    };
    let mut put = |name: &str, class, actor, waits, wait_ns, source: &str| {
        set.timed.push(TimedReading {
            name: name.to_owned(),
            class,
            actor,
            waits,
            wait_ns,
            source: source.to_owned(),
        });
    };
    // Sessions read pages themselves and wait for each; threads of the server write and sync them.
    let (user, system) = (WaitClass::UserIo, WaitClass::SystemIo);
    for (name, class, actor, timed, counted) in [
        (
            "db file sequential read",
            user,
            Foreground,
            row.map(|row| row.read),
            "innodb_buffer_pool_reads",
        ),
        (
            "db file parallel write",
            system,
            Background,
            row.map(|row| row.write),
            "innodb_data_writes",
        ),
        (
            "data file sync",
            system,
            Background,
            row.map(|row| row.other),
            "innodb_data_fsyncs",
        ),
    ] {
        match timed {
            Some((count, ns)) => {
                let (count, ns) = (Reading::Count(count), Reading::Count(ns));
                put(name, class, actor, count, ns, SOURCE);
            }
            None => {
                let time = Reading::Na(why.to_owned());
                put(name, class, actor, value(counted), time, counted);
            }
        }
    }
    let untimed = |why: &str| Reading::Na(why.to_owned());
    let configuration = WaitClass::Configuration;
    for (name, class, actor, counted, why) in [
        (
            "log file parallel write",
            system,
            Background,
            "innodb_log_writes",
            "absent: the log's writes have no instrument",
        ),
        (
            "log buffer space",
            configuration,
            Foreground,
            "innodb_log_waits",
            "unknowable",
        ),
        (
            "free buffer waits",
            configuration,
            Foreground,
            "innodb_buffer_pool_wait_free",
            "unknowable",
        ),
    ] {
        put(name, class, actor, value(counted), untimed(why), counted);
    }
    let locks = "innodb_row_lock_waits";
    let time = match value("innodb_row_lock_time") {
        Reading::Count(ms) => Reading::Count(ms * NS_PER_MS),
        na @ Reading::Na(_) => na,
    };
    let name = "enq: TX - row lock contention";
    put(
        name,
        WaitClass::Application,
        Foreground,
        value(locks),
        time,
        locks,
    );
}
