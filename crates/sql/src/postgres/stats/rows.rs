//! I/O by function and file type.

use super::io::{Row, Sums};
use super::mapping::{BGWRITER, DATABASE, IO, Mapper, WAL};
use assay_measure::snapshot::{IoReading, Reading, StatSet};

const DATA: &str = "Data File";
const LOG: &str = "Log File";
const TEMP: &str = "Temp File";

/// Adds the rows this version reports.
pub(super) fn add(mapper: Mapper<'_>, set: &mut StatSet) {
    let source = if mapper.about.version < 16 { BGWRITER } else { IO };
    if mapper.about.version < 16 {
        before_16(mapper, set);
    } else {
        from_16(mapper, set);
    }
    if mapper.about.version < 18 {
        log_before_18(mapper, set);
    }
    set.sources.insert("io".to_owned(), source.to_owned());
    if mapper.about.version < 16 {
        // Reads are the database's, writes the whole server's.
        let both = format!("{DATABASE}, {BGWRITER}");
        set.sources.insert("io Buffer Cache Reads".to_owned(), both);
    }
    if mapper.about.version < 18 {
        set.sources.insert("io LGWR".to_owned(), WAL.to_owned());
    }
}

/// Function and file type of a row of `pg_stat_io`.
fn place(row: Row<'_>) -> (&'static str, &'static str) {
    match row {
        _ if row.is_wal() => ("LGWR", LOG),
        _ if row.object != "relation" => ("Others", TEMP),
        _ if row.is_vacuum() => ("Vacuum", DATA),
        _ if row.is_writer() => ("DBWR", DATA),
        _ if row.context == "bulkread" => ("Direct Reads", DATA),
        _ if row.context == "bulkwrite" => ("Direct Writes", DATA),
        _ if row.is_session() => ("Buffer Cache Reads", DATA),
        _ => ("Others", DATA),
    }
}

const PLACES: [(&str, &str); 8] = [
    ("Buffer Cache Reads", DATA),
    ("Direct Reads", DATA),
    ("Direct Writes", DATA),
    ("DBWR", DATA),
    ("LGWR", LOG),
    ("Vacuum", DATA),
    ("Others", DATA),
    ("Others", TEMP),
];

fn from_16(mapper: Mapper<'_>, set: &mut StatSet) {
    for (function, file_type) in PLACES {
        let here = (function, file_type);
        let Ok(sums) = mapper.io(|row| place(row) == here) else {
            continue;
        };
        if function == "LGWR" && mapper.about.version < 18 {
            continue;
        }
        set.io.push(row(mapper, here, &sums));
    }
}

fn row(mapper: Mapper<'_>, (function, file_type): (&str, &str), sums: &Sums) -> IoReading {
    let mut row = IoReading {
        function: function.to_owned(),
        file_type: file_type.to_owned(),
        small_read_requests: sums.reads,
        read_bytes: sums.read_bytes,
        small_write_requests: sums.writes + sums.extends,
        write_bytes: sums.write_bytes + sums.extend_bytes,
        waits: sums.reads + sums.writes + sums.extends,
        wait_ns: sums.read_ns + sums.write_ns + sums.extend_ns,
        ..IoReading::default()
    };
    if mapper.about.version == 17 {
        row.small_read_requests = 0;
        row.waits = 0;
        without(&mut row, &["read_requests", "waits"], super::io::COMBINED);
    }
    let about = mapper.about;
    let (timed, switch) = match function {
        "LGWR" => (about.wal_timing, super::mapping::WAL_UNTIMED),
        "Buffer Cache Reads" | "Direct Reads" | "Direct Writes" => (about.session_io_timing, super::mapping::UNTIMED),
        _ => (about.server_io_timing, super::mapping::UNTIMED),
    };
    if !timed {
        row.wait_ns = 0;
        without(&mut row, &["wait_ns"], switch);
    }
    row
}

/// Marks columns of a row as unavailable.
fn without(row: &mut IoReading, columns: &[&str], reason: &str) {
    for column in columns {
        row.na.insert((*column).to_owned(), reason.to_owned());
    }
}

/// 13 to 15: three writers and the database's reads; only the sessions' own times.
fn before_16(mapper: Mapper<'_>, set: &mut StatSet) {
    let [checkpoint, clean, backends] = mapper.writers();
    let block = mapper.about.block_bytes;
    let (Reading::Count(checkpoint), Reading::Count(clean), Reading::Count(backends)) =
        (checkpoint.0, clean.0, backends.0)
    else {
        return;
    };
    let mut writer = IoReading {
        function: "DBWR".to_owned(),
        file_type: DATA.to_owned(),
        small_write_requests: checkpoint + clean,
        write_bytes: (checkpoint + clean) * block,
        ..IoReading::default()
    };
    without(&mut writer, &["waits", "wait_ns"], super::mapping::FROM_16);
    set.io.push(writer);
    let Reading::Count(reads) = mapper.blks_read() else {
        return;
    };
    let mut sessions = IoReading {
        function: "Buffer Cache Reads".to_owned(),
        file_type: DATA.to_owned(),
        small_read_requests: reads,
        read_bytes: reads * block,
        small_write_requests: backends,
        write_bytes: backends * block,
        waits: reads + backends,
        ..IoReading::default()
    };
    let ns = |column| mapper.raw.ms("db", column, super::mapping::SILENT);
    match (ns("blk_read_time"), ns("blk_write_time")) {
        (Reading::Count(read), Reading::Count(write)) if mapper.about.session_io_timing => {
            sessions.wait_ns = read + write;
        }
        _ => without(&mut sessions, &["wait_ns"], super::mapping::UNTIMED),
    }
    set.io.push(sessions);
}

/// 14 to 17: calls of log writes. Their bytes are unknown; the bytes generated are known.
fn log_before_18(mapper: Mapper<'_>, set: &mut StatSet) {
    let log = mapper.log_writes();
    let Reading::Count(writes) = log.writes else {
        return;
    };
    let mut row = IoReading {
        function: "LGWR".to_owned(),
        file_type: LOG.to_owned(),
        small_write_requests: writes,
        waits: writes,
        ..IoReading::default()
    };
    without(&mut row, &["read_requests", "read_bytes", "write_bytes"], "absent: came with PostgreSQL 18");
    match (log.write_ns, log.sync_ns) {
        (Reading::Count(write), Reading::Count(sync)) => row.wait_ns = write + sync,
        _ => without(&mut row, &["wait_ns"], super::mapping::WAL_UNTIMED),
    }
    set.io.push(row);
}
