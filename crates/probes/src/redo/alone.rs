//! Messages to one standby over one connection: in a closed loop, by a schedule, or streamed.

use super::ask::{Ask, Local};
use super::link::{Link, Pool};
use super::log::{Log, PAYLOAD_AT};
use super::reading::{Seconds, Slow, Stream};
use super::wire::{Ack, END, HEADER_BYTES, Header};
use crate::host::thread_times;
use crate::peer::line::PeerError;
use assay_measure::clock::{Clock, Ns};
use assay_measure::histogram::Histogram;
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
    local_ns: Ns,
}

/// One connection's loop.
pub(super) struct Alone<'a, 'b> {
    pub(super) work: &'a Work<'a>,
    pub(super) link: &'b mut Link,
    pub(super) pool: Pool,
    /// The primary's own log, where it writes one.
    pub(super) log: Option<Log>,
    sequence: u64,
    stream: Stream,
}

impl<'a, 'b> Alone<'a, 'b> {
    pub(super) fn new(
        work: &'a Work<'a>,
        link: &'b mut Link,
        pool: Pool,
        log: Option<Log>,
    ) -> Self {
        Self {
            work,
            link,
            pool,
            log,
            sequence: 0,
            stream: Stream::default(),
        }
    }

    /// Sends for the time asked for, and says that it was the last.
    pub(super) fn run(mut self) -> Result<Stream, PeerError> {
        let ask = self.work.ask;
        if !ask.alone.is_zero() && !ask.is_async {
            self.stream.network_alone = self.network_alone(ask.alone)?;
        }
        let times = thread_times();
        match ask.is_async {
            true => self.streamed()?,
            false => {
                self.closed()?;
                self.link.end(self.sequence)?;
                self.link.ended()?;
            }
        }
        self.stream.cpu_ns = thread_times().since(&times).cpu_ns;
        Ok(self.stream)
    }

    fn header(&mut self) -> Header {
        self.sequence += 1;
        Header {
            length: self.work.ask.length as u32,
            sequence: self.sequence,
            ..Header::default()
        }
    }

    /// The same messages, which the standby does not write.
    fn network_alone(&mut self, time: Duration) -> Result<Histogram, PeerError> {
        let clock = self.work.clock;
        let mut histogram = Histogram::new();
        let mut now = clock.now_ns();
        let until = now + time.as_nanos() as u64;
        while now < until && !self.work.stop.requested() {
            let header = Header {
                is_unwritten: true,
                ..self.header()
            };
            self.link.send(header, self.pool.next())?;
            self.link.acknowledged()?;
            let ended = clock.now_ns();
            histogram.record(ended - now);
            now = ended;
        }
        Ok(histogram)
    }

    /// Up to `--inflight` messages under way; each but the first few waits for an acknowledgement.
    fn closed(&mut self) -> Result<(), PeerError> {
        let (ask, clock) = (self.work.ask, self.work.clock);
        let begun = clock.now_ns();
        let until = begun + ask.time.as_nanos() as u64;
        let mut under_way: VecDeque<Sent> = VecDeque::new();
        let mut now = begun;
        while now < until && !self.work.stop.requested() {
            let due_ns = match self.due(begun, until, now) {
                Some(due) => due,
                None => break,
            };
            if due_ns > now || !ask.delay.is_zero() {
                now = clock.now_ns();
            }
            // Where nothing lies between two messages, one begins when the other ends: their times add up to all time.
            let start_ns = now;
            let mut local_ns = 0;
            if ask.local == Local::Serial {
                local_ns = self.write_here()?;
            }
            let header = self.header();
            self.link.send(header, self.pool.next())?;
            let sent_ns = clock.now_ns();
            if ask.local == Local::Parallel {
                local_ns = self.write_here()?;
            }
            under_way.push_back(Sent {
                due_ns,
                start_ns,
                sent_ns,
                local_ns,
            });
            now = sent_ns;
            if under_way.len() >= ask.inflight {
                now = self.taken(&mut under_way, begun)?;
            }
        }
        while !under_way.is_empty() {
            now = self.taken(&mut under_way, begun)?;
        }
        self.stream.elapsed_ns = now - begun;
        self.stream.sent_ns = now - begun;
        if let Some(rate) = ask.rate {
            let due = (self.stream.elapsed_ns as f64 / 1e9 * rate) as u64;
            self.stream.backlog = due.saturating_sub(self.stream.sent);
        }
        Ok(())
    }

    /// Waits until the next message may go: its due time; `None` where that is beyond the end.
    fn due(&self, begun: Ns, until: Ns, now: Ns) -> Option<Ns> {
        let ask = self.work.ask;
        let due = match ask.rate {
            Some(rate) => begun + (self.stream.sent as f64 / rate * 1e9) as u64,
            None if ask.delay.is_zero() || self.stream.sent == 0 => return Some(now),
            None => now + ask.delay.as_nanos() as u64,
        };
        if due >= until {
            return None;
        }
        // In pieces, so that a request to stop is heard.
        loop {
            let left = due.saturating_sub(self.work.clock.now_ns());
            if left == 0 || self.work.stop.requested() {
                return Some(due);
            }
            match left > LATE_NS {
                true => std::thread::sleep(Duration::from_nanos((left - LATE_NS).min(100_000_000))),
                false => std::hint::spin_loop(),
            }
        }
    }

    /// The primary's own log write.
    fn write_here(&mut self) -> Result<Ns, PeerError> {
        let ask = self.work.ask;
        let Some(log) = &mut self.log else {
            return Ok(0);
        };
        let length = ask.length as usize;
        log.buffer()[PAYLOAD_AT..PAYLOAD_AT + length].copy_from_slice(self.pool.of(self.sequence));
        let took = log.write(length, self.work.clock);
        let took = took.map_err(|error| PeerError::Refused(format!("the local log: {error}")))?;
        Ok(took.write_ns + took.sync_ns)
    }

    /// Waits for the acknowledgement of the oldest message under way; when that was.
    fn taken(&mut self, under_way: &mut VecDeque<Sent>, begun: Ns) -> Result<Ns, PeerError> {
        let ack = self.link.acknowledged()?;
        let now = self.work.clock.now_ns();
        let Some(sent) = under_way.pop_front() else {
            return Err(PeerError::Foreign(
                "it acknowledges what was not sent".to_owned(),
            ));
        };
        let first = self.sequence - under_way.len() as u64;
        if ack.sequence != first {
            return Err(PeerError::Foreign(format!(
                "it acknowledges message {} where {first} was due",
                ack.sequence
            )));
        }
        let ask = self.work.ask;
        let is_local = ask.local != Local::None;
        // In serial order the remote part begins when the local one ends.
        let before = if ask.local == Local::Serial {
            sent.local_ns
        } else {
            0
        };
        let total_ns = now - sent.start_ns;
        let remote_ns = total_ns.saturating_sub(before);
        let stream = &mut self.stream;
        stream.parts.record(
            remote_ns,
            (sent.sent_ns - sent.start_ns).saturating_sub(before),
            &ack,
        );
        stream.commit.record(now - sent.due_ns.min(sent.start_ns));
        if is_local {
            stream.local.record(sent.local_ns);
            if ask.local == Local::Serial {
                stream.serial.record(total_ns);
                stream.parallel.record(remote_ns.max(sent.local_ns));
            } else {
                stream.parallel.record(total_ns);
            }
        }
        let bytes = ask.length + HEADER_BYTES as u64;
        let ended_ns = now - begun;
        stream
            .seconds
            .record(ended_ns, bytes, total_ns, ack.disk_ns());
        stream.worst.see(Slow {
            total_ns,
            ended_ns,
            disk_ns: ack.disk_ns(),
            server_ns: u64::from(ack.total_ns),
        });
        stream.sent += 1;
        self.work.live.fetch_add(1, Ordering::Relaxed);
        Ok(now)
    }

    /// Sends without waiting, while a thread of its own hears what is consumed.
    fn streamed(&mut self) -> Result<(), PeerError> {
        let (ask, clock, stop) = (self.work.ask, self.work.clock, self.work.stop);
        let twin = self.link.peer.twin();
        let peer = twin.map_err(|error| PeerError::Gone(format!("on this side: {error}")))?;
        let mut hears = Link {
            peer,
            ready: self.link.ready.clone(),
        };
        let begun = clock.now_ns();
        let bytes = ask.length + HEADER_BYTES as u64;
        std::thread::scope(|scope| {
            let live = self.work.live;
            let heard = scope.spawn(move || consumed(&mut hears, clock, begun, bytes, live));
            let until = begun + ask.time.as_nanos() as u64;
            let mut now = begun;
            let mut sent = Ok(());
            while now < until && !stop.requested() && sent.is_ok() && !heard.is_finished() {
                let header = self.header();
                sent = self.link.send(header, self.pool.next());
                if !ask.delay.is_zero() {
                    std::thread::sleep(ask.delay);
                }
                now = clock.now_ns();
            }
            self.stream.sent = self.sequence;
            self.stream.sent_ns = clock.now_ns() - begun;
            let ended = sent.and_then(|()| self.link.end(self.sequence));
            let heard = heard.join();
            let heard = heard.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            // Who listens knows better why there is nothing to be heard than who sends.
            let (seconds, elapsed_ns) = heard?;
            ended?;
            (self.stream.seconds, self.stream.elapsed_ns) = (seconds, elapsed_ns);
            Ok(())
        })
    }
}

/// Hears what is consumed, until all is: by second, and when that was.
fn consumed(
    link: &mut Link,
    clock: &Clock,
    begun: Ns,
    bytes: u64,
    live: &AtomicU64,
) -> Result<(Seconds, Ns), PeerError> {
    let mut seconds = Seconds::default();
    let mut known = 0;
    loop {
        let Ack {
            messages, sequence, ..
        } = link.acknowledged()?;
        let now = clock.now_ns() - begun;
        let more = messages.checked_sub(known).ok_or_else(|| {
            PeerError::Foreign("it has consumed less than it had before".to_owned())
        })?;
        if more > 0 {
            let second = seconds.at(now);
            second.messages += more;
            second.bytes += more * bytes;
            second.end_ns = now;
            live.fetch_add(more, Ordering::Relaxed);
        }
        known = messages;
        if sequence == END {
            return Ok((seconds, now));
        }
    }
}
