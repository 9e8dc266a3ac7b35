//! Any words in redo, transaction headers and undo with the right checksums: recovered or refused, never a panic, a hang or much memory.
#![no_main]

use assay_native::fuzzing::Ground;
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

/// One small data set, in memory: it is put right after every input.
fn ground() -> &'static Ground {
    static GROUND: OnceLock<Ground> = OnceLock::new();
    GROUND.get_or_init(|| {
        let dir = std::path::Path::new("/dev/shm/assay-fuzz-native_redo");
        // Of the run before.
        let _ = std::fs::remove_dir_all(dir);
        Ground::new(dir).expect("a data set is loaded")
    })
}

fuzz_target!(|bytes: &[u8]| {
    let recovered = ground().redo(bytes);
    recovered.expect("the files are written");
});
