//! The identities of awr-statistics 2.3, evaluated on every run.
//!
//! Exact ones are taken from the gate to the end of the drain, where every thread is quiet; the others on the measured
//! window with the allowance that their rule states. Uncounted figures are n/a with their reason, never "holds".

mod counters;
mod host;
mod server;
mod times;

#[cfg(test)]
mod tests;

use crate::deltas::{Deltas, Rises, Span};
use crate::identities::IdentityLine;
use assay_measure::counter_catalog::{self, Stat};
use assay_measure::identity::formula::Formula;
use assay_measure::identity::{IdentityRule, Rounded, Scope, Side, known, number_of};
use assay_measure::record::{Identity, Record, Truth};

/// Judging by the readings of a run.
trait Judge {
    /// Compares the sides where the scope of the rule can be judged.
    fn judge(self, deltas: &Deltas<'_>, lhs: Side, rhs: Side) -> Identity;

    /// "So many of so many agree": both sides count, and the sentence names the first that does not.
    fn tally(self, deltas: &Deltas<'_>, verdicts: impl Iterator<Item = (String, bool)>) -> Identity;
}

impl Judge for IdentityRule {
    fn judge(self, deltas: &Deltas<'_>, lhs: Side, rhs: Side) -> Identity {
        if self.scope() == Scope::Quiet && !deltas.is_drained() {
            return self.unknown("operations were still in flight");
        }
        self.compare(lhs, rhs)
    }

    fn tally(self, deltas: &Deltas<'_>, verdicts: impl Iterator<Item = (String, bool)>) -> Identity {
        let (mut good, mut all, mut first) = (0_u64, 0_u64, None);
        for (name, agrees) in verdicts {
            all += 1;
            good += u64::from(agrees);
            if !agrees && first.is_none() {
                first = Some(name);
            }
        }
        let mut identity = self.judge(deltas, Ok(good as f64), Ok(all as f64));
        if let Some(name) = first {
            identity.sentence = format!("{good} of {all} agree; the first that disagrees is {name}");
        } else if all > 0 && identity.ok == Truth::Holds {
            identity.sentence = format!("all {all} agree");
        }
        identity
    }
}

/// A counter's delta as a side.
fn moved(span: &Span<'_>, stat: Stat) -> Side {
    known(span.get(stat)).map_err(|reason| format!("{}: {reason}", stat.key))
}

/// The sum of several counters' deltas.
fn moved_sum(span: &Span<'_>, stats: &[Stat]) -> Side {
    stats.iter().map(|stat| moved(span, *stat)).sum()
}

/// The difference of two counters' deltas.
fn moved_difference(span: &Span<'_>, from: Stat, less: Stat) -> Side {
    Ok(moved(span, from)? - moved(span, less)?)
}

/// By the counters from the gate to the drain.
fn judged(deltas: &Deltas<'_>, (id, scope, text, line): IdentityLine) -> Identity {
    let terms = |_: &str, name: &str| match name.split_once(':') {
        Some(("fact", name)) => {
            let value = deltas.fact(name).ok_or_else(|| format!("engine fact {name} absent"));
            value.map(|value| Rounded::exact(value as f64))
        }
        Some((_, name)) => gauge_change(deltas, name).map(Rounded::exact),
        None => {
            let stat = counter_catalog::DICTIONARY.iter().find(|stat| stat.key == name);
            let stat = stat.ok_or_else(|| format!("no statistic {name}"))?;
            moved(&deltas.whole, *stat).map(Rounded::exact)
        }
    };
    let rule = IdentityRule::exact(id, scope, text);
    let Some(formula) = Formula::of(line) else {
        return rule.unknown("the line does not have two sides");
    };
    let (left, right) = formula.each(&terms);
    let rule = if formula.is_at_most { rule.at_most() } else { rule };
    rule.judge(deltas, left.map(|left| left.value), right.map(|right| right.value))
}

/// A gauge at the end of the drain less the gauge at the gate.
fn gauge_change(deltas: &Deltas<'_>, name: &str) -> Side {
    let read = |span: &assay_measure::snapshot::Snapshot| {
        let value = span.stats.gauges.get(name).copied();
        value.ok_or_else(|| format!("gauge {name} absent"))
    };
    Ok(read(deltas.whole.to)? as f64 - read(deltas.whole.from)? as f64)
}

/// All identities in the order of their numbers.
pub(crate) fn evaluate(deltas: &Deltas<'_>, record: &Record, rises: &Rises) -> Vec<Identity> {
    let mut all = counters::identities(deltas);
    all.extend(host::identities(deltas, record, rises));
    if deltas.is_server() {
        // Another's counters move when they are published, for others' work too: no bug of assay.
        all.iter_mut().for_each(|identity| identity.exact = false);
        all.extend(server::identities(deltas));
    }
    all.extend(times::identities(deltas, record));
    all.sort_by_key(|identity| {
        let of_server = identity.id.starts_with('S');
        (of_server, number_of(&identity.id), identity.id.clone())
    });
    all
}
