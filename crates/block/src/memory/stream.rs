//! Loops that move memory, after McCalpin's STREAM, with normal or non-temporal stores.

#[cfg(any(test, miri, not(target_arch = "x86_64")))]
use std::hint::black_box;

/// Numbers in a cache line: slices start and end at a multiple of it.
pub const LANES: usize = 8;

/// A loop that writes `a`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// a = b
    Copy,
    /// a = s b
    Scale,
    /// a = b + c
    Add,
    /// a = b + s c
    Triad,
    /// a = s
    Fill,
}

/// How a loop stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stores {
    /// Through the caches: a line is read before it is written.
    Normal,
    /// Around the caches (non-temporal); normal stores if this machine has none.
    Streaming,
}

/// Whether this machine has non-temporal stores.
#[must_use]
pub const fn has_streaming_stores() -> bool {
    cfg!(all(target_arch = "x86_64", not(miri)))
}

/// The instruction set that the loops use here.
#[must_use]
pub fn path() -> &'static str {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    return if is_x86_feature_detected!("avx") { "AVX" } else { "SSE2" };
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    return "portable";
}

/// Runs a kernel over slices of equal length, a multiple of [`LANES`]; `a` starts at a cache line.
///
/// # Panics
/// If the lengths differ or are not such a multiple.
pub fn write(kernel: Kernel, stores: Stores, a: &mut [f64], b: &[f64], c: &[f64], s: f64) {
    assert!(a.len() == b.len() && a.len() == c.len() && a.len().is_multiple_of(LANES), "three slices of whole lines");
    assert_eq!(a.as_ptr().align_offset(64), 0, "begins at a cache line");
    match (kernel, stores) {
        (Kernel::Copy, Stores::Normal) => run::<0, false>(a, b, c, s),
        (Kernel::Copy, Stores::Streaming) => run::<0, true>(a, b, c, s),
        (Kernel::Scale, Stores::Normal) => run::<1, false>(a, b, c, s),
        (Kernel::Scale, Stores::Streaming) => run::<1, true>(a, b, c, s),
        (Kernel::Add, Stores::Normal) => run::<2, false>(a, b, c, s),
        (Kernel::Add, Stores::Streaming) => run::<2, true>(a, b, c, s),
        (Kernel::Triad, Stores::Normal) => run::<3, false>(a, b, c, s),
        (Kernel::Triad, Stores::Streaming) => run::<3, true>(a, b, c, s),
        (Kernel::Fill, Stores::Normal) => run::<4, false>(a, b, c, s),
        (Kernel::Fill, Stores::Streaming) => run::<4, true>(a, b, c, s),
    }
}

/// Sums a slice, in an order that depends only on its length.
#[must_use]
pub fn sum(of: &[f64]) -> f64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if is_x86_feature_detected!("avx") {
        // SAFETY: the processor has AVX.
        return unsafe { sum_avx(of) };
    }
    sums(of)
}

/// Uses enough partial sums for a core to overlap its loads; the compiler turns them into vectors.
#[inline(always)]
fn sums(of: &[f64]) -> f64 {
    let mut parts = [0.0; 4 * LANES];
    let lines = of.chunks_exact(4 * LANES);
    let rest: f64 = lines.remainder().iter().sum();
    for line in lines {
        for (part, value) in parts.iter_mut().zip(line) {
            *part += value;
        }
    }
    parts.iter().sum::<f64>() + rest
}

/// # Safety
/// The CPU has AVX.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx")]
fn sum_avx(of: &[f64]) -> f64 {
    sums(of)
}

#[inline]
fn run<const KERNEL: u8, const STREAMING: bool>(a: &mut [f64], b: &[f64], c: &[f64], s: f64) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if is_x86_feature_detected!("avx") {
        // SAFETY: the processor has AVX; lengths and the alignment of `a` were checked by the only caller.
        unsafe { avx::run::<KERNEL, STREAMING>(a, b, c, s) }
    } else {
        // SAFETY: every x86-64 has SSE2; the rest as above.
        unsafe { sse2::run::<KERNEL, STREAMING>(a, b, c, s) }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    portable::<KERNEL>(a, b, c, s);
}

/// One number at a time: the expected result of the loops.
#[cfg(any(test, miri, not(target_arch = "x86_64")))]
#[inline(always)]
fn one<const KERNEL: u8>(b: f64, c: f64, s: f64) -> f64 {
    match KERNEL {
        0 => b,
        1 => s * b,
        2 => b + c,
        3 => b + s * c,
        _ => s,
    }
}

/// The same line by line. Hides from the compiler that a loop copies: it would call `memcpy`, which chooses its own
/// stores.
#[cfg(any(test, miri, not(target_arch = "x86_64")))]
fn portable<const KERNEL: u8>(a: &mut [f64], b: &[f64], c: &[f64], s: f64) {
    let from = b.chunks_exact(LANES).zip(c.chunks_exact(LANES));
    for (a, (b, c)) in a.chunks_exact_mut(LANES).zip(from) {
        for at in 0..LANES {
            a[at] = one::<KERNEL>(b[at], c[at], s);
        }
        black_box(a);
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
macro_rules! vectors {
    ($module:ident, $feature:literal, $lanes:literal, $load:ident, $store:ident, $stream:ident, $set:ident, $add:ident, $mul:ident) => {
        mod $module {
            use std::arch::asm;
            use std::arch::x86_64::*;

            /// # Safety
            /// The processor has the feature; the slices have one length, a multiple of a cache line, and `a` starts at
            /// one.
            #[target_feature(enable = $feature)]
            pub(super) unsafe fn run<const KERNEL: u8, const STREAMING: bool>(
                a: &mut [f64],
                b: &[f64],
                c: &[f64],
                s: f64,
            ) {
                let (to, b, c) = (a.as_mut_ptr(), b.as_ptr(), c.as_ptr());
                let s = $set(s);
                for at in (0..a.len()).step_by($lanes) {
                    // SAFETY: `at` and the lanes after it lie below the common length, a multiple of the lanes; loads
                    // need no alignment, and stores stay aligned as `a` is.
                    unsafe {
                        let value = match KERNEL {
                            0 => $load(b.add(at)),
                            1 => $mul(s, $load(b.add(at))),
                            2 => $add($load(b.add(at)), $load(c.add(at))),
                            3 => $add($load(b.add(at)), $mul(s, $load(c.add(at)))),
                            _ => s,
                        };
                        if STREAMING {
                            $stream(to.add(at), value)
                        } else {
                            $store(to.add(at), value)
                        }
                        // Hides from the compiler that a loop copies: it would call `memcpy`, which chooses its own
                        // stores.
                        asm!("", options(nostack, preserves_flags));
                    }
                }
                if STREAMING {
                    _mm_sfence();
                }
            }
        }
    };
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
vectors!(
    avx,
    "avx",
    4,
    _mm256_loadu_pd,
    _mm256_store_pd,
    _mm256_stream_pd,
    _mm256_set1_pd,
    _mm256_add_pd,
    _mm256_mul_pd
);
#[cfg(all(target_arch = "x86_64", not(miri)))]
vectors!(sse2, "sse2", 2, _mm_loadu_pd, _mm_store_pd, _mm_stream_pd, _mm_set1_pd, _mm_add_pd, _mm_mul_pd);

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(64))]
    struct Lines([f64; 72]);

    fn numbers(from: f64) -> Lines {
        Lines(std::array::from_fn(|at| from + at as f64))
    }

    #[test]
    fn memory_04_every_kernel_writes_what_its_formula_says_by_either_kind_of_store() {
        let (b, c, s) = (numbers(1.0), numbers(0.5), 3.0);
        let wanted = |kernel, at: usize| match kernel {
            Kernel::Copy => b.0[at],
            Kernel::Scale => s * b.0[at],
            Kernel::Add => b.0[at] + c.0[at],
            Kernel::Triad => b.0[at] + s * c.0[at],
            Kernel::Fill => s,
        };
        use Kernel::{Add, Copy, Fill, Scale, Triad};
        for kernel in [Copy, Scale, Add, Triad, Fill] {
            for stores in [Stores::Normal, Stores::Streaming] {
                let mut a = numbers(-1.0);
                // Leaves out the last line, which must stay unchanged.
                write(kernel, stores, &mut a.0[..64], &b.0[..64], &c.0[..64], s);
                for at in 0..64 {
                    assert_eq!(a.0[at], wanted(kernel, at), "{kernel:?} {stores:?} {at}");
                }
                assert_eq!(a.0[64..], numbers(-1.0).0[64..], "{kernel:?} {stores:?}");
            }
        }
        assert_eq!(sum(&b.0), (1..=72).sum::<u64>() as f64);
        assert_eq!(sum(&b.0[..8]), 36.0);
    }

    #[test]
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fn the_narrow_path_agrees_with_the_wide_one() {
        let (b, c) = (numbers(1.0), numbers(0.5));
        let mut a = numbers(-1.0);
        // SAFETY: every x86-64 has SSE2; the lines are aligned and 64 numbers are eight of them.
        unsafe { sse2::run::<3, true>(&mut a.0[..64], &b.0[..64], &c.0[..64], 2.0) };
        let mut other = numbers(-1.0);
        portable::<3>(&mut other.0[..64], &b.0[..64], &c.0[..64], 2.0);
        assert_eq!(a.0, other.0);
        assert_eq!(sums(&a.0), sum(&a.0));
    }

    #[test]
    #[should_panic(expected = "whole lines")]
    fn slices_of_other_lengths_are_refused() {
        let (b, mut a) = (numbers(1.0), numbers(0.0));
        write(Kernel::Copy, Stores::Normal, &mut a.0[..8], &b.0[..16], &b.0[..8], 0.0);
    }
}
