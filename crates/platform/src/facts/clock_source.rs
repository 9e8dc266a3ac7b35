//! Which clock the kernel reads.

use super::{Fact, Seen, Tree};

pub(super) const FACT: Fact = Fact {
    name: "clock source",
    source: "the manual of pg_test_timing; the kernel's documentation of clock sources",
    look,
};

/// Sources that are read without leaving user space.
const FAST: [&str; 4] = ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"];

fn look(tree: &Tree) -> Seen {
    let Some(current) = tree.read("sys/devices/system/clocksource/clocksource0/current_clocksource") else {
        return Seen::Unknown("the kernel does not tell");
    };
    if FAST.contains(&current.as_str()) {
        Seen::Good(current)
    } else {
        Seen::Finding(
            current,
            "use tsc where `dmesg` does not call it unstable: each reading of this source is a system call",
        )
    }
}
