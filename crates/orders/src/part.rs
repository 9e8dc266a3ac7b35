//! The part of a record that only order entry has.

use crate::checks::{BROKEN, Checked, HOLDS};
use crate::ledger::Ledger;
use crate::mix::{ALL, Tx};
use crate::params::Asked;
use crate::workload::NAME;
use assay_measure::figures::figures;
use assay_measure::record::{Part, Record};
use assay_measure::snapshot::RunData;
use assay_measure::units::thousands;
use std::collections::BTreeMap;

/// The target's account of a run, as its engine returns it.
#[figures]
pub struct FromEngine {
    /// The options of the run.
    pub asked: Option<Asked>,
    /// Scale of the data set; 1 is a million customers.
    pub scale: f64,
    /// The seed of its rows.
    pub data_seed: u64,
    /// Version of the rules that generated them.
    pub data_version: u32,
    /// Hash partitions per partitioned table; 0: none.
    pub partitions: u32,
    /// Isolation level of the transactions.
    pub isolation: String,
    /// Durability setting of commits.
    pub durability: String,
    /// What the sessions did, from gate to drain.
    pub ledger: Ledger,
    /// Results of the checks after the run.
    pub checks: Vec<Checked>,
    /// Why the checks did not run; empty if they did.
    pub unchecked: String,
    /// How long the checks took, s.
    pub checks_s: f64,
    /// Arrival rate, transactions per second; 0 for a closed loop.
    pub rate_per_s: u64,
    /// Hosts that ran it at the same time, each with books of its own; the last to close them checks.
    #[serde(skip_serializing_if = "is_one")]
    pub hosts: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(hosts: &u32) -> bool {
    *hosts < 2
}

impl FromEngine {
    /// Together with that of another host of the same run.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        self.ledger.merge(&other.ledger);
        if self.checks.is_empty() && !other.checks.is_empty() {
            (self.checks, self.checks_s) = (other.checks.clone(), other.checks_s);
            self.unchecked.clear();
        }
        self
    }
}

/// Figures of one transaction in the run's window.
#[figures]
pub struct TxRow {
    /// Its name in records.
    pub kind: String,
    /// Its weight in the mix.
    pub weight: u32,
    /// Final failures by class.
    pub failed: BTreeMap<String, u64>,
    /// Retries by class.
    pub retried: BTreeMap<String, u64>,
}

/// The part of the record.
#[figures]
pub struct OrdersInfo {
    /// The target's account.
    #[serde(flatten)]
    pub known: FromEngine,
    /// Arrivals of the window that were dropped because the queue was full.
    pub dropped: u64,
    /// The transactions that were performed.
    pub transactions: Vec<TxRow>,
}

impl Part for OrdersInfo {
    const NAME: &'static str = NAME;
}

impl TxRow {
    /// The transaction of this row.
    #[must_use]
    pub fn tx(&self) -> Option<Tx> {
        ALL.into_iter().find(|tx| tx.key() == self.kind)
    }

    /// Number of final failures.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failed.values().sum()
    }

    /// Number of retries.
    #[must_use]
    pub fn retries(&self) -> u64 {
        self.retried.values().sum()
    }
}

impl OrdersInfo {
    /// Builds the part for a run; `None` if its engine returned nothing (it was killed).
    #[must_use]
    pub fn of(data: &RunData) -> Option<Self> {
        let known: FromEngine = serde_json::from_value(data.part.clone()?).ok()?;
        let asked = known.asked.clone()?;
        let window = data.end.driver.difference(&data.begin.driver);
        let by = |what: &str, tx: Tx| {
            let head = format!("{what} {} ", tx.key());
            let of = |(key, n): (&String, &u64)| Some((key.strip_prefix(&head)?.to_owned(), *n));
            window.by_kind.iter().filter_map(of).filter(|(_, n)| *n > 0).collect()
        };
        let transactions = asked
            .mix
            .enabled()
            .map(|tx| TxRow {
                kind: tx.key().to_owned(),
                weight: asked.mix.weights[tx.index()],
                failed: by("failed", tx),
                retried: by("retried", tx),
            })
            .collect();
        Some(Self { known, dropped: window.dropped, transactions })
    }

    /// Reads the part of a record.
    #[must_use]
    pub fn part_of(record: &Record) -> Option<Self> {
        record.parts.get()
    }

    /// The options of the run.
    #[must_use]
    pub fn asked(&self) -> Option<&Asked> {
        self.known.asked.as_ref()
    }

    /// Describes the arrival of transactions.
    #[must_use]
    pub fn arrivals(&self) -> String {
        let (rate, Some(asked)) = (self.known.rate_per_s, self.asked()) else {
            return String::new();
        };
        if rate == 0 {
            return "closed loop".to_owned();
        }
        let how = if asked.poisson { "at random" } else { "evenly spaced" };
        let queue = match (asked.shared, asked.queue_limit) {
            (false, _) => "a queue for each session".to_owned(),
            (true, 0) => "one queue".to_owned(),
            (true, most) => format!("one queue of at most {most}"),
        };
        format!("open loop, {rate}/s {how}, {queue}")
    }

    /// Describes the dropped arrivals, if the queue has a limit.
    #[must_use]
    pub fn dropped_told(&self) -> Option<String> {
        let asked = self.asked().filter(|asked| asked.queue_limit > 0)?;
        let most = thousands(asked.queue_limit);
        Some(match self.dropped {
            0 => format!("No arrival of the window was dropped: at most {most} may wait."),
            n => format!("{} arrivals of the window were dropped because {most} were already waiting.", thousands(n)),
        })
    }

    /// Describes the partitions of the tables that grow.
    #[must_use]
    pub fn partitions(&self) -> String {
        match self.known.partitions {
            0 => "none".to_owned(),
            n => format!("{n} by hash"),
        }
    }

    /// Describes when a logon is committed.
    #[must_use]
    pub fn logon_commit(&self) -> &'static str {
        if self.asked().is_some_and(|asked| asked.commit_logon) { "on its own" } else { "with its transaction" }
    }

    /// Describes how transactions are drawn.
    #[must_use]
    pub fn draw(&self) -> &'static str {
        if self.asked().is_some_and(|asked| asked.deck) {
            "a shuffled deck per session"
        } else {
            "each transaction independently"
        }
    }

    /// Describes how transactions are performed.
    #[must_use]
    pub fn form(&self) -> &'static str {
        if self.asked().is_some_and(|asked| asked.client_side) {
            "client side: one statement at a time"
        } else {
            "server side: one function per transaction"
        }
    }

    /// Number of checks with a verdict.
    #[must_use]
    pub fn verdicts(&self, verdict: &str) -> Vec<&Checked> {
        let all = self.known.checks.iter();
        all.filter(|one| one.verdict == verdict).collect()
    }

    /// The result of the checks, in a sentence.
    #[must_use]
    pub fn consistency(&self) -> String {
        let broken: Vec<String> =
            self.verdicts(BROKEN).iter().map(|one| format!("{} ({}): {}", one.id, one.what, one.found)).collect();
        let all = self.known.checks.len();
        match (broken.is_empty(), all) {
            (false, _) => format!("The data set is not consistent: {}.", broken.join("; ")),
            (true, 0) => format!("The data set was not checked: n/a ({}).", self.known.unchecked),
            (true, _) if self.verdicts(HOLDS).len() == all => format!("All {all} checks hold."),
            (true, _) => {
                let mut open = self.known.checks.iter().filter(|one| one.verdict != HOLDS);
                let first = open.next().map_or_else(String::new, |one| format!("{}: {}", one.id, one.found));
                format!(
                    "Not known to be consistent: {} of {all} checks hold, {} have no verdict ({first}).",
                    self.verdicts(HOLDS).len(),
                    1 + open.count()
                )
            }
        }
    }
}
