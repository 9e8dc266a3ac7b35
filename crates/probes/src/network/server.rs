//! The server: one test at a time, whatever its clients do.
//!
//! Each connection has its own thread until its first bytes show what it is: the control connection of a new test, a
//! data stream of the running one, or something else. So a silent client does not keep others waiting.

use super::client::{Around, SERVICE, own};
use super::datagram::{ANSWER, HELLO};
use super::flow::{Crew, Socket, Stream};
use super::lines::summary_of_server;
use super::meter::Meter;
use super::options::{Ask, may_run_on};
use super::params::{Params, STREAMS_MOST, stream_ids};
use super::results::Results;
use super::wire::{
    BAD_PARAMETERS, Broken, COOKIE_BYTES, Control, Cookie, NOT_AUTHORIZED, PARAMS_MOST, RESULTS_MOST, State,
};
use crate::dial::{self, SocketWords};
use crate::peer::hello::{MAGIC, welcome};
use crate::peer::line::Line as Peer;
use crate::peer::listen::Listener;
use crate::peer::secret::Secret;
use assay_measure::locked::locked;
use assay_run::dataset::lines::text;
use assay_run::engine::{EngineError, Line};
use assay_run::probe::Serving;
use assay_run::stop::Stop;
use rustix::io::Errno;
use rustix::net::sockopt;
use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Connections at once: the streams of the largest test, its control connection and a few strangers.
const CONNECTIONS: usize = 300;
/// How long a stranger may take to say who he is.
const FIRST_WORDS: Duration = Duration::from_secs(5);
/// A test that its client forgets ends so long after its time.
const GRACE: f64 = 40.0;
/// And one in which nothing moves, after this.
const NOTHING_MOVES: Duration = Duration::from_secs(120);
/// How often a test is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// A server, bound to its port.
#[derive(Debug)]
pub(super) struct Server {
    listener: Listener,
    secret: Option<Secret>,
    is_one_off: bool,
    /// Of the streams, where a client names none.
    cpu: Option<u32>,
    patience: Duration,
}

/// A data stream, and which connection it was: they are greeted side by side.
type Arrived = (u64, TcpStream);

/// The test that runs: connections with its cookie are its streams.
struct Running {
    cookie: Cookie,
    streams: Sender<Arrived>,
    /// Connections that may still come as its streams: each is held open.
    more: u64,
    /// Its client has the results.
    is_told: bool,
}

/// What all connections see.
struct Shared<'a> {
    server: &'a Server,
    at: SocketAddr,
    running: Mutex<Option<Running>>,
    tests: AtomicU64,
    stop: &'a Stop,
    /// Requested when the one test of a one-off server is over.
    over: Stop,
    say: &'a (dyn Fn(&str) + Sync),
}

/// Where a server listens that nobody told: this host alone.
fn address(ask: &Ask) -> String {
    ask.bind.map_or_else(String::new, |ip| ip.to_string())
}

impl Server {
    /// Binds the port.
    pub(super) fn new(ask: &Ask) -> Result<Self, EngineError> {
        Ok(Self {
            secret: ask.secret.as_deref().map(Secret::of_file).transpose()?,
            listener: Listener::bind(&address(ask), ask.port)?,
            is_one_off: ask.is_one_off,
            cpu: ask.cpu,
            patience: ask.patience,
        })
    }
}

impl Serving for Server {
    fn plan(&self) -> Vec<Line> {
        let whom = match self.secret {
            Some(_) => "assay with the same --secret-file; not iperf3",
            None => "any iperf3 or assay that reaches this address",
        };
        vec![text("listens", "listening on", self.listener.address()), text("serves", "serving", whom)]
    }

    fn serve(&self, stop: &Stop, say: &(dyn Fn(&str) + Sync)) -> Result<(), EngineError> {
        let at = self
            .listener
            .address()
            .parse()
            .map_err(|_| EngineError::Unusable("the address of the listening socket is unknown".to_owned()))?;
        let shared = Shared {
            server: self,
            at,
            running: Mutex::default(),
            tests: AtomicU64::new(0),
            stop,
            over: Stop::new(),
            say,
        };
        // Either of two stops ends the listener.
        let both = Stop::new();
        std::thread::scope(|scope| {
            let watcher = std::thread::Builder::new().spawn_scoped(scope, || {
                while !stop.requested() && !shared.over.requested() {
                    std::thread::sleep(LOOK);
                }
                both.request();
            });
            if watcher.is_err() {
                return;
            }
            shared.banner();
            self.listener.serve(CONNECTIONS, FIRST_WORDS, &both, say, |peer| shared.meet(peer));
        });
        Ok(())
    }
}

impl Shared<'_> {
    fn banner(&self) {
        let number = self.tests.load(Ordering::Relaxed) + 1;
        let rule = "-".repeat(59);
        let port = self.at.port();
        (self.say)(&format!("{rule}\nServer listening on {port} (test #{number})\n{rule}"));
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        locked(&self.running)
    }

    /// A client that begins again as soon as it has its results is faster than the end of its test here: it is no second one.
    fn until_told_is_over(&self) -> MutexGuard<'_, Option<Running>> {
        let until = Instant::now() + FIRST_WORDS;
        loop {
            let running = self.running();
            let is_ending = running.as_ref().is_some_and(|running| running.is_told);
            if !is_ending || Instant::now() >= until || self.stop.requested() {
                return running;
            }
            drop(running);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A connection, from its first byte on.
    fn meet(&self, mut peer: Peer) {
        let Ok(stream) = peer.stream().try_clone() else {
            return;
        };
        let is_greeting = self.is_greeting(&stream);
        if self.stop.requested() {
            return;
        }
        let secret = self.server.secret.as_ref();
        if is_greeting && let Err(error) = welcome(&mut peer, SERVICE, secret, || true) {
            (self.say)(&format!("{}: {error}", peer.peer()));
            return;
        }
        let _ = stream.set_read_timeout(None);
        let Ok(mut control) = Control::new(stream, FIRST_WORDS) else {
            return;
        };
        let mut cookie = [0; COOKIE_BYTES];
        if let Err(broken) = control.receive(&mut cookie) {
            (self.say)(&format!("{}: {broken}", peer.peer()));
            return;
        }
        let cookie = Cookie(cookie);
        let streams = {
            let mut running = self.until_told_is_over();
            if let Some(running) = running.as_mut() {
                let is_its_own = running.cookie == cookie && !is_greeting && running.more > 0;
                running.more -= u64::from(is_its_own);
                // A stream that comes too late finds nobody.
                if !is_its_own || running.streams.send((peer.number(), control.stream)).is_err() {
                    let _ = refuse(peer.stream());
                }
                return;
            }
            if self.server.secret.is_some() && !is_greeting {
                let _ = control.send_error(NOT_AUTHORIZED, 0);
                (self.say)(&format!("{}: refused, because it does not know the secret", peer.peer()));
                return;
            }
            let (sender, receiver) = channel();
            *running = Some(Running { cookie, streams: sender, more: 2 * STREAMS_MOST, is_told: false });
            receiver
        };
        self.serve_test(control, &streams);
    }

    /// Whether an assay greets; its first letters do not occur in a cookie.
    fn is_greeting(&self, stream: &TcpStream) -> bool {
        let until = Instant::now() + FIRST_WORDS;
        let mut first = [0; MAGIC.len()];
        while Instant::now() < until && !self.stop.requested() {
            match dial::readable(stream, LOOK) {
                Ok(false) => continue,
                Ok(true) => {}
                Err(_) => return false,
            }
            match stream.peek(&mut first) {
                Ok(count) if count == first.len() => return first == *MAGIC,
                // A part of the first letters, or of a cookie.
                Ok(count) if count > 0 && MAGIC.starts_with(&first[..count]) => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                _ => return false,
            }
        }
        false
    }

    fn serve_test(&self, control: Control, streams: &Receiver<Arrived>) {
        let from = control.stream.peer_addr().map(dial::plain);
        if let Ok(from) = from {
            (self.say)(&format!("Accepted connection from {}, port {}", from.ip(), from.port()));
        }
        let control = Control { patience: self.server.patience, ..control };
        // However it ends, the next is served.
        let _over = Over(self);
        let mut test = Test { shared: self, control, streams };
        match test.run() {
            Ok(text) => (self.say)(&text),
            Err(End::Peer(broken)) => (self.say)(&format!("the client is gone: {broken}")),
            Err(End::Told(why)) => (self.say)(&why),
        }
    }
}

/// A test that is over once this is gone.
struct Over<'a>(&'a Shared<'a>);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        let shared = self.0;
        *shared.running() = None;
        shared.tests.fetch_add(1, Ordering::Relaxed);
        match shared.server.is_one_off {
            true => shared.over.request(),
            false if shared.stop.requested() => {}
            false => shared.banner(),
        }
    }
}

/// Says that another test is running.
fn refuse(mut stream: &TcpStream) -> std::io::Result<()> {
    stream.write_all(&[State::AccessDenied as i8 as u8])
}

/// Why a test ended early.
enum End {
    Peer(Broken),
    Told(String),
}

impl From<Broken> for End {
    fn from(broken: Broken) -> Self {
        Self::Peer(broken)
    }
}

impl From<std::io::Error> for End {
    fn from(error: std::io::Error) -> Self {
        Self::Peer(error.into())
    }
}

impl From<EngineError> for End {
    fn from(error: EngineError) -> Self {
        Self::Told(error.to_string())
    }
}

/// One test.
struct Test<'a> {
    shared: &'a Shared<'a>,
    control: Control,
    streams: &'a Receiver<Arrived>,
}

impl Test<'_> {
    /// Runs it; the text of its end.
    fn run(&mut self) -> Result<String, End> {
        self.control.send_state(State::ParamExchange)?;
        let frame = self.control.json(PARAMS_MOST)?;
        let params = match Params::read(&frame) {
            Ok(params) => params,
            Err(why) => return Err(self.turn_away(BAD_PARAMETERS, 0, why)),
        };
        if let Some(cpu) = params.server_cpu.filter(|cpu| !may_run_on(*cpu)) {
            let why = format!("the client wants CPU {cpu}, which this process may not use");
            return Err(self.turn_away(BAD_PARAMETERS, Errno::INVAL.raw_os_error(), why));
        }
        let words = SocketWords {
            window: params.window,
            no_delay: params.no_delay,
            congestion: params.congestion.clone(),
            tos: params.tos,
            pacing: params.pacing.map(|bits| bits / 8),
            ..SocketWords::default()
        };
        // Bound before the client is told to come.
        let udp = if params.is_udp { Some(dial::udp_at(self.shared.at)) } else { None };
        let udp = match udp.transpose() {
            Ok(udp) => udp,
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(0);
                let why = format!("the UDP port {} cannot be bound: {error}", self.shared.at.port());
                return Err(self.turn_away(BAD_PARAMETERS, errno, why));
            }
        };
        self.control.send_state(State::CreateStreams)?;
        let sends = params.client_sends();
        let sockets = match udp {
            Some(listening) => self.accept_udp(listening, sends.len(), &words)?,
            None => self.accept_tcp(sends.len(), &words)?,
        };
        let streams = stream_ids(sends.len()).zip(sends).zip(sockets);
        let stream = |((id, client_sends), socket): ((i64, bool), Socket)| Stream::new(id, !client_sends, socket);
        self.measure(streams.map(stream).collect(), &params)
    }

    fn turn_away(&mut self, code: i32, errno: i32, why: String) -> End {
        let _ = self.control.send_error(code, errno);
        End::Told(format!("refused: {why}"))
    }

    /// As many streams as the test has, in the order in which the client opened them.
    fn accept_tcp(&mut self, count: usize, words: &SocketWords) -> Result<Vec<Socket>, End> {
        let until = Instant::now() + self.control.patience;
        let mut arrived: Vec<Arrived> = Vec::new();
        while arrived.len() < count {
            match self.streams.recv_timeout(LOOK) {
                Ok(stream) => arrived.push(stream),
                Err(_) => self.still_there(until)?,
            }
        }
        arrived.sort_by_key(|(number, _)| *number);
        for (_, stream) in &arrived {
            if let Err(error) = dial::dress_tcp(stream, words) {
                // An algorithm that is missing here is no reason to stop.
                (self.shared.say)(&format!("warning: {error}"));
            }
        }
        Ok(arrived.into_iter().map(|(_, stream)| Socket::Tcp(stream)).collect())
    }

    /// A client's hello on the bound socket makes that socket a stream's own; a fresh one takes its place.
    fn accept_udp(&mut self, mut listening: UdpSocket, count: usize, words: &SocketWords) -> Result<Vec<Socket>, End> {
        let client: IpAddr = dial::plain(self.control.stream.peer_addr()?).ip();
        let until = Instant::now() + self.control.patience;
        let mut into = [0; 64];
        let mut sockets = Vec::new();
        while sockets.len() < count {
            self.still_there(until)?;
            if !dial::readable(&listening, LOOK)? {
                continue;
            }
            let (length, from) = listening.recv_from(&mut into)?;
            // Strangers, and data that came before its stream, are no hello.
            if dial::plain(from).ip() != client || length != HELLO.len() {
                continue;
            }
            listening.connect(from)?;
            let next = dial::udp_at(self.shared.at)?;
            if let Err(error) = dial::dress(&listening, words) {
                (self.shared.say)(&format!("warning: {error}"));
            }
            listening.send(&ANSWER)?;
            sockets.push(Socket::Udp(std::mem::replace(&mut listening, next)));
        }
        Ok(sockets)
    }

    fn still_there(&mut self, until: Instant) -> Result<(), End> {
        if self.shared.stop.requested() {
            let _ = self.control.send_state(State::ServerTerminate);
            return Err(End::Told("stopped".to_owned()));
        }
        if let Some(state) = self.control.state_within(Duration::ZERO)? {
            return Err(End::Told(format!("the client is in state {state:?} before its streams are open")));
        }
        if Instant::now() < until { Ok(()) } else { Err(Broken::Silent(self.control.patience).into()) }
    }

    fn measure(&mut self, streams: Vec<Stream>, params: &Params) -> Result<String, End> {
        self.control.send_state(State::TestStart)?;
        let congestion = streams.first().and_then(|stream| stream.socket.as_tcp());
        let congestion = congestion.and_then(|tcp| sockopt::tcp_congestion(tcp).ok());
        let around = Around::now();
        let cpu = params.server_cpu.or(self.shared.server.cpu);
        let mut crew = Crew::start(streams, params, (false, cpu), None)?;
        let mut meter = Meter::new(&crew);
        self.control.send_state(State::TestRunning)?;
        let ended = self.watch(&crew, &mut meter, params);
        crew.drain();
        let state = ended?;
        crew.quiet();
        meter.settle(&crew, 0);
        // A client that waits for the rest of a block hears that there is none.
        crew.say_end();
        crew.dismiss();
        let mut own = own(&crew, &meter, &congestion, around.since());
        let text = summary_of_server(&own.streams, params);
        own.server_output = params.wants_server_output.then(|| text.clone());
        if state == State::ClientTerminate {
            return Ok(format!("{text}\nthe client has terminated"));
        }
        self.control.send_state(State::ExchangeResults)?;
        let frame = self.control.json(RESULTS_MOST)?;
        let wanted: Vec<(i64, bool)> = crew.streams.iter().map(|s| (s.id, !s.is_sender)).collect();
        Results::read(&frame, &wanted).map_err(|what| End::Peer(Broken::Garbage(what)))?;
        self.control.send_json(&own.frame())?;
        if let Some(running) = self.shared.running().as_mut() {
            running.is_told = true;
        }
        self.control.send_state(State::DisplayResults)?;
        // A client that closes without its last word has its results all the same.
        let _ = self.control.state();
        Ok(text)
    }

    /// Looks at the streams until the client says that the test is over.
    fn watch(&mut self, crew: &Crew, meter: &mut Meter, params: &Params) -> Result<State, End> {
        let omit = params.omit as f64;
        let longest = omit + params.longest_s() + GRACE;
        let mut next: f64 = 1.0;
        let mut moved = (0, Instant::now());
        loop {
            let edge = if meter.base == 0 && omit > 0.0 { next.min(omit) } else { next };
            let wait = (edge - meter.elapsed_s()).clamp(0.0, LOOK.as_secs_f64());
            if let Some(state) = self.control.state_within(Duration::from_secs_f64(wait))? {
                meter.tick(crew);
                return match state {
                    State::TestEnd | State::ClientTerminate => Ok(state),
                    other => Err(End::Told(format!("the client is in state {other:?} during the test"))),
                };
            }
            let now = meter.elapsed_s();
            if meter.base == 0 && omit > 0.0 && now >= omit {
                meter.tick(crew);
                meter.rebase();
            } else if now >= next {
                next = now.floor() + 1.0;
                meter.tick(crew);
            }
            if self.shared.stop.requested() {
                let _ = self.control.send_state(State::ServerTerminate);
                return Err(End::Told("stopped while a test was running".to_owned()));
            }
            let bytes = crew.streams.iter().map(|stream| stream.counts().bytes).sum();
            if bytes != moved.0 {
                moved = (bytes, Instant::now());
            }
            if now > longest || moved.1.elapsed() > NOTHING_MOVES {
                return Err(End::Told("the client no longer knows its test".to_owned()));
            }
        }
    }
}
