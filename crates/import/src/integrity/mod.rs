//! Identities on imported figures, from the record alone.
//!
//! The compared figures were rounded in printing: the tolerance of an identity is the possible rounding error of its
//! sides plus the allowance of its rule. Only identities whose inputs were printed are evaluated; none is exact,
//! because a violation means that the source contradicts itself, never that assay is wrong.

mod counters;
mod lines;
mod profile;
mod redundant;
mod tools;
mod warnings;

use assay_measure::counter_catalog::{self, Stat};
pub(super) use assay_measure::identity::Rounded as Side;
use assay_measure::identity::{IdentityRule, Scope, number_of};
use assay_measure::record::{EventRow, Figure, Identity, Record, Truth};
use std::collections::HashMap;

pub(super) use warnings::warnings;

pub(super) const MIB: f64 = 1_048_576.0;

/// Every identity whose inputs an imported record holds.
#[must_use]
pub(super) fn imported(record: &Record) -> Vec<Identity> {
    let printed = Printed::new(record);
    let mut all = Vec::new();
    counters::counters(&printed, &mut all);
    events(&printed, &mut all);
    classes(&printed, &mut all);
    foreground(&printed, &mut all);
    rates(&printed, &mut all);
    redundant::identities(&printed, &mut all);
    profile::totals(&printed, &mut all);
    all.extend(lines::identities(&printed));
    all.extend(tools::identities(record));
    all.sort_by_key(|identity| (number_of(&identity.id), identity.id.clone()));
    all
}

/// The record with the rounding of each figure by its place.
pub(super) struct Printed<'a> {
    record: &'a Record,
    rounding: HashMap<&'a str, f64>,
    alone: HashMap<(&'a str, &'a str), Side>,
}

impl<'a> Printed<'a> {
    fn new(record: &'a Record) -> Self {
        let values = || record.import.iter().flat_map(|info| &info.values);
        let placed = values().filter(|value| !value.at.is_empty());
        let alone = values().filter(|value| value.at.is_empty()).filter_map(|value| {
            let side = Side { value: value.value.value()?, off: value.rounding };
            Some(((value.scope.as_str(), value.key.as_str()), side))
        });
        Self { record, rounding: placed.map(|v| (v.at.as_str(), v.rounding)).collect(), alone: alone.collect() }
    }

    fn side(&self, figure: &Figure, at: &str) -> Option<Side> {
        Some(self.rounded(figure.value()?, at))
    }

    /// With the rounding of what was printed there.
    fn rounded(&self, value: f64, at: &str) -> Side {
        Side { value, off: self.rounding.get(at).copied().unwrap_or(1e-9 * value.abs()) }
    }

    pub(super) fn total(&self, stat: Stat) -> Option<Side> {
        self.total_of(stat.key)
    }

    fn total_of(&self, key: &str) -> Option<Side> {
        let row = self.record.instance.stats.get(key)?;
        self.side(&row.total, &format!("/instance/stats/{key}/total"))
    }

    /// A row of the load profile, per second, and its place.
    fn load_at(&self, name: &str) -> Option<(&Figure, String)> {
        let mut rows = self.record.instance.load_profile.iter().enumerate();
        let (i, row) = rows.find(|(_, row)| row.name == name)?;
        Some((&row.per_s, format!("/instance/load_profile/{i}/per_s")))
    }

    pub(super) fn load(&self, name: &str) -> Option<Side> {
        let (figure, at) = self.load_at(name)?;
        self.side(figure, &at)
    }

    /// The same, if it was printed and does not follow from other figures.
    pub(super) fn printed_load(&self, name: &str) -> Option<Side> {
        let (figure, at) = self.load_at(name)?;
        self.printed(figure, &at)
    }

    /// A figure that was printed.
    pub(super) fn printed(&self, figure: &Figure, at: &str) -> Option<Side> {
        let side = self.side(figure, at);
        side.filter(|_| self.rounding.contains_key(at))
    }

    fn alone(&self, scope: &str, key: &str) -> Option<Side> {
        self.alone.get(&(scope, key)).copied()
    }

    /// Time waited in all events that are wanted.
    fn waited(&self, wanted: impl Fn(&EventRow) -> bool) -> Option<Side> {
        let rows = self.record.instance.events.iter().enumerate();
        let rows = rows.filter(|(_, event)| wanted(event));
        rows.filter_map(|(i, row)| self.side(&row.total_us, &format!("/instance/events/{i}/total_us")))
            .reduce(Side::plus)
    }

    fn elapsed(&self) -> Option<Side> {
        self.side(&self.record.interval.elapsed_s, "/interval/elapsed_s")
    }

    /// Whether the report is our own, whose counters are read at one instant.
    fn is_own(&self) -> bool {
        let import = self.record.import.as_ref();
        import.is_some_and(|info| info.tool == "assay")
    }

    /// Whether a cache of another block size is configured: blocks are then not all of one size.
    pub(super) fn has_several_block_sizes(&self) -> bool {
        let mut settings = self.record.plan.settings.iter();
        settings.any(|line| {
            let size = line.name.strip_prefix("db_");
            let size = size.and_then(|name| name.strip_suffix("k_cache_size"));
            size.is_some_and(|size| size.parse::<u32>().is_ok()) && line.value != "0"
        })
    }

    /// Block size as printed, else as bytes and blocks give it: the nearest power of two.
    pub(super) fn block(&self) -> Option<f64> {
        let facts = &self.record.plan.engine_facts;
        let fact = facts.iter().find(|fact| fact.name == "block_bytes");
        if let Some(bytes) = fact.and_then(|fact| fact.value.parse().ok()) {
            return Some(bytes);
        }
        let by_stats = || {
            Some(
                self.total(counter_catalog::PHYSICAL_READ_BYTES)?.value
                    / self.total(counter_catalog::PHYSICAL_READS)?.value,
            )
        };
        let by_load = || {
            let mib = self.load("Read IO (MB)")?.value;
            Some(mib * MIB / self.load("Physical read (blocks)")?.value)
        };
        let about: f64 = by_stats().or_else(by_load)?;
        let near = 2_f64.powf(about.log2().round());
        ((about / near - 1.0).abs() < 0.05 && (2048.0..=65536.0).contains(&near)).then_some(near)
    }
}

/// Which way two sides must relate.
#[derive(Clone, Copy)]
pub(super) enum Must {
    Equal,
    NotAbove,
}

/// Judges two sides, if both are there; `allowed` is the rule's own allowance beside the rounding, in its unit.
pub(super) fn judge(
    all: &mut Vec<Identity>,
    id: &'static str,
    text: &'static str,
    must: Must,
    sides: Option<(Side, Side)>,
    allowed: f64,
) {
    let Some((left, right)) = sides else {
        return;
    };
    let rule = IdentityRule::within(id, Scope::Window, text, left.off + right.off + allowed);
    let rule = match must {
        Must::Equal => rule,
        Must::NotAbove => rule.at_most(),
    };
    let identity = rule.compare(Ok(left.value), Ok(right.value));
    if !matches!(identity.ok, Truth::Na(_)) {
        all.push(identity);
    }
}

/// The same of one of several things of a kind, named in the rule.
fn judge_of(
    all: &mut Vec<Identity>,
    name: &str,
    id: &'static str,
    text: &'static str,
    must: Must,
    sides: Option<(Side, Side)>,
    allowed: f64,
) {
    let before = all.len();
    judge(all, id, text, must, sides, allowed);
    for identity in &mut all[before..] {
        identity.rule = format!("{name}: {}", identity.rule);
    }
}

fn events(p: &Printed<'_>, all: &mut Vec<Identity>) {
    let db_time = p.side(&p.record.instance.time_model.db_time_us, "/instance/time_model/db_time_us");
    for (i, event) in p.record.instance.events.iter().enumerate() {
        let at = |column: &str| format!("/instance/events/{i}/{column}");
        let (count, total) = (p.side(&event.count, &at("count")), p.side(&event.total_us, &at("total_us")));
        let has_avg = p.rounding.contains_key(at("us_avg").as_str());
        let placed = p.side(&event.us_avg, &at("us_avg")).filter(|_| has_avg);
        let key = format!("{}_us_avg", assay_measure::plain::slug(&event.name));
        let average = placed.or_else(|| p.alone(&event.actor, &key));
        let product = count.zip(average).map(|(count, average)| count.by(average));
        let name = &event.name;
        judge_of(all, name, "I17", "total wait time = waits x average", Must::Equal, total.zip(product), 0.0);
        let is_own = event.actor == "foreground" && event.class != "Idle";
        // One that was derived agrees by construction.
        let is_printed = p.rounding.contains_key(at("db_time_pct").as_str());
        let share = p.side(&event.db_time_pct, &at("db_time_pct")).filter(|_| is_own && is_printed);
        let of_share = share.zip(db_time).map(|(share, time)| share.by(time).times(0.01));
        let id = if name == "db file parallel read" { "I29" } else { "I28" };
        judge_of(
            all,
            name,
            id,
            "waits x average = share of DB time x DB time",
            Must::Equal,
            product.or(total).zip(of_share),
            0.0,
        );
        if event.note.contains("estimates") || event.hist_us.is_empty() {
            continue;
        }
        histogram(all, event, count, total.or(product));
        if count.is_none() && SINGLE_READS.contains(&name.as_str()) {
            let waits = reads_waited(p);
            let sum: u64 = event.hist_us.iter().sum();
            let of_buckets = Side::exact(sum as f64);
            let allowed = waits.map_or(0.0, |waits| 0.02 * waits.value);
            let sides = waits.map(|waits| (of_buckets, waits));
            let text = "sum of the histogram <= waits of Buffer Cache Reads";
            judge_of(all, name, "I15b", text, Must::NotAbove, sides, allowed);
        }
    }
}

/// Events of a single block read.
const SINGLE_READS: [&str; 2] = ["db file sequential read", "cell single block physical read"];

/// Waits of the function that holds those events.
fn reads_waited(p: &Printed<'_>) -> Option<Side> {
    let rows = &p.record.instance.io_functions;
    let i = rows.iter().position(|row| row.function == "Buffer Cache Reads")?;
    p.side(&rows[i].waits_count, &format!("/instance/io_functions/{i}/waits_count"))
}

fn histogram(all: &mut Vec<Identity>, event: &EventRow, count: Option<Side>, total: Option<Side>) {
    let name = &event.name;
    let sum: u64 = event.hist_us.iter().sum();
    let of_buckets = Side::exact(sum as f64);
    let allowed = count.map_or(0.0, |count| 0.02 * count.value);
    judge_of(
        all,
        name,
        "I15",
        "sum of the histogram = waits",
        Must::Equal,
        count.map(|count| (of_buckets, count)),
        allowed,
    );
    let Some((count, total)) = count.zip(total).filter(|(count, _)| count.value > 0.0) else {
        return;
    };
    // Where the histogram holds other waits too, the time is taken in proportion.
    let scaled = total.times(sum as f64 / count.value);
    let bound = |upper: bool| {
        let each = event.hist_us.iter().enumerate().map(|(i, n)| {
            let edge = 2_f64.powi(i as i32);
            *n as f64
                * if upper {
                    edge
                } else if i == 0 {
                    0.0
                } else {
                    edge / 2.0
                }
        });
        Side::exact(each.sum())
    };
    judge_of(
        all,
        name,
        "I16a",
        "waits at their buckets' lower bounds <= total wait time, us",
        Must::NotAbove,
        Some((bound(false), scaled)),
        0.0,
    );
    judge_of(
        all,
        name,
        "I16b",
        "total wait time <= waits at their buckets' upper bounds, us",
        Must::NotAbove,
        Some((scaled, bound(true))),
        0.0,
    );
}

/// I20: what sessions waited is part of DB time, but for waits that began before the window.
fn foreground(p: &Printed<'_>, all: &mut Vec<Identity>) {
    /// Parallel servers wait beside the session they work for, and a wait counts where it ends. Decided here: no measurement says how
    /// far that goes.
    const STRADDLING: f64 = 0.5;
    let is_own = |event: &EventRow| event.actor == "foreground" && !["", "Idle"].contains(&event.class.as_str());
    let time = p.side(&p.record.instance.time_model.db_time_us, "/instance/time_model/db_time_us");
    let by_time = p.waited(is_own).zip(time);
    let shares = p.record.instance.events.iter().filter(|event| is_own(event));
    let shares = shares.filter_map(|event| event.db_time_pct.value()).reduce(|a, b| a + b);
    let by_share = || shares.map(|pct| (Side::exact(pct), Side::exact(100.0)));
    let sides = by_time.or_else(by_share);
    let allowed = sides.map_or(0.0, |(_, whole)| STRADDLING * whole.value);
    judge(all, "I20", "waits of the foreground <= DB time", Must::NotAbove, sides, allowed);
}

/// Waits by class.
fn classes(p: &Printed<'_>, all: &mut Vec<Identity>) {
    let is_in = |event: &EventRow, name: &str, actor: &str| event.actor == actor && event.class == name;
    for (i, class) in p.record.instance.wait_classes.iter().enumerate() {
        if class.class == "DB CPU" {
            continue;
        }
        let sum = p.waited(|event| is_in(event, &class.class, "foreground"));
        let total = p.side(&class.total_us, &format!("/instance/wait_classes/{i}/total_us"));
        judge_of(
            all,
            &class.class,
            "I19",
            "foreground events of the class <= the class",
            Must::NotAbove,
            sum.zip(total),
            1000.0,
        );
        let rows =
            p.record.instance.events.iter().enumerate().filter(|(_, event)| is_in(event, &class.class, "foreground"));
        let waits = rows.filter_map(|(j, row)| p.printed(&row.count, &format!("/instance/events/{j}/count")));
        let of_class = p.printed(&class.waits_count, &format!("/instance/wait_classes/{i}/waits_count"));
        let sides = waits.reduce(Side::plus).zip(of_class);
        // What it may be off is decided here: no measurement stands behind it.
        let allowed = sides.map_or(0.0, |(_, whole)| 0.01 * whole.value + 10.0);
        let text = "waits of the foreground events of the class <= those of the class";
        judge_of(all, &class.class, "I19b", text, Must::NotAbove, sides, allowed);
    }
}

/// How many rows of a table agree, and the first that does not.
#[derive(Default)]
pub(super) struct Tally {
    good: u64,
    many: u64,
    first: Option<String>,
}

impl Tally {
    pub(super) fn count(&mut self, name: &str, agrees: bool) {
        self.many += 1;
        self.good += u64::from(agrees);
        if !agrees && self.first.is_none() {
            self.first = Some(name.to_owned());
        }
    }

    /// One identity of all rows, if there are any.
    pub(super) fn judge(self, all: &mut Vec<Identity>, id: &'static str, text: &'static str) {
        let (good, many) = (self.good, self.many);
        if many == 0 {
            return;
        }
        let rule = IdentityRule::within(id, Scope::Window, text, 0.0);
        let mut identity = rule.compare(Ok(good as f64), Ok(many as f64));
        identity.sentence = match self.first {
            Some(name) => format!("{good} of {many} agree; the first that disagrees is {name}"),
            None => format!("all {many} agree within their rounding"),
        };
        all.push(identity);
    }
}

/// Totals against rates, and rates per second against rates per transaction.
fn rates(p: &Printed<'_>, all: &mut Vec<Identity>) {
    let Some(elapsed) = p.elapsed() else {
        return;
    };
    let mut tally = Tally::default();
    for (key, row) in &p.record.instance.stats {
        let at = |column: &str| format!("/instance/stats/{key}/{column}");
        let sides = p.printed(&row.total, &at("total")).zip(p.printed(&row.per_s, &at("per_s")));
        let Some((total, rate)) = sides.filter(|(total, _)| total.value > 0.0) else {
            continue;
        };
        let product = rate.twice_rounded().by(Side { off: elapsed.off + 0.01, ..elapsed });
        let off = product.off + total.off;
        tally.count(&row.name, (product.value - total.value).abs() <= off);
    }
    let text = "total = per second x elapsed time, of every statistic";
    tally.judge(all, "I26", text);
}
