//! Whether a row of rates ran into a cap: a limit that somebody set, a credit that was spent, a policy of an array.
//!
//! One search for every kind of record. A cap lets the same amount through in every second, and what is behind it idles
//! while requests wait above it; a device, a link or a host that got slower does neither.

use crate::kind::Limit;
use crate::record::{Advice, Figure, Record};
use crate::rule::Rule;
use crate::statistics::{mean, median};
use crate::steady::{SplitSides, Sums, segments};
use crate::units::{duration, fixed, short};

/// Fewest seconds of a level.
const LEVEL_SECONDS: usize = 5;
/// Disturbances after a cap are falls too: so many are looked at.
const FALLS: usize = 10;
/// Smallest fall that counts: a fifth.
const FALL_RATIO: f64 = 0.2;
/// Seconds under a cap lie within this part of their middle.
const STILL_RATIO: f64 = 0.01;
/// Fewer seconds than [`LEVEL_SECONDS`], but so many, are enough where they lie within this part of their middle.
const EXACT: (usize, f64) = (3, 0.002);
/// A rate that comes again is the same to this part, in [`LEVEL_SECONDS`] and in a third of the level or more, while no second is
/// far above it: what a busy host takes from the others says nothing against a cap.
const AGAIN_RATIO: f64 = 0.001;
/// A cap lets no more than this part through above it: the kernel's accounts for a tenth of a second at a time.
const ABOVE_RATIO: f64 = 0.12;
/// Counts below are the same again by chance.
const AGAIN_LEAST: f64 = 100.0;
/// Seconds within this part are a level too where the device had room.
const LEVEL_RATIO: f64 = 0.05;
/// A device that is busy for less of the time has room, %.
const IDLE_PCT: f64 = 50.0;
/// This part of what requests wait longer after a fall is spent above the device: then something holds them back.
const ABOVE_DEVICE_RATIO: f64 = 0.9;
/// The CPUs were no scarcer after a fall than before it where pressure rose by no more than this, percentage points.
const PRESSURE_POINTS: f64 = 15.0;
/// Without a fall, seconds lie within this part for [`HELD_SECONDS`] while requests wait above the device.
const HELD_RATIO: f64 = 0.005;
/// Seconds of a level that no fall led to.
const HELD_SECONDS: usize = 10;
/// A stall of the host takes from one second what the cap gives back in the next ones: so many seconds together.
const MADE_UP_SECONDS: usize = 3;
/// What was given back is what was taken, to this part of a second's amount: a cap is exact, chance is not.
const MADE_UP_RATIO: f64 = 0.005;
/// Difference of means over its standard error from which a split counts.
const LEVEL_T: f64 = 6.0;
/// A value this close to a round number is seldom so by chance.
const ROUND_RATIO: f64 = 0.002;
/// A rate is at a limit that the host names within this part of it.
const NAMED_RATIO: f64 = 0.03;
/// A test has to see the cap for so long, s.
const SEEN_S: f64 = 10.0;

/// How its sentences begin.
const LOOKS_LIKE: &str = "It looks like a cap of ";

/// The rule of it, for every kind.
pub const RULE: Rule = Rule {
    id: "R41",
    title: "A cap",
    changes_figures: false,
    fires_when: || {
        format!(
            "A rate per second falls by at least {} %, and the seconds after the last such fall are a level: \
             {LEVEL_SECONDS} or more, nine in ten within {} % of their median ({} % where the device was busy for less than \
             {IDLE_PCT} % of them, or where {} % of what a read waits longer is spent above the device while CPU pressure \
             rose by no more than {PRESSURE_POINTS} points) or made up for within {MADE_UP_SECONDS} s; or {} or more within {} %; or \
             {LEVEL_SECONDS} and a third of them the same to {} %, and none more than {} % above. Without a fall: all of \
             {HELD_SECONDS} or more seconds lie within {} % while requests wait above the device. R12, A5 and A6 come \
             first; high after a fall",
            100.0 * FALL_RATIO,
            100.0 * STILL_RATIO,
            100.0 * LEVEL_RATIO,
            100.0 * ABOVE_DEVICE_RATIO,
            EXACT.0,
            100.0 * EXACT.1,
            100.0 * AGAIN_RATIO,
            100.0 * ABOVE_RATIO,
            100.0 * HELD_RATIO,
        )
    },
    why: "A limit of a control group, a volume or a provider, a spent burst credit and the policy of an array look like this; a \
          device or a network that is at its end varies more.",
    what_to_do: "Raise the limit, or plan with the rate that stays.",
    cannot_judge_when: "There is no series, or it is too short for levels: then the rule is silent.",
    source: "Decided here.",
};

/// What is known of a device beside the rates.
#[derive(Clone, Debug, Default)]
pub struct SeenBeside {
    /// How busy it was in each second, %; empty where that is not known.
    pub busy_pct: Vec<f64>,
    /// Whether requests took much longer than the device did.
    pub is_queued: bool,
    /// What a request took and what the device took of it in each second, us; empty where either is not known.
    pub took_us: Vec<(f64, f64)>,
    /// How long somebody waited for a CPU in each second, %; empty where that is not known.
    pub cpu_pressure_pct: Vec<f64>,
}

impl SeenBeside {
    /// What requests and the device took from a second on, us, where what was added to a request since the seconds before it was
    /// added above the device, and no scarcer CPU added it.
    fn held_above_us(&self, from: usize) -> Option<(f64, f64)> {
        let sides = |of: &[f64]| Some((mean(of.get(..from).filter(|side| !side.is_empty())?), mean(of.get(from..)?)));
        let (own, device): (Vec<f64>, Vec<f64>) = self.took_us.iter().copied().unzip();
        let ((own_before, own), (device_before, device)) = (sides(&own)?, sides(&device)?);
        let (pressure_before, pressure) = sides(&self.cpu_pressure_pct)?;
        let is_above = device - device_before <= (1.0 - ABOVE_DEVICE_RATIO) * (own - own_before);
        (is_above && pressure <= pressure_before + PRESSURE_POINTS).then_some((own, device))
    }
}

/// A rate that something holds.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldLevel {
    /// Per second.
    pub per_s: f64,
    /// Mean of the seconds before the fall to it; none where there was no fall.
    pub before_per_s: Option<f64>,
    /// The first of its seconds.
    pub from: usize,
    /// Half the range of its seconds, % of the rate.
    pub spread_pct: f64,
    /// Half of its seconds are so near, % of the rate.
    pub half_pct: f64,
    /// How busy the device was meanwhile, %, where it had room.
    pub idle_pct: Option<f64>,
    /// What a request took and what the device took of it meanwhile, us, where the time since the fall was added above it.
    pub above_us: Option<(f64, f64)>,
}

/// The cap that the last level of some rates, one second apart, looks like.
#[must_use]
pub fn find(rates: &[f64], beside: &SeenBeside) -> Option<HeldLevel> {
    let sums = Sums::new(rates);
    let score = |sides: &SplitSides| {
        let ((left, right), (a, b)) = (sides.counts, sides.means);
        let within = sides.squares / (left + right - 2.0).max(1.0);
        let error = (within * (1.0 / left + 1.0 / right)).sqrt();
        if a - b >= FALL_RATIO * a { (a - b) / error.max(1e-3 * a) } else { 0.0 }
    };
    // A burst may be over within a second or two; what follows has to last.
    let mut split = |from: usize, to: usize| {
        let best = sums.best_split((from, to), 1, score)?;
        (best.1 >= LEVEL_T && to - best.0 >= EXACT.0).then_some(best)
    };
    let falls = segments((0, rates.len()), &mut split);
    let after = |(at, _): &(usize, f64)| {
        let before = mean(&rates[..(*at).max(1)]);
        // The second of the change itself is partly one, partly the other, and a cap lets some more through in its first one.
        let level = (*at..at + 3).find_map(|from| level(rates, beside, from))?;
        (before - level.per_s >= FALL_RATIO * before).then_some(HeldLevel { before_per_s: Some(before), ..level })
    };
    falls.iter().rev().take(FALLS).find_map(after).or_else(|| held(rates, beside))
}

/// What lets through the same from a second on to the end.
fn level(rates: &[f64], beside: &SeenBeside, from: usize) -> Option<HeldLevel> {
    let level = rates.get(from..).filter(|level| level.len() >= EXACT.0)?;
    let middle = median(level).filter(|middle| *middle > 0.0)?;
    let busy_pct = beside.busy_pct.get(from..).filter(|busy| !busy.is_empty()).map(mean);
    let idle_pct = busy_pct.filter(|pct| *pct < IDLE_PCT);
    let above_us = beside.held_above_us(from);
    let has_room = idle_pct.is_some() || above_us.is_some();
    // One second in ten may be disturbed.
    let is_still = |ratio: f64| level.len() >= LEVEL_SECONDS && still(level, middle, ratio) * 10 >= level.len() * 9;
    let is_level = spread(level, middle) <= EXACT.1 || is_still(STILL_RATIO);
    let per_s = if is_level {
        middle
    } else {
        again(level).or_else(|| (has_room && is_still(LEVEL_RATIO)).then_some(middle))?
    };
    let off: Vec<f64> = level.iter().map(|rate| 100.0 * (rate - per_s).abs() / per_s).collect();
    let (spread_pct, half_pct) = (100.0 * spread(level, per_s), median(&off)?);
    Some(HeldLevel { per_s, before_per_s: None, from, spread_pct, half_pct, idle_pct, above_us })
}

/// The rate to which seconds come again and again, where none comes to much more.
fn again(level: &[f64]) -> Option<f64> {
    // A day has 86,400 seconds.
    let mut sorted = level.to_vec();
    sorted.sort_by(f64::total_cmp);
    let up_to = |bound: f64| sorted.partition_point(|rate| *rate <= bound);
    let same = |per_s: f64| up_to((1.0 + AGAIN_RATIO) * per_s) - up_to((1.0 - AGAIN_RATIO) * per_s);
    let often = level.iter().copied().max_by_key(|rate| same(*rate))?;
    let is_often = same(often) >= LEVEL_SECONDS && 3 * same(often) >= level.len();
    let is_most = level.iter().all(|rate| *rate <= (1.0 + ABOVE_RATIO) * often);
    (is_often && is_most && often >= AGAIN_LEAST).then_some(often)
}

/// A level from the first second on is one only where requests are seen to wait for it.
fn held(rates: &[f64], beside: &SeenBeside) -> Option<HeldLevel> {
    let is_long = beside.is_queued && rates.len() >= HELD_SECONDS;
    level(rates, beside, 0).filter(|level| is_long && level.spread_pct <= 100.0 * HELD_RATIO)
}

/// Half the range of some rates, as a part of their middle.
fn spread(rates: &[f64], middle: f64) -> f64 {
    let most = rates.iter().copied().fold(0.0, f64::max);
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    0.5 * (most - least) / middle
}

/// Seconds of a level that lie at its middle, or lack or exceed it by what the seconds after them make up for.
fn still(level: &[f64], middle: f64, ratio: f64) -> usize {
    let (mut still, mut at) = (0, 0);
    while let Some(rate) = level.get(at) {
        let off = (rate - middle) / middle;
        let together = if off.abs() <= ratio {
            Some(1)
        } else {
            // What is given back comes in portions; a stall takes any part of a second.
            made_up(&level[at..], middle).filter(|_| off <= LEVEL_RATIO)
        };
        still += together.unwrap_or(0);
        at += together.unwrap_or(1);
    }
    still
}

/// Within how many seconds from the first on the amount that it lacks or exceeds was made up for, if it was.
fn made_up(level: &[f64], middle: f64) -> Option<usize> {
    // Counts are whole, and so is the edge of a second.
    let exact = (MADE_UP_RATIO * middle).max(1.5);
    let mut lacking = 0.0;
    let sums = level.iter().take(MADE_UP_SECONDS).map(|rate| {
        lacking += rate - middle;
        lacking
    });
    Some(sums.enumerate().find(|(_, lacking)| lacking.abs() <= exact)?.0 + 1)
}

/// What may be capped: the begin of a series' name, its unit in words, and what one of that unit is of the series'.
const CAPPED: [(&str, &str, f64); 12] = [
    ("read_io_requests_count_per_s", "reads/s", 1.0),
    ("write_io_requests_count_per_s", "writes/s", 1.0),
    ("read_ios_count_per_s", "reads/s", 1.0),
    ("write_ios_count_per_s", "writes/s", 1.0),
    ("ios_count_per_s", "I/Os/s", 1.0),
    ("syncs_count_per_s", "syncs/s", 1.0),
    ("redo_transport_per_s", "messages/s", 1.0),
    ("tcp_throughput_bits_per_s", "Mbit/s", 1e6),
    ("udp_throughput_bits_per_s", "Mbit/s", 1e6),
    ("throughput_bits_per_s", "Mbit/s", 1e6),
    (OPS, "operations/s", 1.0),
    ("commits_count_per_s", "transactions/s", 1.0),
];
/// What falls where the work of a database does: its reads alone fall where its cache fills.
const OPS: &str = "ops_count_per_s";

/// A cap in a record.
#[derive(Clone, Debug, PartialEq)]
pub struct Cap {
    /// The rate that was held.
    pub level: HeldLevel,
    /// Its unit in words.
    pub unit: &'static str,
    /// The last second before the level, and the first one of it, s; further apart where a text leaves seconds out.
    pub begins_s: (f64, f64),
    /// A limit of this rate that the host names, with who set it.
    named: Option<String>,
}

/// The rows of a series that are whole seconds of the window, of one group where it has several.
fn rows(record: &Record, group: Option<u64>) -> Vec<usize> {
    let series = &record.series;
    let groups = series.metrics.get("group");
    let step = series.step_s.value().unwrap_or(1.0);
    let is_whole = |at: usize| {
        let previous = at.checked_sub(1).map_or(0.0, |before| series.t_s[before]);
        let length = series.t_s[at] - previous;
        // The clock of a group starts at its own begin.
        length <= 0.0 || length > 0.9 * step
    };
    let is_of_group = |at: usize| {
        let own = groups.and_then(|groups| groups.get(at)).and_then(Figure::value);
        group.is_none_or(|group| own == Some(group as f64))
    };
    let inside = |at: &usize| series.in_window.get(*at).copied().unwrap_or(true) && is_whole(*at) && is_of_group(*at);
    (0..series.t_s.len()).filter(inside).collect()
}

/// The cap that a record's series look like.
#[must_use]
pub fn of(record: &Record) -> Option<Cap> {
    of_group(record, None, |name| is_queued(record, name))
}

/// The cap that the seconds of a group of jobs look like, of a record that has several one after another. `is_queued` says
/// of a column whether requests took much longer than the device did.
#[must_use]
pub fn of_group(record: &Record, group: Option<u64>, is_queued: impl Fn(&str) -> bool) -> Option<Cap> {
    let rows = rows(record, group);
    let series = &record.series;
    let column = |name: &str| -> Option<Vec<f64>> {
        let all = series.metrics.get(name)?;
        let known: Vec<f64> = rows.iter().filter_map(|at| all.get(*at)?.value()).collect();
        (known.len() == rows.len()).then_some(known)
    };
    let is_busy = |name: &&String| name.starts_with("device_") && name.ends_with("busy_pct");
    let busy = series.metrics.keys().filter(is_busy).filter_map(|name| column(name));
    let busy_pct = busy.max_by(|a, b| mean(a).total_cmp(&mean(b))).unwrap_or_default();
    let ops = column(OPS);
    CAPPED.into_iter().find_map(|(name, unit, size)| {
        let rates: Vec<f64> = column(name)?.into_iter().map(|rate| rate / size).collect();
        let beside = SeenBeside {
            busy_pct: busy_pct.clone(),
            is_queued: is_queued(name),
            took_us: took_us(name, &rates, &column),
            cpu_pressure_pct: column("psi_cpu_some_pct").unwrap_or_default(),
        };
        let level = find(&rates, &beside)?;
        let fell = |ops: &Vec<f64>| {
            let (before, after) = ops.split_at(level.from);
            mean(before) - mean(after) >= FALL_RATIO * mean(before)
        };
        if level.before_per_s.is_some() && !ops.as_ref().is_none_or(fell) {
            return None;
        }
        let end = |at: usize| series.t_s[rows[at]];
        let step = series.step_s.value().unwrap_or(1.0);
        let first = end(level.from) - step;
        let last = level.from.checked_sub(1).map_or(0.0, end);
        let named = named(record, unit, level.per_s);
        Some(Cap { level, unit, begins_s: (last.min(first), first), named })
    })
}

/// What a read took for the sessions, whose waits for I/O are those in flight, and what the device took of it, us.
fn took_us(name: &str, rates: &[f64], column: &impl Fn(&str) -> Option<Vec<f64>>) -> Vec<(f64, f64)> {
    let known = column("active_user_io_count").zip(column("device_read_us_avg"));
    let Some((in_flight, device)) = known.filter(|_| name == "read_io_requests_count_per_s") else {
        return Vec::new();
    };
    let own = in_flight.iter().zip(rates).map(|(count, rate)| 1e6 * count / rate.max(1.0));
    own.zip(device).collect()
}

/// Whether requests of a way took at least twice as long as a device did that had room, by what the layers of an engine say.
fn is_queued(record: &Record, name: &str) -> bool {
    /// Requests that wait in front of a cap take so many times as long as those that do not.
    const QUEUED: f64 = 2.0;
    let way = name.split('_').next().unwrap_or_default();
    let has_room = record.os.disk.iter().all(|disk| disk.busy_pct.value().is_some_and(|pct| pct < IDLE_PCT));
    has_room
        && record.instance.layers.iter().filter(|row| row.request.contains(way)).any(|row| {
            let times = row.engine.latency.us_avg.value().zip(row.device.latency.us_avg.value());
            times.is_some_and(|(engine, device)| device > 0.0 && engine >= QUEUED * device)
        })
}

/// A limit on a device that the host names and that is this rate.
fn named(record: &Record, unit: &str, per_s: f64) -> Option<String> {
    let kind = match unit {
        "reads/s" => "read_iops",
        "writes/s" => "write_iops",
        _ => return None,
    };
    record.host.facts.iter().find_map(|fact| {
        let (limit, by) = fact.value.split_once(" by ").filter(|_| fact.name.starts_with("io_cap_"))?;
        let limit: f64 = limit.parse().ok().filter(|_| fact.name.ends_with(kind))?;
        ((per_s / limit - 1.0).abs() <= NAMED_RATIO).then(|| format!("{} set by {by}", short(limit)))
    })
}

/// Whether a rate has two digits and zeroes.
fn is_round(value: f64) -> bool {
    let unit = 10_f64.powf(value.log10().floor() - 1.0);
    let round = (value / unit).round() * unit;
    value >= 100.0 && (value / round - 1.0).abs() <= ROUND_RATIO
}

impl Cap {
    /// `2,000 reads/s`.
    #[must_use]
    pub fn rate(&self) -> String {
        format!("{} {}", short(self.level.per_s), self.unit)
    }

    /// What was seen, in sentences.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{LOOKS_LIKE}{}. {}", self.rate(), self.seen())
    }

    /// What makes it look like one.
    fn seen(&self) -> String {
        // Seconds that others disturbed are no seconds of the cap.
        let (which, spread) = match self.level.spread_pct {
            pct if pct <= 100.0 * LEVEL_RATIO => ("the", pct),
            _ => ("half of the", self.level.half_pct),
        };
        let spread = fixed(spread.max(0.1), 1);
        let mut text = match self.level.before_per_s {
            Some(before) => {
                let (from, to) = self.begins_s;
                let since = if to - from < 1.5 {
                    format!("From {} s on", fixed(to, 0))
                } else {
                    format!("From some second between {} and {} s on", fixed(from, 0), fixed(to, 0))
                };
                format!(
                    "{since}, {which} seconds are within {spread} % of this rate; before it there were {} {}.",
                    short(before),
                    self.unit
                )
            }
            None => format!("Every second is within {spread} % of this rate, while requests wait above the device."),
        };
        if is_round(self.level.per_s) {
            text.push_str(" It is a round figure.");
        }
        if let Some(pct) = self.level.idle_pct {
            text.push_str(&format!(" The device was busy {} % of the time meanwhile.", fixed(pct, 0)));
        }
        if let Some((own, device)) = self.level.above_us {
            let lasted = |us: f64| duration((1e3 * us) as u64);
            text.push_str(&format!(" A read took {} meanwhile, the device {} of it.", lasted(own), lasted(device)));
        }
        if let Some(named) = &self.named {
            text.push_str(&format!(" The host names a limit of {named}."));
        }
        if let Some(before) = self.level.before_per_s {
            let (spent, shortest) = ((before - self.level.per_s) * self.begins_s.0, self.begins_s.1 + SEEN_S);
            text.push_str(&format!(
                " If it is a burst credit, it held about {} {} above this rate. A test shorter than {} s does not show it.",
                short(spent),
                self.unit.trim_end_matches("/s"),
                fixed(shortest, 0)
            ));
        }
        text
    }

    /// As what limits a test, with what was seen.
    #[must_use]
    pub fn limit(&self) -> Limit {
        Limit::new(format!("what looks like a cap of {}", self.rate()), self.seen())
    }

    /// The finding.
    #[must_use]
    pub fn advice(&self) -> Advice {
        let mut evidence = vec![("cap_per_s", self.level.per_s), ("at_s", self.begins_s.1)];
        evidence.extend(self.level.before_per_s.map(|before| ("before_per_s", before)));
        RULE.advise(self.level.before_per_s.is_some(), self.text(), &evidence)
    }
}

/// What limits a test by a finding that was made of it: without what to do, which the finding says.
#[must_use]
pub fn limit_of(advice: &Advice) -> Option<Limit> {
    let (cap, seen) = advice.text.strip_prefix(LOOKS_LIKE)?.split_once(". ")?;
    let seen = seen.strip_suffix(RULE.what_to_do).unwrap_or(seen).trim_end();
    Some(Limit::new(format!("what looks like a cap of {cap}"), seen.to_owned()))
}

/// The finding of a record.
#[must_use]
pub fn judge(record: &Record) -> Option<Advice> {
    of(record).map(|cap| cap.advice())
}

#[cfg(test)]
mod tests;
