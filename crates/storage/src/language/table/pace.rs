//! Options for when to issue I/Os and when to stop.

use super::super::setters;
use super::Category::Pace;
use super::Use::{Accepted, Works};
use super::{OptionDef, options};
use crate::language::value::Kind::{Bool, Choice, Flag, Floats, Int, Ints, Micros, Millis, Seconds, Text};

const U32: u64 = u32::MAX as u64;

pub(super) static OPTIONS: &[OptionDef] = options! {Pace;
    "iodepth", Int(1, 65_536), "1", Works(|d, v| { d.options.pace.depth = v.int32()?; Ok(()) }), "I/Os each clone keeps in flight";
    "iodepth_batch" = "iodepth_batch_submit", Int(0, U32), "1", Works(|d, v| { d.options.pace.batch_submit = Some(v.int32()?); Ok(()) }), "I/Os submitted in one go; 0 is iodepth";
    "iodepth_batch_complete_min" = "iodepth_batch_complete", Int(0, U32), "1", Works(|d, v| { d.options.pace.batch_complete_min = Some(v.int32()?); Ok(()) }), "Completions to wait for; 0 polls";
    "iodepth_batch_complete_max", Int(0, U32), "", Works(|d, v| { d.options.pace.batch_complete_max = Some(v.int32()?); Ok(()) }), "Most completions to take";
    "iodepth_low", Int(0, U32), "", Works(|d, v| { d.options.pace.depth_low = Some(v.int32()?); Ok(()) }), "Drain to this depth before submitting more";
    "io_submit_mode", Choice(&["inline"]), "inline", Accepted("inline is the only mode; a rate counts from the due time without offloading"), "Who submits";
    "runtime" = "timeout", Seconds, "0", Works(|d, v| { d.options.pace.runtime_ns = Some(v.ns()?).filter(|ns| *ns > 0); Ok(()) }), "Stop after this time";
    "time_based", Flag, "", Works(|d, v| { d.options.pace.time_based = v.on()?; Ok(()) }), "Continue until runtime, whatever the amount of work";
    "ramp_time", Seconds, "0", Works(|d, v| { d.options.pace.ramp_ns = v.ns()?; Ok(()) }), "Work this long before measuring begins";
    "wait_for", Text, "", Works(|d, v| { d.options.pace.wait_for = Some(v.text()?.to_owned()); Ok(()) }), "Begin when the job of this name, defined before, has ended";
    "startdelay", Text, "0", Works(setters::start_delay), "Begin this much later, or at random within a range";
    "thinktime", Micros, "0", Works(|d, v| { d.options.pace.think_ns = v.ns()?; Ok(()) }), "Pause between I/Os";
    "thinktime_spin", Micros, "0", Works(|d, v| { d.options.pace.think_spin_ns = v.ns()?; Ok(()) }), "How much of the pause to spin";
    "thinktime_blocks", Int(0, U32), "1", Works(|d, v| { d.options.pace.think_blocks = v.int32()?.max(1); Ok(()) }), "I/Os between pauses";
    "thinktime_blocks_type", Choice(&["complete"]), "complete", Accepted("blocks are counted when they complete"), "Which blocks count";
    "rate", Ints(0, u64::MAX), "", Works(|d, v| { setters::merge(&mut d.options.pace.rate, v.ints()?); Ok(()) }), "Limit in bytes per second";
    "rate_min" = "ratemin", Ints(0, u64::MAX), "", Works(|d, v| { setters::merge(&mut d.options.pace.rate_min, v.ints()?); Ok(()) }), "Minimum in bytes per second; below it the job fails";
    "rate_iops", Ints(0, U32), "", Works(|d, v| { setters::merge(&mut d.options.pace.rate_iops, v.ints()?); Ok(()) }), "Limit in I/Os per second";
    "rate_iops_min", Ints(0, U32), "", Works(|d, v| { setters::merge(&mut d.options.pace.rate_iops_min, v.ints()?); Ok(()) }), "Minimum in I/Os per second; below it the job fails";
    "rate_cycle" = "ratecycle", Millis, "1000", Works(|d, v| { d.options.pace.rate_cycle_ns = v.ns()?; Ok(()) }), "Milliseconds over which a minimum is judged";
    "rate_process", Choice(&["linear", "poisson"]), "linear", Works(|d, v| { d.options.pace.rate_poisson = v.choice()?.0 == "poisson"; Ok(()) }), "Even gaps, or random ones";
    "rate_ignore_thinktime", Bool, "0", Works(|d, v| { d.options.pace.rate_ignores_think = v.on()?; Ok(()) }), "Pauses do not count as falling behind the rate";
    "fsync", Int(0, U32), "0", Works(|d, v| { d.options.pace.fsync_every = v.int32()?; Ok(()) }), "fsync after this many writes";
    "fdatasync", Int(0, U32), "0", Works(|d, v| { d.options.pace.fdatasync_every = v.int32()?; Ok(()) }), "fdatasync after this many writes";
    "continue_on_error", Choice(&["none", "read", "write", "io", "verify", "all", "0", "1"]), "none", Works(setters::pass_errors), "Errors to count and continue after";
    "exitall", Flag, "", Works(|d, v| { d.options.pace.exit_all = v.on()?; Ok(()) }), "End all other jobs when this job ends";
    "exitall_on_error", Flag, "", Works(|d, v| { d.options.pace.exit_all_on_error = v.on()?; Ok(()) }), "End all other jobs when this job fails";
    "exit_what", Choice(&["group", "stonewall", "all"]), "group", Accepted("exitall ends the jobs that run now"), "What exitall ends";
    "max_latency", Micros, "0", Works(|d, v| { d.options.pace.max_latency_ns = Some(v.ns()?).filter(|ns| *ns > 0); Ok(()) }), "The job fails when an I/O takes longer";
    "latency_target", Micros, "", Works(|d, v| { d.options.pace.latency.target_ns = Some(v.ns()?).filter(|ns| *ns > 0); Ok(()) }), "Find the highest depth, up to iodepth, that meets this latency, and measure it";
    "latency_window", Micros, "", Works(|d, v| { d.options.pace.latency.window_ns = v.ns()?; Ok(()) }), "How long each depth is tried";
    "latency_percentile", Floats(0.0, 100.0), "100", Works(setters::latency_percentile), "Percent of the I/Os that \
        must meet the latency";
    "latency_run", Bool, "0", Works(|d, v| { d.options.pace.latency.adapts = v.on()?; Ok(()) }), "Keep adapting the \
        depth, and measure all of it";
    "steadystate" = "ss", Text, "", Works(setters::steady), "Stop when iops or bw is steady: iops:2%, bw_slope:0.3%";
    "steadystate_duration" = "ss_dur", Seconds, "0", Works(|d, v| { d.options.pace.steady_duration_ns = v.ns()?; Ok(()) }), "How long the rate must be steady";
    "steadystate_ramp_time" = "ss_ramp", Seconds, "0", Works(|d, v| { d.options.pace.steady_ramp_ns = v.ns()?; Ok(()) }), "How long to wait before the check begins";
};
