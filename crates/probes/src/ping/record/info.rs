//! What only a record of round trips has.

use crate::conditions::Conditions;
use assay_measure::figures::figures;
use assay_measure::record::{Figure, Latency, Part};

/// The part of a record.
#[figures]
pub(crate) struct PingInfo {
    pub host: String,
    pub address: String,
    /// Of an echo or a connect; 0 of ICMP.
    pub port: u16,
    /// `icmp-raw`, `icmp-dgram`, `tcp-connect`, `tcp-echo`, `udp-echo`.
    pub method: String,
    /// What the time includes besides the network.
    pub holds: String,
    /// Why a better method was not taken.
    pub why_not: Vec<String>,
    pub size_bytes: u64,
    pub reply_bytes: u64,
    /// 0: the next request follows the reply.
    pub rate_per_s: f64,
    pub timeout_s: f64,
    pub sent_count: u64,
    pub received_count: u64,
    pub lost_count: u64,
    /// Replies too late, or twice.
    pub strays_count: u64,
    pub errors_count: u64,
    pub first_error: String,
    pub elapsed_s: f64,
    /// From the sending to the reply, of those answered; and from the instant each was due, with the lost ones.
    pub service: Latency,
    pub response: Latency,
    /// Within the server, and without; of an echo.
    pub server: Latency,
    pub network: Latency,
    /// As ping computes them, in whole us.
    #[serde(alias = "ping_avg_us")]
    pub ping_us_avg: Figure,
    #[serde(alias = "ping_mdev_us")]
    pub ping_us_mdev: Figure,
    #[serde(alias = "p9999_us")]
    pub us_p9999: Figure,
    #[serde(alias = "response_p9999_us")]
    pub response_us_p9999: Figure,
    /// Answered within more than 1, 10, 100 ms.
    pub above_ms: [u64; 3],
    /// How late the requests went.
    #[serde(alias = "late_p99_us")]
    pub late_us_p99: Figure,
    pub worst: Vec<WorstRow>,
    pub replies: Vec<ReplyRow>,
    pub seconds: Vec<SecondRow>,
    /// Segments that the kernel sent again; of the TCP echo.
    pub retransmits_count: Option<u64>,
    pub conditions: Conditions,
    pub is_loopback: bool,
    /// The same beside a stream, if requested.
    pub loaded: Option<LoadedInfo>,
    /// Why it ended early; empty where it did not.
    pub failed: String,
}

/// Requests beside a stream that fills the way.
#[figures]
pub(crate) struct LoadedInfo {
    pub sent_count: u64,
    pub lost_count: u64,
    pub service: Latency,
    pub response: Latency,
    /// The stream's throughput meanwhile.
    pub stream_bits_per_s: Figure,
    /// Why there was no stream; empty where there was.
    pub failed: String,
}

impl Part for PingInfo {
    const NAME: &str = "ping";
}

/// One of the slowest.
#[figures]
pub(crate) struct WorstRow {
    pub seq: u64,
    /// When it was due, after the begin, s.
    pub at_s: f64,
    pub service_us: f64,
    pub response_us: f64,
    pub is_lost: bool,
}

/// One reply, as ping prints it.
#[figures]
pub(crate) struct ReplyRow {
    pub seq: u64,
    pub ttl: Option<u8>,
    pub us: f64,
}

/// A second of the test.
#[figures]
pub(crate) struct SecondRow {
    pub replies_count: u64,
    pub lost_count: u64,
    #[serde(alias = "p50_us")]
    pub us_p50: Option<f64>,
    #[serde(alias = "max_us")]
    pub us_max: Option<f64>,
    #[serde(alias = "response_max_us")]
    pub response_us_max: Option<f64>,
}

impl PingInfo {
    pub(crate) fn lost_pct(&self) -> Figure {
        Figure::decimal(100.0 * self.lost_count as f64).per(self.sent_count as f64, "nothing was sent")
    }
}
