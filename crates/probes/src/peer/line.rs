//! A connection and how long its other end is waited for.

use crate::dial::{self, SocketWords};
use assay_run::engine::EngineError;
use assay_run::stop::Stop;
use std::fmt;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::TcpStream;
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
    /// It showed no sign of life for this long.
    Silent(Duration, String),
    /// It showed signs of life, but was not finished after this long.
    Late(Duration, String),
    /// Its message is not one of our peer's.
    Foreign(String),
    /// It will not serve this, and says why.
    Refused(String),
    /// This side cannot continue.
    Own(String),
    /// A stop was requested meanwhile.
    Stopped,
}

impl fmt::Display for PeerError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone(what) => write!(out, "the connection ended {what}"),
            Self::Silent(after, what) => {
                write!(out, "no answer within {} s {what}", after.as_secs_f64())
            }
            Self::Late(most, what) => write!(out, "it took more than {} s {what}", most.as_secs_f64()),
            Self::Foreign(what) | Self::Refused(what) | Self::Own(what) => out.write_str(what),
            Self::Stopped => out.write_str("interrupted"),
        }
    }
}

impl PeerError {
    /// As the error of a command that talks to this peer.
    pub(crate) fn of(self, peer: &str) -> EngineError {
        match self {
            Self::Stopped => EngineError::Interrupted,
            Self::Own(what) => EngineError::Unusable(what),
            other => EngineError::Unusable(format!("{peer}: {other}")),
        }
    }
}

/// A wait in pieces: since when nothing came.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wait(Option<Instant>);

/// One connection.
#[derive(Debug)]
pub(crate) struct Line {
    stream: TcpStream,
    /// `host:port`, as requested.
    peer: String,
    patience: Duration,
    /// Start and limit of the current step: a peer that sends a byte now and then cannot hold this side for longer.
    lasts: (Instant, Duration),
    stop: Stop,
    /// Which of a listener's connections it is.
    number: u64,
}

impl Line {
    /// Connects, to the first address of a name that answers.
    pub(crate) fn connect(host: &str, port: u16, patience: Duration, stop: &Stop) -> Result<Self, EngineError> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let peer = if bare.contains(':') { format!("[{bare}]:{port}") } else { format!("{bare}:{port}") };
        let mut refused = "the name has no address".to_owned();
        for address in dial::addresses(bare, port, stop)? {
            match dial::connect(address, &SocketWords::default(), patience.max(LEAST)) {
                Ok(stream) => return Ok(Self::of(stream, peer, patience, stop)),
                Err(error) => refused = format!("cannot connect: {error}"),
            }
            if stop.requested() {
                return Err(EngineError::Interrupted);
            }
        }
        Err(EngineError::Unusable(format!("{peer}: {refused}")))
    }

    /// One that is there.
    pub(crate) fn of(stream: TcpStream, peer: String, patience: Duration, stop: &Stop) -> Self {
        // Without it a small message may wait for the acknowledgement of the one before; a kernel that refuses is slow.
        let _ = stream.set_nodelay(true);
        // Each piece of a wait; without it a request to stop would only be heard later.
        let _ = stream.set_read_timeout(Some(PIECE));
        let _ = stream.set_write_timeout(Some(PIECE));
        let lasts = (Instant::now(), Duration::MAX);
        Self { stream, peer, patience, lasts, stop: stop.clone(), number: 0 }
    }

    /// From now on nothing more is read or written after so long.
    pub(crate) fn lasts(&mut self, most: Duration) {
        self.lasts = (Instant::now(), most);
    }

    /// Whether that is over.
    pub(crate) fn in_time(&self, what: &str) -> Result<(), PeerError> {
        let (begun, most) = self.lasts;
        if begun.elapsed() < most { Ok(()) } else { Err(PeerError::Late(most, what.to_owned())) }
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

    /// The connection itself, for a test's own messages.
    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Reads until the buffer is full. `what` says when, for messages: `in the greeting`.
    pub(crate) fn read(&mut self, buffer: &mut [u8], what: &str) -> Result<(), PeerError> {
        let mut done = 0;
        let mut wait = Wait::default();
        while done < buffer.len() {
            self.in_time(what)?;
            // What a client of a listener still has to say is not waited for.
            if self.number > 0 && self.stop.requested() {
                return Err(PeerError::Stopped);
            }
            match self.stream.read(&mut buffer[done..]) {
                Ok(0) => return Err(PeerError::Gone(what.to_owned())),
                Ok(count) => {
                    done += count;
                    // One that says a byte now and then is not waited for any longer.
                    if done < buffer.len() {
                        self.goes_on(&mut wait, what)?;
                    }
                }
                Err(error) if is_wait(&error) => self.goes_on(&mut wait, what)?,
                Err(error) => return Err(PeerError::Gone(format!("{what}: {error}"))),
            }
        }
        Ok(())
    }

    /// Writes all of it.
    pub(crate) fn write(&mut self, bytes: &[u8], what: &str) -> Result<(), PeerError> {
        self.write_both(bytes, &[], what)
    }

    /// Writes all of both, in one call where the socket has room.
    pub(crate) fn write_both(&mut self, head: &[u8], body: &[u8], what: &str) -> Result<(), PeerError> {
        let mut done = 0;
        let mut wait = Wait::default();
        while done < head.len() + body.len() {
            self.in_time(what)?;
            let rest = &body[done.saturating_sub(head.len())..];
            let written = match head.get(done..).filter(|head| !head.is_empty()) {
                Some(head) if rest.is_empty() => self.stream.write(head),
                Some(head) => {
                    let parts = [IoSlice::new(head), IoSlice::new(rest)];
                    self.stream.write_vectored(&parts)
                }
                None => self.stream.write(rest),
            };
            match written {
                Ok(0) => return Err(PeerError::Gone(what.to_owned())),
                Ok(count) => {
                    done += count;
                    wait = Wait::default();
                }
                Err(error) if is_wait(&error) => self.goes_on(&mut wait, what)?,
                Err(error) => return Err(PeerError::Gone(format!("{what}: {error}"))),
            }
        }
        Ok(())
    }

    /// After a piece of waiting in vain: whether to wait on.
    pub(crate) fn goes_on(&self, wait: &mut Wait, what: &str) -> Result<(), PeerError> {
        if self.stop.abandoned() {
            return Err(PeerError::Stopped);
        }
        // The first piece is over when it is first looked at.
        let begun = *wait.0.get_or_insert_with(|| Instant::now() - PIECE);
        if begun.elapsed() >= self.patience { Err(PeerError::Silent(self.patience, what.to_owned())) } else { Ok(()) }
    }

    /// Another handle of the same connection, for a thread that only reads or only writes.
    pub(crate) fn twin(&self) -> io::Result<Self> {
        Ok(Self {
            stream: self.stream.try_clone()?,
            peer: self.peer.clone(),
            patience: self.patience,
            lasts: self.lasts,
            number: self.number,
            stop: self.stop.clone(),
        })
    }
}

/// Whether an error only says that nothing came yet.
pub(crate) fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::sync::mpsc::RecvTimeoutError;

    /// A connection that is patient with silence, and its other end.
    fn pair() -> (Line, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("known").port();
        let line = Line::connect("127.0.0.1", port, Duration::from_secs(120), &Stop::new()).expect("there");
        (line, listener.accept().expect("it came").0)
    }

    /// Who says or takes a byte now and then shows life, and holds nobody beyond the whole time for all that.
    #[test]
    fn life_in_drops_is_over_when_the_whole_time_is() {
        let (mut line, mut other) = pair();
        line.lasts(Duration::from_millis(300));
        let talker = std::thread::spawn(move || while other.write_all(b"x").is_ok() {});
        let told = loop {
            if let Err(error) = line.read(&mut [0; 100], "in a test") {
                break error.to_string();
            }
        };
        assert_eq!(told, "it took more than 0.3 s in a test");
        drop(line);
        talker.join().expect("it ends");
        let (mut line, mut other) = pair();
        line.lasts(Duration::from_millis(300));
        let (ends, over) = std::sync::mpsc::channel::<()>();
        let reader = std::thread::spawn(move || {
            while over.recv_timeout(LEAST).is_err_and(|error| error == RecvTimeoutError::Timeout) {
                let _ = other.read(&mut [0]);
            }
        });
        let told = line.write(&vec![0; 64 << 20], "in a test").expect_err("it takes hours");
        assert_eq!(told.to_string(), "it took more than 0.3 s in a test");
        drop(ends);
        reader.join().expect("it ends");
    }
}
