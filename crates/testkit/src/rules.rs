//! Rules and the records that hold them.

use assay_measure::record::Record;
use assay_measure::rule::Rule;

/// A rule by its id, and its record: `true` for one on which it fires, `false` for one beside it on which it just does not.
pub type Case = (&'static str, fn(bool) -> Record);

/// Holds every rule to its two records.
///
/// # Panics
/// When a rule has no case, is silent on its first record, fires on its second, or finds with another weight than it says.
pub fn just_fire(rules: &[Rule], cases: &[Case]) {
    for rule in rules {
        let found = cases.iter().find(|(id, _)| *id == rule.id);
        let Some((_, record)) = found else { panic!("{} has no records", rule.id) };
        for fires in [true, false] {
            let record = record(fires);
            let mut findings = record.advice.iter().filter(|advice| advice.id == rule.id);
            let first = findings.next();
            assert_eq!(first.is_some(), fires, "{}: {:?}", rule.id, record.advice);
            assert!(first.is_none_or(|finding| finding.changes_figures == rule.changes_figures), "{}", rule.id);
        }
    }
    let is_rule = |id: &str| rules.iter().any(|rule| rule.id == id);
    let unknown: Vec<&str> = cases.iter().map(|(id, _)| *id).filter(|id| !is_rule(id)).collect();
    assert!(unknown.is_empty(), "no rule is called {unknown:?}");
}

/// A host of one CPU that others used for so much of its time, %; the test itself took a fifth of it.
#[must_use]
pub fn beside(others_pct: f64) -> Record {
    let mut record = Record::default();
    record.interval.elapsed_s = 100.0.into();
    record.os.cpus_count = 1.0.into();
    record.os.process.cpu_s = 20.0.into();
    record.os.cpu_pct.insert("busy".to_owned(), (20.0 + others_pct).into());
    record
}

/// Seconds of a rate that falls to a cap at its tenth, by the name of its column; or to a level that moves.
#[must_use]
pub fn capped(column: &str, is_capped: bool) -> Record {
    let mut record = Record::default();
    let rate = |s: u32| if s < 10 { 1000.0 } else { 790.0 + if is_capped { 0.0 } else { f64::from(s % 3) * 40.0 } };
    record.series.step_s = 1.0.into();
    record.series.t_s = (1..=20).map(f64::from).collect();
    record.series.metrics.insert(column.to_owned(), (0..20).map(|s| rate(s).into()).collect());
    record
}
