//! The metrics of the durable-write curve.

use super::info::SyncInfo;
use assay_measure::record::Metric;
use assay_measure::record::metric::{Better, Group, lower, plain};

/// One stream's durable write and commits per second by level of safety.
pub(super) fn all(info: &SyncInfo) -> Vec<Metric> {
    let of_layer = |metric: Metric| Metric { layer: "syscall".to_owned(), ..metric };
    let mut all = vec![
        lower(Group::Primary, "durable_write_us_p50", "durable 4 KiB write p50", &info.f0_us),
        lower(Group::Storage, "unsynced_write_us_p50", "unsynced 4 KiB write p50", &info.unsynced_us),
    ];
    for row in &info.safety {
        let scoped = |metric: Metric| Metric { scope: row.level.clone(), ..metric };
        for (key, name, figure) in [
            ("single_commits_per_s", "commits of one stream", &row.single_per_s),
            ("many_commits_per_s", "commits of all streams", &row.many_per_s),
        ] {
            let figure = figure.clone();
            let metric = plain(Group::Storage, key, name, "1/s", Better::Higher, figure);
            all.push(scoped(metric));
        }
        for (key, name, figure) in [
            ("single_commit_us_p50", "commit of one stream p50", &row.single_p50_us),
            ("many_commit_us_p99", "commit of all streams p99", &row.many_p99_us),
        ] {
            all.push(scoped(lower(Group::Storage, key, name, figure)));
        }
    }
    all.into_iter().map(of_layer).collect()
}
