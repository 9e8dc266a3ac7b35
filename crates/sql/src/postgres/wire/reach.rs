//! Reaching a server: its addresses, its sockets, whether it shows life, and what its silence means.

use super::error::PgError;
use crate::patience::Peer;
use crate::postgres::conninfo::{ConnectOptions, Host};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::io::{Error, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Asks for TLS: length 8, and a number no protocol version has.
pub(super) const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// The server at the other end of a session.
#[derive(Clone, Debug)]
pub(super) struct Server {
    /// With the address it was reached at.
    pub(super) host: Host,
    /// None before it is in.
    pub(super) session: Option<Session>,
}

/// A session as another one can ask for it.
#[derive(Clone, Debug)]
pub(super) struct Session {
    /// How it came in, with its host alone.
    pub(super) options: Arc<ConnectOptions>,
    /// Its process.
    pub(super) pid: i32,
    /// As [`Peer::is_at_work`].
    pub(super) is_at_work: fn(&Self, Duration) -> Option<bool>,
}

/// A socket to it.
pub(super) type Patient<S> = crate::patient::Patient<S, Server>;

impl Peer for Server {
    /// Whether a server answers the first question of a new connection: no name, no password, and its log stays silent. A
    /// server whose processes are frozen takes connections (its kernel does), but says nothing.
    fn shows_life(&self, within: Duration) -> bool {
        let end = Instant::now() + within;
        let asked = match &self.host {
            Host::Unix { directory, port } => {
                let path = directory.join(format!(".s.PGSQL.{port}"));
                connect_unix(&path, Some(end)).and_then(|mut stream| {
                    stream.set_read_timeout(Some(left(end)))?;
                    stream.write_all(&SSL_REQUEST)?;
                    stream.read(&mut [0])
                })
            }
            host @ Host::Tcp { .. } => {
                let address = addresses(host).ok().and_then(|all| all.into_iter().next());
                let Some(address) = address else { return false };
                TcpStream::connect_timeout(&address, left(end)).and_then(|mut stream| {
                    stream.set_read_timeout(Some(left(end)))?;
                    stream.write_all(&SSL_REQUEST)?;
                    stream.read(&mut [0])
                })
            }
        };
        // Whatever it says, and also if it closes: somebody is there.
        asked.is_ok()
    }

    fn is_at_work(&self, within: Duration) -> Option<bool> {
        let session = self.session.as_ref()?;
        (session.is_at_work)(session, within)
    }
}

fn left(end: Instant) -> Duration {
    let left = end.saturating_duration_since(Instant::now());
    left.max(Duration::from_millis(1))
}

/// Between two attempts at a socket whose queue is full.
const QUEUE_POLL: Duration = Duration::from_millis(10);

/// Connects to a socket of the file system, or of the abstract name space (`@` first). The kernel would wait for room in
/// the queue of a server that takes nobody for as long as that takes.
pub(super) fn connect_unix(path: &Path, end: Option<Instant>) -> std::io::Result<UnixStream> {
    let address = match path.as_os_str().as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddrUnix::new_abstract_name(name),
        None => SocketAddrUnix::new(path),
    }?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    loop {
        match connect(&socket, &address) {
            Ok(()) => break,
            Err(Errno::AGAIN) if end.is_some_and(|end| Instant::now() >= end) => {
                return Err(ErrorKind::TimedOut.into());
            }
            Err(Errno::AGAIN) => std::thread::sleep(QUEUE_POLL),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

pub(super) fn addresses(host: &Host) -> Result<Vec<SocketAddr>, PgError> {
    let Host::Tcp { name, address, port } = host else {
        return Ok(Vec::new());
    };
    if let Some(address) = address {
        return Ok(vec![SocketAddr::new(*address, *port)]);
    }
    let found = (name.as_str(), *port).to_socket_addrs();
    let found = found.map_err(|error| {
        PgError::Refused(format!(
            "host name {name:?} cannot be resolved ({error}): write its address, or name the host with hostaddr"
        ))
    })?;
    Ok(found.collect())
}

pub(super) fn waited(options: &ConnectOptions) -> String {
    options
        .connect_timeout
        .map(|timeout| format!(" within {} s (connect_timeout)", timeout.as_secs()))
        .unwrap_or_default()
}

/// A read that ended by its limit says so, not that a resource is temporarily unavailable.
pub(super) fn timed_out(error: Error, options: &ConnectOptions) -> Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            Error::new(ErrorKind::TimedOut, format!("no answer{}", waited(options)))
        }
        _ => error,
    }
}
