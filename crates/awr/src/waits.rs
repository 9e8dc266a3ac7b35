//! What a session waits for, by its event: for the rules and for what limits a run.

use assay_measure::record::EventRow;

/// A wait for the redo log.
pub(crate) fn is_log(event: &EventRow) -> bool {
    event.class == "Commit" || event.name.starts_with("log ")
}

/// A wait for another session of the same instance.
pub(crate) fn is_lock(event: &EventRow) -> bool {
    let classes = ["Application", "Concurrency"];
    let is_hot = ["buffer busy waits", "read by other session"].contains(&event.name.as_str());
    is_hot || classes.contains(&event.class.as_str()) || event.name.starts_with("enq:")
}

/// A wait for the database writers.
pub(crate) fn is_writer(event: &EventRow) -> bool {
    ["free buffer waits", "write complete waits"].contains(&event.name.as_str())
}

/// A wait for a read.
pub(crate) fn is_read(event: &EventRow) -> bool {
    event.class == "User I/O" && !is_lock(event) && !is_log(event)
}
