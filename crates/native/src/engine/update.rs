//! Updates: undo, block change, private redo, commit.
//!
//! A transaction changes blocks in the cache at once and keeps its redo private
//! until commit or until 64 KiB are full; until then its frames are pending and
//! cannot be written. Per row it makes one redo record that carries old and new
//! image, one undo record and two block changes, as the published profiles have it.

use super::context::Shell;
use super::counters::{C, Event};
use super::instance::failed;
use super::options::{ChecksumMode, CommitMode};
use super::redo::Shortage;
use super::row_locks::Acquire;
use super::session::{NO_FRAME, Session};
use super::transaction::Transaction;
use super::undo::EXTENT_BLOCKS;
use crate::block_format::{self, COLUMN_BYTES, HEADER_BYTES, Kind, word};
use crate::layout::Page;
use crate::redo_format::{Record, RowRecord};
use crate::undo_format::{TRANSACTION_WORD, UNDO_RECORD_OVERHEAD, UndoRecord, record_bytes, state};
use assay_block::{Exclusive, Shared};
use assay_run::dataset::rows::fill_columns;
use assay_run::engine::OpError;
use assay_run::plan::RedoStress;
use std::rc::Rc;
use std::sync::atomic::Ordering;

/// What one row can add to private redo beyond the limit at which it is published:
/// a HEAVY row, a new undo block, begin and commit.
pub(crate) const ROW_REDO_BYTES: usize = 8 * 1024;
/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// One row's change, for the redo record.
struct RowChange {
    page: Page,
    undo_page: Page,
    undo_offset: usize,
    change: u64,
    mask: u64,
}

/// Bit i is column c(2 + i).
fn mask_of(columns: &[usize]) -> u64 {
    columns.iter().fold(0, |mask, c| mask | 1 << (c - 2))
}

fn columns_of(stress: RedoStress) -> &'static [usize] {
    const LITE: &[usize] = &[2, 20];
    const HEAVY: &[usize] = &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20];
    match stress {
        RedoStress::Lite => LITE,
        RedoStress::Heavy => HEAVY,
    }
}

impl Session<'_> {
    /// Changes keys `first_key .. first_key + width`, then commits if asked.
    pub(crate) async fn update(
        &mut self,
        schema: u32,
        first_key: u64,
        width: u32,
        stamp: u64,
        commit: bool,
    ) -> Result<u64, OpError> {
        self.shell.instance.check_alive()?;
        if self.shell.instance.options.shared_rows {
            self.lock_rows(schema, first_key, width).await?;
        }
        let instance = self.shell.instance;
        let first = instance.permutation(schema).slot_of_key(first_key);
        self.foresee(instance.map.data_page(schema, first));
        self.foresee_undo();
        self.begin().await?;
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
            let n = self.pages.len();
            for i in 0..n {
                self.read_ahead_of(i, n).await?;
                if let Some(next) = self.pages.get(i + 1) {
                    self.foresee(*next);
                }
                let page = self.pages[i];
                self.change_row(page, key + i as u64, stamp).await?;
                if self.transaction.redo.len() >= self.shell.instance.private_redo_bytes {
                    self.publish(false).await?;
                }
            }
            key += n as u64;
            left -= n as u64;
        }
        let shell = Rc::clone(&self.shell);
        shell.c.add(C::RowsVisited, u64::from(width));
        shell.c.add(C::RowsChanged, u64::from(width));
        if commit {
            self.commit().await?;
        } else {
            // The session may be idle from here on: blocks that only it can set free would hold the checkpoint back.
            self.publish(false).await?;
        }
        Ok(u64::from(width))
    }

    /// Asks the memory for what a change of the row in this block touches: so it comes while others do their part.
    fn foresee(&self, page: Page) {
        let cache = &self.shell.instance.cache;
        let Some(frame) = cache.lookup(page).filter(|_| self.shell.instance.options.prefetch) else {
            return;
        };
        cache.prefetch_change(frame);
        cache.pool.prefetch(frame, 0);
        for column in columns_of(self.shell.instance.redo_stress) {
            for offset in block_format::column_range(*column).step_by(LINE_BYTES) {
                cache.pool.prefetch(frame, offset);
            }
        }
    }

    /// Likewise for the place of the next undo record.
    fn foresee_undo(&self) {
        let Transaction { undo_frame, undo_offset, image, .. } = &self.transaction;
        let cache = &self.shell.instance.cache;
        if *undo_frame != NO_FRAME && self.shell.instance.options.prefetch {
            cache.prefetch_change(*undo_frame);
            for offset in (*undo_offset..*undo_offset + record_bytes(image.len())).step_by(LINE_BYTES) {
                cache.pool.prefetch(*undo_frame, offset);
            }
        }
    }

    /// READ_MODE=batched: reads the next absent blocks together before they are changed one by one.
    async fn read_ahead_of(&mut self, i: usize, n: usize) -> Result<(), OpError> {
        let shell = Rc::clone(&self.shell);
        let depth = shell.instance.options.io_depth;
        if !shell.instance.options.batched || !i.is_multiple_of(depth) || shell.instance.cache.drop_on_unpin {
            return Ok(());
        }
        self.done.clear();
        for (page, result) in self.read_absent(i, n.min(i + depth), 0).await? {
            shell.unpin(result?, page);
        }
        Ok(())
    }

    /// Takes the row locks of the whole operation, in the order of their keys, before anything changes.
    async fn lock_rows(&mut self, schema: u32, first_key: u64, width: u32) -> Result<(), OpError> {
        let shell = Rc::clone(&self.shell);
        let scale = shell.instance.active_scale;
        let mut keys: Vec<u64> = (0..u64::from(width)).map(|i| (first_key + i - 1) % scale + 1).collect();
        keys.sort_unstable();
        let holds_earlier = !self.transaction.locks.is_empty();
        let mut may_wait = !holds_earlier;
        let mut i = 0;
        while i < keys.len() {
            let slot = shell.instance.permutation(schema).slot_of_key(keys[i]);
            let page = shell.instance.map.data_page(schema, slot);
            match shell.instance.locks.acquire(page, shell.reference(self.tag), may_wait) {
                Acquire::Held => {}
                Acquire::Granted => self.transaction.locks.push(page),
                Acquire::Queued if may_wait => {
                    shell.wait(self.tag, Event::RowLock).await;
                    self.transaction.locks.push(page);
                }
                Acquire::Queued => {
                    // Waiting with locks of an earlier operation could close a circle: commit that one first.
                    self.commit().await?;
                    assert!(
                        self.transaction.locks.is_empty(),
                        "L1: who waits for a row lock holds none of an earlier operation; {} are held",
                        self.transaction.locks.len()
                    );
                    may_wait = true;
                    i = 0;
                    continue;
                }
            }
            i += 1;
        }
        Ok(())
    }

    /// Opens the transaction: its header block is changed and a record is made.
    async fn begin(&mut self) -> Result<(), OpError> {
        if self.transaction.open {
            return Ok(());
        }
        let shell = Rc::clone(&self.shell);
        shell.instance.mark_open(&shell.c)?;
        self.transaction.id = shell.instance.next_transaction();
        self.transaction.open = true;
        self.transaction.undo_known = false;
        self.claim().await?;
        self.change_header(state::ACTIVE).await?;
        self.transaction.rows = 0;
        let begin = Record::Begin { transaction: self.transaction.id, session: self.session_number() };
        begin.push(&mut self.transaction.redo);
        self.transaction.records += 1;
        Ok(())
    }

    fn session_number(&self) -> u64 {
        u64::from(self.shell.slot(self.tag).session)
    }

    /// Changes the session's transaction header block.
    async fn change_header(&mut self, state: u64) -> Result<(), OpError> {
        let shell = Rc::clone(&self.shell);
        let instance = shell.instance;
        let page = instance.undo.header_page(&instance.geometry, shell.slot(self.tag).session);
        let mut lease = if self.transaction.header_known {
            let pin = self.fetch(page, true).await?;
            self.exclusive(pin, page).await?
        } else {
            shell.count_gets(true, 1);
            shell.c.add(C::Hits, 1);
            self.transaction.header_known = true;
            self.new_block(page, Kind::UndoHeader).await?
        };
        let pool = &instance.cache.pool;
        pool.write_word(&mut lease, TRANSACTION_WORD, self.transaction.id);
        pool.write_word(&mut lease, TRANSACTION_WORD + 1, state);
        self.changed(lease);
        Ok(())
    }

    /// Marks a changed frame, releases it and remembers it until its redo is published.
    fn changed(&mut self, mut lease: Exclusive) {
        debug_assert!(
            self.shell.instance.is_marked_open() && self.transaction.claim.is_some(),
            "W3: before a block changes the data set is marked open and room for the redo is claimed; transaction {}",
            self.transaction.id
        );
        let cache = &self.shell.instance.cache;
        let frame = lease.frame();
        let change = cache.pool.word(frame, word::CHANGE).wrapping_add(1);
        cache.pool.write_word(&mut lease, word::CHANGE, change);
        let first = cache.mark_changed(&lease, &self.shell.c);
        cache.pool.release(lease);
        self.shell.c.add(C::BlockChanges, 1);
        if first {
            self.transaction.frames.push(frame);
        }
    }

    /// A block that need not be read, formatted, locked.
    async fn new_block(&mut self, page: Page, kind: Kind) -> Result<Exclusive, OpError> {
        let shell = Rc::clone(&self.shell);
        let instance = shell.instance;
        let mut tries = 0;
        let mut lease = loop {
            match instance.cache.claim_new(page, shell.thread, &shell.c) {
                Ok(lease) => break lease,
                Err(true) => shell.busy(self.tag, &mut tries).await,
                Err(false) => self.wait_for_frame().await?,
            }
        };
        let mut header = [0u8; HEADER_BYTES];
        block_format::format_header(
            &mut header,
            kind,
            page,
            0,
            u64::from(shell.slot(self.tag).session),
            instance.data_set,
        );
        let pool = &instance.cache.pool;
        let change = pool.word(lease.frame(), word::CHANGE);
        pool.fill_zero(&mut lease);
        pool.write(&mut lease, 0, &header);
        pool.write_word(&mut lease, word::CRC, u64::from(instance.geometry.block_bytes) << 32);
        // A block taken over while its old copy is being written must not look unchanged to the writer.
        pool.write_word(&mut lease, word::CHANGE, change);
        Ok(lease)
    }

    /// Changes one row: old image to undo, new image to the block, both to redo.
    async fn change_row(&mut self, page: Page, key: u64, stamp: u64) -> Result<(), OpError> {
        let shell = Rc::clone(&self.shell);
        let instance = shell.instance;
        let columns = columns_of(instance.redo_stress);
        self.claim().await?;
        let pin = self.fetch(page, true).await?;
        self.check_row(&pin, page, key)?;
        let block = instance.cache.pool.bytes(&pin);
        self.transaction.image.clear();
        for column in columns {
            self.transaction.image.extend_from_slice(&block[block_format::column_range(*column)]);
        }
        let mask = mask_of(columns);
        let (undo_page, undo_offset) = self.write_undo(page, mask).await?;
        let mut lease = self.exclusive(pin, page).await?;
        let pool = &instance.cache.pool;
        let changed_bytes = columns.len() * COLUMN_BYTES;
        fill_columns(&mut self.transaction.column, columns.len(), stamp, key, instance.obfuscate);
        for (column, data) in columns.iter().zip(self.transaction.column.chunks_exact(COLUMN_BYTES)) {
            pool.write(&mut lease, block_format::column_range(*column).start, data);
        }
        let change = pool.word(lease.frame(), word::CHANGE).wrapping_add(1);
        self.changed(lease);
        self.push_row(&RowChange { page, undo_page, undo_offset, change, mask });
        shell.c.add(C::ChangedBytes, changed_bytes as u64);
        Ok(())
    }

    fn check_row(&self, pin: &Shared, page: Page, key: u64) -> Result<(), OpError> {
        let instance = self.shell.instance;
        let block = instance.cache.pool.bytes(pin);
        let found = block_format::get(block, word::KEY);
        if found != key {
            return Err(failed("corrupt", format!("page {} holds key {found} where the index says {key}", page.0)));
        }
        // A changed block's checksum is stale by design: it is computed when the block is written.
        if instance.options.checksum == ChecksumMode::Full
            && instance.cache.has_checksum(pin.frame())
            && !block_format::verify_crc(block)
        {
            return Err(failed("corrupt", format!("page {} changed in memory: its checksum is wrong", page.0)));
        }
        Ok(())
    }

    fn push_row(&mut self, row: &RowChange) {
        let transaction = &mut self.transaction;
        let record = Record::Row(RowRecord {
            transaction: transaction.id,
            page: row.page.0,
            undo_page: row.undo_page.0,
            undo_offset: row.undo_offset as u64,
            change: row.change,
            mask: row.mask,
            number: transaction.rows,
            old: &transaction.image,
            new: &transaction.column,
        });
        record.push(&mut transaction.redo);
        transaction.rows += 1;
        transaction.records += 1;
        self.shell.c.add(C::UndoSize, (transaction.image.len() + UNDO_RECORD_OVERHEAD) as u64);
    }

    /// Appends the old image to the session's undo; returns where it stands.
    async fn write_undo(&mut self, page: Page, mask: u64) -> Result<(Page, usize), OpError> {
        let shell = Rc::clone(&self.shell);
        let instance = shell.instance;
        let bytes = record_bytes(self.transaction.image.len());
        let room = instance.geometry.block_bytes as usize - self.transaction.undo_offset;
        let mut lease = match self.transaction.undo_page {
            Some(undo) if room >= bytes => self.undo_lease(undo).await?,
            _ => self.next_undo_block().await?,
        };
        let undo = self.transaction.undo_page.unwrap_or(page);
        let offset = self.transaction.undo_offset;
        let record = UndoRecord {
            transaction: self.transaction.id,
            page: page.0,
            number: self.transaction.rows,
            mask,
            old: &self.transaction.image,
        };
        let head = record.head();
        let pool = &instance.cache.pool;
        pool.write(&mut lease, offset, &head);
        pool.write(&mut lease, offset + head.len(), &self.transaction.image);
        self.transaction.undo_offset += bytes;
        debug_assert!(
            self.transaction.undo_offset <= instance.geometry.block_bytes as usize,
            "U3: an undo record lies within its block; it ends at byte {}",
            self.transaction.undo_offset
        );
        self.transaction.undo_frame = lease.frame();
        self.changed(lease);
        Ok((undo, offset))
    }

    /// The session's current undo block, which is normally still in the frame it was last in.
    async fn undo_lease(&mut self, undo: Page) -> Result<Exclusive, OpError> {
        let shell = Rc::clone(&self.shell);
        let cache = &shell.instance.cache;
        let frame = self.transaction.undo_frame;
        if frame != NO_FRAME
            && let Some(lease) = cache.pool.try_exclusive(frame)
        {
            if cache.holds(frame, undo) {
                let first = u64::from(!std::mem::replace(&mut self.transaction.undo_known, true));
                shell.count_gets(true, first);
                shell.c.add(C::Hits, first);
                return Ok(lease);
            }
            cache.pool.release_unchanged(lease);
        }
        self.transaction.undo_known = true;
        let pin = self.fetch(undo, true).await?;
        self.exclusive(pin, undo).await
    }

    /// Moves on to the next block of the extent, or to a new extent.
    async fn next_undo_block(&mut self) -> Result<Exclusive, OpError> {
        let shell = Rc::clone(&self.shell);
        let instance = shell.instance;
        if self.transaction.extents.is_empty() || self.transaction.undo_block + 1 >= EXTENT_BLOCKS {
            let extent = instance.undo.take().ok_or_else(|| {
                failed(
                    "undo full",
                    "the undo file is full of open transactions: prepare with a larger UNDO_MB".to_owned(),
                )
            })?;
            self.transaction.extents.push(extent);
            self.transaction.undo_block = 0;
        } else {
            self.transaction.undo_block += 1;
        }
        let extent = *self.transaction.extents.last().expect("an extent was just taken or there was one");
        let page = instance.undo.page(&instance.geometry, extent, self.transaction.undo_block);
        // One get for the segment's extent map, one for the block itself; both are resident or new.
        shell.count_gets(true, 2);
        shell.c.add(C::Hits, 2);
        let lease = self.new_block(page, Kind::Undo).await?;
        shell.c.add(C::BlockChanges, 1);
        self.transaction.undo_page = Some(page);
        self.transaction.undo_known = true;
        self.transaction.undo_offset = HEADER_BYTES;
        let record =
            Record::UndoBlock { transaction: self.transaction.id, page: page.0, session: self.session_number() };
        record.push(&mut self.transaction.redo);
        self.transaction.records += 1;
        Ok(lease)
    }

    /// Whether no claim on the log is held and no redo is private.
    pub(crate) fn transaction_is_published(&self) -> bool {
        self.transaction.claim.is_none() && self.transaction.redo.is_empty()
    }

    /// Copies private redo to the log buffer, after which the changed frames may be written. `commits`: it ends with the
    /// record of the commit.
    pub(crate) async fn publish(&mut self, commits: bool) -> Result<(), OpError> {
        if self.transaction.redo.is_empty() {
            return Ok(());
        }
        let shell = Rc::clone(&self.shell);
        let redo = &shell.instance.redo;
        let bytes = self.transaction.redo.len() as u64;
        let Some(appended) = redo.append(shell.thread, &self.transaction.redo) else {
            return Err(failed("bug", format!("the log buffer has no room for {bytes} bytes that were claimed")));
        };
        let (start, end) = appended.range;
        let cache = &shell.instance.cache;
        let frames = self.transaction.frames.drain(..);
        let entered = frames.filter(|frame| cache.mark_published(*frame, start, end)).collect();
        cache.enqueue(start, entered);
        redo.copied(appended, commits);
        if let Some(claim) = self.transaction.claim.take() {
            redo.settle(claim, bytes, end);
        }
        if cache.wants_writing() {
            shell.instance.post_writer();
        }
        shell.c.add(C::RedoSize, end - start);
        shell.c.add(C::RedoEntries, self.transaction.records);
        self.transaction.redo.clear();
        self.transaction.records = 0;
        self.transaction.end_lsn = end;
        Ok(())
    }

    /// Makes sure that the redo of the coming changes has room, before anything changes.
    pub(crate) async fn claim(&mut self) -> Result<(), OpError> {
        let shell = Rc::clone(&self.shell);
        let instance = shell.instance;
        let bytes = (instance.private_redo_bytes + ROW_REDO_BYTES) as u64;
        while self.transaction.claim.is_none() {
            instance.check_alive()?;
            let seen = instance.redo.generation();
            let checkpoint = instance.checkpoint_lsn.load(Ordering::Acquire);
            let event = match instance.redo.try_claim(bytes, checkpoint) {
                Ok(claim) => {
                    self.transaction.claim = Some(claim);
                    return Ok(());
                }
                Err(Shortage::Files(lsn)) => {
                    instance.request_checkpoint(lsn);
                    Event::LogSwitchCheckpoint
                }
                Err(Shortage::Buffer) if instance.redo.is_switching() => Event::LogSwitch,
                Err(Shortage::Buffer) => Event::LogBufferSpace,
            };
            shell.c.add(C::RedoRetries, 1);
            let ns = self.wait_for_log(event, seen).await;
            if event != Event::LogBufferSpace {
                shell.c.add(C::LogSpaceRequests, 1);
                shell.c.add(C::LogSpaceTime, ns);
            }
        }
        Ok(())
    }

    async fn wait_for_log(&mut self, event: Event, seen: u64) -> u64 {
        let shell = Rc::clone(&self.shell);
        shell.queue_for_log(self.tag, seen);
        shell.wait(self.tag, event).await
    }

    /// Commits what the session left open when it logs off (COMMIT_EVERY > 1), as SQL*Plus does.
    pub(crate) async fn log_off(&mut self) -> Result<u64, OpError> {
        if self.transaction.open {
            self.commit().await?;
        }
        Ok(0)
    }

    /// Ends the transaction; acknowledged as COMMIT_MODE says.
    async fn commit(&mut self) -> Result<(), OpError> {
        let shell = Rc::clone(&self.shell);
        self.claim().await?;
        self.change_header(state::COMMITTED).await?;
        let record = Record::Commit { transaction: self.transaction.id, session: self.session_number() };
        record.push(&mut self.transaction.redo);
        self.transaction.records += 1;
        self.publish(true).await?;
        let lsn = self.transaction.end_lsn;
        let redo = &shell.instance.redo;
        if shell.instance.options.commit != CommitMode::None && redo.durable() < lsn {
            shell.commits.borrow_mut().push_back((lsn, self.tag));
            let ns = shell.wait(self.tag, Event::LogFileSync).await;
            shell.c.add(C::RedoSynchWrites, 1);
            shell.c.add(C::RedoSynchTime, ns);
            shell.instance.check_alive()?;
        }
        shell.c.add(C::Commits, 1);
        self.end_transaction(&shell);
        Ok(())
    }

    /// Releases what the transaction held.
    pub(crate) fn end_transaction(&mut self, shell: &Shell<'_>) {
        let transaction = &mut self.transaction;
        transaction.open = false;
        if let Some(unused) = transaction.claim.take() {
            shell.instance.redo.settle(unused, 0, 0);
        }
        for page in transaction.locks.drain(..) {
            if let Some(next) = shell.instance.locks.release(page) {
                shell.wake_all(vec![next], shell.now.get());
            }
        }
        // The current extent is kept: the next transaction goes on in its current block.
        if transaction.extents.len() > 1 {
            let keep = transaction.extents.pop();
            shell.instance.undo.give_back(transaction.extents.drain(..));
            transaction.extents.extend(keep);
        }
    }
}
