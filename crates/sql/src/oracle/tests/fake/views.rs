//! What the stand-in answers from its dictionary and its V$ views: their shapes, and what was done since.

use super::super::super::session::{OraError, Rows};
use super::super::super::sql;
use super::{BLOCK, Db, row, word_after};
use std::time::SystemTime;

/// V$SYSSTAT as an AWR report of an OLTP-like hour has it: the names that the report prints, and others it does not.
const SYSSTAT: &[(&str, u64)] = &[
    ("CPU used by this session", 812_345),
    ("DBWR checkpoint buffers written", 39_187),
    ("DBWR checkpoints", 12),
    ("DBWR undo block writes", 91_412),
    ("consistent gets", 81_234_567),
    ("consistent gets from cache", 81_234_000),
    ("db block changes", 6_412_331),
    ("db block gets", 7_912_331),
    ("db block gets from cache", 7_912_300),
    ("dirty buffers inspected", 331),
    ("enqueue deadlocks", 0),
    ("execute count", 912_441),
    ("free buffer inspected", 712_331),
    ("free buffer requested", 1_912_331),
    ("hot buffers moved to head of LRU", 41_022),
    ("logons cumulative", 1244),
    ("physical read IO requests", 1_500_864),
    ("physical read bytes", 13_971_089_408),
    ("physical read total IO requests", 1_543_210),
    ("physical read total bytes", 14_671_089_408),
    ("physical read total multi block requests", 6),
    ("physical reads", 1_705_458),
    ("physical reads cache", 1_705_113),
    ("physical reads cache prefetch", 1_190_884),
    ("physical reads direct", 345),
    ("physical write IO requests", 1_467_712),
    ("physical write bytes", 19_986_317_312),
    ("physical write total IO requests", 1_587_712),
    ("physical write total bytes", 22_986_317_312),
    ("physical write total multi block requests", 812),
    ("physical writes", 2_439_736),
    ("physical writes direct", 442),
    ("physical writes from cache", 2_439_294),
    ("physical writes non checkpoint", 1_366_252),
    ("pinned buffers inspected", 12),
    ("redo blocks written", 5_812_331),
    ("redo buffer allocation retries", 31),
    ("redo entries", 3_412_001),
    ("redo log space requests", 18),
    ("redo log space wait time", 44),
    ("redo size", 2_812_331_004),
    ("redo synch time (usec)", 91_233_411),
    ("redo synch writes", 71_233),
    ("redo wastage", 21_233_004),
    ("redo write time", 9812),
    ("redo writes", 70_912),
    ("session logical reads", 89_146_898),
    ("table fetch by rowid", 58_912_331),
    ("table scan blocks gotten", 412_331),
    ("undo change vector size", 812_331_004),
    ("user commits", 71_021),
    ("user rollbacks", 12),
    ("write clones created in background", 21),
];

/// V$SYSTEM_EVENT: name, class, waits, timeouts, us, and the foreground's waits and us.
const EVENTS: &[(&str, &str, [u64; 5])] = &[
    ("db file sequential read", "User I/O", [249_854, 0, 115_700_000, 249_100, 115_200_000]),
    ("db file parallel read", "User I/O", [11_021, 0, 91_000_000, 11_021, 91_000_000]),
    ("db file scattered read", "User I/O", [913, 0, 1_912_000, 902, 1_900_000]),
    ("db file parallel write", "System I/O", [131_022, 0, 81_912_000, 0, 0]),
    ("log file parallel write", "System I/O", [70_912, 0, 98_120_000, 0, 0]),
    ("log file sync", "Commit", [71_233, 12, 91_233_411, 71_230, 91_230_000]),
    ("control file sequential read", "System I/O", [9123, 0, 912_000, 41, 4100]),
    ("buffer busy waits", "Concurrency", [312, 0, 41_200, 300, 40_000]),
    ("SQL*Net message to client", "Network", [912_441, 0, 912_000, 912_441, 912_000]),
    ("SQL*Net message from client", "Idle", [912_440, 0, 9_912_331_000, 912_440, 9_912_331_000]),
    ("rdbms ipc message", "Idle", [412_331, 391_000, 99_912_331_000, 0, 0]),
    ("gc current block 2-way", "Cluster", [0, 0, 0, 0, 0]),
];

/// V$IOSTAT_FUNCTION: requests small and large, MiB, the same for writes, waits, ms.
const FUNCTIONS: &[(&str, [u64; 8])] = &[
    ("Buffer Cache Reads", [1_500_812, 21, 13_322, 0, 0, 0, 261_788, 208_612]),
    ("DBWR", [0, 0, 0, 1_467_212, 412, 19_060, 0, 0]),
    ("LGWR", [21, 0, 1, 70_912, 31, 2791, 4, 3]),
    ("Direct Reads", [345, 0, 2, 0, 0, 0, 0, 0]),
    ("Others", [41_231, 3, 644, 9123, 0, 142, 12_331, 1212]),
];

pub(super) fn instance(db: &Db, statement: &str) -> Rows {
    let keep = db.keep_bytes.to_string();
    if statement == sql::PARAMETERS {
        return vec![
            row(&["db_cache_size", "0"]),
            row(&["sga_target", "2147483648"]),
            row(&["filesystemio_options", "SETALL"]),
            row(&["processes", "500"]),
            row(&["sessions", "776"]),
            row(&["control_management_pack_access", db.management.unwrap_or("DIAGNOSTIC+TUNING")]),
            row(&["_db_block_prefetch_limit", "0"]),
        ];
    }
    vec![
        row(&["DEFAULT buffer cache", "1073741824"]),
        row(&["KEEP buffer cache", &keep]),
        row(&["log mode", "NOARCHIVELOG"]),
        row(&["log block bytes", "512"]),
        row(&["log bytes", "629145600"]),
        row(&["instances", "1"]),
        row(&["sessions now", "81"]),
    ]
}

pub(super) fn plan(db: &Db, sid: u32) -> Rows {
    let explained = db.plan_of.get(&sid).map_or("", String::as_str);
    let (table, is_scan) = if explained.starts_with("update") {
        (word_after(explained, "*/ "), false)
    } else {
        (word_after(explained, " from "), !explained.contains("between"))
    };
    let upper = table.to_ascii_uppercase();
    let index = db.tables.get(table).and_then(|table| table.index.clone());
    match index.filter(|_| !is_scan) {
        Some((index, _)) => vec![
            row(&["SELECT STATEMENT"]),
            row(&["SORT AGGREGATE"]),
            row(&[&format!("TABLE ACCESS BY INDEX ROWID {upper}")]),
            row(&[&format!("INDEX RANGE SCAN {}", index.to_ascii_uppercase())]),
        ],
        None => vec![row(&["SELECT STATEMENT"]), row(&[&format!("TABLE ACCESS FULL {upper}")])],
    }
}

pub(super) fn dictionary(db: &Db, statement: &str, name: &str) -> Rows {
    let Some(table) = db.tables.get(name) else {
        return Vec::new();
    };
    match statement {
        sql::COLUMNS_OF => {
            let mut columns = vec![row(&["custid number(10)"])];
            columns.extend((2..=20).map(|column| row(&[&format!("c{column} varchar2(128)")])));
            columns
        }
        sql::TABLE_IS => vec![row(&["99", "DISABLED", "NO", "N", "HEAP", "DISABLED"])],
        sql::INDEXES_OF => {
            let each = table.index.iter().map(|(index, unique)| {
                let unique = if *unique { "unique" } else { "nonunique" };
                row(&[&format!("{index} custid {unique} valid visible")])
            });
            each.collect()
        }
        _ => vec![row(&[&(table.rows.len() + 200).to_string()])],
    }
}

pub(super) fn keys(db: &mut Db, statement: &str) -> Result<Rows, OraError> {
    let table = db.table(word_after(statement, " from "))?;
    let (first, last) = (table.rows.keys().next(), table.rows.keys().last());
    let all = table.rows.len().to_string();
    Ok(vec![row(&[
        &all,
        &all,
        &first.map_or(String::new(), i64::to_string),
        &last.map_or(String::new(), i64::to_string),
    ])])
}

pub(super) fn verify(db: &mut Db, statement: &str) -> Result<Rows, OraError> {
    let at = statement.rfind(" from ").unwrap_or(0);
    let table = db.table(word_after(&statement[at..], " from "))?;
    let mut places: Vec<(u64, i64)> = table.rows.iter().map(|(key, row)| (row.block, *key)).collect();
    places.sort_unstable();
    let mut blocks: Vec<u64> = places.iter().map(|(block, _)| *block).collect();
    blocks.dedup();
    let n = places.len() as f64;
    let squares: f64 =
        places.iter().enumerate().map(|(place, (_, key))| (*key as f64 - place as f64 - 1.0).powi(2)).sum();
    let correlation = 1.0 - 6.0 * squares / (n * (n * n - 1.0)).max(1.0);
    let wrong = table.rows.values().filter(|row| row.odd || row.c2.len() != 128).count();
    let all = table.rows.len().to_string();
    Ok(vec![row(&[
        &all,
        &all,
        &table.rows.keys().next().map_or(String::new(), i64::to_string),
        &table.rows.keys().last().map_or(String::new(), i64::to_string),
        &wrong.to_string(),
        &blocks.len().to_string(),
        &format!("{correlation:.6}"),
    ])])
}

/// V$ views: their shape, and what was done since.
pub(super) fn views(db: &Db, statement: &str) -> Rows {
    let (waits, commits) = (db.at("waits"), db.at("commits waited"));
    if statement.contains("v$sysstat") {
        let each = SYSSTAT.iter().map(|(name, base)| row(&[name, &(base + db.at(name)).to_string()]));
        return each.collect();
    }
    if statement.contains("sys_time_model") {
        return vec![
            row(&["DB time", &(4_812_331_004 + db.at("busy us")).to_string()]),
            row(&["DB CPU", &(812_331_004 + db.at("cpu us")).to_string()]),
            row(&["background elapsed time", &(91_233_004 + db.at("sync us")).to_string()]),
            row(&["background cpu time", &(41_233_004 + commits * 4).to_string()]),
            row(&["parse time elapsed", "1233004"]),
        ];
    }
    if statement.contains("v$osstat") {
        // Hundredths of a second since 1970: of 16 CPUs, those that worked for the server and no others.
        let busy = 812_331 + (db.at("cpu us") + commits * 4).div_ceil(10_000);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let all = 16 * u64::try_from(now.unwrap().as_millis() / 10).unwrap();
        return vec![
            row(&["NUM_CPUS", "16"]),
            row(&["BUSY_TIME", &busy.to_string()]),
            row(&["IDLE_TIME", &(all - busy).to_string()]),
            row(&["IOWAIT_TIME", "81233"]),
        ];
    }
    if statement.contains("v$system_event") {
        let each = EVENTS.iter().map(|(name, class, base)| {
            let [more, us] = match *name {
                "db file sequential read" => [waits, db.at("read us")],
                "log file sync" => [commits, db.at("sync us")],
                "log file parallel write" => [commits, db.at("sync us") * 5 / 6],
                _ => [0, 0],
            };
            let foreground = if base[3] > 0 { [more, us] } else { [0, 0] };
            let moved = [more, 0, us, foreground[0], foreground[1]];
            let mut values = vec![(*name).to_owned(), (*class).to_owned()];
            values.extend(base.iter().zip(moved).map(|(base, more)| (base + more).to_string()));
            values.into_iter().map(Some).collect()
        });
        return each.collect();
    }
    if statement.contains("event_histogram_micro") {
        let each = [(256, 6), (512, 3), (1024, 1)].map(|(below, of)| {
            row(&["db file sequential read", &below.to_string(), &(24_985 * of + waits * of / 10).to_string()])
        });
        return each.to_vec();
    }
    assert!(statement.contains("v$iostat_function"), "{statement}");
    let each = FUNCTIONS.iter().map(|(name, base)| {
        let mut values = *base;
        match *name {
            "Buffer Cache Reads" => {
                values[0] += waits;
                values[2] += waits * BLOCK / (1 << 20);
                values[6] += waits;
                values[7] += db.at("read us") / 1000;
            }
            "LGWR" => {
                values[3] += commits;
                values[5] += commits * 2048 / (1 << 20);
            }
            _ => {}
        }
        let mut row = vec![(*name).to_owned()];
        row.extend(values.iter().map(u64::to_string));
        row.into_iter().map(Some).collect()
    });
    each.collect()
}
