//! `assay net`: throughput between two hosts, with iperf3's protocol and options.
//!
//! Owns the protocol (`wire`, `params`, `results`, `datagram`), the streams (`flow`), their readings (`meter`), the two
//! ends (`client`, `server`) and its record (`record`). See `README.md`.

mod client;
mod datagram;
mod flow;
mod lines;
mod meter;
mod options;
mod params;
mod record;
mod results;
mod server;
mod wire;

#[cfg(test)]
mod tests;

use crate::conditions::{Around, HostWindow};
use crate::load;
use crate::peer::asked;
use assay_measure::record::Record;
use assay_measure::snapshot::RunData;
use assay_run::dataset::lines::{count, measuring, text};
use assay_run::engine::{EngineError, Line};
use assay_run::probe::{Aimed, Measured, OF_TOOL, ProbeSpec, Steps, Takes};
use assay_run::stop::Stop;
use options::{Ask, OPTIONS};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The probe.
pub const SPEC: ProbeSpec = ProbeSpec {
    about: "Measure the network throughput between two hosts, against assay or iperf3",
    more: "Start `assay net server --bind ADDR` (or `iperf3 -s`) on one host, then `assay net HOST` on the other: both use \
            iperf3's protocol and accept its options. The report adds what limited the sender, the exact loss and the CPU of \
            both ends. --format tool prints what iperf3 prints, --format tool-json (--json) its JSON.",
    usual_time: Some("10s"),
    time_also: &["t"],
    follows: &[("rate", &["receiver.tcp_throughput_bits_per_s_mean", "receiver.udp_throughput_bits_per_s_mean"])],
    options: &[OPTIONS, asked::OPTIONS, OF_TOOL],
    takes: Takes::Peer(|request| Ok(Box::new(server::Server::new(&Ask::of(request)?)?))),
    ..ProbeSpec::new("net", &record::KIND, |request| Ok(Box::new(Aim { ask: Ask::of(request)?, time: request.time })))
};

struct Aim {
    ask: Ask,
    time: Duration,
}

/// What was seen of a test, with the host around it.
#[derive(Debug)]
pub(crate) struct NetReadings {
    ask: Ask,
    seen: client::Seen,
    host: HostWindow,
    /// s since 1970.
    started_s: u64,
    system: String,
}

impl Aimed for Aim {
    fn plan(&self) -> Vec<Line> {
        let params = &self.ask.params;
        let way = match (params.is_bidirectional, params.is_reverse) {
            (true, _) => "both directions at once",
            (false, true) => "the server sends",
            (false, false) => "this host sends",
        };
        let mut lines = vec![
            text("server", "server", format!("{}, port {}", self.ask.host, self.ask.port)),
            text("protocol", "protocol", if params.is_udp { "udp" } else { "tcp" }),
            text("direction", "direction", way),
            count("streams", "streams of each direction", params.streams),
        ];
        if params.rate > 0 {
            lines.push(count("rate_bits_per_s", "bits per second", params.rate * params.streams));
        }
        if params.omit > 0 {
            lines.push(count("omit_s", "left out at the start, s", params.omit));
        }
        lines.push(match (params.bytes, params.blocks) {
            (0, 0) => measuring(Duration::from_secs(params.time)),
            (0, blocks) => count("blocks", "blocks to send", blocks),
            (bytes, _) => count("bytes", "bytes to send", bytes),
        });
        lines
    }

    fn measure(&self, stop: &Stop, steps: &dyn Steps) -> Result<Box<dyn Measured>, EngineError> {
        let params = &self.ask.params;
        let of = match params.time {
            0 => 1,
            _ => load::seconds(self.time) + params.omit as usize,
        };
        let around = Around::begin();
        let started_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let seen = client::run(&self.ask, stop, steps, of)?;
        let host = around.end();
        if seen.is_stopped && seen.own.streams.iter().all(|stream| stream.bytes == 0) {
            return Err(EngineError::Interrupted);
        }
        Ok(Box::new(NetReadings { ask: self.ask.clone(), seen, host, started_s, system: system() }))
    }
}

/// As `uname -a` without the operating system.
fn system() -> String {
    let of = rustix::system::uname();
    let parts = [of.sysname(), of.nodename(), of.release(), of.version(), of.machine()];
    parts.map(|part| part.to_string_lossy().into_owned()).join(" ")
}

impl Measured for NetReadings {
    fn was_stopped(&self) -> bool {
        self.seen.is_stopped
    }

    fn record(&self, labels: &RunData) -> Option<Record> {
        Some(record::build(labels, self))
    }
}

/// Reads what may come from the network as a fuzzer makes it: frames, their length, datagrams.
pub fn fuzz(bytes: &[u8]) {
    if let Some(Ok(word)) = bytes.get(..4).map(<[u8; 4]>::try_from) {
        let _ = wire::frame_length(word, wire::PARAMS_MOST);
    }
    let mut arrivals = datagram::Arrivals::default();
    for (at, datagram) in bytes.chunks(datagram::HEADER_BYTES).enumerate() {
        if let Some((sent_us, number)) = datagram::read(datagram, at % 2 == 0) {
            arrivals.count(number, sent_us, at as f64);
        }
    }
    let Ok(frame) = wire::frame(bytes) else {
        return;
    };
    if let Ok(params) = params::Params::read(&frame) {
        // What was understood comes back from our own frame.
        let again = params::Params::read(&params.frame());
        assert!(again.is_ok(), "{again:?}");
    }
    let _ = results::Results::read(&frame, &[(1, true), (3, false)]);
}
