//! Load profile, efficiency and time model.

use super::header::percent;
use super::page::{Column, Page, left, number, right};
use assay_measure::record::{Figure, Record};

pub(super) fn load_profile(page: &mut Page, record: &Record) {
    const PROFILE: [Column; 6] = [
        left("Load Profile", 24),
        right("Per Second", 18),
        right("Per Transaction", 18),
        right("Per Exec", 10),
        right("Per Call", 10),
        right("Per Op", 14),
    ];
    page.line("");
    page.columns(&PROFILE);
    for row in &record.load_profile {
        let is_time = row.unit == "s";
        let only_rate = row.name == "Transactions";
        let cell = |shown: bool, figure: &Figure, decimals: usize| match shown {
            true => number(figure, decimals),
            false => String::new(),
        };
        page.row(
            &PROFILE,
            &[
                format!("{:>24}", format!("{}:", row.name)),
                number(&row.per_s, 1),
                cell(!only_rate, &row.per_tx, 1),
                cell(is_time, &row.per_exec, 2),
                cell(is_time, &row.per_call, 2),
                cell(!only_rate, &row.per_op, 1),
            ],
        );
    }
    page.line("Source: engine counters (sysstat), CPU from the thread clocks (proc), operations and DB time from the driver (client).");
}

pub(super) fn efficiency(page: &mut Page, record: &Record) {
    page.heading("Instance Efficiency Percentages (Target 100%)");
    for pair in record.efficiency.chunks(2) {
        let cells: Vec<String> = pair
            .iter()
            .map(|row| {
                format!(
                    "{:>24} {:>10}",
                    format!("{}:", row.name),
                    number(&row.value_pct, 2)
                )
            })
            .collect();
        page.line(&cells.join("    "));
    }
}

pub(super) fn time_model(page: &mut Page, record: &Record) {
    const MODEL: [Column; 3] = [
        left("Statistic", 44),
        right("Time (s)", 18),
        right("% DB Time", 12),
    ];
    page.heading("Time Model Statistics");
    page.columns(&MODEL);
    let model = &record.time_model;
    let db_time = model.db_time_us.value().unwrap_or(0.0);
    let foreground = [
        ("DB time", &model.db_time_us),
        ("DB CPU", &model.db_cpu_us),
        ("foreground waits", &model.fg_wait_us),
        ("on thread", &model.on_thread_us),
        ("run queue", &model.run_queue_us),
        ("CPU inside waits", &model.cpu_in_wait_us),
        (
            "run delay of driver threads (kernel)",
            &model.kernel_run_delay_us,
        ),
    ];
    for (name, figure) in foreground {
        let share = figure.scaled(100.0).per(db_time, "no DB time");
        let cells = [
            name.to_owned(),
            number(&figure.scaled(1e-6), 3),
            percent(&share),
        ];
        page.row(&MODEL, &cells);
    }
    let background = [
        ("background elapsed time", &model.bg_elapsed_us),
        ("background cpu time", &model.bg_cpu_us),
        ("background waits", &model.bg_wait_us),
    ];
    for (name, figure) in background {
        page.row(&MODEL, &[name.to_owned(), number(&figure.scaled(1e-6), 3)]);
    }
    page.line("DB time = foreground waits + on thread + run queue. On thread is wall time: DB CPU above it is CPU outside operations.");
}
