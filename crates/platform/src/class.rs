//! The class of a platform: two rates that hold a latency, in a form that people can quote.

use crate::finished::Finished;
use crate::plan::{COMMITS, DEPTHS, READS};
use assay_measure::record::Figure;

/// What 99 % of the reads must keep, us. A device passes Aerospike's certification tool ACT if less than 5 % take more.
const READ_US: f64 = 1000.0;
/// What 99 % of the commits must keep, us. Decided here: half of what etcd's documentation asks of 99 % of its flushes.
const COMMIT_US: f64 = 5000.0;

/// A rate with what tells of it.
pub(crate) struct Within {
    pub(crate) per_s: Figure,
    pub(crate) depth: Figure,
}

/// The most reads per second of a depth at which 99 % keep the goal.
pub(crate) fn reads(finished: &[Finished]) -> Within {
    let Some(test) = Finished::of(finished, READS) else {
        let why = || Figure::na("the reads were not measured");
        return Within { per_s: why(), depth: why() };
    };
    let of = |depth: u32| {
        let scope = format!("depth {depth}");
        let known = |key: &str| test.value(key, &scope).value();
        Some((depth, known("read_ios_per_s")?, known("read_lat_us_p99")?))
    };
    let all: Vec<(u32, f64, f64)> = DEPTHS.into_iter().filter_map(of).collect();
    let within = all.iter().filter(|(.., us)| *us <= READ_US);
    match within.max_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((depth, per_s, _)) => Within { per_s: Figure::decimal(*per_s), depth: Figure::Count(u64::from(*depth)) },
        None => {
            let least = all.iter().map(|(.., us)| *us).reduce(f64::min);
            let why = least.map_or_else(
                || "no depth has a p99".to_owned(),
                |us| format!("no depth keeps p99 within 1 ms: the lowest is {us:.0} us"),
            );
            Within { per_s: Figure::na(&why), depth: Figure::na(&why) }
        }
    }
}

/// The most durable commits per second at which 99 % keep the goal: by many sessions that share flushes, or by one.
pub(crate) fn commits(finished: &[Finished]) -> Figure {
    let Some(test) = Finished::of(finished, COMMITS) else {
        return Figure::na("the commits were not measured");
    };
    let of = |rate: &str, p99: &str| Some((test.value(rate, "group").value()?, test.value(p99, "group").value()?));
    let all = [of("many_commits_per_s", "many_commit_us_p99"), of("single_commits_per_s", "single_commit_us_p99")];
    let within = all.iter().flatten().filter(|(_, us)| *us <= COMMIT_US).map(|(per_s, _)| *per_s);
    let least = all.iter().flatten().map(|(_, us)| *us).reduce(f64::min);
    within.reduce(f64::max).map(Figure::decimal).unwrap_or_else(|| match least {
        Some(us) => {
            Figure::na(&format!("neither one nor many sessions keep p99 within 5 ms: the lowest is {us:.0} us"))
        }
        None => Figure::na("the commits have no p99"),
    })
}

/// `R50k C8.4k`: two digits, rounded down; `R-` where no load keeps the goal, `R?` where it was not measured.
pub(crate) fn name(reads: &Figure, commits: &Figure) -> String {
    let part = |letter: char, rate: &Figure| match (rate.value(), rate.reason()) {
        (Some(per_s), _) => format!("{letter}{}", digits(per_s)),
        (None, Some(why)) if why.contains("not measured") => format!("{letter}?"),
        _ => format!("{letter}-"),
    };
    format!("{} {}", part('R', reads), part('C', commits))
}

fn digits(value: f64) -> String {
    let whole = value.max(0.0).floor();
    let scale = 10_f64.powi((whole.max(1.0).log10().floor() as i32 - 1).max(0));
    let floored = (whole / scale).floor() * scale;
    let (by, unit) = match floored {
        v if v >= 1e6 => (1e6, "M"),
        v if v >= 1e3 => (1e3, "k"),
        _ => (1.0, ""),
    };
    // Two digits need one decimal below ten of the unit.
    let text = format!("{:.1}", floored / by);
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::{digits, name};
    use assay_measure::record::Figure;

    #[test]
    fn a_class_has_two_digits_rounded_down() {
        let of = [50_312.0, 8_999.0, 127_400.0, 999_999.0, 1_270_000.0, 87.9, 5.0, 0.0].map(digits);
        assert_eq!(of, ["50k", "8.9k", "120k", "990k", "1.2M", "87", "5", "0"]);
        assert_eq!(name(&Figure::na("the reads were not measured"), &Figure::na("none")), "R? C-");
        assert_eq!(name(&Figure::na("none"), &Figure::decimal(8_450.0)), "R- C8.4k");
    }
}
