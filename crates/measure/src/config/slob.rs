//! The parameters of the SLOB workload and of a run as such. Engines bring their own tables.

use super::settings::{ParamDef, ParamKind};

const ANY: u64 = u64::MAX;

const fn def(
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
    def(name, ParamKind::Int { min, max }, default, &[], help)
}

const fn text(name: &'static str, help: &'static str) -> ParamDef {
    def(name, ParamKind::Text, "", &[], help)
}

/// Every parameter of the workload. Defaults are those of the SLOB 2.5.3 file,
/// except RUN_TIME, SCALE and the parameters SLOB does not have.
pub const PARAMS: &[ParamDef] = &[
    text(
        "TARGET",
        "what is tested: native:DIR, null:, ... (default native:./assay-data)",
    ),
    text(
        "ENGINE",
        "kind of target when TARGET is not given: native, null",
    ),
    text("LABEL", "a name for the run in reports"),
    int(
        "SCHEMAS",
        1,
        4096,
        "",
        "schemas used (-s); default: those loaded, else 4",
    ),
    int(
        "THREADS_PER_SCHEMA",
        1,
        65_536,
        "1",
        "sessions per schema (-t)",
    ),
    int(
        "SESSIONS",
        1,
        1 << 20,
        "",
        "sessions in all, dealt to the schemas in turn; default SCHEMAS x THREADS_PER_SCHEMA",
    ),
    int(
        "UPDATE_PCT",
        0,
        100,
        "10",
        "percent of operations that are updates",
    ),
    int(
        "SCAN_PCT",
        0,
        100,
        "0",
        "percent of selects that scan the scan table",
    ),
    def(
        "RUN_TIME",
        ParamKind::Seconds,
        "30",
        &[],
        "measured window, s (--time); at least 1",
    ),
    def(
        "WARMUP",
        ParamKind::Seconds,
        "",
        &[],
        "load before the window, s; default a tenth of RUN_TIME, at most 30",
    ),
    int(
        "WORK_LOOP",
        0,
        ANY,
        "0",
        "operations per session; 0 is a timed run",
    ),
    def(
        "MAX_RUN_TIME",
        ParamKind::Seconds,
        "",
        &[],
        "cap on a WORK_LOOP run, s; default none",
    ),
    int(
        "RATE",
        0,
        ANY,
        "0",
        "operations per second in all; 0 is a closed loop",
    ),
    def(
        "SCALE",
        ParamKind::Blocks,
        "256M",
        &[],
        "blocks (= rows) per schema, or a size",
    ),
    def(
        "SCAN_TABLE_SZ",
        ParamKind::Blocks,
        "1M",
        &["SHORT_TABLE_SZ"],
        "blocks of each schema's scan table, or a size; 0 for none",
    ),
    int(
        "BLOCK_SZ",
        4096,
        65_536,
        "8192",
        "bytes of a block; a power of two",
    ),
    int("WORK_UNIT", 1, 65_536, "64", "blocks per select"),
    int(
        "UPDATE_WORK_UNIT",
        1,
        65_536,
        "",
        "blocks per update; default WORK_UNIT",
    ),
    def(
        "REDO_STRESS",
        ParamKind::Choice(&["LITE", "HEAVY"]),
        "LITE",
        &[],
        "columns changed per row: LITE 256 bytes, HEAVY 2432 bytes",
    ),
    def(
        "SCAN_PARALLEL",
        ParamKind::Int { min: 1, max: 256 },
        "1",
        &["PARALLEL_DEGREE", "DEGREE"],
        "streams that read one scan table together (--parallel)",
    ),
    int("LOAD_PARALLEL_DEGREE", 1, 256, "2", "threads that load"),
    def(
        "OBFUSCATE_COLUMNS",
        ParamKind::Bool,
        "FALSE",
        &[],
        "random content instead of one repeated letter",
    ),
    int(
        "COMPRESS_PCT",
        0,
        100,
        "0",
        "compressible percent of each column with OBFUSCATE_COLUMNS",
    ),
    def(
        "UNIQUE_INDEX",
        ParamKind::Bool,
        "FALSE",
        &[],
        "unique index on the key (SQL targets)",
    ),
    def(
        "DO_HOTSPOT",
        ParamKind::Bool,
        "FALSE",
        &[],
        "whether HOTSPOT_FREQUENCY counts",
    ),
    def(
        "HOTSPOT_MB",
        ParamKind::Mebibytes,
        "8",
        &[],
        "hot window of each schema, MiB",
    ),
    def(
        "HOTSPOT_OFFSET_MB",
        ParamKind::Mebibytes,
        "16",
        &[],
        "start of the hot window, MiB",
    ),
    int(
        "HOTSPOT_FREQUENCY",
        0,
        ANY,
        "3",
        "one operation in this many goes to the hot window",
    ),
    def(
        "UPDATE_HOTSPOT",
        ParamKind::Bool,
        "FALSE",
        &["DO_UPDATE_HOTSPOT"],
        "confine updates to the first HOTSPOT_PCT percent of the keys",
    ),
    int(
        "HOTSPOT_PCT",
        1,
        100,
        "10",
        "percent of the keys open to updates with UPDATE_HOTSPOT",
    ),
    def(
        "HOT_SCHEMA_FREQUENCY",
        ParamKind::Int { min: 0, max: ANY },
        "0",
        &["SHARED_DATA_MODULUS"],
        "one operation in this many goes to schema 1; 0 is off",
    ),
    def(
        "THINK_TM_FREQUENCY",
        ParamKind::Int { min: 0, max: ANY },
        "0",
        &["THINK_TM_MODULUS", "THINK_TIME_FREQUENCY"],
        "one operation in this many is preceded by think time; 0 is off",
    ),
    def(
        "THINK_TM_MIN",
        ParamKind::Seconds,
        ".1",
        &[],
        "shortest think time, s",
    ),
    def(
        "THINK_TM_MAX",
        ParamKind::Seconds,
        ".5",
        &[],
        "longest think time, s",
    ),
    int(
        "COMMIT_EVERY",
        1,
        ANY,
        "1",
        "updates of a session per commit",
    ),
    int(
        "SEED",
        0,
        ANY,
        "",
        "master seed of all random streams; default random, printed",
    ),
    def(
        "MIX",
        ParamKind::Choice(&["exact", "bernoulli", "slob253"]),
        "exact",
        &[],
        "how update positions are chosen",
    ),
    def(
        "EDGE",
        ParamKind::Choice(&["clamp", "wrap"]),
        "clamp",
        &[],
        "ranges at the ends of the keys",
    ),
    def(
        "COMPAT",
        ParamKind::Choice(&["none", "slob253"]),
        "none",
        &[],
        "historical workload rules",
    ),
    def(
        "LOOP",
        ParamKind::Choice(&["client", "server"]),
        "client",
        &[],
        "where the session loop runs (SQL targets)",
    ),
    text("TRACE", "CSV file for a trace of every operation"),
    text(
        "EXTERNAL_SCRIPT",
        "executable called with pre, post and end: before the gate, after the last operation, after the reports",
    ),
    def(
        "EXTERNAL_SCRIPT_TIMEOUT",
        ParamKind::Seconds,
        "300",
        &[],
        "longest wait for each call of EXTERNAL_SCRIPT, s; then it is killed",
    ),
    def(
        "DATABASE_STATISTICS_TYPE",
        ParamKind::Choice(&["auto", "awr", "statspack", "native", "pgstat", "status"]),
        "auto",
        &[],
        "source of a database's own statistics",
    ),
    text(
        "ADMIN_SQLNET_SERVICE",
        "Oracle service of privileged sessions",
    ),
    text(
        "SQLNET_SERVICE_BASE",
        "Oracle service, or prefix of numbered services",
    ),
    int(
        "SQLNET_SERVICE_MAX",
        1,
        ANY,
        "",
        "numbered Oracle services used in rotation",
    ),
    text("DBA_PRIV_USER", "Oracle privileged account"),
    def(
        "SYSDBA_PASSWD",
        ParamKind::Secret,
        "",
        &[],
        "its password; never on the command line",
    ),
    def(
        "AWR_SRC",
        ParamKind::Choice(&["AWR_PDB", "AWR_ROOT"]),
        "",
        &[],
        "Oracle repository the AWR report comes from",
    ),
    int(
        "CONNECT_RATE",
        1,
        ANY,
        "50",
        "sessions opened per second (SQL targets)",
    ),
    text(
        "MYSQL_HOST",
        "MySQL port of SLOB 2.2; write TARGET=mysql://... instead",
    ),
    text(
        "MYSQL_PORT",
        "MySQL port of SLOB 2.2; write TARGET=mysql://... instead",
    ),
    def(
        "MYSQL_ROOT_PWD",
        ParamKind::Secret,
        "",
        &[],
        "MySQL port of SLOB 2.2",
    ),
    text(
        "INNODB_DATA_PATH",
        "MySQL port of SLOB 2.2: table data directory",
    ),
    text("DB2_HOST", "Db2 port of SLOB"),
    text("DB2_PORT", "Db2 port of SLOB"),
    text("DB2_USER", "Db2 port of SLOB"),
];

/// Parameters that only some targets heed: (name, target schemes, what to call them).
pub(super) const CONCERNS: &[(&str, &[&str], &str)] = &[
    (
        "DATABASE_STATISTICS_TYPE",
        &["oracle", "postgres", "mysql"],
        "a database server",
    ),
    ("ADMIN_SQLNET_SERVICE", &["oracle"], "Oracle"),
    ("SQLNET_SERVICE_BASE", &["oracle"], "Oracle"),
    ("SQLNET_SERVICE_MAX", &["oracle"], "Oracle"),
    ("DBA_PRIV_USER", &["oracle"], "Oracle"),
    ("SYSDBA_PASSWD", &["oracle"], "Oracle"),
    ("AWR_SRC", &["oracle"], "Oracle"),
    (
        "UNIQUE_INDEX",
        &["oracle", "postgres", "mysql"],
        "a database server",
    ),
    (
        "LOOP",
        &["oracle", "postgres", "mysql"],
        "a database server",
    ),
    (
        "CONNECT_RATE",
        &["oracle", "postgres", "mysql"],
        "a database server",
    ),
    ("MYSQL_HOST", &["mysql"], "MySQL"),
    ("MYSQL_PORT", &["mysql"], "MySQL"),
    ("MYSQL_ROOT_PWD", &["mysql"], "MySQL"),
    ("INNODB_DATA_PATH", &["mysql"], "MySQL"),
    ("DB2_HOST", &["db2"], "Db2"),
    ("DB2_PORT", &["db2"], "Db2"),
    ("DB2_USER", &["db2"], "Db2"),
];
