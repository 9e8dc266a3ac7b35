//! The native target's own parameters; the workload's are in `assay_measure::config`.

use assay_measure::config::Effect::{Platform, Work};
use assay_measure::config::ParamDef;
use assay_measure::config::ParamKind::{Bool, Choice, Int, Mebibytes, Seconds, Text};
use assay_measure::params;

/// Every parameter of the native target.
pub const PARAMS: &[ParamDef] = params! {
    "CACHE_MB" = "DB_CACHE_SIZE", Mebibytes, "64", "buffer cache, MiB; 0: only the blocks in use";
    "IO_MODE" = "FILESYSTEMIO_OPTIONS" = "DIRECT_IO", Choice(&["setall", "directio", "asynch", "none"]), "setall", "none, directio (O_DIRECT), asynch (io_uring) or setall (both)" => Work("I/O mode");
    "READ_MODE", Choice(&["single", "batched"]), "single", "single: one read at a time per session; batched: up to IO_DEPTH" => Work("prefetch");
    "IO_DEPTH", Int(0, 1024), "0", "outstanding reads per session with READ_MODE=batched; 0: WORK_UNIT, at most 32" => Platform;
    "INDEX", Choice(&["btree", "computed"]), "btree", "btree: use the index blocks in the cache; computed: read no \
     index block" => Work("");
    "COMMIT_MODE", Choice(&["group", "none", "sync"]), "group", "group: durable, shared log writes; sync: durable, \
     one log write each; none: do not wait for the log write" => Work("durability");
    "DB_BLOCK_CHECKSUM", Choice(&["typical", "off", "full"]), "typical", "typical: computed when written, verified when read; full: also before each change" => Work("checksum");
    "FREE_WAIT", Choice(&["timed_10ms", "posted"]), "timed_10ms", "what ends a free buffer wait: a 10 ms timer, or the writer" => Platform;
    "MULTIBLOCK_READ_COUNT" = "DB_FILE_MULTIBLOCK_READ_COUNT", Int(0, 4096), "0", "blocks per scan read, at most 1 \
     MiB; 0: 1 MiB";
    "SCAN_DEPTH", Int(1, 32), "4", "reads in flight of each scan stream";
    "REDO_LOGS", Int(2, 99), "4", "redo log files of a new data set" => Platform;
    "REDO_LOG_MB", Mebibytes, "256", "size of each redo log file of a new data set, MiB; at least 4" => Platform;
    "LOG_BLOCK_BYTES", Int(512, 65_536), "4096", "log block of a new data set, bytes; a power of two";
    "LOG_BUFFER_MB" = "LOG_BUFFER", Mebibytes, "16", "log buffer, MiB; at least 1, rounded up to a power of two" => Platform;
    "UNDO_MB", Mebibytes, "256", "undo file of a new data set, MiB; at least 4";
    "DB_WRITERS" = "DB_WRITER_PROCESSES", Int(1, 64), "1", "database writer threads; the first also keeps the checkpoint" => Platform;
    "DB_WRITER_BATCH" = "_DB_WRITER_MAX_WRITES", Int(1, 1024), "64", "maximum number of requests that a database \
     writer submits together" => Platform;
    "DB_WRITER_COALESCE_BYTES" = "_DB_WRITER_COALESCE_WRITE_LIMIT", Int(4096, 1 << 20), "131072", "maximum bytes of \
     adjacent blocks that a database writer writes with one request; at least one block";
    "CACHE_SCAN_PCT" = "_DB_BLOCK_MAX_SCAN_PCT", Int(1, 100), "40", "percent of a cache partition that a search for \
     a free buffer may find dirty before it gives up";
    "LOG_CHECKPOINT_TIMEOUT", Seconds, "1800", "oldest redo that recovery may need, seconds; 0: no limit";
    "LOG_CHECKPOINT_INTERVAL", Int(0, 1 << 40), "0", "log blocks of redo that recovery may need; 0: only the limit \
     of 90 % of a log file, which always applies";
    "FAST_START_IO_TARGET", Int(0, 1 << 40), "0", "dirty blocks that recovery may have to read; 0: no limit";
    "REDO_DIR" = "DB_CREATE_ONLINE_LOG_DEST_1", Text, "", "directory or block device for the redo logs of a new data \
     set; default: with the data" => Platform;
    "UNDO_DIR", Text, "", "directory or block device for the undo file of a new data set; default: with the data";
    "DRIVER_THREADS", Int(0, 1024), "0", "threads that drive the sessions; 0: as many as \
     the reads of the device keep busy, at most one per CPU and one per session" => Platform;
    "HUGE_PAGES", Bool, "TRUE", "request huge pages for the buffer cache" => Platform;
    "CACHE_READ", Choice(&["optimistic", "pinned"]), "optimistic", "optimistic: cached reads check a version; pinned: they take a shared pin" => Platform;
    "CACHE_PREFETCH", Bool, "TRUE", "prefetch the next frames of a range into the CPU cache" => Work("prefetch");
    "CHECK", Choice(&["full", "sampled"]), "full", "what `assay check` reads: every block, or 1000 of each schema and the index";
};

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
                Choice(words) => assert!(words.contains(&def.default), "{}", def.name),
                Int(min, max) => {
                    let n: u64 = def.default.parse().unwrap();
                    assert!((min..=max).contains(&n), "{}", def.name);
                }
                Text => assert_eq!(def.default, "", "{}", def.name),
                _ => assert!(!def.default.is_empty(), "{}", def.name),
            }
        }
    }
}
