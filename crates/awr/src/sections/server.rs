//! What only a database server's run has: the result line of the field and the server's own shares.

use super::header::percent;
use crate::result_line;
use assay_measure::facts;
use assay_measure::record::{Figure, Record, ServerInfo};
use assay_measure::section::{Column, Sections, left, number, number_or_reason, right};
use assay_measure::snapshot::Fact;
use assay_measure::units::{fixed, size};

/// A longer value has a line of its own.
const PAIR: usize = 36;

/// RIOPS and CACHE_HITS/s over the true window, and the rows before and after it.
pub(super) fn result(page: &mut Sections, record: &Record) {
    let Some(server) = &record.instance.server else {
        return;
    };
    page.heading("Result Line");
    for line in result_line::lines(record, server) {
        page.line(&line);
    }
    page.wrapped(
        "",
        &format!(
            "RIOPS counts the blocks that the {} asked the operating system for, from a device or from the page cache. \
             Both rates cover the window between the two rows, in which every session worked.",
            facts::kind(&record.plan.engine_facts)
        ),
    );
    if let Some(pct) = server.end_point_error_pct.value() {
        let pct = fixed(pct, 1);
        page.wrapped(
            "",
            &if server.published_late {
                format!(
                    "The server's sessions publish their counters up to a second late: at each end of the window a \
                     counter can be off by at most {pct} % of the window. Totals of the whole run are exact."
                )
            } else {
                format!(
                    "Every session published its counters at both ends of the window: the error is at most the \
                     duration of the snapshots, {pct} % of the window."
                )
            },
        );
    }
    let mut facts = record.plan.engine_facts.iter();
    if let Some(fact) = facts.find(|fact| fact.name == "statistics_of_writes") {
        page.wrapped("", &format!("{}.", capital(&fact.value)));
    }
}

pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

/// The name of the section on the database itself.
pub(super) fn heading(record: &Record) -> String {
    format!("Database {}", capital(facts::kind(&record.plan.engine_facts)))
}

/// Where server and driver ran, what the server says of itself, and shares only it can tell.
pub(super) fn server(page: &mut Sections, record: &Record) {
    let Some(server) = &record.instance.server else {
        return;
    };
    page.heading(&heading(record));
    let (short, long): (Vec<_>, Vec<_>) = told_first(&record.plan.engine_facts)
        .into_iter()
        .map(|fact| {
            let name = fact.name.strip_prefix("setting_").unwrap_or(&fact.name);
            (name.to_owned(), shown(fact))
        })
        .partition(|(_, value)| value.chars().count() <= PAIR);
    if short.is_empty() && long.is_empty() {
        page.line(&format!("n/a (the {} gave no information about itself)", facts::kind(&record.plan.engine_facts)));
    }
    page.pairs(&short);
    for (name, value) in long {
        page.wrapped(&format!("{name:<24} "), &value);
    }
    placement(page, record, server);
    hit_ratio(page, record);
    shares(page, server);
}

/// The facts that the engine names, in its order; of records before it did, who the server is and all its settings.
fn told_first(facts: &[Fact]) -> Vec<&Fact> {
    match facts::SERVER_TOLD.find(facts) {
        Some(names) => {
            names.split_whitespace().filter_map(|name| facts.iter().find(|fact| fact.name == name)).collect()
        }
        None => {
            let who = [facts::SERVER_VERSION, facts::SERVER_HOST, facts::DATABASE].map(|key| key.name);
            let is_told = |fact: &&Fact| who.contains(&fact.name.as_str()) || fact.name.starts_with("setting_");
            facts.iter().filter(is_told).collect()
        }
    }
}

/// Bytes as people say them.
fn shown(fact: &Fact) -> String {
    let bytes = fact.name.ends_with("_bytes").then(|| fact.value.parse().ok());
    bytes.flatten().map_or_else(|| fact.value.clone(), size)
}

fn placement(page: &mut Sections, record: &Record, server: &ServerInfo) {
    let driver = &record.driver.thread_cpu_s;
    let model = &record.instance.time_model;
    let used = model.db_cpu_us.plus(&model.bg_cpu_us).scaled(1e-6);
    page.line("");
    if facts::IN_PROCESS.find(&record.plan.engine_facts).is_some() {
        let cpu = number_or_reason(&used, 2);
        page.line(&format!("CPU of the driver threads, which do the database's own work: {cpu} s."));
        return;
    }
    page.line(&format!(
        "CPU of the server {} s, of the driver threads {} s ({} % of this host's CPUs).",
        number_or_reason(&used, 2),
        number_or_reason(driver, 2),
        number_or_reason(&server.driver_of_host_pct, 1),
    ));
    loop_place(page, server);
}

fn loop_place(page: &mut Sections, server: &ServerInfo) {
    let text = match server.loop_place.as_str() {
        "server" => {
            "LOOP=server: the server performs the operations; each operation is timed there, with a resolution of 1 \
             us. No latency includes the round trip or the cost of a slice beyond its operations."
        }
        "client" => {
            "LOOP=client: each operation is timed by the driver, from before its request is sent until its answer is \
             read; this includes the round trip."
        }
        _ => return,
    };
    page.wrapped("", text);
}

fn hit_ratio(page: &mut Sections, record: &Record) {
    let checks = &record.checks;
    let points = match (checks.hit_expected_pct.value(), checks.hit_measured_pct.value()) {
        (Some(expected), Some(measured)) => {
            // A tenth is what is shown; less is nothing, and has no sign.
            let off = ((measured - expected) * 10.0).round() / 10.0 + 0.0;
            let flag = if off.abs() > crate::rules::HIT_POINTS { " - see the warnings" } else { "" };
            format!("; {} points apart{flag}", fixed(off, 1))
        }
        _ => String::new(),
    };
    page.line(&format!(
        "Buffer hit ratio expected {}, measured {}{points}. Cache {} blocks, active {} blocks.",
        with_percent(&checks.hit_expected_pct),
        with_percent(&checks.hit_measured_pct),
        number_or_reason(&checks.cache_blocks, 0),
        number_or_reason(&checks.active_blocks, 0),
    ));
}

fn with_percent(figure: &Figure) -> String {
    match figure.reason() {
        Some(reason) => format!("n/a ({reason})"),
        None => format!("{} %", number(figure, 1)),
    }
}

fn shares(page: &mut Sections, server: &ServerInfo) {
    if server.shares.is_empty() {
        return;
    }
    const COLUMNS: [Column; 3] = [left("Share", 44), right("%", 10), left(" Why Not", 30)];
    page.line("");
    page.columns(&COLUMNS);
    for row in &server.shares {
        let reason = row.value_pct.reason().unwrap_or_default();
        page.row(&COLUMNS, &[row.name.clone().into(), percent(&row.value_pct), format!(" {reason}").into()]);
    }
}
