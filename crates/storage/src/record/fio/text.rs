//! fio's text report: one block per entry, the group totals, the disks.

use super::entry::{Entry, WayEntry, entries, group_way, groups};
use super::latency;
use super::latency::{Percentiles, put};
use super::number::{Step, depth_share, rate, short};
use super::options;
use super::wall;
use crate::readings::{JobReading, StorageReadings, Way};
use assay_measure::snapshot::DiskReading;

/// Names of the depth buckets.
pub(super) const DEPTHS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
/// Names of the batch buckets.
pub(super) const BATCHES: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];

/// fio's output before a run: one line per job, the version and the number of clones.
///
/// `version` is the result of [`super::version`]. Reads only the jobs, so any readings with these jobs will do.
#[must_use]
pub fn header(jobs: &[JobReading], version: &str) -> String {
    let mut text = String::new();
    for job in jobs {
        let label = &job.label;
        let size = |bytes| short(bytes, label.significant_figures, Step::Binary, "B");
        let blocks = Way::ALL.map(|way| {
            let (least, most) = label.block_bytes[way.index()];
            format!("({}) {}-{}", letter(way), size(least), size(most))
        });
        put(
            &mut text,
            format_args!(
                "{}: (g={}): rw={}, bs={}, ioengine={}, iodepth={}\n",
                job.name,
                job.group,
                label.rw,
                blocks.join(", "),
                label.ioengine,
                label.iodepth
            ),
        );
        if label.numjobs > 1 {
            text.push_str("...\n");
        }
    }
    let clones: u64 = jobs.iter().map(|job| u64::from(job.label.numjobs)).sum();
    let plural = if clones == 1 { "" } else { "s" };
    put(&mut text, format_args!("{version}\nStarting {clones} thread{plural}\n"));
    text
}

/// The report itself, from the blank line before the first entry to the disks.
#[must_use]
pub fn text(readings: &StorageReadings) -> String {
    let entries = entries(readings);
    let mut text = String::from("\n");
    for entry in &entries {
        put_entry(&mut text, readings, &entries, entry);
    }
    for group in groups(readings) {
        put_group(&mut text, &entries, group);
    }
    if !readings.disks.is_empty() {
        text.push_str("\nDisk stats (read/write):\n");
        for disk in &readings.disks {
            put_disk(&mut text, disk, readings.elapsed_ns);
        }
    }
    text
}

fn letter(way: Way) -> &'static str {
    match way {
        Way::Read => "R",
        Way::Write => "W",
        Way::Trim => "T",
    }
}

fn put_entry(text: &mut String, readings: &StorageReadings, entries: &[Entry<'_>], entry: &Entry<'_>) {
    let label = entry.label();
    let (error, error_text) = entry.error;
    let error_text = match (error, error_text) {
        (0, _) | (_, None) => String::new(),
        (_, Some(text)) => format!(" ({text})"),
    };
    put(
        text,
        format_args!(
            "{}: (groupid={}, jobs={}): err={error:2}{error_text}: pid={}: {}\n",
            entry.job.name,
            entry.job.group,
            entry.clones,
            entry.pid,
            wall::date(readings.timestamp_ms)
        ),
    );
    if let Some(description) = &label.description {
        put(text, format_args!("  Description  : [{description}]\n"));
    }
    let list = Percentiles::of(readings, entry.job);
    for way in Way::ALL {
        let figures = entry.way(way);
        if figures.ios > 0 {
            put_way(text, entries, entry, way, &list);
        }
    }
    put_families(text, entry);
    if !entry.sync.histogram.is_empty() {
        text.push_str("  fsync/fdatasync/sync_file_range:\n");
        latency::line(text, "sync", &entry.sync);
        latency::percentiles(text, "sync", &entry.sync, &list);
    }
    put_cpu(text, entry);
    put_depths(text, entry);
    put_issued(text, entry);
    if options::passes_errors(readings, entry) {
        put(
            text,
            format_args!(
                "     errors    : total={}, first_error={error}/<{}>\n",
                entry.errors_passed,
                entry.error.1.unwrap_or("Success")
            ),
        );
    }
    let goal = entry.goal();
    put(
        text,
        format_args!(
            "     latency   : target={}, window={}, percentile={:.2}%, depth={}\n",
            goal.target_ns, goal.window_us, goal.percentile, goal.depth
        ),
    );
    put_steady(text, entry);
}

fn put_way(text: &mut String, entries: &[Entry<'_>], entry: &Entry<'_>, way: Way, list: &Percentiles<'_>) {
    let label = entry.label();
    let figures = entry.way(way);
    let digits = label.significant_figures;
    let iops = short(rate(figures.ios, figures.runtime_ms), digits, Step::Decimal, "");
    let bw = figures.bytes_per_s();
    put(
        text,
        format_args!(
            "  {}: IOPS={iops}, BW={} ({})({}/{}msec){}\n",
            way.name(),
            short(bw, digits, Step::Binary, "B/s"),
            short(bw, digits, Step::Decimal, "B/s"),
            short(figures.bytes, digits, Step::Binary, "B"),
            figures.runtime_ms,
            // fio 3.33 prints zone resets, which only zoned devices have.
            if way == Way::Write { "; 0 zone resets" } else { "" },
        ),
    );
    latency::line(text, "slat", &figures.slat);
    latency::line(text, "clat", &figures.clat);
    latency::line(text, "lat", &figures.lat);
    if label.slat_percentiles {
        latency::percentiles(text, "slat", &figures.slat, list);
    }
    if label.clat_percentiles {
        latency::percentiles(text, "clat", &figures.clat, list);
    }
    if label.lat_percentiles {
        latency::percentiles(text, "lat", &figures.lat, list);
    }
    let group = group_way(entries, entry.job.group, way);
    put_samples(text, figures, group.percent_of(figures.bw.mean));
}

fn put_samples(text: &mut String, figures: &WayEntry, percent: f64) {
    let bw = &figures.bw;
    if bw.count > 0 {
        let (unit, scale) = if bw.mean > 1_048_576.0 { ("MiB/s", 1024) } else { ("KiB/s", 1) };
        put(
            text,
            format_args!(
                "   bw (  {unit}): min={:5}, max={:5}, per={percent:3.2}%, avg={:5.2}, stdev={:5.2}, samples={}\n",
                bw.min / scale,
                bw.max / scale,
                bw.mean / scale as f64,
                bw.stddev() / scale as f64,
                bw.count
            ),
        );
    }
    let iops = &figures.iops;
    if iops.count > 0 {
        put(
            text,
            format_args!(
                "   iops        : min={:5}, max={:5}, avg={:5.2}, stdev={:5.2}, samples={}\n",
                iops.min,
                iops.max,
                iops.mean,
                iops.stddev(),
                iops.count
            ),
        );
    }
}

/// `lat (usec)   : 50=0.14%, ...`: five per line.
fn put_families(text: &mut String, entry: &Entry<'_>) {
    for (unit, shares) in latency::families(&entry.families, entry.ios()) {
        let used: Vec<_> = shares.iter().filter(|(_, share)| *share > 0.0).collect();
        for line in used.chunks(5) {
            let shares: Vec<_> = line.iter().map(|(bound, share)| format!("{bound}={share:.2}%")).collect();
            put(text, format_args!("  lat ({unit})   : {}\n", shares.join(", ")));
        }
    }
}

fn put_cpu(text: &mut String, entry: &Entry<'_>) {
    put(
        text,
        format_args!(
            "  cpu          : usr={:3.2}%, sys={:3.2}%, ctx={}, majf={}, minf={}\n",
            entry.user_percent(),
            entry.system_percent(),
            entry.context_switches,
            entry.major_faults,
            entry.minor_faults
        ),
    );
}

/// Share of each bucket; at least 0.1 % if it is not empty.
pub(super) fn shares(counts: &[u64; 7]) -> [f64; 7] {
    let total = counts.iter().sum();
    counts.map(|count| depth_share(count, total))
}

fn put_depths(text: &mut String, entry: &Entry<'_>) {
    let line = |counts: &[u64; 7], names: &[&str; 7]| {
        let shares = names.iter().zip(shares(counts));
        let shares: Vec<_> = shares.map(|(name, pct)| format!("{name}={pct:3.1}%")).collect();
        shares.join(", ")
    };
    put(text, format_args!("  IO depths    : {}\n", line(&entry.depths, &DEPTHS)));
    put(text, format_args!("     submit    : {}\n", line(&entry.submits, &BATCHES)));
    put(text, format_args!("     complete  : {}\n", line(&entry.completes, &BATCHES)));
}

fn put_issued(text: &mut String, entry: &Entry<'_>) {
    let [read, write, trim] = Way::ALL.map(|way| entry.way(way));
    put(
        text,
        format_args!(
            "     issued rwts: total={},{},{},{} short={},{},{},0 dropped=0,0,0,0\n",
            read.ios,
            write.ios,
            trim.ios,
            entry.sync.histogram.count(),
            read.short_ios,
            write.short_ios,
            trim.short_ios
        ),
    );
}

/// fio 3.33 prints the decimal rate here as if the KiB were bytes; this is the correct one.
fn put_steady(text: &mut String, entry: &Entry<'_>) {
    let Some(steady) = &entry.job.steady else {
        return;
    };
    let digits = entry.label().significant_figures;
    let mean = |values: &[u64]| match values.len() as u64 {
        0 => 0,
        n => values.iter().sum::<u64>() / n,
    };
    let bw = mean(&steady.bw_kib_per_s) * 1024;
    let (metric, _) = steady.criterion.split_once(':').unwrap_or((&steady.criterion, ""));
    let slope = metric.ends_with("_slope");
    let value = if slope { steady.slope } else { steady.deviation_pct };
    let value = match (slope, steady.criterion.ends_with('%'), steady.last, value) {
        (_, true, Some(last), _) => format!("{last:.3}%"),
        (_, false, Some(last), _) => format!("{last:.3}"),
        (_, _, None, Some(value)) => format!("{value:.3}"),
        (_, _, None, None) => "n/a (no full window)".to_owned(),
    };
    put(
        text,
        format_args!(
            "  steadystate  : attained={}, bw={} ({}), iops={}, {}{}={value}\n",
            if steady.attained { "yes" } else { "no" },
            short(bw, digits, Step::Binary, "B/s"),
            short(bw, digits, Step::Decimal, "B/s"),
            short(mean(&steady.iops), digits, Step::Decimal, ""),
            metric.trim_end_matches("_slope"),
            if slope { " slope" } else { " mean dev" },
        ),
    );
}

fn put_group(text: &mut String, entries: &[Entry<'_>], group: u32) {
    put(text, format_args!("\nRun status group {group} (all jobs):\n"));
    let first = entries.iter().find(|entry| entry.job.group == group);
    let digits = first.map_or(4, |entry| entry.label().significant_figures);
    let both = |amount: u64, unit: &str| {
        (short(amount, digits, Step::Binary, unit), short(amount, digits, Step::Decimal, unit))
    };
    for way in Way::ALL {
        let total = group_way(entries, group, way);
        if total.runtime_ms.1 == 0 {
            continue;
        }
        let (bw, bw_10) = both(total.total_bytes_per_s(), "B/s");
        let (least, least_10) = both(total.bytes_per_s.0, "B/s");
        let (most, most_10) = both(total.bytes_per_s.1, "B/s");
        let (bytes, bytes_10) = both(total.bytes, "B");
        put(
            text,
            format_args!(
                "{:>7}: bw={bw} ({bw_10}), {least}-{most} ({least_10}-{most_10}), io={bytes} ({bytes_10}), run={}-{}msec\n",
                way.name().to_uppercase(),
                total.runtime_ms.0,
                total.runtime_ms.1
            ),
        );
    }
}

fn put_disk(text: &mut String, disk: &DiskReading, elapsed_ns: u64) {
    let figures = DiskFigures::of(disk, elapsed_ns);
    put(
        text,
        format_args!(
            "  {}: ios={}/{}, merge={}/{}, ticks={}/{}, in_queue={}, util={:3.2}%\n",
            disk.name,
            disk.reads,
            disk.writes,
            disk.read_merges,
            disk.write_merges,
            figures.read_ms,
            figures.write_ms,
            figures.in_queue_ms,
            figures.util
        ),
    );
}

/// The times of a disk as in fio: ms, and the percentage of the run with requests in flight.
pub(super) struct DiskFigures {
    pub(super) read_ms: u64,
    pub(super) write_ms: u64,
    pub(super) in_queue_ms: u64,
    pub(super) util: f64,
}

impl DiskFigures {
    pub(super) fn of(disk: &DiskReading, elapsed_ns: u64) -> Self {
        Self {
            read_ms: disk.read_ns / 1_000_000,
            write_ms: disk.write_ns / 1_000_000,
            in_queue_ms: disk.weighted_ns / 1_000_000,
            util: super::number::percent(disk.busy_ns, elapsed_ns).min(100.0),
        }
    }
}
