//! The PostgreSQL target's own parameters; the workload's are in `assay_measure::config`.

use assay_measure::config::Effect::{Platform, Work};
use assay_measure::config::ParamDef;
use assay_measure::config::ParamKind::{Bool, Choice, Int, Seconds, Text};
use assay_measure::params;

/// Every parameter of the PostgreSQL target.
pub(super) const PARAMS: &[ParamDef] = params! {
    "READ_MODE", Choice(&["single", "batched"]), "single", "single: index scan, one block at a time; batched: bitmap heap scan with prefetch of IO_DEPTH" => Work("prefetch");
    "IO_DEPTH", Int(0, 1000), "0", "effective_io_concurrency with READ_MODE=batched; 0: WORK_UNIT, at most 32" => Platform;
    "DRIVER_THREADS", Int(0, 1024), "0", "threads that drive the sessions of LOOP=client; 0: one per session, \
     at most one per CPU" => Platform;
    "PG_SCHEMA", Text, "assay", "PostgreSQL schema of the data set; assay creates it and refuses a schema that it \
     did not make";
    "COMMIT_MODE", Choice(&["default", "on", "off", "local", "remote_write", "remote_apply"]), "default", "synchronous_commit of the sessions; default: the server's setting" => Work("durability");
    "PG_ANSWER_TIMEOUT", Seconds, "30", "seconds (at least 1) to wait for an answer before assay asks the server for \
     a sign of life on a new connection; while the server works for the session the wait continues, else assay gives it up";
    "PG_GRACE", Seconds, "90", "seconds (at least 1) that a timed run waits after its end for operations in \
     progress: after two thirds assay cancels them; at the end it gives them up, and the run is invalid";
    "TABLESPACE", Text, "", "tablespace of the tables and indexes; default: that of the database";
    "AUTOVACUUM", Bool, "FALSE", "keep autovacuum on for the tables of the data set";
    "CHECK", Choice(&["full", "sampled"]), "full", "what `assay check` reads: every row, or some pages of each table and the index";
    "PG_SET", Text, "", "settings of a temp:postgres server, NAME=VALUE, separated by semicolons (--pg-set, repeatable)" => Platform;
    "PG_BIN", Text, "", "directories of postgres and initdb for temp:postgres, separated by colons; default: where \
     packages install them";
    "PG_DIR", Text, "", "where assay makes the private directory of a temp:postgres server; default: TMPDIR, else \
     /var/tmp";
    "TRACK_IO_TIMING", Choice(&["auto", "on", "off"]), "auto", "track_io_timing in assay's own sessions: on if the \
     role may set it (auto), on or refuse the run (on), off";
    "EVICT", Text, "", "how to make reads reach the device, repeatable: buffers, pagecache, continuous[:MS], \
     cgroup:SIZE, direct", flag ["evict", "..."], of "run sweep show" => Work("");
};
