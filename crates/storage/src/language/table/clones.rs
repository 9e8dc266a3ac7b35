//! Options for jobs, clones and where they run.

use super::super::setters;
use super::Category::Clones;
use super::Use::{Accepted, Works};
use super::{OptionDef, options};
use crate::language::value::Kind::{Bool, Choice, Flag, Int, Signed, Text};

pub(super) static OPTIONS: &[OptionDef] = options! {Clones;
    "name", Text, "", Works(|_, v| v.text().map(drop)), "Begins a job with this name; `global` continues the options for all jobs";
    "description", Text, "", Works(|d, v| { d.options.description = Some(v.text()?.to_owned()); Ok(()) }), "A line of text shown in the report";
    "numjobs", Int(1, 65_535), "1", Works(|d, v| { d.options.clones = v.int32()?; Ok(()) }), "Clones of the job, which all work at the same time";
    "stonewall" = "wait_for_previous", Flag, "", Works(|d, v| { d.options.stonewall = v.on()?; Ok(()) }), "Begin when all jobs before it have ended";
    "new_group", Flag, "", Works(|d, v| { d.options.new_group = v.on()?; Ok(()) }), "Begin a new report group with this job";
    "thread", Flag, "", Works(|d, v| { d.options.placement.thread = v.on()?; Ok(()) }), "Clones are threads; in assay they always are";
    "nice", Signed(-20, 19), "0", Works(|d, v| { d.options.placement.nice = Some(setters::small(v.signed()?)?); Ok(()) }), "Scheduling priority of the clones";
    "cpumask", Int(0, u64::MAX), "", Works(setters::cpu_mask), "CPUs allowed, one bit each";
    "cpus_allowed", Text, "", Works(setters::cpu_list), "CPUs allowed, as 0,2-5";
    "cpus_allowed_policy", Choice(&["shared", "split"]), "shared", Works(|d, v| { d.options.placement.split = v.choice()?.0 == "split"; Ok(()) }), "All clones on all of these CPUs, or one CPU each";
    "ioengine", Text, "psync", Works(setters::engine), "How I/O reaches the kernel: psync, pvsync2, libaio, io_uring, null, nop";
    "kb_base", Choice(&["1024", "1000"]), "1024", Works(|d, v| { d.decimal = v.choice()?.0 == "1000"; Ok(()) }), "Meaning of k: 1024, or 1000; kib is the other one";
    "mem" = "iomem", Text, "malloc", Accepted("buffers are always page-aligned private memory, registered where that helps"), "Where buffers come from";
    "iomem_align" = "mem_align", Int(0, u64::MAX), "4096", Accepted("buffers are always aligned to pages"), "Alignment of buffers";
    "hugepage-size", Int(0, u64::MAX), "2097152", Accepted("assay uses huge pages as the kernel provides \
        them"), "Size of a huge page";
    "lockmem", Int(0, u64::MAX), "0", Accepted("assay locks no memory beyond the registered buffers"), "Memory to lock down";
    "unique_filename", Bool, "1", Accepted("assay has no client/server mode"), "Put the client's address into file names";
};
