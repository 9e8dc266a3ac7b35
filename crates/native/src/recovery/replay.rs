//! Applying redo to blocks, and taking back what did not commit.

use super::Recovery;
use super::io::{Io, REQUEST_BYTES, Span};
use super::pages::Pages;
use super::repair::Plausible;
use crate::block_format::{self, COLUMN_BYTES, COLUMNS, HEADER_BYTES, Kind, column_range, word};
use crate::control::{Control, MOST_NUMBER};
use crate::crash_rules::{CrashRule, CrashRules};
use crate::files::Files;
use crate::layout::{Class, Page, UNDO_BASE};
use crate::redo_format::{Parsed, Record, RowRecord, parse};
use crate::undo_format::{self, TRANSACTION_WORD, UNDO_HEAD_BYTES, UndoRecord, record_bytes, state};
use assay_run::engine::EngineError;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// A transaction without a commit record so far.
struct Live {
    session: u64,
    /// Its first changes may be before the checkpoint: undo has all of them, the log does not.
    began_before: bool,
    /// Row changes seen in the log.
    rows: Vec<OldRow>,
}

/// What a row change replaced.
struct OldRow {
    page: Page,
    mask: u64,
    number: u64,
    old: Vec<u8>,
}

/// The state of a replay.
pub(super) struct Replay<'a> {
    pub(super) pages: Pages<'a>,
    control: Control,
    live: BTreeMap<u64, Live>,
    unreadable_headers: BTreeSet<Page>,
    /// Each session's highest transaction in its header or redo.
    known: BTreeMap<u64, u64>,
    last_transaction: u64,
    /// Session and transaction of each rollback.
    rolled_back: Vec<(u64, u64)>,
    totals: Recovery,
    rules: CrashRules,
}

impl<'a> Replay<'a> {
    pub(super) fn new(files: &'a Files, control: &Control, budget_bytes: u64, rules: CrashRules) -> Self {
        Self {
            pages: Pages::new(files, control, budget_bytes),
            control: control.clone(),
            live: BTreeMap::new(),
            unreadable_headers: BTreeSet::new(),
            known: BTreeMap::new(),
            last_transaction: control.change_number,
            rolled_back: Vec::new(),
            totals: Recovery::default(),
            rules,
        }
    }

    /// The highest transaction number seen.
    pub(super) fn last_transaction(&self) -> u64 {
        self.last_transaction
    }

    /// What was done.
    pub(super) fn totals(&self) -> Recovery {
        Recovery {
            blocks_read: self.pages.blocks_read,
            blocks_written: self.pages.blocks_written,
            ..self.totals.clone()
        }
    }

    fn header_page(&self, session: u64) -> Page {
        self.control.geometry.undo_page(session - 1)
    }

    /// Reads the sessions' transaction headers: who was active when the checkpoint was taken, or since.
    /// One that cannot be read must be written anew by redo: then a cut had torn it.
    pub(super) fn find_active(&mut self, io: &mut Io<'_>, sessions: u64) -> Result<(), EngineError> {
        let sessions = sessions.min(self.control.geometry.undo_blocks);
        let block_bytes = self.control.geometry.block_bytes as usize;
        let map = *self.pages.map();
        let data_set = self.control.data_set;
        let pages: Vec<Page> = (1..=sessions).map(|s| self.header_page(s)).collect();
        let spans: Vec<Span> = pages
            .iter()
            .map(|page| {
                let (file, offset) = map.locate(*page);
                Span { file, offset, bytes: block_bytes }
            })
            .collect();
        let (live, last) = (&mut self.live, &mut self.last_transaction);
        let (unreadable, known) = (&mut self.unreadable_headers, &mut self.known);
        let blocks = &self.pages;
        io.read(&spans, |i, block| {
            let is = |kind| block_format::verify(block, kind, pages[i], 0, data_set, true).is_ok();
            if !is(Kind::UndoHeader) {
                // Empty, or undo of a run with fewer sessions: not used as a header since the checkpoint.
                if block.iter().any(|byte| *byte != 0) && !is(Kind::Undo) {
                    unreadable.insert(pages[i]);
                }
            } else {
                let (transaction, now) = undo_format::transaction_state(block);
                if transaction >= MOST_NUMBER {
                    let why = format!("a transaction header names transaction {transaction}");
                    return Err(blocks.damaged(pages[i], &why));
                }
                let session = i as u64 + 1;
                *last = (*last).max(transaction);
                known.insert(session, transaction);
                if now == state::ACTIVE {
                    live.insert(transaction, Live::since_before(session));
                }
            }
            Ok(())
        })
    }

    /// Applies every whole record of `payload`, which begins at `lsn`; returns the bytes used.
    pub(super) fn apply(&mut self, io: &mut Io<'_>, payload: &[u8], lsn: u64) -> Result<usize, EngineError> {
        let mut at = 0;
        loop {
            let (records, used) = self.gather(payload, at, lsn)?;
            if records.is_empty() {
                return Ok(at);
            }
            self.bring(io, &records)?;
            for (record, end) in &records {
                self.redo(record, lsn + *end as u64);
            }
            at = used;
        }
    }

    /// Records from byte `at` on, as many as have their blocks in memory together.
    fn gather<'p>(
        &self,
        payload: &'p [u8],
        mut at: usize,
        lsn: u64,
    ) -> Result<(Vec<(Record<'p>, usize)>, usize), EngineError> {
        let most = self.pages.most() / 2;
        let mut records = Vec::new();
        let mut pages: HashSet<u64> = HashSet::new();
        while pages.len() < most {
            match parse(&payload[at..]) {
                Parsed::Record(record, bytes) => {
                    at += bytes;
                    match record {
                        Record::Begin { session, .. } | Record::Commit { session, .. } => {
                            pages.insert(UNDO_BASE.saturating_add(session));
                        }
                        Record::UndoBlock { page, .. } => {
                            pages.insert(page);
                        }
                        Record::Row(row) => {
                            pages.insert(row.page);
                            pages.insert(row.undo_page);
                        }
                    }
                    records.push((record, at));
                }
                Parsed::Cut => break,
                Parsed::Nonsense => {
                    return Err(EngineError::Damaged(format!("redo log: LSN {} has no redo record", lsn + at as u64)));
                }
            }
        }
        Ok((records, at))
    }

    /// Brings in the blocks these records change, except those they write whole.
    fn bring(&mut self, io: &mut Io<'_>, records: &[(Record<'_>, usize)]) -> Result<(), EngineError> {
        let mut whole: HashSet<Page> = HashSet::new();
        let mut wanted: Vec<Page> = Vec::new();
        for (record, end) in records {
            self.expect_transaction(record, *end)?;
            match record {
                Record::Begin { session, .. } | Record::Commit { session, .. } => {
                    self.expect_session(*session, *end)?;
                    whole.insert(self.header_page(*session));
                }
                Record::UndoBlock { page, .. } => {
                    self.expect_undo(*page, *end)?;
                    whole.insert(Page(*page));
                }
                Record::Row(row) => {
                    self.expect_undo(row.undo_page, *end)?;
                    self.expect_row(row, *end)?;
                    wanted.push(Page(row.page));
                    if !whole.contains(&Page(row.undo_page)) {
                        wanted.push(Page(row.undo_page));
                    }
                }
            }
        }
        let new = whole.iter().filter(|p| !self.pages.holds(**p)).count();
        self.pages.fetch(io, &wanted, new)
    }

    fn nonsense(&self, what: &str, end: usize) -> EngineError {
        EngineError::Damaged(format!("redo log: the record that ends {end} bytes into a piece {what}"))
    }

    fn expect_transaction(&self, record: &Record<'_>, end: usize) -> Result<(), EngineError> {
        let (Record::Begin { transaction, .. }
        | Record::Commit { transaction, .. }
        | Record::UndoBlock { transaction, .. }
        | Record::Row(RowRecord { transaction, .. })) = record;
        if *transaction < MOST_NUMBER {
            return Ok(());
        }
        Err(self.nonsense(&format!("names transaction {transaction}"), end))
    }

    fn expect_session(&self, session: u64, end: usize) -> Result<(), EngineError> {
        if (1..=self.control.geometry.undo_blocks).contains(&session) {
            return Ok(());
        }
        Err(self.nonsense(&format!("names session {session}"), end))
    }

    fn expect_undo(&self, page: u64, end: usize) -> Result<(), EngineError> {
        let blocks = self.control.geometry.undo_blocks;
        if (UNDO_BASE..UNDO_BASE + blocks).contains(&page) {
            return Ok(());
        }
        Err(self.nonsense(&format!("names undo page {page}"), end))
    }

    fn expect_row(&self, row: &RowRecord<'_>, end: usize) -> Result<(), EngineError> {
        let block = u64::from(self.control.geometry.block_bytes);
        let undo_end = row.undo_offset.saturating_add(record_bytes(row.old.len()) as u64);
        let fits = row.undo_offset >= HEADER_BYTES as u64 && undo_end <= block;
        let counted = row.number < MOST_NUMBER && row.change < MOST_NUMBER;
        if self.is_row(row.page, row.mask) && fits && counted {
            return Ok(());
        }
        Err(self.nonsense("names a row that cannot be", end))
    }

    /// Whether these columns of this page are of a row.
    fn is_row(&self, page: u64, mask: u64) -> bool {
        page < self.control.geometry.data_pages()
            && self.pages.map().class(Page(page)) == Class::Data
            && mask < 1 << COLUMNS
    }

    /// Does again what a record says. Its blocks are in memory.
    fn redo(&mut self, record: &Record<'_>, end_lsn: u64) {
        self.totals.records += 1;
        match *record {
            Record::Begin { transaction, session } => {
                self.last_transaction = self.last_transaction.max(transaction);
                self.live.insert(transaction, Live::since_now(session));
                self.set_header(session, transaction, state::ACTIVE, end_lsn);
            }
            Record::Commit { transaction, session } => {
                self.totals.transactions_committed += 1;
                self.last_transaction = self.last_transaction.max(transaction);
                self.live.remove(&transaction);
                self.set_header(session, transaction, state::COMMITTED, end_lsn);
            }
            Record::UndoBlock { page, session, .. } => {
                let block = self.pages.format(Page(page), Kind::Undo, session);
                touch(block, end_lsn);
            }
            Record::Row(row) => self.redo_row(&row, end_lsn),
        }
    }

    fn redo_row(&mut self, row: &RowRecord<'_>, end_lsn: u64) {
        self.totals.rows += 1;
        let block = self.pages.change(Page(row.page));
        put_columns(block, row.mask, row.new);
        block_format::put(block, word::CHANGE, row.change);
        block_format::put(block, word::LSN, end_lsn);
        let undo = UndoRecord {
            transaction: row.transaction,
            page: row.page,
            number: row.number,
            mask: row.mask,
            old: row.old,
        };
        let block = self.pages.change(Page(row.undo_page));
        let at = row.undo_offset as usize;
        block[at..at + UNDO_HEAD_BYTES].copy_from_slice(&undo.head());
        block[at + UNDO_HEAD_BYTES..][..row.old.len()].copy_from_slice(row.old);
        touch(block, end_lsn);
        // Its begin record may lie before the checkpoint, and its header already tell of a later transaction.
        let live = self.live.entry(row.transaction).or_insert_with(|| Live::since_before(0));
        live.rows.push(OldRow { page: Page(row.page), mask: row.mask, number: row.number, old: row.old.to_vec() });
    }

    fn set_header(&mut self, session: u64, transaction: u64, now: u64, lsn: u64) {
        let page = self.header_page(session);
        self.unreadable_headers.remove(&page);
        let known = self.known.entry(session).or_default();
        *known = (*known).max(transaction);
        let block = self.pages.format(page, Kind::UndoHeader, session);
        block_format::put(block, TRANSACTION_WORD, transaction);
        block_format::put(block, TRANSACTION_WORD + 1, now);
        touch(block, lsn);
    }

    /// Takes back what did not commit, then looks whether everything is right.
    pub(super) fn finish(&mut self, io: &mut Io<'_>, end_lsn: u64) -> Result<(), EngineError> {
        if let Some(page) = self.unreadable_headers.first() {
            let why = "a transaction header is damaged, and no redo rewrites it";
            return Err(self.pages.damaged(*page, &why));
        }
        self.complete_from_undo(io)?;
        let mut losers = std::mem::take(&mut self.live);
        if !self.rules.keep(CrashRule::LosersTakenBack) {
            losers.clear();
        }
        self.totals.transactions_rolled_back = losers.len() as u64;
        for (transaction, live) in losers {
            self.roll_back(io, transaction, live, end_lsn)?;
        }
        self.acquit_suspects(io)
    }

    fn roll_back(&mut self, io: &mut Io<'_>, transaction: u64, live: Live, end_lsn: u64) -> Result<(), EngineError> {
        self.totals.rows_rolled_back += live.rows.len() as u64;
        for rows in live.rows.rchunks(self.pages.most() / 2) {
            let wanted: Vec<Page> = rows.iter().map(|row| row.page).collect();
            self.pages.fetch(io, &wanted, 0)?;
            for row in rows.iter().rev() {
                let block = self.pages.change(row.page);
                put_columns(block, row.mask, &row.old);
                touch(block, end_lsn);
            }
        }
        if live.session > 0 {
            self.rolled_back.push((live.session, transaction));
        }
        Ok(())
    }

    /// Says in their headers that the losers are rolled back. Only once that is durable: until then the headers are all
    /// that tells another recovery of transactions that changed nothing since the checkpoint.
    pub(super) fn close_losers(&mut self, io: &mut Io<'_>, end_lsn: u64) -> Result<bool, EngineError> {
        let losers = std::mem::take(&mut self.rolled_back);
        for (session, transaction) in &losers {
            self.pages.fetch(io, &[], 1)?;
            self.set_header(*session, *transaction, state::ROLLED_BACK, end_lsn);
        }
        Ok(!losers.is_empty())
    }

    /// Looks whether anything is left to do: asked before the data set is marked clean.
    pub(super) fn assert_done(&self) {
        assert!(
            self.live.is_empty() && self.rolled_back.is_empty(),
            "V4: a data set is clean once nobody is active; {} transactions are, {} headers are not closed",
            self.live.len(),
            self.rolled_back.len()
        );
        self.pages.assert_done();
    }

    /// Finds the changes that transactions without a commit made before the checkpoint, and looks whether all of undo is as it must be.
    fn complete_from_undo(&mut self, io: &mut Io<'_>) -> Result<(), EngineError> {
        let wanted: HashSet<u64> =
            self.live.iter().filter(|(_, live)| live.began_before).map(|(transaction, _)| *transaction).collect();
        // What redo made of undo blocks is part of what is read now.
        self.pages.write_back(io)?;
        let mut found = self.scan_undo(io, &wanted)?;
        for transaction in wanted {
            let rows = found.remove(&transaction).unwrap_or_default();
            let live = self.live.get_mut(&transaction).expect("it was just there");
            let last = live.rows.last().map(|row| row.number);
            let whole = rows.keys().copied().eq(0..rows.len() as u64)
                && last.is_none_or(|number| number.checked_add(1) == Some(rows.len() as u64));
            if !whole {
                return Err(EngineError::Damaged(format!(
                    "{}: transaction {transaction} did not commit, and only {} of its undo records remain: it cannot \
                     be rolled back",
                    self.pages.undo_path(),
                    rows.len()
                )));
            }
            live.rows = rows.into_values().collect();
        }
        Ok(())
    }

    /// Every undo record of these transactions, by number. Judges each block on the way.
    fn scan_undo(
        &self,
        io: &mut Io<'_>,
        wanted: &HashSet<u64>,
    ) -> Result<HashMap<u64, BTreeMap<u64, OldRow>>, EngineError> {
        let geometry = &self.control.geometry;
        let block_bytes = geometry.block_bytes as usize;
        let per_request = (REQUEST_BYTES / block_bytes) as u64;
        let firsts: Vec<u64> = (0..geometry.undo_blocks).step_by(per_request as usize).collect();
        let spans: Vec<Span> = firsts
            .iter()
            .map(|first| {
                let (file, offset) = self.pages.map().locate(geometry.undo_page(*first));
                let blocks = per_request.min(geometry.undo_blocks - first);
                Span { file, offset, bytes: blocks as usize * block_bytes }
            })
            .collect();
        let mut found: HashMap<u64, BTreeMap<u64, OldRow>> = HashMap::new();
        io.read(&spans, |i, data| {
            for (page, read) in (firsts[i]..).zip(data.chunks_exact(block_bytes)) {
                let page = geometry.undo_page(page);
                let block = self.pages.get(page).unwrap_or(read);
                if !self.is_undo(page, block)? {
                    continue;
                }
                let session = block_format::get(block, word::KEY);
                let (records, _) = undo_format::records(block);
                for record in records {
                    if wanted.contains(&record.transaction) {
                        if !self.is_row(record.page, record.mask) {
                            let why = format!("an undo record names page {}, which has no row", record.page);
                            return Err(self.pages.damaged(page, &why));
                        }
                        let rows = found.entry(record.transaction).or_default();
                        rows.insert(record.number, OldRow::from_undo(&record));
                    } else {
                        self.expect_known(page, session, record.transaction)?;
                    }
                }
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Whether the block holds undo records; an error if it is none of what may stand in the undo file.
    fn is_undo(&self, page: Page, block: &[u8]) -> Result<bool, EngineError> {
        // One that redo changed, or may yet make whole, is judged with the suspects.
        let check_crc = !self.pages.holds(page) && !self.pages.is_suspect(page);
        let is = |kind| block_format::verify(block, kind, page, 0, self.control.data_set, check_crc);
        match is(Kind::Undo) {
            Ok(()) => Ok(true),
            // Of a session, or of one of an earlier run with more of them.
            Err(_) if is(Kind::UndoHeader).is_ok() => Ok(false),
            Err(_) if block.iter().all(|byte| *byte == 0) => Ok(false),
            Err(mismatch) => Err(self.pages.damaged(page, &mismatch)),
        }
    }

    /// A transaction of this incarnation with undo on disk began before the checkpoint, and then its session's header was written
    /// before the checkpoint was, or redo tells of it. If neither does, the header is an older version, and who was active cannot be known.
    fn expect_known(&self, page: Page, session: u64, transaction: u64) -> Result<(), EngineError> {
        let known = self.known.get(&session).copied().unwrap_or(0);
        if transaction <= self.control.change_number.max(known) || self.live.contains_key(&transaction) {
            return Ok(());
        }
        let why = format!(
            "undo of transaction {transaction} of session {session} is here, but the session's transaction header \
             (page {}) is older and knows no transaction after {known}: a write of the header was lost, so it is \
             unknown whether the transaction committed",
            self.header_page(session.clamp(1, self.control.geometry.undo_blocks)).0
        );
        Err(self.pages.damaged(page, &why))
    }

    /// Every block whose checksum was wrong must be right by now: torn, and made whole by redo.
    fn acquit_suspects(&mut self, io: &mut Io<'_>) -> Result<(), EngineError> {
        let suspects = self.pages.suspects();
        if suspects.is_empty() {
            return Ok(());
        }
        let mut plausible = Plausible::new(&self.control);
        for group in suspects.chunks(self.pages.most() / 2) {
            self.pages.fetch(io, group, 0)?;
            for page in group {
                let block = self.pages.get(*page).expect("it was just fetched");
                let wrong = match self.pages.map().class(*page) {
                    Class::Undo => plausible.undo(block),
                    _ => plausible.data(*page, block),
                };
                if let Some(why) = wrong {
                    let why = format!("its checksum is wrong, and replaying redo does not repair it: {why}");
                    return Err(self.pages.damaged(*page, &why));
                }
                self.pages.acquit(*page);
                self.totals.torn_blocks += 1;
            }
        }
        Ok(())
    }
}

impl Live {
    fn since_before(session: u64) -> Self {
        Self { session, began_before: true, rows: Vec::new() }
    }

    fn since_now(session: u64) -> Self {
        Self { session, began_before: false, rows: Vec::new() }
    }
}

impl OldRow {
    fn from_undo(record: &UndoRecord<'_>) -> Self {
        Self { page: Page(record.page), mask: record.mask, number: record.number, old: record.old.to_vec() }
    }
}

/// Puts the columns of `mask` from an image that holds just them.
fn put_columns(block: &mut [u8], mask: u64, image: &[u8]) {
    let columns = (0..COLUMNS).filter(|bit| mask & 1 << bit != 0);
    for (bit, data) in columns.zip(image.chunks_exact(COLUMN_BYTES)) {
        block[column_range(bit + 2)].copy_from_slice(data);
    }
}

/// Counts a change that has no number of its own.
fn touch(block: &mut [u8], lsn: u64) {
    let change = block_format::get(block, word::CHANGE).saturating_add(1);
    block_format::put(block, word::CHANGE, change);
    block_format::put(block, word::LSN, lsn);
}
