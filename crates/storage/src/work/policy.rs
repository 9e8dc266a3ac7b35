//! Decides how many requests to submit at a time, and how many completions to wait for.

use crate::readings::Way;
use crate::spec::{IoEngine, JobOptions, PaceOptions};

/// The waiting policy of a clone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    /// Requests kept in flight.
    pub(super) depth: u32,
    /// Maximum number of requests per submitting call.
    pub(super) submit: u32,
    /// Number of completions to wait for; 0: take those that are ready.
    pub(super) complete_min: u32,
    /// Maximum number of completions to take.
    pub(super) complete_max: u32,
    /// Once the depth is reached, take completions until no more than this many requests are in flight.
    pub(super) low: u32,
    /// No batch option was given: the number to wait for follows from the completions.
    pub(super) adaptive: bool,
}

/// Whether one positional call does the whole I/O.
pub(super) fn is_positional(engine: IoEngine) -> bool {
    matches!(engine, IoEngine::Psync | IoEngine::Pvsync2)
}

/// Whether the job only trims.
pub(super) fn only_trims(options: &JobOptions) -> bool {
    let mode = options.pattern.mode;
    mode.goes(Way::Trim) && !mode.trims_and_writes()
}

/// Whether submission and completion are one call, so that there is no slat. The null engine counts as such at depth 1,
/// as in fio.
pub(super) fn is_synchronous(options: &JobOptions) -> bool {
    is_positional(options.engine) || only_trims(options) || options.engine == IoEngine::Null && options.pace.depth <= 1
}

impl Policy {
    pub(super) fn of(options: &JobOptions) -> Self {
        let pace = &options.pace;
        let depth = if is_positional(options.engine) || only_trims(options) { 1 } else { pace.depth.max(1) };
        let given = [pace.batch_submit, pace.batch_complete_min, pace.batch_complete_max, pace.depth_low];
        if given.iter().any(Option::is_some) {
            return Self::as_given(pace, depth);
        }
        // `io_submit` sleeps while the device's queue is full: of a batch, requests that the device already has would wait
        // for the rest of their call, and book that as submission latency. One a call, as fio submits, is charged its own.
        let submit = if options.engine == IoEngine::Libaio { 1 } else { depth };
        Self { depth, submit, complete_min: 1, complete_max: depth, low: depth, adaptive: true }
    }

    /// With fio's meaning of these options; missing ones have fio's defaults.
    fn as_given(pace: &PaceOptions, depth: u32) -> Self {
        let submit = match pace.batch_submit.unwrap_or(1) {
            0 => depth,
            n => n.min(depth),
        };
        let complete_min = pace.batch_complete_min.unwrap_or(1).min(depth);
        let complete_max = pace.batch_complete_max.unwrap_or(0);
        Self {
            depth,
            submit,
            complete_min,
            complete_max: complete_max.max(complete_min).clamp(1, depth),
            low: match pace.depth_low.unwrap_or(0) {
                0 => depth,
                n => n.min(depth),
            },
            adaptive: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(change: impl FnOnce(&mut PaceOptions)) -> Policy {
        let mut options = JobOptions { engine: IoEngine::IoUring, ..JobOptions::default() };
        options.pace.depth = 32;
        change(&mut options.pace);
        Policy::of(&options)
    }

    #[test]
    fn given_batches_are_taken_as_fio_means_them() {
        let policy = of(|pace| {
            pace.batch_submit = Some(16);
            pace.batch_complete_min = Some(8);
            pace.batch_complete_max = Some(32);
        });
        let numbers = (policy.submit, policy.complete_min, policy.complete_max, policy.low);
        assert_eq!(numbers, (16, 8, 32, 32));
        let policy = of(|pace| pace.batch_submit = Some(0));
        assert_eq!((policy.submit, policy.complete_min, policy.complete_max), (32, 1, 1));
        let policy = of(|pace| pace.depth_low = Some(4));
        assert_eq!((policy.submit, policy.low), (1, 4));
        let policy = of(|pace| pace.batch_complete_min = Some(0));
        assert_eq!((policy.complete_min, policy.complete_max), (0, 1));
    }

    #[test]
    fn libaio_takes_one_request_a_call_since_a_call_may_sleep() {
        let mut options = JobOptions { engine: IoEngine::Libaio, ..JobOptions::default() };
        options.pace.depth = 256;
        assert_eq!(Policy::of(&options).submit, 1);
        options.pace.batch_submit = Some(16);
        assert_eq!(Policy::of(&options).submit, 16);
    }

    #[test]
    fn a_synchronous_engine_has_one_request_whatever_is_asked() {
        let mut options = JobOptions::default();
        options.pace.depth = 32;
        assert_eq!(Policy::of(&options).depth, 1);
    }
}
