//! Finds the part of its files that a clone works on, and the length the files must have for it.

use super::super::spec::{Amount, Region, StorageJob};
use super::bytes_text;
use crate::readings::Way;
use assay_measure::prng::{Purpose, Stream};
use assay_run::engine::EngineError;
use std::path::{Path, PathBuf};

/// A file before the run.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) path: PathBuf,
    /// Its length; `None` if it does not exist.
    pub(super) bytes: Option<u64>,
    /// Whether it cannot grow.
    pub(super) device: bool,
}

/// The part of one clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) regions: Vec<Region>,
    /// Required length of each file, by its index among the clone's files.
    pub(super) ends: Vec<u64>,
    /// Bytes to move, if less than the regions.
    pub(super) amount_bytes: Option<u64>,
    /// Notes about it.
    pub(super) notes: Vec<String>,
}

/// Finds the part of clone `clone`.
///
/// # Errors
/// No size where one is needed, an offset beyond the end, less than one block.
pub(super) fn of_clone(job: &StorageJob, clone: u32, files: &[Known]) -> Result<Share, EngineError> {
    let mut share = Share::default();
    let block = smallest_block(job);
    let mut largest = 0;
    for (index, file) in files.iter().enumerate() {
        // The planner limits a clone to 65535 files.
        let index = index as u16;
        let start = start_of(job, clone, file, block);
        let bytes = bytes_of(job, index, files.len() as u64, file, start, block)?;
        share.ends.push(start.saturating_add(bytes));
        largest = largest.max(bytes);
        if bytes < block {
            share.notes.push(format!(
                "{}: a part of {} is smaller than one block of {} and is left out",
                file.path.display(),
                bytes_text(bytes),
                bytes_text(block)
            ));
            continue;
        }
        share.regions.push(Region { file: index, start, bytes });
    }
    if share.regions.is_empty() {
        return Err(usage(
            job,
            &format!(
                "size too small: the region has {largest} bytes, but a block has at least {block}; use a larger \
                 size= or a smaller bs="
            ),
        ));
    }
    let all: u64 = share.regions.iter().map(|region| region.bytes).sum();
    if let (Some(_), Some(Amount::Bytes(size))) = (job.options.files.file_size, job.options.files.size)
        && size > 0
        && size < all
    {
        share.amount_bytes = Some(size);
    }
    Ok(share)
}

/// Size in bytes of the smallest block of any direction of the job.
pub(super) fn smallest_block(job: &StorageJob) -> u64 {
    let pattern = &job.options.pattern;
    Way::ALL
        .iter()
        .filter(|way| pattern.mode.goes(**way))
        .map(|way| u64::from(pattern.blocks[way.index()].min))
        .min()
        .unwrap_or(1)
        .max(1)
}

/// First byte: `offset` plus `offset_increment` times the clone's number. A percentage refers to the current size of
/// the file, rounded up to a block.
fn start_of(job: &StorageJob, clone: u32, file: &Known, block: u64) -> u64 {
    let options = &job.options.files;
    let bytes = |amount: Amount| match amount {
        Amount::Bytes(bytes) => bytes,
        Amount::Percent(percent) => percent_of(file.bytes.unwrap_or(0), percent).next_multiple_of(block),
    };
    bytes(options.offset).saturating_add(bytes(options.offset_increment).saturating_mul(u64::from(clone)))
}

fn percent_of(bytes: u64, percent: u32) -> u64 {
    (u128::from(bytes) * u128::from(percent) / 100) as u64
}

/// Size of the region in one file.
fn bytes_of(
    job: &StorageJob,
    index: u16,
    files: u64,
    file: &Known,
    start: u64,
    block: u64,
) -> Result<u64, EngineError> {
    let path = file.path.display();
    let options = &job.options.files;
    let behind_end = |real: u64| {
        usage(
            job,
            &format!("you need to specify valid offset=: {path} has {real} bytes, the region would begin at {start}"),
        )
    };
    // A device, or a file whose own size decides.
    let rest = |real: u64| match real.checked_sub(start) {
        None | Some(0) => Err(behind_end(real)),
        Some(rest) => Ok(rest),
    };
    let wanted = match (options.file_size, options.size) {
        (Some(range), _) => {
            let size = file_size(range, index, block);
            return size.checked_sub(start).filter(|rest| *rest > 0).ok_or_else(|| behind_end(size));
        }
        (None, Some(Amount::Bytes(bytes))) if bytes > 0 => bytes / files.max(1),
        (None, Some(Amount::Percent(percent))) if percent > 100 => {
            return Err(usage(job, &format!("size={percent}%: the largest possible part of a file is 100%")));
        }
        (None, size) => match (file.bytes, size) {
            (None | Some(0), _) => return Err(no_size(job, file)),
            (Some(real), Some(Amount::Percent(percent))) if percent > 0 => {
                return Ok(percent_of(real, percent).min(rest(real)?));
            }
            (Some(real), _) => return rest(real),
        },
    };
    match file.bytes {
        Some(real) if file.device => Ok(wanted.min(rest(real)?)),
        _ => Ok(wanted),
    }
}

fn no_size(job: &StorageJob, file: &Known) -> EngineError {
    let why = if file.bytes.is_none() { "does not exist" } else { "is empty" };
    usage(
        job,
        &format!("you need to specify size=: {} {why}, so that its size in bytes is not known", file.path.display()),
    )
}

/// `filesize`: the size, or one drawn from the range in whole blocks, the same in every run.
fn file_size((least, most): (u64, u64), index: u16, block: u64) -> u64 {
    if most <= least {
        return least;
    }
    let mut stream = Stream::new(0, u64::from(index) + 1, Purpose::Sample);
    let size = least + stream.below(most - least + 1);
    (size - size % block).max(least)
}

fn usage(job: &StorageJob, what: &str) -> EngineError {
    EngineError::Usage(format!("job {}: {what}", job.name))
}

/// Whether the files of a job are ever opened.
pub(super) fn needs_files(job: &StorageJob) -> bool {
    use super::super::spec::IoEngine;
    !matches!(job.options.engine, IoEngine::Null | IoEngine::Nop)
}

/// A file that is never opened.
pub(super) fn imagined(path: &Path) -> Known {
    Known { path: path.to_path_buf(), bytes: None, device: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn job(change: impl FnOnce(&mut StorageJob)) -> StorageJob {
        let mut job = StorageJob { name: "j".to_owned(), ..StorageJob::default() };
        change(&mut job);
        job
    }

    fn file(bytes: impl Into<Option<u64>>) -> Known {
        Known { path: "f".into(), bytes: bytes.into(), device: false }
    }

    const M: u64 = 1 << 20;

    fn one(job: &StorageJob, clone: u32, file: Known) -> (u64, u64) {
        let share = of_clone(job, clone, &[file]).unwrap();
        (share.regions[0].start, share.regions[0].bytes)
    }

    /// Offsets as fio 3.33 logs them for the same options over a file of 1 MiB.
    #[test]
    fn offsets_and_percentages_are_fios() {
        let percent = |offset, increment, size, bs| {
            job(|job| {
                job.options.files.offset = Amount::Percent(offset);
                job.options.files.offset_increment = Amount::Percent(increment);
                job.options.files.size = Some(size);
                job.options.pattern.blocks[0].min = bs;
            })
        };
        let sizes = percent(33, 0, Amount::Bytes(8192), 4096);
        assert_eq!(one(&sizes, 0, file(M)), (348_160, 8192));
        let clones = percent(10, 10, Amount::Percent(33), 8192);
        assert_eq!(one(&clones, 0, file(M)), (106_496, 346_030));
        assert_eq!(one(&clones, 1, file(M)), (212_992, 346_030));
        let cut = percent(75, 0, Amount::Percent(50), 4096);
        assert_eq!(one(&cut, 0, file(M)), (768 << 10, 256 << 10));
        // A percentage of a missing file is nothing.
        let new = percent(50, 0, Amount::Bytes(M), 4096);
        assert_eq!(one(&new, 0, file(None)), (0, M));
    }

    #[test]
    fn a_size_is_divided_among_the_files_and_whole_files_are_the_default() {
        let sized = job(|job| job.options.files.size = Some(Amount::Bytes(M)));
        let three = [file(None), file(None), file(None)];
        let share = of_clone(&sized, 0, &three).unwrap();
        let each: Vec<u64> = share.regions.iter().map(|region| region.bytes).collect();
        assert_eq!(each, [349_525; 3]);
        assert_eq!(share.ends, [349_525; 3]);
        let whole = of_clone(&job(|_| {}), 0, &[file(M), file(2 * M)]).unwrap();
        assert_eq!(whole.ends, [M, 2 * M]);
    }

    #[test]
    fn a_device_does_not_grow_and_a_file_does() {
        let larger = job(|job| {
            job.options.files.size = Some(Amount::Bytes(2 * M));
            job.options.files.offset = Amount::Bytes(M / 2);
        });
        let device = Known { device: true, ..file(M) };
        assert_eq!(one(&larger, 0, device), (M / 2, M / 2));
        let share = of_clone(&larger, 0, &[file(M)]).unwrap();
        assert_eq!(share.ends, [M / 2 + 2 * M]);
    }

    #[test]
    fn what_has_no_size_or_no_block_is_an_error_that_says_so() {
        let error = |job: &StorageJob, file: Known| of_clone(job, 0, &[file]).unwrap_err().to_string();
        assert!(error(&job(|_| {}), file(None)).contains("you need to specify size="));
        assert!(error(&job(|_| {}), file(0)).contains("is empty"));
        let percent = job(|job| job.options.files.size = Some(Amount::Percent(50)));
        assert!(error(&percent, file(None)).contains("you need to specify size="));
        let much = job(|job| job.options.files.size = Some(Amount::Percent(150)));
        assert!(error(&much, file(M)).contains("possible part of a file is 100%"));
        let behind = job(|job| job.options.files.offset = Amount::Bytes(M));
        assert!(error(&behind, file(M)).contains("you need to specify valid offset="));
        let small = job(|job| job.options.files.size = Some(Amount::Bytes(3000)));
        assert!(error(&small, file(None)).contains("size too small"));
    }

    #[test]
    fn filesize_gives_each_file_its_size_and_size_the_amount() {
        let some = job(|job| {
            job.options.files.file_size = Some((100 << 10, 100 << 10));
            job.options.files.size = Some(Amount::Bytes(200 << 10));
        });
        let share = of_clone(&some, 0, &[file(None), file(None), file(None)]).unwrap();
        assert_eq!(share.ends, [100 << 10; 3]);
        assert_eq!(share.amount_bytes, Some(200 << 10));
        let range = job(|job| job.options.files.file_size = Some((100 << 10, M)));
        let share = of_clone(&range, 0, &[file(None), file(None)]).unwrap();
        assert_ne!(share.ends[0], share.ends[1]);
        let in_range = |end: &u64| (100 << 10..=M).contains(end) && end.is_multiple_of(4096);
        assert!(share.ends.iter().all(in_range), "{share:?}");
        assert_eq!(share.amount_bytes, None);
    }

    proptest! {
        #[test]
        fn a_region_never_leaves_a_device(real in 0_u64..1 << 40, offset in 0_u64..1 << 41, size in 0_u64..1 << 41, clone in 0_u32..64, percent in 0_u32..=100) {
            let job = job(|job| {
                job.options.files.offset = Amount::Bytes(offset);
                job.options.files.offset_increment = Amount::Percent(percent);
                job.options.files.size = Some(Amount::Bytes(size));
            });
            let device = Known { device: true, ..file(real) };
            if let Ok(share) = of_clone(&job, clone, &[device]) {
                prop_assert!(share.ends[0] <= real);
                prop_assert!(share.regions[0].bytes >= 4096);
                prop_assert_eq!(share.regions[0].start + share.regions[0].bytes, share.ends[0]);
            }
        }
    }
}
