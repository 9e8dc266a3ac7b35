//! Colours that stay the same from chart to chart and report to report.
//!
//! They are those of Okabe and Ito and of Paul Tol, which colour-blind readers can distinguish on white and on black; a
//! name, order or dash carries the same information.

/// The colour of the page's text.
pub const INK: &str = "ink";
/// Background elements.
pub const GREY: &str = "#8c8c8c";
/// Reads.
pub const BLUE: &str = "#0072b2";
/// Writes.
pub const VERMILION: &str = "#d55e00";
/// Redo.
pub const PURPLE: &str = "#cc79a7";
/// The second of two.
pub const ORANGE: &str = "#e69f00";
/// On CPU.
pub const GREEN: &str = "#009e73";
/// Mild.
pub const SKY: &str = "#56b4e9";

/// Wait classes in stacking order from below, by their name in the record and by their word in a series' keys.
pub const CLASSES: [(&str, &str, &str); 11] = [
    ("CPU", "cpu", GREEN),
    ("Run queue", "run_queue", "#44aa99"),
    ("User I/O", "user_io", BLUE),
    ("System I/O", "system_io", SKY),
    ("Commit", "commit", ORANGE),
    ("Configuration", "configuration", "#882255"),
    ("Concurrency", "concurrency", VERMILION),
    ("Application", "application", PURPLE),
    ("Network", "network", "#ddcc77"),
    ("Scheduler", "scheduler", "#117733"),
    ("Other", "other", GREY),
];

/// Colours of things without a colour of their own, in this order.
const OTHERS: [&str; 9] = [BLUE, ORANGE, GREEN, VERMILION, SKY, PURPLE, "#882255", "#999933", GREY];

/// The nth colour.
pub fn nth(n: usize) -> &'static str {
    OTHERS[n % OTHERS.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_class_has_a_colour_of_its_own() {
        let colors: BTreeSet<&str> = CLASSES.iter().map(|(_, _, color)| *color).collect();
        assert_eq!(colors.len(), CLASSES.len());
    }
}
