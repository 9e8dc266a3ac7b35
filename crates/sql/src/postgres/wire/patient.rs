//! A socket that nobody waits for for ever.

use super::reach::shows_life;
use crate::patience::{PIECE, Patience, Wait};
use crate::postgres::conninfo::Host;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::io::{Error, ErrorKind, Read, Write};
use std::os::fd::AsFd;
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
    pub(super) limit: Limit,
    patience: Patience,
    /// Of the user's request to abandon, over all waits.
    wait: Wait,
}

impl<S: AsFd> Patient<S> {
    /// Over a connected socket.
    ///
    /// # Errors
    /// The socket takes no time limits.
    pub(super) fn new(socket: S, host: Host, limit: Limit, patience: Patience) -> std::io::Result<Self> {
        for way in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&socket, way, Some(PIECE))?;
        }
        Ok(Self { socket, host, limit, patience, wait: Wait::default() })
    }
}

impl<S> Patient<S> {
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
                Limit::Answers => self.patience.look(&mut wait, |within| shows_life(&self.host, within))?,
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
