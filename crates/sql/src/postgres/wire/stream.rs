//! The byte stream to a server: a socket of the file system, TCP, or TLS over TCP. No wait in it lasts for ever.

use super::patience::{PIECE, Patience, Wait};
use super::tls::Secured;
use crate::postgres::conninfo::Host;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::io::{Error, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

/// How long its waits may be.
#[derive(Clone, Debug)]
pub(super) enum Limit {
    /// Everything until this instant, however it trickles in; none: for ever.
    Until(Option<Instant>),
    /// Each answer as the patience has it.
    Answers,
}

/// A socket that waits in short pieces and looks at its limit after each.
#[derive(Debug)]
pub(super) struct Patient<S> {
    pub(super) socket: S,
    host: Host,
    limit: Limit,
    patience: Patience,
    /// Of the user's request to abandon, over all waits.
    wait: Wait,
}

impl<S: AsFd> Patient<S> {
    /// Over a connected socket.
    ///
    /// # Errors
    /// The socket takes no time limits.
    pub(super) fn new(
        socket: S,
        host: Host,
        limit: Limit,
        patience: Patience,
    ) -> std::io::Result<Self> {
        for way in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&socket, way, Some(PIECE))?;
        }
        Ok(Self {
            socket,
            host,
            limit,
            patience,
            wait: Wait::default(),
        })
    }
}

impl<S> Patient<S> {
    /// Tries until it succeeds, fails, or has waited too long.
    fn patiently<T>(
        &mut self,
        mut attempt: impl FnMut(&mut S) -> std::io::Result<T>,
    ) -> std::io::Result<T> {
        let mut wait = self.wait;
        loop {
            self.patience.ended(&mut self.wait)?;
            if let Limit::Until(Some(end)) = self.limit
                && Instant::now() >= end
            {
                return Err(Error::new(
                    ErrorKind::TimedOut,
                    "no answer within its time limit",
                ));
            }
            match attempt(&mut self.socket) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                done => return done,
            }
            match self.limit {
                Limit::Answers => self.patience.look(&mut wait, &self.host)?,
                // Nothing tells a server that lets nobody in from one that is frozen.
                Limit::Until(_) => self.patience.entering(&mut wait)?,
            }
        }
    }
}

impl<S: Read> Read for Patient<S> {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.patiently(|socket| socket.read(buffer))
    }
}

impl<S: Write> Write for Patient<S> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.patiently(|socket| socket.write(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.socket.flush()
    }
}

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
