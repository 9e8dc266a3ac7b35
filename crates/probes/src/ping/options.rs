//! What may be asked of the latency probe; where ping has a word for it, in ping's words.

use crate::dial::Family;
use crate::peer::asked::{self, PATIENCE};
use assay_run::engine::EngineError;
use assay_run::probe::Request;
use assay_run::probe_options;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Requests per second of the echo, of ICMP by who may send raw packets, and of ICMP by others.
pub(super) const ECHO_RATE: f64 = 1000.0;
pub(super) const RAW_RATE: f64 = 100.0;
pub(super) const PLAIN_RATE: f64 = 1.0;
/// What an echo carries at most each way, so that it fits a datagram.
pub(super) const PAYLOAD_MOST: u64 = 65_000;

probe_options! {
    /// All of them, in the order of help.
    pub(super) OPTIONS:
    METHOD: "method" ["HOW"] = "auto",
        "icmp, tcp-connect (any open port), tcp-echo or udp-echo (needs `assay ping server` there); auto: icmp where \
         allowed, then the echo, then tcp-connect";
    PORT: "port" | "p" ["N"] = "5202", "Port of the echo and of tcp-connect";
    COUNT: "count" | "c" ["N"], "End after this many requests instead of --time";
    RATE: "rate" ["N"], "Requests per second, on schedule; echo: 1000, icmp: 100 for root, otherwise 1, tcp-connect: 100";
    INTERVAL: "interval" | "i" ["DURATION"], "The same as --rate 1/DURATION";
    FLOOD: "flood-one", "Send each request after the previous reply, without a schedule";
    SIZE: "size" | "s" ["SIZE"] = "56", "Bytes of payload of a request";
    REPLY: "reply" ["SIZE"], "Bytes of payload of an echo's reply [default: like the request]";
    TIMEOUT: "timeout" | "W" ["DURATION"] = "1s", "Time after which a reply counts as lost";
    LOAD: "load" ["PORT"],
        "Repeat under a TCP load stream to this port (needs `assay net server` or `iperf3 -s` there; usually 5201)";
    BIND: "bind" | "I" ["ADDR"],
        "Local address; without it only this host reaches a server (0.0.0.0 or :: for all)";
    SECRET: "secret-file" ["FILE"], "File with a secret that both ends of an echo know";
    WORK: "reply-after" ["DURATION"], "Server: sleep this long before each reply";
}

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

const METHODS: [(&str, Option<Method>); 5] = [
    ("auto", None),
    ("icmp", Some(Method::Icmp)),
    ("tcp-connect", Some(Method::TcpConnect)),
    ("tcp-echo", Some(Method::TcpEcho)),
    ("udp-echo", Some(Method::UdpEcho)),
];

impl Ask {
    pub(super) fn of(request: &Request) -> Result<Self, EngineError> {
        let least = Duration::from_micros(10);
        let interval = request.duration(&INTERVAL, least..=Duration::from_secs(3600))?;
        let rate = request.number(&RATE, 1..=100_000)?.map(f64::from);
        let is_flood = request.is_on(&FLOOD);
        if usize::from(rate.is_some()) + usize::from(interval.is_some()) + usize::from(is_flood) > 1 {
            return Err(asked::exclusive("--rate, --interval and --flood-one"));
        }
        let (count, load) = (request.number(&COUNT, 1..=1 << 40)?, request.number(&LOAD, 1..=u16::MAX)?);
        if count.is_some() && load.is_some() {
            // A stream is asked for a time.
            return Err(asked::exclusive("--count and --load"));
        }
        let (short, hour) = (Duration::from_millis(1), Duration::from_secs(3600));
        let size = request.size_bytes(&SIZE, 0..=PAYLOAD_MOST)?.unwrap_or(0);
        Ok(Self {
            host: asked::host(request)?,
            port: asked::port(request, &PORT)?,
            method: request.choice(&METHOD, &METHODS)?,
            count,
            load,
            rate: rate.or(interval.map(|interval| 1.0 / interval.as_secs_f64())),
            is_flood,
            size,
            reply: request.size_bytes(&REPLY, 0..=PAYLOAD_MOST)?.unwrap_or(size),
            timeout: request.duration(&TIMEOUT, short..=hour)?.unwrap_or_default(),
            family: asked::family(request)?,
            bind: asked::local_address(request, &BIND)?,
            secret: request.said(&SECRET).map(PathBuf::from),
            patience: request.duration(&PATIENCE, short..=hour)?.unwrap_or_default(),
            reply_after: request.duration(&WORK, Duration::ZERO..=hour)?.unwrap_or_default(),
            time: request.time,
        })
    }
}
