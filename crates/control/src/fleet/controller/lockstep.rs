//! Starts: of the run, and of the steps of its plan, each at one instant of all hosts.

use super::{Host, MARGIN, MARGIN_OF_HOST, NAMED, Watch};
use crate::fleet::clock::mono_ns;
use crate::fleet::message::{Answer, Begin, Phase, Request};

impl Host {
    /// Whether it is waited for before a step.
    fn is_under_way(&self) -> bool {
        !self.is_lost() && self.phase < Phase::Ended
    }
}

/// The step that begins next; none while a host is at work or has not been heard of. It is the first beyond the last one that
/// anybody waits for: who could not begin one waits for a later one. Hosts that missed steps wait for earlier ones, and go on with it.
fn next_step(hosts: &[Host], last: u64) -> Option<u64> {
    let waits = hosts.iter().filter(|host| host.is_under_way()).map(|host| host.waits);
    let waits: Vec<u64> = waits.collect::<Option<_>>()?;
    let beyond = waits.iter().copied().filter(|step| *step > last).min();
    beyond.or(waits.into_iter().min())
}

impl Watch<'_> {
    /// Orders the next step, if it is time for it.
    pub(super) async fn lockstep(&mut self) {
        if let Some(step) = next_step(&self.hosts, self.step) {
            self.order(step).await;
        }
    }

    /// Has the hosts that wait for this step, or for an earlier one, begin it at one instant: that, by the controller's clock.
    pub(super) async fn order(&mut self, step: u64) -> u64 {
        // Every host must have heard of it before it comes: those that answered slowest say how long that may take.
        let slowest = self.hosts.iter().filter_map(|host| host.result.control.max_ns()).max().unwrap_or(0);
        let margin = MARGIN + MARGIN_OF_HOST * self.hosts.len() as u32;
        let at_ns = mono_ns() + (margin.as_nanos() as u64).max(4 * slowest);
        let run = self.plan.spec.run.clone();
        let is_meant = |host: &Host| host.is_under_way() && host.waits.is_some_and(|waits| waits <= step);
        let answers = self.ask_all(|host| {
            let reads_server = self.plan.readers.contains(&host.result.hello.instance);
            let begin = Begin { at_ns: host.result.offset.to_host(at_ns), reads_server, step };
            is_meant(host).then(|| Request::Start { run: run.clone(), begin })
        });
        let answers = answers.await;
        for (name, answer) in answers {
            match answer {
                Ok(Answer::Accepted { .. }) => {}
                Ok(Answer::Refused { reason }) => self.watcher.say(&format!("warning: {name}: {reason}")),
                _ => self.watcher.say(&format!("warning: {name} did not confirm the start")),
            }
        }
        self.hosts.iter_mut().filter(|host| is_meant(host)).for_each(|host| host.waits = None);
        (self.step, self.ordered_ns) = (step, mono_ns());
        at_ns
    }

    /// Whom the others wait for, to go on.
    pub(super) fn waited_for(&self) -> String {
        let under_way = || self.hosts.iter().filter(|host| host.is_under_way());
        let at_work: Vec<&str> =
            under_way().filter(|host| host.waits.is_none()).map(|host| host.result.hello.name.as_str()).collect();
        let is_waited_for = !at_work.is_empty() && at_work.len() < under_way().count();
        if is_waited_for {
            format!("; waiting for {}", at_work[..at_work.len().min(NAMED)].join(", "))
        } else {
            String::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::clock::Offset;
    use crate::fleet::message::Hello;

    fn host(phase: Phase, waits: Option<u64>) -> Host {
        Host { phase, waits, ..Host::of(&Hello::default(), &Offset::default()) }
    }

    fn next(waits: &[Option<u64>], last: u64) -> Option<u64> {
        let hosts: Vec<Host> = waits.iter().map(|waits| host(Phase::Running, *waits)).collect();
        next_step(&hosts, last)
    }

    #[test]
    fn a_step_begins_when_every_host_waits_for_it() {
        assert_eq!(next(&[Some(1), Some(1), None], 0), None, "one is at work");
        assert_eq!(next(&[Some(1), Some(1), Some(1)], 0), Some(1));
        assert_eq!(next(&[Some(3), Some(2), Some(3)], 1), Some(2), "two could not begin the second");
        assert_eq!(next(&[Some(2), Some(5), Some(5)], 4), Some(5), "one missed three, and goes on with the others");
        assert_eq!(next(&[Some(3), Some(4)], 4), Some(3), "nobody is beyond: who missed one makes it");
        assert_eq!(next(&[None, None], 0), None, "a run without steps");
        assert_eq!(next(&[], 0), None);
    }

    #[test]
    fn a_host_that_is_lost_or_has_ended_is_not_waited_for() {
        let mut hosts = vec![host(Phase::Running, Some(4)), host(Phase::Running, None), host(Phase::Kept, None)];
        assert_eq!(next_step(&hosts, 3), None);
        hosts[1].result.lost = "nothing heard for 10 s".to_owned();
        assert_eq!(next_step(&hosts, 3), Some(4));
        // Of a run that another controller began, nothing is known before the first beat.
        hosts[1] = host(Phase::Idle, None);
        assert_eq!(next_step(&hosts, 0), None);
    }
}
