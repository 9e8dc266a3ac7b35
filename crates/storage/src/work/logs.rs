//! Log files of single I/Os or of windows (`write_lat_log`, `write_bw_log`, ...), in fio's format:
//! `ms, value, direction, block size, [offset,] priority`.
//!
//! A clone fills buffers of rows. A thread of the run formats full buffers and writes them; the clone waits for
//! neither.

use crate::readings::{DIRECTIONS, Way};
use crate::spec::{Invocation, JobOptions, MeasureOptions};
use assay_measure::clock::Ns;
use assay_measure::histogram::Histogram;
use assay_run::engine::EngineError;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender};

/// Rows per batch.
const ROWS: usize = 1 << 15;
/// Number of buckets in fio's histogram; the last one counts everything longer.
const FIO_BUCKETS: usize = 1856;
const NS_PER_MS: u64 = 1_000_000;

/// The quantity of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    Slat,
    Clat,
    Lat,
    Bw,
    Iops,
    ClatHist,
}

impl Quantity {
    fn name(self) -> &'static str {
        match self {
            Self::Slat => "slat",
            Self::Clat => "clat",
            Self::Lat => "lat",
            Self::Bw => "bw",
            Self::Iops => "iops",
            Self::ClatHist => "clat_hist",
        }
    }
}

/// One row.
#[derive(Clone, Copy, Debug)]
struct Row {
    ms: u64,
    value: u64,
    /// For `log_window_value=both`.
    max: Option<u64>,
    way: u8,
    bytes: u32,
    offset: Option<u64>,
}

/// A batch for the writer.
#[derive(Debug)]
pub(super) enum Batch {
    Rows(PathBuf, Vec<RowText>),
}

/// A row, or a histogram with its time, direction and block size.
#[derive(Debug)]
pub(super) enum RowText {
    Row(RowOf),
    Histogram(u64, u8, u32, Histogram),
}

/// A row with its final values.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowOf(Row);

/// Sums of one direction in a window.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    n: u64,
    sum: u64,
    max: u64,
}

#[derive(Debug)]
struct Series {
    quantity: Quantity,
    path: PathBuf,
    rows: Vec<RowText>,
    window: [Sum; DIRECTIONS],
    /// Start of the window, ms.
    since_ms: u64,
}

/// The logs of one clone.
#[derive(Debug)]
pub(super) struct Logs {
    series: Vec<Series>,
    writer: Sender<Batch>,
    window_ms: u64,
    mean: bool,
    max: bool,
    offsets: bool,
    histograms: Vec<[Histogram; DIRECTIONS]>,
    histogram_ms: u64,
    histogram_since_ms: u64,
    block_bytes: [u32; DIRECTIONS],
    first_ns: Ns,
}

/// A completed I/O.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) way: Way,
    pub(super) start_ns: Ns,
    pub(super) issue_ns: Ns,
    pub(super) now: Ns,
    pub(super) bytes: u32,
    pub(super) offset: u64,
}

/// The logs that a job keeps.
fn wanted(measure: &MeasureOptions) -> Vec<(Quantity, &str)> {
    let mut wanted = Vec::new();
    if let Some(prefix) = &measure.lat_log {
        let of =
            [(Quantity::Slat, measure.no_slat), (Quantity::Clat, measure.no_clat), (Quantity::Lat, measure.no_lat)];
        wanted.extend(of.iter().filter(|(_, not)| !not).map(|(quantity, _)| (*quantity, prefix.as_str())));
    }
    for (prefix, quantity) in
        [(&measure.bw_log, Quantity::Bw), (&measure.iops_log, Quantity::Iops), (&measure.hist_log, Quantity::ClatHist)]
    {
        wanted.extend(prefix.as_deref().map(|prefix| (quantity, prefix)));
    }
    wanted
}

/// `PREFIX_lat.3.log` for the third clone of the run; without the number if all clones share a file.
fn path(options: &JobOptions, name: &str, number: u32, quantity: Quantity, prefix: &str) -> PathBuf {
    let prefix = if prefix.is_empty() { name } else { prefix };
    let kind = quantity.name();
    PathBuf::from(if options.measure.per_job_logs {
        format!("{prefix}_{kind}.{}.log", number + 1)
    } else {
        format!("{prefix}_{kind}.log")
    })
}

/// Refuses to overwrite log files of other origin.
///
/// # Errors
/// The first such file, unless `--destroy` names it.
pub(super) fn check(invocation: &Invocation) -> Result<(), EngineError> {
    let mut number = 0;
    for job in &invocation.jobs {
        for clone in 0..job.options.clones.max(1) {
            for (quantity, prefix) in wanted(&job.options.measure) {
                let path = path(&job.options, &job.name, number + clone, quantity, prefix);
                let there = std::fs::metadata(&path).is_ok_and(|meta| meta.len() > 0);
                if there && !invocation.output.destroy.contains(&path) {
                    return Err(EngineError::Unusable(format!(
                        "the log {} exists and does not belong to this run: remove it, choose another prefix, or use \
                         --destroy {}",
                        path.display(),
                        path.display()
                    )));
                }
            }
        }
        number += job.options.clones.max(1);
    }
    Ok(())
}

impl Logs {
    /// The logs of a clone; `None` if it keeps none.
    pub(super) fn new(options: &JobOptions, name: &str, number: u32, writer: &Sender<Batch>) -> Option<Self> {
        let measure = &options.measure;
        let series: Vec<Series> = wanted(measure)
            .into_iter()
            .map(|(quantity, prefix)| Series {
                quantity,
                path: path(options, name, number, quantity, prefix),
                rows: Vec::with_capacity(ROWS.min(1024)),
                window: Default::default(),
                since_ms: 0,
            })
            .collect();
        if series.is_empty() {
            return None;
        }
        let logs = Self {
            histograms: vec![std::array::from_fn(|_| Histogram::default())],
            series,
            writer: writer.clone(),
            window_ms: measure.log_average_ns / NS_PER_MS,
            mean: measure.log_mean || !measure.log_max,
            max: measure.log_max,
            offsets: measure.log_offset,
            histogram_ms: (measure.hist_log_ns / NS_PER_MS).max(1),
            histogram_since_ms: 0,
            block_bytes: std::array::from_fn(|way| options.pattern.blocks[way].max),
            first_ns: 0,
        };
        // Creates even a log without rows, like fio's slat log of a synchronous engine.
        for series in &logs.series {
            let _ = logs.writer.send(Batch::Rows(series.path.clone(), Vec::new()));
        }
        Some(logs)
    }

    /// Starts the measured time.
    pub(super) fn begin(&mut self, now: Ns) {
        self.first_ns = now;
    }

    /// Records an I/O.
    pub(super) fn ended(&mut self, io: &Ended, synchronous: bool) {
        let ms = (io.now - self.first_ns) / NS_PER_MS;
        let way = io.way.index();
        let mut series = std::mem::take(&mut self.series);
        for one in &mut series {
            let clat_ns = io.now - io.issue_ns;
            let value = match one.quantity {
                Quantity::Slat if synchronous => continue,
                Quantity::Slat => io.issue_ns - io.start_ns,
                Quantity::Clat => clat_ns,
                Quantity::Lat => io.now - io.start_ns,
                Quantity::Bw if self.window_ms > 0 => u64::from(io.bytes),
                Quantity::Bw => (u128::from(io.bytes) * 1_000_000_000 / 1024 / u128::from(clat_ns.max(1))) as u64,
                Quantity::Iops => 1,
                Quantity::ClatHist => {
                    self.histogram(one, ms, io, clat_ns);
                    continue;
                }
            };
            if self.window_ms == 0 {
                let row = Row {
                    ms,
                    value,
                    max: None,
                    way: way as u8,
                    bytes: io.bytes,
                    offset: self.offsets.then_some(io.offset),
                };
                self.push(one, RowText::Row(RowOf(row)));
                continue;
            }
            while ms >= one.since_ms + self.window_ms {
                self.turn_window(one, one.since_ms + self.window_ms);
            }
            let sum = &mut one.window[way];
            sum.n += 1;
            sum.sum += value;
            sum.max = sum.max.max(value);
        }
        self.series = series;
    }

    fn histogram(&mut self, series: &mut Series, ms: u64, io: &Ended, clat_ns: Ns) {
        while ms >= self.histogram_since_ms + self.histogram_ms {
            self.turn_histogram(series, self.histogram_since_ms + self.histogram_ms);
        }
        self.histograms[0][io.way.index()].record(clat_ns);
    }

    fn turn_histogram(&mut self, series: &mut Series, end_ms: u64) {
        for way in 0..DIRECTIONS {
            let histogram = std::mem::take(&mut self.histograms[0][way]);
            if histogram.count() > 0 {
                let row = RowText::Histogram(end_ms, way as u8, self.block_bytes[way], histogram);
                self.push(series, row);
            }
        }
        self.histogram_since_ms = end_ms;
    }

    /// Writes one row for each direction with any I/O in the window that ends now.
    fn turn_window(&mut self, series: &mut Series, end_ms: u64) {
        let length_ms = (end_ms - series.since_ms).max(1);
        series.since_ms = end_ms;
        for way in 0..DIRECTIONS {
            let sum = std::mem::take(&mut series.window[way]);
            if sum.n == 0 {
                continue;
            }
            // Rounds halves up.
            let over = |total: u64, by: u64| (total + by / 2) / by;
            let value = match series.quantity {
                Quantity::Bw => over(sum.sum.saturating_mul(1000) / 1024, length_ms),
                Quantity::Iops => over(sum.sum.saturating_mul(1000), length_ms),
                _ if !self.mean => sum.max,
                _ => over(sum.sum, sum.n),
            };
            let row = Row {
                ms: end_ms,
                value,
                max: (self.mean && self.max).then_some(sum.max),
                way: way as u8,
                bytes: 0,
                offset: self.offsets.then_some(0),
            };
            self.push(series, RowText::Row(RowOf(row)));
        }
    }

    fn push(&self, series: &mut Series, row: RowText) {
        series.rows.push(row);
        if series.rows.len() >= ROWS {
            let full = std::mem::replace(&mut series.rows, Vec::with_capacity(ROWS));
            // A writer that ended has reported why.
            let _ = self.writer.send(Batch::Rows(series.path.clone(), full));
        }
    }

    /// At the end of the clone: hands over the remaining rows, including the last window.
    pub(super) fn finish(mut self, now: Ns) {
        let ms = now.saturating_sub(self.first_ns) / NS_PER_MS;
        let mut series = std::mem::take(&mut self.series);
        for mut one in series.drain(..) {
            if one.quantity == Quantity::ClatHist {
                let end = ms.min(self.histogram_since_ms + self.histogram_ms);
                self.turn_histogram(&mut one, end);
            } else if self.window_ms > 0 {
                let end = ms.min(one.since_ms + self.window_ms).max(one.since_ms);
                self.turn_window(&mut one, end);
            }
            let _ = self.writer.send(Batch::Rows(one.path, one.rows));
        }
    }
}

/// Writes batches until every clone's sender is gone; returns the failures in words.
pub(super) fn write_all(batches: &Receiver<Batch>) -> Vec<String> {
    let mut files: Vec<(PathBuf, Option<BufWriter<File>>)> = Vec::new();
    let mut failures = Vec::new();
    let mut text = String::new();
    for Batch::Rows(path, rows) in batches {
        let place = match files.iter().position(|(known, _)| *known == path) {
            Some(place) => place,
            None => {
                let file = create(&path).map_err(|error| failures.push(failure(&path, &error)));
                files.push((path.clone(), file.ok()));
                files.len() - 1
            }
        };
        text.clear();
        rows.iter().for_each(|row| row.append(&mut text));
        let slot = &mut files[place].1;
        if let Some(file) = slot
            && let Err(error) = file.write_all(text.as_bytes())
        {
            failures.push(failure(&path, &error));
            *slot = None;
        }
    }
    for (path, file) in &mut files {
        if let Some(Err(error)) = file.as_mut().map(BufWriter::flush) {
            failures.push(failure(path, &error));
        }
    }
    failures
}

fn create(path: &Path) -> std::io::Result<BufWriter<File>> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    options.open(path).map(BufWriter::new)
}

fn failure(path: &Path, error: &std::io::Error) -> String {
    format!("the log {} is not complete: {error}", path.display())
}

impl RowText {
    fn append(&self, text: &mut String) {
        // Writing to a string cannot fail.
        let _ = match self {
            Self::Row(RowOf(row)) => {
                let _ = write!(text, "{}, {}, ", row.ms, row.value);
                if let Some(max) = row.max {
                    let _ = write!(text, "{max}, ");
                }
                let _ = write!(text, "{}, {}, ", row.way, row.bytes);
                if let Some(offset) = row.offset {
                    let _ = write!(text, "{offset}, ");
                }
                writeln!(text, "0")
            }
            Self::Histogram(ms, way, bytes, histogram) => {
                let _ = write!(text, "{ms}, {way}, {bytes}");
                let mut buckets = [0_u64; FIO_BUCKETS];
                for (slot, n) in histogram.sparse() {
                    buckets[(slot as usize).min(FIO_BUCKETS - 1)] += n;
                }
                for n in buckets {
                    let _ = write!(text, ", {n}");
                }
                writeln!(text)
            }
        };
    }
}
