//! The probe's own options, in our words and in oratcptest's.

use assay_run::probe::ProbeOption;

const fn option(
    name: &'static str,
    also: &'static [&'static str],
    value: &'static str,
    default: &'static str,
    help: &'static str,
) -> ProbeOption {
    ProbeOption {
        name,
        also,
        value,
        default,
        help,
    }
}

pub(super) const PORT: ProbeOption = option("port", &[], "N", "5555", "Port of the server");
pub(super) const MODE: ProbeOption = option(
    "mode",
    &[],
    "MODE",
    "sync",
    "sync: each message waits for its acknowledgement; async: messages are streamed",
);
pub(super) const LENGTH: ProbeOption = option("length", &[], "SIZE", "1m", "Payload of a message");
pub(super) const INTERVAL: ProbeOption = option(
    "interval",
    &[],
    "DURATION",
    "2s",
    "Time of a row of the report, whole seconds",
);
pub(super) const WRITE: ProbeOption = option(
    "write",
    &[],
    "",
    "",
    "The standby writes each message to disk: direct-dsync, or dsync where direct I/O is refused",
);
pub(super) const WRITE_MODE: ProbeOption = option(
    "write-mode",
    &["write_mode"],
    "MODE",
    "",
    "How it writes: none, pagecache, fdatasync, dsync, direct-dsync, apply:MICROSECONDS",
);
pub(super) const CONNECTIONS: ProbeOption = option(
    "connections",
    &[
        "num_conn",
        "num-conn",
        "conns",
        "num_connections",
        "num-connections",
    ],
    "N",
    "1",
    "Connections at once, each with a log of its own",
);
pub(super) const SOCKBUF: ProbeOption = option(
    "sockbuf",
    &["sndbuf", "socket-buffer"],
    "SIZE",
    "",
    "Socket send buffer [default: the system's]",
);
pub(super) const CONTENT: ProbeOption = option(
    "content",
    &["rtype", "payload"],
    "WHAT",
    "random",
    "Payload: random, zeros",
);
pub(super) const DELAY: ProbeOption = option(
    "delay",
    &[],
    "MS",
    "",
    "Pause after each message, in milliseconds or with a unit",
);
pub(super) const FREQ: ProbeOption = option("freq", &[], "NO", "", "");
pub(super) const TIMEOUT: ProbeOption = option(
    "timeout",
    &[],
    "DURATION",
    "10s",
    "Silence after which the other end is given up",
);
pub(super) const INFLIGHT: ProbeOption = option(
    "inflight",
    &[],
    "N",
    "1",
    "Messages under way at once in SYNC mode; one LGWR has one",
);
pub(super) const RATE: ProbeOption = option(
    "rate",
    &[],
    "N",
    "",
    "Messages per second by schedule; latency also counts from the instant each was due",
);
pub(super) const STANDBY: ProbeOption = option(
    "standby",
    &[],
    "HOST[:PORT],...",
    "",
    "More standbys: every message goes to all of them",
);
pub(super) const ACK: ProbeOption = option(
    "ack",
    &[],
    "RULE",
    "all",
    "Acknowledgements a commit waits for: all, \"any K\", \"first K\"",
);
pub(super) const MAX_LAG: ProbeOption = option(
    "max-lag",
    &[],
    "SIZE",
    "64m",
    "A standby that is so far behind counts as disconnected",
);
pub(super) const LOCAL: ProbeOption = option(
    "local",
    &[],
    "HOW",
    "none",
    "The primary's own log write: none, serial (PostgreSQL), parallel (Oracle)",
);
pub(super) const LOCAL_FILE: ProbeOption = option(
    "local-file",
    &[],
    "PATH",
    ".",
    "A directory, or a new file that assay makes and removes, for --local",
);
pub(super) const ALONE: ProbeOption = option(
    "alone",
    &["local-write-baseline", "baseline"],
    "DURATION",
    "",
    "First measure the standby's disk alone and the network alone for so long each",
);
pub(super) const LOG_BLOCK: ProbeOption = option(
    "logblock",
    &["log-block"],
    "SIZE",
    "4k",
    "Block of the standby's log: 512 or 4k",
);
pub(super) const LOG_SIZE: ProbeOption = option(
    "log-size",
    &[],
    "SIZE",
    "1g",
    "Size of the standby's log, written with zeroes first; all connections together",
);
pub(super) const SECRET_FILE: ProbeOption = option(
    "secret-file",
    &[],
    "FILE",
    "",
    "Secret that client and server must share",
);
pub(super) const BIND: ProbeOption = option(
    "bind",
    &[],
    "ADDR",
    "127.0.0.1",
    "Server: address to listen on; 0.0.0.0 is all of this host",
);
pub(super) const ALLOW_WRITE: ProbeOption = option(
    "allow-write",
    &["file"],
    "DIR",
    "",
    "Server: where clients may have logs written; without it none is",
);
pub(super) const MAX_LOG: ProbeOption = option(
    "max-log",
    &[],
    "SIZE",
    "4g",
    "Server: largest log of a client",
);
pub(super) const MAX_TIME: ProbeOption = option(
    "max-time",
    &[],
    "DURATION",
    "24h",
    "Server: longest test of a client",
);
pub(super) const CLIENTS: ProbeOption =
    option("clients", &[], "N", "16", "Server: connections at once");
/// Of tests alone: a slower disk than there is.
pub(super) const SLOW_WRITE: ProbeOption = option("slow-write", &[], "DURATION", "", "");
/// Of tests alone: `RATE[,BURST]`, a volume that does so many writes a second once the burst is used up.
pub(super) const LIMIT_WRITES: ProbeOption = option("limit-writes", &[], "RATE", "", "");
/// Of tests alone: a slower local log than there is.
pub(super) const SLOW_LOCAL: ProbeOption = option("slow-local", &[], "DURATION", "", "");

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
    DELAY,
    INFLIGHT,
    RATE,
    STANDBY,
    ACK,
    MAX_LAG,
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
