//! Any bytes from the network: frames, their length, datagrams. Never a panic, never memory that was only announced.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    assay_probes::network::fuzz(bytes);
    assay_probes::ping::fuzz(bytes);
});
