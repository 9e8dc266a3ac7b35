//! Crafted data sets: any bytes become a control file, redo and undo whose checksums are right.
//!
//! Random bytes fail at the first checksum, so the code behind it is never tested. Here the input chooses which words
//! change and to what, and every checksum is recomputed, so that only the meaning of the words is tested. The fuzz
//! targets and the property tests use it.

use super::block_format::{self, Kind, word};
use super::bulk::Watch;
use super::control::{CONTROL_NAME, Control, SESSIONS_WORD, SLOT_BYTES, State};
use super::control_file::ControlFile;
use super::load_plan::LoadPlan;
use super::params::PARAMS;
use super::paths::Asked;
use super::prepare::prepare;
use super::redo_format::{
    FIRST_LSN, FileHeader, LOG_HEADER_BYTES, LogBlock, Record, RowRecord, block_seed, file_header, seal_block,
};
use super::target::Native;
use super::undo_format::{TRANSACTION_WORD, UndoRecord, record_bytes};
use assay_measure::config::{Settings, Tables, command_line, resolve};
use assay_run::engine::{EngineError, Progress, Target};
use assay_run::life::Life;
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Words that mean something to somebody: ends of ranges and their neighbours.
const TELLING: [u64; 24] = [
    0,
    1,
    2,
    3,
    7,
    19,
    63,
    64,
    99,
    100,
    512,
    4095,
    4096,
    8192,
    65_536,
    (1 << 19) - 1,
    1 << 20,
    1 << 32,
    (1 << 39) - 1,
    1 << 39,
    1 << 40,
    (1 << 62) - 1,
    1 << 63,
    u64::MAX,
];

/// Where the words of a control record are, and how many bytes each has.
const WORDS: [(usize, usize); 29] = [
    (16, 8),
    (24, 8),
    (32, 8),
    (40, 4),
    (44, 4),
    (48, 4),
    (52, 4),
    (56, 8),
    (64, 8),
    (72, 8),
    (80, 8),
    (88, 8),
    (96, 4),
    (100, 4),
    (104, 4),
    (108, 4),
    (112, 8),
    (120, 8),
    (128, 8),
    (136, 8),
    (144, 8),
    (152, 8),
    (272, 2),
    (274, 2),
    (276, 2),
    (278, 2),
    (280, 2),
    (282, 2),
    (284, 8),
];

/// Reads an input to its end, then zeroes.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            None => 0,
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
        }
    }

    /// A word: often one that means something, or near the one that is there, else any.
    fn word(&mut self, right: u64) -> u64 {
        let pick = self.byte();
        match pick {
            0..=79 => right,
            80..=159 => TELLING[usize::from(pick) % TELLING.len()],
            160..=199 => right.wrapping_add(u64::from(self.byte())).wrapping_sub(128),
            200..=219 => right << (pick % 64),
            _ => u64::from_le_bytes(std::array::from_fn(|_| self.byte())),
        }
    }

    fn more(&self) -> bool {
        !self.0.is_empty()
    }
}

struct Silent;

impl Progress for Silent {
    fn update(&self, _phase: &str, _done_bytes: u64, _total_bytes: u64) {}
}

/// A small data set on real files that is crafted again and again.
pub struct Ground {
    dir: PathBuf,
    settings: Settings,
    control: Control,
    /// Name and content of each file.
    files: Vec<(String, Vec<u8>)>,
}

impl Ground {
    /// Prepares it in `dir`, which must be absent or empty.
    ///
    /// # Errors
    /// As `prepare`; I/O errors.
    pub fn new(dir: &Path) -> Result<Self, EngineError> {
        let given = [
            ("SCALE", "1000"),
            ("SCAN_TABLE_SZ", "4"),
            ("BLOCK_SZ", "4096"),
            ("UNDO_MB", "4"),
            ("REDO_LOG_MB", "4"),
            ("REDO_LOGS", "2"),
            ("CACHE_MB", "4"),
            ("WORK_UNIT", "8"),
            ("LOAD_PARALLEL_DEGREE", "1"),
            ("IO_MODE", "none"),
            ("SEED", "7"),
            ("SCHEMAS", "3"),
        ];
        let options = given.map(|(name, value)| ("--set".to_owned(), name.to_owned(), value.to_owned()));
        let tables =
            Tables { target: "native", params: PARAMS, workload: &assay_slob::SETTINGS, concerns: &[], others: &[] };
        let settings = resolve(&tables, &[command_line(options)]).settings;
        let asked = Asked::new(&dir.display().to_string(), &settings)?;
        let mut plan = LoadPlan::new(&asked, &settings, 2)?;
        plan.control.geometry.undo_blocks = 64;
        plan.control.redo_file_bytes = 256 << 10;
        let (stop, progress) = (&Stop::new(), &Silent);
        prepare(&plan, &settings, Watch { stop, progress })?;
        let control = ControlFile::read(dir)?
            .ok_or_else(|| EngineError::Unusable(format!("{} has no control file", dir.display())))?;
        let names = control.file_names().into_iter().chain([CONTROL_NAME.to_owned()]);
        let files: io::Result<Vec<_>> =
            names.map(|name| fs::read(dir.join(&name)).map(|content| (name, content))).collect();
        Ok(Self {
            dir: dir.to_path_buf(),
            settings,
            control,
            files: files.map_err(|e| super::errors::io_error("reading", dir, e))?,
        })
    }

    /// Words of the control record as `bytes` say, in both slots or one of them: inspects it, plans with it, checks it
    /// and plans its removal.
    ///
    /// # Errors
    /// I/O errors of the crafting itself; errors in the control file are not reported.
    pub fn control(&self, bytes: &[u8]) -> io::Result<()> {
        let mut input = Input(bytes);
        let which = input.byte();
        let mut slot = self.control.encode(9);
        while input.more() {
            let pick = usize::from(input.byte());
            let (at, width) = match WORDS.get(pick % 40) {
                Some(known) => *known,
                None => (8 + usize::from(input.byte()) * 16 % 4080, 8),
            };
            let mut word = [0; 8];
            word[..width].copy_from_slice(&slot[at..at + width]);
            let word = input.word(u64::from_le_bytes(word)).to_le_bytes();
            slot[at..at + width].copy_from_slice(&word[..width]);
        }
        let crc = crc32c::crc32c(&slot[..SLOT_BYTES - 4]);
        slot[SLOT_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
        let mut both = [0; 2 * SLOT_BYTES];
        both[SLOT_BYTES..].copy_from_slice(&slot);
        match which % 4 {
            // Alone: the other slot counts as damaged.
            0 => {}
            1 => both[..SLOT_BYTES].copy_from_slice(&slot),
            _ => both[..SLOT_BYTES].copy_from_slice(&self.control.encode(8)),
        }
        self.put(CONTROL_NAME, 0, &both)?;
        let at = self.dir.display().to_string();
        let life = Life { target: &Native, location: &at, shown: &at };
        let _ = life.plan_prepare(&mut self.settings.clone());
        let _ = Native.plan_destroy(&at, &self.settings);
        if which >= 192 {
            self.open_and_close(&at);
        }
        let _ = self.check(life);
        self.restore()
    }

    /// As a run that does nothing.
    fn open_and_close(&self, at: &str) {
        let plan = Plan::plain(1, 1, 1000);
        let stop = Stop::new();
        if let Ok(engine) = Native.open(at, &plan, &self.settings, &stop, &Silent) {
            let _ = engine.close();
        }
    }

    /// Redo, transaction headers and undo as `bytes` say, in a data set that was not closed: recovered and checked.
    ///
    /// # Errors
    /// I/O errors of the crafting itself. Returns whether it was recovered and is right.
    pub fn redo(&self, bytes: &[u8]) -> io::Result<bool> {
        let mut input = Input(bytes);
        let mut control = self.control.clone();
        control.state = State::Open;
        control.log_sequence = input.word(1) % 4;
        control.checkpoint_lsn = match input.byte() % 4 {
            0 => FIRST_LSN + 8 * u64::from(input.byte()),
            _ => FIRST_LSN,
        };
        control.engine[SESSIONS_WORD] = input.word(4) % 64;
        let slots = [control.encode(8), control.encode(9)].concat();
        self.put(CONTROL_NAME, 0, &slots)?;
        // Log sequence 1 is in the second file; the first one may hold the next.
        for number in [1, 0] {
            if number == 0 && input.byte() < 128 {
                continue;
            }
            let header = FileHeader { sequence: input.word(2 - number), first_lsn: input.word(FIRST_LSN) };
            let block = control.log_block_bytes as usize;
            let header = file_header(control.data_set, header, block);
            self.put(&format!("redo-0{}.assay", number + 1), 0, &header)?;
        }
        for page in 0..u64::from(input.byte() % 4) {
            self.put_undo(&mut input, page)?;
        }
        self.put_log(&mut input)?;
        let at = self.dir.display().to_string();
        let checked = self.check(Life { target: &Native, location: &at, shown: &at });
        self.restore()?;
        Ok(checked.is_ok())
    }

    fn check(&self, life: Life<'_>) -> Result<(), EngineError> {
        life.check(&self.settings, "", &Stop::new(), &Silent).map(drop)
    }

    /// Log blocks from the second on of the file of sequence 1, which hold records one behind the other.
    fn put_log(&self, input: &mut Input<'_>) -> io::Result<()> {
        let mut payload = Vec::new();
        let mut left = 60;
        while input.more() && left > 0 {
            left -= 1;
            self.push_record(input, &mut payload);
        }
        let block_bytes = self.control.log_block_bytes as usize;
        let seed = block_seed(self.control.data_set, 1);
        let mut lsn = FIRST_LSN;
        for (number, part) in (1_u64..).zip(payload.chunks(block_bytes - LOG_HEADER_BYTES)) {
            let mut block = vec![0; block_bytes];
            block[LOG_HEADER_BYTES..][..part.len()].copy_from_slice(part);
            let what = LogBlock {
                lsn: if input.byte() == 255 { input.word(lsn) } else { lsn },
                payload: if input.byte() == 255 { input.word(part.len() as u64) as u16 } else { part.len() as u16 },
                first: input.byte() < 128,
                unproven: u16::from(input.byte()),
            };
            seal_block(&mut block, what, seed);
            self.put("redo-02.assay", number * block_bytes as u64, &block)?;
            lsn += part.len() as u64;
        }
        Ok(())
    }

    fn push_record(&self, input: &mut Input<'_>, payload: &mut Vec<u8>) {
        let undo = super::layout::UNDO_BASE;
        let (transaction, session) = (input.word(5), input.word(1));
        let old = vec![7; 2 * block_format::COLUMN_BYTES];
        let at = payload.len();
        match input.byte() % 5 {
            0 => Record::Begin { transaction, session },
            1 => Record::Commit { transaction, session },
            2 => Record::UndoBlock { transaction, page: input.word(undo + 8), session },
            _ => Record::Row(RowRecord {
                transaction,
                page: input.word(3),
                undo_page: input.word(undo + 8),
                undo_offset: input.word(64),
                change: input.word(1),
                mask: input.word(0b11),
                number: input.word(0),
                old: &old,
                new: &old,
            }),
        }
        .push(payload);
        // The record's own length and kind, now and then.
        if input.byte() == 255 {
            let length = input.word((payload.len() - at) as u64) as u32;
            payload[at..at + 4].copy_from_slice(&length.to_le_bytes());
            payload[at + 4] = input.byte();
        }
    }

    /// A transaction header or a block with an undo record, sealed.
    fn put_undo(&self, input: &mut Input<'_>, number: u64) -> io::Result<()> {
        let g = &self.control.geometry;
        let page = g.undo_page(number);
        let mut block = vec![0; g.block_bytes as usize];
        let header = input.byte() < 128;
        let kind = if header { Kind::UndoHeader } else { Kind::Undo };
        let session = input.word(number + 1);
        block_format::format_header(&mut block, kind, page, 0, session, self.control.data_set);
        if header {
            block_format::put(&mut block, TRANSACTION_WORD, input.word(5));
            block_format::put(&mut block, TRANSACTION_WORD + 1, input.word(1));
        } else {
            let old = vec![7; block_format::COLUMN_BYTES];
            let record = UndoRecord {
                transaction: input.word(5),
                page: input.word(3),
                number: input.word(0),
                mask: input.word(1),
                old: &old,
            };
            let head = record.head();
            let at = block_format::HEADER_BYTES;
            block[at..at + head.len()].copy_from_slice(&head);
            block[at + head.len()..][..old.len()].copy_from_slice(&old);
            debug_assert!(at + record_bytes(old.len()) <= block.len());
        }
        block_format::put(&mut block, word::CHANGE, input.word(1));
        block_format::put(&mut block, word::LSN, input.word(0));
        block_format::seal(&mut block);
        let (_, offset) = g.map().locate(page);
        self.put("undo.assay", offset, &block)
    }

    fn put(&self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(self.dir.join(name))?;
        file.write_all_at(bytes, offset)
    }

    /// Every file as it was loaded.
    fn restore(&self) -> io::Result<()> {
        for (name, content) in &self.files {
            let path = self.dir.join(name);
            if fs::read(&path).ok().as_ref() != Some(content) {
                fs::write(&path, content)?;
            }
        }
        Ok(())
    }
}

/// A control file of any bytes, its checksums put right: read without a data set.
pub fn slots(bytes: &[u8]) {
    let mut both = bytes.to_vec();
    both.resize(2 * SLOT_BYTES, 0);
    for slot in both.chunks_exact_mut(SLOT_BYTES) {
        slot[..8].copy_from_slice(b"ASSAYCTL");
        slot[8..12].copy_from_slice(&super::control_format::CONTROL_VERSION.to_le_bytes());
        slot[12..16].copy_from_slice(&(SLOT_BYTES as u32).to_le_bytes());
        let crc = crc32c::crc32c(&slot[..SLOT_BYTES - 4]);
        slot[SLOT_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
    }
    if let Ok(stored) = super::control_format::judge_slots(&both) {
        let control = stored.control;
        let files = control.file_count();
        let _ = (control.total_bytes(), control.path_of_file(files - 1));
        for path in 0..control.paths.len() as u16 {
            let _ = control.needed_bytes(path);
        }
        assert!(control.validate().is_ok() && control.encode(1).len() == SLOT_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};

    fn ground() -> (tempfile::TempDir, Ground) {
        let executable = std::env::current_exe().unwrap();
        let home = tempfile::tempdir_in(executable.parent().unwrap()).unwrap();
        let ground = Ground::new(&home.path().join("data")).unwrap();
        (home, ground)
    }

    fn many(cases: u32, each: impl Fn(&[u8])) {
        let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
        runner
            .run(&prop::collection::vec(any::<u8>(), 1..120), |bytes| {
                each(&bytes);
                Ok(())
            })
            .unwrap();
    }

    /// Set in the process that does one test's work.
    const ALONE: &str = "ASSAY_TEST_ALONE";

    /// Does it in a process of its own, which must not have had more memory than this: what other tests take beside it is theirs.
    fn in_memory(test: &str, most_bytes: u64, work: impl FnOnce()) {
        if std::env::var_os(ALONE).is_none() {
            let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
            let name = format!("{}::{test}", module_path!().split_once("::").unwrap().1);
            let done = alone.args(["--exact", &name, "--include-ignored"]).env(ALONE, "1").output().unwrap();
            let said = String::from_utf8_lossy(&done.stdout);
            assert!(done.status.success() && said.contains("1 passed"), "{said}");
            return;
        }
        work();
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib: u64 = line.unwrap().trim().trim_end_matches("kB").trim().parse().unwrap();
        assert!(kib << 10 < most_bytes, "{status}");
    }

    #[test]
    fn crafted_control_files_neither_panic_nor_hang_nor_take_memory() {
        in_memory("crafted_control_files_neither_panic_nor_hang_nor_take_memory", 1 << 30, || {
            let (_home, ground) = ground();
            many(100, |bytes| ground.control(bytes).unwrap());
        });
    }

    #[test]
    #[ignore = "it takes long: ./test.sh --long has it"]
    fn each_word_of_a_control_file_with_every_telling_value_neither_panics_nor_hangs_nor_takes_memory() {
        let name = "each_word_of_a_control_file_with_every_telling_value_neither_panics_nor_hangs_nor_takes_memory";
        in_memory(name, 1 << 30, || {
            let (_home, ground) = ground();
            many(300, |bytes| ground.control(bytes).unwrap());
            for (word, (at, _)) in WORDS.iter().enumerate() {
                for pick in 80..=(80 + TELLING.len() as u8) {
                    assert!(word < 40 && *at < SLOT_BYTES);
                    // A run opens it now and then: that starts threads.
                    let which = if pick % 5 == 0 { 195 } else { 2 };
                    ground.control(&[which, word as u8, pick]).unwrap();
                }
            }
        });
    }

    #[test]
    fn crafted_redo_and_undo_neither_panic_nor_hang_nor_take_memory() {
        in_memory("crafted_redo_and_undo_neither_panic_nor_hang_nor_take_memory", 1 << 30, || {
            let (_home, ground) = ground();
            many(300, |bytes| {
                ground.redo(bytes).unwrap();
            });
        });
    }

    #[test]
    fn a_crafted_log_without_mistakes_is_recovered() {
        let (_home, ground) = ground();
        // Right words all the way: a transaction that begins and does not commit.
        assert!(ground.redo(&[0; 64]).unwrap());
        assert!(ground.control(&[0]).is_ok());
    }

    proptest! {
        #[test]
        fn any_words_make_a_control_file_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            slots(&bytes);
        }
    }
}
