//! How waits and operations are told apart.

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

/// What kind of work an operation was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpKind {
    /// A range of keys was read.
    Select,
    /// A range of keys was changed.
    Update,
    /// The scan table was read end to end.
    Scan,
}
