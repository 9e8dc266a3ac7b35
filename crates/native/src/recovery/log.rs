//! Reads the redo log from the checkpoint to its tail.
//!
//! The tail is the first block that does not verify or does not follow. A power cut can leave only blocks of the last,
//! unacknowledged flush behind it; a block there that begins a flush, or a later log file, proves that the missing part
//! had been acknowledged, and that is damage, never a tail.

use super::io::{Io, REQUEST_BYTES, Span};
use crate::control::{Control, FRESH_LOG_WORD, MOST_NUMBER};
use crate::files::Files;
use crate::redo_format::{FIRST_LSN, FileHeader, LOG_HEADER_BYTES, block_seed, open_block, open_file_header};
use assay_run::engine::EngineError;

/// Bytes of log read at a time.
const CHUNK_BYTES: usize = 32 << 20;
/// Bytes behind the tail that are searched for a proof that it is none: several flushes.
const PROOF_BYTES: usize = 8 << 20;

/// Where reading stands.
pub(super) struct LogReader<'a> {
    files: &'a Files,
    data_set: u64,
    block_bytes: usize,
    file_blocks: u64,
    headers: Vec<Option<FileHeader>>,
    sequence: u64,
    next_block: u64,
    /// The first block that may hold the checkpoint's LSN: all before it are whole and older.
    not_before: u64,
    start_lsn: u64,
    /// LSN of the next payload byte; unknown until the block that holds `start_lsn` is found.
    expected: Option<u64>,
    ended: bool,
    bytes_read: u64,
    total_bytes: u64,
}

/// What one look at a block said.
enum Look {
    /// Payload from this byte of the block on.
    Payload(usize, usize),
    /// Whole, and before the checkpoint.
    Before,
    /// Not readable, at a place where the redo that the checkpoint needs may not have begun yet.
    Skip,
    /// The log does not continue here.
    Hole,
}

impl<'a> LogReader<'a> {
    /// Finds the file that holds the checkpoint.
    ///
    /// # Errors
    /// `Damaged` when a log file's header that must be there is not.
    pub(super) fn open(io: &mut Io<'_>, files: &'a Files, control: &Control) -> Result<Self, EngineError> {
        let block_bytes = control.log_block_bytes as usize;
        let spans: Vec<Span> = (0..files.redo_count)
            .map(|redo| Span { file: files.redo_first + redo, offset: 0, bytes: block_bytes })
            .collect();
        let mut headers = vec![None; spans.len()];
        io.read(&spans, |i, block| {
            headers[i] = open_file_header(control.data_set, block);
            match headers[i] {
                Some(header) => expect_header(files, control, i, header),
                None => Ok(()),
            }
        })?;
        let start_lsn = control.checkpoint_lsn.max(FIRST_LSN);
        let mut reader = Self {
            files,
            data_set: control.data_set,
            block_bytes,
            file_blocks: control.redo_file_bytes / block_bytes as u64,
            headers,
            sequence: control.log_sequence,
            next_block: 1,
            not_before: 1,
            start_lsn,
            expected: None,
            ended: false,
            bytes_read: 0,
            total_bytes: 0,
        };
        let fresh_after = control.engine[FRESH_LOG_WORD];
        if fresh_after > 0 && fresh_after == control.log_sequence {
            reader.start_after(fresh_after);
        } else {
            reader.find_start(control.log_sequence)?;
        }
        Ok(reader)
    }

    /// A recovery ended at the checkpoint, and what the log held behind it counts no more: redo since then is in the
    /// files after this one, if there is any.
    fn start_after(&mut self, sequence: u64) {
        self.sequence = sequence;
        self.next_block = self.file_blocks;
        self.expected = Some(self.start_lsn);
    }

    fn find_start(&mut self, current: u64) -> Result<(), EngineError> {
        if current > 0 && self.header(current).is_none() {
            return Err(self.damaged_header(current));
        }
        let start = self
            .headers
            .iter()
            .flatten()
            .filter(|header| header.first_lsn <= self.start_lsn)
            .max_by_key(|header| header.sequence);
        match start {
            Some(header) => self.sequence = header.sequence,
            // Nothing was ever logged, or the first file's header never reached the disk.
            None if current == 0 => {
                self.ended = true;
                self.expected = Some(self.start_lsn);
            }
            None => {
                let names: Vec<String> = (0..self.headers.len() as u64).map(|number| self.file_name(number)).collect();
                return Err(EngineError::Damaged(format!(
                    "no redo log file contains the checkpoint's LSN {}: {}",
                    self.start_lsn,
                    names.join(", ")
                )));
            }
        }
        let later = self.headers.iter().flatten();
        let files = later.filter(|h| h.sequence >= self.sequence).count() as u64;
        self.total_bytes = files * self.file_blocks * self.block_bytes as u64;
        Ok(())
    }

    /// The header of this incarnation, if its file carries it.
    fn header(&self, sequence: u64) -> Option<FileHeader> {
        self.headers[self.file_number(sequence)].filter(|header| header.sequence == sequence)
    }

    fn file_number(&self, sequence: u64) -> usize {
        (sequence % self.headers.len() as u64) as usize
    }

    fn file_index(&self, sequence: u64) -> u16 {
        self.files.redo_first + self.file_number(sequence) as u16
    }

    fn file_name(&self, sequence: u64) -> String {
        let path = self.files.path(self.file_index(sequence));
        path.display().to_string()
    }

    fn damaged_header(&self, sequence: u64) -> EngineError {
        EngineError::Damaged(format!(
            "{}: the header of log sequence {sequence} is not readable",
            self.file_name(sequence)
        ))
    }

    /// LSN of the first byte not read; the tail once reading has ended.
    pub(super) fn position(&self) -> u64 {
        self.expected.unwrap_or(self.start_lsn)
    }

    /// Where reading begins.
    pub(super) fn start_lsn(&self) -> u64 {
        self.start_lsn
    }

    /// The highest log sequence on disk.
    pub(super) fn last_sequence(&self) -> u64 {
        let found = self.headers.iter().flatten().map(|h| h.sequence).max();
        found.unwrap_or(0)
    }

    /// Bytes of log files read, and an upper bound of what there is to read.
    pub(super) fn progress(&self) -> (u64, u64) {
        (self.bytes_read, self.total_bytes.max(self.bytes_read))
    }

    /// Appends the next piece of payload to `out`; `false` at the tail.
    ///
    /// # Errors
    /// I/O errors; `Damaged` when the log is broken before its tail.
    pub(super) fn next(&mut self, io: &mut Io<'_>, out: &mut Vec<u8>) -> Result<bool, EngineError> {
        if self.ended {
            return Ok(false);
        }
        if self.next_block >= self.file_blocks && !self.next_file(io)? {
            self.ended = true;
            return Ok(false);
        }
        let chunk = self.read_chunk(io, self.sequence, self.next_block, CHUNK_BYTES)?;
        let seed = block_seed(self.data_set, self.sequence);
        let blocks = chunk.len() / self.block_bytes;
        for i in 0..blocks {
            let block = &chunk[i * self.block_bytes..][..self.block_bytes];
            match self.look(block, seed) {
                Look::Payload(from, to) => out.extend_from_slice(&block[from..to]),
                Look::Before => self.not_before = self.next_block + i as u64 + 1,
                Look::Skip => {}
                Look::Hole => {
                    self.prove_tail(io, &chunk[i * self.block_bytes..], i as u64)?;
                    self.expected.get_or_insert(self.start_lsn);
                    self.ended = true;
                    return Ok(true);
                }
            }
        }
        self.next_block += blocks as u64;
        Ok(true)
    }

    fn look(&mut self, block: &[u8], seed: u32) -> Look {
        let header = open_block(block, seed);
        match (self.expected, header) {
            (_, Some(header)) if header.lsn >= MOST_NUMBER => Look::Hole,
            (Some(expected), Some(header)) if header.lsn == expected => {
                let payload = usize::from(header.payload);
                self.expected = Some(expected + payload as u64);
                Look::Payload(LOG_HEADER_BYTES, LOG_HEADER_BYTES + payload)
            }
            (Some(_), _) => Look::Hole,
            // Before the checkpoint nothing is needed any more, whatever it looks like.
            (None, None) => Look::Skip,
            (None, Some(header)) => {
                let end = header.lsn + u64::from(header.payload);
                if end <= self.start_lsn {
                    return Look::Before;
                }
                if header.lsn > self.start_lsn {
                    return Look::Hole;
                }
                self.expected = Some(end);
                let from = LOG_HEADER_BYTES + (self.start_lsn - header.lsn) as usize;
                Look::Payload(from, LOG_HEADER_BYTES + usize::from(header.payload))
            }
        }
    }

    fn read_chunk(
        &mut self,
        io: &mut Io<'_>,
        sequence: u64,
        first_block: u64,
        most_bytes: usize,
    ) -> Result<Vec<u8>, EngineError> {
        let blocks = (most_bytes / self.block_bytes) as u64;
        let blocks = blocks.min(self.file_blocks - first_block);
        let bytes = blocks as usize * self.block_bytes;
        let file = self.file_index(sequence);
        let begin = first_block * self.block_bytes as u64;
        let spans: Vec<Span> = (0..bytes)
            .step_by(REQUEST_BYTES)
            .map(|at| Span { file, offset: begin + at as u64, bytes: REQUEST_BYTES.min(bytes - at) })
            .collect();
        let mut chunk = vec![0; bytes];
        io.read(&spans, |i, data| {
            chunk[i * REQUEST_BYTES..][..data.len()].copy_from_slice(data);
            Ok(())
        })?;
        self.bytes_read += bytes as u64;
        Ok(chunk)
    }

    /// Goes on in the file after the one that is full, if the log did.
    fn next_file(&mut self, io: &mut Io<'_>) -> Result<bool, EngineError> {
        let next = self.sequence + 1;
        let position = *self.expected.get_or_insert(self.start_lsn);
        match self.header(next) {
            Some(header) if header.first_lsn == position => {
                self.sequence = next;
                self.next_block = 1;
                self.not_before = 1;
                Ok(true)
            }
            Some(header) => Err(EngineError::Damaged(format!(
                "{}: log sequence {next} begins at LSN {}, but the one before ends at {position}",
                self.file_name(next),
                header.first_lsn
            ))),
            None => {
                // Blocks of that incarnation without its header: the header was there once.
                let chunk = self.read_chunk(io, next, 1, PROOF_BYTES)?;
                let seed = block_seed(self.data_set, next);
                let any = chunk.chunks_exact(self.block_bytes).any(|block| open_block(block, seed).is_some());
                if any {
                    return Err(self.damaged_header(next));
                }
                Ok(false)
            }
        }
    }

    /// Whether what was found is the tail: nothing behind it may prove that it had been acknowledged.
    fn prove_tail(&mut self, io: &mut Io<'_>, rest: &[u8], block_in_chunk: u64) -> Result<(), EngineError> {
        let lsn = self.position();
        let seed = block_seed(self.data_set, self.sequence);
        let found = self.next_block + block_in_chunk;
        // Where nothing was read yet, the redo that is missing lies before what was found.
        let block = self.expected.map_or(self.not_before, |_| found);
        let bytes = self.block_bytes;
        // A flush proves what lies before the blocks that were under way with it.
        let proof = |rest: &[u8], first: u64| {
            (first..).zip(rest.chunks_exact(bytes)).any(|(number, data)| {
                open_block(data, seed).is_some_and(|b| {
                    // With nothing under way, all redo before it was durable, wherever it stands.
                    let proven = number.saturating_sub(b.unproven.into());
                    b.first && b.lsn > lsn && (b.unproven == 0 || proven > block)
                })
            })
        };
        let behind = found + (rest.len() / bytes) as u64;
        let mut acknowledged = proof(rest, found);
        if !acknowledged && behind < self.file_blocks {
            let more = self.read_chunk(io, self.sequence, behind, PROOF_BYTES)?;
            acknowledged = proof(&more, behind);
        }
        let later = self.header(self.sequence + 1);
        if acknowledged || later.is_some_and(|header| header.first_lsn > lsn) {
            return Err(EngineError::Damaged(format!(
                "{}, log block {block} (byte {}): LSN {lsn} of log sequence {} is not readable, but redo after it \
                 was acknowledged: committed work is lost, so assay recovers nothing",
                self.file_name(self.sequence),
                block * bytes as u64,
                self.sequence
            )));
        }
        Ok(())
    }
}

/// Whether the header of log file `number` says what one written after this control file can say: a file is opened before
/// the control file tells of it, and a lost control record may hide one more.
fn expect_header(files: &Files, control: &Control, number: usize, header: FileHeader) -> Result<(), EngineError> {
    let count = u64::from(files.redo_count);
    let most = control.log_sequence + count;
    let right = (1..=most).contains(&header.sequence)
        && header.sequence % count == number as u64
        && header.first_lsn < MOST_NUMBER;
    if right {
        return Ok(());
    }
    Err(EngineError::Damaged(format!(
        "{}: its header says log sequence {} from LSN {}, which cannot follow log sequence {} of the control file",
        files.path(files.redo_first + number as u16).display(),
        header.sequence,
        header.first_lsn,
        control.log_sequence
    )))
}
