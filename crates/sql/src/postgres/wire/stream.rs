//! The byte stream to a server: a socket of the file system, TCP, or TLS over TCP. No wait in it lasts for ever.

use super::reach::{Patient, Server};
use super::tls::Secured;
use crate::patient::Limit;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// A stream to a server.
#[derive(Debug)]
pub(super) enum Stream {
    /// On this host.
    Unix(Patient<UnixStream>),
    /// Over the network.
    Tcp(Patient<TcpStream>),
    /// Over the network, encrypted.
    Tls(Box<Secured>),
}

impl Stream {
    /// Changes how long waits may be.
    pub(super) fn set_limit(&mut self, limit: Limit) {
        match self {
            Self::Unix(stream) => stream.limit = limit,
            Self::Tcp(stream) => stream.limit = limit,
            Self::Tls(stream) => stream.sock.limit = limit,
        }
    }

    /// Who is asked for a sign of life.
    pub(super) fn peer(&mut self) -> &mut Server {
        match self {
            Self::Unix(stream) => &mut stream.peer,
            Self::Tcp(stream) => &mut stream.peer,
            Self::Tls(stream) => &mut stream.sock.peer,
        }
    }

    /// The process that listens at the other end, as this host's kernel knows it: only for a socket of the file
    /// system, and only if the process is visible from here.
    pub(super) fn listener_pid(&self) -> Option<i32> {
        let Self::Unix(stream) = self else {
            return None;
        };
        let peer = rustix::net::sockopt::socket_peercred(&stream.socket).ok()?;
        Some(peer.pid.as_raw_nonzero().get())
    }

    /// The socket itself.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.socket.as_fd(),
            Self::Tcp(stream) => stream.socket.as_fd(),
            Self::Tls(stream) => stream.sock.socket.as_fd(),
        }
    }

    /// Our own port, if this is TCP.
    pub(super) fn local_port(&self) -> Option<u16> {
        let socket = match self {
            Self::Unix(_) => return None,
            Self::Tcp(stream) => &stream.socket,
            Self::Tls(stream) => &stream.sock.socket,
        };
        socket.local_addr().ok().map(|address| address.port())
    }

    /// Nobody between can read along.
    pub(super) fn is_encrypted(&self) -> bool {
        matches!(self, Self::Tls(_))
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(buffer),
            Self::Tcp(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
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
