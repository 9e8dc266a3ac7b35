//! Where the time of an operation goes: from the session over the ring to the device, each part inside the one above it.

use assay_measure::chart::{Axis, Chart, Drawn, Rows, Stroke, Trace};
use assay_measure::palette::BLUE;
use assay_measure::record::{Figure, Record, RequestLayers};

const TITLE: &str = "Where the time of an operation goes";
/// Events that stand alone; the others are one part.
const EVENTS: usize = 4;
/// How far the parts may be from DB time, of it: what is measured at two places differs by rounding.
const OFF: f64 = 0.005;

/// A part: its name, where it begins and how long it is, us of a mean operation.
type Span = (String, f64, f64);

/// DB mean time per operation, cut into run queue, on thread and waits, and the reads' wait by layer.
pub(super) fn waterfall(record: &Record) -> Drawn {
    let spans = match spans(record) {
        Ok(spans) => spans,
        Err(reason) => return Drawn::missing(TITLE, reason),
    };
    let mut parts = Trace::new("time", Stroke::Span, BLUE, spans.iter().map(|(_, _, us)| Some(*us)).collect());
    parts.begins = spans.iter().map(|(_, from, _)| *from).collect();
    Drawn::Chart(Box::new(Chart {
        id: "c-operation".to_owned(),
        title: TITLE.to_owned(),
        note: "DB mean time per operation, as in the load profile; it is the sum of run queue, on thread and waits. \
            On thread is wall time, so it includes waiting for a CPU that only the kernel sees. The parts of a read \
            divide its wait by the means of Latency by Layer."
            .to_owned(),
        x: Axis::of("part", ""),
        y: Axis::of("mean time per operation", "us"),
        rows: Rows::Names(spans.into_iter().map(|(name, _, _)| name).collect()),
        traces: vec![parts],
        ..Chart::default()
    }))
}

fn spans(record: &Record) -> Result<Vec<Span>, &'static str> {
    let model = &record.instance.time_model;
    let profile = record.instance.load_profile.iter();
    let per_op_s = { profile }.find(|row| row.name == "DB Time(s)");
    let per_op_s = per_op_s.and_then(|row| row.per_op.value());
    let (Some(per_op_s), Some(db)) = (per_op_s, model.db_time_us.value().filter(|us| *us > 0.0)) else {
        return Err("the DB time per operation is unknown");
    };
    let parts = [&model.run_queue_us, &model.on_thread_us, &model.fg_wait_us].map(Figure::value);
    let [Some(queue), Some(on_thread), Some(waits)] = parts else {
        return Err("some parts of DB time are unknown or overlap");
    };
    if (queue + on_thread + waits - db).abs() > OFF * db {
        return Err("the parts do not add up to DB time");
    }
    let scale = 1e6 * per_op_s / db;
    let mut spans = vec![("operation (DB time)".to_owned(), 0.0, db * scale)];
    let mut end = 0.0;
    let mut put = |spans: &mut Vec<Span>, name: &str, us: f64| {
        if us * scale >= OFF * 1e6 * per_op_s {
            spans.push((name.to_owned(), end, us * scale));
        }
        end += us * scale;
        end
    };
    put(&mut spans, "run queue", queue);
    put(&mut spans, "on thread", on_thread);
    let mut others = waits;
    let events = record.instance.events.iter();
    let events = events.filter(|event| event.actor == "foreground" && event.class != "Idle");
    for event in events.take(EVENTS) {
        let us = event.total_us.value().unwrap_or_default();
        others -= us;
        let from = put(&mut spans, &event.name, us) - us * scale;
        let layers = record.instance.layers.iter();
        let read = { layers }.find(|row| row.event == event.name && row.direction == "read");
        spans.extend(read.into_iter().flat_map(|row| inside(row, from, us * scale)));
    }
    put(&mut spans, "other waits", others);
    Ok(spans)
}

/// A read's wait by layer, as far as one layer lies inside the one above it.
fn inside(row: &RequestLayers, from: f64, us: f64) -> Vec<Span> {
    let mean = |figure: &Figure| figure.value().filter(|us| *us > 0.0);
    let engine = mean(&row.engine.latency.us_avg).filter(|_| !row.is_batched);
    let Some((engine, ring)) = engine.zip(mean(&row.syscall.latency.us_avg)) else {
        return Vec::new();
    };
    if ring > engine * (1.0 + OFF) {
        return Vec::new();
    }
    let above = us * (1.0 - ring / engine).max(0.0);
    let mut spans = vec![("> before the ring".to_owned(), from, above)];
    let device = mean(&row.device.latency.us_avg).filter(|device| *device <= ring);
    match device {
        Some(device) => {
            let device = us * device / engine;
            let kernel = us - above - device;
            spans.push(("> ring and kernel".to_owned(), from + above, kernel));
            spans.push(("> device".to_owned(), from + above + kernel, device));
        }
        None => spans.push(("> ring, kernel and device".to_owned(), from + above, us - above)),
    }
    spans.retain(|(_, _, part)| *part >= OFF * us);
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        crate::record::build(&assay_testkit::fixtures::run())
    }

    #[test]
    fn the_parts_lie_end_to_end_in_the_db_time_that_the_load_profile_prints() {
        let record = record();
        let spans = spans(&record).expect("all figures");
        let whole = spans[0].2;
        let told = record.instance.load_profile.iter();
        let told = { told }.find(|row| row.name == "DB Time(s)").expect("a row");
        assert!((whole - 1e6 * told.per_op.value().expect("known")).abs() < 1e-6 * whole);
        let (parts, deeper): (Vec<&Span>, Vec<&Span>) =
            spans[1..].iter().partition(|(name, _, _)| !name.starts_with('>'));
        let sum: f64 = parts.iter().map(|(_, _, us)| us).sum();
        assert!((sum - whole).abs() <= 0.02 * whole, "{spans:?}");
        for pair in parts.windows(2) {
            assert!(pair[1].1 >= pair[0].1 + pair[0].2 - 1e-6, "{spans:?}");
        }
        for (name, from, us) in deeper {
            assert!(*from >= 0.0 && from + us <= whole * 1.001, "{name}: {spans:?}");
        }
    }

    #[test]
    fn parts_that_do_not_add_up_are_not_drawn() {
        let mut record = record();
        record.instance.time_model.on_thread_us = Figure::decimal(1e12);
        assert!(spans(&record).is_err());
        record.instance.time_model.on_thread_us = Figure::Na("unsupported".to_owned());
        assert!(spans(&record).is_err());
    }
}
