//! Tables that have grown beyond their loaded size, and how that affects figures.
//!
//! A page has room for three versions of its row. If older versions cannot be removed yet, an update finds no room and
//! puts the new version on a page added at the end. The table then no longer has one row per page, and that key is on
//! another page than the load assigned.

use super::layout::{Names, literal, rows_name};
use super::marker::Marked;
use super::own::told;
use super::wire::Connection;
use assay_run::engine::{EngineError, Remarks};

/// Growth worth reporting: more than one page in a hundred, plus a few.
fn noteworthy(laid: u64) -> u64 {
    laid + laid / 100 + 16
}

/// Most pages that a table of a data set may have.
pub(super) fn most(laid: u64) -> u64 {
    laid + laid / 10 + 64
}

/// A table that has grown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grown {
    /// Name for SQL.
    table: String,
    pages: u64,
    laid: u64,
}

/// Finds the `cf1` tables that have grown.
///
/// # Errors
/// The server's.
pub(super) fn find(connection: &mut Connection, names: &Names, marked: &Marked) -> Result<Vec<Grown>, EngineError> {
    let marker = &marked.marker;
    let rows = connection
        .query(&format!(
            "select c.relname, pg_relation_size(c.oid) / {} from pg_class c join pg_namespace s on s.oid = c.relnamespace \
             where s.nspname = {} and c.relkind = 'r'",
            marker.block_bytes,
            literal(names.schema())
        ))
        .map_err(told("reading the size of the tables"))?;
    let pages = |name: &str| {
        let row = rows.rows.iter().find(|row| row[0].as_deref() == Some(name))?;
        row.get(1)?.as_deref()?.parse::<u64>().ok()
    };
    let grown = marked.loaded.iter().filter_map(|n| {
        let pages = pages(&rows_name(*n)).filter(|pages| *pages > noteworthy(marker.scale))?;
        Some(Grown { table: names.rows_table(*n), pages, laid: marker.scale })
    });
    Ok(grown.collect())
}

/// Whether a table has grown beyond what a data set may have.
pub(super) fn too_far(grown: &[Grown]) -> bool {
    grown.iter().any(|table| table.pages > most(table.laid))
}

/// What happened, why, and the command that helps; empty if nothing has grown.
pub(super) fn told_of(grown: &[Grown]) -> String {
    const NAMED: usize = 8;
    if grown.is_empty() {
        return String::new();
    }
    let named: Vec<String> = grown
        .iter()
        .take(NAMED)
        .map(|table| format!("{} has {} pages, but {} were loaded", table.table, table.pages, table.laid))
        .collect();
    let more = match grown.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; {more} more"),
    };
    let tables: Vec<&str> = grown.iter().map(|table| table.table.as_str()).collect();
    format!(
        "{}{more}: updates came faster than the server could remove old row versions, so it put new versions on new \
         pages. The cause is an open transaction, or many sessions on few rows. Rewrite the table with VACUUM (FULL, \
         FREEZE, ANALYZE) {}",
        named.join("; "),
        tables.join(", ")
    )
}

/// Growth during a run: cumulative counts of one server, from the first and the last reading.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Watched {
    first: Option<Sizes>,
    last: Option<Sizes>,
}

/// Sizes from one reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    /// Pages of all `cf1` tables.
    pub(super) pages: u64,
    /// Blocks the database requested and did not find in its buffers.
    pub(super) reads: u64,
}

/// Tolerances of identity S11: this part of the reads, plus so many bytes.
const ALLOWED_PART: f64 = 0.02;
const ALLOWED_BYTES: u64 = 16 << 20;

impl Watched {
    /// Notes the sizes of a reading.
    pub(super) fn note(&mut self, now: Option<Sizes>) {
        if let Some(now) = now {
            self.first.get_or_insert(now);
            self.last = Some(now);
        }
    }

    /// Remarks for the record; `version` is the server's.
    pub(super) fn remarks(&self, version: u32, block_bytes: u64) -> Remarks {
        let mut remarks = Remarks::default();
        let (Some(first), Some(last)) = (self.first, self.last) else {
            return remarks;
        };
        let grown = last.pages.saturating_sub(first.pages);
        if last.pages <= noteworthy(first.pages) {
            return remarks;
        }
        remarks.warnings.push(format!(
            "The tables of the data set grew from {} to {} pages during the run: updates found no room on the page \
             of their row, because the server could not yet remove old row versions (many sessions on few rows, or \
             an open transaction). Part of the work was adding pages, and the data set no longer has one row per \
             page: `assay check` names the command that rewrites it. Use a larger SCALE or fewer sessions.",
            first.pages, last.pages
        ));
        let reads = last.reads.saturating_sub(first.reads);
        let allowed = ALLOWED_PART * reads as f64 + (ALLOWED_BYTES / block_bytes.max(1)) as f64;
        if version < 16 && grown as f64 > allowed {
            remarks.invalid.push(format!(
                "{grown} of the {reads} blocks reported as physical reads are not reads: PostgreSQL before 16 counts \
                 a page that it adds to a table as read, and the tables grew by this number of pages (see S11); use \
                 a larger SCALE, fewer sessions, or PostgreSQL 16"
            ));
        }
        remarks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(pages: u64, reads: u64, version: u32) -> Remarks {
        let mut watched = Watched::default();
        watched.note(Some(Sizes { pages: 2000, reads: 10 }));
        watched.note(None);
        watched.note(Some(Sizes { pages, reads }));
        watched.remarks(version, 8192)
    }

    #[test]
    fn added_pages_void_the_reads_of_a_server_that_counts_them_so() {
        assert_eq!(after(2030, 10_000, 15), Remarks::default());
        let few = after(3000, 10_000, 15);
        assert_eq!((few.warnings.len(), few.invalid.len()), (1, 0));
        let most = after(10_000, 8_100, 15);
        assert!(most.invalid[0].starts_with("8000 of the 8090 blocks"), "{most:?}");
        let other = after(10_000, 8_100, 16);
        assert_eq!((other.warnings.len(), other.invalid.len()), (1, 0));
    }
}
