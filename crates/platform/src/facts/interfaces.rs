//! Whether asynchronous I/O is to be had.

use super::{Fact, Seen, Tree};

pub(super) const FACT: Fact = Fact {
    name: "asynchronous I/O",
    source: "the kernel's documentation of fs.aio-max-nr and kernel.io_uring_disabled",
    look,
};

/// What Oracle Database's installation guide asks for.
const LEAST_AIO: u64 = 1_048_576;

fn look(tree: &Tree) -> Seen {
    let Some((used, most)) = tree.number("proc/sys/fs/aio-nr").zip(tree.number("proc/sys/fs/aio-max-nr")) else {
        return Seen::Unknown("fs.aio-max-nr cannot be read");
    };
    let uring = match tree.number("proc/sys/kernel/io_uring_disabled") {
        Some(0) | None => "io_uring not switched off",
        Some(1) => "io_uring for a group only",
        Some(_) => "io_uring switched off",
    };
    let value = format!("{most} requests at most (aio-max-nr), {uring}");
    if uring == "io_uring switched off" {
        Seen::Finding(value, "set kernel.io_uring_disabled to 0 for databases that use io_uring")
    } else if most < LEAST_AIO && most.saturating_sub(used) < LEAST_AIO / 16 {
        Seen::Finding(
            value,
            "most of them are in use: raise fs.aio-max-nr to 1048576, as Oracle Database asks: its processes may get no more requests",
        )
    } else {
        Seen::Good(value)
    }
}
