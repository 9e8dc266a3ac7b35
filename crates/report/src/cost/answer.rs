//! The answer of a cost: what a unit of delivered work costs and how much of what is paid for was used; of several which costs
//! less for what it delivers.

use super::text::{rates, run_of};
use super::{Cost, UnitCost, findings, identity, money, pairs, unit_money};
use crate::answer::{Answer, Class, Said, Screen, TRUST, clause};
use assay_measure::plain::shell_word;
use assay_measure::record::Truth;
use assay_measure::units::fixed;

/// Most runs with lines of their own.
const RUNS: usize = 4;
/// Most findings.
const FINDINGS: usize = 3;
/// Most columns of a finding or a warning.
const LONG: usize = 300;

/// The answer of one cost, or of several side by side.
#[must_use]
pub fn answer(costs: &[&Cost], screen: Screen) -> Answer {
    let mut said = Vec::new();
    for cost in costs.iter().take(RUNS) {
        said.extend(lines(cost));
    }
    if costs.len() > RUNS {
        said.push(Said::new("", format!("and {} more in the whole cost", costs.len() - RUNS)));
    }
    let between = pairs(costs);
    let meeting = between.iter().filter_map(|pair| pair.sentences.get(1));
    said.extend(meeting.map(|text| Said::new("Break-even", clause(text, LONG))));
    let found = findings(costs).into_iter().take(FINDINGS);
    said.extend(found.map(|found| Said::new("Finding", format!("{}: {}", found.id, clause(&found.text, LONG)))));
    said.extend(trust(costs));
    said.extend(next(costs));
    Answer { first: conclusion(costs), said, screen, ..Answer::default() }
}

/// The first unit cost that all of them know.
fn common<'c>(costs: &[&'c Cost]) -> Option<&'c UnitCost> {
    let (first, others) = costs.split_first()?;
    let is_known =
        |unit: &&UnitCost| unit.total.value().is_some() && others.iter().all(|other| other.unit(&unit.key).is_some());
    first.units.iter().find(is_known)
}

/// In one sentence.
fn conclusion(costs: &[&Cost]) -> String {
    let is_one_currency = costs.windows(2).all(|pair| pair[0].currency == pair[1].currency);
    match (costs, common(costs)) {
        ([], _) => "The price file has no platform.".to_owned(),
        ([one], unit) => of_one(one, unit),
        _ if !is_one_currency => "These costs are in different currencies, so assay does not compare them.".to_owned(),
        (_, Some(unit)) => cheapest(costs, unit),
        _ => {
            let each =
                costs.iter().map(|cost| format!("{} {}", cost.platform, money(&cost.currency, cost.total_monthly)));
            format!("A month costs: {}.", each.collect::<Vec<_>>().join(", "))
        }
    }
}

fn of_one(cost: &Cost, unit: Option<&UnitCost>) -> String {
    let monthly = format!("{} costs {} a month", cost.platform, money(&cost.currency, cost.total_monthly));
    let used = [(&cost.iops_used_pct, "IOPS"), (&cost.mbps_used_pct, "MB/s")];
    let used = used.iter().find_map(|(share, what)| {
        Some(format!(", with {} % of the {what} that it pays for delivered", fixed(share.value()?, 0)))
    });
    match unit.and_then(|unit| Some((unit, unit.total.value()?))) {
        Some((unit, each)) => {
            format!("{monthly}: {} {} {}{}.", cost.currency, unit_money(each), unit.name, used.unwrap_or_default())
        }
        None if cost.run.is_empty() => format!("{monthly}; no run says what it delivers for that."),
        None => format!("{monthly}; the run has no figure that a unit cost could be made of."),
    }
}

/// Which of several delivers a unit for least, and how much more the others take for it.
fn cheapest(costs: &[&Cost], unit: &UnitCost) -> String {
    let each = |cost: &&&Cost| cost.unit(&unit.key).and_then(|unit| unit.total.value()).unwrap_or(f64::INFINITY);
    let mut all: Vec<&&Cost> = costs.iter().collect();
    all.sort_by(|a, b| each(a).total_cmp(&each(b)));
    let (least, others) = (all[0], &all[1..]);
    let told = others.iter().map(|other| {
        let times = each(other) / each(&least);
        format!("{} on {} ({} x)", unit_money(each(other)), other.platform, fixed(times, 1))
    });
    format!(
        "{} costs less for what it delivers: {} {} against {}, {}, with licences.",
        least.platform,
        least.currency,
        unit_money(each(&least)),
        told.collect::<Vec<_>>().join(", "),
        unit.name
    )
}

/// What one comes to.
fn lines(cost: &Cost) -> Vec<Said> {
    let licences = match cost.licences_monthly {
        0.0 => String::new(),
        licences => format!(" and licences {}", money(&cost.currency, licences)),
    };
    let once = match cost.one_off() {
        0.0 => String::new(),
        once => format!("; due once {}", money(&cost.currency, once)),
    };
    let dearest = cost
        .sensitivity
        .first()
        .map_or_else(String::new, |row| format!(" {} is {} % of it.", row.item, fixed(row.share_pct, 0)));
    let mut said = vec![
        Said::new("Cost", format!("{}, {}.", cost.platform, run_of(cost))),
        Said::new(
            "",
            format!(
                "A month: platform {}{licences}{once}. Prices of {} ({}).{dearest}",
                money(&cost.currency, cost.monthly),
                cost.prices_date,
                cost.prices_file
            ),
        ),
    ];
    let known = cost.units.iter().filter_map(|unit| Some((unit, unit.total.value()?)));
    let units: Vec<String> = known.map(|(unit, each)| format!("{} {}", unit_money(each), unit.name)).collect();
    if !units.is_empty() {
        said.push(Said::new("", format!("{} {}; with licences.", cost.currency, units.join(", "))));
    }
    if !cost.run.is_empty() {
        said.push(Said::new("", rates(cost)));
    }
    said
}

/// What speaks against the figures.
fn trust(costs: &[&Cost]) -> Option<Said> {
    let violated = costs.iter().filter(|cost| identity(cost).ok == Truth::Violated);
    let violated = violated.map(|cost| {
        format!("{}: the total that the price file states does not follow from its prices (I43)", cost.platform)
    });
    let warnings =
        costs.iter().flat_map(|cost| cost.warnings.iter().map(|text| clause(text.trim_end_matches('.'), LONG)));
    let all: Vec<String> = violated.chain(warnings).collect();
    let rest = match all.len().saturating_sub(2) {
        0 => String::new(),
        more => format!(" {more} more warnings are in the whole cost."),
    };
    let told: Vec<String> = all.iter().take(2).map(|text| format!("{text}.")).collect();
    (!told.is_empty())
        .then(|| Said { class: Class::Doubtful, ..Said::new(TRUST, format!("with care: {}{rest}", told.join(" "))) })
}

/// The command that writes everything.
fn next(costs: &[&Cost]) -> Option<Said> {
    let first = costs.first()?;
    let runs = costs.iter().filter(|cost| !cost.run.is_empty()).map(|cost| format!("{} ", shell_word(&cost.run)));
    let command =
        format!("assay cost {}--prices {} -o cost.html", runs.collect::<String>(), shell_word(&first.prices_file));
    Some(Said { is_command: true, ..Said::new("Next", format!("{command}   # every price with its date")) })
}
