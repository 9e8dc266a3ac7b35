//! NUMA: requesting memory on a node, and finding the node of allocated memory.

use crate::BlockError;
use crate::mapping::Mapping;

/// NUMA policy for new pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Policy {
    /// Only this node (`MPOL_BIND`).
    Node(u32),
    /// These nodes in turn (`MPOL_INTERLEAVE`).
    Interleaved(Vec<u32>),
}

/// Maximum number of pages to look up.
#[cfg(not(miri))]
const LOOKS: usize = 1024;

#[cfg(not(miri))]
pub(super) fn bind(mapping: &Mapping, policy: Policy) -> Result<(), BlockError> {
    let (mode, nodes) = match policy {
        Policy::Node(node) => (libc::MPOL_BIND, vec![node]),
        Policy::Interleaved(nodes) => (libc::MPOL_INTERLEAVE, nodes),
    };
    let highest = nodes.iter().max().copied().unwrap_or(0) as usize;
    let mut mask = vec![0_u64; highest / 64 + 1];
    for node in &nodes {
        mask[*node as usize / 64] |= 1 << (node % 64);
    }
    // SAFETY: the range is this mapping, which outlives the call, and the mask has as many bits as are named; the
    // kernel reads one bit less than the number passed (mbind(2), BUGS).
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mbind,
            mapping.base(),
            mapping.len().next_multiple_of(crate::mapping::ALIGNMENT),
            mode,
            mask.as_ptr(),
            mask.len() * 64 + 1,
            0,
        )
    };
    match answer {
        0 => Ok(()),
        _ => Err(BlockError::Memory {
            what: "a NUMA node",
            bytes: mapping.len() as u64,
            source: std::io::Error::last_os_error(),
        }),
    }
}

#[cfg(not(miri))]
pub(super) fn of(mapping: &Mapping) -> Vec<(u32, u64)> {
    let count = (mapping.len() / crate::mapping::ALIGNMENT).clamp(1, LOOKS);
    let step = (mapping.len() / count) & !(crate::mapping::ALIGNMENT - 1);
    let pages: Vec<*mut u8> = (0..count).map(|nth| mapping.base().wrapping_add(nth * step)).collect();
    let mut status = vec![-1_i32; count];
    // SAFETY: without nodes to move to, the kernel only writes the status of each page: both arrays have `count` entries.
    let answer = unsafe {
        libc::syscall(libc::SYS_move_pages, 0, count, pages.as_ptr(), std::ptr::null::<i32>(), status.as_mut_ptr(), 0)
    };
    let mut found = std::collections::BTreeMap::new();
    if answer == 0 {
        for node in status {
            if let Ok(node) = u32::try_from(node) {
                *found.entry(node).or_insert(0) += 1;
            }
        }
    }
    found.into_iter().collect()
}

#[cfg(miri)]
pub(super) fn bind(_: &Mapping, _: Policy) -> Result<(), BlockError> {
    Ok(())
}

#[cfg(miri)]
pub(super) fn of(_: &Mapping) -> Vec<(u32, u64)> {
    Vec::new()
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::Pages;
    use crate::memory::Area;

    #[test]
    fn memory_13_pages_are_found_on_the_node_they_were_asked_from() {
        let mut area = Area::new(1 << 20, Pages::Base, "a test").unwrap();
        if area.place(Policy::Node(0)).is_err() {
            // A kernel without NUMA, or a container that forbids the call.
            assert!(Area::new(4096, Pages::Base, "a test").is_ok());
            return;
        }
        assert_eq!(area.nodes(), [], "nothing is touched yet");
        area.words().fill(1);
        assert_eq!(area.nodes(), [(0, 256)]);
        let other = Area::new(4096, Pages::Base, "a test").unwrap();
        assert!(other.place(Policy::Node(1000)).is_err(), "there is no such node");
        assert!(other.place(Policy::Interleaved(vec![0])).is_ok());
    }
}
