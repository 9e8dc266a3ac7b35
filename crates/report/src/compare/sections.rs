//! The sections of a comparison, in the order of a reader's questions: who, what follows, by which figures, under which
//! conditions, then every table. Text and page draw the same sections.

use super::model::{Check, ComparedRow, Comparison, Finding, GroupInfo, Pair, RunCard, SharedHistogram};
use super::verdict::{self, percent, ratio_text};
use crate::cost::{self, Cost};
use assay_measure::record::Figure;
use assay_measure::section::{Align, Cell, Head, Rest, Sections, Weight, over};
use assay_measure::units::{duration, fixed, significant, thousands};

/// Statistics worth a line of text; a page and the JSON have them all.
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
/// Figures of an event worth a line of text, of the events with most time in any group.
const OF_EVENT: [&str; 5] = ["_waits_per_s", "_db_time_pct", "_us_avg", "_us_p50", "_us_p99"];
/// Events with most time in any group.
const TOP_EVENTS: usize = 6;

/// What a table shows of each group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// The value, and its spread where a group has several runs.
    Values,
    /// Total, per second, per transaction, per operation.
    Counters,
    /// The value of a figure that verdicts rest on, with its details.
    Declared,
}

/// Renders a comparison as text; `lists_same` has the conditions that are the same listed.
#[must_use]
pub fn render(comparison: &Comparison, lists_same: bool) -> String {
    crate::text::write(&sections(comparison, lists_same)) + "\nEnd of Comparison\n"
}

/// Everything there is to say.
pub(crate) fn sections(comparison: &Comparison, lists_same: bool) -> Sections {
    let mut page = Sections::default();
    page.line("Comparison");
    page.line("");
    for (name, told) in comparison.groups.iter().map(runs_of) {
        page.wrapped(&format!("{name}: "), &told);
    }
    conclusion(&mut page, comparison);
    declared(&mut page, comparison);
    for pair in &comparison.pairs {
        conditions(&mut page, pair, lists_same);
    }
    doubts(&mut page, comparison);
    advice(&mut page, comparison);
    let of = |name: &str| comparison.rows.iter().filter(|row| row.section == name).collect();
    let table = |page: &mut Sections, title: &str, name: &str, shape| {
        let rows: Vec<&ComparedRow> = of(name);
        figures(page, comparison, (title, shape), (&rows, rows.len()));
    };
    table(&mut page, "Load Profile", "load profile", Shape::Counters);
    table(&mut page, "Operations", "operations", Shape::Values);
    events(&mut page, comparison);
    for histogram in &comparison.histograms {
        waits(&mut page, comparison, histogram);
    }
    table(&mut page, "IO Profile, per second", "io profile", Shape::Values);
    table(&mut page, "Storage", "storage", Shape::Values);
    table(&mut page, "Imported Figures", "imported", Shape::Values);
    statistics(&mut page, comparison);
    table(&mut page, "Instance Efficiency", "efficiency", Shape::Values);
    table(&mut page, "Host CPU", "host", Shape::Values);
    let costs: Vec<&Cost> = comparison.costs.iter().collect();
    cost::sections(&mut page, &costs);
    runs(&mut page, comparison);
    page.heading("Reading the Tables");
    page.wrapped(
        "",
        "Verdicts on declared figures are corrected for the number of figures. Verdicts marked * rest on the \
         figure's own 95 % interval alone; chance alone marks about one such figure in twenty. Shows %: the smallest \
         change that runs like these show 19 times in 20, with all declared figures tested together; they show \
         smaller changes less often. Ratios compare rates, never totals. Where a latency or a cost per operation has \
         an interval, its ratio comes from the per-second values and not from the two values beside it.",
    );
    page
}

/// A group with its place, and in a line what it is.
pub(crate) fn runs_of(group: &GroupInfo) -> (String, String) {
    let role = if group.letter == "A" { " (baseline)" } else { "" };
    let mut told = vec![group.name.clone()];
    if let Some(run) = group.runs.first() {
        let on = [run.workload.as_str(), run.engine.as_str()];
        let on: Vec<&str> = on.into_iter().filter(|word| !word.is_empty()).collect();
        told.push(on.join(" on "));
        told.extend(match run.sessions {
            0 => None,
            1 => Some("1 session".to_owned()),
            sessions => Some(format!("{sessions} sessions")),
        });
        if let Some(elapsed) = run.elapsed_s.value() {
            told.push(format!("{} s", fixed(elapsed, 1)));
        }
        match group.runs.as_slice() {
            [_] => told.extend(of_run(run)),
            runs => told.push(format!("{} runs", runs.len())),
        }
    }
    told.retain(|words| !words.is_empty());
    (format!("{}{role}", group.letter), told.join(", "))
}

/// What tells one run from the others of its group.
fn of_run(run: &RunCard) -> [String; 3] {
    let label = match run.label.as_str() {
        "" => String::new(),
        label => format!("label {label}"),
    };
    let started: String = run.started.chars().take(19).collect();
    let started = match started.as_str() {
        "" => String::new(),
        at => format!("started {at}"),
    };
    [format!("run {}", run.id), label, started]
}

fn conclusion(page: &mut Sections, comparison: &Comparison) {
    page.judgement("Conclusion");
    for (weight, sentence) in verdict::sentences(comparison) {
        page.finding(weight, "- ", &sentence);
    }
    let judged = (comparison.pairs.iter()).filter(|pair| pair.shared_runs.is_empty());
    let mut methods: Vec<&str> = judged.map(|pair| pair.method_text.as_str()).collect();
    methods.dedup();
    for method in methods {
        page.wrapped("  how: ", method);
    }
}

fn declared(page: &mut Sections, comparison: &Comparison) {
    let rows: Vec<&ComparedRow> = comparison.rows.iter().filter(|row| row.is_primary).collect();
    figures(page, comparison, ("Declared Figures", Shape::Declared), (&rows, rows.len()));
    if let Some(section) = page.all.last_mut().filter(|_| !rows.is_empty()) {
        section.is_judgement = true;
    }
}

fn conditions(page: &mut Sections, pair: &Pair, lists_same: bool) {
    page.judgement(&format!("Conditions, {} against {}", pair.candidate, pair.baseline));
    let unknown = pair.checks.iter().filter(|c| c.finding == Finding::Unknown);
    let unknown: Vec<&str> = unknown.map(|check| check.what.as_str()).collect();
    let (weight, said) = match (pair.forbids_faster, unknown.as_slice()) {
        (true, _) => (
            Weight::Warning,
            "Not the same test: assay shows rates and latencies side by side and calls neither side faster.".to_owned(),
        ),
        (false, []) if pair.checks.iter().any(|c| c.finding == Finding::Varied) => {
            (Weight::Plain, "Comparable, except for what was varied on purpose.".to_owned())
        }
        (false, []) => (Weight::Plain, "Comparable.".to_owned()),
        (false, what) => (Weight::Plain, format!("Comparable as far as assay knows; unknown: {}.", what.join("; "))),
    };
    page.finding(weight, "", &said);
    let is_same = |check: &&Check| check.finding == Finding::Same;
    let (same, unlike): (Vec<&Check>, Vec<&Check>) = pair.checks.iter().partition(is_same);
    if !unlike.is_empty() || lists_same {
        page.line("");
    }
    let rest = (!lists_same && !same.is_empty()).then(|| Rest {
        first: unlike.len(),
        what: match same.len() {
            1 => "1 condition is the same".to_owned(),
            count => format!("{count} conditions are the same"),
        },
        how: "--same lists them".to_owned(),
    });
    let row = |check: &&Check| {
        let words = [&check.what, &check.baseline, &check.candidate];
        let mut cells: Vec<Cell> = words.map(|word| word.clone().into()).to_vec();
        cells.push(check.finding.word().into());
        cells
    };
    let titles = ["Condition", &pair.baseline, &pair.candidate, "Finding"];
    page.grouped(&[], &titles.map(|title| (title, Align::Left)), unlike.iter().chain(&same).map(row).collect(), rest);
}

fn doubts(page: &mut Sections, comparison: &Comparison) {
    page.judgement("Integrity");
    if comparison.integrity.is_empty() {
        page.line("Every run is complete, and no run violates an identity.");
    }
    for doubt in &comparison.integrity {
        let lead = format!("{} {}: ", doubt.group, doubt.run);
        page.finding(Weight::Warning, &lead, &doubt.text);
    }
}

fn advice(page: &mut Sections, comparison: &Comparison) {
    page.judgement("Advice");
    let of_sides = verdict::findings(comparison);
    if comparison.advice.is_empty() && of_sides.is_empty() {
        page.line("No advice rule fired.");
    }
    let of_all = comparison.advice.iter().map(|found| (Vec::new(), found));
    for (sides, found) in of_all.chain(of_sides) {
        let weight = match found.severity.as_str() {
            "high" => Weight::Warning,
            _ => Weight::Plain,
        };
        let sides = if sides.is_empty() { String::new() } else { format!("{}, ", sides.join(" and ")) };
        let lead = format!("{sides}{} {}: ", found.id, found.severity);
        page.finding(weight, &lead, &found.text);
    }
}

/// Figures of every group, then ratio, interval and verdict of every pair; text shows the first so many.
fn figures(
    page: &mut Sections,
    comparison: &Comparison,
    (title, shape): (&str, Shape),
    (rows, first): (&[&ComparedRow], usize),
) {
    let has_any = |row: &&&ComparedRow| row.cells.iter().any(|cell| cell.value.value().is_some());
    let first = rows.iter().take(first).filter(has_any).count();
    let rows: Vec<&&ComparedRow> = rows.iter().filter(has_any).collect();
    if rows.is_empty() {
        return;
    }
    page.heading(title);
    let repeated = comparison.groups.iter().any(|group| group.runs.len() > 1);
    let of_group = match shape {
        Shape::Counters => &["Total", "Per Second", "Per Txn", "Per Op"][..],
        _ if repeated => &["Value", "CV %"],
        _ => &["Value"],
    };
    let of_pair = match shape {
        Shape::Declared => &["Ratio", "95 % interval", "Verdict", "Shows %"][..],
        _ => &["Ratio", "95 % interval", "Verdict"],
    };
    let mut titles = vec![("Figure", Align::Left), ("Unit", Align::Left)];
    let mut heads: Vec<Head> = vec![over("", 2)];
    for group in &comparison.groups {
        titles.extend(of_group.iter().map(|title| (*title, Align::Right)));
        heads.push(over(&group.letter, of_group.len()));
    }
    for pair in &comparison.pairs {
        let align = |title: &&'static str| match *title {
            "Verdict" => (*title, Align::Left),
            title => (title, Align::Right),
        };
        titles.extend(of_pair.iter().map(align));
        let name = format!("{} / {}", pair.candidate, pair.baseline);
        heads.push(over(&name, of_pair.len()));
    }
    if shape == Shape::Declared {
        titles.push(("Key", Align::Left));
        heads.push(over("", 1));
    }
    let rest = (first < rows.len()).then(|| Rest {
        first,
        what: format!("{} more figures", rows.len() - first),
        how: "--format html shows them".to_owned(),
    });
    let rows = rows.iter().map(|row| cells(row, shape, repeated));
    page.grouped(&heads, &titles, rows.collect(), rest);
}

fn cells(row: &ComparedRow, shape: Shape, repeated: bool) -> Vec<Cell> {
    let mut cells: Vec<Cell> = vec![row.name.clone().into(), row.unit.clone().into()];
    for cell in &row.cells {
        match shape {
            Shape::Counters => {
                cells.push(Cell::figure(&cell.total, 0));
                cells.extend([&cell.per_s, &cell.per_tx, &cell.per_op].map(usual));
            }
            Shape::Values | Shape::Declared => {
                cells.push(usual(&cell.value));
                cells.extend(repeated.then(|| told(&cell.spread_pct, percent)));
            }
        }
    }
    for against in &row.against {
        let interval = match (against.low_ratio.value(), against.high_ratio.value()) {
            (Some(low), Some(high)) => format!("{} to {}", ratio_text(low), ratio_text(high)).into(),
            _ => told(&against.low_ratio, ratio_text),
        };
        let is_marked = against.verdict.is_shown() && !row.is_primary;
        let star = if is_marked { "*" } else { "" };
        cells.extend([told(&against.ratio, ratio_text), interval, format!("{}{star}", against.verdict.word()).into()]);
        if shape == Shape::Declared {
            cells.push(told(&against.detectable_95_pct, percent));
        }
    }
    if shape == Shape::Declared {
        cells.push(row.key.clone().into());
    }
    cells
}

/// A figure, or a dash with the reason for none.
fn told(figure: &Figure, as_text: fn(f64) -> String) -> Cell {
    Cell {
        text: figure.value().map_or("-".to_owned(), as_text),
        reason: figure.reason().unwrap_or_default().to_owned(),
    }
}

/// One decimal, more where that would be 0.
fn usual(figure: &Figure) -> Cell {
    match figure.value() {
        Some(value) if value != 0.0 && value.abs() < 0.05 => significant(value, 2).into(),
        _ => Cell::figure(figure, 1),
    }
}

/// Wait events: those with most time in any group first, each with its waits and latencies.
fn events(page: &mut Sections, comparison: &Comparison) {
    let most = |row: &ComparedRow| {
        let shares = row.cells.iter().filter_map(|cell| cell.value.value());
        shares.fold(0.0, f64::max)
    };
    let rows: Vec<&ComparedRow> = comparison.rows.iter().filter(|row| row.section == "events").collect();
    let stems = rows.iter().copied();
    let stems = stems.filter_map(|row| Some((most(row), row.key.strip_suffix("_db_time_pct")?)));
    let mut top: Vec<(f64, &str)> = stems.collect();
    top.retain(|(_, stem)| !stem.starts_with("background_"));
    top.sort_by(|a, b| b.0.total_cmp(&a.0));
    top.truncate(TOP_EVENTS);
    let of_top = |row: &&&ComparedRow| {
        let rest = top.iter().find_map(|(_, stem)| row.key.strip_prefix(stem));
        rest.is_some_and(|rest| OF_EVENT.contains(&rest))
    };
    selected(page, comparison, ("Wait Events", Shape::Values), &rows, of_top);
}

fn statistics(page: &mut Sections, comparison: &Comparison) {
    let rows = comparison.rows.iter().filter(|row| row.section == "statistics");
    let rows: Vec<&ComparedRow> = rows.collect();
    let title = ("Instance Activity Statistics", Shape::Counters);
    selected(page, comparison, title, &rows, |row| STATISTICS.contains(&row.key.as_str()));
}

/// A long table, of which text shows what is selected.
fn selected(
    page: &mut Sections,
    comparison: &Comparison,
    title: (&str, Shape),
    rows: &[&ComparedRow],
    is_selected: impl Fn(&&&ComparedRow) -> bool,
) {
    let (mut rows, others): (Vec<&ComparedRow>, Vec<&ComparedRow>) =
        rows.iter().copied().partition(|row| is_selected(&row));
    let first = rows.len();
    rows.extend(others);
    figures(page, comparison, title, (&rows, first));
}

/// Shares of an event's waits and of their time by bucket, all groups side by side.
fn waits(page: &mut Sections, comparison: &Comparison, histogram: &SharedHistogram) {
    page.heading(&format!("Waits of \"{}\", % of waits and % of time", histogram.event));
    let mut titles = vec![("Wait below", Align::Left)];
    let mut heads = vec![over("", 1)];
    for (group, shares) in comparison.groups.iter().zip(&histogram.groups) {
        titles.extend(["% waits", "% time"].map(|title| (title, Align::Right)));
        let counted = format!("{}: {}", group.letter, thousands(shares.waits_count));
        heads.push(over(&counted, 2));
    }
    let share = |shares: &[f64], bucket: usize| {
        let share = shares.get(bucket).copied();
        share.filter(|share| *share > 0.0)
    };
    let groups = || histogram.groups.iter();
    let buckets = groups().map(|group| group.waits_pct.len()).max().unwrap_or(0);
    let is_used = |bucket: &usize| groups().any(|group| share(&group.waits_pct, *bucket).is_some());
    let row = |bucket: usize| {
        let mut cells: Vec<Cell> = vec![duration(1000 << bucket.min(50)).into()];
        for group in groups() {
            for shares in [&group.waits_pct, &group.time_pct] {
                let share = share(shares, bucket);
                cells.push(share.map_or("-".to_owned(), percent).into());
            }
        }
        cells
    };
    let rows = (0..buckets).filter(is_used).map(row).collect();
    page.grouped(&heads, &titles, rows, None);
}

fn runs(page: &mut Sections, comparison: &Comparison) {
    let titles = [
        ("Group", Align::Left),
        ("Run", Align::Left),
        ("Label", Align::Left),
        ("Workload", Align::Left),
        ("Target", Align::Left),
        ("Started", Align::Left),
        ("Sessions", Align::Right),
        ("Window s", Align::Right),
        ("Verdict", Align::Left),
    ];
    let row = |group: &GroupInfo, run: &RunCard| {
        let started: String = run.started.chars().take(19).collect();
        vec![
            group.letter.clone().into(),
            run.id.clone().into(),
            run.label.clone().into(),
            run.workload.clone().into(),
            run.engine.clone().into(),
            started.into(),
            match run.sessions {
                0 => Cell::figure(&Figure::na("not known"), 0),
                sessions => thousands(sessions).into(),
            },
            Cell::figure(&run.elapsed_s, 1),
            run.verdict.clone().into(),
        ]
    };
    let groups = comparison.groups.iter();
    let rows = groups.flat_map(|group| group.runs.iter().map(move |run| row(group, run)));
    page.heading("Runs");
    page.fitted(&titles, rows.collect());
}
