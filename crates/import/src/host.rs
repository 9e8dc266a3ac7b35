//! The host's own statistics beside a run: `vmstat`, `mpstat`, `sar -u`, `sar -d`, `iostat`. Each line becomes a step of the series.
//!
//! Columns are found by their titles. The first report of `vmstat` and `iostat` covers the time since the host started,
//! so it is left out if more follow. Neither prints its interval: their steps are numbered.

use super::draft::{Draft, Reading};
use super::number;
use super::rows::{put_step, step};
use super::text::{At, Line, Text};
use super::{Confidence, ImportError};
use assay_measure::plain::slug;
use std::collections::BTreeSet;

/// Devices of one file at most.
const MOST_DEVICES: usize = 8;
const DAY_S: f64 = 86_400.0;

/// Titles of CPU columns, the series they go into: percent.
const CPU: [(&str, &str); 18] = [
    ("%guest", "host_guest_pct"),
    ("%gnice", "host_guest_nice_pct"),
    ("%user", "host_user_pct"),
    ("%usr", "host_user_pct"),
    ("us", "host_user_pct"),
    ("%nice", "host_nice_pct"),
    ("%system", "host_system_pct"),
    ("%sys", "host_system_pct"),
    ("sy", "host_system_pct"),
    ("%iowait", "host_iowait_pct"),
    ("wa", "host_iowait_pct"),
    ("%irq", "host_irq_pct"),
    ("%soft", "host_softirq_pct"),
    ("%steal", "host_steal_pct"),
    ("st", "host_steal_pct"),
    ("%idle", "host_idle_pct"),
    ("id", "host_idle_pct"),
    ("r", "procs_running_count"),
];

/// Titles of a device's columns, the series without its name, and what a unit is in ours.
const DEVICE: [(&str, &str, f64); 22] = [
    ("r/s", "disk_read_requests_per_s", 1.0),
    ("w/s", "disk_write_requests_per_s", 1.0),
    ("tps", "disk_requests_per_s", 1.0),
    ("rkB/s", "disk_read_kib_per_s", 1.0),
    ("wkB/s", "disk_write_kib_per_s", 1.0),
    ("kB_read/s", "disk_read_kib_per_s", 1.0),
    ("kB_wrtn/s", "disk_write_kib_per_s", 1.0),
    ("rMB/s", "disk_read_kib_per_s", 1024.0),
    ("wMB/s", "disk_write_kib_per_s", 1024.0),
    ("r_await", "disk_read_us_avg", 1e3),
    ("w_await", "disk_write_us_avg", 1e3),
    ("await", "disk_us_avg", 1e3),
    ("aqu-sz", "disk_in_queue_count", 1.0),
    ("avgqu-sz", "disk_in_queue_count", 1.0),
    ("%util", "disk_busy_pct", 1.0),
    ("areq-sz", "disk_request_kib", 1.0),
    ("rareq-sz", "disk_read_request_kib", 1.0),
    ("wareq-sz", "disk_write_request_kib", 1.0),
    ("d/s", "disk_discard_requests_per_s", 1.0),
    ("d_await", "disk_discard_us_avg", 1e3),
    ("f/s", "disk_flush_requests_per_s", 1.0),
    ("f_await", "disk_flush_us_avg", 1e3),
];

fn is_vmstat(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    ["us", "sy", "id", "wa"].iter().all(|title| words.contains(title)) && words.contains(&"cs")
}

fn is_cpu(line: &str) -> bool {
    line.contains("%idle") && line.contains("%iowait")
}

/// `Device`, `Device:`, `DEV` behind an optional time, and a column that only devices have.
fn is_device(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let named = words.any(|word| ["Device", "Device:", "DEV"].contains(&word));
    named && ["%util", "tps", "r/s"].iter().any(|title| line.contains(title))
}

/// Whether a line can be one of these tables: nothing, titles, or a row that is mostly numbers.
pub(super) fn may_print(line: &str) -> bool {
    const FEW: usize = 4;
    let (words, numbers) = line
        .split_whitespace()
        .fold((0, 0), |(words, numbers), word| (words + 1, numbers + usize::from(word.parse::<f64>().is_ok())));
    words == 0 || is_vmstat(line) || is_cpu(line) || is_device(line) || (numbers >= FEW && 2 * numbers >= words)
}

pub(super) fn looks_like(text: &Text) -> Confidence {
    let any = |is: fn(&str) -> bool| text.head().iter().any(|line| is(&line.text));
    let table = any(is_vmstat) || any(is_cpu) || any(is_device);
    Confidence::of(58, &[("titles of vmstat, mpstat, sar or iostat (%idle, us sy id wa, %util)", table)])
}

/// Which table the lines are in.
#[derive(Clone, PartialEq)]
enum Table {
    None,
    /// Titles, and whether a column in front names their owner.
    Cpu(Vec<String>),
    Devices(Vec<String>),
}

struct Reader {
    table: Table,
    /// Reports that `iostat` or `vmstat` has begun.
    reports: u32,
    /// More than one: the first is since the start of the host.
    skips_first: bool,
    begin_s: Option<f64>,
    devices: BTreeSet<String>,
}

pub(super) fn read(texts: &[Text], draft: &mut Draft) -> Result<(), ImportError> {
    draft.recognised("", "statistics of the host");
    for text in texts {
        let mut reader = Reader {
            table: Table::None,
            reports: 0,
            skips_first: reports(text) > 1,
            begin_s: None,
            devices: BTreeSet::new(),
        };
        if reader.skips_first {
            let at = At { file: text.file, line: 0 };
            draft.note(at, "the first report covers the time since the host started and was skipped");
        }
        for line in &text.lines {
            reader.line(line, draft);
        }
    }
    Ok(())
}

/// Reports without a time: lines of vmstat, CPU parts of iostat.
fn reports(text: &Text) -> usize {
    let lines = || text.lines.iter().map(|line| line.text.trim());
    let iostat = lines().filter(|line| line.starts_with("avg-cpu:")).count();
    let rows = |line: &&str| line.split_whitespace().take(15).all(|word| word.parse::<f64>().is_ok());
    if lines().any(is_vmstat) { lines().filter(|line| !line.is_empty()).filter(rows).count() } else { iostat }
}

impl Reader {
    fn line(&mut self, line: &Line, draft: &mut Draft) {
        let text = line.text.trim();
        if text.is_empty() {
            self.table = Table::None;
            return;
        }
        let titles = || text.split_whitespace().map(str::to_owned).collect();
        if is_vmstat(text) {
            self.table = Table::Cpu(titles());
        } else if is_cpu(text) {
            let is_iostat = text.starts_with("avg-cpu:");
            self.reports += u32::from(is_iostat);
            let titles: Vec<String> = titles();
            // `avg-cpu:` stands over no column.
            self.table = Table::Cpu(titles[usize::from(is_iostat)..].to_vec());
        } else if is_device(text) {
            self.table = Table::Devices(titles());
        } else if !text.starts_with("Average:") {
            self.row(line.at, text, draft);
        }
    }

    fn row(&mut self, at: At, text: &str, draft: &mut Draft) {
        let words: Vec<&str> = text.split_whitespace().collect();
        let titles = match &self.table {
            Table::None => return,
            Table::Cpu(titles) | Table::Devices(titles) => titles.clone(),
        };
        // A time may stand behind the figures of vmstat.
        let is_vmstat = titles.iter().any(|title| title == "cs");
        if words.len() < titles.len() || (words.len() > titles.len() && !is_vmstat) {
            return;
        }
        draft.saw(at);
        let clock = clock_s(&words);
        self.reports += u32::from(is_vmstat);
        if clock.is_none() && self.skips_first && self.reports < 2 {
            return;
        }
        let of_all = position(&titles, "CPU").is_none_or(|i| words[i] == "all");
        if !of_all {
            return;
        }
        let end_s = match clock {
            Some(clock) => {
                let begin = *self.begin_s.get_or_insert(clock);
                // The first line ends the first interval; its length is not known before the second.
                (clock - begin).rem_euclid(DAY_S)
            }
            None => f64::from(self.reports) - f64::from(u8::from(self.skips_first)),
        };
        let Some(step) = step(draft, end_s) else {
            return;
        };
        let device = match &self.table {
            Table::Devices(_) => {
                let name = ["Device", "Device:", "DEV"].iter().find_map(|title| position(&titles, title));
                let Some(name) = name.map(|i| words[i]) else {
                    return;
                };
                if !self.devices.contains(name) && self.devices.len() >= MOST_DEVICES {
                    return;
                }
                self.devices.insert(name.to_owned());
                Some(name)
            }
            _ => None,
        };
        let scope = format!("{end_s} s");
        for (title, word) in titles.iter().zip(&words) {
            let Some((series, factor)) = series_of(title, device) else {
                continue;
            };
            if let Some(printed) = number::measure(word) {
                let reading = Reading::new(at, series.clone(), printed.scaled(factor)).name(title);
                put_step(draft, reading.scope(&scope).layer("host"), &series, step);
            }
        }
    }
}

/// The series of a column.
fn series_of(title: &str, device: Option<&str>) -> Option<(String, f64)> {
    match device {
        None => {
            let (_, series) = CPU.iter().find(|(known, _)| *known == title)?;
            Some(((*series).to_owned(), 1.0))
        }
        Some(name) => {
            let (_, series, factor) = DEVICE.iter().find(|(known, ..)| *known == title)?;
            let (stem, unit) = unit_of(series);
            Some((format!("{stem}_{}_{unit}", slug(name)), *factor))
        }
    }
}

/// A series with its unit apart, since names end in their units.
fn unit_of(series: &str) -> (&str, &str) {
    const UNITS: [&str; 6] = ["request_kib", "requests_per_s", "kib_per_s", "us_avg", "count", "pct"];
    let found = UNITS.iter().find_map(|unit| Some((series.strip_suffix(unit)?, *unit)));
    let (stem, unit) = found.unwrap_or((series, ""));
    (stem.trim_end_matches('_'), unit)
}

fn position(titles: &[String], wanted: &str) -> Option<usize> {
    titles.iter().position(|title| title == wanted)
}

/// The time in front of a row, s of the day: `10:00:02`, `10:00:02 AM`.
fn clock_s(words: &[&str]) -> Option<f64> {
    let time = super::rows::clock_s(words.first()?)?.number()?;
    let half = 0.5 * DAY_S;
    Some(match words.get(1) {
        Some(&"PM") if time < half => time + half,
        Some(&"AM") if time >= half => time - half,
        _ => time,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{imported, survives, told};

    const SAMPLES: [&str; 4] = ["host-vmstat.txt", "host-iostat.txt", "host-mpstat.txt", "host-sar.txt"];

    #[test]
    fn every_sample_is_read_as_frozen() {
        for name in SAMPLES {
            insta::assert_snapshot!(name.replace('.', "_"), told(&imported(name)));
        }
    }

    #[test]
    fn the_time_since_the_start_of_the_host_is_no_step() {
        let record = imported("host-vmstat.txt");
        let idle = &record.series.metrics["host_idle_pct"];
        let idle: Vec<Option<f64>> = idle.iter().map(|figure| figure.value()).collect();
        assert_eq!(idle, [Some(61.0), Some(58.0), Some(60.0)]);
        let record = imported("host-iostat.txt");
        let busy = &record.series.metrics["disk_busy_nvme0n1_pct"];
        assert_eq!(busy.len(), 2);
        assert_eq!(busy[0].value(), Some(88.4));
    }

    #[test]
    fn only_all_cpus_together_are_the_host() {
        let record = imported("host-mpstat.txt");
        let user = &record.series.metrics["host_user_pct"];
        let user: Vec<Option<f64>> = user.iter().map(|figure| figure.value()).collect();
        assert_eq!(user, [Some(12.5), Some(13.5)]);
        assert_eq!(record.series.t_s, [0.0, 1.0]);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
        #[test]
        fn damaged_samples_never_panic(seed in 0_u64..u64::MAX, which in 0_usize..SAMPLES.len()) {
            survives(SAMPLES[which], seed);
        }
    }
}
