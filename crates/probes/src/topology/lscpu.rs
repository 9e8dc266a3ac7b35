//! lscpu's old layout (util-linux before 2.34): the fields, their order and column, and the size of one cache.

use crate::machine::{Machine, lscpu_ranges};
use serde::Serialize;

/// Column of the values.
const COLUMN: usize = 23;
pub(super) const NOT_EXPOSED: &str = "not exposed";

/// `(field, data)`; a field that does not apply to this machine is left out, one that is not known says so.
pub(super) fn fields(machine: &Machine) -> Vec<(String, String)> {
    let of = &machine.identity;
    let text = |text: &str| match text {
        "" => NOT_EXPOSED.to_owned(),
        text => text.to_owned(),
    };
    let number = |known: Option<usize>| known.map_or_else(|| NOT_EXPOSED.to_owned(), |count| count.to_string());
    let mut all: Vec<(String, String)> = Vec::new();
    let mut put = |field: &str, data: String| all.push((field.to_owned(), data));
    // A field that only some machines have.
    put("Architecture", text(&of.architecture));
    put("CPU op-mode(s)", text(&of.modes));
    put("Byte Order", text(&of.byte_order));
    let present = (!machine.present.is_empty()).then_some(machine.present.len());
    put("CPU(s)", number(present));
    put("On-line CPU(s) list", text(&lscpu_ranges(&machine.online)));
    let offline = machine.offline();
    if !offline.is_empty() {
        put("Off-line CPU(s) list", lscpu_ranges(&offline));
    }
    let sockets = machine.packages().map(|all| all.len());
    // As lscpu has it: the most cores that one socket has.
    let cores = machine.cores().and_then(|all| {
        let of_socket = |socket: u32| all.iter().filter(move |(s, _)| *s == socket).count();
        machine.packages()?.into_iter().map(of_socket).max()
    });
    put("Thread(s) per core", number(machine.threads_per_core()));
    put("Core(s) per socket", number(cores));
    put("Socket(s)", number(sockets));
    let nodes = (!machine.nodes.is_empty()).then_some(machine.nodes.len());
    put("NUMA node(s)", number(nodes));
    put("Vendor ID", text(&of.vendor));
    put("CPU family", text(&of.family));
    put("Model", text(&of.model));
    put("Model name", text(&of.model_name));
    put("Stepping", text(&of.stepping));
    put("CPU MHz", text(&of.mhz_now));
    let clock = |khz: Option<u64>| khz.map(|khz| format!("{:.4}", khz as f64 / 1000.0));
    let most = machine.cpus.iter().filter_map(|cpu| cpu.max_khz).max();
    let least = machine.cpus.iter().filter_map(|cpu| cpu.min_khz).min();
    for (field, value) in [("CPU max MHz", clock(most)), ("CPU min MHz", clock(least))] {
        if let Some(value) = value {
            put(field, value);
        }
    }
    put("BogoMIPS", text(&of.bogomips));
    for (field, value) in [
        ("Virtualization", &of.virtualization),
        ("Hypervisor vendor", &of.hypervisor_vendor),
        ("Virtualization type", &of.virtualization_type),
    ] {
        if !value.is_empty() {
            put(field, value.clone());
        }
    }
    for level in machine.levels() {
        put(&format!("{} cache", level.name), kib(level.bytes));
    }
    for node in &machine.nodes {
        let cpus = lscpu_ranges(&node.cpus);
        put(&format!("NUMA node{} CPU(s)", node.number), cpus);
    }
    put("Flags", text(&of.flags));
    all
}

/// The kernel's own spelling: `25344K`.
fn kib(bytes: u64) -> String {
    format!("{}K", bytes >> 10)
}

/// One field a line, its value at the column where scripts look.
pub(super) fn text(machine: &Machine) -> String {
    let line = |(field, data): (String, String)| {
        let line = format!("{:<COLUMN$}{data}", format!("{field}:"));
        line.trim_end().to_owned() + "\n"
    };
    fields(machine).into_iter().map(line).collect()
}

/// `{"lscpu": [{"field": "Architecture:", "data": "x86_64"}, ...]}`
pub(super) fn json(machine: &Machine) -> String {
    let entry = |(field, data): (String, String)| Entry { field: format!("{field}:"), data };
    let lscpu = fields(machine).into_iter().map(entry).collect();
    let text = serde_json::to_string_pretty(&Whole { lscpu });
    text.unwrap_or_default() + "\n"
}

#[derive(Serialize)]
struct Whole {
    lscpu: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    field: String,
    data: String,
}
