//! `assay redo`: what a commit waits for when its redo goes to a standby: network, standby and disk separately.
//!
//! Owns the protocol (`wire`), the content of messages (`payload`, `pack`), the standby (`server`), the log that it
//! writes (`log`), the primary (`client`, `alone`, `crowd`) and its own log (`scribe`), commit rules (`quorum`) and the
//! record with its reports (`record`). See `README.md`.

mod alone;
mod ask;
mod client;
mod crowd;
mod demand;
mod hosts;
mod link;
mod log;
mod options;
mod pack;
mod payload;
mod quorum;
mod reading;
mod record;
mod scribe;
mod server;
mod wire;

#[cfg(test)]
mod tests;

use ask::Ask;
use assay_run::probe::{ProbeSpec, Takes};

/// The probe.
pub const SPEC: ProbeSpec = ProbeSpec {
    about: "Measure redo transport to a standby: what it adds to a commit, with network and disk separate",
    more: "Start `assay redo server --bind ADDR --allow-write DIR` on the standby, then `assay redo STANDBY --length 8k \
            --write` here. assay also accepts oratcptest's options in its spelling (-port=5555 -mode=sync -length=4k \
            -duration=60s -interval=1s -write); --format tool prints its report. The protocol is assay's own: both ends must \
            be assay. The test may saturate the network and the standby's disk.",
    usual_time: Some("10s"),
    time_also: &["duration"],
    has_long_flags_with_one_dash: true,
    follows: &[
        ("rate", &["redo_transport_per_s"]),
        ("p50", &["redo_transport_us_p50"]),
        ("p99", &["redo_transport_us_p99"]),
    ],
    options: &[options::OPTIONS],
    over_hosts: Some(hosts::record),
    takes: Takes::Peer(|request| Ok(Box::new(server::Server::of(request)?))),
    ..ProbeSpec::new("redo", &record::KIND, |request| Ok(Box::new(client::Aim(Ask::of(request)?))))
};

/// Parses arbitrary bytes as a standby does: as a header, as an acknowledgement, as parameters that it then checks. For
/// tests; it never panics.
#[doc(hidden)]
pub fn hear_a_stranger(bytes: &[u8]) {
    let mut header = [0; wire::HEADER_BYTES];
    let mut ack = [0; wire::ACK_BYTES];
    for (at, byte) in bytes.iter().enumerate() {
        header[at % wire::HEADER_BYTES] = *byte;
        ack[at % wire::ACK_BYTES] = *byte;
    }
    let read = wire::Header::read(&header);
    if read.length & !wire::FLAGS == read.length {
        assert_eq!(read.bytes(), wire::Header::read(&read.bytes()).bytes());
    }
    let _ = wire::Ack::read(&ack);
    if let Ok(wanted) = serde_json::from_slice::<wire::Wanted>(bytes) {
        let refused = server::Server::of_strangers().refused(&wanted);
        assert!(refused.is_some() || wanted.length <= wire::MESSAGE_MAX);
    }
    // Whatever says it is compressed makes no more than there is room for.
    let mut room = [0; 1 << 16];
    for how in [pack::Compress::None, pack::Compress::Lz4, pack::Compress::Zstd(1)] {
        let unpacked = pack::Unpacker::new(how).and_then(|mut of| of.unpack(bytes, &mut room));
        if let Ok(count) = unpacked {
            assert!(count <= room.len());
        }
    }
    let _ = serde_json::from_slice::<wire::Ready>(bytes);
    let _ = serde_json::from_slice::<wire::Found>(bytes);
}
