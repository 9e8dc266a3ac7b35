//! Which commands may work on a data set at the same time: every pair of commands, by a table.
//!
//! The first command of a pair is paused midway, then the second is tried, with the same calls as the program's. A
//! command that cannot be paused (`destroy` ends at once) races instead: the result must be consistent either way.

use super::expect;
use assay_measure::config::Settings;
use assay_run::engine::{EngineError, Presence, Progress, Target};
use assay_run::stop::Stop;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Barrier, Mutex};

/// A place where data sets can be made and removed.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    /// The target.
    pub target: &'a dyn Target,
    /// Where; nothing is there.
    pub location: &'a str,
    /// Of a data set for [`super::plan`].
    pub settings: &'a Settings,
    /// Several runs may share a data set.
    pub runs_share: bool,
}

/// A command on a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    Run,
    /// A sweep between two of its runs.
    Series,
    /// One schema more than there are.
    Prepare,
    Check,
    Destroy,
}

use Command::{Check, Destroy, Prepare, Run, Series};

/// What the second of a pair is told while the first is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// Both go on.
    Together,
    /// Both go on where runs share.
    Shared,
    /// The second is refused and has done nothing.
    Refused,
}

/// Every pair whose first command can be held.
const PAIRS: &[(Command, Command, Answer)] = &[
    (Run, Run, Answer::Shared),
    (Run, Prepare, Answer::Refused),
    (Run, Check, Answer::Refused),
    (Run, Destroy, Answer::Refused),
    (Prepare, Run, Answer::Refused),
    (Prepare, Prepare, Answer::Refused),
    (Prepare, Check, Answer::Refused),
    (Prepare, Destroy, Answer::Refused),
    (Check, Run, Answer::Refused),
    (Check, Prepare, Answer::Refused),
    (Check, Check, Answer::Refused),
    (Check, Destroy, Answer::Refused),
    (Series, Run, Answer::Shared),
    (Series, Series, Answer::Shared),
    (Series, Prepare, Answer::Refused),
    (Series, Check, Answer::Refused),
    (Series, Destroy, Answer::Refused),
    (Prepare, Series, Answer::Refused),
    (Check, Series, Answer::Refused),
];

/// Pairs that race: the first is over too soon to be held.
const RACES: &[Command] = &[Run, Prepare, Check, Destroy];

/// Tries every pair; returns each violation as a sentence.
#[must_use]
pub fn claims_suite(ground: Ground<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for (first, second, answer) in PAIRS {
        // Where runs do not share, each run of a series claims the data set anew.
        if !ground.runs_share && [first, second].contains(&&Series) {
            continue;
        }
        if let Err(error) = ground.whole() {
            found.push(format!("before {first:?} and {second:?}: {error}"));
            continue;
        }
        pair(ground, (*first, *second), *answer, &mut found);
    }
    for other in RACES {
        race(ground, *other, &mut found);
    }
    found
}

/// A target that keeps nothing: its runs may share it, and there are no other commands.
#[must_use]
pub fn claims_suite_of_nothing(ground: Ground<'_>) -> Vec<String> {
    let mut found = Vec::new();
    pair(ground, (Run, Run), Answer::Together, &mut found);
    for command in [Prepare, Check, Destroy] {
        let refused = matches!(ground.perform(command, &Unheard), Err(EngineError::Usage(_)));
        expect(&mut found, refused, || format!("{command:?}: it is no usage error"));
    }
    found
}

fn pair(ground: Ground<'_>, (first, second): (Command, Command), answer: Answer, found: &mut Vec<String>) {
    let name = format!("{first:?} then {second:?}");
    let before = ground.schemas();
    std::thread::scope(|scope| {
        let (hold, held) = Hold::new();
        let working = scope.spawn(move || ground.perform(first, &hold));
        if held.begun.recv().is_err() {
            let ended = working.join();
            found.push(format!("{name}: the first was over before it could be held: {ended:?}"));
            return;
        }
        let told = ground.perform(second, &Unheard);
        // Whoever is held goes on when this end is gone.
        drop(held);
        let together = match answer {
            Answer::Together => true,
            Answer::Shared => ground.runs_share,
            Answer::Refused => false,
        };
        match (&told, together) {
            (Ok(()), true) => {}
            (Err(EngineError::Unusable(text)), false) if text.contains("in use") => {}
            _ => found.push(format!("{name}: the second was told {told:?}")),
        }
        match working.join() {
            Ok(Ok(())) => {}
            ended => found.push(format!("{name}: the first ended with {ended:?}")),
        }
    });
    let grown = u32::from(first == Prepare);
    let after = ground.schemas();
    expect(found, after == before.map(|n| n + grown), || format!("{name}: {before:?} schemas became {after:?}"));
}

/// `destroy` and another command begin together: each ends well or is refused, and what is left is whole or nothing.
fn race(ground: Ground<'_>, other: Command, found: &mut Vec<String>) {
    if let Err(error) = ground.whole() {
        found.push(format!("before Destroy and {other:?}: {error}"));
        return;
    }
    let barrier = Barrier::new(2);
    let begin = |command| {
        barrier.wait();
        ground.perform(command, &Unheard)
    };
    let ended = std::thread::scope(|scope| {
        let racing = scope.spawn(|| begin(other));
        let destroyed = begin(Destroy);
        [Ok(destroyed), racing.join()]
    });
    for ended in ended {
        let fair = matches!(ended, Ok(Ok(()) | Err(EngineError::Unusable(_) | EngineError::Io { .. })));
        expect(found, fair, || format!("Destroy beside {other:?}: {ended:?}"));
    }
    if ground.schemas().is_some() {
        let whole = ground.perform(Check, &Unheard);
        expect(found, whole.is_ok(), || format!("Destroy beside {other:?} left what is not whole: {whole:?}"));
    }
}

impl Ground<'_> {
    /// The number of schemas there; none where nothing is.
    fn schemas(&self) -> Option<u32> {
        match self.target.inspect(self.location, self.settings) {
            Ok(Presence::Present(data)) => Some(data.schemas),
            Ok(Presence::Absent { .. }) | Err(_) => None,
        }
    }

    /// Makes a data set for [`super::plan`] where there is none.
    fn whole(&self) -> Result<(), EngineError> {
        let plan = super::plan();
        if self.schemas().is_some_and(|n| n >= plan.schemas) {
            return Ok(());
        }
        self.prepare(plan.schemas, &Unheard)
    }

    fn prepare(&self, schemas: u32, progress: &dyn Progress) -> Result<(), EngineError> {
        let (at, settings) = (self.location, self.settings);
        self.target.plan_prepare(at, settings, schemas)?;
        let done = self.target.prepare(at, settings, schemas, &Stop::new(), progress);
        done.map(drop)
    }

    /// A command as the program performs it; `progress` may hold it in its midst.
    fn perform(&self, command: Command, progress: &dyn Progress) -> Result<(), EngineError> {
        let (at, settings) = (self.location, self.settings);
        let presence = self.target.inspect(at, settings)?;
        match command {
            Prepare => {
                let there = match presence {
                    Presence::Present(data) => data.schemas,
                    Presence::Absent { .. } => 1,
                };
                self.prepare(there + 1, progress)
            }
            Check => {
                let done = self.target.check(at, settings, &Stop::new(), progress);
                done.map(drop)
            }
            Destroy => {
                self.target.plan_destroy(at, settings)?;
                self.target.destroy(at, settings).map(drop)
            }
            Series => {
                let shared = self.target.share(at, settings)?;
                progress.update("series", 0, 0);
                drop(shared);
                Ok(())
            }
            Run => {
                // No session is opened: it is the data set that is shared.
                let engine = self.target.open(at, &super::plan(), settings, &Stop::new(), &Unheard)?;
                progress.update("run", 0, 0);
                engine.close()
            }
        }
    }
}

/// Holds a command at its first word of progress, until nobody holds the other end.
struct Hold(Mutex<Option<(Sender<()>, Receiver<()>)>>);

/// The other end of a [`Hold`].
struct Held {
    begun: Receiver<()>,
    _go_on: Sender<()>,
}

impl Hold {
    fn new() -> (Self, Held) {
        let ((tell, begun), (go_on, wait)) = (channel(), channel());
        let held = Held { begun, _go_on: go_on };
        (Self(Mutex::new(Some((tell, wait)))), held)
    }
}

impl Progress for Hold {
    fn update(&self, _phase: &str, _done_bytes: u64, _total_bytes: u64) {
        let first = self.0.lock().ok().and_then(|mut held| held.take());
        if let Some((tell, wait)) = first {
            // Both fail only when the pair is over.
            let _ = tell.send(());
            let _ = wait.recv();
        }
    }
}

struct Unheard;

impl Progress for Unheard {
    fn update(&self, _phase: &str, _done_bytes: u64, _total_bytes: u64) {}
}
