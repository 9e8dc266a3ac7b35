//! The operations of a run, kept to be looked at.

use assay_run::trace::{Row, Sink};
use std::io;
use std::sync::{Arc, Mutex};

/// Keeps all rows in memory.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<Vec<Row>>>);

impl Memory {
    /// An empty trace; clones share the rows.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// All rows by session, then number.
    ///
    /// # Panics
    /// Where a thread panicked while it wrote.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = self.0.lock().expect("no writer panicked").clone();
        rows.sort_unstable_by_key(|row| (row.session, row.i));
        rows
    }
}

impl Sink for Memory {
    fn rows(&mut self, rows: &[Row]) -> io::Result<()> {
        self.0.lock().expect("no writer panicked").extend_from_slice(rows);
        Ok(())
    }
}
