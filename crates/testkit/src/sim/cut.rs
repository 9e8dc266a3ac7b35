//! Power cuts: which of the un-synced sectors are left.

use super::{CHUNK_BYTES, FaultKind, FileState, Pending, SECTOR_BYTES, SimDisk, State, WHOLE, merge};
use std::sync::Arc;

/// What remains of unsynced writes after a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The seed decides, sector by sector; sectors are of `sector_bytes` (512 or 4096).
    Seeded {
        /// Bytes the disk writes at once.
        sector_bytes: usize,
    },
    /// Exactly the units of a set, numbered as [`SimDisk::units`] counts them.
    Exactly {
        /// Bytes the disk writes at once.
        sector_bytes: usize,
        /// The unit that bit 0 of `kept` represents.
        first: usize,
        /// Bit i says whether unit `first` + i is kept.
        kept: u8,
        /// Whether all other units are.
        others: bool,
    },
}

/// What a cut did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CutReport {
    /// Sectors, of the cut's size, that were un-synced.
    pub units: usize,
    /// Of these, kept.
    pub kept: usize,
}

/// One write as it fared.
#[derive(Default, Clone, Copy)]
struct Fate {
    write: u32,
    kept: usize,
    lost: usize,
}

/// How a seeded cut draws.
#[derive(Clone, Copy)]
enum Draw {
    /// Everything or nothing.
    All(bool),
    /// Each write as a whole, with this chance in 256.
    Writes(u64),
    /// Each sector independently, with this probability in 256.
    Sectors(u64),
    /// The first so many units.
    Prefix(usize),
}

impl SimDisk {
    /// Sectors of `sector_bytes` that are unsynced now, in the order they were written: a cut decides about these.
    #[must_use]
    pub fn units(&self, sector_bytes: usize) -> usize {
        let state = self.state();
        let count = |pending: &Pending| units_of(pending, sector_bytes).count();
        let files = state.files.iter();
        files.flat_map(|file| &file.pending).map(count).sum()
    }

    /// Cuts the power if it is still on, decides what remains, and restarts the disk with that: nothing is open,
    /// locked, armed or unsynced any more. No user of the disk may remain.
    pub fn power_cut(&self, cut: Cut) -> CutReport {
        let mut state = self.state();
        let sector_bytes = match cut {
            Cut::Seeded { sector_bytes } | Cut::Exactly { sector_bytes, .. } => sector_bytes,
        };
        let mut pending: Vec<(usize, Pending)> = Vec::new();
        for (number, file) in state.files.iter_mut().enumerate() {
            pending.extend(file.pending.drain(..).map(|pending| (number, pending)));
        }
        pending.sort_by_key(|(_, pending)| pending.write);
        let units: usize = pending.iter().map(|(_, pending)| units_of(pending, sector_bytes).count()).sum();
        let draw = state.draw(units);
        let mut report = CutReport { units, kept: 0 };
        let mut fates: Vec<Fate> = Vec::new();
        let mut unit: usize = 0;
        for (number, pending) in &pending {
            if fates.last().is_none_or(|fate| fate.write != pending.write) {
                fates.push(Fate { write: pending.write, ..Fate::default() });
            }
            let fate = fates.last_mut().expect("one was just pushed or there was one");
            for sectors in units_of(pending, sector_bytes) {
                let keep = match cut {
                    Cut::Exactly { first, kept, others, .. } => match unit.checked_sub(first) {
                        Some(bit) if bit < 8 => kept >> bit & 1 == 1,
                        _ => others,
                    },
                    Cut::Seeded { .. } => state.keeps(draw, unit, fate),
                };
                unit += 1;
                if keep {
                    let chunk = &mut state.files[*number].durable[pending.chunk as usize];
                    merge(chunk, &pending.data, sectors);
                    fate.kept += 1;
                    report.kept += 1;
                } else {
                    fate.lost += 1;
                }
            }
        }
        state.judge(&fates, sector_bytes);
        state.restart();
        report
    }
}

impl State {
    fn draw(&mut self, units: usize) -> Draw {
        match self.random.below(8) {
            0 => Draw::All(true),
            1 => Draw::All(false),
            2 => Draw::Prefix(self.random.below(units + 1)),
            3 | 4 => Draw::Writes(16 + self.random.next() % 224),
            _ => Draw::Sectors(16 + self.random.next() % 224),
        }
    }

    fn keeps(&mut self, draw: Draw, unit: usize, fate: &Fate) -> bool {
        match draw {
            Draw::All(all) => all,
            Draw::Prefix(end) => unit < end,
            Draw::Sectors(chance) => self.random.next() % 256 < chance,
            Draw::Writes(_) if fate.kept + fate.lost > 0 => fate.kept > 0,
            Draw::Writes(chance) => self.random.next() % 256 < chance,
        }
    }

    /// Counts what became of each write.
    fn judge(&mut self, fates: &[Fate], sector_bytes: usize) {
        let mut later_kept = false;
        for fate in fates.iter().rev() {
            if fate.kept == 0 {
                self.count(FaultKind::Lost);
                if later_kept {
                    self.count(FaultKind::Reordered);
                }
            } else if fate.lost > 0 {
                self.count(if sector_bytes == SECTOR_BYTES { FaultKind::Torn512 } else { FaultKind::Torn4096 });
            }
            later_kept |= fate.kept > 0;
        }
    }

    fn restart(&mut self) {
        self.power = true;
        self.fuse = None;
        self.steps = 0;
        self.armed.clear();
        self.failure_told = false;
        self.late.clear();
        self.late_is_due = false;
        for file in &mut self.files {
            let FileState { current, durable, .. } = file;
            for (now, kept) in current.iter_mut().zip(durable.iter()) {
                if !Arc::ptr_eq(now, kept) {
                    *now = Arc::clone(kept);
                }
            }
            file.locked = false;
        }
    }
}

/// The masks of the units that can be kept or lost on their own.
fn units_of(pending: &Pending, sector_bytes: usize) -> impl Iterator<Item = u8> + use<> {
    let sectors = pending.sectors;
    let whole = sector_bytes >= CHUNK_BYTES;
    let masks = if whole { 0..1 } else { 0..8 };
    masks.map(move |i| if whole { WHOLE } else { 1 << i }).map(move |mask: u8| mask & sectors).filter(|mask| *mask != 0)
}
