//! The same requests at each layer they pass: the session's wait, the ring, the device.
//!
//! The device is known by its means only, and only for all requests of a direction together. If a run mixes kinds of
//! requests in one direction, a separate row compares all of them with the device, and the single kinds say why they
//! are not compared.

use crate::deltas::disk_deltas;
use crate::deltas::{Deltas, NO_WINDOW, UNSUPPORTED, delta};
use assay_measure::counter_catalog::{self, Stat};
use assay_measure::histogram::Histogram;
use assay_measure::record::{Figure, Latency, LayerRow, RequestLayers, ScanInfo};
use assay_measure::snapshot::{Direction, DiskReading, OpReading, RequestReading, SCAN};

/// A kind stands for its direction if it makes up this share of the ring's requests.
const PURE_SHARE: f64 = 0.9;
/// Device bytes below this share of ours did not all come from, or go to, the device.
const CACHED_BELOW: f64 = 0.9;
/// Device bytes above this share of ours are somebody else's too.
const FOREIGN_ABOVE: f64 = 1.05;
/// Request counts that differ by more than this share are split or merged requests.
const SPLIT_BEYOND: f64 = 0.05;

const UNKNOWABLE: &str = "unknowable";
const MIXED: &str = "most of its requests in this direction are of other kinds";
const PAGE_CACHE: &str = "page cache";
const BATCHED: &str = "a wait is not one request";

/// Words for the requests of an event, and whether its waits are not one request each.
const KINDS: &[(&str, &str, bool)] = &[
    ("db file sequential read", "single-block read", false),
    ("db file parallel read", "batch of single-block reads", true),
    ("db file scattered read", "multi-block read into the cache", false),
    ("direct path read", "multi-block read past the cache", true),
    ("db file parallel write", "data write", true),
    ("log file parallel write", "log write", false),
];

/// The event of a session that waits for its commit; its requests are the log writes.
const COMMIT: &str = "log file sync";
const LOG_WRITE: &str = "log file parallel write";

/// What the devices under the data did in one direction.
struct Device {
    names: Vec<String>,
    requests: u64,
    bytes: u64,
    ns: u64,
    flushes: u64,
}

impl Device {
    fn new(disks: &[DiskReading], direction: Direction) -> Self {
        let mut device = Self { names: Vec::new(), requests: 0, bytes: 0, ns: 0, flushes: 0 };
        for disk in disks {
            device.names.push(disk.name.clone());
            let (requests, bytes, ns) = match direction {
                Direction::Read => (disk.reads, disk.read_bytes, disk.read_ns),
                // A durable write ends with its flush; the kernel times the two apart.
                Direction::Write => (disk.writes, disk.write_bytes, disk.write_ns + disk.flush_ns),
            };
            device.requests += requests;
            device.bytes += bytes;
            device.ns += ns;
            if direction == Direction::Write {
                device.flushes += disk.flushes;
            }
        }
        device
    }

    fn row(&self) -> LayerRow {
        let missing = |reason: &str| LayerRow {
            layer: "device".to_owned(),
            count: Figure::na(reason),
            moved_bytes: Figure::na(reason),
            latency: Latency::na(reason),
            source: "diskstats".to_owned(),
        };
        if self.names.is_empty() {
            return missing("no block device under the data");
        }
        LayerRow {
            count: self.requests.into(),
            moved_bytes: self.bytes.into(),
            latency: Latency {
                us_avg: Figure::decimal(self.ns as f64 / 1e3).per(self.requests as f64, "no requests"),
                ..Latency::na(UNKNOWABLE)
            },
            ..missing(UNKNOWABLE)
        }
    }
}

/// One direction of the ring's requests and the device below.
struct Way {
    direction: Direction,
    device: Device,
    /// Requests and bytes of the ring in this direction, all kinds.
    requests: u64,
    bytes: u64,
    all: Histogram,
}

impl Way {
    fn new(deltas: &Deltas<'_>, direction: Direction) -> Self {
        let disks = disk_deltas(&deltas.data.begin.host, &deltas.data.end.host);
        let mut way = Self {
            direction,
            device: Device::new(&disks, direction),
            requests: 0,
            bytes: 0,
            all: Histogram::default(),
        };
        for row in &deltas.window.stats.requests {
            if row.direction == direction {
                way.requests += row.completions.count();
                way.bytes += row.bytes;
                way.all.merge(&row.completions);
            }
        }
        way
    }

    fn name(&self) -> &'static str {
        match self.direction {
            Direction::Read => "read",
            Direction::Write => "write",
        }
    }

    /// Whether fewer bytes passed the device than the ring.
    fn is_cached(&self) -> bool {
        !self.device.names.is_empty() && (self.device.bytes as f64) < CACHED_BELOW * self.bytes as f64
    }

    /// What keeps the device's figures from being those of the ring's requests.
    fn notes(&self) -> Vec<String> {
        let device = &self.device;
        if device.names.is_empty() || self.requests == 0 {
            return Vec::new();
        }
        let mut notes = Vec::new();
        let (way, names) = (self.name(), device.names.join(", "));
        if device.names.len() > 1 {
            notes.push(format!("device figures are sums over {names}"));
        }
        let ratio = device.bytes as f64 / self.bytes.max(1) as f64;
        let counts = format!(
            "{names} completed {} {way} requests of {} bytes, the ring {} of {}",
            device.requests, device.bytes, self.requests, self.bytes
        );
        let split = device.requests as f64 / self.requests as f64 - 1.0;
        if self.is_cached() {
            notes.push(format!(
                "{counts}; the page cache answered the rest, or they ended outside the window, so the means do not \
                 cover the same requests"
            ));
        } else if ratio > FOREIGN_ABOVE {
            notes.push(format!(
                "{counts}; the file system or other programs also use the device, and its mean includes their requests"
            ));
        } else if split.abs() > SPLIT_BEYOND {
            notes.push(format!(
                "{counts}; the kernel split or merged requests, and the device's mean counts the device's own requests"
            ));
        }
        if device.flushes > 0 {
            notes.push(format!(
                "the device's mean includes the time of {} flushes, spread over all writes",
                device.flushes
            ));
        }
        notes
    }
}

/// Share of `upper` that `lower` does not explain, 0..100 (negative where it is longer).
fn lost_pct(upper: &Figure, lower: &Figure) -> Figure {
    match (upper.value(), lower.value()) {
        (Some(upper), Some(lower)) if upper > 0.0 => Figure::decimal(100.0 * (upper - lower) / upper),
        (Some(_), Some(_)) => Figure::na("no time counted"),
        (None, _) => upper.clone(),
        (_, None) => lower.clone(),
    }
}

fn engine_row(deltas: &Deltas<'_>, event: &str) -> LayerRow {
    let mut waits = Histogram::default();
    for reading in &deltas.window.stats.events {
        if reading.name == event {
            waits.merge(&reading.waits);
        }
    }
    LayerRow {
        layer: "engine".to_owned(),
        count: waits.count().into(),
        moved_bytes: Figure::na("counted below"),
        latency: Latency {
            // The event's row has it already.
            hist_ns: Histogram::default(),
            ..Latency::of(&waits)
        },
        source: "sysstat".to_owned(),
    }
}

fn ring_row(completions: &Histogram, bytes: u64) -> LayerRow {
    LayerRow {
        layer: "syscall".to_owned(),
        count: completions.count().into(),
        moved_bytes: bytes.into(),
        latency: Latency::of(completions),
        source: "ring".to_owned(),
    }
}

/// Puts the layers of one kind together and says what is lost between them.
fn compare(
    (event, request, is_batched): (&str, &str, bool),
    engine: LayerRow,
    syscall: LayerRow,
    way: &Way,
) -> RequestLayers {
    let mut device = way.device.row();
    let share = syscall.count.value().unwrap_or(0.0) / way.requests.max(1) as f64;
    if share < PURE_SHARE {
        device.latency = Latency::na(MIXED);
    }
    let mean = |row: &LayerRow| row.latency.us_avg.clone();
    let below = if way.is_cached() { Figure::na(PAGE_CACHE) } else { mean(&device) };
    let above = if is_batched { &syscall } else { &engine };
    RequestLayers {
        request: request.to_owned(),
        event: event.to_owned(),
        direction: way.name().to_owned(),
        is_batched,
        lost_above_syscall_pct: if is_batched {
            Figure::na(BATCHED)
        } else {
            lost_pct(&mean(&engine), &mean(&syscall))
        },
        lost_above_device_pct: lost_pct(&mean(&syscall), &below),
        lost_total_pct: lost_pct(&mean(above), &below),
        notes: if share < PURE_SHARE { Vec::new() } else { way.notes() },
        engine,
        syscall,
        device,
    }
}

/// "Latency by layer" of the window; empty for engines whose requests are not theirs to time.
pub(super) fn layers(deltas: &Deltas<'_>) -> Vec<RequestLayers> {
    let ways = [Way::new(deltas, Direction::Read), Way::new(deltas, Direction::Write)];
    let mut rows = Vec::new();
    for way in &ways {
        let kinds: Vec<&RequestReading> = deltas
            .window
            .stats
            .requests
            .iter()
            .filter(|row| row.direction == way.direction && !row.completions.is_empty())
            .collect();
        for kind in &kinds {
            let named = KINDS.iter().find(|(event, ..)| *event == kind.event);
            let named = named.copied().unwrap_or((&kind.event, &kind.event, false));
            let ring = || ring_row(&kind.completions, kind.bytes);
            let mut row = compare(named, engine_row(deltas, &kind.event), ring(), way);
            explain_batches(&mut row, kind.completions.count());
            rows.push(row);
            let commits = engine_row(deltas, COMMIT);
            if kind.event == LOG_WRITE && commits.count != Figure::Count(0) {
                let mut row = compare((COMMIT, "commit", true), commits, ring(), way);
                row.notes.insert(
                    0,
                    "sessions share log writes, and a commit may first wait for the previous write".to_owned(),
                );
                rows.push(row);
            }
        }
        let is_pure = |kind: &&RequestReading| kind.completions.count() as f64 >= PURE_SHARE * way.requests as f64;
        if kinds.len() > 1 && !kinds.iter().any(is_pure) {
            rows.push(all_of(way));
        }
    }
    rows
}

/// All requests of a direction against the device: what a mixed run can say.
fn all_of(way: &Way) -> RequestLayers {
    let engine = LayerRow {
        layer: "engine".to_owned(),
        count: Figure::na("several events"),
        moved_bytes: Figure::na("counted below"),
        latency: Latency::na("several events"),
        source: "sysstat".to_owned(),
    };
    let request = match way.direction {
        Direction::Read => "all reads",
        Direction::Write => "all writes",
    };
    let mut row = compare(("", request, true), engine, ring_row(&way.all, way.bytes), way);
    row.lost_above_syscall_pct = Figure::na("several events");
    row
}

fn explain_batches(row: &mut RequestLayers, requests: u64) {
    let Some(waits) = row.engine.count.value().filter(|n| *n > 0.0) else {
        return;
    };
    let each = requests as f64 / waits;
    let text = match row.event.as_str() {
        "db file parallel read" | "db file parallel write" => {
            format!("a wait covers a batch of {each:.1} requests and ends with the last of them")
        }
        "direct path read" => format!(
            "{each:.1} requests per wait; blocks are read ahead, and a session waits only where no block was ready"
        ),
        _ => return,
    };
    row.notes.insert(0, text);
}

/// Of reads past the cache.
const NOT_APART: &str = "unknowable: this server does not count the reads of scans separately";

/// What scans delivered in the window.
pub(super) fn scan(deltas: &Deltas<'_>) -> ScanInfo {
    let w = &deltas.window;
    let rows = || w.stats.io.iter().filter(|io| io.function == "Direct Reads");
    let (requests, bytes) = rows()
        .try_fold((0, 0), |(n, bytes), io| {
            Some((n + io.small_read_requests + io.large_read_requests, bytes + io.read_bytes))
        })
        .unwrap_or((0, 0));
    if bytes == 0 && w.count(counter_catalog::TABLE_SCANS).unwrap_or(0) == 0 {
        return no_scan(&w.get(counter_catalog::TABLE_SCANS));
    }
    // A server that does not tell scans' reads apart read none past its buffers, for all that is known.
    let untold = || match rows().next() {
        None if deltas.is_server() => Some(NOT_APART.to_owned()),
        None => None,
        Some(row) => row.na.get("read_requests").cloned(),
    };
    let moved = match rows().next() {
        None if deltas.is_server() => Figure::na(NOT_APART),
        _ => Figure::Count(bytes),
    };
    let per_s = moved.per(w.elapsed_s, NO_WINDOW);
    let get = |stat: Stat| w.get(stat);
    let streams = deltas.setting("SCAN_PARALLEL").and_then(|n| n.parse().ok());
    ScanInfo {
        scans_count: get(counter_catalog::TABLE_SCANS),
        blocks_count: get(counter_catalog::SCAN_BLOCKS),
        direct_mb_per_s: per_s.scaled(1e-6),
        direct_mib_per_s: per_s.scaled(1.0 / 1_048_576.0),
        direct_requests_count: untold().map_or(Figure::Count(requests), Figure::Na),
        streams_count: streams.map_or_else(|| Figure::na(UNSUPPORTED), Figure::Count),
        cpu_per_gb_s: cpu_per_gb(deltas, bytes),
        direct_bytes: moved,
    }
}

/// CPU of the whole process over the bytes, where scans are all it did: ns per byte are s per GB.
fn cpu_per_gb(deltas: &Deltas<'_>, bytes: u64) -> Figure {
    let others = |op: &OpReading| op.kind != SCAN && !op.service.is_empty();
    if deltas.window.driver.ops.iter().any(others) {
        return Figure::na("other operations ran too");
    }
    let (from, to) = (&deltas.data.begin.host, &deltas.data.end.host);
    delta(from.process_cpu_ns, to.process_cpu_ns).per(bytes as f64, "no direct reads")
}

fn no_scan(scans: &Figure) -> ScanInfo {
    let reason = scans.reason().unwrap_or("no scans");
    let na = || Figure::na(reason);
    ScanInfo {
        scans_count: scans.clone(),
        blocks_count: na(),
        direct_bytes: na(),
        direct_mb_per_s: na(),
        direct_mib_per_s: na(),
        direct_requests_count: na(),
        streams_count: na(),
        cpu_per_gb_s: na(),
    }
}

#[cfg(test)]
mod tests;
