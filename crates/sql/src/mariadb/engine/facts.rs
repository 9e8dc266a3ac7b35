//! Facts of a run: the server and its settings.

use super::super::conn::{Connection, told};
use super::super::marker::Marked;
use super::super::product::Product;
use super::super::server::Server;
use assay_measure::facts;
use assay_measure::snapshot::Fact;
use assay_run::engine::EngineError;

/// Server settings that a reader of the report needs (slob-method 3.4), by the names of the facts. If there are two
/// names, later versions or MySQL use the second.
const SETTINGS: [(&str, &str); 16] = [
    ("server_buffer_pool_bytes", "innodb_buffer_pool_size"),
    ("server_flush_log_at_commit", "innodb_flush_log_at_trx_commit"),
    ("server_flush_method", "innodb_flush_method"),
    ("server_doublewrite", "innodb_doublewrite"),
    ("server_log_file_bytes", "innodb_log_file_size|innodb_redo_log_capacity"),
    ("server_adaptive_hash_index", "innodb_adaptive_hash_index"),
    ("server_change_buffering", "innodb_change_buffering"),
    ("server_read_ahead_threshold", "innodb_read_ahead_threshold"),
    ("server_io_capacity", "innodb_io_capacity"),
    ("server_isolation", "tx_isolation|transaction_isolation"),
    ("server_binary_log", "log_bin"),
    ("server_sync_binlog", "sync_binlog"),
    ("server_read_ahead_random", "innodb_random_read_ahead"),
    ("server_native_aio", "innodb_use_native_aio"),
    ("server_checksum", "innodb_checksum_algorithm"),
    ("server_performance_schema", "performance_schema"),
];

/// The settings a report shows first.
pub(crate) const TOLD: &str = "\
    server_version server_host database server_buffer_pool_bytes io_mode_achieved server_doublewrite \
    server_flush_log_at_commit server_log_file_bytes server_binary_log server_sync_binlog server_native_aio \
    server_io_capacity server_adaptive_hash_index server_change_buffering server_checksum server_isolation \
    server_performance_schema io_timing_achieved plan connection_encrypted";

/// Facts about the server, the data set and the sessions.
///
/// # Errors
/// The server does not answer.
pub(super) fn facts(
    control: &mut Connection,
    database: &str,
    server: &Server,
    marked: &Marked,
    (batched, in_server): (bool, bool),
) -> Result<Vec<Fact>, EngineError> {
    let text = |name: &str, value: String| Fact::new(name, value);
    let mut facts = vec![
        facts::ENGINE.fact(server.product.name()),
        facts::SERVER_TOLD.fact(TOLD),
        text("server_version", server.version.clone()),
        text("session_user", server.user.clone()),
        text("database", database.to_owned()),
        text("block_bytes", server.page_bytes.to_string()),
        text("cache_blocks", (server.pool_bytes / server.page_bytes.max(1)).to_string()),
        text("cache_parameter", "innodb_buffer_pool_size".to_owned()),
        text(facts::GETS.name, "each page on the path to a row, from the root of its index".to_owned()),
        text(
            "read_mode",
            if batched {
                "batched, in the order of pages (MRR)".to_owned()
            } else {
                "single, by the index (MRR off)".to_owned()
            },
        ),
        text(
            "loop",
            match (in_server, control.product) {
                (true, Product::MariaDb) => {
                    "server: BEGIN NOT ATOMIC performs slices of operations, each with its own commit"
                }
                (true, Product::MySql) => {
                    "server: a procedure of the run performs slices of operations, each with its own commit"
                }
                (false, _) => "client: every operation is a separate round trip",
            }
            .to_owned(),
        ),
        text("connection_encrypted", encrypted(control)),
        text("data_set", format!("{:016x}, created {}", marked.marker.data_set, marked.created)),
    ];
    facts.extend(settings(control)?);
    Ok(facts)
}

/// The settings, and what they mean for I/O and commits.
pub(crate) fn settings(control: &mut Connection) -> Result<Vec<Fact>, EngineError> {
    let text = |name: &str, value: String| Fact::new(name, value);
    let mut facts = Vec::new();
    for (fact, name) in SETTINGS {
        let names = name.replace('|', "', '");
        let asked = control
            .rows(&format!("show global variables where variable_name in ('{names}')"))
            .map_err(told("reading the server's settings"))?;
        let value = asked.into_iter().next().and_then(|row| row.into_iter().nth(1));
        let value = value.flatten().unwrap_or_default();
        if name == "innodb_flush_method" {
            let mode = if value.contains("O_DIRECT") {
                "direct"
            } else {
                facts.push(facts::DEVICE_READS.fact("innodb_flush_method=O_DIRECT"));
                "buffered (through the page cache)"
            };
            let mode = format!("{mode}, by innodb_flush_method={value}");
            facts.push(facts::IO_MODE_ACHIEVED.fact(mode));
        }
        if name == "innodb_flush_log_at_trx_commit" {
            facts.push(text("commit_mode", commits(&value).to_owned()));
        }
        facts.push(text(fact, if value.is_empty() { "n/a (absent in this version)".to_owned() } else { value }));
    }
    Ok(facts)
}

/// What a commit waits for.
fn commits(flush_log: &str) -> &'static str {
    match flush_log {
        "0" => "not written or synced at a commit, but once a second (innodb_flush_log_at_trx_commit=0)",
        "2" => "written at each commit, synced once a second (innodb_flush_log_at_trx_commit=2)",
        _ => "durable at each commit, with flushes shared by waiting commits (innodb_flush_log_at_trx_commit=1)",
    }
}

/// How the connection to the server is encrypted.
pub(crate) fn encrypted(control: &mut Connection) -> String {
    let status = control.rows("show session status like 'Ssl\\_%'");
    let value = |name: &str| {
        let rows = status.as_ref().ok()?;
        let row = rows.iter().find(|row| row[0].as_deref() == Some(name))?;
        row[1].clone().filter(|value| !value.is_empty())
    };
    match (value("Ssl_version"), value("Ssl_cipher")) {
        (Some(version), Some(cipher)) => format!("{version}, {cipher}"),
        _ => "no".to_owned(),
    }
}
