//! What only a record of the network has.

use crate::conditions::Conditions;
use crate::network::results::{CpuPct, Native, StreamEnd};
use assay_measure::figures::figures;
use assay_measure::record::Part;

/// The part of a record.
#[figures]
pub(crate) struct NetworkInfo {
    /// The requested address, and its resolution.
    pub host: String,
    pub address: String,
    pub port: u16,
    /// `tcp` or `udp`.
    pub protocol: String,
    pub is_reverse: bool,
    pub is_bidirectional: bool,
    /// Of each direction.
    pub streams_count: u64,
    pub block_bytes: u64,
    pub omit_s: u64,
    /// 0 where bytes or blocks were to be moved.
    pub time_s: u64,
    pub bytes_asked: u64,
    pub blocks_asked: u64,
    /// Bits per second of each stream; 0: as fast as it goes.
    pub rate_bits_per_s: u64,
    pub is_strict: bool,
    /// Requested buffer size; 0: the kernel's own choice.
    pub window_bytes: u64,
    pub send_buffer_bytes: u64,
    pub receive_buffer_bytes: u64,
    pub max_segment_bytes: u64,
    pub is_zero_copy: bool,
    pub is_no_delay: bool,
    pub tos: u64,
    pub fq_rate_bits_per_s: u64,
    /// Both ends are this host.
    pub is_loopback: bool,
    pub cookie: String,
    /// When it began, s since 1970.
    pub started_s: u64,
    /// Of the client's kernel: system, host, release, version, machine.
    pub system: String,
    /// Congestion control of the client and of the server; empty: unknown.
    pub congestion_local: String,
    pub congestion_remote: String,
    /// The measured time, s.
    pub elapsed_s: f64,
    pub streams: Vec<StreamInfo>,
    pub intervals: Vec<IntervalInfo>,
    pub cpu_local: CpuPct,
    pub cpu_remote: Option<CpuPct>,
    /// What only assay reports, for this side and the other.
    pub native_local: Option<Native>,
    pub native_remote: Option<Native>,
    pub server_output: String,
    pub conditions: Conditions,
    /// Options of iperf3's text: verbosity, and the letter of a unit.
    pub is_verbose: bool,
    pub units: String,
    /// Stopped early: the other end reported nothing.
    pub is_stopped: bool,
    /// Why it ended early; empty where it did not.
    pub failed: String,
}

impl Part for NetworkInfo {
    const NAME: &str = "network";
}

/// A stream, from both ends.
#[figures]
pub(crate) struct StreamInfo {
    pub id: i64,
    /// The client's descriptor, which iperf3 shows.
    pub socket: i32,
    pub local_host: String,
    pub local_port: u16,
    pub remote_host: String,
    pub remote_port: u16,
    pub is_sent_here: bool,
    /// The sender's figures, and the receiver's; the side of a peer that did not report is missing.
    pub sent: Option<StreamEnd>,
    pub received: Option<StreamEnd>,
}

/// Between two readings.
#[figures]
pub(crate) struct IntervalInfo {
    pub start_s: f64,
    pub end_s: f64,
    /// Before the measured time, counted from the start of the omitted time.
    pub is_omitted: bool,
    /// In the order of the streams.
    pub streams: Vec<IntervalStream>,
}

/// What this side saw of a stream between two readings.
#[figures]
pub(crate) struct IntervalStream {
    pub bytes: u64,
    pub retransmits: Option<u64>,
    pub cwnd_bytes: Option<u64>,
    pub window_bytes: Option<u64>,
    pub rtt_us: Option<u64>,
    pub rttvar_us: Option<u64>,
    pub mtu_bytes: Option<u64>,
    pub delivery_bytes_per_s: Option<u64>,
    pub datagrams: u64,
    pub lost: u64,
    pub jitter_us: f64,
    /// CPU of the stream's thread, s.
    pub cpu_s: Option<f64>,
}

impl NetworkInfo {
    pub(crate) fn is_udp(&self) -> bool {
        self.protocol == "udp"
    }

    /// The streams that the client sends, or those that it receives.
    pub(crate) fn way(&self, is_sent_here: bool) -> impl Iterator<Item = (usize, &StreamInfo)> {
        let all = self.streams.iter().enumerate();
        all.filter(move |(_, stream)| stream.is_sent_here == is_sent_here)
    }

    /// The ways that were measured: from here, to here.
    pub(crate) fn ways(&self) -> Vec<bool> {
        [true, false].into_iter().filter(|way| self.way(*way).next().is_some()).collect()
    }

    /// The intervals that count.
    pub(crate) fn measured(&self) -> impl Iterator<Item = &IntervalInfo> {
        self.intervals.iter().filter(|interval| !interval.is_omitted)
    }
}

impl NetworkInfo {
    /// Bits per second of the intervals, both ways together where both were measured.
    pub(crate) fn rates(&self) -> Vec<f64> {
        let rate_of = |interval: &IntervalInfo| {
            let bytes = interval.bytes(self.streams.iter().enumerate());
            rate(bytes, interval.seconds())
        };
        self.measured().map(rate_of).collect()
    }
}

impl IntervalInfo {
    pub(crate) fn seconds(&self) -> f64 {
        self.end_s - self.start_s
    }

    /// Bytes of some of its streams; an edited record may have fewer than there are.
    pub(crate) fn bytes<'a>(&self, of: impl Iterator<Item = (usize, &'a StreamInfo)>) -> u64 {
        of.filter_map(|(at, _)| self.streams.get(at)).map(|stream| stream.bytes).sum()
    }
}

/// Bits per second.
pub(crate) fn rate(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { 8.0 * bytes as f64 / seconds } else { 0.0 }
}
