//! Huge pages: reserved ones help a large cache, transparent ones may stall.

use super::{Fact, Seen, Tree, chosen};

pub(super) const FACT: Fact = Fact {
    name: "huge pages",
    source: "installation guides of Oracle Database and MongoDB advise against transparent huge pages",
    look,
};

fn look(tree: &Tree) -> Seen {
    let Some(choice) = tree.read("sys/kernel/mm/transparent_hugepage/enabled") else {
        return Seen::Unknown("the kernel has no transparent huge pages, or hides them");
    };
    let (transparent, reserved) = (chosen(&choice), tree.memory("HugePages_Total").unwrap_or(0));
    let value = format!("transparent: {transparent}; {reserved} reserved");
    if transparent == "always" {
        Seen::Finding(value, "set transparent huge pages to madvise or never, and reserve huge pages for a large cache")
    } else {
        Seen::Good(value)
    }
}
