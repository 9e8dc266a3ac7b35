//! The parameters of every run, whatever its workload. Workloads and targets bring tables of their own.

use super::settings::Effect::Work;
use super::settings::ParamKind::{Int, Seconds, Text};
use super::settings::{Concern, ParamDef};

const ANY: u64 = u64::MAX;

/// Database servers.
pub const SERVERS: Concern = Concern("a database server");

/// Every parameter of a run as such.
pub const RUN_PARAMS: &[ParamDef] = crate::params! {
    "TARGET", Text, "", "target under test, as --target (default native:./assay-data)";
    "ENGINE", Text, "", "kind of target if TARGET is not given: native, null";
    "LABEL", Text, "", "a name for the run in lists, reports and comparisons", flag ["label"], of "run sweep recovery orders-run orders-sweep";
    "SESSIONS", Int(1, 1 << 20), "", "total number of sessions, assigned to the schemas in turn; default SCHEMAS x \
     THREADS_PER_SCHEMA, in order entry those of the mix", flag ["sessions", "users"], of "run orders-run";
    "RUN_TIME", Seconds, "30", "measured window: 30s, 5m, 1h; at least 1 s", flag ["time"], of "run sweep show orders-run orders-sweep";
    "WARMUP", Seconds, "", "load before the window; default a tenth of RUN_TIME, at most 30 s", flag ["warmup"], of "run sweep show orders-run orders-sweep";
    "UNTIL", Text, "", "ends the run when this figure is known to within a share of it: p99=\u{b1}5%; figures: rate, p50, p99 (any percentile), \
     read_us_p99, a rate by its key; exit code 4 where it cannot be known now", flag ["until"], of "run orders-run";
    "AT_MOST", Seconds, "", "longest time of a run with UNTIL, warm-up and all; default 10m", flag ["at-most"], of "run orders-run";
    "WORK_LOOP", Int(0, ANY), "0", "operations per session; 0: a timed run" => Work("");
    "MAX_RUN_TIME", Seconds, "", "cap on a WORK_LOOP run, s; default none";
    "RATE", Int(0, ANY), "0", "operations per second in total, on schedule: an open loop, whose response times count from the instant at which each is due; 0: each session goes on when it has its answer", flag ["rate"], of "orders-run orders-sweep" => Work("rate asked for");
    "LOAD_PARALLEL_DEGREE", Int(1, 256), "2", "threads that load data; in order entry by default as many as there are CPUs", flag ["threads"], of "orders-prepare";
    "SEED", Int(0, ANY), "", "master seed of all random streams; default random, printed", flag ["seed"], of "run sweep show prepare orders-run orders-sweep orders-prepare";
    "TRACE", Text, "", "CSV file for a trace of every operation";
    "EXTERNAL_SCRIPT", Text, "", "executable that assay calls with pre, post and end: before the gate, after the \
     last operation, after the reports";
    "EXTERNAL_SCRIPT_TIMEOUT", Seconds, "300", "time limit of each call of EXTERNAL_SCRIPT, s; assay then kills it";
    "CONNECT_RATE", Int(1, ANY), "50", "sessions opened per second (SQL targets)", only SERVERS;
};
