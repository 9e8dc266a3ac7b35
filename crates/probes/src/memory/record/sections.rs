//! The report of memory.

use super::super::info::{MemoryInfo, PlateauRow};
use crate::load;
use assay_measure::record::Record;
use assay_measure::section::{Align, Cell, Sections, common, number_or_reason};
use assay_measure::units::{many, size};

use Align::{Left, Right};

/// The whole report.
pub(super) fn render(record: &Record, info: &MemoryInfo) -> Sections {
    let mut page = Sections::default();
    let cpus = many(info.cpus.len() as u64, "CPU");
    let of = format!("{cpus}, kernels {}", info.kernel_set);
    common::opening(&mut page, record, "MEMORY", &of);
    common::warnings(&mut page, record);
    common::advice(&mut page, record);
    match &info.soak {
        Some(soak) => loaded(&mut page, info, soak),
        None => measured(&mut page, info),
    }
    conditions(&mut page, info);
    page.heading("How to Read It");
    PITFALLS.iter().for_each(|text| page.wrapped("  - ", text));
    common::facts(&mut page, "Host", &record.host.facts);
    page
}

const PITFALLS: [&str; 5] = [
    "GB/s are 10^9 bytes that a kernel's formula counts, as in STREAM. A normal store reads its line first, so the bus \
     carries more: 24 bytes instead of 16 for copy. Non-temporal stores do not read it, and leave nothing in the \
     caches.",
    "The best pass is what STREAM prints; the median is what a database can count on.",
    "Every latency belongs to a page size: in 4 KiB pages each access beyond the reach of the TLB also waits for the \
     page table.",
    "The cache that the kernel of a virtual machine reports may not be the real one, or hidden guests may share it: \
     the ladder shows the part that this machine gets.",
    "One thread may run at a higher clock than all threads together, and few threads may saturate memory: the rate of \
     one CPU times the number of CPUs is not a forecast.",
];

fn measured(page: &mut Sections, info: &MemoryInfo) {
    bandwidth(page, info);
    saturation(page, info);
    plateaus(page, info);
    ladder(page, info);
    chains(page, info);
    pages(page, info);
    numa(page, info);
    if !info.left_out.is_empty() {
        page.heading("Left Out");
        for (what, why) in &info.left_out {
            page.wrapped("  - ", &format!("{what}: {why}."));
        }
    }
}

const STOPPED: &str = "the probe was stopped before";

fn bandwidth(page: &mut Sections, info: &MemoryInfo) {
    page.heading("Bandwidth, GB/s");
    let met = if info.arrays.is_met {
        "which meets the rule of four times the last-level caches".to_owned()
    } else {
        format!(
            "less than the {} of the rule of four times the last-level caches ({})",
            size(info.arrays.wanted_bytes),
            info.arrays.why
        )
    };
    page.wrapped(
        "",
        &format!(
            "Three arrays of {} each in {} pages, {met}. Each thread touches its part first and stays on its CPU. A pass \
             is a tenth of the arrays; the first one does not count. Code path: {}.",
            size(info.arrays.bytes),
            info.pages,
            info.path
        ),
    );
    page.rows(&info.bandwidth);
}

fn saturation(page: &mut Sections, info: &MemoryInfo) {
    if info.cpus.len() < 2 {
        page.missing("Threads to Saturate", "there is one CPU");
        return;
    }
    let about = "The fewest threads that reach 95 % of the best rate of any number of threads.";
    page.table_of("Threads to Saturate", about, &info.saturation, STOPPED);
}

fn plateaus(page: &mut Sections, info: &MemoryInfo) {
    page.heading("Latency: Flat Parts of the Ladder");
    page.wrapped(
        "",
        "Where the ladder below is flat for at least an octave, with the cache whose size is nearest to its end; ? \
         marks a flat part that does not end at a reported cache. Shared by: the CPUs of the first such cache.",
    );
    let rows = info.plateaus.iter().map(|row| {
        let cache = |get: &dyn Fn(&super::super::info::CacheRow) -> String| {
            let found = info.caches.iter().find(|cache| cache.name == row.level);
            found.map_or_else(|| "-".to_owned(), get)
        };
        vec![
            Cell::from(row.level.clone()),
            row.pages.clone().into(),
            Cell::figure(&row.latency_ns_p50, 1),
            span(row).into(),
            cache(&|cache| format!("{} x {}", size(cache.bytes), cache.count)).into(),
            cache(&|cache| cache.shared_by.clone()).into(),
        ]
    });
    let titles = [
        ("Level", Left),
        ("pages", Left),
        ("ns", Right),
        ("flat", Right),
        ("the kernel reports", Right),
        ("shared by CPUs", Right),
    ];
    page.fitted(&titles, rows.collect());
}

fn span(row: &PlateauRow) -> String {
    format!("{} to {}", size(row.from_bytes), size(row.to_bytes))
}

fn ladder(page: &mut Sections, info: &MemoryInfo) {
    page.heading("Latency Ladder, ns per Step");
    page.wrapped(
        "",
        "A chain of dependent loads through all of the memory in one random cycle. Lines: a pointer in each 64 bytes; \
         pages: one in each 4 KiB, where translation shows. Cycles: by the effective clock.",
    );
    let mut kinds: Vec<(&str, &str)> = Vec::new();
    for row in &info.ladder {
        let kind = (row.pages.as_str(), row.spacing.as_str());
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds.sort_by_key(|(_, spacing)| *spacing);
    let mut sizes: Vec<u64> = info.ladder.iter().map(|row| row.bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let first = kinds.first().copied();
    let of = |bytes: u64, kind: (&str, &str)| {
        let mut rows = info.ladder.iter();
        rows.find(|row| row.bytes == bytes && (row.pages.as_str(), row.spacing.as_str()) == kind)
    };
    let rows = sizes.iter().map(|bytes| {
        let mut cells = vec![Cell::from(size(*bytes))];
        for kind in &kinds {
            let row = of(*bytes, *kind);
            cells.push(row.map_or_else(|| "-".into(), |row| Cell::figure(&row.ns_p50, 1)));
            if Some(*kind) == first {
                cells.push(row.map_or_else(|| "-".into(), |row| Cell::figure(&row.cycles_p50, 0)));
            }
        }
        cells
    });
    let titles: Vec<String> = kinds.iter().map(|(pages, spacing)| format!("{pages}, {spacing}")).collect();
    let mut columns = vec![("Memory", Right)];
    for (nth, title) in titles.iter().enumerate() {
        columns.push((title.as_str(), Right));
        if nth == 0 {
            columns.push(("cycles", Right));
        }
    }
    page.fitted(&columns, rows.collect());
}

fn chains(page: &mut Sections, info: &MemoryInfo) {
    page.table_of(
        "Several Chains of One Thread",
        "Parallel chains in the largest memory of the ladder: this shows how many misses a core keeps in flight.",
        &info.chains,
        STOPPED,
    );
    let about = "The chase of one CPU while the other CPUs read memory as fast as they can.";
    page.table_of("Latency under Load", about, &info.loaded, STOPPED);
    let about = "One write in each 4 KiB: the kernel finds and clears a page. Unmapping releases it.";
    page.table_of("First Touch of Fresh Memory", about, &info.faults, STOPPED);
}

fn pages(page: &mut Sections, info: &MemoryInfo) {
    page.heading("Pages That Became Huge");
    let thp = match info.transparent_huge_pages.as_str() {
        "" => "not exposed",
        word => word,
    };
    page.line(&format!("From the kernel's accounts (smaps). Transparent huge pages are set to: {thp}."));
    page.rows(&info.got);
}

fn numa(page: &mut Sections, info: &MemoryInfo) {
    page.heading("NUMA");
    match info.nodes.len() {
        0 => page.line("The kernel reports no NUMA nodes: assay treats all memory as equally far."),
        1 => page.line("One node: all memory is equally far from all CPUs."),
        _ => {}
    }
    if info.numa.is_empty() {
        if info.nodes.len() > 1 {
            page.line(&format!("n/a ({STOPPED})"));
        }
        return;
    }
    page.line("From the CPUs of one node to the memory of another; assay verifies that the pages are in that node.");
    page.rows(&info.numa);
}

fn conditions(page: &mut Sections, info: &MemoryInfo) {
    page.heading("Who Else Used the Host");
    let pinned = if info.is_pinned { "yes" } else { "no" };
    let own = [
        ("Threads kept on their CPUs", pinned.to_owned()),
        ("Effective clock", format!("{} MHz", number_or_reason(&info.effective_mhz, 0))),
    ];
    for (name, value) in info.conditions.shown().into_iter().chain(own) {
        page.named(name, 40, value);
    }
}

fn loaded(page: &mut Sections, info: &MemoryInfo, soak: &load::LoadInfo) {
    let soaked = info.soaked.clone().unwrap_or_default();
    let words = load::Words {
        stressor: "vm",
        ops: format!(
            "In stress-ng's layout. ops = {}: one operation is 4 KiB written or read back and compared. Each worker \
             writes all of its {} ({} in total) with values that depend on the address, then reads them back; values \
             and their complement alternate, as do stores through the caches and around them. Compare ops only with \
             ops of the same kernel set, never with bogo ops of stress-ng.",
            info.kernel_set,
            size(soaked.worker_bytes),
            size(soaked.total_bytes)
        ),
        unit: "pages/s",
        cpus: info.cpus.len(),
        steal_pct: &info.conditions.steal_pct,
        throttled_s: &info.conditions.throttled_s,
        errors_count: info.verification_errors_count,
        errors: &info.verification_errors,
    };
    load::sections(page, soak, &words);
    page.heading("Errors by Place");
    let told = |figure| number_or_reason(figure, 0);
    page.named("Corrected by memory controllers (EDAC)", 40, told(&soaked.edac_corrected_count));
    page.named("Not corrected", 40, told(&soaked.edac_uncorrected_count));
    if soaked.regions.is_empty() {
        page.line("No word was wrong.");
        return;
    }
    let rows = soaked.regions.iter().map(|(worker, region, count)| {
        vec![worker.to_string().into(), format!("{} MiB", 16 * region).into(), count.to_string().into()]
    });
    page.fitted(&[("Worker", Right), ("16 MiB from", Right), ("wrong words", Right)], rows.collect());
}
