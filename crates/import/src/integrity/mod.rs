//! Identities on imported figures, from the record alone.
//!
//! What is compared was rounded when it was printed: the tolerance of an identity is what rounding may have done to
//! its sides, and the allowance of its rule. Only identities whose inputs were printed are there; none is exact, for a
//! violation says that the source disagrees with itself, never that assay is wrong.

mod counters;
mod profile;
mod redundant;
mod tools;
mod warnings;

pub(super) use assay_measure::identity::Rounded as Side;
use assay_measure::identity::{Rule, Scope, known, number_of};
use assay_measure::record::{EventRow, Figure, Identity, Record, Truth};
use assay_measure::stats::{self, Stat};
use std::collections::HashMap;

pub(super) use warnings::warnings;

pub(super) const MIB: f64 = 1_048_576.0;

/// Every identity whose inputs an imported record holds.
#[must_use]
pub(super) fn imported(record: &Record) -> Vec<Identity> {
    let printed = Printed::new(record);
    let mut all = Vec::new();
    counters::counters(&printed, &mut all);
    counters::requests(&printed, &mut all);
    functions(&printed, &mut all);
    events(&printed, &mut all);
    classes(&printed, &mut all);
    times(&printed, &mut all);
    cpu(&printed, &mut all);
    rates(&printed, &mut all);
    update(&printed, &mut all);
    redundant::identities(&printed, &mut all);
    profile::identities(&printed, &mut all);
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
        let value = known(figure.clone()).ok()?;
        let off = self.rounding.get(at).copied().unwrap_or(1e-9 * value.abs());
        Some(Side { value, off })
    }

    pub(super) fn total(&self, stat: Stat) -> Option<Side> {
        self.total_of(stat.key)
    }

    fn total_of(&self, key: &str) -> Option<Side> {
        let row = self.record.instance.stats.get(key)?;
        self.side(&row.total, &format!("/instance/stats/{key}/total"))
    }

    pub(super) fn load(&self, name: &str, column: &str) -> Option<Side> {
        let rows = &self.record.instance.load_profile;
        let i = rows.iter().position(|row| row.name == name)?;
        let figure = match column {
            "per_tx" => &rows[i].per_tx,
            "per_exec" => &rows[i].per_exec,
            "per_call" => &rows[i].per_call,
            _ => &rows[i].per_s,
        };
        self.side(figure, &format!("/instance/load_profile/{i}/{column}"))
    }

    /// The same, if it was printed and does not follow from other figures.
    pub(super) fn printed_load(&self, name: &str, column: &str) -> Option<Side> {
        let rows = &self.record.instance.load_profile;
        let i = rows.iter().position(|row| row.name == name)?;
        let at = format!("/instance/load_profile/{i}/{column}");
        self.rounding.contains_key(at.as_str()).then_some(())?;
        self.load(name, column)
    }

    /// A figure that was printed.
    pub(super) fn printed(&self, figure: &Figure, at: &str) -> Option<Side> {
        let side = self.side(figure, at);
        side.filter(|_| self.rounding.contains_key(at))
    }

    pub(super) fn io_profile(&self, name: &str) -> Option<[Side; 2]> {
        let rows = &self.record.instance.io_profile;
        let i = rows.iter().position(|row| row.name == name)?;
        let read = self.side(&rows[i].read_per_s, &format!("/instance/io_profile/{i}/read_per_s"))?;
        let write = self.side(&rows[i].write_per_s, &format!("/instance/io_profile/{i}/write_per_s"))?;
        Some([read, write])
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
        let by_stats =
            || Some(self.total(stats::PHYSICAL_READ_BYTES)?.value / self.total(stats::PHYSICAL_READS)?.value);
        let by_load = || {
            let mib = self.load("Read IO (MB)", "per_s")?.value;
            Some(mib * MIB / self.load("Physical read (blocks)", "per_s")?.value)
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
    let rule = Rule::within(id, Scope::Window, text, left.off + right.off + allowed);
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

/// I/O by function: the sum, the total, and the I/O profile.
fn functions(p: &Printed<'_>, all: &mut Vec<Identity>) {
    let sum = |key: &str| {
        let rows = p.record.instance.io_functions.iter();
        rows.filter_map(|row| p.alone(&row.function, key)).reduce(Side::plus)
    };
    for (id, profile, text, with_profile, key, way) in [
        (
            "I13a",
            "I13c",
            "read requests/s by function = TOTAL",
            "read requests/s by function = Total Requests of the I/O profile",
            "iostat_read_requests_per_s",
            0,
        ),
        (
            "I13b",
            "I13d",
            "write requests/s by function = TOTAL",
            "write requests/s by function = Total Requests of the I/O profile",
            "iostat_write_requests_per_s",
            1,
        ),
    ] {
        let part = |side: Option<(Side, Side)>, of: f64| side.map_or(0.0, |(left, _)| of * left.value);
        let sides = sum(key).zip(p.alone("TOTAL", key));
        judge(all, id, text, Must::Equal, sides, part(sides, 0.005));
        let of_profile = p.io_profile("Total Requests").map(|both| both[way]);
        let sides = sum(key).zip(of_profile);
        // Oracle keeps the two in different places, which it does not read together.
        let allowed = if p.is_own() { part(sides, 0.005) } else { part(sides, 0.05) + 2.0 };
        judge(all, profile, with_profile, Must::Equal, sides, allowed);
    }
}

fn events(p: &Printed<'_>, all: &mut Vec<Identity>) {
    let db_time = p.side(&p.record.instance.time_model.db_time_us, "/instance/time_model/db_time_us");
    for (i, event) in p.record.instance.events.iter().enumerate() {
        let at = |column: &str| format!("/instance/events/{i}/{column}");
        let (count, total) = (p.side(&event.count, &at("count")), p.side(&event.total_us, &at("total_us")));
        let has_avg = p.rounding.contains_key(at("avg_us").as_str());
        let placed = p.side(&event.avg_us, &at("avg_us")).filter(|_| has_avg);
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

/// Waits by class, and the statistics that count the same time.
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
    }
    wait_statistics(p, all);
}

/// Statistics that count the time of some events.
fn wait_statistics(p: &Printed<'_>, all: &mut Vec<Identity>) {
    let us = |stat: Stat| Some(p.total(stat)?.times(1e-3));
    // Oracle's statistics count more than the events' time: how long a request took from the first to the last step.
    if p.is_own() {
        log_times(p, all);
    }
    let sides = us(stats::REDO_LOG_SPACE_TIME).zip(p.waited(|row| row.name.starts_with("log file switch")));
    let allowed = sides.map_or(0.0, |(left, _)| 0.01 * left.value + 20_000.0);
    // Oracle's statistic counts other waits for room in the log too.
    let sides = sides.map(|(statistic, events)| (events, statistic));
    let (text, must) = if p.is_own() {
        ("log file switch events = redo log space wait time", Must::Equal)
    } else {
        ("log file switch events <= redo log space wait time", Must::NotAbove)
    };
    judge(all, "I23", text, must, sides, allowed);
    // Oracle counts it in hundredths of a second.
    let user_io = p.record.instance.stats.get("user_i_o_wait_time_count");
    let user_io = user_io.and_then(|row| p.side(&row.total, "")).map(|side| side.times(1e4));
    let sides = user_io.zip(p.waited(|event| event.class == "User I/O"));
    let allowed = sides.map_or(0.0, |(left, _)| 0.01 * left.value + 20_000.0);
    // Reports leave out events of hardly any time, and classes of events that assay does not know.
    let sides = sides.map(|(statistic, events)| (events, statistic));
    judge(all, "I21", "User I/O events <= user I/O wait time", Must::NotAbove, sides, allowed);
}

/// Statistics of the log that are the time of an event.
fn log_times(p: &Printed<'_>, all: &mut Vec<Identity>) {
    let us = |stat: Stat| Some(p.total(stat)?.times(1e-3));
    for (id, text, stat, event) in [
        ("I22a", "redo synch time = log file sync", stats::REDO_SYNCH_TIME, "log file sync"),
        ("I22b", "redo write time = log file parallel write", stats::REDO_WRITE_TIME, "log file parallel write"),
    ] {
        let sides = us(stat).zip(p.waited(|row| row.name == event));
        let allowed = sides.map_or(0.0, |(left, _)| 0.01 * left.value + 20_000.0);
        judge(all, id, text, Must::Equal, sides, allowed);
    }
}

fn times(p: &Printed<'_>, all: &mut Vec<Identity>) {
    let interval = &p.record.interval;
    let begin = p.side(&interval.sessions_begin_count, "/interval/sessions_begin_count");
    let end = p.side(&interval.sessions_end_count, "/interval/sessions_end_count");
    let sessions = begin.zip(end).map(|(a, b)| if a.value > b.value { a } else { b });
    let db_time = p.load("DB Time(s)", "per_s");
    judge(all, "I24", "average active sessions <= sessions", Must::NotAbove, db_time.zip(sessions), 0.0);
    let cpus = p.side(&p.record.os.cpus_count, "/os/cpus_count");
    let db_cpu = p.load("DB CPU(s)", "per_s");
    judge(all, "I25a", "DB CPU per second <= CPUs", Must::NotAbove, db_cpu.zip(cpus), 0.05);
    let model = &p.record.instance.time_model;
    let on_cpu = p.side(&model.db_cpu_us, "/instance/time_model/db_cpu_us");
    let all_time = p.side(&model.db_time_us, "/instance/time_model/db_time_us");
    judge(
        all,
        "I25c",
        "DB CPU <= DB time",
        Must::NotAbove,
        on_cpu.zip(all_time),
        all_time.map_or(0.0, |all| 0.1 * all.value),
    );
    let busy = p.record.os.cpu_pct.get("busy").and_then(|figure| p.side(figure, "/os/cpu_pct/busy"));
    let used = db_cpu.map(|cpu| p.load("Background CPU(s)", "per_s").map_or(cpu, |more| cpu.plus(more)));
    let busy_cpus = busy.zip(cpus).map(|(busy, cpus)| Side { off: 0.1, ..busy }.by(cpus).times(0.01));
    let allowed = busy_cpus.map_or(0.0, |busy| 0.02 * busy.value);
    judge(
        all,
        "I25b",
        "DB CPU + background CPU <= busy CPUs of the host",
        Must::NotAbove,
        used.zip(busy_cpus),
        allowed,
    );
}

/// Shares of CPU time as printed.
fn cpu(p: &Printed<'_>, all: &mut Vec<Identity>) {
    let share = |name: &str| {
        let at = format!("/os/cpu_pct/{name}");
        let is_printed = p.rounding.contains_key(at.as_str());
        let figure = p.record.os.cpu_pct.get(name).filter(|_| is_printed)?;
        p.side(figure, &at)
    };
    let idle =
        share("idle_awr").filter(|_| share("idle").is_none()).or_else(|| Some(share("idle")?.plus(share("iowait")?)));
    let hundred = Side::exact(100.0);
    let sum = || {
        let used = share("user")?.plus(share("system")?).plus(idle?);
        Some(share("steal").map_or(used, |steal| used.plus(steal)))
    };
    // AWR prints no column of nice, of interrupts, of steal: the busy time that is neither user nor system, if the
    // statistics of the operating system stand there too, else a few percent.
    let seconds = |name: &str| p.record.os.cpu_s.get(name).and_then(Figure::value);
    let unprinted = || {
        let (busy, idle) = (seconds("busy")?, seconds("idle_awr")?);
        let other = busy - seconds("user")? - seconds("system")?;
        Some(100.0 * other.max(0.0) / (busy + idle).max(1e-9))
    };
    let missing = if p.is_own() { 0.0 } else { unprinted().unwrap_or(5.0) };
    judge(
        all,
        "I31",
        "CPU columns sum to 100 %",
        Must::NotAbove,
        sum().map(|sum| (Side { off: 0.0, ..sum }, hundred)),
        0.5,
    );
    judge(
        all,
        "I31b",
        "CPU columns, and what has no column, sum to 100 %",
        Must::NotAbove,
        sum().map(|sum| (hundred, Side { off: 0.0, ..sum })),
        0.5 + missing,
    );
    judge(
        all,
        "I32a",
        "I/O wait <= idle time that holds it",
        Must::NotAbove,
        share("iowait").zip(share("idle_awr")),
        0.0,
    );
    let both = || Some(share("busy")?.plus(share("idle_awr")?));
    judge(all, "I32b", "busy + idle (with I/O wait) = 100 %", Must::Equal, both().map(|sum| (sum, hundred)), 0.1);
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
        let rule = Rule::within(id, Scope::Window, text, 0.0);
        let mut identity = rule.compare(Ok(good as f64), Ok(many as f64));
        identity.sentence = match self.first {
            Some(name) => format!("{good} of {many} agree; the first that does not is {name}"),
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

/// A transaction that changes 131 blocks is one SLOB update of 64: its redo is known.
fn update(p: &Printed<'_>, all: &mut Vec<Identity>) {
    let changes = p.load("Block changes", "per_tx");
    if changes.is_none_or(|side| (side.value - 131.0).abs() > 2.0) {
        return;
    }
    let redo = p.load("Redo size (bytes)", "per_tx");
    let standard = Side { value: 51_700.0, off: 0.02 * 51_700.0 };
    let text = "redo of one SLOB update of 64 blocks (131 block changes) = 51.7 KB";
    judge(all, "I34", text, Must::Equal, redo.map(|redo| (redo, standard)), 0.0);
}
