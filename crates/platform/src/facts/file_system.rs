//! The file system under the place and how it is mounted.

use super::{Fact, Seen, Tree};

pub(super) const FACT: Fact = Fact { name: "file system", source: "mount(8), ext4(5), xfs(5)", look };

/// Options with which a flush does not reach the medium.
const UNSAFE: [&str; 3] = ["nobarrier", "barrier=0", "data=writeback"];
/// File systems that lie in memory, or above another.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

fn look(tree: &Tree) -> Seen {
    let Some(mounted) = tree.mounted() else {
        return Seen::Unknown("/proc/self/mountinfo does not name the place");
    };
    let value = format!("{} on {} ({})", mounted.file_system, mounted.source, mounted.options);
    let has = |option: &&str| mounted.options.split(',').any(|given| given == *option);
    if IN_MEMORY.contains(&mounted.file_system.as_str()) {
        return Seen::Finding(value, "give a PATH on a disk: this file system lies in memory");
    }
    if mounted.file_system == "overlay" {
        return Seen::Finding(
            value,
            "give a PATH on a volume: a container's layer copies each file at its first write",
        );
    }
    if UNSAFE.iter().any(has) {
        return Seen::Finding(value, "mount it with barriers: without, a power failure may lose acknowledged commits");
    }
    Seen::Good(value)
}
