//! Our own servers of probes and their clients, with what either says harmed at a random byte: both end well or with one clear
//! error, and a server goes on for the next client.

use super::Siege;
use crate::common::spoiler::{Attack, HARMS, Server as Behind, Speaker, Spoiler};
use crate::common::{Place, Ran, Started, with};
use assay_testkit::port::free_port;
use rustix::process::Signal;

/// A server of ours, and what its clients ask of it.
struct Kind {
    server: &'static [&'static str],
    clients: &'static [&'static [&'static str]],
    port: &'static str,
}

const KINDS: [Kind; 3] = [
    Kind {
        server: &["net", "server"],
        clients: &[
            &["net", "127.0.0.1", "-t", "1"],
            &["net", "127.0.0.1", "-t", "1", "-R", "-P", "2"],
            &["net", "127.0.0.1", "-t", "1", "--bidir"],
        ],
        port: "-p",
    },
    Kind {
        server: &["ping", "server"],
        clients: &[
            &["ping", "127.0.0.1", "--method", "tcp-echo", "--time", "1s"],
            &["ping", "127.0.0.1", "--method", "tcp-connect", "--time", "1s"],
        ],
        port: "-p",
    },
    Kind {
        server: &["redo", "server", "--allow-write", "logs"],
        clients: &[
            &["redo", "127.0.0.1", "--time", "1s", "--log-size", "8m", "--timeout", "3s"],
            &["redo", "127.0.0.1", "--time", "1s", "--log-size", "8m", "--timeout", "3s", "--mode", "async"],
            &["redo", "127.0.0.1", "--time", "1s", "--log-size", "8m", "--timeout", "3s", "--compress", "lz4"],
        ],
        port: "--port",
    },
];

/// One of our servers, and the place of all.
struct Serving<'a> {
    place: &'a Place,
    kind: &'a Kind,
    port: u16,
    started: Started,
}

impl<'a> Serving<'a> {
    fn of(place: &'a Place, kind: &'a Kind) -> Self {
        let port = free_port();
        let started = place.start(&with(kind.server, &[kind.port, &port.to_string()]));
        let listens = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
        Self { place, kind, port, started: started.until("listener", listens) }
    }

    fn ask(&self, client: &[&str], port: u16) -> Ran {
        self.place.assay(&with(client, &[self.kind.port, &port.to_string()]))
    }

    fn spoilt(&self, client: &[&str], attack: Attack) -> Ran {
        let spoiler = Spoiler::before(&Behind::Port(self.port), attack);
        self.ask(client, spoiler.port)
    }
}

#[test]
#[ignore = "it takes long: ./test.sh --long has it"]
fn on_our_servers_and_their_clients() {
    let mut siege = Siege::new("servers of probes and their clients");
    let place = Place::new();
    std::fs::create_dir(place.path("logs")).expect("made");
    let all = KINDS.each_ref().map(|kind| Serving::of(&place, kind));
    while let Some((seed, mut random)) = siege.next() {
        let serving = &all[random.below(all.len() as u64) as usize];
        let client = random.pick(serving.kind.clients);
        let (harm, speaker) = (random.pick(&HARMS), random.pick(&[Speaker::Server, Speaker::Client]));
        // What is said to begin with has the most to be misunderstood.
        let bits = random.pick(&[6, 9, 12, 20]);
        let at = random.below(1 << bits);
        siege.begins(format!("{client:?} with {harm:?} at byte {at} of the {speaker:?}"));
        let ran = serving.spoilt(client, Attack { harm, speaker, at, seed });
        siege.judge(&ran);
        siege.count(format!("{harm:?} of the {speaker:?}").to_lowercase());
        // The next client is served, once the places of those that hang are free.
        serving.ask(serving.kind.clients[0], serving.port).code(0);
    }
    for serving in all {
        serving.started.signal(Signal::INT);
        let ran = serving.started.ended();
        // It has a line for each of its many clients.
        assert!(ran.code == 0 && !ran.err.contains("panicked"), "exit {}\n{}", ran.code, ran.err);
    }
    let logs = std::fs::read_dir(place.path("logs")).expect("it is there").count();
    assert_eq!(logs, 0, "logs of clients are gone with them");
    siege.over();
}
