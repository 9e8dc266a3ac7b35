//! R8: read latency has two populations.

use super::*;

const LEAST_PCT: f64 = 1.0;
const HEAVY_PCT: f64 = 50.0;
/// Waits that take less of the sessions' time matter to nobody, %.
const MATTERS_PCT: f64 = 1.0;
/// Fewer waits have no shape.
const LEAST_WAITS: u64 = 100;

pub(super) const RULE: Rule = Rule {
    id: "R8",
    title: "Read latency has two populations",
    changes_figures: false,
    fires_when: || {
        format!(
            "The histogram of single reads has two maxima with a valley of at most half the lower one between them, and each maximum has at least {LEAST_PCT} % of the waits; there are at least {LEAST_WAITS}, and they take {MATTERS_PCT} % of DB time where that is known; high where the slow part takes {HEAVY_PCT} % of the time"
        )
    },
    why: "The average describes neither part. A cache tier, a second class of device or a limit that lets some reads wait makes two.",
    what_to_do: "Quote both populations; look for a limit, and enlarge the data until a faster tier stops answering.",
    cannot_judge_when: "Never: without a histogram of single reads the rule is silent.",
    source: "Published load tests of the method: 3.3 % of reads took 58 % of the time.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let names = ["db file sequential read", "cell single block physical read"];
    let mut named = names.into_iter().filter_map(|name| named(record, name, "foreground"));
    let Some(reads) = named.find(|event| event.hist_us.iter().any(|count| *count > 0)) else {
        return Ok(None);
    };
    let waits: u64 = reads.hist_us.iter().sum();
    if waits < LEAST_WAITS || reads.db_time_pct.value().is_some_and(|pct| pct < MATTERS_PCT) {
        return Ok(None);
    }
    let Some((low, valley, high)) = modes(&reads.hist_us) else {
        return Ok(None);
    };
    let slow: u64 = reads.hist_us[valley..].iter().sum();
    // Bucket i holds 2^(i-1) to 2^i us: its middle stands for its waits.
    let time = |buckets: std::ops::Range<usize>| -> f64 {
        buckets.map(|i| reads.hist_us[i] as f64 * 0.75 * (1_u64 << i) as f64).sum()
    };
    let all = time(0..reads.hist_us.len());
    let slow_time = 100.0 * time(valley..reads.hist_us.len()) / all;
    let slow_waits = 100.0 * slow as f64 / waits as f64;
    let fast_mean = time(0..valley) / (waits - slow) as f64;
    let text = format!(
        "Read latency has two populations, around {} and {}: {}. The slow population is {} % of waits and {} % of the time; the fast one averages {}. The average of all \
         reads describes neither.",
        told(f64::from(1_u32 << low), "us", 0),
        told(f64::from(1_u32 << high), "us", 0),
        cause(record),
        fixed(slow_waits, 1),
        fixed(slow_time, 0),
        told(fast_mean, "us", 0)
    );
    let evidence = [("slow_waits_pct", slow_waits), ("slow_time_pct", slow_time), ("fast_us_avg", fast_mean)];
    fired(&RULE, slow_time, HEAVY_PCT / 2.0, text, &evidence)
}

/// What makes two populations, by what else is known: a limit that was reached, or CPUs that were not free.
fn cause(record: &Record) -> &'static str {
    /// Share of the time without a CPU that makes some waits long, %.
    const DELAYED_PCT: f64 = 5.0;
    if matches!(r12_pinned_at_a_cap::judge(record), Ok(Some(_))) {
        "the slow ones waited at the limit set on the device"
    } else if cpu::delayed_pct(record).is_some_and(|pct| pct >= DELAYED_PCT) {
        "the slow ones may have waited for a CPU, or for a slower tier of the storage"
    } else {
        "a cache tier, a second device class or a limit on the device can do this"
    }
}

/// Lower mode, valley and upper mode of a log2 histogram.
pub(super) fn modes(buckets: &[u64]) -> Option<(usize, usize, usize)> {
    let all: u64 = buckets.iter().sum();
    let mut best = None;
    for low in 0..buckets.len() {
        for high in low + 2..buckets.len() {
            let (valley, least) = (low + 1..high).map(|i| (i, buckets[i])).min_by_key(|(_, n)| *n)?;
            let lower = buckets[low].min(buckets[high]);
            if 2 * least <= lower
                && 100.0 * lower as f64 >= LEAST_PCT * all as f64
                && best.is_none_or(|(l, _)| lower > l)
            {
                best = Some((lower, (low, valley, high)));
            }
        }
    }
    best.map(|(_, modes)| modes)
}
