//! From an address to a stream: sockets, silent peers, and whether to encrypt, as libpq's `sslmode` has it.

use super::error::PgError;
use super::stream::{Limit, Patient, Stream};
use super::tls;
use crate::postgres::conninfo::{ConnectOptions, Host, SslMode, user_field};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, sockopt,
};
use std::io::{Error, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Asks for TLS: length 8, and a number no protocol version has.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// One way of trying an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// In the clear.
    Plain,
    /// Encrypted if the server can.
    Offered,
    /// Encrypted or not at all.
    Encrypted,
}

/// The ways to try, one after the other: the second where the server refuses the first. On a socket of the file system
/// nothing is encrypted, whatever `sslmode` says.
pub(super) fn ways(host: &Host, mode: SslMode) -> &'static [Way] {
    match (host, mode) {
        (Host::Unix { .. }, _) | (_, SslMode::Disable) => &[Way::Plain],
        (_, SslMode::Allow) => &[Way::Plain, Way::Encrypted],
        (_, SslMode::Prefer) => &[Way::Offered, Way::Plain],
        _ => &[Way::Encrypted],
    }
}

/// A stream ready for the protocol, and the host with the address it went to. All of it, and the login after it, has
/// `connect_timeout` once the address was found.
pub(super) fn dial(
    host: &Host,
    way: Way,
    options: &ConnectOptions,
) -> Result<(Stream, Host), PgError> {
    match host {
        Host::Unix { directory, port } => {
            let end = end(options);
            let path = directory.join(format!(".s.PGSQL.{port}"));
            let stream = unix(&path, end, options)?;
            let patience = options.patience.clone();
            let stream = Patient::new(stream, host.clone(), Limit::Until(end), patience);
            let stream = stream.map_err(|source| PgError::Io {
                what: format!("connecting to {}", path.display()),
                source,
            })?;
            Ok((Stream::Unix(stream), host.clone()))
        }
        Host::Tcp { name, port, .. } => {
            let (stream, end) = tcp(host, options)?;
            let address = stream.peer_addr().map(|peer| peer.ip()).ok();
            let reached = Host::Tcp {
                name: name.clone(),
                address,
                port: *port,
            };
            let patience = options.patience.clone();
            let stream = Patient::new(stream, reached.clone(), Limit::Until(end), patience);
            let stream = stream.map_err(|source| PgError::Io {
                what: format!("connecting to {host}"),
                source,
            })?;
            Ok((encrypted(stream, name, way, options)?, reached))
        }
    }
}

/// When a login that begins now must be done.
fn end(options: &ConnectOptions) -> Option<Instant> {
    Some(Instant::now() + options.connect_timeout?)
}

/// Whether a server answers the first question of a new connection: no name, no password, and its log stays silent. A
/// server whose processes are frozen takes connections (its kernel does), but says nothing.
pub(super) fn shows_life(host: &Host, within: Duration) -> bool {
    let end = Instant::now() + within;
    let asked = match host {
        Host::Unix { directory, port } => {
            let path = directory.join(format!(".s.PGSQL.{port}"));
            connect_unix(&path, Some(end)).and_then(|mut stream| {
                stream.set_read_timeout(Some(left(end)))?;
                stream.write_all(&SSL_REQUEST)?;
                stream.read(&mut [0])
            })
        }
        Host::Tcp { .. } => {
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

fn left(end: Instant) -> Duration {
    let left = end.saturating_duration_since(Instant::now());
    left.max(Duration::from_millis(1))
}

fn encrypted(
    mut tcp: Patient<TcpStream>,
    name: &str,
    way: Way,
    options: &ConnectOptions,
) -> Result<Stream, PgError> {
    if way == Way::Plain {
        return Ok(Stream::Tcp(tcp));
    }
    if !options.tls.direct {
        let mut answer = [0];
        let asked = tcp
            .write_all(&SSL_REQUEST)
            .and_then(|()| tcp.read_exact(&mut answer));
        asked.map_err(|source| PgError::Io {
            what: format!("asking {name} for TLS"),
            source: timed_out(source, options),
        })?;
        match (answer[0], way) {
            (b'S', _) => {}
            (b'N', Way::Offered) => return Ok(Stream::Tcp(tcp)),
            (b'N', _) => {
                return Err(PgError::Refused(format!(
                    "{name} does not speak TLS, and sslmode asks for it: set ssl=on there, or connect with sslmode=prefer"
                )));
            }
            _ => {
                return Err(PgError::Refused(format!(
                    "{name} answered the question for TLS with byte {:#04x}: it is no PostgreSQL server",
                    answer[0]
                )));
            }
        }
    }
    tls::secure(tcp, name, options).map(|secured| Stream::Tls(Box::new(secured)))
}

/// Between two attempts at a socket whose queue is full.
const QUEUE_POLL: Duration = Duration::from_millis(10);

/// Connects to a socket of the file system, or of the abstract name space (`@` first). The kernel would wait for room in
/// the queue of a server that takes nobody for as long as that takes.
fn connect_unix(path: &Path, end: Option<Instant>) -> std::io::Result<UnixStream> {
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

fn unix(
    path: &Path,
    end: Option<Instant>,
    options: &ConnectOptions,
) -> Result<UnixStream, PgError> {
    let stream = connect_unix(path, end).map_err(|source| match source.kind() {
        ErrorKind::NotFound => PgError::Refused(format!(
            "no server has its socket at {}: is it running there? host=DIRECTORY names another place, -h NAME in the URL (//NAME:PORT/) goes over the network",
            path.display()
        )),
        ErrorKind::ConnectionRefused => PgError::Refused(format!(
            "nobody listens at {}: the server that made the socket is gone; start it",
            path.display()
        )),
        ErrorKind::PermissionDenied => PgError::Refused(format!(
            "{}: permission denied; the server's unix_socket_permissions keep this user out",
            path.display()
        )),
        _ => PgError::Io {
            what: format!("connecting to {}", path.display()),
            source: timed_out(source, options),
        },
    })?;
    if let Some(wanted) = &options.require_peer {
        verify_peer(&stream, wanted, path)?;
    }
    Ok(stream)
}

/// The server's process runs as the user `requirepeer` names.
fn verify_peer(stream: &UnixStream, wanted: &str, path: &Path) -> Result<(), PgError> {
    let peer = sockopt::socket_peercred(stream).map_err(|error| PgError::Io {
        what: format!("asking who serves {}", path.display()),
        source: error.into(),
    })?;
    let uid = peer.uid.as_raw();
    let name = user_field(uid, 0).unwrap_or_else(|| uid.to_string());
    if name == wanted {
        return Ok(());
    }
    Err(PgError::Refused(format!(
        "the server at {} runs as {name}, and requirepeer asks for {wanted}",
        path.display()
    )))
}

fn tcp(host: &Host, options: &ConnectOptions) -> Result<(TcpStream, Option<Instant>), PgError> {
    let mut last = None;
    for address in addresses(host)? {
        let end = end(options);
        let opened = match options.connect_timeout {
            Some(timeout) => TcpStream::connect_timeout(&address, timeout),
            None => TcpStream::connect(address),
        };
        match opened.and_then(|stream| prepared(stream, options)) {
            Ok(stream) => return Ok((stream, end)),
            Err(error) => last = Some(error),
        }
    }
    let source = last.unwrap_or_else(|| ErrorKind::NotFound.into());
    Err(match source.kind() {
        ErrorKind::ConnectionRefused => PgError::Refused(format!(
            "nobody listens at {host}: is the server running, and does its listen_addresses include this address?"
        )),
        ErrorKind::TimedOut => PgError::Refused(format!(
            "{host} does not answer{}: is the host up, and does a firewall let the port through?",
            waited(options)
        )),
        _ => PgError::Io {
            what: format!("connecting to {host}"),
            source,
        },
    })
}

fn addresses(host: &Host) -> Result<Vec<SocketAddr>, PgError> {
    let Host::Tcp {
        name,
        address,
        port,
    } = host
    else {
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

fn waited(options: &ConnectOptions) -> String {
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

/// No gathering of small packets; probes of a silent peer.
fn prepared(stream: TcpStream, options: &ConnectOptions) -> std::io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    let keepalive = &options.keepalive;
    sockopt::set_socket_keepalive(&stream, keepalive.on)?;
    if let (true, Some(idle)) = (keepalive.on, keepalive.idle) {
        sockopt::set_tcp_keepidle(&stream, idle)?;
    }
    if let (true, Some(interval)) = (keepalive.on, keepalive.interval) {
        sockopt::set_tcp_keepintvl(&stream, interval)?;
    }
    if let (true, Some(count)) = (keepalive.on, keepalive.count) {
        sockopt::set_tcp_keepcnt(&stream, count)?;
    }
    if let Some(timeout) = keepalive.user_timeout {
        let ms = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        sockopt::set_tcp_user_timeout(&stream, ms)?;
    }
    Ok(stream)
}
