//! Connects sockets to servers, within the caller's remaining time.

use crate::patience::{PIECE, Patience, Wait};
use assay_run::names;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, sockopt};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time left until then; never zero, which would mean no limit.
pub(crate) fn left(end: Instant) -> Duration {
    let left = end.saturating_duration_since(Instant::now());
    left.max(Duration::from_millis(1))
}

/// How a server was reached.
pub(crate) enum Way {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

impl Way {
    /// Opens a new connection, sends `hello`, and waits for a byte or the end of the stream.
    pub(crate) fn hears(&self, hello: &[u8], within: Duration) -> std::io::Result<usize> {
        let end = Instant::now() + within;
        let mut stream = match self {
            // The calls below work on any stream socket.
            Self::Unix(path) => TcpStream::from(OwnedFd::from(connect_unix(path, Some(end), &Patience::default())?)),
            Self::Tcp(address) => TcpStream::connect_timeout(address, within)?,
        };
        stream.set_read_timeout(Some(left(end)))?;
        stream.write_all(hello)?;
        stream.read(&mut [0])
    }
}

/// Resolves a name, unless the user asks to stop meanwhile.
pub(crate) fn addresses(host: &str, port: u16, patience: &Patience) -> std::io::Result<Vec<SocketAddr>> {
    let mut wait = Wait::default();
    names::addresses(host, port, || patience.entering(&mut wait))
}

/// Connects over TCP, at the latest until `end`, and only briefly once the user asks to stop.
pub(crate) fn connect_tcp(
    address: SocketAddr,
    end: Option<Instant>,
    patience: &Patience,
) -> std::io::Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    match connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let mut wait = Wait::default();
    let piece = Timespec { tv_sec: 0, tv_nsec: PIECE.subsec_nanos().into() };
    while let Ok(0) | Err(Errno::INTR) = poll(&mut [PollFd::new(&socket, PollFlags::OUT)], Some(&piece)) {
        if end.is_some_and(|end| Instant::now() >= end) {
            return Err(ErrorKind::TimedOut.into());
        }
        patience.entering(&mut wait)?;
    }
    sockopt::socket_error(&socket)??;
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Pause between two attempts at a socket with a full queue.
const QUEUE_POLL: Duration = Duration::from_millis(10);

/// Connects to a Unix socket, in the file system or in the abstract name space (leading `@`). A blocking connect would
/// wait without limit for room in the queue of a server that accepts no connections.
pub(crate) fn connect_unix(path: &Path, end: Option<Instant>, patience: &Patience) -> std::io::Result<UnixStream> {
    let address = match path.as_os_str().as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddrUnix::new_abstract_name(name),
        None => SocketAddrUnix::new(path),
    }?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let mut wait = Wait::default();
    loop {
        patience.entering(&mut wait)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use assay_run::stop::Stop;

    #[test]
    fn a_socket_whose_queue_is_full_holds_nobody_who_asks_for_the_end() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("socket");
        let listener = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        rustix::net::bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let _first = UnixStream::connect(&path).unwrap();
        let stop = Stop::new();
        stop.request();
        let held = connect_unix(&path, None, &Patience::new(Duration::from_mins(1), &stop)).unwrap_err();
        assert!(held.to_string().contains("of the request to stop"), "{held}");
    }
}
