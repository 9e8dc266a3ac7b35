//! Cumulative readings and their differences.
//!
//! A snapshot holds what was counted since the instance opened; an interval is the difference of two. Sets can be
//! merged (threads, hosts) and subtracted (instants) by name, without knowledge of the engine that wrote them.

mod algebra;
mod json;

pub use crate::class::{SCAN, SELECT, UPDATE, WaitClass};
pub use algebra::merge_rows;

use crate::counter_catalog::Stat;
use crate::figures::figures;
use crate::histogram::Histogram;
use crate::history::ActivityHistory;
use crate::timeline::TimelineEvent;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Who waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    /// A session inside a call.
    Foreground,
    /// A writer, log writer or other helper.
    Background,
}

/// The idle event in which a session waits for its client: between operations at a fixed rate, and between slices of
/// operations that a server performs by itself.
pub const CLIENT_WAIT: &str = "SQL*Net message from client";

/// One event's cumulative waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventReading {
    /// Event name, e.g. `db file sequential read`.
    pub name: String,
    /// Wait class.
    pub class: WaitClass,
    /// Foreground or background.
    pub actor: Actor,
    /// Waits that ended by a timer.
    pub timeouts: u64,
    /// Every wait's duration.
    pub waits: Histogram,
}

/// An event of which the source keeps a count or a total time, but no single wait (a database server's views):
/// cumulative. It has no distribution, and the report says so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimedReading {
    /// Event name, e.g. `db file sequential read`.
    pub name: String,
    /// Wait class.
    pub class: WaitClass,
    /// Foreground or background.
    pub actor: Actor,
    /// Waits, or why they are not counted.
    pub waits: Reading,
    /// Their time, ns, or why it is not measured.
    pub wait_ns: Reading,
    /// Short key of where it was read: `pg_stat_io`, `pg_stat_database`, ...
    pub source: String,
}

/// Waits of an event by power-of-two bucket, as a server keeps them beside a total: cumulative, foreground and background
/// together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BucketReading {
    /// Event name, as in [`TimedReading::name`].
    pub name: String,
    /// Entry i counts waits of 2^(i-1) <= us < 2^i, as in `EventRow::hist_us`; always [`BUCKETS`] of them.
    pub waits: Vec<u64>,
    /// Short key of where it was read.
    pub source: String,
}

/// Buckets of a [`BucketReading`]: the last counts 2^32 us and more.
pub const BUCKETS: usize = 34;

/// One row of "IOStat by function and file type", cumulative.
#[figures]
pub struct IoReading {
    /// `Buffer Cache Reads`, `Direct Reads`, `DBWR`, `Direct Writes`, `LGWR`, `Others`.
    pub function: String,
    /// `Data File`, `Undo File`, `Log File`, `Control File`.
    pub file_type: String,
    /// Read requests below 128 KiB.
    pub small_read_requests: u64,
    /// Read requests of 128 KiB and more.
    pub large_read_requests: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Write requests below 128 KiB.
    pub small_write_requests: u64,
    /// Write requests of 128 KiB and more.
    pub large_write_requests: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Requests that were waited for one by one.
    pub waits: u64,
    /// Time of those waits, ns.
    pub wait_ns: u64,
    /// Columns that the source does not know, each with its reason; the fields above are then 0 and meaningless:
    /// `read_requests`, `read_bytes`, `write_requests`, `write_bytes`, `waits`, `wait_ns`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub na: BTreeMap<String, String>,
}

/// Reads and writes at one place of a target that consists of several, cumulative. Counted when a request completes;
/// the same requests as in [`IoReading`], divided by place.
#[figures]
pub struct PathReading {
    /// Directory or block device.
    pub path: String,
    /// `Data File`, `Undo File`, `Log File`, `Control File`.
    pub file_type: String,
    /// Kernel name of the whole disk below, as in [`DiskReading::name`]; empty if unknown.
    pub device: String,
    /// Read requests.
    pub read_requests: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Write requests.
    pub write_requests: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

/// Which way the bytes of a request went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the device.
    #[default]
    Read,
    /// To the device.
    Write,
}

/// Requests as the thread that issued them saw them (layer `syscall`), cumulative: from the call
/// that gave a request to the kernel to the call that took its completion.
#[figures]
pub struct RequestReading {
    /// The event whose waits these requests ended, e.g. `db file sequential read`.
    pub event: String,
    /// Reads or writes.
    pub direction: Direction,
    /// Bytes moved by the requests that succeeded.
    pub bytes: u64,
    /// Every successful request's time.
    pub completions: Histogram,
}

/// A counter's value, or why there is none. `Na` is never added or written as 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Observed.
    Count(u64),
    /// Not observed, with one reason of awr-statistics 1.4.
    Na(String),
}

/// Everything counted by one engine or one of its threads, cumulative since it opened.
#[figures]
pub struct StatSet {
    /// Counters by [`Stat::name`].
    pub counters: BTreeMap<String, Reading>,
    /// Events, unordered, unique by (name, actor).
    pub events: Vec<EventReading>,
    /// Events with totals alone, unique by (name, actor), none of them also in `events`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timed: Vec<TimedReading>,
    /// Buckets of events of [`StatSet::timed`], unique by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<BucketReading>,
    /// Where a counter was read (`pg_stat_io`, `proc`, ...), by its name, and where the rows of [`StatSet::io`]
    /// were, by `io`; what has no entry is the engine's own (`sysstat`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
    /// I/O by function and file type, unique by both.
    pub io: Vec<IoReading>,
    /// Completed requests by the path they went to, unique by path, file type and device. A target that cannot count
    /// its files' requests (a database server) leaves it empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathReading>,
    /// Requests at the layer below the waits, unique by event and direction. An engine that cannot time its requests (a
    /// database server) leaves it empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestReading>,
    /// Values that go up and down (dirty buffers, checkpoint age), by name with unit last.
    pub gauges: BTreeMap<String, u64>,
    /// Only in a difference: events and I/O rows that went backwards, which are
    /// left out of it and n/a (reset), not 0; see [`StatSet::difference`].
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub resets: BTreeSet<String>,
}

/// Why a snapshot was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// The gate opens.
    Gate,
    /// The measured window begins.
    Begin,
    /// A second has passed.
    Second,
    /// The measured window ends.
    End,
    /// Every session has stopped.
    Drained,
}

impl StatSet {
    /// Adds `n` to a counter.
    pub fn add(&mut self, stat: Stat, n: u64) {
        match self.counters.get_mut(stat.name) {
            Some(Reading::Count(count)) => *count = count.saturating_add(n),
            Some(Reading::Na(_)) => {}
            None => {
                self.counters.insert(stat.name.to_owned(), Reading::Count(n));
            }
        }
    }

    /// Sets a counter with its source.
    pub fn put(&mut self, stat: Stat, reading: Reading, source: &str) {
        self.counters.insert(stat.name.to_owned(), reading);
        self.sources.insert(stat.name.to_owned(), source.to_owned());
    }

    /// A counter's value; `None` if absent or n/a.
    #[must_use]
    pub fn get(&self, stat: Stat) -> Option<u64> {
        match self.counters.get(stat.name) {
            Some(Reading::Count(count)) => Some(*count),
            _ => None,
        }
    }
}

/// One kind of operation, cumulative since the gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpReading {
    /// The kind, by its name in the workload's table.
    pub kind: String,
    /// Rows (= blocks of the table) the operations touched.
    pub rows: u64,
    /// From start of the operation to its end. Its count is the operations ended.
    pub service: Histogram,
    /// From the intended start; differs from `service` only under a RATE.
    pub response: Histogram,
}

/// What the load generator itself counted, cumulative since the gate, all threads.
#[figures]
pub struct DriverReading {
    /// By kind; kinds never run are absent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ops: Vec<OpReading>,
    /// Operations that failed, by class of error.
    pub errors: BTreeMap<String, u64>,
    /// Retried operations.
    pub retries: u64,
    /// The same by class of the error that caused the retry.
    pub retried: BTreeMap<String, u64>,
    /// Both by kind of operation: `failed KIND CLASS`, `retried KIND CLASS`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_kind: BTreeMap<String, u64>,
    /// Operations whose key range was the hot spot's.
    pub hot_spot_hits: u64,
    /// Operations redirected to schema 1.
    pub hot_schema_hits: u64,
    /// Think times taken.
    pub think_count: u64,
    /// Time slept in them, ns.
    pub think_ns: u64,
    /// Sum of operation time, ns: DB time as the client sees it.
    pub busy_ns: u64,
    /// Sessions that have not stopped.
    pub sessions_active: u64,
    /// Operations begun and not ended at this instant.
    pub in_flight: u64,
    /// Time the in-flight operations have already taken at this instant, ns.
    pub in_flight_ns: u64,
    /// Lateness of starts under a RATE.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub schedule_lag: Histogram,
    /// Arrivals of a shared queue that found no room in it.
    #[serde(skip_serializing_if = "is_none")]
    pub dropped: u64,
    /// CPU time of the driver threads, ns (thread clock).
    pub thread_cpu_ns: u64,
    /// schedstat run delay of the driver threads, ns: runnable but not on a CPU.
    pub thread_run_delay_ns: u64,
    /// Threads that drive sessions.
    pub threads: u64,
    /// Only in a difference: fields and kinds of operation that went backwards, which
    /// are 0 or left out there and mean n/a (reset).
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub resets: BTreeSet<String>,
}

/// A counter that most runs do not have.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// One consistent reading of everything, taken while the sessions work.
#[figures]
pub struct Snapshot {
    /// Monotonic instant, ns since the gate opened (0 at the gate).
    pub at_ns: u64,
    /// RFC 3339 wall time, a label only.
    pub wall: String,
    /// Between the first and the last thread's publication, ns.
    pub skew_ns: u64,
    /// Engine and driver-thread statistics, merged.
    pub stats: StatSet,
    /// The load generator's own counters.
    pub driver: DriverReading,
    /// The host.
    pub host: HostReading,
}

/// Cumulative readings of one block device (`/proc/diskstats`).
#[figures]
pub struct DiskReading {
    /// Kernel name, e.g. `vda`.
    pub name: String,
    /// Reads completed.
    pub reads: u64,
    /// Reads merged.
    pub read_merges: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Time reading, ns.
    pub read_ns: u64,
    /// Writes completed.
    pub writes: u64,
    /// Writes merged.
    pub write_merges: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Time writing, ns.
    pub write_ns: u64,
    /// Requests in flight (gauge).
    pub in_flight: u64,
    /// Time with at least one request in flight, ns.
    pub busy_ns: u64,
    /// In-flight time summed over requests, ns.
    pub weighted_ns: u64,
    /// Flush requests completed.
    pub flushes: u64,
    /// Time flushing, ns.
    pub flush_ns: u64,
    /// Time discarding (TRIM), ns: [`DiskReading::weighted_ns`] counts it too.
    pub discard_ns: u64,
    /// Devices of this name that are merged into the reading, one a host; 0 is one as well.
    pub devices: u64,
}

/// Cumulative readings of one network interface.
#[figures]
pub struct NetReading {
    /// Interface name.
    pub name: String,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Errors and drops, both ways.
    pub errors: u64,
}

/// The host at one instant. Absent sources leave `None` and are n/a, never 0.
#[figures]
pub struct HostReading {
    /// Hosts merged into this reading; 0 in an empty one, and also allowed for one host.
    pub hosts: u64,
    /// The ten columns of `/proc/stat`'s `cpu` line as ns:
    /// user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<[u64; 10]>,
    /// Online CPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u64>,
    /// Context switches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_switches: Option<u64>,
    /// Runnable tasks (gauge).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub procs_running: Option<u64>,
    /// 1, 5, 15 minute load averages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<[f64; 3]>,
    /// `/proc/meminfo` in bytes: total, available, dirty, cached, anon huge pages.
    pub memory_bytes: BTreeMap<String, u64>,
    /// Pressure stall totals, ns, by `cpu_some`, `io_some`, `io_full`, `memory_some`, `memory_full`.
    pub psi_ns: BTreeMap<String, u64>,
    /// Major faults and swap, from `/proc/vmstat`.
    pub vmstat: BTreeMap<String, u64>,
    /// Devices under the data.
    pub disks: Vec<DiskReading>,
    /// Interfaces but loopback.
    pub nets: Vec<NetReading>,
    /// `/proc/self/io` read_bytes and write_bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_read_bytes: Option<u64>,
    /// See above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_write_bytes: Option<u64>,
    /// CPU time of this process, ns (all threads).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_cpu_ns: Option<u64>,
    /// Resident memory of this process (gauge).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_rss_bytes: Option<u64>,
    /// cgroup throttled time, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup_throttled_ns: Option<u64>,
    /// CPUs the driver threads can use, thousandths: the least of the online ones, their
    /// affinity and the quota of the control group (gauge).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usable_millicpus: Option<u64>,
}

/// A name and a printable value.
#[figures]
#[derive(Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Fact {
    /// Snake case or the field's own spelling.
    pub name: String,
    /// Printable; `n/a (reason)` where unknown.
    pub value: String,
}

impl Fact {
    /// This name with this value.
    #[must_use]
    pub fn new(name: &str, value: impl ToString) -> Self {
        Self { name: name.to_owned(), value: value.to_string() }
    }
}

/// One effective parameter with where it came from.
#[figures]
#[derive(Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SettingLine {
    /// Parameter name as in slob.conf.
    pub name: String,
    /// Effective value; secrets are `***` already.
    pub value: String,
    /// `cli`, `env`, `file slob.conf:12`, `default`, `data set`, ...
    pub origin: String,
}

impl SettingLine {
    /// A parameter with its value and where that came from.
    #[must_use]
    pub fn new(name: &str, value: impl Into<String>, origin: &str) -> Self {
        Self { name: name.to_owned(), value: value.into(), origin: origin.to_owned() }
    }
}

/// One session's totals over the whole run.
#[figures]
pub struct SessionReading {
    /// 1-based.
    pub session: u64,
    /// 1-based home schema.
    pub schema: u64,
    /// Operations ended.
    pub ops: u64,
    /// Rows touched.
    pub rows: u64,
    /// Time in operations, ns.
    pub busy_ns: u64,
    /// Time thinking, ns.
    pub think_ns: u64,
    /// Start of the first operation, ns after the gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_op_ns: Option<u64>,
    /// End of the last operation, ns after the gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_op_ns: Option<u64>,
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As planned.
    #[default]
    Complete,
    /// Stopped early (Ctrl-C, TERM, recovered after a kill): valid as far as it goes.
    Incomplete(String),
    /// Not to be trusted: reasons.
    Invalid(Vec<String>),
}

/// Everything one run measured, before any derivation: what readers start from.
#[figures]
pub struct RunData {
    /// Short random id, also in the directory's name.
    pub run_id: String,
    /// User's label, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// `slob`, later others.
    pub workload: String,
    /// `native`, `null`, ...
    pub engine: String,
    /// assay's version.
    pub version: String,
    /// RFC 3339 start.
    pub started: String,
    /// The master seed.
    pub seed: u64,
    /// How it ended.
    pub verdict: Verdict,
    /// Sessions planned.
    pub sessions: u64,
    /// Fixed iterations (WORK_LOOP) instead of a timed window.
    pub fixed_iterations: bool,
    /// Effective configuration.
    pub settings: Vec<SettingLine>,
    /// Kernel, CPU, memory, device, file system, ...
    pub host: Vec<Fact>,
    /// Facts of the engine: achieved I/O mode, block size, files, ring features.
    pub engine_facts: Vec<Fact>,
    /// At the gate (all counters of the load are 0 by then or known).
    pub gate: Snapshot,
    /// Begin of the measured window.
    pub begin: Snapshot,
    /// End of the measured window.
    pub end: Snapshot,
    /// After the drain.
    pub drained: Snapshot,
    /// One per second from the gate on, cumulative, with begin and end of the window; runs
    /// beyond a quarter of an hour keep every second, fourth ... of them. None where somebody
    /// made the record's series of them as they came.
    pub series: Vec<Snapshot>,
    /// What the sessions did, by ticks from the gate on; `None` where nobody looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activity: Option<ActivityHistory>,
    /// Commands, scripts and changes of the platform, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<TimelineEvent>,
    /// How long after the gate's instant the last driver thread began, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began_ns: Option<u64>,
    /// Per session, whole run.
    pub per_session: Vec<SessionReading>,
    /// ns per operation of the null engine through the same loop: the harness floor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor_ns_per_op: Option<f64>,
    /// ns of one clock reading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_read_ns: Option<f64>,
    /// What the engine told that only the kind of the workload's records knows the shape of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<serde_json::Value>,
    /// Warnings in full sentences, each with what it may have done to the number and what to try.
    pub warnings: Vec<String>,
}

#[cfg(test)]
mod tests;
