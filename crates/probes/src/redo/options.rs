//! The probe's own options, in our words and in oratcptest's.

use assay_run::engine::EngineError;
use assay_run::probe::{ProbeOption, Request};
use assay_run::probe_options;
use std::ops::RangeInclusive;
use std::time::Duration;

probe_options! {
    /// All of them.
    pub(super) OPTIONS:
    PORT: "port" ["N"] = "5555", "Port of the server";
    MODE: "mode" ["MODE"] = "sync", "sync: each message waits for its acknowledgement; async: messages are streamed";
    LENGTH: "length" ["SIZE"] = "1m", "Payload of a message";
    INTERVAL: "interval" ["DURATION"] = "2s", "Time of a row of the report, whole seconds";
    WRITE: "write", "The standby writes each message to disk: direct-dsync, or dsync where direct I/O is refused";
    WRITE_MODE: "write-mode" | "write_mode" ["MODE"],
        "How the standby writes: none, pagecache, fdatasync, dsync, direct-dsync, apply:MICROSECONDS; all: each of them for \
          a quarter of the time";
    CONNECTIONS: "connections" | "num_conn" | "num-conn" | "conns" | "num_connections" | "num-connections" ["N"] = "1",
        "Parallel connections, each with its own log";
    SOCKBUF: "sockbuf" | "sndbuf" | "socket-buffer" ["SIZE"], "Socket send buffer [default: the system's]";
    CONTENT: "content" | "rtype" | "payload" ["WHAT"] = "random",
        "Payload: random, zeros, mix:R (compressible to 1/R), file:PATH (real redo or WAL, only read)";
    COMPRESS: "compress" | "compression" ["HOW"] = "none",
        "Compress payloads: none, lz4, zstd:LEVEL; the standby unpacks them before it writes";
    DELAY: "delay" ["MS"], "Pause after each message, in milliseconds or with a unit";
    INFLIGHT: "inflight" ["N"] = "1", "Messages in flight in SYNC mode; one LGWR has one";
    RATE: "rate" ["N"], "Messages per second by schedule; latency also counts from the instant each was due";
    COMMIT_RATE: "commit-rate" ["N"],
        "Commits per second by schedule; commits due during a message share the next one";
    COMMIT_SIZE: "commit-size" ["SIZE"], "Redo bytes of one such commit; as many as fit into 1m share a message";
    REDO_RATE: "redo-rate" | "redo-size" ["SIZE"],
        "Redo bytes/s of your database (AWR redo size); tests whether this link can carry them";
    REDO_WRITES: "redo-writes" ["N"], "Log writes/s (AWR redo writes); redo rate divided by this sets the message size";
    STANDBY: "standby" ["HOST[:PORT],..."], "More standbys; every message goes to all of them";
    ACK: "ack" ["RULE"] = "all", "Acknowledgements that a commit waits for: all, \"any K\", \"first K\"";
    MAX_LAG: "max-lag" ["SIZE"] = "64m", "A standby this far behind counts as disconnected";
    GRACE: "grace" ["DURATION"] = "0s",
        "After the first acknowledgement, wait this long for the other standbys, then continue without them; 0: for --timeout";
    LOCAL: "local" ["HOW"] = "none", "The primary's own log write: none, serial (PostgreSQL), parallel (Oracle)";
    LOCAL_FILE: "local-file" ["PATH"] = ".", "A directory, or a new file that assay makes and removes, for --local";
    ALONE: "alone" | "local-write-baseline" | "baseline" ["DURATION"],
        "First measure the standby's disk alone and the network alone, each for this long";
    LOG_BLOCK: "logblock" | "log-block" ["SIZE"] = "4k", "Block of the standby's log: 512 or 4k";
    LOG_SIZE: "log-size" ["SIZE"] = "1g",
        "Size of the standby's log for all connections together; assay first writes it with zeroes";
    TIMEOUT: "timeout" ["DURATION"] = "10s", "Silence after which assay gives the other end up";
    FREQ: "freq" ["NO"], "";
    SECRET_FILE: "secret-file" ["FILE"], "File with the secret that client and server share";
    BIND: "bind" ["ADDR"] = "127.0.0.1", "Server: address to listen on; 0.0.0.0 for all addresses of this host";
    ALLOW_WRITE: "allow-write" | "file" ["DIR"], "Server: directory in which clients may have logs written; without it the \
                                                   server writes none";
    MAX_LOG: "max-log" ["SIZE"] = "4g", "Server: largest log of a client";
    MAX_TIME: "max-time" ["DURATION"] = "24h", "Server: longest test of a client";
    CLIENTS: "clients" ["N"] = "16", "Server: most parallel connections";
    /// Of tests alone: a slower disk than there is.
    SLOW_WRITE: "slow-write" ["DURATION"], "";
    /// Of tests alone: `RATE[,BURST]`, a volume that does so many writes a second once the burst is used up.
    LIMIT_WRITES: "limit-writes" ["RATE"], "";
    /// Of tests alone: a slower local log than there is.
    SLOW_LOCAL: "slow-local" ["DURATION"], "";
}

/// Messages or commits in a second.
pub(super) const RATES: RangeInclusive<f64> = 0.001..=1e7;

/// Bytes; 0 where the option is off.
pub(super) fn size_bytes(request: &Request, option: &ProbeOption) -> Result<u64, EngineError> {
    Ok(request.size_bytes(option, 0..=u64::MAX)?.unwrap_or_default())
}

/// A time; none where the option is off.
pub(super) fn duration(request: &Request, option: &ProbeOption) -> Result<Duration, EngineError> {
    let any = Duration::ZERO..=Duration::MAX;
    Ok(request.duration(option, any)?.unwrap_or_default())
}
