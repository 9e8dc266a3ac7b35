//! The primary's own log: written before a message is sent, or by a separate thread while the message is in flight.
//!
//! In parallel it needs a thread: a thread that writes cannot receive acknowledgements, and the standby would seem as
//! slow as the local disk.

use super::ask::Local;
use super::log::{Log, PAYLOAD_AT};
use super::payload::Pool;
use assay_measure::clock::{Clock, Ns};
use assay_run::engine::EngineError;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// A local write: its time, and when it ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Written {
    pub(super) took_ns: Ns,
    pub(super) ended_ns: Ns,
}

/// Sequence and bytes of a message.
type Order = (u64, usize);

/// Who writes the local log.
pub(super) enum Scribe {
    /// Nobody.
    None,
    /// The sending thread, before it sends.
    Before(Box<Pen>),
    /// A thread, meanwhile.
    Beside(Beside),
}

/// The log and what is written to it.
pub(super) struct Pen {
    log: Log,
    pool: Pool,
    clock: Clock,
}

/// The thread and the way to it and back.
pub(super) struct Beside {
    orders: Option<Sender<Order>>,
    done: Receiver<Result<Written, String>>,
    thread: Option<JoinHandle<()>>,
}

impl Pen {
    fn write(&mut self, (sequence, length): Order) -> Result<Written, String> {
        let payload = self.pool.of(sequence, length);
        self.log.buffer()[PAYLOAD_AT..PAYLOAD_AT + length].copy_from_slice(payload);
        let took = self.log.write(length, &self.clock);
        let took = took.map_err(|error| format!("the local log: {error}"))?;
        Ok(Written { took_ns: took.write_ns + took.sync_ns, ended_ns: self.clock.now_ns() })
    }
}

impl Scribe {
    /// # Errors
    /// There is no thread to be had.
    pub(super) fn new(local: Local, log: Option<Log>, pool: &Pool, clock: &Clock) -> Result<Self, EngineError> {
        let Some(log) = log else {
            return Ok(Self::None);
        };
        let mut pen = Box::new(Pen { log, pool: pool.clone(), clock: clock.clone() });
        if local != Local::Parallel {
            return Ok(Self::Before(pen));
        }
        let (orders, ordered) = channel::<Order>();
        let (says, done) = channel();
        let work = move || {
            // Nobody listens any more, or orders: both end it.
            while let Ok(order) = ordered.recv() {
                if says.send(pen.write(order)).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new()
            .spawn(work)
            .map_err(|error| EngineError::Unusable(format!("a thread for --local cannot be started: {error}")))?;
        Ok(Self::Beside(Beside { orders: Some(orders), done, thread: Some(thread) }))
    }

    /// Before message `sequence` is sent: it is written now, or a thread begins to.
    pub(super) fn before(&mut self, sequence: u64, length: usize) -> Result<Ns, String> {
        match self {
            Self::None => Ok(0),
            Self::Before(pen) => Ok(pen.write((sequence, length))?.took_ns),
            Self::Beside(beside) => {
                let sent = beside.orders.as_ref().map(|orders| orders.send((sequence, length)));
                match sent {
                    Some(Ok(())) => Ok(0),
                    _ => Err(GONE.to_owned()),
                }
            }
        }
    }

    /// Waits for what a thread writes; nothing where there is none.
    pub(super) fn beside(&mut self) -> Result<Option<Written>, String> {
        match self {
            Self::Beside(beside) => match beside.done.recv() {
                Ok(written) => written.map(Some),
                Err(_) => Err(GONE.to_owned()),
            },
            Self::None | Self::Before(_) => Ok(None),
        }
    }
}

const GONE: &str = "the thread that writes the local log is gone";

impl Drop for Beside {
    fn drop(&mut self) {
        self.orders = None;
        // The log's file is gone when this returns.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
