//! Differences of the snapshots: what every derived figure starts from.

use assay_measure::clock::NS_PER_S;
use assay_measure::counter_catalog::{self, Stat};
use assay_measure::record::Figure;
use assay_measure::snapshot::{Actor, DriverReading, EventReading, Reading, RunData, Snapshot, StatSet, WaitClass};

/// Why a rate is missing: there was no measured time.
pub(crate) const NO_WINDOW: &str = "no measured window";
/// Why a per-transaction figure is missing.
pub(crate) const NO_TX: &str = "no transactions";
/// Why a per-operation figure is missing.
pub(crate) const NO_OPS: &str = "no operations";
/// Why a figure of the engine is missing: it counts no such thing.
pub(crate) const UNSUPPORTED: &str = "unsupported";
/// Why a figure of the host is missing: its source was not there.
pub(crate) const NO_SOURCE: &str = "absent";

/// The source of what the load generator counted itself.
const CLIENT_SOURCE: &str = "client";

/// The difference of two snapshots of one run.
pub(crate) struct Span<'a> {
    /// The earlier one.
    pub(crate) from: &'a Snapshot,
    /// The later one.
    pub(crate) to: &'a Snapshot,
    /// Monotonic seconds between them.
    pub(crate) elapsed_s: f64,
    /// Engine statistics moved in between.
    pub(crate) stats: StatSet,
    /// The load generator's counters moved in between.
    pub(crate) driver: DriverReading,
}

impl<'a> Span<'a> {
    pub(crate) fn new(from: &'a Snapshot, to: &'a Snapshot) -> Self {
        Self {
            from,
            to,
            elapsed_s: seconds(to.at_ns.saturating_sub(from.at_ns)),
            stats: to.stats.difference(&from.stats),
            driver: to.driver.difference(&from.driver),
        }
    }

    /// A counter's delta in its own unit.
    pub(crate) fn get(&self, stat: Stat) -> Figure {
        counter(&self.stats, stat)
    }

    /// A counter's delta, if it has one.
    pub(crate) fn count(&self, stat: Stat) -> Option<u64> {
        self.stats.get(stat)
    }

    /// Bytes read and bytes written, all there were where the target counts them all, else those of data.
    pub(crate) fn moved_bytes(&self) -> (Figure, Figure) {
        let either = |all: Stat, data: Stat| match self.get(all) {
            Figure::Na(_) => self.get(data),
            all => all,
        };
        (
            either(counter_catalog::PHYSICAL_READ_TOTAL_BYTES, counter_catalog::PHYSICAL_READ_BYTES),
            either(counter_catalog::PHYSICAL_WRITE_TOTAL_BYTES, counter_catalog::PHYSICAL_WRITE_BYTES),
        )
    }

    /// A counter's delta per second.
    pub(crate) fn rate(&self, stat: Stat) -> Figure {
        self.get(stat).per(self.elapsed_s, NO_WINDOW)
    }

    /// DB time in ns: the operations that ended, and the part inside this span of those
    /// that were under way at its ends. Without that part an operation of ten seconds
    /// would belong to the second in which it ends.
    pub(crate) fn db_time_ns(&self) -> Figure {
        let ended = match self.get(counter_catalog::DB_TIME) {
            Figure::Count(ns) => ns,
            Figure::Na(_) if self.ops() > 0 => self.driver.busy_ns,
            figure => return figure,
        };
        let inside = ended.saturating_add(self.to.driver.in_flight_ns);
        Figure::Count(inside.saturating_sub(self.from.driver.in_flight_ns))
    }

    /// Driver operations ended.
    pub(crate) fn ops(&self) -> u64 {
        self.driver.ops.iter().map(|op| op.service.count()).sum()
    }

    /// Commits and rollbacks: a server's own count, which has every statement that committed by itself, where there
    /// is one, else what the sessions asked for.
    pub(crate) fn transactions(&self) -> Figure {
        let server = self.stats.get(counter_catalog::SERVER_COMMITS).is_some();
        let (commits, rollbacks) = if server {
            (counter_catalog::SERVER_COMMITS, counter_catalog::SERVER_ROLLBACKS)
        } else {
            (counter_catalog::USER_COMMITS, counter_catalog::USER_ROLLBACKS)
        };
        match (self.get(commits), self.get(rollbacks)) {
            (commits, Figure::Na(_)) => commits,
            (commits, rollbacks) => commits.plus(&rollbacks),
        }
    }

    /// Events of one actor, idle ones left out.
    pub(crate) fn busy_events(&self, actor: Actor) -> impl Iterator<Item = &EventReading> {
        self.stats.events.iter().filter(move |event| event.actor == actor && event.class != WaitClass::Idle)
    }

    /// Time of all non-idle waits of one actor, ns.
    pub(crate) fn wait_ns(&self, actor: Actor) -> u64 {
        self.busy_events(actor).map(|event| event.waits.sum_ns()).sum()
    }
}

/// Both intervals of a run.
pub(crate) struct Deltas<'a> {
    /// What the run measured.
    pub(crate) data: &'a RunData,
    /// Begin to end.
    pub(crate) window: Span<'a>,
    /// Gate to drained: threads are quiet at both ends.
    pub(crate) whole: Span<'a>,
}

impl<'a> Deltas<'a> {
    pub(crate) fn new(data: &'a RunData) -> Self {
        Self { data, window: Span::new(&data.begin, &data.end), whole: Span::new(&data.gate, &data.drained) }
    }

    /// Whether somebody else's views were read (a database server's): then counters move when its processes publish
    /// them, and nothing of that can be a bug of assay.
    pub(crate) fn is_server(&self) -> bool {
        let marks = [&self.data.end, &self.data.drained];
        marks.iter().any(|mark| !mark.stats.sources.is_empty())
    }

    /// Short key of where a counter was read. The loop counts and times operations, `/proc` times CPU, everything
    /// else is the engine's own counter, or, beside a server, the session's.
    pub(crate) fn source(&self, stat: Stat) -> String {
        const CLIENT: &[Stat] = &[
            counter_catalog::EXECUTE_COUNT,
            counter_catalog::USER_CALLS,
            counter_catalog::LOGONS,
            counter_catalog::DB_TIME,
        ];
        const PROC: &[Stat] = &[counter_catalog::DB_CPU, counter_catalog::BACKGROUND_CPU];
        let marks = [&self.data.end, &self.data.drained];
        let said = marks.iter().find_map(|mark| mark.stats.sources.get(stat.name));
        if let Some(source) = said {
            return source.clone();
        }
        let source = if CLIENT.contains(&stat) {
            CLIENT_SOURCE
        } else if PROC.contains(&stat) {
            "proc"
        } else if self.is_server() {
            CLIENT_SOURCE
        } else {
            "sysstat"
        };
        source.to_owned()
    }

    /// Whether no operation was under way at the last snapshot.
    pub(crate) fn is_drained(&self) -> bool {
        self.data.drained.driver.in_flight == 0 && self.data.drained.driver.sessions_active == 0
    }

    /// An engine fact as a number.
    pub(crate) fn fact(&self, name: &str) -> Option<u64> {
        let fact = self.data.engine_facts.iter().find(|f| f.name == name)?;
        let digits: String =
            fact.value.chars().take_while(|c| c.is_ascii_digit() || *c == ',').filter(char::is_ascii_digit).collect();
        digits.parse().ok()
    }

    /// An effective setting's text.
    pub(crate) fn setting(&self, name: &str) -> Option<&str> {
        self.data.settings.iter().find(|line| line.name == name).map(|line| line.value.as_str())
    }
}

/// A counter of a set; absent means that the engine counts no such thing.
pub(crate) fn counter(set: &StatSet, stat: Stat) -> Figure {
    match set.counters.get(stat.name) {
        Some(Reading::Count(count)) => Figure::Count(*count),
        Some(Reading::Na(reason)) => Figure::na(reason),
        None => Figure::na(UNSUPPORTED),
    }
}

/// A source's delta; what went backwards was reset, what is missing is absent.
pub(crate) fn delta(from: Option<u64>, to: Option<u64>) -> Figure {
    match (from, to) {
        (Some(from), Some(to)) => to.checked_sub(from).map_or_else(|| Figure::na("reset"), Figure::Count),
        _ => Figure::na(NO_SOURCE),
    }
}

/// Nanoseconds as seconds.
pub(crate) fn seconds(ns: u64) -> f64 {
    ns as f64 / NS_PER_S as f64
}

/// Nanoseconds as microseconds.
pub(crate) fn micros(ns: u64) -> Figure {
    Figure::decimal(ns as f64 / 1000.0)
}
