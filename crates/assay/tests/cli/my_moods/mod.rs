//! A server in many moods: it speaks MariaDB's and MySQL's protocol up to where its mood takes over.
//!
//! [`MOODS`] is the table: what a mood is called, what it does, and what the program must say of it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// One mood.
pub(crate) struct Mood {
    pub(crate) name: &'static str,
    /// Where it takes over.
    at: At,
    /// Ends when the client does.
    act: fn(&mut Talk) -> std::io::Result<()>,
    /// The program ends with one error that has these words.
    pub(crate) said: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// As soon as somebody connects.
    Connect,
    /// When TLS was asked for.
    Tls,
    /// After the client's first packet.
    Login,
    /// At the first statement whose rows are read.
    Query,
}

impl Mood {
    /// The limit of time of an answer, s: short where it is to end it. Elsewhere a busy machine must not meet it before what the
    /// mood is about.
    pub(crate) fn limit(&self) -> u32 {
        if self.said == UNFINISHED || self.said == FELL_SILENT { 3 } else { 120 }
    }
}

const NOBODY_IN: &str = "the login got no answer within 10 s";
const UNFINISHED: &str = "unfinished for 3 s";
const FELL_SILENT: &str = "did not answer within 3 s, and a new connection did not";
const TOO_MUCH: &str = "more than 16 MiB";
const ODD: &str = "does not follow the protocol";
const CLOSED: &str = "closed the connection without a message";

const fn mood(name: &'static str, at: At, act: fn(&mut Talk) -> std::io::Result<()>, said: &'static str) -> Mood {
    Mood { name, at, act, said }
}

/// All of them.
pub(crate) const MOODS: &[Mood] = &[
    mood("says nothing", At::Connect, Talk::silence, NOBODY_IN),
    mood("hangs up", At::Connect, |_| Ok(()), CLOSED),
    mood("speaks another protocol", At::Connect, |talk| talk.say(b"HTTP/1.1 400 Bad Request\r\n\r\n"), CLOSED),
    mood("trickles its greeting", At::Connect, |talk| talk.trickle(&[0x88, 0x13, 0, 0, 10], b"5"), NOBODY_IN),
    mood(
        "claims 16 MB and sends one of them",
        At::Connect,
        |talk| {
            talk.say(&[0xff, 0xff, 0xff, 0])?;
            talk.say(&vec![b'A'; 1 << 20])?;
            talk.silence()
        },
        TOO_MUCH,
    ),
    mood(
        "claims 15 MB and sends nothing of it",
        At::Connect,
        |talk| talk.say(&[0, 0, 0xf0, 0]).and_then(|()| talk.silence()),
        NOBODY_IN,
    ),
    mood(
        "greets in another version",
        At::Connect,
        |talk| talk.send(0, b"\x093.23\0").and_then(|()| talk.silence()),
        "uses version 9 of the protocol",
    ),
    mood(
        "greets in few words",
        At::Connect,
        |talk| talk.send(0, b"\x0a5.5.5-10.11\0\x07\0\0").and_then(|()| talk.silence()),
        "a greeting that is none",
    ),
    mood(
        "blocks us",
        At::Connect,
        |talk| talk.send(0, b"\xff\x69\x04Host 'me' is \x1b[2Jblocked").and_then(|()| talk.silence()),
        "[2Jblocked (error 1129)",
    ),
    mood("agrees to TLS and says nothing more", At::Tls, Talk::silence, NOBODY_IN),
    mood("agrees to TLS and speaks none", At::Tls, |talk| talk.send(2, &[0; 7]).and_then(|()| talk.silence()), "TLS: "),
    mood(
        "agrees to TLS and trickles it",
        At::Tls,
        // A handshake record of 16 KiB, a byte at a time.
        |talk| talk.trickle(&[22, 3, 3, 64, 0, 2, 0, 63, 252], &[0]),
        NOBODY_IN,
    ),
    mood("hangs up at login", At::Login, |_| Ok(()), CLOSED),
    mood("trickles its login", At::Login, |talk| talk.trickle(&[0x88, 0x13, 0, 2, 1], b"x"), NOBODY_IN),
    mood(
        "knows us from its cache for ever",
        At::Login,
        |talk| {
            talk.switch("caching_sha2_password", &[b'N'; 21])?;
            talk.for_ever(4, &[1, 3])
        },
        TOO_MUCH,
    ),
    mood(
        "asks for the old hash",
        At::Login,
        |talk| talk.send(2, &[0xfe]).and_then(|()| talk.silence()),
        "a login by mysql_old_password",
    ),
    mood(
        "asks for the password",
        At::Login,
        |talk| talk.switch("mysql_clear_password", b"").and_then(|()| talk.silence()),
        "a login by mysql_clear_password",
    ),
    mood(
        "asks for a dialogue",
        At::Login,
        |talk| talk.switch("dialog\x1b[2J", b"\x04Password: ").and_then(|()| talk.silence()),
        "a login by dialog [2J, but",
    ),
    mood(
        "asks for the password by a key of its own",
        At::Login,
        |talk| {
            talk.switch("caching_sha2_password", &[b'N'; 21])?;
            talk.hear()?;
            talk.send(4, &[1, 4])?;
            talk.silence()
        },
        "server-public-key-path",
    ),
    mood(
        "has a nonce of three bytes",
        At::Login,
        |talk| talk.switch("client_ed25519", b"abc").and_then(|()| talk.silence()),
        "a nonce that is too short",
    ),
    mood(
        "changes its mind about the login for ever",
        At::Login,
        |talk| {
            for number in (2..=u8::MAX).step_by(2) {
                talk.number = number;
                talk.switch("mysql_native_password", &[b'N'; 21])?;
                talk.hear()?;
            }
            Ok(())
        },
        "a login that is none",
    ),
    mood(
        "asks for a file",
        At::Query,
        |talk| talk.send(1, b"\xfb/etc/passwd").and_then(|()| talk.silence()),
        "it asks for a file that assay did not offer",
    ),
    mood(
        "has 2^64 - 1 columns",
        At::Query,
        |talk| talk.send(1, &[[0xfe].as_slice(), &[0xff; 8]].concat()).and_then(|()| talk.silence()),
        "an answer of 18446744073709551615 columns",
    ),
    mood(
        "has a thousand million columns",
        At::Query,
        |talk| talk.send(1, &[0xfe, 0, 0xca, 0x9a, 0x3b, 0, 0, 0, 0]).and_then(|()| talk.silence()),
        "an answer of 1000000000 columns",
    ),
    mood(
        "returns rows without end",
        At::Query,
        |talk| {
            talk.describe(1)?;
            talk.for_ever(4, &[[0xfd, 0x60, 0xea, 0].as_slice(), &[b'B'; 60000]].concat())
        },
        TOO_MUCH,
    ),
    mood(
        "returns rows of nothing without end",
        At::Query,
        |talk| {
            talk.describe(200)?;
            talk.for_ever(203, &[0xfb; 200])
        },
        TOO_MUCH,
    ),
    mood("has results without end", At::Query, |talk| talk.for_ever(1, &[0, 0, 0, 8, 0, 0, 0]), TOO_MUCH),
    mood(
        "returns a row with a value too many",
        At::Query,
        |talk| {
            talk.describe(1)?;
            talk.send(4, b"\x01a\x01b")?;
            talk.silence()
        },
        "a row that is none",
    ),
    mood(
        "returns a value longer than its row",
        At::Query,
        |talk| {
            talk.describe(1)?;
            talk.send(4, &[0xfd, 0xff, 0xff, 0xff, b'a'])?;
            talk.silence()
        },
        "a row that is none",
    ),
    mood(
        "leaves a packet out",
        At::Query,
        |talk| talk.send(7, OK).and_then(|()| talk.silence()),
        "packet 7 instead of 1",
    ),
    mood(
        "is well in few words",
        At::Query,
        |talk| talk.send(1, &[0, 0]).and_then(|()| talk.silence()),
        "an OK that is none",
    ),
    mood("says an empty word", At::Query, |talk| talk.send(1, b"").and_then(|()| talk.silence()), ODD),
    mood("hangs up within a row", At::Query, |talk| talk.describe(1).and_then(|()| talk.say(&[9, 0, 0, 4, 8])), CLOSED),
    mood("trickles a packet", At::Query, |talk| talk.trickle(&[0x88, 0x13, 0, 1, 1], b"x"), UNFINISHED),
    mood(
        "trickles whole packets",
        At::Query,
        |talk| {
            talk.send(1, &[0xfc, 0, 8])?;
            for number in (0..=u8::MAX).cycle().skip(2) {
                std::thread::sleep(Duration::from_millis(150));
                talk.send(number, COLUMN)?;
            }
            Ok(())
        },
        UNFINISHED,
    ),
    mood("falls silent", At::Query, Talk::silence, FELL_SILENT),
    mood(
        "dies with a word",
        At::Query,
        |talk| talk.send(1, b"\xff\x1d\x04#08S01Server shutdown in progress"),
        "the connection was lost: Server shutdown in progress (error 1053)",
    ),
];

const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
const COLUMN: &[u8] = b"\x03def\0\0\0\x01a\0\x0c\x21\0\xff\0\0\0\xfd\0\0\0\0\0";

fn packet(number: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32).to_le_bytes();
    [&[length[0], length[1], length[2], number], body].concat()
}

/// The fake server; ends with the test's process. All that its clients say comes to `heard`.
pub(crate) fn start(mood: &'static Mood, heard: &Arc<Mutex<Vec<u8>>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    // A server that has fallen silent does so to everybody.
    let silent = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(heard);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut talk = Talk { stream, silent: Arc::clone(&silent), heard: Arc::clone(&heard), number: 2 };
            std::thread::spawn(move || {
                // What goes wrong then is the client's end.
                let _ = talk.run(mood);
            });
        }
    });
    port
}

/// One client.
pub(crate) struct Talk {
    stream: TcpStream,
    silent: Arc<AtomicBool>,
    heard: Arc<Mutex<Vec<u8>>>,
    /// Of the next packet of a login.
    number: u8,
}

impl Talk {
    fn run(&mut self, mood: &Mood) -> std::io::Result<()> {
        if self.silent.load(Ordering::Acquire) {
            return self.silence();
        }
        if mood.at == At::Connect {
            return (mood.act)(self);
        }
        // All that a server can, TLS only where it is asked for.
        let flags = if mood.at == At::Tls { 0xffff_ffdf_u32 } else { 0xffff_f7df };
        let [a, b, c, d] = flags.to_le_bytes();
        let mut greeting = b"\x0a5.5.5-10.11.6-MariaDB\0\x07\0\0\0ABCDEFGH\0".to_vec();
        greeting.extend([a, b, 0x21, 2, 0, c, d, 21]);
        greeting.extend([0; 10]);
        greeting.extend(b"IJKLMNOPQRST\0mysql_native_password\0");
        self.send(0, &greeting)?;
        self.hear()?;
        if matches!(mood.at, At::Tls | At::Login) {
            return (mood.act)(self);
        }
        self.send(2, OK)?;
        self.hear()?;
        self.send(1, OK)?;
        self.hear()?;
        if mood.name == "falls silent" {
            self.silent.store(true, Ordering::Release);
        }
        (mood.act)(self)
    }

    fn hear(&mut self) -> std::io::Result<()> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head)?;
        let mut body = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
        self.stream.read_exact(&mut body)?;
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).extend(body);
        Ok(())
    }

    fn say(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)
    }

    fn send(&mut self, number: u8, body: &[u8]) -> std::io::Result<()> {
        self.say(&packet(number, body))
    }

    fn switch(&mut self, plugin: &str, nonce: &[u8]) -> std::io::Result<()> {
        self.send(self.number, &[&[0xfe], plugin.as_bytes(), &[0], nonce].concat())
    }

    /// Until the client ends.
    fn silence(&mut self) -> std::io::Result<()> {
        while self.hear().is_ok() {}
        Ok(())
    }

    /// Packets from this number on.
    fn for_ever(&mut self, first: u8, body: &[u8]) -> std::io::Result<()> {
        let mut number = first;
        loop {
            let mut many = Vec::new();
            for _ in 0..256 {
                many.extend(packet(number, body));
                number = number.wrapping_add(1);
            }
            self.say(&many)?;
        }
    }

    /// A beginning, and then something several times a second.
    fn trickle(&mut self, begin: &[u8], more: &[u8]) -> std::io::Result<()> {
        self.say(begin)?;
        loop {
            std::thread::sleep(Duration::from_millis(150));
            self.say(more)?;
        }
    }

    /// Fewer than 251 columns.
    fn describe(&mut self, columns: u8) -> std::io::Result<()> {
        self.send(1, &[columns])?;
        for number in 0..columns {
            self.send(number.wrapping_add(2), COLUMN)?;
        }
        self.send(columns.wrapping_add(2), &[0xfe, 0, 0, 2, 0])
    }
}
