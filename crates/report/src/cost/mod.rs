//! What a platform costs by the user's own dated prices, and what its delivered figures cost with them.
//!
//! [`parse()`] reads the price file, [`of`] prices one record. The result contains every input with its date, so that a
//! reader can recompute it ([`identity`], I43). Owns the arithmetic of money; knows no vendor and fetches nothing.

mod answer;
mod break_even;
mod findings;
mod prices;
mod text;

#[cfg(test)]
mod tests;

pub use answer::answer;
pub use assay_measure::kind::Delivered;
pub use break_even::{BreakEven, between};
pub use findings::{RULES, findings};
pub use prices::{Day, Item, KINDS, Nature, Platform, PriceError, Prices, parse};
pub use text::render;
pub(crate) use text::{advice, inputs, sections};

use crate::kinds;
use assay_measure::figures::figures;
use assay_measure::identity::{IdentityRule, Scope};
use assay_measure::record::Metric;
use assay_measure::record::metric::{Better, Group, plain};
use assay_measure::record::{Figure, Identity, Record};
use assay_measure::units::fixed;
use serde::Serialize;

/// The value of `schema` in the JSON of [`json`].
pub const SCHEMA: &str = "assay-cost/1";

/// A commented price file to start from.
pub const EXAMPLE: &str = include_str!("example.toml");

/// Prices older than this at the time of the run are doubtful.
const STALE_MONTHS: u32 = 12;
/// The change of each price whose effect is shown.
const SENSITIVITY: f64 = 0.2;

/// Why a record cannot be priced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CostError {
    /// `--platform` names none of the file.
    #[error("{file} has no platform \"{name}\"; it has {known}")]
    Unknown {
        /// The price file.
        file: String,
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// Nothing ties the record to one of several platforms.
    #[error(
        "run {run} matches no platform in {file}: {seen}; add one of these to a platform's match = [...], or name \
         the platform with --platform ({known})"
    )]
    Unmatched {
        /// The price file.
        file: String,
        /// The run's id.
        run: String,
        /// What was looked for.
        seen: String,
        /// What there is.
        known: String,
    },
    /// Several platforms claim the record.
    #[error("run {run} matches several platforms in {file}: {names}; name one with --platform")]
    Ambiguous {
        /// The price file.
        file: String,
        /// The run's id.
        run: String,
        /// Those that claim it.
        names: String,
    },
}

/// The monthly cost of one platform, and what a run on it delivered for that.
#[figures]
pub struct Cost {
    /// The platform's name in the price file.
    pub platform: String,
    /// How it was found: `named`, `label cloud-a`, `host db1`, `the only platform in the file`.
    pub matched_by: String,
    /// The run's id; empty if prices stand alone.
    pub run: String,
    /// The run's label.
    pub label: Option<String>,
    /// RFC 3339 start of the run; may be empty for an import.
    pub started: String,
    /// The price file.
    pub prices_file: String,
    /// When the prices were read.
    pub prices_date: Day,
    /// Where they were read.
    pub prices_source: String,
    /// ISO 4217.
    pub currency: String,
    /// Hours billed a month where an item does not say.
    pub hours_per_month: f64,
    /// Months that purchases and licences are spread over where an item does not say.
    pub months: f64,
    /// Every price with its inputs.
    pub items: Vec<CostItem>,
    /// Due each month without licences and their support: running items and amortised purchases.
    pub monthly: f64,
    /// Purchases, due once.
    pub purchases_one_off: f64,
    /// Licences, due once.
    pub licences_one_off: f64,
    /// Licences amortised and their support, each month.
    pub licences_monthly: f64,
    /// Both together.
    pub total_monthly: f64,
    /// The monthly total without licences that the file states from elsewhere; n/a if it states none.
    pub stated_monthly: Figure,
    /// I/Os per second paid for; n/a if the file names none.
    pub provisioned_iops: Figure,
    /// Bytes per second paid for, 10^6; n/a if the file names none.
    pub provisioned_mbps: Figure,
    /// I/Os per second delivered over those paid for, 0..100.
    pub iops_used_pct: Figure,
    /// Bytes per second delivered over those paid for, 0..100.
    pub mbps_used_pct: Figure,
    /// What the run delivered.
    pub delivered: Delivered,
    /// Its unit costs.
    pub units: Vec<UnitCost>,
    /// What each price does to the cost, the strongest first.
    pub sensitivity: Vec<Sensitivity>,
    /// Remarks on the figures.
    pub warnings: Vec<String>,
}

/// One price with its inputs and its result.
#[figures]
pub struct CostItem {
    /// `hourly`, `core_licence`, ...
    pub kind: String,
    /// As in the file.
    pub name: String,
    /// Every factor, in the order of the formula.
    pub inputs: Vec<CostInput>,
    /// Licence rather than platform.
    pub is_licence: bool,
    /// Due once.
    pub one_off: f64,
    /// Due each month: running cost, or a licence's support.
    pub running_monthly: f64,
    /// The part of `one_off` that falls on a month.
    pub amortised_monthly: f64,
    /// Both.
    pub monthly: f64,
    /// When the price was read.
    pub date: Day,
    /// Where it was read.
    pub source: String,
}

/// One factor of an item.
#[figures]
pub struct CostInput {
    /// Its key in the price file.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Its unit; `money` is the file's currency.
    pub unit: String,
}

/// Cost per unit of delivered work.
#[figures]
pub struct UnitCost {
    /// Stable name, e.g. `cost_per_1000_read_iops_month`.
    pub key: String,
    /// For people.
    pub name: String,
    /// By the monthly cost without licences.
    pub platform: Figure,
    /// By the monthly cost with licences.
    pub total: Figure,
}

/// How a price changes the cost.
#[figures]
pub struct Sensitivity {
    /// The item.
    pub item: String,
    /// Its share of the monthly total, 0..100.
    pub share_pct: f64,
    /// Key of the unit cost, or `total_monthly`.
    pub of: String,
    /// That cost with the price a fifth lower.
    pub low: f64,
    /// That cost with the price a fifth higher.
    pub high: f64,
}

impl Cost {
    /// The unit cost of this key, if the run delivered any.
    #[must_use]
    pub fn unit(&self, key: &str) -> Option<&UnitCost> {
        let mut units = self.units.iter();
        units.find(|unit| unit.key == key && unit.total.value().is_some())
    }

    /// Due once: purchases and licences.
    #[must_use]
    pub fn one_off(&self) -> f64 {
        self.purchases_one_off + self.licences_one_off
    }

    /// Due each month, nothing amortised.
    #[must_use]
    pub fn running_monthly(&self) -> f64 {
        self.items.iter().map(|item| item.running_monthly).sum()
    }

    /// Everything paid in this many months.
    #[must_use]
    pub fn paid_after(&self, months: f64) -> f64 {
        self.one_off() + months * self.running_monthly()
    }
}

/// Prices a record by the platform it ran on: the named one, else the one whose `match` has its label or host, else the only one.
///
/// # Errors
/// No platform of that name, none that fits, or several.
pub fn of(prices: &Prices, platform: Option<&str>, record: &Record) -> Result<Cost, CostError> {
    let (platform, matched_by) = tie(prices, platform, record)?;
    let mut cost = priced(prices, platform);
    cost.matched_by = matched_by;
    cost.run.clone_from(&record.run.id);
    cost.label.clone_from(&record.run.label);
    cost.started.clone_from(&record.run.started);
    cost.delivered = kinds::delivered(record);
    deliver(&mut cost);
    match Day::read(&record.run.started) {
        Some(day) => cost.warnings.extend(stale(&cost, day)),
        None => cost.warnings.push(format!(
            "The date of the run is not known, so assay cannot judge the age of the prices ({}).",
            cost.prices_date
        )),
    }
    if record.run.verdict == "invalid" {
        cost.warnings.push("The run is invalid: do not quote its rates or their cost.".to_owned());
    }
    cost.warnings.append(&mut cost.delivered.notes.clone());
    Ok(cost)
}

/// Prices alone: what a platform costs, with nothing delivered.
#[must_use]
pub fn priced(prices: &Prices, platform: &Platform) -> Cost {
    let items: Vec<CostItem> = platform.items.iter().map(|item| line(prices, item)).collect();
    let sum = |of: &dyn Fn(&CostItem) -> f64| items.iter().map(of).sum::<f64>();
    let of_licence = |item: &CostItem, wanted: bool| item.is_licence == wanted;
    let monthly = sum(&|item| {
        if of_licence(item, false) { item.monthly } else { 0.0 }
    });
    let licences_monthly = sum(&|item| {
        if of_licence(item, true) { item.monthly } else { 0.0 }
    });
    let given = |given: Option<f64>, kind: &str| {
        let of_kind = platform.items.iter().filter(|item| item.kind == kind);
        let paid: f64 = of_kind.filter_map(|item| item.factors[1].2).sum();
        match given.or(Some(paid).filter(|paid| *paid > 0.0)) {
            Some(value) => Figure::decimal(value),
            None => Figure::na("none named in the price file"),
        }
    };
    let mut cost = Cost {
        platform: platform.name.clone(),
        prices_file: prices.file.clone(),
        prices_date: prices.date,
        prices_source: prices.source.clone(),
        currency: prices.currency.clone(),
        hours_per_month: prices.hours_per_month,
        months: prices.months,
        monthly,
        purchases_one_off: sum(&|item| {
            if of_licence(item, false) { item.one_off } else { 0.0 }
        }),
        licences_one_off: sum(&|item| {
            if of_licence(item, true) { item.one_off } else { 0.0 }
        }),
        licences_monthly,
        total_monthly: monthly + licences_monthly,
        stated_monthly: platform.stated_monthly.map_or_else(|| Figure::na("none stated"), Figure::decimal),
        provisioned_iops: given(platform.provisioned_iops, "per_provisioned_iops_month"),
        provisioned_mbps: given(platform.provisioned_mbps, "per_mbps"),
        iops_used_pct: Figure::na("no run"),
        mbps_used_pct: Figure::na("no run"),
        items,
        ..Cost::default()
    };
    cost.sensitivity = sensitivity(&cost);
    cost
}

/// The platform a record belongs to and how that is known.
fn tie<'p>(prices: &'p Prices, named: Option<&str>, record: &Record) -> Result<(&'p Platform, String), CostError> {
    let (file, run) = (prices.file.clone(), record.run.id.clone());
    if let Some(name) = named {
        let mut platforms = prices.platforms.iter();
        let found = platforms.find(|platform| platform.name == name);
        let unknown = || CostError::Unknown { file, name: name.to_owned(), known: known(prices) };
        return found.map(|platform| (platform, "named".to_owned())).ok_or_else(unknown);
    }
    let host = record.host.facts.iter().find(|fact| fact.name == "hostname");
    let marks: Vec<(&str, &str)> = (record.run.label.iter().map(|label| ("label", label.as_str())))
        .chain(host.map(|fact| ("host", fact.value.as_str())))
        .collect();
    for (what, mark) in &marks {
        let claims = |platform: &&Platform| {
            let mut names = platform.matches.iter().chain([&platform.name]);
            names.any(|name| name.eq_ignore_ascii_case(mark))
        };
        let claiming: Vec<&Platform> = prices.platforms.iter().filter(claims).collect();
        match claiming.as_slice() {
            [] => {}
            [one] => return Ok((one, format!("{what} {mark}"))),
            several => {
                let names: Vec<&str> = several.iter().map(|platform| platform.name.as_str()).collect();
                let names = names.join(", ");
                return Err(CostError::Ambiguous { file, run, names });
            }
        }
    }
    if let [only] = prices.platforms.as_slice()
        && only.matches.is_empty()
    {
        return Ok((only, "the only platform in the file".to_owned()));
    }
    Err(unmatched(prices, &marks, run))
}

/// Why nothing ties a run to a platform, with what was looked for.
fn unmatched(prices: &Prices, marks: &[(&str, &str)], run: String) -> CostError {
    let seen: Vec<String> = (marks.iter()).map(|(what, mark)| format!("{what} \"{mark}\"")).collect();
    CostError::Unmatched {
        file: prices.file.clone(),
        run,
        seen: if seen.is_empty() {
            "it has no label and no host name".to_owned()
        } else {
            format!("it has {}", seen.join(" and "))
        },
        known: known(prices),
    }
}

/// The names of all platforms.
fn known(prices: &Prices) -> String {
    let names = prices.platforms.iter().map(|platform| platform.name.as_str());
    names.collect::<Vec<&str>>().join(", ")
}

/// What one item comes to.
fn line(prices: &Prices, item: &Item) -> CostItem {
    let of_file = |key: &str| if key == "months" { prices.months } else { prices.hours_per_month };
    let factors = item.factors.iter().map(|(key, unit, value)| CostInput {
        name: (*key).to_owned(),
        value: value.unwrap_or_else(|| of_file(key)),
        unit: (*unit).to_owned(),
    });
    let inputs: Vec<CostInput> = factors.collect();
    let values: Vec<f64> = inputs.iter().map(|input| input.value).collect();
    let (one_off, running, months) = match item.nature {
        Nature::Running => (0.0, values.iter().product(), 1.0),
        Nature::Purchase => (values[0] * values[1], 0.0, values[2]),
        Nature::Licence => {
            let [list, cores, factor, discount, support, months] = values.as_slice() else {
                unreachable!("a licence has six factors, each with a value");
            };
            let net = list * cores * factor * (1.0 - discount / 100.0);
            (net, net * support / 100.0 / 12.0, *months)
        }
    };
    let amortised = one_off / months;
    CostItem {
        kind: item.kind.to_owned(),
        name: item.name.clone(),
        inputs,
        is_licence: item.nature == Nature::Licence,
        one_off,
        running_monthly: running,
        amortised_monthly: amortised,
        monthly: running + amortised,
        date: item.date.unwrap_or(prices.date),
        source: item.source.clone().unwrap_or_else(|| prices.source.clone()),
    }
}

/// Unit costs, use of what is paid for, and their sensitivity.
fn deliver(cost: &mut Cost) {
    let found = &cost.delivered;
    let seconds = cost.hours_per_month * 3600.0;
    let rows = [
        ("cost_per_1000_read_iops_month", "per 1,000 read IOPS and month", &found.reads_per_s, 1e-3),
        ("cost_per_1000_iops_month", "per 1,000 IOPS and month", &found.ios_per_s, 1e-3),
        ("cost_per_mb_per_s_month", "per MB/s (10^6) and month", &found.mb_per_s, 1.0),
        ("cost_per_million_ops", "per million operations", &found.ops_per_s, seconds * 1e-6),
        ("cost_per_million_transactions", "per million transactions", &found.transactions_per_s, seconds * 1e-6),
        ("cost_per_million_executes", "per million executes", &found.executes_per_s, seconds * 1e-6),
    ];
    let per = |money: f64, rate: &Figure, factor: f64| match rate.value() {
        Some(rate) => Figure::decimal(money).per(rate * factor, "nothing delivered"),
        None => rate.clone(),
    };
    cost.units = rows
        .into_iter()
        .map(|(key, name, rate, factor)| UnitCost {
            key: key.to_owned(),
            name: name.to_owned(),
            platform: per(cost.monthly, rate, factor),
            total: per(cost.total_monthly, rate, factor),
        })
        .collect();
    let share = |delivered: &Figure, paid: &Figure| match paid.value() {
        Some(paid) => delivered.scaled(100.0).per(paid, "none provisioned"),
        None => paid.clone(),
    };
    cost.iops_used_pct = share(&found.ios_per_s, &cost.provisioned_iops);
    cost.mbps_used_pct = share(&found.mb_per_s, &cost.provisioned_mbps);
    cost.sensitivity = sensitivity(cost);
}

/// The effect of each price on the first unit cost that is known, else on the monthly total.
fn sensitivity(cost: &Cost) -> Vec<Sensitivity> {
    let unit = cost.units.iter().find(|unit| unit.total.value().is_some());
    let (of, base) = match unit {
        Some(unit) => (unit.key.as_str(), unit.total.value().unwrap_or_default()),
        None => ("total_monthly", cost.total_monthly),
    };
    if cost.total_monthly <= 0.0 {
        return Vec::new();
    }
    let effect = |item: &CostItem| {
        let share = item.monthly / cost.total_monthly;
        Sensitivity {
            item: item.name.clone(),
            share_pct: 100.0 * share,
            of: of.to_owned(),
            low: base * (1.0 - SENSITIVITY * share),
            high: base * (1.0 + SENSITIVITY * share),
        }
    };
    let mut rows: Vec<Sensitivity> = cost.items.iter().map(effect).collect();
    rows.sort_by(|a, b| b.share_pct.total_cmp(&a.share_pct));
    rows
}

/// Prices that were old when the run was made.
fn stale(cost: &Cost, run: Day) -> Vec<String> {
    let mut days: Vec<Day> = cost.items.iter().map(|item| item.date).collect();
    days.push(cost.prices_date);
    days.sort_unstable();
    days.dedup();
    let old = days.iter().filter(|day| day.is_older_than(STALE_MONTHS, run));
    let mut found: Vec<String> = old
        .map(|day| {
            format!(
                "The prices of {day} were more than {STALE_MONTHS} months old when the run was made ({run}): check \
                 them before you quote them."
            )
        })
        .collect();
    let late = days.iter().filter(|day| run.is_older_than(STALE_MONTHS, **day));
    found.extend(late.map(|day| {
        format!(
            "The prices of {day} are more than {STALE_MONTHS} months newer than the run ({run}): the platform \
            sold at these prices may not be the one that was measured."
        )
    }));
    found
}

/// I43: the monthly total without licences from the printed inputs, against the total the file says was published, within half
/// a unit for each item and the total; against our own total where it says none.
#[must_use]
pub fn identity(cost: &Cost) -> Identity {
    let from_inputs: f64 = cost.items.iter().filter(|item| !item.is_licence).map(recomputed).sum();
    let rule = "monthly cost = sum of quantity x price over its items";
    let (rhs, tolerance) = match cost.stated_monthly.value() {
        Some(stated) => (stated, 0.5 * (cost.items.len() + 1) as f64),
        None => (cost.monthly, 1e-9 * cost.monthly),
    };
    IdentityRule::within("I43", Scope::Window, rule, tolerance).compare(Ok(from_inputs), Ok(rhs))
}

/// What an item comes to each month, from its listed inputs alone.
fn recomputed(item: &CostItem) -> f64 {
    let input = |name: &str| item.inputs.iter().find(|input| input.name == name).map(|input| input.value);
    let factors = item.inputs.iter().filter(|input| input.name != "months");
    let product: f64 = factors.map(|input| input.value).product();
    match item.kind.as_str() {
        "one_off" => product / input("months").unwrap_or(f64::NAN),
        _ => product,
    }
}

/// The unit costs with licences as metrics of the comparison: less is better, cost per operation (of a probe: per 1,000 IOPS) is primary.
#[must_use]
pub fn metrics(cost: &Cost) -> Vec<Metric> {
    let primary = ["cost_per_million_ops", "cost_per_1000_iops_month"];
    let primary = primary.into_iter().find(|key| cost.unit(key).is_some());
    let known = cost.units.iter().filter(|unit| unit.total.value().is_some());
    known
        .map(|unit| Metric {
            name: format!("{} {}", cost.currency, unit.name),
            is_primary: Some(unit.key.as_str()) == primary,
            layer: "client".to_owned(),
            ..plain(Group::Primary, &unit.key, &unit.name, &cost.currency, Better::Lower, unit.total.clone())
        })
        .collect()
}

/// JSON: costs, each pair against the first, findings.
///
/// # Errors
/// None that costs can cause; the signature is serde's.
pub fn json(costs: &[&Cost]) -> Result<String, serde_json::Error> {
    #[derive(Serialize)]
    struct CostJson<'a> {
        schema: &'a str,
        costs: &'a [&'a Cost],
        integrity: Vec<Identity>,
        between: Vec<BreakEven>,
        advice: Vec<assay_measure::record::Advice>,
    }
    let json = CostJson {
        schema: SCHEMA,
        costs,
        integrity: costs.iter().map(|cost| identity(cost)).collect(),
        between: pairs(costs),
        advice: findings(costs),
    };
    let mut text = serde_json::to_string_pretty(&json)?;
    text.push('\n');
    Ok(text)
}

/// Each cost against the first, where the platforms differ and the currency does not.
fn pairs(costs: &[&Cost]) -> Vec<BreakEven> {
    let Some((first, others)) = costs.split_first() else {
        return Vec::new();
    };
    let comparable = others.iter().filter(|other| other.platform != first.platform && other.currency == first.currency);
    comparable.map(|other| between(first, other)).collect()
}

/// Money with its currency and two decimals; more where those are nothing.
pub(crate) fn money(currency: &str, value: f64) -> String {
    format!("{currency} {}", fixed(value, 2))
}

/// A unit cost: four digits that count, two decimals at most where it is large.
pub(crate) fn unit_money(value: f64) -> String {
    match value.abs() {
        large if large >= 10.0 => fixed(value, 2),
        small if small >= 0.1 => fixed(value, 3),
        _ => assay_measure::units::significant(value, 3),
    }
}
