//! Two platforms side by side: where they cost the same.

use super::{Cost, money, unit_money};
use assay_measure::figures::figures;
use assay_measure::record::Figure;
use assay_measure::units::{fixed, thousands};

/// Where the costs of two platforms meet.
#[figures]
pub struct BreakEven {
    /// The one that is compared with.
    pub from: String,
    /// The other.
    pub to: String,
    /// Monthly cost of the other over this one's, without licences.
    pub monthly_ratio: Figure,
    /// Licences due once of the other over this one's.
    pub licences_ratio: Figure,
    /// Cost per 1,000 delivered read IOPS of the other over this one's, without licences.
    pub read_iops_ratio: Figure,
    /// The same with licences.
    pub read_iops_total_ratio: Figure,
    /// Months after which as much was paid for both (due once plus due monthly); n/a (why).
    pub break_even_months: Figure,
    /// Read IOPS that the more expensive one would have to deliver for an equal unit cost, without licences; n/a (why).
    pub parity_reads_per_s: Figure,
    /// All of it in sentences.
    pub sentences: Vec<String>,
}

const READ_IOPS: &str = "cost_per_1000_read_iops_month";

/// Compares the cost of two platforms.
#[must_use]
pub fn between(from: &Cost, to: &Cost) -> BreakEven {
    let ratio = |a: f64, b: f64, why: &str| Figure::decimal(b).per(a, why);
    let unit = |cost: &Cost, whole: bool| {
        let unit = cost.unit(READ_IOPS)?;
        if whole { unit.total.value() } else { unit.platform.value() }
    };
    let of_units = |whole| match (unit(from, whole), unit(to, whole)) {
        (Some(a), Some(b)) => ratio(a, b, "no cost"),
        _ => Figure::na("read IOPS of both sides are not known"),
    };
    let mut found = BreakEven {
        from: from.platform.clone(),
        to: to.platform.clone(),
        monthly_ratio: ratio(from.monthly, to.monthly, "no monthly cost"),
        licences_ratio: ratio(from.licences_one_off, to.licences_one_off, "no licences"),
        read_iops_ratio: of_units(false),
        read_iops_total_ratio: of_units(true),
        break_even_months: Figure::na("absent"),
        parity_reads_per_s: Figure::na("read IOPS of both sides are not known"),
        sentences: Vec::new(),
    };
    found.sentences.push(monthly(from, to));
    let (months, sentence) = break_even(from, to);
    found.break_even_months = months;
    found.sentences.push(sentence);
    if let (Some(a), Some(b)) = (unit(from, false), unit(to, false))
        && a > 0.0
        && b > 0.0
    {
        let (rate, sentence) = parity(from, to, a, b);
        found.parity_reads_per_s = Figure::decimal(rate);
        found.sentences.push(sentence);
    }
    found
}

fn monthly(from: &Cost, to: &Cost) -> String {
    let (currency, a, b) = (&from.currency, from.monthly, to.monthly);
    let times = if a > 0.0 && b > 0.0 { format!(", {} times", fixed(b / a, 2)) } else { String::new() };
    let licences = match (from.licences_one_off, to.licences_one_off) {
        (0.0, 0.0) => String::new(),
        (a, b) => {
            let times = if a > 0.0 && b > 0.0 { format!(" ({} times)", fixed(b / a, 2)) } else { String::new() };
            format!("; licences (due once): {} against {}{times}", money(currency, a), money(currency, b))
        }
    };
    format!(
        "A month of {} costs {}, of {} {}{times}{licences}.",
        from.platform,
        money(currency, a),
        to.platform,
        money(currency, b)
    )
}

/// When as much was paid for both.
fn break_even(from: &Cost, to: &Cost) -> (Figure, String) {
    let once = to.one_off() - from.one_off();
    let each = from.running_monthly() - to.running_monthly();
    let (cheaper, dearer) = match (once, each) {
        _ if once == 0.0 && each == 0.0 => {
            let text = "Both cost the same at all times.".to_owned();
            return (Figure::na("they cost the same"), text);
        }
        _ if once <= 0.0 && each >= 0.0 => (to, from),
        _ if once >= 0.0 && each <= 0.0 => (from, to),
        _ => {
            let months = once / each;
            // Who is due more at once is cheaper by the month, else nothing would be made up for.
            let (early, late) = if once > 0.0 { (from, to) } else { (to, from) };
            let text = format!(
                "Break-even after {} months: {} is cheaper until then (one-off plus monthly cost, nothing \
                 amortised), {} from then on; at that point each has cost {}.",
                fixed(months, 1),
                early.platform,
                late.platform,
                money(&from.currency, from.paid_after(months))
            );
            return (Figure::decimal(months), text);
        }
    };
    let months = cheaper.months;
    let text = format!(
        "No break-even: {} costs less than {} from the first month on (one-off plus monthly cost; after {} months {} \
         against {}).",
        cheaper.platform,
        dearer.platform,
        fixed(months, 0),
        money(&cheaper.currency, cheaper.paid_after(months)),
        money(&dearer.currency, dearer.paid_after(months))
    );
    (Figure::na("one of them costs less from the first month on"), text)
}

/// What the dearer one per unit would have to deliver.
fn parity(from: &Cost, to: &Cost, a: f64, b: f64) -> (f64, String) {
    let (dear, least, most) = if b >= a { (to, a, b) } else { (from, b, a) };
    let wanted = dear.monthly / least * 1000.0;
    let got = dear.delivered.reads_per_s.value().unwrap_or_default();
    let beyond = match dear.provisioned_iops.value() {
        Some(paid) if wanted > paid => format!(" That is more than the {} that you pay for.", thousands(paid as u64)),
        _ => String::new(),
    };
    let text = format!(
        "Per 1,000 delivered read IOPS and month, without licences: {} {} on {}, {} on {} ({} times). To cost the \
         same per unit, {} would have to deliver {} read IOPS at its price instead of {}.{beyond}",
        dear.currency,
        unit_money(a),
        from.platform,
        unit_money(b),
        to.platform,
        fixed(most / least, 1),
        dear.platform,
        thousands(wanted.round() as u64),
        thousands(got.round() as u64)
    );
    (wanted, text)
}
