//! What an AWR prints twice and no line can say: the shares of a histogram, line by line, and columns of all rows against
//! each other.

use super::{Must, Printed, Side, Tally, judge_of};
use assay_measure::counter_catalog;
use assay_measure::record::Identity;
use std::collections::BTreeMap;

pub(super) fn identities(p: &Printed<'_>, all: &mut Vec<Identity>) {
    shares(p, all);
    per_transaction(p, all);
}

/// Transactions of the window.
fn transactions(p: &Printed<'_>) -> Option<Side> {
    Some(p.total(counter_catalog::USER_COMMITS)?.plus(p.total(counter_catalog::USER_ROLLBACKS)?))
}

/// AWR3: shares of the waits of an event, line by line, are of no more than all.
fn shares(p: &Printed<'_>, all: &mut Vec<Identity>) {
    let Some(info) = &p.record.import else {
        return;
    };
    let mut lines: BTreeMap<(u64, u64), (&str, Side)> = BTreeMap::new();
    for value in info.values.iter().filter(|value| value.scope == "histogram") {
        let (true, Some(share)) = (value.key.ends_with("_us_pct"), value.value.value()) else {
            continue;
        };
        let side = Side { value: share, off: value.rounding };
        let line = lines.entry((value.file, value.line));
        line.and_modify(|(_, sum)| *sum = sum.plus(side)).or_insert((value.name.as_str(), side));
    }
    let hundred = Side::exact(100.0);
    for (name, sum) in lines.into_values() {
        let text = "shares of the wait histogram <= 100 %";
        judge_of(all, name, "AWR3", text, Must::NotAbove, Some((sum, hundred)), 0.0);
    }
}

/// AWR7: a column per second is the column per transaction times the transactions per second.
fn per_transaction(p: &Printed<'_>, all: &mut Vec<Identity>) {
    let by_total = || Some(transactions(p)?.over(p.elapsed()?));
    let known = by_total().or_else(|| p.load("Transactions"));
    let Some(per_s) = known.filter(|rate| rate.value > 0.0) else {
        return;
    };
    let mut tally = Tally::default();
    let mut judge_row = |name: &str, rate: Option<Side>, each: Option<Side>| {
        let Some((rate, each)) = rate.zip(each).filter(|(rate, _)| rate.value > 0.0) else {
            return;
        };
        let (rate, product) = (rate.twice_rounded(), each.twice_rounded().by(per_s));
        let off = product.off + rate.off + rate.share(5000.0);
        tally.count(name, (product.value - rate.value).abs() <= off);
    };
    for (i, row) in p.record.instance.load_profile.iter().enumerate() {
        let at = |column: &str| format!("/instance/load_profile/{i}/{column}");
        let rate = p.printed(&row.per_s, &at("per_s"));
        judge_row(&row.name, rate, p.printed(&row.per_tx, &at("per_tx")));
    }
    for (key, row) in &p.record.instance.stats {
        let at = |column: &str| format!("/instance/stats/{key}/{column}");
        let rate = p.printed(&row.per_s, &at("per_s"));
        judge_row(&row.name, rate, p.printed(&row.per_tx, &at("per_tx")));
    }
    let text = "per second = per transaction x transactions per second, of every row";
    tally.judge(all, "AWR7", text);
}
