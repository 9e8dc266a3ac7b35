//! A connection and how long its other end is waited for.

use assay_run::engine::EngineError;
use assay_run::stop::Stop;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// Nobody waits longer than this before a request to stop is heard.
const PIECE: Duration = Duration::from_millis(100);
/// The kernel takes no wait of nothing.
const LEAST: Duration = Duration::from_millis(1);

/// Why there is nothing more to be had from the other end.
#[derive(Debug)]
pub(crate) enum PeerError {
    /// It closed the connection, or is not there any more.
    Gone(String),
    /// It showed no life for so long.
    Silent(Duration, String),
    /// What it says is not what a peer of ours would say.
    Foreign(String),
    /// It will not serve this, and says why.
    Refused(String),
    /// Somebody asked for the end meanwhile.
    Stopped,
}

impl fmt::Display for PeerError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone(what) => write!(out, "the connection ended {what}"),
            Self::Silent(after, what) => {
                write!(out, "no answer within {} s {what}", after.as_secs_f64())
            }
            Self::Foreign(what) | Self::Refused(what) => out.write_str(what),
            Self::Stopped => out.write_str("interrupted"),
        }
    }
}

impl PeerError {
    /// As the error of a command that talks to this peer.
    pub(crate) fn of(self, peer: &str) -> EngineError {
        match self {
            Self::Stopped => EngineError::Interrupted,
            other => EngineError::Unusable(format!("{peer}: {other}")),
        }
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Line {
    stream: TcpStream,
    /// `host:port`, as it was asked for.
    peer: String,
    patience: Duration,
    stop: Stop,
    /// Which of a listener's connections it is.
    number: u64,
}

impl Line {
    /// Connects, to the first address of a name that answers.
    pub(crate) fn connect(
        host: &str,
        port: u16,
        patience: Duration,
        stop: &Stop,
    ) -> Result<Self, EngineError> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let peer = match bare.contains(':') {
            true => format!("[{bare}]:{port}"),
            false => format!("{bare}:{port}"),
        };
        let unusable = |why: String| EngineError::Unusable(format!("{peer}: {why}"));
        let addresses = (bare, port).to_socket_addrs();
        let addresses = addresses
            .map_err(|error| unusable(format!("cannot find an address of {bare}: {error}")))?;
        let mut refused = "the name has no address".to_owned();
        for address in addresses {
            match TcpStream::connect_timeout(&address, patience.max(LEAST)) {
                Ok(stream) => return Ok(Self::of(stream, peer, patience, stop)),
                Err(error) if error.kind() == ErrorKind::TimedOut => {
                    refused = format!("no answer to connect within {} s", patience.as_secs_f64());
                }
                Err(error) => refused = format!("cannot connect: {error}"),
            }
            if stop.requested() {
                return Err(EngineError::Interrupted);
            }
        }
        Err(unusable(refused))
    }

    /// One that is there.
    pub(crate) fn of(stream: TcpStream, peer: String, patience: Duration, stop: &Stop) -> Self {
        // Without it a small message may wait for the acknowledgement of the one before; a kernel that refuses is slow.
        let _ = stream.set_nodelay(true);
        Self {
            stream,
            peer,
            patience,
            stop: stop.clone(),
            number: 0,
        }
    }

    /// As the listener counted it.
    pub(crate) fn numbered(self, number: u64) -> Self {
        Self { number, ..self }
    }

    /// Which of a listener's connections it is: they are served side by side, and this tells who came first.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn peer(&self) -> &str {
        &self.peer
    }

    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// The connection itself, for a test's own messages.
    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Reads until the buffer is full. `what` says when, for messages: `in the greeting`.
    pub(crate) fn read(&mut self, buffer: &mut [u8], what: &str) -> Result<(), PeerError> {
        let begun = Instant::now();
        let mut done = 0;
        while done < buffer.len() {
            self.wait_at_most(begun, what)?;
            let piece = self.piece(begun);
            // A timeout that cannot be set would only make the wait longer.
            let _ = self.stream.set_read_timeout(Some(piece));
            match self.stream.read(&mut buffer[done..]) {
                Ok(0) => return Err(PeerError::Gone(what.to_owned())),
                Ok(count) => done += count,
                Err(error) if is_wait(&error) => {}
                Err(error) => return Err(PeerError::Gone(format!("{what}: {error}"))),
            }
        }
        Ok(())
    }

    /// Writes all of it.
    pub(crate) fn write(&mut self, bytes: &[u8], what: &str) -> Result<(), PeerError> {
        let begun = Instant::now();
        let mut done = 0;
        while done < bytes.len() {
            self.wait_at_most(begun, what)?;
            let _ = self.stream.set_write_timeout(Some(self.piece(begun)));
            match self.stream.write(&bytes[done..]) {
                Ok(0) => return Err(PeerError::Gone(what.to_owned())),
                Ok(count) => done += count,
                Err(error) if is_wait(&error) => {}
                Err(error) => return Err(PeerError::Gone(format!("{what}: {error}"))),
            }
        }
        Ok(())
    }

    fn wait_at_most(&self, begun: Instant, what: &str) -> Result<(), PeerError> {
        if self.stop.abandoned() {
            return Err(PeerError::Stopped);
        }
        match begun.elapsed() >= self.patience {
            true => Err(PeerError::Silent(self.patience, what.to_owned())),
            false => Ok(()),
        }
    }

    fn piece(&self, begun: Instant) -> Duration {
        let left = self.patience.saturating_sub(begun.elapsed());
        left.clamp(LEAST, PIECE)
    }

    /// Whether somebody asked for the end.
    pub(crate) fn stop(&self) -> &Stop {
        &self.stop
    }
}

/// Whether an error only says that nothing came yet.
pub(crate) fn is_wait(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}
