//! The HTML format: one page per record, with charts, that opens in any browser and needs no network.
//!
//! A chart is data first (`chart`); `draw` turns it into the plotting script's input and `table` into the table behind
//! it, so that both show the same figures; `shown` makes tables from sections. Every other module here assembles one
//! page. Reads only records and does no I/O: the caller stores the page and the shared script.

mod comparison;
mod cost;
mod draw;
mod facts;
mod from_sections;
mod index;
mod live;
mod page;
mod picture;
mod repeats;
mod sample;
mod script;
mod spark;
mod table;
mod tile;
mod trend;

pub use comparison::comparison;
pub use cost::cost;
pub use index::{Listed, index, served_index};
pub use live::{COLUMNS_LEAST, Live, LiveTile, RECENT, WHOLE, live};
pub use page::Control;
pub use repeats::repeats;
pub use script::{Assets, BEHAVIOUR, SHARED, behaviour, script};
pub use trend::trend;

use crate::answer::Context;
use crate::kinds;
use assay_measure::record::Record;

/// The page of a record of any kind: its charts, and the sections of its text.
#[must_use]
pub fn page(record: &Record, context: &Context, assets: &Assets) -> String {
    page_of(record, context).render(assets)
}

fn page_of(record: &Record, context: &Context) -> page::Page {
    let mut views = Vec::new();
    kinds::of(record).charts(record, &mut |drawn| views.push(page::view(drawn)));
    let mut page = page::Page::of(record, context, views);
    page.sections = from_sections::of(&kinds::sections(record));
    page
}

#[cfg(test)]
mod tests;
