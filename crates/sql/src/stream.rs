//! The byte stream to a server: a Unix socket, TCP, or TLS over TCP. Every wait in it is bounded.

use crate::patience::Peer;
use crate::patient::{Limit, Patient};
use crate::tls::Secured;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// A stream to a server.
#[derive(Debug)]
pub(crate) enum Stream<P: Peer> {
    /// On this host.
    Unix(Patient<UnixStream, P>),
    /// Over the network.
    Tcp(Patient<TcpStream, P>),
    /// Over the network, encrypted.
    Tls(Box<Secured<P>>),
}

impl<P: Peer> Stream<P> {
    /// Changes the limit on waits.
    pub(crate) fn set_limit(&mut self, limit: Limit) {
        match self {
            Self::Unix(stream) => stream.limit = limit,
            Self::Tcp(stream) => stream.limit = limit,
            Self::Tls(stream) => stream.sock.limit = limit,
        }
    }

    /// The server to test for a sign of life.
    pub(crate) fn peer(&mut self) -> &mut P {
        match self {
            Self::Unix(stream) => &mut stream.peer,
            Self::Tcp(stream) => &mut stream.peer,
            Self::Tls(stream) => &mut stream.sock.peer,
        }
    }

    /// The process that listens at the other end, according to this host's kernel. Only for a Unix socket, and only if
    /// the process is visible from here.
    pub(crate) fn listener_pid(&self) -> Option<i32> {
        let Self::Unix(stream) = self else {
            return None;
        };
        let peer = rustix::net::sockopt::socket_peercred(&stream.socket).ok()?;
        Some(peer.pid.as_raw_nonzero().get())
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.socket.as_fd(),
            Self::Tcp(stream) => stream.socket.as_fd(),
            Self::Tls(stream) => stream.sock.socket.as_fd(),
        }
    }

    /// Our own port, for TCP.
    pub(crate) fn local_port(&self) -> Option<u16> {
        Some(SocketAddr::try_from(rustix::net::getsockname(self.socket()).ok()?).ok()?.port())
    }

    /// Whether the stream is encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self, Self::Tls(_))
    }
}

impl<P: Peer> Read for Stream<P> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(buffer),
            Self::Tcp(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl<P: Peer> Write for Stream<P> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Unix(stream) => stream.flush(),
            Self::Tcp(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
