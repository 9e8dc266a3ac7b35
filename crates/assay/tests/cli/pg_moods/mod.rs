//! A server in many moods: it speaks PostgreSQL's protocol up to where its mood takes over.
//!
//! [`MOODS`] is the table: what a mood is called, what it does, and what the program must say of it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// One mood.
pub(crate) struct Mood {
    pub(crate) name: &'static str,
    /// Where it takes over.
    at: At,
    /// Ends when the client does.
    act: fn(&mut Talk) -> std::io::Result<()>,
    /// More of the URL.
    pub(crate) url: &'static str,
    /// The program ends with one error that has these words.
    pub(crate) said: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// As soon as somebody connects.
    Connect,
    /// When TLS was asked for.
    Tls,
    /// After the startup message.
    Login,
    /// At the first statement.
    Query,
}

impl Mood {
    /// The limits of time of a connection and of an answer, s: short where they are to end it. Elsewhere a busy machine
    /// must not meet them before what the mood is about.
    pub(crate) fn limits(&self) -> (u32, u32) {
        const LONG: u32 = 120;
        let connect = if self.said == NO_ANSWER { 2 } else { LONG };
        let answer = if self.said == UNFINISHED || self.said == FELL_SILENT { 3 } else { LONG };
        (connect, answer)
    }
}

/// Plain text, so that the client's first word is its startup message.
const PLAIN: &str = "&sslmode=disable";
const NO_ANSWER: &str = "no answer within 2 s (connect_timeout)";
const UNFINISHED: &str = "unfinished for 3 s";
const FELL_SILENT: &str = "did not answer within 3 s, and a new connection did not";
const TOO_MUCH: &str = "more than 16 MiB";
const NOT_HERE: &str = "which the protocol does not allow here";
const MALFORMED: &str = "does not follow the protocol";
const CLOSED: &str = "closed the connection without a message";
const BAD_SCRAM: &str = "does not follow SCRAM-SHA-256";

const fn mood(name: &'static str, at: At, act: fn(&mut Talk) -> std::io::Result<()>, said: &'static str) -> Mood {
    let url = match at {
        At::Tls => "&sslmode=require",
        _ => PLAIN,
    };
    Mood { name, at, act, url, said }
}

/// All of them.
pub(crate) const MOODS: &[Mood] = &[
    mood("says nothing", At::Connect, Talk::silence, NO_ANSWER),
    mood("hangs up at login", At::Login, |_| Ok(()), CLOSED),
    mood(
        "speaks another protocol",
        At::Login,
        |talk| talk.say(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        "does not follow the protocol",
    ),
    mood(
        "agrees to TLS and says nothing more",
        At::Tls,
        |talk| talk.say(b"S").and_then(|()| talk.silence()),
        NO_ANSWER,
    ),
    mood(
        "agrees to TLS and trickles it",
        At::Tls,
        |talk| {
            talk.say(b"S")?;
            // A handshake record of 16 KiB, a byte at a time.
            talk.trickle(&[22, 3, 3, 64, 0, 2, 0, 63, 252], 0)
        },
        NO_ANSWER,
    ),
    mood(
        "answers the question for TLS with an error text",
        At::Tls,
        |talk| talk.say(b"E\0\0\0\x10SERROR\0\0"),
        "not a PostgreSQL server",
    ),
    mood("injects plain text before TLS", At::Tls, |talk| talk.say(b"SR\0\0\0\x08\0\0\0\0Z\0\0\0\x05I"), "TLS with"),
    mood("trickles its login", At::Login, |talk| talk.trickle(b"N\0\0\x40\0", b'x'), NO_ANSWER),
    mood(
        "claims a message of 2 GB",
        At::Login,
        |talk| talk.say(b"R\x7f\xff\xff\xff\0\0\0\0"),
        "claims 2147483647 bytes",
    ),
    mood(
        "claims a message of a negative length",
        At::Login,
        |talk| talk.say(b"R\xff\xff\xff\xff\0\0\0\0"),
        "claims 4294967295 bytes",
    ),
    mood("claims a message shorter than its length", At::Login, |talk| talk.say(b"R\0\0\0\x03"), "claims 3 bytes"),
    mood(
        "claims 16 MB and sends nothing of it",
        At::Login,
        |talk| talk.say(b"R\0\xff\xff\xff").and_then(|()| talk.silence()),
        NO_ANSWER,
    ),
    mood("floods its login with notices", At::Login, |talk| talk.for_ever(&notice()), TOO_MUCH),
    mood("floods its login with parameters", At::Login, Talk::parameters, TOO_MUCH),
    mood("is ready without letting anybody in", At::Login, |talk| talk.say(READY), NOT_HERE),
    mood(
        "asks for the password twice",
        At::Login,
        |talk| {
            talk.send(b'R', &[0, 0, 0, 3])?;
            talk.send(b'R', &[0, 0, 0, 5, 1, 2, 3, 4])?;
            talk.silence()
        },
        "asks twice",
    ),
    mood(
        "asks for a way that nobody knows",
        At::Login,
        |talk| talk.send(b'R', &[0, 0, 0, 99]).and_then(|()| talk.silence()),
        "authentication method 99",
    ),
    mood("has SCRAM count to 2^31", At::Login, |talk| talk.scram("more", "c2FsdHNhbHQ=", "2147483648"), BAD_SCRAM),
    mood("has SCRAM with a nonce of its own", At::Login, |talk| talk.scram("", "c2FsdHNhbHQ=", "4096"), BAD_SCRAM),
    mood("has SCRAM with a salt that is none", At::Login, |talk| talk.scram("more", "!", "4096"), BAD_SCRAM),
    mood(
        "lets in before SCRAM has proved anything",
        At::Login,
        |talk| {
            talk.send(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0")?;
            talk.let_in("16.1")?;
            talk.silence()
        },
        NOT_HERE,
    ),
    mood(
        "has a key without a secret",
        At::Login,
        |talk| {
            talk.send(b'R', &[0; 4])?;
            talk.send(b'K', &[0, 0, 0, 1])?;
            talk.silence()
        },
        NOT_HERE,
    ),
    mood(
        "paints its error",
        At::Login,
        |talk| talk.refuse("no\x1b[2J\x1b]0;owned\x07 \u{202e}entry"),
        "no\u{fffd}[2J\u{fffd}]0;owned\u{fffd} \u{fffd}entry (SQLSTATE 28000)",
    ),
    mood(
        "has an error of 8 MB",
        At::Login,
        |talk| talk.refuse(&"long ".repeat(1_600_000)),
        "long ... (SQLSTATE 28000)",
    ),
    mood(
        "paints its version",
        At::Login,
        |talk| talk.let_in("9.6\x1b[31m").and_then(|()| talk.silence()),
        "is PostgreSQL 9.6\u{fffd}[31m",
    ),
    mood(
        "returns rows without end",
        At::Query,
        |talk| {
            talk.describe(1)?;
            talk.for_ever(&message(b'D', &[&[0, 1, 0, 0, 0, 100][..], &[b'x'; 100]].concat()))
        },
        TOO_MUCH,
    ),
    mood("has notices without end", At::Query, |talk| talk.for_ever(&notice()), TOO_MUCH),
    mood(
        "returns a row of nothing known",
        At::Query,
        |talk| talk.send(b'D', &[0, 1, 0, 0, 0, 1, b'1']).and_then(|()| talk.silence()),
        MALFORMED,
    ),
    mood(
        "returns a row with a value too many",
        At::Query,
        |talk| {
            talk.describe(1)?;
            talk.send(b'D', &[0, 2, 0, 0, 0, 1, b'1', 0, 0, 0, 1, b'1'])?;
            talk.silence()
        },
        MALFORMED,
    ),
    mood(
        "returns a value of length -2",
        At::Query,
        |talk| {
            talk.describe(1)?;
            talk.send(b'D', &[0, 1, 255, 255, 255, 254])?;
            talk.silence()
        },
        MALFORMED,
    ),
    mood(
        "describes 65535 columns and names one",
        At::Query,
        |talk| talk.send(b'T', &[&[255, 255][..], b"a\0", &[0; 18]].concat()).and_then(|()| talk.silence()),
        MALFORMED,
    ),
    mood(
        "is in a transaction of no known state",
        At::Query,
        |talk| talk.send(b'Z', b"Q").and_then(|()| talk.silence()),
        MALFORMED,
    ),
    mood("wants rows by COPY", At::Query, |talk| talk.send(b'G', &[0, 0, 0]).and_then(|()| talk.silence()), NOT_HERE),
    mood(
        "hangs up within a row",
        At::Query,
        |talk| {
            talk.describe(1)?;
            talk.say(b"D\0\0\0\x20\0\x01\0\0")
        },
        CLOSED,
    ),
    mood("trickles a row", At::Query, |talk| talk.trickle(b"D\0\0\x40\0", b'x'), UNFINISHED),
    mood("falls silent", At::Query, Talk::silence, FELL_SILENT),
    mood("dies with a word", At::Query, |talk| talk.fatal(), "terminating connection"),
];

/// The fake server; ends with the test's process.
pub(crate) fn start(mood: &'static Mood) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    // A server that has fallen silent does so to everybody.
    let silent = Arc::new(AtomicBool::new(false));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let silent = Arc::clone(&silent);
            std::thread::spawn(move || {
                let mut talk = Talk { stream, silent };
                // What goes wrong then is the client's end.
                let _ = talk.run(mood);
            });
        }
    });
    port
}

const READY: &[u8] = b"Z\0\0\0\x05I";

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![kind];
    message.extend((4 + body.len() as u32).to_be_bytes());
    message.extend(body);
    message
}

fn notice() -> Vec<u8> {
    message(b'N', b"SNOTICE\0VNOTICE\0C00000\0Mnever mind\0\0")
}

/// One client.
struct Talk {
    stream: TcpStream,
    silent: Arc<AtomicBool>,
}

impl Talk {
    fn run(&mut self, mood: &Mood) -> std::io::Result<()> {
        if self.silent.load(Ordering::Acquire) {
            return self.silence();
        }
        if mood.at == At::Connect {
            return (mood.act)(self);
        }
        if self.begin()? {
            if mood.at == At::Tls {
                return (mood.act)(self);
            }
            // A client that looks for a sign of life.
            return self.say(b"N");
        }
        if mood.at == At::Login {
            return (mood.act)(self);
        }
        self.let_in("16.1")?;
        self.hear()?;
        if mood.name == "falls silent" {
            self.silent.store(true, Ordering::Release);
        }
        (mood.act)(self)
    }

    /// Reads the first message; true if it asks for TLS.
    fn begin(&mut self) -> std::io::Result<bool> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
        self.stream.read_exact(&mut body)?;
        Ok(body[..2] == [0x04, 0xd2])
    }

    fn hear(&mut self) -> std::io::Result<Vec<u8>> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut body = vec![0; length as usize - 4];
        self.stream.read_exact(&mut body)?;
        Ok(body)
    }

    fn say(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)
    }

    fn send(&mut self, kind: u8, body: &[u8]) -> std::io::Result<()> {
        self.say(&message(kind, body))
    }

    /// Until the client ends.
    fn silence(&mut self) -> std::io::Result<()> {
        std::io::copy(&mut self.stream, &mut std::io::sink()).map(drop)
    }

    fn for_ever(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let many = bytes.repeat(1000);
        loop {
            self.say(&many)?;
        }
    }

    fn parameters(&mut self) -> std::io::Result<()> {
        for number in 0_u64.. {
            let one = format!("parameter_{number}\0{}\0", "x".repeat(1000));
            self.send(b'S', one.as_bytes())?;
        }
        Ok(())
    }

    /// A beginning, and then a byte several times a second.
    fn trickle(&mut self, begin: &[u8], more: u8) -> std::io::Result<()> {
        self.say(begin)?;
        loop {
            std::thread::sleep(Duration::from_millis(150));
            self.say(&[more])?;
        }
    }

    fn scram(&mut self, nonce_more: &str, salt: &str, count: &str) -> std::io::Result<()> {
        self.send(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0")?;
        let told = String::from_utf8_lossy(&self.hear()?).into_owned();
        let nonce = match nonce_more {
            "" => "another",
            _ => told.rsplit("r=").next().unwrap_or_default(),
        };
        let first = format!("r={nonce}{nonce_more},s={salt},i={count}");
        self.send(b'R', &[&[0, 0, 0, 11], first.as_bytes()].concat())?;
        self.silence()
    }

    fn let_in(&mut self, version: &str) -> std::io::Result<()> {
        self.send(b'R', &[0; 4])?;
        self.send(b'S', format!("server_version\0{version}\0").as_bytes())?;
        self.send(b'K', &[0, 0, 0, 1, 0, 0, 0, 2])?;
        self.say(READY)
    }

    fn describe(&mut self, columns: u8) -> std::io::Result<()> {
        let mut body = vec![0, columns];
        for _ in 0..columns {
            body.extend(b"a\0");
            body.extend([0; 18]);
        }
        self.send(b'T', &body)
    }

    fn refuse(&mut self, why: &str) -> std::io::Result<()> {
        let fields = format!("SFATAL\0VFATAL\0C28000\0M{why}\0\0");
        self.send(b'E', fields.as_bytes())?;
        self.silence()
    }

    fn fatal(&mut self) -> std::io::Result<()> {
        let fields = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0";
        self.send(b'E', fields)
    }
}
