//! What a record has that was measured by several hosts: one row each, and how well they ran at the same time.

mod going;

pub use going::{HostCell, HostHeard, LATE, LOST};

use crate::figures::{figures, of_layer};
use crate::record::{Figure, Metric, Part, Record};
use crate::section::{Cell, Sections, Weight, number};
use crate::units::fixed;

/// Why a host has no rate: its figures are none of operations, and stand in sections of their own.
pub const UNCOUNTED: &str = "its test counts no operations";

/// A host is odd that differs by more than this part from the others. Decided here.
pub const ODD: f64 = 0.2;

/// A run of several hosts.
#[figures(group = Host)]
pub struct Fleet {
    /// Hosts that the run began with.
    #[metric("hosts of the run")]
    pub hosts_count: u64,
    /// Those whose measurements are in the figures.
    #[metric("hosts in the figures", Higher)]
    pub measured_count: u64,
    /// From the first host's begin to the last host's.
    #[metric("start spread of the hosts")]
    pub start_skew_ms: Figure,
    /// The latest start after the instant agreed on.
    #[metric("latest start after the instant agreed on")]
    pub start_late_ms: Figure,
    /// The window common to all, s after the instant agreed on: the latest begin.
    pub begin_s: Figure,
    /// The earliest end.
    pub end_s: Figure,
    /// The begin of the first host.
    pub first_begin_s: Figure,
    /// The end of the last host.
    pub last_end_s: Figure,
    /// Round trips between controller and hosts during the run.
    #[metric("control channel, round trip")]
    pub control_ms_p99: Figure,
    /// Taking the results of all hosts.
    #[metric("taking the results")]
    pub gather_ms: Figure,
    /// The hosts, the oddest first: those without figures, then by their distance from the median.
    pub hosts: Vec<FleetHost>,
}

/// One host.
#[figures]
pub struct FleetHost {
    /// Its name.
    #[column("Host")]
    pub name: String,
    /// `measured`, `late 4 s` (measured, and silent for so long) or `lost`; while the run goes on as in [`HostHeard`].
    #[column("state")]
    pub state: String,
    /// Its sessions.
    #[column("sessions")]
    pub sessions_count: u64,
    /// Operations per second of its window.
    #[column("ops/s", with = counted)]
    pub ops_per_s: Figure,
    /// Its rate over the median host's, 0..100.
    #[column("of median %", with = counted)]
    pub of_median_pct: Figure,
    /// 99th percentile of its operations.
    #[column("p99 us", with = counted)]
    pub op_us_p99: Figure,
    /// Its last driver thread past the gate, after the instant agreed on.
    #[column("start ms", 3)]
    pub start_ms: Figure,
    /// How far its wall clock is ahead of the controller's.
    #[column("clock ms", 3)]
    pub clock_ms: Figure,
    /// Both of them are known within so much.
    #[column("+- ms", 3)]
    pub clock_bound_ms: Figure,
    /// Round trips of its answers during the run.
    #[column("control p99 ms", 3)]
    pub control_ms_p99: Figure,
    /// Where its own record is, or why it has no figures.
    #[column("note")]
    pub note: String,
}

/// A column of operations is left out where none are counted.
fn counted(figure: &Figure) -> Cell {
    if figure.reason() == Some(UNCOUNTED) { Cell::from("") } else { Cell::figure(figure, 1) }
}

impl Part for Fleet {
    const NAME: &'static str = "fleet";
}

impl Fleet {
    /// Orders the hosts: what a reader should look at comes first.
    pub fn oddest_first(&mut self) {
        let distance = |host: &FleetHost| match (host.ops_per_s.value(), host.of_median_pct.value()) {
            (None, _) if host.ops_per_s.reason() != Some(UNCOUNTED) => f64::MAX,
            (_, pct) => pct.map_or(0.0, |pct| (pct - 100.0).abs()),
        };
        self.hosts.sort_by(|a, b| distance(b).total_cmp(&distance(a)).then_with(|| a.name.cmp(&b.name)));
    }

    /// `3 of 3 hosts`, how far apart they started, and the oddest of them, in a sentence.
    #[must_use]
    pub fn summary(&self) -> String {
        let Self { measured_count, hosts_count, .. } = self;
        let partial = if measured_count < hosts_count { "partial: " } else { "" };
        let started = match self.start_skew_ms.value() {
            Some(ms) => format!(", started within {} ms", fixed(ms, 2)),
            None => String::new(),
        };
        let bound = self.hosts.iter().filter_map(|host| host.clock_bound_ms.value()).reduce(f64::max);
        let clocks = bound.map_or_else(String::new, |ms| format!(" (clocks known within {} ms)", fixed(ms, 2)));
        let odd = self.hosts.iter().find(|host| host.of_median_pct.value().is_some());
        let odd = odd.filter(|_| *measured_count > 1).and_then(|host| {
            let pct = host.of_median_pct.value()?;
            let apart = (pct - 100.0).abs();
            Some(if apart > 100.0 * ODD {
                format!("; the oddest is {} with {} % of the median rate", host.name, fixed(pct, 0))
            } else {
                format!("; all within {} % of the median rate", fixed(apart.ceil().max(1.0), 0))
            })
        });
        let odd = odd.unwrap_or_default();
        format!("{partial}{measured_count} of {hosts_count} hosts{started}{clocks}{odd}")
    }

    /// The section of the hosts, where several measured; behind the first of a page.
    pub fn add_section(record: &Record, page: &mut Sections) {
        let Some(fleet) = record.parts.get::<Self>() else {
            return;
        };
        let mut own = Sections::default();
        own.heading("Hosts");
        let weight = if fleet.measured_count < fleet.hosts_count { Weight::Warning } else { Weight::Plain };
        own.finding(weight, "", &(fleet.summary() + "."));
        if fleet.begin_s.value().is_some() {
            own.wrapped("", &fleet.window());
        }
        own.rows(&fleet.hosts);
        let at = page.all.len().min(1);
        page.all.splice(at..at, own.all);
    }

    /// The window common to all, and what the control channel took.
    fn window(&self) -> String {
        let [begin, end, first, last] =
            [&self.begin_s, &self.end_s, &self.first_begin_s, &self.last_end_s].map(|figure| number(figure, 4));
        format!(
            "Seconds after the instant agreed on: the window common to all is {begin} to {end}; the first host began at {first}, \
             the last ended at {last}. Control channel during the run: p99 {} ms; taking the results: {} ms.",
            number(&self.control_ms_p99, 2),
            number(&self.gather_ms, 0)
        )
    }

    /// Its metrics, where several hosts measured.
    #[must_use]
    pub fn metrics_of(record: &Record) -> Vec<Metric> {
        record.parts.get::<Self>().map(|fleet| of_layer("client", &fleet)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, pct: Figure) -> FleetHost {
        FleetHost { name: name.to_owned(), ops_per_s: pct.clone(), of_median_pct: pct, ..FleetHost::default() }
    }

    #[test]
    fn the_oddest_host_comes_first_and_one_without_figures_before_it() {
        let hosts = vec![
            host("b", Figure::decimal(99.0)),
            host("c", Figure::decimal(121.0)),
            host("a", Figure::decimal(101.0)),
            host("lost", Figure::na("lost")),
        ];
        let mut fleet = Fleet { hosts_count: 4, measured_count: 3, hosts, ..Fleet::default() };
        fleet.oddest_first();
        let names: Vec<&str> = fleet.hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, ["lost", "c", "a", "b"]);
        assert!(fleet.summary().starts_with("partial: 3 of 4 hosts"), "{}", fleet.summary());
        assert!(fleet.summary().ends_with("; the oddest is c with 121 % of the median rate"), "{}", fleet.summary());
        fleet.hosts[1].of_median_pct = Figure::decimal(96.7);
        assert!(fleet.summary().ends_with("; all within 4 % of the median rate"), "{}", fleet.summary());
        let mut record = Record::default();
        let mut page = Sections::default();
        Fleet::add_section(&record, &mut page);
        assert_eq!(page, Sections::default(), "a run of one host has no such section");
        record.parts.put(&fleet);
        Fleet::add_section(&record, &mut page);
        assert_eq!(page.all[0].title, "Hosts");
    }
}
