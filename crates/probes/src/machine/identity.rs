//! The identity of the CPUs: vendor, model, flags, and the hypervisor above them.

use super::Tree;
use assay_measure::figures::figures;
use assay_run::host::text;

/// What `/proc/cpuinfo` says of the first CPU, and what else names the machine. What is empty is not exposed.
#[figures]
pub(crate) struct Identity {
    /// `x86_64`, `aarch64`.
    pub architecture: String,
    /// `32-bit, 64-bit`.
    pub modes: String,
    pub byte_order: String,
    pub vendor: String,
    pub family: String,
    pub model: String,
    pub model_name: String,
    pub stepping: String,
    /// The clock of that CPU at that instant, MHz: of an idle one it says nothing.
    pub mhz_now: String,
    pub bogomips: String,
    /// `VT-x` or `AMD-V`: what guests of this machine could use.
    pub virtualization: String,
    pub hypervisor_vendor: String,
    /// `full` or `para`.
    pub virtualization_type: String,
    pub flags: String,
}

/// Names of Arm's and Ampere's server cores, by implementer and part as `/proc/cpuinfo` has them (Arm's technical reference
/// manuals, MIDR_EL1).
const ARM: [(&str, &str, &str, &str); 9] = [
    ("0x41", "0xd08", "ARM", "Cortex-A72"),
    ("0x41", "0xd0c", "ARM", "Neoverse-N1"),
    ("0x41", "0xd40", "ARM", "Neoverse-V1"),
    ("0x41", "0xd49", "ARM", "Neoverse-N2"),
    ("0x41", "0xd4f", "ARM", "Neoverse-V2"),
    ("0x41", "0xd84", "ARM", "Neoverse-V3"),
    ("0x41", "0xd8e", "ARM", "Neoverse-N3"),
    ("0xc0", "0xac3", "Ampere", "Ampere-1"),
    ("0xc0", "0xac4", "Ampere", "Ampere-1a"),
];

/// What hypervisors call themselves, in CPUID and in the firmware's tables, and what lscpu calls them.
const HYPERVISORS: [(&str, &str); 12] = [
    ("KVMKVMKVM", "KVM"),
    ("TCGTCGTCGTCG", "QEMU"),
    ("VMwareVMware", "VMware"),
    ("Microsoft Hv", "Microsoft"),
    ("XenVMMXenVMM", "Xen"),
    ("VBoxVBoxVBox", "Oracle"),
    ("QEMU", "KVM"),
    ("KVM", "KVM"),
    ("VMware", "VMware"),
    ("Microsoft Corporation", "Microsoft"),
    ("innotek GmbH", "Oracle"),
    ("Xen", "Xen"),
];

impl Identity {
    pub(super) fn of(tree: &Tree, cpuinfo: &str) -> Self {
        let said = |key: &str| text::cpuinfo(cpuinfo, key).unwrap_or_default().to_owned();
        let flags = match said("flags") {
            flags if flags.is_empty() => said("Features"),
            flags => flags,
        };
        let has = |flag: &str| flags.split_ascii_whitespace().any(|word| word == flag);
        let implementer = said("CPU implementer");
        let is_x86 = !said("vendor_id").is_empty();
        let architecture = match (is_x86, has("lm"), implementer.is_empty()) {
            (true, true, _) => "x86_64",
            (true, false, _) => "i686",
            (false, _, false) => "aarch64",
            _ if tree.is_here() => std::env::consts::ARCH,
            _ => "",
        };
        let part = said("CPU part");
        let arm = ARM.iter().find(|(i, p, ..)| *i == implementer && *p == part);
        let vendor = match arm {
            Some((_, _, vendor, _)) => (*vendor).to_owned(),
            None if is_x86 => said("vendor_id"),
            None => implementer,
        };
        let (hypervisor_vendor, virtualization_type) = hypervisor(tree, has("hypervisor"));
        Self {
            modes: match (is_x86, has("lm")) {
                (true, true) => "32-bit, 64-bit",
                (true, false) => "32-bit",
                _ => "",
            }
            .to_owned(),
            byte_order: match architecture {
                "x86_64" | "i686" | "aarch64" => "Little Endian",
                _ if tree.is_here() && cfg!(target_endian = "big") => "Big Endian",
                _ => "",
            }
            .to_owned(),
            architecture: architecture.to_owned(),
            family: said("cpu family"),
            model: if is_x86 { said("model") } else { said("CPU variant") },
            model_name: match arm {
                Some((.., name)) => (*name).to_owned(),
                None if is_x86 => said("model name"),
                None => part,
            },
            stepping: said("stepping"),
            mhz_now: said("cpu MHz"),
            bogomips: match said("bogomips") {
                bogomips if bogomips.is_empty() => said("BogoMIPS"),
                bogomips => bogomips,
            },
            virtualization: match (has("vmx"), has("svm")) {
                (true, _) => "VT-x",
                (_, true) => "AMD-V",
                _ => "",
            }
            .to_owned(),
            vendor,
            hypervisor_vendor,
            virtualization_type,
            flags,
        }
    }
}

/// Vendor and type of the hypervisor: by the processor itself on this machine, by the firmware's tables, by Xen's own file.
fn hypervisor(tree: &Tree, is_guest: bool) -> (String, String) {
    let known = |name: &str| {
        let mut names = HYPERVISORS.iter();
        names.find(|(theirs, _)| name.starts_with(theirs))
    };
    let xen = tree.text("sys/hypervisor/type").filter(|kind| kind == "xen");
    if xen.is_some() {
        // A guest that the processor calls one is fully virtual; one that only Xen knows of is not.
        let kind = if is_guest { "full" } else { "para" };
        return ("Xen".to_owned(), kind.to_owned());
    }
    if !is_guest {
        return (String::new(), String::new());
    }
    let signature = tree.is_here().then(assay_block::hypervisor_signature).flatten();
    let firmware = ["sys_vendor", "product_name", "bios_vendor"]
        .iter()
        .filter_map(|file| tree.text(&format!("sys/class/dmi/id/{file}")));
    let found = signature.into_iter().chain(firmware).find_map(|name| known(&name));
    let vendor = found.map_or("", |(_, name)| name);
    (vendor.to_owned(), "full".to_owned())
}
