//! The parameters of the SLOB workload and of a run as such. Engines bring their own tables.

use super::settings::Effect::Work;
use super::settings::ParamDef;
use super::settings::ParamKind::{Blocks, Bool, Choice, Int, Mebibytes, Seconds, Secret, Text};

const ANY: u64 = u64::MAX;

/// Every parameter of the workload. Defaults are those of the SLOB 2.5.3 file,
/// except RUN_TIME, SCALE and the parameters SLOB does not have.
pub const PARAMS: &[ParamDef] = crate::params! {
    "TARGET", Text, "", "target under test: native:DIR, null:, ... (default native:./assay-data)";
    "ENGINE", Text, "", "kind of target if TARGET is not given: native, null";
    "LABEL", Text, "", "a name for the run in lists, reports and comparisons", flag ["label"], of "run sweep recovery orders-run orders-sweep";
    "SCHEMAS", Int(1, 4096), "", "schemas used (-s); default: those loaded, else 4";
    "THREADS_PER_SCHEMA", Int(1, 65_536), "1", "sessions per schema", flag ["threads", "t"], of "run show";
    "SESSIONS", Int(1, 1 << 20), "", "total number of sessions, assigned to the schemas in turn; default SCHEMAS x \
     THREADS_PER_SCHEMA, in order entry those of the mix", flag ["sessions", "users"], of "run orders-run";
    "UPDATE_PCT", Int(0, 100), "10", "percent of operations that are updates" => Work("update share");
    "SCAN_PCT", Int(0, 100), "0", "percent of selects that scan the scan table" => Work("scan share");
    "RUN_TIME", Seconds, "30", "measured window: 30s, 5m, 1h; at least 1 s", flag ["time"], of "run sweep show orders-run orders-sweep";
    "WARMUP", Seconds, "", "load before the window; default a tenth of RUN_TIME, at most 30 s", flag ["warmup"], of "run sweep show orders-run orders-sweep";
    "WORK_LOOP", Int(0, ANY), "0", "operations per session; 0: a timed run" => Work("");
    "MAX_RUN_TIME", Seconds, "", "cap on a WORK_LOOP run, s; default none";
    "RATE", Int(0, ANY), "0", "operations per second in total, on schedule: an open loop, whose response times count from the instant at which each is due; 0: each session goes on when it has its answer", flag ["rate"], of "orders-run orders-sweep" => Work("rate asked for");
    "SCALE", Blocks, "256M", "blocks (= rows) per schema, or a size";
    "SCAN_TABLE_SZ" = "SHORT_TABLE_SZ", Blocks, "1M", "blocks of each schema's scan table, or a size; 0 for none";
    "BLOCK_SZ", Int(4096, 65_536), "8192", "bytes of a block; a power of two" => Work("block size");
    "WORK_UNIT", Int(1, 65_536), "64", "blocks per select" => Work("");
    "UPDATE_WORK_UNIT", Int(1, 65_536), "", "blocks per update; default WORK_UNIT" => Work(""), idle with "UPDATE_PCT" = "0";
    "REDO_STRESS", Choice(&["LITE", "HEAVY"]), "LITE", "columns changed per row: LITE 256 bytes, HEAVY 2432 bytes" => Work(""), idle with "UPDATE_PCT" = "0";
    "SCAN_PARALLEL" = "PARALLEL_DEGREE" = "DEGREE", Int(1, 256), "1", "streams that read one scan table together", flag ["parallel"], of "run show" => Work("");
    "LOAD_PARALLEL_DEGREE", Int(1, 256), "2", "threads that load data; in order entry by default as many as there are CPUs", flag ["threads"], of "orders-prepare";
    "OBFUSCATE_COLUMNS", Bool, "FALSE", "random content instead of one repeated letter";
    "COMPRESS_PCT", Int(0, 100), "0", "compressible percent of each column with OBFUSCATE_COLUMNS" => Work("");
    "UNIQUE_INDEX", Bool, "FALSE", "unique index on the key (SQL targets)";
    "DO_HOTSPOT", Bool, "FALSE", "whether HOTSPOT_FREQUENCY applies" => Work("hot spot");
    "HOTSPOT_MB", Mebibytes, "8", "hot window of each schema, MiB" => Work("hot spot"), idle with "DO_HOTSPOT" = "FALSE";
    "HOTSPOT_OFFSET_MB", Mebibytes, "16", "start of the hot window, MiB" => Work("hot spot"), idle with "DO_HOTSPOT" = "FALSE";
    "HOTSPOT_FREQUENCY", Int(0, ANY), "3", "one operation in N goes to the hot window" => Work("hot spot"), idle with "DO_HOTSPOT" = "FALSE";
    "UPDATE_HOTSPOT" = "DO_UPDATE_HOTSPOT", Bool, "FALSE", "confine updates to the first HOTSPOT_PCT percent of the keys" => Work("hot spot of updates"), idle with "UPDATE_PCT" = "0";
    "HOTSPOT_PCT", Int(1, 100), "10", "percent of the keys that updates may change with UPDATE_HOTSPOT" => Work("hot spot of updates"), idle with "UPDATE_HOTSPOT" = "FALSE";
    "HOT_SCHEMA_FREQUENCY" = "SHARED_DATA_MODULUS", Int(0, ANY), "0", "one operation in N goes to schema 1; 0 is off" => Work("");
    "THINK_TM_FREQUENCY" = "THINK_TM_MODULUS" = "THINK_TIME_FREQUENCY", Int(0, ANY), "0", "one operation in N is \
     preceded by think time; 0 is off" => Work("think time");
    "THINK_TM_MIN", Seconds, ".1", "shortest think time, s" => Work("think time"), idle with "THINK_TM_FREQUENCY" = "0";
    "THINK_TM_MAX", Seconds, ".5", "longest think time, s" => Work("think time"), idle with "THINK_TM_FREQUENCY" = "0";
    "COMMIT_EVERY", Int(1, ANY), "1", "updates of a session per commit" => Work("");
    "SEED", Int(0, ANY), "", "master seed of all random streams; default random, printed", flag ["seed"], of "run sweep show prepare orders-run orders-sweep orders-prepare";
    "MIX", Choice(&["exact", "bernoulli", "slob253"]), "exact", "how the positions of updates are chosen" => Work("");
    "EDGE", Choice(&["clamp", "wrap"]), "clamp", "key ranges at the ends of the table";
    "COMPAT", Choice(&["none", "slob253"]), "none", "workload rules of an earlier tool" => Work("");
    "LOOP", Choice(&["client", "server"]), "client", "where the session loop runs (SQL targets)" => Work("");
    "TRACE", Text, "", "CSV file for a trace of every operation";
    "EXTERNAL_SCRIPT", Text, "", "executable that assay calls with pre, post and end: before the gate, after the \
     last operation, after the reports";
    "EXTERNAL_SCRIPT_TIMEOUT", Seconds, "300", "time limit of each call of EXTERNAL_SCRIPT, s; assay then kills it";
    "DATABASE_STATISTICS_TYPE", Choice(&["auto", "awr", "statspack", "native", "pgstat", "status"]), "auto", "source of a database's own statistics";
    "ADMIN_SQLNET_SERVICE", Text, "", "Oracle service of privileged sessions";
    "SQLNET_SERVICE_BASE", Text, "", "Oracle service, or prefix of numbered services";
    "SQLNET_SERVICE_MAX", Int(1, ANY), "", "numbered Oracle services used in rotation";
    "DBA_PRIV_USER", Text, "", "Oracle privileged account";
    "SYSDBA_PASSWD", Secret, "", "password of that account; never on the command line";
    "AWR_SRC", Choice(&["AWR_PDB", "AWR_ROOT"]), "", "Oracle repository the AWR report comes from";
    "CONNECT_RATE", Int(1, ANY), "50", "sessions opened per second (SQL targets)";
    "MYSQL_HOST", Text, "", "MySQL port of SLOB 2.2; use TARGET=mysql://... instead";
    "MYSQL_PORT", Text, "", "MySQL port of SLOB 2.2; use TARGET=mysql://... instead";
    "MYSQL_ROOT_PWD", Secret, "", "MySQL port of SLOB 2.2";
    "INNODB_DATA_PATH", Text, "", "MySQL port of SLOB 2.2: table data directory";
    "DB2_HOST", Text, "", "Db2 port of SLOB";
    "DB2_PORT", Text, "", "Db2 port of SLOB";
    "DB2_USER", Text, "", "Db2 port of SLOB";
};

const SERVERS: &[&str] = &["oracle", "postgres", "mysql"];

/// Parameters that only some targets heed: (name, target schemes, what to call them).
pub(super) const CONCERNS: &[(&str, &[&str], &str)] = &[
    ("DATABASE_STATISTICS_TYPE", SERVERS, "a database server"),
    ("ADMIN_SQLNET_SERVICE", &["oracle"], "Oracle"),
    ("SQLNET_SERVICE_BASE", &["oracle"], "Oracle"),
    ("SQLNET_SERVICE_MAX", &["oracle"], "Oracle"),
    ("DBA_PRIV_USER", &["oracle"], "Oracle"),
    ("SYSDBA_PASSWD", &["oracle"], "Oracle"),
    ("AWR_SRC", &["oracle"], "Oracle"),
    ("UNIQUE_INDEX", SERVERS, "a database server"),
    ("LOOP", SERVERS, "a database server"),
    ("CONNECT_RATE", SERVERS, "a database server"),
    ("MYSQL_HOST", &["mysql"], "MySQL"),
    ("MYSQL_PORT", &["mysql"], "MySQL"),
    ("MYSQL_ROOT_PWD", &["mysql"], "MySQL"),
    ("INNODB_DATA_PATH", &["mysql"], "MySQL"),
    ("DB2_HOST", &["db2"], "Db2"),
    ("DB2_PORT", &["db2"], "Db2"),
    ("DB2_USER", &["db2"], "Db2"),
];
