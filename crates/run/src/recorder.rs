//! Counters one driver thread owns: plain memory, written without sharing,
//! copied out when the collector asks.

use assay_measure::clock::Ns;
use assay_measure::counter_catalog;
use assay_measure::histogram::Histogram;
use assay_measure::snapshot::{Actor, CLIENT_WAIT, DriverReading, EventReading, OpReading, StatSet, WaitClass};
use std::collections::BTreeMap;

/// What begins the keys of [`DriverReading::by_kind`].
const FAILED: &str = "failed";
const TRIED_AGAIN: &str = "retried";

/// One kind of operation on one thread.
#[derive(Debug)]
struct KindRecorder {
    rows: u64,
    service: Histogram,
    /// Kept under a rate only: in a closed loop it equals `service`.
    response: Option<Histogram>,
}

/// Everything one thread counts about the load.
///
/// Identity: operations begun = recorded + failed + in flight, and
/// `busy_ns` = the sum of service times of recorded and failed operations.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// The workload's kinds by name.
    names: &'static [&'static str],
    /// By the place of the kind.
    kinds: Vec<KindRecorder>,
    errors: BTreeMap<&'static str, u64>,
    retried: BTreeMap<&'static str, u64>,
    /// What failed and was tried again, by kind and class.
    by_kind: BTreeMap<(&'static str, usize, &'static str), u64>,
    pub hot_spot_hits: u64,
    pub hot_schema_hits: u64,
    /// Arrivals that found no room in the shared queue.
    pub dropped: u64,
    think: Option<Histogram>,
    /// Waits for the schedule's next start under a rate, and for the client between slices.
    idle: Option<Histogram>,
    busy_ns: u64,
    lag: Option<Histogram>,
}

impl Recorder {
    pub(crate) fn new(names: &'static [&'static str], rate: bool, think: bool) -> Self {
        let kind = |_: &&str| KindRecorder { rows: 0, service: Histogram::new(), response: rate.then(Histogram::new) };
        Self {
            names,
            kinds: names.iter().map(kind).collect(),
            errors: BTreeMap::new(),
            retried: BTreeMap::new(),
            by_kind: BTreeMap::new(),
            hot_spot_hits: 0,
            hot_schema_hits: 0,
            dropped: 0,
            think: think.then(Histogram::new),
            idle: rate.then(Histogram::new),
            busy_ns: 0,
            lag: rate.then(Histogram::new),
        }
    }

    /// An operation ended well.
    #[inline]
    pub(crate) fn record(&mut self, kind: usize, rows: u64, service_ns: Ns, response_ns: Ns) {
        let kind = &mut self.kinds[kind];
        kind.rows += rows;
        kind.service.record(service_ns);
        if let Some(response) = &mut kind.response {
            response.record(response_ns);
        }
        self.busy_ns += service_ns;
    }

    /// An operation failed after `service_ns`.
    pub(crate) fn failed(&mut self, kind: usize, class: &'static str, service_ns: Ns) {
        self.error(class);
        *self.by_kind.entry((FAILED, kind, class)).or_default() += 1;
        self.busy_ns += service_ns;
    }

    /// Something about an operation that ended was wrong.
    pub(crate) fn error(&mut self, class: &'static str) {
        *self.errors.entry(class).or_default() += 1;
    }

    /// An operation failed in a way that another attempt may mend, and is attempted once more.
    pub(crate) fn tried_again(&mut self, kind: usize, class: &'static str) {
        *self.by_kind.entry((TRIED_AGAIN, kind, class)).or_default() += 1;
        *self.retried.entry(class).or_default() += 1;
    }

    /// A pause ended.
    pub(crate) fn thought(&mut self, ns: Ns) {
        if let Some(think) = &mut self.think {
            think.record(ns);
        }
    }

    /// Between two slices: the session waited for its client.
    pub(crate) fn waited_for_client(&mut self, ns: Ns) {
        self.idle.get_or_insert_with(Histogram::new).record(ns);
    }

    /// Under a rate: how late an operation started, and how long its session had idled.
    pub(crate) fn scheduled(&mut self, lag_ns: Ns, idle_ns: Ns) {
        if let (Some(lag), Some(idle)) = (&mut self.lag, &mut self.idle) {
            lag.record(lag_ns);
            if idle_ns > 0 {
                idle.record(idle_ns);
            }
        }
    }

    /// The counters of the load; gauges and thread clocks are the caller's.
    pub(crate) fn reading(&self) -> DriverReading {
        let ops = self
            .names
            .iter()
            .zip(&self.kinds)
            .filter(|(_, recorder)| recorder.service.count() > 0)
            .map(|(kind, recorder)| OpReading {
                kind: (*kind).to_owned(),
                rows: recorder.rows,
                service: recorder.service.clone(),
                response: recorder.response.as_ref().unwrap_or(&recorder.service).clone(),
            })
            .collect();
        DriverReading {
            ops,
            errors: by_class(&self.errors),
            retries: self.retried.values().sum(),
            retried: by_class(&self.retried),
            by_kind: self
                .by_kind
                .iter()
                .map(|((what, kind, class), n)| (format!("{what} {} {class}", self.names[*kind]), *n))
                .collect(),
            hot_spot_hits: self.hot_spot_hits,
            hot_schema_hits: self.hot_schema_hits,
            think_count: self.think.as_ref().map_or(0, Histogram::count),
            think_ns: self.think.as_ref().map_or(0, Histogram::sum_ns),
            busy_ns: self.busy_ns,
            dropped: self.dropped,
            schedule_lag: self.lag.clone().unwrap_or_default(),
            ..DriverReading::default()
        }
    }

    /// Adds what the loop knows to the thread's engine statistics: DB time, executes,
    /// calls and the idle events. Operations that ended badly were not executed.
    /// `db_cpu_ns` is the thread's CPU where the thread itself does the database's work.
    pub(crate) fn add_stats(&self, sessions: u64, db_cpu_ns: Option<Ns>, into: &mut StatSet) {
        let ops = self.kinds.iter().map(|kind| kind.service.count()).sum();
        into.add(counter_catalog::LOGONS, sessions);
        into.add(counter_catalog::EXECUTE_COUNT, ops);
        into.add(counter_catalog::USER_CALLS, ops);
        into.add(counter_catalog::DB_TIME, self.busy_ns);
        if let Some(cpu_ns) = db_cpu_ns {
            into.add(counter_catalog::DB_CPU, cpu_ns);
        }
        let idle = [("PL/SQL lock timer", &self.think), (CLIENT_WAIT, &self.idle)];
        for (name, waits) in idle {
            if let Some(waits) = waits.as_ref().filter(|waits| waits.count() > 0) {
                into.events.push(EventReading {
                    name: name.to_owned(),
                    class: WaitClass::Idle,
                    actor: Actor::Foreground,
                    timeouts: waits.count(),
                    waits: waits.clone(),
                });
            }
        }
    }
}

/// Counts under their classes' names.
fn by_class(counts: &BTreeMap<&'static str, u64>) -> BTreeMap<String, u64> {
    let named = counts.iter().map(|(class, n)| ((*class).to_owned(), *n));
    named.collect()
}
