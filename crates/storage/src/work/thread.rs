//! The thread of a clone: sets up, waits at the gate, works, and leaves its reading.

use super::board::Board;
use super::worker::{CloneTask, Worker};
use crate::pattern::Pattern;
use crate::readings::{CloneReading, Way};
use crate::spec::{Amount, IoEngine, JobOptions};
use crate::verify::Content;
use assay_block::{LaneEngine, Lanes, LanesOptions, SyncCall, UringMode, set_timer_slack};
use assay_measure::clock::Clock;
use assay_measure::prng::{Purpose, Stream};
use assay_run::engine::EngineError;
use assay_run::stop::Stop;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The results of a clone.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) reading: CloneReading,
    /// Why it never started, if so.
    pub(super) refused: Option<EngineError>,
    /// The features that the ring obtained; the refused ones follow.
    pub(super) features: Vec<String>,
    pub(super) refusals: Vec<(String, String)>,
    /// Notes on its figures.
    pub(super) notes: Vec<String>,
}

impl Left {
    /// The reading, with a refusal as its error.
    pub(super) fn into_reading(self) -> CloneReading {
        let mut reading = self.reading;
        if let Some(refused) = self.refused {
            reading.error = match &refused {
                EngineError::Io { source, .. } => source.raw_os_error().unwrap_or(EIO),
                _ => EIO,
            };
            reading.error_text = Some(refused.to_string());
        }
        reading
    }
}

/// `EIO` stands for errors without an operating system number.
pub(super) const EIO: i32 = 5;

/// Runs one clone from setup to end. A panic ends only this clone.
pub(super) fn run(task: &CloneTask<'_>, board: &Board, stop: &Stop) -> Left {
    let mut left = Left {
        reading: CloneReading {
            job: task.job,
            clone: task.clone,
            pid: rustix::thread::gettid().as_raw_nonzero().get() as u32,
            ..CloneReading::default()
        },
        ..Left::default()
    };
    let mut at_gate = false;
    let worked = catch_unwind(AssertUnwindSafe(|| {
        board.cards[task.index].set_state(b'P');
        let mut worker = match set_up(task, board, stop, &mut left) {
            Ok(worker) => worker,
            Err(error) => {
                board.cards[task.index].failed.store(true, Ordering::Release);
                left.refused = Some(error);
                return;
            }
        };
        board.cards[task.index].set_state(b'I');
        at_gate = true;
        if board.ready() && delay(task.options, task, board, stop) {
            worker.work();
            left.reading = worker.reading_at_end();
            if worker.was_cut_off() {
                left.notes.push(format!(
                    "clone {}: the job ended before it had read back everything that it wrote",
                    task.clone + 1
                ));
            }
        }
    }));
    if !at_gate {
        board.ready();
    }
    if let Err(panic) = worked {
        left.reading.error = EIO;
        left.reading.error_text = Some(format!("the clone's thread failed: {}", words(&panic)));
    }
    board.cards[task.index].set_state(b'E');
    board.end(task.index, Clock::real().now_ns());
    left
}

/// The message of a panic.
fn words(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no reason given")
}

pub(super) fn set_up<'a>(
    task: &'a CloneTask<'a>,
    board: &'a Board,
    stop: &'a Stop,
    left: &mut Left,
) -> Result<Worker<'a>, EngineError> {
    let options = task.options;
    place(options, task.clone)?;
    let pattern = pattern(task)?;
    let files = task.opened.files_of(task.job, task.clone, stop)?;
    let policy = super::policy::Policy::of(options);
    let mut lanes = Lanes::open(LanesOptions {
        lanes: policy.depth,
        lane_bytes: most_block(options) as usize,
        files: files.clone(),
        engine: lane_engine(options),
    })
    .map_err(|error| EngineError::Unusable(format!("{}: {error}", task.name)))?;
    lanes.shorten(options.shorten);
    left.features = lanes.features().obtained.clone();
    left.refusals = lanes.features().refused.clone();
    let lanes_open = policy.depth as usize;
    let mut content = Content::new(options, task.number, task.seed, task.run, lanes_open)
        .map_err(|error| EngineError::Usage(format!("{}: {}", task.name, error.what)))?;
    content.set_shared(task.shared);
    content.set_numbers(task.opened.numbers_of(task.job, task.clone));
    let worker = Worker::new(task, board, stop, lanes, files, pattern, content);
    if worker.pace.rated().contains(&true) || options.pace.think_ns > 0 {
        // A schedule is only as precise as its timer; if the kernel refuses this, wake-ups are up to 50 us late.
        let _ = set_timer_slack(1);
    }
    Ok(worker)
}

/// The clone's pattern over its part of the files.
fn pattern(task: &CloneTask<'_>) -> Result<Pattern, EngineError> {
    let mut options = std::borrow::Cow::Borrowed(task.options);
    if let Some(bytes) = task.amount_bytes.filter(|_| options.pattern.io_size.is_none()) {
        options.to_mut().pattern.io_size = Some(Amount::Bytes(bytes));
    }
    Pattern::new(&options, task.regions, task.number, task.seed).map_err(|error| EngineError::Usage(error.to_string()))
}

/// Largest block of any direction of the job, bytes: the size of a buffer.
pub(super) fn most_block(options: &JobOptions) -> u32 {
    let pattern = &options.pattern;
    Way::ALL
        .iter()
        // Trims need no buffer.
        .filter(|&&way| way != Way::Trim)
        .filter(|&&way| pattern.blocks_by_sequence || pattern.mode.goes(way))
        .map(|way| pattern.blocks[way.index()].max)
        .max()
        .unwrap_or(4096)
}

fn lane_engine(options: &JobOptions) -> LaneEngine {
    let ring = options.ring;
    let defaults = UringMode::default();
    let mode = UringMode {
        fixed_buffers: ring.fixed_buffers.unwrap_or(defaults.fixed_buffers),
        registered_files: ring.registered_files.unwrap_or(defaults.registered_files),
        polled: ring.polled,
        sq_thread: ring.sq_thread,
        sq_thread_cpu: ring.sq_thread_cpu,
        nonvectored: ring.nonvectored.unwrap_or(defaults.nonvectored),
        force_async: ring.force_async,
        nowait: ring.nowait,
    };
    match options.engine {
        IoEngine::Psync => LaneEngine::Psync(SyncCall::default()),
        IoEngine::Pvsync2 => LaneEngine::Psync(SyncCall { high_priority: ring.polled, nowait: ring.nowait }),
        IoEngine::IoUring => LaneEngine::Uring(mode),
        IoEngine::Libaio => LaneEngine::Aio,
        IoEngine::Null => LaneEngine::Null,
        IoEngine::Nop => LaneEngine::Nop(mode),
    }
}

/// Binds the thread to CPUs and sets its priority as the options request.
fn place(options: &JobOptions, clone: u32) -> Result<(), EngineError> {
    let placement = &options.placement;
    if let Some(cpus) = placement.cpus.as_ref().filter(|cpus| !cpus.is_empty()) {
        let mut set = CpuSet::new();
        if placement.split {
            set.set(cpus[clone as usize % cpus.len()] as usize)
        } else {
            cpus.iter().for_each(|&cpu| set.set(cpu as usize))
        }
        sched_setaffinity(None, &set).map_err(|error| EngineError::Io {
            what: format!("cannot run on the processors of cpus_allowed={cpus:?}"),
            source: error.into(),
        })?;
    }
    if let Some(nice) = placement.nice {
        // Linux keeps a priority per thread, under the thread's id.
        let thread = rustix::thread::gettid();
        rustix::process::setpriority_process(Some(thread), nice)
            .map_err(|error| EngineError::Io { what: format!("cannot set nice={nice}"), source: error.into() })?;
    }
    Ok(())
}

/// Waits for `wait_for`, then `startdelay`; returns whether to continue.
fn delay(options: &JobOptions, task: &CloneTask<'_>, board: &Board, stop: &Stop) -> bool {
    let (least, most) = options.pace.start_delay_ns;
    let mut stream = Stream::new(task.seed, u64::from(task.number), Purpose::ThinkLength);
    let ns = least + stream.below(most.saturating_sub(least) + 1);
    let orders = &board.orders[task.index];
    let mut until = None;
    loop {
        if stop.requested() || orders.end.load(Ordering::Relaxed) {
            return false;
        }
        if until.is_none() && !task.after.iter().all(|&clone| board.cards[clone].has_ended()) {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        let until = *until.get_or_insert_with(|| Instant::now() + Duration::from_nanos(ns));
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(Duration::from_millis(20)));
    }
}
