//! Writes that are stamped and read back, and reads that are checked.

use super::worker::{Failure, Slot, Worker};
use crate::storage::pattern::{Io, Next};
use crate::storage::spec::{Options, SpecError, Verify};
use crate::storage::verify::{Expected, Mismatch, Verifier, Written, WrittenBlock};
use assay_block::BlockError;
use assay_measure::clock::Ns;
use assay_measure::storage::Way;

/// `EILSEQ`: what a block that is not what was written counts as, as in fio.
const EILSEQ: i32 = 84;

/// Verification of one clone.
#[derive(Debug)]
pub(super) struct Verifying {
    verifier: Verifier,
    written: Written,
    /// Block that each lane reads back.
    blocks: Vec<Option<WrittenBlock>>,
    /// No other clone uses the files: the number of a write is certain.
    exclusive: bool,
    /// Reads are checked as they come: the job does not write.
    pub(super) reads: bool,
    /// Blocks after which they are read back.
    backlog: Option<u64>,
    /// Being read back now.
    pub(super) reading_back: bool,
    /// Time spent reading back, ns.
    pub(super) read_back_ns: Ns,
    pub(super) mismatches: u64,
}

impl Verifying {
    /// `None` where nothing is verified.
    pub(super) fn new(
        options: &Options,
        number: u32,
        run: u64,
        lanes: u32,
        exclusive: bool,
    ) -> Result<Option<Self>, SpecError> {
        let payload = &options.payload;
        let Some(verifier) = Verifier::new(payload, run)? else {
            return Ok(None);
        };
        let least = verifier.least_bytes();
        let shortest = options.pattern.blocks[Way::Write.index()].min;
        if (shortest as usize) < least {
            return Err(SpecError {
                origin: "job".to_owned(),
                what: format!(
                    "blocks of {shortest} bytes cannot be verified: use at least {least}"
                ),
            });
        }
        Ok(Some(Self {
            verifier,
            written: Written::new(number),
            blocks: vec![None; lanes as usize],
            exclusive,
            reads: !options.pattern.mode.goes(Way::Write),
            backlog: (payload.verify_backlog > 0 && payload.do_verify)
                .then_some(payload.verify_backlog),
            reading_back: false,
            read_back_ns: 0,
            mismatches: 0,
        }))
    }

    /// Stamps a write that is about to be queued.
    pub(super) fn stamp(&mut self, buffer: &mut [u8], io: &Io) {
        let sequence = self.written.note(io);
        self.verifier.stamp(buffer, io.offset, sequence);
    }

    /// So many writes are to be read back first.
    pub(super) fn backlog_is_full(&self) -> bool {
        self.backlog
            .is_some_and(|backlog| self.written.len() as u64 >= backlog)
    }

    /// A write that failed or was cut short cannot be read back.
    pub(super) fn forget(&mut self, slot: &Slot) {
        self.written.forget(&Io {
            way: Way::Write,
            file: slot.file,
            offset: slot.offset,
            len: slot.len,
        });
    }

    fn check(&self, buffer: &[u8], file: &str, slot: &Slot, lane: u32) -> Result<(), Mismatch> {
        let expected = match self.blocks[lane as usize] {
            Some(block) if self.reading_back => Expected {
                run: Some(self.verifier.run()),
                sequence: (block.certain && self.exclusive).then_some(block.sequence),
            },
            _ => Expected::default(),
        };
        self.verifier.check(buffer, file, slot.offset, expected)
    }
}

/// The job reads back what it wrote.
pub(super) fn reads_back(options: &Options) -> bool {
    let payload = &options.payload;
    payload.verify != Verify::None
        && (payload.do_verify || payload.verify_only)
        && options.pattern.mode.goes(Way::Write)
}

impl Worker<'_> {
    /// Checks what a lane has read.
    pub(super) fn verify(&mut self, slot: &Slot, lane: u32) {
        let Some(verifying) = &mut self.verifying else {
            return;
        };
        if !(verifying.reads || verifying.reading_back) {
            return;
        }
        let file = match self.files.get(usize::from(slot.file)) {
            Some(file) => file.path().display().to_string(),
            None => "(no file)".to_owned(),
        };
        let buffer = self.lanes.buffer(lane, slot.len as usize);
        match verifying.check(buffer, &file, slot, lane) {
            Ok(()) => self.tally.verified_ios += 1,
            Err(mismatch) => {
                verifying.mismatches += 1;
                self.mismatched(&mismatch);
            }
        }
    }

    fn mismatched(&mut self, mismatch: &Mismatch) {
        if self.options.pace.pass_errors.verify {
            self.tally.errors_passed += 1;
            return;
        }
        self.card
            .failed
            .store(true, std::sync::atomic::Ordering::Release);
        let failure = Failure {
            errno: EILSEQ,
            text: mismatch.to_string(),
        };
        // The first is told; the others are looked for as well unless the first is fatal.
        self.failure.get_or_insert(failure);
        self.ending |= self.options.payload.verify_fatal;
    }

    /// `verify_only`: nothing is written; what the pattern would write should be there.
    pub(super) fn note_all(&mut self) {
        while let Next::Io(io) = self.pattern.next() {
            if let (Some(verifying), Way::Write) = (&mut self.verifying, io.way) {
                verifying.written.note(&io);
            }
        }
    }

    /// Reads back what was written and checks it; everything in flight has ended.
    pub(super) fn read_back(&mut self) -> Result<(), BlockError> {
        let Some(verifying) = &mut self.verifying else {
            return Ok(());
        };
        verifying.reading_back = true;
        let detailed = std::mem::replace(&mut self.detailed, true);
        let letter = self.card.state.load(std::sync::atomic::Ordering::Relaxed);
        self.card.set_state(b'V');
        let begun = self.clock.now_ns();
        loop {
            self.look_around();
            while !self.free.is_empty() && !self.ending {
                let Some(block) = self.verifying.as_mut().and_then(|all| all.written.take()) else {
                    break;
                };
                self.queue_block(&block);
            }
            if self.lanes.in_flight() + self.lanes.queued() == 0 {
                break;
            }
            self.turn_over()?;
        }
        let now = self.clock.now_ns();
        self.card.set_state(letter);
        self.detailed = detailed;
        if let Some(verifying) = &mut self.verifying {
            verifying.reading_back = false;
            verifying.read_back_ns += now - begun;
        }
        Ok(())
    }

    fn queue_block(&mut self, block: &WrittenBlock) {
        let lane = self.free.pop().expect("a lane is free");
        self.lanes.read(lane, block.file, block.offset, block.len);
        self.fresh[lane as usize] = true;
        let io = Io {
            way: Way::Read,
            file: block.file,
            offset: block.offset,
            len: block.len,
        };
        if let Some(verifying) = &mut self.verifying {
            verifying.blocks[lane as usize] = Some(*block);
        }
        self.enqueue(lane, &io, 0);
    }

    /// What could not be read back any more.
    pub(super) fn left_unverified(&self) -> usize {
        self.verifying
            .as_ref()
            .map_or(0, |verifying| verifying.written.len())
    }
}
