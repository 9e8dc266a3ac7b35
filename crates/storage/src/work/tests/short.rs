//! I/Os that the kernel completes short, by half of every third request, through every engine that moves data.

use super::*;

const BLOCK: u64 = 4096;
const BLOCKS: u64 = 256;

fn moving() -> [IoEngine; 4] {
    [IoEngine::Psync, IoEngine::Pvsync2, IoEngine::IoUring, IoEngine::Libaio]
}

/// What must hold of `BLOCKS` I/Os of one direction, every third request of which was short.
fn is_whole(readings: &StorageReadings, way: usize, what: &str) {
    let clone = &readings.clones[0];
    assert_eq!(clone.error_text, None, "{what}");
    let way = &clone.ways[way];
    assert_eq!((way.ios, way.bytes), (BLOCKS, BLOCKS * BLOCK), "{what}");
    // The rest of one in three is a request as well, and so on: each shorter than the last.
    assert!((100..=130).contains(&way.short_ios), "{what}: {}", way.short_ios);
    // Each I/O is in flight once, from its first submission to the end of its rest.
    let sums = clone.ways.iter().map(|way| u128::from(way.lat.histogram.sum_ns()));
    assert_eq!(clone.in_flight_ns, sums.sum::<u128>(), "{what}");
}

#[test]
fn the_rest_of_a_short_read_is_asked_for_and_the_io_counts_once() {
    for engine in moving() {
        for depth in [1, 8] {
            let (_dir, path) = file((BLOCKS * BLOCK) as usize);
            let readings = run(vec![job(|options| {
                reads(&path)(options);
                options.engine = engine;
                options.shorten = 3;
                options.pace.depth = depth;
            })])
            .unwrap();
            is_whole(&readings, R, &format!("{engine:?} at depth {depth}"));
        }
    }
}

#[test]
fn what_is_written_in_parts_is_read_back_whole() {
    for engine in moving() {
        for no_slat in [false, true] {
            let dir = directory();
            let path = dir.path().join("data");
            let readings = run(vec![job(|options| {
                reads(&path)(options);
                options.engine = engine;
                options.shorten = 3;
                options.pattern.mode = Mode::RandWrite;
                options.payload.verify = Verify::Crc32c;
                options.measure.no_slat = no_slat;
                options.pace.depth = 8;
            })])
            .unwrap();
            let what = format!("{engine:?}");
            is_whole(&readings, W, &what);
            assert_eq!(readings.clones[0].ways[R].ios, BLOCKS, "{what}");
            assert_eq!(readings.clones[0].verified_ios, BLOCKS, "{what}");
        }
    }
}
