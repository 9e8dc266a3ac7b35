//! What is read: a block device, a file, or the files below a directory. Opened for reading only.

use super::layout::{BLOCK_BYTES, Extent, LEAST_BYTES, Layout};
use crate::scratch::failed;
use assay_block::{DirectFile, OpenMode, device_facts};
use assay_measure::units::size;
use assay_run::engine::EngineError;
use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Files that are opened at once, the largest ones; each is a descriptor.
const MOST_FILES: usize = 256;
/// Looking for files ends after this.
const LOOKING: Duration = Duration::from_secs(20);
/// Pages of direct I/O.
const PAGE_BYTES: u64 = 4096;

/// What is read.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) path: PathBuf,
    pub(super) kind: &'static str,
    pub(super) files: Vec<Arc<DirectFile>>,
    pub(super) layout: Layout,
    pub(super) hole_bytes: u64,
    /// Files that were not opened, and their bytes.
    pub(super) left_out: (u64, u64),
}

impl Object {
    pub(super) fn find(place: &Path) -> Result<Self, EngineError> {
        let cannot = |error| EngineError::Unusable(format!("cannot examine {}: {error}", place.display()));
        let about = fs::metadata(place).map_err(cannot)?;
        if about.is_dir() {
            return Self::below(place, &about);
        }
        let kind = match about.file_type() {
            kind if kind.is_block_device() => "a block device",
            kind if kind.is_file() => "a file",
            _ => {
                let what = "is neither a file, a directory nor a block device";
                return Err(EngineError::Unusable(format!("{} {what}", place.display())));
            }
        };
        Self::opened(place, kind, &[place.to_path_buf()], (0, 0))?.large_enough()
    }

    /// The files below a directory; the device below it where they are few.
    fn below(place: &Path, about: &Metadata) -> Result<Self, EngineError> {
        let mut found = Vec::new();
        let mut whole = true;
        collect(place, about.dev(), Instant::now(), &mut found, &mut whole);
        // The largest first, and in the order of their names where they are equal.
        found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        let rest = found.split_off(found.len().min(MOST_FILES));
        let left_out = (rest.len() as u64 + u64::from(!whole), rest.iter().map(|(bytes, _)| bytes).sum());
        let mut paths: Vec<PathBuf> = found.into_iter().map(|(_, path)| path).collect();
        paths.sort();
        let files = Self::opened(place, "the files below it", &paths, left_out)?;
        if files.layout.bytes() >= LEAST_BYTES {
            return Ok(files);
        }
        let few = format!("{} has {} of data in files", place.display(), size(files.layout.bytes()));
        let name = device_facts(place).kernel_name.map_err(|why| {
            EngineError::Unusable(format!("{few}, too little to judge, and the device below it is not known: {why}"))
        })?;
        let device = PathBuf::from(format!("/dev/{}", name.replace('!', "/")));
        let device = Self::opened(&device, "the block device below it", std::slice::from_ref(&device), (0, 0));
        device.map_err(|error| {
            EngineError::Unusable(format!("{few}, too little to judge, and the device below it: {error}"))
        })
    }

    fn opened(
        path: &Path,
        kind: &'static str,
        paths: &[PathBuf],
        mut left_out: (u64, u64),
    ) -> Result<Self, EngineError> {
        let mut refused = None;
        let (mut files, mut extents, mut hole_bytes) = (Vec::new(), Vec::new(), 0);
        for path in paths {
            let opened = DirectFile::open(path, OpenMode { read: true, write: false, direct: true });
            let opened = opened.and_then(|file| Ok((file.len()?, file.data_ranges()?, file)));
            match opened {
                Ok((len, ranges, file)) => {
                    hole_bytes += len - ranges.iter().map(|range| range.end - range.start).sum::<u64>();
                    let file_number = files.len() as u16;
                    extents.extend(ranges.into_iter().map(|range| {
                        let at = range.start.next_multiple_of(PAGE_BYTES);
                        Extent { file: file_number, at, blocks: range.end.saturating_sub(at) / BLOCK_BYTES }
                    }));
                    files.push(Arc::new(file));
                }
                Err(error) => {
                    left_out = (left_out.0 + 1, left_out.1 + fs::metadata(path).map_or(0, |about| about.len()));
                    refused = Some(error);
                }
            }
        }
        if let Some(error) = refused.filter(|_| files.is_empty()) {
            return Err(EngineError::Unusable(failed(error).to_string()));
        }
        extents.retain(|extent| extent.blocks > 0);
        Ok(Self { path: path.to_path_buf(), kind, files, layout: Layout::of(extents), hole_bytes, left_out })
    }

    fn large_enough(self) -> Result<Self, EngineError> {
        let (data, least) = (self.layout.bytes(), size(LEAST_BYTES));
        if data >= LEAST_BYTES {
            return Ok(self);
        }
        let holes =
            if self.hole_bytes > 0 { format!(" and {} of holes", size(self.hole_bytes)) } else { String::new() };
        Err(EngineError::Unusable(format!(
            "{}: it has {} of data in blocks of 8 KiB{holes}; {least} are needed to judge",
            self.path.display(),
            size(data)
        )))
    }
}

/// Files below a directory on the same file system, with their sizes; links are not followed. What cannot be read is passed over.
fn collect(place: &Path, device: u64, begun: Instant, found: &mut Vec<(u64, PathBuf)>, whole: &mut bool) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        if begun.elapsed() > LOOKING {
            *whole = false;
            return;
        }
        let Ok(about) = entry.metadata() else { continue };
        if about.dev() != device {
            continue;
        }
        if about.is_dir() {
            collect(&entry.path(), device, begun, found, whole);
        } else if about.is_file() && about.len() >= BLOCK_BYTES {
            found.push((about.len(), entry.path()));
        }
    }
}
