//! A child process measured from outside, alike for every program: what it printed, how long it took, its peak memory, and
//! the CPU time and bytes of a window in the middle of its work.

use super::figures::Figures;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Between two looks at a child that is waited for.
const TICK: Duration = Duration::from_millis(5);

/// When a child is looked at.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// Time counts from the moment this file holds something; else from the start of the process.
    pub(super) begun: Option<PathBuf>,
    /// Seconds that do not count, and the length of the window behind them.
    pub(super) window: Option<(f64, f64)>,
    /// Seconds after which it is killed: what a crash leaves behind.
    pub(super) kill: Option<f64>,
}

/// Runs a command to its end: what it printed, and the figures seen from outside.
///
/// # Errors
/// When it does not start, fails, or ends before it was looked at.
pub(super) fn run(command: &mut Command, watch: &Watch) -> Result<(String, Figures)> {
    let shown = format!("{command:?}");
    let started = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| shown.clone())?;
    let (stdout, stderr) = (drain(child.stdout.take()), drain(child.stderr.take()));
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let over = AtomicBool::new(false);
    let (seen, ended, peak) = std::thread::scope(|scope| {
        let peak = scope.spawn(|| {
            let mut peak = 0;
            // The high-water mark is the kernel's own: only its last moment may be missed.
            while !over.load(Ordering::Relaxed) {
                peak = peak.max(fs::read_to_string(&status).ok().and_then(|text| field(&text, "VmHWM:")).unwrap_or(0));
                std::thread::sleep(TICK);
            }
            peak
        });
        let seen = look(&mut child, watch);
        let ended = child.wait();
        over.store(true, Ordering::Relaxed);
        (seen, ended, peak.join().unwrap_or_default())
    });
    let took_s = started.elapsed().as_secs_f64();
    let output = stdout.join().unwrap_or_default();
    let ended = ended?;
    if !ended.success() && watch.kill.is_none() {
        let text = stderr.join().unwrap_or_default();
        let last: Vec<&str> = text.lines().rev().take(5).collect();
        bail!("{ended}: {shown}: {}", last.join(" | "));
    }
    let mut figures = seen.context(shown)?;
    figures.insert("took_s".to_owned(), took_s.to_string());
    figures.insert("peak_mib".to_owned(), (peak as f64 / 1024.0).to_string());
    Ok((output, figures))
}

/// Reads a pipe on a thread of its own, so that the child never waits for us.
pub(super) fn drain(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error is still worth showing.
            let _ = pipe.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    })
}

fn look(child: &mut Child, watch: &Watch) -> Result<Figures> {
    while let Some(begun) = &watch.begun
        && fs::metadata(begun).map_or(0, |file| file.len()) == 0
    {
        ensure!(child.try_wait()?.is_none(), "it ended too early");
        std::thread::sleep(TICK);
    }
    let mut seen = Figures::new();
    if let Some((after, length)) = watch.window {
        std::thread::sleep(Duration::from_secs_f64(after));
        let begin = Instant::now();
        let first = reading(child.id())?;
        std::thread::sleep(Duration::from_secs_f64(length));
        let elapsed_s = begin.elapsed().as_secs_f64();
        let last = reading(child.id())?;
        let [cpu_s, read, written] = std::array::from_fn(|of| last[of] - first[of]);
        // Only threads that are there are counted.
        ensure!(cpu_s >= 0.0, "threads ended within the window");
        let figures = [
            ("elapsed_s", elapsed_s),
            ("cpu_s", cpu_s),
            ("read_bytes", read),
            ("moved_bytes", read + written),
            ("threads", last[3]),
        ];
        seen.extend(figures.map(|(name, value)| (name.to_owned(), value.to_string())));
    }
    if let Some(after) = watch.kill {
        std::thread::sleep(Duration::from_secs_f64(after));
        ensure!(child.try_wait()?.is_none(), "it ended before it was killed");
        child.kill()?;
    }
    Ok(seen)
}

/// CPU time, s, bytes that the block layer was asked to read and to write, and threads.
fn reading(pid: u32) -> Result<[f64; 4]> {
    let text = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).context("it ended too early");
    let mut cpu_ns = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).context("it ended too early")? {
        // A thread may end between the listing and the reading.
        if let Ok(text) = fs::read_to_string(task?.path().join("schedstat")) {
            cpu_ns += field(&text, "").context("schedstat")?;
        }
    }
    let (io, status) = (text("io")?, text("status")?);
    let of = |text: &str, name: &str| field(text, name).with_context(|| format!("no {name} in /proc/PID"));
    Ok([
        cpu_ns as f64 / 1e9,
        of(&io, "read_bytes:")? as f64,
        of(&io, "write_bytes:")? as f64,
        of(&status, "Threads:")? as f64,
    ])
}

/// The number behind a name at the beginning of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, watch: &Watch) -> Result<(String, Figures)> {
        run(Command::new("sh").args(["-c", script]), watch)
    }

    #[test]
    fn a_child_is_measured_and_its_output_kept() {
        let busy = "echo out; end=$(($(date +%s) + 3)); while [ $(date +%s) -lt $end ]; do :; done";
        let (output, seen) = shell(busy, &Watch { window: Some((0.0, 1.0)), ..Watch::default() }).unwrap();
        assert_eq!(output, "out\n");
        let figure = |name: &str| seen[name].parse::<f64>().unwrap();
        assert!(figure("cpu_s") > 0.0 && figure("peak_mib") > 0.0);
        assert!(figure("took_s") >= figure("elapsed_s") && figure("elapsed_s") >= 1.0);
    }

    #[test]
    fn a_failing_child_tells_why() {
        let error = shell("echo because >&2; exit 3", &Watch::default()).unwrap_err();
        assert!(format!("{error:#}").contains("because"));
    }

    #[test]
    fn a_child_is_killed_in_its_time_and_one_that_was_quicker_is_an_error() {
        let kill = Watch { kill: Some(0.2), ..Watch::default() };
        let (_, seen) = shell("exec sleep 600", &kill).unwrap();
        assert!(seen["took_s"].parse::<f64>().unwrap() >= 0.2);
        let begun = Watch { begun: Some(PathBuf::from("/nowhere/at/all")), ..Watch::default() };
        assert!(format!("{:#}", shell("true", &begun).unwrap_err()).contains("ended too early"));
    }
}
