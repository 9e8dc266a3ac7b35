//! Rows to load: as the text of a multi-row INSERT, or as lines that the server requests like a local file (LOAD DATA
//! LOCAL). The lines are built in memory; assay never reads a file, whatever name a server asks for.

use super::conn::{Connection, MyError};
use super::layout::{Sizes, column_names};
use super::marker::Marker;
use super::plan::{LoadPlan, Way};
use assay_run::dataset::rows::{COLUMN_BYTES, COLUMNS, FILL, Random};

/// Live rows in a statement, each with its pads.
const ROWS: u64 = 64;
/// Most bytes of a statement besides its rows, and of a row besides its columns and fillers.
const FRAME_BYTES: usize = 200;

/// How values, rows and NULL are written.
struct Style {
    row: &'static str,
    column: &'static str,
    quote: &'static str,
    null: &'static str,
    end: &'static str,
}

const INSERT: Style = Style { row: "(", column: ",", quote: "'", null: "null", end: ")," };
const LOCAL: Style = Style { row: "", column: "\t", quote: "", null: "\\N", end: "\n" };

/// A buffer for rows to load.
pub(super) struct Batch<'a> {
    marker: &'a Marker,
    sizes: Sizes,
    way: Way,
    rows: u64,
    schema: u32,
    /// Text of the next statement.
    text: Vec<u8>,
    column: Vec<u8>,
}

impl<'a> Batch<'a> {
    /// For the tables of SLOB schema `schema`.
    pub(super) fn new(plan: &'a LoadPlan, schema: u32) -> Self {
        let sizes = plan.sizes;
        let pads = (sizes.rows as usize - 1) * (sizes.pad + FRAME_BYTES);
        let each = COLUMNS * (COLUMN_BYTES + 3) + sizes.live + FRAME_BYTES + pads;
        // The server limits the size of a statement; it takes the lines of a file in pieces.
        let room = usize::try_from(plan.server.packet_bytes).unwrap_or(usize::MAX);
        let fit = (room.saturating_sub(FRAME_BYTES) / each).max(1) as u64;
        Self {
            marker: &plan.marker,
            sizes,
            way: plan.way,
            rows: match plan.way {
                Way::Insert => ROWS.min(fit),
                Way::Local => ROWS,
            },
            schema,
            text: Vec::new(),
            column: Vec::new(),
        }
    }

    /// Live rows in a statement.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Loads the groups of these slots.
    pub(super) fn put(
        &mut self,
        connection: &mut Connection,
        table: &str,
        slots: std::ops::Range<u64>,
        key_of_slot: &dyn Fn(u64) -> u64,
    ) -> Result<(), MyError> {
        let names: Vec<String> = column_names().collect();
        let columns = format!("(pk, custid, {}, filler)", names.join(", "));
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        if self.way == Way::Insert {
            text.extend(format!("insert into {table} {columns} values ").bytes());
        }
        for slot in slots {
            self.group(&mut text, slot, key_of_slot(slot));
        }
        let done = match self.way {
            Way::Insert => {
                // Remove the comma after the last row.
                text.pop();
                connection.run(&String::from_utf8_lossy(&text))
            }
            Way::Local => {
                let sql = format!("load data local infile 'assay' into table {table} character set latin1 {columns}");
                connection.load(&sql, &text)
            }
        };
        self.text = text;
        done
    }

    /// Appends a live row and its pads.
    fn group(&mut self, text: &mut Vec<u8>, slot: u64, key: u64) {
        let style = match self.way {
            Way::Insert => INSERT,
            Way::Local => LOCAL,
        };
        // A number of its own for each row, so that no two rows of a data set have common content.
        let number = (u64::from(self.schema) << 40) + slot;
        let mut random = Random::of_row(self.marker.data_set, number);
        let first = self.sizes.rows * slot + 1;
        text.extend(format!("{}{first}{}{key}", style.row, style.column).bytes());
        for _ in 0..COLUMNS {
            self.value(text, &style, &mut random, COLUMN_BYTES);
        }
        self.value(text, &style, &mut random, self.sizes.live);
        text.extend(style.end.bytes());
        for pad in 1..self.sizes.rows {
            text.extend(format!("{}{}", style.row, first + pad).bytes());
            for _ in 0..=COLUMNS {
                text.extend(style.column.bytes().chain(style.null.bytes()));
            }
            self.value(text, &style, &mut random, self.sizes.pad);
            text.extend(style.end.bytes());
        }
    }

    fn value(&mut self, text: &mut Vec<u8>, style: &Style, random: &mut Random, bytes: usize) {
        text.extend(style.column.bytes().chain(style.quote.bytes()));
        self.column.clear();
        self.column.resize(bytes, FILL);
        // Only letters and digits, in either case.
        if self.marker.obfuscate {
            random.fill_column(&mut self.column, self.marker.compress_pct);
        }
        text.extend_from_slice(&self.column);
        text.extend(style.quote.bytes());
    }
}
