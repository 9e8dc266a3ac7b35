//! The first things to know of a storage probe: its jobs, their rates and slow ones, whether its level held.

use crate::record::info::StorageInfo;
use assay_measure::kind::{Headline, Line, Told};
use assay_measure::units::{fixed, shorten};

/// Groups whose rates are shown.
const GROUPS: usize = 4;

/// The headline of a probe.
pub(super) fn of(info: &StorageInfo) -> Headline {
    Headline {
        tested: tested(info),
        rows: rows(info),
        steadiness: steadiness(info),
    }
}

fn tested(info: &StorageInfo) -> String {
    let jobs: Vec<String> = info
        .jobs
        .iter()
        .take(3)
        .map(|job| {
            let depth = job.iodepth_count * job.numjobs_count.max(1);
            format!(
                "{} ({} of {}, {depth} in flight)",
                job.name, job.rw, job.block_sizes
            )
        })
        .collect();
    let more = match info.jobs.len() {
        0..=3 => String::new(),
        jobs => format!(" and {} more", jobs - 3),
    };
    format!(
        "The bare storage, without a database: {}{more}.",
        jobs.join(", ")
    )
}

fn rows(info: &StorageInfo) -> Vec<Line> {
    let mut lines = Vec::new();
    for group in info.groups.iter().take(GROUPS) {
        let lead = match info.groups.len() {
            1 => String::new(),
            _ => format!("{}: ", shorten(&group.jobs.join(", "), 30)),
        };
        for way in &group.ways {
            let slow = match way.response.p99_us.value() {
                Some(_) => &way.response.p99_us,
                None => &way.lat.p99_us,
            };
            let told = vec![
                Told::new(&way.ios_per_s, &format!("{}s/s", way.way)),
                Told::new(&way.mb_per_s, "MB/s (10^6)"),
                Told {
                    otherwise: "p99 n/a (too few samples)".to_owned(),
                    ..Told::new(slow, "us p99")
                },
            ];
            let title = if lines.is_empty() { "Rate and p99" } else { "" };
            lines.push(Line {
                lead: lead.clone(),
                ..Line::of(title, told, "")
            });
        }
    }
    if info.groups.len() > GROUPS {
        let more = format!("and {} more groups", info.groups.len() - GROUPS);
        lines.push(Line::of("", Vec::new(), &more));
    }
    lines
}

fn steadiness(info: &StorageInfo) -> String {
    let Some(group) = info.groups.iter().max_by_key(|group| group.changes.len()) else {
        return "n/a (no jobs)".to_owned();
    };
    let variation =
        group
            .iops_total_per_s
            .variation_ratio
            .value()
            .map_or_else(String::new, |ratio| {
                format!(
                    "; seconds vary by {} % of their mean",
                    fixed(100.0 * ratio, 1)
                )
            });
    if let Some(why) = &group.not_analysed {
        return format!("n/a ({why}){variation}");
    }
    if group.analysed.is_empty() {
        return format!("n/a (no figures by the second){variation}");
    }
    match (group.changes.len(), group.drift_ratio.value()) {
        (0, None) => {
            format!("steady: no change of level and no drift over the seconds{variation}.")
        }
        (0, Some(drift)) => format!(
            "not steady: it drifts by {} % from begin to end{variation}.",
            fixed(100.0 * drift, 0)
        ),
        (changes, _) => format!(
            "not steady: {changes} change(s) of level{variation}; price and rate are those of the last level."
        ),
    }
}
