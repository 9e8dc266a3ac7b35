//! What follows from a durable-write curve, in plain words.

use super::super::reading::{SyncMethod, SyncPart, SyncReading, SyncReadings};
use super::info::{SyncInfo, SyncStep};
use super::step;
use assay_measure::record::Advice;
use assay_measure::rule::Rule;
use assay_measure::units::{fixed, many, thousands, told};

/// What judges by a rule.
type Judge = fn(&Curve<'_>) -> Option<Advice>;

/// The rules with what judges them, in the order in which findings are read.
const RULES: &[(Rule, Judge)] = &[
    (IN_MEMORY, in_memory),
    (THROUGH_THE_PAGE_CACHE, through_the_page_cache),
    (OTHERS_ON_THE_DEVICE, others_on_the_device),
    (SPEED_CHANGED, speed_changed),
    (SUSPICIOUSLY_FAST, suspiciously_fast),
    (UNPROTECTED, unprotected),
    (COMMIT_DELAY, commit_delay),
    (BEST_METHOD, best_method),
    (PREALLOCATE, preallocate),
    (PARALLEL, parallel),
    (TAIL, tail),
];

/// The rules of durable writes.
pub(super) fn rules() -> Vec<Rule> {
    Rule::all(RULES)
}

/// All findings, in the order they are read.
pub(super) fn advise(readings: &SyncReadings, info: &SyncInfo, is_disturbed: bool) -> Vec<Advice> {
    let curve = Curve { readings, info, is_disturbed };
    RULES.iter().filter_map(|(_, judge)| judge(&curve)).collect()
}

struct Curve<'a> {
    readings: &'a SyncReadings,
    info: &'a SyncInfo,
    /// Whether others used the host's CPUs meanwhile.
    is_disturbed: bool,
}

impl Curve<'_> {
    fn volatile(&self) -> bool {
        self.readings.write_cache.as_deref() == Some("write back")
    }

    fn found(&self, method: SyncMethod, growing: bool, streams: u32) -> Option<SyncStep> {
        let is_it = |found: &&SyncReading| {
            found.part == SyncPart::Curve && (found.method, found.growing, found.streams) == (method, growing, streams)
        };
        Some(step(self.readings.steps.iter().find(is_it)?))
    }

    /// The rate of one stream of the curve.
    fn interval(&self, method: SyncMethod, growing: bool) -> Option<[f64; 3]> {
        self.found(method, growing, 1)?.interval()
    }
}

const IN_MEMORY: Rule = Rule {
    id: "S8",
    title: "The file is in memory",
    changes_figures: true,
    fires_when: || "The directory lies on a file system in memory (tmpfs); always high".to_owned(),
    why: "No figure describes a device.",
    what_to_do: "Name a directory on the disk that will hold the log.",
    cannot_judge_when: "Never: the file system is always known.",
    source: "Decided here.",
};

fn in_memory(this: &Curve<'_>) -> Option<Advice> {
    this.readings
        .is_memory
        .then(|| IN_MEMORY.explain(true, format!("{} is in memory (tmpfs).", this.readings.path), &[]))
}

const THROUGH_THE_PAGE_CACHE: Rule = Rule {
    id: "S9",
    title: "Direct I/O was refused",
    changes_figures: true,
    fires_when: || "The file system refuses direct I/O, and the file is not in memory (S8)".to_owned(),
    why: "Figures without a flush are those of memory; figures with a flush include writing the cache back.",
    what_to_do: "Measure on a file system with direct I/O.",
    cannot_judge_when: "Never: the open call tells.",
    source: "Decided here.",
};

fn through_the_page_cache(this: &Curve<'_>) -> Option<Advice> {
    (!this.readings.is_memory && !this.readings.direct).then(|| {
        let text = "Direct I/O was refused: writes went through the page cache.";
        THROUGH_THE_PAGE_CACHE.explain(false, text, &[])
    })
}

/// What others may write for each byte of ours.
const FOREIGN_RATIO: f64 = 0.5;
/// The file system writes a little of its own, MB/s.
const FOREIGN_MB_PER_S: f64 = 1.0;

const OTHERS_ON_THE_DEVICE: Rule = Rule {
    id: "S10",
    title: "Other processes used the device",
    changes_figures: true,
    fires_when: || {
        format!(
            "While F0 was measured, the device wrote more than the probe asked for: at least {FOREIGN_RATIO} times the probe's bytes more, and at least {FOREIGN_MB_PER_S} MB/s"
        )
    },
    why: "Every figure includes their load.",
    what_to_do: "Measure again when the device is quiet.",
    cannot_judge_when: "The kernel counts no bytes of the device: then the rule is silent.",
    source: "Decided here.",
};

fn others_on_the_device(this: &Curve<'_>) -> Option<Advice> {
    let flush = this.readings.steps.iter().find(|s| s.part == SyncPart::Flush)?;
    let ours = flush.latency.count() * flush.bytes;
    let foreign = flush.device_write_bytes?.saturating_sub(ours);
    let seconds = flush.elapsed_ns as f64 / 1e9;
    let foreign_mb_per_s = foreign as f64 / 1e6 / seconds;
    if (foreign as f64) < FOREIGN_RATIO * ours as f64 || foreign_mb_per_s < FOREIGN_MB_PER_S {
        return None;
    }
    let text = format!(
        "Other processes used the device: during the measurement of F0 it wrote {} MB/s that the probe did not ask \
         for.",
        fixed(foreign_mb_per_s, 1)
    );
    Some(OTHERS_ON_THE_DEVICE.explain(false, text, &[("foreign_mb_per_s", foreign_mb_per_s)]))
}

/// Between the slowest and the quickest round.
const ROUNDS_FACTOR: f64 = 2.0;
/// A few steps of some dozens always meet a stall.
const STEPS_PCT: usize = 10;

const SPEED_CHANGED: Rule = Rule {
    id: "S11",
    title: "The speed of the device changed",
    changes_figures: true,
    fires_when: || {
        format!(
            "In at least {STEPS_PCT} % of the steps the fastest round was more than {ROUNDS_FACTOR} times as fast as the slowest"
        )
    },
    why: "Each rate is the median of rounds that do not agree.",
    what_to_do: "Compare rates by their intervals, or measure again when the device is quiet.",
    cannot_judge_when: "Never: without rounds the rule is silent.",
    source: "Decided here.",
};

fn speed_changed(this: &Curve<'_>) -> Option<Advice> {
    let range = |step: &SyncReading| {
        let least = step.rates.iter().copied().reduce(f64::min)?;
        let most = step.rates.iter().copied().reduce(f64::max)?;
        (least > 0.0).then_some((step.clone(), least, most))
    };
    let ranges: Vec<_> = this.readings.steps.iter().filter_map(range).collect();
    let apart: Vec<_> = ranges.iter().filter(|(_, a, b)| b / a > ROUNDS_FACTOR).collect();
    let (step, least, most) = apart.iter().max_by(|a, b| (a.2 / a.1).total_cmp(&(b.2 / b.1)))?;
    if apart.len() * 100 < ranges.len() * STEPS_PCT {
        return None;
    }
    let text = format!(
        "The speed of the device changed during the measurement: in {} of {} steps the fastest round was more than \
         {ROUNDS_FACTOR} times as fast as the slowest, most of all {} with {} ({} to {} per second).",
        apart.len(),
        ranges.len(),
        step.method.name(),
        many(step.streams.into(), "stream"),
        thousands(least.round() as u64),
        thousands(most.round() as u64)
    );
    Some(SPEED_CHANGED.explain(false, text, &[("changed_steps_count", apart.len() as f64)]))
}

/// No write has reached a medium and come back in less: the quickest drives with stable
/// buffers need 7 to 10 us for a 4 KiB write.
pub(crate) const LEAST_US: f64 = 5.0;
/// A flush of a volatile cache that adds less than this share of the write's own time did nothing.
const LEAST_FLUSH_RATIO: f64 = 1.1;
/// A platter of 15,000 revolutions a minute needs 2,000 us on average for its half turn.
pub(crate) const PLATTER_US: f64 = 1000.0;

const SUSPICIOUSLY_FAST: Rule = Rule {
    id: "S1",
    title: "Suspiciously fast",
    changes_figures: false,
    fires_when: || {
        format!(
            "A durable 4 KiB write (F0) takes less than {LEAST_US} us; or the device announces a volatile write cache and F0 is less than {LEAST_FLUSH_RATIO} times an unflushed write; or the kernel reports a rotating disk and F0 is below {PLATTER_US} us; high but for the last"
        )
    },
    why: "A fast answer does not prove that data survives a power failure.",
    what_to_do: "Check the cache mode of the hypervisor or the controller before you trust a commit to this device.",
    cannot_judge_when: "F0 or its ratio to an unflushed write is n/a, or the file is in memory: then the rule is silent.",
    source: "The quickest drives with protected buffers need 7 to 10 us for 4 KiB; half a turn at 15,000 rpm is 2 ms.",
};

fn suspiciously_fast(this: &Curve<'_>) -> Option<Advice> {
    if this.readings.is_memory {
        return None;
    }
    let f0 = this.info.durable_write_us_p50.value()?;
    let ratio = this.info.sync_over_unsynced_ratio.value()?;
    let why = if f0 < LEAST_US {
        format!("a durable 4 KiB write takes {} us, which is faster than any storage medium", fixed(f0, 1))
    } else if this.volatile() && ratio < LEAST_FLUSH_RATIO {
        format!(
            "the device announces a volatile write cache, yet a flush adds nothing (durable {} us, unflushed {} us)",
            fixed(f0, 0),
            fixed(this.info.unsynced_write_us_p50.value()?, 0)
        )
    } else if this.readings.rotational == Some(true) && f0 < PLATTER_US {
        format!(
            "the kernel reports a rotating disk, but a durable write in {} us is less than half a rotation: it \
             is a virtual disk, or a cache answers",
            fixed(f0, 0)
        )
    } else {
        return None;
    };
    let high = f0 < LEAST_US || (this.volatile() && ratio < LEAST_FLUSH_RATIO);
    let text = format!("Suspiciously fast: {why}.");
    Some(SUSPICIOUSLY_FAST.explain(high, text, &[("durable_write_us_p50", f0), ("sync_over_unsynced_ratio", ratio)]))
}

/// A drive without stable buffers pays a flush hundreds of times what the write costs;
/// one with them less than twice.
const UNPROTECTED_RATIO: f64 = 10.0;

const UNPROTECTED: Rule = Rule {
    id: "S2",
    title: "What the device says of power-loss protection",
    changes_figures: false,
    fires_when: || {
        format!(
            "The device announces a write cache mode, or F0 is at least {UNPROTECTED_RATIO} times an unflushed write; high from twice that"
        )
    },
    why: "A drive with protected buffers answers a flush at once; one without has to empty its cache for each commit.",
    what_to_do: "For a log use a drive with power-loss protection, or a host that caches safely.",
    cannot_judge_when: "The file is in memory, direct I/O was refused, the ratio is n/a, the probe was stopped, or others used the host's CPUs or the device (S10, S11), which costs a flush more than a write: then the rule is silent.",
    source: "Published 4 KiB figures: protected NVMe 11 us, with fsync 16; consumer NVMe 11 us, with fsync 1,675 (arXiv 2512.04859 and its data).",
};

fn unprotected(this: &Curve<'_>) -> Option<Advice> {
    let is_disturbed = || this.is_disturbed || others_on_the_device(this).is_some() || speed_changed(this).is_some();
    if this.readings.is_memory || !this.readings.direct || this.readings.stopped || is_disturbed() {
        return None;
    }
    let ratio = this.info.sync_over_unsynced_ratio.value()?;
    let fua = match this.readings.fua {
        Some(true) => "and can force single writes (FUA)",
        Some(false) => {
            "and no forced single writes (FUA), so a durable write is a write and a flush of the whole cache"
        }
        None => "and does not say whether it can force single writes",
    };
    let times = fixed(ratio, 1);
    let high = ratio >= 2.0 * UNPROTECTED_RATIO;
    let evidence = [("sync_over_unsynced_ratio", ratio)];
    let cache = this.readings.write_cache.as_deref();
    // Only a device that likely has no protection needs a way out.
    if cache != Some("write through") && ratio >= UNPROTECTED_RATIO {
        let told = match cache {
            Some("write back") => format!("announces a volatile write cache {fua}"),
            _ => "does not report its cache mode".to_owned(),
        };
        let text = format!(
            "Likely no power-loss protection: a durable write costs {times} times as much as an unflushed write, \
             and the device {told}."
        );
        return Some(UNPROTECTED.explain(high, text, &evidence));
    }
    let text = match cache {
        Some("write through") => format!(
            "The device announces a write-through cache: treat every acknowledged write as stable. A durable \
             write costs {times} times as much as an unflushed write."
        ),
        Some("write back") => format!(
            "The device announces a volatile write cache {fua}; a durable write costs {times} times as much as \
             an unflushed write. This is fast enough for protected buffers or for a host that caches; speed \
             cannot tell the two apart."
        ),
        _ => return None,
    };
    Some(UNPROTECTED.finding(high, text, &evidence))
}

const COMMIT_DELAY: Rule = Rule {
    id: "S3",
    title: "Where a commit delay is useless",
    changes_figures: false,
    fires_when: || "F0 is known".to_owned(),
    why: "Above 2 / F0 commits a second a log writer that flushes as soon as the device is free forms the same groups, and a delay only adds latency.",
    what_to_do: "Leave the commit delay off unless flushes are scarce.",
    cannot_judge_when: "F0 is n/a: then the rule is silent.",
    source: "Group commit clocks itself: arXiv 2606.18187.",
};

fn commit_delay(this: &Curve<'_>) -> Option<Advice> {
    let limit = this.info.commit_delay_limit_per_s.value()?;
    let f0 = this.info.durable_write_us_p50.value()?;
    let text = format!(
        "A commit delay is useless above {} commits/s (2 / F0, F0 = {} us): above this rate a log writer that \
         flushes as soon as the device is free forms the same groups without a delay. Below this rate a delay \
         trades latency for fewer flushes.",
        thousands(limit.round() as u64),
        fixed(f0, 0)
    );
    let evidence = [("commit_delay_limit_per_s", limit), ("durable_write_us_p50", f0)];
    Some(COMMIT_DELAY.advise(false, text, &evidence))
}

/// The best way over the worst, from which on it is worth setting.
const METHOD_GAIN: f64 = 1.1;
const METHOD_HIGH: f64 = 2.0;

const BEST_METHOD: Rule = Rule {
    id: "S4",
    title: "The fastest way to make a write durable",
    changes_figures: false,
    fires_when: || {
        format!(
            "In a preallocated file one stream makes at least {METHOD_GAIN} times as many writes with the fastest of fdatasync, O_DSYNC and fsync as with the slowest, and the 95 % interval of the fastest is above that of the slowest; high from {METHOD_HIGH} times"
        )
    },
    why: "The database can be told which of them to use.",
    what_to_do: "Set this method in the database (wal_sync_method in PostgreSQL).",
    cannot_judge_when: "One of the three has no rate with an interval: then the rule is silent.",
    source: "Decided here.",
};

fn best_method(this: &Curve<'_>) -> Option<Advice> {
    const METHODS: [SyncMethod; 3] = [SyncMethod::Fdatasync, SyncMethod::Dsync, SyncMethod::Fsync];
    let rates: Vec<(SyncMethod, [f64; 3])> =
        METHODS.into_iter().filter_map(|method| Some((method, this.interval(method, false)?))).collect();
    let best = rates.iter().max_by(|a, b| a.1[1].total_cmp(&b.1[1]))?;
    let worst = rates.iter().min_by(|a, b| a.1[1].total_cmp(&b.1[1]))?;
    let gain = best.1[1] / worst.1[1];
    let apart = best.1[0] > worst.1[2];
    if rates.len() < METHODS.len() || gain < METHOD_GAIN || !apart {
        return None;
    }
    let (best, worst) = ((best.0, best.1[1]), (worst.0, worst.1[1]));
    let text = format!(
        "One stream is fastest with {}: {} per second, {} times {} ({} per second).",
        best.0.name(),
        thousands(best.1.round() as u64),
        fixed(gain, 2),
        worst.0.name(),
        thousands(worst.1.round() as u64)
    );
    let evidence = [("best_per_s", best.1), ("worst_per_s", worst.1)];
    Some(BEST_METHOD.advise(gain >= METHOD_HIGH, text, &evidence))
}

/// A log that is kept over one that grows, from which on it is worth keeping.
const KEPT_GAIN: f64 = 1.2;

const PREALLOCATE: Rule = Rule {
    id: "S5",
    title: "A growing log is slower",
    changes_figures: false,
    fires_when: || {
        format!(
            "One stream with fdatasync makes at least {KEPT_GAIN} times as many writes in a preallocated file as in a growing one, and the 95 % interval of the first is above that of the second; high from twice that"
        )
    },
    why: "With each growth the file system commits its own journal.",
    what_to_do: "Let the database recycle its log files.",
    cannot_judge_when: "One of the two has no rate with an interval: then the rule is silent.",
    source: "Decided here.",
};

fn preallocate(this: &Curve<'_>) -> Option<Advice> {
    let [low, kept, _] = this.interval(SyncMethod::Fdatasync, false)?;
    let [_, grown, high] = this.interval(SyncMethod::Fdatasync, true)?;
    let gain = kept / grown;
    if gain < KEPT_GAIN || low <= high {
        return None;
    }
    let text = format!(
        "A log that grows with each commit makes {} durable writes per second; a preallocated and zero-written \
         log makes {}, {} times as many.",
        thousands(grown.round() as u64),
        thousands(kept.round() as u64),
        fixed(gain, 1)
    );
    let evidence = [("preallocated_per_s", kept), ("new_per_s", grown)];
    Some(PREALLOCATE.explain(gain >= 2.0 * KEPT_GAIN, text, &evidence))
}

const STREAMS: u32 = 32;

const PARALLEL: Rule = Rule {
    id: "S6",
    title: "One log writer or several",
    changes_figures: false,
    fires_when: || {
        format!(
            "One stream, {STREAMS} streams that flush for themselves, and several streams that share a flush each have a rate with a 95 % interval"
        )
    },
    why: "The figures show whether flushes in parallel make more commits durable than a shared flush.",
    what_to_do: "Use several log writers only where the 95 % intervals show an advantage.",
    cannot_judge_when: "One of the rates or its interval is n/a: then the rule is silent.",
    source: "A shared flush against parallel flushes, measured side by side.",
};

fn parallel(this: &Curve<'_>) -> Option<Advice> {
    let [single_low, single, single_high] = this.interval(SyncMethod::Fdatasync, false)?;
    let parallel = this.found(SyncMethod::Fdatasync, false, STREAMS)?;
    let [many_low, many, many_high] = parallel.interval()?;
    let mut steps = this.readings.steps.iter();
    let shared = steps.find(|step| step.method == SyncMethod::Group && step.streams > 1)?;
    let [group_low, group, group_high] = step(shared).interval()?;
    let whole = |rate: f64| thousands(rate.round() as u64);
    let against_one = if many_low > single_high || many_high < single_low {
        format!("{} times one stream", fixed(many / single, 1))
    } else {
        format!("and one stream {}: the 95 % intervals overlap", whole(single))
    };
    let then = if group_low > many_high {
        "A shared flush gives more, so one log writer with group commit is enough"
    } else if many_low > group_high {
        "A shared flush gives less, so several log writers would pay off here"
    } else {
        "The two 95 % intervals overlap, so the figures show no advantage of more than one log writer"
    };
    let text = format!(
        "Parallel flushes: {STREAMS} streams make {} durable writes per second, {against_one}. With a shared flush they \
         make {} commits per second. {then}.",
        whole(many),
        whole(group)
    );
    let evidence = [("single_per_s", single), ("streams_32_per_s", many)];
    Some(PARALLEL.finding(false, text, &evidence))
}

/// Tail over median.
const TAIL_RATIO: f64 = 10.0;

const TAIL: Rule = Rule {
    id: "S7",
    title: "The tail of a durable write is long",
    changes_figures: false,
    fires_when: || {
        format!(
            "p99.9 of F0 (p99 where there are too few samples) is at least {TAIL_RATIO} times its median; high from twice that"
        )
    },
    why: "Such a flush stalls all commits that share it.",
    what_to_do: "Look for what else uses the device, or use one with a shorter tail.",
    cannot_judge_when: "F0 has too few samples for p99: then the rule is silent.",
    source: "Decided here.",
};

fn tail(this: &Curve<'_>) -> Option<Advice> {
    let flush = this.info.steps.iter().find(|step| step.part == "flush")?;
    let p50 = flush.latency.us_p50.value().filter(|us| *us > 0.0)?;
    let (name, tail) = match (flush.latency.us_p999.value(), flush.latency.us_p99.value()) {
        (Some(us), _) => ("p99.9", us),
        (None, Some(us)) => ("p99", us),
        _ => return None,
    };
    let ratio = tail / p50;
    if ratio < TAIL_RATIO {
        return None;
    }
    let text = format!(
        "The tail of a durable write is long: {name} is {}, {} times the median of {}; the longest took {}.",
        told(tail, "us", 0),
        fixed(ratio, 0),
        told(p50, "us", 0),
        told(flush.latency.us_max.value()?, "us", 0)
    );
    let evidence = [("tail_over_median_ratio", ratio), ("us_p50", p50)];
    Some(TAIL.explain(ratio >= 2.0 * TAIL_RATIO, text, &evidence))
}
