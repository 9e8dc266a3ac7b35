//! The bytes of a control file: two slots, each a record with its checksum; how one is written, read and chosen.

use super::control::{Control, ENGINE_WORDS, MOST_NUMBER, SLOT_BYTES, State};
use super::layout::Geometry;
use super::paths::{self, PATHS_BYTES};

/// Format version this program writes and reads.
pub(super) const CONTROL_VERSION: u32 = 2;

const MAGIC: &[u8; 8] = b"ASSAYCTL";
const CRC_AT: usize = SLOT_BYTES - 4;
/// The table of paths lies between the engine's words and the checksum.
const PATHS_AT: usize = 144 + 8 * ENGINE_WORDS;
const _: () = assert!(PATHS_AT + PATHS_BYTES == CRC_AT, "the table of paths fills its room");
const FLAG_OBFUSCATE: u32 = 1;

impl Control {
    pub(super) fn encode(&self, sequence: u64) -> [u8; SLOT_BYTES] {
        let mut slot = [0; SLOT_BYTES];
        let g = &self.geometry;
        let mut at = Cursor { slot: &mut slot, at: 0 };
        at.bytes(MAGIC);
        at.u32(CONTROL_VERSION);
        at.u32(SLOT_BYTES as u32);
        at.u64(sequence);
        at.u64(self.data_set);
        at.u64(self.created_unix_s);
        at.u32(self.state as u32);
        at.u32(if self.obfuscate { FLAG_OBFUSCATE } else { 0 });
        at.u32(g.block_bytes);
        at.u32(g.schemas);
        at.u64(g.scale);
        at.u64(g.scan_blocks);
        at.u64(g.seed);
        at.u64(g.undo_blocks);
        at.u64(g.blocks_per_file);
        at.u32(self.loaded_schemas);
        at.u32(self.compress_pct);
        at.u32(self.redo_files);
        at.u32(self.log_block_bytes);
        at.u64(self.redo_file_bytes);
        at.u64(self.checkpoint_lsn);
        at.u64(self.log_sequence);
        at.u64(self.change_number);
        for word in self.engine {
            at.u64(word);
        }
        let table = paths::encode(&self.paths, g.stripes, self.undo_path, self.redo_path);
        slot[PATHS_AT..PATHS_AT + table.len()].copy_from_slice(&table);
        let crc = crc32c::crc32c(&slot[..CRC_AT]);
        slot[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        slot
    }

    /// The sequence number and content of a slot; a fragment saying why if it is not one.
    pub(super) fn decode(slot: &[u8]) -> Result<(u64, Self), String> {
        if slot.len() < SLOT_BYTES || slot[..8] != *MAGIC {
            return Err("no control record".into());
        }
        let mut from = Reader { slot, at: 8 };
        let version = from.u32();
        if version != CONTROL_VERSION {
            return Err(format!("format version {version}; this program reads version {CONTROL_VERSION}"));
        }
        let stored = Reader { slot, at: CRC_AT }.u32();
        if from.u32() as usize != SLOT_BYTES || crc32c::crc32c(&slot[..CRC_AT]) != stored {
            return Err("its checksum is wrong".into());
        }
        let sequence = from.u64();
        if sequence >= MOST_NUMBER {
            return Err(format!("its sequence {sequence} is out of range"));
        }
        let data_set = from.u64();
        let created_unix_s = from.u64();
        let state = match from.u32() {
            1 => State::Loading,
            2 => State::Clean,
            3 => State::Open,
            other => return Err(format!("state {other} is unknown")),
        };
        let flags = from.u32();
        if flags & !FLAG_OBFUSCATE != 0 {
            return Err(format!("flags {flags:#x} are unknown"));
        }
        let table = paths::decode(&slot[PATHS_AT..CRC_AT])?;
        let geometry = Geometry {
            block_bytes: from.u32(),
            schemas: from.u32(),
            scale: from.u64(),
            scan_blocks: from.u64(),
            seed: from.u64(),
            undo_blocks: from.u64(),
            blocks_per_file: from.u64(),
            stripes: table.stripes,
        };
        let control = Self {
            data_set,
            created_unix_s,
            state,
            geometry,
            obfuscate: flags & FLAG_OBFUSCATE != 0,
            loaded_schemas: from.u32(),
            compress_pct: from.u32(),
            redo_files: from.u32(),
            log_block_bytes: from.u32(),
            redo_file_bytes: from.u64(),
            checkpoint_lsn: from.u64(),
            log_sequence: from.u64(),
            change_number: from.u64(),
            engine: std::array::from_fn(|_| from.u64()),
            paths: table.paths,
            undo_path: table.undo,
            redo_path: table.redo,
        };
        control.validate()?;
        Ok((sequence, control))
    }
}

/// What a control file says, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    /// What counts.
    pub(super) control: Control,
    /// Why the other slot is no record, where it should be one. Perhaps a write of it was torn, perhaps it was the newer
    /// one and rotted: a data set that says clean is then said to be open, since redo tells whether it was used since.
    pub(super) damage: Option<String>,
    /// Counts the writes.
    pub(super) sequence: u64,
}

/// Both slots of a new control file: the second holds the record.
pub(super) fn first_slots(control: &Control) -> [u8; 2 * SLOT_BYTES] {
    let mut both = [0; 2 * SLOT_BYTES];
    both[SLOT_BYTES..].copy_from_slice(&control.encode(1));
    both
}

/// The record that counts of both slots' bytes, or what is wrong with each.
pub(super) fn judge_slots(both: &[u8]) -> Result<Stored, String> {
    let mut best: Option<(u64, Control)> = None;
    let mut reasons = Vec::new();
    let mut empty = false;
    for (number, at) in [(1, 0), (2, SLOT_BYTES)] {
        let slot = both.get(at..).unwrap_or_default();
        let slot = &slot[..slot.len().min(SLOT_BYTES)];
        match Control::decode(slot) {
            Ok(found) if best.as_ref().is_none_or(|b| b.0 < found.0) => best = Some(found),
            Ok(_) => {}
            Err(reason) => {
                empty |= slot.iter().all(|byte| *byte == 0);
                reasons.push(format!("slot {number}: {reason}"));
            }
        }
    }
    let Some((sequence, mut control)) = best else {
        return Err(reasons.join(", "));
    };
    // Only the very first record stands alone, for a moment.
    let damage = reasons.pop().filter(|_| !(empty && sequence == 1));
    if damage.is_some() && control.state == State::Clean {
        control.state = State::Open;
    }
    Ok(Stored { control, damage, sequence })
}

struct Cursor<'a> {
    slot: &'a mut [u8; SLOT_BYTES],
    at: usize,
}

impl Cursor<'_> {
    fn bytes(&mut self, bytes: &[u8]) {
        self.slot[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }
    fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }
    fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }
}

struct Reader<'a> {
    slot: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let bytes = &self.slot[self.at..self.at + N];
        self.at += N;
        bytes.try_into().expect("the slice has N bytes")
    }
    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }
    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}
