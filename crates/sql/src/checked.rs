//! What verifying a data set reads and finds.

use assay_measure::config::Settings;
use assay_run::dataset::lines::{count, decimal, text};
use assay_run::engine::{EngineError, Line};

/// Where the rank correlation of key and place says something.
const SCATTER_ROWS: u64 = 10_000;
/// Most it may be.
const CORRELATION_MAX: f64 = 0.05;

/// What is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// Every row.
    Full,
    /// The definitions, the index, and what little more a database's folder says.
    Sampled,
}

impl Level {
    /// Of the parameter `CHECK`.
    pub(crate) fn asked(settings: &Settings) -> Self {
        match settings.text("CHECK") {
            "sampled" => Self::Sampled,
            _ => Self::Full,
        }
    }
}

/// What was found, over all schemas.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Findings {
    pub(crate) schemas: u64,
    pub(crate) rows: u64,
    /// Blocks that hold them, where they are known.
    pub(crate) blocks: Option<u64>,
    /// Blocks of the tables' segments, where there is such a thing.
    pub(crate) segment_blocks: Option<u64>,
    pub(crate) correlation_max: f64,
}

impl Findings {
    pub(crate) fn merge(&mut self, more: &Self) {
        let both = |mine: Option<u64>, more: Option<u64>| match self.schemas {
            0 => more,
            _ => mine.zip(more).map(|(a, b)| a + b),
        };
        self.blocks = both(self.blocks, more.blocks);
        self.segment_blocks = both(self.segment_blocks, more.segment_blocks);
        self.schemas += more.schemas;
        self.rows += more.rows;
        self.correlation_max = self.correlation_max.max(more.correlation_max);
    }

    /// For people and JSON: the key and the label of the blocks, and why they are not known.
    pub(crate) fn lines(&self, (key, label): (&'static str, &str), unknown: &str) -> Vec<Line> {
        let segments = |blocks| count("segment_blocks", "Blocks of the tables' segments", blocks);
        let mut lines = vec![
            count("verified_schemas", "SLOB schemas verified", self.schemas),
            count("verified_rows", "Rows verified", self.rows),
            match self.blocks {
                Some(blocks) => count(key, label, blocks),
                None => text(key, label, format!("n/a ({unknown})")),
            },
        ];
        lines.extend(self.segment_blocks.map(segments));
        lines.push(decimal("key_place_correlation", "Largest rank correlation of key and place", self.correlation_max));
        lines
    }
}

/// A table is not as it was loaded.
pub(crate) fn damaged(table: &str, what: &str) -> EngineError {
    EngineError::Damaged(format!(
        "{table}: {what}; the data set differs from what assay loaded: run `assay destroy`, then `assay prepare`"
    ))
}

/// # Errors
/// `Damaged`: in a table of so many rows, all of them read, keys follow their places.
pub(crate) fn refuse_order(table: &str, rows: u64, correlation: f64) -> Result<(), EngineError> {
    if rows < SCATTER_ROWS || correlation.abs() <= CORRELATION_MAX {
        return Ok(());
    }
    let what = format!("keys are in the order of their places: rank correlation {correlation:.3}");
    Err(damaged(table, &what))
}
