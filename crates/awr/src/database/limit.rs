//! What kept a workload from doing more: the host, a limit somebody set, the load asked for, or what its sessions waited for.
//!
//! The order is fixed. A load that was asked for and done is no limit of the platform. Whoever has no CPU waits for everything
//! longer, so the host comes next; a limit somebody set comes before what it makes slow. Only then the largest share of the
//! sessions' time tells.

use crate::rules;
use crate::waits::{is_lock, is_log, is_read, is_writer};
use assay_measure::cpu;
use assay_measure::kind::Limit;
use assay_measure::record::metric::find;
use assay_measure::record::{DiskRow, EventRow, Figure, Record};
use assay_measure::units::{fixed, short, thousands};

/// A device that is busy for less of the time has room, %.
const DEVICE_BUSY_PCT: f64 = 90.0;
/// Driver threads that are on a CPU for more of the time have none left, %.
const THREADS_BUSY_PCT: f64 = 85.0;
/// Below this share of the sessions' time nothing is called the limit, %.
const LEAST_PCT: f64 = 30.0;
/// From here on most of the server's reads came from memory, %.
const PAGE_CACHE_PCT: f64 = 50.0;

/// The limit of a run of a workload, or of what another tool says of one.
pub(super) fn of(record: &Record) -> Limit {
    let host = cpu::limit(record);
    if let Some(limit) = asked(record) {
        // A rate that was kept says nothing of what else the host did meanwhile.
        return Limit {
            evidence: [limit.evidence, host.map_or_else(String::new, |host| host.evidence)]
                .join(" ")
                .trim_end()
                .to_owned(),
            ..limit
        };
    }
    if let Some(limit) = host {
        return limit;
    }
    if let Some(cap) = record.advice.iter().find(|advice| advice.id == "R12") {
        return Limit::new("a limit set on the device", cap.text.clone());
    }
    let Some(shares) = shares(record) else {
        return Limit::unknown("the time of the sessions is unknown");
    };
    let Some(most) = shares.iter().max_by(|a, b| a.pct.total_cmp(&b.pct)) else {
        return Limit::unknown("the sessions took no time");
    };
    if let Some(limit) = hardly_any(record) {
        return limit;
    }
    if most.pct < LEAST_PCT {
        let evidence = format!("The largest share of the sessions' time is {} %, {}.", fixed(most.pct, 0), most.name);
        return Limit::new("nothing in particular", evidence);
    }
    (most.told)(record, most)
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
struct Share {
    name: &'static str,
    pct: f64,
    told: fn(&Record, &Share) -> Limit,
}

/// A sort of wait: its name, whether an event is one, and what is said where it is the limit.
type Sort = (&'static str, fn(&EventRow) -> bool, fn(&Record, &Share) -> Limit);

const SORTS: [Sort; 6] = [
    ("waiting for reads", is_read, reads),
    ("waiting for the log", is_log, log),
    ("waiting for other sessions", is_lock, locks),
    ("waiting for a free buffer", is_writer, writer),
    ("waiting for the network", |event| event.class == "Network", network),
    ("waiting for other instances of the cluster", |event| event.class == "Cluster", cluster),
];

/// Shares of DB time, CPU first; `None` where no DB time is known.
fn shares(record: &Record) -> Option<Vec<Share>> {
    let (on_cpu, _) = rules::on_cpu(record).ok()??;
    let mut all = vec![Share { name: on_cpu_words(record), pct: on_cpu, told: cpu_time }];
    for (name, is_it, told) in SORTS {
        let pct = rules::share(record, is_it).ok()?;
        all.push(Share { name, pct, told });
    }
    if has_all_classes(record) {
        let waited = rules::share(record, |event| event.class != "Idle").ok()?;
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

/// What the share on CPUs holds: only who counts a run queue knows who waited for a CPU.
fn on_cpu_words(record: &Record) -> &'static str {
    if record.import.is_some() && record.instance.time_model.run_queue_us.value().is_none() {
        "on a CPU"
    } else {
        "on a CPU or waiting for one"
    }
}

/// The event of a sort with most time.
fn largest(record: &Record, is_it: fn(&EventRow) -> bool) -> Option<&EventRow> {
    let pct = |event: &&EventRow| event.db_time_pct.value().unwrap_or(0.0);
    let events = rules::foreground(record, is_it);
    events.max_by(|a, b| pct(a).total_cmp(&pct(b)))
}

/// Longer waits are told in seconds.
const SECOND_US: f64 = 1e6;

/// `db file sequential read is 97 % of the sessions' time, 174 us each.`
fn told(event: &EventRow) -> String {
    // Waits that began before the window are counted whole in it, so that long ones can come to more than the time there was.
    let pct = event.db_time_pct.value().unwrap_or(0.0).min(100.0);
    let each = event.us_avg.value().map_or_else(String::new, |us| {
        let each = if us < SECOND_US { format!("{} us", short(us)) } else { format!("{} s", short(us / SECOND_US)) };
        format!(", {each} each on average")
    });
    format!("{} is {} % of the sessions' time{each}.", event.name, fixed(pct, 0))
}

fn reads(record: &Record, _: &Share) -> Limit {
    let event = largest(record, is_read).map_or_else(String::new, told);
    let sources = record.instance.reads.as_ref();
    let cached = sources.and_then(|reads| reads.page_cache_pct.value());
    if let Some(pct) = cached.filter(|pct| *pct >= PAGE_CACHE_PCT) {
        return Limit::new(
            "reads, most of them from memory",
            format!(
                "{event} {} % of the blocks that the server read came from the page cache, not from the device.",
                fixed(pct, 0)
            ),
        );
    }
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
    let what = if busy < DEVICE_BUSY_PCT {
        "the latency of single reads: add sessions to raise throughput"
    } else {
        "the device: reads wait for it"
    };
    Limit::new(what, format!("{event}{in_flight}{room}"))
}

/// How much of what the sessions use the cache can hold, %, where that is less than all.
fn cache_share(record: &Record) -> Option<f64> {
    let cache = record.checks.cache_blocks.value()?;
    let active = record.checks.active_blocks.value().filter(|blocks| *blocks > 0.0)?;
    Some(100.0 * cache / active).filter(|pct| *pct < 100.0)
}

fn log(record: &Record, _: &Share) -> Limit {
    let event = largest(record, is_log);
    let text = event.map_or_else(String::new, told);
    if event.is_some_and(|event| event.name.starts_with("log file switch")) {
        Limit::new(
            "the size of the redo log files",
            format!("{text} Sessions wait until a log file can be reused; larger log files avoid this."),
        )
    } else {
        Limit::new("the redo log: commits wait until it is durable", text)
    }
}

fn locks(record: &Record, _: &Share) -> Limit {
    let event = largest(record, is_lock).map_or_else(String::new, told);
    Limit::new("other sessions: they use the same blocks or rows", event)
}

fn writer(record: &Record, _: &Share) -> Limit {
    let event = largest(record, is_writer).map_or_else(String::new, told);
    Limit::new("the writers: sessions wait until a changed block is written", event)
}

fn cluster(record: &Record, _: &Share) -> Limit {
    let event = largest(record, |event| event.class == "Cluster").map_or_else(String::new, told);
    Limit::new("other instances of the cluster: sessions wait for their blocks", event)
}

/// What of DB time is neither CPU nor a wait: Oracle counts so who is ready to run and has no CPU.
fn unattributed(record: &Record, share: &Share) -> Limit {
    let busy = record.os.cpu_pct.get("busy").and_then(Figure::value);
    let busy =
        busy.map_or_else(String::new, |pct| format!("; the host's CPUs were busy {} % of the time", fixed(pct, 0)));
    Limit::new(
        "time without a name, mostly that of sessions that are ready to run and have no CPU",
        format!(
            "{} % of the sessions' time is neither CPU time nor a wait that is printed{busy}. A limit on CPUs (a resource \
             plan, a virtual machine) makes such time on a host that is not busy.",
            fixed(share.pct, 0)
        ),
    )
}

fn network(record: &Record, share: &Share) -> Limit {
    let event = largest(record, |event| event.class == "Network");
    let otherwise = || format!("{} % of the sessions' time.", fixed(share.pct, 0));
    Limit::new("the network or the load generator", event.map_or_else(otherwise, told))
}

fn cpu_time(record: &Record, share: &Share) -> Limit {
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
