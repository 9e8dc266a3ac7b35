//! The figures of the page: rate, 99th percentile at that rate, and what else a manager asks of this kind of record.

use crate::cost::Delivered;
use crate::sweep::{Place, Step};
use assay_measure::record::{Figure, Record, StorageGroup};
use assay_measure::sample::median;
use assay_measure::units::{fixed, shorten};

/// One line of figures.
pub(super) struct Row {
    /// What it is, at the left.
    pub(super) title: &'static str,
    /// The figures.
    pub(super) text: String,
}

/// Values of an import shown where it has none of the usual figures.
const OTHERS: usize = 6;

fn row(title: &'static str, text: String) -> Row {
    Row { title, text }
}

/// `5,996`, or of repeats `5,996 (5,812 to 6,104)`; what some repeat has not is not there.
fn told(records: &[&Record], of: impl Fn(&Record) -> Option<f64>, unit: &str) -> Option<String> {
    let mut values: Vec<f64> = records.iter().filter_map(|record| of(record)).collect();
    values.sort_by(f64::total_cmp);
    let (least, most) = (values.first()?, values.last()?);
    let median = median(&values)?;
    Some(match records.len() {
        1 => format!("{} {unit}", number(median)),
        _ if values.len() < records.len() => return None,
        _ => format!(
            "{} {unit} ({} to {})",
            number(median),
            number(*least),
            number(*most)
        ),
    })
}

/// Enough digits to tell, none to impress.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        large if large >= 100.0 => 0,
        some if some >= 10.0 => 1,
        _ => 2,
    };
    fixed(value, decimals)
}

/// Every row of a kind of record.
pub(super) fn rows(records: &[&Record]) -> Vec<Row> {
    let Some(first) = records.first() else {
        return Vec::new();
    };
    if first
        .storage
        .as_ref()
        .is_some_and(|info| !info.groups.is_empty())
    {
        return storage(records, first);
    }
    if first.sync.is_some() {
        return sync(records);
    }
    if first.recovery.is_some() {
        return recovery(records);
    }
    workload(records, first)
}

fn workload(records: &[&Record], first: &Record) -> Vec<Row> {
    let delivered =
        |of: fn(&Delivered) -> &Figure| move |record: &Record| of(&Delivered::of(record)).value();
    let rate = [
        told(records, delivered(|found| &found.ops_per_s), "operations/s"),
        told(
            records,
            delivered(|found| &found.transactions_per_s),
            "transactions/s",
        ),
        told(
            records,
            delivered(|found| &found.executes_per_s),
            "executes/s",
        ),
    ];
    // Operations, transactions and executes are often the same thing counted thrice.
    let rate = rate.into_iter().flatten().next();
    let ios = [
        told(records, delivered(|found| &found.reads_per_s), "reads/s"),
        told(records, delivered(|found| &found.writes_per_s), "writes/s"),
        told(records, delivered(|found| &found.mb_per_s), "MB/s (10^6)"),
    ];
    let ios: Vec<String> = ios.into_iter().flatten().collect();
    let mut rows = vec![];
    if rate.is_none() && ios.is_empty() {
        return others(records, first);
    }
    rows.push(row(
        "Rate",
        rate.unwrap_or_else(|| "operations n/a (absent)".to_owned()),
    ));
    if !ios.is_empty() {
        rows.push(row("", ios.join(", ")));
    }
    rows.push(row("p99 at that rate", p99(records)));
    rows
}

/// The 99th percentile of operations, of reads, or why there is none.
fn p99(records: &[&Record]) -> String {
    let op = |record: &Record| Step::of(Place::default(), record).op.p99_us.value();
    let metric = |key: &'static str| {
        move |record: &Record| {
            let metrics = crate::metrics::of(record);
            crate::metrics::find(&metrics, key).and_then(|metric| metric.value.value())
        }
    };
    let parts = [
        told(
            records,
            op,
            "us an operation, from its intended start (client)",
        ),
        told(records, metric("read_us_p99"), "us a single read (engine)"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if !parts.is_empty() {
        return parts.join("; ");
    }
    let average = told(records, metric("read_us_avg"), "us");
    let average = average.map_or_else(String::new, |average| {
        format!("; reads took {average} on average, which says nothing of the slow ones")
    });
    format!("n/a (no distribution of latency is known){average}")
}

fn storage(records: &[&Record], first: &Record) -> Vec<Row> {
    const GROUPS: usize = 4;
    let groups = |record: &Record| record.storage.as_ref().map(|info| info.groups.len());
    let count = groups(first).unwrap_or(0);
    let mut rows = Vec::new();
    for at in 0..count.min(GROUPS) {
        let of = |record: &Record, get: &dyn Fn(&StorageGroup) -> Option<f64>| {
            let group = record.storage.as_ref()?.groups.get(at)?;
            get(group)
        };
        let ways = first.storage.iter().flat_map(|info| &info.groups[at].ways);
        for way in ways.map(|row| row.way.clone()) {
            let on = |get: fn(&assay_measure::record::StorageWay) -> Option<f64>| {
                let way = way.clone();
                move |group: &StorageGroup| {
                    group.ways.iter().find(|row| row.way == way).and_then(get)
                }
            };
            let ios = on(|row| row.ios_per_s.value());
            let mb = on(|row| row.mb_per_s.value());
            let slow = on(|row| row.response.p99_us.value().or(row.lat.p99_us.value()));
            let parts = [
                told(records, |record| of(record, &ios), &format!("{way}s/s")),
                told(records, |record| of(record, &mb), "MB/s (10^6)"),
                told(records, |record| of(record, &slow), "us p99")
                    .or(Some("p99 n/a (too few samples)".to_owned())),
            ];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            let jobs = first
                .storage
                .as_ref()
                .map_or_else(String::new, |info| info.groups[at].jobs.join(", "));
            let lead = if count > 1 {
                format!("{}: ", shorten(&jobs, 30))
            } else {
                String::new()
            };
            let title = if rows.is_empty() { "Rate and p99" } else { "" };
            rows.push(row(title, format!("{lead}{}", parts.join(", "))));
        }
    }
    if count > GROUPS {
        rows.push(row("", format!("and {} more groups", count - GROUPS)));
    }
    rows
}

fn sync(records: &[&Record]) -> Vec<Row> {
    let info = |get: fn(&assay_measure::record::SyncInfo) -> Option<f64>| {
        move |record: &Record| record.sync.as_ref().and_then(get)
    };
    let flush = |get: fn(&assay_measure::record::SyncStep) -> Option<f64>| {
        move |record: &Record| {
            let steps = record.sync.iter().flat_map(|info| &info.steps);
            steps.filter(|step| step.part == "flush").find_map(get)
        }
    };
    let rate = told(
        records,
        flush(|step| step.per_s.value()),
        "durable writes/s by one stream",
    );
    let slow = told(records, flush(|step| step.latency.p99_us.value()), "us");
    let median = told(
        records,
        info(|info| info.f0_us.value()),
        "us, median of one durable 4 KiB write",
    );
    let none = || "n/a (absent)".to_owned();
    vec![
        row("Rate", rate.unwrap_or_else(none)),
        row("p99 at that rate", slow.unwrap_or_else(none)),
        row("F0", median.unwrap_or_else(none)),
    ]
}

fn recovery(records: &[&Record]) -> Vec<Row> {
    let longest = |get: fn(&assay_measure::record::RecoveryStep) -> Option<f64>| {
        move |record: &Record| {
            let steps = record.recovery.iter().flat_map(|info| &info.steps);
            steps.filter_map(get).reduce(f64::max)
        }
    };
    let old = told(
        records,
        longest(|step| step.old_commits_per_s.value()),
        "commits/s before the kill",
    );
    let first = told(
        records,
        longest(|step| step.first_commit_s.value()),
        "s from the restart to the first commit, at the longest",
    );
    let none = || "n/a (absent)".to_owned();
    vec![
        row("Rate", old.unwrap_or_else(none)),
        row("Restart", first.unwrap_or_else(none)),
    ]
}

/// Of an import with other figures than these: the first it has.
fn others(records: &[&Record], first: &Record) -> Vec<Row> {
    let values = first.import.iter().flat_map(|info| &info.values);
    let known = values.filter(|value| value.value.value().is_some());
    let rows: Vec<Row> = known
        .take(OTHERS)
        .enumerate()
        .map(|(at, value)| {
            let scope = if value.scope.is_empty() {
                String::new()
            } else {
                format!("{}: ", value.scope)
            };
            let title = if at == 0 { "Figures" } else { "" };
            row(
                title,
                format!("{scope}{} = {} ({})", value.name, value.printed, value.key),
            )
        })
        .collect();
    if rows.is_empty() || records.is_empty() {
        return vec![row("Rate", "n/a (absent)".to_owned())];
    }
    rows
}
