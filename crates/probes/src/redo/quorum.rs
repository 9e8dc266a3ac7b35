//! Commit rules: for which standbys a commit waits.

use assay_run::engine::EngineError;
use serde::{Deserialize, Serialize};
use std::fmt;

/// For whom a commit waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Rule {
    /// Every standby.
    All,
    /// Every standby that is left, one at least: `all` with `--grace`.
    Left,
    /// Any this many.
    Any(usize),
    /// The first this many that are present, in the order they were named.
    First(usize),
}

impl fmt::Display for Rule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => out.write_str("all"),
            Self::Left => out.write_str("all that remain"),
            Self::Any(k) => write!(out, "any {k}"),
            Self::First(k) => write!(out, "first {k}"),
        }
    }
}

impl Rule {
    /// `all`, `any K`, `first K`, with a blank, a colon or nothing before K.
    pub(super) fn parse(text: &str, standbys: usize) -> Result<Self, EngineError> {
        let bad = || {
            EngineError::Usage(format!(
                "--ack {text}: give all, \"any K\" or \"first K\" with K from 1 to {standbys}, the number of standbys"
            ))
        };
        let word = text.trim().to_lowercase();
        if word == "all" {
            return Ok(Self::All);
        }
        let count = |rest: &str| {
            let count = rest.trim_start_matches([' ', ':', '=']).parse().ok();
            count.filter(|k| (1..=standbys).contains(k))
        };
        match (word.strip_prefix("any"), word.strip_prefix("first")) {
            (Some(rest), _) => count(rest).map(Self::Any).ok_or_else(bad),
            (_, Some(rest)) => count(rest).map(Self::First).ok_or_else(bad),
            _ => Err(bad()),
        }
    }

    /// Every rule there is for so many standbys; of those that mean the same, one.
    pub(super) fn every(standbys: usize) -> Vec<Self> {
        if standbys == 1 {
            return vec![Self::All];
        }
        let any = (1..standbys).map(Self::Any);
        let first = (1..standbys).map(Self::First);
        any.chain(first).chain([Self::All]).collect()
    }

    /// Standbys that must be there for a commit to come back at all.
    pub(super) fn needs(self, standbys: usize) -> usize {
        match self {
            Self::All => standbys,
            Self::Left => 1,
            Self::Any(k) | Self::First(k) => k,
        }
    }

    /// When the commit is done: `acks` has the time of each standby's acknowledgement, in their order, `lost` whether it
    /// is gone. `None` as long as it waits.
    pub(super) fn done(self, acks: &[Option<u64>], lost: &[bool]) -> Option<u64> {
        match self {
            Self::All => {
                let latest = acks.iter().copied().collect::<Option<Vec<u64>>>()?;
                latest.into_iter().max()
            }
            Self::Left => {
                let left = acks.iter().zip(lost).filter(|(_, lost)| !**lost);
                let latest = left.map(|(ack, _)| *ack).collect::<Option<Vec<u64>>>()?;
                latest.into_iter().max()
            }
            Self::Any(k) => {
                let mut there: Vec<u64> = acks.iter().copied().flatten().collect();
                there.sort_unstable();
                there.get(k - 1).copied()
            }
            Self::First(k) => {
                let eligible = acks.iter().zip(lost).filter(|(_, lost)| !**lost).take(k);
                let times: Vec<Option<u64>> = eligible.map(|(ack, _)| *ack).collect();
                if times.len() < k {
                    return None;
                }
                times.into_iter().collect::<Option<Vec<u64>>>()?.into_iter().max()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_waits_for_whom_it_says() {
        let here = [false; 3];
        let acks = [Some(20), None, Some(5)];
        assert_eq!(Rule::Any(1).done(&acks, &here), Some(5));
        assert_eq!(Rule::Any(2).done(&acks, &here), Some(20));
        assert_eq!(Rule::Any(3).done(&acks, &here), None);
        assert_eq!(Rule::All.done(&acks, &here), None);
        assert_eq!(Rule::First(1).done(&acks, &here), Some(20));
        assert_eq!(Rule::First(2).done(&acks, &here), None);
        // The next one takes over where one is gone.
        assert_eq!(Rule::First(2).done(&acks, &[false, true, false]), Some(20));
        assert_eq!(Rule::All.done(&[Some(1), Some(9), Some(3)], &here), Some(9));
        assert_eq!(Rule::Left.done(&acks, &here), None);
        assert_eq!(Rule::Left.done(&acks, &[false, true, false]), Some(20));
        assert_eq!(Rule::Left.done(&acks, &[true; 3]), None);
    }

    #[test]
    fn rules_are_read_in_every_spelling() {
        for (text, rule) in
            [("all", Rule::All), ("any 2", Rule::Any(2)), ("ANY:2", Rule::Any(2)), ("first1", Rule::First(1))]
        {
            assert_eq!(Rule::parse(text, 3).unwrap(), rule, "{text}");
        }
        for text in ["", "any", "any 4", "first 0", "quorum"] {
            let error = Rule::parse(text, 3).unwrap_err().to_string();
            assert!(error.contains("--ack"), "{error}");
        }
        let names: Vec<String> = Rule::every(3).iter().map(ToString::to_string).collect();
        assert_eq!(names, ["any 1", "any 2", "first 1", "first 2", "all"]);
    }
}
