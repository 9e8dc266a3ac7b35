//! Host and instance CPU, memory, pressure, operating system statistics.

use crate::deltas::CPU_COLUMNS;
use assay_measure::record::{Figure, Record};
use assay_measure::section::{Cell, Column, Sections, left, number, number_or_reason, right};
use assay_measure::units::fixed;

const MIB: f64 = 1_048_576.0;

fn pct(record: &Record, name: &str) -> Figure {
    record.os.cpu_pct.get(name).cloned().unwrap_or_default()
}

pub(super) fn host_cpu(page: &mut Sections, record: &Record) {
    page.heading("Host CPU");
    if record.os.cpu_s.is_empty() && record.os.cpu_pct.is_empty() {
        page.line("n/a (absent: /proc/stat)");
        return;
    }
    const COLUMNS: [Column; 10] = [
        left("CPUs", 6),
        right("Load Begin", 12),
        right("Load End", 10),
        right("%User", 8),
        right("%System", 9),
        right("%WIO", 8),
        right("%Steal", 8),
        right("%Idle", 8),
        right("%Busy", 10),
        right("%Idle (with WIO)", 18),
    ];
    page.columns(&COLUMNS);
    let load = |load: &[Figure]| load.first().map_or_else(String::new, |one| number(one, 2));
    let share = |name: &str| number(&pct(record, name), 1);
    page.row(
        &COLUMNS,
        &[
            Cell::figure(&record.os.cpus_count, 0),
            load(&record.os.load_begin).into(),
            load(&record.os.load_end).into(),
            share("user").into(),
            share("system").into(),
            share("iowait").into(),
            share("steal").into(),
            share("idle").into(),
            share("busy").into(),
            share("idle_awr").into(),
        ],
    );
    page.wrapped(
        "",
        "The columns from User to Idle add up to 100. So do Busy (user, system, steal) and Idle with I/O wait, \
        which is AWR's view.",
    );
}

pub(super) fn instance_cpu(page: &mut Sections, record: &Record) {
    page.heading("Instance CPU");
    let model = &record.instance.time_model;
    let used = model.db_cpu_us.plus(&model.bg_cpu_us).scaled(1e-6);
    let elapsed = record.interval.elapsed_s.value().unwrap_or(0.0);
    let cpus = record.os.cpus_count.value().unwrap_or(0.0);
    let column = |name: &str| record.os.cpu_s.get(name).and_then(Figure::value);
    let busy: f64 = ["user", "nice", "system", "irq", "softirq", "steal"].iter().filter_map(|name| column(name)).sum();
    let process = record.os.process.cpu_s.clone();
    let share = |figure: &Figure, of: f64| number_or_reason(&figure.scaled(100.0).per(of, "host CPU absent"), 1);
    page.pairs(&[
        ("% of total CPU".to_owned(), share(&used, elapsed * cpus)),
        ("% of busy CPU".to_owned(), share(&used, busy)),
        ("% of total, process".to_owned(), share(&process, elapsed * cpus)),
        ("CPUs in use".to_owned(), number_or_reason(&used.per(elapsed, "no measured window"), 2)),
        ("Driver threads".to_owned(), record.driver.threads_count.to_string()),
        ("% of driver threads".to_owned(), number_or_reason(&record.driver.thread_cpu_pct, 1)),
    ]);
}

pub(super) fn memory(page: &mut Sections, record: &Record) {
    page.heading("Memory Statistics");
    const COLUMNS: [Column; 3] = [left("Memory (MB)", 36), right("Begin", 18), right("End", 18)];
    let rows = &record.os.memory_bytes;
    let process = &record.os.process.rss_bytes;
    if rows.is_empty() && process.end.reason().is_some() {
        page.line("n/a (absent: /proc/meminfo)");
        return;
    }
    page.columns(&COLUMNS);
    let mib = |figure: &Figure| number(&figure.scaled(1.0 / MIB), 1);
    for (name, row) in rows {
        let name = format!("host {}", name.replace('_', " "));
        page.row(&COLUMNS, &[name, mib(&row.begin), mib(&row.end)]);
    }
    if record.import.is_some() {
        return;
    }
    let name = "assay resident".to_owned();
    page.row(&COLUMNS, &[name, mib(&process.begin), mib(&process.end)]);
}

pub(super) fn pressure(page: &mut Sections, record: &Record) {
    page.heading("Pressure Stall Information");
    if record.os.psi.is_empty() {
        page.line("n/a (absent: /proc/pressure)");
        return;
    }
    const COLUMNS: [Column; 3] = [left("Resource", 36), right("Stalled (s)", 18), right("% of Window", 18)];
    page.columns(&COLUMNS);
    for (name, row) in &record.os.psi {
        page.row(
            &COLUMNS,
            &[
                name.replace('_', " ").into(),
                Cell::figure(&row.total_us.scaled(1e-6), 3),
                Cell::figure(&row.share_pct, 1),
            ],
        );
    }
}

pub(super) fn statistics(page: &mut Sections, record: &Record) {
    page.heading("Operating System Statistics");
    const COLUMNS: [Column; 3] = [left("Statistic", 36), right("Total", 18), right("Per Second", 18)];
    let os = &record.os;
    let elapsed = record.interval.elapsed_s.value().unwrap_or(0.0);
    page.columns(&COLUMNS);
    let mut row = |name: String, total: &Figure, decimals: usize| {
        let rate = number(&total.per(elapsed, "no measured window"), 1);
        page.row(&COLUMNS, &[name.into(), Cell::figure(total, decimals), rate.into()]);
    };
    for column in CPU_COLUMNS {
        if let Some(figure) = os.cpu_s.get(column) {
            row(format!("CPU {column} (s)"), figure, 2);
        }
    }
    row("context switches".to_owned(), &os.context_switches_count, 0);
    for (name, count) in &os.vmstat_count {
        row(name.clone(), count, 0);
    }
    row("cgroup throttled (us)".to_owned(), &os.cgroup_throttled_us, 0);
    row("process CPU (s)".to_owned(), &os.process.cpu_s, 2);
    row("process bytes read".to_owned(), &os.process.read_bytes, 0);
    row("process bytes written".to_owned(), &os.process.write_bytes, 0);
    devices(page, record);
    interfaces(page, record);
}

fn devices(page: &mut Sections, record: &Record) {
    const COLUMNS: [Column; 10] = [
        left("Device", 14),
        right("Reads/s", 13),
        right("Read MB/s", 12),
        right("Read (us)", 11),
        right("Writes/s", 13),
        right("Write MB/s", 12),
        right("Write (us)", 12),
        right("Flushes/s", 11),
        right("% Busy", 9),
        right("Queue", 9),
    ];
    page.line("");
    if record.os.disk.is_empty() {
        page.line("Devices under the data: n/a (no device known)");
        return;
    }
    page.line("Devices under the data (/proc/diskstats, layer device; includes the I/O of all processes)");
    page.columns(&COLUMNS);
    let elapsed = record.interval.elapsed_s.value().unwrap_or(0.0);
    let rate = |total: f64| fixed(if elapsed > 0.0 { total / elapsed } else { 0.0 }, 1);
    for disk in &record.os.disk {
        page.row(
            &COLUMNS,
            &[
                disk.name.clone().into(),
                rate(disk.reads_count as f64).into(),
                rate(disk.read_bytes as f64 / MIB).into(),
                Cell::figure(&disk.read_us_avg, 0),
                rate(disk.writes_count as f64).into(),
                rate(disk.write_bytes as f64 / MIB).into(),
                Cell::figure(&disk.write_us_avg, 0),
                rate(disk.flushes_count as f64).into(),
                Cell::figure(&disk.busy_pct, 1),
                Cell::figure(&disk.queue_mean_count, 2),
            ],
        );
    }
}

fn interfaces(page: &mut Sections, record: &Record) {
    const COLUMNS: [Column; 6] = [
        left("Interface", 14),
        right("In MB/s", 13),
        right("In pkt/s", 12),
        right("Out MB/s", 13),
        right("Out pkt/s", 12),
        right("Errors", 11),
    ];
    let elapsed = record.interval.elapsed_s.value().unwrap_or(0.0);
    if record.os.net.is_empty() || elapsed == 0.0 {
        return;
    }
    page.line("");
    page.columns(&COLUMNS);
    let rate = |total: f64| fixed(total / elapsed, 1);
    for net in &record.os.net {
        page.row(
            &COLUMNS,
            &[
                net.name.clone().into(),
                rate(net.rx_bytes as f64 / MIB).into(),
                rate(net.rx_packets_count as f64).into(),
                rate(net.tx_bytes as f64 / MIB).into(),
                rate(net.tx_packets_count as f64).into(),
                Cell::figure(&Figure::Count(net.errors_count), 0),
            ],
        );
    }
}
