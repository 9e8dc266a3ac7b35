//! The host: its CPUs with steal, its queues, and where the kernel says that tasks stall.

use super::time::{self, NO_SERIES};
use assay_measure::chart::{Axis, Drawn, Stroke, Trace};
use assay_measure::palette::{BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION};
use assay_measure::record::Record;

pub(super) fn all(record: &Record) -> Vec<Drawn> {
    vec![cpu(record), queue(record), pressure(record)]
}

fn cpu(record: &Record) -> Drawn {
    let note = "Shares of all CPU time of the host (source /proc/stat). Steal is CPU time that the hypervisor gave \
        to other guests; iowait is idle time with an I/O request in flight.";
    let y = Axis::of("share of all CPUs", "%");
    let mut chart = time::chart(record, "c-host-cpu", "Host CPU", y, note);
    let columns = [
        ("host_user_pct", "user", Stroke::Stacked, GREEN),
        ("host_system_pct", "system", Stroke::Stacked, VERMILION),
        ("host_iowait_pct", "iowait", Stroke::Stacked, SKY),
        ("host_steal_pct", "steal", Stroke::Stacked, PURPLE),
        ("host_idle_pct", "idle", Stroke::Stacked, GREY),
    ];
    chart.traces = time::traces(record, &columns);
    let has = |key: &str| record.series.metrics.contains_key(key);
    if !has("host_user_pct") && has("host_idle_pct") {
        // Older records keep what is idle; the rest of the 100 was used.
        let all = [("host_iowait_pct", 0), ("host_steal_pct", 0), ("host_idle_pct", 0)];
        let parts: Vec<_> = all.iter().filter_map(|(key, _)| time::column(record, key)).collect();
        let busy = (0..record.series.t_s.len()).map(|row| {
            let known: Option<f64> = parts.iter().map(|part| *part.get(row)?).sum();
            known.map(|sum| (100.0 - sum).max(0.0))
        });
        let busy = Trace::new("user and system", Stroke::Stacked, GREEN, busy.collect());
        chart.traces.insert(0, busy);
    }
    Drawn::or(chart, NO_SERIES)
}

fn queue(record: &Record) -> Drawn {
    let title = "Run queue and load";
    let note = "Runnable tasks at the end of each step and the load average of one minute, of the whole host; \
        sessions of this run that were ready but had no driver thread.";
    let y = Axis::of("tasks", "count");
    let mut chart = time::chart(record, "c-run-queue", title, y, note);
    let columns = [
        ("runnable_tasks_count", "runnable tasks", Stroke::Line, BLUE),
        ("load_1m", "load, 1 minute", Stroke::Line, ORANGE),
        ("active_run_queue_count", "sessions in the run queue", Stroke::Line, GREEN),
        ("usable_cpus_count", "CPUs", Stroke::Dashed, VERMILION),
    ];
    chart.traces = time::traces(record, &columns);
    Drawn::or(chart, NO_SERIES)
}

fn pressure(record: &Record) -> Drawn {
    let title = "Pressure (PSI)";
    let note = "Share of time in which some tasks, or all tasks (full), stalled because a resource was short (source \
        /proc/pressure).";
    let y = Axis::of("share of time", "%");
    let mut chart = time::chart(record, "c-pressure", title, y, note);
    let columns = [
        ("psi_cpu_some_pct", "CPU, some", Stroke::Line, GREEN),
        ("psi_io_some_pct", "I/O, some", Stroke::Line, BLUE),
        ("psi_io_full_pct", "I/O, full", Stroke::Dashed, BLUE),
        ("psi_memory_some_pct", "memory, some", Stroke::Line, PURPLE),
        ("psi_memory_full_pct", "memory, full", Stroke::Dashed, PURPLE),
    ];
    chart.traces = time::traces(record, &columns);
    Drawn::or(chart, "no pressure per step: the kernel does not count it, or an older version made the record")
}
