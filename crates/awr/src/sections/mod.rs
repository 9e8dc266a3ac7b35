//! The report of each kind: its tables, pairs and sentences, in order. Text and page read the same sections.
//!
//! Names, order and widths are a promise to the field's scripts; the tests of the text check it.

mod activity;
mod card;
mod driver;
mod header;
mod history;
mod imported;
mod io;
mod layers;
mod load;
mod platform;
mod reads;
mod seconds;
mod server;
mod waits;

pub use imported::imported;

use assay_measure::record::Record;
use assay_measure::section::Sections;

/// The sections of a workload.
pub(crate) fn workload(record: &Record) -> Sections {
    let mut page = Sections::default();
    header::title(&mut page, record);
    header::integrity(&mut page, record);
    header::warnings(&mut page, record);
    header::advice(&mut page, record);
    card::test_card(&mut page, record);
    server::result(&mut page, record);
    load::load_profile(&mut page, record);
    load::efficiency(&mut page, record);
    server::server(&mut page, record);
    waits::top_events(&mut page, record);
    platform::host_cpu(&mut page, record);
    platform::instance_cpu(&mut page, record);
    platform::memory(&mut page, record);
    platform::pressure(&mut page, record);
    io::profile(&mut page, record);
    reads::sources(&mut page, record);
    load::time_model(&mut page, record);
    platform::statistics(&mut page, record);
    waits::classes(&mut page, record);
    waits::foreground(&mut page, record);
    waits::background(&mut page, record);
    waits::histogram(&mut page, record);
    layers::by_layer(&mut page, record);
    layers::scan(&mut page, record);
    let no_sql = match record.instance.server {
        Some(_) => "unknowable: the statements are those of the operations; see Driver Statistics",
        None => "unsupported: this target runs no SQL",
    };
    page.missing("SQL Statistics", no_sql);
    activity::statistics(&mut page, record);
    activity::absolute(&mut page, record);
    io::by_function(&mut page, record);
    io::by_filetype(&mut page, record);
    io::by_both(&mut page, record);
    io::by_path(&mut page, record);
    let no_segments = match record.instance.server {
        Some(_) => format!(
            "unknowable by segment: {} has the sums over the tables and indexes of the data set",
            server::heading(record)
        ),
        None => "unsupported: this target counts by file type; see above".to_owned(),
    };
    page.missing("Segment Statistics", &no_segments);
    activity::buffer_pool(&mut page, record);
    activity::redo(&mut page, record);
    history::history(&mut page, record);
    history::timeline(&mut page, record);
    seconds::per_second(&mut page, record);
    driver::operations(&mut page, record);
    driver::sessions(&mut page, record);
    driver::cost(&mut page, record);
    header::identities(&mut page, record);
    header::parameters(&mut page, record);
    page
}
