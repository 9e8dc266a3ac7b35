//! Final checks of a job: how its options work together.

use super::draft::Draft;
use super::table;
use crate::readings::{DIRECTIONS, Way};
use crate::spec::{BlockSizes, Distribution, IoEngine, JobOptions, Verify};

/// The options of a finished job with notes, or its errors.
pub(super) struct Finished {
    pub(super) options: JobOptions,
    pub(super) notes: Vec<String>,
    pub(super) errors: Vec<String>,
}

/// Resolves settings that depend on several options.
pub(super) fn finish(draft: Draft, readonly: bool) -> Finished {
    let mut finished = Finished { notes: draft.notes.clone(), options: draft.options.clone(), errors: Vec::new() };
    blocks(&draft, &mut finished);
    depths(&mut finished.options);
    rates(&mut finished);
    times(&mut finished);
    latency_goal(&mut finished);
    trims(&mut finished);
    payload(&mut finished);
    engine(&draft, &mut finished);
    let options = &mut finished.options;
    // Blocks of different sizes cannot each be visited exactly once.
    if !matches!(options.pattern.distribution, Distribution::Random) {
        options.pattern.no_map = true;
    }
    options.files.open_at_once = options.files.open_at_once.filter(|open| *open < options.files.count);
    if readonly && options.pattern.mode.destroys() {
        finished.errors.push("trim and write operations are not allowed with the --readonly parameter".into());
    }
    finished
}

/// `bssplit` takes precedence over `bsrange`, and that over `bs`, regardless of order.
fn blocks(draft: &Draft, finished: &mut Finished) {
    for direction in 0..DIRECTIONS {
        let small = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        let mut sizes = BlockSizes::default();
        if let Some(bytes) = draft.blocks[direction] {
            sizes.min = small(bytes);
            sizes.max = sizes.min;
        }
        if let Some((low, high)) = draft.ranges[direction] {
            sizes.min = small(low);
            sizes.max = small(high);
        }
        if !draft.splits[direction].is_empty() {
            match shared_out(&draft.splits[direction]) {
                Ok(split) => {
                    sizes.min = split.iter().map(|part| part.0).min().unwrap_or(sizes.min);
                    sizes.max = split.iter().map(|part| part.0).max().unwrap_or(sizes.max);
                    // A single size is not a split.
                    sizes.split = if split.len() > 1 { split } else { Vec::new() };
                }
                Err(what) => {
                    if !finished.errors.contains(&what) {
                        finished.errors.push(what);
                    }
                }
            }
        }
        finished.options.pattern.blocks[direction] = sizes;
    }
}

/// Entries without a percentage share the rest.
fn shared_out(split: &[(u64, Option<u32>)]) -> Result<Vec<(u32, u32)>, String> {
    let given: u32 = split.iter().filter_map(|part| part.1).sum();
    let open = split.iter().filter(|part| part.1.is_none()).count();
    if given > 100 || (open == 0 && given != 100) {
        return Err(format!("bssplit adds up to {given} percent, not 100"));
    }
    let left = 100 - given;
    let open = u32::try_from(open).unwrap_or(u32::MAX);
    let mut odd = if open > 0 { left % open } else { 0 };
    Ok(split
        .iter()
        .map(|(bytes, percent)| {
            let percent = percent.unwrap_or_else(|| {
                let one = u32::from(odd > 0);
                odd -= one;
                left / open + one
            });
            (u32::try_from(*bytes).unwrap_or(u32::MAX), percent)
        })
        .collect())
}

/// Limits batches to the depth.
fn depths(options: &mut JobOptions) {
    let pace = &mut options.pace;
    let depth = pace.depth;
    pace.batch_submit = pace.batch_submit.map(|batch| if batch == 0 { depth } else { batch.min(depth) });
    pace.batch_complete_min = pace.batch_complete_min.map(|least| least.min(depth));
    pace.batch_complete_max =
        pace.batch_complete_max.map(|most| most.clamp(pace.batch_complete_min.unwrap_or(1).max(1), depth.max(1)));
    pace.depth_low = pace.depth_low.filter(|low| *low > 0 && *low < depth);
}

fn rates(finished: &mut Finished) {
    let pace = &mut finished.options.pace;
    for rate in [&mut pace.rate, &mut pace.rate_min, &mut pace.rate_iops, &mut pace.rate_iops_min] {
        for one in rate.iter_mut() {
            *one = one.filter(|rate| *rate > 0);
        }
    }
    let any = |rates: &[Option<u64>]| rates.iter().any(Option::is_some);
    if any(&pace.rate) && any(&pace.rate_iops) {
        finished.errors.push("rate and rate_iops are mutually exclusive; leave one out".into());
    }
    for (way, direction) in Way::ALL.iter().zip(0..DIRECTIONS) {
        for (name, rate, least) in [
            ("rate", pace.rate[direction], pace.rate_min[direction]),
            ("rate_iops", pace.rate_iops[direction], pace.rate_iops_min[direction]),
        ] {
            if let (Some(rate), Some(least)) = (rate, least)
                && least > rate
            {
                finished.errors.push(format!("{name}_min={least} is above {name}={rate} ({})", way.name()));
            }
        }
    }
}

fn times(finished: &mut Finished) {
    let pace = &mut finished.options.pace;
    if pace.time_based && pace.runtime_ns.is_none() {
        pace.time_based = false;
        finished.notes.push("time_based has no effect without runtime".into());
    }
    pace.think_spin_ns = pace.think_spin_ns.min(pace.think_ns);
}

/// Rejects options that do not combine with trims.
fn trims(finished: &mut Finished) {
    let options = &finished.options;
    let pattern = &options.pattern;
    let mode = pattern.mode;
    if !mode.goes(Way::Trim) {
        return;
    }
    let [_, written, trimmed] = &pattern.blocks;
    let wrong = [
        (
            mode.trims_and_writes() && written != trimmed,
            "writes the blocks that it trimmed, so both need the same block size: give bs one value",
        ),
        (pattern.blocks_by_sequence, "cannot be combined with bs_is_seq_rand"),
        (
            options.payload.verify != Verify::None,
            "cannot be combined with verify: the device decides what a trimmed block holds",
        ),
        (options.ring.polled, "cannot be combined with hipri: trims are not polled"),
    ];
    let wrong = wrong.into_iter().filter(|(found, _)| *found);
    let named = wrong.map(|(_, why)| format!("rw={} {why}", mode.name()));
    finished.errors.extend(named);
}

/// Checks what a search for a depth requires.
fn latency_goal(finished: &mut Finished) {
    let options = &finished.options;
    let goal = &options.pace.latency;
    if goal.target_ns.is_none() {
        return;
    }
    let wrong = [
        (
            goal.window_ns == 0,
            "latency_target needs latency_window, the time for which each depth is tried, such as latency_window=5s",
        ),
        (options.measure.no_lat, "latency_target needs latencies: leave out disable_lat and gtod_reduce"),
        (
            options.payload.verify != Verify::None,
            "latency_target repeats its I/Os until it finds a depth: verify in a separate job",
        ),
    ];
    let wrong = wrong.into_iter().filter(|(found, _)| *found);
    finished.errors.extend(wrong.map(|(_, why)| why.to_owned()));
}

/// Makes new content for every write if no two may be equal.
fn payload(finished: &mut Finished) {
    let options = &mut finished.options;
    let payload = &mut options.payload;
    if payload.verify != Verify::None || payload.compress_percent > 0 || payload.dedupe_percent > 0 {
        payload.refill = true;
    }
    if payload.verify == Verify::None {
        return;
    }
    let written = &options.pattern.blocks[1];
    if written.min != written.max && payload.verify_interval == 0 {
        payload.verify_interval = written.min;
    }
    if payload.verify_interval > written.min {
        payload.verify_interval = written.min;
    }
    if options.pattern.mode.goes(Way::Write) && options.pace.time_based && payload.do_verify {
        finished.notes.push(
            "a time_based job ends in its write phase, so nothing is read back: verify with a second job and \
             verify_only"
                .into(),
        );
    }
}

/// Notes engine options that the job's engine does not have.
fn engine(draft: &Draft, finished: &mut Finished) {
    let engine = finished.options.engine;
    let named = match draft.options.engine_name.as_str() {
        "" => "psync",
        name => name,
    };
    for (name, own) in &draft.engine_options {
        let known = table::find(name).map_or(&[][..], table::engines_of);
        if known.contains(&engine) {
            continue;
        }
        if *own || !draft.own_engine {
            finished.errors.push(format!("{name} is not an option of ioengine={named}"));
        } else {
            // The options for all jobs belonged to another engine, which this job does not use.
            finished.notes.push(format!("{name} has no effect with ioengine={named}"));
        }
    }
    let calls = matches!(engine, IoEngine::Psync | IoEngine::Pvsync2);
    if calls && finished.options.pace.depth > 1 {
        finished.notes.push(format!(
            "iodepth={} has no effect with a synchronous engine, whose depth is 1: use \
             ioengine=io_uring or libaio, or more clones",
            finished.options.pace.depth
        ));
    }
}
