//! What is written, and that it is checked.

use super::*;

#[test]
fn what_is_written_verifies_and_what_is_changed_does_not() {
    for engine in [IoEngine::Psync, IoEngine::IoUring] {
        let dir = directory();
        let path = dir.path().join("new");
        let written = job(|options| {
            options.engine = engine;
            options.files.names = vec![path.clone()];
            options.files.size = Some(Amount::Bytes(256 << 10));
            options.pattern.mode = Mode::RandWrite;
            options.payload.verify = Verify::Crc32c;
            options.pace.depth = 4;
        });
        let readings = run(vec![written.clone()]).unwrap();
        let clone = &readings.clones[0];
        assert_eq!(clone.error_text, None);
        assert_eq!((clone.ways[W].ios, clone.ways[R].ios), (64, 64));
        assert_eq!(clone.verified_ios, 64);
        let mut only_read = written.clone();
        only_read.options.pattern.mode = Mode::Read;
        let readings = run(vec![only_read.clone()]).unwrap();
        assert_eq!(readings.clones[0].verified_ios, 64);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[100_000] ^= 1;
        // In place, so that it stays the file that was marked.
        std::os::unix::fs::FileExt::write_all_at(
            &std::fs::OpenOptions::new().write(true).open(&path).unwrap(),
            &bytes,
            0,
        )
        .unwrap();
        let readings = run(vec![only_read]).unwrap();
        let clone = &readings.clones[0];
        assert_eq!(clone.error, 84, "{:?}", clone.error_text);
        assert_eq!(clone.verified_ios, 63);
    }
}

#[test]
fn a_backlog_is_read_back_as_it_fills() {
    let dir = directory();
    let readings = run(vec![job(|options| {
        options.files.names = vec![dir.path().join("new")];
        options.files.size = Some(Amount::Bytes(64 << 10));
        options.pattern.mode = Mode::Write;
        options.payload.verify = Verify::Crc32c;
        options.payload.verify_backlog = 3;
    })])
    .unwrap();
    let clone = &readings.clones[0];
    assert_eq!(clone.error_text, None);
    assert_eq!((clone.ways[W].ios, clone.verified_ios), (16, 16));
}

#[test]
fn verify_only_writes_nothing() {
    let dir = directory();
    let path = dir.path().join("new");
    let mut job = job(|options| {
        options.files.names = vec![path.clone()];
        options.files.size = Some(Amount::Bytes(64 << 10));
        options.pattern.mode = Mode::RandWrite;
        options.payload.verify = Verify::Crc32c;
    });
    run(vec![job.clone()]).unwrap();
    let before = std::fs::read(&path).unwrap();
    job.options.payload.verify_only = true;
    let readings = run(vec![job]).unwrap();
    let clone = &readings.clones[0];
    assert_eq!(clone.error_text, None);
    assert_eq!((clone.ways[W].ios, clone.verified_ios), (0, 16));
    assert_eq!(std::fs::read(&path).unwrap(), before);
}
