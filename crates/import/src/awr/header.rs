//! Who and when: identity, host, snapshots, elapsed time, cache sizes, parameters.

use super::Reader;
use super::part::Part;
use super::table::{Row, Ruler, Table, is_ruler};
use crate::draft::Reading;
use crate::number;
use crate::text::{At, Line};
use assay_measure::plain::slug;
use assay_measure::snapshot::{Fact, SettingLine};
use jiff::civil::DateTime;

/// All text: no column holds numbers.
const NO_NUMBERS: usize = usize::MAX;

/// Titles of the tables that a report begins with: of what there is one row of facts.
const OF_HEAD: [&str; 5] = ["db name", "db id", "instance", "host name", "container db id"];

/// Lines before the first section and between sections.
pub(super) fn read(reader: &mut Reader<'_>, lines: &[Line]) {
    let mut snapshots = None;
    for (i, line) in lines.iter().enumerate() {
        let text = line.text.trim_start();
        if text.starts_with("Begin Snap") {
            snapshot(reader, line, snapshots.as_ref(), true);
        } else if text.starts_with("End Snap") {
            snapshot(reader, line, snapshots.as_ref(), false);
        } else if text.starts_with("Elapsed:") {
            elapsed(reader, line);
        } else if text.starts_with("DB Time:") || text.starts_with("DB time:") {
            db_time(reader, line);
        } else if is_cache_size(text) {
            cache_sizes(reader, line);
        } else if text.starts_with("Host") && text.contains("Num CPUs:") {
            host_line(reader, line);
        } else if i > 0 {
            // Statspack draws part of its rulers otherwise.
            let ruler = line.text.replace('~', "-");
            let titles = &lines[i - 1].text;
            let of_head = ["DB Name", "DB Id", "Instance ", "Host Name", "Database ", "Container DB Id"];
            if !is_ruler(&ruler) {
                continue;
            }
            if let Some(host) = host_of_statspack(&lines[..i], &ruler) {
                if let Some(row) = lines.get(i + 1).and_then(|line| host.texts(line)) {
                    facts(reader, &host, &row);
                }
            } else if titles.contains("Snap Id") {
                snapshots = Some(Ruler::new(&ruler, &[titles]));
            } else if of_head.iter().any(|own| titles.starts_with(own)) {
                identity(reader, &ruler, titles, lines.get(i + 1));
            }
        }
    }
}

/// Whether a table of HTML is one of those a report begins with.
pub(super) fn is_of_head(table: &Table) -> bool {
    let titles = || table.ruler.columns.iter().map(|column| column.title.as_str());
    let first = titles().find(|title| !title.is_empty()).unwrap_or_default();
    let is_cache = || {
        let mut cells = table.rows.iter().flat_map(|row| &row.cells);
        cells.any(|cell| cell == "Std Block Size:")
    };
    OF_HEAD.contains(&first) || titles().any(|title| title == "snap time") || is_cache()
}

/// A table that a report of HTML begins with.
pub(super) fn table(reader: &mut Reader<'_>, table: &Table) {
    for row in &table.rows {
        let line = Line { at: row.at, text: row.cells.join("  "), is_cut: false };
        match row.cells.first().map_or("", String::as_str) {
            "Begin Snap:" => snapshot_row(reader, &table.ruler, row, true),
            "End Snap:" => snapshot_row(reader, &table.ruler, row, false),
            "Elapsed:" => elapsed(reader, &line),
            "DB Time:" => db_time(reader, &line),
            _ if is_cache_size(&line.text) => cache_sizes(reader, &line),
            _ if is_of_facts(&table.ruler) => facts(reader, &table.ruler, row),
            _ => {}
        }
    }
}

/// Whether the titles of a table name facts, not moments.
fn is_of_facts(ruler: &Ruler) -> bool {
    ["snap time", "begin", "end"].iter().all(|moment| ruler.titled(moment).is_none())
}

/// The columns of Statspack's table of the host, whose first has no title, by their order: mail wraps the titles, and `Host Name` stands over
/// two columns.
fn host_of_statspack(above: &[Line], ruler: &str) -> Option<Ruler> {
    const TITLES: [&str; 7] = ["", "host name", "platform", "cpus", "cores", "sockets", "memory (gb)"];
    let titles = above.iter().rev().take_while(|line| !line.text.is_empty()).take(2).map(|line| line.text.as_str());
    let titles: Vec<&str> = titles.collect();
    let has = |word: &str| titles.iter().any(|line| line.contains(word));
    let mut found = Ruler::new(ruler, &[]);
    if found.columns.len() != TITLES.len() || !(has("Host") && has("Sockets")) {
        return None;
    }
    for (column, title) in found.columns.iter_mut().zip(TITLES) {
        title.clone_into(&mut column.title);
    }
    Some(found)
}

/// `Host  Name:   db1    Num CPUs:    2        Phys Memory (MB):    2,048` of Statspack 10.1 and before.
fn host_line(reader: &mut Reader<'_>, line: &Line) {
    let behind = |label: &str| {
        let rest = line.text.split_once(label)?.1;
        rest.split_whitespace().next().filter(|word| !word.ends_with(':'))
    };
    if let Some(printed) = behind("Num CPUs:").and_then(number::count) {
        let reading = Reading::new(line.at, "cpus_count", printed).name("CPUs").again();
        put!(reader.draft, reading, os.cpus_count);
    }
    for (label, name) in [(" Name:", "host_name"), ("Memory (MB):", "memory_mb")] {
        if let Some(value) = behind(label) {
            reader.draft.record.host.facts.push(Fact { name: name.to_owned(), value: value.to_owned() });
        }
    }
}

/// A table of one row of facts.
fn identity(reader: &mut Reader<'_>, ruler: &str, titles: &str, row: Option<&Line>) {
    let Some(line) = row else {
        return;
    };
    let ruler = Ruler::new(ruler, &[titles]);
    if let Some(row) = ruler.texts(line) {
        facts(reader, &ruler, &row);
    }
}

fn facts(reader: &mut Reader<'_>, ruler: &Ruler, row: &Row) {
    for (column, cell) in ruler.columns.iter().zip(&row.cells) {
        if column.title.is_empty() || cell.is_empty() {
            continue;
        }
        let fact = Fact { name: slug(&column.title), value: cell.clone() };
        match column.title.as_str() {
            "cpus" => {
                if let Some(printed) = number::count(cell) {
                    let reading = Reading::new(row.at, "cpus_count", printed).name("CPUs").again();
                    put!(reader.draft, reading, os.cpus_count);
                }
            }
            "release" => reader.release.clone_from(cell),
            _ => {}
        }
        let is_host = ["host", "host name", "platform", "cpus", "cores", "sockets", "memory(gb)", "memory (gb)"];
        let record = &mut reader.draft.record;
        let facts = if is_host.contains(&column.title.as_str()) {
            &mut record.host.facts
        } else {
            &mut record.plan.engine_facts
        };
        if !facts.iter().any(|known| known.name == fact.name) {
            facts.push(fact);
        }
    }
}

/// `Begin Snap:   100 01-Jan-20 11:00:00   60   1.5`.
fn snapshot(reader: &mut Reader<'_>, line: &Line, ruler: Option<&Ruler>, is_begin: bool) {
    let row = ruler.and_then(|ruler| Some((ruler, ruler.row(line, 1)?)));
    if let Some((ruler, row)) = row.filter(|(_, row)| !row.is_guess) {
        snapshot_row(reader, ruler, &row, is_begin);
        return;
    }
    let text = with_numbered_month(&line.text);
    let words: Vec<&str> = text.split_whitespace().collect();
    let moment = words.iter().enumerate().find_map(|(i, word)| {
        if word.contains('T') && word.len() > 18 {
            return Some((i + 2, (*word).to_owned()));
        }
        let time = words.get(i + 1)?;
        Some((i + 2, moment(word, time)?))
    });
    if let Some((next, when)) = moment {
        began(reader, when, is_begin);
        let sessions = words.get(next).and_then(|word| number::count(word));
        sessions_at(reader, line.at, sessions, is_begin);
    }
}

fn snapshot_row(reader: &mut Reader<'_>, ruler: &Ruler, row: &Row, is_begin: bool) {
    let of = |title: &str| {
        let cell = ruler.titled(title).and_then(|i| row.cells.get(i));
        cell.map_or("", String::as_str)
    };
    let printed = of("snap time");
    let time = with_numbered_month(printed);
    let when = match time.split_once(' ') {
        Some((date, time)) => moment(date, time.trim_start()),
        None => (time.contains('T') && time.len() > 18).then(|| time.clone()),
    };
    match when {
        Some(when) => began(reader, when, is_begin),
        None if time.is_empty() => {}
        None => {
            reader.draft.note(row.at, format!("the time {printed:?} has no month in English or in numbers: not read"))
        }
    }
    sessions_at(reader, row.at, number::count(of("sessions")), is_begin);
}

fn began(reader: &mut Reader<'_>, when: String, is_begin: bool) {
    let record = &mut reader.draft.record;
    if is_begin {
        record.interval.begin.clone_from(&when)
    } else {
        record.interval.end.clone_from(&when)
    }
    if is_begin && record.run.started.is_empty() {
        record.run.started = when;
    }
}

fn sessions_at(reader: &mut Reader<'_>, at: At, sessions: Option<number::Printed>, is_begin: bool) {
    let Some(sessions) = sessions else {
        return;
    };
    let key = if is_begin { "sessions_begin_count" } else { "sessions_end_count" };
    let reading = Reading::new(at, key, sessions).name("Sessions");
    if is_begin {
        put!(reader.draft, reading, interval.sessions_begin_count)
    } else {
        put!(reader.draft, reading, interval.sessions_end_count)
    }
}

/// The month of a Chinese or Japanese session, the number and a character behind it, as `15-M2-23`: a number, and no other word. The
/// letter keeps it apart from `02-03-23`, of which nobody knows which number is the month.
fn with_numbered_month(text: &str) -> String {
    let Some(begin) = text.find(|c: char| !c.is_ascii()) else {
        return text.to_owned();
    };
    let rest = text[begin..].trim_start_matches(|c: char| !c.is_ascii() || c == ' ');
    match text[..begin].rsplit_once('-') {
        Some((head, month)) if rest.starts_with('-') && month.parse::<u8>().is_ok() => {
            format!("{head}-M{month}{rest}")
        }
        _ => text.to_owned(),
    }
}

/// `01-Jan-20 11:00:00` as RFC 3339 with the offset that means "unknown" (-00:00); months in English, or as
/// `with_numbered_month` writes them.
fn moment(date: &str, time: &str) -> Option<String> {
    const FORMATS: [&str; 6] = [
        "%d-%b-%y %H:%M:%S",
        "%d-%b-%Y %H:%M:%S",
        "%d-%b-%y %H:%M",
        "%d-%b-%Y %H:%M",
        "%d-M%m-%y %H:%M:%S",
        "%d-M%m-%y %H:%M",
    ];
    let text = format!("{date} {time}");
    let mut read = FORMATS.iter().map(|format| DateTime::strptime(format, &text));
    let found = read.find_map(Result::ok)?;
    Some(found.strftime("%Y-%m-%dT%H:%M:%S-00:00").to_string())
}

/// `Elapsed:   60.00 (mins)`, in our own report with the seconds behind.
fn elapsed(reader: &mut Reader<'_>, line: &Line) {
    if let Some(printed) = seconds(line, "Elapsed:") {
        reader.elapsed = Some(Reading::new(line.at, "elapsed_s", printed).name("Elapsed"));
    }
}

fn seconds(line: &Line, label: &str) -> Option<number::Printed> {
    let rest = line.text.split_once(label)?.1;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let of = |unit: &str| {
        let at = words.iter().position(|word| *word == unit)?;
        number::measure(words.get(at.checked_sub(1)?)?)
    };
    of("(s)").or_else(|| Some(of("(mins)")?.scaled(60.0)))
}

fn db_time(reader: &mut Reader<'_>, line: &Line) {
    let label = if line.text.contains("DB Time:") { "DB Time:" } else { "DB time:" };
    if let Some(printed) = seconds(line, label) {
        let reading = Reading::new(line.at, "db_time_us", printed.scaled(1e6));
        put!(reader.draft, reading.name("DB Time").again(), instance.time_model.db_time_us);
    }
    if let Some(printed) = seconds(line, "DB CPU:") {
        let reading = Reading::new(line.at, "db_cpu_us", printed.scaled(1e6));
        put!(reader.draft, reading.name("DB CPU").again(), instance.time_model.db_cpu_us);
    }
}

/// Sizes of memory at the start, and of a block.
const CACHE_SIZES: [(&str, &str); 4] = [
    ("Std Block Size:", "block_bytes"),
    ("Buffer Cache:", "cache_bytes"),
    ("Shared Pool Size:", "shared_pool_bytes"),
    ("Log Buffer:", "log_buffer_bytes"),
];

fn is_cache_size(text: &str) -> bool {
    CACHE_SIZES.iter().any(|(label, _)| text.contains(label))
}

/// `Buffer Cache:    20,480M    20,480M  Std Block Size:         8K`.
fn cache_sizes(reader: &mut Reader<'_>, line: &Line) {
    for (label, fact) in CACHE_SIZES {
        let word = line.text.split_once(label).and_then(|(_, rest)| rest.split_whitespace().next());
        let size = word.and_then(|word| number::suffixed(word, number::Suffix::Binary));
        let Some(size) = size else {
            continue;
        };
        if let Some(bytes) = size.number() {
            let facts = &mut reader.draft.record.plan.engine_facts;
            facts.push(Fact { name: fact.to_owned(), value: format!("{bytes:.0}") });
            let reading = Reading::new(line.at, fact, size);
            reader.draft.alone(reading.name(label.trim_end_matches(':')).again());
        }
    }
}

/// `Parameters modified by this container`: each under its name with the container's, for the root has one of the same name.
pub(super) fn of_container(reader: &mut Reader<'_>, part: &Part<'_>) {
    let facts = &reader.draft.record.plan.engine_facts;
    let header = facts.iter().find(|fact| fact.name == "container_name").map(|fact| fact.value.clone());
    let below = || {
        let tables = part.tables(NO_NUMBERS, 2);
        let mut cells = tables.iter().flat_map(|table| &table.rows).flat_map(|row| &row.cells);
        cells.find_map(|cell| Some(cell.trim().strip_prefix("PDB:")?.trim().to_owned()))
    };
    let container = header.or_else(below).unwrap_or_else(|| "this container".to_owned());
    let before = reader.draft.record.plan.settings.len();
    parameters(reader, part);
    for setting in &mut reader.draft.record.plan.settings[before..] {
        setting.name = format!("{} ({container})", setting.name);
    }
}

/// `init.ora Parameters`: name, begin value.
pub(super) fn parameters(reader: &mut Reader<'_>, part: &Part<'_>) {
    for table in part.tables(NO_NUMBERS, 2).iter() {
        let value = table.ruler.find(&["value"], &["end"]).unwrap_or(1);
        let instance = table.ruler.titled("i#");
        for row in &table.rows {
            let (name, value) = (row.cells[0].trim(), row.cells.get(value).map_or("", |cell| cell.trim()));
            // Of a cluster, what all instances have.
            if instance.is_some_and(|i| row.cells[i] != "*") {
                continue;
            }
            let is_name = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_$#".contains(&b));
            if name.is_empty() || !is_name {
                continue;
            }
            if name == "db_block_size" {
                let facts = &mut reader.draft.record.plan.engine_facts;
                if !facts.iter().any(|fact| fact.name == "block_bytes") {
                    facts.push(Fact { name: "block_bytes".to_owned(), value: value.to_owned() });
                }
            }
            let origin = format!("{}:{}", reader.path, row.at.line);
            reader.draft.record.plan.settings.push(SettingLine {
                name: name.to_owned(),
                value: value.to_owned(),
                origin,
            });
        }
    }
}
