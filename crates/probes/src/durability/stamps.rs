//! Stamps: what each block of the file says of itself, the file, and what became of acknowledged ones.

use super::info::Cut;
use crate::scratch::failed;
use assay_block::BlockingWriter;
use assay_measure::prng::{GOLDEN_GAMMA, SplitMix64};
use assay_run::engine::EngineError;
use assay_run::owned;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes of a block: a page of PostgreSQL.
pub(super) const BLOCK_BYTES: usize = 8192;
const SECTOR_BYTES: usize = 512;
/// Of a sector: sequence, position, number of the sector, session.
const HEAD_BYTES: usize = 32;
/// Blocks of stamps behind the block that says what the file is.
pub(super) const BLOCKS: u32 = 8191;
pub(super) const FILE_BYTES: u64 = (BLOCKS as u64 + 1) * BLOCK_BYTES as u64;
/// Its name in the directory.
const NAME: &str = "assay-durability.stamps";
const FIRST_LINE: &str = "assay durability stamps 1: kept for --resume";
/// Zeroes that are written at once.
const CHUNK_BYTES: usize = 1 << 20;

/// A stamp as the witness keeps it. Sequence 0: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) sequence: u64,
    pub(super) position: u32,
    pub(super) checksum: u32,
}

/// What a block of the file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// Zeroes, or another session's.
    Nothing,
    /// A whole stamp, of whatever place.
    Whole(Stamp),
    /// Parts of several writes, or what nobody wrote.
    Torn,
}

/// Where a stamp is written: one block after the other, and from the front again.
pub(super) fn position_of(sequence: u64, blocks: u32) -> u32 {
    (sequence.saturating_sub(1) % u64::from(blocks.max(1))) as u32
}

/// Fills a block: every sector says which stamp it belongs to, between bytes that no layer can compress; the checksum ends it.
pub(super) fn fill(block: &mut [u8], session: u128, sequence: u64, position: u32) -> Stamp {
    SplitMix64(sequence.wrapping_mul(GOLDEN_GAMMA) ^ session as u64).fill(block);
    for (number, sector) in block.chunks_exact_mut(SECTOR_BYTES).enumerate() {
        sector[..8].copy_from_slice(&sequence.to_le_bytes());
        sector[8..12].copy_from_slice(&position.to_le_bytes());
        sector[12..16].copy_from_slice(&(number as u32).to_le_bytes());
        sector[16..HEAD_BYTES].copy_from_slice(&session.to_le_bytes());
    }
    let (body, end) = block.split_at_mut(BLOCK_BYTES - 4);
    let checksum = crc32c::crc32c(body);
    end.copy_from_slice(&checksum.to_le_bytes());
    Stamp { sequence, position, checksum }
}

/// Reads a block.
pub(super) fn held(block: &[u8], session: u128) -> Held {
    let (body, end) = block.split_at(BLOCK_BYTES - 4);
    if block.iter().all(|byte| *byte == 0) {
        return Held::Nothing;
    }
    let checksum = crc32c::crc32c(body);
    if end != checksum.to_le_bytes() {
        return Held::Torn;
    }
    if block[16..HEAD_BYTES] != session.to_le_bytes() {
        return Held::Nothing;
    }
    let mut sequence = [0; 8];
    sequence.copy_from_slice(&block[..8]);
    let position = u32::from_le_bytes([block[8], block[9], block[10], block[11]]);
    Held::Whole(Stamp { sequence: u64::from_le_bytes(sequence), position, checksum })
}

/// The write under way, for [`Cut::under_way`].
const OLD: &str = "not there";
const NEW: &str = "whole";
pub(super) const TORN: &str = "torn";

/// Counts what became of acknowledged stamps, of which the witness knows the last at each place; the one after `last` was under way.
pub(super) fn judge(acknowledged: &[Stamp], last: u64, blocks: &[Held]) -> Cut {
    let mut cut = Cut { under_way: OLD.to_owned(), ..Cut::default() };
    let under_way = position_of(last + 1, blocks.len() as u32) as usize;
    let mut lost = Vec::new();
    let mut newest = 0;
    for (place, held) in blocks.iter().enumerate() {
        let known = acknowledged.get(place).copied().unwrap_or_default();
        let is_there = |stamp: &Stamp| stamp.position as usize == place;
        if place == under_way {
            match held {
                Held::Whole(stamp) if is_there(stamp) && stamp.sequence == last + 1 => {
                    NEW.clone_into(&mut cut.under_way)
                }
                Held::Torn => TORN.clone_into(&mut cut.under_way),
                _ => {}
            }
            // It may have taken the place of the acknowledged one.
            if cut.under_way != OLD {
                continue;
            }
        }
        if known.sequence == 0 {
            continue;
        }
        cut.acknowledged_count += 1;
        match held {
            Held::Whole(stamp) if *stamp == known => newest = newest.max(stamp.sequence),
            Held::Whole(stamp) if !is_there(stamp) => cut.reordered_count += 1,
            Held::Whole(_) | Held::Nothing => lost.push(known.sequence),
            Held::Torn => cut.torn_count += 1,
        }
    }
    cut.lost_count = lost.len() as u64;
    cut.overtaken_count = lost.iter().filter(|sequence| **sequence < newest).count() as u64;
    cut
}

/// The newest stamp of a file.
pub(super) fn newest(blocks: &[Held]) -> Option<u64> {
    let sequence = |held: &Held| match held {
        Held::Whole(stamp) => Some(stamp.sequence),
        _ => None,
    };
    blocks.iter().filter_map(sequence).max()
}

/// The first line and this make its first block.
#[derive(Serialize, Deserialize)]
struct About {
    session: String,
}

/// The file of a session, which stays until the user removes it.
#[derive(Debug)]
pub(super) struct StampFile {
    pub(super) path: PathBuf,
    pub(super) session: u128,
    file: File,
}

pub(super) fn path_in(directory: &Path) -> PathBuf {
    directory.join(NAME)
}

impl StampFile {
    /// The one that is there, if there is one; nothing is written to it.
    pub(super) fn find(directory: &Path) -> Result<Option<Self>, EngineError> {
        let path = path_in(directory);
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let opened = File::options().read(true).write(true).custom_flags(flags as i32).open(&path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(cannot("open", &path, error)),
        };
        let about = file.metadata().map_err(|error| cannot("examine", &path, error))?;
        let mut head = vec![0; BLOCK_BYTES];
        let read = about.is_file().then(|| file.read_exact_at(&mut head, 0));
        let session = read.and_then(Result::ok).and_then(|()| session_of(&head));
        match session {
            Some(session) if about.len() == FILE_BYTES => Ok(Some(Self { path, session, file })),
            _ => Err(EngineError::Unusable(format!(
                "{}: this is no whole file of stamps. assay leaves it as it is: move it away, or name another directory",
                path.display()
            ))),
        }
    }

    /// A new one, durable with its name.
    pub(super) fn create(directory: &Path, session: u128, goes_on: &dyn Fn() -> bool) -> Result<Self, EngineError> {
        let path = path_in(directory);
        let flags = OFlags::NOFOLLOW.bits() as i32;
        let file = File::options().read(true).write(true).create_new(true).custom_flags(flags).open(&path);
        let file = file.map_err(|error| cannot("create", &path, error))?;
        let made = Self { path, session, file };
        let filled = made.zeroes(goes_on).and_then(|()| {
            let about = About { session: format!("{session:032x}") };
            let about = serde_json::to_string(&about).unwrap_or_default();
            // The head comes last: a file that is not whole has none.
            let written = made.file.write_all_at(format!("{FIRST_LINE}\n{about}\n").as_bytes(), 0);
            let synced = written.and_then(|()| made.file.sync_all());
            let named = synced.and_then(|()| File::open(directory)?.sync_all());
            named.map_err(|error| cannot("write", &made.path, error))
        });
        if filled.is_err() {
            // The error that led here is the one to tell.
            let _ = fs::remove_file(&made.path);
        }
        filled.map(|()| made)
    }

    fn zeroes(&self, goes_on: &dyn Fn() -> bool) -> Result<(), EngineError> {
        let mut writer = BlockingWriter::open(&owned::through(&self.file), CHUNK_BYTES, true).map_err(failed)?;
        for at in (0..FILE_BYTES).step_by(CHUNK_BYTES) {
            if !goes_on() {
                return Err(EngineError::Interrupted);
            }
            writer.write(at, CHUNK_BYTES, false).map_err(failed)?;
        }
        writer.sync_all().map_err(failed)
    }

    /// To write stamps with.
    pub(super) fn writer(&self) -> Result<BlockingWriter, EngineError> {
        BlockingWriter::open(&owned::through(&self.file), BLOCK_BYTES, true).map_err(failed)
    }

    /// What each block holds.
    pub(super) fn read(&self) -> Result<Vec<Held>, EngineError> {
        let mut block = vec![0; BLOCK_BYTES];
        let read = |place: u32| {
            self.file.read_exact_at(&mut block, offset_of(place))?;
            Ok(held(&block, self.session))
        };
        (0..BLOCKS).map(read).collect::<io::Result<_>>().map_err(|error| cannot("read", &self.path, error))
    }
}

/// Where a block of stamps begins.
pub(super) fn offset_of(place: u32) -> u64 {
    (u64::from(place) + 1) * BLOCK_BYTES as u64
}

fn session_of(head: &[u8]) -> Option<u128> {
    let text = std::str::from_utf8(head).ok()?;
    let mut lines = text.trim_end_matches('\0').lines();
    let about: About =
        (lines.next() == Some(FIRST_LINE)).then(|| lines.next())?.and_then(|l| serde_json::from_str(l).ok())?;
    u128::from_str_radix(&about.session, 16).ok()
}

pub(super) fn cannot(what: &str, path: &Path, source: io::Error) -> EngineError {
    EngineError::Io { what: format!("cannot {what} {}", path.display()), source }
}
