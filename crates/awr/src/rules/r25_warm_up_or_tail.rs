//! R25: warm-up or tail inside the window.

use super::*;

const ACTIVE: f64 = 0.99;
const DEVIATION: f64 = 0.2;

pub(super) const RULE: Rule = Rule {
    id: "R25",
    title: "Warm-up or tail inside the window",
    changes_figures: true,
    fires_when: || {
        format!(
            "Sessions were active for less than {ACTIVE} of the window, or its first or last twentieth is off the mean by more than {DEVIATION}; high at twice either"
        )
    },
    why: "The rates include time in which not all sessions were at work.",
    what_to_do: "Lengthen WARMUP or RUN_TIME, or use the corrected rate.",
    cannot_judge_when: "The active fraction, operations or elapsed time is n/a.",
    source: "Published load tests of the method: about 10 % idle.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let fraction = need(&record.interval.worker_active_fraction, "session active fraction")?;
    let edges = edges(record);
    let off = |rate: f64, all: f64| (rate / all - 1.0).abs();
    let worst = edges.map_or(0.0, |(first, last, all)| off(first, all).max(off(last, all)));
    if fraction >= ACTIVE && worst <= DEVIATION {
        return Ok(None);
    }
    let rate = need(&record.interval.ops_count, "operations")? / elapsed(record)?;
    let corrected = if fraction > 0.0 && fraction < ACTIVE { rate / fraction } else { rate };
    let mut evidence =
        vec![("session_active_fraction", fraction), ("ops_per_s", rate), ("corrected_ops_per_s", corrected)];
    let edges_text = edges.map_or_else(String::new, |(first, last, all)| {
        evidence.push(("first_twentieth_ratio", first / all));
        evidence.push(("last_twentieth_ratio", last / all));
        format!(
            " The first 5 % of the window ran at {} % of the mean rate, the last 5 % at {} %.",
            fixed(100.0 * first / all, 0),
            fixed(100.0 * last / all, 0)
        )
    });
    let (first_off, last_off) =
        edges.map_or((false, false), |(first, last, all)| (off(first, all) > DEVIATION, off(last, all) > DEVIATION));
    let idle_text = if fraction < ACTIVE {
        format!(
            " Sessions were active for {} % of it: {} operations per second, or {} corrected for idle sessions.",
            fixed(100.0 * fraction, 1),
            fixed(rate, 1),
            fixed(corrected, 1)
        )
    } else {
        String::new()
    };
    let way_out = match (first_off, last_off) {
        (true, false) => "Lengthen WARMUP.",
        (true, true) => "Increase WARMUP and RUN_TIME.",
        _ => "Increase RUN_TIME.",
    };
    let text = format!("Warm-up or tail inside the window.{edges_text}{idle_text} {way_out}");
    let high = fraction <= 1.0 - 2.0 * (1.0 - ACTIVE) || worst >= 2.0 * DEVIATION;
    Ok(Some(RULE.finding(high, text, &evidence)))
}

/// Rates of the first and the last twentieth of the window and of all of it; `None` with fewer
/// than ten steps.
fn edges(record: &Record) -> Option<(f64, f64, f64)> {
    let ops = record.series.metrics.get("ops_count_per_s")?;
    let rates: Vec<f64> = ops
        .iter()
        .zip(&record.series.in_window)
        .filter_map(|(rate, inside)| rate.value().filter(|_| *inside))
        .collect();
    if rates.len() < 10 {
        return None;
    }
    let edge = rates.len().div_ceil(20);
    let all = mean(&rates);
    (all > 0.0).then(|| (mean(&rates[..edge]), mean(&rates[rates.len() - edge..]), all))
}
