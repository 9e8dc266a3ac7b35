//! Logs a session in: the server's greeting, TLS, and authentication.
//!
//! A server learns nothing that it could use elsewhere: proofs answer its nonce, and the password itself goes only over
//! TLS or a Unix socket, or encrypted with a public key that the user has named.

use super::address::Address;
use super::dial::Stream;
use super::error::MyError;
use super::files::Options;
use super::scramble;
use super::tls::Mode;
use super::wire::{EOF, ERR, OK, Packets, Script, packets, refused};
use crate::tls::{reason, secure};
use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

/// Capabilities (CLIENT_...) that assay uses if the server has them.
const LONG_PASSWORD: u32 = 1;
const LONG_FLAG: u32 = 1 << 2;
const CONNECT_WITH_DB: u32 = 1 << 3;
const LOCAL_FILES: u32 = 1 << 7;
const PROTOCOL_41: u32 = 1 << 9;
const SSL: u32 = 1 << 11;
const TRANSACTIONS: u32 = 1 << 13;
const SECURE_CONNECTION: u32 = 1 << 15;
const MULTI_RESULTS: u32 = 1 << 17;
const PS_MULTI_RESULTS: u32 = 1 << 18;
const PLUGIN_AUTH: u32 = 1 << 19;
const NEEDED: u32 = PROTOCOL_41 | SECURE_CONNECTION;
const WANTED: u32 = NEEDED
    | LONG_PASSWORD
    | LONG_FLAG
    | CONNECT_WITH_DB
    | LOCAL_FILES
    | TRANSACTIONS
    | MULTI_RESULTS
    | PS_MULTI_RESULTS
    | PLUGIN_AUTH;
/// MariaDB's own, offered by servers that leave [`LONG_PASSWORD`] out: unchanged columns are not described again.
const CACHE_METADATA: u32 = 1 << 4;
/// `utf8mb4_general_ci`, for the names in a login.
const CHARACTER_SET: u8 = 45;
/// Longest packet that we may send.
const PACKET_BYTES: u32 = 1 << 30;
/// Nonce length of most plugins, and of ed25519.
const NONCE_BYTES: usize = 20;
const LONG_NONCE_BYTES: usize = 32;
/// Most authentication methods of one account.
const WAYS_MAX: usize = 4;

/// An authentication plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plugin {
    Native,
    Sha2,
    Ed25519,
}

use Plugin::{Ed25519, Native, Sha2};

impl Plugin {
    const ALL: [(Self, &str); 3] =
        [(Native, "mysql_native_password"), (Sha2, "caching_sha2_password"), (Ed25519, "client_ed25519")];

    fn named(name: &[u8]) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| known.as_bytes() == name).map(|(plugin, _)| *plugin)
    }

    fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The nonce in the data that a server sent.
    fn nonce(self, sent: &[u8]) -> Result<Vec<u8>, MyError> {
        let bytes = if self == Ed25519 { LONG_NONCE_BYTES } else { NONCE_BYTES };
        sent.get(..bytes).map(<[u8]>::to_vec).ok_or_else(|| MyError::odd("a nonce that is too short"))
    }

    /// The proof; empty for an empty password.
    fn proof(self, password: &[u8], nonce: &[u8]) -> Vec<u8> {
        match self {
            _ if password.is_empty() => Vec::new(),
            Native => scramble::native(password, nonce),
            Sha2 => scramble::sha2(password, nonce),
            Ed25519 => scramble::ed25519(password, nonce),
        }
    }
}

/// The first packet of a server.
#[derive(Debug, PartialEq, Eq)]
struct Greeting {
    id: u32,
    flags: u32,
    /// MariaDB's own.
    more_flags: u32,
    nonce: Vec<u8>,
    plugin: Plugin,
}

impl Greeting {
    fn read(packet: &[u8]) -> Result<Self, MyError> {
        match packet {
            [10, ..] => Self::parse(packet).ok_or_else(|| MyError::odd("a greeting that is none")),
            [ERR, ..] => Err(refused(packet)),
            [version @ 1..=20, ..] => {
                Err(MyError::Refused(format!("it uses version {version} of the protocol, not 10")))
            }
            _ => Err(MyError::odd("its greeting is not MariaDB's or MySQL's")),
        }
    }

    fn parse(packet: &[u8]) -> Option<Self> {
        let version = packet.iter().position(|byte| *byte == 0)?;
        let (id, rest) = packet.get(version + 1..)?.split_first_chunk()?;
        let (nonce, rest) = rest.split_first_chunk::<8>()?;
        // A zero; then the lower capability flags, character set, status, the upper flags, the nonce's length, ten reserved bytes.
        let (&[_, a, b, _, _, _, c, d, _, _, _, _, _, _, _, e, f, g, h], rest) = rest.split_first_chunk()?;
        let (more_nonce, rest) = rest.split_at_checked(NONCE_BYTES - nonce.len())?;
        // A zero ends the nonce. With a longer nonce the name would not be found here, but assay supports no such plugin.
        let name = rest.get(1..)?.split(|byte| *byte == 0).next()?;
        let flags = u32::from_le_bytes([a, b, c, d]);
        Some(Self {
            id: u32::from_le_bytes(*id),
            flags,
            more_flags: if flags & LONG_PASSWORD == 0 { u32::from_le_bytes([e, f, g, h]) } else { 0 },
            nonce: [&nonce[..], more_nonce].concat(),
            // The server requests another plugin if it needs one.
            plugin: if name == Sha2.name().as_bytes() { Sha2 } else { Native },
        })
    }

    /// The client's first packet; before TLS it contains only the request for TLS.
    fn reply(&self, encrypts: bool) -> Vec<u8> {
        let flags = self.flags & WANTED | if encrypts { SSL } else { 0 };
        let mut bytes = flags.to_le_bytes().to_vec();
        bytes.extend(PACKET_BYTES.to_le_bytes());
        bytes.push(CHARACTER_SET);
        bytes.extend([0; 19]);
        bytes.extend((self.more_flags & CACHE_METADATA).to_le_bytes());
        bytes
    }
}

/// Logs in over a socket. Returns the stream to continue with, and the session's number on the server.
pub(super) fn log_in(mut stream: Stream, address: &Address) -> Result<(Stream, Packets, u32), MyError> {
    let mut packets = Packets::new(address.patience.answer());
    let greeting = Greeting::read(&hear(&mut packets, &mut stream)?)?;
    let encrypts = match &stream {
        Stream::Tcp(_) if address.tls.mode == Mode::Disabled => false,
        Stream::Tcp(_) if greeting.flags & SSL == 0 => match address.tls.mode {
            Mode::Preferred => false,
            _ => return Err(MyError::NoTls),
        },
        Stream::Tcp(_) => true,
        _ => false,
    };
    if encrypts {
        say(&mut packets, &mut stream, &greeting.reply(true))?;
        stream = encrypted(stream, &packets, address)?;
    }
    let protected = !matches!(stream, Stream::Tcp(_));
    enter(&mut packets, &mut stream, &greeting, address, (encrypts, protected))?;
    Ok((stream, packets, greeting.id))
}

/// Starts TLS on a socket.
fn encrypted(stream: Stream, packets: &Packets, address: &Address) -> Result<Stream, MyError> {
    // A man in the middle could have put plain bytes here that would seem to come from the server through TLS.
    if !packets.is_empty() {
        return Err(MyError::odd("bytes before TLS begins"));
    }
    let Stream::Tcp(tcp) = stream else {
        return Ok(stream);
    };
    let host = address.host.name();
    let (config, name) = address.tls.ready(host, &tcp.socket).map_err(MyError::Refused)?;
    secure(tcp, config, name).map(|secured| Stream::Tls(Box::new(secured))).map_err(|error| match error.kind() {
        ErrorKind::InvalidData | ErrorKind::Other => MyError::Refused(format!("TLS: {}", reason(&error))),
        _ => MyError::Io(error),
    })
}

/// Sends user and proof, and answers what the server requests.
fn enter(
    packets: &mut Packets,
    stream: &mut (impl Read + Write),
    greeting: &Greeting,
    address: &Address,
    (encrypts, protected): (bool, bool),
) -> Result<(), MyError> {
    if greeting.flags & NEEDED != NEEDED {
        return Err(MyError::Refused("it is too old: it does not support the passwords of MySQL 4.1".to_owned()));
    }
    let password = address.password.as_ref().map_or(&[][..], |password| password.reveal().as_bytes());
    let (mut plugin, mut nonce) = (greeting.plugin, greeting.nonce.clone());
    let mut reply = greeting.reply(encrypts);
    let proof = plugin.proof(password, &nonce);
    reply.extend([address.user.as_bytes(), &[0, proof.len() as u8], &proof].concat());
    reply.extend([address.database.as_bytes(), &[0], plugin.name().as_bytes(), &[0]].concat());
    say(packets, stream, &reply)?;
    let (mut ways, mut is_asked) = (0, false);
    loop {
        let packet = hear(packets, stream)?;
        match &packet[..] {
            [OK, ..] => return Ok(()),
            [ERR, ..] => return Err(refused(&packet)),
            [EOF] => return Err(unknown(b"mysql_old_password")),
            [EOF, asked @ ..] if ways < WAYS_MAX => {
                ways += 1;
                let (name, sent) = asked.split_at(asked.iter().position(|byte| *byte == 0).unwrap_or(asked.len()));
                plugin = Plugin::named(name).ok_or_else(|| unknown(name))?;
                nonce = plugin.nonce(sent.get(1..).unwrap_or_default())?;
                say(packets, stream, &plugin.proof(password, &nonce))?;
            }
            // 1, 3: the server's cache knows the user, and OK follows. 1, 4: it needs the password itself.
            [1, 3] if plugin == Sha2 => {}
            [1, 4] if plugin == Sha2 && !is_asked => {
                is_asked = true;
                let whole = match (&address.tls.server_key, protected) {
                    (_, true) => [password, &[0]].concat(),
                    (Some(key), false) => scramble::encrypted(password, &nonce, key).map_err(MyError::Refused)?,
                    (None, false) => return Err(MyError::Refused(UNPROTECTED.to_owned())),
                };
                say(packets, stream, &whole)?;
            }
            _ => return Err(MyError::odd("a login that is none")),
        }
    }
}

const UNPROTECTED: &str = "it asks for the password itself (caching_sha2_password), and nothing protects it in \
    transit: use ssl-mode=required, a socket, or name the server's key with server-public-key-path";

fn unknown(plugin: &[u8]) -> MyError {
    let name = super::on_one_line(&String::from_utf8_lossy(&plugin[..plugin.len().min(64)]));
    let known = Plugin::ALL.map(|(_, name)| name).join(", ");
    MyError::Refused(format!(
        "it asks for a login by {name}, but assay supports only {known}: use an account with one of them"
    ))
}

fn say(packets: &mut Packets, stream: &mut impl Write, payload: &[u8]) -> Result<(), MyError> {
    let (bytes, number) = self::packets(payload, packets.number);
    packets.number = number;
    stream.write_all(&bytes)?;
    Ok(stream.flush()?)
}

fn hear(packets: &mut Packets, stream: &mut impl Read) -> Result<Vec<u8>, MyError> {
    let packet = packets.next(stream)?;
    Ok(packets.at(packet).to_vec())
}

/// For fuzzing: the result of a login to a server that sends these bytes in pieces of `piece` bytes.
#[doc(hidden)]
pub fn read_login(bytes: &[u8], piece: usize) -> Result<(), String> {
    struct Talk<'a>(Script<'a>);
    impl Read for Talk<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0.read(buffer)
        }
    }
    impl Write for Talk<'_> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let address = Address::parse("//me:s3cret@h/d", Options::default())?;
    let (mut packets, mut stream) = (Packets::new(Duration::MAX), Talk(Script { bytes, piece }));
    let entered = hear(&mut packets, &mut stream)
        .and_then(|packet| Greeting::read(&packet))
        .and_then(|greeting| enter(&mut packets, &mut stream, &greeting, &address, (false, false)));
    entered.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A greeting with these flags and this plugin.
    fn greeting(flags: u32, more_flags: u32, plugin: &[u8]) -> Vec<u8> {
        let [a, b, c, d] = flags.to_le_bytes();
        let mut greeting = b"\x0a9.7.4\0\x07\x01\0\0ABCDEFGH\0".to_vec();
        greeting.extend([a, b, 33, 2, 0, c, d, 21, 0, 0, 0, 0, 0, 0]);
        greeting.extend(more_flags.to_le_bytes());
        greeting.extend([b"IJKLMNOPQRST\0", plugin].concat());
        greeting
    }

    #[test]
    fn a_greeting_tells_who_and_how_and_a_piece_of_one_is_none() {
        let whole = greeting(u32::MAX, 0x14, b"caching_sha2_password\0");
        let read = Greeting::read(&whole).unwrap();
        assert_eq!((read.id, read.flags, read.more_flags), (263, u32::MAX, 0));
        assert_eq!((read.nonce.as_slice(), read.plugin), (&b"ABCDEFGHIJKLMNOPQRST"[..], Sha2));
        let other = Greeting::read(&greeting(u32::MAX - 1, 0x14, b"auth_gssapi_client")).unwrap();
        assert_eq!((other.more_flags, other.plugin), (0x14, Native));
        for length in 0..whole.len() - b"\0caching_sha2_password\0".len() {
            assert!(Greeting::read(&whole[..length]).is_err(), "{length}");
        }
    }

    /// What comes of a login to a server that sends these packets.
    fn comes(packets: &[&[u8]]) -> Result<(), String> {
        let mut bytes = Vec::new();
        for (number, packet) in [0].into_iter().chain((2..).step_by(2)).zip(packets) {
            bytes.extend(self::packets(packet, number).0);
        }
        read_login(&bytes, 7)
    }

    #[test]
    fn no_server_is_told_a_password_or_in_a_way_that_is_too_old() {
        let native = greeting(u32::MAX, 0, b"mysql_native_password\0");
        let sha2 = b"\xfecaching_sha2_password\0ABCDEFGHIJKLMNOPQRST\0";
        assert_eq!(comes(&[&native, &[OK, 0, 0]]), Ok(()));
        assert_eq!(comes(&[&native, sha2, &[OK]]), Ok(()));
        assert_eq!(comes(&[&native, b"\xfeclient_ed25519\0ABCDEFGHIJKLMNOPQRSTABCDEFGHIJKL", &[OK]]), Ok(()));
        let refused = |packets: &[&[u8]], wanted: &str| {
            let said = comes(packets).expect_err(wanted);
            assert!(said.contains(wanted), "{said}");
        };
        refused(&[&native, sha2, &[1, 4]], "server-public-key-path");
        refused(&[&native, &[1, 3]], "a login that is none");
        refused(&[&native, b"\xfemysql_clear_password\0"], "mysql_clear_password");
        refused(&[&native, b"\xfedialog\0\x04Password: "], "dialog");
        refused(&[&native, &[EOF]], "mysql_old_password");
        refused(&[&greeting(!SECURE_CONNECTION, 0, b"\0"), &[OK]], "too old");
        refused(&[&native, b"\xff\x15\x04#28000Access denied"], "Access denied (error 1045)");
    }

    proptest::proptest! {
        /// Whatever a server sends, in whatever pieces: somebody is in or an error says why not, never a panic.
        #[test]
        fn any_bytes_are_a_login_or_an_error(
            packets in proptest::collection::vec(proptest::collection::vec(proptest::arbitrary::any::<u8>(), 0..40), 0..6),
            kinds in proptest::collection::vec(
                proptest::sample::select(vec![&[OK][..], &[ERR], &[EOF], &[1, 4], b"\xfecaching_sha2_password\0"]),
                6,
            ),
            flags in proptest::arbitrary::any::<u32>(),
            greets in proptest::arbitrary::any::<bool>(),
        ) {
            let mut all: Vec<Vec<u8>> = packets.iter().zip(kinds).map(|(more, kind)| [kind, more].concat()).collect();
            if greets {
                all.insert(0, greeting(flags | NEEDED, flags, b"mysql_native_password\0"));
            }
            let all: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
            if let Err(why) = comes(&all) {
                proptest::prop_assert!(!why.contains(char::is_control), "{why:?}");
            }
            let _ = read_login(&packets.concat(), 3);
        }
    }
}
