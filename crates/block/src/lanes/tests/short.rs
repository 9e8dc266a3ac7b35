//! Requests that the kernel completes short: the rest is asked for by the same lane.

use super::*;

/// Lanes over a file of their own, every request of which is completed short by half.
fn short_lanes(engine: LaneEngine, lanes: u32, direct: bool) -> (tempfile::TempDir, Lanes) {
    let place = directory();
    let mut lanes = lanes_of(engine, lanes, &file(&place, 16, direct));
    lanes.shorten(1);
    (place, lanes)
}

/// Reaps one completion of each of eight lanes and asks for what is missing until nothing is.
fn complete(lanes: &mut Lanes, writes: bool, engine: LaneEngine) {
    let mut moved = [0_u32; 8];
    let (mut whole, mut rounds) = (0, 0);
    while whole < 8 {
        rounds += 1;
        for done in collect(lanes, 8 - whole) {
            let lane = done.lane;
            assert!(done.result > 0, "{engine:?}: {done:?}");
            let moved = &mut moved[lane as usize];
            *moved += done.result as u32;
            let left = BLOCK as u32 - *moved;
            let offset = u64::from(lane) * BLOCK as u64 + u64::from(*moved);
            match (left, writes) {
                (0, _) => {}
                (_, true) => lanes.write_rest(lane, 0, offset, left, *moved),
                (_, false) => lanes.read_rest(lane, 0, offset, left, *moved),
            }
        }
        whole = moved.iter().filter(|moved| **moved == BLOCK as u32).count();
    }
    // 4096, 2048, 1024 and twice 512 bytes.
    assert_eq!(rounds, 5, "{engine:?}");
}

#[test]
fn the_rest_of_a_short_request_goes_to_its_own_bytes() {
    for direct in [true, false] {
        for engine in moving_engines() {
            let (_place, mut lanes) = short_lanes(engine, 8, direct);
            for lane in 0..8_u32 {
                for (byte, value) in lanes.buffer_mut(lane, BLOCK).iter_mut().enumerate() {
                    *value = content(u64::from(lane) + 100, byte);
                }
                lanes.write(lane, 0, u64::from(lane) * BLOCK as u64, BLOCK as u32);
            }
            complete(&mut lanes, true, engine);
            for lane in 0..8_u32 {
                lanes.buffer_mut(lane, BLOCK).fill(0);
                lanes.read(lane, 0, u64::from(lane) * BLOCK as u64, BLOCK as u32);
            }
            complete(&mut lanes, false, engine);
            for lane in 0..8_u32 {
                let block = u64::from(lane) + 100;
                assert!(is_block(block, lanes.buffer(lane, BLOCK)), "{engine:?}");
            }
        }
    }
}

#[test]
fn a_rest_beyond_the_lanes_buffer_is_refused() {
    let (_place, mut lanes) = short_lanes(LaneEngine::Psync(SyncCall::default()), 1, false);
    let said = said_by(move || lanes.read_rest(0, 0, 0, BLOCK as u32, 1));
    assert!(said.contains("8193 bytes of a lane of 8192"), "{said}");
}
