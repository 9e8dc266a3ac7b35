//! The report of a machine.

use super::{TopologyInfo, headline, lscpu, picture};
use crate::machine::ranges;
use assay_measure::record::Record;
use assay_measure::section::{Align, Cell, Sections, common};
use assay_measure::units::size;

use Align::{Left, Right};

/// The whole report.
pub(super) fn render(record: &Record, info: &TopologyInfo) -> Sections {
    let mut page = Sections::default();
    let run = &record.run;
    page.title(&format!("ASSAY TOPOLOGY REPORT for run {}{}", run.id, common::label(record)));
    page.line(&format!(
        "assay {}, read {} below {}. {}",
        run.version,
        run.started,
        info.sysroot,
        common::verdict(record)
    ));
    common::warnings(&mut page, record);
    let tiles = picture::of(&info.machine);
    if tiles.is_empty() {
        page.missing("Picture", "no CPU is exposed")
    } else {
        page.heading("Picture");
        page.picture(tiles);
    }
    caches(&mut page, info);
    nodes(&mut page, info);
    memory(&mut page, info);
    page.heading("As lscpu Prints It");
    page.line("Sizes of caches are those of one cache, as lscpu printed them before version 2.34.");
    for (field, data) in lscpu::fields(&info.machine) {
        // Too long for a table.
        match field.as_str() {
            "Flags" => page.wrapped("Flags: ", &data),
            _ => page.named(&format!("{field}:"), 22, data),
        }
    }
    page
}

fn caches(page: &mut Sections, info: &TopologyInfo) {
    let levels = info.machine.levels();
    if levels.is_empty() {
        page.missing("Caches", lscpu::NOT_EXPOSED);
        return;
    }
    page.heading("Caches");
    page.wrapped(
        "",
        "As the kernel reports them; a hypervisor may report other caches. `assay memory` measures where they end.",
    );
    let rows = levels.iter().map(|level| {
        vec![
            Cell::from(level.name.clone()),
            size(level.bytes).into(),
            level.count.to_string().into(),
            size(level.total_bytes).into(),
            ranges(&level.shared_by).into(),
        ]
    });
    let titles = [("Cache", Left), ("one", Right), ("instances", Right), ("all", Right), ("CPUs of the first", Right)];
    page.fitted(&titles, rows.collect());
}

fn nodes(page: &mut Sections, info: &TopologyInfo) {
    if info.machine.nodes.is_empty() {
        page.missing("NUMA Nodes", lscpu::NOT_EXPOSED);
        return;
    }
    page.heading("NUMA Nodes");
    let bytes = |bytes: Option<u64>| bytes.map_or_else(|| lscpu::NOT_EXPOSED.to_owned(), size);
    let rows = info.machine.nodes.iter().map(|node| {
        let cpus = if node.cpus.is_empty() { "none".to_owned() } else { ranges(&node.cpus) };
        let distances: Vec<String> = node.distances.iter().map(u32::to_string).collect();
        vec![
            Cell::from(node.number.to_string()),
            cpus.into(),
            bytes(node.memory_bytes).into(),
            bytes(node.free_bytes).into(),
            distances.join(" ").into(),
        ]
    });
    let titles = [("Node", Right), ("CPUs", Right), ("memory", Right), ("free", Right), ("distances", Right)];
    page.fitted(&titles, rows.collect());
}

fn memory(page: &mut Sections, info: &TopologyInfo) {
    let machine = &info.machine;
    page.heading("Memory and Pages");
    for (name, value) in &machine.memory {
        let told = if name.starts_with("HugePages") { value.to_string() } else { size(*value) };
        page.named(name, 22, told);
    }
    page.named("Huge pages", 22, headline::huge(machine));
    page.named("Memory modules", 22, "not exposed (they need DMI and root)");
}
