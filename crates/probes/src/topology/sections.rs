//! The report of a machine.

use super::{TopologyInfo, headline, lscpu, picture};
use crate::machine::{Machine, ranges};
use assay_measure::record::Record;
use assay_measure::section::{Align, Cell, Sections, common};
use assay_measure::units::size;

use Align::{Left, Right};

/// What a database's operator has to know of it.
pub(super) fn warnings(info: &TopologyInfo) -> Vec<String> {
    let machine = &info.machine;
    let mut found = Vec::new();
    if machine.online.is_empty() {
        found.push("Neither /proc/cpuinfo nor /sys lists a CPU: little is known about this machine.".to_owned());
    }
    let offline = machine.offline();
    if !offline.is_empty() {
        found.push(format!(
            "CPUs {} are offline: capacity is missing, or hyperthreads were switched off.",
            ranges(&offline)
        ));
    }
    if !machine.usable.is_empty() && machine.usable.len() < machine.online.len() {
        found.push(format!(
            "This process may use CPUs {} only, of those that run ({}): an affinity mask or a cpuset.",
            ranges(&machine.usable),
            ranges(&machine.online)
        ));
    }
    let empty = machine.nodes.iter().filter(|node| node.memory_bytes == Some(0));
    let empty: Vec<u32> = empty.map(|node| node.number).collect();
    if !empty.is_empty() {
        found.push(format!("NUMA node {} has no memory: all memory is remote to its CPUs.", ranges(&empty)));
    }
    found.extend(memory_not_of_its_nodes(machine));
    found.extend(headline::kinds_of_cpus(machine));
    found
}

/// The kernel's two figures of the memory, where they differ by more than a twentieth.
fn memory_not_of_its_nodes(machine: &Machine) -> Option<String> {
    let total = *machine.memory.get("MemTotal")?;
    let nodes = machine.nodes.iter().map(|node| node.memory_bytes);
    let of_nodes = nodes.sum::<Option<u64>>().filter(|bytes| *bytes > 0)?;
    (of_nodes.abs_diff(total) > total / 20).then(|| {
        format!(
            "The kernel counts {} of memory in its NUMA nodes and {} in all: memory that came or went while the \
             system was running, as a hypervisor's balloon does, can be missing in the nodes' figures.",
            size(of_nodes),
            size(total)
        )
    })
}

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
        "As the kernel tells them; a hypervisor may report others. `assay memory` measures where they end.",
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
