//! Options for figures and logs.

use super::super::setters;
use super::Category::Measure;
use super::Use::{Accepted, Works};
use super::{OptionDef, options};
use crate::language::value::Kind::{Bool, Choice, Flag, Floats, Int, Millis, OptionalText};

pub(super) static OPTIONS: &[OptionDef] = options! {Measure;
    "group_reporting", Flag, "", Works(|d, v| { d.options.measure.group_reporting = v.on()?; Ok(()) }), "One report for all jobs of a group";
    "percentile_list", Floats(0.0, 100.0), "1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99", Works(setters::percentiles), "Which percentiles to show, at most 20";
    "clat_percentiles", Bool, "1", Works(|d, v| { d.options.measure.clat_percentiles = v.on()?; Ok(()) }), "Percentiles of the time from submission to completion";
    "lat_percentiles", Bool, "0", Works(|d, v| { d.options.measure.lat_percentiles = v.on()?; Ok(()) }), "Percentiles of the whole time";
    "slat_percentiles", Bool, "0", Works(|d, v| { d.options.measure.slat_percentiles = v.on()?; Ok(()) }), "Percentiles of the time to submit";
    "significant_figures", Int(1, 10), "4", Works(|d, v| { d.options.measure.significant_figures = v.int32()?; Ok(()) }), "Digits of figures in text";
    "gtod_reduce", Bool, "0", Works(setters::fewer_clock_reads), "No latencies and no bandwidth samples: fewest clock reads";
    "disable_lat", Bool, "0", Works(|d, v| { d.options.measure.no_lat = v.on()?; Ok(()) }), "No figures of the whole time";
    "disable_clat", Bool, "0", Works(|d, v| { d.options.measure.no_clat = v.on()?; Ok(()) }), "No figures from submission to completion";
    "disable_slat", Bool, "0", Works(|d, v| { d.options.measure.no_slat = v.on()?; Ok(()) }), "No figures of submission";
    "disable_bw_measurement" = "disable_bw", Bool, "0", Works(|d, v| { d.options.measure.no_bw = v.on()?; Ok(()) }), "No samples of bandwidth";
    "bwavgtime", Millis, "500", Works(|d, v| { d.options.measure.bw_average_ns = setters::window(v.ns()?)?; Ok(()) }), "Milliseconds of a sample of bandwidth";
    "iopsavgtime", Millis, "500", Works(|d, v| { d.options.measure.iops_average_ns = setters::window(v.ns()?)?; Ok(()) }), "Milliseconds of a sample of I/Os per second";
    "write_lat_log", OptionalText, "", Works(|d, v| { d.options.measure.lat_log = Some(v.text.unwrap_or("").to_owned()); Ok(()) }), "Log latencies to files of this prefix";
    "write_bw_log", OptionalText, "", Works(|d, v| { d.options.measure.bw_log = Some(v.text.unwrap_or("").to_owned()); Ok(()) }), "Log bandwidth to a file of this prefix";
    "write_iops_log", OptionalText, "", Works(|d, v| { d.options.measure.iops_log = Some(v.text.unwrap_or("").to_owned()); Ok(()) }), "Log I/Os per second to a file of this prefix";
    "write_hist_log", OptionalText, "", Works(|d, v| { d.options.measure.hist_log = Some(v.text.unwrap_or("").to_owned()); Ok(()) }), "Log histograms to a file of this prefix";
    "log_hist_msec", Millis, "0", Works(|d, v| { d.options.measure.hist_log_ns = v.ns()?; Ok(()) }), "Milliseconds between histograms";
    "log_avg_msec", Millis, "0", Works(|d, v| { d.options.measure.log_average_ns = v.ns()?; Ok(()) }), "Milliseconds of one row of a log; 0 logs every I/O";
    "log_window_value", Choice(&["avg", "max", "both"]), "avg", Works(setters::log_window), "What a log row contains for its window";
    "log_max_value", Bool, "0", Works(setters::log_maximum), "Rows are the largest value, not the mean";
    "log_offset", Bool, "0", Works(|d, v| { d.options.measure.log_offset = v.on()?; Ok(()) }), "Offsets in logs";
    "per_job_logs", Bool, "1", Works(|d, v| { d.options.measure.per_job_logs = v.on()?; Ok(()) }), "A log for each clone";
    "log_entries", Int(1024, 1_048_576), "1024", Accepted("log memory grows as needed"), "Initial entries of a log";
    "unified_rw_reporting", Choice(&["none", "0"]), "none", Accepted("directions are reported \
        separately"), "Report directions together";
    "stats", Bool, "1", Accepted("assay always keeps figures"), "Whether to keep figures";
    "disk_util", Bool, "1", Accepted("assay always shows device statistics"), "Show device statistics";
    "unit_base", Choice(&["0", "8", "1"]), "0", Accepted("figures are in bytes"), "Bits or bytes";
    "clocksource", Choice(&["gettimeofday", "clock_gettime", "cpu"]), "", Accepted("time is CLOCK_MONOTONIC"), "Which clock";
    "gtod_cpu", Int(0, u64::MAX), "", Accepted("no thread is needed to read the clock"), "A CPU that only reads the clock";
    "error_dump", Bool, "0", Accepted("assay always reports errors"), "Report more about errors";
    "block_error_percentiles", Bool, "0", Accepted("assay keeps no account of single blocks"), "Percentiles of blocks that failed to trim";
};
