//! Where the blocks came from: the page cache or a device.
