//! Whose machine it is.

use super::{Fact, Seen, Tree};

pub(super) const FACT: Fact =
    Fact { name: "machine", source: "CPU flag hypervisor; DMI sys_vendor and product_name", look };

fn look(tree: &Tree) -> Seen {
    let Some(cpuinfo) = tree.read("proc/cpuinfo") else {
        return Seen::Unknown("/proc/cpuinfo cannot be read");
    };
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    let word = match flags {
        Some(flags) if flags.split_whitespace().any(|flag| flag == "hypervisor") => "virtual machine",
        Some(_) => "no hypervisor seen",
        None => "not told whether virtual",
    };
    let dmi = ["sys_vendor", "product_name"].map(|name| tree.read(&format!("sys/class/dmi/id/{name}")));
    let product = dmi.into_iter().flatten().collect::<Vec<_>>().join(" ");
    Seen::Good(if product.is_empty() { word.to_owned() } else { format!("{word}, {product}") })
}
