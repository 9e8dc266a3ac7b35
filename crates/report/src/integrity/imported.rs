//! Identities on imported figures, from the record alone.
//!
//! What is compared was rounded when it was printed: the tolerance of each identity is what rounding may have done to
//! its sides, and the allowance of its rule.

use super::{Rule, Scope, Side, known};
use assay_measure::record::{Identity, LoadRow, Record};

/// Every identity whose inputs an imported record holds.
#[must_use]
pub fn imported(record: &Record) -> Vec<Identity> {
    let all = vec![blocks_and_requests(record)];
    all.into_iter().flatten().collect()
}

fn rate(record: &Record, name: &str) -> Option<Side> {
    let is_named = |row: &&LoadRow| row.name == name;
    let row = record.load_profile.iter().find(is_named)?;
    Some(known(row.per_s.clone()))
}

fn blocks_and_requests(record: &Record) -> Option<Identity> {
    let rule = Rule::within(
        "I6a",
        Scope::Window,
        "read requests of data <= physical reads",
        0.1,
    );
    let requests = rate(record, "Read IO requests")?;
    let blocks = rate(record, "Physical read (blocks)")?;
    Some(rule.at_most().compare(requests, blocks))
}
