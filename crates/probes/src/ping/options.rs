//! What may be asked of the latency probe; where ping has a word for it, in ping's words.

use crate::dial::Family;
use crate::peer::asked::{self, PATIENCE, V4, V6};
use assay_run::engine::EngineError;
use assay_run::probe::{ProbeOption, Request};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The port of our server.
pub(super) const PORT: u16 = 5202;
/// Requests per second of the echo, of ICMP by who may send raw packets, and of ICMP by others.
pub(super) const ECHO_RATE: f64 = 1000.0;
pub(super) const RAW_RATE: f64 = 100.0;
pub(super) const PLAIN_RATE: f64 = 1.0;
/// What an echo carries at most each way, so that it fits a datagram.
pub(super) const PAYLOAD_MOST: u64 = 65_000;

const METHOD: ProbeOption = ProbeOption::new(
    "method",
    &[],
    "HOW",
    "auto",
    "icmp, tcp-connect (any open port), tcp-echo or udp-echo (`assay ping server` there); auto: icmp where it is allowed, then the echo, then tcp-connect",
);
const PORT_OPTION: ProbeOption = ProbeOption::new("port", &["p"], "N", "5202", "Port of the echo and of tcp-connect");
const COUNT: ProbeOption = ProbeOption::new("count", &["c"], "N", "", "End after so many requests instead of --time");
const RATE: ProbeOption = ProbeOption::new(
    "rate",
    &[],
    "N",
    "",
    "Requests per second, on schedule; echo: 1000, icmp: 100 for root and else 1, tcp-connect: 100",
);
const INTERVAL: ProbeOption = ProbeOption::new("interval", &["i"], "DURATION", "", "The same as --rate 1/DURATION");
const FLOOD: ProbeOption =
    ProbeOption::new("flood-one", &[], "", "", "The next request goes when the reply is there, without a schedule");
const SIZE: ProbeOption = ProbeOption::new("size", &["s"], "SIZE", "56", "Bytes of payload of a request");
const REPLY: ProbeOption =
    ProbeOption::new("reply", &[], "SIZE", "", "Bytes of payload of an echo's reply [default: as the request]");
const TIMEOUT: ProbeOption = ProbeOption::new("timeout", &["W"], "DURATION", "1s", "A reply that takes longer is lost");
const LOAD: ProbeOption = ProbeOption::new(
    "load",
    &[],
    "PORT",
    "",
    "The same once more beside a TCP stream to this port, where `assay net server` or `iperf3 -s` listens (5201)",
);
const BIND: ProbeOption = ProbeOption::new(
    "bind",
    &["I"],
    "ADDR",
    "",
    "Local address; a server without it is reached from this host alone (0.0.0.0 or :: for all)",
);
const SECRET: ProbeOption = ProbeOption::new("secret-file", &[], "FILE", "", "A secret that both ends of an echo know");
const WORK: ProbeOption =
    ProbeOption::new("reply-after", &[], "DURATION", "", "A server sleeps so long before each reply");

/// All of them, in the order of help.
pub(super) const OPTIONS: &[ProbeOption] = &[
    METHOD,
    PORT_OPTION,
    COUNT,
    RATE,
    INTERVAL,
    FLOOD,
    SIZE,
    REPLY,
    TIMEOUT,
    LOAD,
    V4,
    V6,
    BIND,
    SECRET,
    PATIENCE,
    WORK,
];

/// How a round trip is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Icmp,
    TcpConnect,
    TcpEcho,
    UdpEcho,
}

/// What was asked.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) method: Option<Method>,
    pub(super) count: Option<u64>,
    /// Requests per second; nothing: the method's usual.
    pub(super) rate: Option<f64>,
    pub(super) is_flood: bool,
    pub(super) size: u64,
    pub(super) reply: u64,
    pub(super) timeout: Duration,
    /// The port of a stream beside which everything is measured once more.
    pub(super) load: Option<u16>,
    pub(super) family: Family,
    pub(super) bind: Option<IpAddr>,
    pub(super) secret: Option<PathBuf>,
    pub(super) patience: Duration,
    /// Of a server.
    pub(super) reply_after: Duration,
    pub(super) time: Duration,
}

/// How, where it is said.
fn method(request: &Request) -> Result<Option<Method>, EngineError> {
    const METHODS: &str = "auto, icmp, tcp-connect, tcp-echo or udp-echo";
    Ok(match request.option(&METHOD) {
        "auto" => None,
        "icmp" => Some(Method::Icmp),
        "tcp-connect" => Some(Method::TcpConnect),
        "tcp-echo" => Some(Method::TcpEcho),
        "udp-echo" => Some(Method::UdpEcho),
        other => return Err(METHOD.refused(other, METHODS)),
    })
}

impl Ask {
    pub(super) fn of(request: &Request) -> Result<Self, EngineError> {
        let least = Duration::from_micros(10);
        let interval = request.duration(&INTERVAL, least..=Duration::from_secs(3600))?;
        let rate = request.number(&RATE, 1..=100_000)?.map(|rate| rate as f64);
        let is_flood = request.is_on(&FLOOD);
        if usize::from(rate.is_some()) + usize::from(interval.is_some()) + usize::from(is_flood) > 1 {
            return Err(asked::exclusive("--rate, --interval and --flood-one"));
        }
        let (count, load) = (request.number(&COUNT, 1..=1 << 40)?, request.number(&LOAD, 1..=65_535)?);
        if count.is_some() && load.is_some() {
            // A stream is asked for a time.
            return Err(asked::exclusive("--count and --load"));
        }
        let (short, hour) = (Duration::from_millis(1), Duration::from_secs(3600));
        let size = request.size_bytes(&SIZE, 0..=PAYLOAD_MOST)?.unwrap_or(0);
        Ok(Self {
            host: asked::host(request)?,
            port: request.number(&PORT_OPTION, 1..=65_535)?.map_or(PORT, |port| port as u16),
            method: method(request)?,
            count,
            load: load.map(|port| port as u16),
            rate: rate.or(interval.map(|interval| 1.0 / interval.as_secs_f64())),
            is_flood,
            size,
            reply: request.size_bytes(&REPLY, 0..=PAYLOAD_MOST)?.unwrap_or(size),
            timeout: request.duration(&TIMEOUT, short..=hour)?.unwrap_or(Duration::from_secs(1)),
            family: asked::family(request)?,
            bind: asked::local_address(request, &BIND)?,
            secret: request.said(&SECRET).map(PathBuf::from),
            patience: request.duration(&PATIENCE, short..=hour)?.unwrap_or(Duration::from_secs(10)),
            reply_after: request.duration(&WORK, Duration::ZERO..=hour)?.unwrap_or_default(),
            time: request.time,
        })
    }
}
