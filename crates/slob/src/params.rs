//! The parameters of the SLOB workload. A `slob.conf` may also set the parameters common to all runs; targets have
//! their own tables.

use assay_measure::config::Effect::Work;
use assay_measure::config::ParamKind::{Blocks, Bool, Choice, Int, Mebibytes, Seconds, Secret, Text};
use assay_measure::config::{Concern, ParamDef, RUN_PARAMS, SERVERS};
use assay_measure::params;

#[cfg(test)]
mod tests;

const ANY: u64 = u64::MAX;
/// Schemas a run may use, as in the original (`setup.sh` takes 1 to 4096).
pub const SCHEMAS_MAX: u64 = 4096;
/// Targets for which earlier versions of SLOB have parameters of their own; none is of Db2.
pub const ORACLE: Concern = Concern("Oracle");
/// As [`ORACLE`].
pub const MYSQL: Concern = Concern("MySQL");
const DB2: Concern = Concern("Db2");
/// Databases that perform SQL statements, whether a server does so or a library.
pub const SQL: Concern = Concern("a SQL database");

/// Every parameter of the workload. Defaults are those of the SLOB 2.5.3 file, except for SCALE and the parameters that
/// SLOB does not have.
pub const PARAMS: &[ParamDef] = params! {
    "SCHEMAS", Int(1, SCHEMAS_MAX), "", "schemas used (-s); default: those loaded, else 4";
    "THREADS_PER_SCHEMA", Int(1, 65_536), "1", "sessions per schema", flag ["threads", "t"], of "run show";
    "UPDATE_PCT", Int(0, 100), "10", "percent of operations that are updates" => Work("update share");
    "SCAN_PCT", Int(0, 100), "0", "percent of selects that scan the scan table" => Work("scan share");
    "SCALE", Blocks, "256M", "blocks (= rows) per schema, or a size";
    "SCAN_TABLE_SZ" = "SHORT_TABLE_SZ", Blocks, "1M", "blocks of each schema's scan table, or a size; 0 for none";
    "BLOCK_SZ", Int(4096, 65_536), "8192", "bytes of a block; a power of two" => Work("block size");
    "WORK_UNIT", Int(1, 65_536), "64", "blocks per select" => Work("");
    "UPDATE_WORK_UNIT", Int(1, 65_536), "", "blocks per update; default WORK_UNIT" => Work(""), idle with "UPDATE_PCT" = "0";
    "REDO_STRESS", Choice(&["LITE", "HEAVY"]), "LITE", "columns changed per row: LITE 256 bytes, HEAVY 2432 bytes" => Work(""), idle with "UPDATE_PCT" = "0";
    "SCAN_PARALLEL" = "PARALLEL_DEGREE" = "DEGREE", Int(1, 256), "1", "streams that read one scan table together", flag ["parallel"], of "run show" => Work("");
    "OBFUSCATE_COLUMNS", Bool, "FALSE", "random content instead of one repeated letter";
    "COMPRESS_PCT", Int(0, 100), "0", "compressible percent of each column with OBFUSCATE_COLUMNS" => Work("");
    "UNIQUE_INDEX", Bool, "FALSE", "unique index on the key (SQL targets)", only SQL;
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
    "MIX", Choice(&["exact", "bernoulli", "slob253"]), "exact", "how the positions of updates are chosen" => Work("");
    "EDGE", Choice(&["clamp", "wrap"]), "clamp", "key ranges at the ends of the table";
    "COMPAT", Choice(&["none", "slob253"]), "none", "workload rules of an earlier tool" => Work("");
    "LOOP", Choice(&["client", "server"]), "client", "where the session loop runs (SQL targets)", only SERVERS => Work("");
    "DATABASE_STATISTICS_TYPE", Choice(&["auto", "awr", "statspack", "native", "pgstat", "status"]), "auto", "source of a database's own statistics", only SERVERS;
    "ADMIN_SQLNET_SERVICE", Text, "", "Oracle service of privileged sessions", only ORACLE;
    "SQLNET_SERVICE_BASE", Text, "", "Oracle service, or prefix of numbered services", only ORACLE;
    "SQLNET_SERVICE_MAX", Int(1, ANY), "", "numbered Oracle services used in rotation", only ORACLE;
    "DBA_PRIV_USER", Text, "", "Oracle privileged account", only ORACLE;
    "SYSDBA_PASSWD", Secret, "", "password of that account; never on the command line", only ORACLE;
    "AWR_SRC", Choice(&["AWR_PDB", "AWR_ROOT"]), "", "Oracle repository the AWR report comes from", only ORACLE;
    "MYSQL_HOST", Text, "", "MySQL port of SLOB 2.2; use TARGET=mysql://... instead", only MYSQL;
    "MYSQL_PORT", Text, "", "MySQL port of SLOB 2.2; use TARGET=mysql://... instead", only MYSQL;
    "MYSQL_ROOT_PWD", Secret, "", "MySQL port of SLOB 2.2", only MYSQL;
    "INNODB_DATA_PATH", Text, "", "MySQL port of SLOB 2.2: table data directory", only MYSQL;
    "DB2_HOST", Text, "", "Db2 port of SLOB", only DB2;
    "DB2_PORT", Text, "", "Db2 port of SLOB", only DB2;
    "DB2_USER", Text, "", "Db2 port of SLOB", only DB2;
};

/// Whether a `slob.conf` may set a parameter of this name.
#[must_use]
pub fn is_known(name: &str) -> bool {
    RUN_PARAMS.iter().chain(PARAMS).any(|def| def.name == name)
}
