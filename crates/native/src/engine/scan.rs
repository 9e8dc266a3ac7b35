//! Scans of the schema's scan table with multi-block reads.
//!
//! A table of at most 2 % of the cache goes through it (`db file scattered read`), by one
//! stream; a larger one is read into private memory and leaves the cache alone
//! (`direct path read`, [`direct`]), by as many streams as SCAN_PARALLEL says.

mod direct;

use super::counters::{C, Event, Io};
use super::instance::{Instance, failed};
use super::session::Session;
use crate::block_format::{HEADER_BYTES, word};
use crate::layout::Page;
use assay_run::engine::OpError;
use std::rc::Rc;

/// A table of at most this share of the cache is read through it (Oracle's small table threshold, 2 %).
const SMALL_TABLE_SHARE: u64 = 50;

/// Whether scans of this data set go through the cache.
pub(crate) fn goes_through_cache(instance: &Instance) -> bool {
    let frames = instance.cache.pool.frames() as u64;
    let small = instance.geometry.scan_blocks * SMALL_TABLE_SHARE <= frames;
    small && !instance.cache.drop_on_unpin
}

impl Session<'_> {
    /// Reads every block of the scan table and touches c2 of its row.
    pub(crate) async fn scan(&mut self, schema: u32) -> Result<u64, OpError> {
        let instance = self.shell.instance;
        let blocks = instance.geometry.scan_blocks;
        if goes_through_cache(instance) {
            self.scan_cached(schema, blocks).await?;
        } else {
            self.scan_direct(schema, blocks).await?;
        }
        self.shell.c.add(C::Scans, 1);
        self.shell.c.add(C::ScanBlocks, blocks);
        self.shell.c.add(C::RowsVisited, blocks);
        Ok(blocks)
    }

    async fn scan_cached(&mut self, schema: u32, blocks: u64) -> Result<(), OpError> {
        let mut i = 0;
        while i < blocks {
            let read = self.read_ahead(schema, i, blocks).await?;
            let shell = Rc::clone(&self.shell);
            // Just read by this session: the first get is the miss, the others are hits on prefetched blocks.
            shell.count_gets(false, read);
            i += read;
            if i < blocks {
                let page = shell.instance.map.scan_page(schema, i);
                let pin = self.fetch(page, false).await?;
                let row = shell.instance.cache.pool.word(pin.frame(), word::KEY);
                std::hint::black_box(shell.instance.cache.pool.word(pin.frame(), HEADER_BYTES / 8));
                shell.unpin(pin, page);
                check_row(row, i, page)?;
                i += 1;
            }
        }
        Ok(())
    }

    /// Reads the run of absent blocks from `from` on with one request; returns how many were read and touched.
    async fn read_ahead(&mut self, schema: u32, from: u64, blocks: u64) -> Result<u64, OpError> {
        let shell = Rc::clone(&self.shell);
        let geometry = &shell.instance.map;
        let cache = &shell.instance.cache;
        let first = geometry.scan_page(schema, from);
        let most = shell.instance.adjacent(first, (shell.instance.options.multiblock as u64).min(blocks - from));
        let mut frames = Vec::new();
        for i in from..from + most {
            let page = geometry.scan_page(schema, i);
            let Some(frame) = cache.claim_absent(page, shell.thread, &shell.c) else {
                break;
            };
            frames.push(frame);
        }
        let n = frames.len() as u64;
        if n == 0 {
            return Ok(0);
        }
        shell.count_read(first, n);
        shell.c.add(C::DemandMisses, 1);
        shell.c.add(C::ReadsPrefetch, n - 1);
        shell.c.add(C::Hits, n - 1);
        shell.read_pages(self.tag, first, frames);
        let event = if n > 1 { Event::ScatteredRead } else { Event::SequentialRead };
        let ns = shell.wait(self.tag, event).await;
        shell.c.io_wait(Io::CacheReadData, ns);
        let reads = std::mem::take(&mut *shell.slot(self.tag).reads.borrow_mut());
        let touched = reads.len() as u64;
        let mut broken = None;
        for (page, result) in reads {
            match result {
                Ok(pin) => {
                    let row = cache.pool.word(pin.frame(), word::KEY);
                    std::hint::black_box(cache.pool.word(pin.frame(), HEADER_BYTES / 8));
                    shell.unpin(pin, page);
                    broken = broken.or(check_row(row, from + (page.0 - first.0), page).err());
                }
                Err(error) => broken = Some(error),
            }
        }
        broken.map_or(Ok(touched), Err)
    }
}

fn check_row(row: u64, i: u64, page: Page) -> Result<(), OpError> {
    if row == i + 1 {
        return Ok(());
    }
    Err(failed("corrupt", format!("page {} holds scan row {row}, expected {}", page.0, i + 1)))
}
