//! The device under the place, its scheduler and its write cache.

use super::{Fact, Seen, Tree, chosen};

pub(super) const FACT: Fact =
    Fact { name: "device", source: "the kernel's documentation of block queues and I/O schedulers", look };

fn look(tree: &Tree) -> Seen {
    let Some(disk) = tree.disk() else {
        return Seen::Unknown("the place lies on no block device of its own (network, overlay or mapped device)");
    };
    let queue = |name: &str| tree.read(&format!("sys/block/{disk}/queue/{name}"));
    let spins = queue("rotational").is_some_and(|text| text == "1");
    let scheduler = queue("scheduler").map_or_else(|| "unknown".to_owned(), |text| chosen(&text).to_owned());
    let model = tree.read(&format!("sys/block/{disk}/device/model"));
    let mut parts = vec![model.map_or_else(|| disk.clone(), |model| format!("{disk} ({model})"))];
    // Virtual devices often claim to rotate: told as the claim that it is.
    parts.push(if spins { "says it rotates" } else { "does not rotate" }.to_owned());
    parts.push(format!("scheduler {scheduler}"));
    parts.extend(queue("write_cache").map(|cache| format!("write cache {cache}")));
    let value = parts.join(", ");
    if !spins && ["bfq", "cfq"].contains(&scheduler.as_str()) {
        Seen::Finding(value, "use the scheduler none or mq-deadline: fair queueing costs a fast device its rate")
    } else {
        Seen::Good(value)
    }
}
