//! R14: the average hides outliers.

use super::*;

const LEAST_WAITS: u64 = 1000;
const LEAST_PCT: f64 = 1.0;
const MAX: f64 = 100.0;
const DEVIATION: f64 = 3.0;
const HEAVY_PCT: f64 = 10.0;

pub(super) const RULE: Rule = Rule {
    id: "R14",
    title: "The average hides outliers",
    changes_figures: false,
    fires_when: || {
        format!(
            "Of an event with at least {LEAST_WAITS} waits and {LEAST_PCT} % of DB time the longest wait is {MAX} times the average, or the standard deviation {DEVIATION} times; high at twice either where the slowest thousandth takes {HEAVY_PCT} % of the time"
        )
    },
    why: "A user meets the tail; the average does not show it.",
    what_to_do: "Quote percentiles and the longest wait beside the average, and look at when the outliers came.",
    cannot_judge_when: "Never: without a histogram the rule is silent.",
    source: "Published load tests of the method: mean 0.308 ms, longest 199.7 ms.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let events = foreground(record, |event| {
        event.class != "Idle"
            && event.hist_ns.count() >= LEAST_WAITS
            && event.db_time_pct.value().is_some_and(|pct| pct >= LEAST_PCT)
    });
    // How far beyond its threshold the worse of the two is.
    let excess = |event: &EventRow| {
        let max = event.us_max.value()? / event.us_avg.value()?;
        let deviation = deviation(&event.hist_ns)?;
        Some((max, deviation, (max / MAX).max(deviation / DEVIATION)))
    };
    let worst = events.filter_map(|event| Some((event, excess(event)?))).max_by(|a, b| a.1.2.total_cmp(&b.1.2));
    let Some((event, (max, deviation, excess))) = worst else {
        return Ok(None);
    };
    if excess < 1.0 {
        return Ok(None);
    }
    let tail = tail_time_pct(&event.hist_ns);
    let us = |figure: &Figure| figure.value().map(|us| told(us, "us", 0));
    let text = format!(
        "The average hides outliers: the longest {} took {}, {} times the average of {}; the standard \
         deviation is {} times the average{}. The slowest 0.1 % of the waits take {} % of the total wait time.",
        event.name,
        us(&event.us_max).unwrap_or_default(),
        fixed(max, 0),
        us(&event.us_avg).unwrap_or_default(),
        fixed(deviation, 1),
        us(&event.us_p999).map_or_else(String::new, |us| format!("; p99.9 {us}")),
        fixed(tail, 1)
    );
    let evidence =
        [("max_over_mean_ratio", max), ("deviation_over_mean_ratio", deviation), ("slowest_thousandth_time_pct", tail)];
    // One wait of a run may be long; it weighs where such waits take a part of the time.
    let is_high = excess >= 2.0 && tail >= HEAVY_PCT;
    Ok(Some(RULE.advise(is_high, text, &evidence)))
}

/// Middle and count of the histogram's slots, the slowest first.
fn slots(histogram: &Histogram) -> Vec<(f64, f64)> {
    let mut slots: Vec<(f64, f64)> = histogram
        .sparse()
        .into_iter()
        .map(|(slot, count)| {
            let (low, width) = slot_low_and_width_ns(slot as usize);
            (low as f64 + width as f64 / 2.0, count as f64)
        })
        .collect();
    slots.reverse();
    slots
}

/// Standard deviation over mean, from the slots' middles.
fn deviation(histogram: &Histogram) -> Option<f64> {
    let mean = histogram.mean_ns().filter(|mean| *mean > 0.0)?;
    let squares: f64 = slots(histogram).into_iter().map(|(middle, count)| count * (middle - mean).powi(2)).sum();
    Some((squares / histogram.count() as f64).sqrt() / mean)
}

/// Share of the time that the slowest thousandth of the waits took, 0..100.
fn tail_time_pct(histogram: &Histogram) -> f64 {
    let mut left = (histogram.count() as f64 / 1000.0).max(1.0);
    let (mut tail, mut all) = (0.0, 0.0);
    for (middle, count) in slots(histogram) {
        let taken = count.min(left);
        left -= taken;
        tail += taken * middle;
        all += count * middle;
    }
    100.0 * tail / all
}
