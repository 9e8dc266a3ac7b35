//! Kernels of the core itself: the clock, issue width, branches, atomics, the way into the kernel.

use super::Work;
use crate::crew::chain;
use assay_measure::prng::SplitMix64;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

/// Operations of one call of the chain, each of one cycle.
pub(super) const CHAIN: u64 = 1 << 17;

struct AddDep;

pub(super) fn add_dep() -> Box<dyn Work> {
    Box::new(AddDep)
}

impl Work for AddDep {
    fn call(&self, _: usize, _: &mut [u8]) -> u64 {
        chain(black_box(CHAIN), black_box(0x1234_5678_9ABC_DEF1), black_box(0x0F1E_2D3C_4B5A_6978))
    }
}

const ILP_STEPS: u64 = 1 << 14;
/// Rotation and addition of 8 chains a step.
pub(super) const ILP_OPS: u64 = ILP_STEPS * 8 * 2;

struct AluIlp;

pub(super) fn alu_ilp() -> Box<dyn Work> {
    Box::new(AluIlp)
}

impl Work for AluIlp {
    /// Each chain rotates by another width, so that no vector unit takes several of them at once.
    fn call(&self, _: usize, _: &mut [u8]) -> u64 {
        let add = black_box(0x9E37_79B9_7F4A_7C15_u64);
        let mut x: [u64; 8] = black_box([1, 2, 3, 4, 5, 6, 7, 8]);
        for _ in 0..ILP_STEPS {
            x[0] = x[0].rotate_left(7).wrapping_add(add);
            x[1] = x[1].rotate_left(11).wrapping_add(add);
            x[2] = x[2].rotate_left(13).wrapping_add(add);
            x[3] = x[3].rotate_left(17).wrapping_add(add);
            x[4] = x[4].rotate_left(19).wrapping_add(add);
            x[5] = x[5].rotate_left(23).wrapping_add(add);
            x[6] = x[6].rotate_left(29).wrapping_add(add);
            x[7] = x[7].rotate_left(31).wrapping_add(add);
        }
        x.iter().fold(0, |sum, x| sum ^ x)
    }
}

/// Decisions of one call.
pub(super) const DECISIONS: u64 = 1 << 16;
/// More than any predictor remembers.
const DATA: usize = 1 << 20;

struct Branchy {
    data: Vec<u8>,
}

fn random() -> Vec<u8> {
    let mut data = vec![0; DATA];
    SplitMix64(0xB4A9).fill(&mut data);
    data
}

pub(super) fn branchy() -> Box<dyn Work> {
    Box::new(Branchy { data: random() })
}

pub(super) fn branchy_sorted() -> Box<dyn Work> {
    let mut data = random();
    data.chunks_mut(DECISIONS as usize).for_each(<[u8]>::sort_unstable);
    Box::new(Branchy { data })
}

impl Work for Branchy {
    fn chunks(&self) -> usize {
        DATA / DECISIONS as usize
    }

    fn call(&self, chunk: usize, _: &mut [u8]) -> u64 {
        let size = DECISIONS as usize;
        let data = &self.data[chunk * size..][..size];
        decide(data, black_box(data), black_box(data), black_box(128))
    }
}

/// Both ways read behind a check of their own, so that the compiler must jump and cannot compute both.
#[inline(never)]
fn decide(data: &[u8], low: &[u8], high: &[u8], limit: u8) -> u64 {
    let (mut lows, mut highs) = (0_u64, 0_u64);
    for (at, value) in data.iter().enumerate() {
        if *value < limit {
            lows = lows.wrapping_add(u64::from(low[at]));
        } else {
            highs = highs.rotate_left(1) ^ u64::from(high[at]);
        }
    }
    lows ^ highs
}

/// Additions of one call.
pub(super) const ATOMICS: u64 = 1 << 12;

struct Own;
/// On cache lines that nothing else uses.
#[repr(align(256))]
struct Shared(AtomicU64);

pub(super) fn atomic_own() -> Box<dyn Work> {
    Box::new(Own)
}

pub(super) fn atomic_shared() -> Box<dyn Work> {
    Box::new(Shared(AtomicU64::new(0)))
}

fn add(counter: &AtomicU64) {
    for _ in 0..ATOMICS {
        counter.fetch_add(1, Ordering::AcqRel);
    }
}

impl Work for Own {
    fn call(&self, _: usize, _: &mut [u8]) -> u64 {
        let own = Shared(AtomicU64::new(0));
        add(black_box(&own.0));
        own.0.load(Ordering::Acquire)
    }
}

impl Work for Shared {
    /// Others add meanwhile: what must be right is that it grew by what was added here at least.
    fn call(&self, _: usize, _: &mut [u8]) -> u64 {
        let before = self.0.load(Ordering::Acquire);
        add(&self.0);
        ATOMICS.min(self.0.load(Ordering::Acquire).wrapping_sub(before))
    }
}

/// System calls of one call: each is made twice, since only its own answer can be compared with it.
pub(super) const SYSCALLS: u64 = 512;

struct Syscall;

pub(super) fn syscall() -> Box<dyn Work> {
    Box::new(Syscall)
}

impl Work for Syscall {
    fn call(&self, _: usize, _: &mut [u8]) -> u64 {
        let parent = || black_box(rustix::process::getppid());
        (0..SYSCALLS / 2).filter(|_| parent() == parent()).count() as u64
    }
}
