//! Detects configured limits: of the control group, of a provider or of an array.

use super::options::Options;
use super::options::{in_memory, no_file};
use super::view::{FLAT, View, is_flat, value};
use super::warnings::CPU_BOUND_PCT;
use crate::record::info::StorageGroup;
use assay_measure::cap::{self, Cap};
use assay_measure::record::Advice;
use assay_measure::rule::Rule;
use assay_measure::units::{fixed, thousands};

/// Two top levels that differ by no more than this are the same.
const SAME: f64 = 0.01;
/// If requests queue at a limit, the mean latency is at least this many times that of the quickest I/O.
const QUEUED: f64 = 2.0;
/// Whether neither the options nor the CPU limit the group.
fn device_bound(view: &View<'_>, group: &StorageGroup) -> bool {
    let jobs = || view.readings.jobs.iter().zip(&view.info.jobs);
    let of_group = || jobs().filter(|(_, job)| job.group == group.group);
    !no_file(view.readings)
        && !in_memory(view.readings)
        && of_group().all(|(reading, job)| {
            let saturating = Options::of(view.readings, reading).saturating().is_ok();
            let cpu = job.cpu.thread_cpu_max_pct.value().unwrap_or(0.0);
            saturating && cpu < CPU_BOUND_PCT && Options::of(view.readings, reading).direct()
        })
}

/// I/Os in flight that the group requested.
fn depth(view: &View<'_>, group: &StorageGroup) -> u64 {
    let jobs = view.readings.jobs.iter().zip(&view.info.jobs);
    let of_group = jobs.filter(|(_, job)| job.group == group.group);
    of_group.map(|(reading, job)| Options::of(view.readings, reading).depth() * job.numjobs_count.max(1)).sum()
}

/// Maximum relative distance of a rate that counts as being at a limit.
const NEAR: f64 = 0.03;

pub(super) const HOST_LIMIT: Rule = Rule {
    id: "A5",
    title: "A limit of the control group is reached",
    changes_figures: false,
    fires_when: || {
        format!(
            "A rate of the group is within {} % of a limit that its control group sets on the device; always high",
            100.0 * NEAR
        )
    },
    why: "The figures show this limit, not the device.",
    what_to_do: "Raise the limit to measure the device.",
    cannot_judge_when: "The host names no limit: then the rule is silent.",
    source: "Decided here.",
};

pub(super) fn host_limit(view: &View<'_>, group: &StorageGroup) -> Option<Advice> {
    let facts = view.record.host.facts.iter();
    let facts = facts.chain(&view.readings.facts);
    let limits = facts.filter_map(|fact| {
        let name = fact.name.strip_prefix("io_cap_")?;
        let (per_s, by) = fact.value.split_once(" by ")?;
        Some((name, per_s.parse::<f64>().ok()?, by))
    });
    let mut near = limits.filter_map(|(name, limit, by)| {
        let way = ["read", "write"].into_iter().find(|way| name.contains(way))?;
        let row = group.ways.iter().find(|row| row.way == way)?;
        let (found, unit) = if name.ends_with("bytes") {
            (value(&row.mb_per_s) * 1e6, "bytes")
        } else {
            (value(&row.ios_per_s), "I/Os")
        };
        ((found / limit - 1.0).abs() <= NEAR).then_some((way, found, limit, unit, by))
    });
    let (way, found, limit, unit, by) = near.next()?;
    let text = format!(
        "{} {unit} per second of {way}s are at the limit of {} set by {by}.",
        thousands(found as u64),
        thousands(limit as u64)
    );
    let evidence = [("found_per_s", found), ("limit_per_s", limit)];
    Some(HOST_LIMIT.explain(true, text, &evidence))
}

/// Minimum number of I/Os in flight with which requests can queue at a limit.
const LEAST_DEPTH: u64 = 4;
/// Block sizes that differ by this factor distinguish a limit on I/Os from one on bytes.
const BLOCKS_APART: f64 = 2.0;

pub(super) const FLAT_TOP: Rule = Rule {
    id: "A6",
    title: "The same flat top: a limit",
    changes_figures: false,
    fires_when: || {
        format!(
            "With direct I/O, a depth of at least {LEAST_DEPTH} and CPU left, two groups whose block sizes are at least {BLOCKS_APART} times apart end at the same flat IOPS or MiB/s within {} %; always high",
            100.0 * SAME
        )
    },
    why: "A provider, a hypervisor, an array or a control group sets the rate, and a device varies more.",
    what_to_do: "Measure at twice the block size and at half the depth: under a limit on I/Os the rate stays the same.",
    cannot_judge_when: "The jobs do not saturate, or the CPU is the limit: then the rule is silent.",
    source: "Decided here.",
};

/// The cap that the seconds of a group look like, where nothing names it already.
pub(super) fn of(view: &View<'_>, group: &StorageGroup) -> Option<Cap> {
    let is_named = host_limit(view, group).is_some() || same_top(view).is_some();
    if no_file(view.readings) || is_named {
        return None;
    }
    // At a limit, requests that wait are slow on average although the quickest are quick; when they queue at a device,
    // the quickest wait too.
    let waits = || {
        let way = group.ways.iter().max_by_key(|way| way.ios_count)?;
        let quick = way.lat.us_min.value().filter(|us| *us > 0.0)?;
        Some(way.lat.us_avg.value()? >= QUEUED * quick)
    };
    let is_queued = device_bound(view, group) && depth(view, group) >= LEAST_DEPTH && waits() == Some(true);
    cap::of_group(view.record, Some(group.group.into()), |_| is_queued)
}

/// Finding from several groups: the same flat top at block sizes at least a factor of two apart.
pub(super) fn same_top(view: &View<'_>) -> Option<Advice> {
    let tops: Vec<&StorageGroup> = (view.info.groups.iter())
        .filter(|group| group.analysed == "IOPS" && device_bound(view, group))
        .filter(|group| depth(view, group) >= LEAST_DEPTH)
        .filter(|group| group.levels.last().is_some_and(is_flat))
        .collect();
    let top = |group: &StorageGroup| {
        let level = group.levels.last();
        level.map_or((0.0, 0.0), |level| (value(&level.median), value(&level.mib_per_s)))
    };
    let same = |a: f64, b: f64| (a / b - 1.0).abs() <= SAME;
    let ways = |group: &StorageGroup| {
        let rows = group.ways.iter().map(|row| row.way.clone());
        rows.collect::<Vec<_>>()
    };
    let pairs = tops.iter().enumerate().flat_map(|(at, a)| {
        let later = tops[at + 1..].iter();
        later.map(move |b| (*a, *b))
    });
    pairs.filter(|(a, b)| ways(a) == ways(b)).find_map(|(a, b)| {
        let ((a_iops, a_mib), (b_iops, b_mib)) = (top(a), top(b));
        let blocks = (a_mib / a_iops) / (b_mib / b_iops);
        if !(blocks >= BLOCKS_APART || blocks <= 1.0 / BLOCKS_APART) {
            return None;
        }
        let (what, top, meaning) = if same(a_iops, b_iops) {
            (
                "I/Os per second",
                a_iops,
                "it counts I/Os, not bytes: the provider, the hypervisor, the array or a control group sets it, \
                     or it is the maximum of the drive. Larger blocks give more bytes per second",
            )
        } else if same(a_mib, b_mib) {
            (
                "MiB/s",
                a_mib,
                "it counts bytes, not I/Os: a provider's limit, or the link to the device. Smaller blocks give \
                     more I/Os per second",
            )
        } else {
            return None;
        };
        let text = format!(
            "A limit on {what}: the block sizes of groups {} and {} differ by a factor of {}, and both end at \
                 the same flat {} {what} (variation at most {} %): {meaning}. Compare it with the rate that the \
                 provider promises.",
            a.group,
            b.group,
            fixed(blocks.max(1.0 / blocks), 1),
            thousands(top as u64),
            fixed(100.0 * FLAT, 0)
        );
        // These groups are the measurement that the rule recommends.
        Some(FLAT_TOP.finding(true, text, &[("top_per_s", top)]))
    })
}
