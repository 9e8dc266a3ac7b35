//! The files in which the kernel tells: `/proc` and `/sys`, or a copy of those of another box.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// A file of the kernel's is not longer.
const MOST_BYTES: u64 = 1 << 20;

/// The files of a box, and where on it the database is to be.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    root: PathBuf,
    place: PathBuf,
}

/// A mounted file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mounted {
    pub(super) number: String,
    pub(super) file_system: String,
    pub(super) source: String,
    /// Of the mount and of the file system, separated by commas.
    pub(super) options: String,
}

impl Tree {
    /// The files of a box below `root`, for a database below `place`, an absolute path.
    pub(crate) fn at(root: &Path, place: &Path) -> Self {
        Self { root: root.to_path_buf(), place: place.to_path_buf() }
    }

    /// A file without the blanks around it; `None` where there is none, or nothing in it.
    pub(super) fn read(&self, path: &str) -> Option<String> {
        let mut text = String::new();
        let file = File::open(self.root.join(path)).ok()?;
        file.take(MOST_BYTES).read_to_string(&mut text).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    pub(super) fn number(&self, path: &str) -> Option<u64> {
        self.read(path)?.parse().ok()
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    pub(super) fn list(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// A value of `/proc/meminfo`, bytes.
    pub(super) fn memory(&self, key: &str) -> Option<u64> {
        let text = self.read("proc/meminfo")?;
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        let mut words = line.split_whitespace();
        let value: u64 = words.next()?.parse().ok()?;
        value.checked_mul(if words.next() == Some("kB") { 1024 } else { 1 })
    }

    /// A value of a control group's file that is in force: the tightest of this process's group and those above it.
    pub(super) fn group_files(&self, controller: &str, name: &str) -> Vec<String> {
        let groups = self.read("proc/self/cgroup").unwrap_or_default();
        let path = |wanted: &str| {
            groups.lines().find_map(|line| {
                let mut parts = line.splitn(3, ':');
                let (_, of, path) = (parts.next()?, parts.next()?, parts.next()?);
                of.split(',').any(|of| of == wanted).then(|| path.trim_matches('/').to_owned())
            })
        };
        let (top, below) = match path(controller) {
            Some(below) => (format!("sys/fs/cgroup/{controller}"), below),
            None => ("sys/fs/cgroup".to_owned(), path("").unwrap_or_default()),
        };
        let mut found = Vec::new();
        let mut dir = top;
        found.extend(self.read(&format!("{dir}/{name}")));
        for part in below.split('/').filter(|part| !part.is_empty()) {
            dir = format!("{dir}/{part}");
            found.extend(self.read(&format!("{dir}/{name}")));
        }
        found
    }

    /// What the place lies on.
    pub(super) fn mounted(&self) -> Option<Mounted> {
        let text = self.read("proc/self/mountinfo")?;
        let mounts = text.lines().filter_map(|line| {
            let (front, back) = line.split_once(" - ")?;
            let front: Vec<&str> = front.split(' ').collect();
            let back: Vec<&str> = back.split(' ').collect();
            let (&[_, _, number, _, point, options, ..], &[file_system, source, ..]) = (&*front, &*back) else {
                return None;
            };
            let more = back.get(2).into_iter().flat_map(|more| more.split(','));
            let mut all: Vec<&str> = Vec::new();
            for option in options.split(',').chain(more) {
                if !all.contains(&option) {
                    all.push(option);
                }
            }
            let of = |text: &str| text.to_owned();
            let mounted = Mounted {
                number: of(number),
                file_system: of(file_system),
                source: of(source),
                options: all.join(","),
            };
            Some((point.replace("\\040", " "), mounted))
        });
        let under = mounts.filter(|(point, _)| self.place.starts_with(point));
        // Of several on one point the last hides the others.
        under.max_by_key(|(point, _)| point.len()).map(|(_, mounted)| mounted)
    }

    /// The whole device under the place: `nvme0n1` for a partition of it.
    pub(super) fn disk(&self) -> Option<String> {
        let source = self.mounted()?.source;
        let name = source.strip_prefix("/dev/")?;
        let has = |disk: &&String| *disk == name || self.has(&format!("sys/block/{disk}/{name}"));
        self.list("sys/block").iter().find(has).cloned()
    }
}
