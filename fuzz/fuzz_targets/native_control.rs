//! Any words in a control file with the right checksums: never a panic, a hang or much memory.
#![no_main]

use assay_native::fuzzing::Ground;
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

/// One small data set, in memory: it is put right after every input.
fn ground() -> &'static Ground {
    static GROUND: OnceLock<Ground> = OnceLock::new();
    GROUND.get_or_init(|| {
        let dir = std::path::Path::new("/dev/shm/assay-fuzz-native_control");
        // Of the run before.
        let _ = std::fs::remove_dir_all(dir);
        Ground::new(dir).expect("a data set is loaded")
    })
}

fuzz_target!(|bytes: &[u8]| {
    assay_native::fuzzing::slots(bytes);
    ground().control(bytes).expect("the files are written");
});
