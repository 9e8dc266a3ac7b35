//! Wait classes of PostgreSQL's wait events.

use assay_measure::snapshot::WaitClass;

/// Wait events to report under the names that the views use for them: event = wait events, in every spelling.
pub(super) const WAITS: &str = "\
    db file sequential read = IO:DataFileRead, IO:AioIoCompletion, IO:AioIoUringExecution, IO:AioIoUringSubmit; \
    read by other session = IPC:BufferIO, IPC:BufferIo, LWLock:BufferIO; \
    buffer busy waits = LWLock:BufferContent, BufferPin:BufferPin; \
    log file sync = IO:WALSync, IO:WalSync, IO:WALWrite, IO:WalWrite, LWLock:WALWrite; \
    log buffer space = LWLock:WALBufMapping; \
    log file switch completion = IO:WALInitWrite, IO:WalInitWrite, IO:WALInitSync, IO:WalInitSync; \
    backend writes = IO:DataFileWrite; \
    data file extend = IO:DataFileExtend; \
    data file sync = IO:DataFileSync, IO:DataFileImmediateSync; \
    enq: TX - row lock contention = Lock:transactionid, Lock:tuple";

/// The class of a session's wait. Version 17 respelt event names (`WALSync` became `WalSync`), so case is ignored.
pub(super) fn class(kind: &str, event: &str) -> WaitClass {
    let event = event.to_ascii_lowercase();
    let begins = |words: &[&str]| words.iter().any(|word| event.starts_with(word));
    match kind {
        "IO" if begins(&["walinit"]) => WaitClass::Configuration,
        "IO" if begins(&["datafilewrite"]) => WaitClass::Configuration,
        "IO" if begins(&["wal"]) => WaitClass::Commit,
        "IO" => WaitClass::UserIo,
        "IPC" if event == "bufferio" => WaitClass::UserIo,
        "LWLock" if event == "bufferio" => WaitClass::UserIo,
        "LWLock" if event == "walwrite" => WaitClass::Commit,
        "LWLock" if event == "walbufmapping" => WaitClass::Configuration,
        "LWLock" | "BufferPin" => WaitClass::Concurrency,
        "IPC" if event == "syncrep" => WaitClass::Commit,
        "IPC" if begins(&["checkpoint"]) => WaitClass::Configuration,
        "Lock" => WaitClass::Application,
        // During one of our operations the server waits for the client: the time is spent between the two.
        "Client" => WaitClass::Network,
        "Activity" => WaitClass::Idle,
        "Timeout" if event == "pgsleep" => WaitClass::Idle,
        _ => WaitClass::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_the_published_mapping_in_old_and_new_spelling() {
        for (kind, event, expected) in [
            ("IO", "DataFileRead", WaitClass::UserIo),
            ("IO", "DataFilePrefetch", WaitClass::UserIo),
            ("IO", "BufFileWrite", WaitClass::UserIo),
            ("IO", "AioIoCompletion", WaitClass::UserIo),
            ("IPC", "BufferIO", WaitClass::UserIo),
            ("IPC", "BufferIo", WaitClass::UserIo),
            ("LWLock", "BufferIO", WaitClass::UserIo),
            ("IO", "WALSync", WaitClass::Commit),
            ("IO", "WalSync", WaitClass::Commit),
            ("IO", "WALWrite", WaitClass::Commit),
            ("LWLock", "WALWrite", WaitClass::Commit),
            ("IPC", "SyncRep", WaitClass::Commit),
            ("LWLock", "BufferContent", WaitClass::Concurrency),
            ("LWLock", "WALInsert", WaitClass::Concurrency),
            ("BufferPin", "BufferPin", WaitClass::Concurrency),
            ("Lock", "transactionid", WaitClass::Application),
            ("Lock", "tuple", WaitClass::Application),
            ("LWLock", "WALBufMapping", WaitClass::Configuration),
            ("IO", "WALInitWrite", WaitClass::Configuration),
            ("IO", "WalInitSync", WaitClass::Configuration),
            ("IPC", "CheckpointDone", WaitClass::Configuration),
            ("IO", "DataFileWrite", WaitClass::Configuration),
            ("Client", "ClientWrite", WaitClass::Network),
            ("Client", "ClientRead", WaitClass::Network),
            ("Activity", "CheckpointerMain", WaitClass::Idle),
            ("Timeout", "PgSleep", WaitClass::Idle),
            ("Timeout", "SpinDelay", WaitClass::Other),
            ("Extension", "Extension", WaitClass::Other),
            ("IPC", "ProcarrayGroupUpdate", WaitClass::Other),
        ] {
            assert_eq!(class(kind, event), expected, "{kind}:{event}");
        }
    }
}
