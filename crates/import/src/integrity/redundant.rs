//! What an AWR prints twice in other columns and sections: shares against their counts, wholes against their parts,
//! columns against each other.

use super::{Must, Printed, Side, Tally, judge, judge_of};
use assay_measure::record::Identity;
use assay_measure::stats;
use std::collections::BTreeMap;

pub(super) fn identities(p: &Printed<'_>, all: &mut Vec<Identity>) {
    hit(p, all);
    commits(p, all);
    shares(p, all);
    host(p, all);
    both_ways(p, all);
    functions(p, all);
    total_bytes(p, all);
    per_transaction(p, all);
}

/// AWR1: the hit ratio of the cache follows from its gets and reads. Gets past the cache are in no statistic of ours, so
/// it is judged only where there were hardly any.
fn hit(p: &Printed<'_>, all: &mut Vec<Identity>) {
    const POINTS: f64 = 1.0;
    const FEW: f64 = 0.01;
    let rows = &p.record.instance.efficiency;
    let Some(i) = rows.iter().position(|row| row.name == "Buffer Hit %") else {
        return;
    };
    let said = p.side(&rows[i].value_pct, &format!("/instance/efficiency/{i}/value_pct"));
    let found = || {
        let gets = p.total(stats::SESSION_LOGICAL_READS).filter(|gets| gets.value > 0.0)?;
        let reads = p.total(stats::PHYSICAL_READS_CACHE)?;
        let direct = p.total(stats::PHYSICAL_READS_DIRECT)?;
        (direct.value <= FEW * gets.value).then_some(())?;
        let missed = reads.times(100.0).over(gets);
        Some(Side { value: 100.0 - missed.value, off: missed.off })
    };
    let text = "Buffer Hit % = 100 % - physical reads cache / session logical reads";
    judge(all, "AWR1", text, Must::Equal, said.zip(found()), POINTS);
}

/// Transactions of the window.
fn transactions(p: &Printed<'_>) -> Option<Side> {
    Some(p.total(stats::USER_COMMITS)?.plus(p.total(stats::USER_ROLLBACKS)?))
}

/// AWR2: a transaction is a commit or a rollback.
fn commits(p: &Printed<'_>, all: &mut Vec<Identity>) {
    let by_rate = || Some(p.load("Transactions", "per_s")?.by(p.elapsed()?));
    let sides = by_rate().zip(transactions(p));
    // A rollback of nothing is counted by one of the two.
    let allowed = sides.map_or(0.0, |(left, _)| 0.01 * left.value + 5.0);
    let text = "transactions/s x elapsed time = user commits + user rollbacks";
    judge(all, "AWR2", text, Must::Equal, sides, allowed);
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

/// AWR4: times of the host.
fn host(p: &Printed<'_>, all: &mut Vec<Identity>) {
    let of = |name: &str| {
        let at = format!("/os/cpu_s/{name}");
        let figure = p.record.os.cpu_s.get(name)?;
        p.rounding.contains_key(at.as_str()).then(|| p.side(figure, &at)).flatten()
    };
    let used = || {
        let used = of("user")?.plus(of("system")?);
        Some(of("nice").map_or(used, |nice| used.plus(nice)))
    };
    // Interrupts are busy time that no line prints.
    let sides = used().zip(of("busy"));
    let text = "USER_TIME + SYS_TIME + NICE_TIME <= BUSY_TIME";
    let allowed = sides.map_or(0.0, |(_, busy)| 0.01 * busy.value + 1.0);
    judge(all, "AWR4a", text, Must::NotAbove, sides, allowed);
    let mostly = sides.map(|(used, busy)| (busy.times(0.5), used));
    let text = "half of BUSY_TIME <= USER_TIME + SYS_TIME + NICE_TIME";
    judge(all, "AWR4b", text, Must::NotAbove, mostly, allowed);
    let cpus = p.side(&p.record.os.cpus_count, "/os/cpus_count");
    let there = || Some(cpus?.by(p.elapsed()?));
    let spent = || Some(of("busy")?.plus(of("idle_awr")?));
    let sides = spent().zip(there());
    // The two are read at different moments of a snapshot, in genuine reports of busy clusters half a minute apart, and the
    // ticks of a virtual machine are not all counted: four of thirty genuine reports (12.1 to 19c) are 4 to 9 % apart.
    let apart = cpus.map_or(0.0, |cpus| 45.0 * cpus.value);
    let allowed = sides.map_or(0.0, |(_, there)| (0.1 * there.value + 1.0).max(apart));
    let text = "BUSY_TIME + IDLE_TIME = CPUs x elapsed time";
    judge(all, "AWR4c", text, Must::Equal, sides, allowed);
    let text = "IOWAIT_TIME <= IDLE_TIME";
    judge(all, "AWR4d", text, Must::NotAbove, of("iowait").zip(of("idle_awr")), 1.0);
}

/// AWR5: the I/O profile's first column is the sum of the other two.
fn both_ways(p: &Printed<'_>, all: &mut Vec<Identity>) {
    for (i, row) in p.record.instance.io_profile.iter().enumerate() {
        let at = format!("/instance/io_profile/{i}/read_write_per_s");
        let is_printed = p.rounding.contains_key(at.as_str());
        let whole = p.side(&row.read_write_per_s, &at).filter(|_| is_printed);
        let sum = p.io_profile(&row.name).map(|[read, write]| read.plus(write));
        let text = "reads + writes = Read+Write of the I/O profile";
        judge_of(all, &row.name, "AWR5", text, Must::Equal, whole.zip(sum), 0.1);
    }
}

/// AWR6 of the last row: its bytes come from its rate.
fn total_bytes(p: &Printed<'_>, all: &mut Vec<Identity>) {
    for (key, rate, name) in [
        ("iostat_read_bytes", "iostat_read_bytes_per_s", "TOTAL, bytes read"),
        ("iostat_written_bytes", "iostat_write_bytes_per_s", "TOTAL, bytes written"),
    ] {
        let by_rate = || Some(p.alone("TOTAL", rate)?.by(p.elapsed()?));
        let sides = p.alone("TOTAL", key).zip(by_rate());
        let allowed = sides.map_or(0.0, |(left, _)| 0.02 * left.value);
        let text = "bytes = bytes per second x elapsed time";
        judge_of(all, name, "AWR6", text, Must::Equal, sides, allowed);
    }
}

/// AWR6: bytes by function come to the total, in all and per second.
fn functions(p: &Printed<'_>, all: &mut Vec<Identity>) {
    let rows = &p.record.instance.io_functions;
    for (key, what) in
        [("iostat_read_bytes_per_s", "bytes read per second"), ("iostat_write_bytes_per_s", "bytes written per second")]
    {
        let parts = rows.iter().filter_map(|row| p.alone(&row.function, key)).reduce(Side::plus);
        let sides = parts.zip(p.alone("TOTAL", key));
        // Each of them is cut to the column.
        let allowed = sides.map_or(0.0, |(left, _)| 0.01 * left.value);
        judge_of(all, what, "AWR6", "sum over the functions = TOTAL", Must::Equal, sides, allowed);
    }
    for (key, rate, what) in [
        ("read_bytes", "iostat_read_bytes_per_s", "bytes read"),
        ("write_bytes", "iostat_write_bytes_per_s", "bytes written"),
    ] {
        for (i, row) in rows.iter().enumerate() {
            let figure = if key == "read_bytes" { &row.read_bytes } else { &row.write_bytes };
            let total = p.side(figure, &format!("/instance/io_functions/{i}/{key}"));
            let by_rate = || Some(p.alone(&row.function, rate)?.by(p.elapsed()?));
            let sides = total.zip(by_rate());
            let allowed = sides.map_or(0.0, |(left, _)| 0.02 * left.value);
            let name = format!("{}, {what}", row.function);
            judge_of(all, &name, "AWR6", "bytes = bytes per second x elapsed time", Must::Equal, sides, allowed);
        }
    }
}

/// AWR7: a column per second is the column per transaction times the transactions per second.
fn per_transaction(p: &Printed<'_>, all: &mut Vec<Identity>) {
    let by_total = || Some(transactions(p)?.over(p.elapsed()?));
    let known = by_total().or_else(|| p.load("Transactions", "per_s"));
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
