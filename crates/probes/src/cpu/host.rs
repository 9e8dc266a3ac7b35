//! Platform settings that affect the CPUs, and the cost of reading the clock.

use assay_measure::clock::Clock;
use assay_measure::snapshot::Fact;
use assay_run::host::text;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The clock the kernel's frequency driver tells for a CPU now, MHz.
pub(super) fn cpufreq_mhz(cpu: u32) -> Option<f64> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
    let khz: f64 = fs::read_to_string(path).ok()?.trim().parse().ok()?;
    Some(khz / 1000.0)
}

/// Switches of the platform that decide what a CPU does: mitigations, siblings, boost, what the kernel was started with.
pub(super) fn facts() -> Vec<Fact> {
    let cpu = Path::new("/sys/devices/system/cpu");
    let told = |name: &str, path: &Path| {
        let text = fs::read_to_string(path).ok();
        let value = text.map_or_else(|| "n/a (not exposed)".to_owned(), |text| text.trim().to_owned());
        fact(name, value)
    };
    let mut facts = vec![
        told("smt_control", &cpu.join("smt/control")),
        told("cpu_boost", &cpu.join("cpufreq/boost")),
        told("cpu_energy_preference", &cpu.join("cpu0/cpufreq/energy_performance_preference")),
        told("ksm_run", Path::new("/sys/kernel/mm/ksm/run")),
        fact("kernel_words", words(&fs::read_to_string("/proc/cmdline").unwrap_or_default())),
    ];
    let entries = fs::read_dir(cpu.join("vulnerabilities")).into_iter().flatten().flatten();
    let all: BTreeMap<String, String> = entries
        .filter_map(|entry| {
            let text = fs::read_to_string(entry.path()).ok()?;
            Some((entry.file_name().to_string_lossy().into_owned(), text.trim().to_owned()))
        })
        .collect();
    let open = all.iter().filter(|(_, text)| *text != "Not affected");
    facts.extend(open.map(|(name, text)| fact(&format!("mitigation_{name}"), text.clone())));
    facts
}

fn fact(name: &str, value: String) -> Fact {
    Fact { name: name.to_owned(), value }
}

/// Words of a kernel command line that change what CPUs do.
fn words(command_line: &str) -> String {
    const NAMES: [&str; 7] = ["isolcpus", "nohz_full", "rcu_nocbs", "mitigations", "nosmt", "idle", "intel_pstate"];
    let matters = |word: &&str| NAMES.contains(&word.split('=').next().unwrap_or(word));
    let found: Vec<&str> = command_line.split_ascii_whitespace().filter(matters).collect();
    if found.is_empty() {
        "none of isolcpus, nohz_full, rcu_nocbs, mitigations, nosmt, idle, intel_pstate".to_owned()
    } else {
        found.join(" ")
    }
}

/// What reading the clock costs, ns: the quickest of several hundred batches' means.
pub(super) fn clock_read_ns(clock: &Clock) -> f64 {
    const READS: u64 = 100;
    let batch = || {
        let begun = clock.now_ns();
        for _ in 1..READS {
            std::hint::black_box(clock.now_ns());
        }
        (clock.now_ns() - begun) as f64 / READS as f64
    };
    (0..300).map(|_| batch()).fold(f64::INFINITY, f64::min)
}

/// Bytes that can be had without swapping.
pub(super) fn available_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    text::meminfo(&text).get("available").copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_matter_are_told_of_a_command_line() {
        assert_eq!(words("root=/dev/vda quiet isolcpus=2-3 nosmt nosmtx=1"), "isolcpus=2-3 nosmt");
        assert!(words("quiet").starts_with("none of"));
        assert!(facts().iter().all(|fact| !fact.value.is_empty()));
    }
}
