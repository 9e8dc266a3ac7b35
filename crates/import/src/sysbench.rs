//! sysbench 0.4.12, 0.5 and 1.0: SQL, file I/O, CPU, memory, threads, mutex; interval lines and histogram.

use super::Confidence;
use super::ImportError;
use super::draft::{Draft, Reading};
use super::located_number::between;
use super::number::{self, Printed};
use super::rows::{load_row, op_row, operations_are_transactions, put_step, setting, step};
use super::text::{At, Text};
use assay_measure::plain::slug;

pub(super) fn looks_like(text: &Text) -> Confidence {
    let has = |part: &str| text.head_has(part);
    let whole = Confidence::of(
        91,
        &[
            ("a line sysbench and its version", text.head_begins("sysbench ")),
            (
                "a line General statistics: or Test execution summary:",
                has("General statistics:") || has("Test execution summary:"),
            ),
        ],
    );
    let tail = Confidence::of(
        84,
        &[
            (
                "a line General statistics: or Test execution summary:",
                has("General statistics:") || has("Test execution summary:"),
            ),
            ("a line total number of events:", has("total number of events:")),
        ],
    );
    let intervals = Confidence::of(
        70,
        &[(
            "lines [ 1s ] thds: ... tps: ...",
            text.head()
                .iter()
                .any(|line| line.text.starts_with('[') && line.text.contains("thds:") && line.text.contains("tps:")),
        )],
    );
    whole.or(tail).or(intervals)
}

/// Which part of the report the lines are in.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Head,
    Queries,
    Latency,
    Fairness,
    Histogram,
}

struct Reader {
    /// `transaction` for SQL, else `event`.
    kind: &'static str,
    part: Part,
}

pub(super) fn read(texts: &[Text], draft: &mut Draft) -> Result<(), ImportError> {
    draft.recognised("", "sysbench text");
    for text in texts {
        let mut lines = text.lines.iter();
        let is_sql = lines.any(|line| line.text.trim_start().starts_with("transactions:"));
        kind(text).clone_into(&mut draft.record.kind);
        let mut reader = Reader { kind: if is_sql { "transaction" } else { "event" }, part: Part::Head };
        for line in &text.lines {
            reader.line(line.at, line.text.trim(), draft);
        }
    }
    operations_are_transactions(draft);
    Ok(())
}

/// Of which kind a test is, by a line that no other test prints; SQL and what has no such line are transactions.
fn kind(text: &Text) -> &'static str {
    const MARKS: [(&str, &str); 4] = [
        ("Prime numbers limit:", "cpu"),
        (" transferred (", "memory"),
        ("Total transferred", "storage"),
        ("File operations:", "storage"),
    ];
    let has = |mark: &str| text.lines.iter().any(|line| line.text.contains(mark));
    let found = MARKS.iter().find(|(mark, _)| has(mark));
    found.map_or("transactions", |(_, kind)| kind)
}

fn client(at: At, key: &str, name: &str, printed: Printed) -> Reading {
    Reading::new(at, key, printed).name(name).layer("client")
}

fn alone(draft: &mut Draft, at: At, key: &str, name: &str, printed: Option<Printed>) {
    if let Some(printed) = printed {
        draft.alone(client(at, key, name, printed));
    }
}

/// The number in front of a mark.
fn before(text: &str, mark: &str) -> Option<Printed> {
    let token = text.split(mark).next()?.split([' ', '(']).rfind(|token| !token.is_empty())?;
    text.contains(mark).then_some(())?;
    number::measure(token)
}

impl Reader {
    fn line(&mut self, at: At, text: &str, draft: &mut Draft) {
        if text.starts_with('[') {
            self.interval(at, text, draft);
            return;
        }
        if let Some(rest) = text.strip_prefix("sysbench ") {
            let version = rest.split([' ', ':']).next().unwrap_or_default();
            draft.recognised(version, "sysbench text");
            return;
        }
        if self.part == Part::Histogram && self.bucket(text, draft) {
            return;
        }
        match text {
            "queries performed:" => self.part = Part::Queries,
            "Latency (ms):" | "per-request statistics:" | "response time:" => self.part = Part::Latency,
            "Threads fairness:" => self.part = Part::Fairness,
            _ if text.starts_with("Latency histogram") => self.part = Part::Histogram,
            _ if text.contains(" Read,") && text.contains(" Write,") => old_file_io(at, text, draft),
            _ if text.contains("Requests/sec executed") => {
                alone(draft, at, "requests_per_s", "Requests/sec executed", before(text, " Requests/sec"));
            }
            _ if text.contains(" transferred (") => {
                alone(draft, at, "memory_mib_per_s", "transferred", between(text, "(", " ").and_then(number::measure));
            }
            _ if text.starts_with("Read ") && text.contains("Total transferred") => {
                alone(
                    draft,
                    at,
                    "file_mib_per_s",
                    "Total transferred",
                    between(text, "(", "Mb/sec").and_then(number::measure),
                );
            }
            _ => {
                if let Some((name, value)) = text.split_once(':') {
                    self.colon(at, name.trim(), value.trim(), draft);
                }
            }
        }
    }

    fn colon(&self, at: At, name: &str, value: &str, draft: &mut Draft) {
        let first = value.split([' ', '(']).next().unwrap_or_default();
        let is_statistic = ["min", "avg", "max", "sum"].contains(&name) || name.ends_with("percentile");
        if self.part == Part::Latency && is_statistic {
            self.latency(at, name, first, draft);
            return;
        }
        if self.part == Part::Queries && ["read", "write", "other", "total"].contains(&name) {
            let key = format!("queries_{name}_count");
            alone(draft, at, &key, name, number::count(first));
            return;
        }
        if self.part == Part::Fairness {
            // `events (avg/stddev):  390.0000/24.00`
            let key = match name.split(' ').next() {
                Some("events") => "session_events_count_avg",
                _ => "session_execution_s_avg",
            };
            let mean = first.split('/').next().unwrap_or_default();
            alone(draft, at, key, name, number::measure(mean));
            return;
        }
        let bracket = || between(value, "(", " ").and_then(number::measure);
        match name {
            "transactions" => transactions(at, value, draft),
            "total time" => elapsed(at, name, first, draft),
            "total time taken by event execution" => {
                let seconds = number::measure(first.trim_end_matches('s'));
                let key = format!("{}_us_sum", self.kind);
                alone(draft, at, &key, name, seconds.map(|s| s.scaled(1e6)));
            }
            "total number of events" => {
                let row = op_row(draft, self.kind);
                if let Some(printed) = number::count(first) {
                    let reading = client(at, "events_count", name, printed);
                    put!(draft, reading, driver.ops[row].count);
                }
            }
            "Number of threads" => {
                if let Some(printed) = number::count(first) {
                    let reading = client(at, "sessions_count", name, printed);
                    put!(draft, reading, run.sessions);
                }
            }
            "events per second" => operations(at, name, number::measure(first), draft),
            "Total operations" | "Operations performed" => operations(at, name, bracket(), draft),
            "reads/s" => requests(at, name, "Read IO requests", number::measure(first), draft),
            "writes/s" => requests(at, name, "Write IO requests", number::measure(first), draft),
            _ => detail(at, name, value, first, draft),
        }
    }

    /// ms in every version, with or without the letters behind it.
    fn latency(&self, at: At, name: &str, token: &str, draft: &mut Draft) {
        let bare = token.strip_suffix("ms").unwrap_or(token);
        let Some(printed) = number::measure(bare).map(|ms| ms.scaled(1e3)) else {
            return;
        };
        let row = op_row(draft, self.kind);
        let digits: String = name.chars().filter(char::is_ascii_digit).collect();
        let statistic = match name {
            "min" | "avg" | "max" | "sum" => name.to_owned(),
            _ => format!("p{digits}"),
        };
        let reading = client(at, &format!("{}_us_{statistic}", self.kind), name, printed);
        match statistic.as_str() {
            "min" => put!(draft, reading, driver.ops[row].service.us_min),
            "avg" => put!(draft, reading, driver.ops[row].service.us_avg),
            "max" => put!(draft, reading, driver.ops[row].service.us_max),
            "p50" => put!(draft, reading, driver.ops[row].service.us_p50),
            "p90" => put!(draft, reading, driver.ops[row].service.us_p90),
            "p99" => put!(draft, reading, driver.ops[row].service.us_p99),
            // `sum` is time of all events, in us like the others.
            _ => draft.alone(reading),
        }
    }

    /// `       0.797 |****                                     2`
    fn bucket(&mut self, text: &str, draft: &mut Draft) -> bool {
        let Some((value, rest)) = text.split_once('|') else {
            self.part = if text.is_empty() { Part::Head } else { self.part };
            return text.starts_with("value");
        };
        let count = rest.split_whitespace().last().and_then(|token| token.parse::<u64>().ok());
        let ms = value.trim().parse::<f64>().ok().filter(|ms| ms.is_finite() && *ms >= 0.0);
        if let (Some(ms), Some(count)) = (ms, count) {
            let row = op_row(draft, self.kind);
            let histogram = &mut draft.record.driver.ops[row].service.hist_ns;
            histogram.record_n((ms * 1e6).round() as u64, count);
        }
        true
    }

    /// `[ 1s ] thds: 2 tps: 186.77 qps: ... lat (ms,99%): 23.52 err/s: 3.00 reconn/s: 0.00`, and older forms.
    fn interval(&self, at: At, text: &str, draft: &mut Draft) {
        let end_s = between(text, "[", "s").and_then(|token| token.trim().parse::<f64>().ok());
        let Some((end_s, step)) = end_s.and_then(|end_s| Some((end_s, step(draft, end_s)?))) else {
            return;
        };
        let mut put = |key: &str, name: &str, series: &str, printed: Option<Printed>| {
            if let Some(printed) = printed {
                let reading = client(at, key, name, printed).scope(&format!("{end_s} s"));
                put_step(draft, reading, series, step);
            }
        };
        let of = |name: &str| {
            let rest = text.split(&format!("{name}:")).nth(1)?;
            let token = rest.split_whitespace().next()?;
            number::measure(token.trim_end_matches([',']).trim_end_matches("ms").trim_end_matches("/s"))
        };
        put("transactions_per_s", "tps", "commits_count_per_s", of(" tps"));
        put("events_per_s", "eps", "ops_count_per_s", of(" eps"));
        put("queries_per_s", "qps", "queries_count_per_s", of(" qps"));
        put("errors_per_s", "err/s", "errors_count_per_s", of("err/s").or_else(|| of("errors")));
        let percent = between(text, "(ms,", "%)").or_else(|| between(text, "ms (", "%)"));
        let lat = text.split("%):").nth(1).and_then(|rest| number::measure(rest.split_whitespace().next()?));
        let lat = lat.or_else(|| of("response time")).map(|ms| ms.scaled(1e3));
        let key = format!("{}_us_p{}", self.kind, percent.unwrap_or("95").trim());
        put(&key, "lat", &format!("op_us_p{}", percent.unwrap_or("95").trim()), lat);
        if text.contains("MiB/s") || text.contains("MB/s") {
            put("file_read_mib_per_s", "reads", "file_read_mib_per_s", of("reads"));
            put("file_write_mib_per_s", "writes", "file_write_mib_per_s", of("writes"));
            put("fsyncs_per_s", "fsyncs", "fsyncs_count_per_s", of("fsyncs"));
        }
    }
}

/// Lines with a count and a rate each.
const COUNTED: [&str; 6] =
    ["queries", "read/write requests", "other operations", "deadlocks", "ignored errors", "reconnects"];
/// Lines with a rate: label, our key.
const RATES: [(&str, &str); 3] =
    [("fsyncs/s", "fsyncs_per_s"), ("read, MiB/s", "file_read_mib_per_s"), ("written, MiB/s", "file_write_mib_per_s")];
/// Lines that say what was asked for.
const ASKED: [&str; 5] = ["Prime numbers limit", "block size", "total size", "operation", "scope"];

fn detail(at: At, name: &str, value: &str, first: &str, draft: &mut Draft) {
    if COUNTED.contains(&name) {
        let key = slug(name);
        let count = number::count(first);
        alone(draft, at, &format!("{key}_count"), name, count);
        let per_s = between(value, "(", " per sec").and_then(number::measure);
        alone(draft, at, &format!("{key}_per_s"), name, per_s);
    } else if let Some((_, key)) = RATES.iter().find(|(label, _)| *label == name) {
        alone(draft, at, key, name, number::measure(first));
    } else if ASKED.contains(&name) {
        setting(draft, name, value);
    } else if name == "FATAL" || name == "ALERT" {
        draft.note(at, format!("sysbench says: {value}"));
    }
}

fn elapsed(at: At, name: &str, token: &str, draft: &mut Draft) {
    let is_time = token.ends_with('s');
    let printed = is_time.then(|| number::duration_us(token, 1e6)).flatten();
    if let Some(printed) = printed {
        let reading = client(at, "elapsed_s", name, printed.scaled(1e-6));
        put!(draft, reading, interval.elapsed_s);
    }
}

/// `780    (258.68 per sec.)`
fn transactions(at: At, value: &str, draft: &mut Draft) {
    let row = load_row(draft, "Transactions", "count");
    let count = value.split([' ', '(']).next().and_then(number::count);
    if let Some(printed) = count {
        put!(draft, client(at, "transactions_count", "transactions", printed), instance.load_profile[row].total);
    }
    if let Some(printed) = between(value, "(", " per sec").and_then(number::measure) {
        put!(draft, client(at, "transactions_per_s", "transactions", printed), instance.load_profile[row].per_s);
        let per_s = draft.record.instance.load_profile[row].per_s.clone();
        let op = op_row(draft, "transaction");
        draft.record.driver.ops[op].per_s = per_s;
    }
}

fn operations(at: At, name: &str, printed: Option<Printed>, draft: &mut Draft) {
    let Some(printed) = printed else {
        return;
    };
    let row = load_row(draft, "Operations", "count");
    put!(draft, client(at, "ops_per_s", name, printed), instance.load_profile[row].per_s);
    let per_s = draft.record.instance.load_profile[row].per_s.clone();
    let op = op_row(draft, "event");
    draft.record.driver.ops[op].per_s = per_s;
}

fn requests(at: At, name: &str, row: &str, printed: Option<Printed>, draft: &mut Draft) {
    if let Some(printed) = printed {
        let place = load_row(draft, row, "count");
        let key = format!("{}_per_s", slug(row));
        put!(draft, client(at, &key, name, printed), instance.load_profile[place].per_s);
    }
}

/// `Operations performed:  6000 Read, 4000 Write, 12800 Other = 22800 Total`
fn old_file_io(at: At, text: &str, draft: &mut Draft) {
    for (mark, row) in [(" Read,", "Read IO requests"), (" Write,", "Write IO requests")] {
        if let Some(printed) = before(text, mark) {
            let place = load_row(draft, row, "count");
            let key = format!("{}_count", slug(row));
            put!(draft, client(at, &key, mark.trim_matches([' ', ',']), printed), instance.load_profile[place].total);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{imported, number, survives, told};

    const SAMPLES: [&str; 8] = [
        "sysbench-1.0-oltp.txt",
        "sysbench-1.0-fileio.txt",
        "sysbench-1.0-cpu.txt",
        "sysbench-1.0-memory.txt",
        "sysbench-1.0-threads.txt",
        "sysbench-0.4-oltp.txt",
        "sysbench-0.4-fileio.txt",
        "sysbench-0.5-oltp.txt",
    ];

    #[test]
    fn every_sample_is_read_as_frozen() {
        for name in SAMPLES {
            insta::assert_snapshot!(name.replace('.', "_"), told(&imported(name)));
        }
    }

    #[test]
    fn compare_finds_transactions_and_operations() {
        let record = imported("sysbench-1.0-oltp.txt");
        let metrics = &record.metrics;
        for key in ["transactions_per_s", "ops_per_s"] {
            let metric = assay_measure::record::metric::find(metrics, key).expect(key);
            assert_eq!(metric.value.value(), Some(258.68), "{key}");
        }
        let op = &record.driver.ops[0];
        assert_eq!(op.service.hist_ns.count(), 780);
        assert_eq!(op.service.us_p99.value(), Some(38_940.0));
        assert_eq!(record.series.metrics["commits_count_per_s"].len(), 3);
        assert_eq!(record.series.metrics["op_us_p99"][1].value(), Some(71_830.0));
    }

    #[test]
    fn both_layouts_give_the_same_keys() {
        let (old, new) = (imported("sysbench-0.4-oltp.txt"), imported("sysbench-1.0-oltp.txt"));
        for key in ["transactions_per_s", "transaction_us_avg", "elapsed_s", "sessions_count", "events_count"] {
            assert!(number(&old, "", key) > 0.0 && number(&new, "", key) > 0.0, "{key}");
        }
        assert_eq!(number(&old, "", "transaction_us_p95"), 12_500.0);
        let files = imported("sysbench-1.0-fileio.txt");
        assert_eq!(number(&files, "", "read_io_requests_per_s"), 10_534.71);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]
        #[test]
        fn damaged_samples_never_panic(seed in 0_u64..u64::MAX, which in 0_usize..SAMPLES.len()) {
            survives(SAMPLES[which], seed);
        }
    }

    #[test]
    fn sums_of_file_io_are_of_storage_and_keep_what_any_import_has() {
        let record = imported("sysbench-1.0-fileio.txt");
        assert_eq!(record.kind, "storage");
        let mut drawn = Vec::new();
        assay_report::kinds::of(&record).charts(&record, &mut |chart| drawn.push(chart));
        assert!(!drawn.is_empty(), "charts, or why each is none");
        let answer = assay_report::answer::of(&[&record], &Default::default()).text();
        assert!(!answer.contains("database: ."), "{answer}");
        assert_eq!(imported("sysbench-1.0-cpu.txt").kind, "cpu");
        assert_eq!(imported("sysbench-1.0-memory.txt").kind, "memory");
        assert_eq!(imported("sysbench-1.0-oltp.txt").kind, "transactions");
    }
}
