//! Instance activity statistics: name, total, per second, per transaction.

use super::Reader;
use super::part::Part;
use crate::draft::{Reading, step};
use crate::number::{self, Printed};
use crate::text::{At, Line};
use assay_measure::counter_catalog::{DICTIONARY, Stat, Unit};
use assay_measure::plain::slug;
use assay_measure::record::{Figure, StatRow};
use std::collections::{BTreeMap, BTreeSet};

/// A row by its columns.
#[derive(Clone, Debug)]
pub(super) struct Row {
    at: At,
    name: String,
    total: Printed,
    per_s: Option<Printed>,
    per_tx: Option<Printed>,
    per_op: Option<Printed>,
    /// Its name is printed whole.
    is_whole: bool,
}

/// A line without titles: the name and the numbers behind it.
struct Loose<'a> {
    name: &'a str,
    numbers: Vec<Printed>,
}

/// Splits `physical reads   1,705,458   5,625.4   23.6`: two to four numbers at the end, a name before them.
fn split(line: &str) -> Option<Loose<'_>> {
    let mut rest = line.trim();
    let mut numbers = Vec::new();
    while numbers.len() < 5 {
        let Some((before, last)) = rest.rsplit_once(' ') else {
            break;
        };
        let Some(printed) = number::measure(last) else {
            break;
        };
        numbers.push(printed);
        rest = before.trim_end();
    }
    if numbers.len() < 2 || !rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    numbers.reverse();
    Some(Loose { name: rest, numbers })
}

/// A total: exact where it is whole.
fn whole(printed: &Printed) -> Printed {
    number::count(&printed.text).unwrap_or_else(|| printed.clone())
}

/// The statistic a printed name stands for: itself, or the only one that begins so where the name was cut.
fn statistic(printed: &str) -> Option<&'static Stat> {
    let exact = DICTIONARY.iter().find(|stat| stat.name == printed);
    exact.or_else(|| {
        let mut longer = DICTIONARY.iter().filter(|stat| stat.name.starts_with(printed));
        let only = longer.next()?;
        (printed.len() >= 25 && longer.next().is_none()).then_some(only)
    })
}

/// Whether a line without its heading is one of these statistics.
pub(super) fn is_row(line: &str) -> bool {
    split(line).is_some_and(|row| row.numbers.len() == 3 && statistic(row.name).is_some())
}

/// What a column holds.
#[derive(Clone, Copy, PartialEq)]
enum Column {
    Total,
    Second,
    Transaction,
    Op,
    Hour,
    Begin,
    End,
}

fn column(title: &str) -> Option<Column> {
    // Of a cluster's instances, beside the rate of the cluster.
    let of_instances = ["average", "std dev", "min", "max"];
    match title {
        title if of_instances.iter().any(|word| title.ends_with(word)) => None,
        title if title.contains("begin") => Some(Column::Begin),
        title if title.contains("end") => Some(Column::End),
        title if title.contains("per hour") => Some(Column::Hour),
        title if title.contains("per second") || title.contains("/s") => Some(Column::Second),
        title if title.contains("per trans") || title.contains("/tx") => Some(Column::Transaction),
        title if title.contains("per op") => Some(Column::Op),
        title if title.ends_with("total") => Some(Column::Total),
        _ => None,
    }
}

/// `Instance Activity Stats` and its kin: totals and rates, values at begin and end, log switches by the hour.
pub(super) fn read(reader: &mut Reader<'_>, part: &Part<'_>) {
    let tables = part.tables(1, if reader.is_assay { 1 } else { 2 });
    if tables.is_empty() {
        loose(reader, part.lines);
    }
    for table in tables.iter() {
        let titles = table.ruler.columns.iter().map(|c| c.title.clone());
        let titles: Vec<String> = titles.collect();
        // The first column is the name, whatever it is called; the last of our own is where a figure is from.
        let mut columns: Vec<Option<Column>> = titles.iter().map(|title| column(title)).collect();
        if let Some(name) = columns.first_mut() {
            *name = None;
        }
        reader.table(table, "a statistic");
        if !reader.are_known(part.heading.at, &titles, &columns, "the statistics") {
            continue;
        }
        for row in &table.rows {
            let of = |wanted| {
                let i = columns.iter().position(|column| *column == Some(wanted))?;
                number::measure(row.cells.get(i)?)
            };
            let name = row.cells[0].trim();
            if let (Some(begin), Some(end)) = (of(Column::Begin), of(Column::End)) {
                gauges(reader, row.at, name, [&begin, &end]);
            }
            let Some(total) = of(Column::Total) else {
                continue;
            };
            let is_derived = of(Column::Hour).is_some();
            let name = match name {
                "log switches (derived)" => "redo log switches",
                name => name,
            };
            if name.is_empty() || is_derived && name != "redo log switches" {
                continue;
            }
            reader.statistics.push(Row {
                at: row.at,
                name: name.to_owned(),
                total: whole(&total),
                per_s: of(Column::Second),
                per_tx: of(Column::Transaction),
                per_op: of(Column::Op),
                is_whole: part.grid().is_some() || reader.is_assay,
            });
        }
    }
}

/// Statistics pasted without their titles: total, per second, per transaction, if that is what their numbers are. Then
/// totals over rates are one time, and rates over each other one rate of transactions, whatever row they are of.
pub(super) fn loose(reader: &mut Reader<'_>, lines: &[Line]) {
    let rows = lines.iter().filter_map(|line| Some((line, split(&line.text)?)));
    let rows: Vec<(&Line, Loose<'_>)> = rows.filter(|(_, row)| row.numbers.len() == 3).collect();
    let Some((first, _)) = rows.first() else {
        return;
    };
    if !is_one_ratio(&rows, 0, 1) || !is_one_ratio(&rows, 1, 2) {
        reader.draft.note(
            first.at,
            "these statistics have no titles, and their numbers are not total, per second and per transaction of one \
             run: not read; import them with their titles",
        );
        return;
    }
    for (line, row) in rows {
        let [total, per_s, per_tx] = row.numbers.as_slice() else {
            continue;
        };
        reader.statistics.push(Row {
            at: line.at,
            name: row.name.to_owned(),
            total: whole(total),
            per_s: Some(per_s.clone()),
            per_tx: Some(per_tx.clone()),
            per_op: None,
            is_whole: false,
        });
    }
}

/// Whether one column over another is the same in every row, within the rounding.
fn is_one_ratio(rows: &[(&Line, Loose<'_>)], over: usize, under: usize) -> bool {
    let (mut low, mut high) = (0.0_f64, f64::INFINITY);
    for (_, row) in rows {
        let (Some(a), Some(b)) = (row.numbers[over].number(), row.numbers[under].number()) else {
            continue;
        };
        // Twice rounded, see I26.
        let (of_a, of_b) = (1.1 * row.numbers[over].rounding, 1.1 * row.numbers[under].rounding);
        if a <= 0.0 || b <= 0.0 {
            continue;
        }
        low = low.max((a - of_a) / (b + of_b));
        if b > of_b {
            high = high.min((a + of_a) / (b - of_b));
        }
    }
    low <= high
}

/// Values at begin and end.
fn gauges(reader: &mut Reader<'_>, at: At, name: &str, [begin, end]: [&Printed; 2]) {
    let draft = &mut *reader.draft;
    let base = format!("/instance/gauges/{}", step(name));
    let reading = |when: &str, printed: &Printed| {
        let key = format!("{}_{when}_count", slug(name));
        Reading::new(at, key, whole(printed)).name(name).scope("absolute")
    };
    put_in!(draft, reading("begin", begin), base, gauge(draft, name), begin);
    put_in!(draft, reading("end", end), base, gauge(draft, name), end);
}

fn gauge<'a>(draft: &'a mut crate::draft::Draft, name: &str) -> &'a mut assay_measure::record::GaugeRow {
    draft.record.instance.gauges.entry(name.to_owned()).or_default()
}

/// Names that Oracle's columns cut to the same letters, in the order in which it prints them: until 11.2, and since.
const CUT_ALIKE: [(&str, [&str; 5], [&str; 5]); 1] = [(
    "redo synch time overhead count (",
    [
        "redo synch time overhead count (<128 msec)",
        "redo synch time overhead count (<2 msec)",
        "redo synch time overhead count (<32 msec)",
        "redo synch time overhead count (<8 msec)",
        "redo synch time overhead count (>=128 msec)",
    ],
    [
        "redo synch time overhead count (  2ms)",
        "redo synch time overhead count (  8ms)",
        "redo synch time overhead count ( 32ms)",
        "redo synch time overhead count (128ms)",
        "redo synch time overhead count (inf)",
    ],
)];

/// Shortest width at which reports cut names of statistics.
const CUT_FROM: usize = 30;

/// The names that a cut one may stand for, in a report of this release.
fn alike_of(name: &str, release: &str) -> Option<&'static [&'static str]> {
    // A column may be wider than the letters that are the same.
    let is_cut = |cut: &str| name.len() >= CUT_FROM && (cut.starts_with(name) || name.starts_with(cut));
    let (_, old, new) = CUT_ALIKE.iter().find(|(cut, ..)| is_cut(cut))?;
    if release.starts_with("10.") || release.starts_with("11.") { Some(old) } else { Some(new) }
}

/// Those of the names that a row's may be the beginning of.
fn fitting(names: &[&'static str], row: &Row) -> Vec<&'static str> {
    let is_it = |name: &&&str| name.starts_with(&row.name);
    names.iter().filter(is_it).copied().collect()
}

/// Takes what was read of statistics: names that were cut to the same letters are told apart, or left out.
pub(super) fn finish(reader: &mut Reader<'_>) {
    let rows = std::mem::take(&mut reader.statistics);
    let release = reader.release.clone();
    let names: BTreeSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    let fine: BTreeSet<&str> = ["redo synch time", "redo write time"]
        .into_iter()
        .filter(|name| names.contains(format!("{name} (usec)").as_str()))
        .collect();
    let mut alike: BTreeMap<(u64, &str), Vec<&Row>> = BTreeMap::new();
    for row in &rows {
        let of_name = alike.entry((row.at.file, row.name.as_str())).or_default();
        // Key statistics stand in the whole list once more.
        let is_again = of_name.iter().any(|known| known.total == row.total);
        if !is_again || alike_of(&row.name, &release).is_some() {
            of_name.push(row);
        }
    }
    for row in &rows {
        let of_name = &alike[&(row.at.file, row.name.as_str())];
        let is_cut = !row.is_whole && row.name.len() >= CUT_FROM && of_name.len() > 1;
        if !is_cut {
            if fine.contains(row.name.as_str()) {
                coarse(reader, row)
            } else {
                keep(reader, row)
            }
            continue;
        }
        let place = of_name.iter().position(|other| other.at == row.at);
        match (alike_of(&row.name, &release), place) {
            (Some(names), Some(place)) if fitting(names, row).len() == of_name.len() => {
                let name = fitting(names, row)[place].to_owned();
                keep(reader, &Row { name, ..row.clone() });
            }
            (_, Some(0)) => reader.draft.note(
                row.at,
                format!(
                    "{} statistics are cut to {:?}, the column's width: the names are ambiguous; omitted",
                    of_name.len(),
                    row.name
                ),
            ),
            _ => {}
        }
    }
}

/// The total of a time in hundredths of a second beside which the same stands in us.
fn coarse(reader: &mut Reader<'_>, row: &Row) {
    let key = format!("{}_cs", slug(&row.name));
    let reading = Reading::new(row.at, key, row.total.clone()).name(&row.name);
    reader.draft.alone(reading);
}

/// The unit a statistic is kept in, and what one printed is of it.
fn unit_of(stat: Option<&Stat>, is_in_us: bool) -> (&'static str, f64) {
    match stat.map(|stat| stat.unit) {
        Some(Unit::Blocks) => ("blocks", 1.0),
        Some(Unit::Bytes) => ("bytes", 1.0),
        Some(Unit::Ns) if is_in_us => ("ns", 1e3),
        // Oracle counts the times of this list in hundredths of a second.
        Some(Unit::Ns) => ("ns", 1e7),
        _ => ("count", 1.0),
    }
}

/// Under what a statistic is kept.
struct Kept<'a> {
    key: String,
    name: &'a str,
    unit: &'static str,
    factor: f64,
    is_in_us: bool,
}

fn kept(row: &Row) -> Kept<'_> {
    // Our own report prints times in us and says so; Oracle's newer names do so too.
    let in_us = [" (us)", " (usec)"].iter().find_map(|unit| row.name.strip_suffix(unit));
    let name = in_us.unwrap_or(&row.name);
    let stat = if row.is_whole { DICTIONARY.iter().find(|stat| stat.name == name) } else { statistic(name) };
    let name = stat.map_or(row.name.as_str(), |stat| stat.name);
    let (unit, factor) = unit_of(stat, in_us.is_some());
    // Bounds are part of a name.
    let bounded = || name.replace(">=", "from ").replace('<', "below ");
    let key = stat.map_or_else(|| format!("{}_count", slug(&bounded())), |s| s.key.to_owned());
    Kept { key, name, unit, factor, is_in_us: in_us.is_some() }
}

fn keep(reader: &mut Reader<'_>, row: &Row) {
    let Kept { key, name, unit, factor, is_in_us } = kept(row);
    let draft = &mut *reader.draft;
    draft.record.instance.stats.entry(key.clone()).or_insert_with(|| StatRow {
        name: name.to_owned(),
        unit: unit.to_owned(),
        source: "sysstat".to_owned(),
        ..StatRow::default()
    });
    // A time in us may have been measured finer than that.
    let total = if is_in_us {
        number::measure(&row.total.text).unwrap_or_else(|| row.total.clone())
    } else {
        row.total.clone()
    };
    let base = format!("/instance/stats/{}", step(&key));
    let reading = |column: &str, printed: Printed| {
        let key = format!("{key}{column}");
        Reading::new(row.at, key, printed.scaled(factor)).name(name)
    };
    put_in!(draft, reading("_total", total), base, stat_row(draft, &key), total);
    if let Some(printed) = row.per_s.clone() {
        put_in!(draft, reading("_per_s", printed), base, stat_row(draft, &key), per_s);
    }
    if let Some(printed) = row.per_tx.clone() {
        put_in!(draft, reading("_per_tx", printed), base, stat_row(draft, &key), per_tx);
    }
    if let Some(printed) = row.per_op.clone() {
        put_in!(draft, reading("_per_op", printed), base, stat_row(draft, &key), per_op);
    }
    let stat = stat_row(draft, &key);
    also(&mut stat.per_s, row.per_s.as_ref(), factor);
    also(&mut stat.per_tx, row.per_tx.as_ref(), factor);
}

/// A figure that the load profile prints too, under the same key, stands in both places.
fn also(figure: &mut Figure, printed: Option<&Printed>, factor: f64) {
    if let (true, Some(printed)) = (*figure == Figure::default(), printed) {
        *figure = printed.value.scaled(factor);
    }
}

fn stat_row<'a>(draft: &'a mut crate::draft::Draft, key: &str) -> &'a mut StatRow {
    draft.record.instance.stats.entry(key.to_owned()).or_default()
}
