//! The metrics of a storage probe: for the whole probe and for each job.

use crate::record::info::{StorageInfo, StorageLatency, StorageWay};
use assay_measure::record::metric::{Better, Group, lower, plain};
use assay_measure::record::{Figure, Metric};

/// All metrics.
pub(super) fn all(info: &StorageInfo) -> Vec<Metric> {
    let mut all = primary(info);
    all.extend(jobs(info));
    all
}

/// Metrics of the whole probe: its groups combined, latency only if there is a single group.
fn primary(info: &StorageInfo) -> Vec<Metric> {
    let mut all = Vec::new();
    let [group] = info.groups.as_slice() else {
        return all;
    };
    for way in &group.ways {
        let (plural, layer) = (format!("{}s_per_s", way.way), "syscall");
        let name = format!("{} IOPS", way.way);
        let better = Better::Higher;
        all.push(Metric {
            layer: layer.to_owned(),
            series: Some(format!("{}_ios_count_per_s", way.way)),
            ..plain(Group::Primary, &plural, &name, "1/s", better, way.ios_per_s.clone())
        });
        for (suffix, figure) in latencies(&way.lat) {
            if ["avg", "p50", "p99"].contains(&suffix) {
                let name = format!("{} latency {suffix}", way.way);
                let key = format!("{}_us_{suffix}", way.way);
                all.push(Metric { layer: layer.to_owned(), ..lower(Group::Primary, &key, &name, figure) });
            }
        }
        for (suffix, figure) in submitted_only(way) {
            if ["p50", "p99"].contains(&suffix) {
                let name = format!("{} clat {suffix}", way.way);
                let key = format!("{}_clat_us_{suffix}", way.way);
                all.push(Metric { layer: layer.to_owned(), ..lower(Group::Primary, &key, &name, figure) });
            }
        }
    }
    all
}

fn latencies(latency: &StorageLatency) -> [(&'static str, &Figure); 9] {
    [
        ("avg", &latency.us_avg),
        ("min", &latency.us_min),
        ("p50", &latency.us_p50),
        ("p90", &latency.us_p90),
        ("p95", &latency.us_p95),
        ("p99", &latency.us_p99),
        ("p999", &latency.us_p999),
        ("p9999", &latency.us_p9999),
        ("max", &latency.us_max),
    ]
}

/// Statistics that exist only from the submission on: fio's own percentiles exclude the time to submit.
fn submitted_only(way: &StorageWay) -> Vec<(&'static str, &Figure)> {
    let pairs = latencies(&way.lat).into_iter().zip(latencies(&way.clat));
    pairs
        .filter(|((_, lat), (_, clat))| lat.value().is_none() && clat.value().is_some())
        .map(|(_, clat)| clat)
        .collect()
}

/// Metrics of each job and direction.
fn jobs(info: &StorageInfo) -> Vec<Metric> {
    let mut all = Vec::new();
    for (i, job) in info.jobs.iter().enumerate() {
        // Several jobs may share a name; from the second on, their position distinguishes them.
        let is_second = info.jobs[..i].iter().any(|other| other.name == job.name);
        let scope = if is_second { format!("{} {}", job.name, i + 1) } else { job.name.clone() };
        all.extend(job.search.as_ref().map(|search| Metric {
            scope: scope.clone(),
            ..plain(
                Group::Storage,
                "latency_target_depth_count",
                "I/Os in flight within latency_target",
                "",
                Better::Higher,
                if search.attained {
                    Figure::Count(search.depths_count.iter().sum())
                } else {
                    Figure::na("no depth was shown to meet it")
                },
            )
        }));
        all.extend(job.ways.iter().flat_map(|way| storage_way(&scope, way)));
    }
    all
}

fn storage_way(job: &str, way: &StorageWay) -> Vec<Metric> {
    let of_job = |metric: Metric| Metric { scope: job.to_owned(), layer: "syscall".to_owned(), ..metric };
    let way_name = &way.way;
    let (group, higher) = (Group::Storage, Better::Higher);
    let mut all = vec![
        of_job(plain(
            group,
            &format!("{way_name}_ios_per_s"),
            &format!("{way_name} IOPS"),
            "1/s",
            higher,
            way.ios_per_s.clone(),
        )),
        of_job(plain(
            group,
            &format!("{way_name}_mib_per_s"),
            &format!("{way_name} MiB/s"),
            "MiB/s",
            higher,
            way.mib_per_s.clone(),
        )),
    ];
    for (suffix, figure) in latencies(&way.lat) {
        let key = format!("{way_name}_lat_us_{suffix}");
        let name = format!("{way_name} latency {suffix}");
        all.push(of_job(lower(group, &key, &name, figure)));
    }
    for (suffix, figure) in submitted_only(way) {
        let key = format!("{way_name}_clat_us_{suffix}");
        let name = format!("{way_name} clat {suffix}");
        all.push(of_job(lower(group, &key, &name, figure)));
    }
    all
}
