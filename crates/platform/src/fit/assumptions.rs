//! What a report cannot tell, what is assumed for it, and how much that matters; and what of an engineered storage cannot be
//! carried over.

use super::load::{
    ACTIVE, BLOCK, CACHE, CACHED, CPU, DatabaseLoad, ELAPSED, GETS, HIT, OTHER, READ_BYTES, READS, SCANNED,
    THROUGH_KERNEL, WRITE_BYTES, WRITES,
};
use super::offer::FEW;
use assay_measure::figures::figures;
use assay_measure::record::{Figure, Record};
use assay_measure::units::{duration, fixed, short, size, told};

/// What is assumed where the report tells nothing.
#[figures]
pub(crate) struct AssumptionRow {
    #[column("Not told by the report")]
    pub unknown: String,
    #[column("Assumed")]
    pub assumed: String,
    /// `much`, `some` or `little`, and why.
    #[column("How much it matters")]
    pub weight: String,
}

/// A cache that answers another part of the gets than the one there.
#[figures]
pub(crate) struct HitRatioRow {
    #[column("Hit ratio, %", 2)]
    pub hit_pct: Figure,
    #[column("Reads/s", 0)]
    pub reads_per_s: Figure,
    #[column("x the reads there", 2)]
    pub multiple: Figure,
    #[column("Here")]
    pub verdict: String,
}

/// How many of the reads there a better and a worse cache leave.
const LEFT: [f64; 6] = [0.5, 1.0, 1.25, 1.5, 2.0, 4.0];

/// How many reads are left where the cache here is better or worse; `held` is the largest multiple of the whole load that held.
pub(super) fn caches(load: &DatabaseLoad, held: &Figure) -> Vec<HitRatioRow> {
    let Some((hit, reads)) = load.value(HIT).filter(|hit| (0.0..100.0).contains(hit)).zip(load.value(READS)) else {
        return Vec::new();
    };
    let missed = 100.0 - hit;
    let row = |multiple: f64| {
        let verdict = match held.value() {
            None => "nothing was offered",
            // At so much of everything.
            Some(held) if multiple <= held => "holds",
            Some(_) => "not shown: more reads than were offered",
        };
        HitRatioRow {
            hit_pct: Figure::decimal(100.0 - multiple * missed),
            reads_per_s: Figure::decimal(reads * multiple),
            multiple: Figure::decimal(multiple),
            verdict: verdict.to_owned(),
        }
    };
    LEFT.into_iter().filter(|multiple| multiple * missed <= 100.0).map(row).collect()
}

/// Work that another storage may not do.
#[figures]
pub(crate) struct NotCarriedRow {
    #[column("There")]
    pub there: String,
    #[column("Amount")]
    pub amount: String,
    #[column("Here")]
    pub here: String,
}

pub(super) fn rows(load: &DatabaseLoad, record: &Record) -> Vec<AssumptionRow> {
    let row =
        |unknown: &str, assumed: String, weight: String| AssumptionRow { unknown: unknown.to_owned(), assumed, weight };
    let mut all = vec![
        row("bursts within the interval", "an even rate: the mean of the interval".to_owned(), bursts(load, record)),
        row(
            "locality: which blocks are read again",
            "blocks at random over all data".to_owned(),
            "much behind a storage with a cache of its own: there it answered reads that it cannot answer here"
                .to_owned(),
        ),
        row(
            "which reads the page cache of the kernel answered",
            "none: the device answers all".to_owned(),
            pages(load, record),
        ),
        row(
            "skew: hot files and rows",
            "none".to_owned(),
            "some: a hot device or a hot row is a limit that is not met here".to_owned(),
        ),
        row(
            "how many blocks a database here finds in its cache",
            format!("as many as there, so that the same reads are left{}", cache(load)),
            hit(load),
        ),
        row(
            "the work of the CPUs",
            format!("none is offered but that of the I/O{}", work(load)),
            "much: a box that holds the I/O may have too few CPUs; compare `assay cpu` on both".to_owned(),
        ),
        row("size of a write", "one block or a few adjacent ones".to_owned(), write_size(load)),
        row("other requests: archiver, backup, control files", "none are offered".to_owned(), others(load)),
    ];
    // A server that reads by itself, past the page cache, has none of them.
    all.retain(|row| !row.weight.is_empty());
    all
}

/// PostgreSQL counts what it asks of the kernel.
fn pages(load: &DatabaseLoad, record: &Record) -> String {
    match load.value(CACHED) {
        Some(pct) if pct < 1.0 => "little: hardly any there".to_owned(),
        Some(pct) => format!("much: {} % there", fixed(pct, 0)),
        None if record.run.engine != THROUGH_KERNEL => String::new(),
        None => {
            "much where the host there had memory to spare: the server counts what it asks of the kernel".to_owned()
        }
    }
}

/// Of a run with a series the busiest second is known.
fn bursts(load: &DatabaseLoad, record: &Record) -> String {
    let steps = record.series.metrics.get("read_io_requests_count_per_s");
    let inside = steps.map(|steps| record.series.in_window.iter().zip(steps));
    let inside = inside.into_iter().flatten().filter(|(is_inside, _)| **is_inside);
    let busiest = inside.filter_map(|(_, reads)| reads.value()).fold(0.0, f64::max);
    match load.value(READS).filter(|mean| *mean > 0.0 && busiest > 0.0) {
        Some(mean) => format!("little: its busiest second had {} x the mean of the reads", fixed(busiest / mean, 2)),
        None => {
            let interval = load.value(ELAPSED).map_or_else(String::new, |s| duration((s * 1e9) as u64));
            format!("much: a minute may have a multiple of the mean of {interval}, and the headroom has to hold it")
        }
    }
}

fn cache(load: &DatabaseLoad) -> String {
    load.value(CACHE).map_or_else(String::new, |bytes| format!(" (with a cache of {} there)", size(bytes as u64)))
}

fn hit(load: &DatabaseLoad) -> String {
    match load.value(HIT).filter(|pct| *pct < 100.0) {
        Some(pct) => format!(
            "much: at a hit ratio of {} % one point less is {} % more reads",
            fixed(pct, 2),
            short(100.0 / (100.0 - pct))
        ),
        None => "much: a smaller cache reads more".to_owned(),
    }
}

fn work(load: &DatabaseLoad) -> String {
    let told = [(GETS, "buffer gets/s"), (CPU, "s of CPU a second"), (ACTIVE, "sessions active")]
        .into_iter()
        .filter_map(|(figure, what)| Some(format!("{} {what}", short(load.value(figure)?))));
    let told: Vec<String> = told.collect();
    if told.is_empty() { String::new() } else { format!(" ({} there)", told.join(", ")) }
}

fn write_size(load: &DatabaseLoad) -> String {
    let bytes = load.value(WRITE_BYTES).zip(load.value(WRITES).filter(|writes| *writes > 0.0));
    match bytes.zip(load.value(BLOCK)) {
        Some(((bytes, writes), block)) => {
            let ratio = bytes / writes / block;
            let weight = if ratio > 2.0 { "some" } else { "little" };
            format!("{weight}: a write there was of {} blocks", fixed(ratio, 1))
        }
        None => "some: the bytes of the writes are not told".to_owned(),
    }
}

fn others(load: &DatabaseLoad) -> String {
    match load.value(OTHER) {
        Some(per_s) => {
            let all = load.ios_per_s().value().unwrap_or(0.0);
            let weight = if per_s > 0.1 * all { "some" } else { "little" };
            format!("{weight}: {} of them a second there", short(per_s))
        }
        None => "some: the report does not count them".to_owned(),
    }
}

/// Statistics of a storage that works for the database: the statistic, what it is, and what happens without it.
const CELLS: [(&str, &str, &str); 6] = [
    (
        "cell_physical_io_bytes_eligible_for_predicate_offload_bytes",
        "bytes of scans that the cells could filter",
        "every byte goes to the host: scans need this throughput",
    ),
    (
        "cell_physical_io_interconnect_bytes_returned_by_smart_scan_bytes",
        "bytes that smart scans returned",
        "the host reads what the cells filtered too",
    ),
    ("cell_physical_io_bytes_saved_by_storage_index_bytes", "bytes that storage indexes saved", "they are read"),
    ("cell_flash_cache_read_hits_count", "reads that the cells' flash cache answered", "the device answers them"),
    (
        "physical_read_requests_optimized_count",
        "reads that a cache below the database answered",
        "the device answers them",
    ),
    ("cell_writes_to_flash_cache_count", "writes into the cells' flash cache", "the device takes them"),
];

/// What an engineered storage did; none of another one.
pub(super) fn not_carried(load: &DatabaseLoad, record: &Record) -> Vec<NotCarriedRow> {
    let stats = &record.instance.stats;
    // A key has its unit twice or not at all by how its name ends.
    let total = |key: &str| {
        let bare = key.trim_end_matches("_bytes").trim_end_matches("_count");
        let row = stats.iter().find(|(name, _)| name.trim_end_matches("_bytes").trim_end_matches("_count") == bare)?;
        row.1.total.value().filter(|total| *total > 0.0)
    };
    let row = |there: &str, amount: String, here: &str| NotCarriedRow {
        there: there.to_owned(),
        amount,
        here: here.to_owned(),
    };
    let seconds = load.value(ELAPSED).unwrap_or(1.0);
    let counted = CELLS.iter().filter_map(|(key, there, here)| {
        let per_s = total(key)? / seconds;
        let amount = if key.ends_with("_bytes") { told(per_s, "bytes/s", 0) } else { format!("{}/s", short(per_s)) };
        Some(row(there, amount, here))
    });
    let events = record.instance.events.iter().filter(|event| {
        event.name.starts_with("cell ") && event.actor == "foreground" && event.count.value() != Some(0.0)
    });
    let waited = events.map(|event| {
        let rate =
            event.count.value().map_or_else(|| "n/a".to_owned(), |count| format!("{}/s", short(count / seconds)));
        let mean = event.us_avg.value().map_or_else(String::new, |us| format!(", {} each", told(us, "us", 0)));
        let here = if event.name.contains("smart") {
            "a scan on the host: all of its bytes are read"
        } else {
            "a read of this storage; the latency there is of the cells' flash where it answered"
        };
        row(&format!("event {}", event.name), rate + &mean, here)
    });
    let mut all: Vec<NotCarriedRow> = counted.chain(waited).collect();
    let few = FEW * load.value(READ_BYTES).unwrap_or(0.0);
    if !all.is_empty()
        && let Some(scanned) = load.value(SCANNED).filter(|scanned| *scanned > few)
    {
        all.push(row("scanned bytes", told(scanned, "bytes/s", 0), "offered as scans by the host, without an offload"));
    }
    all
}
