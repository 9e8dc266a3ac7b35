//! The PostgreSQL target's own parameters; the workload's are in `assay_measure::config`.

use assay_measure::config::{ParamDef, ParamKind};

const fn param(
    name: &'static str,
    kind: ParamKind,
    default: &'static str,
    help: &'static str,
) -> ParamDef {
    ParamDef {
        name,
        kind,
        default,
        aliases: &[],
        help,
    }
}

/// Every parameter of the PostgreSQL target.
pub(super) const PARAMS: &[ParamDef] = &[
    param(
        "READ_MODE",
        ParamKind::Choice(&["single", "batched"]),
        "single",
        "single: index scan, one block at a time; batched: bitmap heap scan with prefetch of IO_DEPTH",
    ),
    param(
        "IO_DEPTH",
        ParamKind::Int { min: 0, max: 1000 },
        "0",
        "effective_io_concurrency with READ_MODE=batched; 0 is WORK_UNIT, at most 32",
    ),
    param(
        "DRIVER_THREADS",
        ParamKind::Int { min: 0, max: 1024 },
        "0",
        "threads that drive the sessions of LOOP=client; 0: one each while there is a CPU for each, else one to two CPUs",
    ),
    param(
        "PG_SCHEMA",
        ParamKind::Text,
        "assay",
        "PostgreSQL schema of the data set; assay creates it and refuses one that is not its own",
    ),
    param(
        "COMMIT_MODE",
        ParamKind::Choice(&[
            "default",
            "on",
            "off",
            "local",
            "remote_write",
            "remote_apply",
        ]),
        "default",
        "synchronous_commit of the sessions; default: as the server has it",
    ),
    param(
        "PG_ANSWER_TIMEOUT",
        ParamKind::Seconds,
        "30",
        "seconds, 1 or more, an answer may take before the server is asked for a sign of life on a new connection; with one the wait goes on, without one the server is given up",
    ),
    param(
        "PG_GRACE",
        ParamKind::Seconds,
        "90",
        "seconds, 1 or more, a timed run waits after its end for operations under way: after two thirds they are cancelled, at the end given up and the run is invalid",
    ),
    param(
        "TABLESPACE",
        ParamKind::Text,
        "",
        "tablespace of the tables and indexes; unset: the database's own",
    ),
    param(
        "AUTOVACUUM",
        ParamKind::Bool,
        "FALSE",
        "leave autovacuum on for the tables of the data set",
    ),
    param(
        "CHECK",
        ParamKind::Choice(&["full", "sampled"]),
        "full",
        "what `assay check` reads: every row, or some pages of each table and the index",
    ),
    param(
        "PG_SET",
        ParamKind::Text,
        "",
        "settings of a temp:postgres server, NAME=VALUE, separated by semicolons (--pg-set, repeatable)",
    ),
    param(
        "PG_BIN",
        ParamKind::Text,
        "",
        "directories of postgres and initdb for temp:postgres, separated by colons; unset: where packages put them",
    ),
    param(
        "PG_DIR",
        ParamKind::Text,
        "",
        "where a temp:postgres server's private directory is made; unset: TMPDIR, else /var/tmp",
    ),
    param(
        "TRACK_IO_TIMING",
        ParamKind::Choice(&["auto", "on", "off"]),
        "auto",
        "track_io_timing in our own sessions: on if the role may (auto), on or no run (on), off",
    ),
    param(
        "EVICT",
        ParamKind::Text,
        "",
        "how to make physical reads physical, a list: buffers, pagecache, continuous[:MS], cgroup:SIZE, direct (--evict)",
    ),
];
