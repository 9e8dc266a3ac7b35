//! A log that messages are written to, one after the other, as a standby redo log is: a scratch file of zeroes, written
//! round and round.

use super::wire::{WRITE_MODES, WriteMode};
use crate::scratch::{MARKER_BYTES, Place, Scratch, failed};
use assay_block::{BlockingWriter, device_facts};
use assay_measure::clock::Clock;
use assay_measure::histogram::Histogram;
use assay_measure::prng::SplitMix64;
use assay_run::engine::EngineError;
use assay_run::stop::Stop;
use std::path::Path;
use std::time::Duration;

/// Where a payload begins in the buffer: aligned for direct I/O, with room for a header before it.
pub(super) const PAYLOAD_AT: usize = 4096;

/// No disk has as much: what is asked for beyond it does not fit either.
const LOG_MOST: u64 = 1 << 62;
/// Emulated apply of a message at most, us.
pub(super) const APPLY_MOST_US: u64 = 10_000_000;

/// What log is wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) mode: WriteMode,
    /// Where direct I/O is refused, `dsync` will do.
    pub(super) falls_back: bool,
    /// Bytes of the longest payload.
    pub(super) length: u64,
    pub(super) block: u64,
    /// Bytes of the log that are asked for.
    pub(super) bytes: u64,
}

impl Shape {
    /// Bytes that a message takes in the log: whole blocks, and one even of a message without payload.
    fn padded(&self, length: u64) -> u64 {
        length.next_multiple_of(self.block).max(self.block)
    }

    /// Bytes of the log as it is made: two of the longest messages have room.
    pub(super) fn log_bytes(&self) -> u64 {
        let least = MARKER_BYTES + 2 * self.padded(self.length);
        self.bytes.clamp(least, LOG_MOST).next_multiple_of(4096)
    }
}

/// A disk that is slower than it is, for tests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slowed {
    /// Added to each write.
    pub(super) each: Duration,
    /// So many writes a second once the burst is used up.
    pub(super) limit: Option<(f64, f64)>,
}

/// Time of one write and of what made it durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Took {
    pub(super) write_ns: u64,
    pub(super) sync_ns: u64,
}

/// The file and where it is written next; without a file only the memory of a message.
pub(super) struct Log {
    file: Option<(BlockingWriter, Scratch)>,
    memory: Vec<u8>,
    shape: Shape,
    at: u64,
    slowed: Slowed,
    /// Writes that the limit leaves, and when that was counted.
    credit: (f64, u64),
    /// Why the mode is not the one asked for.
    pub(super) why: String,
    pub(super) path: String,
}

impl Log {
    /// One that only receives.
    pub(super) fn none(length: u64) -> Self {
        Self {
            file: None,
            memory: vec![0; PAYLOAD_AT + length as usize],
            shape: Shape { mode: WriteMode::None, falls_back: false, length, block: 1, bytes: 0 },
            at: 0,
            slowed: Slowed::default(),
            credit: (0.0, 0),
            why: String::new(),
            path: String::new(),
        }
    }

    /// Makes the file in a directory, or as the file named. `None` where `goes_on`, which hears how much is written,
    /// says no.
    pub(super) fn create(
        place: &Path,
        shape: Shape,
        slowed: Slowed,
        goes_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Option<Self>, EngineError> {
        if shape.mode == WriteMode::None {
            return Ok(Some(Self::none(shape.length)));
        }
        let bytes = shape.log_bytes();
        let place = Place::find(place, "redo")?;
        let facts = device_facts(place.path());
        if let Ok(sector) = facts.logical_block_bytes
            && shape.mode == WriteMode::DirectDsync
            && sector > shape.block
        {
            return Err(EngineError::Unusable(format!(
                "direct writes of this device have at least {sector} bytes: --logblock {} is too small",
                shape.block
            )));
        }
        let path = place.path().display().to_string();
        let Some(scratch) = Scratch::create(&place, (bytes, 0), goes_on)? else {
            return Ok(None);
        };
        let wants_direct = shape.mode == WriteMode::DirectDsync;
        let room = PAYLOAD_AT + shape.padded(shape.length) as usize;
        let writer = BlockingWriter::open(&scratch.opened(), room, wants_direct && !facts.is_tmpfs);
        let writer = writer.map_err(failed)?;
        let (mut mode, mut why) = (shape.mode, String::new());
        if wants_direct && !writer.is_direct() {
            why = if facts.is_tmpfs {
                "the file system is in memory (tmpfs): there is no direct I/O".to_owned()
            } else {
                "the file system refuses direct I/O".to_owned()
            };
            if !shape.falls_back {
                return Err(EngineError::Unusable(format!(
                    "{why} in {}: use --write-mode dsync, or another directory",
                    place.path().display()
                )));
            }
            mode = WriteMode::Dsync;
        }
        Ok(Some(Self {
            file: Some((writer, scratch)),
            memory: Vec::new(),
            shape: Shape { mode, bytes, ..shape },
            at: MARKER_BYTES,
            slowed,
            credit: (slowed.limit.map_or(0.0, |(_, burst)| burst), 0),
            why,
            path,
        }))
    }

    pub(super) fn mode(&self) -> WriteMode {
        self.shape.mode
    }

    pub(super) fn bytes(&self) -> u64 {
        self.shape.bytes
    }

    /// Where a message is put together: its payload begins at [`PAYLOAD_AT`].
    pub(super) fn buffer(&mut self) -> &mut [u8] {
        match &mut self.file {
            Some((writer, _)) => writer.buffer(),
            None => &mut self.memory,
        }
    }

    /// Writes the first `length` bytes of the payload, and the rest of its last block as zeroes.
    pub(super) fn write(&mut self, length: usize, clock: &Clock) -> Result<Took, EngineError> {
        let Some((writer, _)) = &mut self.file else {
            return Ok(Took::default());
        };
        let Shape { mode, bytes, .. } = self.shape;
        let padded = self.shape.padded(length as u64);
        if self.at + padded > bytes {
            self.at = MARKER_BYTES;
        }
        writer.buffer()[PAYLOAD_AT + length..PAYLOAD_AT + padded as usize].fill(0);
        let begun = clock.now_ns();
        let is_durable = matches!(mode, WriteMode::Dsync | WriteMode::DirectDsync);
        let written = writer.write_from(PAYLOAD_AT, self.at, padded as usize, is_durable);
        written.map_err(failed)?;
        self.at += padded;
        slow(self.slowed, &mut self.credit, begun, clock);
        let write_ns = clock.now_ns() - begun;
        let mut sync_ns = 0;
        if mode == WriteMode::Fdatasync {
            writer.sync_data().map_err(failed)?;
            sync_ns = clock.now_ns() - begun - write_ns;
        }
        Ok(Took { write_ns, sync_ns })
    }

    /// Writes alone for so long: each write with what makes it durable.
    pub(super) fn alone(
        &mut self,
        length: usize,
        time: Duration,
        clock: &Clock,
        stop: &Stop,
    ) -> Result<Histogram, EngineError> {
        let mut histogram = Histogram::new();
        if self.file.is_none() {
            return Ok(histogram);
        }
        SplitMix64(1).fill(&mut self.buffer()[PAYLOAD_AT..PAYLOAD_AT + length]);
        let until = clock.now_ns() + time.as_nanos() as u64;
        let mut turn = 0_u64;
        while clock.now_ns() < until && !stop.requested() {
            turn += 1;
            if length >= 8 {
                self.buffer()[PAYLOAD_AT..PAYLOAD_AT + 8].copy_from_slice(&turn.to_le_bytes());
            }
            let took = self.write(length, clock)?;
            histogram.record(took.write_ns + took.sync_ns);
        }
        Ok(histogram)
    }
}

/// Waits as long as a slower disk would take.
fn slow(slowed: Slowed, credit: &mut (f64, u64), begun: u64, clock: &Clock) {
    let mut wait = slowed.each.as_nanos() as u64;
    if let Some((rate, burst)) = slowed.limit {
        let (left, counted) = *credit;
        let since = match counted {
            0 => 0.0,
            counted => (begun - counted) as f64 / 1e9,
        };
        let left = (left + since * rate).min(burst.max(1.0)) - 1.0;
        *credit = (left, begun);
        if left < 0.0 {
            wait = wait.max((-left / rate * 1e9) as u64);
        }
    }
    if wait > 0 {
        let until = begun + wait;
        let now = clock.now_ns();
        // The rest of the wait is shorter than a sleep is exact.
        std::thread::sleep(Duration::from_nanos(until.saturating_sub(now).saturating_sub(60_000)));
        while clock.now_ns() < until {
            std::hint::spin_loop();
        }
    }
}

/// The mode of a word, with the time of an emulated apply.
pub(super) fn mode_of(flag: &str, word: &str) -> Result<(WriteMode, u64), EngineError> {
    if let Some(us) = word.strip_prefix("apply:") {
        return match us.parse() {
            Ok(us @ 1..=APPLY_MOST_US) => Ok((WriteMode::Dsync, us)),
            _ => Err(EngineError::Usage(format!(
                "{flag} {word}: give 1 to {APPLY_MOST_US} microseconds, as in apply:500"
            ))),
        };
    }
    let mut modes = WRITE_MODES.iter();
    match modes.find(|(_, name)| *name == word) {
        Some((mode, _)) => Ok((*mode, 0)),
        None => Err(EngineError::Usage(format!(
            "{flag} {word}: give none, pagecache, fdatasync, dsync, direct-dsync or apply:MICROSECONDS"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(mode: WriteMode, slowed: Slowed, dir: &Path) -> Log {
        let shape = Shape { mode, falls_back: true, length: 5000, block: 4096, bytes: 64 << 10 };
        let made = Log::create(dir, shape, slowed, &mut |_| true);
        made.unwrap().expect("nobody stopped it")
    }

    #[test]
    fn it_goes_round_spares_its_marker_and_is_gone_with_its_value() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let clock = Clock::real();
        for (mode, _) in WRITE_MODES {
            let mut log = log(mode, Slowed::default(), dir.path());
            for turn in 0..20_u8 {
                log.buffer()[PAYLOAD_AT..][..5000].fill(turn + 1);
                log.write(5000, &clock).unwrap();
            }
            if mode == WriteMode::None {
                continue;
            }
            let bytes = std::fs::read(&log.path).unwrap();
            assert!(bytes.starts_with(b"assay redo scratch file"), "{mode:?}");
            // Seven messages of two blocks fit behind the marker: the last is the sixth of its round.
            let at = 4096 + 5 * 8192;
            assert!(bytes[at..at + 5000].iter().all(|byte| *byte == 20));
            assert!(bytes[at + 5000..at + 8192].iter().all(|byte| *byte == 0));
            drop(log);
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_slower_disk_is_slower_and_a_limit_spends_its_burst_first() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let clock = Clock::real();
        let mut slowed = Slowed { each: Duration::from_millis(3), limit: None };
        let took = log(WriteMode::Pagecache, slowed, dir.path()).write(10, &clock);
        assert!(took.unwrap().write_ns >= 3_000_000);
        slowed = Slowed { each: Duration::ZERO, limit: Some((100.0, 5.0)) };
        let mut log = log(WriteMode::Pagecache, slowed, dir.path());
        let begun = clock.now_ns();
        for _ in 0..15 {
            log.write(10, &clock).unwrap();
        }
        // Ten beyond the burst at 100 a second, less what came back meanwhile.
        assert!(clock.now_ns() - begun >= 80_000_000);
    }

    #[test]
    fn a_mode_is_known_by_its_name_alone() {
        assert_eq!(mode_of("--w", "dsync").unwrap(), (WriteMode::Dsync, 0));
        assert_eq!(mode_of("--w", "apply:5").unwrap(), (WriteMode::Dsync, 5));
        for word in ["", "sync", "apply:", "apply:0", "apply:x"] {
            let error = mode_of("--write-mode", word).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--write-mode {word}: ")), "{error}");
        }
    }
}
