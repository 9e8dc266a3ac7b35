//! The PostgreSQL target's own parameters; the workload's are in `assay_measure::config`.

use assay_measure::config::ParamDef;
use assay_measure::config::ParamKind::{Bool, Choice, Int, Seconds, Text};
use assay_measure::params;

/// Every parameter of the PostgreSQL target.
pub(super) const PARAMS: &[ParamDef] = params! {
    "READ_MODE", Choice(&["single", "batched"]), "single", "single: index scan, one block at a time; batched: bitmap heap scan with prefetch of IO_DEPTH";
    "IO_DEPTH", Int(0, 1000), "0", "effective_io_concurrency with READ_MODE=batched; 0 is WORK_UNIT, at most 32";
    "DRIVER_THREADS", Int(0, 1024), "0", "threads that drive the sessions of LOOP=client; 0: one each while there is a CPU for each, else one to two CPUs";
    "PG_SCHEMA", Text, "assay", "PostgreSQL schema of the data set; assay creates it and refuses one that is not its own";
    "COMMIT_MODE", Choice(&["default", "on", "off", "local", "remote_write", "remote_apply"]), "default", "synchronous_commit of the sessions; default: as the server has it";
    "PG_ANSWER_TIMEOUT", Seconds, "30", "seconds, 1 or more, an answer may take before the server is asked for a sign of life on a new connection; with one the wait goes on, without one the server is given up";
    "PG_GRACE", Seconds, "90", "seconds, 1 or more, a timed run waits after its end for operations under way: after two thirds they are cancelled, at the end given up and the run is invalid";
    "TABLESPACE", Text, "", "tablespace of the tables and indexes; unset: the database's own";
    "AUTOVACUUM", Bool, "FALSE", "leave autovacuum on for the tables of the data set";
    "CHECK", Choice(&["full", "sampled"]), "full", "what `assay check` reads: every row, or some pages of each table and the index";
    "PG_SET", Text, "", "settings of a temp:postgres server, NAME=VALUE, separated by semicolons (--pg-set, repeatable)";
    "PG_BIN", Text, "", "directories of postgres and initdb for temp:postgres, separated by colons; unset: where packages put them";
    "PG_DIR", Text, "", "where a temp:postgres server's private directory is made; unset: TMPDIR, else /var/tmp";
    "TRACK_IO_TIMING", Choice(&["auto", "on", "off"]), "auto", "track_io_timing in our own sessions: on if the role may (auto), on or no run (on), off";
    "EVICT", Text, "", "how to make physical reads physical, a list: buffers, pagecache, continuous[:MS], cgroup:SIZE, direct (--evict)";
};
