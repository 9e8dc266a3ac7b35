//! Merging (threads, hosts) and differencing (instants).
//!
//! Every merge is associative and commutative and has the default value as its
//! identity; rows are sorted by their key on the way. A sum in which one part is
//! not known is not known. Every function takes its argument apart field by
//! field, so that a new field cannot be forgotten.

use super::{
    BucketReading, DiskReading, DriverReading, EventReading, HostReading, IoReading, NetReading, OpReading,
    PathReading, Reading, RequestReading, Snapshot, StatSet, TimedReading,
};
use crate::histogram::Histogram;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// The reason of a counter that went backwards between two snapshots.
const RESET: &str = "reset";

/// What is added over parts and differs over time.
pub trait Cumulative: Sized {
    fn absorb(&mut self, more: &Self);
    /// What came since `earlier`; `None` if it went backwards.
    fn since(&self, earlier: &Self) -> Option<Self>;
}

impl Cumulative for u64 {
    fn absorb(&mut self, more: &Self) {
        *self = self.saturating_add(*more);
    }

    fn since(&self, earlier: &Self) -> Option<Self> {
        self.checked_sub(*earlier)
    }
}

impl Cumulative for Histogram {
    fn absorb(&mut self, more: &Self) {
        self.merge(more);
    }

    fn since(&self, earlier: &Self) -> Option<Self> {
        self.difference(earlier)
    }
}

/// By place.
impl Cumulative for Vec<u64> {
    fn absorb(&mut self, more: &Self) {
        self.resize(self.len().max(more.len()), 0);
        for (mine, more) in self.iter_mut().zip(more) {
            mine.absorb(more);
        }
    }

    fn since(&self, earlier: &Self) -> Option<Self> {
        let old = earlier.iter().chain(std::iter::repeat(&0));
        let mut places = self.iter().zip(old);
        (self.len() >= earlier.len()).then(|| places.by_ref().map(|(now, old)| now.since(old)).collect())?
    }
}

/// What went backwards is n/a (reset) by itself: each has a counter of its own at the source.
impl Cumulative for Reading {
    fn absorb(&mut self, more: &Self) {
        self.merge(more);
    }

    fn since(&self, earlier: &Self) -> Option<Self> {
        Some(self.difference(earlier))
    }
}

/// A row that is unique by its key within a table.
pub trait KeyedRow: Cumulative + Clone {
    fn compare_keys(&self, other: &Self) -> Ordering;
    /// How messages and [`StatSet::resets`] call it.
    fn label(&self) -> String;

    fn is_same(&self, other: &Self) -> bool {
        self.compare_keys(other) == Ordering::Equal
    }
}

/// Adds rows to others of their kind, as [`StatSet::merge`] does.
pub fn merge_rows<T: KeyedRow>(mine: &mut Vec<T>, others: &[T]) {
    for other in others {
        match mine.iter_mut().find(|row| row.is_same(other)) {
            Some(row) => row.absorb(other),
            None => mine.push(other.clone()),
        }
    }
    mine.sort_by(T::compare_keys);
}

/// Rows since `earlier`; those that went backwards or vanished are left out and named.
fn rows_since<T: KeyedRow>(now: &[T], earlier: &[T], resets: &mut BTreeSet<String>) -> Vec<T> {
    let mut rows = Vec::with_capacity(now.len());
    for row in now {
        match earlier.iter().find(|old| old.is_same(row)) {
            None => rows.push(row.clone()),
            Some(old) => match row.since(old) {
                Some(new) => rows.push(new),
                None => drop(resets.insert(row.label())),
            },
        }
    }
    let vanished = |old: &&T| !now.iter().any(|row| row.is_same(old));
    resets.extend(earlier.iter().filter(vanished).map(T::label));
    rows
}

impl Reading {
    /// Adds another part of the same counter. What is not known stays so: a sum
    /// with an n/a is n/a.
    pub fn merge(&mut self, other: &Self) {
        match (&mut *self, other) {
            (Self::Count(mine), Self::Count(more)) => *mine = mine.saturating_add(*more),
            (Self::Count(_), Self::Na(_)) => *self = other.clone(),
            (Self::Na(_), Self::Count(_)) => {}
            // One of the two reasons, whichever comes first in which order.
            (Self::Na(mine), Self::Na(more)) if more < mine => mine.clone_from(more),
            (Self::Na(_), Self::Na(_)) => {}
        }
    }

    /// What was counted since `earlier`; n/a (reset) if that is less than nothing.
    #[must_use]
    pub fn difference(&self, earlier: &Self) -> Self {
        match (self, earlier) {
            (Self::Count(now), Self::Count(old)) => {
                now.checked_sub(*old).map_or_else(|| Self::Na(RESET.to_owned()), Self::Count)
            }
            (Self::Na(reason), _) | (_, Self::Na(reason)) => Self::Na(reason.clone()),
        }
    }
}

impl StatSet {
    /// Adds the statistics of another part (thread, writer, host): counters, events,
    /// I/O rows and gauges are added by name. A counter one part does not have at
    /// all counts as 0 there; one that is n/a in a part is n/a in the sum.
    pub fn merge(&mut self, other: &Self) {
        let Self { counters, events, timed, buckets, sources, io, paths, requests, gauges, resets } = other;
        for (name, reading) in counters {
            match self.counters.get_mut(name) {
                Some(mine) => mine.merge(reading),
                None => drop(self.counters.insert(name.clone(), reading.clone())),
            }
        }
        merge_rows(&mut self.events, events);
        merge_rows(&mut self.timed, timed);
        merge_rows(&mut self.buckets, buckets);
        merge_texts(&mut self.sources, sources);
        merge_rows(&mut self.io, io);
        merge_rows(&mut self.paths, paths);
        merge_rows(&mut self.requests, requests);
        merge_sums(&mut self.gauges, gauges);
        self.resets.extend(resets.iter().cloned());
    }

    /// What was counted since `earlier`, an older reading of the same source.
    /// Gauges keep the value of now. What is new since `earlier` counts from 0.
    /// A counter that went backwards or vanished is n/a (reset); an event or I/O
    /// row that did so is left out and named in [`StatSet::resets`]:
    /// `event NAME (foreground)`, `timed event NAME (foreground)`, `io FUNCTION, FILE TYPE`, `path PATH, FILE TYPE, DEVICE`, `requests EVENT (read)`.
    #[must_use]
    pub fn difference(&self, earlier: &Self) -> Self {
        let Self { counters, events, timed, buckets, sources, io, paths, requests, gauges, resets } = self;
        let mut resets = resets.clone();
        let counter = |(name, now): (&String, &Reading)| {
            let old = earlier.counters.get(name);
            let since = old.map_or_else(|| now.clone(), |old| now.difference(old));
            (name.clone(), since)
        };
        let mut counters: BTreeMap<_, _> = counters.iter().map(counter).collect();
        for name in earlier.counters.keys() {
            counters.entry(name.clone()).or_insert_with(|| Reading::Na(RESET.to_owned()));
        }
        Self {
            counters,
            events: rows_since(events, &earlier.events, &mut resets),
            timed: rows_since(timed, &earlier.timed, &mut resets),
            buckets: rows_since(buckets, &earlier.buckets, &mut resets),
            sources: sources.clone(),
            io: rows_since(io, &earlier.io, &mut resets),
            paths: rows_since(paths, &earlier.paths, &mut resets),
            requests: rows_since(requests, &earlier.requests, &mut resets),
            gauges: gauges.clone(),
            resets,
        }
    }
}

/// [`KeyedRow`] by what each field is: a part of the key; a sum, which differs over time; a gauge, which is added and keeps
/// the value of now; something of which any part says the same, or else the least counts; reasons by column.
macro_rules! row {
    (
        $type:ident as $label:expr;
        key $($key:ident)+; sums $($sum:ident)+; gauges $($gauge:ident)*; least $($least:ident)*; reasons $($reason:ident)*
    ) => {
        impl KeyedRow for $type {
            fn compare_keys(&self, other: &Self) -> Ordering {
                Ordering::Equal$(.then_with(|| self.$key.cmp(&other.$key)))+
            }

            fn label(&self) -> String {
                let label: fn(&Self) -> String = $label;
                label(self)
            }
        }

        impl Cumulative for $type {
            fn absorb(&mut self, other: &Self) {
                let Self { $($key: _,)+ $($sum,)+ $($gauge,)* $($least,)* $($reason,)* } = other;
                $(self.$sum.absorb($sum);)+
                $(self.$gauge.absorb($gauge);)*
                $(if *$least < self.$least { self.$least.clone_from($least); })*
                $(merge_texts(&mut self.$reason, $reason);)*
            }

            fn since(&self, earlier: &Self) -> Option<Self> {
                Some(Self {
                    $($key: self.$key.clone(),)+
                    $($sum: self.$sum.since(&earlier.$sum)?,)+
                    $($gauge: self.$gauge,)*
                    $($least: self.$least.clone(),)*
                    $($reason: {
                        // What either instant could not tell, the difference cannot.
                        let mut reasons = self.$reason.clone();
                        merge_texts(&mut reasons, &earlier.$reason);
                        reasons
                    },)*
                })
            }
        }
    };
}

row! {
    EventReading as |row| format!("event {} ({})", row.name, word(&row.actor));
    key name actor; sums timeouts waits; gauges; least class; reasons
}
row! {
    TimedReading as |row| format!("timed event {} ({})", row.name, word(&row.actor));
    key name actor; sums waits wait_ns; gauges; least class source; reasons
}
row! {
    BucketReading as |row| format!("buckets of {}", row.name);
    key name; sums waits; gauges; least source; reasons
}
row! {
    RequestReading as |row| format!("requests {} ({})", row.event, word(&row.direction));
    key event direction; sums bytes completions; gauges; least; reasons
}
row! {
    IoReading as |row| format!("io {}, {}", row.function, row.file_type);
    key function file_type;
    sums small_read_requests large_read_requests read_bytes small_write_requests large_write_requests write_bytes waits wait_ns;
    gauges; least; reasons na
}
row! {
    PathReading as |row| format!("path {}, {}, {}", row.path, row.file_type, row.device);
    key path file_type device; sums read_requests read_bytes write_requests write_bytes;
    gauges; least; reasons
}
row! {
    DiskReading as |row| format!("disk {}", row.name);
    key name;
    sums reads read_merges read_bytes read_ns writes write_merges write_bytes write_ns busy_ns weighted_ns flushes flush_ns discard_ns;
    gauges in_flight devices; least; reasons
}
row! {
    NetReading as |row| format!("net {}", row.name);
    key name; sums rx_bytes rx_packets tx_bytes tx_packets errors; gauges; least; reasons
}
row! {
    OpReading as |row| format!("ops {}", row.kind);
    key kind; sums rows service response; gauges; least; reasons
}

/// A variant of one word as messages have it.
fn word(variant: &impl std::fmt::Debug) -> String {
    format!("{variant:?}").to_lowercase()
}

/// [`DriverReading`]'s numbers: sums, and gauges, which are added and keep the value of now.
macro_rules! driver {
    (sums $($sum:ident)+; gauges $($gauge:ident)+) => {
        impl DriverReading {
            /// Adds the counts of another thread or host.
            pub fn merge(&mut self, other: &Self) {
                let Self { ops, errors, retried, by_kind, schedule_lag, resets, $($sum,)+ $($gauge,)+ } = other;
                merge_rows(&mut self.ops, ops);
                merge_sums(&mut self.errors, errors);
                merge_sums(&mut self.retried, retried);
                merge_sums(&mut self.by_kind, by_kind);
                self.schedule_lag.merge(schedule_lag);
                self.resets.extend(resets.iter().cloned());
                $(self.$sum.absorb($sum);)+
                $(self.$gauge.absorb($gauge);)+
            }

            /// What was counted since `earlier`. Sessions, threads and operations in flight
            /// keep the values of now. A field that went backwards is 0, a kind of operation
            /// that did so is left out, and both are named in [`DriverReading::resets`].
            #[must_use]
            pub fn difference(&self, earlier: &Self) -> Self {
                let mut resets = self.resets.clone();
                Self {
                    ops: rows_since(&self.ops, &earlier.ops, &mut resets),
                    errors: sums_since(&self.errors, &earlier.errors, |class| {
                        resets.insert(format!("errors {class}"));
                    }),
                    retried: sums_since(&self.retried, &earlier.retried, |class| {
                        resets.insert(format!("retried {class}"));
                    }),
                    by_kind: sums_since(&self.by_kind, &earlier.by_kind, |what| {
                        resets.insert(format!("by kind {what}"));
                    }),
                    schedule_lag: or_reset("schedule_lag", self.schedule_lag.since(&earlier.schedule_lag), &mut resets),
                    $($sum: or_reset(stringify!($sum), self.$sum.since(&earlier.$sum), &mut resets),)+
                    $($gauge: self.$gauge,)+
                    resets,
                }
            }
        }
    };
}

driver! {
    sums retries hot_spot_hits hot_schema_hits think_count think_ns busy_ns dropped thread_cpu_ns thread_run_delay_ns;
    gauges sessions_active in_flight in_flight_ns threads
}

/// Nothing, and a name, for what went backwards.
fn or_reset<T: Default>(field: &str, since: Option<T>, resets: &mut BTreeSet<String>) -> T {
    since.unwrap_or_else(|| {
        resets.insert(field.to_owned());
        T::default()
    })
}

impl DriverReading {
    /// Operations ended, all kinds.
    #[must_use]
    pub fn ops_ended(&self) -> u64 {
        self.ops.iter().map(|op| op.service.count()).sum()
    }

    /// Service times of all kinds together.
    #[must_use]
    pub fn service(&self) -> Histogram {
        self.ops.iter().fold(Histogram::default(), |mut all, op| {
            all.merge(&op.service);
            all
        })
    }
}

impl HostReading {
    /// Adds another host: times, counts and sizes are added. A value that one of the two lacks is unknown for both
    /// together; an entirely empty reading is not a host and changes nothing.
    pub fn merge(&mut self, other: &Self) {
        if *other == Self::default() {
            self.sort();
            return;
        }
        if *self == Self::default() {
            self.clone_from(other);
            self.sort();
            return;
        }
        let Self {
            hosts,
            cpu_ns,
            cpus,
            context_switches,
            procs_running,
            load,
            memory_bytes,
            psi_ns,
            vmstat,
            disks,
            nets,
            process_read_bytes,
            process_write_bytes,
            process_cpu_ns,
            process_rss_bytes,
            cgroup_throttled_ns,
            usable_millicpus,
        } = other;
        self.hosts = self.hosts.max(1).saturating_add((*hosts).max(1));
        self.cpu_ns = zip(self.cpu_ns, *cpu_ns, |mine, more| std::array::from_fn(|i| mine[i].saturating_add(more[i])));
        self.load = zip(self.load, *load, |mine, more| std::array::from_fn(|i| add_hundredths(mine[i], more[i])));
        add(&mut self.cpus, *cpus);
        add(&mut self.context_switches, *context_switches);
        add(&mut self.procs_running, *procs_running);
        add(&mut self.process_read_bytes, *process_read_bytes);
        add(&mut self.process_write_bytes, *process_write_bytes);
        add(&mut self.process_cpu_ns, *process_cpu_ns);
        add(&mut self.process_rss_bytes, *process_rss_bytes);
        add(&mut self.cgroup_throttled_ns, *cgroup_throttled_ns);
        add(&mut self.usable_millicpus, *usable_millicpus);
        for (mine, more) in
            [(&mut self.memory_bytes, memory_bytes), (&mut self.psi_ns, psi_ns), (&mut self.vmstat, vmstat)]
        {
            mine.retain(|name, _| more.contains_key(name));
            let known = |&(name, _): &(&String, &u64)| mine.contains_key(name);
            let known: BTreeMap<_, _> = more.iter().filter(known).collect();
            for (name, value) in mine.iter_mut() {
                *value = value.saturating_add(*known[name]);
            }
        }
        merge_rows(&mut self.disks, disks);
        merge_rows(&mut self.nets, nets);
    }

    /// What was counted since `earlier`. Gauges (CPUs, runnable tasks, load, memory sizes, resident memory, requests in
    /// flight) keep the values of now. Values that went backwards, or were unknown at either instant, are absent: n/a,
    /// not 0. Idle and iowait may run backwards a little (proc_stat(5)) and then count as 0.
    #[must_use]
    pub fn difference(&self, earlier: &Self) -> Self {
        let since = |now: Option<u64>, old: Option<u64>| now?.checked_sub(old?);
        // Whatever is missing in a map or a table is n/a; its name need not be kept.
        let mut gone = BTreeSet::new();
        Self {
            hosts: self.hosts,
            cpu_ns: cpu_since(self.cpu_ns, earlier.cpu_ns),
            cpus: self.cpus,
            context_switches: since(self.context_switches, earlier.context_switches),
            procs_running: self.procs_running,
            load: self.load,
            memory_bytes: self.memory_bytes.clone(),
            psi_ns: known_since(&self.psi_ns, &earlier.psi_ns),
            vmstat: known_since(&self.vmstat, &earlier.vmstat),
            disks: rows_since(&self.disks, &earlier.disks, &mut gone),
            nets: rows_since(&self.nets, &earlier.nets, &mut gone),
            process_read_bytes: since(self.process_read_bytes, earlier.process_read_bytes),
            process_write_bytes: since(self.process_write_bytes, earlier.process_write_bytes),
            process_cpu_ns: since(self.process_cpu_ns, earlier.process_cpu_ns),
            process_rss_bytes: self.process_rss_bytes,
            cgroup_throttled_ns: since(self.cgroup_throttled_ns, earlier.cgroup_throttled_ns),
            usable_millicpus: self.usable_millicpus,
        }
    }

    fn sort(&mut self) {
        self.disks.sort_by(|a, b| a.name.cmp(&b.name));
        self.nets.sort_by(|a, b| a.name.cmp(&b.name));
    }
}

impl Snapshot {
    /// Adds a snapshot of another host taken at about the same instant. Instant, wall
    /// time and skew are those of the later, the later and the wider.
    pub fn merge(&mut self, other: &Self) {
        let Self { at_ns, wall, skew_ns, stats, driver, host } = other;
        self.at_ns = self.at_ns.max(*at_ns);
        if *wall > self.wall {
            self.wall.clone_from(wall);
        }
        self.skew_ns = self.skew_ns.max(*skew_ns);
        self.stats.merge(stats);
        self.driver.merge(driver);
        self.host.merge(host);
    }

    /// Everything since `earlier`: `at_ns` is the length of the interval (0 if
    /// `earlier` is later), `wall` the label of its end, `skew_ns` the wider skew.
    #[must_use]
    pub fn difference(&self, earlier: &Self) -> Self {
        Self {
            at_ns: self.at_ns.saturating_sub(earlier.at_ns),
            wall: self.wall.clone(),
            skew_ns: self.skew_ns.max(earlier.skew_ns),
            stats: self.stats.difference(&earlier.stats),
            driver: self.driver.difference(&earlier.driver),
            host: self.host.difference(&earlier.host),
        }
    }
}

fn zip<T>(left: Option<T>, right: Option<T>, both: impl Fn(T, T) -> T) -> Option<T> {
    Some(both(left?, right?))
}

fn add(mine: &mut Option<u64>, more: Option<u64>) {
    *mine = zip(*mine, more, u64::saturating_add);
}

/// Adds load averages, which come with two decimals, without the rounding of
/// floats: the order of addition must not matter.
fn add_hundredths(left: f64, right: f64) -> f64 {
    ((left * 100.0).round() + (right * 100.0).round()) / 100.0
}

/// Adds texts by name. Where two parts say different things, one of them is kept: the lesser, in whichever order
/// the parts come.
fn merge_texts(mine: &mut BTreeMap<String, String>, others: &BTreeMap<String, String>) {
    for (name, text) in others {
        let kept = mine.entry(name.clone()).or_insert_with(|| text.clone());
        if text < kept {
            kept.clone_from(text);
        }
    }
}

fn merge_sums(mine: &mut BTreeMap<String, u64>, others: &BTreeMap<String, u64>) {
    for (name, more) in others {
        let value = mine.entry(name.clone()).or_default();
        *value = value.saturating_add(*more);
    }
}

/// Sums by name since `earlier`, where an absent name means 0.
fn sums_since(
    now: &BTreeMap<String, u64>,
    earlier: &BTreeMap<String, u64>,
    mut reset: impl FnMut(&str),
) -> BTreeMap<String, u64> {
    let mut since = BTreeMap::new();
    for name in now.keys().chain(earlier.keys()) {
        let value = |of: &BTreeMap<String, u64>| of.get(name).copied().unwrap_or(0);
        match value(now).checked_sub(value(earlier)) {
            Some(n) => drop(since.insert(name.clone(), n)),
            None => reset(name),
        }
    }
    since
}

/// Values by name since `earlier`, where an absent name means n/a.
fn known_since(now: &BTreeMap<String, u64>, earlier: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let since = |(name, value): (&String, &u64)| {
        let since = value.checked_sub(*earlier.get(name)?)?;
        Some((name.clone(), since))
    };
    now.iter().filter_map(since).collect()
}

fn cpu_since(now: Option<[u64; 10]>, earlier: Option<[u64; 10]>) -> Option<[u64; 10]> {
    const IDLE: usize = 3;
    const IOWAIT: usize = 4;
    let (now, earlier) = (now?, earlier?);
    let mut since = [0; 10];
    for (i, value) in since.iter_mut().enumerate() {
        *value = match now[i].checked_sub(earlier[i]) {
            None if i == IDLE || i == IOWAIT => 0,
            other => other?,
        };
    }
    Some(since)
}
