//! A relay on loopback that does harm to what one side says to the other, once, at a given byte of all that it says.

use assay_measure::prng::SplitMix64;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What is done to what is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    /// Nothing of that session is passed on any more; it stays open.
    Stall,
    /// The session is closed.
    Cut,
    /// A bit is another one.
    Flip,
    /// Eight bytes are others.
    Scramble,
    /// A byte is left out.
    Gap,
    /// What was read at once is said twice.
    Twice,
    /// So many of this byte come before the rest.
    Flood(u8),
    /// Random bytes come in the place of the rest.
    Garbage,
    /// The rest comes a byte at a time, three a second.
    Drip,
}

/// Every one of them.
pub(crate) const HARMS: [Harm; 10] = [
    Harm::Stall,
    Harm::Cut,
    Harm::Flip,
    Harm::Scramble,
    Harm::Gap,
    Harm::Twice,
    Harm::Flood(0),
    Harm::Flood(0xff),
    Harm::Garbage,
    Harm::Drip,
];

const FLOOD_BYTES: usize = 200_000;
const GARBAGE_BYTES: usize = 5000;

/// Where a server listens.
#[derive(Clone, Debug)]
pub(crate) enum Server {
    Unix(PathBuf),
    Port(u16),
}

/// Whose words are harmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    Server,
    Client,
}

/// What is done, to whom, from which byte on; what is random follows from the seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attack {
    pub(crate) harm: Harm,
    pub(crate) speaker: Speaker,
    pub(crate) at: u64,
    pub(crate) seed: u64,
}

impl Attack {
    /// On what a server answers.
    pub(crate) fn on_answers(harm: Harm, at: u64) -> Self {
        Self { harm, speaker: Speaker::Server, at, seed: 0 }
    }

    /// None: everything is passed on.
    pub(crate) fn none() -> Self {
        Self::on_answers(Harm::Stall, u64::MAX)
    }
}

pub(crate) struct Spoiler {
    pub(crate) port: u16,
    state: Arc<State>,
}

struct State {
    attack: Attack,
    random: Mutex<SplitMix64>,
    /// Bytes so far of all sessions, of the side that is harmed.
    said: AtomicU64,
    is_over: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl Spoiler {
    /// Between its clients and a server.
    pub(crate) fn before(server: &Server, attack: Attack) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let state = Arc::new(State {
            attack,
            random: Mutex::new(SplitMix64(attack.seed)),
            said: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            open: Mutex::default(),
        });
        let (server, serving) = (server.clone(), Arc::clone(&state));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                if serving.is_over() {
                    return;
                }
                let (Ok(client), Ok(server)) = (client, server.connect()) else { continue };
                serving.join(&client, &server);
            }
        });
        Self { port, state }
    }

    /// Bytes that the side that is harmed has said so far.
    pub(crate) fn said(&self) -> u64 {
        self.state.said.load(Ordering::Acquire)
    }

    /// Closes every session, and takes no other.
    pub(crate) fn cut(&self) {
        self.state.is_over.store(true, Ordering::Release);
        for stream in self.state.open.lock().expect("not poisoned").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Server {
    fn connect(&self) -> std::io::Result<TcpStream> {
        match self {
            // What is asked of it holds of any stream.
            Self::Unix(path) => UnixStream::connect(path).map(|stream| TcpStream::from(OwnedFd::from(stream))),
            Self::Port(port) => TcpStream::connect(("127.0.0.1", *port)),
        }
    }
}

impl Drop for Spoiler {
    fn drop(&mut self) {
        self.cut();
        // Wakes the listener, which then goes.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl State {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    fn join(self: &Arc<Self>, client: &TcpStream, server: &TcpStream) {
        for stream in [client, server] {
            let _ = stream.set_nodelay(true);
        }
        let copy = |stream: &TcpStream| stream.try_clone().expect("a descriptor");
        self.open.lock().expect("not poisoned").extend([copy(client), copy(server)]);
        for (speaker, from, to) in [(Speaker::Client, client, server), (Speaker::Server, server, client)] {
            let (state, from, to) = (Arc::clone(self), copy(from), copy(to));
            std::thread::spawn(move || state.pass(speaker, &from, &to));
        }
    }

    /// Reads until there is no more or it is not passed on; then the other side learns of it.
    fn pass(&self, speaker: Speaker, mut from: &TcpStream, mut to: &TcpStream) {
        let mut buffer = [0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let bytes = &buffer[..length];
            let goes_on =
                if speaker == self.attack.speaker { self.spoil(to, bytes) } else { to.write_all(bytes).map(|()| true) };
            if !goes_on.unwrap_or(false) {
                break;
            }
        }
        for stream in [from, to] {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn spoil(&self, mut to: &TcpStream, bytes: &[u8]) -> std::io::Result<bool> {
        let before = self.said.fetch_add(bytes.len() as u64, Ordering::AcqRel);
        match self.attack.at.wrapping_sub(before) {
            at if at < bytes.len() as u64 => self.strike(to, bytes, at as usize),
            _ => to.write_all(bytes).map(|()| true),
        }
    }

    /// Passes these bytes on, harmed from `at`; whether what follows is passed on.
    fn strike(&self, mut to: &TcpStream, bytes: &[u8], at: usize) -> std::io::Result<bool> {
        let mut bytes = bytes.to_vec();
        let random = |limit: u64| self.random.lock().expect("not poisoned").below(limit);
        let random_byte = || random(256) as u8;
        match self.attack.harm {
            Harm::Flip => bytes[at] ^= 1 << random(8),
            Harm::Scramble => bytes[at..].iter_mut().take(8).for_each(|byte| *byte = random_byte()),
            Harm::Gap => drop(bytes.remove(at)),
            Harm::Twice => bytes.extend_from_within(..),
            Harm::Flood(byte) => drop(bytes.splice(at..at, std::iter::repeat_n(byte, FLOOD_BYTES))),
            Harm::Garbage => drop(bytes.splice(at.., (0..GARBAGE_BYTES).map(|_| random_byte()))),
            Harm::Stall | Harm::Cut | Harm::Drip => {
                to.write_all(&bytes[..at])?;
                let rest = &bytes[at..];
                return self.hold(to, rest).map(|()| false);
            }
        }
        to.write_all(&bytes).map(|()| true)
    }

    /// The rest of a session that is not to go on.
    fn hold(&self, mut to: &TcpStream, rest: &[u8]) -> std::io::Result<()> {
        let mut rest = rest.iter();
        while self.attack.harm != Harm::Cut && !self.is_over() {
            std::thread::sleep(Duration::from_millis(if self.attack.harm == Harm::Drip { 300 } else { 20 }));
            match rest.next() {
                Some(byte) if self.attack.harm == Harm::Drip => to.write_all(&[*byte])?,
                _ => {}
            }
        }
        Ok(())
    }
}
