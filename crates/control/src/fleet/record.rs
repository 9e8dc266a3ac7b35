//! What the record of a fleet's run says of its hosts.

use super::controller::{Gathered, HostResult};
use super::merge::{HostPart, Piece, merged, tolerance_ns};
use assay_measure::clock::Ns;
use assay_measure::fleet::{Fleet, FleetHost, LATE, LOST, UNCOUNTED};
use assay_measure::histogram::Histogram;
use assay_measure::record::Figure;
use assay_measure::snapshot::{Fact, RunData, Verdict};

const MS: f64 = 1e6;
const S: f64 = 1e9;

/// A run of several hosts as one, and what is said of them.
#[derive(Debug, Default)]
pub struct FleetRun {
    /// As of one host.
    pub data: RunData,
    /// One row for each host.
    pub fleet: Fleet,
    /// Why it is not the run that was asked for: hosts are missing, or they did not start together.
    pub is_partial: bool,
}

/// Adds what the hosts measured; `take` is called with each piece of the series. Starts may be `max_skew_ns` apart;
/// without a word on it 10 ms, or a hundredth of the window.
#[must_use]
pub fn of(gathered: &Gathered, max_skew_ns: Option<Ns>, take: &mut dyn FnMut(Piece<'_>)) -> FleetRun {
    let measured: Vec<&HostResult> = gathered.hosts.iter().filter(|host| host.data.is_some()).collect();
    let parts: Vec<HostPart<'_>> = measured
        .iter()
        .filter_map(|host| {
            let data = host.data.as_ref()?;
            Some(HostPart { name: &host.hello.name, data, series: host.series.as_deref() })
        })
        .collect();
    let mut data = merged(&parts, take);
    data.run_id.clone_from(&gathered.plan.spec.run);
    data.seed = gathered.plan.spec.seed;
    let fleet = fleet(gathered, &measured);
    data.engine_facts.extend(read_once(gathered));
    data.warnings.extend(unread(gathered));
    if gathered.strangers > 0 {
        data.warnings.push(format!(
            "{} messages on the fleet's subjects were none of assay's and were left out: somebody else uses them.",
            gathered.strangers
        ));
    }
    let remarks = measured.iter().filter(|host| !host.remark.is_empty());
    data.warnings.extend(remarks.map(|host| format!("{}: {}", host.hello.name, host.remark)));
    let window_ns = data.end.at_ns.saturating_sub(data.begin.at_ns);
    let is_partial = judge(&mut data, &fleet, max_skew_ns.unwrap_or_else(|| tolerance_ns(window_ns)));
    FleetRun { data, fleet, is_partial }
}

/// The hosts that read what a server counts, if this is a run on servers.
fn readers(gathered: &Gathered) -> impl Iterator<Item = &HostResult> {
    gathered.hosts.iter().filter(|host| gathered.plan.readers.contains(&host.hello.instance))
}

fn read_once(gathered: &Gathered) -> Option<Fact> {
    let names: Vec<&str> = readers(gathered).map(|host| host.hello.name.as_str()).collect();
    let told = || Fact::new("server_read_by", format!("{}, once for all hosts on a server", names.join(", ")));
    (!names.is_empty()).then(told)
}

fn unread(gathered: &Gathered) -> impl Iterator<Item = String> {
    readers(gathered).filter(|host| host.data.is_none()).map(|host| {
        let name = &host.hello.name;
        format!("{name} read what the server counts for all hosts, and is lost: figures of that server are missing.")
    })
}

/// Puts into the verdict what is wrong with the fleet; whether hosts are missing.
fn judge(data: &mut RunData, fleet: &Fleet, max_skew_ns: Ns) -> bool {
    let limit_ms = max_skew_ns as f64 / MS;
    if let Some(skew_ms) = fleet.start_skew_ms.value().filter(|skew_ms| *skew_ms > limit_ms) {
        let reason = format!(
            "the hosts did not start together: {skew_ms:.1} ms apart, and {limit_ms:.0} ms are allowed (--max-skew)"
        );
        match &mut data.verdict {
            Verdict::Invalid(reasons) => reasons.push(reason),
            other => *other = Verdict::Invalid(vec![reason]),
        }
    }
    let missing: Vec<String> = (fleet.hosts.iter())
        .filter(|host| host.state == LOST)
        .map(|host| format!("{}: {}", host.name, host.note))
        .collect();
    if missing.is_empty() {
        return false;
    }
    let Fleet { measured_count, hosts_count, .. } = fleet;
    let partial = format!("partial: {measured_count} of {hosts_count} hosts ({})", missing.join("; "));
    match &mut data.verdict {
        Verdict::Invalid(reasons) => reasons.insert(0, partial),
        Verdict::Incomplete(reason) => *reason = format!("{partial}; {reason}"),
        complete @ Verdict::Complete => *complete = Verdict::Incomplete(partial),
    }
    true
}

/// Instants of a host, s after the one agreed on.
struct Instants {
    start_s: f64,
    begin_s: f64,
    end_s: f64,
}

fn instants(host: &HostResult, start_ns: u64) -> Option<Instants> {
    let data = host.data.as_ref()?;
    let gate_s = (host.gate_ns? as f64 - start_ns as f64) / S;
    let began_ns = data.began_ns?;
    let after = |ns: u64| gate_s + ns as f64 / S;
    Some(Instants { start_s: after(began_ns), begin_s: after(data.begin.at_ns), end_s: after(data.end.at_ns) })
}

fn fleet(gathered: &Gathered, measured: &[&HostResult]) -> Fleet {
    let start_ns = gathered.plan.start_ns;
    let known: Vec<Instants> = measured.iter().filter_map(|host| instants(host, start_ns)).collect();
    let over = |of: fn(&Instants) -> f64, fold: fn(f64, f64) -> f64| {
        let found = known.iter().map(of).reduce(fold);
        Figure::known(found.map(Figure::decimal), "no host measured")
    };
    let [first, last] = [f64::min, f64::max].map(|fold| over(|at| at.start_s, fold));
    let skew_s = last.value().zip(first.value()).map(|(last, first)| Figure::decimal((last - first) * 1e3));
    let mut control = Histogram::default();
    gathered.hosts.iter().for_each(|host| control.merge(&host.control));
    let mut rates: Vec<f64> = measured.iter().filter_map(|host| rate(host).value()).collect();
    rates.sort_unstable_by(f64::total_cmp);
    let median = rates.get(rates.len() / 2).copied().unwrap_or(0.0);
    let mut fleet = Fleet {
        hosts_count: gathered.hosts.len() as u64,
        measured_count: measured.len() as u64,
        start_skew_ms: Figure::known(skew_s, "no host measured"),
        start_late_ms: last.scaled(1e3),
        begin_s: over(|at| at.begin_s, f64::max),
        end_s: over(|at| at.end_s, f64::min),
        first_begin_s: over(|at| at.begin_s, f64::min),
        last_end_s: over(|at| at.end_s, f64::max),
        control_ms_p99: p99_ms(&control),
        gather_ms: Figure::decimal(gathered.gather_ns as f64 / MS),
        hosts: gathered.hosts.iter().map(|host| row(host, start_ns, median)).collect(),
    };
    fleet.oddest_first();
    fleet
}

fn p99_ms(times: &Histogram) -> Figure {
    // A minute has sixty beats: of few, the largest stands for the percentile.
    let p99 = times.percentile_ns(0.99).or(times.max_ns());
    Figure::known(p99.map(|ns| Figure::decimal(ns as f64 / MS)), "no beat was answered")
}

fn rate(host: &HostResult) -> Figure {
    let Some(data) = &host.data else {
        return Figure::na(LOST);
    };
    if data.end.driver.ops.is_empty() {
        return Figure::na(UNCOUNTED);
    }
    let ops = data.end.driver.ops_ended().saturating_sub(data.begin.driver.ops_ended());
    let elapsed_s = data.end.at_ns.saturating_sub(data.begin.at_ns) as f64 / S;
    Figure::Count(ops).per(elapsed_s, "no time passed")
}

fn row(host: &HostResult, start_ns: u64, median: f64) -> FleetHost {
    let rate = rate(host);
    let service = host.data.as_ref().and_then(|data| {
        let window = data.end.driver.difference(&data.begin.driver);
        window.service().percentile_ns(0.99)
    });
    let start = instants(host, start_ns);
    let why = match (&host.data, rate.reason()) {
        (Some(_), Some(UNCOUNTED)) => UNCOUNTED,
        (Some(_), _) => "too few operations",
        (None, _) => LOST,
    };
    let note = match (&host.data, host.lost.as_str()) {
        (Some(_), _) => host.dir.clone(),
        (None, "") => "nothing is kept of it".to_owned(),
        (None, why) => why.to_owned(),
    };
    FleetHost {
        name: host.hello.name.clone(),
        state: match (host.data.is_some(), host.late_s_max) {
            (false, _) => LOST.to_owned(),
            (true, 0) => "measured".to_owned(),
            (true, late_s) => format!("{LATE} {late_s} s"),
        },
        sessions_count: host.data.as_ref().map_or(0, |data| data.sessions),
        of_median_pct: rate.scaled(100.0).per(median, "no median"),
        ops_per_s: rate,
        op_us_p99: Figure::known(service.map(|ns| Figure::decimal(ns as f64 / 1e3)), why),
        start_ms: Figure::known(start.map(|at| Figure::decimal(at.start_s * 1e3)), why),
        clock_ms: Figure::decimal(host.offset.wall_ns as f64 / MS),
        clock_bound_ms: Figure::decimal(host.offset.bound_ns as f64 / MS),
        control_ms_p99: p99_ms(&host.control),
        note,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::message::Hello;
    use assay_measure::snapshot::Snapshot;

    fn host(name: &str, gate_ns: u64, data: Option<RunData>) -> HostResult {
        let hello = Hello { name: name.to_owned(), ..Hello::default() };
        let lost = if data.is_some() { String::new() } else { "nothing heard for 10 s".to_owned() };
        HostResult { hello, gate_ns: Some(gate_ns), lost, data, ..HostResult::default() }
    }

    fn data(end_s: u64) -> RunData {
        let end = Snapshot { at_ns: end_s * 1_000_000_000, ..Snapshot::default() };
        RunData { sessions: 1, end: end.clone(), drained: end, began_ns: Some(0), ..RunData::default() }
    }

    fn gathered(hosts: Vec<HostResult>) -> Gathered {
        let mut gathered = Gathered { hosts, ..Gathered::default() };
        gathered.plan.start_ns = 1_000_000_000;
        gathered
    }

    #[test]
    fn a_lost_host_is_a_row_with_its_reason_and_the_rest_is_partial() {
        let all = gathered(vec![
            host("a", 1_000_000_000, Some(data(5))),
            host("b", 1_002_000_000, Some(data(5))),
            host("c", 1_000_000_000, None),
        ]);
        let run = of(&all, None, &mut |_| {});
        assert!(run.is_partial);
        let Verdict::Incomplete(reason) = &run.data.verdict else { panic!("{:?}", run.data.verdict) };
        assert_eq!(reason, "partial: 2 of 3 hosts (c: nothing heard for 10 s)");
        let first = &run.fleet.hosts[0];
        assert_eq!((first.name.as_str(), first.state.as_str()), ("c", "lost"));
        assert_eq!(first.ops_per_s, Figure::na("lost"));
        assert_eq!(run.data.sessions, 2, "its load is nobody else's");
        let near = |figure: &Figure, value: f64| (figure.value().expect("known") - value).abs() < 1e-9;
        assert!(near(&run.fleet.start_skew_ms, 2.0), "{:?}", run.fleet.start_skew_ms);
        assert!(near(&run.fleet.begin_s, 0.002) && near(&run.fleet.first_begin_s, 0.0));
        assert!(near(&run.fleet.end_s, 5.0) && near(&run.fleet.last_end_s, 5.002));
    }

    #[test]
    fn a_server_is_read_once_and_its_reader_is_named() {
        let mut all = gathered(vec![host("a", 0, Some(data(5))), host("b", 0, Some(data(5)))]);
        for host in &mut all.hosts {
            host.hello.instance = format!("{}1", host.hello.name);
        }
        let facts = |all: &Gathered| of(all, None, &mut |_| {}).data.engine_facts;
        assert_eq!(facts(&all), [], "each host counts for itself");
        all.plan.readers = vec!["b1".to_owned()];
        assert_eq!(facts(&all), [Fact::new("server_read_by", "b, once for all hosts on a server")]);
        all.hosts[1].data = None;
        let warnings = of(&all, None, &mut |_| {}).data.warnings;
        assert!(warnings[0].starts_with("b read what the server counts"), "{warnings:?}");
    }

    #[test]
    fn hosts_that_did_not_start_together_measured_no_run() {
        let all = gathered(vec![host("a", 1_000_000_000, Some(data(5))), host("b", 1_060_000_000, Some(data(5)))]);
        let run = of(&all, None, &mut |_| {});
        let Verdict::Invalid(reasons) = &run.data.verdict else { panic!("{:?}", run.data.verdict) };
        assert!(reasons[0].starts_with("the hosts did not start together: 60.0 ms apart, and 50 ms"), "{reasons:?}");
    }
}
