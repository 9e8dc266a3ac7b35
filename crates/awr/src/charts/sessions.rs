//! Active sessions: by class over time, and against the reads they caused.

use super::time::{self, NO_SERIES};
use assay_measure::chart::{Axis, Chart, Drawn, Rows, Stroke, Trace};
use assay_measure::palette::{BLUE, CLASSES, INK, VERMILION};
use assay_measure::record::{Figure, Record};

const TITLE: &str = "Average active sessions by wait class";

/// What the sessions did, stacked by class, with the CPUs there are and the CPU they used.
pub(super) fn by_class(record: &Record) -> Drawn {
    if record.series.t_s.is_empty() {
        return Drawn::missing(TITLE, NO_SERIES);
    }
    let interval = record.instance.ash.interval_achieved_ms.value();
    let note = match interval {
        Some(ms) => format!(
            "Sessions inside a call, sampled every {ms:.0} ms and averaged over each step (layer engine; source \
             sampled)."
        ),
        None => "Sessions inside a call, averaged over each step (layer engine).".to_owned(),
    };
    let note = format!(
        "{note} The CPU line is the number of CPUs that the run may use: sessions on CPU and in the run queue above \
         this line wait for a CPU. DB CPU is the CPU time that the sessions used per second, by the CPU clocks."
    );
    let y = Axis::of("average active sessions", "sessions");
    let mut chart = time::chart(record, "c-active-sessions", TITLE, y, &note);
    for (name, word, color) in CLASSES {
        if let Some(y) = time::column(record, &format!("active_{word}_count"))
            && y.iter().any(|value| *value > Some(0.0))
        {
            chart.traces.push(Trace::new(name, Stroke::Stacked, color, y));
        }
    }
    if chart.traces.is_empty() {
        let all = ("average_active_sessions_count", "All classes", Stroke::Line, BLUE);
        chart.traces = time::traces(record, &[all]);
    }
    if chart.traces.is_empty() {
        return Drawn::missing(TITLE, "the series has no active sessions");
    }
    chart.traces.push(cpus(record));
    let cpu = ("db_cpu_s_per_s", "DB CPU", Stroke::Dotted, INK);
    chart.traces.extend(time::traces(record, &[cpu]));
    Drawn::or(chart, NO_SERIES)
}

/// CPUs the run may use, by step where that is known.
fn cpus(record: &Record) -> Trace {
    let keys = ["usable_cpus_count", "online_cpus_count"];
    let known = keys.iter().find_map(|key| time::column(record, key));
    let steady = || vec![record.os.cpus_count.value(); record.series.t_s.len()];
    let y = known.unwrap_or_else(steady);
    Trace::new("CPUs", Stroke::Dashed, VERMILION, y)
}

/// Each step as a point: whether more sessions still bring more reads.
pub(super) fn against_reads(record: &Record) -> Drawn {
    const TITLE: &str = "Active sessions against physical reads";
    let series = &record.series;
    let pairs =
        series.metrics.get("average_active_sessions_count").zip(series.metrics.get("read_io_requests_count_per_s"));
    let Some((sessions, reads)) = pairs else {
        return Drawn::missing(TITLE, NO_SERIES);
    };
    let mut points: Vec<(f64, f64)> = (reads.iter().zip(sessions))
        .filter_map(|(read, active)| Some((Figure::value(read)?, Figure::value(active)?)))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    if points.iter().all(|(read, _)| *read == 0.0) {
        return Drawn::missing(TITLE, "nothing was read");
    }
    let chart = Chart {
        id: "c-sessions-reads".to_owned(),
        title: TITLE.to_owned(),
        note: "Each point is one step of the series (layer engine).".to_owned(),
        x: Axis::of("read requests", "1/s"),
        y: Axis::of("average active sessions", "sessions"),
        rows: Rows::Numbers(points.iter().map(|(read, _)| *read).collect()),
        traces: vec![Trace::new(
            "steps",
            Stroke::Points,
            BLUE,
            points.iter().map(|(_, active)| Some(*active)).collect(),
        )],
        ..Chart::default()
    };
    Drawn::or(chart, NO_SERIES)
}
