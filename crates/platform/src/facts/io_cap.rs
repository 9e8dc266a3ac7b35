//! Whether a control group caps the device's I/O.

use super::{Fact, Seen, Tree};

pub(super) const FACT: Fact =
    Fact { name: "I/O cap", source: "the kernel's documentation of control groups, io.max", look };

const V1: [&str; 4] = ["read_iops", "write_iops", "read_bps", "write_bps"];

fn look(tree: &Tree) -> Seen {
    let Some(disk) = tree.disk() else {
        return Seen::Unknown("the place lies on no block device of its own");
    };
    let Some(number) = tree.read(&format!("sys/block/{disk}/dev")) else {
        return Seen::Unknown("the kernel does not tell the device's number");
    };
    let of_device =
        |text: &str| text.lines().find_map(|line| Some(line.strip_prefix(&number)?.strip_prefix(' ')?.to_owned()));
    let v2 = tree.group_files("io", "io.max").into_iter().filter_map(|text| of_device(&text));
    let v1 = V1.iter().flat_map(|what| {
        let files = tree.group_files("blkio", &format!("blkio.throttle.{what}_device"));
        files.into_iter().filter_map(move |text| of_device(&text).map(|cap| format!("{what}={cap}")))
    });
    let caps: Vec<String> = v2.chain(v1).collect();
    if caps.is_empty() {
        // What a provider caps outside of this system cannot be seen here.
        return Seen::Good("none set by a control group".to_owned());
    }
    Seen::Finding(caps.join("; "), "raise or remove io.max of the control group: the device can do more than that")
}
