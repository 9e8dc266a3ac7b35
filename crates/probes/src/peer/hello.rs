//! The greeting: service, version, and whether both ends know the secret.
//!
//! All integers little-endian.
//!
//! ```text
//! client  64 bytes  "assaypr1" | service, 8, zero-padded | version u16 | flags u16 (1: has a secret) | 12 zeroes | nonce 32
//! server  64 bytes  "assaypr1" | service               | version u16 | verdict u16                 | 12 zeroes | nonce 32
//! client  32 bytes  HMAC-SHA-256("client", client's 64, server's 64)    only after verdict 1
//! server  34 bytes  verdict u16 | HMAC-SHA-256("server", client's 64, server's 64)    only after verdict 1
//! ```
//!
//! The server proves itself after the client has: a client without the secret learns nothing that helps to guess it.

use super::line::{Line, PeerError};
use super::secret::Secret;
use ring::rand::{SecureRandom, SystemRandom};

pub(crate) const MAGIC: &[u8; 8] = b"assaypr1";
const HELLO_BYTES: usize = 64;
const PROOF_BYTES: usize = 32;
const HAS_SECRET: u16 = 1;
const WHAT: &str = "in the greeting";

/// What a server offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    /// At most eight letters.
    pub(crate) name: &'static str,
    /// Both ends have the same or do not talk.
    pub(crate) version: u16,
    /// The command that starts it.
    pub(crate) started_by: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
enum Verdict {
    Welcome = 0,
    Prove = 1,
    WrongService = 2,
    WrongVersion = 3,
    NeedsSecret = 4,
    NoSecretHere = 5,
    WrongSecret = 6,
    Busy = 7,
}

impl Verdict {
    fn of(number: u16) -> Option<Self> {
        const ALL: [Verdict; 8] = [
            Verdict::Welcome,
            Verdict::Prove,
            Verdict::WrongService,
            Verdict::WrongVersion,
            Verdict::NeedsSecret,
            Verdict::NoSecretHere,
            Verdict::WrongSecret,
            Verdict::Busy,
        ];
        ALL.get(usize::from(number)).copied()
    }
}

/// The 64 bytes that each end begins with.
struct Hello([u8; HELLO_BYTES]);

impl Hello {
    fn new(service: Service, word: u16) -> Result<Self, PeerError> {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        let name = service.name.as_bytes();
        bytes[8..8 + name.len()].copy_from_slice(name);
        bytes[16..18].copy_from_slice(&service.version.to_le_bytes());
        bytes[18..20].copy_from_slice(&word.to_le_bytes());
        let random = SystemRandom::new();
        random.fill(&mut bytes[32..]).map_err(|_| PeerError::Foreign("this host has no random numbers".to_owned()))?;
        Ok(Self(bytes))
    }

    /// Reads the other end's.
    fn read(line: &mut Line) -> Result<Self, PeerError> {
        let mut bytes = [0; HELLO_BYTES];
        // The first bytes tell a stranger; he may never send as many as we do.
        line.read(&mut bytes[..8], WHAT)?;
        if bytes[..8] != *MAGIC {
            let said: String = bytes[..8]
                .iter()
                .map(|byte| match byte {
                    b' '..=b'~' => char::from(*byte),
                    _ => '.',
                })
                .collect();
            return Err(PeerError::Foreign(format!(
                "this is not assay (it begins with \"{said}\"); is it the right port?"
            )));
        }
        line.read(&mut bytes[8..], WHAT)?;
        Ok(Self(bytes))
    }

    fn service(&self) -> String {
        let name = self.0[8..16].split(|byte| *byte == 0).next();
        String::from_utf8_lossy(name.unwrap_or_default()).into_owned()
    }

    fn version(&self) -> u16 {
        u16::from_le_bytes([self.0[16], self.0[17]])
    }

    /// Flags of a client, the verdict of a server.
    fn word(&self) -> u16 {
        u16::from_le_bytes([self.0[18], self.0[19]])
    }
}

/// Greets a server.
pub(crate) fn greet(line: &mut Line, service: Service, secret: Option<&Secret>) -> Result<(), PeerError> {
    let mine = Hello::new(service, if secret.is_some() { HAS_SECRET } else { 0 })?;
    line.write(&mine.0, WHAT)?;
    let theirs = Hello::read(line)?;
    match (Verdict::of(theirs.word()), secret) {
        (Some(Verdict::Welcome), None) => Ok(()),
        (Some(Verdict::Prove), Some(secret)) => {
            let proof = secret.proof(&[b"client", &mine.0, &theirs.0]);
            line.write(proof.as_ref(), WHAT)?;
            let mut answer = [0; 2 + PROOF_BYTES];
            line.read(&mut answer, WHAT)?;
            match Verdict::of(u16::from_le_bytes([answer[0], answer[1]])) {
                Some(Verdict::Welcome) => {}
                verdict => return Err(refused(verdict, service, &theirs)),
            }
            let parts: [&[u8]; 3] = [b"server", &mine.0, &theirs.0];
            if secret.is_proof(&parts, &answer[2..]) {
                Ok(())
            } else {
                Err(PeerError::Refused("the server does not know the secret of --secret-file".to_owned()))
            }
        }
        (verdict, _) => Err(refused(verdict, service, &theirs)),
    }
}

fn refused(verdict: Option<Verdict>, service: Service, theirs: &Hello) -> PeerError {
    let name = service.name;
    PeerError::Refused(match verdict {
        Some(Verdict::WrongService) => {
            format!("an assay server, but of {}; start `{}` there", theirs.service(), service.started_by)
        }
        Some(Verdict::WrongVersion) => format!(
            "it uses version {} of the {name} protocol, this assay version {}; use the same assay on both hosts",
            theirs.version(),
            service.version
        ),
        Some(Verdict::NeedsSecret) => "the server requires --secret-file; give a file with the same content".to_owned(),
        Some(Verdict::NoSecretHere) => {
            "it was started without --secret-file; leave it out here, or start the server with it".to_owned()
        }
        Some(Verdict::WrongSecret) => "its secret differs from that of --secret-file".to_owned(),
        Some(Verdict::Busy) => "all its places are taken; try again later".to_owned(),
        Some(Verdict::Welcome | Verdict::Prove) | None => "its answer to the greeting is not assay's".to_owned(),
    })
}

/// Answers a client's greeting. Whether there is a place is asked once it is known who comes.
pub(crate) fn welcome(
    line: &mut Line,
    service: Service,
    secret: Option<&Secret>,
    mut has_place: impl FnMut() -> bool,
) -> Result<(), PeerError> {
    let mut seated = || if has_place() { Verdict::Welcome } else { Verdict::Busy };
    let theirs = Hello::read(line)?;
    let has_secret = theirs.word() & HAS_SECRET != 0;
    let verdict = match secret {
        _ if theirs.service() != service.name => Verdict::WrongService,
        _ if theirs.version() != service.version => Verdict::WrongVersion,
        Some(_) if !has_secret => Verdict::NeedsSecret,
        None if has_secret => Verdict::NoSecretHere,
        // A stranger does not learn how busy a server with a secret is.
        Some(_) => Verdict::Prove,
        None => seated(),
    };
    let mine = Hello::new(service, verdict as u16)?;
    line.write(&mine.0, WHAT)?;
    let Some(secret) = secret.filter(|_| verdict == Verdict::Prove) else {
        return match verdict {
            Verdict::Welcome => Ok(()),
            other => Err(PeerError::Refused(format!("refused it: {other:?}"))),
        };
    };
    let mut proof = [0; PROOF_BYTES];
    line.read(&mut proof, WHAT)?;
    let parts: [&[u8]; 3] = [b"client", &theirs.0, &mine.0];
    let verdict = if secret.is_proof(&parts, &proof) { seated() } else { Verdict::WrongSecret };
    let mut answer = [0; 2 + PROOF_BYTES];
    answer[..2].copy_from_slice(&(verdict as u16).to_le_bytes());
    if verdict == Verdict::Welcome {
        let proof = secret.proof(&[b"server", &theirs.0, &mine.0]);
        answer[2..].copy_from_slice(proof.as_ref());
    }
    line.write(&answer, WHAT)?;
    match verdict {
        Verdict::Welcome => Ok(()),
        other => Err(PeerError::Refused(format!("refused it: {other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_run::stop::Stop;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    const SERVICE: Service = Service { name: "redo", version: 3, started_by: "assay redo server" };

    fn secret(text: &str) -> Secret {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Secret::of_file(file.path()).unwrap()
    }

    /// What a client and a server with these say to each other, as sentences; empty where both are content.
    fn meet(client: (Service, Option<&str>), server: (Service, Option<&str>), is_busy: bool) -> (String, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let said = |result: Result<(), PeerError>| result.err().map_or_else(String::new, |e| e.to_string());
        let patience = Duration::from_secs(20);
        std::thread::scope(|scope| {
            let served = scope.spawn(|| {
                let stream = listener.accept().unwrap().0;
                let mut line = Line::of(stream, "client".to_owned(), patience, &Stop::new());
                let secret = server.1.map(secret);
                said(welcome(&mut line, server.0, secret.as_ref(), || !is_busy))
            });
            let mut line = Line::connect("127.0.0.1", port, patience, &Stop::new()).unwrap();
            let secret = client.1.map(secret);
            let told = said(greet(&mut line, client.0, secret.as_ref()));
            (told, served.join().unwrap())
        })
    }

    #[test]
    fn who_knows_the_secret_is_served_and_nobody_else() {
        let content = (String::new(), String::new());
        let known = Some("an old secret");
        assert_eq!(meet((SERVICE, None), (SERVICE, None), false), content);
        assert_eq!(meet((SERVICE, known), (SERVICE, known), false), content);
        for (mine, theirs, told) in [
            (None, known, "the server requires --secret-file"),
            (known, None, "started without --secret-file"),
            (Some("another secret"), known, "its secret differs"),
        ] {
            let (client, server) = meet((SERVICE, mine), (SERVICE, theirs), false);
            assert!(client.contains(told), "{client}");
            assert!(server.contains("refused it"), "{server}");
        }
        for secret in [None, known] {
            let (client, _) = meet((SERVICE, secret), (SERVICE, secret), true);
            assert!(client.contains("all its places are taken"), "{client}");
        }
    }

    #[test]
    fn another_version_and_another_service_are_named() {
        let other = Service { version: 4, ..SERVICE };
        let (client, _) = meet((other, None), (SERVICE, None), false);
        assert!(client.contains("version 3") && client.contains("version 4"), "{client}");
        let ping = Service { name: "ping", ..SERVICE };
        let (client, _) = meet((SERVICE, None), (ping, None), false);
        assert!(client.contains("an assay server, but of ping"), "{client}");
    }

    #[test]
    fn strangers_silence_and_closed_doors_are_told_apart_in_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut held: Vec<TcpStream> = Vec::new();
        let (short, long) = (Duration::from_millis(300), Duration::from_secs(120));
        let mut ask = |patience, answer: Option<&[u8]>| {
            let mut line = Line::connect("127.0.0.1", port, patience, &Stop::new()).unwrap();
            let mut stream = listener.accept().unwrap().0;
            match answer {
                Some(bytes) => {
                    stream.write_all(bytes).unwrap();
                    held.push(stream);
                }
                None => drop(stream),
            }
            greet(&mut line, SERVICE, None).unwrap_err().to_string()
        };
        let said = ask(long, Some(b"SSH-2.0-OpenSSH_9.2\r\n"));
        assert!(said.contains("\"SSH-2.0-\""), "{said}");
        let said = ask(short, Some(b""));
        assert!(said.contains("no answer within 0.3 s"), "{said}");
        let said = ask(long, None);
        assert!(said.contains("the connection ended"), "{said}");
    }

    #[test]
    fn a_frame_longer_than_it_may_be_is_not_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let patience = Duration::from_secs(20);
        let mut client = Line::connect("127.0.0.1", port, patience, &Stop::new()).unwrap();
        let stream = listener.accept().unwrap().0;
        let mut server = Line::of(stream, "client".to_owned(), patience, &Stop::new());
        client.tell(&[1, 2, 3], "in a test").unwrap();
        assert_eq!(server.hear::<Vec<u8>>(100, "in a test").unwrap(), [1, 2, 3]);
        client.tell(&"x".repeat(100), "in a test").unwrap();
        let error = server.hear::<String>(50, "in a test").unwrap_err();
        assert!(error.to_string().contains("102 bytes"), "{error}");
    }
}
