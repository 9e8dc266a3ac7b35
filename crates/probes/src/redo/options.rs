//! The probe's own options, in our words and in oratcptest's.

use assay_run::engine::EngineError;
use assay_run::probe::{ProbeOption, Request};
use std::ops::RangeInclusive;
use std::time::Duration;

pub(super) const PORT: ProbeOption = ProbeOption::new("port", &[], "N", "5555", "Port of the server");
pub(super) const MODE: ProbeOption = ProbeOption::new(
    "mode",
    &[],
    "MODE",
    "sync",
    "sync: each message waits for its acknowledgement; async: messages are streamed",
);
pub(super) const LENGTH: ProbeOption = ProbeOption::new("length", &[], "SIZE", "1m", "Payload of a message");
pub(super) const INTERVAL: ProbeOption =
    ProbeOption::new("interval", &[], "DURATION", "2s", "Time of a row of the report, whole seconds");
pub(super) const WRITE: ProbeOption = ProbeOption::new(
    "write",
    &[],
    "",
    "",
    "The standby writes each message to disk: direct-dsync, or dsync where direct I/O is refused",
);
pub(super) const WRITE_MODE: ProbeOption = ProbeOption::new(
    "write-mode",
    &["write_mode"],
    "MODE",
    "",
    "How it writes: none, pagecache, fdatasync, dsync, direct-dsync, apply:MICROSECONDS; all: each of them for a \
     quarter of the time",
);
pub(super) const CONNECTIONS: ProbeOption = ProbeOption::new(
    "connections",
    &["num_conn", "num-conn", "conns", "num_connections", "num-connections"],
    "N",
    "1",
    "Connections at once, each with a log of its own",
);
pub(super) const SOCKBUF: ProbeOption =
    ProbeOption::new("sockbuf", &["sndbuf", "socket-buffer"], "SIZE", "", "Socket send buffer [default: the system's]");
pub(super) const CONTENT: ProbeOption = ProbeOption::new(
    "content",
    &["rtype", "payload"],
    "WHAT",
    "random",
    "Payload: random, zeros, mix:R (compressible to 1/R), file:PATH (real redo or WAL, only read)",
);
pub(super) const COMPRESS: ProbeOption = ProbeOption::new(
    "compress",
    &["compression"],
    "HOW",
    "none",
    "Compress payloads: none, lz4, zstd:LEVEL; the standby unpacks them before it writes",
);
pub(super) const COMMIT_RATE: ProbeOption = ProbeOption::new(
    "commit-rate",
    &[],
    "N",
    "",
    "Commits per second by schedule; those that come while a message is under way share the next one",
);
pub(super) const COMMIT_SIZE: ProbeOption =
    ProbeOption::new("commit-size", &[], "SIZE", "", "Redo of one such commit; as many as fit into 1m share a message");
pub(super) const REDO_RATE: ProbeOption = ProbeOption::new(
    "redo-rate",
    &["redo-size"],
    "SIZE",
    "",
    "Redo of your database in a second (AWR: redo size): whether this way carries it",
);
pub(super) const REDO_WRITES: ProbeOption = ProbeOption::new(
    "redo-writes",
    &[],
    "N",
    "",
    "Its log writes in a second (AWR: redo writes); their average is the message",
);
pub(super) const DELAY: ProbeOption =
    ProbeOption::new("delay", &[], "MS", "", "Pause after each message, in milliseconds or with a unit");
pub(super) const FREQ: ProbeOption = ProbeOption::new("freq", &[], "NO", "", "");
pub(super) const TIMEOUT: ProbeOption =
    ProbeOption::new("timeout", &[], "DURATION", "10s", "Silence after which the other end is given up");
pub(super) const INFLIGHT: ProbeOption =
    ProbeOption::new("inflight", &[], "N", "1", "Messages under way at once in SYNC mode; one LGWR has one");
pub(super) const RATE: ProbeOption = ProbeOption::new(
    "rate",
    &[],
    "N",
    "",
    "Messages per second by schedule; latency also counts from the instant each was due",
);
pub(super) const STANDBY: ProbeOption =
    ProbeOption::new("standby", &[], "HOST[:PORT],...", "", "More standbys: every message goes to all of them");
pub(super) const ACK: ProbeOption =
    ProbeOption::new("ack", &[], "RULE", "all", "Acknowledgements a commit waits for: all, \"any K\", \"first K\"");
pub(super) const MAX_LAG: ProbeOption =
    ProbeOption::new("max-lag", &[], "SIZE", "64m", "A standby that is so far behind counts as disconnected");
pub(super) const GRACE: ProbeOption = ProbeOption::new(
    "grace",
    &[],
    "DURATION",
    "0s",
    "Once a standby has acknowledged, wait so long for the others, then go on without them; 0: for --timeout",
);
pub(super) const LOCAL: ProbeOption = ProbeOption::new(
    "local",
    &[],
    "HOW",
    "none",
    "The primary's own log write: none, serial (PostgreSQL), parallel (Oracle)",
);
pub(super) const LOCAL_FILE: ProbeOption = ProbeOption::new(
    "local-file",
    &[],
    "PATH",
    ".",
    "A directory, or a new file that assay makes and removes, for --local",
);
pub(super) const ALONE: ProbeOption = ProbeOption::new(
    "alone",
    &["local-write-baseline", "baseline"],
    "DURATION",
    "",
    "First measure the standby's disk alone and the network alone for so long each",
);
pub(super) const LOG_BLOCK: ProbeOption =
    ProbeOption::new("logblock", &["log-block"], "SIZE", "4k", "Block of the standby's log: 512 or 4k");
pub(super) const LOG_SIZE: ProbeOption = ProbeOption::new(
    "log-size",
    &[],
    "SIZE",
    "1g",
    "Size of the standby's log, written with zeroes first; all connections together",
);
pub(super) const SECRET_FILE: ProbeOption =
    ProbeOption::new("secret-file", &[], "FILE", "", "Secret that client and server must share");
pub(super) const BIND: ProbeOption =
    ProbeOption::new("bind", &[], "ADDR", "127.0.0.1", "Server: address to listen on; 0.0.0.0 is all of this host");
pub(super) const ALLOW_WRITE: ProbeOption = ProbeOption::new(
    "allow-write",
    &["file"],
    "DIR",
    "",
    "Server: where clients may have logs written; without it none is",
);
pub(super) const MAX_LOG: ProbeOption =
    ProbeOption::new("max-log", &[], "SIZE", "4g", "Server: largest log of a client");
pub(super) const MAX_TIME: ProbeOption =
    ProbeOption::new("max-time", &[], "DURATION", "24h", "Server: longest test of a client");
pub(super) const CLIENTS: ProbeOption = ProbeOption::new("clients", &[], "N", "16", "Server: connections at once");
/// Of tests alone: a slower disk than there is.
pub(super) const SLOW_WRITE: ProbeOption = ProbeOption::new("slow-write", &[], "DURATION", "", "");
/// Of tests alone: `RATE[,BURST]`, a volume that does so many writes a second once the burst is used up.
pub(super) const LIMIT_WRITES: ProbeOption = ProbeOption::new("limit-writes", &[], "RATE", "", "");
/// Of tests alone: a slower local log than there is.
pub(super) const SLOW_LOCAL: ProbeOption = ProbeOption::new("slow-local", &[], "DURATION", "", "");

/// All of them.
pub(super) const OPTIONS: &[ProbeOption] = &[
    PORT,
    MODE,
    LENGTH,
    INTERVAL,
    WRITE,
    WRITE_MODE,
    CONNECTIONS,
    SOCKBUF,
    CONTENT,
    COMPRESS,
    DELAY,
    INFLIGHT,
    RATE,
    COMMIT_RATE,
    COMMIT_SIZE,
    REDO_RATE,
    REDO_WRITES,
    STANDBY,
    ACK,
    MAX_LAG,
    GRACE,
    LOCAL,
    LOCAL_FILE,
    ALONE,
    LOG_BLOCK,
    LOG_SIZE,
    TIMEOUT,
    FREQ,
    SECRET_FILE,
    BIND,
    ALLOW_WRITE,
    MAX_LOG,
    MAX_TIME,
    CLIENTS,
    SLOW_WRITE,
    LIMIT_WRITES,
    SLOW_LOCAL,
];

/// A whole number; 0 where the option is off.
pub(super) fn number(request: &Request, option: &ProbeOption, range: RangeInclusive<u64>) -> Result<u64, EngineError> {
    Ok(request.number(option, range)?.unwrap_or_default())
}

/// Bytes; 0 where the option is off.
pub(super) fn size_bytes(request: &Request, option: &ProbeOption) -> Result<u64, EngineError> {
    Ok(request.size_bytes(option, 0..=u64::MAX)?.unwrap_or_default())
}

/// A time; none where the option is off.
pub(super) fn duration(request: &Request, option: &ProbeOption) -> Result<Duration, EngineError> {
    let any = Duration::ZERO..=Duration::MAX;
    Ok(request.duration(option, any)?.unwrap_or_default())
}
