//! A socket with bounded waits: the only place where a session blocks on a server.

use crate::patience::{PIECE, Patience, Peer, Wait};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::io::{Error, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::time::Instant;

/// Limit on the waits of a socket.
#[derive(Clone, Debug)]
pub(crate) enum Limit {
    /// Everything must arrive by this instant, however slowly it trickles in; `None` means no limit.
    Until(Option<Instant>),
    /// Each answer has the time that the patience allows.
    Answers,
}

/// A socket that blocks in short pieces and checks its limit after each.
#[derive(Debug)]
pub(crate) struct Patient<S, P> {
    pub(crate) socket: S,
    /// The server to test for a sign of life.
    pub(crate) peer: P,
    pub(crate) limit: Limit,
    patience: Patience,
    /// Of the user's request to abandon, across all waits.
    wait: Wait,
    /// Number of small reads since the last request, and the wait for the answer they belong to: each read is in time, but the whole might never end.
    drops: (u32, Wait),
}

/// A read of fewer bytes is a small one; a short answer, or the end of a long one, takes a few of them.
const DROP_BYTES: usize = 64;
const DROPS_MAX: u32 = 8;

impl<S: AsFd, P: Peer> Patient<S, P> {
    /// Wraps a connected socket.
    ///
    /// # Errors
    /// The socket does not accept timeouts.
    pub(crate) fn new(socket: S, peer: P, limit: Limit, patience: Patience) -> std::io::Result<Self> {
        for way in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&socket, way, Some(PIECE))?;
        }
        Ok(Self { socket, peer, limit, patience, wait: Wait::default(), drops: Default::default() })
    }
}

impl<S, P: Peer> Patient<S, P> {
    /// Retries until the attempt succeeds, fails, or has waited too long.
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
                // A server that accepts no logins cannot be told from a frozen one.
                Limit::Until(_) => self.patience.entering(&mut wait)?,
            }
        }
    }
}

impl<S: Read, P: Peer> Read for Patient<S, P> {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = self.patiently(|socket| socket.read(buffer))?;
        if length < DROP_BYTES {
            self.drops.0 += 1;
            if self.drops.0 > DROPS_MAX {
                self.patience.look(&mut self.drops.1, &self.peer)?;
            }
        }
        Ok(length)
    }
}

impl<S: Write, P: Peer> Write for Patient<S, P> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.drops = Default::default();
        self.patiently(|socket| socket.write(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.socket.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_run::stop::Stop;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    struct Known(bool);

    impl Peer for Known {
        fn shows_life(&self, _within: Duration) -> bool {
            true
        }

        fn is_at_work(&self, _within: Duration) -> Option<bool> {
            Some(self.0)
        }
    }

    /// Reads so many drops, one after the other comes, from a server that works or has nothing more to say.
    fn drops(is_at_work: bool, wanted: usize) -> std::io::Result<usize> {
        let (near, mut far) = UnixStream::pair().unwrap();
        std::thread::spawn(move || {
            while far.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let patience = Patience::new(Duration::from_millis(100), &Stop::new());
        let mut session = Patient::new(near, Known(is_at_work), Limit::Answers, patience).unwrap();
        (0..wanted).map(|_| session.read(&mut [0; 16])).sum()
    }

    #[test]
    fn an_answer_in_drops_is_waited_for_as_long_as_the_server_works_for_it() {
        assert!(drops(true, 200).unwrap() >= 200);
        let lost = drops(false, usize::MAX).unwrap_err();
        assert!(lost.to_string().contains("lost in transit"), "{lost}");
    }
}
