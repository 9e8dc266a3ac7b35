//! The control connection of iperf3's protocol: a cookie, states of one byte, frames of JSON, pairs of errors.

use crate::dial;
use assay_run::host::random_u64;
use serde_json::Value;
use std::fmt;
use std::io::{self, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Characters of a cookie and the NUL behind them.
pub(crate) const COOKIE_BYTES: usize = 37;
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// A length word comes from the network: more than this is refused before a byte is allocated.
pub(crate) const PARAMS_MOST: u32 = 64 << 10;
/// The same for results, which hold the server's text where that was asked for.
pub(crate) const RESULTS_MOST: u32 = 64 << 20;
/// Iperf's number of "test authorization failed".
pub(crate) const NOT_AUTHORIZED: i32 = 142;
/// Iperf's number of parameters that it could not take.
pub(crate) const BAD_PARAMETERS: i32 = 114;

/// The cookie of a test.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cookie(pub(crate) [u8; COOKIE_BYTES]);

impl Cookie {
    pub(crate) fn new() -> Self {
        let mut bytes = [0; COOKIE_BYTES];
        let mut random = 0;
        for (at, byte) in bytes[..COOKIE_BYTES - 1].iter_mut().enumerate() {
            if at % 12 == 0 {
                random = random_u64();
            }
            *byte = ALPHABET[(random & 31) as usize];
            random >>= 5;
        }
        Self(bytes)
    }

    pub(crate) fn text(&self) -> String {
        let text = &self.0[..COOKIE_BYTES - 1];
        String::from_utf8_lossy(text).into_owned()
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// Where a test stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
pub(crate) enum State {
    TestStart = 1,
    TestRunning = 2,
    TestEnd = 4,
    ParamExchange = 9,
    CreateStreams = 10,
    ServerTerminate = 11,
    ClientTerminate = 12,
    ExchangeResults = 13,
    DisplayResults = 14,
    Done = 16,
    AccessDenied = -1,
    ServerError = -2,
}

impl State {
    pub(crate) fn of(byte: i8) -> Option<Self> {
        const ALL: [State; 12] = [
            State::TestStart,
            State::TestRunning,
            State::TestEnd,
            State::ParamExchange,
            State::CreateStreams,
            State::ServerTerminate,
            State::ClientTerminate,
            State::ExchangeResults,
            State::DisplayResults,
            State::Done,
            State::AccessDenied,
            State::ServerError,
        ];
        ALL.into_iter().find(|state| *state as i8 == byte)
    }
}

/// What went wrong between the two ends.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The other end closed the connection.
    Closed,
    /// It was silent for this long.
    Silent(Duration),
    /// What it sent is not of this protocol.
    Garbage(String),
    Io(io::Error),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("it closed the connection before the test was over"),
            Self::Silent(wait) => write!(f, "it was silent for {} s", wait.as_secs_f64()),
            Self::Garbage(what) => write!(f, "it does not speak iperf3's protocol: {what}"),
            Self::Io(error) => write!(f, "the connection broke: {error}"),
        }
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind as Kind;
        match error.kind() {
            Kind::UnexpectedEof | Kind::ConnectionReset | Kind::BrokenPipe => Self::Closed,
            _ => Self::Io(error),
        }
    }
}

/// One end of a control connection.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) stream: TcpStream,
    /// How long the other end may be silent where it owes an answer.
    pub(crate) patience: Duration,
}

impl Control {
    pub(crate) fn new(stream: TcpStream, patience: Duration) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Self { stream, patience })
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        match dial::write_all(&self.stream, bytes, self.patience) {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                Err(Broken::Silent(self.patience))
            }
            done => done.map_err(Broken::from),
        }
    }

    /// Reads exactly so much within the patience, however the bytes trickle in.
    pub(crate) fn receive(&mut self, into: &mut [u8]) -> Result<(), Broken> {
        self.receive_until(into, Instant::now() + self.patience)
    }

    fn receive_until(&mut self, into: &mut [u8], until: Instant) -> Result<(), Broken> {
        let mut at = 0;
        while at < into.len() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Broken::Silent(self.patience));
            }
            if !dial::readable(&self.stream, left)? {
                continue;
            }
            match self.stream.read(&mut into[at..]) {
                Ok(0) => return Err(Broken::Closed),
                Ok(count) => at += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    pub(crate) fn send_state(&mut self, state: State) -> Result<(), Broken> {
        self.send(&[state as i8 as u8])
    }

    /// The next state, if one comes within the time.
    pub(crate) fn state_within(&mut self, wait: Duration) -> Result<Option<State>, Broken> {
        if !dial::readable(&self.stream, wait)? {
            return Ok(None);
        }
        let mut byte = [0];
        self.receive(&mut byte)?;
        let byte = byte[0] as i8;
        let state = State::of(byte);
        state.map(Some).ok_or_else(|| Broken::Garbage(format!("state {byte} does not exist")))
    }

    /// The next state, which the other end owes.
    pub(crate) fn state(&mut self) -> Result<State, Broken> {
        let state = self.state_within(self.patience)?;
        state.ok_or(Broken::Silent(self.patience))
    }

    pub(crate) fn send_json(&mut self, value: &Value) -> Result<(), Broken> {
        let text = value.to_string();
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        let mut frame = length.to_be_bytes().to_vec();
        frame.extend_from_slice(text.as_bytes());
        self.send(&frame)
    }

    /// A frame of at most so many bytes.
    pub(crate) fn json(&mut self, most: u32) -> Result<Value, Broken> {
        let until = Instant::now() + self.patience;
        let mut length = [0; 4];
        self.receive_until(&mut length, until)?;
        let length = frame_length(length, most)?;
        let mut text = Vec::new();
        // Memory grows with what arrives, not with what was announced.
        while text.len() < length {
            let step = (length - text.len()).min(1 << 20);
            let from = text.len();
            text.resize(from + step, 0);
            self.receive_until(&mut text[from..], until)?;
        }
        frame(&text)
    }

    pub(crate) fn send_error(&mut self, code: i32, errno: i32) -> Result<(), Broken> {
        let mut bytes = vec![State::ServerError as i8 as u8];
        bytes.extend(code.to_be_bytes());
        bytes.extend(errno.to_be_bytes());
        self.send(&bytes)
    }

    /// The pair behind [`State::ServerError`].
    pub(crate) fn error(&mut self) -> Result<(i32, i32), Broken> {
        let mut bytes = [0; 8];
        self.receive(&mut bytes)?;
        let word = |at: usize| i32::from_be_bytes([0, 1, 2, 3].map(|i| bytes[at + i]));
        Ok((word(0), word(4)))
    }
}

/// The length that a frame announces.
pub(crate) fn frame_length(word: [u8; 4], most: u32) -> Result<usize, Broken> {
    let length = u32::from_be_bytes(word);
    if length == 0 || length > most {
        return Err(Broken::Garbage(format!("it announces a frame of {length} bytes; 1 to {most} are allowed")));
    }
    Ok(length as usize)
}

/// What a frame holds.
pub(crate) fn frame(text: &[u8]) -> Result<Value, Broken> {
    // Some versions count a NUL in.
    let text = text.strip_suffix(&[0]).unwrap_or(text);
    let value: Result<Value, _> = serde_json::from_slice(text);
    match value {
        Ok(value) if value.is_object() => Ok(value),
        Ok(_) => Err(Broken::Garbage("a frame is not a JSON object".to_owned())),
        Err(error) => Err(Broken::Garbage(format!("a frame is not JSON ({error})"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn net_02_a_cookie_is_36_letters_and_a_nul() {
        let (a, b) = (Cookie::new(), Cookie::new());
        assert_ne!(a, b);
        assert_eq!(a.0[36], 0);
        assert!(a.0[..36].iter().all(|byte| ALPHABET.contains(byte)));
        assert_eq!(a.text().len(), 36);
    }

    #[test]
    fn net_03_states_have_the_numbers_of_the_wire() {
        for (byte, state) in [
            (9, State::ParamExchange),
            (13, State::ExchangeResults),
            (-1, State::AccessDenied),
            (-2, State::ServerError),
        ] {
            assert_eq!(State::of(byte), Some(state));
        }
        for byte in [0, 3, 5, 6, 7, 8, 15, 17, -3, i8::MIN] {
            assert_eq!(State::of(byte), None);
        }
    }

    #[test]
    fn net_15_a_frame_that_trickles_in_has_one_patience_and_not_one_for_each_part() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        let mut control = Control::new(stream, Duration::from_millis(400)).unwrap();
        let talker = std::thread::spawn(move || {
            let mut part = RESULTS_MOST.to_be_bytes().to_vec();
            part.resize(1 << 20, b' ');
            while far.write_all(&part).is_ok() {
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        // Sixty-four parts, each in time.
        let told = control.json(RESULTS_MOST).unwrap_err();
        assert!(matches!(told, Broken::Silent(_)), "{told}");
        drop(control);
        talker.join().unwrap();
    }

    #[test]
    fn net_15_a_length_word_from_the_network_is_not_believed() {
        assert!(frame_length([0xFF; 4], RESULTS_MOST).is_err());
        assert!(frame_length([0; 4], RESULTS_MOST).is_err());
        assert_eq!(frame_length([0, 0, 0, 9], PARAMS_MOST).unwrap(), 9);
        for text in [&b"[1]"[..], b"{", b"3", b"\xff\xfe", b"{\"a\":1}x"] {
            assert!(frame(text).is_err(), "{text:?}");
        }
        assert!(frame(b"{\"a\":1}\0").is_ok());
    }
}
