//! Tables of a run and of what was imported as one.

use crate::html::table::{Cell, Table};
use assay_measure::record::{EventRow, Figure, LayerRow, Record};

/// All tables of a run, in the order of the text report.
pub(super) fn tables(record: &Record) -> Vec<Table> {
    let mut tables = vec![
        load_profile(record),
        efficiency(record),
        wait_classes(record),
        events(record, "foreground", "Foreground Wait Events"),
        events(record, "background", "Background Wait Events"),
        operations(record),
        layers(record),
        io_profile(record),
        io_functions(record),
        host_cpu(record),
        disks(record),
        time_model(record),
        steadiness(record),
    ];
    if record.server.is_some() {
        tables.push(server(record));
    }
    tables.push(statistics(record));
    tables
}

fn load_profile(record: &Record) -> Table {
    let rows = record.load_profile.iter().map(|row| {
        vec![
            Cell::words(&row.name),
            Cell::figure(&row.per_s, 1),
            Cell::figure(&row.per_tx, 1),
            Cell::figure(&row.per_exec, 2),
            Cell::figure(&row.per_call, 2),
            Cell::figure(&row.per_op, 2),
            Cell::words(&row.source),
        ]
    });
    let columns = [
        "",
        "per second",
        "per transaction",
        "per exec",
        "per call",
        "per operation",
        "source",
    ];
    Table::new(
        "Load Profile",
        "Load profile of the measured window",
        &columns,
    )
    .with(rows.collect(), "absent")
}

fn efficiency(record: &Record) -> Table {
    let rows = (record.efficiency.iter())
        .map(|row| vec![Cell::words(&row.name), Cell::figure(&row.value_pct, 2)]);
    Table::new(
        "Instance Efficiency",
        "Instance efficiency, percent",
        &["", "%"],
    )
    .with(rows.collect(), "absent")
}

fn wait_classes(record: &Record) -> Table {
    let rows = record.wait_classes.iter().map(|row| {
        vec![
            Cell::words(&row.class),
            Cell::figure(&row.waits_count, 0),
            Cell::figure(&row.total_us.scaled(1e-6), 3),
            Cell::figure(&row.avg_us, 0),
            Cell::figure(&row.db_time_pct, 1),
            Cell::words(&row.source),
        ]
    });
    let columns = [
        "wait class",
        "waits",
        "total (s)",
        "average (us)",
        "% DB time",
        "source",
    ];
    Table::new(
        "Foreground Wait Class",
        "Foreground time by wait class",
        &columns,
    )
    .with(rows.collect(), "no waits")
}

fn events(record: &Record, actor: &str, title: &str) -> Table {
    let of_actor = record.events.iter().filter(|event| event.actor == actor);
    let columns = [
        "event",
        "class",
        "waits",
        "total (s)",
        "average (us)",
        "p50 (us)",
        "p90 (us)",
        "p99 (us)",
        "p99.9 (us)",
        "max (us)",
        "% time",
        "source",
    ];
    let caption = "Waits of the measured window, layer engine; a percentile with fewer than ten samples beyond it is n/a";
    Table::new(title, caption, &columns).with(of_actor.map(event).collect(), "no waits")
}

fn event(event: &EventRow) -> Vec<Cell> {
    vec![
        Cell::words(&event.name),
        Cell::words(&event.class),
        Cell::figure(&event.count, 0),
        Cell::figure(&event.total_us.scaled(1e-6), 3),
        Cell::figure(&event.avg_us, 1),
        Cell::figure(&event.p50_us, 1),
        Cell::figure(&event.p90_us, 1),
        Cell::figure(&event.p99_us, 1),
        Cell::figure(&event.p999_us, 1),
        Cell::figure(&event.max_us, 0),
        Cell::figure(&event.db_time_pct, 1),
        Cell::words(&event.source),
    ]
}

fn operations(record: &Record) -> Table {
    let rows = record.driver.ops.iter().map(|op| {
        let latency = &op.response;
        vec![
            Cell::words(&op.kind),
            Cell::count(op.count),
            Cell::figure(&op.per_s, 1),
            Cell::figure(&latency.avg_us, 1),
            Cell::figure(&latency.p50_us, 1),
            Cell::figure(&latency.p90_us, 1),
            Cell::figure(&latency.p99_us, 1),
            Cell::figure(&latency.p999_us, 1),
            Cell::figure(&latency.max_us, 0),
        ]
    });
    let columns = [
        "operation",
        "count",
        "per second",
        "mean (us)",
        "p50 (us)",
        "p90 (us)",
        "p99 (us)",
        "p99.9 (us)",
        "max (us)",
    ];
    let caption = "Operations ended in the measured window, layer client, from the intended start";
    Table::new("Operations", caption, &columns).with(rows.collect(), "no operations")
}

fn layers(record: &Record) -> Table {
    let mut rows = Vec::new();
    for request in &record.layers {
        for layer in [&request.engine, &request.syscall, &request.device] {
            rows.push(layer_row(&request.request, layer));
        }
    }
    let columns = [
        "request",
        "layer",
        "count",
        "mean (us)",
        "p50 (us)",
        "p99 (us)",
        "max (us)",
        "source",
    ];
    Table::new(
        "Latency by Layer",
        "The same requests at each layer they pass",
        &columns,
    )
    .with(rows, "no requests at several layers")
}

fn layer_row(request: &str, layer: &LayerRow) -> Vec<Cell> {
    vec![
        Cell::words(request),
        Cell::words(&layer.layer),
        Cell::figure(&layer.count, 0),
        Cell::figure(&layer.latency.avg_us, 1),
        Cell::figure(&layer.latency.p50_us, 1),
        Cell::figure(&layer.latency.p99_us, 1),
        Cell::figure(&layer.latency.max_us, 0),
        Cell::words(&layer.source),
    ]
}

fn io_profile(record: &Record) -> Table {
    let rows = record.io_profile.iter().map(|row| {
        vec![
            Cell::words(&row.name),
            Cell::figure(&row.read_write_per_s, 1),
            Cell::figure(&row.read_per_s, 1),
            Cell::figure(&row.write_per_s, 1),
        ]
    });
    let columns = [
        "",
        "read+write per second",
        "read per second",
        "write per second",
    ];
    Table::new(
        "IO Profile",
        "I/O profile of the measured window; MB is 2^20 bytes",
        &columns,
    )
    .with(rows.collect(), "absent")
}

fn io_functions(record: &Record) -> Table {
    let mib = 1.0 / 1_048_576.0;
    let rows = record.io_functions.iter().map(|row| {
        vec![
            Cell::words(&row.function),
            Cell::words(&row.file_type),
            Cell::figure(&row.read_requests_count, 0),
            Cell::figure(&row.read_bytes.scaled(mib), 1),
            Cell::figure(&row.write_requests_count, 0),
            Cell::figure(&row.write_bytes.scaled(mib), 1),
            Cell::figure(&row.waits_count, 0),
            Cell::figure(&row.wait_us.scaled(1e-6), 3),
            Cell::words(&row.source),
        ]
    });
    let columns = [
        "function",
        "file type",
        "reads",
        "read (MB)",
        "writes",
        "written (MB)",
        "waits",
        "wait (s)",
        "source",
    ];
    Table::new(
        "IOStat by Function and Filetype",
        "I/O by function and file type; MB is 2^20 bytes",
        &columns,
    )
    .with(rows.collect(), "absent")
}

fn host_cpu(record: &Record) -> Table {
    let mut rows: Vec<Vec<Cell>> = (record.os.cpu_pct.iter())
        .map(|(name, value)| vec![Cell::words(name.replace('_', " ")), Cell::figure(value, 1)])
        .collect();
    for (name, row) in &record.os.psi {
        rows.push(vec![
            Cell::words(format!("pressure, {}", name.replace('_', " "))),
            Cell::figure(&row.share_pct, 2),
        ]);
    }
    Table::new(
        "Host CPU and Pressure",
        "Shares of the measured window, percent",
        &["", "%"],
    )
    .with(rows, "absent")
}

fn disks(record: &Record) -> Table {
    super::probes::disks("Devices", &record.os.disk)
}

fn time_model(record: &Record) -> Table {
    let model = &record.time_model;
    let rows: [(&str, &Figure); 10] = [
        ("DB time", &model.db_time_us),
        ("DB CPU", &model.db_cpu_us),
        ("foreground waits", &model.fg_wait_us),
        ("run queue", &model.run_queue_us),
        ("sessions on thread", &model.on_thread_us),
        ("CPU inside waits", &model.cpu_in_wait_us),
        ("kernel run delay", &model.kernel_run_delay_us),
        ("background elapsed", &model.bg_elapsed_us),
        ("background CPU", &model.bg_cpu_us),
        ("background waits", &model.bg_wait_us),
    ];
    let rows = rows.iter().map(|(name, figure)| {
        let share = match model.db_time_us.value() {
            Some(all) => figure.scaled(100.0).per(all, "no DB time"),
            None => model.db_time_us.clone(),
        };
        vec![
            Cell::words(*name),
            Cell::figure(&figure.scaled(1e-6), 3),
            Cell::figure(&share, 1),
        ]
    });
    Table::new(
        "Time Model",
        "Where the time went",
        &["", "time (s)", "% DB time"],
    )
    .with(rows.collect(), "absent")
}

fn steadiness(record: &Record) -> Table {
    let steady = &record.checks.steadiness;
    let rows: [(&str, &Figure, usize); 6] = [
        ("steps", &steady.steps_count, 0),
        ("mean operations/s", &steady.mean_per_s, 1),
        ("slowest step, operations/s", &steady.min_per_s, 1),
        ("fastest step, operations/s", &steady.max_per_s, 1),
        ("coefficient of variation", &steady.variation_ratio, 3),
        ("last quarter over first", &steady.last_over_first_ratio, 3),
    ];
    let rows = rows
        .iter()
        .filter(|(_, figure, _)| figure.reason() != Some("absent"));
    let rows = rows.map(|(name, figure, n)| vec![Cell::words(*name), Cell::figure(figure, *n)]);
    Table::new(
        "Steadiness",
        "Operations per second over the whole steps of the window",
        &["", "value"],
    )
    .with(rows.collect(), "no series")
}

fn server(record: &Record) -> Table {
    let rows = record.server.iter().flat_map(|server| &server.shares);
    let rows = rows.map(|row| vec![Cell::words(&row.name), Cell::figure(&row.value_pct, 2)]);
    Table::new(
        "Database Server",
        "What the server did beside, percent",
        &["", "%"],
    )
    .with(rows.collect(), "absent")
}

fn statistics(record: &Record) -> Table {
    let mut rows: Vec<_> = record.stats.values().collect();
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    let rows = rows.into_iter().map(|row| {
        vec![
            Cell::words(&row.name),
            Cell::words(&row.unit),
            Cell::figure(&row.total, 0),
            Cell::figure(&row.per_s, 1),
            Cell::figure(&row.per_tx, 1),
            Cell::figure(&row.per_op, 2),
            Cell::words(&row.source),
        ]
    });
    let columns = [
        "statistic",
        "unit",
        "total",
        "per second",
        "per transaction",
        "per operation",
        "source",
    ];
    Table::new(
        "Instance Activity Statistics",
        "Counters of the measured window",
        &columns,
    )
    .with(rows.collect(), "absent")
}
