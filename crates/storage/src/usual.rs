//! The measurement of a place when no jobs are given: random reads of database blocks, one at a time and then many.

use super::spec::{Amount, Invocation, IoEngine, Job, Mode, Options};
use assay_block::{LaneEngine, Lanes, LanesOptions, UringMode};
use assay_run::engine::EngineError;
use std::path::Path;
use std::time::Duration;

/// Bytes of the scratch file.
const FILE_BYTES: u64 = 128 << 20;
/// The block of most databases.
const BLOCK_BYTES: u32 = 8192;
/// I/Os kept in flight by the first job and by the second.
const DEPTHS: [u32; 2] = [1, 32];

/// What carries the usual jobs: io_uring, and where this host refuses it libaio, then psync; and why it is not the first.
#[must_use]
pub fn engine() -> (IoEngine, Option<String>) {
    let refused = |engine| {
        let options = LanesOptions { lanes: 1, lane_bytes: BLOCK_BYTES as usize, files: Vec::new(), engine };
        Lanes::open(options).err().map(|error| error.to_string())
    };
    let Some(why) = refused(LaneEngine::Uring(UringMode::default())) else {
        return (IoEngine::IoUring, None);
    };
    let Some(why_too) = refused(LaneEngine::Aio) else {
        let told = format!("assay uses libaio because {why}");
        return (IoEngine::Libaio, Some(told));
    };
    let told = format!("assay uses psync, one I/O at a time, because {why}; {why_too}");
    (IoEngine::Psync, Some(told))
}

/// The usual jobs in the directory `place`, for about `time` together.
pub(super) fn jobs(place: &Path, time: Duration) -> Result<Invocation, EngineError> {
    if !place.is_dir() {
        return Err(EngineError::Usage(format!(
            "{} is not a directory: name a directory for a scratch file, or give jobs",
            place.display()
        )));
    }
    let file = place.join(format!(".assay-io-{}", std::process::id()));
    let (engine, description) = engine();
    let each_ns = time.as_nanos() as u64 / DEPTHS.len() as u64;
    let job = |(wave, depth): (usize, &u32)| {
        let mut options =
            Options { clones: 1, engine, description: description.clone(), stonewall: wave > 0, ..Options::default() };
        options.files.names = vec![file.clone()];
        options.files.size = Some(Amount::Bytes(FILE_BYTES));
        options.files.direct = true;
        options.files.unlink = true;
        options.pattern.mode = Mode::RandRead;
        // Each job takes blocks of its own: a cache in the array would make the later one look faster.
        options.pattern.seed = Some(u64::from(*depth));
        options.pattern.blocks.iter_mut().for_each(|blocks| {
            (blocks.min, blocks.max) = (BLOCK_BYTES, BLOCK_BYTES);
        });
        options.pace.depth = *depth;
        options.pace.time_based = true;
        options.pace.runtime_ns = Some(each_ns.max(1));
        Job {
            name: format!("randread-depth-{depth}"),
            origin: "the usual jobs".to_owned(),
            wave: wave as u32,
            group: wave as u32,
            options,
            ..Job::default()
        }
    };
    Ok(Invocation { jobs: DEPTHS.iter().enumerate().map(job).collect(), ..Invocation::default() })
}
