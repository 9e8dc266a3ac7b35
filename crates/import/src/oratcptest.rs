//! oratcptest, the client's output: the request, one row per interval, the averages.

use super::Confidence;
use super::ImportError;
use super::draft::{Draft, Reading};
use super::located_number::{amount, between};
use super::number::{self, Printed};
use super::rows::{clock_s, op_row, put_step, setting, step};
use super::text::{At, Text};

const MBYTES: f64 = 1_048_576.0;
const DAY_S: f64 = 86_400.0;
/// Bytes of framing that the tool counts with each message.
const FRAMING: f64 = 12.0;
const PAYLOAD: &[(&str, f64)] = &[
    ("byte", 1.0),
    ("bytes", 1.0),
    ("kbyte", 1024.0),
    ("kbytes", 1024.0),
    ("Mbyte", MBYTES),
    ("Mbytes", MBYTES),
    ("Gbyte", 1024.0 * MBYTES),
    ("Gbytes", 1024.0 * MBYTES),
];

pub(super) fn looks_like(text: &Text) -> Confidence {
    let has = |part: &str| text.head_has(part);
    let whole = Confidence::of(
        92,
        &[
            ("a line Message payload = ...", has("Message payload")),
            ("a line Transport mode = ...", has("Transport mode")),
        ],
    );
    let row = |text: &Text| {
        let mut lines = text.head().iter();
        lines.any(|line| line.text.starts_with('(') && line.text.contains("Mbytes/s"))
    };
    let rows = Confidence::of(
        80,
        &[
            ("rows (HH:MM:SS) ... Mbytes/s", row(text)),
            ("a line Avg. throughput = ...", has("Avg. throughput") || has("The server is ready")),
        ],
    );
    whole.or(rows)
}

/// The time line of a test: clock times since the first.
#[derive(Default)]
struct Times {
    begin_s: Option<f64>,
}

impl Times {
    /// Seconds since the first time seen; over midnight too.
    fn since(&mut self, clock: f64) -> f64 {
        let begin = *self.begin_s.get_or_insert(clock);
        (clock - begin).rem_euclid(DAY_S)
    }
}

pub(super) fn read(texts: &[Text], draft: &mut Draft) -> Result<(), ImportError> {
    draft.recognised("", "oratcptest text");
    for text in texts {
        draft.own_tabs(text.file);
        let mut times = Times::default();
        for line in &text.lines {
            read_line(line.at, line.text.trim(), &mut times, draft);
        }
    }
    messages(draft);
    Ok(())
}

fn read_line(at: At, text: &str, times: &mut Times, draft: &mut Draft) {
    let clock = between(text, "(", ")").and_then(clock_s);
    if let (true, Some(clock)) = (text.starts_with('('), clock.and_then(|c| c.number())) {
        let since = times.since(clock);
        if text.contains("Mbytes/s") {
            row(at, text, since, draft);
        } else if text.contains("Test finished") {
            draft.record.interval.elapsed_s = since.into();
        }
        return;
    }
    let Some((label, value)) = text.split_once(" = ") else {
        return;
    };
    let (label, value) = (label.trim(), value.trim());
    match label {
        "Avg. throughput" => average_rate(at, value, draft),
        "Avg. latency" => average_latency(at, value, draft),
        "Message payload" => {
            setting(draft, label, value);
            alone(draft, at, "redo_transport_message_bytes", label, exact(amount(value, PAYLOAD)));
        }
        "Number of connections" => {
            setting(draft, label, value);
            if let Some(printed) = number::count(value) {
                let reading = Reading::new(at, "connections_count", printed).name(label);
                put!(draft, reading.layer("network"), run.sessions);
            }
        }
        "Socket send buffer" => {
            setting(draft, label, value);
            let bytes = value.strip_suffix("bytes").and_then(|n| number::count(n.trim()));
            alone(draft, at, "socket_send_buffer_bytes", label, bytes);
        }
        _ => setting(draft, label, value),
    }
}

/// What was asked for is not rounded.
fn exact(printed: Option<Printed>) -> Option<Printed> {
    printed.map(|printed| Printed { rounding: 0.0, ..printed })
}

fn alone(draft: &mut Draft, at: At, key: &str, name: &str, printed: Option<Printed>) {
    if let Some(printed) = printed {
        let reading = Reading::new(at, key, printed).name(name);
        draft.alone(reading.layer("network"));
    }
}

/// `2.294 Mbytes/s`
fn bytes_per_s(text: &str) -> Option<Printed> {
    let token = text.split("Mbytes/s").next()?.split_whitespace().last()?;
    Some(number::measure(token)?.scaled(MBYTES))
}

/// `1.708 ms   (disk-write 1.025 ms)`: the whole, and its part at the disk.
fn latencies(text: &str) -> (Option<Printed>, Option<Printed>) {
    let ms = |token: Option<&str>| Some(number::measure(token?)?.scaled(1e3));
    let (whole, disk) = text.split_once("(disk-write").unwrap_or((text, ""));
    let of = |part: &str| ms(part.split(" ms").next()?.split_whitespace().last());
    (whole.contains(" ms").then(|| of(whole)).flatten(), of(disk))
}

/// `(12:11:42)      2.294 Mbytes/s            1.708 ms   (disk-write 1.025 ms)`
fn row(at: At, text: &str, since: f64, draft: &mut Draft) {
    let Some(step) = step(draft, since) else {
        draft.note(at, "a row out of order was skipped");
        return;
    };
    let (_, rest) = text.split_once("Mbytes/s").unwrap_or((text, ""));
    let (whole, disk) = latencies(rest);
    for (key, name, printed) in [
        ("redo_transport_bytes_per_s", "Throughput", bytes_per_s(text)),
        ("redo_transport_us_avg", "Latency", whole),
        ("redo_transport_disk_write_us_avg", "disk-write", disk),
    ] {
        if let Some(printed) = printed {
            let reading = Reading::new(at, key, printed).name(name);
            let reading = reading.scope(&format!("{since} s")).layer("network");
            put_step(draft, reading, key, step);
        }
    }
}

fn average_rate(at: At, value: &str, draft: &mut Draft) {
    alone(draft, at, "redo_transport_bytes_per_s", "Avg. throughput", bytes_per_s(value));
}

fn average_latency(at: At, value: &str, draft: &mut Draft) {
    let (whole, disk) = latencies(value);
    let row = op_row(draft, "redo_transport");
    if let Some(printed) = whole {
        let reading = Reading::new(at, "redo_transport_us_avg", printed).name("Avg. latency");
        put!(draft, reading.layer("network"), driver.ops[row].service.us_avg);
    }
    alone(draft, at, "redo_transport_disk_write_us_avg", "disk-write", disk);
}

/// Messages per second follow from bytes per second and the size, framing included.
fn messages(draft: &mut Draft) {
    let Some(rate) = draft.number_of("", "redo_transport_bytes_per_s") else {
        return;
    };
    let Some(size) = draft.number_of("", "redo_transport_message_bytes") else {
        return;
    };
    let row = op_row(draft, "redo_transport");
    let per_s = rate / (size + FRAMING);
    let op = &mut draft.record.driver.ops[row];
    op.per_s = per_s.into();
    if let Some(elapsed) = draft.record.interval.elapsed_s.value() {
        op.count = (per_s * elapsed).round() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{imported, info, number, record_of, sample, survives, told};

    #[test]
    fn the_sample_is_read_as_frozen() {
        insta::assert_snapshot!(told(&imported("oratcptest-0.txt")));
    }

    #[test]
    fn network_and_disk_are_kept_apart() {
        let record = imported("oratcptest-0.txt");
        let whole = number(&record, "", "redo_transport_us_avg");
        let disk = number(&record, "", "redo_transport_disk_write_us_avg");
        assert!((whole - disk - 644.0).abs() < 1e-6, "{whole} {disk}");
        assert_eq!(record.interval.elapsed_s.value(), Some(60.0));
        assert_eq!(record.series.t_s.len(), 11);
        assert_eq!(record.run.sessions, 1);
        let per_s = record.driver.ops[0].per_s.value().expect("derived");
        assert!((per_s - 394.9).abs() < 0.2, "{per_s}");
        assert!(info(&record).notes.iter().any(|note| note.text.contains("cut out")));
    }

    #[test]
    fn an_asynchronous_test_has_no_latency() {
        let text = sample("oratcptest-0.txt")
            .replace("= SYNC", "= ASYNC")
            .lines()
            .map(|line| line.split(" ms").next().unwrap_or_default().to_owned())
            .map(|line| match line.find("Mbytes/s") {
                Some(at) if line.starts_with('(') => line[..at + 8].to_owned(),
                _ => line,
            })
            .filter(|line| !line.contains("Avg. latency"))
            .collect::<Vec<_>>()
            .join("\n");
        let record = record_of("async", &text);
        assert!(!record.series.metrics.contains_key("redo_transport_us_avg"));
        assert_eq!(record.driver.ops[0].service.us_avg.value(), None);
        assert!(record.driver.ops[0].per_s.value().is_some());
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
        #[test]
        fn damaged_samples_never_panic(seed in 0_u64..u64::MAX) {
            survives("oratcptest-0.txt", seed);
        }
    }
}
