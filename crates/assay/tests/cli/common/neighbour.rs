//! A racing neighbour: the user of a server, who keeps swapping the names in its directories for links to a file of
//! root's while assay works there as root.

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::process::{Gid, Uid};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Begins what must not be seen anywhere else.
const SECRET: &str = "the canary sings";
/// Names that mean something to a server and its keeper; each is also a file of the canary's.
pub(crate) const NAMES: &[&str] =
    &["server.log", "data", "data/postgresql.conf", "data/postmaster.pid", "data/PG_VERSION"];

/// Files of root's that nobody else may read, and that nothing may change.
pub(crate) struct Canary {
    dir: tempfile::TempDir,
}

impl Canary {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
        for name in NAMES {
            let file = dir.path().join(Path::new(name).file_name().expect("a name"));
            // Lines as a server's log and pid file have them: whoever reads one finds what he looks for.
            let text = format!("FATAL:  {SECRET}\n2\n3\n4\n5\n6\n7\nready   \n");
            if *name != "data" {
                fs::write(&file, text).expect("written");
                fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("its mode");
            }
        }
        Self { dir }
    }

    /// Its file of this name, or the directory for `data`.
    fn behind(&self, name: &str) -> PathBuf {
        match name {
            "data" => self.dir.path().to_path_buf(),
            _ => self.dir.path().join(name.rsplit('/').next().expect("a name")),
        }
    }

    /// What must stay: owner, mode and content of everything.
    pub(crate) fn state(&self) -> Vec<(PathBuf, u32, u32, u32, String)> {
        let entries = fs::read_dir(self.dir.path()).expect("it is there");
        let mut all: Vec<_> = entries
            .map(|entry| entry.expect("an entry").path())
            .chain([self.dir.path().to_path_buf()])
            .map(|path| {
                let about = fs::metadata(&path).expect("it is there");
                let text = fs::read_to_string(&path).unwrap_or_default();
                (path, about.uid(), about.gid(), about.mode(), text)
            })
            .collect();
        all.sort();
        all
    }

    /// Whether a text tells anything of it.
    pub(crate) fn is_told_by(&self, text: &str) -> bool {
        text.contains(SECRET)
    }
}

/// How it swaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// To and fro as quickly as it can.
    Flips,
    /// Once, for good.
    Stays,
}

/// Swaps names until it is dropped.
pub(crate) struct Neighbour {
    over: Arc<AtomicBool>,
    swaps: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Neighbour {
    /// Begins, as this user and group, with one of [`NAMES`] in every directory of a server below `base`.
    pub(crate) fn start(user: (u32, u32), base: &Path, canary: &Canary, (name, way): (&str, Way)) -> Self {
        let over = Arc::<AtomicBool>::default();
        let swaps = Arc::<AtomicU64>::default();
        let (is_over, count) = (Arc::clone(&over), Arc::clone(&swaps));
        let base = base.to_path_buf();
        let (name, behind) = (name.to_owned(), canary.behind(name));
        let thread = std::thread::spawn(move || {
            let gid = Gid::from_raw(user.1);
            // Of this thread alone: the test stays root.
            rustix::thread::set_thread_groups(&[gid]).expect("root may");
            rustix::thread::set_thread_gid(gid).expect("root may");
            rustix::thread::set_thread_uid(Uid::from_raw(user.0)).expect("root may");
            while !is_over.load(Ordering::Relaxed) {
                let entries = fs::read_dir(&base).into_iter().flatten().flatten();
                let swapped: u64 = entries.map(|entry| swap(&entry.path(), &name, &behind, way)).sum();
                count.fetch_add(swapped, Ordering::Relaxed);
                match swapped {
                    // Before there is anything to swap it looks as often as nobody else needs the CPU.
                    0 => std::thread::yield_now(),
                    // A server that never sees its own pid file would be waited for, two minutes.
                    _ => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        });
        Self { over, swaps, thread: Some(thread) }
    }

    /// How often a name was swapped so far.
    pub(crate) fn swaps(&self) -> u64 {
        self.swaps.load(Ordering::Relaxed)
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the neighbour");
        }
    }
}

/// Puts a link in the place of a name, and back where that is its way; how often that worked.
fn swap(directory: &Path, name: &str, behind: &Path, way: Way) -> u64 {
    let path = directory.join(name);
    let aside = directory.join(format!("{name}.aside"));
    let mut done = 0;
    // Before the name is there a file beside it would only keep the server from coming up.
    if path.symlink_metadata().is_err() || symlink(behind, &aside).is_err() {
        return 0;
    }
    // An even number of times: a server that gets through in between gets its own file in the end.
    let times = match way {
        Way::Flips => 100,
        Way::Stays => 1,
    };
    for _ in 0..times {
        done += u64::from(renameat_with(CWD, &path, CWD, &aside, RenameFlags::EXCHANGE).is_ok());
    }
    if aside.is_symlink() {
        let _ = fs::remove_file(&aside);
    }
    done
}
