//! The same requests again beside a stream that saturates the link: what a backup does to a session that waits for a
//! reply.

use super::measure::{self, Tally};
use super::options::Ask;
use super::way::Way;
use crate::network;
use crate::peer::asked;
use assay_measure::record::Record;
use assay_measure::snapshot::RunData;
use assay_run::engine::EngineError;
use assay_run::probe::{Request, Steps};
use assay_run::stop::Stop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The stream flows for so long before the first request, and finds its window.
const LEAD: Duration = Duration::from_secs(2);
/// A stream that has not begun by then is none.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);

/// What came of the requests, and of the stream beside them.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) tally: Tally,
    /// The stream's record, or why there is none.
    pub(super) stream: Result<Box<Record>, String>,
}

/// The steps of one of two equal parts of a test.
pub(super) struct Part<'a> {
    pub(super) steps: &'a dyn Steps,
    pub(super) before: usize,
    pub(super) of: usize,
}

impl Steps for Part<'_> {
    fn step(&self, number: usize, _: usize, what: &str) {
        self.steps.step(self.before + number, self.of, what);
    }
}

/// Knows when the stream has begun.
struct Flowing<'a>(&'a AtomicBool);

impl Steps for Flowing<'_> {
    fn step(&self, number: usize, _: usize, _: &str) {
        // Step 0 is the search for the other end.
        self.0.fetch_or(number > 0, Ordering::AcqRel);
    }
}

fn request(ask: &Ask, port: u16) -> Request {
    let mut words = vec![format!("port={port}")];
    words.extend(ask.secret.iter().map(|path| format!("secret-file={}", path.display())));
    words.extend(ask.bind.iter().map(|address| format!("bind={address}")));
    words.extend(asked::word_of(ask.family).map(str::to_owned));
    Request { place: ask.host.clone().into(), time: ask.time + LEAD, words }
}

/// Measures beside a TCP stream to `port`.
pub(super) fn run(ask: &Ask, port: u16, way: &mut dyn Way, rate: f64, stop: &Stop, steps: &Part<'_>) -> Loaded {
    let (flows, until) = (AtomicBool::new(false), Stop::new());
    std::thread::scope(|scope| {
        let stream = scope.spawn(|| {
            let aimed = (network::SPEC.aim)(&request(ask, port))?;
            let measured = aimed.measure(&until, &Flowing(&flows))?;
            Ok(measured.record(&RunData::default()).map(Box::new))
        });
        let mut waited = Duration::ZERO;
        while !flows.load(Ordering::Acquire) && !stream.is_finished() && !stop.requested() && waited < PATIENCE {
            std::thread::sleep(LOOK);
            waited += LOOK;
        }
        let tally = if flows.load(Ordering::Acquire) {
            measure::run(ask, way, rate, stop, steps, steps.of - steps.before)
        } else {
            Tally { is_stopped: stop.requested(), ..Tally::default() }
        };
        // One that was begun ends by itself, so that both ends tell what they counted.
        if stop.requested() || !flows.load(Ordering::Acquire) || !tally.gone.is_empty() {
            until.request();
        }
        let ended: Result<_, EngineError> = stream.join().expect("it does not panic");
        let stream = match ended {
            Ok(Some(record)) => Ok(record),
            Ok(None) => Err("it sent nothing".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        Loaded { tally, stream }
    })
}
