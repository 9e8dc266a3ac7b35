//! Which host is unlike the others.

use crate::info::NeedRow;
use crate::needs::FAIL;
use assay_measure::fleet::ODD;
use assay_measure::statistics::median;

/// A host is so many times as far away as the one in the middle is: where all are scattered, none stands out. Decided here.
const TIMES: f64 = 3.0;
/// Per cents differ by more than so many points. Decided here: a steal of 0.1 % and one of 0.3 % are the same.
const POINTS: f64 = 2.0;

/// The rule, for the report.
pub(super) const RULE: &str = "A host is odd in a need where its figure and the median of all hosts differ by more than a fifth of the \
                               larger one (per cents by more than 2 points, too), and three times as much as those of the host in the \
                               middle; so of two hosts neither is. A host that keeps no latency where most do is odd, too.";

/// How far each is from the median, 0 for one that is not odd: of the same need on each host.
pub(super) fn oddness(rows: &[&NeedRow]) -> Vec<f64> {
    let values: Vec<f64> = rows.iter().filter_map(|row| row.need_value.value()).collect();
    let Some(middle) = median(&values).filter(|_| 2 * values.len() > rows.len()) else {
        return vec![0.0; rows.len()];
    };
    let distance = |value: f64| if value == middle { 0.0 } else { (value / middle).ln().abs() };
    let away: Vec<f64> = values.iter().map(|value| distance(*value)).collect();
    let usual = median(&away).unwrap_or(0.0);
    let of = |row: &&NeedRow| match row.need_value.value() {
        None if row.verdict == FAIL => f64::INFINITY,
        None => 0.0,
        Some(value) => {
            let is_far = distance(value) > -(1.0 - ODD).ln() && distance(value) > TIMES * usual;
            let is_point = row.unit == "%" && (value - middle).abs() <= POINTS;
            if is_far && !is_point { distance(value) } else { 0.0 }
        }
    };
    rows.iter().map(of).collect()
}
