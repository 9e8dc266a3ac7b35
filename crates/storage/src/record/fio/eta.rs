//! fio's progress line.

use super::number::{Step, short};
use crate::readings::{DIRECTIONS, StorageLive};

/// `Jobs: 4 (f=4): [r(4)][12.5%][r=56.3MiB/s][r=14.4k IOPS][eta 01m:45s]`, without an end of line: fio ends it with a
/// carriage return, and pads it with blanks to the length of the line before.
///
/// Unknown values show as `-.-%` and `--`. Only active directions are shown.
#[must_use]
pub fn eta(live: &StorageLive) -> String {
    let done = live.done.map_or_else(|| "-.-%".to_owned(), |done| format!("{:3.1}%", 100.0 * done.clamp(0.0, 1.0)));
    let bw = rates(&live.bytes_per_s, |rate| short(rate, 4, Step::Binary, "B/s"));
    let iops = rates(&live.ios_per_s, |rate| short(rate, 4, Step::Decimal, ""));
    let rates = match (bw.is_empty(), iops.is_empty()) {
        (true, true) => String::new(),
        _ => format!("[{bw}][{iops} IOPS]"),
    };
    let left = live.eta_s.map_or_else(|| "--".to_owned(), left);
    format!("Jobs: {} (f={}): [{}][{done}]{rates}[eta {left}]", live.running, live.files, runs(&live.states))
}

/// Run-length encoding: `rrw__` becomes `r(2),w(1),_(2)`.
fn runs(states: &str) -> String {
    let mut runs: Vec<(char, u32)> = Vec::new();
    for state in states.chars() {
        match runs.last_mut() {
            Some((last, n)) if *last == state => *n += 1,
            _ => runs.push((state, 1)),
        }
    }
    let runs: Vec<_> = runs.iter().map(|(state, n)| format!("{state}({n})")).collect();
    runs.join(",")
}

fn rates(rates: &[Option<f64>; DIRECTIONS], text: impl Fn(u64) -> String) -> String {
    let active = rates.iter().zip(["r", "w", "t"]).filter_map(|(rate, name)| {
        let rate = rate.filter(|rate| *rate >= 0.5)?;
        Some(format!("{name}={}", text(rate.round() as u64)))
    });
    active.collect::<Vec<_>>().join(",")
}

/// Seconds as `01m:45s`, with hours and days if needed.
fn left(seconds: u64) -> String {
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let rest = format!("{:02}m:{:02}s", seconds / 60 % 60, seconds % 60);
    match (days, hours) {
        (0, 0) => rest,
        (0, _) => format!("{hours:02}h:{rest}"),
        _ => format!("{days:02}d:{hours:02}h:{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_job_shows_what_moves() {
        let live = StorageLive {
            states: "rrrr".to_owned(),
            running: 4,
            files: 4,
            done: Some(0.125),
            eta_s: Some(105),
            bytes_per_s: [Some(56.3 * 1_048_576.0), Some(0.0), None],
            ios_per_s: [Some(14_400.0), Some(0.0), None],
        };
        assert_eq!(eta(&live), "Jobs: 4 (f=4): [r(4)][12.5%][r=56.3MiB/s][r=14.4k IOPS][eta 01m:45s]");
    }

    #[test]
    fn states_are_run_lengths_and_days_are_told() {
        let live = StorageLive {
            states: "__wP".to_owned(),
            running: 1,
            files: 1,
            done: Some(0.0),
            eta_s: Some(3 * 86_400 + 3600 + 57),
            bytes_per_s: [None, Some(409_600.0), None],
            ios_per_s: [None, Some(100.0), None],
        };
        assert_eq!(eta(&live), "Jobs: 1 (f=1): [_(2),w(1),P(1)][0.0%][w=400KiB/s][w=100 IOPS][eta 03d:01h:00m:57s]");
        assert_eq!(left(3600), "01h:00m:00s");
    }

    #[test]
    fn what_is_not_known_is_not_made_up() {
        let live = StorageLive { states: "I".to_owned(), ..StorageLive::default() };
        assert_eq!(eta(&live), "Jobs: 0 (f=0): [I(1)][-.-%][eta --]");
    }
}
