//! What follows from a durable-write curve, in plain words. The rules, their thresholds and
//! where they come from are listed in docs/design/sync.md.

use super::super::reading::{SyncMethod, SyncPart, SyncReading, SyncReadings};
use super::info::{SyncInfo, SyncStep};
use super::step;
use assay_measure::record::Advice;
use assay_measure::units::{fixed, thousands};

/// No write has reached a medium and come back in less: the quickest drives with stable
/// buffers need 7 to 10 us for a 4 KiB write.
const LEAST_US: f64 = 5.0;
/// A flush of a volatile cache that adds less than this share of the write's own time did nothing.
const LEAST_FLUSH_RATIO: f64 = 1.1;
/// A platter of 15,000 revolutions a minute needs 2,000 us on average for its half turn.
const PLATTER_US: f64 = 1000.0;
/// A drive without stable buffers pays a flush hundreds of times what the write costs;
/// one with them less than twice.
const UNPROTECTED_RATIO: f64 = 10.0;

/// What makes the figures doubtful.
pub(super) fn warnings(readings: &SyncReadings) -> Vec<String> {
    let mut found = Vec::new();
    if readings.is_memory {
        found.push(format!(
            "{} is in memory (tmpfs): no figure describes a device. Name a directory on the disk that will hold the \
             log.",
            readings.path
        ));
    } else if !readings.direct {
        found.push(
            "Direct I/O was refused: writes went through the page cache. Figures without a flush are those of \
             memory; figures with a flush include writing the cache back."
                .to_owned(),
        );
    }
    found.extend(others(readings));
    found.extend(moods(readings));
    found
}

/// The device was quicker in one round than in another.
fn moods(readings: &SyncReadings) -> Option<String> {
    /// Between the slowest and the quickest round.
    const FACTOR: f64 = 2.0;
    let range = |step: &SyncReading| {
        let least = step.rates.iter().copied().reduce(f64::min)?;
        let most = step.rates.iter().copied().reduce(f64::max)?;
        (least > 0.0).then_some((step.clone(), least, most))
    };
    let ranges: Vec<_> = readings.steps.iter().filter_map(range).collect();
    let apart: Vec<_> = ranges.iter().filter(|(_, a, b)| b / a > FACTOR).collect();
    let widest = apart.iter().max_by(|a, b| (a.2 / a.1).total_cmp(&(b.2 / b.1)))?;
    // A few steps of some dozens always meet a stall.
    if apart.len() * 10 < ranges.len() {
        return None;
    }
    let (step, least, most) = widest;
    Some(format!(
        "The speed of the device changed during the measurement: in {} of {} steps the fastest round was more than \
         twice as fast as the slowest, most of all {} with {} streams ({} to {} per second). Each rate is the median \
         of its rounds; compare rates by their intervals, or measure again when the device is quiet.",
        apart.len(),
        ranges.len(),
        step.method.name(),
        step.streams,
        thousands(least.round() as u64),
        thousands(most.round() as u64)
    ))
}

/// Somebody else wrote to the device while F0 was measured.
fn others(readings: &SyncReadings) -> Option<String> {
    let flush = readings.steps.iter().find(|s| s.part == SyncPart::Flush)?;
    let ours = flush.latency.count() * flush.bytes;
    let foreign = flush.device_write_bytes?.saturating_sub(ours);
    let seconds = flush.elapsed_ns as f64 / 1e9;
    let foreign_mb_per_s = foreign as f64 / 1e6 / seconds;
    // The file system writes a little of its own.
    if foreign < ours / 2 || foreign_mb_per_s < 1.0 {
        return None;
    }
    Some(format!(
        "Other processes used the device: during the measurement of F0 it wrote {} MB/s that the probe did not ask \
         for. Every figure includes this load; measure again when the device is quiet.",
        fixed(foreign_mb_per_s, 1)
    ))
}

/// All findings, in the order they are read.
pub(super) fn advise(readings: &SyncReadings, info: &SyncInfo) -> Vec<Advice> {
    let this = Curve { readings, info };
    let rules = [
        Curve::suspiciously_fast,
        Curve::unprotected,
        Curve::commit_delay,
        Curve::best_method,
        Curve::preallocate,
        Curve::parallel,
        Curve::tail,
    ];
    rules.iter().filter_map(|rule| rule(&this)).collect()
}

/// A rate with the ends of its 95 % interval: low, middle, high. `None` where there is no
/// interval, since such a rate cannot be compared.
fn interval(step: &SyncStep) -> Option<[f64; 3]> {
    let rate = step.per_s.value()?;
    let half = rate * step.per_s_ci95_pct.value()? / 100.0;
    Some([rate - half, rate, rate + half])
}

struct Curve<'a> {
    readings: &'a SyncReadings,
    info: &'a SyncInfo,
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
        interval(&self.found(method, growing, 1)?)
    }

    /// S1: the flush cannot have reached a medium.
    fn suspiciously_fast(&self) -> Option<Advice> {
        if self.readings.is_memory {
            return None;
        }
        let f0 = self.info.durable_write_us_p50.value()?;
        let ratio = self.info.sync_over_unsynced_ratio.value()?;
        let why = if f0 < LEAST_US {
            format!("a durable 4 KiB write takes {} us, which is faster than any storage medium", fixed(f0, 1))
        } else if self.volatile() && ratio < LEAST_FLUSH_RATIO {
            format!(
                "the device announces a volatile write cache, yet a flush adds nothing (durable {} us, unflushed {} us)",
                fixed(f0, 0),
                fixed(self.info.unsynced_write_us_p50.value()?, 0)
            )
        } else if self.readings.rotational == Some(true) && f0 < PLATTER_US {
            format!(
                "the kernel reports a rotating disk, but a durable write in {} us is less than half a rotation: it \
                 is a virtual disk, or a cache answers",
                fixed(f0, 0)
            )
        } else {
            return None;
        };
        let high = f0 < LEAST_US || (self.volatile() && ratio < LEAST_FLUSH_RATIO);
        let verdict = if high {
            "Speed cannot prove that data survives a power failure, and this speed does not even suggest it"
        } else {
            "Speed cannot prove that data survives a power failure"
        };
        let text = format!(
            "Suspiciously fast: {why}. {verdict}: check the cache mode of the hypervisor or the controller before \
             you trust a commit to this device."
        );
        Some(Advice::of("S1", high, text, &[("durable_write_us_p50", f0), ("sync_over_unsynced_ratio", ratio)]))
    }

    /// S2: what the ratio and the announcements say about power-loss protection.
    fn unprotected(&self) -> Option<Advice> {
        if self.readings.is_memory || !self.readings.direct {
            return None;
        }
        let ratio = self.info.sync_over_unsynced_ratio.value()?;
        let fua = match self.readings.fua {
            Some(true) => "and can force single writes (FUA)",
            Some(false) => {
                "and no forced single writes (FUA), so a durable write is a write and a flush of the whole cache"
            }
            None => "and does not say whether it can force single writes",
        };
        let times = fixed(ratio, 1);
        let text = match self.readings.write_cache.as_deref() {
            Some("write through") => format!(
                "The device announces a write-through cache: treat every acknowledged write as stable. A durable \
                 write costs {times} times as much as an unflushed write."
            ),
            Some("write back") if ratio >= UNPROTECTED_RATIO => format!(
                "Likely no power-loss protection: a durable write costs {times} times as much as an unflushed write, \
                 and the device announces a volatile write cache {fua}. \
                 A drive with protected buffers answers a flush at once."
            ),
            Some("write back") => format!(
                "The device announces a volatile write cache {fua}; a durable write costs {times} times as much as \
                 an unflushed write. This is fast enough for protected buffers or for a host that caches; speed \
                 cannot tell the two apart."
            ),
            _ if ratio >= UNPROTECTED_RATIO => format!(
                "Likely no power-loss protection: a durable write costs {times} times as much as an unflushed write; \
                 the device does not report its cache mode."
            ),
            _ => return None,
        };
        let high = ratio >= 2.0 * UNPROTECTED_RATIO;
        Some(Advice::of("S2", high, text, &[("sync_over_unsynced_ratio", ratio)]))
    }

    /// S3: above 2 / F0 commits per second a delay only adds latency.
    fn commit_delay(&self) -> Option<Advice> {
        let limit = self.info.commit_delay_limit_per_s.value()?;
        let f0 = self.info.durable_write_us_p50.value()?;
        let text = format!(
            "A commit delay is useless above {} commits/s (2 / F0, F0 = {} us): above this rate a log writer that \
             flushes as soon as the device is free forms the same groups without a delay. Below this rate a delay \
             trades latency for fewer flushes; leave it off unless flushes are scarce.",
            thousands(limit.round() as u64),
            fixed(f0, 0)
        );
        let evidence = [("commit_delay_limit_per_s", limit), ("durable_write_us_p50", f0)];
        Some(Advice::of("S3", false, text, &evidence))
    }

    /// S4: the quickest way for one stream to make a write durable.
    fn best_method(&self) -> Option<Advice> {
        const METHODS: [SyncMethod; 3] = [SyncMethod::Fdatasync, SyncMethod::Dsync, SyncMethod::Fsync];
        let rates: Vec<(SyncMethod, [f64; 3])> =
            METHODS.into_iter().filter_map(|method| Some((method, self.interval(method, false)?))).collect();
        let best = rates.iter().max_by(|a, b| a.1[1].total_cmp(&b.1[1]))?;
        let worst = rates.iter().min_by(|a, b| a.1[1].total_cmp(&b.1[1]))?;
        let gain = best.1[1] / worst.1[1];
        let apart = best.1[0] > worst.1[2];
        if rates.len() < METHODS.len() || gain < 1.1 || !apart {
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
        Some(Advice::of("S4", gain >= 2.0, text, &evidence))
    }

    /// S5: what a growing log costs.
    fn preallocate(&self) -> Option<Advice> {
        let [low, kept, _] = self.interval(SyncMethod::Fdatasync, false)?;
        let [_, grown, high] = self.interval(SyncMethod::Fdatasync, true)?;
        let gain = kept / grown;
        if gain < 1.2 || low <= high {
            return None;
        }
        let text = format!(
            "A log that grows with each commit makes {} durable writes per second; a preallocated and zero-written \
             log makes {}, {} times as many: with each growth the file system commits its own journal. Let the \
             database recycle its log files.",
            thousands(grown.round() as u64),
            thousands(kept.round() as u64),
            fixed(gain, 1)
        );
        let evidence = [("preallocated_per_s", kept), ("new_per_s", grown)];
        Some(Advice::of("S5", gain >= 2.4, text, &evidence))
    }

    /// S6: whether flushes in parallel bring more, hence one log writer or several.
    fn parallel(&self) -> Option<Advice> {
        let [single_low, single, single_high] = self.interval(SyncMethod::Fdatasync, false)?;
        let parallel = self.found(SyncMethod::Fdatasync, false, 32)?;
        let [many_low, many, many_high] = interval(&parallel)?;
        let mut steps = self.readings.steps.iter();
        let shared = steps.find(|step| step.method == SyncMethod::Group && step.streams > 1)?;
        let [group_low, group, group_high] = interval(&step(shared))?;
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
            "Parallel flushes: 32 streams make {} durable writes per second, {against_one}. With a shared flush they \
             make {} commits per second. {then}.",
            whole(many),
            whole(group)
        );
        let evidence = [("single_per_s", single), ("streams_32_per_s", many)];
        Some(Advice::of("S6", false, text, &evidence))
    }

    /// S7: a tail that a commit will meet.
    fn tail(&self) -> Option<Advice> {
        const RATIO: f64 = 10.0;
        let flush = self.info.steps.iter().find(|step| step.part == "flush")?;
        let p50 = flush.latency.p50_us.value().filter(|us| *us > 0.0)?;
        let (name, tail) = match (flush.latency.p999_us.value(), flush.latency.p99_us.value()) {
            (Some(us), _) => ("p99.9", us),
            (None, Some(us)) => ("p99", us),
            _ => return None,
        };
        let ratio = tail / p50;
        if ratio < RATIO {
            return None;
        }
        let text = format!(
            "The tail of a durable write is long: {name} is {} us, {} times the median of {} us; the longest took {} \
             us. Such a flush stalls all commits that share it.",
            fixed(tail, 0),
            fixed(ratio, 0),
            fixed(p50, 0),
            fixed(flush.latency.max_us.value()?, 0)
        );
        let evidence = [("tail_over_median_ratio", ratio), ("p50_us", p50)];
        Some(Advice::of("S7", ratio >= 2.0 * RATIO, text, &evidence))
    }
}
