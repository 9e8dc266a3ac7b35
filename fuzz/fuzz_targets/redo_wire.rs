//! What a stranger may say to a standby: headers, acknowledgements and parameters of any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    assay_probes::redo::hear_a_stranger(bytes);
});
