//! Addresses of host names, with bounded waits.

use std::io::{Error, Result};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// How long the system may look a name up: with its defaults it asks each of three silent name servers for 5 s before it begins anew.
const LOOK_UP_MAX: Duration = Duration::from_secs(20);

/// Between two questions whether to go on.
const PIECE: Duration = Duration::from_millis(100);

/// The addresses of a host, in the system's order. During the look-up it asks `go_on` every 100 ms whether to continue.
///
/// # Errors
/// The error of the system or of `go_on`; an error without a kind after 20 s, since the host itself was not contacted.
pub fn addresses(host: &str, port: u16, go_on: impl FnMut() -> Result<()>) -> Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let name = host.to_owned();
    wait(move || Ok((name.as_str(), port).to_socket_addrs()?.collect()), LOOK_UP_MAX, go_on)
}

/// The system's call takes no deadline: its thread is left alone with it when nobody waits any longer.
fn wait(
    look_up: impl FnOnce() -> Result<Vec<SocketAddr>> + Send + 'static,
    most: Duration,
    mut go_on: impl FnMut() -> Result<()>,
) -> Result<Vec<SocketAddr>> {
    let (told, answer) = channel();
    thread::Builder::new().spawn(move || told.send(look_up()))?;
    let begun = Instant::now();
    while begun.elapsed() < most {
        if let Ok(found) = answer.recv_timeout(PIECE) {
            return found;
        }
        go_on()?;
    }
    Err(Error::other(format!("no name server of this host answered within {} s", most.as_secs())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    #[test]
    fn a_look_up_ends_with_the_system_s_answer_or_when_nobody_waits_any_longer() {
        let address = SocketAddr::from(([192, 0, 2, 1], 5432));
        let found = wait(move || Ok(vec![address]), LOOK_UP_MAX, || Ok(()));
        assert_eq!(found.unwrap(), [address]);
        assert_eq!(addresses("192.0.2.1", 5432, || unreachable!()).unwrap(), [address]);
        let none = wait(|| Err(ErrorKind::NotFound.into()), LOOK_UP_MAX, || Ok(()));
        assert_eq!(none.unwrap_err().kind(), ErrorKind::NotFound);
        // These never get an answer.
        let (_kept, never) = channel::<()>();
        let silent = move || never.recv().map(|()| Vec::new()).map_err(Error::other);
        let late = wait(silent, PIECE, || Ok(())).unwrap_err();
        assert!(late.to_string().contains("no name server"), "{late}");
        let (_kept, never) = channel::<()>();
        let silent = move || never.recv().map(|()| Vec::new()).map_err(Error::other);
        let ended = wait(silent, Duration::MAX, || Err(ErrorKind::Interrupted.into())).unwrap_err();
        assert_eq!(ended.kind(), ErrorKind::Interrupted);
    }
}
