//! The protocol between client and server of a redo test: parameters, messages, acknowledgements, results.
//!
//! After the greeting of [`crate::peer`] the client sends its request ([`Wanted`]); the server sends [`Ready`],
//! repeatedly while it prepares its log; then messages go one way and acknowledgements the other. Each connection is a
//! separate session. All integers little-endian.
//!
//! ```text
//! message          12 bytes  length u32 | sequence u64, then the payload; bits 31 to 29 of the length are flags
//! acknowledgement  40 bytes  sequence u64 | assembly, write, sync, apply, total, unpack: u32 ns each | messages u64
//! ```
//!
//! The durations are by the server's own clock: from the first byte to the last, of the write call, of the call that
//! made it durable, of the emulated apply, from the last byte until the acknowledgement is sent, and of the
//! decompression. In ASYNC an acknowledgement is cumulative and comes four times a second: the last sequence consumed.
//! The last message has no payload and requests the end. Bit 31: the payload is compressed as agreed, and `length` is
//! the length on the wire.

use super::pack::Compress;
use crate::peer::hello::Service;
use assay_measure::figures::figures;
use assay_measure::histogram::Histogram;
use assay_measure::snapshot::Fact;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The service that both ends speak of.
pub(crate) const SERVICE: Service = Service { name: "redo", version: 2, started_by: "assay redo server" };

pub(crate) const HEADER_BYTES: usize = 12;
pub(crate) const ACK_BYTES: usize = 40;
/// Bytes of one message at most.
pub(crate) const MESSAGE_MAX: u64 = 32 << 20;
/// Bytes of a result at most.
pub(crate) const RESULT_MAX: usize = 1 << 20;

/// What a server takes for silence, whatever a client says.
pub(crate) const PATIENCE_LEAST: Duration = Duration::from_secs(10);
const PATIENCE_MOST: Duration = Duration::from_secs(600);
const AROUND: Duration = Duration::from_secs(600);

/// The sequence of the last acknowledgement: everything is consumed.
pub(crate) const END: u64 = u64::MAX;

const IS_END: u32 = 1 << 29;
const UNWRITTEN: u32 = 1 << 30;
const PACKED: u32 = 1 << 31;
pub(crate) const FLAGS: u32 = IS_END | UNWRITTEN | PACKED;

/// What stands before the payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) length: u32,
    pub(crate) sequence: u64,
    /// The last: nothing follows.
    pub(crate) is_end: bool,
    /// Not to be written, whatever the session's mode: the network alone.
    pub(crate) is_unwritten: bool,
    /// Compressed: `length` counts the bytes that come, not those that were packed.
    pub(crate) is_packed: bool,
}

impl Header {
    pub(crate) fn bytes(&self) -> [u8; HEADER_BYTES] {
        let mut word = self.length;
        if self.is_end {
            word |= IS_END;
        }
        if self.is_unwritten {
            word |= UNWRITTEN;
        }
        if self.is_packed {
            word |= PACKED;
        }
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&word.to_le_bytes());
        bytes[4..].copy_from_slice(&self.sequence.to_le_bytes());
        bytes
    }

    pub(crate) fn read(bytes: &[u8; HEADER_BYTES]) -> Self {
        let word = u32_at(bytes, 0);
        Self {
            length: word & !FLAGS,
            sequence: u64_at(bytes, 4),
            is_end: word & IS_END != 0,
            is_unwritten: word & UNWRITTEN != 0,
            is_packed: word & PACKED != 0,
        }
    }
}

/// What the server says of one message, or of all so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ack {
    pub(crate) sequence: u64,
    pub(crate) assembly_ns: u32,
    pub(crate) write_ns: u32,
    pub(crate) sync_ns: u32,
    pub(crate) apply_ns: u32,
    pub(crate) total_ns: u32,
    pub(crate) unpack_ns: u32,
    /// Messages consumed so far.
    pub(crate) messages: u64,
}

impl Ack {
    pub(crate) fn bytes(&self) -> [u8; ACK_BYTES] {
        let mut bytes = [0; ACK_BYTES];
        bytes[..8].copy_from_slice(&self.sequence.to_le_bytes());
        let durations = [self.assembly_ns, self.write_ns, self.sync_ns, self.apply_ns, self.total_ns, self.unpack_ns];
        for (at, ns) in durations.iter().enumerate() {
            bytes[8 + 4 * at..][..4].copy_from_slice(&ns.to_le_bytes());
        }
        bytes[32..].copy_from_slice(&self.messages.to_le_bytes());
        bytes
    }

    pub(crate) fn read(bytes: &[u8; ACK_BYTES]) -> Self {
        Self {
            sequence: u64_at(bytes, 0),
            assembly_ns: u32_at(bytes, 8),
            write_ns: u32_at(bytes, 12),
            sync_ns: u32_at(bytes, 16),
            apply_ns: u32_at(bytes, 20),
            total_ns: u32_at(bytes, 24),
            unpack_ns: u32_at(bytes, 28),
            messages: u64_at(bytes, 32),
        }
    }

    /// Time at the disk: of the write and of what made it durable.
    pub(crate) fn disk_ns(&self) -> u64 {
        u64::from(self.write_ns) + u64::from(self.sync_ns)
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// A duration as an acknowledgement has it.
pub(crate) fn saturated(ns: u64) -> u32 {
    u32::try_from(ns).unwrap_or(u32::MAX)
}

/// How the standby writes a message before it acknowledges it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WriteMode {
    /// Not at all: receipt in memory.
    #[default]
    None,
    /// `write`.
    Pagecache,
    /// `write`, then `fdatasync`.
    Fdatasync,
    /// One write that returns when it is durable.
    Dsync,
    /// The same past the page cache.
    DirectDsync,
}

/// Every mode and its name.
pub(crate) const WRITE_MODES: [(WriteMode, &str); 5] = [
    (WriteMode::None, "none"),
    (WriteMode::Pagecache, "pagecache"),
    (WriteMode::Fdatasync, "fdatasync"),
    (WriteMode::Dsync, "dsync"),
    (WriteMode::DirectDsync, "direct-dsync"),
];

impl WriteMode {
    pub(crate) fn name(self) -> &'static str {
        let mut modes = WRITE_MODES.iter();
        modes.find(|(mode, _)| *mode == self).map_or("", |found| found.1)
    }
}

/// What a client wants.
#[figures]
pub(crate) struct Wanted {
    /// No acknowledgement for each message.
    pub(crate) is_async: bool,
    /// Bytes of the longest payload.
    pub(crate) length: u64,
    /// Payloads may be shorter than that.
    pub(crate) is_varied: bool,
    /// Payloads may come compressed, in this way.
    pub(crate) compress: Compress,
    pub(crate) write: WriteMode,
    /// Where direct I/O is refused, `dsync` will do.
    pub(crate) falls_back: bool,
    /// Every message ends at a multiple of this in the log.
    pub(crate) log_block: u64,
    /// Size of the log.
    pub(crate) log_bytes: u64,
    /// Emulated apply after each write, us.
    pub(crate) apply_us: u64,
    /// How long the test will take, s.
    pub(crate) seconds: f64,
    /// Measure the log's writes alone for so long before, ms.
    pub(crate) alone_ms: u64,
    /// Silence after which each gives the other up, ms.
    pub(crate) patience_ms: u64,
}

impl Wanted {
    /// From ready to the result at most, for both ends: the test itself, silence once, and what comes before its first message
    /// (other standbys make ready) and after its last (what a stream still has under way).
    pub(crate) fn longest(&self) -> Duration {
        let test = Duration::try_from_secs_f64(self.seconds).unwrap_or(Duration::MAX);
        test.saturating_add(self.patience()).saturating_add(AROUND)
    }

    /// What is taken for silence, whatever is wanted.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_millis(self.patience_ms).clamp(PATIENCE_LEAST, PATIENCE_MOST)
    }
}

/// What the server says while it prepares, and then that it is ready.
#[figures]
pub(crate) struct Ready {
    /// Why it will not; empty where it will.
    pub(crate) refused: String,
    /// It is still at it.
    pub(crate) is_preparing: bool,
    /// How it will write.
    pub(crate) write: WriteMode,
    /// Why not as asked; empty where it does.
    pub(crate) write_why: String,
    /// The log, gone afterwards; empty without.
    pub(crate) log: String,
    /// While it prepares: so much of it is written.
    pub(crate) log_bytes: u64,
    /// The log's writes alone, if they were requested.
    pub(crate) alone: Histogram,
    /// The host, the place and the device under the log.
    pub(crate) facts: Vec<Fact>,
    /// What may change the figures, in sentences.
    pub(crate) warnings: Vec<String>,
}

/// What the server found, at the end.
#[figures]
pub(crate) struct Found {
    pub(crate) messages: u64,
    /// Payload and header, as they came.
    pub(crate) bytes: u64,
    /// From the first message's first byte to the last one's end.
    pub(crate) elapsed_ns: u64,
    pub(crate) assembly: Histogram,
    pub(crate) write: Histogram,
    pub(crate) sync: Histogram,
    /// Both: what oratcptest calls disk-write.
    pub(crate) disk: Histogram,
    pub(crate) total: Histogram,
    pub(crate) unpack: Histogram,
    /// CPU time of the thread that served.
    pub(crate) cpu_ns: u64,
    /// Time it could run and had no CPU.
    pub(crate) run_delay_ns: Option<u64>,
    /// Of the host meanwhile, %.
    pub(crate) busy_pct: Option<f64>,
    pub(crate) steal_pct: Option<f64>,
    /// Clock of the CPU that served, MHz, right after.
    pub(crate) cpu_mhz: f64,
    /// Why it ended early; empty where it did not.
    pub(crate) failed: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_acknowledgements_come_back_as_they_went() {
        for flag in 0..4 {
            let header = Header {
                length: 4096,
                sequence: u64::MAX - 7,
                is_end: flag == 1,
                is_unwritten: flag == 2,
                is_packed: flag == 3,
            };
            assert_eq!(Header::read(&header.bytes()), header);
        }
        let ack = Ack {
            sequence: 7,
            assembly_ns: 1,
            write_ns: 2,
            sync_ns: u32::MAX,
            apply_ns: 4,
            total_ns: 5,
            unpack_ns: 6,
            messages: 1 << 40,
        };
        assert_eq!(Ack::read(&ack.bytes()), ack);
        assert_eq!(saturated(1 << 40), u32::MAX);
    }
}
