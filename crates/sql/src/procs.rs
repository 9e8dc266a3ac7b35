//! What the kernel charged to the processes of a server: `/proc/<pid>/io` and `/proc/<pid>/schedstat`.
//!
//! Some servers are one process with threads: its `io` includes ended threads, and each thread has its own `schedstat`.
//! In other servers every process is a child of the first one, and a parent's `io` includes its reaped children. So the
//! sum over the first process and its live children is the exact total since the server started, whichever processes
//! started or ended between two readings. The kernel does not pass on the CPU time of ended processes in nanoseconds;
//! the last reading of each process is kept instead.
//! Formats: the kernel's `Documentation/filesystems/proc.rst` and `Documentation/scheduler/sched-stats.rst`.

use assay_measure::locked::locked;
use assay_run::host::text::{self, keyed};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard};

/// Tolerance between two clocks of one host, s: the kernel counts from boot, and the time of day may have been set
/// since.
const SAME_INSTANT_S: f64 = 3.0;
/// Evidence that a process is the server of a connection.
pub(crate) const LISTENS: &str = "it listens on the socket of this connection (SO_PEERCRED)";
/// Number of attempts at a reading during which a process ended.
const TRIES: u32 = 4;

/// Four lines of `/proc/<pid>/io`, cumulative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Io {
    /// Bytes returned by read calls.
    pub(crate) call_bytes: u64,
    /// Read calls.
    pub(crate) calls: u64,
    /// Bytes fetched from devices.
    pub(crate) device_bytes: u64,
    /// Bytes of pages made dirty, including pages dropped before they were written. Without those, removing a temporary
    /// file would make the counter fall.
    pub(crate) dirtied_bytes: u64,
}

impl Io {
    fn parse(text: &str) -> Option<Self> {
        Some(Self {
            call_bytes: keyed(text, "rchar:")?,
            calls: keyed(text, "syscr:")?,
            device_bytes: keyed(text, "read_bytes:")?,
            dirtied_bytes: keyed(text, "write_bytes:")?,
        })
    }

    fn with(self, other: Self, both: fn(u64, u64) -> u64) -> Self {
        Self {
            call_bytes: both(self.call_bytes, other.call_bytes),
            calls: both(self.calls, other.calls),
            device_bytes: both(self.device_bytes, other.device_bytes),
            dirtied_bytes: both(self.dirtied_bytes, other.dirtied_bytes),
        }
    }
}

/// CPU of one process or many, cumulative, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cpu {
    /// On a CPU.
    pub(crate) used_ns: u64,
    /// Runnable, but without a CPU.
    pub(crate) delay_ns: u64,
}

impl Cpu {
    /// `on-CPU ns, waiting ns, slices` of `schedstat`.
    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split_ascii_whitespace();
        Some(Self { used_ns: fields.next()?.parse().ok()?, delay_ns: fields.next()?.parse().ok()? })
    }

    fn add(&mut self, other: Self) {
        self.used_ns += other.used_ns;
        self.delay_ns += other.delay_ns;
    }
}

/// Whom a server process works for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// A session of this run.
    Ours,
    /// The server itself.
    Background,
    /// Another client.
    Other,
}

/// One reading of all processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sum {
    /// I/O since the server started, or why it cannot be read.
    pub(crate) io: Result<Io, String>,
    /// Whether this kernel has `schedstat`; without it the CPU sums are meaningless.
    pub(crate) has_cpu: bool,
    /// CPU of this run's sessions.
    pub(crate) ours: Cpu,
    /// CPU of the server's own processes since they were first seen.
    pub(crate) background: Cpu,
    /// CPU of other clients' sessions since they were first seen.
    pub(crate) other: Cpu,
    /// Processes read.
    pub(crate) processes: usize,
}

#[derive(Debug)]
struct Seen {
    role: Role,
    /// Process number within the server's own PID namespace.
    inner_pid: i32,
    last: Cpu,
}

#[derive(Debug, Default)]
struct State {
    live: BTreeMap<i32, Seen>,
    ended: BTreeMap<Role, Cpu>,
    io: Io,
}

/// Whether a process with this title serves no client.
type IsBackground = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// Process model of a server.
enum Parts {
    /// One process for each session, all children of the first.
    Processes(IsBackground),
    /// One process with one thread for each session.
    Threads,
}

/// Reads the processes of one server.
pub(crate) struct ProcReader {
    proc: PathBuf,
    first: i32,
    parts: Parts,
    state: Mutex<State>,
}

impl std::fmt::Debug for ProcReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ProcReader of {}", self.first)
    }
}

impl ProcReader {
    /// Watches the server whose first process is `first`; `proc` is `/proc`.
    pub(crate) fn new(proc: &Path, first: i32, is_background: IsBackground) -> Self {
        Self::of(proc, first, Parts::Processes(is_background))
    }

    /// Watches a single-process server: its threads take the place of processes.
    pub(crate) fn threads(proc: &Path, first: i32) -> Self {
        Self::of(proc, first, Parts::Threads)
    }

    fn of(proc: &Path, first: i32, parts: Parts) -> Self {
        Self { proc: proc.to_path_buf(), first, parts, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    fn read(&self, pid: i32, file: &str) -> std::io::Result<String> {
        fs::read_to_string(self.proc.join(pid.to_string()).join(file))
    }

    /// Reads everything now; `ours` are this run's sessions by the server's process or thread numbers, `others` those of
    /// other clients where the server reports them.
    pub(crate) fn sample(&self, ours: &[i32], others: &[i32]) -> Sum {
        let mut state = self.state();
        let io = self.io(&mut state);
        let processes = self.processes();
        self.look(&mut state, &processes, (ours, others));
        let total = |role| {
            let mut sum = state.ended.get(&role).copied().unwrap_or_default();
            for seen in state.live.values().filter(|seen| seen.role == role) {
                sum.add(seen.last);
            }
            sum
        };
        Sum {
            io,
            has_cpu: self.cpu(self.first).is_some(),
            ours: total(Role::Ours),
            background: total(Role::Background),
            other: total(Role::Other),
            processes: processes.len(),
        }
    }

    /// The first process and its children, or its threads.
    pub(crate) fn processes(&self) -> Vec<i32> {
        if let Parts::Threads = self.parts {
            return pids(&self.shown());
        }
        let mut all = vec![self.first];
        all.extend(children(&self.proc, self.first));
        all
    }

    /// Directory in which the kernel lists its processes or threads.
    fn shown(&self) -> PathBuf {
        match self.parts {
            Parts::Threads => self.proc.join(format!("{}/task", self.first)),
            Parts::Processes(_) => self.proc.clone(),
        }
    }

    /// State of a session's process or thread: the letter in `stat` (R, S, D, ...).
    pub(crate) fn doing(&self, inner: i32) -> Option<char> {
        let at = {
            let state = self.state();
            let found = state.live.iter().find(|(_, seen)| seen.inner_pid == inner);
            *found?.0
        };
        stat_field(&self.shown(), at, 0)
    }

    /// Takes the last reading of a session that is about to end.
    pub(crate) fn last_look(&self, pid: i32) {
        let mut state = self.state();
        let found = state.live.iter_mut().find(|(_, seen)| seen.inner_pid == pid && seen.role == Role::Ours);
        if let Some((host_pid, seen)) = found
            && let Some(cpu) = self.cpu(*host_pid)
        {
            seen.last = cpu;
        }
    }

    fn cpu(&self, pid: i32) -> Option<Cpu> {
        let file = self.shown().join(format!("{pid}/schedstat"));
        Cpu::parse(&fs::read_to_string(file).ok()?)
    }

    /// Sum of the first process, which includes its reaped children, and of the live children. The first process is
    /// read first: a child that ends afterwards is missed, which is detected and corrected, and never counted twice.
    fn io(&self, state: &mut State) -> Result<Io, String> {
        if let Parts::Threads = self.parts {
            return self.io_of(self.first);
        }
        let mut sum = Io::default();
        for _ in 0..TRIES {
            sum = self.io_of(self.first)?;
            let mut ended = false;
            for child in children(&self.proc, self.first) {
                match self.io_of(child) {
                    Ok(io) => sum = sum.with(io, u64::saturating_add),
                    Err(_) if !self.proc.join(child.to_string()).exists() => ended = true,
                    Err(reason) => return Err(reason),
                }
            }
            if !ended {
                break;
            }
        }
        // A process that one reading missed is in the next: counters do not fall.
        state.io = sum.with(state.io, u64::max);
        Ok(state.io)
    }

    fn io_of(&self, pid: i32) -> Result<Io, String> {
        match self.read(pid, "io") {
            Ok(text) => Io::parse(&text).ok_or_else(|| "unsupported: /proc/<pid>/io".to_owned()),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                Err("denied: /proc/<pid>/io needs the server's user or CAP_SYS_PTRACE".to_owned())
            }
            Err(_) => Err("absent: the server's processes are gone".to_owned()),
        }
    }

    fn look(&self, state: &mut State, pids: &[i32], (ours, others): (&[i32], &[i32])) {
        let shown = self.shown();
        for pid in pids {
            let Some(cpu) = self.cpu(*pid) else { continue };
            let seen = state.live.entry(*pid).or_insert_with(|| Seen {
                role: self.role(*pid),
                inner_pid: inner_pid(&shown, *pid).unwrap_or(*pid),
                last: Cpu::default(),
            });
            seen.last = cpu;
            if seen.role != Role::Ours && ours.contains(&seen.inner_pid) {
                seen.role = Role::Ours;
            }
            // An idle thread may serve the next session.
            if seen.role == Role::Background && others.contains(&seen.inner_pid) {
                seen.role = Role::Other;
            }
        }
        let gone: Vec<i32> = state.live.keys().filter(|pid| !pids.contains(pid)).copied().collect();
        for pid in gone {
            if let Some(seen) = state.live.remove(&pid) {
                state.ended.entry(seen.role).or_default().add(seen.last);
            }
        }
    }

    fn role(&self, pid: i32) -> Role {
        let Parts::Processes(is_background) = &self.parts else {
            return Role::Background;
        };
        if pid == self.first {
            return Role::Background;
        }
        let title = self.read(pid, "cmdline").unwrap_or_default();
        if is_background(&title) { Role::Background } else { Role::Other }
    }
}

/// Live children of a process: from the kernel's own list if it has one, else by scanning all processes for their parent.
fn children(proc: &Path, parent: i32) -> Vec<i32> {
    let list = proc.join(format!("{parent}/task/{parent}/children"));
    if let Ok(text) = fs::read_to_string(list) {
        return text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect();
    }
    pids(proc).into_iter().filter(|pid| parent_of(proc, *pid) == Some(parent)).collect()
}

/// All processes.
pub(crate) fn pids(proc: &Path) -> Vec<i32> {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// A field of `/proc/<pid>/stat`; field 0 is the one after the name.
fn stat_field<T: FromStr>(proc: &Path, pid: i32, at: usize) -> Option<T> {
    let stat = fs::read_to_string(proc.join(format!("{pid}/stat"))).ok()?;
    text::process_stat(&stat).nth(at)?.parse().ok()
}

/// Parent of a process.
pub(crate) fn parent_of(proc: &Path, pid: i32) -> Option<i32> {
    stat_field(proc, pid, 1)
}

/// When a process started, clock ticks after boot.
pub(crate) fn start_ticks(proc: &Path, pid: i32) -> Option<u64> {
    stat_field(proc, pid, 19)
}

/// Start time of a process, s since 1970; wrong by any clock change since.
pub(crate) fn start_s(proc: &Path, pid: i32) -> Option<f64> {
    let ticks_per_s = rustix::param::clock_ticks_per_second().max(1) as f64;
    let seconds = |clock| {
        let time = clock_gettime(clock);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let boot_s = seconds(ClockId::Realtime) - seconds(ClockId::Boottime);
    Some(boot_s + start_ticks(proc, pid)? as f64 / ticks_per_s)
}

/// Whether a process started when its server says, s since 1970.
pub(crate) fn started_at(proc: &Path, pid: i32, said: Option<f64>) -> bool {
    start_s(proc, pid).zip(said).is_some_and(|(seen, said)| (seen - said).abs() <= SAME_INSTANT_S)
}

/// Whether a path that leads through a process shows another file than the same path here: the process has its own mount
/// namespace.
pub(crate) fn is_other_file(through: &Path, path: &Path) -> bool {
    let file = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    file(through).is_some_and(|seen| file(path) != Some(seen))
}

/// Number of the process in its innermost PID namespace.
pub(crate) fn inner_pid(proc: &Path, pid: i32) -> Option<i32> {
    let text = fs::read_to_string(proc.join(format!("{pid}/status"))).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_ascii_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes with this title serve no client.
    fn writers() -> IsBackground {
        Box::new(|title| title.contains("writer"))
    }

    fn process(proc: &Path, pid: i32, io: &str, schedstat: &str, cmdline: &str) {
        let dir = proc.join(pid.to_string());
        fs::create_dir_all(dir.join(format!("task/{pid}"))).unwrap();
        fs::write(dir.join("io"), io).unwrap();
        fs::write(dir.join("schedstat"), schedstat).unwrap();
        fs::write(dir.join("cmdline"), cmdline).unwrap();
        fs::write(dir.join("status"), format!("Name:\tserver\nNSpid:\t{pid}\n")).unwrap();
        let parent = if pid == 100 { 1 } else { 100 };
        fs::write(
            dir.join("stat"),
            format!("{pid} (post (g) res) S {parent} 5 5 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 777 0"),
        )
        .unwrap();
    }

    fn io(read: u64) -> String {
        format!(
            "rchar: {}\nwchar: 5\nsyscr: 3\nsyscw: 4\nread_bytes: {read}\nwrite_bytes: 90\ncancelled_write_bytes: 10\n",
            2 * read
        )
    }

    #[test]
    fn the_sum_holds_live_and_reaped_processes_and_never_falls() {
        let dir = tempfile::tempdir().unwrap();
        let proc = dir.path();
        process(proc, 100, &io(1000), "50 1 1", "/usr/bin/server -D /data");
        process(proc, 101, &io(200), "70 2 1", "server: writer ");
        process(proc, 102, &io(30), "900 40 1", "server: me db [local] idle");
        process(proc, 103, &io(4), "11 3 1", "server: you db 10.0.0.1(5) idle");
        let reader = ProcReader::new(proc, 100, writers());
        let first = reader.sample(&[102], &[]);
        let sum = first.io.expect("readable");
        assert_eq!((sum.device_bytes, sum.call_bytes), (1234, 2468));
        assert_eq!((sum.calls, sum.dirtied_bytes), (12, 360));
        assert_eq!((first.ours.used_ns, first.ours.delay_ns), (900, 40));
        assert_eq!((first.background.used_ns, first.other.used_ns), (120, 11));
        assert_eq!(first.processes, 4);

        // 102 ends and is reaped: its bytes move to the first process, its CPU stays known.
        fs::remove_dir_all(proc.join("102")).unwrap();
        process(proc, 100, &io(1030), "60 1 1", "/usr/bin/server -D /data");
        let second = reader.sample(&[102], &[]);
        assert_eq!(second.io.expect("readable").device_bytes, 1234);
        assert_eq!((second.ours.used_ns, second.background.used_ns), (900, 130));

        // One that is not yet reaped, but gone from the list: the total does not fall.
        fs::remove_dir_all(proc.join("103")).unwrap();
        assert_eq!(reader.sample(&[], &[]).io.expect("readable").device_bytes, 1234);
    }

    #[test]
    fn a_session_that_is_told_of_later_takes_its_cpu_with_it() {
        let dir = tempfile::tempdir().unwrap();
        process(dir.path(), 100, &io(0), "1 0 1", "server");
        process(dir.path(), 102, &io(0), "500 9 1", "server: me db [local] idle");
        let reader = ProcReader::new(dir.path(), 100, writers());
        assert_eq!(reader.sample(&[], &[]).other.used_ns, 500);
        let told = reader.sample(&[102], &[]);
        assert_eq!((told.ours.used_ns, told.other.used_ns), (500, 0));
        process(dir.path(), 102, &io(0), "800 9 1", "server: me db [local] idle");
        reader.last_look(102);
        fs::remove_dir_all(dir.path().join("102")).unwrap();
        assert_eq!(reader.sample(&[102], &[]).ours.used_ns, 800);
    }

    #[test]
    fn threads_of_one_process_are_told_apart_and_its_bytes_are_its_own() {
        let dir = tempfile::tempdir().unwrap();
        process(dir.path(), 100, &io(1000), "1 0 1", "server");
        let tasks = dir.path().join("100/task");
        for (tid, cpu) in [(100, "50 1 1"), (101, "70 2 1"), (102, "900 40 1"), (103, "11 3 1")] {
            process(&tasks, tid, "", cpu, "");
        }
        let reader = ProcReader::threads(dir.path(), 100);
        let sum = reader.sample(&[102], &[103]);
        assert_eq!(sum.io.expect("readable").device_bytes, 1000);
        assert_eq!((sum.ours.used_ns, sum.ours.delay_ns), (900, 40));
        assert_eq!((sum.background.used_ns, sum.other.used_ns), (120, 11));
        assert_eq!((sum.processes, reader.doing(102)), (4, Some('S')));
    }

    #[test]
    fn processes_that_are_gone_say_so() {
        let dir = tempfile::tempdir().unwrap();
        let sum = ProcReader::new(dir.path(), 100, writers()).sample(&[], &[]);
        assert!(sum.io.is_err_and(|reason| reason.starts_with("absent")));
    }

    #[test]
    fn this_kernel_lists_the_children_it_has() {
        let mut child = std::process::Command::new("sleep").arg("30").spawn().expect("sleep is everywhere");
        let me = i32::try_from(std::process::id()).expect("a pid");
        let pid = i32::try_from(child.id()).expect("a pid");
        // The list holds the children of one thread, and another test's thread may have been the first.
        let proc = Path::new("/proc");
        assert_eq!(parent_of(proc, pid), Some(me));
        assert_eq!(inner_pid(proc, pid), Some(pid));
        assert!(start_ticks(proc, pid) >= start_ticks(proc, me));
        child.kill().expect("ours to kill");
        child.wait().expect("ours to reap");
    }
}
