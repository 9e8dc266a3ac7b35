//! The answer on one screen; with prices also what it costs.

use super::{Format, Input, PLAIN};
use crate::answer::{self, Page, Said};
use crate::cost::{self, Cost, CostItem, unit_money};
use assay_measure::units::{fixed, shorten};

pub(super) const ANSWER: Format = Format {
    name: super::ANSWER,
    also: &["brief"],
    help: "How much, how steady, what limits it, how far to trust it, what to do next",
    write: |input, out| Ok(out.write_all(text(input).as_bytes())?),
    ..PLAIN
};

/// The term that price and performance are quoted for.
const MONTHS: f64 = 36.0;
/// Most items with a line of their own.
const ITEMS: usize = 10;
/// Most columns of a finding of a price.
const LONG: usize = 300;
/// Most lines of a price.
const LINES: usize = 20;

fn text(input: &Input<'_>) -> String {
    let mut answer = answer::of(input.records, &input.context);
    let Some(cost) = &input.cost else {
        return answer.text();
    };
    // What to type next is for who sits at the machine.
    answer.said.retain(|said| !said.is_command);
    let found = cost::findings(&[cost]).into_iter();
    let finding = |text: String| Said::new("Finding", text);
    answer.said.extend(found.map(|found| finding(format!("{}: {}", found.id, shorten(&found.text, LONG)))));
    let mut page = answer.page();
    section(&mut page, cost);
    answer.text_before(&page.finish(LINES, "(cut here; `assay cost RUN` prints the rest)"))
}

/// What is paid for an item over the term: due once and due each month, nothing amortised beyond it.
fn paid(item: &CostItem) -> f64 {
    item.one_off + MONTHS * item.running_monthly
}

fn section(page: &mut Page, cost: &Cost) {
    let currency = &cost.currency;
    let total = cost.paid_after(MONTHS);
    page.line("");
    page.item(
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
    let text = cost::inputs(item);
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
