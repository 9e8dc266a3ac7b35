//! `assay net`: how much a way between two hosts carries, in iperf3's protocol and words.
//!
//! Owns the protocol (`wire`, `params`, `results`, `datagram`), the streams (`flow`), what is read of them (`meter`), the
//! two ends (`client`, `server`) and its record (`record`). See `README.md`.

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

use crate::load;
use assay_measure::record::Record;
use assay_measure::snapshot::{HostReading, RunData};
use assay_run::engine::{EngineError, Line, LineValue};
use assay_run::host::Sampler;
use assay_run::probe::{Aimed, Measured, Probe, ProbeFacts, Request, SERVER, Serving, Steps, Takes};
use assay_run::stop::Stop;
use options::{Ask, OPTIONS};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The probe, and the kind of its records.
#[derive(Clone, Copy, Debug)]
pub struct Network;

impl Probe for Network {
    fn facts(&self) -> ProbeFacts {
        ProbeFacts {
            name: "net",
            about: "Measure how much the network between two hosts carries, against assay or iperf3",
            more: "Start `assay net server --bind ADDR` (or `iperf3 -s`) on one host, then `assay net HOST` on the other: both \
                   speak iperf3's protocol and take its options. The report adds what held the sender back, the exact loss and \
                   the CPU of both ends. --format tool prints what iperf3 prints, --format tool-json (--json) its JSON.",
            usual_time: Some("10s"),
            time_also: &["t"],
            options: OPTIONS,
            kind: Some(&record::NetworkRecords),
            takes: Takes::Peer,
            ..ProbeFacts::default()
        }
    }

    fn aim(&self, request: &Request) -> Result<Box<dyn Aimed>, EngineError> {
        let ask = Ask::of(request)?;
        Ok(Box::new(Aim { ask, time: request.time }))
    }

    fn server(&self, request: &Request) -> Result<Box<dyn Serving>, EngineError> {
        let request = Request { place: PathBuf::from(SERVER), ..request.clone() };
        Ok(Box::new(server::Server::new(&Ask::of(&request)?)?))
    }
}

struct Aim {
    ask: Ask,
    time: Duration,
}

/// What was seen of a test, with the host around it.
#[derive(Debug)]
pub(crate) struct NetReadings {
    ask: Ask,
    seen: client::Seen,
    host_before: HostReading,
    host_after: HostReading,
    elapsed_ns: u64,
    /// s since 1970.
    started_s: u64,
    system: String,
}

impl Aimed for Aim {
    fn plan(&self) -> Vec<Line> {
        let params = &self.ask.params;
        let line = |key, label: &str, value| Line { key, label: label.to_owned(), value };
        let text = |text: String| LineValue::Text(text);
        let way = match (params.is_bidirectional, params.is_reverse) {
            (true, _) => "both ways at once",
            (false, true) => "the server sends",
            (false, false) => "this host sends",
        };
        let mut lines = vec![
            line("server", "server", text(format!("{}, port {}", self.ask.host, self.ask.port))),
            line("protocol", "protocol", text(if params.is_udp { "udp" } else { "tcp" }.to_owned())),
            line("direction", "direction", text(way.to_owned())),
            line("streams", "streams of each direction", LineValue::Count(params.streams)),
        ];
        if params.rate > 0 {
            let bits = params.rate * params.streams;
            lines.push(line("rate_bits_per_s", "bits per second", LineValue::Count(bits)));
        }
        if params.omit > 0 {
            lines.push(line("omit_s", "left out at the begin, s", LineValue::Count(params.omit)));
        }
        match (params.bytes, params.blocks) {
            (0, 0) => lines.push(line("estimated_s", "measuring", LineValue::Decimal(params.time as f64))),
            (0, blocks) => lines.push(line("blocks", "blocks to send", LineValue::Count(blocks))),
            (bytes, _) => lines.push(line("bytes", "bytes to send", LineValue::Count(bytes))),
        }
        lines
    }

    fn measure(&self, stop: &Stop, steps: &dyn Steps) -> Result<Box<dyn Measured>, EngineError> {
        let params = &self.ask.params;
        let of = match params.time {
            0 => 1,
            _ => load::seconds(self.time) + params.omit as usize,
        };
        let mut sampler = Sampler::new(Vec::new());
        let host_before = sampler.sample();
        let begun = Instant::now();
        let started_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let seen = client::run(&self.ask, stop, steps, of)?;
        let elapsed_ns = begun.elapsed().as_nanos() as u64;
        if seen.is_stopped && seen.own.streams.iter().all(|stream| stream.bytes == 0) {
            return Err(EngineError::Interrupted);
        }
        Ok(Box::new(NetReadings {
            ask: self.ask.clone(),
            seen,
            host_before,
            host_after: sampler.sample(),
            elapsed_ns,
            started_s,
            system: system(),
        }))
    }
}

/// As `uname -a` without the operating system.
fn system() -> String {
    let of = rustix::system::uname();
    let parts = [of.sysname(), of.nodename(), of.release(), of.version(), of.machine()];
    parts.map(|part| part.to_string_lossy().into_owned()).join(" ")
}

impl Measured for NetReadings {
    fn is_empty(&self) -> bool {
        self.seen.own.streams.is_empty()
    }

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
