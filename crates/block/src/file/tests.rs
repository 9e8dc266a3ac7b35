use super::*;
use proptest::prelude::*;

fn directory() -> tempfile::TempDir {
    crate::testing::directory()
}

#[test]
fn an_existing_file_is_not_created_again() {
    let place = directory();
    let path = place.path().join("file");
    for direct in [false, true] {
        let made = DirectFile::create_new(&path, direct).unwrap();
        made.write_at(0, b"precious").unwrap();
        assert!(matches!(DirectFile::create_new(&path, direct), Err(BlockError::Io { what: "create", .. })));
        let mut data = [0; 8];
        assert_eq!(made.read_at(0, &mut data).unwrap(), 8);
        assert_eq!(&data, b"precious");
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_missing_file_is_an_error_that_names_it() {
    let place = directory();
    let path = place.path().join("missing");
    let error = DirectFile::open(&path, OpenMode { read: true, write: false, direct: true }).unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
    let error = DirectFile::open(&path, OpenMode { read: false, write: false, direct: true }).unwrap_err();
    assert!(matches!(error, BlockError::Invalid { .. }));
}

#[test]
fn a_second_lock_is_refused_until_the_first_is_dropped() {
    let place = directory();
    let path = place.path().join("control");
    let first = DirectFile::create_new(&path, false).unwrap();
    first.lock_exclusive().unwrap();
    let second = DirectFile::open(&path, OpenMode { read: true, write: true, direct: false }).unwrap();
    assert!(matches!(second.lock_exclusive(), Err(BlockError::InUse { .. })));
    // As a process that is being forked at that moment has it open too.
    let forked = first.descriptor().try_clone_to_owned().unwrap();
    drop(first);
    second.lock_exclusive().unwrap();
    drop(forked);
}

#[test]
fn allocation_sets_the_length_and_reads_as_zeroes() {
    let place = directory();
    let file = DirectFile::create_new(&place.path().join("data"), true).unwrap();
    file.allocate(0).unwrap();
    assert_eq!(file.len().unwrap(), 0);
    file.allocate(1 << 20).unwrap();
    assert_eq!(file.len().unwrap(), 1 << 20);
    let mut data = vec![7; 100_000];
    assert_eq!(file.read_at((1 << 20) - 50_000, &mut data).unwrap(), 50_000);
    assert!(data[..50_000].iter().all(|&byte| byte == 0));
    file.sync_data().unwrap();
}

#[test]
fn allocation_beyond_the_free_space_says_how_much_there_is() {
    let place = directory();
    let file = DirectFile::create_new(&place.path().join("data"), false).unwrap();
    let free = crate::free_bytes(place.path()).unwrap();
    // More than there is, yet inside what the file system can address in one file (16 TiB on ext4).
    let needed = free + (1 << 40);
    match file.allocate(needed) {
        Err(BlockError::NoSpace { path, needed: said, .. }) => {
            assert_eq!(said, needed);
            assert!(path.ends_with("data"));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(file.len().unwrap(), 0, "a refused allocation leaves nothing behind");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn control_file_access_works_at_any_offset(
        writes in proptest::collection::vec((0_usize..20_000, proptest::collection::vec(any::<u8>(), 0..9_000)), 1..8),
        direct in any::<bool>(),
    ) {
        let place = directory();
        let file = DirectFile::create_new(&place.path().join("control"), direct).unwrap();
        let mut model = Vec::new();
        for (offset, data) in &writes {
            file.write_at(*offset as u64, data).unwrap();
            if !data.is_empty() {
                model.resize(model.len().max(offset + data.len()), 0);
                model[*offset..offset + data.len()].copy_from_slice(data);
            }
            prop_assert_eq!(file.len().unwrap(), model.len() as u64);
        }
        let mut all = vec![0; model.len() + 5_000];
        prop_assert_eq!(file.read_at(0, &mut all).unwrap(), model.len());
        prop_assert_eq!(&all[..model.len()], &model[..]);
        let mut part = vec![0; 100];
        let from = model.len() / 3;
        let count = file.read_at(from as u64, &mut part).unwrap();
        prop_assert_eq!(&part[..count], &model[from..from + count]);
    }
}

#[test]
fn a_part_of_a_file_is_a_file_of_its_own() {
    const BASE: u64 = 8192;
    for direct in [false, true] {
        let place = directory();
        let path = place.path().join("whole");
        let whole = DirectFile::create_new(&path, false).unwrap();
        whole.write_at(0, &[1; 20_480]).unwrap();
        let mode = OpenMode { read: true, write: true, direct };
        let part = DirectFile::open_part(&path, mode, BASE, 4096).unwrap();
        assert!(part.is_part() && !whole.is_part());
        assert_eq!(part.len().unwrap(), 4096);
        part.write_at(100, &[7; 50]).unwrap();
        let mut data = vec![0; 8192];
        assert_eq!(part.read_at(0, &mut data).unwrap(), 4096, "not beyond its end");
        assert_eq!((data[99], data[100], data[149], data[150]), (1, 7, 7, 1));
        assert_eq!(whole.read_at(BASE + 100, &mut data[..1]).unwrap(), 1);
        assert_eq!(data[0], 7);

        // Nothing outside is written, and the whole keeps its length.
        assert!(part.write_at(4000, &[7; 97]).is_err());
        assert!(part.allocate(4096).is_ok());
        assert!(matches!(part.allocate(4097), Err(BlockError::NoSpace { free: 4096, .. })));
        assert_eq!(whole.len().unwrap(), 20_480);
        let short = DirectFile::open_part(&path, mode, 16_384, 8192).unwrap();
        assert_eq!(short.len().unwrap(), 4096, "the whole ends there");
        assert!(DirectFile::open_part(&path, mode, 100, 4096).is_err());
    }
}

fn allocated_bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).unwrap().blocks() * 512
}

#[test]
fn space_is_got_in_the_manner_asked_for_and_never_given_up() {
    let place = directory();
    for (how, expected_len, has_space) in [
        (Preallocate::None, 4096, false),
        (Preallocate::Native, 1 << 20, true),
        (Preallocate::Posix, 1 << 20, true),
        (Preallocate::Keep, 4096, true),
        (Preallocate::Truncate, 1 << 20, false),
    ] {
        let path = place.path().join(format!("{how:?}"));
        std::fs::write(&path, vec![7; 4096]).unwrap();
        let options = FileOptions { read: true, write: true, ..FileOptions::default() };
        let file = DirectFile::open_with(&path, options).unwrap();
        assert!(!file.is_device().unwrap());
        let done = file.preallocate(how, 1 << 20).unwrap();
        assert_eq!(done, how != Preallocate::None);
        assert_eq!(file.len().unwrap(), expected_len, "{how:?}");
        assert_eq!(allocated_bytes(&path) >= 1 << 20, has_space, "{how:?}");
        let len = file.len().unwrap();
        file.preallocate(how, 4096).unwrap();
        assert_eq!(file.len().unwrap(), len, "{how:?} cut the file off");
        let mut data = vec![0; 4096];
        file.read_at(0, &mut data).unwrap();
        assert!(data.iter().all(|byte| *byte == 7));
    }
}

#[test]
fn more_space_than_there_is_is_refused_and_nothing_is_left_of_it() {
    let place = directory();
    let path = place.path().join("huge");
    std::fs::write(&path, vec![7; 4096]).unwrap();
    let options = FileOptions { write: true, ..FileOptions::default() };
    let file = DirectFile::open_with(&path, options).unwrap();
    for how in [Preallocate::Native, Preallocate::Posix, Preallocate::Keep] {
        let error = file.preallocate(how, 1 << 50).unwrap_err();
        assert!(matches!(error, BlockError::NoSpace { .. }), "{error}");
        assert_eq!(file.len().unwrap(), 4096);
    }
}

fn cached_pages(path: &Path) -> u64 {
    let file = std::fs::File::open(path).unwrap();
    crate::cached_pages(&file).unwrap().expect("our own file")
}

#[test]
fn invalidated_pages_are_gone_from_the_cache() {
    let place = directory();
    let path = place.path().join("cached");
    std::fs::write(&path, vec![7; 16 << 20]).unwrap();
    let options = FileOptions { read: true, ..FileOptions::default() };
    let file = DirectFile::open_with(&path, options).unwrap();
    file.sync_data().unwrap();
    assert_eq!(cached_pages(&path), 4096);
    file.invalidate(0, 8 << 20).unwrap();
    // Large folios go or stay as a whole, so one may be left of the first half.
    let left = cached_pages(&path);
    assert!((2048..2048 + 512 + 1).contains(&left), "{left}");
    file.invalidate(0, 0).unwrap();
    assert_eq!(cached_pages(&path), 0);
}

#[test]
fn options_reach_the_kernel() {
    use rustix::fs::{OFlags, fcntl_getfl};
    let place = directory();
    let path = place.path().join("flags");
    std::fs::write(&path, vec![7; 8192]).unwrap();
    let flags = |options| {
        let file = DirectFile::open_with(&path, options).unwrap();
        fcntl_getfl(&file).unwrap()
    };
    let base = FileOptions { read: true, write: true, ..FileOptions::default() };
    let dsync = OFlags::from_bits_retain(libc::O_DSYNC as u32);
    assert!(!flags(base).intersects(OFlags::DIRECT | dsync | OFlags::NOATIME));
    let full = flags(FileOptions {
        direct: DirectIo::Required,
        write_through: WriteThrough::Data,
        no_atime: true,
        exclusive: true,
        ..base
    });
    assert!(full.contains(OFlags::DIRECT | dsync | OFlags::NOATIME));
    assert!(!full.contains(OFlags::SYNC));
    let whole = flags(FileOptions { write_through: WriteThrough::Whole, ..base });
    assert!(whole.contains(OFlags::SYNC));
    let only = |read, write| {
        let options = FileOptions { read, write, ..FileOptions::default() };
        flags(options) & OFlags::RWMODE
    };
    assert_eq!(only(true, false), OFlags::RDONLY);
    assert_eq!(only(false, true), OFlags::WRONLY);
    let neither = DirectFile::open_with(&path, FileOptions::default()).unwrap_err();
    assert!(neither.to_string().contains("or for both"));
}

#[test]
fn required_direct_io_that_is_refused_is_an_error_that_says_so() {
    // Files of proc do not offer it.
    let options = FileOptions { read: true, direct: DirectIo::Required, ..FileOptions::default() };
    let path = Path::new("/proc/self/status");
    let error = DirectFile::open_with(path, options).unwrap_err().to_string();
    assert!(error.contains("direct I/O") && error.contains("direct=0"), "{error}");
    let possible = FileOptions { direct: DirectIo::IfPossible, ..options };
    assert!(!DirectFile::open_with(path, possible).unwrap().is_direct());
}

#[test]
fn holes_are_no_data_and_what_was_written_is_in_the_page_cache_until_it_is_dropped() {
    let dir = directory();
    let path = dir.path().join("sparse");
    std::fs::write(&path, "").unwrap();
    let file = DirectFile::open(&path, OpenMode { read: true, write: true, direct: false }).unwrap();
    file.write_at(1 << 20, &[7; 8192]).unwrap();
    file.set_len(4 << 20).unwrap();
    file.sync_data().unwrap();
    let ranges = file.data_ranges().unwrap();
    assert_eq!((ranges.len(), ranges[0].start, ranges[0].end), (1, 1 << 20, (1 << 20) + 8192));
    assert!(file.has_cached((1 << 20) + 4096, 4096));
    file.invalidate(0, 0).unwrap();
    assert!(!file.has_cached(1 << 20, 8192));
    file.set_len(1 << 20).unwrap();
    assert_eq!(file.data_ranges().unwrap(), []);
}
