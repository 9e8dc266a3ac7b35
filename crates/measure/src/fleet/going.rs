//! The hosts of a run that goes on, as far as they were heard of, and a cell for each host of any run.

use super::{Fleet, FleetHost, ODD};
use crate::clock::NS_PER_S;
use crate::record::Figure;
use crate::statistics::median;
use crate::units::thousands;
use serde::{Deserialize, Serialize};

/// The state of a host whose measurements are in no figure.
pub const LOST: &str = "lost";
/// How the state of a host begins that said nothing for a while.
pub const LATE: &str = "late";

/// What was heard of a host so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostHeard {
    /// Its name.
    pub name: String,
    /// `preparing`, `ready`, `running`, `ended`, `late 4 s` or `lost`.
    pub state: String,
    /// Why it is lost.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Its sessions at work.
    pub sessions_count: u64,
    /// The last second that it told, ns after the gate.
    pub at_ns: u64,
    /// Operations ended until then.
    pub ops_count: u64,
}

/// A host in a strip of many.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HostCell {
    /// Its name.
    pub name: String,
    /// Its state; of a lost one with the reason.
    pub state: String,
    /// Its operations per second.
    pub rate: String,
    /// `bad` (lost), `warn` (late or odd) or empty.
    pub class: &'static str,
}

impl Fleet {
    /// The hosts of a run that goes on, in the order of their shares; their rates are of the time since `since`, which
    /// is the same of a moment before or empty.
    #[must_use]
    pub fn going(since: &[HostHeard], now: &[HostHeard]) -> Self {
        let later = || Figure::na("known at the end");
        let begun = HostHeard::default();
        let rates: Vec<Figure> = now
            .iter()
            .enumerate()
            .map(|(at, host)| {
                let before = since.get(at).unwrap_or(&begun);
                let elapsed_s = host.at_ns.saturating_sub(before.at_ns) as f64 / NS_PER_S as f64;
                let ended = Figure::Count(host.ops_count.saturating_sub(before.ops_count));
                if host.state == LOST { Figure::na(LOST) } else { ended.per(elapsed_s, "nothing heard") }
            })
            .collect();
        let known: Vec<f64> = rates.iter().filter_map(Figure::value).collect();
        let middle = median(&known).unwrap_or(0.0);
        let row = |(host, rate): (&HostHeard, Figure)| FleetHost {
            name: host.name.clone(),
            state: host.state.clone(),
            sessions_count: host.sessions_count,
            of_median_pct: rate.scaled(100.0).per(middle, "no median"),
            ops_per_s: rate,
            op_us_p99: later(),
            start_ms: later(),
            clock_ms: later(),
            clock_bound_ms: later(),
            control_ms_p99: later(),
            note: host.note.clone(),
        };
        Self {
            hosts_count: now.len() as u64,
            measured_count: now.iter().filter(|host| host.state != LOST).count() as u64,
            start_skew_ms: later(),
            start_late_ms: later(),
            begin_s: later(),
            end_s: later(),
            first_begin_s: later(),
            last_end_s: later(),
            control_ms_p99: later(),
            gather_ms: later(),
            hosts: now.iter().zip(rates).map(row).collect(),
        }
    }

    /// A cell for each host: the lost ones first, then the late and the odd ones; those alike in the order of the rows.
    #[must_use]
    pub fn cells(&self) -> Vec<HostCell> {
        let mut cells: Vec<(u8, HostCell)> = self.hosts.iter().map(cell).collect();
        cells.sort_by_key(|(rank, _)| *rank);
        cells.into_iter().map(|(_, cell)| cell).collect()
    }

    /// How many hosts are in which state: `126 running, 1 lost, 1 late`.
    #[must_use]
    pub fn states(&self) -> String {
        let mut counts: Vec<(&str, u64)> = Vec::new();
        for word in self.hosts.iter().filter_map(|host| host.state.split(' ').next()) {
            match counts.iter_mut().find(|(known, _)| *known == word) {
                Some((_, count)) => *count += 1,
                None => counts.push((word, 1)),
            }
        }
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counts.iter().map(|(word, count)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
    }
}

/// The cell of a host, and how far in front it stands.
fn cell(host: &FleetHost) -> (u8, HostCell) {
    let is_odd = host.of_median_pct.value().is_some_and(|pct| (pct / 100.0 - 1.0).abs() > ODD);
    let (rank, class) = match host.state.as_str() {
        LOST => (0, "bad"),
        state if state.starts_with(LATE) => (1, "warn"),
        _ if is_odd => (2, "warn"),
        _ => (3, ""),
    };
    let state = if rank == 0 { format!("{LOST}: {}", host.note) } else { host.state.clone() };
    let rate = host.ops_per_s.value().map_or_else(|| "n/a".to_owned(), |rate| thousands(rate.round() as u64) + "/s");
    (rank, HostCell { name: host.name.clone(), state, rate, class })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 128 hosts of 100 operations/s each, of which one is late, one lost, and one has half the rate.
    fn many(at_s: u64) -> Vec<HostHeard> {
        let host = |number: u64| HostHeard {
            name: format!("h{number:03}"),
            state: "running".to_owned(),
            sessions_count: 4,
            at_ns: at_s * 1_000_000_000,
            ops_count: at_s * if number == 90 { 50 } else { 100 },
            note: String::new(),
        };
        let mut hosts: Vec<HostHeard> = (1..=128).map(host).collect();
        hosts[99].state = "late 4 s".to_owned();
        hosts[9] = HostHeard { state: LOST.to_owned(), note: "nothing heard for 10 s".to_owned(), ..hosts[9].clone() };
        hosts
    }

    #[test]
    fn of_128_hosts_those_to_look_at_stand_in_front_and_the_others_in_their_order() {
        let fleet = Fleet::going(&many(20), &many(30));
        let cells = fleet.cells();
        let shown = |at: usize| (cells[at].name.as_str(), cells[at].rate.as_str(), cells[at].class);
        assert_eq!(cells.len(), 128);
        assert_eq!((shown(0), cells[0].state.as_str()), (("h010", "n/a", "bad"), "lost: nothing heard for 10 s"));
        assert_eq!((shown(1), cells[1].state.as_str()), (("h100", "100/s", "warn"), "late 4 s"));
        assert_eq!(shown(2), ("h090", "50/s", "warn"));
        let rest: Vec<&str> = cells[3..].iter().map(|cell| cell.name.as_str()).collect();
        assert!(rest.is_sorted() && cells[3..].iter().all(|cell| cell.class.is_empty() && cell.rate == "100/s"));
        assert_eq!(fleet.states(), "126 running, 1 lost, 1 late");
        assert_eq!((fleet.hosts_count, fleet.measured_count), (128, 127));
    }

    #[test]
    fn a_host_that_told_nothing_new_has_no_rate() {
        let now = many(30);
        let rates = Fleet::going(&now, &now).hosts;
        assert_eq!(rates[0].ops_per_s, Figure::na("nothing heard"));
        assert_eq!(Fleet::going(&[], &now).hosts[0].ops_per_s.value(), Some(100.0), "since the gate");
    }
}
