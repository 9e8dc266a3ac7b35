//! Advice from the figures of a storage probe: what was seen, how certain it is, and what to try. A single sign is
//! worded as "perhaps" or "likely", since a shape does not prove its cause; each finding names a measurement that
//! would.

use super::analysis::LEAST_CHANGE;
use super::caps::{self, FLAT_TOP, HOST_LIMIT};
use super::limits::TWO_LIMITS;
use super::options::Options;
use super::options::{in_memory, no_file};
use super::view::{View, lead, led, value};
use super::warnings;
use crate::readings::StorageReadings;
use crate::record::info::{StorageChange, StorageGroup, StorageInfo, StorageJob, StoragePrecondition};
use assay_measure::cap;
use assay_measure::record::{Advice, Record};
use assay_measure::rule::Rule;
use assay_measure::units::{fixed, many, size, thousands, told};

/// A level below this share of the one before counts as a fall.
const FALL: f64 = 0.8;
/// A level below this share counts as a serious fall.
const FALL_HIGH: f64 = FALL / 2.0;
/// Minimum share of written bytes for a group that counts as writing.
const WRITES: f64 = 0.5;

/// A deepest dip that leaves less of the mean than this is serious.
const DIP_HIGH: f64 = 0.5;
/// A drift beyond this is serious.
const DRIFT_HIGH: f64 = 0.3;
/// Relative standard deviation of the IOPS per second.
const VARIATION: f64 = 0.3;
/// Ratio of tail to median.
const TAIL_RATIO: f64 = 20.0;
const TAIL_HIGH: f64 = 100.0;
/// Number of I/Os that p99.9 requires.
const NEEDED: f64 = 10_000.0;
/// Ratio of the latency from the due time to the service time.
const LATE_RATIO: f64 = 2.0;
const LATE_HIGH: f64 = 10.0;

const CACHE_FILLED: Rule = Rule {
    id: "A1",
    title: "A write cache was full",
    changes_figures: false,
    fires_when: || {
        format!(
            "IOPS fall for good to {} % of the level before or less, at least {} % of the bytes are written, and R41 does not fire; high at {} % or less",
            100.0 * FALL,
            100.0 * WRITES,
            100.0 * FALL_HIGH
        )
    },
    why: "The level before is that of a cache; the device keeps the later one.",
    what_to_do: "Quote the later level as the sustained rate; to measure only this level, fill the cache first (ramp_time, or --precondition).",
    cannot_judge_when: "The group ran for fewer than ten seconds: then the rule is silent.",
    source: "Decided here.",
};

const READS_FELL: Rule = Rule {
    id: "A3",
    title: "Reads became slower",
    changes_figures: false,
    fires_when: || {
        format!(
            "IOPS fall for good to {} % of the level before or less, less than {} % of the bytes are written, and R41 does not fire; high at {} % or less",
            100.0 * FALL,
            100.0 * WRITES,
            100.0 * FALL_HIGH
        )
    },
    why: "Other load used the device, or a cache held the data at first.",
    what_to_do: "Repeat the run, and check the device's figures in the per-second series.",
    cannot_judge_when: "The group ran for fewer than ten seconds: then the rule is silent.",
    source: "Decided here.",
};

const LEVEL_CHANGED: Rule = Rule {
    id: "A4",
    title: "The level changed",
    changes_figures: false,
    fires_when: || {
        format!(
            "IOPS, or the response latency where a rate fixes those, change their level by at least {} % in another way than A1, A3 and R41; high where the lowest level is below {} % of the highest",
            100.0 * LEAST_CHANGE,
            100.0 * FALL_HIGH
        )
    },
    why: "The mean mixes different states of the platform.",
    what_to_do: "Use the levels, or discard a warm-up with ramp_time, and compare with the device in the per-second series.",
    cannot_judge_when: "The group ran for fewer than ten seconds: then the rule is silent.",
    source: "A split is kept if at most 1 % of drawn series of the same noise show one as large.",
};

const STALLS: Rule = Rule {
    id: "A7",
    title: "Throughput dips periodically",
    changes_figures: false,
    fires_when: || {
        format!(
            "The seconds dip at regular distances, by their autocorrelation with a chance of at most 1 %; high where less than {} % of the mean is left in the deepest dip",
            100.0 * DIP_HIGH
        )
    },
    why: "Something uses the device or the CPU periodically: journal commits, write-back, garbage collection, a snapshot or backup agent, or another job.",
    what_to_do: "Compare with the device's seconds and with what the host runs at this interval.",
    cannot_judge_when: "The group ran for fewer than ten seconds: then the rule is silent.",
    source: "Bartlett's bound with Bonferroni's correction.",
};

const DRIFT: Rule = Rule {
    id: "A8",
    title: "The figures drift",
    changes_figures: false,
    fires_when: || {
        format!(
            "A straight line describes the seconds better than levels; high where it moves by more than {} % from start to end",
            100.0 * DRIFT_HIGH
        )
    },
    why: "The mean does not describe a steady state.",
    what_to_do: "Run until the figures are level (steadystate, ramp_time), or ask for a lower rate where a queue grows.",
    cannot_judge_when: "The group ran for fewer than ten seconds: then the rule is silent.",
    source: "Schwarz's criterion, and a slope of at least 4 standard errors.",
};

const UNEVEN: Rule = Rule {
    id: "A9",
    title: "The seconds scatter",
    changes_figures: false,
    fires_when: || {
        format!(
            "IOPS vary by more than {} % from second to second, and no change of level or drift explains it; high from twice that",
            100.0 * VARIATION
        )
    },
    why: "The mean does not describe a typical second of the run.",
    what_to_do: "Run longer, and read the percentiles.",
    cannot_judge_when: "A rate fixes the IOPS: then the rule is silent.",
    source: "Decided here.",
};

const NOT_STEADY: Rule = Rule {
    id: "A10",
    title: "The steady state was not reached",
    changes_figures: false,
    fires_when: || "A steady state was asked for and not reached within its window; always high".to_owned(),
    why: "The figures describe a device that was still changing.",
    what_to_do: "Run longer, or precondition the device.",
    cannot_judge_when: "No steady state was asked for: then the rule is silent.",
    source: "The criterion that was asked for.",
};

const TAIL: Rule = Rule {
    id: "A11",
    title: "The tail of latency is long",
    changes_figures: false,
    fires_when: || {
        format!(
            "p99.99 (p99.9 where there are too few samples) is at least {TAIL_RATIO} times the median; high from {TAIL_HIGH} times"
        )
    },
    why: "If a log write takes that long, it stalls all commits that wait for it.",
    what_to_do: "Look at the second of the longest I/O in the series, and at what else used the device then.",
    cannot_judge_when: "There are too few samples for p99.9, or the files are in memory: then the rule is silent.",
    source: "Decided here.",
};

const FEW_SAMPLES: Rule = Rule {
    id: "A12",
    title: "Too few I/Os for the tail",
    changes_figures: false,
    fires_when: || {
        format!(
            "A job has fewer than {} I/Os, which p99.9 needs, in its direction with the most",
            thousands(NEEDED as u64)
        )
    },
    why: "The tail is what a database waits for.",
    what_to_do: "Run longer if you need the tail.",
    cannot_judge_when: "Latencies were not taken: then the rule is silent.",
    source: "Ten samples beyond a percentile.",
};

const LATE: Rule = Rule {
    id: "A13",
    title: "The service time hides queueing",
    changes_figures: false,
    fires_when: || {
        format!(
            "With a rate, p99 from the due time is at least {LATE_RATIO} times that of the service time; high from {LATE_HIGH} times"
        )
    },
    why: "Requests queue before they are sent, and the service time does not include that.",
    what_to_do: "Use the time from the due time, which a user sees, or a lower rate.",
    cannot_judge_when: "No rate was asked for: then the rule is silent.",
    source: "Decided here.",
};

const NOT_PRECONDITIONED: Rule = Rule {
    id: "A14",
    title: "Preconditioning did not settle",
    changes_figures: false,
    fires_when: || "Preconditioning ended before its last rounds were alike; always high".to_owned(),
    why: "The device had not reached a steady state when the jobs measured it.",
    what_to_do: "Allow more rounds.",
    cannot_judge_when: "No preconditioning by rounds was asked for: then the rule is silent.",
    source: "The SNIA performance test specification: rounds within a spread and a slope.",
};

/// The rules of advice, by number; the rules on doubtful figures are the warnings.
const RULES: [Rule; 15] = [
    cap::RULE,
    CACHE_FILLED,
    READS_FELL,
    LEVEL_CHANGED,
    HOST_LIMIT,
    FLAT_TOP,
    STALLS,
    DRIFT,
    UNEVEN,
    NOT_STEADY,
    TAIL,
    FEW_SAMPLES,
    LATE,
    NOT_PRECONDITIONED,
    TWO_LIMITS,
];

/// All rules of storage.
pub(super) fn rules() -> Vec<Rule> {
    RULES.into_iter().chain(warnings::RULES).collect()
}

/// All findings, the most severe first, then in the order of the rules.
pub(super) fn advise(readings: &StorageReadings, info: &StorageInfo, record: &Record) -> Vec<Advice> {
    let view = View { readings, info, record };
    let mut found = warnings::all(&view);
    for group in &info.groups {
        let of_group = [
            caps::of(&view, group).map(|cap| cap.advice()),
            view.fall(group),
            view.other_change(group),
            caps::host_limit(&view, group),
            view.stalls(group),
            view.drift(group),
            view.uneven(group),
        ];
        found.extend(led(&lead(info, group), of_group));
    }
    // If both limits are reached, one finding covers them.
    match super::limits::two_limits(&info.groups) {
        Some(both) => found.push(both),
        None => found.extend(caps::same_top(&view)),
    }
    found.extend(info.precondition.iter().filter_map(precondition));
    for job in &info.jobs {
        let of_job = [view.steady(job), view.tail(job), view.short(job), view.late(job)];
        found.extend(led(&format!("{}: ", job.name), of_job));
    }
    found.sort_by_key(|advice| advice.severity != "high");
    found
}

fn chance(change: &StorageChange) -> String {
    format!("probability in steady noise at most {} %", fixed(100.0 * value(&change.chance_ratio), 1))
}

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
        "{}: preconditioning ({}) ended after {} rounds before the last {} agreed (spread {}, slope {}).",
        before.job,
        before.method,
        before.round_ios_per_s.len(),
        before.window_rounds_count,
        percent(&before.excursion_pct),
        percent(&before.slope_pct)
    );
    Some(NOT_PRECONDITIONED.explain(true, text, &[]))
}

impl View<'_> {
    /// The share of bytes that were written.
    fn writes(&self, group: &StorageGroup) -> f64 {
        let bytes = |way: &str| -> f64 {
            let ways = group.ways.iter().filter(|row| row.way == way);
            ways.map(|row| row.moved_bytes as f64).sum()
        };
        bytes("write") / (bytes("write") + bytes("read")).max(1.0)
    }

    fn fall(&self, group: &StorageGroup) -> Option<Advice> {
        if group.analysed != "IOPS" || no_file(self.readings) {
            return None;
        }
        let at = group.changes.iter().position(|change| {
            let ratio = change.ratio.value();
            ratio.is_some_and(|ratio| ratio <= FALL)
        })?;
        let (change, before, after) = (&group.changes[at], &group.levels[at], group.levels.last()?);
        // A fall that recovers later was a disturbance.
        let lasting = value(&after.median) / value(&before.median).max(f64::MIN_POSITIVE);
        if lasting > FALL {
            return None;
        }
        if caps::of(self, group).is_some() {
            return None;
        }
        let high = lasting <= FALL_HIGH;
        let seen = format!(
            "throughput fell from {} to {} I/Os per second ({} to {} MiB/s) {} s after the start ({})",
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
        if self.writes(group) >= WRITES {
            let text = format!(
                "{seen}, after {} had been written. Likely a write cache of about that size (in the drive, the \
                 controller, the array or the host) was full.",
                size(change.written_bytes)
            );
            return Some(CACHE_FILLED.advise(high, text, &evidence));
        }
        let text = format!(
            "{seen}, after {} had been read. Perhaps other load used the device, or a cache held the data at first.",
            size(change.read_bytes)
        );
        Some(READS_FELL.advise(high, text, &evidence))
    }

    fn other_change(&self, group: &StorageGroup) -> Option<Advice> {
        let first = group.changes.first()?;
        if self.fall(group).is_some() || caps::of(self, group).is_some() {
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
        let meaning = if rose { ": a warm-up (a cache filled, a clock sped up), or the end of other load" } else { "" };
        let text = format!(
            "{what} changed its level {}, first {} s after the start ({}), between {} and {}{meaning}.",
            many(group.changes.len() as u64, "time"),
            fixed(value(&first.at_s), 0),
            chance(first),
            thousands(least.round() as u64),
            thousands(most.round() as u64)
        );
        let evidence = [("first_at_s", value(&first.at_s)), ("least", least), ("most", most)];
        Some(LEVEL_CHANGED.explain(least < FALL_HIGH * most, text, &evidence))
    }

    fn stalls(&self, group: &StorageGroup) -> Option<Advice> {
        let period = group.stall_period_s.value()?;
        let least = group.iops_total_per_s.min.value()?;
        let mean = group.iops_total_per_s.mean.value()?;
        let left = least / mean.max(f64::MIN_POSITIVE);
        let text = format!(
            "throughput dips about every {} s, down to {} % of the mean.",
            fixed(period, 0),
            fixed(100.0 * left, 0)
        );
        let evidence = [("period_s", period), ("least_over_mean_ratio", left)];
        Some(STALLS.explain(left < DIP_HIGH, text, &evidence))
    }

    fn drift(&self, group: &StorageGroup) -> Option<Advice> {
        let drift = group.drift_ratio.value()?;
        let (word, meaning) = match (drift > 0.0, group.analysed.as_str()) {
            (true, "IOPS") => ("rose", "a warm-up that has not ended"),
            (false, "IOPS") => (
                "fell",
                "the drive runs out of free blocks, it is too hot, or the region becomes more expensive to access",
            ),
            (true, _) => ("rose", "the queue grows: the rate is higher than the device can sustain"),
            _ => ("fell", "a warm-up that has not ended"),
        };
        let text = format!(
            "{} {word} linearly by {} % from start to end: {meaning}.",
            group.analysed,
            fixed(100.0 * drift.abs(), 0)
        );
        Some(DRIFT.explain(drift.abs() > DRIFT_HIGH, text, &[("drift_ratio", drift)]))
    }

    fn uneven(&self, group: &StorageGroup) -> Option<Advice> {
        let variation = group.iops_total_per_s.variation_ratio.value()?;
        let explained = !group.changes.is_empty() || group.drift_ratio.value().is_some();
        if variation <= VARIATION || explained || group.analysed != "IOPS" {
            return None;
        }
        let text = format!("throughput varies by {} % from second to second.", fixed(100.0 * variation, 0));
        let evidence = [("variation_ratio", variation)];
        Some(UNEVEN.explain(variation >= 2.0 * VARIATION, text, &evidence))
    }

    fn steady(&self, job: &StorageJob) -> Option<Advice> {
        let steady = job.steady.as_ref().filter(|steady| !steady.attained)?;
        let text = format!(
            "the steady state ({}) was not reached within its window of {} s.",
            steady.criterion, steady.window_s
        );
        Some(NOT_STEADY.explain(true, text, &[]))
    }

    fn tail(&self, job: &StorageJob) -> Option<Advice> {
        if in_memory(self.readings) || no_file(self.readings) {
            return None;
        }
        let worst = job.ways.iter().filter_map(|way| {
            let p50 = way.lat.us_p50.value().filter(|us| *us > 0.0)?;
            let (name, tail) = match (way.lat.us_p9999.value(), way.lat.us_p999.value()) {
                (Some(us), _) => ("p99.99", us),
                (None, Some(us)) => ("p99.9", us),
                _ => return None,
            };
            Some((tail / p50, name, tail, p50, way))
        });
        let (ratio, name, tail, p50, way) = worst.max_by(|a, b| a.0.total_cmp(&b.0))?;
        if ratio < TAIL_RATIO {
            return None;
        }
        let when = self.worst_second(job.group);
        let text = format!(
            "the tail of {} latency is long: {name} is {}, {} times the median of {}; the longest took {}{when}.",
            way.way,
            told(tail, "us", 0),
            fixed(ratio, 0),
            told(p50, "us", 0),
            told(value(&way.lat.us_max), "us", 0)
        );
        let evidence = [("tail_over_median_ratio", ratio), ("us_p50", p50)];
        Some(TAIL.explain(ratio >= TAIL_HIGH, text, &evidence))
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

    fn short(&self, job: &StorageJob) -> Option<Advice> {
        let way = job.ways.iter().max_by_key(|way| way.ios_count)?;
        let ios = way.lat.count as f64;
        if ios == 0.0 || way.lat.us_p999.value().is_some() {
            return None;
        }
        let seconds = value(&way.runtime_s) * NEEDED / ios;
        let text = format!(
            "{} {}s are too few for p99.9, which needs {}: at this rate about {} s.",
            thousands(way.lat.count),
            way.way,
            thousands(NEEDED as u64),
            thousands(seconds.ceil() as u64)
        );
        Some(FEW_SAMPLES.advise(false, text, &[("ios_count", ios)]))
    }

    fn late(&self, job: &StorageJob) -> Option<Advice> {
        let rated = job.ways.iter().filter_map(|way| {
            let service = way.lat.us_p99.value()?;
            let response = way.response.us_p99.value()?;
            (response >= LATE_RATIO * service).then_some((way, service, response))
        });
        let (way, service, response) = rated.max_by(|a, b| a.2.total_cmp(&b.2))?;
        let rate = value(&way.target_ios_per_s);
        let reading = self.readings.jobs.iter().find(|r| r.name == job.name)?;
        let gaps = match Options::of(self.readings, reading).get(&["rate_process"]) {
            Some("poisson") => "arrivals come in bursts, as rate_process=poisson asks for, and",
            _ => "after a stall",
        };
        let text = format!(
            "at {} {}s/s the 99th percentile from the due time is {}, of the service time alone {}: {gaps} \
             requests queue.",
            thousands(rate as u64),
            way.way,
            told(response, "us", 0),
            told(service, "us", 0)
        );
        let evidence = [("response_us_p99", response), ("lat_us_p99", service)];
        Some(LATE.advise(response >= LATE_HIGH * service, text, &evidence))
    }
}
