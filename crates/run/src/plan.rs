//! What will run: every option resolved, nothing optional left to decide.

use assay_measure::clock::Ns;

/// Historical rules on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compat {
    /// The exact rules.
    None,
    /// SLOB 2.5.3's: w-1 rows, its mix, counter rules and hot window.
    Slob253,
}

/// How update positions are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Exactly UPDATE_PCT of every 100 operations, at random positions.
    Exact,
    /// Independent draws.
    Bernoulli,
    /// SLOB 2.5.3's quota window.
    Slob253,
}

/// What happens at the ends of the key range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Ranges lie inside; keys near the ends are visited a little less.
    Clamp,
    /// Ranges wrap; every key is visited equally.
    Wrap,
}

/// The hot window, in keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotSpot {
    /// First key of the window is `offset_blocks + 1`.
    pub offset_blocks: u64,
    /// Keys in it.
    pub size_blocks: u64,
    /// One operation in this many.
    pub frequency: u64,
}

/// Think time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Think {
    /// One operation in this many.
    pub frequency: u64,
    /// Shortest pause, ns.
    pub min_ns: Ns,
    /// Longest pause, ns.
    pub max_ns: Ns,
}

/// Columns changed by an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedoStress {
    /// c2 and c20: 256 bytes a row.
    Lite,
    /// c2 to c20: 2,432 bytes a row.
    Heavy,
}

/// The SLOB workload with everything decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Schemas used, 1..=schemas.
    pub schemas: u32,
    /// Sessions per schema.
    pub threads_per_schema: u32,
    /// Keys used: 1..=scale.
    pub scale: u64,
    /// Blocks of the scan table.
    pub scan_blocks: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Percent of operations.
    pub update_pct: u32,
    /// Percent of selects.
    pub scan_pct: u32,
    /// Keys per select.
    pub work_unit: u32,
    /// Keys per update.
    pub update_work_unit: u32,
    /// Columns changed.
    pub redo_stress: RedoStress,
    /// Measured window, ns; 0 with `work_loop`.
    pub run_time_ns: Ns,
    /// Load before the window, ns; 0 with `work_loop`.
    pub warmup_ns: Ns,
    /// Operations per session; 0 is a timed run.
    pub work_loop: u64,
    /// Cap on a `work_loop` run.
    pub max_run_time_ns: Option<Ns>,
    /// Total operations per second; 0 is a closed loop.
    pub rate_per_s: u64,
    /// Hot spot, if on.
    pub hot_spot: Option<HotSpot>,
    /// One operation in this many goes to schema 1; 0 is off.
    pub hot_schema_frequency: u64,
    /// Think time, if on.
    pub think: Option<Think>,
    /// Commit after this many updates of a session.
    pub commit_every: u64,
    /// Mix rule.
    pub mix: Mix,
    /// Edge rule.
    pub edge: Edge,
    /// Historical rules.
    pub compat: Compat,
    /// Random content of changed columns.
    pub obfuscate: bool,
    /// Master seed.
    pub seed: u64,
    /// Differs for every run, also at equal seeds: part of every stamp.
    pub run_stamp: u32,
}

impl Plan {
    /// Sessions in all.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.schemas as usize * self.threads_per_schema as usize
    }
}
