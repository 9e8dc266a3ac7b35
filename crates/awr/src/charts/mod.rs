//! The charts of a workload, and those that kinds of test share.

mod host;
mod imported;
mod io;
pub mod latency;
mod operation;
mod sessions;
mod time;
mod work;

use assay_measure::chart::Drawn;
use assay_measure::record::Record;

/// Of a workload: of an import its steps, and what its figures give.
pub(crate) fn workload(record: &Record, draw: &mut dyn FnMut(Drawn)) {
    if record.import.is_some() {
        imported::steps(record).into_iter().for_each(&mut *draw);
        return imported::all(record).into_iter().for_each(draw);
    }
    draw(sessions::by_class(record));
    draw(operation::waterfall(record));
    draw(work::throughput(record));
    work::queue(record).into_iter().for_each(&mut *draw);
    draw(io::requests(record));
    draw(io::bytes(record));
    latency::over_time(record).into_iter().for_each(&mut *draw);
    latency::heat(record).into_iter().for_each(&mut *draw);
    latency::histograms(record).into_iter().for_each(&mut *draw);
    host::all(record).into_iter().for_each(&mut *draw);
    draw(sessions::against_reads(record));
    work::cache(record).into_iter().for_each(&mut *draw);
    draw(work::per_session(record));
}
