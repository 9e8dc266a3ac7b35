//! From a difference to a word and a sentence.

use super::model::{Against, Comparison, Finding, Pair, Row, Verdict};
use super::sides::{Compared, Unjudged};
use assay_measure::record::Figure;
use assay_measure::sample::{ALPHA, Difference};
use assay_measure::units::{fixed, significant};

/// Beyond it "would have been seen" is no longer worth a figure.
const MOST_PCT: f64 = 100.0;

/// What one outcome is judged by.
pub(super) struct Judgement<'a> {
    pub(super) row: &'a Row,
    pub(super) forbids_faster: bool,
    /// The corrected chance, of a declared figure.
    pub(super) p_holm: Option<f64>,
    /// Error allowed for the smallest difference that would have been seen.
    pub(super) alpha: f64,
}

impl Judgement<'_> {
    pub(super) fn of(&self, outcome: Result<Compared, Unjudged>) -> Against {
        let none = |reason: &str| Against {
            ratio: Figure::na(reason),
            low_ratio: Figure::na(reason),
            high_ratio: Figure::na(reason),
            p: Figure::na(reason),
            p_holm: Figure::na(reason),
            degrees: Figure::na(reason),
            detectable_80_pct: Figure::na(reason),
            detectable_95_pct: Figure::na(reason),
            ..Against::default()
        };
        match outcome {
            Ok(compared) => self.judged(&compared),
            Err(Unjudged::Na(reason)) => Against {
                sentence: format!("n/a ({reason})"),
                ..none(&reason)
            },
            Err(Unjudged::OneValue(estimate, why)) => Against {
                method: "values".to_owned(),
                ratio: Figure::decimal(estimate.exp()),
                verdict: Verdict::OneValue,
                sentence: format!("x {}; {why}", ratio_text(estimate.exp())),
                ..none(&why)
            },
            Err(Unjudged::TooShort(estimate, why)) => Against {
                method: "values".to_owned(),
                ratio: Figure::decimal(estimate.exp()),
                verdict: Verdict::TooShort,
                sentence: format!("x {}; too short to say: {why}", ratio_text(estimate.exp())),
                ..none(&why)
            },
        }
    }

    fn judged(&self, compared: &Compared) -> Against {
        let difference = &compared.difference;
        let (low, high) = difference.interval(1.0 - ALPHA);
        let p = difference.p_value();
        let is_shown = self.p_holm.unwrap_or(p) <= ALPHA;
        let detectable = |power: f64| pct(difference.detectable(self.alpha, power));
        let verdict = self.word(is_shown, difference.estimate);
        Against {
            method: compared.method.to_owned(),
            basis: compared.basis.clone(),
            ratio: Figure::decimal(difference.estimate.exp()),
            low_ratio: Figure::decimal(low.exp()),
            high_ratio: Figure::decimal(high.exp()),
            p: Figure::decimal(p),
            p_holm: self
                .p_holm
                .map_or_else(|| Figure::na("not a declared figure"), Figure::decimal),
            degrees: Figure::decimal(difference.degrees),
            detectable_80_pct: Figure::decimal(detectable(0.8)),
            detectable_95_pct: Figure::decimal(detectable(0.95)),
            verdict,
            sentence: self.sentence(compared, verdict, (low, high), detectable(0.95)),
            remark: compared.remark.clone(),
        }
    }

    fn word(&self, is_shown: bool, estimate: f64) -> Verdict {
        let is_up = estimate > 0.0;
        match (is_shown, self.forbids_faster, self.row.better.as_str()) {
            (false, ..) => Verdict::NoDifference,
            (true, false, "higher") if is_up => Verdict::Better,
            (true, false, "higher") => Verdict::Worse,
            (true, false, "lower") if is_up => Verdict::Worse,
            (true, false, "lower") => Verdict::Better,
            (true, ..) if is_up => Verdict::Higher,
            (true, ..) => Verdict::Lower,
        }
    }

    fn sentence(
        &self,
        compared: &Compared,
        verdict: Verdict,
        (low, high): (f64, f64),
        detectable_pct: f64,
    ) -> String {
        let difference = &compared.difference;
        let mut text = if verdict.is_shown() {
            shown(
                self.direction(verdict, difference.estimate),
                difference,
                (low, high),
            )
        } else {
            let mut text = format!(
                "no difference shown (95 % interval {} to {} %)",
                signed(pct(low)),
                signed(pct(high))
            );
            if let Some(p) = self.p_holm.filter(|_| difference.p_value() <= ALPHA) {
                text.push_str(&format!(
                    ", by itself it would be, but not among all the declared figures (p {} after Holm's correction)",
                    significant(p, 2)
                ));
            }
            text
        };
        text.push_str(&seen(detectable_pct));
        text
    }

    /// What a difference in this direction is called.
    fn direction(&self, verdict: Verdict, estimate: f64) -> &'static str {
        let is_up = estimate > 0.0;
        let is_named = matches!(verdict, Verdict::Better | Verdict::Worse);
        match (is_named, self.row.unit.as_str(), is_up) {
            (true, unit, true) if unit.ends_with("/s") => "faster",
            (true, unit, false) if unit.ends_with("/s") => "slower",
            (true, "us" | "ms" | "ns", true) => "longer",
            (true, "us" | "ms" | "ns", false) => "shorter",
            (_, _, true) => "higher",
            (_, _, false) => "lower",
        }
    }
}

/// `faster by 4.1 % (95 % interval 2.0 to 6.3 %)`; downwards the size of the fall, smaller end first.
fn shown(word: &str, difference: &Difference, (low, high): (f64, f64)) -> String {
    let size = |log: f64| pct(log).abs();
    let (from, to) = match difference.estimate > 0.0 {
        true => (pct(low), pct(high)),
        false => (-pct(high), -pct(low)),
    };
    format!(
        "{word} by {} % (95 % interval {} to {} %)",
        percent(size(difference.estimate)),
        percent(from),
        percent(to)
    )
}

/// What would have been seen, 19 times in 20.
fn seen(detectable_pct: f64) -> String {
    if detectable_pct == 0.0 {
        return "; any difference would have been seen: nothing varied at all".to_owned();
    }
    if detectable_pct > MOST_PCT {
        return "; not even a doubling would have been seen for sure".to_owned();
    }
    format!(
        "; a difference of {} % or more would have been seen",
        percent(detectable_pct)
    )
}

/// A difference of logarithms as percent.
pub(super) fn pct(log: f64) -> f64 {
    100.0 * (log.exp() - 1.0)
}

/// A percentage to a tenth, or two digits where that would be 0.
pub(super) fn percent(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.05 {
        return significant(value, 1);
    }
    fixed(value, 1)
}

fn signed(value: f64) -> String {
    match value < 0.0 {
        true => percent(value),
        false => format!("+{}", percent(value)),
    }
}

/// A ratio with as many decimals as tell it from 1.
pub(super) fn ratio_text(ratio: f64) -> String {
    if ratio < 0.1 || (ratio - 1.0).abs() < 0.001 && ratio != 1.0 {
        return significant(ratio, if ratio < 0.1 { 3 } else { 6 });
    }
    fixed(ratio, 3)
}

/// The method that most declared figures were compared by, and what it means.
pub(super) fn method(rows: &[Row], family: u64) -> (String, String) {
    let last = |row: &Row| row.against.last().cloned().unwrap_or_default();
    let declared: Vec<Against> = rows.iter().filter(|row| row.is_primary).map(last).collect();
    let has = |name: &str| declared.iter().find(|against| against.method == name);
    let corrected = format!("Holm's correction over {family} declared figures");
    if let Some(found) = has("repeats") {
        let text = format!(
            "{}: Welch's t test on logarithms, {corrected}; run-to-run variance is in the intervals",
            found.basis
        );
        return ("repeats".to_owned(), text);
    }
    if let Some(found) = has("within-run") {
        let text = format!(
            "within-run only: Welch's t test on logarithms of batch means ({} by their autocorrelation), {corrected}; \
             run-to-run variance is unknown: `assay run --repeat 5` on both sides makes it known",
            found.basis
        );
        return ("within-run".to_owned(), text);
    }
    let text = "single values: ratios only, nothing is known of their noise".to_owned();
    ("values".to_owned(), text)
}

/// The outcome of every pair in sentences.
pub(super) fn conclusion(comparison: &Comparison) -> Vec<String> {
    let pairs = comparison.pairs.iter().enumerate();
    pairs
        .flat_map(|(at, pair)| of_pair(comparison, at, pair))
        .collect()
}

fn of_pair(comparison: &Comparison, at: usize, pair: &Pair) -> Vec<String> {
    let lead = format!("{} against {}", pair.candidate, pair.baseline);
    let mut all = Vec::new();
    if pair.forbids_faster {
        let why: Vec<String> = pair
            .checks
            .iter()
            .filter(|check| check.finding == Finding::Forbids)
            .map(|check| format!("{} {} and {}", check.what, check.baseline, check.candidate))
            .collect();
        all.push(format!(
            "{lead}: not comparable: {}. What follows are two different tests side by side, and neither is called faster.",
            why.join("; ")
        ));
    }
    let is_about = |verdict: Verdict| {
        move |row: &&Row| {
            row.is_primary && row.against.get(at).is_some_and(|a| a.verdict == verdict)
        }
    };
    let rows = &comparison.rows;
    for verdict in [
        Verdict::Better,
        Verdict::Worse,
        Verdict::Higher,
        Verdict::Lower,
    ] {
        for row in rows.iter().filter(is_about(verdict)) {
            all.push(format!(
                "{lead}: {}: {}.",
                row.key, row.against[at].sentence
            ));
        }
    }
    for (verdict, words) in [
        (Verdict::NoDifference, "no difference shown"),
        (Verdict::TooShort, "too short to say"),
        (
            Verdict::OneValue,
            "one value each, nothing is known of their noise",
        ),
    ] {
        let named: Vec<String> = rows
            .iter()
            .filter(is_about(verdict))
            .map(|row| named(row, &row.against[at]))
            .collect();
        if !named.is_empty() {
            all.push(format!("{lead}: {words}: {}.", named.join(", ")));
        }
    }
    if all.is_empty() {
        all.push(format!("{lead}: no declared figure stands on both sides."));
    }
    if pair.method == "within-run" {
        all.push(format!(
            "{lead}: within-run only, run-to-run variance unknown."
        ));
    }
    all
}

/// A figure with what would have been seen of it, or with its ratio.
fn named(row: &Row, against: &Against) -> String {
    match (against.detectable_95_pct.value(), against.ratio.value()) {
        (Some(detectable), _) if detectable > MOST_PCT => {
            format!("{} (not even a doubling would have been for sure)", row.key)
        }
        (Some(0.0), _) => format!("{} (nothing varied at all)", row.key),
        (Some(detectable), _) => {
            format!(
                "{} ({} % or more would have been)",
                row.key,
                percent(detectable)
            )
        }
        (None, Some(ratio)) => format!("{} x {}", row.key, ratio_text(ratio)),
        (None, None) => row.key.clone(),
    }
}
