//! Every message to several standbys at once, one commit after the other: the commit rule decides when the next may go,
//! and every other rule is derived from the same acknowledgements.

use super::alone::Work;
use super::ask::Local;
use super::link::{AWAITED, Link};
use super::payload::Pool;
use super::quorum::Rule;
use super::reading::{Parts, Slow, Stream};
use super::scribe::Scribe;
use super::wire::{ACK_BYTES, Ack, END, HEADER_BYTES, Header};
use crate::peer::line::{PeerError, is_wait};
use assay_block::socket::TcpInfo;
use assay_measure::clock::{NS_PER_S, Ns};
use assay_measure::histogram::Histogram;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::io::{IoSlice, Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A wait for acknowledgements looks this often at requests to stop.
const PIECE_NS: Ns = 100_000_000;

/// One standby in the crowd.
pub(super) struct Member {
    pub(super) link: Link,
    pub(super) parts: Parts,
    /// What the kernel said of the connection in each second.
    pub(super) tcp_seconds: Vec<Option<TcpInfo>>,
    /// Why and when it was lost, from the start of the test.
    pub(super) lost: Option<(String, Ns)>,
    /// Messages wholly handed to its socket, and bytes of the next that are.
    sent: u64,
    partial: usize,
    acked: u64,
    /// Bytes of an acknowledgement that has begun.
    heard: Vec<u8>,
    /// Since when it owes an answer.
    owes_ns: Ns,
}

impl Member {
    pub(super) fn new(link: Link) -> Self {
        Self {
            link,
            parts: Parts::default(),
            tcp_seconds: Vec::new(),
            lost: None,
            sent: 0,
            partial: 0,
            acked: 0,
            heard: Vec::with_capacity(ACK_BYTES),
            owes_ns: 0,
        }
    }
}

/// A message that not every standby has acknowledged yet.
struct Pending {
    sequence: u64,
    start_ns: Ns,
    /// The local write before it.
    local_ns: Ns,
    is_done: bool,
    /// When each acknowledged it.
    acks: Vec<Option<Ns>>,
}

/// All of them.
pub(super) struct Crowd<'a> {
    work: &'a Work<'a>,
    pub(super) members: Vec<Member>,
    pool: Pool,
    scribe: Scribe,
    pending: VecDeque<Pending>,
    issued: u64,
    begun: Ns,
    pub(super) stream: Stream,
    /// Latency under every rule.
    pub(super) rules: Vec<(Rule, Histogram)>,
}

impl<'a> Crowd<'a> {
    pub(super) fn new(work: &'a Work<'a>, links: Vec<Link>, pool: Pool, scribe: Scribe) -> Self {
        let rules = Rule::every(links.len()).into_iter();
        Self {
            work,
            rules: rules.map(|rule| (rule, Histogram::new())).collect(),
            members: links.into_iter().map(Member::new).collect(),
            pool,
            scribe,
            pending: VecDeque::new(),
            issued: 0,
            begun: 0,
            stream: Stream::default(),
        }
    }

    /// Commits for the time asked for; the standbys that are left have consumed everything when it returns.
    pub(super) fn run(&mut self) -> Result<(), String> {
        for member in &self.members {
            let set = member.link.peer.stream().set_nonblocking(true);
            set.map_err(|error| format!("{}: {error}", member.link.peer.peer()))?;
        }
        let times = crate::host::thread_times();
        self.begun = self.work.clock.now_ns();
        let until = self.begun + self.work.ask.time.as_nanos() as u64;
        let mut now = self.begun;
        let ended = loop {
            if now >= until || self.work.stop.requested() {
                break Ok(());
            }
            if let Err(why) = self.commit(now) {
                break Err(why);
            }
            now = self.work.clock.now_ns();
            let delay = self.work.ask.delay;
            if !delay.is_zero() {
                std::thread::sleep(delay);
                now = self.work.clock.now_ns();
            }
        };
        self.stream.elapsed_ns = self.work.clock.now_ns() - self.begun;
        self.stream.sent_ns = self.stream.elapsed_ns;
        self.drain();
        self.stream.cpu_ns = crate::host::thread_times().since(&times).cpu_ns;
        for member in &self.members {
            // The rest is said on a connection that waits; who refuses is lost there.
            let _ = member.link.peer.stream().set_nonblocking(false);
        }
        ended
    }

    /// One commit, from its first byte until the rule is content.
    fn commit(&mut self, start_ns: Ns) -> Result<(), String> {
        self.issued += 1;
        let length = self.work.ask.length as usize;
        let local_ns = self.scribe.before(self.issued, length)?;
        self.pending.push_back(Pending {
            sequence: self.issued,
            start_ns,
            local_ns,
            is_done: false,
            acks: vec![None; self.members.len()],
        });
        let lost_before = self.lost();
        self.push_all();
        loop {
            self.settle();
            let lost = self.lost();
            let done = self
                .pending
                .back()
                .is_none_or(|last| last.sequence != self.issued || last.is_done || self.is_content(last, &lost));
            if done {
                return self.committed(&lost_before);
            }
            let here = lost.iter().filter(|lost| !**lost).count();
            let rule = self.work.ask.rule;
            if here < rule.needs(self.members.len()) {
                return Err(self.failed(rule));
            }
            self.wait()?;
        }
    }

    fn is_content(&self, pending: &Pending, lost: &[bool]) -> bool {
        self.work.ask.rule.done(&pending.acks, lost).is_some()
    }

    fn lost(&self) -> Vec<bool> {
        let lost = self.members.iter().map(|member| member.lost.is_some());
        lost.collect()
    }

    /// Why the rule can no longer be kept.
    fn failed(&self, rule: Rule) -> String {
        let gone = self.members.iter().filter_map(|member| {
            let (why, at) = member.lost.as_ref()?;
            Some(format!("{} after {:.1} s: {why}", member.link.peer.peer(), *at as f64 / 1e9))
        });
        let gone: Vec<String> = gone.collect();
        format!("commit rule \"{rule}\" cannot be kept: {}", gone.join("; "))
    }

    /// Asks the kernel about every connection that is left, once in each second.
    fn look(&mut self, second: usize) {
        let left = self.members.iter_mut().filter(|one| one.lost.is_none());
        for member in left.filter(|one| one.tcp_seconds.len() <= second) {
            member.tcp_seconds.resize(second, None);
            let info = TcpInfo::of(member.link.peer.stream());
            member.tcp_seconds.push(info.ok());
        }
    }

    /// Until when those that have not acknowledged the newest message are waited for, once another has.
    fn grace_ends(&self) -> Option<Ns> {
        let grace = self.work.ask.grace?.as_nanos() as Ns;
        // Once it is committed nobody waits any more.
        let newest = self.pending.back().filter(|newest| !newest.is_done)?;
        Some(newest.acks.iter().flatten().min()? + grace)
    }

    /// The newest message is committed: when the rule was content, or when a standby that it waited for was given up.
    fn committed(&mut self, lost_before: &[bool]) -> Result<(), String> {
        let beside = self.scribe.beside()?;
        let (rule, now) = (self.work.ask.rule, self.work.clock.now_ns());
        let Some(last) = self.pending.back_mut() else {
            return Ok(());
        };
        let remote = rule.done(&last.acks, lost_before).unwrap_or(now);
        last.is_done = true;
        let ended = beside.map_or(remote, |written| written.ended_ns.max(remote));
        let total_ns = ended - last.start_ns;
        let stream = &mut self.stream;
        stream.commit.record(total_ns);
        if self.work.ask.local != Local::None {
            let local_ns = beside.map_or(last.local_ns, |written| written.took_ns);
            let remote_ns = (remote - last.start_ns).saturating_sub(last.local_ns);
            stream.here(beside.is_none(), local_ns, remote_ns, total_ns);
        }
        let bytes = self.work.ask.length + HEADER_BYTES as u64;
        let ended_ns = ended - self.begun;
        self.look((ended_ns / NS_PER_S) as usize);
        let stream = &mut self.stream;
        stream.seconds.record(ended_ns, bytes, total_ns, 0);
        stream.worst.see(Slow { total_ns, ended_ns, ..Slow::default() });
        stream.sent += 1;
        stream.commits += 1;
        stream.payload_bytes += self.work.ask.length;
        stream.wire_bytes += self.work.ask.length;
        self.work.live.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Messages that everybody who is left has acknowledged: each rule has its latency of them.
    fn settle(&mut self) {
        let lost = self.lost();
        while let Some(first) = self.pending.front() {
            let owed = first.acks.iter().zip(&lost).any(|(ack, lost)| ack.is_none() && !lost);
            let is_newest = first.sequence == self.issued;
            if owed || (is_newest && !first.is_done) {
                return;
            }
            let Some(settled) = self.pending.pop_front() else {
                return;
            };
            for (rule, histogram) in &mut self.rules {
                if let Some(at) = rule.done(&settled.acks, &lost) {
                    histogram.record(at - settled.start_ns);
                }
            }
        }
    }

    /// Hands every standby what its socket takes.
    fn push_all(&mut self) {
        let now = self.work.clock.now_ns();
        for at in 0..self.members.len() {
            if self.members[at].lost.is_none()
                && let Err(why) = self.push(at, now)
            {
                self.members[at].lost = Some((why.to_string(), now - self.begun));
            }
        }
    }

    fn push(&mut self, at: usize, now: Ns) -> Result<(), PeerError> {
        let (issued, length) = (self.issued, self.work.ask.length);
        let member = &mut self.members[at];
        let whole = HEADER_BYTES + length as usize;
        while member.sent < issued {
            let sequence = member.sent + 1;
            let header = Header { length: length as u32, sequence, ..Header::default() };
            let head = header.bytes();
            let body = self.pool.of(sequence, length as usize);
            let done = member.partial;
            let parts = [
                IoSlice::new(head.get(done..).unwrap_or_default()),
                IoSlice::new(&body[done.saturating_sub(HEADER_BYTES)..]),
            ];
            let mut stream = member.link.peer.stream();
            match stream.write_vectored(&parts) {
                Ok(count) => {
                    if member.acked == member.sent && member.partial == 0 {
                        member.owes_ns = now;
                    }
                    member.partial += count;
                    if member.partial == whole {
                        member.partial = 0;
                        member.sent += 1;
                    }
                }
                Err(error) if is_wait(&error) => break,
                Err(error) => return Err(PeerError::Gone(error.to_string())),
            }
        }
        let lag = (issued - member.acked).saturating_sub(1) * whole as u64;
        if lag > self.work.ask.max_lag {
            Err(PeerError::Gone(format!("it is {lag} bytes behind, more than --max-lag")))
        } else {
            Ok(())
        }
    }

    /// Waits for acknowledgements and for room in sockets, and takes what there is.
    fn wait(&mut self) -> Result<(), String> {
        let (issued, grace_ends) = (self.issued, self.grace_ends());
        let here: Vec<usize> = (0..self.members.len()).filter(|at| self.members[*at].lost.is_none()).collect();
        let ready: Vec<bool> = {
            let mut polled: Vec<PollFd<'_>> = here
                .iter()
                .map(|at| {
                    let member = &self.members[*at];
                    let flags = if member.sent < issued { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
                    PollFd::from_borrowed_fd(member.link.peer.stream().as_fd(), flags)
                })
                .collect();
            let now = self.work.clock.now_ns();
            let left = grace_ends.map_or(PIECE_NS, |ends| ends.saturating_sub(now).min(PIECE_NS));
            let piece = Timespec { tv_sec: 0, tv_nsec: left as i64 };
            // A signal ends the wait early, and nothing else.
            let _ = poll(&mut polled, Some(&piece));
            polled.iter().map(|fd| fd.revents().intersects(PollFlags::IN | PollFlags::ERR | PollFlags::HUP)).collect()
        };
        let now = self.work.clock.now_ns();
        let patience = self.work.ask.timeout;
        for (at, is_ready) in here.into_iter().zip(ready) {
            let heard = if is_ready { self.hear(at, now) } else { Ok(()) };
            let member = &self.members[at];
            let waited = Duration::from_nanos(now.saturating_sub(member.owes_ns));
            let owes = member.acked < issued && waited > patience;
            let late = member.link.peer.in_time(AWAITED).err().map(|late| late.to_string());
            let lost = match heard {
                Err(error) => Some(error.to_string()),
                Ok(()) if late.is_some() => late,
                Ok(()) if owes => Some(PeerError::Silent(patience, AWAITED.to_owned()).to_string()),
                // By the acknowledgements known before this look: what came meanwhile was heard above.
                Ok(()) if member.acked < issued && grace_ends.is_some_and(|ends| now >= ends) => {
                    Some("it had not acknowledged when --grace ended".to_owned())
                }
                Ok(()) => None,
            };
            if let Some(why) = lost {
                self.members[at].lost = Some((why, now - self.begun));
            }
        }
        if self.work.stop.abandoned() {
            return Err("interrupted".to_owned());
        }
        self.push_all();
        Ok(())
    }

    /// Takes the next acknowledgement of one standby, as far as it is there.
    fn hear(&mut self, at: usize, now: Ns) -> Result<(), PeerError> {
        let member = &mut self.members[at];
        // Never beyond this acknowledgement: behind the last one follows the result.
        let mut bytes = [0; ACK_BYTES];
        let (known, rest) = bytes.split_at_mut(member.heard.len());
        known.copy_from_slice(&member.heard);
        let mut stream = member.link.peer.stream();
        let count = match stream.read(rest) {
            Ok(0) => return Err(PeerError::Gone("while messages were sent".to_owned())),
            Ok(count) => count,
            Err(error) if is_wait(&error) => return Ok(()),
            Err(error) => return Err(PeerError::Gone(error.to_string())),
        };
        if count < rest.len() {
            member.heard.extend_from_slice(&rest[..count]);
            return Ok(());
        }
        member.heard.clear();
        let ack = Ack::read(&bytes);
        if ack.sequence == END {
            // What it says of the end is worth waiting for.
            let _ = member.link.peer.stream().set_nonblocking(false);
            return Err(member.link.broke_off());
        }
        if ack.sequence != member.acked + 1 || ack.sequence > member.sent {
            return Err(PeerError::Foreign(format!(
                "it acknowledges message {}, but {} was due",
                ack.sequence,
                member.acked + 1
            )));
        }
        member.acked = ack.sequence;
        member.owes_ns = now;
        let mut pending = self.pending.iter_mut();
        if let Some(pending) = pending.find(|one| one.sequence == ack.sequence) {
            pending.acks[at] = Some(now);
            // In serial order the remote part begins when the local one has ended.
            let total = (now - pending.start_ns).saturating_sub(pending.local_ns);
            member.parts.record([total, 0, 0], &ack);
        }
        Ok(())
    }

    /// Waits for the acknowledgements that the rule did not wait for.
    fn drain(&mut self) {
        loop {
            self.settle();
            let lost = self.lost();
            let owes = |member: &Member| member.lost.is_none() && member.acked < self.issued;
            if !self.members.iter().any(owes) || lost.iter().all(|lost| *lost) {
                return;
            }
            if self.wait().is_err() {
                return;
            }
        }
    }
}
