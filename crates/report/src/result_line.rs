//! The result of a run against a server in the words pgio's users know: one line with RIOPS
//! and CACHE_HITS/s, then the server's counters before and after.
//!
//! The figures are those of the measured window and of nothing else: the counters are read
//! at its two ends, while every session works, and the clock runs from one to the other.
//! A figure that is not known is empty, never 0.

use assay_measure::record::{Figure, Record, ServerInfo};
use assay_measure::units::fixed;

/// The lines of a record; `None` where the target is no server.
#[must_use]
pub fn render(record: &Record) -> Option<String> {
    let server = record.server.as_ref()?;
    Some(lines(record, server).join("\n") + "\n")
}

pub(crate) fn lines(record: &Record, server: &ServerInfo) -> Vec<String> {
    let mut lines = vec![line(record, server)];
    lines.push(format!(
        "{:<8} {:<12}  {:>18}  {:>18}  {:>18}  {:>18}  {:>18}",
        "", "datname", "blks_hit", "blks_read", "tup_returned", "tup_fetched", "tup_updated"
    ));
    for row in &server.rows {
        let name = &server.database;
        let cells = [
            &row.hits_blocks,
            &row.reads_blocks,
            &row.tuples_returned_count,
            &row.tuples_fetched_count,
            &row.tuples_updated_count,
        ]
        .map(|figure| format!("{:>18}", plain(figure)));
        lines.push(format!("{:<8} {name:<12}  {}", row.when, cells.join("  ")));
    }
    lines
}

fn line(record: &Record, server: &ServerInfo) -> String {
    format!(
        "DBNAME:  {}. {} schemas, {} threads(each). Run time: {} seconds. RIOPS >{}< CACHE_HITS/s >{}<",
        server.database,
        plain(&server.schemas_count),
        plain(&server.threads_per_schema_count),
        plain(&record.interval.elapsed_s),
        plain(&server.reads_blocks_per_s),
        plain(&server.cache_hits_blocks_per_s),
    )
}

/// A whole number without separators, for programs; empty where there is none. What is not
/// zero is not printed as zero.
fn plain(figure: &Figure) -> String {
    match figure.value() {
        Some(value) => fixed(value, 0).replace(',', ""),
        None => String::new(),
    }
}
