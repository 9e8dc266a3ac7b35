//! The first things to know of a machine.

use super::{TopologyInfo, count};
use crate::machine::Machine;
use assay_measure::kind::{Headline, HeadlineFigure, HeadlineLine, Limit, Next, rerun_command};
use assay_measure::record::{Figure, Record};
use assay_measure::units::size;

fn told(title: &'static str, told: Vec<(Figure, String)>) -> HeadlineLine {
    let told = told.iter().map(|(figure, unit)| HeadlineFigure::new(figure, unit));
    HeadlineLine::of(title, told.collect(), "n/a (not exposed)")
}

/// A line of words.
fn said(title: &'static str, text: String) -> HeadlineLine {
    HeadlineLine::of(title, Vec::new(), &text)
}

/// The headline of a machine.
pub(super) fn of(record: &Record, info: &TopologyInfo) -> Headline {
    let machine = &info.machine;
    let of = &machine.identity;
    let name = match of.model_name.as_str() {
        "" => "CPUs of unknown model",
        name => name,
    };
    let whose = match info.sysroot.as_str() {
        "/" | "" => String::new(),
        root => format!(" (captured below {root})"),
    };
    let online = (!machine.online.is_empty()).then_some(machine.online.len());
    let plural = |figure: &Figure, word: &str| match figure.value() {
        Some(1.0) => word.to_owned(),
        _ => format!("{word}s"),
    };
    let counts = [
        (count(online), "CPU"),
        (count(machine.cores().map(|all| all.len())), "core"),
        (count(machine.packages().map(|all| all.len())), "socket"),
    ];
    let counts = counts.map(|(figure, word)| {
        let unit = plural(&figure, word);
        (figure, unit)
    });
    Headline {
        tested: format!("{name}, {}{whose}.", guest(machine)),
        rows: vec![
            told("CPUs", counts.into()),
            said("Caches", caches(machine)),
            said("Memory", memory(machine)),
            said("Huge pages", huge(machine)),
        ],
        steadiness: "n/a (nothing was measured)".to_owned(),
        limit: Limit::unknown("nothing was measured"),
        next: vec![
            Next::new("assay memory", "measures what these caches and nodes do"),
            Next::new("assay cpu", "measures what these CPUs compute"),
        ],
        rerun_command: rerun_command(record),
        ..Headline::default()
    }
}

fn guest(machine: &Machine) -> String {
    let of = &machine.identity;
    match (of.virtualization_type.as_str(), of.hypervisor_vendor.as_str()) {
        ("", _) => "no hypervisor seen".to_owned(),
        (_, "") => "a virtual machine".to_owned(),
        (_, vendor) => format!("a virtual machine of {vendor}"),
    }
}

fn caches(machine: &Machine) -> String {
    let levels = machine.levels();
    let each = levels.iter().map(|level| format!("{} {} x {}", level.name, size(level.bytes), level.count));
    let each: Vec<String> = each.collect();
    if each.is_empty() { "n/a (not exposed)".to_owned() } else { each.join(", ") }
}

fn memory(machine: &Machine) -> String {
    let nodes = match machine.nodes.len() {
        0 => "NUMA nodes not exposed".to_owned(),
        1 => "one NUMA node".to_owned(),
        count => format!("{count} NUMA nodes"),
    };
    match machine.memory.get("MemTotal") {
        Some(bytes) => format!("{}, {nodes}", size(*bytes)),
        None => format!("n/a (not exposed), {nodes}"),
    }
}

pub(super) fn huge(machine: &Machine) -> String {
    let pools = machine
        .pools
        .iter()
        .map(|pool| format!("{} of {} reserved, {} free", pool.pages, size(pool.page_bytes), pool.free));
    let thp = match machine.transparent_huge_pages.as_str() {
        "" => "not exposed",
        word => word,
    };
    let all: Vec<String> = std::iter::once(format!("transparent: {thp}")).chain(pools).collect();
    all.join("; ")
}
