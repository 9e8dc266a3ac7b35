//! A child process measured from outside: what it printed, and the CPU time and
//! bytes read of a window in the middle of its work, taken alike for every program.

use anyhow::{Context, Result, bail};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Cost of a window of steady work, all threads together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    /// Length, s.
    pub(crate) elapsed_s: f64,
    /// CPU time of the whole process, s.
    pub(crate) cpu_s: f64,
    /// Bytes the block layer was asked to read.
    pub(crate) read_bytes: f64,
    /// Bytes the block layer was asked to write.
    pub(crate) write_bytes: f64,
    /// Highest resident memory so far, bytes.
    pub(crate) peak_rss_bytes: f64,
    /// Threads at its end.
    pub(crate) threads: f64,
}

/// When to look, counted from the start of the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct When {
    /// Start-up and warm-up that do not count.
    pub(crate) after: Duration,
    /// Length of the window.
    pub(crate) window: Duration,
}

impl When {
    /// Of whole seconds.
    pub(crate) fn seconds(after_s: u64, window_s: u64) -> Self {
        Self { after: Duration::from_secs(after_s), window: Duration::from_secs(window_s) }
    }
}

#[derive(Clone, Copy)]
struct Reading {
    at: Instant,
    cpu_s: f64,
    read_bytes: f64,
    write_bytes: f64,
    peak_rss_bytes: f64,
    threads: f64,
}

/// Runs to the end; returns stdout and, if asked for, the window.
///
/// # Errors
/// When it does not start, ends with a failure, or ends before the window does.
pub(crate) fn run(command: &mut Command, when: Option<When>) -> Result<(String, Window)> {
    follow(command, |pid| when.map_or_else(|| Ok(Window::default()), |when| watch(pid, when)))
}

/// As [`run`], with a window that counts from the moment the file `begun` holds something.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_begun(command: &mut Command, begun: &Path, when: When) -> Result<(String, Window)> {
    follow(command, |pid| {
        while fs::metadata(begun).map_or(0, |file| file.len()) == 0 {
            // A program that has ended stays listed as a zombie until it is waited for.
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            if status.contains("State:\tZ") {
                bail!("it ended too early");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        watch(pid, when)
    })
}

fn follow(command: &mut Command, watcher: impl FnOnce(u32) -> Result<Window>) -> Result<(String, Window)> {
    let shown = format!("{command:?}");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| shown.clone())?;
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let window = watcher(child.id());
    let status = child.wait()?;
    let output = stdout.join().unwrap_or_default();
    if !status.success() {
        let text = stderr.join().unwrap_or_default();
        let last: Vec<&str> = text.lines().rev().take(5).collect();
        bail!("{status}: {shown}: {}", last.join(" | "));
    }
    Ok((output, window.with_context(|| shown)?))
}

/// Reads a pipe on a thread of its own, so that the child never waits for us.
fn drain(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error is still worth showing.
            let _ = pipe.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    })
}

fn watch(pid: u32, when: When) -> Result<Window> {
    std::thread::sleep(when.after);
    let first = read(pid)?;
    std::thread::sleep(when.window);
    let last = read(pid)?;
    Ok(Window {
        elapsed_s: (last.at - first.at).as_secs_f64(),
        cpu_s: last.cpu_s - first.cpu_s,
        read_bytes: last.read_bytes - first.read_bytes,
        write_bytes: last.write_bytes - first.write_bytes,
        peak_rss_bytes: last.peak_rss_bytes,
        threads: last.threads,
    })
}

fn read(pid: u32) -> Result<Reading> {
    let at = Instant::now();
    let mut cpu_ns = 0_u64;
    for task in fs::read_dir(format!("/proc/{pid}/task")).context("it ended too early")? {
        // A thread may end between the listing and the reading.
        if let Ok(text) = fs::read_to_string(task?.path().join("schedstat")) {
            cpu_ns += first_number(&text)?;
        }
    }
    let io = fs::read_to_string(format!("/proc/{pid}/io")).context("it ended too early")?;
    let moved = |name: &str| {
        let line = io.lines().find_map(|line| line.strip_prefix(name));
        first_number(line.with_context(|| format!("no {name} in /proc/PID/io"))?)
    };
    let status = fs::read_to_string(format!("/proc/{pid}/status")).context("it ended too early")?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        first_number(line.with_context(|| format!("no {name} in /proc/PID/status"))?)
    };
    Ok(Reading {
        at,
        cpu_s: cpu_ns as f64 / 1e9,
        read_bytes: moved("read_bytes:")? as f64,
        write_bytes: moved("write_bytes:")? as f64,
        peak_rss_bytes: field("VmHWM:")? as f64 * 1024.0,
        threads: field("Threads:")? as f64,
    })
}

/// Starts, waits until the file `begun` is there and `after_s` more, and kills: what a crash leaves behind.
///
/// # Errors
/// When it does not start, or ends by itself before its time.
pub(crate) fn kill_after(command: &mut Command, begun: &Path, after_s: u64) -> Result<()> {
    let shown = format!("{command:?}");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| shown.clone())?;
    let stderr = drain(child.stderr.take());
    while !begun.exists() && child.try_wait()?.is_none() {
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_secs(after_s));
    let ended = child.try_wait()?;
    if ended.is_none() {
        child.kill()?;
        child.wait()?;
    }
    let text = stderr.join().unwrap_or_default();
    match ended {
        None => Ok(()),
        Some(status) => bail!("{status} before it was killed: {shown}: {text}"),
    }
}

fn first_number(text: &str) -> Result<u64> {
    let word = text.split_whitespace().next().context("empty")?;
    word.parse().with_context(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_measured_and_its_output_kept() {
        let script = "echo out; end=$(($(date +%s) + 3)); while [ $(date +%s) -lt $end ]; do :; done";
        let when = When::seconds(0, 1);
        let mut command = Command::new("sh");
        let (output, window) = run(command.args(["-c", script]), Some(when)).unwrap();
        assert_eq!(output, "out\n");
        assert!(window.cpu_s > 0.0 && window.elapsed_s >= 1.0);
    }

    #[test]
    fn a_failing_child_tells_why() {
        let mut command = Command::new("sh");
        let error = run(command.args(["-c", "echo because >&2; exit 3"]), None).unwrap_err();
        assert!(format!("{error:#}").contains("because"));
    }
}
