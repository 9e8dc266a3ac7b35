//! Turns an address into a stream: sockets, keepalive, and encryption as set by libpq's `sslmode`.

use super::error::PgError;
use super::peer::{Patient, Server, Stream};
use super::reach::{SSL_REQUEST, addresses, timed_out, waited};
use super::tls;
use crate::patient::Limit;
use crate::postgres::conninfo::{ConnectOptions, Host, SslMode, user_field};
use crate::reach::{connect_tcp, connect_unix};
use rustix::net::sockopt;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

/// One way to connect to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Without encryption.
    Plain,
    /// Encrypted if the server supports it.
    Offered,
    /// Encrypted or not at all.
    Encrypted,
}

/// The ways to try in order: the second if the server refuses the first. On a Unix socket nothing is encrypted,
/// whatever `sslmode` says.
pub(super) fn ways(host: &Host, mode: SslMode) -> &'static [Way] {
    match (host, mode) {
        (Host::Unix { .. }, _) | (_, SslMode::Disable) => &[Way::Plain],
        (_, SslMode::Allow) => &[Way::Plain, Way::Encrypted],
        (_, SslMode::Prefer) => &[Way::Offered, Way::Plain],
        _ => &[Way::Encrypted],
    }
}

/// A stream ready for the protocol, and the host with the address in use. `connect_timeout` covers this and the login,
/// from when the address was resolved.
pub(super) fn dial(host: &Host, way: Way, options: &ConnectOptions) -> Result<(Stream, Host), PgError> {
    match host {
        Host::Unix { directory, port } => {
            let end = end(options);
            let path = directory.join(format!(".s.PGSQL.{port}"));
            let stream = patient(unix(&path, end, options)?, host, end, options)?;
            Ok((Stream::Unix(stream), host.clone()))
        }
        Host::Tcp { name, port, .. } => {
            let (stream, end) = tcp(host, options)?;
            let address = stream.peer_addr().map(|peer| peer.ip()).ok();
            let reached = Host::Tcp { name: name.clone(), address, port: *port };
            let stream = patient(stream, &reached, end, options)?;
            Ok((encrypted(stream, name, way, options)?, reached))
        }
    }
}

fn patient<S: AsFd>(
    stream: S,
    host: &Host,
    end: Option<Instant>,
    options: &ConnectOptions,
) -> Result<Patient<S>, PgError> {
    let peer = Server { host: host.clone(), session: None };
    Patient::new(stream, peer, Limit::Until(end), options.patience.clone())
        .map_err(|source| PgError::Io { what: format!("connecting to {host}"), source })
}

/// Deadline of a login that starts now.
fn end(options: &ConnectOptions) -> Option<Instant> {
    Some(Instant::now() + options.connect_timeout?)
}

fn encrypted(mut tcp: Patient<TcpStream>, name: &str, way: Way, options: &ConnectOptions) -> Result<Stream, PgError> {
    if way == Way::Plain {
        return Ok(Stream::Tcp(tcp));
    }
    if !options.tls.direct {
        let mut answer = [0];
        let asked = tcp.write_all(&SSL_REQUEST).and_then(|()| tcp.read_exact(&mut answer));
        asked.map_err(|source| PgError::Io {
            what: format!("asking {name} for TLS"),
            source: timed_out(source, options),
        })?;
        match (answer[0], way) {
            (b'S', _) => {}
            (b'N', Way::Offered) => return Ok(Stream::Tcp(tcp)),
            (b'N', _) => {
                return Err(PgError::Refused(format!(
                    "{name} does not support TLS, but sslmode requires it: set ssl=on there, or connect with \
                     sslmode=prefer"
                )));
            }
            _ => {
                return Err(PgError::Refused(format!(
                    "{name} answered the TLS request with byte {:#04x}: it is not a PostgreSQL server",
                    answer[0]
                )));
            }
        }
    }
    tls::secure(tcp, name, options).map(|secured| Stream::Tls(Box::new(secured)))
}

fn unix(path: &Path, end: Option<Instant>, options: &ConnectOptions) -> Result<UnixStream, PgError> {
    let stream = connect_unix(path, end, &options.patience).map_err(|source| match source.kind() {
        ErrorKind::NotFound => PgError::Refused(format!(
            "no server has its socket at {}: is it running there? Name another directory with host=DIRECTORY, or a \
             host in the URL (//NAME:PORT/) to connect over the network",
            path.display()
        )),
        ErrorKind::ConnectionRefused => PgError::Refused(format!(
            "no process listens at {}: the server that made the socket is gone; start it",
            path.display()
        )),
        ErrorKind::PermissionDenied => PgError::Refused(format!(
            "{}: permission denied; the server's unix_socket_permissions keep this user out",
            path.display()
        )),
        _ => PgError::Io { what: format!("connecting to {}", path.display()), source: timed_out(source, options) },
    })?;
    if let Some(wanted) = &options.require_peer {
        verify_peer(&stream, wanted, path)?;
    }
    Ok(stream)
}

/// Verifies that the server's process runs as the user in `requirepeer`.
fn verify_peer(stream: &UnixStream, wanted: &str, path: &Path) -> Result<(), PgError> {
    let peer = sockopt::socket_peercred(stream).map_err(|error| PgError::Io {
        what: format!("asking which user runs the server at {}", path.display()),
        source: error.into(),
    })?;
    let uid = peer.uid.as_raw();
    let name = user_field(uid, 0).unwrap_or_else(|| uid.to_string());
    if name == wanted {
        return Ok(());
    }
    Err(PgError::Refused(format!("the server at {} runs as {name}, but requirepeer asks for {wanted}", path.display())))
}

fn tcp(host: &Host, options: &ConnectOptions) -> Result<(TcpStream, Option<Instant>), PgError> {
    let mut last = None;
    for address in addresses(host, &options.patience)? {
        let end = end(options);
        let opened = connect_tcp(address, end, &options.patience);
        match opened.and_then(|stream| prepared(stream, options)) {
            Ok(stream) => return Ok((stream, end)),
            Err(error) => last = Some(error),
        }
    }
    let source = last.unwrap_or_else(|| ErrorKind::NotFound.into());
    Err(match source.kind() {
        ErrorKind::ConnectionRefused => PgError::Unreached(format!(
            "no process listens at {host}: is the server running, and does its listen_addresses include this address?"
        )),
        ErrorKind::TimedOut => PgError::Unreached(format!(
            "{host} does not answer{}: is the host up, and does a firewall let the port through?",
            waited(options)
        )),
        _ => PgError::Io { what: format!("connecting to {host}"), source },
    })
}

/// Disables Nagle's algorithm and sets up keepalive.
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
