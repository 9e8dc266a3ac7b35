//! A comparison as text: conditions, doubts and advice before the conclusion, then every table.

use super::model::{Cell, Comparison, Finding, Row, SharedHistogram};
use super::verdict::{percent, ratio_text};
use assay_measure::record::Figure;
use assay_measure::section::{Column, Sections, left, number, right};
use assay_measure::units::{fixed, shorten, significant};

/// Statistics worth a line; the others are in the JSON.
const STATISTICS: [&str; 14] = [
    "consistent_gets_blocks_per_s",
    "db_block_changes_count_per_s",
    "physical_reads_cache_blocks_per_s",
    "physical_reads_cache_prefetch_blocks_per_s",
    "physical_reads_direct_blocks_per_s",
    "physical_write_total_bytes_per_s",
    "physical_writes_non_checkpoint_blocks_per_s",
    "free_buffer_requested_count_per_s",
    "dirty_buffers_inspected_count_per_s",
    "redo_writes_count_per_s",
    "redo_synch_writes_count_per_s",
    "redo_wastage_bytes_per_s",
    "redo_log_switches_count_per_s",
    "user_commits_count_per_s",
];
/// Events with most time in any group.
const TOP_EVENTS: usize = 6;

/// Renders a comparison; tables are as wide as their columns ask.
#[must_use]
pub fn render(comparison: &Comparison) -> String {
    let mut page = Sections::default();
    page.line("Comparison");
    groups(&mut page, comparison);
    checks(&mut page, comparison);
    doubts(&mut page, comparison);
    advice(&mut page, comparison);
    page.heading("Conclusion");
    for sentence in &comparison.conclusion {
        page.wrapped("- ", sentence);
    }
    for pair in &comparison.pairs {
        page.wrapped("  how: ", &pair.method_text);
    }
    declared(&mut page, comparison);
    let section = |name: &'static str| move |row: &&Row| row.section == name;
    counters(
        &mut page,
        comparison,
        "Load Profile",
        &section("load profile"),
    );
    values(&mut page, comparison, "Operations", &section("operations"));
    events(&mut page, comparison);
    histograms(&mut page, comparison);
    values(
        &mut page,
        comparison,
        "IO Profile, per second",
        &section("io profile"),
    );
    values(&mut page, comparison, "Storage", &section("storage"));
    values(
        &mut page,
        comparison,
        "Imported Figures",
        &section("imported"),
    );
    counters(&mut page, comparison, "Selected Statistics", &|row| {
        row.section == "statistics" && STATISTICS.contains(&row.key.as_str())
    });
    values(
        &mut page,
        comparison,
        "Instance Efficiency",
        &section("efficiency"),
    );
    values(&mut page, comparison, "Host CPU", &section("host"));
    if !comparison.costs.is_empty() {
        let costs: Vec<&crate::cost::Cost> = comparison.costs.iter().collect();
        for line in crate::cost::section(&costs).lines() {
            page.line(line);
        }
    }
    page.line("");
    page.wrapped(
        "",
        "Verdicts of declared figures are corrected for their number; those marked * rest on the figure's own 95 % interval \
         alone, and of twenty such figures one is expected to be marked by chance. Ratios are of rates, never of totals.",
    );
    page.line("");
    page.line("End of Comparison");
    crate::text::write(&page)
}

fn groups(page: &mut Sections, comparison: &Comparison) {
    page.line("");
    for group in &comparison.groups {
        let role = if group.letter == "A" {
            " (baseline)"
        } else {
            ""
        };
        page.line(&format!("{}{role}: {}", group.letter, group.name));
        for run in &group.runs {
            let mut told = vec![run.workload.clone(), run.engine.clone()];
            told.retain(|word| !word.is_empty());
            if run.sessions > 0 {
                told.push(format!("{} sessions", run.sessions));
            }
            if let Some(elapsed) = run.elapsed_s.value() {
                told.push(format!("{} s", fixed(elapsed, 1)));
            }
            if !run.label.is_empty() {
                told.push(format!("label {}", run.label));
            }
            let started: String = run.started.chars().take(19).collect();
            told.extend([started, run.verdict.clone()]);
            told.retain(|word| !word.is_empty());
            page.line(&format!("    {:<10} {}", run.id, told.join(", ")));
        }
    }
}

fn checks(page: &mut Sections, comparison: &Comparison) {
    let columns = [
        left("Condition", 54),
        left(" Baseline", 22),
        left(" Other", 22),
        left(" Finding", 28),
    ];
    for pair in &comparison.pairs {
        page.heading(&format!(
            "Comparability, {} against {}",
            pair.candidate, pair.baseline
        ));
        let unlike = || {
            pair.checks
                .iter()
                .filter(|check| check.finding != Finding::Same)
        };
        let same = pair
            .checks
            .iter()
            .filter(|check| check.finding == Finding::Same);
        let same: Vec<String> = same.map(|c| format!("{} {}", c.what, c.baseline)).collect();
        if !same.is_empty() {
            page.wrapped("Same: ", &format!("{}.", same.join("; ")));
            page.line("");
        }
        if unlike().next().is_some() {
            page.columns(&columns);
        }
        for check in unlike() {
            let cell = |text: &str| format!(" {}", shorten(text, 20));
            let row = [
                check.what.clone(),
                cell(&check.baseline),
                cell(&check.candidate),
                format!(" {}", check.finding.word()),
            ];
            page.row(&columns, &row);
        }
        let unknown = pair.checks.iter().filter(|c| c.finding == Finding::Unknown);
        let unknown: Vec<&str> = unknown.map(|check| check.what.as_str()).collect();
        page.line("");
        page.wrapped(
            "",
            &match (pair.forbids_faster, unknown.as_slice()) {
                (true, _) => "Not the same test: rates and latencies are shown side by side, and neither side is called faster.".to_owned(),
                (false, []) => "Comparable.".to_owned(),
                (false, what) => format!("Comparable as far as is known; not known: {}.", what.join("; ")),
            },
        );
    }
}

fn doubts(page: &mut Sections, comparison: &Comparison) {
    page.heading("Integrity");
    if comparison.integrity.is_empty() {
        page.line("No identity of any run is violated.");
    }
    for doubt in &comparison.integrity {
        page.wrapped(&format!("{} {}: ", doubt.group, doubt.run), &doubt.text);
    }
}

fn advice(page: &mut Sections, comparison: &Comparison) {
    page.heading("Advice");
    if comparison.advice.is_empty() {
        page.line("No rule over several runs has anything to say.");
    }
    for found in &comparison.advice {
        page.wrapped(&format!("{} {}: ", found.id, found.severity), &found.text);
    }
}

fn declared(page: &mut Sections, comparison: &Comparison) {
    values(page, comparison, "Declared Figures", &|row| row.is_primary);
}

/// A table whose columns are made by the number of groups.
struct Table {
    columns: Vec<Column>,
}

/// Columns of a ratio to the baseline, once for each pair.
const OUTCOME: [Column; 3] = [
    right("Ratio", 9),
    right("95 % interval", 16),
    left(" Verdict", 12),
];

impl Table {
    fn new(comparison: &Comparison, of_group: &[Column]) -> Self {
        let mut columns = vec![left("", 36)];
        for _ in &comparison.groups {
            columns.extend_from_slice(of_group);
        }
        for _ in &comparison.pairs {
            columns.extend(OUTCOME);
        }
        Self { columns }
    }

    fn head(&self, page: &mut Sections, comparison: &Comparison, of_group: usize, width: usize) {
        let mut line = " ".repeat(36);
        for group in &comparison.groups {
            line.push_str(&format!("{:>width$}", format!("-- {} --", group.letter)));
        }
        for pair in &comparison.pairs {
            line.push_str(&format!(
                "{:>37}",
                format!("-- {} / {} --", pair.candidate, pair.baseline)
            ));
        }
        debug_assert!(of_group > 0);
        page.line(&line);
        page.columns(&self.columns);
    }
}

fn outcome(row: &Row) -> Vec<String> {
    let mut cells = Vec::new();
    for against in &row.against {
        let ratio = against.ratio.value().map_or("-".to_owned(), ratio_text);
        let interval = match (against.low_ratio.value(), against.high_ratio.value()) {
            (Some(low), Some(high)) => format!("{}..{}", ratio_text(low), ratio_text(high)),
            _ => "-".to_owned(),
        };
        let star = if against.verdict.is_shown() && !row.is_primary {
            "*"
        } else {
            ""
        };
        cells.extend([
            ratio,
            interval,
            format!(" {}{star}", against.verdict.word()),
        ]);
    }
    cells
}

type Wanted<'a> = &'a dyn Fn(&&Row) -> bool;

/// A section of counters: total, per second, per transaction, per operation of each group.
fn counters(page: &mut Sections, comparison: &Comparison, title: &str, wanted: Wanted<'_>) {
    let rows: Vec<&Row> = comparison
        .rows
        .iter()
        .filter(wanted)
        .filter(|row| has_any(row))
        .collect();
    if rows.is_empty() {
        return;
    }
    let of_group = [
        right("Total", 20),
        right("Per Second", 14),
        right("Per Txn", 14),
        right("Per Op", 12),
    ];
    let table = Table::new(comparison, &of_group);
    page.heading(title);
    table.head(page, comparison, of_group.len(), 60);
    for row in rows {
        let mut cells = vec![shorten(&row.name, 36)];
        for cell in &row.cells {
            cells.push(number(&cell.total, 0));
            cells.extend([&cell.per_s, &cell.per_tx, &cell.per_op].map(usual));
        }
        cells.extend(outcome(row));
        page.row(&table.columns, &cells);
    }
}

/// A section of figures that are no counters: the value of each group.
fn values(page: &mut Sections, comparison: &Comparison, title: &str, wanted: Wanted<'_>) {
    let rows: Vec<&Row> = comparison
        .rows
        .iter()
        .filter(wanted)
        .filter(|row| has_any(row))
        .collect();
    if rows.is_empty() {
        return;
    }
    let of_group = [right("Value", 16), left(" Unit", 10), right("CV %", 7)];
    let table = Table::new(comparison, &of_group);
    page.heading(title);
    table.head(page, comparison, of_group.len(), 33);
    for row in rows {
        let mut cells = vec![shorten(&row.name, 36)];
        for cell in &row.cells {
            cells.extend([
                usual(&cell.value),
                format!(" {}", shorten(&row.unit, 9)),
                spread(cell),
            ]);
        }
        cells.extend(outcome(row));
        page.row(&table.columns, &cells);
    }
}

fn has_any(row: &Row) -> bool {
    row.cells.iter().any(|cell| cell.value.value().is_some())
}

fn spread(cell: &Cell) -> String {
    cell.spread_pct.value().map_or("-".to_owned(), percent)
}

/// One decimal, more where that would be 0.
fn usual(figure: &Figure) -> String {
    match figure.value() {
        Some(value) if value != 0.0 && value.abs() < 0.05 => significant(value, 2),
        _ => number(figure, 1),
    }
}

/// The events with most time in any group, each with its waits and latencies.
fn events(page: &mut Sections, comparison: &Comparison) {
    let share = |row: &&Row| row.section == "events" && row.key.ends_with("_db_time_pct");
    let most = |row: &Row| {
        let shares = row.cells.iter().filter_map(|cell| cell.value.value());
        shares.fold(0.0, f64::max)
    };
    let background = |row: &&Row| !row.key.starts_with("background_");
    let mut top: Vec<&Row> = comparison
        .rows
        .iter()
        .filter(share)
        .filter(background)
        .collect();
    top.sort_by(|a, b| most(b).total_cmp(&most(a)));
    let stems: Vec<&str> = top
        .iter()
        .take(TOP_EVENTS)
        .filter_map(|row| row.key.strip_suffix("_db_time_pct"))
        .collect();
    let of_top = |row: &&Row| {
        row.section == "events"
            && stems.iter().any(|stem| {
                row.key.strip_prefix(stem).is_some_and(|rest| {
                    [
                        "_waits_per_s",
                        "_db_time_pct",
                        "_us_avg",
                        "_us_p50",
                        "_us_p99",
                    ]
                    .contains(&rest)
                })
            })
    };
    values(page, comparison, "Top Foreground Events by Group", &of_top);
}

/// Shares of waits and of time by bucket, all groups side by side.
fn histograms(page: &mut Sections, comparison: &Comparison) {
    for histogram in &comparison.histograms {
        page.heading(&format!(
            "Waits of \"{}\", % of waits and % of time",
            histogram.event
        ));
        histogram_table(page, comparison, histogram);
    }
}

fn histogram_table(page: &mut Sections, comparison: &Comparison, histogram: &SharedHistogram) {
    let mut columns = vec![left("Wait below", 14)];
    for _ in &comparison.groups {
        columns.extend([right("% waits", 10), right("% time", 10)]);
    }
    let mut line = " ".repeat(14);
    for (group, shares) in comparison.groups.iter().zip(&histogram.groups) {
        line.push_str(&format!(
            "{:>20}",
            format!(
                "{}: {}",
                group.letter,
                assay_measure::units::thousands(shares.waits_count)
            )
        ));
    }
    page.line(&line);
    page.columns(&columns);
    let used = |bucket: usize| {
        let mut groups = histogram.groups.iter();
        groups.any(|group| {
            group
                .waits_pct
                .get(bucket)
                .is_some_and(|share| *share > 0.0)
        })
    };
    let buckets = histogram
        .groups
        .iter()
        .map(|group| group.waits_pct.len())
        .max()
        .unwrap_or(0);
    for bucket in (0..buckets).filter(|bucket| used(*bucket)) {
        let bound = assay_measure::units::duration(1000 << bucket.min(50));
        let mut cells = vec![bound];
        for group in &histogram.groups {
            for shares in [&group.waits_pct, &group.time_pct] {
                cells.push(match shares.get(bucket) {
                    Some(share) if *share > 0.0 => percent(*share),
                    _ => "-".to_owned(),
                });
            }
        }
        page.row(&columns, &cells);
    }
}
