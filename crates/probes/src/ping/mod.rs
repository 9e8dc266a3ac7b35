//! `assay ping`: round trips on a schedule, so that stalls show.
//!
//! Owns the methods (`way`), the echo with its server (`echo`), the schedule (`measure`), the same beside a stream
//! (`loaded`) and its record (`record`). See `README.md`.

mod echo;
mod loaded;
mod measure;
mod options;
mod record;
mod way;

#[cfg(test)]
mod tests;

use crate::conditions::{Around, HostWindow};
use crate::dial;
use crate::host::thread_times;
use crate::load;
use crate::peer::asked;
use assay_measure::record::Record;
use assay_measure::snapshot::RunData;
use assay_run::dataset::lines::{count, decimal, measuring, text};
use assay_run::engine::{EngineError, Line};
use assay_run::probe::{Aimed, Measured, ProbeSpec, Steps, Takes};
use assay_run::stop::Stop;
use loaded::{Loaded, Part};
use measure::Tally;
use options::{Ask, Method, OPTIONS};
use std::net::SocketAddr;

/// The probe.
pub const SPEC: ProbeSpec = ProbeSpec {
    about: "Measure round trips to another host, with their percentiles",
    more: "Without options assay uses ICMP where that is allowed, otherwise TCP. `assay ping server --bind ADDR` on the \
            other host answers --method tcp-echo and udp-echo, which show the server's time separately. assay sends requests \
            on a schedule; each has its round trip, and the time since it was due, which a stall lengthens for all waiting \
            requests. --format tool prints what ping prints.",
    usual_time: Some("10s"),
    time_also: &["w", "deadline"],
    follows: &[("p50", &["rtt_us_p50"]), ("p99", &["rtt_us_p99"])],
    options: &[OPTIONS, asked::OPTIONS],
    takes: Takes::Peer(|request| Ok(Box::new(echo::Server::new(&Ask::of(request)?)?))),
    ..ProbeSpec::new("ping", &record::KIND, |request| Ok(Box::new(Aim(Ask::of(request)?))))
};

struct Aim(Ask);

/// What came of a test, with the host around it.
#[derive(Debug)]
pub(crate) struct PingReadings {
    ask: Ask,
    to: SocketAddr,
    method: &'static str,
    holds: &'static str,
    why_not: Vec<String>,
    rate: f64,
    tally: Tally,
    loaded: Option<Loaded>,
    host: HostWindow,
    run_delay_s: Option<f64>,
    is_here: bool,
}

impl Aimed for Aim {
    fn plan(&self) -> Vec<Line> {
        let ask = &self.0;
        let method = match ask.method {
            None => "icmp where allowed, otherwise the echo, otherwise tcp-connect",
            Some(Method::Icmp) => "icmp",
            Some(Method::TcpConnect) => "tcp-connect",
            Some(Method::TcpEcho) => "tcp-echo",
            Some(Method::UdpEcho) => "udp-echo",
        };
        let mut lines = vec![
            text("host", "host", &*ask.host),
            text("method", "method", method),
            text("port", "port of the echo or connect", ask.port.to_string()),
            count("payload_bytes", "payload, bytes", ask.size),
            match ask.rate {
                _ if ask.is_flood => text("pace", "pace", "the next after the reply"),
                Some(rate) => decimal("rate_per_s", "requests per second", rate),
                None => text("pace", "pace", "the method's usual"),
            },
            match ask.count {
                Some(requests) => count("count", "requests", requests),
                None => measuring(ask.time),
            },
        ];
        lines.extend(ask.load.map(|port| text("load", "then again beside", format!("a TCP stream to port {port}"))));
        lines
    }

    fn measure(&self, stop: &Stop, steps: &dyn Steps) -> Result<Box<dyn Measured>, EngineError> {
        let ask = &self.0;
        let each = match ask.count {
            Some(_) => 1,
            None => load::seconds(ask.time),
        };
        let of = each * (1 + usize::from(ask.load.is_some()));
        let part = |before| Part { steps, before, of };
        steps.step(0, of, &format!("finding a method for {}", ask.host));
        if stop.requested() {
            return Err(EngineError::Interrupted);
        }
        let to = dial::resolve(&ask.host, ask.port, ask.family, stop)?;
        let (mut way, why_not) = way::open(ask, to, stop)?;
        let rate = ask.rate.unwrap_or(way.usual_rate());
        let (around, thread) = (Around::begin(), thread_times());
        let tally = measure::run(ask, way.as_mut(), rate, stop, &part(0), each);
        let host = HostWindow { elapsed_ns: tally.elapsed_ns, ..around.end() };
        if tally.sent == 0 {
            return Err(EngineError::Interrupted);
        }
        if tally.service.count() == 0 && !tally.gone.is_empty() {
            return Err(EngineError::Unusable(tally.gone));
        }
        let run_delay = thread_times().since(&thread).run_delay_ns;
        let load = (ask.load).filter(|_| !tally.is_stopped && tally.gone.is_empty());
        let loaded = load.map(|port| loaded::run(ask, port, way.as_mut(), rate, stop, &part(each)));
        Ok(Box::new(PingReadings {
            ask: ask.clone(),
            to,
            method: way.name(),
            holds: way.holds(),
            why_not,
            rate,
            tally,
            loaded,
            host,
            run_delay_s: run_delay.map(|ns| ns as f64 / 1e9),
            is_here: dial::is_here(to),
        }))
    }
}

impl Measured for PingReadings {
    fn was_stopped(&self) -> bool {
        self.tally.is_stopped
    }

    fn record(&self, labels: &RunData) -> Option<Record> {
        Some(record::build(labels, self))
    }
}

/// Reads what may come from the network as a fuzzer makes it: requests, replies.
pub fn fuzz(bytes: &[u8]) {
    if let Some(head) = echo::Head::read(bytes) {
        let mut again = [0; echo::REQUEST_BYTES];
        head.write(&mut again);
        assert_eq!(again[..], bytes[..echo::REQUEST_BYTES]);
    }
    let _ = echo::read_reply(bytes);
    way::fuzz(bytes);
}
