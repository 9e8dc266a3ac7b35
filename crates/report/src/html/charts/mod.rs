//! Which charts a record has.

mod host;
mod io;
pub(crate) mod latency;
mod sessions;
mod time;
mod work;

use super::page::{View, view};
use assay_measure::record::Record;

/// The charts of a record, in the order of the page.
pub(super) fn of(record: &Record) -> Vec<View> {
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
