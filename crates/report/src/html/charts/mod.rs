//! Which charts a record has.

mod host;
mod io;
pub(crate) mod latency;
mod probes;
mod sessions;
mod storage;
mod time;
mod work;

use super::page::{View, view};
use assay_measure::record::Record;

/// The charts of a record, in the order of the page.
pub(super) fn of(record: &Record) -> Vec<View> {
    let probe = if let Some(info) = &record.recovery {
        probes::recovery(info)
    } else if let Some(info) = &record.sync {
        probes::sync(info)
    } else if let Some(info) = &record.storage {
        storage::all(record, info)
    } else if record.import.is_some() && record.series.t_s.is_empty() {
        probes::imported(record)
    } else {
        return run(record);
    };
    probe.into_iter().map(view).collect()
}

/// The charts of a run. Each is rendered before the next is made: a long series is held once.
fn run(record: &Record) -> Vec<View> {
    let mut views = Vec::new();
    let mut add = |drawn| views.push(view(drawn));
    add(sessions::by_class(record));
    add(work::throughput(record));
    add(io::requests(record));
    add(io::bytes(record));
    latency::over_time(record).into_iter().for_each(&mut add);
    latency::heat(record).into_iter().for_each(&mut add);
    latency::histograms(record).into_iter().for_each(&mut add);
    host::all(record).into_iter().for_each(&mut add);
    add(sessions::against_reads(record));
    work::cache(record).into_iter().for_each(&mut add);
    add(work::per_session(record));
    views
}
