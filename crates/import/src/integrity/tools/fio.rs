//! What fio and vdbench print twice: I/Os, bytes, time and their rates; latencies and their parts; shares.

use super::super::Side as Num;
use super::{Case, MIB, Read, at_most, equal, judge, rule};
use assay_measure::record::Identity;
use assay_storage::record::info::StorageJob;

/// What a clock's whole milliseconds and the begin of clones one after the other may do to a rate.
const CLOCK: f64 = 0.002;
/// fio's buckets are 1/64 of an octave wide, and it prints their upper ends.
const BUCKET: f64 = 0.02;

pub(super) fn identities(read: &Read<'_>) -> Vec<Option<Identity>> {
    vec![shares(read), classes(read), samples(read), groups(read), intervals(read), bins(read), devices(read)]
}

/// Every job with each of its ways.
fn ways<'r>(read: &'r Read<'_>) -> Vec<(String, &'r StorageJob, &'r str)> {
    let mut all = Vec::new();
    for (scope, job) in read.job_scopes() {
        for way in &job.ways {
            all.push((scope.clone(), job, way.way.as_str()));
        }
    }
    all
}

/// Bytes of a block, where all have one size: `8 KiB`, `8k`, `4096`.
pub(super) fn block(job: &StorageJob) -> Option<f64> {
    let text = job.block_sizes.to_ascii_lowercase();
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    let unit = text[digits.len()..].trim().trim_end_matches("ib");
    let factor = match unit.trim_end_matches('b') {
        "" => 1.0,
        "k" => 1024.0,
        "m" => MIB,
        _ => return None,
    };
    Some(digits.parse::<f64>().ok()? * factor)
}

/// Scopes of a job that name a slot of it: `job, below 100 us`.
pub(super) fn slots<'a>(read: &'a Read<'_>, scope: &str, key: &str) -> Vec<(&'a str, Num)> {
    let prefix = format!("{scope}, ");
    let values = read.of_scopes(&prefix, |value| value.key == key).into_iter();
    let of_job = values.filter_map(|value| {
        let slot = value.scope.strip_prefix(&prefix)?;
        let num = Num { value: value.value.value()?, off: value.rounding };
        Some((slot, num))
    });
    of_job.collect()
}

/// IO16: shares of all I/Os sum to 100 %; below where something was cut out of the text.
fn shares(read: &Read<'_>) -> Option<Identity> {
    let is_cut = read.info.notes.iter().any(|note| note.text.contains("cut out"));
    let hundred = Num::exact(100.0);
    let mut cases = Vec::new();
    for (scope, job) in read.job_scopes() {
        // Syncs are counted at depth 1 without being I/Os.
        let has_syncs = job.sync.count > 0 || job.sync.us_avg.value().is_some();
        for (key, least) in [
            ("lat_share_pct", 0.01),
            ("depth_share_pct", 0.1),
            ("submit_batch_share_pct", 0.1),
            ("complete_batch_share_pct", 0.1),
        ] {
            let all = slots(read, &scope, key);
            if all.is_empty() || (has_syncs && key != "lat_share_pct") {
                continue;
            }
            // What is next to nothing is printed as the least.
            let off = |num: &Num| if num.value <= 1.001 * least { least } else { num.off };
            let rounding = all.iter().map(|(_, num)| off(num)).sum::<f64>() + 0.1;
            let sum: f64 = all.iter().map(|(_, num)| num.value).sum();
            let sum = Num { value: sum, off: rounding };
            let name = format!("{scope}, {key}");
            let is_cut = is_cut || key == "lat_share_pct" && classes_end_early(read, &scope, job, &all);
            cases.push(if is_cut { at_most(name, sum, hundred, 0.0) } else { equal(name, sum, hundred, 0.0) });
        }
    }
    judge(rule("IO16", "shares of latencies, depths and batches sum to 100 %"), cases)
}

/// Whether rows of classes were cut off: the last that is there ends below the longest latency, and a share of all I/Os is missing.
fn classes_end_early(read: &Read<'_>, scope: &str, job: &StorageJob, all: &[(&str, Num)]) -> bool {
    let bounds: Option<Vec<f64>> = all.iter().map(|(slot, _)| bound_us(slot)).collect();
    let last = bounds.unwrap_or_default().into_iter().reduce(f64::max);
    let longest = job.ways.iter().flat_map(|way| {
        ["lat", "clat"].into_iter().filter_map(|what| read.number(scope, &format!("{}_{what}_us_max", way.way)))
    });
    last.zip(longest.reduce(f64::max)).is_some_and(|(last, longest)| longest > last * (1.0 + BUCKET))
}

/// `below 100 us`: its bound in us; the last class has none.
fn bound_us(slot: &str) -> Option<f64> {
    let (number, unit) = slot.strip_prefix("below ")?.split_once(' ')?;
    let factor = match unit {
        "ns" => 1e-3,
        "us" => 1.0,
        _ => 1e3,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

/// IO17: so many I/Os as a percentile says are below it by the classes too.
fn classes(read: &Read<'_>) -> Option<Identity> {
    let mut cases = Vec::new();
    for (scope, job) in read.job_scopes() {
        let [way] = job.ways.as_slice() else {
            // The classes are of all ways together.
            continue;
        };
        let all = slots(read, &scope, "lat_share_pct");
        let mut below: Vec<(f64, f64)> =
            (all.iter()).filter_map(|(slot, num)| Some((bound_us(slot)?, num.value))).collect();
        below.sort_by(|a, b| a.0.total_cmp(&b.0));
        let one = 100.0 / (way.ios_count.max(1) as f64);
        let rounding = 0.01 * all.len() as f64 + 0.1 + one;
        let stem = format!("{}_clat_us_p", way.way);
        for value in read.of_scope(&scope) {
            let percent = value.key.strip_prefix(&stem).and_then(super::percent_of);
            let (Some(percent), Some(us)) = (percent, value.value.value()) else {
                continue;
            };
            let (low, high) = (us * (1.0 - BUCKET) - value.rounding, us * (1.0 + BUCKET) + value.rounding);
            let until = |limit: f64| -> f64 {
                let within = below.iter().take_while(|(bound, _)| *bound <= limit);
                within.map(|(_, share)| share).sum()
            };
            // Nothing above it is below it, and everything of the classes that begin above it is missing.
            let least = until(low);
            let next = below.iter().find(|(bound, _)| *bound >= high);
            let most = next.map_or(100.0, |(bound, _)| until(*bound));
            let (side, is_low) = if percent < least { (least, true) } else { (most, false) };
            let clamped = if is_low { percent.max(side) } else { percent.min(side) };
            cases.push(Case {
                name: format!("{scope}, p{percent}"),
                lhs: Ok(percent),
                rhs: Ok(clamped),
                tolerance: rounding,
            });
        }
    }
    judge(rule("IO17", "percentiles agree with the shares of the latency classes"), cases)
}

/// IO19: the samples of a rate are the share of the group that is printed.
fn samples(read: &Read<'_>) -> Option<Identity> {
    let mut cases = Vec::new();
    for (scope, job, way) in ways(read) {
        let num = |what: &str| read.num(&scope, &format!("{way}_{what}"));
        let name = format!("{scope}, {way}");
        let (Some(kib), group) = (num("bw_kib_per_s_avg"), format!("group {}", job.group)) else {
            continue;
        };
        // JSON has no line of the group, but a job alone is one.
        let is_alone = read.jobs().iter().filter(|other| other.group == job.group).count() == 1;
        let of_group = read.num(&group, &format!("{way}_mib_per_s"));
        let whole = of_group.or_else(|| num("mib_per_s").filter(|_| is_alone));
        if let Some((share, whole)) = num("bw_of_group_pct").zip(whole) {
            let part = share.by(whole).times(0.01 * 1024.0);
            // More than all is printed as all.
            let judged = if share.value < 100.0 { equal } else { |name, kib, part, off| at_most(name, part, kib, off) };
            cases.push(judged(format!("{name} bw"), kib, part, CLOCK));
        }
        if let (Some(iops), Some(block)) = (num("iops_per_s_avg"), block(job)) {
            // Each sample is cut to whole KiB and whole I/Os.
            let by_ios = iops.times(block / 1024.0);
            let mut case = equal(format!("{name} bw, iops"), kib, by_ios, 0.01);
            case.tolerance += 1.0 + block / 1024.0;
            cases.push(case);
        }
        cases.extend(of_whole(&name, job, kib, num("mib_per_s"), num("runtime_s")));
    }
    judge(rule("IO19", "samples of a rate agree with the whole"), cases)
}

/// The mean of the samples is the rate, of each clone or of all; the beginning and the end are in no sample.
fn of_whole(name: &str, job: &StorageJob, kib: Num, rate: Option<Num>, time: Option<Num>) -> Option<Case> {
    const LOOSE: f64 = 0.15;
    const LONG_S: f64 = 5.0;
    let rate = rate.filter(|_| time.is_some_and(|time| time.value >= LONG_S))?;
    let whole = rate.times(1024.0);
    let of_clone = whole.times(1.0 / job.numjobs_count.max(1) as f64);
    let is_nearer = (kib.value - of_clone.value).abs() < (kib.value - whole.value).abs();
    let rhs = if is_nearer { of_clone } else { whole };
    Some(equal(format!("{name} bw, mean"), kib, rhs, LOOSE))
}

/// IO20: what a group says of its jobs.
fn groups(read: &Read<'_>) -> Option<Identity> {
    let mut cases = Vec::new();
    let by_group = read.jobs_by_group();
    for group in &read.storage.groups {
        let scope = format!("group {}", group.group);
        let jobs = by_group.get(&group.group).map_or(&[][..], Vec::as_slice);
        for way in &group.ways {
            let key = |what: &str| format!("{}_{what}", way.way);
            for (what, of_job, is_most) in [
                ("runtime_s", "runtime_s", true),
                ("runtime_min_s", "runtime_s", false),
                ("job_mib_per_s_max", "mib_per_s", true),
                ("job_mib_per_s_min", "mib_per_s", false),
            ] {
                let nums = jobs.iter().filter_map(|(scope, _)| read.num(scope, &key(of_job)));
                let end = nums.reduce(|a, b| if (a.value < b.value) == is_most { b } else { a });
                let both = read.num(&scope, &key(what)).zip(end);
                cases.extend(both.map(|(said, end)| equal(format!("{scope} {}", key(what)), said, end, CLOCK)));
            }
        }
    }
    judge(rule("IO20", "rates and run times of a group = those of its jobs"), cases)
}

/// IO21: vdbench's averages are those of its intervals, the first of which it leaves out.
fn intervals(read: &Read<'_>) -> Option<Identity> {
    if read.info.tool != "vdbench" {
        return None;
    }
    let [job] = read.jobs() else {
        return None;
    };
    let mut cases = Vec::new();
    for key in ["ios_per_s", "mib_per_s", "lat_us_avg"] {
        let steps = read.steps(key, "");
        let (Some(whole), [_, rest @ ..]) = (read.num(&job.name, key), steps.as_slice()) else {
            continue;
        };
        let mean = |steps: &[super::steps::Step]| {
            let sum = super::steps::sum(steps)?;
            Some(sum.times(1.0 / steps.len() as f64))
        };
        let near = [mean(rest), mean(&steps)].into_iter().flatten();
        let off = |num: &Num| (num.value - whole.value).abs();
        let near = near.min_by(|a, b| off(a).total_cmp(&off(b)));
        // Latencies weigh by their I/Os.
        let loose = if key == "lat_us_avg" { 0.05 } else { CLOCK };
        cases.extend(near.map(|near| equal(key.to_owned(), whole, near, loose)));
    }
    let longest = |steps: &[super::steps::Step]| {
        steps.iter().map(|step| step.num).reduce(|a, b| if a.value < b.value { b } else { a })
    };
    let steps = read.steps("lat_us_max", "");
    if let (Some(whole), [_, rest @ ..]) = (read.num(&job.name, "lat_us_max"), steps.as_slice()) {
        let near = [longest(rest), longest(&steps)].into_iter().flatten();
        let off = |num: &Num| (num.value - whole.value).abs();
        let near = near.min_by(|a, b| off(a).total_cmp(&off(b)));
        cases.extend(near.map(|near| equal("lat_us_max".to_owned(), whole, near, CLOCK)));
    }
    judge(rule("IO21", "averages of the run = means of its intervals"), cases)
}

/// IO23: the bins of json+ give the percentiles and the mean.
fn bins(read: &Read<'_>) -> Option<Identity> {
    let mut cases = Vec::new();
    for (scope, job) in read.job_scopes() {
        for way in &job.ways {
            let all = &way.clat.hist_ns;
            if all.count() == 0 {
                continue;
            }
            let stem = format!("{}_clat_us_p", way.way);
            for value in read.of_scope(&scope) {
                let percent = value.key.strip_prefix(&stem).and_then(super::percent_of);
                let (Some(percent), Some(us)) = (percent, value.value.value()) else {
                    continue;
                };
                // Where few lie beyond it, the neighbour is as good.
                let beyond = all.count() as f64 * (100.0 - percent).min(percent) / 100.0;
                let found = all.percentile_ns(percent / 100.0).filter(|_| beyond >= 10.0);
                cases.extend(found.map(|ns| {
                    let (said, found) = (us_of(us, value.rounding), us_of(ns as f64 / 1e3, 0.0));
                    equal(format!("{scope}, p{percent}"), said, found, 2.0 * BUCKET)
                }));
            }
        }
    }
    judge(rule("IO23", "percentiles are those of the bins"), cases)
}

/// HOST2: rates x times of a device are what was in its queue, rates x sizes its bytes.
fn devices(read: &Read<'_>) -> Option<Identity> {
    const LOOSE: f64 = 0.05;
    let mut cases = Vec::new();
    for value in read.info.values.iter().filter(|value| value.name == "aqu-sz") {
        let device = value.key.strip_prefix("disk_in_queue_").and_then(|rest| rest.strip_suffix("_count"));
        let (Some(device), Some(queue)) = (device, read.num(&value.scope, &value.key)) else {
            continue;
        };
        let of = |way: &str, what: &str| read.num(&value.scope, &format!("{way}_{device}_{what}"));
        let name = |what: &str| format!("{device}, {}, {what}", value.scope);
        let waited = |way: &str| Some(of(way, "requests_per_s")?.by(of(way, "us_avg")?).times(1e-6));
        let both = waited("disk_read").zip(waited("disk_write")).map(|(reads, writes)| reads.plus(writes));
        let flushes = waited("disk_flush");
        let others = [waited("disk_discard"), flushes].into_iter().flatten();
        // A queue holds flushes that older versions do not print.
        let judged = if flushes.is_some() { equal } else { at_most };
        let all = both.or_else(|| waited("disk")).map(|sum| others.fold(sum, Num::plus));
        cases.extend(all.map(|all| judged(name("queue"), all, queue, LOOSE)));
        for way in ["disk_read", "disk_write", "disk"] {
            let bytes = of(way, "kib_per_s")
                .or_else(|| Some(of("disk_read", "kib_per_s")?.plus(of("disk_write", "kib_per_s")?)));
            let product = of(way, "requests_per_s").zip(of(way, "request_kib")).map(|(rate, size)| rate.by(size));
            cases.extend(bytes.zip(product).map(|(bytes, product)| equal(name(way), bytes, product, 0.01)));
        }
    }
    judge(rule("HOST2", "rates x times of a device = its queue; rates x sizes = its bytes"), cases)
}

fn us_of(value: f64, off: f64) -> Num {
    Num { value, off }
}
