//! Faults: what can go wrong, armed ahead and counted when it does.

use super::mistake::{Mistake, Synced};
use super::{CHUNK_BYTES, SECTOR_BYTES, SimDisk, State, Step};
use rustix::io::Errno;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FaultKind {
    /// An un-synced write is lost as a whole at a power cut.
    Lost,
    /// Likewise, while a later write is kept.
    Reordered,
    /// A write is kept in part at a power cut of a disk with sectors of 512 bytes.
    Torn512,
    /// A write is kept in part at a power cut of a disk with sectors of 4096 bytes.
    Torn4096,
    /// A write goes to another place of the same file and is reported as done.
    Misdirected,
    /// A stored bit changes.
    BitRot,
    /// A read gives fewer bytes than asked for.
    ShortRead,
    /// A write takes fewer bytes than given.
    ShortWrite,
    /// A read fails (EIO).
    ReadError,
    /// A write fails (EIO); any part of it may have been done.
    WriteError,
    /// A synchronisation fails (EIO); some of the writes it covered are lost for good, and later ones do not report
    /// this.
    SyncError,
    /// A write fails for want of space (ENOSPC).
    NoSpace,
}

/// Every kind, in the order of [`SimDisk::hits`].
pub const FAULT_KINDS: [FaultKind; 12] = [
    FaultKind::Lost,
    FaultKind::Reordered,
    FaultKind::Torn512,
    FaultKind::Torn4096,
    FaultKind::Misdirected,
    FaultKind::BitRot,
    FaultKind::ShortRead,
    FaultKind::ShortWrite,
    FaultKind::ReadError,
    FaultKind::WriteError,
    FaultKind::SyncError,
    FaultKind::NoSpace,
];

impl FaultKind {
    /// Its name in a table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Lost => "lost write",
            Self::Reordered => "reordered write",
            Self::Torn512 => "torn write, 512",
            Self::Torn4096 => "torn write, 4096",
            Self::Misdirected => "misdirected write",
            Self::BitRot => "bit rot",
            Self::ShortRead => "short read",
            Self::ShortWrite => "short write",
            Self::ReadError => "EIO on read",
            Self::WriteError => "EIO on write",
            Self::SyncError => "EIO on sync",
            Self::NoSpace => "ENOSPC",
        }
    }

    fn acts_on(self, request: Asked) -> bool {
        match self {
            Self::Misdirected | Self::WriteError | Self::NoSpace => {
                matches!(request, Asked::Write | Asked::WholeWrite)
            }
            Self::ShortWrite => request == Asked::Write,
            Self::ShortRead | Self::ReadError => request == Asked::Read,
            Self::SyncError => request == Asked::Sync,
            Self::Lost | Self::Reordered | Self::Torn512 | Self::Torn4096 | Self::BitRot => false,
        }
    }
}

/// A fault to come.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Which; the kinds that a power cut or [`SimDisk::rot`] brings about cannot be armed and never hit.
    pub kind: FaultKind,
    /// Only requests to files whose name begins so count; empty is any.
    pub file_prefix: String,
    /// It hits the request after this many eligible ones.
    pub after: u64,
}

/// A fault that hit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    /// Which.
    pub kind: FaultKind,
    /// The file.
    pub path: PathBuf,
    /// Where the request went, bytes.
    pub offset: u64,
    /// Bytes it was for.
    pub bytes: usize,
    /// Where a misdirected write ended up instead; otherwise as `offset`.
    pub landed: u64,
}

/// What is asked of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Read,
    Write,
    /// By a caller that itself continues after a short write.
    WholeWrite,
    Sync,
}

/// How a write is asked for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct How {
    /// Its completion means that it is durable.
    pub(super) durable: bool,
    /// It was handed over while there was power: part of it may have been done when the power went.
    pub(super) under_way: bool,
    /// The caller goes on after a short write by itself.
    pub(super) whole: bool,
    /// It was asked for before any failure was told.
    pub(super) early: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Armed {
    fault: Fault,
    left: u64,
}

impl SimDisk {
    /// Arms a fault.
    pub fn arm(&self, fault: Fault) {
        let left = fault.after;
        self.state().armed.push(Armed { fault, left });
    }

    /// How often each of [`FAULT_KINDS`] has hit.
    #[must_use]
    pub fn hits(&self) -> [u64; FAULT_KINDS.len()] {
        self.state().hits
    }

    /// Every armed fault that hit, and every rot, in order.
    #[must_use]
    pub fn incidents(&self) -> Vec<Incident> {
        self.state().incidents.clone()
    }

    /// Writes and synchronisations requested after a failure was reported.
    #[must_use]
    pub fn steps_after_failure(&self) -> u64 {
        self.state().steps_after_failure
    }

    /// Changes one bit of a file, on the disk and for readers. Positions outside the file are ignored.
    pub fn rot(&self, path: &Path, offset: u64, bit: u32) {
        let mut state = self.state();
        let Some(file) = state.files.iter_mut().find(|file| file.path == path) else {
            return;
        };
        let (chunk, within) = (offset as usize / CHUNK_BYTES, offset as usize % CHUNK_BYTES);
        if chunk >= file.current.len() {
            return;
        }
        for chunks in [&mut file.current, &mut file.durable] {
            Arc::make_mut(&mut chunks[chunk])[within] ^= 1 << (bit % 8);
        }
        let incident = Incident { kind: FaultKind::BitRot, path: path.to_path_buf(), offset, bytes: 1, landed: offset };
        state.note(incident);
    }
}

impl SimDisk {
    /// Whether somebody was told of a failed write or synchronisation.
    pub(super) fn failure_told(&self) -> bool {
        self.state().failure_told
    }

    /// Somebody is told now.
    pub(super) fn tell_failure(&self) {
        let mut state = self.state();
        // What fails for want of power is no failure of the disk.
        state.failure_told |= state.power;
    }
}

impl State {
    pub(super) fn note(&mut self, incident: Incident) {
        self.count(incident.kind);
        self.incidents.push(incident);
    }

    pub(super) fn count(&mut self, kind: FaultKind) {
        self.hits[kind as usize] += 1;
    }

    /// The armed fault that hits this request, if one does.
    fn strike(&mut self, file: usize, asked: Asked) -> Option<FaultKind> {
        let path = &self.files[file].path;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let mut struck = None;
        self.armed.retain_mut(|armed| {
            let meant =
                struck.is_none() && armed.fault.kind.acts_on(asked) && name.starts_with(&armed.fault.file_prefix);
            if meant && armed.left == 0 {
                struck = Some(armed.fault.kind);
                return false;
            }
            armed.left -= u64::from(meant);
            true
        });
        struck
    }

    fn hit(&mut self, kind: FaultKind, file: usize, (offset, bytes): (u64, usize), landed: u64) {
        let path = self.files[file].path.clone();
        self.note(Incident { kind, path, offset, bytes, landed });
    }

    /// Reads, with whatever fault is due.
    pub(super) fn asked_read(&mut self, file: usize, offset: u64, out: &mut [u8]) -> Result<usize, Errno> {
        if !self.power {
            return Err(Errno::IO);
        }
        match self.strike(file, Asked::Read) {
            Some(kind @ FaultKind::ReadError) => {
                self.hit(kind, file, (offset, out.len()), offset);
                Err(Errno::IO)
            }
            Some(kind) => {
                self.hit(kind, file, (offset, out.len()), offset);
                let sectors = self.random.below(out.len() / SECTOR_BYTES);
                self.read(file, offset, &mut out[..sectors * SECTOR_BYTES])
            }
            None => {
                let count = self.read(file, offset, out)?;
                if let Some(mistake) = &self.mistake {
                    mistake.read(&self.files[file].path, offset, &mut out[..count]);
                }
                Ok(count)
            }
        }
    }

    /// Writes, with whatever fault is due.
    pub(super) fn asked_write(&mut self, file: usize, (offset, data): (u64, &[u8]), how: How) -> Result<usize, Errno> {
        let asked = Some((offset, how.durable));
        let mistaken = |mistake: &Arc<dyn Mistake>| mistake.write(&self.files[file].path, offset, how.durable);
        let Some((offset, durable)) = self.mistake.as_ref().map_or(asked, mistaken) else {
            return Ok(data.len());
        };
        let end = (self.files[file].current.len() * CHUNK_BYTES) as u64;
        if offset + data.len() as u64 > end {
            return Err(Errno::NOSPC);
        }
        match self.step(how.early) {
            Step::Goes => {}
            Step::Off if !how.under_way => return Err(Errno::IO),
            Step::GoesOff | Step::Off => {
                self.leave(file, offset, data);
                return Err(Errno::IO);
            }
        }
        let asked = if how.whole { Asked::WholeWrite } else { Asked::Write };
        let Some(kind) = self.strike(file, asked) else {
            self.put(file, offset, data, durable);
            return Ok(data.len());
        };
        if kind == FaultKind::Misdirected {
            let chunks = (end as usize - data.len()) / CHUNK_BYTES + 1;
            let landed = (self.random.below(chunks) * CHUNK_BYTES) as u64;
            if landed == offset {
                self.put(file, offset, data, durable);
            } else {
                self.hit(kind, file, (offset, data.len()), landed);
                self.put(file, landed, data, durable);
            }
            return Ok(data.len());
        }
        self.hit(kind, file, (offset, data.len()), offset);
        let done = self.random.below(data.len() / SECTOR_BYTES) * SECTOR_BYTES;
        if done > 0 {
            self.put(file, offset, &data[..done], durable && kind == FaultKind::ShortWrite);
        }
        match kind {
            FaultKind::ShortWrite => Ok(done),
            FaultKind::NoSpace => Err(Errno::NOSPC),
            _ => Err(Errno::IO),
        }
    }

    /// Synchronises, with whatever fault is due.
    pub(super) fn asked_sync(&mut self, file: usize, early: bool) -> Result<(), Errno> {
        let synced = self.mistake.as_ref().map_or(Synced::AsAsked, |mistake| mistake.sync(&self.files[file].path));
        if synced == Synced::LeftOut {
            return Ok(());
        }
        if self.step(early) != Step::Goes {
            return Err(Errno::IO);
        }
        let Some(kind) = self.strike(file, Asked::Sync) else {
            match synced {
                Synced::Late => self.late.push(file),
                _ => {
                    self.settle(file);
                    self.late_is_due = true;
                }
            }
            return Ok(());
        };
        self.hit(kind, file, (0, 0), 0);
        // What the kernel could not write it marks clean: the next synchronisation succeeds and the bytes are gone.
        let pending = std::mem::take(&mut self.files[file].pending);
        for pending in pending {
            if self.random.below(2) == 0 {
                let chunk = &mut self.files[file].durable[pending.chunk as usize];
                super::merge(chunk, &pending.data, pending.sectors);
            }
        }
        if synced == Synced::Unheard {
            // It was told.
            self.failure_told = true;
            return Ok(());
        }
        Err(Errno::IO)
    }
}
