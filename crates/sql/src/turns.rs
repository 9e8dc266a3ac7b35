//! When the next session may connect (CONNECT_RATE).

use assay_measure::locked::locked;
use assay_run::engine::EngineError;
use assay_run::stop::Stop;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Interval between two checks of a stop request.
const TICK: Duration = Duration::from_millis(20);

/// Sessions of all threads connect one after the other.
#[derive(Debug)]
pub(crate) struct Turns {
    gap: Duration,
    next: Mutex<Instant>,
}

impl Turns {
    /// Admits so many sessions per second.
    pub(crate) fn new(rate_per_s: u64) -> Self {
        Self {
            gap: Duration::from_secs(1) / u32::try_from(rate_per_s.max(1)).unwrap_or(u32::MAX),
            next: Mutex::new(Instant::now()),
        }
    }

    /// Waits for this session's turn.
    ///
    /// # Errors
    /// `Interrupted`: the user asked to stop.
    pub(crate) fn wait(&self, stop: &Stop) -> Result<(), EngineError> {
        let turn = {
            let mut next = locked(&self.next);
            let turn = (*next).max(Instant::now());
            *next = turn + self.gap;
            turn
        };
        while let Some(left) = turn.checked_duration_since(Instant::now()) {
            if stop.requested() {
                return Err(EngineError::Interrupted);
            }
            std::thread::sleep(left.min(TICK));
        }
        Ok(())
    }
}
