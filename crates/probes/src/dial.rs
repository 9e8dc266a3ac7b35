//! Sockets with options that have to be set before they connect or listen.

use assay_block::socket;
use assay_run::engine::EngineError;
use assay_run::names;
use assay_run::stop::Stop;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Which addresses of a name are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Family {
    #[default]
    Any,
    V4,
    V6,
}

/// All addresses of a host, unless the end is asked for meanwhile.
pub(crate) fn addresses(host: &str, port: u16, stop: &Stop) -> Result<Vec<SocketAddr>, EngineError> {
    let go_on = || if stop.requested() { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) };
    names::addresses(host, port, go_on).map_err(|error| match error.kind() {
        io::ErrorKind::Interrupted => EngineError::Interrupted,
        _ => {
            let way_out = match host.rsplit_once(':') {
                Some((name, port)) if !name.contains(':') && port.parse::<u16>().is_ok() => {
                    format!("say the port by itself: {name} --port {port}")
                }
                _ => "give an address, or a name that resolves here".to_owned(),
            };
            EngineError::Unusable(format!("{host}: this host name has no address ({error}); {way_out}"))
        }
    })
}

/// The address of a host.
pub(crate) fn resolve(host: &str, port: u16, family: Family, stop: &Stop) -> Result<SocketAddr, EngineError> {
    let found = addresses(host, port, stop)?;
    let wanted = |address: &SocketAddr| match family {
        Family::Any => true,
        Family::V4 => address.is_ipv4(),
        Family::V6 => address.is_ipv6(),
    };
    let found = found.into_iter().find(wanted);
    found.ok_or_else(|| {
        let version = if family == Family::V4 { 4 } else { 6 };
        EngineError::Unusable(format!("{host}: it has no IPv{version} address"))
    })
}

/// What a socket is given before it connects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SocketWords {
    /// Bytes of both buffers.
    pub(crate) window: Option<u64>,
    pub(crate) max_segment: Option<u32>,
    pub(crate) no_delay: bool,
    /// The local address.
    pub(crate) from: Option<IpAddr>,
    /// Congestion control.
    pub(crate) congestion: Option<String>,
    /// Type of service.
    pub(crate) tos: Option<u8>,
    /// Kernel pacing, bytes per second.
    pub(crate) pacing: Option<u64>,
}

fn family_of(address: &SocketAddr) -> AddressFamily {
    match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    }
}

/// The words that fit every socket. A window that the kernel does not grant is an error.
pub(crate) fn dress(fd: impl AsFd + Copy, words: &SocketWords) -> io::Result<()> {
    if let Some(window) = words.window {
        let window = usize::try_from(window).unwrap_or(usize::MAX);
        sockopt::set_socket_send_buffer_size(fd, window)?;
        sockopt::set_socket_recv_buffer_size(fd, window)?;
        let granted = sockopt::socket_send_buffer_size(fd)?.min(sockopt::socket_recv_buffer_size(fd)?);
        if granted < window {
            return Err(io::Error::other(format!(
                "the kernel grants {granted} of the {window} bytes requested (--window); raise net.core.wmem_max and \
                 net.core.rmem_max"
            )));
        }
    }
    if let Some(tos) = words.tos {
        // A socket of the other family has another option for it.
        let _ = sockopt::set_ip_tos(fd, tos);
        let _ = sockopt::set_ipv6_tclass(fd, u32::from(tos));
    }
    if let Some(rate) = words.pacing {
        socket::set_pacing_rate(fd, rate)?;
    }
    Ok(())
}

/// The words for TCP alone.
pub(crate) fn dress_tcp(fd: impl AsFd + Copy, words: &SocketWords) -> io::Result<()> {
    if words.no_delay {
        sockopt::set_tcp_nodelay(fd, true)?;
    }
    if let Some(name) = &words.congestion {
        sockopt::set_tcp_congestion(fd, name).map_err(|error| {
            io::Error::other(format!(
                "the kernel refuses congestion control {name} ({error}); \
                 /proc/sys/net/ipv4/tcp_available_congestion_control lists those it has"
            ))
        })?;
    }
    dress(fd, words)
}

fn timespec(wait: Duration) -> Timespec {
    Timespec::try_from(wait).unwrap_or(Timespec { tv_sec: 3600, tv_nsec: 0 })
}

/// Whether there is something to read within the time; a call that a signal ends early counts as nothing.
pub(crate) fn readable(fd: impl AsFd, wait: Duration) -> io::Result<bool> {
    ready(fd, PollFlags::IN, wait)
}

fn ready(fd: impl AsFd, what: PollFlags, wait: Duration) -> io::Result<bool> {
    let mut fds = [PollFd::new(&fd, what)];
    match poll(&mut fds, Some(&timespec(wait))) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Writes all of it within the time, however little the other end takes at once. Each call waits as long as the socket's own
/// time-out says.
pub(crate) fn write_all(mut stream: &TcpStream, bytes: &[u8], time: Duration) -> io::Result<()> {
    let begun = Instant::now();
    let mut done = 0;
    while done < bytes.len() {
        match stream.write(&bytes[done..]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if done < bytes.len() && begun.elapsed() >= time {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    Ok(())
}

/// A connected TCP socket.
pub(crate) fn connect(to: SocketAddr, words: &SocketWords, timeout: Duration) -> io::Result<TcpStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = net::socket_with(family_of(&to), SocketType::STREAM, flags, None)?;
    if let Some(bytes) = words.max_segment {
        socket::set_max_segment(&fd, bytes)?;
    }
    dress_tcp(&fd, words)?;
    if let Some(from) = words.from {
        net::bind(&fd, &SocketAddr::new(from, 0))?;
    }
    match net::connect(&fd, &to) {
        Ok(()) => {}
        Err(Errno::INPROGRESS) => {
            if !ready(&fd, PollFlags::OUT, timeout)? {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("no answer within {} s", timeout.as_secs_f64()),
                ));
            }
            sockopt::socket_error(&fd)??;
        }
        Err(error) => return Err(error.into()),
    }
    let stream = TcpStream::from(fd);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// A UDP socket on a port that others of this program have too.
pub(crate) fn udp_at(at: SocketAddr) -> io::Result<UdpSocket> {
    let fd = net::socket_with(family_of(&at), SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseaddr(&fd, true)?;
    if at.is_ipv6() {
        // Both families on one socket.
        sockopt::set_ipv6_v6only(&fd, false)?;
    }
    net::bind(&fd, &at)?;
    Ok(UdpSocket::from(fd))
}

/// Whether an address is this host's own: on loopback, or the one that the kernel would send from to it. Sends nothing.
pub(crate) fn is_here(to: SocketAddr) -> bool {
    let route = || {
        let at = if to.is_ipv4() { IpAddr::from([0_u8; 4]) } else { IpAddr::from([0_u16; 8]) };
        let socket = UdpSocket::bind((at, 0))?;
        socket.connect(to)?;
        Ok::<_, io::Error>(socket.local_addr()?.ip() == socket.peer_addr()?.ip())
    };
    plain(to).ip().is_loopback() || route().unwrap_or(false)
}

/// An IPv4 address in the clothes of IPv6 as itself.
pub(crate) fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_host_is_here_and_another_is_not() {
        let at = |host: &str| -> SocketAddr { format!("{host}:9").parse().unwrap() };
        for here in ["127.0.0.1", "127.9.9.9", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"] {
            assert!(is_here(at(here)), "{here}");
        }
        // Addresses for documentation: nobody has them.
        for there in ["192.0.2.1", "[2001:db8::1]"] {
            assert!(!is_here(at(there)), "{there}");
        }
        // The address of a network card, where there is one.
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        if socket.connect(at("192.0.2.1")).is_ok() {
            let own = socket.local_addr().unwrap();
            assert!(is_here(own), "{own}");
        }
    }
}
