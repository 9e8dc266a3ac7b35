//! What the streams of a test have done, read at the ends of its intervals.

use super::datagram::Counts;
use super::flow::{Crew, Stream};
use super::results::{CpuPct, StreamEnd};
use crate::host::{ThreadTimes, process_times};
use assay_block::socket::TcpInfo;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Instant;

/// A stream at an instant; counts are since it began.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamTick {
    pub(crate) counts: Counts,
    pub(crate) info: Option<TcpInfo>,
    pub(crate) times: Option<ThreadTimes>,
}

/// All streams at an instant.
#[derive(Clone, Debug)]
pub(crate) struct Tick {
    /// Seconds since the first.
    pub(crate) at_s: f64,
    pub(crate) streams: Vec<StreamTick>,
    /// CPU of the process, user and system, ns.
    process: (u64, u64),
}

/// Reads the streams; keeps every reading.
#[derive(Debug)]
pub(crate) struct Meter {
    begun: Instant,
    pub(crate) ticks: Vec<Tick>,
    /// The tick from which on it counts.
    pub(crate) base: usize,
    /// Each stream's totals once all were quiet, and the bytes by the kernel's count.
    settled: Vec<(StreamTick, Option<u64>)>,
}

/// CPU and run delay of a thread of this process.
fn times(thread: i32) -> Option<ThreadTimes> {
    let path = format!("/proc/self/task/{thread}/schedstat");
    let text = std::fs::read_to_string(path).ok()?;
    let mut numbers = text.split_ascii_whitespace().map(str::parse);
    Some(ThreadTimes { cpu_ns: numbers.next()?.ok()?, run_delay_ns: numbers.next()?.ok() })
}

fn look(stream: &Stream) -> StreamTick {
    StreamTick {
        counts: stream.counts(),
        info: stream.socket.as_tcp().and_then(|tcp| TcpInfo::of(tcp).ok()),
        times: Some(stream.thread.load(Relaxed)).filter(|tid| *tid > 0).and_then(times),
    }
}

impl Meter {
    /// From the begin of the streams on: what they did before this first look counts.
    pub(crate) fn new(crew: &Crew) -> Self {
        let mut meter = Self { begun: crew.begun, ticks: Vec::new(), base: 0, settled: Vec::new() };
        meter.tick(crew);
        for stream in meter.ticks.iter_mut().flat_map(|tick| &mut tick.streams) {
            stream.counts = Counts::default();
        }
        meter
    }

    /// One more reading.
    pub(crate) fn tick(&mut self, crew: &Crew) {
        let at_s = if self.ticks.is_empty() { 0.0 } else { self.begun.elapsed().as_secs_f64() };
        self.ticks.push(Tick { at_s, streams: crew.streams.iter().map(look).collect(), process: process_times() });
    }

    pub(crate) fn elapsed_s(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// What is measured begins with the last tick.
    pub(crate) fn rebase(&mut self) {
        self.base = self.ticks.len() - 1;
    }

    /// Drops the readings behind the last movement; whether anything moved in what is measured.
    pub(crate) fn ends_with_movement(&mut self) -> bool {
        let bytes = |tick: &Tick| tick.streams.iter().map(|stream| stream.counts.bytes).sum::<u64>();
        let moved = |pair: &[Tick]| bytes(&pair[1]) > bytes(&pair[0]);
        let last = self.ticks.windows(2).rposition(moved);
        self.ticks.truncate(last.map_or(1, |at| at + 2));
        self.ticks.len() > self.base + 1
    }

    /// What was done in all, when nobody sends any more; `before` bytes went over each stream ahead of the test's. What the
    /// senders did between the last tick and their stop is added to it: it takes microseconds, and is counted at the
    /// other end.
    pub(crate) fn settle(&mut self, crew: &Crew, before: u64) {
        let Some(last) = self.ticks.last_mut() else {
            return;
        };
        for (stream, tick) in crew.streams.iter().zip(&mut last.streams) {
            // What a sender still hands over is in the kernel's count before it is in ours.
            let is_at_rest = stream.is_sender && stream.is_idle.load(Acquire);
            let now = look(stream);
            let kernel = now.info.filter(|_| is_at_rest).map(|info| {
                let all = info.bytes_sent + u64::from(info.notsent_bytes);
                all.saturating_sub(info.bytes_retrans + before)
            });
            if stream.is_sender {
                tick.counts = now.counts;
            }
            self.settled.push((now, kernel));
        }
    }

    fn ends(&self) -> (&Tick, &Tick) {
        (&self.ticks[self.base], &self.ticks[self.ticks.len() - 1])
    }

    /// Bytes since the begin of what is measured, of the streams that send or of those that receive.
    pub(crate) fn moved(&self, crew: &Crew, is_sender: bool) -> u64 {
        let base = &self.ticks[self.base];
        let streams = crew.streams.iter().zip(&base.streams);
        let streams = streams.filter(|(stream, _)| stream.is_sender == is_sender);
        streams.map(|(stream, base)| stream.counts().bytes - base.counts.bytes).sum()
    }

    /// CPU of the process while it was measured.
    pub(crate) fn cpu(&self) -> CpuPct {
        let (base, last) = self.ends();
        let ns = (last.at_s - base.at_s).max(1e-9) * 1e9;
        let pct = |now: u64, then: u64| 100.0 * now.saturating_sub(then) as f64 / ns;
        let user = pct(last.process.0, base.process.0);
        let system = pct(last.process.1, base.process.1);
        CpuPct { total: user + system, user, system }
    }

    /// Each stream over what was measured.
    pub(crate) fn streams(&self, crew: &Crew) -> Vec<StreamEnd> {
        let all = crew.streams.iter().enumerate();
        all.map(|(at, stream)| self.stream(at, stream)).collect()
    }

    fn stream(&self, at: usize, stream: &Stream) -> StreamEnd {
        let (base, last) = self.ends();
        let (then, now) = (&base.streams[at], &last.streams[at]);
        let infos = then.info.zip(now.info).filter(|_| stream.is_sender);
        let rose = |get: fn(&TcpInfo) -> u64| infos.map(|(then, now)| get(&now).saturating_sub(get(&then)));
        let limits = infos.filter(|(_, now)| now.tells_limits()).is_some();
        let limited = |get: fn(&TcpInfo) -> u64| rose(get).filter(|_| limits);
        let samples = || self.ticks[self.base..].iter().filter_map(|tick| tick.streams[at].info);
        let samples = || samples().skip(1).filter(|_| stream.is_sender);
        let rtts: Vec<u64> = samples().map(|info| u64::from(info.rtt)).collect();
        let rtt_us = rtts.iter().min().zip(rtts.iter().max());
        let rtt_us = rtt_us.map(|(least, most)| {
            let mean = rtts.iter().sum::<u64>() / rtts.len() as u64;
            [*least, mean, *most]
        });
        let is_udp = stream.socket.as_tcp().is_none();
        let settled = self.settled.get(at);
        let in_all = settled.map_or(now, |(all, _)| all).counts;
        let spent = then.times.zip(now.times).map(|(then, now)| now.since(&then));
        let (before, done) = (then.counts, now.counts);
        let counted = |count: u64| (is_udp && !stream.is_sender).then_some(count);
        StreamEnd {
            id: stream.id,
            is_sender: stream.is_sender,
            bytes: done.bytes - before.bytes,
            seconds: last.at_s - base.at_s,
            retransmits: rose(|info| u64::from(info.total_retrans)),
            bytes_retransmitted: rose(|info| info.bytes_retrans),
            cwnd_max_bytes: samples().map(|info| info.cwnd_bytes()).max(),
            window_max_bytes: samples().map(|info| u64::from(info.snd_wnd)).max(),
            rtt_us,
            min_rtt_us: infos.map(|(_, now)| u64::from(now.min_rtt)),
            busy_us: limited(|info| info.busy_time),
            rwnd_limited_us: limited(|info| info.rwnd_limited),
            sndbuf_limited_us: limited(|info| info.sndbuf_limited),
            datagrams: done.datagrams - before.datagrams,
            lost: done.lost.saturating_sub(before.lost),
            out_of_order: done.out_of_order - before.out_of_order,
            unique: counted(done.unique - before.unique),
            duplicates: counted(done.duplicates - before.duplicates),
            jitter_s: done.jitter_us / 1e6,
            bytes_in_all: in_all.bytes,
            kernel_bytes_in_all: settled.and_then(|(_, kernel)| *kernel),
            datagrams_in_all: (is_udp && stream.is_sender).then_some(in_all.datagrams),
            unique_in_all: counted(in_all.unique),
            cpu_s: spent.map(|spent| spent.cpu_ns as f64 / 1e9),
            run_delay_s: spent.and_then(|spent| Some(spent.run_delay_ns? as f64 / 1e9)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::flow::{Crew, Socket, Stream};
    use super::super::params::Params;
    use super::Meter;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn net_01_what_a_sender_still_hands_over_is_not_held_against_its_count() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        let params = Params { block: 128 << 10, burst: 1, ..Params::default() };
        let streams = vec![Stream::new(1, true, Socket::Tcp(near))];
        let mut crew = Crew::start(streams, &params, (false, None), None).unwrap();
        // It is in its call: nobody takes what it sends.
        let mut meter = Meter::new(&crew);
        meter.settle(&crew, 0);
        assert_eq!(meter.streams(&crew)[0].kernel_bytes_in_all, None);
        crew.drain();
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            far.read_to_end(&mut all).map(|_| all.len() as u64)
        });
        crew.dismiss();
        let mut meter = Meter::new(&crew);
        meter.settle(&crew, 0);
        let end = meter.streams(&crew).remove(0);
        assert_eq!(end.kernel_bytes_in_all, Some(end.bytes_in_all));
        crew.say_end();
        assert_eq!(reader.join().unwrap().unwrap(), end.bytes_in_all);
    }
}
