//! The client's side of a test: asks, opens the streams, reads them while they run, and exchanges results.

use super::datagram::{ANSWER, HELLO, OLD_ANSWER};
use super::flow::{Crew, Socket, Stream};
use super::meter::Meter;
use super::options::Ask;
use super::params::{DATAGRAM, Params, stream_ids};
use super::results::{Results, UdpErrors, native};
use super::wire::{BAD_PARAMETERS, Broken, COOKIE_BYTES, Control, Cookie, NOT_AUTHORIZED, RESULTS_MOST, State};
use crate::dial::{self, SocketWords};
use crate::host::CpuTimes;
use crate::peer::hello::{Service, greet};
use crate::peer::line::Line;
use crate::peer::secret::Secret;
use assay_block::socket;
use assay_run::engine::EngineError;
use assay_run::probe::Steps;
use assay_run::stop::Stop;
use rustix::net::sockopt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// What both ends of `assay net` with a secret greet each other by.
pub(super) const SERVICE: Service = Service { name: "net", version: 1, started_by: "assay net server" };

/// What the client has seen of a test.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) to: SocketAddr,
    pub(super) cookie: String,
    /// Of each stream: its number, its own address and the other's.
    pub(super) connected: Vec<(i32, SocketAddr, SocketAddr)>,
    pub(super) meter: Meter,
    pub(super) own: Results,
    /// Nothing where the test was stopped before the other end told.
    pub(super) theirs: Option<Results>,
    pub(super) max_segment: Option<u32>,
    pub(super) buffers: Option<(usize, usize)>,
    /// Bytes of a block, as they came to be.
    pub(super) block: u64,
    pub(super) is_stopped: bool,
    /// Why it ended early; empty where it did not.
    pub(super) failed: String,
}

struct Client<'a> {
    ask: &'a Ask,
    control: Control,
    to: SocketAddr,
    /// Bytes of a block, as they came to be.
    block: u64,
    stop: &'a Stop,
}

/// What is told of a peer that broke off.
pub(super) fn told(ask: &Ask, broken: &Broken) -> EngineError {
    EngineError::Unusable(format!(
        "{}, port {}: {broken}; is `assay net server` or `iperf3 -s` running there?",
        ask.host, ask.port
    ))
}

/// Runs a test against a server.
pub(super) fn run(ask: &Ask, stop: &Stop, steps: &dyn Steps, of: usize) -> Result<Seen, EngineError> {
    steps.step(0, of, &format!("connecting to {}, port {}", ask.host, ask.port));
    let secret = ask.secret.as_deref().map(Secret::of_file).transpose()?;
    let to = dial::resolve(&ask.host, ask.port, ask.family, stop)?;
    let words =
        SocketWords { from: ask.bind, max_segment: ask.params.max_segment, no_delay: true, ..SocketWords::default() };
    let cannot = |error: io::Error| {
        EngineError::Unusable(format!(
            "{}, port {}: cannot connect ({error}); start `assay net server --bind ADDR` or `iperf3 -s` there",
            ask.host, ask.port
        ))
    };
    let stream = dial::connect(to, &words, ask.patience).map_err(cannot)?;
    if let Some(secret) = &secret {
        let copy = stream.try_clone().map_err(cannot)?;
        let mut line = Line::of(copy, format!("{}:{}", ask.host, ask.port), ask.patience, stop);
        greet(&mut line, SERVICE, Some(secret)).map_err(|error| line_error(ask, &error.to_string()))?;
        stream.set_read_timeout(None).map_err(cannot)?;
    }
    let control = Control::new(stream, ask.patience).map_err(cannot)?;
    let mut client = Client { ask, control, to, block: ask.params.block, stop };
    let seen = client.test(steps, of);
    seen.map_err(|problem| problem.told(ask))
}

fn line_error(ask: &Ask, what: &str) -> EngineError {
    EngineError::Unusable(format!("{}, port {}: {what}", ask.host, ask.port))
}

/// Whose fault it was.
enum Problem {
    Peer(Broken),
    Own(EngineError),
}

impl Problem {
    fn told(self, ask: &Ask) -> EngineError {
        match self {
            Self::Peer(broken) => told(ask, &broken),
            Self::Own(error) => error,
        }
    }
}

impl From<Broken> for Problem {
    fn from(broken: Broken) -> Self {
        Self::Peer(broken)
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        Self::Own(error)
    }
}

impl Client<'_> {
    fn refuse(&self, what: String) -> Problem {
        Problem::Own(line_error(self.ask, &what))
    }

    /// The next state is this one, or the server has said why not.
    fn expect(&mut self, wanted: State) -> Result<(), Problem> {
        let state = self.control.state()?;
        if state == wanted { Ok(()) } else { Err(self.surprise(state, wanted)) }
    }

    fn surprise(&mut self, state: State, wanted: State) -> Problem {
        match state {
            State::AccessDenied => {
                self.refuse("the server is busy with another test, or denies this one; try again later".to_owned())
            }
            State::ServerTerminate => self.refuse("the server was stopped".to_owned()),
            State::ServerError => match self.control.error() {
                Ok((code, errno)) => {
                    let what = error_text(code);
                    let errno = match errno {
                        0 => String::new(),
                        errno => format!(" ({})", io::Error::from_raw_os_error(errno)),
                    };
                    self.refuse(format!("the server reports: {what}{errno}"))
                }
                Err(broken) => broken.into(),
            },
            _ => Problem::Peer(Broken::Garbage(format!("it is in state {state:?}, not {wanted:?}"))),
        }
    }

    /// Says what is wanted and opens the streams; what was sent, its streams, and the segment of the connection.
    fn open(&mut self, cookie: &Cookie) -> Result<(Params, Vec<Stream>, Option<u32>), Problem> {
        self.control.send(&cookie.0)?;
        self.expect(State::ParamExchange)?;
        let max_segment = socket::max_segment(&self.control.stream).ok();
        let mut params = self.ask.params.clone();
        if params.is_udp && !self.ask.has_block {
            let fits = max_segment.map_or(1460, u64::from);
            params.block = fits.clamp(*DATAGRAM.start(), *DATAGRAM.end());
        }
        self.block = params.block;
        self.control.send_json(&params.frame())?;
        self.expect(State::CreateStreams)?;
        let mut streams = Vec::new();
        let sends = params.client_sends();
        for (id, is_sender) in stream_ids(sends.len()).zip(sends) {
            let socket = if params.is_udp { self.open_udp()? } else { self.open_tcp(cookie)? };
            streams.push(Stream::new(id, is_sender, socket));
        }
        self.expect(State::TestStart)?;
        self.expect(State::TestRunning)?;
        Ok((params, streams, max_segment))
    }

    fn test(&mut self, steps: &dyn Steps, of: usize) -> Result<Seen, Problem> {
        let cookie = Cookie::new();
        let (params, streams, max_segment) = self.open(&cookie)?;
        let ends = |stream: &Stream| {
            let (own, other) = stream.socket.ends().ok()?;
            Some((stream.socket.number(), own, other))
        };
        let connected = streams.iter().filter_map(ends).collect();
        let buffers = streams.first().and_then(|stream| {
            let fd = stream.socket.fd();
            let send = sockopt::socket_send_buffer_size(fd).ok()?;
            Some((send, sockopt::socket_recv_buffer_size(fd).ok()?))
        });
        let tcp = streams.first().and_then(|stream| stream.socket.as_tcp());
        let congestion = tcp.and_then(|tcp| sockopt::tcp_congestion(tcp).ok());
        let max_segment = tcp.and_then(|tcp| socket::max_segment(tcp).ok()).or(max_segment);
        let blocks = match (params.bytes, params.blocks) {
            (0, 0) => None,
            (0, blocks) => Some(blocks),
            (bytes, _) => Some(bytes.div_ceil(params.block)),
        };
        let around = Around::now();
        let mut crew = Crew::start(streams, &params, (self.ask.is_strict, self.ask.cpu), blocks)?;
        let mut meter = Meter::new(&crew);
        let watched = self.watch(&crew, &mut meter, steps, of);
        let around = around.since();
        let own = |crew: &Crew, meter: &Meter| own(crew, meter, &congestion, around);
        let is_stopped = matches!(watched, Ok(true));
        let (theirs, failed) = self.end(watched, &mut crew, &mut meter, &own)?;
        Ok(Seen {
            to: self.to,
            cookie: cookie.text(),
            connected,
            own: own(&crew, &meter),
            meter,
            theirs,
            max_segment,
            buffers,
            block: params.block,
            is_stopped,
            failed,
        })
    }

    /// Ends the test as it went; what the other end tells, or why it does not although something moved.
    fn end(
        &mut self,
        watched: Result<bool, Problem>,
        crew: &mut Crew,
        meter: &mut Meter,
        own: &dyn Fn(&Crew, &Meter) -> Results,
    ) -> Result<(Option<Results>, String), Problem> {
        let theirs = match watched {
            Ok(true) => {
                // It is told; whether it hears is its own affair.
                let _ = self.control.send_state(State::ClientTerminate);
                Ok(None)
            }
            Ok(false) => self.exchange(crew, meter, own).map(Some),
            Err(problem) => {
                meter.tick(crew);
                Err(problem)
            }
        };
        crew.drain();
        crew.dismiss();
        match theirs {
            Ok(theirs) => Ok((theirs, String::new())),
            // What moved before is kept, and what was waited for in vain is no time of the test.
            Err(problem) if meter.ends_with_movement() => Ok((None, problem.told(self.ask).to_string())),
            Err(problem) => Err(problem),
        }
    }

    fn words(&self) -> SocketWords {
        let params = &self.ask.params;
        SocketWords {
            window: params.window,
            max_segment: params.max_segment,
            no_delay: params.no_delay,
            from: self.ask.bind,
            congestion: params.congestion.clone(),
            tos: params.tos,
            pacing: params.pacing.map(|bits| bits / 8),
        }
    }

    fn open_tcp(&self, cookie: &Cookie) -> Result<Socket, Problem> {
        let cannot = |error: io::Error| self.refuse(format!("a data stream cannot be opened: {error}"));
        let stream = dial::connect(self.to, &self.words(), self.ask.patience).map_err(cannot)?;
        io::Write::write_all(&mut &stream, &cookie.0).map_err(cannot)?;
        Ok(Socket::Tcp(stream))
    }

    fn open_udp(&self) -> Result<Socket, Problem> {
        let cannot = |error: io::Error| self.refuse(format!("a UDP stream cannot be opened: {error}"));
        let open = || {
            let any: SocketAddr = match self.to {
                SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
                SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
            };
            let from = self.ask.bind.map_or(any, |ip| SocketAddr::new(ip, 0));
            let socket = UdpSocket::bind(from)?;
            dial::dress(&socket, &self.words())?;
            socket.connect(self.to)?;
            socket.send(&HELLO)?;
            Ok(socket)
        };
        let socket = open().map_err(cannot)?;
        let until = Instant::now() + self.ask.patience.min(Duration::from_secs(30));
        let mut into = vec![0; 64 << 10];
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.refuse(format!(
                    "the server did not answer over UDP within {} s, but does over TCP: a firewall that blocks UDP is \
                     likely",
                    self.ask.patience.as_secs_f64()
                )));
            }
            if !dial::readable(&socket, left).map_err(cannot)? {
                continue;
            }
            let count = socket.recv(&mut into).map_err(cannot)?;
            // Data of a server that sends may overtake its answer.
            if into[..count] == ANSWER || into[..count] == OLD_ANSWER {
                return Ok(Socket::Udp(socket));
            }
        }
    }

    /// Reads the streams at the ends of the intervals until the test is over; whether somebody stopped it.
    fn watch(&mut self, crew: &Crew, meter: &mut Meter, steps: &dyn Steps, of: usize) -> Result<bool, Problem> {
        let params = &self.ask.params;
        let (omit, time) = (params.omit as f64, params.longest_s());
        let interval = match self.ask.interval_s {
            0.0 => f64::INFINITY,
            interval => interval,
        };
        let mut edges = Edges { interval, omit, end: omit + time, base: 0.0, count: 0 };
        let mut steady = Moving::new(self.ask);
        let mut step = 0;
        loop {
            let now = meter.elapsed_s();
            let second = (now as usize + 1).min(of);
            while step < second {
                step += 1;
                steps.step(step, of, &progress(meter));
            }
            if self.stop.requested() {
                meter.tick(crew);
                return Ok(true);
            }
            let is_enough = self.is_enough(crew, meter);
            if !is_enough && params.time == 0 && now >= edges.end {
                return Err(self.refuse(format!("it did not accept all data within {time} s")));
            }
            if is_enough || now >= edges.end {
                meter.tick(crew);
                while step < of {
                    step += 1;
                    steps.step(step, of, &progress(meter));
                }
                return Ok(false);
            }
            if now >= edges.next() {
                meter.tick(crew);
                if edges.passed() {
                    meter.rebase();
                }
                continue;
            }
            steady.look(crew).map_err(|what| self.refuse(what))?;
            let limits = params.bytes > 0 || params.blocks > 0;
            let longest = if limits { 0.002 } else { 0.1 };
            let wait = (edges.next().min(edges.end) - now).clamp(0.0, longest);
            if let Some(state) = self.control.state_within(Duration::from_secs_f64(wait))? {
                return Err(self.surprise(state, State::TestRunning));
            }
        }
    }

    /// Whether all bytes or blocks have moved that were asked for.
    fn is_enough(&self, crew: &Crew, meter: &Meter) -> bool {
        let params = &self.ask.params;
        let (wanted, whole) = match (params.bytes, params.blocks) {
            (0, 0) => return false,
            (0, blocks) => (blocks * self.block, blocks * self.block),
            (bytes, _) => (bytes, bytes.next_multiple_of(self.block)),
        };
        if params.is_reverse {
            meter.moved(crew, false) >= wanted
        } else {
            // Who sends stops by itself after the last block.
            crew.sent() >= whole
        }
    }

    /// Says that the test is over and takes what the other end measured; what still comes is drained until then.
    fn exchange(
        &mut self,
        crew: &mut Crew,
        meter: &mut Meter,
        own: &dyn Fn(&Crew, &Meter) -> Results,
    ) -> Result<Results, Problem> {
        crew.drain();
        crew.silent();
        self.control.send_state(State::TestEnd)?;
        crew.quiet();
        self.expect(State::ExchangeResults)?;
        // The cookie went over each TCP stream ahead of the test's bytes.
        let before = if self.ask.params.is_udp { 0 } else { COOKIE_BYTES as u64 };
        meter.settle(crew, before);
        let own = own(crew, meter);
        self.control.send_json(&own.frame())?;
        let frame = self.control.json(RESULTS_MOST)?;
        let wanted: Vec<(i64, bool)> = crew.streams.iter().map(|s| (s.id, !s.is_sender)).collect();
        let theirs = Results::read(&frame, &wanted).map_err(|what| Problem::Peer(Broken::Garbage(what)))?;
        self.expect(State::DisplayResults)?;
        crew.dismiss();
        self.control.send_state(State::Done)?;
        Ok(theirs)
    }
}

/// What the host counts around a test.
#[derive(Clone, Copy)]
pub(super) struct Around {
    udp: Option<UdpErrors>,
    cpus: Option<CpuTimes>,
}

/// What it counted meanwhile: drops of UDP, and the share that the hypervisor withheld.
pub(super) type Meanwhile = (Option<UdpErrors>, Option<f64>);

impl Around {
    pub(super) fn now() -> Self {
        Self { udp: UdpErrors::now(), cpus: CpuTimes::read() }
    }

    pub(super) fn since(&self) -> Meanwhile {
        let now = Self::now();
        let udp = self.udp.zip(now.udp).map(|(then, now)| now.since(&then));
        let cpus = self.cpus.zip(now.cpus);
        (udp, cpus.and_then(|(then, now)| now.steal_pct(&then)))
    }
}

/// What this side tells at the end.
pub(super) fn own(crew: &Crew, meter: &Meter, congestion: &Option<String>, (udp, steal): Meanwhile) -> Results {
    let streams = meter.streams(crew);
    Results {
        cpu: meter.cpu(),
        congestion: congestion.clone(),
        native: Some(native(&streams, udp, steal)),
        streams,
        server_output: None,
    }
}

/// When readings are due.
struct Edges {
    interval: f64,
    omit: f64,
    end: f64,
    /// Where the intervals are counted from.
    base: f64,
    count: u32,
}

impl Edges {
    fn next(&self) -> f64 {
        let next = self.base + f64::from(self.count + 1) * self.interval;
        if self.base < self.omit { next.min(self.omit) } else { next }
    }

    /// The next one has passed; whether what is measured begins with it.
    fn passed(&mut self) -> bool {
        let begins = self.base < self.omit && self.next() >= self.omit;
        if begins {
            (self.base, self.count) = (self.omit, 0)
        } else {
            self.count += 1
        }
        begins
    }
}

/// Whether anything moves at all.
struct Moving {
    bytes: u64,
    since: Instant,
    patience: Duration,
}

impl Moving {
    fn new(ask: &Ask) -> Self {
        let params = &ask.params;
        // A slow rate may leave gaps of its own.
        let gap = match params.rate {
            0 => 0.0,
            rate => 3.0 * 8.0 * (params.block * params.burst) as f64 / rate as f64,
        };
        Self { bytes: 0, since: Instant::now(), patience: ask.patience.max(Duration::from_secs_f64(gap.min(1e6))) }
    }

    fn look(&mut self, crew: &Crew) -> Result<(), String> {
        if let Some(why) = crew.streams.iter().find_map(|stream| stream.failed.get()) {
            return Err(format!("a data stream broke: {why}"));
        }
        let bytes = crew.streams.iter().map(|stream| stream.counts().bytes);
        let bytes = bytes.sum();
        if bytes != self.bytes {
            (self.bytes, self.since) = (bytes, Instant::now());
        }
        if self.since.elapsed() < self.patience {
            Ok(())
        } else {
            Err(format!(
                "nothing moved for {} s: the other end or the route to it is gone",
                self.patience.as_secs_f64()
            ))
        }
    }
}

/// What the last interval brought, for the one who waits.
fn progress(meter: &Meter) -> String {
    let [.., before, last] = meter.ticks.as_slice() else {
        return "measuring".to_owned();
    };
    let bytes: u64 =
        last.streams.iter().zip(&before.streams).map(|(now, then)| now.counts.bytes - then.counts.bytes).sum();
    let bits = 8.0 * bytes as f64 / (last.at_s - before.at_s).max(1e-9);
    format!("{:.1} Mbit/s", bits / 1e6)
}

/// Words for the error numbers of iperf3 that a server is likely to send.
fn error_text(code: i32) -> String {
    match code {
        NOT_AUTHORIZED => "test authorization failed: the server requires --secret-file".to_owned(),
        BAD_PARAMETERS => "it refuses these parameters".to_owned(),
        other => format!("iperf3's error {other}"),
    }
}
