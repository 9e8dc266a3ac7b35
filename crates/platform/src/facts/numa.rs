//! Whether memory of another node is as good as free.

use super::{Fact, Seen, Tree};

pub(super) const FACT: Fact = Fact { name: "NUMA", source: "the kernel's documentation of vm.zone_reclaim_mode", look };

fn look(tree: &Tree) -> Seen {
    let Some(online) = tree.read("sys/devices/system/node/online") else {
        return Seen::Unknown("the kernel tells of no nodes");
    };
    let nodes = online.split(',').map(|range| match range.split_once('-') {
        Some((from, to)) => {
            to.parse::<u64>().ok().zip(from.parse::<u64>().ok()).map_or(1, |(to, from)| to.saturating_sub(from) + 1)
        }
        None => 1,
    });
    let nodes: u64 = nodes.sum();
    let value = if nodes == 1 { "1 node".to_owned() } else { format!("{nodes} nodes") };
    if nodes > 1 && tree.number("proc/sys/vm/zone_reclaim_mode").is_some_and(|mode| mode != 0) {
        Seen::Finding(value, "set vm.zone_reclaim_mode to 0: else a node drops its page cache while others have memory")
    } else {
        Seen::Good(value)
    }
}
