//! Identities that the readings of a storage probe must satisfy, checked on every run.
//!
//! Each rule is judged for every job or group to which it applies; the one that is furthest off represents all and is
//! named. docs/design/io-record.md lists them with their reasons.

use super::options::Options;
use super::rows::{ios_of, ways};
use crate::readings::{CloneReading, DIRECTIONS, JobReading, StorageReadings, Way, WayReading};
use assay_measure::identity::{IdentityRule, Scope, Side};
use assay_measure::record::{Identity, Truth};

/// Maximum relative deviation from Little's law.
const LITTLE: f64 = 0.02;
/// A kernel that accounts CPU time by ticks may credit a clone with this much too much, ns.
const TICKS_NS: f64 = 20e6;

/// A job with its clones.
struct StorageJob<'a> {
    reading: &'a JobReading,
    options: Options<'a>,
    clones: Vec<&'a CloneReading>,
    /// Its directions, merged.
    ways: [WayReading; DIRECTIONS],
}

/// One verdict and its deviation, relative to the tolerance or to the two sides.
type Verdict = (String, Identity);

/// All rules, in order.
pub(super) fn evaluate(readings: &StorageReadings) -> Vec<Identity> {
    let jobs: Vec<StorageJob<'_>> = (0..readings.jobs.len()).map(|at| job(readings, at)).collect();
    let each = |rule: IdentityRule, sides: &dyn Fn(&StorageJob<'_>, IdentityRule) -> Identity| {
        let verdicts = jobs.iter();
        let named = verdicts.map(|job| (job.reading.name.clone(), sides(job, rule)));
        worst(rule, named.collect())
    };
    let whole = Scope::Whole;
    vec![
        each(IdentityRule::exact("IO1", whole, "latencies counted = I/Os ended"), &counted),
        each(IdentityRule::exact("IO2", whole, "sum of lat = sum of slat + sum of clat"), &parts),
        each(IdentityRule::exact("IO3", whole, "bytes = I/Os x block size"), &bytes),
        seconds(readings),
        each(IdentityRule::within("IO5", whole, "depths counted = I/Os submitted", 0.0), &depths),
        each(IdentityRule::within("IO6", whole, "syncs = writes / N", 0.0), &syncs),
        each(
            IdentityRule::within("IO7", whole, "I/Os in flight as counted = IOPS x mean lat (Little's law)", 0.0),
            &little,
        ),
        each(
            IdentityRule::within(
                "IO8",
                whole,
                "IOPS x mean lat = depth x clones of a saturating job (Little's law)",
                0.0,
            ),
            &saturated,
        ),
        each(
            IdentityRule::within("IO9", whole, "time in lat <= time in response, from due to done", 0.0).at_most(),
            &responses,
        ),
        each(IdentityRule::within("IO10", whole, "CPU of the clones <= their time", 0.0).at_most(), &cpu),
        process(readings),
    ]
}

fn job(readings: &StorageReadings, at: usize) -> StorageJob<'_> {
    let reading = &readings.jobs[at];
    let clones = readings.clones.iter().filter(|clone| clone.job == at);
    StorageJob {
        reading,
        options: Options::of(readings, reading),
        clones: clones.collect(),
        ways: ways(readings, |clone| clone.job == at).map(|(way, _)| way),
    }
}

/// The verdict that represents all: the violated one with the largest deviation, else one that holds, else n/a.
fn worst(rule: IdentityRule, verdicts: Vec<Verdict>) -> Identity {
    let rank = |identity: &Identity| match &identity.ok {
        Truth::Violated => 2,
        Truth::Holds => 1,
        Truth::Na(_) => 0,
    };
    let off = |identity: &Identity| identity.rel_err.value().map_or(0.0, f64::abs);
    let several = verdicts.len() > 1;
    let chosen = verdicts.into_iter().max_by(|(_, a), (_, b)| {
        let by_rank = rank(a).cmp(&rank(b));
        by_rank.then(off(a).total_cmp(&off(b)))
    });
    let Some((name, mut identity)) = chosen else {
        return rule.unknown("no jobs");
    };
    if several && rank(&identity) > 0 {
        identity.sentence = format!("{} (furthest off: {name})", identity.sentence);
    }
    identity
}

impl StorageJob<'_> {
    fn sum(&self, of: impl Fn(&WayReading) -> u64) -> f64 {
        self.ways.iter().map(of).sum::<u64>() as f64
    }

    fn runtime_ns(&self) -> f64 {
        let runtimes = self.clones.iter().map(|clone| clone.runtime_ns as f64);
        runtimes.fold(0.0, f64::max)
    }

    /// I/Os that can be in flight at a border of the measured time.
    fn at_the_ends(&self) -> f64 {
        self.options.depth() as f64 * self.clones.len() as f64
    }

    fn errors(&self) -> f64 {
        let passed = self.clones.iter().map(|clone| clone.errors_passed);
        let ended = self.clones.iter().filter(|clone| clone.error != 0);
        passed.sum::<u64>() as f64 + ended.count() as f64
    }
}

/// IO1: for each kind of latency that was taken.
fn counted(job: &StorageJob<'_>, rule: IdentityRule) -> Identity {
    let label = &job.reading.label;
    let ios = job.sum(|way| way.ios);
    let kinds = [
        (!label.no_lat, job.sum(|way| way.lat.histogram.count())),
        (!label.no_clat, job.sum(|way| way.clat.histogram.count())),
        (
            !label.no_slat && !label.synchronous,
            // A trim has none: one call submits and completes it.
            job.sum(|way| way.slat.histogram.count()) + job.ways[Way::Trim.index()].ios as f64,
        ),
    ];
    let taken = kinds.into_iter().filter(|(taken, _)| *taken);
    let furthest = taken.max_by(|a, b| (a.1 - ios).abs().total_cmp(&(b.1 - ios).abs()));
    let lhs = furthest.map(|(_, count)| count);
    rule.compare(lhs.ok_or_else(|| "no latencies were taken".to_owned()), Ok(ios))
}

/// IO2, in ns over all I/Os.
fn parts(job: &StorageJob<'_>, rule: IdentityRule) -> Identity {
    let label = &job.reading.label;
    if label.synchronous {
        return rule.unknown("submission and completion are one call");
    }
    if label.no_lat || label.no_clat || label.no_slat {
        return rule.unknown("not all three were taken");
    }
    let slat = job.sum(|way| way.slat.histogram.sum_ns());
    let clat = job.sum(|way| way.clat.histogram.sum_ns());
    rule.compare(Ok(job.sum(|way| way.lat.histogram.sum_ns())), Ok(slat + clat))
}

/// IO3, for directions with a single block size.
fn bytes(job: &StorageJob<'_>, rule: IdentityRule) -> Identity {
    let (mut lhs, mut rhs) = (0.0, 0.0);
    for (way, (least, most)) in job.ways.iter().zip(job.reading.label.block_bytes) {
        if way.ios > 0 && least != most {
            return rule.unknown("I/Os of several sizes");
        }
        lhs += way.bytes as f64;
        rhs += way.ios as f64 * least as f64;
    }
    rule.compare(Ok(lhs), Ok(rhs))
}

/// IO4: the seconds of every group add up to its total.
fn seconds(readings: &StorageReadings) -> Identity {
    let rule = IdentityRule::within("IO4", Scope::Whole, "sum of the I/Os of all seconds = I/Os ended", 0.0);
    if readings.running {
        return rule.unknown("the last second is still open");
    }
    let mut groups: Vec<u32> = readings.jobs.iter().map(|job| job.group).collect();
    groups.dedup();
    let verdict = |group: u32| {
        let in_seconds = readings.seconds.iter().filter(|s| s.group == group);
        let in_seconds: u64 = in_seconds.flat_map(|second| second.ios).sum();
        let of_group = readings.clones.iter().filter(|clone| {
            let job = readings.jobs.get(clone.job);
            job.is_some_and(|job| job.group == group)
        });
        let total: u64 = of_group.map(ios_of).sum();
        let lhs: Side = match in_seconds {
            0 => Err("no seconds were kept".to_owned()),
            n => Ok(n as f64),
        };
        (format!("group {group}"), rule.compare(lhs, Ok(total as f64)))
    };
    worst(rule, groups.into_iter().map(verdict).collect())
}

/// IO5: I/Os in flight at the borders, failed or verified ones may be missing on one side.
fn depths(job: &StorageJob<'_>, rule: IdentityRule) -> Identity {
    let counted: u64 = job.clones.iter().flat_map(|clone| clone.depths).sum();
    let verified: u64 = job.clones.iter().map(|clone| clone.verified_ios).sum();
    let allowed = job.at_the_ends() + job.errors() + verified as f64;
    let lhs = match counted {
        0 => Err("depths were not counted".to_owned()),
        n => Ok(n as f64),
    };
    rule.tolerating(allowed).compare(lhs, Ok(job.sum(|way| way.ios)))
}

/// IO6: each clone may have started and ended between two syncs, and may end with one.
fn syncs(job: &StorageJob<'_>, rule: IdentityRule) -> Identity {
    let every = |name: &str| job.options.number(&[name]).filter(|n| *n > 0);
    let every = match (every("fsync"), every("fdatasync")) {
        (None, None) => return rule.unknown("no syncs were requested"),
        (Some(_), Some(_)) => return rule.unknown("both fsync and fdatasync were requested"),
        (Some(n), None) | (None, Some(n)) => n as f64,
    };
    let syncs: u64 = job.clones.iter().map(|c| c.sync.histogram.count()).sum();
    let writes = job.ways[1].ios as f64;
    let allowed = job.clones.len() as f64 * (2.0 + job.options.depth() as f64 / every);
    rule.tolerating(allowed).compare(Ok(syncs as f64), Ok(writes / every))
}

/// IO7: both sides are means over the same time, from independent counters.
fn little(job: &StorageJob<'_>, rule: IdentityRule) -> Identity {
    let lat = |way: &WayReading| {
        if way.lat.histogram.is_empty() { way.clat.histogram.sum_ns() } else { way.lat.histogram.sum_ns() }
    };
    let in_flight_ns: f64 = job.clones.iter().map(|c| c.in_flight_ns as f64).sum();
    let runtime_ns = job.runtime_ns();
    let ios = job.sum(|way| way.ios);
    if in_flight_ns == 0.0 || job.sum(lat) == 0.0 || runtime_ns == 0.0 {
        return rule.unknown("not taken");
    }
    let expected = job.sum(lat) / runtime_ns;
    // Latencies of I/Os in flight at the start reach back before it.
    let border = job.at_the_ends() * (job.sum(lat) / ios.max(1.0)) / runtime_ns;
    rule.tolerating(LITTLE * expected + border).compare(Ok(in_flight_ns / runtime_ns), Ok(expected))
}

/// IO8: also checks that the requested depth was reached.
fn saturated(job: &StorageJob<'_>, rule: IdentityRule) -> Identity {
    if let Err(why) = job.options.saturating() {
        return rule.unknown(why);
    }
    let lat_ns = job.sum(|way| way.lat.histogram.sum_ns());
    if lat_ns == 0.0 {
        return rule.unknown("lat was not taken");
    }
    // Each clone over its own time: clones need not start and end together.
    let clones = job.clones.iter().filter(|clone| clone.runtime_ns > 0);
    let found: f64 = clones
        .map(|clone| {
            let lat_ns = clone.ways.iter().map(|way| way.lat.histogram.sum_ns());
            lat_ns.sum::<u64>() as f64 / clone.runtime_ns as f64
        })
        .sum();
    let asked = job.at_the_ends();
    let mean_ns = lat_ns / job.sum(|way| way.ios).max(1.0);
    let border = asked * mean_ns / job.runtime_ns().max(1.0);
    // A thread without a CPU cannot put the next I/O in the place of one that has ended.
    let delay = |clone: &&CloneReading| clone.run_delay_ns as f64 / clone.runtime_ns.max(1) as f64;
    let starved = job.clones.iter().map(delay).sum::<f64>() / job.clones.len().max(1) as f64;
    rule.tolerating((LITTLE + starved) * asked + border).compare(Ok(found), Ok(asked))
}

/// IO9, if a rate was requested.
fn responses(job: &StorageJob<'_>, rule: IdentityRule) -> Identity {
    let rated = || job.ways.iter().filter(|way| way.response.is_some());
    if rated().next().is_none() {
        return rule.unknown("no rate was requested");
    }
    let response: u64 = rated().filter_map(|way| Some(way.response.as_ref()?.histogram.sum_ns())).sum();
    let lat: u64 = rated().map(|way| way.lat.histogram.sum_ns()).sum();
    if lat == 0 {
        return rule.unknown("lat was not taken");
    }
    rule.compare(Ok(lat as f64), Ok(response as f64))
}

/// IO10, in ns.
fn cpu(job: &StorageJob<'_>, rule: IdentityRule) -> Identity {
    let of = |pick: fn(&CloneReading) -> u64| job.clones.iter().map(|c| pick(c)).sum::<u64>();
    let runtime_ns = of(|clone| clone.runtime_ns) as f64;
    let allowed = 0.01 * runtime_ns + TICKS_NS * job.clones.len() as f64;
    rule.tolerating(allowed).compare(Ok(of(|clone| clone.user_ns + clone.system_ns) as f64), Ok(runtime_ns))
}

/// IO11: the clones are threads of the process; in ns.
fn process(readings: &StorageReadings) -> Identity {
    let clones = readings.clones.iter();
    let clones_ns: u64 = clones.map(|clone| clone.user_ns + clone.system_ns).sum();
    let allowed = TICKS_NS * (1 + readings.clones.len()) as f64;
    let process = match readings.process_cpu_ns {
        0 => Err("CPU of the process was not read".to_owned()),
        ns => Ok(ns as f64),
    };
    IdentityRule::within("IO11", Scope::Whole, "CPU of the clones <= CPU of the process", allowed)
        .at_most()
        .compare(Ok(clones_ns as f64), process)
}
