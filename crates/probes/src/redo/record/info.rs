//! A redo test in a record.

use assay_measure::figures::figures;
use assay_measure::record::{Figure, Latency, Part};
use assay_measure::snapshot::Fact;

/// What `assay redo` measured.
#[figures]
pub(crate) struct RedoInfo {
    /// `sync` or `async`.
    pub mode: String,
    /// Bytes of a payload.
    pub length_bytes: u64,
    /// `random`, `zeros`, `mix:2.5` or `file:PATH`.
    pub content: String,
    /// `none`, `lz4` or `zstd:1`.
    pub compress: String,
    /// Payloads of all messages before and after they were packed.
    pub payload_bytes: u64,
    /// See above.
    pub wire_bytes: u64,
    /// Packing of a message, where there was any.
    pub pack: Latency,
    /// CPU time of it, all messages.
    pub pack_cpu_s: Figure,
    /// Bytes of the payloads that are zero.
    pub zero_pct: Figure,
    /// Requested commits per second; n/a: each message is one commit.
    pub asked_commits_per_s: Figure,
    /// Bytes of one commit; 0 if each message is one commit.
    pub commit_bytes: u64,
    /// Commits acknowledged.
    pub commits_count: u64,
    /// Messages of 1, 2, 3 to 4, 5 to 8, ... commits.
    pub group_messages: Vec<u64>,
    /// Payloads of these messages, bytes.
    pub group_bytes_avg: Figure,
    /// See above.
    pub group_bytes_p50: Figure,
    /// See above.
    pub group_bytes_p99: Figure,
    /// See above.
    pub group_bytes_max: Figure,
    /// The workload asked about: AWR's redo size per second.
    pub redo_bytes_per_s: Figure,
    /// AWR's redo writes per second.
    pub redo_writes_per_s: Figure,
    /// Pause after each message.
    pub delay_ms: Figure,
    /// Connections at once.
    pub connections_count: u64,
    /// Messages in flight on each.
    pub inflight_count: u64,
    /// Requested socket send buffer; n/a: the system's.
    pub asked_send_buffer_bytes: Figure,
    /// Requested messages per second; n/a: as fast as possible.
    pub asked_per_s: Figure,
    /// Requested time, s.
    pub asked_s: f64,
    /// Time of a row, s.
    pub interval_s: u64,
    /// Silence after which an end is given up, where it was given, s.
    pub asked_timeout_s: Figure,
    /// The requested write: `none`, `direct-dsync`, `apply:500`, ...
    pub asked_write: String,
    /// The write that was made on the first standby.
    pub write: String,
    /// Why it is another; empty where it is the same.
    pub write_why: String,
    /// Local time of day when the standby was ready, s.
    pub ready_clock_s: i64,
    /// What ended in each second.
    pub seconds: Vec<SecondRow>,
    /// Messages acknowledged; in async consumed.
    pub messages_count: u64,
    /// Messages handed to the socket, and for how long.
    pub sent_count: u64,
    /// See above.
    pub sent_s: Figure,
    /// The same with those that measured the network alone.
    pub sent_total_count: u64,
    /// From the first message until the last was acknowledged or consumed.
    pub elapsed_s: Figure,
    /// Commits: the time until the commit rule was content, the local write included; from the instant each was due
    /// where there was a schedule.
    pub commit: Latency,
    /// Messages due and not sent when the time was over.
    pub backlog_count: Figure,
    /// For whom a commit waited.
    pub rule: String,
    /// Latency under every rule.
    pub rules: Vec<RuleRow>,
    /// Every way to write, where they were compared; the last is that of the other figures.
    pub modes: Vec<ModeRow>,
    /// Each standby.
    pub standbys: Vec<StandbyInfo>,
    /// `none`, `serial` or `parallel`.
    pub local: String,
    /// The primary's own log write.
    pub local_write: Latency,
    /// Commits if the remote part followed the local one (PostgreSQL).
    pub serial: Latency,
    /// Commits if both ran in parallel (Oracle).
    pub parallel: Latency,
    /// The standby's disk without network, and the network without disk, if they were requested.
    pub disk_alone: Latency,
    /// See above.
    pub network_alone: Latency,
    /// A change of level that looks like a cap.
    pub cap: Option<CapInfo>,
    /// The slowest messages.
    pub worst: Vec<WorstRow>,
    /// CPU time of the threads that sent, s.
    pub cpu_s: Figure,
    /// Clock of this host's CPU right after, MHz.
    pub cpu_mhz: Figure,
    /// Why it ended early; empty where it did not.
    pub failed: String,
}

impl Part for RedoInfo {
    const NAME: &'static str = "redo";
}

/// One second.
#[figures]
pub(crate) struct SecondRow {
    /// Messages that ended in it.
    pub messages_count: u64,
    /// Their bytes, headers included.
    pub bytes: u64,
    /// Sum of their latencies, us.
    pub total_us: f64,
    /// Sum of their times at the disk, us.
    pub disk_us: f64,
    /// When the last of them ended, s after the start; 0 without one.
    pub end_s: f64,
    /// The kernel's figures for the connection when the first of them ended.
    #[serde(flatten)]
    pub tcp: TcpRow,
}

/// Latency under one commit rule.
#[figures]
pub(crate) struct RuleRow {
    /// `any 2`, `first 1`, `all`.
    pub rule: String,
    /// From the start of the send until this many had acknowledged.
    pub latency: Latency,
}

/// One way to write.
#[figures]
pub(crate) struct ModeRow {
    /// `fdatasync`, `dsync`, ...
    pub mode: String,
    /// From the start of the send to its acknowledgement.
    pub total: Latency,
    /// At the disk.
    pub disk: Latency,
}

/// One standby.
#[figures]
pub(crate) struct StandbyInfo {
    /// As it was named.
    pub name: String,
    /// From the start of the send to its acknowledgement.
    pub total: Latency,
    /// The send call.
    pub send: Latency,
    /// Total less the standby's own time and the packing before it was sent.
    pub network: Latency,
    /// From the last byte received until the acknowledgement was sent.
    pub server: Latency,
    /// From the first byte to the last.
    pub assembly: Latency,
    /// The write call.
    pub write: Latency,
    /// What made it durable after the write.
    pub sync: Latency,
    /// Both: oratcptest's disk-write.
    pub disk: Latency,
    /// The emulated apply.
    pub apply: Latency,
    /// Compression on this host.
    pub pack: Latency,
    /// Decompression over there.
    pub unpack: Latency,
    /// The rest of the standby's own time: its work, and waiting for a CPU.
    pub queue: Latency,
    /// Messages for which the standby's time exceeds the whole, because of the clocks' resolution.
    pub negative_count: u64,
    /// `SO_SNDBUF` in force at the end.
    pub send_buffer_bytes: Figure,
    /// The kernel's figures for the connection at the end.
    pub rtt_us: Figure,
    /// See above.
    pub min_rtt_us: Figure,
    /// See above.
    pub retransmits_count: Figure,
    /// See above.
    pub cwnd_bytes: Figure,
    /// Messages it consumed.
    pub messages_count: u64,
    /// Messages it says it has consumed.
    pub consumed_count: u64,
    /// Messages sent to it.
    pub sent_count: u64,
    /// ASYNC to several: bytes consumed per second, including headers.
    pub per_s: Figure,
    /// See above.
    pub bytes_per_s: Figure,
    /// SYNC to several: the kernel's figures for the connection in each second.
    pub tcp_seconds: Vec<TcpRow>,
    /// How it wrote.
    pub write_mode: String,
    /// CPU time of the threads that served, s.
    pub cpu_s: Figure,
    /// Its host meanwhile.
    pub busy_pct: Figure,
    /// See above.
    pub steal_pct: Figure,
    /// See above.
    pub cpu_mhz: Figure,
    /// Why it was lost; empty where it was not.
    pub lost: String,
    /// When, s after the start.
    pub lost_s: Figure,
    /// Its host, the place and the device of its log.
    pub facts: Vec<Fact>,
}

/// What the kernel said of a connection.
#[figures]
pub(crate) struct TcpRow {
    /// Its smoothed round trip.
    pub rtt_us: Figure,
    /// Its congestion window.
    pub cwnd_bytes: Figure,
    /// Segments in flight.
    pub unacked_count: Figure,
    /// Segments sent again since the connection began.
    pub retransmits_count: Figure,
}

/// A cap on messages per second.
#[figures]
pub(crate) struct CapInfo {
    /// Messages per second from then on.
    pub per_s: f64,
    /// When, s after the start.
    pub at_s: f64,
}

/// A message that took long.
#[figures]
pub(crate) struct WorstRow {
    /// When it ended, s after the start.
    pub at_s: f64,
    /// Its latency.
    pub total_us: f64,
    /// Of that, at the standby.
    pub server_us: f64,
    /// Of that, at its disk.
    pub disk_us: f64,
}
