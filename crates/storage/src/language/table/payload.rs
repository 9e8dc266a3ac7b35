//! Options for what to write and how to verify it.

use super::super::setters;
use super::Category::Payload;
use super::Use::{Accepted, Works};
use super::{OptionDef, options};
use crate::language::value::Kind::{Bool, Choice, Flag, Int, Text};

pub(super) static OPTIONS: &[OptionDef] = options! {Payload;
    "zero_buffers", Flag, "", Works(|d, v| { d.options.payload.zero = v.on()?; Ok(()) }), "Write zeros";
    "refill_buffers", Flag, "", Works(|d, v| { d.options.payload.refill = v.on()?; Ok(()) }), "New random content for every write";
    "scramble_buffers", Bool, "1", Works(|d, v| { d.options.payload.scramble = v.on()?; Ok(()) }), "Change a little in \
        every write, so that no two writes have the same content";
    "buffer_compress_percentage", Int(0, 100), "", Works(|d, v| { d.options.payload.compress_percent = v.int32()?; Ok(()) }), "How much the content can be compressed";
    "buffer_compress_chunk", Int(0, 1 << 31), "512", Works(|d, v| { d.options.payload.compress_chunk = v.int32()?; Ok(()) }), "Number of bytes over which the content compresses by that percentage";
    "dedupe_percentage", Int(0, 100), "", Works(|d, v| { d.options.payload.dedupe_percent = v.int32()?; Ok(()) }), "Percent of blocks that repeat another";
    "dedupe_mode", Choice(&["repeat"]), "repeat", Accepted("repeat is the only mode"), "Which block is repeated";
    "dedupe_global", Bool, "0", Accepted("a clone repeats only its own blocks"), "Repeat blocks of other jobs too";
    "buffer_pattern", Text, "", Works(|d, v| { d.options.payload.pattern = Some(setters::pattern(v.text()?)?); Ok(()) }), "Content: \"text\", 0xhex, decimal numbers, 'file', one after another";
    "verify", Text, "0", Works(setters::verify), "Check what is read back: crc32c or pattern";
    "do_verify", Bool, "1", Works(|d, v| { d.options.payload.do_verify = v.on()?; Ok(()) }), "Read back after the write phase";
    "verify_fatal", Bool, "0", Works(|d, v| { d.options.payload.verify_fatal = v.on()?; Ok(()) }), "Stop at the first wrong block";
    "verify_only", Flag, "", Works(|d, v| { d.options.payload.verify_only = v.on()?; Ok(()) }), "Only read back what an earlier run wrote";
    "verify_backlog", Int(0, u64::MAX), "", Works(|d, v| { d.options.payload.verify_backlog = v.int()?; Ok(()) }), "Read back after this many blocks";
    "verify_interval", Int(80, 1 << 31), "", Works(|d, v| { d.options.payload.verify_interval = v.int32()?; Ok(()) }), "Write a header every this many bytes";
    "verify_pattern", Text, "", Works(setters::verify_pattern), "Content to write and expect: as buffer_pattern, and %o for the offset";
    "verify_async", Int(0, 1024), "0", Accepted("verification runs in the clone"), "Threads that verify";
    "verify_dump", Bool, "0", Accepted("the first differing bytes are in the error"), "Write good and bad blocks to files";
    "verify_state_save", Bool, "1", Accepted("assay writes no state file; verify_only works without one"), "Save the progress of the verification";
};
