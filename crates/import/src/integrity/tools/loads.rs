//! What pgbench, sysbench, Swingbench, SLOB's scripts, pgio and stress-ng print twice: counts, time and rates; parts and sums.

use super::super::Side as Num;
use super::steps::sum;
use super::{Case, Read, at_most, equal, judge};
use assay_measure::identity::{Rule, Scope};
use assay_measure::record::Identity;

/// The last turn of each session and what clocks cut.
const TURN: f64 = 0.02;
/// Runs from here on have minutes in which nothing began or ended.
const WHOLE_MINUTES_S: f64 = 180.0;

pub(super) fn identities(read: &Read<'_>) -> Vec<Option<Identity>> {
    vec![
        rates(read),
        sums(read),
        failures(read),
        times(read),
        steps(read),
        each_step(read),
        statements(read),
        file_io(read),
        generated(read),
        tables(read),
        spread(read),
        stressors(read),
        cpu_columns(read),
    ]
}

fn rule(id: &'static str, text: &'static str) -> Rule {
    Rule::within(id, Scope::Window, text, 0.0)
}

/// Keys of counts and of their rates.
const COUNTED: [(&str, &str); 9] = [
    ("transactions_count", "transactions_per_s"),
    ("events_count", "ops_per_s"),
    ("queries_count", "queries_per_s"),
    ("read_write_requests_count", "read_write_requests_per_s"),
    ("other_operations_count", "other_operations_per_s"),
    ("deadlocks_count", "deadlocks_per_s"),
    ("ignored_errors_count", "ignored_errors_per_s"),
    ("reconnects_count", "reconnects_per_s"),
    ("events_count", "requests_per_s"),
];

/// TX1: counts over the elapsed time are the rates.
fn rates(read: &Read<'_>) -> Option<Identity> {
    let elapsed = read.elapsed()?;
    let of = |key: &str| read.num("", key);
    // A run by time ends with the transactions that were under way, and pgbench leaves connecting out of the rate.
    let last = of("transaction_us_avg").map_or(0.0, |us| 2e-6 * us.value);
    let connect = of("connect_us").map_or(0.0, |us| 1e-6 * us.value);
    let loose = TURN + (last + connect) / elapsed.value;
    let counted = COUNTED.iter().filter_map(|(count, rate)| {
        let (count, rate, name) = (of(count)?, of(rate)?, (*rate).to_owned());
        (count.value > 0.0 || rate.value > 0.0).then(|| equal(name, rate, count.over(elapsed), loose))
    });
    let mut cases: Vec<Case> = counted.collect();
    for op in &read.record.driver.ops {
        let (count, rate) = (of(&format!("{}_count", op.kind)), of(&format!("{}_per_s", op.kind)));
        if let (Some(count), Some(rate)) = (count, rate) {
            cases.push(equal(op.kind.clone(), rate, count.over(elapsed), loose));
        }
    }
    if let (Some(with), Some(rate)) = (of("transactions_with_connecting_per_s"), of("transactions_per_s")) {
        cases.push(at_most("with connecting".to_owned(), with, rate, 0.0));
        // Connecting takes next to nothing of a run that says anything.
        cases.push(equal("with connecting".to_owned(), with, rate, 0.2));
    }
    // A minute at a time: the fullest has at least the mean, if the run has whole minutes.
    let most = of("transactions_per_min_max").filter(|_| elapsed.value >= WHOLE_MINUTES_S);
    let most = most.zip(of("transactions_per_s"));
    cases.extend(most.map(|(most, rate)| at_most("the fullest minute".to_owned(), rate.times(60.0), most, 0.1)));
    judge(rule("TX1", "counts / elapsed time = their rates"), cases)
}

/// TX2: kinds of transactions add up to all, kinds of queries to all queries.
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
        cases.extend(parts.zip(of(whole)).map(|(parts, whole)| equal(whole_name(suffix), parts, whole, 0.001)));
    }
    cases.extend(queries(read));
    let same = of("events_count").zip(of("transactions_count"));
    cases.extend(same.map(|(events, all)| equal("events".to_owned(), events, all, 0.0)));
    if let (Some(mean), Some(events)) = (of("session_events_count_avg"), of("events_count")) {
        let all = mean.times(read.record.run.sessions as f64);
        cases.push(equal("events of a thread".to_owned(), all, events, 0.001));
    }
    let (clients, each) = (of("sessions_count"), of("transactions_per_client_count"));
    if let (Some(clients), Some(each), Some(all)) = (clients, each, of("transactions_count")) {
        cases.push(at_most("transactions".to_owned(), all, clients.by(each), 0.0));
        if of("failed_transactions_count").is_none_or(|failed| failed.value == 0.0) {
            cases.push(equal("transactions".to_owned(), all, clients.by(each), 0.0));
        }
    }
    // New orders are transactions.
    let orders = of("new_orders_per_min").zip(of("transactions_per_s"));
    cases.extend(orders.map(|(orders, all)| at_most("new orders".to_owned(), orders, all.times(60.0), 0.0)));
    judge(rule("TX2", "kinds of transactions and of queries add up to all"), cases)
}

/// Kinds of queries and their wholes.
fn queries(read: &Read<'_>) -> Vec<Case> {
    let of = |key: &str| read.num("", key);
    let mut cases = Vec::new();
    let sum = |parts: &[&str]| -> Option<Num> {
        let parts: Option<Vec<Num>> = parts.iter().map(|part| of(&format!("queries_{part}_count"))).collect();
        parts?.into_iter().reduce(Num::plus)
    };
    for (parts, whole) in [
        (&["read", "write", "other"][..], "queries_total_count"),
        (&["read", "write", "other"], "queries_count"),
        (&["read", "write"], "read_write_requests_count"),
        (&["other"], "other_operations_count"),
    ] {
        cases.extend(sum(parts).zip(of(whole)).map(|(parts, all)| equal(whole.to_owned(), parts, all, 0.0)));
    }
    cases
}

fn whole_name(suffix: &str) -> String {
    format!("all kinds, {suffix}")
}

/// TX3: failures by their reasons add up, and nothing happens more often than there are transactions.
fn failures(read: &Read<'_>) -> Option<Identity> {
    let of = |key: &str| read.num("", key);
    let done = of("transactions_count")?;
    let failed = of("failed_transactions_count");
    let mut cases = Vec::new();
    let kinds = of("serialization_failures_count").zip(of("deadlock_failures_count"));
    if let (Some((one, other)), Some(failed)) = (kinds, failed) {
        cases.push(equal("failed".to_owned(), one.plus(other), failed, 0.0));
    }
    let all = failed.map_or(done, |failed| done.plus(failed));
    for key in ["transactions_retried_count", "transactions_late_count"] {
        cases.extend(of(key).map(|part| at_most(key.to_owned(), part, all, 0.0)));
    }
    let retries = of("transactions_retried_count").zip(of("retries_count"));
    cases.extend(retries.map(|(some, all)| at_most("retried".to_owned(), some, all, 0.0)));
    for (key, whole) in [
        ("failed_count", failed),
        ("retried_count", of("transactions_retried_count")),
        ("retries_count", of("retries_count")),
    ] {
        let steps = sum(&read.steps(key, ""));
        cases.extend(steps.zip(whole).map(|(steps, whole)| at_most(key.to_owned(), steps, whole, 0.0)));
    }
    let statements = read.scopes("statement_failures_count");
    let statements = statements.iter().filter_map(|scope| read.num(scope, "statement_failures_count"));
    let statements = statements.reduce(Num::plus);
    cases.extend(statements.zip(failed).map(|(all, failed)| equal("of statements".to_owned(), all, failed, 0.0)));
    judge(rule("TX3", "failures add up and are no more than transactions"), cases)
}

/// TX4: the mean time of an operation times their number is the time of all, which the sessions had.
fn times(read: &Read<'_>) -> Option<Identity> {
    let sessions = read.record.run.sessions as f64;
    let mut cases = Vec::new();
    for op in &read.record.driver.ops {
        let of = |what: &str| read.num("", &format!("{}_{what}", op.kind));
        let Some(all) = of("us_sum") else {
            continue;
        };
        let count = of("count").or_else(|| read.num("", "events_count"));
        cases.extend(of("us_avg").zip(count).map(|(mean, count)| equal(op.kind.clone(), all, mean.by(count), 0.001)));
        if let Some(elapsed) = read.elapsed().filter(|_| sessions > 0.0) {
            let had = elapsed.times(1e6 * sessions);
            cases.push(at_most(format!("{} of all sessions", op.kind), all, had, TURN));
        }
        let each = read.num("", "session_execution_s_avg").filter(|_| sessions > 0.0);
        cases.extend(each.map(|each| equal(op.kind.clone(), all, each.times(1e6 * sessions), 0.002)));
    }
    judge(rule("TX4", "mean time x count = time of all <= sessions x elapsed time"), cases)
}

/// TX5: the steps of the series come to the whole.
fn steps(read: &Read<'_>) -> Option<Identity> {
    let elapsed = read.elapsed()?.value;
    let mut cases = Vec::new();
    for key in [
        "transactions_per_s",
        "ops_per_s",
        "queries_per_s",
        "file_read_mib_per_s",
        "file_write_mib_per_s",
        "fsyncs_per_s",
    ] {
        let steps = if key == "ops_per_s" { "events_per_s" } else { key };
        // Those who synchronise at the end do it after the last step.
        let loose = if key == "fsyncs_per_s" { 0.15 } else { 0.03 };
        let both = read.mean_rate(steps, elapsed).zip(read.num("", key));
        cases.extend(both.map(|(mean, whole)| equal(key.to_owned(), mean, whole, loose)));
    }
    if let Some(mean) = mean_time(read, elapsed)
        && let Some(whole) = read.num("", "transaction_us_avg")
    {
        cases.push(equal("transaction_us_avg".to_owned(), mean, whole, 0.05));
    }
    judge(rule("TX5", "steps of the series come to the whole"), cases)
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
        let there = Num { value: sessions, off: 0.0 };
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
    let case = at_most("statements".to_owned(), all, whole, TURN);
    judge(rule("TX7", "time of the statements <= time of the transaction"), vec![case])
}

/// TX8: requests times their size are bytes, of files and of memory.
fn file_io(read: &Read<'_>) -> Option<Identity> {
    let of = |key: &str| read.num("", key);
    let mut cases = Vec::new();
    // The size of a block is a setting: where it is not printed, the ways must agree on one.
    let size = |rate: &str, bytes: &str| {
        let (rate, bytes) = (of(rate)?, of(bytes)?);
        (rate.value > 0.0).then(|| bytes.over(rate))
    };
    let reads = size("read_io_requests_per_s", "file_read_mib_per_s");
    let writes = size("write_io_requests_per_s", "file_write_mib_per_s");
    cases.extend(reads.zip(writes).map(|(a, b)| equal("MiB a request".to_owned(), a, b, 0.001)));
    let is_power = |size: Num| {
        let near = 2_f64.powf(size.value.log2().round());
        let near = Num { value: near, off: 0.0 };
        equal("MiB a request".to_owned(), size, near, 0.005)
    };
    for found in [reads, writes, size("ops_per_s", "memory_mib_per_s"), size("requests_per_s", "file_mib_per_s")] {
        cases.extend(found.filter(|size| size.value > 0.0).map(is_power));
    }
    judge(rule("TX8", "requests x block size (a power of two) = bytes"), cases)
}

/// LOAD1: phases of a load add up, and rows over time are the rate.
fn generated(read: &Read<'_>) -> Option<Identity> {
    let of = |key: &str| read.num("", key);
    let mut cases = Vec::new();
    let parts = ["load_connection_s", "load_data_generation_s", "load_ddl_s"];
    let parts: Option<Vec<Num>> = parts.iter().map(|key| of(key)).collect();
    let parts = parts.unwrap_or_default().into_iter().reduce(Num::plus);
    cases.extend(parts.zip(of("load_total_s")).map(|(parts, all)| equal("phases".to_owned(), parts, all, 0.01)));
    let rows = of("load_rows_count").zip(of("load_data_generation_s").filter(|time| time.value > 0.0));
    if let (Some((rows, time)), Some(rate)) = (rows, of("load_rows_per_s")) {
        cases.push(equal("rows".to_owned(), rate, rows.over(time), TURN));
    }
    let batches = of("load_batches_count").zip(of("load_rows_count"));
    cases.extend(batches.map(|(batches, rows)| at_most("batches".to_owned(), batches, rows, 0.0)));
    let commits = of("load_commits_count").zip(of("load_batches_count"));
    cases.extend(commits.map(|(commits, batches)| at_most("commits".to_owned(), commits, batches, 0.0)));
    // SLOB's log: the whole has every phase.
    let whole = read.scopes("load_phase_s").into_iter().find(|scope| scope.contains("complete"));
    let whole = whole.and_then(|scope| read.num(scope, "load_phase_s"));
    let phases = read.scopes("load_phase_s").into_iter().filter(|scope| !scope.contains("complete"));
    let phases = phases.filter_map(|scope| read.num(scope, "load_phase_s")).reduce(Num::plus);
    cases.extend(phases.zip(whole).map(|(phases, whole)| at_most("phases".to_owned(), phases, whole, 0.02)));
    judge(rule("LOAD1", "phases of a load add up; rows / time = rows per second"), cases)
}

/// SLOB1: the columns of a SLOB table: what reads is at most what is read, time is at most what sessions have.
fn tables(read: &Read<'_>) -> Option<Identity> {
    if !["slob", "pgio"].contains(&read.info.tool.as_str()) {
        return None;
    }
    let of = |key: &str| read.num("", key);
    let mut cases = Vec::new();
    let mut most = |name: &str, whole: &str, factor: f64| {
        let both = of(name).zip(of(whole));
        cases.extend(both.map(|(part, whole)| at_most(name.to_owned(), part, whole.times(factor), TURN)));
    };
    most("db_cpu_s_per_s", "db_time_s_per_s", 1.0);
    most("db_time_s_per_s", "sessions_count", 1.0);
    if let (Some(after), Some(before), Some(rate), Some(time)) = (
        read.num("after", "pgio_blocks_hit_count"),
        read.num("before", "pgio_blocks_hit_count"),
        of("cache_hits_blocks_per_s"),
        read.elapsed(),
    ) {
        let moved = after.plus(before.times(-1.0));
        cases.push(equal("blocks hit".to_owned(), rate, moved.over(time), TURN));
    }
    judge(rule("SLOB1", "DB CPU <= DB time <= sessions; increase of blks_hit / run time = cache hits/s"), cases)
}

/// STD1: a standard deviation that values between these extremes around this mean can have (Bhatia and Davis, Amer. Math.
/// Monthly 107, 2000).
fn spread(read: &Read<'_>) -> Option<Identity> {
    let mut cases = Vec::new();
    for value in &read.info.values {
        let Some(stem) = value.key.strip_suffix("_stddev") else {
            continue;
        };
        let of = |what: &str| read.num(&value.scope, &format!("{stem}_{what}"));
        let (Some(min), Some(avg), Some(max), Some(found)) = (of("min"), of("avg"), of("max"), of("stddev")) else {
            continue;
        };
        let above = (max.value + max.off - avg.value + avg.off).max(0.0);
        let below = (avg.value + avg.off - min.value + min.off).max(0.0);
        let most = Num { value: (above * below).sqrt(), off: 0.0 };
        // Of a sample of two it is 1.41 times that of the population.
        cases.push(at_most(format!("{} {stem}", value.scope), found, most, 0.42));
    }
    judge(rule("STD1", "standard deviation <= sqrt((max - mean)(mean - min))"), cases)
}

/// CPU2: CPU used per instance is that of all over a whole number of instances.
fn stressors(read: &Read<'_>) -> Option<Identity> {
    let mut cases = Vec::new();
    for scope in read.scopes("stress_cpu_per_instance_pct") {
        let of = |key: &str| read.num(scope, key);
        let used = of("stress_user_s").zip(of("stress_system_s"));
        let (Some((user, system)), Some(real), Some(each)) =
            (used, of("stress_real_s"), of("stress_cpu_per_instance_pct"))
        else {
            continue;
        };
        if each.value <= 0.0 || real.value <= 0.0 {
            continue;
        }
        let instances = user.plus(system).times(100.0).over(real).over(each);
        let whole = Num { value: instances.value.round().max(1.0), off: 0.0 };
        cases.push(equal(scope.to_owned(), instances, whole, 0.02));
    }
    judge(rule("CPU2", "CPU time / wall time / CPU used per instance = a whole number of instances"), cases)
}

/// HOST1: where the time of the host's CPUs went is all of it, in each step.
fn cpu_columns(read: &Read<'_>) -> Option<Identity> {
    const COLUMNS: [&str; 9] = [
        "host_user_pct",
        "host_nice_pct",
        "host_system_pct",
        "host_iowait_pct",
        "host_irq_pct",
        "host_softirq_pct",
        "host_steal_pct",
        "host_guest_pct",
        "host_guest_nice_pct",
    ];
    let hundred = Num { value: 100.0, off: 0.0 };
    let cases = read.scopes("host_idle_pct").into_iter().filter_map(|scope| {
        let used = COLUMNS.iter().filter_map(|key| read.num(scope, key));
        let all = used.reduce(Num::plus)?.plus(read.num(scope, "host_idle_pct")?);
        Some(equal(scope.to_owned(), all, hundred, 0.005))
    });
    judge(rule("HOST1", "CPU columns of a step sum to 100 %"), cases.collect())
}
