//! Aligned buffers of equal size that belong to one ring.

use crate::BlockError;
use crate::mapping::{ALIGNMENT, Mapping};
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

/// The area the buffers are cut from. Buffers keep it alive, so it may outlive its ring.
pub(super) struct Slab {
    memory: Mapping,
    buffers: usize,
    buffer_bytes: usize,
    free: RefCell<Vec<u32>>,
}

impl Slab {
    pub(super) fn new(
        buffers: usize,
        buffer_bytes: usize,
        map: impl FnOnce(usize, &'static str) -> Result<Mapping, BlockError>,
    ) -> Result<Rc<Self>, BlockError> {
        let bytes = buffers.checked_mul(buffer_bytes).filter(|&bytes| isize::try_from(bytes).is_ok());
        let (Some(bytes), Ok(count)) = (bytes, u32::try_from(buffers)) else {
            return Err(BlockError::Invalid {
                what: format!("{buffers} buffers of {buffer_bytes} bytes are more than can be addressed"),
            });
        };
        if buffers > 0 && (buffer_bytes == 0 || !buffer_bytes.is_multiple_of(ALIGNMENT) || buffer_bytes > 1 << 30) {
            return Err(BlockError::Invalid {
                what: format!("a buffer is a multiple of {ALIGNMENT} bytes up to 1 GiB, not {buffer_bytes}"),
            });
        }
        let memory = map(bytes, "the buffers of a ring")?;
        Ok(Rc::new(Self { memory, buffers, buffer_bytes, free: RefCell::new((0..count).rev().collect()) }))
    }

    #[inline]
    pub(super) fn take(slab: &Rc<Self>) -> Option<Buffer> {
        let index = slab.free.borrow_mut().pop()?;
        let address = slab.memory.base().wrapping_add(index as usize * slab.buffer_bytes);
        Some(Buffer { slab: Rc::clone(slab), index, address })
    }

    pub(super) fn base(&self) -> *mut u8 {
        self.memory.base()
    }

    pub(super) fn buffers(&self) -> usize {
        self.buffers
    }

    pub(super) fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }
}

/// An aligned buffer of one ring, usable as a byte slice. Dropping it returns it to the ring.
pub struct Buffer {
    slab: Rc<Slab>,
    index: u32,
    address: *mut u8,
}

impl Buffer {
    #[inline]
    pub(super) fn is_of(&self, slab: &Rc<Slab>) -> bool {
        Rc::ptr_eq(&self.slab, slab)
    }

    #[inline]
    pub(super) fn index(&self) -> u32 {
        self.index
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Buffer").field("index", &self.index).field("len", &self.len()).finish_non_exhaustive()
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the range lies inside the slab's memory, which `self.slab` keeps alive, and is initialised (zeroed at
        // first). The index is not in the free list, so this is the only buffer over the range. While the kernel uses
        // it, the buffer sits in a slot of the ring where nobody can access it.
        unsafe { std::slice::from_raw_parts(self.address, self.slab.buffer_bytes) }
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.address, self.slab.buffer_bytes) }
    }
}

impl Drop for Buffer {
    #[inline]
    fn drop(&mut self) {
        self.slab.free.borrow_mut().push(self.index);
    }
}
