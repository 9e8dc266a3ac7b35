//! What follows from the printed figures: elapsed time, transactions, totals, shares, percentiles.
//!
//! Only figures that the source did not print are derived, and none of them is listed as imported.

use super::Reader;
use crate::draft::Draft;
use assay_measure::plain::slug;
use assay_measure::record::{Figure, LoadRow, Record};
use assay_measure::units::fixed;

/// Fills in what follows, once everything was read.
pub(super) fn all(reader: &mut Reader<'_>) {
    elapsed(reader);
    let draft = &mut *reader.draft;
    let elapsed_s = draft.record.interval.elapsed_s.value();
    transactions(draft, elapsed_s);
    if let Some(elapsed_s) = elapsed_s.filter(|s| *s > 0.0) {
        totals(&mut draft.record, elapsed_s);
        functions(draft, elapsed_s);
    }
    times(draft, elapsed_s);
    shares(&mut draft.record);
    finer_averages(draft);
    averages(&mut draft.record);
    if !reader.is_assay {
        rounded_away(draft);
    }
    by_time(draft);
    cpu(&mut draft.record);
    since_startup(draft);
}

/// A figure with what it may be off by.
#[derive(Clone, Copy)]
struct Known {
    value: f64,
    error: f64,
}

/// Elapsed time as printed, or the finer one that totals and rates of the statistics give.
fn elapsed(reader: &mut Reader<'_>) {
    let draft = &mut *reader.draft;
    let mut best: Option<Known> = None;
    for (key, row) in &draft.record.instance.stats {
        let (Some(total), Some(rate)) = (row.total.value(), row.per_s.value()) else {
            continue;
        };
        let off = |column: &str| draft.rounding("", &format!("{key}{column}"));
        let (Some(of_total), Some(of_rate)) = (off("_total"), off("_per_s")) else {
            continue;
        };
        if total <= 0.0 || rate <= 0.0 {
            continue;
        }
        let value = total / rate;
        let error = value * (of_total / total + of_rate / rate);
        if best.is_none_or(|known| error < known.error) {
            best = Some(Known { value, error });
        }
    }
    let printed = reader.elapsed.take();
    let said = printed.as_ref().and_then(crate::draft::Reading::known);
    let is_finer = best.filter(|best| match said {
        None => best.error < 0.5 * best.value,
        Some((value, rounding)) => best.error < rounding && (best.value - value).abs() <= rounding + best.error,
    });
    match (is_finer, printed) {
        (Some(best), printed) => {
            if let Some(printed) = printed {
                draft.alone(printed);
            }
            draft.record.interval.elapsed_s = Figure::decimal(best.value);
        }
        (None, Some(printed)) => put!(draft, printed, interval.elapsed_s),
        (None, None) => {}
    }
}

/// Commits and rollbacks: as counted, else from figures that are printed per second and per transaction.
fn transactions(draft: &mut Draft, elapsed_s: Option<f64>) {
    let of = |key: &str| draft.record.instance.stats.get(key).map(|row| row.total.clone());
    if let (Some(commits), Some(rollbacks)) = (of("user_commits_count"), of("user_rollbacks_count"))
        && commits.value().is_some()
    {
        draft.record.interval.tx_count = commits.plus(&rollbacks);
        return;
    }
    let Some(rate) = transaction_rate(draft) else {
        return;
    };
    let Some(elapsed_s) = elapsed_s else {
        return;
    };
    let count = rate.value * elapsed_s;
    draft.record.interval.tx_count =
        if rate.error * elapsed_s < 0.5 { Figure::Count(count.round() as u64) } else { Figure::decimal(count) };
}

fn transaction_rate(draft: &Draft) -> Option<Known> {
    let mut best: Option<Known> = None;
    let loads = draft.record.instance.load_profile.iter().map(|row| {
        let stem = super::load::stem(&row.name, &row.unit);
        (stem, &row.per_s, &row.per_tx)
    });
    let stats = draft.record.instance.stats.iter().map(|(key, row)| (key.clone(), &row.per_s, &row.per_tx));
    for (stem, per_s, per_tx) in loads.chain(stats) {
        let (Some(second), Some(tx)) = (per_s.value(), per_tx.value()) else {
            continue;
        };
        let off = |column: &str| draft.rounding("", &format!("{stem}{column}"));
        let (Some(of_second), Some(of_tx)) = (off("_per_s"), off("_per_tx")) else {
            continue;
        };
        if second <= 0.0 || tx <= 0.0 {
            continue;
        }
        let value = second / tx;
        let error = value * (of_second / second + of_tx / tx);
        if best.is_none_or(|known| error < known.error) {
            best = Some(Known { value, error });
        }
    }
    best.filter(|known| known.error < 0.1 * known.value)
}

fn totals(record: &mut Record, elapsed_s: f64) {
    for row in &mut record.instance.load_profile {
        if row.total == Figure::default() {
            row.total = row.per_s.scaled(elapsed_s);
        }
    }
    let rate = |name: &str| {
        let row = record.instance.load_profile.iter().find(|row| row.name == name)?;
        row.per_s.value().map(|rate| Figure::decimal(rate * elapsed_s))
    };
    let counted = |key: &str| record.instance.stats.get(key).map(|row| row.total.clone());
    let execs = counted("execute_count").or_else(|| rate("Executes (SQL)"));
    let calls = counted("user_calls_count").or_else(|| rate("User calls"));
    let ops = rate("Operations");
    for (place, figure) in [
        (&mut record.interval.execs_count, execs),
        (&mut record.interval.calls_count, calls),
        (&mut record.interval.ops_count, ops),
    ] {
        if let Some(figure) = figure.filter(|_| place.reason() == Some("absent")) {
            *place = figure;
        }
    }
    for row in record.instance.stats.values_mut() {
        if row.per_s == Figure::default() {
            row.per_s = row.total.per(elapsed_s, "no measured window");
        }
    }
}

/// Requests of each function over the window, from their rates, and the time of its waits.
fn functions(draft: &mut Draft, elapsed_s: f64) {
    let names: Vec<String> = draft.record.instance.io_functions.iter().map(|row| row.function.clone()).collect();
    for (i, name) in names.iter().enumerate() {
        let over = |key: &str| draft.number(name, key).map(|rate| Figure::decimal(rate * elapsed_s));
        let (reads, writes) = (over("iostat_read_requests_per_s"), over("iostat_write_requests_per_s"));
        let avg = draft.number(name, "iostat_wait_us_avg");
        let row = &mut draft.record.instance.io_functions[i];
        if let Some(reads) = reads {
            row.read_requests_count = reads;
        }
        if let Some(writes) = writes {
            row.write_requests_count = writes;
        }
        if let (Some(waits), Some(avg)) = (row.waits_count.value(), avg) {
            row.wait_us = Figure::decimal(waits * avg);
        }
    }
}

/// Shares of DB time of the foreground's events, where none was printed. Events whose class is not known may be idle.
fn shares(record: &mut Record) {
    let model = &record.instance.time_model;
    let Some(db_time) = model.db_time_us.value().filter(|us| *us > 0.0) else {
        return;
    };
    for event in &mut record.instance.events {
        let is_known = !event.class.is_empty() && event.class != "Idle";
        let is_absent = event.db_time_pct == Figure::default();
        if let (true, true, "foreground", Some(us)) =
            (is_known, is_absent, event.actor.as_str(), event.total_us.value())
        {
            event.db_time_pct = Figure::decimal(100.0 * us / db_time);
        }
    }
}

fn times(draft: &mut Draft, elapsed_s: Option<f64>) {
    let cpu_time = draft.number("", "cpu_time_us").map(Figure::decimal);
    let record = &mut draft.record;
    let total = |name: &str| {
        let row = record.instance.load_profile.iter().find(|row| row.name == name)?;
        row.per_s.value().zip(elapsed_s).map(|(rate, s)| Figure::decimal(rate * s * 1e6))
    };
    let found = [total("DB Time(s)"), total("DB CPU(s)"), total("Background CPU(s)")];
    let model = &mut record.instance.time_model;
    for (place, figure) in [&mut model.db_time_us, &mut model.db_cpu_us, &mut model.bg_cpu_us].into_iter().zip(found) {
        if let Some(figure) = figure.filter(|_| place.reason() == Some("absent")) {
            *place = figure;
        }
    }
    // Sessions' CPU is the nearest to DB CPU that such a layout prints.
    if let Some(cpu) = cpu_time.filter(|_| model.db_cpu_us.reason() == Some("absent")) {
        model.db_cpu_us = cpu;
    }
    for key in ["db_time_us", "db_cpu_us", "bg_cpu_us", "bg_elapsed_us", "fg_wait_us"] {
        model.sources.insert(key.to_owned(), "sysstat".to_owned());
    }
    if let Some(elapsed_s) = elapsed_s.filter(|s| *s > 0.0) {
        time_rows(record, elapsed_s);
    }
}

/// Rows of the load profile on time, where a layout has none.
fn time_rows(record: &mut Record, elapsed_s: f64) {
    let model = &record.instance.time_model;
    let rows = [
        ("DB Time(s)", model.db_time_us.clone()),
        ("DB CPU(s)", model.db_cpu_us.clone()),
        ("Background CPU(s)", model.bg_cpu_us.clone()),
    ];
    for (name, us) in rows {
        let is_there = |row: &LoadRow| row.name == name;
        let list = &mut record.instance.load_profile;
        let Some(us) = us.value().filter(|_| !list.iter().any(is_there)) else {
            continue;
        };
        list.push(LoadRow {
            name: name.to_owned(),
            unit: "s".to_owned(),
            total: Figure::decimal(us / 1e6),
            per_s: Figure::decimal(us / 1e6 / elapsed_s),
            source: "sysstat".to_owned(),
            ..LoadRow::default()
        });
    }
}

fn averages(record: &mut Record) {
    for event in &mut record.instance.events {
        if event.us_avg == Figure::default() {
            let count = event.count.value().unwrap_or(0.0);
            event.us_avg = event.total_us.per(count, "no waits");
        }
        if event.note.is_empty() && !event.hist_us.is_empty() {
            let at = |q: f64| percentile(&event.hist_us, q);
            let (p50, p90, p99, p999) = (at(0.5), at(0.9), at(0.99), at(0.999));
            event.us_p50 = p50;
            event.us_p90 = p90;
            event.us_p99 = p99;
            event.us_p999 = p999;
        }
    }
}

/// Where an average was printed coarser than time over waits gives it (older layouts print whole ms), that is taken.
fn finer_averages(draft: &mut Draft) {
    for i in 0..draft.record.instance.events.len() {
        let event = &draft.record.instance.events[i];
        let (stem, actor) = (slug(&event.name), event.actor.clone());
        let key = |what: &str| format!("{stem}_{what}");
        let off = |what: &str| draft.rounding(&actor, &key(what));
        let (Some(waits), Some(total), Some(printed)) = (
            event.count.value().filter(|waits| *waits > 0.0),
            event.total_us.value().filter(|us| *us > 0.0),
            event.us_avg.value(),
        ) else {
            continue;
        };
        let (Some(of_waits), Some(of_total), Some(of_avg)) = (off("waits_count"), off("total_us"), off("us_avg"))
        else {
            continue;
        };
        let value = total / waits;
        let error = value * (of_total / total + of_waits / waits);
        if error < of_avg && (value - printed).abs() <= of_avg + error {
            draft.displaced(&actor, &key("us_avg"));
            draft.record.instance.events[i].us_avg = Figure::decimal(value);
        }
    }
}

/// An average of which rounding may have left no digit is none: `0 ms` is less than half a millisecond, and 1 s over 121,513 waits
/// is between 4 and 12 us each. What was printed stays in the list.
fn rounded_away(draft: &mut Draft) {
    /// What rounding may be of a figure that still says something. Decided here: no measurement stands behind it.
    const MOST: f64 = 0.34;
    for i in 0..draft.record.instance.events.len() {
        let event = &draft.record.instance.events[i];
        let (stem, actor) = (slug(&event.name), event.actor.clone());
        let key = |what: &str| format!("{stem}_{what}");
        let (Some(us), Some(waits)) = (event.us_avg.value(), event.count.value().filter(|waits| *waits > 0.0)) else {
            continue;
        };
        let off = |what: &str| draft.rounding(&actor, &key(what));
        let printed = draft.number(&actor, &key("us_avg")).filter(|printed| *printed == us);
        let error = match (printed, off("us_avg"), off("total_us")) {
            (Some(_), Some(error), _) => error,
            (_, _, Some(of_total)) => of_total / waits,
            _ => continue,
        };
        if error > MOST * us {
            let (low, high) = ((us - error).max(0.0), us + error);
            let why = format!("between {} and {} us: rounded too coarsely", fixed(low, 0), fixed(high, 0));
            draft.displaced(&actor, &key("us_avg"));
            draft.record.instance.events[i].us_avg = Figure::na(&why);
        }
    }
}

/// Foreground before background, the largest total first, as the record has its events.
fn by_time(draft: &mut Draft) {
    let events = &mut draft.record.instance.events;
    let mut order: Vec<usize> = (0..events.len()).collect();
    order.sort_by(|a, b| {
        let (a, b) = (&events[*a], &events[*b]);
        let total = |figure: &Figure| figure.value().unwrap_or(-1.0);
        (a.actor != "foreground")
            .cmp(&(b.actor != "foreground"))
            .then(total(&b.total_us).total_cmp(&total(&a.total_us)))
    });
    *events = order.iter().map(|old| events[*old].clone()).collect();
    draft.reordered("instance/events", &order);
}

/// Percentile of power-of-two buckets, interpolated within the one that holds it; n/a with fewer than ten waits beyond.
fn percentile(buckets: &[u64], q: f64) -> Figure {
    let all: u64 = buckets.iter().sum();
    if all as f64 * (1.0 - q) < 10.0 {
        return Figure::na("too few samples");
    }
    let rank = q * all as f64;
    let mut below = 0.0;
    for (i, n) in buckets.iter().enumerate() {
        let n = *n as f64;
        if n > 0.0 && below + n >= rank {
            let upper = 2_f64.powi(i as i32);
            let lower = if i == 0 { 0.0 } else { upper / 2.0 };
            return Figure::decimal(lower + (upper - lower) * (rank - below) / n);
        }
        below += n;
    }
    Figure::na("unknowable")
}

/// Both views of idle time, and busy.
fn cpu(record: &mut Record) {
    let seconds = |name: &str| record.os.cpu_s.get(name).and_then(Figure::value);
    if record.os.cpu_pct.is_empty()
        && let (Some(busy), Some(idle)) = (seconds("busy"), seconds("idle_awr"))
        && busy + idle > 0.0
    {
        for name in ["user", "system", "iowait", "idle_awr"] {
            if let Some(s) = seconds(name) {
                let share = Figure::decimal(100.0 * s / (busy + idle));
                record.os.cpu_pct.insert(name.to_owned(), share);
            }
        }
    }
    let pct = |name: &str| record.os.cpu_pct.get(name).and_then(Figure::value);
    let wio = pct("iowait");
    let (idle, idle_awr) = match (pct("idle"), pct("idle_awr"), wio) {
        (Some(idle), None, Some(wio)) => (None, Some(idle + wio)),
        (None, Some(all), Some(wio)) => (Some((all - wio).max(0.0)), None),
        _ => (None, None),
    };
    let busy = pct("busy").is_none().then(|| pct("idle_awr").or(idle_awr)).flatten();
    for (name, value) in [("idle", idle), ("idle_awr", idle_awr), ("busy", busy.map(|idle| 100.0 - idle))] {
        if let Some(value) = value {
            record.os.cpu_pct.insert(name.to_owned(), Figure::decimal(value));
        }
    }
}

/// A histogram that holds more waits than the interval had was not differenced.
fn since_startup(draft: &mut Draft) {
    let mut found = Vec::new();
    for (i, event) in draft.record.instance.events.iter().enumerate() {
        let counted: u64 = event.hist_us.iter().sum();
        let Some(waits) = event.count.value().filter(|waits| *waits > 0.0) else {
            continue;
        };
        let is_exact = event.note.is_empty() && counted > 0;
        if is_exact && counted as f64 > 1.005 * waits && event.actor == "foreground" {
            let more = 100.0 * (counted as f64 / waits - 1.0);
            found.push((i, more));
        }
    }
    for (i, more) in found {
        let event = &mut draft.record.instance.events[i];
        event.note = format!(
            "its histogram has {more:.1} % more waits than the interval: it counts since the instance started, or it \
             includes background waits"
        );
        let key = format!("{}_waits_count", slug(&event.name));
        let (text, actor) = (format!("{}: {}", event.name, event.note), event.actor.clone());
        if let Some(at) = draft.at(&actor, &key) {
            draft.note(at, text);
        }
    }
}
