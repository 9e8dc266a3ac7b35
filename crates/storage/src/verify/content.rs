//! Content and verification of one clone, as used by its work loop.
//!
//! Before a write this module fills and stamps the buffer and records the write. After the write phase, or after each
//! backlog, the recorded writes are read back and checked. The loop decides when to do I/O; this module decides what is
//! left to do.

use super::{BlockDifference, ExpectedWrite, Verifier, Written};
use crate::pattern::Io;
use crate::payload::Payload;
use crate::readings::Way;
use crate::spec::{IoEngine, JobOptions, SpecError, Verify};

/// The content that one clone writes, and the writes it must check.
#[derive(Debug)]
pub struct Content {
    payload: Payload,
    /// Numbers of the files, with which their content proves that they are ours.
    numbers: Box<[u64]>,
    verifier: Option<Verifier>,
    written: Written,
    /// By lane: whether the buffer no longer holds what the payload wrote last.
    fresh: Box<[bool]>,
    /// Whether to record writes, to read them back.
    notes: bool,
    /// Whether to check every read: the job only reads.
    checks_reads: bool,
    verify_only: bool,
    /// Number of blocks to read back at once while writing continues; 0: none before the end.
    backlog: u64,
    /// Whether others write to the same blocks, so that any block may be theirs.
    shared: bool,
}

impl Content {
    /// The content of clone `clone` (from 0 over all jobs) with `lanes` buffers. `run` is unique to this run.
    ///
    /// # Errors
    /// Verification options that cannot work.
    pub fn new(options: &JobOptions, clone: u32, seed: u64, run: u64, lanes: usize) -> Result<Self, SpecError> {
        let payload = &options.payload;
        // Without files nothing can be read back.
        let fileless = matches!(options.engine, IoEngine::Null | IoEngine::Nop);
        let verifier = if fileless { None } else { Verifier::new(payload, run)? };
        let writes = options.pattern.mode.goes(Way::Write);
        if let Some(verifier) = &verifier {
            for way in [Way::Read, Way::Write] {
                let least = options.pattern.blocks[way.index()].min as usize;
                if options.pattern.mode.goes(way) && least < verifier.least_bytes() {
                    return Err(SpecError {
                        origin: "job".to_owned(),
                        what: format!(
                            "a block of {least} bytes has no room for the header of verify, which needs at least {} \
                             bytes",
                            verifier.least_bytes()
                        ),
                    });
                }
            }
        }
        let backlog = payload.verify_backlog;
        let verifies = verifier.is_some();
        let comes_to_an_end = !is_endless(options) || backlog > 0;
        Ok(Self {
            payload: Payload::new(payload, clone, seed),
            numbers: Box::default(),
            verifier,
            written: Written::new(clone),
            fresh: vec![true; lanes].into(),
            notes: verifies && writes && payload.do_verify && comes_to_an_end,
            checks_reads: verifies && !writes,
            verify_only: verifies && writes && payload.verify_only,
            backlog,
            shared: false,
        })
    }

    /// Sets whether other clones or jobs use the same files: then the number of a write is uncertain.
    pub fn set_shared(&mut self, shared: bool) {
        self.shared = shared;
    }

    /// Whether others may write what this job reads.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// Sets the numbers of the clone's files; 0 for those that have none.
    pub fn set_numbers(&mut self, numbers: Vec<u64>) {
        self.numbers = numbers.into();
    }

    /// Whether the reads of the job's pattern go through [`Content::check`].
    #[must_use]
    pub fn checks_reads(&self) -> bool {
        self.checks_reads
    }

    /// Whether writes are only [recorded](Content::note), not issued: an earlier run made them.
    #[must_use]
    pub fn verify_only(&self) -> bool {
        self.verify_only
    }

    /// Fills the buffer for a write and records the write. Called just before it is queued.
    #[inline]
    pub fn before_write(&mut self, lane: u32, buffer: &mut [u8], io: &Io) {
        let fresh = std::mem::replace(&mut self.fresh[lane as usize], false);
        let file = self.numbers.get(usize::from(io.file)).copied();
        let file = file.unwrap_or_default();
        self.payload.prepare(buffer, file, io.offset, fresh);
        if self.verifier.is_some() {
            self.stamp(buffer, io);
        }
    }

    fn stamp(&mut self, buffer: &mut [u8], io: &Io) {
        let sequence = self.note(io);
        if let Some(verifier) = &self.verifier {
            verifier.stamp(buffer, io.offset, sequence);
        }
    }

    /// Tells that a read will overwrite the lane's buffer.
    #[inline]
    pub fn before_read(&mut self, lane: u32) {
        self.fresh[lane as usize] = true;
    }

    /// Records a write, issued or not, to be read back; returns its number.
    pub fn note(&mut self, io: &Io) -> u64 {
        if self.notes || self.verify_only { self.written.note(io) } else { self.written.count() }
    }

    /// Tells that a recorded write failed: the content of its place is unknown.
    pub fn write_failed(&mut self, io: &Io) {
        self.written.forget(io);
    }

    /// Whether to read back now: the backlog is full, or `done` says that the write phase is over. Everything in flight
    /// must complete first.
    #[inline]
    #[must_use]
    pub fn read_back_due(&self, done: bool) -> bool {
        let left = self.written.len() as u64;
        left > 0 && (done || (self.backlog > 0 && left >= self.backlog))
    }

    /// The next read of a recorded write, with the expected write; `None` when everything has been read back.
    pub fn next_read_back(&mut self) -> Option<(Io, ExpectedWrite)> {
        let block = self.written.take()?;
        let run = self.verifier.as_ref().map(Verifier::run);
        let expected = ExpectedWrite {
            run: run.filter(|_| !self.verify_only),
            sequence: (block.certain && !self.shared).then_some(block.sequence),
        };
        let io = Io { way: Way::Read, file: block.file, offset: block.offset, len: block.len };
        Some((io, expected))
    }

    /// Checks the content of a read. `path` is the file's, for the message.
    ///
    /// # Errors
    /// The first mismatch.
    pub fn check(&self, buffer: &[u8], io: &Io, expected: ExpectedWrite, path: &str) -> Result<(), BlockDifference> {
        match &self.verifier {
            Some(verifier) => verifier.check(buffer, path, io.offset, expected),
            None => Ok(()),
        }
    }
}

/// Whether only the time limit ends the write phase.
fn is_endless(options: &JobOptions) -> bool {
    options.pace.time_based && options.pace.runtime_ns.is_some()
}

/// Why the job never reads back what it writes although it requests verification; for a warning.
#[must_use]
pub fn never_verifies(options: &JobOptions) -> Option<&'static str> {
    let payload = &options.payload;
    let asked = payload.verify != Verify::None && payload.do_verify;
    if !asked || !options.pattern.mode.goes(Way::Write) {
        return None;
    }
    if matches!(options.engine, IoEngine::Null | IoEngine::Nop) {
        return Some("nothing is verified: this engine stores no data");
    }
    (is_endless(options) && payload.verify_backlog == 0).then_some(
        "nothing is verified: a time_based job never reaches the end of its write phase; use verify_backlog, or \
         leave out time_based",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::{Next, Pattern};
    use crate::spec::{Mode, Region};
    use std::collections::HashMap;

    const LEN: u32 = 4096;

    fn options(mode: Mode, set: impl FnOnce(&mut JobOptions)) -> JobOptions {
        let mut options = JobOptions::default();
        options.pattern.mode = mode;
        options.payload.verify = Verify::Crc32c;
        set(&mut options);
        options
    }

    /// A clone on an in-memory disk, driven as by the work loop, and the errors it reported.
    struct Rig {
        disk: HashMap<u64, Vec<u8>>,
        reads: Vec<u64>,
        mismatches: Vec<BlockDifference>,
        lost: Option<u64>,
    }

    impl Rig {
        fn new() -> Self {
            Self { disk: HashMap::new(), reads: Vec::new(), mismatches: Vec::new(), lost: None }
        }

        fn run(&mut self, options: &JobOptions, run: u64) {
            let region = Region { file: 0, start: 0, bytes: 40 * u64::from(LEN) };
            let mut pattern = Pattern::new(options, &[region], 0, 1).unwrap();
            let mut content = Content::new(options, 0, 1, run, 1).unwrap();
            let mut buffer = vec![0; LEN as usize];
            self.reads.clear();
            self.mismatches.clear();
            loop {
                let next = pattern.next();
                if let Next::Io(io) = next {
                    self.step(&mut content, &mut buffer, &io);
                }
                if content.read_back_due(next == Next::Done) {
                    while let Some((io, expected)) = content.next_read_back() {
                        content.before_read(0);
                        self.read(&content, &mut buffer, &io, expected);
                    }
                }
                if next == Next::Done {
                    return;
                }
            }
        }

        fn step(&mut self, content: &mut Content, buffer: &mut [u8], io: &Io) {
            if io.way == Way::Write {
                if content.verify_only() {
                    content.note(io);
                    return;
                }
                content.before_write(0, buffer, io);
                if self.lost != Some(io.offset) {
                    self.disk.insert(io.offset, buffer.to_vec());
                }
            } else if content.checks_reads() {
                self.read(content, buffer, io, ExpectedWrite::default());
            } else {
                content.before_read(0);
                buffer.fill(0x5a);
            }
        }

        fn read(&mut self, content: &Content, buffer: &mut [u8], io: &Io, expected: ExpectedWrite) {
            match self.disk.get(&io.offset) {
                Some(block) => buffer.copy_from_slice(block),
                None => buffer.fill(0),
            }
            self.reads.push(io.offset / u64::from(LEN));
            self.mismatches.extend(content.check(buffer, io, expected, "F").err());
        }
    }

    #[test]
    fn what_is_written_is_read_back_at_the_end_or_by_the_backlog() {
        let mut rig = Rig::new();
        rig.run(&options(Mode::RandWrite, |_| {}), 1);
        assert_eq!((rig.reads.len(), rig.mismatches.len()), (40, 0));
        let order = rig.reads.clone();
        rig.run(&options(Mode::RandWrite, |o| o.payload.verify_backlog = 7), 2);
        assert_eq!((&rig.reads, rig.mismatches.len()), (&order, 0));
        // A mixed job checks what it wrote, not what its pattern reads.
        rig.run(&options(Mode::RandRw, |_| {}), 3);
        assert!((10..30).contains(&rig.reads.len()) && rig.mismatches.is_empty());
        rig.run(&options(Mode::Write, |o| o.payload.do_verify = false), 4);
        assert!(rig.reads.is_empty());
        // A block written repeatedly is read back once.
        rig.run(&options(Mode::RandWrite, |o| o.pattern.no_map = true), 5);
        assert!((15..40).contains(&rig.reads.len()) && rig.mismatches.is_empty());
    }

    #[test]
    fn readers_and_verify_only_check_what_an_earlier_run_wrote() {
        let mut rig = Rig::new();
        rig.run(&options(Mode::RandWrite, |o| o.payload.do_verify = false), 1);
        rig.run(&options(Mode::Read, |_| {}), 2);
        assert_eq!((rig.reads.len(), rig.mismatches.len()), (40, 0));
        rig.run(&options(Mode::RandWrite, |o| o.payload.verify_only = true), 3);
        assert_eq!((rig.reads.len(), rig.mismatches.len()), (40, 0));
        rig.disk.get_mut(&8192).unwrap()[100] ^= 1;
        for checker in [options(Mode::Read, |_| {}), options(Mode::RandWrite, |o| o.payload.verify_only = true)] {
            rig.run(&checker, 4);
            assert_eq!(rig.mismatches.len(), 1);
            assert_eq!(rig.mismatches[0].offset, 8192);
        }
    }

    #[test]
    fn a_lost_write_is_found_although_an_older_block_is_valid() {
        let job = options(Mode::RandWrite, |_| {});
        let mut rig = Rig::new();
        rig.run(&job, 1);
        rig.lost = Some(12288);
        rig.run(&job, 2);
        assert_eq!(rig.mismatches.len(), 1);
        assert_eq!((rig.mismatches[0].offset, rig.mismatches[0].what), (12288, "number of the run"));
    }

    #[test]
    fn mixed_jobs_write_their_own_content_after_reads() {
        let zeroes = options(Mode::RandRw, |o| {
            o.payload.verify = Verify::None;
            o.payload.zero = true;
        });
        let mut rig = Rig::new();
        rig.run(&zeroes, 1);
        assert!((10..30).contains(&rig.disk.len()));
        assert!(rig.disk.values().flatten().all(|byte| *byte == 0));
    }

    #[test]
    fn jobs_that_never_verify_say_so() {
        let endless = |o: &mut JobOptions| {
            o.pace.time_based = true;
            o.pace.runtime_ns = Some(1);
        };
        let job = options(Mode::Write, endless);
        assert!(never_verifies(&job).is_some_and(|why| why.contains("time_based")));
        let content = Content::new(&job, 0, 1, 1, 1).unwrap();
        assert!(!content.notes);
        let bounded = options(Mode::Write, |o| {
            endless(o);
            o.payload.verify_backlog = 10;
        });
        assert_eq!(never_verifies(&bounded), None);
        assert_eq!(never_verifies(&options(Mode::Read, endless)), None);
        let null = options(Mode::Write, |o| o.engine = IoEngine::Null);
        assert!(never_verifies(&null).is_some_and(|why| why.contains("engine")));
        let small = options(Mode::Write, |o| o.pattern.blocks[1].min = 32);
        let error = Content::new(&small, 0, 1, 1, 1).unwrap_err();
        assert!(error.what.contains("a block of 32 bytes"), "{error}");
    }
}
