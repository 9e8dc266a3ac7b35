//! The report in oratcptest's layout, byte for byte.

use super::info::{RedoInfo, SecondRow};
use std::fmt::Write;

/// 2^20, as the tool has it.
const MBYTE: f64 = 1_048_576.0;

/// The whole report.
pub(super) fn report(info: &RedoInfo) -> String {
    let mut text = String::from("[Requesting a test]\n");
    for (label, value) in head(info) {
        let _ = writeln!(text, "\t{label:<22} = {value}");
    }
    text.push_str("\t(1 Mbyte = 1024x1024 bytes)\n\n");
    let _ = writeln!(text, "({}) The server is ready.", clock(info, 0.0));
    let (has_latency, has_disk) = (is_sync(info), writes(info));
    // One column narrower where the disk has a third.
    let (before, between) = if has_disk { (20, 13) } else { (24, 17) };
    let _ = write!(text, "{:before$}Throughput", "");
    if has_latency {
        let _ = write!(text, "{:between$}Latency", "");
    }
    text.push('\n');
    let rows = rows(info);
    for row in &rows {
        let _ = writeln!(text, "{}", line(info, row));
    }
    let last_s = rows.last().map_or(0.0, |row| row.end_s);
    let _ = writeln!(text, "({}) Test finished.", clock(info, last_s));
    text + &tail(info).join("\n") + "\n"
}

fn is_sync(info: &RedoInfo) -> bool {
    info.mode != "async"
}

fn writes(info: &RedoInfo) -> bool {
    !matches!(info.asked_write.as_str(), "" | "none")
}

fn head(info: &RedoInfo) -> Vec<(&'static str, String)> {
    let yes = |is: bool| if is { "YES" } else { "NO" }.to_owned();
    let buffer = match info.asked_send_buffer_bytes.value() {
        Some(bytes) => format!("{bytes:.0} bytes"),
        None => "(system default)".to_owned(),
    };
    let delay = match info.delay_ms.value() {
        Some(ms) if ms > 0.0 => format!("{ms} milliseconds"),
        _ => "NO".to_owned(),
    };
    let timeout = match info.asked_timeout_s.value() {
        Some(s) => time(s),
        None => "NO".to_owned(),
    };
    vec![
        ("Message payload", payload(info.length_bytes)),
        ("Payload content type", info.content.to_uppercase()),
        ("Delay between messages", delay),
        ("Number of connections", info.connections_count.to_string()),
        ("Socket send buffer", buffer),
        ("Transport mode", info.mode.to_uppercase()),
        ("Disk write", yes(writes(info))),
        ("Statistics interval", time(info.interval_s as f64)),
        ("Test duration", time(info.asked_s)),
        ("Test frequency", "NO".to_owned()),
        ("Network Timeout", timeout),
    ]
}

/// In the largest unit that divides it.
fn payload(bytes: u64) -> String {
    let (count, unit) = match bytes {
        bytes if bytes > 0 && bytes.is_multiple_of(1 << 20) => (bytes >> 20, "Mbyte"),
        bytes if bytes > 0 && bytes.is_multiple_of(1 << 10) => (bytes >> 10, "kbyte"),
        bytes => (bytes, "byte"),
    };
    plural(count, unit)
}

fn time(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    if (seconds - whole as f64).abs() > 1e-9 {
        return format!("{seconds} seconds");
    }
    match whole {
        s if s > 0 && s.is_multiple_of(3600) => plural(s / 3600, "hour"),
        s if s > 0 && s.is_multiple_of(60) => plural(s / 60, "minute"),
        s => plural(s, "second"),
    }
}

fn plural(count: u64, unit: &str) -> String {
    match count {
        1 => format!("1 {unit}"),
        count => format!("{count} {unit}s"),
    }
}

/// Local time so long after the standby was ready.
fn clock(info: &RedoInfo, after_s: f64) -> String {
    let day = (info.ready_clock_s + after_s.round() as i64).rem_euclid(86_400);
    format!("{:02}:{:02}:{:02}", day / 3600, day / 60 % 60, day % 60)
}

/// What happened in an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Row {
    pub(super) end_s: f64,
    /// The time its messages took: from the end of the last message before it to the end of its last.
    pub(super) elapsed_s: f64,
    pub(super) messages: u64,
    pub(super) bytes: u64,
    total_us: f64,
    disk_us: f64,
}

impl Row {
    fn add(&mut self, second: &SecondRow) {
        self.messages += second.messages_count;
        self.bytes += second.bytes;
        self.total_us += second.total_us;
        self.disk_us += second.disk_us;
    }

    pub(super) fn mbytes_per_s(&self) -> f64 {
        if self.elapsed_s > 0.0 { self.bytes as f64 / MBYTE / self.elapsed_s } else { 0.0 }
    }

    fn ms(&self, us: f64) -> f64 {
        match self.messages {
            0 => 0.0,
            count => us / count as f64 / 1e3,
        }
    }
}

/// The intervals: whole ones, and what is left where it is at least half a second.
pub(super) fn rows(info: &RedoInfo) -> Vec<Row> {
    let interval = info.interval_s.max(1) as usize;
    let elapsed = info.elapsed_s.value().unwrap_or(0.0);
    let mut ended = 0.0;
    let mut rows: Vec<Row> = Vec::new();
    for (at, seconds) in info.seconds.chunks(interval).enumerate() {
        let mut row = Row::default();
        seconds.iter().for_each(|second| row.add(second));
        let last = seconds.iter().map(|second| second.end_s).fold(0.0, f64::max);
        let end = ((at + 1) * interval) as f64;
        // The message that was under way when the time was over belongs to the last interval.
        if end - interval as f64 >= info.asked_s - 1e-9
            && let Some(before) = rows.last_mut()
        {
            seconds.iter().for_each(|second| before.add(second));
            before.elapsed_s += last - ended;
            continue;
        }
        row.end_s = end.min(elapsed.max(last));
        row.elapsed_s = last - ended;
        if info.connections_count > 1 || !is_sync(info) {
            row.elapsed_s = row.end_s - at as f64 * interval as f64;
        }
        ended = last.max(ended);
        if row.end_s - at as f64 * interval as f64 >= 0.5 || row.messages > 0 {
            rows.push(row);
        }
    }
    rows
}

fn line(info: &RedoInfo, row: &Row) -> String {
    let has_disk = writes(info);
    let (wide, latency) = if has_disk { (11, 17) } else { (15, 21) };
    let mut text = format!("({}){:>wide$.3} Mbytes/s", clock(info, row.end_s), row.mbytes_per_s());
    if is_sync(info) {
        let _ = write!(text, "{:>latency$.3} ms", row.ms(row.total_us));
        if has_disk {
            let _ = write!(text, "   (disk-write {:.3} ms)", row.ms(row.disk_us));
        }
    }
    text
}

/// The lines after the last row.
pub(super) fn tail(info: &RedoInfo) -> Vec<String> {
    let first = info.standbys.first();
    let buffer = first.and_then(|standby| standby.send_buffer_bytes.value());
    let bytes: u64 = info.seconds.iter().map(|second| second.bytes).sum();
    let elapsed = info.elapsed_s.value().unwrap_or(0.0);
    let rate = if elapsed > 0.0 { bytes as f64 / MBYTE / elapsed } else { 0.0 };
    let of = |label: &str, value: String| format!("\t{label:>25} = {value}");
    let buffer = buffer.map_or_else(|| "n/a".to_owned(), |bytes| format!("{bytes:.0} bytes"));
    let mut lines = vec![of("Socket send buffer", buffer), of("Avg. throughput", format!("{rate:.3} Mbytes/s"))];
    if is_sync(info) {
        let (mut total, mut disk) = (0.0, 0.0);
        for second in &info.seconds {
            total += second.total_us;
            disk += second.disk_us;
        }
        let count = info.messages_count.max(1) as f64;
        let mut value = format!("{:.3} ms", total / count / 1e3);
        if writes(info) {
            let _ = write!(value, " (disk-write {:.3} ms)", disk / count / 1e3);
        }
        lines.push(of("Avg. latency", value));
    }
    lines
}
