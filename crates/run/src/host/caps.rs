//! Limits that a cgroup sets on the rates of a device: the figures may be theirs, not the device's.

use super::text;
use assay_measure::snapshot::Fact;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The four limits: the fact's ending, the key of `io.max` (v2), the file of blkio (v1).
const KINDS: [(&str, &str, &str); 4] = [
    ("read_iops", "riops", "blkio.throttle.read_iops_device"),
    ("write_iops", "wiops", "blkio.throttle.write_iops_device"),
    ("read_bytes", "rbps", "blkio.throttle.read_bps_device"),
    ("write_bytes", "wbps", "blkio.throttle.write_bps_device"),
];

/// Limits by device number and kind, each with who set it.
type Limits = BTreeMap<(String, &'static str), (u64, String)>;

/// `io_cap_vda_read_iops` = `5000 by blkio throttle of /load` for every limit on this process.
pub(super) fn facts() -> Vec<Fact> {
    let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut limits = Limits::new();
    let root = Path::new("/sys/fs/cgroup");
    for (hierarchy, controller) in [(root.to_path_buf(), ""), (root.join("unified"), "")] {
        if let Some(path) = text::cgroup_path(&membership, controller) {
            for (dir, group) in upward(&hierarchy, path) {
                let found = fs::read_to_string(dir.join("io.max")).unwrap_or_default();
                io_max(&found, &format!("io.max of {group}"), &mut limits);
            }
        }
    }
    if let Some(path) = text::cgroup_path(&membership, "blkio") {
        for (dir, group) in upward(&root.join("blkio"), path) {
            for (kind, _, file) in KINDS {
                let found = fs::read_to_string(dir.join(file)).unwrap_or_default();
                throttle(&found, kind, &format!("blkio throttle of {group}"), &mut limits);
            }
        }
    }
    limits
        .into_iter()
        .filter_map(|((number, kind), (per_s, by))| {
            Some(Fact { name: format!("io_cap_{}_{kind}", disk_of(&number)?), value: format!("{per_s} by {by}") })
        })
        .collect()
}

/// The group's directory and every one above it: the tightest limit on the way counts.
fn upward(hierarchy: &Path, path: &str) -> Vec<(PathBuf, String)> {
    let inside = Path::new(path.trim_start_matches('/'));
    inside.ancestors().map(|group| (hierarchy.join(group), format!("/{}", group.display()))).collect()
}

fn tighten(limits: &mut Limits, number: &str, kind: &'static str, per_s: u64, by: &str) {
    let known = limits.entry((number.to_owned(), kind)).or_insert_with(|| (per_s, by.to_owned()));
    if per_s < known.0 {
        *known = (per_s, by.to_owned());
    }
}

/// `254:0 rbps=max wbps=1048576 riops=max wiops=120` (cgroup v2).
fn io_max(text: &str, by: &str, limits: &mut Limits) {
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(number) = words.next() else { continue };
        for (key, value) in words.filter_map(|word| word.split_once('=')) {
            let kind = KINDS.iter().find(|(_, known, _)| *known == key);
            if let (Some((kind, _, _)), Ok(per_s)) = (kind, value.parse()) {
                tighten(limits, number, kind, per_s, by);
            }
        }
    }
}

/// `254:0 5000` (cgroup v1); 0 is no limit.
fn throttle(text: &str, kind: &'static str, by: &str, limits: &mut Limits) {
    for line in text.lines() {
        if let Some((number, per_s)) = line.split_once(' ')
            && let Ok(per_s @ 1..) = per_s.trim().parse()
        {
            tighten(limits, number, kind, per_s, by);
        }
    }
}

/// The kernel's name of a device number.
fn disk_of(number: &str) -> Option<String> {
    let dir = fs::canonicalize(Path::new("/sys/dev/block").join(number)).ok()?;
    Some(dir.file_name()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_limits_are_read_and_the_tightest_counts() {
        let mut limits = Limits::new();
        io_max("254:0 rbps=max wbps=1048576 riops=5000 wiops=max\n", "outer", &mut limits);
        throttle("254:0 4000\n8:0 0\n", "read_iops", "inner", &mut limits);
        throttle("254:0 9000\n", "read_iops", "outermost", &mut limits);
        let found: Vec<(&str, u64, &str)> =
            limits.iter().map(|((_, kind), (per_s, by))| (*kind, *per_s, by.as_str())).collect();
        assert_eq!(found, [("read_iops", 4000, "inner"), ("write_bytes", 1_048_576, "outer")]);
    }

    #[test]
    fn a_group_and_all_above_it_are_looked_at() {
        let dirs = upward(Path::new("/sys/fs/cgroup/blkio"), "/a/b");
        let groups: Vec<&str> = dirs.iter().map(|(_, group)| group.as_str()).collect();
        assert_eq!(groups, ["/a/b", "/a", "/"]);
        assert_eq!(dirs[2].0, Path::new("/sys/fs/cgroup/blkio"));
    }

    #[test]
    fn a_limit_that_nobody_set_is_no_fact() {
        let mut limits = Limits::new();
        io_max("", "nobody", &mut limits);
        throttle("", "read_iops", "nobody", &mut limits);
        assert!(limits.is_empty());
    }
}
