//! Who used the host's CPUs during a record: this test, other processes, the hypervisor.

use crate::kind::Limit;
use crate::record::Record;
use crate::units::fixed;

/// From this share of busy CPU on, the limit must name the CPU, %.
pub const BUSY_PCT: f64 = 90.0;
/// From this share on, other processes change the figures, % of the host's CPU time.
pub const OTHERS_PCT: f64 = 10.0;
/// Steal from this share on changes the figures, %.
pub const STEAL_PCT: f64 = 5.0;
/// Steal from this share on is told where what a CPU does is itself measured, %.
pub const STEAL_TOLD_PCT: f64 = 1.0;
/// Who had no CPU for more of the time than this was held up by the host, whatever else it waited for, %.
const HALF_PCT: f64 = 50.0;
/// A control group's quota that withheld CPU for this share of the window changes them, %.
const THROTTLED_PCT: f64 = 5.0;

/// How the host's CPU time was shared out, each in % of the total CPU time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// Not idle, with steal.
    pub busy: f64,
    /// Of this test: its process, and the server it drove on this host.
    pub own: f64,
    /// Of other processes, plus unattributed kernel time, without steal.
    pub others: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
}

/// CPU seconds of a server on this host; an engine of our own is part of the process.
fn server_s(record: &Record) -> f64 {
    let model = &record.instance.time_model;
    let cpu_us = || model.db_cpu_us.value().unwrap_or(0.0) + model.bg_cpu_us.value().unwrap_or(0.0);
    let server = record.instance.server.as_ref();
    server.map_or(0.0, |_| cpu_us() / 1e6)
}

/// Who used the CPUs; `None` if the record has no CPU figures of the host or of the process.
#[must_use]
pub fn shares(record: &Record) -> Option<Shares> {
    let pct = |name: &str| record.os.cpu_pct.get(name)?.value();
    let elapsed = record.interval.elapsed_s.value().filter(|s| *s > 0.0)?;
    let cpus = record.os.cpus_count.value().filter(|cpus| *cpus > 0.0)?;
    let busy = pct("busy")?;
    let own_s = record.os.process.cpu_s.value()? + server_s(record);
    let own = (100.0 * own_s / (elapsed * cpus)).min(busy);
    let steal = pct("steal").unwrap_or(0.0);
    Some(Shares { busy, own, others: (busy - own - steal).max(0.0), steal })
}

/// The host as a limit, and what it cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// As a limit, with who used the CPUs.
    pub limit: Limit,
    /// Time of the test's own sessions or threads that was ready to run without a CPU, %; none where nobody counted.
    delay_pct: Option<f64>,
    /// The same, or what the hypervisor withheld, whichever is more.
    cost_pct: Option<f64>,
    /// A quota withheld the CPUs, or the test itself used them up, while its sessions waited in turn: no matter of weight.
    is_proved: bool,
}

impl Host {
    /// Whether it cost more than so much of the time, %, or half of it, for waits include it; where nobody counted it may have.
    #[must_use]
    pub fn outweighs(&self, pct: f64) -> bool {
        self.is_proved || self.cost_pct.is_none_or(|cost| cost >= pct.min(HALF_PCT))
    }

    /// A limit with the host told beside it, with what it cost.
    #[must_use]
    pub fn beside(&self, own: Limit) -> Limit {
        let told = self.limit.evidence.split(" Wait times include").next().unwrap_or_default();
        let cost = self.delay_pct.map_or_else(String::new, |pct| {
            format!(" That cost this test {} % of its time (ready to run, without a CPU).", fixed(pct, 1))
        });
        Limit { evidence: format!("{} {told}{cost}", own.evidence), ..own }
    }
}

/// Share of the time of a record's sessions and driver threads that was ready to run without a CPU, %; none where nobody
/// counted it.
#[must_use]
pub fn delayed_pct(record: &Record) -> Option<f64> {
    let model = &record.instance.time_model;
    let queue = || Some(model.run_queue_us.value()? / model.db_time_us.value()?);
    let known = [threads_delayed(record), queue()].into_iter().flatten().filter(|share| share.is_finite());
    known.reduce(f64::max).map(|share| (100.0 * share).min(100.0))
}

/// Share of the window in which a driver thread was ready but had no CPU, 0..1.
fn threads_delayed(record: &Record) -> Option<f64> {
    let all_s = record.driver.threads_count as f64 * record.interval.elapsed_s.value()?;
    Some(record.driver.thread_run_delay_s.value()? / all_s).filter(|share| share.is_finite())
}

/// The limit by weight: the host where it cost more than the `pct` of the time that `own` explains, else `own` with the host
/// beside it.
#[must_use]
pub fn weighed(host: Option<Host>, pct: f64, own: Limit) -> Limit {
    match host {
        Some(host) if host.outweighs(pct) => host.limit,
        Some(host) => host.beside(own),
        None => own,
    }
}

/// A limit that the run proved: the host comes first only where it is known to have cost half the time.
#[must_use]
pub fn proved(host: Option<Host>, own: Limit) -> Limit {
    match host {
        Some(host) if host.cost_pct.is_some_and(|cost| cost >= HALF_PCT) => host.limit,
        Some(host) => host.beside(own),
        None => own,
    }
}

/// A cap, with the host beside it: no CPU would have lifted the rate above it.
#[must_use]
pub fn capped(host: Option<Host>, cap: Limit) -> Limit {
    host.map_or_else(|| cap.clone(), |host| host.beside(cap.clone()))
}

/// The host as the limit where nothing else is known of what took the time, as [`host`] without a weight.
#[must_use]
pub fn limit(record: &Record) -> Option<Limit> {
    host(record, None).map(|host| host.limit)
}

/// The host as the limit: CPUs that other processes take, that the hypervisor or a quota withholds, or that the test uses
/// up. `delay_pct` is the share of the test's own time that was ready to run without a CPU, where it was counted.
#[must_use]
pub fn host(record: &Record, delay_pct: Option<f64>) -> Option<Host> {
    let shares = shares(record)?;
    let withheld = if shares.steal >= STEAL_TOLD_PCT {
        format!(", {} % withheld by the hypervisor (steal)", fixed(shares.steal, 0))
    } else {
        String::new()
    };
    let told = format!(
        "The host's CPUs were {} % busy: {} % with this test, {} % with other processes{withheld}.",
        fixed(shares.busy, 0),
        fixed(shares.own, 0),
        fixed(shares.others, 0)
    );
    let cost_pct = delay_pct.map(|pct| pct.max(shares.steal));
    let throttled = record.os.cgroup_throttled_us.value().unwrap_or(0.0);
    let elapsed = record.interval.elapsed_s.value().unwrap_or(0.0);
    let throttled_pct = 100.0 * throttled / (elapsed * 1e6).max(1.0);
    if throttled_pct >= THROTTLED_PCT {
        let limit = Limit::new(
            "the CPU quota of this control group",
            format!("It stopped the test for {} s of {} s. {told}", fixed(throttled / 1e6, 1), fixed(elapsed, 0)),
        );
        return Some(Host { limit, delay_pct, cost_pct, is_proved: true });
    }
    let weighed = |limit| Host { limit, delay_pct, cost_pct, is_proved: false };
    if shares.steal >= STEAL_PCT {
        return Some(weighed(Limit::new("the hypervisor, which withheld CPU time", told)));
    }
    if shares.busy < BUSY_PCT {
        return None;
    }
    let what = if shares.others >= shares.own.max(OTHERS_PCT) {
        "the host's CPUs, which other processes kept busy"
    } else if shares.others >= OTHERS_PCT {
        "the host's CPUs, which this test shared with other processes"
    } else {
        "the host's CPUs, which this test used up"
    };
    let limit = Limit::new(what, format!("{told} Wait times include the time until a CPU was free."));
    Some(Host { is_proved: shares.others < OTHERS_PCT, ..weighed(limit) })
}

/// When [`disturbed`] says something, for the rules that repeat it.
#[must_use]
pub fn disturbs() -> String {
    format!(
        "Other processes used at least {OTHERS_PCT} % of the host's CPU time, or the hypervisor withheld at least \
         {STEAL_PCT} %"
    )
}

/// The effect of other processes on the figures, in one sentence; nothing if there was none.
#[must_use]
pub fn disturbed(record: &Record) -> Option<String> {
    let shares = shares(record)?;
    let mut said: Vec<String> = others(shares).into_iter().collect();
    if shares.steal >= STEAL_PCT {
        said.push(format!("the hypervisor withheld {} % of CPU time", fixed(shares.steal, 0)));
    }
    (!said.is_empty()).then(|| said.join(" and "))
}

/// What other processes took, in words; nothing if it was little.
#[must_use]
pub fn others(shares: Shares) -> Option<String> {
    let told = || format!("other processes used {} % of the host's CPU time", fixed(shares.others, 0));
    (shares.others >= OTHERS_PCT).then(told)
}

/// The largest share of its rate that a [`disturbed`] run may have lost to other processes, 0..1: their share of the
/// CPUs, or the share of the window in which a driver thread was ready but had no CPU, whichever is more. 0 if the run
/// was not disturbed.
#[must_use]
pub fn lost_share(record: &Record) -> f64 {
    // A run that made any progress was left something.
    const MOST: f64 = 0.99;
    let Some(shares) = disturbed(record).and_then(|_| shares(record)) else {
        return 0.0;
    };
    let waited = threads_delayed(record).unwrap_or_default();
    let taken = (shares.others + shares.steal) / 100.0;
    taken.max(waited).clamp(0.0, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Figure, ServerInfo};

    fn host(busy: f64, own_s: f64) -> Record {
        let mut record = Record::default();
        record.interval.elapsed_s = Figure::decimal(10.0);
        record.os.cpus_count = Figure::Count(2);
        record.os.cpu_pct.insert("busy".to_owned(), Figure::decimal(busy));
        record.os.process.cpu_s = Figure::decimal(own_s);
        record
    }

    #[test]
    fn a_busy_host_is_named_with_who_kept_it_busy() {
        let what = |busy, own_s| limit(&host(busy, own_s)).map(|limit| limit.what);
        assert_eq!(what(50.0, 2.0), None);
        assert_eq!(what(99.0, 2.0).as_deref(), Some("the host's CPUs, which other processes kept busy"));
        assert_eq!(what(99.0, 16.0).as_deref(), Some("the host's CPUs, which this test shared with other processes"));
        assert_eq!(what(99.0, 19.0).as_deref(), Some("the host's CPUs, which this test used up"));
    }

    /// 99 % busy with other processes, while the test's own threads waited for a CPU for 5 % of their time.
    #[test]
    fn a_busy_host_is_the_limit_only_where_it_cost_most() {
        let device = || Limit::new("the device", "It took 92 % of the time.");
        let of = |delay| weighed(super::host(&host(99.0, 2.0), delay), 92.0, device());
        assert!(of(None).what.contains("other processes kept busy"));
        assert!(of(Some(95.0)).what.contains("other processes kept busy"));
        let found = of(Some(5.0));
        assert_eq!(found.what, "the device");
        let beside = "It took 92 % of the time. The host's CPUs were 99 % busy: 10 % with this test, 89 % with other \
                      processes. That cost this test 5.0 % of its time (ready to run, without a CPU).";
        assert_eq!(found.evidence, beside);
        // What the test itself used up is no matter of weight; what it shared with others is.
        assert!(weighed(super::host(&host(99.0, 19.0), Some(1.0)), 92.0, device()).what.contains("used up"));
        assert_eq!(weighed(super::host(&host(99.0, 16.0), Some(1.0)), 92.0, device()).what, "the device");
        // What a hypervisor withheld is told as that, and weighs as much.
        let mut stolen = host(99.0, 2.0);
        stolen.os.cpu_pct.insert("steal".to_owned(), Figure::decimal(15.0));
        let found = weighed(super::host(&stolen, Some(2.0)), 92.0, device());
        assert!(
            found.evidence.contains("15 % withheld") && found.evidence.contains("cost this test 2.0 %"),
            "{found:?}"
        );
        assert_eq!(weighed(super::host(&host(50.0, 2.0), Some(5.0)), 92.0, device()), device());
    }

    #[test]
    fn the_time_without_a_cpu_is_that_of_sessions_or_of_threads_whichever_is_more() {
        let mut record = host(99.0, 2.0);
        assert_eq!(delayed_pct(&record), None);
        record.driver.threads_count = 2;
        record.driver.thread_run_delay_s = Figure::decimal(1.0);
        assert_eq!(delayed_pct(&record), Some(5.0));
        record.instance.time_model.db_time_us = Figure::decimal(40e6);
        record.instance.time_model.run_queue_us = Figure::decimal(10e6);
        assert_eq!(delayed_pct(&record), Some(25.0));
    }

    #[test]
    fn a_server_on_the_host_is_part_of_the_test() {
        let mut record = host(95.0, 4.0);
        assert!(disturbed(&record).is_some());
        record.instance.server = Some(ServerInfo::default());
        record.instance.time_model.db_cpu_us = Figure::decimal(14e6);
        let shares = shares(&record).expect("all figures are there");
        assert!((shares.own - 90.0).abs() < 1e-9);
        assert!((shares.others - 5.0).abs() < 1e-9);
        assert_eq!(disturbed(&record), None);
    }

    /// Steal counts as busy in the kernel's figures; it is no other process.
    #[test]
    fn steal_is_not_taken_for_other_processes() {
        let mut record = host(60.0, 6.0);
        record.os.cpu_pct.insert("steal".to_owned(), Figure::decimal(25.0));
        let found = shares(&record).expect("all figures are there");
        assert_eq!((found.own, found.others, found.steal), (30.0, 5.0, 25.0));
        assert_eq!(disturbed(&record).as_deref(), Some("the hypervisor withheld 25 % of CPU time"));
        assert_eq!(lost_share(&record), 0.3);
    }

    #[test]
    fn a_run_lost_to_others_what_they_took_or_what_its_threads_waited() {
        assert_eq!(lost_share(&host(50.0, 9.9)), 0.0);
        let mut record = host(99.0, 10.0);
        assert!((lost_share(&record) - 0.49).abs() < 1e-9);
        record.driver.threads_count = 2;
        record.driver.thread_run_delay_s = Figure::decimal(12.0);
        assert!((lost_share(&record) - 0.6).abs() < 1e-9);
        record.driver.thread_run_delay_s = Figure::decimal(90.0);
        assert_eq!(lost_share(&record), 0.99);
    }

    #[test]
    fn steal_and_a_quota_come_before_the_busy_host() {
        let mut record = host(60.0, 2.0);
        record.os.cpu_pct.insert("steal".to_owned(), Figure::decimal(20.0));
        let found = limit(&record).expect("steal is a limit");
        assert!(found.what.contains("hypervisor"), "{found:?}");
        record.os.cgroup_throttled_us = Figure::decimal(2e6);
        let found = limit(&record).expect("a quota is a limit");
        assert!(found.what.contains("quota"), "{found:?}");
    }
}
