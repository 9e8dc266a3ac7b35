//! Printed series: the steps of a key, and their totals.

use super::super::Side as Num;
use super::Read;

/// One step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// Its end, s.
    pub(super) end_s: f64,
    /// Its length, s.
    pub(super) length_s: f64,
    /// The figure.
    pub(super) num: Num,
}

/// The end of a step in a scope: `1.00 s`, `TX-C, 1.00 s`, `interval 3`.
fn end_of(scope: &str) -> Option<(&str, f64)> {
    let (role, time) = scope.rsplit_once(", ").unwrap_or(("", scope));
    let time = time.strip_suffix(" s").or_else(|| time.strip_prefix("interval "));
    Some((role, time?.trim().parse().ok()?))
}

impl Read<'_> {
    /// The steps of a key that have this role before their time, in order.
    pub(super) fn steps(&self, key: &str, role: &str) -> Vec<Step> {
        let mut all: Vec<Step> = Vec::new();
        for value in self.of_key(key) {
            let Some((found, end_s)) = end_of(&value.scope) else {
                continue;
            };
            let Some(number) = value.value.value().filter(|_| found == role) else {
                continue;
            };
            // A step whose neighbour was cut out says its own length.
            let protocol = key.split('_').next().unwrap_or_default();
            let own = self.number(&value.scope, &format!("{protocol}_interval_s"));
            let length_s = own.unwrap_or_else(|| end_s - all.last().map_or(0.0, |step| step.end_s));
            if length_s > 0.0 {
                all.push(Step { end_s, length_s, num: Num { value: number, off: value.rounding } });
            }
        }
        all
    }

    /// The mean rate of steps that cover a whole of `elapsed_s`, by their lengths; `None` where they do not.
    pub(super) fn mean_rate(&self, key: &str, elapsed_s: f64) -> Option<Num> {
        const COVERED: f64 = 0.9;
        let steps = self.steps(key, "");
        let last = steps.last().filter(|_| steps.len() > 1)?;
        (last.end_s >= COVERED * elapsed_s).then_some(())?;
        let sum = steps.iter().map(|step| step.num.times(step.length_s));
        Some(sum.reduce(Num::plus)?.times(1.0 / last.end_s))
    }
}

/// The sum of the steps.
pub(super) fn sum(steps: &[Step]) -> Option<Num> {
    steps.iter().map(|step| step.num).reduce(Num::plus)
}
