//! What pgbench, sysbench and SLOB's scripts print twice, as far as no line of `printed` can say it.

use super::super::Side as Num;
use super::{Read, at_most, equal, judge, rule};
use assay_measure::record::Identity;

pub(super) fn identities(read: &Read<'_>) -> Vec<Option<Identity>> {
    vec![sums(read), steps(read), each_step(read), statements(read), generated(read), shares(read)]
}

/// TX2: kinds of transactions add up to all.
fn sums(read: &Read<'_>) -> Option<Identity> {
    let of = |key: &str| read.num("", key);
    let mut cases = Vec::new();
    let kinds = || read.record.driver.ops.iter().filter(|op| !["transaction", "event"].contains(&op.kind.as_str()));
    for (suffix, whole) in [
        ("count", "transactions_count"),
        ("per_s", "transactions_per_s"),
        ("failed_count", "transactions_failed_count"),
    ] {
        let parts: Option<Vec<Num>> = kinds().map(|op| of(&format!("{}_{suffix}", op.kind))).collect();
        let parts = parts.unwrap_or_default().into_iter().reduce(Num::plus);
        let name = format!("all kinds, {suffix}");
        cases.extend(parts.zip(of(whole)).map(|(parts, whole)| equal(name, parts, whole, 0.001)));
    }
    judge(rule("TX2", "kinds of transactions add up to all"), cases)
}

/// TX5: the mean time of the steps comes to that of the whole.
fn steps(read: &Read<'_>) -> Option<Identity> {
    let mean = mean_time(read, read.elapsed()?.value)?;
    let case = equal("transaction_us_avg".to_owned(), mean, read.num("", "transaction_us_avg")?, 0.05);
    judge(rule("TX5", "steps of the series come to the whole"), vec![case])
}

/// Mean time of a transaction over the steps, by their transactions.
fn mean_time(read: &Read<'_>, elapsed: f64) -> Option<Num> {
    read.mean_rate("transactions_per_s", elapsed)?;
    let (rates, times) = (read.steps("transactions_per_s", ""), read.steps("transaction_us_avg", ""));
    (rates.len() == times.len()).then_some(())?;
    let weight: f64 = rates.iter().map(|rate| rate.num.value * rate.length_s).sum();
    let weighed = rates
        .iter()
        .zip(&times)
        .map(|(rate, time)| time.num.times(rate.num.value * rate.length_s / weight.max(f64::MIN_POSITIVE)));
    weighed.reduce(Num::plus)
}

/// TX6: a closed loop in each step: sessions that never wait.
fn each_step(read: &Read<'_>) -> Option<Identity> {
    const LOOSE: f64 = 0.15;
    let sessions = read.record.run.sessions as f64;
    if read.is_open().is_some() || read.info.tool != "pgbench" {
        return None;
    }
    let (rates, times) = (read.steps("transactions_per_s", ""), read.steps("transaction_us_avg", ""));
    let pairs = rates.iter().zip(&times).filter(|(rate, time)| rate.end_s == time.end_s);
    let cases = pairs.map(|(rate, time)| {
        let found = rate.num.by(time.num).times(1e-6);
        let there = Num::exact(sessions);
        let name = format!("{} s", rate.end_s);
        // A step shorter than a few transactions holds parts of others.
        let part = 2e-6 * time.num.value / rate.length_s;
        let mut case = equal(name, found, there, LOOSE + part);
        if rate.num.value == 0.0 {
            case.lhs = Err("no transaction ended".to_owned());
        }
        case
    });
    judge(rule("TX6", "rate x mean time = sessions, of each step"), cases.collect())
}

/// TX7: the statements of a transaction take no longer than it.
fn statements(read: &Read<'_>) -> Option<Identity> {
    let whole = read.num("", "transaction_us_avg")?;
    let scopes = read.scopes("statement_us_avg");
    let is_one = scopes.iter().filter(|scope| scope.starts_with("1:")).count() == 1;
    let retried = read.num("", "retries_count").is_some_and(|count| count.value > 0.0);
    if !is_one || retried || scopes.iter().any(|scope| !scope.starts_with(|c: char| c.is_ascii_digit())) {
        return None;
    }
    let all = scopes.iter().filter_map(|scope| read.num(scope, "statement_us_avg"));
    let all = all.reduce(Num::plus)?;
    let case = at_most("statements".to_owned(), all, whole, 0.02);
    judge(rule("TX7", "time of the statements <= time of the transaction"), vec![case])
}

/// TX9: shares of time of all procedures are those of their times.
fn shares(read: &Read<'_>) -> Option<Identity> {
    let shares = read.ending("_time_pct").filter_map(|value| value.key.strip_suffix("_time_pct"));
    let both = |op: &str| read.num("", &format!("{op}_time_pct")).zip(read.num("", &format!("{op}_us_sum")));
    let all: Vec<(&str, (Num, Num))> = shares.filter_map(|op| Some((op, both(op)?))).collect();
    let (share, sum) = all.iter().map(|(_, both)| *both).reduce(|a, b| (a.0.plus(b.0), a.1.plus(b.1)))?;
    let cases = all.iter().filter(|_| all.len() > 1 && share.value > 0.0);
    // Means over the sessions are printed, whose own shares differ.
    let cases = cases.map(|(op, (of, us))| equal((*op).to_owned(), *us, of.by(sum.over(share)), 0.05)).collect();
    judge(rule("TX9", "shares of time = shares of the sums"), cases)
}

/// LOAD1: phases of SLOB's log add up: the whole has every phase.
fn generated(read: &Read<'_>) -> Option<Identity> {
    let whole = read.scopes("load_phase_s").into_iter().find(|scope| scope.contains("complete"))?;
    let phases = read.scopes("load_phase_s").into_iter().filter(|scope| !scope.contains("complete"));
    let phases = phases.filter_map(|scope| read.num(scope, "load_phase_s")).reduce(Num::plus)?;
    let case = at_most("phases".to_owned(), phases, read.num(whole, "load_phase_s")?, 0.02);
    judge(rule("LOAD1", "phases of a load add up"), vec![case])
}
