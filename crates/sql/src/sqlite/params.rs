//! The parameters of the SQLite target; SLOB's are in `assay_slob`.

use assay_measure::config::Effect::{Platform, Work};
use assay_measure::config::ParamDef;
use assay_measure::config::ParamKind::{Choice, Int, Mebibytes, Seconds};
use assay_measure::params;

/// Every parameter of the SQLite target.
pub(super) const PARAMS: &[ParamDef] = params! {
    "SQLITE_SYNCHRONOUS", Choice(&["full", "normal", "off"]), "full", "PRAGMA synchronous: full: each commit waits until the \
     device has its log; normal: only a checkpoint does; off: nothing does, loads neither" => Work("durability of commits");
    "SQLITE_CACHE_MB", Mebibytes, "2", "page cache of each session, MiB; 2 is about SQLite's own default" => Platform;
    "SQLITE_MMAP_MB", Mebibytes, "0", "PRAGMA mmap_size, MiB: so much of the file is read through memory, which no figure \
     of assay counts; 0: none" => Platform;
    "SQLITE_CHECKPOINT_PAGES", Int(1, 1 << 30), "1000", "PRAGMA wal_autocheckpoint: a commit that leaves so many pages in the \
     log also does a checkpoint" => Platform;
    "SQLITE_BUSY_TIMEOUT", Seconds, "60", "longest wait for the write lock, s; the operation then fails";
    "SQLITE_GRACE", Seconds, "60", "seconds (at least 1) that a timed run waits after its end for operations in progress; \
     statements are interrupted after two thirds of it";
    "CHECK", Choice(&["full", "sampled"]), "full", "what `assay check` reads: every row, or only definitions and the index";
};
