//! A client's raw measurements.

use super::ask::Ask;
use super::quorum::Rule;
use super::wire::{Ack, Found, Ready, WriteMode};
use assay_block::socket::TcpInfo;
use assay_measure::clock::Ns;
use assay_measure::histogram::Histogram;
use assay_measure::snapshot::HostReading;
use serde::{Deserialize, Serialize};
use std::net::TcpStream;

/// Slowest messages that are kept one by one.
const WORST: usize = 20;

/// Where the time of the messages to one standby went.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Parts {
    /// From the start of the send to the acknowledgement.
    pub(super) total: Histogram,
    /// The send call.
    pub(super) send: Histogram,
    /// Total less the server's and the packing.
    pub(super) network: Histogram,
    /// From the last byte received until the acknowledgement was sent.
    pub(super) server: Histogram,
    pub(super) assembly: Histogram,
    pub(super) write: Histogram,
    pub(super) sync: Histogram,
    pub(super) disk: Histogram,
    pub(super) apply: Histogram,
    /// Compression here, decompression there.
    pub(super) pack: Histogram,
    pub(super) unpack: Histogram,
    /// What is left of the server's: its own work, and waiting for a CPU.
    pub(super) queue: Histogram,
    /// Messages whose server took longer than the whole, by the grain of the clocks.
    pub(super) negative: u64,
}

impl Parts {
    /// One message: its whole time, that of the send call and of the packing before it.
    pub(super) fn record(&mut self, [total_ns, send_ns, pack_ns]: [Ns; 3], ack: &Ack) {
        let server = u64::from(ack.total_ns);
        self.total.record(total_ns);
        self.send.record(send_ns);
        self.pack.record(pack_ns);
        self.server.record(server);
        self.network.record(total_ns.saturating_sub(server + pack_ns));
        self.negative += u64::from(server + pack_ns > total_ns);
        self.assembly.record(u64::from(ack.assembly_ns));
        self.write.record(u64::from(ack.write_ns));
        self.sync.record(u64::from(ack.sync_ns));
        self.disk.record(ack.disk_ns());
        self.apply.record(u64::from(ack.apply_ns));
        self.unpack.record(u64::from(ack.unpack_ns));
        let known = ack.disk_ns() + u64::from(ack.apply_ns) + u64::from(ack.unpack_ns);
        self.queue.record(server.saturating_sub(known));
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.total, &other.total),
            (&mut self.send, &other.send),
            (&mut self.network, &other.network),
            (&mut self.server, &other.server),
            (&mut self.assembly, &other.assembly),
            (&mut self.write, &other.write),
            (&mut self.sync, &other.sync),
            (&mut self.disk, &other.disk),
            (&mut self.apply, &other.apply),
            (&mut self.pack, &other.pack),
            (&mut self.unpack, &other.unpack),
            (&mut self.queue, &other.queue),
        ] {
            mine.merge(theirs);
        }
        self.negative += other.negative;
    }
}

/// One second of the test: what ended in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Second {
    pub(super) messages: u64,
    pub(super) bytes: u64,
    pub(super) total_ns: Ns,
    pub(super) disk_ns: Ns,
    /// When the last of them ended, from the start; 0 where there was none.
    pub(super) end_ns: Ns,
    /// What the kernel said of the connection when the first of them ended; of several connections, of the first.
    #[serde(skip)]
    pub(super) tcp: Option<TcpInfo>,
}

/// Seconds by number, from the start of the test.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Seconds(pub(super) Vec<Second>);

impl Seconds {
    pub(super) fn at(&mut self, ns: Ns) -> &mut Second {
        let second = (ns / 1_000_000_000) as usize;
        if second >= self.0.len() {
            self.0.resize(second + 1, Second::default());
        }
        &mut self.0[second]
    }

    /// Messages and bytes of all.
    pub(super) fn total(&self) -> (u64, u64) {
        let add = |(messages, bytes): (u64, u64), second: &Second| (messages + second.messages, bytes + second.bytes);
        self.0.iter().fold((0, 0), add)
    }

    /// When the last message ended.
    pub(super) fn end_ns(&self) -> Ns {
        self.0.iter().map(|second| second.end_ns).max().unwrap_or(0)
    }

    /// Asks the kernel about the connection, once in each second.
    pub(super) fn look(&mut self, ns: Ns, stream: &TcpStream) {
        let second = self.at(ns);
        if second.tcp.is_none() {
            second.tcp = TcpInfo::of(stream).ok();
        }
    }

    /// One message that ended so long after the start.
    pub(super) fn record(&mut self, ended_ns: Ns, bytes: u64, total_ns: Ns, disk_ns: Ns) {
        let second = self.at(ended_ns);
        second.messages += 1;
        second.bytes += bytes;
        second.total_ns += total_ns;
        second.disk_ns += disk_ns;
        second.end_ns = ended_ns;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (at, theirs) in other.0.iter().enumerate() {
            let mine = self.at(at as u64 * 1_000_000_000);
            mine.messages += theirs.messages;
            mine.bytes += theirs.bytes;
            mine.total_ns += theirs.total_ns;
            mine.disk_ns += theirs.disk_ns;
            mine.end_ns = mine.end_ns.max(theirs.end_ns);
            mine.tcp = mine.tcp.or(theirs.tcp);
        }
    }
}

/// A message that took long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Slow {
    pub(super) total_ns: Ns,
    /// When it ended, from the start.
    pub(super) ended_ns: Ns,
    pub(super) disk_ns: Ns,
    pub(super) server_ns: Ns,
}

/// The slowest messages.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Worst {
    /// Slowest first.
    pub(super) all: Vec<Slow>,
}

impl Worst {
    pub(super) fn see(&mut self, slow: Slow) {
        let is_full = self.all.len() >= WORST;
        if is_full && self.all.last().is_some_and(|last| slow.total_ns <= last.total_ns) {
            return;
        }
        let at = self.all.partition_point(|one| one.total_ns >= slow.total_ns);
        self.all.insert(at, slow);
        self.all.truncate(WORST);
    }
}

/// What one connection, or one standby, did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Stream {
    pub(super) parts: Parts,
    /// Commits: with the local write where there is one, from the instant each was due where there is a schedule.
    pub(super) commit: Histogram,
    /// The local write.
    pub(super) local: Histogram,
    /// Local and remote as if one followed the other, and as if both were under way at once.
    pub(super) serial: Histogram,
    pub(super) parallel: Histogram,
    pub(super) seconds: Seconds,
    pub(super) worst: Worst,
    /// What became of commits that were merged into messages.
    pub(super) groups: Groups,
    /// Commits acknowledged: as many as messages where they are not merged.
    pub(super) commits: u64,
    /// Payloads, before and after they were packed, without headers.
    pub(super) payload_bytes: u64,
    pub(super) wire_bytes: u64,
    /// Packing, and its CPU time.
    pub(super) pack: Histogram,
    pub(super) pack_cpu_ns: Ns,
    /// Messages handed to the socket, and when the last was.
    pub(super) sent: u64,
    pub(super) sent_ns: Ns,
    /// From the first message to the last acknowledgement.
    pub(super) elapsed_ns: Ns,
    /// The network alone, where it was asked for.
    pub(super) network_alone: Histogram,
    /// Messages that were due and not yet sent when the time was over.
    pub(super) backlog: u64,
    pub(super) cpu_ns: Ns,
}

/// Commits merged into messages.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Groups {
    /// Messages of 1, 2, 3 to 4, 5 to 8, ... commits.
    pub(super) messages: Vec<u64>,
    /// Payloads, bytes in the place of ns.
    pub(super) bytes: Histogram,
}

impl Groups {
    /// A message with so many commits and bytes.
    pub(super) fn see(&mut self, commits: u64, bytes: u64) {
        let bucket = commits.next_power_of_two().trailing_zeros() as usize;
        if bucket >= self.messages.len() {
            self.messages.resize(bucket + 1, 0);
        }
        self.messages[bucket] += 1;
        self.bytes.record(bytes);
    }

    fn merge(&mut self, other: &Self) {
        let buckets = self.messages.len().max(other.messages.len());
        self.messages.resize(buckets, 0);
        for (mine, theirs) in self.messages.iter_mut().zip(&other.messages) {
            *mine += theirs;
        }
        self.bytes.merge(&other.bytes);
    }
}

impl Stream {
    /// A commit with its local and its remote part: as it was, and as it would be the other way round.
    pub(super) fn here(&mut self, is_serial: bool, local_ns: Ns, remote_ns: Ns, total_ns: Ns) {
        self.local.record(local_ns);
        let (serial, parallel) =
            if is_serial { (total_ns, remote_ns.max(local_ns)) } else { (local_ns + remote_ns, total_ns) };
        self.serial.record(serial);
        self.parallel.record(parallel);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.parts.merge(&other.parts);
        self.commit.merge(&other.commit);
        self.local.merge(&other.local);
        self.serial.merge(&other.serial);
        self.parallel.merge(&other.parallel);
        self.seconds.merge(&other.seconds);
        other.worst.all.iter().for_each(|slow| self.worst.see(*slow));
        self.groups.merge(&other.groups);
        self.commits += other.commits;
        self.payload_bytes += other.payload_bytes;
        self.wire_bytes += other.wire_bytes;
        self.pack.merge(&other.pack);
        self.pack_cpu_ns += other.pack_cpu_ns;
        self.sent += other.sent;
        self.sent_ns = self.sent_ns.max(other.sent_ns);
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
        self.network_alone.merge(&other.network_alone);
        self.backlog += other.backlog;
        self.cpu_ns += other.cpu_ns;
    }
}

/// What is known of a standby.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct StandbyReading {
    pub(super) name: String,
    pub(super) ready: Ready,
    /// What it told at the end; nothing where it was lost before.
    pub(super) found: Option<Found>,
    pub(super) parts: Parts,
    /// Messages sent to it.
    pub(super) sent: u64,
    /// Of ASYNC: messages and bytes that it said it had consumed, and until when.
    pub(super) consumed: (u64, u64),
    pub(super) elapsed_ns: Ns,
    /// What the kernel said of the connection in each second; of several standbys in SYNC.
    #[serde(skip)]
    pub(super) tcp_seconds: Vec<Option<TcpInfo>>,
    /// `SO_SNDBUF` in force at the end.
    pub(super) send_buffer: Option<u64>,
    #[serde(skip)]
    pub(super) tcp: Option<TcpInfo>,
    /// When and why it was lost; empty where it was not.
    pub(super) lost: String,
    /// s after the start.
    pub(super) lost_s: f64,
}

/// What was measured.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Readings {
    pub(super) ask: Option<Ask>,
    /// Part of the payloads' bytes that are zero.
    pub(super) zero_ratio: f64,
    pub(super) standbys: Vec<StandbyReading>,
    pub(super) stream: Stream,
    pub(super) rules: Vec<(Rule, Histogram)>,
    /// Other ways to write, measured before.
    pub(super) modes: Vec<(WriteMode, Readings)>,
    pub(super) host: (HostReading, HostReading),
    pub(super) begun_ns: Ns,
    pub(super) ended_ns: Ns,
    /// Local time of day when it was ready, s.
    pub(super) clock_s: i64,
    pub(super) cpu_mhz: f64,
    pub(super) is_stopped: bool,
    /// Why it ended early.
    pub(super) failed: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_message_add_up_and_a_negative_part_is_counted() {
        let mut parts = Parts::default();
        let ack = Ack { write_ns: 1000, sync_ns: 500, total_ns: 1800, ..Ack::default() };
        parts.record([5000, 700, 300], &ack);
        assert_eq!(parts.network.sum_ns() + parts.server.sum_ns(), 4700);
        assert_eq!(parts.disk.sum_ns() + parts.queue.sum_ns(), 1800);
        parts.record([1700, 700, 0], &ack);
        assert_eq!((parts.negative, parts.network.min_ns()), (1, Some(0)));
    }

    #[test]
    fn the_slowest_messages_are_kept_in_order() {
        let mut worst = Worst::default();
        for total_ns in (0..100).chain(0..100) {
            worst.see(Slow { total_ns, ..Slow::default() });
        }
        let times: Vec<u64> = worst.all.iter().map(|slow| slow.total_ns).collect();
        let wanted: Vec<u64> = (90..100).rev().flat_map(|ns| [ns, ns]).collect();
        assert_eq!(times, wanted);
    }
}
