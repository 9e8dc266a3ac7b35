//! The settings of the native target, or of a server, that make a load: searched for, not solved, since shares and rates are whole numbers.
//!
//! An update changes so many blocks that its commits and its writes come out together; selects read the rest. The cache is as
//! small as it can be, so that reads are physical, and holds a share of the data only where more blocks are written than read.
//! A server has its own cache, log and undo: the data are larger than the cache, and what it writes for a commit is its answer.

use super::load::{BLOCK, COMMIT_US, COMMITS, DatabaseLoad, LARGE, READ_US, READS, REDO, SCANNED, WRITES};
use assay_measure::figures::figures;
use assay_measure::units::{short, told};
use std::ops::RangeInclusive;

/// What an offer is made of, and what it should come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offer {
    /// Operations per second at 1 x.
    pub rate: u64,
    /// Percent of them that are updates, and of the selects that scan.
    pub update_pct: u64,
    pub(super) scan_pct: u64,
    /// Blocks per select and per update.
    pub work_unit: u64,
    pub(super) update_work_unit: u64,
    /// Whether an update changes whole rows (REDO_STRESS=HEAVY).
    pub(super) is_heavy: bool,
    /// Bytes of a block, and blocks of all schemas, of each scan table, and of the cache.
    pub block_bytes: u64,
    pub(super) data_blocks: u64,
    pub(super) scan_blocks: u64,
    pub(super) cache_blocks: u64,
    /// Sessions that the requests are spread over.
    pub sessions: u64,
    pub(super) redo_log_mb: u64,
    /// Block and cache are a server's.
    pub(super) is_server: bool,
    pub(super) expected: Rates,
    /// What cannot be met together with the rest, in sentences.
    pub(super) unmet: Vec<String>,
}

/// What a server has that an offer cannot choose.
#[derive(Clone, Copy, Debug)]
pub struct ServerMemory {
    /// Bytes of its blocks.
    pub block_bytes: u64,
    /// Bytes of its cache.
    pub cache_bytes: u64,
}

/// What a load comes to, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    pub(super) reads: f64,
    pub(super) writes: f64,
    pub(super) commits: f64,
    pub(super) redo: f64,
    pub(super) scanned: f64,
}

/// A setting of the offer.
#[figures]
pub(crate) struct OfferRow {
    #[column("Setting")]
    pub setting: String,
    #[column("Value")]
    pub text: String,
    #[column("Why")]
    pub why: String,
}

/// What a row's change costs on the native target: bytes of redo by row and by commit, and of undo by row. Measured on it; REDO_STRESS
/// LITE changes two columns and HEAVY all.
const REDO_BY_ROW: [f64; 2] = [797.0, 5149.0];
const REDO_BY_COMMIT: f64 = 1500.0;
const UNDO_BY_ROW: [f64; 2] = [416.0, 2600.0];
/// An operation of more blocks is no operation of a database.
const MOST_UNIT: u64 = 1024;
const MOST_SELECT: u64 = 256;
/// What a select usually reads, blocks; the nearest that fits is taken.
const USUAL_SELECT: f64 = 16.0;
/// Schemas of the data set.
pub(super) const SCHEMAS: u64 = 4;
/// A figure is met if it is within this part of what was derived.
pub(super) const MET: f64 = 0.1;
/// The cache fills in this time, s, within the warm-up.
const FILL_S: f64 = 10.0;
const LEAST_CACHE_BYTES: u64 = 8 << 20;
/// Scans below this part of the bytes are left out.
pub(super) const FEW: f64 = 0.02;
const SCAN_BYTES: f64 = (8 << 20) as f64;
const SCAN_BYTES_MOST: f64 = (512 << 20) as f64;
/// Dirty blocks are written at the latest after this time, s, so that writes follow the updates within the warm-up.
const CHECKPOINT_S: u64 = 5;

/// Settings of the native target, where a server has its own.
const OF_NATIVE: [&str; 5] = ["BLOCK_SZ", "CACHE_MB", "INDEX", "LOG_CHECKPOINT_TIMEOUT", "REDO_LOG_MB"];

impl Rates {
    fn of(load: &DatabaseLoad) -> Option<Self> {
        let of = |name: &str| load.value(name);
        Some(Self {
            // Large requests are the scans'.
            reads: (of(READS)? - of(LARGE).unwrap_or(0.0)).max(0.0),
            writes: of(WRITES)?,
            commits: of(COMMITS)?,
            redo: of(REDO).unwrap_or(0.0),
            scanned: of(SCANNED).unwrap_or(0.0),
        })
    }
}

impl Offer {
    /// What makes a load, with at most so many bytes of data, on the native target or on a server; `None` where a figure is
    /// missing that it needs, or a server's cache holds all of the data.
    #[must_use]
    pub fn of(load: &DatabaseLoad, most_bytes: u64, server: Option<ServerMemory>) -> Option<Self> {
        let asked = Rates::of(load)?;
        // The native target has no smaller block.
        let of_load = (load.value(BLOCK)? as u64).max(4096);
        let block_bytes = server.map_or(of_load, |server| server.block_bytes);
        let sessions = sessions(load, &asked);
        let mut offer = Self { block_bytes, sessions, is_server: server.is_some(), ..Self::default() };
        offer.is_heavy = heavier(&asked);
        offer.update_work_unit = offer.update_unit(&asked);
        let changed = asked.commits * offer.update_work_unit as f64;
        // More blocks are changed than read: so many of them are in the cache. Never all, for a miss has to be left.
        let hit = if changed > asked.reads { (1.0 - asked.reads / changed).min(0.98) } else { 0.0 };
        match server {
            None => offer.space(&asked, hit, most_bytes),
            Some(server) => offer.space_on(server, most_bytes)?,
        }
        offer.search(&asked);
        offer.scans(&asked, most_bytes);
        offer.expected = offer.rates();
        offer.unmet = offer.compared(&asked);
        let per_s = offer.expected.redo.max(asked.redo);
        offer.redo_log_mb = ((per_s * 30.0) as u64 >> 20).clamp(64, 1024).next_power_of_two();
        Some(offer)
    }

    /// Blocks of an update: what its commit has written.
    fn update_unit(&self, asked: &Rates) -> u64 {
        if asked.commits <= 0.0 {
            return 1;
        }
        let blocks = asked.writes / (asked.commits * self.writes_by_row());
        (blocks.round() as u64).clamp(1, MOST_UNIT)
    }

    fn writes_by_row(&self) -> f64 {
        1.0 + UNDO_BY_ROW[usize::from(self.is_heavy)] / self.block_bytes as f64
    }

    /// Data as large as there is room and time for, and the cache within it.
    fn space(&mut self, asked: &Rates, hit: f64, most_bytes: u64) {
        let most = (most_bytes / self.block_bytes).max(1000 * SCHEMAS);
        let least_cache = LEAST_CACHE_BYTES / self.block_bytes;
        if hit == 0.0 {
            (self.data_blocks, self.cache_blocks) = (most, least_cache.min(most / 4));
        } else {
            let fills = (asked.reads * FILL_S).max(least_cache as f64) / hit;
            self.data_blocks = (fills as u64).clamp(1000 * SCHEMAS, most);
            self.cache_blocks = (self.data_blocks as f64 * hit) as u64;
        }
        self.data_blocks -= self.data_blocks % SCHEMAS;
    }

    /// The data that a server's cache does not hold.
    fn space_on(&mut self, server: ServerMemory, most_bytes: u64) -> Option<()> {
        self.cache_blocks = server.cache_bytes / self.block_bytes;
        self.data_blocks = most_bytes / self.block_bytes;
        self.data_blocks -= self.data_blocks % SCHEMAS;
        (self.data_blocks > self.cache_blocks).then_some(())
    }

    /// The part of the blocks that are read from the device.
    fn missed(&self) -> f64 {
        1.0 - (self.cache_blocks as f64 / self.data_blocks as f64).min(1.0)
    }

    /// Rate, share of updates and blocks of a select, so that reads and commits are nearest to what is asked.
    fn search(&mut self, asked: &Rates) {
        let updates: RangeInclusive<u32> = if asked.commits > 0.0 { 1..=100 } else { 0..=0 };
        let selected = (asked.reads / self.missed() - asked.commits * self.update_work_unit as f64).max(0.0);
        let mut best = f64::INFINITY;
        for update_pct in updates {
            let rates = match update_pct {
                // Of selects alone the usual size gives the rate.
                0 => (selected / USUAL_SELECT).ceil().max(1.0),
                pct => (100.0 * asked.commits / f64::from(pct)).round().max(1.0),
            };
            let selects = rates * f64::from(100 - update_pct) / 100.0;
            let work_unit =
                if selects > 0.0 { (selected / selects).round().clamp(1.0, MOST_SELECT as f64) } else { 1.0 };
            let found = Self {
                rate: rates as u64,
                update_pct: u64::from(update_pct),
                work_unit: work_unit as u64,
                ..self.clone()
            };
            let had = found.rates();
            let off = |had: f64, asked: f64| if asked > 0.0 { (had / asked - 1.0).abs() } else { f64::from(had > 1.0) };
            let unusual = 0.004 * (work_unit / USUAL_SELECT).ln().abs();
            let score = off(had.reads, asked.reads).max(off(had.commits, asked.commits)) + unusual;
            if score < best {
                best = score;
                *self = found;
            }
        }
    }

    /// Scans of a table, in place of some selects.
    fn scans(&mut self, asked: &Rates, most_bytes: u64) {
        let selects = self.selects();
        let read = asked.reads * self.block_bytes as f64;
        if asked.scanned <= FEW * read || selects <= 0.0 {
            return;
        }
        let pct = (100.0 * asked.scanned / (selects * SCAN_BYTES)).round().clamp(1.0, 50.0);
        let most = SCAN_BYTES_MOST.min(most_bytes as f64 / SCHEMAS as f64);
        let bytes = (100.0 * asked.scanned / (selects * pct)).min(most);
        // A table that is small beside the cache would be read through it.
        let blocks = (bytes / self.block_bytes as f64).round() as u64;
        self.scan_blocks = blocks.max(self.cache_blocks / 16).max(16);
        self.scan_pct = pct as u64;
        // The selects that are left read what all did.
        let left = self.work_unit as f64 / (1.0 - pct / 100.0);
        self.work_unit = (left.round() as u64).clamp(1, MOST_SELECT);
    }

    fn selects(&self) -> f64 {
        self.rate as f64 * (100 - self.update_pct) as f64 / 100.0
    }

    /// What it comes to.
    fn rates(&self) -> Rates {
        let commits = self.rate as f64 * self.update_pct as f64 / 100.0;
        let changed = commits * self.update_work_unit as f64;
        let scans = self.selects() * self.scan_pct as f64 / 100.0;
        let selected = (self.selects() - scans) * self.work_unit as f64;
        Rates {
            reads: (changed + selected) * self.missed(),
            writes: changed * self.writes_by_row(),
            commits,
            redo: changed * REDO_BY_ROW[usize::from(self.is_heavy)] + commits * REDO_BY_COMMIT,
            scanned: scans * (self.scan_blocks * self.block_bytes) as f64,
        }
    }

    /// What is not met, in sentences.
    fn compared(&self, asked: &Rates) -> Vec<String> {
        let had = &self.expected;
        let few = FEW * asked.reads * self.block_bytes as f64;
        [
            ("reads/s", asked.reads, had.reads, 1.0, "a select reads a whole number of blocks"),
            (
                "writes/s",
                asked.writes,
                had.writes,
                1.0,
                "an update changes 1 to 1,024 blocks, each of which is written",
            ),
            ("commits/s", asked.commits, had.commits, 0.5, "the rate and the share of updates are whole numbers"),
            (
                "bytes/s of redo",
                asked.redo,
                had.redo,
                1000.0,
                "a changed block has the redo of one row, of 256 or of 2,432 bytes",
            ),
            ("bytes/s of scans", asked.scanned, had.scanned, few, "a scan takes the place of a select"),
        ]
        .into_iter()
        // A server writes what it writes.
        .filter(|(what, ..)| !self.is_server || !["writes/s", "bytes/s of redo"].contains(what))
        .filter(|(_, asked, had, least, _)| (had - asked).abs() > least.max(MET * asked))
        .map(|(what, asked, had, _, why)| {
            let amount = |value: f64| match what.strip_prefix("bytes/s") {
                Some(rest) => told(value, "bytes/s", 0) + rest,
                None => format!("{} {what}", short(value)),
            };
            format!(
                "{} asked, {} offered: with the rest as asked it cannot be met, for {why}",
                amount(asked),
                amount(had)
            )
        })
        .collect()
    }

    /// The settings of a run of this load, so many times, in so many seconds.
    #[must_use]
    pub fn settings(&self, factor: f64, run_s: u64) -> Vec<(&'static str, String)> {
        self.all(factor, run_s).into_iter().map(|(name, value, _)| (name, value)).collect()
    }

    pub(super) fn rows(&self) -> Vec<OfferRow> {
        let row = |(setting, text, why): (&str, String, &str)| OfferRow {
            setting: setting.to_owned(),
            text,
            why: why.to_owned(),
        };
        // The time is the user's.
        let all = self.all(1.0, 0).into_iter();
        all.filter(|(setting, ..)| !["RUN_TIME", "WARMUP"].contains(setting)).map(row).collect()
    }

    /// Seconds of load before each window: the cache fills and the first dirty blocks are written.
    #[must_use]
    pub fn warmup_s(&self) -> u64 {
        let fills = self.cache_blocks as f64 / self.expected.reads.max(1.0);
        (fills.ceil() as u64 + CHECKPOINT_S).clamp(2 * CHECKPOINT_S, 60)
    }

    /// Operations per second at a multiple.
    #[must_use]
    pub fn rate_at(&self, factor: f64) -> u64 {
        ((self.rate as f64 * factor).round() as u64).max(1)
    }

    fn all(&self, factor: f64, run_s: u64) -> Vec<(&'static str, String, &'static str)> {
        let mut all = self.of_native(factor, run_s);
        all.retain(|(setting, ..)| !self.is_server || !OF_NATIVE.contains(setting));
        all
    }

    fn of_native(&self, factor: f64, run_s: u64) -> Vec<(&'static str, String, &'static str)> {
        let mib = |blocks: u64| (blocks * self.block_bytes).div_ceil(1 << 20);
        vec![
            (
                "RATE",
                self.rate_at(factor).to_string(),
                "operations/s on schedule: commits_per_s over the share of updates",
            ),
            ("UPDATE_PCT", self.update_pct.to_string(), "an update is a commit"),
            ("UPDATE_WORK_UNIT", self.update_work_unit.to_string(), "writes_per_s over commits_per_s, less undo"),
            ("WORK_UNIT", self.work_unit.to_string(), "the reads that updates do not make"),
            (
                "REDO_STRESS",
                if self.is_heavy { "HEAVY" } else { "LITE" }.to_owned(),
                "the nearer to the redo of a write",
            ),
            ("SCAN_PCT", self.scan_pct.to_string(), "selects that scan, for scanned_bytes_per_s"),
            ("SCAN_TABLE_SZ", self.scan_blocks.to_string(), "blocks of a scan"),
            ("SCHEMAS", SCHEMAS.to_string(), ""),
            (
                "SCALE",
                (self.data_blocks / SCHEMAS).to_string(),
                "blocks of a schema: as much data as there is room for",
            ),
            ("BLOCK_SZ", self.block_bytes.to_string(), "block_bytes"),
            ("CACHE_MB", mib(self.cache_blocks).to_string(), "small, so that reads are physical"),
            ("INDEX", "computed".to_owned(), "no index block is read"),
            ("SESSIONS", self.sessions.to_string(), "8 for each request in flight there"),
            ("LOG_CHECKPOINT_TIMEOUT", CHECKPOINT_S.to_string(), "writes follow the updates"),
            ("REDO_LOG_MB", self.redo_log_mb.to_string(), "half a minute of redo"),
            ("RUN_TIME", format!("{run_s}s"), ""),
            ("WARMUP", format!("{}s", self.warmup_s()), ""),
        ]
    }

    /// Bytes that the data set takes, on the native target its logs and undo (256 MiB) included.
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        let blocks = self.data_blocks + self.scan_blocks * SCHEMAS;
        let beside = if self.is_server { 0 } else { (4 * self.redo_log_mb + 256) << 20 };
        blocks * self.block_bytes + beside
    }
}

/// Whether a write has the redo of a whole row rather than of two columns.
fn heavier(asked: &Rates) -> bool {
    let rows = asked.writes.max(asked.commits);
    let by_row = (asked.redo - asked.commits * REDO_BY_COMMIT) / rows.max(f64::MIN_POSITIVE);
    // Nearer by its ratio.
    rows > 0.0 && by_row > (REDO_BY_ROW[0] * REDO_BY_ROW[1]).sqrt()
}

/// Eight for each request that was in flight there (Little's law), so that no session is a queue; 1 ms where a mean is not known.
fn sessions(load: &DatabaseLoad, asked: &Rates) -> u64 {
    let s = |name: &str| load.value(name).unwrap_or(1000.0) / 1e6;
    let in_flight = asked.reads * s(READ_US) + asked.commits * s(COMMIT_US);
    ((8.0 * in_flight).ceil() as u64).clamp(32, 512).next_power_of_two()
}
