//! Driver statistics: operations, sessions, and the cost of the load generator itself.

use assay_measure::facts;
use assay_measure::record::{Figure, Latency, Record};
use assay_measure::section::{Cell, Column, Sections, left, number, number_or_reason, right};
use assay_measure::units::{size, thousands};

/// Sessions listed one by one; beyond that the slowest and fastest stand for them.
const LISTED: usize = 32;

/// Operations that another tool counted; what it did not print is n/a.
pub(super) fn imported(page: &mut Sections, record: &Record) {
    page.heading("Driver Statistics");
    const COLUMNS: [Column; 9] = [
        left("Operation (us)", 28),
        right("Count", 14),
        right("Per Second", 14),
        right("Avg", 12),
        right("p50", 12),
        right("p90", 12),
        right("p99", 12),
        right("p99.9", 12),
        right("Max", 13),
    ];
    page.columns(&COLUMNS);
    let mut row = |name: &str, count: u64, per_s: String, latency: &Latency| {
        let count = match count {
            0 => "n/a".to_owned(),
            count => thousands(count),
        };
        let mut cells = vec![name.to_owned(), count, per_s];
        let figures =
            [&latency.us_avg, &latency.us_p50, &latency.us_p90, &latency.us_p99, &latency.us_p999, &latency.us_max];
        cells.extend(figures.map(|figure| number(figure, 1)));
        page.row(&COLUMNS, &cells);
    };
    for op in &record.driver.ops {
        row(&op.kind, op.count, number(&op.per_s, 1), &op.service);
    }
    let lag = &record.driver.schedule_lag;
    if lag.us_avg.value().is_some() {
        row("start lag", 0, String::new(), lag);
    }
}

pub(super) fn operations(page: &mut Sections, record: &Record) {
    page.heading("Driver Statistics");
    let driver = &record.driver;
    if driver.ops.is_empty() {
        page.line("n/a (no operations)");
        if driver.errors_whole_run_count > 0 || driver.retries_count > 0 {
            errors(page, record);
        }
        return;
    }
    const COLUMNS: [Column; 11] = [
        left("Operation (us)", 18),
        right("Count", 14),
        right("Per Second", 14),
        right("Rows", 16),
        right("Avg", 11),
        right("p50", 11),
        right("p90", 11),
        right("p99", 11),
        right("p99.9", 11),
        right("Max", 13),
        left(" Source", 9),
    ];
    page.columns(&COLUMNS);
    let mut row = |name: String, count: u64, per_s: String, rows: String, latency: &Latency| {
        page.row(
            &COLUMNS,
            &[
                name.into(),
                thousands(count).into(),
                per_s.into(),
                rows.into(),
                Cell::figure(&latency.us_avg, 1),
                Cell::figure(&latency.us_p50, 1),
                Cell::figure(&latency.us_p90, 1),
                Cell::figure(&latency.us_p99, 1),
                Cell::figure(&latency.us_p999, 1),
                Cell::figure(&latency.us_max, 1),
                " client".to_owned().into(),
            ],
        );
    };
    for op in &driver.ops {
        let (per_s, rows) = (number(&op.per_s, 1), thousands(op.rows_count));
        row(op.kind.clone(), op.count, per_s, rows, &op.service);
        if op.response.hist_ns != op.service.hist_ns && op.response.hist_ns.count() > 0 {
            let name = format!("{} (intended)", op.kind);
            row(name, op.response.hist_ns.count(), String::new(), String::new(), &op.response);
        }
    }
    if driver.schedule_lag.hist_ns.count() > 0 {
        let lag = &driver.schedule_lag;
        row("start lag".to_owned(), lag.hist_ns.count(), String::new(), String::new(), lag);
    }
    page.wrapped(
        "",
        "Latency runs from the start of an operation to its end; (intended): from the start that the rate \
        scheduled.",
    );
    errors(page, record);
}

fn errors(page: &mut Sections, record: &Record) {
    let driver = &record.driver;
    page.pairs(&[
        ("Errors in the window".to_owned(), thousands(driver.errors_count.values().sum())),
        ("Errors, whole run".to_owned(), thousands(driver.errors_whole_run_count)),
        ("Operations retried".to_owned(), thousands(driver.retries_count)),
        ("Hot spot operations".to_owned(), thousands(driver.hot_spot_hits_count)),
        ("Hot schema operations".to_owned(), thousands(driver.hot_schema_hits_count)),
        ("Think times".to_owned(), thousands(driver.think_count)),
        ("Think time (s)".to_owned(), number(&driver.think_s, 3)),
        ("In flight at start".to_owned(), in_flight(driver.in_flight_begin_count, &driver.in_flight_begin_us)),
        ("In flight at end".to_owned(), in_flight(driver.in_flight_end_count, &driver.in_flight_end_us)),
        ("Time in operations (s)".to_owned(), number(&driver.busy_s, 3)),
    ]);
    for (class, count) in &driver.errors_count {
        page.line(&format!("error {class}: {}", thousands(*count)));
    }
    for (class, count) in &driver.retries_by_class_count {
        page.line(&format!("retried after {class}: {}", thousands(*count)));
    }
}

fn in_flight(count: u64, us: &Figure) -> String {
    format!("{} for {} us", thousands(count), number(us, 0))
}

pub(super) fn sessions(page: &mut Sections, record: &Record) {
    page.heading("Sessions");
    let sessions = &record.driver.per_session;
    if sessions.is_empty() {
        page.line("n/a (no per-session readings)");
        return;
    }
    let spread = &record.driver.session_spread;
    page.line(&format!(
        "Operations per session, whole run: slowest {}, middle {}, fastest {}; coefficient of variation {} %.",
        number(&spread.min_count, 0),
        number(&spread.median_count, 0),
        number(&spread.max_count, 0),
        number(&spread.variation_ratio.scaled(100.0), 1),
    ));
    const COLUMNS: [Column; 8] = [
        left("Session", 9),
        right("Schema", 8),
        right("Operations", 14),
        right("Rows", 16),
        right("Busy (s)", 14),
        right("Think (s)", 14),
        right("First Op (s)", 14),
        right("Last Op (s)", 14),
    ];
    let mut shown: Vec<_> = sessions.iter().collect();
    if shown.len() > LISTED {
        shown.sort_by_key(|session| (session.ops_count, session.session));
        let fastest = shown.split_off(shown.len() - LISTED / 2);
        shown.truncate(LISTED / 2);
        shown.extend(fastest);
        page.line(&format!("The slowest {0} and the fastest {0} sessions; the record has all.", LISTED / 2));
    }
    page.columns(&COLUMNS);
    for session in shown {
        page.row(
            &COLUMNS,
            &[
                session.session.to_string().into(),
                session.schema.to_string().into(),
                thousands(session.ops_count).into(),
                thousands(session.rows_count).into(),
                Cell::figure(&session.busy_s, 3),
                Cell::figure(&session.think_s, 3),
                Cell::figure(&session.first_op_s, 3),
                Cell::figure(&session.last_op_s, 3),
            ],
        );
    }
}

pub(super) fn cost(page: &mut Sections, record: &Record) {
    page.heading("Cost and Truth of the Measurement");
    let (driver, checks) = (&record.driver, &record.checks);
    let ops: u64 = driver.ops.iter().map(|op| op.count).sum();
    let cpu_us = driver.thread_cpu_s.scaled(1e6).per(ops as f64, "no operations");
    let threads = Figure::Count(driver.threads_count);
    for (name, figure, decimals) in [
        ("Driver CPU per operation, us", &cpu_us, 3),
        ("Harness floor, ns per operation (null engine)", &driver.floor_ns_per_op, 1),
        ("Harness floor, % of driver CPU", &driver.floor_pct, 2),
        ("One clock reading, ns", &driver.clock_read_ns, 1),
        ("Driver threads", &threads, 0),
        ("Driver CPU, % of its threads", &driver.thread_cpu_pct, 1),
        ("Driver run delay, s", &driver.thread_run_delay_s, 3),
        ("Sessions that Little's law accounts for", &checks.little_sessions, 2),
        ("Actual sessions", &checks.little_expected_sessions, 2),
    ] {
        page.named(name, 48, number_or_reason(figure, decimals));
    }
    let bytes = |figure: &Figure| match figure.value() {
        Some(bytes) => size(bytes as u64),
        None => number_or_reason(figure, 0),
    };
    let whose = if record.instance.server.is_some() { facts::workers(&record.plan.engine_facts) } else { "process" };
    for (name, engine, process, device) in [
        ("Bytes read", &checks.engine_read_bytes, &checks.process_read_bytes, &checks.device_read_bytes),
        ("Bytes written", &checks.engine_write_bytes, &checks.process_write_bytes, &checks.device_write_bytes),
    ] {
        let (engine, process, device) = (bytes(engine), bytes(process), bytes(device));
        page.named(name, 48, format!("engine {engine}, {whose} {process}, devices {device}"));
    }
}
