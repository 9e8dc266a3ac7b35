//! Words that reports use for reads, shared by the code that shows and the code that looks for them.

use assay_measure::snapshot::{Actor, WaitClass};

/// Sessions a thread works for.
pub(crate) const CPU: &str = "CPU";
/// Sessions that could go on, but whose thread works for another.
pub(crate) const RUN_QUEUE: &str = "Run queue";
/// The columns of `/proc/stat`'s `cpu` line, in order.
pub(crate) const CPU_COLUMNS: [&str; 10] =
    ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"];

/// A wait class as `V$EVENT_NAME` spells it.
pub(crate) const fn class_name(class: WaitClass) -> &'static str {
    match class {
        WaitClass::UserIo => "User I/O",
        WaitClass::SystemIo => "System I/O",
        WaitClass::Commit => "Commit",
        WaitClass::Configuration => "Configuration",
        WaitClass::Concurrency => "Concurrency",
        WaitClass::Application => "Application",
        WaitClass::Network => "Network",
        WaitClass::Idle => "Idle",
        WaitClass::Other => "Other",
    }
}

pub(crate) fn actor_name(actor: Actor) -> &'static str {
    match actor {
        Actor::Foreground => "foreground",
        Actor::Background => "background",
    }
}
