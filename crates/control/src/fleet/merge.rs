//! Several hosts' readings as those of one run: counts and buckets are added, percentiles never.
//!
//! All hosts count their seconds from their own gate, and began at one instant, so the snapshots of one second belong together.
//! Only what all of them measured counts: where one ended early, the window ends with the last second that all have.

use assay_measure::clock::{NS_PER_S, Ns};
use assay_measure::history::ActivityHistory;
use assay_measure::series::{SeriesEntry, SeriesReader};
use assay_measure::snapshot::{Fact, Mark, RunData, Snapshot, Verdict};

/// Ends that differ by less than this are the same instant, as starts are; of a longer window a hundredth.
pub const SAME_NS: Ns = 10_000_000;
/// Different values of a fact that are named.
const NAMED: usize = 3;

/// What one host measured.
#[derive(Clone, Copy, Debug)]
pub struct HostPart<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its run.
    pub data: &'a RunData,
    /// Its seconds; `None` where they did not arrive.
    pub series: Option<&'a [u8]>,
}

/// What a series is made of.
#[derive(Debug)]
pub enum Piece<'a> {
    /// What all sessions did; before the snapshots.
    Activity(&'a ActivityHistory),
    /// Two neighbouring snapshots.
    Step(&'a Snapshot, &'a Snapshot),
}

/// How far two instants of a window may be apart.
#[must_use]
pub fn tolerance_ns(window_ns: Ns) -> Ns {
    SAME_NS.max(window_ns / 100)
}

/// The run of all hosts. `take` is called with each piece of its series, in order.
///
/// Nothing for no host.
#[must_use]
pub fn merged(hosts: &[HostPart<'_>], take: &mut dyn FnMut(Piece<'_>)) -> RunData {
    let Some(first) = hosts.first().map(|host| host.data) else {
        return RunData::default();
    };
    let all = |of: fn(&RunData) -> &Snapshot| sum(hosts.iter().map(|host| of(host.data)));
    let gate = all(|data| &data.gate);
    let mut activity: Option<ActivityHistory> = None;
    for of_host in hosts.iter().filter_map(|host| host.data.activity.as_ref()) {
        activity.get_or_insert_default().merge(of_host);
    }
    activity.iter().for_each(|activity| take(Piece::Activity(activity)));
    let mut last = gate.clone();
    let common = steps(hosts, |now| {
        take(Piece::Step(&last, &now));
        last = now;
    });
    let mut warnings = remarks(hosts);
    let ends = || hosts.iter().map(|host| host.data.end.at_ns);
    let (earliest, latest) = (ends().min().unwrap_or(0), ends().max().unwrap_or(0));
    let is_one_end = latest - earliest <= tolerance_ns(latest.saturating_sub(first.begin.at_ns));
    let end = match common {
        Some(common) if !is_one_end && common.at_ns > first.begin.at_ns => {
            warnings.push(format!(
                "The hosts did not end together ({:.2} s to {:.2} s after the start): only the {} s that all of them measured count.",
                earliest as f64 / NS_PER_S as f64,
                latest as f64 / NS_PER_S as f64,
                common.at_ns / NS_PER_S
            ));
            common
        }
        _ => {
            let end = all(|data| &data.end);
            if !is_one_end && end.driver.ops_ended() > 0 {
                warnings.push(
                    "The hosts did not end together, and no second is there of all of them: the rates are of windows that differ."
                        .to_owned(),
                );
            }
            take(Piece::Step(&last, &end));
            end
        }
    };
    RunData {
        run_id: String::new(),
        verdict: verdict(hosts),
        sessions: hosts.iter().map(|host| host.data.sessions).sum(),
        host: facts(hosts, |data| &data.host),
        engine_facts: facts(hosts, |data| &data.engine_facts),
        begin: all(|data| &data.begin),
        drained: all(|data| &data.drained),
        gate,
        end,
        series: Vec::new(),
        activity,
        timeline: Vec::new(),
        per_session: hosts.iter().flat_map(|host| host.data.per_session.iter().cloned()).collect(),
        floor_ns_per_op: largest(hosts, |data| data.floor_ns_per_op),
        clock_read_ns: largest(hosts, |data| data.clock_read_ns),
        part: None,
        warnings,
        ..first.clone()
    }
}

/// Snapshots of one instant as one: its instant is the mean of theirs, so that a rate over two of them is over the mean of the
/// hosts' windows.
fn sum<'a>(parts: impl Iterator<Item = &'a Snapshot>) -> Snapshot {
    let (mut all, mut at_ns, mut count) = (Snapshot::default(), 0_u128, 0_u128);
    for part in parts {
        at_ns += u128::from(part.at_ns);
        count += 1;
        all.merge(part);
    }
    all.at_ns = at_ns.checked_div(count).unwrap_or(0) as Ns;
    all
}

/// The seconds that all hosts have, each as one snapshot; the last of them.
fn steps(hosts: &[HostPart<'_>], mut take: impl FnMut(Snapshot)) -> Option<Snapshot> {
    let mut seconds: Vec<Seconds<'_>> = hosts.iter().map(|host| Seconds::of(host.series?)).collect::<Option<_>>()?;
    let mut last = None;
    loop {
        let mut now: Vec<(u64, Snapshot)> = Vec::with_capacity(seconds.len());
        for host in &mut seconds {
            let Some(second) = host.next() else {
                return last;
            };
            now.push(second);
        }
        // A host that slept through a second has none of that number: the others' are passed over.
        while let (Some(most), true) = (now.iter().map(|(second, _)| *second).max(), is_apart(&now)) {
            for (host, one) in seconds.iter_mut().zip(&mut now) {
                while one.0 < most {
                    let Some(next) = host.next() else {
                        return last;
                    };
                    *one = next;
                }
            }
        }
        let merged = sum(now.iter().map(|(_, snapshot)| snapshot));
        take(merged.clone());
        last = Some(merged);
    }
}

fn is_apart(now: &[(u64, Snapshot)]) -> bool {
    now.iter().any(|(second, _)| *second != now[0].0)
}

/// The full seconds of a series.
struct Seconds<'a> {
    lines: std::slice::Split<'a, u8, fn(&u8) -> bool>,
    reader: SeriesReader,
}

impl<'a> Seconds<'a> {
    /// Behind the header.
    fn of(series: &'a [u8]) -> Option<Self> {
        let is_end: fn(&u8) -> bool = |byte| *byte == b'\n';
        let mut lines = series.split(is_end);
        lines.next()?;
        Some(Self { lines, reader: SeriesReader::default() })
    }
}

impl Iterator for Seconds<'_> {
    type Item = (u64, Snapshot);

    /// A line that cannot be read ends it: later ones build on it.
    fn next(&mut self) -> Option<Self::Item> {
        for line in self.lines.by_ref().filter(|line| !line.is_empty()) {
            if let SeriesEntry::Snapshot(reading) = self.reader.line(line).ok()?
                && reading.mark == Mark::Second
            {
                return Some((reading.snapshot.at_ns / NS_PER_S, reading.snapshot));
            }
        }
        None
    }
}

/// A run is as good as the worst of its hosts.
fn verdict(hosts: &[HostPart<'_>]) -> Verdict {
    let mut invalid = Vec::new();
    let mut incomplete = Vec::new();
    for host in hosts {
        match &host.data.verdict {
            Verdict::Complete => {}
            Verdict::Incomplete(reason) => incomplete.push(format!("{}: {reason}", host.name)),
            Verdict::Invalid(reasons) => {
                invalid.extend(reasons.iter().map(|reason| format!("{}: {reason}", host.name)))
            }
        }
    }
    match (invalid.is_empty(), incomplete.is_empty()) {
        (false, _) => Verdict::Invalid(invalid),
        (true, false) => Verdict::Incomplete(incomplete.join("; ")),
        (true, true) => Verdict::Complete,
    }
}

/// What the runs remarked, with the hosts it is of where it is not of all.
fn remarks(hosts: &[HostPart<'_>]) -> Vec<String> {
    let mut said: Vec<(&str, Vec<&str>)> = Vec::new();
    for host in hosts {
        for warning in &host.data.warnings {
            match said.iter_mut().find(|(text, _)| text == warning) {
                Some((_, names)) => names.push(host.name),
                None => said.push((warning, vec![host.name])),
            }
        }
    }
    let told = |(text, names): (&str, Vec<&str>)| {
        if names.len() == hosts.len() { text.to_owned() } else { format!("{}: {text}", names.join(", ")) }
    };
    said.into_iter().map(told).collect()
}

/// Facts of all hosts: one value where they agree, else each with a host that has it.
fn facts(hosts: &[HostPart<'_>], of: fn(&RunData) -> &Vec<Fact>) -> Vec<Fact> {
    let Some(first) = hosts.first() else {
        return Vec::new();
    };
    let told = |fact: &Fact| {
        let mut values: Vec<(&str, &str)> = Vec::new();
        for host in hosts {
            let found = of(host.data).iter().find(|other| other.name == fact.name);
            let value = found.map_or("n/a", |found| found.value.as_str());
            if !values.iter().any(|(known, _)| *known == value) {
                values.push((value, host.name));
            }
        }
        if let [(value, _)] = values[..] {
            return Fact::new(&fact.name, value);
        }
        let named: Vec<String> = values.iter().take(NAMED).map(|(value, host)| format!("{value} ({host})")).collect();
        let more = values.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} others") } else { String::new() };
        Fact::new(&fact.name, named.join(", ") + &more)
    };
    of(first.data).iter().map(told).collect()
}

/// The largest of the hosts' values: a cost of the tool is not told smaller than it is somewhere.
fn largest(hosts: &[HostPart<'_>], of: fn(&RunData) -> Option<f64>) -> Option<f64> {
    hosts.iter().filter_map(|host| of(host.data)).max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measure::histogram::Histogram;
    use assay_measure::series::SeriesWriter;
    use assay_measure::snapshot::{DriverReading, OpReading};
    use proptest::prelude::*;

    /// A host whose operations took these times, second by second, and its series.
    fn host(seconds: &[Vec<u64>]) -> (RunData, Vec<u8>) {
        let mut writer = SeriesWriter::new("run");
        let mut lines = b"{}\n".to_vec();
        let mut service = Histogram::new();
        let mut now = Snapshot::default();
        lines.extend(writer.line(Mark::Gate, &now).bytes());
        for (second, times) in (1..).zip(seconds) {
            times.iter().for_each(|ns| service.record(*ns));
            let op =
                OpReading { kind: "select".to_owned(), rows: 0, service: service.clone(), response: service.clone() };
            now = Snapshot {
                at_ns: second * NS_PER_S,
                driver: DriverReading { ops: vec![op], ..DriverReading::default() },
                ..Snapshot::default()
            };
            lines.extend(writer.line(Mark::Second, &now).bytes());
        }
        lines.extend(writer.line(Mark::End, &now).bytes());
        let data = RunData { sessions: 1, end: now.clone(), drained: now, ..RunData::default() };
        (data, lines)
    }

    fn instants(piece: &Piece<'_>) -> Option<(u64, u64)> {
        match piece {
            Piece::Step(from, to) => Some((from.at_ns, to.at_ns)),
            Piece::Activity(_) => None,
        }
    }

    fn parts(hosts: &[(RunData, Vec<u8>)]) -> Vec<HostPart<'_>> {
        hosts.iter().map(|(data, series)| HostPart { name: "h", data, series: Some(series) }).collect()
    }

    proptest! {
        /// Percentiles of the merged run are those of all hosts' operations in one list, within a bucket.
        #[test]
        fn merged_percentiles_are_those_of_the_concatenated_samples(
            hosts in prop::collection::vec(prop::collection::vec(1_u64..4_000_000_000, 20..200), 1..6),
        ) {
            let runs: Vec<_> = hosts.iter().map(|times| host(std::slice::from_ref(times))).collect();
            let data = merged(&parts(&runs), &mut |_| {});
            let mut all: Vec<u64> = hosts.concat();
            all.sort_unstable();
            let service = data.end.driver.service();
            prop_assert_eq!(service.count(), all.len() as u64);
            for q in [0.5, 0.9] {
                if let Some(found) = service.percentile_ns(q) {
                    let exact = all[(q * all.len() as f64).ceil() as usize - 1] as f64;
                    prop_assert!((found as f64 - exact).abs() <= exact / 64.0 + 1.0, "{} {}", found, exact);
                }
            }
            prop_assert_eq!(data.sessions, hosts.len() as u64);
        }

        /// Whatever each host lacks at its end, the window is what all of them have, and nothing outside it counts.
        #[test]
        fn only_the_window_common_to_all_counts(lengths in prop::collection::vec(1_usize..9, 1..5)) {
            let runs: Vec<_> = lengths.iter().map(|&seconds| host(&vec![vec![1000; 3]; seconds])).collect();
            let mut steps = Vec::new();
            let data = merged(&parts(&runs), &mut |piece| steps.extend(instants(&piece)));
            let common = *lengths.iter().min().expect("one") as u64;
            prop_assert_eq!(data.end.at_ns, common * NS_PER_S);
            prop_assert_eq!(data.end.driver.ops_ended(), common * 3 * lengths.len() as u64);
            prop_assert!(steps.iter().all(|(from, to)| from <= to && *to <= common * NS_PER_S));
            let differ = lengths.iter().any(|length| *length as u64 != common);
            prop_assert_eq!(data.warnings.len(), usize::from(differ));
        }
    }

    #[test]
    fn a_second_that_one_host_slept_through_is_passed_over() {
        let whole = host(&[vec![1; 2], vec![1; 2], vec![1; 2]]);
        let (data, lines) = whole.clone();
        let text = String::from_utf8(lines).expect("text");
        // Lines say only what grew: the second's own line goes, so the next one cannot be read, and the window ends before.
        let slept: Vec<&str> = text.lines().enumerate().filter(|(at, _)| *at != 3).map(|(_, line)| line).collect();
        let slept = (data, (slept.join("\n") + "\n").into_bytes());
        let hosts = [whole, slept];
        let mut ends = Vec::new();
        let _ = merged(&parts(&hosts), &mut |piece| ends.extend(instants(&piece).map(|(_, to)| to / NS_PER_S)));
        assert_eq!(ends, [1, 3]);
    }

    #[test]
    fn facts_that_differ_name_the_hosts_and_a_verdict_is_the_worst() {
        let fact = |value: &str| vec![Fact::new("kernel", value), Fact::new("cpus", "2")];
        let a = RunData { host: fact("6.1"), warnings: vec!["w".to_owned()], ..RunData::default() };
        let b = RunData { host: fact("6.2"), verdict: Verdict::Incomplete("stopped".to_owned()), ..RunData::default() };
        let hosts = [HostPart { name: "a", data: &a, series: None }, HostPart { name: "b", data: &b, series: None }];
        let data = merged(&hosts, &mut |_| {});
        assert_eq!(data.host, [Fact::new("kernel", "6.1 (a), 6.2 (b)"), Fact::new("cpus", "2")]);
        assert_eq!(data.verdict, Verdict::Incomplete("b: stopped".to_owned()));
        assert_eq!(data.warnings, ["a: w"]);
    }
}
