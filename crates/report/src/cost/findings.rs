//! Prices beside figures: R28, and R12 and R42 for the provisioned limits of a price file.

use super::{Cost, between};
use assay_measure::record::Advice;
use assay_measure::rule::Rule;
use assay_measure::units::{fixed, thousands};

/// Cost per delivered IOPS apart by so much is said.
const APART: f64 = 2.0;

/// The rules of prices.
pub const RULES: [Rule; 3] = [PINNED, BEYOND, COSTS_APART];

/// Findings over the cost of one or several runs, the weightiest first.
#[must_use]
pub fn findings(costs: &[&Cost]) -> Vec<Advice> {
    let of_one = costs.iter().flat_map(|cost| [pinned(cost), beyond(cost)]);
    let mut found: Vec<Advice> = of_one.flatten().collect();
    if let Some((first, others)) = costs.split_first() {
        let others = others.iter().filter(|other| other.currency == first.currency);
        found.extend(others.filter_map(|other| apart(first, other)));
    }
    found.sort_by_key(|advice| advice.severity != "high");
    found
}

/// What was used of what is paid for, in words; nothing where nothing is known.
fn used(cost: &Cost) -> String {
    let (got, paid) = (cost.delivered.ios_per_s.value(), cost.provisioned_iops.value());
    match (got, paid, cost.iops_used_pct.value()) {
        (Some(got), Some(paid), Some(share)) => format!(
            " {} delivered {} of {} provisioned IOPS ({} %).",
            cost.platform,
            thousands(got.round() as u64),
            thousands(paid.round() as u64),
            fixed(share, 0)
        ),
        _ => String::new(),
    }
}

const COSTS_APART: Rule = Rule {
    id: "R28",
    title: "One platform costs more for what it delivers",
    changes_figures: false,
    fires_when: || {
        format!(
            "The cost per delivered read IOPS and month, without licences, of two platforms is at least {APART} times apart; high from twice that"
        )
    },
    why: "What is paid for and what is delivered are not the same.",
    what_to_do: "Choose the cheaper platform, or buy what the load can use.",
    cannot_judge_when: "The read IOPS or the price of either is not known: then the rule is silent.",
    source: "Decided here.",
};

fn apart(a: &Cost, b: &Cost) -> Option<Advice> {
    let ratio = between(a, b).read_iops_ratio.value()?;
    let (cheap, dear, times) = if ratio >= 1.0 { (a, b, ratio) } else { (b, a, 1.0 / ratio) };
    if times < APART {
        return None;
    }
    let unit = |cost: &Cost| {
        let unit = cost.unit("cost_per_1000_read_iops_month")?;
        unit.platform.value()
    };
    let (low, high) = (unit(cheap)?, unit(dear)?);
    let text = format!(
        "A delivered read IOPS costs {} times as much on {} as on {}: {} {} against {} per 1,000 and month, without \
         licences.{}{}",
        fixed(times, 1),
        dear.platform,
        cheap.platform,
        cheap.currency,
        fixed(high, 1),
        fixed(low, 1),
        used(dear),
        used(cheap)
    );
    let mut evidence = vec![
        ("cost_ratio", times),
        ("cost_per_1000_read_iops_month_high", high),
        ("cost_per_1000_read_iops_month_low", low),
    ];
    evidence.extend(dear.iops_used_pct.value().map(|pct| ("iops_used_pct", pct)));
    Some(COSTS_APART.finding(times >= 2.0 * APART, text, &evidence))
}

/// Rates of links that a throughput stops at, Gbit/s.
const LINKS_GBIT: [f64; 12] = [1.0, 2.0, 4.0, 5.0, 8.0, 10.0, 16.0, 20.0, 25.0, 32.0, 40.0, 100.0];

/// A rate within so many % of what is paid for is at it.
const WITHIN: f64 = 3.0;
/// Below this share of what is paid for there is room, %.
const ROOM: f64 = 90.0;
/// A throughput this near to the size of a link is the link's.
const LINK: f64 = 0.01;

const PINNED: Rule = Rule {
    id: "R12",
    title: "What is paid for is used up",
    changes_figures: false,
    fires_when: || {
        let links = LINKS_GBIT.map(|gbit| gbit.to_string()).join(", ");
        format!(
            "IOPS or MB/s are within {WITHIN} % of what a price file says is paid for while the other is below {ROOM} %; or less than {ROOM} % of the IOPS are used and the throughput is within {} % of a link of {links} Gbit/s; high within {} % of what is paid for",
            100.0 * LINK,
            WITHIN / 2.0
        )
    },
    why: "The figures show what was bought, not what the platform could do.",
    what_to_do: "Buy a higher rate; where a link is the limit, test with smaller I/Os.",
    cannot_judge_when: "The price file provisions no rate: then the rule is silent.",
    source: "Published load tests of the method: 237.2 MiB/s on a link of 2 Gbit/s.",
};

/// One rate at its limit while the other has room; or less used of the IOPS than was paid for, with a throughput that is a link's.
fn pinned(cost: &Cost) -> Option<Advice> {
    let (iops, mbps) = (cost.iops_used_pct.value(), cost.mbps_used_pct.value());
    let at_limit = |share: Option<f64>| share.is_some_and(|share| (share - 100.0).abs() <= WITHIN);
    let has_room = |share: Option<f64>| share.is_none_or(|share| share < ROOM);
    let (what, share, paid, unit) = match (iops, mbps) {
        _ if at_limit(mbps) && has_room(iops) => ("throughput", mbps?, cost.provisioned_mbps.value()?, "MB/s"),
        _ if at_limit(iops) && has_room(mbps) => ("I/O rate", iops?, cost.provisioned_iops.value()?, "IOPS"),
        _ => {
            let share = iops.filter(|share| *share < ROOM)?;
            let gbit = cost.delivered.mb_per_s.value()? * 8.0 / 1000.0;
            let link = LINKS_GBIT.into_iter().find(|link| (gbit / link - 1.0).abs() <= LINK)?;
            let text = format!(
                "A network link may be the limit: {} moved {} MB/s = {} Gbit/s, the rate of a {} Gbit/s link, and used \
                 only {} % of the provisioned IOPS. Test with smaller I/Os: if the link is the limit, IOPS will rise.",
                cost.platform,
                fixed(gbit * 125.0, 1),
                fixed(gbit, 2),
                fixed(link, 0),
                fixed(share, 0)
            );
            let evidence = [("gbit_per_s", gbit), ("iops_used_pct", share)];
            return Some(PINNED.finding(false, text, &evidence));
        }
    };
    let other = match (what, iops, mbps) {
        ("throughput", Some(iops), _) => format!(" while {} % of the provisioned IOPS were used", fixed(iops, 0)),
        ("I/O rate", _, Some(mbps)) => format!(" while {} % of the provisioned MB/s were used", fixed(mbps, 0)),
        _ => String::new(),
    };
    let text = format!(
        "The provisioned rate is the limit: the {what} of {} is {} % of the {} {unit} provisioned{other}. The \
         figures show this limit.",
        cost.platform,
        fixed(share, 1),
        thousands(paid as u64)
    );
    let evidence = [("limit_used_pct", share), ("limit_per_s", paid)];
    Some(PINNED.advise((share - 100.0).abs() <= WITHIN / 2.0, text, &evidence))
}

const BEYOND: Rule = Rule {
    id: "R42",
    title: "More was delivered than is paid for",
    changes_figures: true,
    fires_when: || format!("IOPS or MB/s are more than {WITHIN} % above what a price file says is paid for; high"),
    why: "What is delivered for a time without being paid for (a credit for bursts, a cache) ends, and a unit then costs more than stated.",
    what_to_do: "Check that the price file describes this volume; then run until credits are used up and caches are full.",
    cannot_judge_when: "The price file provisions no rate: then the rule is silent.",
    source: "Decided here.",
};

/// A rate above what is paid for.
fn beyond(cost: &Cost) -> Option<Advice> {
    let rates = [
        (cost.iops_used_pct.value(), cost.delivered.ios_per_s.value(), cost.provisioned_iops.value(), "IOPS"),
        (cost.mbps_used_pct.value(), cost.delivered.mb_per_s.value(), cost.provisioned_mbps.value(), "MB/s"),
    ];
    let above = rates.into_iter().find(|(share, ..)| share.is_some_and(|share| share > 100.0 + WITHIN));
    let (share, got, paid, unit) = above?;
    let (share, got, paid) = (share?, got?, paid?);
    let text = format!(
        "{} delivered {} {unit}, {} % of the {} provisioned.",
        cost.platform,
        fixed(got, 0),
        fixed(share, 0),
        fixed(paid, 0)
    );
    Some(BEYOND.explain(true, text, &[("provisioned_used_pct", share), ("delivered_per_s", got)]))
}
