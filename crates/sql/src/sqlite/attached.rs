//! What every run holds: the claim, and the sessions' counts.

use super::Held;
use super::counted::{self, Counted, Hits};
use super::file::{Db, File, WAL};
use crate::here::{device_facts, server_host};
use crate::running::{Attachment, Running};
use crate::watch::Cancel;
use assay_measure::config::Settings;
use assay_measure::facts::{
    CACHE_PARAMETER, DATABASE, ENGINE, GETS, IN_PROCESS, IO_MODE_ACHIEVED, PAST_PAGE_CACHE, SERVER_TOLD,
};
use assay_measure::locked::locked;
use assay_measure::snapshot::{Fact, StatSet};
use assay_run::engine::{Doing, EngineError, Remarks};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use rusqlite::InterruptHandle;
use std::fs;
use std::sync::{Arc, Mutex};

const TOLD: &str = "server_version database journal_mode synchronous page_cache checkpoint_pages mmap_bytes block_bytes device_fs_type";

#[derive(Clone)]
pub(super) struct Token(Arc<InterruptHandle>, Arc<Counted>);

impl Cancel for Token {
    fn cancel(&self) -> std::io::Result<()> {
        self.1.cancel();
        self.0.interrupt();
        Ok(())
    }
}

/// A session's connection and counts.
pub(super) struct Opened {
    pub(super) db: Db,
    pub(super) counted: Arc<Counted>,
}

impl Opened {
    /// Begins a transaction that writes.
    pub(super) fn begin(&self) -> rusqlite::Result<()> {
        self.counted.begin(&self.db.0)
    }

    pub(super) fn commit(&self) -> rusqlite::Result<()> {
        self.counted.commit(&self.db.0)
    }

    /// Some failures have ended the transaction already.
    pub(super) fn rollback(&self) -> rusqlite::Result<()> {
        if self.db.0.is_autocommit() { Ok(()) } else { self.db.0.execute_batch("rollback") }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.counted.ends();
    }
}

pub(super) struct Attached {
    pub(super) at: File,
    running: Running<Token>,
    page: u64,
    journal_mode: String,
    /// What SQLite grants.
    mmap_bytes: u64,
    /// Sessions of one schema cache the same pages.
    schemas: u64,
    /// Where each row has a page of its own.
    hits: Option<Mutex<Hits>>,
    counted: Vec<Arc<Counted>>,
    held: Mutex<Option<Held>>,
    longest_log: Mutex<u64>,
}

impl Attached {
    pub(super) fn open(
        at: File,
        held: Held,
        gets: bool,
        plan: &Plan,
        settings: &Settings,
        stop: &Stop,
    ) -> Result<Self, EngineError> {
        let journal_mode = held.keeper.journal_mode("").map_err(at.told("reading the journal mode"))?;
        if journal_mode != WAL {
            return Err(EngineError::Unusable(format!(
                "{}: its journal mode is {journal_mode}, not {WAL}, in which assay made it; set it with `pragma \
                 journal_mode = {WAL}`",
                at.shown()
            )));
        }
        Ok(Self {
            journal_mode,
            mmap_bytes: held.keeper.mmap(at.mmap_bytes).map_err(at.told("reading the size of the map"))?,
            schemas: u64::from(plan.schemas),
            running: Running::open(plan, settings, stop, "SQLITE_GRACE")?,
            counted: (0..plan.sessions()).map(|_| Counted::of(&at)).collect(),
            page: at.page(&held.keeper)?,
            at,
            hits: gets.then(Mutex::default),
            held: Mutex::new(Some(held)),
            longest_log: Mutex::default(),
        })
    }

    /// Opens a session, on its own thread.
    pub(super) fn session(&self, number: u32) -> Result<Opened, EngineError> {
        let counted = Arc::clone(&self.counted[number as usize - 1]);
        let db = counted.open(&self.at)?;
        self.running.backends.connected(
            number,
            number as i32,
            Token(Arc::new(db.0.get_interrupt_handle()), Arc::clone(&counted)),
        );
        Ok(Opened { db, counted })
    }

    /// Ends the run's own work, and hands over the claim, once.
    pub(super) fn release(&self) -> Option<Held> {
        self.running.unwatch();
        locked(&self.held).take()
    }
}

impl Attachment for Attached {
    type Token = Token;

    const IN_DRIVER_THREADS: bool = true;

    fn running(&self) -> &Running<Token> {
        &self.running
    }

    fn facts(&self) -> Vec<Fact> {
        let at = &self.at;
        let pages = at.cache_pages(self.page);
        let sessions = self.counted.len() as u64;
        let text = |name: &str, value: String| Fact::new(name, value);
        let mut facts = vec![
            ENGINE.fact("SQLite"),
            SERVER_TOLD.fact(TOLD),
            text("server_version", rusqlite::version().to_owned()),
            DATABASE.fact(at.shown()),
            server_host(Ok("the library in this process")),
            IN_PROCESS.fact("yes"),
            text("journal_mode", self.journal_mode.clone()),
            text("synchronous", at.synchronous.clone()),
            text("page_cache", format!("{pages} pages of each session; a session does not see what another has read")),
            text("cache_blocks", (pages * sessions.min(self.schemas)).to_string()),
            CACHE_PARAMETER.fact("SQLITE_CACHE_MB"),
            text("checkpoint_pages", format!("{}, by the session whose commit reaches them", at.checkpoint_pages)),
            text("mmap_bytes", self.mmap_bytes.to_string()),
            text("block_bytes", self.page.to_string()),
            IO_MODE_ACHIEVED.fact("buffered: the page cache of the kernel answers what the sessions' own do not have"),
            PAST_PAGE_CACHE.fact("no"),
            text("log_longest_bytes", locked(&self.longest_log).to_string()),
        ];
        if self.hits.is_some() {
            facts.push(
                GETS.fact(
                    "the page of a row, and any page that is read: reads of the index count as misses, so the hit ratio is a lower bound",
                ),
            );
        }
        facts.extend(device_facts(Ok(at.directory())));
        facts
    }

    fn remarks(&self) -> Remarks {
        let mut remarks = Remarks::default();
        if self.mmap_bytes > 0 {
            remarks.warnings.push(
                "SQLITE_MMAP_MB is set: what is read through memory is no read call and in no figure of reads."
                    .to_owned(),
            );
        }
        if !self.at.waits_for_log() {
            remarks.warnings.push(format!(
                "SQLITE_SYNCHRONOUS={}: a commit does not wait until its log is on the device, so the last ones before a \
                 power failure may be lost.",
                self.at.synchronous
            ));
        }
        remarks
    }

    fn sample(&self) -> StatSet {
        let hits = self.hits.as_ref().map(locked);
        let mut set = counted::sample(&self.counted, self.page, hits);
        if let Ok(log) = fs::metadata(self.at.beside("-wal")) {
            let mut longest = locked(&self.longest_log);
            *longest = log.len().max(*longest);
            set.gauges.insert("log_file_bytes".to_owned(), log.len());
        }
        set
    }

    fn look(&self, sessions: &mut [Doing]) -> bool {
        for (doing, counted) in sessions.iter_mut().zip(&self.counted) {
            *doing = counted.doing();
        }
        true
    }

    fn watched_disks(&self) -> Vec<String> {
        assay_block::disks_under(&[self.at.directory().to_path_buf()])
    }
}
