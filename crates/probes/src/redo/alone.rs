//! Messages to one standby over one connection: in a closed loop, by a schedule, or streamed.

use super::ask::{Ask, Commits, Local};
use super::link::Link;
use super::pack::{Compress, Packer};
use super::payload::Pool;
use super::reading::{Seconds, Slow, Stream};
use super::scribe::Scribe;
use super::wire::{Ack, END, HEADER_BYTES, Header};
use crate::host::{thread_cpu_ns, thread_times};
use crate::peer::line::PeerError;
use assay_measure::clock::{Clock, Ns};
use assay_run::engine::EngineError;
use assay_run::stop::Stop;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A sleep lasts up to this much longer than asked for.
const LATE_NS: u64 = 60_000;

/// What a loop of messages is given.
pub(super) struct Work<'a> {
    pub(super) ask: &'a Ask,
    pub(super) clock: &'a Clock,
    pub(super) stop: &'a Stop,
    /// Messages so far, for who watches.
    pub(super) live: &'a AtomicU64,
}

/// A message under way.
#[derive(Clone, Copy)]
struct Sent {
    due_ns: Ns,
    start_ns: Ns,
    sent_ns: Ns,
    pack_ns: Ns,
    /// The local write before it.
    local_ns: Ns,
    length: u64,
    /// Commits in it.
    commits: u64,
}

/// One connection's loop.
pub(super) struct Alone<'a, 'b> {
    pub(super) work: &'a Work<'a>,
    pub(super) link: &'b mut Link,
    pool: Pool,
    packer: Packer,
    /// Which thread writes the primary's own log.
    scribe: Scribe,
    sequence: u64,
    /// When the first message could go.
    begun: Ns,
    stream: Stream,
}

impl<'a, 'b> Alone<'a, 'b> {
    pub(super) fn new(work: &'a Work<'a>, link: &'b mut Link, pool: Pool, scribe: Scribe) -> Result<Self, EngineError> {
        let packer = Packer::new(work.ask.compress, work.ask.length as usize);
        Ok(Self {
            work,
            link,
            pool,
            packer: packer.map_err(EngineError::Unusable)?,
            scribe,
            sequence: 0,
            begun: 0,
            stream: Stream::default(),
        })
    }

    /// Sends for the time asked for, and says that it was the last; what was measured, and why no more of it.
    pub(super) fn run(mut self) -> (Stream, Result<(), PeerError>) {
        let ended = self.network_alone().and_then(|()| {
            let times = thread_times();
            let ended = self.messages();
            self.stream.cpu_ns = thread_times().since(&times).cpu_ns;
            ended
        });
        if ended.is_err() {
            // What was waited for in vain is no time of the test.
            self.stream.elapsed_ns = self.stream.seconds.end_ns();
            self.stream.sent_ns = self.stream.sent_ns.max(self.stream.elapsed_ns);
        }
        (self.stream, ended)
    }

    fn messages(&mut self) -> Result<(), PeerError> {
        let ask = self.work.ask;
        self.begun = self.work.clock.now_ns();
        match (ask.is_async, ask.commits) {
            (true, _) => return self.streamed(),
            (false, Some(commits)) => self.grouped(commits)?,
            (false, None) => self.closed()?,
        }
        self.link.end(self.sequence)?;
        self.link.ended()
    }

    /// Sends the next message; how long it was packed before.
    fn ship(&mut self, length: u64, is_unwritten: bool) -> Result<Ns, PeerError> {
        let clock = self.work.clock;
        self.sequence += 1;
        let payload = self.pool.of(self.sequence, length as usize);
        let (mut pack_ns, mut packed) = (0, None);
        if self.work.ask.compress != Compress::None {
            let (begun, cpu) = (clock.now_ns(), thread_cpu_ns());
            packed = self.packer.pack(payload).map_err(PeerError::Own)?;
            pack_ns = clock.now_ns() - begun;
            if !is_unwritten {
                self.stream.pack.record(pack_ns);
                self.stream.pack_cpu_ns += thread_cpu_ns() - cpu;
            }
        }
        let wire = packed.unwrap_or(payload);
        let header = Header {
            length: wire.len() as u32,
            sequence: self.sequence,
            is_unwritten,
            is_packed: packed.is_some(),
            ..Header::default()
        };
        if !is_unwritten {
            self.stream.payload_bytes += length;
            self.stream.wire_bytes += wire.len() as u64;
        }
        self.link.send(header, wire)?;
        Ok(pack_ns)
    }

    /// The same messages, which the standby does not write; where that was asked for.
    fn network_alone(&mut self) -> Result<(), PeerError> {
        let ask = self.work.ask;
        if ask.alone.is_zero() || ask.is_async {
            return Ok(());
        }
        let clock = self.work.clock;
        let mut now = clock.now_ns();
        let until = now + ask.alone.as_nanos() as u64;
        while now < until && !self.work.stop.requested() {
            self.ship(ask.length, true)?;
            self.link.acknowledged()?;
            let ended = clock.now_ns();
            self.stream.network_alone.record(ended - now);
            now = ended;
        }
        Ok(())
    }

    /// Up to `--inflight` messages under way; each but the first few waits for an acknowledgement.
    fn closed(&mut self) -> Result<(), PeerError> {
        let (ask, clock) = (self.work.ask, self.work.clock);
        let until = self.begun + ask.time.as_nanos() as u64;
        let mut under_way: VecDeque<Sent> = VecDeque::new();
        let mut now = self.begun;
        while now < until && !self.work.stop.requested() {
            let due_ns = match self.due(until, now) {
                Some(due) => due,
                None => break,
            };
            if due_ns > now || !ask.delay.is_zero() {
                now = clock.now_ns();
            }
            // Where nothing lies between two messages, one begins when the other ends: their times add up to all time.
            let sent = self.begin(due_ns, now, (ask.length, 1))?;
            now = sent.sent_ns;
            under_way.push_back(sent);
            if under_way.len() >= ask.inflight {
                now = self.taken(&mut under_way)?;
            }
        }
        while !under_way.is_empty() {
            now = self.taken(&mut under_way)?;
        }
        self.finish(now);
        Ok(())
    }

    /// Commits by schedule: those that are due when a message may go are all in it.
    fn grouped(&mut self, commits: Commits) -> Result<(), PeerError> {
        let clock = self.work.clock;
        let time_ns = self.work.ask.time.as_nanos() as u64;
        let (mut now, mut is_last) = (self.begun, false);
        while !is_last && !self.work.stop.requested() {
            let due_ns = commits.due_ns(self.stream.commits);
            if due_ns >= time_ns {
                break;
            }
            self.wait_until(self.begun + due_ns);
            now = clock.now_ns();
            // What became due until the end goes with one more message, as far as it fits.
            is_last = now - self.begun >= time_ns;
            let due = commits.due_by((now - self.begun).min(time_ns - 1));
            let count = due.saturating_sub(self.stream.commits);
            let count = count.clamp(1, commits.most());
            let length = count * commits.size;
            let sent = self.begin(self.begun + due_ns, now, (length, count))?;
            self.stream.groups.see(count, length);
            now = self.taken(&mut VecDeque::from([sent]))?;
        }
        self.finish(now);
        Ok(())
    }

    /// The last message is acknowledged.
    fn finish(&mut self, now: Ns) {
        let ask = self.work.ask;
        self.stream.elapsed_ns = now - self.begun;
        self.stream.sent_ns = now - self.begun;
        let due = match (ask.rate, ask.commits) {
            (Some(rate), _) => (self.stream.elapsed_ns as f64 / 1e9 * rate) as u64,
            (None, Some(commits)) => {
                let time_ns = ask.time.as_nanos() as u64;
                commits.due_by(self.stream.elapsed_ns.min(time_ns - 1))
            }
            (None, None) => 0,
        };
        self.stream.backlog = due.saturating_sub(self.stream.commits);
    }

    /// Waits until the next message may go: its due time; `None` where that is beyond the end.
    fn due(&self, until: Ns, now: Ns) -> Option<Ns> {
        let ask = self.work.ask;
        let due = match ask.rate {
            Some(rate) => self.begun + (self.stream.sent as f64 / rate * 1e9) as u64,
            None if ask.delay.is_zero() || self.stream.sent == 0 => return Some(now),
            None => now + ask.delay.as_nanos() as u64,
        };
        if due >= until {
            return None;
        }
        self.wait_until(due);
        Some(due)
    }

    /// Waits in pieces, so that a request to stop is heard.
    fn wait_until(&self, due: Ns) {
        loop {
            let left = due.saturating_sub(self.work.clock.now_ns());
            if left == 0 || self.work.stop.requested() {
                return;
            }
            if left > LATE_NS {
                std::thread::sleep(Duration::from_nanos((left - LATE_NS).min(100_000_000)))
            } else {
                std::hint::spin_loop()
            }
        }
    }

    /// Sends one message of so many bytes and commits, with the local write that comes before it.
    fn begin(&mut self, due_ns: Ns, start_ns: Ns, (length, commits): (u64, u64)) -> Result<Sent, PeerError> {
        let written = self.scribe.before(self.sequence + 1, length as usize);
        let local_ns = written.map_err(PeerError::Own)?;
        let pack_ns = self.ship(length, false)?;
        Ok(Sent { due_ns, start_ns, sent_ns: self.work.clock.now_ns(), pack_ns, local_ns, length, commits })
    }

    /// Waits for the acknowledgement of the oldest message under way; when it was committed.
    fn taken(&mut self, under_way: &mut VecDeque<Sent>) -> Result<Ns, PeerError> {
        let ack = self.link.acknowledged()?;
        let now = self.work.clock.now_ns();
        let Some(sent) = under_way.pop_front() else {
            return Err(PeerError::Foreign("it acknowledges a message that was not sent".to_owned()));
        };
        let first = self.sequence - under_way.len() as u64;
        if ack.sequence == END {
            return Err(self.link.broke_off());
        }
        if ack.sequence != first {
            return Err(PeerError::Foreign(format!("it acknowledges message {}, but {first} was due", ack.sequence)));
        }
        // In serial order the remote part begins when the local one ends; beside it both begin at once.
        let remote_ns = now - sent.start_ns - sent.local_ns;
        let send_ns = sent.sent_ns - sent.start_ns - sent.local_ns - sent.pack_ns;
        let times = [remote_ns, send_ns, sent.pack_ns];
        self.stream.parts.record(times, &ack);
        let beside = self.scribe.beside().map_err(PeerError::Own)?;
        let ended = beside.map_or(now, |written| written.ended_ns.max(now));
        if self.work.ask.local != Local::None {
            let local_ns = beside.map_or(sent.local_ns, |written| written.took_ns);
            let total_ns = ended - sent.start_ns;
            self.stream.here(beside.is_none(), local_ns, remote_ns, total_ns);
        }
        self.committed(&sent, &ack, ended);
        Ok(ended)
    }

    fn committed(&mut self, sent: &Sent, ack: &Ack, ended: Ns) {
        let (ask, begun) = (self.work.ask, self.begun);
        let total_ns = ended - sent.start_ns;
        let stream = &mut self.stream;
        match ask.commits {
            Some(commits) => {
                let first = stream.commits;
                for commit in first..first + sent.commits {
                    let due_ns = begun + commits.due_ns(commit);
                    stream.commit.record(ended.saturating_sub(due_ns));
                }
            }
            None => stream.commit.record(ended - sent.due_ns.min(sent.start_ns)),
        }
        stream.commits += sent.commits;
        let bytes = sent.length + HEADER_BYTES as u64;
        let ended_ns = ended - begun;
        stream.seconds.record(ended_ns, bytes, total_ns, ack.disk_ns());
        stream.seconds.look(ended_ns, self.link.peer.stream());
        stream.worst.see(Slow { total_ns, ended_ns, disk_ns: ack.disk_ns(), server_ns: u64::from(ack.total_ns) });
        stream.sent += 1;
        self.work.live.fetch_add(1, Ordering::Relaxed);
    }

    /// Sends without waiting, while a thread of its own hears what is consumed.
    fn streamed(&mut self) -> Result<(), PeerError> {
        let (ask, clock, stop) = (self.work.ask, self.work.clock, self.work.stop);
        let twin = self.link.peer.twin();
        let peer = twin.map_err(|error| PeerError::Own(format!("the connection: {error}")))?;
        let mut hears = Link { peer, ready: self.link.ready.clone() };
        let begun = self.begun;
        let bytes = ask.length + HEADER_BYTES as u64;
        let issued = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let (live, issued) = (self.work.live, &issued);
            let heard = scope.spawn(move || {
                let mut seconds = Seconds::default();
                let heard = consumed(&mut hears, clock, begun, &mut seconds, (bytes, live, issued));
                (seconds, heard)
            });
            let until = begun + ask.time.as_nanos() as u64;
            let mut now = begun;
            let mut sent = Ok(());
            while now < until && !stop.requested() && sent.is_ok() && !heard.is_finished() {
                issued.store(self.sequence + 1, Ordering::Release);
                sent = self.ship(ask.length, false).map(drop);
                if !ask.delay.is_zero() {
                    std::thread::sleep(ask.delay);
                }
                now = clock.now_ns();
            }
            self.stream.sent = self.sequence - u64::from(sent.is_err());
            self.stream.commits = self.stream.sent;
            self.stream.sent_ns = clock.now_ns() - begun;
            // Where that fails, who listens hears of it.
            let _ = sent.and_then(|()| self.link.end(self.sequence));
            let heard = heard.join();
            let heard = heard.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let (seconds, heard) = heard;
            self.stream.seconds = seconds;
            // Who listens knows better why there is nothing to be heard than who sends; behind the last acknowledgement the
            // standby says itself why it came early.
            self.stream.elapsed_ns = heard?;
            Ok(())
        })
    }
}

/// Hears what is consumed, messages of so many bytes by second, until all is; when that was.
fn consumed(
    link: &mut Link,
    clock: &Clock,
    begun: Ns,
    seconds: &mut Seconds,
    (bytes, live, issued): (u64, &AtomicU64, &AtomicU64),
) -> Result<Ns, PeerError> {
    let mut known = 0;
    loop {
        let Ack { messages, sequence, .. } = link.acknowledged()?;
        let now = clock.now_ns() - begun;
        let sent = issued.load(Ordering::Acquire);
        // Only the last may tell nothing new: it is no sign of life to say the same again.
        let is_news = |more: &u64| messages <= sent && (*more > 0 || sequence == END);
        let more = messages.checked_sub(known).filter(is_news).ok_or_else(|| {
            PeerError::Foreign(format!("it has consumed {messages} of {sent} messages, and {known} before"))
        })?;
        if more > 0 {
            let second = seconds.at(now);
            second.messages += more;
            second.bytes += more * bytes;
            second.end_ns = now;
            seconds.look(now, link.peer.stream());
            live.fetch_add(more, Ordering::Relaxed);
        }
        known = messages;
        if sequence == END {
            return Ok(now);
        }
    }
}
