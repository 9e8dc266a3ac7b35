//! The report of the CPUs.

use super::info::{CpuInfo, KernelRow, PairRow};
use crate::host::listed;
use crate::load::{self, LoadInfo};
use assay_measure::record::{Figure, Part, Record};
use assay_measure::section::common;
use assay_measure::section::{Cell, Column, Sections, left, number, number_or_reason, right};
use assay_measure::units::{fixed, many};
use std::borrow::Cow;

/// The whole report.
pub(super) fn render(record: &Record, info: &CpuInfo) -> Sections {
    let mut page = Sections::default();
    let cpus = many(info.cpus.len() as u64, "CPU");
    let of = format!("{cpus}, kernels {}", info.kernel_set);
    common::opening(&mut page, record, "CPU", &of);
    common::warnings(&mut page, record);
    common::advice(&mut page, record);
    match &info.soak {
        Some(load) => loaded(&mut page, info, load),
        None => measured(&mut page, info),
    }
    conditions(&mut page, info);
    page.heading("Switches of the Platform");
    for fact in &record.plan.engine_facts {
        page.named(&fact.name, 34, fact.value.clone());
    }
    page.heading("How to Read It");
    PITFALLS.iter().for_each(|text| page.wrapped("  - ", text));
    common::facts(&mut page, "Host", &record.host.facts);
    page
}

const PITFALLS: [&str; 6] = [
    "One thread may run at a higher clock than all threads together (turbo): the rate of one CPU times the number of \
     CPUs is an upper bound, not a forecast. The clock column shows this effect.",
    "Rates per CPU second flatter a host with steal or a quota: they show what a CPU does while the thread has it. \
     Rates per second show what the test got.",
    "A CPU that the operating system counts may be half a core (a hyperthread); in a virtual machine only the \
     scaling curve shows it.",
    "Data sets of 16 MiB and more use pages of the size named above; with huge pages a database pays less for the \
     same lookups.",
    "Short runs show neither thermal limits nor the CPU credits of burstable instances: load the CPUs for at least \
     15 minutes (--soak 0 --time 15m) and check whether work over time falls.",
    "This kernel set has no wide-vector kernels (AVX-512): their lower clock slows no rate here.",
];

fn loaded(page: &mut Sections, info: &CpuInfo, soak: &LoadInfo) {
    let words = load::Words {
        stressor: CpuInfo::NAME,
        ops: format!(
            "In stress-ng's layout. ops = {}: one operation is one call of a kernel; all kernels of the set take \
             turns. Compare ops only with ops of the same kernel set, never with bogo ops of stress-ng.",
            info.kernel_set
        ),
        unit: "calls/s",
        cpus: info.cpus.len(),
        steal_pct: &info.conditions.steal_pct,
        throttled_s: &info.conditions.throttled_s,
        errors_count: info.verification_errors_count,
        errors: &info.verification_errors,
    };
    load::sections(page, soak, &words);
}

fn measured(page: &mut Sections, info: &CpuInfo) {
    kernels(page, info);
    scaling(page, info);
    matrix(page, info);
    switches(page, info);
    clocks(page, info);
    about(page, info);
}

/// A rate as people read it: bytes as MB/s, cycles as MHz, all others in millions.
fn unit(row: &KernelRow) -> String {
    match row.unit.as_str() {
        "bytes" => "MB/s".to_owned(),
        "cycles" => "MHz".to_owned(),
        other => format!("M {other}/s"),
    }
}

fn kernels(page: &mut Sections, info: &CpuInfo) {
    let widest = info.kernels.iter().map(|row| row.threads_count).max().unwrap_or(0);
    let title = "Kernels: Rates of One CPU and of All";
    if widest == 0 {
        page.missing(title, super::derive::STOPPED);
        return;
    }
    page.heading(title);
    page.wrapped(
        "",
        &format!(
            "Each rate is the median of the repetitions; a repetition is a window of {} ms, interleaved with all \
             others. CV: spread of the repetitions; per CPU s: per second of CPU time; given: CPU time as % of the \
             window. Unsteady (CV above 3 %): which of steal, clock and run delay varied with the rate. assay \
             compares the result of each kernel with the expected result.",
            number(&info.window_ms, 1)
        ),
    );
    const ONE: [Column; 7] = [
        left("Kernel", 20),
        left("Unit", 14),
        right("1 CPU", 11),
        right("CV %", 7),
        right("per CPU s", 11),
        right("CV %", 6),
        right("given %", 8),
    ];
    let mut columns = ONE.to_vec();
    if widest > 1 {
        columns.push(Column { title: Cow::Owned(format!("{widest} CPUs")), ..right("", 12) });
        columns.extend([
            right("CV %", 7),
            right("per CPU s", 11),
            right("CV %", 6),
            right("given %", 8),
            right("times", 7),
        ]);
    }
    columns.extend([right("MHz", 7), Column { title: Cow::Borrowed("unsteady with"), ..left("", 40) }]);
    page.columns(&columns);
    for row in info.kernels.iter().filter(|row| row.threads_count <= 1) {
        let all =
            info.kernels.iter().find(|other| other.kernel == row.kernel && other.threads_count == widest && widest > 1);
        page.row(&columns, &cells(row, all, widest));
    }
    if let Some(ns) = info.misprediction_ns.value() {
        page.line(&format!(
            "A mispredicted branch costs {} ns (branchy against branchy-predictable, per CPU second).",
            fixed(ns, 1)
        ));
    }
}

fn cells(row: &KernelRow, all: Option<&KernelRow>, widest: u64) -> Vec<Cell> {
    if row.threads_count == 0 {
        let why = row.per_s.reason().unwrap_or_default();
        return vec![row.kernel.clone().into(), format!("n/a ({why})").into()];
    }
    let million = |figure: &Figure| {
        let scaled = figure.scaled(1e-6);
        let decimals = if scaled.value().is_some_and(|value| value < 100.0) { 2 } else { 0 };
        Cell::figure(&scaled, decimals)
    };
    let figures = |row: &KernelRow| {
        [
            million(&row.per_s),
            Cell::figure(&row.cv_pct, 1),
            million(&row.per_cpu_s),
            Cell::figure(&row.per_cpu_s_cv_pct, 1),
            Cell::figure(&row.given_pct, 1),
        ]
    };
    let mut cells = vec![Cell::from(row.kernel.clone()), unit(row).into()];
    cells.extend(figures(row));
    if widest > 1 {
        let absent = KernelRow::default();
        let all = all.unwrap_or(&absent);
        cells.extend(figures(all));
        let times = row.per_s.value().map_or_else(Figure::default, |one| all.per_s.per(one, "no rate"));
        cells.push(Cell::figure(&times, 2));
    }
    cells.push(Cell::figure(&row.mhz, 0));
    let mut causes: Vec<String> = Vec::new();
    for (row, whose) in [(Some(row), "1"), (all, "all")] {
        if let Some(row) = row.filter(|row| !row.moved_with.is_empty()) {
            causes.push(format!("{whose}: {}", row.moved_with));
        }
    }
    cells.push(causes.join("; ").into());
    cells
}

fn scaling(page: &mut Sections, info: &CpuInfo) {
    let title = "Scaling Curve";
    if info.scaling.is_empty() {
        page.missing(title, super::derive::STOPPED);
        return;
    }
    page.heading(title);
    page.wrapped(
        "",
        &format!(
            "assay places threads on CPUs in this order, first one on each core: {}. Efficiency: rate divided by \
             (threads times the rate of one thread); clock: the part due to the effective clock; shared: the rest, \
             lost in caches, memory and siblings; per CPU s: the efficiency by CPU time, without the time that \
             others took. Knee: the highest number of threads with an efficiency of 0.8, by CPU time where others \
             took some.",
            listed(&info.cpus)
        ),
    );
    page.rows(&info.scaling);
    smt(page, info);
}

/// What siblings bring on top of cores, where the kernel tells them apart.
fn smt(page: &mut Sections, info: &CpuInfo) {
    let all = info.cpus.len() as f64;
    let Some(cores) = info.cores_count.value().filter(|cores| *cores < all) else {
        let why = match info.cores_count.value() {
            Some(_) => "the kernel reports no siblings",
            None => "the kernel does not distinguish cores from siblings",
        };
        page.line(&format!("Gain by siblings (SMT): n/a ({why})."));
        return;
    };
    let rate = |kernel: &str, threads: f64| {
        let mut rows = info.scaling.iter();
        rows.find(|row| row.kernel == kernel && row.threads_count as f64 == threads)?.per_s.value()
    };
    for row in info.scaling.iter().filter(|row| row.threads_count == 1) {
        if let Some((cores, all)) = rate(&row.kernel, cores).zip(rate(&row.kernel, all)) {
            page.line(&format!(
                "Gain by siblings (SMT), {}: {} times the rate of all cores.",
                row.kernel,
                fixed(all / cores, 2)
            ));
        }
    }
}

/// CPUs that still have a column each.
const COLUMNS: usize = 16;

fn matrix(page: &mut Sections, info: &CpuInfo) {
    let pairs: Vec<&PairRow> = info.pairs.iter().filter(|row| row.what == "line").collect();
    if pairs.is_empty() {
        let why = if info.cpus.len() < 2 { "there is one CPU" } else { super::derive::STOPPED };
        page.missing("Core to Core", why);
        return;
    }
    page.heading("Core to Core: One Cache Line, One Way, ns");
    let mut cpus: Vec<u32> = info.cpus.clone();
    cpus.sort_unstable();
    let shown = &cpus[..cpus.len().min(COLUMNS)];
    if shown.len() < cpus.len() {
        page.line(&format!("The first {COLUMNS} CPUs; the record and the chart have all pairs."));
    }
    let mut columns = vec![left("CPU", 6)];
    columns.extend(shown.iter().map(|cpu| Column { title: Cow::Owned(cpu.to_string()), ..right("", 8) }));
    page.columns(&columns);
    for from in shown {
        let of = |to: &u32| {
            let is_it = |row: &&&PairRow| (row.from, row.to) == (*from, *to) || (row.to, row.from) == (*from, *to);
            pairs.iter().find(is_it).map_or_else(|| "-".into(), |row| Cell::figure(&row.ns, 0))
        };
        let mut cells = vec![Cell::from(from.to_string())];
        cells.extend(shown.iter().map(of));
        page.row(&columns, &cells);
    }
}

fn switches(page: &mut Sections, info: &CpuInfo) {
    page.heading("Switches and Wake-ups");
    page.line(
        "From one thread to another, ns: a byte through a pipe, and a thread woken from a futex. The times \
        include mitigations and virtualisation.",
    );
    page.rows(info.pairs.iter().filter(|row| row.what != "line"));
}

fn clocks(page: &mut Sections, info: &CpuInfo) {
    page.heading("Effective Clock of Each CPU, MHz");
    page.wrapped(
        "",
        "The operations of a chain of additions and exclusive ors, one cycle each, divided by its time; each CPU \
         alone, the best of three. Reported: the clock that the frequency driver reports right after. The rate of the \
         time stamp counter (the nominal clock) is a different figure.",
    );
    page.rows(&info.clocks);
}

fn about(page: &mut Sections, info: &CpuInfo) {
    page.heading(&format!("The Kernels of {}", info.kernel_set));
    const TABLE: [Column; 4] = [left("Kernel", 20), left("bound by", 9), left("code path", 17), left("stands for", 66)];
    page.columns(&TABLE);
    for row in info.kernels.iter().filter(|row| row.threads_count == 1) {
        let cells = [&row.kernel, &row.bound, &row.path, &row.about];
        page.row(&TABLE, &cells.map(String::as_str));
    }
}

fn conditions(page: &mut Sections, info: &CpuInfo) {
    page.heading("Who Else Used the Host");
    let told = |figure: &Figure, decimals| number_or_reason(figure, decimals);
    let own = [
        ("CPUs that can be used at the same time", told(&info.usable_cpus, 2)),
        ("Physical cores among them", told(&info.cores_count, 0)),
        ("Threads kept on their CPUs", if info.is_pinned { "yes" } else { "no" }.to_owned()),
        ("Reading the clock", format!("{} ns", told(&info.clock_read_ns, 1))),
        ("Page size", format!("{} bytes", info.page_bytes)),
    ];
    for (name, value) in info.conditions.shown().into_iter().chain(own) {
        page.named(name, 34, value);
    }
}
