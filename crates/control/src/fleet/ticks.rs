//! What the hosts of a run tell each second, as the readings of one run.
//!
//! A second is told when every host at work has told it. A host that says nothing is not waited for: what comes of it later
//! is in a later second. All of it is only shown; the record is of what the hosts keep.

use super::message::Tick;
use assay_measure::snapshot::{DriverReading, Mark, Snapshot};
use std::collections::VecDeque;

/// Ticks of one second are less than this apart.
const NEAR_NS: u64 = 500_000_000;

/// See the module.
#[derive(Debug)]
pub(super) struct TickMerge {
    hosts: Vec<HostTicks>,
    /// Of all ticks that were taken.
    all: DriverReading,
    /// The measured window has begun.
    has_begun: bool,
    /// The last second that was told, ns after the gate.
    told_ns: u64,
}

/// What is known of one host.
#[derive(Debug, Default)]
struct HostTicks {
    /// Not taken yet.
    waiting: VecDeque<Tick>,
    /// The last one that was taken: its gauges are those of now.
    taken: DriverReading,
    /// Its last second, ns after the gate.
    at_ns: u64,
    has_begun: bool,
}

impl TickMerge {
    /// Of so many hosts, which have told nothing yet.
    pub(super) fn new(hosts: usize) -> Self {
        let hosts = std::iter::repeat_with(HostTicks::default).take(hosts).collect();
        Self { hosts, all: DriverReading::default(), has_begun: false, told_ns: 0 }
    }

    /// A host has told a second.
    pub(super) fn take(&mut self, host: usize, tick: Tick) {
        let Some(host) = self.hosts.get_mut(host).filter(|_| tick.mark != Mark::Drained) else {
            return;
        };
        host.at_ns = host.at_ns.max(tick.at_ns);
        host.has_begun |= tick.mark == Mark::Begin;
        host.waiting.push_back(tick);
    }

    /// Sessions of a host that are at work.
    pub(super) fn sessions(&self, host: usize) -> u64 {
        self.hosts.get(host).map_or(0, |host| host.taken.sessions_active)
    }

    /// The readings at the seconds that all hosts at work have told since the last time; the first of the window with its mark.
    pub(super) fn told(&mut self, is_at_work: impl Fn(usize) -> bool) -> Vec<(Mark, Snapshot)> {
        let at_work = || self.hosts.iter().enumerate().filter(|(at, _)| is_at_work(*at)).map(|(_, host)| host);
        let last_ns = self.hosts.iter().map(|host| host.at_ns).max().unwrap_or(0);
        let until_ns = at_work().map(|host| host.at_ns).min().unwrap_or(last_ns);
        let begins =
            !self.has_begun && self.hosts.iter().any(|host| host.has_begun) && at_work().all(|host| host.has_begun);
        let mut told = Vec::new();
        if begins {
            self.has_begun = true;
            let mut begun_ns = 0;
            for host in &mut self.hosts {
                while let Some(tick) = host.waiting.pop_front() {
                    let is_begin = tick.mark == Mark::Begin;
                    host.taken = add(&mut self.all, &tick);
                    if is_begin {
                        begun_ns = begun_ns.max(tick.at_ns);
                        break;
                    }
                }
            }
            told.push((Mark::Begin, self.now(begun_ns)));
        }
        if until_ns <= self.told_ns {
            return told;
        }
        for host in &mut self.hosts {
            let is_due =
                |tick: &mut Tick| tick.at_ns < until_ns + NEAR_NS && (self.has_begun || tick.mark != Mark::Begin);
            while let Some(tick) = host.waiting.pop_front_if(is_due) {
                host.taken = add(&mut self.all, &tick);
            }
        }
        told.push((Mark::Second, self.now(until_ns)));
        told
    }

    /// All hosts' readings, as of this instant.
    fn now(&mut self, at_ns: u64) -> Snapshot {
        self.told_ns = self.told_ns.max(at_ns);
        let of = |gauge: fn(&DriverReading) -> u64| self.hosts.iter().map(|host| gauge(&host.taken)).sum();
        let driver = DriverReading {
            sessions_active: of(|driver| driver.sessions_active),
            in_flight: of(|driver| driver.in_flight),
            in_flight_ns: of(|driver| driver.in_flight_ns),
            threads: of(|driver| driver.threads),
            ..self.all.clone()
        };
        Snapshot { at_ns, driver, ..Snapshot::default() }
    }
}

/// Adds what was done in a tick; its gauges.
fn add(all: &mut DriverReading, tick: &Tick) -> DriverReading {
    let mut driver = tick.driver.clone();
    for op in driver.ops.iter_mut().filter(|op| op.response.is_empty()) {
        op.response.clone_from(&op.service);
    }
    all.merge(&driver);
    DriverReading { ops: Vec::new(), ..driver }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measure::histogram::Histogram;
    use assay_measure::snapshot::OpReading;

    const S: u64 = 1_000_000_000;

    /// A host that ended three operations of `ms` since its tick before.
    fn tick(at_ns: u64, mark: Mark, ms: u64) -> Tick {
        let mut service = Histogram::default();
        service.record_n(ms * 1_000_000, 3);
        let op = OpReading { kind: "select".to_owned(), rows: 3, service, response: Histogram::default() };
        let driver = DriverReading { ops: vec![op], sessions_active: 2, retries: 1, ..DriverReading::default() };
        Tick { at_ns, mark, ops: 0, driver }
    }

    fn brief(told: &[(Mark, Snapshot)]) -> Vec<(Mark, u64, u64)> {
        told.iter().map(|(mark, now)| (*mark, now.at_ns / S, now.driver.ops_ended())).collect()
    }

    #[test]
    fn a_second_is_told_when_all_hosts_at_work_have_told_it() {
        let mut ticks = TickMerge::new(2);
        ticks.take(0, tick(S + 1000, Mark::Second, 1));
        assert_eq!(brief(&ticks.told(|_| true)), [], "the other one is waited for");
        ticks.take(1, tick(S, Mark::Second, 2));
        ticks.take(1, tick(2 * S, Mark::Second, 2));
        assert_eq!(brief(&ticks.told(|_| true)), [(Mark::Second, 1, 6)], "a second that one host has is not told yet");
        // The first one says nothing any more.
        ticks.take(1, tick(3 * S, Mark::Second, 2));
        let told = ticks.told(|host| host == 1);
        assert_eq!(brief(&told), [(Mark::Second, 3, 12)]);
        let now = &told[0].1.driver;
        assert_eq!(
            (now.sessions_active, now.retries, ticks.sessions(1)),
            (4, 4, 2),
            "gauges are of now, counts are added"
        );
        assert_eq!(now.ops[0].response, now.ops[0].service, "a response that took as long as the service is not sent");
        assert_eq!(brief(&ticks.told(|_| false)), [], "nothing is new");
    }

    #[test]
    fn the_window_begins_when_it_has_begun_everywhere() {
        let mut ticks = TickMerge::new(2);
        for host in 0..2 {
            ticks.take(host, tick(S, Mark::Second, 1));
        }
        ticks.take(0, tick(3 * S / 2, Mark::Begin, 1));
        ticks.take(0, tick(2 * S, Mark::Second, 1));
        assert_eq!(brief(&ticks.told(|_| true)), [(Mark::Second, 1, 6)]);
        ticks.take(1, tick(3 * S / 2, Mark::Begin, 1));
        ticks.take(1, tick(2 * S, Mark::Second, 1));
        assert_eq!(brief(&ticks.told(|_| true)), [(Mark::Begin, 1, 12), (Mark::Second, 2, 18)]);
        ticks.take(0, tick(3 * S, Mark::Drained, 1));
        assert_eq!(brief(&ticks.told(|_| false)), [], "what comes after the end belongs to no second");
    }

    #[test]
    fn what_a_late_host_tells_afterwards_is_not_lost() {
        let mut ticks = TickMerge::new(2);
        ticks.take(0, tick(5 * S, Mark::Second, 1));
        assert_eq!(brief(&ticks.told(|host| host == 0)), [(Mark::Second, 5, 3)]);
        ticks.take(1, tick(4 * S, Mark::Second, 1));
        ticks.take(1, tick(6 * S, Mark::Second, 1));
        ticks.take(0, tick(6 * S, Mark::Second, 1));
        assert_eq!(brief(&ticks.told(|_| true)), [(Mark::Second, 6, 12)]);
    }
}
