//! The blocks recovery works on: fetched in bulk, changed in memory, written back in runs.

use super::io::{Io, REQUEST_BYTES, Span};
use crate::block_format::{self, Kind, word};
use crate::control::Control;
use crate::files::Files;
use crate::layout::{Class, Page, PageMap, UNDO_BASE};
use assay_run::engine::EngineError;
use std::collections::{BTreeSet, HashMap};

/// Unwanted pages read along between two wanted ones at most: cheaper than a request more.
const MOST_GAP_PAGES: u64 = 6;

/// A place for a block in `memory`.
fn place(memory: &mut Vec<u8>, free: &mut Vec<usize>, block_bytes: usize) -> usize {
    free.pop().unwrap_or_else(|| {
        let at = memory.len();
        memory.resize(at + block_bytes, 0);
        at
    })
}

/// A block in memory.
struct Held {
    at: usize,
    dirty: bool,
}

/// Blocks in memory, by page; at most as many as the budget allows.
pub(super) struct Pages<'a> {
    files: &'a Files,
    map: PageMap,
    data_set: u64,
    block_bytes: usize,
    most: usize,
    memory: Vec<u8>,
    /// Places in `memory` that hold nothing.
    free: Vec<usize>,
    held: HashMap<Page, Held>,
    /// Blocks whose checksum was wrong when they were read: torn, if they are correct after redo.
    suspects: BTreeSet<Page>,
    pub(super) blocks_read: u64,
    pub(super) blocks_written: u64,
}

impl<'a> Pages<'a> {
    /// Room for `budget_bytes` of blocks, at least 64 of them.
    pub(super) fn new(files: &'a Files, control: &Control, budget_bytes: u64) -> Self {
        let block_bytes = control.geometry.block_bytes as usize;
        Self {
            files,
            map: control.geometry.map(),
            data_set: control.data_set,
            block_bytes,
            most: (budget_bytes as usize / block_bytes).max(64),
            memory: Vec::new(),
            free: Vec::new(),
            held: HashMap::new(),
            suspects: BTreeSet::new(),
            blocks_read: 0,
            blocks_written: 0,
        }
    }

    /// The layout.
    pub(super) fn map(&self) -> &PageMap {
        &self.map
    }

    /// Pages to be brought in at once at most.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Whether the page is in memory.
    pub(super) fn holds(&self, page: Page) -> bool {
        self.held.contains_key(&page)
    }

    /// Brings pages in and leaves room for `new` formatted ones; those that have to make room are written back first.
    ///
    /// # Errors
    /// I/O errors; `Damaged` for a block that is another one than it should be.
    pub(super) fn fetch(&mut self, io: &mut Io<'_>, wanted: &[Page], new: usize) -> Result<(), EngineError> {
        let absent = |held: &HashMap<Page, Held>| {
            let mut absent: Vec<Page> = wanted.iter().copied().filter(|p| !held.contains_key(p)).collect();
            absent.sort_unstable();
            absent.dedup();
            absent
        };
        let mut missing = absent(&self.held);
        if self.held.len() + missing.len() + new > self.most {
            self.make_room(io, missing.len() + new)?;
            missing = absent(&self.held);
        }
        let runs = self.runs(&missing, MOST_GAP_PAGES);
        let spans: Vec<Span> = runs.iter().map(|(_, span)| *span).collect();
        let mut arrived: Vec<(Page, usize)> = Vec::with_capacity(missing.len());
        let (memory, free, block_bytes) = (&mut self.memory, &mut self.free, self.block_bytes);
        io.read(&spans, |i, data| {
            for (page, block) in (runs[i].0.0..).map(Page).zip(data.chunks_exact(block_bytes)) {
                if missing.binary_search(&page).is_ok() {
                    let at = place(memory, free, block_bytes);
                    memory[at..at + block_bytes].copy_from_slice(block);
                    arrived.push((page, at));
                }
            }
            Ok(())
        })?;
        self.blocks_read += arrived.len() as u64;
        for (page, at) in arrived {
            self.admit(page, at)?;
        }
        Ok(())
    }

    /// Writes everything back, then lets undo go, which is hardly needed again, and all the rest if that is too little.
    fn make_room(&mut self, io: &mut Io<'_>, blocks: usize) -> Result<(), EngineError> {
        self.write_back(io)?;
        let free = &mut self.free;
        self.held.retain(|page, held| {
            let stays = page.0 < UNDO_BASE;
            if !stays {
                free.push(held.at);
            }
            stays
        });
        if self.held.len() + blocks > self.most {
            self.held.clear();
            self.memory.clear();
            self.free.clear();
        }
        Ok(())
    }

    /// Checks a block that arrived. A wrong checksum alone makes it a suspect.
    fn admit(&mut self, page: Page, at: usize) -> Result<(), EngineError> {
        let block = &self.memory[at..at + self.block_bytes];
        let (kind, schema) = match self.map.class(page) {
            Class::Data => (Kind::Data, self.map.schema_of(page)),
            Class::Undo => (Kind::Undo, 0),
            Class::Index | Class::Scan => {
                return Err(EngineError::Damaged(format!("the redo log changes page {}, which never changes", page.0)));
            }
        };
        block_format::verify(block, kind, page, schema, self.data_set, false)
            .map_err(|mismatch| self.damaged(page, &mismatch))?;
        if !block_format::verify_crc(block) {
            self.suspects.insert(page);
        }
        self.held.insert(page, Held { at, dirty: false });
        Ok(())
    }

    /// The message about a bad block.
    pub(super) fn damaged(&self, page: Page, why: &dyn std::fmt::Display) -> EngineError {
        let (file, offset) = self.map.locate(page);
        EngineError::Damaged(format!(
            "{}, block {} (byte {offset}, page {}): {why}",
            self.files.path(file).display(),
            offset / self.block_bytes as u64,
            page.0
        ))
    }

    /// Path of the undo file, for messages.
    pub(super) fn undo_path(&self) -> String {
        self.files.path(self.files.undo).display().to_string()
    }

    /// A block in memory, to be changed.
    pub(super) fn change(&mut self, page: Page) -> &mut [u8] {
        let Some(held) = self.held.get_mut(&page) else {
            panic!("V1: what is changed was brought in before; page {} was not", page.0);
        };
        held.dirty = true;
        &mut self.memory[held.at..held.at + self.block_bytes]
    }

    /// Looks whether anything is left to do.
    pub(super) fn assert_done(&self) {
        let dirty = self.held.values().filter(|held| held.dirty).count();
        assert!(
            dirty == 0 && self.suspects.is_empty(),
            "V2: a data set is clean once every block is judged and written; {dirty} blocks are not written, {} not judged",
            self.suspects.len()
        );
    }

    /// A block in memory.
    pub(super) fn get(&self, page: Page) -> Option<&[u8]> {
        let held = self.held.get(&page)?;
        Some(&self.memory[held.at..held.at + self.block_bytes])
    }

    /// A block that need not be read: an empty one with a header. The caller has made room by [`Pages::fetch`].
    pub(super) fn format(&mut self, page: Page, kind: Kind, key: u64) -> &mut [u8] {
        let (at, change) = match self.held.get(&page) {
            Some(held) => {
                let block = &self.memory[held.at..held.at + self.block_bytes];
                (held.at, block_format::get(block, word::CHANGE))
            }
            None => {
                let at = place(&mut self.memory, &mut self.free, self.block_bytes);
                (at, 0)
            }
        };
        // Whatever it was before, torn or not, nothing of it is left.
        self.suspects.remove(&page);
        self.held.insert(page, Held { at, dirty: true });
        assert!(
            self.held.len() <= self.most,
            "V3: memory is bounded; {} blocks of {} are held",
            self.held.len(),
            self.most
        );
        let block = &mut self.memory[at..at + self.block_bytes];
        block.fill(0);
        block_format::format_header(block, kind, page, 0, key, self.data_set);
        block_format::put(block, word::CHANGE, change);
        block
    }

    /// Blocks whose checksum was wrong when read.
    pub(super) fn suspects(&self) -> Vec<Page> {
        self.suspects.iter().copied().collect()
    }

    /// Whether its checksum was wrong when it was read, and nothing has cleared it since.
    pub(super) fn is_suspect(&self, page: Page) -> bool {
        self.suspects.contains(&page)
    }

    /// The block is whole after all.
    pub(super) fn acquit(&mut self, page: Page) {
        self.suspects.remove(&page);
        if let Some(held) = self.held.get_mut(&page) {
            held.dirty = true;
        }
    }

    /// Writes every changed block, neighbours together. They stay in memory.
    ///
    /// # Errors
    /// I/O errors.
    pub(super) fn write_back(&mut self, io: &mut Io<'_>) -> Result<(), EngineError> {
        let dirty = self.held.iter().filter(|(_, held)| held.dirty);
        let mut pages: Vec<Page> = dirty.map(|(page, _)| *page).collect();
        pages.sort_unstable();
        for page in &pages {
            let held = self.held.get_mut(page).expect("it was just listed");
            held.dirty = false;
            // A suspect keeps its wrong checksum until it is known to be whole.
            if !self.suspects.contains(page) {
                block_format::seal(&mut self.memory[held.at..held.at + self.block_bytes]);
            }
        }
        let runs = self.runs(&pages, 0);
        let spans: Vec<Span> = runs.iter().map(|(_, span)| *span).collect();
        let (held, memory, block_bytes) = (&self.held, &self.memory, self.block_bytes);
        io.write(&spans, |i, buffer| {
            let first = runs[i].0.0;
            for (page, out) in (first..).map(Page).zip(buffer.chunks_exact_mut(block_bytes)) {
                let at = held[&page].at;
                out.copy_from_slice(&memory[at..at + block_bytes]);
            }
        })?;
        self.blocks_written += pages.len() as u64;
        Ok(())
    }

    /// Sorted pages as runs in one file, with at most `gap` unwanted pages between two wanted ones.
    fn runs(&self, pages: &[Page], gap: u64) -> Vec<(Page, Span)> {
        let mut runs: Vec<(Page, Span)> = Vec::new();
        for page in pages {
            let (file, offset) = self.map.locate(*page);
            if let Some((first, span)) = runs.last_mut()
                && span.file == file
                && offset > span.offset
            {
                let pages = page.0 - first.0 + 1;
                let bytes = pages as usize * self.block_bytes;
                let behind = page.0 - first.0 - (span.bytes / self.block_bytes) as u64;
                // Pages stand in the file as in their numbers, or they do not belong together.
                let in_step = offset - span.offset == (bytes - self.block_bytes) as u64;
                if in_step && behind <= gap && bytes <= REQUEST_BYTES {
                    span.bytes = bytes;
                    continue;
                }
            }
            let bytes = self.block_bytes;
            runs.push((*page, Span { file, offset, bytes }));
        }
        runs
    }
}
