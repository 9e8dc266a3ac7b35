//! What kept a workload from doing more: the host, a limit somebody set, the load asked for, or what its sessions waited for.
//!
//! What took the sessions' time decides. A load that was asked for and done is no limit of the platform; a limit somebody set that
//! the run itself reached comes before what it makes slow. Then the largest share of the sessions' time tells, by class of wait,
//! on a CPU, or ready to run without one: a busy host is told beside it with what it cost, and comes first only where that is
//! the largest share. A share that has no name in an import is no limit, and neither is a smaller one beside it.

use super::time::{beyond, cpu_pct, on_cpu_words};
use crate::rules;
use crate::waits::{is_lock, is_log, is_read, is_writer};
use assay_measure::kind::Limit;
use assay_measure::record::metric::find;
use assay_measure::record::{DiskRow, EventRow, Figure, Record};
use assay_measure::units::{fixed, readable, short, thousands};
use assay_measure::{cap, cpu};

/// A device that is busy for less of the time has room, %.
const DEVICE_BUSY_PCT: f64 = 90.0;
/// Driver threads that are on a CPU for more of the time have none left, %.
const THREADS_BUSY_PCT: f64 = 85.0;
/// Below this share of the sessions' time nothing is called the limit, %.
const LEAST_PCT: f64 = 30.0;

/// The limit of a run of a workload, or of what another tool says of one.
pub(super) fn of(record: &Record) -> Limit {
    let host = cpu::host(record, cpu::delayed_pct(record));
    if let Some(limit) = asked(record) {
        // A rate that was kept says nothing of what else the host did meanwhile.
        return Limit {
            evidence: [limit.evidence, host.map_or_else(String::new, |host| host.limit.evidence)]
                .join(" ")
                .trim_end()
                .to_owned(),
            ..limit
        };
    }
    if let Some(cap) = record.advice.iter().find(|advice| advice.id == "R12") {
        return cpu::capped(host, Limit::new("a limit set on the device", cap.text.clone()));
    }
    if let Some(cap) = cap::of(record) {
        return cpu::capped(host, cap.limit());
    }
    let Some(shares) = shares(record) else {
        return host.map_or_else(|| Limit::unknown("the time of the sessions is unknown"), |host| host.limit);
    };
    let Some(most) = shares.iter().max_by(|a, b| a.pct.total_cmp(&b.pct)) else {
        return Limit::unknown("the sessions took no time");
    };
    // Who has the CPUs decides where they are what the sessions spend their time on.
    if let Some(host) = host.clone().filter(|_| most.name == on_cpu_words(record)) {
        return host.limit;
    }
    cpu::weighed(host, most.pct, largest_share(record, &shares, most))
}

/// The limit by the share that is the largest.
fn largest_share(record: &Record, shares: &[Share], most: &Share) -> Limit {
    if let Some(limit) = hardly_any(record).or_else(|| without_name(record, shares, most)) {
        return limit;
    }
    if most.pct < LEAST_PCT {
        let evidence = format!("The largest share of the sessions' time is {} %, {}.", fixed(most.pct, 0), most.name);
        return Limit::new("nothing in particular", evidence);
    }
    (most.told)(record, most)
}

/// Of an import that prints only some waits: what has no name is more than any share that has one.
fn without_name(record: &Record, shares: &[Share], most: &Share) -> Option<Limit> {
    record.import.as_ref()?;
    let named: f64 = shares.iter().map(|share| share.pct).sum();
    let unnamed = 100.0 - named;
    (unnamed > most.pct).then(|| {
        let is_known = |share: &&Share| share.pct > 0.0;
        let known = shares.iter().filter(is_known).map(|share| format!("{} % is {}", fixed(share.pct, 0), share.name));
        let known: Vec<String> = known.collect();
        let waits = record.instance.events.iter().filter(|event| event.actor == "foreground");
        let no_wait = if waits.count() == 0 { "; no wait was printed" } else { "" };
        let told = match known.as_slice() {
            [] => String::new(),
            all => format!("{}{no_wait}, ", all.join(", ")),
        };
        Limit::unknown(&format!("of the sessions' time {told}{} % has no name", fixed(unnamed, 0)))
    })
}

/// An imported instance whose sessions were almost always idle: what they waited for then limits nothing.
fn hardly_any(record: &Record) -> Option<Limit> {
    const FEW: f64 = 0.5;
    record.import.as_ref()?;
    let time_us = record.instance.time_model.db_time_us.value()?;
    let active = time_us / 1e6 / record.interval.elapsed_s.value().filter(|s| *s > 0.0)?;
    let mean = (record.interval.sessions_begin_count.value()? + record.interval.sessions_end_count.value()?) / 2.0;
    // One session that works all the time is a test of its own.
    (active < FEW && mean > 1.0).then(|| {
        Limit::new(
            "nothing: the sessions were almost always idle",
            format!("{} of {} sessions were active on average.", fixed(active, 2), fixed(mean, 0)),
        )
    })
}

/// A load below what the platform can do: a rate that was kept, or sessions that mostly think.
fn asked(record: &Record) -> Option<Limit> {
    let rate = rules::setting(record, "RATE").and_then(|value| value.parse::<f64>().ok());
    let done = find(&record.metrics, "ops_per_s").and_then(|metric| metric.value.value());
    if let (Some(rate), Some(done)) = (rate.filter(|rate| *rate > 0.0), done)
        && done >= 0.98 * rate
    {
        return Some(Limit::new(
            "the requested rate",
            format!(
                "RATE asks for {} operations/s and the run did {}: the platform kept up, and assay did not try more.",
                short(rate),
                short(done)
            ),
        ));
    }
    let think = record.driver.think_s.value().unwrap_or(0.0);
    let busy = record.driver.busy_s.value().unwrap_or(0.0);
    (think > busy).then(|| {
        Limit::new(
            "the think time asked for",
            format!(
                "Sessions thought for {} % of their time and worked for {} %.",
                fixed(100.0 * think / (think + busy), 0),
                fixed(100.0 * busy / (think + busy), 0)
            ),
        )
    })
}

/// What sessions spend their time on.
#[derive(Debug)]
struct Share {
    name: &'static str,
    pct: f64,
    told: fn(&Record, &Share) -> Limit,
}

/// A sort of wait: its name, whether an event is one, the classes whose other waits are of it, and what is said where it is
/// the limit.
type Sort = (&'static str, fn(&EventRow) -> bool, &'static [&'static str], fn(&Record, &Share) -> Limit);

const SORTS: [Sort; 11] = [
    ("waiting for reads", is_read, &["User I/O"], reads),
    ("waiting for the log", is_log, &["Commit"], log),
    ("waiting for other sessions", is_lock, &["Concurrency", "Application"], locks),
    ("waiting for a free buffer", is_writer, &[], writer),
    ("waiting for the network", |event| event.class == "Network", &["Network"], network),
    ("waiting for other instances of the cluster", |event| event.class == "Cluster", &["Cluster"], cluster),
    (SCHEDULED, |event| event.class == "Scheduler", &["Scheduler"], scheduler),
    (
        "waiting for the instance's own I/O",
        |event| event.class == "System I/O" && !is_log(event),
        &["System I/O"],
        |r, share| of_class(r, share, "the instance's own I/O (wait class System I/O)", "System I/O"),
    ),
    (
        "waiting for an administrator's work",
        |event| event.class == "Administrative",
        &["Administrative"],
        |r, share| of_class(r, share, "work of an administrator (wait class Administrative)", "Administrative"),
    ),
    (
        "waiting for what a setting limits",
        |event| event.class == "Configuration" && !is_writer(event) && !is_log(event),
        &["Configuration"],
        |r, share| of_class(r, share, "a setting of the instance (wait class Configuration)", "Configuration"),
    ),
    (
        "waiting for something else",
        |event| ["Other", "Queueing"].contains(&event.class.as_str()) && !is_lock(event) && !is_log(event),
        &["Other", "Queueing"],
        |r, share| of_class(r, share, "waits of the class Other", "Other"),
    ),
];

/// What sessions wait for that the resource manager keeps off the CPU.
const SCHEDULED: &str = "waiting for the resource manager";

/// Shares of DB time, CPU first; `None` where nothing is known of it. What a table of classes has beyond the events that are printed
/// counts too.
fn shares(record: &Record) -> Option<Vec<Share>> {
    let on_cpu = cpu_pct(record);
    let mut all = Vec::new();
    all.extend(on_cpu.map(|pct| Share { name: on_cpu_words(record), pct, told: cpu_time }));
    let of_events = |is_it: fn(&EventRow) -> bool| -> f64 {
        rules::foreground(record, is_it).filter_map(|event| event.db_time_pct.value()).sum()
    };
    let free = (100.0 - on_cpu.unwrap_or(0.0) - of_events(|event| event.class != "Idle")).max(0.0);
    for (name, is_it, classes, told) in SORTS {
        let pct = of_events(is_it) + classes.iter().map(|class| beyond(record, class)).sum::<f64>().min(free);
        all.push(Share { name, pct, told });
    }
    if on_cpu.is_none() && all.iter().all(|share| share.pct <= 0.0) {
        return None;
    }
    if let Some(on_cpu) = on_cpu.filter(|_| has_all_classes(record)) {
        let waited: f64 = all.iter().skip(1).map(|share| share.pct).sum();
        all.push(Share {
            name: "neither on a CPU nor in a wait that is printed",
            pct: 100.0 - on_cpu - waited,
            told: unattributed,
        });
    }
    Some(all)
}

/// Whether an import prints the foreground's waits by class, so that its events are not only the first few.
fn has_all_classes(record: &Record) -> bool {
    record.import.is_some() && !record.instance.wait_classes.is_empty()
}

/// The event of a sort with most time.
fn largest(record: &Record, is_it: impl Fn(&EventRow) -> bool) -> Option<&EventRow> {
    let pct = |event: &&EventRow| event.db_time_pct.value().unwrap_or(0.0);
    let events = rules::foreground(record, is_it);
    events.max_by(|a, b| pct(a).total_cmp(&pct(b)))
}

/// `db file sequential read is 97 % of the sessions' time, 174 us each.`
fn told(event: &EventRow) -> String {
    // Waits that began before the window are counted whole in it, so that long ones can come to more than the time there was.
    let pct = event.db_time_pct.value().unwrap_or(0.0).min(100.0);
    let each = event.us_avg.value().map_or_else(String::new, |us| format!(", {} each on average", time(us)));
    format!("{} is {} % of the sessions' time{each}.", event.name, fixed(pct, 0))
}

/// The dearest event of a sort, after what all of them took where that is more; or the share alone.
fn told_of(record: &Record, share: &Share, is_it: impl Fn(&EventRow) -> bool) -> String {
    let all = format!("{} % of the sessions' time is {}", fixed(share.pct.min(100.0), 0), share.name);
    match largest(record, is_it) {
        None => all + ".",
        // More than rounding.
        Some(event) if share.pct.min(100.0) >= event.db_time_pct.value().unwrap_or(0.0) + 1.0 => {
            format!("{all}. Of it, {}", told(event))
        }
        Some(event) => told(event),
    }
}

fn reads(record: &Record, share: &Share) -> Limit {
    let event = told_of(record, share, is_read);
    if let Some(ratio) = from_device(record).filter(|ratio| *ratio < rules::FROM_DEVICE_LEAST) {
        return Limit::new(
            "reads, most of them from memory",
            format!(
                "{event} {} % of the bytes read came from the page cache, not from a device.",
                fixed(100.0 * (1.0 - ratio), 0)
            ),
        );
    }
    let event = format!("{event}{}", in_device(record));
    let room = cache_share(record)
        .map_or_else(String::new, |pct| format!(" The cache holds {} % of the blocks in use.", fixed(pct, 0)));
    let depth = |disk: &DiskRow| disk.queue_mean_count.value().unwrap_or(0.0);
    let disks = record.os.disk.iter();
    let disk = disks.max_by(|a, b| depth(a).total_cmp(&depth(b)));
    let Some((disk, busy)) = disk.and_then(|disk| Some((disk, disk.busy_pct.value()?))) else {
        return Limit::new("reads", format!("{event}{room}"));
    };
    let in_flight = format!(
        " {} was busy {} % of the time with {} requests in flight.",
        disk.name,
        fixed(busy, 0),
        fixed(depth(disk), 1)
    );
    // More sessions find no CPU on a host that has none free.
    let has_cpu = cpu::shares(record).is_none_or(|shares| shares.busy < cpu::BUSY_PCT);
    let what = if busy >= DEVICE_BUSY_PCT {
        "the device: reads wait for it"
    } else if has_cpu {
        "the latency of single reads: add sessions to raise throughput"
    } else {
        "the latency of single reads"
    };
    Limit::new(what, format!("{event}{in_flight}{room}"))
}

/// Part of the bytes read that came from a device, where it is known.
pub(super) fn from_device(record: &Record) -> Option<f64> {
    rules::delivered(record).ok().flatten().map(|found| found.ratio())
}

/// How much of a read was the device's own time, where both are known.
fn in_device(record: &Record) -> String {
    let known = record.instance.layers.iter().find_map(|row| {
        let engine = row.engine.latency.us_avg.value().filter(|_| row.request.contains("read"))?;
        let device = row.device.latency.us_avg.value().filter(|us| *us > 0.0 && *us <= engine)?;
        Some((engine, device))
    });
    known.map_or_else(String::new, |(engine, device)| {
        format!(" The device itself took {} of {}.", time(device), time(engine))
    })
}

/// In the unit that reads best.
fn time(us: f64) -> String {
    let (factor, unit) = readable(us, "us");
    format!("{} {unit}", short(us / factor))
}

/// How much of what the sessions use the cache can hold, %, where that is less than all.
fn cache_share(record: &Record) -> Option<f64> {
    let cache = record.checks.cache_blocks.value()?;
    let active = record.checks.active_blocks.value().filter(|blocks| *blocks > 0.0)?;
    Some(100.0 * cache / active).filter(|pct| *pct < 100.0)
}

fn log(record: &Record, share: &Share) -> Limit {
    let event = largest(record, is_log);
    let text = told_of(record, share, is_log);
    if event.is_some_and(|event| event.name.starts_with("log file switch")) {
        Limit::new(
            "the size of the redo log files",
            format!("{text} Sessions wait until a log file can be reused; larger log files avoid this."),
        )
    } else {
        Limit::new("the redo log: commits wait until it is durable", text)
    }
}

fn locks(record: &Record, share: &Share) -> Limit {
    let event = told_of(record, share, is_lock);
    Limit::new("other sessions: they use the same blocks, rows or locks", event)
}

fn writer(record: &Record, share: &Share) -> Limit {
    let event = told_of(record, share, is_writer);
    Limit::new("the writers: sessions wait until a changed block is written", event)
}

fn cluster(record: &Record, share: &Share) -> Limit {
    let event = told_of(record, share, |event| event.class == "Cluster");
    Limit::new("other instances of the cluster: sessions wait for their blocks", event)
}

/// What of DB time is neither CPU nor a wait: on a host without a free CPU Oracle counts so who is ready to run.
fn unattributed(record: &Record, share: &Share) -> Limit {
    let busy = record.os.cpu_pct.get("busy").and_then(Figure::value);
    let told =
        format!("{} % of the sessions' time is neither CPU time nor a wait that is printed", fixed(share.pct, 0));
    match busy {
        Some(pct) if pct >= cpu::BUSY_PCT => Limit::new(
            "time without a name, mostly that of sessions that are ready to run and have no CPU",
            format!("{told}; the host's CPUs were busy {} % of the time.", fixed(pct, 0)),
        ),
        _ => {
            let busy = busy.map_or_else(String::new, |pct| {
                format!("; the host's CPUs were busy {} % of the time, so it had some left", fixed(pct, 0))
            });
            Limit::new(
                "time without a name",
                format!("{told}{busy}. A limit on CPUs (a resource plan, a virtual machine) can make such time."),
            )
        }
    }
}

/// The resource manager, with the CPU time that it leaves.
fn scheduler(record: &Record, share: &Share) -> Limit {
    let event = told_of(record, share, |event| event.class == "Scheduler");
    let cpu =
        cpu_pct(record).map_or_else(String::new, |pct| format!(" {} % is {}.", fixed(pct, 0), on_cpu_words(record)));
    Limit::new("the resource manager: it keeps sessions off the CPU", format!("{event}{cpu}"))
}

/// A class of waits that has one sentence.
fn of_class(record: &Record, share: &Share, what: &str, class: &str) -> Limit {
    Limit::new(what, told_of(record, share, |event| event.class == class))
}

fn network(record: &Record, share: &Share) -> Limit {
    Limit::new("the network or the load generator", told_of(record, share, |event| event.class == "Network"))
}

fn cpu_time(record: &Record, share: &Share) -> Limit {
    /// From here on what the resource manager withheld is told with what it gave, % of the sessions' time.
    const WITHHELD_PCT: f64 = 10.0;
    let scheduled = largest(record, |event| event.class == "Scheduler");
    let withheld = scheduled.and_then(|event| Some((event, event.db_time_pct.value()?)));
    if let Some((event, _)) = withheld.filter(|(_, pct)| *pct >= WITHHELD_PCT) {
        return Limit::new(
            "CPU and the resource manager's limit on it",
            format!("{} % of the sessions' time is spent {}. {}", fixed(share.pct, 0), share.name, told(event)),
        );
    }
    let said = format!("{} % of the sessions' time is spent {}", fixed(share.pct, 0), share.name);
    let sessions = record.run.sessions;
    let cpus = record.os.cpus_count.value().unwrap_or(0.0);
    let threads = record.driver.threads_count;
    let busy = record.driver.thread_cpu_pct.value().unwrap_or(0.0);
    let is_server = record.instance.server.is_some();
    if !is_server && busy >= THREADS_BUSY_PCT && (threads as f64) < cpus {
        return Limit::new(
            "the driver threads: each keeps one CPU busy",
            format!(
                "{said}; {threads} driver threads on {} CPUs were busy {} % of the time. Add DRIVER_THREADS to raise throughput.",
                fixed(cpus, 0),
                fixed(busy, 0)
            ),
        );
    }
    if sessions > 0 && (sessions as f64) < cpus {
        return Limit::new(
            "the number of sessions: each can use one CPU",
            format!(
                "{said}; there were {} sessions on {} CPUs. Add sessions to raise throughput.",
                thousands(sessions),
                fixed(cpus, 0)
            ),
        );
    }
    Limit::new("CPU time of the sessions", format!("{said}."))
}
