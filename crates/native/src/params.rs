//! The native target's own parameters; the workload's are in `assay_measure::config`.

use assay_measure::config::{ParamDef, ParamKind};

const fn param(
    name: &'static str,
    kind: ParamKind,
    default: &'static str,
    aliases: &'static [&'static str],
    help: &'static str,
) -> ParamDef {
    ParamDef {
        name,
        kind,
        default,
        aliases,
        help,
    }
}

const fn int(
    name: &'static str,
    min: u64,
    max: u64,
    default: &'static str,
    help: &'static str,
) -> ParamDef {
    param(name, ParamKind::Int { min, max }, default, &[], help)
}

const fn choice(
    name: &'static str,
    words: &'static [&'static str],
    help: &'static str,
) -> ParamDef {
    param(name, ParamKind::Choice(words), words[0], &[], help)
}

/// Every parameter of the native target. The first word of each choice is its default.
pub const PARAMS: &[ParamDef] = &[
    param(
        "CACHE_MB",
        ParamKind::Mebibytes,
        "64",
        &["DB_CACHE_SIZE"],
        "buffer cache, MiB; 0 keeps only the blocks in use",
    ),
    param(
        "IO_MODE",
        ParamKind::Choice(&["setall", "directio", "asynch", "none"]),
        "setall",
        &["FILESYSTEMIO_OPTIONS", "DIRECT_IO"],
        "none, directio (O_DIRECT), asynch (io_uring) or setall (both)",
    ),
    choice(
        "READ_MODE",
        &["single", "batched"],
        "single: one read at a time per session; batched: up to IO_DEPTH",
    ),
    int(
        "IO_DEPTH",
        0,
        1024,
        "0",
        "reads a session has outstanding with READ_MODE=batched; 0 is WORK_UNIT, at most 32",
    ),
    choice(
        "INDEX",
        &["btree", "computed"],
        "btree: through index blocks in the cache; computed: no index block is read",
    ),
    choice(
        "COMMIT_MODE",
        &["group", "none", "sync"],
        "group: durable, log writes shared; sync: durable, one write each; none: not awaited",
    ),
    choice(
        "DB_BLOCK_CHECKSUM",
        &["typical", "off", "full"],
        "typical: computed when written, verified when read; full: also before each change",
    ),
    choice(
        "FREE_WAIT",
        &["timed_10ms", "posted"],
        "what ends a free buffer wait: a 10 ms timer or the writer",
    ),
    param(
        "MULTIBLOCK_READ_COUNT",
        ParamKind::Int { min: 0, max: 4096 },
        "0",
        &["DB_FILE_MULTIBLOCK_READ_COUNT"],
        "blocks per scan read, 1 MiB at most; 0 is 1 MiB worth",
    ),
    int(
        "SCAN_DEPTH",
        1,
        32,
        "4",
        "reads that each stream of a scan has in flight",
    ),
    int("REDO_LOGS", 2, 99, "4", "redo log files of a new data set"),
    param(
        "REDO_LOG_MB",
        ParamKind::Mebibytes,
        "256",
        &[],
        "size of each redo log file of a new data set, MiB; at least 4",
    ),
    int(
        "LOG_BLOCK_BYTES",
        512,
        65_536,
        "4096",
        "log block of a new data set, bytes; a power of two",
    ),
    param(
        "LOG_BUFFER_MB",
        ParamKind::Mebibytes,
        "16",
        &["LOG_BUFFER"],
        "log buffer, MiB; at least 1, rounded up to a power of two",
    ),
    param(
        "UNDO_MB",
        ParamKind::Mebibytes,
        "256",
        &[],
        "undo file of a new data set, MiB; at least 4",
    ),
    param(
        "DB_WRITERS",
        ParamKind::Int { min: 1, max: 64 },
        "1",
        &["DB_WRITER_PROCESSES"],
        "database writer threads; the first also keeps the checkpoint",
    ),
    param(
        "DB_WRITER_BATCH",
        ParamKind::Int { min: 1, max: 1024 },
        "64",
        &["_DB_WRITER_MAX_WRITES"],
        "requests a database writer submits together, at most",
    ),
    param(
        "DB_WRITER_COALESCE_BYTES",
        ParamKind::Int {
            min: 4096,
            max: 1 << 20,
        },
        "131072",
        &["_DB_WRITER_COALESCE_WRITE_LIMIT"],
        "bytes of adjacent blocks a database writer writes with one request, at most; never below a block",
    ),
    param(
        "CACHE_SCAN_PCT",
        ParamKind::Int { min: 1, max: 100 },
        "40",
        &["_DB_BLOCK_MAX_SCAN_PCT"],
        "percent of a cache partition that may turn out dirty before a seek for a free buffer gives up",
    ),
    param(
        "LOG_CHECKPOINT_TIMEOUT",
        ParamKind::Seconds,
        "1800",
        &[],
        "oldest redo that recovery may need, seconds; 0 is no limit",
    ),
    int(
        "LOG_CHECKPOINT_INTERVAL",
        0,
        1 << 40,
        "0",
        "log blocks of redo that recovery may need; 0 is no limit of its own, 90 % of a log file always is one",
    ),
    int(
        "FAST_START_IO_TARGET",
        0,
        1 << 40,
        "0",
        "dirty blocks that recovery may have to read; 0 is no limit",
    ),
    param(
        "REDO_DIR",
        ParamKind::Text,
        "",
        &["DB_CREATE_ONLINE_LOG_DEST_1"],
        "directory or block device for the redo logs of a new data set; unset: with the data",
    ),
    param(
        "UNDO_DIR",
        ParamKind::Text,
        "",
        &[],
        "directory or block device for the undo file of a new data set; unset: with the data",
    ),
    int(
        "DRIVER_THREADS",
        0,
        1024,
        "0",
        "threads that drive the sessions; 0 is one per CPU, at most one per session",
    ),
    param(
        "HUGE_PAGES",
        ParamKind::Bool,
        "TRUE",
        &[],
        "ask for huge pages for the buffer cache",
    ),
    choice(
        "CACHE_READ",
        &["optimistic", "pinned"],
        "optimistic: cached reads check a version; pinned: they take a shared pin",
    ),
    param(
        "CACHE_PREFETCH",
        ParamKind::Bool,
        "TRUE",
        &[],
        "fetch the coming frames of a range into the CPU cache",
    ),
    choice(
        "CHECK",
        &["full", "sampled"],
        "what `assay check` reads: every block, or 1000 of each schema and the index",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_and_aliases_are_unique_and_upper_case() {
        let mut seen = BTreeSet::new();
        for def in PARAMS {
            for name in std::iter::once(&def.name).chain(def.aliases) {
                assert!(seen.insert(*name), "{name} appears twice");
                assert_eq!(*name, name.to_ascii_uppercase());
            }
        }
    }

    #[test]
    fn defaults_are_legal() {
        for def in PARAMS {
            match def.kind {
                ParamKind::Choice(words) => assert!(words.contains(&def.default), "{}", def.name),
                ParamKind::Int { min, max } => {
                    let n: u64 = def.default.parse().unwrap();
                    assert!((min..=max).contains(&n), "{}", def.name);
                }
                ParamKind::Text => assert_eq!(def.default, "", "{}", def.name),
                _ => assert!(!def.default.is_empty(), "{}", def.name),
            }
        }
    }
}
