//! One session and its private memory, and how it gets a block; other modules say what it does with blocks.

use super::cache::Claim;
use super::context::Shell;
use super::counters::{C, Event};
use super::instance::failed;
use super::node::Node;
use super::options::{FreeWait, IndexMode};
use super::transaction::Transaction;
use crate::block_format::word;
use crate::layout::{Page, UNDO_BASE};
use assay_block::{Exclusive, Shared};
use assay_measure::permutation::Permutation;
use assay_run::engine::{OpError, Tag};
use std::rc::Rc;

/// Keys resolved at once: a whole leaf of 8 KiB.
pub(crate) const RUN_KEYS: usize = 512;
/// How long a session waits for a free buffer before it looks again (Oracle's 10 ms).
const FREE_BUFFER_TIMER_NS: u64 = 10_000_000;

/// A session and its private memory.
pub(crate) struct Session<'a> {
    pub(crate) shell: Rc<Shell<'a>>,
    pub(crate) tag: Tag,
    pub(crate) pages: Vec<Page>,
    pub(crate) frames: Vec<u32>,
    pub(crate) done: Vec<bool>,
    /// The index leaf of the last run of keys.
    leaf: Page,
    pub(crate) transaction: Transaction,
}

/// No frame known.
pub(crate) const NO_FRAME: u32 = u32::MAX;

impl<'a> Session<'a> {
    pub(crate) fn new(shell: Rc<Shell<'a>>, tag: Tag) -> Self {
        Self {
            shell,
            tag,
            pages: Vec::new(),
            frames: Vec::new(),
            done: Vec::new(),
            leaf: Page(0),
            transaction: Transaction::default(),
        }
    }

    /// Gets a block through the cache, pinned: hit, own read, or another session's read.
    pub(crate) async fn fetch(&mut self, page: Page, current: bool) -> Result<Shared, OpError> {
        let shell = Rc::clone(&self.shell);
        shell.count_gets(current, 1);
        let mut waited = false;
        let mut tries = 0;
        loop {
            match shell.instance.cache.claim(page, shell.reference(self.tag), &shell.c) {
                Claim::Resident(pin) => {
                    let Some(pin) = self.accept_resident(pin, page, waited).await? else {
                        continue;
                    };
                    shell.c.add(if waited { C::SharedMisses } else { C::Hits }, 1);
                    return Ok(pin);
                }
                Claim::Read(frame) => {
                    shell.c.add(C::DemandMisses, 1);
                    return self.read_single(page, frame).await;
                }
                Claim::InFlight => {
                    shell.wait(self.tag, Event::ReadByOther).await;
                    waited = true;
                }
                Claim::Busy => shell.busy(self.tag, &mut tries).await,
                Claim::NoFrame => self.wait_for_frame().await?,
            }
        }
    }

    /// With CACHE_MB=0 a resident block is a leftover on its way out and must be read again.
    async fn accept_resident(&mut self, pin: Shared, page: Page, waited: bool) -> Result<Option<Shared>, OpError> {
        let shell = Rc::clone(&self.shell);
        let cache = &shell.instance.cache;
        let frame = pin.frame();
        if !cache.drop_on_unpin || waited || page.0 >= UNDO_BASE {
            cache.touch(frame);
            return Ok(Some(pin));
        }
        let dirty = cache.is_dirty(frame);
        cache.pool.unpin(pin);
        cache.discard(frame, page);
        if dirty {
            let changes_go_on = !self.transaction_is_published();
            self.publish(false).await?;
            cache.discard(frame, page);
            shell.instance.free_waiter(shell.reference(self.tag));
            shell.instance.post_writer();
            shell.wait_at_most(self.tag, Event::WriteComplete, FREE_BUFFER_TIMER_NS).await;
            if changes_go_on {
                self.claim().await?;
            }
            return Ok(None);
        }
        match cache.pin(page) {
            // Another session is looking at it: that is a hit also without a cache.
            Some(Ok(pin)) => Ok(Some(pin)),
            _ => Ok(None),
        }
    }

    /// Waits until a frame may be free. Redo still private is published first: the frames it protects
    /// could otherwise never be written.
    pub(crate) async fn wait_for_frame(&mut self) -> Result<(), OpError> {
        let changes_go_on = !self.transaction_is_published();
        self.publish(false).await?;
        let shell = Rc::clone(&self.shell);
        shell.instance.check_alive()?;
        if shell.instance.options.free_wait == FreeWait::Posted || shell.instance.cache.drop_on_unpin {
            shell.instance.free_waiter(shell.reference(self.tag));
        }
        shell.instance.post_writer();
        shell.wait_at_most(self.tag, Event::FreeBuffer, FREE_BUFFER_TIMER_NS).await;
        if changes_go_on {
            self.claim().await?;
        }
        Ok(())
    }

    /// Reads one page into its frame and waits for it: `db file sequential read`.
    async fn read_single(&mut self, page: Page, frame: Exclusive) -> Result<Shared, OpError> {
        let shell = Rc::clone(&self.shell);
        shell.count_read(page, 1);
        shell.read_page(self.tag, page, frame);
        let ns = shell.wait(self.tag, Event::SequentialRead).await;
        shell.c.io_wait(shell.read_row(page), ns);
        let read = shell.slot(self.tag).reads.borrow_mut().pop();
        match read {
            Some((_, result)) => result,
            None => Err(failed("bug", format!("the read of page {} ended without a result", page.0))),
        }
    }

    /// Gets an exclusive lease of a page that was just pinned, reading it again if it slipped away.
    pub(crate) async fn exclusive(&mut self, mut pin: Shared, page: Page) -> Result<Exclusive, OpError> {
        let shell = Rc::clone(&self.shell);
        let cache = &shell.instance.cache;
        let mut tries = 0;
        loop {
            let frame = pin.frame();
            cache.pool.unpin(pin);
            loop {
                if let Some(lease) = cache.pool.try_exclusive(frame) {
                    if cache.holds(frame, page) {
                        return Ok(lease);
                    }
                    cache.pool.release_unchanged(lease);
                    break;
                }
                if !cache.holds(frame, page) {
                    break;
                }
                shell.busy(self.tag, &mut tries).await;
            }
            pin = self.fetch(page, true).await?;
        }
    }

    /// Reads an index node through the cache.
    pub(crate) async fn node<R>(&mut self, page: Page, read: impl Fn(&Node<'_>) -> R) -> Result<R, OpError> {
        let shell = Rc::clone(&self.shell);
        let cache = &shell.instance.cache;
        shell.c.add(C::IndexGets, 1);
        if shell.instance.options.optimistic
            && let Some(frame) = cache.lookup(page)
            && let Some(version) = cache.pool.version(frame)
        {
            let is_it = cache.pool.word(frame, word::PAGE) == page.0;
            let result = read(&Node { pool: &cache.pool, frame });
            if is_it && cache.pool.validate(frame, version) && !cache.drop_on_unpin {
                cache.touch(frame);
                shell.count_gets(false, 1);
                shell.c.add(C::Hits, 1);
                shell.c.add(C::IndexHits, 1);
                return Ok(result);
            }
        }
        let misses = shell.c.get(C::DemandMisses);
        let pin = self.fetch(page, false).await?;
        if shell.c.get(C::DemandMisses) == misses {
            shell.c.add(C::IndexHits, 1);
        }
        let result = read(&Node { pool: &cache.pool, frame: pin.frame() });
        shell.unpin(pin, page);
        Ok(result)
    }

    /// Walks from the root to the leaf that covers `key`.
    async fn descend(&mut self, schema: u32, key: u64) -> Result<Page, OpError> {
        let map = &self.shell.instance.map;
        let levels = map.index.levels;
        let mut page = map.index_page(schema, 0);
        for _ in 1..levels {
            let child = self.node(page, |node| node.child_of(key)).await?;
            let Some(child) = child else {
                return Err(failed("corrupt", format!("index node at page {} has no child for key {key}", page.0)));
            };
            page = Page(child);
        }
        Ok(page)
    }

    /// Fills `pages` with the blocks of up to [`RUN_KEYS`] keys from `key` on, at least one. `goes_on` says
    /// that `key` follows the last run's: its leaf is the same or the next one, and no descent is needed.
    pub(crate) async fn resolve(&mut self, schema: u32, key: u64, most: usize, goes_on: bool) -> Result<(), OpError> {
        let most = most.min(RUN_KEYS);
        self.pages.clear();
        let map = &self.shell.instance.map;
        if self.shell.instance.options.index == IndexMode::Computed {
            let permutation: &Permutation = self.shell.instance.permutation(schema);
            for key in key..key + most as u64 {
                self.pages.push(map.data_page(schema, permutation.slot_of_key(key)));
            }
            return Ok(());
        }
        let first_of_leaf = (key - 1).is_multiple_of(map.index.fanout);
        let page = match (goes_on, first_of_leaf) {
            (false, _) => self.descend(schema, key).await?,
            (true, false) => self.leaf,
            // Leaves are full and stand in the order of their keys, one page after the other.
            (true, true) => Page(self.leaf.0 + 1),
        };
        self.leaf = page;
        let mut pages = std::mem::take(&mut self.pages);
        pages.reserve(most);
        let room = std::cell::RefCell::new(pages);
        let found = self.node(page, |leaf| leaf.rows_from(key, most, &mut room.borrow_mut())).await;
        self.pages = room.into_inner();
        if found? && !self.pages.is_empty() {
            return Ok(());
        }
        Err(failed("corrupt", format!("index leaf at page {} does not hold key {key} of schema {schema}", page.0)))
    }
}
