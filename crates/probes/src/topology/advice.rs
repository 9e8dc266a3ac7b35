//! What a database's operator has to know of a machine.

use super::TopologyInfo;
use crate::machine::{Machine, ranges};
use assay_measure::record::Advice;
use assay_measure::rule::Rule;
use assay_measure::units::size;

/// What judges by a rule.
type Judge = fn(&Machine) -> Option<String>;

/// The rules with what judges them, in the order in which findings are read.
const RULES: &[(Rule, Judge)] = &[
    (NO_CPUS, no_cpus),
    (OFFLINE, offline),
    (CONFINED, confined),
    (NODE_WITHOUT_MEMORY, node_without_memory),
    (MEMORY_NOT_OF_NODES, memory_not_of_nodes),
    (KINDS_OF_CPUS, kinds_of_cpus),
];

/// The rules of a machine.
pub(super) fn rules() -> Vec<Rule> {
    Rule::all(RULES)
}

/// All findings, in the order they are read.
pub(super) fn advise(info: &TopologyInfo) -> Vec<Advice> {
    let found = RULES.iter().filter_map(|(rule, judge)| Some(rule.explain(false, judge(&info.machine)?, &[])));
    found.collect()
}

const NO_CPUS: Rule = Rule {
    id: "T1",
    title: "No CPU is listed",
    changes_figures: true,
    fires_when: || "Neither /proc/cpuinfo nor /sys lists a CPU".to_owned(),
    why: "Little is known about this machine.",
    what_to_do: "Look at a tree that has these files (--sysroot).",
    cannot_judge_when: "Never: the files are there or not.",
    source: "Decided here.",
};

fn no_cpus(machine: &Machine) -> Option<String> {
    machine.online.is_empty().then(NO_CPUS.fires_when).map(|text| text + ".")
}

const OFFLINE: Rule = Rule {
    id: "T2",
    title: "CPUs are offline",
    changes_figures: true,
    fires_when: || "A CPU is present and offline".to_owned(),
    why: "Capacity is missing, or hyperthreads were switched off.",
    what_to_do: "Switch them on, or size by the CPUs that run.",
    cannot_judge_when: "The kernel does not tell which CPUs are present: then the rule is silent.",
    source: "Decided here.",
};

fn offline(machine: &Machine) -> Option<String> {
    let offline = machine.offline();
    (!offline.is_empty()).then(|| format!("CPUs {} are offline.", ranges(&offline)))
}

const CONFINED: Rule = Rule {
    id: "T3",
    title: "This process may not use every CPU",
    changes_figures: true,
    fires_when: || "An affinity mask or a cpuset leaves this process fewer CPUs than run".to_owned(),
    why: "A database that starts in the same way can use no other CPUs.",
    what_to_do: "Lift the mask or cpuset, or size by the CPUs that it leaves.",
    cannot_judge_when: "The kernel does not tell the mask: then the rule is silent.",
    source: "Decided here.",
};

fn confined(machine: &Machine) -> Option<String> {
    (!machine.usable.is_empty() && machine.usable.len() < machine.online.len()).then(|| {
        format!(
            "This process may use only CPUs {} of the online CPUs ({}): an affinity mask or a cpuset.",
            ranges(&machine.usable),
            ranges(&machine.online)
        )
    })
}

const NODE_WITHOUT_MEMORY: Rule = Rule {
    id: "T4",
    title: "A NUMA node has no memory",
    changes_figures: true,
    fires_when: || "A NUMA node has no memory".to_owned(),
    why: "All memory is remote to its CPUs.",
    what_to_do: "Equip the node, or keep the database off its CPUs.",
    cannot_judge_when: "The kernel does not tell the memory of nodes: then the rule is silent.",
    source: "Decided here.",
};

fn node_without_memory(machine: &Machine) -> Option<String> {
    let empty = machine.nodes.iter().filter(|node| node.memory_bytes == Some(0));
    let empty: Vec<u32> = empty.map(|node| node.number).collect();
    (!empty.is_empty()).then(|| format!("NUMA node {} has no memory.", ranges(&empty)))
}

/// The kernel's two figures of the memory differ by more than the whole over this.
const PARTS: u64 = 20;

const MEMORY_NOT_OF_NODES: Rule = Rule {
    id: "T5",
    title: "The memory of the nodes is not the whole",
    changes_figures: true,
    fires_when: || format!("The memory of all NUMA nodes and MemTotal differ by more than {} %", 100 / PARTS),
    why: "Memory that was added or removed at run time, by a hypervisor's balloon for example, can be missing from the nodes' figures.",
    what_to_do: "Size by the smaller figure.",
    cannot_judge_when: "One of the two is not exposed: then the rule is silent.",
    source: "Decided here.",
};

fn memory_not_of_nodes(machine: &Machine) -> Option<String> {
    let total = *machine.memory.get("MemTotal")?;
    let nodes = machine.nodes.iter().map(|node| node.memory_bytes);
    let of_nodes = nodes.sum::<Option<u64>>().filter(|bytes| *bytes > 0)?;
    (of_nodes.abs_diff(total) > total / PARTS).then(|| {
        format!("The kernel counts {} of memory in its NUMA nodes and {} in all.", size(of_nodes), size(total))
    })
}

const KINDS_OF_CPUS: Rule = Rule {
    id: "T6",
    title: "CPUs are of several kinds",
    changes_figures: true,
    fires_when: || "CPUs differ in their highest clock or in the scheduler's capacity".to_owned(),
    why: "The slowest worker of a database determines its speed.",
    what_to_do: "Keep the database on CPUs of one kind.",
    cannot_judge_when: "The kernel tells neither figure: then the rule is silent.",
    source: "Decided here.",
};

fn kinds_of_cpus(machine: &Machine) -> Option<String> {
    let classes = machine.classes();
    let each: Vec<String> = classes.iter().map(|(figure, cpus)| format!("CPUs {} ({figure})", ranges(cpus))).collect();
    (classes.len() > 1).then(|| {
        format!(
            "CPUs are of {} kinds, by their highest clock in MHz or the scheduler's capacity: {}.",
            classes.len(),
            each.join("; ")
        )
    })
}
