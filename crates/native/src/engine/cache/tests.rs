//! The cache without a disk: what a search for a frame costs.

use super::*;
use assay_block::PoolOptions;
use std::collections::VecDeque;

fn cache(frames: usize) -> Cache {
    let pool = Pool::new(&PoolOptions { frames, frame_bytes: 4096, huge_pages: false }).unwrap();
    Cache::new(pool, false, 10, false, CrashRules::default()).unwrap()
}

#[test]
fn a_search_does_not_walk_over_the_frames_of_the_reads_under_way() {
    const IN_FLIGHT: usize = 1000;
    let cache = cache(2048);
    let c = Counters::default();
    let who = SessionRef { thread: 0, tag: 0, wait: 0 };
    let mut reads = VecDeque::new();
    let mut before = (0, 0);
    for page in 0..20_000 {
        if page == 10_000 {
            // The frames given out first stood side by side; by now they are spread.
            before = (c.get(C::FreeRequested), c.get(C::FreeInspected));
        }
        let Claim::Read(frame) = cache.claim(Page(page), who, &c) else {
            panic!("page {page} is new, and half of the frames are free to be used");
        };
        reads.push_back((Page(page), frame));
        if reads.len() == IN_FLIGHT {
            let (page, frame) = reads.pop_front().unwrap();
            let (pin, _) = cache.finish_read(page, frame);
            cache.pool.unpin(pin);
        }
    }
    let requested = c.get(C::FreeRequested) - before.0;
    let inspected = c.get(C::FreeInspected) - before.1;
    assert_eq!(requested, 10_000);
    assert!(inspected < 4 * requested, "{inspected} frames looked at for {requested}, with one in two being read");
}
