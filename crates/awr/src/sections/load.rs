//! Load profile, efficiency and time model.

use super::header::percent;
use crate::deltas::{CPU, RUN_QUEUE};
use assay_measure::record::{Figure, Record};
use assay_measure::section::{Cell, Column, Sections, left, number, right};
use assay_measure::units::fixed;
use std::collections::BTreeMap;

pub(super) fn load_profile(page: &mut Sections, record: &Record) {
    const PROFILE: [Column; 6] = [
        left("Load Profile", 24),
        right("Per Second", 18),
        right("Per Transaction", 18),
        right("Per Exec", 10),
        right("Per Call", 10),
        right("Per Op", 14),
    ];
    page.unheaded("Load Profile");
    page.brief(9, &["Load Profile", "Per Second", "Per Op"]);
    page.columns(&PROFILE);
    for row in &record.instance.load_profile {
        let is_time = row.unit == "s";
        let only_rate = row.name == "Transactions";
        let cell = |shown: bool, figure: &Figure, decimals: usize| {
            if shown { number(figure, decimals) } else { String::new() }
        };
        page.row(
            &PROFILE,
            &[
                format!("{:>24}", format!("{}:", row.name)).into(),
                Cell::figure(&row.per_s, 1),
                cell(!only_rate, &row.per_tx, 1).into(),
                cell(is_time, &row.per_exec, 2).into(),
                cell(is_time, &row.per_call, 2).into(),
                cell(!only_rate, &row.per_op, 1).into(),
            ],
        );
    }
    let mut sources: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in &record.instance.load_profile {
        sources.entry(&row.source).or_default().push(&row.name);
    }
    if sources.is_empty() {
        return;
    }
    let each = |(source, names): (&&str, &Vec<&str>)| format!("{source} ({})", names.join(", "));
    let each: Vec<String> = sources.iter().map(each).collect();
    page.wrapped("Sources of the profile: ", &format!("{}.", each.join("; ")));
    let missing = record.instance.load_profile.iter();
    let missing = missing.filter(|row| row.per_s.value().is_none());
    let missing = missing.filter_map(|row| Some((row.total.reason()?, row.name.as_str())));
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (reason, name) in missing {
        reasons.entry(reason).or_default().push(name);
    }
    for (reason, names) in reasons {
        page.wrapped(&format!("n/a ({reason}): "), &names.join(", "));
    }
}

pub(super) fn efficiency(page: &mut Sections, record: &Record) {
    page.heading("Instance Efficiency Percentages (Target 100%)");
    const PAIRS: [Column; 4] = [right("Ratio", 24), right("%", 11), right("Ratio", 28), right("%", 11)];
    page.untitled(&PAIRS);
    for pair in record.instance.efficiency.chunks(2) {
        let cells = pair.iter().flat_map(|row| {
            let name = format!("{}:", row.name);
            [name.into(), Cell::figure(&row.value_pct, 2)]
        });
        page.row(&PAIRS, &cells.collect::<Vec<_>>());
    }
}

pub(super) fn time_model(page: &mut Sections, record: &Record) {
    const MODEL: [Column; 4] =
        [left("Statistic", 44), right("Time (s)", 18), right("% DB Time", 12), left(" Source", 9)];
    page.heading("Time Model Statistics");
    page.columns(&MODEL);
    let model = &record.instance.time_model;
    let db_time = model.db_time_us.value().unwrap_or(0.0);
    let source = |key: &str, figure: &Figure| {
        let source = model.sources.get(key).filter(|_| figure.value().is_some());
        Cell::from(source.map_or_else(String::new, |source| format!(" {source}")))
    };
    let foreground = [
        ("DB time", "db_time_us", &model.db_time_us),
        ("DB CPU", "db_cpu_us", &model.db_cpu_us),
        ("foreground waits", "fg_wait_us", &model.fg_wait_us),
        ("on thread", "on_thread_us", &model.on_thread_us),
        ("run queue", "run_queue_us", &model.run_queue_us),
        ("CPU inside waits", "cpu_in_wait_us", &model.cpu_in_wait_us),
        ("run delay of driver threads (kernel)", "kernel_run_delay_us", &model.kernel_run_delay_us),
    ];
    for (name, key, figure) in foreground {
        let share = figure.scaled(100.0).per(db_time, "no DB time");
        let cells = [name.into(), Cell::figure(&figure.scaled(1e-6), 3), percent(&share), source(key, figure)];
        page.row(&MODEL, &cells);
    }
    let background = [
        ("background elapsed time", "bg_elapsed_us", &model.bg_elapsed_us),
        ("background cpu time", "bg_cpu_us", &model.bg_cpu_us),
        ("background waits", "bg_wait_us", &model.bg_wait_us),
    ];
    for (name, key, figure) in background {
        let cells = [name.into(), Cell::figure(&figure.scaled(1e-6), 3), Cell::default(), source(key, figure)];
        page.row(&MODEL, &cells);
    }
    if record.instance.server.is_some() {
        accounts(page, record);
        return;
    }
    page.wrapped(
        "",
        "DB time = foreground waits + on thread + run queue. On thread is wall time: if DB CPU is higher, the \
        difference is CPU used outside operations.",
    );
}

/// A server's time has two accounts, and they are not to be added up.
fn accounts(page: &mut Sections, record: &Record) {
    page.wrapped(
        "",
        "DB time is the time of the operations as the sessions saw it. Two sources divide it; do not add them up. The \
         samples show the state of each session in the server at a tick (at work or in a wait). The kernel reports how \
         long the session's process had a CPU (DB CPU) or queued for one (run queue). A process that has been woken \
         but still queues for a CPU shows its wait, so waits include run queue and, around short waits, CPU.",
    );
    let ash = &record.instance.ash;
    let cpu: f64 = [CPU, RUN_QUEUE].iter().filter_map(|class| ash.by_class.get(*class)?.active_count.value()).sum();
    let db_time = record.instance.time_model.db_time_us.scaled(1e-6);
    let (Some(all), Some(db), Some(window), Some(allowed)) = (
        ash.active_count.value(),
        db_time.value().filter(|s| *s > 0.0),
        record.interval.elapsed_s.value(),
        ash.db_time_allowed_ratio.value(),
    ) else {
        return;
    };
    let sum = all * window;
    let off = 100.0 * (sum - db).abs() / db;
    let agrees = if off <= 100.0 * allowed { "within" } else { "BEYOND" };
    page.wrapped(
        "",
        &format!(
            "By the samples: at work {} s + in waits {} s = {} s, {} % from DB time, {agrees} the {} % that {} ticks allow.",
            fixed(cpu * window, 3),
            fixed((all - cpu) * window, 3),
            fixed(sum, 3),
            fixed(off, 1),
            fixed(100.0 * allowed, 1),
            number(&ash.ticks_count, 0),
        ),
    );
}
