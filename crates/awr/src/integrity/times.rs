//! Identities between times, waits, histograms and rates.

use super::{IdentityRule, Judge as _, Scope, Side, known, moved};
use crate::deltas::Deltas;
use assay_measure::counter_catalog;
use assay_measure::histogram::{Histogram, SLOTS, slot_low_and_width_ns};
use assay_measure::record::{EventRow, Figure, Identity, LoadRow, Record};
use assay_measure::snapshot::{Actor, WaitClass};

/// Times counted twice by two clock readings may differ by so much.
const TIME_RATIO: f64 = 1e-3;
/// And by this, whatever their size, ns.
const TIME_NS: f64 = 1e6;
/// Products and quotients of the same floating-point figures.
const FLOAT_RATIO: f64 = 1e-9;

pub(super) fn identities(deltas: &Deltas<'_>, record: &Record) -> Vec<Identity> {
    let mut all = histograms(deltas, record);
    all.extend(db_time(deltas, record));
    all.extend(wait_sums(deltas, record));
    all.extend(log_times(deltas));
    all.extend(rates(deltas, record));
    all.push(closed_loop(deltas, record));
    all.extend(sampled(deltas, record));
    all
}

/// Every histogram of the run with a name for people.
fn all_histograms<'a>(deltas: &'a Deltas<'_>) -> Vec<(String, &'a Histogram)> {
    let s = &deltas.whole;
    let events = s.stats.events.iter().map(|e| (e.name.clone(), &e.waits));
    let ops = s.driver.ops.iter();
    let ops = ops.map(|op| (op.kind.clone(), &op.service));
    let used = |(_, histogram): &(String, &Histogram)| histogram.count() > 0;
    events.chain(ops).filter(used).collect()
}

fn histograms(deltas: &Deltas<'_>, record: &Record) -> Vec<Identity> {
    let all = all_histograms(deltas);
    let bounds = |histogram: &Histogram| {
        let (mut low, mut high) = (0_u128, 0_u128);
        for (slot, n) in histogram.sparse() {
            let (from, width) = slot_low_and_width_ns(slot as usize);
            low += u128::from(from) * u128::from(n);
            // The last slot is open above; nothing bounds its waits but the longest.
            let to = if slot as usize == SLOTS - 1 {
                histogram.max_ns().unwrap_or(u64::MAX).saturating_add(1)
            } else {
                from + width
            };
            high += u128::from(to) * u128::from(n);
        }
        (low, high)
    };
    let total = |histogram: &Histogram| u128::from(histogram.sum_ns());
    let rule = |id, text| IdentityRule::exact(id, Scope::Whole, text);
    vec![
        rule("I15", "sum of histogram buckets = wait count, every event and kind of operation")
            .tally(deltas, all.iter().map(|(name, h)| (name.clone(), h.pow2_us().iter().sum::<u64>() == h.count()))),
        rule(
            "I16",
            "sum(count x lower bound) <= total time < sum(count x upper bound), every event and kind of operation",
        )
        .tally(
            deltas,
            all.iter().map(|(name, h)| {
                let (low, high) = bounds(h);
                (name.clone(), low <= total(h) && total(h) < high)
            }),
        ),
        IdentityRule::exact("I17", Scope::Window, "average = total / count, every event").tally(
            deltas,
            counted(record).map(|event| {
                let product = event.us_avg.value().unwrap_or(f64::NAN) * event.count.value().unwrap_or(f64::NAN);
                (event.name.clone(), close(Some(product), event.total_us.value(), FLOAT_RATIO))
            }),
        ),
        IdentityRule::exact(
            "I28",
            Scope::Window,
            "average active sessions in an event = waits/s x average wait, every event",
        )
        .tally(
            deltas,
            counted(record).map(|event| {
                let elapsed_s = deltas.window.elapsed_s;
                let sessions = event.total_us.value().map(|us| us / 1e6 / elapsed_s);
                let product =
                    (event.count.value().zip(event.us_avg.value())).map(|(count, avg)| count / elapsed_s * avg / 1e6);
                (event.name.clone(), close(product, sessions, FLOAT_RATIO))
            }),
        ),
        IdentityRule::exact(
            "I37",
            Scope::Whole,
            "percentiles rise and the mean lies between minimum and maximum, every \
            event and kind of operation",
        )
        .tally(deltas, all.iter().map(|(name, h)| (name.clone(), is_ordered(h)))),
    ]
}

/// The events with a count and a time of the same source.
fn counted(record: &Record) -> impl Iterator<Item = &EventRow> {
    let events = record.instance.events.iter();
    events.filter(|event| event.us_avg.value().is_some())
}

fn close(a: Option<f64>, b: Option<f64>, ratio: f64) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= ratio * a.abs().max(b.abs()),
        _ => false,
    }
}

fn is_ordered(histogram: &Histogram) -> bool {
    let known: Vec<u64> = [0.1, 0.5, 0.9, 0.99, 0.999]
        .iter()
        .filter_map(|q| histogram.percentile_ns(*q))
        .chain(histogram.max_ns())
        .collect();
    let mean = histogram.mean_ns().unwrap_or(f64::NAN);
    known.is_sorted()
        && histogram.min_ns().is_some_and(|min| min as f64 <= mean)
        && histogram.max_ns().is_some_and(|max| mean <= max as f64)
}

fn db_time(deltas: &Deltas<'_>, record: &Record) -> Vec<Identity> {
    let (s, w) = (&deltas.whole, &deltas.window);
    let db_time = moved(s, counter_catalog::DB_TIME);
    let parts = || {
        let on_thread = moved(s, counter_catalog::ON_THREAD_TIME)?;
        let queued = moved(s, counter_catalog::RUN_QUEUE_TIME)?;
        Ok::<f64, String>(on_thread + queued + s.wait_ns(Actor::Foreground) as f64)
    };
    let allowed = TIME_RATIO * db_time.clone().unwrap_or(0.0);
    let sessions = deltas.data.sessions as f64;
    let (whole_ns, window_us) = (sessions * s.elapsed_s * 1e9, sessions * w.elapsed_s * 1e6);
    // The threads publish at their own instants, at most the skew apart.
    let skew_us = sessions * w.to.skew_ns.max(w.from.skew_ns) as f64 / 1e3;
    vec![
        IdentityRule::within("I18", Scope::Quiet, "DB time = foreground waits + on thread + run queue (ns)", allowed)
            .judge(deltas, db_time.clone(), parts()),
        IdentityRule::within("I24a", Scope::Quiet, "DB time <= sessions x elapsed (ns)", TIME_RATIO * whole_ns)
            .at_most()
            .judge(deltas, db_time, Ok(whole_ns)),
        IdentityRule::within(
            "I24b",
            Scope::Window,
            "DB time <= sessions x elapsed (us)",
            TIME_RATIO * window_us + skew_us,
        )
        .at_most()
        .judge(deltas, known(record.instance.time_model.db_time_us.clone()), Ok(window_us)),
    ]
}

/// Events against wait classes and against both actors' totals, as the record has them.
fn wait_sums(deltas: &Deltas<'_>, record: &Record) -> Vec<Identity> {
    const ALLOWED_US: f64 = 1000.0;
    let idle = crate::deltas::class_name(WaitClass::Idle);
    let busy = || record.instance.events.iter().filter(|event| event.class != idle);
    let all_us: f64 = busy().filter_map(|event| event.total_us.value()).sum();
    let foreground = busy().filter(|event| event.actor == "foreground");
    let foreground_us: f64 = foreground.filter_map(|event| event.total_us.value()).sum();
    let classes = record.instance.wait_classes.iter().filter(|row| row.class != "DB CPU");
    let class_us: f64 = classes.filter_map(|row| row.total_us.value()).sum();
    let model = &record.instance.time_model;
    vec![
        IdentityRule::within(
            "I19",
            Scope::Window,
            "sum of foreground events = sum of foreground wait classes (us)",
            ALLOWED_US,
        )
        .judge(deltas, Ok(foreground_us), Ok(class_us)),
        IdentityRule::within(
            "I20",
            Scope::Window,
            "non-idle wait time = foreground + background waits (us)",
            ALLOWED_US,
        )
        .judge(deltas, Ok(all_us), known(model.fg_wait_us.plus(&model.bg_wait_us))),
    ]
}

fn log_times(deltas: &Deltas<'_>) -> Vec<Identity> {
    let s = &deltas.whole;
    let waited = |is_it: &dyn Fn(&str) -> bool| -> Side {
        if deltas.is_server() {
            // Its events are the same counters: nothing is there to compare.
            return Err("unsupported".to_owned());
        }
        let events = s.stats.events.iter().filter(|event| is_it(&event.name));
        Ok(events.map(|event| event.waits.sum_ns()).sum::<u64>() as f64)
    };
    let judge = |id, text, stat, waits: Side| {
        let counted = moved(s, stat);
        let allowed = TIME_NS + TIME_RATIO * counted.clone().unwrap_or(0.0);
        IdentityRule::within(id, Scope::Quiet, text, allowed).judge(deltas, counted, waits)
    };
    vec![
        judge(
            "I22a",
            "redo synch time = all log file sync (ns)",
            counter_catalog::REDO_SYNCH_TIME,
            waited(&|name| name == "log file sync"),
        ),
        judge(
            "I22b",
            "redo write time = all log file parallel write (ns)",
            counter_catalog::REDO_WRITE_TIME,
            waited(&|name| name == "log file parallel write"),
        ),
        judge(
            "I23",
            "redo log space wait time = all log file switch events (ns)",
            counter_catalog::REDO_LOG_SPACE_TIME,
            waited(&|name| name.starts_with("log file switch")),
        ),
    ]
}

fn rates(deltas: &Deltas<'_>, record: &Record) -> Vec<Identity> {
    let interval = &record.interval;
    let back = |rate: fn(&LoadRow) -> &Figure, times: &Figure| {
        let times = times.value();
        record
            .instance
            .load_profile
            .iter()
            .filter(move |row| rate(row).value().is_some())
            .map(move |row| {
                let product = rate(row).value().zip(times).map(|(rate, times)| rate * times);
                (row.name.clone(), close(product, row.total.value(), FLOAT_RATIO))
            })
            .collect::<Vec<_>>()
    };
    let rule = |id, text| IdentityRule::exact(id, Scope::Window, text);
    vec![
        rule("I26a", "total = per second x elapsed, every row of the load profile")
            .tally(deltas, back(|row| &row.per_s, &interval.elapsed_s).into_iter()),
        rule("I26b", "total = per transaction x transactions, every row of the load profile")
            .tally(deltas, back(|row| &row.per_tx, &interval.tx_count).into_iter()),
    ]
}

fn closed_loop(deltas: &Deltas<'_>, record: &Record) -> Identity {
    let sessions = known(record.checks.little_expected_sessions.clone());
    let allowed = 0.05 * sessions.clone().unwrap_or(0.0);
    IdentityRule::within(
        "I38",
        Scope::Window,
        "ops/s x (mean service + mean think) = sessions (Little's law, closed loop)",
        allowed,
    )
    .judge(deltas, known(record.checks.little_sessions.clone()), sessions)
}

/// The samples of the activity history against the measured times: what was seen ten times
/// a second and what was timed know nothing of each other.
fn sampled(deltas: &Deltas<'_>, record: &Record) -> Vec<Identity> {
    let ash = &record.instance.ash;
    let measured = known(ash.db_time_measured_s.clone());
    let little = IdentityRule::within(
        "I28b",
        Scope::Window,
        "sampled average active sessions in an event = waits/s x average wait, every foreground event",
        0.0,
    );
    let rule = IdentityRule::within(
        "ASH",
        Scope::Window,
        "sampled DB time = measured DB time (s), within the larger of 5 % and 3 / sqrt(the lesser of ticks and samples)",
        0.0,
    );
    let elapsed_s = deltas.window.elapsed_s;
    let (active, allowed) = match (known(ash.active_count.clone()), known(ash.db_time_allowed_ratio.clone())) {
        (Ok(active), Ok(allowed)) => (active, allowed),
        (Err(reason), _) | (_, Err(reason)) => {
            return [little, rule].map(|rule| rule.judge(deltas, Err(reason.clone()), measured.clone())).into();
        }
    };
    let rule = rule.tolerating(allowed * measured.clone().unwrap_or(0.0));
    let idle = crate::deltas::class_name(WaitClass::Idle);
    // Of a server's session that has its page and waits for a CPU, its own clock says that it waits for the page, the
    // kernel that it could work.
    let queued = if record.instance.server.is_some() { ash.run_queue_count.value().unwrap_or(0.0) } else { 0.0 };
    let foreground = counted(record).filter(|event| event.actor == "foreground" && event.class != idle);
    let verdicts = foreground.map(|event| {
        let row = crate::deltas::sampled_of(ash, &deltas.data.engine_facts, &event.name);
        let sampled = row.map_or(0.0, |row| row.active);
        let count = event.count.value().unwrap_or(0.0);
        let little = count / elapsed_s * event.us_avg.value().unwrap_or(0.0) / 1e6;
        let beyond = if little > sampled { (little - sampled - queued).max(0.0) } else { sampled - little };
        let agrees = beyond <= allowed * active.max(little);
        (event.name.clone(), agrees)
    });
    vec![little.tally(deltas, verdicts), rule.judge(deltas, known(ash.db_time_s.clone()), measured)]
}
