//! Whether the kernel lets the CPUs run as fast as they can.

use super::{Fact, Seen, Tree};

pub(super) const FACT: Fact =
    Fact { name: "CPU clock", source: "the kernel's documentation of CPU frequency governors", look };

/// What the kernel claims, MHz: the fastest CPU now, else the clock in the name of the model.
pub(crate) fn claimed_mhz(tree: &Tree) -> Option<f64> {
    let text = tree.read("proc/cpuinfo")?;
    let values = |key: &'static str| {
        text.lines()
            .filter_map(move |line| line.split_once(':').filter(|(name, _)| name.trim() == key))
            .map(|(_, value)| value.trim())
    };
    let now = values("cpu MHz").filter_map(|value| value.parse().ok()).filter(|mhz: &f64| *mhz > 0.0).reduce(f64::max);
    let named = || {
        let ghz: f64 = values("model name").next()?.split_once("@ ")?.1.strip_suffix("GHz")?.parse().ok()?;
        Some(1000.0 * ghz)
    };
    now.or_else(named)
}

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
