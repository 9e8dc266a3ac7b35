//! Verifying a data set on disk: the exact checks made before a load counts as done,
//! and, on request, every block.

use super::adopt::adopt;
use super::block_format::{self, Kind, Mismatch, word};
use super::bulk::{Job, Piece, Pieces, Span, Visit, Watch, transfer};
use super::claim;
use super::content::Content;
use super::control::Control;
use super::device;
use super::errors::engine_error;
use super::files::Files;
use super::layout::{Page, PageMap, UNDO_BASE};
use super::load_plan::{count, nothing_here, text};
use super::paths::Asked;
use super::recovery::ensure_clean;
use super::survey::{Found, survey};
use assay_measure::config::Settings;
use assay_measure::permutation::rank_correlation;
use assay_run::dataset::lines::decimal;
use assay_run::engine::{EngineError, Line};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// How much is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// The whole index, [`SAMPLES`] blocks of each schema's table and scan table.
    Sampled,
    /// Every block.
    Full,
}

/// Blocks of each table that a sampled check reads, at least.
const SAMPLES: u64 = 1000;

/// Largest rank correlation of key and position, from this many rows up: below, chance alone exceeds it.
const MOST_CORRELATION: f64 = 0.05;
const FEWEST_CORRELATED: u64 = 10_000;

/// Keys whose positions are correlated, at most, spread evenly.
const MOST_CORRELATED: u64 = 1 << 20;

/// Schemas that are probed with a range, at most, spread evenly.
const MOST_PROBED: u32 = 64;

/// Checks the data set at the paths asked for; one that was not closed is recovered first.
///
/// # Errors
/// `Damaged` with the first violation; `Unusable` when there is none, or it is loading or in use; as [`ensure_clean`].
pub(super) fn check(asked: &Asked, settings: &Settings, watch: Watch<'_>) -> Result<Vec<Line>, EngineError> {
    let places = match survey(asked, &[])? {
        Found::Ours(ours) => ours.places,
        Found::Nothing => return Err(nothing_here(asked.first())),
    };
    let dir = places.home();
    let mut lock = claim::take(dir)?;
    let _claims = device::claim(&places)?;
    let recovered = ensure_clean(&places, &mut lock, settings, watch)?;
    let control = lock.control();
    let files = Files::open(&places, control, true)?;
    let level = if settings.text("CHECK") == "sampled" { Level::Sampled } else { Level::Full };
    let threads = settings.int("LOAD_PARALLEL_DEGREE") as usize;
    let work_unit = settings.int("WORK_UNIT");
    let mut lines = recovered.map_or_else(Vec::new, |recovery| recovery.lines());
    lines.extend(verify(&files, control, level, threads, work_unit, watch)?);
    if adopt(&places, &mut lock)? {
        lines.push(text("adopted", "Where it is now", format!("written down: {}", places.display())));
    }
    Ok(lines)
}

/// Checks the blocks of schemas `1..=geometry.schemas`, whatever the control file's state.
///
/// # Errors
/// `Damaged` with the first violation; I/O errors, `Interrupted`.
pub(super) fn verify(
    files: &Files,
    control: &Control,
    level: Level,
    threads: usize,
    work_unit: u64,
    watch: Watch<'_>,
) -> Result<Vec<Line>, EngineError> {
    let begun = Instant::now();
    let checker = Checker::new(files, control, level, threads, watch);
    checker.index()?;
    checker.rows(Kind::Data)?;
    checker.rows(Kind::Scan)?;
    if level == Level::Full {
        checker.undo()?;
    }
    let correlation = checker.correlation()?;
    let probes = checker.probe(work_unit)?;
    let mut lines = checker.shape();
    lines.extend(checker.findings(correlation, probes, work_unit, begun.elapsed().as_secs_f64()));
    Ok(lines)
}

struct Checker<'a> {
    files: &'a Files,
    control: &'a Control,
    map: PageMap,
    content: Content,
    level: Level,
    threads: usize,
    watch: Watch<'a>,
    data_blocks: AtomicU64,
    scan_blocks: AtomicU64,
    index_blocks: AtomicU64,
    undo_blocks: AtomicU64,
    unsealed: AtomicU64,
}

impl<'a> Checker<'a> {
    fn new(files: &'a Files, control: &'a Control, level: Level, threads: usize, watch: Watch<'a>) -> Self {
        Self {
            files,
            control,
            map: control.geometry.map(),
            content: Content::new(control, 1..=control.geometry.schemas),
            level,
            threads,
            watch,
            data_blocks: AtomicU64::new(0),
            scan_blocks: AtomicU64::new(0),
            index_blocks: AtomicU64::new(0),
            undo_blocks: AtomicU64::new(0),
            unsealed: AtomicU64::new(0),
        }
    }

    fn schemas(&self) -> std::ops::RangeInclusive<u32> {
        1..=self.control.geometry.schemas
    }

    /// Reads every index node: each key of 1 to SCALE is in exactly one leaf entry, which
    /// leads to the page its permutation gives.
    fn index(&self) -> Result<(), EngineError> {
        let map = self.map;
        let nodes = map.index.total_nodes;
        let spans = self.schemas().map(move |schema| Span::Pages { first: map.index_page(schema, 0), count: nodes });
        let total = nodes * u64::from(self.control.geometry.schemas);
        let visit = |piece: &Piece, bytes: &[u8]| {
            self.each_block(piece, bytes, |page, block| {
                self.index_node(page, block)?;
                self.index_blocks.fetch_add(1, Ordering::Relaxed);
                Ok(())
            })
        };
        self.read("check index", spans, total, &visit)
    }

    fn index_node(&self, page: Page, block: &[u8]) -> Result<(), Mismatch> {
        let schema = self.map.schema_of(page);
        let node = page.0 - self.map.index_page(schema, 0).0;
        let index = &self.map.index;
        let first_key = index.first_key(node);
        self.header(block, Kind::Index, page, schema)?;
        block_format::verify_key(block, first_key)?;
        let (entries, level) = block_format::node(block);
        equal("level", u64::from(index.level_of(node)), u64::from(level))?;
        equal("entry count", index.entries(node), u64::from(entries))?;
        for i in 0..u64::from(entries) {
            let (key, child) = block_format::node_entry(block, i as usize);
            let (wanted, wanted_child) = self.content.index_entry(schema, node, first_key, i);
            equal("entry key", wanted, key)?;
            equal("entry page", wanted_child.0, child.0)?;
        }
        Ok(())
    }

    /// Reads blocks of every table: each holds the one row that belongs there.
    fn rows(&self, kind: Kind) -> Result<(), EngineError> {
        let map = self.map;
        let (phase, blocks, counter) = match kind {
            Kind::Scan => ("check scan", map.geometry.scan_blocks, &self.scan_blocks),
            _ => ("check rows", map.geometry.scale, &self.data_blocks),
        };
        if blocks == 0 {
            return Ok(());
        }
        let base = move |schema| match kind {
            Kind::Scan => map.scan_page(schema, 0).0,
            _ => map.data_page(schema, 0).0,
        };
        let visit = |piece: &Piece, bytes: &[u8]| {
            self.each_block(piece, bytes, |page, block| {
                let schema = self.map.schema_of(page);
                self.header(block, kind, page, schema)?;
                let key = self.content.row_key(kind, schema, page);
                block_format::verify_key(block, key)?;
                counter.fetch_add(1, Ordering::Relaxed);
                Ok(())
            })
        };
        let schemas = u64::from(self.control.geometry.schemas);
        if self.level == Level::Full || blocks <= SAMPLES {
            let spans = self.schemas().map(move |schema| Span::Pages { first: Page(base(schema)), count: blocks });
            return self.read(phase, spans, blocks * schemas, &visit);
        }
        // Evenly spread, at an offset that differs by schema: neighbours of a sample stay unread,
        // so a damaged stripe is found if it is longer than blocks / SAMPLES.
        let step = blocks / SAMPLES;
        let spans = self.schemas().flat_map(move |schema| {
            let offset = u64::from(schema).wrapping_mul(0x9e37_79b9) % step;
            (offset..blocks)
                .step_by(step as usize)
                .map(move |slot| Span::Pages { first: Page(base(schema) + slot), count: 1 })
        });
        self.read(phase, spans, blocks.div_ceil(step) * schemas, &visit)
    }

    /// Undo blocks were never used (zeroes) or are whole.
    fn undo(&self) -> Result<(), EngineError> {
        let spans = std::iter::once(Span::Pages { first: Page(UNDO_BASE), count: self.control.geometry.undo_blocks });
        let visit = |piece: &Piece, bytes: &[u8]| {
            self.each_block(piece, bytes, |page, block| {
                self.undo_blocks.fetch_add(1, Ordering::Relaxed);
                if block.iter().all(|byte| *byte == 0) {
                    return Ok(());
                }
                // Undo belongs to sessions, not to one schema: its schema word is the engine's own.
                let schema = block_format::get(block, word::SCHEMA) as u32;
                let header = block_format::magic_word(Kind::UndoHeader);
                let kind = if block_format::get(block, word::MAGIC) == header { Kind::UndoHeader } else { Kind::Undo };
                self.header(block, kind, page, schema)
            })
        };
        let total = self.control.geometry.undo_blocks;
        self.read("check undo", spans, total, &visit)
    }

    fn header(&self, block: &[u8], kind: Kind, page: Page, schema: u32) -> Result<(), Mismatch> {
        if !block_format::is_sealed(block) {
            self.unsealed.fetch_add(1, Ordering::Relaxed);
        }
        block_format::verify(block, kind, page, schema, self.control.data_set, true)?;
        block_format::verify_lsn(block, self.control.checkpoint_lsn)
    }

    fn read(
        &self,
        phase: &str,
        spans: impl Iterator<Item = Span> + Send,
        blocks: u64,
        visit: Visit<'_>,
    ) -> Result<(), EngineError> {
        let total = blocks * u64::from(self.control.geometry.block_bytes);
        let pieces = Pieces::new(self.map, spans);
        let job = Job::Read { visit };
        transfer(self.files, self.threads, pieces, job, (phase, total), self.watch)
    }

    fn each_block(
        &self,
        piece: &Piece,
        bytes: &[u8],
        judge: impl Fn(Page, &[u8]) -> Result<(), Mismatch>,
    ) -> Result<(), EngineError> {
        let first = piece.first.expect("only pages are checked");
        let blocks = bytes.chunks_exact(self.control.geometry.block_bytes as usize);
        for (page, block) in (first.0..).map(Page).zip(blocks) {
            judge(page, block).map_err(|mismatch| self.damaged(page, &mismatch))?;
        }
        Ok(())
    }

    /// The message about a bad block: file, place, what it should have been.
    fn damaged(&self, page: Page, mismatch: &Mismatch) -> EngineError {
        let (file, offset) = self.map.locate(page);
        let block_bytes = u64::from(self.control.geometry.block_bytes);
        let owner = if page.0 >= UNDO_BASE {
            format!("undo block {}", page.0 - UNDO_BASE)
        } else {
            let schema = self.map.schema_of(page);
            let within = page.0 - self.map.schema_base(schema);
            let scale = self.control.geometry.scale;
            let scan = self.map.scan_page(schema, 0).0 - self.map.schema_base(schema);
            if within < scale {
                format!("schema {schema}, data slot {within}")
            } else if within < scan {
                format!("schema {schema}, index node {}", within - scale)
            } else {
                format!("schema {schema}, scan row {}", within - scan + 1)
            }
        };
        EngineError::Damaged(format!(
            "{}, block {} (byte {offset}; {owner}): {mismatch}",
            self.files.path(file).display(),
            offset / block_bytes
        ))
    }

    /// The largest absolute rank correlation of key and position over all schemas. The index
    /// check has shown that positions on disk are the permutation's.
    fn correlation(&self) -> Result<f64, EngineError> {
        let scale = self.control.geometry.scale;
        let step = scale.div_ceil(MOST_CORRELATED / u64::from(self.control.geometry.schemas) + 1);
        let mut largest = 0f64;
        for schema in self.schemas() {
            let permutation = self.content.permutation(schema);
            let keys = (1..=scale).step_by(step as usize);
            let r = rank_correlation(keys.clone().map(|key| (key, permutation.slot_of_key(key))));
            // With fewer pairs, chance alone reaches the limit.
            if keys.count() as u64 >= FEWEST_CORRELATED && r.abs() >= MOST_CORRELATION {
                return Err(EngineError::Damaged(format!(
                    "schema {schema}: key and position correlate ({r:.4}, must stay below {MOST_CORRELATION})"
                )));
            }
            if r.abs() > largest.abs() {
                largest = r;
            }
        }
        Ok(largest)
    }

    /// Performs range selects by hand, through the index on disk: each must touch exactly
    /// WORK_UNIT different data blocks, every one with its key.
    fn probe(&self, work_unit: u64) -> Result<u32, EngineError> {
        let schemas = self.control.geometry.schemas;
        let scale = self.control.geometry.scale;
        let width = work_unit.min(scale);
        let probed = schemas.min(MOST_PROBED);
        for i in 0..probed {
            let schema = (u64::from(i) * u64::from(schemas) / u64::from(probed)) as u32 + 1;
            let starts = scale - width + 1;
            let first = u64::from(schema).wrapping_mul(0x9e37_79b9_7f4a_7c15) % starts + 1;
            let mut touched = BTreeSet::new();
            for (key, page) in self.range(schema, first, width)? {
                let block = self.block(page)?;
                self.header(&block, Kind::Data, page, schema)
                    .and_then(|()| block_format::verify_key(&block, key))
                    .map_err(|mismatch| self.damaged(page, &mismatch))?;
                touched.insert(page);
            }
            if touched.len() as u64 != width {
                return Err(EngineError::Damaged(format!(
                    "schema {schema}: a range of {width} keys from {first} touches {} data blocks, expected {width}",
                    touched.len()
                )));
            }
        }
        Ok(probed)
    }

    /// Keys and pages of a range, read from root to leaf and along the leaves.
    fn range(&self, schema: u32, first: u64, width: u64) -> Result<Vec<(u64, Page)>, EngineError> {
        let mut rows = Vec::new();
        let mut wanted = first;
        while wanted < first + width {
            let leaf = self.leaf(schema, wanted)?;
            let (entries, _) = block_format::node(&leaf);
            let keys = (0..entries as usize).map(|i| block_format::node_entry(&leaf, i));
            rows.extend(keys.filter(|(key, _)| (wanted..first + width).contains(key)));
            match rows.last() {
                Some((last, _)) if *last >= wanted => wanted = last + 1,
                _ => {
                    return Err(EngineError::Damaged(format!("schema {schema}: the index does not hold key {wanted}")));
                }
            }
        }
        Ok(rows)
    }

    /// The leaf that should hold `key`, found by descending from the root.
    fn leaf(&self, schema: u32, key: u64) -> Result<Vec<u8>, EngineError> {
        let mut block = self.block(self.map.index_page(schema, 0))?;
        for _ in 1..self.map.index.levels {
            let (entries, _) = block_format::node(&block);
            let child = (0..entries as usize)
                .map(|i| block_format::node_entry(&block, i))
                .take_while(|(first, _)| *first <= key)
                .last();
            let Some((_, page)) = child else { break };
            block = self.block(page)?;
        }
        Ok(block)
    }

    fn block(&self, page: Page) -> Result<Vec<u8>, EngineError> {
        let (file, offset) = self.map.locate(page);
        let mut block = vec![0; self.control.geometry.block_bytes as usize];
        let file = &self.files.list[usize::from(file)];
        file.read_at(offset, &mut block).map_err(engine_error)?;
        Ok(block)
    }

    /// What the tables are.
    fn shape(&self) -> Vec<Line> {
        let g = &self.control.geometry;
        let index = &self.map.index;
        let level = match self.level {
            Level::Full => "every block",
            Level::Sampled => "a sample of the rows, the whole index",
        };
        vec![
            text("checked", "Checked", level.to_owned()),
            count("checked_schemas", "Schemas checked", u64::from(g.schemas)),
            count("rows_per_schema", "Rows per schema, all in the index", g.scale),
            count("max_key", "Largest key of each schema", g.scale),
            count("data_blocks_per_schema", "Data blocks per schema, one row each", g.scale),
            count("index_blocks_per_schema", "Index blocks per schema", index.total_nodes),
            count("index_levels", "Index levels", u64::from(index.levels)),
            count("scan_blocks_per_schema", "Scan table blocks per schema", g.scan_blocks),
        ]
    }

    /// What was read and found right.
    fn findings(&self, correlation: f64, probes: u32, work_unit: u64, seconds: f64) -> Vec<Line> {
        let g = &self.control.geometry;
        let mut lines = Vec::new();
        let counters = [
            ("data_blocks_checked", "Correct data blocks", &self.data_blocks),
            ("index_blocks_checked", "Correct index blocks", &self.index_blocks),
            ("scan_blocks_checked", "Correct scan blocks", &self.scan_blocks),
            ("undo_blocks_checked", "Correct undo blocks", &self.undo_blocks),
        ];
        let mut blocks = 0;
        for (key, label, counter) in counters {
            let read = counter.load(Ordering::Relaxed);
            blocks += read;
            lines.push(count(key, label, read));
        }
        let unsealed = self.unsealed.load(Ordering::Relaxed);
        let read_mb = (blocks * u64::from(g.block_bytes)) as f64 / 1e6;
        let touched = work_unit.min(g.scale);
        lines.extend([
            count("blocks_without_checksum", "Of these, without a checksum", unsealed),
            decimal("rank_correlation", "Largest rank correlation of key and position", correlation),
            count("probes", "Range probes through the index", u64::from(probes)),
            count("probe_blocks", "Data blocks touched by each probe", touched),
            decimal("check_s", "Check time, s", seconds),
            decimal("check_mb_per_s", "Check rate, MB/s (10^6)", read_mb / seconds.max(1e-9)),
        ]);
        lines
    }
}

fn equal(field: &'static str, expected: u64, found: u64) -> Result<(), Mismatch> {
    if expected == found {
        return Ok(());
    }
    Err(Mismatch { field, expected: expected.to_string(), found: found.to_string() })
}
