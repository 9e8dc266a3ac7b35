//! The record of several platforms: its kind, and how it follows from what the hosts gave.

use super::Gave;
use super::info::{FactRow, FoundRow, HostRow, PlatformsInfo, SpreadRow, who};
use super::odd::{RULE, oddness};
use super::page;
use super::sums::{self, Timed};
use crate::findings::{BUSY, MOST_BUSY_PCT};
use crate::info::{NeedRow, PlatformInfo};
use crate::needs::{FAIL, WARN, named};
use assay_measure::clock::Ns;
use assay_measure::figures::{Group, Metric, of_layer};
use assay_measure::kind::{Finding, Kind, OwnKind};
use assay_measure::record::metric::{Better, plain};
use assay_measure::record::{Advice, Figure, Record};
use assay_measure::rule::{Judges, Rule};
use assay_measure::snapshot::RunData;
use assay_measure::statistics::median;
use assay_measure::units::{many, six};
use serde_json::Value;

const OWN: OwnKind<PlatformsInfo> = OwnKind {
    judges: RULES,
    conditions: |info| {
        vec![
            ("plan", info.plan.clone(), Finding::Tolerable),
            ("hosts", info.measured_count.to_string(), Finding::Tolerable),
        ]
    },
    ..OwnKind::new(metrics, page::render, page::headline)
};

/// The kind of its records.
pub const KIND: &dyn Kind = &OWN;

const RULES: &Judges<PlatformsInfo> = &[(BUSY, busy), (UNLIKE, unlike)];

const UNLIKE: Rule = Rule {
    id: "B9",
    title: "A host is not like the others",
    changes_figures: false,
    fires_when: || format!("A host that was measured with others is odd in a need. {}", RULE.trim_end_matches('.')),
    why: "A database that is spread over the hosts goes at the pace of the slowest.",
    what_to_do: "Compare its facts, and its own record with that of another host (`assay compare`); repeat the run to see whether it stays.",
    cannot_judge_when: "Fewer than three hosts have the figure: then the rule is silent.",
    source: "Decided here.",
};

fn unlike(_: &Record, info: &PlatformsInfo) -> Option<Advice> {
    let told: Vec<String> = info.needs.iter().filter(|row| !row.odd.is_empty()).map(SpreadRow::told).collect();
    (!told.is_empty())
        .then(|| UNLIKE.advise(false, format!("{}.", told.join("; ")), &[("odd_count", info.odd_count as f64)]))
}

fn busy(_: &Record, info: &PlatformsInfo) -> Option<Advice> {
    let is_busy = |row: &&HostRow| row.busy_before_pct.value().is_some_and(|pct| pct > MOST_BUSY_PCT);
    let names: Vec<&str> = info.hosts.iter().filter(is_busy).map(|row| row.name.as_str()).collect();
    let text = || {
        format!(
            "Before the first test other processes kept the CPUs busy on these hosts: {}. Their figures are of what was left.",
            who(&names, info.measured_count)
        )
    };
    (!names.is_empty()).then(|| BUSY.advise(true, text(), &[("busy_hosts_count", names.len() as f64)]))
}

impl SpreadRow {
    /// The odd hosts and what the others have.
    pub(super) fn told(&self) -> String {
        let middle = self
            .median
            .value()
            .map_or_else(String::new, |value| format!(", at the median {} {}", six(value.round()), self.unit));
        format!("{}: {}{middle}", self.need, self.odd)
    }
}

/// Each need at the median host and at the worst, and the sums.
fn metrics(info: &PlatformsInfo) -> Vec<Metric> {
    let needs = info.needs.iter().flat_map(|row| {
        let of = |value: &Figure| named(&row.need, &row.unit, row.is_higher_better, value);
        let worst = Metric { scope: "worst host".to_owned(), group: Group::Host, is_primary: false, ..of(row.worst()) };
        [of(&row.median), worst]
    });
    let sums = info.sums.iter().map(|row| Metric {
        scope: row.scope.clone(),
        ..plain(
            Group::Storage,
            &row.key,
            &format!("all hosts, {}", row.what),
            &row.unit,
            Better::Higher,
            row.sum.clone(),
        )
    });
    needs.chain(sums).chain(of_layer("engine", info)).collect()
}

/// A host of the run.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it gave ([`super::data`]), or why it gave nothing.
    pub part: Result<&'a Value, &'a str>,
    /// Its gate by the controller's clock, ns.
    pub gate_ns: Option<Ns>,
}

/// A host that gave its record.
struct Host<'a> {
    name: &'a str,
    gate_ns: Option<Ns>,
    gave: Gave,
    own: PlatformInfo,
}

impl Host<'_> {
    fn need(&self, need: &str) -> Option<&NeedRow> {
        self.own.needs.iter().find(|row| row.need == need)
    }
}

/// The record of all; `labels` is their run as one.
#[must_use]
pub fn build(labels: &RunData, hosts: &[Given<'_>]) -> Record {
    let mut measured = Vec::new();
    let mut without = Vec::new();
    for host in hosts {
        // Versions are the same, so what cannot be read was damaged.
        let read = |part: &Value| serde_json::from_value::<Gave>(part.clone()).map_err(|error| error.to_string());
        match host.part.map_err(str::to_owned).and_then(read) {
            Ok(gave) => {
                let own = gave.record.parts.get().unwrap_or_default();
                measured.push(Host { name: host.name, gate_ns: host.gate_ns, gave, own });
            }
            Err(why) => without.push(HostRow { name: host.name.to_owned(), verdict: why, ..HostRow::lacking() }),
        }
    }
    let mut record = Record::labelled(labels);
    let elapsed_s = labels.end.at_ns.saturating_sub(labels.begin.at_ns) as f64 / 1e9;
    record.interval.elapsed_s = Figure::decimal(elapsed_s);
    record.interval.whole_run_s = record.interval.elapsed_s.clone();
    record.warnings.clone_from(&labels.warnings);
    OWN.complete(record, &info(labels, &measured, without))
}

fn info(labels: &RunData, hosts: &[Host<'_>], without: Vec<HostRow>) -> PlatformsInfo {
    let (needs, odd) = needs(hosts);
    let mut rows: Vec<(f64, HostRow)> = hosts.iter().zip(&odd).map(|(host, odd)| (odd.most, row(host, odd))).collect();
    rows.sort_by(|(most_a, a), (most_b, b)| {
        let needs = |row: &HostRow| row.odd_in.matches(',').count() + usize::from(!row.odd_in.is_empty());
        needs(b).cmp(&needs(a)).then(most_b.total_cmp(most_a)).then_with(|| a.name.cmp(&b.name))
    });
    let rows: Vec<HostRow> = rows.into_iter().map(|(_, row)| row).collect();
    let timed: Vec<Timed<'_>> = (hosts.iter())
        .map(|host| Timed { gate_ns: host.gate_ns, ran: &host.gave.ran, rates: &host.gave.rates })
        .collect();
    let tests = sums::tests(&timed, |test| unfinished(hosts, test));
    let path = labels.settings.iter().find(|line| line.name == "PATH").map(|line| line.value.clone());
    PlatformsInfo {
        plan: hosts.first().map_or_else(String::new, |host| host.own.plan.clone()),
        path: path.unwrap_or_default(),
        class: class(&rows),
        hosts_count: (rows.len() + without.len()) as u64,
        measured_count: rows.len() as u64,
        odd_count: rows.iter().filter(|row| !row.odd_in.is_empty()).count() as u64,
        needs_failed_count: rows.iter().map(|row| row.failed_count).sum(),
        sums: sums::rows(&timed, &tests),
        hosts: without.into_iter().chain(rows).collect(),
        needs,
        tests,
        facts: facts(hosts),
        found: found(hosts),
    }
}

/// In how many needs a host is odd, and how far away it is in one of them.
#[derive(Clone, Default)]
struct Odd {
    needs: Vec<String>,
    most: f64,
}

/// Every need over the hosts that have it, and how odd each host is.
fn needs(hosts: &[Host<'_>]) -> (Vec<SpreadRow>, Vec<Odd>) {
    let mut odd = vec![Odd::default(); hosts.len()];
    let names: Vec<&str> =
        hosts.first().map(|host| host.own.needs.iter().map(|row| row.need.as_str()).collect()).unwrap_or_default();
    let mut rows = Vec::with_capacity(names.len());
    for need in names {
        let (places, found): (Vec<usize>, Vec<&NeedRow>) =
            hosts.iter().enumerate().filter_map(|(at, host)| Some((at, host.need(need)?))).unzip();
        let mut told = Vec::new();
        for ((at, row), away) in places.into_iter().zip(&found).zip(oddness(&found)).filter(|(_, away)| *away > 0.0) {
            odd[at].needs.push(need.to_owned());
            odd[at].most = odd[at].most.max(away);
            let value = row
                .need_value
                .value()
                .map_or_else(|| "no load keeps the latency".to_owned(), |value| six(value.round()));
            told.push(format!("{} {value}", hosts[at].name));
        }
        rows.push(spread(&found, told.join(", ")));
    }
    (rows, odd)
}

fn spread(found: &[&NeedRow], odd: String) -> SpreadRow {
    let values: Vec<f64> = found.iter().filter_map(|row| row.need_value.value()).collect();
    // Of one host, or where all lack it for one reason, that is the reason.
    let why = found.first().and_then(|row| row.need_value.reason()).unwrap_or("no host has it");
    let known = |value: Option<f64>| Figure::known(value.map(Figure::decimal), why);
    let count = |verdict: &str| found.iter().filter(|row| row.verdict == verdict).count() as u64;
    SpreadRow {
        least: known(values.iter().copied().reduce(f64::min)),
        median: known(median(&values)),
        most: known(values.iter().copied().reduce(f64::max)),
        hosts_count: values.len() as u64,
        warned_count: count(WARN),
        failed_count: count(FAIL),
        odd,
        need: found.first().map_or_else(String::new, |row| row.need.clone()),
        unit: found.first().map_or_else(String::new, |row| row.unit.clone()),
        is_higher_better: found.first().is_some_and(|row| row.is_higher_better),
    }
}

impl HostRow {
    /// One without figures.
    fn lacking() -> Self {
        let none = || Figure::na("it gave nothing");
        Self {
            commit_us_p99: none(),
            commits_per_s: none(),
            read_us_p99: none(),
            reads_per_s: none(),
            read_mib_per_s: none(),
            write_mib_per_s: none(),
            cpu_mhz: none(),
            busy_before_pct: none(),
            ..Self::default()
        }
    }
}

fn row(host: &Host<'_>, odd: &Odd) -> HostRow {
    let none = || Figure::na("its test was not planned");
    let figure = |need: &str| host.need(need).map_or_else(none, |row| row.need_value.clone());
    let count = |verdict: &str| host.own.needs.iter().filter(|row| row.verdict == verdict).count() as u64;
    let (failed, warned) = (count(FAIL), count(WARN));
    HostRow {
        name: host.name.to_owned(),
        class: host.own.class.clone(),
        commit_us_p99: figure("commit_us_p99"),
        commits_per_s: figure("commits_per_s"),
        read_us_p99: figure("read_us_p99"),
        reads_per_s: figure("reads_per_s"),
        read_mib_per_s: figure("read_mib_per_s"),
        write_mib_per_s: figure("write_mib_per_s"),
        cpu_mhz: figure("cpu_mhz"),
        busy_before_pct: host.own.busy_before_pct.clone(),
        verdict: match (failed, warned) {
            _ if host.own.tests.is_empty() => "no test ended".to_owned(),
            (0, 0) => "fit".to_owned(),
            (0, _) => many(warned, "warning"),
            _ => format!("{} failed", many(failed, "need")),
        },
        findings_count: (host.own.found.len() + host.gave.record.advice.len()) as u64,
        odd_in: odd.needs.join(", "),
        failed_count: failed,
    }
}

/// `R50k C8.4k`, or each part from the least to the most.
fn class(rows: &[HostRow]) -> String {
    let part = |at: usize, rate: fn(&HostRow) -> &Figure| {
        let mut found: Vec<(f64, &str)> = (rows.iter())
            .filter_map(|row| Some((rate(row).value().unwrap_or(-1.0), row.class.split(' ').nth(at)?)))
            .collect();
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        match (found.first(), found.last()) {
            (Some((_, least)), Some((_, most))) if least != most => format!("{least} to {most}"),
            (Some((_, least)), _) => (*least).to_owned(),
            _ => String::new(),
        }
    };
    let [reads, commits] = [part(0, |row| &row.reads_per_s), part(1, |row| &row.commits_per_s)];
    let glue = if [&reads, &commits].into_iter().any(|part| part.contains(" to ")) { ", " } else { " " };
    format!("{reads}{glue}{commits}").trim().to_owned()
}

/// The hosts without a whole result of a test.
fn unfinished(hosts: &[Host<'_>], test: &str) -> String {
    let told = hosts.iter().filter_map(|host| {
        let row = host.own.tests.iter().find(|row| row.test == test);
        let verdict = row.map_or("not made", |row| row.verdict.as_str());
        (verdict != "complete").then(|| format!("{}: {verdict}", host.name))
    });
    told.collect::<Vec<_>>().join("; ")
}

/// What the kernels tell, where it is not the same.
fn facts(hosts: &[Host<'_>]) -> Vec<FactRow> {
    let mut all: Vec<FactRow> = Vec::new();
    for fact in hosts.first().iter().flat_map(|host| &host.own.facts) {
        let mut values: Vec<(&str, Vec<&str>)> = Vec::new();
        for host in hosts {
            let found = host.own.facts.iter().find(|other| other.fact == fact.fact);
            group(&mut values, found.map_or("not looked at", |found| &found.value), host.name);
        }
        if values.len() > 1 {
            all.extend(values.into_iter().map(|(value, names)| FactRow {
                fact: fact.fact.clone(),
                hosts: who(&names, hosts.len() as u64),
                value: value.to_owned(),
            }));
        }
    }
    all
}

/// Findings by rule: those of the tests, and those of the boxes.
fn found(hosts: &[Host<'_>]) -> Vec<FoundRow> {
    let mut all: Vec<(FoundRow, Vec<&str>)> = Vec::new();
    for host in hosts {
        let of_tests =
            host.own.found.iter().map(|found| (found.test.as_str(), &found.rule, &found.severity, &found.text));
        let of_box =
            host.gave.record.advice.iter().map(|advice| ("the box", &advice.id, &advice.severity, &advice.text));
        for (test, rule, severity, text) in of_tests.chain(of_box) {
            match all.iter_mut().find(|(row, _)| row.test == test && row.rule == *rule) {
                Some((_, names)) if names.last() == Some(&host.name) => {}
                Some((row, names)) => {
                    names.push(host.name);
                    if severity == "high" {
                        row.severity.clone_from(severity);
                    }
                }
                None => all.push((
                    FoundRow {
                        test: test.to_owned(),
                        rule: rule.clone(),
                        severity: severity.clone(),
                        text: text.clone(),
                        ..FoundRow::default()
                    },
                    vec![host.name],
                )),
            }
        }
    }
    // What few have tells them apart from the others.
    all.sort_by_key(|(row, names)| (row.severity != "high", names.len()));
    let told = |(row, names): (FoundRow, Vec<&str>)| FoundRow {
        hosts_count: names.len() as u64,
        hosts: who(&names, hosts.len() as u64),
        ..row
    };
    all.into_iter().map(told).collect()
}

fn group<'a>(values: &mut Vec<(&'a str, Vec<&'a str>)>, value: &'a str, name: &'a str) {
    match values.iter_mut().find(|(known, _)| *known == value) {
        Some((_, names)) => names.push(name),
        None => values.push((value, vec![name])),
    }
}
