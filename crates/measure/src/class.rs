//! Classes of waits and kinds of operations.

use serde::{Deserialize, Serialize};

/// Wait classes as in `V$EVENT_NAME`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitClass {
    /// Reads a session waits for.
    UserIo,
    /// Reads and writes of background threads.
    SystemIo,
    /// Log sync at commit.
    Commit,
    /// Free buffers, log space, log switches.
    Configuration,
    /// Latches, busy buffers.
    Concurrency,
    /// Row locks.
    Application,
    /// Sending to and receiving from the peer.
    Network,
    /// Think time, timers; outside DB time.
    Idle,
    /// The rest.
    Other,
}

/// A range of keys was read: a kind of operation of the SLOB workload, as its readings, identities and sections name it.
pub const SELECT: &str = "select";
/// A range of keys was changed.
pub const UPDATE: &str = "update";
/// The scan table was read end to end.
pub const SCAN: &str = "scan";
