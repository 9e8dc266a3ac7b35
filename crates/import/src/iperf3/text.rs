//! iperf3's text: client's or server's.

use super::super::Confidence;
use super::super::draft::{Draft, Reading};
use super::super::located_number::{amount, between};
use super::super::number::{self, Printed};
use super::super::rows::{put_step, setting, step};
use super::super::text::{At, Line, Text};
use super::{STREAM_INTERVALS_MAX, series_name, value};
use assay_measure::record::ImportNote;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Amounts are in powers of 1024.
const BYTES: &[(&str, f64)] = &[
    ("Bytes", 1.0),
    ("KBytes", 1024.0),
    ("MBytes", 1_048_576.0),
    ("GBytes", 1_073_741_824.0),
    ("TBytes", 1_099_511_627_776.0),
];
/// Rates in bits are in powers of 1000, rates in bytes in powers of 1024.
const BITS_PER_S: &[(&str, f64)] = &[
    ("bits/sec", 1.0),
    ("Kbits/sec", 1e3),
    ("Mbits/sec", 1e6),
    ("Gbits/sec", 1e9),
    ("Tbits/sec", 1e12),
    ("Bytes/sec", 8.0),
    ("KBytes/sec", 8.0 * 1024.0),
    ("MBytes/sec", 8.0 * 1_048_576.0),
    ("GBytes/sec", 8.0 * 1_073_741_824.0),
];

pub(super) fn looks_like(text: &Text) -> Confidence {
    let head = || text.head().iter().map(|line| line.text.as_str());
    let title = head().any(|line| line.contains("Interval") && line.contains("Transfer") && line.contains("ID]"));
    let row = head().any(|line| row(line).is_some());
    Confidence::of(
        90,
        &[("a line [ ID] Interval Transfer Bitrate", title), ("a row [  5] 0.00-1.00 sec ... /sec", row)],
    )
}

/// One row: whose, of when, and what stands behind the rate.
struct Row<'a> {
    id: &'a str,
    role: &'a str,
    from_s: f64,
    to_s: f64,
    to: Printed,
    bytes: Printed,
    bits_per_s: Printed,
    rest: Vec<&'a str>,
}

fn row(line: &str) -> Option<Row<'_>> {
    let line = line.trim();
    let id = between(line, "[", "]")?.trim();
    let mut rest = line.split_once(']')?.1;
    let mut role = "";
    if let Some(inner) = rest.trim_start().strip_prefix('[') {
        (role, rest) = inner.split_once(']')?;
    }
    let (times, rest) = rest.split_once(" sec ")?;
    let (from, to) = times.trim().split_once('-')?;
    let to = number::measure(to.trim())?;
    let tokens: Vec<&str> = rest.split_whitespace().collect();
    let [bytes, bytes_unit, rate, rate_unit, rest @ ..] = tokens.as_slice() else {
        return None;
    };
    Some(Row {
        id,
        role: role.trim(),
        from_s: from.trim().parse().ok()?,
        to_s: to.number()?,
        to,
        bytes: amount(&format!("{bytes} {bytes_unit}"), BYTES)?,
        bits_per_s: amount(&format!("{rate} {rate_unit}"), BITS_PER_S)?,
        rest: rest.to_vec(),
    })
}

/// What the lines so far say of those to come.
#[derive(Default)]
struct Reader {
    is_udp: bool,
    titles: u32,
    has_sum: bool,
    /// Intervals of single streams beside sums.
    of_streams: usize,
    /// The time of the sender's line.
    sent: Option<(At, Printed)>,
    /// Where the last interval ended, s.
    last_s: f64,
    /// Summary lines as iperf 2 prints them, without further labels.
    wholes: BTreeSet<u64>,
    /// What the text is of there.
    side: &'static str,
}

pub(super) fn read(text: &Text, draft: &mut Draft) {
    let mut reader = Reader {
        // Streams of a parallel test have sums, and then the sums are the whole.
        has_sum: text.lines.iter().any(|line| row(&line.text).is_some_and(|row| row.id == "SUM")),
        // One heading says it, above or below.
        is_udp: ["UDP port", "Datagrams", "protocol: UDP"].iter().any(|part| text.head_has(part)),
        wholes: wholes(text),
        side: if text.head_begins("Server listening on ") { "receiver" } else { "sender" },
        ..Reader::default()
    };
    draft.recognised("", "iperf3 text");
    for line in &text.lines {
        if line.text.starts_with("Server output:") {
            draft.note(line.at, "the server's own report, from this line on, was left out");
            break;
        }
        reader.line(line.at, &line.text, draft);
    }
    if let Some((at, printed)) = reader.sent.filter(|_| !draft.has("", "elapsed_s")) {
        put!(draft, Reading::new(at, "elapsed_s", printed).name("Interval").layer("network"), interval.elapsed_s);
    }
}

/// The tests of `iperf3 -T`, whose lines have a title each: `a:  [  5]   0.00-1.00 ...`.
pub(super) fn titled(text: &Text) -> Vec<Text> {
    let title = |line: &Line| {
        let (title, rest) = line.text.split_once(':')?;
        let rest = rest.strip_prefix(' ')?.trim_start();
        let is_ours = ["[", "Connecting to host", "- - -"].iter().any(|begin| rest.starts_with(begin));
        (is_ours && !title.contains(['[', ' '])).then(|| (title.to_owned(), rest.to_owned()))
    };
    let mut all: Vec<(String, Vec<Line>)> = Vec::new();
    let (mut places, mut untitled) = (HashMap::new(), Vec::new());
    for line in &text.lines {
        let Some((title, rest)) = title(line) else {
            untitled.push(line);
            continue;
        };
        let place = *places.entry(title).or_insert_with_key(|title| {
            all.push((title.clone(), Vec::new()));
            all.len() - 1
        });
        all[place].1.push(Line { text: rest, ..line.clone() });
    }
    let has_rows = |lines: &[Line]| lines.iter().any(|line| row(&line.text).is_some());
    let text_of = |lines: Vec<Line>| Text { lines: lines.into(), ..text.part(0..0) };
    let tests = all.into_iter().filter(|(_, lines)| has_rows(lines)).map(|(title, lines)| {
        let at = lines[0].at;
        let mut of_title = text_of(lines);
        of_title.notes.push(ImportNote { file: at.file, line: at.line, text: format!("the test with title {title}") });
        of_title
    });
    let mut tests: Vec<Text> = tests.collect();
    if !tests.is_empty() {
        let rest = text_of(untitled.into_iter().cloned().collect());
        let begins = [vec![0], runs(&rest), vec![rest.lines.len()]].concat();
        let parts = begins.windows(2).map(|ends| rest.part(ends[0]..ends[1]));
        tests.extend(parts.filter(|part| has_rows(&part.lines)));
        tests.sort_by_key(Text::skipped);
    }
    tests
}

/// Whether a line begins a test.
fn begins_test(line: &str) -> bool {
    line.starts_with("Accepted connection") || line.starts_with("Connecting to host")
}

/// The last line of each stream from 0 on where iperf 2 printed the text: it marks the whole by nothing else.
fn wholes(text: &Text) -> BTreeSet<u64> {
    let is_old = text.head_begins("Client connecting to ")
        || text.head_has("listening on TCP port")
        || text.head_has("listening on UDP port");
    let mut last = BTreeMap::new();
    for line in text.lines.iter().filter(|_| is_old) {
        if let Some(row) = row(&line.text).filter(|row| row.from_s == 0.0) {
            // The server's own report of UDP is a whole of its own.
            let is_report = row.rest.contains(&"ms");
            last.insert((row.id.to_owned(), is_report), line.at.line);
        }
    }
    last.into_values().collect()
}

/// Lines at which a further test begins.
pub(super) fn runs(text: &Text) -> Vec<usize> {
    // A server's own report is part of its client's.
    let lines = text.lines.iter().enumerate().take_while(|(_, line)| !line.text.starts_with("Server output:"));
    let begins = lines.filter(|(_, line)| begins_test(&line.text));
    begins.map(|(i, _)| i).skip(1).collect()
}

impl Reader {
    fn line(&mut self, at: At, text: &str, draft: &mut Draft) {
        if let Some(row) = row(text) {
            self.row(at, &row, draft);
            return;
        }
        if text.contains("Interval") && text.contains("Transfer") {
            self.titles += 1;
            return;
        }
        if text.starts_with("Test Complete. Summary") {
            // Its heading is the second, be there a first or not.
            self.titles = self.titles.max(1);
            return;
        }
        if let Some((id, count)) = between(text, "[", "]").zip(between(text, "sec", " datagrams received out-of-order"))
        {
            let scope = if self.has_sum && id.trim() != "SUM" {
                format!("stream {} receiver", id.trim())
            } else {
                "receiver".to_owned()
            };
            value(draft, at, "udp_out_of_order_count".to_owned(), "out-of-order", &scope, number::count(count.trim()));
            return;
        }
        if let Some(sent) = between(text, "] Sent ", " datagrams") {
            value(draft, at, "udp_datagrams_count".to_owned(), "Sent", "sender", number::count(sent.trim()));
            return;
        }
        if let Some(version) = text.strip_prefix("iperf 3").map(|_| &text[6..]) {
            let version = version.split(' ').next().unwrap_or_default();
            draft.recognised(version, "iperf3 text");
        } else if let Some(time) = text.trim().strip_prefix("Time: ") {
            time.trim().clone_into(&mut draft.record.run.started);
        } else if text.starts_with("Connecting to host") || text.starts_with("Reverse mode") {
            setting(draft, "test", text.trim());
        } else if text.starts_with("Starting Test:") {
            setting(draft, "test", text.trim_start_matches("Starting Test:").trim());
        } else if text.starts_with("CPU Utilization:") {
            cpu(at, text, draft);
        } else if let Some(name) = text.strip_prefix("snd_tcp_congestion ") {
            setting(draft, "congestion", name.trim());
        } else if text.contains("iperf3: error") || text.contains("the client has terminated") {
            draft.note(at, format!("the test failed: {}", text.trim()));
        }
    }

    fn row(&mut self, at: At, row: &Row<'_>, draft: &mut Draft) {
        let last = row.rest.last().copied().unwrap_or_default();
        let is_old = self.wholes.contains(&at.line);
        let is_summary = last == "sender" || last == "receiver" || self.titles > 1 || is_old;
        let is_whole = !self.has_sum || row.id == "SUM";
        if last == "(omitted)" {
            draft.saw(at);
            return;
        }
        if is_summary {
            let side = match is_old {
                true if row.rest.contains(&"ms") => "receiver",
                true => self.side,
                false => last,
            };
            self.summary(at, row, side, is_whole, draft);
        } else if is_whole || self.of_streams < STREAM_INTERVALS_MAX {
            self.of_streams += usize::from(!is_whole);
            self.interval(at, row, is_whole, draft);
        } else if self.of_streams == STREAM_INTERVALS_MAX {
            self.of_streams += 1;
            draft.note(at, "intervals of single streams from here on are not read: their sums are");
        } else {
            draft.saw(at);
        }
    }

    fn protocol(&self) -> &'static str {
        if self.is_udp { "udp" } else { "tcp" }
    }

    fn summary(&mut self, at: At, row: &Row<'_>, side: &str, is_whole: bool, draft: &mut Draft) {
        let is_labelled = ["sender", "receiver"].contains(&side);
        let has_losses = row.rest.iter().any(|token| token.contains('/'));
        let of = if is_whole { String::new() } else { format!("stream {} ", row.id) };
        let role = if row.role.is_empty() { String::new() } else { format!("{} ", row.role) };
        let protocol = self.protocol();
        // One line for both ends has the sender's bytes and the receiver's losses.
        let side = match side {
            "sender" | "receiver" => side,
            _ if self.is_udp && has_losses => "sender",
            _ => "receiver",
        };
        let scope = format!("{of}{role}{side}");
        let mut put = |key: &str, name: &str, printed: Option<Printed>| {
            value(draft, at, format!("{protocol}_{key}"), name, &scope, printed);
        };
        put("throughput_bits_per_s_mean", "Bitrate", Some(row.bits_per_s.clone()));
        put("moved_bytes", "Transfer", Some(row.bytes.clone()));
        put("interval_s", "Interval", Some(row.to.clone()));
        if is_whole && side == "sender" {
            self.sent.get_or_insert((at, row.to.clone()));
        }
        if self.is_udp && side == "sender" {
            // The sender knows what it sent. The jitter and the losses in its line are zeros that nobody measured.
            let all = row.rest.iter().find_map(|token| token.split_once('/'));
            put("datagrams_count", "Total Datagrams", all.and_then(|(_, all)| number::count(all)));
            if !is_labelled {
                let scope = format!("{of}{role}receiver");
                datagrams(&row.rest, &mut |key, name, printed| {
                    value(draft, at, format!("{protocol}_{key}"), name, &scope, printed);
                });
            }
        } else if self.is_udp {
            datagrams(&row.rest, &mut put);
        } else if side == "sender" {
            put("retransmits_count", "Retr", row.rest.first().and_then(|token| number::count(token)));
        }
        if is_whole && side == "receiver" && !draft.has("", "elapsed_s") {
            let reading = Reading::new(at, "elapsed_s", row.to.clone()).name("Interval");
            put!(draft, reading.layer("network"), interval.elapsed_s);
        }
    }

    fn interval(&mut self, at: At, row: &Row<'_>, is_whole: bool, draft: &mut Draft) {
        // A rest of an interval with hardly anything in it is no step.
        if row.to_s - row.from_s < 0.1 {
            draft.saw(at);
            return;
        }
        // A single stream is there to be compared with the sum.
        let step = is_whole.then(|| step(draft, row.to_s));
        if step == Some(None) {
            return;
        }
        let is_after_gap = row.role.is_empty() && row.from_s > self.last_s + 0.05;
        self.last_s = row.to_s;
        let protocol = self.protocol();
        let scope = match row.role {
            "" => format!("{:.2} s", row.to_s),
            role => format!("{role}, {:.2} s", row.to_s),
        };
        let scope = if is_whole { scope } else { format!("stream {}, {scope}", row.id) };
        if is_after_gap && is_whole {
            // Its length does not follow from the end of the one before.
            let length = Printed { value: (row.to_s - row.from_s).into(), ..row.to.clone() };
            let reading = Reading::new(at, format!("{protocol}_interval_s"), length).name("Interval");
            draft.alone(reading.scope(&scope).layer("network"));
        }
        let mut put = |key: &str, name: &str, printed: Option<Printed>| {
            if let Some(printed) = printed {
                let key = format!("{protocol}_{key}");
                let series = series_name(&key, row.role);
                let reading = Reading::new(at, key, printed).name(name).scope(&scope).layer("network");
                match step.flatten() {
                    Some(step) => put_step(draft, reading, &series, step),
                    None => draft.alone(reading.again()),
                }
            }
        };
        put("throughput_bits_per_s", "Bitrate", Some(row.bits_per_s.clone()));
        put("moved_bytes", "Transfer", Some(row.bytes.clone()));
        if self.is_udp {
            match row.rest.as_slice() {
                // The sender counts what it sends and no more.
                [sent] => put("datagrams_count", "Total Datagrams", number::count(sent)),
                rest => datagrams(rest, &mut put),
            }
            return;
        }
        let Some(retransmits) = row.rest.first() else {
            return;
        };
        put("retransmits_count", "Retr", number::count(retransmits));
        if let [_, amount_of, unit, ..] = row.rest.as_slice() {
            put("cwnd_bytes", "Cwnd", amount(&format!("{amount_of} {unit}"), BYTES));
        }
    }
}

/// `0.046 ms  0/573 (0%)`
fn datagrams(rest: &[&str], put: &mut impl FnMut(&str, &str, Option<Printed>)) {
    let mut tokens = rest.iter();
    if let Some(at) = rest.iter().position(|token| *token == "ms")
        && let Some(jitter) = at.checked_sub(1).and_then(|at| rest.get(at))
    {
        let printed = number::measure(jitter).map(|ms| ms.scaled(1e3));
        put("jitter_us_mean", "Jitter", printed);
    }
    let counts = tokens.find_map(|token| token.split_once('/'));
    // `0/  893` of iperf 2.
    let counts = counts.map(|(lost, total)| match total {
        "" => (lost, tokens.next().copied().unwrap_or_default()),
        total => (lost, total),
    });
    if let Some((lost, total)) = counts {
        put("lost_count", "Lost", number::count(lost));
        put("datagrams_count", "Total Datagrams", number::count(total));
    }
    let share = rest.iter().find(|token| token.ends_with("%)"));
    if let Some(share) = share {
        let bare = share.trim_start_matches('(').trim_end_matches(')');
        put("lost_pct", "Lost", number::measure(bare));
    }
}

/// `CPU Utilization: local/sender 45.9% (0.7%u/45.3%s), remote/receiver 44.5% (1.2%u/43.3%s)`
fn cpu(at: At, text: &str, draft: &mut Draft) {
    for part in text.split(':').nth(1).unwrap_or_default().split(", ") {
        let mut tokens = part.split_whitespace();
        let (Some(side), Some(total)) = (tokens.next(), tokens.next()) else {
            continue;
        };
        let host = side.split('/').next().unwrap_or_default();
        let printed = number::measure(total);
        let key = "network_cpu_pct".to_owned();
        value(draft, at, key, "CPU Utilization", host, printed);
        // `(0.7%u/45.3%s)`
        let parts = tokens.next().and_then(|parts| parts.split_once('/'));
        let Some((user, system)) = parts else {
            continue;
        };
        for (part, key) in [(user, "network_cpu_user_pct"), (system, "network_cpu_system_pct")] {
            let bare = part.trim_matches(|c: char| c != '.' && !c.is_ascii_digit());
            let printed = number::measure(bare);
            value(draft, at, key.to_owned(), "CPU Utilization", host, printed);
        }
    }
}
