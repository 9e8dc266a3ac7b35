//! Options of single engines.

use super::Category::Engine;
use super::Use::{Accepted, Refused, Works};
use super::{OptionDef, options};
use crate::language::value::Kind::{Bool, Flag, Int, Signed, Text};

pub(super) static OPTIONS: &[OptionDef] = options! {Engine;
    "hipri", Flag, "", Works(|d, v| { d.options.ring.polled = v.on()?; Ok(()) }), "Poll for completions (io_uring, pvsync2; needs direct=1 and poll queues)";
    "fixedbufs", Flag, "", Works(|d, v| { d.options.ring.fixed_buffers = Some(v.on()?); Ok(()) }), "Registered buffers; assay uses them where possible, 0 forbids them";
    "registerfiles", Flag, "", Works(|d, v| { d.options.ring.registered_files = Some(v.on()?); Ok(()) }), "Registered files; assay uses them where possible, 0 forbids them";
    "sqthread_poll", Flag, "", Works(|d, v| { d.options.ring.sq_thread = v.on()?; Ok(()) }), "A kernel thread takes submissions";
    "sqthread_poll_cpu", Int(0, 65_535), "", Works(|d, v| { d.options.ring.sq_thread_cpu = Some(v.int32()?); d.options.ring.sq_thread = true; Ok(()) }), "The CPU of that thread";
    "nonvectored", Signed(-1, 1), "-1", Works(|d, v| { d.options.ring.nonvectored = match v.signed()? { -1 => None, n => Some(n == 1) }; Ok(()) }), "Plain requests, not those with vectors";
    "force_async", Int(0, 0xffff_ffff), "", Works(|d, v| { d.options.ring.force_async = v.int32()?; Ok(()) }), "Every N-th I/O goes directly to the kernel's workers";
    "nowait", Bool, "", Works(|d, v| { d.options.ring.nowait = v.on()?; Ok(()) }), "I/Os that would block fail instead (RWF_NOWAIT)";
    "userspace_reap", Flag, "", Accepted("assay always takes completions from the shared ring where it exists"), "libaio: take completions without a system call";
    "hipri_percentage", Int(100, 100), "100", Accepted("assay polls all I/Os or none"), "pvsync2: how many I/Os to poll";
    "uncached", Int(0, 0), "", Refused("direct=1 keeps out of the page cache"), "Buffered I/O that leaves nothing in the page cache";
    "cmdprio_percentage", Int(0, 100), "", Refused("assay does not set I/O priorities"), "How many I/Os have a high priority";
    "cmdprio_class", Int(1, 3), "", Refused("assay does not set I/O priorities"), "Their class";
    "cmdprio", Int(0, 7), "", Refused("assay does not set I/O priorities"), "Their priority";
    "cmdprio_bssplit", Text, "", Refused("assay does not set I/O priorities"), "Priorities by block size";
    "cmd_type", Text, "nvme", Refused("assay has no passthrough; use ioengine=io_uring"), "Kind of passthrough command";
};
