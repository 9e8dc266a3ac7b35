//! Costs as text: every input with its date, totals, unit costs, their sensitivity, and the break-even of two
//! platforms.

use super::{Cost, CostItem, Sensitivity, identity, money, pairs, unit_money};
use assay_measure::record::{Figure, Truth};
use assay_measure::section::{Column, Sections, Weight, left, right};
use assay_measure::units::fixed;

/// The whole text of `assay cost`.
#[must_use]
pub fn render(costs: &[&Cost]) -> String {
    let mut page = Sections::default();
    page.line("Cost at your own prices");
    page.line("=======================");
    advice(&mut page, costs);
    sections(&mut page, costs);
    crate::text::write(&page)
}

/// What the rules find.
pub(crate) fn advice(page: &mut Sections, costs: &[&Cost]) {
    for advice in super::findings(costs) {
        page.wrapped(&format!("{:<4} {:<5} ", advice.id, advice.severity), &advice.text);
    }
}

/// Every cost, and where they meet; the advice is its caller's.
pub(crate) fn sections(page: &mut Sections, costs: &[&Cost]) {
    for cost in costs {
        one(page, cost);
    }
    meeting(page, costs);
}

fn one(page: &mut Sections, cost: &Cost) {
    page.heading(&format!("Cost of {}: {}", cost.platform, run_of(cost)));
    let identity = identity(cost);
    if identity.ok == Truth::Violated {
        let text = format!(
            "the price file states a total of {}, which does not follow from its inputs: {}. One of them is wrong.",
            figure(&cost.currency, &cost.stated_monthly),
            identity.sentence
        );
        page.finding(Weight::Warning, "I43 violated: ", &text);
    }
    let tied = match cost.matched_by.as_str() {
        "" => String::new(),
        how => format!(" Matched to the platform by: {how}."),
    };
    let text = format!(
        "Prices of {} in {}, from {} ({}). A month has {} h; purchases and licences are spread over {} months unless \
         an item says otherwise.{tied}",
        cost.prices_date,
        cost.currency,
        cost.prices_source,
        cost.prices_file,
        fixed(cost.hours_per_month, 0),
        fixed(cost.months, 0)
    );
    page.wrapped("", &text);
    for warning in &cost.warnings {
        page.finding(Weight::Warning, "warning: ", warning);
    }
    page.line("");
    items(page, cost);
    totals(page, cost);
    units(page, cost);
    moves(page, cost);
}

/// The run that is priced.
pub(super) fn run_of(cost: &Cost) -> String {
    match (cost.run.as_str(), &cost.label) {
        ("", _) => "no run".to_owned(),
        (id, Some(label)) => format!("run {id} \"{label}\""),
        (id, None) => format!("run {id}"),
    }
}

const ITEMS: [Column; 6] = [
    left("Item", 30),
    left("Inputs", 46),
    right("A month", 13),
    right("Once", 14),
    right("Share", 7),
    left("Prices of", 12),
];

fn items(page: &mut Sections, cost: &Cost) {
    page.columns(&ITEMS);
    for item in &cost.items {
        let share = if cost.total_monthly > 0.0 {
            format!("{} %", fixed(100.0 * item.monthly / cost.total_monthly, 1))
        } else {
            "n/a".to_owned()
        };
        let cells =
            [item.name.clone(), inputs(item), fixed(item.monthly, 2), once(item.one_off), share, item.date.to_string()];
        page.row(&ITEMS, &cells);
        if item.source != cost.prices_source {
            page.wrapped("    its price from: ", &item.source);
        }
    }
}

fn once(value: f64) -> String {
    match value {
        0.0 => String::new(),
        value => fixed(value, 2),
    }
}

/// `0.136 x 6 x 720 h`; of a licence what is due once, and how it falls on months.
pub(crate) fn inputs(item: &CostItem) -> String {
    let input = |name: &str| {
        let mut inputs = item.inputs.iter();
        inputs.find(|input| input.name == name).map(|input| input.value)
    };
    let value = |name: &str| input(name).map_or_else(|| "n/a".to_owned(), plain);
    match item.kind.as_str() {
        "core_licence" => {
            let cut = input("discount_pct").filter(|pct| *pct > 0.0);
            let cut = cut.map_or_else(String::new, |pct| format!(" - {} %", plain(pct)));
            let support = input("support_pct_per_year").filter(|pct| *pct > 0.0);
            let support = support.map_or_else(String::new, |pct| format!(" + {} %/year", plain(pct)));
            format!(
                "{} cores x {} x {}{cut} / {} months{support}",
                value("cores"),
                value("core_factor"),
                value("list_price"),
                value("months")
            )
        }
        "one_off" => format!("{} x {} / {} months", value("price"), value("quantity"), value("months")),
        _ => {
            let factors = item.inputs.iter().map(|input| match input.unit.as_str() {
                "money" | "" => plain(input.value),
                unit => format!("{} {unit}", plain(input.value)),
            });
            factors.collect::<Vec<String>>().join(" x ")
        }
    }
}

/// A number as a person would write it: no more decimals than it has, six at most.
pub(super) fn plain(value: f64) -> String {
    let decimals = (0..6).find(|decimals| {
        let scale = 10_f64.powi(*decimals);
        ((value * scale).round() / scale - value).abs() < 1e-9 * value.abs()
    });
    fixed(value, decimals.unwrap_or(6) as usize)
}

fn totals(page: &mut Sections, cost: &Cost) {
    let mut total = |name: &str, monthly: f64, one_off: f64| {
        let empty = String::new;
        let (monthly, one_off) = (fixed(monthly, 2), once(one_off));
        let cells = [name.to_owned(), empty(), monthly, one_off, empty(), empty()];
        page.row(&ITEMS, &cells);
    };
    total("platform", cost.monthly, cost.purchases_one_off);
    if cost.licences_one_off > 0.0 || cost.licences_monthly > 0.0 {
        total("licences", cost.licences_monthly, cost.licences_one_off);
        total("with licences", cost.total_monthly, cost.one_off());
    }
    if let Some(stated) = cost.stated_monthly.value() {
        page.line(&format!("Stated in the price file: {} a month without licences.", money(&cost.currency, stated)));
    }
}

/// Money, or why there is none.
fn figure(currency: &str, figure: &Figure) -> String {
    match (figure.value(), figure.reason()) {
        (Some(value), _) => money(currency, value),
        (None, reason) => format!("n/a ({})", reason.unwrap_or("absent")),
    }
}

const UNITS: [Column; 3] =
    [left("Cost per unit of delivered work", 44), right("Platform", 16), right("With licences", 16)];

fn units(page: &mut Sections, cost: &Cost) {
    if cost.run.is_empty() && cost.units.is_empty() {
        return;
    }
    let delivered = &cost.delivered;
    page.line("");
    let used = [
        ("IOPS", "IOPS", &delivered.ios_per_s, &cost.provisioned_iops, &cost.iops_used_pct),
        ("Throughput", "MB/s", &delivered.mb_per_s, &cost.provisioned_mbps, &cost.mbps_used_pct),
    ];
    for (name, unit, got, paid, share) in used {
        if let (Some(got), Some(paid), Some(share)) = (got.value(), paid.value(), share.value()) {
            page.line(&format!(
                "{name}: {} {unit} delivered of {} provisioned = {} %.",
                fixed(got, 0),
                fixed(paid, 0),
                fixed(share, 0)
            ));
        }
    }
    page.columns(&UNITS);
    let mut unknown = Vec::new();
    for unit in &cost.units {
        match (unit.platform.value(), unit.total.value()) {
            (Some(platform), Some(total)) => {
                page.row(&UNITS, &[format!("{} {}", cost.currency, unit.name), unit_money(platform), unit_money(total)])
            }
            _ => unknown.push(format!("{} ({})", unit.name, unit.total.reason().unwrap_or("absent"))),
        }
    }
    if !unknown.is_empty() {
        page.wrapped("n/a: ", &unknown.join("; "));
    }
    page.wrapped("", &rates(cost));
}

/// What was delivered, and what it is taken for.
pub(super) fn rates(cost: &Cost) -> String {
    let delivered = &cost.delivered;
    let rates = [
        ("read IOPS", &delivered.reads_per_s),
        ("write IOPS", &delivered.writes_per_s),
        ("MB/s", &delivered.mb_per_s),
        ("operations/s", &delivered.ops_per_s),
        ("transactions/s", &delivered.transactions_per_s),
        ("executes/s", &delivered.executes_per_s),
    ];
    let known: Vec<String> =
        rates.iter().filter_map(|(name, rate)| Some(format!("{} {name}", fixed(rate.value()?, 1)))).collect();
    let window = delivered
        .window_s
        .value()
        .map_or_else(|| "a window of unknown length".to_owned(), |s| format!("a window of {} s", fixed(s, 0)));
    format!(
        "{}. Rates of {window}, assumed for the whole month: a projection, untested.",
        if known.is_empty() {
            "The run has no figure for any provisioned rate".to_owned()
        } else {
            format!("Delivered: {}", known.join(", "))
        }
    )
}

const MOVES: [Column; 4] = [
    left("Effect of a price 20 % lower or higher", 44),
    right("Share", 16),
    right("20 % lower", 16),
    right("20 % higher", 16),
];

fn moves(page: &mut Sections, cost: &Cost) {
    let Some(first) = cost.sensitivity.first() else {
        return;
    };
    page.line("");
    page.columns(&MOVES);
    for row in &cost.sensitivity {
        let Sensitivity { item, share_pct, low, high, .. } = row;
        page.row(&MOVES, &[item.clone(), format!("{} %", fixed(*share_pct, 1)), unit_money(*low), unit_money(*high)]);
    }
    let of = cost.units.iter().find(|unit| unit.key == first.of);
    let of = of.map_or_else(|| "monthly total".to_owned(), |unit| format!("cost {}", unit.name));
    page.line(&format!("to the {of}, with licences ({})", cost.currency));
}

fn meeting(page: &mut Sections, costs: &[&Cost]) {
    let found = pairs(costs);
    for between in found {
        page.heading(&format!("{} and {}", between.from, between.to));
        for sentence in &between.sentences {
            page.wrapped("- ", sentence);
        }
    }
    let currencies: Vec<&str> = costs.iter().map(|cost| cost.currency.as_str()).collect();
    if currencies.windows(2).any(|pair| pair[0] != pair[1]) {
        page.line("assay does not compare costs in different currencies; put both into one price file.");
    }
}
