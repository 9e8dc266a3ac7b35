//! What copies memory in a static program on x86-64. musl's own starts `rep movsq` for every copy, which costs more than a short copy
//! takes, and most are short: the JSON of a long record took 2.3 times as long as with glibc (`cargo xtask bench musl`).
//!
//! Every copy up to 128 bytes loads all before it stores any, so it does not matter how the two places overlap.
use std::arch::asm;
use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_storeu_si128};

/// From here on by `rep movsb`, as glibc does for vectors of 16 bytes (`rep_movsb_threshold`).
const STRING_COPY_BYTES: usize = 2048;
const LANE: usize = size_of::<__m128i>();

/// # Safety
/// As of C's function of this name.
#[cfg(target_env = "musl")]
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { copy(to, from, bytes) };
    to
}

/// # Safety
/// As of C's function of this name.
#[cfg(target_env = "musl")]
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { copy(to, from, bytes) };
    to
}

/// Both ends of a copy of at most twice the size of `T`.
///
/// # Safety
/// As [`copy`], and `bytes` is at least the size of `T`.
#[inline(always)]
unsafe fn ends<T: Copy>(to: *mut u8, from: *const u8, bytes: usize) {
    let last = bytes - size_of::<T>();
    // SAFETY: both lie within the two places, as the caller promises.
    unsafe {
        let (head, tail) = (from.cast::<T>().read_unaligned(), from.add(last).cast::<T>().read_unaligned());
        to.cast::<T>().write_unaligned(head);
        to.add(last).cast::<T>().write_unaligned(tail);
    }
}

/// Copies `bytes` bytes; the two places may overlap.
///
/// # Safety
/// `from` may be read and `to` be written for `bytes` bytes.
#[inline(always)]
unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: each size is at least that of what is copied at its ends.
    unsafe {
        match bytes {
            0 => {}
            1 => *to = *from,
            2..=3 => ends::<u16>(to, from, bytes),
            4..=7 => ends::<u32>(to, from, bytes),
            8..=15 => ends::<u64>(to, from, bytes),
            16..=32 => ends::<__m128i>(to, from, bytes),
            33..=64 => ends::<[__m128i; 2]>(to, from, bytes),
            65..=128 => ends::<[__m128i; 4]>(to, from, bytes),
            _ => copy_long(to, from, bytes),
        }
    }
}

/// # Safety
/// As [`copy`], for more than two lanes.
unsafe fn copy_long(to: *mut u8, from: *const u8, bytes: usize) {
    let ahead = to.addr().wrapping_sub(from.addr());
    if bytes >= STRING_COPY_BYTES && ahead >= bytes {
        // SAFETY: reads and writes what the caller named; forwards, and nothing is written before it is read.
        unsafe {
            asm!("rep movsb", inout("rcx") bytes => _, inout("rdi") to => _, inout("rsi") from => _,
                options(nostack, preserves_flags));
        }
        return;
    }
    // SAFETY: all offsets are within `bytes`. The ends are read first and written last, so what lies between is copied in aligned
    // lanes; from the end where a lane written would else be one still to be read. The stores are volatile, or the compiler
    // would take the loop for a call of this very function.
    unsafe {
        let load = |at: usize| _mm_loadu_si128(from.add(at).cast());
        let store = |at: usize, lane: __m128i| to.add(at).cast::<__m128i>().write_volatile(lane);
        let (head, tail) = (load(0), load(bytes - LANE));
        if ahead >= bytes {
            let mut at = LANE - to.addr() % LANE;
            while at < bytes - LANE {
                store(at, load(at));
                at += LANE;
            }
        } else {
            let mut at = bytes - (to.addr() + bytes) % LANE;
            while at > LANE {
                at -= LANE;
                store(at, load(at));
            }
        }
        _mm_storeu_si128(to.cast(), head);
        _mm_storeu_si128(to.add(bytes - LANE).cast(), tail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_overlap_and_alignment_is_copied_as_by_the_standard_library() {
        let shifts = [-5000_isize, -129, -33, -17, -16, -15, -7, -1, 0, 1, 7, 8, 15, 16, 17, 31, 33, 127, 500, 5000];
        let before: Vec<u8> = (0..16_384_u32).map(|n| (n * 7 + n / 251) as u8).collect();
        for bytes in (0..=300).chain([2047, 2048, 2049, 4111]) {
            for shift in shifts {
                for start in 6000..6000 + LANE {
                    let to = start.checked_add_signed(shift).unwrap();
                    let (mut ours, mut theirs) = (before.clone(), before.clone());
                    // SAFETY: both places are within the buffer.
                    unsafe { copy(ours.as_mut_ptr().add(to), ours.as_ptr().add(start), bytes) };
                    theirs.copy_within(start..start + bytes, to);
                    assert!(ours == theirs, "{bytes} bytes from {start} to {to}");
                }
            }
        }
    }
}
