//! From a difference to a word and a sentence.

use super::host::HOST;
use super::model::{Against, ComparedRow, Comparison, DifferenceVerdict, Finding, Pair};
use super::samples::{Compared, Unjudged};
use assay_measure::record::{Advice, Figure};
use assay_measure::section::Weight;
use assay_measure::statistics::ALPHA;
use assay_measure::units::{fixed, significant};

/// The smallest change that users act on, %: "no difference" is said only where one of this size would have been shown.
const MATTERS_PCT: f64 = 10.0;

/// What one outcome is judged by.
pub(super) struct Judgement<'a> {
    pub(super) row: &'a ComparedRow,
    pub(super) pair: &'a Pair,
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
        let na = |reason: &str| Against { sentence: format!("n/a ({reason})"), ..none(reason) };
        if !self.pair.shared_runs.is_empty() {
            return na("a run is on both sides");
        }
        match outcome {
            Ok(compared) => self.judged(&compared),
            Err(Unjudged::Na(reason)) => na(&reason),
            Err(Unjudged::OneValue(estimate, why)) => Against {
                method: "values".to_owned(),
                ratio: Figure::decimal(estimate.exp()),
                verdict: DifferenceVerdict::OneValue,
                sentence: format!("x {}; {why}", ratio_text(estimate.exp())),
                ..none(&why)
            },
            Err(Unjudged::TooShort(estimate, why)) => Against {
                method: "values".to_owned(),
                ratio: Figure::decimal(estimate.exp()),
                verdict: DifferenceVerdict::TooShort,
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
        let others = self.others(compared.method);
        let is_explained = low - others.raised <= 0.0 && high + others.lowered >= 0.0;
        let is_blurred = detectable(0.95) > MATTERS_PCT || pct(others.raised.max(others.lowered)) > MATTERS_PCT;
        let verdict = match is_shown {
            true if is_explained => DifferenceVerdict::NotMeasurable,
            true => self.word(difference.estimate),
            false if is_blurred => DifferenceVerdict::NotMeasurable,
            false => DifferenceVerdict::NoDifference,
        };
        Against {
            method: compared.method.to_owned(),
            basis: compared.basis.clone(),
            ratio: Figure::decimal(difference.estimate.exp()),
            low_ratio: Figure::decimal(low.exp()),
            high_ratio: Figure::decimal(high.exp()),
            p: Figure::decimal(p),
            p_holm: self.p_holm.map_or_else(|| Figure::na("not a declared figure"), Figure::decimal),
            degrees: Figure::decimal(difference.degrees),
            detectable_80_pct: Figure::decimal(detectable(0.8)),
            detectable_95_pct: Figure::decimal(detectable(0.95)),
            is_disturbed: others.raised.max(others.lowered) > 0.0,
            verdict,
            sentence: self.sentence(compared, verdict, (low, high)),
            remark: compared.remark.clone(),
        }
    }

    /// How much others on the hosts may have changed the ratio. A run that lost a share s of its pace would have had 1 / (1 - s)
    /// times the rate; a tail of latencies may have been longer by any factor. Where repeats tell how much the hosts'
    /// moods scatter, only what one side lost more than the other is left.
    fn others(&self, method: &str) -> Others {
        let lost = |letter: &str| {
            let mut all = self.pair.disturbances.iter();
            let found = all.find(|disturbance| disturbance.group == letter);
            let share = found.map_or(0.0, |disturbance| disturbance.lost_pct / 100.0);
            if share > 0.0 && is_tail(&self.row.key) { f64::INFINITY } else { -(1.0 - share).ln() }
        };
        let (mut a, mut b) = (lost(&self.pair.baseline), lost(&self.pair.candidate));
        if method == "repeats" {
            (a, b) = ((a - b).max(0.0), (b - a).max(0.0));
        }
        match self.row.better.as_str() {
            "higher" => Others { raised: a, lowered: b },
            "lower" => Others { raised: b, lowered: a },
            _ => Others { raised: a.max(b), lowered: a.max(b) },
        }
    }

    fn word(&self, estimate: f64) -> DifferenceVerdict {
        let is_up = estimate > 0.0;
        match (self.pair.forbids_faster, self.row.better.as_str()) {
            (false, "higher") if is_up => DifferenceVerdict::Better,
            (false, "higher") => DifferenceVerdict::Worse,
            (false, "lower") if is_up => DifferenceVerdict::Worse,
            (false, "lower") => DifferenceVerdict::Better,
            _ if is_up => DifferenceVerdict::Higher,
            _ => DifferenceVerdict::Lower,
        }
    }

    fn sentence(&self, compared: &Compared, verdict: DifferenceVerdict, (low, high): (f64, f64)) -> String {
        let estimate = compared.difference.estimate;
        if verdict.is_shown() {
            return format!(
                "{} ({} x, 95 % interval {} to {})",
                self.shown(verdict, estimate),
                ratio_text(estimate.exp()),
                ratio_text(low.exp()),
                ratio_text(high.exp())
            );
        }
        let change = left_open(low.exp(), high.exp());
        if verdict == DifferenceVerdict::NotMeasurable && self.p_holm.unwrap_or(compared.difference.p_value()) <= ALPHA
        {
            return format!(
                "{}, 95 % interval {} to {} x; other work may have part in it",
                if estimate > 0.0 { "higher" } else { "lower" },
                ratio_text(low.exp()),
                ratio_text(high.exp())
            );
        }
        let said = match verdict {
            DifferenceVerdict::NotMeasurable => "not measurable now",
            _ => "no difference shown",
        };
        let mut text = format!("{said} (95 % interval: {change})");
        if let Some(p) = self.p_holm.filter(|_| compared.difference.p_value() <= ALPHA) {
            text.push_str(&format!(
                "; alone it would show one, but not when all declared figures are tested together (p {} after Holm's \
                 correction)",
                significant(p, 2)
            ));
        }
        text
    }

    /// `B does 4.1 % more per second than A`.
    fn shown(&self, verdict: DifferenceVerdict, estimate: f64) -> String {
        let (a, b) = (&self.pair.baseline, &self.pair.candidate);
        let share = percent(pct(estimate).abs());
        let is_up = estimate > 0.0;
        let more = if is_up { "more" } else { "less" };
        let is_named = matches!(verdict, DifferenceVerdict::Better | DifferenceVerdict::Worse);
        match self.row.unit.as_str() {
            unit if is_named && unit.ends_with("/s") => {
                format!("{b} does {share} % {more} per second than {a}")
            }
            "us" | "ms" | "ns" if is_named => format!("{b} takes {share} % {more} time than {a}"),
            _ => {
                let word = if is_up { "higher" } else { "lower" };
                format!("{b} is {share} % {word} than {a}")
            }
        }
    }
}

/// What others on the hosts may have done to a ratio, as differences of logarithms, both at least 0.
struct Others {
    /// It may be so much too high.
    raised: f64,
    /// It may be so much too low.
    lowered: f64,
}

/// Whether a figure is of the few longest waits.
fn is_tail(key: &str) -> bool {
    ["_p9", "_max"].iter().any(|part| key.contains(part))
}

/// The changes that the ends of an interval, of ratios, leave open.
pub(super) fn left_open(low: f64, high: f64) -> String {
    // Below it the arithmetic itself is rough.
    const NOTHING: f64 = 1e-9;
    /// An interval that reaches further says no more than one that ends here.
    const FAR_PCT: f64 = 1000.0;
    let change = |ratio: f64| match 100.0 * (ratio - 1.0) {
        far if far > FAR_PCT => format!("more than +{}", fixed(FAR_PCT, 0)),
        near => signed(near),
    };
    if (low - 1.0).abs().max((high - 1.0).abs()) < NOTHING {
        "no value varied".to_owned()
    } else {
        format!("{} to {} %", change(low), change(high))
    }
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
    if value < 0.0 { percent(value) } else { format!("+{}", percent(value)) }
}

/// A ratio with as many decimals as tell it from 1.
pub(super) fn ratio_text(ratio: f64) -> String {
    if ratio < 0.1 || (ratio - 1.0).abs() < 0.001 && ratio != 1.0 {
        return significant(ratio, if ratio < 0.1 { 3 } else { 6 });
    }
    fixed(ratio, 3)
}

/// The method that most declared figures were compared by, and what it means.
pub(super) fn method(rows: &[ComparedRow], family: u64) -> (String, String) {
    let last = |row: &ComparedRow| row.against.last().cloned().unwrap_or_default();
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
             run-to-run variance unknown: use `assay run --repeat 5` on both sides to measure it",
            found.basis
        );
        return ("within-run".to_owned(), text);
    }
    let text = "single values: ratios only, the noise is unknown".to_owned();
    ("values".to_owned(), text)
}

/// The outcome of every pair in sentences, each with how much it matters; what forbids a verdict comes first.
pub(super) fn sentences(comparison: &Comparison) -> Vec<(Weight, String)> {
    let pairs = comparison.pairs.iter().enumerate();
    pairs.flat_map(|(at, pair)| of_pair(comparison, at, pair)).collect()
}

fn of_pair(comparison: &Comparison, at: usize, pair: &Pair) -> Vec<(Weight, String)> {
    let (a, b) = (&pair.baseline, &pair.candidate);
    if !pair.shared_runs.is_empty() {
        return vec![(Weight::Warning, shared(comparison, at, pair))];
    }
    let mut all = Vec::new();
    all.extend(varied(pair).map(|said| (Weight::Plain, said)));
    if pair.forbids_faster {
        all.push((Weight::Warning, not_comparable(pair)));
    }
    all.extend(hosts(pair).map(|said| (Weight::Plain, said)));
    all.extend(disturbed(pair).map(|said| (Weight::Warning, said)));
    let declared = comparison.rows.iter().filter(|row| row.is_primary);
    let declared = declared.filter_map(|row| Some((row, row.against.get(at)?)));
    let declared: Vec<(&ComparedRow, &Against)> =
        declared.filter(|(_, against)| against.verdict != DifferenceVerdict::Na).collect();
    all.push((Weight::Plain, summary(pair, &declared)));
    for (verdict, weight) in [
        (DifferenceVerdict::Better, Weight::Plain),
        (DifferenceVerdict::Worse, Weight::Warning),
        (DifferenceVerdict::Higher, Weight::Plain),
        (DifferenceVerdict::Lower, Weight::Plain),
    ] {
        for (row, against) in declared.iter().filter(|(_, a)| a.verdict == verdict) {
            all.push((weight, format!("{}: {}.", row.name, against.sentence)));
        }
    }
    for (row, against) in declared.iter().filter(|(_, a)| may_be_others(a)) {
        all.push((Weight::Plain, format!("{}: {}.", row.name, against.sentence)));
    }
    let mut list = |verdict: DifferenceVerdict, of: fn(&Against) -> String, words: String| {
        let rows = declared.iter().filter(|(_, a)| a.verdict == verdict && !may_be_others(a));
        let named: Vec<String> = rows.map(|(row, against)| format!("{} {}", row.name, of(against))).collect();
        if !named.is_empty() {
            all.push((Weight::Plain, format!("{words}: {}.", named.join(", "))));
        }
    };
    list(
        DifferenceVerdict::NoDifference,
        change,
        format!(
            "These figures show no difference between {a} and {b} (in brackets: the change that the 95 % interval \
             leaves open)"
        ),
    );
    list(DifferenceVerdict::NotMeasurable, change, not_measurable(pair));
    let short = declared.iter().find(|(_, a)| a.verdict == DifferenceVerdict::TooShort);
    let why = short.and_then(|(_, against)| against.p.reason());
    list(
        DifferenceVerdict::TooShort,
        times,
        format!("The runs are too short to say whether {a} and {b} differ ({})", why.unwrap_or_default()),
    );
    list(
        DifferenceVerdict::OneValue,
        times,
        format!("The noise of these figures of {a} and {b} is unknown, so assay can give only ratios"),
    );
    all
}

/// Whether a difference is shown that other work on the hosts could explain in part or whole.
fn may_be_others(against: &Against) -> bool {
    let p = against.p_holm.value().or(against.p.value());
    against.verdict == DifferenceVerdict::NotMeasurable && p.is_some_and(|p| p <= ALPHA)
}

/// What is said before the figures of which nothing can be said now.
fn not_measurable(pair: &Pair) -> String {
    let others = if pair.disturbances.is_empty() { "" } else { " and other work" };
    format!(
        "Not measurable now: a change of {MATTERS_PCT} % between {} and {} could be masked or mimicked by \
         noise{others} (in brackets: the change that the 95 % interval leaves open)",
        pair.baseline, pair.candidate
    )
}

fn not_comparable(pair: &Pair) -> String {
    let forbids = |check: &&super::Check| check.finding == Finding::Forbids;
    let why = pair.checks.iter().filter(forbids);
    let why = why.map(|check| format!("{} {} and {}", check.what, check.baseline, check.candidate));
    format!(
        "{} against {}: not comparable: {}. The tables show two different tests side by side, and assay calls \
         neither side faster. \
         If you varied one of these on purpose, name it: --allow NAME.",
        pair.candidate,
        pair.baseline,
        why.collect::<Vec<_>>().join("; ")
    )
}

/// Facts of the hosts that differ and were not varied on purpose.
pub(super) fn hosts(pair: &Pair) -> Option<String> {
    const FIRST: usize = 5;
    let checks = pair.checks.iter();
    let checks = checks.filter(|check| check.finding == Finding::Tolerable);
    let told: Vec<String> = checks
        .filter_map(|check| {
            let fact = check.what.strip_prefix(HOST)?;
            Some(format!("{fact} {} and {}", check.baseline, check.candidate))
        })
        .collect();
    let more = match told.len().saturating_sub(FIRST) {
        0 => String::new(),
        more => format!(" ({more} more are among the conditions)"),
    };
    let first: Vec<&str> = told.iter().take(FIRST).map(String::as_str).collect();
    (!told.is_empty()).then(|| {
        format!(
            "The hosts of {} and {} differ, which may be a cause: {}{more}.",
            pair.baseline,
            pair.candidate,
            first.join("; ")
        )
    })
}

/// What others did to either side.
fn disturbed(pair: &Pair) -> Option<String> {
    let told = pair.disturbances.iter();
    let told: Vec<String> = told
        .map(|found| {
            format!(
                "of {} ({}) {}: this may have slowed it by {} %",
                found.group,
                found.run,
                found.text,
                percent(found.lost_pct)
            )
        })
        .collect();
    (!told.is_empty()).then(|| {
        format!(
            "Other work slowed these runs. On the host {}. assay reports no difference that this load could explain; \
             repeat both sides on an otherwise idle host, with CPUs of its own.",
            told.join("; on that ")
        )
    })
}

/// What differs on purpose.
fn varied(pair: &Pair) -> Option<String> {
    let checks = pair.checks.iter();
    let varied = checks.filter(|check| check.finding == Finding::Varied);
    let told: Vec<String> =
        varied.map(|check| format!("{} {} and {}", check.what, check.baseline, check.candidate)).collect();
    (!told.is_empty()).then(|| {
        format!(
            "{} and {} differ on purpose: {}. The figures show the effect.",
            pair.baseline,
            pair.candidate,
            told.join("; ")
        )
    })
}

/// What is said in place of verdicts where a run is compared with itself.
pub(super) fn shared(comparison: &Comparison, at: usize, pair: &Pair) -> String {
    let (a, b) = (&pair.baseline, &pair.candidate);
    let runs = |at: usize| comparison.groups.get(at).map_or(0, |group| group.runs.len());
    let count = pair.shared_runs.len();
    if count == runs(0) && count == runs(at + 1) {
        let what = if count == 1 { "the same run" } else { "the same runs" };
        return format!("{b} and {a} are {what}: there is nothing to compare, so there is no verdict.");
    }
    format!(
        "{} of {b} is also a run of {a}: the two groups are not independent, so there is no verdict.",
        pair.shared_runs.join(", ")
    )
}

/// `B against A, 10 declared figures: 1 better, 2 worse, 7 without a shown difference.`
fn summary(pair: &Pair, declared: &[(&ComparedRow, &Against)]) -> String {
    let (a, b) = (&pair.baseline, &pair.candidate);
    let told = [
        (&[DifferenceVerdict::Better][..], "better"),
        (&[DifferenceVerdict::Worse], "worse"),
        (&[DifferenceVerdict::Higher], "higher"),
        (&[DifferenceVerdict::Lower], "lower"),
        (&[DifferenceVerdict::NoDifference], "without a shown difference"),
        (&[DifferenceVerdict::NotMeasurable], "not measurable now"),
        (&[DifferenceVerdict::TooShort, DifferenceVerdict::OneValue], "not judged"),
    ];
    let told = told.iter().filter_map(|(verdicts, words)| {
        let counted = declared.iter().filter(|(_, a)| verdicts.contains(&a.verdict));
        match counted.count() {
            0 => None,
            count => Some(format!("{count} {words}")),
        }
    });
    let told: Vec<String> = told.collect();
    match declared.len() {
        0 => format!("{b} against {a}: no declared figure can be compared."),
        1 => format!("{b} against {a}, 1 declared figure: {}.", told.join(", ")),
        count => format!("{b} against {a}, {count} declared figures: {}.", told.join(", ")),
    }
}

/// What rules find on the sides, each finding with the letters of the sides that have it.
pub(super) fn findings(comparison: &Comparison) -> Vec<(Vec<&str>, &Advice)> {
    let mut all: Vec<(Vec<&str>, &Advice)> = Vec::new();
    for group in &comparison.groups {
        for advice in &group.findings {
            match all.iter_mut().find(|(_, known)| known.id == advice.id) {
                Some((letters, _)) => letters.push(&group.letter),
                None => all.push((vec![&group.letter], advice)),
            }
        }
    }
    all
}

fn change(against: &Against) -> String {
    match (against.low_ratio.value(), against.high_ratio.value()) {
        (Some(low), Some(high)) => left_open(low, high),
        _ => "n/a".to_owned(),
    }
}

fn times(against: &Against) -> String {
    let ratio = against.ratio.value().map_or("n/a".to_owned(), ratio_text);
    format!("{ratio} x")
}
