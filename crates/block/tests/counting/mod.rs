//! An allocator that counts what each thread asks it for: what reading a file costs, whatever the machine does.
//!
//! Test programs that use it compile this file by its path: it lies with the other code that no compiler can check.
#![expect(unsafe_code, reason = "nobody else can be an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// To be named as the program's allocator.
pub(crate) struct Counting;

/// What a thread has asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Requests, those for more room included.
    pub(crate) requests: i64,
    /// Bytes of all of them together: what was copied is among them.
    pub(crate) bytes: i64,
    /// The most bytes it had at once.
    pub(crate) peak: i64,
    held: i64,
}

thread_local! {
    static COUNTS: Cell<Counts> = const { Cell::new(Counts { requests: 0, bytes: 0, peak: 0, held: 0 }) };
}

/// What some work costs, with what it returns.
pub(crate) fn cost_of<T>(work: impl FnOnce() -> T) -> (Counts, T) {
    COUNTS.set(Counts::default());
    let done = work();
    (COUNTS.get(), done)
}

fn count(by: i64) {
    // A thread that ends has no counters any more.
    let _ = COUNTS.try_with(|counts| {
        let mut now = counts.get();
        now.held += by;
        now.peak = now.peak.max(now.held);
        now.requests += i64::from(by > 0);
        now.bytes += by.max(0);
        counts.set(now);
    });
}

// SAFETY: each request goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: what our caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: what our caller promised.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: what our caller promised; it has it from us, and we from there.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}
