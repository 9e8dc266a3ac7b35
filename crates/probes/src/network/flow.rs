//! The data streams: one thread each, which sends or receives until it is asked to stop, and publishes its counters.

use super::datagram::{self, Arrivals, Counts, HEADER_BYTES};
use super::params::Params;
use assay_measure::clock::Clock;
use assay_measure::counters::CachePadded;
use assay_measure::locked::locked;
use assay_run::engine::EngineError;
use assay_run::host::random_u64;
use assay_run::threads::refused;
use rustix::fs::{MemfdFlags, memfd_create, sendfile};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// A call that waits returns after this, so that an order is seen.
const LOOK: Duration = Duration::from_millis(50);
/// Shortest sleep of a sender that may catch up: half of iperf3's pacing timer, whose bursts at 1 Gbit/s overflow a
/// receiver's buffer of the usual size; half as long again costs more CPU than iperf3 needs.
const SLEEP_LEAST_NS: u64 = 500_000;

/// What a stream runs over.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Udp(UdpSocket),
}

impl Socket {
    pub(crate) fn as_tcp(&self) -> Option<&TcpStream> {
        match self {
            Self::Tcp(stream) => Some(stream),
            Self::Udp(_) => None,
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Udp(socket) => socket.as_fd(),
        }
    }

    pub(crate) fn number(&self) -> i32 {
        self.fd().as_raw_fd()
    }

    /// Its own address and the other's.
    pub(crate) fn ends(&self) -> io::Result<(SocketAddr, SocketAddr)> {
        match self {
            Self::Tcp(stream) => Ok((stream.local_addr()?, stream.peer_addr()?)),
            Self::Udp(socket) => Ok((socket.local_addr()?, socket.peer_addr()?)),
        }
    }

    fn set_timeouts(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => {
                stream.set_read_timeout(Some(LOOK))?;
                stream.set_write_timeout(Some(LOOK))
            }
            Self::Udp(socket) => {
                socket.set_read_timeout(Some(LOOK))?;
                socket.set_write_timeout(Some(LOOK))
            }
        }
    }
}

/// A stream of a test.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) id: i64,
    pub(crate) is_sender: bool,
    pub(crate) socket: Socket,
    /// What its thread shows, which alone writes. Behind a lock: what is read while it works belongs together.
    pub(crate) seen: CachePadded<Mutex<Counts>>,
    /// The kernel's number of the thread; 0 before it runs.
    pub(crate) thread: AtomicI32,
    /// Why it ended before it was told to.
    pub(crate) failed: OnceLock<String>,
    /// Its thread is through.
    pub(crate) is_idle: AtomicBool,
}

impl Stream {
    pub(crate) fn new(id: i64, is_sender: bool, socket: Socket) -> Self {
        Self {
            id,
            is_sender,
            socket,
            seen: CachePadded::default(),
            thread: AtomicI32::new(0),
            failed: OnceLock::new(),
            is_idle: AtomicBool::new(false),
        }
    }

    /// What it has done until now.
    pub(crate) fn counts(&self) -> Counts {
        *locked(&self.seen)
    }

    fn show(&self, counts: Counts) {
        *locked(&self.seen) = counts;
    }
}

/// What all streams are told.
#[derive(Debug)]
struct Orders {
    /// 0: work; 1: senders stop, receivers drain; 2: end.
    level: AtomicU8,
    /// Blocks that may still be sent, in a test with a number of blocks.
    left: Option<AtomicI64>,
}

impl Orders {
    fn level(&self) -> u8 {
        self.level.load(Ordering::Relaxed)
    }

    /// Takes the right to send so many blocks; how many of them there were.
    fn take(&self, blocks: u64) -> u64 {
        let Some(left) = &self.left else {
            return blocks;
        };
        let before = left.fetch_sub(blocks as i64, Ordering::Relaxed);
        before.clamp(0, blocks as i64) as u64
    }
}

/// The streams of a test with their threads.
#[derive(Debug)]
pub(crate) struct Crew {
    pub(crate) streams: Arc<Vec<Stream>>,
    orders: Arc<Orders>,
    threads: Vec<JoinHandle<()>>,
    /// Just before the first of them could do anything.
    pub(crate) begun: Instant,
}

impl Crew {
    /// Starts a thread for each, all on one CPU where one is named; `blocks`: how many those that send may send in all.
    pub(crate) fn start(
        streams: Vec<Stream>,
        params: &Params,
        (is_strict, cpu): (bool, Option<u32>),
        blocks: Option<u64>,
    ) -> Result<Self, EngineError> {
        let mut crew = Self {
            streams: Arc::new(streams),
            orders: Arc::new(Orders {
                level: AtomicU8::new(0),
                left: blocks.map(|blocks| AtomicI64::new(blocks as i64)),
            }),
            threads: Vec::new(),
            begun: Instant::now(),
        };
        for at in 0..crew.streams.len() {
            let (streams, orders) = (Arc::clone(&crew.streams), Arc::clone(&crew.orders));
            let params = params.clone();
            let name = format!("net-{}", crew.streams[at].id);
            let work = move || {
                let stream = &streams[at];
                let tid = rustix::thread::gettid().as_raw_nonzero().get();
                stream.thread.store(tid, Ordering::Relaxed);
                // A thread that works to a schedule is woken when it asked to be.
                let _ = assay_block::set_timer_slack(1);
                if let Some(cpu) = cpu.filter(|cpu| !crate::crew::pin(*cpu)) {
                    let _ = stream.failed.set(format!("CPU {cpu} (--affinity) is not available"));
                } else if let Err(error) = turn(stream, &params, is_strict, &orders) {
                    let _ = stream.failed.set(error.to_string());
                }
                stream.is_idle.store(true, Ordering::Release);
            };
            let started = Builder::new().name(name.clone()).spawn(work);
            crew.threads.push(started.map_err(|source| refused(&name, &source))?);
        }
        Ok(crew)
    }

    /// Those that send stop; those that receive take what is still under way.
    pub(crate) fn drain(&self) {
        self.orders.level.fetch_max(1, Ordering::Relaxed);
    }

    /// Waits, but not for long, until nobody sends datagrams any more: one that goes out after the other end has
    /// counted would look lost.
    pub(crate) fn silent(&self) {
        let until = Instant::now() + 4 * LOOK;
        let speaks = |stream: &Stream| {
            stream.is_sender && stream.socket.as_tcp().is_none() && !stream.is_idle.load(Ordering::Acquire)
        };
        while self.streams.iter().any(speaks) && Instant::now() < until {
            std::thread::sleep(LOOK / 50);
        }
    }

    /// Waits, but not for long, until those that send have stopped and no more datagrams come.
    pub(crate) fn quiet(&self) {
        let until = Instant::now() + 4 * LOOK;
        let all = || self.streams.iter();
        let arrived = || -> u64 {
            let mut seen = all().filter(|stream| !stream.is_sender);
            let udp = seen.by_ref().filter(|stream| stream.socket.as_tcp().is_none());
            udp.map(|stream| stream.counts().bytes).sum()
        };
        let mut before = None;
        while Instant::now() < until {
            let is_idle = |stream: &Stream| stream.is_idle.load(Ordering::Acquire);
            let now = arrived();
            if all().filter(|stream| stream.is_sender).all(is_idle) && before == Some(now) {
                return;
            }
            before = Some(now);
            std::thread::sleep(LOOK / 5);
        }
    }

    /// Ends the streams that this side sends.
    pub(crate) fn say_end(&self) {
        let senders = self.streams.iter().filter(|stream| stream.is_sender);
        for tcp in senders.filter_map(|stream| stream.socket.as_tcp()) {
            // One that the other end has closed is ended too.
            let _ = tcp.shutdown(Shutdown::Write);
        }
    }

    /// Bytes that were handed to the kernel in all.
    pub(crate) fn sent(&self) -> u64 {
        let senders = self.streams.iter().filter(|stream| stream.is_sender);
        senders.map(|stream| stream.counts().bytes).sum()
    }

    /// Ends all threads.
    pub(crate) fn dismiss(&mut self) {
        self.orders.level.store(2, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // One that panicked has said so on stderr.
            let _ = thread.join();
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.dismiss();
    }
}

/// The work of a stream, to its end.
fn turn(stream: &Stream, params: &Params, is_strict: bool, orders: &Orders) -> io::Result<()> {
    stream.socket.set_timeouts()?;
    let clock = Clock::real();
    let mut pace = Pace::new(params, is_strict, &clock);
    match (&stream.socket, stream.is_sender) {
        (Socket::Tcp(socket), true) if params.zero_copy => {
            let file = filled_file(params.block as usize)?;
            let mut from = 0;
            let mut call = |bytes: usize| {
                from %= bytes as u64;
                let count = bytes - from as usize;
                Ok(sendfile(socket, &file, Some(&mut from), count)?)
            };
            send_tcp(stream, params, &mut pace, orders, &clock, &mut call)
        }
        (Socket::Tcp(socket), true) => {
            let block = random_bytes(params.block as usize);
            let mut socket = socket;
            let mut call = |bytes: usize| socket.write(&block[..bytes]);
            send_tcp(stream, params, &mut pace, orders, &clock, &mut call)
        }
        (Socket::Tcp(socket), false) => receive_tcp(stream, socket, params, orders),
        (Socket::Udp(socket), true) => send_udp(stream, socket, params, &mut pace, orders, &clock),
        (Socket::Udp(socket), false) => receive_udp(stream, socket, params, orders, &clock),
    }
}

fn random_bytes(count: usize) -> Vec<u8> {
    let words = (0..count.div_ceil(8)).map(|_| random_u64().to_le_bytes());
    let mut bytes: Vec<u8> = words.flatten().collect();
    bytes.truncate(count);
    bytes
}

/// A file in memory whose pages the kernel sends without copying them.
fn filled_file(bytes: usize) -> io::Result<OwnedFd> {
    let fd = memfd_create("assay-net", MemfdFlags::CLOEXEC)?;
    let mut file = std::fs::File::from(fd);
    file.write_all(&random_bytes(bytes))?;
    Ok(file.into())
}

/// Whether a call only ended early.
fn is_early(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(error.kind(), Kind::WouldBlock | Kind::Interrupted | Kind::TimedOut)
}

fn send_tcp(
    stream: &Stream,
    params: &Params,
    pace: &mut Pace,
    orders: &Orders,
    clock: &Clock,
    call: &mut dyn FnMut(usize) -> io::Result<usize>,
) -> io::Result<()> {
    let block = params.block as usize;
    let mut sent = 0_u64;
    while orders.level() == 0 {
        let granted = if pace.green(sent, orders, clock) {
            orders.take(params.burst)
        } else {
            continue;
        };
        if granted == 0 {
            std::thread::sleep(LOOK / 10);
        }
        let until = sent + block as u64 * granted;
        while sent < until && orders.level() == 0 {
            match call(((until - sent) as usize).min(block)) {
                Ok(count) => {
                    sent += count as u64;
                    stream.show(Counts { bytes: sent, ..Counts::default() });
                }
                Err(error) if is_early(&error) => {}
                // The other end may close before it says that the test is over.
                Err(_) if orders.level() > 0 => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

fn receive_tcp(stream: &Stream, mut socket: &TcpStream, params: &Params, orders: &Orders) -> io::Result<()> {
    let mut into = vec![0; (params.block as usize).max(64 << 10)];
    let mut got = 0_u64;
    while orders.level() < 2 {
        match socket.read(&mut into) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                got += count as u64;
                stream.show(Counts { bytes: got, ..Counts::default() });
            }
            Err(error) if is_early(&error) => {}
            Err(_) if orders.level() > 0 => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn send_udp(
    stream: &Stream,
    socket: &UdpSocket,
    params: &Params,
    pace: &mut Pace,
    orders: &Orders,
    clock: &Clock,
) -> io::Result<()> {
    let mut block = random_bytes((params.block as usize).max(HEADER_BYTES));
    block.truncate(params.block as usize);
    let (mut sent, mut number) = (0_u64, 0_u64);
    while orders.level() == 0 {
        let granted = if pace.green(sent, orders, clock) {
            orders.take(params.burst)
        } else {
            continue;
        };
        if granted == 0 {
            std::thread::sleep(LOOK / 10);
        }
        for _ in 0..granted {
            datagram::write(&mut block, clock.now_ns() / 1000, number + 1, params.wide_counters);
            match socket.send(&block) {
                Ok(count) => {
                    number += 1;
                    sent += count as u64;
                    stream.show(Counts { bytes: sent, datagrams: number, ..Counts::default() });
                }
                Err(error) if is_early(&error) => {}
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error()) => {
                    std::thread::sleep(Duration::from_micros(100));
                }
                Err(_) if orders.level() > 0 => return Ok(()),
                // A peer that has closed already answers so; whether the test goes on is said elsewhere.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

fn receive_udp(stream: &Stream, socket: &UdpSocket, params: &Params, orders: &Orders, clock: &Clock) -> io::Result<()> {
    let mut into = vec![0; 64 << 10];
    let mut arrivals = Arrivals::default();
    while orders.level() < 2 {
        match socket.recv(&mut into) {
            Ok(count) => {
                let Some((sent_us, number)) = datagram::read(&into[..count], params.wide_counters) else {
                    continue;
                };
                arrivals.counts.bytes += count as u64;
                arrivals.count(number, sent_us, clock.now_ns() as f64 / 1e3);
                stream.show(arrivals.counts);
            }
            Err(error) if is_early(&error) => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(_) if orders.level() > 0 => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// When a sender may send.
struct Pace {
    /// Bytes per ns; 0: always.
    rate: f64,
    burst: f64,
    is_strict: bool,
    begun_ns: u64,
    /// Of the strict kind: when the next burst is due.
    next_ns: f64,
}

impl Pace {
    fn new(params: &Params, is_strict: bool, clock: &Clock) -> Self {
        let begun_ns = clock.now_ns();
        Self {
            rate: params.rate as f64 / 8e9,
            burst: (params.block * params.burst) as f64,
            is_strict,
            begun_ns,
            next_ns: begun_ns as f64,
        }
    }

    /// When so many bytes have been sent, the next may go.
    fn due_ns(&self, sent: u64) -> u64 {
        match (self.rate > 0.0, self.is_strict) {
            (false, _) => 0,
            (true, true) => self.next_ns as u64,
            // The mean since the begin: after a stall it catches up.
            (true, false) => self.begun_ns + (sent as f64 / self.rate) as u64,
        }
    }

    /// Waits until the next burst is due, but not for long; whether it is.
    fn green(&mut self, sent: u64, orders: &Orders, clock: &Clock) -> bool {
        if self.rate == 0.0 {
            return true;
        }
        loop {
            let (now, due) = (clock.now_ns(), self.due_ns(sent));
            if now >= due {
                if self.is_strict {
                    // No debt is paid back: a burst that went late moves all later ones.
                    self.next_ns = self.next_ns.max(now as f64) + self.burst / self.rate;
                }
                return true;
            }
            if orders.level() > 0 {
                return false;
            }
            let least = if self.is_strict { 0 } else { SLEEP_LEAST_NS };
            let wait = Duration::from_nanos((due - now).max(least));
            std::thread::sleep(wait.min(LOOK));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn net_10_a_strict_pace_pays_no_debt_back_and_the_other_does() {
        let clock = Clock::simulated();
        let orders = Orders { level: AtomicU8::new(0), left: None };
        let params = Params { rate: 8_000_000, block: 1000, burst: 1, ..Params::default() };
        // A datagram each ms; nobody came for 100 ms.
        let count = |is_strict: bool| {
            let mut pace = Pace::new(&params, is_strict, &clock);
            clock.advance_to(clock.now_ns() + 100_000_000);
            let mut sent = 0;
            while clock.now_ns() >= pace.due_ns(sent) {
                assert!(pace.green(sent, &orders, &clock));
                sent += 1000;
            }
            sent / 1000
        };
        assert_eq!(count(true), 1);
        assert!((100..=101).contains(&count(false)));
    }

    #[test]
    fn net_08_what_is_read_while_datagrams_come_belongs_together() {
        let stream = Stream::new(1, false, Socket::Udp(UdpSocket::bind("127.0.0.1:0").unwrap()));
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let mut arrivals = Arrivals::default();
                // Every third is lost.
                for at in 1..=1_000_000 {
                    arrivals.counts.bytes += 1000;
                    arrivals.count(at + at / 2, 0, 0.0);
                    stream.show(arrivals.counts);
                }
            });
            while !thread.is_finished() {
                let now = stream.counts();
                assert_eq!((now.bytes, now.lost), (now.unique * 1000, now.datagrams - now.unique), "{now:?}");
            }
        });
    }

    #[test]
    fn so_many_blocks_and_no_more_may_be_taken() {
        let orders = Orders { level: AtomicU8::new(0), left: Some(AtomicI64::new(5)) };
        assert_eq!((orders.take(3), orders.take(3), orders.take(3)), (3, 2, 0));
    }
}
