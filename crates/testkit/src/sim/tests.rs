use super::*;
use assay_block::{
    Backend, CompletionLease, DirectFile, LaneEngine, Lanes, LanesOptions, OpenMode, Pool, PoolOptions, Ring,
    RingOptions, SyncCall,
};
use std::collections::BTreeSet;
use std::time::Duration;

const NAME: &str = "/simulated/one";
const BLOCKS: usize = 8;

fn image() -> SimImage {
    let mut image = SimImage::default();
    image.add(Path::new(NAME), &[b'.'; BLOCKS * CHUNK_BYTES]).unwrap();
    image
}

fn open() -> DirectFile {
    let mode = OpenMode { read: true, write: true, direct: true };
    DirectFile::open(Path::new(NAME), mode).unwrap()
}

fn ring(entries: u32) -> Ring {
    let pool = Pool::new(&PoolOptions { frames: 4, frame_bytes: CHUNK_BYTES, huge_pages: false }).unwrap();
    Ring::open(RingOptions {
        entries,
        buffers: entries as usize,
        buffer_bytes: 2 * CHUNK_BYTES,
        pool: Some(pool),
        files: vec![Arc::new(open())],
        backend: Backend::Auto,
        helpers: 1,
    })
    .unwrap()
}

fn queue_write(ring: &mut Ring, block: u64, fill: u8, blocks: usize, durable: bool) {
    let mut buffer = ring.take_buffer().unwrap();
    buffer.fill(fill);
    let len = blocks * CHUNK_BYTES;
    let offset = block * CHUNK_BYTES as u64;
    ring.write_buffer(0, offset, buffer, len, durable, block).unwrap();
}

/// The first byte of each sector, as text.
fn content(disk: &SimDisk) -> String {
    let bytes = disk.image().content(Path::new(NAME)).unwrap();
    bytes
        .chunks(SECTOR_BYTES)
        .map(|sector| {
            assert!(sector.iter().all(|byte| *byte == sector[0]));
            sector[0] as char
        })
        .collect()
}

fn block(disk: &SimDisk, block: usize) -> String {
    content(disk)[8 * block..8 * block + 8].to_owned()
}

#[test]
fn only_paths_of_the_mounted_disk_are_simulated() {
    let disk = SimDisk::new(&image(), 1);
    {
        let _mounted = disk.mount();
        assert_eq!(open().len().unwrap(), (BLOCKS * CHUNK_BYTES) as u64);
        assert!(open().lock_exclusive().is_ok());
        let held = open();
        held.lock_exclusive().unwrap();
        assert!(matches!(open().lock_exclusive(), Err(BlockError::InUse { .. })));
        drop(held);
        assert!(open().lock_exclusive().is_ok());
    }
    let mode = OpenMode { read: true, write: false, direct: false };
    assert!(DirectFile::open(Path::new(NAME), mode).is_err());
}

#[test]
fn a_ring_takes_files_of_the_disk_or_real_ones_and_lanes_take_real_ones() {
    let real = tempfile::NamedTempFile::new().unwrap();
    let disk = SimDisk::new(&image(), 1);
    let _mounted = disk.mount();
    let mode = OpenMode { read: true, write: false, direct: false };
    let files = vec![Arc::new(open()), Arc::new(DirectFile::open(real.path(), mode).unwrap())];
    let options = RingOptions {
        entries: 1,
        buffers: 0,
        buffer_bytes: 0,
        pool: None,
        files: files.clone(),
        backend: Backend::Auto,
        helpers: 1,
    };
    let refused = Ring::open(options).unwrap_err().to_string();
    assert!(refused.contains("not both"), "{refused}");
    let engine = LaneEngine::Psync(SyncCall::default());
    let lanes = Lanes::open(LanesOptions { lanes: 1, lane_bytes: CHUNK_BYTES, files, engine });
    assert!(lanes.unwrap_err().to_string().contains("real files"));
}

#[test]
fn what_is_synced_or_written_durably_survives_and_the_rest_may_be_lost_torn_or_kept() {
    let mut seen = BTreeSet::new();
    for seed in 0..300 {
        let disk = SimDisk::new(&image(), seed);
        let _mounted = disk.mount();
        let file = open();
        file.write_at(0, &[b's'; CHUNK_BYTES]).unwrap();
        file.sync_data().unwrap();
        file.write_at(CHUNK_BYTES as u64, &[b'u'; CHUNK_BYTES]).unwrap();
        let mut ring = ring(2);
        queue_write(&mut ring, 2, b'd', 1, true);
        ring.submit(1, Duration::ZERO).unwrap();
        assert!(ring.pop().is_some());
        drop((ring, file));
        disk.power_cut(Cut::Seeded { sector_bytes: SECTOR_BYTES });
        assert_eq!(block(&disk, 0), "ssssssss");
        assert_eq!(block(&disk, 2), "dddddddd");
        seen.insert(block(&disk, 1));
        let hits = disk.hits();
        assert_eq!(hits[FaultKind::Lost as usize], u64::from(block(&disk, 1) == "........"));
        let torn = block(&disk, 1).contains('.') && block(&disk, 1).contains('u');
        assert_eq!(hits[FaultKind::Torn512 as usize], u64::from(torn));
    }
    assert!(seen.contains("........") && seen.contains("uuuuuuuu") && seen.len() > 20);
}

#[test]
fn sectors_of_4096_bytes_tear_only_between_blocks() {
    let mut torn = 0;
    for seed in 0..200 {
        let disk = SimDisk::new(&image(), seed);
        let _mounted = disk.mount();
        open().write_at(0, &[b'w'; 2 * CHUNK_BYTES]).unwrap();
        disk.power_cut(Cut::Seeded { sector_bytes: CHUNK_BYTES });
        let (first, second) = (block(&disk, 0), block(&disk, 1));
        for one in [&first, &second] {
            assert!(one == "wwwwwwww" || one == "........", "{one}");
        }
        torn += u64::from(first != second);
        assert_eq!(disk.hits()[FaultKind::Torn4096 as usize], u64::from(first != second));
    }
    assert!(torn > 10);
}

#[test]
fn every_subset_of_the_unsynced_sectors_can_be_asked_for() {
    let mut outcomes = BTreeSet::new();
    for kept in 0..8_u8 {
        let disk = SimDisk::new(&image(), 7);
        let _mounted = disk.mount();
        for (block, fill) in [(0, b'a'), (1, b'b'), (0, b'c')] {
            open().write_at(block * CHUNK_BYTES as u64, &[fill; CHUNK_BYTES]).unwrap();
        }
        assert_eq!(disk.units(CHUNK_BYTES), 3);
        assert_eq!(disk.units(SECTOR_BYTES), 24);
        let report = disk.power_cut(Cut::Exactly { sector_bytes: CHUNK_BYTES, first: 0, kept, others: false });
        assert_eq!((report.units, report.kept), (3, kept.count_ones() as usize));
        outcomes.insert(content(&disk)[..16].to_owned());
    }
    // Block 0 may be old, the first or the second version; block 1 old or new.
    assert_eq!(outcomes.len(), 6);
}

#[test]
fn the_power_goes_at_the_step_asked_for_and_nothing_happens_after_it() {
    let disk = SimDisk::new(&image(), 3);
    let _mounted = disk.mount();
    let file = open();
    disk.cut_at_step(2);
    file.write_at(0, &[b'1'; CHUNK_BYTES]).unwrap();
    file.sync_data().unwrap();
    assert!(file.write_at(0, &[b'2'; CHUNK_BYTES]).is_err());
    assert!(!disk.has_power());
    assert!(file.write_at(CHUNK_BYTES as u64, &[b'3'; CHUNK_BYTES]).is_err());
    assert!(file.sync_data().is_err());
    assert!(file.read_at(0, &mut [0; 8]).is_err());
    assert_eq!(disk.units(CHUNK_BYTES), 1, "only the write it went with");
    disk.power_cut(Cut::Exactly { sector_bytes: CHUNK_BYTES, first: 0, kept: 0, others: false });
    assert_eq!(content(&disk)[..16], *"11111111........");
    assert_eq!(file.read_at(0, &mut [0; 8]).unwrap(), 8, "it runs again");
}

#[test]
fn requests_end_in_an_order_that_the_seed_decides_and_a_dropped_ring_leaves_parts() {
    let mut orders = BTreeSet::new();
    for seed in 0..50 {
        let disk = SimDisk::new(&image(), seed);
        let _mounted = disk.mount();
        let mut ring = ring(8);
        assert_eq!(ring.features().backend, "installed backend");
        for at in 0..4 {
            queue_write(&mut ring, at, b'a' + at as u8, 1, false);
        }
        let mut order = Vec::new();
        while order.len() < 4 {
            ring.submit(1, Duration::ZERO).unwrap();
            while let Some(done) = ring.pop() {
                assert_eq!(done.result.unwrap(), CHUNK_BYTES as u32);
                order.push(done.tag);
            }
        }
        orders.insert(order);
        for at in 4..8 {
            queue_write(&mut ring, at, b'z', 1, true);
        }
        ring.submit(0, Duration::ZERO).unwrap();
        disk.cut_now();
        queue_write(&mut ring, 0, b'!', 1, true);
        drop(ring);
        disk.power_cut(Cut::Exactly { sector_bytes: CHUNK_BYTES, first: 0, kept: 0xff, others: true });
        // What was handed over before the cut may be there, what came after cannot.
        assert_eq!(content(&disk)[32..], "z".repeat(32));
        assert_eq!(block(&disk, 0), "aaaaaaaa");
    }
    assert!(orders.len() > 10);
}

#[test]
fn frames_are_read_and_each_armed_fault_hits_once() {
    let disk = SimDisk::new(&image(), 5);
    let _mounted = disk.mount();
    for (kind, after) in
        [(FaultKind::ReadError, 1), (FaultKind::ShortRead, 0), (FaultKind::ShortWrite, 0), (FaultKind::NoSpace, 0)]
    {
        disk.arm(Fault { kind, file_prefix: "one".to_owned(), after });
    }
    disk.arm(Fault { kind: FaultKind::WriteError, file_prefix: "another".to_owned(), after: 0 });
    let mut ring = ring(4);
    let mut results = Vec::new();
    for tag in 0..3 {
        let mut buffer = ring.take_buffer().unwrap();
        buffer.fill(0);
        ring.read_buffer(0, 0, buffer, CHUNK_BYTES, tag).unwrap();
        ring.submit(1, Duration::ZERO).unwrap();
        let done = ring.pop().unwrap();
        if let CompletionLease::Buffer(buffer) = done.lease {
            ring.give_back(buffer);
        }
        results.push(done.result.map_err(|e| e.raw_os_error()));
    }
    assert!(results.contains(&Err(Some(Errno::IO.raw_os_error()))));
    assert!(matches!(results[0], Ok(n) if (n as usize) < CHUNK_BYTES));
    assert_eq!(results[2], Ok(CHUNK_BYTES as u32));
    queue_write(&mut ring, 0, b'x', 1, true);
    ring.submit(1, Duration::ZERO).unwrap();
    let first = ring.pop().unwrap().result;
    assert!(matches!(first, Ok(n) if (n as usize) < CHUNK_BYTES));
    assert_eq!(disk.steps_after_failure(), 0);
    queue_write(&mut ring, 0, b'x', 1, true);
    ring.submit(1, Duration::ZERO).unwrap();
    let second = ring.pop().unwrap().result.unwrap_err();
    assert_eq!(second.raw_os_error(), Some(Errno::NOSPC.raw_os_error()));
    assert_eq!(disk.steps_after_failure(), 1);
    let kinds: Vec<FaultKind> = disk.incidents().iter().map(|i| i.kind).collect();
    assert_eq!(kinds, [FaultKind::ShortRead, FaultKind::ReadError, FaultKind::ShortWrite, FaultKind::NoSpace]);
}

#[test]
fn a_misdirected_write_leaves_its_home_and_hurts_another_block() {
    let disk = SimDisk::new(&image(), 5);
    let _mounted = disk.mount();
    disk.arm(Fault { kind: FaultKind::Misdirected, file_prefix: String::new(), after: 0 });
    open().write_at(0, &[b'm'; CHUNK_BYTES]).unwrap();
    let incident = disk.incidents().pop().unwrap();
    assert_eq!(incident.offset, 0);
    assert_eq!(block(&disk, 0), "........");
    assert_eq!(block(&disk, incident.landed as usize / CHUNK_BYTES), "mmmmmmmm");
}

#[test]
fn after_a_failed_sync_the_next_one_succeeds_and_bytes_are_lost() {
    let mut lost = 0;
    for seed in 0..20 {
        let disk = SimDisk::new(&image(), seed);
        let _mounted = disk.mount();
        disk.arm(Fault { kind: FaultKind::SyncError, file_prefix: String::new(), after: 0 });
        open().write_at(0, &[b'f'; CHUNK_BYTES]).unwrap();
        assert!(open().sync_data().is_err());
        open().sync_data().unwrap();
        assert_eq!(disk.steps_after_failure(), 1);
        assert_eq!(block(&disk, 0), "ffffffff", "a reader notices nothing");
        disk.power_cut(Cut::Exactly { sector_bytes: CHUNK_BYTES, first: 0, kept: 0xff, others: true });
        lost += u64::from(block(&disk, 0) == "........");
    }
    assert!((1..20).contains(&lost));
}

#[test]
fn copies_of_an_image_share_what_they_do_not_change() {
    let image = image();
    let disk = SimDisk::new(&image, 1);
    let _mounted = disk.mount();
    open().write_at(0, &[b'n'; 700]).unwrap();
    disk.rot(Path::new(NAME), 5000, 3);
    let changed = disk.image();
    assert_eq!(image.content(Path::new(NAME)).unwrap()[0], b'.');
    let now = changed.content(Path::new(NAME)).unwrap();
    assert_eq!((now[0], now[699], now[700]), (b'n', b'n', b'.'));
    assert_eq!(now[5000], b'.' ^ 8);
    let shared = image.files[0].1.iter().zip(&changed.files[0].1);
    assert_eq!(shared.filter(|(a, b)| Arc::ptr_eq(a, b)).count(), BLOCKS - 2);
}
