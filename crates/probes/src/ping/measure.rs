//! Requests on a schedule, one at a time, and the result of each.

use super::options::Ask;
use super::way::{self, Way};
use assay_block::set_timer_slack;
use assay_measure::clock::{Clock, NS_PER_S, Ns};
use assay_measure::histogram::Histogram;
use assay_run::probe::Steps;
use assay_run::stop::Stop;
use std::fmt::Display;
use std::io;
use std::time::Duration;

/// Replies that are kept one by one, for ping's lines.
const LINES_MOST: usize = 10_000;
/// The worst that are named with their time.
pub(super) const WORST: usize = 10;
/// A stop is seen within this.
const LOOK_NS: Ns = 50_000_000;
/// Errors in a row after which there is nobody to talk to.
const ERRORS_MOST: u64 = 10;

/// One reply.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Line {
    pub(super) seq: u64,
    pub(super) ttl: Option<u8>,
    pub(super) service_ns: Ns,
}

/// One of the slowest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Slow {
    pub(super) seq: u64,
    /// When it was due, after the begin.
    pub(super) at_ns: Ns,
    pub(super) service_ns: Ns,
    pub(super) response_ns: Ns,
    pub(super) is_lost: bool,
}

/// A second of the test.
#[derive(Clone, Debug, Default)]
pub(super) struct Second {
    pub(super) service: Histogram,
    pub(super) response: Histogram,
    pub(super) lost: u64,
}

/// What came of all.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) sent: u64,
    pub(super) lost: u64,
    pub(super) strays: u64,
    pub(super) errors: u64,
    /// The first of them, in words.
    pub(super) error: String,
    /// From the sending; those answered.
    pub(super) service: Histogram,
    /// From the instant it was due; a lost one counts with the time it was waited for.
    pub(super) response: Histogram,
    /// Within the server, and without.
    pub(super) server: Histogram,
    pub(super) network: Histogram,
    /// Sums of ping's arithmetic, in whole us.
    pub(super) sum_us: u128,
    pub(super) sum_squares: u128,
    pub(super) lines: Vec<Line>,
    pub(super) worst: Vec<Slow>,
    pub(super) seconds: Vec<Second>,
    pub(super) elapsed_ns: Ns,
    pub(super) retransmits: Option<u64>,
    /// How late the requests went, those whose turn had come in time.
    pub(super) late: Histogram,
    pub(super) is_stopped: bool,
    /// Why there was nobody to talk to any more; empty where there was.
    pub(super) gone: String,
}

impl Tally {
    fn answered(&mut self, seq: u64, (due, sent, now): (Ns, Ns, Ns), reply: way::Reply) {
        let (service, response) = (now - sent, now - due);
        self.service.record(service);
        self.response.record(response);
        if let Some(server) = reply.server_ns {
            self.server.record(server);
            self.network.record(service.saturating_sub(server));
        }
        let us = u128::from(service / 1000);
        self.sum_us += us;
        self.sum_squares += us * us;
        self.strays += reply.strays;
        if self.lines.len() < LINES_MOST {
            self.lines.push(Line { seq, ttl: reply.ttl, service_ns: service });
        }
        let second = self.second(due);
        second.service.record(service);
        second.response.record(response);
        self.remember(Slow { seq, at_ns: due, service_ns: service, response_ns: response, is_lost: false });
    }

    fn is_lost(&mut self, seq: u64, due: Ns, sent: Ns, now: Ns) {
        self.lost += 1;
        self.response.record(now - due);
        let second = self.second(due);
        second.lost += 1;
        second.response.record(now - due);
        self.remember(Slow { seq, at_ns: due, service_ns: now - sent, response_ns: now - due, is_lost: true });
    }

    /// A request that met an error, the last of so many in a row; whether there is nobody to talk to any more.
    fn failed(&mut self, error: &io::Error, in_a_row: u64, is_connected: bool) -> bool {
        self.errors += 1;
        if self.error.is_empty() {
            self.error = error.to_string();
        }
        is_connected || in_a_row >= ERRORS_MOST
    }

    fn second(&mut self, at_ns: Ns) -> &mut Second {
        let at = (at_ns / NS_PER_S) as usize;
        if self.seconds.len() <= at {
            self.seconds.resize(at + 1, Second::default());
        }
        &mut self.seconds[at]
    }

    /// Keeps the slowest round trips. By the time since they were due the requests that waited behind a slow one, each
    /// quick itself, would crowd it out.
    fn remember(&mut self, slow: Slow) {
        let least = self.worst.last().map_or(0, |slow| slow.service_ns);
        if self.worst.len() >= WORST && slow.service_ns <= least {
            return;
        }
        let at = self.worst.partition_point(|other| other.service_ns >= slow.service_ns);
        self.worst.insert(at, slow);
        self.worst.truncate(WORST);
    }

    /// The standard deviation of the population as ping computes it, us.
    pub(super) fn us_mdev(&self) -> Option<f64> {
        let count = u128::from(self.service.count());
        let mean = self.sum_us.checked_div(count)?;
        let square = self.sum_squares / count;
        Some((square.saturating_sub(mean * mean) as f64).sqrt().floor())
    }

    /// ping's mean, in whole us.
    pub(super) fn us_avg(&self) -> Option<u64> {
        let count = u128::from(self.service.count());
        self.sum_us.checked_div(count).map(|us| us as u64)
    }
}

/// Sends and waits until the time is over, so many were sent, somebody stops it or there is nobody to talk to any more.
pub(super) fn run(ask: &Ask, way: &mut dyn Way, rate: f64, stop: &Stop, steps: &dyn Steps, of: usize) -> Tally {
    // The kernel wakes a thread that asks for it at its instant, not 50 us later.
    let _ = set_timer_slack(1);
    let clock = Clock::real();
    let begun = clock.now_ns();
    let now = || clock.now_ns() - begun;
    let end = end_ns(ask);
    let mut tally = Tally::default();
    let before = way::retransmits(way);
    let (mut step, mut errors, mut answered, mut seq) = (0, 0, 0, 0_u64);
    loop {
        let due = if ask.is_flood { now() } else { (seq as f64 * 1e9 / rate) as Ns };
        let is_over = |at: Ns| at >= end || ask.count.is_some_and(|count| seq >= count);
        if is_over(due) || is_over(now()) || !sleep_until(due.min(end), &now, stop) {
            break;
        }
        let second = ((now() / NS_PER_S) as usize + 1).min(of);
        while step < second {
            step += 1;
            steps.step(step, of, &told(&tally));
        }
        let sent = now();
        tally.late.record(sent - due);
        tally.sent += 1;
        seq += 1;
        let came = way.exchange(seq, ask.timeout);
        match &came {
            Ok(Some(reply)) => tally.answered(seq, (due, sent, now()), *reply),
            Ok(None) | Err(_) => tally.is_lost(seq, due, sent, now()),
        }
        match came {
            Ok(Some(_)) => (errors, answered) = (0, now()),
            Ok(None) if way.tcp().is_some() && now() - answered >= ask.patience.as_nanos() as Ns => {
                // A connection loses nothing by itself: one that is silent for so long is none any more.
                tally.gone = gone(ask, way.name(), &tally, &silent(ask.patience));
                break;
            }
            Ok(None) => errors = 0,
            Err(error) => {
                errors += 1;
                if tally.failed(&error, errors, way.tcp().is_some()) {
                    tally.gone = gone(ask, way.name(), &tally, &error);
                    break;
                }
            }
        }
    }
    tally.is_stopped = stop.requested();
    while step < of && !tally.is_stopped && tally.gone.is_empty() {
        step += 1;
        steps.step(step, of, &told(&tally));
    }
    tally.elapsed_ns = now();
    tally.retransmits = before.zip(way::retransmits(way)).map(|(then, now)| now - then);
    tally
}

/// When the test is over; of one that counts its requests, never by time.
fn end_ns(ask: &Ask) -> Ns {
    match ask.count {
        Some(_) => Ns::MAX,
        None => ask.time.as_nanos() as Ns,
    }
}

fn silent(patience: Duration) -> String {
    format!("no answer within {} s", patience.as_secs_f64())
}

fn gone(ask: &Ask, method: &str, tally: &Tally, error: &dyn Display) -> String {
    format!(
        "{}: {error} ({method}); {} of {} requests were answered before",
        ask.host,
        tally.service.count(),
        tally.sent
    )
}

/// Sleeps, but not past a stop; whether to go on.
fn sleep_until(due: Ns, now: &dyn Fn() -> Ns, stop: &Stop) -> bool {
    loop {
        if stop.requested() {
            return false;
        }
        let left = due.saturating_sub(now());
        if left == 0 {
            return true;
        }
        std::thread::sleep(Duration::from_nanos(left.min(LOOK_NS)));
    }
}

fn told(tally: &Tally) -> String {
    match tally.service.mean_ns() {
        Some(ns) => format!("{} sent, mean {:.3} ms, {} lost", tally.sent, ns / 1e6, tally.lost),
        None => "measuring".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ping_16_mdev_is_the_standard_deviation_of_the_population_and_says_nothing_of_the_bulk() {
        let mut tally = Tally::default();
        for seq in 0..9665_u64 {
            let ns = if seq % 3000 == 77 && seq < 9000 { 199_700_000 } else { 100_000 };
            tally.answered(seq, (0, 0, ns), way::Reply::default());
        }
        let (n, slow, quick) = (9665.0_f64, 199_700.0_f64, 100.0_f64);
        let mean = (3.0 * slow + 9662.0 * quick) / n;
        let square = (3.0 * slow * slow + 9662.0 * quick * quick) / n;
        let wanted = (square - mean * mean).sqrt();
        let got = tally.us_mdev().unwrap();
        assert!((got - wanted).abs() < 2.0, "{got} {wanted}");
        assert!((3400.0..3600.0).contains(&got), "{got}");
        for q in [0.5, 0.99] {
            let ns = tally.service.percentile_ns(q).unwrap() as f64;
            assert!((ns / 1e5 - 1.0).abs() < 0.02, "{q}: {ns}");
        }
        assert_eq!(tally.worst.len(), WORST);
        assert_eq!(tally.worst.iter().filter(|slow| slow.service_ns > 1_000_000).count(), 3);
    }

    #[test]
    fn a_stall_stays_among_the_worst_although_those_behind_it_were_later() {
        let mut tally = Tally::default();
        tally.answered(1, (0, 0, NS_PER_S), way::Reply::default());
        // The backlog grows: each is quick, and later after its due time than the one that was held.
        for seq in 2..100 {
            let sent = 3 * NS_PER_S + seq;
            tally.answered(seq, (seq, sent, sent + 1000), way::Reply::default());
        }
        assert_eq!(tally.worst[0].seq, 1);
        assert!(tally.worst[1..].iter().all(|slow| slow.service_ns == 1000));
    }

    #[test]
    fn the_worst_are_the_worst_in_order() {
        let mut tally = Tally::default();
        for seq in 0..100 {
            let ns = (seq * 37 % 101) * 1000;
            tally.answered(seq, (0, 0, ns), way::Reply::default());
        }
        let worst: Vec<u64> = tally.worst.iter().map(|slow| slow.service_ns / 1000).collect();
        let mut all: Vec<u64> = (0..100).map(|seq| seq * 37 % 101).collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(worst, all[..10]);
    }
}
