//! One connection of the client to a standby: greeting, parameters, readiness, messages, result.

use super::ask::{Ask, Standby};
use super::reading::StandbyReading;
use super::wire::{ACK_BYTES, Ack, END, Found, Header, RESULT_MAX, Ready, SERVICE};
use crate::peer::hello::greet;
use crate::peer::line::{Line as Peer, PeerError};
use assay_block::socket::TcpInfo;
use assay_run::engine::EngineError;
use assay_run::stop::Stop;
use rustix::net::sockopt;
use std::time::Instant;

const WHAT: &str = "while messages were sent";
pub(super) const AWAITED: &str = "while an acknowledgement was awaited";
const MAKING_READY: &str = "while it prepared (--timeout)";

/// A connection whose standby is ready.
pub(super) struct Link {
    pub(super) peer: Peer,
    pub(super) ready: Ready,
}

impl Link {
    /// Connects, greets, asks and waits until the standby is ready.
    pub(super) fn open(ask: &Ask, standby: &Standby, stop: &Stop) -> Result<Self, EngineError> {
        let mut peer = Peer::connect(&standby.host, standby.port, ask.timeout, stop)?;
        if let Some(bytes) = ask.sockbuf {
            let set = sockopt::set_socket_send_buffer_size(peer.stream(), bytes as usize);
            set.map_err(|error| EngineError::Usage(format!("--sockbuf {bytes}: the kernel refuses it: {error}")))?;
        }
        let name = peer.peer().to_owned();
        let ready = Self::ask(&mut peer, ask, stop).map_err(|error| error.of(&name))?;
        Ok(Self { peer, ready })
    }

    fn ask(peer: &mut Peer, ask: &Ask, stop: &Stop) -> Result<Ready, PeerError> {
        greet(peer, SERVICE, ask.secret.as_ref())?;
        let wanted = ask.wanted();
        peer.tell(&wanted, "in the parameters")?;
        // Saying that one is at it is no progress: a log that grows is, and takes only as long as logs do.
        let (still, most) = ask.making_ready();
        let (begun, mut known) = (Instant::now(), 0);
        peer.lasts(still);
        loop {
            let ready: Ready = peer.hear(RESULT_MAX, MAKING_READY)?;
            if !ready.refused.is_empty() {
                return Err(PeerError::Refused(format!("it refuses: {}", ready.refused)));
            }
            if !ready.is_preparing {
                peer.lasts(wanted.longest());
                return Ok(ready);
            }
            if stop.requested() {
                return Err(PeerError::Stopped);
            }
            if begun.elapsed() >= most {
                return Err(PeerError::Late(most, MAKING_READY.to_owned()));
            }
            if ready.log_bytes > known {
                known = ready.log_bytes;
                peer.lasts(still);
            }
        }
    }

    pub(super) fn send(&mut self, header: Header, payload: &[u8]) -> Result<(), PeerError> {
        self.peer.write_both(&header.bytes(), payload, WHAT)
    }

    pub(super) fn acknowledged(&mut self) -> Result<Ack, PeerError> {
        let mut bytes = [0; ACK_BYTES];
        self.peer.read(&mut bytes, AWAITED)?;
        Ok(Ack::read(&bytes))
    }

    /// Says that it is over.
    pub(super) fn end(&mut self, sequence: u64) -> Result<(), PeerError> {
        let header = Header { sequence, is_end: true, ..Header::default() };
        self.send(header, &[])
    }

    /// Waits until it has consumed everything.
    pub(super) fn ended(&mut self) -> Result<(), PeerError> {
        match self.acknowledged()?.sequence {
            END => Ok(()),
            other => Err(PeerError::Foreign(format!("it acknowledges message {other}, but the end was due"))),
        }
    }

    /// Why it says that all is consumed while messages are under way.
    pub(super) fn broke_off(&mut self) -> PeerError {
        match self.found() {
            Ok(_) => PeerError::Foreign("it ended before the client asked it to".to_owned()),
            Err(error) => error,
        }
    }

    /// Reads what the standby found.
    pub(super) fn found(&mut self) -> Result<Found, PeerError> {
        let found: Found = self.peer.hear(RESULT_MAX, "while its result was awaited")?;
        if found.failed.is_empty() {
            Ok(found)
        } else {
            Err(PeerError::Refused(format!("it failed: {}", found.failed)))
        }
    }

    /// What is known of the standby, as far as the connection tells.
    pub(super) fn reading(&self, standby: &Standby) -> StandbyReading {
        let stream = self.peer.stream();
        StandbyReading {
            name: standby.name.clone(),
            ready: self.ready.clone(),
            send_buffer: sockopt::socket_send_buffer_size(stream).ok().map(|bytes| bytes as u64),
            tcp: TcpInfo::of(stream).ok(),
            ..StandbyReading::default()
        }
    }
}
