//! The page of a cost: its answer, then every price.

use super::from_sections;
use super::page::Page;
use super::script::Assets;
use crate::answer::Screen;
use crate::cost::{self, Cost};
use assay_measure::section::Sections;

/// The page of one cost, or of several side by side.
#[must_use]
pub fn cost(costs: &[&Cost], assets: &Assets) -> String {
    let mut sections = Sections::default();
    if !cost::findings(costs).is_empty() {
        sections.judgement("Advice");
        cost::advice(&mut sections, costs);
    }
    cost::sections(&mut sections, costs);
    let platforms: Vec<&str> = costs.iter().map(|cost| cost.platform.as_str()).collect();
    let page = Page {
        title: format!("Cost: {}", platforms.join(", ")),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        sections: from_sections::of(&sections),
        ..Page::default()
    };
    page.answered(cost::answer(costs, Screen::default())).render(assets)
}
