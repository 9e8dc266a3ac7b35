//! How many requests go to the kernel at a time, and how many completions are waited for.

use crate::storage::spec::{IoEngine, Options, PaceOptions};
use std::time::Duration;

/// The waiting policy of a clone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    /// Requests kept in flight.
    pub(super) depth: u32,
    /// Requests per submitting call at most.
    pub(super) submit: u32,
    /// Completions to wait for; 0: take what is there.
    pub(super) complete_min: u32,
    /// Completions to take at most.
    pub(super) complete_max: u32,
    /// Once full, take completions until no more than this are in flight.
    pub(super) low: u32,
    /// After this, one completion is enough.
    pub(super) patience: Option<Duration>,
}

impl Policy {
    pub(super) fn of(options: &Options) -> Self {
        let pace = &options.pace;
        let synchronous = matches!(options.engine, IoEngine::Psync | IoEngine::Pvsync2);
        let depth = if synchronous { 1 } else { pace.depth.max(1) };
        let given = [
            pace.batch_submit,
            pace.batch_complete_min,
            pace.batch_complete_max,
            pace.depth_low,
        ];
        if given.iter().any(Option::is_some) {
            return Self::as_given(pace, depth);
        }
        Self {
            depth,
            submit: depth,
            complete_min: 1,
            complete_max: depth,
            low: depth,
            patience: None,
        }
    }

    /// As fio means these options; those left out have fio's defaults.
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
            patience: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(change: impl FnOnce(&mut PaceOptions)) -> Policy {
        let mut options = Options {
            engine: IoEngine::IoUring,
            ..Options::default()
        };
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
        let numbers = (
            policy.submit,
            policy.complete_min,
            policy.complete_max,
            policy.low,
        );
        assert_eq!(numbers, (16, 8, 32, 32));
        let policy = of(|pace| pace.batch_submit = Some(0));
        assert_eq!(
            (policy.submit, policy.complete_min, policy.complete_max),
            (32, 1, 1)
        );
        let policy = of(|pace| pace.depth_low = Some(4));
        assert_eq!((policy.submit, policy.low), (1, 4));
        let policy = of(|pace| pace.batch_complete_min = Some(0));
        assert_eq!((policy.complete_min, policy.complete_max), (0, 1));
    }

    #[test]
    fn a_synchronous_engine_has_one_request_whatever_is_asked() {
        let mut options = Options::default();
        options.pace.depth = 32;
        assert_eq!(Policy::of(&options).depth, 1);
    }
}
