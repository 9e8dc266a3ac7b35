//! The primary: opens its connections, lets the messages flow, and gathers what each end saw.

use super::alone::{Alone, Work};
use super::ask::{Ask, Local, Standby};
use super::crowd::Crowd;
use super::hosts;
use super::link::Link;
use super::log::{Log, Shape, Slowed};
use super::payload::Pool;
use super::reading::{Readings, StandbyReading, Stream};
use super::record;
use super::scribe::Scribe;
use super::wire::WriteMode;
use crate::crew::effective_mhz;
use crate::peer::line::PeerError;
use assay_measure::clock::Clock;
use assay_measure::record::Record;
use assay_measure::snapshot::{HostReading, RunData};
use assay_run::engine::{EngineError, Line};
use assay_run::host::{Sampler, random_u64};
use assay_run::probe::{Aimed, Measured, Steps};
use assay_run::stop::Stop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

impl Measured for Readings {
    fn was_stopped(&self) -> bool {
        self.is_stopped
    }

    fn data(&self, labels: &RunData) -> Option<RunData> {
        Some(hosts::data(labels, self))
    }

    fn record(&self, labels: &RunData) -> Option<Record> {
        Some(record::build(labels, self))
    }
}

/// The client aimed at its standbys.
pub(super) struct Aim(pub(super) Ask);

impl Aimed for Aim {
    fn plan(&self) -> Vec<Line> {
        self.0.plan()
    }

    fn measure(&self, stop: &Stop, steps: &dyn Steps) -> Result<Box<dyn Measured>, EngineError> {
        let ask = &self.0;
        let clock = Clock::real();
        let seconds = ask.whole_time().as_secs_f64().ceil().max(1.0) as usize;
        steps.step(0, seconds, "the standby prepares");
        if stop.requested() {
            return Err(EngineError::Interrupted);
        }
        // A file that cannot be read is told before anybody is bothered.
        let pool = Pool::new(&ask.content, ask.length, random_u64())?;
        let modes = self.other_modes(&pool, stop, steps)?;
        let mut links = Vec::new();
        for standby in &ask.standbys {
            for _ in 0..ask.connections {
                links.push(Link::open(ask, standby, stop)?);
            }
        }
        let log = local_log(ask, stop)?;
        let scribe = Scribe::new(ask.local, log, &pool, &clock)?;
        steps.ready();
        steps.begin();
        let mut sampler = Sampler::new(assay_block::disks_under(std::slice::from_ref(&ask.local_file)));
        let mut readings = Readings {
            host: (sampler.sample(), HostReading::default()),
            begun_ns: clock.now_ns(),
            clock_s: time_of_day(),
            ask: Some(ask.clone()),
            zero_ratio: pool.zero_ratio(),
            modes,
            ..Readings::default()
        };
        let live = AtomicU64::new(0);
        let work = Work { ask, clock: &clock, stop, live: &live };
        // A commit that waits for several standbys is one thread's work; who waits for nobody sends to each at its own speed.
        watched(&work, steps, seconds, || {
            if ask.is_async || ask.standbys.len() == 1 {
                apart(&work, &mut links, (pool, scribe), &mut readings)
            } else {
                several(&work, links, (pool, scribe), &mut readings)
            }
        })?;
        readings.ended_ns = clock.now_ns();
        readings.host.1 = sampler.sample();
        readings.cpu_mhz = effective_mhz(&clock);
        readings.is_stopped = stop.requested();
        if readings.stream.sent == 0 && readings.failed.is_empty() {
            return Err(EngineError::Interrupted);
        }
        Ok(Box::new(readings))
    }
}

impl Aim {
    /// The ways to write that are measured before, each on a connection and with a log of its own.
    fn other_modes(
        &self,
        pool: &Pool,
        stop: &Stop,
        steps: &dyn Steps,
    ) -> Result<Vec<(WriteMode, Readings)>, EngineError> {
        let mut modes = Vec::new();
        let seconds = self.0.whole_time().as_secs_f64().ceil() as usize;
        for mode in &self.0.before {
            let ask = Ask { write: *mode, ..self.0.clone() };
            let at = (modes.len() as f64 * ask.time.as_secs_f64()) as usize;
            steps.step(at, seconds, mode.name());
            if stop.requested() {
                return Err(EngineError::Interrupted);
            }
            let mut links = vec![Link::open(&ask, &ask.standbys[0], stop)?];
            let work = Work { ask: &ask, clock: &Clock::real(), stop, live: &AtomicU64::new(0) };
            let mut readings = Readings::default();
            apart(&work, &mut links, (pool.clone(), Scribe::None), &mut readings)?;
            if !readings.failed.is_empty() {
                let why = format!("{} (while {} was measured)", readings.failed, mode.name());
                return Err(EngineError::Unusable(why));
            }
            modes.push((*mode, readings));
        }
        Ok(modes)
    }
}

/// Local time of day, s.
fn time_of_day() -> i64 {
    let now = jiff::Zoned::now();
    let time = now.time();
    i64::from(time.hour()) * 3600 + i64::from(time.minute()) * 60 + i64::from(time.second())
}

/// Does the work and says every second how far it is.
fn watched<T: Send>(work: &Work<'_>, steps: &dyn Steps, seconds: usize, run: impl FnOnce() -> T + Send) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let is_over = &is_over;
        scope.spawn(move || {
            let mut before = 0;
            for second in 1..=seconds {
                let now = work.live.load(Ordering::Relaxed);
                let what = match second {
                    1 => "messages".to_owned(),
                    _ => format!("{} messages/s", now - before),
                };
                before = now;
                steps.step(second, seconds, &what);
                for _ in 0..20 {
                    if is_over.load(Ordering::Acquire) {
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(50));
                }
                if is_over.load(Ordering::Acquire) && work.stop.requested() {
                    break;
                }
            }
        });
        let done = run();
        is_over.store(true, Ordering::Release);
        done
    })
}

/// The primary's own log.
fn local_log(ask: &Ask, stop: &Stop) -> Result<Option<Log>, EngineError> {
    if ask.local == Local::None {
        return Ok(None);
    }
    let shape = Shape {
        mode: match ask.write {
            WriteMode::None | WriteMode::Pagecache => WriteMode::DirectDsync,
            other => other,
        },
        falls_back: true,
        length: ask.length,
        block: ask.log_block,
        bytes: ask.log_bytes,
    };
    let slowed = Slowed { each: ask.slow_local, limit: None };
    let made = Log::create(&ask.local_file, shape, slowed, &mut |_| !stop.requested())?;
    made.map(Some).ok_or(EngineError::Interrupted)
}

/// Each connection by a thread of its own, to one standby or, in ASYNC, to several.
fn apart(
    work: &Work<'_>,
    links: &mut [Link],
    (pool, scribe): (Pool, Scribe),
    readings: &mut Readings,
) -> Result<(), EngineError> {
    let ask = work.ask;
    // One connection alone writes here: several exclude it.
    let mut scribe = Some(scribe);
    let mut alone = Vec::new();
    for link in links.iter_mut() {
        let scribe = scribe.take().unwrap_or(Scribe::None);
        alone.push(Alone::new(work, link, pool.clone(), scribe)?);
    }
    let ended: Vec<(Stream, Result<(), PeerError>)> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            alone.into_iter().map(|alone| std::thread::Builder::new().spawn_scoped(scope, || alone.run())).collect();
        let ended = threads.into_iter().map(|thread| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(error) => {
                let what = format!("a thread cannot be started: {error}");
                (Stream::default(), Err(PeerError::Own(what)))
            }
        });
        ended.collect()
    });
    let (mut ended, mut failed) = (ended.into_iter(), Vec::new());
    let each = ask.standbys.iter().zip(links.chunks_mut(ask.connections));
    for (standby, links) in each {
        let ended = ended.by_ref().take(ask.connections);
        let (reading, stream, error) = ends(standby, links, ended);
        failed.extend(error);
        readings.stream.merge(&stream);
        readings.standbys.push(reading);
    }
    let lost = readings.standbys.iter().filter(|one| !one.lost.is_empty());
    let lost = lost.count();
    // One of several that is lost is an event: nobody waits for it.
    if failed.len() == lost && lost < ask.standbys.len() {
        return Ok(());
    }
    let is_nothing = readings.stream.seconds.end_ns() == 0;
    let is_stop = |error: &EngineError| matches!(error, EngineError::Interrupted);
    match failed.iter().position(|error| is_nothing || is_stop(error)) {
        Some(at) => Err(failed.swap_remove(at)),
        None => {
            let all: Vec<String> = failed.iter().map(ToString::to_string).collect();
            readings.failed = all.join("; ");
            Ok(())
        }
    }
}

/// What the connections to one standby brought, and why one of them broke; what was measured until then is kept.
fn ends(
    standby: &Standby,
    links: &mut [Link],
    ended: impl Iterator<Item = (Stream, Result<(), PeerError>)>,
) -> (StandbyReading, Stream, Option<EngineError>) {
    let (mut all, mut broken) = (Stream::default(), None);
    // As it is while messages flow: the rest of the connection is silence.
    let mut reading = links[0].reading(standby);
    for (link, (stream, ended)) in links.iter_mut().zip(ended) {
        match (ended.and_then(|()| link.found()), &mut reading.found) {
            (Ok(found), Some(all)) => record::merge(all, &found),
            (Ok(found), None) => reading.found = Some(found),
            (Err(error), _) => broken = broken.or(Some(error)),
        }
        all.merge(&stream);
    }
    reading.parts = all.parts.clone();
    reading.sent = all.sent + all.network_alone.count();
    reading.consumed = all.seconds.total();
    reading.elapsed_ns = all.elapsed_ns;
    if let Some(error) = &broken {
        if !matches!(error, PeerError::Own(_) | PeerError::Stopped) {
            reading.lost = error.to_string();
            reading.lost_s = all.elapsed_ns as f64 / 1e9;
        }
        // What some of its connections told is not the whole.
        reading.found = None;
    }
    let peer = links[0].peer.peer();
    (reading, all, broken.map(|error| error.of(peer)))
}

fn several(
    work: &Work<'_>,
    links: Vec<Link>,
    (pool, scribe): (Pool, Scribe),
    readings: &mut Readings,
) -> Result<(), EngineError> {
    let mut crowd = Crowd::new(work, links, pool, scribe);
    let ended = crowd.run();
    for (mut member, standby) in crowd.members.into_iter().zip(&work.ask.standbys) {
        let mut reading = member.link.reading(standby);
        if member.lost.is_none() {
            let said = member.link.end(u64::MAX - 1);
            let found = said.and_then(|()| member.link.ended()).and_then(|()| member.link.found());
            match found {
                Ok(found) => reading.found = Some(found),
                Err(error) => member.lost = Some((error.to_string(), crowd.stream.elapsed_ns)),
            }
        }
        reading.parts = member.parts;
        reading.sent = crowd.stream.sent;
        reading.tcp_seconds = member.tcp_seconds;
        if let Some((why, at)) = member.lost {
            (reading.lost, reading.lost_s) = (why, at as f64 / 1e9);
        }
        readings.standbys.push(reading);
    }
    readings.stream = crowd.stream;
    readings.rules = crowd.rules;
    if let Err(why) = ended {
        if readings.stream.sent == 0 {
            return Err(EngineError::Unusable(why));
        }
        readings.failed = why;
    }
    Ok(())
}
