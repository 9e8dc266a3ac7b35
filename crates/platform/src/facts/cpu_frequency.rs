//! Whether the kernel lets the CPUs run as fast as they can.

use super::{Fact, Seen, Tree};

pub(super) const FACT: Fact =
    Fact { name: "CPU clock", source: "the kernel's documentation of CPU frequency governors", look };

fn look(tree: &Tree) -> Seen {
    const DIR: &str = "sys/devices/system/cpu/cpu0/cpufreq";
    let Some(governor) = tree.read(&format!("{DIR}/scaling_governor")) else {
        return Seen::Unknown("the kernel exposes no frequency control here (usual in virtual machines)");
    };
    let most = tree.number(&format!("{DIR}/cpuinfo_max_freq"));
    let most = most.map_or_else(String::new, |khz| format!(", up to {} MHz", khz / 1000));
    let driver = tree.read(&format!("{DIR}/scaling_driver")).unwrap_or_default();
    let value = format!("governor {governor}{most}");
    // Under these drivers the CPU decides within limits, and powersave does not mean slow.
    let decides_itself = ["intel_pstate", "amd-pstate-epp"].contains(&driver.as_str());
    match governor.as_str() {
        "performance" | "schedutil" => Seen::Good(value),
        "powersave" if decides_itself => Seen::Good(value),
        _ => Seen::Finding(value, "set the governor to performance: `cpupower frequency-set -g performance`"),
    }
}
