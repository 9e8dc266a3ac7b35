//! The page of one figure over several runs.

use super::from_sections;
use super::page::{Page, view};
use super::script::Assets;
use crate::trend::Trend;

/// The page of a figure over runs.
#[must_use]
pub fn trend(trend: &Trend, assets: &Assets) -> String {
    let page = Page {
        title: format!("Trend: {}", trend.title()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        charts: vec![view(trend.chart())],
        sections: from_sections::of(&trend.sections()),
        ..Page::default()
    };
    page.render(assets)
}
