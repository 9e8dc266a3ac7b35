//! Whether the numbers describe one state of one thing: R15, R25, R26, R30.

use super::{Judged, Missing, elapsed, finding, need};
use assay_measure::identity::{violated, violated_exact};
use assay_measure::record::Advice;
use assay_measure::record::{Figure, Record};
use assay_measure::sample::mean;
use assay_measure::units::fixed;

/// R15.
pub(super) fn unstable(record: &Record) -> Judged {
    const VARIATION: f64 = 0.3;
    const TREND: f64 = 0.7;
    let steady = &record.checks.steadiness;
    let variation = need(&steady.variation_ratio, "throughput per second")?;
    let trend = steady.last_over_first_ratio.value();
    let falls = trend.is_some_and(|trend| trend < TREND);
    if variation <= VARIATION && !falls {
        return Ok(None);
    }
    let trend_text = trend.map_or_else(String::new, |trend| {
        format!(", the last quarter of the window ran at {} % of the first quarter", fixed(100.0 * trend, 0))
    });
    let text = format!(
        "Unstable or cache-backed storage: throughput per second varies by {} % of its mean{trend_text}. Increase \
         RUN_TIME until the rate is level.",
        fixed(100.0 * variation, 0)
    );
    let mut evidence = vec![("variation_ratio", variation)];
    evidence.extend(trend.map(|trend| ("last_over_first_ratio", trend)));
    // A fall of 60 % is twice one of 30 %.
    let high = variation >= 2.0 * VARIATION || trend.is_some_and(|trend| trend <= 0.4);
    Ok(Some(Advice::of("R15", high, text, &evidence)))
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

/// R25.
pub(super) fn warm_up_or_tail(record: &Record) -> Judged {
    const ACTIVE: f64 = 0.99;
    const DEVIATION: f64 = 0.2;
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
    Ok(Some(Advice::of("R25", high, text, &evidence)))
}

/// R26.
pub(super) fn unfair(record: &Record) -> Judged {
    const THRESHOLD: f64 = 0.7;
    let spread = &record.driver.session_spread;
    let slowest = need(&spread.min_count, "operations per session")?;
    let median = need(&spread.median_count, "operations per session")?;
    if median <= 0.0 || slowest >= THRESHOLD * median {
        return Ok(None);
    }
    let ratio = slowest / median;
    let text = format!(
        "The target did not serve all sessions alike: the slowest did {} operations, the median session {} ({} %). \
         The cause is unfair scheduling or uneven data.",
        fixed(slowest, 0),
        fixed(median, 0),
        fixed(100.0 * ratio, 0)
    );
    let evidence = [("slowest_over_median_ratio", ratio), ("slowest_ops_count", slowest), ("median_ops_count", median)];
    Ok(Some(Advice::of("R26", ratio <= THRESHOLD / 2.0, text, &evidence)))
}

/// R30.
pub(super) fn numbers_disagree(record: &Record) -> Judged {
    if record.integrity.is_empty() {
        return Err(Missing("identities: none was evaluated".to_owned()));
    }
    // What was printed elsewhere has no exact identities; these say that figures cannot be of one run.
    const PRINTED: [&str; 4] = ["I29", "I30", "I31", "I37"];
    let (kind, exact) = match record.import {
        None => ("exact", violated_exact(record)),
        Some(_) => {
            let mut all = violated(record);
            all.retain(|found| PRINTED.iter().any(|id| found.id.starts_with(id)));
            ("printed", all)
        }
    };
    let Some(first) = exact.first() else {
        return Ok(None);
    };
    let ids: Vec<&str> = exact.iter().map(|identity| identity.id.as_str()).collect();
    let side = |figure: &Figure| figure.value().unwrap_or(f64::NAN);
    let text = format!(
        "Numbers do not agree: {} violated ({}). {}: {}. Draw no conclusion from the figures \
         named there.",
        match ids.len() {
            1 => format!("an identity of {kind} figures is"),
            count => format!("{count} identities of {kind} figures are"),
        },
        ids.join(", "),
        first.id,
        first.sentence
    );
    let evidence = [
        ("violated_exact_count", exact.len() as f64),
        ("violated_count", violated(record).len() as f64),
        ("lhs", side(&first.lhs)),
        ("rhs", side(&first.rhs)),
    ];
    finding("R30", 2.0, 1.0, text, &evidence)
}
