//! Whether the kernel would rather swap a database than drop its page cache.

use super::{Fact, Seen, Tree};

/// Above it the kernel swaps a cache that is idle for a moment. Databases' guides ask for 1 to 10.
const MOST_SWAPPINESS: u64 = 10;

pub(super) const FACT: Fact = Fact {
    name: "swap",
    source: "installation guides of MariaDB, Oracle Database and MongoDB: swappiness 1 to 10",
    look,
};

fn look(tree: &Tree) -> Seen {
    let Some((total, swappiness)) = tree.memory("SwapTotal").zip(tree.number("proc/sys/vm/swappiness")) else {
        return Seen::Unknown("/proc/meminfo or vm.swappiness cannot be read");
    };
    if total == 0 {
        return Seen::Good("none".to_owned());
    }
    let value = format!("{:.1} GiB, swappiness {swappiness}", total as f64 / f64::from(1 << 30));
    if swappiness > MOST_SWAPPINESS {
        Seen::Finding(value, "set vm.swappiness to 10 or less, so that a database's cache stays in memory")
    } else {
        Seen::Good(value)
    }
}
