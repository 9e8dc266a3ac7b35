//! Identities on the output of load generators and probes: Little's law, sizes, sums, possible percentiles.
//!
//! Each is judged for every job, stream or transaction it applies to; the one furthest off represents all and is named.

mod fio;
mod loads;
mod network;
mod printed;
mod steps;

#[cfg(test)]
mod tests;

use super::Side as Num;
use crate::fio::PROGRESS;
use assay_measure::identity::{IdentityRule, Scope, Side};
use assay_measure::record::{Identity, ImportInfo, ImportedValue, Record, Truth};
use assay_storage::record::info::{StorageInfo, StorageJob};
use std::collections::{BTreeMap, HashMap};

const MIB: f64 = 1_048_576.0;
/// More in flight than was asked for cannot be: within this share.
const LITTLE: f64 = 0.02;
/// Less can: whoever is slow to submit keeps the depth not quite, by this share at most where it saturates.
const NOT_KEPT: f64 = 0.1;
/// A closed loop's throughput within this one: connecting and the last turn are in the time.
const CLOSED_LOOP: f64 = 0.03;
/// Bytes of framing that oratcptest counts with each message.
const FRAMING: f64 = 12.0;
/// What a bucket may put a percentile beyond the extremes by.
const BUCKETS: f64 = 1.1;
/// fio's are 1/64 of an octave wide.
const FIO_BUCKETS: f64 = 1.04;
/// Percentiles that are all equal say nothing of fewer values than this.
const FEW: f64 = 100.0;

/// All that an imported record has inputs for.
pub(super) fn identities(record: &Record) -> Vec<Identity> {
    let Some(info) = &record.import else {
        return Vec::new();
    };
    let read = Read::new(record, record.parts.get().unwrap_or_default(), info);
    let mut all = [
        read.in_flight(),
        read.throughput(),
        read.group_sums(),
        read.percentiles(),
        read.closed_loop(),
        read.synchronous_stream(),
    ]
    .to_vec();
    all.extend(printed::identities(&read));
    all.extend(fio::identities(&read));
    all.extend(network::identities(&read));
    all.extend(loads::identities(&read));
    all.into_iter().flatten().collect()
}

/// A record with what was read into it.
struct Read<'a> {
    record: &'a Record,
    storage: StorageInfo,
    info: &'a ImportInfo,
    /// The values by scope and key.
    named: HashMap<(&'a str, &'a str), &'a ImportedValue>,
    /// Their places in the order of their scopes, those of one scope as they were printed.
    by_scope: Vec<usize>,
    /// Their places by the last word of their keys, as they were printed.
    by_word: HashMap<&'a str, Vec<usize>>,
    /// Bytes of a block of each job that has blocks of one size, by its scope.
    blocks: HashMap<String, f64>,
}

/// What an identity is judged of, its sides, and what may be off.
struct Case {
    name: String,
    lhs: Side,
    rhs: Side,
    tolerance: f64,
}

/// Of the measured window; what may be off is said of each case.
fn rule(id: &'static str, text: &'static str) -> IdentityRule {
    IdentityRule::within(id, Scope::Window, text, 0.0)
}

/// The case that stands for all: the one furthest off among the violated, else the first that could be judged.
fn judge(rule: IdentityRule, cases: Vec<Case>) -> Option<Identity> {
    let several = cases.len() > 1;
    let judged = cases.into_iter().map(|case| {
        let identity = rule.tolerating(case.tolerance).compare(case.lhs, case.rhs);
        (case.name, identity)
    });
    let rank = |identity: &Identity| match identity.ok {
        Truth::Violated => 2,
        Truth::Holds => 1,
        Truth::Na(_) => 0,
    };
    let off = |identity: &Identity| identity.rel_err.value().map_or(0.0, f64::abs);
    let (name, mut identity) = judged.max_by(|(_, a), (_, b)| {
        let by_rank = rank(a).cmp(&rank(b));
        by_rank.then(off(a).total_cmp(&off(b)))
    })?;
    if several && rank(&identity) > 0 {
        identity.sentence = format!("{} (furthest off: {name})", identity.sentence);
    }
    Some(identity)
}

/// Two that must be equal, within their rounding and a share of the larger.
fn equal(name: String, lhs: Num, rhs: Num, share: f64) -> Case {
    Case {
        name,
        lhs: Ok(lhs.value),
        rhs: Ok(rhs.value),
        tolerance: lhs.off + rhs.off + share * lhs.value.abs().max(rhs.value.abs()),
    }
}

/// A part that may not be above its bound; one that is not is its own bound.
fn at_most(name: String, part: Num, bound: Num, share: f64) -> Case {
    let rhs = Num { value: bound.value.min(part.value), ..bound };
    equal(name, part, rhs, share)
}

impl<'a> Read<'a> {
    fn new(record: &'a Record, storage: StorageInfo, info: &'a ImportInfo) -> Self {
        let values = &info.values;
        let names = values.iter().rev().map(|value| ((value.scope.as_str(), value.key.as_str()), value));
        let mut by_scope: Vec<usize> = (0..values.len()).collect();
        by_scope.sort_by_key(|at| values[*at].scope.as_str());
        let mut by_word: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, value) in values.iter().enumerate() {
            by_word.entry(last_word(&value.key)).or_default().push(at);
        }
        let named = names.collect();
        let mut read = Self { record, storage, info, named, by_scope, by_word, blocks: HashMap::new() };
        let blocks = read.job_scopes().into_iter().filter_map(|(scope, job)| Some((scope, fio::block(job)?)));
        read.blocks = blocks.collect();
        let all: Vec<f64> = read.jobs().iter().map(|job| fio::block(job).unwrap_or(0.0)).collect();
        if let Some(one) = all.first().filter(|first| **first > 0.0 && all.iter().all(|other| other == *first)) {
            read.blocks.insert(PROGRESS.to_owned(), *one);
        }
        read
    }

    /// Values of the scopes that begin so and are `wanted`, as they were printed.
    fn of_scopes(&self, begin: &str, wanted: impl Fn(&ImportedValue) -> bool) -> Vec<&'a ImportedValue> {
        let values = &self.info.values;
        let from = self.by_scope.partition_point(|at| values[*at].scope.as_str() < begin);
        let found = self.by_scope[from..].iter().take_while(|at| values[**at].scope.starts_with(begin));
        let mut found: Vec<usize> = found.copied().filter(|at| wanted(&values[*at])).collect();
        found.sort_unstable();
        found.into_iter().map(|at| &values[at]).collect()
    }

    fn of_scope(&self, scope: &str) -> Vec<&'a ImportedValue> {
        let values = &self.info.values;
        let from = self.by_scope.partition_point(|at| values[*at].scope.as_str() < scope);
        let found = self.by_scope[from..].iter().map(|at| &values[*at]);
        found.take_while(|value| value.scope == scope).collect()
    }

    /// Values whose keys end so, in a whole word, as they were printed.
    fn ending(&self, end: &str) -> impl Iterator<Item = &'a ImportedValue> {
        let places = self.by_word.get(last_word(end)).into_iter().flatten();
        places.map(|at| &self.info.values[*at]).filter(move |value| value.key.ends_with(end))
    }

    /// Values of a key, as they were printed.
    fn of_key(&self, key: &str) -> impl Iterator<Item = &'a ImportedValue> {
        self.ending(key).filter(move |value| value.key == key)
    }

    /// The jobs of each group with their scopes.
    fn jobs_by_group(&self) -> BTreeMap<u32, Vec<(String, &StorageJob)>> {
        let mut all: BTreeMap<u32, Vec<(String, &StorageJob)>> = BTreeMap::new();
        for (scope, job) in self.job_scopes() {
            all.entry(job.group).or_default().push((scope, job));
        }
        all
    }

    fn num(&self, scope: &str, key: &str) -> Option<Num> {
        let value = self.value(scope, key)?;
        Some(Num { value: value.value.value()?, off: value.rounding })
    }

    fn elapsed(&self) -> Option<Num> {
        self.num("", "elapsed_s").filter(|time| time.value > 0.0)
    }

    fn value(&self, scope: &str, key: &str) -> Option<&ImportedValue> {
        self.named.get(&(scope, key)).copied()
    }

    fn number(&self, scope: &str, key: &str) -> Option<f64> {
        self.value(scope, key)?.value.value()
    }

    /// What rounding may be off by, as a share of the value.
    fn share(&self, scope: &str, key: &str) -> f64 {
        let value = self.value(scope, key);
        let number = value.and_then(|value| value.value.value()).unwrap_or(0.0);
        match (value, number) {
            (None, _) => 0.0,
            (Some(_), 0.0) => 1.0,
            (Some(value), number) => value.rounding / number.abs(),
        }
    }

    /// Every scope that has this key, in order.
    fn scopes(&self, key: &str) -> Vec<&str> {
        self.of_key(key).map(|value| value.scope.as_str()).collect()
    }

    fn jobs(&self) -> &[StorageJob] {
        self.storage.jobs.as_slice()
    }

    /// The scope of each job, as the parsers name them.
    fn job_scopes(&self) -> Vec<(String, &StorageJob)> {
        let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
        let jobs = self.jobs().iter();
        let scoped = jobs.map(|job| {
            let count = seen.entry(job.name.as_str()).or_default();
            *count += 1;
            let scope = match *count {
                1 => job.name.clone(),
                n => format!("{} #{n}", job.name),
            };
            (scope, job)
        });
        scoped.collect()
    }

    /// I27: IOPS x mean latency is what was in flight.
    fn in_flight(&self) -> Option<Identity> {
        let rule = rule("I27", "IOPS x mean latency = I/Os in flight (Little's law)");
        let case = |(scope, job): (String, &StorageJob)| {
            let asked = (job.iodepth_count * job.numjobs_count) as f64;
            let counted = job.in_flight_mean_count.value();
            let is_rated = |name: &str| name.starts_with("rate") || name.starts_with("thinktime");
            let rated = job.options.iter().any(|line| is_rated(&line.name));
            let rhs: Side = match counted {
                Some(counted) => Ok(counted),
                None if rated => Err("a rate or think time reduces the I/Os in flight".to_owned()),
                None if job.sync.count > 0 || job.sync.us_avg.value().is_some() => {
                    Err("syncs between the writes".to_owned())
                }
                None if asked == 0.0 => Err("the depth was not printed".to_owned()),
                None if is_synchronous(&job.ioengine) => Ok(job.numjobs_count as f64),
                None => Ok(asked),
            };
            let lhs = job.little_count.value();
            // What was asked for is an upper bound where the I/Os were not issued at that depth, or the clones did not end together.
            let is_bound = counted.is_none() && (self.is_shallower(&scope, job) || self.end_apart(job));
            let rhs = rhs.map(|asked| if is_bound { lhs.map_or(asked, |lhs| lhs.min(asked)) } else { asked });
            let rounding: f64 =
                (job.ways.iter()).map(|way| self.share(&scope, &format!("{}_ios_per_s", way.way))).fold(0.0, f64::max);
            let depth = self.value(&scope, "in_flight_mean_count");
            let depth = depth.map_or(0.0, |value| value.rounding);
            let expected = rhs.clone().unwrap_or(0.0);
            let share = if lhs.is_some_and(|lhs| lhs < expected) && counted.is_none() { NOT_KEPT } else { LITTLE };
            Case {
                tolerance: (share + rounding) * expected + depth,
                lhs: lhs.ok_or_else(|| "IOPS or mean latency was not printed".to_owned()),
                rhs,
                name: scope,
            }
        };
        judge(rule, self.job_scopes().into_iter().map(case).collect())
    }

    /// Whether the depths at which I/Os were issued are printed and most of them are below what was asked for.
    fn is_shallower(&self, scope: &str, job: &StorageJob) -> bool {
        // Decided here: no measurement stands behind it.
        const MOSTLY_PCT: f64 = 90.0;
        // fio's classes: 1, 2, 4, ... 32, and all above.
        let class = job.iodepth_count.clamp(1, 64);
        let class = 1_u32 << (u64::BITS - 1 - class.leading_zeros()).min(6);
        let slots = fio::slots(self, scope, "depth_share_pct");
        let at_depth = slots.iter().filter(|(slot, _)| {
            let digits: String = slot.chars().filter(char::is_ascii_digit).collect();
            digits.parse::<u32>().is_ok_and(|depth| depth >= class)
        });
        !slots.is_empty() && at_depth.map(|(_, num)| num.value).sum::<f64>() < MOSTLY_PCT
    }

    /// Whether a job's clones ran for different times, as far as the group's line tells.
    fn end_apart(&self, job: &StorageJob) -> bool {
        // Decided here: no measurement stands behind it.
        const APART: f64 = 0.02;
        let times = || {
            let of_job = job.runtime_s.value()?;
            let of_group = job
                .ways
                .iter()
                .filter_map(|way| self.number(&format!("group {}", job.group), &format!("{}_runtime_min_s", way.way)));
            Some((of_group.reduce(f64::min)?, of_job))
        };
        job.numjobs_count > 1 && times().is_some_and(|(least, most)| most - least > APART * most)
    }

    /// I30: bytes per second are I/Os per second times their size.
    fn throughput(&self) -> Option<Identity> {
        let rule = rule("I30", "bytes per second = IOPS x request size");
        let mut cases = Vec::new();
        for (scope, job) in self.job_scopes() {
            for way in &job.ways {
                let key = |what: &str| format!("{}_{what}", way.way);
                let (Some(rate), Some(ios)) = (way.mib_per_s.value(), way.ios_per_s.value()) else {
                    continue;
                };
                let size = match (way.ios_count, way.moved_bytes) {
                    (0, _) | (_, 0) => self.number(&scope, "block_bytes"),
                    (ios, bytes) => Some(bytes as f64 / ios as f64),
                };
                let Some(size) = size else {
                    continue;
                };
                let off: f64 = ["ios_per_s", "mib_per_s", "moved_bytes"]
                    .iter()
                    .map(|what| self.share(&scope, &key(what)) + self.share(&scope, what))
                    .sum();
                cases.push(Case {
                    name: format!("{scope}, {}", way.way),
                    lhs: Ok(rate),
                    rhs: Ok(ios * size / MIB),
                    tolerance: (0.001 + off) * rate,
                });
            }
        }
        judge(rule, cases)
    }

    /// IO12: the group's line is the sum of its jobs.
    fn group_sums(&self) -> Option<Identity> {
        let rule = rule("IO12", "bytes of a group = sum over its jobs");
        let mut cases = Vec::new();
        let by_group = self.jobs_by_group();
        for group in &self.storage.groups {
            let of_group = format!("group {}", group.group);
            let jobs = by_group.get(&group.group).map_or(&[][..], Vec::as_slice);
            for way in &group.ways {
                let key = format!("{}_moved_bytes", way.way);
                let Some(printed) = self.value(&of_group, &key) else {
                    continue;
                };
                let parts = jobs.iter().filter_map(|(scope, _)| self.value(scope, &key));
                let parts: Vec<&ImportedValue> = parts.collect();
                let sum: f64 = parts.iter().filter_map(|part| part.value.value()).sum();
                let rounding: f64 = parts.iter().map(|part| part.rounding).sum();
                cases.push(Case {
                    name: of_group.clone(),
                    lhs: printed.value.value().ok_or_else(|| "not printed".to_owned()),
                    rhs: Ok(sum),
                    tolerance: printed.rounding + rounding,
                });
            }
        }
        judge(rule, cases)
    }

    /// I37: percentiles rise, are not all the same, and the mean lies between the extremes.
    fn percentiles(&self) -> Option<Identity> {
        let rule = rule("I37", "percentiles rise and are not all equal; the mean lies between minimum and maximum");
        let mut of: BTreeMap<(&str, &str), Vec<(f64, &ImportedValue)>> = BTreeMap::new();
        for value in &self.info.values {
            let Some((stem, percent)) = value.key.rsplit_once("_us_p") else {
                continue;
            };
            if let (Some(percent), true) = (percent_of(percent), value.value.value().is_some()) {
                let list = of.entry((value.scope.as_str(), stem)).or_default();
                list.push((percent, value));
            }
        }
        let (mut good, mut all, mut wrong) = (0_u64, 0_u64, Vec::new());
        for ((scope, stem), mut list) in of {
            let has_extremes = || self.value(scope, &format!("{stem}_us_min")).is_some();
            if list.len() < 2 && !has_extremes() {
                continue;
            }
            list.sort_by(|a, b| a.0.total_cmp(&b.0));
            all += 1;
            match self.impossible(scope, stem, &list) {
                None => good += 1,
                Some(why) if scope.is_empty() => wrong.push(format!("{stem}: {why}")),
                Some(why) => wrong.push(format!("{stem} of {scope}: {why}")),
            }
        }
        if all == 0 {
            return None;
        }
        let mut identity = rule.compare(Ok(good as f64), Ok(all as f64));
        identity.sentence = match wrong.first() {
            None => format!("all {all} distributions are possible"),
            Some(first) => format!("{} of {all} distributions are impossible; the first: {first}", wrong.len()),
        };
        Some(identity)
    }

    /// Why a list of percentiles, in order, cannot be.
    fn impossible(&self, scope: &str, stem: &str, list: &[(f64, &ImportedValue)]) -> Option<String> {
        let number = |value: &ImportedValue| value.value.value().unwrap_or(0.0);
        for pair in list.windows(2) {
            let (low, high) = (pair[0].1, pair[1].1);
            // Two percentiles of one bucket may be printed a place apart.
            if number(low) > number(high) + low.rounding + high.rounding {
                return Some(format!("p{} is above p{}", pair[0].0, pair[1].0));
            }
        }
        let statistic = |name: &str| self.value(scope, &format!("{stem}_us_{name}"));
        let (avg, min, max) = (statistic("avg"), statistic("min"), statistic("max"));
        let slack = |a: &ImportedValue, b: &ImportedValue| a.rounding + b.rounding;
        if let (Some(avg), Some(min)) = (avg, min)
            && number(avg) + slack(avg, min) < number(min)
        {
            return Some("the mean is below the smallest".to_owned());
        }
        if let (Some(avg), Some(max)) = (avg, max)
            && number(avg) > number(max) + slack(avg, max)
        {
            return Some("the mean is above the largest".to_owned());
        }
        let (first, last) = (list.first()?, list.last()?);
        // Percentiles come from buckets, some tools' of a tenth of an octave.
        if let Some(min) = min.filter(|min| number(first.1) * BUCKETS + slack(first.1, min) < number(min)) {
            return Some(format!(
                "p{} is below the smallest, {} us",
                first.0,
                assay_measure::units::fixed(number(min), 0)
            ));
        }
        if let Some(max) = max.filter(|max| number(last.1) > number(max) * BUCKETS + slack(last.1, max)) {
            return Some(format!(
                "p{} is above the largest, {} us",
                last.0,
                assay_measure::units::fixed(number(max), 0)
            ));
        }
        if let Some(why) = self.moments(scope, stem, list) {
            return Some(why);
        }
        let same = number(first.1) == number(last.1) && last.0 - first.0 >= 50.0 && list.len() > 2;
        let count = self.count_of(stem);
        // A time that hardly varies is printed alike at every percentile; then it is the mean too.
        let is_constant =
            avg.is_some_and(|avg| (number(avg) - number(first.1)).abs() <= avg.rounding + first.1.rounding);
        let many = count.is_none_or(|count| count > FEW);
        (same && many && !is_constant).then(|| {
            format!(
                "p{} to p{} are all {} us{}",
                first.0,
                last.0,
                assay_measure::units::fixed(number(first.1), 0),
                avg.map_or_else(String::new, |avg| format!(
                    " while the mean is {} us",
                    assay_measure::units::fixed(number(avg), 0)
                ))
            )
        })
    }

    /// Why mean and deviation cannot be those of these percentiles: between two of them every value lies between the two.
    fn moments(&self, scope: &str, stem: &str, list: &[(f64, &ImportedValue)]) -> Option<String> {
        let statistic = |name: &str| self.num(scope, &format!("{stem}_us_{name}"));
        let avg = statistic("avg")?;
        let ends = |end: fn(Num) -> f64| {
            let values = list.iter().filter_map(|(percent, value)| {
                Some((percent / 100.0, end(Num { value: value.value.value()?, off: value.rounding }).max(0.0)))
            });
            values.collect::<Vec<(f64, f64)>>()
        };
        let low =
            [vec![(0.0, statistic("min").map_or(0.0, |min| min.value - min.off))], ends(|num| num.value - num.off)];
        let low = low.concat();
        let most = statistic("max").map_or(f64::INFINITY, |max| max.value + max.off);
        let high = [ends(|num| num.value + num.off), vec![(1.0, most)]].concat();
        let moment = |power: i32| {
            let parts = low.iter().zip(&high).map(|((from, least), (to, most))| {
                let share = (to - from).max(0.0);
                (share * least.max(0.0).powi(power), share * most.powi(power))
            });
            let loose = if self.info.tool == "fio" { FIO_BUCKETS } else { BUCKETS }.powi(power);
            let (least, most) = parts.fold((0.0, 0.0), |(a, b), (least, most)| (a + least, b + most));
            (least / loose, most * loose)
        };
        let (least, most) = moment(1);
        if avg.value + avg.off < least || avg.value - avg.off > most {
            return Some("the mean cannot be that of the percentiles".to_owned());
        }
        let (least, most) = moment(2);
        let deviation = statistic("stddev").filter(|_| self.count_of(stem).is_none_or(|count| count > FEW))?;
        let second =
            |sign: f64| (deviation.value + sign * deviation.off).powi(2) + (avg.value + sign * avg.off).powi(2);
        (second(1.0) < least || second(-1.0) > most)
            .then(|| "the standard deviation cannot be that of the percentiles".to_owned())
    }

    /// How many values the distribution of an operation is of.
    fn count_of(&self, stem: &str) -> Option<f64> {
        let mut ops = self.record.driver.ops.iter();
        let op = ops.find(|op| op.kind == stem)?;
        (op.count > 0).then_some(op.count as f64)
    }

    /// I38: sessions that never wait end as many operations as their mean time allows.
    fn closed_loop(&self) -> Option<Identity> {
        let rule = rule("I38", "closed loop: sessions / operations per second = mean response (us)");
        let kinds = ["swingbench", "pgbench", "sysbench"];
        let rate = self.record.instance.load_profile.iter().find(|row| row.name == "Operations")?;
        let rate = rate.per_s.value().filter(|rate| *rate > 0.0)?;
        if !kinds.contains(&self.info.tool.as_str()) {
            return None;
        }
        if let Some(why) = self.is_open() {
            return Some(rule.unknown(why));
        }
        let lhs = self.record.run.sessions as f64 / rate * 1e6;
        // With scripts and their whole, the whole is enough.
        let ops = self.record.driver.ops.iter();
        let means: Vec<(u64, f64)> = ops.filter_map(|op| Some((op.count, op.service.us_avg.value()?))).collect();
        let whole = self.record.driver.ops.iter().find(|op| op.kind == "transaction");
        let whole = whole.and_then(|op| op.service.us_avg.value());
        let counted: u64 = means.iter().map(|(count, _)| count).sum();
        let rhs = match (whole, means.as_slice()) {
            (Some(whole), _) => whole,
            (None, [(_, only)]) => *only,
            (None, []) => return None,
            (None, several) if counted > 0 && several.iter().all(|(count, _)| *count > 0) => {
                let sum: f64 = several.iter().map(|(count, mean)| *count as f64 * mean).sum();
                sum / counted as f64
            }
            (None, several) => return Some(between_means(rule, lhs, several)),
        };
        let rounding = self.info.values.iter().filter(|value| value.at.ends_with("/service/us_avg"));
        let rounding = rounding.map(|value| value.rounding).fold(0.0, f64::max);
        Some(rule.tolerating(CLOSED_LOOP * lhs + rounding).compare(Ok(lhs), Ok(rhs)))
    }

    /// Why operations did not follow one another at once.
    fn is_open(&self) -> Option<&'static str> {
        let is_above = |key: &str| self.number("", key).is_some_and(|value| value > 0.0);
        if self.record.run.sessions == 0 {
            return Some("the number of sessions was not printed");
        }
        if is_above("think_inter_ms_max") || is_above("think_intra_ms_max") {
            return Some("there were think times");
        }
        if self.value("", "schedule_lag_us_avg").is_some() {
            return Some("a rate was asked for");
        }
        is_above("failed_transactions_count").then_some("failed transactions also took time")
    }

    /// I39: one message at a time.
    fn synchronous_stream(&self) -> Option<Identity> {
        let rule = rule("I39", "synchronous stream: bytes per second = (message + 12 bytes of framing) / latency");
        let rate = self.number("", "redo_transport_bytes_per_s")?;
        let key = "redo_transport_us_avg";
        let Some(latency) = self.number("", key).filter(|latency| *latency > 0.0) else {
            return Some(rule.unknown("no latency: the stream was asynchronous"));
        };
        let size = self.number("", "redo_transport_message_bytes")?;
        let streams = self.number("", "connections_count").unwrap_or(1.0);
        let off = self.share("", key) + self.share("", "redo_transport_bytes_per_s");
        let rhs = streams * (size + FRAMING) / latency * 1e6;
        Some(rule.tolerating((0.002 + off) * rate).compare(Ok(rate), Ok(rhs)))
    }
}

/// With the means of each kind but not how often each ran, the whole must lie between them.
fn between_means(rule: IdentityRule, lhs: f64, means: &[(u64, f64)]) -> Identity {
    let least = means.iter().map(|(_, mean)| *mean).fold(f64::INFINITY, f64::min);
    let most = means.iter().map(|(_, mean)| *mean).fold(0.0, f64::max);
    let mut identity = rule.tolerating(CLOSED_LOOP * lhs).compare(Ok(lhs), Ok(lhs.clamp(least, most)));
    let fixed = |us: f64| assay_measure::units::fixed(us, 0);
    let verdict = match identity.ok {
        Truth::Violated => "lies outside",
        _ => "lies between",
    };
    identity.sentence = format!(
        "{} us {verdict} the smallest and the largest mean, {} and {} us (how often each kind ran was not printed)",
        fixed(lhs),
        fixed(least),
        fixed(most)
    );
    identity
}

fn last_word(key: &str) -> &str {
    key.rsplit('_').next().unwrap_or(key)
}

/// Engines whose depth is 1 whatever was asked for.
fn is_synchronous(engine: &str) -> bool {
    ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"].contains(&engine)
}

/// `995` is 99.5, `50` is 50, `0_1` is 0.1.
fn percent_of(digits: &str) -> Option<f64> {
    if let Some((whole, fraction)) = digits.split_once('_') {
        return format!("{whole}.{fraction}").parse().ok();
    }
    let is_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_digits.then_some(())?;
    match digits.len() {
        1 | 2 => digits.parse().ok(),
        _ if digits == "100" => Some(100.0),
        _ => format!("{}.{}", &digits[..2], &digits[2..]).parse().ok(),
    }
}
