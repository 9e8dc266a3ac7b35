//! The seconds of every group as the record's series, and thus as CSV.

use crate::readings::{SecondReading, StorageReadings, Way};
use assay_measure::histogram::Histogram;
use assay_measure::record::percentile_us;
use assay_measure::record::{Figure, Series};
use assay_measure::snapshot::DiskReading;
use std::collections::BTreeSet;

const NS_PER_S: f64 = 1e9;

/// One row per second and group. `t_s` starts at the group's first measured time, and the column `group` identifies the
/// group. Unused directions have no columns.
pub(super) fn series(readings: &StorageReadings) -> Series {
    let seconds = &readings.seconds;
    let used = |way: &Way| seconds.iter().any(|second| second.ios[way.index()] > 0);
    let ways: Vec<Way> = Way::ALL.into_iter().filter(used).collect();
    let rated = seconds.iter().any(|second| second.response.is_some());
    let synced = seconds.iter().any(|second| second.syncs > 0);
    let disks: BTreeSet<&str> =
        (seconds.iter()).flat_map(|second| second.disks.iter().map(|disk| disk.name.as_str())).collect();
    let mut series = Series {
        step_s: if seconds.is_empty() { Figure::na("no whole second") } else { Figure::Decimal(1.0) },
        t_s: seconds.iter().map(|s| s.end_ns as f64 / NS_PER_S).collect(),
        in_window: vec![true; seconds.len()],
        ..Series::default()
    };
    let mut add = |name: String, of: &dyn Fn(&SecondReading) -> Figure| {
        let column = seconds.iter().map(of).collect();
        series.metrics.insert(name, column);
    };
    add("group".to_owned(), &|s| u64::from(s.group).into());
    // The last second of a group may be shorter; its rates are over its actual length.
    add("length_s".to_owned(), &|s| Figure::decimal(s.length_ns as f64 / NS_PER_S));
    for way in ways {
        let (at, name) = (way.index(), way.name());
        let rate = |second: &SecondReading, amount: f64| {
            Figure::decimal(amount * NS_PER_S).per(second.length_ns as f64, "no time passed")
        };
        add(format!("{name}_ios_count_per_s"), &|s| rate(s, s.ios[at] as f64));
        add(format!("{name}_mb_per_s"), &|s| rate(s, s.bytes[at] as f64 / 1e6));
        add(format!("{name}_lat_us_p50"), &|s| percentile_us(&s.lat[at], 0.5));
        add(format!("{name}_lat_us_p99"), &|s| percentile_us(&s.lat[at], 0.99));
        add(format!("{name}_lat_us_max"), &|s| largest(&s.lat[at]));
    }
    if rated {
        let response = |s: &SecondReading, of: &dyn Fn(&Histogram) -> Figure| {
            let all = s.response.as_ref();
            all.map_or_else(|| Figure::na("nothing counted"), of)
        };
        add("response_us_p50".to_owned(), &|s| response(s, &|all| percentile_us(all, 0.5)));
        add("response_us_p99".to_owned(), &|s| response(s, &|all| percentile_us(all, 0.99)));
        add("response_us_max".to_owned(), &|s| response(s, &largest));
    }
    if synced {
        add("syncs_count_per_s".to_owned(), &|s| {
            Figure::decimal(s.syncs as f64 * NS_PER_S).per(s.length_ns as f64, "no time passed")
        });
    }
    for disk in disks {
        device(disk, &mut add);
    }
    series
}

fn largest(latencies: &Histogram) -> Figure {
    let ns = latencies.max_ns();
    ns.map_or_else(|| Figure::na("nothing counted"), |ns| Figure::decimal(ns as f64 / 1e3))
}

/// A figure of one second.
type OfSecond<'a> = &'a dyn Fn(&SecondReading) -> Figure;

/// Adds the activity of a device in each second.
fn device(name: &str, add: &mut dyn FnMut(String, OfSecond<'_>)) {
    type Of = fn(&DiskReading, f64) -> Figure;
    const NONE: &str = "no requests";
    const COLUMNS: [(&str, Of); 5] = [
        ("busy_pct", |disk, length_ns| {
            Figure::decimal((100.0 * disk.busy_ns as f64).min(100.0 * length_ns)).per(length_ns, "no time passed")
        }),
        ("reads_count_per_s", |disk, length_ns| {
            Figure::decimal(disk.reads as f64 * NS_PER_S).per(length_ns, "no time passed")
        }),
        ("writes_count_per_s", |disk, length_ns| {
            Figure::decimal(disk.writes as f64 * NS_PER_S).per(length_ns, "no time passed")
        }),
        ("read_us_avg", |disk, _| Figure::decimal(disk.read_ns as f64 / 1e3).per(disk.reads as f64, NONE)),
        ("write_us_avg", |disk, _| Figure::decimal(disk.write_ns as f64 / 1e3).per(disk.writes as f64, NONE)),
    ];
    for (column, of) in COLUMNS {
        add(format!("device_{name}_{column}"), &|second| {
            let mut disks = second.disks.iter();
            let found = disks.find(|disk| disk.name == name);
            found.map_or_else(|| Figure::na("not read in this second"), |disk| of(disk, second.length_ns as f64))
        });
    }
}
