//! The AWR-style text report: the layout of awr-statistics 7.1 and the contract of 7.2.
//!
//! Scripts of the field read this by line, label and column, so names, order and
//! field counts are a promise; the tests beside this module keep it.

mod activity;
mod card;
mod driver;
mod header;
mod history;
mod imported;
mod io;
mod layers;
mod load;
pub(crate) mod page;
mod platform;
mod reads;
mod recovery;
mod seconds;
mod server;
mod storage;
mod sync;
mod waits;

#[cfg(test)]
mod tests;

use assay_measure::plain::plain;
use assay_measure::record::Record;
use page::Page;
use std::borrow::Cow;

/// Renders a record as text, each line at most as wide as its longest name or sentence.
#[must_use]
pub fn render(record: &Record) -> String {
    let text = draw(record);
    match plain(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(clean) => clean,
    }
}

fn draw(record: &Record) -> String {
    if let Some(info) = &record.import {
        return imported::render(record, info);
    }
    if let Some(info) = &record.recovery {
        return recovery::render(record, info);
    }
    if let Some(info) = &record.sync {
        return sync::render(record, info);
    }
    if let Some(info) = &record.storage {
        return storage::render(record, info);
    }
    let mut page = Page::default();
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
    let no_sql = match record.server {
        Some(_) => "unknowable: the statements are those of the operations, see Driver Statistics",
        None => "unsupported: this target runs no SQL",
    };
    page.missing("SQL Statistics", no_sql);
    activity::statistics(&mut page, record);
    activity::absolute(&mut page, record);
    io::by_function(&mut page, record);
    io::by_filetype(&mut page, record);
    io::by_both(&mut page, record);
    io::by_path(&mut page, record);
    let no_segments = match record.server {
        Some(_) => {
            "unknowable by segment: tables and indexes of the data set are summed under Database Server"
        }
        None => "unsupported: this target counts by file type, see above",
    };
    page.missing("Segment Statistics", no_segments);
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
    page.line("");
    page.line("End of Report");
    page.finish()
}
