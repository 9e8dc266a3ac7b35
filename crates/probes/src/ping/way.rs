//! The ways to measure a round trip: each sends one request and waits for its reply.

use super::echo::{Head, REPLY_BYTES, REQUEST_BYTES, SERVICE, read_reply};
use super::options::{Ask, ECHO_RATE, Method, PLAIN_RATE, RAW_RATE};
use crate::dial::{self, SocketWords};
use crate::peer::hello::greet;
use crate::peer::line::Line;
use crate::peer::secret::Secret;
use assay_block::socket::TcpInfo;
use assay_run::engine::EngineError;
use assay_run::host::random_u64;
use assay_run::stop::Stop;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto};
use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// A reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) ttl: Option<u8>,
    /// Between the server's receipt and its reply, ns.
    pub(super) server_ns: Option<u64>,
    /// Replies to earlier requests that came meanwhile: too late, or again.
    pub(super) strays: u64,
}

/// A wait for one reply, whatever else arrives meanwhile.
struct Wait {
    until: Instant,
    is_over: bool,
}

impl Wait {
    fn new(timeout: Duration) -> Self {
        Self { until: Instant::now() + timeout, is_over: false }
    }

    /// Whether there is something to read. When the time is over, what is there by then is looked at once: who floods holds
    /// nobody for longer.
    fn brings(&mut self, fd: impl AsFd + Copy) -> io::Result<bool> {
        while !self.is_over {
            let left = self.until.saturating_duration_since(Instant::now());
            self.is_over = left.is_zero();
            if dial::readable(fd, left)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// How a round trip is measured.
pub(super) trait Way {
    /// Its name with every figure.
    fn name(&self) -> &'static str;

    /// What the time includes besides the network.
    fn holds(&self) -> &'static str;

    /// Requests per second where nobody says.
    fn usual_rate(&self) -> f64;

    /// Sends request `seq` and waits; nothing: no reply within the time.
    fn exchange(&mut self, seq: u64, timeout: Duration) -> io::Result<Option<Reply>>;

    /// The connection's socket, where there is one.
    fn tcp(&self) -> Option<&TcpStream> {
        None
    }
}

/// The way that was asked for, or the best there is, with the reasons against the better ones.
pub(super) fn open(ask: &Ask, to: SocketAddr, stop: &Stop) -> Result<(Box<dyn Way>, Vec<String>), EngineError> {
    match ask.method {
        Some(Method::Icmp) => {
            let way = icmp(ask, to).map_err(|why| {
                EngineError::Unusable(format!(
                    "{why}; run as root, open net.ipv4.ping_group_range for this group, or use --method tcp-connect"
                ))
            })?;
            Ok((way, Vec::new()))
        }
        Some(Method::TcpConnect) => Ok((connect(ask, to), Vec::new())),
        Some(Method::TcpEcho) => Ok((tcp_echo(ask, to, stop)?, Vec::new())),
        Some(Method::UdpEcho) => Ok((udp_echo(ask, to, stop)?, Vec::new())),
        None => {
            let mut why_not = match icmp(ask, to) {
                Ok(way) => return Ok((way, Vec::new())),
                Err(why) => vec![why],
            };
            match tcp_echo(ask, to, stop) {
                Ok(way) => return Ok((way, why_not)),
                Err(EngineError::Interrupted) => return Err(EngineError::Interrupted),
                Err(error) => why_not.push(format!("tcp-echo: {error}")),
            }
            Ok((connect(ask, to), why_not))
        }
    }
}

struct Icmp {
    socket: OwnedFd,
    is_raw: bool,
    is_v6: bool,
    id: u16,
    packet: Vec<u8>,
    into: Vec<u8>,
}

fn icmp(ask: &Ask, to: SocketAddr) -> Result<Box<dyn Way>, String> {
    let (family, protocol) = match to {
        SocketAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP),
        SocketAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6),
    };
    let open = |kind| -> io::Result<OwnedFd> {
        let socket = net::socket_with(family, kind, SocketFlags::CLOEXEC, Some(protocol))?;
        if let Some(from) = ask.bind {
            net::bind(&socket, &SocketAddr::new(from, 0))?;
        }
        net::connect(&socket, &SocketAddr::new(to.ip(), 0))?;
        Ok(socket)
    };
    let (socket, is_raw) = match open(SocketType::DGRAM) {
        Ok(socket) => (socket, false),
        Err(first) => match open(SocketType::RAW) {
            Ok(socket) => (socket, true),
            Err(second) => {
                return Err(format!("icmp is not allowed here (dgram: {first}; raw: {second})"));
            }
        },
    };
    let size = 8 + ask.size as usize;
    Ok(Box::new(Icmp {
        socket,
        is_raw,
        is_v6: to.is_ipv6(),
        id: random_u64() as u16,
        packet: (0..size).map(|at| at as u8).collect(),
        into: vec![0; size + 128],
    }))
}

/// The ones' complement of the ones' complement sum of all words.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The echo reply in a packet: its id, its number and the time to live.
fn echo_reply(packet: &[u8], has_ip: bool, is_v6: bool) -> Option<(u16, u16, Option<u8>)> {
    let (ttl, icmp) = if has_ip {
        let words = usize::from(*packet.first()? & 15) * 4;
        (packet.get(8).copied(), packet.get(words..)?)
    } else {
        (None, packet)
    };
    let kind = if is_v6 { 129 } else { 0 };
    let word = |at: usize| Some(u16::from_be_bytes([*icmp.get(at)?, *icmp.get(at + 1)?]));
    (*icmp.first()? == kind).then_some((word(4)?, word(6)?, ttl))
}

impl Way for Icmp {
    fn name(&self) -> &'static str {
        if self.is_raw { "icmp-raw" } else { "icmp-dgram" }
    }

    fn holds(&self) -> &'static str {
        "the other host's kernel answers: a program wakes on this host only"
    }

    fn usual_rate(&self) -> f64 {
        if rustix::process::geteuid().is_root() { RAW_RATE } else { PLAIN_RATE }
    }

    fn exchange(&mut self, seq: u64, timeout: Duration) -> io::Result<Option<Reply>> {
        let number = seq as u16;
        self.packet[0] = if self.is_v6 { 128 } else { 8 };
        self.packet[1..4].fill(0);
        self.packet[4..6].copy_from_slice(&self.id.to_be_bytes());
        self.packet[6..8].copy_from_slice(&number.to_be_bytes());
        let sum = checksum(&self.packet);
        self.packet[2..4].copy_from_slice(&sum.to_be_bytes());
        net::send(&self.socket, &self.packet, SendFlags::empty())?;
        let (mut wait, mut strays) = (Wait::new(timeout), 0);
        while wait.brings(&self.socket)? {
            let (count, _) = net::recv(&self.socket, &mut *self.into, RecvFlags::empty())?;
            let has_ip = self.is_raw && !self.is_v6;
            // The kernel chooses the id of a socket that is not raw, and hands on what is its own.
            match echo_reply(&self.into[..count], has_ip, self.is_v6) {
                Some((id, _, _)) if self.is_raw && id != self.id => {}
                Some((_, got, ttl)) if got == number => {
                    return Ok(Some(Reply { ttl, strays, server_ns: None }));
                }
                Some(_) => strays += 1,
                None => {}
            }
        }
        Ok(None)
    }
}

struct Connect {
    to: SocketAddr,
    words: SocketWords,
}

fn connect(ask: &Ask, to: SocketAddr) -> Box<dyn Way> {
    let words = SocketWords { from: ask.bind, ..SocketWords::default() };
    Box::new(Connect { to, words })
}

impl Way for Connect {
    fn name(&self) -> &'static str {
        "tcp-connect"
    }

    fn holds(&self) -> &'static str {
        "SYN to SYN-ACK or RST, kernel to kernel, plus making a socket on this host"
    }

    fn usual_rate(&self) -> f64 {
        RAW_RATE
    }

    fn exchange(&mut self, _: u64, timeout: Duration) -> io::Result<Option<Reply>> {
        use io::ErrorKind as Kind;
        match dial::connect(self.to, &self.words, timeout) {
            Ok(_) => Ok(Some(Reply::default())),
            // A port that nobody listens on answers as quickly.
            Err(error) if error.kind() == Kind::ConnectionRefused => Ok(Some(Reply::default())),
            Err(error) if error.kind() == Kind::TimedOut => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A greeted connection and its token.
fn greeted(ask: &Ask, to: SocketAddr, stop: &Stop) -> Result<(TcpStream, u64), EngineError> {
    let unusable = |why: String| EngineError::Unusable(format!("{}, port {}: {why}", ask.host, ask.port));
    let secret = ask.secret.as_deref().map(Secret::of_file).transpose()?;
    let words = SocketWords { from: ask.bind, no_delay: true, ..SocketWords::default() };
    let stream = dial::connect(to, &words, ask.patience)
        .map_err(|error| unusable(format!("cannot connect ({error}); start `assay ping server --bind ADDR` there")))?;
    let copy = stream.try_clone().map_err(|error| unusable(error.to_string()))?;
    let mut line = Line::of(copy, format!("{}:{}", ask.host, ask.port), ask.patience, stop);
    let mut token = [0; 8];
    greet(&mut line, SERVICE, secret.as_ref()).map_err(|error| unusable(error.to_string()))?;
    line.read(&mut token, "the token").map_err(|error| unusable(error.to_string()))?;
    stream.set_write_timeout(Some(ask.patience)).map_err(|error| unusable(error.to_string()))?;
    stream.set_read_timeout(None).map_err(|error| unusable(error.to_string()))?;
    Ok((stream, u64::from_le_bytes(token)))
}

struct TcpEcho {
    stream: TcpStream,
    /// For a request to be taken.
    patience: Duration,
    request: Vec<u8>,
    head: Head,
    into: Vec<u8>,
    /// The missing bytes of a reply that came too late.
    got: usize,
}

fn head(ask: &Ask, token: u64) -> Head {
    Head { seq: 0, token, payload: ask.size as u32, reply: ask.reply as u32 }
}

fn tcp_echo(ask: &Ask, to: SocketAddr, stop: &Stop) -> Result<Box<dyn Way>, EngineError> {
    let (stream, token) = greeted(ask, to, stop)?;
    Ok(Box::new(TcpEcho {
        stream,
        patience: ask.patience,
        head: head(ask, token),
        request: vec![0; REQUEST_BYTES + ask.size as usize],
        into: vec![0; REPLY_BYTES + ask.reply as usize],
        got: 0,
    }))
}

fn garbage() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the server's reply is invalid")
}

impl Way for TcpEcho {
    fn name(&self) -> &'static str {
        "tcp-echo"
    }

    fn holds(&self) -> &'static str {
        "wakes a program on each host; server time is shown separately"
    }

    fn usual_rate(&self) -> f64 {
        ECHO_RATE
    }

    fn tcp(&self) -> Option<&TcpStream> {
        Some(&self.stream)
    }

    fn exchange(&mut self, seq: u64, timeout: Duration) -> io::Result<Option<Reply>> {
        self.head.seq = seq;
        self.head.write(&mut self.request);
        dial::write_all(&self.stream, &self.request, self.patience)?;
        let (mut wait, mut strays) = (Wait::new(timeout), 0);
        while wait.brings(&self.stream)? {
            match self.stream.read(&mut self.into[self.got..])? {
                0 => {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"));
                }
                count => self.got += count,
            }
            if self.got < self.into.len() {
                continue;
            }
            self.got = 0;
            let (head, received, sent) = read_reply(&self.into).ok_or_else(garbage)?;
            if head.seq == seq {
                return Ok(Some(Reply { server_ns: Some(sent.saturating_sub(received)), strays, ttl: None }));
            }
            strays += 1;
        }
        Ok(None)
    }
}

struct UdpEcho {
    /// Keeps the token good.
    _control: TcpStream,
    socket: UdpSocket,
    request: Vec<u8>,
    head: Head,
    into: Vec<u8>,
}

fn udp_echo(ask: &Ask, to: SocketAddr, stop: &Stop) -> Result<Box<dyn Way>, EngineError> {
    let (control, token) = greeted(ask, to, stop)?;
    let open = || -> io::Result<UdpSocket> {
        let own = control.local_addr()?.ip();
        let socket = UdpSocket::bind(SocketAddr::new(own, 0))?;
        socket.connect(to)?;
        Ok(socket)
    };
    let socket = open().map_err(|source| EngineError::Io {
        what: format!("{}, port {}: cannot open a UDP socket", ask.host, ask.port),
        source,
    })?;
    Ok(Box::new(UdpEcho {
        _control: control,
        socket,
        head: head(ask, token),
        request: vec![0; REQUEST_BYTES + ask.size as usize],
        into: vec![0; 64 << 10],
    }))
}

impl Way for UdpEcho {
    fn name(&self) -> &'static str {
        "udp-echo"
    }

    fn holds(&self) -> &'static str {
        "wakes a program on each host; server time is shown separately"
    }

    fn usual_rate(&self) -> f64 {
        ECHO_RATE
    }

    fn exchange(&mut self, seq: u64, timeout: Duration) -> io::Result<Option<Reply>> {
        self.head.seq = seq;
        self.head.write(&mut self.request);
        self.socket.send(&self.request)?;
        let (mut wait, mut strays) = (Wait::new(timeout), 0);
        while wait.brings(&self.socket)? {
            let count = self.socket.recv(&mut self.into)?;
            match read_reply(&self.into[..count]) {
                Some((head, received, sent)) if head.seq == seq => {
                    return Ok(Some(Reply { server_ns: Some(sent.saturating_sub(received)), strays, ttl: None }));
                }
                Some(_) => strays += 1,
                None => {}
            }
        }
        Ok(None)
    }
}

/// Segments that the kernel sent again on a connection.
pub(super) fn retransmits(way: &dyn Way) -> Option<u64> {
    let info = TcpInfo::of(way.tcp()?).ok()?;
    Some(u64::from(info.total_retrans))
}

/// Packets of any bytes.
pub(super) fn fuzz(bytes: &[u8]) {
    for (has_ip, is_v6) in [(true, false), (false, false), (false, true)] {
        let _ = echo_reply(bytes, has_ip, is_v6);
    }
    let _ = checksum(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_of_a_packet_with_its_checksum_is_zero() {
        let mut packet = vec![8, 0, 0, 0, 1, 2, 3, 4, 5];
        let sum = checksum(&packet);
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(checksum(&packet), 0);
    }

    #[test]
    fn a_reply_is_found_behind_an_ip_header_and_a_request_is_none() {
        let icmp = [0, 0, 9, 9, 0x12, 0x34, 0, 7];
        assert_eq!(echo_reply(&icmp, false, false), Some((0x1234, 7, None)));
        let mut ip = vec![0x45; 20];
        ip[8] = 63;
        ip.extend(icmp);
        assert_eq!(echo_reply(&ip, true, false), Some((0x1234, 7, Some(63))));
        assert_eq!(echo_reply(&icmp, false, true), None);
        for length in 0..ip.len() {
            let _ = echo_reply(&ip[..length], true, false);
        }
    }
}
