//! A socket that nobody waits for for ever: the one place in which a session waits for a server.

use crate::patience::{PIECE, Patience, Peer, Wait};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::io::{Error, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::time::Instant;

/// How long its waits may be.
#[derive(Clone, Debug)]
pub(crate) enum Limit {
    /// Everything until this instant, however it trickles in; none: for ever.
    Until(Option<Instant>),
    /// Each answer as the patience has it.
    Answers,
}

/// A socket that waits in short pieces and looks at its limit after each.
#[derive(Debug)]
pub(crate) struct Patient<S, P> {
    pub(crate) socket: S,
    /// Who is asked for a sign of life.
    pub(crate) peer: P,
    pub(crate) limit: Limit,
    patience: Patience,
    /// Of the user's request to abandon, over all waits.
    wait: Wait,
}

impl<S: AsFd, P: Peer> Patient<S, P> {
    /// Over a connected socket.
    ///
    /// # Errors
    /// The socket takes no time limits.
    pub(crate) fn new(socket: S, peer: P, limit: Limit, patience: Patience) -> std::io::Result<Self> {
        for way in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&socket, way, Some(PIECE))?;
        }
        Ok(Self { socket, peer, limit, patience, wait: Wait::default() })
    }
}

impl<S, P: Peer> Patient<S, P> {
    /// Tries until it succeeds, fails, or has waited too long.
    fn patiently<T>(&mut self, mut attempt: impl FnMut(&mut S) -> std::io::Result<T>) -> std::io::Result<T> {
        let mut wait = self.wait;
        loop {
            self.patience.ended(&mut self.wait)?;
            if let Limit::Until(Some(end)) = self.limit
                && Instant::now() >= end
            {
                return Err(Error::new(ErrorKind::TimedOut, "no answer within its time limit"));
            }
            match attempt(&mut self.socket) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                done => return done,
            }
            match self.limit {
                Limit::Answers => self.patience.look(&mut wait, &self.peer)?,
                // Nothing tells a server that lets nobody in from one that is frozen.
                Limit::Until(_) => self.patience.entering(&mut wait)?,
            }
        }
    }
}

impl<S: Read, P: Peer> Read for Patient<S, P> {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.patiently(|socket| socket.read(buffer))
    }
}

impl<S: Write, P: Peer> Write for Patient<S, P> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.patiently(|socket| socket.write(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.socket.flush()
    }
}
