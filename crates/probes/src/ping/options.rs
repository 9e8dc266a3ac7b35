//! What may be asked of the latency probe; where ping has a word for it, in ping's words.

use crate::dial::Family;
use assay_measure::units::{parse_duration_ns, parse_size_bytes};
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

const METHOD: ProbeOption = option(
    "method",
    &[],
    "HOW",
    "auto",
    "icmp, tcp-connect (any open port), tcp-echo or udp-echo (`assay ping server` there); auto: icmp where it is allowed, then the echo, then tcp-connect",
);
const PORT_OPTION: ProbeOption = option(
    "port",
    &["p"],
    "N",
    "5202",
    "Port of the echo and of tcp-connect",
);
const COUNT: ProbeOption = option(
    "count",
    &["c"],
    "N",
    "",
    "End after so many requests instead of --time",
);
const RATE: ProbeOption = option(
    "rate",
    &[],
    "N",
    "",
    "Requests per second, on schedule; echo: 1000, icmp: 100 for root and else 1, tcp-connect: 100",
);
const INTERVAL: ProbeOption = option(
    "interval",
    &["i"],
    "DURATION",
    "",
    "The same as --rate 1/DURATION",
);
const FLOOD: ProbeOption = option(
    "flood-one",
    &[],
    "",
    "",
    "The next request goes when the reply is there, without a schedule",
);
const SIZE: ProbeOption = option(
    "size",
    &["s"],
    "SIZE",
    "56",
    "Bytes of payload of a request",
);
const REPLY: ProbeOption = option(
    "reply",
    &[],
    "SIZE",
    "",
    "Bytes of payload of an echo's reply [default: as the request]",
);
const TIMEOUT: ProbeOption = option(
    "timeout",
    &["W"],
    "DURATION",
    "1s",
    "A reply that takes longer is lost",
);
const V4: ProbeOption = option("version4", &["4"], "", "", "IPv4 only");
const V6: ProbeOption = option("version6", &["6"], "", "", "IPv6 only");
const BIND: ProbeOption = option(
    "bind",
    &["I"],
    "ADDR",
    "",
    "Local address; a server without it is reached from this host alone (0.0.0.0 or :: for all)",
);
const SECRET: ProbeOption = option(
    "secret-file",
    &[],
    "FILE",
    "",
    "A secret that both ends of an echo know",
);
const PATIENCE: ProbeOption = option(
    "patience",
    &[],
    "DURATION",
    "10s",
    "How long the other end may be silent",
);
const WORK: ProbeOption = option(
    "reply-after",
    &[],
    "DURATION",
    "",
    "A server sleeps so long before each reply",
);

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
    pub(super) family: Family,
    pub(super) bind: Option<IpAddr>,
    pub(super) secret: Option<PathBuf>,
    pub(super) patience: Duration,
    /// Of a server.
    pub(super) reply_after: Duration,
    pub(super) time: Duration,
}

fn usage(option: &ProbeOption, value: &str, why: &str) -> EngineError {
    EngineError::Usage(format!("--{} {value}: {why}", option.name))
}

struct Words<'a>(&'a Request);

impl Words<'_> {
    fn said(&self, option: &ProbeOption) -> Option<&str> {
        Some(self.0.option(option)).filter(|value| !value.is_empty())
    }

    fn number(
        &self,
        option: &ProbeOption,
        least: u64,
        most: u64,
    ) -> Result<Option<u64>, EngineError> {
        let Some(text) = self.said(option) else {
            return Ok(None);
        };
        let number = text.parse().ok().filter(|n| (least..=most).contains(n));
        let why = format!("a number from {least} to {most} is needed");
        number.map(Some).ok_or_else(|| usage(option, text, &why))
    }

    fn duration(
        &self,
        option: &ProbeOption,
        least: Duration,
        most: Duration,
    ) -> Result<Option<Duration>, EngineError> {
        let Some(text) = self.said(option) else {
            return Ok(None);
        };
        let ns =
            parse_duration_ns(text).map_err(|error| usage(option, text, &error.to_string()))?;
        let why = format!("{least:?} to {most:?} is taken");
        let time = Some(Duration::from_nanos(ns)).filter(|time| (least..=most).contains(time));
        time.map(Some).ok_or_else(|| usage(option, text, &why))
    }

    fn size(&self, option: &ProbeOption) -> Result<Option<u64>, EngineError> {
        let Some(text) = self.said(option) else {
            return Ok(None);
        };
        let bytes =
            parse_size_bytes(text).map_err(|error| usage(option, text, &error.to_string()))?;
        match bytes <= PAYLOAD_MOST {
            true => Ok(Some(bytes)),
            false => Err(usage(option, text, "65000 bytes at most")),
        }
    }
}

impl Words<'_> {
    fn method(&self) -> Result<Option<Method>, EngineError> {
        const METHODS: &str = "auto, icmp, tcp-connect, tcp-echo or udp-echo";
        Ok(match self.0.option(&METHOD) {
            "auto" => None,
            "icmp" => Some(Method::Icmp),
            "tcp-connect" => Some(Method::TcpConnect),
            "tcp-echo" => Some(Method::TcpEcho),
            "udp-echo" => Some(Method::UdpEcho),
            other => return Err(usage(&METHOD, other, METHODS)),
        })
    }
}

impl Ask {
    pub(super) fn of(request: &Request) -> Result<Self, EngineError> {
        let words = Words(request);
        let contradict = |what: &str| Err(EngineError::Usage(format!("{what} exclude each other")));
        let family = match (words.said(&V4), words.said(&V6)) {
            (Some(_), Some(_)) => return contradict("-4 and -6"),
            (Some(_), None) => Family::V4,
            (None, Some(_)) => Family::V6,
            (None, None) => Family::Any,
        };
        let method = words.method()?;
        let least = Duration::from_micros(10);
        let interval = words.duration(&INTERVAL, least, Duration::from_secs(3600))?;
        let rate = words.number(&RATE, 1, 100_000)?.map(|rate| rate as f64);
        let is_flood = words.said(&FLOOD).is_some();
        if usize::from(rate.is_some()) + usize::from(interval.is_some()) + usize::from(is_flood) > 1
        {
            return contradict("--rate, --interval and --flood-one");
        }
        let place = request.place.to_string_lossy().into_owned();
        if place.starts_with('-') || place.is_empty() {
            return Err(EngineError::Usage(format!("{place}: this is no host")));
        }
        let bind = words.said(&BIND).map(|text| {
            text.parse().map_err(|_| {
                usage(
                    &BIND,
                    text,
                    "an address of this host is needed, such as 127.0.0.1 or ::1",
                )
            })
        });
        let (short, hour) = (Duration::from_millis(1), Duration::from_secs(3600));
        let size = words.size(&SIZE)?.unwrap_or(0);
        Ok(Self {
            host: place.trim_matches(['[', ']']).to_owned(),
            port: words
                .number(&PORT_OPTION, 1, 65_535)?
                .map_or(PORT, |port| port as u16),
            method,
            count: words.number(&COUNT, 1, 1 << 40)?,
            rate: rate.or(interval.map(|interval| 1.0 / interval.as_secs_f64())),
            is_flood,
            size,
            reply: words.size(&REPLY)?.unwrap_or(size),
            timeout: words
                .duration(&TIMEOUT, short, hour)?
                .unwrap_or(Duration::from_secs(1)),
            family,
            bind: bind.transpose()?,
            secret: words.said(&SECRET).map(PathBuf::from),
            patience: words
                .duration(&PATIENCE, short, hour)?
                .unwrap_or(Duration::from_secs(10)),
            reply_after: words
                .duration(&WORK, Duration::ZERO, hour)?
                .unwrap_or_default(),
            time: request.time,
        })
    }
}
