//! Names of wait events and their classes, as in `V$EVENT_NAME`: the source for completing cut names.

/// Event and wait class.
const EVENTS: &[(&str, &str)] = &[
    ("db file sequential read", "User I/O"),
    ("db file scattered read", "User I/O"),
    ("db file parallel read", "User I/O"),
    ("db file single write", "User I/O"),
    ("direct path read", "User I/O"),
    ("direct path read temp", "User I/O"),
    ("direct path write", "User I/O"),
    ("direct path write temp", "User I/O"),
    ("direct path sync", "User I/O"),
    ("read by other session", "User I/O"),
    ("local write wait", "User I/O"),
    ("Disk file operations I/O", "User I/O"),
    ("cell single block physical read", "User I/O"),
    ("cell single block physical read: flash cache", "User I/O"),
    ("cell multiblock physical read", "User I/O"),
    ("cell list of blocks physical read", "User I/O"),
    ("cell smart table scan", "User I/O"),
    ("cell smart index scan", "User I/O"),
    ("db file parallel write", "System I/O"),
    ("db file async I/O submit", "System I/O"),
    ("log file parallel write", "System I/O"),
    ("log file single write", "System I/O"),
    ("log file sequential read", "System I/O"),
    ("Log archive I/O", "System I/O"),
    ("control file sequential read", "System I/O"),
    ("control file parallel write", "System I/O"),
    ("control file single write", "System I/O"),
    ("ASM background timer", "Idle"),
    ("log file sync", "Commit"),
    ("free buffer waits", "Configuration"),
    ("write complete waits", "Configuration"),
    ("log buffer space", "Configuration"),
    ("log file switch completion", "Configuration"),
    ("log file switch (checkpoint incomplete)", "Configuration"),
    ("log file switch (archiving needed)", "Configuration"),
    ("log file switch (private strand flush incomplete)", "Configuration"),
    ("checkpoint completed", "Configuration"),
    ("enq: HW - contention", "Configuration"),
    ("enq: SQ - contention", "Configuration"),
    ("enq: ST - contention", "Configuration"),
    ("enq: TX - allocate ITL entry", "Configuration"),
    ("undo segment extension", "Configuration"),
    ("buffer busy waits", "Concurrency"),
    ("gc buffer busy acquire", "Cluster"),
    ("gc buffer busy release", "Cluster"),
    ("gc current block 2-way", "Cluster"),
    ("gc cr block 2-way", "Cluster"),
    ("gc cr grant 2-way", "Cluster"),
    ("gc current grant 2-way", "Cluster"),
    ("latch: cache buffers chains", "Concurrency"),
    ("latch: shared pool", "Concurrency"),
    ("latch: row cache objects", "Concurrency"),
    ("latch: In memory undo latch", "Concurrency"),
    ("library cache lock", "Concurrency"),
    ("library cache pin", "Concurrency"),
    ("library cache: mutex X", "Concurrency"),
    ("cursor: pin S", "Concurrency"),
    ("cursor: pin S wait on X", "Concurrency"),
    ("row cache lock", "Concurrency"),
    ("enq: TX - index contention", "Concurrency"),
    ("resmgr:cpu quantum", "Scheduler"),
    ("enq: TX - row lock contention", "Application"),
    ("enq: TM - contention", "Application"),
    ("enq: KO - fast object checkpoint", "Application"),
    ("SQL*Net break/reset to client", "Application"),
    ("SQL*Net message to client", "Network"),
    ("SQL*Net more data to client", "Network"),
    ("SQL*Net more data from client", "Network"),
    ("SQL*Net message from client", "Idle"),
    ("rdbms ipc message", "Idle"),
    ("PL/SQL lock timer", "Idle"),
    ("jobq slave wait", "Idle"),
    ("pmon timer", "Idle"),
    ("smon timer", "Idle"),
    ("wait for unread message on broadcast channel", "Idle"),
    ("Streams AQ: waiting for messages in the queue", "Idle"),
    ("Streams AQ: waiting for time management or cleanup tasks", "Idle"),
    ("Streams AQ: qmn slave idle wait", "Idle"),
    ("Streams AQ: qmn coordinator idle wait", "Idle"),
    ("Streams AQ: qmn coordinator waiting for slave to start", "Other"),
    ("Space Manager: slave idle wait", "Idle"),
    ("Data Guard: Gap Manager", "Idle"),
    ("Data Guard: Timer", "Idle"),
    ("latch: redo allocation", "Other"),
    ("latch: redo copy", "Other"),
    ("latch: redo writing", "Other"),
    ("latch: cache buffers lru chain", "Other"),
    ("latch: checkpoint queue latch", "Other"),
    ("latch: object queue header operation", "Other"),
    ("latch free", "Other"),
    ("LGWR wait for redo copy", "Other"),
    ("LGWR worker group idle", "Idle"),
    ("LGWR any worker group", "Other"),
    ("LGWR all worker groups", "Other"),
    ("target log write size", "Other"),
    ("oracle thread bootstrap", "Other"),
    ("ADR block file read", "Other"),
    ("ADR block file write", "Other"),
    ("rdbms ipc reply", "Other"),
    ("reliable message", "Other"),
    ("buffer exterminate", "Other"),
    ("enq: CF - contention", "Other"),
];

/// Wait classes, as `V$EVENT_NAME` has them.
const CLASSES: [&str; 13] = [
    "Administrative",
    "Application",
    "Cluster",
    "Commit",
    "Concurrency",
    "Configuration",
    "Idle",
    "Network",
    "Other",
    "Queueing",
    "Scheduler",
    "System I/O",
    "User I/O",
];

/// The whole name of a class that a narrow column cut.
pub(super) fn class(printed: &str) -> &str {
    const CUT_FROM: usize = 6;
    let is_it = |class: &&&str| class.starts_with(printed) && printed.len() >= CUT_FROM;
    CLASSES.iter().find(is_it).copied().unwrap_or(printed)
}

/// Columns of reports cut names at this many characters and more.
pub(super) const CUT_FROM: usize = 24;

/// The full name of an event that may have been cut, and its class if known. A cut name is completed only where one
/// event alone begins so.
pub(super) fn event(printed: &str) -> (&str, &'static str) {
    if let Some((name, class)) = EVENTS.iter().find(|(name, _)| *name == printed) {
        return (name, class);
    }
    let is_cut = printed.len() >= CUT_FROM;
    let longer: Vec<_> = EVENTS.iter().filter(|(name, _)| name.starts_with(printed)).collect();
    let shortest = longer.iter().min_by_key(|(name, _)| name.len());
    match shortest {
        // Kinds of one event (`...: flash cache`) share their name up to the colon.
        Some((name, class)) if is_cut && longer.iter().all(|(other, _)| is_kind_of(other, name)) => (name, class),
        _ => (printed, ""),
    }
}

fn is_kind_of(other: &str, name: &str) -> bool {
    other.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

#[cfg(test)]
mod tests {
    use super::event;

    #[test]
    fn a_cut_class_is_completed() {
        assert_eq!(
            ["Schedule", "Concurre", "User I/O", "Commit", "x"].map(super::class),
            ["Scheduler", "Concurrency", "User I/O", "Commit", "x"]
        );
    }

    #[test]
    fn a_cut_name_is_completed_only_where_it_is_unique() {
        assert_eq!(event("log file switch (private s").0, "log file switch (private strand flush incomplete)");
        assert_eq!(event("Streams AQ: waiting for me").1, "Idle");
        // Three events begin so.
        assert_eq!(event("log file switch"), ("log file switch", ""));
        // Kinds of an event are the event.
        assert_eq!(event("cell single block physical read").0, "cell single block physical read");
        assert_eq!(event("cell single block physica").0, "cell single block physical read");
        // Other events begin so too, and none of them is a kind of another.
        assert_eq!(event("log file switch (").0, "log file switch (");
        assert_eq!(event("something else"), ("something else", ""));
    }
}
