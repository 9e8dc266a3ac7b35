//! Host and instance CPU, memory, operating system statistics.

use super::Reader;
use super::table::{is_ruler, tables};
use crate::draft::{Draft, Reading, step};
use crate::number::{self, Printed};
use crate::text::{At, Line};
use assay_measure::plain::slug;
use assay_measure::record::{Figure, GaugeRow};

const MIB: f64 = 1_048_576.0;

/// `Host CPU (CPUs:   16 Cores:    8 Sockets:    2)` and its one row.
pub(super) fn cpu(reader: &mut Reader<'_>, heading: &Line, lines: &[Line]) {
    if let Some((cpus, at)) = super::events::after(std::slice::from_ref(heading), "CPUs:") {
        cpus_count(reader.draft, at, &cpus.text);
    }
    let words = |line: &Line| -> Vec<Printed> {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let numbers: Vec<Printed> = words
            .iter()
            .filter_map(|word| number::measure(word))
            .collect();
        if numbers.len() == words.len() {
            numbers
        } else {
            Vec::new()
        }
    };
    let ruler = lines.iter().position(|line| is_ruler(&line.text));
    let first = ruler.map_or(0, |i| i + 1);
    let row = lines[first..].iter().find(|line| words(line).len() >= 4);
    let Some(row) = row else {
        return;
    };
    let titles: String = lines[..first]
        .iter()
        .map(|line| line.text.to_ascii_lowercase() + " ")
        .collect();
    let titles = titles
        .replace("%idle (with wio)", "%idle_awr")
        .replace("load begin", "begin")
        .replace("load end", "end")
        .replace("load average", "");
    let known = [
        "cpus",
        "begin",
        "end",
        "%user",
        "user",
        "%system",
        "system",
        "%wio",
        "wio",
        "%steal",
        "%idle",
        "idle",
        "%busy",
        "%idle_awr",
    ];
    let order: Vec<&str> = titles
        .split_whitespace()
        .filter(|word| known.contains(word))
        .collect();
    let numbers = words(row);
    // Statspack's last column is not always filled.
    if numbers.len() < order.len() || numbers.len() > order.len() + 1 {
        reader.unread(row, "the host's CPU: its titles and numbers do not match");
        return;
    }
    let cells: Vec<(&str, Printed)> = order.into_iter().zip(numbers).collect();
    shares(reader, row.at, &cells);
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
        let bare = |title: &str| title.trim_start_matches('%') == name;
        let cell = cells.iter().find(|(title, _)| bare(title));
        cell.and_then(|(_, printed)| printed.number())
    };
    let (user, system, wio, idle) = (of("user"), of("system"), of("wio"), of("idle"));
    let sum = user.unwrap_or(0.0) + system.unwrap_or(0.0) + idle.unwrap_or(0.0);
    let has_steal = of("steal").is_some();
    let idle_holds_wio =
        !has_steal && wio.is_some_and(|wio| (sum - 100.0).abs() <= (sum + wio - 100.0).abs());
    for (title, printed) in cells {
        let draft = &mut *reader.draft;
        let printed = printed.clone();
        let key = match title.trim_start_matches('%') {
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

/// `Instance CPU`: labels and shares; our own report has two pairs on a line.
pub(super) fn instance(reader: &mut Reader<'_>, _heading: &Line, lines: &[Line]) {
    for line in lines {
        let Some((name, rest)) = line.text.split_once(':') else {
            continue;
        };
        let words: Vec<&str> = rest.split_whitespace().collect();
        let ([word] | [word, _]) = words.as_slice() else {
            continue;
        };
        if let Some(printed) = number::measure(word) {
            let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
            let unit = if name.contains('%') { "_pct" } else { "" };
            let key = format!("instance_cpu_{}{unit}", slug(&name));
            reader
                .draft
                .alone(Reading::new(line.at, key, printed).name(&name));
        }
    }
}

/// `Memory Statistics`: begin and end.
pub(super) fn memory(reader: &mut Reader<'_>, _heading: &Line, lines: &[Line]) {
    for line in lines {
        let Some((name, rest)) = line.text.split_once(':') else {
            continue;
        };
        let numbers: Vec<Printed> = rest
            .split_whitespace()
            .filter_map(number::measure)
            .collect();
        let [begin, end] = numbers.as_slice() else {
            continue;
        };
        let name = name.trim();
        let Some(bare) = name.strip_suffix("(MB)").map(str::trim) else {
            for (when, printed) in [("begin", begin), ("end", end)] {
                let key = format!("memory_{}_{when}_pct", slug(name));
                reader
                    .draft
                    .alone(Reading::new(line.at, key, printed.clone()).name(name));
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
            Reading::new(line.at, format!("memory_{key}_{when}_bytes"), printed).name(name)
        };
        draft.record.os.memory_bytes.entry(key.clone()).or_default();
        put_in!(
            draft,
            reading("begin", begin),
            base,
            gauge(draft, &key),
            begin
        );
        put_in!(draft, reading("end", end), base, gauge(draft, &key), end);
    }
}

fn gauge<'a>(draft: &'a mut Draft, key: &str) -> &'a mut GaugeRow {
    draft
        .record
        .os
        .memory_bytes
        .entry(key.to_owned())
        .or_default()
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
pub(super) fn statistics(reader: &mut Reader<'_>, heading: &Line, lines: &[Line]) {
    for table in tables(heading, lines, 1, 1) {
        for row in &table.rows {
            let name = row.cells[0].trim();
            let cell = row.cells.get(1).map_or("", String::as_str);
            let Some(printed) = number::count(cell) else {
                continue;
            };
            let time = TIMES.iter().find(|(theirs, _)| *theirs == name);
            let ours = name
                .strip_prefix("CPU ")
                .and_then(|rest| rest.strip_suffix(" (s)"));
            match (time, ours, name) {
                (Some((_, column)), ..) => {
                    cpu_s(reader.draft, row.at, column, printed.scaled(0.01))
                }
                (_, Some(column), _) => cpu_s(
                    reader.draft,
                    row.at,
                    column,
                    number::measure(cell).unwrap_or(printed),
                ),
                (_, _, "NUM_CPUS") => cpus_count(reader.draft, row.at, cell),
                (_, _, "LOAD") => {
                    let end = row.cells.get(2).and_then(|cell| number::measure(cell));
                    let begin = number::measure(cell);
                    for (when, printed) in [("begin", begin), ("end", end)] {
                        if let Some(printed) = printed {
                            let key = format!("os_load_{when}_count");
                            reader
                                .draft
                                .alone(Reading::new(row.at, key, printed).name(name));
                        }
                    }
                }
                _ if name.is_empty() => {}
                _ => {
                    let unit = if name.ends_with("BYTES") {
                        ""
                    } else {
                        "_count"
                    };
                    let key = format!("os_{}{unit}", slug(name));
                    reader
                        .draft
                        .alone(Reading::new(row.at, key, printed).name(name));
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
