//! A server that others work on, watched from outside a run.

use assay_measure::snapshot::{Fact, StatSet};
use assay_run::engine::Watched;

/// A server: what is said of it, and how its statistics are read.
pub(crate) struct Live<S> {
    facts: Vec<Fact>,
    sample: S,
}

impl<S: Fn() -> StatSet + 'static> Live<S> {
    /// `blocks` are the bytes of a block and of the cache.
    pub(crate) fn boxed(version: &str, blocks: (u64, u64), told: Vec<Fact>, sample: S) -> Box<dyn Watched> {
        let (block_bytes, cache_bytes) = blocks;
        let mut facts = vec![
            Fact::new("server_version", version),
            Fact::new("block_bytes", block_bytes.to_string()),
            Fact::new("cache_bytes", cache_bytes.to_string()),
        ];
        facts.extend(told);
        Box::new(Self { facts, sample })
    }
}

impl<S: Fn() -> StatSet> Watched for Live<S> {
    fn sample(&self) -> StatSet {
        (self.sample)()
    }

    fn facts(&self) -> Vec<Fact> {
        self.facts.clone()
    }
}
