//! Names and statements of a data set in a database; no connection.
//!
//! InnoDB puts at least two rows on a page. So rows come in groups: a live row and pads without a key (one on pages of
//! 8 and 16 KiB, more on larger ones, since a row takes less than half a page and at most 16 KB). Their sizes make a
//! group fit on a page, but no further row of either size (slob-method 3.4). `pk` numbers all rows in insertion order.
//! The key `custid` is a permutation of the live rows and has its own index, so the rows of a range are on unrelated
//! pages.

use super::product::Product;
use assay_run::dataset::rows::{COLUMN_BYTES, COLUMNS};
use assay_run::engine::EngineError;
use assay_run::plan::RedoStress;

/// Names of the filler columns.
pub(super) fn column_names() -> impl Iterator<Item = String> {
    (2..2 + COLUMNS).map(|column| format!("c{column}"))
}

/// Numbers of the columns an update changes: the first and the last, or all. The server logs the old and new value of
/// each column, wherever it is in the row.
pub(super) fn changed_columns(redo: RedoStress) -> &'static [u32] {
    match redo {
        RedoStress::Lite => &[2, 20],
        RedoStress::Heavy => &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20],
    }
}

/// Row sizes for a page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    /// Filler bytes of a live row.
    pub(super) live: usize,
    /// Filler bytes of a pad.
    pub(super) pad: usize,
    /// Rows in a group: the live one and its pads.
    pub(super) rows: u64,
}

/// Bytes of a page not available to rows: headers, infimum and supremum records, page directory, trailer.
const PAGE_OVERHEAD: usize = 200;
/// Bytes of a row besides its columns and filler: header, lengths, NULL bits, transaction ID, roll pointer, `pk`, `custid`.
const ROW_OVERHEAD: usize = 48;

impl Sizes {
    /// Row sizes for pages of so many bytes.
    ///
    /// # Errors
    /// `Unusable`: two rows of SLOB do not fit, or a third would.
    pub(super) fn of_page(page_bytes: u64) -> Result<Self, EngineError> {
        let content = COLUMNS * COLUMN_BYTES;
        let room = |page: u64| page as usize - PAGE_OVERHEAD;
        match page_bytes {
            8192 | 16384 => {
                let room = room(page_bytes);
                // Slightly less than the longest row the server stores, which is half of a page.
                let row = room / 2 - ROW_OVERHEAD - room / 64;
                Ok(Self {
                    live: row - content,
                    // The pair leaves less room than a pad needs.
                    pad: room / 3 - ROW_OVERHEAD,
                    rows: 2,
                })
            }
            32768 | 65536 => {
                let rows = if page_bytes == 32768 { 3 } else { 5 };
                // If rows are inserted in order, the server leaves a sixteenth of a page free once it has two rows.
                let room = room(page_bytes) - page_bytes as usize / 16;
                let row = room / rows - ROW_OVERHEAD - room / 128;
                Ok(Self { live: row - content, pad: row, rows: rows as u64 })
            }
            _ => Err(EngineError::Unusable(format!(
                "innodb_page_size is {page_bytes}: assay puts one row on a page of 8192, 16384, 32768 or 65536 bytes. \
                 A SLOB row has {content} bytes, and InnoDB splits rows of half a page or more"
            ))),
        }
    }
}

/// `cf1_<n>`: the rows.
pub(super) fn rows_table(n: u32) -> String {
    format!("cf1_{n}")
}

/// `cf2_<n>`: the scan table.
pub(super) fn scan_table(n: u32) -> String {
    format!("cf2_{n}")
}

/// Name of the index in every `cf1`.
pub(super) const INDEX: &str = "i_custid";

/// Creates `cf1` or `cf2`, without the index on the key.
pub(super) fn create_table(product: Product, table: &str, sizes: Sizes) -> String {
    let columns: String = column_names().map(|name| format!(", {name} char({COLUMN_BYTES})")).collect();
    format!(
        "create table {table} (pk bigint not null primary key, custid bigint{columns}, filler varchar({}) not null) \
         engine=InnoDB row_format=dynamic {} character set latin1 collate latin1_bin \
         stats_persistent=1 stats_auto_recalc=0 comment='data set of assay'",
        sizes.live.max(sizes.pad),
        product.plain_rows()
    )
}

/// Creates the index on the key.
pub(super) fn create_index(n: u32, unique: bool) -> String {
    let unique = if unique { "unique " } else { "" };
    format!("create {unique}index {INDEX} on {} (custid)", rows_table(n))
}

/// Quotes a text value for SQL, independent of `sql_mode`.
pub(super) fn literal(text: &str) -> String {
    let hex: String = text.bytes().map(|byte| format!("{byte:02X}")).collect();
    if text.is_empty() { "''".to_owned() } else { format!("x'{hex}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slob_34_a_group_fits_a_page_and_one_more_row_does_not() {
        // What the server stores of a row at most.
        const ROW_MAX: usize = 16_383;
        for page in [8192_u64, 16384, 32768, 65536] {
            let sizes = Sizes::of_page(page).unwrap();
            let (live, pad) = (sizes.live + COLUMNS * COLUMN_BYTES + ROW_OVERHEAD, sizes.pad + ROW_OVERHEAD);
            let room = page as usize - PAGE_OVERHEAD;
            assert!(live < room / 2 && live < ROW_MAX, "{page}: {live}");
            let pads = sizes.rows as usize - 1;
            let reserve = if sizes.rows > 2 { page as usize / 16 } else { 0 };
            assert!(live + pads * pad + reserve <= room, "{page}: {live} {pad}");
            // Rows are never larger than assumed, but may be a little smaller.
            let more = sizes.rows as usize + 1;
            assert!(live + (pads + 1) * pad > room + more * ROW_OVERHEAD, "{page}: {live} {pad}");
        }
        let text = Sizes::of_page(4096).unwrap_err().to_string();
        assert!(text.contains("4096") && text.contains("2432"), "{text}");
    }
}
