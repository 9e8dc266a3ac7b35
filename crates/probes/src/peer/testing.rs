//! Both ends of a probe in one test: its server on a port of its own, and the probe against it.

use assay_measure::record::Record;
use assay_measure::snapshot::RunData;
use assay_run::engine::EngineError;
use assay_run::probe::{ProbeSpec, Request, Steps, Takes};
use assay_run::stop::Stop;
use assay_testkit::port::free_port;
use std::net::TcpStream;
use std::time::Duration;

fn request(port: u16, seconds: u64, more: &[&str]) -> Request {
    let more = more.iter().map(|word| (*word).to_owned());
    Request {
        place: "127.0.0.1".into(),
        time: Duration::from_secs(seconds),
        words: more.chain([format!("port={port}")]).collect(),
    }
}

/// A server of a probe; gone with it.
pub(crate) struct Served {
    probe: &'static ProbeSpec,
    pub(crate) port: u16,
    stop: Stop,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Served {
    pub(crate) fn new(probe: &'static ProbeSpec, more: &[&str]) -> Self {
        let port = free_port();
        let request = request(port, 0, more);
        let stop = Stop::new();
        let watched = stop.clone();
        // What is boxed may not leave its thread: the server is made where it serves.
        let thread = std::thread::spawn(move || {
            let (Takes::Peer(server) | Takes::PlaceOr(_, server)) = probe.takes else {
                panic!("{} has no server", probe.name)
            };
            let server = server(&request).expect("a server");
            server.serve(&watched, &|_| ()).expect("it ends well");
        });
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(!thread.is_finished(), "the server is gone");
            std::thread::sleep(Duration::from_millis(5));
        }
        Self { probe, port, stop, thread: Some(thread) }
    }

    /// Stops it; its end is a good one.
    pub(crate) fn ended(mut self) {
        self.stop.request();
        let thread = self.thread.take().expect("it is waited for once");
        thread.join().expect("it does not panic");
    }

    pub(crate) fn run(&self, seconds: u64, more: &[&str]) -> Result<Record, EngineError> {
        against(self.probe, self.port, seconds, more)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.request();
        self.thread.take().map(std::thread::JoinHandle::join);
    }
}

struct Quiet;

impl Steps for Quiet {
    fn step(&self, _: usize, _: usize, _: &str) {}
}

/// The probe against whoever listens there.
pub(crate) fn against(probe: &ProbeSpec, port: u16, seconds: u64, more: &[&str]) -> Result<Record, EngineError> {
    let aimed = (probe.aim)(&request(port, seconds, more))?;
    let measured = aimed.measure(&Stop::new(), &Quiet)?;
    Ok(measured.record(&RunData::default()).expect("a record"))
}

/// A figure of a record.
pub(crate) fn figure(record: &Record, name: &str) -> f64 {
    let found = assay_measure::record::metric::find(&record.metrics, name);
    let value = found.unwrap_or_else(|| panic!("no {name}")).value.value();
    value.unwrap_or_else(|| panic!("{name} is not known"))
}
