//! The contenders: how each is called, and what is read from what it prints.

use crate::bench::Options;
use crate::bench::fio;
use crate::bench::process::{self, When, Window};
use crate::bench::table::median;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// One program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// The program under test.
    Assay,
    /// fio.
    Fio,
    /// `t/io_uring` of fio's source: nothing but a ring.
    Ring,
}

/// What a program is asked to do.
#[derive(Clone, Debug)]
pub(super) struct Load {
    file: Option<PathBuf>,
    direction: &'static str,
    words: Vec<String>,
    /// I/Os are counted by the program's own report: the kernel's count of bytes knows nothing of them.
    reported: bool,
}

impl Load {
    /// I/O on a file, `direction` is `read` or `write`: the one whose figures are taken.
    pub(super) fn on(file: &Path, direction: &'static str, words: &[&str]) -> Self {
        Self {
            file: Some(file.to_path_buf()),
            direction,
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            reported: false,
        }
    }

    /// I/O that goes nowhere.
    pub(super) fn nowhere(engine: &str, words: &[&str]) -> Self {
        let load = Self {
            file: None,
            direction: "read",
            words: vec![format!("--ioengine={engine}"), "--size=1g".to_owned()],
            reported: true,
        };
        load.with(words)
    }

    /// With more words; of an option given twice the later counts.
    pub(super) fn with(mut self, words: &[&str]) -> Self {
        self.words.extend(words.iter().map(|word| (*word).to_owned()));
        self
    }

    /// Counted by the program's own report.
    pub(super) fn reported(mut self) -> Self {
        self.reported = true;
        self
    }

    /// The block size among the words, bytes.
    fn block_bytes(&self) -> f64 {
        let text =
            self.words.iter().rev().find_map(|word| word.strip_prefix("--bs=").or_else(|| word.strip_prefix("-b")));
        let text = text.unwrap_or("4k").to_ascii_lowercase();
        let digits = text.trim_end_matches(['k', 'm']);
        let scale = match text.chars().last() {
            Some('k') => 1024.0,
            Some('m') => 1024.0 * 1024.0,
            _ => 1.0,
        };
        digits.parse().map_or(f64::NAN, |number: f64| number * scale)
    }
}

/// What one measurement gave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shot {
    /// I/Os per second, as the program says itself.
    pub(super) iops: f64,
    /// CPU time of the whole process per I/O, us.
    pub(super) cpu_us: f64,
    /// Median completion latency, us; NaN where the program does not say.
    pub(super) p50_us: f64,
    /// 99th percentile of the same, us.
    pub(super) p99_us: f64,
    /// CPUs the process kept busy.
    cpus: f64,
}

impl Shot {
    /// I/Os per second and CPU in use; a load that leaves its CPU idle is not made better by it.
    pub(super) fn per_core(&self) -> f64 {
        self.iops / self.cpus.max(1.0)
    }
}

/// The bench under way.
pub(super) struct Bench<'a> {
    /// What was asked for.
    pub(super) options: &'a Options,
    /// `t/io_uring`, where it is.
    pub(super) ring: Option<PathBuf>,
}

impl Bench<'_> {
    /// Measures a program for some seconds, CPU and bytes over a window in their middle.
    ///
    /// # Errors
    /// When it fails or prints what cannot be read.
    pub(super) fn shoot(&self, peer: Peer, load: &Load) -> Result<Shot> {
        let short = load.file.is_none();
        let (after, window, runtime_s) = match (self.options.smoke, short) {
            (true, _) => (Duration::from_millis(300), Duration::from_millis(500), 1),
            (false, true) => (Duration::from_secs(1), Duration::from_secs(3), 5),
            (false, false) => (Duration::from_secs(2), Duration::from_secs(8), 11),
        };
        let mut command = self.command(peer, load)?;
        match peer {
            Peer::Ring => {
                // Its first line comes after a second, and is left out.
                command.arg(format!("-r{}", runtime_s.max(2)));
                command.args(&load.file);
            }
            Peer::Assay | Peer::Fio => {
                command.arg("--time_based");
                command.arg(format!("--runtime={runtime_s}"));
            }
        }
        let (output, window) = process::run(&mut command, Some(When { after, window }))?;
        let (iops, p50_us, p99_us) = match peer {
            Peer::Ring => (ring_iops(&output)?, f64::NAN, f64::NAN),
            Peer::Assay | Peer::Fio => {
                let result = fio::parse(&output, load.direction, window)?;
                (result.iops, result.p50_us, result.p99_us)
            }
        };
        Ok(Shot { iops, cpu_us: cpu_us(load, iops, &window), p50_us, p99_us, cpus: window.cpu_s / window.elapsed_s })
    }

    /// Runs a program to its end by its own amount of work.
    ///
    /// # Errors
    /// When it fails.
    pub(super) fn once(&self, peer: Peer, load: &Load) -> Result<()> {
        process::run(&mut self.command(peer, load)?, None)?;
        Ok(())
    }

    /// Removes a bench's file, and what may mark it as somebody's.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub(super) fn remove(&self, file: &Path) -> Result<()> {
        match std::fs::remove_file(file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("{}", file.display()))
            }
            _ => Ok(()),
        }
    }

    fn command(&self, peer: Peer, load: &Load) -> Result<Command> {
        let mut command = match peer {
            Peer::Assay => {
                let mut command = Command::new(&self.options.assay);
                command.args(["io", "--no-record"]);
                command
            }
            Peer::Fio => Command::new("fio"),
            Peer::Ring => {
                let program = self.ring.as_ref().context("no t/io_uring")?;
                let mut command = Command::new(program);
                command.args(&load.words);
                return Ok(command);
            }
        };
        command.args(["--output-format=json", "--name=bench", "--thread"]).current_dir(&self.options.dir);
        if let Some(file) = &load.file {
            command.arg(format!("--filename={}", file.display())).args(["--ioengine=io_uring", "--direct=1"]);
            if peer == Peer::Assay {
                // The file is fio's, and the writing parts mean it.
                command.arg("--destroy").arg(file);
            }
        }
        command.args(&load.words);
        Ok(command)
    }
}

/// CPU of the whole process over the I/Os of the same window, us.
fn cpu_us(load: &Load, iops: f64, window: &Window) -> f64 {
    let ios = if load.reported {
        iops * window.elapsed_s
    } else {
        (window.read_bytes + window.write_bytes) / load.block_bytes()
    };
    window.cpu_s * 1e6 / ios
}

/// The median of the lines `IOPS=11.56M, ...`, the first, which holds the start, left out.
fn ring_iops(output: &str) -> Result<f64> {
    let rate = |line: &str| {
        let text = line.strip_prefix("IOPS=")?.split(',').next()?;
        let scale = match text.chars().last()? {
            'M' => 1e6,
            'K' => 1e3,
            _ => 1.0,
        };
        let digits = text.trim_end_matches(['M', 'K']);
        Some(digits.parse::<f64>().ok()? * scale)
    };
    let rates: Vec<f64> = output.lines().filter_map(rate).collect();
    let kept = if rates.len() > 1 { &rates[1..] } else { &rates };
    let middle = median(kept);
    middle.is_finite().then_some(middle).with_context(|| format!("no IOPS in what t/io_uring printed: {output}"))
}

/// `ASSAY_T_IO_URING`, else beside fio, as its build leaves it.
pub(super) fn find_ring_tester() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("ASSAY_T_IO_URING") {
        return Some(PathBuf::from(named)).filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH")?;
    let beside = std::env::split_paths(&path)
        .filter(|dir| dir.join("fio").is_file())
        .flat_map(|dir| [dir.join("t/io_uring"), dir.join("io_uring")]);
    beside.into_iter().find(|path| path.is_file())
}

/// The type of the file system mounted exactly there.
///
/// # Errors
/// When the mount table cannot be read.
pub(super) fn file_system(point: &Path) -> Result<Option<String>> {
    let table = std::fs::read_to_string("/proc/self/mounts").context("/proc/self/mounts")?;
    let mut rows = table.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let found = rows.rfind(|row| row.get(1).is_some_and(|at| Path::new(at) == point));
    Ok(found.and_then(|row| row.get(2).map(|kind| (*kind).to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tester_is_read_without_its_first_line() {
        let output = "polled=0\nIOPS=9.00M, IOS/call=32/32\nIOPS=11.50M, BW=1GiB/s\nIOPS=880.00K, x\nIOPS=11.00M, x\n";
        assert_eq!(ring_iops(output).unwrap(), 11.0e6);
        assert_eq!(ring_iops("IOPS=900, x").unwrap(), 900.0);
        assert!(ring_iops("Maximum IOPS=1M").is_err());
    }

    #[test]
    fn block_sizes_are_read_in_both_spellings() {
        let of = |words: &[&str]| Load::on(Path::new("x"), "read", words).block_bytes();
        assert_eq!(of(&["--bs=8k"]), 8192.0);
        assert_eq!(of(&["--bs=4k", "--bs=1M"]), 1024.0 * 1024.0);
        assert_eq!(of(&["-d32", "-b8192"]), 8192.0);
        assert_eq!(of(&[]), 4096.0);
    }

    #[test]
    fn cpu_is_divided_by_what_the_kernel_moved_or_by_what_was_reported() {
        let window = Window { elapsed_s: 2.0, cpu_s: 1.0, read_bytes: 8192.0 * 1000.0, ..Window::default() };
        let load = Load::on(Path::new("x"), "read", &["--bs=8k"]);
        assert_eq!(cpu_us(&load, 1.0, &window), 1000.0);
        assert_eq!(cpu_us(&load.reported(), 250_000.0, &window), 2.0);
    }

    #[test]
    fn the_root_is_mounted_somehow() {
        assert!(file_system(Path::new("/")).unwrap().is_some());
        assert_eq!(file_system(Path::new("/nowhere/at/all")).unwrap(), None);
    }
}
