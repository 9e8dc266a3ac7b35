//! Facts of the host, read once per run. Unknown facts say so.

use super::text;
use assay_measure::facts;
use assay_measure::snapshot::Fact;
use std::fs;

/// Kernel, CPU, memory, virtualisation, clock source and limits of this host.
#[must_use]
pub fn facts() -> Vec<Fact> {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let meminfo = text::meminfo(&fs::read_to_string("/proc/meminfo").unwrap_or_default());
    let memory = |key: &str| meminfo.get(key).map(ToString::to_string);
    let sys = |path: &str| {
        let text = fs::read_to_string(path).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let cpu = "/sys/devices/system/cpu";
    let clock = "/sys/devices/system/clocksource/clocksource0";
    let cpus = std::thread::available_parallelism().ok();
    let mut all = vec![
        known(facts::HOSTNAME.name, sys("/proc/sys/kernel/hostname")),
        known("operating_system", os_release()),
        known(facts::KERNEL.name, sys("/proc/sys/kernel/osrelease")),
        known("architecture", Some(std::env::consts::ARCH.to_owned())),
        known(facts::CPU_MODEL.name, model(&cpuinfo)),
        known(facts::CPUS.name, cpus.map(|cpus| cpus.to_string())),
        known("cpus_online", sys(&format!("{cpu}/online"))),
        known("cpu_threads_per_core", sys(&format!("{cpu}/smt/active")).map(smt)),
        known("cpu_governor", sys(&format!("{cpu}/cpu0/cpufreq/scaling_governor"))),
        known("cpu_frequency_max_khz", sys(&format!("{cpu}/cpu0/cpufreq/cpuinfo_max_freq"))),
        known("numa_nodes", sys("/sys/devices/system/node/online")),
        known(facts::MEMORY_BYTES.name, memory("total")),
        known("swap_bytes", memory("swap_total")),
        known("transparent_huge_pages", sys("/sys/kernel/mm/transparent_hugepage/enabled").map(chosen)),
        known(facts::VIRTUALISATION.name, virtualisation(&cpuinfo)),
        known(facts::PRODUCT.name, product()),
        known("clocksource", sys(&format!("{clock}/current_clocksource"))),
        known("locked_memory_limit_bytes", Some(locked_memory())),
        known("cgroup_cpu_max", sys("/sys/fs/cgroup/cpu.max")),
        known("cgroup_memory_max_bytes", sys("/sys/fs/cgroup/memory.max")),
    ];
    all.extend(super::caps::facts());
    all
}

fn known(name: &str, value: Option<String>) -> Fact {
    Fact::new(name, value.as_deref().unwrap_or("n/a (absent)"))
}

fn smt(active: String) -> String {
    if active == "1" { "2 or more" } else { "1" }.to_owned()
}

/// The word in brackets of a sysfs choice: `always [madvise] never`.
fn chosen(choice: String) -> String {
    let inner = choice.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word.to_owned());
    inner.unwrap_or(choice)
}

/// x86 says `model name`; Arm only numbers of implementer and part.
fn model(cpuinfo: &str) -> Option<String> {
    if let Some(name) = text::cpuinfo(cpuinfo, "model name") {
        return Some(name.to_owned());
    }
    let implementer = text::cpuinfo(cpuinfo, "CPU implementer")?;
    let part = text::cpuinfo(cpuinfo, "CPU part")?;
    Some(format!("implementer {implementer}, part {part}"))
}

/// The CPU tells a guest that it is one; the device tree or firmware often tells whose.
fn virtualisation(cpuinfo: &str) -> Option<String> {
    if let Ok(kind) = fs::read_to_string("/sys/hypervisor/type") {
        return Some(format!("guest ({})", kind.trim()));
    }
    let flags = text::cpuinfo(cpuinfo, "flags")?;
    let guest = flags.split_ascii_whitespace().any(|flag| flag == "hypervisor");
    Some(if guest { "guest" } else { "none seen" }.to_owned())
}

fn product() -> Option<String> {
    let dmi = |name: &str| fs::read_to_string(format!("/sys/class/dmi/id/{name}")).ok();
    let vendor = dmi("sys_vendor")?;
    let name = dmi("product_name").unwrap_or_default();
    Some(format!("{} {}", vendor.trim(), name.trim()).trim().to_owned())
}

fn os_release() -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")).map(|name| name.trim_matches('"').to_owned())
}

fn locked_memory() -> String {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock);
    limit.current.map_or_else(|| "unlimited".to_owned(), |bytes| bytes.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_has_a_value_and_the_kernel_is_known() {
        let facts = facts();
        assert!(facts.iter().all(|fact| !fact.value.is_empty()));
        let kernel = facts.iter().find(|fact| fact.name == facts::KERNEL.name);
        assert!(kernel.is_some_and(|fact| !fact.value.starts_with("n/a")));
    }

    #[test]
    fn the_bracketed_choice_is_taken() {
        assert_eq!(chosen("always [madvise] never".to_owned()), "madvise");
        assert_eq!(chosen("odd".to_owned()), "odd");
    }

    #[test]
    fn arm_has_no_model_name() {
        let text = "CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        assert_eq!(model(text).as_deref(), Some("implementer 0x41, part 0xd0c"));
        assert_eq!(model(""), None);
    }
}
