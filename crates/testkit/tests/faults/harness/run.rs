//! One run of the engine on a simulated disk: driver threads and writers take turns on one thread, as the seed says.

use super::base::{Base, ROWS, SCHEMAS, Setup};
use super::bugs::Bug;
use super::dice::Dice;
use super::model::{Model, Operation};
use assay_measure::clock::Clock;
use assay_native::engine::stepped::{DatabaseWriter, NativeDriver, SteppedEngine};
use assay_run::engine::{Completion, Driver, EngineError, Op, Outcome, Submit, Tag};
use assay_testkit::sim::SimDisk;
use std::time::Duration;

/// Fewer reads in flight than sessions ask for at times, so that reads are deferred too.
const READ_ROOM: usize = 6;
/// A run that takes more turns than this is stuck: a few hundred are usual.
const MOST_TURNS: u64 = 200_000;
/// Driver threads an instance is made for.
const MOST_DRIVERS: usize = 2;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The engine was closed and said so.
    Closed,
    /// The power went.
    Cut,
    /// The engine stopped, for this reason.
    Stopped(String),
}

/// What happens when all operations are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finish {
    /// Sessions log off and the engine is closed.
    Close,
    /// The power goes.
    Cut,
}

/// A run and what it needs.
pub(super) struct Machine<'a> {
    pub(super) base: &'a Base,
    pub(super) disk: &'a SimDisk,
    pub(super) setup: &'a Setup,
    pub(super) finish: Finish,
    pub(super) dice: Dice,
    pub(super) model: &'a mut Model,
    pub(super) next_stamp: &'a mut u64,
    pub(super) clock: Clock,
    pub(super) trace: &'a mut Trace,
    /// Errors that operations ended with.
    pub(super) errors: Vec<String>,
    /// What is wrong with the engine.
    pub(super) bug: Option<Bug>,
}

/// What happened, for people, if they asked for it.
#[derive(Debug, Default)]
pub(super) struct Trace {
    pub(super) wanted: bool,
    pub(super) lines: Vec<String>,
}

impl Trace {
    pub(super) fn say(&mut self, line: impl FnOnce() -> String) {
        if self.wanted {
            self.lines.push(line());
        }
    }
}

/// The threads of a run, which are none.
struct Crew<'a> {
    engine: &'a SteppedEngine,
    drivers: Vec<NativeDriver<'a>>,
    writers: Vec<DatabaseWriter<'a>>,
    /// Per session, from 0: what it is doing, if anything.
    doing: Vec<Option<Op>>,
}

impl Machine<'_> {
    /// Runs until all is done, the power goes or the engine stops. Nothing is open afterwards.
    ///
    /// # Errors
    /// What no engine may do: fail without a fault, get stuck, close with something left.
    pub(super) fn run(mut self) -> Result<(End, Vec<String>), String> {
        Bug::running(self.bug, self.disk);
        let engine = match self.open() {
            Ok(engine) => engine,
            Err(error) => return Ok((self.ended_by(error.to_string()), self.errors)),
        };
        let end = match self.crew(&engine) {
            Ok(mut crew) => {
                let end = self.work(&mut crew)?;
                self.dismiss(crew, end)?
            }
            Err(error) => self.ended_by(error.to_string()),
        };
        drop(engine);
        self.trace.say(|| format!("the run ended: {end:?}"));
        Ok((end, self.errors))
    }

    fn ended_by(&self, error: String) -> End {
        if self.disk.has_power() { End::Stopped(error) } else { End::Cut }
    }

    fn open(&self) -> Result<SteppedEngine, EngineError> {
        let options = self.setup.options(self.base, self.bug)?;
        SteppedEngine::open(&self.base.places, &self.setup.plan(), options, self.clock.clone(), MOST_DRIVERS)
    }

    fn crew<'e>(&self, engine: &'e SteppedEngine) -> Result<Crew<'e>, EngineError> {
        let assignments = self.setup.plan().assignments(self.setup.drivers);
        let drivers = assignments.iter().map(|assignment| engine.driver(assignment, READ_ROOM));
        let drivers = drivers.collect::<Result<_, _>>()?;
        let writers = (0..self.setup.writers).map(|number| engine.writer(number)).collect::<Result<_, _>>()?;
        Ok(Crew { engine, drivers, writers, doing: vec![None; self.setup.sessions as usize] })
    }

    fn work(&mut self, crew: &mut Crew<'_>) -> Result<End, String> {
        let mut left = self.setup.operations;
        for _ in 0..MOST_TURNS {
            if let Some(end) = self.over(crew) {
                return Ok(end);
            }
            if left == 0 && crew.doing.iter().all(Option::is_none) {
                return self.end_well(crew);
            }
            self.pass_time();
            match self.dice.below(10) {
                0..=2 if left > 0 => left -= u64::from(self.submit(crew)),
                0..=6 => self.reap(crew),
                _ => self.turn(crew),
            }
        }
        Err(format!("stuck with {left} operations to go: {}", stand(crew)))
    }

    fn over(&self, crew: &Crew<'_>) -> Option<End> {
        if !self.disk.has_power() {
            return Some(End::Cut);
        }
        let reason = crew.engine.failure()?;
        Some(End::Stopped(reason.to_owned()))
    }

    /// Microseconds mostly, sometimes long enough for a timer.
    fn pass_time(&mut self) {
        let ns = match self.dice.below(100) {
            0 => 4_000_000_000,
            1..=9 => 11_000_000,
            _ => self.dice.below(60_000),
        };
        self.clock.advance_to(self.clock.now_ns() + ns);
    }

    /// Gives an idle session something to do; false where all are busy.
    fn submit(&mut self, crew: &mut Crew<'_>) -> bool {
        let idle: Vec<usize> = (0..crew.doing.len()).filter(|session| crew.doing[*session].is_none()).collect();
        if idle.is_empty() {
            self.reap(crew);
            return false;
        }
        let session = idle[self.dice.below(idle.len() as u64) as usize];
        let op = self.draw(session as u64);
        crew.doing[session] = Some(op);
        let number = session as u64 + 1;
        self.trace.say(|| format!("session {number}: {op:?}"));
        if let Op::Update { schema, first_key, width, stamp, commit } = op {
            let operation = Operation { schema, first_key, width, stamp, heavy: self.setup.heavy, commit };
            self.model.begin(number, operation);
        }
        let (driver, tag) = self.place(session);
        let now = self.clock.now_ns();
        if let Submit::Done(outcome) = crew.drivers[driver].submit(tag, &op, now) {
            self.ended(crew, session, &outcome);
        }
        true
    }

    fn draw(&mut self, session: u64) -> Op {
        let dice = &mut self.dice;
        let schema =
            if self.setup.shared { dice.between(1, u64::from(SCHEMAS)) as u32 } else { session as u32 % SCHEMAS + 1 };
        // Half of the operations go to few keys, so that sessions meet and blocks change often.
        let span = if dice.chance(50) { 8 } else { ROWS };
        let width = dice.between(1, self.setup.most_rows) as u32;
        let first_key = dice.between(1, span.min(ROWS - u64::from(width) + 1));
        if dice.chance(12) {
            return Op::Select { schema, first_key, width };
        }
        *self.next_stamp += 1;
        Op::Update {
            schema,
            first_key,
            width,
            stamp: *self.next_stamp,
            commit: self.setup.commit_every == 1 || dice.below(self.setup.commit_every) == 0,
        }
    }

    /// Sessions are dealt to the drivers in turn.
    fn place(&self, session: usize) -> (usize, Tag) {
        let drivers = self.setup.drivers.min(self.setup.sessions as usize);
        (session % drivers, (session / drivers) as Tag)
    }

    fn reap(&mut self, crew: &mut Crew<'_>) {
        let drivers = crew.drivers.len();
        let driver = self.dice.below(drivers as u64) as usize;
        let mut ended: Vec<Completion> = Vec::new();
        if let Err(error) = crew.drivers[driver].reap(Duration::ZERO, &mut ended) {
            // The driver loop ends the run for such an error.
            crew.engine.fail(&error.to_string());
        }
        for Completion { tag, outcome } in ended {
            self.ended(crew, tag as usize * drivers + driver, &outcome);
        }
    }

    fn ended(&mut self, crew: &mut Crew<'_>, session: usize, outcome: &Outcome) {
        let number = session as u64 + 1;
        let op = crew.doing[session].take();
        match (&outcome.result, op) {
            (Ok(_), Some(Op::Update { commit, .. })) => {
                if commit {
                    let durable = crew.engine.durable_lsn();
                    self.model.acknowledge(number, durable);
                    self.trace.say(|| format!("session {number}: committed, log durable to {durable}"));
                }
            }
            // A log-off commits what was open.
            (Ok(_), None) => self.model.acknowledge(number, crew.engine.durable_lsn()),
            (Ok(rows), Some(Op::Select { width, .. })) if *rows != u64::from(width) => {
                self.errors.push(format!("a select of {width} keys found {rows} rows"));
            }
            (Ok(_), _) => {}
            (Err(error), _) => {
                self.trace.say(|| format!("session {number}: {}: {}", error.class, error.text));
                self.errors.push(format!("{}: {}", error.class, error.text));
            }
        }
    }

    fn turn(&mut self, crew: &mut Crew<'_>) {
        let number = self.dice.below(crew.writers.len() as u64) as usize;
        if let Err(error) = crew.writers[number].step() {
            crew.engine.fail(&error.to_string());
        }
    }

    /// All operations are done.
    fn end_well(&mut self, crew: &mut Crew<'_>) -> Result<End, String> {
        if self.finish == Finish::Cut {
            return Ok(End::Cut);
        }
        for session in 0..crew.doing.len() {
            self.model.log_off(session as u64 + 1);
            let (driver, tag) = self.place(session);
            crew.drivers[driver].leave(tag);
        }
        let mut ended = Vec::new();
        for _ in 0..MOST_TURNS {
            if let Some(end) = self.over(crew) {
                return Ok(end);
            }
            if crew.drivers.iter().all(|driver| driver.leaving() == 0) {
                return Ok(self.close(crew));
            }
            self.pass_time();
            if self.dice.chance(60) {
                let driver = self.dice.below(crew.drivers.len() as u64) as usize;
                if let Err(error) = crew.drivers[driver].reap(Duration::ZERO, &mut ended) {
                    crew.engine.fail(&error.to_string());
                }
            } else {
                self.turn(crew);
            }
        }
        Err(format!("stuck while sessions log off: {}", stand(crew)))
    }

    /// As the engine's own `close` does it, the further writers first.
    fn close(&mut self, crew: &mut Crew<'_>) -> End {
        crew.drivers.clear();
        for writer in crew.writers.iter_mut().rev() {
            if let Err(error) = writer.finish() {
                crew.engine.fail(&error.to_string());
            }
        }
        if let Some(end) = self.over(crew) {
            return end;
        }
        for session in 0..crew.doing.len() {
            self.model.acknowledge(session as u64 + 1, u64::MAX);
        }
        self.model.close();
        End::Closed
    }

    /// Everything goes: as at a power cut, or as after an error, when nothing may be written any more.
    fn dismiss(&mut self, crew: Crew<'_>, end: End) -> Result<End, String> {
        let Crew { engine, drivers, mut writers, .. } = crew;
        if end == End::Cut {
            self.disk.cut_now();
            engine.fail("the power went");
        }
        let stopped = matches!(end, End::Stopped(_));
        drop(drivers);
        if stopped {
            for writer in writers.iter_mut().rev() {
                // It has nothing left to say: the engine has failed already.
                let _ = writer.finish();
            }
        }
        drop(writers);
        let late = self.disk.steps_after_failure();
        if late > 0 {
            return Err(format!("{late} writes or syncs were asked for after one had failed"));
        }
        Ok(end)
    }
}

/// What everybody waits for.
fn stand(crew: &Crew<'_>) -> String {
    let waits: Vec<String> = crew.drivers.iter().flat_map(NativeDriver::waits).collect();
    format!("{}; {:?}", waits.join(", "), crew.engine)
}
