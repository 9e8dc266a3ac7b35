//! Sessions that load or read SLOB schemas side by side: the first failure ends all, and a request to stop cancels what they wait for.

use crate::checked::Findings;
use crate::threads::gather;
use assay_measure::locked::locked;
use assay_run::engine::{EngineError, Progress};
use assay_run::stop::Stop;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

/// Interval between two checks that the server is alive.
const LIFE: Duration = Duration::from_secs(5);

/// What each server does in its own way for parallel sessions.
pub(crate) trait Jobs: Sized + 'static {
    /// Where the data set is or will be.
    type At: Clone + Send + Sync + 'static;
    /// The main session, which creates, reads and records.
    type Session;
    /// A worker session beside it.
    type Worker;
    /// The server's identifier of a session.
    type Id: Copy + Send;

    /// After a request to stop, sessions that run for longer than this are left behind; `None`: assay waits for them.
    const LEFT_AFTER: Option<Duration> = None;

    fn id(worker: &Self::Worker) -> Self::Id;

    /// Cancels what these sessions wait for, if the server can do so. Called at every tick until they have ended, with
    /// `again` from the second call on.
    fn interrupt(at: &Self::At, keeper: &mut Self::Session, working: &[Self::Id], again: bool);

    /// Whether the server answers.
    ///
    /// # Errors
    /// `Unusable`: it does not.
    fn alive(_keeper: &mut Self::Session) -> Result<(), EngineError> {
        Ok(())
    }

    fn close(worker: Self::Worker) {
        drop(worker);
    }
}

/// State shared by the sessions that work through SLOB schemas. It outlives a command that gives up a lost server.
pub(crate) struct Job<D: Jobs, W> {
    pub(crate) at: D::At,
    /// The plan of a load, or the marker of a check.
    pub(crate) what: W,
    /// Name of the phase, for progress, and its total in bytes.
    phase: (&'static str, u64),
    schemas: Vec<u32>,
    done_bytes: AtomicU64,
    next: AtomicUsize,
    /// A thread failed, or the user wants to stop: no session starts anything more.
    ended: AtomicBool,
    /// The running sessions, by thread.
    working: Mutex<Vec<(usize, D::Id)>>,
}

/// What a session of a job does: connect, and process a schema.
type Begin<D, W> = fn(&Job<D, W>) -> Result<<D as Jobs>::Worker, EngineError>;
type Each<D, W> = fn(&Job<D, W>, &mut <D as Jobs>::Worker, u32) -> Result<Findings, EngineError>;

impl<D: Jobs, W: Send + Sync + 'static> Job<D, W> {
    pub(crate) fn new(at: &D::At, what: W, phase: (&'static str, u64), schemas: Vec<u32>) -> Arc<Self> {
        Arc::new(Self {
            at: at.clone(),
            what,
            phase,
            schemas,
            done_bytes: AtomicU64::new(0),
            next: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            working: Mutex::default(),
        })
    }

    /// Whether a session should go on.
    ///
    /// # Errors
    /// `Interrupted`: another one has failed, or the user wants to stop.
    pub(crate) fn goes_on(&self) -> Result<(), EngineError> {
        if self.ended.load(Ordering::Acquire) { Err(EngineError::Interrupted) } else { Ok(()) }
    }

    /// Adds bytes to the progress.
    pub(crate) fn done(&self, bytes: u64) {
        self.done_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Processes the schemas with so many sessions.
    ///
    /// # Errors
    /// The first failure; `Interrupted` once the user wants to stop.
    pub(crate) fn run(
        self: &Arc<Self>,
        sessions: usize,
        (begin, each): (Begin<D, W>, Each<D, W>),
        keeper: &mut D::Session,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Findings, EngineError> {
        let threads = sessions.min(self.schemas.len());
        let (tell, told) = mpsc::channel();
        for thread in 0..threads {
            let (job, tell) = (Arc::clone(self), tell.clone());
            std::thread::spawn(move || {
                let done = job.thread(thread, begin, each);
                if done.is_err() {
                    job.ended.store(true, Ordering::Release);
                }
                // The receiver may already be gone.
                let _ = tell.send(done);
            });
        }
        drop(tell);
        let (mut looked, mut stopped, mut interrupted, mut gone) = (Instant::now(), None::<Instant>, false, false);
        let watch = || {
            progress.update(self.phase.0, self.done_bytes.load(Ordering::Relaxed), self.phase.1);
            if stop.requested() {
                self.ended.store(true, Ordering::Release);
                stopped.get_or_insert_with(Instant::now);
            }
            if self.ended.load(Ordering::Acquire) {
                let working: Vec<D::Id> = locked(&self.working).iter().map(|(_, id)| *id).collect();
                D::interrupt(&self.at, keeper, &working, interrupted);
                interrupted = true;
            }
            // A statement that could not be cancelled goes on in the server without us.
            if stopped.zip(D::LEFT_AFTER).is_some_and(|(since, time)| since.elapsed() >= time) {
                return Err(EngineError::Interrupted);
            }
            // A server that shows no sign of life is given up.
            if looked.elapsed() >= LIFE {
                D::alive(keeper).inspect_err(|_| gone = true)?;
                looked = Instant::now();
            }
            Ok(())
        };
        gather(threads, &told, Findings::merge, watch).map_err(|error| match error {
            // Damage is damage, whatever the user wants meanwhile.
            EngineError::Damaged(_) => error,
            _ if stop.requested() && !gone => EngineError::Interrupted,
            _ => error,
        })
    }

    fn thread(&self, thread: usize, begin: Begin<D, W>, each: Each<D, W>) -> Result<Findings, EngineError> {
        let mut worker = begin(self)?;
        locked(&self.working).push((thread, D::id(&worker)));
        let done = self.through(&mut worker, each);
        // The server may soon reuse the number.
        locked(&self.working).retain(|(other, _)| *other != thread);
        D::close(worker);
        done
    }

    fn through(&self, worker: &mut D::Worker, each: Each<D, W>) -> Result<Findings, EngineError> {
        let mut findings = Findings::default();
        while let Some(n) = self.schemas.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            self.goes_on()?;
            findings.merge(&each(self, worker, *n)?);
        }
        Ok(findings)
    }
}
