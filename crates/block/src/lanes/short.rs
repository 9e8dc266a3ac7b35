//! Short completions on purpose, for tests: the kernel is asked for half of a request, so that it completes less than its
//! caller asked for, through the real engine. Kernels do so at the end of a file, at a limit of its size and on a full
//! file system; never where a test could have it in the middle of a file.

use crate::DirectFile;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Files whose requests are cut, and every how many of them.
static CUT: Mutex<Vec<(PathBuf, u32)>> = Mutex::new(Vec::new());

/// From now on lanes that are opened over the file at `path` complete every `every`-th request of 1024 bytes and more short, by
/// half of its bytes; the rest, asked for again, counts as a request. 0 is never.
pub fn shorten(path: &Path, every: u32) {
    let mut cut = CUT.lock().unwrap_or_else(PoisonError::into_inner);
    cut.retain(|(other, _)| other != path);
    cut.push((path.to_owned(), every));
}

/// What is cut of one thread's files.
#[derive(Debug)]
pub(super) struct Short {
    every: Vec<u32>,
    asked: u32,
}

impl Short {
    pub(super) fn of(files: &[Arc<DirectFile>]) -> Self {
        let cut = CUT.lock().unwrap_or_else(PoisonError::into_inner);
        let every = |file: &Arc<DirectFile>| {
            let found = cut.iter().find(|(path, _)| path == file.path());
            found.map_or(0, |(_, every)| *every)
        };
        Self { every: files.iter().map(every).collect(), asked: 0 }
    }

    /// Bytes the kernel is asked for in place of `len`: whole sectors, for direct I/O.
    pub(super) fn asks_for(&mut self, file: u16, len: u32) -> u32 {
        let every = self.every.get(usize::from(file)).copied().unwrap_or(0);
        if every == 0 || len < 1024 {
            return len;
        }
        self.asked += 1;
        match self.asked.is_multiple_of(every) {
            true => (len / 2) & !511,
            false => len,
        }
    }
}
