//! The load that a report tells: each figure with the figure of the report that it comes from, and by which formula. What the
//! report lacks is n/a with the reason, and nothing is put in its place.

use assay_measure::figures::figures;
use assay_measure::record::{EventRow, Figure, Record};
use assay_measure::units::{fixed, many};

/// A database's load, as a report tells it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DatabaseLoad {
    /// Where it comes from: the file, or the directory of the run.
    pub name: String,
    /// Which tool made the report, in words.
    pub tool: String,
    /// When the interval began, RFC 3339; empty: not told.
    pub begin: String,
    pub(super) rows: Vec<DerivedRow>,
}

/// The engine that reads through the kernel's page cache, always.
pub(super) const THROUGH_KERNEL: &str = "postgres";

/// The kind of the record of a server that was watched.
pub const WATCHED: &str = "watch";

/// A figure that was derived.
#[figures(group = Host, scope = "{figure}")]
pub(crate) struct DerivedRow {
    /// Its name, which ends in its unit.
    #[column("Figure")]
    pub figure: String,
    #[column("Derived", 2)]
    #[metric("derived from the report")]
    pub derived_value: Figure,
    /// What the report calls what it was derived from.
    #[column("Figure of the report")]
    pub from: String,
    #[column("Formula")]
    pub formula: String,
}

/// Reports of other tools over less tell nothing of an hour, s; of a run of ours that was measured in one state.
const LEAST_S: f64 = 60.0;
const LEAST_OWN_S: f64 = 5.0;
/// More than a day and its clock change: a mean of several days has no peak in it.
const MOST_S: f64 = 25.0 * 3600.0;
/// An interval with fewer requests and commits per second together is idle: a database's own housekeeping makes as many.
const IDLE_PER_S: f64 = 5.0;
/// A report of a database cannot have a block of another size.
const BLOCKS: [f64; 6] = [2048.0, 4096.0, 8192.0, 16_384.0, 32_768.0, 65_536.0];

/// No device answers in this time, us; the page cache of a kernel does.
const NO_DEVICE_US: f64 = 10.0;
/// From this part of the reads on, %, their mean latency is not a device's.
pub(super) const MOSTLY_PCT: f64 = 50.0;

const ABSENT: &str = "the report does not have it";

impl DatabaseLoad {
    /// The load of one record.
    ///
    /// # Errors
    /// Why no load follows from it, in one sentence without its name.
    pub fn of(name: &str, record: &Record) -> Result<Self, String> {
        let reading = Reading::of(record)?;
        let load = Self {
            name: name.to_owned(),
            tool: tool(record),
            begin: record.interval.begin.clone(),
            rows: ROWS.iter().map(|row| reading.row(row)).collect(),
        };
        if [READS, WRITES].iter().all(|name| load.value(name).is_none()) {
            return Err("tells neither its reads nor its writes; give the whole report, not a part of it".to_owned());
        }
        load.refuse_idle()?;
        Ok(load)
    }

    /// A figure by its name; n/a where there is none.
    pub(super) fn figure(&self, name: &str) -> Figure {
        let row = self.rows.iter().find(|row| row.figure == name);
        row.map_or_else(Figure::default, |row| row.derived_value.clone())
    }

    /// Its number, if it is known.
    pub(super) fn value(&self, name: &str) -> Option<f64> {
        self.figure(name).value()
    }

    /// Requests of the data's blocks per second: what the report with the peak is chosen by.
    pub(super) fn ios_per_s(&self) -> Figure {
        self.figure(READS).plus(&self.figure(WRITES))
    }

    /// What the plan of an offer needs and the report lacks, with the reasons.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let needed = [READS, WRITES, COMMITS, BLOCK];
        let lacking = |name: &&str| Some(format!("{name} ({})", self.figure(name).reason()?));
        needed.iter().filter_map(lacking).collect()
    }

    fn refuse_idle(&self) -> Result<(), String> {
        let all = [READS, WRITES, COMMITS].map(|name| self.value(name));
        // What is not known may be the load.
        let Some(sum) = all.iter().copied().collect::<Option<Vec<f64>>>().map(|all| all.iter().sum::<f64>()) else {
            return Ok(());
        };
        if sum >= IDLE_PER_S {
            return Ok(());
        }
        Err(format!(
            "is of an idle interval: {} requests and commits a second together, fewer than {IDLE_PER_S}; give the report of a busy hour",
            fixed(sum, 2)
        ))
    }
}

pub(super) const ELAPSED: &str = "interval_s";
pub(super) const BLOCK: &str = "block_bytes";
pub(super) const READS: &str = "reads_per_s";
pub(super) const READ_BYTES: &str = "read_bytes_per_s";
pub(super) const LARGE: &str = "large_reads_per_s";
pub(super) const SCANNED: &str = "scanned_bytes_per_s";
pub(super) const DIRECT: &str = "direct_read_bytes_per_s";
pub(super) const WRITES: &str = "writes_per_s";
pub(super) const WRITE_BYTES: &str = "written_bytes_per_s";
pub(super) const REDO: &str = "redo_bytes_per_s";
pub(super) const LOG_WRITES: &str = "log_writes_per_s";
pub(super) const COMMITS: &str = "commits_per_s";
pub(super) const CACHED: &str = "page_cache_pct";
pub(super) const READ_US: &str = "read_us";
pub(super) const SCAN_US: &str = "scan_read_us";
pub(super) const COMMIT_US: &str = "commit_us";
pub(super) const LOG_WRITE_US: &str = "log_write_us";
pub(super) const GETS: &str = "buffer_gets_per_s";
pub(super) const HIT: &str = "buffer_hit_pct";
pub(super) const CACHE: &str = "cache_bytes";
pub(super) const SESSIONS: &str = "sessions_count";
pub(super) const ACTIVE: &str = "active_sessions_count";
pub(super) const CPU: &str = "db_cpu_s_per_s";
pub(super) const OTHER: &str = "other_ios_per_s";

/// The names of the events that are one read of one block, and of larger reads.
const SINGLE: [&str; 2] = ["db file sequential read", "cell single block physical read"];
const MULTI: [&str; 4] =
    ["direct path read", "cell multiblock physical read", "db file scattered read", "cell smart table scan"];

/// The figure, of what it was derived, and by which formula.
type Found = (Figure, &'static str, &'static str);

/// The name of a figure, and how it is derived.
type RowOf = (&'static str, fn(&Reading<'_>) -> Found);

/// Every figure of a load, in the order of the page.
const ROWS: &[RowOf] = &[
    (ELAPSED, |of| (of.elapsed(), "Elapsed", "")),
    (BLOCK, |of| of.block()),
    (READS, |of| {
        first([
            (of.stat("physical_read_io_requests_count"), "physical read IO requests", "total / interval"),
            (of.load("Read IO requests"), "Load Profile: Read IO requests", "per second"),
            (of.profile("Database Requests", true), "IO Profile: Database Requests, read", "per second"),
            (of.load("Physical read (blocks)"), "Load Profile: Physical read (blocks)", AT_MOST),
        ])
    }),
    (READ_BYTES, |of| {
        first([
            (of.stat("physical_read_bytes"), "physical read bytes", "total / interval"),
            (of.load("Read IO (MB)").scaled(MIB), "Load Profile: Read IO (MB)", "x 2^20"),
            (of.in_blocks(of.load("Physical read (blocks)")), "Load Profile: Physical read (blocks)", "x block_bytes"),
        ])
    }),
    (LARGE, |of| {
        first([
            (
                of.stat("physical_read_total_multi_block_requests_count"),
                "physical read total multi block requests",
                "total / interval; Oracle counts those of 128 KiB and more",
            ),
            (of.stat("physical_read_requests_large_count"), "physical read requests large", "total / interval"),
        ])
    }),
    (SCANNED, |of| of.scanned()),
    (DIRECT, |of| {
        let blocks = of.stat("physical_reads_direct_blocks");
        (of.in_blocks(blocks), "physical reads direct", "total / interval x block_bytes; part of the scanned bytes")
    }),
    (WRITES, |of| {
        first([
            (of.stat("physical_write_io_requests_count"), "physical write IO requests", "total / interval"),
            (of.load("Write IO requests"), "Load Profile: Write IO requests", "per second"),
            (of.profile("Database Requests", false), "IO Profile: Database Requests, write", "per second"),
            (of.load("Physical write (blocks)"), "Load Profile: Physical write (blocks)", AT_MOST),
        ])
    }),
    (WRITE_BYTES, |of| {
        let blocks = of.in_blocks(of.load("Physical write (blocks)"));
        first([
            (of.stat("physical_write_bytes"), "physical write bytes", "total / interval"),
            (of.load("Write IO (MB)").scaled(MIB), "Load Profile: Write IO (MB)", "x 2^20"),
            (blocks, "Load Profile: Physical write (blocks)", "x block_bytes"),
        ])
    }),
    (REDO, |of| {
        first([
            (of.stat("redo_size_bytes"), "redo size", "total / interval"),
            (of.load("Redo size (bytes)"), "Load Profile: Redo size (bytes)", "per second"),
        ])
    }),
    (LOG_WRITES, |of| {
        first([
            (of.stat("redo_writes_count"), "redo writes", "total / interval"),
            (of.profile("Redo Requests", false), "IO Profile: Redo Requests, write", "per second"),
        ])
    }),
    (COMMITS, |of| {
        let ended = of.load("Transactions");
        let rolled_back = of.load("Rollbacks");
        let commits = match (ended.value(), rolled_back.value()) {
            (Some(ended), Some(back)) => Figure::decimal((ended - back).max(0.0)),
            _ => Figure::na(ABSENT),
        };
        first([
            (of.stat("user_commits_count"), "user commits", "total / interval"),
            (
                of.stat("server_write_transactions_count"),
                "server write transactions",
                "total / interval; those that only read write no log",
            ),
            (commits, "Load Profile: Transactions, Rollbacks", "Transactions - Rollbacks"),
        ])
    }),
    (CACHED, |of| of.page_cache()),
    (READ_US, |of| of.read()),
    (SCAN_US, |of| of.mean(&MULTI, "foreground")),
    (COMMIT_US, |of| of.mean(&["log file sync"], "foreground")),
    (LOG_WRITE_US, |of| of.mean(&["log file parallel write"], "background")),
    (GETS, |of| {
        first([
            (of.stat("session_logical_reads_blocks"), "session logical reads", "total / interval"),
            (of.load("Logical read (blocks)"), "Load Profile: Logical read (blocks)", "per second"),
        ])
    }),
    (HIT, |of| {
        let row = of.record.instance.efficiency.iter().find(|row| row.name == "Buffer Hit %");
        (known(row.map(|row| &row.value_pct)), "Instance Efficiency: Buffer Hit %", "")
    }),
    (CACHE, |of| {
        let blocks = of.fact("cache_blocks").zip(of.block().0.value()).map(|(blocks, bytes)| blocks * bytes);
        first([
            (Figure::known(of.fact("cache_bytes"), ABSENT), "Cache Sizes: Buffer Cache", ""),
            (Figure::known(blocks, ABSENT), "fact cache_blocks", "x block_bytes"),
        ])
    }),
    (SESSIONS, |of| {
        let interval = &of.record.interval;
        (known(Some(&interval.sessions_end_count)), "End Snap: Sessions", "")
    }),
    (ACTIVE, |of| {
        let time = of.record.instance.time_model.db_time_us.per(1e6 * of.elapsed_s, ABSENT);
        first([
            (known(Some(&time)), "DB Time", "DB Time / interval"),
            (of.stat("server_active_time_ns").scaled(1e-9), "server active time", "total / interval"),
        ])
    }),
    (CPU, |of| {
        let time = of.record.instance.time_model.db_cpu_us.per(1e6 * of.elapsed_s, ABSENT);
        (known(Some(&time)), "DB CPU", "DB CPU / interval")
    }),
    (OTHER, |of| {
        let all = of.stat("physical_read_total_io_requests_count");
        let all = all.plus(&of.stat("physical_write_total_io_requests_count"));
        let data = of.stat("physical_read_io_requests_count").plus(&of.stat("physical_write_io_requests_count"));
        let rest = all.value().zip(data.plus(&of.stat("redo_writes_count")).value());
        let rest = rest.map(|(all, own)| (all - own).max(0.0));
        (
            Figure::known(rest, ABSENT),
            "physical read/write total IO requests",
            "all requests - those of data blocks - redo writes: archiver, backup, control files",
        )
    }),
];

const MIB: f64 = 1_048_576.0;
const AT_MOST: &str = "per second, each block taken as a request: the most it can be";

/// The first that is known; else the first reason.
fn first<const N: usize>(found: [Found; N]) -> Found {
    let known = found.iter().find(|(figure, ..)| figure.value().is_some());
    known.unwrap_or(&found[0]).clone()
}

/// A figure, whose absence has a reason that can be read.
fn known(figure: Option<&Figure>) -> Figure {
    match figure {
        None => Figure::na(ABSENT),
        Some(figure) if figure.reason() == Some("absent") => Figure::na(ABSENT),
        Some(figure) => figure.clone(),
    }
}

/// A record that a load follows from.
struct Reading<'a> {
    record: &'a Record,
    elapsed_s: f64,
}

impl<'a> Reading<'a> {
    fn of(record: &'a Record) -> Result<Self, String> {
        let is_empty = record.instance.load_profile.is_empty() && record.instance.stats.is_empty();
        if is_empty {
            return Err(format!(
                "has no statistics of a database (its kind is \"{}\"); give an AWR or Statspack report, or a run of assay",
                record.kind
            ));
        }
        if record.run.verdict == "invalid" {
            return Err("is an invalid run; give a valid one".to_owned());
        }
        let elapsed = record.interval.elapsed_s.value().filter(|elapsed| *elapsed > 0.0);
        let Some(elapsed_s) = elapsed else {
            return Err("does not say how long its interval is; give the whole report, with its head".to_owned());
        };
        let least = if record.import.is_some() { LEAST_S } else { LEAST_OWN_S };
        if elapsed_s < least {
            return Err(format!(
                "is of {} s, less than {least} s: too short for a mean; give a report of an hour",
                fixed(elapsed_s, 0)
            ));
        }
        if elapsed_s > MOST_S {
            return Err(format!(
                "is of {}: a mean of several days does not show the peak; give a report of its busiest hour",
                many((elapsed_s / 86_400.0).round() as u64, "day")
            ));
        }
        Ok(Self { record, elapsed_s })
    }

    fn row(&self, (name, of): &RowOf) -> DerivedRow {
        let (derived_value, from, formula) = of(self);
        DerivedRow { figure: (*name).to_owned(), derived_value, from: from.to_owned(), formula: formula.to_owned() }
    }

    fn elapsed(&self) -> Figure {
        Figure::decimal(self.elapsed_s)
    }

    /// A counter per second: of its total, which is not rounded as its rate is.
    fn stat(&self, key: &str) -> Figure {
        let Some(row) = self.record.instance.stats.get(key) else { return Figure::na(ABSENT) };
        let rate = row.total.per(self.elapsed_s, ABSENT);
        if rate.value().is_some() { rate } else { known(Some(&row.per_s)) }
    }

    fn load(&self, name: &str) -> Figure {
        let row = self.record.instance.load_profile.iter().find(|row| row.name == name);
        known(row.map(|row| &row.per_s))
    }

    fn profile(&self, name: &str, is_read: bool) -> Figure {
        let row = self.record.instance.io_profile.iter().find(|row| row.name == name);
        known(row.map(|row| if is_read { &row.read_per_s } else { &row.write_per_s }))
    }

    fn fact(&self, name: &str) -> Option<f64> {
        let fact = self.record.plan.engine_facts.iter().find(|fact| fact.name == name)?;
        fact.value.parse().ok().filter(|value| *value > 0.0)
    }

    fn block(&self) -> Found {
        let total = |key: &str| self.record.instance.stats.get(key)?.total.value();
        let quotient = total("physical_read_bytes").zip(total("physical_reads_blocks"));
        let quotient = quotient.filter(|(_, blocks)| *blocks > 0.0).map(|(bytes, blocks)| bytes / blocks);
        // Two counters are read at two instants.
        let near = |bytes: f64| BLOCKS.into_iter().find(|block| (bytes / block - 1.0).abs() < 0.01);
        first([
            (Figure::known(self.fact("block_bytes"), ABSENT), "Std Block Size", ""),
            (
                Figure::known(quotient.and_then(near), ABSENT),
                "physical read bytes, physical reads",
                "bytes / blocks, to the next size of a block",
            ),
        ])
    }

    fn in_blocks(&self, blocks: Figure) -> Figure {
        match (blocks.value(), self.block().0.value()) {
            (Some(blocks), Some(bytes)) => Figure::decimal(blocks * bytes),
            _ => Figure::na(ABSENT),
        }
    }

    /// What was read beyond one block a request: multi-block and direct reads.
    fn scanned(&self) -> Found {
        let of = |name: &str| ROWS.iter().find(|(row, _)| *row == name).map(|(_, of)| of(self).0).unwrap_or_default();
        let large = of(LARGE).value().unwrap_or(0.0);
        let bytes = (of(READ_BYTES).value(), of(READS).value(), self.block().0.value());
        let (Some(bytes), Some(reads), Some(block)) = bytes else {
            return (Figure::na(ABSENT), "physical read bytes", "");
        };
        let scanned = (bytes - (reads - large).max(0.0) * block).max(0.0);
        (
            Figure::decimal(scanned),
            "physical read bytes, IO requests, multi block requests",
            "read_bytes_per_s - (reads_per_s - large_reads_per_s) x block_bytes",
        )
    }

    /// What part of the reads the kernel answered from its memory, where the server reads through it.
    fn page_cache(&self) -> Found {
        let sources = self.record.instance.reads.as_ref();
        let (mean, event, _) = self.mean(&SINGLE, "foreground");
        let told = mean.value().filter(|us| self.is_through_kernel() && *us < NO_DEVICE_US).map(|_| 100.0);
        first([
            (known(sources.map(|sources| &sources.page_cache_pct)), "Read Sources", "bytes that no device delivered"),
            (Figure::known(told, ABSENT), event, "all, where the mean read takes less than a device's 10 us"),
        ])
    }

    /// The mean read of one block, where a device answered most of them.
    fn read(&self) -> Found {
        let (mean, event, formula) = self.mean(&SINGLE, "foreground");
        match self.page_cache().0.value().filter(|pct| *pct >= MOSTLY_PCT) {
            Some(pct) => {
                let why = format!("the page cache answered {} % of the reads there, not a device", fixed(pct, 0));
                (Figure::na(&why), event, formula)
            }
            None if self.is_through_kernel() && self.page_cache().0.value().is_none() => {
                (Figure::na("what part of the reads the page cache answered there is not told"), event, formula)
            }
            None => (mean, event, formula),
        }
    }

    fn is_through_kernel(&self) -> bool {
        self.record.run.engine == THROUGH_KERNEL
    }

    /// The mean wait of the first of these events that occurred.
    fn mean(&self, names: &[&'static str], actor: &str) -> Found {
        let events = &self.record.instance.events;
        let is_it = |event: &&EventRow, name: &str| {
            event.name == name && event.actor == actor && event.count.value() != Some(0.0)
        };
        let found = names.iter().find_map(|name| Some((events.iter().find(|event| is_it(event, name))?, *name)));
        match found {
            Some((event, name)) if event.is_sampled() => (Figure::na("its waits were sampled, not counted"), name, ""),
            Some((event, name)) => (known(Some(&event.us_avg)), name, "mean wait"),
            None => (Figure::na("no wait of it is listed"), names[0], ""),
        }
    }
}

fn tool(record: &Record) -> String {
    if record.kind == WATCHED {
        let mut facts = record.plan.engine_facts.iter();
        let version = facts.find(|fact| fact.name == "server_version").map_or("", |fact| fact.value.as_str());
        // Behind it stand the names of who built it.
        let version = version.split(" (").next().unwrap_or_default();
        return format!("the statistics of {version}, watched");
    }
    let Some(import) = &record.import else { return format!("a run of assay on {}", record.run.engine) };
    let version = if import.tool_version.is_empty() { String::new() } else { format!(" {}", import.tool_version) };
    format!("{}{version}, {}", import.tool.to_uppercase(), import.format)
}
