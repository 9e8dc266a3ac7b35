//! What may be asked of the network probe, in iperf3's own words.

use super::params::{
    BLOCK_MOST, BURST_MOST, DATAGRAM, OMIT_MOST, Params, STREAMS_MOST, TCP_BLOCK, TIME_MOST,
    UDP_RATE, WINDOW_MOST,
};
use super::wire::PORT;
use crate::dial::Family;
use assay_measure::units::{parse_duration_ns, parse_size_bytes};
use assay_run::engine::EngineError;
use assay_run::probe::{ProbeOption, Request};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

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

const PORT_OPTION: ProbeOption = option("port", &["p"], "N", "5201", "The server's port");
const UDP: ProbeOption = option("udp", &["u"], "", "", "UDP instead of TCP");
const RATE: ProbeOption = option(
    "bitrate",
    &["b", "bandwidth"],
    "RATE[/N]",
    "",
    "Bits per second of each stream (10M = 10^7), N blocks at once; 0: as fast as it goes, which is TCP's default; UDP: 1.05M",
);
const PACE: ProbeOption = option(
    "pace",
    &[],
    "HOW",
    "mean",
    "How --bitrate is kept: mean catches up after a stall, as iperf3 does; strict never does",
);
const REVERSE: ProbeOption = option("reverse", &["R"], "", "", "The server sends");
const BIDIR: ProbeOption = option("bidir", &[], "", "", "Both send at once");
const PARALLEL: ProbeOption = option("parallel", &["P"], "N", "1", "Streams of each direction");
const OMIT: ProbeOption = option(
    "omit",
    &["O"],
    "DURATION",
    "0s",
    "Leave out so much at the begin",
);
const BYTES: ProbeOption = option(
    "bytes",
    &["n"],
    "SIZE",
    "",
    "End after so many bytes instead of --time",
);
const BLOCKS: ProbeOption = option(
    "blockcount",
    &["k"],
    "N",
    "",
    "End after so many blocks instead of --time",
);
const LENGTH: ProbeOption = option(
    "length",
    &["l"],
    "SIZE",
    "",
    "Bytes of a block; TCP: 128K, UDP: what fits a packet",
);
const WINDOW: ProbeOption = option(
    "window",
    &["w"],
    "SIZE",
    "",
    "Bytes of the sockets' buffers",
);
const CONGESTION: ProbeOption = option(
    "congestion",
    &["C"],
    "NAME",
    "",
    "Congestion control of TCP: cubic, bbr, reno",
);
const MSS: ProbeOption = option("set-mss", &["M"], "SIZE", "", "Largest TCP segment");
const NO_DELAY: ProbeOption = option("no-delay", &["N"], "", "", "No Nagle algorithm");
const ZERO_COPY: ProbeOption = option(
    "zerocopy",
    &["Z"],
    "",
    "",
    "Send without copying (sendfile)",
);
const TOS: ProbeOption = option("tos", &["S"], "N", "", "Type of service, 0 to 255");
const FQ_RATE: ProbeOption = option(
    "fq-rate",
    &[],
    "RATE",
    "",
    "Pace each socket in the kernel, bits per second",
);
const INTERVAL: ProbeOption = option(
    "interval",
    &["i"],
    "DURATION",
    "1s",
    "A reading every so often, 100ms to 60s; 0: none",
);
const V4: ProbeOption = option("version4", &["4"], "", "", "IPv4 only");
const V6: ProbeOption = option("version6", &["6"], "", "", "IPv6 only");
const BIND: ProbeOption = option(
    "bind",
    &["B"],
    "ADDR",
    "",
    "Local address; a server without it is reached from this host alone (0.0.0.0 or :: for all)",
);
const SECRET: ProbeOption = option(
    "secret-file",
    &[],
    "FILE",
    "",
    "A secret that both ends know; a server with one serves assay alone",
);
const PATIENCE: ProbeOption = option(
    "patience",
    &[],
    "DURATION",
    "10s",
    "How long the other end may be silent",
);
const ONE_OFF: ProbeOption = option("one-off", &["1"], "", "", "A server ends after one test");
const OUTPUT: ProbeOption = option(
    "get-server-output",
    &[],
    "",
    "",
    "Bring the server's own text along",
);
const JSON: ProbeOption = option("json", &["J"], "", "", "The same as --format tool-json");
const WIDE: ProbeOption = option("udp-counters-64bit", &[], "", "", "");

/// All of them, in the order of help.
pub(super) const OPTIONS: &[ProbeOption] = &[
    PORT_OPTION,
    UDP,
    RATE,
    PACE,
    REVERSE,
    BIDIR,
    PARALLEL,
    OMIT,
    BYTES,
    BLOCKS,
    LENGTH,
    WINDOW,
    CONGESTION,
    MSS,
    NO_DELAY,
    ZERO_COPY,
    TOS,
    FQ_RATE,
    INTERVAL,
    V4,
    V6,
    BIND,
    SECRET,
    PATIENCE,
    ONE_OFF,
    OUTPUT,
    JSON,
    WIDE,
];

/// What was asked.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) family: Family,
    pub(super) bind: Option<IpAddr>,
    pub(super) secret: Option<PathBuf>,
    pub(super) patience: Duration,
    pub(super) is_one_off: bool,
    pub(super) is_strict: bool,
    /// Seconds between two readings; 0: one at the end.
    pub(super) interval_s: f64,
    /// Whether a length of the block was said; UDP's own depends on the path.
    pub(super) has_block: bool,
    pub(super) params: Params,
}

fn usage(option: &ProbeOption, value: &str, why: &str) -> EngineError {
    EngineError::Usage(format!("--{} {value}: {why}", option.name))
}

/// The words of a request, each read with its own error.
struct Words<'a>(&'a Request);

impl Words<'_> {
    fn is(&self, option: &ProbeOption) -> bool {
        !self.0.option(option).is_empty()
    }

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

    fn size(
        &self,
        option: &ProbeOption,
        least: u64,
        most: u64,
    ) -> Result<Option<u64>, EngineError> {
        let Some(text) = self.said(option) else {
            return Ok(None);
        };
        let bytes =
            parse_size_bytes(text).map_err(|error| usage(option, text, &error.to_string()))?;
        match (least..=most).contains(&bytes) {
            true => Ok(Some(bytes)),
            false => Err(usage(
                option,
                text,
                &format!("{least} to {most} bytes are taken"),
            )),
        }
    }

    fn seconds(&self, option: &ProbeOption) -> Result<f64, EngineError> {
        let text = self.0.option(option);
        let ns =
            parse_duration_ns(text).map_err(|error| usage(option, text, &error.to_string()))?;
        Ok(ns as f64 / 1e9)
    }

    /// `10M`, `1.5G/20`: decimal, with blocks at once.
    fn rate(&self, option: &ProbeOption) -> Result<Option<(u64, u64)>, EngineError> {
        let Some(text) = self.said(option) else {
            return Ok(None);
        };
        let (rate, burst) = text.split_once('/').unwrap_or((text, "1"));
        let letters = rate.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let factor = match letters {
            "" => 1.0,
            "k" | "K" => 1e3,
            "m" | "M" => 1e6,
            "g" | "G" => 1e9,
            "t" | "T" => 1e12,
            _ => {
                return Err(usage(
                    option,
                    text,
                    "bits per second, such as 500K, 10M or 2.5G",
                ));
            }
        };
        let number: Option<f64> = rate[..rate.len() - letters.len()].parse().ok();
        let number = number.filter(|n| n * factor <= 1e15);
        let number = number
            .ok_or_else(|| usage(option, text, "bits per second, such as 500K, 10M or 2.5G"))?;
        let burst = burst.parse().ok().filter(|n| (1..=BURST_MOST).contains(n));
        let burst =
            burst.ok_or_else(|| usage(option, text, "1 to 1000 blocks at once are taken"))?;
        Ok(Some(((number * factor) as u64, burst)))
    }

    fn address(&self) -> Result<Option<IpAddr>, EngineError> {
        let Some(text) = self.said(&BIND) else {
            return Ok(None);
        };
        let address = text.parse().map(Some);
        address.map_err(|_| usage(&BIND, text, "an address of this host is needed, such as 127.0.0.1 or ::1; 0.0.0.0 is all of them"))
    }
}

impl Ask {
    pub(super) fn of(request: &Request) -> Result<Self, EngineError> {
        let words = Words(request);
        let family = match (words.is(&V4), words.is(&V6)) {
            (true, true) => {
                return Err(EngineError::Usage(
                    "-4 and -6 exclude each other".to_owned(),
                ));
            }
            (true, false) => Family::V4,
            (false, true) => Family::V6,
            (false, false) => Family::Any,
        };
        let interval_s = words.seconds(&INTERVAL)?;
        if interval_s != 0.0 && !(0.1..=60.0).contains(&interval_s) {
            return Err(usage(
                &INTERVAL,
                words.0.option(&INTERVAL),
                "100ms to 60s, or 0 for none",
            ));
        }
        let is_strict = match words.0.option(&PACE) {
            "strict" => true,
            "mean" => false,
            other => return Err(usage(&PACE, other, "mean or strict")),
        };
        let place = request.place.to_string_lossy().into_owned();
        if place.starts_with('-') || place.is_empty() {
            return Err(EngineError::Usage(format!("{place}: this is no host")));
        }
        let patience = words.seconds(&PATIENCE)?;
        if !(0.1..=3600.0).contains(&patience) {
            return Err(usage(&PATIENCE, words.0.option(&PATIENCE), "100ms to 1h"));
        }
        Ok(Self {
            host: place.trim_matches(['[', ']']).to_owned(),
            port: words
                .number(&PORT_OPTION, 1, 65_535)?
                .map_or(PORT, |port| port as u16),
            family,
            bind: words.address()?,
            secret: words.said(&SECRET).map(PathBuf::from),
            patience: Duration::from_secs_f64(patience),
            is_one_off: words.is(&ONE_OFF),
            is_strict,
            interval_s,
            has_block: words.is(&LENGTH),
            params: params(&words, request.time)?,
        })
    }
}

fn params(words: &Words<'_>, time: Duration) -> Result<Params, EngineError> {
    let is_udp = words.is(&UDP);
    let (is_reverse, is_bidirectional) = (words.is(&REVERSE), words.is(&BIDIR));
    if is_reverse && is_bidirectional {
        return Err(EngineError::Usage(
            "--reverse and --bidir exclude each other".to_owned(),
        ));
    }
    let most = 1 << 50;
    let (bytes, blocks) = (
        words.size(&BYTES, 1, most)?,
        words.number(&BLOCKS, 1, most)?,
    );
    if bytes.is_some() && blocks.is_some() {
        return Err(EngineError::Usage(
            "--bytes and --blockcount exclude each other".to_owned(),
        ));
    }
    if is_udp && words.is(&ZERO_COPY) {
        return Err(EngineError::Usage("--zerocopy is for TCP".to_owned()));
    }
    let block = match is_udp {
        true => words.size(&LENGTH, *DATAGRAM.start(), *DATAGRAM.end())?,
        false => words.size(&LENGTH, 1, BLOCK_MOST)?,
    };
    let omit = words.seconds(&OMIT)?;
    if omit > OMIT_MOST as f64 || omit.fract() != 0.0 {
        return Err(usage(
            &OMIT,
            words.0.option(&OMIT),
            "whole seconds, 600 at most",
        ));
    }
    let seconds = time.as_secs_f64().ceil() as u64;
    if seconds > TIME_MOST {
        return Err(EngineError::Usage(format!(
            "--time {seconds}s: 86400s at most"
        )));
    }
    let (rate, burst) = words
        .rate(&RATE)?
        .unwrap_or((if is_udp { UDP_RATE } else { 0 }, 1));
    let is_for_time = bytes.is_none() && blocks.is_none();
    Ok(Params {
        is_udp,
        omit: omit as u64,
        time: if is_for_time { seconds } else { 0 },
        bytes: bytes.unwrap_or(0),
        blocks: blocks.unwrap_or(0),
        streams: words.number(&PARALLEL, 1, STREAMS_MOST)?.unwrap_or(1),
        is_reverse,
        is_bidirectional,
        block: block.unwrap_or(if is_udp { 1460 } else { TCP_BLOCK }),
        rate,
        burst,
        window: words.size(&WINDOW, 1024, WINDOW_MOST)?,
        max_segment: words.size(&MSS, 88, 32_767)?.map(|mss| mss as u32),
        no_delay: words.is(&NO_DELAY),
        congestion: words.said(&CONGESTION).map(str::to_owned),
        tos: words.number(&TOS, 0, 255)?.map(|tos| tos as u8),
        pacing: words.rate(&FQ_RATE)?.map(|(rate, _)| rate),
        // 32 bits wrap within the hour on a quick link.
        wide_counters: is_udp,
        zero_copy: words.is(&ZERO_COPY),
        wants_server_output: words.is(&OUTPUT),
    })
}
