//! Claims on a data set: runs share one, every other command needs it exclusively.

use assay_run::engine::{EngineError, Remarks};
use assay_run::plan::Plan;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Display name of [`Purpose::Series`].
pub(crate) const SERIES: &str = "series of runs";

/// What a claim is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Shared with other runs.
    Run,
    /// Shared. Held by a sweep or by repeats, so that nobody removes the data set between their runs; not a load itself.
    Series,
    /// Exclusive.
    Prepare,
    /// Exclusive: a run would change what the check reads.
    Check,
    /// Exclusive.
    Destroy,
}

impl Purpose {
    /// Display name.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Series => SERIES,
            Self::Prepare => "prepare",
            Self::Check => "check",
            Self::Destroy => "destroy",
        }
    }

    /// Whether several holders may have it at the same time.
    pub(crate) fn shares(self) -> bool {
        matches!(self, Self::Run | Self::Series)
    }
}

/// Reads with `find` a data set that the caller has not claimed. prepare and destroy take several steps, between which
/// the marker looks damaged or the tables look foreign. So after an error it reads again under a claim, while no other
/// command can change the data set. `claim` returns `None` if nothing can be claimed.
///
/// # Errors
/// Those of `find` and `claim`.
pub(crate) fn settled<T, C>(
    mut find: impl FnMut() -> Result<T, EngineError>,
    claim: impl FnOnce() -> Result<Option<C>, EngineError>,
) -> Result<T, EngineError> {
    let wrong = match find() {
        Err(wrong @ (EngineError::Damaged(_) | EngineError::Unusable(_))) => wrong,
        found => return found,
    };
    match claim()? {
        Some(_claimed) => find(),
        None => Err(wrong),
    }
}

/// The claim of a run, followed over several readings.
#[derive(Debug)]
pub(crate) struct Company {
    own: u64,
    /// Hosts of a fleet's run beside this one, each with a claim of its own.
    hosts: u32,
    begun: Instant,
    /// By session: its name, and when it was first and last seen.
    others: BTreeMap<u64, (String, Duration, Duration)>,
    /// When the claim was first seen to be lost.
    lost: Option<Duration>,
    /// The claim was released, so its absence is not a loss.
    ended: bool,
}

impl Company {
    /// Follows the claim that this session holds.
    pub(crate) fn of(own: u32, plan: Option<&Plan>) -> Self {
        let hosts = plan.map_or(0, Plan::other_hosts);
        Self { own: own.into(), hosts, begun: Instant::now(), others: BTreeMap::new(), lost: None, ended: false }
    }

    /// Notes the holders found by a reading, with the name of each.
    pub(crate) fn note(&mut self, holders: impl IntoIterator<Item = (u64, String)>) {
        let now = self.begun.elapsed();
        let (own, others): (Vec<_>, Vec<_>) = holders.into_iter().partition(|(id, _)| *id == self.own);
        // Whoever comes beside a fleet's hosts cannot be told from them.
        if others.len() > self.hosts as usize {
            for (id, name) in others {
                self.others.entry(id).or_insert((name, now, now)).2 = now;
            }
        }
        if own.is_empty() && !self.ended {
            self.lost.get_or_insert(now);
        }
    }

    /// Notes that the claim is released.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// Adds remarks on shared use and on a lost claim to the record.
    pub(crate) fn remark(&self, remarks: &mut Remarks) {
        if self.hosts > 0 && !self.others.is_empty() {
            remarks.warnings.push(format!(
                "Others than the {} hosts of this run shared its data set at the same time. If they ran a load, the figures \
                 show all loads together; repeat the run alone, or name another data set.",
                self.hosts + 1
            ));
        }
        for (id, (name, from, until)) in self.others.iter().filter(|_| self.hosts == 0) {
            remarks.warnings.push(format!(
                "Another assay shared this data set at the same time ({name}server session {id}, seen from {:.0} s to {:.0} s \
                 after this run claimed it). If it was a run, the figures show both loads together; repeat the run \
                 alone, or name another data set.",
                from.as_secs_f64(),
                until.as_secs_f64()
            ));
        }
        if let Some(at) = self.lost {
            remarks.invalid.push(format!(
                "the claim on the data set was lost {:.0} s after it was taken (server session {} ended): after that, \
                 other commands could change or remove its tables",
                at.as_secs_f64(),
                self.own
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// What a destroy or a prepare between two of its steps looks like, and what is there once it has ended.
    fn torn_at_first() -> impl FnMut() -> Result<u32, EngineError> {
        let mut readings = 0;
        move || {
            readings += 1;
            match readings {
                1 => Err(EngineError::Damaged("0 rows".to_owned())),
                _ => Ok(readings),
            }
        }
    }

    #[test]
    fn what_is_wrong_is_read_again_under_a_claim() {
        let held = Cell::new(false);
        let mut readings = torn_at_first();
        let found = settled(
            || readings().inspect(|_| assert!(held.get())),
            || {
                held.set(true);
                Ok(Some(()))
            },
        );
        assert!(matches!(found, Ok(2)), "{found:?}");
    }

    #[test]
    fn who_is_at_work_is_named_and_what_nobody_can_claim_is_as_it_was_read() {
        let in_use = || Err::<Option<()>, _>(EngineError::Unusable("in use by session 7".to_owned()));
        let found = settled(torn_at_first(), in_use);
        assert!(matches!(&found, Err(EngineError::Unusable(text)) if text.contains("session 7")), "{found:?}");
        let found = settled(torn_at_first(), || Ok(None::<()>));
        assert!(matches!(&found, Err(EngineError::Damaged(text)) if text == "0 rows"), "{found:?}");
    }

    #[test]
    fn the_hosts_of_a_run_are_no_strangers_to_it() {
        let mut plan = Plan::plain(1, 3, 1000);
        plan.take_share(0, 3).expect("a session each");
        let mut company = Company::of(1, Some(&plan));
        let holders = |ids: &[u64]| ids.iter().map(|id| (*id, String::new())).collect::<Vec<_>>();
        let said = |company: &Company| {
            let mut remarks = Remarks::default();
            company.remark(&mut remarks);
            (remarks.warnings, remarks.invalid)
        };
        company.note(holders(&[1, 2, 3]));
        assert_eq!(said(&company), (Vec::new(), Vec::new()));
        company.note(holders(&[1, 2, 3, 4]));
        let (warnings, invalid) = said(&company);
        assert!(warnings.len() == 1 && warnings[0].starts_with("Others than the 3 hosts"), "{warnings:?}");
        assert!(invalid.is_empty());
        company.note(holders(&[2, 3]));
        assert!(said(&company).1[0].contains("was lost"));
    }

    #[test]
    fn a_sound_reading_claims_nothing() {
        let found = settled(|| Ok(1), || -> Result<Option<()>, _> { unreachable!("a claim for nothing") });
        assert!(matches!(found, Ok(1)));
    }
}
