//! One seed: runs, faults, power cuts, recoveries, and the judgement of each.

use super::base::{Base, MOST_SESSIONS, Setup, Silent};
use super::bugs::Bug;
use super::dice::Dice;
use super::inspect::Inspector;
use super::model::{Key, Model, Promise, Table, Verdict};
use super::run::{End, Finish, Machine, Trace};
use assay_measure::clock::Clock;
use assay_native::Native;
use assay_native::control::State;
use assay_native::control_file::ControlFile;
use assay_native::engine::stepped::{CommitMode, Watch, recover};
use assay_run::engine::{EngineError, Target};
use assay_run::stop::Stop;
use assay_testkit::sim::{Cut, FAULT_KINDS, Fault, FaultKind, Incident, SimDisk, SimImage};
use std::path::Path;

/// Power cuts during recoveries of one round, at most.
const MOST_RECOVERY_CUTS: u64 = 3;
/// One seed in so many ends with the product's own `check`.
const CHECK_EVERY: u64 = 32;

/// What seeds did and found, added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Seeds.
    pub(crate) seeds: u64,
    /// How often each of [`FAULT_KINDS`] hit.
    pub(crate) hits: [u64; FAULT_KINDS.len()],
    /// Runs of the engine.
    pub(crate) runs: u64,
    /// Of these, closed well.
    pub(crate) closed: u64,
    /// Of these, ended by an error of the disk.
    pub(crate) stopped: u64,
    /// Recoveries that ended well.
    pub(crate) recoveries: u64,
    /// Recoveries cut off by a power cut or an error of the disk.
    pub(crate) recoveries_cut: u64,
    /// Acknowledged transactions judged.
    pub(crate) acknowledged: u64,
    /// Of these, lost where COMMIT_MODE=none allows it.
    pub(crate) lost_unwaited: u64,
    /// Unacknowledged transactions judged.
    pub(crate) in_doubt: u64,
    /// Of these, found whole.
    pub(crate) in_doubt_kept: u64,
    /// Rotten or misdirected bytes that did no harm: in unused space, or made right by redo.
    pub(crate) harmless: u64,
    /// Those that an error named.
    pub(crate) detected: u64,
    /// Undetectable: the home of a misdirected write holds an older valid version.
    pub(crate) stale_homes: u64,
    /// Undetectable: the last log writes, under way together, were destroyed after they had been acknowledged.
    pub(crate) last_flushes: u64,
    /// Data sets that the product's own `check` judged as well.
    pub(crate) checked: u64,
}

impl Tally {
    /// Adds another's counts.
    pub(super) fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.hits.iter_mut().zip(other.hits) {
            *mine += theirs;
        }
        for (mine, theirs) in [
            (&mut self.seeds, other.seeds),
            (&mut self.runs, other.runs),
            (&mut self.closed, other.closed),
            (&mut self.stopped, other.stopped),
            (&mut self.recoveries, other.recoveries),
            (&mut self.recoveries_cut, other.recoveries_cut),
            (&mut self.acknowledged, other.acknowledged),
            (&mut self.lost_unwaited, other.lost_unwaited),
            (&mut self.in_doubt, other.in_doubt),
            (&mut self.in_doubt_kept, other.in_doubt_kept),
            (&mut self.harmless, other.harmless),
            (&mut self.detected, other.detected),
            (&mut self.stale_homes, other.stale_homes),
            (&mut self.last_flushes, other.last_flushes),
            (&mut self.checked, other.checked),
        ] {
            *mine += theirs;
        }
    }

    pub(super) fn judged(&mut self, verdict: Verdict) {
        self.acknowledged += verdict.acknowledged;
        self.lost_unwaited += verdict.lost;
        self.in_doubt += verdict.in_doubt;
        self.in_doubt_kept += verdict.in_doubt_kept;
    }
}

/// What goes wrong beside power cuts; at most one such thing in a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Trouble {
    None,
    /// A request of the engine fails or is short.
    InRun(FaultKind, &'static str, u64),
    /// Likewise one of recovery.
    InRecovery(FaultKind, &'static str, u64),
    /// A write of the engine goes elsewhere.
    Misdirected(&'static str, u64),
    /// Bits change while nobody looks.
    Rot,
}

/// Names of files a fault may be confined to; the empty one is all.
const FILES: [&str; 5] = ["", "data", "undo", "redo", "control"];

impl Trouble {
    fn draw(dice: &mut Dice) -> Self {
        let scale = dice.between(0, 6);
        let after = dice.below(1 << scale);
        let file = dice.pick(&FILES);
        match dice.below(100) {
            0..=15 => {
                let kind = dice.pick(&[
                    FaultKind::WriteError,
                    FaultKind::SyncError,
                    FaultKind::NoSpace,
                    FaultKind::ShortWrite,
                    FaultKind::ReadError,
                    FaultKind::ShortRead,
                ]);
                // Syncs are few, and the control file's are the first.
                let after = if kind == FaultKind::SyncError { after / 4 } else { after };
                Self::InRun(kind, file, after)
            }
            16..=21 => {
                let kind = dice.pick(&[
                    FaultKind::ReadError,
                    FaultKind::WriteError,
                    FaultKind::SyncError,
                    FaultKind::ShortWrite,
                    FaultKind::NoSpace,
                ]);
                Self::InRecovery(kind, file, after / 2)
            }
            22..=33 => Self::Misdirected(file, after),
            34..=45 => Self::Rot,
            _ => Self::None,
        }
    }

    fn arm(&self, disk: &SimDisk, recovering: bool) {
        let (kind, file, after) = match self {
            Self::InRun(kind, file, after) if !recovering => (*kind, *file, *after),
            Self::InRecovery(kind, file, after) if recovering => (*kind, *file, *after),
            Self::Misdirected(file, after) if !recovering => (FaultKind::Misdirected, *file, *after),
            _ => return,
        };
        disk.arm(Fault { kind, file_prefix: file.to_owned(), after });
    }
}

fn draw_setup(dice: &mut Dice) -> Setup {
    let shared = dice.chance(50);
    let sessions = dice.between(1, if shared { MOST_SESSIONS } else { 2 });
    let heavy = dice.chance(35);
    Setup {
        sessions,
        drivers: dice.between(1, 2) as usize,
        writers: dice.between(1, 2) as usize,
        shared,
        commit_every: if shared || dice.chance(50) { 1 } else { dice.between(2, 4) },
        heavy,
        commit: dice.pick(&[
            CommitMode::Group,
            CommitMode::Group,
            CommitMode::Group,
            CommitMode::Sync,
            CommitMode::None,
        ]),
        full_checksums: dice.chance(25),
        batched: dice.chance(25),
        cache_frames: dice.pick(&[24, 32, 48, 200]),
        no_cache: dice.chance(10),
        operations: dice.between(1, if heavy { 16 } else { 28 }),
        most_rows: dice.between(1, 5),
    }
}

/// One seed under way.
pub(super) struct Case<'a> {
    pub(super) base: &'a Base,
    pub(super) inspector: &'a Inspector<'a>,
    pub(super) tally: &'a mut Tally,
    pub(super) trace: &'a mut Trace,
    pub(super) disk: SimDisk,
    dice: Dice,
    sector_bytes: usize,
    trouble: Trouble,
    next_stamp: u64,
    bug: Option<Bug>,
}

/// How a round ended.
enum Judged {
    /// Everything is as it must be: the image and its rows.
    Good(Box<(SimImage, Table)>),
    /// Something is destroyed, and was named or could not be known.
    Destroyed,
}

/// Runs one seed on one of the bases, with an engine that may have a bug.
///
/// # Errors
/// What went wrong.
pub(super) fn run_seed(
    bases: &[(&Base, &Inspector<'_>)],
    seed: u64,
    bug: Option<Bug>,
    tally: &mut Tally,
    trace: &mut Trace,
) -> Result<(), String> {
    let mut dice = Dice::new(seed, 1);
    let (base, inspector) = bases[dice.below(bases.len() as u64) as usize];
    let mut case = Case {
        base,
        inspector,
        tally,
        trace,
        disk: SimDisk::new(&base.image, dice.next()),
        sector_bytes: dice.pick(&[512, 4096]),
        trouble: Trouble::draw(&mut dice),
        dice,
        next_stamp: 0,
        bug,
    };
    let _mounted = case.disk.mount();
    let outcome = case.rounds(seed);
    let hits = case.disk.hits();
    case.tally.seeds += 1;
    for (sum, hit) in case.tally.hits.iter_mut().zip(hits) {
        *sum += hit;
    }
    outcome
}

impl Case<'_> {
    fn rounds(&mut self, seed: u64) -> Result<(), String> {
        let rounds = self.dice.between(1, 3);
        let troubled = self.dice.below(rounds);
        let (sector_bytes, trouble) = (self.sector_bytes, self.trouble.clone());
        self.trace.say(|| format!("sectors of {sector_bytes}, {rounds} rounds, {trouble:?} in round {troubled}"));
        let mut known = (self.base.image.clone(), Table::new());
        for round in 0..rounds {
            let trouble = if round == troubled { self.trouble.clone() } else { Trouble::None };
            match self.round(&known, &trouble)? {
                Judged::Good(now) => known = *now,
                Judged::Destroyed => return Ok(()),
            }
        }
        if seed.is_multiple_of(CHECK_EVERY) {
            self.tally.checked += 1;
            self.check().map_err(|e| format!("check says: {e}"))?;
        }
        Ok(())
    }

    /// One run of the engine, its end, and what can be found afterwards.
    fn round(&mut self, known: &(SimImage, Table), trouble: &Trouble) -> Result<Judged, String> {
        let setup = draw_setup(&mut self.dice);
        let mut model = Model::new(known.1.clone());
        let finish = if self.dice.chance(35) { Finish::Close } else { Finish::Cut };
        if self.dice.chance(70) {
            let most = self.dice.pick(&[8, 20, 40, 90]);
            self.disk.cut_at_step(self.dice.below(most));
        }
        trouble.arm(&self.disk, false);
        let incidents_before = self.disk.incidents().len();
        self.trace.say(|| format!("{setup:?}, {finish:?}"));
        self.tally.runs += 1;
        let machine = Machine {
            base: self.base,
            disk: &self.disk,
            setup: &setup,
            finish,
            dice: Dice::new(self.dice.next(), 2),
            model: &mut model,
            next_stamp: &mut self.next_stamp,
            clock: Clock::simulated(),
            trace: self.trace,
            errors: Vec::new(),
            bug: self.bug,
        };
        let (end, errors) = machine.run()?;
        match &end {
            End::Closed => self.tally.closed += 1,
            End::Stopped(_) => self.tally.stopped += 1,
            End::Cut => {}
        }
        let hit = self.disk.incidents().len() > incidents_before;
        if !hit && end != End::Cut && (end != End::Closed || !errors.is_empty()) {
            return Err(format!("without any fault: {end:?}, {errors:?}"));
        }
        self.cut();
        if *trouble == Trouble::Rot {
            self.rot();
        }
        Bug::recovering(self.bug, &self.disk, self.base);
        let incidents = self.disk.incidents()[incidents_before..].to_vec();
        for incident in &incidents {
            self.trace.say(|| format!("hit: {incident:?}"));
        }
        let destroyed: Vec<Incident> =
            incidents.into_iter().filter(|i| matches!(i.kind, FaultKind::Misdirected | FaultKind::BitRot)).collect();
        if destroyed.is_empty() {
            self.recover(trouble, end == End::Closed)?;
            self.judge_whole(known, &model, &setup)
        } else {
            self.judge_destroyed(known, &model, &setup, &destroyed)
        }
    }

    fn cut(&mut self) {
        let sector_bytes = self.sector_bytes;
        let report = self.disk.power_cut(Cut::Seeded { sector_bytes });
        self.trace.say(|| format!("power cut: {report:?}"));
        self.trace.say(|| {
            let control = ControlFile::read(&self.base.dir).ok().flatten();
            format!("control says {:?}", control.map(|c| (c.state, c.checkpoint_lsn, c.log_sequence)))
        });
    }

    /// Opens the data set until that succeeds, with cuts and errors on the way.
    fn recover(&mut self, trouble: &Trouble, closed: bool) -> Result<(), String> {
        let mut cuts = self.dice.below(MOST_RECOVERY_CUTS + 1) * u64::from(self.dice.chance(40));
        trouble.arm(&self.disk, true);
        let mut troubled = matches!(trouble, Trouble::InRecovery(..));
        loop {
            if cuts > 0 {
                let most = self.dice.pick(&[3, 8, 30]);
                self.disk.cut_at_step(self.dice.below(most));
            }
            let hits = self.disk.incidents().len();
            let outcome = open_once(self.base, &mut self.dice, self.bug);
            let hit = self.disk.incidents().len() > hits;
            let late = self.disk.steps_after_failure();
            if late > 0 {
                return Err(format!("recovery asked for {late} writes or syncs after one had failed"));
            }
            match outcome {
                Ok(needed) if needed && closed => {
                    return Err("a data set that was closed well needed recovery".to_owned());
                }
                Ok(needed) => {
                    self.trace.say(|| format!("opened, recovery needed: {needed}"));
                    self.tally.recoveries += u64::from(needed);
                    // What it wrote must survive: it said that it was done.
                    self.cut();
                    return Ok(());
                }
                Err(error) if !self.disk.has_power() || (hit && troubled) => {
                    self.trace.say(|| format!("recovery was cut off: {error}"));
                    self.tally.recoveries_cut += 1;
                    troubled &= !hit;
                    cuts = cuts.saturating_sub(1);
                    self.cut();
                }
                Err(error) => return Err(format!("recovery without any fault: {error}")),
            }
        }
    }

    fn promise(setup: &Setup) -> Promise {
        if setup.commit == CommitMode::None { Promise::AnySuffix } else { Promise::Durable }
    }

    fn judge_whole(&mut self, known: &(SimImage, Table), model: &Model, setup: &Setup) -> Result<Judged, String> {
        let image = self.disk.image();
        let log_end = self.log_end()?;
        let found = self.inspector.look(&image, log_end, Some((&known.0, &known.1)));
        if let Some(bad) = found.bad.first() {
            return Err(format!("{} bad blocks: {bad}", found.bad.len()));
        }
        let verdict = model.judge(&found.table, Self::promise(setup), &|_| false)?;
        self.tally.judged(verdict);
        self.trace.say(|| format!("good: {verdict:?}"));
        Ok(Judged::Good(Box::new((image, found.table))))
    }

    /// Bytes were destroyed behind everybody's back: that must be named, harmless, or beyond anybody's knowledge.
    fn judge_destroyed(
        &mut self,
        known: &(SimImage, Table),
        model: &Model,
        setup: &Setup,
        incidents: &[Incident],
    ) -> Result<Judged, String> {
        if let Err(error) = open_once(self.base, &mut self.dice, self.bug) {
            let text = error.to_string();
            self.trace.say(|| format!("detected: {text}"));
            let named = text.contains(&*self.base.dir.to_string_lossy());
            if !named && !text.starts_with("redo log:") {
                return Err(format!("the error names no path: {text}"));
            }
            self.tally.detected += 1;
            return Ok(Judged::Destroyed);
        }
        self.cut();
        let image = self.disk.image();
        let log_end = self.log_end()?;
        let found = self.inspector.look(&image, log_end, Some((&known.0, &known.1)));
        if let Some(sealed) = found.sealed.first() {
            return Err(format!("bytes were destroyed, then sealed: {sealed}"));
        }
        if !found.bad.is_empty() {
            self.trace.say(|| format!("detected by looking: {:?}", found.bad));
            if self.dice.chance(10) && self.check().is_ok() {
                return Err(format!("check finds nothing wrong with {}", found.bad[0]));
            }
            self.tally.detected += 1;
            return Ok(Judged::Destroyed);
        }
        let nobody: &dyn Fn(Key) -> bool = &|_| false;
        let complaint = match model.judge(&found.table, Self::promise(setup), nobody) {
            Ok(verdict) => {
                self.tally.judged(verdict);
                self.tally.harmless += 1;
                // What was hit may still matter to a later recovery, which would name it then.
                return Ok(Judged::Destroyed);
            }
            Err(complaint) => complaint,
        };
        if self.is_beyond_knowledge(&found.table, model, setup, incidents) {
            return Ok(Judged::Destroyed);
        }
        Err(format!("silently wrong after {incidents:?}: {complaint}"))
    }

    /// Whether nothing on the disk can tell that something is missing. Counts what it was.
    fn is_beyond_knowledge(&mut self, found: &Table, model: &Model, setup: &Setup, incidents: &[Incident]) -> bool {
        let nobody: &dyn Fn(Key) -> bool = &|_| false;
        let in_redo = |i: &Incident| name_of(&i.path).starts_with("redo");
        // Each driver thread and each writer has one log write under way at most.
        let last = Promise::LastFlushes(setup.drivers + setup.writers);
        if incidents.iter().any(in_redo) && model.judge(found, last, nobody).is_ok() {
            self.tally.last_flushes += 1;
            return true;
        }
        let misdirected = incidents.iter().filter(|i| i.kind == FaultKind::Misdirected);
        let homes: Vec<Key> = misdirected.flat_map(|i| self.inspector.rows_at(&i.path, i.offset, i.bytes)).collect();
        let excused: &dyn Fn(Key) -> bool = &|key| homes.contains(&key) && model.was_ever(key, found.row(key));
        let stale = model.judge(found, Self::promise(setup), excused).is_ok();
        self.tally.stale_homes += u64::from(stale);
        stale
    }

    /// Where the log of the data set ends, which must be clean.
    fn log_end(&self) -> Result<u64, String> {
        match ControlFile::read(&self.base.dir) {
            Ok(Some(control)) if control.state == State::Clean => Ok(control.checkpoint_lsn),
            Ok(_) => Err("the data set is not marked clean".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Changes one bit, or a few, of one file.
    fn rot(&mut self) {
        let image = self.disk.image();
        let files: Vec<(&Path, u64)> = image.files().collect();
        let prefix = if self.dice.chance(40) { "data" } else { self.dice.pick(&FILES) };
        let wanted: Vec<_> = files.iter().filter(|(path, _)| name_of(path).starts_with(prefix)).collect();
        if wanted.is_empty() {
            return;
        }
        let (path, bytes) = *wanted[self.dice.below(wanted.len() as u64) as usize];
        let mut block = self.dice.below(bytes / 4096);
        // Mostly where something was changed: the rest is never read again.
        for _ in 0..self.dice.pick(&[0, 20, 60]) {
            if !image.shares_block(&self.base.image, path, block as usize) {
                break;
            }
            block = self.dice.below(bytes / 4096);
        }
        let block = block * 4096;
        for _ in 0..self.dice.between(1, 3) {
            let at = block + self.dice.below(4096);
            self.disk.rot(path, at, self.dice.below(8) as u32);
        }
    }

    /// The product's own check of every block.
    fn check(&mut self) -> Result<(), EngineError> {
        self.disk.mistake(None);
        let at = self.base.dir.display().to_string();
        Native.check(&at, &self.base.settings, &Stop::new(), &Silent).map(drop)
    }
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Opens the data set as the engine does before a run; returns whether recovery was needed.
pub(super) fn open_once(base: &Base, dice: &mut Dice, bug: Option<Bug>) -> Result<bool, EngineError> {
    let (stop, progress) = (&Stop::new(), &Silent);
    // Sometimes too little memory for all blocks at once.
    let budget = || dice.pick(&[1 << 18, 1 << 20]);
    recover(&base.places, budget, Bug::rules(bug), Watch { stop, progress })
}
