//! A memory cgroup around a server's processes that limits the page cache they can fill.
//!
//! Version 1: a child of the server's group, so that outer limits stay in force. Version 2 forbids processes beside
//! child groups, so the new group is a sibling: a child of the nearest ancestor that delegates memory control. A small
//! shell waits at the other end of a pipe and moves the processes back when this process ends, however it ends.
//! Formats: the kernel's `Documentation/admin-guide/cgroup-v1/memory.rst` and `cgroup-v2.rst`.

use assay_block::{Mount, mounts};
use assay_run::host::text;
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Component, Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest wait until everything is moved back.
const PATIENCE: Duration = Duration::from_secs(10);
/// Attempts to move all processes while new ones may start outside.
const ROUNDS: u32 = 5;

/// Once standard input ends, moves everything from group $1 to group $2 and removes $1.
const GUARD: &str = "while read -r _; do :; done; n=0; \
    while [ $n -lt 100 ]; do \
      while read -r p; do echo \"$p\" > \"$2/cgroup.procs\"; done < \"$1/cgroup.procs\"; \
      rmdir \"$1\" && exit 0; n=$((n+1)); sleep 0.1; \
    done; exit 1";

/// Interface version of the kernel's memory control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// `memory.limit_in_bytes`
    V1,
    /// `memory.high`
    V2,
}

impl Version {
    /// Display name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        }
    }

    fn limit_file(self) -> &'static str {
        match self {
            Self::V1 => "memory.limit_in_bytes",
            // Reclaims and throttles, but never kills: assay must not kill the server's processes.
            Self::V2 => "memory.high",
        }
    }
}

/// Where to create a group for the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    /// The interface.
    pub(super) version: Version,
    /// The group the server is in.
    home: PathBuf,
    /// The group to create.
    group: PathBuf,
}

/// The mount in `mountinfo` of type `kind`; for version 1, the one that controls memory.
fn hierarchy(mountinfo: &str, kind: &str) -> Option<Mount> {
    mounts(mountinfo).into_iter().find(|mount| {
        let mut options = mount.options.split(',');
        mount.fs_type == kind && (kind != "cgroup" || options.any(|word| word == "memory"))
    })
}

/// Directory of group `path` in a hierarchy, if it is below the mount point.
fn directory(tree: &Mount, path: &str) -> Option<PathBuf> {
    let inner = Path::new(path).strip_prefix(&tree.root).ok()?;
    // The kernel writes `..` if the group is outside this cgroup namespace.
    let is_inside = inner.components().all(|part| part != Component::ParentDir);
    is_inside.then(|| tree.mount_point.join(inner))
}

/// Chooses the place from this process's `mountinfo` and the postmaster's `cgroup` file.
///
/// # Errors
/// What is missing, with the remedy.
pub(super) fn spot(mountinfo: &str, membership: &str, name: &str) -> Result<Spot, String> {
    let member = |controller| text::cgroup_path(membership, controller);
    if let (Some(tree), Some(path)) = (hierarchy(mountinfo, "cgroup"), member("memory")) {
        let home = directory(&tree, path)
            .ok_or_else(|| format!("the server's memory cgroup {path} is not among the mounted cgroups"))?;
        let group = home.join(name);
        return Ok(Spot { version: Version::V1, home, group });
    }
    let (Some(tree), Some(path)) = (hierarchy(mountinfo, "cgroup2"), member("")) else {
        return Err("no memory cgroup hierarchy is mounted on this host".to_owned());
    };
    let home =
        directory(&tree, path).ok_or_else(|| format!("the server's cgroup {path} is not among the mounted cgroups"))?;
    // The server's group contains processes; only the root may contain both processes and controlled children.
    let parents = home.ancestors().skip(usize::from(home != tree.mount_point));
    let parent = parents.take_while(|dir| dir.starts_with(&tree.mount_point)).find(|dir| {
        let handed = fs::read_to_string(dir.join("cgroup.subtree_control")).unwrap_or_default();
        handed.split_ascii_whitespace().any(|word| word == "memory")
    });
    match parent {
        Some(parent) => Ok(Spot { version: Version::V2, group: parent.join(name), home }),
        None => Err(format!(
            "no cgroup above {} delegates memory control: echo +memory > {}/cgroup.subtree_control",
            home.display(),
            tree.mount_point.display()
        )),
    }
}

impl Spot {
    /// Creates the group with limit `bytes` and moves `processes` into it, repeating until none is outside.
    ///
    /// # Errors
    /// What failed; everything is then undone.
    pub(super) fn confine(self, bytes: u64, processes: &dyn Fn() -> Vec<i32>) -> Result<Confined, String> {
        let failed = |what: &str, path: &Path, error: std::io::Error| {
            format!("{what} {}: {error} (a memory cgroup needs root)", path.display())
        };
        fs::create_dir(&self.group).map_err(|error| failed("making", &self.group, error))?;
        let guard = guard(&self.group, &self.home);
        let confined = Confined {
            guard: match guard {
                Ok(guard) => guard,
                Err(error) => {
                    let _ = fs::remove_dir(&self.group);
                    return Err(format!("starting sh to undo the cgroup: {error}"));
                }
            },
            spot: self,
        };
        let limit = confined.spot.group.join(confined.spot.version.limit_file());
        write(&limit, bytes).map_err(|error| failed("writing", &limit, error))?;
        let procs = confined.spot.group.join("cgroup.procs");
        for _ in 0..ROUNDS {
            let inside = members(&procs);
            let outside: Vec<i32> = processes().into_iter().filter(|pid| !inside.contains(pid)).collect();
            if outside.is_empty() {
                return Ok(confined);
            }
            for pid in outside {
                // Ignore a process that has ended meanwhile.
                if let Err(error) = write(&procs, pid)
                    && error.raw_os_error() != Some(rustix::io::Errno::SRCH.raw_os_error())
                {
                    return Err(failed("moving the server to", &procs, error));
                }
            }
        }
        Ok(confined)
    }
}

fn write(path: &Path, value: impl std::fmt::Display) -> std::io::Result<()> {
    // Write the whole text at once: the kernel treats each write as a request.
    let mut file = fs::OpenOptions::new().write(true).open(path)?;
    file.write_all(value.to_string().as_bytes())
}

fn members(procs: &Path) -> Vec<i32> {
    let text = fs::read_to_string(procs).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

fn guard(group: &Path, home: &Path) -> std::io::Result<Child> {
    Command::new("/bin/sh")
        .args(["-c", GUARD, "assay-cgroup-guard"])
        .args([group, home])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // A process group of its own: Ctrl-C at a terminal is for us, and it must outlive us.
        .process_group(0)
        .spawn()
}

/// A server inside its group; dropping it moves the server out and removes the group.
#[derive(Debug)]
pub(super) struct Confined {
    spot: Spot,
    guard: Child,
}

impl Confined {
    /// Path of the group, for messages.
    pub(super) fn group(&self) -> &Path {
        &self.spot.group
    }

    /// The interface used.
    pub(super) fn version(&self) -> Version {
        self.spot.version
    }

    /// Number of processes inside.
    pub(super) fn processes(&self) -> usize {
        members(&self.spot.group.join("cgroup.procs")).len()
    }

    /// Bytes charged to the group now: memory and page cache.
    pub(super) fn charged_bytes(&self) -> Option<u64> {
        let file = match self.spot.version {
            Version::V1 => "memory.usage_in_bytes",
            Version::V2 => "memory.current",
        };
        fs::read_to_string(self.spot.group.join(file)).ok()?.trim().parse().ok()
    }

    /// Shell command that undoes it.
    pub(super) fn undo(&self) -> String {
        format!(
            "for p in $(cat {group}/cgroup.procs); do echo $p > {home}/cgroup.procs; done; rmdir {group}",
            group = self.spot.group.display(),
            home = self.spot.home.display()
        )
    }

    fn release(&mut self) -> Result<(), String> {
        drop(self.guard.stdin.take());
        let begun = Instant::now();
        loop {
            match self.guard.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(None) if begun.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(5)),
                _ => {
                    return Err(format!("the memory cgroup could not be removed; by hand: {}", self.undo()));
                }
            }
        }
    }

    /// Moves everything back and removes the group.
    ///
    /// # Errors
    /// What could not be done, and how to do it by hand.
    pub(super) fn end(mut self) -> Result<(), String> {
        self.release()
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        let _ = self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::until;

    const V1: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
        32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
        35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

    #[test]
    fn version_1_makes_a_child_of_the_servers_group() {
        let membership = "5:cpu:/x\n4:memory:/system.slice/pg\n0::/y\n";
        let spot = spot(V1, membership, "assay-1").expect("there is a place");
        assert_eq!(spot.version, Version::V1);
        assert_eq!(spot.group, Path::new("/sys/fs/cgroup/memory/system.slice/pg/assay-1"));
        assert_eq!(spot.home, Path::new("/sys/fs/cgroup/memory/system.slice/pg"));
    }

    #[test]
    fn a_container_sees_its_group_under_the_mounted_root() {
        let mounts = "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let found = spot(mounts, "4:memory:/docker/abc/pg\n", "a").expect("below the root");
        assert_eq!(found.home, Path::new("/sys/fs/cgroup/memory/pg"));
        let outside = spot(mounts, "4:memory:/elsewhere\n", "a").expect_err("not mounted here");
        assert!(outside.contains("/elsewhere"), "{outside}");
        spot(mounts, "4:memory:/docker/abc/../x\n", "a").expect_err("outside this namespace");
    }

    /// A tree of files as version 2 shows them; real memory control of version 2 is not there on every host.
    fn v2(dir: &Path) -> String {
        let service = dir.join("system.slice/pg.service");
        fs::create_dir_all(&service).unwrap();
        fs::write(dir.join("cgroup.subtree_control"), "cpu memory\n").unwrap();
        fs::write(dir.join("system.slice/cgroup.subtree_control"), "memory pids\n").unwrap();
        fs::write(service.join("cgroup.subtree_control"), "").unwrap();
        format!("41 31 0:38 / {} rw - cgroup2 cgroup2 rw\n", dir.display())
    }

    #[test]
    fn version_2_makes_a_sibling_where_memory_is_handed_down() {
        let dir = tempfile::tempdir().unwrap();
        let mounts = v2(dir.path());
        let found = spot(&mounts, "0::/system.slice/pg.service\n", "assay-1").expect("a place");
        assert_eq!(found.version, Version::V2);
        assert_eq!(found.group, dir.path().join("system.slice/assay-1"));
        fs::write(dir.path().join("system.slice/cgroup.subtree_control"), "pids\n").unwrap();
        let found = spot(&mounts, "0::/system.slice/pg.service\n", "assay-1").expect("a place");
        assert_eq!(found.group, dir.path().join("assay-1"));
        fs::write(dir.path().join("cgroup.subtree_control"), "").unwrap();
        let none = spot(&mounts, "0::/system.slice/pg.service\n", "assay-1").expect_err("no place");
        assert!(none.contains("+memory"), "{none}");
    }

    #[test]
    fn the_guard_moves_everything_back_and_removes_the_group() {
        // Plain files stand for the kernel's: the last pid written stays in them, and a directory with files in it
        // cannot be removed, so the group is one of a real hierarchy only in the test on a real server.
        let dir = tempfile::tempdir().unwrap();
        let (group, home) = (dir.path().join("group"), dir.path().join("home"));
        fs::create_dir(&home).unwrap();
        fs::create_dir(&group).unwrap();
        fs::write(home.join("cgroup.procs"), "").unwrap();
        fs::write(group.join("cgroup.procs"), "4711\n").unwrap();
        let mut guard = guard(&group, &home).expect("a shell");
        assert!(group.exists());
        drop(guard.stdin.take());
        until("the guard", || fs::read_to_string(home.join("cgroup.procs")).unwrap() == "4711\n");
        fs::remove_file(group.join("cgroup.procs")).unwrap();
        assert!(guard.wait().expect("ours").success());
        assert!(!group.exists());
    }
}
