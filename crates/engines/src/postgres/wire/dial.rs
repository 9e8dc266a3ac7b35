//! From an address to a stream: sockets, silent peers, and whether to encrypt, as libpq's `sslmode` has it.

use super::error::PgError;
use super::stream::Stream;
use super::tls;
use crate::postgres::conninfo::{ConnectOptions, Host, SslMode, user_field};
use rustix::net::sockopt;
use std::io::{Error, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

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

/// A stream ready for the protocol, and the host with the address it went to.
pub(super) fn dial(
    host: &Host,
    way: Way,
    options: &ConnectOptions,
) -> Result<(Stream, Host), PgError> {
    match host {
        Host::Unix { directory, port } => {
            let stream = unix(directory, *port, options)?;
            Ok((Stream::Unix(stream), host.clone()))
        }
        Host::Tcp { name, port, .. } => {
            let stream = tcp(host, options)?;
            let address = stream.peer_addr().map(|peer| peer.ip()).ok();
            let reached = Host::Tcp {
                name: name.clone(),
                address,
                port: *port,
            };
            Ok((encrypted(stream, name, way, options)?, reached))
        }
    }
}

fn encrypted(
    mut tcp: TcpStream,
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
    tls::secure(tcp, name, &options.tls).map(|secured| Stream::Tls(Box::new(secured)))
}

fn unix(directory: &Path, port: u16, options: &ConnectOptions) -> Result<UnixStream, PgError> {
    let path = directory.join(format!(".s.PGSQL.{port}"));
    let abstract_name = path.as_os_str().as_bytes().strip_prefix(b"@");
    let opened = match abstract_name {
        Some(name) => std::os::unix::net::SocketAddr::from_abstract_name(name)
            .and_then(|address| UnixStream::connect_addr(&address)),
        None => UnixStream::connect(&path),
    };
    let stream = opened.map_err(|source| match source.kind() {
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
            source,
        },
    })?;
    let limits = stream
        .set_read_timeout(options.connect_timeout)
        .and_then(|()| stream.set_write_timeout(options.connect_timeout));
    limits.map_err(|source| PgError::Io {
        what: format!("connecting to {}", path.display()),
        source,
    })?;
    if let Some(wanted) = &options.require_peer {
        verify_peer(&stream, wanted, &path)?;
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

fn tcp(host: &Host, options: &ConnectOptions) -> Result<TcpStream, PgError> {
    let mut last = None;
    for address in addresses(host)? {
        let opened = match options.connect_timeout {
            Some(timeout) => TcpStream::connect_timeout(&address, timeout),
            None => TcpStream::connect(address),
        };
        match opened.and_then(|stream| prepared(stream, options)) {
            Ok(stream) => return Ok(stream),
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

/// No gathering of small packets; probes of a silent peer; waits of the login are limited.
fn prepared(stream: TcpStream, options: &ConnectOptions) -> std::io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(options.connect_timeout)?;
    stream.set_write_timeout(options.connect_timeout)?;
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
