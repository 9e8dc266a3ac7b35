//! The memory that the host and its control groups leave to this process: beyond it the kernel kills without a word.

use super::text;
use assay_measure::config::Settings;
use assay_measure::units;
use std::fs;
use std::path::{Path, PathBuf};

/// Version 1 writes a number near 2^63 for no limit.
const NO_LIMIT: u64 = 1 << 62;

/// Memory available below the tightest limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes that can still be taken; the page cache counts as free, as the kernel gives it back.
    pub free_bytes: u64,
    /// The limit, bytes.
    pub limit_bytes: u64,
    /// The file that sets it.
    pub by: PathBuf,
}

/// Why a run does not fit into this room: `parts` is the memory it needs, in bytes by parameter. `None` where it fits.
#[must_use]
pub fn lacking(room: &Room, parts: &[(&'static str, u64)], settings: &Settings) -> Option<String> {
    let needed = sum(parts);
    let (name, most) = *parts.iter().max_by_key(|(_, bytes)| *bytes)?;
    let said = match settings.get(name).text.as_str() {
        "" => name.to_owned(),
        text => format!("{name}={text}"),
    };
    (needed > room.free_bytes).then(|| {
        format!(
            "the run needs {} of memory, {} of it for {said}, but the limit of {} ({}) leaves {}: the kernel would \
             kill the run; reduce its memory or raise the limit",
            units::size(needed),
            units::size(most),
            units::size(room.limit_bytes),
            room.by.display(),
            units::size(room.free_bytes)
        )
    })
}

/// All parts together, bytes.
#[must_use]
pub fn sum(parts: &[(&'static str, u64)]) -> u64 {
    let bytes = parts.iter().map(|(_, bytes)| *bytes);
    bytes.fold(0, u64::saturating_add)
}

/// Memory that this process's control groups and the host leave it, whichever is less; `None` if unknown.
#[must_use]
pub fn room() -> Option<Room> {
    let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = room_in(Path::new("/sys/fs/cgroup"), &membership);
    let rooms = group.into_iter().chain(room_of_host());
    rooms.min_by_key(|room| room.free_bytes)
}

/// What can be taken without swapping.
fn room_of_host() -> Option<Room> {
    let by = PathBuf::from("/proc/meminfo");
    let gauges = text::meminfo(&fs::read_to_string(&by).ok()?);
    let of = |name: &str| gauges.get(name).copied();
    Some(Room { free_bytes: of("available")?, limit_bytes: of("total")?, by })
}

/// Names of the files of one version: the limit, what counts in `memory.stat`.
struct Names {
    limit: &'static str,
    counted: &'static [&'static str],
}

const V2: Names = Names { limit: "memory.max", counted: &["anon", "kernel", "shmem"] };
const V1: Names = Names { limit: "memory.limit_in_bytes", counted: &["total_rss", "total_shmem"] };

/// The same below another root.
fn room_in(root: &Path, membership: &str) -> Option<Room> {
    let v2 = text::cgroup_path(membership, "").map(|path| (path, &V2));
    let v1 = text::cgroup_path(membership, "memory").map(|path| (path, &V1));
    let roots = |names: &Names| {
        if names.limit == V2.limit { vec![root.to_path_buf(), root.join("unified")] } else { vec![root.join("memory")] }
    };
    let groups = [v2, v1].into_iter().flatten().flat_map(|(path, names)| {
        let each = roots(names).into_iter();
        each.flat_map(move |root| super::limits::upward(&root, path)).filter_map(move |dir| room_of(&dir, names))
    });
    groups.min_by_key(|room| room.free_bytes)
}

fn room_of(dir: &Path, names: &Names) -> Option<Room> {
    let by = dir.join(names.limit);
    let limit_bytes: u64 = fs::read_to_string(&by).ok()?.trim().parse().ok()?;
    let stat = fs::read_to_string(dir.join("memory.stat")).ok()?;
    let counted = names.counted.iter().filter_map(|key| text::keyed(&stat, key));
    let used = counted.fold(0, u64::saturating_add);
    (limit_bytes < NO_LIMIT).then(|| Room { free_bytes: limit_bytes.saturating_sub(used), limit_bytes, by })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(root: &Path, path: &str, files: &[(&str, &str)]) {
        let dir = root.join(path);
        fs::create_dir_all(&dir).expect("made");
        for (name, text) in files {
            fs::write(dir.join(name), text).expect("written");
        }
    }

    #[test]
    fn the_group_that_leaves_least_counts_in_either_version() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path();
        assert_eq!(room_in(root, "0::/a/b\n"), None);
        group(root, "a/b", &[("memory.max", "max\n"), ("memory.stat", "anon 5\n")]);
        assert_eq!(room_in(root, "0::/a/b\n"), None);
        let files = [("memory.max", "1000\n"), ("memory.stat", "anon 100\nfile 800\nkernel 50\n")];
        group(root, "a", &files);
        let found = room_in(root, "0::/a/b\n").expect("a limit");
        assert_eq!((found.free_bytes, found.limit_bytes), (850, 1000));
        assert_eq!(found.by, root.join("a/memory.max"));
        let none = [("memory.limit_in_bytes", "9223372036854771712\n"), ("memory.stat", "total_rss 1\n")];
        group(root, "memory", &none);
        let tight = [("memory.limit_in_bytes", "500\n"), ("memory.stat", "rss 9\ntotal_rss 600\n")];
        group(root, "memory/c", &tight);
        let found = room_in(root, "4:memory:/c\n0::/a/b\n").expect("a limit");
        assert_eq!((found.free_bytes, found.limit_bytes), (0, 500));
    }
}
