//! What the page says of money: the total over [`MONTHS`] with its line items and dates, and what a unit costs by it.

use super::Page;
use crate::cost::{Cost, CostItem, unit_money};
use assay_measure::units::{fixed, shorten};

/// The term that price and performance are quoted for.
const MONTHS: f64 = 36.0;
/// Most items with a line of their own.
const ITEMS: usize = 10;

/// What is paid for an item over the term: due once and due each month, nothing amortised beyond it.
fn paid(item: &CostItem) -> f64 {
    item.one_off + MONTHS * item.running_monthly
}

pub(super) fn section(page: &mut Page, cost: &Cost) {
    let currency = &cost.currency;
    let total = cost.paid_after(MONTHS);
    page.part(
        "Price",
        &format!(
            "{currency} {} over {} months for {} (once {}, {} a month). Prices of {}: {}.",
            fixed(total, 2),
            fixed(MONTHS, 0),
            cost.platform,
            fixed(cost.one_off(), 2),
            fixed(cost.running_monthly(), 2),
            cost.prices_date,
            shorten(&cost.prices_source, 120)
        ),
    );
    let mut items: Vec<&CostItem> = cost.items.iter().collect();
    items.sort_by(|a, b| paid(b).total_cmp(&paid(a)));
    let line = |name: &str, what: &str, money: f64, date: &str| {
        format!("  {:<28} {:<36} {:>18} {date:>11}", shorten(name, 28), shorten(what, 36), fixed(money, 2))
    };
    for item in items.iter().take(ITEMS) {
        let what = inputs(item);
        page.line(&line(&item.name, &what, paid(item), &item.date.to_string()));
    }
    let rest: f64 = items.iter().skip(ITEMS).map(|item| paid(item)).sum();
    if items.len() > ITEMS {
        let name = format!("and {} more", items.len() - ITEMS);
        page.line(&line(&name, "`assay cost` prints them", rest, ""));
    }
    page.line(&line("total", "", total, ""));
    units(page, cost, total);
    if let Some(warning) = cost.warnings.first() {
        page.item("", &shorten(warning, 240));
    }
}

/// Each input as in the price file, so that the line can be computed again; support by the year.
fn inputs(item: &CostItem) -> String {
    let text = crate::cost::inputs(item);
    if item.one_off > 0.0 {
        // What it is spread over does not matter here.
        text.split_once(" / ").map_or_else(
            || text.clone(),
            |(once, rest)| match rest.split_once(" + ") {
                Some((_, support)) => format!("{once} + {support}"),
                None => once.to_owned(),
            },
        )
    } else {
        format!("{text} x {} months", fixed(MONTHS, 0))
    }
}

fn units(page: &mut Page, cost: &Cost, total: f64) {
    let found = &cost.delivered;
    let mut parts = Vec::new();
    if let Some(ios) = found.ios_per_s.value().filter(|ios| *ios > 0.0) {
        parts.push(format!("{} per 1,000 IOPS ({} delivered)", unit_money(total / ios * 1000.0), fixed(ios, 0)));
    }
    let seconds = MONTHS * cost.hours_per_month * 3600.0;
    let work = [
        ("operations", &found.ops_per_s),
        ("transactions", &found.transactions_per_s),
        ("executes", &found.executes_per_s),
    ];
    let rate = work.into_iter().find_map(|(name, rate)| Some((name, rate.value().filter(|rate| *rate > 0.0)?)));
    match rate {
        Some((name, rate)) => parts.push(format!(
            "{} per million {name} ({} million in {} months of {} h)",
            unit_money(total / (rate * seconds / 1e6)),
            fixed(rate * seconds / 1e6, 0),
            fixed(MONTHS, 0),
            fixed(cost.hours_per_month, 0)
        )),
        None => parts.push("per million operations n/a (no operations)".to_owned()),
    }
    page.item("", &format!("{} {}.", cost.currency, parts.join("; ")));
    page.item("", "This assumes the window's rate for the whole time: a projection, untested.");
}
