//! What the load profile and the tables of waits say again of statistics, of the time model and of the I/O profile.

use super::{MIB, Must, Printed, Side, Tally, judge, judge_of};
use assay_measure::record::{Figure, Identity};
use assay_measure::stats::{self, Stat};

pub(super) fn identities(p: &Printed<'_>, all: &mut Vec<Identity>) {
    totals(p, all);
    times(p, all);
    each(p, all);
    io_profile(p, all);
    classes(p, all);
}

/// Rows of the load profile, the statistic that counts the same, and how many of it are one of the row.
const ROWS: [(&str, Stat, f64); 13] = [
    ("Redo size (bytes)", stats::REDO_SIZE, 1.0),
    ("Logical read (blocks)", stats::SESSION_LOGICAL_READS, 1.0),
    ("Block changes", stats::DB_BLOCK_CHANGES, 1.0),
    ("Physical read (blocks)", stats::PHYSICAL_READS, 1.0),
    ("Physical write (blocks)", stats::PHYSICAL_WRITES, 1.0),
    ("Read IO requests", stats::PHYSICAL_READ_REQUESTS, 1.0),
    ("Write IO requests", stats::PHYSICAL_WRITE_REQUESTS, 1.0),
    ("Read IO (MB)", stats::PHYSICAL_READ_BYTES, MIB),
    ("Write IO (MB)", stats::PHYSICAL_WRITE_BYTES, MIB),
    ("User calls", stats::USER_CALLS, 1.0),
    ("Executes (SQL)", stats::EXECUTE_COUNT, 1.0),
    ("Logons", stats::LOGONS, 1.0),
    ("Rollbacks", stats::USER_ROLLBACKS, 1.0),
];

/// What a printed rate per second comes to over the window.
fn over_window(p: &Printed<'_>, name: &str) -> Option<Side> {
    let rate = p.printed_load(name, "per_s")?.twice_rounded();
    let elapsed = p.elapsed()?;
    Some(rate.by(Side { off: elapsed.off + 0.01, ..elapsed }))
}

/// AWR8.
fn totals(p: &Printed<'_>, all: &mut Vec<Identity>) {
    let mut tally = Tally::default();
    for (name, stat, unit) in ROWS {
        let total = p.total(stat).map(|total| total.times(1.0 / unit));
        if let Some((product, total)) = over_window(p, name).zip(total) {
            let off = product.off + total.off;
            tally.count(name, (product.value - total.value).abs() <= off);
        }
    }
    let text = "load profile per second x elapsed time = total of the statistic, of every row";
    tally.judge(all, "AWR8", text);
}

/// AWR9: time in the load profile, in the time model, among the top events.
fn times(p: &Printed<'_>, all: &mut Vec<Identity>) {
    let model = &p.record.instance.time_model;
    let of_model = |figure: &Figure, key: &str| {
        let side = p.printed(figure, &format!("/instance/time_model/{key}"))?;
        Some(side.times(1e-6))
    };
    let db_time = of_model(&model.db_time_us, "db_time_us");
    let db_cpu = of_model(&model.db_cpu_us, "db_cpu_us");
    let bg_cpu = of_model(&model.bg_cpu_us, "bg_cpu_us");
    for (id, name, text, side) in [
        ("AWR9a", "DB Time(s)", "DB Time(s) per second x elapsed time = DB time, s", db_time),
        ("AWR9b", "DB CPU(s)", "DB CPU(s) per second x elapsed time = DB CPU, s", db_cpu),
        ("AWR9c", "Background CPU(s)", "Background CPU(s) per second x elapsed time = background cpu time, s", bg_cpu),
    ] {
        let sides = over_window(p, name).zip(side);
        judge(all, id, text, Must::Equal, sides, 0.0);
    }
    let by_share = || Some(p.alone("", "db_cpu_db_time_pct")?.times(0.01).by(db_time?));
    let text = "% DB time of DB CPU x DB time = DB CPU, s";
    judge(all, "AWR9d", text, Must::Equal, by_share().zip(db_cpu), 0.0);
}

/// AWR10: time of an execution and of a call.
fn each(p: &Printed<'_>, all: &mut Vec<Identity>) {
    for (column, of, text) in [
        ("per_exec", "Executes (SQL)", "per execution x executions per second = per second"),
        ("per_call", "User calls", "per call x calls per second = per second"),
    ] {
        let count = p.printed_load(of, "per_s").map(Side::twice_rounded);
        // Background time is of no execution: genuine reports print 0 there.
        for name in ["DB Time(s)", "DB CPU(s)"] {
            let each = p.printed_load(name, column).map(Side::twice_rounded);
            let product = each.zip(count).map(|(each, count)| each.by(count));
            let rate = p.printed_load(name, "per_s").map(Side::twice_rounded);
            let sides = product.zip(rate);
            judge_of(all, name, "AWR10", text, Must::Equal, sides, 0.0);
        }
    }
}

/// AWR11: the data's part of the I/O profile is in the load profile too.
fn io_profile(p: &Printed<'_>, all: &mut Vec<Identity>) {
    for (profile, loads) in [
        ("Database Requests", ["Read IO requests", "Write IO requests"]),
        ("Database (MB)", ["Read IO (MB)", "Write IO (MB)"]),
        ("Database (blocks)", ["Physical read (blocks)", "Physical write (blocks)"]),
    ] {
        let Some(both) = p.io_profile(profile) else {
            continue;
        };
        for (way, load) in both.into_iter().zip(loads) {
            let sides = p.printed_load(load, "per_s").map(|load| (way, load));
            let sides = sides.map(|(a, b)| (a.twice_rounded(), b.twice_rounded()));
            let text = "I/O profile, per second = load profile";
            let name = format!("{profile}, {load}");
            judge_of(all, &name, "AWR11", text, Must::Equal, sides, 0.0);
        }
    }
}

/// AWR12: time of a class by its waits, and by its share.
fn classes(p: &Printed<'_>, all: &mut Vec<Identity>) {
    let model = &p.record.instance.time_model;
    let db_time = p.printed(&model.db_time_us, "/instance/time_model/db_time_us");
    for (i, class) in p.record.instance.wait_classes.iter().enumerate() {
        let of = |figure: &Figure, column: &str| p.printed(figure, &format!("/instance/wait_classes/{i}/{column}"));
        let total = of(&class.total_us, "total_us");
        let waited = || Some(of(&class.waits_count, "waits_count")?.by(of(&class.avg_us, "avg_us")?));
        let shared = || Some(of(&class.db_time_pct, "db_time_pct")?.times(0.01).by(db_time?));
        for (id, text, side) in [
            ("AWR12a", "waits x average = total wait time, us", waited()),
            ("AWR12b", "% DB time x DB time = total wait time, us", shared()),
        ] {
            judge_of(all, &class.class, id, text, Must::Equal, side.zip(total), 0.0);
        }
    }
    classes_of_both(p, all);
}

/// AWR12a of classes that foreground and background share in one row.
fn classes_of_both(p: &Printed<'_>, all: &mut Vec<Identity>) {
    const SCOPE: &str = "wait class, foreground and background";
    let values = p.record.import.iter().flat_map(|info| &info.values);
    for value in values.filter(|value| value.scope == SCOPE) {
        let Some(stem) = value.key.strip_suffix("_waits_count") else {
            continue;
        };
        let of = |column: &str| p.alone(SCOPE, &format!("{stem}_{column}"));
        let waited = || Some(of("waits_count")?.by(of("us_avg")?));
        let text = "waits x average = total wait time of foreground and background, us";
        let sides = waited().zip(of("total_us"));
        judge_of(all, &value.name, "AWR12a", text, Must::Equal, sides, 0.0);
    }
}
