//! The books: what the sessions of a run recorded about their work, compared with the data set afterwards.

use crate::mix::Tx;
use crate::program::Effects;
use assay_measure::figures::figures;
use std::collections::BTreeMap;

/// The table of the books: a key, the acknowledged count and the count in doubt.
pub const LEDGER: &str = "soe_ledger";
/// The table with the baseline from the load: a key and its value.
pub const BASELINE: &str = "soe_baseline";
/// The row of the ledger that counts runs with open books.
pub const OPEN_RUNS: &str = "open_runs";
/// The rows of the books, in the order of [`Ledger::rows`].
pub const ENTRIES: [&str; 6] = ["OP", "NCR", "UCD", "BO", "PO", "logon"];

/// What the sessions did over a whole run.
#[figures]
#[derive(Eq)]
pub struct Ledger {
    /// SELECT statements.
    pub selects: u64,
    /// INSERT statements.
    pub inserts: u64,
    /// UPDATE statements.
    pub updates: u64,
    /// Committed transactions, including those that only read.
    pub commits: u64,
    /// Transactions that were rolled back.
    pub rollbacks: u64,
    /// Acknowledged effects by entry: orders, customers, addresses written by UCD, units added by BO, orders shipped by
    /// PO, logons.
    pub acked: BTreeMap<String, u64>,
    /// Effects in doubt by entry: the connection was lost before the answer to a commit.
    pub in_doubt: BTreeMap<String, u64>,
}

impl Ledger {
    /// Records an acknowledged transaction.
    pub fn done(&mut self, tx: Tx, effects: Effects) {
        self.selects += u64::from(effects.selects);
        self.inserts += u64::from(effects.inserts);
        self.updates += u64::from(effects.updates);
        self.commits += 1;
        let entry = match tx {
            Tx::OrderProducts | Tx::CustomerRegistration => 1,
            Tx::UpdateCustomerDetails | Tx::BrowseOrders | Tx::ProcessOrders => u64::from(effects.found),
            _ => 0,
        };
        for (key, n) in [(tx.short(), entry), ("logon", u64::from(effects.logons))] {
            if n > 0 {
                *self.acked.entry(key.to_owned()).or_default() += n;
            }
        }
    }

    /// Records a transaction whose commit is in doubt.
    pub fn doubt(&mut self, tx: Tx) {
        if tx.reads_only() {
            return;
        }
        for key in [tx.short(), "logon"] {
            *self.in_doubt.entry(key.to_owned()).or_default() += 1;
        }
    }

    /// Records a failed transaction that may have committed its logon before (and its customer, if that is new).
    pub fn doubt_logon(&mut self, tx: Tx) {
        let keys: &[&str] = match tx {
            Tx::CustomerRegistration => &["NCR", "logon"],
            _ if tx.logs_on() => &["logon"],
            _ => &[],
        };
        for key in keys {
            *self.in_doubt.entry((*key).to_owned()).or_default() += 1;
        }
    }

    /// Adds the books of another session.
    pub fn merge(&mut self, other: &Self) {
        self.selects += other.selects;
        self.inserts += other.inserts;
        self.updates += other.updates;
        self.commits += other.commits;
        self.rollbacks += other.rollbacks;
        for (mine, more) in [(&mut self.acked, &other.acked), (&mut self.in_doubt, &other.in_doubt)] {
            for (key, n) in more {
                *mine.entry(key.clone()).or_default() += n;
            }
        }
    }

    /// Yields (entry, acknowledged, in doubt).
    pub fn rows(&self) -> impl Iterator<Item = (&'static str, u64, u64)> + '_ {
        let of = |all: &BTreeMap<String, u64>, key: &str| all.get(key).copied().unwrap_or(0);
        ENTRIES.into_iter().map(move |key| (key, of(&self.acked, key), of(&self.in_doubt, key)))
    }

    /// Statements that add a run's books to those of the data set, and close them.
    pub fn closing_sql(&self, table: impl Fn(&str) -> String) -> Vec<String> {
        let ledger = table(LEDGER);
        let entry = |(key, acked, doubt)| {
            format!("update {ledger} set acked = acked + {acked}, in_doubt = in_doubt + {doubt} where k = '{key}'")
        };
        let mut sql: Vec<String> = self.rows().map(entry).collect();
        sql.push(format!("update {ledger} set acked = acked - 1 where k = '{OPEN_RUNS}'"));
        sql
    }
}

/// The statement that opens the books of a run.
#[must_use]
pub fn opening_sql(table: impl Fn(&str) -> String) -> String {
    format!("update {} set acked = acked + 1 where k = '{OPEN_RUNS}'", table(LEDGER))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::ALL;

    #[test]
    fn what_writes_has_an_entry() {
        for tx in ALL {
            assert_eq!(ENTRIES.contains(&tx.short()), !tx.reads_only(), "{tx:?}");
        }
    }

    #[test]
    fn books_add_up_and_name_what_is_in_doubt() {
        let mut one = Ledger::default();
        let effects = Effects { selects: 3, inserts: 2, updates: 1, logons: 1, lines: 2, found: 0 };
        one.done(Tx::OrderProducts, effects);
        one.done(Tx::BrowseOrders, Effects { found: 1, ..Effects::default() });
        one.done(Tx::UpdateCustomerDetails, Effects::default());
        one.doubt(Tx::CustomerRegistration);
        one.doubt(Tx::BrowseProducts);
        let mut early = Ledger::default();
        [Tx::CustomerRegistration, Tx::OrderProducts, Tx::ProcessOrders]
            .into_iter()
            .for_each(|tx| early.doubt_logon(tx));
        let doubts: Vec<_> = early.in_doubt.into_iter().collect();
        assert_eq!(doubts, [("NCR".to_owned(), 1), ("logon".to_owned(), 2)]);
        let mut both = one.clone();
        both.merge(&one);
        let rows: Vec<_> = both.rows().collect();
        let wanted = [("OP", 2, 0), ("NCR", 0, 2), ("UCD", 0, 0), ("BO", 2, 0), ("PO", 0, 0), ("logon", 2, 2)];
        assert_eq!(rows, wanted);
        assert_eq!((both.selects, both.commits), (6, 6));
        let sql = one.closing_sql(|name| format!("s.{name}"));
        assert!(
            sql[0].starts_with("update s.soe_ledger set acked = acked + 1, in_doubt = in_doubt + 0 where k = 'OP'")
        );
    }
}
