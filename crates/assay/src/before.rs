//! How a run compares with the one of the same test before it.

use crate::catalogue::{Catalogue, Entry, path_of};
use crate::rundir::{RECORD, RUNS_DIR};
use crate::stored;
use assay_measure::facts::{self, FactKey};
use assay_measure::record::Record;
use assay_measure::units;
use assay_report::answer::Class;
use assay_report::compare::{self, Check, DifferenceVerdict, Finding, Options, RunGroup};
use std::path::Path;

/// Earlier runs that are looked at before it is said that none was of the same test.
const LOOKED_AT: usize = 5;

/// How the main figure differs from that of the last run of the same test, in the directory where runs are kept.
pub(crate) fn previous(record: &Record, place: &Path) -> Option<(String, Class)> {
    if record.import.is_some() {
        return None;
    }
    let above = place.parent().filter(|above| above.ends_with(RUNS_DIR))?;
    previous_of(record, above, place.file_name()?.to_str()?)
}

/// The same against the runs in a directory, but for the one of this name.
pub(crate) fn previous_of(record: &Record, above: &Path, own: &str) -> Option<(String, Class)> {
    let catalogue = Catalogue::open(above).ok()?;
    let is_alike = |entry: &&Entry| {
        entry.name != own
            && entry.kind == record.kind
            && entry.workload == record.run.workload
            && entry.engine == record.run.engine
            && entry.started.as_str() <= record.run.started.as_str()
    };
    let earlier = catalogue.entries.iter().rev().filter(is_alike);
    earlier.take(LOOKED_AT).find_map(|entry| {
        let before = stored::read(&path_of(above, entry).join(RECORD)).ok()?;
        against(record, &before, entry)
    })
}

/// What variation is normal where no earlier run tells it, and the age and use of the data set.
pub(crate) fn normal(record: &Record) -> Option<String> {
    if record.import.is_some() {
        return None;
    }
    let parts = [compare::normal(record), data_set(record)];
    let told: Vec<String> = parts.into_iter().flatten().collect();
    (!told.is_empty()).then(|| told.join(" "))
}

/// When the data were loaded and what was written to them, as far as they tell.
fn data_set(record: &Record) -> Option<String> {
    let fact = |key: FactKey| key.find(&record.plan.engine_facts)?.parse::<u64>().ok();
    let made = i64::try_from(fact(facts::DATA_MADE)?).ok()?;
    let started: jiff::Timestamp = record.run.started.parse().ok()?;
    let age_s = u64::try_from(started.as_second() - made).ok()?;
    let written = fact(facts::DATA_REDO).map_or_else(String::new, |bytes| {
        format!("; {} of redo were written to it since, this run's included", units::size(bytes))
    });
    let age = match age_s {
        0 => "less than a second".to_owned(),
        s => units::duration(s.saturating_mul(1_000_000_000)),
    };
    Some(format!("The data set was made {age} before the run{written}."))
}

/// Nothing where the earlier run was of another test.
fn against(record: &Record, before: &Record, entry: &Entry) -> Option<(String, Class)> {
    let group = |name: &str, record| RunGroup { name: name.to_owned(), records: vec![record] };
    let groups = [group("before", before), group("now", record)];
    let compared = compare::of(&groups, &Options::default());
    let checks = compared.pairs.iter().flat_map(|pair| &pair.checks);
    let unlike: Vec<&Check> = checks.filter(|check| check.finding == Finding::Forbids).collect();
    if let Some(first) = unlike.first() {
        // The same test, but its operations came out otherwise, as those of a cache that is still being filled do.
        let is_alike = unlike.iter().all(|check| check.what.starts_with("work: "));
        let text = format!(
            "not compared with run {}, because its operations were different: {} {}, now {}.",
            entry.id,
            first.what.trim_start_matches("work: "),
            first.baseline,
            first.candidate
        );
        return is_alike.then_some((text, Class::Plain));
    }
    let row = compared.rows.iter().find(|row| row.is_primary)?;
    let judged = row.against.first()?;
    let class = match judged.verdict {
        DifferenceVerdict::Better => Class::Good,
        DifferenceVerdict::Worse => Class::Doubtful,
        _ => Class::Plain,
    };
    let text = format!(
        "{} against run {} ({} UTC): {}.",
        row.name,
        entry.id,
        entry.started.replace('T', " "),
        judged.sentence.trim_end_matches('.')
    );
    Some((text, class))
}
