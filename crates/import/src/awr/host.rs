//! Host and instance CPU, memory, operating system statistics.

use super::Reader;
use super::part::Part;
use crate::draft::{Draft, Reading, step};
use crate::number::{self, Printed};
use crate::text::At;
use assay_measure::plain::slug;
use assay_measure::record::{Figure, GaugeRow};

const MIB: f64 = 1_048_576.0;

/// `Host CPU (CPUs:   16 Cores:    8 Sockets:    2)` and its one row.
pub(super) fn cpu(reader: &mut Reader<'_>, part: &Part<'_>) {
    if let Some((cpus, at)) = super::events::after(std::slice::from_ref(part.heading), "CPUs:") {
        cpus_count(reader.draft, at, &cpus.text);
    }
    for table in part.tables(0, 2).iter() {
        let titles = table.ruler.columns.iter().map(|column| share(&column.title));
        let titles: Vec<Option<&str>> = titles.collect();
        reader.table(table, "the host's CPU");
        let Some(row) = table.rows.first() else {
            continue;
        };
        let mut cells: Vec<(&str, Printed)> = Vec::new();
        for (title, cell) in titles.iter().zip(&row.cells) {
            if let (Some(title), Some(printed)) = (title, number::measure(cell)) {
                cells.push((title, printed));
            }
        }
        shares(reader, row.at, &cells);
    }
}

/// What a column of the host's CPU holds.
fn share(title: &str) -> Option<&'static str> {
    let known = [
        ("begin", "begin"),
        ("end", "end"),
        ("wcpu", ""),
        ("wio)", "idle_awr"),
        ("user", "user"),
        ("system", "system"),
        ("wio", "wio"),
        ("steal", "steal"),
        ("idle", "idle"),
        ("busy", "busy"),
        ("cpus", "cpus"),
    ];
    let (_, key) = known.iter().find(|(word, _)| title.contains(word))?;
    (!key.is_empty()).then_some(*key)
}

fn cpus_count(draft: &mut Draft, at: At, text: &str) {
    if let Some(printed) = number::count(text) {
        let reading = Reading::new(at, "cpus_count", printed).name("CPUs").again();
        put!(draft, reading, os.cpus_count);
    }
}

/// Puts the shares where they belong. AWR's idle holds the wait for I/O, other tools' does not: what adds up to 100 says which it is.
fn shares(reader: &mut Reader<'_>, at: At, cells: &[(&str, Printed)]) {
    let of = |name: &str| {
        let cell = cells.iter().find(|(title, _)| *title == name);
        cell.and_then(|(_, printed)| printed.number())
    };
    let (user, system, wio, idle) = (of("user"), of("system"), of("wio"), of("idle"));
    let sum = user.unwrap_or(0.0) + system.unwrap_or(0.0) + idle.unwrap_or(0.0);
    let has_steal = of("steal").is_some();
    let idle_holds_wio = !has_steal && wio.is_some_and(|wio| (sum - 100.0).abs() <= (sum + wio - 100.0).abs());
    for (title, printed) in cells {
        let draft = &mut *reader.draft;
        let printed = printed.clone();
        let key = match *title {
            "cpus" => {
                cpus_count(draft, at, &printed.text);
                continue;
            }
            "begin" => {
                load(&mut draft.record.os.load_begin);
                let reading = Reading::new(at, "load_begin_count", printed).again();
                put!(draft, reading, os.load_begin[0]);
                continue;
            }
            "end" => {
                load(&mut draft.record.os.load_end);
                let reading = Reading::new(at, "load_end_count", printed).again();
                put!(draft, reading, os.load_end[0]);
                continue;
            }
            "wio" => "iowait",
            "idle" if idle_holds_wio => "idle_awr",
            other => other,
        };
        let reading = Reading::new(at, format!("host_cpu_{key}_pct"), printed);
        pct(draft, reading, key);
    }
}

fn load(list: &mut Vec<Figure>) {
    if list.is_empty() {
        list.push(Figure::default());
    }
}

fn pct(draft: &mut Draft, reading: Reading, key: &str) {
    let base = format!("/os/cpu_pct/{}", step(key));
    if let Some(figure) = draft.keep(reading, base) {
        draft.record.os.cpu_pct.insert(key.to_owned(), figure);
    }
}

/// Titles of the instance's CPU in HTML, and the labels of the text.
const INSTANCE: [(&str, &str); 3] = [
    ("%total cpu", "% of total CPU for Instance"),
    ("%busy cpu", "% of busy CPU for Instance"),
    ("%db time waiting", "%DB time waiting for CPU - Resource Mgr"),
];

/// `Instance CPU`: labels and shares.
pub(super) fn instance(reader: &mut Reader<'_>, part: &Part<'_>) {
    let mut found: Vec<(At, String, Printed)> = Vec::new();
    for labelled in part.labelled() {
        if let [printed] = labelled.numbers.as_slice() {
            found.push((labelled.at, labelled.label, printed.clone()));
        }
    }
    if let Some((table, row)) = part.grid().and_then(|t| Some((t, t.rows.first()?))) {
        for (column, cell) in table.ruler.columns.iter().zip(&row.cells) {
            let label = INSTANCE.iter().find(|(title, _)| column.title.starts_with(title));
            if let (Some((_, label)), Some(printed)) = (label, number::measure(cell)) {
                found.push((row.at, (*label).to_owned(), printed));
            }
        }
    }
    for (at, name, printed) in found {
        let unit = if name.contains('%') { "_pct" } else { "" };
        let key = format!("instance_cpu_{}{unit}", slug(&name));
        let reading = Reading::new(at, key, printed).name(&name);
        reader.draft.alone(reading);
    }
}

/// `Memory Statistics`: begin and end.
pub(super) fn memory(reader: &mut Reader<'_>, part: &Part<'_>) {
    let titles = part.label_titles();
    let place = |word: &str| titles.iter().position(|title| title == word);
    if place("begin").zip(place("end")).is_none_or(|(b, e)| b > e) {
        return;
    }
    for labelled in part.labelled() {
        let [begin, end] = labelled.numbers.as_slice() else {
            continue;
        };
        let (name, at) = (labelled.label.as_str(), labelled.at);
        let name = name.trim();
        let Some(bare) = name.strip_suffix("(MB)").map(str::trim) else {
            for (when, printed) in [("begin", begin), ("end", end)] {
                let key = format!("memory_{}_{when}_pct", slug(name));
                reader.draft.alone(Reading::new(at, key, printed.clone()).name(name));
            }
            continue;
        };
        let key = match bare {
            "Host Mem" => "total".to_owned(),
            other => slug(other),
        };
        let draft = &mut *reader.draft;
        let base = format!("/os/memory_bytes/{}", step(&key));
        let reading = |when: &str, printed: &Printed| {
            let printed = printed.clone().scaled(MIB);
            Reading::new(at, format!("memory_{key}_{when}_bytes"), printed).name(name)
        };
        draft.record.os.memory_bytes.entry(key.clone()).or_default();
        put_in!(draft, reading("begin", begin), base, gauge(draft, &key), begin);
        put_in!(draft, reading("end", end), base, gauge(draft, &key), end);
    }
}

fn gauge<'a>(draft: &'a mut Draft, key: &str) -> &'a mut GaugeRow {
    draft.record.os.memory_bytes.entry(key.to_owned()).or_default()
}

/// Oracle's times of the host, hundredths of a second, by the columns of our record.
const TIMES: [(&str, &str); 6] = [
    ("USER_TIME", "user"),
    ("NICE_TIME", "nice"),
    ("SYS_TIME", "system"),
    ("IOWAIT_TIME", "iowait"),
    ("IDLE_TIME", "idle_awr"),
    ("BUSY_TIME", "busy"),
];

/// `Operating System Statistics`.
pub(super) fn statistics(reader: &mut Reader<'_>, part: &Part<'_>) {
    for table in part.tables(1, 1).iter() {
        let value = table.ruler.titled("value").or(table.ruler.titled("total"));
        let end_value = table.ruler.find(&["end value"], &[]);
        let Some(value) = value else {
            continue;
        };
        for row in &table.rows {
            let name = row.cells[0].trim();
            let cell = row.cells.get(value).map_or("", String::as_str);
            let Some(printed) = number::count(cell) else {
                continue;
            };
            let time = TIMES.iter().find(|(theirs, _)| *theirs == name);
            let ours = name.strip_prefix("CPU ").and_then(|rest| rest.strip_suffix(" (s)"));
            match (time, ours, name) {
                (Some((_, column)), ..) => cpu_s(reader.draft, row.at, column, printed.scaled(0.01)),
                (_, Some(column), _) => cpu_s(reader.draft, row.at, column, number::measure(cell).unwrap_or(printed)),
                (_, _, "NUM_CPUS") => cpus_count(reader.draft, row.at, cell),
                (_, _, "LOAD") => {
                    let end = end_value.and_then(|i| number::measure(row.cells.get(i)?));
                    let begin = number::measure(cell);
                    for (when, printed) in [("begin", begin), ("end", end)] {
                        if let Some(printed) = printed {
                            let key = format!("os_load_{when}_count");
                            reader.draft.alone(Reading::new(row.at, key, printed).name(name));
                        }
                    }
                }
                _ if name.is_empty() => {}
                _ => {
                    let unit = if name.ends_with("BYTES") { "" } else { "_count" };
                    let key = format!("os_{}{unit}", slug(name));
                    reader.draft.alone(Reading::new(row.at, key, printed).name(name));
                }
            }
        }
    }
}

fn cpu_s(draft: &mut Draft, at: At, column: &str, printed: Printed) {
    let base = format!("/os/cpu_s/{}", step(column));
    let reading = Reading::new(at, format!("host_cpu_{column}_s"), printed);
    if let Some(figure) = draft.keep(reading, base) {
        draft.record.os.cpu_s.insert(column.to_owned(), figure);
    }
}
