//! Socket facts from the kernel, and the socket options that no safe library sets.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

/// `struct tcp_info` as Linux 5.5 and later fill it; older kernels fill only the first part.
///
/// Counters start with the connection; times are in microseconds.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the kernel's own names, less their prefix")]
pub struct TcpInfo {
    pub state: u8,
    pub ca_state: u8,
    pub retransmits: u8,
    pub probes: u8,
    pub backoff: u8,
    pub options: u8,
    pub wscale: u8,
    pub rate_flags: u8,
    pub rto: u32,
    pub ato: u32,
    pub snd_mss: u32,
    pub rcv_mss: u32,
    pub unacked: u32,
    pub sacked: u32,
    pub lost: u32,
    pub retrans: u32,
    pub fackets: u32,
    pub last_data_sent: u32,
    pub last_ack_sent: u32,
    pub last_data_recv: u32,
    pub last_ack_recv: u32,
    pub pmtu: u32,
    pub rcv_ssthresh: u32,
    pub rtt: u32,
    pub rttvar: u32,
    pub snd_ssthresh: u32,
    pub snd_cwnd: u32,
    pub advmss: u32,
    pub reordering: u32,
    pub rcv_rtt: u32,
    pub rcv_space: u32,
    pub total_retrans: u32,
    pub pacing_rate: u64,
    pub max_pacing_rate: u64,
    pub bytes_acked: u64,
    pub bytes_received: u64,
    pub segs_out: u32,
    pub segs_in: u32,
    pub notsent_bytes: u32,
    pub min_rtt: u32,
    pub data_segs_in: u32,
    pub data_segs_out: u32,
    pub delivery_rate: u64,
    pub busy_time: u64,
    pub rwnd_limited: u64,
    pub sndbuf_limited: u64,
    pub delivered: u32,
    pub delivered_ce: u32,
    pub bytes_sent: u64,
    pub bytes_retrans: u64,
    pub dsack_dups: u32,
    pub reord_seen: u32,
    pub rcv_ooopack: u32,
    pub snd_wnd: u32,
    /// Bytes of the structure that the kernel filled.
    pub filled: u32,
}

impl TcpInfo {
    /// Reads the current state of a TCP socket (`getsockopt(TCP_INFO)`).
    ///
    /// # Errors
    /// If it is not a TCP socket.
    pub fn of(socket: impl AsFd) -> io::Result<Self> {
        let mut info = Self::default();
        let mut len = (size_of::<Self>() - size_of::<u64>()) as libc::socklen_t;
        // SAFETY: the kernel writes at most `len` bytes to a plain structure that is longer than that, all of whose
        // bit patterns are valid.
        let answer = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                (&raw mut info).cast(),
                &raw mut len,
            )
        };
        if answer != 0 {
            return Err(io::Error::last_os_error());
        }
        info.filled = len;
        Ok(info)
    }

    /// The congestion window in bytes.
    #[must_use]
    pub fn cwnd_bytes(&self) -> u64 {
        u64::from(self.snd_cwnd) * u64::from(self.snd_mss)
    }

    /// Whether the kernel reports what limited the sender (4.10 and later).
    #[must_use]
    pub fn tells_limits(&self) -> bool {
        self.filled >= 192
    }
}

fn set<T>(socket: impl AsFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as the value has, from the value itself.
    let answer = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    match answer {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets the maximum segment size of a TCP socket in bytes (`TCP_MAXSEG`), before it connects or listens.
///
/// # Errors
/// If the kernel refuses the size.
pub fn set_max_segment(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, &bytes)
}

/// The maximum segment size of a TCP socket in bytes.
///
/// # Errors
/// If it is not a TCP socket.
pub fn max_segment(socket: impl AsFd) -> io::Result<u32> {
    let mut value = 0_u32;
    let mut len = size_of::<u32>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes to a number of that length.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_MAXSEG,
            (&raw mut value).cast(),
            &raw mut len,
        )
    };
    match answer {
        0 => Ok(value),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Limits how fast the kernel lets a socket send, in bytes per second (`SO_MAX_PACING_RATE`).
///
/// # Errors
/// If the kernel refuses it.
pub fn set_pacing_rate(socket: impl AsFd, bytes_per_s: u64) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &bytes_per_s)
}

/// Sets how many bytes wake a waiting reader (`SO_RCVLOWAT`). The end of the connection and a full buffer wake it
/// earlier.
///
/// A reader that has read part of its data must set this to no more than the rest.
///
/// # Errors
/// If the kernel refuses it.
pub fn set_wake_bytes(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    set(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::mem::offset_of;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_fields_lie_where_the_kernel_writes_them() {
        assert_eq!(offset_of!(TcpInfo, rto), 8);
        assert_eq!(offset_of!(TcpInfo, rtt), 68);
        assert_eq!(offset_of!(TcpInfo, total_retrans), 100);
        assert_eq!(offset_of!(TcpInfo, pacing_rate), 104);
        assert_eq!(offset_of!(TcpInfo, delivery_rate), 160);
        assert_eq!(offset_of!(TcpInfo, bytes_sent), 200);
        assert_eq!(offset_of!(TcpInfo, snd_wnd), 228);
        assert_eq!(offset_of!(TcpInfo, filled), 232);
    }

    #[test]
    fn a_connection_tells_of_its_segments_and_what_it_moved() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        set_max_segment(&listener, 1000).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&[7; 50_000]).unwrap();
        let mut got = vec![0; 50_000];
        server.read_exact(&mut got).unwrap();
        let info = TcpInfo::of(&client).unwrap();
        assert!(info.tells_limits() && info.bytes_sent >= 50_000, "{info:?}");
        assert!(info.rtt > 0 && info.snd_cwnd > 0, "{info:?}");
        assert!((900..=1000).contains(&info.snd_mss), "{info:?}");
        assert_eq!(max_segment(&client).unwrap(), info.snd_mss);
        set_wake_bytes(&server, 1000).unwrap();
        client.write_all(&[7; 1500]).unwrap();
        assert!(server.read(&mut got).unwrap() >= 1000);
        set_pacing_rate(&client, 1_000_000).unwrap();
        assert_eq!(TcpInfo::of(&client).unwrap().max_pacing_rate, 1_000_000);
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(TcpInfo::of(&udp).is_err());
    }
}
