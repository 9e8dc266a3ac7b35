//! Ports of loopback for servers that tests start.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// Below those that the kernel gives to whoever asks for any (32768 to 60999): nobody's connection takes one of these between
/// the look and the server's start.
const FIRST: u32 = 15_000;
const COUNT: u32 = 17_000;

/// A free port of 127.0.0.1 that no parallel test gets.
///
/// # Panics
/// None is free.
#[must_use]
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    for _ in 0..COUNT {
        // Programs of tests run side by side: each begins elsewhere.
        let at = std::process::id().wrapping_mul(61).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        if let Ok(port) = u16::try_from(FIRST + at)
            && TcpListener::bind(("127.0.0.1", port)).is_ok()
        {
            return port;
        }
    }
    panic!("no port of loopback is free");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_free_differ_and_are_none_of_the_kernels_choice() {
        let ports = [free_port(), free_port(), free_port()];
        assert!(ports[0] != ports[1] && ports[1] != ports[2] && ports[0] != ports[2], "{ports:?}");
        assert!(ports.iter().all(|port| (15_000..32_000).contains(port)), "{ports:?}");
    }
}
