//! What follows from the figures of a storage probe: what is seen, how sure, what to try. Rules,
//! thresholds and sources: docs/design/io-record.md.

use super::caps;
use super::options::Options;
use super::options::{in_memory, no_file};
use super::view::{SUSTAINED_S, View, is_flat, lead, length, value};
use crate::readings::StorageReadings;
use crate::record::info::{StorageChange, StorageGroup, StorageInfo, StorageJob, StorageLevel, StoragePrecondition};
use assay_measure::record::{Advice, Record};
use assay_measure::units::{fixed, size, thousands};

/// A level below this share of the one before is a fall worth a cause.
const FALL: f64 = 0.8;
/// Share of bytes written from which on a group counts as writing.
const WRITES: f64 = 0.5;

/// All findings, the weightiest first, then in the order of the rules.
pub(super) fn advise(readings: &StorageReadings, info: &StorageInfo, record: &Record) -> Vec<Advice> {
    let view = View { readings, info, record };
    let mut found = Vec::new();
    for group in &info.groups {
        found.extend(view.fall(group));
        found.extend(view.other_change(group));
        found.extend(caps::host_limit(&view, group));
        found.extend(caps::flat_top(&view, group));
        found.extend(view.stalls(group));
        found.extend(view.drift(group));
        found.extend(view.uneven(group));
    }
    // Both limits at once are said once.
    match super::limits::two_limits(&info.groups) {
        Some(both) => found.push(both),
        None => found.extend(caps::same_top(&view)),
    }
    found.extend(info.precondition.iter().filter_map(precondition));
    for job in &info.jobs {
        found.extend(view.steady(job));
        found.extend(view.tail(job));
        found.extend(view.short(job));
        found.extend(view.late(job));
    }
    found.sort_by_key(|advice| advice.severity != "high");
    found
}

fn chance(change: &StorageChange) -> String {
    format!("probability in steady noise at most {} %", fixed(100.0 * value(&change.chance_ratio), 1))
}

/// A14: preconditioning ended before its rounds were alike.
fn precondition(before: &StoragePrecondition) -> Option<Advice> {
    if before.attained {
        return None;
    }
    let percent = |figure: &assay_measure::record::Figure| {
        figure.value().map_or_else(
            || format!("n/a ({})", figure.reason().unwrap_or("absent")),
            |value| format!("{} %", fixed(value, 0)),
        )
    };
    let text = format!(
        "{}: preconditioning ({}) ended after {} rounds before the last {} were alike (spread {}, slope {}): the \
         device had not reached a steady state when the jobs measured it.",
        before.job,
        before.method,
        before.round_ios_per_s.len(),
        before.window_rounds_count,
        percent(&before.excursion_pct),
        percent(&before.slope_pct)
    );
    Some(Advice::of("A14", true, text, &[]))
}

impl View<'_> {
    /// The share of written bytes.
    fn writes(&self, group: &StorageGroup) -> f64 {
        let bytes = |way: &str| -> f64 {
            let ways = group.ways.iter().filter(|row| row.way == way);
            ways.map(|row| row.moved_bytes as f64).sum()
        };
        bytes("write") / (bytes("write") + bytes("read")).max(1.0)
    }

    /// A1, A2: throughput fell for good: a write cache filled, or a credit was spent.
    fn fall(&self, group: &StorageGroup) -> Option<Advice> {
        if group.analysed != "IOPS" || no_file(self.readings) {
            return None;
        }
        let at = group.changes.iter().position(|change| {
            let ratio = change.ratio.value();
            ratio.is_some_and(|ratio| ratio <= FALL)
        })?;
        let (change, before, after) = (&group.changes[at], &group.levels[at], group.levels.last()?);
        // What recovers later was a disturbance.
        let lasting = value(&after.median) / value(&before.median).max(f64::MIN_POSITIVE);
        if lasting > FALL {
            return None;
        }
        let lead = lead(self.info, group);
        let seen = format!(
            "{lead}throughput fell from {} to {} I/Os per second ({} to {} MiB/s) {} s after the start ({})",
            thousands(value(&before.median).round() as u64),
            thousands(value(&after.median).round() as u64),
            fixed(value(&before.mib_per_s), 1),
            fixed(value(&after.mib_per_s), 1),
            fixed(value(&change.at_s), 0),
            chance(change)
        );
        let evidence = [
            ("before_per_s", value(&before.median)),
            ("after_per_s", value(&after.median)),
            ("at_s", value(&change.at_s)),
            ("written_bytes", change.written_bytes as f64),
        ];
        if is_flat(after) && length(before) >= SUSTAINED_S {
            return Some(self.credit(&seen, before, after, change, &evidence));
        }
        if self.writes(group) >= WRITES {
            let text = format!(
                "{seen}, after {} had been written. Likely a write cache of about that size (in the drive, the \
                 controller, the array or the host) was full; after a spent burst credit the level would be flatter \
                 than this one ({} % variation). Quote the later level as the sustained rate; to measure only this \
                 level, fill the cache first (ramp_time, or --precondition).",
                size(change.written_bytes),
                fixed(100.0 * value(&after.variation_ratio), 1)
            );
            return Some(Advice::of("A1", lasting <= FALL / 2.0, text, &evidence));
        }
        let text = format!(
            "{seen}, after {} had been read. The later level is not flat, so a limit is unlikely; more likely other \
             load used the device, or a cache held the data at first. Repeat the run and check the device's figures \
             in the per-second series.",
            size(change.read_bytes)
        );
        Some(Advice::of("A3", lasting <= FALL / 2.0, text, &evidence))
    }

    /// A2: what was spent is the part above the later level.
    fn credit(
        &self,
        seen: &str,
        before: &StorageLevel,
        after: &StorageLevel,
        change: &StorageChange,
        evidence: &[(&str, f64)],
    ) -> Advice {
        let above = value(&before.median) - value(&after.median);
        let spent = above * length(before);
        let above_mib = value(&before.mib_per_s) - value(&after.mib_per_s);
        let moved = size(change.written_bytes + change.read_bytes);
        let text = format!(
            "{seen} to a flat level ({} % variation) after a plateau of {} s: likely a burst credit was spent. It \
             covered about {} I/Os ({} MiB) above the sustained rate. If only writes are slower, a full write cache \
             is the other explanation ({moved} had been moved). The later level is the sustained rate; a credit that \
             refills at the sustained rate needs {} s of rest for the next burst of this length.",
            fixed(100.0 * value(&after.variation_ratio), 1),
            fixed(length(before), 0),
            thousands(spent.max(0.0) as u64),
            thousands((above_mib * length(before)).max(0.0) as u64),
            fixed((spent / value(&after.median).max(1.0)).ceil(), 0)
        );
        let lasting = value(&after.median) / value(&before.median).max(f64::MIN_POSITIVE);
        let mut evidence = evidence.to_vec();
        evidence.push(("credit_ios_count", spent));
        Advice::of("A2", lasting <= FALL / 2.0, text, &evidence)
    }

    /// A4: any other change of level.
    fn other_change(&self, group: &StorageGroup) -> Option<Advice> {
        let first = group.changes.first()?;
        if self.fall(group).is_some() {
            return None;
        }
        let last = group.levels.last()?;
        let (least, most) = (group.levels.iter().map(|level| value(&level.median)))
            .fold((f64::INFINITY, 0.0_f64), |(least, most), median| (least.min(median), most.max(median)));
        let what = match group.analysed.as_str() {
            "IOPS" => "throughput",
            _ => "response latency",
        };
        let rose = group.analysed == "IOPS" && group.changes.len() == 1 && value(&last.median) > least;
        let meaning = if rose {
            "it rose: a warm-up (a cache filled, a clock sped up), or other load ended. Discard the first part \
                 with ramp_time"
        } else {
            "the mean mixes different states of the platform. Use the levels, and compare them with the device \
                 in the per-second series"
        };
        let text = format!(
            "{}{what} changed its level {} time(s), first {} s after the start ({}), between {} and {}: {meaning}.",
            lead(self.info, group),
            group.changes.len(),
            fixed(value(&first.at_s), 0),
            chance(first),
            thousands(least.round() as u64),
            thousands(most.round() as u64)
        );
        let evidence = [("first_at_s", value(&first.at_s)), ("least", least), ("most", most)];
        Some(Advice::of("A4", least < FALL / 2.0 * most, text, &evidence))
    }

    /// A7: dips at regular distances.
    fn stalls(&self, group: &StorageGroup) -> Option<Advice> {
        let period = group.stall_period_s.value()?;
        let least = group.iops_total_per_s.min.value()?;
        let mean = group.iops_total_per_s.mean.value()?;
        let left = least / mean.max(f64::MIN_POSITIVE);
        let text = format!(
            "{}throughput dips about every {} s (autocorrelation of the seconds; chance at most 1 %), down to {} % \
             of the mean: something uses the device or the CPU periodically, such as journal commits, write-back, \
             garbage collection, a snapshot or backup agent, or another job. Compare with the device's seconds and \
             with what the host runs at this interval.",
            lead(self.info, group),
            fixed(period, 0),
            fixed(100.0 * left, 0)
        );
        let evidence = [("period_s", period), ("least_over_mean_ratio", left)];
        Some(Advice::of("A7", left < 0.5, text, &evidence))
    }

    /// A8: a straight line from end to end.
    fn drift(&self, group: &StorageGroup) -> Option<Advice> {
        let drift = group.drift_ratio.value()?;
        let (word, meaning) = match (drift > 0.0, group.analysed.as_str()) {
            (true, "IOPS") => ("rose", "a warm-up that has not ended"),
            (false, "IOPS") => (
                "fell",
                "the drive runs out of free blocks, it is too hot, or the region becomes more expensive to access",
            ),
            (true, _) => ("rose", "the queue grows: the rate is higher than the device can do"),
            _ => ("fell", "a warm-up that has not ended"),
        };
        let text = format!(
            "{}{} {word} linearly by {} % from begin to end: {meaning}. The mean does not describe a steady state; \
             run until the rate is level (steadystate, ramp_time).",
            lead(self.info, group),
            group.analysed,
            fixed(100.0 * drift.abs(), 0)
        );
        Some(Advice::of("A8", drift.abs() > 0.3, text, &[("drift_ratio", drift)]))
    }

    /// A9: the seconds scatter, and no change of level explains it.
    fn uneven(&self, group: &StorageGroup) -> Option<Advice> {
        const VARIATION: f64 = 0.3;
        let variation = group.iops_total_per_s.variation_ratio.value()?;
        let explained = !group.changes.is_empty() || group.drift_ratio.value().is_some();
        if variation <= VARIATION || explained || group.analysed != "IOPS" {
            return None;
        }
        let text = format!(
            "{}throughput varies by {} % from second to second: the mean does not describe a typical second of the \
             run. Run longer, and read the percentiles.",
            lead(self.info, group),
            fixed(100.0 * variation, 0)
        );
        let evidence = [("variation_ratio", variation)];
        Some(Advice::of("A9", variation > 2.0 * VARIATION, text, &evidence))
    }

    /// A10: steady state was asked for and not attained.
    fn steady(&self, job: &StorageJob) -> Option<Advice> {
        let steady = job.steady.as_ref().filter(|steady| !steady.attained)?;
        let text = format!(
            "{}: steady state ({}) was not reached within its window of {} s: the figures describe a device that was \
             still changing. Run longer or precondition the device.",
            job.name, steady.criterion, steady.window_s
        );
        Some(Advice::of("A10", true, text, &[]))
    }

    /// A11: a tail far from the body.
    fn tail(&self, job: &StorageJob) -> Option<Advice> {
        const RATIO: f64 = 20.0;
        if in_memory(self.readings) || no_file(self.readings) {
            return None;
        }
        let worst = job.ways.iter().filter_map(|way| {
            let p50 = way.lat.p50_us.value().filter(|us| *us > 0.0)?;
            let (name, tail) = match (way.lat.p9999_us.value(), way.lat.p999_us.value()) {
                (Some(us), _) => ("p99.99", us),
                (None, Some(us)) => ("p99.9", us),
                _ => return None,
            };
            Some((tail / p50, name, tail, p50, way))
        });
        let (ratio, name, tail, p50, way) = worst.max_by(|a, b| a.0.total_cmp(&b.0))?;
        if ratio < RATIO {
            return None;
        }
        let when = self.worst_second(job.group);
        let text = format!(
            "{}: the tail of {} latency is long: {name} is {} us, {} times the median of {} us; the longest took {} \
             us{when}. If a log write takes this long, it stalls all commits that wait for it.",
            job.name,
            way.way,
            fixed(tail, 0),
            fixed(ratio, 0),
            fixed(p50, 0),
            fixed(value(&way.lat.max_us), 0)
        );
        let evidence = [("tail_over_median_ratio", ratio), ("p50_us", p50)];
        Some(Advice::of("A11", ratio >= 5.0 * RATIO, text, &evidence))
    }

    /// `, in second 12 of the group`
    fn worst_second(&self, group: u32) -> String {
        let seconds = self.readings.seconds.iter().filter(|s| s.group == group);
        let longest = seconds.filter_map(|second| {
            let max = second.lat.iter().filter_map(|lat| lat.max_ns()).max()?;
            Some((max, second.end_ns))
        });
        let worst = longest.max();
        worst.map_or_else(String::new, |(_, end_ns)| {
            format!(", in the second that ended {} s after the start", fixed(end_ns as f64 / 1e9, 0))
        })
    }

    /// A12: too few I/Os for the percentiles that matter.
    fn short(&self, job: &StorageJob) -> Option<Advice> {
        const NEEDED: f64 = 10_000.0;
        let way = job.ways.iter().max_by_key(|way| way.ios_count)?;
        let ios = way.lat.count as f64;
        if ios == 0.0 || way.lat.p999_us.value().is_some() {
            return None;
        }
        let seconds = value(&way.runtime_s) * NEEDED / ios;
        let text = format!(
            "{}: {} {}s are too few for p99.9, which needs {}: at this rate about {} s.",
            job.name,
            thousands(way.lat.count),
            way.way,
            thousands(NEEDED as u64),
            thousands(seconds.ceil() as u64)
        );
        Some(Advice::of("A12", false, text, &[("ios_count", ios)]))
    }

    /// A13: a rate that hides queueing in its service times.
    fn late(&self, job: &StorageJob) -> Option<Advice> {
        const RATIO: f64 = 2.0;
        let rated = job.ways.iter().filter_map(|way| {
            let service = way.lat.p99_us.value()?;
            let response = way.response.p99_us.value()?;
            (response >= RATIO * service).then_some((way, service, response))
        });
        let (way, service, response) = rated.max_by(|a, b| a.2.total_cmp(&b.2))?;
        let rate = value(&way.target_ios_per_s);
        let reading = self.readings.jobs.iter().find(|r| r.name == job.name)?;
        let gaps = match Options::of(self.readings, reading).get(&["rate_process"]) {
            Some("poisson") => "arrivals come in bursts, as rate_process=poisson asks for, and",
            _ => "after a stall",
        };
        let text = format!(
            "{}: at {} {}s/s the 99th percentile from the due time is {} us, of the service time alone {} us: {gaps} \
             requests queue. At this rate a user sees the first figure.",
            job.name,
            thousands(rate as u64),
            way.way,
            fixed(response, 0),
            fixed(service, 0)
        );
        let evidence = [("response_p99_us", response), ("lat_p99_us", service)];
        Some(Advice::of("A13", response >= 10.0 * service, text, &evidence))
    }
}
