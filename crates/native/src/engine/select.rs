//! Range selects: resolve a run of keys, touch one column of each row's block.
//!
//! The cached path pins nothing and writes nothing shared: all frames of the run
//! are looked up and prefetched first, then each is visited under its version:
//! page and key of the header are checked, c2 is read, the version is checked.

use super::context::Shell;
use super::counters::{C, Event};
use super::instance::failed;
use super::session::{NO_FRAME, Session};
use crate::block_format::{HEADER_BYTES, word};
use crate::layout::Page;
use assay_block::Shared;
use assay_run::engine::OpError;
use std::rc::Rc;

/// The first word of column c2.
const C2_WORD: usize = HEADER_BYTES / 8;

impl Session<'_> {
    /// Reads keys `first_key .. first_key + width`, wrapping at the end of the active key range.
    pub(crate) async fn select(&mut self, schema: u32, first_key: u64, width: u32) -> Result<u64, OpError> {
        let scale = self.shell.instance.active_scale;
        let mut key = first_key;
        let mut left = u64::from(width);
        let mut goes_on = false;
        while left > 0 {
            if key > scale {
                key -= scale;
                goes_on = false;
            }
            let most = left.min(scale - key + 1) as usize;
            self.resolve(schema, key, most, goes_on).await?;
            goes_on = true;
            let n = self.pages.len() as u64;
            self.visit(key).await?;
            key += n;
            left -= n;
        }
        self.shell.c.add(C::RowsVisited, u64::from(width));
        Ok(u64::from(width))
    }

    /// Touches the blocks of the resolved run, whose first key is `first_key`.
    async fn visit(&mut self, first_key: u64) -> Result<(), OpError> {
        let n = self.pages.len();
        self.find_frames();
        let batched = self.shell.instance.options.batched;
        let depth = if batched { self.shell.instance.options.io_depth } else { n };
        let mut begin = 0;
        while begin < n {
            let end = n.min(begin + depth);
            if batched {
                self.visit_batched(first_key, begin, end).await?;
            } else {
                self.visit_in_turn(first_key, begin, end).await?;
            }
            begin = end;
        }
        Ok(())
    }

    /// Looks up all frames of the run and asks the memory for their first lines.
    fn find_frames(&mut self) {
        let cache = &self.shell.instance.cache;
        self.frames.clear();
        if !self.shell.instance.options.optimistic || cache.drop_on_unpin {
            self.frames.resize(self.pages.len(), NO_FRAME);
            return;
        }
        let prefetch = self.shell.instance.options.prefetch;
        if prefetch {
            for page in &self.pages {
                cache.prefetch_lookup(*page);
            }
        }
        self.frames.extend(self.pages.iter().map(|page| {
            let Some(frame) = cache.lookup(*page) else {
                return NO_FRAME;
            };
            if prefetch {
                cache.pool.prefetch_state(frame);
                cache.pool.prefetch(frame, 0);
                cache.pool.prefetch(frame, HEADER_BYTES);
            }
            frame
        }));
    }

    /// Visits resident blocks from `from` on; returns the first that could not be visited this way.
    fn visit_resident(&self, first_key: u64, from: usize, end: usize) -> usize {
        let cache = &self.shell.instance.cache;
        let mut i = from;
        // The columns' sum keeps the compiler from leaving the reads out.
        let mut sum = 0u64;
        while i < end {
            let frame = self.frames[i];
            if frame == NO_FRAME {
                break;
            }
            let Some(version) = cache.pool.version(frame) else {
                break;
            };
            let is_it = cache.pool.word(frame, word::PAGE) == self.pages[i].0
                && cache.pool.word(frame, word::KEY) == first_key + i as u64;
            sum = sum.wrapping_add(cache.pool.word(frame, C2_WORD));
            if !is_it || !cache.pool.validate(frame, version) {
                break;
            }
            cache.touch(frame);
            i += 1;
        }
        std::hint::black_box(sum);
        let visited = (i - from) as u64;
        self.shell.count_gets(false, visited);
        self.shell.c.add(C::Hits, visited);
        i
    }

    /// One block after another; a miss is read alone.
    async fn visit_in_turn(&mut self, first_key: u64, begin: usize, end: usize) -> Result<(), OpError> {
        let mut i = begin;
        loop {
            i = self.visit_resident(first_key, i, end);
            if i == end {
                return Ok(());
            }
            let page = self.pages[i];
            let pin = self.fetch(page, false).await?;
            touch_pinned(&self.shell, pin, page, first_key + i as u64)?;
            i += 1;
        }
    }

    /// Misses among the next blocks are read together: `db file parallel read`.
    async fn visit_batched(&mut self, first_key: u64, begin: usize, end: usize) -> Result<(), OpError> {
        self.done.clear();
        self.done.resize(end - begin, false);
        for i in begin..end {
            if self.visit_resident(first_key, i, i + 1) == i + 1 {
                self.done[i - begin] = true;
            }
        }
        let reads = self.read_absent(begin, end, 1).await?;
        let shell = Rc::clone(&self.shell);
        let count = reads.len() as u64;
        shell.count_gets(false, count);
        // One miss was demanded, the others rode along and are hits by the time they are gotten.
        shell.c.add(C::Hits, count.saturating_sub(1));
        let mut broken = None;
        for (page, result) in reads {
            let touched = result.and_then(|pin| {
                let i = (begin..end).find(|i| self.pages[*i] == page).unwrap_or(begin);
                self.done[i - begin] = true;
                touch_pinned(&shell, pin, page, first_key + i as u64)
            });
            broken = broken.or(touched.err());
        }
        if let Some(error) = broken {
            return Err(error);
        }
        for i in begin..end {
            if !self.done[i - begin] {
                let page = self.pages[i];
                let pin = self.fetch(page, false).await?;
                touch_pinned(&self.shell, pin, page, first_key + i as u64)?;
            }
        }
        Ok(())
    }

    /// Reads those pages of the run that are neither resident nor being read, all at once.
    /// `demanded` of them count as demand misses, the others as prefetch.
    pub(crate) async fn read_absent(
        &mut self,
        begin: usize,
        end: usize,
        demanded: u64,
    ) -> Result<Vec<(Page, Result<Shared, OpError>)>, OpError> {
        let shell = Rc::clone(&self.shell);
        let mut count = 0;
        for i in begin..end {
            let page = self.pages[i];
            if self.done.get(i - begin).copied().unwrap_or(false) {
                continue;
            }
            if let Some(frame) = shell.instance.cache.claim_absent(page, shell.thread, &shell.c) {
                shell.count_read(page, 1);
                shell.read_page(self.tag, page, frame);
                count += 1;
            }
        }
        if count == 0 {
            return Ok(Vec::new());
        }
        let demanded = demanded.min(count);
        shell.c.add(C::DemandMisses, demanded);
        shell.c.add(C::ReadsPrefetch, count - demanded);
        let event = if count > 1 { Event::ParallelRead } else { Event::SequentialRead };
        let ns = shell.wait(self.tag, event).await;
        shell.c.io_wait(shell.read_row(self.pages[begin]), ns);
        let reads = std::mem::take(&mut *shell.slot(self.tag).reads.borrow_mut());
        Ok(reads)
    }
}

/// Visits a pinned block and lets it go.
fn touch_pinned(shell: &Shell<'_>, pin: Shared, page: Page, key: u64) -> Result<(), OpError> {
    let pool = &shell.instance.cache.pool;
    let found = pool.word(pin.frame(), word::KEY);
    std::hint::black_box(pool.word(pin.frame(), C2_WORD));
    shell.unpin(pin, page);
    if found == key {
        return Ok(());
    }
    Err(failed("corrupt", format!("page {} holds key {found} where the index says {key}", page.0)))
}
