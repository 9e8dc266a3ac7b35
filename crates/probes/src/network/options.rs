//! What may be asked of the network probe, in iperf3's own words.

use super::params::{
    BLOCK_MOST, BURST_MOST, DATAGRAM, OMIT_MOST, Params, STREAMS_MOST, TCP_BLOCK, TIME_MOST, UDP_RATE, WINDOW_MOST,
};
use crate::dial::Family;
use crate::peer::asked::{self, PATIENCE};
use assay_measure::units::parse_duration_ns;
use assay_run::engine::EngineError;
use assay_run::probe::{ProbeOption, Request};
use assay_run::probe_options;
use rustix::thread::{CpuSet, sched_getaffinity};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

probe_options! {
    /// All of them, in the order of help.
    pub(super) OPTIONS:
    PORT: "port" | "p" ["N"] = "5201", "The server's port";
    UDP: "udp" | "u", "UDP instead of TCP";
    RATE: "bitrate" | "b" | "bandwidth" ["RATE[/N]"],
        "Bits per second of each stream (10M = 10^7), N blocks at once; 0: as fast as possible, TCP's default; UDP: 1.05M";
    PACE: "pace" ["HOW"] = "mean",
        "How --bitrate is kept: mean catches up after a stall, as iperf3 does; strict never does";
    REVERSE: "reverse" | "R", "The server sends";
    BIDIR: "bidir", "Both send at once";
    PARALLEL: "parallel" | "P" ["N"] = "1", "Streams of each direction";
    OMIT: "omit" | "O" ["DURATION"] = "0s", "Leave out this much time at the start";
    BYTES: "bytes" | "n" ["SIZE"], "End after this many bytes instead of --time";
    BLOCKS: "blockcount" | "k" ["N"], "End after this many blocks instead of --time";
    LENGTH: "length" | "l" ["SIZE"], "Bytes of a block; TCP: 128K, UDP: as many as fit a packet";
    WINDOW: "window" | "w" ["SIZE"], "Bytes of the sockets' buffers";
    CONGESTION: "congestion" | "C" ["NAME"], "Congestion control of TCP: cubic, bbr, reno";
    MSS: "set-mss" | "M" ["SIZE"], "Largest TCP segment";
    NO_DELAY: "no-delay" | "N", "Disable the Nagle algorithm";
    ZERO_COPY: "zerocopy" | "Z", "Send without copying (sendfile)";
    TOS: "tos" | "S" ["N"], "Type of service, 0 to 255";
    FQ_RATE: "fq-rate" ["RATE"], "Pace each socket in the kernel, bits per second";
    INTERVAL: "interval" | "i" ["DURATION"] = "1s", "Time between readings, 100ms to 60s; 0: none";
    BIND: "bind" | "B" ["ADDR"],
        "Local address; without it only this host reaches a server (0.0.0.0 or :: for all)";
    SECRET: "secret-file" ["FILE"], "File with a secret that both ends know; a server with one serves only assay";
    AFFINITY: "affinity" | "A" ["N[,M]"], "Pin the streams to CPU N on this host, and to CPU M on the other";
    VERBOSE: "verbose" | "V", "With --format tool: iperf3's -V output";
    UNITS: "units" | "f" ["LETTER"],
        "With --format tool: rates in k, m, g, t (bits) or K, M, G, T (bytes), as iperf3's -f";
    ONE_OFF: "one-off" | "1", "Server: end after one test";
    OUTPUT: "get-server-output", "Also fetch the server's own text";
    JSON: "json" | "J", "The same as --format tool-json";
    WIDE: "udp-counters-64bit", "";
}

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
    /// The CPU of the streams here; that of the other end goes with the parameters.
    pub(super) cpu: Option<u32>,
    pub(super) is_verbose: bool,
    pub(super) units: String,
    /// Seconds between two readings; 0: one at the end.
    pub(super) interval_s: f64,
    /// Whether a length of the block was said; UDP's own depends on the path.
    pub(super) has_block: bool,
    pub(super) params: Params,
}

/// A time whose nought means something, s.
fn seconds(request: &Request, option: &ProbeOption) -> Result<f64, EngineError> {
    let ns = request.read(option, parse_duration_ns)?;
    Ok(ns.unwrap_or_default() as f64 / 1e9)
}

/// `10M`, `1.5G/20`: decimal, with blocks at once.
fn bitrate(request: &Request, option: &ProbeOption) -> Result<Option<(u64, u64)>, EngineError> {
    const TAKEN: &str = "bits per second, such as 500K, 10M or 2.5G";
    request.read(option, |text| {
        let (rate, burst) = text.split_once('/').unwrap_or((text, "1"));
        let letters = rate.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let factor = match letters {
            "" => 1.0,
            "k" | "K" => 1e3,
            "m" | "M" => 1e6,
            "g" | "G" => 1e9,
            "t" | "T" => 1e12,
            _ => return Err(TAKEN),
        };
        let number: Option<f64> = rate[..rate.len() - letters.len()].parse().ok();
        let number = number.filter(|n| n * factor <= 1e15).ok_or(TAKEN)?;
        let burst = burst.parse().ok().filter(|n| (1..=BURST_MOST).contains(n));
        Ok(((number * factor) as u64, burst.ok_or("give 1 to 1000 blocks at once")?))
    })
}

/// `3` or `3,1`: a CPU of this host that this process may run on, and one of the other's.
fn affinity(request: &Request) -> Result<(Option<u32>, Option<u32>), EngineError> {
    let cpu = |text: &str| {
        let cpu = text.parse().ok().filter(|cpu| *cpu < CpuSet::MAX_CPU as u32);
        cpu.ok_or_else(|| "a CPU's number, or two: here,there".to_owned())
    };
    let both = request.read(&AFFINITY, |text| {
        let (here, there) = text.split_once(',').map_or((text, None), |(here, there)| (here, Some(there)));
        match (cpu(here)?, there.map(cpu).transpose()?) {
            (here, there) if may_run_on(here) => Ok((Some(here), there)),
            (here, _) => Err(format!("this process may not run on CPU {here} (see taskset -cp)")),
        }
    })?;
    Ok(both.unwrap_or_default())
}

/// Whether this process may run on a CPU; where the kernel does not say, trying will.
pub(super) fn may_run_on(cpu: u32) -> bool {
    let cpu = cpu as usize;
    cpu < CpuSet::MAX_CPU && sched_getaffinity(None).map_or(true, |may| may.is_set(cpu))
}

impl Ask {
    pub(super) fn of(request: &Request) -> Result<Self, EngineError> {
        let interval_s = seconds(request, &INTERVAL)?;
        if interval_s != 0.0 && !(0.1..=60.0).contains(&interval_s) {
            return Err(INTERVAL.refused(request.option(&INTERVAL), "100ms to 60s, or 0 for none"));
        }
        let units = request.option(&UNITS);
        if units.len() > 1 || !"kmgtKMGT".contains(units) {
            return Err(UNITS.refused(units, "give one of k, m, g, t, K, M, G, T"));
        }
        let (cpu, server_cpu) = affinity(request)?;
        let mut params = params(request)?;
        params.server_cpu = server_cpu;
        Ok(Self {
            host: asked::host(request)?,
            port: asked::port(request, &PORT)?,
            family: asked::family(request)?,
            bind: asked::local_address(request, &BIND)?,
            secret: request.said(&SECRET).map(PathBuf::from),
            patience: request
                .duration(&PATIENCE, Duration::from_millis(100)..=Duration::from_secs(3600))?
                .unwrap_or_default(),
            is_one_off: request.is_on(&ONE_OFF),
            is_strict: request.choice(&PACE, &[("mean", false), ("strict", true)])?,
            cpu,
            is_verbose: request.is_on(&VERBOSE),
            units: units.to_owned(),
            interval_s,
            has_block: request.is_on(&LENGTH),
            params,
        })
    }
}

fn params(request: &Request) -> Result<Params, EngineError> {
    let is_udp = request.is_on(&UDP);
    let (is_reverse, is_bidirectional) = (request.is_on(&REVERSE), request.is_on(&BIDIR));
    if is_reverse && is_bidirectional {
        return Err(asked::exclusive("--reverse and --bidir"));
    }
    let most = 1 << 50;
    let (bytes, blocks) = (request.size_bytes(&BYTES, 1..=most)?, request.number(&BLOCKS, 1..=most)?);
    if bytes.is_some() && blocks.is_some() {
        return Err(asked::exclusive("--bytes and --blockcount"));
    }
    if is_udp && request.is_on(&ZERO_COPY) {
        return Err(EngineError::Usage("--zerocopy applies only to TCP".to_owned()));
    }
    let block =
        if is_udp { request.size_bytes(&LENGTH, DATAGRAM)? } else { request.size_bytes(&LENGTH, 1..=BLOCK_MOST)? };
    let omit = seconds(request, &OMIT)?;
    if omit > OMIT_MOST as f64 || omit.fract() != 0.0 {
        return Err(OMIT.refused(request.option(&OMIT), "give whole seconds, at most 600"));
    }
    let seconds = request.time.as_secs_f64().ceil() as u64;
    if seconds > TIME_MOST {
        return Err(EngineError::Usage(format!("--time {seconds}s: give at most 86400s")));
    }
    let (rate, burst) = bitrate(request, &RATE)?.unwrap_or((if is_udp { UDP_RATE } else { 0 }, 1));
    let is_for_time = bytes.is_none() && blocks.is_none();
    Ok(Params {
        is_udp,
        omit: omit as u64,
        time: if is_for_time { seconds } else { 0 },
        bytes: bytes.unwrap_or(0),
        blocks: blocks.unwrap_or(0),
        streams: request.number(&PARALLEL, 1..=STREAMS_MOST)?.unwrap_or(1),
        is_reverse,
        is_bidirectional,
        block: block.unwrap_or(if is_udp { 1460 } else { TCP_BLOCK }),
        rate,
        burst,
        window: request.size_bytes(&WINDOW, 1024..=WINDOW_MOST)?,
        max_segment: request.size_bytes(&MSS, 88..=32_767)?.map(|mss| mss as u32),
        no_delay: request.is_on(&NO_DELAY),
        congestion: request.said(&CONGESTION).map(str::to_owned),
        tos: request.number(&TOS, 0..=u8::MAX)?,
        pacing: bitrate(request, &FQ_RATE)?.map(|(rate, _)| rate),
        // 32 bits wrap within the hour on a quick link.
        wide_counters: is_udp,
        zero_copy: request.is_on(&ZERO_COPY),
        server_cpu: None,
        wants_server_output: request.is_on(&OUTPUT),
    })
}
