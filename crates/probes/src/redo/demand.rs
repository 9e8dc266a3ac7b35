//! What a database requires of the link to its standby: commits on a schedule, or redo and log writes per second.

use super::options as o;
use assay_run::engine::EngineError;
use assay_run::probe::{ProbeOption, Request};
use serde::{Deserialize, Serialize};

/// Bytes that commits share in a message: what a log writer hands over at once.
const GROUP_BYTES: u64 = 1 << 20;

/// Commits that come by schedule and share messages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Commits {
    /// Commits in a second.
    pub(super) rate: f64,
    /// Bytes of one.
    pub(super) size: u64,
}

impl Commits {
    /// Commits in one message at most.
    pub(super) fn most(self) -> u64 {
        GROUP_BYTES / self.size
    }

    /// When commit `number`, from 0, is due, ns after the start.
    pub(super) fn due_ns(self, number: u64) -> u64 {
        (number as f64 / self.rate * 1e9) as u64
    }

    /// Commits due until then, ns after the start.
    pub(super) fn due_by(self, ns: u64) -> u64 {
        (ns as f64 * self.rate / 1e9) as u64 + 1
    }
}

/// Redo of a database in a second, as AWR has it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Workload {
    pub(super) bytes_per_s: u64,
    pub(super) writes_per_s: u64,
}

impl Workload {
    /// Bytes of an average write; the last one begun counts.
    pub(super) fn write_bytes(self) -> u64 {
        self.bytes_per_s.div_ceil(self.writes_per_s)
    }
}

/// What was asked for, and the length of the messages it makes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Demand {
    pub(super) commits: Option<Commits>,
    pub(super) workload: Option<Workload>,
    /// Bytes of the longest payload.
    pub(super) length: u64,
}

impl Demand {
    pub(super) fn of(request: &Request) -> Result<Self, EngineError> {
        let usage = |text: String| Err(EngineError::Usage(text));
        let is_said = |option: &ProbeOption| {
            let word = format!("{}=", option.name);
            request.words.iter().any(|said| said.starts_with(&word))
        };
        let commits = both(request, &o::COMMIT_RATE, &o::COMMIT_SIZE, commits)?;
        let workload = both(request, &o::REDO_RATE, &o::REDO_WRITES, workload)?;
        let (length, said) = match (commits, workload) {
            (None, None) => (o::size_bytes(request, &o::LENGTH)?, ""),
            (Some(commits), None) => (commits.most() * commits.size, "--commit-size"),
            (None, Some(workload)) => (workload.write_bytes(), "--redo-rate over --redo-writes"),
            (Some(_), Some(_)) => {
                return usage(
                    "--redo-rate measures the most that this link can carry, --commit-rate sends a fixed rate: leave \
                     one out"
                        .to_owned(),
                );
            }
        };
        if !said.is_empty() && is_said(&o::LENGTH) {
            return usage(format!("--length: {said} sets the length of a message; leave --length out"));
        }
        Ok(Self { commits, workload, length })
    }
}

/// Two options of which neither means anything without the other.
fn both<T>(
    request: &Request,
    a: &ProbeOption,
    b: &ProbeOption,
    read: fn(&Request) -> Result<T, EngineError>,
) -> Result<Option<T>, EngineError> {
    match (request.is_on(a), request.is_on(b)) {
        (false, false) => Ok(None),
        (true, true) => read(request).map(Some),
        (true, false) => Err(needs(a, b)),
        (false, true) => Err(needs(b, a)),
    }
}

fn needs(there: &ProbeOption, missing: &ProbeOption) -> EngineError {
    EngineError::Usage(format!("--{} needs --{} {}", there.name, missing.name, missing.value))
}

fn commits(request: &Request) -> Result<Commits, EngineError> {
    let rate = request.number(&o::COMMIT_RATE, o::RATES)?;
    let size = request.size_bytes(&o::COMMIT_SIZE, 1..=GROUP_BYTES)?;
    Ok(Commits { rate: rate.unwrap_or_default(), size: size.unwrap_or(1) })
}

fn workload(request: &Request) -> Result<Workload, EngineError> {
    let bytes = request.size_bytes(&o::REDO_RATE, 1..=1 << 40)?;
    let writes = request.number(&o::REDO_WRITES, 1..=10_000_000)?;
    Ok(Workload { bytes_per_s: bytes.unwrap_or(1), writes_per_s: writes.unwrap_or(1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(words: &[&str]) -> Result<Demand, EngineError> {
        Demand::of(&Request { words: words.iter().map(|word| (*word).to_owned()).collect(), ..Request::default() })
    }

    #[test]
    fn what_a_database_does_says_how_long_messages_are() {
        assert_eq!(demand(&[]).unwrap().length, 1 << 20);
        let found = demand(&["redo-rate=2m", "redo-writes=500"]).unwrap();
        assert_eq!(found.length, 4195);
        let found = demand(&["commit-rate=5000", "commit-size=700"]).unwrap();
        assert_eq!(found.length, (1 << 20) / 700 * 700);
        for (words, told) in [
            (&["redo-rate=2m"][..], "--redo-rate needs --redo-writes N"),
            (&["redo-writes=5"], "--redo-writes needs --redo-rate SIZE"),
            (&["commit-rate=5"], "--commit-rate needs --commit-size SIZE"),
            (&["commit-rate=x", "commit-size=1k"], "--commit-rate x: "),
            (&["commit-rate=5", "commit-size=2m"], "--commit-size 2m: "),
            (&["redo-rate=1m", "redo-writes=9", "length=8k"], "--length: "),
            (&["redo-rate=1m", "redo-writes=9", "commit-rate=5", "commit-size=1k"], "leave one out"),
        ] {
            let error = demand(words).unwrap_err().to_string();
            assert!(error.contains(told), "{words:?}: {error}");
        }
    }

    #[test]
    fn every_commit_is_due_once() {
        let commits = Commits { rate: 3000.0, size: 512 };
        assert_eq!((commits.due_ns(0), commits.due_by(0)), (0, 1));
        for number in 0..100_000 {
            let due = commits.due_by(commits.due_ns(number) + 1);
            assert_eq!(due, number + 1);
        }
    }
}
