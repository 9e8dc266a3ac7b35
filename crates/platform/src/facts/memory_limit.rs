//! Whether a control group leaves all the memory.

use super::{Fact, Seen, Tree};

pub(super) const FACT: Fact =
    Fact { name: "memory", source: "the kernel's documentation of control groups, memory.max", look };

fn look(tree: &Tree) -> Seen {
    let Some(total) = tree.memory("MemTotal") else {
        return Seen::Unknown("/proc/meminfo cannot be read");
    };
    let names = ["memory.max", "memory.limit_in_bytes"];
    let limits = names.iter().flat_map(|name| tree.group_files("memory", name));
    let least = limits.filter_map(|text| text.parse::<u64>().ok()).min().filter(|limit| *limit < total);
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
    match least {
        Some(limit) => Seen::Finding(
            format!("{}, of which the control group leaves {}", gib(total), gib(limit)),
            "size the database's caches for the limit, not for the box: the page cache counts too",
        ),
        None => Seen::Good(gib(total)),
    }
}
