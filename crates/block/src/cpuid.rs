//! What the processor itself reports about a hypervisor.

/// The signature of leaf 0x4000_0000, such as `KVMKVMKVM`; `None` for a machine without a hypervisor, or without that
/// leaf.
#[must_use]
pub fn hypervisor_signature() -> Option<String> {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::__cpuid;
        // Intel's and AMD's manuals reserve this bit of leaf 1 for hypervisors; without one the leaf below is undefined.
        const HYPERVISOR: u32 = 1 << 31;
        if __cpuid(1).ecx & HYPERVISOR == 0 {
            return None;
        }
        let leaf = __cpuid(0x4000_0000);
        let bytes: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx].iter().flat_map(|word| word.to_le_bytes()).collect();
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_matches(|c: char| c == '\0' || c.is_whitespace());
        (!text.is_empty()).then(|| text.to_owned())
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(not(miri))]
    fn a_signature_is_there_exactly_where_the_kernel_sees_a_hypervisor() {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let seen = cpuinfo.split_whitespace().any(|flag| flag == "hypervisor");
        assert_eq!(hypervisor_signature().is_some(), seen);
    }
}
