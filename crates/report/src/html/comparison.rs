//! The page of a comparison: its sections, and its charts.

use super::from_sections;
use super::page::{Page, view};
use super::script::Assets;
use crate::answer::Screen;
use crate::compare::{Comparison, answer, charts, runs_of, sections};

/// The page of a comparison.
#[must_use]
pub fn comparison(comparison: &Comparison, assets: &Assets) -> String {
    let names: Vec<String> =
        (comparison.groups.iter()).map(|group| format!("{} = {}", group.letter, group.name)).collect();
    let page = Page {
        title: format!("Comparison: {}", names.join(", ")),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        facts: comparison.groups.iter().map(runs_of).collect(),
        charts: charts(comparison).into_iter().map(view).collect(),
        sections: from_sections::of(&sections(comparison, false)),
        ..Page::default()
    };
    page.answered(answer(comparison, Screen::default())).render(assets)
}
