//! A server's listener: where it listens, how many clients it serves at once, and its orderly end on request, whatever
//! its clients did.

use super::line::{Line, is_wait};
use assay_measure::locked::locked;
use assay_run::engine::EngineError;
use assay_run::stop::Stop;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How often a server without clients looks whether it may go.
const LOOK: Duration = Duration::from_millis(50);
/// Connections beyond the clients: those that have not said yet who they are cost a thread each.
const STRANGERS: usize = 64;
/// A client that is silent for so long goes where another waits for its place.
const IDLE: Duration = Duration::from_secs(10);
/// How long a newcomer waits for it; its own patience may be short.
const WAITS: Duration = Duration::from_millis(500);

/// The places of a server's clients. Who has said who he is takes one.
#[derive(Debug)]
pub(crate) struct Places {
    most: usize,
    idle: Duration,
    count: Mutex<Count>,
}

/// Clients that have a place, those of them that are on their way out, and those that wait for one.
#[derive(Debug, Default)]
struct Count {
    taken: usize,
    leaving: usize,
    waiting: usize,
}

/// A client's place; free again once this is gone.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    places: &'a Places,
    leaves: bool,
}

impl Places {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, idle: IDLE, count: Mutex::default() }
    }

    fn count(&self) -> MutexGuard<'_, Count> {
        locked(&self.count)
    }

    /// A place; where all are taken, one that an idle client leaves soon.
    pub(crate) fn take(&self) -> Option<Place<'_>> {
        let until = Instant::now() + WAITS;
        let mut waits = 0;
        loop {
            let mut count = self.count();
            count.waiting -= waits;
            if count.taken < self.most {
                count.taken += 1;
                return Some(Place { places: self, leaves: false });
            }
            if Instant::now() >= until {
                return None;
            }
            waits = 1;
            count.waiting += waits;
            drop(count);
            std::thread::sleep(LOOK);
        }
    }
}

impl Place<'_> {
    /// Whether a client that has been silent for so long has to go: somebody else waits for a place, and nobody leaves his.
    pub(crate) fn is_wanted(&mut self, silent: Duration) -> bool {
        if silent >= self.places.idle && !self.leaves {
            let mut count = self.places.count();
            self.leaves = count.taken - count.leaving + count.waiting > self.places.most;
            count.leaving += usize::from(self.leaves);
        }
        self.leaves
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut count = self.places.count();
        count.taken -= 1;
        count.leaving -= usize::from(self.leaves);
    }
}

/// Does it; a panic ends it and nothing else. Whoever waits for threads would panic with one of them, and a server would end.
pub(crate) fn survives(what: &str, say: &(dyn Fn(&str) + Sync), work: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        say(&format!(
            "error: {what}: abandoned because of the bug in assay reported above; the server keeps serving the others"
        ));
    }
}

/// A bound socket.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: TcpListener,
}

/// One client being served; it no longer counts once this is gone.
#[derive(Debug)]
pub(crate) struct Serving(Arc<AtomicUsize>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Listener {
    /// Listens on an address of this host, or on loopback where none is said.
    pub(crate) fn bind(address: &str, port: u16) -> Result<Self, EngineError> {
        let ip: IpAddr = match address {
            "" => Ipv4Addr::LOCALHOST.into(),
            given => given.parse().map_err(|_| {
                EngineError::Usage(format!(
                    "--bind {given}: give an address of this host, such as 127.0.0.1 or ::1, or 0.0.0.0 for all"
                ))
            })?,
        };
        let at = SocketAddr::new(ip, port);
        let cannot = |source| EngineError::Io { what: format!("cannot listen on {at}"), source };
        let socket = TcpListener::bind(at).map_err(cannot)?;
        socket.set_nonblocking(true).map_err(cannot)?;
        Ok(Self { socket })
    }

    /// Where it listens, the port the kernel chose included.
    pub(crate) fn address(&self) -> String {
        let address = self.socket.local_addr();
        address.map_or_else(|_| "an unknown address".to_owned(), |at| at.to_string())
    }

    /// Serves each client, of which there may be `most`, on a thread of its own until asked to stop, then waits for them. A
    /// line has `patience` for all that is read and written, until told otherwise.
    pub(crate) fn serve(
        &self,
        most: usize,
        patience: Duration,
        stop: &Stop,
        say: &(dyn Fn(&str) + Sync),
        serve: impl Fn(Line) + Sync,
    ) {
        let serving = Arc::new(AtomicUsize::new(0));
        std::thread::scope(|scope| {
            let mut number = 0;
            while !stop.requested() {
                let (stream, from) = match self.socket.accept() {
                    Ok(client) => client,
                    Err(error) => {
                        // A client that left before it was accepted, or no descriptor left for it: the next may do.
                        let _ = is_wait(&error);
                        std::thread::sleep(LOOK);
                        continue;
                    }
                };
                // What cannot be made blocking is not served.
                if stream.set_nonblocking(false).is_err() {
                    continue;
                }
                let before = serving.fetch_add(1, Ordering::AcqRel);
                let here = Serving(Arc::clone(&serving));
                if before >= most + STRANGERS {
                    continue;
                }
                number += 1;
                let name = from.to_string();
                let mut line = Line::of(stream, name.clone(), patience, stop).numbered(number);
                line.lasts(patience);
                let serve = &serve;
                let client = move || {
                    survives(&name, say, || serve(line));
                    drop(here);
                };
                // A thread that cannot be started is a client that finds its connection closed.
                let _ = std::thread::Builder::new().spawn_scoped(scope, client);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpStream;

    #[test]
    fn it_is_on_loopback_unless_told_and_ends_well_when_asked_whatever_became_of_a_client() {
        let listener = Listener::bind("", 0).unwrap();
        assert!(listener.address().starts_with("127.0.0.1:"));
        let error = Listener::bind("nowhere", 0).unwrap_err().to_string();
        assert!(error.contains("--bind nowhere"), "{error}");
        let stop = Stop::new();
        let (said, served) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
        let say = |line: &str| said.lock().unwrap().push(line.to_owned());
        std::thread::scope(|scope| {
            let server = scope.spawn(|| {
                listener.serve(1, Duration::from_secs(5), &stop, &say, |_| {
                    let before = served.fetch_add(1, Ordering::AcqRel);
                    assert!(before > 0, "the first one's thread panics");
                });
            });
            for _ in 0..2 {
                let mut client = TcpStream::connect(listener.address()).unwrap();
                assert_eq!(client.read(&mut [0]).unwrap(), 0, "served and closed");
            }
            stop.request();
            server.join().expect("a client's thread takes nobody with it");
        });
        assert_eq!(served.into_inner(), 2);
        let said = said.into_inner().unwrap();
        assert!(said.len() == 1 && said[0].contains("the server keeps serving the others"), "{said:?}");
    }

    #[test]
    fn a_silent_client_keeps_its_place_until_another_waits_for_one_and_then_one_of_them_goes() {
        let places = Places { idle: Duration::from_secs(3), ..Places::new(2) };
        let (mut talks, mut silent, mut other) = (places.take().unwrap(), places.take().unwrap(), None);
        let long = Duration::from_secs(3);
        assert!(!silent.is_wanted(long), "nobody waits");
        assert!(places.take().is_none(), "nobody is idle");
        assert!(!silent.is_wanted(long), "nobody waits any more");
        std::thread::scope(|scope| {
            let newcomer = scope.spawn(|| {
                // Each waits for a short while.
                std::iter::repeat_with(|| places.take()).flatten().next().unwrap()
            });
            while !silent.is_wanted(long) {
                assert!(!talks.is_wanted(long - Duration::from_nanos(1)), "it is not silent");
                std::thread::yield_now();
            }
            assert!(!talks.is_wanted(long), "one place is wanted");
            drop(silent);
            other = Some(newcomer.join().unwrap());
        });
        assert!(!talks.is_wanted(long), "the newcomer has his place");
        drop((talks, other));
        let Count { taken, leaving, waiting } = *places.count();
        assert_eq!((taken, leaving, waiting), (0, 0, 0));
    }
}
