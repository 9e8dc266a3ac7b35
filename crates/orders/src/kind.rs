//! The record kind of order entry: the figures, sections and charts of every workload, preceded by its own.
//!
//! Results printed by Swingbench have the same kind and keys but no part; anything that needs the part is left out.

use crate::checks::{BROKEN, HOLDS};
use crate::mix::Tx;
use crate::params::Pause;
use crate::part::{FromEngine, OrdersInfo, TxRow};
use crate::results;
use crate::workload::NAME;
use assay_awr::Workload;
use assay_measure::chart::Drawn;
use assay_measure::kind::{Check, Finding, Headline, HeadlineFigure, HeadlineLine, Kind, Next};
use assay_measure::plain::shell_word;
use assay_measure::record::metric::{Better, Group, find, lower, plain};
use assay_measure::record::{Advice, Figure, Metric, Record};
use assay_measure::section::{Cell, Column, Section, Sections, Weight, left, right, wrapped};
use assay_measure::snapshot::RunData;
use assay_measure::units::{fixed, six, thousands};
use serde::Deserialize;

/// What every workload's records contain.
const BASE: Workload = Workload(NAME);

/// The verdict on a run whose figures must not be used.
const INVALID: &str = "invalid";

/// The record kind of order entry.
#[derive(Clone, Copy, Debug)]
pub struct Orders;

impl Kind for Orders {
    fn name(&self) -> &'static str {
        NAME
    }

    fn tells(&self, record: &Record) -> bool {
        record.kind == NAME && (record.import.is_some() || OrdersInfo::part_of(record).is_some())
    }

    fn complete(&self, data: &RunData, record: &mut Record) {
        let Some(info) = OrdersInfo::of(data) else {
            return;
        };
        if !info.verdicts(BROKEN).is_empty() {
            INVALID.clone_into(&mut record.run.verdict);
            record.run.verdict_reasons.push(info.consistency());
        }
        record.parts.put(&info);
    }

    fn add_parts(&self, parts: &[&serde_json::Value]) -> Option<serde_json::Value> {
        let parts = parts.iter().map(|part| FromEngine::deserialize(*part).ok());
        let all = parts.reduce(|all, more| Some(all?.with(&more?)))??;
        serde_json::to_value(all).ok()
    }

    fn metrics(&self, record: &Record) -> Vec<Metric> {
        let mut all = BASE.metrics(record);
        if let Some(info) = OrdersInfo::part_of(record) {
            own_metrics(record, &info, &mut all);
        }
        all
    }

    fn sections(&self, record: &Record) -> Sections {
        let mut page = BASE.sections(record);
        if let Some(info) = OrdersInfo::part_of(record) {
            let mut own = Sections::default();
            card(&mut own, record, &info);
            transactions(&mut own, record, &info);
            trouble(&mut own, &info);
            consistency(&mut own, &info);
            let at = first_after_judgements(&page.all);
            page.all.splice(at..at, own.all);
        }
        page
    }

    fn charts(&self, record: &Record, draw: &mut dyn FnMut(Drawn)) {
        BASE.charts(record, draw);
    }

    fn headline(&self, record: &Record) -> Headline {
        let base = BASE.headline(record);
        match OrdersInfo::part_of(record) {
            Some(info) => headline(record, &info, base),
            None if record.import.is_some() => imported(record, base),
            None => base,
        }
    }

    fn in_words_of_tool(&self, record: &Record) -> Option<String> {
        OrdersInfo::part_of(record).map(|info| results::table(record, &info))
    }

    fn in_file_of_tool(&self, record: &Record, tool: &str) -> Option<String> {
        match tool {
            "swingbench" => OrdersInfo::part_of(record).map(|info| results::file(record, &info)),
            _ => BASE.in_file_of_tool(record, tool),
        }
    }

    fn conditions(&self, baseline: &Record, candidate: &Record) -> Vec<Check> {
        [conditions(baseline, candidate), BASE.conditions(baseline, candidate)].concat()
    }

    fn several(&self, records: &[&Record]) -> Vec<Advice> {
        BASE.several(records)
    }

    fn readable(&self, record: &Record) -> Result<(), serde_json::Error> {
        record.parts.read::<OrdersInfo>().map(drop)
    }
}

/// Index of the first section with measurements, after those with judgements.
fn first_after_judgements(all: &[Section]) -> usize {
    let last = all.iter().rposition(|section| section.is_judgement);
    last.map_or(usize::from(!all.is_empty()), |last| last + 1)
}

fn client(metric: Metric) -> Metric {
    Metric { layer: "client".to_owned(), ..metric }
}

fn counted(key: &str, name: &str, better: Better, n: u64) -> Metric {
    let figure = n.into();
    client(plain(Group::Operation, key, name, "count", better, figure))
}

fn own_metrics(record: &Record, info: &OrdersInfo, all: &mut Vec<Metric>) {
    transaction_metrics(record, info, all);
    let failed = info.transactions.iter().map(TxRow::failures).sum();
    let (key, name) = ("transactions_failed_count", "Transactions failed");
    all.push(counted(key, name, Better::Lower, failed));
    if info.dropped_told().is_some() {
        let (key, name) = ("arrivals_dropped_count", "Arrivals dropped");
        all.push(counted(key, name, Better::Lower, info.dropped));
    }
    let most = results::per_minute_max(record);
    let (key, name) = ("transactions_per_min_max", "Most transactions in a minute");
    all.push(counted(key, name, Better::Higher, most));
    let broken = if info.known.checks.is_empty() {
        Figure::na("not checked")
    } else {
        Figure::Count(info.verdicts(BROKEN).len() as u64)
    };
    all.push(plain(
        Group::Operation,
        "consistency_broken_count",
        "Consistency checks broken",
        "count",
        Better::Lower,
        broken,
    ));
}

fn transaction_metrics(record: &Record, info: &OrdersInfo, all: &mut Vec<Metric>) {
    for row in &info.transactions {
        let Some(op) = record.driver.ops.iter().find(|op| op.kind == row.kind) else {
            continue;
        };
        for (name, q) in [("p10", 0.1), ("p95", 0.95)] {
            let us = results::percentile_us(&op.response.hist_ns, q);
            let figure = us.map_or_else(|| Figure::na("too few samples"), Figure::decimal);
            let (key, name) = (format!("{}_us_{name}", row.kind), format!("{} {name}", row.kind));
            all.push(client(lower(Group::Operation, &key, &name, &figure)));
        }
        for (what, n) in [("failed", row.failures()), ("retried", row.retries())] {
            let (key, name) = (format!("{}_{what}_count", row.kind), format!("{} {what}", row.kind));
            all.push(counted(&key, &name, Better::Lower, n));
        }
    }
}

fn pause_told(pause: Pause) -> String {
    if !pause.is_some() {
        return "none".to_owned();
    }
    let [least, most] = [pause.min_ns, pause.max_ns].map(|ns| fixed(ns as f64 / 1e6, 0));
    format!("{least} to {most} ms")
}

fn card(page: &mut Sections, record: &Record, info: &OrdersInfo) {
    page.heading("Order Entry");
    let Some(asked) = info.asked() else {
        return;
    };
    let known = &info.known;
    let pair = |name: &str, value: String| (name.to_owned(), value);
    page.wrapped("Mix: ", &format!("{}: {}; drawn: {}", asked.mix.preset, asked.mix.told(), info.draw()));
    page.wrapped("Form: ", &format!("{}; {}", info.form(), info.arrivals()));
    page.wrapped("Durability: ", &known.durability);
    page.line("");
    page.pairs(&[
        pair("Sessions", thousands(record.run.sessions)),
        pair("Isolation", known.isolation.clone()),
        pair("Think time within", pause_told(asked.intra)),
        pair("Think time between", pause_told(asked.inter)),
        pair("Scale", six(known.scale)),
        pair("Most retries", asked.retries.to_string()),
        pair("Seed of the data", known.data_seed.to_string()),
        pair("Rules of the data", known.data_version.to_string()),
        pair("Partitions", info.partitions()),
        pair("Commit of a logon", info.logon_commit().to_owned()),
    ]);
    page.line("");
    let ledger = &known.ledger;
    page.wrapped(
        "",
        &format!(
            "From gate to drain the sessions sent {} selects, {} inserts and {} updates; {} transactions were committed, {} \
             rolled back.",
            thousands(ledger.selects),
            thousands(ledger.inserts),
            thousands(ledger.updates),
            thousands(ledger.commits),
            thousands(ledger.rollbacks)
        ),
    );
}

fn title_of(row: &TxRow) -> &str {
    match row.tx() {
        Some(tx) => tx.title(),
        None => &row.kind,
    }
}

fn transactions(page: &mut Sections, record: &Record, info: &OrdersInfo) {
    page.heading("Transactions");
    page.brief(9, &["Transaction (ms)", "Per Second", "p50", "p99"]);
    const COLUMNS: [Column; 13] = [
        left("Transaction (ms)", 26),
        right("Count", 12),
        right("Per Second", 12),
        right("Offered %", 11),
        right("Done %", 9),
        right("Avg", 10),
        right("p10", 9),
        right("p50", 9),
        right("p90", 9),
        right("p95", 9),
        right("p99", 10),
        right("p99.9", 10),
        right("Max", 11),
    ];
    page.columns(&COLUMNS);
    let done: u64 = record.driver.ops.iter().map(|op| op.count).sum();
    let offered: u32 = info.transactions.iter().map(|row| row.weight).sum();
    for row in &info.transactions {
        let title = title_of(row);
        let share = |part: f64, of: f64| match of {
            0.0 => "n/a".to_owned(),
            of => fixed(100.0 * part / of, 1),
        };
        let Some(op) = record.driver.ops.iter().find(|op| op.kind == row.kind) else {
            let cells: Vec<Cell> =
                std::iter::once(title.into()).chain((1..COLUMNS.len()).map(|_| Cell::from("n/a"))).collect();
            page.row(&COLUMNS, &cells);
            continue;
        };
        let ms = |q: f64| match results::percentile_us(&op.response.hist_ns, q) {
            Some(us) => Cell::figure(&Figure::decimal(us / 1e3), 2),
            None => Cell::figure(&Figure::na("too few samples"), 2),
        };
        let whole = |figure: &Figure| Cell::figure(&figure.scaled(1e-3), 2);
        page.row(
            &COLUMNS,
            &[
                title.into(),
                thousands(op.count).into(),
                Cell::figure(&op.per_s, 1),
                share(row.weight.into(), offered.into()).into(),
                share(op.count as f64, done as f64).into(),
                whole(&op.response.us_avg),
                ms(0.1),
                ms(0.5),
                ms(0.9),
                ms(0.95),
                ms(0.99),
                ms(0.999),
                whole(&op.response.us_max),
            ],
        );
    }
    measured_from(page, info);
}

/// Explains what the times include, and which times are missing.
fn measured_from(page: &mut Sections, info: &OrdersInfo) {
    let clock = match info.known.rate_per_s {
        0 => "Times run from a transaction's start to its answer, including all its attempts and pauses.",
        _ => {
            "Times run from the instant at which a transaction was due, whether or not it could start then; Driver \
             Statistics has the times from the actual start."
        }
    };
    page.wrapped("", clock);
    if let Some(told) = info.dropped_told() {
        page.wrapped("", &told);
    }
}

fn trouble(page: &mut Sections, info: &OrdersInfo) {
    page.heading("Failed and Retried Transactions");
    let rows: Vec<_> = info
        .transactions
        .iter()
        .flat_map(|row| {
            let failed = row.failed.iter().map(move |(class, n)| (row, "failed", class, n));
            let again = row.retried.iter().map(move |(class, n)| (row, "attempted again", class, n));
            failed.chain(again)
        })
        .collect();
    if rows.is_empty() {
        page.line("No transaction failed in the window, and none was retried.");
        return;
    }
    const COLUMNS: [Column; 4] = [left("Transaction", 26), left(" What", 18), left(" Why", 22), right("Count", 12)];
    page.columns(&COLUMNS);
    for (row, what, class, n) in rows {
        let title = title_of(row);
        page.row(&COLUMNS, &[title.to_owned(), format!(" {what}"), format!(" {class}"), thousands(*n)]);
    }
}

fn consistency(page: &mut Sections, info: &OrdersInfo) {
    page.heading("Consistency of the Data Set");
    if info.known.checks.is_empty() {
        page.line(&format!("n/a ({})", info.known.unchecked));
        return;
    }
    let weight = if info.verdicts(BROKEN).is_empty() { Weight::Plain } else { Weight::Bad };
    page.finding(weight, "", &info.consistency());
    const COLUMNS: [Column; 3] = [left("Check", 6), left(" Verdict", 9), wrapped(" Rule, or finding")];
    page.columns(&COLUMNS);
    for one in &info.known.checks {
        let text = match one.verdict.as_str() {
            HOLDS => one.what.clone(),
            _ => format!("{}: {}", one.what, one.found),
        };
        page.row(&COLUMNS, &[one.id.clone(), format!(" {}", one.verdict), format!(" {text}")]);
    }
}

fn headline(record: &Record, info: &OrdersInfo, base: Headline) -> Headline {
    let preset = info.asked().map_or("", |asked| asked.mix.preset.as_str());
    let mut rows = vec![rate(record)];
    let busiest = info.transactions.iter().max_by_key(|row| row.weight).and_then(|row| row.tx());
    for tx in [busiest, Some(Tx::OrderProducts)].into_iter().flatten() {
        if rows.len() > 2 || rows.iter().any(|row| row.title == tx.title()) {
            continue;
        }
        rows.push(times(record, tx, "response_"));
    }
    // What order entry says in its own words is not said twice.
    rows.extend(base.rows.into_iter().filter(|row| !["Rate", "p99 at that rate"].contains(&row.title)));
    rows.push(HeadlineLine { title: "Data set", otherwise: info.consistency(), ..HeadlineLine::default() });
    Headline {
        tested: format!(
            "{} on {} did order entry ({preset} mix, {}, {}, scale {}){}.",
            sessions(record),
            record.product(),
            info.form().split(':').next().unwrap_or_default(),
            info.arrivals(),
            six(info.known.scale),
            window(record),
        ),
        rows,
        next: next(record),
        rerun_command: base.rerun_command.replacen("assay run", "assay orders run", 1),
        ..base
    }
}

/// For a result that another tool printed: its times are those of the calls.
fn imported(record: &Record, base: Headline) -> Headline {
    let mut rows = vec![rate(record)];
    let times = [Tx::BrowseProducts, Tx::OrderProducts].map(|tx| times(record, tx, ""));
    let is_known = |line: &HeadlineLine| line.told.iter().any(|told| told.value.value().is_some());
    rows.extend(times.into_iter().filter(is_known));
    Headline { tested: format!("{} did order entry{}.", sessions(record), window(record)), rows, ..base }
}

fn rate(record: &Record) -> HeadlineLine {
    let told = vec![HeadlineFigure::new(&figure(record, "ops_per_s"), "transactions/s")];
    HeadlineLine::of("Rate", told, "transactions n/a (absent)")
}

/// Times of one transaction; `which` is a part of the figure keys, `response_` or empty.
fn times(record: &Record, tx: Tx, which: &str) -> HeadlineLine {
    let told = ["p50", "p90", "p99"].map(|q| {
        let key = format!("{}_{which}us_{q}", tx.key());
        HeadlineFigure::new(&figure(record, &key).scaled(1e-3), &format!("ms {q}"))
    });
    HeadlineLine::of(tx.title(), told.to_vec(), "response times n/a (absent)")
}

fn figure(record: &Record, key: &str) -> Figure {
    find(&record.metrics, key).map_or_else(Figure::default, |metric| metric.value.clone())
}

fn sessions(record: &Record) -> String {
    match record.run.sessions {
        0 => "Sessions".to_owned(),
        1 => "1 session".to_owned(),
        many => format!("{} sessions", thousands(many)),
    }
}

fn window(record: &Record) -> String {
    let elapsed_s = record.interval.elapsed_s.value();
    elapsed_s.map_or_else(String::new, |s| format!(" for {} s", fixed(s, 0)))
}

fn next(record: &Record) -> Vec<Next> {
    let target = record.plan.settings.iter().find(|line| line.name == "TARGET");
    let target = target.map_or_else(String::new, |line| format!(" --target {}", shell_word(&line.value)));
    if record.run.verdict == INVALID {
        return Next::after_invalid("assay orders", &target);
    }
    vec![
        Next::new(
            format!("assay orders sweep{target} --sessions auto --p99 50ms"),
            "finds the highest load that meets a goal",
        ),
        Next::new(format!("assay orders run{target} --repeat 5"), "measures the noise between runs"),
    ]
}

/// Extracts a condition of the test from a run.
type Tells = fn(&OrdersInfo) -> String;

/// Conditions that must be equal for two runs to be of the same test. Those that an import does not contain are
/// unknown.
fn conditions(baseline: &Record, candidate: &Record) -> Vec<Check> {
    let [a, b] = [baseline, candidate].map(OrdersInfo::part_of);
    let of = |info: &Option<OrdersInfo>, what: Tells| info.as_ref().map(what).unwrap_or_default();
    let all: [(&str, Tells); 12] = [
        ("mix", |info| info.asked().map(|asked| asked.mix.preset.clone()).unwrap_or_default()),
        ("weights", |info| info.asked().map(|asked| asked.mix.told()).unwrap_or_default()),
        ("draw of the mix", |info| info.draw().to_owned()),
        ("form of the transactions", |info| info.form().to_owned()),
        ("arrivals", OrdersInfo::arrivals),
        ("scale", |info| six(info.known.scale)),
        ("rules of the data", |info| info.known.data_version.to_string()),
        ("commit of a logon", |info| info.logon_commit().to_owned()),
        ("partitions", OrdersInfo::partitions),
        ("isolation", |info| info.known.isolation.clone()),
        ("durability of the server", |info| info.known.durability.clone()),
        ("think times", |info| {
            info.asked()
                .map(|asked| format!("{}; {}", pause_told(asked.intra), pause_told(asked.inter)))
                .unwrap_or_default()
        }),
    ];
    all.into_iter().map(|(what, value)| Check::text(what, &of(&a, value), &of(&b, value), Finding::Forbids)).collect()
}
