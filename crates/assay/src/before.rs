//! How a run compares with the one of the same test before it.

use crate::catalogue::{Catalogue, Entry, path_of};
use crate::rundir::{RECORD, RUNS_DIR};
use crate::stored;
use assay_measure::record::Record;
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
