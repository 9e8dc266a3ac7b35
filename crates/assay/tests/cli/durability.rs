//! `assay durability` with its witness, each a process: a kill of the writer loses nothing, and a device that lies is found.

use crate::common::{Place, Started, until};
use assay_testkit::port::free_port;
use std::net::TcpStream;

fn answer(place: &Place, args: &[&str]) -> String {
    place.assay(args).code(0).out.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_killed_writer_loses_nothing_and_a_device_that_forgets_the_last_stamps_lies() {
    let place = Place::new();
    std::fs::create_dir(place.path("journals")).expect("created");
    let port = free_port().to_string();
    let serve = ["durability", "witness", "--port", &port, "--journal", "journals"];
    let listens = || TcpStream::connect(format!("127.0.0.1:{port}")).is_ok();
    let _witness: Started = place.start(&serve).until("listener", listens);
    let at = format!("127.0.0.1:{port}");
    let write = ["durability", ".", "--witness", &at, "--time", "10m"];
    let back = ["durability", ".", "--resume", "--witness", &at];
    let file = place.path("assay-durability.stamps");
    // Killed between its first stamps: the witness has some, and the writer is at the next. Reading back empties the journal and
    // goes on counting, and the first stamp of a second writing may have been written, not acknowledged, by the first.
    let mut last = 0;
    let mut killed = || {
        let writer = place.start(&write);
        until("stamps", || journal(&place) >= last + 20);
        writer.kill();
        last = journal(&place);
    };
    killed();
    let refused = place.assay(&write).code(3);
    assert!(refused.err.contains("has not been read back"), "{}", refused.err);
    let told = answer(&place, &back);
    assert!(told.contains("unknown (no cut seen, 1 kill of the writer lost nothing)"), "{told}");
    assert!(told.contains("The other end is this host"), "{told}");
    // The device that forgets: what it held before the second writing is what it holds after it.
    let before = std::fs::read(&file).expect("stamps");
    killed();
    std::fs::write(&file, before).expect("put back");
    let told = answer(&place, &back);
    assert!(told.contains(": lying ("), "{told}");
    assert!(told.contains("D1: Acknowledged stamps are missing"), "{told}");
}

/// The last sequence in the only journal there is: its stamps have 16 bytes each, behind 64 KiB.
fn journal(place: &Place) -> u64 {
    let Some(Ok(entry)) = std::fs::read_dir(place.path("journals")).expect("there").next() else {
        return 0;
    };
    let bytes = std::fs::read(entry.path()).expect("a journal");
    let sequence = |stamp: &[u8]| u64::from_le_bytes(stamp[..8].try_into().expect("eight bytes"));
    bytes.get(64 << 10..).unwrap_or_default().chunks_exact(16).map(sequence).max().unwrap_or_default()
}
