//! The echo between two assays, over TCP and UDP.
//!
//! After the greeting over TCP the server sends a token of eight bytes. Little-endian:
//!
//! ```text
//! request  32 bytes  "asECHO01" | seq u64 | token u64 | payload u32 | payload of the reply u32, then the payload
//! reply    48 bytes  the same 32 | received ns u64 | sent ns u64 (the server's own clock), then the reply's payload
//! ```
//!
//! Over UDP the server answers only datagrams with the token of an open connection, so it answers only clients that
//! have greeted it, and it cannot be made to send traffic to a third party.

use super::options::PAYLOAD_MOST;
use crate::dial;
use crate::peer::hello::{Service, welcome};
use crate::peer::line::Line as Peer;
use crate::peer::listen::{Listener, Place, Places, survives};
use crate::peer::secret::Secret;
use assay_measure::clock::Clock;
use assay_measure::locked::locked;
use assay_run::dataset::lines::text;
use assay_run::engine::{EngineError, Line};
use assay_run::host::random_u64;
use assay_run::probe::Serving;
use assay_run::stop::Stop;
use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// What both ends greet each other by.
pub(super) const SERVICE: Service = Service { name: "ping", version: 1, started_by: "assay ping server" };
const MAGIC: &[u8; 8] = b"asECHO01";
pub(super) const REQUEST_BYTES: usize = 32;
pub(super) const REPLY_BYTES: usize = 48;
/// Clients at once.
const CLIENTS: usize = 64;
/// Silence after which a client is none, even where nobody wants its place: two of the longest intervals that can be asked for.
const SILENCE_MOST: Duration = Duration::from_secs(2 * 3600);
const LOOK: Duration = Duration::from_millis(50);

/// The head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) seq: u64,
    pub(super) token: u64,
    pub(super) payload: u32,
    pub(super) reply: u32,
}

fn word(from: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(from.get(at..at + 8)?.try_into().ok()?))
}

impl Head {
    pub(super) fn write(&self, into: &mut [u8]) {
        into[..8].copy_from_slice(MAGIC);
        into[8..16].copy_from_slice(&self.seq.to_le_bytes());
        into[16..24].copy_from_slice(&self.token.to_le_bytes());
        into[24..28].copy_from_slice(&self.payload.to_le_bytes());
        into[28..32].copy_from_slice(&self.reply.to_le_bytes());
    }

    /// Nothing of what is no request, or asks for more than there may be.
    pub(super) fn read(from: &[u8]) -> Option<Self> {
        if from.get(..8)? != MAGIC {
            return None;
        }
        let sizes = word(from, 24)?;
        let head =
            Self { seq: word(from, 8)?, token: word(from, 16)?, payload: sizes as u32, reply: (sizes >> 32) as u32 };
        let fits = |bytes: u32| u64::from(bytes) <= PAYLOAD_MOST;
        (fits(head.payload) && fits(head.reply)).then_some(head)
    }
}

/// A reply's head, and the server's two instants.
pub(super) fn read_reply(from: &[u8]) -> Option<(Head, u64, u64)> {
    Some((Head::read(from)?, word(from, 32)?, word(from, 40)?))
}

fn reply(head: &Head, received_ns: u64, clock: &Clock) -> Vec<u8> {
    let mut bytes = vec![0; REPLY_BYTES + head.reply as usize];
    head.write(&mut bytes);
    bytes[32..40].copy_from_slice(&received_ns.to_le_bytes());
    bytes[40..48].copy_from_slice(&clock.now_ns().to_le_bytes());
    bytes
}

/// The tokens of open connections, and when each was last heard of over UDP.
#[derive(Default)]
struct Tokens(Mutex<BTreeMap<u64, Instant>>);

impl Tokens {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Instant>> {
        locked(&self.0)
    }

    fn give(&self) -> Token<'_> {
        let token = random_u64();
        self.all().insert(token, Instant::now());
        Token { token, tokens: self }
    }

    /// Whether it is known; then it was heard of just now.
    fn heard(&self, token: u64) -> bool {
        let mut all = self.all();
        let known = all.get_mut(&token);
        known.map(|last| *last = Instant::now()).is_some()
    }
}

/// A connection's token; unknown once this is gone.
struct Token<'a> {
    token: u64,
    tokens: &'a Tokens,
}

impl Token<'_> {
    /// How long it was not heard of over UDP.
    fn silent(&self) -> Duration {
        self.tokens.all().get(&self.token).map_or(Duration::MAX, Instant::elapsed)
    }
}

impl Drop for Token<'_> {
    fn drop(&mut self) {
        self.tokens.all().remove(&self.token);
    }
}

/// `assay ping server`.
#[derive(Debug)]
pub(super) struct Server {
    listener: Listener,
    udp: UdpSocket,
    secret: Option<Secret>,
    patience: Duration,
    /// Slept before each reply.
    work: Duration,
}

impl Server {
    pub(super) fn new(ask: &super::options::Ask) -> Result<Self, EngineError> {
        let address = ask.bind.map_or_else(String::new, |ip| ip.to_string());
        let listener = Listener::bind(&address, ask.port)?;
        let at: SocketAddr = listener
            .address()
            .parse()
            .map_err(|_| EngineError::Unusable("the address of the listening socket is unknown".to_owned()))?;
        let udp = UdpSocket::bind(at)
            .map_err(|source| EngineError::Io { what: format!("cannot listen on {at} over UDP"), source })?;
        Ok(Self {
            listener,
            udp,
            secret: ask.secret.as_deref().map(Secret::of_file).transpose()?,
            patience: ask.patience,
            work: ask.reply_after,
        })
    }

    /// One client, until it closes or is silent for too long.
    fn serve_one(&self, peer: &mut Peer, places: &Places, tokens: &Tokens, stop: &Stop) {
        let mut place = None;
        let welcomed = welcome(peer, SERVICE, self.secret.as_ref(), || {
            place = places.take();
            place.is_some()
        });
        let (Ok(()), Some(mut place)) = (welcomed, place) else {
            return;
        };
        let token = tokens.give();
        if peer.write(&token.token.to_le_bytes(), "the token").is_ok() {
            self.echo(peer, &mut place, &token, stop);
        }
    }

    fn echo(&self, peer: &mut Peer, place: &mut Place<'_>, token: &Token<'_>, stop: &Stop) {
        let clock = Clock::real();
        let mut request = vec![0; REQUEST_BYTES];
        let mut payload = Vec::new();
        loop {
            let begun = Instant::now();
            // A client that measures over UDP says nothing here for as long as it measures.
            loop {
                match dial::readable(peer.stream(), LOOK) {
                    Ok(true) => break,
                    Ok(false) => {}
                    Err(_) => return,
                }
                let silent = begun.elapsed().min(token.silent());
                if stop.requested() || silent >= SILENCE_MOST || place.is_wanted(silent) {
                    return;
                }
            }
            let received_ns = clock.now_ns();
            peer.lasts(self.patience + self.work);
            if peer.read(&mut request, "a request").is_err() {
                return;
            }
            let Some(head) = Head::read(&request) else {
                return;
            };
            payload.resize(head.payload as usize, 0);
            if peer.read(&mut payload, "a request's payload").is_err() {
                return;
            }
            std::thread::sleep(self.work);
            if peer.write(&reply(&head, received_ns, &clock), "a reply").is_err() {
                return;
            }
        }
    }

    fn echo_udp(&self, tokens: &Tokens, stop: &Stop) {
        let clock = Clock::real();
        let mut into = vec![0; 64 << 10];
        while !stop.requested() {
            if !matches!(dial::readable(&self.udp, LOOK), Ok(true)) {
                continue;
            }
            let Ok((count, from)) = self.udp.recv_from(&mut into) else {
                continue;
            };
            let received_ns = clock.now_ns();
            let Some(head) = Head::read(&into[..count]) else {
                continue;
            };
            if tokens.heard(head.token) && count == REQUEST_BYTES + head.payload as usize {
                std::thread::sleep(self.work);
                // A reply that cannot be sent is a lost one.
                let _ = self.udp.send_to(&reply(&head, received_ns, &clock), from);
            }
        }
    }
}

impl Serving for Server {
    fn plan(&self) -> Vec<Line> {
        let whom = match self.secret {
            Some(_) => "assay with the same --secret-file",
            None => "any assay that reaches this address",
        };
        vec![
            text("listens", "listening on", format!("{}, TCP and UDP", self.listener.address())),
            text("serves", "serving", whom),
        ]
    }

    fn serve(&self, stop: &Stop, say: &(dyn Fn(&str) + Sync)) -> Result<(), EngineError> {
        say(&format!("Echo server listening on {}", self.listener.address()));
        let (tokens, places) = (Tokens::default(), Places::new(CLIENTS));
        std::thread::scope(|scope| {
            let udp = std::thread::Builder::new().spawn_scoped(scope, || {
                while !stop.requested() {
                    survives("an echo over UDP", say, || self.echo_udp(&tokens, stop));
                }
            });
            udp.map_err(|source| assay_run::threads::refused("udp-echo", &source))?;
            self.listener.serve(CLIENTS, self.patience, stop, say, |mut peer| {
                say(&format!("connection from {}", peer.peer()));
                self.serve_one(&mut peer, &places, &tokens, stop);
            });
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_comes_back_and_what_is_none_or_too_large_does_not() {
        let head = Head { seq: 7, token: 9, payload: 56, reply: 8192 };
        let mut bytes = vec![0; REQUEST_BYTES];
        head.write(&mut bytes);
        assert_eq!(Head::read(&bytes), Some(head));
        assert_eq!(Head::read(&bytes[..31]), None);
        bytes[31] = 0xff;
        assert_eq!(Head::read(&bytes), None);
        bytes[0] = b'x';
        assert_eq!(Head::read(&bytes), None);
        assert_eq!(read_reply(&[0; 48]), None);
    }
}
